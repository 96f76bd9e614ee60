/* torch/types.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_TORCH_TYPES_H
#define JITNEY_DEVICE_TORCH_TYPES_H
#endif
