/* diagnostic.h — compiler text → file, line, column, severity, message, caret, in the user's coordinates. */
#ifndef JTN_COMPILE_DIAGNOSTIC_H
#define JTN_COMPILE_DIAGNOSTIC_H

#include "base/buf.h"

typedef struct jtn_finding {
    char *file, *message, *excerpt;
    int line, column;
    jtn_severity severity;
} jtn_finding;

typedef struct jtn_findings {
    jtn_finding *items;
    size_t count, capacity;
    char *log; /* the compilers' text, whole; never NULL after init */
} jtn_findings;

/* Gives a source's line, for a caret where the compiler printed none; NULL when unknown. */
typedef jtn_view (*jtn_line_fn)(void *arg, const char *file, int line);

/* Line number `line` of `file` in a text that begins as line 1 of `name` and may change both by #line; data NULL when it is not in it. */
jtn_view jtn__line_in(jtn_view text, const char *name, const char *file, int line);

/* Reads gcc's and clang's "file:line:col: error: text" and NVRTC's "file(line): error: text" with their excerpt lines, ld's
 * "undefined reference", and "catastrophic error". NVRTC gives no column: it is read off its caret line. Appends. Unreadable
 * text is kept in the log and never lost. map: renames files (staging paths, in-memory names) to the user's; may be NULL. */
jtn_status jtn__findings_add(jtn_findings *findings, const char *text, const char *(*map)(void *arg, const char *file),
                             jtn_line_fn line, void *arg);
/* Puts what `from` has behind what `to` has; out of memory, what does not fit stays in `from`. */
void jtn__findings_move(jtn_findings *to, jtn_findings *from);
void jtn__findings_deinit(jtn_findings *findings);
/* The first errors as a person wants to read them: "axpy.cu:7:12: error: …\n<line>\n<caret>\n…and 3 more". Fresh memory. */
char *jtn__findings_summary(const jtn_findings *findings, size_t most);

#endif
