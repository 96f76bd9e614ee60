/* survey.c — what a CUDA text seems to hold.
 *
 * One walk over the declarations at namespace scope: kernels, kernel templates, device variables, with the namespaces they are in;
 * bodies are skipped but for the words that tell host code. Macros are not expanded, so this is a hint: what it takes for a kernel is
 * offered to the compiler, and what it misses is found in the compiler's output (compile/device.c). */
#include <string.h>

#include "base/mem.h"
#include "source/lex.h"

/* Tokens of one declaration that are looked at; a longer one is an initialiser, whose rest does not matter. */
#define MAX_DECLARATION 4096
#define MAX_SCOPES 64

typedef struct jtn_walk {
    jtn_lexer lexer;
    jtn_cuda_survey *survey;
    jtn_view scopes[MAX_SCOPES]; /* open namespaces; empty for anonymous ones and extern "C" blocks */
    size_t scope_count;
    jtn_token *decl; /* of the declaration under way; owned */
    size_t decl_count, decl_capacity;
    bool is_template;
    jtn_status status;
} jtn_walk;

static bool is(const jtn_token *token, const char *text)
{
    size_t size = token->text.size;

    /* the first letters differ nearly always */
    return size && token->text.data[0] == text[0] && strncmp(token->text.data, text, size) == 0 && !text[size];
}

static bool is_any(const jtn_token *token, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is(token, words[i]))
            return true;
    return false;
}

/* ---------------------------------------------------------------- words anywhere ---- */

static void saw_host(jtn_walk *w, uint32_t line)
{
    if (!w->survey->has_host)
        w->survey->host_line = line;
    w->survey->has_host = true;
}

/* Every token passes here once, whatever it is part of. */
static void notice(jtn_walk *w, const jtn_token *token)
{
    static const char *const device[] = {"__global__", "__device__", "__constant__", "__managed__",
                                         "__grid_constant__"};
    static const char *const host[] = {"PYBIND11_MODULE",        "TORCH_LIBRARY",        "TORCH_LIBRARY_IMPL",
                                       "TORCH_LIBRARY_FRAGMENT", "STABLE_TORCH_LIBRARY", "cudaLaunchKernel",
                                       "RegisterOperators"};

    if (token->kind == JTN_TOKEN_DIRECTIVE) {
        w->survey->has_device |= memmem(token->text.data, token->text.size, "__global__", 10) != NULL;
        if (memmem(token->text.data, token->text.size, "<<<", 3) &&
            memmem(token->text.data, token->text.size, "define", 6))
            saw_host(w, token->line);
    } else if (token->kind == JTN_TOKEN_NAME) {
        w->survey->has_device |= is_any(token, device, sizeof device / sizeof *device);
        if (is_any(token, host, sizeof host / sizeof *host))
            saw_host(w, token->line);
    } else if (token->kind == JTN_TOKEN_PUNCT && is(token, "<<<")) {
        saw_host(w, token->line);
    }
}

static jtn_token next(jtn_walk *w)
{
    for (;;) {
        jtn_token token = jtn__lex_next(&w->lexer);

        notice(w, &token);
        if (token.kind != JTN_TOKEN_SPACE && token.kind != JTN_TOKEN_NEWLINE && token.kind != JTN_TOKEN_DIRECTIVE)
            return token;
    }
}

/* ---------------------------------------------------------------- names ---- */

static void qualify(jtn_walk *w, jtn_view name, jtn_buf *out)
{
    for (size_t i = 0; i < w->scope_count; i++)
        if (w->scopes[i].size)
            jtn__buf_printf(out, "%.*s::", (int)w->scopes[i].size, w->scopes[i].data);
    jtn__buf_put(out, name.data, name.size);
}

static void keep(jtn_walk *w, jtn_list *list, const char *name)
{
    if (w->status == JTN_OK && !jtn__list_has(list, name))
        w->status = jtn__list_add(list, name);
}

