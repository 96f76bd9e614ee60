/* cxx_text.c — the texts the host compiler gets, and its findings back in the user's names.
 *
 * A text is the user's, byte for byte, behind one #line; what Jitney needs (bindings for bare names, checked pointers for
 * prototypes) comes behind it, under the file name "functions". */
#include "compile/cxx_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define WISH_FILE "functions"

/* ---------------------------------------------------------------- looking into texts ---- */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

static bool has_word(const jtn_source *source, const char *word, size_t size)
{
    const char *at = source->text, *end = source->text + source->size;

    while (size && (at = memmem(at, (size_t)(end - at), word, size))) {
        if ((at == source->text || !is_word(at[-1])) && (at + size == end || !is_word(at[size])))
            return true;
        at++;
    }
    return false;
}

/* An #include of one of the names that lead to Jitney's header. */
static bool includes_ours(const jtn_source *source)
{
    static const char *const folders[] = {"torch/", "ATen/", "c10/", "pybind11/"};
    const char *at = source->text, *end = source->text + source->size;

    for (; at < end; at++) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));

        line_end = line_end ? line_end : end;
        at += strspn(at, " \t");
        if (at < line_end && *at == '#') {
            at++;
            at += strspn(at, " \t");
            if (strncmp(at, "include", 7) == 0) {
                at += 7;
                at += strspn(at, " \t");
                for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
                    if ((*at == '<' || *at == '"') && strncmp(at + 1, folders[i], strlen(folders[i])) == 0)
                        return true;
            }
        }
        at = line_end;
    }
    return false;
}

/* ---------------------------------------------------------------- wishes ---- */

/* The name in a prototype: the word before its first parenthesis. */
static jtn_view prototype_name(const char *text)
{
    const char *end = strchr(text, '('), *begin;

    if (!end)
        return (jtn_view){0};
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    for (begin = end; begin > text && is_word(begin[-1]);)
        begin--;
    return (jtn_view){begin, (size_t)(end - begin)};
}

static jtn_view wish_name(const jtn_wish *wish)
{
    const char *last = strrchr(wish->text, ':');

    if (wish->prototype)
        return prototype_name(wish->text);
    return jtn__view(last ? last + 1 : wish->text);
}

/* The last text that mentions the function; else the last one that could. */
static jtn_staged *text_for(const jtn_host_job *job, jtn_staged *staged, const jtn_wish *wish)
{
    jtn_view name = wish_name(wish);
    jtn_staged *last = NULL;

    for (size_t i = job->source_count; i-- > 0;) {
        if (staged[i].c && !wish->prototype)
            continue;
        if (has_word(staged[i].source, name.data, name.size))
            return &staged[i];
        if (!last)
            last = &staged[i];
    }
    return last;
}

static void put_literal(jtn_buf *buf, const char *text)
{
    jtn__buf_put(buf, "\"", 1);
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p < 32 || *p > 126 || *p == '"' || *p == '\\' || *p == '?')
            jtn__buf_printf(buf, "\\%03o", *p);
        else
            jtn__buf_put(buf, p, 1);
    jtn__buf_put(buf, "\"", 1);
}

static void put_binding(jtn_staged *staged, const jtn_wish *wish, size_t line)
{
    jtn__buf_printf(&staged->text, "#line %zu \"" WISH_FILE "\"\nJTN_BIND(%s, ", line, wish->text);
    if (wish->doc)
        put_literal(&staged->text, wish->doc);
    else
        jtn__buf_puts(&staged->text, "nullptr");
    jtn__buf_puts(&staged->text, ")\n");
    staged->prelude = true;
}

/* An exported pointer to the function: the compiler checks the prototype against the definition. */
static jtn_status put_pointer(jtn_staged *staged, const jtn_wish *wish, size_t line)
{
    jtn_view name = prototype_name(wish->text);
    const char *close = strrchr(wish->text, ')'), *open = strchr(wish->text, '(');
    char *type;

    if (!name.size || !close || close < open)
        return jtn__fail(JTN_ERROR_ARGUMENT, "\"%s\" is no C prototype", wish->text);
    type = jtn__format("%.*s(*const jtn_fn_%.*s)%.*s", (int)(name.data - wish->text), wish->text, (int)name.size,
                       name.data, (int)(close + 1 - open), open);
    if (!type)
        return JTN_ERROR_MEMORY;
    if (staged->c)
        jtn__buf_printf(&staged->text,
                        "#pragma GCC diagnostic push\n#pragma GCC diagnostic error \"-Wincompatible-pointer-types\"\n"
                        "#line %zu \"" WISH_FILE "\"\n"
                        "extern __attribute__((visibility(\"default\"))) %s; %s = %.*s;\n#pragma GCC diagnostic pop\n",
                        line, type, type, (int)name.size, name.data);
    else
        jtn__buf_printf(&staged->text,
                        "#line %zu \"" WISH_FILE
                        "\"\nextern \"C\" { extern __attribute__((visibility(\"default\"))) %s; %s = &::%.*s; }\n",
                        line, type, type, (int)name.size, name.data);
    jtn__free(type);
    return JTN_OK;
}

