/* stream.c — the stream a launch goes to: the framework's current one, or the one the caller names. */
#include "python/frame.h"

int jtn__current_stream(jtn_frame *frame, int device, void **out)
{
    PyObject *helper, *stream;

    *out = NULL;
    if (frame->exchange)
        return frame->exchange->current_stream(kDLCUDA, device, out);
    if (frame->gpu_origin != JTN_FROM_CUPY && frame->gpu_origin != JTN_FROM_TORCH)
        return 0;
    helper = jtn__py_helper("current_stream");
    stream = helper ? PyObject_CallFunction(helper, "si", frame->gpu_origin == JTN_FROM_CUPY ? "cupy" : "torch", device)
                    : NULL;
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
