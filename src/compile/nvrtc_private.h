/* nvrtc_private.h — between the files that make up nvrtc.h. */
#ifndef JTN_COMPILE_NVRTC_PRIVATE_H
#define JTN_COMPILE_NVRTC_PRIVATE_H

#include <stdbool.h>

#include "base/buf.h"

/* Every folder that may hold the libraries (or the headers), in search order; they need not exist. */
jtn_status jtn__cuda_candidates(const char *search_path, bool libraries, jtn_list *out);

typedef struct jtn_program_ *nvrtc_program;

/* X(name, parameters): the functions used; all return 0 for success. */
#define NVRTC_FUNCTIONS(X)                                                                                \
    X(nvrtcVersion, (int *major, int *minor))                                                             \
    X(nvrtcCreateProgram, (nvrtc_program * program, const char *text, const char *name, int header_count, \
                           char *const *headers, char *const *header_names))                              \
    X(nvrtcDestroyProgram, (nvrtc_program * program))                                                     \
    X(nvrtcCompileProgram, (nvrtc_program program, int option_count, const char *const *options))         \
    X(nvrtcAddNameExpression, (nvrtc_program program, const char *expression))                            \
    X(nvrtcGetLoweredName, (nvrtc_program program, const char *expression, const char **lowered))         \
    X(nvrtcGetProgramLogSize, (nvrtc_program program, size_t * size))                                     \
    X(nvrtcGetProgramLog, (nvrtc_program program, char *log))                                             \
    X(nvrtcGetPTXSize, (nvrtc_program program, size_t * size))                                            \
    X(nvrtcGetPTX, (nvrtc_program program, char *ptx))                                                    \
    X(nvrtcGetCUBINSize, (nvrtc_program program, size_t * size))                                          \
    X(nvrtcGetCUBIN, (nvrtc_program program, char *cubin))                                                \
    X(nvrtcGetNumSupportedArchs, (int *count))                                                            \
    X(nvrtcGetSupportedArchs, (int *archs))

typedef struct jtn_nvrtc_api {
#define MEMBER(name, parameters) int(*name) parameters;
    NVRTC_FUNCTIONS(MEMBER)
#undef MEMBER
} jtn_nvrtc_api;

struct jtn_nvrtc {
    char *path;
    bool opened;
    jtn_nvrtc_api api;
};

#endif
