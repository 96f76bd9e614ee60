/* test_load.c — the whole way in C: sources in, functions out, remembered on disk. Real compilers; NVRTC when it is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "jitney/jitney.h"

#define DOT "float dot(const float *a, const float *b, int n)"
#define DOT_SOURCE DOT "{ float s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }\n"

static char folder[] = "/tmp/jtn-load-XXXXXX";
static char cache[64];
static jtn_runtime *rt;

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static int set_up(void **state)
{
    jtn_options options = {.struct_size = sizeof options, .cache_dir = cache};

    if (!mkdtemp(folder))
        return -1;
    snprintf(cache, sizeof cache, "%s/cache", folder);
    options.data_dir = JTN_BINARY_DIR "/share/jitney";
    options.search_path = getenv("JITNEY_TEST_SEARCH_PATH");
    return jtn_open(&options, &rt) == JTN_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];

    jtn_close(rt);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void write_file(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static jtn_unit *dot_unit(const char *name, const char *extra)
{
    jtn_unit *unit;
    char text[512];

    snprintf(text, sizeof text, "%s%s", extra, DOT_SOURCE);
    assert_int_equal(jtn_unit_new(rt, name, &unit), JTN_OK);
    assert_int_equal(jtn_unit_add_text(unit, "dot.c", text, JTN_WHOLE), JTN_OK);
    assert_int_equal(jtn_unit_add_function(unit, DOT, "Scalar product"), JTN_OK);
    return unit;
}

static jtn_module *load(jtn_unit *unit)
{
    jtn_module *module = NULL;

    if (jtn_load(rt, unit, &module) != JTN_OK)
        fail_msg("%s\n%s", jtn_last_error(), jtn_last_log());
    jtn_unit_free(unit);
    return module;
}

static double call_dot(jtn_module *module)
{
    float x[3] = {1, 2, 3};
    jtn_function *dot;
    jtn_value result;

    assert_int_equal(jtn_module_find(module, "dot", &dot), JTN_OK);
    if (jtn_call(dot, (jtn_value[]){jtn_ptr(x), jtn_ptr(x), jtn_int(3)}, 3, &result) != JTN_OK)
        fail_msg("%s", jtn_last_error());
    return result.as.d;
}

static void a_c_function_is_compiled_called_and_remembered(void **state)
{
    jtn_module *first = load(dot_unit("first", ""));
    jtn_module *again;

    assert_string_equal(jtn_module_origin(first), "built");
    assert_true(call_dot(first) == 14.0);
    again = load(dot_unit("first", ""));
    assert_ptr_equal(first, again); /* resident */
    jtn_module_close(again);
    jtn_module_close(first);
    again = load(dot_unit("first", ""));
    assert_string_equal(jtn_module_origin(again), "disk");
    assert_true(call_dot(again) == 14.0);
    assert_has(jtn_module_path(again), "/first.so");
    jtn_module_close(again);
}

static void a_b_a_under_one_name_hits_the_third_time(void **state)
{
    jtn_module_close(load(dot_unit("aba", "")));
    jtn_module_close(load(dot_unit("aba", "int b;\n")));
    jtn_module *third = load(dot_unit("aba", ""));

    assert_string_equal(jtn_module_origin(third), "disk");
    jtn_module_close(third);
}

static void functions_tell_their_signature(void **state)
{
    jtn_module *module = load(dot_unit("told", ""));
    jtn_param_info info = {.struct_size = sizeof info};
    jtn_function *dot;

    assert_int_equal(jtn_module_count(module), 1);
    assert_int_equal(jtn_module_at(module, 0, &dot), JTN_OK);
    assert_int_equal(jtn_module_at(module, 1, &dot), JTN_ERROR_ARGUMENT);
    assert_int_equal(jtn_function_get_kind(dot), JTN_FUNCTION_C);
    assert_string_equal(jtn_function_doc(dot), "Scalar product");
    assert_int_equal(jtn_function_param(dot, 0, &info), JTN_OK);
    assert_string_equal(info.name, "a");
    assert_has(info.type, "float");
    assert_int_equal(jtn_module_find(module, "cross", &dot), JTN_ERROR_NOT_FOUND);
    assert_has(jtn_last_error(), "dot");
    jtn_module_close(module);
}

