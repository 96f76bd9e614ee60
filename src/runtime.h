/* runtime.h — the one process-wide state: what is open, what is loaded, environment read once. */
#ifndef JTN_RUNTIME_H
#define JTN_RUNTIME_H

#include "cache/cache.h"
#include "call/module.h"
#include "compile/cxx.h"
#include "compile/nvrtc.h"

struct jtn_runtime {
    int opens;
    pthread_mutex_t lock;
    char *search_path, *data_dir, *host_abi;
    jtn_cache *cache;
    jtn_nvrtc *nvrtc;       /* NULL until needed; under lock */
    jtn_cxx *cxx;           /* likewise */
    jtn_module **modules;   /* loaded in this process, found by first key; references held weakly */
    jtn_digest *module_keys;
    size_t module_count, module_capacity;
};

/* The runtime of the process, or NULL before the first open. */
jtn_runtime *jtn__runtime(void);
/* Opened on first use; identities memoised in the cache. */
jtn_status jtn__runtime_nvrtc(jtn_runtime *rt, jtn_nvrtc **out, jtn_digest *identity);
jtn_status jtn__runtime_cxx(jtn_runtime *rt, jtn_cxx **out, jtn_digest *identity);

#endif
