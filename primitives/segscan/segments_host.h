/* Segments as the host backends look at them, and their tiles.
 *
 * Positions are cut into tiles along the merge of the segments' heads with the elements: a head comes before the
 * element at its position. A tile is HOST_TILE steps of that path, so neither one giant segment nor a million empty
 * ones idles a thread, and it depends on the segments and n alone. Of the heads first <= s < last of a tile with the
 * elements begin <= i < end, each lies in begin <= h_s <= end. D. Merrill, M. Garland, "Merge-based parallel sparse
 * matrix-vector multiplication", SC16.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEGMENTS_HOST_H
#define SEGMENTS_HOST_H

#include "backend.h"

struct segment_tile {
    int64_t begin, end;  /* its elements */
    int64_t first, last; /* its heads */
};

/* Tiles of positions (STARTS, OFFSETS) or flags with n elements. */
int64_t segment_tiles(const spmv_segments *segments, int64_t n);

/* A tile; for flags only its elements. */
struct segment_tile segment_tile_at(const spmv_segments *segments, int64_t tile, int64_t n);

/* Does flag i start a segment? FLAGS only. */
static inline bool segment_flag(const spmv_segments *segments, int64_t i)
{
    return segments->bits == 1 ? flag_bit(segments->heads, i) : ((const uint8_t *)segments->heads)[i] != 0;
}

/* Where segment s begins, 0 <= s <= count; segment count begins at n. */
static inline int64_t segment_begin(const spmv_segments *segments, int64_t s, int64_t n)
{
    return s < segments->count ? offset_at(segments->heads, segments->bits, s) : n;
}

#endif
