"""The main job, start to end: C++ and CUDA source in, callables out, remembered on disk. `make demo` runs it.

Runs with a GPU or without one, with PyTorch or with NumPy alone; says which.
"""
import ctypes
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KERNEL = HERE.parents[1] / "kernels_src" / "axpy.cu"

PRINT_ARRAY = """
#include <torch/extension.h>
void printArray(torch::Tensor input) {
  int *ptr = (int *)input.data_ptr();
  for (int i = 0; i < input.numel(); i++) {
    printf("%d\\n", ptr[i]);
  }
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("print_array", &printArray, "Prints every element of an int32 array");
}
"""


def array():
    if importlib.util.find_spec("torch"):
        import torch
        return torch.tensor([4, 3, 2, 1], dtype=torch.int), "PyTorch " + torch.__version__
    import numpy
    return numpy.array([4, 3, 2, 1], dtype=numpy.int32), "NumPy " + numpy.__version__


def main():
    import jitney

    data, framework = array()
    begin = time.perf_counter()
    module = jitney.load_inline("print_array", cpp_sources=PRINT_ARRAY)
    seconds = time.perf_counter() - begin
    print(f"C++ op from source, called with {framework}: ready after {seconds * 1e3:.1f} ms ({module.__file__})", flush=True)
    module.print_array(data)
    ctypes.CDLL(None).fflush(None)  # the op prints through C's stdio, this script through Python's

    gpu = jitney.gpu_available()
    begin = time.perf_counter()
    kernels = jitney.load("axpy", KERNEL, arch=None if gpu else "sm_90")
    seconds = time.perf_counter() - begin
    print(f"CUDA kernel from source, no nvcc: ready after {seconds * 1e3:.1f} ms\n  {kernels.axpy.signature}")
    if not gpu:
        print("  compiled for sm_90 and not launched: no GPU here")
        return
    if not importlib.util.find_spec("torch"):
        print("  a GPU is here, but no PyTorch or CuPy to put arrays on it: pip install torch to see it launched")
        return
    import torch
    x = torch.arange(4, device="cuda", dtype=torch.float32)
    y = torch.ones(4, device="cuda")
    kernels.axpy[1, 32](2.0, x, y, 4)
    print("  launched: 2 * [0 1 2 3] + 1 =", y.tolist())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
        sys.exit()
    with tempfile.TemporaryDirectory() as cache:
        env = dict(os.environ, JITNEY_CACHE_DIR=os.path.join(cache, "jitney"))
        for title in ("First run: nothing in the cache.", "Second run, a new process: everything is in the cache."):
            print(f"--- {title}", flush=True)
            subprocess.run([sys.executable, __file__, "run"], env=env, check=True)
