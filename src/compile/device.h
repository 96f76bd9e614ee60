/* device.h — one CUDA text → image, kernels with types, globals: survey, probes, compile, and the second tries when a guess of
 * the survey was wrong (a kernel in a dead #if, one made by a macro, an overload). */
#ifndef JTN_COMPILE_DEVICE_H
#define JTN_COMPILE_DEVICE_H

#include "compile/nvrtc.h"
#include "model/artifact.h"
#include "source/lex.h"

/* The job's kernels and globals lists are ignored: found here. instances: extra name expressions asked for by the user ("scale<float,
 * 4>"); when there are any, only they are put into kernels. Every kernel the image holds is in the result: those the survey
 * missed are read off the cubin's symbols. survey: of the same text with its headers not expanded. */
jtn_status jtn__device_compile(jtn_nvrtc *nvrtc, const jtn_device_job *job, const jtn_cuda_survey *survey,
                               const jtn_list *instances, jtn_artifact *out /* images[+1], kernels, globals, templates appended */,
                               jtn_findings *findings);

#endif
