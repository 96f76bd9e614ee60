/* cxx.c — host sources → one shared object.
 *
 * One source: one run of the driver compiles and links it. Several: parallel runs, then a link. Sources that use torch's or
 * pybind11's names begin with Jitney's header, precompiled when there is one; making it begins beside the first build that
 * misses it. Argument arrays only: no shell ever sees a path or a flag.
 *
 * Jitney's header leaves parts of the standard library out. When a source fails for want of something in std, it is
 * compiled once more with all of it. */
#include "compile/cxx_private.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"

#define OUTPUT_CEILING ((size_t)16 << 20)

typedef struct jtn_host_work {
    jtn_cxx *cxx;
    const jtn_host_job *job;
    jtn_staged *staged;
    jtn_pch pch;
    bool any_prelude, own_init, whole_std;
    bool open_symbols; /* Python's or a sanitizer's functions are the process's */
    char *library;     /* where the result goes */
    jtn_buf output;
    int exit_code; /* of the last run */
} jtn_host_work;

/* ---------------------------------------------------------------- command lines ---- */

static jtn_status add_pair(jtn_list *argv, const char *flag, const char *value)
{
    JTN_TRY(jtn__list_add(argv, flag));
    return jtn__list_add(argv, value);
}

static bool with_pch(const jtn_host_work *work)
{
    return work->pch.folder && work->any_prelude && !work->whole_std;
}

/* Before the user's flags: a precompiled header must come before any other. */
static jtn_status add_prelude(const jtn_host_work *work, const jtn_staged *staged, jtn_list *argv)
{
    char *header = NULL;
    jtn_status status = JTN_OK;

    if (staged->c)
        return JTN_OK;
    if (with_pch(work))
        JTN_TRY(jtn__list_add(argv, "-DJITNEY_HOST_RUNTIME"));
    if (work->whole_std)
        JTN_TRY(jtn__list_add(argv, "-DJITNEY_WHOLE_STD"));
    if (!staged->prelude)
        return JTN_OK;
    header = with_pch(work) ? jtn__path_join(work->pch.folder, "prelude.h")
                            : jtn__format("%s/include/jitney/host/prelude.h", work->job->data_dir);
    status = header ? add_pair(argv, "-include", header) : JTN_ERROR_MEMORY;
    jtn__free(header);
    return status;
}

static jtn_status add_includes(const jtn_host_work *work, const jtn_staged *staged, jtn_list *argv)
{
    if (staged->source->path) {
        char *folder = jtn__path_dir(staged->source->path);
        jtn_status status = folder ? add_pair(argv, "-iquote", folder) : JTN_ERROR_MEMORY;

        jtn__free(folder);
        JTN_TRY(status);
    }
    for (size_t i = 0; i < work->job->include_dirs->count; i++)
        JTN_TRY(add_pair(argv, "-I", work->job->include_dirs->items[i]));
    return jtn__cxx_own_headers(work->cxx, work->job->data_dir, argv);
}

static jtn_status add_compile(const jtn_host_work *work, const jtn_staged *staged, jtn_list *argv)
{
    jtn_list flags = {0};
    jtn_status status = jtn__cxx_flags(work->cxx, work->job, staged->c, &flags);

    for (size_t i = 0; i < work->cxx->command.count && status == JTN_OK; i++)
        status = jtn__list_add(argv, flags.items[i]);
    JTN_GO(status);
    JTN_GO(add_prelude(work, staged, argv));
    for (size_t i = work->cxx->command.count; i < flags.count; i++)
        JTN_GO(jtn__list_add(argv, flags.items[i]));
    JTN_GO(add_includes(work, staged, argv));
    JTN_GO(jtn__list_add(argv, "-MD"));
    JTN_GO(add_pair(argv, "-MF", staged->deps));
    JTN_GO(add_pair(argv, "-x", staged->c ? "c" : "c++"));
    JTN_GO(jtn__list_add(argv, staged->path));
out:
    jtn__list_deinit(&flags);
    return status;
}

