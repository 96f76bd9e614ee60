/* scan.h — the #include closure of a device text over the user's own folders, made self-contained.
 *
 * NVRTC matches in-memory headers by exact name only, so each user header reached gets a unique name, derived from its place
 * (root number and relative path, so that equal trees give equal text), and every #include (and __has_include) of it is
 * rewritten to that name; #line keeps the user's coordinates. Includes found in none of the user's folders are left for the
 * toolkit's. What was not read here cannot be compiled in. */
#ifndef JTN_SOURCE_SCAN_H
#define JTN_SOURCE_SCAN_H

#include "cache/cache.h"

typedef struct jtn_scan {
    char *text; /* the rewritten main text */
    jtn_list header_names, header_texts; /* for NVRTC, same length */
    jtn_deps deps;                        /* headers read, and names looked for and not found before the one found */
} jtn_scan;

/* roots: the build's folders: roots[source_root] is the source's own (NULL when it is a text), the include folders follow from
 * first_include on. name: the source's, for #line. Errors: IO for an unreadable header, ARGUMENT for a nesting over 200. */
jtn_status jtn__scan(const char *name, jtn_view text, char *const roots[], size_t root_count, uint32_t source_root,
                     uint32_t first_include, jtn_scan *out);
void jtn__scan_deinit(jtn_scan *scan);

#endif
