/* artifact.c — what a build yields, to bytes and back.
 *
 *     artifact = version name has_host images kernels globals functions templates
 *     image    = arch bytes                            bytes begin at a multiple of 64 from the payload's start
 *     kernel   = name lowered doc image untyped params
 *     global   = name lowered image
 *     function = name symbol doc type params
 *     param    = name type
 *
 * A list is a u32 count and its items. Texts may be absent where "doc" is: then a flag byte is 0. */
#include "model/artifact.h"

#include <string.h>

#include "base/mem.h"

#define VERSION 1
#define IMAGE_ALIGN 64

/* The least that an item takes in bytes, against counts that the rest of the input cannot hold. */
#define PARAM_MIN 28
#define KERNEL_MIN 26

/* ---------------------------------------------------------------- writing ---- */

static void put_optional(jtn_buf *out, const char *text)
{
    jtn__put_u8(out, text != NULL);
    jtn__put_text(out, text);
}

static void put_params(jtn_buf *out, const jtn_param *params, size_t count)
{
    jtn__put_u32(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        jtn__put_text(out, params[i].name);
        jtn__type_put(out, &params[i].type);
    }
}

static void put_image(jtn_buf *out, const jtn_image *image)
{
    jtn__put_text(out, image->arch);
    jtn__put_u64(out, image->bytes.size);
    while (out->failed == JTN_OK && out->size % IMAGE_ALIGN)
        jtn__put_u8(out, 0);
    jtn__buf_put(out, image->bytes.data, image->bytes.size);
}

static void put_kernel(jtn_buf *out, const jtn_kernel_info *kernel)
{
    jtn__put_text(out, kernel->name);
    jtn__put_text(out, kernel->lowered);
    put_optional(out, kernel->doc);
    jtn__put_u32(out, kernel->image);
    jtn__put_u8(out, kernel->untyped);
    put_params(out, kernel->params, kernel->param_count);
}

static void put_function(jtn_buf *out, const jtn_c_info *function)
{
    jtn__put_text(out, function->name);
    jtn__put_text(out, function->symbol);
    put_optional(out, function->doc);
    jtn__type_put(out, &function->returns);
    put_params(out, function->params, function->param_count);
}

jtn_status jtn__artifact_encode(const jtn_artifact *a, jtn_buf *out)
{
    jtn__put_u32(out, VERSION);
    jtn__put_text(out, a->name);
    jtn__put_u8(out, a->has_host);
    jtn__put_u32(out, (uint32_t)a->image_count);
    for (size_t i = 0; i < a->image_count; i++)
        put_image(out, &a->images[i]);
    jtn__put_u32(out, (uint32_t)a->kernel_count);
    for (size_t i = 0; i < a->kernel_count; i++)
        put_kernel(out, &a->kernels[i]);
    jtn__put_u32(out, (uint32_t)a->global_count);
    for (size_t i = 0; i < a->global_count; i++) {
        jtn__put_text(out, a->globals[i].name);
        jtn__put_text(out, a->globals[i].lowered);
        jtn__put_u32(out, a->globals[i].image);
    }
    jtn__put_u32(out, (uint32_t)a->function_count);
    for (size_t i = 0; i < a->function_count; i++)
        put_function(out, &a->functions[i]);
    jtn__put_u32(out, (uint32_t)a->templates.count);
    for (size_t i = 0; i < a->templates.count; i++)
        jtn__put_text(out, a->templates.items[i]);
    return out->failed;
}

/* ---------------------------------------------------------------- reading ---- */

static jtn_status get_text(jtn_reader *r, char **out)
{
    jtn_view text = jtn__get_bytes(r);

    if (text.size && memchr(text.data, 0, text.size))
        r->bad = 1;
    if (r->bad)
        return jtn__fail(JTN_ERROR_CACHE, "a stored text cannot be read");
    return (*out = jtn__strndup(text.data, text.size)) ? JTN_OK : JTN_ERROR_MEMORY;
}

static jtn_status get_optional(jtn_reader *r, char **out)
{
    bool there = jtn__get_u8(r) != 0;

    JTN_TRY(get_text(r, out));
    if (!there) {
        jtn__free(*out);
        *out = NULL;
    }
    return JTN_OK;
}

static jtn_status get_params(jtn_reader *r, jtn_param **params, size_t *count)
{
    uint32_t total = jtn__get_count(r, PARAM_MIN);

    if (!(*params = jtn__alloc((total + 1) * sizeof **params)))
        return JTN_ERROR_MEMORY;
    for (uint32_t i = 0; i < total; i++) {
        *count = i + 1; /* so that a half-read one is freed too */
        JTN_TRY(get_text(r, &(*params)[i].name));
        JTN_TRY(jtn__type_get(r, &(*params)[i].type));
    }
    return JTN_OK;
}

static jtn_status get_image(jtn_reader *r, jtn_image *image)
{
    uint64_t size;

    JTN_TRY(get_text(r, &image->arch));
    size = jtn__get_u64(r);
    while (!r->bad && r->at % IMAGE_ALIGN)
        jtn__get_u8(r);
    if (r->bad || size > r->size - r->at)
        return jtn__fail(JTN_ERROR_CACHE, "a stored device image is cut short");
    image->bytes = (jtn_view){r->data + r->at, (size_t)size};
    r->at += (size_t)size;
    return JTN_OK;
}

