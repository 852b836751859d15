/* The typed part of filter.c, included once per pair of predicate and type (each_predicate.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static void TYPED(flags)(const void *in, const void *scalar, bool when, int64_t begin, int64_t end, uint8_t *flags)
{
    const T *const x = in, s = *(const T *)scalar;
    for (int64_t i = begin; i < end; i++)
        flags[i - begin] = TYPED(predicate)(x[i], s) == when;
}
