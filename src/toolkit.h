/* toolkit.h — which NVRTC and which CUDA headers this process compiles with, and who they are. */
#ifndef JTN_TOOLKIT_H
#define JTN_TOOLKIT_H

#include "cache/cache.h"
#include "compile/nvrtc.h"

typedef struct jtn_toolkit {
    jtn_nvrtc *nvrtc;
    jtn_digest nvrtc_identity;
    jtn_list headers; /* folders */
    jtn_digest headers_identity;
} jtn_toolkit;

/* Finds them, or believes what an earlier process found when everything it looked at is as it was: one small file and a dozen stats. */
jtn_status jtn__toolkit_find(jtn_cache *cache, const char *search_path, jtn_toolkit *out);
void jtn__toolkit_deinit(jtn_toolkit *toolkit);

#endif
