/* bind.h — PYBIND11_MODULE and m.def: user's functions into definitions that the library takes over.
 *
 * For each function type the compiler makes one small body (arguments in, call, result out). Everything else is ordinary code:
 * one trampoline for all functions, one place that turns exceptions into errors. */
#ifndef JITNEY_HOST_BIND_H
#define JITNEY_HOST_BIND_H

#include "jitney/host/cast.h"

JTN_HIDDEN_BEGIN
namespace pybind11 {

/* ---- exceptions that name Python's ---- */
#define JTN_PY_ERROR_CLASSES(X)         \
    X(value_error, JTN_RAISE_VALUE)     \
    X(index_error, JTN_RAISE_INDEX)     \
    X(key_error, JTN_RAISE_KEY)         \
    X(type_error, JTN_RAISE_TYPE)       \
    X(cast_error, JTN_RAISE_RUNTIME)    \
    X(import_error, JTN_RAISE_RUNTIME)
#define JTN_X(name, kind)                                \
    class name : public c10::Error {                     \
    public:                                              \
        explicit name(std::string message = "");         \
        ~name() override;                                \
    };
JTN_PY_ERROR_CLASSES(JTN_X)
#undef JTN_X

/* Ops run with the interpreter's lock held; these change nothing. */
struct gil_scoped_release {
    gil_scoped_release() {}
    ~gil_scoped_release() {}
};
struct gil_scoped_acquire {
    gil_scoped_acquire() {}
    ~gil_scoped_acquire() {}
};

struct none {};
template <class... T> struct call_guard {};
enum class return_value_policy { automatic, automatic_reference, take_ownership, copy, move, reference, reference_internal };
struct kw_only {};
struct pos_only {};
struct mod_gil_not_used {
    explicit mod_gil_not_used(bool = true) {}
};

} // namespace pybind11
namespace jitney {
[[noreturn]] __attribute__((cold)) JTN_RT void tensor_default(const char *name);
}
namespace pybind11 {

struct arg_v;

struct arg {
    const char *name;
    constexpr explicit arg(const char *n) : name(n) {}
    template <class T> arg_v operator=(T &&value) const;
    arg &noconvert(bool = true) { return *this; }
    arg &none(bool = true) { return *this; }
};

/* An argument with a default, which stays until the module is set up. */
struct arg_v : arg {
    jtn_value value{JTN_NONE, 0, {}};
    explicit arg_v(const arg &base) : arg(base) {}
    template <class T> arg_v(const char *n, T &&x) : arg(n) { *this = arg(n) = std::forward<T>(x); }
};

template <class T> arg_v arg::operator=(T &&value) const
{
    using plain = std::decay_t<T>;
    arg_v with(*this);
    if constexpr (!std::is_same_v<plain, pybind11::none>)
        jitney::caster<plain>::out(&with.value, nullptr, std::forward<T>(value));
    if (with.value.kind == JTN_TENSOR)
        jitney::tensor_default(name);
    return with;
}

inline namespace literals {
constexpr arg operator"" _a(const char *name, size_t) { return arg(name); }
} // namespace literals

template <class... Args> struct overload_cast_impl {
    template <class R> constexpr auto operator()(R (*f)(Args...)) const { return f; }
    template <class R> constexpr auto operator()(R (*f)(Args...) noexcept) const { return f; }
};
template <class... Args> inline constexpr overload_cast_impl<Args...> overload_cast{};

} // namespace pybind11

