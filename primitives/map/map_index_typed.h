/* The part of map_loops.c that is included once per type (each_type.h): first + i step. Tuples have
 * no step; the array is filled with first.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static void TYPED(index)(const void *first, const void *step, void *out, int64_t begin, int64_t end)
{
    const T a = *(const T *)first;
    T *y = out;
#if IS_TUPLE
    (void)step;
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        y[i] = a;
#else
    const T b = step != NULL ? *(const T *)step : TYPED(identity_add)();
#pragma omp simd
    for (int64_t i = begin; i < end; i++)
        y[i] = TYPED(op_add)(a, TYPED(op_mul)((T)i, b));
#endif
}
