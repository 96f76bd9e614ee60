/* value.h — the small values of torch's C++: ScalarType, Device, ArrayRef, Scalar, TensorOptions. */
#ifndef JITNEY_HOST_VALUE_H
#define JITNEY_HOST_VALUE_H

#include "jitney/host/half.h"

JTN_HIDDEN_BEGIN
namespace at {
class Tensor;
}

namespace jitney {
[[noreturn]] JTN_RT void bad_index(size_t index, size_t length);
[[noreturn]] JTN_RT void raise(jtn_raise kind, std::string message); /* error.h */
}

namespace c10 {

using std::in_place;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using std::string_view;

/* ---- ScalarType: X(C++ type, name, torch's number, DLPack code, bits, what TypeMeta::name says) ---- */

#define JTN_SCALAR_TYPES(X)                                  \
    X(uint8_t, Byte, 0, kDLUInt, 8, "unsigned char")         \
    X(int8_t, Char, 1, kDLInt, 8, "signed char")             \
    X(int16_t, Short, 2, kDLInt, 16, "short int")            \
    X(int, Int, 3, kDLInt, 32, "int")                        \
    X(int64_t, Long, 4, kDLInt, 64, "long int")              \
    X(c10::Half, Half, 5, kDLFloat, 16, "c10::Half")         \
    X(float, Float, 6, kDLFloat, 32, "float")                \
    X(double, Double, 7, kDLFloat, 64, "double")             \
    X(bool, Bool, 11, kDLBool, 8, "bool")                    \
    X(c10::BFloat16, BFloat16, 15, kDLBfloat, 16, "c10::BFloat16") \
    X(uint16_t, UInt16, 27, kDLUInt, 16, "short unsigned int") \
    X(uint32_t, UInt32, 28, kDLUInt, 32, "unsigned int")     \
    X(uint64_t, UInt64, 29, kDLUInt, 64, "long unsigned int")

enum class ScalarType : int8_t {
#define JTN_X(type, name, number, code, bits, meta) name = number,
    JTN_SCALAR_TYPES(JTN_X)
#undef JTN_X
    ComplexHalf = 8,
    ComplexFloat = 9,
    ComplexDouble = 10,
    Float8_e5m2 = 23,
    Float8_e4m3fn = 24,
    Undefined = 45
};

#define JTN_X(type, name, number, code, bits, meta) constexpr ScalarType k##name = ScalarType::name;
JTN_SCALAR_TYPES(JTN_X)
#undef JTN_X
constexpr ScalarType kUInt8 = ScalarType::Byte, kInt8 = ScalarType::Char, kInt16 = ScalarType::Short,
                     kInt32 = ScalarType::Int, kInt64 = ScalarType::Long, kFloat16 = ScalarType::Half,
                     kFloat32 = ScalarType::Float, kFloat64 = ScalarType::Double,
                     kComplexFloat = ScalarType::ComplexFloat, kComplexDouble = ScalarType::ComplexDouble,
                     kFloat8_e5m2 = ScalarType::Float8_e5m2, kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;

JTN_RT const char *toString(ScalarType type);

inline constexpr DLDataType dl_type(ScalarType type)
{
    switch (type) {
#define JTN_X(cpp, name, number, code, bits, meta) \
    case ScalarType::name:                         \
        return {code, bits, 1};
        JTN_SCALAR_TYPES(JTN_X)
#undef JTN_X
    case ScalarType::ComplexHalf:
        return {kDLComplex, 32, 1};
    case ScalarType::ComplexFloat:
        return {kDLComplex, 64, 1};
    case ScalarType::ComplexDouble:
        return {kDLComplex, 128, 1};
    case ScalarType::Float8_e5m2:
        return {12, 8, 1}; /* DLPack's kDLFloat8_e5m2 */
    case ScalarType::Float8_e4m3fn:
        return {10, 8, 1}; /* kDLFloat8_e4m3fn */
    default:
        return {kDLOpaqueHandle, 0, 0};
    }
}

JTN_RT ScalarType scalar_type_of(DLDataType type);
inline size_t elementSize(ScalarType type) { return dl_type(type).bits / 8; }
inline bool isFloatingType(ScalarType type)
{
    return type == kHalf || type == kFloat || type == kDouble || type == kBFloat16 || type == kFloat8_e5m2 ||
           type == kFloat8_e4m3fn;
}
inline bool isComplexType(ScalarType type)
{
    return type == ScalarType::ComplexHalf || type == kComplexFloat || type == kComplexDouble;
}
inline bool isIntegralType(ScalarType type, bool include_bool = false)
{
    return type == kBool ? include_bool : !isFloatingType(type) && !isComplexType(type) && type != ScalarType::Undefined;
}

/* C++ type → ScalarType. A type that no tensor holds has none. */
template <class T> struct CppTypeToScalarType {
    static_assert(sizeof(T) == 0, "no tensor has elements of this C++ type");
};
#define JTN_X(type, name, number, code, bits, meta)                             \
    template <> struct CppTypeToScalarType<type> {                              \
        static constexpr ScalarType value = ScalarType::name;                   \
    };
JTN_SCALAR_TYPES(JTN_X)
JTN_X(long long, Long, 4, kDLInt, 64, "")
JTN_X(unsigned long long, UInt64, 29, kDLUInt, 64, "")
JTN_X(char, Char, 1, kDLInt, 8, "")
#undef JTN_X

/* ScalarType → C++ type. */
namespace impl {
template <ScalarType type> struct ScalarTypeToCPPType;
#define JTN_X(cpp, name, number, code, bits, meta)                                 \
    template <> struct ScalarTypeToCPPType<ScalarType::name> {                     \
        using type = cpp;                                                          \
    };
JTN_SCALAR_TYPES(JTN_X)
#undef JTN_X
template <ScalarType type> using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<type>::type;
} // namespace impl

/* ---- devices ---- */

using DeviceIndex = int8_t;

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

inline const char *DeviceTypeName(DeviceType type) { return type == kCPU ? "cpu" : "cuda"; }

/* index -1: the current one. */
struct Device {
    using Type = DeviceType;
    Device(DeviceType type, int index = -1) : type_(type), index_(static_cast<DeviceIndex>(index)) {}
    Device(const std::string &text);
    Device(const char *text) : Device(std::string(text)) {}
    explicit Device(DLDevice device)
        : type_(device.device_type == kDLCPU || device.device_type == kDLCUDAHost ? kCPU : kCUDA),
          index_(static_cast<DeviceIndex>(type_ == kCPU ? -1 : device.device_id))
    {
    }

