/* entry.c — entries to bytes and back. The format is in entry.h.
 *
 * A reader trusts nothing: sizes are checked against the file before anything is looked at, and the checksum before anything
 * is believed. */
#include "cache/entry.h"

#include <string.h>

#include "base/mem.h"
#include "base/wire.h"
#include "cache/private.h"

static const char magic[8] = {'J', 'I', 'T', 'N', 'E', 'Y', '\r', '\n'};

/* Images in the payload are handed to the driver where they lie. */
#define ALIGN 64
#define CHECKSUM_SIZE sizeof(jtn_checksum)
#define FOOTER_SIZE (sizeof magic + 8 + 3 * 8 + sizeof(jtn_digest) + CHECKSUM_SIZE)

jtn_status jtn__entry_encode(jtn_view file, jtn_view payload, jtn_view material, const jtn_digest *k2, jtn_buf *out)
{
    static const char zeros[ALIGN];
    size_t padding = (ALIGN - file.size % ALIGN) % ALIGN;
    jtn_checksum checksum;

    jtn__buf_put(out, file.data, file.size);
    jtn__buf_put(out, zeros, padding);
    jtn__buf_put(out, payload.data, payload.size);
    jtn__buf_put(out, material.data, material.size);
    jtn__buf_put(out, magic, sizeof magic);
    jtn__put_u32(out, JTN_ENTRY_VERSION);
    jtn__put_u32(out, 0);
    jtn__put_u64(out, file.size + padding);
    jtn__put_u64(out, payload.size);
    jtn__put_u64(out, material.size);
    jtn__buf_put(out, k2->bytes, sizeof k2->bytes);
    if (out->failed != JTN_OK)
        return out->failed;
    jtn__checksum_of(out->data, out->size, &checksum);
    return jtn__buf_put(out, checksum.bytes, CHECKSUM_SIZE);
}

static jtn_status damaged(const char *path, const char *what)
{
    return jtn__fail(JTN_ERROR_CACHE, "\"%s\" %s", path, what);
}

jtn_status jtn__entry_decode(jtn_view bytes, const char *path, jtn_entry *out)
{
    jtn_reader r = {bytes.data, bytes.size, 0, 0};
    uint64_t file_size, payload_size, material_size, rest;
    jtn_checksum checksum;
    uint32_t version;

    if (bytes.size < FOOTER_SIZE || memcmp(bytes.data + bytes.size - FOOTER_SIZE, magic, sizeof magic) != 0)
        return damaged(path, "is no module file of Jitney's, or it was cut short");
    r.at = bytes.size - FOOTER_SIZE + sizeof magic;
    version = jtn__get_u32(&r);
    if (version != JTN_ENTRY_VERSION)
        return jtn__fail(JTN_ERROR_CACHE, "\"%s\" has format %u, this library reads format %d; build the module again",
                         path, version, JTN_ENTRY_VERSION);
    jtn__get_u32(&r);
    file_size = jtn__get_u64(&r);
    payload_size = jtn__get_u64(&r);
    material_size = jtn__get_u64(&r);
    rest = bytes.size - FOOTER_SIZE;
    if (r.bad || file_size > rest || payload_size > rest - file_size ||
        material_size != rest - file_size - payload_size)
        return damaged(path, "is damaged: its parts do not fit its size");
    jtn__checksum_of(bytes.data, bytes.size - CHECKSUM_SIZE, &checksum);
    if (memcmp(checksum.bytes, bytes.data + bytes.size - CHECKSUM_SIZE, CHECKSUM_SIZE) != 0)
        return damaged(path, "is damaged: its checksum is wrong");
    out->payload = (jtn_view){bytes.data + file_size, (size_t)payload_size};
    out->material = (jtn_view){bytes.data + file_size + payload_size, (size_t)material_size};
    memcpy(out->k2.bytes, bytes.data + r.at, sizeof out->k2.bytes);
    return JTN_OK;
}

jtn_status jtn__entry_open(const char *path, jtn_entry *out)
{
    jtn_entry entry = {0};
    jtn_status status;

    if (!(entry.path = jtn__path_absolute(path)))
        return JTN_ERROR_MEMORY;
    JTN_GO(jtn__file_map(path, &entry.map));
    JTN_GO(jtn__entry_decode((jtn_view){entry.map.data, entry.map.size}, path, &entry));
    *out = entry;
    return JTN_OK;
out:
    jtn__entry_deinit(&entry);
    return status;
}

void jtn__entry_deinit(jtn_entry *entry)
{
    jtn__file_unmap(&entry->map);
    jtn__deps_deinit(&entry->deps);
    if (entry->private_dir)
        jtn__private_dir_remove(entry->private_dir);
    jtn__free(entry->private_dir);
    jtn__free(entry->path);
    *entry = (jtn_entry){0};
}
