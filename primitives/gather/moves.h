/* A gather or a scatter, filtered or not, as the host backends run it: a loop over a part of the index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOVES_H
#define MOVES_H

#include <spmv/primitives.h>

#include "filter.h"

struct move {
    const struct filter *filter; /* NULL: every element is taken */
    spmv_type type;
    const void *in, *index;
    int index_bits;
    void *out;
    int64_t cells; /* what the index points into: of in in a gather, of out in a scatter */
    int64_t n;     /* of the index */
};

/* The loop for from <= i < to; with a filter to - from <= HOST_TILE. */
typedef void move_part(const struct move *move, int64_t from, int64_t to);

/* out[i] = in[index[i]] where the filter takes in[index[i]], or with a mask i */
move_part gather_part;

/* out[index[i]] = in[i] where the filter takes in[i], or with a mask i */
move_part scatter_part;

/* The parts of a move, one after the other, and shared by the threads of a team. */
void move_serially(const struct move *move, move_part *part);
void move_in_tiles(const spmv_context *ctx, const struct move *move, move_part *part);

#endif
