/* Data-parallel primitives: map, gather, scatter, reduce, scan, segmented scan, segmented reduce,
 * compact, expand, sort, histogram.
 *
 * Common to all:
 * - Pointers are in the context's memory unless their name starts with host_.
 * - n is the number of elements, at least 0. With n == 0 the arrays may be NULL.
 * - Work is queued on the context's stream; on ref and omp it is done on return. A call that needs
 *   more scratch than any call before may wait while the context's scratch grows.
 * - Errors: SPMV_ERROR_TYPE (no such pair of operator and type), SPMV_ERROR_ARGUMENT (a negative
 *   size, a NULL array or context), SPMV_ERROR_MEMORY, SPMV_ERROR_CAPTURE, SPMV_ERROR_DEVICE.
 * - Same bits every run, and on omp for any number of threads: tiles are fixed by n, and partial
 *   results combine in tile order.
 * - The earlier element is the left operand. On cuda identities may stand between elements, so a
 *   sum of negative zeros alone may be +0. On omp an exclusive segmented scan may leave one out, so
 *   it may be -0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_PRIMITIVES_H
#define SPMV_PRIMITIVES_H

#include <spmv/context.h>
#include <spmv/operators.h>

SPMV_BEGIN_DECLS

typedef enum spmv_scan_kind { SPMV_INCLUSIVE = 0, SPMV_EXCLUSIVE = 1 } spmv_scan_kind;

/* out[i] = function(in[i]), 0 <= i < n. out may equal in, no other overlap. */
SPMV_API spmv_status spmv_map(spmv_context *ctx, spmv_function function, spmv_type type, const void *in, void *out,
                              int64_t n);

/* out[i] = a[i] op b[i], 0 <= i < n. out may equal a or b (or both), no other overlap. */
SPMV_API spmv_status spmv_map_binary(spmv_context *ctx, spmv_op op, spmv_type type, const void *a, const void *b,
                                     void *out, int64_t n);

/* out[i] = s op in[i] with s = *host_scalar, read before the call returns. out may equal in, no
 * other overlap. */
SPMV_API spmv_status spmv_map_scalar(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_scalar,
                                     const void *in, void *out, int64_t n);

/* out[i] = first + i * step with first = *host_first, step = *host_step (step NULL: 0, a fill); the
 * product and the sum are each rounded (reals) or wrap (integers). i is converted to the type
 * first. */
SPMV_API spmv_status spmv_map_index(spmv_context *ctx, spmv_type type, const void *host_first, const void *host_step,
                                    void *out, int64_t n);

/* out[i] = a[i] / b[i], 0 <= i < n; SPMV_F32 and SPMV_F64. out may equal a or b, no other overlap.
 */
SPMV_API spmv_status spmv_map_divide(spmv_context *ctx, spmv_type type, const void *a, const void *b, void *out,
                                     int64_t n);

/* y[i] = alpha x[i] + beta y[i], 0 <= i < n, with alpha and beta one element each in the context's
 * memory (NULL: 1), for instance the result of spmv_dot. SPMV_F32 and SPMV_F64; products
 * and sum are rounded one by one. x and y do not overlap. BLAS axpby (Blackford et al., "An updated
 * set of basic linear algebra subprograms", TOMS 28(2), 2002).
 */
SPMV_API spmv_status spmv_map_axpby(spmv_context *ctx, spmv_type type, const void *alpha, const void *x,
                                    const void *beta, void *y, int64_t n);

/* *out = sum_i x[i] y[i]: a map fused into a reduce; 0 when n == 0. SPMV_F32 and SPMV_F64. x may
 * equal y. out: one element in the context's memory, not in x or y. How the sum is parenthesised is
 * fixed by n. */
SPMV_API spmv_status spmv_dot(spmv_context *ctx, spmv_type type, const void *x, const void *y, void *out, int64_t n);

/* out[i] = in[index[i]], 0 <= i < n, where 0 <= index[i] < in_n; an element whose index lies
 * outside is left out: out[i] keeps its value (the lectures' filtered gather: mark elements with
 * -1). index: n entries of index_bits (32 or 64) bits, signed. in: in_n elements. No overlap. */
SPMV_API spmv_status spmv_gather(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                                 int index_bits, void *out, int64_t n);

/* out[index[i]] = in[i], 0 <= i < n, where 0 <= index[i] < out_n; an element whose index lies
 * outside is left out. Cells of out (out_n elements) that are not written keep their value. No
 * index may occur twice: which of its elements would win is not defined. index: n entries of
 * index_bits (32 or 64) bits, signed. No overlap. */
