/* build.c — from a unit to the bytes of a module: which compiler gets which source, both at once.
 *
 * The host compiler runs as child processes driven by a thread; NVRTC runs in this one meanwhile. Neither knows of the other;
 * here their results meet in one artifact. */
#include "build.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "compile/device.h"
#include "compile/package.h"
#include "compile/signature.h"
#include "model/options.h"
#include "source/scan.h"

/* ---------------------------------------------------------------- plan ---- */

jtn_status jtn__plan(const jtn_unit *unit, jtn_plan *out)
{
    jtn_plan plan = {.source_count = unit->source_count};
    jtn_status status = JTN_OK;

    plan.surveys = jtn__alloc(unit->source_count * sizeof *plan.surveys);
    plan.is_device = jtn__alloc(unit->source_count * sizeof *plan.is_device);
    if (!plan.surveys || !plan.is_device) {
        status = JTN_ERROR_MEMORY;
        goto out;
    }
    for (size_t i = 0; i < unit->source_count; i++) {
        const jtn_source *source = &unit->sources[i];
        jtn_cuda_survey *survey = &plan.surveys[i];

        if (source->lang == JTN_LANG_CUDA)
            JTN_GO(jtn__cuda_survey(source->text, source->size, survey));
        if (survey->has_device && survey->has_host) {
            status = jtn__fail(
                JTN_ERROR_UNSUPPORTED,
                "%s holds kernels and, at line %u, host code; one file with both is not supported yet: put the "
                "host code into a .cpp of its own and launch the kernels from Python (mod.kernel[grid, block](…)) "
                "or C (jtn_launch)",
                source->name, survey->host_line);
            goto out;
        }
        plan.is_device[i] = source->lang == JTN_LANG_CUDA && (survey->has_device || unit->instance);
        plan.needs_device |= plan.is_device[i];
        plan.needs_host |= !plan.is_device[i] && !unit->instance;
    }
    *out = plan;
    return JTN_OK;
out:
    jtn__plan_deinit(&plan);
    return status;
}

void jtn__plan_deinit(jtn_plan *plan)
{
    for (size_t i = 0; plan->surveys && i < plan->source_count; i++)
        jtn__cuda_survey_deinit(&plan->surveys[i]);
    jtn__free(plan->surveys);
    jtn__free(plan->is_device);
    *plan = (jtn_plan){0};
}

/* ---------------------------------------------------------------- device ---- */

typedef struct jtn_device_build {
    jtn_device_options options;
    jtn_list nvrtc;        /* options, with defines */
    jtn_list include_dirs; /* toolkit, then Jitney's own */
    jtn_list instances;
    char seed[JTN_DIGEST_HEX];
} jtn_device_build;

static jtn_status device_build_init(const jtn_build_input *in, jtn_device_build *build)
{
    char *own;

    JTN_TRY(jtn__options_device(&in->unit->cuda_cflags, &build->options));
    JTN_TRY(jtn__list_add_all(&build->nvrtc, &build->options.nvrtc));
    for (size_t i = 0; i < in->unit->defines.count; i++)
        JTN_TRY(jtn__list_addf(&build->nvrtc, "-D%s", in->unit->defines.items[i]));
    JTN_TRY(jtn__list_add_all(&build->include_dirs, in->cuda_headers));
    own = jtn__path_join(in->rt->data_dir, "include/jitney/device");
    JTN_TRY(jtn__list_add_take(&build->include_dirs, own));
    if (in->unit->instance)
        JTN_TRY(jtn__list_add(&build->instances, in->unit->instance));
    jtn__digest_hex(in->k1, build->seed);
    for (size_t i = 0; i < build->options.notes.count; i++)
        jtn__log(JTN_LOG_INFO, "jitney: %s: %s", in->unit->name, build->options.notes.items[i]);
    return JTN_OK;
}

static void device_build_deinit(jtn_device_build *build)
{
    jtn__device_options_deinit(&build->options);
    jtn__list_deinit(&build->nvrtc);
    jtn__list_deinit(&build->include_dirs);
    jtn__list_deinit(&build->instances);
}

