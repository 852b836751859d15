/* Sums in twice the precision of double, for the host and for kernels: dot products by error-free sums and products.
 *
 * Neither compiler may contract products and sums (the build says so), and fma rounds once.
 *
 * Source: T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26, 2005 (Dot2).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIDE_ROW_H
#define WIDE_ROW_H

#include <math.h>

#include "core/host_device_fn.h"

/* The sum is high + low. */
struct wide_sum {
    double high, low;
};

HOST_DEVICE_FN void wide_add(struct wide_sum *sum, double number)
{
    const double high = sum->high + number, part = high - sum->high;
    sum->low += (sum->high - (high - part)) + (number - part);
    sum->high = high;
}

HOST_DEVICE_FN void wide_add_product(struct wide_sum *sum, double a, double x)
{
    const double product = a * x;
    sum->low += fma(a, x, -product);
    wide_add(sum, product);
}

HOST_DEVICE_FN double wide_value(struct wide_sum sum)
{
    return sum.high + sum.low;
}

#endif
