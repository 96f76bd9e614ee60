/* private.c — folders for entries that could not be stored.
 *
 * The list is for the exit handler. A child of fork inherits the list but not the folders: only the process that made one
 * removes it. */
#include "cache/private.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static jtn_list folders;
static pid_t owner;

static void remove_all(void)
{
    if (owner == getpid())
        for (size_t i = 0; i < folders.count; i++)
            jtn__dir_remove(folders.items[i]);
    jtn__list_deinit(&folders);
}

jtn_status jtn__private_dir_make(char **out)
{
    const char *parent = getenv("TMPDIR");
    char *path;
    jtn_status status;

    JTN_TRY(jtn__dir_make_unique(parent && *parent ? parent : "/tmp", "jitney-", &path));
    pthread_mutex_lock(&lock);
    if (owner != getpid()) {
        if (owner == 0)
            atexit(remove_all);
        jtn__list_deinit(&folders);
        owner = getpid();
    }
    status = jtn__list_add(&folders, path);
    pthread_mutex_unlock(&lock);
    if (status != JTN_OK) {
        jtn__dir_remove(path);
        jtn__free(path);
        return status;
    }
    *out = path;
    return JTN_OK;
}

void jtn__private_dir_remove(const char *path)
{
    bool ours = false;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; owner == getpid() && i < folders.count && !ours; i++)
        if (strcmp(folders.items[i], path) == 0) {
            jtn__free(folders.items[i]);
            folders.items[i] = folders.items[--folders.count];
            folders.items[folders.count] = NULL;
            ours = true;
        }
    pthread_mutex_unlock(&lock);
    if (ours)
        jtn__dir_remove(path);
}
