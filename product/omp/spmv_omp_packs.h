/* The vectorized part of spmv_omp_columns.h, included once for each vector of the processor, of
 * PACK_PARTS real parts. PACKED(name): the name with the vector and the types in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* GCC and Clang support it on every machine. */
typedef PART PACKED(pack) __attribute__((vector_size(PACK_PARTS * sizeof(PART))));
enum { PACKED(COLUMNS) = sizeof(PACKED(pack)) / sizeof(T) };

/* Adds the term of entry k for the columns of a pack. A complex value a + bi times two numbers z,
 * w, stored as (z.re, z.im, w.re, w.im), is a (z.re, z.im, w.re, w.im) + (-b, b, -b, b) (z.im,
 * z.re, w.im, w.re), with the bits of times. */
static ALWAYS_INLINE void PACKED(add)(PACKED(pack) * sum, bool pattern, const STORED *val, int64_t k, const T *x)
{
    PACKED(pack) row;
    memcpy(&row, x, sizeof row);
#if IS_COMPLEX
    if (!pattern) {
        const PACKED(pack) swapped = {row[1], row[0], row[3], row[2]};
        const PACKED(pack) signs = {-val[k].im, val[k].im, -val[k].im, val[k].im};
        row = val[k].re * row + signs * swapped;
    }
    *sum += row;
#else
    *sum += pattern ? row : (T)val[k] * row;
#endif
}

/* sums[v] = the sum of entries begin ... end - 1 for the columns v of x in the first packs. The
 * number of packs is a constant after inlining. Each column is summed in the order of SERIAL and
 * LANES. */
static ALWAYS_INLINE void PACKED(sum_packs)(const struct TYPED(source) * source, bool pattern, const T *x,
                                            int64_t begin, int64_t end, int packs, T *sums)
{
    const STORED *val = source->val;
    const int32_t *col = source->col;
    const int64_t stride = source->x_stride, last = source->a->nnz - 1;
    if (end - begin <= SERIAL) {
        PACKED(pack) sum[MOST_COLUMNS / PACKED(COLUMNS)] = {{0}};
        for (int64_t k = begin; k < end; k++) {
            if (packs >= 2)
                prefetch_row(x + col[k + AHEAD < last ? k + AHEAD : last] * stride, (size_t)packs * sizeof *sum);
            for (int p = 0; p < packs; p++)
                PACKED(add)(&sum[p], pattern, val, k, x + col[k] * stride + p * PACKED(COLUMNS));
        }
        for (int p = 0; p < packs; p++)
            memcpy(sums + p * PACKED(COLUMNS), &sum[p], sizeof *sum);
        return;
    }
    for (int p = 0; p < packs; p++) {
        const T *from = x + p * PACKED(COLUMNS);
        PACKED(pack) s[LANES] = {{0}}, rest = {0};
        int64_t k = begin;
        for (; k + LANES <= end; k += LANES)
            for (int i = 0; i < LANES; i++)
                PACKED(add)(&s[i], pattern, val, k + i, from + col[k + i] * stride);
        for (; k < end; k++)
            PACKED(add)(&rest, pattern, val, k, from + col[k] * stride);
        rest = (((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))) + rest;
        memcpy(sums + p * PACKED(COLUMNS), &rest, sizeof rest);
    }
}
