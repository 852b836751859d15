/* The serial loops of reduce, scan and segmented scan over a part of an array, for every pair of operator and type that
 * exists: what the OpenMP backend runs on a tile. Generated from the lists.
 *
 * Operands keep their order: the earlier element is on the left; but sums of numbers, which run on vectors
 * (loops_sums.c), may exchange them. How they are parenthesised depends on begin and end alone, in segments also on the
 * lengths of their neighbours. Fold and scan work through blocks of a few elements, whose inner results do not wait for
 * each other, so that a result is not held up by the latency of one operation an element.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOOPS_H
#define LOOPS_H

#include <spmv/primitives.h>
#include <stdbool.h>

/* Room for one element of any type. */
#define LOOPS_MEMBER_(NAME, name, value, T, D, CLASS, ARG) T name;
union any_element {
    SPMV_TYPE_LIST(LOOPS_MEMBER_, )
};
#undef LOOPS_MEMBER_

/* out may equal in. fold: begin < end; the others: begin <= end */
struct op_loops {
    size_t size; /* bytes of an element */

    /* *out = identity */
    void (*identity)(void *out);

    /* *out = earlier op later; out may be either */
    void (*combine)(const void *earlier, const void *later, void *out);

    /* *out = in[begin] op ... op in[end-1] */
    void (*fold)(const void *in, int64_t begin, int64_t end, void *out);

    /* by spmv_scan_kind. inclusive: out[i] = carry op in[begin] op ... op in[i]; exclusive: the same without in[i].
     * stream: where it can, it writes past the caches; the bits are the same. */
    void (*scan[2])(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream);

    /* The same, restarted without carry at each i with heads[i - begin] != 0. */
    void (*segscan[2])(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin, int64_t end,
                       bool stream);

    /* out[s] = in[h_s] op ... op in[h_{s+1} - 1], the identity when there are none, for first <= s < last, with h the
     * positions heads, bits wide. in has n elements. */
    void (*segments)(const void *in, int64_t n, const void *heads, int bits, int64_t first, int64_t last, void *out);
};

/* The loops of a pair that exists. */
const struct op_loops *op_loops(spmv_op op, spmv_type type);

/* What stands to the left of an element in its segment: value, or nothing. */
struct carry {
    bool some;
    union any_element value;
};

/* Nothing stands before a segment's head, or in an exclusive scan the identity. */
void carry_restart(const struct op_loops *loops, spmv_scan_kind kind, struct carry *carry);

/* carry = carry op part */
void carry_join(const struct op_loops *loops, struct carry *carry, const void *part);

/* Scans in[begin] .. in[end-1] from carry, restarted at each i with heads[i - begin] != 0 (heads NULL: at none).
 * begin <= end; out may equal in. stream: past the caches where that can be done. */
void scan_from(const struct op_loops *loops, spmv_scan_kind kind, const struct carry *carry, const uint8_t *heads,
               const void *in, void *out, int64_t begin, int64_t end, bool stream);

/* Whether a result of n elements is better written past the caches: it does not fit in them, and does not lie where the
 * input was read. */
bool scan_streams(const struct op_loops *loops, const void *in, const void *out, int64_t n);

#endif
