"""What a user reads when something is wrong: the place, the reason, the way out."""
import inspect
import textwrap

import pytest

import jitney
from jitney.cpp_extension import load, load_inline


def refused(call, *args, **options):
    with pytest.raises(jitney.CompileError) as caught:
        call(*args, **options)
    return caught.value


def first_error(error):
    return next(d for d in error.diagnostics if d.severity == "error")


def assert_at(diagnostic, file, line, column=None):
    assert (diagnostic.file, diagnostic.line) == (str(file), line), repr(diagnostic)
    if column is not None:
        assert diagnostic.column == column, repr(diagnostic)


# ---- compile errors ----

def test_inline_cpp_errors_stand_at_the_users_line():
    source = "int f() {\n  return nonsense;\n}\n"
    error = refused(load_inline, "broken", cpp_sources=source, functions=["f"])
    found = first_error(error)
    assert_at(found, "broken.cpp", 2, 10)
    assert "nonsense" in found.message, found.message
    assert "broken.cpp:2:10" in str(error), str(error)
    assert "nonsense" in error.log


def test_inline_cpp_errors_show_the_users_line():
    found = first_error(refused(load_inline, "broken", cpp_sources="int f() {\n  return nonsense;\n}\n", functions=["f"]))
    line, caret = found.excerpt.split("\n")[:2]
    assert "return nonsense;" in line and "^" in caret, found.excerpt
    assert line.index("nonsense") == caret.index("^"), found.excerpt


def test_cpp_errors_in_files_show_the_users_line(tmp_path):
    (tmp_path / "user.cpp").write_text("#include <torch/extension.h>\nint f() {\n  return nonsense;\n}\n")
    found = first_error(refused(load, "shown", tmp_path / "user.cpp", functions=["f"]))
    line, caret = found.excerpt.split("\n")[:2]
    assert line.index("nonsense") == caret.index("^"), found.excerpt


def test_inline_cuda_errors_stand_at_the_users_line(nvrtc):
    source = "\n".join(["// a kernel", "__global__ void axpy(float a, const float *x, float *y, int n) {",
                        "  int i = blockIdx.x * blockDim.x + threadIdx.x;", "  if (i < n)", "    y[i] += a * x[i];",
                        "  // and now", "      nonsense = 1;", "}"])
    error = refused(load_inline, "axpy", cuda_sources=source, arch="sm_90")
    found = first_error(error)
    assert_at(found, "axpy.cu", 7)
    assert "nonsense" in found.message, found.message
    assert "nonsense = 1;" in found.excerpt, found.excerpt
    assert "axpy.cu:7" in str(error), str(error)


def test_a_cuda_error_has_its_column(nvrtc):
    error = refused(load_inline, "axpy", cuda_sources="__global__ void k() {\n      nonsense = 1;\n}", arch="sm_90")
    found = first_error(error)
    assert_at(found, "axpy.cu", 2, 7)
    line, caret = found.excerpt.split("\n")[:2]
    assert line.index("nonsense") == caret.index("^"), found.excerpt


def test_errors_in_files_and_headers_name_them(tmp_path):
    (tmp_path / "bad.h").write_text("\n\nint h() { return undefined_in_header; }\n")
    (tmp_path / "user.cpp").write_text('#include "bad.h"\n#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n')
    found = first_error(refused(load, "in_header", tmp_path / "user.cpp"))
    assert found.file.endswith("bad.h") and found.line == 3, repr(found)


def test_a_source_is_named_as_it_was_given(tmp_path):
    (tmp_path / "user.cpp").write_text("int x;\nint y = undefined_in_file;\n")
    assert_at(first_error(refused(load, "in_file", tmp_path / "user.cpp", functions=["f"])), tmp_path / "user.cpp", 2, 9)


def test_a_relative_source_is_named_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user.cpp").write_text("int y = undefined_in_file;\n")
    assert_at(first_error(refused(load, "in_file", "user.cpp", functions=["f"])), "user.cpp", 1, 9)


