/* test_flight.c — one builder per key; losing a race or a lock never gives a wrong entry or an endless wait. */
#include "support.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define PROCESSES 8
#define THREADS 4

static const jtn_digest k1 = {{1, 2, 3}};
static atomic_int builds;

/* As a load does it: look, enter, look again, build. */
static void load_once(jtn_cache *cache)
{
    jtn_flight *flight;

    if (strcmp(look(cache, &k1, NULL, 0), "miss") != 0)
        return;
    flight = jtn__flight_enter(cache, &k1);
    if (strcmp(look(cache, &k1, NULL, 0), "miss") == 0) {
        atomic_fetch_add(&builds, 1);
        usleep(20000);
        put_away(cache, &k1, NULL, "one", NULL);
    }
    jtn__flight_leave(flight);
}

static pthread_mutex_t look_lock = PTHREAD_MUTEX_INITIALIZER; /* look() answers in a static buffer */

static const char *look_safely(jtn_cache *cache)
{
    jtn_entry entry = {0};
    bool found = false, right;

    if (jtn__cache_get(cache, &k1, NULL, 0, &entry, &found, NULL) != JTN_OK)
        return "error";
    right = found && jtn__view_equal(entry.payload, jtn__view("one"));
    jtn__entry_deinit(&entry);
    return !found ? "miss" : right ? "one" : "wrong";
}

static void *race(void *arg)
{
    jtn_cache *cache = arg;

    for (int i = 0; i < 5; i++) {
        jtn_flight *flight = jtn__flight_enter(cache, &k1);

        if (strcmp(look_safely(cache), "miss") == 0) {
            atomic_fetch_add(&builds, 1);
            pthread_mutex_lock(&look_lock);
            put_away(cache, &k1, NULL, "one", NULL);
            pthread_mutex_unlock(&look_lock);
        }
        jtn__flight_leave(flight);
        if (strcmp(look_safely(cache), "one") != 0)
            return "wrong";
    }
    return NULL;
}

/* Without any flight: all put, all get. */
static void *collide(void *arg)
{
    for (int i = 0; i < 10; i++) {
        jtn_entry entry = {0};
        jtn_deps none = {0};
        const char *seen;

        if (jtn__cache_put(arg, &k1, &none, "mod", jtn__view("file"), jtn__view("one"), jtn__view("story"), &entry) != JTN_OK)
            return "put";
        jtn__entry_deinit(&entry);
        seen = look_safely(arg);
        if (strcmp(seen, "one") != 0)
            return "wrong";
    }
    return NULL;
}

static int run_threads(void *(*body)(void *), jtn_cache *cache)
{
    pthread_t threads[THREADS];
    int bad = 0;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, cache);
    for (int i = 0; i < THREADS; i++) {
        void *result;

        pthread_join(threads[i], &result);
        bad += result != NULL;
    }
    return bad;
}

/* Each process exits with its builds, or 100 where something was wrong. */
static int run_processes(void *(*body)(void *))
{
    pid_t pids[PROCESSES];
    int sum = 0;

    for (int i = 0; i < PROCESSES; i++) {
        if ((pids[i] = fork()) == 0) {
            jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
            int bad = run_threads(body, cache);

            jtn__cache_close(cache);
            _exit(bad ? 100 : atomic_load(&builds));
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;

        waitpid(pids[i], &status, 0);
        sum += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
    }
    return sum;
}

static void eight_processes_of_four_threads_build_once(void **state)
{
    atomic_store(&builds, 0);
    assert_int_equal(run_processes(race), 1);
}

static void writers_that_collide_without_a_lock_all_find_the_entry(void **state)
{
    atomic_store(&builds, 0);
    assert_int_equal(run_processes(collide), 0);
}

static void threads_of_one_process_build_once(void **state)
{
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);

    atomic_store(&builds, 0);
    assert_int_equal(run_threads(race, cache), 0);
    assert_int_equal(atomic_load(&builds), 1);
    jtn__cache_close(cache);
}

static void a_child_forked_in_flight_neither_hangs_nor_keeps_the_lock(void **state)
{
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    jtn_flight *flight = jtn__flight_enter(cache, &k1);
    int gate[2], status;
    jtn_lock lock;
    char byte, path[4096], hex[JTN_DIGEST_HEX];
    pid_t pid;

    assert_int_equal(pipe(gate), 0);
    if ((pid = fork()) == 0) {
        alarm(20);
        close(gate[1]);
        (void)!read(gate[0], &byte, 1); /* until the parent has left */
        jtn__flight_leave(flight);      /* inherited: harmless */
        load_once(cache);
        _exit(strcmp(look(cache, &k1, NULL, 0), "one") == 0 ? 0 : 1);
    }
    close(gate[0]);
    jtn__flight_leave(flight);
    jtn__digest_hex(&k1, hex);
    snprintf(path, sizeof path, "%s/v1/lock/%s", jtn__cache_dir(cache), hex);
    jtn__lock_take(path, 0, NULL, NULL, &lock); /* the child lives, and does not hold it */
    assert_true(lock.fd >= 0);
    jtn__lock_drop(&lock);
    close(gate[1]);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    jtn__cache_close(cache);
}

static void a_holder_that_dies_frees_the_key(void **state)
{
    jtn_cache *cache = open_cache(in_folder("c"), JTN_CACHE_WRITE);
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    if ((pid = fork()) == 0) {
        jtn__flight_enter(cache, &k1);
        (void)!write(ready[1], "x", 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(pid, SIGKILL);
    alarm(20);
    jtn__flight_leave(jtn__flight_enter(cache, &k1));
    alarm(0);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    jtn__cache_close(cache);
}

static void remember_holder(void *arg, const char *holder)
{
    snprintf(arg, 320, "%s", holder);
}

static void a_long_wait_names_the_holder_and_ends(void **state)
{
    char holder[320] = "", expected[64];
    jtn_lock held, wanted;

    jtn__lock_take(in_folder("lock"), 0, NULL, NULL, &held);
    assert_true(held.fd >= 0);
    jtn__lock_take(in_folder("lock"), 2100, remember_holder, holder, &wanted);
    assert_int_equal(wanted.fd, -1);
    snprintf(expected, sizeof expected, "process %ld on ", (long)getpid());
    assert_non_null(strstr(holder, expected));
    jtn__lock_drop(&held);
}

static void without_a_folder_a_builder_goes_on_alone(void **state)
{
    jtn_cache *cache;

    write_file(in_folder("file"), "");
    cache = open_cache(in_folder("file/c"), JTN_CACHE_WRITE);
    jtn__flight_leave(jtn__flight_enter(cache, &k1));
    jtn__flight_leave(NULL);
    jtn__cache_close(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(eight_processes_of_four_threads_build_once),
        CASE(writers_that_collide_without_a_lock_all_find_the_entry),
        CASE(threads_of_one_process_build_once),
        CASE(a_child_forked_in_flight_neither_hangs_nor_keeps_the_lock),
        CASE(a_holder_that_dies_frees_the_key),
        CASE(a_long_wait_names_the_holder_and_ends),
        CASE(without_a_folder_a_builder_goes_on_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
