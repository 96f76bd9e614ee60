/* jitney.c — every public function of jitney.h but the few that build a unit (model/unit.c), open the runtime (runtime.c) or
 * make Python objects (python/): check the arguments, call one internal function, hand back its result. */
#include "jitney/jitney.h"

#include <string.h>

#include "base/error.h"
#include "call/launch.h"
#include "load.h"

#define STRING_(x) #x
#define STRING(x) STRING_(x)

/* ---------------------------------------------------------------- status and errors ---- */

const char *jtn_last_error(void)
{
    return jtn__error_message();
}

const char *jtn_status_name(jtn_status status)
{
    switch (status) {
#define JTN_STATUS_NAME(name, value, text, exception, code) \
    case JTN_##name:                                        \
        return #name;
        JTN_STATUS_LIST(JTN_STATUS_NAME)
#undef JTN_STATUS_NAME
    }
    return "UNKNOWN";
}

size_t jtn_diagnostic_count(void)
{
    return jtn__load_findings()->count;
}

jtn_status jtn_diagnostic_at(size_t index, jtn_diagnostic *out)
{
    const jtn_findings *findings = jtn__load_findings();
    const jtn_finding *finding;
    jtn_diagnostic full = {0};

    if (!out || out->struct_size < offsetof(jtn_diagnostic, file) + sizeof out->file)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_diagnostic_at: set out->struct_size to sizeof(jtn_diagnostic)");
    if (index >= findings->count)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_diagnostic_at: there are %zu diagnostics, none numbered %zu",
                         findings->count, index);
    finding = &findings->items[index];
    full.struct_size = out->struct_size < sizeof full ? out->struct_size : sizeof full;
    full.file = finding->file ? finding->file : "";
    full.line = finding->line;
    full.column = finding->column;
    full.severity = finding->severity;
    full.message = finding->message ? finding->message : "";
    full.excerpt = finding->excerpt ? finding->excerpt : "";
    memcpy(out, &full, full.struct_size);
    return JTN_OK;
}

const char *jtn_last_log(void)
{
    const char *log = jtn__load_findings()->log;

    return log ? log : "";
}

/* ---------------------------------------------------------------- load ---- */

jtn_status jtn_load(jtn_runtime *rt, const jtn_unit *unit, jtn_module **out)
{
    if (!rt || !unit || !out)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_load: rt, unit and out must not be NULL");
    return jtn__load(rt, unit, out);
}

jtn_status jtn_module_open(jtn_runtime *rt, const char *path, jtn_module **out)
{
    if (!rt || !path || !out)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_module_open: rt, path and out must not be NULL");
    return jtn__load_file(rt, path, out);
}

void jtn_module_close(jtn_module *mod)
{
    if (mod)
        jtn__module_release(mod);
}

const char *jtn_module_name(const jtn_module *mod)
{
    return mod->name;
}

const char *jtn_module_path(const jtn_module *mod)
{
    return mod->path ? mod->path : "";
}

int jtn_module_fresh(jtn_module *mod)
{
    return mod ? jtn__load_fresh(mod) : 0;
}

const char *jtn_module_origin(const jtn_module *mod)
{
    return mod->origin ? mod->origin : "";
}

size_t jtn_module_count(const jtn_module *mod)
{
    return mod ? mod->function_count : 0;
}

jtn_status jtn_module_at(jtn_module *mod, size_t index, jtn_function **out)
{
    if (!mod || !out)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_module_at: mod and out must not be NULL");
    if (index >= mod->function_count)
        return jtn__fail(JTN_ERROR_ARGUMENT, "%s has %zu functions, none numbered %zu", mod->name, mod->function_count,
                         index);
    *out = mod->functions[index];
    return JTN_OK;
}

