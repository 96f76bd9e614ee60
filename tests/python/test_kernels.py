"""CUDA kernels: what is known of them without a GPU, and how they are launched where there is one."""
import pathlib
import sys

import numpy
import pytest

import jitney
from conftest import lacking

ARCH = "sm_90"


def kernels(source, name="kernels", **options):
    return jitney.load_inline(name, cuda_sources=source, **{"arch": ARCH, **options})


# ---- parameters, as the compiler knows them ----

RICH = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct point { float x, y; int tag; };
enum color { red, green };
enum class small : unsigned char { a, b };
typedef unsigned int word;
using number = double;
template <class T> struct box { T value; };
template <class T, int N> __global__ void scale(T *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= N; }
template <class T> __global__ void fill(T *x, box<T> value) { x[0] = value.value; }
namespace outer { namespace inner { __global__ void deep(int z) {} } }
extern "C" __global__ void plain(long long a, const char *b) {}
__global__ void scalars(bool b, char c, signed char sc, unsigned char uc, short s, unsigned short us, int i, unsigned u, long l,
                        unsigned long ul, long long ll, unsigned long long ull, float f, double d) {}
__global__ void pointers(const float *a, float *__restrict__ b, void *c, const double *const *d, int **e) {}
__global__ void halves(__half h, __nv_bfloat16 b, const __half *hp, __nv_bfloat16 *bp, __half2 h2) {}
__global__ void structs(point p, point *pp, color c, small s, float4 v, dim3 d, box<int> bi) {}
__global__ void aliases(word w, number n, size_t s) {}
__global__ void unnamed(int, float *) {}
__global__ void none() {}
__global__ void __launch_bounds__(128, 2) bounded(int n) {}
static __global__ void hidden(int n) {}
__global__ void over(int a) {}
__global__ void over(float *a, int n) {}
#define MAKE(name, type) __global__ void name(type *data, int count) {}
MAKE(made_float, float)
MAKE(made_int, int)
#define MAKE_C(name) extern "C" __global__ void name(double a) {}
MAKE_C(made_c)
#if 0
__global__ void dead(int a) {}
#endif
// __global__ void commented(int a) {}
const char *text = "__global__ void quoted(int a) {}";
__global__ void multi(
    int a,  // a comment, with a comma
    float b /* = 3 */,
    void (*f)(int, int));
