"""Every comparison this machine can make, as ratios, in one run: `make bench` or `python -m bench [--json FILE] [--peers]`.

Medians of interleaved repetitions. Floors are C (floors.c). What cannot be measured here is said, not left out silently.
"""
import argparse
import ctypes
import glob
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PRINT_ARRAY = """
#include <torch/extension.h>
void printArray(torch::Tensor input) {
  int *ptr = (int *)input.data_ptr();
  for (int i = 0; i < input.numel(); i++) printf("%d\\n", ptr[i]);
}
void nop() {}
void nop3(torch::Tensor a, torch::Tensor b, torch::Tensor c) {}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("print_array", &printArray, ""); m.def("nop", &nop, ""); m.def("nop3", &nop3, ""); }
"""
AXPY = (HERE.parent / "kernels_src" / "axpy.cu").read_text()
RESULTS = {}


def report(name, value, unit, floor=None, floor_name="", goal=""):
    entry = {"value": value, "unit": unit}
    line = f"{name:58} {value:10.3f} {unit}"
    if floor:
        entry.update(floor=floor, ratio=value / floor, floor_name=floor_name)
        line += f"   {value / floor:6.2f} x {floor_name} ({floor:.3f})"
    if goal:
        line += f"   [goal {goal}]"
    RESULTS[name] = entry
    print(line, flush=True)


def skip(name, why):
    RESULTS[name] = {"skipped": why}
    print(f"{name:58} not measured: {why}", flush=True)


def build_floors(folder):
    path = os.path.join(folder, "floors.so")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", path, str(HERE / "floors.c"), "-ldl"], check=True)
    lib = ctypes.CDLL(path)
    for name in ("floor_nvrtc_s", "floor_load_s", "floor_launch_ns"):
        getattr(lib, name).restype = ctypes.c_double
    lib.floor_launch_ns.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 2 + [ctypes.c_void_p]
    return lib


def find_nvrtc():
    for folder in [p for p in sys.path if p.endswith("-packages")]:
        for path in sorted(glob.glob(folder + "/nvidia/*/lib/libnvrtc.so.*"), reverse=True):
            if "alt" not in path:
                return path
    return None


def child(code, env, *args):
    """Runs code in a fresh Python; its last line of output is a JSON value."""
    run = subprocess.run([sys.executable, "-c", code, *args], env=env, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr[-2000:])
    return json.loads(run.stdout.strip().splitlines()[-1])


COLD_HOST = """
import sys, time, json
import jitney
source = sys.argv[1] + "// " + sys.argv[2]
begin = time.perf_counter()
jitney.load_inline("bench_host", cpp_sources=source)
print(json.dumps(time.perf_counter() - begin))
"""
COLD_KERNEL = """
import sys, time, json
import jitney
source = sys.argv[1] + "// " + sys.argv[2]
begin = time.perf_counter()
jitney.load_inline("bench_axpy", cuda_sources=source, arch=sys.argv[3])
print(json.dumps(time.perf_counter() - begin))
"""
COLD_FLOOR = """
import ctypes, sys, time, json
lib = ctypes.CDLL(sys.argv[1]); lib.floor_nvrtc_s.restype = ctypes.c_double
begin = time.perf_counter()
assert lib.floor_nvrtc_s(sys.argv[2].encode(), sys.argv[3].encode(), sys.argv[4].encode(), None) > 0
print(json.dumps(time.perf_counter() - begin))
"""
WARM = """
import sys, time, json
import jitney
jitney.load_inline("bench_first", cuda_sources="extern \\"C\\" __global__ void k(){}", arch=sys.argv[2])
begin = time.perf_counter()
m = jitney.load_inline("bench_axpy", cuda_sources=sys.argv[1], arch=sys.argv[2])
print(json.dumps(time.perf_counter() - begin))
"""


def cold(env, floors_path, nvrtc, arch, repeats):
    child(COLD_HOST, env, PRINT_ARRAY, "first")  # makes the precompiled header
    times = [child(COLD_HOST, env, PRINT_ARRAY, f"{i} {time.time()}") for i in range(repeats)]
    report("print_array from source, cold, header precompiled", statistics.median(times), "s", goal="<= 0.35 on 2 cores")
    if not nvrtc:
        return skip("axpy from source, cold", "no NVRTC")
    ours, floor = [], []
    for i in range(repeats):
        ours.append(child(COLD_KERNEL, env, AXPY, f"{i} {time.time()}", arch))
        floor.append(child(COLD_FLOOR, env, floors_path, nvrtc, AXPY + f"// {i}", arch))
    report("axpy from source, cold, own process", statistics.median(ours), "s", statistics.median(floor), "bare NVRTC", "<= 1.15 x")