def test_errors_in_cuda_files_and_headers_name_them(tmp_path, nvrtc):
    (tmp_path / "bad.cuh").write_text("\n__device__ int h() { return undefined_in_header; }\n")
    (tmp_path / "user.cu").write_text('#include "bad.cuh"\n__global__ void k(int *p) { *p = h(); }\n')
    found = first_error(refused(load, "cuda_header", tmp_path / "user.cu", arch="sm_90"))
    assert found.file.endswith("bad.cuh") and found.line == 2, repr(found)
    (tmp_path / "bad.cuh").write_text("__device__ int h() { return 1; }\n")
    (tmp_path / "user.cu").write_text('#include "bad.cuh"\n__global__ void k(int *p) { *p = g(); }\n')
    found = first_error(refused(load, "cuda_file", tmp_path / "user.cu", arch="sm_90"))
    assert found.file.endswith("user.cu") and found.line == 2, repr(found)


@pytest.mark.parametrize("second", ["int g() { return 1; }\nint h() { return oops; }", "\n\nint g() { return oops; }"])
def test_pieces_of_a_list_keep_their_names_and_lines(second):
    error = refused(load_inline, "pieces", cpp_sources=["int f() { return 1; }\n", second], functions=["f"])
    assert_at(first_error(error), "pieces_1.cpp", 1 + second[:second.index("oops")].count("\n"))
    error = refused(load_inline, "pieces", cpp_sources=["int f() { return oops; }\n", "int g() { return 1; }"], functions=["f"])
    assert_at(first_error(error), "pieces.cpp", 1)


def test_pieces_of_a_cuda_list_keep_their_names_and_lines(nvrtc):
    error = refused(load_inline, "pieces", cuda_sources=["__global__ void f() {}", "\n__global__ void g() { oops; }"], arch="sm_90")
    assert_at(first_error(error), "pieces_1.cu", 2)


def test_all_errors_are_listed():
    error = refused(load_inline, "many", cpp_sources="int a = one;\nint b = two;\nint c = three;\n", functions=["f"])
    assert [d.line for d in error.diagnostics if d.severity == "error"][:3] == [1, 2, 3], error.diagnostics


def test_a_compile_error_can_be_pickled():
    import pickle
    error = refused(load_inline, "broken", cpp_sources="int a = one;", functions=["f"])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.log == error.log and again.diagnostics[0].line == 1


def test_the_way_out_that_a_compile_error_names_is_there():
    error = refused(load_inline, "absent_op", cpp_sources="torch::Tensor f(torch::Tensor x) { return torch::sigmoid(x); }", functions=["f"])
    assert "headers=" not in str(error) or "headers" in inspect.signature(load_inline).parameters, str(error)


def test_an_undefined_function_is_an_error_of_the_build_not_a_crash():
    with pytest.raises(jitney.JitneyError) as caught:
        load_inline("unlinked", cpp_sources="int absent(int);\nint f() { return absent(1); }", functions=["f"])
    assert "absent" in str(caught.value), str(caught.value)


# ---- what is missing ----

CPP = """
import jitney
try:
    jitney.load_inline("m", cpp_sources="int f() { return 1; }", functions=["f"])
except jitney.JitneyError as error:
    print(type(error).__name__, error)
"""
CUDA = """
import jitney
try:
    jitney.load_inline("m", cuda_sources="__global__ void k(int n) {}"%s)
except jitney.JitneyError as error:
    print(type(error).__name__, error)
"""


def assert_says(done, *parts):
    assert all(part in done.out for part in parts), done


def test_a_missing_compiler_says_which_and_what_to_do(child):
    assert_says(child(CPP, env={"JITNEY_CXX": "/nonexistent"}), "ToolError", "/nonexistent", "JITNEY_CXX")


def test_no_compiler_at_all_says_where_was_looked_and_what_to_install(child, no_compiler):
    assert_says(child(CPP, env={**no_compiler, "JITNEY_CXX": None, "CXX": None}), "ToolError", no_compiler["PATH"], "install", "JITNEY_CXX")


def test_missing_nvrtc_says_where_was_looked_and_what_to_install(child):
    done = child(CUDA % ', arch="sm_90"', env={"JITNEY_NVRTC": "/nonexistent"})
    assert_says(done, "ToolError", "/nonexistent", "JITNEY_NVRTC", "pip install")


def test_no_gpu_and_no_arch_says_how_to_name_one(child, nvrtc):
    done = child(CUDA % "", env={"JITNEY_LIBCUDA": "/nonexistent"})
    assert_says(done, "DeviceError", "arch", "JITNEY_ARCH")


