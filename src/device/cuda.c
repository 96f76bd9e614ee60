/* cuda.c — the target "cuda": images as context-free libraries, kernels made ready for each device, launches.
 *
 * An image is loaded once for all devices (cuLibraryLoadData keeps our bytes, it does not copy them). What depends on a device is made
 * the first time a kernel is used there: the function, loaded eagerly (a lazy first launch can stall behind a running kernel), and the
 * permission for more dynamic shared memory than the default. After that a launch is: look at the thread's context, launch.
 */
#include "device/target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "device/cuda_context.h"

#define DEFAULT_SHARED (48 * 1024)

enum { /* CUdevice_attribute, CUfunction_attribute, CUlibraryOption */
       DEVICE_MULTIPROCESSORS = 16,
       DEVICE_SHARED_OPTIN = 97,
       FUNCTION_MAX_THREADS = 0,
       FUNCTION_SHARED = 1,
       FUNCTION_CONST = 2,
       FUNCTION_LOCAL = 3,
       FUNCTION_REGISTERS = 4,
       FUNCTION_PTX_VERSION = 5,
       FUNCTION_BINARY_VERSION = 6,
       FUNCTION_MAX_DYNAMIC_SHARED = 8,
       LIBRARY_BINARY_IS_PRESERVED = 1,
       CAPTURE_RELAXED = 2
};

struct jtn_loaded {
    CUlibrary library;
    char *name;
    pthread_mutex_t lock; /* guards the list of kernels */
    jtn_kernel *kernels;
};

/* A kernel on one device. */
typedef struct jtn_ready {
    _Atomic(CUfunction) function; /* NULL until it was first used there */
    atomic_uint allowed_shared;   /* dynamic bytes that a launch may ask for without more ado */
} jtn_ready;

struct jtn_kernel {
    CUkernel kernel;
    char *name;
    pthread_mutex_t lock;
    jtn_ready devices[JTN_MAX_DEVICES];
    jtn_kernel *next;
};

/* ---------------------------------------------------------------- images ---- */

static jtn_status explain_load(const jtn_driver *cu, CUresult error, const char *name, const void *bytes, size_t size)
{
    bool ptx = size < 4 || memcmp(bytes, "\177ELF", 4) != 0;
    char have[16] = "?";

    if (jtn__cuda_arch(jtn__cuda_current_device(), have) != JTN_OK)
        strcpy(have, "?");
    if (error == CUDA_ERROR_NO_BINARY_FOR_GPU || error == CUDA_ERROR_INVALID_IMAGE ||
        error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || error == CUDA_ERROR_INVALID_PTX)
        return jtn__driver_fail(
            error,
            "the %s of %s does not suit this machine (GPU %s, driver for CUDA %d.%d): it was compiled for another "
            "architecture or by a newer compiler than the driver knows",
            ptx ? "PTX" : "machine code", name, have, cu->version / 1000, cu->version % 1000 / 10);
    return jtn__driver_fail(error, "%s cannot be loaded", name);
}

static jtn_status load(const void *bytes, size_t size, const char *name, jtn_loaded **out)
{
    const jtn_driver *cu;
    int option = LIBRARY_BINARY_IS_PRESERVED, mode = CAPTURE_RELAXED;
    void *value = (void *)1;
    bool ptx = size < 4 || memcmp(bytes, "\177ELF", 4) != 0;
    jtn_loaded *loaded;
    CUresult error;

    JTN_TRY(jtn__driver(&cu));
    loaded = jtn__alloc(sizeof *loaded);
    if (!loaded || !(loaded->name = jtn__strdup(name))) {
        jtn__free(loaded);
        return JTN_ERROR_MEMORY;
    }
    pthread_mutex_init(&loaded->lock, NULL);
    /* loading is not part of what a stream captures */
    if (cu->cuThreadExchangeStreamCaptureMode)
        cu->cuThreadExchangeStreamCaptureMode(&mode);
    error = cu->cuLibraryLoadData(&loaded->library, bytes, NULL, NULL, 0, &option, &value, ptx ? 0 : 1);
    if (cu->cuThreadExchangeStreamCaptureMode)
        cu->cuThreadExchangeStreamCaptureMode(&mode);
    if (error) {
        jtn__free(loaded->name);
        jtn__free(loaded);
        return explain_load(cu, error, name, bytes, size);
    }
    *out = loaded;
    return JTN_OK;
}

