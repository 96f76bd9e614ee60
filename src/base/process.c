/* process.c — runs another program: an argv, never a shell.
 *
 * The child leads a process group of its own, so that a kill reaches what a compiler driver started. Everything this library
 * opens is close-on-exec; the child gets an empty standard input and one pipe for what it prints. */
#include "base/process.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* How often a quiet child is asked whether it has ended: something it started may hold the pipe open for ever. */
#define LOOK_MS 200

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
    static const int reset[] = {SIGPIPE, SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    char **environment = child_environment();
    int error = environment ? 0 : ENOMEM;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    sigemptyset(&defaults); /* Python ignores SIGPIPE, servers SIGCHLD: compilers rely on both */
    for (size_t i = 0; i < sizeof reset / sizeof *reset; i++)
        sigaddset(&defaults, reset[i]);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, output, 2);
    if (!error && cwd)
        error = posix_spawn_file_actions_addchdir_np(&actions, cwd);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    if (!error)
        error = posix_spawn(pid, program, &actions, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    jtn__free(environment);
    return error;
}

/* A pipe whose ends are none of 0, 1, 2, which the child is going to replace. */
static int make_pipe(int fds[2])
{
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        int moved = fds[i] > 2 ? fds[i] : fcntl(fds[i], F_DUPFD_CLOEXEC, 3);

        if (moved != fds[i])
            close(fds[i]);
        fds[i] = moved;
    }
    if (fds[0] >= 0 && fds[1] >= 0)
        return 0;
    close(fds[0] >= 0 ? fds[0] : fds[1]);
    return -1;
}

/* The program's full path: it is looked up here, not in the folder where it will run. */
static jtn_status locate(const char *name, char **out)
{
    char *found, *here;

    if (jtn__process_find(name, &found) != JTN_OK)
        return jtn__fail(JTN_ERROR_TOOL, "%s", jtn__error_message());
    here = found[0] == '/' ? NULL : getcwd(NULL, 0);
    *out = jtn__path_join(here ? here : "", found);
    free(here);
    jtn__free(found);
    return *out ? JTN_OK : JTN_ERROR_MEMORY;
}

jtn_status jtn__process_start(char *const argv[], const char *cwd, jtn_process *out)
{
    char *program = NULL;
    int fds[2];
    pid_t pid;
    int error;

    JTN_TRY(locate(argv[0], &program));
    if (make_pipe(fds) != 0) {
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

/* -1: nobody can know, because this process ignores SIGCHLD and the kernel has thrown the answer away. */
static int reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid;
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
    if (size > 0 && output) {
        size_t room = output->ceiling > output->size ? output->ceiling - output->size : 0;

        jtn__buf_put(output, block, (size_t)size < room ? (size_t)size : room);
    }
    return size > 0;
}

/* The rest of the output. False when the time is over. */
static bool collect(jtn_process *process, int timeout_ms, jtn_buf *output)
{
    int64_t until = timeout_ms < 0 ? INT64_MAX : jtn__now_ms() + timeout_ms;
    struct pollfd poller = {process->fd, POLLIN, 0};

    for (;;) {
        int64_t left = until - jtn__now_ms();
        bool ended = has_ended(process->pid); /* asked first: what it wrote before its end is in the pipe by now */
        int ready = poll(&poller, 1, ended ? 0 : left < LOOK_MS ? (left < 0 ? 0 : (int)left) : LOOK_MS);

        if (ready < 0 && errno != EINTR)
            return true;
        if (ready > 0 && !drain(process->fd, output))
            return true;
        if (ready == 0 && ended)
            return true;
        if (left <= 0 && !ended)
            return false;
    }
}

jtn_status jtn__process_wait(jtn_process *process, int timeout_ms, jtn_buf *output, int *exit_code)
{
    int code;

    if (!collect(process, timeout_ms, output)) {
        jtn__process_kill(process);
        return jtn__fail(JTN_ERROR_CALL, "a program was stopped after %d ms: it took too long", timeout_ms);
    }
    code = reap(process->pid);
    close(process->fd);
    *process = (jtn_process){0, -1};
    if (code < 0)
        return jtn__fail(JTN_ERROR_TOOL,
                         "how a program ended cannot be known: this process ignores SIGCHLD; let it be SIG_DFL");
    *exit_code = code;
    return output ? output->failed : JTN_OK;
}

jtn_status jtn__process_run(char *const argv[], const char *cwd, int timeout_ms, jtn_buf *output, int *exit_code)
{
    jtn_process process;

    JTN_TRY(jtn__process_start(argv, cwd, &process));
    return jtn__process_wait(&process, timeout_ms, output, exit_code);
}
