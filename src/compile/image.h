/* image.h — which kernels a device image really holds, read off the image itself. */
#ifndef JTN_COMPILE_IMAGE_H
#define JTN_COMPILE_IMAGE_H

#include "base/buf.h"

/* The symbols of the entry points of a cubin (ELF) or PTX text, in its order. A damaged image gives what was read. */
jtn_status jtn__image_entries(const char *image, size_t size, jtn_list *out);

#endif
