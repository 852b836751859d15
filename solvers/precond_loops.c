/* The loops of preconditioners on the host.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "precond_loops.h"

#include "host_tiles.h"

/* The inner loops run over neighbouring rows, so they vectorize; the sum of each row keeps its
 * order. */
#define BLOCKS(T, name)                                                                                                \
    static void blocks_##name(const struct precond_blocks *b, const T *r, T *z, int64_t begin, int64_t end)            \
    {                                                                                                                  \
        const int n = b->block;                                                                                        \
        for (int64_t block = begin; block < end; block++) {                                                            \
            const int64_t row = block * n;                                                                             \
            const int rows = (int)min_i64(n, b->rows - row);                                                           \
            const T *inverse = (const T *)b->inverse + row * n;                                                        \
            T sum[64] = {0};                                                                                           \
            for (int j = 0; j < rows; j++)                                                                             \
                for (int i = 0; i < n; i++)                                                                            \
                    sum[i] += inverse[j * n + i] * r[row + j];                                                         \
            for (int i = 0; i < rows; i++)                                                                             \
                z[row + i] = sum[i];                                                                                   \
        }                                                                                                              \
    }

#define STEP(T, name)                                                                                                  \
    static void step_##name(const struct precond_step *s, int64_t begin, int64_t end)                                  \
    {                                                                                                                  \
        const T *inverse = s->inverse, *residual = s->residual;                                                        \
        const T before = (T)s->before, factor = (T)s->factor;                                                          \
        T *d = s->d, *z = s->z;                                                                                        \
        if (s->first)                                                                                                  \
            for (int64_t i = begin; i < end; i++)                                                                      \
                z[i] = d[i] = factor * (inverse[i] * residual[i]);                                                     \
        else                                                                                                           \
            for (int64_t i = begin; i < end; i++) {                                                                    \
                d[i] = before * d[i] + factor * (inverse[i] * residual[i]);                                            \
                z[i] += d[i];                                                                                          \
            }                                                                                                          \
    }

#define TRIANGLE(T, name)                                                                                              \
    static void triangle_##name(const struct precond_triangle *t, const T *in, T *out, int64_t begin, int64_t end)     \
    {                                                                                                                  \
        const T *val = t->val, *inverse = t->inverse;                                                                  \
        for (int64_t p = begin; p < end; p++) {                                                                        \
            T sum = in[t->row[p]];                                                                                     \
            for (int64_t k = t->ptr[p]; k < t->ptr[p + 1]; k++)                                                        \
                sum -= val[k] * out[t->col[k]];                                                                        \
            out[t->row[p]] = sum * inverse[p];                                                                         \
        }                                                                                                              \
    }

BLOCKS(double, f64)
BLOCKS(float, f32)
STEP(double, f64)
STEP(float, f32)
TRIANGLE(double, f64)
TRIANGLE(float, f32)

void precond_blocks_loop(spmv_type type, const struct precond_blocks *blocks, const void *r, void *z, int64_t begin,
                         int64_t end)
{
    if (type == SPMV_F64)
        blocks_f64(blocks, r, z, begin, end);
    else
        blocks_f32(blocks, r, z, begin, end);
}

void precond_step_loop(spmv_type type, const struct precond_step *step, int64_t begin, int64_t end)
{
    if (type == SPMV_F64)
        step_f64(step, begin, end);
    else
        step_f32(step, begin, end);
}

struct rows_of_step {
    spmv_type type;
    int64_t n;
    const struct precond_step *step;
};

static void step_tile(void *state, int64_t tile)
{
    const struct rows_of_step *s = state;
    const struct range range = tile_range(tile, s->n);
    precond_step_loop(s->type, s->step, range.begin, range.end);
}

spmv_status precond_smooth_step(spmv_context *ctx, spmv_type type, const struct precond_step *step, int64_t n)
{
#ifdef SPMV_HAVE_CUDA
    if (ctx->backend->id == SPMV_BACKEND_CUDA)
        return precond_step_cuda(ctx, type, step, n);
#endif
    struct rows_of_step state = {type, n, step};
    tiles_each(ctx, tiles_of(n), step_tile, &state);
    return SPMV_OK;
}

void precond_triangle_loop(spmv_type type, const struct precond_triangle *triangle, const void *in, void *out,
                           int64_t begin, int64_t end)
{
    if (type == SPMV_F64)
        triangle_f64(triangle, in, out, begin, end);
    else
        triangle_f32(triangle, in, out, begin, end);
}
