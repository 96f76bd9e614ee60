/* test_cache.c — what is remembered, what is not, and that nothing which happens to the folder fails a load. */
#include "support.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "cache/manifest.h"

static void what_was_put_is_found_by_another_opener(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *writer = open_cache(in_folder("c"), JTN_CACHE_WRITE), *reader = open_cache(in_folder("c"), JTN_CACHE_READ);
    struct stat st;
    char path[4096];

    assert_string_equal(look(writer, &k1, NULL, 0), "miss");
    put_away(writer, &k1, NULL, "one", path);
    assert_string_equal(look(reader, &k1, NULL, 0), "one");
    assert_string_equal(jtn__path_base(path), "mod.so");
    assert_int_equal(stat(in_folder("c"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_true(jtn__file_exists(in_folder("c/CACHEDIR.TAG")));
    jtn__cache_close(writer);
    jtn__cache_close(reader);
}

/* ---------------------------------------------------------------- dependencies ---- */

static jtn_deps one_dep(char *const roots[], const char *path)
{
    jtn_deps deps = {0};

    assert_int_equal(jtn__deps_add(&deps, roots, 0, path, NULL, false), JTN_OK);
    return deps;
}

static void going_back_to_an_earlier_header_is_a_hit(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char *roots[] = {folder};
    jtn_deps deps;

    write_file(in_folder("a.h"), "A");
    deps = one_dep(roots, "a.h");
    put_away(cache, &k1, &deps, "from A", NULL);
    write_file(in_folder("a.h"), "B");
    assert_string_equal(look(cache, &k1, roots, 1), "miss");
    deps = one_dep(roots, "a.h");
    put_away(cache, &k1, &deps, "from B", NULL);
    assert_string_equal(look(cache, &k1, roots, 1), "from B");
    write_file(in_folder("a.h"), "A");
    assert_string_equal(look(cache, &k1, roots, 1), "from A");
    jtn__cache_close(cache);
}

static void a_header_changed_within_its_size_and_time_is_a_miss(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char *roots[] = {folder};
    struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
    jtn_deps deps;

    write_file(in_folder("a.h"), "A");
    utimensat(AT_FDCWD, in_folder("a.h"), old, 0);
    deps = one_dep(roots, "a.h");
    put_away(cache, &k1, &deps, "from A", NULL);
    write_file(in_folder("a.h"), "B");
    utimensat(AT_FDCWD, in_folder("a.h"), old, 0);
    assert_string_equal(look(cache, &k1, roots, 1), "miss");
    jtn__cache_close(cache);
}

static void the_same_tree_elsewhere_is_a_hit(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char here[4096], there[4096];
    char *roots[] = {here}, *moved[] = {there};
    jtn_deps deps;

    snprintf(here, sizeof here, "%s/here", folder);
    snprintf(there, sizeof there, "%s/there", folder);
    jtn__dir_make(here, 0700);
    jtn__dir_make(there, 0700);
    write_file(in_folder("here/a.h"), "A");
    write_file(in_folder("there/a.h"), "A");
    deps = one_dep(roots, "a.h");
    put_away(cache, &k1, &deps, "from A", NULL);
    jtn__dir_remove(here);
    assert_string_equal(look(cache, &k1, moved, 1), "from A");
    assert_string_equal(look(cache, &k1, roots, 1), "miss");
    jtn__cache_close(cache);
}

static void a_header_that_appears_where_one_was_looked_for_is_a_miss(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char *roots[] = {folder};
    jtn_deps deps = {0};

    jtn__deps_add_absent(&deps, 0, "first.h");
    put_away(cache, &k1, &deps, "without", NULL);
    assert_string_equal(look(cache, &k1, roots, 1), "without");
    write_file(in_folder("first.h"), "");
    assert_string_equal(look(cache, &k1, roots, 1), "miss");
    jtn__cache_close(cache);
}

static void a_file_changed_while_it_was_compiled_is_not_remembered(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char *roots[] = {folder};
    jtn_deps deps = {.since_ns = jtn__deps_now()};

    usleep(30000);
    write_file(in_folder("a.h"), "late");
    assert_int_equal(jtn__deps_add(&deps, roots, 0, "a.h", NULL, false), JTN_OK);
    put_away(cache, &k1, &deps, "of which?", NULL);
    assert_string_equal(look(cache, &k1, roots, 1), "miss");
    jtn__cache_close(cache);
}

static void the_result_key_knows_contents_and_no_places(void **state)
{
    jtn_digest k1 = digest_of("k1"), a, b, c;
    char *roots[] = {folder}, *other[] = {(char *)(uintptr_t)in_folder("o")};
    jtn_deps deps;

    jtn__dir_make(other[0], 0700);
    write_file(in_folder("a.h"), "A");
    write_file(in_folder("o/a.h"), "A");
    deps = one_dep(roots, "a.h");
    jtn__deps_key(&k1, &deps, &a);
    jtn__deps_deinit(&deps);
    deps = one_dep(other, "a.h");
    jtn__deps_key(&k1, &deps, &b);
    jtn__deps_deinit(&deps);
    write_file(in_folder("a.h"), "B");
    deps = one_dep(roots, "a.h");
    jtn__deps_key(&k1, &deps, &c);
    jtn__deps_deinit(&deps);
    assert_memory_equal(a.bytes, b.bytes, sizeof a.bytes);
    assert_memory_not_equal(a.bytes, c.bytes, sizeof a.bytes);
}

/* ---------------------------------------------------------------- damage ---- */

static void manifest_path(const jtn_digest *k1, char out[4096])
{
    char hex[JTN_DIGEST_HEX];

    jtn__digest_hex(k1, hex);
    snprintf(out, 4096, "%s/c/v1/m/%.2s/%s", folder, hex, hex);
}

static void a_manifest_damaged_anywhere_is_a_miss_or_right(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char *roots[] = {folder}, path[4096];
    jtn_deps deps;
    jtn_buf bytes;

    jtn__buf_init(&bytes, 0);
    write_file(in_folder("a.h"), "A");
    deps = one_dep(roots, "a.h");
    put_away(cache, &k1, &deps, "one", NULL);
    jtn__cache_close(cache);
    cache = open_cache(in_folder("c"), JTN_CACHE_READ); /* sets nothing aside */
    manifest_path(&k1, path);
    assert_int_equal(jtn__file_read(path, &bytes), JTN_OK);
    for (size_t i = 0; i < bytes.size; i++) {
        bytes.data[i] ^= 0x41;
        jtn__file_write(path, bytes.data, bytes.size, 0600);
        bytes.data[i] ^= 0x41;
        assert_string_equal(look(cache, &k1, roots, 1), "miss");
        jtn__file_write(path, bytes.data, i, 0600);
        assert_string_equal(look(cache, &k1, roots, 1), "miss");
    }
    jtn__file_write(path, bytes.data, bytes.size, 0600);
    assert_string_equal(look(cache, &k1, roots, 1), "one");
    jtn__buf_deinit(&bytes);
    jtn__cache_close(cache);
}

static void a_damaged_entry_is_set_aside_and_made_anew(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char path[4096];

    put_away(cache, &k1, NULL, "one", path);
    write_file(path, "something else");
    assert_string_equal(look(cache, &k1, NULL, 0), "miss");
    assert_false(jtn__file_exists(path));
    put_away(cache, &k1, NULL, "one", NULL);
    assert_string_equal(look(cache, &k1, NULL, 0), "one");
    jtn__cache_close(cache);
}

static void a_valid_entry_under_another_keys_name_is_a_miss(void **state)
{
    jtn_digest one = digest_of("1"), two = digest_of("2");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char first[4096], second[4096];

    put_away(cache, &one, NULL, "one", first);
    put_away(cache, &two, NULL, "two", second);
    assert_int_equal(rename(first, in_folder("t")), 0);
    assert_int_equal(rename(second, first), 0);
    assert_int_equal(rename(in_folder("t"), second), 0);
    assert_string_equal(look(cache, &one, NULL, 0), "miss");
    assert_string_equal(look(cache, &two, NULL, 0), "miss");
    jtn__cache_close(cache);
}

static void the_manifest_keeps_the_newest_sixteen(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char *roots[] = {folder}, text[16];
    jtn_deps deps;

    for (int i = 0; i < JTN_MANIFEST_RESULTS + 1; i++) {
        snprintf(text, sizeof text, "v%d", i);
        write_file(in_folder("a.h"), text);
        deps = one_dep(roots, "a.h");
        put_away(cache, &k1, &deps, text, NULL);
    }
    write_file(in_folder("a.h"), "v0");
    assert_string_equal(look(cache, &k1, roots, 1), "miss");
    write_file(in_folder("a.h"), "v1");
    assert_string_equal(look(cache, &k1, roots, 1), "v1");
    jtn__cache_close(cache);
}

/* ---------------------------------------------------------------- folders that cannot be used ---- */

static void check_kept_private(jtn_cache *cache)
{
    jtn_digest k1 = digest_of("k1");
    jtn_entry entry = {0};
    char path[4096];

    put(cache, &k1, NULL, "one", &entry);
    assert_non_null(entry.private_dir);
    assert_true(jtn__file_exists(entry.path));
    assert_true(jtn__view_equal(entry.payload, jtn__view("one")));
    snprintf(path, sizeof path, "%s", entry.path);
    jtn__entry_deinit(&entry);
    assert_false(jtn__file_exists(path));
    jtn__cache_close(cache);
}

static void a_folder_below_a_file_keeps_the_entry_private_and_says_so_once(void **state)
{
    write_file(in_folder("file"), "");
    check_kept_private(open_cache(in_folder("file/c"), JTN_CACHE_WRITE));
    assert_int_equal(lines_said, 1);
    check_kept_private(open_cache(in_folder("file/c"), JTN_CACHE_WRITE));
    assert_int_equal(lines_said, 1);
}

static void a_cache_that_is_off_or_only_read_keeps_the_entry_private(void **state)
{
    check_kept_private(open_cache(in_folder("c"), JTN_CACHE_OFF));
    check_kept_private(open_cache(in_folder("c"), JTN_CACHE_READ));
    assert_false(jtn__dir_exists(in_folder("c")));
}

static void a_full_or_read_only_disk_keeps_the_entry_private(void **state)
{
    jtn_cache *cache;

    jtn__dir_make(in_folder("disk"), 0700);
    if (mount("none", in_folder("disk"), "tmpfs", 0, "size=4k,mode=0700") != 0) {
        print_message("no tmpfs can be mounted here\n");
        skip();
    }
    cache = open_cache(in_folder("disk"), JTN_CACHE_WRITE);
    check_kept_private(cache);
    assert_int_equal(mount("none", in_folder("disk"), NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    check_kept_private(open_cache(in_folder("disk"), JTN_CACHE_WRITE));
    umount(in_folder("disk"));
}

static void a_folder_that_vanishes_is_made_again(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);

    put_away(cache, &k1, NULL, "one", NULL);
    jtn__dir_remove(in_folder("c/v1"));
    assert_string_equal(look(cache, &k1, NULL, 0), "miss");
    put_away(cache, &k1, NULL, "one", NULL);
    jtn__dir_remove(in_folder("c"));
    put_away(cache, &k1, NULL, "one", NULL);
    assert_string_equal(look(cache, &k1, NULL, 0), "one");
    jtn__cache_close(cache);
}

static void a_folder_others_may_write_to_is_refused(void **state)
{
    jtn_cache *cache;

    jtn__dir_make(in_folder("c"), 0700);
    chmod(in_folder("c"), 0770);
    assert_int_equal(symlink(in_folder("c"), in_folder("link")), 0);
    cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    assert_int_equal(jtn__cache_mode(cache), JTN_CACHE_OFF);
    assert_non_null(strstr(last_line, "chmod go-w"));
    jtn__cache_close(cache);
    cache = open_cache(in_folder("link"), JTN_CACHE_WRITE);
    assert_int_equal(jtn__cache_mode(cache), JTN_CACHE_OFF);
    jtn__cache_close(cache);
}

static void a_folder_of_another_user_is_refused_also_when_it_appears_later(void **state)
{
    jtn_digest k1 = digest_of("k1");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE), *late;

    if (geteuid() != 0) {
        print_message("only root can give a folder away\n");
        jtn__cache_close(cache);
        skip();
    }
    put_away(cache, &k1, NULL, "planted", NULL);
    jtn__cache_close(cache);
    late = open_cache(in_folder("d"), JTN_CACHE_READ);
    assert_int_equal(rename(in_folder("c"), in_folder("d")), 0);
    assert_int_equal(chown(in_folder("d"), 65534, 65534), 0);
    assert_string_equal(look(late, &k1, NULL, 0), "miss");
    assert_non_null(strstr(last_line, "another user"));
    jtn__cache_close(late);
}

/* ---------------------------------------------------------------- memos and folders ---- */

static void a_memo_comes_back_and_a_damaged_or_swapped_one_does_not(void **state)
{
    jtn_digest a = digest_of("a"), b = digest_of("b");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char hex_a[JTN_DIGEST_HEX], hex_b[JTN_DIGEST_HEX], at_a[4096], at_b[4096];
    bool found = false;
    jtn_buf bytes;

    jtn__buf_init(&bytes, 0);
    assert_int_equal(jtn__memo_put(cache, "kind", &a, jtn__view("memo")), JTN_OK);
    assert_int_equal(jtn__memo_put(cache, "kind", &b, jtn__view("other")), JTN_OK);
    assert_int_equal(jtn__memo_get(cache, "kind", &a, &bytes, &found), JTN_OK);
    assert_true(found);
    assert_string_equal(bytes.data, "memo");
    jtn__digest_hex(&a, hex_a);
    jtn__digest_hex(&b, hex_b);
    snprintf(at_a, sizeof at_a, "%s/c/v1/kind/%.2s/%s", folder, hex_a, hex_a);
    snprintf(at_b, sizeof at_b, "%s/c/v1/kind/%.2s/%s", folder, hex_b, hex_b);
    assert_int_equal(rename(at_b, at_a), 0);
    assert_int_equal(jtn__memo_get(cache, "kind", &a, &bytes, &found), JTN_OK);
    assert_false(found);
    write_file(at_a, "x");
    assert_int_equal(jtn__memo_get(cache, "kind", &a, &bytes, &found), JTN_OK);
    assert_false(found);
    jtn__buf_deinit(&bytes);
    jtn__cache_close(cache);
}

static jtn_status fill(void *arg, const char *place)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/file", place);
    return jtn__file_write(path, arg, strlen(arg), 0600);
}

static void the_first_to_publish_a_folder_wins(void **state)
{
    jtn_digest name = digest_of("a");
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    char *first, *second, path[4096];
    jtn_buf bytes;

    jtn__buf_init(&bytes, 0);
    assert_int_equal(jtn__folder_put(cache, "pch", &name, fill, "first", &first), JTN_OK);
    assert_int_equal(jtn__folder_put(cache, "pch", &name, fill, "second", &second), JTN_OK);
    assert_string_equal(first, second);
    snprintf(path, sizeof path, "%s/file", first);
    assert_int_equal(jtn__file_read(path, &bytes), JTN_OK);
    assert_string_equal(bytes.data, "first");
    jtn__buf_deinit(&bytes);
    jtn__free(first);
    jtn__free(second);
    jtn__cache_close(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_was_put_is_found_by_another_opener),
        CASE(going_back_to_an_earlier_header_is_a_hit),
        CASE(a_header_changed_within_its_size_and_time_is_a_miss),
        CASE(the_same_tree_elsewhere_is_a_hit),
        CASE(a_header_that_appears_where_one_was_looked_for_is_a_miss),
        CASE(a_file_changed_while_it_was_compiled_is_not_remembered),
        CASE(the_result_key_knows_contents_and_no_places),
        CASE(a_manifest_damaged_anywhere_is_a_miss_or_right),
        CASE(a_damaged_entry_is_set_aside_and_made_anew),
        CASE(a_valid_entry_under_another_keys_name_is_a_miss),
        CASE(the_manifest_keeps_the_newest_sixteen),
        CASE(a_folder_below_a_file_keeps_the_entry_private_and_says_so_once),
        CASE(a_cache_that_is_off_or_only_read_keeps_the_entry_private),
        CASE(a_full_or_read_only_disk_keeps_the_entry_private),
        CASE(a_folder_that_vanishes_is_made_again),
        CASE(a_folder_others_may_write_to_is_refused),
        CASE(a_folder_of_another_user_is_refused_also_when_it_appears_later),
        CASE(a_memo_comes_back_and_a_damaged_or_swapped_one_does_not),
        CASE(the_first_to_publish_a_folder_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