__global__ void multi(int a, float b, void (*f)(int, int)) {}
"""


@pytest.fixture(scope="module")
def rich(nvrtc):
    return kernels(RICH, "rich")


@pytest.mark.parametrize("name, params", [
    ("scalars", "b: bool, c: char, sc: signed char, uc: unsigned char, s: short, us: unsigned short, i: int, u: unsigned int, l: long, "
                "ul: unsigned long, ll: long long, ull: unsigned long long, f: float, d: double"),
    ("pointers", "a: const float *, b: float *, c: void *, d: const double *const *, e: int **"),
    ("halves", "h: __half, b: __nv_bfloat16, hp: const __half *, bp: __nv_bfloat16 *, h2: __half2"),
    ("structs", "p: point, pp: point *, c: enum (int), s: enum (unsigned char), v: float4, d: dim3, bi: box<int>"),
    ("aliases", "w: unsigned int, n: double, s: unsigned long"),
    ("plain", "a: long long, b: const char *"),
    ("outer::inner::deep", "z: int"), ("deep", "z: int"),
    ("bounded", "n: int"), ("hidden", "n: int"), ("none", ""),
    ("over(int)", "a: int"),
    ("made_c", None), ("made_float", None), ("made_int", None),
])
def test_parameters_have_the_names_and_types_of_the_source(rich, name, params):
    kernel = getattr(rich, name) if name.isidentifier() else rich[name]
    if params is None:
        assert [t for _, t in kernel.params] == {"made_c": ["double"], "made_float": ["float *", "int"], "made_int": ["int *", "int"]}[name]
    else:
        got = ", ".join(f"{n}: {t}" for n, t in kernel.params)
        unsigned = got.replace("enum (unsigned int)", "enum (int)")  # what an enum without a type is, is the compiler's
        assert unsigned == params
        assert kernel.signature.startswith(f"{kernel.name}({got})"), kernel.signature


def test_parameters_without_names_are_numbered_or_typed(rich):
    assert [t for _, t in rich.unnamed.params] == ["int", "float *"], rich.unnamed.params
    assert all(n for n, _ in rich.unnamed.params), rich.unnamed.params


def test_a_function_pointer_is_a_parameter(rich):
    assert [n for n, _ in rich.multi.params][:2] == ["a", "b"] and len(rich.multi.params) == 3, rich.multi.params


def test_template_instances_are_made_when_asked_for(rich):
    assert rich["scale<float, 4>"].params == (("x", "float *"), ("n", "int"))
    assert rich["scale<double,2>"].params[0] == ("x", "double *")
    assert rich["scale<float, 4>"] is rich["scale<float, 4>"]
    assert [t for _, t in rich["fill<int>"].params] == ["int *", "box<int>"]
    with pytest.raises(jitney.CompileError) as caught:
        rich["scale<nonsense, 4>"]
    assert "nonsense" in str(caught.value), str(caught.value)


@pytest.mark.parametrize("absent", ["dead", "commented", "quoted", "nothing_like_it", "over"])
def test_what_is_no_kernel_is_not_there_and_the_error_lists_what_is(rich, absent):
    assert not hasattr(rich, absent)
    with pytest.raises(jitney.NotFoundError) as caught:
        rich[absent]
    assert absent in str(caught.value) and "scalars" in str(caught.value), str(caught.value)


def test_dir_and_repr_help(rich):
    assert {"scalars", "plain", "none"} <= set(dir(rich))
    assert "scalars(b: bool" in repr(rich.scalars), repr(rich.scalars)


def test_kernels_of_a_list_keep_the_names_of_their_parameters(nvrtc):
    mod = kernels(["__global__ void a(int *p) {}", "__global__ void b(int n) {}"], "list_names")
    assert (mod.a.params, mod.b.params) == ((("p", "int *"),), (("n", "int"),))


def test_a_kernel_with_the_name_of_a_device_function_harms_no_other(nvrtc):
    mod = kernels("""
        struct point { int a; };
        __device__ int same(int a) { return a; }
        __global__ void same(float *p) {}
        __global__ void take(point p) {}""", "ambiguous")
    assert mod.take.params == (("p", "point"),)
    assert [t for _, t in mod.same.params] == ["float *"]


def test_several_cuda_sources_are_one_text(nvrtc):
    mod = kernels(["__device__ int helper() { return 3; }", "__global__ void a(int *p) { *p = helper(); }", "__global__ void b(int n) {}"], "several")
    assert [t for k in (mod.a, mod.b) for _, t in k.params] == ["int *", "int"]


def test_a_kernel_may_be_named_in_functions(nvrtc):
    assert kernels("__global__ void a(int *p) {}", "named", functions=["a"]).a.params == (("p", "int *"),)


def test_kernels_and_ops_in_one_module(nvrtc):
    mod = jitney.load_inline("mixed", cpp_sources="int f() { return 4; }", cuda_sources="__global__ void k(int n) {}", functions=["f"], arch=ARCH)
    assert mod.f() == 4 and mod.k.params == (("n", "int"),)


def test_headers_by_include_path_and_defines(nvrtc, tmp_path):
    (tmp_path / "types.cuh").write_text("#pragma once\n#include \"more.cuh\"\n")
    (tmp_path / "more.cuh").write_text("#pragma once\ntypedef SCALAR scalar;\n")
    source = "#include <types.cuh>\n__global__ void k(scalar *x) {}"
    for given in (["SCALAR=double"], {"SCALAR": "double"}):
        assert kernels(source, "headers", extra_include_paths=[tmp_path], defines=given).k.params == (("x", "double *"),)
    assert kernels(source, "headers", extra_include_paths=[str(tmp_path)], extra_cuda_cflags="-DSCALAR=short").k.params == (("x", "short *"),)


@pytest.mark.parametrize("header", ["cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cooperative_groups.h", "cuda/std/type_traits",
                                    "cub/block/block_reduce.cuh", "mma.h", "cuda_runtime.h", "stdint.h", "cuda.h", "math_constants.h", "cstdint",
                                    "cuda_pipeline.h", "cuda/barrier", "stdio.h", "assert.h", "math.h"])
def test_headers_of_the_toolkit_are_found(nvrtc, header):
    if header == "mma.h" and not any((pathlib.Path(p) / "nvidia/cu13/include/crt/mma.h").exists() for p in sys.path):
        lacking("crt/mma.h is in a package that is not here: nvidia-cuda-crt")
    assert kernels(f"#include <{header}>\n__global__ void k(int n) {{}}", "toolkit").k.params == (("n", "int"),)


@pytest.mark.parametrize("macros", [{"N": 7}, {"A": 1}, {"BLOCK_SIZE": 128}], ids=str)
def test_a_users_macro_does_not_meet_the_type_probe(nvrtc, macros):
    (macro,) = macros
    mod = kernels("__global__ void k(int n) { (void)sizeof(%s); }" % macro, "macros", defines=macros)
    assert [t for _, t in mod.k.params] == ["int"], mod.k.params


# ---- flags as people write them ----

@pytest.mark.parametrize("flags", [
    "-O3", "--use_fast_math", "-use_fast_math", "-Xptxas -O3", "-Xptxas=-O3", "--ptxas-options=-v", "-Xptxas=-v", "", [],
    ["-gencode=arch=compute_90,code=sm_90"], ["-gencode", "arch=compute_90,code=sm_90"], "-O3 -Xptxas -O3 -Xcompiler -O3",
    ["--fmad", "false"], ["--fmad=false"], "-lineinfo", "--generate-line-info", "-DX=1", ["-D", "X=1"], "-std=c++17", "--std=c++17",
    ["-std=c++20"], "-maxrregcount=64", "--maxrregcount=64", ["-maxrregcount", "64"], "-U__CUDA_NO_HALF_OPERATORS__",
    ["-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__", "-U__CUDA_NO_HALF2_OPERATORS__"], "--expt-relaxed-constexpr",
    ["--expt-extended-lambda", "--expt-relaxed-constexpr"],
    '-Xcompiler "-fopenmp -O3"', "-allow-unsupported-compiler", "--compiler-options '-fPIC'", "-ftz=true -prec-div=false -prec-sqrt=false",
    "--extra-device-vectorization", "-O3 ", "  ", ["", "-O3"], "-g", "--resource-usage", "-Wno-deprecated-gpu-targets", "-diag-suppress 177",
    "-arch=sm_90", "-arch sm_90", "--gpu-architecture=sm_90", "-res-usage", "-DNDEBUG", "-I/tmp", "-Xptxas -warn-spills,-v", "--default-stream per-thread",
    "-rdc=false", "-ccbin g++", "-Xcompiler -fno-strict-aliasing -lineinfo", "-lcudart", "-Xcudafe --diag_suppress=177",
], ids=repr)
def test_flags_that_people_write_are_taken(nvrtc, flags):
    assert kernels("__global__ void k(int n) {}", "flags", extra_cuda_cflags=flags).k.params == (("n", "int"),)


@pytest.mark.parametrize("wrong, nearest", [("--use_fast_maths", "use_fast_math"), ("-maxregcount=64", "maxrregcount"), ("--fmadd=false", "fmad"),
                                            ("-line-info", "lineinfo")])
def test_an_unknown_flag_is_an_error_that_names_the_nearest(nvrtc, wrong, nearest):
    with pytest.raises(jitney.ArgumentError) as caught:
        kernels("__global__ void k(int n) {}", "flags", extra_cuda_cflags=["-O3", wrong])
    assert wrong.split("=")[0] in str(caught.value) and nearest in str(caught.value), str(caught.value)


@pytest.mark.parametrize("arch", ["sm_90", "90", "9.0", "sm_90a", "sm_80", "compute_90", 90])
def test_arch_has_many_spellings(nvrtc, arch):
    assert kernels("__global__ void k(int n) {}", "archs", arch=arch).k.params == (("n", "int"),)


# ---- errors before a launch, which need no GPU ----

@pytest.mark.parametrize("arguments, words", [
    ((1.0, None, None), ("axpy", "4", "3")), ((1.0, None, None, 1, 2), ("axpy", "4", "5")),
    (("1", None, None, 1), ("axpy", "argument 1", "a", "float", "str")), ((1.0, None, None, 1.5), ("argument 4", "n", "int")),
    ((1.0, None, None, 2**31), ("argument 4", "n", "int")), ((1.0, "x", None, 1), ("argument 2", "x", "const float *")),
    ((1.0, None, numpy.zeros(3, numpy.float32), 1), ("argument 3", "y", "GPU")), ((1.0, None, object(), 1), ("argument 3", "y", "object")),
], ids=repr)
def test_a_wrong_argument_is_named_before_the_launch(nvrtc, arguments, words):
    mod = kernels(AXPY, "axpy_only")
    for call in (mod.axpy[1, 32], lambda *a: mod.axpy(*a, grid=1, block=32), lambda *a: mod.axpy(grid=1, block=32, args=list(a)), mod.axpy[0, 32]):
        with pytest.raises(jitney.ArgumentError) as caught:
            call(*arguments)
        assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("config", [("a", 32), (-1, 32), ((1, 2, 3, 4), 32), (1.5, 32), ((), 32), (2**40, 1), (1, 32, "s"), (1, 32, -1), (1,), (None, 1)],
                         ids=repr)
def test_a_wrong_configuration_is_an_argument_error(nvrtc, config):
    mod = kernels(AXPY, "axpy_only")
    with pytest.raises(jitney.ArgumentError) as caught:
        mod.axpy[config]
    assert "axpy" in str(caught.value), str(caught.value)


def test_a_call_without_grid_or_with_unknown_keywords_says_so(nvrtc):
    mod = kernels(AXPY, "axpy_only")
    for options, word in (({}, "grid"), ({"grid": 1}, "block"), ({"grid": 1, "block": 1, "gird": 2}, "gird")):
        with pytest.raises(jitney.ArgumentError) as caught:
            mod.axpy(1.0, None, None, 1, **options)
        assert word in str(caught.value), str(caught.value)


def test_an_empty_grid_launches_nothing(nvrtc):
    mod = kernels(AXPY, "axpy_only")
    assert mod.axpy[0, 32](1.0, None, None, 1) is None
    assert mod.axpy[(0, 1), 32](1.0, None, None, 1) is None


# ---- launches ----

AXPY = """
__global__ void axpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""

