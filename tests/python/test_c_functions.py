"""Plain C functions, made callable by a prototype in functions=."""
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney

DOT = "float dot(const float *a, const float *b, int n)"
SOURCE = """
#include <string.h>
#include <stdint.h>
float dot(const float *a, const float *b, int n) { float s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }
void fill(double *out, long n, double value) { for (long i = 0; i < n; i++) out[i] = value; }
int length(const char *text) { return (int)strlen(text); }
const char *greeting(void) { return "grüß"; }
int8_t narrow(int8_t a) { return a; }
unsigned long long wide(unsigned long long a) { return a; }
double mean(double a, double b) { return (a + b) / 2; }
int is_null(const void *p) { return p == 0; }
"""
PROTOTYPES = [DOT, "void fill(double *out, long n, double value)", "int length(const char *text)", "const char *greeting(void)",
              "int8_t narrow(int8_t a)", "unsigned long long wide(unsigned long long a)", "double mean(double a, double b)",
              "int is_null(const void *p)"]


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    path = tmp_path_factory.mktemp("c") / "plain.c"
    path.write_text(SOURCE)
    return jitney.load("plain_c", path, functions=PROTOTYPES)


def test_pointers_take_numpy_arrays(c):
    a = numpy.array([1, 2, 3], numpy.float32)
    assert c.dot(a, a, 3) == 14.0
    out = numpy.zeros(4)
    assert c.fill(out, 3, 2.5) is None
    assert out.tolist() == [2.5, 2.5, 2.5, 0]


def test_pointers_take_torch_tensors_of_the_cpu(c, torch):
    a = torch.tensor([1.0, 2.0, 3.0])
    assert c.dot(a, a, 3) == 14.0
    out = torch.zeros(2, dtype=torch.float64)
    c.fill(out, 2, 1.0)
    assert out.tolist() == [1.0, 1.0]


def test_text_goes_in_and_out(c):
    assert c.length("数") == 3
    assert c.greeting() == "grüß"


def test_null_and_addresses_are_pointers(c):
    assert c.is_null(None) == 1
    a = numpy.zeros(1)
    assert c.is_null(a) == 0 and c.is_null(a.ctypes.data) == 0


@settings(max_examples=100, deadline=None)
@given(st.integers(-2**70, 2**70))
def test_a_scalar_comes_back_or_is_refused(c, value):
    for f, low, high in ((c.narrow, -128, 127), (c.wide, 0, 2**64 - 1)):
        if low <= value <= high:
            assert f(value) == value
        else:
            with pytest.raises(jitney.ArgumentError):
                f(value)


@settings(max_examples=50, deadline=None)
@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_doubles_are_doubles(c, a, b):
    assert c.mean(a, b) == (a + b) / 2


@pytest.mark.parametrize("argument, names", [
    (numpy.zeros(3), ("dot", "argument 2", "b", "float64")), (numpy.zeros(6, numpy.float32)[::2], ("dot", "b", "contiguous")),
    ("text", ("dot", "b", "str")), ([1.0], ("dot", "b")),
], ids=["dtype", "strided", "str", "list"])
def test_a_wrong_argument_is_named_before_the_call(c, argument, names):
    with pytest.raises(jitney.ArgumentError) as caught:
        c.dot(numpy.zeros(3, numpy.float32), argument, 3)
    assert all(name in str(caught.value) for name in names), str(caught.value)


def test_a_read_only_array_is_refused_where_the_function_may_write(c):
    out = numpy.zeros(2)
    out.flags.writeable = False
    with pytest.raises(jitney.ArgumentError) as caught:
        c.fill(out, 2, 1.0)
    assert "out" in str(caught.value), str(caught.value)
    assert out.tolist() == [0, 0]


def test_a_read_only_array_is_taken_where_the_pointer_is_const(c):
    a = numpy.ones(2, numpy.float32)
    a.flags.writeable = False
    assert c.dot(a, a, 2) == 2.0


def test_the_count_of_arguments_is_checked(c):
    with pytest.raises(jitney.ArgumentError) as caught:
        c.dot(numpy.zeros(1, numpy.float32))
    assert "dot" in str(caught.value) and "3" in str(caught.value), str(caught.value)


@pytest.mark.parametrize("wrong", ["double dot(const float *a, const float *b, int n)", "float dot(const double *a, const float *b, int n)",
                                   "float dot(const float *a, const float *b)"])
def test_a_prototype_that_is_not_the_definitions_is_a_compile_error(tmp_path, wrong):
    path = tmp_path / "wrong.c"
    path.write_text(SOURCE)
    with pytest.raises(jitney.CompileError) as caught:
        jitney.load("wrong_prototype", path, functions=[wrong])
    assert "dot" in str(caught.value), str(caught.value)


def test_a_prototype_works_for_inline_cpp_too():
    mod = jitney.load_inline("inline_prototype", functions=[DOT], cpp_sources=SOURCE.replace('#include <string.h>', '#include <string.h>\nextern "C" {') + "}")
    a = numpy.array([1, 2], numpy.float32)
    assert mod.dot(a, a, 2) == 5.0


@pytest.mark.parametrize("broken", ["float dot(", "dot(int)", "float (dot)", "float dot(struct unknown s)", "", "float dot(int n) {"])
def test_a_prototype_that_cannot_be_read_is_an_error_with_words(broken):
    with pytest.raises(jitney.JitneyError) as caught:
        jitney.load_inline("broken_prototype", cpp_sources='extern "C" float dot(int n) { return 1; }', functions=[broken])
    assert len(str(caught.value)) > 10, str(caught.value)
