/* ATen/ATen.h — host code's; empty for device code. */
#ifndef JITNEY_DEVICE_ATEN_ATEN_H
#define JITNEY_DEVICE_ATEN_ATEN_H
#endif
