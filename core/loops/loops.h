/* The serial loops of reduce, scan and segmented scan over a part of an array, for every pair of
 * operator and type that exists. The OpenMP backend runs them on a tile. Generated from the lists.
 *
 * Operands keep their order, the earlier element on the left, except in sums of numbers, which use
 * vectors (loops_sums.c) and may exchange operands. The parenthesisation depends only on begin and
 * end; in segments also on the lengths of neighbouring segments. Fold and scan process blocks of a
 * few elements with independent inner results, so that the latency of the operation does not limit
 * the throughput.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOOPS_H
#define LOOPS_H

#include <spmv/primitives.h>
#include <stdbool.h>

/* Storage for one element of any type. */
#define LOOPS_MEMBER_(NAME, name, value, T, CLASS, ARG) T name;
union any_element {
    SPMV_TYPES(LOOPS_MEMBER_, )
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

    /* Indexed by spmv_scan_kind. inclusive: out[i] = carry op in[begin] op ... op in[i]; exclusive:
     * the same without in[i]. stream: bypass the caches if possible; the bits are the same. */
    void (*scan[2])(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream);

    /* The same, restarted without carry at each i with heads[i - begin] != 0. */
    void (*segscan[2])(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin, int64_t end,
                       bool stream);

    /* out[s] = in[h_s] op ... op in[h_{s+1} - 1], or the identity for an empty segment, for
     * first <= s < last. h: the positions in heads, integers of the given bits. in has n
     * elements. */
    void (*segments)(const void *in, int64_t n, const void *heads, int bits, int64_t first, int64_t last, void *out);
};

/* The loops of a pair, which must exist. */
const struct op_loops *op_loops(spmv_op op, spmv_type type);

/* The fold of the elements before an element in its segment; some: whether there is one. */
struct carry {
    bool some;
    union any_element value;
};

/* The folds of the tiles of an array. */
struct tile_folds {
    const struct op_loops *loops;
    const void *in;
    void *part; /* the fold of each tile */
    int64_t n;
};

/* For tiles_each and tiles_chain: folds a tile. state: a struct tile_folds, or a struct that begins
 * with one. */
void tiles_fold(void *state, int64_t tile);

/* Sets the carry for a segment's head: none, or in an exclusive scan the identity. */
void carry_restart(const struct op_loops *loops, spmv_scan_kind kind, struct carry *carry);

/* carry = carry op part */
void carry_join(const struct op_loops *loops, struct carry *carry, const void *part);

/* Scans in[begin] .. in[end-1] from carry, restarted at each i with heads[i - begin] != 0 (heads
 * NULL: no restart). begin <= end; out may equal in. stream: bypass the caches if possible. */
void scan_from(const struct op_loops *loops, spmv_scan_kind kind, const struct carry *carry, const uint8_t *heads,
               const void *in, void *out, int64_t begin, int64_t end, bool stream);

/* Whether a result of n elements should bypass the caches: it does not fit in them and does not
 * overwrite the input. */
bool scan_streams(const struct op_loops *loops, const void *in, const void *out, int64_t n);

#endif
