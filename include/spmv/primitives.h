/* Data-parallel primitives on arrays: map, gather, scatter, reduce, scan, segmented scan, segmented
 * reduce, compact, expand, sort, histogram. For example, the prefix sums of n numbers:
 *
 *     spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, in, out, n);
 *     spmv_download(ctx, out, host_out, n * sizeof(double));
 *
 * operators.h lists operators, map functions and predicates, types.h the element types. CUDA
 * programs can use operators and types of their own: spmv/device.cuh.
 *
 * The following rules hold for every function unless its comment says otherwise.
 *
 * Arguments. Arrays are in the context's memory unless the parameter's name begins with host_. n is
 * the number of elements, at least 0. With n == 0 arrays may be NULL. A host scalar is read before
 * the call returns.
 *
 * Queued. On cuda the work is queued on the context's stream; on ref and omp it is done on return.
 * A call that needs more scratch memory than every call before may wait while the scratch grows.
 *
 * Errors. SPMV_ERROR_TYPE (the operator does not take the type), SPMV_ERROR_ARGUMENT (a negative
 * size, a NULL array or context), SPMV_ERROR_MEMORY, SPMV_ERROR_CAPTURE, SPMV_ERROR_DEVICE.
 * Comments list further errors only.
 *
 * Order. The earlier element is the left operand, so an operator need not commute.
 *
 * Determinism. The same bits every run and, on omp, for any number of threads: arrays are cut into
 * tiles that depend on n only, and the results of tiles are combined in order. How operands are
 * grouped depends on the backend, the type and n.
 *
 * Signed zeros. On cuda the identity may be combined with elements, so a sum of negative zeros may
 * be +0. On omp an exclusive segmented scan may leave the identity out, so a result may be -0.
 *
 * Rungs. A primitive has several implementations, from simple to fast, which are called the rungs
 * of its ladder (docs/ladder.md). A function ..._rung runs one of them by name, for learning and
 * measuring; NULL and "auto" mean the default. A function ..._rung_name(backend, index) returns the
 * names for index 0, 1, ..., the simplest first, and NULL after the last one and for a backend that
 * is not in this build. An unknown name gives SPMV_ERROR_METHOD; the message lists the names.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_PRIMITIVES_H
#define SPMV_PRIMITIVES_H

#include <spmv/context.h>
#include <spmv/operators.h>

SPMV_BEGIN_DECLS

/* Inclusive: result i contains element i. Exclusive: it ends with element i - 1. */
typedef enum spmv_scan_kind { SPMV_INCLUSIVE = 0, SPMV_EXCLUSIVE = 1 } spmv_scan_kind;

/* -------------------------------------------------------------------- map */

/* out[i] = function(in[i]), 0 <= i < n.
 *
 *   in, out  n elements each
 *
 * Aliasing: out may equal in; no other overlap. */
SPMV_API spmv_status spmv_map(spmv_context *ctx, spmv_function function, spmv_type type, const void *in, void *out,
                              int64_t n);

/* out[i] = a[i] op b[i], 0 <= i < n.
 *
 *   a, b, out  n elements each
 *
 * Aliasing: out may equal a, b or both; no other overlap. */
SPMV_API spmv_status spmv_map_binary(spmv_context *ctx, spmv_op op, spmv_type type, const void *a, const void *b,
                                     void *out, int64_t n);

/* out[i] = *host_scalar op in[i], 0 <= i < n.
 *
 *   host_scalar  one element
 *   in, out      n elements each
 *
 * Aliasing: out may equal in; no other overlap. */
SPMV_API spmv_status spmv_map_scalar(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_scalar,
                                     const void *in, void *out, int64_t n);

/* out[i] = *host_first + i * *host_step, 0 <= i < n. i is converted to the type. The product and
 * the sum are rounded separately (real types) or wrap around (integers).
 *
 *   type                   an integer or real type
 *   host_first, host_step  one element each; host_step NULL: 0, which fills out with *host_first
 *   out                    n elements */
SPMV_API spmv_status spmv_map_index(spmv_context *ctx, spmv_type type, const void *host_first, const void *host_step,
                                    void *out, int64_t n);

