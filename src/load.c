/* load.c — from a unit to a module. The only file that knows every stage; each stage knows only its input.
 *
 *     plan      which source is for which compiler                    build.c, source/lex.c
 *     key       what the caller said and who would compile it         source/key.c
 *     resident  this process has it already                           runtime.c
 *     cache     manifest → dependencies → entry, no lock              cache/
 *     flight    one builder; who waited looks again                   cache/
 *     build     NVRTC ∥ host compiler                                 build.c
 *     store     failure is said once and never fails the load         cache/
 *     module    artifact → functions                                  call/module.c
 */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "build.h"
#include "model/options.h"
#include "source/key.h"

/* One load under way. */
typedef struct jtn_loading {
    jtn_runtime *rt;
    jtn_unit *unit; /* an owned copy: read, and kept by the module */
    jtn_plan plan;
    char *arch;
    jtn_list roots;
    jtn_digest k1;
    jtn_buf material;
    bool no_cxx; /* there is no host compiler: what is cached can be loaded, nothing can be built */
} jtn_loading;

/* One per thread, made when the thread first builds and freed when it ends. */
static pthread_key_t findings_key;
static pthread_once_t findings_once = PTHREAD_ONCE_INIT;

static void findings_free(void *findings)
{
    jtn__findings_deinit(findings);
    jtn__free(findings);
}

static void findings_init(void)
{
    pthread_key_create(&findings_key, findings_free);
}

/* Empty ones for a new build; NULL out of memory. */
static jtn_findings *findings_renew(void)
{
    jtn_findings *findings;

    pthread_once(&findings_once, findings_init);
    findings = pthread_getspecific(findings_key);
    if (findings)
        jtn__findings_deinit(findings);
    else if ((findings = jtn__alloc(sizeof *findings)))
        pthread_setspecific(findings_key, findings);
    if (findings)
        *findings = (jtn_findings){0};
    return findings;
}

/* ---------------------------------------------------------------- architecture ---- */

/* The first of a list as torch's TORCH_CUDA_ARCH_LIST gives them: "8.0;9.0+PTX". */
static jtn_status parse_first_arch(const char *list, char **out)
{
    char first[32];
    size_t size = strcspn(list, "; ");

    if (size >= sizeof first)
        return jtn__fail(JTN_ERROR_ARGUMENT, "TORCH_CUDA_ARCH_LIST=\"%.100s\" does not begin with an architecture",
                         list);
    memcpy(first, list, size);
    first[size] = 0;
    return jtn__arch_parse(first, out);
}

static jtn_status arch_of_gpu(char **out)
{
    const jtn_target *target = jtn__target_cuda();
    const char *list = getenv("TORCH_CUDA_ARCH_LIST");
    char arch[16];

    if (target->device_count() > 0) {
        JTN_TRY(target->arch(target->current_device(), arch));
        return (*out = jtn__strdup(arch)) ? JTN_OK : JTN_ERROR_MEMORY;
    }
    if (list && *list)
        return parse_first_arch(list, out);
    return jtn__fail_prefix(JTN_ERROR_DEVICE,
                            "no GPU to compile for: name an architecture (arch=\"sm_90\", jtn_unit_add_option "
                            "JTN_OPTION_ARCH, or JITNEY_ARCH=sm_90) to compile without one");
}

static jtn_status check_target(const jtn_loading *load)
{
    const char *target = load->unit->target ? load->unit->target : getenv("JITNEY_TARGET");

    if (!load->plan.needs_device || !target || !*target || strcmp(target, "cuda") == 0)
        return JTN_OK;
    return jtn__fail(
        JTN_ERROR_UNSUPPORTED,
        "%s holds kernels, and the target is \"%.40s\": kernels run on \"cuda\" only so far; unset JITNEY_TARGET or "
        "name target=\"cuda\"",
        load->unit->name, target);
}

/* The unit's wish, nvcc's -arch or -gencode, the environment, the GPU: in this order. */
static jtn_status choose_arch(jtn_loading *load)
{
    const char *asked = load->unit->arch;
    jtn_device_options options = {0};
    jtn_status status = JTN_OK;

    if (!load->plan.needs_device)
        return JTN_OK;
    JTN_GO(jtn__options_device(&load->unit->cuda_cflags, &options));
    if (!asked && options.arch.count == 1)
        asked = options.arch.items[0];
    if (!asked)
        asked = getenv("JITNEY_ARCH");
    if (asked && *asked && strcmp(asked, "native") != 0)
        status = jtn__arch_parse(asked, &load->arch);
    else
        status = arch_of_gpu(&load->arch);
out:
    jtn__device_options_deinit(&options);
    return status;
}

