/* test_module.c — an artifact with host code made callable: ops with overloads and defaults, plain C functions through libffi. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "call/launch.h"

#define SCALAR(code, n, t) {.kind = JTN_TYPE_SCALAR, .dtype = {code, n, 1}, .size = (n) / 8, .align = (n) / 8, .text = t}
#define FLOATS {.kind = JTN_TYPE_POINTER, .is_const = true, .dtype = {kDLFloat, 32, 1}, .size = 8, .align = 8, .text = "const float *"}

static jtn_module *module;
static jtn_buf payload;

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static int set_up(void **state)
{
    jtn_param narrow[] = {{"a", SCALAR(kDLInt, 8, "signed char")}, {"b", SCALAR(kDLUInt, 16, "unsigned short")}};
    jtn_param dot[] = {{"a", FLOATS}, {"b", FLOATS}, {"n", SCALAR(kDLInt, 32, "int")}};
    jtn_param not[] = {{"b", SCALAR(kDLBool, 8, "bool")}};
    jtn_c_info functions[] = {
        {"narrow", "jtn_fn_narrow", NULL, SCALAR(kDLInt, 8, "signed char"), narrow, 2},
        {"wide", "jtn_fn_wide", NULL, SCALAR(kDLUInt, 64, "unsigned long long"), NULL, 0},
        {"dot", "jtn_fn_dot", "Scalar product", SCALAR(kDLFloat, 32, "float"), dot, 3},
        {"not", "jtn_fn_not", NULL, SCALAR(kDLBool, 8, "bool"), not, 1},
    };
    jtn_artifact artifact = {.name = "by_hand", .has_host = true, .functions = functions, .function_count = 4};
    jtn_entry entry = {0};

    jtn__buf_init(&payload, 0);
    if (jtn__artifact_encode(&artifact, &payload) != JTN_OK)
        return -1;
    entry.path = jtn__strdup(JTN_STUB_DIR "/libext_ops.so");
    entry.payload = (jtn_view){payload.data, payload.size};
    if (jtn__module_new(NULL, &entry, jtn__target_cuda(), &module) != JTN_OK) {
        print_error("%s\n", jtn__error_message());
        return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    jtn__module_release(module);
    jtn__buf_deinit(&payload);
    return 0;
}

static jtn_function *named(const char *name)
{
    jtn_function *fn = jtn__module_lookup(module, name);

    if (!fn)
        fail_msg("there is no %s", name);
    return fn;
}

static jtn_value call_op(const char *name, const jtn_value *args, size_t count)
{
    jtn_value result = {0};

    if (jtn__op_call(named(name), args, count, &result) != JTN_OK)
        fail_msg("%s", jtn__error_message());
    return result;
}

static jtn_value call_c(const char *name, const jtn_value *args, size_t count)
{
    jtn_value result = {0};

    if (jtn__ffi_call(named(name), args, count, &result) != JTN_OK)
        fail_msg("%s", jtn__error_message());
    return result;
}

/* ---------------------------------------------------------------- ops ---- */

static void a_module_tells_what_it_holds(void **state)
{
    assert_string_equal(module->name, "by_hand");
    assert_string_equal(module->doc, "By hand");
    assert_int_equal(module->function_count, 8);
    assert_int_equal(module->value_count, 1);
    assert_string_equal(module->values[0].name, "ten");
    assert_int_equal(module->values[0].value.as.i, 10);
    assert_null(jtn__module_lookup(module, "subtract"));
    assert_has(named("add")->signature, "b: int = 10");
}

static void the_first_overload_that_fits_is_called_with_its_defaults(void **state)
{
    assert_int_equal(call_op("add", (jtn_value[]){jtn_int(1), jtn_int(2)}, 2).as.i, 3);
    assert_int_equal(call_op("add", (jtn_value[]){jtn_int(1)}, 1).as.i, 11);
    assert_true(call_op("add", (jtn_value[]){jtn_float(0.5), jtn_int(2)}, 2).as.d == 2.5);
    assert_true(call_op("add", (jtn_value[]){jtn_int(1ll << 40), jtn_int(1)}, 2).as.d == 1099511627777.0); /* no i32 */
}

