/* stddef.h — size_t and kin, for device code; NVRTC knows size_t itself. */
#ifndef JITNEY_DEVICE_STDDEF_H
#define JITNEY_DEVICE_STDDEF_H
typedef long ptrdiff_t;
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#endif