SPMV_API spmv_status spmv_scatter(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits,
                                  void *out, int64_t out_n, int64_t n);

/* Gather and scatter with a filter: as above, and element i is also left out
 *   masked: where mask[i] == 0 (n bytes, no overlap with out); what its index would name is not read;
 *   if:     where predicate(element, *host_scalar) is not `when` (1: true, 0: false). The element is the one that would
 *           move: in[index[i]] of a gather, in[i] of a scatter. The scalar is read before the call returns; NULL will
 *           do for nonzero. */
SPMV_API spmv_status spmv_gather_masked(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n,
                                        const void *index, int index_bits, const uint8_t *mask, void *out, int64_t n);
SPMV_API spmv_status spmv_gather_if(spmv_context *ctx, spmv_predicate predicate, int when, spmv_type type,
                                    const void *host_scalar, const void *in, int64_t in_n, const void *index,
                                    int index_bits, void *out, int64_t n);
SPMV_API spmv_status spmv_scatter_masked(spmv_context *ctx, spmv_type type, const void *in, const void *index,
                                         int index_bits, const uint8_t *mask, void *out, int64_t out_n, int64_t n);
SPMV_API spmv_status spmv_scatter_if(spmv_context *ctx, spmv_predicate predicate, int when, spmv_type type,
                                     const void *host_scalar, const void *in, const void *index, int index_bits,
                                     void *out, int64_t out_n, int64_t n);

/* The checked mode of both: SPMV_ERROR_SIZE, naming the first entry, when one of n entries of index
 * is not in [lowest, limit). lowest 0: none may be left out; -1: -1 may mark entries to leave out.
 * Waits for the result. */
SPMV_API spmv_status spmv_index_check(spmv_context *ctx, const void *index, int index_bits, int64_t lowest,
                                      int64_t limit, int64_t n);

/* Compact: out = the in[i] that are kept, in order, and *count their number (0 when n == 0; one
 * cell in the context's memory). Kept are those with flags[i] != 0 (n bytes), or those for which
 * predicate(in[i], *host_scalar) is `when` (1: true, 0: false; the scalar is read before the call
 * returns, NULL will do for nonzero). out: room for the elements kept, no more is written. No
 * overlap: elements move to places that others are still read from. G. E. Blelloch, "Prefix sums
 * and their applications", 1990, section 1.3 (pack). */
SPMV_API spmv_status spmv_compact(spmv_context *ctx, spmv_type type, const void *in, const uint8_t *flags, void *out,
                                  int64_t *count, int64_t n);
SPMV_API spmv_status spmv_compact_if(spmv_context *ctx, spmv_predicate predicate, int when, spmv_type type,
                                     const void *host_scalar, const void *in, void *out, int64_t *count, int64_t n);

/* The same with flags that are bits: kept are those whose bit is 1; bits: ceil(n / 32) words
 * (spmv_flags_pack). */
SPMV_API spmv_status spmv_compact_bits(spmv_context *ctx, spmv_type type, const void *in, const uint32_t *bits,
                                       void *out, int64_t *count, int64_t n);

/* spmv_compact by the method of that name (NULL, "auto": the first); SPMV_ERROR_METHOD when there
 * is none. map-scan-scatter needs 8 bytes of scratch an element; on cuda there is count-write too,
 * the rung below the first. */
SPMV_API spmv_status spmv_compact_by(spmv_context *ctx, const char *method, spmv_type type, const void *in,
                                     const uint8_t *flags, void *out, int64_t *count, int64_t n);

/* The name of a backend's method of compact: 0, 1, ... until NULL. */
SPMV_API const char *spmv_compact_method_name(spmv_backend backend, int index);

/* Generalised compact: element i makes counts[i] outputs, which lie behind those of the elements
 * before it.
 *   offsets[i] = counts[0] + ... + counts[i-1], 0 <= i <= n; so offsets[n] is the number of all outputs.
 * counts: n entries of count_bits (32 or 64) bits, signed; a negative one counts as 0. offsets: n +
 * 1 cells; may equal counts of 64 bits, no other overlap. */
SPMV_API spmv_status spmv_expand_offsets(spmv_context *ctx, const void *counts, int count_bits, int64_t *offsets,
                                         int64_t n);

/* How outputs are made: each element writes its own (scatter), or each output finds its element
 * (gather). Both give the same result. */