static void unload(jtn_loaded *loaded)
{
    const jtn_driver *cu = jtn__driver_ready();

    if (!loaded)
        return;
    while (loaded->kernels) {
        jtn_kernel *kernel = loaded->kernels;

        loaded->kernels = kernel->next;
        jtn__cuda_forget(kernel->name);
        pthread_mutex_destroy(&kernel->lock);
        jtn__free(kernel->name);
        jtn__free(kernel);
    }
    if (cu)
        cu->cuLibraryUnload(loaded->library);
    pthread_mutex_destroy(&loaded->lock);
    jtn__free(loaded->name);
    jtn__free(loaded);
}

/* ---------------------------------------------------------------- kernels ---- */

/* The kernel's function on a device, loaded there now. The context is current. */
static jtn_status make_ready(const jtn_driver *cu, jtn_kernel *kernel, int device)
{
    jtn_ready *ready = &kernel->devices[device];
    int mode = CAPTURE_RELAXED, static_shared = 0;
    CUfunction function = NULL;
    CUresult error = CUDA_SUCCESS;

    pthread_mutex_lock(&kernel->lock);
    if (!atomic_load(&ready->function)) {
        if (cu->cuThreadExchangeStreamCaptureMode)
            cu->cuThreadExchangeStreamCaptureMode(&mode);
        error = cu->cuKernelGetFunction(&function, kernel->kernel);
        if (!error && cu->cuFuncLoad)
            error = cu->cuFuncLoad(function);
        if (cu->cuThreadExchangeStreamCaptureMode)
            cu->cuThreadExchangeStreamCaptureMode(&mode);
        if (!error)
            error = cu->cuKernelGetAttribute(&static_shared, FUNCTION_SHARED, kernel->kernel, device);
        if (!error) {
            atomic_store(&ready->allowed_shared,
                         static_shared < DEFAULT_SHARED ? (unsigned)(DEFAULT_SHARED - static_shared) : 0u);
            atomic_store(&ready->function, function);
        }
    }
    pthread_mutex_unlock(&kernel->lock);
    if (error && jtn__cuda_is_sticky(error))
        return jtn__cuda_poison(device, error);
    return error ? jtn__driver_fail(error, "the kernel %s cannot be made ready on GPU %d", kernel->name, device)
                 : JTN_OK;
}

/* More dynamic shared memory than the default must be opted in, for each device, up to what it has. */
static jtn_status allow_shared(const jtn_driver *cu, jtn_kernel *kernel, int device, unsigned bytes)
{
    int most = 0, used = 0;
    CUresult error;

    cu->cuDeviceGetAttribute(&most, DEVICE_SHARED_OPTIN, device);
    cu->cuKernelGetAttribute(&used, FUNCTION_SHARED, kernel->kernel, device);
    if (bytes > (unsigned)(most > used ? most - used : 0))
        return jtn__fail(
            JTN_ERROR_ARGUMENT,
            "%s: %u bytes of dynamic shared memory are asked for; GPU %d has %d a block, of which the kernel's own "
            "variables take %d",
            kernel->name, bytes, device, most, used);
    error = cu->cuKernelSetAttribute(FUNCTION_MAX_DYNAMIC_SHARED, (int)bytes, kernel->kernel, device);
    if (error)
        return jtn__driver_fail(error, "%s: GPU %d refuses %u bytes of dynamic shared memory", kernel->name, device,
                                bytes);
    atomic_store(&kernel->devices[device].allowed_shared, bytes);
    return JTN_OK;
}