    DeviceType type() const { return type_; }
    DeviceIndex index() const { return index_; }
    bool has_index() const { return index_ >= 0; }
    bool is_cuda() const { return type_ == kCUDA; }
    bool is_cpu() const { return type_ == kCPU; }
    void set_index(DeviceIndex index) { index_ = index; }
    bool operator==(const Device &other) const { return type_ == other.type_ && index_ == other.index_; }
    bool operator!=(const Device &other) const { return !(*this == other); }
    std::string str() const;
    DLDevice dl() const { return {type_ == kCPU ? kDLCPU : kDLCUDA, type_ == kCPU ? 0 : index_}; }

private:
    DeviceType type_;
    DeviceIndex index_;
};

/* ---- views of arrays ---- */

template <class T> class ArrayRef {
public:
    using value_type = T;
    using iterator = const T *;
    using const_iterator = const T *;
    using size_type = size_t;

    constexpr ArrayRef() : data_(nullptr), size_(0) {}
    constexpr ArrayRef(const T &one) : data_(&one), size_(1) {}
    constexpr ArrayRef(const T *data, size_t size) : data_(data), size_(size) {}
    constexpr ArrayRef(const T *begin, const T *end) : data_(begin), size_(static_cast<size_t>(end - begin)) {}
    ArrayRef(const std::vector<T> &vec) : data_(vec.data()), size_(vec.size()) {}
    template <size_t N> constexpr ArrayRef(const std::array<T, N> &array) : data_(array.data()), size_(N) {}
    template <size_t N> constexpr ArrayRef(const T (&array)[N]) : data_(array), size_(N) {}
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Winit-list-lifetime" /* meant for arguments, which outlive the call */
#endif
    constexpr ArrayRef(const std::initializer_list<T> &list)
        : data_(list.begin() == list.end() ? nullptr : list.begin()), size_(list.size())
    {
    }
#pragma GCC diagnostic pop

    constexpr const T *begin() const { return data_; }
    constexpr const T *end() const { return data_ + size_; }
    constexpr const T *data() const { return data_; }
    constexpr size_t size() const { return size_; }
    constexpr bool empty() const { return size_ == 0; }
    const T &operator[](size_t i) const { return data_[i]; }
    const T &at(size_t i) const
    {
        if (i >= size_)
            ::jitney::bad_index(i, size_);
        return data_[i];
    }
    const T &front() const { return at(0); }
    const T &back() const { return at(size_ - 1); }
    ArrayRef slice(size_t from, size_t count) const { return ArrayRef(data_ + from, count); }
    ArrayRef slice(size_t from) const { return ArrayRef(data_ + from, size_ - from); }
    std::vector<T> vec() const { return std::vector<T>(data_, data_ + size_); }
    bool equals(ArrayRef other) const { return size_ == other.size_ && std::equal(begin(), end(), other.begin()); }

private:
    const T *data_;
    size_t size_;
};

template <class T> bool operator==(ArrayRef<T> a, ArrayRef<T> b) { return a.equals(b); }
template <class T> bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !a.equals(b); }
template <class T> bool operator==(const std::vector<T> &a, ArrayRef<T> b) { return ArrayRef<T>(a).equals(b); }
template <class T> bool operator!=(const std::vector<T> &a, ArrayRef<T> b) { return !ArrayRef<T>(a).equals(b); }
template <class T> bool operator==(ArrayRef<T> a, const std::vector<T> &b) { return a.equals(b); }
template <class T> bool operator!=(ArrayRef<T> a, const std::vector<T> &b) { return !a.equals(b); }

