/* lock.c — a lock the kernel releases when its holder dies.
 *
 * An open-file-description lock where there is one (it crosses network file systems that support locks), else flock. The file
 * stays; it says who holds it, for whoever waits. Nothing ever depends on the lock but the amount of work done. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/clock.h"

/* Waiters look again this often: short against a compile, and no load worth mentioning. */
#define POLL_US 5000
#define TELL_AFTER_MS 2000

static int try_lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
        return 0;
    if (errno == EINVAL)
        return flock(fd, LOCK_EX | LOCK_NB);
    return -1;
}

static bool is_held_by_another(int error)
{
    return error == EAGAIN || error == EACCES || error == EWOULDBLOCK || error == EINTR;
}

static void write_holder(int fd)
{
    char text[320] = "", host[256] = "?";

    gethostname(host, sizeof host - 1);
    snprintf(text, sizeof text, "process %ld on %s\n", (long)getpid(), host);
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, strlen(text), 0);
}

static void tell(int fd, void (*waiting)(void *arg, const char *holder), void *arg)
{
    char text[320] = "";
    ssize_t size = pread(fd, text, sizeof text - 1, 0);

    text[size > 0 ? size : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    waiting(arg, text[0] ? text : "another process");
}

void jtn__lock_take(const char *path, int wait_ms, void (*waiting)(void *arg, const char *holder), void *arg,
                    jtn_lock *out)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int64_t begin = jtn__now_ms();
    bool told = !waiting;

    out->fd = -1;
    if (fd < 0)
        return;
    while (try_lock(fd) != 0) {
        int64_t waited = jtn__now_ms() - begin;

        if (!is_held_by_another(errno) || waited >= wait_ms) {
            close(fd);
            return;
        }
        if (!told && waited >= TELL_AFTER_MS) {
            tell(fd, waiting, arg);
            told = true;
        }
        usleep(POLL_US);
    }
    write_holder(fd);
    out->fd = fd;
}

void jtn__lock_drop(jtn_lock *lock)
{
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    if (lock->fd < 0)
        return;
    /* Said aloud, not left to close: a child forked meanwhile has the descriptor too. */
    if (fcntl(lock->fd, F_OFD_SETLK, &whole) != 0)
        (void)!flock(lock->fd, LOCK_UN);
    close(lock->fd);
    lock->fd = -1;
}
