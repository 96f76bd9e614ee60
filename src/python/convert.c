/* convert.c — Python objects to values.
 *
 * The order: what Python itself has (float, int, bool, str, None, list, tuple) by exact type; then the converter cached for the object's
 * type: DLPack's C exchange API (torch), the buffer protocol (NumPy), __cuda_array_interface__ (CuPy), __dlpack__. What is wanted guides
 * the choice: where a scalar is wanted, a zero-dimensional array is a number. Cached types are kept alive, so that an address never comes
 * to mean another type. */
#include "python/convert.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"

_Thread_local jtn_frame *jtn__frame;
size_t jtn__py_type_offset, jtn__py_head_size;

struct jtn_exchange {
    uint32_t major, minor;
    const jtn_exchange *previous;
    int (*allocate)(void *prototype, void **out, void *context, void (*set_error)(void *, const char *, const char *));
    int (*managed_from)(void *object, DLManagedTensorVersioned **out);
    int (*managed_to)(DLManagedTensorVersioned *tensor, void **out);
    int (*borrowed_from)(void *object, DLTensor *out); /* may be NULL */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
};

/* ---------------------------------------------------------------- the frame ---- */

typedef enum { HOLD_BUFFER, HOLD_VERSIONED, HOLD_MANAGED, HOLD_OBJECT } jtn_hold_kind;

typedef struct jtn_hold {
    struct jtn_hold *next;
    jtn_hold_kind kind;
    union {
        Py_buffer buffer;
        DLManagedTensorVersioned *versioned;
        DLManagedTensor *managed;
        PyObject *object;
    } as;
    int64_t dims[]; /* shape and strides, where the producer's are of another form */
} jtn_hold;

static jtn_hold *hold(jtn_frame *frame, jtn_hold_kind kind, size_t dims)
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
    case HOLD_MANAGED:
        if (h->as.managed && h->as.managed->deleter)
            h->as.managed->deleter(h->as.managed);
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
    out->origin = module_is(type, "torch") ? JTN_FROM_TORCH : module_is(type, "numpy") ? JTN_FROM_NUMPY : module_is(type, "cupy") ? JTN_FROM_CUPY : JTN_FROM_OTHER;
    if ((out->exchange = exchange_of(type))) {
        out->way = BY_EXCHANGE;
        /* a subclass of torch.Tensor lives in a module of its own */
        if (out->origin == JTN_FROM_OTHER && has_attribute(type, "data_ptr") && has_attribute(type, "requires_grad_"))
            out->origin = JTN_FROM_TORCH;
    } else if (out->origin == JTN_FROM_NUMPY || (out->origin == JTN_FROM_OTHER && has_attribute(type, "__array_interface__"))) {
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
    } letters[] = {{'?', {kDLBool, 8, 1}}, {'b', {kDLInt, 8, 1}},  {'B', {kDLUInt, 8, 1}},  {'c', {kDLInt, 8, 1}},   {'h', {kDLInt, 16, 1}},
                   {'H', {kDLUInt, 16, 1}}, {'i', {kDLInt, 32, 1}}, {'I', {kDLUInt, 32, 1}}, {'l', {kDLInt, 64, 1}},  {'L', {kDLUInt, 64, 1}},
                   {'q', {kDLInt, 64, 1}},  {'Q', {kDLUInt, 64, 1}}, {'e', {kDLFloat, 16, 1}}, {'f', {kDLFloat, 32, 1}}, {'d', {kDLFloat, 64, 1}}};

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
    if (!(h = hold(frame, HOLD_VERSIONED, 0)))
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
    jtn_hold *h = hold(frame, HOLD_OBJECT, 0);
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
    if (!(h = hold(frame, HOLD_BUFFER, 2 * ndim + 1))) {
        PyBuffer_Release(&view);
        return JTN_PY_ERROR;
    }
    h->as.buffer = view;
    *dl = (DLTensor){.data = view.buf, .device = {kDLCPU, 0}, .ndim = view.ndim, .shape = h->dims, .strides = h->dims + ndim};
    dl->dtype = parse_format(view.format ? view.format : "B", view.itemsize);
    for (size_t i = 0; i < ndim; i++) {
        h->dims[i] = view.shape[i];
        if (view.itemsize && view.strides[i] % view.itemsize)
            return JTN_NOT_THIS;
        h->dims[ndim + i] = view.itemsize ? view.strides[i] / view.itemsize : 0;
    }
    *flags |= view.readonly ? JTN_TENSOR_READ_ONLY : 0;
    return JTN_TAKEN;
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
    if (!(h = hold(frame, HOLD_OBJECT, 2 * (size_t)ndim + 1)))
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
    jtn_hold *h = capsule ? hold(frame, HOLD_OBJECT, 0) : NULL;
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

