/* torch/all.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_TORCH_ALL_H
#define JITNEY_DEVICE_TORCH_ALL_H
#endif
