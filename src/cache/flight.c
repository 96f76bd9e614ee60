/* flight.c — one builder per key, among the threads of this process and among processes.
 *
 * Threads wait on a table in memory; then the one that may build takes the kernel lock of the key. Whoever waited looks the key up
 * again. A lock that is refused, unsupported or lost means that two build the same thing: the first to publish wins, and both are
 * right. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cache/cache.h"
#include "cache/disk.h"

/* Longer than any build; then go on alone. */
#define WAIT_MS (30 * 60 * 1000)
#define TELL_AFTER_MS 2000

struct jtn_flight {
    jtn_digest k1;
    jtn_lock lock;
    jtn_flight *next;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t landed;
static jtn_flight *in_flight;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* Waits are told in a clock that nobody sets. */
static void init_landed(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&landed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void before_fork(void)
{
    pthread_mutex_lock(&table_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&table_lock);
}

/* The builders were threads of the parent: none of them is here. Their locks must not be held by this process too. */
static void after_fork_in_child(void)
{
    for (jtn_flight *f = in_flight; f; f = f->next) {
        if (f->lock.fd >= 0)
            close(f->lock.fd); /* not dropped: it is still the parent's */
        f->lock.fd = -1;
    }
    in_flight = NULL;
    init_landed();
    pthread_mutex_init(&table_lock, NULL);
}

static void watch_forks(void)
{
    init_landed();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static bool is_in_flight(const jtn_digest *k1)
{
    for (jtn_flight *f = in_flight; f; f = f->next)
        if (jtn__digest_equal(&f->k1, k1))
            return true;
    return false;
}

static void say_waiting(void *arg, const char *holder)
{
    jtn__log(JTN_LOG_WARNING, "jitney: waiting for %s, which is building the same module", holder);
}

/* Until no other thread builds k1, with table_lock held; at most WAIT_MS. */
static void wait_for_threads(const jtn_digest *k1)
{
    static const int steps_ms[] = {TELL_AFTER_MS, WAIT_MS - TELL_AFTER_MS};

    for (size_t i = 0; i < sizeof steps_ms / sizeof *steps_ms && is_in_flight(k1); i++) {
        struct timespec until;
        int error = 0;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += steps_ms[i] / 1000;
        while (error != ETIMEDOUT && is_in_flight(k1))
            error = pthread_cond_timedwait(&landed, &table_lock, &until);
        if (i == 0 && is_in_flight(k1))
            say_waiting(NULL, "another thread of this process");
    }
}

static void take_kernel_lock(jtn_cache *cache, jtn_flight *flight)
{
    char hex[JTN_DIGEST_HEX];
    char *path;

    if (cache->mode != JTN_CACHE_WRITE || jtn__disk_prepare(cache) != JTN_OK)
        return;
    jtn__digest_hex(&flight->k1, hex);
    if (!(path = jtn__format("%s/v1/lock/%s", cache->dir, hex)))
        return;
    jtn__lock_take(path, WAIT_MS, say_waiting, NULL, &flight->lock);
    jtn__free(path);
}

jtn_flight *jtn__flight_enter(jtn_cache *cache, const jtn_digest *k1)
{
    jtn_flight *flight = jtn__alloc(sizeof *flight);

    if (!flight)
        return NULL;
    flight->k1 = *k1;
    flight->lock.fd = -1;
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&table_lock);
    wait_for_threads(k1);
    flight->next = in_flight;
    in_flight = flight;
    pthread_mutex_unlock(&table_lock);
    take_kernel_lock(cache, flight);
    return flight;
}

void jtn__flight_leave(jtn_flight *flight)
{
    jtn_flight **at;

    if (!flight)
        return;
    jtn__lock_drop(&flight->lock);
    pthread_mutex_lock(&table_lock);
    for (at = &in_flight; *at && *at != flight; at = &(*at)->next)
        continue;
    if (*at)
        *at = flight->next;
    pthread_cond_broadcast(&landed);
    pthread_mutex_unlock(&table_lock);
    jtn__free(flight);
}
