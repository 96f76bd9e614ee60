/* unit.h — sources, options and wishes as one owned, validated value. */
#ifndef JTN_MODEL_UNIT_H
#define JTN_MODEL_UNIT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/file.h"

typedef enum { JTN_LANG_C, JTN_LANG_CXX, JTN_LANG_CUDA } jtn_lang;

typedef struct jtn_source {
    char *name;    /* what diagnostics show: a text's name, or a file's path relative to the sources' common folder */
    char *given;   /* the path as it was given, for messages; NULL for a text */
    char *path;    /* absolute; NULL for a text */
    char *text;    /* filled at jtn_load for a file */
    size_t size;
    jtn_lang lang;
    jtn_file_id id; /* of the file as it was read; zero for a text, and when it was changed only just now */
} jtn_source;

typedef struct jtn_wish { /* a function to make callable */
    char *text; /* bare name or C prototype */
    char *doc;  /* may be NULL */
    bool prototype;
} jtn_wish;

struct jtn_unit {
    jtn_runtime *rt;
    char *name;
    const char *base_name; /* last part of name, into name */
    jtn_source *sources;
    size_t source_count;
    jtn_wish *wishes;
    size_t wish_count;
    jtn_list cflags, cuda_cflags, ldflags; /* already split into single arguments */
    jtn_list include_dirs;                 /* absolute */
    jtn_list defines;
    char *arch, *target; /* NULL: default */
    bool verbose;
    char *instance;      /* a template instance asked for by name expression; NULL for the unit itself */
};

jtn_status jtn__unit_copy(const jtn_unit *unit, jtn_unit **out);

/* Reads the sources that are files and names them: relative to their common folder. NOT_FOUND, IO, ARGUMENT (none). */
jtn_status jtn__unit_read(jtn_unit *unit);

#endif