static jtn_taken take_tensor(jtn_frame *frame, PyObject *object, DLTensor *dl, uint32_t *flags)
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

/* ---------------------------------------------------------------- scalars ---- */

static jtn_taken take_long(PyObject *object, jtn_value *value)
{
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(object, &overflow);

    *value = (jtn_value){.kind = JTN_INT};
    value->as.i = i;
    if (overflow > 0) {
        value->kind = JTN_UINT;
        value->as.u = PyLong_AsUnsignedLongLong(object);
        if (PyErr_Occurred())
            PyErr_Clear(), value->kind = JTN_FLOAT, value->as.d = PyFloat_AsDouble(object);
    } else if (overflow < 0) {
        value->kind = JTN_FLOAT;
        value->as.d = PyFloat_AsDouble(object);
    }
    if (PyErr_Occurred())
        PyErr_Clear();
    return overflow && value->kind == JTN_FLOAT ? JTN_NOT_THIS : JTN_TAKEN;
}

/* NumPy's and torch's numbers: "item" gives Python's. */
static jtn_taken take_item(PyObject *object, jtn_value *value)
{
    PyObject *item = PyObject_CallMethod(object, "item", NULL);
    jtn_taken taken = JTN_NOT_THIS;

    if (!item) {
        PyErr_Clear();
        if (!(item = PyNumber_Index(object))) {
            PyErr_Clear();
            return JTN_NOT_THIS;
        }
    }
    if (py_type(item) == &PyFloat_Type) {
        *value = (jtn_value){.kind = JTN_FLOAT};
        value->as.d = PyFloat_AsDouble(item);
        taken = JTN_TAKEN;
    } else if (py_type(item) == &PyBool_Type) {
        *value = (jtn_value){.kind = JTN_BOOL};
        value->as.i = item == Py_True;
        taken = JTN_TAKEN;
    } else if (py_type(item) == &PyLong_Type) {
        taken = take_long(item, value);
    }
    py_drop(item);
    return taken;
}

static jtn_taken take_number(PyObject *object, jtn_value *value)
{
    PyTypeObject *type = py_type(object);

    if (type == &PyFloat_Type) {
        *value = (jtn_value){.kind = JTN_FLOAT};
        value->as.d = PyFloat_AsDouble(object);
        return JTN_TAKEN;
    }
    if (type == &PyLong_Type)
        return take_long(object, value);
    if (type == &PyBool_Type) {
        *value = (jtn_value){.kind = JTN_BOOL};
        value->as.i = object == Py_True;
        return JTN_TAKEN;
    }
    if (PyType_GetFlags(type) & Py_TPFLAGS_LONG_SUBCLASS)
        return take_long(object, value);
    if (object == Py_None || type == &PyUnicode_Type || type == &PyTuple_Type || type == &PyList_Type)
        return JTN_NOT_THIS;
    return take_item(object, value);
}

static jtn_taken take_str(jtn_frame *frame, PyObject *object, jtn_value *value)
{
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(object, &size); /* cached in the object, which the call keeps alive */

    if (!text)
        return JTN_PY_ERROR;
    *value = (jtn_value){.kind = JTN_STR, .size = (uint32_t)size};
    value->as.s = text;
    return JTN_TAKEN;
}

