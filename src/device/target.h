/* target.h — where code runs, as one struct of functions. Above this line nobody asks which target it is. */
#ifndef JTN_DEVICE_TARGET_H
#define JTN_DEVICE_TARGET_H

#include <stdbool.h>

#include "model/type.h"

typedef struct jtn_loaded jtn_loaded; /* an image, loaded */
typedef struct jtn_kernel jtn_kernel; /* a function of it */

typedef struct jtn_target {
    const char *name; /* "cuda" */
    int dl_device_type; /* kDLCUDA: what tensors must be on */
    /* Devices that can run kernels; 0 with the reason recorded. Starts the driver (not a context). Any thread. */
    int (*device_count)(void);
    /* Whether somebody works on the current device already, so that a kernel had better be made ready at load. Never starts the driver. */
    bool (*active)(void);
    /* The device of this thread's context, else 0. */
    int (*current_device)(void);
    /* "sm_90" of a device. DEVICE. */
    jtn_status (*arch)(int device, char out[16]);
    /* bytes must stay valid until unload. Context-free: nothing is sent to a GPU unless this thread has a context. name is for
     * messages. DEVICE: says both versions when the image is for another architecture or a newer driver. */
    jtn_status (*load)(const void *bytes, size_t size, const char *name, jtn_loaded **out);
    void (*unload)(jtn_loaded *loaded);
    jtn_status (*kernel)(jtn_loaded *loaded, const char *lowered, const char *name, jtn_kernel **out); /* lives as long as loaded */
    jtn_status (*global)(jtn_loaded *loaded, const char *lowered, const char *name, int device, void **address, size_t *size);
    jtn_status (*attribute)(jtn_kernel *kernel, const char *attribute, int device, int64_t *out);
    /* Offsets and sizes of the parameters as the image has them, when the driver can tell: fills at most capacity, returns count,
     * -1 when unknown. */
    int (*param_sizes)(jtn_kernel *kernel, size_t *sizes, int capacity);
    /* The hot path: no lock, no allocation. params[i] points at the value of parameter i. The thread's context is left as it was.
     * config is complete: device >= 0. */
    jtn_status (*launch)(jtn_kernel *kernel, const jtn_launch_config *config, void **params);
    jtn_status (*synchronize)(int device);
    /* For ops that allocate where no framework does (C programs). */
    jtn_status (*allocate)(int device, size_t bytes, void **out);
    void (*release)(int device, void *address);
    jtn_status (*copy)(void *dst, const void *src, size_t bytes, void *stream); /* any direction, by unified addressing */
} jtn_target;

const jtn_target *jtn__target_cuda(void);

#endif
