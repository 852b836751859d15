/* Passes over several vectors by rows on the host (krylov_columns.h).
 *
 * A tile has TILE_ROWS rows, or on ranks it is a chunk. Its columns are done by the eight; a column that stands beside
 * others that do not run, by itself, in the same order. On ranks a sum has eight parts, as that of one vector. AVX2 does
 * not change a bit.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_columns.h"

#include <string.h>

#include "core/loops/host_tiles.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"

enum { TILE_ROWS = 256, TOGETHER = 8, SUMS = 8 };

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A pass and the sums of its tiles. */
struct columns_state {
    const struct columns_job *job;
    enum columns_pass pass;
    int64_t tiles;
    void *sums; /* of tiles, of the type of the vectors; tiles for each column */
};

static bool runs(const struct columns_job *j, int v)
{
    return j->runs == NULL || j->runs[v];
}

static bool all_run(const struct columns_job *j, int first, int count)
{
    for (int v = first; v < first + count; v++)
        if (!runs(j, v))
            return false;
    return true;
}

/* The columns of a tile: body(columns first to first + width - 1) with a constant width. Columns that do not run are
 * left out. */
#define EACH_COLUMNS(job, body, ...)                                                                                   \
    for (int v = 0, width = 0; v < (job)->columns; v += width) {                                                       \
        width = v + TOGETHER <= (job)->columns && all_run(job, v, TOGETHER) ? TOGETHER : 1;                            \
        if (width == TOGETHER)                                                                                         \
            body(__VA_ARGS__, v, TOGETHER);                                                                            \
        else if (runs(job, v))                                                                                         \
            body(__VA_ARGS__, v, 1);                                                                                   \
    }

/* The same with sums: body(..., parts of a sum, columns). */
#define EACH_SUMMED(job, body, ...)                                                                                    \
    if ((job)->ranks != NULL)                                                                                          \
        EACH_COLUMNS(job, body, __VA_ARGS__, SUMS)                                                                     \
    else                                                                                                               \
        EACH_COLUMNS(job, body, __VA_ARGS__, 1)

static bool has_sums(enum columns_pass pass)
{
    return pass == COLUMNS_DOT || pass == COLUMNS_RESIDUAL || pass == COLUMNS_PRODUCT;
}

#define VALUE double
#define OTHER double
#define TYPED(name) name##_f64_f64
#include "solvers/krylov/krylov_columns_typed.h"
#undef OTHER
#undef TYPED
#define OTHER float
#define TYPED(name) name##_f64_f32
#include "solvers/krylov/krylov_columns_typed.h"
#undef VALUE
#undef OTHER
#undef TYPED
#define VALUE float
#define OTHER float
#define TYPED(name) name##_f32_f32
#include "solvers/krylov/krylov_columns_typed.h"
#undef OTHER
#undef TYPED
#define OTHER double
#define TYPED(name) name##_f32_f64
#include "solvers/krylov/krylov_columns_typed.h"
#undef VALUE
#undef OTHER
#undef TYPED

static int64_t tiles_for(const struct plan_ranks *ranks, int64_t n)
{
    return ranks != NULL ? ranks->chunks : ceil_divide(n, TILE_ROWS);
}

int64_t columns_scratch(const spmv_context *ctx, const struct plan_ranks *ranks, int64_t n, int columns)
{
    const int64_t parts = context_on_device(ctx) ? columns_stripes(n) : tiles_for(ranks, n);
    return (parts + 1) * columns * (int64_t)sizeof(double);
}

static tile_fn *tile_for(bool wide, bool other_wide)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        return wide ? (other_wide ? tile_avx2_f64_f64 : tile_avx2_f64_f32)
                    : (other_wide ? tile_avx2_f32_f64 : tile_avx2_f32_f32);
#endif
    return wide ? (other_wide ? tile_f64_f64 : tile_f64_f32) : other_wide ? tile_f32_f64 : tile_f32_f32;
}

/* The sums over all ranks. */
static spmv_status add_ranks(const struct columns_state *s)
{
    spmv_status st = SPMV_OK;
    const struct columns_job *const j = s->job;
    const struct plan_ranks *const ranks = j->ranks;
    void *const all = (char *)s->sums + (size_t)(s->tiles * j->columns) * spmv_type_size(j->type);
    TRY(ranks->sum(ranks->self, j->type, s->sums, s->tiles, j->columns, all));
    for (int v = 0; v < j->columns; v++)
        j->sums[v] = real_at(j->type, all, v);
done:
    return st;
}

spmv_status columns_run(spmv_context *ctx, enum columns_pass pass, const struct columns_job *job)
{
    if (context_on_device(ctx))
        return columns_run_cuda(ctx, pass, job);
    struct columns_state state = {job, pass, tiles_for(job->ranks, job->n), job->scratch};
    tile_fn *const tile = tile_for(job->type == SPMV_F64, job->other == SPMV_F64);
    tiles_each_of(ctx, state.tiles, job->n * job->columns, tile, &state);
    if (!has_sums(pass))
        return SPMV_OK;
    if (job->ranks != NULL)
        return add_ranks(&state);
    for (int v = 0; v < job->columns; v++) {
        job->sums[v] = 0;
        for (int64_t t = 0; t < state.tiles; t++)
            job->sums[v] += real_at(job->type, state.sums, v * state.tiles + t);
    }
    return SPMV_OK;
}

static ALWAYS_INLINE void copy_rows(const struct columns_transfer *c, int64_t tile, size_t size)
{
    const int64_t last = min_i64(c->n, (tile + 1) * TILE_ROWS);
    for (int64_t i = tile * TILE_ROWS; i < last; i++) {
        char *const to = (char *)c->to + (size_t)(i * c->to_stride) * size;
        const char *const from = c->from != NULL ? (const char *)c->from + (size_t)(i * c->from_stride) * size : NULL;
        for (int v = 0; v < c->width; v++)
            if (c->which != NULL && !c->which[v])
                continue;
            else if (from != NULL && v < c->columns)
                memcpy(to + (size_t)v * size, from + (size_t)v * size, size);
            else
                memset(to + (size_t)v * size, 0, size); /* also as floats */
    }
}

static void copy_tile(void *state, int64_t tile)
{
    const struct columns_transfer *const c = state;
    SIZED(spmv_type_size(c->type), copy_rows(c, tile, SIZE))
}

spmv_status columns_copy(spmv_context *ctx, const struct columns_transfer *c)
{
    if (context_on_device(ctx))
        return columns_copy_cuda(ctx, c);
    struct columns_transfer state = *c;
    tiles_each_of(ctx, tiles_for(NULL, c->n), c->n * c->width, copy_tile, &state);
    return SPMV_OK;
}
