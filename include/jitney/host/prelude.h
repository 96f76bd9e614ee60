/* prelude.h — what every source that uses these headers begins with: the text of Jitney's precompiled header. */
#include "jitney/host/torch.h"
