/* launch.h — arguments against the signature, packing, grid rules, launch. Hot: no lock, no allocation, no text on the good path. */
#ifndef JTN_CALL_LAUNCH_H
#define JTN_CALL_LAUNCH_H

#include "call/module.h"

#define JTN_MAX_PARAMS 64   /* kernels with more are refused at load, clearly */
#define JTN_MAX_PARAM_BYTES 4096

/* Converts one value to what the parameter takes, into slot (type.size bytes). device: in/out, -1 until a tensor fixed it; a tensor
 * elsewhere is refused. Checks: scalar kinds and ranges (a float for an integer is refused unless integral, an int for a float is
 * fine, overflow is an error); tensor dtype against the pointee, device type, contiguity (a non-contiguous tensor is refused: pass
 * its address when the kernel knows the strides), read-only tensors for non-const pointers. Returns false without a message: call
 * jtn__arg_explain for it. */
bool jtn__arg_pack(const jtn_param *param, int dl_device_type, const jtn_value *value, void *slot, int *device);
/* The cold half: the message for the first argument that does not fit, or for a wrong count. Always returns ERROR_ARGUMENT. */
jtn_status jtn__arg_explain(const jtn_function *fn, int dl_device_type, const jtn_value *args, size_t count);

jtn_status jtn__launch(jtn_function *fn, const jtn_launch_config *config, const jtn_value *args, size_t count);
/* For callers that packed already: params[i] → value i; config complete. */
jtn_status jtn__launch_packed(jtn_function *fn, const jtn_launch_config *config, void **params);

/* Plain C functions, by libffi: the call interface is made once and kept in fn->cif. */
jtn_status jtn__ffi_prepare(jtn_function *fn);
void jtn__ffi_release(jtn_function *fn);
jtn_status jtn__ffi_call(jtn_function *fn, const jtn_value *args, size_t count, jtn_value *result);
/* Ops from C: checks and converts args against the first overload that fits, makes tensors of DLTensors. */
jtn_status jtn__op_call(jtn_function *fn, const jtn_value *args, size_t count, jtn_value *result);
/* One overload, the values complete and accepted: for the bridge. ERROR_CALL when the op failed (see jtn__call_raise). */
jtn_status jtn__op_run(const jtn_op *op, jtn_call_arena *arena, const jtn_value *args, jtn_value *result);
/* Does this value suit this type? The range checks of the op types live here, for C and for the bridge. */
bool jtn__op_accepts(const jtn_op_type *type, const jtn_value *value);

/* A value as Python writes it, for signatures and messages: "3.0", "'text'", "[1, 2]". */
void jtn__value_put(jtn_buf *out, const jtn_value *value);
/* "a float64 tensor of shape (3, 4) on cuda:0", "the int 7", "None": what an argument is, for messages. */
void jtn__value_describe(jtn_buf *out, const jtn_value *value);

#endif
