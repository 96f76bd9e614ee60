"""C++ functions as Python builtins: types in and out, arguments by name, overloads, exceptions."""
import inspect
import math

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney

WIDTHS = {"int8_t": (-2**7, 2**7 - 1), "uint8_t": (0, 2**8 - 1), "int16_t": (-2**15, 2**15 - 1), "uint16_t": (0, 2**16 - 1),
          "int32_t": (-2**31, 2**31 - 1), "uint32_t": (0, 2**32 - 1), "int64_t": (-2**63, 2**63 - 1), "uint64_t": (0, 2**64 - 1)}

SOURCE = """
#include <torch/extension.h>
using namespace pybind11::literals;
%s
static torch::Tensor kept;
int scaled(int a, int n, float by) { return static_cast<int>(a * n * by); }
struct thing { int x; };
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "what the module is for";
  %s
  m.def("f32", [](float x) { return x; });
  m.def("f64", [](double x) { return x; });
  m.def("flag", [](bool x) { return x; });
  m.def("text", [](const std::string &x) { return x; });
  m.def("c_text", [](const char *x) { return std::string(x); });
  m.def("length", [](const std::string &x) { return x.size(); });
  m.def("nothing", [] {});
  m.def("ints", [](std::vector<int64_t> x) { return x; });
  m.def("texts", [](std::vector<std::string> x) { return x; });
  m.def("maybe", [](std::optional<int> x) { return x; });
  m.def("pair", [](std::tuple<int, std::string> x) { return x; });
  m.def("nested", [](std::vector<std::tuple<int, std::optional<std::vector<double>>>> x) { return x; });
  m.def("same", [](torch::Tensor x) { return x; });
  m.def("tensors", [](std::vector<torch::Tensor> x) { return x; });
  m.def("maybe_tensor", [](std::optional<torch::Tensor> x) { return x; });
  m.def("sum", [](torch::Tensor x) { double s = 0; auto c = x.contiguous(); auto *p = c.data_ptr<float>();
      for (int64_t i = 0; i < x.numel(); i++) s += p[i]; return s; });
  m.def("keep", [](torch::Tensor x) { kept = x; });
  m.def("kept", [] { return kept; });
  m.def("drop", [] { kept = torch::Tensor(); });
  m.def("scaled", &scaled, "Multiplies.", py::arg("a"), py::arg("n") = 3, "by"_a = 1.5);
  m.def("plain", [](int, float) { return 1; });
  m.def("over", [](int) { return "int"; });
  m.def("over", [](double) { return "float"; });
  m.def("over", [](const std::string &) { return "text"; });
  m.def("over", [](torch::Tensor) { return "tensor"; });
  m.def("raises", [](int what) {
    switch (what) {
    case 0: TORCH_CHECK(false, "check ", 7);
    case 1: TORCH_CHECK_VALUE(false, "value ", 7);
    case 2: TORCH_CHECK_INDEX(false, "index ", 7);
    case 3: TORCH_CHECK_TYPE(false, "type ", 7);
    case 4: TORCH_CHECK_NOT_IMPLEMENTED(false, "absent ", 7);
    case 5: throw std::runtime_error("runtime");
    case 6: throw std::invalid_argument("invalid");
    case 7: throw std::out_of_range("range");
    case 8: throw std::bad_alloc();
    case 9: throw py::key_error("key");
    case 10: throw std::domain_error("domain");
    case 11: throw 11;
    }
  });
}
""" % ("", "\n  ".join(f'm.def("{t}", []({t} x) {{ return x; }});' for t in WIDTHS))


@pytest.fixture(scope="module")
def ops():
    return jitney.load_inline("every_op", cpp_sources=SOURCE)


# ---- values ----

@pytest.mark.parametrize("width", WIDTHS)
def test_an_integer_of_any_width_takes_its_limits_and_refuses_what_is_beyond(ops, width):
    low, high = WIDTHS[width]
    f = getattr(ops, width)
    assert (f(low), f(high)) == (low, high)
    for beyond in (low - 1, high + 1, 2**64, -2**63 - 1, 2**200):
        with pytest.raises(jitney.ArgumentError) as caught:
            f(beyond)
        assert width in str(caught.value), str(caught.value)


@pytest.mark.parametrize("wrong", [1.5, "1", None, [1], b"1", 1 + 0j])
def test_an_integer_parameter_takes_nothing_that_is_not_an_integer(ops, wrong):
    with pytest.raises(jitney.ArgumentError):
        ops.int32_t(wrong)


def test_numbers_of_numpy_are_numbers(ops):
    assert ops.int64_t(numpy.int32(-5)) == -5
    assert ops.uint8_t(numpy.uint8(200)) == 200
    assert ops.f64(numpy.float32(0.5)) == 0.5
    assert ops.f64(numpy.float64(0.1)) == 0.1


def test_a_tensor_of_one_element_is_no_reason_to_lose_digits(ops, torch):
    assert ops.f64(torch.tensor(0.1, dtype=torch.float64).item()) == 0.1


