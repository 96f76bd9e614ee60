/* device_launch_parameters.h — NVRTC knows the built-in names itself; the toolkit's header is used where there is one. */
#ifndef JITNEY_DEVICE_DEVICE_LAUNCH_PARAMETERS_H
#define JITNEY_DEVICE_DEVICE_LAUNCH_PARAMETERS_H
#endif
