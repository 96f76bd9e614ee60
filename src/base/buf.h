/* buf.h — growing bytes or text with a ceiling, string views, lists of strings. */
#ifndef JTN_BASE_BUF_H
#define JTN_BASE_BUF_H

#include <stdbool.h>

#include "base/error.h"

typedef struct jtn_view {
    const char *data;
    size_t size;
} jtn_view;

#define JTN_VIEW(literal) ((jtn_view){(literal), sizeof(literal) - 1})
jtn_view jtn__view(const char *text); /* NULL: the empty view */
bool jtn__view_equal(jtn_view a, jtn_view b);

/* data always has a NUL behind size bytes once anything was put. A failed put leaves the buffer as it was, and every later
 * put fails too (`failed`), so that a chain of puts may be checked once, at its end. */
typedef struct jtn_buf {
    char *data;
    size_t size, capacity, ceiling;
    jtn_status failed;
} jtn_buf;

void jtn__buf_init(jtn_buf *buf, size_t ceiling); /* ceiling 0: 1 GiB */
void jtn__buf_deinit(jtn_buf *buf);
jtn_status jtn__buf_put(jtn_buf *buf, const void *bytes, size_t size);
jtn_status jtn__buf_puts(jtn_buf *buf, const char *text);
jtn_status jtn__buf_printf(jtn_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void jtn__buf_clear(jtn_buf *buf); /* empties, keeps the memory */
/* Hands over the memory (never NULL on success, NUL-terminated); the buffer is empty afterwards. NULL out of memory or
 * when a put had failed. Free with jtn__free. */
char *jtn__buf_take(jtn_buf *buf, size_t *size);

/* An owned list of owned strings; items[count] is NULL, so it is an argv. Zero-initialise. */
typedef struct jtn_list {
    char **items;
    size_t count, capacity;
} jtn_list;

jtn_status jtn__list_add(jtn_list *list, const char *text); /* copies */
jtn_status jtn__list_addf(jtn_list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
jtn_status jtn__list_add_take(jtn_list *list, char *text); /* takes ownership, also on failure; NULL fails */
jtn_status jtn__list_add_all(jtn_list *list, const jtn_list *more);
bool jtn__list_has(const jtn_list *list, const char *text);
void jtn__list_deinit(jtn_list *list);

#endif
