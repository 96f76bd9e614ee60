/* demangle.c — a reader of types in Itanium-mangled names.
 *
 * It knows the grammar far enough for anything a kernel can take: builtins, pointers, qualifiers, references, arrays, functions, nested and
 * template names, literals, and substitutions. It keeps what a call needs (kind, size, constness, text) and skips the rest. */
#include "compile/demangle.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

#define MAX_DEPTH 64

static bool read_type(jtn_demangler *d, jtn_type *out);

static bool fail(jtn_demangler *d)
{
    d->bad = true;
    return false;
}

static bool eat(jtn_demangler *d, const char *text)
{
    size_t size = strlen(text);

    if (d->bad || (size_t)(d->end - d->at) < size || memcmp(d->at, text, size) != 0)
        return false;
    d->at += size;
    return true;
}

static bool copy_type(const jtn_type *from, jtn_type *to)
{
    *to = *from;
    to->text = jtn__strdup(from->text ? from->text : "");
    return to->text != NULL;
}

static void remember(jtn_demangler *d, const jtn_type *type)
{
    if (d->known_count == JTN_MAX_SUBSTITUTIONS || !copy_type(type, &d->known[d->known_count])) {
        d->bad = true;
        return;
    }
    d->known_count++;
}

static bool set_text(jtn_type *type, char *text)
{
    jtn__free(type->text);
    type->text = text;
    return text != NULL;
}

typedef struct jtn_builtin {
    const char *code;
    DLDataType dtype;
    const char *text;
} jtn_builtin;

/* long and long long are both 64 bits on the systems this library runs on. */
static const jtn_builtin builtins[] = {
    {"b", {kDLBool, 8, 1}, "bool"},       {"c", {kDLInt, 8, 1}, "char"},
    {"a", {kDLInt, 8, 1}, "signed char"}, {"h", {kDLUInt, 8, 1}, "unsigned char"},
    {"s", {kDLInt, 16, 1}, "short"},      {"t", {kDLUInt, 16, 1}, "unsigned short"},
    {"i", {kDLInt, 32, 1}, "int"},        {"j", {kDLUInt, 32, 1}, "unsigned int"},
    {"l", {kDLInt, 64, 1}, "long"},       {"m", {kDLUInt, 64, 1}, "unsigned long"},
    {"x", {kDLInt, 64, 1}, "long long"},  {"y", {kDLUInt, 64, 1}, "unsigned long long"},
    {"f", {kDLFloat, 32, 1}, "float"},    {"d", {kDLFloat, 64, 1}, "double"},
    {"w", {kDLInt, 32, 1}, "wchar_t"},    {"Ds", {kDLUInt, 16, 1}, "char16_t"},
    {"Di", {kDLUInt, 32, 1}, "char32_t"},
};

static bool read_builtin(jtn_demangler *d, jtn_type *out)
{
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (eat(d, builtins[i].code)) {
            *out = (jtn_type){.kind = JTN_TYPE_SCALAR, .dtype = builtins[i].dtype};
            out->size = out->align = builtins[i].dtype.bits / 8u;
            return set_text(out, jtn__strdup(builtins[i].text));
        }
    if (eat(d, "v"))
        return *out = (jtn_type){.kind = JTN_TYPE_VOID}, set_text(out, jtn__strdup("void"));
    return false;
}

/* Classes of the toolkit that are numbers, and its vector types. */
static void recognise(jtn_type *type)
{
    static const struct {
        const char *name;
        DLDataType dtype;
    } classes[] = {
        {"__half", {kDLFloat, 16, 1}},    {"__nv_bfloat16", {kDLBfloat, 16, 1}},
        {"c10::Half", {kDLFloat, 16, 1}}, {"c10::BFloat16", {kDLBfloat, 16, 1}},
        {"__half2", {kDLFloat, 16, 2}},   {"__nv_bfloat162", {kDLBfloat, 16, 2}},
    };
    static const struct {
        const char *name;
        DLDataType dtype;
    } vectors[] = {
        {"char", {kDLInt, 8, 1}},      {"uchar", {kDLUInt, 8, 1}},    {"short", {kDLInt, 16, 1}},
        {"ushort", {kDLUInt, 16, 1}},  {"int", {kDLInt, 32, 1}},      {"uint", {kDLUInt, 32, 1}},
        {"long", {kDLInt, 64, 1}},     {"ulong", {kDLUInt, 64, 1}},   {"float", {kDLFloat, 32, 1}},
        {"double", {kDLFloat, 64, 1}}, {"longlong", {kDLInt, 64, 1}}, {"ulonglong", {kDLUInt, 64, 1}},
    };

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(type->text, classes[i].name) == 0)
            type->dtype = classes[i].dtype;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        size_t size = strlen(vectors[i].name);

        if (strncmp(type->text, vectors[i].name, size) == 0 && type->text[size] >= '1' && type->text[size] <= '4' &&
            !type->text[size + 1]) {
            type->dtype = vectors[i].dtype;
            type->dtype.lanes = (uint16_t)(type->text[size] - '0');
        }
    }
}

