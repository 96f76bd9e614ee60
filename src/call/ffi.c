/* ffi.c — plain C functions by libffi: the call interface is prepared once, a call packs its arguments as a launch does. */
#include <ffi.h>
#include <string.h>

#include "base/mem.h"
#include "call/launch.h"

typedef struct jtn_cif {
    ffi_cif cif;
    ffi_type *types[]; /* of the parameters */
} jtn_cif;

static ffi_type *type_of(const jtn_type *type)
{
    if (type->kind == JTN_TYPE_VOID)
        return &ffi_type_void;
    if (type->kind == JTN_TYPE_POINTER)
        return &ffi_type_pointer;
    if (type->dtype.code == kDLFloat)
        return type->dtype.bits == 64 ? &ffi_type_double : &ffi_type_float;
    if (type->dtype.code == kDLInt)
        return type->dtype.bits == 64   ? &ffi_type_sint64
               : type->dtype.bits == 32 ? &ffi_type_sint32
               : type->dtype.bits == 16 ? &ffi_type_sint16
                                        : &ffi_type_sint8;
    return type->dtype.bits == 64   ? &ffi_type_uint64
           : type->dtype.bits == 32 ? &ffi_type_uint32
           : type->dtype.bits == 16 ? &ffi_type_uint16
                                    : &ffi_type_uint8; /* bool too */
}

jtn_status jtn__ffi_prepare(jtn_function *fn)
{
    jtn_cif *cif;

    if (fn->param_count > JTN_MAX_PARAMS)
        return jtn__fail(JTN_ERROR_UNSUPPORTED, "%s has %zu parameters; at most %d can be passed", fn->name,
                         fn->param_count, JTN_MAX_PARAMS);
    cif = jtn__alloc(sizeof *cif + (fn->param_count + 1) * sizeof *cif->types);
    if (!cif)
        return JTN_ERROR_MEMORY;
    for (size_t i = 0; i < fn->param_count; i++)
        cif->types[i] = type_of(&fn->params[i].type);
    if (ffi_prep_cif(&cif->cif, FFI_DEFAULT_ABI, (unsigned)fn->param_count, type_of(&fn->c_info->returns),
                     cif->types) != FFI_OK) {
        jtn__free(cif);
        return jtn__fail(JTN_ERROR_UNSUPPORTED, "%s cannot be called: libffi does not take its types", fn->name);
    }
    fn->cif = cif;
    return JTN_OK;
}

void jtn__ffi_release(jtn_function *fn)
{
    jtn__free(fn->cif);
    fn->cif = NULL;
}

/* libffi widens small integers to a register. */
static void take_result(const jtn_type *type, const void *bytes, jtn_value *result)
{
    ffi_arg word;

    *result = (jtn_value){0};
    memcpy(&word, bytes, sizeof word);
    if (type->kind == JTN_TYPE_VOID)
        return;
    if (type->kind == JTN_TYPE_POINTER) {
        result->kind = JTN_PTR;
        memcpy(&result->as.p, bytes, sizeof(void *));
    } else if (type->dtype.code == kDLFloat) {
        float f;

        result->kind = JTN_FLOAT;
        memcpy(&f, bytes, sizeof f);
        result->as.d = (double)f;
        if (type->dtype.bits == 64)
            memcpy(&result->as.d, bytes, sizeof(double));
    } else if (type->dtype.code == kDLBool) {
        result->kind = JTN_BOOL;
        result->as.i = (word & 0xff) != 0;
    } else {
        unsigned shift = 64 - type->dtype.bits;

        result->kind = JTN_INT;
        result->as.i =
            type->dtype.code == kDLInt ? (int64_t)(word << shift) >> shift : (int64_t)(word << shift >> shift);
        if (type->dtype.code == kDLUInt && result->as.i < 0)
            result->kind = JTN_UINT;
    }
}

jtn_status jtn__ffi_call(jtn_function *fn, const jtn_value *args, size_t count, jtn_value *result)
{
    char slots[JTN_MAX_PARAMS][16] __attribute__((aligned(16)));
    void *params[JTN_MAX_PARAMS];
    union {
        ffi_arg word;
        double d;
        void *p;
    } returned = {0};
    jtn_cif *cif = fn->cif;
    int device = -1;

    if (count != fn->param_count)
        return jtn__arg_explain(fn, kDLCPU, args, count);
    for (size_t i = 0; i < count; i++) {
        if (!jtn__arg_pack(&fn->params[i], kDLCPU, &args[i], slots[i], &device))
            return jtn__arg_explain(fn, kDLCPU, args, count);
        params[i] = slots[i];
    }
    ffi_call(&cif->cif, FFI_FN(fn->address), &returned, params);
    take_result(&fn->c_info->returns, &returned, result);
    return JTN_OK;
}
