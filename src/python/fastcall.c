/* fastcall.c — ops and plain C functions as real builtins.
 *
 * A builtin is a PyMethodDef, a C function and a "self": here a capsule with the function's data. Arguments come as a C array, keywords as
 * a tuple of names; defaults were made at definition. The good path allocates nothing but the values array of a function with more than
 * sixteen parameters. */
#include <string.h>

#include "base/mem.h"
#include "python/convert.h"

#define CAPSULE "jitney.function"
#define FEW 16

typedef struct jtn_builtin {
    PyMethodDef method;
    jtn_module *module; /* retained */
    jtn_function *fn;
    char *doc;
    PyObject **names; /* interned, of the first overload's parameters or of the C function's */
    size_t name_count;
} jtn_builtin;

static void capsule_free(PyObject *capsule)
{
    jtn_builtin *b = PyCapsule_GetPointer(capsule, CAPSULE);

    for (size_t i = 0; i < b->name_count; i++)
        py_drop(b->names[i]);
    jtn__module_release(b->module);
    jtn__free(b->names);
    jtn__free(b->doc);
    jtn__free(b);
}

/* ---------------------------------------------------------------- errors ---- */

/* What the op threw, as the Python exception it stands for. */
static PyObject *raise_op(const jtn_function *fn)
{
    PyObject *classes[] = {PyExc_RuntimeError, PyExc_TypeError,           PyExc_ValueError, PyExc_IndexError,
                           PyExc_KeyError,     PyExc_NotImplementedError, PyExc_MemoryError};
    const char *message;
    int raise = jtn__call_raise(&message);

    if (PyErr_Occurred())
        return NULL;
    if (raise < 0 || raise >= (int)(sizeof classes / sizeof *classes))
        raise = JTN_RAISE_RUNTIME;
    PyErr_SetString(classes[raise], message && *message ? message : fn->name);
    return NULL;
}

static PyObject *raise_text(jtn_buf *text)
{
    jtn__fail(JTN_ERROR_ARGUMENT, "%s", text->failed == JTN_OK && text->data ? text->data : "an argument does not fit");
    jtn__buf_deinit(text);
    return jtn__py_raise(JTN_ERROR_ARGUMENT);
}

/* The name of a type that is none of ours travels as a text of its own kind. */
static void put_got(jtn_frame *frame, jtn_buf *text, PyObject *object)
{
    jtn_value value = {0};
    DLTensor dl;

    jtn__describe_object(frame, object, &value, &dl);
    if (value.kind > JTN_LIST)
        jtn__buf_printf(text, "a %.*s", (int)value.size, value.as.s);
    else
        jtn__value_describe(text, &value);
}

static PyObject *no_overload(jtn_frame *frame, const jtn_function *fn, PyObject *const *args, Py_ssize_t count)
{
    jtn_buf text;

    jtn__buf_init(&text, 0);
    jtn__buf_printf(&text, "%s: no overload takes (", fn->name);
    for (Py_ssize_t i = 0; i < count; i++) {
        jtn__buf_puts(&text, i ? ", " : "");
        put_got(frame, &text, args[i]);
    }
    jtn__buf_printf(&text, "); there are:\n%s", fn->signature);
    return raise_text(&text);
}

static PyObject *bad_argument(jtn_frame *frame, const jtn_function *fn, const jtn_op *op, size_t index,
                              PyObject *object)
{
    jtn_buf text;

    jtn__buf_init(&text, 0);
    jtn__buf_printf(&text, "%s: argument %zu (%s): expected %s, got ", fn->name, index + 1, op->params[index].name,
                    op->params[index].text);
    put_got(frame, &text, object);
    return raise_text(&text);
}

static PyObject *bad_count(const jtn_function *fn, const jtn_op *op, Py_ssize_t count)
{
    jtn_buf text;

    jtn__buf_init(&text, 0);
    jtn__buf_printf(&text, "%s takes %zu argument%s, got %zd: %s", fn->name, op->param_count,
                    op->param_count == 1 ? "" : "s", count, fn->signature);
    return raise_text(&text);
}

/* ---------------------------------------------------------------- ops ---- */

typedef struct jtn_op_call {
    jtn_frame *frame;
    const jtn_builtin *builtin;
    const jtn_op *op;
    PyObject *const *args; /* positional ones, then the keywords' */
    Py_ssize_t positional;
    PyObject *kwnames;
    bool quiet; /* another overload may fit: make no message */
} jtn_op_call;