ON_GPU = AXPY + """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
struct point { float x, y; int tag; };
__constant__ float factors[4];
__device__ int counter;
template <class T, int N> __global__ void scale(T *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= N;
}
__global__ void use_factors(float *out) { out[threadIdx.x] = factors[threadIdx.x]; }
__global__ void ordinal(int *out) { out[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = blockDim.x * 100 + blockDim.y * 10 + blockDim.z; }
__global__ void big_shared(int *out, int n) {
  extern __shared__ int s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) { long sum = 0; for (int i = 0; i < n; i++) sum += s[i]; out[0] = (int)sum; }
}
__global__ void take(point p, float *out) { out[0] = p.x; out[1] = p.y; out[2] = p.tag; }
__global__ void scalars(double *out, bool b, signed char c, unsigned long long u, __half h, __nv_bfloat16 f, double d) {
  out[0] = b; out[1] = c; out[2] = (double)(u >> 32); out[3] = __half2float(h); out[4] = __bfloat162float(f); out[5] = d;
}
__global__ void address(const void *p, unsigned long long *out) { *out = (unsigned long long)p; }
__global__ void slow(float *x, long long cycles) { long long t = clock64(); while (clock64() - t < cycles); x[0] += 1; }
"""


@pytest.fixture(scope="module")
def on_gpu(gpu):
    return jitney.load_inline("on_gpu", cuda_sources=ON_GPU)