/* A struct by value: any object with a buffer of its bytes (bytes, ctypes structures, NumPy's structured scalars). */
static jtn_taken take_struct(jtn_frame *frame, PyObject *object, jtn_value *value)
{
    Py_buffer view;
    jtn_hold *h;

    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) != 0) {
        PyErr_Clear();
        return JTN_NOT_THIS;
    }
    if (!(h = hold(frame, HOLD_BUFFER, 0))) {
        PyBuffer_Release(&view);
        return JTN_PY_ERROR;
    }
    h->as.buffer = view;
    *value = (jtn_value){.kind = JTN_BYTES, .size = (uint32_t)view.len};
    value->as.p = view.buf;
    return JTN_TAKEN;
}

/* ---------------------------------------------------------------- parameters of kernels and C functions ---- */

static jtn_taken take_pointer(jtn_frame *frame, PyObject *object, jtn_value *value, DLTensor *dl)
{
    PyTypeObject *type = py_type(object);
    uint32_t flags = 0;
    jtn_taken taken;

    if (object == Py_None) {
        *value = (jtn_value){.kind = JTN_NONE};
        return JTN_TAKEN;
    }
    if (type == &PyLong_Type)
        return take_long(object, value);
    if (type == &PyUnicode_Type)
        return take_str(frame, object, value);
    taken = take_tensor(frame, object, dl, &flags);
    if (taken == JTN_TAKEN) {
        *value = (jtn_value){.kind = JTN_DLTENSOR, .size = flags};
        value->as.dl = dl;
    }
    if (taken == JTN_NOT_THIS && type != &PyFloat_Type && type != &PyBool_Type)
        taken = take_struct(frame, object, value) == JTN_TAKEN ? (value->kind = JTN_PTR, value->size = 0, JTN_TAKEN) : JTN_NOT_THIS;
    return taken;
}

jtn_taken jtn__take_param(jtn_frame *frame, const jtn_type *type, PyObject *object, jtn_value *value, DLTensor *dl)
{
    jtn_taken taken = JTN_NOT_THIS;

    if (type->kind == JTN_TYPE_SCALAR)
        taken = take_number(object, value);
    else if (type->kind == JTN_TYPE_POINTER)
        taken = take_pointer(frame, object, value, dl);
    else if (type->kind == JTN_TYPE_STRUCT)
        taken = take_struct(frame, object, value);
    return taken;
}

void jtn__describe_object(jtn_frame *frame, PyObject *object, jtn_value *value, DLTensor *dl)
{
    uint32_t flags = 0;
    jtn_taken taken = JTN_NOT_THIS;

    if (object == Py_None) {
        *value = (jtn_value){.kind = JTN_NONE};
        return;
    }
    if (py_type(object) == &PyFloat_Type || py_type(object) == &PyLong_Type || py_type(object) == &PyBool_Type)
        taken = take_number(object, value) == JTN_PY_ERROR ? JTN_NOT_THIS : JTN_TAKEN;
    else if (py_type(object) == &PyUnicode_Type)
        taken = take_str(frame, object, value);
    else if (take_tensor(frame, object, dl, &flags) == JTN_TAKEN) {
        *value = (jtn_value){.kind = JTN_DLTENSOR, .size = flags};
        value->as.dl = dl;
        taken = JTN_TAKEN;
    }
    PyErr_Clear();
    if (taken != JTN_TAKEN) { /* its type's name, as a text nobody takes for one of theirs */
        PyObject *name = PyObject_GetAttrString((PyObject *)py_type(object), "__name__");

        *value = (jtn_value){.kind = JTN_LIST + 1};
        if (!name || take_str(frame, name, value) != JTN_TAKEN)
            PyErr_Clear();
        value->kind = JTN_LIST + 1;
        if (name) {
            jtn_hold *h = hold(frame, HOLD_OBJECT, 0);

            if (h)
                h->as.object = name;
        }
    }
}

/* ---------------------------------------------------------------- boxes ---- */

