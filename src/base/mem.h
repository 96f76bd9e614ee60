/* mem.h — allocation that reports failure as a status, and that tests can make fail. */
#ifndef JTN_BASE_MEM_H
#define JTN_BASE_MEM_H

#include "base/error.h"

/* NULL on failure, with the thread's message set to ERROR_MEMORY's. Zeroed. Free with jtn__free. */
void *jtn__alloc(size_t size);
void *jtn__realloc(void *block, size_t size); /* not zeroed; the old block stays on failure */
char *jtn__strdup(const char *text);
char *jtn__strndup(const char *text, size_t size);
/* printf into fresh memory. */
char *jtn__format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void jtn__free(void *block);

#define JTN_OUT_OF_MEMORY jtn__fail(JTN_ERROR_MEMORY, "out of memory")

/* Tests only: the n-th allocation from now on (1: the next) fails once; 0 switches it off. Process-wide. */
void jtn__mem_fail_at(long n);
long jtn__mem_count(void); /* allocations since the last jtn__mem_fail_at */

#endif