/* ---------------------------------------------------------------- preparing ---- */

static jtn_status collect_roots(jtn_loading *load)
{
    jtn_device_options options = {0};
    jtn_status status = JTN_OK;

    for (size_t i = 0; i < load->unit->source_count; i++) {
        const char *path = load->unit->sources[i].path;

        JTN_GO(path ? jtn__list_add_take(&load->roots, jtn__path_dir(path)) : jtn__list_add(&load->roots, ""));
    }
    JTN_GO(jtn__options_device(&load->unit->cuda_cflags, &options));
    JTN_GO(
        jtn__list_add_all(&load->unit->cflags, &options.host)); /* -Xcompiler, -l and kin given among the CUDA flags */
    JTN_GO(jtn__list_add_all(&load->unit->ldflags, &options.link));
    for (size_t i = 0; i < options.include_dirs.count; i++)
        JTN_GO(jtn__list_add_take(&load->unit->include_dirs, jtn__path_absolute(options.include_dirs.items[i])));
    JTN_GO(jtn__list_add_all(&load->roots, &load->unit->include_dirs));
out:
    jtn__device_options_deinit(&options);
    return status;
}

static jtn_status make_key(jtn_loading *load)
{
    jtn_runtime *rt = load->rt;
    jtn_key_facts facts = {.library = &rt->identity, .arch = load->arch};

    if (load->plan.needs_host) {
        JTN_TRY(jtn__runtime_cxx(rt, &load->no_cxx));
        facts.cxx = &rt->cxx_identity;
        facts.host_abi = rt->host_abi[0] ? rt->host_abi : NULL;
    }
    if (load->plan.needs_device) {
        JTN_TRY(jtn__runtime_nvrtc(rt));
        facts.nvrtc = &rt->toolkit.nvrtc_identity;
        facts.cuda_headers = &rt->toolkit.headers_identity;
    }
    return jtn__key_first(load->unit, &facts, &load->k1, &load->material);
}

static jtn_status loading_init(jtn_runtime *rt, const jtn_unit *unit, jtn_loading *load)
{
    *load = (jtn_loading){.rt = rt};
    jtn__buf_init(&load->material, 0);
    JTN_TRY(jtn__unit_copy(unit, &load->unit));
    JTN_TRY(jtn__unit_read(load->unit));
    JTN_TRY(jtn__plan(load->unit, &load->plan));
    JTN_TRY(check_target(load));
    JTN_TRY(choose_arch(load));
    JTN_TRY(collect_roots(load));
    return make_key(load);
}

static void loading_deinit(jtn_loading *load)
{
    jtn_unit_free(load->unit);
    jtn__plan_deinit(&load->plan);
    jtn__free(load->arch);
    jtn__list_deinit(&load->roots);
    jtn__buf_deinit(&load->material);
}

/* ---------------------------------------------------------------- module ---- */

static jtn_status instantiate(jtn_module *module, const char *expression, jtn_module **out)
{
    jtn_unit *unit = NULL;
    jtn_status status = jtn__unit_copy(module->unit, &unit);

    if (status != JTN_OK)
        return status;
    jtn__free(unit->instance);
    unit->instance = jtn__strdup(expression);
    status = unit->instance ? jtn__load(module->rt, unit, out) : JTN_ERROR_MEMORY;
    jtn_unit_free(unit);
    return status;
}

/* Where the GPU is in use already, kernels are made ready now: a lazy first launch can stall behind what runs, and what is wrong with an
 * image is wrong with the load. */
static jtn_status prepare_kernels(jtn_module *module)
{
    if (module->artifact.kernel_count && module->target->active())
        for (size_t i = 0; i < module->function_count; i++)
            JTN_TRY(jtn__function_prepare(module->functions[i]));
    return JTN_OK;
}

/* Takes the entry. The module keeps the unit and the roots, to stay checkable and to make template instances later. */
static jtn_status make_module(jtn_loading *load, jtn_entry *entry, const char *origin, jtn_module **out)
{
    jtn_module *module = NULL;

    JTN_TRY(jtn__module_new(load->rt, entry, jtn__target_cuda(), &module));
    if (prepare_kernels(module) != JTN_OK) {
        jtn__module_release(module);
        return JTN_ERROR_DEVICE;
    }
    module->origin = origin;
    module->unit = load->unit;
    module->roots = load->roots;
    module->instantiate = load->plan.needs_device && !load->unit->instance ? instantiate : NULL;
    load->unit = NULL;
    load->roots = (jtn_list){0};
    if (jtn__runtime_enter(load->rt, &load->k1, module) != JTN_OK)
        jtn__log(JTN_LOG_DEBUG, "jitney: %s: not remembered in this process: %s", module->name, jtn__error_message());
    *out = module;
    return JTN_OK;
}

