/* manifest.c — manifests to bytes and back. The format is in manifest.h. */
#include "cache/manifest.h"

#include <string.h>

#include "base/mem.h"
#include "base/wire.h"

static const char magic[8] = {'J', 'T', 'N', 'M', 'A', 'N', 'I', '1'};

#define FLAG_ABSENT 1
#define FLAG_SYSTEM 2
#define DEP_MIN_SIZE (4 + 8 + 1 + 32 + 5 * 8)
#define RESULT_MIN_SIZE (32 + 8 + 4)

void jtn__result_deinit(jtn_result *result)
{
    jtn__free(result->name);
    jtn__deps_deinit(&result->deps);
    *result = (jtn_result){0};
}

void jtn__manifest_deinit(jtn_manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++)
        jtn__result_deinit(&manifest->results[i]);
    jtn__free(manifest->results);
    *manifest = (jtn_manifest){0};
}

/* ---------------------------------------------------------------- writing ---- */

static void put_dep(jtn_buf *out, const jtn_dep *dep)
{
    jtn__put_u32(out, dep->root);
    jtn__put_text(out, dep->path);
    jtn__put_u8(out, (uint8_t)((dep->absent ? FLAG_ABSENT : 0) | (dep->system ? FLAG_SYSTEM : 0)));
    jtn__buf_put(out, dep->digest.bytes, sizeof dep->digest.bytes);
    jtn__put_u64(out, dep->id.device);
    jtn__put_u64(out, dep->id.inode);
    jtn__put_u64(out, dep->id.size);
    jtn__put_u64(out, (uint64_t)dep->id.mtime_ns);
    jtn__put_u64(out, (uint64_t)dep->id.ctime_ns);
}

jtn_status jtn__manifest_encode(const jtn_digest *k1, const jtn_manifest *manifest, jtn_buf *out)
{
    jtn_checksum checksum;

    jtn__buf_put(out, magic, sizeof magic);
    jtn__buf_put(out, k1->bytes, sizeof k1->bytes);
    jtn__put_u32(out, (uint32_t)manifest->count);
    for (size_t i = 0; i < manifest->count; i++) {
        const jtn_result *result = &manifest->results[i];

        jtn__buf_put(out, result->k2.bytes, sizeof result->k2.bytes);
        jtn__put_text(out, result->name);
        jtn__put_u32(out, (uint32_t)result->deps.count);
        for (size_t k = 0; k < result->deps.count; k++)
            put_dep(out, &result->deps.items[k]);
    }
    if (out->failed != JTN_OK)
        return out->failed;
    jtn__checksum_of(out->data, out->size, &checksum);
    return jtn__buf_put(out, checksum.bytes, sizeof checksum.bytes);
}

/* ---------------------------------------------------------------- reading ---- */

static jtn_status get_text(jtn_reader *r, char **out)
{
    jtn_view text = jtn__get_bytes(r);

    if (text.size > 4096 || (text.size && memchr(text.data, 0, text.size)))
        r->bad = 1;
    return (*out = jtn__strndup(r->bad ? "" : text.data, r->bad ? 0 : text.size)) ? JTN_OK : JTN_ERROR_MEMORY;
}

static jtn_status get_dep(jtn_reader *r, jtn_dep *dep)
{
    uint8_t flags;

    dep->root = jtn__get_u32(r);
    JTN_TRY(get_text(r, &dep->path));
    flags = jtn__get_u8(r);
    dep->absent = flags & FLAG_ABSENT;
    dep->system = flags & FLAG_SYSTEM;
    jtn__get_raw(r, dep->digest.bytes, sizeof dep->digest.bytes);
    dep->id.device = jtn__get_u64(r);
    dep->id.inode = jtn__get_u64(r);
    dep->id.size = jtn__get_u64(r);
    dep->id.mtime_ns = (int64_t)jtn__get_u64(r);
    dep->id.ctime_ns = (int64_t)jtn__get_u64(r);
    return JTN_OK;
}

static jtn_status get_result(jtn_reader *r, jtn_result *result)
{
    uint32_t count;

    jtn__get_raw(r, result->k2.bytes, sizeof result->k2.bytes);
    JTN_TRY(get_text(r, &result->name));
    if (strchr(result->name, '/') || result->name[0] == '.')
        r->bad = 1; /* it becomes a file name */
    count = jtn__get_count(r, DEP_MIN_SIZE);
    if (!(result->deps.items = jtn__alloc((count + 1) * sizeof *result->deps.items)))
        return JTN_ERROR_MEMORY;
    result->deps.capacity = count + 1;
    for (uint32_t i = 0; i < count && !r->bad; i++) {
        JTN_TRY(get_dep(r, &result->deps.items[i]));
        result->deps.count++;
    }
    return JTN_OK;
}

static jtn_status get_results(jtn_reader *r, jtn_manifest *manifest)
{
    uint32_t count = jtn__get_count(r, RESULT_MIN_SIZE);

    if (!(manifest->results = jtn__alloc((count + 1) * sizeof *manifest->results)))
        return JTN_ERROR_MEMORY;
    for (uint32_t i = 0; i < count && !r->bad; i++) {
        manifest->count++;
        JTN_TRY(get_result(r, &manifest->results[i]));
    }
    return JTN_OK;
}

jtn_status jtn__manifest_decode(jtn_view bytes, const jtn_digest *k1, jtn_manifest *out)
{
    size_t head = sizeof magic + sizeof k1->bytes;
    jtn_reader r = {bytes.data, bytes.size - sizeof(jtn_checksum), head, 0};
    jtn_manifest manifest = {0};
    jtn_checksum checksum;
    jtn_status status;

    if (bytes.size < head + 4 + sizeof checksum || memcmp(bytes.data, magic, sizeof magic) != 0)
        return jtn__fail(JTN_ERROR_CACHE, "a manifest is damaged: it does not begin as one");
    if (memcmp(bytes.data + sizeof magic, k1->bytes, sizeof k1->bytes) != 0)
        return jtn__fail(JTN_ERROR_CACHE, "a manifest is of another key");
    jtn__checksum_of(bytes.data, r.size, &checksum);
    if (memcmp(checksum.bytes, bytes.data + r.size, sizeof checksum.bytes) != 0)
        return jtn__fail(JTN_ERROR_CACHE, "a manifest is damaged: its checksum is wrong");
    status = get_results(&r, &manifest);
    if (status == JTN_OK && (r.bad || r.at != r.size))
        status = jtn__fail(JTN_ERROR_CACHE, "a manifest is damaged: its parts do not fit its size");
    if (status == JTN_OK)
        *out = manifest;
    else
        jtn__manifest_deinit(&manifest);
    return status;
}

jtn_status jtn__manifest_put(jtn_manifest *manifest, jtn_result *result)
{
    jtn_result *results = jtn__alloc((manifest->count + 1) * sizeof *results);
    size_t count = 0;

    if (!results)
        return JTN_ERROR_MEMORY;
    results[count++] = *result;
    *result = (jtn_result){0};
    for (size_t i = 0; i < manifest->count; i++) {
        if (count < JTN_MANIFEST_RESULTS && !jtn__digest_equal(&manifest->results[i].k2, &results[0].k2))
            results[count++] = manifest->results[i];
        else
            jtn__result_deinit(&manifest->results[i]);
    }
    jtn__free(manifest->results);
    manifest->results = results;
    manifest->count = count;
    return JTN_OK;
}
