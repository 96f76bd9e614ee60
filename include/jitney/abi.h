/* abi.h — what a compiled op and the library say to each other.
 *
 * A shared object built from a user's C++ exports one function, jtn_ext_init. The library calls it once after loading,
 * hands over one table of C functions (jtn_abi) and receives the functions the user defined. The object links against
 * nothing: whatever it needs of the library it calls through the table. Exceptions never cross: a trampoline catches
 * everything, reports it through set_error and returns non-zero.
 *
 * The table only grows at the end. An op checks `version`; a library that knows more fields sets a larger `size`. */
#ifndef JITNEY_ABI_H
#define JITNEY_ABI_H

#include "jitney/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define JTN_ABI_VERSION 1
#define JTN_EXT_INIT_SYMBOL "jtn_ext_init"

/* A tensor as ops see it. The op reads dl, numel and flags and counts references with jtn_abi.tensor_retain/release;
 * the rest is the library's. dl.byte_offset is 0 (folded into data) and dl.strides is never NULL when ndim > 0. */
#define JTN_TENSOR_CONTIGUOUS 1u    /* row-major and dense */
#define JTN_TENSOR_READ_ONLY 2u     /* the producer forbids writing (a read-only NumPy array) */
#define JTN_TENSOR_REQUIRES_GRAD 4u /* known only for tensors of a framework with autograd */

struct jtn_tensor {
    DLTensor dl;
    int64_t numel;
    uint32_t flags;    /* JTN_TENSOR_… */
    uint32_t refcount; /* changed atomically */
};

/* Which exception an op's failure becomes. */
typedef enum {
    JTN_RAISE_RUNTIME = 0,
    JTN_RAISE_TYPE = 1,
    JTN_RAISE_VALUE = 2,
    JTN_RAISE_INDEX = 3,
    JTN_RAISE_KEY = 4,
    JTN_RAISE_NOT_IMPLEMENTED = 5,
    JTN_RAISE_MEMORY = 6,
    JTN_RAISE_PENDING = 7 /* a table function already recorded the error: leave it as it is */
} jtn_raise;

/* Calls the user's function. args has exactly as many values as the definition has parameters (defaults filled in), each
 * of a kind its declared type allows. On success writes *result (a JTN_TENSOR result carries one reference that the caller
 * takes) and returns 0; on failure has called set_error and returns non-zero. `call` identifies the call for call_alloc. */
typedef int (*jtn_trampoline)(void *closure, void *call, const jtn_value *args, jtn_value *result);

/* Type text, in the names people read in help(): bool, i8…i64, u8…u64, f32, f64, str, tensor, none, any, ptr,
 * optional<T>, list<T>, tuple<A, B, …>. */
typedef struct jtn_param_def {
    const char *name;               /* NULL: positional only, shown as arg0, arg1, … */
    const char *type;               /* type text */
    const jtn_value *default_value; /* NULL: required. Tensors are never defaults; JTN_NONE is for optional<T>. */
} jtn_param_def;

typedef struct jtn_function_def {
    size_t struct_size;
    const char *name;
    const char *doc;     /* may be NULL */
    const char *returns; /* type text */
    size_t param_count;
    const jtn_param_def *params;
    jtn_trampoline call;
    void *closure; /* handed to call; must live as long as the object stays loaded */
} jtn_function_def;

typedef struct jtn_abi {
    uint32_t version; /* JTN_ABI_VERSION */
    uint32_t size;    /* sizeof(jtn_abi) of the library */

    /* -- only inside jtn_ext_init; every string is copied. Return 0, or non-zero with the error recorded. -- */
    int (*add_function)(void *registrar, const jtn_function_def *def); /* one name twice: overloads, tried in order */
    int (*add_value)(void *registrar, const char *name, const jtn_value *value); /* m.attr("x") = 3 */
    void (*set_doc)(void *registrar, const char *doc);

    /* -- any time an op runs -- */
    void (*set_error)(int raise, const char *message, size_t size);
    /* Memory for strings and lists in a result: valid until the result was taken over. NULL when out of memory. */
    void *(*call_alloc)(void *call, size_t bytes);
    void (*tensor_retain)(jtn_tensor *tensor);
    void (*tensor_release)(jtn_tensor *tensor); /* NULL is allowed */

    /* New uninitialised tensor of the framework of the call's tensors (torch where it is loaded, NumPy otherwise; plain
     * memory in a C program). strides NULL: row-major. device.device_id -1: the current one. */
    int (*tensor_empty)(int32_t ndim, const int64_t *sizes, const int64_t *strides, DLDataType dtype, DLDevice device,
                        int pinned, int requires_grad, jtn_tensor **out);
    /* A view: offset counts elements from the tensor's first. Keeps the base alive. Autograd sees a view. */
    int (*tensor_as_strided)(jtn_tensor *base, int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                             jtn_tensor **out);
    /* dst[...] = src, converting dtype, broadcasting, across devices. */
    int (*tensor_copy)(jtn_tensor *dst, jtn_tensor *src, int non_blocking);
    int (*tensor_fill)(jtn_tensor *tensor, const jtn_value *scalar);
    /* The stream work should go to on that device: the framework's current one; NULL handle is the legacy default. */
    int (*current_stream)(DLDevice device, void **out);
} jtn_abi;

/* What the object exports. Returns 0, or non-zero with the error recorded by set_error. */
typedef int (*jtn_ext_init_fn)(const jtn_abi *abi, void *registrar);

#ifdef __cplusplus
}
#endif
#endif
