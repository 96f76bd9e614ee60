"""Rules over the source tree, as plain text checks: who may include whom, who names CPython, what the library exports."""
import ctypes
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"

# A folder may include itself and what stands here. Files directly in src/ see everything.
MAY_INCLUDE = {
    "base": set(),
    "model": {"base"},
    "cache": {"base"},
    "source": {"base", "model", "cache"},
    "compile": {"base", "model", "source", "cache"},
    "device": {"base", "model"},
    "call": {"base", "model", "cache", "device"},
    "python": {"base", "model", "call"},
    "stub": set(),
}


def own_includes(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)


def test_a_folder_includes_only_folders_below_it():
    wrong = []
    for path in sorted(SRC.glob("*/*.[ch]")):
        folder = path.parent.name
        for include in own_includes(path):
            other = include.split("/")[0] if "/" in include else None
            if other == "jitney" or other == folder:
                continue
            if other is None or other not in MAY_INCLUDE[folder]:
                wrong.append(f"{path.relative_to(ROOT)} includes {include}")
    assert not wrong, "\n".join(wrong)


def test_a_source_file_begins_with_its_own_name():
    wrong = []
    for path in sorted(SRC.rglob("*.[ch]")):
        first = path.read_text().split("\n", 1)[0]
        if not first.startswith(f"/* {path.name} — "):
            wrong.append(f"{path.relative_to(ROOT)}: {first[:60]}")
    assert not wrong, "\n".join(wrong)


def test_only_py_h_names_cpython():
    named = re.compile(r"^\s*extern\b.*\bPy[A-Z_]\w*", re.M)
    allowed = {SRC / "python" / "py.h", SRC / "stub" / "stub.c"}
    wrong = [str(p.relative_to(ROOT)) for p in SRC.rglob("*.[ch]") if p not in allowed and named.search(p.read_text())]
    wrong += [str(p.relative_to(ROOT)) for p in SRC.rglob("*.[ch]") if "<Python.h>" in p.read_text()]
    assert not wrong, wrong


def header_functions():
    text = (ROOT / "include/jitney/jitney.h").read_text()
    return set(re.findall(r"^JTN_API[^(;]*?\b(jtn_\w+)\(", text, re.M))


def library():
    return Path(os.environ.get("JITNEY_LIBRARY") or ROOT / "build" / "libjitney.so").resolve()


def test_the_library_exports_the_header_and_nothing_else():
    out = subprocess.run(["nm", "-D", "--defined-only", library()], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    assert exported == header_functions()


def test_the_python_package_declares_only_functions_of_the_header():
    declared = set(re.findall(r"\b(jtn_[a-z_]+)\b", (ROOT / "python/jitney/_lib.py").read_text()))
    functions = header_functions()
    called = {name for name in declared if hasattr(ctypes.CDLL(str(library())), name)}
    assert called and called <= functions


def test_the_public_header_is_under_its_limits():
    text = (ROOT / "include/jitney/jitney.h").read_text()
    assert len(text.splitlines()) <= 900
    assert len(header_functions()) < 60


def test_no_source_file_has_grown_over_six_hundred_lines():
    long = {str(p.relative_to(ROOT)): n for p in SRC.rglob("*.[ch]") if (n := len(p.read_text().splitlines())) > 600}
    assert not long, long