static jtn_status not_found(const jtn_module *mod, const char *name)
{
    jtn_status status;
    jtn_buf list;

    jtn__buf_init(&list, 0);
    for (size_t i = 0; i < mod->function_count; i++)
        jtn__buf_printf(&list, "%s%s", list.size ? ", " : "", mod->functions[i]->name);
    for (size_t i = 0; i < mod->artifact.templates.count; i++)
        jtn__buf_printf(&list, "%s%s<…>", list.size ? ", " : "", mod->artifact.templates.items[i]);
    status = jtn__fail(JTN_ERROR_NOT_FOUND, "%s has no function \"%s\"; it has: %s", mod->name, name,
                       list.size && list.failed == JTN_OK ? list.data : "none");
    jtn__buf_deinit(&list);
    return status;
}

/* A template instance is compiled as a module of its own and adopted; two threads that ask for one at a time both get it. */
static jtn_status make_instance(jtn_module *mod, const char *name, jtn_function **out)
{
    jtn_module *instance = NULL;

    if (!mod->instantiate)
        return jtn__fail(JTN_ERROR_NOT_FOUND,
                         "%s has no instance \"%s\", and its source is not here to make one: a module opened from a "
                         "copied file holds "
                         "only what was compiled into it",
                         mod->name, name);
    JTN_TRY(mod->instantiate(mod, name, &instance));
    JTN_TRY(jtn__module_adopt(mod, instance));
    *out = jtn__module_lookup(mod, name);
    if (!*out && instance->function_count == 1)
        *out = instance->functions[0]; /* the compiler spells the name its own way */
    return *out ? JTN_OK : not_found(mod, name);
}

jtn_status jtn_module_find(jtn_module *mod, const char *name, jtn_function **out)
{
    jtn_function *found;

    if (!mod || !name || !out)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_module_find: mod, name and out must not be NULL");
    found = jtn__module_lookup(mod, name);
    if (!found)
        return strchr(name, '<') ? make_instance(mod, name, out) : not_found(mod, name);
    *out = found;
    return JTN_OK;
}

/* Loads the image a global lives in and asks the target. */
static jtn_status find_global(jtn_module *mod, const jtn_global_info *info, int device, void **address, size_t *size)
{
    jtn_loaded *loaded;

    JTN_TRY(jtn__module_image(mod, info->image, &loaded));
    return mod->target->global(loaded, info->lowered, info->name, device < 0 ? mod->target->current_device() : device,
                               address, size);
}

jtn_status jtn_module_global(jtn_module *mod, const char *name, int device, void **address, size_t *size)
{
    jtn_status status;
    jtn_buf list;

    if (!mod || !name || !address || !size)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_module_global: mod, name, address and size must not be NULL");
    for (size_t i = 0; i < mod->artifact.global_count; i++)
        if (strcmp(mod->artifact.globals[i].name, name) == 0)
            return find_global(mod, &mod->artifact.globals[i], device, address, size);
    jtn__buf_init(&list, 0);
    for (size_t i = 0; i < mod->artifact.global_count; i++)
        jtn__buf_printf(&list, "%s%s", list.size ? ", " : "", mod->artifact.globals[i].name);
    status = jtn__fail(JTN_ERROR_NOT_FOUND, "%s has no __constant__ or __device__ variable \"%s\"; it has: %s",
                       mod->name, name, list.size && list.failed == JTN_OK ? list.data : "none");
    jtn__buf_deinit(&list);
    return status;
}

/* ---------------------------------------------------------------- function ---- */

jtn_function_kind jtn_function_get_kind(const jtn_function *fn)
{
    return fn->kind;
}

const char *jtn_function_name(const jtn_function *fn)
{
    return fn->name;
}

const char *jtn_function_doc(const jtn_function *fn)
{
    return fn->doc ? fn->doc : "";
}

const char *jtn_function_signature(const jtn_function *fn)
{
    return fn->signature ? fn->signature : "";
}

size_t jtn_function_param_count(const jtn_function *fn)
{
    return fn->kind == JTN_FUNCTION_OP ? fn->op->param_count : fn->param_count;
}

