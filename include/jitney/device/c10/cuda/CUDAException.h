/* c10/cuda/CUDAException.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_C10_CUDA_CUDAEXCEPTION_H
#define JITNEY_DEVICE_C10_CUDA_CUDAEXCEPTION_H
#endif
