/* build.h — from a unit to the bytes of a module: which compiler gets which source, both at once. */
#ifndef JTN_BUILD_H
#define JTN_BUILD_H

#include "runtime.h"
#include "source/lex.h"

/* What each source turned out to be, decided from its tokens before any compiler is asked for. */
typedef struct jtn_plan {
    jtn_cuda_survey *surveys; /* one per source; only CUDA ones are filled */
    bool *is_device;          /* per source */
    size_t source_count;
    bool needs_host, needs_device;
} jtn_plan;

/* UNSUPPORTED for a source that holds kernels and host code at once. */
jtn_status jtn__plan(const jtn_unit *unit, jtn_plan *out);
void jtn__plan_deinit(jtn_plan *plan);

typedef struct jtn_build_input {
    jtn_runtime *rt;
    const jtn_unit *unit;
    const jtn_plan *plan;
    const char *arch;       /* NULL when nothing is for a device */
    const jtn_digest *k1;   /* seeds what would else be random */
    jtn_nvrtc *nvrtc;       /* NULL when not needed */
    jtn_cxx *cxx;           /* likewise */
    const jtn_list *cuda_headers;
    char *const *roots;     /* of the deps: each source's folder, then the include folders */
    size_t root_count;
} jtn_build_input;

typedef struct jtn_build_output {
    jtn_buf file;    /* the shared object */
    jtn_buf payload; /* the artifact */
    jtn_deps deps;
} jtn_build_output;

/* Findings get all the compilers said, also on success. COMPILE and whatever a stage fails with. */
jtn_status jtn__build(const jtn_build_input *input, jtn_build_output *out, jtn_findings *findings);
void jtn__build_output_deinit(jtn_build_output *output);

#endif
