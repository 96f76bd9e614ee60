/* value.h — one argument or result: a kind and eight bytes.
 *
 * Shared by the C API (jitney.h) and by the table handed to compiled ops (abi.h), and small enough to include in both. */
#ifndef JITNEY_VALUE_H
#define JITNEY_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "jitney/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jtn_tensor jtn_tensor; /* abi.h: a reference-counted tensor as ops see it */

typedef enum {
    JTN_NONE = 0,     /* no value; for an optional or a pointer: absent, NULL */
    JTN_BOOL = 1,     /* i: 0 or 1 */
    JTN_INT = 2,      /* i: signed 64 bits */
    JTN_UINT = 3,     /* u: only for values above INT64_MAX; smaller ones travel as JTN_INT */
    JTN_FLOAT = 4,    /* d */
    JTN_STR = 5,      /* s, size: UTF-8, size bytes, NUL behind them */
    JTN_BYTES = 6,    /* p, size: a struct passed by value */
    JTN_PTR = 7,      /* p: a raw address, device or host as the parameter wants; nothing about it can be checked */
    JTN_DLTENSOR = 8, /* dl: borrowed for the call */
    JTN_TENSOR = 9,   /* t: borrowed as an argument, owned by the receiver as a result */
    JTN_LIST = 10     /* list, size: elements; lists and tuples alike */
} jtn_kind;

typedef struct jtn_value {
    int32_t kind;  /* a jtn_kind */
    uint32_t size; /* bytes (JTN_STR, JTN_BYTES) or elements (JTN_LIST); else 0 */
    union {
        int64_t i;
        uint64_t u;
        double d;
        const char *s;
        void *p;
        const DLTensor *dl;
        jtn_tensor *t;
        struct jtn_value *list;
    } as;
} jtn_value;

#ifdef __cplusplus
}
#endif
#endif
