/* module.c — an artifact made callable: its functions, its globals, loaded where and when they are needed.
 *
 * Opening decodes the artifact, opens the host code (whose init registers the ops) and makes a function of every kernel; nothing is sent
 * to a GPU. A kernel's image is loaded when the kernel is first asked for something. The last reference takes everything down. */
#include "call/module.h"

#include <dlfcn.h>
#include <string.h>

#include "base/mem.h"
#include "call/launch.h"
#include "call/register.h"

/* ---------------------------------------------------------------- functions ---- */

static void function_free(jtn_function *fn)
{
    if (!fn)
        return;
    jtn__op_free(fn->op);
    jtn__ffi_release(fn);
    jtn__free(fn->name);
    jtn__free(fn->doc);
    jtn__free(fn->signature);
    jtn__free(fn);
}

/* Takes fn, also on failure. */
jtn_status jtn__module_append(jtn_module *module, jtn_function *fn)
{
    jtn_function **functions = jtn__realloc(module->functions, (module->function_count + 1) * sizeof *functions);

    if (functions)
        module->functions = functions;
    if (!functions || !fn->name || !fn->signature) {
        function_free(fn);
        return JTN_ERROR_MEMORY;
    }
    functions[module->function_count++] = fn;
    return JTN_OK;
}

static char *c_signature(const char *name, const jtn_param *params, size_t count, const char *returns)
{
    jtn_buf text;
    char *result;

    jtn__buf_init(&text, 0);
    jtn__buf_printf(&text, "%s(", name);
    for (size_t i = 0; i < count; i++)
        jtn__buf_printf(&text, "%s%s: %s", i ? ", " : "", params[i].name, params[i].type.text);
    jtn__buf_printf(&text, ") -> %s", returns);
    result = jtn__buf_take(&text, NULL);
    jtn__buf_deinit(&text);
    return result;
}

static jtn_status add_kernel(jtn_module *module, const jtn_kernel_info *info)
{
    jtn_function *fn;

    if (info->param_count > JTN_MAX_PARAMS)
        return jtn__fail(JTN_ERROR_UNSUPPORTED,
                         "the kernel %s has %zu parameters; at most %d can be launched: put them into a struct",
                         info->name, info->param_count, JTN_MAX_PARAMS);
    fn = jtn__alloc(sizeof *fn);
    if (!fn)
        return JTN_ERROR_MEMORY;
    fn->kind = JTN_FUNCTION_KERNEL;
    fn->module = module;
    fn->info = info;
    fn->params = info->params;
    fn->param_count = info->param_count;
    fn->name = jtn__strdup(info->name);
    fn->doc = info->doc ? jtn__strdup(info->doc) : NULL;
    fn->signature = info->untyped ? jtn__format("%s(...) -> None", info->name)
                                  : c_signature(info->name, info->params, info->param_count, "None");
    return jtn__module_append(module, fn);
}

static jtn_status add_c_function(jtn_module *module, const jtn_c_info *info)
{
    jtn_function *fn = jtn__alloc(sizeof *fn);
    void **place = module->host ? dlsym(module->host, info->symbol) : NULL;

    if (!fn)
        return JTN_ERROR_MEMORY;
    if (!place || !*place) {
        jtn__free(fn);
        return jtn__fail(JTN_ERROR_CACHE, "%s: its file does not export %s", module->name, info->symbol);
    }
    fn->kind = JTN_FUNCTION_C;
    fn->module = module;
    fn->c_info = info;
    fn->params = info->params;
    fn->param_count = info->param_count;
    fn->address = *place;
    fn->name = jtn__strdup(info->name);
    fn->doc = info->doc ? jtn__strdup(info->doc) : NULL;
    fn->signature = c_signature(info->name, info->params, info->param_count, info->returns.text);
    JTN_TRY(jtn__module_append(module, fn));
    return jtn__ffi_prepare(fn);
}

/* ---------------------------------------------------------------- opening ---- */

static jtn_status explain_dlopen(const jtn_module *module)
{
    const char *error = dlerror();

    if (error && (strstr(error, "GLIBCXX_") || strstr(error, "CXXABI_") || strstr(error, "GLIBC_")))
        return jtn__fail(JTN_ERROR_TOOL,
                         "%s was compiled with a newer C or C++ library than this process has loaded: %s. Compile with "
                         "the compiler that "
                         "fits it (JITNEY_CXX), or link the library in (extra_ldflags=[\"-static-libstdc++\"])",
                         module->name, error);
    return jtn__fail(JTN_ERROR_CALL, "the compiled code of %s cannot be loaded: %s", module->name,
                     error ? error : "no reason given");
}

static jtn_status open_host(jtn_module *module)
{
    if (!module->artifact.has_host)
        return JTN_OK;
    module->host = dlopen(module->path, RTLD_NOW | RTLD_LOCAL);
    if (!module->host)
        return explain_dlopen(module);
    return jtn__module_register(module, module->host);
}

static jtn_status fill(jtn_module *module)
{
    JTN_TRY(jtn__artifact_decode(module->entry.payload, &module->artifact));
    module->name = jtn__strdup(module->artifact.name);
    module->path = jtn__strdup(module->entry.path ? module->entry.path : "");
    module->loaded = jtn__alloc((module->artifact.image_count + 1) * sizeof(jtn_loaded *));
    if (!module->name || !module->path || !module->loaded)
        return JTN_ERROR_MEMORY;
    JTN_TRY(open_host(module));
    for (size_t i = 0; i < module->artifact.function_count; i++)
        JTN_TRY(add_c_function(module, &module->artifact.functions[i]));
    for (size_t i = 0; i < module->artifact.kernel_count; i++)
        JTN_TRY(add_kernel(module, &module->artifact.kernels[i]));
    return JTN_OK;
}