static void drop(jtn_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], name) == 0) {
            jtn__free(list->items[i]);
            memmove(&list->items[i], &list->items[i + 1], (list->count - i) * sizeof *list->items);
            list->count--;
            return;
        }
}

/* ---------------------------------------------------------------- kernels ---- */

/* Index of the bracket that closes the one at `open`, or decl_count. */
static size_t closing(const jtn_walk *w, size_t open)
{
    int depth = 0;

    for (size_t i = open; i < w->decl_count; i++) {
        depth += is(&w->decl[i], "(");
        depth -= is(&w->decl[i], ")");
        if (depth == 0)
            return i;
    }
    return w->decl_count;
}

/* Index of the "(" of the parameter list: the first that is not an attribute's. Of a kernel, behind "__global__": what stands before
 * may be a macro's call that makes another. */
static size_t parameter_list(const jtn_walk *w)
{
    static const char *const attributes[] = {"__launch_bounds__", "__attribute__", "__maxnreg__",
                                             "__cluster_dims__",  "alignas",       "__declspec",
                                             "__block_size__",    "decltype",      "noexcept"};

    size_t first = w->decl_count;

    while (first > 0 && !is(&w->decl[first - 1], "__global__"))
        first--;
    for (size_t i = first ? first : 1; i < w->decl_count; i++) {
        if (!is(&w->decl[i], "("))
            continue;
        if (w->decl[i - 1].kind == JTN_TOKEN_NAME &&
            !is_any(&w->decl[i - 1], attributes, sizeof attributes / sizeof *attributes))
            return i;
        i = closing(w, i);
    }
    return w->decl_count;
}

static bool is_open(const jtn_token *t)
{
    return t->kind == JTN_TOKEN_PUNCT && (is(t, "(") || is(t, "[") || is(t, "{") || is(t, "<"));
}

static bool is_close(const jtn_token *t)
{
    return t->kind == JTN_TOKEN_PUNCT && (is(t, ")") || is(t, "]") || is(t, "}") || is(t, ">"));
}

/* "axpy:a,x,y,n" from the parameter list that opens at `open`. A parameter without a name leaves its place empty. */
static void keep_param_names(jtn_walk *w, const char *kernel, size_t open)
{
    size_t close = closing(w, open);
    jtn_view name = {"", 0};
    bool named = false; /* past the name: in a default or an array bound */
    int depth = 0, words = 0;
    jtn_buf text;

    jtn__buf_init(&text, 1 << 16);
    jtn__buf_printf(&text, "%s:", kernel);
    for (size_t i = open + 1; i <= close && i < w->decl_count; i++) {
        const jtn_token *t = &w->decl[i];

        if (depth == 0 && (i == close || is(t, ","))) {
            jtn__buf_printf(&text, "%.*s%s", words > 1 ? (int)name.size : 0, name.data, i == close ? "" : ",");
            name = (jtn_view){"", 0};
            named = false;
            words = 0;
            continue;
        }
        named |= depth == 0 && (is(t, "=") || is(t, "["));
        depth += is_open(t);
        depth -= is_close(t);
        if (t->kind == JTN_TOKEN_NAME && depth == 0 && !named) {
            name = t->text;
            words++;
        } else if (depth == 0 && (is(t, "*") || is(t, ">") || is(t, "&"))) {
            words++; /* what follows is a name, whatever came before */
        }
    }
    if (text.failed == JTN_OK)
        keep(w, &w->survey->param_names, text.data);
    jtn__buf_deinit(&text);
}

static void found_kernel(jtn_walk *w)
{
    size_t open = parameter_list(w);
    jtn_cuda_survey *s = w->survey;
    jtn_buf name;

    if (open >= w->decl_count)
        return;
    jtn__buf_init(&name, 1 << 16);
    qualify(w, w->decl[open - 1].text, &name);
    if (name.failed == JTN_OK) {
        if (w->is_template) {
            keep(w, &s->templates, name.data);
        } else if (jtn__list_has(&s->kernels, name.data) || jtn__list_has(&s->overloads, name.data)) {
            drop(&s->kernels, name.data);
            keep(w, &s->overloads, name.data);
        } else {
            keep(w, &s->kernels, name.data);
        }
        keep_param_names(w, name.data, open);
    }
    jtn__buf_deinit(&name);
}

