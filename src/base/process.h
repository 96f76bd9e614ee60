/* process.h — runs another program: an argv, never a shell; its output captured; killed with all it started when asked. */
#ifndef JTN_BASE_PROCESS_H
#define JTN_BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

typedef struct jtn_process {
    pid_t pid; /* 0: none */
    int fd;    /* reads its standard output and error, as one */
} jtn_process;

/* Starts argv[0] (looked up in PATH when it has no slash) in folder cwd (NULL: here), in a process group of its own, with
 * standard input empty and LC_ALL=C so that messages are in one language. TOOL when it cannot be started. */
jtn_status jtn__process_start(char *const argv[], const char *cwd, jtn_process *out);
/* Collects the output (the first `ceiling` bytes are kept) and the end: of the program itself, not of what it left behind in
 * the background. exit_code: 0–255, or 128 + signal. Always reaps. timeout_ms < 0: none; when it passes, the group is killed
 * and CALL returned. Signals to this process do not end the wait. */
jtn_status jtn__process_wait(jtn_process *process, int timeout_ms, jtn_buf *output, int *exit_code);
void jtn__process_kill(jtn_process *process); /* kills the group and reaps; a finished or absent one is fine */
/* start + wait. */
jtn_status jtn__process_run(char *const argv[], const char *cwd, int timeout_ms, jtn_buf *output, int *exit_code);
/* Full path of a program, by PATH; NOT_FOUND. */
jtn_status jtn__process_find(const char *name, char **out);

#endif
