/* support.h — a folder of its own for each test, small entries, and the clean-up. */
#ifndef TEST_CACHE_SUPPORT_H
#define TEST_CACHE_SUPPORT_H

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

#include "base/log.h"
#include "base/mem.h"
#include "cache/cache.h"

static char *folder; /* of the running test */
static int lines_said;
static char last_line[2048];

static void count_line(void *arg, int level, const char *text)
{
    lines_said++;
    snprintf(last_line, sizeof last_line, "%s", text);
}

static int make_folder(void **state)
{
    jtn__log_set(count_line, NULL, JTN_LOG_WARNING);
    lines_said = 0;
    last_line[0] = 0;
    return jtn__dir_make_unique("/tmp", "jtn-test-", &folder);
}

static int remove_folder(void **state)
{
    jtn__dir_remove(folder);
    jtn__free(folder);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

/* folder/name; valid until four more calls. */
static inline const char *in_folder(const char *name)
{
    static char paths[4][4096];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, 4096, "%s/%s", folder, name);
    return path;
}

static inline jtn_digest digest_of(const char *text)
{
    jtn_digest digest;

    jtn__digest_of(text, strlen(text), &digest);
    return digest;
}

static inline jtn_cache *open_cache(const char *dir, jtn_cache_mode mode)
{
    jtn_cache *cache = NULL;

    assert_int_equal(jtn__cache_open(dir, mode, &cache), JTN_OK);
    return cache;
}

static inline void put(jtn_cache *cache, const jtn_digest *k1, jtn_deps *deps, const char *payload, jtn_entry *out)
{
    jtn_deps none = {0};

    assert_int_equal(jtn__cache_put(cache, k1, deps ? deps : &none, "mod", jtn__view("file"), jtn__view(payload), jtn__view("story"), out),
                     JTN_OK);
}

/* Puts and closes; the place of the entry is left in path. */
static inline void put_away(jtn_cache *cache, const jtn_digest *k1, jtn_deps *deps, const char *payload, char path[4096])
{
    jtn_entry entry = {0};

    put(cache, k1, deps, payload, &entry);
    if (path)
        snprintf(path, 4096, "%s", entry.path);
    jtn__entry_deinit(&entry);
}

/* "miss", or the payload that was found. Valid until the next call. */
static inline const char *look(jtn_cache *cache, const jtn_digest *k1, char *const roots[], size_t root_count)
{
    static char payload[256];
    jtn_entry entry = {0};
    bool found = true;

    assert_int_equal(jtn__cache_get(cache, k1, roots, root_count, &entry, &found, NULL), JTN_OK);
    if (!found)
        return "miss";
    snprintf(payload, sizeof payload, "%.*s", (int)entry.payload.size, entry.payload.data);
    jtn__entry_deinit(&entry);
    return payload;
}

static inline void write_file(const char *path, const char *text)
{
    assert_int_equal(jtn__file_write(path, text, strlen(text), 0600), JTN_OK);
}

#endif
