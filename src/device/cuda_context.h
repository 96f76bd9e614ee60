/* cuda_context.h — devices, contexts and what poisons them, for the target cuda. Inside device/ only. */
#ifndef JTN_DEVICE_CUDA_CONTEXT_H
#define JTN_DEVICE_CUDA_CONTEXT_H

#include <stdbool.h>

#include "device/driver.h"

#define JTN_MAX_DEVICES 64

int jtn__cuda_device_count(void);
int jtn__cuda_current_device(void);
bool jtn__cuda_is_active(void);
jtn_status jtn__cuda_arch(int device, char out[16]);
jtn_status jtn__cuda_check_device(const jtn_driver *cu, int device);
/* Makes the device's primary context current. *pushed: leave must take it off again. */
jtn_status jtn__cuda_enter(const jtn_driver *cu, int device, bool *pushed);
void jtn__cuda_leave(const jtn_driver *cu, bool pushed);

/* Whether CUDA says the process cannot use the device any more after this error. */
bool jtn__cuda_is_sticky(CUresult error);
/* The failure for such an error: names the last kernel launched there, marks the device dead. */
jtn_status jtn__cuda_poison(int device, CUresult error);
jtn_status jtn__cuda_check_alive(int device);
/* The kernel to be named when an error comes to light later. The name must live until it is forgotten. */
void jtn__cuda_launched(int device, const char *kernel);
void jtn__cuda_forget(const char *kernel);

#endif
