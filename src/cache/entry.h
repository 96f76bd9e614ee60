/* entry.h — the entry format.
 *
 *     entry    = file payload material footer
 *     file     = an ELF shared object, or anything; padded with zeros to a multiple of 64
 *     payload  = the artifact (model/artifact.c)
 *     material = the key's story, text
 *     footer   = magic version file_size payload_size material_size k2 checksum
 *     magic    = "JITNEY\r\n"
 *     version  = u32, 1, and u32 of zero; sizes are u64; all little-endian
 *     k2       = 32 bytes: the key this entry is the result of
 *     checksum = 16 bytes, XXH3-128 of all that stands before it
 *
 * The footer is at the end, so that the file is still an ELF file to everyone else, and is found from the end. */
#ifndef JTN_CACHE_ENTRY_H
#define JTN_CACHE_ENTRY_H

#include "cache/cache.h"

#define JTN_ENTRY_VERSION 1

jtn_status jtn__entry_encode(jtn_view file, jtn_view payload, jtn_view material, const jtn_digest *k2, jtn_buf *out);
/* Checks everything; the views in out point into bytes. CACHE, with what is wrong and where. */
jtn_status jtn__entry_decode(jtn_view bytes, const char *path, jtn_entry *out);

#endif
