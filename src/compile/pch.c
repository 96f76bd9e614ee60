/* pch.c — Jitney's C++ header, precompiled, and the object with what is the same in every module.
 *
 * Both are made once per compiler, flags and content of the headers, in the background of the first build that wants them, and
 * live in the cache: kind "pch", a folder under k2. The memo under k1 (compiler, flags, place of the headers) tells the k2 and
 * the files the header was made of; it is used only while these are as they were, because GCC never looks at them again. GCC
 * ignores a header that does not suit it, silently: then a build is just slower.
 *
 * Process-wide: at most one header is being made. The thread that makes it uses the cache and the compiler it was given, so
 * jtn__cxx_free and the process's end wait for it: a script shorter than the making would else never get one. */
#include "compile/cxx_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/wire.h"

#define AT_EXIT_WAIT_MS 10000

static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    pid_t process; /* that began it: a forked child has no such thread */
    bool running, at_exit;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

typedef struct jtn_making {
    jtn_cxx *cxx;
    jtn_cache *cache;
    char *data_dir, *staging;
    jtn_list flags;
    jtn_digest k1, k2;
    jtn_deps deps;
} jtn_making;

/* ---------------------------------------------------------------- finding ---- */

static void first_key(const jtn_cxx *cxx, const char *data_dir, const jtn_list *flags, jtn_digest *k1)
{
    struct utsname machine;
    jtn_hash hash;

    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "format", "pch 1");
    for (size_t i = 0; i < flags->count; i++) /* a cache may be shared with a machine of another kind */
        if (strstr(flags->items[i], "=native") && uname(&machine) == 0)
            jtn__hash_text(&hash, "machine", machine.nodename);
    jtn__hash_field(&hash, "compiler", cxx->identity.bytes, sizeof cxx->identity.bytes);
    jtn__hash_text(&hash, "headers", data_dir);
    for (size_t i = 0; i < flags->count; i++)
        jtn__hash_text(&hash, "flag", flags->items[i]);
    jtn__hash_final(&hash, k1);
}

static void encode(const jtn_making *making, jtn_buf *out)
{
    jtn__put_bytes(out, making->k2.bytes, sizeof making->k2.bytes);
    jtn__put_u32(out, (uint32_t)making->deps.count);
    for (size_t i = 0; i < making->deps.count; i++) {
        const jtn_dep *dep = &making->deps.items[i];

        jtn__put_text(out, dep->path);
        jtn__put_bytes(out, dep->digest.bytes, sizeof dep->digest.bytes);
        jtn__put_bytes(out, &dep->id, sizeof dep->id);
    }
}

/* Room for one more. */
static jtn_status grow(jtn_deps *deps)
{
    size_t capacity = deps->capacity ? deps->capacity * 2 : 64;
    jtn_dep *items;

    if (deps->count < deps->capacity)
        return JTN_OK;
    if (!(items = jtn__realloc(deps->items, capacity * sizeof *items)))
        return JTN_ERROR_MEMORY;
    deps->items = items;
    deps->capacity = capacity;
    return JTN_OK;
}

static jtn_status decode(jtn_view bytes, jtn_digest *k2, jtn_deps *deps)
{
    jtn_reader r = {.data = bytes.data, .size = bytes.size};
    jtn_view key = jtn__get_bytes(&r);

    for (uint32_t count = jtn__get_count(&r, 24); count-- > 0 && !r.bad;) {
        jtn_view path = jtn__get_bytes(&r), digest = jtn__get_bytes(&r), id = jtn__get_bytes(&r);
        jtn_dep dep = {.root = JTN_ROOT_ABSOLUTE, .system = true};

        if (r.bad || digest.size != sizeof dep.digest.bytes || id.size != sizeof dep.id)
            break;
        memcpy(dep.digest.bytes, digest.data, digest.size);
        memcpy(&dep.id, id.data, id.size);
        JTN_TRY(grow(deps));
        if (!(dep.path = jtn__strndup(path.data, path.size)))
            return JTN_ERROR_MEMORY;
        deps->items[deps->count++] = dep;
    }
    if (r.bad || r.at != r.size || key.size != sizeof k2->bytes)
        return jtn__fail(JTN_ERROR_CACHE, "the memo of a precompiled header is damaged");
    memcpy(k2->bytes, key.data, key.size);
    return JTN_OK;
}

static jtn_status find(jtn_cache *cache, const jtn_digest *k1, jtn_pch *out)
{
    jtn_buf bytes;
    jtn_digest k2;
    bool found = false;
    jtn_status status;

    *out = (jtn_pch){0};
    jtn__buf_init(&bytes, 1 << 24);
    JTN_GO(jtn__memo_get(cache, "pch", k1, &bytes, &found));
    if (!found || (status = decode((jtn_view){bytes.data, bytes.size}, &k2, &out->deps)) == JTN_ERROR_CACHE) {
        status = JTN_OK;
        goto out;
    }
    JTN_GO(status);
    found = false;
    if (jtn__deps_fresh(&out->deps, NULL, 0, true) == 1)
        JTN_GO(jtn__folder_get(cache, "pch", &k2, &out->folder, &found));
out:
    jtn__buf_deinit(&bytes);
    if (status != JTN_OK || !out->folder)
        jtn__pch_deinit(out);
    return status;
}

