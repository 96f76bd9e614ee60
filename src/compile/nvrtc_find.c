/* nvrtc_find.c — which NVRTC, and who it is: looked for without opening it. */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compile/nvrtc.h"
#include "compile/nvrtc_private.h"

/* ---------------------------------------------------------------- finding ---- */

/* The newest libnvrtc.so.N in a folder; NULL when there is none. The "alt" build beside it is not it. */
static char *newest_in(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int best = -1;
    char name[64] = "";

    while (dir && (entry = readdir(dir))) {
        int major = 0, used = 0;

        if (strcmp(entry->d_name, "libnvrtc.so") == 0 && best < 0) {
            best = 0;
            strcpy(name, entry->d_name);
        } else if (sscanf(entry->d_name, "libnvrtc.so.%d%n", &major, &used) == 1 && !entry->d_name[used] &&
                   major > best) {
            best = major;
            snprintf(name, sizeof name, "libnvrtc.so.%d", major);
        }
    }
    if (dir)
        closedir(dir);
    return best < 0 ? NULL : jtn__path_join(folder, name);
}

static char *find_given(const char *given)
{
    return jtn__dir_exists(given) ? newest_in(given) : jtn__file_exists(given) ? jtn__strdup(given) : NULL;
}

/* What the loader itself would find. */
static char *find_by_loader(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "nvrtcVersion") : NULL;
        Dl_info info;

        if (symbol && dladdr(symbol, &info))
            return jtn__strdup(info.dli_fname);
    }
    return NULL;
}

static jtn_status not_found(const char *given, const jtn_list *candidates)
{
    jtn_buf places;
    jtn_status status;

    jtn__buf_init(&places, 0);
    for (size_t i = 0; i < candidates->count; i++)
        jtn__buf_printf(&places, "\n    %s", candidates->items[i]);
    status = jtn__fail(
        JTN_ERROR_TOOL,
        "NVRTC (libnvrtc.so.13 or .12), which compiles CUDA code, was not found%s%s; `pip install nvidia-cuda-nvrtc` "
        "brings it, or set JITNEY_NVRTC to the library or its folder. Looked in:%s\n    the loader's path",
        given ? ", and JITNEY_NVRTC names no such file or folder: " : "", given ? given : "",
        places.failed == JTN_OK && places.data ? places.data : "");
    jtn__buf_deinit(&places);
    return status;
}

jtn_status jtn__nvrtc_find(const char *search_path, jtn_nvrtc **out)
{
    const char *given = getenv("JITNEY_NVRTC");
    jtn_list candidates = {0};
    char *path = NULL;
    jtn_status status = JTN_OK;

    given = given && *given ? given : NULL;
    if (given) {
        path = find_given(given);
    } else {
        JTN_GO(jtn__cuda_candidates(search_path, true, &candidates));
        for (size_t i = 0; i < candidates.count && !path; i++)
            path = newest_in(candidates.items[i]);
        if (!path)
            path = find_by_loader();
    }
    if (!path) {
        status = not_found(given, &candidates);
        goto out;
    }
    status = jtn__nvrtc_at(path, out);
    if (status != JTN_OK)
        jtn__free(path);
out:
    jtn__list_deinit(&candidates);
    return status;
}

jtn_status jtn__nvrtc_at(char *path, jtn_nvrtc **out)
{
    jtn_nvrtc *nvrtc = jtn__alloc(sizeof *nvrtc);

    if (!nvrtc)
        return JTN_ERROR_MEMORY;
    nvrtc->path = path;
    *out = nvrtc;
    return JTN_OK;
}

void jtn__nvrtc_free(jtn_nvrtc *nvrtc)
{
    if (!nvrtc)
        return;
    jtn__free(nvrtc->path);
    jtn__free(nvrtc);
}

const char *jtn__nvrtc_path(const jtn_nvrtc *nvrtc)
{
    return nvrtc->path;
}

/* ---------------------------------------------------------------- identity ---- */

/* The build id in an ELF file's notes; false when there is none. */
static bool hash_build_id(const jtn_map *map, jtn_hash *hash)
{
    const Elf64_Ehdr *header = (const void *)map->data;
    const Elf64_Phdr *segments;

    if (map->size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phoff > map->size ||
        header->e_phnum > (map->size - header->e_phoff) / sizeof *segments)
        return false;
    segments = (const void *)(map->data + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        size_t at = segments[i].p_offset, end = at + segments[i].p_filesz;

        while (segments[i].p_type == PT_NOTE && end <= map->size && at + sizeof(Elf64_Nhdr) <= end) {
            const Elf64_Nhdr *note = (const void *)(map->data + at);
            size_t name = at + sizeof *note, value = name + ((note->n_namesz + 3u) & ~3u);

            if (value + note->n_descsz > end)
                return false;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(map->data + name, "GNU", 4) == 0) {
                jtn__hash_field(hash, "build id", map->data + value, note->n_descsz);
                return true;
            }
            at = value + ((note->n_descsz + 3u) & ~3u);
        }
    }
    return false;
}

jtn_status jtn__nvrtc_identity(const jtn_nvrtc *nvrtc, jtn_digest *out)
{
    jtn_hash hash;
    jtn_map map;

    JTN_TRY(jtn__file_map(nvrtc->path, &map));
    jtn__hash_init(&hash, NULL);
    if (!hash_build_id(&map, &hash))
        jtn__hash_field(&hash, "content", map.data, map.size);
    jtn__hash_final(&hash, out);
    jtn__file_unmap(&map);
    return JTN_OK;
}
