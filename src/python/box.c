/* box.c — Python's tensors as ops see them.
 *
 * While a call runs, a box borrows the object and its shape; most ops let go of it before they return, and the box is used again. If the
 * op kept a reference, the box is made to stand on its own: it holds the object and its own copy of the shape. */
#include "base/mem.h"
#include "python/frame.h"

typedef struct jtn_py_box {
    jtn_tensor_box box;
    PyObject *object;
    bool owned;    /* object is a reference of ours */
    int64_t *dims; /* more than 8 dimensions; owned */
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

jtn_taken jtn__take_box(jtn_frame *frame, PyObject *object, jtn_value *value)
{
    jtn_py_box *box = new_box();
    jtn_taken taken;

    if (!box)
        return JTN_PY_ERROR;
    box->object = object;
    box->owned = false;
    taken = jtn__take_tensor(frame, object, &box->box.head.dl, &box->box.head.flags);
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
    jtn_taken taken = jtn__take_box(&frame, object, &value);

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