typedef enum spmv_expand_form { SPMV_EXPAND_SCATTER = 1, SPMV_EXPAND_GATHER = 2 } spmv_expand_form;

/* Output j < min(total, offsets[n]) is the k-th (from 0) of element i, with offsets[i] <= j <
 * offsets[i+1], k = j - offsets[i]:
 *   out[j] = in[i],  source[j] = i,  rank[j] = k.
 * Each of out, source and rank may be NULL: not wanted. in: n elements, NULL when out is. offsets:
 * as spmv_expand_offsets makes them. source, rank: index_bits (32 or 64) bits an entry; 32 need n
 * and total below 2^31 (SPMV_ERROR_SIZE). total: cells of each output. No overlap. */
SPMV_API spmv_status spmv_expand(spmv_context *ctx, spmv_expand_form form, spmv_type type, const void *in,
                                 const int64_t *offsets, int64_t n, int index_bits, void *out, void *source, void *rank,
                                 int64_t total);

/* *out = in[0] op in[1] op ... op in[n-1]; the identity when n == 0. out: one element in the
 * context's memory, not in in. The order of the operands is kept where op does not commute; else it
 * is fixed by n, as is how they are parenthesised. */
SPMV_API spmv_status spmv_reduce(spmv_context *ctx, spmv_op op, spmv_type type, const void *in, void *out, int64_t n);

/* *out = f(in[0]) op f(in[1]) op ... op f(in[n-1]) with f = function; the identity when n == 0. The
 * bits of spmv_map and then spmv_reduce, but in is read once and no array is written. out as in
 * spmv_reduce. */
SPMV_API spmv_status spmv_map_reduce(spmv_context *ctx, spmv_function function, spmv_op op, spmv_type type,
                                     const void *in, void *out, int64_t n);

/* spmv_reduce by a rung of the ladder, for learning and measuring; NULL and "auto": spmv_reduce
 * itself. How operands are parenthesised, and with rungs that need op to commute their order, is
 * fixed by n and the rung: the same bits every run, but for the rung "atomic" on f32 and f64, whose
 * bits may differ from run to run. A rung whose name ends in ":host" brings the last few partial
 * results to the host and finishes there: it waits, and cannot be captured in a graph. Some rungs
 * need scratch that grows with n. SPMV_ERROR_METHOD: the backend has no such rung (the sentence
 * lists them); SPMV_ERROR_COMMUTE: the rung changes the order of the operands and op does not
 * commute. */
SPMV_API spmv_status spmv_reduce_rung(spmv_context *ctx, const char *rung, spmv_op op, spmv_type type, const void *in,
                                      void *out, int64_t n);

/* The names of a backend's rungs, the simplest first: spmv_reduce_rung_name(backend, 0), ... until
 * NULL. */
SPMV_API const char *spmv_reduce_rung_name(spmv_backend backend, int index);

/* out[i] = in[0] op ... op in[i]              (inclusive)
 * out[i] = identity op in[0] ... op in[i-1]   (exclusive), 0 <= i < n.
 * out may equal in, no other overlap. How the operands are parenthesised is fixed by n.
 * W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 29(12), 1986; Blelloch 1990. */
SPMV_API spmv_status spmv_scan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in,
                               void *out, int64_t n);

/* out[i] = f(in[0]) op ... op f(in[i]) (inclusive) out[i] = identity op f(in[0]) ... op f(in[i-1])
 * (exclusive), with f = function. The bits of spmv_map and then spmv_scan, but in is read once and
 * no array is written between the two. out may equal in, no other overlap. */
SPMV_API spmv_status spmv_map_scan(spmv_context *ctx, spmv_function function, spmv_scan_kind kind, spmv_op op,
                                   spmv_type type, const void *in, void *out, int64_t n);

/* Scan and reduce of host arrays, which need not fit the context's memory. On cuda pieces go up,
 * are worked on, and come back, all at the same time; on ref and omp, whose memory is the host's,
 * these are spmv_scan and spmv_reduce. */
typedef struct spmv_pieces_options {
    size_t size;
    int64_t piece_bytes; /* cuda: of a piece, three of which are on the device at once, and six in
                            page-locked buffers; rounded to whole units of 2^20 elements, at least
                            one. default 0: 8 MiB, less where the device has no room. The result
                            does not depend on it. */
} spmv_pieces_options;

SPMV_API void spmv_pieces_options_init(spmv_pieces_options *options, size_t size);

