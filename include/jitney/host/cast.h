/* cast.h — a C++ type and a jtn_value: the type's text, one in, the other out. One small specialisation each; a type without one
 * is a compile error that says so. */
#ifndef JITNEY_HOST_CAST_H
#define JITNEY_HOST_CAST_H

#include "jitney/host/tensor.h"

JTN_HIDDEN_BEGIN
namespace jitney {

/* In: `in` gives a T (or a `storage` that converts to T and lives as long as the call). Out: `out` writes *v.
 * node spells the type. */
template <class T> struct caster {
    static_assert(sizeof(T) == 0, "this C++ type cannot cross to Python through Jitney's own headers: docs/usage.md lists those that can");
};

/* A type's text as a tree: "list", {"tensor"}. */
struct type_node {
    const char *head;
    const type_node *const *inner = nullptr;
    size_t count = 0;
};

[[noreturn]] __attribute__((cold)) JTN_RT void wrong_length(size_t wanted, size_t got);
JTN_RT int64_t integer_in(const jtn_value &v);
JTN_RT double float_in(const jtn_value &v);
JTN_RT void *pointer_in(const jtn_value &v);
JTN_RT std::string_view str_in(const jtn_value &v);
JTN_RT size_t list_in(const jtn_value &v);
JTN_RT at::Tensor tensor_in(const jtn_value &v);
JTN_RT at::Scalar scalar_in(const jtn_value &v);
JTN_RT void none_out(jtn_value *v);
JTN_RT void str_out(jtn_value *v, void *call, std::string_view s);
JTN_RT jtn_value *list_out(jtn_value *v, void *call, size_t count);

#define JTN_CASTER(type, name, in_expression, out_statements)                               \
    template <> struct caster<type> {                                                       \
        using storage = type;                                                               \
        static constexpr type_node node{name};                                              \
        static type in([[maybe_unused]] const jtn_value &v) { return in_expression; }       \
        static void out(jtn_value *v, [[maybe_unused]] void *call, [[maybe_unused]] type x) \
        {                                                                                   \
            v->size = 0;                                                                    \
            out_statements                                                                  \
        }                                                                                   \
    };
#define JTN_CASTER_INT(type, name) JTN_CASTER(type, name, static_cast<type>(integer_in(v)), v->kind = JTN_INT; v->as.i = x;)
#define JTN_CASTER_UINT64(type) \
    JTN_CASTER(type, "u64", static_cast<type>(integer_in(v)), v->as.u = x; v->kind = v->as.i < 0 ? JTN_UINT : JTN_INT;)

JTN_CASTER(bool, "bool", integer_in(v) != 0, v->kind = JTN_BOOL; v->as.i = x;)
JTN_CASTER_INT(char, "i8")
JTN_CASTER_INT(signed char, "i8")
JTN_CASTER_INT(unsigned char, "u8")
JTN_CASTER_INT(short, "i16")
JTN_CASTER_INT(unsigned short, "u16")
JTN_CASTER_INT(int, "i32")
JTN_CASTER_INT(unsigned, "u32")
JTN_CASTER_INT(long, sizeof(long) == 8 ? "i64" : "i32")
JTN_CASTER_INT(long long, "i64")
JTN_CASTER_UINT64(unsigned long)
JTN_CASTER_UINT64(unsigned long long)
JTN_CASTER(float, "f32", static_cast<float>(float_in(v)), v->kind = JTN_FLOAT; v->as.d = static_cast<double>(x);)
JTN_CASTER(double, "f64", float_in(v), v->kind = JTN_FLOAT; v->as.d = x;)
JTN_CASTER(long double, "f64", float_in(v), v->kind = JTN_FLOAT; v->as.d = static_cast<double>(x);)
JTN_CASTER(c10::Half, "f32", c10::Half(static_cast<float>(float_in(v))), v->kind = JTN_FLOAT; v->as.d = static_cast<float>(x);)
JTN_CASTER(c10::BFloat16, "f32", c10::BFloat16(static_cast<float>(float_in(v))), v->kind = JTN_FLOAT;
           v->as.d = static_cast<float>(x);)
JTN_CASTER(std::string, "str", std::string(str_in(v)), str_out(v, call, x);)
JTN_CASTER(std::string_view, "str", str_in(v), str_out(v, call, x);)
JTN_CASTER(std::nullptr_t, "none", nullptr, none_out(v);)
JTN_CASTER(std::nullopt_t, "none", std::nullopt, none_out(v);)
JTN_CASTER(at::Tensor, "tensor", tensor_in(v), v->as.t = x.give_away(); v->kind = v->as.t ? JTN_TENSOR : JTN_NONE;)
#undef JTN_CASTER_INT
#undef JTN_CASTER_UINT64

/* const char * is a string, every other pointer an address. */
template <class T> struct caster<T *> {
    using storage = T *;
    static constexpr bool is_str = std::is_same_v<std::remove_cv_t<T>, char>;
    static constexpr type_node node{is_str ? "str" : "ptr"};
    static T *in(const jtn_value &v)
    {
        if constexpr (is_str)
            return const_cast<T *>(str_in(v).data());
        else
            return static_cast<T *>(pointer_in(v));
    }
    static void out(jtn_value *v, void *call, T *x)
    {
        if constexpr (is_str) {
            if (x)
                str_out(v, call, x);
            else
                none_out(v);
        } else {
            *v = jtn_value{JTN_PTR, 0, {}};
            v->as.p = const_cast<void *>(static_cast<const volatile void *>(x));
        }
    }
};

JTN_CASTER(at::Scalar, "any", scalar_in(v), *v = x.value();)
#undef JTN_CASTER

template <class... T> struct inner_nodes {
    static constexpr const type_node *list[] = {&caster<T>::node..., nullptr};
};

template <class T> struct caster<std::optional<T>> {
    using storage = std::optional<typename caster<T>::storage>;
    static constexpr type_node node{"optional", inner_nodes<T>::list, 1};
    static storage in(const jtn_value &v)
    {
        if (v.kind == JTN_NONE)
            return std::nullopt;
        return storage(caster<T>::in(v));
    }
    static void out(jtn_value *v, void *call, std::optional<T> x)
    {
        if (x)
            caster<T>::out(v, call, std::move(*x));
        else
            none_out(v);
    }
};

template <class T> struct caster<std::vector<T>> {
    using storage = std::vector<T>;
    static constexpr type_node node{"list", inner_nodes<T>::list, 1};
    static storage in(const jtn_value &v)
    {
        size_t count = list_in(v);
        storage list;
        list.reserve(count);
        for (size_t i = 0; i < count; i++)
            list.push_back(caster<T>::in(v.as.list[i]));
        return list;
    }
    static void out(jtn_value *v, void *call, std::vector<T> x)
    {
        jtn_value *items = list_out(v, call, x.size());
        for (size_t i = 0; i < x.size(); i++)
            caster<T>::out(items + i, call, std::move(x[i]));
    }
};

template <class T, size_t N> struct caster<std::array<T, N>> {
    using storage = std::array<T, N>;
    static constexpr type_node node{"list", inner_nodes<T>::list, 1};
    static storage in(const jtn_value &v)
    {
        storage array{};
        if (list_in(v) != N)
            wrong_length(N, v.size);
        for (size_t i = 0; i < N; i++)
            array[i] = caster<T>::in(v.as.list[i]);
        return array;
    }
    static void out(jtn_value *v, void *call, std::array<T, N> x)
    {
        jtn_value *items = list_out(v, call, N);
        for (size_t i = 0; i < N; i++)
            caster<T>::out(items + i, call, std::move(x[i]));
    }
};

/* The elements live in a vector of their own for the time of the call. */
template <class T> struct caster<c10::ArrayRef<T>> {
    struct storage {
        std::vector<T> list;
        operator c10::ArrayRef<T>() const { return c10::ArrayRef<T>(list); }
    };
    static constexpr type_node node{"list", inner_nodes<T>::list, 1};
    static storage in(const jtn_value &v) { return storage{caster<std::vector<T>>::in(v)}; }
    static void out(jtn_value *v, void *call, c10::ArrayRef<T> x) { caster<std::vector<T>>::out(v, call, x.vec()); }
};

template <class... T> struct tuple_caster {
    static constexpr type_node node{"tuple", inner_nodes<T...>::list, sizeof...(T)};
    template <class Tuple, size_t... I> static Tuple in(const jtn_value &v, std::index_sequence<I...>)
    {
        if (list_in(v) != sizeof...(T))
            wrong_length(sizeof...(T), v.size);
        return Tuple(caster<T>::in(v.as.list[I])...);
    }
    template <class Tuple, size_t... I> static void out(jtn_value *v, void *call, Tuple &x, std::index_sequence<I...>)
    {
        [[maybe_unused]] jtn_value *items = list_out(v, call, sizeof...(T));
        (caster<T>::out(items + I, call, std::move(std::get<I>(x))), ...);
    }
};

#define JTN_TUPLE_CASTER(head, tuple, pack)                                                                         \
    template <head> struct caster<tuple> : tuple_caster<pack> {                                                     \
        using storage = tuple;                                                                                      \
        using base = tuple_caster<pack>;                                                                            \
        using indices = std::make_index_sequence<std::tuple_size_v<storage>>;                                       \
        static storage in(const jtn_value &v) { return base::template in<storage>(v, indices()); }                  \
        static void out(jtn_value *v, void *call, storage x) { base::template out<storage>(v, call, x, indices()); } \
    };
#define JTN_COMMA ,
JTN_TUPLE_CASTER(class... T, std::tuple<T...>, T...)
JTN_TUPLE_CASTER(class A JTN_COMMA class B, std::pair<A JTN_COMMA B>, A JTN_COMMA B)
#undef JTN_COMMA
#undef JTN_TUPLE_CASTER

/* The node of a parameter or result as declared. */
template <class T> struct node_of {
    static constexpr const type_node *value = &caster<std::remove_cv_t<std::remove_reference_t<T>>>::node;
};
inline constexpr type_node none_node{"none"};
template <> struct node_of<void> {
    static constexpr const type_node *value = &none_node;
};

} // namespace jitney
JTN_HIDDEN_END
#endif