def warm(env, lib, arch, gpu, repeats, folder):
    child(WARM, env, AXPY, arch)
    times = [child(WARM, env, AXPY, arch) for _ in range(repeats)]
    report("axpy warm load, new process, Python side", statistics.median(times) * 1e6, "us")
    imports = []
    for _ in range(repeats):
        imports.append(child("import time, json; b = time.perf_counter(); import jitney; print(json.dumps(time.perf_counter() - b))", env))
    report("import jitney", statistics.median(imports) * 1e3, "ms", goal="<= 30")


def again():
    import jitney
    args = dict(cpp_sources=PRINT_ARRAY)
    module = jitney.load_inline("bench_again", **args)
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        for _ in range(20):
            jitney.load_inline("bench_again", **args)
        times.append((time.perf_counter() - begin) / 20)
    report("the same source loaded again, same process", statistics.median(times) * 1e6, "us", goal="<= 5")
    return module


def per_call_ns(call, count=2000, batches=60):
    times = []
    for _ in range(batches):
        begin = time.perf_counter_ns()
        for _ in range(count):
            call()
        times.append((time.perf_counter_ns() - begin) / count)
    return statistics.median(times)


def op_calls(module):
    loop = per_call_ns(lambda: None)
    nop = module.nop
    report("Python call of an op, no arguments (empty lambda: %.0f)" % loop, per_call_ns(lambda: nop()) - loop, "ns", goal="<= 60")
    if importlib.util.find_spec("torch"):
        import torch
        a, b, c = (torch.ones(4) for _ in range(3))
        f = module.nop3
        report("the same with three torch tensors", per_call_ns(lambda: f(a, b, c)) - loop, "ns", goal="<= 60 + conversions")
    else:
        skip("the same with three torch tensors", "torch is not installed")


def gpu_calls(lib, nvrtc, arch, folder):
    import torch
    import jitney
    torch.cuda.init()
    x = torch.ones(1024, device="cuda")
    y = torch.ones(1024, device="cuda")
    assert lib.floor_context() == 0
    cubin = os.path.join(folder, "axpy.cubin")
    assert lib.floor_nvrtc_s(nvrtc.encode(), AXPY.encode(), arch.encode(), cubin.encode()) > 0
    function = ctypes.c_void_p()
    floor_loads = sorted(lib.floor_load_s(cubin.encode(), b"axpy", ctypes.byref(function)) for _ in range(50))
    module = jitney.load_inline("bench_axpy", cuda_sources=AXPY)
    bound = module.axpy[4, 256]
    kernel = module.axpy
    rounds = range(256)

    def by_keyword():
        for _ in rounds:
            kernel(2.0, x, y, 1024, grid=4, block=256)

    def by_launcher():
        for _ in rounds:
            bound(2.0, x, y, 1024)

    calls = {"kernel call, Python, two torch tensors, grid= block=": by_keyword, "the same through a bound launcher": by_launcher}
    if importlib.util.find_spec("cupy"):
        import cupy
        raw = cupy.RawKernel(AXPY, "axpy")
        cx, cy = cupy.ones(1024, "f4"), cupy.ones(1024, "f4")
        ca, cn = cupy.float32(2), cupy.int32(1024)
        cbound = module.axpy[4, 256]

        def by_cupy():
            for _ in rounds:
                raw((4,), (256,), (ca, cx, cy, cn))

        def on_cupy():
            for _ in rounds:
                cbound(2.0, cx, cy, 1024)

        calls["the same with CuPy arrays"] = on_cupy
        calls["peer: CuPy RawKernel, CuPy arrays, scalars made before"] = by_cupy
    best = {name: [] for name in calls}
    floor = []
    for _ in range(60):  # interleaved: every round runs each once, into an idle stream
        torch.cuda.synchronize()
        floor.append(lib.floor_launch_ns(function, x.data_ptr(), y.data_ptr(), 1024, 256, None))
        for name, call in calls.items():
            torch.cuda.synchronize()
            begin = time.perf_counter_ns()
            call()
            best[name].append((time.perf_counter_ns() - begin) / 256)
    for name, times in best.items():
        report(name, statistics.median(times), "ns", statistics.median(floor), "C loop over cuLaunchKernel", "" if "peer" in name or "CuPy" in name else "<= 1.15 x")
    return statistics.median(floor_loads)


