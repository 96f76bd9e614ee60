/* ATen/cuda/CUDAContext.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_ATEN_CUDA_CUDACONTEXT_H
#define JITNEY_DEVICE_ATEN_CUDA_CUDACONTEXT_H
#endif
