/* log.c — levels, one sink.
 *
 * The sink is set once, at open, and read without a lock by whoever logs. Lines for a level that nobody listens to cost a
 * compare. */
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static _Atomic(jtn_log_fn) sink;
static _Atomic(void *) sink_arg;
static atomic_int process_level = JTN_LOG_WARNING;
static _Thread_local int thread_level = -1;

static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;
static jtn_list said;

void jtn__log_set(jtn_log_fn log, void *arg, int level)
{
    atomic_store(&sink_arg, arg);
    atomic_store(&sink, log);
    atomic_store(&process_level, level);
}

void jtn__log_level(int level)
{
    atomic_store(&process_level, level);
}

void jtn__log_thread_level(int level)
{
    thread_level = level;
}

static void write_line(int level, const char *format, va_list args)
{
    jtn_log_fn log = atomic_load(&sink);
    char line[2048];

    vsnprintf(line, sizeof line, format, args);
    if (log)
        log(atomic_load(&sink_arg), level, line);
    else
        fprintf(stderr, "%s\n", line);
}

void jtn__log(int level, const char *format, ...)
{
    va_list args;

    if (level > atomic_load_explicit(&process_level, memory_order_relaxed) && level > thread_level)
        return;
    va_start(args, format);
    write_line(level, format, args);
    va_end(args);
}

void jtn__log_once(const char *key, const char *format, ...)
{
    va_list args;
    bool first;

    pthread_mutex_lock(&said_lock);
    first = !jtn__list_has(&said, key);
    if (first)
        jtn__list_add(&said, key); /* a failure says it twice, no more */
    pthread_mutex_unlock(&said_lock);
    if (!first || atomic_load(&process_level) < JTN_LOG_WARNING)
        return;
    va_start(args, format);
    write_line(JTN_LOG_WARNING, format, args);
    va_end(args);
}
