/* cuda_runtime_api.h — NVRTC knows the built-in names itself; the toolkit's header is used where there is one. */
#ifndef JITNEY_DEVICE_CUDA_RUNTIME_API_H
#define JITNEY_DEVICE_CUDA_RUNTIME_API_H
#endif
