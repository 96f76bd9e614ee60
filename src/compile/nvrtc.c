/* nvrtc.c — NVRTC by dlopen: program → image, lowered names, log.
 *
 * The library is opened at the first compile and never closed: it keeps threads and caches of its own. Its front end runs one compile
 * at a time whatever one does, so ours stand in line under one lock; the lock is held across fork, so that a child never inherits a
 * compile half done. */
#include "compile/nvrtc.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "compile/nvrtc_private.h"
#include "compile/signature.h"

static pthread_mutex_t compile_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void lock_for_fork(void)
{
    pthread_mutex_lock(&compile_lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&compile_lock);
}

static void watch_forks(void)
{
    pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
}

/* ---------------------------------------------------------------- opening ---- */

/* The builtins are looked up by name at the first compile: opened from NVRTC's own folder before, they are the right ones. */
static void open_builtins(const char *library)
{
    char *folder = jtn__path_dir(library);
    DIR *dir = folder ? opendir(folder) : NULL;
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char *path;

        if (strncmp(entry->d_name, "libnvrtc-builtins.so", 20) != 0 || strstr(entry->d_name, "alt"))
            continue;
        path = jtn__path_join(folder, entry->d_name);
        if (path)
            dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
        jtn__free(path);
    }
    if (dir)
        closedir(dir);
    jtn__free(folder);
}