jtn_status jtn__pch_find(jtn_cxx *cxx, jtn_cache *cache, const jtn_host_job *job, jtn_pch *out)
{
    jtn_list flags = {0};
    jtn_digest k1;
    jtn_status status;

    *out = (jtn_pch){0};
    if (!cxx->gnu || !cache || jtn__cache_mode(cache) == JTN_CACHE_OFF)
        return JTN_OK;
    JTN_GO(jtn__cxx_pch_flags(job, &flags));
    first_key(cxx, job->data_dir, &flags, &k1);
    JTN_GO(find(cache, &k1, out));
out:
    jtn__list_deinit(&flags);
    return status;
}

void jtn__pch_deinit(jtn_pch *pch)
{
    jtn__free(pch->folder);
    jtn__deps_deinit(&pch->deps);
    *pch = (jtn_pch){0};
}

/* ---------------------------------------------------------------- making ---- */

static jtn_status base_argv(const jtn_making *m, jtn_list *argv)
{
    static const char *const ours[] = {"-O2",
                                       "-fPIC",
                                       "-fvisibility=hidden",
                                       "-pipe",
                                       "-fdiagnostics-color=never",
                                       "-std=c++17",
                                       "-DJITNEY_HOST_RUNTIME"};

    JTN_TRY(jtn__list_add_all(argv, &m->cxx->command));
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        JTN_TRY(jtn__list_add(argv, ours[i]));
    JTN_TRY(jtn__list_add_all(argv, &m->flags));
    return jtn__cxx_own_headers(m->cxx, m->data_dir, argv);
}

static jtn_status run(const jtn_list *argv)
{
    jtn_buf output;
    int exit_code = 0;
    jtn_status status;

    jtn__buf_init(&output, 1 << 20);
    status = jtn__process_run(argv->items, NULL, 300000, &output, &exit_code);
    if (status == JTN_OK && exit_code != 0)
        status = jtn__fail(JTN_ERROR_COMPILE, "exit code %d: %.500s", exit_code, output.size ? output.data : "");
    jtn__buf_deinit(&output);
    return status;
}

static jtn_status make_header(const jtn_making *m)
{
    jtn_list argv = {0};
    jtn_buf text;
    char *prelude = jtn__format("%s/include/jitney/host/prelude.h", m->data_dir),
         *copy = jtn__path_join(m->staging, "prelude.h");
    jtn_status status = JTN_ERROR_MEMORY;

    jtn__buf_init(&text, 1 << 20);
    if (!prelude || !copy)
        goto out;
    JTN_GO(jtn__file_read(prelude, &text));
    JTN_GO(jtn__file_write(copy, text.data, text.size, 0600));
    JTN_GO(base_argv(m, &argv));
    JTN_GO(jtn__list_add(&argv, "-MD"));
    JTN_GO(jtn__list_add(&argv, "-MF"));
    JTN_GO(jtn__list_addf(&argv, "%s/prelude.d", m->staging));
    JTN_GO(jtn__list_add(&argv, "-x"));
    JTN_GO(jtn__list_add(&argv, "c++-header"));
    JTN_GO(jtn__list_add(&argv, copy));
    JTN_GO(jtn__list_add(&argv, "-o"));
    JTN_GO(jtn__list_addf(&argv, "%s/prelude.h.gch", m->staging));
    JTN_GO(run(&argv));
out:
    jtn__list_deinit(&argv);
    jtn__buf_deinit(&text);
    jtn__free(prelude);
    jtn__free(copy);
    return status;
}

static jtn_status make_object(const jtn_making *m)
{
    jtn_list argv = {0};
    jtn_status status;

    JTN_GO(base_argv(m, &argv));
    JTN_GO(jtn__list_add(&argv, "-ffunction-sections"));
    JTN_GO(jtn__list_addf(&argv, "-ffile-prefix-map=%s/=jitney/", m->data_dir));
    JTN_GO(jtn__list_add(&argv, "-MD"));
    JTN_GO(jtn__list_add(&argv, "-MF"));
    JTN_GO(jtn__list_addf(&argv, "%s/runtime.d", m->staging));
    JTN_GO(jtn__list_add(&argv, "-c"));
    JTN_GO(jtn__list_addf(&argv, "%s/include/jitney/host/runtime.cpp", m->data_dir));
    JTN_GO(jtn__list_add(&argv, "-o"));
    JTN_GO(jtn__list_addf(&argv, "%s/runtime.o", m->staging));
    JTN_GO(run(&argv));
out:
    jtn__list_deinit(&argv);
    return status;
}

static jtn_status read_deps(jtn_making *m)
{
    jtn_list skip = {0}, none = {0};
    jtn_host_job job = {.data_dir = m->data_dir, .include_dirs = &none};
    static const char *const lists[] = {"prelude.d", "runtime.d"};
    jtn_status status = jtn__list_add(&skip, m->staging);

    for (size_t i = 0; i < 2 && status == JTN_OK; i++) {
        char *path = jtn__path_join(m->staging, lists[i]);

        status = path ? jtn__cxx_deps_read(path, &job, &skip, &m->deps) : JTN_ERROR_MEMORY;
        jtn__free(path);
    }
    jtn__list_deinit(&skip);
    return status;
}

