/* lex.h — C++ and CUDA text as tokens: comments, raw strings, splices, directives; every byte of the text is in a token. */
#ifndef JTN_SOURCE_LEX_H
#define JTN_SOURCE_LEX_H

#include <stdbool.h>

#include "base/buf.h"

typedef enum {
    JTN_TOKEN_END,
    JTN_TOKEN_SPACE,     /* blanks and comments */
    JTN_TOKEN_NEWLINE,
    JTN_TOKEN_NAME,      /* identifiers and keywords */
    JTN_TOKEN_NUMBER,
    JTN_TOKEN_STRING,    /* with prefix; raw strings whole */
    JTN_TOKEN_CHAR,
    JTN_TOKEN_PUNCT,     /* one character, but "<<<", ">>>", "::" are one token */
    JTN_TOKEN_DIRECTIVE  /* a whole preprocessor line from '#' to before its newline, splices included */
} jtn_token_kind;

typedef struct jtn_token {
    jtn_token_kind kind;
    uint32_t line; /* from 1 */
    jtn_view text; /* into the source */
} jtn_token;

typedef struct jtn_lexer {
    const char *text;
    size_t size, at;
    uint32_t line;
    bool line_start;
} jtn_lexer;

void jtn__lex_init(jtn_lexer *lexer, const char *text, size_t size);
jtn_token jtn__lex_next(jtn_lexer *lexer); /* never fails: an open comment or string runs to the end */
jtn_token jtn__lex_next_code(jtn_lexer *lexer); /* skips spaces, newlines and directives */

/* What a CUDA text seems to hold, for choosing its compilers. A hint, from the tokens alone: macros are not expanded. */
typedef struct jtn_cuda_survey {
    jtn_list kernels;   /* qualified names of __global__ functions that are no templates: "ns::axpy"; anonymous namespaces
                           leave no part; each once, in order */
    jtn_list overloads; /* the ones defined more than once with different parameters */
    jtn_list templates; /* qualified names of kernel templates */
    jtn_list globals;   /* qualified names of __constant__ and __device__ variables at namespace scope, no templates */
    /* "kernel:param" names in order, for messages: for kernels and templates, each "axpy:a,x,y,n" */
    jtn_list param_names;
    bool has_device;    /* any of __global__, __device__, __constant__ */
    bool has_host;      /* PYBIND11_MODULE, TORCH_LIBRARY…, "<<<", or a function with none of the CUDA markers but with a body,
                           outside headers, that uses torch/ATen names */
    uint32_t host_line; /* where has_host was seen */
} jtn_cuda_survey;

jtn_status jtn__cuda_survey(const char *text, size_t size, jtn_cuda_survey *out);
void jtn__cuda_survey_deinit(jtn_cuda_survey *survey);

#endif
