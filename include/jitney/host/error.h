/* error.h — TORCH_CHECK and its kin, and the exceptions that become Python's.
 *
 * A message is put together from pieces, each made by an ordinary overload: no iostreams and no variadic templates, so that
 * a check costs the compiler next to nothing. */
#ifndef JITNEY_HOST_ERROR_H
#define JITNEY_HOST_ERROR_H

#include "jitney/host/value.h"

JTN_HIDDEN_BEGIN
namespace c10 {

class Error : public std::exception {
public:
    explicit Error(std::string message, jtn_raise raise = JTN_RAISE_RUNTIME);
    Error(const Error &other);
    ~Error() override;
    const char *what() const noexcept override;
    const std::string &msg() const { return message_; }
    const char *what_without_backtrace() const noexcept { return message_.c_str(); }
    jtn_raise raise() const { return raise_; }

private:
    std::string message_;
    jtn_raise raise_;
};

#define JTN_ERROR_CLASSES(X)                    \
    X(IndexError, JTN_RAISE_INDEX)              \
    X(ValueError, JTN_RAISE_VALUE)              \
    X(TypeError, JTN_RAISE_TYPE)                \
    X(NotImplementedError, JTN_RAISE_NOT_IMPLEMENTED) \
    X(OutOfMemoryError, JTN_RAISE_MEMORY)
#define JTN_X(name, kind)                           \
    class name : public Error {                     \
    public:                                         \
        explicit name(std::string message);         \
        ~name() override;                           \
    };
JTN_ERROR_CLASSES(JTN_X)
#undef JTN_X

} // namespace c10

namespace jitney {

/* One argument of a check, as text. Streams floats as iostreams would: six digits. */
struct piece {
    std::string text;

    piece(const char *s);
    piece(std::string s);
    piece(std::string_view s);
    piece(char c);
    piece(bool b);
    piece(signed char n);
    piece(unsigned char n);
    piece(short n);
    piece(unsigned short n);
    piece(int n);
    piece(unsigned n);
    piece(long n);
    piece(unsigned long n);
    piece(long long n);
    piece(unsigned long long n);
    piece(double d);
    piece(float f);
    piece(const void *p);
    piece(c10::ScalarType type);
    piece(const caffe2::TypeMeta &meta);
    piece(c10::DeviceType type);
    piece(const c10::Device &device);
    piece(const c10::Half &h);
    piece(const c10::BFloat16 &h);
    piece(const at::Tensor &tensor);
    ~piece();
    piece(const piece &other) = delete;
    template <class T> piece(c10::ArrayRef<T> list) { put_list(list.data(), list.size()); }
    template <class T> piece(const std::vector<T> &list) { put_list(list.data(), list.size()); }

private:
    void add(const char *separator, const piece &item);
    template <class T> void put_list(const T *items, size_t count)
    {
        text = "[";
        for (size_t i = 0; i < count; i++)
            add(i ? ", " : "", piece(items[i]));
        text += "]";
    }
};

JTN_RT std::string joined(std::initializer_list<piece> pieces);
[[noreturn]] __attribute__((cold)) JTN_RT void fail(jtn_raise kind, std::initializer_list<piece> pieces);
/* otherwise: what is said when the user's check gives no words of its own. */
[[noreturn]] __attribute__((cold)) JTN_RT void check_failed(jtn_raise kind, const char *otherwise,
                                                            std::initializer_list<piece> pieces);
__attribute__((cold)) JTN_RT void warn(std::initializer_list<piece> pieces);

/* A function of the table failed: it has recorded the error already. */
[[noreturn]] __attribute__((cold)) JTN_RT void call_failed();
inline void check_call(int failed)
{
    if (__builtin_expect(failed, 0))
        call_failed();
}

} // namespace jitney
JTN_HIDDEN_END