WARM_FLOOR = """
import ctypes, sys, json
lib = ctypes.CDLL(sys.argv[1]); lib.floor_load_s.restype = ctypes.c_double
assert lib.floor_context() == 0
f = ctypes.c_void_p()
print(json.dumps(lib.floor_load_s(sys.argv[2].encode(), b"axpy", ctypes.byref(f))))
"""
WARM_C = """
import ctypes, sys, json
floor = ctypes.CDLL(sys.argv[1])
import jitney
assert floor.floor_context() == 0
lib = ctypes.CDLL(sys.argv[2]); lib.warm_load_s.restype = ctypes.c_double
seconds = lib.warm_load_s(b"bench_axpy", b"bench_axpy.cu", sys.argv[3].encode(), sys.argv[4].encode())
assert seconds > 0, seconds
print(json.dumps(seconds))
"""
WARM_PYTHON = """
import ctypes, sys, time, json
floor = ctypes.CDLL(sys.argv[1])
import jitney
assert floor.floor_context() == 0 and jitney.gpu_available()
begin = time.perf_counter()
m = jitney.load_inline("bench_axpy", cuda_sources=sys.argv[3], arch=sys.argv[4])
m.axpy
print(json.dumps(time.perf_counter() - begin))
"""


def build_warm(folder):
    from jitney import _lib
    path = os.path.join(folder, "warm.so")
    include = HERE.parent / "include"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", f"-I{include}", "-o", path, str(HERE / "warm.c"), _lib.path,
                    f"-Wl,-rpath,{os.path.dirname(_lib.path)}"], check=True)
    return path


def warm_gpu(env, folder, arch, cubin, repeats):
    """Each in a fresh process with a context: the first load of its life, interleaved with the floor's first."""
    floors_path, warm_path = os.path.join(folder, "floors.so"), build_warm(folder)
    child(WARM_PYTHON, env, floors_path, warm_path, AXPY, arch)  # fills the cache
    floor, c, python = [], [], []
    for _ in range(repeats):
        floor.append(child(WARM_FLOOR, env, floors_path, cubin) * 1e6)
        c.append(child(WARM_C, env, floors_path, warm_path, AXPY, arch) * 1e6)
        python.append(child(WARM_PYTHON, env, floors_path, warm_path, AXPY, arch) * 1e6)
    name = "read + cuModuleLoadData"
    report("axpy warm load, fresh process, from C", statistics.median(c), "us", statistics.median(floor), name, "<= 1.5 x")
    report("the same from Python", statistics.median(python), "us", statistics.median(floor), name)


def main():
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", help="also write the results to this file")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--torch", action="store_true", help="also run torch's own load_inline (15 s and more)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JITNEY_CACHE_DIR"] = os.path.join(folder, "cache")
        env = dict(os.environ)
        import jitney
        lib = build_floors(folder)
        floors_path = os.path.join(folder, "floors.so")
        nvrtc = find_nvrtc()
        gpu = jitney.gpu_available()
        arch = "sm_90"
        cold(env, floors_path, nvrtc, arch, options.repeats)
        warm(env, lib, arch, gpu, options.repeats, folder)
        op_calls(again())
        if gpu and importlib.util.find_spec("torch"):
            gpu_calls(lib, nvrtc, arch, folder)
            warm_gpu(env, folder, arch, os.path.join(folder, "axpy.cubin"), options.repeats)
        else:
            skip("kernel calls and warm loads on the GPU", "no GPU (or no torch) here")
        if options.torch:
            begin = time.perf_counter()
            os.environ["TORCH_EXTENSIONS_DIR"] = os.path.join(folder, "torch")
            from torch.utils.cpp_extension import load_inline
            load_inline("bench_torch", cpp_sources=PRINT_ARRAY)
            report("peer: torch load_inline of the same C++, cold", time.perf_counter() - begin, "s")
        else:
            skip("peer: torch load_inline of the same C++, cold", "ask for it with --torch")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(RESULTS, indent=1))


main()
