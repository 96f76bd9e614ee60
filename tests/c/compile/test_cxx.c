/* test_cxx.c — the host compiler: builds, wishes, odd paths, errors, dependencies, the precompiled header. */
#include "cxx_support.h"

#include <pthread.h>

static const char *const print_array = "#include <torch/extension.h>\n"
                                       "int count(torch::Tensor t) { return t.numel(); }\n"
                                       "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"count\", &count, \"counts\"); }\n";

static void a_c_function_is_reached_through_a_checked_pointer(void **unused)
{
    test_build b;
    float (*const *dot)(const float *, const float *, int);
    float x[2] = {1, 2};

    test_build_init(&b, NULL);
    test_source(&b, "dot.c", JTN_LANG_C,
                "float dot(const float *a, const float *b, int n) { float s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; "
                "return s; }");
    test_wish(&b, "float dot(const float *a, const float *b, int n)", NULL);
    test_open(&b);
    *(void **)&dot = dlsym(b.handle, "jtn_fn_dot");
    assert_non_null(dot);
    assert_float_equal((*dot)(x, x, 2), 5, 0);
    assert_null(dlsym(b.handle, "dot")); /* nothing else is exported */
    assert_non_null(dlsym(b.handle, "PyInit_demo"));
    test_build_deinit(&b);
}

static void a_prototype_that_differs_from_the_definition_is_an_error(void **unused)
{
    const jtn_lang langs[] = {JTN_LANG_C, JTN_LANG_CXX};

    for (int i = 0; i < 2; i++) {
        test_build b;

        test_build_init(&b, NULL);
        test_source(&b, i ? "f.cpp" : "f.c", langs[i], "double twice(double x) { return 2 * x; }");
        test_wish(&b, "float twice(float x)", NULL);
        assert_int_equal(test_run(&b), JTN_ERROR_COMPILE);
        assert_string_equal(b.findings.items[0].file, "functions");
        test_build_deinit(&b);
    }
}

static void a_module_written_by_hand_and_wishes_are_both_bound(void **unused)
{
    test_build b;

    test_build_init(&b, NULL);
    test_source(&b, "m.cpp", JTN_LANG_CXX,
                "#include <torch/extension.h>\nint one(int a) { return a + 1; }\nfloat two(float a) { return a * 2; }\n"
                "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"one\", &one, \"by hand\", py::arg(\"a\") = 3); }");
    test_wish(&b, "one", "not used");
    test_wish(&b, "two", "says \"two\" \\ ?\?/ \xc3\xa9\n");
    test_open(&b);
    test_init(&b);
    assert_int_equal(function_count, 2);
    assert_string_equal(functions[0].doc, "by hand");
    assert_string_equal(functions[0].text, "a: i32 = 3 -> i32");
    assert_string_equal(functions[1].doc, "says \"two\" \\ ?\?/ \xc3\xa9\n");
    assert_string_equal(test_call("two", 1, &VALUE_FLOAT(1.5)), "3");
    test_build_deinit(&b);
}

static void several_sources_make_one_module(void **unused)
{
    test_build b;

    test_build_init(&b, NULL);
    test_source(&b, "a.cpp", JTN_LANG_CXX, "#include <torch/extension.h>\nint helper(int);\nint f(int a) { return helper(a); }\n");
    test_source(&b, "b.cpp", JTN_LANG_CXX,
                "#include <torch/extension.h>\nextern \"C\" int base(void);\nint helper(int a) { return a + base(); }\n"
                "PYBIND11_MODULE(demo, m) { m.def(\"helper\", helper); }");
    test_source(&b, "c.c", JTN_LANG_C, "int base(void) { return 40; }");
    test_wish(&b, "f", NULL);
    test_open(&b);
    test_init(&b);
    assert_string_equal(test_call("f", 1, &VALUE_INT(2)), "42");
    test_build_deinit(&b);
}

