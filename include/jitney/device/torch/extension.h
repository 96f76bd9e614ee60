/* torch/extension.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_TORCH_EXTENSION_H
#define JITNEY_DEVICE_TORCH_EXTENSION_H
#endif