static jtn_status take_deps(jtn_deps *to, jtn_deps *from)
{
    jtn_dep *items = jtn__realloc(to->items, (to->count + from->count + 1) * sizeof *items);

    if (!items)
        return JTN_ERROR_MEMORY;
    to->items = items;
    if (from->count)
        memcpy(items + to->count, from->items, from->count * sizeof *items);
    to->count += from->count;
    to->capacity = to->count + 1;
    to->unsettled |= from->unsettled;
    jtn__free(from->items);
    *from = (jtn_deps){0};
    return JTN_OK;
}

static jtn_status compile_device_source(const jtn_build_input *in, jtn_device_build *build, size_t index,
                                        jtn_artifact *artifact, jtn_deps *deps, jtn_findings *findings)
{
    const jtn_source *source = &in->unit->sources[index];
    jtn_scan scan = {0};
    jtn_device_job job = {0};
    jtn_status status;

    JTN_GO(jtn__scan(source->name, (jtn_view){source->text, source->size}, in->roots, in->root_count, (uint32_t)index,
                     (uint32_t)in->unit->source_count, &scan));
    job.name = source->name;
    job.text = scan.text;
    job.header_names = scan.header_names.items;
    job.header_texts = scan.header_texts.items;
    job.header_count = scan.header_names.count;
    job.options = &build->nvrtc;
    job.arch = in->arch;
    job.include_dirs = &build->include_dirs;
    job.looked = &in->unit->include_dirs;
    job.seed = build->seed;
    JTN_GO(jtn__device_compile(in->nvrtc, &job, &in->plan->surveys[index],
                               in->unit->instance ? &build->instances : NULL, artifact, findings));
    JTN_GO(take_deps(deps, &scan.deps));
out:
    jtn__scan_deinit(&scan);
    return status;
}

/* Whether a source may hold the template that an instance is asked of. */
static bool may_hold_instance(const jtn_build_input *in, size_t index)
{
    const jtn_list *templates = &in->plan->surveys[index].templates;
    size_t size = strcspn(in->unit->instance, "<");
    bool known = false;

    for (size_t i = 0; i < in->plan->source_count; i++)
        known |= in->plan->surveys[i].templates.count > 0;
    for (size_t i = 0; i < templates->count; i++)
        if (strlen(templates->items[i]) == size && strncmp(templates->items[i], in->unit->instance, size) == 0)
            return true;
    return !known || in->plan->source_count == 1;
}

static jtn_status build_device(const jtn_build_input *in, jtn_artifact *artifact, jtn_deps *deps,
                               jtn_findings *findings)
{
    jtn_device_build build = {0};
    jtn_status status = JTN_OK;
    bool done = false;

    JTN_GO(device_build_init(in, &build));
    for (size_t i = 0; i < in->unit->source_count; i++) {
        if (!in->plan->is_device[i] || (in->unit->instance && (done || !may_hold_instance(in, i))))
            continue;
        JTN_GO(compile_device_source(in, &build, i, artifact, deps, findings));
        done = true;
    }
    if (!done)
        status = jtn__fail(JTN_ERROR_NOT_FOUND, "no source of \"%s\" has a kernel template for \"%s\"", in->unit->name,
                           in->unit->instance);
out:
    device_build_deinit(&build);
    return status;
}

/* ---------------------------------------------------------------- host ---- */

typedef struct jtn_host_build {
    const jtn_build_input *in;
    jtn_source *sources; /* a shallow list of the host's share */
    size_t source_count;
    jtn_wish *wishes; /* likewise */
    size_t wish_count;
    jtn_host_result result;
    jtn_findings findings;
    jtn_status status;
    char *message; /* of a failure, from the thread it happened in */
} jtn_host_build;

static bool names_kernel(const jtn_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->source_count; i++)
        if (jtn__list_has(&plan->surveys[i].kernels, name) || jtn__list_has(&plan->surveys[i].templates, name))
            return true;
    return false;
}