/* As spmv_scan, from host_in to host_out, n elements each in host memory; host_out may equal
 * host_in, no other overlap. Any operator and type. Waits: the result is there on return. Operands
 * are parenthesised unit by unit from left to right: the same bits every run and for every
 * piece_bytes (not, where sums round, those of spmv_scan on cuda). Page-locked arrays are copied
 * from and to directly; for others the context keeps its buffers for the next call. Progress is
 * told through the context's events, in elements; cancelled (SPMV_CANCELLED) or failed, host_out
 * holds results up to some element, and after it what it held before. SPMV_ERROR_CAPTURE while the
 * stream is captured. options NULL: defaults. */
SPMV_API spmv_status spmv_scan_host(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                                    const void *host_in, void *host_out, int64_t n, const spmv_pieces_options *options);

/* As spmv_reduce, of n elements at host_in in host memory, into one element at host_out there, not
 * in host_in; otherwise as spmv_scan_host. host_out is written on success alone. */
SPMV_API spmv_status spmv_reduce_host(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_in,
                                      void *host_out, int64_t n, const spmv_pieces_options *options);

/* spmv_scan by a rung of the ladder, by name: spmv_scan_rung_name lists those of a backend;
 * docs/ladder.md tells what each does. "NAME" or, for rungs that scan block by block, "NAME:BLOCK"
 * with the elements of a block, a power of two from 2 to 1024 ("blelloch:64"). NULL or "auto":
 * spmv_scan. All keep the order of the operands. The parentheses are fixed by n, the rung and the
 * block. "definition" takes at most 131072 elements (SPMV_ERROR_SIZE above). Teaching rungs take
 * numbers, no tuples (SPMV_ERROR_TYPE). An unknown name is SPMV_ERROR_METHOD, with a sentence that
 * lists the known ones. */
SPMV_API spmv_status spmv_scan_rung(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                    spmv_type type, const void *in, void *out, int64_t n);

/* The name of a backend's rung: index 0, 1, ... until NULL. */
SPMV_API const char *spmv_scan_rung_name(spmv_backend backend, int index);

/* Block scan: each run of block elements (the last may be shorter) scanned by itself, nothing
 * propagated: for element i, with h = i - i % block, out[i] = in[h] op ... op in[i] (inclusive),
 * identity op in[h] ... op in[i-1] (exclusive). sums[b] = the fold of block b, of ceil(n / block),
 * taken while the block is scanned; NULL: not wanted. block: a power of two from 2 to 1024. rung:
 * one that scans block by block; NULL or "auto": the backend's choice. out may equal in; sums
 * overlaps neither. */
SPMV_API spmv_status spmv_block_scan(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                     spmv_type type, const void *in, void *out, void *sums, int64_t block, int64_t n);

/* sums[b] = the fold of block b, read off the block scan of in: a step of its own after one without
 * sums. kind: of the scan. in: read for an exclusive scan alone, which lacks the last element, and
 * must then not be overwritten (else SPMV_ERROR_ARGUMENT); inclusive: may be NULL. No overlap with
 * sums. */
SPMV_API spmv_status spmv_block_sums(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in,
                                     const void *scanned, void *sums, int64_t block, int64_t n);

/* What a rung holds after a step. Everything lives as long as the call of the trace. */
typedef struct spmv_trace {
    const char *launch;     /* the kernel's name */
    const char *label;      /* what the step did */
    int64_t block;          /* of the launch */
    int step;               /* of the block: 0, 1, ... */
    const void *host_cells; /* the block's array, n elements; NULL when n == 0 */
    int64_t n;
    spmv_type type;
    int64_t operations;        /* applications of the operator since the call began */
    const uint8_t *host_heads; /* segmented scan: 1 where a segment starts in what the cell stands
                                  for; else NULL */
    int idle;                  /* 1: the threads fold only the identity behind the last element in this step */
} spmv_trace;

typedef void (*spmv_trace_fn)(const spmv_trace *trace, void *user);

/* spmv_scan_rung on the host, whatever the backend, with the steps shown one by one: the very rung
 * that a GPU runs (the names are those of the backend ref; NULL or "auto": "blelloch"). host_in,
 * host_out: n elements in host memory. trace is called after each step of each block. */
SPMV_API spmv_status spmv_scan_trace(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                     spmv_type type, const void *host_in, void *host_out, int64_t n,
                                     spmv_trace_fn trace, void *user);

