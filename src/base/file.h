/* file.h — files as values: read whole, map, identify, publish atomically, own folders, lock while alive. */
#ifndef JTN_BASE_FILE_H
#define JTN_BASE_FILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/hash.h"

/* Tells one state of one file from another without reading it. All zero: unknown, never equal to a real one. */
typedef struct jtn_file_id {
    uint64_t device, inode, size;
    int64_t mtime_ns, ctime_ns;
} jtn_file_id;

jtn_status jtn__file_id(const char *path, jtn_file_id *out); /* follows links; NOT_FOUND, IO */
bool jtn__file_id_equal(const jtn_file_id *a, const jtn_file_id *b);
/* True when the file changed so lately (against now) that another change could go unseen by its id. */
bool jtn__file_id_racy(const jtn_file_id *id);

bool jtn__file_exists(const char *path); /* a regular file, readable */
bool jtn__dir_exists(const char *path);
jtn_status jtn__file_read(const char *path, jtn_buf *out); /* appends; NOT_FOUND, IO, MEMORY */
jtn_status jtn__file_digest(const char *path, jtn_digest *out);

typedef struct jtn_map {
    const char *data; /* read-only, private */
    size_t size;
} jtn_map;
jtn_status jtn__file_map(const char *path, jtn_map *out);
void jtn__file_unmap(jtn_map *map);

/* Writes through a private temporary file in the same folder, fsync, rename: a reader sees the old or the new, whole. */
jtn_status jtn__file_publish(const char *path, const void *bytes, size_t size, unsigned mode);
jtn_status jtn__file_write(const char *path, const void *bytes, size_t size, unsigned mode); /* plain, for private folders */

jtn_status jtn__dir_make(const char *path, unsigned mode); /* with parents; existing is fine */
jtn_status jtn__dir_remove(const char *path);              /* with its contents; absent is fine */
/* A new private 0700 folder "<parent>/<prefix><unique>". */
jtn_status jtn__dir_make_unique(const char *parent, const char *prefix, char **out);

/* Paths. All return fresh memory, or NULL out of memory. */
char *jtn__path_join(const char *folder, const char *name); /* an absolute name wins */
char *jtn__path_dir(const char *path);                      /* "." when there is none */
const char *jtn__path_base(const char *path);               /* points into path */
char *jtn__path_absolute(const char *path);                 /* lexical: folds . and .., keeps links */
char *jtn__path_relative(const char *path, const char *base); /* both absolute; NULL when path is not below base */

/* A lock the kernel releases when its holder dies. Correctness never depends on one: held=false (refused, unsupported,
 * timed out) means go on without. */
typedef struct jtn_lock {
    int fd; /* -1: not held */
} jtn_lock;
/* Waits up to wait_ms for the lock on path (made if absent). waiting, when not NULL, is called once after 2 s. */
void jtn__lock_take(const char *path, int wait_ms, void (*waiting)(void *arg, const char *holder), void *arg, jtn_lock *out);
void jtn__lock_drop(jtn_lock *lock);

#endif
