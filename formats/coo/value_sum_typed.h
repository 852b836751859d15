/* The sum of two values of one type (each_value.h); integers wrap around.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static inline T TYPED(sum)(T a, T b)
{
#if IS_COMPLEX
    return (T){a.re + b.re, a.im + b.im};
#else
    return TYPED(op_add)(a, b);
#endif
}
