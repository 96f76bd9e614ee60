/* cuda_stub.c — a CUDA driver with two GPUs and no hardware: fails on command, records launches with their parameter bytes.
 *
 * Strict where the real one is: a launch outside a context, of zero blocks, of too many threads, or with more dynamic shared
 * memory than was granted, is refused. Device memory is host memory. One lock around everything. */
#include "cuda_stub.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_COMMANDS 16
#define MAX_KERNELS 64
#define MAX_THREADS 1024
#define UNITS 4           /* multiprocessors; each holds two blocks */
#define SHARED_OPTIN 232448
#define SHARED_DEFAULT 49152

typedef struct context {
    int device;
} context;
typedef struct kernel {
    char name[64];
    int count, granted[STUB_DEVICES];
    size_t sizes[64];
} kernel;
typedef struct command {
    char function[64];
    int result, times;
} command;
typedef struct attribute {
    int id, pad;
    union {
        char size[64];
        int cooperative;
        unsigned cluster[3];
    } value;
} attribute;
typedef struct config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    attribute *attributes;
    unsigned count;
} config;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static context primary[STUB_DEVICES] = {{0}, {1}}, foreign = {0};
static kernel kernels[MAX_KERNELS];
static command commands[MAX_COMMANDS];
static stub_state state;
static int static_shared, kernel_count, command_count;
static __thread context *stack[16];
static __thread int depth, relaxed;

/* ---------------------------------------------------------------- commands ---- */

stub_state *stub_get(void)
{
    return &state;
}

void stub_reset(void)
{
    int libraries = state.libraries, memory = state.memory;

    state = (stub_state){.libraries = libraries, .memory = memory};
    command_count = static_shared = depth = 0;
}

void stub_fail(const char *function, int result, int times)
{
    command *c = &commands[command_count++ % MAX_COMMANDS];

    strncpy(c->function, function, sizeof c->function - 1);
    c->result = result;
    c->times = times;
}

/* A kernel's record, made when it is first named. */
static kernel *named(const char *name)
{
    for (int i = 0; i < kernel_count; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    strncpy(kernels[kernel_count].name, name, sizeof kernels->name - 1);
    kernels[kernel_count].count = -1;
    for (int i = 0; i < STUB_DEVICES; i++)
        kernels[kernel_count].granted[i] = -1;
    return &kernels[kernel_count++];
}

void stub_params(const char *name, int count, const size_t *sizes)
{
    kernel *k = named(name);

    k->count = count;
    memcpy(k->sizes, sizes, (size_t)count * sizeof *sizes);
}

void stub_static_shared(int bytes)
{
    static_shared = bytes;
}

void stub_set_current(int device)
{
    depth = 0;
    if (device != -1)
        stack[depth++] = device < 0 ? &foreign : &primary[device];
}

int stub_current(void)
{
    if (!depth)
        return -1;
    return stack[depth - 1] == &foreign ? -2 : stack[depth - 1]->device;
}

__attribute__((constructor)) static void from_environment(void)
{
    const char *text = getenv("CUDA_STUB_FAIL"), *equal = text ? strchr(text, '=') : NULL;
    char name[64] = "";

    if (!equal || (size_t)(equal - text) >= sizeof name)
        return;
    memcpy(name, text, (size_t)(equal - text));
    stub_fail(name, atoi(equal + 1), -1);
}

static int commanded(const char *function)
{
    for (int i = 0; i < command_count && i < MAX_COMMANDS; i++)
        if (commands[i].times && strcmp(commands[i].function, function) == 0) {
            commands[i].times -= commands[i].times > 0;
            return commands[i].result;
        }
    return 0;
}

#define OBEY                                       \
    do {                                           \
        int result_;                               \
        pthread_mutex_lock(&lock);                 \
        result_ = command_count ? commanded(__func__) : 0; \
        pthread_mutex_unlock(&lock);               \
        if (result_)                               \
            return result_;                        \
    } while (0)

/* ---------------------------------------------------------------- the driver ---- */

EXPORT int cuInit(unsigned flags) { OBEY; state.inits++; return 0; }
EXPORT int cuDriverGetVersion(int *version) { OBEY; *version = 12040; return 0; }

static const struct {
    int result;
    const char *name, *text;
} errors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"}, {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}, {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
};

