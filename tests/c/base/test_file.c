/* test_file.c — files, identities, paths and hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"

static char *folder;

static int make_folder(void **state) { return jtn__dir_make_unique("/tmp", "jtn-test-", &folder); }

static int remove_folder(void **state)
{
    jtn__dir_remove(folder);
    jtn__free(folder);
    return 0;
}

static void a_file_is_racy_when_just_written_or_from_the_future_only(void **state)
{
    char *path = jtn__path_join(folder, "a");
    jtn_file_id id, old;

    assert_int_equal(jtn__file_write(path, "x", 1, 0600), JTN_OK);
    assert_int_equal(jtn__file_id(path, &id), JTN_OK);
    assert_true(jtn__file_id_racy(&id));
    old = id;
    old.mtime_ns = old.ctime_ns = id.mtime_ns - 3000000000LL;
    assert_false(jtn__file_id_racy(&old));
    old.ctime_ns = id.ctime_ns + 3600000000000LL;
    assert_true(jtn__file_id_racy(&old));
    jtn__free(path);
}

static void an_unknown_identity_equals_nothing(void **state)
{
    jtn_file_id zero = {0};

    assert_false(jtn__file_id_equal(&zero, &zero));
}

static void publishing_replaces_whole_and_leaves_nothing_else(void **state)
{
    char *path = jtn__path_join(folder, "a");
    jtn_buf bytes;

    jtn__buf_init(&bytes, 0);
    assert_int_equal(jtn__file_publish(path, "first", 5, 0600), JTN_OK);
    assert_int_equal(jtn__file_publish(path, "2nd", 3, 0600), JTN_OK);
    assert_int_equal(jtn__file_read(path, &bytes), JTN_OK);
    assert_string_equal(bytes.data, "2nd");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* empty */
    mkdir(folder, 0700);
    jtn__buf_deinit(&bytes);
    jtn__free(path);
}

static void a_files_digest_is_that_of_its_bytes(void **state)
{
    char *path = jtn__path_join(folder, "a"), *bytes = jtn__alloc(200000);
    jtn_digest of_file, of_bytes;

    memset(bytes, 'q', 200000);
    assert_int_equal(jtn__file_write(path, bytes, 200000, 0600), JTN_OK);
    assert_int_equal(jtn__file_digest(path, &of_file), JTN_OK);
    jtn__digest_of(bytes, 200000, &of_bytes);
    assert_memory_equal(of_file.bytes, of_bytes.bytes, sizeof of_file.bytes);
    jtn__free(bytes);
    jtn__free(path);
}

static void removing_a_folder_does_not_follow_links(void **state)
{
    char *inner = jtn__path_join(folder, "in"), *kept = jtn__path_join(folder, "kept"), *link_path = jtn__path_join(folder, "in/link");

    mkdir(inner, 0700);
    mkdir(kept, 0700);
    assert_int_equal(symlink(kept, link_path), 0);
    assert_int_equal(jtn__dir_remove(inner), JTN_OK);
    assert_false(jtn__dir_exists(inner));
    assert_true(jtn__dir_exists(kept));
    jtn__free(inner);
    jtn__free(kept);
    jtn__free(link_path);
}

static void paths_fold_and_relate(void **state)
{
    char *a = jtn__path_absolute("/a//b/./c/../d/"), *b = jtn__path_relative("/a/b/c", "/a/"), *c = jtn__path_relative("/ab/c", "/a");

    assert_string_equal(a, "/a/b/d");
    assert_string_equal(b, "b/c");
    assert_null(c);
    jtn__free(a);
    jtn__free(b);
}

static void fields_never_run_into_each_other(void **state)
{
    jtn_digest a, b, c;
    jtn_hash hash;

    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "x", "ab");
    jtn__hash_text(&hash, "x", "c");
    jtn__hash_final(&hash, &a);
    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "x", "a");
    jtn__hash_text(&hash, "x", "bc");
    jtn__hash_final(&hash, &b);
    assert_memory_not_equal(a.bytes, b.bytes, sizeof a.bytes);
    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "x", NULL);
    jtn__hash_final(&hash, &a);
    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "x", "");
    jtn__hash_final(&hash, &c);
    assert_memory_not_equal(a.bytes, c.bytes, sizeof a.bytes);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_file_is_racy_when_just_written_or_from_the_future_only),
        CASE(an_unknown_identity_equals_nothing),
        CASE(publishing_replaces_whole_and_leaves_nothing_else),
        CASE(a_files_digest_is_that_of_its_bytes),
        CASE(removing_a_folder_does_not_follow_links),
        CASE(paths_fold_and_relate),
        CASE(fields_never_run_into_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
