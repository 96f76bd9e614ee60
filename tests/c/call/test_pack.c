/* test_pack.c — one value into one parameter: every scalar kind with what fits, what is too large and what is of a wrong kind.
 *
 * Slots are heap blocks of exactly the parameter's size, so that a sanitizer sees one byte too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "call/launch.h"

#define F16 {kDLFloat, 16, 1}
#define F32 {kDLFloat, 32, 1}
#define F64 {kDLFloat, 64, 1}
#define BF16 {kDLBfloat, 16, 1}
#define BOOL {kDLBool, 8, 1}
#define I(bits) {kDLInt, bits, 1}
#define U(bits) {kDLUInt, bits, 1}
#define INT(n) {.kind = JTN_INT, .as.i = n}
#define UINT(n) {.kind = JTN_UINT, .as.u = n}
#define FLOAT(x) {.kind = JTN_FLOAT, .as.d = x}
#define TRUE {.kind = JTN_BOOL, .as.i = 1}
#define NONE {.kind = JTN_NONE}
#define ADDRESS {.kind = JTN_PTR, .as.p = (void *)8}
#define TEXT {.kind = JTN_STR, .size = 1, .as.s = "1"}

typedef struct scalar_case {
    DLDataType dtype;
    jtn_value value;
    bool fits;
    uint64_t bits; /* what the slot then holds, little-endian */
} scalar_case;

static const scalar_case cases[] = {
    {BOOL, TRUE, true, 1}, {BOOL, INT(0), true, 0}, {BOOL, INT(2), false, 0}, {BOOL, FLOAT(1), false, 0},
    {I(8), INT(-128), true, 0x80}, {I(8), INT(127), true, 0x7f}, {I(8), INT(128), false, 0}, {I(8), INT(-129), false, 0},
    {I(16), INT(-32768), true, 0x8000}, {I(16), INT(32768), false, 0},
    {I(32), INT(-1), true, 0xffffffff}, {I(32), INT(INT32_MAX), true, 0x7fffffff}, {I(32), INT(3000000000), false, 0},
    {I(32), INT(-2147483649), false, 0}, {I(32), FLOAT(3), true, 3}, {I(32), FLOAT(2.5), false, 0}, {I(32), FLOAT(NAN), false, 0},
    {I(32), FLOAT(1e300), false, 0}, {I(32), FLOAT(-INFINITY), false, 0}, {I(32), TRUE, true, 1}, {I(32), UINT(UINT64_MAX), false, 0},
    {I(64), INT(INT64_MIN), true, 0x8000000000000000}, {I(64), INT(INT64_MAX), true, INT64_MAX}, {I(64), UINT(1ull << 63), false, 0},
    {I(64), FLOAT(9223372036854775808.0), false, 0}, {I(64), ADDRESS, false, 0},
    {U(8), INT(255), true, 0xff}, {U(8), INT(256), false, 0}, {U(8), INT(-1), false, 0},
    {U(16), INT(65535), true, 0xffff}, {U(16), INT(65536), false, 0},
    {U(32), INT(UINT32_MAX), true, UINT32_MAX}, {U(32), INT(1ll << 32), false, 0}, {U(32), UINT(1ull << 63), false, 0},
    {U(64), INT(-1), false, 0}, {U(64), UINT(UINT64_MAX), true, UINT64_MAX}, {U(64), INT(5), true, 5}, {U(64), ADDRESS, false, 0},
    {F16, FLOAT(1), true, 0x3c00}, {F16, FLOAT(65504), true, 0x7bff}, {F16, FLOAT(70000), false, 0}, {F16, INT(70000), false, 0},
    {F16, FLOAT(INFINITY), true, 0x7c00}, {F16, FLOAT(-0.0), true, 0x8000}, {F16, FLOAT(2049), true, 0x6800}, /* half way: to even */
    {BF16, FLOAT(1), true, 0x3f80}, {BF16, FLOAT(1.00390625), true, 0x3f80}, {BF16, FLOAT(1.01171875), true, 0x3f82},
    {BF16, FLOAT(3.4e38), false, 0}, {BF16, FLOAT(-INFINITY), true, 0xff80},
    {F32, FLOAT(2), true, 0x40000000}, {F32, FLOAT(0.1), true, 0x3dcccccd}, {F32, INT(2), true, 0x40000000}, {F32, FLOAT(1e39), false, 0},
    {F32, FLOAT(INFINITY), true, 0x7f800000}, {F32, TRUE, true, 0x3f800000}, {F32, UINT(1ull << 63), true, 0x5f000000},
    {F64, FLOAT(2), true, 0x4000000000000000}, {F64, FLOAT(1e300), true, 0x7e37e43c8800759c}, {F64, INT(-1), true, 0xbff0000000000000},
    {I(32), NONE, false, 0}, {F32, NONE, false, 0}, {F64, ADDRESS, false, 0}, {I(32), TEXT, false, 0}, {F32, TEXT, false, 0},
};

static jtn_param scalar_param(DLDataType dtype)
{
    return (jtn_param){.name = "v", .type = {.kind = JTN_TYPE_SCALAR, .dtype = dtype, .size = dtype.bits / 8u, .align = dtype.bits / 8u, .text = "scalar"}};
}

