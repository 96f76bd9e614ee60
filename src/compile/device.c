/* device.c — one CUDA text → image, kernels with types, globals.
 *
 * A plain text costs exactly one NVRTC compile: the survey's kernels go in as name expressions together with the type probe. When that
 * fails, the text is compiled as the user wrote it. If it fails like that too, its errors are the user's; if not, the survey guessed
 * wrong (a kernel in a dead #if, say), and the compile is repeated with the kernels the image really holds. Kernels the survey could
 * not see (made by a macro) are found in the image, and extern "C" ones among them, whose names carry no types, cost a second compile. */
#include "compile/device.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "compile/image.h"
#include "compile/signature.h"

typedef struct jtn_device_work {
    jtn_nvrtc *nvrtc;
    const jtn_device_job *job;
    const jtn_cuda_survey *survey;
    jtn_findings *findings;
    jtn_list kernels, globals; /* asked for in the compile that succeeded */
    jtn_list entries;          /* what the image holds */
    jtn_device_result result;
} jtn_device_work;

/* ---------------------------------------------------------------- compiling ---- */

/* On success the findings are the user's (warnings); on failure they are the caller's to keep or drop. */
static jtn_status compile_with(jtn_device_work *work, const jtn_list *kernels, const jtn_list *globals,
                               jtn_device_result *out, jtn_findings *findings)
{
    jtn_device_job job = *work->job;

    job.kernels = kernels;
    job.globals = globals;
    return jtn__nvrtc_compile(work->nvrtc, &job, out, findings);
}

static void take_findings(jtn_device_work *work, jtn_findings *findings)
{
    jtn__findings_deinit(work->findings);
    *work->findings = *findings;
    *findings = (jtn_findings){0};
}

static const char *last_part(const char *name)
{
    const char *at = name;

    for (const char *c = name; *c; c++)
        if (c[0] == ':' && c[1] == ':')
            at = c + 2;
    return at;
}

/* Whether the image holds a kernel of that qualified name. */
static bool holds(const jtn_list *entries, const char *name)
{
    for (size_t i = 0; i < entries->count; i++) {
        char *found = NULL;
        bool same = strcmp(entries->items[i], last_part(name)) == 0;

        if (!same && jtn__mangled_name(entries->items[i], &found) == JTN_OK)
            same = strcmp(found, name) == 0;
        jtn__free(found);
        if (same)
            return true;
    }
    return false;
}

/* Which of names can be asked for: each alone, for one that cannot spoils the rest. */
static jtn_status keep_askable(jtn_device_work *work, const jtn_list *names, bool kernels, jtn_list *out)
{
    jtn_status status = JTN_OK;

    for (size_t i = 0; i < names->count && status == JTN_OK; i++) {
        jtn_list one = {0};
        jtn_findings findings = {0};
        jtn_device_result result = {0};

        status = jtn__list_add(&one, names->items[i]);
        if (status == JTN_OK &&
            compile_with(work, kernels ? &one : NULL, kernels ? NULL : &one, &result, &findings) == JTN_OK)
            status = jtn__list_add(out, names->items[i]);
        jtn__device_result_deinit(&result);
        jtn__findings_deinit(&findings);
        jtn__list_deinit(&one);
    }
    return status;
}

static void replace_list(jtn_list *list, jtn_list *by)
{
    jtn__list_deinit(list);
    *list = *by;
    *by = (jtn_list){0};
}

/* The text compiles by itself: ask again, for what is really there; then, for what can be asked for alone. */
static jtn_status recover(jtn_device_work *work, jtn_device_result *plain)
{
    jtn_findings findings = {0};
    jtn_list entries = {0}, kernels = {0}, globals = {0};
    jtn_status status = jtn__image_entries(plain->image, plain->image_size, &entries);

    for (size_t i = 0; status == JTN_OK && i < work->survey->kernels.count; i++)
        if (holds(&entries, work->survey->kernels.items[i]))
            status = jtn__list_add(&work->kernels, work->survey->kernels.items[i]);
    JTN_GO(status);
    if (compile_with(work, &work->kernels, &work->globals, &work->result, &findings) == JTN_OK) {
        take_findings(work, &findings);
        goto out;
    }
    jtn__findings_deinit(&findings);
    JTN_GO(keep_askable(work, &work->kernels, true, &kernels));
    JTN_GO(keep_askable(work, &work->globals, false, &globals));
    replace_list(&work->kernels, &kernels);
    replace_list(&work->globals, &globals);
    if (compile_with(work, &work->kernels, &work->globals, &work->result, &findings) == JTN_OK) {
        take_findings(work, &findings);
        goto out;
    }
    jtn__list_deinit(&work->kernels);
    jtn__list_deinit(&work->globals);
    work->result = *plain;
    *plain = (jtn_device_result){0};
out:
    jtn__findings_deinit(&findings);
    jtn__list_deinit(&entries);
    jtn__list_deinit(&kernels);
    jtn__list_deinit(&globals);
    return status;
}