/* ---------------------------------------------------------------- variables ---- */

static void keep_variable(jtn_walk *w, const jtn_token *token)
{
    jtn_buf name;

    jtn__buf_init(&name, 1 << 16);
    qualify(w, token->text, &name);
    if (name.failed == JTN_OK)
        keep(w, &w->survey->globals, name.data);
    jtn__buf_deinit(&name);
}

/* The name before each "=", "[" or ",": "__constant__ float a[4], b = 1". A parenthesis before the first makes it a function. */
static void found_variable(jtn_walk *w)
{
    bool named = false; /* this declarator's name is behind us */
    int depth = 0;

    for (size_t i = 0; i <= w->decl_count; i++) {
        const jtn_token *t = i < w->decl_count ? &w->decl[i] : NULL;
        bool ends = !t || (depth == 0 && (is(t, "=") || is(t, "[") || is(t, ",")));

        if (depth == 0 && !named && t && is(t, "("))
            return;
        if (ends && !named && i > 0 && w->decl[i - 1].kind == JTN_TOKEN_NAME)
            keep_variable(w, &w->decl[i - 1]);
        if (ends)
            named = t && !is(t, ",");
        if (t)
            depth += is_open(t) - is_close(t);
    }
}

/* ---------------------------------------------------------------- declarations ---- */

static bool decl_has(const jtn_walk *w, const char *word)
{
    for (size_t i = 0; i < w->decl_count; i++)
        if (w->decl[i].kind == JTN_TOKEN_NAME && is(&w->decl[i], word))
            return true;
    return false;
}

static bool decl_is_device(const jtn_walk *w)
{
    return decl_has(w, "__global__") || decl_has(w, "__device__") || decl_has(w, "__constant__") ||
           decl_has(w, "__managed__");
}

static bool names_torch(const jtn_token *token)
{
    static const char *const words[] = {"torch", "at", "c10", "Tensor", "pybind11", "py", "TORCH_CHECK"};

    return token->kind == JTN_TOKEN_NAME && is_any(token, words, sizeof words / sizeof *words);
}

/* From behind a "{" to behind its "}". A function without a CUDA marker that speaks of tensors is host code. */
static void skip_body(jtn_walk *w, bool maybe_host)
{
    int depth = 1;

    while (depth > 0) {
        jtn_token token = next(w);

        if (token.kind == JTN_TOKEN_END)
            return;
        if (token.kind == JTN_TOKEN_PUNCT)
            depth += is(&token, "{") - is(&token, "}");
        if (maybe_host && names_torch(&token))
            saw_host(w, token.line);
    }
}

static bool is_namespace(const jtn_walk *w)
{
    return decl_has(w, "namespace") && !decl_has(w, "using");
}

static bool is_extern_block(const jtn_walk *w)
{
    return w->decl_count == 2 && is(&w->decl[0], "extern") && w->decl[1].kind == JTN_TOKEN_STRING;
}

static void open_scope(jtn_walk *w)
{
    const jtn_token *last = &w->decl[w->decl_count - 1];
    jtn_view name = {"", 0};

    if (is_namespace(w) && last->kind == JTN_TOKEN_NAME && !is(last, "namespace")) {
        /* "namespace a::b" is one scope whose name is the text from a to b */
        size_t first = w->decl_count - 1;

        while (first >= 2 && is(&w->decl[first - 1], "::"))
            first -= 2;
        name = (jtn_view){w->decl[first].text.data,
                          (size_t)(last->text.data + last->text.size - w->decl[first].text.data)};
    }
    if (w->scope_count < MAX_SCOPES)
        w->scopes[w->scope_count] = name;
    w->scope_count++;
}

