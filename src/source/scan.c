/* scan.c — the #include closure of a device text over the user's own folders, made self-contained.
 *
 * A header's in-memory name is "jtn<root>/<relative path>": unique, and the same for the same tree wherever it lies. Each text keeps
 * its lines (an include directive is rewritten in place, in its line), so errors need only the names turned back. */
#include "source/scan.h"

#include <string.h>

#include "base/mem.h"
#include "source/lex.h"

#define MAX_HEADERS 4096

typedef struct jtn_scanning {
    char *const *roots;
    size_t root_count;
    uint32_t first_include;
    jtn_scan *out;
    jtn_list places;   /* absolute places of the headers found, parallel to header_names */
    uint32_t *folders; /* of each header: its root … */
    char **inner;      /* … and its path below it, owned */
} jtn_scanning;

/* ---------------------------------------------------------------- directives ---- */

typedef struct jtn_include {
    size_t begin, size; /* of the name with its quotes or brackets, in the directive */
    bool quoted;
} jtn_include;

static size_t skip_blanks(jtn_view text, size_t at)
{
    for (;;) {
        while (at < text.size && (text.data[at] == ' ' || text.data[at] == '\t'))
            at++;
        if (at + 1 < text.size && text.data[at] == '/' && text.data[at + 1] == '*') {
            const char *end = memmem(text.data + at, text.size - at, "*/", 2);

            at = end ? (size_t)(end - text.data) + 2 : text.size;
        } else {
            return at;
        }
    }
}

static bool name_at(jtn_view text, size_t at, jtn_include *out)
{
    char close;
    const char *end;

    if (at >= text.size || (text.data[at] != '"' && text.data[at] != '<'))
        return false;
    close = text.data[at] == '"' ? '"' : '>';
    end = memchr(text.data + at + 1, close, text.size - at - 1);
    if (!end || memchr(text.data + at, '\n', (size_t)(end - text.data) - at))
        return false;
    *out = (jtn_include){at, (size_t)(end - text.data) + 1 - at, close == '"'};
    return out->size > 2;
}

/* "#include", "#include_next" (taken as include) with a name as such; a macro there is left to the compiler. */
static bool is_include(jtn_view directive, jtn_include *out)
{
    size_t at = skip_blanks(directive, 1);

    if (directive.size - at < 7 || memcmp(directive.data + at, "include", 7) != 0)
        return false;
    return name_at(directive, skip_blanks(directive, at + 7), out);
}

/* The next __has_include(name) in an #if. */
static bool find_has_include(jtn_view directive, size_t from, jtn_include *out)
{
    const char *found = memmem(directive.data + from, directive.size - from, "__has_include", 13);
    size_t at;

    if (!found)
        return false;
    at = skip_blanks(directive, (size_t)(found - directive.data) + 13);
    if (at >= directive.size || directive.data[at] != '(')
        return false;
    return name_at(directive, skip_blanks(directive, at + 1), out);
}

/* ---------------------------------------------------------------- finding ---- */

static jtn_status scan_text(jtn_scanning *s, jtn_view text, uint32_t root, const char *inner, jtn_buf *out, int depth);

static size_t known(const jtn_scanning *s, const char *place)
{
    size_t i = 0;

    while (i < s->places.count && strcmp(s->places.items[i], place) != 0)
        i++;
    return i;
}

static jtn_status add_header(jtn_scanning *s, char *place, uint32_t root, char *inner)
{
    size_t count = s->places.count;
    uint32_t *folders = jtn__realloc(s->folders, (count + 1) * sizeof *folders);
    char **inners = jtn__realloc(s->inner, (count + 1) * sizeof *inners);

    if (folders)
        s->folders = folders;
    if (inners)
        s->inner = inners;
    if (!folders || !inners || count >= MAX_HEADERS) {
        jtn__free(place);
        jtn__free(inner);
        return count >= MAX_HEADERS ? jtn__fail(JTN_ERROR_ARGUMENT, "more than %d headers are reached", MAX_HEADERS)
                                    : JTN_ERROR_MEMORY;
    }
    folders[count] = root;
    inners[count] = inner;
    JTN_TRY(jtn__list_add_take(&s->places, place));
    JTN_TRY(jtn__list_addf(&s->out->header_names, "jtn%u/%s", root, inner));
    return jtn__list_add(&s->out->header_texts, "");
}

