/* error.c — one message per thread.
 *
 * The message stays until the thread's next failure. It is kept in a fixed block of thread-local memory, so that reporting
 * a failure, out of memory above all, cannot fail. */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Long enough for a compile error's summary; a longer message is cut with an ellipsis, the whole text is in the log. */
#define MESSAGE_SIZE 8192

static _Thread_local char message[MESSAGE_SIZE];

static void cut_mark(void)
{
    memcpy(message + MESSAGE_SIZE - 5, "…", sizeof "…");
}

jtn_status jtn__failv(jtn_status status, const char *format, va_list args)
{
    char text[MESSAGE_SIZE]; /* the arguments may point into the old message */
    int length = vsnprintf(text, sizeof text, format, args);

    memcpy(message, text, sizeof text);
    if (length >= (int)sizeof text)
        cut_mark();
    return status;
}

jtn_status jtn__fail(jtn_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    jtn__failv(status, format, args);
    va_end(args);
    return status;
}

jtn_status jtn__fail_prefix(jtn_status status, const char *format, ...)
{
    char prefix[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    return jtn__fail(status, "%s: %s", prefix, message);
}

const char *jtn__error_message(void)
{
    return message;
}