static void end_declaration(jtn_walk *w)
{
    w->decl_count = 0;
    w->is_template = false;
}

static void open_brace(jtn_walk *w)
{
    bool is_function = parameter_list(w) < w->decl_count && !decl_has(w, "struct") && !decl_has(w, "class");
    bool device = decl_is_device(w);
    bool host_words = false;

    if (w->decl_count && (is_namespace(w) || is_extern_block(w))) {
        open_scope(w);
        end_declaration(w);
        return;
    }
    if (decl_has(w, "__global__"))
        found_kernel(w);
    else if (device && !is_function && !w->is_template && !decl_has(w, "struct"))
        found_variable(w);
    for (size_t i = 0; i < w->decl_count; i++)
        host_words |= names_torch(&w->decl[i]);
    if (is_function && !device && host_words)
        saw_host(w, w->decl[0].line);
    skip_body(w, is_function && !device);
    end_declaration(w);
}

/* "template <…>": the list is skipped, so that its names are not taken for the declaration's. */
static void skip_template_list(jtn_walk *w)
{
    int depth = 0;

    w->is_template = true;
    do {
        jtn_token token = next(w);

        if (token.kind == JTN_TOKEN_END)
            return;
        if (token.kind == JTN_TOKEN_PUNCT)
            depth += is(&token, "<") - is(&token, ">") - 3 * is(&token, ">>>");
    } while (depth > 0);
}

static void semicolon(jtn_walk *w)
{
    if (decl_is_device(w) && !decl_has(w, "__global__") && !w->is_template && !decl_has(w, "extern"))
        found_variable(w);
    end_declaration(w);
}

static bool keep_token(jtn_walk *w, const jtn_token *token)
{
    if (w->decl_count == w->decl_capacity) {
        size_t capacity = w->decl_capacity ? w->decl_capacity * 2 : 64;
        jtn_token *decl = jtn__realloc(w->decl, capacity * sizeof *decl);

        if (!decl) {
            w->status = JTN_ERROR_MEMORY;
            return false;
        }
        w->decl = decl;
        w->decl_capacity = capacity;
    }
    w->decl[w->decl_count++] = *token;
    return true;
}

static void walk(jtn_walk *w)
{
    for (;;) {
        jtn_token token = next(w);

        if (token.kind == JTN_TOKEN_END)
            return;
        if (token.kind == JTN_TOKEN_NAME && is(&token, "template")) {
            skip_template_list(w);
        } else if (token.kind == JTN_TOKEN_PUNCT && is(&token, "{")) {
            open_brace(w);
        } else if (token.kind == JTN_TOKEN_PUNCT && is(&token, "}")) {
            w->scope_count -= w->scope_count > 0;
            end_declaration(w);
        } else if (token.kind == JTN_TOKEN_PUNCT && is(&token, ";")) {
            semicolon(w);
        } else if (w->decl_count < MAX_DECLARATION && !keep_token(w, &token)) {
            return;
        }
    }
}

jtn_status jtn__cuda_survey(const char *text, size_t size, jtn_cuda_survey *out)
{
    jtn_walk *w = jtn__alloc(sizeof *w);
    jtn_cuda_survey survey = {0};
    jtn_status status;

    if (!w)
        return JTN_ERROR_MEMORY;
    w->survey = &survey;
    jtn__lex_init(&w->lexer, text, size);
    walk(w);
    status = w->status;
    jtn__free(w->decl);
    jtn__free(w);
    if (status != JTN_OK)
        jtn__cuda_survey_deinit(&survey);
    else
        *out = survey;
    return status;
}

void jtn__cuda_survey_deinit(jtn_cuda_survey *survey)
{
    jtn__list_deinit(&survey->kernels);
    jtn__list_deinit(&survey->overloads);
    jtn__list_deinit(&survey->templates);
    jtn__list_deinit(&survey->globals);
    jtn__list_deinit(&survey->param_names);
    *survey = (jtn_cuda_survey){0};
}