/* A tensor of Python's as ops see it. While the call runs it borrows the object and its shape; if the op kept a reference, it is made to
 * stand on its own. */
typedef struct jtn_py_box {
    jtn_tensor_box box;
    PyObject *object;
    bool owned;      /* object is a reference of ours */
    int64_t *dims;   /* more than 8 dimensions; owned */
    struct jtn_py_box *next;
} jtn_py_box;

static _Thread_local jtn_py_box *spare;

static void destroy_box(jtn_tensor_box *head)
{
    jtn_py_box *box = (jtn_py_box *)(void *)head;

    if (box->owned && Py_IsInitialized()) {
        int state = PyGILState_Ensure();

        Py_DecRef(box->object);
        PyGILState_Release(state);
    }
    jtn__free(box->dims);
    jtn__free(box);
}

static jtn_py_box *new_box(void)
{
    jtn_py_box *box = spare;

    if (box)
        spare = box->next;
    else if (!(box = jtn__alloc(sizeof *box))) {
        PyErr_NoMemory();
        return NULL;
    }
    box->box.destroy = destroy_box;
    box->box.head.refcount = 1;
    box->box.head.flags = 0;
    return box;
}

static void recycle(jtn_py_box *box)
{
    if (box->dims)
        jtn__free(box->dims);
    box->dims = NULL;
    box->owned = false;
    box->next = spare;
    spare = box;
}

/* The producer's shape may go when control returns to it. */
static int own_dims(jtn_py_box *box)
{
    DLTensor *dl = &box->box.head.dl;
    int64_t *dims = box->box.inline_dims;
    int32_t room = 8;

    if (dl->ndim > 8) {
        room = dl->ndim;
        if (!(dims = box->dims = jtn__alloc(2 * (size_t)room * sizeof *dims)))
            return -1;
    }
    for (int32_t i = 0; i < dl->ndim; i++) {
        dims[i] = dl->shape[i];
        dims[room + i] = dl->strides[i];
    }
    dl->shape = dims;
    dl->strides = dims + room;
    return 0;
}

static jtn_taken box_tensor(jtn_frame *frame, PyObject *object, jtn_value *value)
{
    jtn_py_box *box = new_box();
    jtn_taken taken;

    if (!box)
        return JTN_PY_ERROR;
    box->object = object;
    box->owned = false;
    taken = take_tensor(frame, object, &box->box.head.dl, &box->box.head.flags);
    if (taken == JTN_TAKEN && jtn__tensor_box_finish(&box->box) != JTN_OK) {
        jtn__py_raise(JTN_ERROR_ARGUMENT);
        taken = JTN_PY_ERROR;
    }
    if (taken != JTN_TAKEN) {
        recycle(box);
        return taken;
    }
    *value = (jtn_value){.kind = JTN_TENSOR};
    value->as.t = &box->box.head;
    return JTN_TAKEN;
}

void jtn__give_back(jtn_value *value)
{
    if (value->kind == JTN_LIST)
        for (uint32_t i = 0; i < value->size; i++)
            jtn__give_back(&value->as.list[i]);
    if (value->kind != JTN_TENSOR)
        return;
    jtn_py_box *box = (jtn_py_box *)(void *)value->as.t;

    if (__atomic_load_n(&box->box.head.refcount, __ATOMIC_ACQUIRE) == 1 && !box->owned) {
        recycle(box);
        return;
    }
    if (!box->owned && own_dims(box) == 0) { /* the op kept it */
        Py_IncRef(box->object);
        box->owned = true;
    }
    jtn__abi.tensor_release(value->as.t);
}

jtn_tensor *jtn__box_object(PyObject *object)
{
    jtn_frame frame = {0};
    jtn_value value;
    jtn_py_box *box;
    jtn_taken taken = box_tensor(&frame, object, &value);

    if (taken == JTN_NOT_THIS)
        PyErr_Format(PyExc_TypeError, "a tensor was expected");
    if (taken != JTN_TAKEN) {
        jtn__frame_end(&frame);
        return NULL;
    }
    box = (jtn_py_box *)(void *)value.as.t;
    if (own_dims(box) != 0) {
        jtn__frame_end(&frame);
        recycle(box);
        PyErr_NoMemory();
        return NULL;
    }
    Py_IncRef(object);
    box->owned = true;
    jtn__frame_end(&frame); /* a NumPy array's memory is the object's own: the buffer need not be held */
    return value.as.t;
}

