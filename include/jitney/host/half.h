/* half.h — c10::Half and c10::BFloat16 as values on the host: sixteen bits, arithmetic in float. */
#ifndef JITNEY_HOST_HALF_H
#define JITNEY_HOST_HALF_H

#include "jitney/host/std.h"

JTN_HIDDEN_BEGIN
namespace jitney {

inline float float_of_bits(uint32_t bits)
{
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}

inline uint32_t bits_of_float(float f)
{
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return bits;
}

inline float half_to_float(uint16_t h)
{
    uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
    if (exponent == 0x1f)
        return float_of_bits(sign | 0x7f800000u | (mantissa << 13));
    if (exponent)
        return float_of_bits(sign | ((exponent + 112) << 23) | (mantissa << 13));
    float subnormal = static_cast<float>(mantissa) * 5.9604644775390625e-8f; /* 2^-24 */
    return sign ? -subnormal : subnormal;
}

/* Round to nearest, ties to even. */
inline uint16_t float_to_half(float f)
{
    uint32_t bits = bits_of_float(f), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return static_cast<uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 leaves the rounded subnormal in the low bits */
        uint32_t shifted = bits_of_float(float_of_bits(magnitude) + 0.5f);
        return static_cast<uint16_t>(sign | (shifted - 0x3f000000u));
    }
    uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float bfloat16_to_float(uint16_t h) { return float_of_bits(static_cast<uint32_t>(h) << 16); }

inline uint16_t float_to_bfloat16(float f)
{
    uint32_t bits = bits_of_float(f);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fc0u;
    return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

} // namespace jitney

namespace c10 {

#define JTN_HALF_OPERATOR(type, op)                                                                                       \
    friend type operator op(type a, type b) { return type(static_cast<float>(a) op static_cast<float>(b)); }              \
    friend float operator op(type a, float b) { return static_cast<float>(a) op b; }                                      \
    friend float operator op(float a, type b) { return a op static_cast<float>(b); }                                      \
    friend double operator op(type a, double b) { return static_cast<double>(a) op b; }                                   \
    friend double operator op(double a, type b) { return a op static_cast<double>(b); }                                   \
    friend type operator op(type a, int b) { return a op type(static_cast<float>(b)); }                                   \
    friend type operator op(int a, type b) { return type(static_cast<float>(a)) op b; }                                   \
    friend type operator op(type a, int64_t b) { return a op type(static_cast<float>(b)); }                               \
    friend type operator op(int64_t a, type b) { return type(static_cast<float>(a)) op b; }                               \
    friend type &operator op##=(type &a, type b) { return a = a op b; }

#define JTN_HALF_CLASS(type, to_float, from_float)                                                                        \
    struct alignas(2) type {                                                                                              \
        uint16_t x;                                                                                                       \
        struct from_bits_t {};                                                                                            \
        static constexpr from_bits_t from_bits() { return {}; }                                                           \
        type() = default;                                                                                                 \
        constexpr type(uint16_t bits, from_bits_t) : x(bits) {}                                                           \
        type(float f) : x(::jitney::from_float(f)) {}                                                                     \
        operator float() const { return ::jitney::to_float(x); }                                                          \
        friend type operator-(type a) { return type(static_cast<uint16_t>(a.x ^ 0x8000u), from_bits()); }                 \
        JTN_HALF_OPERATOR(type, +)                                                                                        \
        JTN_HALF_OPERATOR(type, -)                                                                                        \
        JTN_HALF_OPERATOR(type, *)                                                                                        \
        JTN_HALF_OPERATOR(type, /)                                                                                        \
    };

JTN_HALF_CLASS(Half, half_to_float, float_to_half)
JTN_HALF_CLASS(BFloat16, bfloat16_to_float, float_to_bfloat16)
#undef JTN_HALF_CLASS
#undef JTN_HALF_OPERATOR

} // namespace c10

#define JTN_HALF_LIMITS(type, digits_, digits10_, max_digits10_, min_exp, max_exp, lo, mn, mx, eps, rnd, inf, nan, dmin)  \
    template <> class std::numeric_limits<c10::type> : public std::numeric_limits<float> {                                \
    public:                                                                                                               \
        static constexpr int digits = digits_, digits10 = digits10_, max_digits10 = max_digits10_;                        \
        static constexpr int min_exponent = min_exp, max_exponent = max_exp;                                              \
        static constexpr c10::type bits(uint16_t b) { return c10::type(b, c10::type::from_bits()); }                      \
        static constexpr c10::type lowest() { return bits(lo); }                                                          \
        static constexpr c10::type min() { return bits(mn); }                                                             \
        static constexpr c10::type max() { return bits(mx); }                                                             \
        static constexpr c10::type epsilon() { return bits(eps); }                                                        \
        static constexpr c10::type round_error() { return bits(rnd); }                                                    \
        static constexpr c10::type infinity() { return bits(inf); }                                                       \
        static constexpr c10::type quiet_NaN() { return bits(nan); }                                                      \
        static constexpr c10::type signaling_NaN() { return bits(nan); }                                                  \
        static constexpr c10::type denorm_min() { return bits(dmin); }                                                    \
    };
JTN_HALF_LIMITS(Half, 11, 3, 5, -13, 16, 0xfbff, 0x0400, 0x7bff, 0x1400, 0x3800, 0x7c00, 0x7e00, 0x0001)
JTN_HALF_LIMITS(BFloat16, 8, 2, 4, -125, 128, 0xff7f, 0x0080, 0x7f7f, 0x3c00, 0x3f00, 0x7f80, 0x7fc0, 0x0001)
#undef JTN_HALF_LIMITS
JTN_HIDDEN_END
#endif
