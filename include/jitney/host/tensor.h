/* tensor.h — at::Tensor: a counted handle over a jtn_tensor. Metadata is read from it directly; new tensors, views and copies
 * are made by the library in the framework that the caller's tensors came from.
 *
 * Sizes are worked out in plain arrays (jitney::dims), not in std::vector: what an inline function mentions, the compiler
 * instantiates in every translation unit, called or not. */
#ifndef JITNEY_HOST_TENSOR_H
#define JITNEY_HOST_TENSOR_H

#include "jitney/host/error.h"

JTN_HIDDEN_BEGIN
namespace jitney {

constexpr int max_dims = 64;
[[noreturn]] __attribute__((cold)) JTN_RT void too_many_dims();

struct dims {
    int64_t v[max_dims];
    int count = 0;

    dims() {}
    dims(c10::IntArrayRef list);
    void add(int64_t n)
    {
        if (count == max_dims)
            too_many_dims();
        v[count++] = n;
    }
    void insert(int at, int64_t n);
    void erase(int at);
    int64_t &operator[](int i) { return v[i]; }
    int64_t operator[](int i) const { return v[i]; }
    operator c10::IntArrayRef() const { return c10::IntArrayRef(v, static_cast<size_t>(count)); }
    int64_t product() const;
};

/* A dimension from -count to count - 1 as one from 0 on. */
JTN_RT int wrap_dim(int64_t dim, int64_t count);
[[noreturn]] __attribute__((cold)) JTN_RT void undefined_tensor();
[[noreturn]] __attribute__((cold)) JTN_RT void read_only_tensor();
[[noreturn]] __attribute__((cold)) JTN_RT void wrong_scalar_type(c10::ScalarType wanted, c10::ScalarType found);
[[noreturn]] __attribute__((cold)) JTN_RT void wrong_accessor(size_t wanted, int64_t found);

} // namespace jitney

namespace at {

using namespace c10;

template <class T> struct DefaultPtrTraits {
    typedef T *PtrType;
};
template <class T> struct RestrictPtrTraits {
    typedef T *__restrict__ PtrType;
};

/* x.accessor<float, 2>(): a[i][j]. Valid while the tensor lives. */
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class index_t = int64_t>
class TensorAccessor {
public:
    using PtrType = typename PtrTraits<T>::PtrType;
    TensorAccessor(PtrType data, const index_t *sizes, const index_t *strides) : data_(data), sizes_(sizes), strides_(strides) {}
    auto operator[](index_t i) const -> decltype(auto)
    {
        if constexpr (N == 1)
            return static_cast<T &>(data_[strides_[0] * i]);
        else
            return TensorAccessor<T, N - 1, PtrTraits, index_t>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
    }
    PtrType data() const { return data_; }
    index_t size(index_t i) const { return sizes_[i]; }
    index_t stride(index_t i) const { return strides_[i]; }
    IntArrayRef sizes() const { return IntArrayRef(sizes_, N); }
    IntArrayRef strides() const { return IntArrayRef(strides_, N); }

private:
    PtrType data_;
    const index_t *sizes_, *strides_;
};

/* What x.type() gives: enough for the checks and dispatches of older sources. */
class DeprecatedTypeProperties {
public:
    DeprecatedTypeProperties(ScalarType type, Device device) : type_(type), device_(device) {}
    operator ScalarType() const { return type_; }
    ScalarType scalarType() const { return type_; }
    bool is_cuda() const { return device_.is_cuda(); }
    Device device() const { return device_; }
    DeviceType device_type() const { return device_.type(); }
    TensorOptions options() const { return TensorOptions(type_).device(device_); }
    bool operator==(const DeprecatedTypeProperties &other) const
    {
        return type_ == other.type_ && device_.type() == other.device_.type();
    }
    bool operator!=(const DeprecatedTypeProperties &other) const { return !(*this == other); }
    std::string toString() const; /* "torch.FloatTensor" */

private:
    ScalarType type_;
    Device device_;
};

class Tensor {
public:
    Tensor() = default;
    Tensor(const Tensor &other) : t_(other.t_)
    {
        if (t_)
            ::jitney::abi->tensor_retain(t_);
    }
    Tensor(Tensor &&other) noexcept : t_(other.t_) { other.t_ = nullptr; }
    ~Tensor()
    {
        if (t_)
            ::jitney::abi->tensor_release(t_);
    }
    Tensor &operator=(const Tensor &other) &
    {
        Tensor copy(other);
        std::swap(t_, copy.t_);
        return *this;
    }
    Tensor &operator=(Tensor &&other) & noexcept
    {
        std::swap(t_, other.t_);
        return *this;
    }
    /* x[i] = y writes into x. */
    Tensor &operator=(const Tensor &other) &&;
    Tensor &operator=(Tensor &&other) &&;
    Tensor &operator=(const Scalar &value) &&;

