/* histogram on OpenMP: parts of the elements are counted separately and the counts added, if
 * clearing and adding the counts costs no more than the counting. If there are too many bins for
 * that, all threads count in the result with atomic additions.
 *
 * Sums of integers do not depend on the order, so both ways give the same counts for any team.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "primitives/histogram/histogram_request.h"

/* More pieces speed up no team further; with fewer than FEWEST_PIECES, atomic additions to the
 * result are faster. */
enum { MOST_PIECES = 256, FEWEST_PIECES = 8 };

/* How many pieces are counted separately; 0: none. The last cell of a piece counts the elements
 * that are left out. */
static int64_t pieces_of(const struct histogram_request *r)
{
    const int64_t pieces = min_i64(r->n / max_i64(r->bins, HOST_TILE), MOST_PIECES);
    return pieces >= FEWEST_PIECES ? pieces : r->n <= HOST_PARALLEL_TILES * HOST_TILE && r->bins <= r->n ? 1 : 0;
}

static int64_t scratch_of(const struct histogram_request *r)
{
    return pieces_of(r) * (r->bins + 1) * (int64_t)sizeof(int64_t);
}

struct histogram_job {
    const struct histogram_request *request;
    int64_t *counts; /* bins + 1 per piece */
    int64_t pieces;
};

static void count_piece(void *state, int64_t piece)
{
    const struct histogram_job *job = state;
    const struct histogram_request *r = job->request;
    const int64_t length = ceil_divide(r->n, job->pieces), end = min_i64((piece + 1) * length, r->n);
    int64_t *const count = job->counts + piece * (r->bins + 1);
    memset(count, 0, (size_t)(r->bins + 1) * sizeof *count);
    for (int64_t i = piece * length; i < end; i++)
        count[r->index[i] >= 0 && r->index[i] < r->bins ? r->index[i] : r->bins]++;
}

/* Stores the sum over the pieces; a 32-bit count wraps. */
static void store_sum(const struct histogram_job *job, int64_t cell, void *to, int64_t at)
{
    const struct histogram_request *r = job->request;
    int64_t sum = 0;
    for (int64_t piece = 0; piece < job->pieces; piece++)
        sum += job->counts[piece * (r->bins + 1) + cell];
    if (r->count_bits == 32)
        ((uint32_t *)to)[at] = (uint32_t)sum;
    else
        ((int64_t *)to)[at] = sum;
}

static void add_tile(void *state, int64_t tile)
{
    const struct histogram_job *job = state;
    const struct range bins = tile_range(tile, job->request->bins);
    for (int64_t b = bins.begin; b < bins.end; b++)
        store_sum(job, b, job->request->counts, b);
}

static void add_one(void *counts, int bits, int64_t bin)
{
    if (bits == 32) {
#pragma omp atomic
        ((uint32_t *)counts)[bin]++;
    } else {
#pragma omp atomic
        ((uint64_t *)counts)[bin]++;
    }
}

static void count_tile(void *state, int64_t tile)
{
    const struct histogram_job *job = state;
    const struct histogram_request *r = job->request;
    const struct range range = tile_range(tile, r->n);
    for (int64_t i = range.begin; i < range.end; i++) {
        if (r->index[i] >= 0 && r->index[i] < r->bins)
            add_one(r->counts, r->count_bits, r->index[i]);
        else if (r->left_out != NULL)
            add_one(r->left_out, r->count_bits, 0);
    }
}

static spmv_status run(spmv_context *ctx, const struct histogram_request *r, void *scratch)
{
    struct histogram_job job = {.request = r, .counts = scratch, .pieces = pieces_of(r)};
    if (job.pieces == 0) {
        tiles_each(ctx, tiles_of(r->n), count_tile, &job);
        return SPMV_OK;
    }
    tiles_each(ctx, job.pieces, count_piece, &job);
    tiles_each(ctx, tiles_of(r->bins), add_tile, &job);
    if (r->left_out != NULL)
        store_sum(&job, r->bins, r->left_out, 0);
    return SPMV_OK;
}

const struct histogram_rung histogram_rungs_omp[] = {{"pieces", scratch_of, run}, {NULL, NULL, NULL}};
