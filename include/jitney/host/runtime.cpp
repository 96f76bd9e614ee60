/* runtime.cpp — the part of Jitney's C++ that is the same in every module, compiled once for each compiler and set of flags. */
#define JITNEY_HOST_RUNTIME
#include "jitney/host/torch.h"

#include "jitney/host/runtime.inc"
