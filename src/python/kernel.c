/* kernel.c — kernels as Python objects: jitney.Kernel, called or bound to a grid, and the bound launcher.
 *
 * Both are called through vectorcall. A call converts each argument straight into the parameter block on the stack; grid and block were
 * decided when the launcher was bound, or are read from the keywords. Types are made from specs at start-up, with their fields behind
 * whatever head this Python has. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "python/convert.h"

typedef PyObject *(*vectorcall_fn)(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames);

typedef struct jtn_py_kernel {
    vectorcall_fn vectorcall;
    PyObject *weak;
    jtn_module *module; /* retained */
    jtn_function *fn;
} jtn_py_kernel;

typedef struct jtn_py_bound {
    vectorcall_fn vectorcall;
    PyObject *weak;
    PyObject *kernel; /* a reference */
    jtn_function *fn;
    PyObject *stream_object; /* keeps a given stream alive; may be NULL */
    jtn_launch_config config;
    bool has_stream, is_empty;
} jtn_py_bound;

static PyTypeObject *kernel_type, *bound_type;
static PyObject *word_grid, *word_block, *word_args, *word_shared, *word_stream, *word_cooperative, *word_cluster;

/* ---------------------------------------------------------------- launching ---- */

static PyObject *explain(jtn_frame *frame, jtn_function *fn, PyObject *const *args, Py_ssize_t count)
{
    jtn_value values[JTN_MAX_PARAMS];
    DLTensor tensors[JTN_MAX_PARAMS];
    int device_type = fn->module->target->dl_device_type;

    for (Py_ssize_t i = 0; i < count && i < JTN_MAX_PARAMS; i++)
        if (i >= (Py_ssize_t)fn->param_count ||
            jtn__take_param(frame, &fn->params[i].type, args[i], &values[i], &tensors[i]) != JTN_TAKEN) {
            PyErr_Clear();
            jtn__describe_object(frame, args[i], &values[i], &tensors[i]);
            if (values[i].kind > JTN_LIST && i < (Py_ssize_t)fn->param_count)
                return PyErr_Format(jtn__py_class(JTN_ERROR_ARGUMENT),
                                    "%s: argument %d (%s): expected %s, got an object of type %s", fn->name, (int)i + 1,
                                    fn->params[i].name, fn->params[i].type.text, values[i].as.s ? values[i].as.s : "?");
        }
    return jtn__py_raise(jtn__arg_explain(fn, device_type, values, (size_t)count));
}

/* config is complete but for stream and device. */
static PyObject *launch(jtn_frame *frame, jtn_function *fn, jtn_launch_config *config, bool has_stream,
                        PyObject *const *args, Py_ssize_t count)
{
    _Alignas(16) char block[JTN_MAX_PARAM_BYTES];
    void *params[JTN_MAX_PARAMS];
    const jtn_target *target = fn->module->target;
    int device = -1;
    size_t used = 0;
    jtn_status status;

    if (__builtin_expect((size_t)count != fn->param_count || fn->info->untyped, 0))
        return explain(frame, fn, args, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        const jtn_type *type = &fn->params[i].type;
        jtn_value value;
        DLTensor dl;
        jtn_taken taken = jtn__take_param(frame, type, args[i], &value, &dl);

        used = (used + type->align - 1) & ~(size_t)(type->align - 1);
        if (__builtin_expect(taken == JTN_PY_ERROR, 0))
            return NULL;
        if (__builtin_expect(taken != JTN_TAKEN || used + type->size > sizeof block ||
                                 !jtn__arg_pack(&fn->params[i], target->dl_device_type, &value, block + used, &device),
                             0))
            return explain(frame, fn, args, count);
        params[i] = block + used;
        used += type->size;
    }
    config->device = device >= 0 ? device : target->current_device();
    if (!has_stream && jtn__current_stream(frame, config->device, &config->stream) != 0)
        return NULL;
    status = jtn__launch_packed(fn, config, params);
    return status == JTN_OK ? py_ref(Py_None) : jtn__py_raise(status);
}

/* An empty grid still checks its arguments: a mistake should not hide behind an empty batch. */
static PyObject *launch_nothing(jtn_frame *frame, jtn_function *fn, PyObject *const *args, Py_ssize_t count)
{
    char slot[JTN_MAX_PARAM_BYTES] __attribute__((aligned(16)));
    int device = -1;

    if ((size_t)count != fn->param_count || fn->info->untyped)
        return explain(frame, fn, args, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        jtn_value value;
        DLTensor dl;

        if (jtn__take_param(frame, &fn->params[i].type, args[i], &value, &dl) != JTN_TAKEN ||
            !jtn__arg_pack(&fn->params[i], fn->module->target->dl_device_type, &value, slot, &device))
            return PyErr_Occurred() ? NULL : explain(frame, fn, args, count);
    }
    return py_ref(Py_None);
}