/* out[i] = a[i] / b[i], 0 <= i < n.
 *
 *   type       SPMV_F32 or SPMV_F64
 *   a, b, out  n elements each
 *
 * Aliasing: out may equal a or b; no other overlap. */
SPMV_API spmv_status spmv_map_divide(spmv_context *ctx, spmv_type type, const void *a, const void *b, void *out,
                                     int64_t n);

/* y[i] = alpha x[i] + beta y[i], 0 <= i < n. Products and the sum are rounded separately.
 *
 *   type         SPMV_F32 or SPMV_F64
 *   alpha, beta  one element each in the context's memory, such as the result of spmv_dot; NULL
 *                means 1
 *   x, y         n elements each
 *
 * Aliasing: no overlap of x and y.
 * Source: axpby of L. S. Blackford et al., "An updated set of basic linear algebra subprograms
 * (BLAS)", ACM TOMS 28(2), 2002. */
SPMV_API spmv_status spmv_map_axpby(spmv_context *ctx, spmv_type type, const void *alpha, const void *x,
                                    const void *beta, void *y, int64_t n);

/* *out = sum_i x[i] y[i], 0 <= i < n; 0 if n == 0. The products are not stored. On ref the sum is
 * computed in long double.
 *
 *   type  SPMV_F32 or SPMV_F64
 *   x, y  n elements each
 *   out   one element in the context's memory
 *
 * Aliasing: x may equal y; out is not part of x or y. */
SPMV_API spmv_status spmv_dot(spmv_context *ctx, spmv_type type, const void *x, const void *y, void *out, int64_t n);

/* ----------------------------------------------------- gather and scatter */

/* out[i] = in[index[i]], 0 <= i < n, for each i with 0 <= index[i] < in_n. For any other index
 * out[i] keeps its value; -1 can mark such elements (filtered gather).
 *
 *   in          in_n elements
 *   index       n signed integers
 *   index_bits  bits of an index: 32 or 64
 *   out         n elements
 *
 * Aliasing: no overlap. */
SPMV_API spmv_status spmv_gather(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                                 int index_bits, void *out, int64_t n);

/* out[index[i]] = in[i], 0 <= i < n, for each i with 0 <= index[i] < out_n. Elements with any other
 * index are ignored. Elements of out that are not written keep their value.
 *
 *   in          n elements
 *   index       n signed integers; none may occur twice, otherwise one of its elements is written,
 *               it is not specified which
 *   index_bits  bits of an index: 32 or 64
 *   out         out_n elements
 *
 * Aliasing: no overlap. */
SPMV_API spmv_status spmv_scatter(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits,
                                  void *out, int64_t out_n, int64_t n);

/* Gather and scatter of selected elements. In addition to the rules above, element i is not moved
 *   masked  if mask[i] == 0. Its index may then have any value; the element is not read.
 *   if      if predicate(element, *host_scalar) differs from when. The element is the one that
 *           would move: in[index[i]] for gather, in[i] for scatter.
 *
 *   mask         n bytes
 *   when         1: move elements for which the predicate is true, 0: for which it is false
 *   host_scalar  one element; may be NULL for SPMV_IS_NONZERO
 *
 * Aliasing: no overlap. Other parameters: as for spmv_gather and spmv_scatter. */
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

/* Checks that lowest <= index[i] < limit, 0 <= i < n, before a gather or scatter. Waits.
 *
 *   index          n signed integers
 *   index_bits     bits of an index: 32 or 64
 *   lowest, limit  0 and the number of elements; lowest -1 if -1 marks elements to leave out
 *
 * Further errors: SPMV_ERROR_SIZE (an index out of range; the message names the first one). */
SPMV_API spmv_status spmv_index_check(spmv_context *ctx, const void *index, int index_bits, int64_t lowest,
                                      int64_t limit, int64_t n);

/* ----------------------------------------------------- compact and expand */