static void a_wrong_prototype_is_a_compile_error(void **state)
{
    jtn_module *module;
    jtn_unit *unit;

    assert_int_equal(jtn_unit_new(rt, "wrong", &unit), JTN_OK);
    jtn_unit_add_text(unit, "f.c", "double f(int x) { return x; }\n", JTN_WHOLE);
    jtn_unit_add_function(unit, "double f(double x)", NULL);
    assert_int_equal(jtn_load(rt, unit, &module), JTN_ERROR_COMPILE);
    jtn_unit_free(unit);
}

static void a_compile_error_has_the_users_line(void **state)
{
    jtn_diagnostic d = {.struct_size = sizeof d};
    jtn_module *module;
    jtn_unit *unit;

    write_file("broken.cpp", "int ok;\nint broken( { return 1; }\n");
    assert_int_equal(jtn_unit_new(rt, "broken", &unit), JTN_OK);
    char path[128];
    snprintf(path, sizeof path, "%s/broken.cpp", folder);
    jtn_unit_add_file(unit, path);
    assert_int_equal(jtn_load(rt, unit, &module), JTN_ERROR_COMPILE);
    assert_true(jtn_diagnostic_count() >= 1);
    assert_int_equal(jtn_diagnostic_at(0, &d), JTN_OK);
    assert_has(d.file, "broken.cpp");
    assert_int_equal(d.line, 2);
    assert_true(d.column > 0);
    assert_int_equal(d.severity, JTN_SEVERITY_ERROR);
    assert_has(d.excerpt, "int broken(");
    assert_has(jtn_last_error(), "broken.cpp:2:");
    assert_has(jtn_last_log(), "error");
    jtn_unit_free(unit);
}

static jtn_unit *header_unit(void)
{
    jtn_unit *unit;

    assert_int_equal(jtn_unit_new(rt, "header", &unit), JTN_OK);
    jtn_unit_add_text(unit, "v.c", "#include \"value.h\"\nint value(void) { return VALUE; }\n", JTN_WHOLE);
    jtn_unit_add_option(unit, JTN_OPTION_INCLUDE_DIR, folder);
    jtn_unit_add_function(unit, "int value(void)", NULL);
    return unit;
}

static int64_t value_of(jtn_module *module)
{
    jtn_function *value;
    jtn_value result;

    assert_int_equal(jtn_module_find(module, "value", &value), JTN_OK);
    assert_int_equal(jtn_call(value, NULL, 0, &result), JTN_OK);
    return result.as.i;
}

static void an_edited_header_rebuilds_and_its_return_hits(void **state)
{
    jtn_module *one, *two;

    write_file("value.h", "#define VALUE 1\n");
    one = load(header_unit());
    assert_int_equal(value_of(one), 1);
    write_file("value.h", "#define VALUE 2\n");
    assert_int_equal(jtn_module_fresh(one), 0);
    two = load(header_unit());
    assert_int_equal(value_of(two), 2);
    assert_int_equal(value_of(one), 1); /* what is loaded stays what it is */
    jtn_module_close(one);
    jtn_module_close(two);
    write_file("value.h", "#define VALUE 1\n");
    one = load(header_unit());
    assert_string_equal(jtn_module_origin(one), "disk");
    assert_int_equal(value_of(one), 1);
    jtn_module_close(one);
}

static void a_copied_file_opens_without_a_compiler(void **state)
{
    jtn_module *module = load(dot_unit("copied", ""));
    char command[512], path[128];
    jtn_module *copy;

    snprintf(path, sizeof path, "%s/copied.so", folder);
    snprintf(command, sizeof command, "cp %s %s", jtn_module_path(module), path);
    assert_int_equal(system(command), 0);
    jtn_module_close(module);
    assert_int_equal(jtn_module_open(rt, path, &copy), JTN_OK);
    assert_true(call_dot(copy) == 14.0);
    assert_string_equal(jtn_module_name(copy), "copied");
    jtn_module_close(copy);
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(jtn_module_open(rt, path, &copy), JTN_ERROR_CACHE);
    assert_int_equal(jtn_module_open(rt, "/nowhere.so", &copy), JTN_ERROR_NOT_FOUND);
}

