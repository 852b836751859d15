/* The entries of a tile of a coordinate file's text.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TILE_ENTRIES_H
#define TILE_ENTRIES_H

#include "coo_buckets.h"
#include "coo_ordered.h"
#include "findings.h"
#include "text_tiles.h"

/* What all tiles of a file have in common. */
struct tile_kind {
    const struct mtx_header *header;
    spmv_type type;                /* of the values in memory */
    const struct coo_shape *shape; /* of the buckets */
};

/* Where a tile's entries go: one of both. */
struct tile_target {
    struct coo_buckets *buckets;
    struct coo_writer *writer;
    struct ordered_tile *ordered;
};

/* Parses the tile's lines up to the first error. Every way has the same results. */
typedef void tile_entries_way(const struct tile_kind *kind, const struct text_tile *tile, struct tile_target target,
                              struct findings *found);
tile_entries_way tile_entries_plain;

/* NULL where this processor has no such instructions. */
tile_entries_way *tile_entries_avx2(void);

#endif