/* Copies the selected elements of in to out, in order, and writes their number to *count. Selected
 * are the elements with
 *   spmv_compact       flags[i] != 0
 *   spmv_compact_if    predicate(in[i], *host_scalar) == when
 *   spmv_compact_bits  bit i of bits set (below; spmv_flags_pack)
 *
 *   in           n elements
 *   flags        n bytes
 *   when         1: select elements for which the predicate is true, 0: for which it is false
 *   host_scalar  one element; may be NULL for SPMV_IS_NONZERO
 *   out          room for the selected elements; no more is written
 *   count        one number in the context's memory; 0 if n == 0
 *
 * Aliasing: no overlap, because elements move to places that are still read.
 * Source: pack, section 1.3 of G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190,
 * 1990. */
SPMV_API spmv_status spmv_compact(spmv_context *ctx, spmv_type type, const void *in, const uint8_t *flags, void *out,
                                  int64_t *count, int64_t n);
SPMV_API spmv_status spmv_compact_if(spmv_context *ctx, spmv_predicate predicate, int when, spmv_type type,
                                     const void *host_scalar, const void *in, void *out, int64_t *count, int64_t n);

/* As spmv_compact, with flags as bits.
 *
 *   bits  ceil(n / 32) words as spmv_flags_pack makes them */
SPMV_API spmv_status spmv_compact_bits(spmv_context *ctx, spmv_type type, const void *in, const uint32_t *bits,
                                       void *out, int64_t *count, int64_t n);

/* As spmv_compact, by a rung.
 *
 *   rung  a name from spmv_compact_rung_name; NULL or "auto": the first. map-scan-scatter needs
 *         8 bytes of scratch per element.
 *
 * Further errors: SPMV_ERROR_METHOD (no such rung; the message lists the names). */
SPMV_API spmv_status spmv_compact_by(spmv_context *ctx, const char *rung, spmv_type type, const void *in,
                                     const uint8_t *flags, void *out, int64_t *count, int64_t n);

/* The names of the rungs of compact on a backend, the default first: 0, 1, ... until NULL. Static
 * storage. */
SPMV_API const char *spmv_compact_rung_name(spmv_backend backend, int index);

/* Generalised compact, first part: element i makes counts[i] outputs, which follow those of the
 * elements before it. offsets[i] = counts[0] + ... + counts[i - 1], 0 <= i <= n. So offsets[n] is
 * the number of all outputs.
 *
 *   counts      n signed integers; a negative one counts as 0
 *   count_bits  bits of a count: 32 or 64
 *   offsets     n + 1 numbers
 *
 * Aliasing: offsets may equal counts of 64 bits; no other overlap. */
SPMV_API spmv_status spmv_expand_offsets(spmv_context *ctx, const void *counts, int count_bits, int64_t *offsets,
                                         int64_t n);

/* How spmv_expand makes outputs: each element writes its own (scatter), or each output finds its
 * element (gather). Both give the same result. */
typedef enum spmv_expand_form { SPMV_EXPAND_SCATTER = 1, SPMV_EXPAND_GATHER = 2 } spmv_expand_form;

/* Generalised compact, second part: writes the outputs. Output j, 0 <= j < min(total, offsets[n]),
 * belongs to the element i with offsets[i] <= j < offsets[i + 1]:
 *
 *     out[j] = in[i],  source[j] = i,  rank[j] = j - offsets[i]
 *
 *   in            n elements; may be NULL if out is NULL
 *   offsets       n + 1 numbers as spmv_expand_offsets makes them
 *   index_bits    bits of an entry of source and rank: 32 or 64
 *   out           total elements; NULL: not wanted
 *   source, rank  total signed integers each; NULL: not wanted
 *
 * Aliasing: no overlap.
 * Further errors: SPMV_ERROR_SIZE (index_bits is 32, and n or total is 2^31 or more). */
SPMV_API spmv_status spmv_expand(spmv_context *ctx, spmv_expand_form form, spmv_type type, const void *in,
                                 const int64_t *offsets, int64_t n, int index_bits, void *out, void *source, void *rank,
                                 int64_t total);

/* ----------------------------------------------------------------- reduce */

/* *out = in[0] op in[1] op ... op in[n - 1]; the identity if n == 0. If op commutes, the operands
 * may be taken in another order, which depends on n only.
 *
 *   in   n elements
 *   out  one element in the context's memory
 *
 * Aliasing: out is not part of in. */
