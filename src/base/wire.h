/* wire.h — bounds-checked reading and writing of everything that is stored: little-endian, length-prefixed. */
#ifndef JTN_BASE_WIRE_H
#define JTN_BASE_WIRE_H

#include "base/buf.h"

void jtn__put_u8(jtn_buf *buf, uint8_t v);
void jtn__put_u32(jtn_buf *buf, uint32_t v);
void jtn__put_u64(jtn_buf *buf, uint64_t v);
void jtn__put_bytes(jtn_buf *buf, const void *bytes, size_t size); /* u64 size, bytes */
void jtn__put_text(jtn_buf *buf, const char *text);               /* as bytes; NULL as "" */

/* Reads never go past the end: once one fails, `bad` is set, every later read gives zero or the empty view, and the reader
 * is checked once, at the end. Views point into the input. */
typedef struct jtn_reader {
    const char *data;
    size_t size, at;
    int bad;
} jtn_reader;

uint8_t jtn__get_u8(jtn_reader *r);
uint32_t jtn__get_u32(jtn_reader *r);
uint64_t jtn__get_u64(jtn_reader *r);
jtn_view jtn__get_bytes(jtn_reader *r);
void jtn__get_raw(jtn_reader *r, void *out, size_t size); /* bytes without a length; zeros when bad */
/* A count of things that each take at least min_size bytes: bad when the rest of the input cannot hold them. */
uint32_t jtn__get_count(jtn_reader *r, size_t min_size);

#endif
