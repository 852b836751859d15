/* Shared by gather and scatter: see moves.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/moves.h"

#include "core/loops/host_tiles.h"

static spmv_status check(spmv_context *ctx, const char *caller, enum move_kind kind, const struct move *m)
{
    const bool gathers = kind == MOVE_GATHER;
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (!type_in_primitives(m->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: %d is not a type of primitives", caller, (int)m->type);
    if (m->index_bits != 32 && m->index_bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: index_bits is %d, must be 32 or 64", caller, m->index_bits);
    if (m->n < 0 || m->cells < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %lld %s %lld elements: sizes must not be negative", caller,
                            (long long)m->n, gathers ? "of" : "into", (long long)m->cells);
    if (m->n == 0)
        return SPMV_OK;
    const char *const missing = m->index == NULL                              ? "index"
                                : m->in == NULL && (!gathers || m->cells > 0) ? "in"
                                : m->out == NULL && (gathers || m->cells > 0) ? "out"
                                                                              : NULL;
    return missing == NULL ? SPMV_OK : context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", caller, missing);
}

static spmv_status move_some(spmv_context *ctx, enum move_kind kind, const struct move *move)
{
    if (move->n == 0)
        return SPMV_OK;
    return (kind == MOVE_GATHER ? ctx->backend->gather : ctx->backend->scatter)(ctx, move);
}

spmv_status move_all(spmv_context *ctx, const char *caller, enum move_kind kind, struct move move)
{
    const spmv_status st = check(ctx, caller, kind, &move);
    return st != SPMV_OK ? st : move_some(ctx, kind, &move);
}

spmv_status move_masked(spmv_context *ctx, const char *caller, enum move_kind kind, struct move move,
                        const uint8_t *mask)
{
    const struct filter filter = {.mask = mask};
    const spmv_status st = check(ctx, caller, kind, &move);
    if (st == SPMV_OK && move.n > 0 && mask == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: mask is NULL", caller);
    move.filter = &filter;
    return st != SPMV_OK ? st : move_some(ctx, kind, &move);
}

spmv_status move_if(spmv_context *ctx, const char *caller, enum move_kind kind, struct move move,
                    spmv_predicate predicate, int when, const void *host_scalar)
{
    struct filter filter;
    spmv_status st = check(ctx, caller, kind, &move);
    if (st == SPMV_OK)
        st = filter_by_predicate(ctx, caller, predicate, when, move.type, host_scalar, &filter);
    move.filter = &filter;
    return st != SPMV_OK ? st : move_some(ctx, kind, &move);
}

struct move_job {
    const struct move *move;
    move_range *range;
};

static void move_tile(void *state, int64_t tile)
{
    const struct move_job *job = state;
    const struct range r = tile_range(tile, job->move->n);
    job->range(job->move, r.begin, r.end);
}

void move_serially(const struct move *move, move_range *range)
{
    struct move_job job = {.move = move, .range = range};
    for (int64_t tile = 0; tile < tiles_of(move->n); tile++)
        move_tile(&job, tile);
}

void move_in_tiles(const spmv_context *ctx, const struct move *move, move_range *range)
{
    struct move_job job = {.move = move, .range = range};
    tiles_each(ctx, tiles_of(move->n), move_tile, &job);
}
