/* cxx_support.h — a library for compiled ops to talk to: just enough of abi.h to run them without the rest of Jitney. */
#ifndef JTN_TEST_CXX_SUPPORT_H
#define JTN_TEST_CXX_SUPPORT_H

#include <dlfcn.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "compile/cxx.h"
#include "jitney/abi.h"

#define DATA_DIR JTN_BINARY_DIR "/share/jitney"

/* ---- one build ---- */

typedef struct test_build {
    char *folder;
    jtn_list cflags, ldflags, include_dirs, defines;
    jtn_source sources[8];
    size_t source_count;
    jtn_wish wishes[8];
    size_t wish_count;
    char *roots[8];
    size_t root_count;
    jtn_cxx *cxx;
    jtn_cache *cache;
    jtn_host_result result;
    jtn_findings findings;
    void *handle;
} test_build;

static inline void test_build_init(test_build *b, jtn_cache *cache)
{
    memset(b, 0, sizeof *b);
    assert_int_equal(jtn__dir_make_unique("/tmp", "jtn-cxx-", &b->folder), JTN_OK);
    assert_int_equal(jtn__cxx_find(&b->cxx), JTN_OK);
    b->cache = cache;
}

static inline void test_source(test_build *b, const char *name, jtn_lang lang, const char *text)
{
    b->sources[b->source_count++] =
        (jtn_source){.name = (char *)(uintptr_t)name, .text = (char *)(uintptr_t)text, .size = strlen(text), .lang = lang};
}

static inline void test_wish(test_build *b, const char *text, const char *doc)
{
    b->wishes[b->wish_count++] = (jtn_wish){(char *)(uintptr_t)text, (char *)(uintptr_t)doc, strchr(text, '(') != NULL};
}

static inline jtn_status test_run(test_build *b)
{
    jtn_host_job job = {.name = "demo", .sources = b->sources, .source_count = b->source_count, .wishes = b->wishes,
                        .wish_count = b->wish_count, .cflags = &b->cflags, .ldflags = &b->ldflags,
                        .include_dirs = &b->include_dirs, .defines = &b->defines, .data_dir = DATA_DIR,
                        .stub_object = DATA_DIR "/stub.o", .roots = b->roots, .root_count = b->root_count};
    char *staging = NULL;
    jtn_status status;

    assert_int_equal(jtn__dir_make_unique(b->folder, "staging-", &staging), JTN_OK);
    job.staging = staging;
    jtn__host_result_deinit(&b->result);
    status = jtn__cxx_build(b->cxx, b->cache, &job, &b->result, &b->findings);
    jtn__free(staging);
    return status;
}

static inline void test_open(test_build *b)
{
    jtn_status status = test_run(b);

    if (status != JTN_OK)
        fail_msg("%s\n%s", jtn__error_message(), b->findings.log ? b->findings.log : "");
    b->handle = dlopen(b->result.path, RTLD_NOW | RTLD_LOCAL);
    if (!b->handle)
        fail_msg("%s", dlerror());
}

static inline void test_build_deinit(test_build *b)
{
    if (b->handle)
        dlclose(b->handle);
    jtn__host_result_deinit(&b->result);
    jtn__findings_deinit(&b->findings);
    jtn__list_deinit(&b->cflags);
    jtn__list_deinit(&b->ldflags);
    jtn__list_deinit(&b->include_dirs);
    jtn__list_deinit(&b->defines);
    jtn__cxx_free(b->cxx);
    jtn__dir_remove(b->folder);
    jtn__free(b->folder);
}

/* ---- the library's side ---- */

typedef struct test_function {
    char name[64], doc[64], text[512]; /* "a: tensor, n: i32 = 3 -> tensor" */
    jtn_trampoline call;
    void *closure;
} test_function;

static test_function functions[64];
static size_t function_count;
static char values[8][64];
static size_t value_count;
static char module_doc[64], last_error[512];
static int last_raise;
static long tensors_alive;

static inline void put(char *to, size_t size, const char *format, ...)
{
    va_list args;
    size_t used = strlen(to);

    va_start(args, format);
    vsnprintf(to + used, size - used, format, args);
    va_end(args);
}

