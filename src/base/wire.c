/* wire.c — bounds-checked reading and writing of everything that is stored.
 *
 * Bytes are little-endian whatever the machine. A reader that once went past its end stays bad and gives zeros, so that
 * a decoder is straight-line code with one check at its end. */
#include "base/wire.h"

#include <string.h>

void jtn__put_u8(jtn_buf *buf, uint8_t v)
{
    jtn__buf_put(buf, &v, 1);
}

static void put_little(jtn_buf *buf, uint64_t v, size_t size)
{
    unsigned char bytes[8];

    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    jtn__buf_put(buf, bytes, size);
}

void jtn__put_u32(jtn_buf *buf, uint32_t v)
{
    put_little(buf, v, 4);
}

void jtn__put_u64(jtn_buf *buf, uint64_t v)
{
    put_little(buf, v, 8);
}

void jtn__put_bytes(jtn_buf *buf, const void *bytes, size_t size)
{
    jtn__put_u64(buf, size);
    jtn__buf_put(buf, bytes, size);
}

void jtn__put_text(jtn_buf *buf, const char *text)
{
    jtn_view view = jtn__view(text);

    jtn__put_bytes(buf, view.data, view.size);
}

static const unsigned char *take(jtn_reader *r, size_t size)
{
    const unsigned char *at;

    if (r->bad || size > r->size - r->at) {
        r->bad = 1;
        return NULL;
    }
    at = (const unsigned char *)r->data + r->at;
    r->at += size;
    return at;
}

static uint64_t get_little(jtn_reader *r, size_t size)
{
    const unsigned char *bytes = take(r, size);
    uint64_t v = 0;

    for (size_t i = 0; bytes && i < size; i++)
        v |= (uint64_t)bytes[i] << (8 * i);
    return v;
}

uint8_t jtn__get_u8(jtn_reader *r)
{
    return (uint8_t)get_little(r, 1);
}

uint32_t jtn__get_u32(jtn_reader *r)
{
    return (uint32_t)get_little(r, 4);
}

uint64_t jtn__get_u64(jtn_reader *r)
{
    return get_little(r, 8);
}

jtn_view jtn__get_bytes(jtn_reader *r)
{
    uint64_t size = jtn__get_u64(r);
    const unsigned char *bytes = take(r, size <= SIZE_MAX / 2 ? (size_t)size : SIZE_MAX);

    return bytes ? (jtn_view){(const char *)bytes, (size_t)size} : (jtn_view){"", 0};
}

void jtn__get_raw(jtn_reader *r, void *out, size_t size)
{
    const unsigned char *bytes = take(r, size);

    if (bytes)
        memcpy(out, bytes, size);
    else
        memset(out, 0, size);
}

uint32_t jtn__get_count(jtn_reader *r, size_t min_size)
{
    uint32_t count = jtn__get_u32(r);

    if (!r->bad && min_size && count > (r->size - r->at) / min_size)
        r->bad = 1;
    return r->bad ? 0 : count;
}
