/* toolkit.c — which NVRTC and which CUDA headers this process compiles with, and who they are.
 *
 * Looking means listing folders and reading a 100 MB library for its identity: far more than a warm load costs otherwise. So the answer
 * is remembered in the cache, under the settings that guide the search, together with its witnesses: every file and folder the answer
 * depends on, as stat showed it. A folder's times change when something is put into it, so a newer NVRTC, or one in a place that is looked
 * at before, makes the witnesses wrong and the search is done again. */
#include "toolkit.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/wire.h"
#include "compile/nvrtc_private.h"

#define MAX_WITNESSES 256

typedef struct jtn_witness {
    const char *path; /* in the candidates, or in the toolkit */
    jtn_file_id id;   /* zero: not there */
} jtn_witness;

static void settings_digest(const char *search_path, jtn_digest *out)
{
    static const char *const variables[] = {"JITNEY_NVRTC", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_HOME", "CUDA_PATH"};
    jtn_hash hash;

    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "search path", search_path);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        jtn__hash_text(&hash, variables[i], getenv(variables[i]));
    jtn__hash_final(&hash, out);
}

/* ---------------------------------------------------------------- believing ---- */

static char *get_path(jtn_reader *r)
{
    jtn_view text = jtn__get_bytes(r);

    return jtn__strndup(text.data, text.size);
}

static bool is_as_it_was(jtn_reader *r)
{
    char path[4096];
    jtn_view text = jtn__get_bytes(r);
    jtn_file_id then, now = {0};

    jtn__get_raw(r, &then, sizeof then);
    if (r->bad || text.size >= sizeof path)
        return false;
    memcpy(path, text.data, text.size);
    path[text.size] = 0;
    if (jtn__file_id(path, &now) != JTN_OK)
        return then.inode == 0;
    return jtn__file_id_equal(&then, &now);
}

/* Whether everything in the memo still holds; then out is filled. */
static bool believe(jtn_view bytes, jtn_toolkit *out)
{
    jtn_reader r = {bytes.data, bytes.size, 0, 0};
    uint32_t count = jtn__get_count(&r, 8 + sizeof(jtn_file_id));
    char *path;

    for (uint32_t i = 0; i < count; i++)
        if (!is_as_it_was(&r))
            return false;
    jtn__get_raw(&r, &out->nvrtc_identity, sizeof out->nvrtc_identity);
    jtn__get_raw(&r, &out->headers_identity, sizeof out->headers_identity);
    path = get_path(&r);
    count = jtn__get_count(&r, 8);
    for (uint32_t i = 0; i < count && !r.bad; i++)
        if (jtn__list_add_take(&out->headers, get_path(&r)) != JTN_OK)
            r.bad = 1;
    if (!r.bad && r.at == r.size && path && jtn__nvrtc_at(path, &out->nvrtc) == JTN_OK)
        return true;
    jtn__free(path);
    jtn__toolkit_deinit(out);
    return false;
}

/* ---------------------------------------------------------------- looking ---- */

/* A witness that changed only just now proves nothing later: then nothing is remembered. */
static bool add_witness(jtn_buf *out, const char *path)
{
    jtn_file_id id = {0};

    if (jtn__file_id(path, &id) == JTN_OK && jtn__file_id_racy(&id))
        return false;
    jtn__put_text(out, path);
    jtn__buf_put(out, &id, sizeof id);
    return out->failed == JTN_OK;
}

/* The candidates up to the one that had it (what comes behind does not matter), and the folders they were listed in. */
static jtn_status add_candidates(const char *search_path, bool libraries, const char *found, jtn_list *paths)
{
    jtn_list candidates = {0};
    jtn_status status = jtn__cuda_candidates(search_path, libraries, &candidates);

    for (size_t i = 0; status == JTN_OK && i < candidates.count; i++) {
        char *package = jtn__path_dir(candidates.items[i]), *listed = package ? jtn__path_dir(package) : NULL;

        status = listed ? JTN_OK : JTN_ERROR_MEMORY;
        if (status == JTN_OK && !jtn__list_has(paths, listed))
            status = jtn__list_add(paths, listed);
        if (status == JTN_OK)
            status = jtn__list_add(paths, candidates.items[i]);
        jtn__free(package);
        jtn__free(listed);
        if (found && strcmp(candidates.items[i], found) == 0)
            break;
    }
    jtn__list_deinit(&candidates);
    return status;
}

