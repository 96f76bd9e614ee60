/* clock.h — time that only goes forward. */
#ifndef JTN_BASE_CLOCK_H
#define JTN_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline double jtn__now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline int64_t jtn__now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif
