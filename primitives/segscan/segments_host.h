/* Segments on the host backends, and their tiles.
 *
 * Positions are divided into tiles along the merge path of the segments' heads and the elements: a
 * head comes before the element at its position. A tile is HOST_TILE steps of that path, so work is
 * balanced even with one giant segment or a million empty ones. Tiles depend on the segments and n
 * alone. The heads first <= s < last of a tile with elements begin <= i < end have
 * begin <= h_s <= end.
 * Source: D. Merrill, M. Garland, "Merge-based parallel sparse matrix-vector multiplication", SC16.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEGMENTS_HOST_H
#define SEGMENTS_HOST_H

#include "core/backend.h"

struct segment_tile {
    int64_t begin, end;  /* its elements */
    int64_t first, last; /* its heads */
};

/* The number of tiles of n elements with positions (STARTS, OFFSETS) or flags. */
int64_t segment_tiles(const spmv_segments *segments, int64_t n);

/* A tile; for flags only its elements. */
struct segment_tile segment_tile_at(const spmv_segments *segments, int64_t tile, int64_t n);

/* Whether flag i starts a segment. FLAGS only. */
static inline bool segment_flag(const spmv_segments *segments, int64_t i)
{
    return segments->bits == 1 ? flag_bit(segments->heads, i) : ((const uint8_t *)segments->heads)[i] != 0;
}

/* The start of segment s, 0 <= s <= count; segment count starts at n. */
static inline int64_t segment_begin(const spmv_segments *segments, int64_t s, int64_t n)
{
    return s < segments->count ? offset_at(segments->heads, segments->bits, s) : n;
}

#endif
