/* mem.c — allocation that reports failure, and that tests can make fail.
 *
 * A counter is the whole fault injector: when it reaches zero, that one allocation fails. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_long fail_at; /* counts down; 0: off */
static atomic_long made;

static int refused(void)
{
    atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    if (atomic_load_explicit(&fail_at, memory_order_relaxed) == 0)
        return 0;
    return atomic_fetch_sub_explicit(&fail_at, 1, memory_order_relaxed) == 1;
}

static void *checked(void *block)
{
    if (!block)
        JTN_OUT_OF_MEMORY;
    return block;
}

void *jtn__alloc(size_t size)
{
    return checked(refused() ? NULL : calloc(1, size ? size : 1));
}

void *jtn__realloc(void *block, size_t size)
{
    return checked(refused() ? NULL : realloc(block, size ? size : 1));
}

char *jtn__strndup(const char *text, size_t size)
{
    char *copy = jtn__alloc(size + 1);

    if (copy && size)
        memcpy(copy, text, size);
    return copy;
}

char *jtn__strdup(const char *text)
{
    return jtn__strndup(text, strlen(text));
}

char *jtn__format(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !(text = jtn__alloc((size_t)length + 1)))
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void jtn__free(void *block)
{
    free(block);
}

void jtn__mem_fail_at(long n)
{
    atomic_store(&made, 0);
    atomic_store(&fail_at, n);
}

long jtn__mem_count(void)
{
    return atomic_load(&made);
}
