/* load.h — from a unit to a module. */
#ifndef JTN_LOAD_H
#define JTN_LOAD_H

#include "compile/diagnostic.h"
#include "runtime.h"

jtn_status jtn__load(jtn_runtime *rt, const jtn_unit *unit, jtn_module **out);
jtn_status jtn__load_file(jtn_runtime *rt, const char *path, jtn_module **out);
/* 1 when the sources and the user's headers are as they were. */
int jtn__load_fresh(jtn_module *module);
/* What the compilers found in this thread's last load that built something, or failed to. */
const jtn_findings *jtn__load_findings(void);

#endif
