/* c10/cuda/CUDAGuard.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_C10_CUDA_CUDAGUARD_H
#define JITNEY_DEVICE_C10_CUDA_CUDAGUARD_H
#endif