static void a_call_that_fits_no_overload_is_told_the_signature(void **state)
{
    jtn_value result;

    assert_int_equal(jtn__op_call(named("add"), (jtn_value[]){jtn_none()}, 1, &result), JTN_ERROR_ARGUMENT);
    assert_has(jtn__error_message(), "add(a: int, b: int = 10)");
    assert_int_equal(jtn__op_call(named("numel"), (jtn_value[]){jtn_int(3)}, 1, &result), JTN_ERROR_ARGUMENT);
    assert_has(jtn__error_message(), "numel: argument 1 (x)");
}

static void what_an_op_throws_is_the_error(void **state)
{
    jtn_value result;

    assert_int_equal(jtn__op_call(named("throws"), NULL, 0, &result), JTN_ERROR_CALL);
    assert_has(jtn__error_message(), "the cat sat on it");
}

static void an_op_sees_a_tensor_with_strides_and_count(void **state)
{
    int64_t shape[] = {2, 3}, strides[] = {1, 2};
    DLTensor t = {.device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape};

    assert_int_equal(call_op("numel", (jtn_value[]){jtn_dltensor(&t)}, 1).as.i, 6);
    t.strides = strides;
    assert_int_equal(call_op("numel", (jtn_value[]){jtn_dltensor(&t)}, 1).as.i, 1006); /* not contiguous */
}

static void a_text_result_lives_until_the_next_call_and_may_be_its_argument(void **state)
{
    jtn_value world = {.kind = JTN_STR, .size = 5, .as.s = "world"};
    jtn_value once = call_op("hello", &world, 1);

    assert_string_equal(once.as.s, "hello world");
    assert_string_equal(call_op("hello", &once, 1).as.s, "hello hello world");
}

/* ---------------------------------------------------------------- plain C ---- */

static void c_functions_take_and_return_every_width(void **state)
{
    float x[] = {1, 2, 3};
    jtn_value wide = call_c("wide", NULL, 0);

    assert_int_equal(call_c("narrow", (jtn_value[]){jtn_int(-128), jtn_int(5)}, 2).as.i, -128);
    assert_int_equal(call_c("narrow", (jtn_value[]){jtn_int(0), jtn_int(65535)}, 2).as.i, -1);
    assert_int_equal(wide.kind, JTN_UINT);
    assert_true(wide.as.u == UINT64_MAX);
    assert_true(call_c("dot", (jtn_value[]){jtn_ptr(x), jtn_ptr(x), jtn_int(3)}, 3).as.d == 14);
    assert_int_equal(call_c("not", (jtn_value[]){jtn_bool(1)}, 1).kind, JTN_BOOL);
    assert_int_equal(call_c("not", (jtn_value[]){jtn_bool(0)}, 1).as.i, 1);
}

static void c_functions_refuse_what_does_not_fit(void **state)
{
    int64_t shape[] = {3};
    DLTensor gpu = {.device = {kDLCUDA, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = shape};
    jtn_value result;

    assert_int_equal(jtn__ffi_call(named("narrow"), (jtn_value[]){jtn_int(128), jtn_int(0)}, 2, &result), JTN_ERROR_ARGUMENT);
    assert_has(jtn__error_message(), "argument 1 (a)");
    assert_int_equal(jtn__ffi_call(named("narrow"), NULL, 0, &result), JTN_ERROR_ARGUMENT);
    assert_has(jtn__error_message(), "takes 2");
    assert_int_equal(jtn__ffi_call(named("dot"), (jtn_value[]){jtn_dltensor(&gpu), jtn_dltensor(&gpu), jtn_int(3)}, 3, &result),
                     JTN_ERROR_ARGUMENT);
    assert_has(jtn__error_message(), "CPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_module_tells_what_it_holds),
        cmocka_unit_test(the_first_overload_that_fits_is_called_with_its_defaults),
        cmocka_unit_test(a_call_that_fits_no_overload_is_told_the_signature),
        cmocka_unit_test(what_an_op_throws_is_the_error),
        cmocka_unit_test(an_op_sees_a_tensor_with_strides_and_count),
        cmocka_unit_test(a_text_result_lives_until_the_next_call_and_may_be_its_argument),
        cmocka_unit_test(c_functions_take_and_return_every_width),
        cmocka_unit_test(c_functions_refuse_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