static jtn_status fill(void *arg, const char *folder)
{
    static const char *const files[] = {"prelude.h", "prelude.h.gch", "runtime.o"};
    const jtn_making *m = arg;

    for (size_t i = 0; i < 3; i++) {
        char *from = jtn__path_join(m->staging, files[i]), *to = jtn__path_join(folder, files[i]);
        int failed = !from || !to || rename(from, to) != 0;

        if (failed)
            jtn__fail(JTN_ERROR_IO, "cannot move %s into %s: %s", files[i], folder, strerror(errno));
        jtn__free(from);
        jtn__free(to);
        if (failed)
            return JTN_ERROR_IO;
    }
    return JTN_OK;
}

static jtn_status publish(jtn_making *m)
{
    char *path = NULL;
    jtn_buf bytes;
    jtn_status status;

    jtn__buf_init(&bytes, 1 << 24);
    if (m->deps.unsettled)
        return jtn__fail(JTN_ERROR_CACHE, "a header changed while it was compiled");
    jtn__deps_key(&m->k1, &m->deps, &m->k2);
    JTN_GO(jtn__folder_put(m->cache, "pch", &m->k2, fill, m, &path));
    encode(m, &bytes);
    JTN_GO(bytes.failed);
    JTN_GO(jtn__memo_put(m->cache, "pch", &m->k1, (jtn_view){bytes.data, bytes.size}));
out:
    jtn__free(path);
    jtn__buf_deinit(&bytes);
    return status;
}

static jtn_status make(jtn_making *m)
{
    jtn_flight *flight = jtn__flight_enter(m->cache, &m->k1);
    jtn_pch there = {0};
    jtn_status status;

    JTN_GO(find(m->cache, &m->k1, &there));
    if (there.folder)
        goto out;
    m->deps.since_ns = jtn__deps_now();
    JTN_GO(jtn__cache_staging(m->cache, &m->staging));
    JTN_GO(make_header(m));
    JTN_GO(make_object(m));
    JTN_GO(read_deps(m));
    JTN_GO(publish(m));
    jtn__log(JTN_LOG_INFO, "made the precompiled header of Jitney's C++");
out:
    if (m->staging)
        jtn__dir_remove(m->staging);
    jtn__pch_deinit(&there);
    jtn__flight_leave(flight);
    return status;
}

static void making_free(jtn_making *m)
{
    if (!m)
        return;
    jtn__list_deinit(&m->flags);
    jtn__deps_deinit(&m->deps);
    jtn__free(m->data_dir);
    jtn__free(m->staging);
    jtn__free(m);
}

static void *maker(void *arg)
{
    jtn_making *m = arg;

    if (make(m) != JTN_OK)
        jtn__log(JTN_LOG_INFO, "no precompiled header, builds of C++ are slower: %s", jtn__error_message());
    making_free(m);
    pthread_mutex_lock(&state.lock);
    state.running = false;
    pthread_cond_broadcast(&state.ended);
    pthread_mutex_unlock(&state.lock);
    return NULL;
}

/* The log's sink may belong to something that is gone by now (Python). */
static void wait_at_exit(void)
{
    jtn__log_level(-1);
    jtn__pch_wait(AT_EXIT_WAIT_MS);
}

static bool begin(jtn_making *m)
{
    pthread_t thread;
    bool begun = false;

    pthread_mutex_lock(&state.lock);
    if (!state.running || state.process != getpid()) {
        if (!state.at_exit)
            state.at_exit = atexit(wait_at_exit) == 0;
        state.process = getpid();
        begun = state.running = pthread_create(&thread, NULL, maker, m) == 0;
        if (begun)
            pthread_detach(thread);
    }
    pthread_mutex_unlock(&state.lock);
    return begun;
}

void jtn__pch_make(jtn_cxx *cxx, jtn_cache *cache, const jtn_host_job *job)
{
    jtn_making *m;

    if (!cxx->gnu || !cache || jtn__cache_mode(cache) != JTN_CACHE_WRITE || !(m = jtn__alloc(sizeof *m)))
        return;
    m->cxx = cxx;
    m->cache = cache;
    m->data_dir = jtn__strdup(job->data_dir);
    if (!m->data_dir || jtn__cxx_pch_flags(job, &m->flags) != JTN_OK) {
        making_free(m);
        return;
    }
    first_key(cxx, m->data_dir, &m->flags, &m->k1);
    if (!begin(m))
        making_free(m);
}

void jtn__pch_wait(int timeout_ms)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&state.lock);
    while (state.running && state.process == getpid())
        if (timeout_ms < 0)
            pthread_cond_wait(&state.ended, &state.lock);
        else if (pthread_cond_timedwait(&state.ended, &state.lock, &until) != 0)
            break;
    pthread_mutex_unlock(&state.lock);
}
