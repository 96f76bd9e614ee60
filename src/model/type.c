/* type.c — the C types that kernels and plain C functions take: names, sizes, and their stored form. */
#include "model/type.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Every scalar there is a C++ name for. */
static const struct {
    DLDataType dtype;
    const char *name, *tensor_name;
} scalars[] = {
    {{kDLBool, 8, 1}, "bool", "bool"},
    {{kDLInt, 8, 1}, "signed char", "int8"},
    {{kDLInt, 16, 1}, "short", "int16"},
    {{kDLInt, 32, 1}, "int", "int32"},
    {{kDLInt, 64, 1}, "long long", "int64"},
    {{kDLUInt, 8, 1}, "unsigned char", "uint8"},
    {{kDLUInt, 16, 1}, "unsigned short", "uint16"},
    {{kDLUInt, 32, 1}, "unsigned int", "uint32"},
    {{kDLUInt, 64, 1}, "unsigned long long", "uint64"},
    {{kDLFloat, 16, 1}, "__half", "float16"},
    {{kDLFloat, 32, 1}, "float", "float32"},
    {{kDLFloat, 64, 1}, "double", "float64"},
    {{kDLBfloat, 16, 1}, "__nv_bfloat16", "bfloat16"},
    {{kDLComplex, 64, 1}, "complex<float>", "complex64"},
    {{kDLComplex, 128, 1}, "complex<double>", "complex128"},
};

#define SCALAR_COUNT (sizeof scalars / sizeof *scalars)

static size_t find(DLDataType dtype)
{
    size_t i = 0;

    while (i < SCALAR_COUNT && (scalars[i].dtype.code != dtype.code || scalars[i].dtype.bits != dtype.bits))
        i++;
    return i;
}

const char *jtn__dtype_name(DLDataType dtype)
{
    size_t i = find(dtype);

    return i < SCALAR_COUNT ? scalars[i].name : "?";
}

char *jtn__dtype_tensor_name(DLDataType dtype, char out[24])
{
    size_t i = find(dtype);

    if (i < SCALAR_COUNT && dtype.lanes <= 1)
        snprintf(out, 24, "%s", scalars[i].tensor_name);
    else if (i < SCALAR_COUNT)
        snprintf(out, 24, "%s x %u", scalars[i].tensor_name, dtype.lanes);
    else
        snprintf(out, 24, "dtype(%u, %u bits)", dtype.code, dtype.bits);
    return out;
}

jtn_status jtn__type_scalar(DLDataType dtype, jtn_type *out)
{
    char *text = jtn__strdup(jtn__dtype_name(dtype));

    if (!text)
        return JTN_ERROR_MEMORY;
    *out = (jtn_type){
        .kind = JTN_TYPE_SCALAR, .dtype = dtype, .size = dtype.bits / 8u, .align = dtype.bits / 8u, .text = text};
    return JTN_OK;
}

void jtn__type_deinit(jtn_type *type)
{
    jtn__free(type->text);
    *type = (jtn_type){0};
}

void jtn__type_put(jtn_buf *buf, const jtn_type *type)
{
    jtn__put_u8(buf, type->kind);
    jtn__put_u8(buf, type->is_const);
    jtn__put_u8(buf, type->dtype.code);
    jtn__put_u8(buf, type->dtype.bits);
    jtn__put_u32(buf, type->dtype.lanes);
    jtn__put_u32(buf, type->size);
    jtn__put_u32(buf, type->align);
    jtn__put_text(buf, type->text);
}

jtn_status jtn__type_get(jtn_reader *r, jtn_type *out)
{
    jtn_type type = {0};
    jtn_view text;

    type.kind = jtn__get_u8(r);
    type.is_const = jtn__get_u8(r) != 0;
    type.dtype.code = jtn__get_u8(r);
    type.dtype.bits = jtn__get_u8(r);
    type.dtype.lanes = (uint16_t)jtn__get_u32(r);
    type.size = jtn__get_u32(r);
    type.align = jtn__get_u32(r);
    text = jtn__get_bytes(r);
    if (r->bad || type.kind > JTN_TYPE_STRUCT || (text.size && memchr(text.data, 0, text.size)))
        return jtn__fail(JTN_ERROR_CACHE, "a stored type cannot be read");
    if (type.kind == JTN_TYPE_SCALAR && (type.size > 16 || type.size != type.dtype.bits / 8u))
        return jtn__fail(JTN_ERROR_CACHE, "a stored scalar type has a wrong size");
    if (!(type.text = jtn__strndup(text.data, text.size)))
        return JTN_ERROR_MEMORY;
    *out = type;
    return JTN_OK;
}
