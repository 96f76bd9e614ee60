/* package.h — an importable shared object for a module that has no host code. */
#ifndef JTN_COMPILE_PACKAGE_H
#define JTN_COMPILE_PACKAGE_H

#include "base/buf.h"

/* Jitney's prebuilt stub (data_dir/stub.so) with its placeholder renamed PyInit_<name>. No compiler is started.
 * TOOL when the stub is not there, INTERNAL when it is not as the build made it. */
jtn_status jtn__package_stub(const char *data_dir, const char *name, jtn_buf *out);

#endif