/* Everything that was looked at, and what was found. */
static jtn_status list_witnesses(const char *search_path, const jtn_toolkit *toolkit, jtn_list *paths)
{
    const char *nvrtc = jtn__nvrtc_path(toolkit->nvrtc);
    char *folder = jtn__path_dir(nvrtc);
    jtn_status status = folder ? add_candidates(search_path, true, folder, paths) : JTN_ERROR_MEMORY;

    jtn__free(folder);
    JTN_TRY(status);
    JTN_TRY(add_candidates(search_path, false, toolkit->headers.count ? toolkit->headers.items[0] : NULL, paths));
    for (size_t i = 0; i < toolkit->headers.count; i++)
        JTN_TRY(jtn__list_addf(paths, "%s/%s", toolkit->headers.items[i], i == 0 ? "cuda_fp16.h" : "cuda/std/version"));
    return jtn__list_add(paths, nvrtc);
}

static void remember(jtn_cache *cache, const jtn_digest *name, const char *search_path, const jtn_toolkit *toolkit)
{
    jtn_list paths = {0};
    bool good = list_witnesses(search_path, toolkit, &paths) == JTN_OK && paths.count <= MAX_WITNESSES;
    jtn_buf bytes;

    jtn__buf_init(&bytes, 1 << 20);
    jtn__put_u32(&bytes, (uint32_t)paths.count);
    for (size_t i = 0; good && i < paths.count; i++)
        good = add_witness(&bytes, paths.items[i]);
    jtn__buf_put(&bytes, &toolkit->nvrtc_identity, sizeof toolkit->nvrtc_identity);
    jtn__buf_put(&bytes, &toolkit->headers_identity, sizeof toolkit->headers_identity);
    jtn__put_text(&bytes, jtn__nvrtc_path(toolkit->nvrtc));
    jtn__put_u32(&bytes, (uint32_t)toolkit->headers.count);
    for (size_t i = 0; i < toolkit->headers.count; i++)
        jtn__put_text(&bytes, toolkit->headers.items[i]);
    if (good && bytes.failed == JTN_OK)
        jtn__memo_put(cache, "toolkit", name, (jtn_view){bytes.data, bytes.size});
    jtn__buf_deinit(&bytes);
    jtn__list_deinit(&paths);
}

/* An NVRTC's identity by its file alone, so that a search that has to be done again does not read the library again. */
static jtn_status identify_nvrtc(jtn_cache *cache, const jtn_nvrtc *nvrtc, jtn_digest *out)
{
    const char *path = jtn__nvrtc_path(nvrtc);
    jtn_digest name;
    jtn_file_id id;
    jtn_hash hash;
    jtn_buf bytes;
    bool found = false;

    JTN_TRY(jtn__file_id(path, &id));
    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "nvrtc", path);
    jtn__hash_field(&hash, "id", &id, sizeof id);
    jtn__hash_final(&hash, &name);
    jtn__buf_init(&bytes, 4096);
    if (jtn__memo_get(cache, "identity", &name, &bytes, &found) == JTN_OK && found && bytes.size == sizeof *out)
        memcpy(out, bytes.data, sizeof *out);
    else
        found = false;
    jtn__buf_deinit(&bytes);
    if (found)
        return JTN_OK;
    JTN_TRY(jtn__nvrtc_identity(nvrtc, out));
    jtn__memo_put(cache, "identity", &name, (jtn_view){(const char *)out, sizeof *out});
    return JTN_OK;
}

static jtn_status look(jtn_cache *cache, const char *search_path, jtn_toolkit *out)
{
    JTN_TRY(jtn__nvrtc_find(search_path, &out->nvrtc));
    JTN_TRY(identify_nvrtc(cache, out->nvrtc, &out->nvrtc_identity));
    JTN_TRY(jtn__cuda_headers_find(search_path, &out->headers));
    return jtn__cuda_headers_identity(&out->headers, &out->headers_identity);
}

jtn_status jtn__toolkit_find(jtn_cache *cache, const char *search_path, jtn_toolkit *out)
{
    jtn_toolkit toolkit = {0};
    jtn_digest name;
    jtn_buf bytes;
    bool found = false;
    jtn_status status;

    settings_digest(search_path, &name);
    jtn__buf_init(&bytes, 1 << 20);
    status = jtn__memo_get(cache, "toolkit", &name, &bytes, &found);
    found = status == JTN_OK && found && believe((jtn_view){bytes.data, bytes.size}, &toolkit);
    jtn__buf_deinit(&bytes);
    if (!found) {
        status = look(cache, search_path, &toolkit);
        if (status == JTN_OK)
            remember(cache, &name, search_path, &toolkit);
    }
    if (status == JTN_OK)
        *out = toolkit;
    else
        jtn__toolkit_deinit(&toolkit);
    return status;
}

void jtn__toolkit_deinit(jtn_toolkit *toolkit)
{
    jtn__nvrtc_free(toolkit->nvrtc);
    jtn__list_deinit(&toolkit->headers);
    *toolkit = (jtn_toolkit){0};
}