def test_an_arch_in_the_environment_is_enough(child, nvrtc):
    assert child(CUDA % "", env={"JITNEY_LIBCUDA": "/nonexistent", "JITNEY_ARCH": "sm_90"}).out == ""
    assert child(CUDA % "", env={"JITNEY_LIBCUDA": "/nonexistent", "TORCH_CUDA_ARCH_LIST": "9.0;8.0"}).out == ""


@pytest.mark.parametrize("arch", ["sm_1", "sm_9999", "ampere", []], ids=repr)
def test_an_arch_that_is_none_is_named(arch, nvrtc):
    with pytest.raises(jitney.JitneyError) as caught:
        load_inline("bad_arch", cuda_sources="__global__ void k() {}", arch=arch)
    assert str(arch) in str(caught.value) and "arch" in str(caught.value), str(caught.value)


def test_launching_without_a_gpu_says_so(child, nvrtc):
    done = child("""
        import jitney
        m = jitney.load_inline("m", cuda_sources="__global__ void k(int n) {}", arch="sm_90")
        try:
            m.k[1, 1](3)
        except jitney.DeviceError as error:
            print(error)
        print(jitney.gpu_available())
        """, env={"JITNEY_LIBCUDA": "/nonexistent"})
    assert_says(done, "/nonexistent", "GPU", "False")


def test_a_missing_header_is_named():
    found = first_error(refused(load_inline, "no_header", cpp_sources='\n#include "absent_header.h"\n', functions=["f"]))
    assert_at(found, "no_header.cpp", 2)
    assert "absent_header.h" in found.message


def test_a_missing_cuda_header_says_where_was_looked(tmp_path, nvrtc):
    error = refused(load_inline, "no_header", cuda_sources='\n#include "absent_header.cuh"\n__global__ void k() {}', arch="sm_90",
                    extra_include_paths=[str(tmp_path)])
    assert_at(first_error(error), "no_header.cu", 2)
    assert "absent_header.cuh" in str(error) and str(tmp_path) in str(error), str(error)


def test_a_missing_source_file_is_named(tmp_path):
    with pytest.raises(jitney.NotFoundError) as caught:
        load("absent", tmp_path / "absent.cpp")
    assert str(tmp_path / "absent.cpp") in str(caught.value), str(caught.value)


def test_kernels_and_host_code_in_one_text_say_the_line_and_the_way_around(nvrtc):
    with pytest.raises(jitney.UnsupportedError) as caught:
        load_inline("both", arch="sm_90", cuda_sources="__global__ void k() {}\n\nvoid launch() { k<<<1, 1>>>(); }\n")
    assert "both.cu" in str(caught.value) and "line 3" in str(caught.value), str(caught.value)


# ---- parameters ----

@pytest.mark.parametrize("parameter, value", [
    ("cpp_sources", 3), ("cpp_sources", [b"int f();"]), ("cuda_sources", object()), ("functions", 3), ("functions", [1]),
    ("functions", {"f": 1}), ("extra_cflags", 3), ("extra_cflags", [1]), ("extra_cuda_cflags", [None]), ("extra_ldflags", {"-l"}),
    ("extra_include_paths", 3), ("extra_include_paths", [3]), ("defines", 3), ("target", 3),
    ("build_directory", 3), ("build_directory", "/nonexistent/folder"), ("name", 3), ("name", None), ("name", "not-an-identifier"),
    ("name", ""), ("name", "2nd"), ("name", "a/b"),
], ids=str)
def test_a_bad_parameter_is_named(parameter, value):
    arguments = dict(name="parameters", cpp_sources="int f() { return 1; }", functions=["f"])
    arguments[parameter] = value
    with pytest.raises(jitney.ArgumentError) as caught:
        load_inline(**arguments)
    assert parameter in str(caught.value), str(caught.value)


@pytest.mark.parametrize("sources", [3, [3], None, []], ids=str)
def test_bad_sources_are_named(sources):
    with pytest.raises(jitney.ArgumentError) as caught:
        load("sources_wrong", sources)
    assert "sources" in str(caught.value), str(caught.value)


@pytest.mark.parametrize("text", ["", [], ["", "  "], None], ids=repr)
def test_no_source_at_all_is_said(text):
    with pytest.raises(jitney.ArgumentError) as caught:
        load_inline("empty", cpp_sources=text)
    assert "source" in str(caught.value), str(caught.value)


