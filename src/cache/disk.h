/* disk.h — the cache's folder: where things lie in it, and whether it may be used. Inside cache/ only. */
#ifndef JTN_CACHE_DISK_H
#define JTN_CACHE_DISK_H

#include "cache/cache.h"

struct jtn_cache {
    char *dir; /* as given, absolute */
    jtn_cache_mode mode;
    int trusted, reaped; /* the folder was seen to be ours; what dead writers left was removed. Changed atomically */
};

/* Before any reading: the folder is there and ours. It may have come to be, by whoever, after the cache was opened. */
bool jtn__disk_trusted(jtn_cache *cache);

/* "<dir>/v1/<kind>/<hex's first two>/<hex>". Fresh memory. */
char *jtn__disk_place(const jtn_cache *cache, const char *kind, const jtn_digest *name);
/* Before the first write: makes the folders, checks them, reaps what dead writers left. CACHE when nothing can be written, with the
 * reason said once through the log. */
jtn_status jtn__disk_prepare(jtn_cache *cache);
/* A store that failed: said once. */
void jtn__disk_complain(const jtn_cache *cache);
/* Moves a bad file or folder out of the way, or removes it; does nothing where nothing may be written. */
void jtn__disk_set_aside(jtn_cache *cache, const char *path);

#endif
