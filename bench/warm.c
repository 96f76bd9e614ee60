/* warm.c — a warm load through the C API, timed from the source text to a function ready to launch.
 *
 * Linked with libjitney and called through ctypes by bench/__main__.py in a fresh process. */
#include <time.h>

#include <jitney/jitney.h>

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds, or a negative number when something failed. The process must have a CUDA context. */
double warm_load_s(const char *name, const char *source_name, const char *source, const char *arch)
{
    jtn_runtime *rt;
    jtn_unit *unit;
    jtn_module *module;
    jtn_function *fn;
    double begin;

    if (jtn_open(NULL, &rt) != JTN_OK)
        return -1;
    if (!jtn_gpu_available(rt)) /* the driver's start is not part of a load */
        return -2;
    begin = now_s();
    if (jtn_unit_new(rt, name, &unit) != JTN_OK || jtn_unit_add_text(unit, source_name, source, JTN_WHOLE) != JTN_OK ||
        jtn_unit_add_option(unit, JTN_OPTION_ARCH, arch) != JTN_OK || jtn_load(rt, unit, &module) != JTN_OK ||
        jtn_module_find(module, "axpy", &fn) != JTN_OK)
        return -3;
    return now_s() - begin;
}
