/* value.c — values as text: as Python would write them, and as a message describes them. Cold code only. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/launch.h"

/* The shortest digits that read back as the same number, as Python's repr gives them. */
static void float_text(double d, char out[40])
{
    if (isnan(d) || isinf(d)) {
        snprintf(out, 40, "float('%s')", isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, 38, "%.*g", digits, d);
        if (strtod(out, NULL) == d)
            break;
    }
    if (!strpbrk(out, ".e"))
        strcat(out, ".0");
}

static void put_str(jtn_buf *out, const jtn_value *value)
{
    jtn__buf_puts(out, "'");
    for (uint32_t i = 0; i < value->size; i++) {
        char c = value->as.s[i];

        if (c == '\n')
            jtn__buf_puts(out, "\\n");
        else
            jtn__buf_printf(out, "%s%c", c == '\'' || c == '\\' ? "\\" : "", c);
    }
    jtn__buf_puts(out, "'");
}

void jtn__value_put(jtn_buf *out, const jtn_value *value)
{
    char text[40];

    switch (value->kind) {
    case JTN_NONE:
        jtn__buf_puts(out, "None");
        return;
    case JTN_BOOL:
        jtn__buf_puts(out, value->as.i ? "True" : "False");
        return;
    case JTN_INT:
        jtn__buf_printf(out, "%lld", (long long)value->as.i);
        return;
    case JTN_UINT:
        jtn__buf_printf(out, "%llu", (unsigned long long)value->as.u);
        return;
    case JTN_FLOAT:
        float_text(value->as.d, text);
        jtn__buf_puts(out, text);
        return;
    case JTN_STR:
        put_str(out, value);
        return;
    case JTN_LIST:
        jtn__buf_puts(out, "[");
        for (uint32_t i = 0; i < value->size; i++) {
            jtn__buf_puts(out, i ? ", " : "");
            jtn__value_put(out, &value->as.list[i]);
        }
        jtn__buf_puts(out, "]");
        return;
    default:
        jtn__buf_puts(out, "...");
    }
}

static void describe_tensor(jtn_buf *out, const DLTensor *t)
{
    char dtype[24];

    jtn__dtype_tensor_name(t->dtype, dtype);
    jtn__buf_printf(out, "%s %s tensor of shape (", strchr("aeiou", dtype[0]) ? "an" : "a", dtype);
    for (int i = 0; i < t->ndim; i++)
        jtn__buf_printf(out, "%s%lld", i ? ", " : "", (long long)t->shape[i]);
    jtn__buf_printf(out, "%s) on ", t->ndim == 1 ? "," : "");
    if (t->device.device_type == kDLCUDA)
        jtn__buf_printf(out, "cuda:%d", t->device.device_id);
    else
        jtn__buf_puts(out, t->device.device_type == kDLCPU ? "the CPU" : "another kind of device");
}

void jtn__value_describe(jtn_buf *out, const jtn_value *value)
{
    switch (value->kind) {
    case JTN_INT:
    case JTN_UINT:
        jtn__buf_puts(out, "the int ");
        break;
    case JTN_FLOAT:
        jtn__buf_puts(out, "the float ");
        break;
    case JTN_STR:
        jtn__buf_puts(out, "the str ");
        break;
    case JTN_LIST:
        jtn__buf_puts(out, "the list ");
        break;
    case JTN_BYTES:
        jtn__buf_printf(out, "a struct of %u bytes", value->size);
        return;
    case JTN_PTR:
        jtn__buf_puts(out, "an address");
        return;
    case JTN_DLTENSOR:
        describe_tensor(out, value->as.dl);
        return;
    case JTN_TENSOR:
        describe_tensor(out, &value->as.t->dl);
        return;
    default:
        break;
    }
    jtn__value_put(out, value);
}