static jtn_status put_wishes(const jtn_host_job *job, jtn_staged *staged)
{
    for (size_t i = 0; i < job->wish_count; i++) {
        const jtn_wish *wish = &job->wishes[i];
        jtn_staged *text = text_for(job, staged, wish);

        if (!text)
            return jtn__fail(
                JTN_ERROR_ARGUMENT,
                "\"%s\" names a C++ function, but there is no C++ source; give a C function by its prototype "
                "(\"float %s(const float *x, int n)\")",
                wish->text, wish->text);
        if (wish->prototype)
            JTN_TRY(put_pointer(text, wish, i + 1));
        else
            put_binding(text, wish, i + 1);
    }
    return JTN_OK;
}

/* ---------------------------------------------------------------- staging ---- */

static jtn_status stage_one(const jtn_host_job *job, size_t i, jtn_staged *staged)
{
    const jtn_source *source = &job->sources[i];

    staged->source = source;
    staged->c = source->lang == JTN_LANG_C;
    staged->prelude = !staged->c && includes_ours(source);
    staged->path = jtn__format("%s/s%zu.%s", job->staging, i, staged->c ? "c" : "cpp");
    staged->object = jtn__format("%s/s%zu.o", job->staging, i);
    staged->deps = jtn__format("%s/s%zu.d", job->staging, i);
    jtn__buf_init(&staged->text, 0);
    if (!staged->path || !staged->object || !staged->deps)
        return JTN_ERROR_MEMORY;
    jtn__buf_puts(&staged->text, "#line 1 ");
    put_literal(&staged->text, source->name);
    jtn__buf_puts(&staged->text, "\n");
    jtn__buf_put(&staged->text, source->text, source->size);
    return jtn__buf_puts(&staged->text, "\n");
}

jtn_status jtn__cxx_stage(const jtn_host_job *job, jtn_staged *staged)
{
    for (size_t i = 0; i < job->source_count; i++)
        JTN_TRY(stage_one(job, i, &staged[i]));
    JTN_TRY(put_wishes(job, staged));
    for (size_t i = 0; i < job->source_count; i++) {
        JTN_TRY(staged[i].text.failed);
        JTN_TRY(jtn__file_write(staged[i].path, staged[i].text.data, staged[i].text.size, 0600));
    }
    return JTN_OK;
}

void jtn__cxx_staged_free(jtn_staged *staged, size_t count)
{
    for (size_t i = 0; staged && i < count; i++) {
        jtn__free(staged[i].path);
        jtn__free(staged[i].object);
        jtn__free(staged[i].deps);
        jtn__buf_deinit(&staged[i].text);
    }
    jtn__free(staged);
}

/* ---------------------------------------------------------------- findings ---- */

/* "…/s0.cpp" → the source's name: the linker names it so. */
static const char *user_name(void *arg, const char *file)
{
    const jtn_host_job *job = arg;
    const char *base = jtn__path_base(file);
    char *end;
    unsigned long i;

    if (base[0] != 's' || !isdigit((unsigned char)base[1]))
        return file;
    i = strtoul(base + 1, &end, 10);
    if (i >= job->source_count || (strcmp(end, ".c") != 0 && strcmp(end, ".cpp") != 0 && strcmp(end, ".o") != 0))
        return file;
    return job->sources[i].name;
}

static jtn_view user_line(void *arg, const char *file, int line)
{
    const jtn_host_job *job = arg;

    if (strcmp(file, WISH_FILE) == 0 && line > 0 && (size_t)line <= job->wish_count)
        return jtn__view(job->wishes[line - 1].text);
    for (size_t i = 0; i < job->source_count; i++) {
        jtn_view found =
            jtn__line_in((jtn_view){job->sources[i].text, job->sources[i].size}, job->sources[i].name, file, line);

        if (found.data)
            return found;
    }
    return (jtn_view){0};
}

/* An error about a name in torch's namespaces that is not there. */
static bool lacks_name(const char *message)
{
    static const char *const places[] = {"at::", "torch::", "c10::", "py::", "pybind11",    "'torch'", "'at'", "'c10'",
                                         "'py'", "torch/",  "ATen/", "c10/", "AT_DISPATCH", "TORCH_",  "C10_", "at/"};
    static const char *const lacks[] = {"is not a member",
                                        "has no member",
                                        "no member named",
                                        "does not name a type",
                                        "has not been declared",
                                        "was not declared",
                                        "no match for",
                                        "no matching",
                                        "No such file",
                                        "file not found",
                                        "undeclared",
                                        "is not a class",
                                        "does not name a template",
                                        "invalid operands",
                                        "cannot cross to Python"};
    bool place = false, lack = false;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        place |= strstr(message, places[i]) != NULL;
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        lack |= strstr(message, lacks[i]) != NULL;
    return place && lack;
}

jtn_status jtn__cxx_findings(const jtn_host_job *job, const char *output, jtn_findings *findings)
{
    size_t from = findings->count;

    JTN_TRY(jtn__findings_add(findings, output, user_name, user_line, (void *)(uintptr_t)job));
    for (size_t i = from; i < findings->count; i++) {
        jtn_finding *finding = &findings->items[i];
        char *message;

        if (finding->severity != JTN_SEVERITY_ERROR || !lacks_name(finding->message) ||
            strstr(finding->message, "docs/usage.md"))
            continue;
        message = jtn__format("%s (Jitney's own torch headers do not have it: docs/usage.md lists what they have)",
                              finding->message);
        if (!message)
            return JTN_ERROR_MEMORY;
        jtn__free(finding->message);
        finding->message = message;
    }
    return JTN_OK;
}
