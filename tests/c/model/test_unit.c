/* test_unit.c — units: what is accepted, what is refused and how it is said, how files are named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/unit.h"

static int runtime_place; /* units only keep the pointer */
static jtn_runtime *const rt = (jtn_runtime *)&runtime_place;

static void assert_message_has(const char *part)
{
    if (!strstr(jtn_last_error(), part))
        fail_msg("\"%s\" is not in the message \"%s\"", part, jtn_last_error());
}

static void names_are_python_identifiers(void **state)
{
    static const char *const bad[] = {"", "1a", "a b", "a-b", "a..b", ".a", "a.", "a/b", "é"};
    jtn_unit *unit;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(jtn_unit_new(rt, bad[i], &unit), JTN_ERROR_ARGUMENT);
        assert_message_has("cannot name a module");
    }
    assert_int_equal(jtn_unit_new(rt, NULL, &unit), JTN_ERROR_ARGUMENT);
    assert_int_equal(jtn_unit_new(rt, "pkg.sub.my_ext1", &unit), JTN_OK);
    assert_string_equal(unit->base_name, "my_ext1");
    jtn_unit_free(unit);
}

static void languages_follow_the_names(void **state)
{
    static const struct {
        const char *name;
        jtn_lang lang;
    } cases[] = {{"a.c", JTN_LANG_C}, {"a.cu", JTN_LANG_CUDA}, {"a.cuh", JTN_LANG_CUDA}, {"a.cpp", JTN_LANG_CXX},
                 {"a.cc", JTN_LANG_CXX}, {"x.d/a", JTN_LANG_CXX}, {"a.C", JTN_LANG_CXX}};
    jtn_unit *unit;

    assert_int_equal(jtn_unit_new(rt, "m", &unit), JTN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(jtn_unit_add_text(unit, cases[i].name, "int x;", JTN_WHOLE), JTN_OK);
        assert_int_equal(unit->sources[i].lang, cases[i].lang);
    }
    jtn_unit_free(unit);
}

static void texts_that_are_none_are_refused(void **state)
{
    jtn_unit *unit;

    assert_int_equal(jtn_unit_new(rt, "m", &unit), JTN_OK);
    assert_int_equal(jtn_unit_add_text(unit, "a.c", "int\0x;", 6), JTN_ERROR_ARGUMENT);
    assert_message_has("NUL byte at offset 3");
    assert_int_equal(jtn_unit_add_text(unit, "a\"b.c", "", JTN_WHOLE), JTN_ERROR_ARGUMENT);
    assert_int_equal(jtn_unit_add_text(unit, "a.c", NULL, JTN_WHOLE), JTN_ERROR_ARGUMENT);
    assert_int_equal(unit->source_count, 0);
    assert_int_equal(jtn__unit_read(unit), JTN_ERROR_ARGUMENT);
    assert_message_has("has no source");
    jtn_unit_free(unit);
}

static void a_byte_order_mark_is_no_part_of_a_text(void **state)
{
    jtn_unit *unit;

    assert_int_equal(jtn_unit_new(rt, "m", &unit), JTN_OK);
    assert_int_equal(jtn_unit_add_text(unit, "a.c", "\xef\xbb\xbfint x;", JTN_WHOLE), JTN_OK);
    assert_string_equal(unit->sources[0].text, "int x;");
    assert_int_equal(unit->sources[0].size, 6);
    jtn_unit_free(unit);
}

static void functions_are_names_or_prototypes(void **state)
{
    jtn_unit *unit;

    assert_int_equal(jtn_unit_new(rt, "m", &unit), JTN_OK);
    assert_int_equal(jtn_unit_add_function(unit, "ns::forward", "doc"), JTN_OK);
    assert_int_equal(jtn_unit_add_function(unit, "int f(int x)", NULL), JTN_OK);
    assert_false(unit->wishes[0].prototype);
    assert_true(unit->wishes[1].prototype);
    assert_int_equal(jtn_unit_add_function(unit, "a b", NULL), JTN_ERROR_ARGUMENT);
    assert_message_has("names no function");
    jtn_unit_free(unit);
}

static void options_are_checked_where_they_are_given(void **state)
{
    jtn_unit *unit;

    assert_int_equal(jtn_unit_new(rt, "m", &unit), JTN_OK);
    assert_int_equal(jtn_unit_add_option(unit, JTN_OPTION_TARGET, "tpu"), JTN_ERROR_ARGUMENT);
    assert_int_equal(jtn_unit_add_option(unit, JTN_OPTION_DEFINE, "1X=2"), JTN_ERROR_ARGUMENT);
    assert_int_equal(jtn_unit_add_option(unit, (jtn_option)99, "x"), JTN_ERROR_ARGUMENT);
    assert_int_equal(jtn_unit_add_option(unit, JTN_OPTION_CFLAGS, ""), JTN_OK);
    assert_int_equal(jtn_unit_add_option(unit, JTN_OPTION_CFLAGS, "-O3 -Wall"), JTN_OK);
    assert_int_equal(unit->cflags.count, 2);
    jtn_unit_free(unit);
}

static void make_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    *strrchr(path, '/') = 0;
    mkdir(path, 0700);
    path[strlen(path)] = '/';
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void files_are_named_from_their_common_folder(void **state)
{
    char folder[] = "/tmp/jtn-unit-XXXXXX", path[512];
    jtn_unit *unit, *copy;

    assert_non_null(mkdtemp(folder));
    make_file(folder, "a/x.cpp", "int a;");
    make_file(folder, "b/x.cpp", "int b;");
    assert_int_equal(jtn_unit_new(rt, "m", &unit), JTN_OK);
    snprintf(path, sizeof path, "%s/a/x.cpp", folder);
    assert_int_equal(jtn_unit_add_file(unit, path), JTN_OK);
    snprintf(path, sizeof path, "%s/b/x.cpp", folder);
    assert_int_equal(jtn_unit_add_file(unit, path), JTN_OK);
    assert_int_equal(jtn__unit_copy(unit, &copy), JTN_OK);
    assert_int_equal(jtn__unit_read(copy), JTN_OK);
    assert_string_equal(copy->sources[0].name, "a/x.cpp");
    assert_string_equal(copy->sources[1].name, "b/x.cpp");
    assert_string_equal(copy->sources[1].text, "int b;");
    assert_null(unit->sources[0].text);
    jtn_unit_free(copy);
    snprintf(path, sizeof path, "%s/none.cpp", folder);
    assert_int_equal(jtn_unit_add_file(unit, path), JTN_OK);
    assert_int_equal(jtn__unit_read(unit), JTN_ERROR_NOT_FOUND);
    assert_message_has("none.cpp");
    jtn_unit_free(unit);
    snprintf(path, sizeof path, "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_python_identifiers),
        cmocka_unit_test(languages_follow_the_names),
        cmocka_unit_test(texts_that_are_none_are_refused),
        cmocka_unit_test(a_byte_order_mark_is_no_part_of_a_text),
        cmocka_unit_test(functions_are_names_or_prototypes),
        cmocka_unit_test(options_are_checked_where_they_are_given),
        cmocka_unit_test(files_are_named_from_their_common_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