static jtn_status host_build_init(const jtn_build_input *in, jtn_host_build *build)
{
    build->in = in;
    build->sources = jtn__alloc(in->unit->source_count * sizeof *build->sources);
    build->wishes = jtn__alloc((in->unit->wish_count + 1) * sizeof *build->wishes);
    if (!build->sources || !build->wishes)
        return JTN_ERROR_MEMORY;
    for (size_t i = 0; i < in->unit->source_count; i++)
        if (!in->plan->is_device[i])
            build->sources[build->source_count++] = in->unit->sources[i];
    for (size_t i = 0; i < in->unit->wish_count && !in->unit->instance; i++)
        if (!names_kernel(in->plan, in->unit->wishes[i].text))
            build->wishes[build->wish_count++] = in->unit->wishes[i];
    if (build->wish_count && !build->source_count)
        return jtn__fail(
            JTN_ERROR_NOT_FOUND,
            "\"%s\" is asked for as a function, but no source defines a kernel of that name and there is no host code",
            build->wishes[0].text);
    return JTN_OK;
}

static void host_build_deinit(jtn_host_build *build)
{
    jtn__host_result_deinit(&build->result);
    jtn__findings_deinit(&build->findings);
    jtn__free(build->sources);
    jtn__free(build->wishes);
    jtn__free(build->message);
}

static jtn_status run_host(jtn_host_build *build, const char *staging)
{
    const jtn_build_input *in = build->in;
    char *stub = jtn__path_join(in->rt->data_dir, "stub.o");
    jtn_host_job job = {
        .name = in->unit->base_name,
        .sources = build->sources,
        .source_count = build->source_count,
        .wishes = build->wishes,
        .wish_count = build->wish_count,
        .cflags = &in->unit->cflags,
        .ldflags = &in->unit->ldflags,
        .include_dirs = &in->unit->include_dirs,
        .defines = &in->unit->defines,
        .data_dir = in->rt->data_dir,
        .stub_object = stub,
        .staging = staging,
        .roots = in->roots,
        .root_count = in->root_count,
        .verbose = in->unit->verbose,
    };
    jtn_status status =
        stub ? jtn__cxx_build(in->cxx, in->rt->cache, &job, &build->result, &build->findings) : JTN_ERROR_MEMORY;

    jtn__free(stub);
    return status;
}

typedef struct jtn_host_thread {
    jtn_host_build *build;
    const char *staging;
} jtn_host_thread;

static void *host_thread(void *arg)
{
    jtn_host_thread *thread = arg;
    jtn_host_build *build = thread->build;

    jtn__log_thread_level(build->in->unit->verbose ? JTN_LOG_INFO : -1);
    build->status = run_host(build, thread->staging);
    if (build->status != JTN_OK)
        build->message = jtn__strdup(jtn__error_message());
    return NULL;
}

/* What the linker was given as files decides the result too. */
static jtn_status add_link_inputs(const jtn_unit *unit, jtn_deps *deps)
{
    for (size_t i = 0; i < unit->ldflags.count; i++) {
        const char *flag = unit->ldflags.items[i];
        jtn_status status = JTN_OK;
        char *path;

        if (flag[0] == '-' || !jtn__file_exists(flag))
            continue;
        path = jtn__path_absolute(flag);
        status = path ? jtn__deps_add(deps, NULL, JTN_ROOT_ABSOLUTE, path, NULL, false) : JTN_ERROR_MEMORY;
        jtn__free(path);
        JTN_TRY(status);
    }
    return JTN_OK;
}

/* Plain C functions: their types are the prototypes', which the compiler has checked against the definitions by now. */
static jtn_status add_prototypes(const jtn_host_build *build, jtn_artifact *artifact)
{
    artifact->functions = jtn__alloc((build->wish_count + 1) * sizeof *artifact->functions);
    if (!artifact->functions)
        return JTN_ERROR_MEMORY;
    for (size_t i = 0; i < build->wish_count; i++) {
        const jtn_wish *wish = &build->wishes[i];
        jtn_c_info *info = &artifact->functions[artifact->function_count];

        if (!wish->prototype)
            continue;
        JTN_TRY(jtn__prototype_parse(wish->text, &info->name, &info->returns, &info->params, &info->param_count));
        artifact->function_count++;
        info->symbol = jtn__format("jtn_fn_%s", info->name);
        info->doc = wish->doc ? jtn__strdup(wish->doc) : NULL;
        if (!info->symbol || (wish->doc && !info->doc))
            return JTN_ERROR_MEMORY;
    }
    return JTN_OK;
}

