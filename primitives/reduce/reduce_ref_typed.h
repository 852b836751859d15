/* The typed part of reduce_ref.c, included once per pair of operator and type (each_pair.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static void TYPED(reduce)(const void *in, void *out, int64_t n)
{
    T all = ((const T *)in)[0];
    for (int64_t i = 1; i < n; i++)
        all = TYPED(op)(all, ((const T *)in)[i]);
    *(T *)out = all;
}
