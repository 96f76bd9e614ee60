/* jitney.h — compile C, C++ and CUDA source at run time, keep the result on disk, call it.
 *
 *     #include <jitney/jitney.h>
 *
 *     jtn_runtime *rt;  jtn_unit *unit;  jtn_module *mod;  jtn_function *dot;
 *     jtn_open(NULL, &rt);
 *     jtn_unit_new(rt, "demo", &unit);
 *     jtn_unit_add_text(unit, "dot.c", "float dot(const float *a, const float *b, int n)"
 *                       "{ float s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }", JTN_WHOLE);
 *     jtn_unit_add_function(unit, "float dot(const float *a, const float *b, int n)", NULL);
 *     jtn_load(rt, unit, &mod);                        // compiles once, ever; afterwards a file read
 *     jtn_module_find(mod, "dot", &dot);
 *     float x[2] = {1, 2};  jtn_value result;
 *     jtn_call(dot, (jtn_value[]){jtn_ptr(x), jtn_ptr(x), jtn_int(2)}, 3, &result);   // result.as.d == 5.0
 *
 * The shape of this interface: a *unit* says what to compile, a *module* is what came of it, a *function* knows its own
 * types, so a call is checked against them and never against the caller's hopes. Handles are opaque, everything that can
 * fail returns a jtn_status, and structs that you fill begin with their own size so that they can grow.
 *
 * Threads: every function may be called from any thread; one unit must not be changed by two threads at once.
 * Ownership: what an …_new, …_open or jtn_load gave you, you free with the matching function; free and close accept NULL.
 * Strings that are returned belong to the handle they were asked of, and live as long as it does. */
#ifndef JITNEY_H
#define JITNEY_H

#include <stddef.h>
#include <stdint.h>

#include "jitney/value.h"

