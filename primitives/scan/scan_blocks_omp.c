/* The rungs of scan by name on OpenMP: "tiles", and blocks that the threads scan independently.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "core/loops/loops.h"
#include "primitives/scan/scan_ladder.h"

struct blocks_job {
    const struct op_loops *loops;
    const struct scan_request *request;
};

static struct range block_range(const struct scan_request *r, int64_t block)
{
    const int64_t begin = block * r->block;
    return (struct range){begin, min_i64(begin + r->block, r->n)};
}

static void scan_block(void *state, int64_t block)
{
    const struct blocks_job *job = state;
    const struct scan_request *q = job->request;
    const size_t size = job->loops->size;
    const struct range r = block_range(q, block);
    union any_element last; /* in place, the scan overwrites it */
    struct carry before;
    memcpy(&last, element(q->in, size, r.end - 1), size);
    carry_restart(job->loops, q->kind, &before);
    scan_from(job->loops, q->kind, &before, NULL, q->in, q->out, r.begin, r.end, false);
    if (q->sums == NULL)
        return;
    const void *through = element(q->out, size, r.end - 1);
    if (q->kind == SPMV_EXCLUSIVE)
        job->loops->combine(through, &last, element_out(q->sums, size, block));
    else
        memcpy(element_out(q->sums, size, block), through, size);
}

static void sum_of_block(void *state, int64_t block)
{
    const struct blocks_job *job = state;
    const struct scan_request *q = job->request;
    const size_t size = job->loops->size;
    const int64_t last = block_range(q, block).end - 1;
    const void *through = element(q->scanned, size, last);
    if (q->kind == SPMV_EXCLUSIVE)
        job->loops->combine(through, element(q->in, size, last), element_out(q->sums, size, block));
    else
        memcpy(element_out(q->sums, size, block), through, size);
}

static int64_t tiles_scratch(const spmv_context *ctx, const struct scan_request *r)
{
    return r->form == SCAN_ALL ? scan_scratch_omp(ctx, r->type, r->n) : 0;
}

static spmv_status run_tiles(spmv_context *ctx, const struct scan_request *r)
{
    if (r->form == SCAN_ALL)
        return scan_omp(ctx, r->kind, r->op, r->type, r->in, r->out, r->n, r->scratch);
    struct blocks_job job = {.loops = op_loops(r->op, r->type), .request = r};
    tiles_each(ctx, ceil_divide(r->n, r->block), r->form == SCAN_BLOCKS ? scan_block : sum_of_block, &job);
    return SPMV_OK;
}

static const struct scan_rung rungs[] = {
    {.name = "tiles", .by_block = true, .scratch = tiles_scratch, .run = run_tiles},
    {.name = NULL},
};

const struct scan_rung *scan_rungs_omp(void)
{
    return rungs;
}
