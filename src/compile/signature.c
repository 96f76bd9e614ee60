/* signature.c — parameter types out of the names compilers give.
 *
 * A lowered name is a mangled name, read by demangle.c: of the type probe's instance for a kernel, or of the kernel itself. C prototypes
 * are in prototype.c. */
#include "compile/signature.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "compile/demangle.h"
#include "model/artifact.h"

/* Enums become jtn_enum<underlying>, classes jtn_struct<size, align, class>; built from compiler builtins alone. */
const char jtn__signature_probe[] =
    "template<class jtn_U_> struct jtn_enum; template<unsigned long jtn_S_, unsigned long jtn_A_, class jtn_T_> struct "
    "jtn_struct; "
    "template<class jtn_T_, bool jtn_E_, bool jtn_C_> struct jtn_map_ { using jtn_type_ = jtn_T_; }; "
    "template<class jtn_T_> struct jtn_map_<jtn_T_, true, false> { using jtn_type_ = "
    "jtn_enum<__underlying_type(jtn_T_)>; }; "
    "template<class jtn_T_> struct jtn_map_<jtn_T_, false, true> { using jtn_type_ = jtn_struct<sizeof(jtn_T_), "
    "alignof(jtn_T_), jtn_T_>; }; "
    "template<class jtn_T_> struct jtn_map { using jtn_type_ = typename jtn_map_<jtn_T_, __is_enum(jtn_T_), "
    "__is_class(jtn_T_) || "
    "__is_union(jtn_T_)>::jtn_type_; }; "
    "template<class jtn_F_> struct jtn_params; "
    "template<class jtn_R_, class... jtn_A_> struct jtn_params<jtn_R_ (*)(jtn_A_...)> { using jtn_type_ = void "
    "(*)(typename "
    "jtn_map<jtn_A_>::jtn_type_...); }; "
    "template<class jtn_R_, class... jtn_A_> struct jtn_params<jtn_R_ (*)(jtn_A_...) noexcept> : jtn_params<jtn_R_ "
    "(*)(jtn_A_...)> { }; "
    "template<class jtn_F_> __device__ char jtn_sig = 0;\n";

char *jtn__signature_expression(const char *kernel)
{
    return jtn__format("&jtn_sig<typename jtn_params<decltype(&%s)>::jtn_type_>", kernel);
}

/* ---------------------------------------------------------------- whole names ---- */

static bool add_param(jtn_param **params, size_t *count, jtn_type *type)
{
    jtn_param *grown = jtn__realloc(*params, (*count + 1) * sizeof *grown);
    char *name = jtn__format("arg%zu", *count);

    if (grown)
        *params = grown;
    if (!grown || !name) {
        jtn__free(name);
        jtn__type_deinit(type);
        return false;
    }
    grown[(*count)++] = (jtn_param){name, *type};
    return true;
}

/* Types up to `stop` (or the end of the text when it is 0); "v" alone is none. */
static bool read_params(jtn_demangler *d, char stop, jtn_param **params, size_t *count)
{
    while (d->at < d->end && *d->at != stop) {
        jtn_type type = {0};

        if (!jtn__demangle_type(d, &type))
            return false;
        if (type.kind == JTN_TYPE_VOID && *count == 0 && (d->at == d->end || *d->at == stop)) {
            jtn__type_deinit(&type);
            return true;
        }
        if (!add_param(params, count, &type))
            return d->bad = true, false;
    }
    return !d->bad;
}

static jtn_status finish(jtn_demangler *d, const char *name, jtn_param *found, size_t found_count, jtn_param **params,
                         size_t *count)
{
    bool bad = d->bad;

    jtn__demangle_deinit(d);
    if (bad) {
        jtn__param_list_deinit(found, found_count);
        return jtn__fail(JTN_ERROR_UNSUPPORTED, "the parameter types in \"%s\" cannot be read", name);
    }
    *params = found;
    *count = found_count;
    return JTN_OK;
}

jtn_status jtn__signature_parse(const char *lowered, jtn_param **params, size_t *count)
{
    jtn_demangler d = {.at = lowered, .end = lowered + strlen(lowered)};
    jtn_param *found = NULL;
    size_t found_count = 0;

    if (!jtn__demangle_eat(&d, "_Z7jtn_sigIPFv"))
        return jtn__fail(JTN_ERROR_UNSUPPORTED, "\"%s\" is no name of the type probe", lowered);
    jtn__demangle_remember(&d, "jtn_sig");
    if (!read_params(&d, 'E', &found, &found_count) || !jtn__demangle_eat(&d, "EE"))
        d.bad = true;
    return finish(&d, lowered, found, found_count, params, count);
}

/* The name of a function that is no template; its own last part is no substitution. */
static bool read_function_name(jtn_demangler *d, jtn_buf *name)
{
    bool nested;

    if (!jtn__demangle_eat(d, "_Z"))
        return d->bad = true, false;
    jtn__demangle_eat(d, "L");
    nested = jtn__demangle_eat(d, "N");
    do {
        if (name->size)
            jtn__demangle_remember(d, name->data);
        if (d->at == d->end || !isdigit((unsigned char)*d->at) || !jtn__demangle_source_name(d, name))
            return d->bad = true, false;
    } while (nested && !jtn__demangle_eat(d, "E"));
    return !d->bad && (d->at == d->end || *d->at != 'I');
}

jtn_status jtn__signature_of_mangled(const char *mangled, char **name, jtn_param **params, size_t *count)
{
    jtn_demangler d = {.at = mangled, .end = mangled + strlen(mangled)};
    jtn_param *found = NULL;
    size_t found_count = 0;
    jtn_status status;
    jtn_buf text;

    jtn__buf_init(&text, 1 << 16);
    if (!read_function_name(&d, &text) || !read_params(&d, 0, &found, &found_count) || d.at != d.end)
        d.bad = true;
    /* without the probe, a class's size is unknown */
    for (size_t i = 0; i < found_count; i++)
        if (found[i].type.kind == JTN_TYPE_STRUCT && !found[i].type.size)
            d.bad = true;
    status = finish(&d, mangled, found, found_count, params, count);
    if (status == JTN_OK && !(*name = jtn__buf_take(&text, NULL))) {
        jtn__param_list_deinit(*params, *count);
        status = JTN_ERROR_MEMORY;
    }
    jtn__buf_deinit(&text);
    return status;
}

jtn_status jtn__mangled_name(const char *mangled, char **name)
{
    jtn_demangler d = {.at = mangled, .end = mangled + strlen(mangled)};
    jtn_status status;
    jtn_buf text;

    jtn__buf_init(&text, 1 << 16);
    if (!read_function_name(&d, &text))
        status = jtn__fail(JTN_ERROR_UNSUPPORTED, "the name of \"%s\" cannot be read", mangled);
    else
        status = (*name = jtn__buf_take(&text, NULL)) ? JTN_OK : JTN_ERROR_MEMORY;
    jtn__demangle_deinit(&d);
    jtn__buf_deinit(&text);
    return status;
}
