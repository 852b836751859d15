/* One pass over an array in host memory, piece by piece, for a backend whose own memory it need not fit in.
 *
 * A piece lies in the context's memory as n cells behind one more, cell 0, with what stands to its left (the carry): so
 * whatever takes an array takes a carry and a piece, and needs to know of neither. While a piece is worked on, the next
 * one is on its way up and the one before on its way down.
 *
 * A piece is a whole number of units (but for the last), and the work on it goes unit by unit: what is computed does
 * not depend on how many units a piece has, so neither do the bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIECES_H
#define PIECES_H

#include <spmv/primitives.h>

#include "runtime.h"

/* Elements of a unit: enough for a few microseconds of launches to vanish beside the time a unit takes to come (8 MiB
 * of f64 at 50 GB/s: 170 us). Tests have smaller ones. */
#ifndef CUDA_PIECE_UNIT
#define CUDA_PIECE_UNIT (1 << 20)
#endif
enum { PIECE_UNIT = CUDA_PIECE_UNIT };

/* Bytes of a piece unless told otherwise: some of them are under way at once, each in a buffer in page-locked memory,
 * which is costly to get. */
enum { PIECE_BYTES = 8 << 20 };

struct host_pass {
    const char *what; /* the call's name, for sentences and progress */
    spmv_op op;
    spmv_type type;
    int64_t size; /* of an element */
    const void *host_in;
    void *host_out;         /* element i is cell i + out_cell after the work; NULL: nothing goes back */
    int out_cell;           /* 0 or 1 */
    const void *host_carry; /* what stands to the left of element 0 */
    void *host_last;        /* what stands to the left of element n; NULL: not wanted */
    int64_t n;              /* > 0 */
    int64_t piece_bytes;    /* 0: PIECE_BYTES */

    /* Queues the work on n elements in cells 1 to n, with the carry in cell 0. Afterwards cell n is the carry of the
     * next piece. spare: one more cell, that the work may use. */
    spmv_status (*run)(spmv_context *ctx, const struct host_pass *asked, void *cells, void *spare, int64_t n);
};

/* What the calls on host arrays check alike. */
spmv_status pieces_check(spmv_context *ctx, const char *what, spmv_op op, spmv_type type, const void *host_in,
                         const void *host_out, int64_t n, const spmv_pieces_options *options, int64_t *piece_bytes);

/* In the tables: NULL where the context's memory is the host's. */
spmv_status host_pass_cuda(spmv_context *ctx, const struct host_pass *asked);

#endif