jtn_status jtn_function_param(const jtn_function *fn, size_t index, jtn_param_info *out)
{
    jtn_param_info full = {0};

    if (!fn || !out || out->struct_size < offsetof(jtn_param_info, name) + sizeof out->name)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_function_param: set out->struct_size to sizeof(jtn_param_info)");
    if (index >= jtn_function_param_count(fn))
        return jtn__fail(JTN_ERROR_ARGUMENT, "%s takes %zu parameters, none numbered %zu", fn->name,
                         jtn_function_param_count(fn), index);
    full.struct_size = out->struct_size < sizeof full ? out->struct_size : sizeof full;
    if (fn->kind == JTN_FUNCTION_OP) {
        full.name = fn->op->params[index].name;
        full.type = fn->op->params[index].text;
        full.has_default = fn->op->params[index].has_default;
    } else {
        full.name = fn->params[index].name;
        full.type = fn->params[index].type.text;
        full.size = fn->params[index].type.size;
    }
    memcpy(out, &full, full.struct_size);
    return JTN_OK;
}

jtn_status jtn_function_attribute(jtn_function *fn, const char *name, int device, int64_t *out)
{
    if (!fn || !name || !out)
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_function_attribute: fn, name and out must not be NULL");
    if (fn->kind != JTN_FUNCTION_KERNEL)
        return jtn__fail(JTN_ERROR_ARGUMENT, "%s is no kernel; only kernels have attributes", fn->name);
    JTN_TRY(jtn__function_prepare(fn));
    return fn->module->target->attribute(fn->kernel, name, device < 0 ? fn->module->target->current_device() : device,
                                         out);
}

/* ---------------------------------------------------------------- call ---- */

jtn_status jtn_call(jtn_function *fn, const jtn_value *args, size_t count, jtn_value *result)
{
    jtn_value ignored;

    if (!fn || (count && !args))
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_call: fn and args must not be NULL");
    if (!result)
        result = &ignored;
    switch (fn->kind) {
    case JTN_FUNCTION_OP:
        return jtn__op_call(fn, args, count, result);
    case JTN_FUNCTION_C:
        return jtn__ffi_call(fn, args, count, result);
    case JTN_FUNCTION_KERNEL:
        break;
    }
    return jtn__fail(JTN_ERROR_ARGUMENT, "%s is a kernel: launch it with jtn_launch, which takes a grid", fn->name);
}

const DLTensor *jtn_tensor_view(const jtn_tensor *tensor)
{
    return tensor ? &tensor->dl : NULL;
}

void jtn_tensor_release(jtn_tensor *tensor)
{
    jtn__abi.tensor_release(tensor);
}

jtn_status jtn_launch(jtn_function *fn, const jtn_launch_config *config, const jtn_value *args, size_t count)
{
    jtn_launch_config full = {0};

    if (!fn || !config || (count && !args))
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_launch: fn, config and args must not be NULL");
    if (fn->kind != JTN_FUNCTION_KERNEL)
        return jtn__fail(JTN_ERROR_ARGUMENT, "%s is no kernel: call it with jtn_call", fn->name);
    if (config->struct_size < offsetof(jtn_launch_config, shared_bytes))
        return jtn__fail(JTN_ERROR_ARGUMENT, "jtn_launch: set config->struct_size to sizeof(jtn_launch_config)");
    full.device = -1;
    memcpy(&full, config, config->struct_size < sizeof full ? config->struct_size : sizeof full);
    full.struct_size = sizeof full;
    return jtn__launch(fn, &full, args, count);
}

jtn_status jtn_synchronize(jtn_runtime *rt, int device)
{
    const jtn_target *target = jtn__target_cuda();

    return target->synchronize(device < 0 ? target->current_device() : device);
}

int jtn_gpu_available(jtn_runtime *rt)
{
    return jtn__target_cuda()->device_count() > 0;
}

/* ---------------------------------------------------------------- version ---- */

const char *jtn_version(void)
{
    return STRING(JTN_VERSION_MAJOR) "." STRING(JTN_VERSION_MINOR) "." STRING(JTN_VERSION_PATCH);
}

int jtn_abi_version(void)
{
    return JTN_ABI_VERSION;
}
