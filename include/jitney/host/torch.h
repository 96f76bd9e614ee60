/* torch.h — all of Jitney's C++ for ops: what <torch/extension.h> and its neighbours include here. */
#ifndef JITNEY_HOST_TORCH_H
#define JITNEY_HOST_TORCH_H

#ifdef __cplusplus
#include "jitney/host/bind.h"
#include "jitney/host/dispatch.h"

#define TORCH_VERSION_MAJOR 2
#define TORCH_VERSION_MINOR 13
#define TORCH_VERSION_PATCH 0
#define TORCH_VERSION "2.13.0"

namespace py = pybind11;

#ifndef JITNEY_HOST_RUNTIME
#include "jitney/host/runtime.inc"
#endif
#endif
#endif