SPMV_API spmv_status spmv_reduce(spmv_context *ctx, spmv_op op, spmv_type type, const void *in, void *out, int64_t n);

/* *out = f(in[0]) op f(in[1]) op ... op f(in[n - 1]) with f = function; the identity if n == 0. It
 * gives the bits of spmv_map followed by spmv_reduce, but reads the input once and stores no
 * array in between. Parameters and aliasing: as for spmv_reduce. */
SPMV_API spmv_status spmv_map_reduce(spmv_context *ctx, spmv_function function, spmv_op op, spmv_type type,
                                     const void *in, void *out, int64_t n);

/* spmv_reduce by a rung.
 *
 *   rung  a name from spmv_reduce_rung_name. A rung whose name ends in ":host" (cuda) combines the
 *         last partial results on the host: it waits and cannot be captured in a graph. Some rungs
 *         need scratch in proportion to n.
 * Other parameters and aliasing: as for spmv_reduce.
 *
 * Further errors: SPMV_ERROR_METHOD, SPMV_ERROR_COMMUTE (the rung changes the order of the operands
 * and op does not commute).
 * Determinism: order and grouping depend on n and the rung. Exception: on cuda the bits of the rung
 * "atomic" for f32 and f64 may differ from run to run. */
SPMV_API spmv_status spmv_reduce_rung(spmv_context *ctx, const char *rung, spmv_op op, spmv_type type, const void *in,
                                      void *out, int64_t n);

/* The names of the rungs of reduce on a backend: 0, 1, ... until NULL. Static storage. */
SPMV_API const char *spmv_reduce_rung_name(spmv_backend backend, int index);

/* ------------------------------------------------------------------- scan */

/* Scan (prefix sums with any operator), 0 <= i < n:
 *
 *     inclusive  out[i] = in[0] op ... op in[i]
 *     exclusive  out[i] = identity op in[0] op ... op in[i - 1]
 *
 *   in, out  n elements each
 *
 * Aliasing: out may equal in; no other overlap.
 * Source: W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 29(12), 1986; Blelloch
 * 1990. */
SPMV_API spmv_status spmv_scan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in,
                               void *out, int64_t n);

/* A scan of f(in[i]) with f = function:
 *
 *     inclusive  out[i] = f(in[0]) op ... op f(in[i])
 *     exclusive  out[i] = identity op f(in[0]) op ... op f(in[i - 1])
 *
 * It gives the bits of spmv_map followed by spmv_scan, but reads the input once and stores no
 * array in between. Parameters and aliasing: as for spmv_scan. */
SPMV_API spmv_status spmv_map_scan(spmv_context *ctx, spmv_function function, spmv_scan_kind kind, spmv_op op,
                                   spmv_type type, const void *in, void *out, int64_t n);

/* Options of spmv_scan_host and spmv_reduce_host. */
typedef struct spmv_pieces_options {
    size_t size; /* sizeof(spmv_pieces_options), set by spmv_pieces_options_init */

    /* cuda: bytes of a piece, rounded down to a multiple of 2^20 elements, at least 2^20. Three pieces
     * are on the device at a time, and up to six in page-locked host memory. Halved while the
     * device has no room for them. Default 0: 8 MiB. Results do not depend on it. */
    int64_t piece_bytes;
} spmv_pieces_options;

/* Fills options with the defaults. size: sizeof(spmv_pieces_options). */
SPMV_API void spmv_pieces_options_init(spmv_pieces_options *options, size_t size);

/* spmv_scan of an array in host memory, which may be larger than the context's memory. On cuda it
 * goes through the device in pieces: one is copied to the device, one is computed and one is copied
 * back at the same time. On ref and omp this is spmv_scan. Waits: the result is there on return.
 *
 *   host_in, host_out  n elements each. Page-locked arrays are copied directly, others through
 *                      page-locked buffers, which the context keeps for the next call.
 *   options            NULL means defaults
 *
 * On cuda there are progress events, in elements. After an error or a cancellation host_out holds
 * the results up to some element, and its old contents after that.
 *
 * Aliasing: host_out may equal host_in; no other overlap.
 * Further errors: SPMV_CANCELLED.
 * Determinism: on cuda the array is scanned 2^20 elements at a time from left to right, so the
 * bits do not depend on piece_bytes. If the operator rounds, they may differ from those of
 * spmv_scan. */
