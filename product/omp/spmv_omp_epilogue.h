/* The epilogue of a product's rows (spmv_apply_with), included once for each type: VALUE, PLUS(a,
 * b), SCALE(a, b), CONJUGATE(a), ZERO, and TYPED(name).
 *
 * It runs right after a tile, while the tile's own rows of y are in the first-level cache. Row i of
 * the n rows is added to sum i mod 8. Each tile gives one number, and join adds these in tile
 * order, so the bits of a dot product depend on the tiles alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* For rows first ... last - 1, whose elements of y are at own: z_i = z_i + gamma y_i, and the sum
 * of conj(w_i) y_i, or 0 if no dot product is requested. */
static ALWAYS_INLINE VALUE TYPED(epilogue)(const spmv_epilogue *e, const VALUE *y, const VALUE *own, int64_t first,
                                           int64_t last)
{
    enum { SUMS = 8 };
    const int64_t n = last - first;
    VALUE s[SUMS] = {ZERO};
    int64_t i = 0;
    if (e->z != NULL) {
        VALUE *restrict z = (VALUE *)e->z + first;
        const VALUE *gamma = e->gamma;
        if (gamma == NULL) {
            for (int64_t k = 0; k < n; k++)
                z[k] = PLUS(z[k], own[k]);
        } else {
            const VALUE factor = *gamma;
            for (int64_t k = 0; k < n; k++)
                z[k] = PLUS(z[k], SCALE(factor, own[k]));
        }
    }
    if (e->w == NULL)
        return s[0];
    /* Do not read back from y what streaming stores have written. */
    const VALUE *w = e->w == y ? own : (const VALUE *)e->w + first;
    for (; i + SUMS <= n; i += SUMS)
        for (int j = 0; j < SUMS; j++)
            s[j] = PLUS(s[j], SCALE(CONJUGATE(w[i + j]), own[i + j]));
    for (int j = 0; i + j < n; j++)
        s[j] = PLUS(s[j], SCALE(CONJUGATE(w[i + j]), own[i + j]));
    return PLUS(PLUS(PLUS(s[0], s[4]), PLUS(s[2], s[6])), PLUS(PLUS(s[1], s[5]), PLUS(s[3], s[7])));
}
