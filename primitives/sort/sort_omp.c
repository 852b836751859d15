/* sort on OpenMP: a radix sort by digits of 8 bits from the lowest up. A pass counts each tile's digits, scans the
 * counts digit by digit and tile by tile, and moves each tile's elements in their order to where its counts begin.
 *
 * A stable sort has one result only, so the team does not show. Memory sees two reads and one write an element and
 * pass. M. Zagha, G. E. Blelloch, "Radix sort for vector multiprocessors", SC 1991.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "sort_request.h"

enum { DIGIT_BITS = 8, RADIX = 1 << DIGIT_BITS };

/* More tiles than any team has threads, few enough that their counts are scanned by one. */
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
    int64_t n, length;
    int64_t (*count)[RADIX]; /* of each tile: its digits, then where the next element of a digit goes */
    void (*count_digits)(const struct sort_job *, struct range, int64_t *count);
    void (*move)(const struct sort_job *, struct range, int64_t *next);
};

static struct range range_of(const struct sort_job *job, int64_t tile)
{
    return (struct range){tile * job->length, min_i64((tile + 1) * job->length, job->n)};
}

#define DEFINE_DIGIT(bits)                                                                                             \
    static inline unsigned digit_##bits(const struct sort_job *job, uint##bits##_t key)                                \
    {                                                                                                                  \
        return (unsigned)(sort_order_##bits(key, job->real) >> job->pass.shift) & ((1u << job->pass.width) - 1u);      \
    }                                                                                                                  \
    static void count_digits_##bits(const struct sort_job *job, struct range r, int64_t *count)                        \
    {                                                                                                                  \
        const uint##bits##_t *const key = job->pass.keys;                                                              \
        for (int64_t i = r.begin; i < r.end; i++)                                                                      \
            count[digit_##bits(job, key[i])]++;                                                                        \
    }
DEFINE_DIGIT(32)
DEFINE_DIGIT(64)

#define DEFINE_MOVE(name, bits, with_value)                                                                            \
    static void name(const struct sort_job *job, struct range r, int64_t *next)                                        \
    {                                                                                                                  \
        const struct sort_pass *const p = &job->pass;                                                                  \
        const uint##bits##_t *const keys = p->keys;                                                                    \
        uint##bits##_t *const to_keys = p->to_keys;                                                                    \
        for (int64_t i = r.begin; i < r.end; i++) {                                                                    \
            const uint##bits##_t key = keys[i];                                                                        \
            const int64_t at = next[digit_##bits(job, key)]++;                                                         \
            to_keys[at] = key;                                                                                         \
            with_value;                                                                                                \
        }                                                                                                              \
    }
#define MOVE_VALUE(V) ((V *)p->to_values)[at] = ((const V *)p->values)[i]
DEFINE_MOVE(move_32, 32, (void)0)
DEFINE_MOVE(move_32_32, 32, MOVE_VALUE(uint32_t))
DEFINE_MOVE(move_32_64, 32, MOVE_VALUE(uint64_t))
DEFINE_MOVE(move_64, 64, (void)0)
DEFINE_MOVE(move_64_32, 64, MOVE_VALUE(uint32_t))
DEFINE_MOVE(move_64_64, 64, MOVE_VALUE(uint64_t))

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
    static void (*const moves[2][3])(const struct sort_job *, struct range, int64_t *) = {
        {move_32, move_32_32, move_32_64}, {move_64, move_64_32, move_64_64}};
    struct sort_job job = {.real = r->real,
                           .n = r->n,
                           .length = tile_length(r->n),
                           .count = scratch,
                           .count_digits = r->key_bytes == 4 ? count_digits_32 : count_digits_64,
                           .move = moves[r->key_bytes == 8][r->value_bytes / 4]};
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