static void scalars_fit_exactly_or_are_refused(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const scalar_case *c = &cases[i];
        jtn_param param = scalar_param(c->dtype);
        void *slot = malloc(param.type.size);
        int device = -1;
        uint64_t got = 0;
        bool fits = jtn__arg_pack(&param, kDLCUDA, &c->value, slot, &device);

        if (fits != c->fits)
            fail_msg("case %zu: (code %u, %u bits), value of kind %d: %s", i, c->dtype.code, c->dtype.bits, c->value.kind, fits ? "accepted" : "refused");
        if (fits)
            memcpy(&got, slot, param.type.size);
        if (fits && got != c->bits)
            fail_msg("case %zu: the slot holds %llx, not %llx", i, (unsigned long long)got, (unsigned long long)c->bits);
        assert_int_equal(device, -1);
        free(slot);
    }
}

static void a_nan_stays_a_nan(void **state)
{
    jtn_value nan_value = FLOAT(NAN);
    jtn_param half = scalar_param((DLDataType)F16), brain = scalar_param((DLDataType)BF16);
    uint16_t bits;
    int device = -1;

    assert_true(jtn__arg_pack(&half, kDLCUDA, &nan_value, &bits, &device));
    assert_true((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff));
    assert_true(jtn__arg_pack(&brain, kDLCUDA, &nan_value, &bits, &device));
    assert_true((bits & 0x7f80) == 0x7f80 && (bits & 0x7f));
}

static void a_struct_must_have_exactly_its_size(void **state)
{
    jtn_param param = {.name = "p", .type = {.kind = JTN_TYPE_STRUCT, .size = 12, .align = 4, .text = "P"}};
    char bytes[16] = "0123456789ab", *slot = malloc(12);
    int device = -1;

    for (uint32_t size = 11; size <= 13; size++) {
        jtn_value value = {.kind = JTN_BYTES, .size = size, .as.p = bytes};

        assert_int_equal(jtn__arg_pack(&param, kDLCUDA, &value, slot, &device), size == 12);
    }
    assert_memory_equal(slot, bytes, 12);
    free(slot);
}

/* ---------------------------------------------------------------- pointers ---- */

typedef struct sample {
    DLTensor t;
    int64_t shape[2], strides[2];
} sample;

static void sample_init(sample *s, DLDeviceType type, int device, DLDataType dtype)
{
    *s = (sample){.shape = {2, 3}, .strides = {3, 1}};
    s->t = (DLTensor){.data = (void *)0x1000, .device = {type, device}, .ndim = 2, .dtype = dtype, .shape = s->shape, .strides = s->strides, .byte_offset = 16};
}

static bool pack_sample(const sample *s, bool is_const, uint32_t flags, int *device, void **address)
{
    jtn_param param = {.name = "x", .type = {.kind = JTN_TYPE_POINTER, .is_const = is_const, .dtype = F32, .size = 8, .align = 8, .text = "float *"}};
    jtn_tensor tensor = {.dl = s->t, .numel = 6, .flags = flags, .refcount = 1};
    jtn_value value = {.kind = JTN_TENSOR, .as.t = &tensor};

    return jtn__arg_pack(&param, kDLCUDA, &value, address, device);
}

static void a_tensor_gives_address_and_device(void **state)
{
    void *address = NULL;
    int device = -1;
    sample s;

    sample_init(&s, kDLCUDA, 1, (DLDataType)F32);
    assert_true(pack_sample(&s, false, 0, &device, &address));
    assert_ptr_equal(address, (void *)0x1010);
    assert_int_equal(device, 1);
    s.t.device.device_id = 0; /* the second tensor is elsewhere */
    assert_false(pack_sample(&s, false, 0, &device, &address));
    s.t.strides = NULL;
    device = -1;
    assert_true(pack_sample(&s, false, 0, &device, &address));
}

static void a_tensor_that_does_not_suit_is_refused(void **state)
{
    void *address;
    int device = -1;
    sample s;

    sample_init(&s, kDLCUDA, 0, (DLDataType)F64);
    assert_false(pack_sample(&s, false, 0, &device, &address));
    sample_init(&s, kDLCPU, 0, (DLDataType)F32);
    assert_false(pack_sample(&s, false, 0, &device, &address));
    sample_init(&s, kDLCUDA, 0, (DLDataType)F32);
    assert_false(pack_sample(&s, false, JTN_TENSOR_READ_ONLY, &device, &address));
    assert_true(pack_sample(&s, true, JTN_TENSOR_READ_ONLY, &device, &address));
    s.strides[0] = 4; /* rows with a gap */
    assert_false(pack_sample(&s, false, 0, &device, &address));
    s.shape[0] = 1; /* one row has no gap */
    assert_true(pack_sample(&s, false, 0, &device, &address));
}

static void raw_addresses_and_none_are_pointers(void **state)
{
    jtn_param param = {.name = "x", .type = {.kind = JTN_TYPE_POINTER, .size = 8, .align = 8, .text = "void *"}};
    jtn_value address = ADDRESS, none = NONE, number = FLOAT(8), text = TEXT;
    void *slot = &param;
    int device = -1;

    assert_true(jtn__arg_pack(&param, kDLCUDA, &address, &slot, &device));
    assert_ptr_equal(slot, (void *)8);
    assert_true(jtn__arg_pack(&param, kDLCUDA, &none, &slot, &device));
    assert_null(slot);
    assert_false(jtn__arg_pack(&param, kDLCUDA, &number, &slot, &device));
    assert_false(jtn__arg_pack(&param, kDLCUDA, &text, &slot, &device)); /* the host's text means nothing to a GPU */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_fit_exactly_or_are_refused),
        cmocka_unit_test(a_nan_stays_a_nan),
        cmocka_unit_test(a_struct_must_have_exactly_its_size),
        cmocka_unit_test(a_tensor_gives_address_and_device),
        cmocka_unit_test(a_tensor_that_does_not_suit_is_refused),
        cmocka_unit_test(raw_addresses_and_none_are_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