SPMV_API spmv_status spmv_scan_host(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                                    const void *host_in, void *host_out, int64_t n, const spmv_pieces_options *options);

/* spmv_reduce of an array in host memory, in pieces as spmv_scan_host. Waits.
 *
 *   host_in   n elements
 *   host_out  one element in host memory, written on success only
 *   options   NULL means defaults
 *
 * Aliasing: host_out is not part of host_in.
 * Further errors and determinism: as for spmv_scan_host. */
SPMV_API spmv_status spmv_reduce_host(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_in,
                                      void *host_out, int64_t n, const spmv_pieces_options *options);

/* spmv_scan by a rung.
 *
 *   rung  a name from spmv_scan_rung_name. For rungs that scan block by block also "NAME:BLOCK"
 *         with the elements of a block, a power of two from 2 to 1024: "blelloch:64". "definition"
 *         takes at most 131072 elements.
 * Other parameters and aliasing: as for spmv_scan.
 *
 * Further errors: SPMV_ERROR_METHOD, SPMV_ERROR_SIZE (too many elements for "definition"),
 * SPMV_ERROR_TYPE (a tuple type with a teaching rung).
 * Determinism: grouping depends on n, the rung and the block. */
SPMV_API spmv_status spmv_scan_rung(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                    spmv_type type, const void *in, void *out, int64_t n);

/* The names of the rungs of scan on a backend: 0, 1, ... until NULL. Static storage. */
SPMV_API const char *spmv_scan_rung_name(spmv_backend backend, int index);

/* Scans each run of block elements by itself; the last one may be shorter. For 0 <= i < n and the
 * first element h = i - i % block of its block:
 *
 *     inclusive  out[i] = in[h] op ... op in[i]
 *     exclusive  out[i] = identity op in[h] op ... op in[i - 1]
 *     sums[b]  = the reduction of block b, 0 <= b < ceil(n / block)
 *
 *   rung     a rung that scans block by block; NULL or "auto": the backend's default
 *   in, out  n elements each
 *   sums     ceil(n / block) elements; NULL: not wanted
 *   block    elements of a block, a power of two from 2 to 1024
 *
 * Aliasing: out may equal in; sums overlaps neither.
 * Further errors: SPMV_ERROR_METHOD (no such rung, or it does not scan block by block). */
SPMV_API spmv_status spmv_block_scan(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                     spmv_type type, const void *in, void *out, void *sums, int64_t block, int64_t n);

/* sums[b] = the reduction of block b, taken from the result of a spmv_block_scan without sums.
 *
 *   kind     of that scan
 *   in       its input, n elements. An exclusive scan lacks the last element of each block, so in
 *            must then not be overwritten. For an inclusive scan it is not read and may be NULL.
 *   scanned  its result, n elements
 *   sums     ceil(n / block) elements
 *   block    of that scan
 *
 * Aliasing: no overlap with sums.
 * Further errors: SPMV_ERROR_ARGUMENT (also: exclusive, and in is NULL or equal to scanned). */
SPMV_API spmv_status spmv_block_sums(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in,
                                     const void *scanned, void *sums, int64_t block, int64_t n);

/* The state of a block after a step of a rung. All pointers are valid during the callback only. */
typedef struct spmv_trace {
    const char *launch;        /* name of the kernel */
    const char *label;         /* what the step did */
    int64_t block;             /* number of the block in the launch, from 0 */
    int step;                  /* number of the step in the block, from 0 */
    const void *host_cells;    /* the array of the block, n elements; NULL if n == 0 */
    int64_t n;                 /* elements of host_cells */
    spmv_type type;            /* of host_cells */
    int64_t operations;        /* applications of the operator since the call began */
    const uint8_t *host_heads; /* segmented scan: n bytes, 1 where a segment starts in the elements
                                  that the cell stands for; else NULL */
    int idle;                  /* 1: the step works on the identities after the last element only */
} spmv_trace;

