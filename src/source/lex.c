/* lex.c — C++ and CUDA text as tokens.
 *
 * Every byte is in exactly one token, so a rewriter can copy what it does not change. A backslash-newline counts as nothing wherever
 * the language says so: inside directives, strings, line comments and between tokens; a name broken by one comes out as two tokens,
 * which nobody writes. Nothing here fails: what is open at the end runs to the end, and the compiler will say what is wrong. */
#include "source/lex.h"

#include <ctype.h>
#include <string.h>

void jtn__lex_init(jtn_lexer *lexer, const char *text, size_t size)
{
    *lexer = (jtn_lexer){text, size, 0, 1, true};
}

static char peek(const jtn_lexer *l, size_t ahead)
{
    return ahead < l->size - l->at ? l->text[l->at + ahead] : 0;
}

/* Length of a line splice here, else 0. */
static size_t splice_at(const jtn_lexer *l, size_t ahead)
{
    if (peek(l, ahead) != '\\')
        return 0;
    if (peek(l, ahead + 1) == '\n')
        return 2;
    return peek(l, ahead + 1) == '\r' && peek(l, ahead + 2) == '\n' ? 3 : 0;
}

static bool is_name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_' || c == '$' || (c & 0x80);
}

static bool is_name(char c)
{
    return is_name_start(c) || isdigit((unsigned char)c);
}

/* Each scanner below returns the length of its token from l->at. */

static size_t block_comment(const jtn_lexer *l)
{
    size_t n = 2;

    while (l->at + n < l->size && !(peek(l, n) == '*' && peek(l, n + 1) == '/'))
        n++;
    return l->at + n < l->size ? n + 2 : l->size - l->at;
}

static size_t line_comment(const jtn_lexer *l, size_t n)
{
    while (l->at + n < l->size && peek(l, n) != '\n')
        n += splice_at(l, n) ? splice_at(l, n) : 1;
    return n < l->size - l->at ? n : l->size - l->at;
}