/* A wish that names a kernel documents it. */
static jtn_status document_kernels(const jtn_unit *unit, jtn_artifact *artifact)
{
    for (size_t i = 0; i < unit->wish_count; i++)
        for (size_t k = 0; unit->wishes[i].doc && k < artifact->kernel_count; k++) {
            jtn_kernel_info *kernel = &artifact->kernels[k];

            if (strcmp(kernel->name, unit->wishes[i].text) == 0 && !kernel->doc &&
                !(kernel->doc = jtn__strdup(unit->wishes[i].doc)))
                return JTN_ERROR_MEMORY;
        }
    return JTN_OK;
}

static jtn_status refuse_twins(const jtn_artifact *artifact)
{
    for (size_t i = 0; i < artifact->kernel_count; i++)
        for (size_t k = i + 1; k < artifact->kernel_count; k++)
            if (strcmp(artifact->kernels[i].name, artifact->kernels[k].name) == 0)
                return jtn__fail(JTN_ERROR_ARGUMENT,
                                 "the kernel \"%s\" is defined in two sources of one module; rename one of them",
                                 artifact->kernels[i].name);
    return JTN_OK;
}

/* ---------------------------------------------------------------- both ---- */

/* Compiles for device and host at the same time. When both fail, the device's failure is the one told: it was first. */
static jtn_status compile_both(const jtn_build_input *in, jtn_host_build *host, const char *staging,
                               jtn_artifact *artifact, jtn_deps *deps, jtn_findings *findings)
{
    jtn_host_thread arg = {host, staging};
    pthread_t thread;
    bool threaded =
        host->source_count && in->plan->needs_device && pthread_create(&thread, NULL, host_thread, &arg) == 0;
    jtn_status status = JTN_OK;

    if (in->plan->needs_device)
        status = build_device(in, artifact, deps, findings);
    if (threaded)
        pthread_join(thread, NULL);
    else if (host->source_count && status == JTN_OK)
        host_thread(&arg);
    jtn__findings_move(findings, &host->findings);
    if (status == JTN_OK && host->status != JTN_OK)
        status = jtn__fail(host->status, "%s", host->message ? host->message : "out of memory");
    return status;
}

static jtn_status take_host_result(const jtn_build_input *in, jtn_host_build *host, jtn_artifact *artifact,
                                   jtn_build_output *out)
{
    if (!host->source_count)
        return jtn__package_stub(in->rt->data_dir, in->unit->base_name, &out->file);
    artifact->has_host = true;
    JTN_TRY(take_deps(&out->deps, &host->result.deps));
    JTN_TRY(add_link_inputs(in->unit, &out->deps));
    JTN_TRY(add_prototypes(host, artifact));
    return jtn__file_read(host->result.path, &out->file);
}

jtn_status jtn__build(const jtn_build_input *in, jtn_build_output *out, jtn_findings *findings)
{
    jtn_build_output output = {0};
    jtn_artifact artifact = {0};
    jtn_host_build host = {0};
    char *staging = NULL;
    jtn_status status;

    jtn__buf_init(&output.file, 0);
    jtn__buf_init(&output.payload, 0);
    output.deps.since_ns = jtn__deps_now();
    if (!(artifact.name = jtn__strdup(in->unit->name))) {
        status = JTN_ERROR_MEMORY;
        goto out;
    }
    JTN_GO(host_build_init(in, &host));
    if (in->unit->instance)
        host.source_count = 0;
    if (host.source_count)
        JTN_GO(jtn__cache_staging(in->rt->cache, &staging));
    JTN_GO(compile_both(in, &host, staging, &artifact, &output.deps, findings));
    JTN_GO(take_host_result(in, &host, &artifact, &output));
    JTN_GO(document_kernels(in->unit, &artifact));
    JTN_GO(refuse_twins(&artifact));
    JTN_GO(jtn__artifact_encode(&artifact, &output.payload));
    *out = output;
out:
    if (status != JTN_OK)
        jtn__build_output_deinit(&output);
    if (staging)
        jtn__dir_remove(staging);
    jtn__free(staging);
    host_build_deinit(&host);
    jtn__artifact_deinit(&artifact);
    return status;
}

void jtn__build_output_deinit(jtn_build_output *output)
{
    jtn__buf_deinit(&output->file);
    jtn__buf_deinit(&output->payload);
    jtn__deps_deinit(&output->deps);
}
