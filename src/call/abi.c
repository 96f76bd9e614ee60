/* abi.c — the table of functions handed to compiled ops, and what stands behind it where no framework does.
 *
 * Tensors are boxes: the public head that ops read, then the library's part. Whoever made a box says how it is destroyed. In a Python
 * process the bridge provides the framework's way of making tensors; a C program gets plain memory. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "call/launch.h"
#include "call/register.h"

/* ---------------------------------------------------------------- errors and call memory ---- */

static _Thread_local int raised = -1;
static _Thread_local char raised_message[4096];

static void set_error(int raise, const char *message, size_t size)
{
    if (raise == JTN_RAISE_PENDING && raised >= 0)
        return;
    raised = raise;
    if (size >= sizeof raised_message)
        size = sizeof raised_message - 1;
    memcpy(raised_message, message ? message : "", message ? size : 0);
    raised_message[message ? size : 0] = 0;
}

int jtn__call_raise(const char **message)
{
    int result = raised;

    *message = raised_message;
    raised = -1;
    return result;
}

struct jtn_call_block {
    struct jtn_call_block *next;
    max_align_t bytes[];
};

static void *call_alloc(void *call, size_t bytes)
{
    jtn_call_arena *arena = call;
    struct jtn_call_block *block = jtn__alloc(sizeof *block + bytes);

    if (!block)
        return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    return block->bytes;
}

void jtn__call_arena_deinit(jtn_call_arena *arena)
{
    while (arena->blocks) {
        struct jtn_call_block *next = arena->blocks->next;

        jtn__free(arena->blocks);
        arena->blocks = next;
    }
}

/* ---------------------------------------------------------------- boxes ---- */

static void tensor_retain(jtn_tensor *tensor)
{
    __atomic_fetch_add(&tensor->refcount, 1, __ATOMIC_RELAXED);
}

static void tensor_release(jtn_tensor *tensor)
{
    jtn_tensor_box *box = (jtn_tensor_box *)(void *)tensor;

    if (tensor && __atomic_fetch_sub(&tensor->refcount, 1, __ATOMIC_ACQ_REL) == 1)
        box->destroy(box);
}

jtn_status jtn__tensor_box_finish(jtn_tensor_box *box)
{
    DLTensor *dl = &box->head.dl;
    int64_t numel = 1;
    bool dense = true;

    if (!dl->strides && dl->ndim > 0) {
        if (dl->ndim > 8)
            return jtn__fail(JTN_ERROR_ARGUMENT,
                             "a tensor of %d dimensions without strides cannot be passed (8 at most)", dl->ndim);
        dl->strides = box->inline_dims + 8;
        for (int i = dl->ndim - 1; i >= 0; i--) {
            dl->strides[i] = numel;
            numel *= dl->shape[i];
        }
    } else {
        for (int i = dl->ndim - 1; i >= 0; i--) {
            dense &= dl->shape[i] == 1 || dl->strides[i] == numel;
            numel *= dl->shape[i];
        }
    }
    dl->data = (char *)dl->data + dl->byte_offset;
    dl->byte_offset = 0;
    box->head.numel = numel;
    if (dense || numel == 0)
        box->head.flags |= JTN_TENSOR_CONTIGUOUS;
    return JTN_OK;
}

/* ---------------------------------------------------------------- plain memory ---- */

static void destroy_plain(jtn_tensor_box *box)
{
    if (box->head.dl.device.device_type == kDLCPU)
        free(box->owner);
    else
        jtn__target_cuda()->release(box->head.dl.device.device_id, box->owner);
    jtn__free(box);
}

/* A box with room for its own shape and strides. */
static jtn_tensor_box *new_box(int32_t ndim, const int64_t *sizes, const int64_t *strides, DLDataType dtype,
                               DLDevice device)
{
    jtn_tensor_box *box = jtn__alloc(sizeof *box + (size_t)(ndim > 8 ? 2 * ndim : 0) * sizeof(int64_t));
    int64_t *dims;
    int64_t step = 1;

    if (!box)
        return NULL;
    dims = ndim > 8 ? (int64_t *)(box + 1) : box->inline_dims;
    box->head.refcount = 1;
    box->head.dl = (DLTensor){
        .device = device, .ndim = ndim, .dtype = dtype, .shape = dims, .strides = dims + (ndim > 8 ? ndim : 8)};
    for (int i = ndim - 1; i >= 0; i--) {
        dims[i] = sizes[i];
        box->head.dl.strides[i] = strides ? strides[i] : step;
        step *= sizes[i];
    }
    return box;
}

