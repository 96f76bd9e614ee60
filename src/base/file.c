/* file.c — files as values: read whole, map, identify, publish atomically.
 *
 * Publishing: a private temporary file in the same folder, fsync, rename, fsync of the folder. A reader sees the old file or
 * the new one, whole; a crash leaves at most a temporary file. Paths are in path.c, locks in lock.c. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

/* File systems stamp times in steps of up to a jiffy, some network ones of a second: a file changed this recently may change
 * again without its stamp showing it. */
#define RACY_NS 2000000000LL

static jtn_status fail_errno(const char *what, const char *path)
{
    int error = errno;

    return jtn__fail(error == ENOENT || error == ENOTDIR ? JTN_ERROR_NOT_FOUND : JTN_ERROR_IO, "%s \"%s\": %s", what,
                     path, strerror(error));
}

/* ---------------------------------------------------------------- identity ---- */

static int64_t to_ns(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000LL + t.tv_nsec;
}

jtn_status jtn__file_id(const char *path, jtn_file_id *out)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return fail_errno("cannot look at", path);
    *out = (jtn_file_id){st.st_dev, st.st_ino, (uint64_t)st.st_size, to_ns(st.st_mtim), to_ns(st.st_ctim)};
    return JTN_OK;
}

bool jtn__file_id_equal(const jtn_file_id *a, const jtn_file_id *b)
{
    return a->inode != 0 && a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

bool jtn__file_id_racy(const jtn_file_id *id)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return id->mtime_ns > to_ns(t) - RACY_NS || id->ctime_ns > to_ns(t) - RACY_NS;
}

bool jtn__file_exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

bool jtn__dir_exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---------------------------------------------------------------- reading ---- */

/* more: O_NONBLOCK where only regular files will do, so that a pipe of that name cannot hold us up. */
static int open_for_reading(const char *path, int more)
{
    int fd;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | more);
    while (fd < 0 && errno == EINTR);
    return fd;
}

jtn_status jtn__file_read(const char *path, jtn_buf *out)
{
    char block[65536];
    struct stat st;
    jtn_status status = JTN_OK;
    int fd = open_for_reading(path, 0);

    if (fd < 0)
        return fail_errno("cannot open", path);
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return jtn__fail(JTN_ERROR_IO, "cannot read \"%s\": it is a folder", path);
    }
    for (;;) {
        ssize_t size = read(fd, block, sizeof block);

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0)
            status = fail_errno("cannot read", path);
        else if (size > 0 || !out->data)
            status = jtn__buf_put(out, block, (size_t)size);
        if (size <= 0 || status != JTN_OK)
            break;
    }
    close(fd);
    return status;
}

/* Read, not mapped: these are other people's files, and one that is cut short while it is mapped kills the process. */
jtn_status jtn__file_digest(const char *path, jtn_digest *out)
{
    char block[65536];
    struct stat st;
    jtn_hash hash;
    ssize_t size = -1;
    jtn_status status = JTN_OK;
    int fd = open_for_reading(path, O_NONBLOCK);

    if (fd < 0)
        return fail_errno("cannot open", path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return jtn__fail(JTN_ERROR_IO, "cannot read \"%s\": it is no regular file", path);
    }
    jtn__hash_init(&hash, NULL);
    while ((size = read(fd, block, sizeof block)) > 0 || (size < 0 && errno == EINTR))
        if (size > 0)
            jtn__hash_raw(&hash, block, (size_t)size);
    if (size < 0)
        status = fail_errno("cannot read", path);
    else
        jtn__hash_final(&hash, out);
    close(fd);
    return status;
}

jtn_status jtn__file_map(const char *path, jtn_map *out)
{
    struct stat st;
    void *data;
    int fd = open_for_reading(path, O_NONBLOCK);

    if (fd < 0)
        return fail_errno("cannot open", path);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return jtn__fail(JTN_ERROR_IO, "cannot map \"%s\": it is no regular file", path);
    }
    if (st.st_size == 0) {
        close(fd);
        *out = (jtn_map){"", 0};
        return JTN_OK;
    }
    data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED)
        return fail_errno("cannot map", path);
    *out = (jtn_map){data, (size_t)st.st_size};
    return JTN_OK;
}

void jtn__file_unmap(jtn_map *map)
{
    if (map->size)
        munmap((void *)(uintptr_t)map->data, map->size);
    *map = (jtn_map){0};
}

/* ---------------------------------------------------------------- writing ---- */