/* The keyword argument of parameter `index`, or NULL. */
static PyObject *find_keyword(const jtn_op_call *call, size_t index)
{
    Py_ssize_t count = call->kwnames ? PyTuple_Size(call->kwnames) : 0;
    const char *wanted = call->op->params[index].name;

    for (Py_ssize_t i = 0; i < count && !call->op->params[index].positional_only; i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(call->kwnames, i), NULL);

        if (name && strcmp(name, wanted) == 0)
            return call->args[call->positional + i];
    }
    return NULL;
}

static PyObject *unknown_keyword(const jtn_op_call *call)
{
    Py_ssize_t count = PyTuple_Size(call->kwnames);
    jtn_buf text;

    for (Py_ssize_t i = 0; i < count; i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(call->kwnames, i), NULL);
        size_t at = 0;

        while (name && at < call->op->param_count &&
               (call->op->params[at].positional_only || strcmp(call->op->params[at].name, name) != 0))
            at++;
        if (name && at < call->op->param_count && (Py_ssize_t)at >= call->positional)
            continue;
        jtn__buf_init(&text, 0);
        jtn__buf_printf(
            &text, at < call->op->param_count ? "%s: the argument %s is given twice" : "%s has no parameter \"%s\": %s",
            call->builtin->fn->name, name ? name : "?", call->builtin->fn->signature);
        return raise_text(&text);
    }
    return bad_count(call->builtin->fn, call->op, call->positional + count);
}

/* Fills values; *taken counts those that must be given back. */
static jtn_taken take_arguments(jtn_op_call *call, jtn_value *values, size_t *taken)
{
    const jtn_op *op = call->op;
    Py_ssize_t keywords = call->kwnames ? PyTuple_Size(call->kwnames) : 0, used = 0;

    if ((size_t)call->positional > op->param_count)
        return call->quiet ? JTN_NOT_THIS : (bad_count(call->builtin->fn, op, call->positional), JTN_PY_ERROR);
    for (size_t i = 0; i < op->param_count; i++) {
        PyObject *object = (Py_ssize_t)i < call->positional ? call->args[i] : keywords ? find_keyword(call, i) : NULL;
        jtn_taken result;

        used += (Py_ssize_t)i >= call->positional && object;
        if (!object && !op->params[i].has_default)
            return call->quiet ? JTN_NOT_THIS
                               : ((keywords > used ? unknown_keyword(call)
                                                   : bad_count(call->builtin->fn, op, call->positional + keywords)),
                                  JTN_PY_ERROR);
        if (!object) {
            values[i] = op->params[i].default_value;
            *taken = i + 1;
            continue;
        }
        result = jtn__take_op(call->frame, &op->params[i].type, object, &values[i]);
        if (__builtin_expect(result != JTN_TAKEN, 0)) {
            if (result == JTN_NOT_THIS && !call->quiet)
                bad_argument(call->frame, call->builtin->fn, op, i, object);
            return result == JTN_NOT_THIS && !call->quiet ? JTN_PY_ERROR : result;
        }
        *taken = i + 1;
    }
    if (used < keywords)
        return call->quiet ? JTN_NOT_THIS : (unknown_keyword(call), JTN_PY_ERROR);
    return JTN_TAKEN;
}

/* NULL without an exception: this overload does not fit. */
static PyObject *call_overload(jtn_op_call *call)
{
    jtn_value few[FEW], *values = few, result;
    size_t taken = 0;
    PyObject *object = NULL;
    jtn_frame *outer = jtn__frame;

    if (call->op->param_count > FEW && !(values = jtn__alloc(call->op->param_count * sizeof *values)))
        return PyErr_NoMemory();
    if (take_arguments(call, values, &taken) == JTN_TAKEN) {
        jtn__frame = call->frame;
        if (__builtin_expect(jtn__op_run(call->op, &call->frame->arena, values, &result) == JTN_OK, 1))
            object = jtn__to_python(&call->op->returns, &result);
        else
            raise_op(call->builtin->fn);
        jtn__frame = outer;
    }
    for (size_t i = 0; i < taken; i++)
        if (values[i].kind == JTN_TENSOR || values[i].kind == JTN_LIST)
            jtn__give_back(&values[i]);
    if (values != few)
        jtn__free(values);
    return object;
}

static PyObject *call_op(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    jtn_builtin *builtin = PyCapsule_GetPointer(self, CAPSULE);
    jtn_frame frame = {0};
    jtn_op_call call = {&frame, builtin, builtin->fn->op, args, count, kwnames, builtin->fn->op->next != NULL};
    PyObject *result = NULL;

    for (int pass = 0; pass < (call.quiet ? 2 : 1) && !result && !PyErr_Occurred(); pass++) {
        frame.strict = call.quiet && pass == 0;
        for (call.op = builtin->fn->op; call.op && !result && !PyErr_Occurred(); call.op = call.op->next)
            result = call_overload(&call);
    }
    if (!result && !PyErr_Occurred())
        no_overload(&frame, builtin->fn, args, count);
    jtn__frame_end(&frame);
    return result;
}