/* Bytes from the first element to behind the last. */
static size_t span(const DLTensor *dl)
{
    int64_t last = 0;

    for (int i = 0; i < dl->ndim; i++) {
        if (dl->shape[i] == 0)
            return 0;
        last += (dl->shape[i] - 1) * dl->strides[i];
    }
    return (size_t)(last + 1) * (dl->dtype.bits * dl->dtype.lanes / 8u);
}

static int report(jtn_status status, int raise)
{
    const char *message = jtn__error_message();

    set_error(raise, message, strlen(message));
    return (int)status;
}

static int plain_empty(int32_t ndim, const int64_t *sizes, const int64_t *strides, DLDataType dtype, DLDevice device,
                       int pinned, int requires_grad, jtn_tensor **out)
{
    jtn_tensor_box *box;
    jtn_status status = JTN_OK;
    size_t bytes;

    for (int i = 0; i < ndim; i++)
        if (sizes[i] < 0)
            return report(jtn__fail(JTN_ERROR_ARGUMENT, "a tensor cannot have the size %lld", (long long)sizes[i]),
                          JTN_RAISE_RUNTIME);
    if (device.device_id < 0)
        device.device_id = device.device_type == kDLCUDA ? jtn__target_cuda()->current_device() : 0;
    if (!(box = new_box(ndim, sizes, strides, dtype, device)))
        return report(JTN_ERROR_MEMORY, JTN_RAISE_MEMORY);
    bytes = span(&box->head.dl);
    if (device.device_type == kDLCUDA)
        status = jtn__target_cuda()->allocate(device.device_id, bytes, &box->owner);
    else if (!(box->owner = aligned_alloc(64, (bytes + 64) & ~(size_t)63)))
        status = JTN_OUT_OF_MEMORY;
    if (status != JTN_OK) {
        jtn__free(box);
        return report(status, JTN_RAISE_MEMORY);
    }
    box->head.dl.data = box->owner;
    box->destroy = destroy_plain;
    jtn__tensor_box_finish(box);
    *out = &box->head;
    return 0;
}

static void destroy_view(jtn_tensor_box *box)
{
    tensor_release(box->owner);
    jtn__free(box);
}

static int plain_as_strided(jtn_tensor *base, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                            int64_t offset, jtn_tensor **out)
{
    jtn_tensor_box *box = new_box(ndim, sizes, strides, base->dl.dtype, base->dl.device);

    if (!box)
        return report(JTN_ERROR_MEMORY, JTN_RAISE_MEMORY);
    tensor_retain(base);
    box->owner = base;
    box->destroy = destroy_view;
    box->head.dl.data = (char *)base->dl.data + offset * (base->dl.dtype.bits * base->dl.dtype.lanes / 8);
    box->head.flags = base->flags & JTN_TENSOR_READ_ONLY;
    jtn__tensor_box_finish(box);
    *out = &box->head;
    return 0;
}

static double read_element(DLDataType dtype, const void *at)
{
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f32;
        double f64;
        _Float16 f16;
    } v = {0};

    memcpy(&v, at, dtype.bits / 8u);
    if (dtype.code == kDLFloat)
        return dtype.bits == 64 ? v.f64 : dtype.bits == 32 ? (double)v.f32 : (double)v.f16;
    if (dtype.code == kDLBfloat)
        return v.u32 <<= 16, (double)v.f32;
    if (dtype.code == kDLInt)
        return dtype.bits == 64 ? (double)v.i64 : dtype.bits == 32 ? v.i32 : dtype.bits == 16 ? v.i16 : v.i8;
    return dtype.bits == 64 ? (double)v.u64 : dtype.bits == 32 ? v.u32 : dtype.bits == 16 ? v.u16 : v.u8;
}

/* One number into one element, by the rules of a launch's scalars. */
static bool write_element(DLDataType dtype, double d, void *at)
{
    jtn_param param = {.type = {.kind = JTN_TYPE_SCALAR, .dtype = dtype, .size = dtype.bits / 8u}};
    jtn_value value = {.kind = JTN_FLOAT};
    int device = -1;

    value.as.d = d;
    if (dtype.code == kDLBool) {
        *(unsigned char *)at = d != 0;
        return true;
    }
    if (dtype.code == kDLInt || dtype.code == kDLUInt)
        value.as.d = d < 0 ? -(double)(int64_t)-d : (double)(int64_t)d;
    return jtn__arg_pack(&param, kDLCPU, &value, at, &device);
}

/* Address of the element number `index` in row-major order. */
static char *element(const DLTensor *dl, int64_t index)
{
    int64_t offset = 0;

    for (int i = dl->ndim - 1; i >= 0; i--) {
        offset += index % dl->shape[i] * dl->strides[i];
        index /= dl->shape[i];
    }
    return (char *)dl->data + offset * (dl->dtype.bits * dl->dtype.lanes / 8);
}

