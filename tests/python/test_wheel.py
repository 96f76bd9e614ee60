"""What is shipped: a wheel that works alone, and an install prefix that CMake and pkg-config find."""
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from conftest import ROOT, lacking


def call(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy: nothing is written beside the user's files
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".git", ".venv", "build", "build-*", "__pycache__", "tests", ".hypothesis"))
    done = subprocess.run([sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "-q", "-w", str(folder / "out")], cwd=source,
                          capture_output=True, text=True)
    if done.returncode and re.search(r"scikit.build.core|No matching distribution|Could not find a version", done.stderr):
        lacking(f"scikit-build-core cannot be had: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (path,) = (folder / "out").iterdir()
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    target = tmp_path_factory.mktemp("target")
    call(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", target, wheel)
    return target


def test_the_wheel_is_for_any_python_3_on_linux_x86_64(wheel):
    assert re.fullmatch(r"jitney-[\d.]+-py3-none-(linux|manylinux_\d+_\d+)_x86_64\.whl", wheel.name), wheel.name


def test_headers_stub_and_library_are_inside_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("jitney/__init__.py", "jitney/cpp_extension.py", "jitney/lib/libjitney.so", "jitney/share/jitney/stub.o",
                   "jitney/share/jitney/stub.so", "jitney/share/jitney/include/jitney/jitney.h",
                   "jitney/share/jitney/include/jitney/host/tensor.h"):
        assert wanted in names, (wanted, names)
    assert not [n for n in names if "__pycache__" in n or "/tests/" in n or n.endswith((".c", ".a"))], names


def test_an_installed_package_works_alone(installed, child):
    done = child("""
        import jitney, os
        assert jitney.__file__.startswith(os.environ["PYTHONPATH"]), jitney.__file__
        assert jitney._lib.path.startswith(os.environ["PYTHONPATH"]), jitney._lib.path
        m = jitney.load_inline("alone", cpp_sources="int f(torch::Tensor x) { return x.numel(); }", functions=["f"])
        import numpy
        print(m.f(numpy.zeros(3)))
        """, env={"JITNEY_LIBRARY": None, "PYTHONPATH": installed})
    assert done.out.split() == ["3"], done


def test_an_installed_package_compiles_kernels(installed, child, nvrtc):
    done = child("""
        import jitney
        print(jitney.load_inline("alone", cuda_sources="#include <cuda_fp16.h>\\n__global__ void k(__half *p) {}", arch="sm_90").k.params)
        """, env={"JITNEY_LIBRARY": None, "PYTHONPATH": installed})
    assert "__half *" in done.out, done


# ---- an install prefix ----

@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    cmake = shutil.which("cmake")
    if not cmake:
        lacking("there is no cmake")
    folder = tmp_path_factory.mktemp("prefix")
    call(cmake, "-S", ROOT, "-B", folder / "build", "-DJITNEY_TESTS=OFF", *(["-G", "Ninja"] if shutil.which("ninja") else []))
    call(cmake, "--build", folder / "build", "-j", "4")
    call(cmake, "--install", folder / "build", "--prefix", folder / "installed")
    shutil.rmtree(folder / "build")  # what is installed must not need it
    return folder / "installed"


def run_example(program, tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith("JITNEY")}
    env["JITNEY_CACHE_DIR"] = str(tmp_path / "cache")
    out = call(program, env=env)
    assert "32" in out and "built" in out, out


def test_pkg_config_builds_and_runs_the_example(prefix, tmp_path):
    if not shutil.which("pkg-config"):
        lacking("there is no pkg-config")
    (folder,) = prefix.rglob("pkgconfig")
    flags = call("pkg-config", "--cflags", "--libs", "jitney", env=dict(os.environ, PKG_CONFIG_PATH=str(folder))).split()
    call("cc", ROOT / "docs/examples/dot.c", *flags, "-o", tmp_path / "dot", f"-Wl,-rpath,{folder.parent}")
    run_example(tmp_path / "dot", tmp_path)


def test_find_package_builds_and_runs_the_example(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(f"""
        cmake_minimum_required(VERSION 3.22)
        project(user C)
        find_package(jitney REQUIRED)
        add_executable(dot {ROOT}/docs/examples/dot.c)
        target_link_libraries(dot PRIVATE jitney::jitney)
        """)
    call("cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("cmake", "--build", tmp_path / "b")
    run_example(tmp_path / "b" / "dot", tmp_path)


def test_the_header_is_plain_c_and_cpp(prefix, tmp_path):
    (tmp_path / "user.c").write_text("#include <jitney/jitney.h>\nint main(void) { return jtn_version() == 0; }\n")
    for language in ("c", "c++"):
        call("cc", "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I", prefix / "include", tmp_path / "user.c")
