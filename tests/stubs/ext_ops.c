/* ext_ops.c — host code as a module's file has it, written by hand: ops that register themselves, and plain C functions. */
#include <string.h>

#include "jitney/abi.h"

static const jtn_abi *abi;

static int fail_with(const char *text)
{
    abi->set_error(JTN_RAISE_VALUE, text, strlen(text));
    return -1;
}

/* add(a: i32, b: i32 = 10) and, a second overload, add(a: f64, b: f64) */
static int add_ints(void *closure, void *call, const jtn_value *args, jtn_value *result)
{
    result->kind = JTN_INT;
    result->as.i = args[0].as.i + args[1].as.i;
    return 0;
}

static double number(const jtn_value *v)
{
    return v->kind == JTN_FLOAT ? v->as.d : (double)v->as.i;
}

static int add_floats(void *closure, void *call, const jtn_value *args, jtn_value *result)
{
    result->kind = JTN_FLOAT;
    result->as.d = number(&args[0]) + number(&args[1]);
    return 0;
}

static int throws(void *closure, void *call, const jtn_value *args, jtn_value *result)
{
    return fail_with("the cat sat on it");
}

/* numel(x: tensor) */
static int numel(void *closure, void *call, const jtn_value *args, jtn_value *result)
{
    result->kind = JTN_INT;
    result->as.i = args[0].as.t->numel + (args[0].as.t->flags & JTN_TENSOR_CONTIGUOUS ? 0 : 1000);
    return 0;
}

/* hello(name: str) -> str: the result lives in the call's own memory */
static int hello(void *closure, void *call, const jtn_value *args, jtn_value *result)
{
    uint32_t size = args[0].size + 6;
    char *text = abi->call_alloc(call, size + 1);

    if (!text)
        return fail_with("no memory");
    memcpy(text, "hello ", 6);
    memcpy(text + 6, args[0].as.s, args[0].size + 1);
    *result = (jtn_value){.kind = JTN_STR, .size = size, .as.s = text};
    return 0;
}

static int add(void *registrar, const char *name, const char *returns, const jtn_param_def *params, size_t count, jtn_trampoline call)
{
    jtn_function_def def = {.struct_size = sizeof def, .name = name, .doc = name, .returns = returns, .param_count = count, .params = params, .call = call};

    return abi->add_function(registrar, &def);
}

__attribute__((visibility("default"))) int jtn_ext_init(const jtn_abi *table, void *registrar);

int jtn_ext_init(const jtn_abi *table, void *registrar)
{
    static const jtn_value ten = {.kind = JTN_INT, .as.i = 10};
    const jtn_param_def ints[] = {{"a", "i32", NULL}, {"b", "i32", &ten}}, floats[] = {{"a", "f64", NULL}, {"b", "f64", NULL}};
    const jtn_param_def tensor = {"x", "tensor", NULL}, text = {"name", "str", NULL};

    abi = table;
    abi->set_doc(registrar, "By hand");
    return add(registrar, "add", "i64", ints, 2, add_ints) || add(registrar, "add", "f64", floats, 2, add_floats) ||
           add(registrar, "throws", "none", NULL, 0, throws) || add(registrar, "numel", "i64", &tensor, 1, numel) ||
           add(registrar, "hello", "str", &text, 1, hello) || abi->add_value(registrar, "ten", &ten);
}

/* ---------------------------------------------------------------- plain C ---- */

static signed char narrow(signed char a, unsigned short b) { return (signed char)(a - (b > 40000)); }
static unsigned long long wide(void) { return ~0ull; }
static _Bool not(_Bool b) { return !b; }

static float dot(const float *a, const float *b, int n)
{
    float sum = 0;

    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* What is exported is a pointer to each, as builds export them. */
#define POINTER_TO(name) __attribute__((visibility("default"))) void *jtn_fn_##name = (void *)name
POINTER_TO(narrow);
POINTER_TO(wide);
POINTER_TO(not);
POINTER_TO(dot);