static int error_index(int result)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].result == result)
            return (int)i;
    return -1;
}

EXPORT int cuGetErrorName(int result, const char **out) { int i = error_index(result); *out = i < 0 ? NULL : errors[i].name; return i < 0; }
EXPORT int cuGetErrorString(int result, const char **out) { int i = error_index(result); *out = i < 0 ? NULL : errors[i].text; return i < 0; }
EXPORT int cuDeviceGetCount(int *count) { OBEY; *count = STUB_DEVICES; return 0; }
EXPORT int cuDeviceGet(int *device, int ordinal) { OBEY; *device = ordinal; return ordinal < 0 || ordinal >= STUB_DEVICES ? 101 : 0; }

EXPORT int cuDeviceGetAttribute(int *value, int id, int device)
{
    OBEY;
    switch (id) {
    case 1: case 2: case 3: *value = MAX_THREADS; break;
    case 4: *value = 64; break;
    case 5: *value = 0x7fffffff; break;
    case 6: case 7: *value = 65535; break;
    case 16: *value = UNITS; break;
    case 75: *value = 9; break;
    case 76: *value = 0; break;
    case 95: *value = 1; break;
    case 97: *value = SHARED_OPTIN; break;
    default: return 1;
    }
    return device < 0 || device >= STUB_DEVICES ? 101 : 0;
}

EXPORT int cuDevicePrimaryCtxRetain(context **out, int device) { OBEY; __atomic_add_fetch(&state.retained[device], 1, __ATOMIC_RELAXED); *out = &primary[device]; return 0; }
EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { OBEY; *flags = 0; *active = state.retained[device] > 0; return 0; }
EXPORT int cuCtxGetCurrent(context **out) { OBEY; *out = depth ? stack[depth - 1] : NULL; return 0; }
EXPORT int cuCtxGetDevice(int *device) { OBEY; if (!depth) return 201; *device = stack[depth - 1]->device; return 0; }
EXPORT int cuCtxPushCurrent_v2(context *c) { OBEY; stack[depth++] = c; return 0; }
EXPORT int cuCtxPopCurrent_v2(context **out) { OBEY; if (!depth) return 201; *out = stack[--depth]; return 0; }
EXPORT int cuCtxSynchronize(void) { OBEY; return depth ? 0 : 201; }

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int old = relaxed;

    OBEY;
    relaxed = *mode;
    state.capture_depth += relaxed == 2 ? 1 : -1;
    *mode = old;
    return 0;
}

static void covered(void)
{
    if (relaxed != 2)
        state.loads_uncovered++;
}

EXPORT int cuLibraryLoadData(void **library, const void *bytes, int *jit, void **jit_values, unsigned jit_count, int *options,
                             void **values, unsigned count)
{
    OBEY;
    covered();
    state.options = 0;
    for (unsigned i = 0; i < count; i++)
        state.options |= 1 << options[i];
    *library = malloc(1);
    state.libraries++;
    state.loads++;
    return 0;
}

EXPORT int cuLibraryUnload(void *library) { OBEY; free(library); state.libraries--; return 0; }