/* A callback for spmv_trace. */
typedef void (*spmv_trace_fn)(const spmv_trace *trace, void *user);

/* spmv_scan_rung on the host, for any backend, with a callback after each step of each block. The
 * code is that of the rung on a GPU.
 *
 *   rung               a name of the backend ref; NULL or "auto": "blelloch"
 *   host_in, host_out  n elements each
 *   trace              the callback
 *   user               passed to trace
 *
 * Aliasing and further errors: as for spmv_scan_rung. */
SPMV_API spmv_status spmv_scan_trace(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                     spmv_type type, const void *host_in, void *host_out, int64_t n,
                                     spmv_trace_fn trace, void *user);

/* spmv_reduce_rung on the host, with a callback after each step, as spmv_scan_trace. The cells are
 * the values that the threads of a block hold.
 *
 *   rung      a name of the backend ref except "serial", which has no steps (SPMV_ERROR_METHOD);
 *             NULL or "auto": "divergent"
 *   host_in   n elements
 *   host_out  one element in host memory
 *   trace     the callback
 *   user      passed to trace
 *
 * Further errors: as for spmv_reduce_rung. */
SPMV_API spmv_status spmv_reduce_trace(spmv_context *ctx, const char *rung, spmv_op op, spmv_type type,
                                       const void *host_in, void *host_out, int64_t n, spmv_trace_fn trace, void *user);

/* --------------------------------------------------------------- segments */

/* How n elements are divided into segments. */
typedef enum spmv_segment_form {
    SPMV_SEGMENT_FLAGS = 1,  /* heads: n flags, bytes or bits (spmv_flags_pack); one that is not 0
                                starts a segment. Element 0 always starts one. */
    SPMV_SEGMENT_STARTS = 2, /* heads: count positions where the segments start; the last segment
                                ends at n */
    SPMV_SEGMENT_OFFSETS = 3 /* heads: count + 1 positions, the last one n, as a CSR row_ptr */
} spmv_segment_form;

/* Segments. Positions begin with 0, do not decrease and are at most n. Two equal positions make an
 * empty segment. With n > 0, count is at least 1. On ref and omp wrong positions give
 * SPMV_ERROR_SIZE (the message names the entry); on cuda the caller guarantees them. */
typedef struct spmv_segments {
    spmv_segment_form form; /* what heads is */
    const void *heads;      /* in the context's memory */
    int bits;               /* of an entry of heads. Positions: 32 or 64, signed. Flags: 8 or 1 */
    int64_t count;          /* positions: number of segments; flags: not used */
} spmv_segments;

/* Converts flags between bytes and bits. Flag i is bit i % 32 of the 32-bit word i / 32; bit 0 is
 * the lowest.
 *
 *     pack    bit i = flags[i] != 0, 0 <= i < n; the unused bits of the last word become 0
 *     unpack  flags[i] = bit i, 0 or 1; the unused bits of the last word are ignored
 *
 *   flags  n bytes
 *   bits   ceil(n / 32) words
 *
 * Aliasing: no overlap. */
SPMV_API spmv_status spmv_flags_pack(spmv_context *ctx, const uint8_t *flags, uint32_t *bits, int64_t n);
SPMV_API spmv_status spmv_flags_unpack(spmv_context *ctx, const uint32_t *bits, uint8_t *flags, int64_t n);

/* A scan that starts again at each segment. For element i of the segment that starts at h:
 *
 *     inclusive  out[i] = in[h] op ... op in[i]
 *     exclusive  out[i] = identity op in[h] op ... op in[i - 1]
 *
 *   segments  in any form
 *   in, out   n elements each
 *
 * Aliasing: out may equal in; no other overlap.
 * Further errors: SPMV_ERROR_SIZE (wrong positions).
 * Source: S. Sengupta, M. Harris, Y. Zhang, J. D. Owens, "Scan primitives for GPU computing",
 * Graphics Hardware 2007. */
SPMV_API spmv_status spmv_segscan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                                  const spmv_segments *segments, const void *in, void *out, int64_t n);