static jtn_status get_kernel(jtn_loaded *loaded, const char *lowered, const char *name, jtn_kernel **out)
{
    const jtn_driver *cu;
    jtn_kernel *kernel;
    CUresult error;

    JTN_TRY(jtn__driver(&cu));
    kernel = jtn__alloc(sizeof *kernel);
    if (!kernel || !(kernel->name = jtn__strdup(name))) {
        jtn__free(kernel);
        return JTN_ERROR_MEMORY;
    }
    pthread_mutex_init(&kernel->lock, NULL);
    if ((error = cu->cuLibraryGetKernel(&kernel->kernel, loaded->library, lowered))) {
        jtn__free(kernel->name);
        jtn__free(kernel);
        return jtn__driver_fail(error, "%s: its image has no kernel %s", name, lowered);
    }
    pthread_mutex_lock(&loaded->lock);
    kernel->next = loaded->kernels;
    loaded->kernels = kernel;
    pthread_mutex_unlock(&loaded->lock);
    /* where somebody works on the GPU already, the kernel is made ready now rather than at its first launch */
    if (jtn__cuda_is_active()) {
        int device = jtn__cuda_current_device();
        bool pushed;
        jtn_status status = jtn__cuda_enter(cu, device, &pushed);

        if (status != JTN_OK)
            return status; /* the kernel stays in the image's list, and goes with it */
        status = make_ready(cu, kernel, device);
        jtn__cuda_leave(cu, pushed);
        JTN_TRY(status);
    }
    *out = kernel;
    return JTN_OK;
}

static jtn_status get_global(jtn_loaded *loaded, const char *lowered, const char *name, int device, void **address,
                             size_t *size)
{
    const jtn_driver *cu;
    CUdeviceptr pointer = 0;
    CUresult error;
    bool pushed;

    JTN_TRY(jtn__driver(&cu));
    JTN_TRY(jtn__cuda_check_device(cu, device));
    JTN_TRY(jtn__cuda_enter(cu, device, &pushed));
    error = cu->cuLibraryGetGlobal(&pointer, size, loaded->library, lowered);
    jtn__cuda_leave(cu, pushed);
    if (error)
        return jtn__driver_fail(error, "the variable %s of %s cannot be found on GPU %d", name, loaded->name, device);
    *address = (void *)(uintptr_t)pointer;
    return JTN_OK;
}

static const struct {
    const char *name;
    int id;
} attributes[] = {
    {"registers", FUNCTION_REGISTERS},
    {"shared_bytes", FUNCTION_SHARED},
    {"const_bytes", FUNCTION_CONST},
    {"local_bytes", FUNCTION_LOCAL},
    {"max_threads_per_block", FUNCTION_MAX_THREADS},
    {"max_dynamic_shared_bytes", FUNCTION_MAX_DYNAMIC_SHARED},
    {"ptx_version", FUNCTION_PTX_VERSION},
    {"binary_version", FUNCTION_BINARY_VERSION},
};

static jtn_status get_attribute(jtn_kernel *kernel, const char *attribute, int device, int64_t *out)
{
    const jtn_driver *cu;
    int value = 0;
    CUresult error;

    JTN_TRY(jtn__driver(&cu));
    JTN_TRY(jtn__cuda_check_device(cu, device));
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (strcmp(attributes[i].name, attribute) != 0)
            continue;
        if ((error = cu->cuKernelGetAttribute(&value, attributes[i].id, kernel->kernel, device)))
            return jtn__driver_fail(error, "%s does not tell its %s on GPU %d", kernel->name, attribute, device);
        *out = value;
        return JTN_OK;
    }
    return jtn__fail(
        JTN_ERROR_ARGUMENT,
        "there is no kernel attribute \"%s\"; there are registers, shared_bytes, const_bytes, local_bytes, "
        "max_threads_per_block, max_dynamic_shared_bytes, ptx_version and binary_version",
        attribute);
}

static int param_sizes(jtn_kernel *kernel, size_t *sizes, int capacity)
{
    const jtn_driver *cu = jtn__driver_ready();
    int count = 0;

    if (!cu || !cu->cuKernelGetParamInfo)
        return -1;
    for (size_t offset, size; cu->cuKernelGetParamInfo(kernel->kernel, (size_t)count, &offset, &size) == CUDA_SUCCESS;
         count++)
        if (count < capacity)
            sizes[count] = size;
    return count;
}

