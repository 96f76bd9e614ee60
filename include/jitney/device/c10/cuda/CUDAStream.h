/* c10/cuda/CUDAStream.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_C10_CUDA_CUDASTREAM_H
#define JITNEY_DEVICE_C10_CUDA_CUDASTREAM_H
#endif