static bool sources_fresh(jtn_module *module)
{
    const jtn_unit *unit = module->unit;
    bool fresh = true;

    pthread_mutex_lock(&module->lock);
    for (size_t i = 0; unit && fresh && i < unit->source_count; i++) {
        jtn_file_id id;

        if (unit->sources[i].path)
            fresh = jtn__file_id(unit->sources[i].path, &id) == JTN_OK && jtn__file_id_equal(&id, &unit->sources[i].id);
    }
    pthread_mutex_unlock(&module->lock);
    return fresh;
}

int jtn__load_fresh(jtn_module *module)
{
    return sources_fresh(module) &&
           jtn__deps_fresh(&module->entry.deps, module->roots.items, module->roots.count, false);
}

/* ---------------------------------------------------------------- build and store ---- */

/* Says on a terminal that a build takes long, so that nobody takes it for a hang. */
typedef struct jtn_progress {
    const char *name;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool started, done, said;
} jtn_progress;

#define PROGRESS_AFTER_S 2

static void *progress_thread(void *arg)
{
    jtn_progress *progress = arg;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PROGRESS_AFTER_S;
    pthread_mutex_lock(&progress->lock);
    while (!progress->done)
        if (pthread_cond_timedwait(&progress->wake, &progress->lock, &until) != 0)
            break;
    progress->said = !progress->done;
    if (progress->said)
        fprintf(stderr, "jitney: compiling %s …\n", progress->name);
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

static void progress_begin(jtn_progress *progress, const jtn_unit *unit)
{
    *progress = (jtn_progress){.name = unit->name, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
    if (!unit->verbose && isatty(STDERR_FILENO))
        progress->started = pthread_create(&progress->thread, NULL, progress_thread, progress) == 0;
}

static void progress_end(jtn_progress *progress, double seconds, jtn_status status)
{
    if (!progress->started)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->done = true;
    pthread_cond_signal(&progress->wake);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    if (progress->said)
        fprintf(stderr, "jitney: %s %s after %.1f s\n", progress->name,
                status == JTN_OK ? "compiled" : "failed to compile", seconds);
}

/* Inside, files are named relative to their common folder; the user knows them by the paths that were given. */
static jtn_status name_as_given(const jtn_unit *unit, jtn_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        for (size_t k = 0; k < unit->source_count; k++) {
            char *given;

            if (!unit->sources[k].given || strcmp(findings->items[i].file, unit->sources[k].name) != 0)
                continue;
            if (!(given = jtn__strdup(unit->sources[k].given)))
                return JTN_ERROR_MEMORY;
            jtn__free(findings->items[i].file);
            findings->items[i].file = given;
            break;
        }
    return JTN_OK;
}

static jtn_status run_build(jtn_loading *load, jtn_build_output *output)
{
    jtn_build_input input = {
        .rt = load->rt,
        .unit = load->unit,
        .plan = &load->plan,
        .arch = load->arch,
        .k1 = &load->k1,
        .nvrtc = load->rt->toolkit.nvrtc,
        .cxx = load->rt->cxx,
        .cuda_headers = &load->rt->toolkit.headers,
        .roots = load->roots.items,
        .root_count = load->roots.count,
    };
    jtn_progress progress;
    jtn_findings *findings = findings_renew();
    double begin = jtn__now_s();
    jtn_status status;
    char *summary;

    if (!findings)
        return JTN_ERROR_MEMORY;
    progress_begin(&progress, load->unit);
    status = jtn__build(&input, output, findings);
    progress_end(&progress, jtn__now_s() - begin, status);
    if (status == JTN_OK)
        jtn__log(JTN_LOG_INFO, "jitney: %s: compiled in %.3f s", load->unit->name, jtn__now_s() - begin);
    if (name_as_given(load->unit, findings) != JTN_OK)
        return JTN_ERROR_MEMORY;
    if (status == JTN_ERROR_COMPILE && findings->count && (summary = jtn__findings_summary(findings, 3))) {
        jtn__fail(status, "%s", summary);
        jtn__free(summary);
    }
    return status;
}

static jtn_status build_and_store(jtn_loading *load, jtn_module **out)
{
    const char *never = getenv("JITNEY_COMPILE");
    jtn_build_output output = {0};
    jtn_entry entry = {0};
    jtn_status status;

    if (never && strcmp(never, "never") == 0)
        return jtn__fail(JTN_ERROR_CACHE, "\"%s\" is not in the cache and JITNEY_COMPILE=never forbids to compile it",
                         load->unit->name);
    if (load->no_cxx) {
        jtn_cxx *cxx = NULL;

        JTN_TRY(jtn__cxx_find(&cxx)); /* says where was looked, and what to do */
        jtn__cxx_free(cxx);
    }
    JTN_TRY(run_build(load, &output));
    if (load->plan.needs_host)
        jtn__runtime_remember_cxx(load->rt);
    JTN_GO(jtn__cache_put(load->rt->cache, &load->k1, &output.deps, load->unit->base_name,
                          (jtn_view){output.file.data, output.file.size},
                          (jtn_view){output.payload.data, output.payload.size},
                          (jtn_view){load->material.data, load->material.size}, &entry));
    status = make_module(load, &entry, "built", out);
out:
    jtn__build_output_deinit(&output);
    jtn__entry_deinit(&entry);
    return status;
}

/* found=false: go on and build. again: behind a wait, where a miss was told already. */
static jtn_status look_up(jtn_loading *load, bool again, bool *found, jtn_module **out)
{
    jtn_entry entry = {0};
    jtn_buf why;
    jtn_status status;

    jtn__buf_init(&why, 4096);
    status = jtn__cache_get(load->rt->cache, &load->k1, load->roots.items, load->roots.count, &entry, found, &why);
    if (status == JTN_OK && *found) {
        jtn__log(JTN_LOG_INFO, "jitney: %s: found in the cache: %s", load->unit->name, entry.path ? entry.path : "");
        status = make_module(load, &entry, "disk", out);
    } else if (status == JTN_OK && !again) {
        jtn__log(JTN_LOG_INFO, "jitney: %s: not in the cache%s%s", load->unit->name, why.size ? ": " : "",
                 why.size ? why.data : "");
    }
    jtn__entry_deinit(&entry);
    jtn__buf_deinit(&why);
    return status;
}

/* ---------------------------------------------------------------- load ---- */

/* The same bytes under other ids (touched, written again, checked out anew): from now on these ids stand for them. */
static void renew_ids(jtn_module *module, const jtn_unit *unit)
{
    pthread_mutex_lock(&module->lock);
    for (size_t i = 0; module->unit && i < unit->source_count && i < module->unit->source_count; i++)
        module->unit->sources[i].id = unit->sources[i].id;
    pthread_mutex_unlock(&module->lock);
}

/* A module of this key in this process counts when the files it was made of are unchanged. The sources are: they are in the key. */
static jtn_module *find_resident(jtn_loading *load)
{
    jtn_module *module = jtn__runtime_find(load->rt, &load->k1);

    if (module && !jtn__deps_fresh(&module->entry.deps, load->roots.items, load->roots.count, false)) {
        jtn__module_release(module);
        return NULL;
    }
    if (module) {
        renew_ids(module, load->unit);
        jtn__log(JTN_LOG_INFO, "jitney: %s: already loaded", module->name);
    }
    return module;
}

static jtn_status load_under_flight(jtn_loading *load, jtn_module **out)
{
    jtn_flight *flight = jtn__flight_enter(load->rt->cache, &load->k1);
    bool found = false;
    jtn_status status = JTN_OK;

    *out = find_resident(load); /* another thread, while we waited */
    if (!*out && flight)
        status = look_up(load, true, &found, out);
    if (status == JTN_OK && !*out)
        status = build_and_store(load, out);
    jtn__flight_leave(flight);
    return status;
}

jtn_status jtn__load(jtn_runtime *rt, const jtn_unit *unit, jtn_module **out)
{
    jtn_loading load;
    jtn_module *module = NULL;
    bool found = false;
    jtn_status status;

    jtn__log_thread_level(unit->verbose ? JTN_LOG_INFO : -1);
    JTN_GO(loading_init(rt, unit, &load));
    module = find_resident(&load);
    if (!module)
        JTN_GO(look_up(&load, false, &found, &module));
    if (!module)
        JTN_GO(load_under_flight(&load, &module));
    *out = module;
out:
    loading_deinit(&load);
    jtn__log_thread_level(-1);
    return status;
}

jtn_status jtn__load_file(jtn_runtime *rt, const char *path, jtn_module **out)
{
    jtn_entry entry = {0};
    jtn_status status = jtn__entry_open(path, &entry);

    if (status == JTN_OK)
        status = jtn__module_new(rt, &entry, jtn__target_cuda(), out);
    if (status == JTN_OK)
        (*out)->origin = "disk";
    jtn__entry_deinit(&entry);
    return status;
}

const jtn_findings *jtn__load_findings(void)
{
    static const jtn_findings none;
    const jtn_findings *mine;

    pthread_once(&findings_once, findings_init);
    mine = pthread_getspecific(findings_key);
    return mine ? mine : &none;
}