/* ---------------------------------------------------------------- launching ---- */

static jtn_status explain_launch(const jtn_driver *cu, jtn_kernel *kernel, const jtn_launch_config *c, CUresult error)
{
    int threads = 0, registers = 0, blocks = 0, processors = 0;

    if (jtn__cuda_is_sticky(error))
        return jtn__cuda_poison(c->device, error);
    cu->cuKernelGetAttribute(&threads, FUNCTION_MAX_THREADS, kernel->kernel, c->device);
    cu->cuKernelGetAttribute(&registers, FUNCTION_REGISTERS, kernel->kernel, c->device);
    if ((c->flags & JTN_LAUNCH_COOPERATIVE) && error == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE &&
        cu->cuOccupancyMaxActiveBlocksPerMultiprocessor) {
        cu->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, atomic_load(&kernel->devices[c->device].function),
                                                        (int)(c->block[0] * c->block[1] * c->block[2]),
                                                        c->shared_bytes);
        cu->cuDeviceGetAttribute(&processors, DEVICE_MULTIPROCESSORS, c->device);
        return jtn__driver_fail(error,
                                "%s: a cooperative grid must fit on the GPU at once, and one of %u x %u x %u blocks "
                                "does not: at most %d do",
                                kernel->name, c->grid[0], c->grid[1], c->grid[2], blocks * processors);
    }
    return jtn__driver_fail(
        error,
        "%s<<<(%u, %u, %u), (%u, %u, %u), %u>>> on GPU %d is refused (the kernel takes at most %d threads a block, and "
        "%d registers a thread)",
        kernel->name, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared_bytes,
        c->device, threads, registers);
}

/* Cooperative launches and clusters go through the extensible form. */
static CUresult launch_extended(const jtn_driver *cu, CUfunction function, const jtn_launch_config *c, void **params)
{
    CUlaunchAttribute list[2];
    CUlaunchConfig config = {{c->grid[0], c->grid[1], c->grid[2]},
                             {c->block[0], c->block[1], c->block[2]},
                             c->shared_bytes,
                             c->stream,
                             list,
                             0};

    memset(list, 0, sizeof list);
    if (c->flags & JTN_LAUNCH_COOPERATIVE) {
        list[config.attribute_count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        list[config.attribute_count++].value.cooperative = 1;
    }
    if (c->cluster[0]) {
        list[config.attribute_count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        list[config.attribute_count].value.cluster.x = c->cluster[0];
        list[config.attribute_count].value.cluster.y = c->cluster[1] ? c->cluster[1] : 1;
        list[config.attribute_count++].value.cluster.z = c->cluster[2] ? c->cluster[2] : 1;
    }
    return cu->cuLaunchKernelEx(&config, function, params, NULL);
}

static jtn_status launch_here(const jtn_driver *cu, jtn_kernel *kernel, const jtn_launch_config *c, void **params)
{
    jtn_ready *ready = &kernel->devices[c->device];
    CUfunction function = atomic_load_explicit(&ready->function, memory_order_acquire);
    CUresult error;

    if (__builtin_expect(!function, 0)) {
        JTN_TRY(make_ready(cu, kernel, c->device));
        function = atomic_load(&ready->function);
    }
    if (__builtin_expect(c->shared_bytes > atomic_load_explicit(&ready->allowed_shared, memory_order_relaxed), 0))
        JTN_TRY(allow_shared(cu, kernel, c->device, c->shared_bytes));
    if (__builtin_expect((c->flags & JTN_LAUNCH_COOPERATIVE) || c->cluster[0], 0)) {
        if (!cu->cuLaunchKernelEx)
            return jtn__fail(JTN_ERROR_DEVICE,
                             "%s: this driver is too old for cooperative launches and clusters (11.6 is needed)",
                             kernel->name);
        error = launch_extended(cu, function, c, params);
    } else {
        error = cu->cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2],
                                   c->shared_bytes, c->stream, params, NULL);
    }
    if (__builtin_expect(error != CUDA_SUCCESS, 0))
        return explain_launch(cu, kernel, c, error);
    jtn__cuda_launched(c->device, kernel->name);
    return JTN_OK;
}