static jtn_status first_compile(jtn_device_work *work, const jtn_list *instances)
{
    const jtn_list *kernels = instances ? instances : &work->survey->kernels;
    jtn_findings findings = {0}, plain_findings = {0};
    jtn_device_result plain = {0};
    jtn_status status;

    JTN_TRY(jtn__list_add_all(&work->globals, &work->survey->globals));
    status = compile_with(work, kernels, &work->globals, &work->result, &findings);
    if (status == JTN_OK) {
        take_findings(work, &findings);
        return jtn__list_add_all(&work->kernels, kernels);
    }
    if (status != JTN_ERROR_COMPILE) {
        take_findings(work, &findings);
        return status;
    }
    jtn__log(JTN_LOG_DEBUG, "jitney: %s: compiling again without asking for types: %s", work->job->name,
             jtn__error_message());
    status = compile_with(work, NULL, NULL, &plain, &plain_findings);
    if (status == JTN_OK && instances) { /* the instance itself is what is wrong */
        take_findings(work, &findings);
        status = jtn__fail(JTN_ERROR_COMPILE, "\"%s\" is no instance that compiles:\n%s", instances->items[0],
                           work->findings->log ? work->findings->log : "");
    } else {
        take_findings(work, &plain_findings);
        if (status == JTN_OK)
            status = recover(work, &plain);
    }
    jtn__findings_deinit(&findings);
    jtn__findings_deinit(&plain_findings);
    jtn__device_result_deinit(&plain);
    return status;
}

/* extern "C" kernels that only the image knows: now they can be asked for. */
static jtn_status second_compile(jtn_device_work *work)
{
    jtn_device_result better = {0};
    jtn_findings findings = {0};
    jtn_list kernels = {0};
    bool more = false;
    jtn_status status = jtn__list_add_all(&kernels, &work->kernels);

    for (size_t i = 0; status == JTN_OK && i < work->entries.count; i++) {
        const char *entry = work->entries.items[i];

        if (strncmp(entry, "_Z", 2) == 0 || jtn__list_has(&work->result.lowered, entry))
            continue;
        more = true;
        status = jtn__list_add(&kernels, entry);
    }
    if (status == JTN_OK && more && compile_with(work, &kernels, &work->globals, &better, &findings) == JTN_OK) {
        jtn__device_result_deinit(&work->result);
        jtn__list_deinit(&work->kernels);
        work->result = better;
        work->kernels = kernels;
        kernels = (jtn_list){0};
    }
    jtn__findings_deinit(&findings);
    jtn__list_deinit(&kernels);
    return status;
}

/* ---------------------------------------------------------------- names ---- */

static size_t count_commas(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += *text == ',';
    return count;
}

/* Names from the survey's "axpy:a,x,y,n", when the count is right. */
static jtn_status name_params(const jtn_cuda_survey *survey, const char *kernel, jtn_param *params, size_t count)
{
    size_t size = strcspn(kernel, "<(");

    for (size_t i = 0; i < survey->param_names.count && count; i++) {
        const char *at = survey->param_names.items[i];
        const char *colon = strrchr(at, ':');

        if ((size_t)(colon - at) != size || strncmp(at, kernel, size) != 0 || count_commas(colon) + 1 != count)
            continue;
        at = colon + 1;
        for (size_t k = 0; k < count; k++) {
            size_t length = strcspn(at, ",");
            char *name = length ? jtn__strndup(at, length) : NULL;

            if (length && !name)
                return JTN_ERROR_MEMORY;
            if (name) {
                jtn__free(params[k].name);
                params[k].name = name;
            }
            at += length + (at[length] == ',');
        }
        return JTN_OK;
    }
    return JTN_OK;
}

static jtn_status append_kernel(jtn_device_work *work, jtn_artifact *out, const char *name, const char *lowered,
                                jtn_param *params, size_t count, bool untyped)
{
    jtn_kernel_info *kernels = jtn__realloc(out->kernels, (out->kernel_count + 1) * sizeof *kernels);
    jtn_kernel_info info = {
        .image = (uint32_t)out->image_count - 1, .params = params, .param_count = count, .untyped = untyped};

    info.name = jtn__strdup(name);
    info.lowered = jtn__strdup(lowered);
    if (kernels)
        out->kernels = kernels;
    if (!kernels || !info.name || !info.lowered || name_params(work->survey, name, params, count) != JTN_OK) {
        jtn__kernel_info_deinit(&info);
        return JTN_ERROR_MEMORY;
    }
    kernels[out->kernel_count++] = info;
    return JTN_OK;
}

