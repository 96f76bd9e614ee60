/* cache.h — key → bytes, remembered on disk. Knows no compiler.
 *
 * Two stages. A first key k1 (what the caller said, which compilers) finds a *manifest*: for each earlier result, the files
 * it depended on (place, content digest, and what stat said) and the key k2 of the result. k2 finds an *entry*: one
 * self-describing file. A lookup takes no lock, starts no process and writes nothing.
 *
 * Failures of the cache are never failures of a load: a lookup that cannot be made is a miss, a store that cannot be made
 * is said once through the log. */
#ifndef JTN_CACHE_CACHE_H
#define JTN_CACHE_CACHE_H

#include <stdbool.h>

#include "base/file.h"
#include "base/hash.h"

typedef struct jtn_cache jtn_cache;

typedef enum { JTN_CACHE_OFF, JTN_CACHE_READ, JTN_CACHE_WRITE } jtn_cache_mode;

/* dir: absolute. Creates nothing until the first store; checks ownership and mode when the folder is there (a folder that
 * others may write to, or that is another user's, is refused: said once, then the cache is off). */
jtn_status jtn__cache_open(const char *dir, jtn_cache_mode mode, jtn_cache **out);
void jtn__cache_close(jtn_cache *cache);
const char *jtn__cache_dir(const jtn_cache *cache);
jtn_cache_mode jtn__cache_mode(const jtn_cache *cache); /* OFF when the folder was refused */

/* One file a result depended on. Where it lies is said relative to a root that the next build may have elsewhere:
 * roots[root] is that build's folder number `root`; JTN_ROOT_ABSOLUTE: path is absolute. absent: the file was looked for
 * there and was not there, and must still not be. */
#define JTN_ROOT_ABSOLUTE 0xffffffffu
typedef struct jtn_dep {
    uint32_t root;
    char *path; /* owned */
    bool absent;
    bool system; /* belongs to a toolchain: checked between processes, not within one */
    jtn_digest digest;
    jtn_file_id id; /* zero when racy: forces a content check */
} jtn_dep;

typedef struct jtn_deps {
    jtn_dep *items;
    size_t count, capacity;
    /* When the build began (jtn__deps_now); 0: not said. A file added without its content that changed after that may have been
     * read before or after the change: the deps are unsettled, and such a result is used but not remembered. */
    int64_t since_ns;
    bool unsettled;
} jtn_deps;

int64_t jtn__deps_now(void); /* for since_ns */

/* Reads and digests root/path now. content: NULL, or the bytes that were really used (then their digest counts and a
 * file that differs by now is left unidentified). */
jtn_status jtn__deps_add(jtn_deps *deps, char *const roots[], uint32_t root, const char *path, const jtn_view *content, bool system);
jtn_status jtn__deps_add_absent(jtn_deps *deps, uint32_t root, const char *path);
void jtn__deps_deinit(jtn_deps *deps);
/* 1 when every dep is as recorded (stats, and contents where stats differ); system ones only when with_system. */
int jtn__deps_fresh(const jtn_deps *deps, char *const roots[], size_t root_count, bool with_system);
/* k2 from k1 and the contents (not the places' absolute paths, not the stats). */
void jtn__deps_key(const jtn_digest *k1, const jtn_deps *deps, jtn_digest *k2);

/* A found or stored entry. file is "<dir>/…/<name>.so", valid and checked; payload is the artifact's trailer in the map. */
typedef struct jtn_entry {
    char *path;       /* of the entry's file, absolute; NULL when it lives in memory only */
    jtn_map map;      /* the whole file */
    jtn_view payload; /* into map */
    jtn_view material; /* the key's story, into map */
    jtn_deps deps;    /* what it was checked against */
    jtn_digest k2;
    char *private_dir; /* of an entry that could not be stored: removed with it; else NULL */
} jtn_entry;
void jtn__entry_deinit(jtn_entry *entry);

/* Opens any entry file by path, wherever it lies: checks magic, format, checksum. CACHE when damaged or not ours. */
jtn_status jtn__entry_open(const char *path, jtn_entry *out);

/* found=false is a miss, whatever the reason; why (may be NULL) says which input changed, for the log. A corrupt entry is
 * set aside and is a miss. */
jtn_status jtn__cache_get(jtn_cache *cache, const jtn_digest *k1, char *const roots[], size_t root_count, jtn_entry *out,
                          bool *found, jtn_buf *why);

/* Stores: file_bytes (an ELF file, or anything) + payload + footer become "<dir>/…/<name>.so" in one step. material: the
 * key's story, kept in the entry. On success out is the stored entry as a get would find it (or the winner's, when another
 * process stored first). When storing is impossible the entry is kept in a private temporary folder that is removed at
 * jtn__entry_deinit / process exit, so that its file can still be loaded: OK all the same. */
jtn_status jtn__cache_put(jtn_cache *cache, const jtn_digest *k1, jtn_deps *deps /* taken */, const char *name,
                          jtn_view file_bytes, jtn_view payload, jtn_view material, jtn_entry *out);

/* One builder per key among threads and processes. Enter returns when this caller may build, or when another has finished
 * (the caller looks up again either way). Never fails; losing the lock costs work, not correctness. */
typedef struct jtn_flight jtn_flight;
jtn_flight *jtn__flight_enter(jtn_cache *cache, const jtn_digest *k1); /* NULL: alone, go on */
void jtn__flight_leave(jtn_flight *flight);

/* Small memos beside the entries: name (a digest's hex) → bytes, atomically replaced; no checksum needed by the caller
 * (it is inside). get: found=false when absent or damaged. For compiler identities and precompiled headers. */
jtn_status jtn__memo_get(jtn_cache *cache, const char *kind, const jtn_digest *name, jtn_buf *out, bool *found);
jtn_status jtn__memo_put(jtn_cache *cache, const char *kind, const jtn_digest *name, jtn_view bytes);
/* A folder "<dir>/v1/<kind>/<hex>" published whole: fill is called with a private folder to fill, which is then renamed
 * into place (the first publisher wins). Fails with CACHE when the cache is off, read-only or refused. */
jtn_status jtn__folder_get(jtn_cache *cache, const char *kind, const jtn_digest *name, char **path, bool *found);
jtn_status jtn__folder_put(jtn_cache *cache, const char *kind, const jtn_digest *name,
                           jtn_status (*fill)(void *arg, const char *folder), void *arg, char **path);
/* A private 0700 working folder for one build (in the cache when that can be written, else in TMPDIR). */
jtn_status jtn__cache_staging(jtn_cache *cache, char **path);

#endif