static void odd_paths_flags_and_names_work(void **unused)
{
    test_build b;
    char *folder, *header;

    test_build_init(&b, NULL);
    folder = jtn__format("%s/a b $HOME 'q' \"d\" #x \xc3\xa9", b.folder);
    assert_int_equal(jtn__dir_make(folder, 0700), JTN_OK);
    header = jtn__path_join(folder, "my header.h");
    assert_int_equal(jtn__file_write(header, "#define BASE 40\n", 16, 0600), JTN_OK);
    jtn__list_add(&b.include_dirs, folder);
    b.roots[b.root_count++] = folder;
    jtn__list_add(&b.defines, "TEXT=\"x y\"");
    jtn__list_add(&b.cflags, "-std=c11");
    jtn__list_add(&b.cflags, "-std=c++14");
    jtn__list_add(&b.cflags, "/O2");
    jtn__list_add(&b.cflags, "");
    test_source(&b, "odd \"name\" \\.cpp", JTN_LANG_CXX,
                "#include <torch/extension.h>\n#include \"my header.h\"\n"
                "PYBIND11_MODULE(demo, m) { m.attr(\"text\") = TEXT; m.attr(\"file\") = __FILE__; m.attr(\"base\") = BASE; }");
    test_open(&b);
    test_init(&b);
    assert_string_equal(values[0], "text = 'x y'");
    assert_string_equal(values[1], "file = 'odd \"name\" \\.cpp'");
    assert_string_equal(values[2], "base = 40");
    for (size_t i = 0; i < b.result.deps.count; i++)
        if (b.result.deps.items[i].root == 0)
            assert_string_equal(b.result.deps.items[i].path, "my header.h");
    test_build_deinit(&b);
    jtn__free(folder);
    jtn__free(header);
}

static void dependencies_are_the_compilers_and_name_what_could_come_before(void **unused)
{
    test_build b;
    bool found = false, absent = false, system = false, staged = false;

    test_build_init(&b, NULL);
    b.roots[b.root_count++] = jtn__format("%s/first", b.folder);
    b.roots[b.root_count++] = jtn__format("%s/second", b.folder);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(jtn__dir_make(b.roots[i], 0700), JTN_OK);
        jtn__list_add(&b.include_dirs, b.roots[i]);
    }
    char *header = jtn__path_join(b.roots[1], "x.h");
    assert_int_equal(jtn__file_write(header, "#define X 1\n", 12, 0600), JTN_OK);
    test_source(&b, "x.c", JTN_LANG_C, "#include <stdint.h>\n#include \"x.h\"\nint x(void) { return X; }");
    assert_int_equal(test_run(&b), JTN_OK);
    for (size_t i = 0; i < b.result.deps.count; i++) {
        const jtn_dep *dep = &b.result.deps.items[i];

        found |= dep->root == 1 && !dep->absent && strcmp(dep->path, "x.h") == 0;
        absent |= dep->root == 0 && dep->absent && strcmp(dep->path, "x.h") == 0;
        system |= dep->system && strstr(dep->path, "/stdint.h") != NULL;
        staged |= strstr(dep->path, "staging-") != NULL;
    }
    assert_true(found);
    assert_true(absent);
    assert_true(system);
    assert_false(staged);
    jtn__free(header);
    jtn__free(b.roots[0]);
    jtn__free(b.roots[1]);
    test_build_deinit(&b);
}

static void an_error_has_the_users_file_line_and_column(void **unused)
{
    test_build b;

    test_build_init(&b, NULL);
    test_source(&b, "axpy.cpp", JTN_LANG_CXX, "#include <torch/extension.h>\n\nint f() { return nothing; }\n");
    assert_int_equal(test_run(&b), JTN_ERROR_COMPILE);
    assert_string_equal(b.findings.items[0].file, "axpy.cpp");
    assert_int_equal(b.findings.items[0].line, 3);
    assert_int_equal(b.findings.items[0].column, 18);
    assert_non_null(strstr(b.findings.items[0].excerpt, "int f() { return nothing; }"));
    assert_non_null(strstr(jtn__error_message(), "axpy.cpp:3:18"));
    test_build_deinit(&b);
}

static void a_name_the_headers_lack_says_so_with_the_way_out(void **unused)
{
    static const char *const lines[] = {"at::Tensor f(at::Tensor a) { return torch::addmm(a, a, a); }",
                                        "at::Tensor f(at::Tensor a) { return a.sigmoid(); }",
                                        "static auto r = torch::RegisterOperators(\"a::b\", 1);",
                                        "PYBIND11_MODULE(demo, m) { py::class_<int>(m, \"x\"); }",
                                        "at::Tensor f(at::Tensor a) { return a + a; }"};

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *text = jtn__format("#include <torch/extension.h>\n%s\n", lines[i]);
        test_build b;
        bool said = false;

        test_build_init(&b, NULL);
        test_source(&b, "f.cpp", JTN_LANG_CXX, text);
        assert_int_equal(test_run(&b), JTN_ERROR_COMPILE);
        for (size_t k = 0; k < b.findings.count; k++)
            said |= strstr(b.findings.items[k].message, "docs/usage.md") != NULL;
        if (!said)
            fail_msg("%s: %s", lines[i], b.findings.log);
        test_build_deinit(&b);
        jtn__free(text);
    }
}

