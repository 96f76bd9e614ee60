/* launch.c — arguments against the signature, packing, grid rules, launch.
 *
 * The good path makes no text, takes no lock and allocates nothing: values are written into a block on the stack, in the order of the
 * parameters, each at its alignment. When one does not fit, the arguments are walked a second time by the cold half, which explains. */
#include "call/launch.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- scalars ---- */

/* Round to nearest even, as the hardware converts. */
static uint16_t to_bfloat16(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    if (isnan(f))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t to_half(float f)
{
    _Float16 h = (_Float16)f;
    uint16_t bits;

    memcpy(&bits, &h, sizeof bits);
    return bits;
}

/* A finite number that would become infinite does not fit. */
static bool pack_float(DLDataType dtype, double d, void *slot)
{
    double most = dtype.code == kDLBfloat ? 3.3895313892515355e38
                  : dtype.bits == 16      ? 65504.0
                  : dtype.bits == 32      ? (double)FLT_MAX
                                          : DBL_MAX;
    float f = (float)d;
    uint16_t h;

    if (isfinite(d) && fabs(d) > most)
        return false;
    if (dtype.bits == 64) {
        memcpy(slot, &d, 8);
    } else if (dtype.bits == 32) {
        memcpy(slot, &f, 4);
    } else {
        h = dtype.code == kDLBfloat ? to_bfloat16(f) : to_half(f);
        memcpy(slot, &h, 2);
    }
    return true;
}

static bool pack_int(DLDataType dtype, int64_t i, void *slot)
{
    if (dtype.code == kDLUInt
            ? i < 0 || (dtype.bits < 64 && (uint64_t)i >> dtype.bits)
            : dtype.bits < 64 && (i < -((int64_t)1 << (dtype.bits - 1)) || i >= (int64_t)1 << (dtype.bits - 1)))
        return false;
    memcpy(slot, &i, dtype.bits / 8u); /* little-endian: the low bytes come first */
    return true;
}

/* A float stands for an integer only when it is one exactly. */
static bool pack_integral(DLDataType dtype, double d, void *slot)
{
    return d == floor(d) && fabs(d) < 9.2e18 && pack_int(dtype, (int64_t)d, slot);
}

static bool pack_scalar(const jtn_type *type, const jtn_value *value, void *slot)
{
    bool is_float = type->dtype.code == kDLFloat || type->dtype.code == kDLBfloat;
    unsigned char flag;

    if (type->dtype.code == kDLComplex && value->kind != JTN_BYTES)
        return false; /* its two numbers as bytes only */
    switch (value->kind) {
    case JTN_INT:
    case JTN_BOOL:
        if (type->dtype.code != kDLBool)
            return is_float ? pack_float(type->dtype, (double)value->as.i, slot)
                            : pack_int(type->dtype, value->as.i, slot);
        flag = value->as.i != 0;
        memcpy(slot, &flag, 1);
        return value->kind == JTN_BOOL || value->as.i == 0 || value->as.i == 1;
    case JTN_UINT:
        if (is_float)
            return pack_float(type->dtype, (double)value->as.u, slot);
        if (type->dtype.code != kDLUInt || type->dtype.bits != 64)
            return false;
        memcpy(slot, &value->as.u, 8);
        return true;
    case JTN_FLOAT:
        if (is_float)
            return pack_float(type->dtype, value->as.d, slot);
        return type->dtype.code != kDLBool && pack_integral(type->dtype, value->as.d, slot);
    case JTN_BYTES:
        if (value->size == type->size)
            memcpy(slot, value->as.p, type->size);
        return value->size == type->size;
    default:
        return false;
    }
}

/* ---------------------------------------------------------------- pointers ---- */

static bool is_contiguous(const DLTensor *t)
{
    int64_t expected = 1;

    if (!t->strides)
        return true;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->shape[i] == 0)
            return true;
        if (t->shape[i] != 1 && t->strides[i] != expected)
            return false;
        expected *= t->shape[i];
    }
    return true;
}

/* Raw bytes and matching elements; half's two spellings are one type, and so are the vectors of a scalar. */
static bool dtype_fits(DLDataType wanted, DLDataType got)
{
    return wanted.bits == 0 || (wanted.code == got.code && wanted.bits == got.bits) ||
           (wanted.bits == 8 && got.bits == 8 &&
            (wanted.code == kDLBool || got.code == kDLBool || wanted.code <= kDLUInt) && got.code != kDLFloat);
}

