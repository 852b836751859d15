/* sort on OpenMP: a radix sort by digits of 8 bits from the lowest up. A pass counts each tile's
 * digits, scans the counts digit by digit and tile by tile, and moves each tile's elements in order
 * to their destinations.
 *
 * The result of a stable sort is unique, so it does not depend on the team. Each pass reads each
 * element twice and writes it once.
 * Source: M. Zagha, G. E. Blelloch, "Radix sort for vector multiprocessors", SC 1991.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "primitives/sort/sort_request.h"

enum { DIGIT_BITS = 8, RADIX = 1 << DIGIT_BITS };

/* More tiles than any team has threads, but few enough for one thread to scan their counts. */
enum { MOST_TILES = 512 };

static int64_t tile_length(int64_t n)
{
    return ceil_divide(tiles_of(n), MOST_TILES) * HOST_TILE;
}

static int64_t scratch_of(const struct sort_request *r)
{
    return ceil_divide(r->n, tile_length(r->n)) * RADIX * (int64_t)sizeof(int64_t);
}

struct sort_job {
    struct sort_pass pass;
    bool real;
    int value_bytes;
    int64_t n, length;
    /* per tile: the counts of its digits, then the destination of the next element of a digit */
    int64_t (*count)[RADIX];
    void (*count_digits)(const struct sort_job *, struct range, int64_t *count);
    void (*move)(const struct sort_job *, struct range, int64_t *next);
};

static struct range range_of(const struct sort_job *job, int64_t tile)
{
    return (struct range){tile * job->length, min_i64((tile + 1) * job->length, job->n)};
}

#define KEY uint32_t
#define ORDER(key, real) sort_order_32(key, real)
#define TYPED(name) name##_32
#include "primitives/sort/sort_omp_typed.h"
#undef KEY
#undef ORDER
#undef TYPED
#define KEY uint64_t
#define ORDER(key, real) sort_order_64(key, real)
#define TYPED(name) name##_64
#include "primitives/sort/sort_omp_typed.h"

static void count_tile(void *state, int64_t tile)
{
    const struct sort_job *job = state;
    memset(job->count[tile], 0, sizeof job->count[tile]);
    job->count_digits(job, range_of(job, tile), job->count[tile]);
}

static void move_tile(void *state, int64_t tile)
{
    const struct sort_job *job = state;
    job->move(job, range_of(job, tile), job->count[tile]);
}

static spmv_status run(spmv_context *ctx, const struct sort_request *r, void *scratch)
{
    struct sort_job job = {.real = r->real,
                           .n = r->n,
                           .length = tile_length(r->n),
                           .count = scratch,
                           .count_digits = r->key_bytes == 4 ? count_digits_32 : count_digits_64,
                           .value_bytes = r->value_bytes,
                           .move = r->key_bytes == 4 ? move_32 : move_64};
    const int64_t tiles = ceil_divide(job.n, job.length);
    for (int pass = 0; pass < sort_passes(r, DIGIT_BITS); pass++) {
        job.pass = sort_pass_of(r, DIGIT_BITS, pass);
        tiles_each(ctx, tiles, count_tile, &job);
        int64_t before = 0;
        for (int digit = 0; digit < RADIX; digit++) {
            for (int64_t tile = 0; tile < tiles; tile++) {
                const int64_t count = job.count[tile][digit];
                job.count[tile][digit] = before;
                before += count;
            }
        }
        tiles_each(ctx, tiles, move_tile, &job);
    }
    return SPMV_OK;
}

const struct sort_rung sort_rungs_omp[] = {{"tiles", DIGIT_BITS, scratch_of, run}, {NULL, 0, NULL, NULL}};
