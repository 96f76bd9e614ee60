/* key.c — the labelled fields of the first key.
 *
 * In: everything that can change the result. Out: everything that cannot, absolute paths above all, so that the same tree
 * elsewhere, or the same source by another user, hits. Headers are not here: which ones are reached is known only after a
 * build, so they make the second key (cache.h). */
#include "source/key.h"

#include <stdio.h>
#include <string.h>

static void hash_list(jtn_hash *hash, const char *label, const jtn_list *list)
{
    jtn__hash_number(hash, label, (int64_t)list->count);
    for (size_t i = 0; i < list->count; i++)
        jtn__hash_text(hash, label, list->items[i]);
}

static void hash_digest(jtn_hash *hash, const char *label, const jtn_digest *digest)
{
    char hex[JTN_DIGEST_HEX] = "none";

    if (digest)
        jtn__digest_hex(digest, hex);
    jtn__hash_text(hash, label, hex);
}

/* -march=native and kin mean this processor: its model and features stand for it. */
static void hash_processor(jtn_hash *hash)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[8192];

    while (file && fgets(line, sizeof line, file)) {
        if (line[0] == '\n') /* the first processor is enough */
            break;
        if (strncmp(line, "model name", 10) == 0 || strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0)
            jtn__hash_text(hash, "processor", line);
    }
    if (file)
        fclose(file);
}

/* Flags that make the result depend on more than the flag's text. */
static void hash_flags_meaning(jtn_hash *hash, const jtn_unit *unit)
{
    bool native = false, debug = false;

    for (size_t i = 0; i < unit->cflags.count; i++) {
        const char *flag = unit->cflags.items[i];

        native |= strstr(flag, "=native") != NULL;
        debug |= strncmp(flag, "-g", 2) == 0 && strcmp(flag, "-g0") != 0;
    }
    if (native)
        hash_processor(hash);
    if (!debug)
        return;
    /* Debug information names the sources' places. */
    for (size_t i = 0; i < unit->source_count; i++)
        jtn__hash_text(hash, "debug path", unit->sources[i].path);
}

jtn_status jtn__key_first(const jtn_unit *unit, const jtn_key_facts *facts, jtn_digest *k1, jtn_buf *material)
{
    jtn_hash hash;

    jtn__hash_init(&hash, material);
    hash_digest(&hash, "jitney", facts->library);
    jtn__hash_text(&hash, "name", unit->name);
    for (size_t i = 0; i < unit->source_count; i++) {
        const jtn_source *source = &unit->sources[i];

        jtn__hash_text(&hash, "source name", source->name);
        jtn__hash_number(&hash, "source language", source->lang);
        jtn__hash_field(&hash, "source", source->text, source->size);
    }
    for (size_t i = 0; i < unit->wish_count; i++) {
        jtn__hash_text(&hash, "function", unit->wishes[i].text);
        jtn__hash_text(&hash, "function doc", unit->wishes[i].doc);
    }
    hash_list(&hash, "cflags", &unit->cflags);
    hash_list(&hash, "cuda cflags", &unit->cuda_cflags);
    hash_list(&hash, "ldflags", &unit->ldflags);
    hash_list(&hash, "define", &unit->defines);
    jtn__hash_number(&hash, "include folders", (int64_t)unit->include_dirs.count);
    jtn__hash_text(&hash, "arch", facts->arch);
    jtn__hash_text(&hash, "target", unit->target);
    jtn__hash_text(&hash, "instance", unit->instance);
    hash_digest(&hash, "host compiler", facts->cxx);
    hash_digest(&hash, "nvrtc", facts->nvrtc);
    hash_digest(&hash, "cuda headers", facts->cuda_headers);
    jtn__hash_text(&hash, "host abi", facts->host_abi);
    hash_flags_meaning(&hash, unit);
    jtn__hash_final(&hash, k1);
    return material ? material->failed : JTN_OK;
}
