/* test_lex.c — tokens: every byte in one token, the hard corners of C++ text, and the survey of a CUDA text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "source/lex.h"

/* The tokens of text but blanks and newlines, joined by '|'. */
static char *tokens(const char *text)
{
    static char out[4096];
    jtn_lexer lexer;
    size_t covered = 0;

    out[0] = 0;
    jtn__lex_init(&lexer, text, strlen(text));
    for (jtn_token t = jtn__lex_next(&lexer); t.kind != JTN_TOKEN_END; t = jtn__lex_next(&lexer)) {
        assert_ptr_equal(t.text.data, text + covered);
        covered += t.text.size;
        if (t.kind != JTN_TOKEN_SPACE && t.kind != JTN_TOKEN_NEWLINE)
            snprintf(out + strlen(out), sizeof out - strlen(out), "%s%.*s", out[0] ? "|" : "", (int)t.text.size, t.text.data);
    }
    assert_int_equal(covered, strlen(text));
    return out;
}

static void directives_end_with_their_line(void **state)
{
    assert_string_equal(tokens("#include \"a.h\"\nint x;\n#line 1 \"b.cu\"\nint y;"), "#include \"a.h\"|int|x|;|#line 1 \"b.cu\"|int|y|;");
    assert_string_equal(tokens("#define A \\\n 1\nb"), "#define A \\\n 1|b");
    assert_string_equal(tokens("#define A /* \n */ 1\nb"), "#define A /* \n */ 1|b");
    assert_string_equal(tokens("a # b"), "a|#|b");
}

static void strings_and_comments_hide_what_is_in_them(void **state)
{
    assert_string_equal(tokens("\"a//b\" c // \"d\ne"), "\"a//b\"|c|e");
    assert_string_equal(tokens("R\"x(a)\" \" )x\" b"), "R\"x(a)\" \" )x\"|b");
    assert_string_equal(tokens("u8R\"(#include \"a\"\n)\" c"), "u8R\"(#include \"a\"\n)\"|c");
    assert_string_equal(tokens("'\"' '\\'' 1'000'000"), "'\"'|'\\''|1'000'000");
    assert_string_equal(tokens("a // x \\\n y\nb"), "a|b");
    assert_string_equal(tokens("k<<<1, 2>>>(a)::b"), "k|<<<|1|,|2|>>>|(|a|)|::|b");
}

static void what_is_open_at_the_end_runs_to_the_end(void **state)
{
    static const char *const open[] = {"/* a", "\"a", "R\"(a", "#define A \\", "'", "\\", "R\"", "1e+", "//\\"};

    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        tokens(open[i]); /* asserts that all is covered */
}

/* Any bytes at all: covered, and no end reached too early. */
static void any_bytes_are_covered(void **state)
{
    static const char alphabet[] = "aR\"'\\/*#\n <>:()1.e+u8{};";
    char text[64];

    srand(7);
    for (int i = 0; i < 20000; i++) {
        size_t size = (size_t)rand() % (sizeof text - 1);

        for (size_t k = 0; k < size; k++)
            text[k] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        text[size] = 0;
        tokens(text);
    }
}

static void assert_list(const jtn_list *list, const char *wanted)
{
    char found[1024] = "";

    for (size_t i = 0; i < list->count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "", list->items[i]);
    assert_string_equal(found, wanted);
}

static void kernels_are_found_with_their_namespaces_and_parameters(void **state)
{
    static const char text[] = "#include \"a.h\"\nnamespace a::b { namespace {\n"
                               "static __global__ void __launch_bounds__(256, 2) k(float a, const float *x, int n[4], int = 3) {}\n}}\n"
                               "extern \"C\" { __global__ void c() {} }\ntemplate <class T, int N> __global__ void t(T *x) {}\n"
                               "__global__ void o(int *); __global__ void o(int *p) {} __global__ void o(float *p) {}\n"
                               "MAKE(m)\n__global__ void last(int z) { if (z) { } }\n";
    jtn_cuda_survey s;

    assert_int_equal(jtn__cuda_survey(text, strlen(text), &s), JTN_OK);
    assert_list(&s.kernels, "a::b::k c last");
    assert_list(&s.templates, "t");
    assert_list(&s.overloads, "o");
    assert_list(&s.param_names, "a::b::k:a,x,n, c: t:x o:p last:z");
    assert_true(s.has_device);
    assert_false(s.has_host);
    jtn__cuda_survey_deinit(&s);
}

static void device_variables_are_found_and_functions_are_not(void **state)
{
    static const char text[] = "__constant__ float c[4], d = 1;\n__device__ int f(int x) { return x; }\n__device__ int counter;\n"
                               "namespace n { __device__ __managed__ double m = 2; }\nextern __device__ int elsewhere;\n"
                               "struct S { __device__ int f(); };\n";
    jtn_cuda_survey s;

    assert_int_equal(jtn__cuda_survey(text, strlen(text), &s), JTN_OK);
    assert_list(&s.globals, "c d counter n::m");
    jtn__cuda_survey_deinit(&s);
}

static void host_code_is_noticed_with_its_line(void **state)
{
    static const struct {
        const char *text;
        bool host;
        uint32_t line;
    } cases[] = {{"__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); }", true, 2},
                 {"__global__ void k() {}\n\nPYBIND11_MODULE(a, m) {}", true, 3},
                 {"__global__ void k() {}\ntorch::Tensor f(torch::Tensor x) { return x; }", true, 2},
                 {"// k<<<1, 1>>>()\n__global__ void k() {}\nint helper(int x) { return x; }", false, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        jtn_cuda_survey s;

        assert_int_equal(jtn__cuda_survey(cases[i].text, strlen(cases[i].text), &s), JTN_OK);
        assert_int_equal(s.has_host, cases[i].host);
        assert_int_equal(s.host_line, cases[i].line);
        jtn__cuda_survey_deinit(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directives_end_with_their_line),
        cmocka_unit_test(strings_and_comments_hide_what_is_in_them),
        cmocka_unit_test(what_is_open_at_the_end_runs_to_the_end),
        cmocka_unit_test(any_bytes_are_covered),
        cmocka_unit_test(kernels_are_found_with_their_namespaces_and_parameters),
        cmocka_unit_test(device_variables_are_found_and_functions_are_not),
        cmocka_unit_test(host_code_is_noticed_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
