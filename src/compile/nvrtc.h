/* nvrtc.h — NVRTC by dlopen: find, identify, program → image, lowered names, log.
 *
 * Opened when first needed and never closed. Search: JITNEY_NVRTC (a file or a folder); the folders of the runtime's search path
 * (…/nvidia/cu13/lib, …/nvidia/cuda_nvrtc/lib); VIRTUAL_ENV's and CONDA_PREFIX's; CUDA_HOME and CUDA_PATH, /usr/local/cuda; the
 * loader's path. Versioned names (libnvrtc.so.13, .12), newest first. libnvrtc-builtins is opened from the same folder first. */
#ifndef JTN_COMPILE_NVRTC_H
#define JTN_COMPILE_NVRTC_H

#include "compile/diagnostic.h"
#include "base/file.h"

typedef struct jtn_nvrtc jtn_nvrtc;

/* Finds the library file without opening it: a few stats. TOOL: the message lists where was looked and the one command that
 * helps. */
jtn_status jtn__nvrtc_find(const char *search_path, jtn_nvrtc **out);
/* The library file of that path, which is taken on success, without looking. */
jtn_status jtn__nvrtc_at(char *path, jtn_nvrtc **out);
void jtn__nvrtc_free(jtn_nvrtc *nvrtc);
const char *jtn__nvrtc_path(const jtn_nvrtc *nvrtc);
/* Identity of the found file for the key: its ELF build id, else its content's digest. Reads the file: memoise by file id. */
jtn_status jtn__nvrtc_identity(const jtn_nvrtc *nvrtc, jtn_digest *out);
/* Folders with the CUDA headers that fit (pip's nvidia/…/include, a toolkit's include and include/cccl), in search order; empty
 * when there are none, which is fine for code that includes nothing. Identity: see jtn__cuda_headers_identity. */
jtn_status jtn__cuda_headers_find(const char *search_path, jtn_list *dirs);
/* Their identity for the key: the contents of the headers that tell the versions, and not where they lie. Reads them: remember it. */
jtn_status jtn__cuda_headers_identity(const jtn_list *dirs, jtn_digest *out);

typedef struct jtn_device_job {
    const char *name; /* program name, stable: "axpy.cu" */
    const char *text;
    char *const *header_names, *const *header_texts;
    size_t header_count;
    const jtn_list *options;     /* canonical NVRTC options, without -arch */
    const char *arch;            /* "sm_90" → cubin; "compute_90" → PTX */
    const jtn_list *include_dirs; /* toolkit folders and Jitney's device headers */
    const jtn_list *looked;      /* the user's folders, for the message about a header that is not there; may be NULL */
    const char *seed;            /* for --frandom-seed */
    const jtn_list *kernels;     /* name expressions of kernels whose types are asked for */
    const jtn_list *globals;     /* name expressions of variables whose lowered names are asked for */
} jtn_device_job;

typedef struct jtn_device_result {
    char *image;
    size_t image_size;
    bool is_ptx;
    jtn_list lowered;           /* of each kernel */
    jtn_list signatures;        /* of each kernel: the lowered name of its type probe (see signature.h); "" when unknown */
    jtn_list global_lowered;
    double seconds;
} jtn_device_result;

/* Compiles under the library's one compile lock. Findings get the log, whatever the outcome. COMPILE, TOOL, MEMORY. The options
 * that must always go in do so here: --no-cache, --no-source-include, --modify-stack-limit=false, -default-device,
 * --frandom-seed. An architecture NVRTC does not know: ARGUMENT, with the ones it knows. */
jtn_status jtn__nvrtc_compile(jtn_nvrtc *nvrtc, const jtn_device_job *job, jtn_device_result *out, jtn_findings *findings);
void jtn__device_result_deinit(jtn_device_result *result);
jtn_status jtn__nvrtc_version(jtn_nvrtc *nvrtc, int *major, int *minor);

#endif
