/* cxx.h — the host compiler: find, identify, compile, link; its own dependency list; Jitney's precompiled header. */
#ifndef JTN_COMPILE_CXX_H
#define JTN_COMPILE_CXX_H

#include "cache/cache.h"
#include "compile/diagnostic.h"
#include "model/unit.h"

typedef struct jtn_cxx jtn_cxx;

/* JITNEY_CXX, CXX, c++, g++, clang++: the first that exists. A value may hold arguments ("ccache g++"). A few stats; starts nothing.
 * TOOL: where was looked and the one command that helps (apt install g++). */
jtn_status jtn__cxx_find(jtn_cxx **out);
/* Waits for a precompiled header that is being made in the background: it uses the cache, so free before closing that. A
 * process that never frees waits at its exit, at most 10 s. */
void jtn__cxx_free(jtn_cxx *cxx);
const char *jtn__cxx_path(const jtn_cxx *cxx);
/* Digest over driver, cc1plus (asked of the driver) and assembler/linker by build id or content, and over the C library's version.
 * Memoised in the cache by the files' ids: a warm call is a small read and a few stats and starts nothing. */
jtn_status jtn__cxx_identity(jtn_cxx *cxx, jtn_cache *cache, jtn_digest *out);

typedef struct jtn_host_job {
    const char *name;          /* the module's base name: TORCH_EXTENSION_NAME, PyInit_<name> */
    const jtn_source *sources; /* the C and C++ ones, and CUDA ones that hold no device code */
    size_t source_count;
    const jtn_wish *wishes;    /* bare names: bound by code appended to the last C++ text; prototypes: checked there too */
    size_t wish_count;
    const jtn_list *cflags, *ldflags, *include_dirs, *defines;
    const char *data_dir;      /* Jitney's own headers: <data_dir>/include and <data_dir>/include/compat */
    const char *stub_object;   /* linked in: gives jtn_ext_pyinit, aliased to PyInit_<name> */
    const char *staging;       /* private folder for this build */
    char *const *roots;        /* for deps: folder numbers as in cache.h */
    size_t root_count;
    bool verbose;
} jtn_host_job;

typedef struct jtn_host_result {
    char *path; /* the shared object, in staging */
    jtn_deps deps;
} jtn_host_result;

/* Compiles every source (in parallel, within MAX_JOBS and the cores) and links. Warnings reach findings too. COMPILE, TOOL, IO. */
jtn_status jtn__cxx_build(jtn_cxx *cxx, jtn_cache *cache, const jtn_host_job *job, jtn_host_result *out, jtn_findings *findings);
void jtn__host_result_deinit(jtn_host_result *result);

#endif
