/* frame.h — what a call borrowed while its arguments were converted. Inside python/ only. */
#ifndef JTN_PYTHON_FRAME_H
#define JTN_PYTHON_FRAME_H

#include "python/convert.h"

typedef enum { HOLD_BUFFER, HOLD_VERSIONED, HOLD_OBJECT } jtn_hold_kind;

typedef struct jtn_hold {
    struct jtn_hold *next;
    jtn_hold_kind kind;
    union {
        Py_buffer buffer;
        DLManagedTensorVersioned *versioned;
        PyObject *object;
    } as;
    int64_t dims[]; /* shape and strides, where the producer's are of another form */
} jtn_hold;

/* A new hold with room for `dims` numbers, given back when the frame ends. NULL with an exception. */
jtn_hold *jtn__hold(jtn_frame *frame, jtn_hold_kind kind, size_t dims);

/* DLPack's C exchange API (version 1.1 and on), as far as it is used. */
struct jtn_exchange {
    uint32_t major, minor;
    const jtn_exchange *previous;
    int (*allocate)(void *prototype, void **out, void *context, void (*set_error)(void *, const char *, const char *));
    int (*managed_from)(void *object, DLManagedTensorVersioned **out);
    int (*managed_to)(DLManagedTensorVersioned *tensor, void **out);
    int (*borrowed_from)(void *object, DLTensor *out); /* may be NULL */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
};

/* object → *dl, whatever library it is of; flags get JTN_TENSOR_READ_ONLY. */
jtn_taken jtn__take_tensor(jtn_frame *frame, PyObject *object, DLTensor *dl, uint32_t *flags);
/* object → a box, for an op; given back by jtn__give_back. */
jtn_taken jtn__take_box(jtn_frame *frame, PyObject *object, jtn_value *value);

#endif
