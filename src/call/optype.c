/* optype.c — an op's declared types, from their text, and whether a value suits one.
 *
 * The text is what the C++ templates of the op declared and what help() shows: "optional<list<i64>>". It is parsed once, at load. */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "call/launch.h"

#define MAX_DEPTH 16

static const struct {
    const char *name;
    jtn_op_kind kind;
    uint8_t bits;
} plain[] = {
    {"none", JTN_OP_NONE, 0}, {"bool", JTN_OP_BOOL, 8},     {"i8", JTN_OP_INT, 8},     {"i16", JTN_OP_INT, 16},
    {"i32", JTN_OP_INT, 32},  {"i64", JTN_OP_INT, 64},      {"u8", JTN_OP_UINT, 8},    {"u16", JTN_OP_UINT, 16},
    {"u32", JTN_OP_UINT, 32}, {"u64", JTN_OP_UINT, 64},     {"f32", JTN_OP_FLOAT, 32}, {"f64", JTN_OP_FLOAT, 64},
    {"str", JTN_OP_STR, 0},   {"tensor", JTN_OP_TENSOR, 0}, {"ptr", JTN_OP_PTR, 0},    {"any", JTN_OP_ANY, 0},
};

static const char *blanks(const char *at)
{
    while (*at == ' ')
        at++;
    return at;
}

static jtn_status parse(const char **at, jtn_op_type *out, int depth);

/* After "<": types separated by commas, up to ">". */
static jtn_status parse_inner(const char **at, jtn_op_type *out, int depth)
{
    *at = blanks(*at);
    if (**at == '>') {
        ++*at;
        return JTN_OK;
    }
    for (;;) {
        jtn_op_type *inner = jtn__realloc(out->inner, (out->inner_count + 1) * sizeof *inner);

        if (!inner)
            return JTN_ERROR_MEMORY;
        out->inner = inner;
        inner[out->inner_count] = (jtn_op_type){0};
        out->inner_count++;
        JTN_TRY(parse(at, &inner[out->inner_count - 1], depth + 1));
        *at = blanks(*at);
        if (**at == ',') {
            ++*at;
        } else if (**at == '>') {
            ++*at;
            return JTN_OK;
        } else {
            return jtn__fail(JTN_ERROR_CACHE, "a type ends in the middle");
        }
    }
}

static jtn_status parse(const char **at, jtn_op_type *out, int depth)
{
    size_t size;

    *at = blanks(*at);
    for (size = 0; isalnum((unsigned char)(*at)[size]);)
        size++;
    if (depth > MAX_DEPTH)
        return jtn__fail(JTN_ERROR_CACHE, "a type is nested too deep");
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strlen(plain[i].name) == size && memcmp(plain[i].name, *at, size) == 0) {
            *out = (jtn_op_type){.kind = plain[i].kind, .bits = plain[i].bits};
            *at += size;
            return JTN_OK;
        }
    if ((*at)[size] == '<') {
        bool is_list = size == 4 && memcmp(*at, "list", 4) == 0, is_tuple = size == 5 && memcmp(*at, "tuple", 5) == 0;
        bool is_optional = size == 8 && memcmp(*at, "optional", 8) == 0;

        out->kind = is_list ? JTN_OP_LIST : is_tuple ? JTN_OP_TUPLE : JTN_OP_OPTIONAL;
        if (is_list || is_tuple || is_optional) {
            *at += size + 1;
            JTN_TRY(parse_inner(at, out, depth));
            if (is_tuple || out->inner_count == 1)
                return JTN_OK;
        }
    }
    return jtn__fail(JTN_ERROR_CACHE, "\"%.60s\" is no type", *at);
}

jtn_status jtn__op_type_parse(const char *text, jtn_op_type *out)
{
    const char *at = text;
    jtn_op_type type = {0};
    jtn_status status = parse(&at, &type, 0);

    if (status == JTN_OK && *blanks(at))
        status = jtn__fail(JTN_ERROR_CACHE, "\"%s\" is no type", text);
    if (status == JTN_OK)
        *out = type;
    else
        jtn__op_type_deinit(&type);
    return status;
}

void jtn__op_type_deinit(jtn_op_type *type)
{
    for (size_t i = 0; i < type->inner_count; i++)
        jtn__op_type_deinit(&type->inner[i]);
    jtn__free(type->inner);
    *type = (jtn_op_type){0};
}

/* ---------------------------------------------------------------- acceptance ---- */

static bool fits_int(const jtn_op_type *type, const jtn_value *value)
{
    int64_t most = type->bits == 64 ? INT64_MAX : ((int64_t)1 << (type->bits - 1)) - 1;

    return (value->kind == JTN_INT && value->as.i >= -most - 1 && value->as.i <= most) || value->kind == JTN_BOOL;
}

static bool fits_uint(const jtn_op_type *type, const jtn_value *value)
{
    uint64_t most = type->bits == 64 ? UINT64_MAX : ((uint64_t)1 << type->bits) - 1;

    if (value->kind == JTN_UINT)
        return value->as.u <= most;
    return (value->kind == JTN_INT && value->as.i >= 0 && (uint64_t)value->as.i <= most) || value->kind == JTN_BOOL;
}

/* A finite double that would become infinite is out of range; infinities and NaN are themselves. */
static bool fits_float(const jtn_op_type *type, const jtn_value *value)
{
    if (value->kind == JTN_INT || value->kind == JTN_UINT || value->kind == JTN_BOOL)
        return true;
    return value->kind == JTN_FLOAT &&
           (type->bits == 64 || !isfinite(value->as.d) || fabs(value->as.d) <= (double)FLT_MAX);
}

static bool fits_list(const jtn_op_type *type, const jtn_value *value)
{
    if (value->kind != JTN_LIST || (type->kind == JTN_OP_TUPLE && value->size != type->inner_count))
        return false;
    for (uint32_t i = 0; i < value->size; i++)
        if (!jtn__op_accepts(&type->inner[type->kind == JTN_OP_TUPLE ? i : 0], &value->as.list[i]))
            return false;
    return true;
}

bool jtn__op_accepts(const jtn_op_type *type, const jtn_value *value)
{
    switch (type->kind) {
    case JTN_OP_NONE:
        return value->kind == JTN_NONE;
    case JTN_OP_BOOL:
        return value->kind == JTN_BOOL || (value->kind == JTN_INT && (value->as.i == 0 || value->as.i == 1));
    case JTN_OP_INT:
        return fits_int(type, value);
    case JTN_OP_UINT:
        return fits_uint(type, value);
    case JTN_OP_FLOAT:
        return fits_float(type, value);
    case JTN_OP_STR:
        return value->kind == JTN_STR;
    case JTN_OP_TENSOR:
        return value->kind == JTN_TENSOR || value->kind == JTN_DLTENSOR;
    case JTN_OP_PTR:
        return value->kind == JTN_PTR || value->kind == JTN_NONE || (value->kind == JTN_INT && value->as.i >= 0);
    case JTN_OP_ANY:
        return true;
    case JTN_OP_OPTIONAL:
        return value->kind == JTN_NONE || jtn__op_accepts(&type->inner[0], value);
    case JTN_OP_LIST:
    case JTN_OP_TUPLE:
        return fits_list(type, value);
    }
    return false;
}