    /* The library's tensor: borrowed in, with one reference more; given away with this handle's reference. */
    static Tensor borrow(jtn_tensor *t)
    {
        ::jitney::abi->tensor_retain(t);
        return adopt(t);
    }
    static Tensor adopt(jtn_tensor *t)
    {
        Tensor tensor;
        tensor.t_ = t;
        return tensor;
    }
    jtn_tensor *give_away()
    {
        jtn_tensor *t = t_;
        t_ = nullptr;
        return t;
    }
    jtn_tensor *unsafe_handle() const { return t_; }

    /* ---- what it is ---- */
    bool defined() const { return t_ != nullptr; }
    bool is_same(const Tensor &other) const { return t_ == other.t_; }
    void reset() { *this = Tensor(); }
    int64_t dim() const { return of().dl.ndim; }
    int64_t ndimension() const { return dim(); }
    IntArrayRef sizes() const { return IntArrayRef(of().dl.shape, static_cast<size_t>(t_->dl.ndim)); }
    IntArrayRef strides() const { return IntArrayRef(of().dl.strides, static_cast<size_t>(t_->dl.ndim)); }
    int64_t size(int64_t dim) const { return of().dl.shape[index_of(dim)]; }
    int64_t stride(int64_t dim) const { return of().dl.strides[index_of(dim)]; }
    int64_t numel() const { return of().numel; }
    size_t element_size() const { return of().dl.dtype.bits / 8u; }
    size_t itemsize() const { return element_size(); }
    size_t nbytes() const { return static_cast<size_t>(numel()) * element_size(); }
    ScalarType scalar_type() const { return scalar_type_of(of().dl.dtype); }
    caffe2::TypeMeta dtype() const { return caffe2::TypeMeta(scalar_type()); }
    DeprecatedTypeProperties type() const { return DeprecatedTypeProperties(scalar_type(), device()); }
    std::string toString() const;
    Device device() const { return Device(of().dl.device); }
    bool is_cuda() const { return device().is_cuda(); }
    bool is_cpu() const { return device().is_cpu(); }
    int64_t get_device() const { return device().index(); }
    bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const
    {
        return format == MemoryFormat::Contiguous && (of().flags & JTN_TENSOR_CONTIGUOUS);
    }
    bool is_non_overlapping_and_dense() const;
    MemoryFormat suggest_memory_format() const { return MemoryFormat::Contiguous; }
    bool is_floating_point() const { return isFloatingType(scalar_type()); }
    bool is_complex() const { return isComplexType(scalar_type()); }
    bool is_signed() const { return of().dl.dtype.code != kDLUInt && t_->dl.dtype.code != kDLBool; }
    bool is_sparse() const { return false; }
    bool is_quantized() const { return false; }
    bool requires_grad() const { return of().flags & JTN_TENSOR_REQUIRES_GRAD; }
    Layout layout() const { return kStrided; }
    TensorOptions options() const;

    /* ---- its elements ---- */
    /* A pointer that can be written through is refused for an array that must not be written to. */
    void *data_ptr() const
    {
        expect_writable();
        return of().dl.data;
    }
    const void *const_data_ptr() const { return of().dl.data; }
    void *mutable_data_ptr() const { return data_ptr(); }
    template <class T> T *data_ptr() const
    {
        expect(CppTypeToScalarType<std::remove_const_t<T>>::value);
        if constexpr (!std::is_const_v<T>)
            expect_writable();
        return static_cast<T *>(t_->dl.data);
    }
    template <class T> const std::remove_const_t<T> *const_data_ptr() const { return data_ptr<const std::remove_const_t<T>>(); }
    template <class T> T *mutable_data_ptr() const { return data_ptr<T>(); }
    template <class T> T *data() const { return data_ptr<T>(); }
    template <class T, size_t N> TensorAccessor<T, N> accessor() const
    {
        static_assert(N > 0, "accessor is for tensors with dimensions; use item<T>() for a scalar");
        expect_dims(N);
        return TensorAccessor<T, N>(data_ptr<T>(), t_->dl.shape, t_->dl.strides);
    }
    Scalar item() const;
    template <class T> T item() const { return item().template to<T>(); }

    /* ---- views ---- */
    Tensor as_strided(IntArrayRef sizes, IntArrayRef strides, int64_t offset = 0) const; /* offset: from its first element */
    Tensor operator[](int64_t index) const;
    Tensor select(int64_t dim, int64_t index) const;
    Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
                 int64_t step = 1) const;
    Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
    Tensor transpose(int64_t a, int64_t b) const;
    Tensor t() const;
    Tensor permute(IntArrayRef order) const;
    Tensor squeeze() const;
    Tensor squeeze(int64_t dim) const;
    Tensor unsqueeze(int64_t dim) const;
    Tensor expand(IntArrayRef sizes) const;
    Tensor expand_as(const Tensor &other) const;
    Tensor view(IntArrayRef sizes) const;
    Tensor view_as(const Tensor &other) const;
    Tensor reshape(IntArrayRef sizes) const; /* a view where one will do, else a copy */
    Tensor flatten(int64_t from = 0, int64_t to = -1) const;
    Tensor detach() const { return *this; }

