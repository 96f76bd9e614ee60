/* cuda_context.c — devices, contexts and what poisons them.
 *
 * Contexts: always the device's primary one, which the frameworks use too, retained once. A thread whose current context is another gets
 * the right one pushed for the call and its own back. An error that poisons the context is told with the last kernel's name and
 * remembered: CUDA itself gives no way back. */
#include "device/cuda_context.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { DEVICE_MAJOR = 75, DEVICE_MINOR = 76 }; /* CUdevice_attribute */

static _Atomic(CUcontext) contexts[JTN_MAX_DEVICES]; /* the primary ones, retained for the life of the process */
static atomic_int dead[JTN_MAX_DEVICES];             /* the error that poisoned the device's context; 0: none */
static char dead_text[JTN_MAX_DEVICES][512];
static _Atomic(const char *) last_kernel[JTN_MAX_DEVICES]; /* named when an error comes to light later */
static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---------------------------------------------------------------- devices and contexts ---- */

int jtn__cuda_device_count(void)
{
    const jtn_driver *cu;

    return jtn__driver(&cu) == JTN_OK ? cu->device_count : 0;
}

int jtn__cuda_current_device(void)
{
    const jtn_driver *cu = jtn__driver_ready();
    CUcontext context = NULL;
    CUdevice device = 0;

    if (cu && cu->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context && cu->cuCtxGetDevice(&device) == CUDA_SUCCESS)
        return device;
    return 0;
}

bool jtn__cuda_is_active(void)
{
    const jtn_driver *cu = jtn__driver_ready();
    unsigned flags;
    int active = 0;

    return cu && cu->cuDevicePrimaryCtxGetState(jtn__cuda_current_device(), &flags, &active) == CUDA_SUCCESS && active;
}

jtn_status jtn__cuda_check_device(const jtn_driver *cu, int device)
{
    if (device < 0 || device >= cu->device_count || device >= JTN_MAX_DEVICES)
        return jtn__fail(JTN_ERROR_ARGUMENT, "there is no GPU %d: the driver sees %d", device, cu->device_count);
    return JTN_OK;
}

jtn_status jtn__cuda_arch(int device, char out[16])
{
    const jtn_driver *cu;
    int major = 0, minor = 0;
    CUresult error;

    JTN_TRY(jtn__driver(&cu));
    JTN_TRY(jtn__cuda_check_device(cu, device));
    if ((error = cu->cuDeviceGetAttribute(&major, DEVICE_MAJOR, device)) ||
        (error = cu->cuDeviceGetAttribute(&minor, DEVICE_MINOR, device)))
        return jtn__driver_fail(error, "GPU %d does not tell its architecture", device);
    snprintf(out, 16, "sm_%d%d", major, minor);
    return JTN_OK;
}

static jtn_status retain_context(const jtn_driver *cu, int device, CUcontext *out)
{
    CUcontext context = atomic_load(&contexts[device]);
    CUresult error = CUDA_SUCCESS;

    if (!context) {
        pthread_mutex_lock(&context_lock);
        context = atomic_load(&contexts[device]);
        if (!context && !(error = cu->cuDevicePrimaryCtxRetain(&context, device)))
            atomic_store(&contexts[device], context);
        pthread_mutex_unlock(&context_lock);
    }
    if (error)
        return jtn__driver_fail(error, "GPU %d gives no context", device);
    *out = context;
    return JTN_OK;
}

/* Makes the device's context current. *pushed: leave must take it off again. */
jtn_status jtn__cuda_enter(const jtn_driver *cu, int device, bool *pushed)
{
    CUcontext current = NULL, wanted = atomic_load_explicit(&contexts[device], memory_order_acquire);
    CUresult error;

    *pushed = false;
    if (!wanted)
        JTN_TRY(retain_context(cu, device, &wanted));
    if ((error = cu->cuCtxGetCurrent(&current))) {
        JTN_TRY(jtn__driver(&cu)); /* says so in a child of the process that started the driver */
        return jtn__driver_fail(error, "the thread's CUDA context cannot be asked for");
    }
    if (current == wanted)
        return JTN_OK;
    if ((error = cu->cuCtxPushCurrent(wanted)))
        return jtn__driver_fail(error, "the context of GPU %d cannot be made current", device);
    *pushed = true;
    return JTN_OK;
}

void jtn__cuda_leave(const jtn_driver *cu, bool pushed)
{
    CUcontext popped;

    if (pushed)
        cu->cuCtxPopCurrent(&popped);
}

/* ---------------------------------------------------------------- errors ---- */

/* The errors that CUDA says leave the process unusable. */
bool jtn__cuda_is_sticky(CUresult error)
{
    static const CUresult list[] = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 911};

    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] == error)
            return true;
    return false;
}

/* First of its kind: names the kernel. From then on the device is refused with the same words. */
jtn_status jtn__cuda_poison(int device, CUresult error)
{
    const char *kernel = atomic_load(&last_kernel[device]);
    char text[256];

    if (!atomic_exchange(&dead[device], error))
        snprintf(dead_text[device], sizeof dead_text[device],
                 "GPU %d cannot be used any more in this process, because a kernel failed on it (the last one "
                 "launched: %s): %s. "
                 "Start the process again",
                 device, kernel ? kernel : "not one of Jitney's", jtn__driver_error_text(error, text, sizeof text));
    return jtn__fail(JTN_ERROR_DEVICE, "%s", dead_text[device]);
}

jtn_status jtn__cuda_check_alive(int device)
{
    if (atomic_load_explicit(&dead[device], memory_order_relaxed))
        return jtn__fail(JTN_ERROR_DEVICE, "%s", dead_text[device]);
    return JTN_OK;
}

void jtn__cuda_launched(int device, const char *kernel)
{
    atomic_store_explicit(&last_kernel[device], kernel, memory_order_relaxed);
}

void jtn__cuda_forget(const char *kernel)
{
    for (int i = 0; i < JTN_MAX_DEVICES; i++) {
        const char *name = kernel;

        atomic_compare_exchange_strong(&last_kernel[i], &name, NULL);
    }
}
