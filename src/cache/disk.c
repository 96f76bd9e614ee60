/* disk.c — the cache's folder.
 *
 *     <dir>/CACHEDIR.TAG                     backup programs leave it out
 *     <dir>/v1/e/<2>/<k2>/<name>.so          entries: one folder a key, published whole by rename
 *     <dir>/v1/m/<2>/<k1>                    manifests, atomically replaced
 *     <dir>/v1/<kind>/<2>/<hex>              memos (files) and precompiled headers (folders)
 *     <dir>/v1/lock/<k1>                     locks; empty but for the holder's name
 *     <dir>/v1/tmp/<unique>                  staging, private to one writer
 *     <dir>/v1/bad/<unique>                  what was found damaged
 *
 * Invariants. (1) What has its final name is whole: it was written and synced under tmp/ and renamed. (2) Nothing under its final name
 * is ever written to again; it is only replaced or removed. (3) Whoever can write here can run code as us, so nobody but us may: the
 * folder is ours and 0700, or it is not used. (4) Reading needs no lock and never waits.
 *
 * States of an entry: staged (tmp/) → published (e/; cache.c, publish) → set aside (bad/; jtn__disk_set_aside) → gone. */
#include "cache/disk.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cache/private.h"

/* Staging older than this was left by a writer that died; no build takes a day. What is bad is kept as long, to be looked at. */
#define STALE_S (24 * 3600)

static const char tag[] = "Signature: 8a477f597d28d172789f06886806bc55\n"
                          "# A cache of compiled code. It can be deleted at any time.\n";

/* ---------------------------------------------------------------- may it be used? ---- */

/* The reason why not, or NULL. A folder that is not there is fine: it will be made by us, for us. */
static const char *refusal(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno == ENOENT || errno == ENOTDIR ? NULL : strerror(errno);
    if (!S_ISDIR(st.st_mode))
        return "it is no folder";
    if (st.st_uid != geteuid())
        return "it belongs to another user, who could put code into it";
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return "other users may write to it, and could put code into it; chmod go-w it";
    return NULL;
}

static bool check(const char *path, const char *key)
{
    const char *reason = refusal(path);

    if (reason)
        jtn__log_once(key,
                      "jitney: the cache folder \"%s\" is not used: %s. Set JITNEY_CACHE_DIR to a folder of your own",
                      path, reason);
    return !reason;
}

static bool check_all(const char *dir)
{
    char *inner = jtn__path_join(dir, "v1");
    bool fine = inner && check(dir, dir) && check(inner, dir);

    jtn__free(inner);
    return fine;
}

jtn_status jtn__cache_open(const char *dir, jtn_cache_mode mode, jtn_cache **out)
{
    jtn_cache *cache = jtn__alloc(sizeof *cache);

    if (!cache || !(cache->dir = jtn__strdup(dir))) {
        jtn__free(cache);
        return JTN_ERROR_MEMORY;
    }
    cache->mode = mode != JTN_CACHE_OFF && !check_all(dir) ? JTN_CACHE_OFF : mode;
    *out = cache;
    return JTN_OK;
}

bool jtn__disk_trusted(jtn_cache *cache)
{
    if (cache->mode == JTN_CACHE_OFF)
        return false;
    if (__atomic_load_n(&cache->trusted, __ATOMIC_ACQUIRE))
        return true;
    if (!jtn__dir_exists(cache->dir) || !check_all(cache->dir))
        return false;
    __atomic_store_n(&cache->trusted, 1, __ATOMIC_RELEASE);
    return true;
}

void jtn__cache_close(jtn_cache *cache)
{
    if (!cache)
        return;
    jtn__free(cache->dir);
    jtn__free(cache);
}

const char *jtn__cache_dir(const jtn_cache *cache)
{
    return cache->dir;
}

jtn_cache_mode jtn__cache_mode(const jtn_cache *cache)
{
    return cache->mode;
}

/* ---------------------------------------------------------------- places ---- */

