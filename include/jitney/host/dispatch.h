/* dispatch.h — AT_DISPATCH_…: one body, compiled for each element type, chosen by the tensor's. */
#ifndef JITNEY_HOST_DISPATCH_H
#define JITNEY_HOST_DISPATCH_H

#include "jitney/host/tensor.h"

JTN_HIDDEN_BEGIN
namespace jitney {
inline c10::ScalarType dispatch_type(c10::ScalarType type) { return type; }
inline c10::ScalarType dispatch_type(const caffe2::TypeMeta &meta) { return meta.toScalarType(); }
inline c10::ScalarType dispatch_type(const at::DeprecatedTypeProperties &type) { return type.scalarType(); }
} // namespace jitney
JTN_HIDDEN_END

#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                                        \
    [&] {                                                                                                          \
        constexpr const char *at_dispatch_name = NAME;                                                             \
        const ::c10::ScalarType _st = ::jitney::dispatch_type(TYPE);                                               \
        switch (_st) {                                                                                             \
            __VA_ARGS__                                                                                            \
        default:                                                                                                   \
            ::jitney::fail(JTN_RAISE_NOT_IMPLEMENTED, {"\"", at_dispatch_name, "\" not implemented for '", _st, "'"}); \
        }                                                                                                          \
    }()
#define AT_DISPATCH_CASE_HINT(enum_type, HINT, ...)                                                                \
    case enum_type: {                                                                                              \
        using HINT [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<enum_type>;                                \
        return __VA_ARGS__();                                                                                      \
    }
#define AT_DISPATCH_CASE(enum_type, ...) AT_DISPATCH_CASE_HINT(enum_type, scalar_t, __VA_ARGS__)

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)                  \
    AT_DISPATCH_CASE(::c10::ScalarType::Double, __VA_ARGS__)  \
    AT_DISPATCH_CASE(::c10::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)                  \
    AT_DISPATCH_CASE(::c10::ScalarType::Byte, __VA_ARGS__)    \
    AT_DISPATCH_CASE(::c10::ScalarType::Char, __VA_ARGS__)    \
    AT_DISPATCH_CASE(::c10::ScalarType::Int, __VA_ARGS__)     \
    AT_DISPATCH_CASE(::c10::ScalarType::Long, __VA_ARGS__)    \
    AT_DISPATCH_CASE(::c10::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)                       \
    AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__)              \
    AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

#define JTN_CASES_1(a, ...) AT_DISPATCH_CASE(a, __VA_ARGS__)
#define JTN_CASES_2(a, b, ...) AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__)
#define JTN_CASES_3(a, b, c, ...) JTN_CASES_2(a, b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__)
#define JTN_CASES_4(a, b, c, d, ...) JTN_CASES_3(a, b, c, __VA_ARGS__) AT_DISPATCH_CASE(d, __VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
    AT_DISPATCH_FLOATING_TYPES_AND(::c10::ScalarType::Half, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, JTN_CASES_2(::c10::ScalarType::Half, ::c10::ScalarType::BFloat16, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(a, TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) JTN_CASES_1(a, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(a, b, TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) JTN_CASES_2(a, b, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND3(a, b, c, TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) JTN_CASES_3(a, b, c, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND4(a, b, c, d, TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) JTN_CASES_4(a, b, c, d, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(a, TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) JTN_CASES_1(a, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(a, TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) JTN_CASES_1(a, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(a, b, TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) JTN_CASES_2(a, b, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(a, b, c, TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) JTN_CASES_3(a, b, c, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND4(a, b, c, d, TYPE, NAME, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) JTN_CASES_4(a, b, c, d, __VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                  \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_HINT(::c10::ScalarType::Int, index_t, __VA_ARGS__) \
                                       AT_DISPATCH_CASE_HINT(::c10::ScalarType::Long, index_t, __VA_ARGS__))
#endif
