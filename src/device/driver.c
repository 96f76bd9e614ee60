/* driver.c — the CUDA driver by dlopen.
 *
 * Opened and initialised when something first needs a GPU, never before: a process that only compiles, or only calls host code, never
 * pays for it, and a parent that forks stays clean. A child of a process that had started the driver cannot use it (CUDA's own rule):
 * that is said, not crashed into. */
#include "device/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static jtn_driver driver;
static int state;   /* 0: not tried; 1: up; -1: not to be had. Changed under the lock, read atomically */
static pid_t owner; /* the process that called cuInit */
static jtn_status failure;
static char failure_text[1024];

/* ---------------------------------------------------------------- errors ---- */

const char *jtn__driver_error_text(CUresult error, char *out, size_t size)
{
    const char *name = NULL, *text = NULL;

    if (driver.cuGetErrorName)
        driver.cuGetErrorName(error, &name);
    if (driver.cuGetErrorString)
        driver.cuGetErrorString(error, &text);
    snprintf(out, size, "%s (%d): %s", name ? name : "CUDA error", error, text ? text : "unknown");
    return out;
}

jtn_status jtn__driver_fail(CUresult error, const char *format, ...)
{
    char what[2048], text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return jtn__fail(JTN_ERROR_DEVICE, "%s: %s", what, jtn__driver_error_text(error, text, sizeof text));
}

/* ---------------------------------------------------------------- opening ---- */

static jtn_status refuse(jtn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A failure that will not go away: remembered, told the same way every time. */
static jtn_status refuse(jtn_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(failure_text, sizeof failure_text, format, args);
    va_end(args);
    failure = status;
    __atomic_store_n(&state, -1, __ATOMIC_RELEASE);
    return jtn__fail(status, "%s", failure_text);
}

static jtn_status open_library(void)
{
    const char *given = getenv("JITNEY_LIBCUDA");
    const char *name = given && *given ? given : "libcuda.so.1";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL;
    int since = 0;

    if (!library)
        return refuse(
            JTN_ERROR_DEVICE,
            "no CUDA driver: %s cannot be opened (%s). Kernels need an NVIDIA GPU and its driver; compiling does not",
            name, dlerror());
#define FETCH(function, symbol, version, required, parameters) \
    *(void **)&driver.function = dlsym(library, symbol);       \
    if (required && !driver.function && version > since) {     \
        missing = symbol;                                      \
        since = version;                                       \
    }
    CUDA_FUNCTIONS(FETCH)
#undef FETCH
    if (missing && driver.cuDriverGetVersion)
        driver.cuDriverGetVersion(&driver.version);
    if (missing)
        return refuse(
            JTN_ERROR_DEVICE,
            "the CUDA driver %s is too old: it is %d.%d and has no %s, which came with %d.%d; update the driver", name,
            driver.version / 1000, driver.version % 1000 / 10, missing, since / 1000, since % 1000 / 10);
    return JTN_OK;
}

static jtn_status start(void)
{
    char text[256];
    CUresult error;

    JTN_TRY(open_library());
    error = driver.cuInit(0);
    if (error == CUDA_ERROR_NO_DEVICE)
        return refuse(JTN_ERROR_DEVICE, "no GPU: the CUDA driver sees none (CUDA_VISIBLE_DEVICES is %s)",
                      getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : "not set");
    if (error)
        return refuse(JTN_ERROR_DEVICE, "the CUDA driver does not start: %s",
                      jtn__driver_error_text(error, text, sizeof text));
    if ((error = driver.cuDeviceGetCount(&driver.device_count)) || driver.device_count == 0)
        return refuse(JTN_ERROR_DEVICE, "no GPU: the CUDA driver counts none");
    driver.cuDriverGetVersion(&driver.version);
    owner = getpid();
    __atomic_store_n(&state, 1, __ATOMIC_RELEASE);
    return JTN_OK;
}

static jtn_status forked(void)
{
    return jtn__fail(
        JTN_ERROR_DEVICE,
        "CUDA was started in process %ld, and this is its child %ld, where it cannot be used: start workers with "
        "\"spawn\", or use the GPU only after the fork",
        (long)owner, (long)getpid());
}

jtn_status jtn__driver(const jtn_driver **out)
{
    jtn_status status = JTN_OK;

    pthread_mutex_lock(&lock);
    if (state == 0)
        status = start();
    else if (state < 0)
        status = jtn__fail(failure, "%s", failure_text);
    else if (owner != getpid())
        status = forked();
    pthread_mutex_unlock(&lock);
    if (status == JTN_OK)
        *out = &driver;
    return status;
}

const jtn_driver *jtn__driver_ready(void)
{
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == 1 ? &driver : NULL;
}