@pytest.fixture
def xy(gpu):
    n = 1000
    return gpu.arange(n, device="cuda", dtype=gpu.float32), gpu.ones(n, device="cuda"), n


FORMS = {
    "subscript": lambda k, grid, block, args: k[grid, block](*args),
    "keywords": lambda k, grid, block, args: k(*args, grid=grid, block=block),
    "args": lambda k, grid, block, args: k(grid=grid, block=block, args=args),
    "bound": lambda k, grid, block, args: (lambda f: f(*args))(k[grid, block]),
    "shared": lambda k, grid, block, args: k[grid, block, 0](*args),
    "tuples": lambda k, grid, block, args: k[(grid, 1), (block, 1, 1)](*args),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_launch_in_every_form(on_gpu, xy, form):
    x, y, n = xy
    assert FORMS[form](on_gpu.axpy, 4, 256, [2.0, x, y, n]) is None
    assert (y == 1 + 2 * x).all(), y


def test_cupy_arrays_are_arguments(on_gpu, cupy):
    x, y = cupy.arange(100, dtype=cupy.float32), cupy.ones(100, dtype=cupy.float32)
    on_gpu.axpy[1, 128](2.0, x, y, 100)
    assert bool((y == 1 + 2 * x).all())
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        on_gpu.axpy[1, 128](2.0, x, y, 100)
    on_gpu.axpy[1, 128, 0, stream](2.0, x, y, 100)
    stream.synchronize()
    assert bool((y == 1 + 6 * x).all())


def test_torch_and_cupy_in_one_call(on_gpu, cupy, gpu):
    x, y = cupy.arange(100, dtype=cupy.float32), gpu.ones(100, device="cuda")
    on_gpu.axpy[1, 128](2.0, x, y, 100)
    jitney.synchronize()
    assert y.tolist() == [1 + 2 * i for i in range(100)]


def test_the_current_stream_and_a_given_one_are_used(on_gpu, gpu):
    a, b = gpu.cuda.Stream(), gpu.cuda.Stream()
    x = gpu.zeros(1, device="cuda")
    gpu.cuda.synchronize()
    with gpu.cuda.stream(a):
        on_gpu.slow[1, 1](x, 200_000_000)
    assert not a.query(), "the launch did not go to the current stream"
    a.synchronize()
    on_gpu.slow[1, 1, 0, b](x, 200_000_000)
    assert not b.query(), "the launch did not go to the given stream"
    b.synchronize()
    on_gpu.slow(x, 0, grid=1, block=1, stream=b.cuda_stream)
    gpu.cuda.synchronize()
    assert x.item() == 3


def test_the_launch_goes_to_the_tensors_device(on_gpu, gpu):
    if gpu.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    x, y = gpu.ones(10, device="cuda:1"), gpu.ones(10, device="cuda:1")
    on_gpu.axpy[1, 32](2.0, x, y, 10)
    gpu.cuda.synchronize(1)
    assert (y == 3).all() and gpu.cuda.current_device() == 0
    with pytest.raises(jitney.ArgumentError) as caught:
        on_gpu.axpy[1, 32](2.0, x, gpu.ones(10, device="cuda:0"), 10)
    assert "y" in str(caught.value), str(caught.value)


def test_template_instances_launch(on_gpu, gpu):
    x = gpu.ones(10, device="cuda")
    on_gpu["scale<float, 4>"][1, 32](x, 10)
    assert (x == 4).all()
    d = gpu.ones(10, device="cuda", dtype=gpu.float64)
    on_gpu["scale<double, 3>"][1, 32](d, 10)
    assert (d == 3).all()


def test_a_constant_is_set_through_its_address(on_gpu, gpu, cupy):
    address, size = on_gpu.get_global("factors")
    assert size == 16
    values = numpy.array([1, 2, 3, 4], numpy.float32)
    cupy.cuda.runtime.memcpy(address, values.ctypes.data, size, cupy.cuda.runtime.memcpyHostToDevice)
    out = gpu.zeros(4, device="cuda")
    on_gpu.use_factors[1, 4](out)
    assert out.tolist() == [1, 2, 3, 4]
    with pytest.raises(jitney.NotFoundError) as caught:
        on_gpu.get_global("absent")
    assert "absent" in str(caught.value)


def test_attributes_of_a_kernel(on_gpu):
    attributes = on_gpu.axpy.attributes
    assert attributes["registers"] > 0 and attributes["max_threads_per_block"] >= 32, attributes


def test_grids_and_blocks_of_three_dimensions(on_gpu, gpu):
    out = gpu.zeros(24, device="cuda", dtype=gpu.int32)
    on_gpu.ordinal[(4, 3, 2), (2, 3, 4)](out)
    assert (out == 234).all(), out


def test_more_than_48_kb_of_shared_memory(on_gpu, gpu):
    out = gpu.zeros(1, device="cuda", dtype=gpu.int32)
    n = 90 * 1024 // 4
    on_gpu.big_shared[1, 256, 4 * n](out, n)
    assert out.item() == n * (n - 1) // 2
    with pytest.raises((jitney.DeviceError, jitney.ArgumentError)) as caught:
        on_gpu.big_shared[1, 256, 10**7](out, n)
    assert "big_shared" in str(caught.value) and "shared" in str(caught.value), str(caught.value)


def test_structs_by_value(on_gpu, gpu):
    import ctypes

    class Point(ctypes.Structure):
        _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_float), ("tag", ctypes.c_int)]

    record = numpy.array([(1.5, 2.5, 7)], [("x", "f4"), ("y", "f4"), ("tag", "i4")])[0]
    for value in (Point(1.5, 2.5, 7), record, bytes(Point(1.5, 2.5, 7))):
        out = gpu.zeros(3, device="cuda")
        on_gpu.take[1, 1](value, out)
        assert out.tolist() == [1.5, 2.5, 7.0], value
    with pytest.raises(jitney.ArgumentError) as caught:
        on_gpu.take[1, 1](b"short", out)
    assert "p" in str(caught.value) and "12" in str(caught.value), str(caught.value)