/* What is linked besides the sources' objects. A function that nobody defines is an error now and not at the load, unless
 * the process brings some along. */
static jtn_status add_link(const jtn_host_work *work, jtn_list *argv)
{
    const jtn_host_job *job = work->job;

    if (with_pch(work))
        JTN_TRY(jtn__list_addf(argv, "%s/runtime.o", work->pch.folder));
    if (job->stub_object && !work->own_init) {
        JTN_TRY(jtn__list_add(argv, job->stub_object));
        JTN_TRY(jtn__list_addf(argv, "-Wl,--defsym,PyInit_%s=jtn_ext_pyinit", job->name));
    }
    JTN_TRY(jtn__list_add(argv, "-shared"));
    JTN_TRY(jtn__list_add(argv, "-Wl,--gc-sections"));
    if (!work->open_symbols)
        JTN_TRY(jtn__list_add(argv, "-Wl,-z,defs"));
    for (size_t i = 0; i < job->ldflags->count; i++)
        if (*job->ldflags->items[i])
            JTN_TRY(jtn__list_add(argv, job->ldflags->items[i]));
    JTN_TRY(jtn__list_add(argv, "-Wl,--as-needed")); /* the driver's own libraries follow */
    return add_pair(argv, "-o", work->library);
}

/* ---------------------------------------------------------------- running ---- */

static void log_command(const jtn_list *argv)
{
    jtn_buf line;

    jtn__buf_init(&line, 1 << 20);
    for (size_t i = 0; i < argv->count; i++)
        jtn__buf_printf(&line, "%s%s", i ? " " : "", argv->items[i]);
    if (line.failed == JTN_OK)
        jtn__log(JTN_LOG_INFO, "%s", line.data);
    jtn__buf_deinit(&line);
}

static jtn_status run(jtn_host_work *work, const jtn_list *argv)
{
    log_command(argv);
    return jtn__process_run(argv->items, NULL, -1, &work->output, &work->exit_code);
}

static jtn_status build_single(jtn_host_work *work)
{
    jtn_list argv = {0};
    jtn_status status;

    JTN_GO(add_compile(work, &work->staged[0], &argv));
    JTN_GO(add_pair(&argv, "-x", "none"));
    JTN_GO(add_link(work, &argv));
    JTN_GO(run(work, &argv));
out:
    jtn__list_deinit(&argv);
    return status;
}

static size_t job_limit(void)
{
    const char *text = getenv("MAX_JOBS");
    long jobs = text ? strtol(text, NULL, 10) : 0;
    cpu_set_t cpus;

    if (jobs > 0)
        return (size_t)jobs;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 0 ? (size_t)CPU_COUNT(&cpus) : 1;
}

static jtn_status start_one(jtn_host_work *work, const jtn_staged *staged, jtn_process *process)
{
    jtn_list argv = {0};
    jtn_status status;

    JTN_GO(add_compile(work, staged, &argv));
    JTN_GO(jtn__list_add(&argv, "-c"));
    JTN_GO(add_pair(&argv, "-o", staged->object));
    log_command(&argv);
    JTN_GO(jtn__process_start(argv.items, NULL, process));
out:
    jtn__list_deinit(&argv);
    return status;
}

/* Keeps up to `limit` compilers running; waits for them in order, so that the findings come in the sources' order. */
static jtn_status compile_all(jtn_host_work *work)
{
    size_t count = work->job->source_count, started = 0, limit = job_limit();
    jtn_process *processes = jtn__alloc(count * sizeof *processes);
    jtn_status status = processes ? JTN_OK : JTN_ERROR_MEMORY;
    int worst = 0;

    for (size_t i = 0; i < count && status == JTN_OK; i++) {
        for (; started < count && started < i + limit && status == JTN_OK; started += status == JTN_OK)
            status = start_one(work, &work->staged[started], &processes[started]);
        if (status == JTN_OK)
            status = jtn__process_wait(&processes[i], -1, &work->output, &work->exit_code);
        worst = work->exit_code > worst ? work->exit_code : worst;
    }
    for (size_t i = 0; processes && i < started; i++)
        jtn__process_kill(&processes[i]);
    work->exit_code = worst;
    jtn__free(processes);
    return status;
}