#ifdef __cplusplus
extern "C" {
#endif

#define JTN_VERSION_MAJOR 0
#define JTN_VERSION_MINOR 1
#define JTN_VERSION_PATCH 0

#if defined(__GNUC__)
#define JTN_API __attribute__((visibility("default")))
#else
#define JTN_API
#endif

/* ---------------------------------------------------------------- status and errors ---- */

/* X(name, value, text, Python exception, exit code of the command line) */
#define JTN_STATUS_LIST(X)                                                    \
    X(OK, 0, "success", "", 0)                                                \
    X(ERROR_ARGUMENT, 1, "bad argument", "ArgumentError", 2)                  \
    X(ERROR_COMPILE, 2, "compilation failed", "CompileError", 3)              \
    X(ERROR_DEVICE, 3, "device error", "DeviceError", 4)                      \
    X(ERROR_CACHE, 4, "cache error", "CacheError", 5)                         \
    X(ERROR_NOT_FOUND, 5, "not found", "NotFoundError", 6)                    \
    X(ERROR_TOOL, 6, "a compiler, library or driver is missing", "ToolError", 7) \
    X(ERROR_UNSUPPORTED, 7, "not supported", "UnsupportedError", 8)           \
    X(ERROR_CALL, 8, "the called function failed", "CallError", 9)            \
    X(ERROR_IO, 9, "input or output failed", "JitneyError", 10)               \
    X(ERROR_MEMORY, 10, "out of memory", "MemoryError", 11)                   \
    X(ERROR_INTERNAL, 11, "internal error", "JitneyError", 12)

typedef enum {
#define JTN_STATUS_ENUM(name, value, text, exception, code) JTN_##name = value,
    JTN_STATUS_LIST(JTN_STATUS_ENUM)
#undef JTN_STATUS_ENUM
} jtn_status;

/* What went wrong in this thread's last failed call: what happened, to what, what to do. Never NULL; "" before any
 * failure. Valid until this thread's next failing call. A success leaves it alone. */
JTN_API const char *jtn_last_error(void);

/* "ERROR_COMPILE" and the like; "UNKNOWN" for a number that is none. Never NULL. */
JTN_API const char *jtn_status_name(jtn_status status);

typedef enum { JTN_SEVERITY_NOTE = 0, JTN_SEVERITY_WARNING = 1, JTN_SEVERITY_ERROR = 2 } jtn_severity;

/* One finding of a compiler, in the user's own coordinates. */
typedef struct jtn_diagnostic {
    size_t struct_size;  /* set by the caller: sizeof(jtn_diagnostic) */
    const char *file;    /* as the user named it; "" when the compiler named none */
    int line, column;    /* from 1; 0 when unknown */
    jtn_severity severity;
    const char *message; /* one line */
    const char *excerpt; /* source line, newline, caret line; "" when not known */
} jtn_diagnostic;

/* The findings of this thread's last failed jtn_load or jtn_module_find, errors and warnings in the compiler's order.
 * Strings are valid until this thread's next load. jtn_diagnostic_at fails with ERROR_ARGUMENT past the end. */
JTN_API size_t jtn_diagnostic_count(void);
JTN_API jtn_status jtn_diagnostic_at(size_t index, jtn_diagnostic *out);

/* Everything the compilers printed in this thread's last load that compiled something, failed or not (so warnings of a
 * success too). Never NULL. Valid until this thread's next load. */
JTN_API const char *jtn_last_log(void);

/* ---------------------------------------------------------------- runtime ---- */

typedef struct jtn_runtime jtn_runtime;

/* Receives one line without its newline. Called from whichever thread is building; must not call back into the library. */
typedef void (*jtn_log_fn)(void *arg, int level, const char *line); /* level: 0 error, 1 warning, 2 info, 3 debug */

typedef struct jtn_options {
    size_t struct_size;
    const char *cache_dir;   /* NULL: JITNEY_CACHE_DIR, else $XDG_CACHE_HOME/jitney, else ~/.cache/jitney */
    const char *cache_mode;  /* NULL: JITNEY_CACHE, else "write"; "off", "read" (never store), "write" */
    const char *search_path; /* NULL, or folders joined by ':' that hold nvidia/…/lib and nvidia/…/include (a Python
                                site-packages): searched for NVRTC and the CUDA headers */
    const char *data_dir;    /* NULL: found from where libjitney.so lies; the folder with Jitney's own headers */
    const char *host_abi;    /* NULL: none; text that goes into the key of host code when the process asks for it
                                (Python's SOABI, torch's version) */
    jtn_log_fn log;          /* NULL: standard error */
    void *log_arg;
} jtn_options;

/* Opens the library. options NULL: all defaults. The process has one runtime: a further open returns the same one, its
 * options ignored, and counts. Starts nothing: no driver, no compiler, no thread. Errors: ARGUMENT, MEMORY. */
JTN_API jtn_status jtn_open(const jtn_options *options, jtn_runtime **out);

/* Gives back one open. Modules still open keep working; the runtime goes with the last of them. */
JTN_API void jtn_close(jtn_runtime *rt);

/* ---------------------------------------------------------------- unit: what to compile ---- */

typedef struct jtn_unit jtn_unit;

#define JTN_WHOLE ((size_t)-1) /* as a size: the text ends with its NUL */

/* name: of the module: letters, digits, '_' (and '.' between parts, the last of which names the file). Errors: ARGUMENT. */
JTN_API jtn_status jtn_unit_new(jtn_runtime *rt, const char *name, jtn_unit **out);
JTN_API void jtn_unit_free(jtn_unit *unit);

/* Adds a source. The name's ending tells the language: .c; .cu and .cuh for CUDA; anything else is C++. A file is read at
 * jtn_load, so that what was hashed is what is compiled. A text is copied; its name is what diagnostics show.
 * Errors: ARGUMENT, MEMORY (a file that cannot be read fails in jtn_load: NOT_FOUND). */
JTN_API jtn_status jtn_unit_add_file(jtn_unit *unit, const char *path);
JTN_API jtn_status jtn_unit_add_text(jtn_unit *unit, const char *name, const char *text, size_t size);

/* Names a function of the source to make callable. Either a bare name, of a C++ function whose types the compiler knows
 * (bound as m.def would) or of a __global__ function (found anyway; naming it documents it), or a C prototype
 * ("float dot(const float *a, const float *b, int n)"), which the compiler checks against the definition.
 * doc: may be NULL. Errors: ARGUMENT. */
JTN_API jtn_status jtn_unit_add_function(jtn_unit *unit, const char *function, const char *doc);

typedef enum {
    JTN_OPTION_CFLAGS = 0,      /* for the host compiler, split at blanks as a shell would ('' and "" quote); "" is nothing */
    JTN_OPTION_CUDA_CFLAGS = 1, /* for device code, in nvcc's spellings; translated or dropped with a note at level info */
    JTN_OPTION_LDFLAGS = 2,     /* for the linker */
    JTN_OPTION_INCLUDE_DIR = 3, /* one folder, for both compilers; relative to the current folder */
    JTN_OPTION_DEFINE = 4,      /* NAME or NAME=VALUE, for both compilers */
    JTN_OPTION_ARCH = 5,        /* "sm_90", "90", "9.0", "sm_90a", "native"; default: JITNEY_ARCH, else the current GPU */
    JTN_OPTION_TARGET = 6,      /* "cuda" or "host"; default: JITNEY_TARGET, else cuda */
    JTN_OPTION_VERBOSE = 7      /* "1": tell what is going on through the log at level info */
} jtn_option;

/* Adds one option; all but ARCH, TARGET and VERBOSE may be given many times and keep their order. Errors: ARGUMENT. */
JTN_API jtn_status jtn_unit_add_option(jtn_unit *unit, jtn_option option, const char *value);

/* ---------------------------------------------------------------- load: from unit to module ---- */

typedef struct jtn_module jtn_module;
typedef struct jtn_function jtn_function;

/* Finds the unit's result in this process, then on disk, else compiles it and stores it. Close the module when done.
 * Errors: COMPILE (see jtn_diagnostic_at, jtn_last_log), TOOL, NOT_FOUND (a source), DEVICE, UNSUPPORTED, MEMORY. A cache
 * that cannot be used is never an error: it is said once through the log and the load goes on without. */
JTN_API jtn_status jtn_load(jtn_runtime *rt, const jtn_unit *unit, jtn_module **out);

/* Opens a module's file (jtn_module_path), wherever it was copied; needs no compiler. Errors: NOT_FOUND, CACHE (not one of
 * ours, damaged, of another format), DEVICE. */
JTN_API jtn_status jtn_module_open(jtn_runtime *rt, const char *path, jtn_module **out);

JTN_API void jtn_module_close(jtn_module *mod);
JTN_API const char *jtn_module_name(const jtn_module *mod);
JTN_API const char *jtn_module_path(const jtn_module *mod); /* of its file, absolute; "" when it was never stored */

/* 1 when the files the module was made of are as they were (a few stats), 0 when one changed or is gone. */
JTN_API int jtn_module_fresh(jtn_module *mod);

/* How this module came to be: "built", "disk" or "memory". */
JTN_API const char *jtn_module_origin(const jtn_module *mod);

/* Functions in the order of definition. jtn_module_at fails with ARGUMENT past the end. */
JTN_API size_t jtn_module_count(const jtn_module *mod);
JTN_API jtn_status jtn_module_at(jtn_module *mod, size_t index, jtn_function **out);

/* By name, or a template instance by name expression ("scale<float, 4>"), compiled when first asked for and then cached
 * like everything else. The function lives as long as the module. Errors: NOT_FOUND (the message lists what there is),
 * COMPILE. */
JTN_API jtn_status jtn_module_find(jtn_module *mod, const char *name, jtn_function **out);

/* Address and size in bytes of a __constant__ or __device__ variable on a device (-1: the current one).
 * Errors: NOT_FOUND, DEVICE. */
JTN_API jtn_status jtn_module_global(jtn_module *mod, const char *name, int device, void **address, size_t *size);

/* ---------------------------------------------------------------- function ---- */

typedef enum {
    JTN_FUNCTION_OP = 0,     /* bound C++: jtn_call */
    JTN_FUNCTION_C = 1,      /* plain C by prototype: jtn_call, through libffi */
    JTN_FUNCTION_KERNEL = 2  /* __global__: jtn_launch */
} jtn_function_kind;

typedef struct jtn_param_info {
    size_t struct_size; /* set by the caller */
    const char *name;   /* "a"; "arg0" when the source gives none */
    const char *type;   /* "float", "const float *", "struct P (8 bytes)"; for ops the type text of abi.h */
    size_t size;        /* bytes as passed; 0 for ops */
    int has_default;
} jtn_param_info;

JTN_API jtn_function_kind jtn_function_get_kind(const jtn_function *fn);
JTN_API const char *jtn_function_name(const jtn_function *fn);
JTN_API const char *jtn_function_doc(const jtn_function *fn);       /* "" when none */
JTN_API const char *jtn_function_signature(const jtn_function *fn); /* "axpy(a: float, x: const float *, …) -> None" */
JTN_API size_t jtn_function_param_count(const jtn_function *fn);
JTN_API jtn_status jtn_function_param(const jtn_function *fn, size_t index, jtn_param_info *out);

/* Kernel attributes on a device (-1: the current one): "registers", "shared_bytes" (static), "const_bytes", "local_bytes",
 * "max_threads_per_block", "max_dynamic_shared_bytes", "ptx_version", "binary_version".
 * Errors: ARGUMENT (unknown name, the message lists all), DEVICE. */
JTN_API jtn_status jtn_function_attribute(jtn_function *fn, const char *name, int device, int64_t *out);

/* ---------------------------------------------------------------- call and launch ---- */

static inline jtn_value jtn_none(void) { jtn_value v = {JTN_NONE, 0, {0}}; return v; }
static inline jtn_value jtn_bool(int b) { jtn_value v = {JTN_BOOL, 0, {0}}; v.as.i = b != 0; return v; }
static inline jtn_value jtn_int(int64_t i) { jtn_value v = {JTN_INT, 0, {0}}; v.as.i = i; return v; }
static inline jtn_value jtn_float(double d) { jtn_value v = {JTN_FLOAT, 0, {0}}; v.as.d = d; return v; }
static inline jtn_value jtn_ptr(const void *p) { jtn_value v = {JTN_PTR, 0, {0}}; v.as.p = (void *)(uintptr_t)p; return v; }
static inline jtn_value jtn_dltensor(const DLTensor *t) { jtn_value v = {JTN_DLTENSOR, 0, {0}}; v.as.dl = t; return v; }
static inline jtn_value jtn_struct(const void *p, uint32_t size)
{
    jtn_value v = {JTN_BYTES, 0, {0}};
    v.as.p = (void *)(uintptr_t)p;
    v.size = size;
    return v;
}

/* Calls an op or a plain C function. Arguments are converted to what the function declares, or refused: ERROR_ARGUMENT
 * names the argument, what it got and what is wanted. result may be NULL; a string or list in it is valid until this
 * thread's next jtn_call. Errors: ARGUMENT, CALL (the function threw: jtn_last_error has its text). */
JTN_API jtn_status jtn_call(jtn_function *fn, const jtn_value *args, size_t count, jtn_value *result);

/* A tensor in a result (JTN_TENSOR) is yours: its data as DLPack has it, valid until you release it. NULL is allowed. */
JTN_API const DLTensor *jtn_tensor_view(const jtn_tensor *tensor);
JTN_API void jtn_tensor_release(jtn_tensor *tensor);

typedef struct jtn_launch_config {
    size_t struct_size;
    uint32_t grid[3];      /* blocks; a zero launches nothing and succeeds */
    uint32_t block[3];     /* threads of a block; 0 in y or z counts as 1 */
    uint32_t shared_bytes; /* dynamic shared memory; more than the default is opted in by the library */
    void *stream;          /* CUstream; NULL is the legacy default stream */
    int32_t device;        /* -1: that of the tensors, else the current one */
    uint32_t flags;        /* JTN_LAUNCH_… */
    uint32_t cluster[3];   /* 0: no clusters */
} jtn_launch_config;

#define JTN_LAUNCH_COOPERATIVE 1u /* grid-wide synchronisation; a grid that does not fit is an error */

/* Launches a kernel: asynchronous, as launches are. Errors: ARGUMENT before anything runs; DEVICE. */
JTN_API jtn_status jtn_launch(jtn_function *fn, const jtn_launch_config *config, const jtn_value *args, size_t count);

/* Waits for all work of a device (-1: the current one). Errors: DEVICE, naming the last kernel launched there. */
JTN_API jtn_status jtn_synchronize(jtn_runtime *rt, int device);

/* 1 when a CUDA driver and at least one GPU answer, else 0; the reason is in jtn_last_error. Starts the driver. */
JTN_API int jtn_gpu_available(jtn_runtime *rt);

/* ---------------------------------------------------------------- Python ---- */

/* The Python bridge makes real builtins of functions. Called with the GIL held, from a process with Python in it.
 * Results are new references to Python objects, or NULL with a Python exception set. */

/* Once, before the others: a dict of the exception classes by name, and the class "Module" that modules are made of. Returns the
 * capsule "jitney._import_api", which the package publishes under that name: copied module files look for it. */
JTN_API void *jtn_python_init(jtn_runtime *rt, void *classes);
/* A module object with every function of mod; keeps mod open (takes over the caller's reference). */
JTN_API void *jtn_python_module(jtn_module *mod, const char *import_name);
/* The object of one function, as the module has it. */
JTN_API void *jtn_python_function(jtn_module *mod, jtn_function *fn);
/* What a copied module file calls from its PyInit_…: a module definition that opens the file Python imports from. */
JTN_API void *jtn_python_import(void);

/* ---------------------------------------------------------------- version ---- */

JTN_API const char *jtn_version(void); /* "0.1.0" */
JTN_API int jtn_abi_version(void);     /* of abi.h */

#ifdef __cplusplus
}
#endif
#endif