static inline void put_value(char *to, size_t size, const jtn_value *v)
{
    if (v->kind == JTN_NONE)
        put(to, size, "None");
    else if (v->kind == JTN_FLOAT)
        put(to, size, "%g", v->as.d);
    else if (v->kind == JTN_STR)
        put(to, size, "'%s'", v->as.s);
    else if (v->kind == JTN_TENSOR)
        put(to, size, "tensor");
    else if (v->kind == JTN_LIST) {
        put(to, size, "[");
        for (uint32_t i = 0; i < v->size; i++) {
            put(to, size, i ? ", " : "");
            put_value(to, size, &v->as.list[i]);
        }
        put(to, size, "]");
    } else
        put(to, size, "%lld", (long long)v->as.i);
}

static int add_function(void *registrar, const jtn_function_def *def)
{
    test_function *f = &functions[function_count++];

    memset(f, 0, sizeof *f);
    put(f->name, sizeof f->name, "%s", def->name);
    put(f->doc, sizeof f->doc, "%s", def->doc ? def->doc : "(none)");
    for (size_t i = 0; i < def->param_count; i++) {
        put(f->text, sizeof f->text, "%s%s%s%s", i ? ", " : "", def->params[i].name ? def->params[i].name : "",
            def->params[i].name ? ": " : "", def->params[i].type);
        if (def->params[i].default_value) {
            put(f->text, sizeof f->text, " = ");
            put_value(f->text, sizeof f->text, def->params[i].default_value);
        }
    }
    put(f->text, sizeof f->text, " -> %s", def->returns);
    f->call = def->call;
    f->closure = def->closure;
    return 0;
}

static int add_value(void *registrar, const char *name, const jtn_value *value)
{
    char *to = values[value_count++];

    to[0] = 0;
    put(to, sizeof values[0], "%s = ", name);
    put_value(to, sizeof values[0], value);
    return 0;
}

static void set_doc(void *registrar, const char *doc)
{
    snprintf(module_doc, sizeof module_doc, "%s", doc);
}

static void set_error(int raise, const char *message, size_t size)
{
    if (raise == JTN_RAISE_PENDING)
        return;
    last_raise = raise;
    snprintf(last_error, sizeof last_error, "%.*s", (int)size, message);
}

static char arena[1 << 16];
static size_t arena_used;

static void *call_alloc(void *call, size_t bytes)
{
    void *block = arena + arena_used;

    arena_used += (bytes + 15) & ~(size_t)15;
    return arena_used <= sizeof arena ? block : NULL;
}

typedef struct test_tensor {
    jtn_tensor t;
    int64_t shape[8], strides[8];
    jtn_tensor *base;
    void *memory;
} test_tensor;

static void tensor_retain(jtn_tensor *t)
{
    t->refcount++;
}

static void tensor_release(jtn_tensor *t)
{
    test_tensor *tensor = (test_tensor *)t;

    if (!t || --t->refcount)
        return;
    tensors_alive--;
    tensor_release(tensor->base);
    free(tensor->memory);
    free(tensor);
}

static test_tensor *new_tensor(int32_t ndim, const int64_t *sizes, const int64_t *strides)
{
    test_tensor *tensor = calloc(1, sizeof *tensor);
    int64_t step = 1;

    tensor->t.numel = 1;
    tensor->t.flags = JTN_TENSOR_CONTIGUOUS;
    for (int i = ndim; i-- > 0;) {
        tensor->shape[i] = sizes[i];
        tensor->strides[i] = strides ? strides[i] : step;
        if (tensor->strides[i] != step && sizes[i] != 1)
            tensor->t.flags = 0;
        step *= sizes[i];
        tensor->t.numel *= sizes[i];
    }
    tensor->t.dl.ndim = ndim;
    tensor->t.dl.shape = tensor->shape;
    tensor->t.dl.strides = tensor->strides;
    tensor->t.dl.device = (DLDevice){kDLCPU, 0};
    tensor->t.refcount = 1;
    tensors_alive++;
    return tensor;
}

static int tensor_empty(int32_t ndim, const int64_t *sizes, const int64_t *strides, DLDataType dtype, DLDevice device, int pinned,
                        int requires_grad, jtn_tensor **out)
{
    test_tensor *tensor;

    if (device.device_type != kDLCPU) {
        last_raise = JTN_RAISE_RUNTIME;
        snprintf(last_error, sizeof last_error, "no GPU here");
        return -1;
    }
    tensor = new_tensor(ndim, sizes, strides);
    tensor->t.dl.dtype = dtype;
    tensor->memory = tensor->t.dl.data = calloc((size_t)tensor->t.numel + 1, dtype.bits / 8u);
    *out = &tensor->t;
    return 0;
}

