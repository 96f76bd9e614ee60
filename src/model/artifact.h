/* artifact.h — what a build yields, as bytes and back: device images, kernels with their types, C functions, globals.
 *
 * An artifact is stored as the trailer of an ELF shared object that is a Python extension module in its own right: the
 * host code when there is some, else Jitney's small stub. */
#ifndef JTN_MODEL_ARTIFACT_H
#define JTN_MODEL_ARTIFACT_H

#include "model/type.h"

typedef struct jtn_kernel_info {
    char *name;    /* as a user asks for it: "axpy", "ns::axpy", "scale<float, 4>" */
    char *lowered; /* symbol in the image */
    char *doc;     /* may be NULL */
    uint32_t image;
    jtn_param *params;
    size_t param_count;
    bool untyped; /* nothing but sizes is known of the parameters */
} jtn_kernel_info;

typedef struct jtn_global_info {
    char *name, *lowered;
    uint32_t image;
} jtn_global_info;

typedef struct jtn_c_info { /* a plain C function */
    char *name;
    char *symbol; /* of an exported variable that points to the function: "jtn_fn_<name>" */
    char *doc;
    jtn_type returns;
    jtn_param *params;
    size_t param_count;
} jtn_c_info;

typedef struct jtn_image {
    char *arch;     /* "sm_90", or "compute_90" for PTX */
    jtn_view bytes; /* into the file's map, or owned */
    char *owned;
} jtn_image;

/* What it takes to compile a template instance later: the device text with its in-memory headers is kept. */
typedef struct jtn_artifact {
    char *name;       /* module name */
    bool has_host;    /* the ELF file holds compiled host code to be loaded */
    jtn_image *images;
    size_t image_count;
    jtn_kernel_info *kernels;
    size_t kernel_count;
    jtn_global_info *globals;
    size_t global_count;
    jtn_c_info *functions;
    size_t function_count;
    jtn_list templates; /* names of kernel templates, for messages */
} jtn_artifact;

jtn_status jtn__artifact_encode(const jtn_artifact *artifact, jtn_buf *out);
/* Images stay views into payload, which must outlive the artifact. CACHE on nonsense. */
jtn_status jtn__artifact_decode(jtn_view payload, jtn_artifact *out);
void jtn__artifact_deinit(jtn_artifact *artifact);
void jtn__kernel_info_deinit(jtn_kernel_info *kernel);
void jtn__param_list_deinit(jtn_param *params, size_t count);

#endif
