/* Parses the entries in a tile of a coordinate file.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef TILE_ENTRIES_H
#define TILE_ENTRIES_H

#include "formats/coo/coo_buckets.h"
#include "formats/coo/coo_ordered.h"
#include "formats/io/text/findings.h"
#include "formats/io/text/text_tiles.h"

/* Properties common to all tiles of a file. */
struct tile_kind {
    const struct mtx_header *header;
    spmv_type type;                /* of the values in memory */
    const struct coo_shape *shape; /* of the buckets */
};

/* The destination of a tile's entries: buckets or ordered. */
struct tile_target {
    struct coo_buckets *buckets;
    struct coo_writer *writer;
    struct ordered_tile *ordered;
};

/* Parses the tile's lines up to the first error. All implementations give the same results. */
typedef void tile_entries_way(const struct tile_kind *kind, const struct text_tile *tile, struct tile_target target,
                              struct findings *found);
tile_entries_way tile_entries_plain;

/* NULL if this processor lacks the instructions. */
tile_entries_way *tile_entries_avx2(void);

#endif
