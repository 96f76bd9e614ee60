/* test_cxx_headers.c — Jitney's C++ headers do what torch's users expect: tests/cxx/ops.cpp compiled, loaded and called. */
#include "cxx_support.h"

static test_build build;
static jtn_tensor *x; /* 2 x 3 float32: 0 … 5 */

static int setup(void **unused)
{
    static jtn_buf text;

    jtn__buf_init(&text, 0);
    test_build_init(&build, NULL);
    assert_int_equal(jtn__file_read(JTN_SOURCE_DIR "/tests/cxx/ops.cpp", &text), JTN_OK);
    test_source(&build, "ops.cpp", JTN_LANG_CXX, text.data);
    test_open(&build);
    test_init(&build);
    assert_int_equal(tensor_empty(2, (int64_t[]){2, 3}, NULL, (DLDataType){kDLFloat, 32, 1}, (DLDevice){kDLCPU, 0}, 0, 0, &x), 0);
    for (int i = 0; i < 6; i++)
        ((float *)x->dl.data)[i] = (float)i;
    return 0;
}

static int teardown(void **unused)
{
    tensor_release(x);
    test_build_deinit(&build);
    return tensors_alive == 0 ? 0 : -1; /* no op leaked a tensor */
}

static void signatures_are_the_compilers(void **unused)
{
    assert_string_equal(test_find("metadata")->text, "x: tensor -> tensor");
    assert_string_equal(test_find("metadata")->doc, "doc of metadata");
    assert_string_equal(test_find("types")->text,
                        "list: list<tensor>, none: optional<tensor>, some: optional<tensor> = None, t: tuple<i32, f32>, d: list<i64>, "
                        "e: list<i64> = [1, 2], m: list<bool>, p: tuple<i32, str>, s: any = 1.5, tensors: list<tensor>, i: i32, "
                        "text: str = 'x', view: str, u: u64 = 3, address: ptr = None -> tuple<list<tensor>, i32, f64, str, bool>");
}

static void signatures_of_void_lambdas_and_overloads(void **unused)
{
    assert_string_equal(test_find("nothing")->text, " -> none");
    assert_string_equal(test_find("plus")->text, "a: i32 -> i32");
    assert_string_equal(test_find("over")->text, "n: i32 = 3 -> i32");
    assert_string_equal(test_find("over")[1].text, "f32, i32 -> f32");
    assert_string_equal(module_doc, "module doc");
    assert_string_equal(values[0], "number = 3");
    assert_string_equal(values[1], "list = [1, 2]");
}

static void tensors_tell_what_they_are(void **unused)
{
    assert_string_equal(test_call("metadata", 1, &VALUE_TENSOR(x)), "tensor");
}

static void views_share_memory(void **unused)
{
    assert_string_equal(test_call("views", 1, &VALUE_TENSOR(x)), "tensor");
}

static void new_tensors_and_copies(void **unused)
{
    assert_string_equal(test_call("fresh", 1, &VALUE_TENSOR(x)), "tensor");
}

static void dispatch_compiles_a_body_for_each_type(void **unused)
{
    jtn_tensor *t;

    tensor_empty(1, (int64_t[]){1}, NULL, (DLDataType){kDLFloat, 64, 1}, (DLDevice){kDLCPU, 0}, 0, 0, &t);
    *(double *)t->dl.data = 3;
    assert_string_equal(test_call("dispatch", 1, &VALUE_TENSOR(t)), "tensor");
    assert_float_equal(*(double *)t->dl.data, 12, 0);
    tensor_release(t);
}

static void half_and_bfloat16_convert(void **unused)
{
    assert_string_equal(test_call("halves", 0, NULL), "'ok'");
}

static void every_type_goes_in_and_out(void **unused)
{
    jtn_value tensor = VALUE_TENSOR(x), pair[2] = {VALUE_INT(1), VALUE_FLOAT(2.5)}, ints[2] = {VALUE_INT(1), VALUE_INT(2)};
    jtn_value bools[2] = {VALUE_INT(1), VALUE_INT(0)}, text[2] = {VALUE_INT(1), VALUE_STR("p")};
    jtn_value args[15] = {{JTN_LIST, 1, {.list = &tensor}}, VALUE_NONE, tensor, {JTN_LIST, 2, {.list = pair}},
                          {JTN_LIST, 2, {.list = ints}},    {JTN_LIST, 1, {.list = ints}}, {JTN_LIST, 2, {.list = bools}},
                          {JTN_LIST, 2, {.list = text}},    VALUE_FLOAT(1.25),  {JTN_LIST, 1, {.list = &tensor}}, VALUE_INT(4),
                          VALUE_STR("text"),                VALUE_STR("view"),  {JTN_UINT, 0, {.u = UINT64_MAX}}, VALUE_NONE};

    assert_string_equal(test_call("types", 15, args), "[[tensor], 5, 0.5, 'str', 1]");
    assert_string_equal(test_call("same", 1, &VALUE_STR("a string longer than any small buffer")),
                        "'a string longer than any small buffer'");
    assert_string_equal(test_call("plus", 1, &VALUE_INT(1)), "5");
    assert_string_equal(test_call("nothing", 0, NULL), "None");
    assert_string_equal(test_call("undefined", 0, NULL), "None");
}

static void a_wrong_kind_is_a_type_error(void **unused)
{
    assert_string_equal(test_call("plus", 1, &VALUE_STR("1")), "raise 1: expected int, got str");
    assert_string_equal(test_call("metadata", 1, &VALUE_NONE), "raise 1: expected tensor, got None");
}

static void exceptions_become_the_right_errors(void **unused)
{
    static const char *const expected[] = {
        "raise 0: value 1 2.5 Half [1, 2] cuda:1", "raise 2: v", "raise 3: Expected what < 0 to be true, but got false.", "raise 5: n",
        "raise 4: k", "raise 3: o", "raise 2: i", "raise 6: out of memory",
        "raise 0: the function threw something that is not a std::exception", "raise 0: e9",
        "raise 0: expected scalar type Float but found Int", "raise 0: no GPU here",
        "raise 3: Dimension out of range (expected to be in range of [-1, 0], but got 1)", "raise 0: the tensor is undefined",
        "raise 0: Check failed: what == 3 (14 vs. 3). more",
        "raise 3: select(): index 5 out of range for tensor of size [2] at dimension 0",
        "raise 5: \"dispatch\" not implemented for 'Int'"};

    for (int i = 0; i < (int)(sizeof expected / sizeof *expected); i++)
        assert_string_equal(test_call("raise", 1, &VALUE_INT(i)), expected[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_the_compilers),
        cmocka_unit_test(signatures_of_void_lambdas_and_overloads),
        cmocka_unit_test(tensors_tell_what_they_are),
        cmocka_unit_test(views_share_memory),
        cmocka_unit_test(new_tensors_and_copies),
        cmocka_unit_test(dispatch_compiles_a_body_for_each_type),
        cmocka_unit_test(half_and_bfloat16_convert),
        cmocka_unit_test(every_type_goes_in_and_out),
        cmocka_unit_test(a_wrong_kind_is_a_type_error),
        cmocka_unit_test(exceptions_become_the_right_errors),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
