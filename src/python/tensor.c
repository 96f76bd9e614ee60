/* tensor.c — Python's arrays as DLTensors: the converter of a type, found once and cached.
 *
 * By preference: DLPack's C exchange API (torch), the buffer protocol (NumPy), __cuda_array_interface__ (CuPy), __dlpack__. Cached types
 * are kept alive, so that an address never comes to mean another type. */
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "python/frame.h"

/* ---------------------------------------------------------------- holds ---- */

jtn_hold *jtn__hold(jtn_frame *frame, jtn_hold_kind kind, size_t dims)
{
    jtn_hold *h = jtn__alloc(sizeof *h + dims * sizeof(int64_t));

    if (!h) {
        PyErr_NoMemory();
        return NULL;
    }
    h->kind = kind;
    h->next = frame->holds;
    frame->holds = h;
    return h;
}

static void end_hold(jtn_hold *h)
{
    switch (h->kind) {
    case HOLD_BUFFER:
        PyBuffer_Release(&h->as.buffer);
        break;
    case HOLD_VERSIONED:
        if (h->as.versioned && h->as.versioned->deleter)
            h->as.versioned->deleter(h->as.versioned);
        break;
    case HOLD_OBJECT:
        py_drop(h->as.object);
        break;
    }
    jtn__free(h);
}

void jtn__frame_end(jtn_frame *frame)
{
    while (frame->holds) {
        jtn_hold *h = frame->holds;

        frame->holds = h->next;
        end_hold(h);
    }
    if (frame->arena.blocks)
        jtn__call_arena_deinit(&frame->arena);
}

/* ---------------------------------------------------------------- types ---- */

typedef enum { BY_NONE = 1, BY_EXCHANGE, BY_BUFFER, BY_CUDA_INTERFACE, BY_DLPACK } jtn_way;

typedef struct jtn_converter {
    _Atomic(PyTypeObject *) type;
    jtn_way way;
    jtn_origin origin;
    const jtn_exchange *exchange;
} jtn_converter;

/* Open addressing; entries are only ever added, under Python's lock or, without one, each slot by one winner. */
#define CONVERTERS 64
static jtn_converter converters[CONVERTERS];
static _Atomic(PyTypeObject *) claims[CONVERTERS];

static int has_attribute(PyTypeObject *type, const char *name)
{
    PyObject *attribute = PyObject_GetAttrString((PyObject *)type, name);

    if (!attribute)
        PyErr_Clear();
    py_drop(attribute);
    return attribute != NULL;
}

static const jtn_exchange *exchange_of(PyTypeObject *type)
{
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const jtn_exchange *api = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;

    if (!api)
        PyErr_Clear();
    py_drop(capsule);
    while (api && api->major != DLPACK_MAJOR_VERSION)
        api = api->previous;
    return api;
}

static int module_is(PyTypeObject *type, const char *name)
{
    PyObject *module = PyObject_GetAttrString((PyObject *)type, "__module__");
    const char *text = module ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
    size_t size = strlen(name);
    int is = text && strncmp(text, name, size) == 0 && (!text[size] || text[size] == '.');

    if (!text)
        PyErr_Clear();
    py_drop(module);
    return is;
}

static void examine(PyTypeObject *type, jtn_converter *out)
{
    *out = (jtn_converter){.way = BY_NONE, .origin = JTN_FROM_OTHER};
    out->origin = module_is(type, "torch")   ? JTN_FROM_TORCH
                  : module_is(type, "numpy") ? JTN_FROM_NUMPY
                  : module_is(type, "cupy")  ? JTN_FROM_CUPY
                                             : JTN_FROM_OTHER;
    if ((out->exchange = exchange_of(type))) {
        out->way = BY_EXCHANGE;
        /* a subclass of torch.Tensor lives in a module of its own */
        if (out->origin == JTN_FROM_OTHER && has_attribute(type, "data_ptr") && has_attribute(type, "requires_grad_"))
            out->origin = JTN_FROM_TORCH;
    } else if (out->origin == JTN_FROM_NUMPY ||
               (out->origin == JTN_FROM_OTHER && has_attribute(type, "__array_interface__"))) {
        out->way = BY_BUFFER;
        out->origin = JTN_FROM_NUMPY;
    } else if (has_attribute(type, "__cuda_array_interface__")) {
        out->way = BY_CUDA_INTERFACE;
    } else if (has_attribute(type, "__dlpack__")) {
        out->way = BY_DLPACK;
    }
}

