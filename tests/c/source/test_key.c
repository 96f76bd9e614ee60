/* test_key.c — every input of the first key changes it, and nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "source/key.h"

static int runtime_place;
static jtn_runtime *const rt = (jtn_runtime *)&runtime_place;
static const jtn_digest one = {{1}}, two = {{2}};

static jtn_unit *base_unit(void)
{
    jtn_unit *unit = NULL;

    assert_int_equal(jtn_unit_new(rt, "m", &unit), JTN_OK);
    assert_int_equal(jtn_unit_add_text(unit, "a.cpp", "int f(){return 1;}", JTN_WHOLE), JTN_OK);
    assert_int_equal(jtn_unit_add_option(unit, JTN_OPTION_CFLAGS, "-O2"), JTN_OK);
    assert_int_equal(jtn_unit_add_option(unit, JTN_OPTION_INCLUDE_DIR, "/here/include"), JTN_OK);
    return unit;
}

static jtn_digest key_of(const jtn_unit *unit, const jtn_key_facts *facts)
{
    jtn_digest key;

    assert_int_equal(jtn__key_first(unit, facts, &key, NULL), JTN_OK);
    return key;
}

static void rename_unit(jtn_unit *u) { u->name[0] = 'n'; }
static void change_text(jtn_unit *u) { u->sources[0].text[16] = '2'; }
static void rename_source(jtn_unit *u) { u->sources[0].name[0] = 'b'; }
static void change_language(jtn_unit *u) { u->sources[0].lang = JTN_LANG_C; }
static void add_source(jtn_unit *u) { jtn_unit_add_text(u, "b.cpp", "", JTN_WHOLE); }
static void add_function(jtn_unit *u) { jtn_unit_add_function(u, "f", NULL); }
static void add_flag(jtn_unit *u) { jtn_unit_add_option(u, JTN_OPTION_CFLAGS, "-g0"); }
static void add_cuda_flag(jtn_unit *u) { jtn_unit_add_option(u, JTN_OPTION_CUDA_CFLAGS, "-lineinfo"); }
static void add_link_flag(jtn_unit *u) { jtn_unit_add_option(u, JTN_OPTION_LDFLAGS, "-lm"); }
static void add_define(jtn_unit *u) { jtn_unit_add_option(u, JTN_OPTION_DEFINE, "X=1"); }
static void add_folder(jtn_unit *u) { jtn_unit_add_option(u, JTN_OPTION_INCLUDE_DIR, "/more"); }
static void set_target(jtn_unit *u) { jtn_unit_add_option(u, JTN_OPTION_TARGET, "host"); }
static void ask_native(jtn_unit *u) { jtn_unit_add_option(u, JTN_OPTION_CFLAGS, "-march=native"); }
static void ask_instance(jtn_unit *u) { u->instance = jtn__strdup("k<1>"); }

static void every_input_changes_the_key(void **state)
{
    void (*const changes[])(jtn_unit *) = {rename_unit, change_text, rename_source, change_language, add_source,
                                           add_function, add_flag, add_cuda_flag, add_link_flag, add_define,
                                           add_folder, set_target, ask_native, ask_instance};
    jtn_key_facts facts = {.library = &one};
    jtn_unit *plain = base_unit();
    jtn_digest keys[sizeof changes / sizeof *changes + 1];
    size_t count = sizeof keys / sizeof *keys;

    keys[count - 1] = key_of(plain, &facts);
    for (size_t i = 0; i + 1 < count; i++) {
        jtn_unit *unit = base_unit();

        changes[i](unit);
        keys[i] = key_of(unit, &facts);
        jtn_unit_free(unit);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (jtn__digest_equal(&keys[i], &keys[k]))
                fail_msg("change %zu and change %zu give one key", i, k);
    jtn_unit_free(plain);
}

static void every_compiler_changes_the_key(void **state)
{
    const jtn_key_facts all[] = {{.library = &one}, {.library = &two}, {.library = &one, .cxx = &one}, {.library = &one, .cxx = &two},
                                 {.library = &one, .nvrtc = &one}, {.library = &one, .nvrtc = &two}, {.library = &one, .cuda_headers = &one},
                                 {.library = &one, .arch = "sm_90"}, {.library = &one, .arch = "sm_90a"}, {.library = &one, .host_abi = "x"}};
    jtn_unit *unit = base_unit();

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t k = i + 1; k < sizeof all / sizeof *all; k++) {
            jtn_digest a = key_of(unit, &all[i]), b = key_of(unit, &all[k]);

            if (jtn__digest_equal(&a, &b))
                fail_msg("facts %zu and %zu give one key", i, k);
        }
    jtn_unit_free(unit);
}

/* The same tree elsewhere: other absolute places, other ids, verbose or not. */
static void places_do_not_change_the_key(void **state)
{
    jtn_key_facts facts = {.library = &one};
    jtn_unit *a = base_unit(), *b = base_unit();
    jtn_digest first, second;

    jtn__free(b->include_dirs.items[0]);
    b->include_dirs.items[0] = jtn__strdup("/elsewhere/include");
    b->sources[0].path = jtn__strdup("/elsewhere/a.cpp");
    b->sources[0].id.inode = 7;
    b->verbose = true;
    first = key_of(a, &facts);
    second = key_of(b, &facts);
    assert_memory_equal(&first, &second, sizeof first);
    jtn_unit_free(a);
    jtn_unit_free(b);
}

static void debug_information_ties_the_key_to_the_place(void **state)
{
    jtn_key_facts facts = {.library = &one};
    jtn_unit *unit = base_unit();
    jtn_digest first, second;

    jtn_unit_add_option(unit, JTN_OPTION_CFLAGS, "-g");
    unit->sources[0].path = jtn__strdup("/here/a.cpp");
    first = key_of(unit, &facts);
    memcpy(unit->sources[0].path, "/then", 5);
    second = key_of(unit, &facts);
    assert_memory_not_equal(&first, &second, sizeof first);
    jtn_unit_free(unit);
}

static void the_key_tells_its_own_story(void **state)
{
    jtn_key_facts facts = {.library = &one, .arch = "sm_90"};
    jtn_unit *unit = base_unit();
    jtn_digest key;
    jtn_buf story;

    jtn__buf_init(&story, 0);
    assert_int_equal(jtn__key_first(unit, &facts, &key, &story), JTN_OK);
    assert_non_null(strstr(story.data, "arch: sm_90\n"));
    assert_non_null(strstr(story.data, "source name: a.cpp\n"));
    jtn__buf_deinit(&story);
    jtn_unit_free(unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_input_changes_the_key),
        cmocka_unit_test(every_compiler_changes_the_key),
        cmocka_unit_test(places_do_not_change_the_key),
        cmocka_unit_test(debug_information_ties_the_key_to_the_place),
        cmocka_unit_test(the_key_tells_its_own_story),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
