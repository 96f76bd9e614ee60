/* runtime.h — the one process-wide state: what is open, what is loaded. */
#ifndef JTN_RUNTIME_H
#define JTN_RUNTIME_H

#include <pthread.h>

#include "cache/cache.h"
#include "call/module.h"
#include "compile/cxx.h"
#include "toolkit.h"

/* A module loaded in this process. The table does not keep it open: the last close takes it out. */
typedef struct jtn_resident {
    jtn_digest k1;
    jtn_module *module;
} jtn_resident;

struct jtn_runtime {
    int opens;
    pthread_mutex_t lock;    /* guards everything below it */
    jtn_digest identity;     /* of this build of the library */
    char *search_path, *data_dir, *host_abi; /* set at open, never changed */
    jtn_cache *cache;                        /* likewise */
    jtn_toolkit toolkit; /* its nvrtc is NULL until needed */
    jtn_cxx *cxx;            /* NULL until needed */
    jtn_digest cxx_identity;
    jtn_resident *residents;
    size_t resident_count, resident_capacity;
};

/* The runtime of the process, or NULL before the first open. */
jtn_runtime *jtn__runtime(void);

/* The compilers, found on first use, with their identities (memoised in the cache: a warm call opens neither). */
jtn_status jtn__runtime_nvrtc(jtn_runtime *rt);
/* absent: there is no host compiler; its identity is that of the one that was there last, for looking up only. */
jtn_status jtn__runtime_cxx(jtn_runtime *rt, bool *absent);
/* After a build: this compiler filled the cache. */
void jtn__runtime_remember_cxx(jtn_runtime *rt);

/* A module of that first key that is loaded already, retained; NULL when there is none. */
jtn_module *jtn__runtime_find(jtn_runtime *rt, const jtn_digest *k1);
/* Enters a module; one that was entered meanwhile under the same key is replaced. */
jtn_status jtn__runtime_enter(jtn_runtime *rt, const jtn_digest *k1, jtn_module *module);

#endif
