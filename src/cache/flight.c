/* flight.c — one builder per key, among the threads of this process and among processes.
 *
 * Threads wait on a table in memory; then the one that may build takes the kernel lock of the key. Whoever waited looks the key up
 * again. A lock that is refused, unsupported or lost means that two build the same thing: the first to publish wins, and both are
 * right. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cache/cache.h"
#include "cache/disk.h"

/* Longer than any build; then go on alone. */
#define WAIT_MS (30 * 60 * 1000)

struct jtn_flight {
    jtn_digest k1;
    jtn_lock lock;
    jtn_flight *next;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t landed = PTHREAD_COND_INITIALIZER;
static jtn_flight *in_flight;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

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
    for (jtn_flight *f = in_flight; f; f = f->next)
        jtn__lock_drop(&f->lock);
    in_flight = NULL;
    pthread_cond_init(&landed, NULL);
    pthread_mutex_init(&table_lock, NULL);
}

static void watch_forks(void)
{
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
    while (is_in_flight(k1))
        pthread_cond_wait(&landed, &table_lock);
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
