"""Prints lines per folder of src/ and the ten longest functions: `make size`."""
import re
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "src"


def functions(path):
    lines = path.read_text().splitlines()
    for start, line in enumerate(lines):
        if line == "{" and start and re.search(r"\)$", lines[start - 1]):
            end = next(i for i in range(start, len(lines)) if lines[i].startswith("}"))
            head = start - 1
            while head and lines[head - 1] and not lines[head - 1].endswith((";", "}", "*/")):
                head -= 1
            name = re.search(r"(\w+)\(", lines[head])
            yield end - head + 1, name.group(1) if name else "?", path


def main():
    totals = {}
    longest = []
    for path in sorted(SRC.rglob("*.[ch]")):
        folder = str(path.parent.relative_to(SRC))
        totals[folder] = totals.get(folder, 0) + len(path.read_text().splitlines())
        longest += functions(path)
    for folder, lines in totals.items():
        print(f"{lines:6} {folder}")
    print(f"{sum(totals.values()):6} in all")
    for lines, name, path in sorted(longest, reverse=True)[:10]:
        print(f"{lines:6} {name} ({path.relative_to(SRC)})")


main()
