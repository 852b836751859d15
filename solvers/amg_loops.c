/* The steps of algebraic multigrid on ref and omp: one loop over the rows for each step.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "amg_internal.h"
#include "host_tiles.h"

#define TEMPLATE "amg_rows_typed.h"
#include "each_real.h"

/* A row costs as much as some dozen elements of a vector. */
enum { AMG_TILE = HOST_TILE / 16 };

struct rows_of_step {
    const struct amg_rows *rows;
    int64_t n;
};

#define LOOP(name, type)                                                                                               \
    static void loop_##name##_##type(void *state, int64_t tile)                                                        \
    {                                                                                                                  \
        const struct rows_of_step *s = state;                                                                          \
        const int64_t end = min_i64(s->n, (tile + 1) * AMG_TILE);                                                      \
        for (int64_t i = tile * AMG_TILE; i < end; i++)                                                                \
            amg_##name##_##type(s->rows, i);                                                                           \
    }
#define LOOPS(NAME, name) LOOP(name, f32) LOOP(name, f64)
AMG_STEP_LIST(LOOPS)

#define ENTRY_F32(NAME, name) loop_##name##_f32,
#define ENTRY_F64(NAME, name) loop_##name##_f64,
static tile_fn *const loops_f32[AMG_STEPS] = {AMG_STEP_LIST(ENTRY_F32)};
static tile_fn *const loops_f64[AMG_STEPS] = {AMG_STEP_LIST(ENTRY_F64)};

spmv_status amg_run(spmv_context *ctx, enum amg_step step, spmv_type type, const struct amg_rows *rows, int64_t n)
{
    if (n <= 0)
        return SPMV_OK;
#ifdef SPMV_HAVE_CUDA
    if (ctx->backend->id == SPMV_BACKEND_CUDA)
        return amg_run_cuda(ctx, step, type, rows, n);
#endif
    struct rows_of_step state = {rows, n};
    tiles_each(ctx, ceil_divide(n, AMG_TILE), type == SPMV_F64 ? loops_f64[step] : loops_f32[step], &state);
    return SPMV_OK;
}