jtn_status jtn__module_new(jtn_runtime *rt, jtn_entry *entry, const jtn_target *target, jtn_module **out)
{
    jtn_module *module = jtn__alloc(sizeof *module);
    jtn_status status;

    if (!module)
        return JTN_ERROR_MEMORY;
    module->rt = rt;
    module->target = target;
    module->entry = *entry;
    *entry = (jtn_entry){0};
    atomic_store(&module->references, 1);
    pthread_mutex_init(&module->lock, NULL);
    status = fill(module);
    if (status == JTN_OK)
        *out = module;
    else
        jtn__module_release(module);
    return status;
}

/* ---------------------------------------------------------------- references ---- */

void jtn__module_retain(jtn_module *module)
{
    atomic_fetch_add(&module->references, 1);
}

static void module_free(jtn_module *module)
{
    for (size_t i = 0; i < module->instance_count; i++)
        jtn__module_release(module->instances[i]);
    for (size_t i = 0; i < module->function_count; i++)
        function_free(module->functions[i]);
    for (size_t i = 0; module->loaded && i < module->artifact.image_count; i++)
        module->target->unload(module->loaded[i]);
    for (size_t i = 0; i < module->value_count; i++) {
        jtn__free(module->values[i].name);
        jtn__value_deinit(&module->values[i].value);
    }
    if (module->host)
        dlclose(module->host);
    jtn__free(module->instances);
    jtn__free(module->functions);
    jtn__free(module->loaded);
    jtn__free(module->values);
    jtn__artifact_deinit(&module->artifact);
    jtn__entry_deinit(&module->entry);
    jtn__list_deinit(&module->roots);
    jtn_unit_free(module->unit);
    jtn__free(module->name);
    jtn__free(module->path);
    jtn__free(module->doc);
    pthread_mutex_destroy(&module->lock);
    jtn__free(module);
}

void jtn__module_release(jtn_module *module)
{
    if (!module || atomic_fetch_sub(&module->references, 1) != 1)
        return;
    if (module->forget)
        module->forget(module);
    module_free(module);
}

/* ---------------------------------------------------------------- loading ---- */

/* Under the module's lock. */
static jtn_status load_image(jtn_module *module, uint32_t image)
{
    const jtn_view *bytes = &module->artifact.images[image].bytes;

    if (module->loaded[image])
        return JTN_OK;
    return module->target->load(bytes->data, bytes->size, module->name, &module->loaded[image]);
}

jtn_status jtn__module_image(jtn_module *module, uint32_t image, jtn_loaded **out)
{
    jtn_status status;

    pthread_mutex_lock(&module->lock);
    status = load_image(module, image);
    *out = module->loaded[image];
    pthread_mutex_unlock(&module->lock);
    return status;
}

jtn_status jtn__function_prepare(jtn_function *fn)
{
    jtn_module *module = fn->module;
    jtn_kernel *kernel = atomic_load(&fn->kernel);
    jtn_status status;

    if (kernel || fn->kind != JTN_FUNCTION_KERNEL)
        return JTN_OK;
    pthread_mutex_lock(&module->lock);
    status = load_image(module, fn->info->image);
    if (status == JTN_OK && !atomic_load(&fn->kernel)) {
        status = module->target->kernel(module->loaded[fn->info->image], fn->info->lowered, fn->name, &kernel);
        if (status == JTN_OK)
            atomic_store(&fn->kernel, kernel);
    }
    pthread_mutex_unlock(&module->lock);
    return status;
}

/* ---------------------------------------------------------------- finding ---- */

/* "scale<float,4>" and "scale<float, 4>" are one name: blanks do not count. */
static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == ' ')
            a++;
        while (*b == ' ')
            b++;
        if (*a != *b)
            return false;
        if (!*a)
            return true;
    }
}

static const char *last_part(const char *name)
{
    const char *at = name;

    for (const char *c = name; *c && *c != '<' && *c != '('; c++)
        if (c[0] == ':' && c[1] == ':')
            at = c + 2;
    return at;
}

static jtn_function *find_exact(jtn_module *module, const char *name)
{
    for (size_t i = 0; i < module->function_count; i++)
        if (same_name(module->functions[i]->name, name))
            return module->functions[i];
    return NULL;
}

/* "axpy" for "ns::axpy", when only one is called that. */
static jtn_function *find_short(jtn_module *module, const char *name)
{
    jtn_function *found = NULL;

    for (size_t i = 0; i < module->function_count; i++)
        if (same_name(last_part(module->functions[i]->name), name)) {
            if (found)
                return NULL;
            found = module->functions[i];
        }
    return found;
}

jtn_function *jtn__module_lookup(jtn_module *module, const char *name)
{
    jtn_function *fn = find_exact(module, name);

    if (!fn)
        fn = find_short(module, name);
    pthread_mutex_lock(&module->lock);
    for (size_t i = 0; i < module->instance_count && !fn; i++)
        fn = find_exact(module->instances[i], name);
    pthread_mutex_unlock(&module->lock);
    return fn;
}

jtn_status jtn__module_adopt(jtn_module *module, jtn_module *instance)
{
    jtn_module **instances;

    pthread_mutex_lock(&module->lock);
    instances = jtn__realloc(module->instances, (module->instance_count + 1) * sizeof *instances);
    if (instances) {
        module->instances = instances;
        instances[module->instance_count++] = instance;
    }
    pthread_mutex_unlock(&module->lock);
    if (!instances)
        jtn__module_release(instance);
    return instances ? JTN_OK : JTN_ERROR_MEMORY;
}
