/* cxx_private.h — what the files of the host compiler share. */
#ifndef JTN_COMPILE_CXX_PRIVATE_H
#define JTN_COMPILE_CXX_PRIVATE_H

#include <pthread.h>

#include "compile/cxx.h"

struct jtn_cxx {
    jtn_list command; /* the program's full path and the arguments that always follow it ("ccache" "g++") */
    pthread_mutex_t lock;
    bool identified;  /* under lock, as what follows */
    bool gnu;         /* GCC: has precompiled headers of the kind used here */
    jtn_digest identity;
};

/* ---- flags ---- */

/* Puts together what every compile begins with: the command, Jitney's own flags, the user's that are for C++ (or for C). */
jtn_status jtn__cxx_flags(const jtn_cxx *cxx, const jtn_host_job *job, bool c, jtn_list *argv);
/* The user's flags and defines that a precompiled header must agree with. */
jtn_status jtn__cxx_pch_flags(const jtn_host_job *job, jtn_list *flags);
/* -isystem for Jitney's headers. */
jtn_status jtn__cxx_own_headers(const jtn_cxx *cxx, const char *data_dir, jtn_list *argv);

/* ---- texts ---- */

/* One source as the compiler gets it. */
typedef struct jtn_staged {
    const jtn_source *source;
    char *path, *object, *deps; /* in staging */
    jtn_buf text;
    bool c;
    bool prelude; /* begins with Jitney's header: includes one of torch's or pybind11's names, or binds a function */
} jtn_staged;

/* Texts with #line, and the wishes' lines behind the text that knows the function. staged: source_count of them, zeroed. */
jtn_status jtn__cxx_stage(const jtn_host_job *job, jtn_staged *staged);
void jtn__cxx_staged_free(jtn_staged *staged, size_t count);

/* Compiler output → findings, in the user's names; adds the way out to errors about a name that Jitney's headers lack. */
jtn_status jtn__cxx_findings(const jtn_host_job *job, const char *output, jtn_findings *findings);

/* ---- deps ---- */

/* Reads the compiler's own list (make syntax) into deps. Files below a folder of skip are left out. */
jtn_status jtn__cxx_deps_read(const char *path, const jtn_host_job *job, const jtn_list *skip, jtn_deps *deps);
/* Also records the places where a user's header would have been found earlier, had it been there. */
jtn_status jtn__cxx_deps_absent(const jtn_host_job *job, jtn_deps *deps);

/* ---- the precompiled header ---- */

typedef struct jtn_pch {
    char *folder; /* prelude.h, prelude.h.gch, runtime.o; NULL: there is none (yet) */
    jtn_deps deps;
} jtn_pch;

/* Finds one that fits the compiler, the flags and the headers as they are now. Nothing found is no error. */
jtn_status jtn__pch_find(jtn_cxx *cxx, jtn_cache *cache, const jtn_host_job *job, jtn_pch *out);
void jtn__pch_deinit(jtn_pch *pch);
/* Begins to make one in the background, unless that is going on. The process waits for it when it ends. */
void jtn__pch_make(jtn_cxx *cxx, jtn_cache *cache, const jtn_host_job *job);
/* Waits until no header is being made, at most so long (< 0: no limit). */
void jtn__pch_wait(int timeout_ms);

#endif