@settings(max_examples=200, deadline=None)
@given(st.integers(-2**63, 2**63 - 1))
def test_every_64_bit_integer_comes_back(ops, value):
    assert ops.int64_t(value) == value


@settings(max_examples=200, deadline=None)
@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_double_comes_back(ops, value):
    result = ops.f64(value)
    assert result == value and math.copysign(1, result) == math.copysign(1, value) or math.isnan(result) and math.isnan(value)


@settings(max_examples=200, deadline=None)
@given(st.floats(width=32, allow_nan=False))
def test_every_float_comes_back(ops, value):
    assert ops.f32(value) == value


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_every_text_comes_back(ops, value):
    assert ops.text(value) == value
    assert ops.length(value) == len(value.encode())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-2**31, 2**31 - 1), st.none() | st.lists(st.floats(allow_nan=False), max_size=3)), max_size=5))
def test_nested_values_come_back(ops, value):
    assert ops.nested(value) == value


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=8), max_size=5))
def test_lists_of_texts_come_back(ops, value):
    assert ops.texts(value) == value


def test_text_is_utf8(ops):
    assert ops.text("Größe 数 😀\0end") == "Größe 数 😀\0end"
    assert ops.c_text("数") == "数"


def test_a_text_that_is_not_unicode_is_refused_with_words(ops):
    with pytest.raises((jitney.ArgumentError, UnicodeEncodeError)):
        ops.text("\ud800")


def test_booleans_are_booleans(ops):
    assert ops.flag(True) is True and ops.flag(False) is False
    assert ops.flag(numpy.bool_(True)) is True


def test_a_boolean_parameter_takes_zero_and_one(ops):
    assert ops.flag(1) is True and ops.flag(0) is False


def test_a_text_parameter_takes_bytes(ops):
    assert ops.text(b"abc") == "abc"


def test_an_integer_too_large_for_a_float_is_said_to_be_one(ops):
    with pytest.raises((jitney.ArgumentError, OverflowError)) as caught:
        ops.f64(10**400)
    assert "-1.0" not in str(caught.value), str(caught.value)


def test_none_and_optional(ops):
    assert ops.nothing() is None
    assert ops.maybe(None) is None and ops.maybe(4) == 4
    assert ops.maybe_tensor(None) is None


def test_vectors_and_tuples(ops):
    assert ops.ints([1, 2, 3]) == [1, 2, 3] and ops.ints((4,)) == [4] and ops.ints([]) == []
    with pytest.raises(jitney.ArgumentError):
        ops.ints(["a"])
    with pytest.raises(jitney.ArgumentError):
        ops.pair((1,))


def test_a_tuple_comes_back_as_a_tuple(ops):
    assert ops.pair((1, "a")) == (1, "a")


# ---- tensors ----

def test_the_same_tensor_is_the_same_object(ops, torch):
    x = torch.arange(3.0)
    assert ops.same(x) is x
    assert ops.tensors([x, x])[1] is x
    assert ops.maybe_tensor(x) is x
    a = numpy.arange(3.0)
    assert ops.same(a) is a


def test_a_parameter_of_a_network_and_a_tensor_with_gradient_come_back_as_they_are(ops, torch):
    p = torch.nn.Parameter(torch.ones(2))
    assert ops.same(p) is p
    y = p * 2
    assert ops.same(y) is y


def test_a_tensor_kept_in_a_static_is_valid_in_a_later_call(ops, torch):
    ops.keep(torch.arange(1000, dtype=torch.float32))
    torch.zeros(1000), torch.full((1000,), 7.0)  # what would lie in freed memory
    assert ops.sum(ops.kept()) == 499500
    ops.keep(numpy.arange(10, dtype=numpy.float32))
    assert ops.kept().tolist() == list(range(10))
    ops.drop()


def test_a_wrong_dtype_is_a_runtime_error_that_names_both(ops, torch):
    with pytest.raises(RuntimeError) as caught:
        ops.sum(torch.ones(3, dtype=torch.float64))
    assert "loat" in str(caught.value) and "ouble" in str(caught.value), str(caught.value)


@pytest.mark.parametrize("wrong", [1, "x", None, object()])
def test_what_is_no_tensor_is_refused(ops, wrong):
    with pytest.raises(jitney.ArgumentError):
        ops.same(wrong)


def test_many_calls_leak_no_references(ops, torch):
    import sys
    x = torch.ones(3)
    before = sys.getrefcount(x)
    for _ in range(1000):
        ops.same(x), ops.tensors([x]), ops.sum(x)
    assert sys.getrefcount(x) == before


# ---- arguments by name ----

def test_defaults_and_keywords_in_both_spellings(ops):
    assert ops.scaled(2) == 9
    assert ops.scaled(2, 2) == 6
    assert ops.scaled(2, by=1) == 6
    assert ops.scaled(by=2.0, n=1, a=5) == 10
    with pytest.raises(jitney.ArgumentError):
        ops.scaled(2, m=1)
    with pytest.raises(jitney.ArgumentError):
        ops.scaled(2, a=1)
    with pytest.raises(jitney.ArgumentError):
        ops.scaled()
    with pytest.raises(jitney.ArgumentError):
        ops.scaled(1, 2, 3, 4)