static void std_that_the_header_left_out_is_found_by_a_second_try(void **unused)
{
    test_build b;

    test_build_init(&b, NULL);
    test_source(&b, "s.cpp", JTN_LANG_CXX,
                "#include <torch/extension.h>\nstd::string f() { std::ostringstream s; s << std::beta(1.0, 2.0); return s.str(); }\n");
    test_wish(&b, "f", NULL);
    test_open(&b);
    test_init(&b);
    assert_string_equal(test_call("f", 0, NULL), "'0.5'");
    assert_int_equal(b.findings.count, 0); /* the first try is not told */
    test_build_deinit(&b);
}

static void a_function_that_nobody_defines_fails_at_the_link(void **unused)
{
    test_build b;

    test_build_init(&b, NULL);
    test_source(&b, "u.cpp", JTN_LANG_CXX, "#include <torch/extension.h>\nint nowhere(int);\n");
    test_wish(&b, "nowhere", NULL);
    assert_int_equal(test_run(&b), JTN_ERROR_COMPILE);
    assert_non_null(strstr(b.findings.log, "undefined reference"));
    test_build_deinit(&b);
}

static void warnings_of_a_good_build_are_findings(void **unused)
{
    test_build b;

    test_build_init(&b, NULL);
    jtn__list_add(&b.cflags, "-Wall");
    test_source(&b, "w.cpp", JTN_LANG_CXX, "int f() { int unused = 3; return 1; }\n");
    assert_int_equal(test_run(&b), JTN_OK);
    assert_int_equal(b.findings.count, 1);
    assert_int_equal(b.findings.items[0].severity, JTN_SEVERITY_WARNING);
    test_build_deinit(&b);
}

static void no_absolute_path_gets_into_the_object(void **unused)
{
    test_build b;
    jtn_buf bytes;

    test_build_init(&b, NULL);
    test_source(&b, "p.cpp", JTN_LANG_CXX, print_array);
    assert_int_equal(test_run(&b), JTN_OK);
    jtn__buf_init(&bytes, 0);
    assert_int_equal(jtn__file_read(b.result.path, &bytes), JTN_OK);
    assert_null(memmem(bytes.data, bytes.size, b.folder, strlen(b.folder)));
    assert_null(memmem(bytes.data, bytes.size, DATA_DIR, strlen(DATA_DIR)));
    jtn__buf_deinit(&bytes);
    test_build_deinit(&b);
}

static void a_missing_compiler_says_where_was_looked_and_what_helps(void **unused)
{
    char *path = strdup(getenv("PATH"));
    jtn_cxx *cxx = NULL;

    setenv("PATH", "/nonexistent-folder", 1);
    assert_int_equal(jtn__cxx_find(&cxx), JTN_ERROR_TOOL);
    assert_non_null(strstr(jtn__error_message(), "/nonexistent-folder"));
    assert_non_null(strstr(jtn__error_message(), "apt install g++"));
    setenv("PATH", path, 1);
    setenv("JITNEY_CXX", "no-such-compiler -x", 1);
    assert_int_equal(jtn__cxx_find(&cxx), JTN_ERROR_TOOL);
    assert_non_null(strstr(jtn__error_message(), "JITNEY_CXX=no-such-compiler -x"));
    unsetenv("JITNEY_CXX");
    free(path);
}

static void a_killed_compiler_is_told_as_such(void **unused)
{
    test_build b;
    char *script;
    static const char dying[] = "#!/bin/sh\ncase \"$1\" in -print*) exit 0;; esac\nkill -9 $$\n";

    test_build_init(&b, NULL);
    script = jtn__path_join(b.folder, "dying++");
    assert_int_equal(jtn__file_write(script, dying, strlen(dying), 0700), JTN_OK);
    jtn__cxx_free(b.cxx);
    setenv("JITNEY_CXX", script, 1);
    assert_int_equal(jtn__cxx_find(&b.cxx), JTN_OK);
    unsetenv("JITNEY_CXX");
    test_source(&b, "p.c", JTN_LANG_C, "int x;");
    assert_int_equal(test_run(&b), JTN_ERROR_COMPILE);
    assert_non_null(strstr(jtn__error_message(), "was killed"));
    jtn__free(script);
    test_build_deinit(&b);
}