static PyObject *launch_or_not(jtn_function *fn, jtn_launch_config *config, bool has_stream, bool is_empty,
                               PyObject *const *args, Py_ssize_t count)
{
    jtn_frame frame = {0};
    PyObject *result =
        is_empty ? launch_nothing(&frame, fn, args, count) : launch(&frame, fn, config, has_stream, args, count);

    if (__builtin_expect(frame.holds || frame.arena.blocks, 0))
        jtn__frame_end(&frame);
    return result;
}

/* ---------------------------------------------------------------- grids ---- */

static int bad_dims(jtn_function *fn, const char *what)
{
    PyErr_Format(jtn__py_class(JTN_ERROR_ARGUMENT),
                 "%s: %s must be an int or a tuple of one to three ints, none negative and none above 2^31 - 1",
                 fn->name, what);
    return -1;
}

static int read_dim(jtn_function *fn, const char *what, PyObject *object, uint32_t *out)
{
    PyObject *index = PyNumber_Index(object);
    int overflow = 0;
    long long value = index ? PyLong_AsLongLongAndOverflow(index, &overflow) : -1;

    py_drop(index);
    if (!index || overflow || value < 0 || value > INT32_MAX) {
        PyErr_Clear();
        return bad_dims(fn, what);
    }
    *out = (uint32_t)value;
    return 0;
}

/* Shorter tuples are padded with 1, and a zero behind the first number counts as 1. */
static int read_dims(jtn_function *fn, const char *what, PyObject *object, uint32_t out[3])
{
    unsigned long flags = PyType_GetFlags(py_type(object));
    Py_ssize_t count;

    out[0] = out[1] = out[2] = 1;
    if (!(flags & (Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_LIST_SUBCLASS)))
        return read_dim(fn, what, object, out);
    count = flags & Py_TPFLAGS_TUPLE_SUBCLASS ? PyTuple_Size(object) : PyList_Size(object);
    if (count < 1 || count > 3)
        return bad_dims(fn, what);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_dim(fn, what,
                     flags & Py_TPFLAGS_TUPLE_SUBCLASS ? PyTuple_GetItem(object, i) : PyList_GetItem(object, i),
                     &out[i]) != 0)
            return -1;
        out[i] += i > 0 && out[i] == 0;
    }
    return 0;
}

static int read_grid(jtn_function *fn, PyObject *grid, PyObject *block, jtn_launch_config *config, bool *is_empty)
{
    if (read_dims(fn, "grid", grid, config->grid) != 0 || read_dims(fn, "block", block, config->block) != 0)
        return -1;
    config->block[0] += config->block[0] == 0;
    *is_empty = config->grid[0] == 0;
    return 0;
}

static int read_shared(jtn_function *fn, PyObject *object, jtn_launch_config *config)
{
    PyObject *index = PyNumber_Index(object);
    int overflow = 0;
    long long bytes = index ? PyLong_AsLongLongAndOverflow(index, &overflow) : -1;

    py_drop(index);
    if (!index || overflow || bytes < 0 || bytes > INT32_MAX) {
        PyErr_Clear();
        PyErr_Format(jtn__py_class(JTN_ERROR_ARGUMENT), "%s: shared must be a number of bytes", fn->name);
        return -1;
    }
    config->shared_bytes = (uint32_t)bytes;
    return 0;
}

/* ---------------------------------------------------------------- the bound launcher ---- */

static PyObject *bound_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    jtn_py_bound *b = py_fields(self);
    jtn_launch_config config = b->config;

    if (__builtin_expect(kwnames && PyTuple_Size(kwnames), 0))
        return PyErr_Format(jtn__py_class(JTN_ERROR_ARGUMENT),
                            "%s[...]: a bound launcher takes the kernel's arguments only, in order", b->fn->name);
    return launch_or_not(b->fn, &config, b->has_stream, b->is_empty, args,
                         (Py_ssize_t)(nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET));
}

static void free_object(PyObject *self)
{
    PyTypeObject *type = py_type(self);

    PyObject_Free(self);
    Py_DecRef((PyObject *)type);
}

static void bound_dealloc(PyObject *self)
{
    jtn_py_bound *b = py_fields(self);

    if (b->weak)
        PyObject_ClearWeakRefs(self);
    py_drop(b->stream_object);
    py_drop(b->kernel);
    free_object(self);
}

