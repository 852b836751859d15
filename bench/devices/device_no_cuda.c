/* GPUs as devices in a build without CUDA: there are none.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "bench/devices/device.h"

int device_open_cuda(int number, struct device *device, char *why)
{
    (void)number;
    *device = (struct device){0};
    snprintf(why, WHY_SIZE, "no GPU: this build has no CUDA");
    return -1;
}
