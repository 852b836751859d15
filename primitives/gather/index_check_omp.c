/* The index check on OpenMP: each tile finds its first invalid entry; the result is the smallest of
 * them, whatever the order of the tiles.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>

#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "primitives/gather/index_loops.h"

struct check_job {
    const void *index;
    int index_bits;
    int64_t lowest, limit, n;
    atomic_llong first; /* first invalid entry found so far; n: none */
};

int64_t index_check_scratch_omp(const spmv_context *ctx, int64_t n)
{
    (void)ctx;
    (void)n;
    return 0;
}

static void check_tile(void *state, int64_t tile)
{
    struct check_job *job = state;
    const struct range r = tile_range(tile, job->n);
    long long first = atomic_load(&job->first);
    if (first < r.begin)
        return;
    const int64_t mine = first_outside(job->index, job->index_bits, job->lowest, job->limit, r.begin, r.end);
    while (mine < r.end && mine < first && !atomic_compare_exchange_weak(&job->first, &first, mine))
        ;
}

spmv_status index_check_omp(spmv_context *ctx, const void *index, int index_bits, int64_t lowest, int64_t limit,
                            int64_t n, int64_t *host_first, int64_t *host_value, void *scratch)
{
    (void)scratch;
    struct check_job job = {
        .index = index, .index_bits = index_bits, .lowest = lowest, .limit = limit, .n = n, .first = n};
    tiles_each(ctx, tiles_of(n), check_tile, &job);
    *host_first = atomic_load(&job.first);
    if (*host_first < n)
        *host_value = index_at(index, index_bits, *host_first);
    return SPMV_OK;
}
