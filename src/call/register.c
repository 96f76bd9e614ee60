/* register.c — what a compiled op's jtn_ext_init defines, collected into a module.
 *
 * The object calls back through the table while its init runs; every text and value is copied, so nothing here points into it but the
 * trampolines and their closures. */
#include "call/register.h"

#include <dlfcn.h>
#include <string.h>

#include "base/mem.h"
#include "call/launch.h"

typedef struct jtn_registrar {
    jtn_module *module;
    jtn_status status;
} jtn_registrar;

/* ---------------------------------------------------------------- values ---- */

void jtn__value_deinit(jtn_value *value)
{
    if (value->kind == JTN_LIST)
        for (uint32_t i = 0; i < value->size; i++)
            jtn__value_deinit(&value->as.list[i]);
    if (value->kind == JTN_LIST || value->kind == JTN_STR)
        jtn__free(value->as.p);
    *value = (jtn_value){0};
}

jtn_status jtn__value_copy(const jtn_value *from, jtn_value *to)
{
    jtn_value copy = *from;

    if (from->kind == JTN_TENSOR || from->kind == JTN_DLTENSOR)
        return jtn__fail(JTN_ERROR_ARGUMENT, "a tensor cannot be a default or a module's value");
    if (from->kind == JTN_STR && !(copy.as.s = jtn__strndup(from->as.s, from->size)))
        return JTN_ERROR_MEMORY;
    if (from->kind == JTN_LIST) {
        if (!(copy.as.list = jtn__alloc(from->size * sizeof(jtn_value) + 1)))
            return JTN_ERROR_MEMORY;
        for (uint32_t i = 0; i < from->size; i++)
            if (jtn__value_copy(&from->as.list[i], &copy.as.list[i]) != JTN_OK) {
                jtn__value_deinit(&copy);
                return JTN_ERROR_MEMORY;
            }
    }
    *to = copy;
    return JTN_OK;
}

/* ---------------------------------------------------------------- signatures ---- */

/* The type text in the words of Python's annotations: "optional<list<i64>>" → "Optional[list[int]]". */
static void put_type(jtn_buf *out, const jtn_op_type *type)
{
    static const char *const words[] = {"None",   "bool", "int",    "int",      "float", "str",
                                        "Tensor", "int",  "object", "Optional", "list",  "tuple"};

    jtn__buf_puts(out, words[type->kind]);
    if (type->kind < JTN_OP_OPTIONAL)
        return;
    jtn__buf_puts(out, "[");
    for (size_t i = 0; i < type->inner_count; i++) {
        jtn__buf_puts(out, i ? ", " : "");
        put_type(out, &type->inner[i]);
    }
    jtn__buf_puts(out, "]");
}

static char *op_signature(const char *name, const jtn_op *op)
{
    jtn_buf text;
    char *result;

    jtn__buf_init(&text, 0);
    jtn__buf_printf(&text, "%s(", name);
    for (size_t i = 0; i < op->param_count; i++) {
        jtn__buf_printf(&text, "%s%s: ", i ? ", " : "", op->params[i].name);
        put_type(&text, &op->params[i].type);
        if (op->params[i].has_default) {
            jtn__buf_puts(&text, " = ");
            jtn__value_put(&text, &op->params[i].default_value);
        }
    }
    jtn__buf_puts(&text, ") -> ");
    put_type(&text, &op->returns);
    result = jtn__buf_take(&text, NULL);
    jtn__buf_deinit(&text);
    return result;
}

/* ---------------------------------------------------------------- ops ---- */

void jtn__op_free(jtn_op *op)
{
    while (op) {
        jtn_op *next = op->next;

        for (size_t i = 0; op->params && i < op->param_count; i++) {
            jtn__free(op->params[i].name);
            jtn__free(op->params[i].text);
            jtn__op_type_deinit(&op->params[i].type);
            jtn__value_deinit(&op->params[i].default_value);
        }
        jtn__free(op->params);
        jtn__free(op->doc);
        jtn__free(op->returns_text);
        jtn__op_type_deinit(&op->returns);
        jtn__free(op);
        op = next;
    }
}

static jtn_status copy_param(const jtn_param_def *def, size_t index, jtn_op_param *out)
{
    out->positional_only = !def->name;
    out->name = def->name ? jtn__strdup(def->name) : jtn__format("arg%zu", index);
    out->text = jtn__strdup(def->type);
    if (!out->name || !out->text)
        return JTN_ERROR_MEMORY;
    JTN_TRY(jtn__op_type_parse(def->type, &out->type));
    if (!def->default_value)
        return JTN_OK;
    out->has_default = true;
    return jtn__value_copy(def->default_value, &out->default_value);
}