/* The converter of a type; into scratch when the table is full. */
static const jtn_converter *converter_of(PyTypeObject *type, jtn_converter *scratch)
{
    size_t at = ((uintptr_t)type >> 4) % CONVERTERS;

    for (size_t i = 0; i < 8; i++) {
        jtn_converter *c = &converters[(at + i) % CONVERTERS];
        PyTypeObject *there = atomic_load_explicit(&c->type, memory_order_acquire);
        PyTypeObject *none = NULL;

        if (there == type)
            return c;
        if (there)
            continue;
        examine(type, scratch);
        /* a type without an interface may get one later (an extension that adds the exchange API): not remembered */
        if (scratch->way == BY_NONE || !atomic_compare_exchange_strong(&claims[(at + i) % CONVERTERS], &none, type))
            return scratch;
        c->way = scratch->way;
        c->origin = scratch->origin;
        c->exchange = scratch->exchange;
        Py_IncRef((PyObject *)type);
        atomic_store_explicit(&c->type, type, memory_order_release);
        return c;
    }
    examine(type, scratch);
    return scratch;
}

/* ---------------------------------------------------------------- tensors ---- */

/* "<f4", "|b1" of the array interfaces; "d", "?", "Zf" of the buffer protocol. bits stays 0 for what is no scalar. */
static DLDataType parse_format(const char *format, Py_ssize_t itemsize)
{
    static const struct {
        char letter;
        DLDataType dtype;
    } letters[] = {{'?', {kDLBool, 8, 1}},   {'b', {kDLInt, 8, 1}},    {'B', {kDLUInt, 8, 1}},  {'c', {kDLInt, 8, 1}},
                   {'h', {kDLInt, 16, 1}},   {'H', {kDLUInt, 16, 1}},  {'i', {kDLInt, 32, 1}},  {'I', {kDLUInt, 32, 1}},
                   {'l', {kDLInt, 64, 1}},   {'L', {kDLUInt, 64, 1}},  {'q', {kDLInt, 64, 1}},  {'Q', {kDLUInt, 64, 1}},
                   {'e', {kDLFloat, 16, 1}}, {'f', {kDLFloat, 32, 1}}, {'d', {kDLFloat, 64, 1}}};

    while (*format == '@' || *format == '=' || *format == '<' || *format == '|' || *format == '^')
        format++;
    if (format[0] == 'Z' && (format[1] == 'f' || format[1] == 'd') && !format[2])
        return (DLDataType){kDLComplex, format[1] == 'f' ? 64 : 128, 1};
    for (size_t i = 0; i < sizeof letters / sizeof *letters && !format[1]; i++)
        if (letters[i].letter == format[0])
            return (DLDataType){letters[i].dtype.code, (uint8_t)(8 * itemsize), 1};
    return (DLDataType){kDLOpaqueHandle, 0, 1};
}

static DLDataType parse_typestr(const char *typestr)
{
    int size = typestr[0] && typestr[1] ? typestr[2] - '0' : 0;
    DLDataType dtype = {kDLOpaqueHandle, 0, 1};

    if (size == 1 && typestr[3] >= '0' && typestr[3] <= '9')
        size = 10 + typestr[3] - '0';
    switch (typestr[0] ? typestr[1] : 0) {
    case 'b':
        return (DLDataType){kDLBool, 8, 1};
    case 'i':
        dtype.code = kDLInt;
        break;
    case 'u':
        dtype.code = kDLUInt;
        break;
    case 'f':
        dtype.code = kDLFloat;
        break;
    case 'c':
        dtype.code = kDLComplex;
        break;
    default:
        return dtype;
    }
    dtype.bits = (uint8_t)(8 * size);
    return dtype;
}

