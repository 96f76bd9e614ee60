/* axpy.c — CUDA kernels, compiled at run time and launched from C.
 *
 *     cc axpy.c $(pkg-config --cflags --libs jitney) -o axpy && ./axpy
 *
 * Compiling needs NVRTC, not a GPU: without one the kernels are compiled for sm_90 and not launched. */
#include <stdio.h>

#include <jitney/jitney.h>

static const char source[] = "__device__ float x[4];\n"
                             "__device__ float y[4];\n"
                             "extern \"C\" __global__ void fill() { int i = threadIdx.x; x[i] = i; y[i] = 10 * i; }\n"
                             "extern \"C\" __global__ void axpy(float a, const float *x, float *y, int n)\n"
                             "{\n"
                             "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n)\n"
                             "        y[i] += a * x[i];\n"
                             "}\n"
                             "extern \"C\" __global__ void show(const float *v) { printf(\"%g %g %g %g\\n\", v[0], v[1], v[2], v[3]); }\n";

static int complain(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, jtn_last_error());
    return 1;
}

static jtn_status load(jtn_runtime *rt, int gpu, jtn_module **mod)
{
    jtn_unit *unit = NULL;
    jtn_status status = jtn_unit_new(rt, "example_axpy", &unit);

    if (status == JTN_OK)
        status = jtn_unit_add_text(unit, "axpy.cu", source, JTN_WHOLE);
    if (status == JTN_OK && !gpu)
        status = jtn_unit_add_option(unit, JTN_OPTION_ARCH, "sm_90");
    if (status == JTN_OK)
        status = jtn_load(rt, unit, mod);
    jtn_unit_free(unit);
    return status;
}

/* One block of four threads; the arguments are checked against the kernel's own types. */
static jtn_status launch(jtn_module *mod, const char *name, unsigned threads, const jtn_value *args, size_t count)
{
    jtn_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {threads, 1, 1}, .device = -1};
    jtn_function *kernel;
    jtn_status status = jtn_module_find(mod, name, &kernel);

    return status == JTN_OK ? jtn_launch(kernel, &config, args, count) : status;
}

static int run(jtn_runtime *rt, jtn_module *mod)
{
    void *x, *y;
    size_t size;

    if (jtn_module_global(mod, "x", -1, &x, &size) != JTN_OK || jtn_module_global(mod, "y", -1, &y, &size) != JTN_OK)
        return complain("variables");
    if (launch(mod, "fill", 4, NULL, 0) != JTN_OK ||
        launch(mod, "axpy", 4, (jtn_value[]){jtn_float(2), jtn_ptr(x), jtn_ptr(y), jtn_int(4)}, 4) != JTN_OK ||
        launch(mod, "show", 1, (jtn_value[]){jtn_ptr(y)}, 1) != JTN_OK || jtn_synchronize(rt, -1) != JTN_OK)
        return complain("launch");
    return 0;
}

int main(void)
{
    jtn_runtime *rt = NULL;
    jtn_module *mod = NULL;
    jtn_status status;
    int gpu, code = 0;

    if (jtn_open(NULL, &rt) != JTN_OK)
        return complain("open");
    gpu = jtn_gpu_available(rt);
    if (!gpu)
        printf("not launched: %s\n", jtn_last_error());
    status = load(rt, gpu, &mod);
    if (status == JTN_ERROR_TOOL)
        printf("not compiled either: %s\n", jtn_last_error());
    else if (status != JTN_OK)
        code = complain("axpy.cu");
    else if (gpu)
        code = run(rt, mod);
    jtn_module_close(mod);
    jtn_close(rt);
    return code;
}
