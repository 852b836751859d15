/* Checksums of arrays and files.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/io/binary/checksum.h"

#include <unistd.h>

static uint64_t load_word(const unsigned char *p, int64_t n)
{
    uint64_t word = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (n == 8) {
        memcpy(&word, p, sizeof word);
        return word;
    }
#endif
    for (int64_t i = 0; i < n; i++)
        word |= (uint64_t)p[i] << (8 * i);
    return word;
}

uint64_t checksum_tile(const void *bytes, int64_t n)
{
    const unsigned char *p = bytes;
    uint64_t lane[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (int k = 0; k < 4; k++)
            lane[k] = checksum_mix(lane[k], load_word(p + i + 8 * k, 8));
    for (int k = 0; i < n; i += 8, k++)
        lane[k] = checksum_mix(lane[k], load_word(p + i, min_i64(8, n - i)));
    uint64_t sum = 0;
    for (int k = 0; k < 4; k++)
        sum = checksum_mix(sum, lane[k]);
    return checksum_mix(sum, (uint64_t)n);
}

static spmv_status sums_alloc(spmv_context *ctx, int64_t n, int64_t *tiles, uint64_t **sums)
{
    void *memory = NULL;
    *tiles = ceil_divide(n, CHECKSUM_TILE);
    const spmv_status st = host_alloc(ctx, *tiles * (int64_t)sizeof **sums, "checksums", &memory);
    *sums = memory;
    return st;
}

uint64_t checksum_join(const uint64_t *sums, int64_t tiles)
{
    uint64_t sum = 0;
    for (int64_t t = 0; t < tiles; t++)
        sum = checksum_mix(sum, sums[t]);
    return sum;
}

static int team_for(const spmv_context *ctx, int64_t tiles)
{
    return team_threads(ctx, tiles * (CHECKSUM_TILE / 8), TEAM_WORTH_ASLEEP);
}

spmv_status checksum(spmv_context *ctx, const void *bytes, int64_t n, uint64_t *sum)
{
    int64_t tiles = 0;
    uint64_t *sums = NULL;
    const spmv_status st = sums_alloc(ctx, n, &tiles, &sums);
    if (st != SPMV_OK)
        return st;
#pragma omp parallel for num_threads(team_for(ctx, tiles)) schedule(static)
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t at = t * CHECKSUM_TILE;
        sums[t] = checksum_tile((const char *)bytes + at, min_i64(CHECKSUM_TILE, n - at));
    }
    *sum = checksum_join(sums, tiles);
    host_free(sums);
    return SPMV_OK;
}

static bool read_tile(int fd, int64_t at, char *to, int64_t n)
{
    while (n > 0) {
        const ssize_t got = pread(fd, to, (size_t)n, (off_t)at);
        if (got <= 0)
            return false;
        at += got;
        to += got;
        n -= got;
    }
    return true;
}

spmv_status checksum_file(spmv_context *ctx, const char *name, int fd, int64_t n, uint64_t *sum)
{
    int64_t tiles = 0;
    uint64_t *sums = NULL;
    int failed = 0, lacking = 0;
    const spmv_status st = sums_alloc(ctx, n, &tiles, &sums);
    if (st != SPMV_OK)
        return st;
#pragma omp parallel num_threads(team_for(ctx, tiles)) reduction(| : failed, lacking)
    {
        void *buffer = NULL;
        lacking = host_alloc(NULL, CHECKSUM_TILE, "", &buffer) != SPMV_OK;
#pragma omp for schedule(static)
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t at = t * CHECKSUM_TILE, bytes = min_i64(CHECKSUM_TILE, n - at);
            if (lacking || !read_tile(fd, at, buffer, bytes))
                failed = 1;
            else
                sums[t] = checksum_tile(buffer, bytes);
        }
        host_free(buffer);
    }
    if (failed == 0)
        *sum = checksum_join(sums, tiles);
    host_free(sums);
    if (lacking)
        return context_fail_memory(ctx, "checksums", CHECKSUM_TILE);
    return failed == 0 ? SPMV_OK
                       : context_fail(ctx, SPMV_ERROR_READ, "%s: cannot read its %lld bytes", name, (long long)n);
}
