/* cxx_deps.c — what a host compile read, by the compiler's own account, and what it would have read had it been there. */
#include "compile/cxx_private.h"

#include <string.h>

#include "base/mem.h"

/* ---------------------------------------------------------------- make syntax ---- */

/* The next name, unescaped, into fresh memory; NULL at the end. The compilers write a blank as "\ ", with the backslashes
 * before it doubled, '#' as "\#", ':' as "\:" and '$' as "$$". */
static char *next_name(const char **at)
{
    const char *p = *at;
    jtn_buf name;

    jtn__buf_init(&name, 1 << 16);
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r' || (*p == '\\' && (p[1] == '\n' || p[1] == '\r')))
        p++;
    while (*p && *p != ' ' && *p != '\t' && *p != '\n' && *p != '\r') {
        size_t slashes = strspn(p, "\\");

        if (slashes && (p[slashes] == ' ' || p[slashes] == '\t')) {
            for (size_t i = 0; i < slashes / 2; i++)
                jtn__buf_put(&name, "\\", 1);
            p += slashes;
            if (slashes % 2 == 0)
                break;
            jtn__buf_put(&name, p++, 1);
        } else if (slashes && (p[1] == '#' || p[1] == ':')) {
            jtn__buf_put(&name, p + 1, 1);
            p += 2;
        } else if (slashes && (p[1] == '\n' || p[1] == '\r')) {
            break;
        } else {
            p += p[0] == '$' && p[1] == '$';
            jtn__buf_put(&name, p++, 1);
        }
    }
    *at = p;
    if (!name.size) {
        jtn__buf_deinit(&name);
        return NULL;
    }
    return jtn__buf_take(&name, NULL);
}

/* ---------------------------------------------------------------- places ---- */

static bool is_below(const char *path, const char *folder)
{
    size_t size = strlen(folder);

    return size && strncmp(path, folder, size) == 0 && (path[size] == '/' || folder[size - 1] == '/');
}

static bool is_system(const char *path, const char *data_dir)
{
    return is_below(path, data_dir) || is_below(path, "/usr/include") || is_below(path, "/usr/lib") ||
           strstr(path, "/lib/gcc/") || strstr(path, "/lib/clang/") || strstr(path, "/include/c++/");
}

/* The root with the longest folder that holds path; *rest is what follows. */
static uint32_t root_of(const jtn_host_job *job, const char *path, const char **rest)
{
    uint32_t root = JTN_ROOT_ABSOLUTE;
    size_t longest = 0;

    *rest = path;
    for (size_t i = 0; i < job->root_count; i++) {
        size_t size = job->roots[i] ? strlen(job->roots[i]) : 0;

        if (size > longest && is_below(path, job->roots[i])) {
            longest = size;
            root = (uint32_t)i;
            *rest = path + size + strspn(path + size, "/");
        }
    }
    return root;
}

static jtn_status add_dep(const jtn_host_job *job, const char *name, const jtn_list *skip, jtn_deps *deps)
{
    char *path = jtn__path_absolute(name);
    bool system, wanted = true;
    const char *rest;
    uint32_t root;
    jtn_status status = JTN_OK;

    if (!path)
        return JTN_ERROR_MEMORY;
    for (size_t i = 0; i < skip->count; i++)
        wanted &= !is_below(path, skip->items[i]);
    if (wanted) {
        system = is_system(path, job->data_dir);
        rest = path;
        root = system ? JTN_ROOT_ABSOLUTE : root_of(job, path, &rest);
        status = jtn__deps_add(deps, job->roots, root, rest, NULL, system);
    }
    jtn__free(path);
    return status;
}

jtn_status jtn__cxx_deps_read(const char *path, const jtn_host_job *job, const jtn_list *skip, jtn_deps *deps)
{
    jtn_buf text;
    const char *at;
    char *name = NULL;
    jtn_status status;

    jtn__buf_init(&text, 1 << 26);
    JTN_GO(jtn__file_read(path, &text));
    at = text.size ? text.data : "";
    jtn__free(next_name(&at)); /* the target, its colon with it */
    while ((name = next_name(&at))) {
        if (strcmp(name, ":") != 0)
            JTN_GO(add_dep(job, name, skip, deps));
        jtn__free(name);
    }
out:
    jtn__free(name);
    jtn__buf_deinit(&text);
    return status;
}

/* ---------------------------------------------------------------- absent ---- */

static jtn_status add_absent(const jtn_host_job *job, const char *folder, const char *name, jtn_deps *deps)
{
    char *path = jtn__path_join(folder, name), *plain = path ? jtn__path_absolute(path) : NULL;
    const char *rest;
    uint32_t root;
    jtn_status status = plain ? JTN_OK : JTN_ERROR_MEMORY;

    if (plain && !jtn__file_exists(plain)) {
        root = root_of(job, plain, &rest);
        status = jtn__deps_add_absent(deps, root, rest);
    }
    jtn__free(path);
    jtn__free(plain);
    return status;
}

/* How the header may have been asked for: its place below one of the folders that are searched. */
static jtn_status absent_for(const jtn_host_job *job, const jtn_list *folders, const char *path, jtn_deps *deps)
{
    for (size_t f = 0; f < folders->count; f++) {
        const char *name = path + strlen(folders->items[f]);

        if (!is_below(path, folders->items[f]))
            continue;
        name += strspn(name, "/");
        for (size_t before = 0; before < f; before++)
            JTN_TRY(add_absent(job, folders->items[before], name, deps));
    }
    return JTN_OK;
}

jtn_status jtn__cxx_deps_absent(const jtn_host_job *job, jtn_deps *deps)
{
    jtn_list folders = {0}, headers = {0};
    size_t count = deps->count;
    jtn_status status = JTN_OK;

    /* Quoted includes look beside the file that asks, then in the include folders, in their order. */
    for (size_t i = 0; i < job->source_count; i++) {
        char *folder = job->sources[i].path ? jtn__path_dir(job->sources[i].path) : NULL;

        if (folder && !jtn__list_has(&folders, folder))
            status = jtn__list_add_take(&folders, folder);
        else
            jtn__free(folder);
        JTN_GO(status);
    }
    for (size_t i = 0; i < count; i++) {
        const jtn_dep *dep = &deps->items[i];
        char *path;

        if (dep->system || dep->absent)
            continue;
        path =
            dep->root == JTN_ROOT_ABSOLUTE ? jtn__strdup(dep->path) : jtn__path_join(job->roots[dep->root], dep->path);
        JTN_GO(jtn__list_add_take(&headers, path));
    }
    for (size_t i = 0; i < headers.count; i++) {
        char *folder = jtn__path_dir(headers.items[i]);

        if (folder && !jtn__list_has(&folders, folder) && !jtn__list_has(job->include_dirs, folder))
            status = jtn__list_add_take(&folders, folder);
        else
            jtn__free(folder);
        JTN_GO(status);
    }
    JTN_GO(jtn__list_add_all(&folders, job->include_dirs));
    for (size_t i = 0; i < headers.count; i++)
        JTN_GO(absent_for(job, &folders, headers.items[i], deps));
out:
    jtn__list_deinit(&folders);
    jtn__list_deinit(&headers);
    return status;
}