/* spmv_reduce_rung on the host, whatever the backend, with the steps shown one by one, as
 * spmv_scan_trace does (the names are those of the backend ref; NULL or "auto": "divergent";
 * "serial" has no steps: SPMV_ERROR_METHOD). host_in: n elements, host_out: one, in host memory.
 * The cells are what a block's threads hold. */
SPMV_API spmv_status spmv_reduce_trace(spmv_context *ctx, const char *rung, spmv_op op, spmv_type type,
                                       const void *host_in, void *host_out, int64_t n, spmv_trace_fn trace, void *user);

/* How n elements are cut into segments. */
typedef enum spmv_segment_form {
    SPMV_SEGMENT_FLAGS = 1,  /* heads: n bytes, or bits (spmv_flags_pack); not 0 starts a segment,
                                element 0 always */
    SPMV_SEGMENT_STARTS = 2, /* heads: count starting positions, no closing one; the last segment
                                ends at n */
    SPMV_SEGMENT_OFFSETS = 3 /* heads: count + 1 positions, the closing one n: a CSR row pointer */
} spmv_segment_form;

typedef struct spmv_segments {
    spmv_segment_form form;
    const void *heads; /* in the context's memory */
    int bits;          /* STARTS, OFFSETS: 32 or 64, signed entries; FLAGS: 8 (bytes) or 1 */
    int64_t count;     /* STARTS, OFFSETS: number of segments; FLAGS: not used */
} spmv_segments;

/* Flags as bits: flag i is bit i % 32, the lowest first, of 32-bit word i / 32 (on a little-endian
 * machine the bytes in memory, too, have the flags in order). pack: bit i = flags[i] != 0, 0 <= i <
 * n; bits: ceil(n / 32) words, and what the last has beyond flag n - 1 becomes 0. unpack: flags[i]
 * = 1 or 0. A function that takes flags as bits reads ceil(n / 32) words and ignores the bits
 * beyond flag n - 1. No overlap. */
SPMV_API spmv_status spmv_flags_pack(spmv_context *ctx, const uint8_t *flags, uint32_t *bits, int64_t n);
SPMV_API spmv_status spmv_flags_unpack(spmv_context *ctx, const uint32_t *bits, uint8_t *flags, int64_t n);

/* Positions ascend from 0 to at most n; equal neighbours are empty segments; n > 0 needs count >=
 * 1. ref and omp check this and return SPMV_ERROR_SIZE (naming the entry); on cuda it is the
 * caller's promise. */

/* Scan restarted at each segment's head: for element i of the segment that starts at h, out[i] =
 * in[h] op ... op in[i] (inclusive), identity op in[h] ... op in[i-1] (exclusive). out may equal
 * in, no other overlap. S. Sengupta et al., "Scan primitives for GPU computing", 2007. */
SPMV_API spmv_status spmv_segscan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                                  const spmv_segments *segments, const void *in, void *out, int64_t n);

/* The same by a rung of the ladder, by name: a rung of scan, applied to (value, head) pairs with
 * the operator
 *   (v, f) op (w, g) = (g ? w : v op w, f or g),
 * which is associative and does not commute. Names as for spmv_scan_rung, "NAME" or "NAME:BLOCK",
 * from spmv_segscan_rung_name; NULL or "auto": spmv_segscan, whose own method has a name too
 * ("serial", "tiles", "single-pass"). flags: n bytes, not 0 where a segment starts; element 0
 * always starts one. out may equal in, no other overlap. Teaching rungs exist for SPMV_ADD and
 * SPMV_LAST on SPMV_F32, SPMV_F64 and SPMV_I32; anything else is SPMV_ERROR_TYPE. They need up to
 * two pairs of scratch an element. Parentheses, the limit of "definition", and an unknown name: as
 * for spmv_scan_rung. J. T. Schwartz, "Ultracomputers", TOPLAS 2(4), 1980; Sengupta et al. 2007. */
SPMV_API spmv_status spmv_segscan_rung(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                       spmv_type type, const uint8_t *flags, const void *in, void *out, int64_t n);

/* The name of a backend's rung: index 0, 1, ... until NULL. */
SPMV_API const char *spmv_segscan_rung_name(spmv_backend backend, int index);

/* spmv_segscan_rung on the host, whatever the backend, with the steps shown one by one, as
 * spmv_scan_trace does (the names are those of the backend ref; NULL or "auto": "blelloch";
 * "serial" has no steps: SPMV_ERROR_METHOD). The cells are the values of the pairs that the rung
 * holds, host_heads of the trace their heads; an operation is one on pairs.
 */
