/* cache.c — two keys to one entry.
 *
 * Looking up: the manifest of k1 lists earlier results; the first whose dependencies are as they were names k2; the entry of k2 is
 * mapped and verified. Anything damaged on the way is set aside and counts as absent. Storing: the entry first, then the manifest
 * that leads to it, each in one step, so that a reader between the two only misses. */
#include "cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cache/disk.h"
#include "cache/entry.h"
#include "cache/manifest.h"
#include "cache/private.h"

/* ---------------------------------------------------------------- looking up ---- */

/* An absent, damaged or foreign manifest gives an empty one. */
static jtn_status read_manifest(jtn_cache *cache, const jtn_digest *k1, jtn_manifest *out)
{
    char *path = jtn__disk_place(cache, "m", k1);
    jtn_map map;
    jtn_status status;

    if (!path)
        return JTN_ERROR_MEMORY;
    status = jtn__file_map(path, &map);
    if (status == JTN_OK) {
        status = jtn__manifest_decode((jtn_view){map.data, map.size}, k1, out);
        if (status == JTN_ERROR_CACHE)
            jtn__disk_set_aside(cache, path);
        jtn__file_unmap(&map);
    }
    jtn__free(path);
    return status == JTN_ERROR_MEMORY ? status : JTN_OK;
}

/* The first dependency that is not as it was, for the log. */
static void say_why(const jtn_result *result, char *const roots[], size_t root_count, jtn_buf *why)
{
    if (!why || why->size)
        return;
    for (size_t i = 0; i < result->deps.count; i++) {
        jtn_deps one = {.items = &result->deps.items[i], .count = 1, .capacity = 1};

        if (!jtn__deps_fresh(&one, roots, root_count, true)) {
            jtn__buf_printf(why, "%s %s", one.items->path, one.items->absent ? "is there now" : "has changed");
            return;
        }
    }
}

static jtn_status open_result(jtn_cache *cache, const jtn_result *result, jtn_entry *out)
{
    char *folder = jtn__disk_place(cache, "e", &result->k2);
    char *path = folder ? jtn__format("%s/%s.so", folder, result->name) : NULL;
    jtn_status status = path ? jtn__entry_open(path, out) : JTN_ERROR_MEMORY;

    if (status == JTN_OK && !jtn__digest_equal(&out->k2, &result->k2)) {
        jtn__entry_deinit(out);
        status = jtn__fail(JTN_ERROR_CACHE, "\"%s\" is another key's entry", path);
    }
    if (status == JTN_ERROR_CACHE)
        jtn__disk_set_aside(cache, folder);
    jtn__free(path);
    jtn__free(folder);
    return status;
}

jtn_status jtn__cache_get(jtn_cache *cache, const jtn_digest *k1, char *const roots[], size_t root_count,
                          jtn_entry *out, bool *found, jtn_buf *why)
{
    jtn_manifest manifest = {0};
    jtn_status status = JTN_OK;

    *found = false;
    if (!jtn__disk_trusted(cache))
        return JTN_OK;
    JTN_TRY(read_manifest(cache, k1, &manifest));
    if (!manifest.count && why)
        jtn__buf_puts(why, "these sources, options and compilers are new here");
    for (size_t i = 0; i < manifest.count && !*found && status != JTN_ERROR_MEMORY; i++) {
        jtn_result *result = &manifest.results[i];

        if (!jtn__deps_fresh(&result->deps, roots, root_count, true)) {
            say_why(result, roots, root_count, why);
            continue;
        }
        status = open_result(cache, result, out);
        if (status != JTN_OK && why && !why->size)
            jtn__buf_puts(why, jtn__error_message());
        if (status == JTN_OK) {
            out->deps = result->deps;
            result->deps = (jtn_deps){0};
            *found = true;
        }
    }
    jtn__manifest_deinit(&manifest);
    return status == JTN_ERROR_MEMORY ? status : JTN_OK;
}

/* ---------------------------------------------------------------- storing ---- */

/* Renames a filled staging folder into place. An entry that is there already wins if it is good. */
static jtn_status publish(jtn_cache *cache, const char *staging, const char *folder, const char *name,
                          const jtn_digest *k2)
{
    char *parent = jtn__path_dir(folder);
    char *path = jtn__format("%s/%s.so", folder, name);
    jtn_status status = parent && path ? jtn__dir_make(parent, 0700) : JTN_ERROR_MEMORY;

    for (int tries = 0; status == JTN_OK && rename(staging, folder) != 0; tries++) {
        jtn_entry entry = {0};

        if (tries == 3 || (errno != ENOTEMPTY && errno != EEXIST)) {
            status = jtn__fail(JTN_ERROR_CACHE, "cannot put \"%s\" in place: %s", folder, strerror(errno));
        } else if (jtn__entry_open(path, &entry) == JTN_OK && jtn__digest_equal(&entry.k2, k2)) {
            jtn__entry_deinit(&entry);
            break;
        } else {
            jtn__entry_deinit(&entry);
            jtn__disk_set_aside(cache, folder);
        }
    }
    jtn__free(parent);
    jtn__free(path);
    return status;
}

/* The new name is in e/<2>, and e/<2> itself may be new in e. */
static void sync_parents(const char *folder)
{
    char *path = jtn__strdup(folder);

    for (int i = 0; path && i < 2; i++) {
        char *parent = jtn__path_dir(path);
        int fd = parent ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        if (fd >= 0) {
            (void)!fsync(fd);
            close(fd);
        }
        jtn__free(path);
        path = parent;
    }
    jtn__free(path);
}