/* "k(float *, int)": how overloads are told apart. */
static char *overload_name(const char *name, const jtn_param *params, size_t count)
{
    jtn_buf text;
    char *result;

    jtn__buf_init(&text, 1 << 16);
    jtn__buf_printf(&text, "%s(", name);
    for (size_t i = 0; i < count; i++)
        jtn__buf_printf(&text, "%s%s", i ? ", " : "", params[i].type.text);
    jtn__buf_puts(&text, ")");
    result = jtn__buf_take(&text, NULL);
    jtn__buf_deinit(&text);
    return result;
}

/* A kernel of the image that was not asked for by name: its own mangled name tells what it can. */
static jtn_status append_unasked(jtn_device_work *work, jtn_artifact *out, const char *entry)
{
    jtn_param *params = NULL;
    size_t count = 0;
    char *name = NULL, *full;
    jtn_status status = jtn__signature_of_mangled(entry, &name, &params, &count);

    if (status == JTN_ERROR_MEMORY)
        return status;
    if (status != JTN_OK)
        return append_kernel(work, out, entry, entry, NULL, 0, true);
    full = jtn__list_has(&work->survey->overloads, name) ? overload_name(name, params, count) : jtn__strdup(name);
    status = full ? append_kernel(work, out, full, entry, params, count, false) : JTN_ERROR_MEMORY;
    if (!full)
        jtn__param_list_deinit(params, count);
    jtn__free(full);
    jtn__free(name);
    return status;
}

static jtn_status append_asked(jtn_device_work *work, jtn_artifact *out, size_t index)
{
    const char *name = work->kernels.items[index];
    jtn_param *params = NULL;
    size_t count = 0;
    jtn_status status = jtn__signature_parse(work->result.signatures.items[index], &params, &count);

    if (status == JTN_ERROR_MEMORY)
        return status;
    return append_kernel(work, out, name, work->result.lowered.items[index], params, count, status != JTN_OK);
}

/* ---------------------------------------------------------------- artifact ---- */

static jtn_status append_image(jtn_device_work *work, jtn_artifact *out)
{
    jtn_image *images = jtn__realloc(out->images, (out->image_count + 1) * sizeof *images);
    jtn_image image = {.arch = jtn__strdup(work->job->arch)};

    if (images)
        out->images = images;
    if (!images || !image.arch) {
        jtn__free(image.arch);
        return JTN_ERROR_MEMORY;
    }
    image.owned = work->result.image;
    image.bytes = (jtn_view){work->result.image, work->result.image_size};
    work->result.image = NULL;
    images[out->image_count++] = image;
    return JTN_OK;
}

static jtn_status append_globals(jtn_device_work *work, jtn_artifact *out)
{
    jtn_global_info *globals =
        jtn__realloc(out->globals, (out->global_count + work->globals.count + 1) * sizeof *globals);

    if (!globals)
        return JTN_ERROR_MEMORY;
    out->globals = globals;
    for (size_t i = 0; i < work->globals.count && i < work->result.global_lowered.count; i++) {
        jtn_global_info *info = &globals[out->global_count];

        *info = (jtn_global_info){.image = (uint32_t)out->image_count - 1};
        out->global_count++;
        info->name = jtn__strdup(work->globals.items[i]);
        info->lowered = jtn__strdup(work->result.global_lowered.items[i]);
        if (!info->name || !info->lowered)
            return JTN_ERROR_MEMORY;
    }
    return JTN_OK;
}

static jtn_status append_all(jtn_device_work *work, const jtn_list *instances, jtn_artifact *out)
{
    JTN_TRY(append_image(work, out));
    for (size_t i = 0; i < work->kernels.count; i++)
        JTN_TRY(append_asked(work, out, i));
    for (size_t i = 0; i < work->entries.count && !instances; i++)
        if (!jtn__list_has(&work->result.lowered, work->entries.items[i]))
            JTN_TRY(append_unasked(work, out, work->entries.items[i]));
    JTN_TRY(append_globals(work, out));
    return jtn__list_add_all(&out->templates, &work->survey->templates);
}

jtn_status jtn__device_compile(jtn_nvrtc *nvrtc, const jtn_device_job *job, const jtn_cuda_survey *survey,
                               const jtn_list *instances, jtn_artifact *out, jtn_findings *findings)
{
    jtn_device_work work = {.nvrtc = nvrtc, .job = job, .survey = survey};
    jtn_findings own = {0};
    jtn_status status;

    work.findings = &own;
    status = first_compile(&work, instances);
    if (status == JTN_OK)
        status = jtn__image_entries(work.result.image, work.result.image_size, &work.entries);
    if (status == JTN_OK && !instances)
        status = second_compile(&work);
    if (status == JTN_OK)
        status = append_all(&work, instances, out);
    jtn__findings_move(findings, &own); /* several sources: one log */
    jtn__findings_deinit(&own);
    jtn__device_result_deinit(&work.result);
    jtn__list_deinit(&work.kernels);
    jtn__list_deinit(&work.globals);
    jtn__list_deinit(&work.entries);
    return status;
}
