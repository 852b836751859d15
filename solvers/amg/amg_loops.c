/* The steps of algebraic multigrid on ref and omp: one loop over the rows for each step. The inverse
 * of the last level.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/host_tiles.h"
#include "core/reals.h"
#include "solvers/amg/amg_internal.h"

#define TEMPLATE "solvers/amg/amg_rows.h"
#include "core/each/each_real.h"

/* The rows of a tile: a row costs as much as some dozen elements of a vector. */
enum { AMG_TILE = HOST_TILE / 16 };

struct rows_of_step {
    const void *arguments;
    int64_t n, tile;
};

#define LOOP(name, type)                                                                                               \
    static void loop_##name##_##type(void *state, int64_t tile)                                                        \
    {                                                                                                                  \
        const struct rows_of_step *s = state;                                                                          \
        const int64_t end = min_i64(s->n, (tile + 1) * s->tile);                                                       \
        for (int64_t i = tile * s->tile; i < end; i++)                                                                 \
            amg_##name##_##type(s->arguments, i);                                                                      \
    }
#define LOOPS(NAME, name, arguments) LOOP(name, f32) LOOP(name, f64)
AMG_STEP_LIST(LOOPS)

#define LOOP_f32(NAME, name, arguments) loop_##name##_f32,
#define LOOP_f64(NAME, name, arguments) loop_##name##_f64,
#define ROW(NAME, name, T) [SPMV_##NAME] = {AMG_STEP_LIST(LOOP_##name)},
static tile_fn *const loops[SPMV_TYPE_LIMIT][AMG_STEPS] = {REAL_LIST(ROW)};
#undef ROW

spmv_status amg_run(spmv_context *ctx, enum amg_step step, spmv_type type, const void *arguments, int64_t n)
{
    if (n <= 0)
        return SPMV_OK;
    if (context_on_device(ctx))
        return amg_run_cuda(ctx, step, type, arguments, n);
    struct rows_of_step state = {arguments, n, AMG_TILE};
    struct amg_scaling scaling;
    if (step == AMG_NARROW || step == AMG_WIDEN) { /* of elements; the factor once, not for each */
        scaling = *(const struct amg_scaling *)arguments;
        scaling.factor = step == AMG_NARROW ? amg_narrowing(&scaling) : amg_widening(&scaling);
        state.arguments = &scaling;
        state.tile = HOST_TILE;
    }
    tiles_each(ctx, ceil_divide(n, state.tile), loops[type][step], &state);
    return SPMV_OK;
}

spmv_status amg_run_polled(const struct amg *amg, enum amg_step step, const void *arguments, int64_t n)
{
    enum { ENTRIES = 8 }; /* of a row, roughly */
    const spmv_status st = context_poll(amg->ctx, "preconditioner amg", ENTRIES * n);
    return st != SPMV_OK ? st : amg_run(amg->ctx, step, amg->type, arguments, n);
}

/* One step of the inversion; factors has room for n numbers. */
static void sweep(const struct amg_dense *d, int64_t k, double *factors)
{
    const int64_t n = d->n;
    const double *const c = d->column[k % 2];
    double *const next = d->column[(k + 1) % 2], *const w = d->element;
    const struct amg_sweep s = amg_sweep_of(d, c[k], d->own[k]);
    d->pivot[k] = s.ratio;
    for (int64_t i = 0; i < n; i++)
        factors[i] = c[i] * s.factor; /* 0 if the unknown is left out */
    for (int64_t i = 0; i < n; i++) {
        const double of_row = factors[i];
        for (int64_t j = 0; j <= i && s.used && i != k; j++)
            w[i * n + j] -= of_row * factors[j];
    }
    for (int64_t j = 0; j < k; j++)
        w[k * n + j] = factors[j] * s.factor;
    for (int64_t i = k + 1; i < n; i++)
        w[i * n + k] = factors[i] * s.factor;
    w[k * n + k] = s.used ? -(s.factor * s.factor) : 0;
    for (int64_t i = 0; i < n && k + 1 < n; i++)
        next[i] = w[i <= k ? (k + 1) * n + i : i * n + k + 1];
}

/* The same for a matrix that is not symmetric. The loops are those of amg_exchanged. */
static void exchange(const struct amg_dense *d, int64_t k, double *factors)
{
    const int64_t n = d->n;
    double *const w = d->element, *const c = d->column[0];
    double *const row = w + k * n;
    const struct amg_sweep s = amg_sweep_of(d, row[k], d->own[k]);
    d->pivot[k] = s.ratio;
    for (int64_t j = 0; j < n; j++) {
        c[j] = w[j * n + k];
        factors[j] = row[j] * s.factor;
    }
    for (int64_t i = 0; i < n; i++)
        if (i != k) {
            const double of_row = c[i];
            for (int64_t j = 0; j < n; j++)
                w[i * n + j] -= of_row * factors[j];
            w[i * n + k] = -(of_row * s.factor);
        }
    for (int64_t j = 0; j < n; j++)
        row[j] = factors[j];
    row[k] = s.factor;
}

spmv_status amg_invert(spmv_context *ctx, const struct amg_dense *dense)
{
    double *factors = NULL;
    if (context_on_device(ctx))
        return amg_invert_cuda(ctx, dense);
    const spmv_status st = host_alloc(ctx, dense->n * 8, "an inverse", (void **)&factors);
    for (int64_t k = 0; k < dense->n && st == SPMV_OK; k++)
        (dense->general ? exchange : sweep)(dense, k, factors);
    host_free(factors);
    return st;
}
