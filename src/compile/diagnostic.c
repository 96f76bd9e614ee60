/* diagnostic.c — compiler text → findings in the user's coordinates.
 *
 * Two shapes of head line: "file:line:column: severity: text" (gcc, clang, ld) and "file(line): severity: text" (NVRTC). What follows
 * a head until the next is its excerpt: gcc's " 2 | code" and "   | ^" lines lose their gutter, NVRTC's code and caret lines are taken
 * as they are. Nothing is thrown away: the whole text stays in the log. */
#include "compile/diagnostic.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct jtn_head {
    jtn_view file, message;
    int line, column;
    jtn_severity severity;
} jtn_head;

static const struct {
    const char *text;
    jtn_severity severity;
} severities[] = {
    {"fatal error: ", JTN_SEVERITY_ERROR}, {"catastrophic error: ", JTN_SEVERITY_ERROR},
    {"error: ", JTN_SEVERITY_ERROR},       {"internal error: ", JTN_SEVERITY_ERROR},
    {"warning: ", JTN_SEVERITY_WARNING},   {"note: ", JTN_SEVERITY_NOTE},
    {"remark: ", JTN_SEVERITY_NOTE},
};

/* ---------------------------------------------------------------- head lines ---- */

/* "error: …", also NVRTC's "error #20: …" and "warning #177-D: …". */
static bool read_severity(jtn_view text, jtn_head *head)
{
    for (size_t i = 0; i < sizeof severities / sizeof *severities; i++) {
        size_t size = strlen(severities[i].text);
        size_t word = size - 2; /* without ": " */

        if (text.size < size || memcmp(text.data, severities[i].text, word) != 0)
            continue;
        if (text.data[word] == ' ' && text.data[word + 1] == '#') {
            const char *colon = memchr(text.data + word, ':', text.size - word);

            if (!colon || (size_t)(colon - text.data) + 2 > text.size)
                return false;
            size = (size_t)(colon - text.data) + 2;
        } else if (memcmp(text.data + word, ": ", 2) != 0) {
            continue;
        }
        head->severity = severities[i].severity;
        head->message = (jtn_view){text.data + size, text.size - size};
        return true;
    }
    return false;
}

static bool read_int(jtn_view line, size_t *at, int *out)
{
    size_t begin = *at;
    long value = 0;

    while (*at < line.size && isdigit((unsigned char)line.data[*at]) && *at - begin < 9)
        value = value * 10 + (line.data[(*at)++] - '0');
    *out = (int)value;
    return *at > begin;
}

/* "file(12): error: …" */
static bool nvrtc_head(jtn_view line, jtn_head *head)
{
    for (size_t open = 1; open + 4 < line.size; open++) {
        size_t at = open + 1;

        if (line.data[open] != '(' || !read_int(line, &at, &head->line))
            continue;
        if (at + 3 > line.size || memcmp(line.data + at, "): ", 3) != 0)
            continue;
        at += 3;
        head->file = (jtn_view){line.data, open};
        head->column = 0;
        if (read_severity((jtn_view){line.data + at, line.size - at}, head))
            return true;
    }
    return false;
}

/* "file:12:5: error: …" or "file:12: …" */
static bool gcc_head(jtn_view line, jtn_head *head)
{
    for (size_t colon = 1; colon + 3 < line.size; colon++) {
        size_t at = colon + 1;

        if (line.data[colon] != ':' || !read_int(line, &at, &head->line) || at >= line.size || line.data[at] != ':')
            continue;
        at++;
        head->column = 0;
        if (read_int(line, &at, &head->column) && at < line.size && line.data[at] == ':')
            at++;
        while (at < line.size && line.data[at] == ' ')
            at++;
        head->file = (jtn_view){line.data, colon};
        if (read_severity((jtn_view){line.data + at, line.size - at}, head))
            return true;
    }
    return false;
}

/* The linker's: "…/ld: file.o: in function `f': file.cpp:3: undefined reference to `g'". */
static bool linker_head(jtn_view line, jtn_head *head)
{
    const char *found = memmem(line.data, line.size, "undefined reference to ", 23);

    if (!found)
        found = memmem(line.data, line.size, "multiple definition of ", 23);
    if (!found && line.size > 9 && memmem(line.data, line.size, "ld: cannot find ", 16))
        found = memmem(line.data, line.size, "cannot find ", 12);
    if (!found)
        return false;
    *head = (jtn_head){{"", 0}, {found, line.size - (size_t)(found - line.data)}, 0, 0, JTN_SEVERITY_ERROR};
    return true;
}

/* A driver's own "g++: error: …" or "nvrtc: error: …", which has no place. */
static bool bare_head(jtn_view line, jtn_head *head)
{
    const char *colon = memmem(line.data, line.size, ": ", 2);
    size_t at = colon ? (size_t)(colon - line.data) + 2 : 0;

    *head = (jtn_head){0};
    head->file = (jtn_view){"", 0};
    if (colon && !memchr(line.data, ' ', at - 2) && read_severity((jtn_view){line.data + at, line.size - at}, head))
        return true;
    return read_severity(line, head);
}