static bool same_layout(const jtn_tensor *a, const jtn_tensor *b)
{
    bool same = a->dl.ndim == b->dl.ndim && a->dl.dtype.code == b->dl.dtype.code &&
                a->dl.dtype.bits == b->dl.dtype.bits && (a->flags & JTN_TENSOR_CONTIGUOUS) &&
                (b->flags & JTN_TENSOR_CONTIGUOUS);

    for (int i = 0; same && i < a->dl.ndim; i++)
        same = a->dl.shape[i] == b->dl.shape[i];
    return same;
}

static int plain_copy(jtn_tensor *dst, jtn_tensor *src, int non_blocking)
{
    bool on_cpu = dst->dl.device.device_type == kDLCPU && src->dl.device.device_type == kDLCPU;

    if (same_layout(dst, src)) {
        size_t bytes = span(&dst->dl);

        if (on_cpu)
            memmove(dst->dl.data, src->dl.data, bytes);
        else if (jtn__target_cuda()->copy(dst->dl.data, src->dl.data, bytes, NULL) != JTN_OK)
            return report(JTN_ERROR_DEVICE, JTN_RAISE_RUNTIME);
        return 0;
    }
    if (!on_cpu || (src->numel != dst->numel && src->numel != 1))
        return report(jtn__fail(JTN_ERROR_UNSUPPORTED,
                                "without PyTorch or NumPy, tensors are copied only between equal shapes, and on "
                                "a GPU only when both are contiguous and of one dtype"),
                      JTN_RAISE_RUNTIME);
    for (int64_t i = 0; i < dst->numel; i++)
        write_element(dst->dl.dtype, read_element(src->dl.dtype, element(&src->dl, src->numel == 1 ? 0 : i)),
                      element(&dst->dl, i));
    return 0;
}

static int plain_fill(jtn_tensor *tensor, const jtn_value *scalar)
{
    double d = scalar->kind == JTN_FLOAT ? scalar->as.d : (double)scalar->as.i;

    if (tensor->dl.device.device_type != kDLCPU)
        return report(jtn__fail(JTN_ERROR_UNSUPPORTED, "without PyTorch, tensors on a GPU cannot be filled"),
                      JTN_RAISE_RUNTIME);
    for (int64_t i = 0; i < tensor->numel; i++)
        if (!write_element(tensor->dl.dtype, d, element(&tensor->dl, i)))
            return report(jtn__fail(JTN_ERROR_ARGUMENT, "%g does not fit the tensor's dtype", d), JTN_RAISE_RUNTIME);
    return 0;
}

static int plain_stream(DLDevice device, void **out)
{
    *out = NULL;
    return 0;
}

/* ---------------------------------------------------------------- the table ---- */

static const jtn_framework plain = {plain_empty, plain_as_strided, plain_copy, plain_fill, plain_stream};
static _Atomic(const jtn_framework *) framework = &plain;

void jtn__framework_set(const jtn_framework *given)
{
    atomic_store(&framework, given ? given : &plain);
}

static int tensor_empty(int32_t ndim, const int64_t *sizes, const int64_t *strides, DLDataType dtype, DLDevice device,
                        int pinned, int requires_grad, jtn_tensor **out)
{
    return atomic_load(&framework)->tensor_empty(ndim, sizes, strides, dtype, device, pinned, requires_grad, out);
}

static int tensor_as_strided(jtn_tensor *base, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                             int64_t offset, jtn_tensor **out)
{
    return atomic_load(&framework)->tensor_as_strided(base, ndim, sizes, strides, offset, out);
}

static int tensor_copy(jtn_tensor *dst, jtn_tensor *src, int non_blocking)
{
    return atomic_load(&framework)->tensor_copy(dst, src, non_blocking);
}

static int tensor_fill(jtn_tensor *tensor, const jtn_value *scalar)
{
    return atomic_load(&framework)->tensor_fill(tensor, scalar);
}

static int current_stream(DLDevice device, void **out)
{
    return atomic_load(&framework)->current_stream(device, out);
}

const jtn_abi jtn__abi = {
    .version = JTN_ABI_VERSION,
    .size = sizeof(jtn_abi),
    .add_function = jtn__register_function,
    .add_value = jtn__register_value,
    .set_doc = jtn__register_doc,
    .set_error = set_error,
    .call_alloc = call_alloc,
    .tensor_retain = tensor_retain,
    .tensor_release = tensor_release,
    .tensor_empty = tensor_empty,
    .tensor_as_strided = tensor_as_strided,
    .tensor_copy = tensor_copy,
    .tensor_fill = tensor_fill,
    .current_stream = current_stream,
};
