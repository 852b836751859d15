/* The checksum of the binary form and of the cache: of tiles of 1 MiB in parallel, then of their
 * sums in order, so that it does not depend on the number of threads. It detects damage, not
 * manipulation: a program that can write the file can write the checksum.
 *
 * A tile is read as 64-bit words (little-endian, the last one padded with zeros). Word i is mixed
 * into lane i mod 4: lane = rotate((lane ^ word) * FACTOR, 29). The tile's sum mixes the lanes and
 * the tile's length in the same way. The whole sum mixes the tiles' sums, starting from 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include "core/threads.h"

enum { CHECKSUM_TILE = 1 << 20 };

/* The checksum of one tile, at most CHECKSUM_TILE bytes. */
uint64_t checksum_tile(const void *bytes, int64_t n);

/* Mixes another word into sum. */
static inline uint64_t checksum_mix(uint64_t sum, uint64_t word)
{
    const uint64_t mixed = (sum ^ word) * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio, odd */
    return mixed << 29 | mixed >> 35;
}

/* The checksum of an array from those of its tiles. */
uint64_t checksum_join(const uint64_t *sums, int64_t tiles);

/* The checksum of n bytes in memory, with the context's threads. */
spmv_status checksum(spmv_context *ctx, const void *bytes, int64_t n, uint64_t *sum);

/* The checksum of the first n bytes of a file; SPMV_ERROR_READ if it has fewer. */
spmv_status checksum_file(spmv_context *ctx, const char *name, int fd, int64_t n, uint64_t *sum);

#endif
