/* options.h — compiler options as people write them → what each compiler gets.
 *
 * One table: spelling, how its value is attached, what NVRTC gets, whether it can change the result. */
#ifndef JTN_MODEL_OPTIONS_H
#define JTN_MODEL_OPTIONS_H

#include "base/buf.h"

/* Splits at blanks and newlines; single and double quotes and backslashes work as in a shell; "" and blanks give nothing.
 * ARGUMENT for an open quote. */
jtn_status jtn__options_split(const char *text, jtn_list *out);

/* nvcc's spellings → NVRTC's. Several flags may be one token's worth already split. What only concerns nvcc's host side
 * (-Xcompiler X, -O3, -ccbin, …) goes to host (may be NULL) or is dropped; what means nothing is dropped with a note.
 * Handled: -O0…-O3, --use_fast_math/-use_fast_math, --fmad/-fmad[= ]v, --ftz, --prec-div, --prec-sqrt, -Xptxas X / -Xptxas=X /
 * --ptxas-options=X (→ -Xptxas… as NVRTC takes it: --ptxas-options; -v sets verbose), -maxrregcount / --maxrregcount,
 * -lineinfo / --generate-line-info, -G / --device-debug, -g, -std= (nvcc's c++11 … c++20), -D / -U (joined or not),
 * -I / -isystem (→ include_dirs), -arch= / -arch X / --gpu-architecture, -gencode … (several: the first arch that is not the
 * GPU's own is noted; code=compute_ gives PTX), -rdc, -dc, --expt-relaxed-constexpr, --expt-extended-lambda
 * (→ --extended-lambda), -diag-suppress=, --diag-suppress, -res-usage, --extra-device-vectorization, --restrict, -w, -Werror …,
 * -l… (to the linker), -Xlinker, --compiler-options X, -x cu, -c, -m64, --threads N, -t N, -fPIC, -prec-div=false. torch's
 * -D__CUDA_NO_HALF…__ macros are not passed. An unknown one: ARGUMENT, naming it and the closest known. */
typedef struct jtn_device_options {
    jtn_list nvrtc;        /* in canonical spelling, order kept, without -arch */
    jtn_list include_dirs; /* as written */
    jtn_list host;         /* for the host compiler */
    jtn_list link;
    jtn_list arch;         /* every architecture named: "sm_90", "compute_90", "sm_90a" */
    jtn_list notes;        /* "-O3: nothing to do for device code", … */
    bool verbose_ptxas;
} jtn_device_options;

jtn_status jtn__options_device(const jtn_list *args, jtn_device_options *out);
void jtn__device_options_deinit(jtn_device_options *options);

/* "90", "9.0", "sm_90", "sm90", "sm_90a", "compute_90", "9.0+PTX" → "sm_90", "sm_90a", "compute_90". ARGUMENT. */
jtn_status jtn__arch_parse(const char *text, char **out);

#endif