static jtn_status build_several(jtn_host_work *work)
{
    jtn_list argv = {0};
    jtn_status status;

    JTN_GO(compile_all(work));
    if (work->exit_code)
        goto out;
    JTN_GO(jtn__list_add_all(&argv, &work->cxx->command));
    JTN_GO(jtn__list_add(&argv, "-fdiagnostics-color=never"));
    for (size_t i = 0; i < work->job->cflags->count;
         i++) /* some are the linker's business too: -fopenmp, -fsanitize=, -pthread */
        if (strncmp(work->job->cflags->items[i], "-f", 2) == 0 || strcmp(work->job->cflags->items[i], "-pthread") == 0)
            JTN_GO(jtn__list_add(&argv, work->job->cflags->items[i]));
    for (size_t i = 0; i < work->job->source_count; i++)
        JTN_GO(jtn__list_add(&argv, work->staged[i].object));
    JTN_GO(add_link(work, &argv));
    JTN_GO(run(work, &argv));
out:
    jtn__list_deinit(&argv);
    return status;
}

/* Something of std that Jitney's header left out. */
static bool misses_std(const char *output)
{
    return (strstr(output, "'std'") || strstr(output, "'std::") || strstr(output, "'std ")) &&
           (strstr(output, "is not a member of 'std'") || strstr(output, "incomplete type") ||
            strstr(output, "has not been declared") || strstr(output, "was not declared") ||
            strstr(output, "in namespace 'std'") || strstr(output, "undefined template"));
}

static jtn_status build_once(jtn_host_work *work)
{
    jtn__buf_clear(&work->output);
    return work->job->source_count == 1 ? build_single(work) : build_several(work);
}

/* ---------------------------------------------------------------- results ---- */

static bool is_elf(const char *path)
{
    jtn_map map;
    bool elf;

    if (jtn__file_map(path, &map) != JTN_OK)
        return false;
    elf = map.size > 64 && memcmp(map.data, "\177ELF", 4) == 0;
    jtn__file_unmap(&map);
    return elf;
}

static jtn_status failed(const jtn_host_work *work, const jtn_findings *findings)
{
    const char *output = work->output.size ? work->output.data : "";
    const char *killed = strstr(output, "signal terminated program");
    bool any = false;
    char *summary;
    jtn_status status;

    if (killed || work->exit_code > 128)
        return jtn__fail(JTN_ERROR_COMPILE,
                         "%s was killed while compiling %s (%.*s); when memory ran out, lower MAX_JOBS or free some",
                         jtn__cxx_path(work->cxx), work->job->name, (int)strcspn(output, "\n"), output);
    for (size_t i = 0; i < findings->count; i++)
        any |= findings->items[i].severity == JTN_SEVERITY_ERROR;
    if (!any)
        return jtn__fail(JTN_ERROR_COMPILE, "%s ended with exit code %d: %.2000s", jtn__cxx_path(work->cxx),
                         work->exit_code, output);
    if (!(summary = jtn__findings_summary(findings, 3)))
        return JTN_ERROR_MEMORY;
    status = jtn__fail(JTN_ERROR_COMPILE, "%s", summary);
    jtn__free(summary);
    return status;
}

/* The precompiled header's own dependencies were checked a moment ago: their digests are taken over. */
static void take_pch_deps(jtn_host_work *work, jtn_deps *deps)
{
    if (!with_pch(work))
        return;
    deps->items = work->pch.deps.items;
    deps->count = work->pch.deps.count;
    deps->capacity = work->pch.deps.capacity;
    work->pch.deps = (jtn_deps){0};
}