using IntArrayRef = ArrayRef<int64_t>;
using OptionalIntArrayRef = std::optional<IntArrayRef>;

/* ---- layout and memory format: strided and row-major are all there is ---- */

enum class Layout : int8_t { Strided = 0 };
constexpr Layout kStrided = Layout::Strided;
enum class MemoryFormat : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };

/* ---- one number of any kind ---- */

class Scalar {
public:
    Scalar() : Scalar(int64_t{0}) {}
    Scalar(bool b) : value_{JTN_BOOL, 0, {}} { value_.as.i = b; }
    Scalar(double d) : value_{JTN_FLOAT, 0, {}} { value_.as.d = d; }
    Scalar(float f) : Scalar(static_cast<double>(f)) {}
    Scalar(Half h) : Scalar(static_cast<float>(h)) {}
    Scalar(BFloat16 h) : Scalar(static_cast<float>(h)) {}
    template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0> Scalar(T n) : value_{JTN_INT, 0, {}}
    {
        value_.as.i = static_cast<int64_t>(n);
        if (std::is_unsigned_v<T> && value_.as.i < 0)
            value_.kind = JTN_UINT;
    }

    template <class T> T to() const
    {
        if (value_.kind == JTN_FLOAT)
            return static_cast<T>(static_cast<std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, float, double>>(value_.as.d));
        return value_.kind == JTN_UINT ? from_integer<T>(value_.as.u) : from_integer<T>(value_.as.i);
    }
    double toDouble() const { return to<double>(); }
    float toFloat() const { return to<float>(); }
    int64_t toLong() const { return to<int64_t>(); }
    int toInt() const { return to<int>(); }
    bool toBool() const { return to<bool>(); }
    bool isFloatingPoint() const { return value_.kind == JTN_FLOAT; }
    bool isIntegral(bool include_bool) const { return !isFloatingPoint() && (include_bool || !isBoolean()); }
    bool isBoolean() const { return value_.kind == JTN_BOOL; }
    ScalarType type() const { return isFloatingPoint() ? kDouble : isBoolean() ? kBool : kLong; }
    const jtn_value &value() const { return value_; }

private:
    template <class T, class I> static T from_integer(I n)
    {
        if constexpr (std::is_arithmetic_v<T>)
            return static_cast<T>(n);
        else
            return static_cast<T>(static_cast<float>(n));
    }
    jtn_value value_;
};

} // namespace c10

/* ---- what x.dtype() gives ---- */

