/* demangle.h — a reader of types in mangled names. Inside compile/ only. */
#ifndef JTN_COMPILE_DEMANGLE_H
#define JTN_COMPILE_DEMANGLE_H

#include "model/type.h"

#define JTN_MAX_SUBSTITUTIONS 128

typedef struct jtn_demangler {
    const char *at, *end;
    jtn_type known[JTN_MAX_SUBSTITUTIONS]; /* what S_, S0_, … stand for; owned */
    int known_count;
    int depth;
    bool bad; /* once set, every read fails */
} jtn_demangler;

bool jtn__demangle_type(jtn_demangler *d, jtn_type *out);
bool jtn__demangle_eat(jtn_demangler *d, const char *text); /* takes the text if it is next */
/* "4name" behind what out has, joined by "::"; anonymous namespaces leave no part. */
bool jtn__demangle_source_name(jtn_demangler *d, jtn_buf *out);
/* The next substitution stands for this name. */
void jtn__demangle_remember(jtn_demangler *d, const char *text);
void jtn__demangle_deinit(jtn_demangler *d);

#endif