PyObject *jtn__boxed_object(jtn_tensor *tensor)
{
    jtn_py_box *box = (jtn_py_box *)(void *)tensor;

    return box->box.destroy == destroy_box ? box->object : NULL;
}

/* ---------------------------------------------------------------- parameters of ops ---- */

static jtn_taken take_list(jtn_frame *frame, const jtn_op_type *type, PyObject *object, jtn_value *value)
{
    unsigned long flags = PyType_GetFlags(py_type(object));
    bool is_tuple = flags & Py_TPFLAGS_TUPLE_SUBCLASS;
    jtn_hold *h = NULL;
    jtn_value *items;
    Py_ssize_t count;

    if (!is_tuple && !(flags & Py_TPFLAGS_LIST_SUBCLASS)) { /* any sequence but a text: a NumPy array, torch.Size, range */
        PyObject *tuple = flags & (Py_TPFLAGS_UNICODE_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS) || object == Py_None ? NULL : PySequence_Tuple(object);

        if (!tuple) {
            PyErr_Clear();
            return JTN_NOT_THIS;
        }
        if (!(h = hold(frame, HOLD_OBJECT, 0))) {
            py_drop(tuple);
            return JTN_PY_ERROR;
        }
        h->as.object = object = tuple;
        is_tuple = true;
    }
    count = is_tuple ? PyTuple_Size(object) : PyList_Size(object);
    if (type->kind == JTN_OP_TUPLE && (size_t)count != type->inner_count)
        return JTN_NOT_THIS;
    items = jtn__abi.call_alloc(&frame->arena, ((size_t)count + 1) * sizeof *items);
    if (!items) {
        PyErr_NoMemory();
        return JTN_PY_ERROR;
    }
    *value = (jtn_value){.kind = JTN_LIST};
    value->as.list = items;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = is_tuple ? PyTuple_GetItem(object, i) : PyList_GetItem(object, i);
        jtn_taken taken = jtn__take_op(frame, &type->inner[type->kind == JTN_OP_TUPLE ? i : 0], item, &items[i]);

        if (taken != JTN_TAKEN) {
            jtn__give_back(value);
            *value = (jtn_value){0};
            return taken;
        }
        value->size++;
    }
    return JTN_TAKEN;
}

static jtn_taken take_any(jtn_frame *frame, PyObject *object, jtn_value *value)
{
    if (object == Py_None) {
        *value = (jtn_value){.kind = JTN_NONE};
        return JTN_TAKEN;
    }
    if (PyType_GetFlags(py_type(object)) & Py_TPFLAGS_UNICODE_SUBCLASS)
        return take_str(frame, object, value);
    return take_number(object, value);
}

static jtn_taken accepted(const jtn_op_type *type, jtn_taken taken, const jtn_value *value)
{
    return taken == JTN_TAKEN && !jtn__op_accepts(type, value) ? JTN_NOT_THIS : taken;
}