static jtn_status launch(jtn_kernel *kernel, const jtn_launch_config *config, void **params)
{
    const jtn_driver *cu = jtn__driver_ready();
    jtn_status status;
    bool pushed;

    if (__builtin_expect(!cu, 0))
        JTN_TRY(jtn__driver(&cu));
    JTN_TRY(jtn__cuda_check_device(cu, config->device));
    JTN_TRY(jtn__cuda_check_alive(config->device));
    JTN_TRY(jtn__cuda_enter(cu, config->device, &pushed));
    status = launch_here(cu, kernel, config, params);
    jtn__cuda_leave(cu, pushed);
    return status;
}

static jtn_status synchronize(int device)
{
    const jtn_driver *cu;
    CUresult error;
    bool pushed;

    JTN_TRY(jtn__driver(&cu));
    JTN_TRY(jtn__cuda_check_device(cu, device));
    JTN_TRY(jtn__cuda_check_alive(device));
    JTN_TRY(jtn__cuda_enter(cu, device, &pushed));
    error = cu->cuCtxSynchronize();
    jtn__cuda_leave(cu, pushed);
    if (error && jtn__cuda_is_sticky(error))
        return jtn__cuda_poison(device, error);
    return error ? jtn__driver_fail(error, "waiting for GPU %d failed", device) : JTN_OK;
}

/* ---------------------------------------------------------------- memory ---- */

static jtn_status allocate(int device, size_t bytes, void **out)
{
    const jtn_driver *cu;
    CUdeviceptr address = 0;
    CUresult error;
    bool pushed;

    JTN_TRY(jtn__driver(&cu));
    JTN_TRY(jtn__cuda_check_device(cu, device));
    JTN_TRY(jtn__cuda_enter(cu, device, &pushed));
    error = cu->cuMemAlloc(&address, bytes ? bytes : 1);
    jtn__cuda_leave(cu, pushed);
    if (error)
        return jtn__driver_fail(error, "GPU %d has no %zu bytes", device, bytes);
    *out = (void *)(uintptr_t)address;
    return JTN_OK;
}

static void release(int device, void *address)
{
    const jtn_driver *cu = jtn__driver_ready();
    bool pushed;

    if (!cu || !address || jtn__cuda_enter(cu, device, &pushed) != JTN_OK)
        return;
    cu->cuMemFree((CUdeviceptr)(uintptr_t)address);
    jtn__cuda_leave(cu, pushed);
}

static jtn_status copy(void *dst, const void *src, size_t bytes, void *stream)
{
    const jtn_driver *cu;
    CUresult error;
    bool pushed;

    JTN_TRY(jtn__driver(&cu));
    JTN_TRY(jtn__cuda_enter(cu, jtn__cuda_current_device(), &pushed));
    error = stream ? cu->cuMemcpyAsync((CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)src, bytes, stream)
                   : cu->cuMemcpy((CUdeviceptr)(uintptr_t)dst, (CUdeviceptr)(uintptr_t)src, bytes);
    jtn__cuda_leave(cu, pushed);
    return error ? jtn__driver_fail(error, "copying %zu bytes failed", bytes) : JTN_OK;
}

static const jtn_target cuda = {
    .name = "cuda",
    .dl_device_type = kDLCUDA,
    .device_count = jtn__cuda_device_count,
    .active = jtn__cuda_is_active,
    .current_device = jtn__cuda_current_device,
    .arch = jtn__cuda_arch,
    .load = load,
    .unload = unload,
    .kernel = get_kernel,
    .global = get_global,
    .attribute = get_attribute,
    .param_sizes = param_sizes,
    .launch = launch,
    .synchronize = synchronize,
    .allocate = allocate,
    .release = release,
    .copy = copy,
};

const jtn_target *jtn__target_cuda(void)
{
    return &cuda;
}