/* ---------------------------------------------------------------- plain C functions ---- */

static PyObject *call_c(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    jtn_builtin *builtin = PyCapsule_GetPointer(self, CAPSULE);
    jtn_function *fn = builtin->fn;
    jtn_value values[JTN_MAX_PARAMS], result;
    DLTensor tensors[JTN_MAX_PARAMS];
    jtn_frame frame = {0};
    jtn_taken taken = JTN_TAKEN;
    PyObject *object = NULL;
    jtn_status status;

    for (Py_ssize_t i = 0; i < count && i < (Py_ssize_t)fn->param_count && taken != JTN_PY_ERROR; i++) {
        taken = jtn__take_param(&frame, &fn->params[i].type, args[i], &values[i], &tensors[i]);
        if (taken == JTN_NOT_THIS)
            jtn__describe_object(&frame, args[i], &values[i], &tensors[i]);
    }
    if (taken != JTN_PY_ERROR) {
        status = (size_t)count == fn->param_count ? jtn__ffi_call(fn, values, (size_t)count, &result)
                                                  : jtn__arg_explain(fn, kDLCPU, values, (size_t)count);
        if (status == JTN_OK && result.kind == JTN_PTR && fn->c_info->returns.is_const &&
            fn->c_info->returns.dtype.bits == 8 && result.as.p)
            object = PyUnicode_FromString(result.as.p); /* const char *: a text */
        else
            object = status == JTN_OK ? jtn__to_python(NULL, &result) : jtn__py_raise(status);
    }
    jtn__frame_end(&frame);
    return object;
}

/* ---------------------------------------------------------------- making them ---- */

/* "name(a, n=3)\n--\n\n" is what inspect.signature reads; names must be identifiers and defaults plain. */
static void put_text_signature(jtn_buf *doc, const jtn_function *fn)
{
    const jtn_op *op = fn->op;
    bool positional = fn->kind == JTN_FUNCTION_C;

    if (op && op->next)
        return;
    jtn__buf_printf(doc, "%s(", fn->name);
    for (size_t i = 0; i < (op ? op->param_count : fn->param_count); i++) {
        jtn__buf_printf(doc, "%s%s", i ? ", " : "", op ? op->params[i].name : fn->params[i].name);
        positional |= op && op->params[i].positional_only;
        if (op && op->params[i].has_default) {
            jtn__buf_puts(doc, "=");
            jtn__value_put(doc, &op->params[i].default_value);
        }
    }
    if (positional && (op ? op->param_count : fn->param_count))
        jtn__buf_puts(doc, ", /");
    jtn__buf_puts(doc, ")\n--\n\n");
}

static char *make_doc(const jtn_function *fn)
{
    jtn_buf doc;
    char *text;

    jtn__buf_init(&doc, 0);
    put_text_signature(&doc, fn);
    jtn__buf_puts(&doc, fn->signature);
    for (const jtn_op *op = fn->op; op; op = op->next)
        if (op->doc)
            jtn__buf_printf(&doc, "\n\n%s", op->doc);
    if (!fn->op && fn->doc)
        jtn__buf_printf(&doc, "\n\n%s", fn->doc);
    text = jtn__buf_take(&doc, NULL);
    jtn__buf_deinit(&doc);
    return text;
}

PyObject *jtn__py_op(jtn_module *module, jtn_function *fn)
{
    jtn_builtin *b = jtn__alloc(sizeof *b);
    PyObject *capsule, *function, *module_name;

    if (!b || !(b->doc = make_doc(fn))) {
        jtn__free(b);
        return PyErr_NoMemory();
    }
    jtn__module_retain(module);
    b->module = module;
    b->fn = fn;
    b->method = (PyMethodDef){fn->name, fn->kind == JTN_FUNCTION_OP ? (void *)call_op : (void *)call_c,
                              METH_FASTCALL | (fn->kind == JTN_FUNCTION_OP ? METH_KEYWORDS : 0), b->doc};
    capsule = PyCapsule_New(b, CAPSULE, capsule_free);
    if (!capsule)
        return NULL;
    module_name = PyUnicode_FromString(module->name);
    function = module_name ? PyCFunction_NewEx(&b->method, capsule, module_name) : NULL;
    py_drop(module_name);
    py_drop(capsule);
    return function;
}