static bool read_head(jtn_view line, jtn_head *head)
{
    return gcc_head(line, head) || nvrtc_head(line, head) || linker_head(line, head) || bare_head(line, head);
}

/* ---------------------------------------------------------------- excerpts ---- */

/* gcc's gutter "   12 | " or "      | " taken off; false: no such line. */
static bool cut_gutter(jtn_view *line)
{
    size_t at = 0;

    while (at < line->size && (line->data[at] == ' ' || isdigit((unsigned char)line->data[at])))
        at++;
    if (at == 0 || at + 1 > line->size || line->data[at] != '|')
        return false;
    at++;
    at += at < line->size && line->data[at] == ' ';
    *line = (jtn_view){line->data + at, line->size - at};
    return true;
}

static bool is_caret(jtn_view line)
{
    bool caret = false;

    for (size_t i = 0; i < line.size; i++) {
        if (!strchr(" \t^~|", line.data[i]))
            return false;
        caret |= line.data[i] == '^';
    }
    return caret;
}

static jtn_status append_finding(jtn_findings *f, const jtn_head *head, const char *(*map)(void *arg, const char *file),
                                 void *arg)
{
    char *file = jtn__strndup(head->file.data, head->file.size);
    char *message = jtn__strndup(head->message.data, head->message.size);
    char *excerpt = jtn__strdup("");
    jtn_finding *items = NULL;

    if (file && map) {
        char *mapped = jtn__strdup(map(arg, file));

        jtn__free(file);
        file = mapped;
    }
    if (file && message && excerpt && f->count == f->capacity)
        items = jtn__realloc(f->items, (f->capacity + 8) * sizeof *items);
    else
        items = f->items;
    if (!file || !message || !excerpt || !items) {
        jtn__free(file);
        jtn__free(message);
        jtn__free(excerpt);
        return JTN_ERROR_MEMORY;
    }
    if (f->count == f->capacity)
        f->capacity += 8;
    f->items = items;
    items[f->count++] = (jtn_finding){file, message, excerpt, head->line, head->column, head->severity};
    return JTN_OK;
}

/* The first code line and the first caret line behind a head. */
static jtn_status add_excerpt(jtn_finding *finding, jtn_view line)
{
    bool has_code = finding->excerpt[0] != 0;
    char *text;

    if (strchr(finding->excerpt, '\n'))
        return JTN_OK; /* both are there */
    if (has_code != is_caret(line) || line.size > 500)
        return JTN_OK;
    if (has_code && finding->column == 0) /* negative: read off a caret line, whose indent is still to be taken off */
        finding->column = -((int)((const char *)memchr(line.data, '^', line.size) - line.data) + 1);
    text = jtn__format("%s%s%.*s", finding->excerpt, has_code ? "\n" : "", (int)line.size, line.data);
    if (!text)
        return JTN_ERROR_MEMORY;
    jtn__free(finding->excerpt);
    finding->excerpt = text;
    return JTN_OK;
}

/* NVRTC indents code and caret lines by some blanks that are not the user's: as many as the printed line is longer than the source's. */
static jtn_status cut_indent(jtn_finding *finding, jtn_view code)
{
    size_t printed = strcspn(finding->excerpt, "\n");
    size_t indent =
        code.data && code.size < printed && memcmp(finding->excerpt + printed - code.size, code.data, code.size) == 0
            ? printed - code.size
            : 0;
    char *caret = strchr(finding->excerpt, '\n');
    char *text;

    if (finding->column < 0)
        finding->column = -finding->column > (int)indent ? -finding->column - (int)indent : 0;
    if (!indent || !caret || strlen(caret + 1) < indent)
        return JTN_OK;
    text = jtn__format("%.*s\n%s", (int)code.size, code.data, caret + 1 + indent);
    if (!text)
        return JTN_ERROR_MEMORY;
    jtn__free(finding->excerpt);
    finding->excerpt = text;
    return JTN_OK;
}

/* A caret where the compiler printed none, from the source itself. */
static jtn_status complete(jtn_finding *finding, jtn_line_fn line, void *arg)
{
    jtn_view code = line ? line(arg, finding->file, finding->line) : (jtn_view){NULL, 0};

    if (finding->excerpt[0])
        return cut_indent(finding, code);
    if (!code.data || !finding->line)
        return JTN_OK;
    jtn__free(finding->excerpt);
    if (finding->column > 0 && (size_t)finding->column <= code.size + 1)
        finding->excerpt = jtn__format("%.*s\n%*s^", (int)code.size, code.data, finding->column - 1, "");
    else
        finding->excerpt = jtn__format("%.*s", (int)code.size, code.data);
    return finding->excerpt ? JTN_OK : JTN_ERROR_MEMORY;
}

