/* math.h — nothing to add for device code: NVRTC declares the functions itself. */
#ifndef JITNEY_DEVICE_MATH_H
#define JITNEY_DEVICE_MATH_H
#endif
