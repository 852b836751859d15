/* One pass over an array in host memory in pieces, for a backend whose memory may be smaller than
 * the array.
 *
 * A piece is stored in the context's memory as n cells after cell 0, which holds the carry. So a
 * function on an array processes the carry and the piece together, without special cases. While a
 * piece is computed, the next one is uploaded and the one before downloaded.
 *
 * A piece is a whole number of grains, except the last, and the work on it proceeds grain by grain. So
 * the results, bit by bit, do not depend on the number of grains of a piece.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PIECES_H
#define PIECES_H

#include <spmv/primitives.h>

#include "core/runtime.h"

/* Elements of a grain: large enough to make the launches' few microseconds negligible beside the
 * transfer (8 MiB of f64 at 50 GB/s: 170 us). Tests have smaller ones. */
#ifndef CUDA_PIECE_GRAIN
#define CUDA_PIECE_GRAIN (1 << 20)
#endif
enum { PIECE_GRAIN = CUDA_PIECE_GRAIN };

/* Default size of a piece. Several are in progress at once, each with a buffer in page-locked
 * memory, which is expensive to allocate. */
enum { PIECE_BYTES = 8 << 20 };

struct host_pass {
    const char *what; /* the call's name, for messages and progress events */
    spmv_op op;
    spmv_type type;
    int64_t size; /* of an element */
    const void *host_in;
    void *host_out;         /* element i is cell i + out_cell after the work; NULL: none */
    int out_cell;           /* 0 or 1 */
    const void *host_carry; /* carry into element 0 */
    void *host_last;        /* carry out of the last element; NULL: not returned */
    int64_t n;              /* > 0 */
    int64_t piece_bytes;    /* 0: PIECE_BYTES */

    /* Queues the work on n elements in cells 1 to n, with the carry in cell 0. Afterwards cell n is
     * the carry of the next piece. spare: one more cell for the work. */
    spmv_status (*run)(spmv_context *ctx, const struct host_pass *asked, void *cells, void *spare, int64_t n);
};

/* Argument checks shared by the calls on host arrays. Sets pass->size and pass->piece_bytes. */
spmv_status pieces_check(spmv_context *ctx, struct host_pass *pass, const void *host_out,
                         const spmv_pieces_options *options);

/* Runs the pass with the identity as carry, in a context that has memory of its own. */
spmv_status pieces_run(spmv_context *ctx, const struct host_pass *pass);

/* For the table; NULL there if the context's memory is host memory. */
spmv_status host_pass_cuda(spmv_context *ctx, const struct host_pass *asked);

#endif