static jtn_status read_deps(jtn_host_work *work, jtn_deps *deps)
{
    jtn_list skip = {0};
    jtn_status status;

    JTN_GO(jtn__list_add(&skip, work->job->staging));
    if (work->pch.folder)
        JTN_GO(jtn__list_add(&skip, work->pch.folder));
    take_pch_deps(work, deps);
    for (size_t i = 0; i < work->job->source_count; i++)
        JTN_GO(jtn__cxx_deps_read(work->staged[i].deps, work->job, &skip, deps));
    JTN_GO(jtn__cxx_deps_absent(work->job, deps));
out:
    jtn__list_deinit(&skip);
    return status;
}

/* ---------------------------------------------------------------- the build ---- */

static bool mentions(const jtn_source *source, const char *text)
{
    return memmem(source->text, source->size, text, strlen(text)) != NULL;
}

static jtn_status prepare(jtn_host_work *work, jtn_cache *cache)
{
    const jtn_host_job *job = work->job;
    jtn_digest identity;

    if (!job->source_count)
        return jtn__fail(JTN_ERROR_INTERNAL, "a host build without sources");
    JTN_TRY(jtn__cxx_identity(work->cxx, cache, &identity));
    if (!(work->staged = jtn__alloc(job->source_count * sizeof *work->staged)) ||
        !(work->library = jtn__format("%s/%s.so", job->staging, job->name)))
        return JTN_ERROR_MEMORY;
    JTN_TRY(jtn__cxx_stage(job, work->staged));
    for (size_t i = 0; i < job->source_count; i++) {
        work->any_prelude |= work->staged[i].prelude;
        work->open_symbols |= mentions(&job->sources[i], "Python.h");
        work->own_init |= mentions(&job->sources[i], "PyMODINIT_FUNC");
    }
    for (size_t i = 0; i < job->cflags->count; i++)
        work->open_symbols |= strncmp(job->cflags->items[i], "-fsanitize", 10) == 0;
    if (!work->any_prelude)
        return JTN_OK;
    JTN_TRY(jtn__pch_find(work->cxx, cache, job, &work->pch));
    if (!work->pch.folder)
        jtn__pch_make(work->cxx, cache, job);
    return JTN_OK;
}

jtn_status jtn__cxx_build(jtn_cxx *cxx, jtn_cache *cache, const jtn_host_job *job, jtn_host_result *out,
                          jtn_findings *findings)
{
    jtn_host_work work = {.cxx = cxx, .job = job};
    jtn_host_result result = {.deps = {.since_ns = jtn__deps_now()}};
    jtn_status status;

    jtn__buf_init(&work.output, OUTPUT_CEILING);
    JTN_GO(prepare(&work, cache));
    JTN_GO(build_once(&work));
    if (work.exit_code && work.any_prelude && misses_std(work.output.size ? work.output.data : "")) {
        work.whole_std = true;
        JTN_GO(build_once(&work));
    }
    JTN_GO(jtn__cxx_findings(job, work.output.size ? work.output.data : "", findings));
    if (work.exit_code || !is_elf(work.library)) {
        status = failed(&work, findings);
        goto out;
    }
    JTN_GO(read_deps(&work, &result.deps));
    result.path = work.library;
    work.library = NULL;
    *out = result;
    result = (jtn_host_result){0};
out:
    jtn__host_result_deinit(&result);
    jtn__cxx_staged_free(work.staged, job->source_count);
    jtn__pch_deinit(&work.pch);
    jtn__free(work.library);
    jtn__buf_deinit(&work.output);
    return status;
}

void jtn__host_result_deinit(jtn_host_result *result)
{
    jtn__free(result->path);
    jtn__deps_deinit(&result->deps);
    *result = (jtn_host_result){0};
}