static bool pack_tensor(const jtn_type *type, int dl_device_type, const DLTensor *t, bool read_only, void *slot,
                        int *device)
{
    char *address = (char *)t->data + t->byte_offset;

    if (!dtype_fits(type->dtype, t->dtype) || !is_contiguous(t) || (read_only && !type->is_const))
        return false;
    if (dl_device_type != kDLCPU) {
        if (t->device.device_type != dl_device_type && t->device.device_type != kDLCUDAManaged &&
            t->device.device_type != kDLCUDAHost)
            return false;
        if (t->device.device_type == dl_device_type) {
            if (*device >= 0 && *device != t->device.device_id)
                return false;
            *device = t->device.device_id;
        }
    } else if (t->device.device_type != kDLCPU && t->device.device_type != kDLCUDAHost &&
               t->device.device_type != kDLCUDAManaged) {
        return false;
    }
    memcpy(slot, &address, sizeof address);
    return true;
}

static bool pack_pointer(const jtn_type *type, int dl_device_type, const jtn_value *value, void *slot, int *device)
{
    void *address = NULL;

    switch (value->kind) {
    case JTN_DLTENSOR:
        return pack_tensor(type, dl_device_type, value->as.dl, value->size & JTN_TENSOR_READ_ONLY, slot, device);
    case JTN_TENSOR:
        return pack_tensor(type, dl_device_type, &value->as.t->dl, value->as.t->flags & JTN_TENSOR_READ_ONLY, slot,
                           device);
    case JTN_PTR:
        address = value->as.p;
        break;
    case JTN_INT:
        address = (void *)(uintptr_t)value->as.i;
        if (value->as.i < 0)
            return false;
        break;
    case JTN_UINT:
        address = (void *)(uintptr_t)value->as.u;
        break;
    case JTN_STR:
        if (dl_device_type != kDLCPU || !type->is_const || type->dtype.bits != 8)
            return false;
        memcpy(&address, &value->as.s, sizeof address);
        break;
    case JTN_NONE:
        break;
    default:
        return false;
    }
    memcpy(slot, &address, sizeof address);
    return true;
}

bool jtn__arg_pack(const jtn_param *param, int dl_device_type, const jtn_value *value, void *slot, int *device)
{
    const jtn_type *type = &param->type;

    switch (type->kind) {
    case JTN_TYPE_SCALAR:
        return pack_scalar(type, value, slot);
    case JTN_TYPE_POINTER:
        return pack_pointer(type, dl_device_type, value, slot, device);
    case JTN_TYPE_STRUCT:
        if (value->kind != JTN_BYTES || value->size != type->size)
            return false;
        memcpy(slot, value->as.p, type->size);
        return true;
    default:
        return false;
    }
}

/* ---------------------------------------------------------------- explaining ---- */

static void put_wanted(jtn_buf *out, const jtn_type *type, int dl_device_type)
{
    char dtype[24];

    if (type->kind == JTN_TYPE_STRUCT)
        jtn__buf_printf(out, "%s, a struct of %u bytes (a NumPy structured scalar, a ctypes structure, or bytes)",
                        type->text, type->size);
    else if (type->kind == JTN_TYPE_SCALAR)
        jtn__buf_printf(out, "%s", type->text);
    else if (type->dtype.bits)
        jtn__buf_printf(out, "a %s tensor on %s (%s)",
                        jtn__dtype_tensor_name((DLDataType){type->dtype.code, type->dtype.bits, 1}, dtype),
                        dl_device_type == kDLCPU ? "the CPU" : "a GPU", type->text);
    else
        jtn__buf_printf(out, "a tensor on %s (%s)", dl_device_type == kDLCPU ? "the CPU" : "a GPU", type->text);
}

/* What else is wrong when kind and dtype are right. */
static const char *hint(const jtn_type *type, int dl_device_type, const jtn_value *value, int device, bool only_device)
{
    const DLTensor *t = value->kind == JTN_DLTENSOR ? value->as.dl
                        : value->kind == JTN_TENSOR ? &value->as.t->dl
                                                    : NULL;

    if (!t && type->kind == JTN_TYPE_SCALAR &&
        (value->kind == JTN_INT || value->kind == JTN_UINT || value->kind == JTN_FLOAT))
        return value->kind == JTN_FLOAT && type->dtype.code != kDLFloat && type->dtype.code != kDLBfloat
                   ? ": it is no whole number in its range"
                   : ": it is out of range";
    if (!t || type->kind != JTN_TYPE_POINTER)
        return "";
    if (!dtype_fits(type->dtype, t->dtype))
        return "";
    if (only_device)
        return ": the other tensors are on another GPU";
    if (!is_contiguous(t))
        return ": it is not contiguous; pass x.contiguous(), or x.data_ptr() when the kernel knows the strides";
    if (t->device.device_type != dl_device_type)
        return "";
    return type->is_const ? "" : ": it is read-only and the parameter is not const";
}

