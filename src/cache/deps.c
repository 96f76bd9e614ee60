/* deps.c — the files a result depended on: recorded at the build, checked at every look-up.
 *
 * A check is a stat a file. Contents are read only where stat differs from what was recorded, so a touched file or the same
 * tree checked out elsewhere still hits. An id is recorded only when the file was old enough at the build that a later change
 * must show in it; otherwise the content is compared every time. */
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cache/cache.h"

/* root/path into buffer; false when the root is unknown here or the path too long. */
static bool place_of(const jtn_dep *dep, char *const roots[], size_t root_count, char *buffer, size_t size)
{
    const char *root = "";
    size_t head, tail = strlen(dep->path);

    if (dep->root != JTN_ROOT_ABSOLUTE)
        root = dep->root < root_count && roots[dep->root] ? roots[dep->root] : "";
    head = strlen(root);
    if ((dep->root != JTN_ROOT_ABSOLUTE && head == 0) || tail == 0 || head + tail + 2 > size)
        return false;
    /* By hand: this runs once for every header of every warm load. */
    memcpy(buffer, root, head);
    if (head)
        buffer[head++] = '/';
    memcpy(buffer + head, dep->path, tail + 1);
    return true;
}

static jtn_status append(jtn_deps *deps, jtn_dep **out)
{
    if (deps->count == deps->capacity) {
        size_t capacity = deps->capacity ? deps->capacity * 2 : 16;
        jtn_dep *items = jtn__realloc(deps->items, capacity * sizeof *items);

        if (!items)
            return JTN_ERROR_MEMORY;
        deps->items = items;
        deps->capacity = capacity;
    }
    *out = &deps->items[deps->count];
    **out = (jtn_dep){0};
    return JTN_OK;
}

static bool has(const jtn_deps *deps, uint32_t root, const char *path)
{
    for (size_t i = 0; i < deps->count; i++)
        if (deps->items[i].root == root && strcmp(deps->items[i].path, path) == 0)
            return true;
    return false;
}

int64_t jtn__deps_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Identity first, content second: a change between the two shows as another identity the next time. */
static jtn_status identify(const char *place, const jtn_view *content, jtn_dep *dep)
{
    jtn_digest now;
    jtn_status status = jtn__file_id(place, &dep->id);

    if (!content)
        return status == JTN_OK ? jtn__file_digest(place, &dep->digest) : status;
    jtn__digest_of(content->data, content->size, &dep->digest);
    if (status != JTN_OK || jtn__file_digest(place, &now) != JTN_OK || !jtn__digest_equal(&now, &dep->digest))
        dep->id = (jtn_file_id){0}; /* changed since it was used: its id stands for other bytes */
    return JTN_OK;
}

jtn_status jtn__deps_add(jtn_deps *deps, char *const roots[], uint32_t root, const char *path, const jtn_view *content,
                         bool system)
{
    char place[4096];
    jtn_dep dep = {.root = root, .path = (char *)(uintptr_t)path, .system = system}, *added;
    bool late;

    if (has(deps, root, path))
        return JTN_OK;
    if (!place_of(&dep, roots, root == JTN_ROOT_ABSOLUTE ? 0 : root + 1, place, sizeof place))
        return jtn__fail(JTN_ERROR_INTERNAL, "the header \"%s\" has no place", path);
    JTN_TRY(identify(place, content, &dep));
    late = !content && deps->since_ns && (dep.id.mtime_ns > deps->since_ns || dep.id.ctime_ns > deps->since_ns);
    if (jtn__file_id_racy(&dep.id))
        dep.id = (jtn_file_id){0};
    JTN_TRY(append(deps, &added));
    if (!(dep.path = jtn__strdup(path)))
        return JTN_ERROR_MEMORY;
    *added = dep;
    deps->count++;
    deps->unsettled |= late;
    return JTN_OK;
}

jtn_status jtn__deps_add_absent(jtn_deps *deps, uint32_t root, const char *path)
{
    jtn_dep *dep;

    if (has(deps, root, path))
        return JTN_OK;
    JTN_TRY(append(deps, &dep));
    dep->root = root;
    dep->absent = true;
    if (!(dep->path = jtn__strdup(path)))
        return JTN_ERROR_MEMORY;
    deps->count++;
    return JTN_OK;
}

void jtn__deps_deinit(jtn_deps *deps)
{
    for (size_t i = 0; i < deps->count; i++)
        jtn__free(deps->items[i].path);
    jtn__free(deps->items);
    *deps = (jtn_deps){0};
}

static bool is_fresh(const jtn_dep *dep, char *const roots[], size_t root_count)
{
    char place[4096];
    jtn_file_id id;
    jtn_digest digest;

    if (!place_of(dep, roots, root_count, place, sizeof place))
        return dep->absent;
    if (dep->absent)
        return !jtn__file_exists(place);
    if (jtn__file_id(place, &id) != JTN_OK)
        return false;
    if (jtn__file_id_equal(&dep->id, &id))
        return true;
    return jtn__file_digest(place, &digest) == JTN_OK && jtn__digest_equal(&digest, &dep->digest);
}

int jtn__deps_fresh(const jtn_deps *deps, char *const roots[], size_t root_count, bool with_system)
{
    for (size_t i = 0; i < deps->count; i++)
        if ((with_system || !deps->items[i].system) && !is_fresh(&deps->items[i], roots, root_count))
            return 0;
    return 1;
}

void jtn__deps_key(const jtn_digest *k1, const jtn_deps *deps, jtn_digest *k2)
{
    jtn_hash hash;

    jtn__hash_init(&hash, NULL);
    jtn__hash_field(&hash, "first key", k1->bytes, sizeof k1->bytes);
    for (size_t i = 0; i < deps->count; i++) {
        const jtn_dep *dep = &deps->items[i];

        if (dep->absent)
            continue; /* says when to look elsewhere, not what was found */
        jtn__hash_number(&hash, "root", dep->root);
        /* where a system header lies is the toolchain's business; its name is enough */
        jtn__hash_text(&hash, "header", dep->root == JTN_ROOT_ABSOLUTE ? jtn__path_base(dep->path) : dep->path);
        jtn__hash_field(&hash, "content", dep->digest.bytes, sizeof dep->digest.bytes);
    }
    jtn__hash_final(&hash, k2);
}
