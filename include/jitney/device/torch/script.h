/* torch/script.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_TORCH_SCRIPT_H
#define JITNEY_DEVICE_TORCH_SCRIPT_H
#endif
