/* The vectorized part of spmv_omp_columns.h, included once for each vector type: PACK_TYPE, the
 * vector of the processor; PACK_COLUMNS, the values it holds; PACKED(name), the name with this
 * vector and the types in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* sums[v] = the sum of entries begin ... end - 1 for the first packs * PACK_COLUMNS columns of x.
 * packs is a constant after inlining. Each column is summed in the order of spmv_omp_typed.h. */
static ALWAYS_INLINE void PACKED(sum_packs)(const struct TYPED(columns) * c, bool pattern, const VALUE *x,
                                            int64_t begin, int64_t end, int packs, VALUE *sums)
{
    const STORED *val = c->a->val;
    const int32_t *col = c->a->col;
    const int64_t stride = c->x_stride, last = c->a->nnz - 1;
    if (end - begin <= SERIAL) {
        PACK_TYPE sum[MOST_COLUMNS / PACK_COLUMNS] = {{0}};
        for (int64_t k = begin; k < end; k++) {
            if (packs >= 2)
                prefetch_row(x + col[k + AHEAD < last ? k + AHEAD : last] * stride, (size_t)packs * sizeof(PACK_TYPE));
            for (int p = 0; p < packs; p++)
                PACK_TERM(PACK_TYPE, &sum[p], pattern, pattern ? NULL : val + k,
                          x + col[k] * stride + p * PACK_COLUMNS);
        }
        for (int p = 0; p < packs; p++)
            memcpy(sums + p * PACK_COLUMNS, &sum[p], sizeof sum[p]);
        return;
    }
    for (int p = 0; p < packs; p++) {
        const VALUE *from = x + p * PACK_COLUMNS;
        PACK_TYPE s[LANES] = {{0}}, rest = {0};
        int64_t k = begin;
        for (; k + LANES <= end; k += LANES)
            for (int i = 0; i < LANES; i++)
                PACK_TERM(PACK_TYPE, &s[i], pattern, pattern ? NULL : val + k + i, from + col[k + i] * stride);
        for (; k < end; k++)
            PACK_TERM(PACK_TYPE, &rest, pattern, pattern ? NULL : val + k, from + col[k] * stride);
        rest = (((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))) + rest;
        memcpy(sums + p * PACK_COLUMNS, &rest, sizeof rest);
    }
}
