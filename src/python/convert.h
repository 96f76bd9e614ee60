/* convert.h — Python objects and values. The converter of a type is found once and cached; what a conversion borrowed is given back when
 * the call's frame ends. */
#ifndef JTN_PYTHON_CONVERT_H
#define JTN_PYTHON_CONVERT_H

#include "call/launch.h"
#include "python/py.h"

/* Which library a tensor is of: decides where an op's new tensors come from, and whose stream is the current one. */
typedef enum { JTN_FROM_NONE, JTN_FROM_TORCH, JTN_FROM_NUMPY, JTN_FROM_CUPY, JTN_FROM_OTHER } jtn_origin;

typedef struct jtn_exchange jtn_exchange; /* DLPack's C exchange API, as far as it is used */

/* One call under way: what it borrowed, and what is known of its tensors. Zero-initialise. */
typedef struct jtn_frame {
    jtn_call_arena arena;
    struct jtn_hold *holds;
    jtn_origin origin;            /* of the first tensor */
    const jtn_exchange *exchange; /* of the first GPU tensor, when its type has one */
    PyObject *first;              /* the first tensor, borrowed: new ones are made like it */
    int gpu_origin;               /* a jtn_origin: of the first GPU tensor */
    bool strict;                  /* numbers must be numbers, not arrays of one element: choosing among overloads */
} jtn_frame;

/* Ends the frame: buffers, managed tensors, memory. */
void jtn__frame_end(jtn_frame *frame);
/* The frame of the op that runs in this thread, or NULL. */
extern _Thread_local jtn_frame *jtn__frame;

typedef enum { JTN_TAKEN, JTN_NOT_THIS, JTN_PY_ERROR } jtn_taken;

/* object → value for a kernel's or C function's parameter. A tensor becomes JTN_DLTENSOR over *dl. JTN_NOT_THIS leaves in value what the
 * object is, for the message. */
jtn_taken jtn__take_param(jtn_frame *frame, const jtn_type *type, PyObject *object, jtn_value *value, DLTensor *dl);
/* object → value for an op's parameter; tensors become boxes, to be given back by jtn__give_back. */
jtn_taken jtn__take_op(jtn_frame *frame, const jtn_op_type *type, PyObject *object, jtn_value *value);
/* What an object is, for a message, when it was not taken: never fails, never leaves an exception. */
void jtn__describe_object(jtn_frame *frame, PyObject *object, jtn_value *value, DLTensor *dl);
void jtn__give_back(jtn_value *value);

/* value → new reference, or NULL with an exception. Consumes the reference a JTN_TENSOR result carries. type: what the op declares, which tells
 * tuples from lists; NULL when nothing is declared. */
PyObject *jtn__to_python(const jtn_op_type *type, const jtn_value *value);

/* A box that owns a framework's tensor object (a new reference is taken). NULL with an exception. */
jtn_tensor *jtn__box_object(PyObject *object);
/* The object of a box, borrowed; NULL when it has none. */
PyObject *jtn__boxed_object(jtn_tensor *tensor);

/* The current stream on a GPU of the frame's framework. 0, or -1 with an exception. */
int jtn__current_stream(jtn_frame *frame, int device, void **out);
/* None is refused here; ints, torch's and CuPy's streams, __cuda_stream__. 0, or -1 with an exception. */
int jtn__take_stream(PyObject *object, void **out);

/* Sets the exception of a status with the thread's message. Returns NULL. */
PyObject *jtn__py_raise(jtn_status status);
PyObject *jtn__py_class(jtn_status status); /* borrowed */
/* Helper functions in Python (jitney._tensors), by name, borrowed. NULL with an exception. */
PyObject *jtn__py_helper(const char *name);
void jtn__framework_install(void);

/* The function objects. New references. */
PyObject *jtn__py_op(jtn_module *module, jtn_function *fn);
PyObject *jtn__py_kernel(jtn_module *module, jtn_function *fn);
int jtn__py_kernel_types(void); /* makes the types; 0, or -1 with an exception */

#endif
