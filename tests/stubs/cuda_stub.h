/* cuda_stub.h — how tests command the stub driver: dlopen JTN_STUB_DIR "/libcuda_stub.so", dlsym these. */
#ifndef CUDA_STUB_H
#define CUDA_STUB_H

#include <stddef.h>
#include <stdint.h>

#define STUB_DEVICES 2

typedef struct stub_launch {
    char kernel[64];
    unsigned grid[3], block[3], shared_bytes, cluster[3];
    int cooperative, extended, device; /* device: of the context it was launched in */
    void *stream;
    unsigned char bytes[4096]; /* the parameters one behind the other, without padding */
    size_t size;
} stub_launch;

typedef struct stub_state {
    int inits, libraries, retained[STUB_DEVICES], launches, loads, memory; /* libraries, memory: alive now */
    int options;       /* library options of the last cuLibraryLoadData: bit n for option n */
    int capture_depth; /* exchanges of the capture mode that were not taken back */
    int loads_uncovered; /* loads made without having relaxed the capture mode */
    stub_launch last;
} stub_state;

stub_state *stub_get(void);
void stub_reset(void); /* counters, commands and the thread's contexts; loaded libraries stay */
/* The next `times` calls of a function return `result` (-1: all of them). CUDA_STUB_FAIL="cuInit=100" does it from outside. */
void stub_fail(const char *function, int result, int times);
/* Parameter sizes of a kernel, by its lowered name; what the launch record copies. */
void stub_params(const char *kernel, int count, const size_t *sizes);
void stub_static_shared(int bytes);
/* The calling thread's current context: a device's primary one, -1: none, -2: one of somebody else's. */
void stub_set_current(int device);
int stub_current(void);

#endif