def test_a_source_with_a_null_byte_or_odd_characters_is_no_crash():
    with pytest.raises(jitney.JitneyError):
        load_inline("null", cpp_sources="int f() { return 1; }\0 garbage", functions=["f\0g"])
    assert load_inline("odd", cpp_sources="// ü \udcff \U0001f600\nint f() { return 1; }", functions=["f"]).f() == 1


def test_the_callers_lists_are_never_changed(tmp_path):
    (tmp_path / "f.cpp").write_text("int f() { return 1; }")
    lists = dict(functions=["f"], extra_cflags=["-O1 -g0"], extra_cuda_cflags=["-O3"], extra_ldflags=["-lm"],
                 extra_include_paths=[str(tmp_path)], defines=["ONE=1"])
    sources, texts = [tmp_path / "f.cpp"], ["int f() { return 1; }"]
    before = {k: list(v) for k, v in lists.items()}
    load("unchanged", sources, **lists)
    load_inline("unchanged", texts, **lists)
    assert lists == before and sources == [tmp_path / "f.cpp"] and texts == ["int f() { return 1; }"]


def test_flags_given_as_one_string_are_several():
    mod = load_inline("one_string", cpp_sources="int f() { return ONE + TWO; }", functions="f", extra_cflags="-DONE=1 -DTWO='2'")
    assert mod.f() == 3


@pytest.mark.parametrize("macro", ["BLOCK_SIZE", "DEBUG", "K", "WARPS"])
def test_a_users_macro_does_not_meet_jitneys_headers(macro):
    mod = load_inline("macros", cpp_sources=f"int f() {{ return {macro}; }}", functions="f", defines={macro: 7})
    assert mod.f() == 7


TORCHS_LOAD = ["name", "sources", "extra_cflags", "extra_cuda_cflags", "extra_sycl_cflags", "extra_ldflags", "extra_include_paths",
               "build_directory", "verbose", "with_cuda", "with_sycl", "is_python_module", "is_standalone", "keep_intermediates"]
TORCHS_LOAD_INLINE = ["name", "cpp_sources", "cuda_sources", "sycl_sources", "functions", "extra_cflags", "extra_cuda_cflags",
                      "extra_sycl_cflags", "extra_ldflags", "extra_include_paths", "build_directory", "verbose", "with_cuda", "with_sycl",
                      "is_python_module", "with_pytorch_error_handling", "keep_intermediates", "use_pch", "no_implicit_headers"]


@pytest.mark.parametrize("function, torchs", [(load, TORCHS_LOAD), (load_inline, TORCHS_LOAD_INLINE)])
def test_positional_parameters_are_torchs(function, torchs):
    parameters = inspect.signature(function).parameters.values()
    assert [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD] == torchs


def test_positional_parameters_are_those_of_the_torch_that_is_here(child, torch):
    done = child("""
        import inspect, torch.utils.cpp_extension as theirs, jitney.cpp_extension as ours
        for name in ("load", "load_inline"):
            a, b = inspect.signature(getattr(theirs, name)).parameters, inspect.signature(getattr(ours, name)).parameters
            for p, q in zip(a.values(), b.values()):
                assert p.name == q.name and (p.default is p.empty or p.default is q.default or p.default == q.default or not p.default and not q.default), (name, p, q)
        """)
    assert done.out == ""


def test_the_doctor_says_what_it_found(child):
    done = child.attempt("import runpy, sys; sys.argv = ['jitney', 'doctor']; runpy.run_module('jitney', run_name='__main__')")
    for part in ("jitney", "cache:", "host compiler: works", "NVRTC:", "GPU:"):
        assert part in done.out, done


def test_errors_are_also_pythons_own_kinds():
    for kind, also in ((jitney.ArgumentError, TypeError), (jitney.NotFoundError, LookupError), (jitney.UnsupportedError, NotImplementedError)):
        assert issubclass(kind, also) and issubclass(kind, jitney.JitneyError)


def test_kernels_for_the_host_are_refused_not_compiled_for_the_gpu(nvrtc, monkeypatch):
    source = "__global__ void k(int n) {}"
    for refused_call in (lambda: load_inline("host_target", cuda_sources=source, arch="sm_90", target="host"),
                         lambda: (monkeypatch.setenv("JITNEY_TARGET", "host"), load_inline("host_target", cuda_sources=source, arch="sm_90"))):
        with pytest.raises(jitney.UnsupportedError) as caught:
            refused_call()
        assert "JITNEY_TARGET" in str(caught.value), str(caught.value)