static void a_warm_load_in_a_new_process_needs_no_compile(void **state)
{
    int status;
    pid_t child;

    jtn_module_close(load(dot_unit("warm", "")));
    child = fork();
    if (child == 0) {
        jtn_unit *unit = dot_unit("warm", "");
        jtn_module *module;

        setenv("JITNEY_COMPILE", "never", 1);
        if (jtn_load(rt, unit, &module) != JTN_OK || call_dot(module) != 14.0)
            _exit(1);
        unit = dot_unit("cold", "int other;\n");
        _exit(jtn_load(rt, unit, &module) == JTN_ERROR_CACHE ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define KERNELS                                                                                                       \
    "#include \"factor.h\"\n__constant__ float c[4];\n"                                                               \
    "extern \"C\" __global__ void axpy(float a, const float *x, float *y, int n) { int i = threadIdx.x; if (i < n) y[i] += a * x[i] * FACTOR + c[0]; }\n" \
    "template <class T, int N> __global__ void scale(T *x, int n) { x[threadIdx.x] *= N; }\n"

static void a_kernel_is_compiled_typed_and_remembered(void **state)
{
    jtn_param_info info = {.struct_size = sizeof info};
    jtn_module *module;
    jtn_function *axpy, *scale;
    jtn_unit *unit;
    jtn_status status;

    write_file("factor.h", "#define FACTOR 1\n");
    assert_int_equal(jtn_unit_new(rt, "kern", &unit), JTN_OK);
    jtn_unit_add_text(unit, "kern.cu", KERNELS, JTN_WHOLE);
    jtn_unit_add_option(unit, JTN_OPTION_ARCH, "sm_90");
    jtn_unit_add_option(unit, JTN_OPTION_INCLUDE_DIR, folder);
    status = jtn_load(rt, unit, &module);
    jtn_unit_free(unit);
    if (status == JTN_ERROR_TOOL) {
        print_message("skipped: %s\n", jtn_last_error());
        skip();
    }
    if (status != JTN_OK)
        fail_msg("%s\n%s", jtn_last_error(), jtn_last_log());
    assert_int_equal(jtn_module_find(module, "axpy", &axpy), JTN_OK);
    assert_int_equal(jtn_function_get_kind(axpy), JTN_FUNCTION_KERNEL);
    assert_int_equal(jtn_function_param_count(axpy), 4);
    assert_int_equal(jtn_function_param(axpy, 1, &info), JTN_OK);
    assert_string_equal(info.type, "const float *");
    assert_string_equal(info.name, "x");
    assert_int_equal(jtn_module_find(module, "scale<float, 4>", &scale), JTN_OK);
    assert_int_equal(jtn_function_param_count(scale), 2);
    assert_int_equal(jtn_module_find(module, "scale<nothing>", &scale), JTN_ERROR_COMPILE);
    jtn_module_close(module);
}

static void what_is_not_allowed_is_said(void **state)
{
    jtn_module *module;
    jtn_unit *unit;

    assert_int_equal(jtn_load(rt, NULL, &module), JTN_ERROR_ARGUMENT);
    assert_int_equal(jtn_unit_new(rt, "empty", &unit), JTN_OK);
    assert_int_equal(jtn_load(rt, unit, &module), JTN_ERROR_ARGUMENT);
    jtn_unit_add_file(unit, "/nowhere/a.cpp");
    assert_int_equal(jtn_load(rt, unit, &module), JTN_ERROR_NOT_FOUND);
    assert_has(jtn_last_error(), "/nowhere/a.cpp");
    jtn_unit_free(unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_c_function_is_compiled_called_and_remembered),
        cmocka_unit_test(a_b_a_under_one_name_hits_the_third_time),
        cmocka_unit_test(functions_tell_their_signature),
        cmocka_unit_test(a_wrong_prototype_is_a_compile_error),
        cmocka_unit_test(a_compile_error_has_the_users_line),
        cmocka_unit_test(an_edited_header_rebuilds_and_its_return_hits),
        cmocka_unit_test(a_copied_file_opens_without_a_compiler),
        cmocka_unit_test(a_warm_load_in_a_new_process_needs_no_compile),
        cmocka_unit_test(a_kernel_is_compiled_typed_and_remembered),
        cmocka_unit_test(what_is_not_allowed_is_said),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