static jtn_taken by_exchange(jtn_frame *frame, const jtn_exchange *api, PyObject *object, DLTensor *dl)
{
    jtn_hold *h;

    if (api->borrowed_from)
        return api->borrowed_from(object, dl) == 0 ? JTN_TAKEN : JTN_PY_ERROR;
    if (!(h = jtn__hold(frame, HOLD_VERSIONED, 0)))
        return JTN_PY_ERROR;
    if (api->managed_from(object, &h->as.versioned) != 0) {
        h->as.versioned = NULL;
        return JTN_PY_ERROR;
    }
    *dl = h->as.versioned->dl_tensor;
    return JTN_TAKEN;
}

static jtn_taken by_buffer(jtn_frame *frame, PyObject *object, DLTensor *dl, uint32_t *flags)
{
    jtn_hold *h = jtn__hold(frame, HOLD_OBJECT, 0);
    Py_buffer view;
    size_t ndim;

    if (!h)
        return JTN_PY_ERROR;
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) != 0) {
        /* not every dtype has a buffer format (bfloat16, datetime64): the helper in Python tries the rest */
        PyErr_Clear();
        return JTN_NOT_THIS;
    }
    ndim = (size_t)view.ndim;
    if (!(h = jtn__hold(frame, HOLD_BUFFER, 2 * ndim + 1))) {
        PyBuffer_Release(&view);
        return JTN_PY_ERROR;
    }
    h->as.buffer = view;
    *dl = (DLTensor){
        .data = view.buf, .device = {kDLCPU, 0}, .ndim = view.ndim, .shape = h->dims, .strides = h->dims + ndim};
    dl->dtype = parse_format(view.format ? view.format : "B", view.itemsize);
    for (size_t i = 0; i < ndim; i++) {
        h->dims[i] = view.shape[i];
        if (view.itemsize && view.strides[i] % view.itemsize)
            return JTN_NOT_THIS;
        h->dims[ndim + i] = view.itemsize ? view.strides[i] / view.itemsize : 0;
    }
    *flags |= view.readonly ? JTN_TENSOR_READ_ONLY : 0;
    return dl->dtype.bits ? JTN_TAKEN : JTN_NOT_THIS; /* objects, texts, records, the other byte order */
}

/* The numbers of a tuple into out; -1 with an exception. */
static int read_dims(PyObject *tuple, int64_t *out, Py_ssize_t count, int64_t divide)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);

        out[i] = item ? PyLong_AsLongLong(item) / divide : -1;
        if (!item || (out[i] == -1 && PyErr_Occurred()))
            return -1;
    }
    return 0;
}

static jtn_taken read_cuda_interface(jtn_frame *frame, PyObject *interface, DLTensor *dl, uint32_t *flags)
{
    PyObject *shape = PyDict_GetItemString(interface, "shape"), *strides = PyDict_GetItemString(interface, "strides");
    PyObject *data = PyDict_GetItemString(interface, "data"), *typestr = PyDict_GetItemString(interface, "typestr");
    const char *type = typestr ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
    Py_ssize_t ndim = shape ? PyTuple_Size(shape) : -1;
    jtn_hold *h;

    if (!type || ndim < 0 || !data || PyTuple_Size(data) != 2) {
        PyErr_Format(PyExc_ValueError, "__cuda_array_interface__ has no shape, typestr or data");
        return JTN_PY_ERROR;
    }
    if (!(h = jtn__hold(frame, HOLD_OBJECT, 2 * (size_t)ndim + 1)))
        return JTN_PY_ERROR;
    *dl = (DLTensor){.device = {kDLCUDA, 0}, .ndim = (int32_t)ndim, .dtype = parse_typestr(type), .shape = h->dims};
    dl->data = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GetItem(data, 0));
    *flags |= PyObject_IsTrue(PyTuple_GetItem(data, 1)) == 1 ? JTN_TENSOR_READ_ONLY : 0;
    if (read_dims(shape, h->dims, ndim, 1) != 0)
        return JTN_PY_ERROR;
    if (strides && strides != Py_None) {
        dl->strides = h->dims + ndim;
        if (read_dims(strides, dl->strides, ndim, dl->dtype.bits ? dl->dtype.bits / 8 : 1) != 0)
            return JTN_PY_ERROR;
    }
    return PyErr_Occurred() ? JTN_PY_ERROR : JTN_TAKEN;
}

