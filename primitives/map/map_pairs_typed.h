/* The part of map_loops.c that is included once per pair of operator and type (each_pair.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static void TYPED(binary)(const void *a, const void *b, void *out, int64_t begin, int64_t end)
{
    const T *x = a, *y = b;
    T *z = out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        z[i] = TYPED(op)(x[i], y[i]);
}

static void TYPED(scalar)(const void *scalar, const void *in, void *out, int64_t begin, int64_t end)
{
    const T s = *(const T *)scalar, *x = in;
    T *y = out;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        y[i] = TYPED(op)(s, x[i]);
}
