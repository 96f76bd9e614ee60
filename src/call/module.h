/* module.h — an artifact made callable: its functions, its globals, loaded where and when they are needed. */
#ifndef JTN_CALL_MODULE_H
#define JTN_CALL_MODULE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cache/cache.h"
#include "device/target.h"
#include "jitney/abi.h"
#include "model/artifact.h"

/* An op's declared type, parsed from its text once. */
typedef enum {
    JTN_OP_NONE, JTN_OP_BOOL, JTN_OP_INT, JTN_OP_UINT, JTN_OP_FLOAT, JTN_OP_STR, JTN_OP_TENSOR, JTN_OP_PTR, JTN_OP_ANY,
    JTN_OP_OPTIONAL, JTN_OP_LIST, JTN_OP_TUPLE
} jtn_op_kind;
typedef struct jtn_op_type {
    jtn_op_kind kind;
    uint8_t bits;               /* INT, UINT, FLOAT */
    struct jtn_op_type *inner;  /* OPTIONAL, LIST: 1; TUPLE: inner_count */
    size_t inner_count;
} jtn_op_type;
jtn_status jtn__op_type_parse(const char *text, jtn_op_type *out);
void jtn__op_type_deinit(jtn_op_type *type);

typedef struct jtn_op_param {
    char *name;   /* "arg0" when positional_only */
    char *text;   /* type text */
    jtn_op_type type;
    bool has_default, positional_only;
    jtn_value default_value; /* owned: strings and lists copied */
} jtn_op_param;

/* One overload of an op. */
typedef struct jtn_op {
    char *doc, *returns_text;
    jtn_op_type returns;
    jtn_op_param *params;
    size_t param_count;
    jtn_trampoline call;
    void *closure;
    struct jtn_op *next; /* the next overload */
} jtn_op;

struct jtn_function {
    jtn_function_kind kind;
    jtn_module *module;
    char *name, *doc, *signature;
    /* JTN_FUNCTION_OP */
    jtn_op *op;
    /* JTN_FUNCTION_KERNEL and JTN_FUNCTION_C */
    const jtn_param *params;
    size_t param_count;
    /* JTN_FUNCTION_KERNEL */
    const jtn_kernel_info *info;
    _Atomic(jtn_kernel *) kernel; /* NULL until the image was loaded */
    /* JTN_FUNCTION_C */
    const jtn_c_info *c_info;
    void *cif; /* libffi's, prepared once */
    void *address;
    void *python; /* the bridge's own; borrowed */
};

typedef struct jtn_named_value {
    char *name;
    jtn_value value;
} jtn_named_value;

struct jtn_module {
    jtn_runtime *rt;
    atomic_int references;
    char *name, *path;
    char *doc;
    const char *origin;
    jtn_entry entry;       /* keeps file map and payload alive */
    jtn_artifact artifact;
    void *host;            /* dlopen handle or NULL */
    const jtn_target *target;
    pthread_mutex_t lock;  /* functions and images made later */
    jtn_loaded **loaded;   /* one per image; NULL until needed */
    jtn_function **functions;
    size_t function_count;
    jtn_named_value *values; /* m.attr("x") = … */
    size_t value_count;
    jtn_list roots;        /* for freshness */
    /* set by load.c: compiles a template instance; NULL when there is no source (a copied file) */
    jtn_status (*instantiate)(jtn_module *module, const char *expression, jtn_module **out);
    jtn_unit *unit;        /* owned copy for instantiate; may be NULL */
    /* set by the runtime: called by the last jtn__module_release before anything is taken apart; may be NULL */
    void (*forget)(jtn_module *module);
    jtn_module **instances; /* owned; their functions are found by name */
    size_t instance_count;
};

/* Takes the entry (zeroed in the caller's hands). Decodes, dlopens host code and runs its jtn_ext_init. */
jtn_status jtn__module_new(jtn_runtime *rt, jtn_entry *entry, const jtn_target *target, jtn_module **out);
void jtn__module_retain(jtn_module *module);
void jtn__module_release(jtn_module *module);
/* Loads the kernel's image if that has not happened; safe from several threads. */
jtn_status jtn__function_prepare(jtn_function *fn);
/* The loaded form of image number `image`, loading it if that has not happened; safe from several threads. */
jtn_status jtn__module_image(jtn_module *module, uint32_t image, jtn_loaded **out);
/* Adds an instance module's functions to what module finds. Takes the reference. */
jtn_status jtn__module_adopt(jtn_module *module, jtn_module *instance);
/* Never compiles; NULL when there is none of that name (names compare with blanks squeezed: "scale<float,4>"). */
jtn_function *jtn__module_lookup(jtn_module *module, const char *name);

/* Where ops get tensors from: the bridge of the framework in the process, or plain memory. */
typedef struct jtn_framework {
    int (*tensor_empty)(int32_t ndim, const int64_t *sizes, const int64_t *strides, DLDataType dtype, DLDevice device,
                        int pinned, int requires_grad, jtn_tensor **out);
    int (*tensor_as_strided)(jtn_tensor *base, int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                             jtn_tensor **out);
    int (*tensor_copy)(jtn_tensor *dst, jtn_tensor *src, int non_blocking);
    int (*tensor_fill)(jtn_tensor *tensor, const jtn_value *scalar);
    int (*current_stream)(DLDevice device, void **out);
} jtn_framework;
void jtn__framework_set(const jtn_framework *framework); /* NULL: plain memory; process-wide */

/* The library's side of a jtn_tensor: the public head, then this. */
typedef struct jtn_tensor_box {
    jtn_tensor head;
    void (*destroy)(struct jtn_tensor_box *box); /* when the last reference goes; frees the box itself */
    void *owner;          /* what keeps the memory alive: a PyObject, a base box, a malloc'ed block */
    int64_t inline_dims[2 * 8]; /* shape and strides of up to 8 dimensions */
} jtn_tensor_box;
extern const jtn_abi jtn__abi; /* the table handed to ops */
/* Fills head.numel and CONTIGUOUS from head.dl; gives dl.strides when NULL (into inline_dims when it fits, else ARGUMENT). */
jtn_status jtn__tensor_box_finish(jtn_tensor_box *box);
/* The error an op reported through set_error in this thread: which exception, and its text. Resets it. */
int jtn__call_raise(const char **message);

/* The memory behind call_alloc: one per running call, freed at its end. Zero-initialise. */
typedef struct jtn_call_arena {
    struct jtn_call_block *blocks;
} jtn_call_arena;
void jtn__call_arena_deinit(jtn_call_arena *arena); /* the `call` of a trampoline is a jtn_call_arena * */

#endif
