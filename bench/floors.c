/* floors.c — what the bare APIs cost, in C: the numbers that the benchmarks divide by.
 *
 * Built by bench/__main__.py with the system compiler into a shared object and called through ctypes. NVRTC and the driver are
 * opened with dlopen, as the library does. Every function returns a time, or a negative number when something failed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- NVRTC ---- */

/* NVRTC looks its builtins up by name: opened from its own folder before, they are found. */
static void open_builtins(const char *nvrtc_path)
{
    static const char *const names[] = {"libnvrtc-builtins.so.13.0", "libnvrtc-builtins.so.13.1", "libnvrtc-builtins.so.13.2"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[4096];
        const char *slash = strrchr(nvrtc_path, '/');

        snprintf(path, sizeof path, "%.*s/%s", slash ? (int)(slash - nvrtc_path) : 1, slash ? nvrtc_path : ".", names[i]);
        dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
    }
}

/* Seconds from text to cubin, the library being open already; the image goes to out_path unless that is NULL. */
double floor_nvrtc_s(const char *nvrtc_path, const char *source, const char *arch, const char *out_path)
{
    void *lib = (open_builtins(nvrtc_path), dlopen(nvrtc_path, RTLD_NOW));
    char arch_option[64];
    const char *options[] = {arch_option, "--no-cache", "-default-device"};
    void *program = NULL;
    size_t size = 0;
    double begin;
    double seconds;
    char *image;

    if (!lib)
        return -1;
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *) = dlsym(lib, "nvrtcCreateProgram");
    int (*compile)(void *, int, const char *const *) = dlsym(lib, "nvrtcCompileProgram");
    int (*get_size)(void *, size_t *) = dlsym(lib, "nvrtcGetCUBINSize");
    int (*get)(void *, char *) = dlsym(lib, "nvrtcGetCUBIN");
    int (*destroy)(void **) = dlsym(lib, "nvrtcDestroyProgram");
    snprintf(arch_option, sizeof arch_option, "-arch=%s", arch);
    begin = now_s();
    if (create(&program, source, "floor.cu", 0, NULL, NULL) || compile(program, 3, options) || get_size(program, &size))
        return -2;
    image = malloc(size);
    get(program, image);
    destroy(&program);
    seconds = now_s() - begin;
    if (out_path) {
        FILE *file = fopen(out_path, "wb");

        if (!file)
            return -3;
        fwrite(image, 1, size, file);
        fclose(file);
    }
    free(image);
    return seconds;
}

/* ---- driver ---- */

typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static void *driver(const char *name)
{
    static void *lib;

    if (!lib)
        lib = dlopen("libcuda.so.1", RTLD_NOW);
    return lib ? dlsym(lib, name) : NULL;
}

/* Makes the primary context of device 0 current. 0 on success. */
int floor_context(void)
{
    int (*init)(unsigned) = driver("cuInit");
    int (*retain)(void **, int) = driver("cuDevicePrimaryCtxRetain");
    int (*set)(void *) = driver("cuCtxSetCurrent");
    void *context;

    return !init || init(0) || retain(&context, 0) || set(context);
}

/* Seconds to read the file, load the module and get the function; the function is left in *function. */
double floor_load_s(const char *path, const char *kernel, void **function)
{
    int (*load)(void **, const void *) = driver("cuModuleLoadData");
    int (*get)(void **, void *, const char *) = driver("cuModuleGetFunction");
    double begin = now_s();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *module;
    char *image;

    if (!load || fd < 0 || fstat(fd, &st))
        return -1;
    image = malloc((size_t)st.st_size);
    if (read(fd, image, (size_t)st.st_size) != st.st_size)
        return -2;
    close(fd);
    if (load(&module, image) || get(function, module, kernel))
        return -3;
    free(image);
    return now_s() - begin;
}

/* Nanoseconds a launch of axpy(float, x, y, n) takes in a C loop of `count` launches. */
double floor_launch_ns(void *function, void *x, void *y, int n, int count, void *stream)
{
    launch_fn launch = (launch_fn)driver("cuLaunchKernel");
    float a = 2;
    void *params[] = {&a, &x, &y, &n};
    double begin = now_s();

    for (int i = 0; i < count; i++)
        if (launch(function, (unsigned)(n + 255) / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL))
            return -1;
    return (now_s() - begin) * 1e9 / count;
}
