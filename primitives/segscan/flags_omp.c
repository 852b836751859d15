/* Conversion between flags as bytes and flags as bits on OpenMP: tiles of whole words.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"

_Static_assert(HOST_TILE % 32 == 0, "a word belongs to one tile");

struct flags_job {
    const uint8_t *flags;
    uint32_t *bits;
    uint8_t *out_flags;
    const uint32_t *in_bits;
    int64_t n;
};

static void pack_tile(void *state, int64_t tile)
{
    const struct flags_job *job = state;
    const struct range r = tile_range(tile, job->n);
    for (int64_t begin = r.begin; begin < r.end; begin += 32) {
        uint32_t word = 0;
        for (int64_t i = begin; i < min_i64(begin + 32, r.end); i++)
            word |= (uint32_t)(job->flags[i] != 0) << (i - begin);
        job->bits[begin / 32] = word;
    }
}

static void unpack_tile(void *state, int64_t tile)
{
    const struct flags_job *job = state;
    const struct range r = tile_range(tile, job->n);
    for (int64_t i = r.begin; i < r.end; i++)
        job->out_flags[i] = flag_bit(job->in_bits, i);
}

spmv_status flags_pack_omp(spmv_context *ctx, const uint8_t *flags, uint32_t *bits, int64_t n)
{
    struct flags_job job = {.flags = flags, .bits = bits, .n = n};
    tiles_each(ctx, tiles_of(n), pack_tile, &job);
    return SPMV_OK;
}

spmv_status flags_unpack_omp(spmv_context *ctx, const uint32_t *bits, uint8_t *flags, int64_t n)
{
    struct flags_job job = {.out_flags = flags, .in_bits = bits, .n = n};
    tiles_each(ctx, tiles_of(n), unpack_tile, &job);
    return SPMV_OK;
}
