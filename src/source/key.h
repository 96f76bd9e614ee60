/* key.h — the labelled fields of the first key. Every label is in key.c, once. */
#ifndef JTN_SOURCE_KEY_H
#define JTN_SOURCE_KEY_H

#include "base/hash.h"
#include "model/unit.h"

/* What the unit does not know itself: who will compile it. NULL: that compiler has no part in it. */
typedef struct jtn_key_facts {
    const jtn_digest *library; /* this build of Jitney */
    const jtn_digest *cxx;
    const jtn_digest *nvrtc, *cuda_headers;
    const char *arch;
    const char *host_abi; /* only where the host code depends on it */
} jtn_key_facts;

/* The unit must have been read. material: the key's own story, kept in the entry. */
jtn_status jtn__key_first(const jtn_unit *unit, const jtn_key_facts *facts, jtn_digest *k1, jtn_buf *material);

#endif
