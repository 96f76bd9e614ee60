/* convert.c — Python objects to values, and back.
 *
 * What is wanted guides the conversion: where a scalar is wanted, a zero-dimensional array is a number; where a pointer is wanted, a tensor
 * is its address. Python's own types are recognised by exact type first; tensors are in tensor.c, their boxes in box.c. */
#include "python/convert.h"

#include <string.h>

#include "base/mem.h"
#include "python/frame.h"

_Thread_local jtn_frame *jtn__frame;
size_t jtn__py_type_offset, jtn__py_head_size;

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

/* strict: only what is a number itself, for a choice among overloads. */
static jtn_taken take_number(PyObject *object, jtn_value *value, bool strict)
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
    return strict ? JTN_NOT_THIS : take_item(object, value);
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

/* A std::string takes a str, as UTF-8, and bytes as they are. */
static jtn_taken take_text(jtn_frame *frame, PyObject *object, jtn_value *value)
{
    unsigned long flags = PyType_GetFlags(py_type(object));
    Py_ssize_t size;
    char *bytes;

    if (flags & Py_TPFLAGS_UNICODE_SUBCLASS)
        return take_str(frame, object, value);
    if (!(flags & Py_TPFLAGS_BYTES_SUBCLASS))
        return JTN_NOT_THIS;
    if (PyBytes_AsStringAndSize(object, &bytes, &size) != 0)
        return JTN_PY_ERROR;
    *value = (jtn_value){.kind = JTN_STR, .size = (uint32_t)size};
    value->as.s = bytes;
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
    if (!(h = jtn__hold(frame, HOLD_BUFFER, 0))) {
        PyBuffer_Release(&view);
        return JTN_PY_ERROR;
    }
    h->as.buffer = view;
    *value = (jtn_value){.kind = JTN_BYTES, .size = (uint32_t)view.len};
    value->as.p = view.buf;
    return JTN_TAKEN;
}

/* ---------------------------------------------------------------- parameters of kernels and C functions ---- */

static jtn_taken take_pointer(jtn_frame *frame, const jtn_type *wanted, PyObject *object, jtn_value *value,
                              DLTensor *dl)
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
    taken = jtn__take_tensor(frame, object, dl, &flags);
    if (taken == JTN_TAKEN) {
        *value = (jtn_value){.kind = JTN_DLTENSOR, .size = flags};
        value->as.dl = dl;
    }
    if (taken == JTN_NOT_THIS && type != &PyFloat_Type && type != &PyBool_Type && !wanted->dtype.bits)
        taken = take_struct(frame, object, value) == JTN_TAKEN ? (value->kind = JTN_PTR, value->size = 0, JTN_TAKEN)
                                                               : JTN_NOT_THIS;
    return taken;
}

jtn_taken jtn__take_param(jtn_frame *frame, const jtn_type *type, PyObject *object, jtn_value *value, DLTensor *dl)
{
    jtn_taken taken = JTN_NOT_THIS;

    if (type->kind == JTN_TYPE_SCALAR)
        taken = take_number(object, value, false);
    else if (type->kind == JTN_TYPE_POINTER)
        taken = take_pointer(frame, type, object, value, dl);
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
        taken = take_number(object, value, false);
    else if (py_type(object) == &PyUnicode_Type)
        taken = take_str(frame, object, value);
    else if (jtn__take_tensor(frame, object, dl, &flags) == JTN_TAKEN) {
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
            jtn_hold *h = jtn__hold(frame, HOLD_OBJECT, 0);

            if (h)
                h->as.object = name;
        }
    }
}

/* ---------------------------------------------------------------- parameters of ops ---- */

static jtn_taken take_list(jtn_frame *frame, const jtn_op_type *type, PyObject *object, jtn_value *value)
{
    unsigned long flags = PyType_GetFlags(py_type(object));
    bool is_tuple = flags & Py_TPFLAGS_TUPLE_SUBCLASS;
    jtn_hold *h = NULL;
    jtn_value *items;
    Py_ssize_t count;

    if (!is_tuple &&
        !(flags & Py_TPFLAGS_LIST_SUBCLASS)) { /* any sequence but a text: a NumPy array, torch.Size, range */
        PyObject *tuple = flags & (Py_TPFLAGS_UNICODE_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS) || object == Py_None
                              ? NULL
                              : PySequence_Tuple(object);

        if (!tuple) {
            PyErr_Clear();
            return JTN_NOT_THIS;
        }
        if (!(h = jtn__hold(frame, HOLD_OBJECT, 0))) {
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
    return take_number(object, value, false);
}

static jtn_taken accepted(const jtn_op_type *type, jtn_taken taken, const jtn_value *value)
{
    return taken == JTN_TAKEN && !jtn__op_accepts(type, value) ? JTN_NOT_THIS : taken;
}

jtn_taken jtn__take_op(jtn_frame *frame, const jtn_op_type *type, PyObject *object, jtn_value *value)
{
    switch (type->kind) {
    case JTN_OP_TENSOR:
        return object == Py_None ? JTN_NOT_THIS : jtn__take_box(frame, object, value);
    case JTN_OP_FLOAT:
    case JTN_OP_INT:
    case JTN_OP_UINT:
    case JTN_OP_BOOL:
        return accepted(type, take_number(object, value, frame->strict), value);
    case JTN_OP_STR:
        return take_text(frame, object, value);
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
        return accepted(type,
                        object == Py_None ? (*value = (jtn_value){.kind = JTN_NONE}, JTN_TAKEN)
                                          : take_number(object, value, false),
                        value);
    case JTN_OP_ANY:
        return take_any(frame, object, value);
    }
    return JTN_NOT_THIS;
}

/* ---------------------------------------------------------------- back to Python ---- */

static PyObject *list_to_python(const jtn_op_type *type, const jtn_value *value)
{
    bool is_tuple = type && type->kind == JTN_OP_TUPLE;
    PyObject *list = is_tuple ? PyTuple_New((Py_ssize_t)value->size) : PyList_New((Py_ssize_t)value->size);
    uint32_t i;

    for (i = 0; list && i < value->size; i++) {
        size_t at = is_tuple ? i : 0;
        PyObject *item = jtn__to_python(type && at < type->inner_count ? &type->inner[at] : NULL, &value->as.list[i]);

        if (!item ||
            (is_tuple ? PyTuple_SetItem(list, (Py_ssize_t)i, item) : PyList_SetItem(list, (Py_ssize_t)i, item)) != 0) {
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

PyObject *jtn__to_python(const jtn_op_type *type, const jtn_value *value)
{
    while (type && type->kind == JTN_OP_OPTIONAL)
        type = &type->inner[0];
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
        return list_to_python(type, value);
    default:
        return py_ref(Py_None);
    }
}