static size_t read_number(jtn_demangler *d)
{
    size_t number = 0;

    if (d->at == d->end || !isdigit((unsigned char)*d->at))
        d->bad = true;
    while (!d->bad && d->at < d->end && isdigit((unsigned char)*d->at)) {
        number = number * 10 + (size_t)(*d->at++ - '0');
        d->bad = number > 1 << 20;
    }
    return number;
}

/* "4name" → text appended to out. Anonymous namespaces leave no part. */
static bool read_source_name(jtn_demangler *d, jtn_buf *out)
{
    size_t size = read_number(d);

    if (d->bad || size > (size_t)(d->end - d->at))
        return fail(d);
    if (size >= 10 && memcmp(d->at, "_GLOBAL__N", 10) == 0) {
        d->at += size;
        return true;
    }
    jtn__buf_printf(out, "%s%.*s", out->size ? "::" : "", (int)size, d->at);
    d->at += size;
    return true;
}

/* A literal's value, and for the probe's structs the size and alignment. */
static bool read_literal(jtn_demangler *d, jtn_buf *text, uint64_t *value)
{
    jtn_type type = {0};
    bool minus;

    if (eat(d, "_Z")) /* a function or variable: skipped to its end */
        return fail(d);
    if (!read_type(d, &type))
        return fail(d);
    minus = eat(d, "n");
    *value = read_number(d);
    if (strcmp(type.text, "bool") == 0)
        jtn__buf_printf(text, "%s", *value ? "true" : "false");
    else
        jtn__buf_printf(text, "%s%llu", minus ? "-" : "", (unsigned long long)*value);
    jtn__type_deinit(&type);
    return eat(d, "E") || fail(d);
}

typedef struct jtn_arguments {
    uint64_t values[2]; /* the first two literals */
    int value_count;
    jtn_type last; /* the last type argument; owned */
} jtn_arguments;

static bool read_one_argument(jtn_demangler *d, jtn_buf *text, jtn_arguments *arguments)
{
    jtn_type type = {0};
    uint64_t value;

    if (eat(d, "L")) {
        if (!read_literal(d, text, &value))
            return false;
        if (arguments->value_count < 2)
            arguments->values[arguments->value_count++] = value;
        return true;
    }
    if (eat(d, "J")) { /* a pack */
        for (bool first = true; !eat(d, "E"); first = false) {
            if (d->bad || d->at == d->end)
                return fail(d);
            if (!first)
                jtn__buf_puts(text, ", ");
            if (!read_one_argument(d, text, arguments))
                return false;
        }
        return true;
    }
    if (!read_type(d, &type))
        return fail(d);
    jtn__buf_puts(text, type.text);
    jtn__type_deinit(&arguments->last);
    arguments->last = type;
    return true;
}

/* After "I": arguments up to "E", as "<a, b>". */
static bool read_arguments(jtn_demangler *d, jtn_buf *text, jtn_arguments *arguments)
{
    jtn__buf_puts(text, "<");
    for (bool first = true; !eat(d, "E"); first = false) {
        if (d->bad || d->at == d->end)
            return fail(d);
        if (!first)
            jtn__buf_puts(text, ", ");
        if (!read_one_argument(d, text, arguments))
            return false;
    }
    jtn__buf_puts(text, ">");
    return text->failed == JTN_OK || fail(d);
}

static bool read_substitution(jtn_demangler *d, jtn_type *out)
{
    size_t index = 0;

    if (eat(d, "t")) /* St: std:: */
        return *out = (jtn_type){.kind = JTN_TYPE_STRUCT}, set_text(out, jtn__strdup("std"));
    if (!eat(d, "_")) {
        while (d->at < d->end && (isdigit((unsigned char)*d->at) || isupper((unsigned char)*d->at))) {
            index = index * 36 + (size_t)(isdigit((unsigned char)*d->at) ? *d->at - '0' : *d->at - 'A' + 10);
            d->at++;
        }
        index++;
        if (!eat(d, "_"))
            return fail(d);
    }
    if (index >= (size_t)d->known_count)
        return fail(d);
    return copy_type(&d->known[index], out) || fail(d);
}

