/* framework.c — where ops running under Python get tensors from: the framework of the call's tensors, through jitney._tensors.
 *
 * An op that makes a tensor is about to allocate: a Python call more does not matter, and what comes out is a real tensor of the
 * framework, from its own allocator, with its own autograd. */
#include "python/convert.h"

static const char *const names[] = {"", "torch", "numpy", "cupy", "other"};

/* What new tensors should be: as the call's first tensor, else whatever is imported (the helper decides on ""). */
static const char *wanted(void)
{
    return names[jtn__frame ? jtn__frame->origin : JTN_FROM_NONE];
}

static PyObject *dims(const int64_t *values, int32_t count)
{
    PyObject *tuple = PyTuple_New(count);

    for (int32_t i = 0; tuple && i < count; i++) {
        PyObject *item = PyLong_FromLongLong(values[i]);

        if (!item || PyTuple_SetItem(tuple, i, item) != 0) {
            py_drop(tuple);
            return NULL;
        }
    }
    return tuple;
}

/* Boxes a helper's result (taken). Failures leave the Python exception as it is and tell the op that one is pending. */
static int finish(PyObject *object, jtn_tensor **out)
{
    jtn_tensor *tensor = object ? jtn__box_object(object) : NULL;

    py_drop(object);
    if (!tensor) {
        jtn__abi.set_error(JTN_RAISE_PENDING, "", 0);
        return -1;
    }
    *out = tensor;
    return 0;
}

static int tensor_empty(int32_t ndim, const int64_t *sizes, const int64_t *strides, DLDataType dtype, DLDevice device,
                        int pinned, int requires_grad, jtn_tensor **out)
{
    PyObject *helper = jtn__py_helper("empty");
    PyObject *shape = helper ? dims(sizes, ndim) : NULL;
    PyObject *steps = shape ? (strides ? dims(strides, ndim) : py_ref(Py_None)) : NULL;
    PyObject *object =
        steps ? PyObject_CallFunction(helper, "sOOiiiiii", wanted(), shape, steps, (int)dtype.code, (int)dtype.bits,
                                      (int)device.device_type, (int)device.device_id, pinned, requires_grad)
              : NULL;

    py_drop(shape);
    py_drop(steps);
    return finish(object, out);
}

static int tensor_as_strided(jtn_tensor *base, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                             int64_t offset, jtn_tensor **out)
{
    PyObject *helper = jtn__py_helper("as_strided");
    PyObject *shape = helper ? dims(sizes, ndim) : NULL;
    PyObject *steps = shape ? dims(strides, ndim) : NULL;
    PyObject *object =
        steps ? PyObject_CallFunction(helper, "OOOL", jtn__boxed_object(base), shape, steps, (long long)offset) : NULL;

    py_drop(shape);
    py_drop(steps);
    return finish(object, out);
}

static int done(PyObject *result)
{
    if (!result)
        jtn__abi.set_error(JTN_RAISE_PENDING, "", 0);
    py_drop(result);
    return result ? 0 : -1;
}

static int tensor_copy(jtn_tensor *dst, jtn_tensor *src, int non_blocking)
{
    PyObject *helper = jtn__py_helper("copy");

    return done(helper
                    ? PyObject_CallFunction(helper, "OOi", jtn__boxed_object(dst), jtn__boxed_object(src), non_blocking)
                    : NULL);
}

static int tensor_fill(jtn_tensor *tensor, const jtn_value *scalar)
{
    PyObject *helper = jtn__py_helper("fill");
    PyObject *value = helper ? jtn__to_python(NULL, scalar) : NULL;
    PyObject *result = value ? PyObject_CallFunction(helper, "OO", jtn__boxed_object(tensor), value) : NULL;

    py_drop(value);
    return done(result);
}

static int current_stream(DLDevice device, void **out)
{
    jtn_frame none = {0};
    jtn_frame *frame = jtn__frame ? jtn__frame : &none;

    if (frame->gpu_origin == JTN_FROM_NONE)
        frame->gpu_origin = JTN_FROM_TORCH; /* the helper answers 0 where torch is not there */
    return jtn__current_stream(frame, device.device_id < 0 ? 0 : device.device_id, out) == 0 ? 0 : done(NULL);
}

static const jtn_framework python_framework = {tensor_empty, tensor_as_strided, tensor_copy, tensor_fill,
                                               current_stream};

void jtn__framework_install(void)
{
    jtn__framework_set(&python_framework);
}
