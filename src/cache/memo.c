/* memo.c — small things remembered beside the entries: compilers' identities (files), precompiled headers (folders). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cache/cache.h"
#include "cache/disk.h"

/* memo = bytes name checksum: a memo under another's name counts as damaged. */
#define TAIL_SIZE (sizeof(jtn_digest) + sizeof(jtn_checksum))

static bool is_whole(const jtn_map *map, const jtn_digest *name)
{
    jtn_checksum checksum;
    const char *tail = map->data + map->size - TAIL_SIZE;

    if (map->size < TAIL_SIZE || memcmp(tail, name->bytes, sizeof name->bytes) != 0)
        return false;
    jtn__checksum_of(map->data, map->size - sizeof checksum, &checksum);
    return memcmp(checksum.bytes, tail + sizeof *name, sizeof checksum.bytes) == 0;
}

jtn_status jtn__memo_get(jtn_cache *cache, const char *kind, const jtn_digest *name, jtn_buf *out, bool *found)
{
    char *path;
    jtn_map map;
    jtn_status status;

    *found = false;
    if (!jtn__disk_trusted(cache))
        return JTN_OK;
    if (!(path = jtn__disk_place(cache, kind, name)))
        return JTN_ERROR_MEMORY;
    status = jtn__file_map(path, &map);
    jtn__free(path);
    if (status != JTN_OK)
        return JTN_OK;
    *found = is_whole(&map, name);
    if (*found)
        status = jtn__buf_put(out, map.data, map.size - TAIL_SIZE);
    jtn__file_unmap(&map);
    return status;
}

jtn_status jtn__memo_put(jtn_cache *cache, const char *kind, const jtn_digest *name, jtn_view bytes)
{
    char *path, *parent;
    jtn_checksum checksum = {0};
    jtn_buf whole;
    jtn_status status;

    JTN_TRY(jtn__disk_prepare(cache));
    path = jtn__disk_place(cache, kind, name);
    parent = path ? jtn__path_dir(path) : NULL;
    status = parent ? jtn__dir_make(parent, 0700) : JTN_ERROR_MEMORY;
    jtn__buf_init(&whole, 0);
    jtn__buf_put(&whole, bytes.data, bytes.size);
    jtn__buf_put(&whole, name->bytes, sizeof name->bytes);
    if (whole.failed == JTN_OK)
        jtn__checksum_of(whole.data, whole.size, &checksum);
    jtn__buf_put(&whole, checksum.bytes, sizeof checksum.bytes);
    if (status == JTN_OK)
        status = whole.failed;
    if (status == JTN_OK)
        status = jtn__file_publish(path, whole.data, whole.size, 0600);
    jtn__buf_deinit(&whole);
    jtn__free(parent);
    jtn__free(path);
    return status;
}

jtn_status jtn__folder_get(jtn_cache *cache, const char *kind, const jtn_digest *name, char **path, bool *found)
{
    char *place;

    *found = false;
    if (!jtn__disk_trusted(cache))
        return JTN_OK;
    if (!(place = jtn__disk_place(cache, kind, name)))
        return JTN_ERROR_MEMORY;
    *found = jtn__dir_exists(place);
    if (*found)
        *path = place;
    else
        jtn__free(place);
    return JTN_OK;
}

/* Before the rename: a power cut must not leave a torn file under a final name, where a compiler would trip over it for ever. */
static void sync_files(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

        if (fd >= 0) {
            (void)!fsync(fd);
            close(fd);
        }
    }
    if (dir)
        closedir(dir);
}

jtn_status jtn__folder_put(jtn_cache *cache, const char *kind, const jtn_digest *name,
                           jtn_status (*fill)(void *arg, const char *folder), void *arg, char **path)
{
    char *staging = NULL, *place = NULL, *parent = NULL;
    jtn_status status;

    JTN_TRY(jtn__disk_prepare(cache));
    JTN_TRY(jtn__cache_staging(cache, &staging));
    JTN_GO(fill(arg, staging));
    sync_files(staging);
    place = jtn__disk_place(cache, kind, name);
    parent = place ? jtn__path_dir(place) : NULL;
    JTN_GO(parent ? jtn__dir_make(parent, 0700) : JTN_ERROR_MEMORY);
    if (rename(staging, place) != 0 && errno != ENOTEMPTY && errno != EEXIST)
        status = jtn__fail(JTN_ERROR_CACHE, "cannot put \"%s\" in place: %s", place, strerror(errno));
    if (status == JTN_OK) {
        *path = place;
        place = NULL;
    }
out:
    if (staging)
        jtn__dir_remove(staging); /* gone already when it was renamed */
    jtn__free(staging);
    jtn__free(place);
    jtn__free(parent);
    return status;
}