#define JTN_CHECK(kind, cond, ...)                                                                                \
    do {                                                                                                          \
        if (__builtin_expect(!(cond), 0))                                                                         \
            ::jitney::check_failed(kind, "Expected " #cond " to be true, but got false.", {__VA_ARGS__});         \
    } while (0)
#define JTN_CHECK_COMPARED(a, op, b, ...)                                                                         \
    do {                                                                                                          \
        const auto &jtn_a_ = (a);                                                                                 \
        const auto &jtn_b_ = (b);                                                                                 \
        if (__builtin_expect(!(jtn_a_ op jtn_b_), 0))                                                             \
            ::jitney::fail(JTN_RAISE_RUNTIME,                                                                     \
                           {"Check failed: " #a " " #op " " #b " (", jtn_a_, " vs. ", jtn_b_, "). ", ##__VA_ARGS__}); \
    } while (0)

#define TORCH_CHECK(cond, ...) JTN_CHECK(JTN_RAISE_RUNTIME, cond, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) JTN_CHECK(JTN_RAISE_VALUE, cond, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(cond, ...) JTN_CHECK(JTN_RAISE_INDEX, cond, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) JTN_CHECK(JTN_RAISE_TYPE, cond, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) JTN_CHECK(JTN_RAISE_NOT_IMPLEMENTED, cond, ##__VA_ARGS__)
#define TORCH_CHECK_EQ(a, b, ...) JTN_CHECK_COMPARED(a, ==, b, ##__VA_ARGS__)
#define TORCH_CHECK_NE(a, b, ...) JTN_CHECK_COMPARED(a, !=, b, ##__VA_ARGS__)
#define TORCH_CHECK_LT(a, b, ...) JTN_CHECK_COMPARED(a, <, b, ##__VA_ARGS__)
#define TORCH_CHECK_LE(a, b, ...) JTN_CHECK_COMPARED(a, <=, b, ##__VA_ARGS__)
#define TORCH_CHECK_GT(a, b, ...) JTN_CHECK_COMPARED(a, >, b, ##__VA_ARGS__)
#define TORCH_CHECK_GE(a, b, ...) JTN_CHECK_COMPARED(a, >=, b, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(cond, ...) JTN_CHECK(JTN_RAISE_RUNTIME, cond, ##__VA_ARGS__)
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(cond, ...) \
    do {                                            \
    } while (0)
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(cond, ...) TORCH_INTERNAL_ASSERT(cond, ##__VA_ARGS__)
#endif
#define STD_TORCH_CHECK(cond, ...) TORCH_CHECK(cond, ##__VA_ARGS__)
#define AT_ASSERT(cond, ...) JTN_CHECK(JTN_RAISE_RUNTIME, cond, ##__VA_ARGS__)
#define AT_ASSERTM(cond, ...) JTN_CHECK(JTN_RAISE_RUNTIME, cond, ##__VA_ARGS__)
#define AT_ERROR(...) ::jitney::fail(JTN_RAISE_RUNTIME, {__VA_ARGS__})
#define C10_THROW_ERROR(type, message) throw ::c10::type(message)
#define TORCH_WARN(...) ::jitney::warn({__VA_ARGS__})
#define TORCH_WARN_ONCE(...)                                                              \
    do {                                                                                  \
        static const bool jtn_warned_ = (::jitney::warn({__VA_ARGS__}), true);            \
        (void)jtn_warned_;                                                                \
    } while (0)

#define C10_LIKELY(expr) (__builtin_expect(static_cast<bool>(expr), 1))
#define C10_UNLIKELY(expr) (__builtin_expect(static_cast<bool>(expr), 0))
#define C10_UNUSED __attribute__((unused))
#define C10_NOINLINE __attribute__((noinline))
#define C10_ALWAYS_INLINE __attribute__((always_inline)) inline
#define C10_RESTRICT __restrict
#define C10_EXPORT __attribute__((visibility("default")))
#define C10_API
#define TORCH_API
#ifndef C10_HOST_DEVICE
#define C10_HOST_DEVICE
#define C10_HOST
#define C10_DEVICE
#endif
#endif