static jtn_status write_all(int fd, const char *path, const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(fd, bytes, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return fail_errno("cannot write", path);
        bytes += written;
        size -= (size_t)written;
    }
    return JTN_OK;
}

static jtn_status write_new(const char *path, const void *bytes, size_t size, unsigned mode, int flags, bool sync)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode);
    jtn_status status;

    if (fd < 0)
        return fail_errno("cannot create", path);
    status = write_all(fd, path, bytes, size);
    if (status == JTN_OK && sync && fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        status = fail_errno("cannot save", path);
    if (close(fd) != 0 && status == JTN_OK)
        status = fail_errno("cannot save", path);
    return status;
}

jtn_status jtn__file_write(const char *path, const void *bytes, size_t size, unsigned mode)
{
    return write_new(path, bytes, size, mode, O_TRUNC, false);
}

/* Unique among processes, threads, hosts on one network file system, and time. */
static void random_name(char out[25])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[12] = {0};

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
        struct timespec t;
        uint64_t mix;

        clock_gettime(CLOCK_MONOTONIC, &t);
        mix = (uint64_t)t.tv_nsec * 2654435761u ^ (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)out;
        memcpy(bytes, &mix, sizeof mix);
    }
    for (size_t i = 0; i < sizeof bytes; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[24] = 0;
}

/* After a rename: without this a power cut may forget the new name. Best effort: not every file system can. */
static void sync_dir_of(const char *path)
{
    char *dir = jtn__path_dir(path);
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
    jtn__free(dir);
}

jtn_status jtn__file_publish(const char *path, const void *bytes, size_t size, unsigned mode)
{
    char unique[25];
    char *temporary;
    jtn_status status;

    random_name(unique);
    temporary = jtn__format("%s.%s.tmp", path, unique);
    if (!temporary)
        return JTN_ERROR_MEMORY;
    status = write_new(temporary, bytes, size, mode, O_EXCL, true);
    if (status == JTN_OK && rename(temporary, path) != 0)
        status = fail_errno("cannot put in place", path);
    if (status == JTN_OK)
        sync_dir_of(path);
    else
        unlink(temporary);
    jtn__free(temporary);
    return status;
}

/* ---------------------------------------------------------------- folders ---- */

jtn_status jtn__dir_make(const char *path, unsigned mode)
{
    char *copy = jtn__strdup(path);
    jtn_status status = JTN_OK;

    if (!copy)
        return JTN_ERROR_MEMORY;
    for (char *at = copy + 1; status == JTN_OK; at++) {
        char kept = *at;

        if (kept != '/' && kept)
            continue;
        *at = 0;
        if (mkdir(copy, mode) != 0 && errno != EEXIST && !jtn__dir_exists(copy))
            status = fail_errno("cannot make the folder", copy);
        *at = kept;
        if (!kept)
            break;
    }
    if (status == JTN_OK && !jtn__dir_exists(path))
        status = jtn__fail(JTN_ERROR_IO, "\"%s\" is no folder", path);
    jtn__free(copy);
    return status;
}

/* Removes by descriptors, so that nobody can swap a folder for a link under our feet. */
static void empty_dir(int fd)
{
    DIR *dir = fdopendir(fd); /* takes fd */
    struct dirent *entry;

    if (!dir) {
        close(fd);
        return;
    }
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(dirfd(dir), entry->d_name, 0) != 0) {
            int child = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

            if (child >= 0)
                empty_dir(child);
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
        }
    }
    closedir(dir);
}

jtn_status jtn__dir_remove(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? JTN_OK : fail_errno("cannot remove", path);
    empty_dir(fd);
    if (rmdir(path) != 0 && errno != ENOENT)
        return fail_errno("cannot remove", path);
    return JTN_OK;
}

jtn_status jtn__dir_make_unique(const char *parent, const char *prefix, char **out)
{
    for (int tries = 0; tries < 16; tries++) {
        char unique[25];
        char *path;

        random_name(unique);
        path = jtn__format("%s/%s%s", parent, prefix, unique);
        if (!path)
            return JTN_ERROR_MEMORY;
        if (mkdir(path, 0700) == 0) {
            *out = path;
            return JTN_OK;
        }
        if (errno != EEXIST) {
            jtn_status status = fail_errno("cannot make the folder", path);

            jtn__free(path);
            return status;
        }
        jtn__free(path);
    }
    return jtn__fail(JTN_ERROR_IO, "no unused name for a folder in \"%s\"", parent);
}