namespace jitney {

/* ---- running a bound function ---- */

using body_fn = void (*)(void *target, void *call, const jtn_value *args, jtn_value *result);

/* The closure of the one trampoline; lives as long as the object is loaded. */
struct bound {
    body_fn body;
    void *target;
    void (*destroy)(void *target); /* NULL for plain functions */
    bound *next;
};

/* Called inside a catch block: whatever was thrown becomes the library's error. */
JTN_RT void report_exception();
JTN_RT int trampoline(void *closure, void *call, const jtn_value *args, jtn_value *result);

/* One argument during a call. A reference parameter refers into it. */
template <class A> struct argument {
    using plain = std::remove_cv_t<std::remove_reference_t<A>>;
    using storage = typename caster<plain>::storage;
    storage value;
    explicit argument(const jtn_value &v) : value(caster<plain>::in(v)) {}
    A get()
    {
        if constexpr (!std::is_same_v<storage, plain>)
            return static_cast<A>(value);
        else if constexpr (std::is_lvalue_reference_v<A>)
            return value;
        else
            return std::move(value);
    }
};
/* const ArrayRef<T> &: the view itself has to live somewhere too. */
template <class A> struct view_argument : argument<std::remove_cv_t<std::remove_reference_t<A>>> {
    using base = argument<std::remove_cv_t<std::remove_reference_t<A>>>;
    typename base::plain view;
    explicit view_argument(const jtn_value &v) : base(v), view(base::get()) {}
    A get() { return static_cast<A>(view); }
};
template <class A>
using argument_for = std::conditional_t<std::is_reference_v<A> && !std::is_same_v<typename argument<A>::storage,
                                                                                typename argument<A>::plain>,
                                        view_argument<A>, argument<A>>;

/* run returns a value: a reference result may refer into an argument. */
template <class F, class R, class... A> struct caller {
    static void destroy(void *target) { delete static_cast<F *>(target); }
    template <size_t... I> static std::decay_t<R> run(F &f, [[maybe_unused]] const jtn_value *args, std::index_sequence<I...>)
    {
        return f(argument_for<A>(args[I]).get()...);
    }
    static void body(void *target, [[maybe_unused]] void *call, const jtn_value *args, jtn_value *result)
    {
        F &f = *static_cast<F *>(target);
        if constexpr (std::is_void_v<R>) {
            run(f, args, std::make_index_sequence<sizeof...(A)>());
            none_out(result);
        } else {
            caster<std::remove_cv_t<std::remove_reference_t<R>>>::out(
                result, call, run(f, args, std::make_index_sequence<sizeof...(A)>()));
        }
    }
};
/* Plain functions: the target is the address itself. */
template <class R, class... A> struct caller<R (*)(A...), R, A...> {
    using F = R (*)(A...);
    template <size_t... I> static std::decay_t<R> run(F f, [[maybe_unused]] const jtn_value *args, std::index_sequence<I...>)
    {
        return f(argument_for<A>(args[I]).get()...);
    }
    static void body(void *target, [[maybe_unused]] void *call, const jtn_value *args, jtn_value *result)
    {
        F f = reinterpret_cast<F>(target);
        if constexpr (std::is_void_v<R>) {
            run(f, args, std::make_index_sequence<sizeof...(A)>());
            none_out(result);
        } else {
            caster<std::remove_cv_t<std::remove_reference_t<R>>>::out(
                result, call, run(f, args, std::make_index_sequence<sizeof...(A)>()));
        }
    }
};

/* ---- defining one ---- */

/* The result's type, then the parameters'. */
template <class R, class... A> struct signature {
    static constexpr const type_node *types[] = {node_of<R>::value, node_of<A>::value...};
};

/* What m.def says besides the function. */
struct extras {
    static constexpr size_t max_args = 64;
    const char *doc = nullptr;
    size_t count = 0;
    const char *names[max_args];
    const jtn_value *defaults[max_args];

    void add(const char *text) { doc = text; }
    void add(const pybind11::arg &a);
    void add(const pybind11::arg_v &a);
    void add(pybind11::return_value_policy) {}
    void add(pybind11::kw_only) {}
    void add(pybind11::pos_only) {}
    template <class... T> void add(pybind11::call_guard<T...>) {}

private:
    void add_arg(const char *name, const jtn_value *value);
};

} // namespace jitney

namespace pybind11 {

class module_;

/* m.attr("x") = value; */
struct attribute {
    void *registrar;
    const char *name;
    template <class T> void operator=(T &&value)
    {
        jtn_value v{JTN_NONE, 0, {}};
        jitney::caster<std::decay_t<T>>::out(&v, nullptr, std::forward<T>(value));
        jitney::check_call(jitney::abi->add_value(registrar, name, &v));
    }
};

/* m.doc() = "…"; */
struct doc_attribute {
    void *registrar;
    void operator=(const char *text);
    void operator=(const std::string &text);
};

class module_ {
public:
    template <class F, class... Extra> module_ &def(const char *name, F &&f, const Extra &...extra)
    {
        jitney::extras more;
        (more.add(extra), ...);
        define(name, more, std::forward<F>(f));
        return *this;
    }
    attribute attr(const char *name) { return attribute{registrar_, name}; }
    template <class T> void add_object(const char *name, T &&value) { attr(name) = std::forward<T>(value); }
    doc_attribute doc() { return doc_attribute{registrar_}; }