SPMV_API spmv_status spmv_segscan_trace(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                        spmv_type type, const uint8_t *host_flags, const void *host_in, void *host_out,
                                        int64_t n, spmv_trace_fn trace, void *user);

/* out[s] = in[h_s] op ... op in[h_{s+1} - 1], the identity for an empty segment, 0 <= s <
 * segments->count. Forms STARTS and OFFSETS only (with FLAGS the number of results is not known:
 * SPMV_ERROR_ARGUMENT). out: count elements, no overlap. */
SPMV_API spmv_status spmv_segreduce(spmv_context *ctx, spmv_op op, spmv_type type, const spmv_segments *segments,
                                    const void *in, void *out, int64_t n);

/* out_keys = in_keys in ascending order, stably: elements of equal keys keep their order;
 * out_values moved along: out_values[k] = in_values[i] for the i with out_keys[k] = in_keys[i].
 * key_type: SPMV_I32, I64, F32, F64; reals in the total order of IEEE 754 (-0 before +0, NaN beyond
 * the infinities, by its sign). Only the bits begin_bit <= b < end_bit count, 0 the lowest, end_bit
 * at most the key's width; fewer bits are fewer passes. Below the highest, bits of integers are
 * compared as a number without sign; the bits of a real are those of its place in the total order.
 * in_values, out_values: n elements of value_bytes (4 or 8); value_bytes 0: no values, both NULL.
 * out_keys may equal in_keys, out_values in_values, no other overlap. One result, the same on every
 * backend and rung. Needs room for the n elements once more, kept with the context for the next
 * call: a call that needs more than any before waits, and is SPMV_ERROR_CAPTURE while the stream is
 * captured; a captured sort must not be launched any more after a larger one on its context. H. H.
 * Seward, 1954; M. Zagha, G. E. Blelloch, "Radix sort for vector multiprocessors", SC 1991. */
SPMV_API spmv_status spmv_sort_by_key(spmv_context *ctx, spmv_type key_type, int begin_bit, int end_bit,
                                      const void *in_keys, const void *in_values, int value_bytes, void *out_keys,
                                      void *out_values, int64_t n);

/* The same by a rung of the context's backend; NULL or "auto": its best. An unknown name is
 * SPMV_ERROR_METHOD, and the sentence lists the names. */
SPMV_API spmv_status spmv_sort_rung(spmv_context *ctx, const char *rung, spmv_type key_type, int begin_bit, int end_bit,
                                    const void *in_keys, const void *in_values, int value_bytes, void *out_keys,
                                    void *out_values, int64_t n);

/* The name of rung index of a backend, from 0; NULL behind the last, and for a backend that is not
 * in this build. */
SPMV_API const char *spmv_sort_rung_name(spmv_backend backend, int index);

/* counts[b] = how many i have index[i] == b, 0 <= b < bins; *left_out (NULL: not wanted) how many
 * have an index outside. counts and left_out are of count_type, SPMV_I32 or SPMV_I64 (sums wrap),
 * in the context's memory. No overlap. */
SPMV_API spmv_status spmv_histogram(spmv_context *ctx, spmv_type count_type, const int32_t *index, void *counts,
                                    int64_t bins, void *left_out, int64_t n);

/* As spmv_sort_rung and spmv_sort_rung_name. */
SPMV_API spmv_status spmv_histogram_rung(spmv_context *ctx, const char *rung, spmv_type count_type,
                                         const int32_t *index, void *counts, int64_t bins, void *left_out, int64_t n);
SPMV_API const char *spmv_histogram_rung_name(spmv_backend backend, int index);

/* What a rung of a ladder costs and where its source is. n: elements, B: elements of a block, p: threads. */
typedef struct spmv_rung_info {
    size_t size;
    const char *source; /* its file, from the top of the source tree */
    const char *work;   /* operations in all, such as "n log2 B - n + n/B" */
    const char *depth;  /* operations that wait for one another */
} spmv_rung_info;

/* primitive: "scan", "segscan", "reduce", "expand", "gather", "sort" or "histogram"; rung: a name of any backend, also
 * "NAME:BLOCK". A pair without a description: SPMV_ERROR_METHOD. size: sizeof(spmv_rung_info) as the caller sees it.
 * The texts are static. */
SPMV_API spmv_status spmv_rung_describe(spmv_context *ctx, const char *primitive, const char *rung,
                                        spmv_rung_info *info, size_t size);

SPMV_END_DECLS

#endif
