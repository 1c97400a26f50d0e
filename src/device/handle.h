/* handle.h - a device's named memory, as device.c ends it. */
#ifndef COHI_DEVICE_HANDLE_H
#define COHI_DEVICE_HANDLE_H

#include "device/device.h"

/* How many of the device's holders are the memories of handles that nobody has open. */
uint64_t cohi_handles_held(coh_device *device);

/* Frees all. COH_BUSY, with none freed, when one lies in a symmetric heap. */
coh_status cohi_handles_free(coh_device *device, const char *call);

#endif