static jtn_status copy_op(const jtn_function_def *def, jtn_op **out)
{
    jtn_op *op = jtn__alloc(sizeof *op);
    jtn_status status = JTN_ERROR_MEMORY;

    if (!op)
        return status;
    op->call = def->call;
    op->closure = def->closure;
    op->param_count = def->param_count;
    op->params = jtn__alloc((def->param_count + 1) * sizeof *op->params);
    op->returns_text = jtn__strdup(def->returns);
    op->doc = def->doc && *def->doc ? jtn__strdup(def->doc) : NULL;
    if (!op->params || !op->returns_text || (def->doc && *def->doc && !op->doc))
        goto out;
    JTN_GO(jtn__op_type_parse(def->returns, &op->returns));
    for (size_t i = 0; i < def->param_count; i++)
        JTN_GO(copy_param(&def->params[i], i, &op->params[i]));
    *out = op;
    return JTN_OK;
out:
    jtn__op_free(op);
    return status;
}

static bool same_params(const jtn_op *a, const jtn_op *b)
{
    bool same = a->param_count == b->param_count;

    for (size_t i = 0; same && i < a->param_count; i++)
        same = strcmp(a->params[i].text, b->params[i].text) == 0;
    return same;
}

/* Another function of the same name: an overload behind the ones there are, each told in the signature. The same parameters again (bound
 * by the source and asked for as well) are the same function. Takes op. */
static jtn_status add_overload(jtn_function *fn, jtn_op *op)
{
    jtn_op **last = &fn->op;
    char *one, *both;

    for (; *last; last = &(*last)->next)
        if (same_params(*last, op)) {
            jtn__op_free(op);
            return JTN_OK;
        }
    *last = op;
    one = op_signature(fn->name, op);
    both = one ? jtn__format("%s\n%s", fn->signature, one) : NULL;
    jtn__free(one);
    if (!both)
        return JTN_ERROR_MEMORY;
    jtn__free(fn->signature);
    fn->signature = both;
    return JTN_OK;
}

static jtn_function *find_op(jtn_module *module, const char *name)
{
    for (size_t i = 0; i < module->function_count; i++)
        if (module->functions[i]->kind == JTN_FUNCTION_OP && strcmp(module->functions[i]->name, name) == 0)
            return module->functions[i];
    return NULL;
}

/* Takes op. */
static jtn_status add_function(jtn_module *module, const char *name, jtn_op *op)
{
    jtn_function *fn = find_op(module, name);

    if (fn)
        return add_overload(fn, op);
    fn = jtn__alloc(sizeof *fn);
    if (!fn) {
        jtn__op_free(op);
        return JTN_ERROR_MEMORY;
    }
    fn->kind = JTN_FUNCTION_OP;
    fn->module = module;
    fn->op = op;
    fn->name = jtn__strdup(name);
    fn->doc = op->doc ? jtn__strdup(op->doc) : NULL;
    fn->signature = op_signature(name, op);
    return jtn__module_append(module, fn);
}

int jtn__register_function(void *registrar, const jtn_function_def *def)
{
    jtn_registrar *r = registrar;
    jtn_op *op = NULL;

    if (r->status == JTN_OK)
        r->status = copy_op(def, &op);
    if (r->status == JTN_OK)
        r->status = add_function(r->module, def->name, op);
    return r->status != JTN_OK;
}

int jtn__register_value(void *registrar, const char *name, const jtn_value *value)
{
    jtn_registrar *r = registrar;
    jtn_named_value *values;

    if (r->status != JTN_OK)
        return 1;
    values = jtn__realloc(r->module->values, (r->module->value_count + 1) * sizeof *values);
    if (values) {
        r->module->values = values;
        values[r->module->value_count] = (jtn_named_value){.name = jtn__strdup(name)};
        r->status = values[r->module->value_count].name ? jtn__value_copy(value, &values[r->module->value_count].value)
                                                        : JTN_ERROR_MEMORY;
        r->module->value_count++;
    } else {
        r->status = JTN_ERROR_MEMORY;
    }
    return r->status != JTN_OK;
}

void jtn__register_doc(void *registrar, const char *doc)
{
    jtn_registrar *r = registrar;
    char *copy = jtn__strdup(doc);

    if (copy) {
        jtn__free(r->module->doc);
        r->module->doc = copy;
    }
}

jtn_status jtn__module_register(jtn_module *module, void *handle)
{
    jtn_registrar registrar = {module, JTN_OK};
    jtn_ext_init_fn init;
    const char *message = NULL;

    *(void **)&init = dlsym(handle, JTN_EXT_INIT_SYMBOL);
    if (!init)
        return JTN_OK; /* plain C: its functions are found by their prototypes */
    jtn__call_raise(&message);
    if (init(&jtn__abi, &registrar) == 0)
        return registrar.status;
    if (registrar.status != JTN_OK)
        return registrar.status;
    jtn__call_raise(&message);
    return jtn__fail(JTN_ERROR_CALL, "%s: its module body failed: %s", module->name,
                     message && *message ? message : "no reason given");
}