def test_scalars_arrive_as_they_were_given(on_gpu, gpu):
    out = gpu.zeros(6, device="cuda", dtype=gpu.float64)
    on_gpu.scalars[1, 1](out, True, -128, 2**64 - 1, 0.5, -2.0, 0.1)
    assert out.tolist() == [1, -128, 2**32 - 1, 0.5, -2.0, 0.1]
    on_gpu.scalars[1, 1](out, numpy.bool_(False), numpy.int8(5), numpy.uint64(2**40), numpy.float16(1.5), 3, numpy.float32(0.5))
    assert out.tolist() == [0, 5, 2**8, 1.5, 3.0, 0.5]


def test_pointers_take_none_addresses_and_anything_for_void(on_gpu, gpu):
    out = gpu.zeros(1, device="cuda", dtype=gpu.uint64)
    x = gpu.zeros(3, device="cuda", dtype=gpu.int16)
    for given, want in ((None, 0), (12345, 12345), (x, x.data_ptr()), (x[1:], x.data_ptr() + 2)):
        on_gpu.address[1, 1](given, out)
        assert out.item() == want


@pytest.mark.parametrize("wrong", ["dtype", "device", "strided", "count", "range"])
def test_nothing_is_launched_with_a_wrong_argument(on_gpu, xy, gpu, wrong):
    x, y, n = xy
    arguments = {"dtype": (2.0, x.double(), y, n), "device": (2.0, x.cpu(), y, n), "strided": (2.0, gpu.ones(2 * n, device="cuda")[::2], y, n),
                 "count": (2.0, x, y), "range": (2.0, x, y, 2**40)}[wrong]
    with pytest.raises(jitney.ArgumentError) as caught:
        on_gpu.axpy[4, 256](*arguments)
    assert "axpy" in str(caught.value) and (wrong == "count" or ("n" if wrong == "range" else "x") in str(caught.value)), str(caught.value)
    assert (y == 1).all(), y


