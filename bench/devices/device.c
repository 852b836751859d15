/* Functions common to all devices.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/devices/device.h"

void device_close(struct device *device)
{
    if (device->functions != NULL)
        device->functions->close(device);
    *device = (struct device){0};
}
