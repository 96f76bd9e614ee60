/* <ATen/core/Tensor.h> — as users name it; see jitney/host/torch.h. */
#pragma once
#include "jitney/host/torch.h"