static void a_compiler_that_makes_nothing_is_an_error(void **unused)
{
    test_build b;

    test_build_init(&b, NULL);
    jtn__cxx_free(b.cxx);
    setenv("JITNEY_CXX", "true", 1);
    assert_int_equal(jtn__cxx_find(&b.cxx), JTN_OK);
    unsetenv("JITNEY_CXX");
    test_source(&b, "p.c", JTN_LANG_C, "int x;");
    assert_int_equal(test_run(&b), JTN_ERROR_COMPILE);
    test_build_deinit(&b);
}

static void the_precompiled_header_is_made_once_and_used(void **unused)
{
    char *folder = NULL;
    jtn_cache *cache = NULL;
    jtn_digest first, again;
    bool runtime_dep = false;
    test_build b;

    assert_int_equal(jtn__dir_make_unique("/tmp", "jtn-pch-", &folder), JTN_OK);
    assert_int_equal(jtn__cache_open(folder, JTN_CACHE_WRITE, &cache), JTN_OK);
    for (int round = 0; round < 2; round++) {
        test_build_init(&b, cache);
        assert_int_equal(jtn__cxx_identity(b.cxx, cache, round ? &again : &first), JTN_OK);
        if (round)
            jtn__list_add(&b.cflags, "-Winvalid-pch");
        test_source(&b, "p.cpp", JTN_LANG_CXX, print_array);
        test_open(&b);
        test_init(&b);
        assert_string_equal(functions[0].text, "tensor -> i32");
        assert_int_equal(b.findings.count, 0);
        for (size_t i = 0; round && i < b.result.deps.count; i++)
            runtime_dep |= strstr(b.result.deps.items[i].path, "host/runtime.cpp") != NULL;
        test_build_deinit(&b); /* waits for the header */
    }
    assert_true(runtime_dep);
    assert_true(jtn__digest_equal(&first, &again));
    jtn__cache_close(cache);
    jtn__dir_remove(folder);
    jtn__free(folder);
}

static void *build_in_a_thread(void *arg)
{
    test_build *b = arg;

    return (void *)(intptr_t)test_run(b);
}

static void threads_build_at_once(void **unused)
{
    char *folder = NULL;
    jtn_cache *cache = NULL;
    test_build builds[4];
    pthread_t threads[4];

    assert_int_equal(jtn__dir_make_unique("/tmp", "jtn-pch-", &folder), JTN_OK);
    assert_int_equal(jtn__cache_open(folder, JTN_CACHE_WRITE, &cache), JTN_OK);
    for (int i = 0; i < 4; i++) {
        test_build_init(&builds[i], cache);
        test_source(&builds[i], "p.cpp", JTN_LANG_CXX, print_array);
        assert_int_equal(pthread_create(&threads[i], NULL, build_in_a_thread, &builds[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *status = NULL;

        pthread_join(threads[i], &status);
        assert_int_equal((intptr_t)status, JTN_OK);
    }
    for (int i = 0; i < 4; i++)
        test_build_deinit(&builds[i]);
    jtn__cache_close(cache);
    jtn__dir_remove(folder);
    jtn__free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_c_function_is_reached_through_a_checked_pointer),
        cmocka_unit_test(a_prototype_that_differs_from_the_definition_is_an_error),
        cmocka_unit_test(a_module_written_by_hand_and_wishes_are_both_bound),
        cmocka_unit_test(several_sources_make_one_module),
        cmocka_unit_test(odd_paths_flags_and_names_work),
        cmocka_unit_test(dependencies_are_the_compilers_and_name_what_could_come_before),
        cmocka_unit_test(an_error_has_the_users_file_line_and_column),
        cmocka_unit_test(a_name_the_headers_lack_says_so_with_the_way_out),
        cmocka_unit_test(std_that_the_header_left_out_is_found_by_a_second_try),
        cmocka_unit_test(a_function_that_nobody_defines_fails_at_the_link),
        cmocka_unit_test(warnings_of_a_good_build_are_findings),
        cmocka_unit_test(no_absolute_path_gets_into_the_object),
        cmocka_unit_test(a_missing_compiler_says_where_was_looked_and_what_helps),
        cmocka_unit_test(a_killed_compiler_is_told_as_such),
        cmocka_unit_test(a_compiler_that_makes_nothing_is_an_error),
        cmocka_unit_test(the_precompiled_header_is_made_once_and_used),
        cmocka_unit_test(threads_build_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