char *jtn__disk_place(const jtn_cache *cache, const char *kind, const jtn_digest *name)
{
    char hex[JTN_DIGEST_HEX];

    jtn__digest_hex(name, hex);
    return jtn__format("%s/v1/%s/%.2s/%s", cache->dir, kind, hex, hex);
}

/* ---------------------------------------------------------------- writing ---- */

void jtn__disk_complain(const jtn_cache *cache)
{
    jtn__log_once("cannot store", "jitney: nothing is stored in the cache \"%s\": %s", cache->dir,
                  jtn__error_message());
}

/* Removes what is older than a day: staging that its writer left behind, locks long unused, what was set aside. */
static void reap(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    time_t now = time(NULL);

    while (dir && (entry = readdir(dir))) {
        char path[4096];
        struct stat st;

        if (entry->d_name[0] == '.' || snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        if (lstat(path, &st) == 0 && st.st_mtime < now - STALE_S) {
            if (S_ISDIR(st.st_mode))
                jtn__dir_remove(path);
            else
                unlink(path);
        }
    }
    if (dir)
        closedir(dir);
}

static jtn_status make_folders(jtn_cache *cache)
{
    static const char *const folders[] = {"v1/e", "v1/m", "v1/lock", "v1/tmp", "v1/bad"};
    enum { FIRST_REAPED = 2 };
    char path[4096];
    bool fits = true;

    JTN_TRY(jtn__dir_make(cache->dir, 0700));
    for (size_t i = 0; i < sizeof folders / sizeof *folders && fits; i++) {
        fits = snprintf(path, sizeof path, "%s/%s", cache->dir, folders[i]) < (int)sizeof path;
        if (fits)
            JTN_TRY(jtn__dir_make(path, 0700));
        if (fits && i >= FIRST_REAPED && !__atomic_load_n(&cache->reaped, __ATOMIC_ACQUIRE))
            reap(path);
    }
    if (!fits)
        return jtn__fail(JTN_ERROR_CACHE, "the path \"%.100s…\" is too long", cache->dir);
    snprintf(path, sizeof path, "%s/CACHEDIR.TAG", cache->dir);
    if (!jtn__file_exists(path))
        jtn__file_write(path, tag, sizeof tag - 1, 0600);
    return JTN_OK;
}

jtn_status jtn__disk_prepare(jtn_cache *cache)
{
    jtn_status status;

    if (cache->mode != JTN_CACHE_WRITE)
        return jtn__fail(JTN_ERROR_CACHE, "the cache is %s", cache->mode == JTN_CACHE_READ ? "read-only" : "off");
    status = make_folders(cache);
    if (status == JTN_OK && !check_all(cache->dir))
        status = jtn__fail(JTN_ERROR_CACHE, "the folder is not used, as was said");
    if (status == JTN_OK)
        __atomic_store_n(&cache->reaped, 1, __ATOMIC_RELEASE);
    else
        jtn__disk_complain(cache);
    return status;
}

void jtn__disk_set_aside(jtn_cache *cache, const char *path)
{
    char *bad, *folder;

    if (cache->mode != JTN_CACHE_WRITE)
        return;
    jtn__log(JTN_LOG_WARNING, "jitney: %s; it is set aside and made anew", jtn__error_message());
    folder = jtn__path_join(cache->dir, "v1/bad");
    if (folder && jtn__dir_make_unique(folder, "", &bad) == JTN_OK) {
        char *target = jtn__path_join(bad, "was");

        if (!target || rename(path, target) != 0)
            rmdir(bad);
        jtn__free(target);
        jtn__free(bad);
    }
    jtn__free(folder);
}

jtn_status jtn__cache_staging(jtn_cache *cache, char **path)
{
    char *parent;
    jtn_status status;

    if (cache->mode == JTN_CACHE_WRITE && jtn__disk_prepare(cache) == JTN_OK) {
        if (!(parent = jtn__path_join(cache->dir, "v1/tmp")))
            return JTN_ERROR_MEMORY;
        status = jtn__dir_make_unique(parent, "", path);
        jtn__free(parent);
        if (status == JTN_OK)
            return status;
        jtn__disk_complain(cache);
    }
    return jtn__private_dir_make(path);
}