static int tensor_as_strided(jtn_tensor *base, int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                             jtn_tensor **out)
{
    test_tensor *tensor = new_tensor(ndim, sizes, strides);

    tensor->t.dl.dtype = base->dl.dtype;
    tensor->t.dl.data = (char *)base->dl.data + offset * base->dl.dtype.bits / 8;
    tensor->base = base;
    base->refcount++;
    *out = &tensor->t;
    return 0;
}

/* Elements in the order of the indices; float32 and int64 are all the tests need. */
static double *element(const jtn_tensor *t, int64_t i, double *value, int write)
{
    int64_t at = 0;
    char *p;

    for (int d = t->dl.ndim; d-- > 0; i /= t->dl.shape[d])
        at += i % t->dl.shape[d] * t->dl.strides[d];
    p = (char *)t->dl.data + at * t->dl.dtype.bits / 8;
    if (t->dl.dtype.code == kDLFloat && t->dl.dtype.bits == 32)
        write ? (void)(*(float *)p = (float)*value) : (void)(*value = *(float *)p);
    else if (t->dl.dtype.code == kDLFloat && t->dl.dtype.bits == 64)
        write ? (void)(*(double *)p = *value) : (void)(*value = *(double *)p);
    else if (t->dl.dtype.bits == 64)
        write ? (void)(*(int64_t *)p = (int64_t)*value) : (void)(*value = (double)*(int64_t *)p);
    else
        write ? (void)(*(int32_t *)p = (int32_t)*value) : (void)(*value = *(int32_t *)p);
    return value;
}

static int tensor_copy(jtn_tensor *dst, jtn_tensor *src, int non_blocking)
{
    double value;

    for (int64_t i = 0; i < dst->numel; i++)
        element(dst, i, element(src, src->numel == 1 ? 0 : i, &value, 0), 1);
    return 0;
}

static int tensor_fill(jtn_tensor *t, const jtn_value *scalar)
{
    double value = scalar->kind == JTN_FLOAT ? scalar->as.d : (double)scalar->as.i;

    for (int64_t i = 0; i < t->numel; i++)
        element(t, i, &value, 1);
    return 0;
}

static int current_stream(DLDevice device, void **out)
{
    *out = NULL;
    return 0;
}

static const jtn_abi abi = {JTN_ABI_VERSION, sizeof(jtn_abi), add_function, add_value, set_doc, set_error, call_alloc,
                            tensor_retain, tensor_release, tensor_empty, tensor_as_strided, tensor_copy, tensor_fill,
                            current_stream};

static inline void test_init(test_build *b)
{
    jtn_ext_init_fn init;

    function_count = value_count = 0;
    module_doc[0] = 0;
    *(void **)&init = dlsym(b->handle, JTN_EXT_INIT_SYMBOL);
    assert_non_null(init);
    if (init(&abi, (void *)(uintptr_t)1) != 0)
        fail_msg("%s", last_error);
}

static inline test_function *test_find(const char *name)
{
    for (size_t i = 0; i < function_count; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    fail_msg("no function %s", name);
    return NULL;
}

static inline void drop(jtn_value *v)
{
    if (v->kind == JTN_TENSOR)
        tensor_release(v->as.t);
    for (uint32_t i = 0; v->kind == JTN_LIST && i < v->size; i++)
        drop(&v->as.list[i]);
}

/* Calls and gives the result's text, or "raise N: message". */
static inline const char *test_call(const char *name, size_t count, jtn_value *args)
{
    static char text[1024];
    test_function *f = test_find(name);
    jtn_value result = {0};

    arena_used = 0;
    text[0] = 0;
    if (f->call(f->closure, (void *)(uintptr_t)1, args, &result) != 0)
        put(text, sizeof text, "raise %d: %s", last_raise, last_error);
    else
        put_value(text, sizeof text, &result);
    drop(&result);
    (void)count;
    return text;
}

#define VALUE_INT(n) ((jtn_value){JTN_INT, 0, {.i = (n)}})
#define VALUE_FLOAT(x) ((jtn_value){JTN_FLOAT, 0, {.d = (x)}})
#define VALUE_NONE ((jtn_value){JTN_NONE, 0, {0}})
#define VALUE_STR(text) ((jtn_value){JTN_STR, sizeof(text) - 1, {.s = (text)}})
#define VALUE_TENSOR(x) ((jtn_value){JTN_TENSOR, 0, {.t = (x)}})

#endif
