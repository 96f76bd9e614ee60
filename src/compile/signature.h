/* signature.h — parameter types as the compilers tell them.
 *
 * Kernels: the text gets a probe template, and NVRTC's lowered name of &jtn_sig<…decltype(&k)…> spells the parameter list; the probe
 * maps enums to their underlying type and structs to jtn_struct<size, align, S>, so that the name says all a call needs.
 * Plain C: a prototype in text. */
#ifndef JTN_COMPILE_SIGNATURE_H
#define JTN_COMPILE_SIGNATURE_H

#include "model/type.h"

extern const char jtn__signature_probe[]; /* device text to append after the user's, one line ("#line" keeps errors apart) */
/* The name expression that asks for kernel k's types. Fresh memory. */
char *jtn__signature_expression(const char *kernel);
/* The lowered name of that expression → parameters (named arg0, arg1, …). UNSUPPORTED for a type that cannot be read. */
jtn_status jtn__signature_parse(const char *lowered, jtn_param **params, size_t *count);
/* The parameters out of a kernel's own mangled name ("_Z4axpyfPKfPfi"), for overloads and macros' kernels: sizes of classes are
 * unknown there → UNSUPPORTED. extern "C" names carry none → UNSUPPORTED. */
jtn_status jtn__signature_of_mangled(const char *mangled, char **name, jtn_param **params, size_t *count);
/* Only the qualified name out of a mangled function name: "ns::k" of "_ZN2ns1kEPf". UNSUPPORTED for templates and what is not mangled. */
jtn_status jtn__mangled_name(const char *mangled, char **name);
/* "float dot(const float *a, const float *b, int n)" → name, return type, parameters. Types: the C scalars in all their spellings,
 * stdint's, size_t, bool, pointers to them, to void, to char (a string), to pointers. ARGUMENT names what was not understood, with
 * a caret. */
jtn_status jtn__prototype_parse(const char *text, char **name, jtn_type *returns, jtn_param **params, size_t *count);

#endif
