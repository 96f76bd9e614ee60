/* nvrtc_private.h — between nvrtc.c and cuda_paths.c. */
#ifndef JTN_COMPILE_NVRTC_PRIVATE_H
#define JTN_COMPILE_NVRTC_PRIVATE_H

#include <stdbool.h>

#include "base/buf.h"

/* Every folder that may hold the libraries (or the headers), in search order; they need not exist. */
jtn_status jtn__cuda_candidates(const char *search_path, bool libraries, jtn_list *out);

#endif
