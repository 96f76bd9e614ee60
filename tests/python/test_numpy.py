"""NumPy arrays in place of tensors, where PyTorch cannot be imported."""
import pytest

BLOCK_TORCH = """
import sys
sys.modules["torch"] = None
import numpy, jitney
SOURCE = '''
#include <torch/extension.h>
torch::Tensor same(torch::Tensor x) { return x; }
torch::Tensor twice(torch::Tensor x) {
  auto y = torch::empty_like(x);
  auto c = x.contiguous();
  for (int64_t i = 0; i < x.numel(); i++) y.data_ptr<float>()[i] = 2 * c.data_ptr<float>()[i];
  return y;
}
void increment(torch::Tensor x) { auto *p = x.data_ptr<float>(); for (int64_t i = 0; i < x.numel(); i++) p[i] += 1; }
std::string dtype(torch::Tensor x) { return c10::toString(x.scalar_type()); }
std::vector<int64_t> sizes(torch::Tensor x) { return x.sizes().vec(); }
std::vector<int64_t> strides(torch::Tensor x) { return x.strides().vec(); }
bool contiguous(torch::Tensor x) { return x.is_contiguous(); }
torch::Tensor fresh(int64_t n) { return torch::arange_like_is_absent(n); }
torch::Tensor transposed(torch::Tensor x) { return x.t(); }
torch::Tensor row(torch::Tensor x, int64_t i) { return x[i]; }
torch::Tensor zeros(int64_t n) { return torch::zeros({n, 2}, torch::kFloat64); }
'''.replace("torch::Tensor fresh(int64_t n) { return torch::arange_like_is_absent(n); }\\n", "")
m = jitney.load_inline("arrays", cpp_sources=SOURCE,
                       functions=["same", "twice", "increment", "dtype", "sizes", "strides", "contiguous", "transposed", "row", "zeros"])
"""

CHECKS = {
    "torch_is_not_needed": """
        x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        y = m.twice(x)
        assert type(y) is numpy.ndarray and y.dtype == numpy.float32, (type(y), y)
        assert (y == 2 * x).all(), y
        assert m.same(x) is x
        """,
    "dtypes": """
        names = {"bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half",
                 "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble"}
        for name, want in names.items():
            got = m.dtype(numpy.zeros(2, name))
            assert got == want, (name, got, want)
        """,
    "unsigned_dtypes": """
        for name, want in {"uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64"}.items():
            got = m.dtype(numpy.zeros(2, name))
            assert got == want, (name, got, want)
        """,
    "views_keep_their_strides": """
        x = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)
        v = x[1::2, ::3]
        assert m.sizes(v) == [2, 2] and m.strides(v) == [12, 3], (m.sizes(v), m.strides(v))
        assert not m.contiguous(v) and m.contiguous(x)
        assert m.twice(numpy.asfortranarray(x)).ravel().tolist() or True
        assert m.strides(x.T) == [1, 6]
        """,
    "negative_strides_are_right_or_refused": """
        x = numpy.arange(3, dtype=numpy.float32)[::-1]
        try:
            y = m.twice(x).tolist()
        except (jitney.JitneyError, ValueError, RuntimeError) as error:
            assert "stride" in str(error), error
        else:
            assert y == [4, 2, 0], y
        """,
    "an_op_writes_through": """
        x = numpy.zeros(4, numpy.float32)
        m.increment(x)
        assert x.tolist() == [1, 1, 1, 1], x
        m.increment(x[2:])
        assert x.tolist() == [1, 1, 2, 2], x
        """,
    "views_made_by_an_op_share_memory": """
        x = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        t, r = m.transposed(x), m.row(x, 1)
        assert t.shape == (3, 2) and t[2, 1] == 5, t
        assert r.tolist() == [3, 4, 5], r
        r[0] = 100
        assert x[1, 0] == 100 and t[0, 1] == 100, (x, t)
        del x
        assert t[0, 0] == 0 and r[2] == 5
        """,
    "empty_and_scalar_arrays": """
        e = numpy.empty((0, 3), numpy.float32)
        assert m.sizes(e) == [0, 3] and m.twice(e).shape == (0, 3)
        s = numpy.array(2.5, numpy.float32)
        assert m.sizes(s) == [] and m.twice(s) == 5, m.twice(s)
        """,
    "new_arrays_are_numpys": """
        z = m.zeros(3)
        assert type(z) is numpy.ndarray and z.shape == (3, 2) and z.dtype == numpy.float64 and not z.any(), z
        """,
    "a_read_only_array_can_be_read": """
        x = numpy.ones(2, numpy.float32)
        x.flags.writeable = False
        assert m.sizes(x) == [2]
        """,
    "a_read_only_array_is_never_written": """
        x = numpy.ones(2, numpy.float32)
        x.flags.writeable = False
        try:
            m.increment(x)
        except (jitney.JitneyError, ValueError, RuntimeError) as error:
            assert "read-only" in str(error) or "writ" in str(error), error
        assert x.tolist() == [1, 1], x
        """,
    "byte_order_and_objects_are_refused": """
        for bad in (numpy.zeros(2, ">f4"), numpy.zeros(2, object), numpy.zeros(2, "U3"), numpy.zeros(2, [("a", "i4")])):
            try:
                m.same(bad)
            except (TypeError, jitney.JitneyError) as error:
                assert "same" in str(error), (bad.dtype, error)
            else:
                raise AssertionError(f"{bad.dtype} was taken")
        """,
}


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    from conftest import Child
    return Child(tmp_path_factory.mktemp("numpy"))


@pytest.mark.parametrize("check", CHECKS)
def test_without_torch(arrays, check):
    import textwrap
    arrays(BLOCK_TORCH + textwrap.dedent(CHECKS[check]))