/* ---------------------------------------------------------------- reading ---- */

static jtn_status add_log(jtn_findings *findings, const char *text)
{
    char *log = jtn__format("%s%s", findings->log ? findings->log : "", text);

    if (!log)
        return JTN_ERROR_MEMORY;
    jtn__free(findings->log);
    findings->log = log;
    return JTN_OK;
}

jtn_status jtn__findings_add(jtn_findings *findings, const char *text, const char *(*map)(void *arg, const char *file),
                             jtn_line_fn line, void *arg)
{
    size_t first = findings->count;

    JTN_TRY(add_log(findings, text));
    for (const char *at = text; *at;) {
        jtn_view one = {at, strcspn(at, "\n")};
        jtn_head head;

        at += one.size + (at[one.size] == '\n');
        if (one.size && one.data[one.size - 1] == '\r')
            one.size--;
        if (read_head(one, &head)) {
            JTN_TRY(append_finding(findings, &head, map, arg));
        } else if (findings->count > first && one.size) {
            if (!cut_gutter(&one) && one.data[0] != ' ')
                continue;
            JTN_TRY(add_excerpt(&findings->items[findings->count - 1], one));
        }
    }
    for (size_t i = first; i < findings->count; i++)
        JTN_TRY(complete(&findings->items[i], line, arg));
    return JTN_OK;
}

void jtn__findings_move(jtn_findings *to, jtn_findings *from)
{
    jtn_finding *items = from->count ? jtn__realloc(to->items, (to->count + from->count) * sizeof *items) : NULL;

    if (items) {
        memcpy(items + to->count, from->items, from->count * sizeof *items);
        to->items = items;
        to->count += from->count;
        to->capacity = to->count;
        from->count = 0;
    }
    if (from->log)
        add_log(to, from->log);
}

void jtn__findings_deinit(jtn_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        jtn__free(findings->items[i].file);
        jtn__free(findings->items[i].message);
        jtn__free(findings->items[i].excerpt);
    }
    jtn__free(findings->items);
    jtn__free(findings->log);
    *findings = (jtn_findings){0};
}

/* ---------------------------------------------------------------- source lines ---- */

/* "#line 12 "file"" → both; a directive without a file keeps the name. */
static bool read_line_directive(jtn_view line, int *number, jtn_view *name)
{
    size_t at = 5;
    const char *quote;

    if (line.size < 7 || memcmp(line.data, "#line", 5) != 0)
        return false;
    while (at < line.size && line.data[at] == ' ')
        at++;
    if (!read_int(line, &at, number))
        return false;
    quote = memchr(line.data + at, '"', line.size - at);
    if (quote) {
        const char *begin = quote + 1, *end = memchr(begin, '"', line.size - (size_t)(begin - line.data));

        if (end)
            *name = (jtn_view){begin, (size_t)(end - begin)};
    }
    return true;
}

jtn_view jtn__line_in(jtn_view text, const char *name, const char *file, int line)
{
    jtn_view here = jtn__view(name), wanted = jtn__view(file);
    int number = 1;

    for (size_t at = 0; at < text.size;) {
        const char *end = memchr(text.data + at, '\n', text.size - at);
        jtn_view one = {text.data + at, end ? (size_t)(end - text.data) - at : text.size - at};

        at += one.size + 1;
        if (read_line_directive(one, &number, &here))
            continue;
        if (number == line && jtn__view_equal(here, wanted))
            return one;
        number++;
    }
    return (jtn_view){NULL, 0};
}

/* ---------------------------------------------------------------- telling ---- */

static void tell(const jtn_finding *f, jtn_buf *out)
{
    if (f->file[0] && f->line && f->column)
        jtn__buf_printf(out, "%s:%d:%d: ", f->file, f->line, f->column);
    else if (f->file[0] && f->line)
        jtn__buf_printf(out, "%s:%d: ", f->file, f->line);
    jtn__buf_printf(out, "error: %s\n", f->message);
    if (f->excerpt[0])
        jtn__buf_printf(out, "%s\n", f->excerpt);
}

char *jtn__findings_summary(const jtn_findings *findings, size_t most)
{
    size_t told = 0, more = 0;
    jtn_buf text;
    char *result;

    jtn__buf_init(&text, 0);
    for (size_t i = 0; i < findings->count; i++) {
        if (findings->items[i].severity != JTN_SEVERITY_ERROR)
            continue;
        if (told < most) {
            tell(&findings->items[i], &text);
            told++;
        } else {
            more++;
        }
    }
    if (told == 0) /* nothing was understood: better the whole than nothing */
        jtn__buf_puts(&text, findings->log ? findings->log : "");
    if (more)
        jtn__buf_printf(&text, "… and %zu more\n", more);
    while (text.size && text.data[text.size - 1] == '\n')
        text.data[--text.size] = 0;
    result = jtn__buf_take(&text, NULL);
    jtn__buf_deinit(&text);
    return result;
}