/* The entry in its place on disk, opened. */
static jtn_status store_entry(jtn_cache *cache, const jtn_digest *k2, const char *name, jtn_view bytes, jtn_entry *out)
{
    char *folder = jtn__disk_place(cache, "e", k2);
    char *final = folder ? jtn__format("%s/%s.so", folder, name) : NULL;
    char *staging = NULL, *path = NULL;
    jtn_status status = final ? jtn__cache_staging(cache, &staging) : JTN_ERROR_MEMORY;

    if (status == JTN_OK)
        status = (path = jtn__format("%s/%s.so", staging, name)) ? JTN_OK : JTN_ERROR_MEMORY;
    if (status == JTN_OK)
        status = jtn__file_publish(path, bytes.data, bytes.size, 0700);
    if (status == JTN_OK)
        status = publish(cache, staging, folder, name, k2);
    if (status == JTN_OK) {
        sync_parents(folder);
        status = jtn__entry_open(final, out);
    }
    if (staging)
        jtn__dir_remove(staging);
    jtn__free(staging);
    jtn__free(path);
    jtn__free(final);
    jtn__free(folder);
    return status;
}

/* Leads k1 to the entry. Lost updates between two writers cost a rebuild, nothing else. */
static jtn_status store_result(jtn_cache *cache, const jtn_digest *k1, jtn_result *result)
{
    char *path = jtn__disk_place(cache, "m", k1);
    char *parent = path ? jtn__path_dir(path) : NULL;
    jtn_manifest manifest = {0};
    jtn_buf bytes;
    jtn_status status = parent ? jtn__dir_make(parent, 0700) : JTN_ERROR_MEMORY;

    jtn__buf_init(&bytes, 0);
    if (status == JTN_OK)
        status = read_manifest(cache, k1, &manifest);
    if (status == JTN_OK)
        status = jtn__manifest_put(&manifest, result);
    if (status == JTN_OK)
        status = jtn__manifest_encode(k1, &manifest, &bytes);
    if (status == JTN_OK)
        status = jtn__file_publish(path, bytes.data, bytes.size, 0600);
    jtn__buf_deinit(&bytes);
    jtn__manifest_deinit(&manifest);
    jtn__free(parent);
    jtn__free(path);
    return status;
}

/* An entry that lives as long as it is open, because it cannot be stored. */
static jtn_status keep_private(const char *name, jtn_view bytes, jtn_entry *out)
{
    char *folder = NULL, *path = NULL;
    jtn_status status;

    JTN_TRY(jtn__private_dir_make(&folder));
    status = (path = jtn__format("%s/%s.so", folder, name)) ? JTN_OK : JTN_ERROR_MEMORY;
    if (status == JTN_OK)
        status = jtn__file_write(path, bytes.data, bytes.size, 0700);
    if (status == JTN_OK)
        status = jtn__entry_open(path, out);
    if (status == JTN_OK) {
        out->private_dir = folder;
        folder = NULL;
    } else {
        jtn__private_dir_remove(folder);
    }
    jtn__free(folder);
    jtn__free(path);
    return status;
}

static jtn_status copy_deps(const jtn_deps *from, jtn_deps *to)
{
    if (!(to->items = jtn__alloc((from->count + 1) * sizeof *to->items)))
        return JTN_ERROR_MEMORY;
    to->capacity = from->count + 1;
    for (size_t i = 0; i < from->count; i++) {
        to->items[i] = from->items[i];
        if (!(to->items[i].path = jtn__strdup(from->items[i].path)))
            return JTN_ERROR_MEMORY;
        to->count++;
    }
    return JTN_OK;
}

static jtn_status store(jtn_cache *cache, const jtn_digest *k1, const jtn_digest *k2, const jtn_deps *deps,
                        const char *name, jtn_view bytes, jtn_entry *out)
{
    jtn_result result = {.k2 = *k2};
    jtn_entry entry = {0};
    jtn_status status;

    JTN_TRY(jtn__disk_prepare(cache));
    JTN_GO(store_entry(cache, k2, name, bytes, &entry));
    status = (result.name = jtn__strdup(name)) ? copy_deps(deps, &result.deps) : JTN_ERROR_MEMORY;
    if (status == JTN_OK)
        status = store_result(cache, k1, &result);
    if (status == JTN_OK) {
        *out = entry;
        entry = (jtn_entry){0};
    }
out:
    jtn__result_deinit(&result);
    jtn__entry_deinit(&entry);
    if (status != JTN_OK)
        jtn__disk_complain(cache);
    return status;
}

jtn_status jtn__cache_put(jtn_cache *cache, const jtn_digest *k1, jtn_deps *deps, const char *name, jtn_view file_bytes,
                          jtn_view payload, jtn_view material, jtn_entry *out)
{
    jtn_entry entry = {0};
    jtn_digest k2;
    jtn_buf bytes;
    jtn_view all;
    jtn_status status;

    jtn__buf_init(&bytes, 0);
    jtn__deps_key(k1, deps, &k2);
    if (deps->unsettled)
        jtn__log(JTN_LOG_INFO, "jitney: %s: a file changed while it was compiled: this result is not remembered", name);
    JTN_GO(jtn__entry_encode(file_bytes, payload, material, &k2, &bytes));
    all = (jtn_view){bytes.data, bytes.size};
    if (cache->mode != JTN_CACHE_WRITE || deps->unsettled || store(cache, k1, &k2, deps, name, all, &entry) != JTN_OK)
        JTN_GO(keep_private(name, all, &entry));
    entry.deps = *deps;
    *deps = (jtn_deps){0};
    *out = entry;
out:
    jtn__buf_deinit(&bytes);
    jtn__deps_deinit(deps);
    return status;
}
