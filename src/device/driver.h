/* driver.h — the CUDA driver by dlopen: one table of functions, errors by name. Inside device/ only. */
#ifndef JTN_DEVICE_DRIVER_H
#define JTN_DEVICE_DRIVER_H

#include "base/error.h"

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef unsigned long long CUdeviceptr;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720
};

typedef struct CUlaunchAttribute_st {
    int id;
    char pad[8 - sizeof(int)];
    union {
        char bytes[64];
        int cooperative;
        struct {
            unsigned x, y, z;
        } cluster;
    } value;
} CUlaunchAttribute;
enum { CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4 };

typedef struct CUlaunchConfig_st {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

/* X(name, exported symbol, CUDA version that has it, required, parameters). Where a function got a second form, the symbol is that
 * form's. An absent optional one is NULL in the table and switches its feature off. */
#define CUDA_FUNCTIONS(X)                                                                                                   \
    X(cuInit, "cuInit", 2000, 1, (unsigned flags))                                                                          \
    X(cuDriverGetVersion, "cuDriverGetVersion", 2020, 1, (int *version))                                                    \
    X(cuGetErrorName, "cuGetErrorName", 6000, 1, (CUresult error, const char **text))                                       \
    X(cuGetErrorString, "cuGetErrorString", 6000, 1, (CUresult error, const char **text))                                   \
    X(cuDeviceGetCount, "cuDeviceGetCount", 2000, 1, (int *count))                                                          \
    X(cuDeviceGet, "cuDeviceGet", 2000, 1, (CUdevice *device, int ordinal))                                                 \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, 1, (int *value, int attribute, CUdevice device))                  \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 1, (CUcontext * context, CUdevice device))                \
    X(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000, 1, (CUdevice device, unsigned *flags, int *active))   \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, 1, (CUcontext * context))                                                   \
    X(cuCtxGetDevice, "cuCtxGetDevice", 2000, 1, (CUdevice * device))                                                       \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", 4000, 1, (CUcontext context))                                                \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", 4000, 1, (CUcontext * context))                                                \
    X(cuCtxSynchronize, "cuCtxSynchronize", 2000, 1, (void))                                                                \
    X(cuLibraryLoadData, "cuLibraryLoadData", 12000, 1,                                                                     \
      (CUlibrary * library, const void *code, int *jit_options, void **jit_values, unsigned jit_count, int *options,        \
       void **values, unsigned count))                                                                                      \
    X(cuLibraryUnload, "cuLibraryUnload", 12000, 1, (CUlibrary library))                                                    \
    X(cuLibraryGetKernel, "cuLibraryGetKernel", 12000, 1, (CUkernel * kernel, CUlibrary library, const char *name))         \
    X(cuLibraryGetGlobal, "cuLibraryGetGlobal", 12000, 1,                                                                   \
      (CUdeviceptr * address, size_t *bytes, CUlibrary library, const char *name))                                          \
    X(cuKernelGetFunction, "cuKernelGetFunction", 12000, 1, (CUfunction * function, CUkernel kernel))                       \
    X(cuKernelGetAttribute, "cuKernelGetAttribute", 12000, 1, (int *value, int attribute, CUkernel kernel, CUdevice device)) \
    X(cuKernelSetAttribute, "cuKernelSetAttribute", 12000, 1, (int attribute, int value, CUkernel kernel, CUdevice device)) \
    X(cuKernelGetParamInfo, "cuKernelGetParamInfo", 12040, 0, (CUkernel kernel, size_t index, size_t *offset, size_t *size)) \
    X(cuFuncLoad, "cuFuncLoad", 12040, 0, (CUfunction function))                                                            \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050, 0,                  \
      (int *blocks, CUfunction function, int block_size, size_t shared_bytes))                                              \
    X(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", 10010, 0, (int *mode))                        \
    X(cuLaunchKernel, "cuLaunchKernel", 4000, 1,                                                                            \
      (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,                   \
       unsigned shared_bytes, CUstream stream, void **params, void **extra))                                                \
    X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, 0,                                                                       \
      (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))                                     \
    X(cuMemAlloc, "cuMemAlloc_v2", 3020, 1, (CUdeviceptr * address, size_t bytes))                                          \
    X(cuMemFree, "cuMemFree_v2", 3020, 1, (CUdeviceptr address))                                                            \
    X(cuMemcpyAsync, "cuMemcpyAsync", 4000, 1, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream))           \
    X(cuMemcpy, "cuMemcpy", 4000, 1, (CUdeviceptr dst, CUdeviceptr src, size_t bytes))

typedef struct jtn_driver {
#define MEMBER(name, symbol, since, required, parameters) CUresult(*name) parameters;
    CUDA_FUNCTIONS(MEMBER)
#undef MEMBER
    int version; /* 13000 for 13.0 */
    int device_count;
} jtn_driver;

/* The driver, opened and initialised (cuInit) at the first call. TOOL without a driver, DEVICE without a GPU or in a child of a process
 * that had started it. The failure of a missing driver is remembered. */
jtn_status jtn__driver(const jtn_driver **out);
/* The table if the driver is up and this is still the process that started it; NULL otherwise. No message: for hot paths. */
const jtn_driver *jtn__driver_ready(void);
/* DEVICE with "what: CUDA_ERROR_NAME (number): text". */
jtn_status jtn__driver_fail(CUresult error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "CUDA_ERROR_NAME (number): text"; writes into out, returns it. */
const char *jtn__driver_error_text(CUresult error, char *out, size_t size);

#endif
