/* stdlib.h — nothing to add for device code: NVRTC declares the functions itself. */
#ifndef JITNEY_DEVICE_STDLIB_H
#define JITNEY_DEVICE_STDLIB_H
#endif
