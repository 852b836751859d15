/* The typed part of blas1_omp.c, included once a type with VALUE (the C type) and TYPED(name) (name with the type's
 * suffix).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

static void TYPED(divide)(void *state, int64_t tile)
{
    const struct vectors *v = state;
    const struct range r = tile_range(tile, v->n);
    const VALUE *a = v->x, *b = v->y;
    VALUE *out = v->out;
    for (int64_t i = r.begin; i < r.end; i++)
        out[i] = a[i] / b[i];
}

/* A missing scalar is 1. */
static VALUE TYPED(scalar)(const void *scalar)
{
    return scalar != NULL ? *(const VALUE *)scalar : 1;
}

static void TYPED(axpby)(void *state, int64_t tile)
{
    const struct vectors *v = state;
    const struct range r = tile_range(tile, v->n);
    const VALUE alpha = TYPED(scalar)(v->alpha), beta = TYPED(scalar)(v->beta), *x = v->x;
    VALUE *y = v->out;
    for (int64_t i = r.begin; i < r.end; i++)
        y[i] = alpha * x[i] + beta * y[i];
}

/* Eight sums side by side hide the latency of the additions; element i goes into sum i mod 8. */
static void TYPED(dot)(void *state, int64_t tile)
{
    const struct vectors *v = state;
    const struct range r = tile_range(tile, v->n);
    const VALUE *x = v->x, *y = v->y;
    VALUE s[8] = {0};
    int64_t i = r.begin;
    for (; i + 8 <= r.end; i += 8)
        for (int j = 0; j < 8; j++)
            s[j] += x[i + j] * y[i + j];
    for (int j = 0; i + j < r.end; j++)
        s[j] += x[i + j] * y[i + j];
    ((VALUE *)v->out)[tile] = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

static void TYPED(sum_up)(const VALUE *sums, int64_t n, VALUE *out)
{
    VALUE total = 0;
    for (int64_t i = 0; i < n; i++)
        total += sums[i];
    *out = total;
}