static size_t space(const jtn_lexer *l)
{
    size_t n = 0;

    if (peek(l, 0) == '/' && peek(l, 1) == '*')
        return block_comment(l);
    if (peek(l, 0) == '/' && peek(l, 1) == '/')
        return line_comment(l, 2);
    for (;;) {
        char c = peek(l, n);

        if (splice_at(l, n))
            n += splice_at(l, n);
        else if (l->at + n < l->size && (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'))
            n++;
        else
            return n;
    }
}

static size_t quoted(const jtn_lexer *l, size_t n)
{
    char quote = peek(l, n++);

    while (l->at + n < l->size && peek(l, n) != quote) {
        if (peek(l, n) == '\n')
            return n; /* an open one ends with its line */
        n += peek(l, n) == '\\' && l->at + n + 1 < l->size ? (splice_at(l, n) ? splice_at(l, n) : 2) : 1;
    }
    return l->at + n < l->size ? n + 1 : l->size - l->at;
}

/* R"delimiter( … )delimiter" from the quote on. */
static size_t raw_string(const jtn_lexer *l, size_t n)
{
    const char *begin = l->text + l->at + n + 1;
    size_t delimiter = 0;

    while (delimiter < 17 && peek(l, n + 1 + delimiter) && peek(l, n + 1 + delimiter) != '(' &&
           peek(l, n + 1 + delimiter) != '"' && peek(l, n + 1 + delimiter) != '\n')
        delimiter++;
    if (peek(l, n + 1 + delimiter) != '(')
        return quoted(l, n);
    for (size_t i = n + 2 + delimiter; l->at + i + delimiter + 1 < l->size; i++)
        if (peek(l, i) == ')' && memcmp(l->text + l->at + i + 1, begin, delimiter) == 0 &&
            peek(l, i + 1 + delimiter) == '"')
            return i + delimiter + 2;
    return l->size - l->at;
}

/* A string or character literal with its prefix, or 0. */
static size_t literal(const jtn_lexer *l, jtn_token_kind *kind)
{
    static const char *const prefixes[] = {"", "u8", "u", "U", "L"};

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t n = strlen(prefixes[i]);

        if (l->size - l->at < n || memcmp(l->text + l->at, prefixes[i], n) != 0)
            continue;
        *kind = peek(l, n) == '\'' ? JTN_TOKEN_CHAR : JTN_TOKEN_STRING;
        if (peek(l, n) == 'R' && peek(l, n + 1) == '"')
            return *kind = JTN_TOKEN_STRING, raw_string(l, n + 1);
        if (peek(l, n) == '"' || peek(l, n) == '\'')
            return quoted(l, n);
    }
    return 0;
}

static size_t number(const jtn_lexer *l)
{
    size_t n = 1;

    for (;; n++) {
        char c = peek(l, n);

        if ((c == '+' || c == '-') && strchr("eEpP", peek(l, n - 1)))
            continue;
        if (c == '\'' && is_name(peek(l, n + 1)))
            continue;
        if (!is_name(c) && c != '.')
            return n;
    }
}

/* To before the newline that ends it; a block comment inside may span lines. */
static size_t directive(const jtn_lexer *l)
{
    size_t n = 0;

    while (l->at + n < l->size && peek(l, n) != '\n') {
        jtn_lexer inner = *l;

        inner.at += n;
        if (peek(l, n) == '/' && (peek(l, n + 1) == '*' || peek(l, n + 1) == '/'))
            n += space(&inner);
        else if (peek(l, n) == '"')
            n = quoted(l, n);
        else
            n += splice_at(l, n) ? splice_at(l, n) : 1;
    }
    return n < l->size - l->at ? n : l->size - l->at;
}

static size_t punct(const jtn_lexer *l)
{
    if ((peek(l, 0) == '<' || peek(l, 0) == '>') && peek(l, 1) == peek(l, 0) && peek(l, 2) == peek(l, 0))
        return 3;
    return peek(l, 0) == ':' && peek(l, 1) == ':' ? 2 : 1;
}

static size_t scan(const jtn_lexer *l, jtn_token_kind *kind)
{
    char c = peek(l, 0);
    size_t n;

    if (c == '\n')
        return *kind = JTN_TOKEN_NEWLINE, 1;
    if ((n = space(l)))
        return *kind = JTN_TOKEN_SPACE, n;
    if (c == '#' && l->line_start)
        return *kind = JTN_TOKEN_DIRECTIVE, directive(l);
    if ((n = literal(l, kind)))
        return n;
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)peek(l, 1))))
        return *kind = JTN_TOKEN_NUMBER, number(l);
    if (!is_name_start(c))
        return *kind = JTN_TOKEN_PUNCT, punct(l);
    *kind = JTN_TOKEN_NAME;
    for (n = 1; is_name(peek(l, n));)
        n++;
    return n;
}

jtn_token jtn__lex_next(jtn_lexer *l)
{
    jtn_token token = {JTN_TOKEN_END, l->line, {l->text + l->at, 0}};
    size_t size;

    if (l->at >= l->size)
        return token;
    size = scan(l, &token.kind);
    if (size > l->size - l->at || size == 0)
        size = l->size - l->at;
    token.text.size = size;
    for (size_t i = 0; i < size; i++)
        l->line += token.text.data[i] == '\n';
    if (token.kind == JTN_TOKEN_NEWLINE)
        l->line_start = true;
    else if (token.kind != JTN_TOKEN_SPACE)
        l->line_start = false;
    l->at += size;
    return token;
}

jtn_token jtn__lex_next_code(jtn_lexer *l)
{
    jtn_token token;

    do
        token = jtn__lex_next(l);
    while (token.kind == JTN_TOKEN_SPACE || token.kind == JTN_TOKEN_NEWLINE || token.kind == JTN_TOKEN_DIRECTIVE);
    return token;
}
