/* The typed part of precond_loops.c (each_real.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* The inner loops run over neighbouring rows, so they vectorize; the sum of each row keeps its
 * order. */
static void TYPED(blocks)(const struct precond_blocks *b, const void *from, void *to, int64_t begin, int64_t end)
{
    const T *r = from;
    T *z = to;
    const int n = b->block;
    for (int64_t block = begin; block < end; block++) {
        const int64_t row = block * n;
        const int rows = (int)min_i64(n, b->rows - row);
        const T *inverse = (const T *)b->inverse + row * n;
        T sum[64] = {0};
        for (int j = 0; j < rows; j++)
            for (int i = 0; i < n; i++)
                sum[i] += inverse[j * n + i] * r[row + j];
        for (int i = 0; i < rows; i++)
            z[row + i] = sum[i];
    }
}

static void TYPED(step)(const struct precond_step *s, int64_t begin, int64_t end)
{
    const T *inverse = s->inverse, *residual = s->residual;
    const T before = (T)s->before, factor = (T)s->factor;
    T *d = s->d, *z = s->z;
    const int k = s->columns;
    if (k > 1)
        for (int64_t i = begin; i < end; i++) {
            const T *r = residual + i * k, by = inverse[i];
            T *restrict di = d + i * k, *restrict zi = z + i * k;
            for (int v = 0; v < k; v++) {
                const T added = factor * (by * r[v]);
                di[v] = s->first ? added : before * di[v] + added;
                zi[v] = s->first ? di[v] : zi[v] + di[v];
            }
        }
    else if (s->first)
        for (int64_t i = begin; i < end; i++)
            z[i] = d[i] = factor * (inverse[i] * residual[i]);
    else
        for (int64_t i = begin; i < end; i++) {
            d[i] = before * d[i] + factor * (inverse[i] * residual[i]);
            z[i] += d[i];
        }
}

static void TYPED(triangle)(const struct precond_triangle *t, const void *from, void *to, int64_t begin, int64_t end)
{
    const T *in = from, *val = t->val, *inverse = t->inverse;
    T *out = to;
    for (int64_t p = begin; p < end; p++) {
        T sum = in[t->row[p]];
        for (int64_t k = t->ptr[p]; k < t->ptr[p + 1]; k++)
            sum -= val[k] * out[t->col[k]];
        out[t->row[p]] = sum * inverse[p];
    }
}