static jtn_taken by_cuda_interface(jtn_frame *frame, PyObject *object, DLTensor *dl, uint32_t *flags)
{
    PyObject *interface = PyObject_GetAttrString(object, "__cuda_array_interface__");
    PyObject *helper, *device;
    jtn_taken taken;

    if (!interface)
        return JTN_PY_ERROR;
    taken = read_cuda_interface(frame, interface, dl, flags);
    py_drop(interface);
    if (taken != JTN_TAKEN)
        return taken;
    /* the interface does not tell the device */
    helper = jtn__py_helper("device_of");
    device = helper ? PyObject_CallFunction(helper, "O", object) : NULL;
    if (!device)
        return JTN_PY_ERROR;
    dl->device.device_id = (int32_t)PyLong_AsLongLong(device);
    py_drop(device);
    return PyErr_Occurred() ? JTN_PY_ERROR : JTN_TAKEN;
}

/* The capsule of __dlpack__(): renamed by the helper once it is consumed here. */
static jtn_taken by_dlpack(jtn_frame *frame, PyObject *object, DLTensor *dl, uint32_t *flags)
{
    PyObject *helper = jtn__py_helper("dlpack_of");
    PyObject *capsule = helper ? PyObject_CallFunction(helper, "O", object) : NULL;
    jtn_hold *h = capsule ? jtn__hold(frame, HOLD_OBJECT, 0) : NULL;
    DLManagedTensorVersioned *versioned;
    DLManagedTensor *managed;

    if (!h) {
        py_drop(capsule);
        return JTN_PY_ERROR;
    }
    h->as.object = capsule; /* not renamed: it frees the tensor itself when the frame ends */
    if ((versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned"))) {
        *dl = versioned->dl_tensor;
        *flags |= versioned->flags & 1 ? JTN_TENSOR_READ_ONLY : 0;
        return JTN_TAKEN;
    }
    PyErr_Clear();
    if (!(managed = PyCapsule_GetPointer(capsule, "dltensor")))
        return JTN_PY_ERROR;
    *dl = managed->dl_tensor;
    return JTN_TAKEN;
}

jtn_taken jtn__take_tensor(jtn_frame *frame, PyObject *object, DLTensor *dl, uint32_t *flags)
{
    jtn_converter scratch;
    const jtn_converter *c = converter_of(py_type(object), &scratch);
    jtn_taken taken = JTN_NOT_THIS;

    switch (c->way) {
    case BY_EXCHANGE:
        taken = by_exchange(frame, c->exchange, object, dl);
        break;
    case BY_BUFFER:
        taken = by_buffer(frame, object, dl, flags);
        break;
    case BY_CUDA_INTERFACE:
        taken = by_cuda_interface(frame, object, dl, flags);
        break;
    case BY_DLPACK:
        taken = by_dlpack(frame, object, dl, flags);
        break;
    case BY_NONE:
        break;
    }
    if (taken != JTN_TAKEN)
        return taken;
    if (frame->origin == JTN_FROM_NONE) {
        frame->origin = c->origin;
        frame->first = object;
    }
    if (dl->device.device_type == kDLCUDA && frame->gpu_origin == JTN_FROM_NONE) {
        frame->gpu_origin = c->origin;
        frame->exchange = c->exchange;
    }
    return JTN_TAKEN;
}
