/* buf.c — growing bytes or text with a ceiling, string views, lists of strings.
 *
 * Invariant of a buffer: data is NULL, or capacity > size and data[size] == 0. */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define DEFAULT_CEILING ((size_t)1 << 30)

jtn_view jtn__view(const char *text)
{
    return (jtn_view){text ? text : "", text ? strlen(text) : 0};
}

bool jtn__view_equal(jtn_view a, jtn_view b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* ---------------------------------------------------------------- buffer ---- */

static jtn_status grow(jtn_buf *buf, size_t more)
{
    size_t capacity = buf->capacity ? buf->capacity : 64;
    char *data;

    if (buf->failed != JTN_OK)
        return buf->failed;
    if (more > buf->ceiling - buf->size) {
        buf->failed =
            jtn__fail(JTN_ERROR_MEMORY, "a text or file is larger than the %zu bytes allowed for it", buf->ceiling);
        return buf->failed;
    }
    while (capacity <= buf->size + more)
        capacity *= 2;
    if (capacity == buf->capacity)
        return JTN_OK;
    data = jtn__realloc(buf->data, capacity);
    if (!data)
        return buf->failed = JTN_ERROR_MEMORY;
    buf->data = data;
    buf->capacity = capacity;
    return JTN_OK;
}

void jtn__buf_init(jtn_buf *buf, size_t ceiling)
{
    *buf = (jtn_buf){.ceiling = ceiling ? ceiling : DEFAULT_CEILING};
}

void jtn__buf_deinit(jtn_buf *buf)
{
    jtn__free(buf->data);
    buf->data = NULL;
    buf->size = buf->capacity = 0;
}

jtn_status jtn__buf_put(jtn_buf *buf, const void *bytes, size_t size)
{
    JTN_TRY(grow(buf, size));
    if (size)
        memcpy(buf->data + buf->size, bytes, size);
    buf->size += size;
    buf->data[buf->size] = 0;
    return JTN_OK;
}

jtn_status jtn__buf_puts(jtn_buf *buf, const char *text)
{
    return jtn__buf_put(buf, text, strlen(text));
}

jtn_status jtn__buf_printf(jtn_buf *buf, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return buf->failed = jtn__fail(JTN_ERROR_INTERNAL, "a text could not be formatted: \"%s\"", format);
    JTN_TRY(grow(buf, (size_t)length));
    va_start(args, format);
    vsnprintf(buf->data + buf->size, (size_t)length + 1, format, args);
    va_end(args);
    buf->size += (size_t)length;
    return JTN_OK;
}

void jtn__buf_clear(jtn_buf *buf)
{
    buf->size = 0;
    buf->failed = JTN_OK;
    if (buf->data)
        buf->data[0] = 0;
}

char *jtn__buf_take(jtn_buf *buf, size_t *size)
{
    char *data;

    if (buf->failed != JTN_OK || jtn__buf_put(buf, "", 0) != JTN_OK)
        return NULL;
    data = buf->data;
    if (size)
        *size = buf->size;
    buf->data = NULL;
    buf->size = buf->capacity = 0;
    return data;
}

/* ---------------------------------------------------------------- list ---- */

jtn_status jtn__list_add_take(jtn_list *list, char *text)
{
    if (!text)
        return JTN_ERROR_MEMORY;
    if (list->count + 1 >= list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        char **items = jtn__realloc(list->items, capacity * sizeof *items);

        if (!items) {
            jtn__free(text);
            return JTN_ERROR_MEMORY;
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = text;
    list->items[list->count] = NULL;
    return JTN_OK;
}

jtn_status jtn__list_add(jtn_list *list, const char *text)
{
    return jtn__list_add_take(list, jtn__strdup(text));
}

jtn_status jtn__list_addf(jtn_list *list, const char *format, ...)
{
    jtn_buf text;
    va_list args;
    char small[512];
    int length;

    va_start(args, format);
    length = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < sizeof small)
        return jtn__list_add(list, small);
    jtn__buf_init(&text, 0);
    if (length < 0 || grow(&text, (size_t)length) != JTN_OK)
        return JTN_ERROR_MEMORY;
    va_start(args, format);
    vsnprintf(text.data, (size_t)length + 1, format, args);
    va_end(args);
    return jtn__list_add_take(list, text.data);
}

jtn_status jtn__list_add_all(jtn_list *list, const jtn_list *more)
{
    for (size_t i = 0; i < more->count; i++)
        JTN_TRY(jtn__list_add(list, more->items[i]));
    return JTN_OK;
}

bool jtn__list_has(const jtn_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

void jtn__list_deinit(jtn_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        jtn__free(list->items[i]);
    jtn__free(list->items);
    *list = (jtn_list){0};
}
