/* Sampled products and the parts of a softmax on a CPU, included once for each real type (sddmm.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* The definition, in long double. */
static T TYPED(exact)(const T *a, const T *b, int k, T value)
{
    long double sum = 0;
    for (int c = 0; c < k; c++)
        sum += (long double)a[c] * (long double)b[c];
    return (T)(sum * (long double)value);
}

static inline T TYPED(sampled)(const T *a, const T *b, int k, T value)
{
    T sum[SDDMM_SUMS] = {0};
    int c = 0;
    for (; c + SDDMM_SUMS <= k; c += SDDMM_SUMS)
        for (int s = 0; s < SDDMM_SUMS; s++)
            sum[s] += a[c + s] * b[c + s];
    for (int s = 0; c + s < k; s++)
        sum[s] += a[c + s] * b[c + s];
    for (int half = SDDMM_SUMS / 2; half > 0; half /= 2)
        for (int s = 0; s < half; s++)
            sum[s] += sum[s + half];
    return value * sum[0];
}

/* Entries begin ... end - 1, the first in row `row`. */
static void TYPED(apply)(const struct host_job *j, int64_t row, int64_t begin, int64_t end)
{
    const spmv_sddmm *const s = j->sddmm;
    const spmv_csr *const p = &s->p;
    const T *const a = j->a, *const b = j->b, *const val = p->val;
    T *const y = j->y;
    for (int64_t e = begin; e < end; e++) {
        while (e >= offset_at(p->row_ptr, p->row_ptr_bits, row + 1))
            row++;
        const T *const mine = a + row * s->a_stride, *const other = b + p->col[e] * s->b_stride;
        const T value = val != NULL ? val[e] : 1;
        y[e] = j->exact ? TYPED(exact)(mine, other, s->vectors, value) : TYPED(sampled)(mine, other, s->vectors, value);
    }
}

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
    const T *const sums = j->sddmm->sums;
    T *const y = j->y;
    for (int64_t e = begin; e < end; e++) {
        while (e >= offset_at(p->row_ptr, p->row_ptr_bits, row + 1))
            row++;
        y[e] /= sums[row];
    }
}