/* spmv_segscan by a rung: a rung of scan on pairs (value, head) with the operator
 *
 *     (v, f) op (w, g) = (g ? w : v op w, f or g)
 *
 * which is associative and does not commute.
 *
 *   rung     a name from spmv_segscan_rung_name, also "NAME:BLOCK", as for spmv_scan_rung. The
 *            default has a name too: "serial" (ref), "tiles" (omp), "single-pass" (cuda). Teaching
 *            rungs exist for SPMV_ADD and SPMV_LAST with SPMV_F32, SPMV_F64 and SPMV_I32, and need
 *            up to two pairs of scratch per element.
 *   flags    n bytes, not 0 where a segment starts; element 0 always starts one
 *   in, out  n elements each
 *
 * Aliasing: out may equal in; no other overlap.
 * Further errors: those of spmv_scan_rung; SPMV_ERROR_TYPE (also: a teaching rung that does not
 * exist for op and type).
 * Source: J. T. Schwartz, "Ultracomputers", ACM TOPLAS 2(4), 1980; Sengupta et al. 2007. */
SPMV_API spmv_status spmv_segscan_rung(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                       spmv_type type, const uint8_t *flags, const void *in, void *out, int64_t n);

/* The names of the rungs of segmented scan on a backend: 0, 1, ... until NULL. Static storage. */
SPMV_API const char *spmv_segscan_rung_name(spmv_backend backend, int index);

/* spmv_segscan_rung on the host, with a callback after each step, as spmv_scan_trace. The cells are
 * the values of the pairs, host_heads their heads; an operation is one on pairs.
 *
 *   rung               a name of the backend ref except "serial", which has no steps
 *                      (SPMV_ERROR_METHOD); NULL or "auto": "blelloch"
 *   host_flags         n bytes, not 0 where a segment starts
 *   host_in, host_out  n elements each
 *   trace              the callback
 *   user               passed to trace
 *
 * Aliasing and further errors: as for spmv_segscan_rung. */
SPMV_API spmv_status spmv_segscan_trace(spmv_context *ctx, const char *rung, spmv_scan_kind kind, spmv_op op,
                                        spmv_type type, const uint8_t *host_flags, const void *host_in, void *host_out,
                                        int64_t n, spmv_trace_fn trace, void *user);

/* out[s] = in[h_s] op ... op in[h_{s+1} - 1], 0 <= s < segments->count, where h_s is the start of
 * segment s; the identity for an empty segment.
 *
 *   segments  SPMV_SEGMENT_STARTS or SPMV_SEGMENT_OFFSETS. Flags give SPMV_ERROR_ARGUMENT, because
 *             they do not say how many results there are.
 *   in        n elements
 *   out       segments->count elements
 *
 * Aliasing: no overlap.
 * Further errors: SPMV_ERROR_SIZE (wrong positions). */
SPMV_API spmv_status spmv_segreduce(spmv_context *ctx, spmv_op op, spmv_type type, const spmv_segments *segments,
                                    const void *in, void *out, int64_t n);

/* ---------------------------------------------------- sort and histogram */

/* Sorts keys in ascending order and moves the values with them: out_keys = in_keys sorted, and
 * out_values[k] = in_values[i] if key i moved to place k. The sort is stable: equal keys keep their
 * order.
 *
 *   key_type               SPMV_I32, SPMV_I64, SPMV_F32 or SPMV_F64. Real keys are sorted in the
 *                          total order of IEEE 754: -0 before +0, NaN beyond the infinities by
 *                          sign.
 *   begin_bit, end_bit     compare the bits begin_bit <= b < end_bit only, as an unsigned number; 0
 *                          is the lowest. The bits are those of an unsigned number with the same
 *                          order as the key: 0 and the width of the type give the full order. Fewer
 *                          bits take fewer passes.
 *   in_keys, out_keys      n keys each
 *   in_values, out_values  n values of value_bytes each; NULL if value_bytes is 0
 *   value_bytes            4, 8, or 0 for no values
 *
 * Aliasing: out_keys may equal in_keys, and out_values in_values; no other overlap.
 *
 * Memory: room for another n keys and values. The context keeps it for the next call. A call that
 * needs more than the context has waits, and gives SPMV_ERROR_CAPTURE while the stream is being
 * captured. A captured sort must not be launched any more after a larger sort, spmv_scan_host or
 * spmv_reduce_host on the same context.
 *
 * Further errors: SPMV_ERROR_SIZE (the bytes of n elements exceed 64 bits).
 * Determinism: the result is the same on every backend and by every rung.
 * Source: H. H. Seward, "Information sorting in the application of electronic digital computers to
 * business operations", MIT, 1954; M. Zagha, G. E. Blelloch, "Radix sort for vector
 * multiprocessors", Supercomputing 1991. */