static jtn_status open_library(jtn_nvrtc *nvrtc)
{
    void *library;
    const char *missing = NULL;

    if (nvrtc->opened)
        return JTN_OK;
    pthread_once(&fork_once, watch_forks);
    open_builtins(nvrtc->path);
    library = dlopen(nvrtc->path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return jtn__fail(JTN_ERROR_TOOL, "NVRTC is at \"%s\" but cannot be opened: %s", nvrtc->path, dlerror());
#define FETCH(name, parameters)                                \
    if (!(*(void **)&nvrtc->api.name = dlsym(library, #name))) \
        missing = #name;
    NVRTC_FUNCTIONS(FETCH)
#undef FETCH
    if (missing)
        return jtn__fail(JTN_ERROR_TOOL,
                         "NVRTC at \"%s\" is too old: it has no %s; `pip install nvidia-cuda-nvrtc` brings a newer one",
                         nvrtc->path, missing);
    nvrtc->opened = true;
    return JTN_OK;
}

jtn_status jtn__nvrtc_version(jtn_nvrtc *nvrtc, int *major, int *minor)
{
    jtn_status status;

    pthread_mutex_lock(&compile_lock);
    status = open_library(nvrtc);
    if (status == JTN_OK && nvrtc->api.nvrtcVersion(major, minor))
        status = jtn__fail(JTN_ERROR_TOOL, "NVRTC at \"%s\" does not tell its version", nvrtc->path);
    pthread_mutex_unlock(&compile_lock);
    return status;
}

/* ---------------------------------------------------------------- compiling ---- */

/* The lead digits of "sm_90a" must be an architecture NVRTC knows. */
static jtn_status check_arch(const jtn_nvrtc *nvrtc, const char *arch)
{
    int count = 0, archs[64], wanted = atoi(strchr(arch, '_') + 1);
    jtn_buf known;
    jtn_status status;

    if (nvrtc->api.nvrtcGetNumSupportedArchs(&count) || count > 64 || nvrtc->api.nvrtcGetSupportedArchs(archs))
        return JTN_OK; /* let the compile tell */
    jtn__buf_init(&known, 0);
    for (int i = 0; i < count; i++) {
        if (archs[i] == wanted) {
            jtn__buf_deinit(&known);
            return JTN_OK;
        }
        jtn__buf_printf(&known, "%ssm_%d", i ? ", " : "", archs[i]);
    }
    status = jtn__fail(JTN_ERROR_ARGUMENT, "NVRTC at \"%s\" cannot compile for %s; it knows %s", nvrtc->path, arch,
                       known.data ? known.data : "none");
    jtn__buf_deinit(&known);
    return status;
}

static bool has_option(const jtn_list *options, const char *prefix)
{
    for (size_t i = 0; i < options->count; i++)
        if (strncmp(options->items[i], prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

static jtn_status make_options(const jtn_device_job *job, jtn_list *out)
{
    JTN_TRY(jtn__list_addf(out, "-arch=%s", job->arch));
    if (!has_option(job->options, "-std="))
        JTN_TRY(jtn__list_add(out, "-std=c++17"));
    JTN_TRY(jtn__list_add(out, "-default-device"));
    JTN_TRY(jtn__list_add(out, "--no-cache"));
    JTN_TRY(jtn__list_add(out, "--modify-stack-limit=false"));
    JTN_TRY(jtn__list_addf(out, "--frandom-seed=%.16s", job->seed));
    JTN_TRY(jtn__list_add_all(out, job->options));
    for (size_t i = 0; i < job->include_dirs->count; i++)
        JTN_TRY(jtn__list_addf(out, "-I%s", job->include_dirs->items[i]));
    return JTN_OK;
}

/* An older NVRTC refuses an option of ours by name: it is dropped and the compile tried again. */
static bool drop_refused(jtn_list *options, const char *log)
{
    static const char *const optional[] = {"--no-cache", "--modify-stack-limit=false", "--frandom-seed"};

    if (!strstr(log, "nrecognized option"))
        return false;
    for (size_t k = 0; k < sizeof optional / sizeof *optional; k++)
        for (size_t i = 0; i < options->count; i++)
            if (strncmp(options->items[i], optional[k], strlen(optional[k])) == 0 &&
                memmem(log, strlen(log), optional[k] + 2, 8)) {
                jtn__free(options->items[i]);
                memmove(&options->items[i], &options->items[i + 1], (options->count - i) * sizeof *options->items);
                options->count--;
                return true;
            }
    return false;
}

static char *read_log(const jtn_nvrtc_api *api, nvrtc_program program)
{
    size_t size = 0;
    char *log;

    if (api->nvrtcGetProgramLogSize(program, &size) || !(log = jtn__alloc(size + 1)))
        return jtn__strdup("");
    api->nvrtcGetProgramLog(program, log);
    return log;
}

/* NVRTC looks for headers in the folder of the program's name too, where nothing was hashed (for a bare name: the current folder). Its
 * option against that would also keep toolkit headers from finding their neighbours; a folder that cannot exist does not. */
#define NOWHERE "/dev/null/"

/* "jtn3/sub/a.h" is the user's sub/a.h. */
static const char *user_name(void *arg, const char *file)
{
    size_t digits;

    if (strncmp(file, NOWHERE, sizeof NOWHERE - 1) == 0)
        file += sizeof NOWHERE - 1;
    if (strncmp(file, "jtn", 3) != 0)
        return file;
    digits = strspn(file + 3, "0123456789");
    return digits && file[3 + digits] == '/' ? file + 4 + digits : file;
}

static jtn_view source_line(void *arg, const char *file, int line)
{
    const jtn_device_job *job = arg;
    jtn_view found = jtn__line_in(jtn__view(job->text), job->name, file, line);

    for (size_t i = 0; i < job->header_count && !found.data; i++)
        found = jtn__line_in(jtn__view(job->header_texts[i]), user_name(NULL, job->header_names[i]), file, line);
    return found;
}

/* A header that is not there: where it was looked for, and the way out. */
static jtn_status explain_missing_headers(const jtn_device_job *job, jtn_findings *findings, size_t from)
{
    jtn_status status = JTN_OK;

    for (size_t i = from; i < findings->count && status == JTN_OK; i++) {
        jtn_finding *finding = &findings->items[i];
        jtn_buf text;
        char *message;

        if (!strstr(finding->message, "cannot open source file"))
            continue;
        jtn__buf_init(&text, 1 << 16);
        jtn__buf_printf(&text, "%s; looked in", finding->message);
        for (size_t k = 0; job->looked && k < job->looked->count; k++)
            if (job->looked->items[k][0])
                jtn__buf_printf(&text, " %s,", job->looked->items[k]);
        for (size_t k = 0; k < job->include_dirs->count; k++)
            jtn__buf_printf(&text, " %s%s", job->include_dirs->items[k], k + 1 < job->include_dirs->count ? "," : "");
        jtn__buf_puts(&text,
                      ". Name its folder in extra_include_paths; CUDA's own headers come with "
                      "`pip install nvidia-cuda-runtime nvidia-cuda-cccl nvidia-cuda-crt`, or a toolkit in CUDA_HOME");
        if (!(message = jtn__buf_take(&text, NULL)))
            status = JTN_ERROR_MEMORY;
        else {
            jtn__free(finding->message);
            finding->message = message;
        }
        jtn__buf_deinit(&text);
    }
    return status;
}

static jtn_status add_expressions(const jtn_nvrtc_api *api, nvrtc_program program, const jtn_device_job *job)
{
    for (size_t i = 0; job->kernels && i < job->kernels->count; i++) {
        char *probe = jtn__signature_expression(job->kernels->items[i]);
        int failed = !probe || api->nvrtcAddNameExpression(program, job->kernels->items[i]) ||
                     api->nvrtcAddNameExpression(program, probe);

        jtn__free(probe);
        if (failed)
            return jtn__fail(JTN_ERROR_COMPILE, "NVRTC refuses the kernel name \"%s\"", job->kernels->items[i]);
    }
    for (size_t i = 0; job->globals && i < job->globals->count; i++) {
        char *expression = jtn__format("&%s", job->globals->items[i]);
        int failed = !expression || api->nvrtcAddNameExpression(program, expression);

        jtn__free(expression);
        if (failed)
            return jtn__fail(JTN_ERROR_COMPILE, "NVRTC refuses the variable name \"%s\"", job->globals->items[i]);
    }
    return JTN_OK;
}

static jtn_status add_lowered(const jtn_nvrtc_api *api, nvrtc_program program, const char *expression, jtn_list *out)
{
    const char *lowered = NULL;

    if (!expression)
        return JTN_ERROR_MEMORY;
    if (api->nvrtcGetLoweredName(program, expression, &lowered) || !lowered)
        lowered = "";
    return jtn__list_add(out, lowered);
}

static jtn_status take_names(const jtn_nvrtc_api *api, nvrtc_program program, const jtn_device_job *job,
                             jtn_device_result *out)
{
    for (size_t i = 0; job->kernels && i < job->kernels->count; i++) {
        char *probe = jtn__signature_expression(job->kernels->items[i]);
        jtn_status status = add_lowered(api, program, job->kernels->items[i], &out->lowered);

        if (status == JTN_OK)
            status = add_lowered(api, program, probe, &out->signatures);
        jtn__free(probe);
        JTN_TRY(status);
    }
    for (size_t i = 0; job->globals && i < job->globals->count; i++) {
        char *expression = jtn__format("&%s", job->globals->items[i]);
        jtn_status status = add_lowered(api, program, expression, &out->global_lowered);

        jtn__free(expression);
        JTN_TRY(status);
    }
    return JTN_OK;
}

static jtn_status take_image(const jtn_nvrtc_api *api, nvrtc_program program, bool ptx, jtn_device_result *out)
{
    size_t size = 0;
    int failed = ptx ? api->nvrtcGetPTXSize(program, &size) : api->nvrtcGetCUBINSize(program, &size);

    if (failed || size == 0)
        return jtn__fail(JTN_ERROR_COMPILE, "NVRTC compiled and gave no %s", ptx ? "PTX" : "machine code");
    if (!(out->image = jtn__alloc(size)))
        return JTN_ERROR_MEMORY;
    out->image_size = size;
    out->is_ptx = ptx;
    failed = ptx ? api->nvrtcGetPTX(program, out->image) : api->nvrtcGetCUBIN(program, out->image);
    return failed ? jtn__fail(JTN_ERROR_COMPILE, "NVRTC compiled and does not hand over the result") : JTN_OK;
}

/* One run of the compiler. *retry: an option of ours was refused and is gone from options. */
static jtn_status run(const jtn_nvrtc_api *api, const jtn_device_job *job, const char *text, jtn_list *options,
                      jtn_device_result *out, jtn_findings *findings, bool *retry)
{
    nvrtc_program program = NULL;
    size_t from = findings->count;
    char *log = NULL, *name = jtn__format(NOWHERE "%s", job->name);
    int failed;
    jtn_status status;

    *retry = false;
    if (!name)
        return JTN_ERROR_MEMORY;
    failed =
        api->nvrtcCreateProgram(&program, text, name, (int)job->header_count, job->header_texts, job->header_names);
    jtn__free(name);
    if (failed)
        return jtn__fail(JTN_ERROR_COMPILE, "NVRTC refuses to make a program of %s", job->name);
    JTN_GO(add_expressions(api, program, job));
    failed = api->nvrtcCompileProgram(program, (int)options->count, (const char *const *)options->items);
    log = read_log(api, program);
    if (failed && log && drop_refused(options, log)) {
        *retry = true;
        goto out;
    }
    if (log && *log)
        JTN_GO(jtn__findings_add(findings, log, user_name, source_line, (void *)(uintptr_t)job));
    JTN_GO(explain_missing_headers(job, findings, from));
    if (failed) {
        status = jtn__fail(JTN_ERROR_COMPILE, "%s does not compile:\n%s", job->name, log ? log : "");
        goto out;
    }
    JTN_GO(take_names(api, program, job, out));
    JTN_GO(take_image(api, program, strncmp(job->arch, "compute", 7) == 0, out));
out:
    jtn__free(log);
    api->nvrtcDestroyProgram(&program);
    return status;
}

static jtn_status compile(jtn_nvrtc *nvrtc, const jtn_device_job *job, const char *text, jtn_device_result *out,
                          jtn_findings *findings)
{
    jtn_list options = {0};
    bool retry = true;
    double begin;
    jtn_status status;

    JTN_TRY(open_library(nvrtc));
    JTN_TRY(check_arch(nvrtc, job->arch));
    begin = jtn__now_s();
    status = make_options(job, &options);
    while (status == JTN_OK && retry)
        status = run(&nvrtc->api, job, text, &options, out, findings, &retry);
    out->seconds = jtn__now_s() - begin;
    jtn__list_deinit(&options);
    return status;
}

jtn_status jtn__nvrtc_compile(jtn_nvrtc *nvrtc, const jtn_device_job *job, jtn_device_result *out,
                              jtn_findings *findings)
{
    bool probed = job->kernels && job->kernels->count;
    char *text = jtn__format("#line 1 \"%s\"\n%s%s%s", job->name, job->text, probed ? "\n#line 1 \"jitney\"\n" : "",
                             probed ? jtn__signature_probe : "");
    jtn_device_result result = {0};
    jtn_status status;

    if (!text)
        return JTN_ERROR_MEMORY;
    pthread_mutex_lock(&compile_lock);
    status = compile(nvrtc, job, text, &result, findings);
    pthread_mutex_unlock(&compile_lock);
    jtn__free(text);
    if (status == JTN_OK)
        *out = result;
    else
        jtn__device_result_deinit(&result);
    return status;
}

void jtn__device_result_deinit(jtn_device_result *result)
{
    jtn__free(result->image);
    jtn__list_deinit(&result->lowered);
    jtn__list_deinit(&result->signatures);
    jtn__list_deinit(&result->global_lowered);
    *result = (jtn_device_result){0};
}
