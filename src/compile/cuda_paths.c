/* cuda_paths.c — where NVRTC and the CUDA headers lie: pip's wheels, conda, a toolkit.
 *
 * Looking costs stats and folder listings, never an open library. The first place that has it wins; the message for none lists all. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compile/nvrtc.h"
#include "compile/nvrtc_private.h"

/* ---------------------------------------------------------------- candidate folders ---- */

static int by_name_descending(const void *a, const void *b)
{
    return strcmp(*(char *const *)b, *(char *const *)a);
}

/* Every "<site>/nvidia/<package>/<inner>", newest package name first: cu13 before cuda_nvrtc before cu12. */
static jtn_status add_wheels(const char *site, const char *inner, jtn_list *out)
{
    char *folder = jtn__path_join(site, "nvidia");
    DIR *dir = folder ? opendir(folder) : NULL;
    struct dirent *entry;
    jtn_list names = {0};
    jtn_status status = folder ? JTN_OK : JTN_ERROR_MEMORY;

    while (dir && status == JTN_OK && (entry = readdir(dir)))
        if (strncmp(entry->d_name, "cu", 2) == 0)
            status = jtn__list_add(&names, entry->d_name);
    if (dir)
        closedir(dir);
    if (names.count)
        qsort(names.items, names.count, sizeof *names.items, by_name_descending);
    for (size_t i = 0; status == JTN_OK && i < names.count; i++)
        status = jtn__list_addf(out, "%s/%s/%s", folder, names.items[i], inner);
    jtn__list_deinit(&names);
    jtn__free(folder);
    return status;
}

static jtn_status add_sites(const char *sites, const char *inner, jtn_list *out)
{
    for (const char *at = sites ? sites : ""; *at;) {
        size_t size = strcspn(at, ":");
        char *site = jtn__strndup(at, size);
        jtn_status status = site ? (size ? add_wheels(site, inner, out) : JTN_OK) : JTN_ERROR_MEMORY;

        jtn__free(site);
        JTN_TRY(status);
        at += size + (at[size] == ':');
    }
    return JTN_OK;
}

/* A virtual environment's site-packages, for programs that are not Python: "<venv>/lib/python3.x/site-packages". */
static jtn_status add_venv(const char *inner, jtn_list *out)
{
    const char *venv = getenv("VIRTUAL_ENV");
    char *lib = venv && *venv ? jtn__path_join(venv, "lib") : NULL;
    DIR *dir = lib ? opendir(lib) : NULL;
    struct dirent *entry;
    jtn_status status = JTN_OK;

    while (dir && status == JTN_OK && (entry = readdir(dir))) {
        char *site;

        if (strncmp(entry->d_name, "python", 6) != 0)
            continue;
        site = jtn__format("%s/%s/site-packages", lib, entry->d_name);
        status = site ? add_wheels(site, inner, out) : JTN_ERROR_MEMORY;
        jtn__free(site);
    }
    if (dir)
        closedir(dir);
    jtn__free(lib);
    return status;
}

static jtn_status add_below(const char *variable, const char *const *inner, size_t count, jtn_list *out)
{
    const char *root = getenv(variable);

    for (size_t i = 0; root && *root && i < count; i++)
        JTN_TRY(jtn__list_addf(out, "%s/%s", root, inner[i]));
    return JTN_OK;
}

jtn_status jtn__cuda_candidates(const char *search_path, bool libraries, jtn_list *out)
{
    static const char *const lib_inner[] = {"lib64", "lib", "targets/x86_64-linux/lib"};
    static const char *const include_inner[] = {"include", "targets/x86_64-linux/include"};
    const char *const *inner = libraries ? lib_inner : include_inner;
    size_t count = libraries ? 3 : 2;

    JTN_TRY(add_sites(search_path, libraries ? "lib" : "include", out));
    JTN_TRY(add_venv(libraries ? "lib" : "include", out));
    JTN_TRY(add_below("CONDA_PREFIX", inner, count, out));
    JTN_TRY(add_below("CUDA_HOME", inner, count, out));
    JTN_TRY(add_below("CUDA_PATH", inner, count, out));
    for (size_t i = 0; i < count; i++)
        JTN_TRY(jtn__list_addf(out, "/usr/local/cuda/%s", inner[i]));
    return JTN_OK;
}

/* ---------------------------------------------------------------- headers ---- */

/* The folder that has <cuda_fp16.h>, and CCCL's: inside it, or beside it in wheels of its own. */
static jtn_status add_cccl(const jtn_list *candidates, const char *include, jtn_list *dirs)
{
    static const char *const inner[] = {"cccl", "../cccl", "."};

    for (size_t c = 0; c <= candidates->count; c++) {
        const char *base = c == 0 ? include : candidates->items[c - 1];

        for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
            char *folder = jtn__format("%s/%s", base, inner[i]);
            char *probe = folder ? jtn__format("%s/cuda/std/version", folder) : NULL;
            bool found = probe && jtn__file_exists(probe);
            char *absolute = found ? jtn__path_absolute(folder) : NULL;

            jtn__free(probe);
            jtn__free(folder);
            if (found)
                return absolute && jtn__list_has(dirs, absolute) ? (jtn__free(absolute), JTN_OK)
                                                                 : jtn__list_add_take(dirs, absolute);
        }
    }
    return JTN_OK;
}

jtn_status jtn__cuda_headers_find(const char *search_path, jtn_list *dirs)
{
    jtn_list candidates = {0};
    jtn_status status;

    JTN_GO(jtn__cuda_candidates(search_path, false, &candidates));
    for (size_t i = 0; i < candidates.count; i++) {
        char *probe = jtn__path_join(candidates.items[i], "cuda_fp16.h");
        bool found = probe && jtn__file_exists(probe);

        jtn__free(probe);
        if (!found)
            continue;
        JTN_GO(jtn__list_add(dirs, candidates.items[i]));
        JTN_GO(add_cccl(&candidates, candidates.items[i], dirs));
        break;
    }
out:
    jtn__list_deinit(&candidates);
    return status;
}

/* The headers that every release changes, by version macros or by their size. */
static const char *const tells[] = {"cuda.h",           "cuda_runtime_api.h",        "cuda_fp16.h",    "cuda_fp16.hpp",
                                    "cuda/std/version", "cuda/std/__cccl/version.h", "cub/version.cuh"};

/* By content and not by place: two machines with the same headers share entries. */
jtn_status jtn__cuda_headers_identity(const jtn_list *dirs, jtn_digest *out)
{
    jtn_hash hash;

    jtn__hash_init(&hash, NULL);
    for (size_t i = 0; i < dirs->count; i++)
        for (size_t k = 0; k < sizeof tells / sizeof *tells; k++) {
            char *path = jtn__path_join(dirs->items[i], tells[k]);
            jtn_digest digest;

            if (!path)
                return JTN_ERROR_MEMORY;
            if (jtn__file_digest(path, &digest) == JTN_OK) {
                jtn__hash_text(&hash, "header", tells[k]);
                jtn__hash_field(&hash, "content", digest.bytes, sizeof digest.bytes);
            }
            jtn__free(path);
        }
    jtn__hash_final(&hash, out);
    return JTN_OK;
}