EXPORT int cuLibraryGetKernel(kernel **out, void *library, const char *name)
{
    OBEY;
    if (strcmp(name, "missing") == 0)
        return 500;
    pthread_mutex_lock(&lock);
    *out = named(name);
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORT int cuLibraryGetGlobal(uint64_t *address, size_t *size, void *library, const char *name)
{
    OBEY;
    if (!depth)
        return 201;
    *address = 0x1000u * (unsigned)(stack[depth - 1]->device + 1);
    *size = 16;
    return strcmp(name, "missing") == 0 ? 500 : 0;
}

EXPORT int cuKernelGetFunction(kernel **function, kernel *k) { OBEY; if (!depth) return 201; covered(); *function = k; return 0; }
EXPORT int cuFuncLoad(kernel *k) { OBEY; return depth ? 0 : 201; }

EXPORT int cuKernelGetAttribute(int *value, int id, kernel *k, int device)
{
    static const int values[] = {MAX_THREADS, 0, 4, 8, 32, 90, 90, 0, SHARED_DEFAULT};

    OBEY;
    if (id < 0 || id > 8)
        return 1;
    *value = id == 1 ? static_shared : values[id];
    return 0;
}

EXPORT int cuKernelSetAttribute(int id, int value, kernel *k, int device) { OBEY; if (id != 8) return 1; k->granted[device] = value; return 0; }

EXPORT int cuKernelGetParamInfo(kernel *k, size_t index, size_t *offset, size_t *size)
{
    OBEY;
    if (k->count < 0 || index >= (size_t)k->count)
        return 1;
    *size = k->sizes[index];
    *offset = 0;
    return 0;
}

EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, kernel *k, int threads, size_t shared) { OBEY; *blocks = 2; return 0; }

static int accept(kernel *k, const stub_launch *l)
{
    int most;

    if (!depth)
        return 201;
    most = k->granted[stack[depth - 1]->device] >= 0 ? k->granted[stack[depth - 1]->device] : SHARED_DEFAULT - static_shared;
    for (int i = 0; i < 3; i++)
        if (!l->grid[i] || !l->block[i] || (i && l->grid[i] > 65535))
            return 1;
    if ((uint64_t)l->block[0] * l->block[1] * l->block[2] > MAX_THREADS || (int)l->shared_bytes > most)
        return 1;
    return l->cooperative && (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] > 2 * UNITS ? 720 : 0;
}

static int record(kernel *k, stub_launch *l, void **params)
{
    int result = accept(k, l);

    if (result)
        return result;
    memcpy(l->kernel, k->name, sizeof l->kernel);
    l->device = stack[depth - 1]->device;
    for (int i = 0; i < k->count; i++) {
        memcpy(l->bytes + l->size, params[i], k->sizes[i]);
        l->size += k->sizes[i];
    }
    pthread_mutex_lock(&lock);
    state.last = *l;
    state.launches++;
    pthread_mutex_unlock(&lock);
    return 0;
}

EXPORT int cuLaunchKernel(kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          void *stream, void **params, void **extra)
{
    stub_launch l = {.grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared_bytes = shared, .stream = stream};

    OBEY;
    return record(k, &l, params);
}

EXPORT int cuLaunchKernelEx(const config *c, kernel *k, void **params, void **extra)
{
    stub_launch l = {.grid = {c->grid[0], c->grid[1], c->grid[2]}, .block = {c->block[0], c->block[1], c->block[2]},
                     .shared_bytes = c->shared_bytes, .stream = c->stream, .extended = 1};

    OBEY;
    for (unsigned i = 0; i < c->count; i++) {
        if (c->attributes[i].id == 2)
            l.cooperative = c->attributes[i].value.cooperative;
        else if (c->attributes[i].id == 4)
            memcpy(l.cluster, c->attributes[i].value.cluster, sizeof l.cluster);
        else
            return 1;
    }
    return record(k, &l, params);
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t size)
{
    OBEY;
    if (!depth)
        return 201;
    *address = (uint64_t)(uintptr_t)malloc(size);
    state.memory++;
    return 0;
}

EXPORT int cuMemFree_v2(uint64_t address) { OBEY; free((void *)(uintptr_t)address); state.memory--; return depth ? 0 : 201; }
EXPORT int cuMemcpy(uint64_t dst, uint64_t src, size_t size) { OBEY; memcpy((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size); return depth ? 0 : 201; }
EXPORT int cuMemcpyAsync(uint64_t dst, uint64_t src, size_t size, void *stream) { OBEY; return cuMemcpy(dst, src, size); }
EXPORT int cuPointerGetAttribute(void *value, int id, uint64_t address) { OBEY; return 1; }
