/* process.c — runs another program: an argv, never a shell.
 *
 * The child leads a process group of its own, so that a kill reaches what a compiler driver started. Everything this library
 * opens is close-on-exec; the child gets an empty standard input and one pipe for what it prints. */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

extern char **environ;

/* ---------------------------------------------------------------- starting ---- */

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

jtn_status jtn__process_find(const char *name, char **out)
{
    const char *path = getenv("PATH");

    if (strchr(name, '/')) {
        if (!is_program(name))
            return jtn__fail(JTN_ERROR_NOT_FOUND, "there is no program \"%s\"", name);
        return (*out = jtn__strdup(name)) ? JTN_OK : JTN_ERROR_MEMORY;
    }
    for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin"; *at;) {
        size_t size = strcspn(at, ":");
        char *full = size ? jtn__format("%.*s/%s", (int)size, at, name) : jtn__format("./%s", name);

        if (!full)
            return JTN_ERROR_MEMORY;
        if (is_program(full)) {
            *out = full;
            return JTN_OK;
        }
        jtn__free(full);
        at += size + (at[size] == ':');
    }
    return jtn__fail(JTN_ERROR_NOT_FOUND, "there is no program \"%s\" in PATH (%s)", name, path ? path : "not set");
}

/* The environment with messages in one language. The strings are the process's own; only the array is new. */
static char **child_environment(void)
{
    static char locale[] = "LC_ALL=C";
    size_t count = 0, kept = 0;
    char **copy;

    while (environ[count])
        count++;
    copy = jtn__alloc((count + 2) * sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0 && strncmp(environ[i], "LANGUAGE=", 9) != 0)
            copy[kept++] = environ[i];
    if (copy)
        copy[kept] = locale;
    return copy;
}

static int spawn(const char *program, char *const argv[], const char *cwd, int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    char **environment = child_environment();
    int error = environment ? 0 : ENOMEM;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, output, 2);
    if (!error && cwd)
        error = posix_spawn_file_actions_addchdir_np(&actions, cwd);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    if (!error)
        error = posix_spawn(pid, program, &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    jtn__free(environment);
    return error;
}

jtn_status jtn__process_start(char *const argv[], const char *cwd, jtn_process *out)
{
    char *program = NULL;
    int fds[2];
    pid_t pid;
    int error;

    if (jtn__process_find(argv[0], &program) != JTN_OK)
        return jtn__fail(JTN_ERROR_TOOL, "%s", jtn__error_message());
    if (pipe2(fds, O_CLOEXEC) != 0) {
        jtn__free(program);
        return jtn__fail(JTN_ERROR_IO, "no pipe for the output of \"%s\": %s", argv[0], strerror(errno));
    }
    error = spawn(program, argv, cwd, fds[1], &pid);
    close(fds[1]);
    jtn__free(program);
    if (error) {
        close(fds[0]);
        return jtn__fail(JTN_ERROR_TOOL, "\"%s\" cannot be started: %s", argv[0], strerror(error));
    }
    *out = (jtn_process){pid, fds[0]};
    return JTN_OK;
}

/* ---------------------------------------------------------------- ending ---- */

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void jtn__process_kill(jtn_process *process)
{
    if (process->pid <= 0)
        return;
    kill(-process->pid, SIGKILL);
    kill(process->pid, SIGKILL);
    reap(process->pid);
    close(process->fd);
    *process = (jtn_process){0, -1};
}

/* Reads what there is. Returns 0 at the end of the output, 1 otherwise. What goes over the ceiling is dropped, so that the
 * child never blocks on a full pipe. */
static int drain(int fd, jtn_buf *output)
{
    char block[16384];
    ssize_t size = read(fd, block, sizeof block);

    if (size < 0)
        return errno == EINTR || errno == EAGAIN;
    if (size > 0 && output && output->size + (size_t)size <= output->ceiling)
        jtn__buf_put(output, block, (size_t)size);
    return size > 0;
}

jtn_status jtn__process_wait(jtn_process *process, int timeout_ms, jtn_buf *output, int *exit_code)
{
    int64_t until = timeout_ms < 0 ? INT64_MAX : now_ms() + timeout_ms;
    struct pollfd poller = {process->fd, POLLIN, 0};

    for (;;) {
        int64_t left = until == INT64_MAX ? -1 : until - now_ms();
        int ready;

        if (left < 0 && until != INT64_MAX) {
            jtn__process_kill(process);
            return jtn__fail(JTN_ERROR_CALL, "a program was stopped after %d ms: it took too long", timeout_ms);
        }
        ready = poll(&poller, 1, (int)left);
        if (ready < 0 && errno != EINTR)
            break;
        if (ready > 0 && !drain(process->fd, output))
            break;
    }
    *exit_code = reap(process->pid);
    close(process->fd);
    *process = (jtn_process){0, -1};
    return output ? output->failed : JTN_OK;
}

jtn_status jtn__process_run(char *const argv[], const char *cwd, int timeout_ms, jtn_buf *output, int *exit_code)
{
    jtn_process process;

    JTN_TRY(jtn__process_start(argv, cwd, &process));
    return jtn__process_wait(&process, timeout_ms, output, exit_code);
}