static jtn_status get_kernel(jtn_reader *r, const jtn_artifact *a, jtn_kernel_info *kernel)
{
    JTN_TRY(get_text(r, &kernel->name));
    JTN_TRY(get_text(r, &kernel->lowered));
    JTN_TRY(get_optional(r, &kernel->doc));
    kernel->image = jtn__get_u32(r);
    kernel->untyped = jtn__get_u8(r) != 0;
    if (kernel->image >= a->image_count)
        return jtn__fail(JTN_ERROR_CACHE, "a stored kernel has no image");
    return get_params(r, &kernel->params, &kernel->param_count);
}

static jtn_status get_global(jtn_reader *r, const jtn_artifact *a, jtn_global_info *global)
{
    JTN_TRY(get_text(r, &global->name));
    JTN_TRY(get_text(r, &global->lowered));
    global->image = jtn__get_u32(r);
    if (global->image >= a->image_count)
        return jtn__fail(JTN_ERROR_CACHE, "a stored variable has no image");
    return JTN_OK;
}

static jtn_status get_function(jtn_reader *r, jtn_c_info *function)
{
    JTN_TRY(get_text(r, &function->name));
    JTN_TRY(get_text(r, &function->symbol));
    JTN_TRY(get_optional(r, &function->doc));
    JTN_TRY(jtn__type_get(r, &function->returns));
    return get_params(r, &function->params, &function->param_count);
}

/* Makes room for a list and says how many items follow. */
static jtn_status begin_list(jtn_reader *r, size_t min_size, size_t item_size, void *items, uint32_t *count)
{
    void *memory;

    *count = jtn__get_count(r, min_size);
    memory = jtn__alloc((*count + (size_t)1) * item_size);
    if (!memory)
        return JTN_ERROR_MEMORY;
    memcpy(items, &memory, sizeof memory);
    return JTN_OK;
}

static jtn_status get_lists(jtn_reader *r, jtn_artifact *a)
{
    uint32_t count;

    JTN_TRY(begin_list(r, 16, sizeof *a->images, &a->images, &count));
    for (uint32_t i = 0; i < count; i++)
        JTN_TRY(get_image(r, &a->images[a->image_count++]));
    JTN_TRY(begin_list(r, KERNEL_MIN, sizeof *a->kernels, &a->kernels, &count));
    for (uint32_t i = 0; i < count; i++)
        JTN_TRY(get_kernel(r, a, &a->kernels[a->kernel_count++]));
    JTN_TRY(begin_list(r, 20, sizeof *a->globals, &a->globals, &count));
    for (uint32_t i = 0; i < count; i++)
        JTN_TRY(get_global(r, a, &a->globals[a->global_count++]));
    JTN_TRY(begin_list(r, KERNEL_MIN, sizeof *a->functions, &a->functions, &count));
    for (uint32_t i = 0; i < count; i++)
        JTN_TRY(get_function(r, &a->functions[a->function_count++]));
    count = jtn__get_count(r, 8);
    for (uint32_t i = 0; i < count; i++) {
        char *text = NULL;

        JTN_TRY(get_text(r, &text));
        JTN_TRY(jtn__list_add_take(&a->templates, text));
    }
    return JTN_OK;
}

jtn_status jtn__artifact_decode(jtn_view payload, jtn_artifact *out)
{
    jtn_reader r = {payload.data, payload.size, 0, 0};
    jtn_artifact artifact = {0};
    uint32_t version = jtn__get_u32(&r);
    jtn_status status;

    if (version != VERSION)
        return jtn__fail(JTN_ERROR_CACHE, "the module's format is %u, this library reads %d; build it again", version,
                         VERSION);
    JTN_GO(get_text(&r, &artifact.name));
    artifact.has_host = jtn__get_u8(&r) != 0;
    JTN_GO(get_lists(&r, &artifact));
    if (r.bad || r.at != r.size) {
        status = jtn__fail(JTN_ERROR_CACHE, "the module's contents do not fit its size");
        goto out;
    }
    *out = artifact;
    return JTN_OK;
out:
    jtn__artifact_deinit(&artifact);
    return status;
}

/* ---------------------------------------------------------------- freeing ---- */

void jtn__param_list_deinit(jtn_param *params, size_t count)
{
    for (size_t i = 0; params && i < count; i++) {
        jtn__free(params[i].name);
        jtn__type_deinit(&params[i].type);
    }
    jtn__free(params);
}

void jtn__kernel_info_deinit(jtn_kernel_info *kernel)
{
    jtn__free(kernel->name);
    jtn__free(kernel->lowered);
    jtn__free(kernel->doc);
    jtn__param_list_deinit(kernel->params, kernel->param_count);
    *kernel = (jtn_kernel_info){0};
}

void jtn__artifact_deinit(jtn_artifact *a)
{
    for (size_t i = 0; i < a->image_count; i++) {
        jtn__free(a->images[i].arch);
        jtn__free(a->images[i].owned);
    }
    for (size_t i = 0; i < a->kernel_count; i++)
        jtn__kernel_info_deinit(&a->kernels[i]);
    for (size_t i = 0; i < a->global_count; i++) {
        jtn__free(a->globals[i].name);
        jtn__free(a->globals[i].lowered);
    }
    for (size_t i = 0; i < a->function_count; i++) {
        jtn__free(a->functions[i].name);
        jtn__free(a->functions[i].symbol);
        jtn__free(a->functions[i].doc);
        jtn__type_deinit(&a->functions[i].returns);
        jtn__param_list_deinit(a->functions[i].params, a->functions[i].param_count);
    }
    jtn__free(a->images);
    jtn__free(a->kernels);
    jtn__free(a->globals);
    jtn__free(a->functions);
    jtn__list_deinit(&a->templates);
    jtn__free(a->name);
    *a = (jtn_artifact){0};
}
