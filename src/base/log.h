/* log.h — levels, one sink. The sink is the runtime's (jtn_options.log) or standard error. */
#ifndef JTN_BASE_LOG_H
#define JTN_BASE_LOG_H

#include "base/error.h"

enum { JTN_LOG_ERROR = 0, JTN_LOG_WARNING = 1, JTN_LOG_INFO = 2, JTN_LOG_DEBUG = 3 };

void jtn__log_set(jtn_log_fn log, void *arg, int level); /* lines above level are dropped; default WARNING */
void jtn__log_level(int level);                           /* process-wide */
/* A build that asked for verbose raises the level in its own thread until it is set back to -1. */
void jtn__log_thread_level(int level);
void jtn__log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says a line at level warning once in the life of the process for each key. */
void jtn__log_once(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