static PyObject *bound_repr(PyObject *self)
{
    jtn_py_bound *b = py_fields(self);
    char text[512];

    snprintf(text, sizeof text, "<jitney kernel %.300s bound to grid (%u, %u, %u), block (%u, %u, %u)>", b->fn->name,
             b->config.grid[0], b->config.grid[1], b->config.grid[2], b->config.block[0], b->config.block[1],
             b->config.block[2]);
    return PyUnicode_FromString(text);
}

static PyObject *bind(PyObject *self, PyObject *key)
{
    jtn_py_kernel *k = py_fields(self);
    Py_ssize_t count = PyType_GetFlags(py_type(key)) & Py_TPFLAGS_TUPLE_SUBCLASS ? PyTuple_Size(key) : 0;
    jtn_py_bound made = {.vectorcall = bound_call, .fn = k->fn, .config = {.struct_size = sizeof made.config}};
    PyObject *bound, *stream = count == 4 ? PyTuple_GetItem(key, 3) : Py_None;

    if (count < 2 || count > 4)
        return PyErr_Format(jtn__py_class(JTN_ERROR_ARGUMENT),
                            "%s[grid, block], %s[grid, block, shared] or %s[grid, block, shared, stream]", k->fn->name,
                            k->fn->name, k->fn->name);
    if (read_grid(k->fn, PyTuple_GetItem(key, 0), PyTuple_GetItem(key, 1), &made.config, &made.is_empty) != 0)
        return NULL;
    if (count > 2 && PyTuple_GetItem(key, 2) != Py_None &&
        read_shared(k->fn, PyTuple_GetItem(key, 2), &made.config) != 0)
        return NULL;
    made.has_stream = stream != Py_None;
    if (made.has_stream && jtn__take_stream(stream, &made.config.stream) != 0)
        return NULL;
    if (!(bound = PyType_GenericAlloc(bound_type, 0)))
        return NULL;
    made.kernel = py_ref(self);
    made.stream_object = made.has_stream ? py_ref(stream) : NULL;
    *(jtn_py_bound *)py_fields(bound) = made;
    return bound;
}

/* ---------------------------------------------------------------- the kernel ---- */

typedef struct jtn_keywords {
    PyObject *grid, *block, *args, *shared, *stream, *cooperative, *cluster;
} jtn_keywords;

static int read_keywords(jtn_function *fn, PyObject *kwnames, PyObject *const *values, jtn_keywords *out)
{
    const struct {
        PyObject *word, **slot;
    } known[] = {{word_grid, &out->grid},      {word_block, &out->block}, {word_stream, &out->stream},
                 {word_shared, &out->shared},  {word_args, &out->args},   {word_cooperative, &out->cooperative},
                 {word_cluster, &out->cluster}};
    Py_ssize_t count = kwnames ? PyTuple_Size(kwnames) : 0;

    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(kwnames, i);
        size_t at = 0;

        while (at < sizeof known / sizeof *known && known[at].word != name)
            at++;
        for (size_t k = 0; at == sizeof known / sizeof *known && k < sizeof known / sizeof *known; k++)
            if (PyUnicode_Compare(known[k].word, name) == 0) {
                at = k;
                break;
            }
        if (at == sizeof known / sizeof *known) {
            PyErr_Format(jtn__py_class(JTN_ERROR_ARGUMENT),
                         "%s: there is no keyword %R; a launch takes grid, block, shared, stream, cooperative, "
                         "cluster, and the kernel's arguments in order (or as args=[...])",
                         fn->name, name);
            return -1;
        }
        *known[at].slot = values[i];
    }
    if (out->grid && out->block)
        return 0;
    PyErr_Format(jtn__py_class(JTN_ERROR_ARGUMENT),
                 "%s: a launch needs grid and block: %s[grid, block](...) or %s(..., grid=..., block=...)", fn->name,
                 fn->name, fn->name);
    return -1;
}

static int read_config(jtn_function *fn, const jtn_keywords *words, jtn_launch_config *config, bool *has_stream,
                       bool *is_empty)
{
    if (read_grid(fn, words->grid, words->block, config, is_empty) != 0)
        return -1;
    if (words->shared && words->shared != Py_None && read_shared(fn, words->shared, config) != 0)
        return -1;
    *has_stream = words->stream && words->stream != Py_None;
    if (*has_stream && jtn__take_stream(words->stream, &config->stream) != 0)
        return -1;
    if (words->cooperative && PyObject_IsTrue(words->cooperative) == 1)
        config->flags |= JTN_LAUNCH_COOPERATIVE;
    if (words->cluster && words->cluster != Py_None && read_dims(fn, "cluster", words->cluster, config->cluster) != 0)
        return -1;
    return 0;
}

