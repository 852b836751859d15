/* The typed part of blas1_omp.c, included once per real type (each_real.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

static void TYPED(divide)(void *state, int64_t tile)
{
    const struct vectors *v = state;
    const struct range r = tile_range(tile, v->n);
    const T *a = v->x, *b = v->y;
    T *out = v->out;
    for (int64_t i = r.begin; i < r.end; i++)
        out[i] = a[i] / b[i];
}

/* A missing scalar is 1. */
static T TYPED(scalar)(const void *scalar)
{
    return scalar != NULL ? *(const T *)scalar : 1;
}

static void TYPED(axpby)(void *state, int64_t tile)
{
    const struct vectors *v = state;
    const struct range r = tile_range(tile, v->n);
    const T alpha = TYPED(scalar)(v->alpha), beta = TYPED(scalar)(v->beta), *x = v->x;
    T *y = v->out;
    for (int64_t i = r.begin; i < r.end; i++)
        y[i] = alpha * x[i] + beta * y[i];
}

/* Eight independent sums hide the latency of the additions; element i is added to sum i mod 8. */
static void TYPED(dot)(void *state, int64_t tile)
{
    const struct vectors *v = state;
    const struct range r = tile_range(tile, v->n);
    const T *x = v->x, *y = v->y;
    T s[8] = {0};
    int64_t i = r.begin;
    for (; i + 8 <= r.end; i += 8)
        for (int j = 0; j < 8; j++)
            s[j] += x[i + j] * y[i + j];
    for (int j = 0; i + j < r.end; j++)
        s[j] += x[i + j] * y[i + j];
    ((T *)v->out)[tile] = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

static void TYPED(sum_up)(const void *sums, int64_t n, void *out)
{
    T total = 0;
    for (int64_t i = 0; i < n; i++)
        total += ((const T *)sums)[i];
    *(T *)out = total;
}
