/* prototype.c — the text of a C prototype → name, return type, parameters.
 *
 * For plain C functions called through libffi. The compiler checks the prototype against the definition (cxx.c), so this reader needs
 * to understand the types a call can convert, and to say clearly where it does not. */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "compile/signature.h"
#include "model/artifact.h"

typedef struct jtn_proto {
    const char *text, *at;
    jtn_status status;
} jtn_proto;

static bool complain(jtn_proto *p, const char *at, const char *what)
{
    if (p->status == JTN_OK)
        p->status = jtn__fail(JTN_ERROR_ARGUMENT, "the prototype \"%s\" cannot be read: %s\n    %s\n    %*s^", p->text,
                              what, p->text, (int)(at - p->text), "");
    return false;
}

static void blanks(jtn_proto *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static jtn_view peek_word(jtn_proto *p)
{
    size_t size = 0;

    blanks(p);
    while (isalnum((unsigned char)p->at[size]) || p->at[size] == '_')
        size++;
    return (jtn_view){p->at, size};
}

static bool word_is(jtn_view word, const char *text)
{
    return word.size == strlen(text) && memcmp(word.data, text, word.size) == 0;
}

static bool eat_char(jtn_proto *p, char c)
{
    blanks(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

/* ---------------------------------------------------------------- types ---- */

/* The words of an arithmetic type, counted: C lets them stand in any order. */
typedef struct jtn_words {
    int is_void, is_bool, is_char, is_short, is_int, is_long, is_signed, is_unsigned, is_float, is_double;
    int is_const, any;
    DLDataType named; /* of a typedef; bits 0: none */
    jtn_view typedef_name;
} jtn_words;

static const struct {
    const char *name;
    DLDataType dtype;
} typedefs[] = {
    {"int8_t", {kDLInt, 8, 1}},      {"int16_t", {kDLInt, 16, 1}},   {"int32_t", {kDLInt, 32, 1}},
    {"int64_t", {kDLInt, 64, 1}},    {"uint8_t", {kDLUInt, 8, 1}},   {"uint16_t", {kDLUInt, 16, 1}},
    {"uint32_t", {kDLUInt, 32, 1}},  {"uint64_t", {kDLUInt, 64, 1}}, {"size_t", {kDLUInt, 64, 1}},
    {"ssize_t", {kDLInt, 64, 1}},    {"ptrdiff_t", {kDLInt, 64, 1}}, {"intptr_t", {kDLInt, 64, 1}},
    {"uintptr_t", {kDLUInt, 64, 1}},
};

static bool take_word(jtn_words *w, jtn_view word)
{
    const struct {
        const char *text;
        int *count;
    } known[] = {{"void", &w->is_void},   {"bool", &w->is_bool},     {"_Bool", &w->is_bool},
                 {"char", &w->is_char},   {"short", &w->is_short},   {"int", &w->is_int},
                 {"long", &w->is_long},   {"signed", &w->is_signed}, {"unsigned", &w->is_unsigned},
                 {"float", &w->is_float}, {"double", &w->is_double}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (word_is(word, known[i].text))
            return w->any++, ++*known[i].count;
    for (size_t i = 0; i < sizeof typedefs / sizeof *typedefs && !w->any; i++)
        if (word_is(word, typedefs[i].name)) {
            w->named = typedefs[i].dtype;
            w->typedef_name = word;
            return w->any++, true;
        }
    return false;
}

static DLDataType dtype_of(const jtn_words *w)
{
    if (w->named.bits)
        return w->named;
    if (w->is_bool)
        return (DLDataType){kDLBool, 8, 1};
    if (w->is_float)
        return (DLDataType){kDLFloat, 32, 1};
    if (w->is_double)
        return (DLDataType){kDLFloat, 64, 1};
    return (DLDataType){w->is_unsigned ? kDLUInt : kDLInt, w->is_char ? 8 : w->is_short ? 16 : w->is_long ? 64 : 32, 1};
}

static bool is_qualifier(jtn_proto *p, jtn_view word, int *is_const)
{
    static const char *const words[] = {"const",        "volatile", "restrict", "__restrict",
                                        "__restrict__", "extern",   "static",   "inline"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (word_is(word, words[i])) {
            *is_const |= i == 0;
            p->at += word.size;
            return true;
        }
    return false;
}

/* "const float", "unsigned long int" … */
static bool read_base(jtn_proto *p, jtn_words *w)
{
    const char *begin;

    blanks(p);
    begin = p->at;
    for (;;) {
        jtn_view word = peek_word(p);

        if (word.size && is_qualifier(p, word, &w->is_const))
            continue;
        if (!word.size || !take_word(w, word))
            break;
        p->at += word.size;
    }
    if (!w->any)
        return complain(p, begin,
                        "this is no type it knows (C's scalars, stdint.h's names, size_t, bool, and pointers are)");
    if (w->is_double && w->is_long)
        return complain(p, begin, "long double cannot be passed");
    return true;
}

static bool make_type(jtn_proto *p, const jtn_words *w, int stars, jtn_type *out)
{
    DLDataType dtype = w->is_void ? (DLDataType){0} : dtype_of(w);
    const char *name = w->is_void                                       ? "void"
                       : w->typedef_name.size                           ? NULL
                       : w->is_char && !w->is_signed && !w->is_unsigned ? "char"
                                                                        : jtn__dtype_name(dtype);

    *out = (jtn_type){.kind = (uint8_t)(stars ? JTN_TYPE_POINTER : w->is_void ? JTN_TYPE_VOID : JTN_TYPE_SCALAR)};
    out->is_const = stars == 1 && w->is_const;
    if (stars < 2)
        out->dtype = dtype;
    out->size = out->align = stars ? 8 : dtype.bits / 8u;
    out->text = jtn__format("%s%.*s%s%.*s", w->is_const && stars ? "const " : "",
                            name ? (int)strlen(name) : (int)w->typedef_name.size, name ? name : w->typedef_name.data,
                            stars ? " " : "", stars, "********");
    if (!out->text)
        p->status = JTN_ERROR_MEMORY;
    return out->text != NULL;
}

static bool read_stars(jtn_proto *p, int *stars)
{
    int ignored = 0;

    for (;;) {
        jtn_view word = peek_word(p);

        if (word.size && is_qualifier(p, word, &ignored))
            continue;
        if (!eat_char(p, '*'))
            return *stars <= 8 || complain(p, p->at, "too many pointers");
        ++*stars;
    }
}

/* ---------------------------------------------------------------- parameters ---- */

static bool read_param(jtn_proto *p, size_t index, jtn_param *out)
{
    jtn_words words = {0};
    jtn_view name;
    int stars = 0;

    if (!read_base(p, &words) || !read_stars(p, &stars))
        return false;
    name = peek_word(p);
    p->at += name.size;
    if (eat_char(p, '[')) { /* an array parameter is a pointer */
        while (*p->at && *p->at != ']')
            p->at++;
        if (!eat_char(p, ']'))
            return complain(p, p->at, "a ']' is missing");
        stars++;
    }
    if (words.is_void && !stars)
        return complain(p, name.data, "a parameter cannot be void");
    out->name = name.size ? jtn__strndup(name.data, name.size) : jtn__format("arg%zu", index);
    if (!out->name)
        p->status = JTN_ERROR_MEMORY;
    return out->name && make_type(p, &words, stars, &out->type);
}

static bool is_void_list(jtn_proto *p)
{
    const char *begin = p->at;
    jtn_view word = peek_word(p);

    if (!word_is(word, "void"))
        return false;
    p->at += word.size;
    blanks(p);
    if (*p->at == ')')
        return true;
    p->at = begin;
    return false;
}

static bool read_param_list(jtn_proto *p, jtn_param **params, size_t *count)
{
    if (!eat_char(p, '('))
        return complain(p, p->at, "a '(' is missing");
    if (is_void_list(p) || (blanks(p), *p->at == ')'))
        return eat_char(p, ')');
    do {
        jtn_param *grown = jtn__realloc(*params, (*count + 1) * sizeof *grown);

        if (!grown) {
            p->status = JTN_ERROR_MEMORY;
            return false;
        }
        *params = grown;
        grown[*count] = (jtn_param){0};
        ++*count;
        if (!read_param(p, *count - 1, &grown[*count - 1]))
            return false;
    } while (eat_char(p, ','));
    return eat_char(p, ')') || complain(p, p->at, "a ',' or ')' is missing");
}

static bool read_head(jtn_proto *p, char **name, jtn_type *returns)
{
    jtn_words words = {0};
    jtn_view word;
    int stars = 0;

    if (!read_base(p, &words) || !read_stars(p, &stars))
        return false;
    word = peek_word(p);
    if (!word.size || isdigit((unsigned char)word.data[0]))
        return complain(p, p->at, "the function's name is missing");
    p->at += word.size;
    if (!(*name = jtn__strndup(word.data, word.size))) {
        p->status = JTN_ERROR_MEMORY;
        return false;
    }
    return make_type(p, &words, stars, returns);
}

jtn_status jtn__prototype_parse(const char *text, char **name, jtn_type *returns, jtn_param **params, size_t *count)
{
    jtn_proto p = {text, text, JTN_OK};
    jtn_param *found = NULL;
    jtn_type type = {0};
    char *found_name = NULL;
    size_t found_count = 0;
    bool good = read_head(&p, &found_name, &type) && read_param_list(&p, &found, &found_count);

    if (good) {
        eat_char(&p, ';');
        blanks(&p);
        good = !*p.at || complain(&p, p.at, "there is more behind it");
    }
    if (!good) {
        jtn__free(found_name);
        jtn__type_deinit(&type);
        jtn__param_list_deinit(found, found_count);
        return p.status;
    }
    *name = found_name;
    *returns = type;
    *params = found;
    *count = found_count;
    return JTN_OK;
}