    /* ---- copies and writes ---- */
    Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
    Tensor clone() const;
    const Tensor &copy_(const Tensor &source, bool non_blocking = false) const;
    const Tensor &fill_(const Scalar &value) const;
    const Tensor &zero_() const;
    Tensor to(const TensorOptions &options, bool non_blocking = false, bool copy = false) const;
    Tensor to(ScalarType type, bool non_blocking = false, bool copy = false) const;
    Tensor to(caffe2::TypeMeta meta, bool non_blocking = false, bool copy = false) const;
    Tensor to(Device device, bool non_blocking = false, bool copy = false) const;
    Tensor to(DeviceType type, bool non_blocking = false, bool copy = false) const;
    Tensor to(Device device, ScalarType type, bool non_blocking = false, bool copy = false) const;
    Tensor to(const Tensor &other, bool non_blocking = false, bool copy = false) const;
    Tensor type_as(const Tensor &other) const;
    Tensor toType(ScalarType type) const;
    Tensor cpu() const;
    Tensor cuda() const;

private:
    jtn_tensor &of() const
    {
        if (__builtin_expect(!t_, 0))
            ::jitney::undefined_tensor();
        return *t_;
    }
    int index_of(int64_t dim) const
    {
        if (__builtin_expect(static_cast<uint64_t>(dim) < static_cast<uint64_t>(t_->dl.ndim), 1))
            return static_cast<int>(dim);
        return wrapped(dim);
    }
    int wrapped(int64_t dim) const;
    void expect(ScalarType type) const
    {
        DLDataType wanted = dl_type(type), found = of().dl.dtype;
        if (__builtin_expect(found.code != wanted.code || found.bits != wanted.bits || found.lanes != 1, 0))
            ::jitney::wrong_scalar_type(type, scalar_type());
    }
    void expect_writable() const
    {
        if (__builtin_expect(of().flags & JTN_TENSOR_READ_ONLY, 0))
            ::jitney::read_only_tensor();
    }
    void expect_dims(size_t count) const
    {
        if (__builtin_expect(static_cast<size_t>(dim()) != count, 0))
            ::jitney::wrong_accessor(count, dim());
    }
    jtn_tensor *t_ = nullptr;
};

using TensorList = ArrayRef<Tensor>;

/* ---- new tensors ---- */

JTN_RT Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, TensorOptions options = {});
JTN_RT Tensor empty(IntArrayRef sizes, TensorOptions options = {});
JTN_RT Tensor full(IntArrayRef sizes, const Scalar &value, TensorOptions options);
JTN_RT Tensor full(IntArrayRef sizes, const Scalar &value);
JTN_RT Tensor zeros(IntArrayRef sizes, TensorOptions options = {});
JTN_RT Tensor ones(IntArrayRef sizes, TensorOptions options = {});
/* What `options` does not say is the other tensor's; a dense tensor's order of dimensions is kept. */
JTN_RT Tensor empty_like(const Tensor &other, TensorOptions options = {});
JTN_RT Tensor full_like(const Tensor &other, const Scalar &value, TensorOptions options = {});
JTN_RT Tensor zeros_like(const Tensor &other, TensorOptions options = {});
JTN_RT Tensor ones_like(const Tensor &other, TensorOptions options = {});

/* torch::tensor({1, 2, 3}): integers become int64, floating point becomes float, unless the options say otherwise. */
template <class T> Tensor tensor(ArrayRef<T> values, TensorOptions options = {})
{
    ScalarType natural = CppTypeToScalarType<T>::value;
    ScalarType wanted = options.has_dtype()          ? options.dtype().toScalarType()
                        : isIntegralType(natural)    ? kLong
                        : std::is_same_v<T, double>  ? kFloat
                                                     : natural;
    Tensor host = empty({static_cast<int64_t>(values.size())}, natural);
    std::copy(values.begin(), values.end(), host.data_ptr<T>());
    Tensor out = host.to(TensorOptions(wanted).device(options.device()));
    return out;
}
template <class T> Tensor tensor(std::initializer_list<T> values, TensorOptions options = {})
{
    return tensor(ArrayRef<T>(values.begin(), values.size()), options);
}
template <class T> Tensor tensor(const std::vector<T> &values, TensorOptions options = {})
{
    return tensor(ArrayRef<T>(values), options);
}
template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> Tensor tensor(T value, TensorOptions options = {})
{
    return tensor(ArrayRef<T>(&value, 1), options).squeeze(0);
}

} // namespace at

/* ---- the same names everywhere: torch::kFloat, at::kFloat, c10::kFloat ---- */
namespace c10 {
using namespace at;
}
namespace torch {
using namespace at;
namespace autograd {
using Variable = at::Tensor;
using variable_list = std::vector<at::Tensor>;
} // namespace autograd
} // namespace torch
JTN_HIDDEN_END
#endif
