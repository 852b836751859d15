/* sqrt(a a + b b), which is also the modulus of a + i b. No square overflows or underflows. The relative
 * error is at most 2^-52. It has the same bits on every processor; hypot of the C libraries and of CUDA
 * has not.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HYPOT_H
#define HYPOT_H

#include <math.h>

#include "core/host_device_fn.h"

HOST_DEVICE_FN double real_hypot(double a, double b)
{
    const double large = fabs(a) > fabs(b) ? fabs(a) : fabs(b);
    /* powers of two: they scale without rounding. 0x1p500 is far enough from both ends for a square. */
    const double scale = large > 0x1p500 ? 0x1p-600 : large < 0x1p-500 ? 0x1p600 : 1;
    const double back = large > 0x1p500 ? 0x1p600 : large < 0x1p-500 ? 0x1p-600 : 1;
    a *= scale;
    b *= scale;
    return sqrt(a * a + b * b) * back;
}

#endif
