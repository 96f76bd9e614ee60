/* unit.c — sources, options and wishes as one owned, validated value.
 *
 * Everything is checked where it is added, so that a complaint names the call that caused it. Sources that are files are
 * read by jtn__unit_read at load: the bytes that are hashed are the bytes that are compiled. */
#include "model/unit.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "model/options.h"

/* ---------------------------------------------------------------- checks ---- */

static bool is_identifier(const char *text, size_t size)
{
    if (size == 0 || isdigit((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    return true;
}

static jtn_status check_name(const char *name)
{
    const char *part = name;

    if (!name)
        return jtn__fail(JTN_ERROR_ARGUMENT, "the module has no name; give one, as in \"axpy\"");
    for (;;) {
        size_t size = strcspn(part, ".");

        if (!is_identifier(part, size) || size > 150)
            return jtn__fail(
                JTN_ERROR_ARGUMENT,
                "\"%.200s\" cannot name a module: it must be a Python identifier (letters, digits, '_', at most "
                "150), or several joined by '.'",
                name);
        if (!part[size])
            return JTN_OK;
        part += size + 1;
    }
}

static jtn_lang lang_of(const char *name)
{
    const char *dot = strrchr(jtn__path_base(name), '.');

    if (dot && strcmp(dot, ".c") == 0)
        return JTN_LANG_C;
    if (dot && (strcmp(dot, ".cu") == 0 || strcmp(dot, ".cuh") == 0))
        return JTN_LANG_CUDA;
    return JTN_LANG_CXX;
}

/* ---------------------------------------------------------------- building ---- */

jtn_status jtn_unit_new(jtn_runtime *rt, const char *name, jtn_unit **out)
{
    jtn_unit *unit;
    const char *dot;

    if (!rt || !out)
        return jtn__fail(JTN_ERROR_ARGUMENT,
                         "jtn_unit_new: rt and out must not be NULL; open the library with jtn_open first");
    JTN_TRY(check_name(name));
    unit = jtn__alloc(sizeof *unit);
    if (!unit || !(unit->name = jtn__strdup(name))) {
        jtn__free(unit);
        return JTN_ERROR_MEMORY;
    }
    unit->rt = rt;
    dot = strrchr(unit->name, '.');
    unit->base_name = dot ? dot + 1 : unit->name;
    *out = unit;
    return JTN_OK;
}

static void source_deinit(jtn_source *source)
{
    jtn__free(source->name);
    jtn__free(source->given);
    jtn__free(source->path);
    jtn__free(source->text);
}

void jtn_unit_free(jtn_unit *unit)
{
    if (!unit)
        return;
    for (size_t i = 0; i < unit->source_count; i++)
        source_deinit(&unit->sources[i]);
    for (size_t i = 0; i < unit->wish_count; i++) {
        jtn__free(unit->wishes[i].text);
        jtn__free(unit->wishes[i].doc);
    }
    jtn__free(unit->sources);
    jtn__free(unit->wishes);
    jtn__list_deinit(&unit->cflags);
    jtn__list_deinit(&unit->cuda_cflags);
    jtn__list_deinit(&unit->ldflags);
    jtn__list_deinit(&unit->include_dirs);
    jtn__list_deinit(&unit->defines);
    jtn__free(unit->name);
    jtn__free(unit->arch);
    jtn__free(unit->target);
    jtn__free(unit->instance);
    jtn__free(unit);
}

/* Takes the three strings, also on failure. */
static jtn_status add_source(jtn_unit *unit, char *name, char *path, char *text, size_t size)
{
    jtn_source source = {.name = name, .path = path, .text = text, .size = size};
    jtn_source *sources = NULL;

    if (name && (path || text))
        sources = jtn__realloc(unit->sources, (unit->source_count + 1) * sizeof *sources);
    if (!sources) {
        source_deinit(&source);
        return JTN_ERROR_MEMORY;
    }
    source.lang = lang_of(path ? path : name);
    unit->sources = sources;
    sources[unit->source_count++] = source;
    return JTN_OK;
}

/* Bytes of a byte order mark, which some editors put first and NVRTC does not take. */
static size_t mark_size(const char *text, size_t size)
{
    return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

jtn_status jtn_unit_add_file(jtn_unit *unit, const char *path)
{
    if (!unit || !path || !*path)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_unit_add_file: unit and path must not be NULL or empty");
    JTN_TRY(add_source(unit, jtn__strdup(jtn__path_base(path)), jtn__path_absolute(path), NULL, 0));
    unit->sources[unit->source_count - 1].given = jtn__strdup(path);
    return unit->sources[unit->source_count - 1].given ? JTN_OK : JTN_ERROR_MEMORY;
}

jtn_status jtn_unit_add_text(jtn_unit *unit, const char *name, const char *text, size_t size)
{
    size_t mark;

    if (!unit || !name || !*name || !text)
        return jtn__fail(JTN_ERROR_ARGUMENT,
                         "jtn_unit_add_text: unit, name and text must not be NULL, nor the name empty");
    if (strpbrk(name, "\n\r\"\\"))
        return jtn__fail(JTN_ERROR_ARGUMENT,
                         "a source cannot be named \"%.100s\": quotes, backslashes and newlines are not allowed", name);
    if (size == JTN_WHOLE)
        size = strlen(text);
    if (memchr(text, 0, size))
        return jtn__fail(JTN_ERROR_ARGUMENT, "the source \"%.200s\" holds a NUL byte at offset %zu; it is no text",
                         name, (size_t)((const char *)memchr(text, 0, size) - text));
    mark = mark_size(text, size);
    return add_source(unit, jtn__strdup(name), NULL, jtn__strndup(text + mark, size - mark), size - mark);
}

jtn_status jtn_unit_add_function(jtn_unit *unit, const char *function, const char *doc)
{
    jtn_wish wish = {0};
    jtn_wish *wishes;

    if (!unit || !function || !*function)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_unit_add_function: unit and function must not be NULL or empty");
    wish.prototype = strchr(function, '(') != NULL;
    for (const char *c = function; !wish.prototype && *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != ':')
            return jtn__fail(
                JTN_ERROR_ARGUMENT,
                "\"%.200s\" names no function: give a bare name (\"forward\", \"ns::forward\") or a whole C "
                "prototype (\"float dot(const float *a, const float *b, int n)\")",
                function);
    wishes = jtn__realloc(unit->wishes, (unit->wish_count + 1) * sizeof *wishes);
    if (!wishes)
        return JTN_ERROR_MEMORY;
    unit->wishes = wishes;
    wish.text = jtn__strdup(function);
    wish.doc = doc && *doc ? jtn__strdup(doc) : NULL;
    if (!wish.text || (doc && *doc && !wish.doc)) {
        jtn__free(wish.text);
        jtn__free(wish.doc);
        return JTN_ERROR_MEMORY;
    }
    wishes[unit->wish_count++] = wish;
    return JTN_OK;
}

static jtn_status add_define(jtn_unit *unit, const char *value)
{
    size_t size = strcspn(value, "=");

    if (!is_identifier(value, size))
        return jtn__fail(JTN_ERROR_ARGUMENT, "\"%.200s\" defines no macro: give NAME or NAME=VALUE", value);
    return jtn__list_add(&unit->defines, value);
}

static jtn_status replace(char **slot, char *value)
{
    if (!value)
        return JTN_ERROR_MEMORY;
    jtn__free(*slot);
    *slot = value;
    return JTN_OK;
}

jtn_status jtn_unit_add_option(jtn_unit *unit, jtn_option option, const char *value)
{
    if (!unit || !value)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_unit_add_option: unit and value must not be NULL");
    switch (option) {
    case JTN_OPTION_CFLAGS:
        return jtn__options_split(value, &unit->cflags);
    case JTN_OPTION_CUDA_CFLAGS:
        return jtn__options_split(value, &unit->cuda_cflags);
    case JTN_OPTION_LDFLAGS:
        return jtn__options_split(value, &unit->ldflags);
    case JTN_OPTION_INCLUDE_DIR:
        return *value ? jtn__list_add_take(&unit->include_dirs, jtn__path_absolute(value)) : JTN_OK;
    case JTN_OPTION_DEFINE:
        return add_define(unit, value);
    case JTN_OPTION_ARCH:
        return replace(&unit->arch, jtn__strdup(value));
    case JTN_OPTION_TARGET:
        if (strcmp(value, "cuda") != 0 && strcmp(value, "host") != 0)
            return jtn__fail(JTN_ERROR_ARGUMENT, "\"%.100s\" is no target: there are \"cuda\" and \"host\"", value);
        return replace(&unit->target, jtn__strdup(value));
    case JTN_OPTION_VERBOSE:
        unit->verbose = strcmp(value, "0") != 0 && *value;
        return JTN_OK;
    }
    return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_unit_add_option: there is no option number %d", (int)option);
}

/* ---------------------------------------------------------------- copy and read ---- */

jtn_status jtn__unit_copy(const jtn_unit *unit, jtn_unit **out)
{
    jtn_unit *copy = NULL;
    jtn_status status = jtn_unit_new(unit->rt, unit->name, &copy);

    if (status != JTN_OK)
        return status;
    for (size_t i = 0; i < unit->source_count; i++) {
        const jtn_source *s = &unit->sources[i];

        JTN_GO(add_source(copy, jtn__strdup(s->name), s->path ? jtn__strdup(s->path) : NULL,
                          s->text ? jtn__strndup(s->text, s->size) : NULL, s->size));
        copy->sources[i].lang = s->lang;
        copy->sources[i].id = s->id;
        if (s->given && !(copy->sources[i].given = jtn__strdup(s->given)))
            JTN_GO(JTN_ERROR_MEMORY);
    }
    for (size_t i = 0; i < unit->wish_count; i++)
        JTN_GO(jtn_unit_add_function(copy, unit->wishes[i].text, unit->wishes[i].doc));
    JTN_GO(jtn__list_add_all(&copy->cflags, &unit->cflags));
    JTN_GO(jtn__list_add_all(&copy->cuda_cflags, &unit->cuda_cflags));
    JTN_GO(jtn__list_add_all(&copy->ldflags, &unit->ldflags));
    JTN_GO(jtn__list_add_all(&copy->include_dirs, &unit->include_dirs));
    JTN_GO(jtn__list_add_all(&copy->defines, &unit->defines));
    if (unit->arch)
        JTN_GO(replace(&copy->arch, jtn__strdup(unit->arch)));
    if (unit->target)
        JTN_GO(replace(&copy->target, jtn__strdup(unit->target)));
    if (unit->instance)
        JTN_GO(replace(&copy->instance, jtn__strdup(unit->instance)));
    copy->verbose = unit->verbose;
    *out = copy;
    return JTN_OK;
out:
    jtn_unit_free(copy);
    return status;
}

/* Cuts folder (owned) back until path lies below it. */
static void narrow(char *folder, const char *path)
{
    for (;;) {
        size_t size = strlen(folder);

        if (size <= 1 || (strncmp(path, folder, size) == 0 && path[size] == '/'))
            return;
        char *slash = strrchr(folder, '/');
        slash[slash == folder] = 0;
    }
}

static jtn_status name_files(jtn_unit *unit)
{
    char *common = NULL;
    jtn_status status = JTN_OK;

    for (size_t i = 0; i < unit->source_count; i++) {
        const char *path = unit->sources[i].path;

        if (!path)
            continue;
        if (!common && !(common = jtn__path_dir(path)))
            return JTN_ERROR_MEMORY;
        narrow(common, path);
    }
    for (size_t i = 0; common && i < unit->source_count; i++)
        if (unit->sources[i].path)
            JTN_GO(replace(&unit->sources[i].name, jtn__path_relative(unit->sources[i].path, common)));
out:
    jtn__free(common);
    return status;
}

static jtn_status read_source(jtn_source *source)
{
    jtn_buf text;
    jtn_status status;

    if (!source->path || source->text)
        return JTN_OK;
    jtn__buf_init(&text, 0);
    if (jtn__file_id(source->path, &source->id) != JTN_OK || jtn__file_id_racy(&source->id))
        source->id = (jtn_file_id){0};
    status = jtn__file_read(source->path, &text);
    if (status == JTN_ERROR_NOT_FOUND)
        status = jtn__fail(status, "there is no source file \"%s\"; relative paths count from the current folder",
                           source->path);
    if (status == JTN_OK && text.size && memchr(text.data, 0, text.size))
        status = jtn__fail(JTN_ERROR_ARGUMENT, "the source \"%s\" holds a NUL byte; it is no text", source->path);
    if (status == JTN_OK) {
        size_t mark = mark_size(text.data, text.size);

        source->size = text.size - mark;
        source->text = jtn__strndup(text.data + mark, source->size);
        status = source->text ? JTN_OK : JTN_ERROR_MEMORY;
    }
    jtn__buf_deinit(&text);
    return status;
}

jtn_status jtn__unit_read(jtn_unit *unit)
{
    if (unit->source_count == 0)
        return jtn__fail(JTN_ERROR_ARGUMENT,
                         "the module \"%s\" has no source; add one with jtn_unit_add_file or jtn_unit_add_text",
                         unit->name);
    for (size_t i = 0; i < unit->source_count; i++)
        JTN_TRY(read_source(&unit->sources[i]));
    return name_files(unit);
}