def test_a_cooperative_launch_waits_for_all_blocks(gpu):
    mod = jitney.load_inline("cooperative", cuda_sources="#include <cooperative_groups.h>\n" + """
__global__ void all_blocks(int *out) {
  cooperative_groups::grid_group g = cooperative_groups::this_grid();
  if (threadIdx.x == 0) atomicAdd(out, 1);
  g.sync();
  if (g.thread_rank() == 0) out[1] = out[0];
}
""")
    out = gpu.zeros(2, device="cuda", dtype=gpu.int32)
    mod.all_blocks(out, grid=8, block=64, cooperative=True)
    assert out.tolist() == [8, 8]


def test_a_launch_can_be_captured_into_a_graph(on_gpu, xy, gpu):
    x, y, n = xy
    graph = gpu.cuda.CUDAGraph()
    gpu.cuda.synchronize()
    with gpu.cuda.graph(graph):
        on_gpu.axpy[4, 256](2.0, x, y, n)
    assert (y == 1).all(), "the launch ran while it was captured"
    for _ in range(3):
        graph.replay()
    assert (y == 1 + 6 * x).all(), y


def test_a_launch_that_the_driver_refuses_names_the_kernel(on_gpu, xy):
    x, y, n = xy
    with pytest.raises((jitney.DeviceError, jitney.ArgumentError)) as caught:
        on_gpu.axpy[1, 4096](2.0, x, y, n)
    assert "axpy" in str(caught.value), str(caught.value)
    on_gpu.axpy[4, 256](2.0, x, y, n)
    assert (y == 1 + 2 * x).all(), "a refused launch did harm"


def test_a_kernel_that_faults_is_named_by_synchronize(gpu, child):
    done = child("""
        import jitney, torch
        m = jitney.load_inline("faults", cuda_sources="__global__ void faults(int *p) { *p = 1; }")
        x = torch.zeros(1, device="cuda")
        m.faults[1, 1](8)
        try:
            jitney.synchronize()
        except jitney.DeviceError as error:
            print(error)
        """)
    assert "faults" in done.out, done


def test_an_op_takes_and_makes_tensors_of_the_gpu(gpu):
    mod = jitney.load_inline("gpu_op", functions=["twin", "where"], cpp_sources="""
        torch::Tensor twin(torch::Tensor x) { TORCH_CHECK(x.is_cuda()); return torch::zeros_like(x); }
        std::string where(torch::Tensor x) { return x.device().str(); }""")
    x = gpu.ones(3, device="cuda")
    y = mod.twin(x)
    assert y.device == x.device and y.tolist() == [0, 0, 0] and mod.where(x) == "cuda:0"
