/* hash.h — labelled hashing: every field goes in as (label, length, bytes), so no two inputs can run into each other.
 * BLAKE2b-256 (libsodium) for keys and contents; XXH3-128 (xxhash) for checksums, which guard against damage, not malice. */
#ifndef JTN_BASE_HASH_H
#define JTN_BASE_HASH_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct jtn_digest {
    unsigned char bytes[32];
} jtn_digest;

#define JTN_DIGEST_HEX 65 /* chars of its hex text, NUL included */

typedef struct jtn_hash {
    _Alignas(64) unsigned char state[384]; /* libsodium's crypto_generichash_state */
    jtn_buf *trace;
} jtn_hash;

/* trace: NULL, or receives "label: value\n" for every field (long or binary values as their digest), the key's own story. */
void jtn__hash_init(jtn_hash *hash, jtn_buf *trace);
void jtn__hash_field(jtn_hash *hash, const char *label, const void *bytes, size_t size);
void jtn__hash_text(jtn_hash *hash, const char *label, const char *text); /* NULL differs from "" */
void jtn__hash_number(jtn_hash *hash, const char *label, int64_t number);
void jtn__hash_final(jtn_hash *hash, jtn_digest *out);

/* For contents read in pieces: init, raw …, final give what jtn__digest_of gives of the whole. */
void jtn__hash_raw(jtn_hash *hash, const void *bytes, size_t size);

void jtn__digest_of(const void *bytes, size_t size, jtn_digest *out);
bool jtn__digest_equal(const jtn_digest *a, const jtn_digest *b);
void jtn__digest_hex(const jtn_digest *digest, char out[JTN_DIGEST_HEX]);
bool jtn__digest_parse(const char *hex, jtn_digest *out); /* false: not 64 hex digits */

typedef struct jtn_checksum {
    unsigned char bytes[16];
} jtn_checksum;
void jtn__checksum_of(const void *bytes, size_t size, jtn_checksum *out);

#endif