/* The place of name below a root: an absolute, folded path that still lies below that root or another. NULL: none. */
static char *place_in(const jtn_scanning *s, uint32_t root, const char *folder, const char *name)
{
    char *joined, *full, *place;

    if (root >= s->root_count || !s->roots[root] || !s->roots[root][0])
        return NULL;
    joined = jtn__path_join(folder, name);
    full = joined ? jtn__path_join(s->roots[root], joined) : NULL;
    place = full ? jtn__path_absolute(full) : NULL;
    jtn__free(joined);
    jtn__free(full);
    return place;
}

/* Takes place. The root that it lies below, and how; climbing out of all roots ("../x.h") gives an absolute dependency. */
static jtn_status take_found(jtn_scanning *s, char *place, size_t *index, int depth)
{
    uint32_t root = JTN_ROOT_ABSOLUTE;
    char *inner = NULL;
    jtn_view content;
    jtn_buf raw, text;
    jtn_status status;

    *index = known(s, place);
    if (*index < s->places.count) {
        jtn__free(place);
        return JTN_OK;
    }
    for (uint32_t i = 0; i < s->root_count && !inner; i++)
        if (s->roots[i] && s->roots[i][0] && (inner = jtn__path_relative(place, s->roots[i])))
            root = i;
    if (!inner && !(inner = jtn__strdup(place))) {
        jtn__free(place);
        return JTN_ERROR_MEMORY;
    }
    jtn__buf_init(&raw, 0);
    jtn__buf_init(&text, 0);
    JTN_GO(add_header(s, place, root, inner));
    JTN_GO(jtn__file_read(s->places.items[*index], &raw));
    content = (jtn_view){raw.data, raw.size};
    JTN_GO(jtn__deps_add(&s->out->deps, s->roots, root, inner, &content, false));
    JTN_GO(scan_text(s, content, root, inner, &text, depth + 1));
    jtn__free(s->out->header_texts.items[*index]);
    s->out->header_texts.items[*index] = jtn__buf_take(&text, NULL);
    status = s->out->header_texts.items[*index] ? JTN_OK : JTN_ERROR_MEMORY;
out:
    jtn__buf_deinit(&raw);
    jtn__buf_deinit(&text);
    return status;
}

/* One folder: *index is set when the header is there, left alone otherwise. */
static jtn_status try_folder(jtn_scanning *s, uint32_t root, const char *folder, const char *name, size_t *index,
                             int depth)
{
    char *place = place_in(s, root, folder, name);
    char *relative;

    if (!place)
        return JTN_OK;
    if (jtn__file_exists(place))
        return take_found(s, place, index, depth);
    relative = jtn__path_relative(place, s->roots[root]);
    jtn__free(place);
    if (relative) {
        jtn_status status = jtn__deps_add_absent(&s->out->deps, root, relative);

        jtn__free(relative);
        return status;
    }
    return JTN_OK;
}

/* Looks in the includer's folder (quoted names), then in the include folders. index stays SIZE_MAX when it is none of the user's. */
static jtn_status find(jtn_scanning *s, const char *name, bool quoted, uint32_t root, const char *inner, size_t *index,
                       int depth)
{
    *index = SIZE_MAX;
    if (name[0] == '/')
        return jtn__file_exists(name) ? take_found(s, jtn__path_absolute(name), index, depth) : JTN_OK;
    if (quoted && root != JTN_ROOT_ABSOLUTE) {
        char *folder = jtn__path_dir(inner);
        jtn_status status =
            folder ? try_folder(s, root, strcmp(folder, ".") == 0 ? "" : folder, name, index, depth) : JTN_ERROR_MEMORY;

        jtn__free(folder);
        JTN_TRY(status);
    }
    for (uint32_t i = s->first_include; i < s->root_count && *index == SIZE_MAX; i++)
        JTN_TRY(try_folder(s, i, "", name, index, depth));
    return JTN_OK;
}

