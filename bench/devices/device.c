/* Functions common to all devices; and stubs for a build without CUDA.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/devices/device.h"

#include <stdio.h>

void device_close(struct device *device)
{
    if (device->functions != NULL)
        device->functions->close(device);
    *device = (struct device){0};
}

#ifndef SPMV_HAVE_CUDA
int device_open_cuda(int number, struct device *device, char *why)
{
    (void)number;
    *device = (struct device){0};
    snprintf(why, WHY_SIZE, "no GPU: this build has no CUDA");
    return -1;
}
#endif
