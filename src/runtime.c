/* runtime.c — the one process-wide state: what is open, what is loaded.
 *
 * There is one runtime in a process, made by the first jtn_open and kept to the process's end: modules hold pointers into it,
 * and taking it down at the last close would race with them for nothing. Opening starts nothing and writes nothing. */
#include "runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static jtn_runtime *the_runtime;

/* ---------------------------------------------------------------- who we are ---- */

typedef struct jtn_self {
    uintptr_t address; /* something inside this library */
    jtn_hash *hash;
} jtn_self;

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && address >= start && address < start + info->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

/* The linker's build id, a digest of the library's code: two builds of one version do not share entries. */
static int hash_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
    jtn_self *self = arg;

    if (!holds(info, self->address))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const char *at = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        const char *end = at + info->dlpi_phdr[i].p_memsz;

        while (info->dlpi_phdr[i].p_type == PT_NOTE && end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof *note;
            const char *value = name + ((note->n_namesz + 3u) & ~3u);

            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0)
                jtn__hash_field(self->hash, "build id", value, note->n_descsz);
            at = value + ((note->n_descsz + 3u) & ~3u);
        }
    }
    return 1;
}

static void identify_self(jtn_digest *out)
{
    jtn_hash hash;
    jtn_self self = {(uintptr_t)&hash_build_id, &hash};

    jtn__hash_init(&hash, NULL);
    jtn__hash_text(&hash, "version", jtn_version());
    jtn__hash_number(&hash, "abi", JTN_ABI_VERSION);
    dl_iterate_phdr(hash_build_id, &self);
    jtn__hash_final(&hash, out);
}

/* Where the headers and the stub are: beside the library in an installation and in a wheel, below it in a build tree. */
static jtn_status find_data_dir(const char *given, char **out)
{
    static const char *const places[] = {"../share/jitney", "share/jitney", "../../share/jitney"};
    Dl_info here;
    char *folder = NULL;

    if (given && *given)
        return (*out = jtn__path_absolute(given)) ? JTN_OK : JTN_ERROR_MEMORY;
    if (dladdr((void *)(uintptr_t)&find_data_dir, &here) && here.dli_fname)
        folder = jtn__path_dir(here.dli_fname);
    for (size_t i = 0; folder && i < sizeof places / sizeof *places; i++) {
        char *place = jtn__path_join(folder, places[i]);
        char *path = place ? jtn__path_absolute(place) : NULL;

        jtn__free(place);
        if (path && jtn__dir_exists(path)) {
            jtn__free(folder);
            *out = path;
            return JTN_OK;
        }
        jtn__free(path);
    }
    jtn__free(folder);
    return (*out = jtn__strdup("")) ? JTN_OK : JTN_ERROR_MEMORY; /* whoever needs a file from there says so */
}

/* ---------------------------------------------------------------- open ---- */

static char *default_cache_dir(void)
{
    const char *dir = getenv("JITNEY_CACHE_DIR");
    const char *home = getenv("HOME");

    if (dir && *dir)
        return jtn__path_absolute(dir);
    dir = getenv("XDG_CACHE_HOME");
    if (dir && dir[0] == '/')
        return jtn__path_join(dir, "jitney");
    return home && home[0] == '/' ? jtn__path_join(home, ".cache/jitney") : jtn__strdup("");
}

static jtn_status parse_mode(const char *text, jtn_cache_mode *out)
{
    static const char *const names[] = {"off", "read", "write"};

    if (!text || !*text)
        text = getenv("JITNEY_CACHE");
    *out = JTN_CACHE_WRITE;
    for (int i = 0; i < 3; i++)
        if (text && strcmp(text, names[i]) == 0) {
            *out = (jtn_cache_mode)i;
            return JTN_OK;
        }
    if (!text || !*text)
        return JTN_OK;
    return jtn__fail(
        JTN_ERROR_ARGUMENT,
        "\"%.50s\" is no cache mode (JITNEY_CACHE or jtn_options.cache_mode): there are off, read and write", text);
}