SPMV_API spmv_status spmv_sort_by_key(spmv_context *ctx, spmv_type key_type, int begin_bit, int end_bit,
                                      const void *in_keys, const void *in_values, int value_bytes, void *out_keys,
                                      void *out_values, int64_t n);

/* spmv_sort_by_key by a rung.
 *
 *   rung  a name from spmv_sort_rung_name
 *
 * Further errors: SPMV_ERROR_METHOD. */
SPMV_API spmv_status spmv_sort_rung(spmv_context *ctx, const char *rung, spmv_type key_type, int begin_bit, int end_bit,
                                    const void *in_keys, const void *in_values, int value_bytes, void *out_keys,
                                    void *out_values, int64_t n);

/* The names of the rungs of sort on a backend: 0, 1, ... until NULL. Static storage. */
SPMV_API const char *spmv_sort_rung_name(spmv_backend backend, int index);

/* counts[b] = how many i, 0 <= i < n, have index[i] == b, 0 <= b < bins. *left_out = how many have
 * an index outside of 0, ..., bins - 1.
 *
 *   count_type  of counts and *left_out: SPMV_I32 or SPMV_I64; sums wrap around
 *   index       n integers
 *   counts      bins numbers
 *   left_out    one number in the context's memory; NULL: not wanted
 *
 * Aliasing: no overlap.
 * Determinism: the result is the same on every backend and by every rung. */
SPMV_API spmv_status spmv_histogram(spmv_context *ctx, spmv_type count_type, const int32_t *index, void *counts,
                                    int64_t bins, void *left_out, int64_t n);

/* spmv_histogram by a rung.
 *
 *   rung  a name from spmv_histogram_rung_name
 *
 * Further errors: SPMV_ERROR_METHOD. */
SPMV_API spmv_status spmv_histogram_rung(spmv_context *ctx, const char *rung, spmv_type count_type,
                                         const int32_t *index, void *counts, int64_t bins, void *left_out, int64_t n);

/* The names of the rungs of histogram on a backend: 0, 1, ... until NULL. Static storage. */
SPMV_API const char *spmv_histogram_rung_name(spmv_backend backend, int index);

/* ------------------------------------------------------------------ rungs */

/* The description of a rung. n is the number of elements, B the elements of a block, p the number
 * of threads. Strings are in static storage. */
typedef struct spmv_rung_info {
    size_t size;        /* of this struct in bytes */
    const char *source; /* its file, relative to the top of the source tree */
    const char *work;   /* the number of operations, such as "n log2 B - n + n/B" */
    const char *depth;  /* the number of operations that depend on one another */
} spmv_rung_info;

/* Describes a rung.
 *
 *   primitive  "scan", "segscan", "reduce", "expand", "gather", "sort" or "histogram"
 *   rung       the name of a rung of any backend, also "NAME:BLOCK"
 *   info       the result; its members but size are 0 after an error
 *   size       sizeof(spmv_rung_info)
 *
 * Errors: SPMV_ERROR_METHOD (no description of such a rung), SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_rung_describe(spmv_context *ctx, const char *primitive, const char *rung,
                                        spmv_rung_info *info, size_t size);

#ifndef SPMV_NO_OLD_NAMES
/* ---------------------------------------------------------------- old names, until 0.11
 * Deprecated: spmv_compact_rung_name. */
SPMV_API const char *spmv_compact_method_name(spmv_backend backend, int index);
#endif

SPMV_END_DECLS

#endif
