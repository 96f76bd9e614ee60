/* type.h — the C types that kernels and plain C functions take: scalars, pointers, structs by value. */
#ifndef JTN_MODEL_TYPE_H
#define JTN_MODEL_TYPE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/wire.h"

typedef enum { JTN_TYPE_VOID = 0, JTN_TYPE_SCALAR = 1, JTN_TYPE_POINTER = 2, JTN_TYPE_STRUCT = 3 } jtn_type_kind;

/* dtype: of the scalar, or of what the pointer points to; bits == 0 when that is void, a struct, a pointer or unknown: then
 * any tensor may be passed. float16 is {kDLFloat, 16, 1}, bfloat16 {kDLBfloat, 16, 1}, bool {kDLBool, 8, 1}; vector types
 * (float4) have lanes and, by value, kind STRUCT; a pointer to float4 takes float tensors (lanes are ignored in the check).
 * Enums are scalars of their underlying type. */
typedef struct jtn_type {
    uint8_t kind;
    bool is_const; /* a pointer to const */
    DLDataType dtype;
    uint32_t size, align; /* as passed; 0 for void */
    char *text;           /* "const float *"; owned */
} jtn_type;

typedef struct jtn_param {
    char *name; /* owned; never NULL */
    jtn_type type;
} jtn_param;

/* "float", "half", "__nv_bfloat16", "unsigned char", … ; "?" for one that C++ has no name for. */
const char *jtn__dtype_name(DLDataType dtype);
/* The names tensors' users know: "float32", "int64", "bfloat16". Writes into out, returns it. */
char *jtn__dtype_tensor_name(DLDataType dtype, char out[24]);

jtn_status jtn__type_scalar(DLDataType dtype, jtn_type *out);
void jtn__type_deinit(jtn_type *type);
void jtn__type_put(jtn_buf *buf, const jtn_type *type);
jtn_status jtn__type_get(jtn_reader *r, jtn_type *out); /* CACHE on nonsense, MEMORY */

#endif
