/* hash.c — labelled hashing over libsodium's BLAKE2b, checksums by XXH3.
 *
 * A field goes in as: length of the label, label, length of the value, value. Lengths are fixed-size, so the bytes of a
 * sequence of fields read in one way only. */
#include "base/hash.h"

#include <sodium.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(crypto_generichash_state) <= sizeof((jtn_hash *)0)->state,
               "the state of libsodium's hash has grown");

/* Values up to this length that are plain text are told in the trace as they are. */
#define TRACE_PLAIN 200

static crypto_generichash_state *state_of(jtn_hash *hash)
{
    return (crypto_generichash_state *)(void *)hash->state;
}

void jtn__hash_init(jtn_hash *hash, jtn_buf *trace)
{
    hash->trace = trace;
    crypto_generichash_init(state_of(hash), NULL, 0, sizeof(jtn_digest));
}

static void add(jtn_hash *hash, const void *bytes, size_t size)
{
    unsigned char length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)size >> (8 * i));
    crypto_generichash_update(state_of(hash), length, sizeof length);
    if (size)
        crypto_generichash_update(state_of(hash), bytes, size);
}

static bool is_plain(const unsigned char *bytes, size_t size)
{
    if (size > TRACE_PLAIN)
        return false;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < 32 || bytes[i] == 127)
            return false;
    return true;
}

static void trace(jtn_hash *hash, const char *label, const void *bytes, size_t size)
{
    char hex[JTN_DIGEST_HEX];
    jtn_digest digest;

    if (!hash->trace)
        return;
    if (is_plain(bytes, size)) {
        jtn__buf_printf(hash->trace, "%s: %.*s\n", label, (int)size, size ? (const char *)bytes : "");
        return;
    }
    jtn__digest_of(bytes, size, &digest);
    jtn__digest_hex(&digest, hex);
    jtn__buf_printf(hash->trace, "%s: %zu bytes, %s\n", label, size, hex);
}

void jtn__hash_field(jtn_hash *hash, const char *label, const void *bytes, size_t size)
{
    add(hash, label, strlen(label));
    add(hash, bytes, size);
    trace(hash, label, bytes, size);
}

void jtn__hash_text(jtn_hash *hash, const char *label, const char *text)
{
    /* One byte in front tells a missing text from an empty one. */
    add(hash, label, strlen(label));
    add(hash, text ? "t" : "n", 1);
    add(hash, text ? text : "", text ? strlen(text) : 0);
    if (text)
        trace(hash, label, text, strlen(text));
}

void jtn__hash_number(jtn_hash *hash, const char *label, int64_t number)
{
    char text[32];
    int size = 0;
    bool minus = number < 0;
    uint64_t rest = minus ? 0 - (uint64_t)number : (uint64_t)number;

    do
        text[sizeof text - 1 - (size_t)size++] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (minus)
        text[sizeof text - 1 - (size_t)size++] = '-';
    jtn__hash_field(hash, label, text + sizeof text - size, (size_t)size);
}

void jtn__hash_final(jtn_hash *hash, jtn_digest *out)
{
    crypto_generichash_final(state_of(hash), out->bytes, sizeof out->bytes);
}

void jtn__hash_raw(jtn_hash *hash, const void *bytes, size_t size)
{
    crypto_generichash_update(state_of(hash), bytes, size);
}

void jtn__digest_of(const void *bytes, size_t size, jtn_digest *out)
{
    crypto_generichash(out->bytes, sizeof out->bytes, size ? bytes : (const void *)"", size, NULL, 0);
}

bool jtn__digest_equal(const jtn_digest *a, const jtn_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void jtn__digest_hex(const jtn_digest *digest, char out[JTN_DIGEST_HEX])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < sizeof digest->bytes; i++) {
        out[2 * i] = digits[digest->bytes[i] >> 4];
        out[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    out[JTN_DIGEST_HEX - 1] = 0;
}

bool jtn__digest_parse(const char *hex, jtn_digest *out)
{
    jtn_digest digest;

    for (size_t i = 0; i < 2 * sizeof digest.bytes; i++) {
        char c = hex[i];
        int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (value < 0)
            return false;
        digest.bytes[i / 2] = (unsigned char)(i % 2 ? digest.bytes[i / 2] | value : value << 4);
    }
    if (hex[2 * sizeof digest.bytes])
        return false;
    *out = digest;
    return true;
}

void jtn__checksum_of(const void *bytes, size_t size, jtn_checksum *out)
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, size));
    memcpy(out->bytes, canonical.digest, sizeof out->bytes);
}