/* ---------------------------------------------------------------- rewriting ---- */

static jtn_status rewrite(jtn_scanning *s, jtn_view directive, const jtn_include *include, uint32_t root,
                          const char *inner, jtn_buf *out, size_t *copied, int depth)
{
    char *name = jtn__strndup(directive.data + include->begin + 1, include->size - 2);
    size_t index;
    jtn_status status = name ? find(s, name, include->quoted, root, inner, &index, depth) : JTN_ERROR_MEMORY;

    jtn__free(name);
    JTN_TRY(status);
    if (index == SIZE_MAX)
        return JTN_OK;
    JTN_TRY(jtn__buf_put(out, directive.data + *copied, include->begin - *copied));
    *copied = include->begin + include->size;
    return jtn__buf_printf(out, "\"%s\"", s->out->header_names.items[index]);
}

static jtn_status rewrite_directive(jtn_scanning *s, jtn_view directive, uint32_t root, const char *inner, jtn_buf *out,
                                    int depth)
{
    jtn_include include;
    size_t copied = 0, from = 0;

    if (is_include(directive, &include)) {
        JTN_TRY(rewrite(s, directive, &include, root, inner, out, &copied, depth));
    } else {
        while (find_has_include(directive, from, &include)) {
            JTN_TRY(rewrite(s, directive, &include, root, inner, out, &copied, depth));
            from = include.begin + include.size;
        }
    }
    return jtn__buf_put(out, directive.data + copied, directive.size - copied);
}

static jtn_status scan_text(jtn_scanning *s, jtn_view text, uint32_t root, const char *inner, jtn_buf *out, int depth)
{
    jtn_lexer lexer;

    if (depth > 200)
        return jtn__fail(JTN_ERROR_ARGUMENT, "headers are nested more than 200 deep at \"%s\"", inner);
    jtn__lex_init(&lexer, text.data, text.size);
    for (;;) {
        jtn_token token = jtn__lex_next(&lexer);

        if (token.kind == JTN_TOKEN_END)
            return jtn__buf_put(out, "", 0);
        if (token.kind == JTN_TOKEN_DIRECTIVE)
            JTN_TRY(rewrite_directive(s, token.text, root, inner, out, depth));
        else
            JTN_TRY(jtn__buf_put(out, token.text.data, token.text.size));
    }
}

jtn_status jtn__scan(const char *name, jtn_view text, char *const roots[], size_t root_count, uint32_t source_root,
                     uint32_t first_include, jtn_scan *out)
{
    jtn_scan scan = {0};
    jtn_scanning s = {.roots = roots, .root_count = root_count, .first_include = first_include, .out = &scan};
    jtn_buf buf;
    jtn_status status;

    jtn__buf_init(&buf, 0);
    JTN_GO(scan_text(&s, text, source_root, jtn__path_base(name), &buf, 0));
    status = (scan.text = jtn__buf_take(&buf, NULL)) ? JTN_OK : JTN_ERROR_MEMORY;
out:
    jtn__buf_deinit(&buf);
    for (size_t i = 0; i < s.places.count; i++)
        jtn__free(s.inner[i]);
    jtn__free(s.inner);
    jtn__free(s.folders);
    jtn__list_deinit(&s.places);
    if (status != JTN_OK)
        jtn__scan_deinit(&scan);
    else
        *out = scan;
    return status;
}

void jtn__scan_deinit(jtn_scan *scan)
{
    jtn__free(scan->text);
    jtn__list_deinit(&scan->header_names);
    jtn__list_deinit(&scan->header_texts);
    jtn__deps_deinit(&scan->deps);
    *scan = (jtn_scan){0};
}
