/* register.h — what a compiled op's jtn_ext_init defines, collected into a module. Inside call/ only. */
#ifndef JTN_CALL_REGISTER_H
#define JTN_CALL_REGISTER_H

#include "call/module.h"

/* Appends a function; the module owns it. */
jtn_status jtn__module_append(jtn_module *module, jtn_function *fn);
/* Runs the object's jtn_ext_init, if it has one. Functions, values and doc go into the module. */
jtn_status jtn__module_register(jtn_module *module, void *handle);
void jtn__op_free(jtn_op *op);
/* Deep copy of a value that a definition gave (strings and lists); freed with jtn__value_deinit. */
jtn_status jtn__value_copy(const jtn_value *from, jtn_value *to);
void jtn__value_deinit(jtn_value *value);
/* The table's functions that register. */
int jtn__register_function(void *registrar, const jtn_function_def *def);
int jtn__register_value(void *registrar, const char *name, const jtn_value *value);
void jtn__register_doc(void *registrar, const char *doc);

#endif
