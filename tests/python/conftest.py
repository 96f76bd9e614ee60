"""One cache for all tests of a run, made before jitney is imported; what tests share."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap

import pytest

_cache = tempfile.mkdtemp(prefix="jitney-test-")
os.environ["JITNEY_CACHE_DIR"] = _cache
for _name in ("JITNEY_CACHE", "JITNEY_COMPILE", "JITNEY_VERBOSE", "JITNEY_ARCH", "TORCH_CUDA_ARCH_LIST"):
    os.environ.pop(_name, None)
if "JITNEY_LIBRARY" in os.environ:  # tests change folders
    os.environ["JITNEY_LIBRARY"] = os.path.abspath(os.environ["JITNEY_LIBRARY"])
if "PYTHONPATH" in os.environ:
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in os.environ["PYTHONPATH"].split(os.pathsep) if p)

import jitney  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases"


def pytest_sessionfinish(session):
    shutil.rmtree(_cache, ignore_errors=True)


def lacking(reason):
    """Skips, unless skips are failures here (JITNEY_TEST_NO_SKIP=1: a machine that should have everything)."""
    if os.environ.get("JITNEY_TEST_NO_SKIP") == "1":
        pytest.fail(f"JITNEY_TEST_NO_SKIP=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def torch():
    try:
        import torch
    except ImportError as error:
        lacking(f"PyTorch cannot be imported: {error}")
    return torch


@pytest.fixture(scope="session")
def nvrtc():
    try:
        jitney.load_inline("nvrtc_probe", cuda_sources="__global__ void probe() {}", arch="sm_90")
    except jitney.ToolError as error:
        lacking(f"NVRTC is missing: {error}")


@pytest.fixture(scope="session")
def gpu(nvrtc):
    """PyTorch, where it and Jitney see a GPU."""
    try:
        available = jitney.gpu_available()
    except jitney.JitneyError as error:
        lacking(f"there is no GPU: {error}")
    if not available:
        lacking(f"there is no GPU: {jitney._lib.api.last_error().decode()}")
    try:
        import torch
    except ImportError as error:
        lacking(f"PyTorch cannot be imported: {error}")
    if not torch.cuda.is_available():
        lacking("this PyTorch sees no GPU")
    return torch


@pytest.fixture(scope="session")
def cupy(gpu):
    try:
        import cupy
    except ImportError as error:
        lacking(f"CuPy cannot be imported: {error}")
    return cupy


class Finished:
    """What a subprocess printed; its repr is what a failing assert shows."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Child:
    """Runs Python with a cache of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.cache = folder / "cache"

    def command(self, script, *args, env=None, python_args=()):
        full = dict(os.environ, JITNEY_CACHE_DIR=str(self.cache))
        for name, value in (env or {}).items():
            full.pop(name, None)
            if value is not None:
                full[name] = str(value)
        head = [sys.executable, *python_args]
        head += [str(script)] if isinstance(script, pathlib.Path) else ["-c", textwrap.dedent(script)]
        return head + [str(a) for a in args], full

    def start(self, script, *args, env=None, cwd=None):
        command, full = self.command(script, *args, env=env)
        return subprocess.Popen(command, env=full, cwd=cwd or self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def attempt(self, script, *args, env=None, cwd=None, python_args=(), timeout=120):
        command, full = self.command(script, *args, env=env, python_args=python_args)
        done = subprocess.run(command, env=full, cwd=cwd or self.folder, capture_output=True, text=True, timeout=timeout)
        return Finished(done.returncode, done.stdout, done.stderr)

    def __call__(self, script, *args, **options):
        done = self.attempt(script, *args, **options)
        assert done.code == 0, done
        return done


@pytest.fixture
def child(tmp_path):
    return Child(tmp_path)


@pytest.fixture
def no_compiler(tmp_path):
    """An environment whose PATH holds no program at all."""
    folder = tmp_path / "no-programs"
    folder.mkdir()
    return {"PATH": str(folder)}