static PyObject *call_with_list(jtn_function *fn, jtn_launch_config *config, bool has_stream, bool is_empty,
                                PyObject *list)
{
    PyObject *tuple = PySequence_Tuple(list), *items[JTN_MAX_PARAMS], *result;
    Py_ssize_t count = tuple ? PyTuple_Size(tuple) : 0;

    if (!tuple)
        return NULL;
    if (count > JTN_MAX_PARAMS) {
        Py_DecRef(tuple);
        return PyErr_Format(jtn__py_class(JTN_ERROR_ARGUMENT), "%s: %d arguments are too many", fn->name, (int)count);
    }
    for (Py_ssize_t i = 0; i < count; i++)
        items[i] = PyTuple_GetItem(tuple, i);
    result = launch_or_not(fn, config, has_stream, is_empty, items, count);
    Py_DecRef(tuple);
    return result;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    jtn_py_kernel *k = py_fields(self);
    Py_ssize_t count = (Py_ssize_t)(nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET);
    jtn_launch_config config = {.struct_size = sizeof config};
    jtn_keywords words = {0};
    bool has_stream = false, is_empty = false;

    if (read_keywords(k->fn, kwnames, args + count, &words) != 0 ||
        read_config(k->fn, &words, &config, &has_stream, &is_empty) != 0)
        return NULL;
    if (!words.args)
        return launch_or_not(k->fn, &config, has_stream, is_empty, args, count);
    if (count)
        return PyErr_Format(jtn__py_class(JTN_ERROR_ARGUMENT),
                            "%s: the arguments are given either in order or as args=[...], not both", k->fn->name);
    return call_with_list(k->fn, &config, has_stream, is_empty, words.args);
}

static void kernel_dealloc(PyObject *self)
{
    jtn_py_kernel *k = py_fields(self);

    if (k->weak)
        PyObject_ClearWeakRefs(self);
    jtn__module_release(k->module);
    free_object(self);
}

static PyObject *kernel_repr(PyObject *self)
{
    jtn_py_kernel *k = py_fields(self);
    char text[2048];

    snprintf(text, sizeof text, "<jitney kernel %s>", k->fn->signature);
    return PyUnicode_FromString(text);
}

static PyObject *get_name(PyObject *self, void *closure)
{
    return PyUnicode_FromString(((jtn_py_kernel *)py_fields(self))->fn->name);
}

static PyObject *get_signature(PyObject *self, void *closure)
{
    return PyUnicode_FromString(((jtn_py_kernel *)py_fields(self))->fn->signature);
}

static PyObject *get_doc(PyObject *self, void *closure)
{
    jtn_function *fn = ((jtn_py_kernel *)py_fields(self))->fn;
    char *text = jtn__format("%s%s%s", fn->signature, fn->doc ? "\n\n" : "", fn->doc ? fn->doc : "");
    PyObject *doc = text ? PyUnicode_FromString(text) : PyErr_NoMemory();

    jtn__free(text);
    return doc;
}

static PyObject *get_params(PyObject *self, void *closure)
{
    jtn_function *fn = ((jtn_py_kernel *)py_fields(self))->fn;
    PyObject *tuple = PyTuple_New((Py_ssize_t)fn->param_count);

    for (size_t i = 0; tuple && i < fn->param_count; i++) {
        PyObject *pair = PyTuple_New(2);

        if (!pair || PyTuple_SetItem(pair, 0, PyUnicode_FromString(fn->params[i].name)) ||
            PyTuple_SetItem(pair, 1, PyUnicode_FromString(fn->params[i].type.text)) ||
            PyTuple_SetItem(tuple, (Py_ssize_t)i, pair)) {
            py_drop(tuple);
            return NULL;
        }
    }
    return tuple;
}

static PyObject *get_attributes(PyObject *self, void *closure)
{
    static const char *const names[] = {"registers",   "shared_bytes",          "const_bytes",
                                        "local_bytes", "max_threads_per_block", "max_dynamic_shared_bytes",
                                        "ptx_version", "binary_version"};
    jtn_function *fn = ((jtn_py_kernel *)py_fields(self))->fn;
    PyObject *dict;
    int64_t value;
    jtn_status status = jtn__function_prepare(fn);

    if (status != JTN_OK)
        return jtn__py_raise(status);
    dict = PyDict_New();
    for (size_t i = 0; dict && i < sizeof names / sizeof *names; i++) {
        PyObject *number;

        status = fn->module->target->attribute(fn->kernel, names[i], fn->module->target->current_device(), &value);
        number = status == JTN_OK ? PyLong_FromLongLong(value) : jtn__py_raise(status);
        if (!number || PyDict_SetItemString(dict, names[i], number) != 0) {
            py_drop(number);
            py_drop(dict);
            return NULL;
        }
        Py_DecRef(number);
    }
    return dict;
}