    explicit module_(void *registrar) : registrar_(registrar) {}
    module_(const module_ &) = delete;
    ~module_();
    bool wishes = false; /* functions named from outside: a hand-written definition of the same name goes before */

private:
    struct seen_name {
        std::string name;
        seen_name *next;
    };
    bool take(const char *name);
    void add(const char *name, const jitney::extras &more, jitney::body_fn body, void *target,
             const jitney::type_node *const *types, size_t count, void (*destroy)(void *) = nullptr);

    template <class R, class... A> void define(const char *name, const jitney::extras &more, R (*f)(A...))
    {
        using call = jitney::caller<R (*)(A...), R, A...>;
        add(name, more, &call::body, reinterpret_cast<void *>(f), jitney::signature<R, A...>::types, sizeof...(A));
    }
    template <class R, class... A> void define(const char *name, const jitney::extras &more, R (*f)(A...) noexcept)
    {
        define(name, more, static_cast<R (*)(A...)>(f));
    }
    template <class F, class R, class C, class... A>
    void define_object(const char *name, const jitney::extras &more, F f, R (C::*)(A...))
    {
        using call = jitney::caller<F, R, A...>;
        add(name, more, &call::body, new F(std::move(f)), jitney::signature<R, A...>::types, sizeof...(A), &call::destroy);
    }
    template <class F, class R, class C, class... A>
    void define_object(const char *name, const jitney::extras &more, F f, R (C::*)(A...) const)
    {
        define_object(name, more, std::move(f), static_cast<R (F::*)(A...)>(nullptr));
    }
    template <class F, class R, class C, class... A>
    void define_object(const char *name, const jitney::extras &more, F f, R (C::*)(A...) const noexcept)
    {
        define_object(name, more, std::move(f), static_cast<R (F::*)(A...)>(nullptr));
    }
    template <class F, std::enable_if_t<std::is_class_v<std::decay_t<F>>, int> = 0>
    void define(const char *name, const jitney::extras &more, F &&f)
    {
        using plain = std::decay_t<F>;
        define_object<plain>(name, more, std::forward<F>(f), &plain::operator());
    }

    void *registrar_;
    seen_name *seen_ = nullptr;
};
using module = module_;

} // namespace pybind11

namespace torch {
/* torch's wrapper adds error translation, which every function has here. */
template <class F> constexpr std::decay_t<F> wrap_pybind_function(F &&f) { return std::forward<F>(f); }
template <class F> constexpr std::decay_t<F> wrap_pybind_function_no_gil(F &&f) { return std::forward<F>(f); }
} // namespace torch

namespace jitney {

/* ---- a module's bodies: hand-written ones first, in the order of their files; then the wishes ---- */
struct binder {
    void (*body)(pybind11::module_ &);
    bool wish;
    binder *next = nullptr;
    static inline binder *first = nullptr, *last = nullptr;

    explicit binder(void (*b)(pybind11::module_ &), bool w = false);
};

} // namespace jitney
JTN_HIDDEN_END

/* The one thing a module exports. */
extern "C" __attribute__((visibility("default"))) JTN_RT int jtn_ext_init(const jtn_abi *table, void *registrar);

#define JTN_MODULE_BODY_(n, variable)                                                \
    static void JTN_PASTE(jtn_module_, n)(::pybind11::module_ &);                    \
    static ::jitney::binder JTN_PASTE(jtn_binder_, n)(&JTN_PASTE(jtn_module_, n));   \
    static void JTN_PASTE(jtn_module_, n)([[maybe_unused]] ::pybind11::module_ & variable)
#define JTN_MODULE_BODY(n, variable) JTN_MODULE_BODY_(n, variable)

/* The file's name makes the module's name, so the first argument is not needed. */
#define PYBIND11_MODULE(name, variable, ...) JTN_MODULE_BODY(__COUNTER__, variable)

/* What Jitney appends for functions=[…]. */
#define JTN_BIND_(n, function, doc)                                                                 \
    static ::jitney::binder JTN_PASTE(jtn_wish_, n)(                                                \
        +[](::pybind11::module_ &m) { m.def(#function, &function, doc); }, true);
#define JTN_BIND__(n, function, doc) JTN_BIND_(n, function, doc)
#define JTN_BIND(function, doc) JTN_BIND__(__COUNTER__, function, doc)
#endif