def test_a_wrong_argument_is_named_with_its_place(ops):
    with pytest.raises(jitney.ArgumentError) as caught:
        ops.scaled(1, "three")
    assert all(part in str(caught.value) for part in ("scaled", "argument 2", "n", "str")), str(caught.value)


def test_docstrings_and_signatures_are_pythons(ops):
    assert "Multiplies." in ops.scaled.__doc__, ops.scaled.__doc__
    assert ops.__doc__ == "what the module is for"
    assert ops.scaled.__name__ == "scaled"
    signature = inspect.signature(ops.scaled)
    assert list(signature.parameters) == ["a", "n", "by"], signature
    assert signature.parameters["n"].default == 3 and signature.parameters["by"].default == 1.5, signature


# ---- overloads ----

@pytest.mark.parametrize("value, chosen", [(1, "int"), (1.5, "float"), ("a", "text")])
def test_the_overload_that_fits_is_called(ops, value, chosen):
    assert ops.over(value) == chosen


def test_a_tensor_chooses_its_overload(ops, torch):
    assert ops.over(torch.ones(1)) == "tensor"
    assert ops.over(torch.ones(2)) == "tensor"


def test_no_overload_that_fits_tells_all_of_them(ops):
    with pytest.raises(jitney.ArgumentError) as caught:
        ops.over(None)
    text = str(caught.value)
    assert text.count("over(") >= 4, text


# ---- exceptions ----

@pytest.mark.parametrize("what, kind, text", [
    (0, RuntimeError, "check 7"), (1, ValueError, "value 7"), (2, IndexError, "index 7"), (3, TypeError, "type 7"),
    (4, NotImplementedError, "absent 7"), (5, RuntimeError, "runtime"), (6, ValueError, "invalid"), (7, IndexError, "range"),
    (8, MemoryError, ""), (9, KeyError, "key"), (10, ValueError, "domain"), (11, RuntimeError, ""),
])
def test_exceptions_become_what_torch_makes_of_them(ops, what, kind, text):
    with pytest.raises(kind) as caught:
        ops.raises(what)
    assert text in str(caught.value), str(caught.value)


def test_an_op_works_after_it_has_thrown(ops):
    for _ in range(3):
        with pytest.raises(RuntimeError):
            ops.raises(0)
    assert ops.int32_t(5) == 5


# ---- functions= ----

TWO = "int one(int a) { return a + 1; }\nfloat two(float x, int n) { return x * n; }"


@pytest.mark.parametrize("functions", ["one", ["one"], ("one", "two"), {"one": "adds one", "two": ""}], ids=str)
def test_functions_is_a_name_a_list_or_a_dict(functions):
    mod = jitney.load_inline("functions_forms", cpp_sources=TWO, functions=functions)
    assert mod.one(1) == 2
    assert hasattr(mod, "two") == ("two" in functions)
    if isinstance(functions, dict):
        assert "adds one" in mod.one.__doc__, mod.one.__doc__


def test_functions_joins_what_the_source_binds_itself():
    mod = jitney.load_inline("functions_and_block", functions=["one"], cpp_sources=TWO + """
        PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("two", &two); }""")
    assert mod.one(1) == 2 and mod.two(1.5, 2) == 3.0


def test_names_of_parameters_are_known_without_py_arg():
    mod = jitney.load_inline("functions_names", cpp_sources=TWO, functions=["two"])
    assert mod.two(2.0, 3) == 6.0
    with pytest.raises(jitney.ArgumentError) as caught:
        mod.two(2.0)
    assert "two" in str(caught.value), str(caught.value)


def test_a_list_of_sources_is_one_translation_unit():
    mod = jitney.load_inline("pieces", cpp_sources=["static int base() { return 40; }", "int answer() { return base() + 2; }"],
                             functions=["answer"])
    assert mod.answer() == 42


def test_a_function_that_does_not_exist_is_named():
    with pytest.raises(jitney.JitneyError) as caught:
        jitney.load_inline("functions_absent", cpp_sources=TWO, functions=["three"])
    assert "three" in str(caught.value), str(caught.value)


def test_load_takes_several_files_and_paths(tmp_path):
    (tmp_path / "a.cpp").write_text('#include <torch/extension.h>\nint helper(int);\n'
                                    'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &helper); }')
    (tmp_path / "b.cpp").write_text("int helper(int a) { return 2 * a; }")
    mod = jitney.cpp_extension.load("two_files", [tmp_path / "a.cpp", str(tmp_path / "b.cpp")])
    assert mod.twice(21) == 42


def test_an_op_calls_back_into_no_python_but_threads_may_call_it(ops):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ops.int64_t, range(2000))) == list(range(2000))
