/* torch/torch.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_TORCH_TORCH_H
#define JITNEY_DEVICE_TORCH_TORCH_H
#endif
