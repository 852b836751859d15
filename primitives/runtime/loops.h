/* The serial loops of reduce, scan and segmented scan, for every pair of operator and type that exists: what the host
 * backends run on a piece of an array. Generated from the lists.
 *
 * Operands keep their order. carry is what stands to the left of in[0]; NULL: nothing does.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOOPS_H
#define LOOPS_H

#include <spmv/primitives.h>
#include <stdbool.h>

struct op_loops {
    size_t size; /* bytes of an element */

    /* *out = identity */
    void (*identity)(void *out);

    /* *out = earlier op later; out may be either */
    void (*combine)(const void *earlier, const void *later, void *out);

    /* *out = in[0] op ... op in[n-1], n >= 1; parenthesised as n alone decides */
    void (*fold)(const void *in, int64_t n, void *out);

    /* inclusive: out[i] = carry op in[0] ... op in[i]; exclusive: out[i] = carry op in[0] ... op in[i-1], with the
     * identity for a missing carry. n >= 1. out may equal in. */
    void (*scan)(spmv_scan_kind kind, const void *carry, const void *in, void *out, int64_t n);

    /* The same, restarted (without carry) at each i > 0 with flags[i] != 0, and at i = 0 when carry is NULL. */
    void (*segscan_flags)(spmv_scan_kind kind, const void *carry, const uint8_t *flags, const void *in, void *out,
                          int64_t n);
};

/* The loops of a pair that exists. */
const struct op_loops *op_loops(spmv_op op, spmv_type type);

/* The widest element. */
enum { LOOPS_WIDEST = 16 };

#endif