jtn_taken jtn__take_op(jtn_frame *frame, const jtn_op_type *type, PyObject *object, jtn_value *value)
{
    switch (type->kind) {
    case JTN_OP_TENSOR:
        if (object != Py_None)
            return box_tensor(frame, object, value);
        *value = (jtn_value){.kind = JTN_NONE};
        return JTN_TAKEN;
    case JTN_OP_FLOAT:
    case JTN_OP_INT:
    case JTN_OP_UINT:
    case JTN_OP_BOOL:
        return accepted(type, take_number(object, value), value);
    case JTN_OP_STR:
        return PyType_GetFlags(py_type(object)) & Py_TPFLAGS_UNICODE_SUBCLASS ? take_str(frame, object, value) : JTN_NOT_THIS;
    case JTN_OP_OPTIONAL:
        if (object != Py_None)
            return jtn__take_op(frame, &type->inner[0], object, value);
        *value = (jtn_value){.kind = JTN_NONE};
        return JTN_TAKEN;
    case JTN_OP_NONE:
        *value = (jtn_value){.kind = JTN_NONE};
        return object == Py_None ? JTN_TAKEN : JTN_NOT_THIS;
    case JTN_OP_LIST:
    case JTN_OP_TUPLE:
        return take_list(frame, type, object, value);
    case JTN_OP_PTR:
        return accepted(type, object == Py_None ? (*value = (jtn_value){.kind = JTN_NONE}, JTN_TAKEN) : take_number(object, value), value);
    case JTN_OP_ANY:
        return take_any(frame, object, value);
    }
    return JTN_NOT_THIS;
}

/* ---------------------------------------------------------------- back to Python ---- */

static PyObject *list_to_python(const jtn_value *value)
{
    PyObject *list = PyList_New((Py_ssize_t)value->size);
    uint32_t i;

    for (i = 0; list && i < value->size; i++) {
        PyObject *item = jtn__to_python(&value->as.list[i]);

        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) {
            py_drop(list);
            list = NULL;
        }
    }
    for (; i < value->size; i++) /* what was not converted still holds references */
        if (value->as.list[i].kind == JTN_TENSOR)
            jtn__abi.tensor_release(value->as.list[i].as.t);
    return list;
}

static PyObject *tensor_to_python(jtn_tensor *tensor)
{
    PyObject *object = tensor ? jtn__boxed_object(tensor) : Py_None;

    if (object)
        Py_IncRef(object);
    else
        PyErr_Format(PyExc_RuntimeError, "the op returned a tensor that is not of this process's framework");
    jtn__abi.tensor_release(tensor);
    return object;
}

PyObject *jtn__to_python(const jtn_value *value)
{
    switch (value->kind) {
    case JTN_BOOL:
        return py_ref(value->as.i ? Py_True : Py_False);
    case JTN_INT:
        return PyLong_FromLongLong(value->as.i);
    case JTN_UINT:
        return PyLong_FromUnsignedLongLong(value->as.u);
    case JTN_FLOAT:
        return PyFloat_FromDouble(value->as.d);
    case JTN_STR:
        return PyUnicode_FromStringAndSize(value->as.s, (Py_ssize_t)value->size);
    case JTN_PTR:
        return PyLong_FromUnsignedLongLong((uintptr_t)value->as.p);
    case JTN_TENSOR:
        return tensor_to_python(value->as.t);
    case JTN_LIST:
        return list_to_python(value);
    default:
        return py_ref(Py_None);
    }
}

/* ---------------------------------------------------------------- streams ---- */

int jtn__current_stream(jtn_frame *frame, int device, void **out)
{
    PyObject *helper, *stream;

    *out = NULL;
    if (frame->exchange)
        return frame->exchange->current_stream(kDLCUDA, device, out);
    if (frame->gpu_origin != JTN_FROM_CUPY && frame->gpu_origin != JTN_FROM_TORCH)
        return 0;
    helper = jtn__py_helper("current_stream");
    stream = helper ? PyObject_CallFunction(helper, "si", frame->gpu_origin == JTN_FROM_CUPY ? "cupy" : "torch", device) : NULL;
    if (!stream)
        return -1;
    *out = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(stream);
    py_drop(stream);
    return PyErr_Occurred() ? -1 : 0;
}

int jtn__take_stream(PyObject *object, void **out)
{
    PyObject *helper, *stream;

    if (py_type(object) == &PyLong_Type) {
        *out = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(object);
        return PyErr_Occurred() ? -1 : 0;
    }
    helper = jtn__py_helper("stream_of");
    stream = helper ? PyObject_CallFunction(helper, "O", object) : NULL;
    if (!stream)
        return -1;
    *out = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(stream);
    py_drop(stream);
    return PyErr_Occurred() ? -1 : 0;
}