static jtn_status open_cache(jtn_runtime *rt, const jtn_options *options)
{
    jtn_cache_mode mode;
    char *dir;
    jtn_status status;

    JTN_TRY(parse_mode(options->cache_mode, &mode));
    dir = options->cache_dir && *options->cache_dir ? jtn__path_absolute(options->cache_dir) : default_cache_dir();
    if (!dir)
        return JTN_ERROR_MEMORY;
    if (!*dir && mode != JTN_CACHE_OFF) {
        jtn__log_once("no cache dir",
                      "jitney: no cache: neither JITNEY_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder; set one");
        mode = JTN_CACHE_OFF;
    }
    status = jtn__cache_open(dir, mode, &rt->cache);
    jtn__free(dir);
    return status;
}

static jtn_status copy_text(char **out, const char *text)
{
    *out = jtn__strdup(text ? text : "");
    return *out ? JTN_OK : JTN_ERROR_MEMORY;
}

static jtn_status runtime_new(const jtn_options *options, jtn_runtime **out)
{
    const char *verbose = getenv("JITNEY_VERBOSE");
    jtn_runtime *rt = jtn__alloc(sizeof *rt);
    jtn_status status = JTN_OK;

    if (!rt)
        return JTN_ERROR_MEMORY;
    pthread_mutex_init(&rt->lock, NULL);
    jtn__log_set(options->log, options->log_arg,
                 verbose && *verbose && strcmp(verbose, "0") != 0 ? JTN_LOG_INFO : JTN_LOG_WARNING);
    JTN_GO(copy_text(&rt->search_path, options->search_path));
    JTN_GO(copy_text(&rt->host_abi, options->host_abi));
    JTN_GO(find_data_dir(options->data_dir, &rt->data_dir));
    JTN_GO(open_cache(rt, options));
    identify_self(&rt->identity);
    *out = rt;
    return JTN_OK;
out:
    jtn__free(rt->search_path);
    jtn__free(rt->host_abi);
    jtn__free(rt->data_dir);
    jtn__free(rt);
    return status;
}

jtn_status jtn_open(const jtn_options *options, jtn_runtime **out)
{
    jtn_options given = {.struct_size = sizeof given};
    jtn_status status = JTN_OK;

    if (!out)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_open: out must not be NULL");
    if (options && options->struct_size < offsetof(jtn_options, cache_dir) + sizeof(char *))
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_open: options.struct_size is %zu; set it to sizeof(jtn_options)",
                         options->struct_size);
    if (options)
        memcpy(&given, options, options->struct_size < sizeof given ? options->struct_size : sizeof given);
    pthread_mutex_lock(&open_lock);
    if (!the_runtime)
        status = runtime_new(&given, &the_runtime);
    if (status == JTN_OK) {
        the_runtime->opens++;
        *out = the_runtime;
    }
    pthread_mutex_unlock(&open_lock);
    return status;
}

void jtn_close(jtn_runtime *rt)
{
    pthread_mutex_lock(&open_lock);
    if (rt && rt->opens > 0)
        rt->opens--;
    pthread_mutex_unlock(&open_lock);
}

jtn_runtime *jtn__runtime(void)
{
    jtn_runtime *rt;

    pthread_mutex_lock(&open_lock);
    rt = the_runtime;
    pthread_mutex_unlock(&open_lock);
    return rt;
}

/* ---------------------------------------------------------------- compilers ---- */

jtn_status jtn__runtime_nvrtc(jtn_runtime *rt)
{
    jtn_status status;

    pthread_mutex_lock(&rt->lock);
    status = rt->toolkit.nvrtc ? JTN_OK : jtn__toolkit_find(rt->cache, rt->search_path, &rt->toolkit);
    pthread_mutex_unlock(&rt->lock);
    return status;
}

/* The one name under which the host compiler that filled the cache last is remembered. */
static void cxx_name(jtn_digest *out)
{
    jtn__digest_of("host compiler", 13, out);
}