/* The probe's own templates turn back into what they stand for. */
static bool apply_probe(jtn_type *type, const char *name, jtn_arguments *arguments)
{
    if (strcmp(name, "jtn_enum") == 0 && arguments->last.text) {
        DLDataType dtype = arguments->last.dtype;

        type->kind = JTN_TYPE_SCALAR;
        type->dtype = dtype;
        type->size = type->align = arguments->last.size;
        return set_text(type, jtn__format("enum (%s)", arguments->last.text));
    }
    if (strcmp(name, "jtn_struct") == 0 && arguments->last.text && arguments->value_count == 2) {
        type->kind = JTN_TYPE_STRUCT;
        type->size = (uint32_t)arguments->values[0];
        type->align = (uint32_t)arguments->values[1];
        type->dtype = arguments->last.dtype;
        if (type->dtype.lanes == 1 && type->dtype.bits)
            type->kind = JTN_TYPE_SCALAR; /* half, bfloat16 */
        return set_text(type, jtn__strdup(arguments->last.text));
    }
    return true;
}

/* A class name: one part, or N … E; each prefix and the whole are substitutions. `text` holds what came before. */
static bool read_parts(jtn_demangler *d, jtn_type *out, jtn_buf *text, bool nested)
{
    jtn_arguments arguments = {0};
    char *name = NULL;
    bool good = true;

    while (good && !d->bad) {
        bool last;

        if (eat(d, "I")) {
            jtn__free(name);
            name = jtn__strdup(text->data ? text->data : "");
            good = name && read_arguments(d, text, &arguments);
        } else if (d->at < d->end && isdigit((unsigned char)*d->at)) {
            good = read_source_name(d, text);
        } else {
            good = fail(d);
        }
        last = nested ? d->at < d->end && *d->at == 'E' : !(d->at < d->end && *d->at == 'I');
        if (good) {
            *out = (jtn_type){.kind = JTN_TYPE_STRUCT, .text = NULL};
            out->text = jtn__strdup(text->data ? text->data : "");
            if (out->text && name)
                good = apply_probe(out, name, &arguments);
            if (out->text && out->kind == JTN_TYPE_STRUCT && !out->dtype.bits)
                recognise(out);
            if (!out->text || !good)
                good = fail(d);
            else
                remember(d, out);
        }
        if (last)
            break;
        if (good)
            jtn__type_deinit(out);
    }
    jtn__type_deinit(&arguments.last);
    jtn__free(name);
    return good && !d->bad && (!nested || eat(d, "E") || fail(d));
}

static bool read_class(jtn_demangler *d, jtn_type *out, const char *prefix, bool nested)
{
    jtn_buf text;
    bool good;

    jtn__buf_init(&text, 1 << 16);
    jtn__buf_puts(&text, prefix);
    good = read_parts(d, out, &text, nested);
    jtn__buf_deinit(&text);
    return good;
}

static bool read_nested(jtn_demangler *d, jtn_type *out)
{
    jtn_type prefix = {0};
    bool good;

    if (!eat(d, "S"))
        return read_class(d, out, "", true);
    if (!read_substitution(d, &prefix))
        return fail(d);
    good = read_class(d, out, prefix.text, true);
    jtn__type_deinit(&prefix);
    return good;
}

/* S…: a substitution, perhaps with arguments or (St) a name behind it. */
static bool read_substituted(jtn_demangler *d, jtn_type *out)
{
    jtn_type base = {0};
    bool more, good;

    if (!read_substitution(d, &base))
        return fail(d);
    more = d->at < d->end && (*d->at == 'I' || (strcmp(base.text, "std") == 0 && isdigit((unsigned char)*d->at)));
    if (!more) {
        *out = base;
        return true;
    }
    good = read_class(d, out, base.text, false);
    jtn__type_deinit(&base);
    return good;
}