static PyObject *no_pickle(PyObject *self, PyObject *ignored)
{
    return PyErr_Format(PyExc_TypeError,
                        "a kernel cannot be pickled; load its module again where it is needed: the cache has it");
}

/* ---------------------------------------------------------------- types ---- */

static PyGetSetDef kernel_getset[] = {
    {"name", get_name, NULL, "The kernel's qualified name.", NULL},
    {"__name__", get_name, NULL, NULL, NULL},
    {"signature", get_signature, NULL, "Name, parameters and their C types.", NULL},
    {"__doc__", get_doc, NULL, NULL, NULL},
    {"params", get_params, NULL, "A tuple of (name, C type).", NULL},
    {"attributes", get_attributes, NULL,
     "What the driver tells of the kernel on the current GPU: registers, shared memory and so on", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef kernel_methods[] = {{"__reduce__", no_pickle, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyMemberDef kernel_members[] = {{"__vectorcalloffset__", T_PYSSIZET, 0, READONLY, NULL},
                                       {"__weaklistoffset__", T_PYSSIZET, 0, READONLY, NULL},
                                       {NULL, 0, 0, 0, NULL}};
static PyMemberDef bound_members[] = {{"__vectorcalloffset__", T_PYSSIZET, 0, READONLY, NULL},
                                      {"__weaklistoffset__", T_PYSSIZET, 0, READONLY, NULL},
                                      {NULL, 0, 0, 0, NULL}};
static PyType_Slot kernel_slots[] = {{Py_tp_dealloc, kernel_dealloc},
                                     {Py_tp_repr, kernel_repr},
                                     {Py_tp_call, NULL},
                                     {Py_mp_subscript, bind},
                                     {Py_tp_getset, kernel_getset},
                                     {Py_tp_members, kernel_members},
                                     {Py_tp_methods, kernel_methods},
                                     {0, NULL}};
static PyType_Slot bound_slots[] = {{Py_tp_dealloc, bound_dealloc},
                                    {Py_tp_repr, bound_repr},
                                    {Py_tp_call, NULL},
                                    {Py_tp_members, bound_members},
                                    {0, NULL}};

static PyTypeObject *make_type(const char *name, size_t size, PyType_Slot *slots, PyMemberDef *members)
{
    PyType_Spec spec = {name, (int)(jtn__py_head_size + size), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                        slots};

    for (PyType_Slot *slot = slots; slot->slot; slot++)
        if (slot->slot == Py_tp_call)
            slot->function = PyVectorcall_Call;
    members[0].offset = (Py_ssize_t)(jtn__py_head_size + offsetof(jtn_py_kernel, vectorcall));
    members[1].offset = (Py_ssize_t)(jtn__py_head_size + offsetof(jtn_py_kernel, weak));
    return (PyTypeObject *)PyType_FromSpec(&spec);
}

int jtn__py_kernel_types(void)
{
    struct {
        PyObject **word;
        const char *text;
    } words[] = {{&word_grid, "grid"},      {&word_block, "block"},   {&word_args, "args"},
                 {&word_shared, "shared"},  {&word_stream, "stream"}, {&word_cooperative, "cooperative"},
                 {&word_cluster, "cluster"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!(*words[i].word = PyUnicode_InternFromString(words[i].text)))
            return -1;
    kernel_type = make_type("jitney.Kernel", sizeof(jtn_py_kernel), kernel_slots, kernel_members);
    bound_type = kernel_type ? make_type("jitney.BoundKernel", sizeof(jtn_py_bound), bound_slots, bound_members) : NULL;
    return bound_type ? 0 : -1;
}

PyObject *jtn__py_kernel(jtn_module *module, jtn_function *fn)
{
    PyObject *kernel = PyType_GenericAlloc(kernel_type, 0);

    if (!kernel)
        return NULL;
    jtn__module_retain(module);
    *(jtn_py_kernel *)py_fields(kernel) = (jtn_py_kernel){.vectorcall = kernel_call, .module = module, .fn = fn};
    return kernel;
}
