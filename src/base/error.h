/* error.h — one status list, one message per thread.
 *
 * A function that can fail returns jtn_status and, where the failure begins, calls jtn__fail with a message that says what
 * happened, to what, and what to do. Callers pass failures on with JTN_TRY and never replace a message by a vaguer one. */
#ifndef JTN_BASE_ERROR_H
#define JTN_BASE_ERROR_H

#include <stdarg.h>

#include "jitney/jitney.h"

/* Records the thread's message and returns status, so that `return jtn__fail(…)` is the whole error path. */
jtn_status jtn__fail(jtn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
jtn_status jtn__failv(jtn_status status, const char *format, va_list args);
/* Puts "text: " before the recorded message: the outer story told once the inner one is known. */
jtn_status jtn__fail_prefix(jtn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *jtn__error_message(void);

#define JTN_TRY(expression)                              \
    do {                                                 \
        jtn_status jtn_try_ = (expression);              \
        if (__builtin_expect(jtn_try_ != JTN_OK, 0))     \
            return jtn_try_;                             \
    } while (0)

/* Inside functions with an `out:` label and a `status` variable. */
#define JTN_GO(expression)                                              \
    do {                                                                \
        if (__builtin_expect((status = (expression)) != JTN_OK, 0))     \
            goto out;                                                   \
    } while (0)

#endif