jtn_status jtn__arg_explain(const jtn_function *fn, int dl_device_type, const jtn_value *args, size_t count)
{
    _Alignas(16) char slot[JTN_MAX_PARAM_BYTES];
    jtn_status status;
    jtn_buf text;
    int device = -1;
    size_t i = 0;

    if (fn->kind == JTN_FUNCTION_KERNEL && fn->info->untyped)
        return jtn__fail(
            JTN_ERROR_ARGUMENT,
            "%s: the types of its parameters could not be learned (a template made by a macro?); define it by name so "
            "that it can be launched",
            fn->name);
    if (count != fn->param_count)
        return jtn__fail(JTN_ERROR_ARGUMENT, "%s takes %zu arguments, got %zu: %s", fn->name, fn->param_count, count,
                         fn->signature);
    while (i < count && jtn__arg_pack(&fn->params[i], dl_device_type, &args[i], slot, &device))
        i++;
    if (i == count)
        return jtn__fail(JTN_ERROR_ARGUMENT, "%s: its arguments take more than %d bytes", fn->name,
                         JTN_MAX_PARAM_BYTES);
    int fresh = -1;
    bool only_device = device >= 0 && jtn__arg_pack(&fn->params[i], dl_device_type, &args[i], slot, &fresh);
    jtn__buf_init(&text, 0);
    jtn__buf_printf(&text, "%s: argument %zu (%s): expected ", fn->name, i + 1, fn->params[i].name);
    put_wanted(&text, &fn->params[i].type, dl_device_type);
    jtn__buf_puts(&text, ", got ");
    jtn__value_describe(&text, &args[i]);
    jtn__buf_puts(&text, hint(&fn->params[i].type, dl_device_type, &args[i], device, only_device));
    status = jtn__fail(JTN_ERROR_ARGUMENT, "%s", text.failed == JTN_OK ? text.data : "an argument does not fit");
    jtn__buf_deinit(&text);
    return status;
}

/* ---------------------------------------------------------------- launching ---- */

jtn_status jtn__launch_packed(jtn_function *fn, const jtn_launch_config *config, void **params)
{
    jtn_kernel *kernel = atomic_load_explicit(&fn->kernel, memory_order_acquire);

    if (__builtin_expect(!kernel, 0)) {
        JTN_TRY(jtn__function_prepare(fn));
        kernel = atomic_load(&fn->kernel);
    }
    return fn->module->target->launch(kernel, config, params);
}

jtn_status jtn__launch(jtn_function *fn, const jtn_launch_config *config, const jtn_value *args, size_t count)
{
    _Alignas(16) char block[JTN_MAX_PARAM_BYTES];
    void *params[JTN_MAX_PARAMS];
    const jtn_target *target = fn->module->target;
    jtn_launch_config complete = *config;
    int device = -1;
    size_t used = 0;

    if (__builtin_expect(count != fn->param_count || fn->info->untyped, 0))
        return jtn__arg_explain(fn, target->dl_device_type, args, count);
    for (size_t i = 0; i < count; i++) {
        const jtn_type *type = &fn->params[i].type;

        used = (used + type->align - 1) & ~(size_t)(type->align - 1);
        if (__builtin_expect(used + type->size > sizeof block || !jtn__arg_pack(&fn->params[i], target->dl_device_type,
                                                                                &args[i], block + used, &device),
                             0))
            return jtn__arg_explain(fn, target->dl_device_type, args, count);
        params[i] = block + used;
        used += type->size;
    }
    if (__builtin_expect(complete.device >= 0 && device >= 0 && complete.device != device, 0))
        return jtn__fail(JTN_ERROR_ARGUMENT, "%s: a launch on GPU %d was asked for, the tensors are on GPU %d",
                         fn->name, complete.device, device);
    if (complete.device < 0)
        complete.device = device >= 0 ? device : target->current_device();
    if (complete.grid[0] == 0 || complete.grid[1] == 0 || complete.grid[2] == 0)
        return JTN_OK;
    for (int i = 0; i < 3; i++)
        complete.block[i] += complete.block[i] == 0;
    return jtn__launch_packed(fn, &complete, params);
}