/* Where there is no compiler, the one that filled the cache stands in the key: what it built is loaded, and only what would have to be
 * built fails. */
static bool last_cxx(jtn_runtime *rt, jtn_digest *out)
{
    jtn_digest name;
    jtn_buf bytes;
    bool found = false;

    cxx_name(&name);
    jtn__buf_init(&bytes, 4096);
    found = jtn__memo_get(rt->cache, "compiler", &name, &bytes, &found) == JTN_OK && found && bytes.size == sizeof *out;
    if (found)
        memcpy(out, bytes.data, sizeof *out);
    jtn__buf_deinit(&bytes);
    return found;
}

void jtn__runtime_remember_cxx(jtn_runtime *rt)
{
    jtn_digest name;

    cxx_name(&name);
    jtn__memo_put(rt->cache, "compiler", &name, (jtn_view){(const char *)&rt->cxx_identity, sizeof rt->cxx_identity});
}

static jtn_status open_cxx(jtn_runtime *rt, bool *absent)
{
    jtn_cxx *cxx = NULL;
    jtn_status status = jtn__cxx_find(&cxx);

    *absent = status == JTN_ERROR_TOOL && last_cxx(rt, &rt->cxx_identity);
    if (*absent)
        return JTN_OK;
    JTN_GO(status);
    JTN_GO(jtn__cxx_identity(cxx, rt->cache, &rt->cxx_identity));
    rt->cxx = cxx;
    return JTN_OK;
out:
    jtn__cxx_free(cxx);
    return status;
}

jtn_status jtn__runtime_cxx(jtn_runtime *rt, bool *absent)
{
    jtn_status status;

    pthread_mutex_lock(&rt->lock);
    *absent = false;
    status = rt->cxx ? JTN_OK : open_cxx(rt, absent);
    pthread_mutex_unlock(&rt->lock);
    return status;
}

/* ---------------------------------------------------------------- resident modules ---- */

/* Takes a reference unless the last one is just being given back. */
static bool try_retain(jtn_module *module)
{
    int count = atomic_load(&module->references);

    while (count > 0)
        if (atomic_compare_exchange_weak(&module->references, &count, count + 1))
            return true;
    return false;
}

jtn_module *jtn__runtime_find(jtn_runtime *rt, const jtn_digest *k1)
{
    jtn_module *found = NULL;

    pthread_mutex_lock(&rt->lock);
    for (size_t i = 0; i < rt->resident_count && !found; i++)
        if (jtn__digest_equal(&rt->residents[i].k1, k1) && try_retain(rt->residents[i].module))
            found = rt->residents[i].module;
    pthread_mutex_unlock(&rt->lock);
    return found;
}

/* Called when the last reference to a module was given back, before it is taken apart. */
static void forget(jtn_module *module)
{
    jtn_runtime *rt = module->rt;

    pthread_mutex_lock(&rt->lock);
    for (size_t i = rt->resident_count; i-- > 0;)
        if (rt->residents[i].module == module)
            rt->residents[i] = rt->residents[--rt->resident_count];
    pthread_mutex_unlock(&rt->lock);
}

jtn_status jtn__runtime_enter(jtn_runtime *rt, const jtn_digest *k1, jtn_module *module)
{
    jtn_status status = JTN_OK;
    size_t at = 0;

    pthread_mutex_lock(&rt->lock);
    while (at < rt->resident_count && !jtn__digest_equal(&rt->residents[at].k1, k1))
        at++;
    if (at == rt->resident_capacity) {
        size_t capacity = at ? at * 2 : 16;
        jtn_resident *residents = jtn__realloc(rt->residents, capacity * sizeof *residents);

        if (residents) {
            rt->residents = residents;
            rt->resident_capacity = capacity;
        } else {
            status = JTN_ERROR_MEMORY;
        }
    }
    if (status == JTN_OK) {
        rt->residents[at] = (jtn_resident){*k1, module};
        rt->resident_count += at == rt->resident_count;
        module->forget = forget;
    }
    pthread_mutex_unlock(&rt->lock);
    return status;
}
