/* private.h — folders for entries that could not be stored: they live as long as the entry, at most as long as the process. */
#ifndef JTN_CACHE_PRIVATE_H
#define JTN_CACHE_PRIVATE_H

#include "base/error.h"

/* A new 0700 folder under TMPDIR, removed by jtn__private_dir_remove or when the process exits. */
jtn_status jtn__private_dir_make(char **out);
void jtn__private_dir_remove(const char *path);

#endif