static bool read_function(jtn_demangler *d, jtn_type *out)
{
    while (!eat(d, "E")) {
        jtn_type ignored = {0};

        if (d->bad || d->at == d->end || !read_type(d, &ignored))
            return fail(d);
        jtn__type_deinit(&ignored);
    }
    *out = (jtn_type){.kind = JTN_TYPE_STRUCT};
    if (!set_text(out, jtn__strdup("function")))
        return fail(d);
    remember(d, out);
    return !d->bad;
}

/* P, R and O: a pointer (a reference is passed as one). */
static bool read_pointer(jtn_demangler *d, jtn_type *out, const char *mark)
{
    jtn_type inner = {0};

    if (!read_type(d, &inner))
        return fail(d);
    *out = (jtn_type){.kind = JTN_TYPE_POINTER, .is_const = inner.is_const, .size = 8, .align = 8};
    if (inner.kind == JTN_TYPE_SCALAR || (inner.kind == JTN_TYPE_STRUCT && inner.dtype.bits))
        out->dtype = inner.dtype;
    set_text(out, jtn__format("%s%s%s", inner.text, inner.text[strlen(inner.text) - 1] == '*' ? "" : " ", mark));
    jtn__type_deinit(&inner);
    if (!out->text)
        return fail(d);
    remember(d, out);
    return !d->bad;
}

static bool read_qualified(jtn_demangler *d, jtn_type *out, bool is_const)
{
    if (!read_type(d, out))
        return fail(d);
    if (is_const) {
        out->is_const = true;
        /* what the const stands on is a pointer: "float *const" */
        if (!set_text(out, out->kind == JTN_TYPE_POINTER ? jtn__format("%sconst", out->text)
                                                         : jtn__format("const %s", out->text)))
            return fail(d);
        if (out->kind == JTN_TYPE_POINTER)
            out->is_const = false;
    }
    remember(d, out);
    return !d->bad;
}

static bool read_array(jtn_demangler *d, jtn_type *out)
{
    size_t count = isdigit((unsigned char)*d->at) ? read_number(d) : 0;

    if (!eat(d, "_") || !read_type(d, out))
        return fail(d);
    out->size *= (uint32_t)count;
    out->kind = JTN_TYPE_STRUCT;
    if (!set_text(out, jtn__format("%s[%zu]", out->text, count)))
        return fail(d);
    remember(d, out);
    return !d->bad;
}

static bool read_type_inner(jtn_demangler *d, jtn_type *out)
{
    if (d->at == d->end)
        return fail(d);
    if (read_builtin(d, out))
        return true;
    if (eat(d, "P"))
        return read_pointer(d, out, "*");
    if (eat(d, "R"))
        return read_pointer(d, out, "&");
    if (eat(d, "O"))
        return read_pointer(d, out, "&&");
    if (eat(d, "VK") || eat(d, "rK") || eat(d, "K"))
        return read_qualified(d, out, true);
    if (eat(d, "V") || eat(d, "r"))
        return read_qualified(d, out, false);
    if (eat(d, "F"))
        return eat(d, "Y"), read_function(d, out);
    if (eat(d, "A"))
        return d->at < d->end && read_array(d, out);
    if (eat(d, "N"))
        return read_nested(d, out);
    if (eat(d, "S"))
        return read_substituted(d, out);
    if (isdigit((unsigned char)*d->at))
        return read_class(d, out, "", false);
    return fail(d);
}

static bool read_type(jtn_demangler *d, jtn_type *out)
{
    bool good;

    if (d->bad || ++d->depth > MAX_DEPTH)
        return fail(d);
    good = read_type_inner(d, out);
    d->depth--;
    if (!good)
        jtn__type_deinit(out);
    return good;
}

/* ---------------------------------------------------------------- for signature.c ---- */

bool jtn__demangle_type(jtn_demangler *d, jtn_type *out)
{
    return read_type(d, out);
}

bool jtn__demangle_eat(jtn_demangler *d, const char *text)
{
    return eat(d, text);
}

bool jtn__demangle_source_name(jtn_demangler *d, jtn_buf *out)
{
    return read_source_name(d, out);
}

void jtn__demangle_remember(jtn_demangler *d, const char *text)
{
    jtn_type type = {.kind = JTN_TYPE_STRUCT, .text = jtn__strdup(text)};

    if (type.text)
        remember(d, &type);
    else
        d->bad = true;
    jtn__type_deinit(&type);
}

void jtn__demangle_deinit(jtn_demangler *d)
{
    for (int i = 0; i < d->known_count; i++)
        jtn__type_deinit(&d->known[i]);
}
