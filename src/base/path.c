/* path.c — paths as text. Nothing here looks at the file system, but for the current folder. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

char *jtn__path_join(const char *folder, const char *name)
{
    size_t size = strlen(folder);

    if (name[0] == '/' || size == 0)
        return jtn__strdup(name);
    return jtn__format("%s%s%s", folder, folder[size - 1] == '/' ? "" : "/", name);
}

char *jtn__path_dir(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return jtn__strdup(".");
    return jtn__strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

const char *jtn__path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Folds "." and ".." in place; path is absolute. */
static void fold(char *path)
{
    char *out = path;
    const char *in = path;

    while (*in) {
        size_t size;

        while (*in == '/')
            in++;
        size = strcspn(in, "/");
        if (size == 2 && in[0] == '.' && in[1] == '.') {
            while (out > path && *--out != '/')
                continue;
        } else if (size && !(size == 1 && in[0] == '.')) {
            *out++ = '/';
            memmove(out, in, size);
            out += size;
        }
        in += size;
    }
    if (out == path)
        *out++ = '/';
    *out = 0;
}

char *jtn__path_absolute(const char *path)
{
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    char *absolute = jtn__path_join(here ? here : "/", path);

    free(here);
    if (absolute)
        fold(absolute);
    return absolute;
}

char *jtn__path_relative(const char *path, const char *base)
{
    size_t size = strlen(base);

    while (size && base[size - 1] == '/')
        size--;
    if (strncmp(path, base, size) != 0 || path[size] != '/')
        return NULL;
    while (path[size] == '/')
        size++;
    return jtn__strdup(path + size);
}
