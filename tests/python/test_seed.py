"""The tutorial's cases, as a reader of it runs them."""
import shutil

import pytest

from conftest import CASES

SEED = CASES / "seed"
NUMBERS = ["4", "3", "2", "1"]


def numbers(done):
    return [line.strip() for line in done.out.replace("\\n", "\n").splitlines() if line.strip().isdigit()]


@pytest.fixture
def easy(tmp_path, torch):
    folder = tmp_path / "easyJIT"
    shutil.copytree(SEED / "easyJIT", folder)
    return folder


def test_load_prints_the_array_cold_then_warm_then_copied(easy, child, no_compiler):
    cold = child(easy / "run.py", cwd=easy)
    assert numbers(cold) == NUMBERS, cold

    warm = child(easy / "run.py", cwd=easy, env={"JITNEY_COMPILE": "never"})
    assert numbers(warm) == NUMBERS, warm

    path = next(line.split(":", 1)[1].strip() for line in warm.out.splitlines() if line.startswith("Module directory:"))
    assert path.endswith("/demo.so"), path
    shutil.copy(path, easy / "demo.so")
    (easy / "demo.cu").unlink()
    shutil.rmtree(child.cache)
    copied = child(easy / "run_copied.py", cwd=easy, env=no_compiler)
    assert numbers(copied) == NUMBERS, copied


def test_verbose_load_says_what_was_compiled_on_stderr_and_keeps_stdout_clean(easy, child):
    done = child(easy / "run.py", cwd=easy)
    assert "demo" in done.err and "compiled in" in done.err, done
    assert len(done.out.splitlines()) == 5, done


def test_load_inline_prints_the_array_cold_then_warm(tmp_path, child, torch):
    shutil.copy(SEED / "inline" / "run_inline_v1.py", tmp_path)
    cold = child(tmp_path / "run_inline_v1.py")
    warm = child(tmp_path / "run_inline_v1.py", env={"JITNEY_COMPILE": "never"})
    assert numbers(cold) == NUMBERS, cold
    assert numbers(warm) == NUMBERS, warm
