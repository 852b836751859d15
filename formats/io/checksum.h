/* The checksum of the binary form and of the cache: of tiles of 1 MiB in parallel, then of their sums in order, so that
 * it does not depend on the number of threads. It finds damage, not malice: who can write the file can write the sum.
 *
 * A tile is read as 64-bit words (little-endian, the last filled up with zeros). Word i is mixed into lane i mod 4:
 * lane = rotate((lane ^ word) * FACTOR, 29). The tile's sum mixes the lanes and its length in the same way, and the
 * whole sum the tiles' sums, from 0 on.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CHECKSUM_H
#define CHECKSUM_H

#include "threads.h"

enum { CHECKSUM_TILE = 1 << 20 };

/* Of one tile, at most CHECKSUM_TILE bytes. */
uint64_t checksum_tile(const void *bytes, int64_t n);

/* sum with another word mixed in. */
static inline uint64_t checksum_mix(uint64_t sum, uint64_t word)
{
    const uint64_t mixed = (sum ^ word) * 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio, odd */
    return mixed << 29 | mixed >> 35;
}

/* Of n bytes in memory, by the context's threads. */
spmv_status checksum(spmv_context *ctx, const void *bytes, int64_t n, uint64_t *sum);

/* The same of the first n bytes of a file; SPMV_ERROR_READ when it has fewer. */
spmv_status checksum_file(spmv_context *ctx, const char *name, int fd, int64_t n, uint64_t *sum);

#endif