namespace caffe2 {

class TypeMeta {
public:
    TypeMeta() : type_(c10::ScalarType::Undefined) {}
    TypeMeta(c10::ScalarType type) : type_(type) {}
    operator c10::ScalarType() const { return type_; }
    c10::ScalarType toScalarType() const { return type_; }
    size_t itemsize() const { return c10::elementSize(type_); }
    const char *name() const;
    template <class T> static TypeMeta Make() { return TypeMeta(c10::CppTypeToScalarType<T>::value); }
    template <class T> bool Match() const { return type_ == c10::CppTypeToScalarType<T>::value; }
    bool operator==(const TypeMeta &other) const { return type_ == other.type_; }
    bool operator!=(const TypeMeta &other) const { return type_ != other.type_; }
    bool operator==(c10::ScalarType other) const { return type_ == other; }
    bool operator!=(c10::ScalarType other) const { return type_ != other; }
    friend bool operator==(c10::ScalarType a, const TypeMeta &b) { return a == b.type_; }
    friend bool operator!=(c10::ScalarType a, const TypeMeta &b) { return a != b.type_; }

private:
    c10::ScalarType type_;
};

} // namespace caffe2

namespace c10 {

inline ScalarType typeMetaToScalarType(caffe2::TypeMeta meta) { return meta.toScalarType(); }
inline caffe2::TypeMeta scalarTypeToTypeMeta(ScalarType type) { return caffe2::TypeMeta(type); }

/* What a new tensor should be. Each setter gives a changed copy. */
class TensorOptions {
public:
    TensorOptions() = default;
    TensorOptions(ScalarType type) : dtype_(type) {}
    TensorOptions(caffe2::TypeMeta meta) : dtype_(meta.toScalarType()) {}
    TensorOptions(Device device) { set(device); }
    TensorOptions(DeviceType type) { set(Device(type)); }
    TensorOptions(Layout) {}
    TensorOptions(MemoryFormat) {}

#define JTN_OPTION(change)          \
    {                               \
        TensorOptions o = *this;    \
        o.change;                   \
        return o;                   \
    }
    TensorOptions dtype(ScalarType type) const JTN_OPTION(dtype_ = type)
    TensorOptions dtype(caffe2::TypeMeta meta) const JTN_OPTION(dtype_ = meta.toScalarType())
    TensorOptions dtype(std::optional<ScalarType> type) const JTN_OPTION(dtype_ = type.value_or(ScalarType::Undefined))
    template <class T> TensorOptions dtype() const JTN_OPTION(dtype_ = CppTypeToScalarType<T>::value)
    TensorOptions device(Device device) const JTN_OPTION(set(device))
    TensorOptions device(DeviceType type, int index = -1) const JTN_OPTION(set(Device(type, index)))
    TensorOptions device(const char *text) const JTN_OPTION(set(Device(text)))
    TensorOptions device(std::optional<Device> device) const JTN_OPTION(set(device.value_or(Device(kCPU))))
    TensorOptions device_index(int index) const JTN_OPTION(set(Device(kCUDA, index)))
    TensorOptions requires_grad(bool yes) const JTN_OPTION(requires_grad_ = yes)
    TensorOptions pinned_memory(bool yes) const JTN_OPTION(pinned_ = yes)
#undef JTN_OPTION
    TensorOptions layout(Layout) const { return *this; }
    TensorOptions memory_format(MemoryFormat) const { return *this; }

    caffe2::TypeMeta dtype() const { return has_dtype() ? dtype_ : kFloat; }
    Device device() const { return device_; }
    bool requires_grad() const { return requires_grad_; }
    bool pinned_memory() const { return pinned_; }
    bool has_dtype() const { return dtype_ != ScalarType::Undefined; }
    bool has_device() const { return has_device_; }
    Layout layout() const { return kStrided; }

private:
    void set(Device device)
    {
        device_ = device;
        has_device_ = true;
    }
    ScalarType dtype_ = ScalarType::Undefined;
    Device device_ = Device(kCPU);
    bool has_device_ = false, requires_grad_ = false, pinned_ = false;
};

inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(caffe2::TypeMeta meta) { return TensorOptions(meta); }
template <class T> TensorOptions dtype() { return TensorOptions(CppTypeToScalarType<T>::value); }
inline TensorOptions device(Device device) { return TensorOptions(device); }
inline TensorOptions layout(Layout layout) { return TensorOptions(layout); }
inline TensorOptions requires_grad(bool yes = true) { return TensorOptions().requires_grad(yes); }

} // namespace c10
JTN_HIDDEN_END
#endif
