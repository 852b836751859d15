/* Sampled products and the parts of a softmax on a CPU, included once for each type (each_sddmm_type.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* The definition, in long double, rounded once. */
static ELEMENT TYPED(exact)(const ELEMENT *a, const ELEMENT *b, int k, T value)
{
    long double sum = 0;
    for (int c = 0; c < k; c++)
        sum += (long double)WIDENED(a[c]) * (long double)WIDENED(b[c]);
    return ROUNDED_ONCE(sum * (long double)value);
}

/* number[i] + number[i + 1], which become number[i / 2], for even i < n. */
static inline void TYPED(add_pairs)(T *number, int n)
{
    for (int i = 0; i < n / 2; i++)
        number[i] = number[2 * i] + number[2 * i + 1];
}

/* The order of sddmm_internal.h. */
static inline ELEMENT TYPED(sampled)(const ELEMENT *a, const ELEMENT *b, int k, T value)
{
    enum { ROW = SDDMM_BYTES / sizeof(ELEMENT), PACK = SDDMM_PACK / sizeof(ELEMENT), PACKS = SDDMM_BYTES / SDDMM_PACK };
    T sum[PACKS] = {0}, product[ROW];
    int packs = 1; /* a power of two: the packs of a block of columns; all others have 0 */
    while (packs < PACKS && packs * PACK < k)
        packs *= 2;
    for (int begin = 0; begin < k; begin += ROW) {
        const int n = k - begin < ROW ? k - begin : ROW;
        for (int c = 0; c < n; c++)
            product[c] = WIDENED(a[begin + c]) * WIDENED(b[begin + c]);
        for (int c = n; c < packs * PACK; c++)
            product[c] = 0;
        for (int of = packs * PACK; of > packs; of /= 2)
            TYPED(add_pairs)(product, of);
        for (int p = 0; p < packs; p++)
            sum[p] += product[p];
    }
    for (; packs > 1; packs /= 2)
        TYPED(add_pairs)(sum, packs);
    return ROUNDED(value * sum[0]);
}

/* Entries begin ... end - 1, the first in row `row`. */
static void TYPED(apply)(const struct host_job *j, int64_t row, int64_t begin, int64_t end)
{
    const spmv_sddmm *const s = j->sddmm;
    const spmv_csr *const p = &s->p;
    const ELEMENT *const a = j->a, *const b = j->b, *const val = p->val;
    ELEMENT *const y = j->y;
    for (int64_t e = begin; e < end; e++) {
        while (e >= offset_at(p->row_ptr, p->row_ptr_bits, row + 1))
            row++;
        const ELEMENT *const mine = a + row * s->a_stride, *const other = b + p->col[e] * s->b_stride;
        const T value = val != NULL ? WIDENED(val[e]) : 1;
        y[e] = j->exact ? TYPED(exact)(mine, other, s->vectors, value) : TYPED(sampled)(mine, other, s->vectors, value);
    }
}

#ifdef IS_HALF
static void TYPED(widened)(const struct host_job *j, int64_t row, int64_t begin, int64_t end)
{
    const ELEMENT *const x = j->a;
    T *const to = j->y;
    (void)row;
    for (int64_t e = begin; e < end; e++)
        to[e] = WIDENED(x[e]);
}
#endif

static void TYPED(exponentials)(const struct host_job *j, int64_t row, int64_t begin, int64_t end)
{
    const spmv_csr *const p = &j->sddmm->p;
    const T *const x = j->a, *const largest = j->sddmm->largest;
    T *const y = j->y;
    for (int64_t e = begin; e < end; e++) {
        while (e >= offset_at(p->row_ptr, p->row_ptr_bits, row + 1))
            row++;
        y[e] = EXP(x[e] - largest[row]);
    }
}

static void TYPED(quotients)(const struct host_job *j, int64_t row, int64_t begin, int64_t end)
{
    const spmv_csr *const p = &j->sddmm->p;
    const T *const x = j->a, *const sums = j->sddmm->sums;
    ELEMENT *const y = j->y;
    for (int64_t e = begin; e < end; e++) {
        while (e >= offset_at(p->row_ptr, p->row_ptr_bits, row + 1))
            row++;
        y[e] = ROUNDED(x[e] / sums[row]);
    }
}
