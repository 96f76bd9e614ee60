/* manifest.h — the manifest of a first key: earlier results, newest first, with what each depended on.
 *
 *     manifest = magic k1 count result* checksum
 *     magic    = "JTNMANI1"
 *     result   = k2 name count dep*
 *     dep      = root path flags digest id        flags: 1 absent, 2 system; id: five u64
 *     checksum = 16 bytes, XXH3-128 of all that stands before it */
#ifndef JTN_CACHE_MANIFEST_H
#define JTN_CACHE_MANIFEST_H

#include "cache/cache.h"

/* More results than this under one key are a header that changes all the time: the oldest go. */
#define JTN_MANIFEST_RESULTS 16

typedef struct jtn_result {
    jtn_digest k2;
    char *name; /* the entry's file is <name>.so */
    jtn_deps deps;
} jtn_result;

typedef struct jtn_manifest {
    jtn_result *results;
    size_t count;
} jtn_manifest;

jtn_status jtn__manifest_encode(const jtn_digest *k1, const jtn_manifest *manifest, jtn_buf *out);
/* CACHE when damaged or of another key. */
jtn_status jtn__manifest_decode(jtn_view bytes, const jtn_digest *k1, jtn_manifest *out);
/* Puts a result first (its deps and name are taken), drops an older one of the same k2 and what goes over the bound. */
jtn_status jtn__manifest_put(jtn_manifest *manifest, jtn_result *result);
void jtn__manifest_deinit(jtn_manifest *manifest);
void jtn__result_deinit(jtn_result *result);

#endif
