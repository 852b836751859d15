/* The slots of a backend's table for the primitives: the one list. backend.h makes the members of
 * the table and the declarations of each backend's functions from it, backend_NAME.c its table.
 * Include it with these macros; it undefines them.
 *
 *   FUNCTION(result, name, ...)  a function with its parameters, as in spmv/primitives.h, with n > 0
 *   RUNGS(type, name)            an array of rungs that ends with a NULL name; last: the default
 *
 * NAME_scratch returns the bytes of scratch that NAME needs (0: none).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
FUNCTION(spmv_status, map, spmv_context *, spmv_function, spmv_type, const void *in, void *out, int64_t n)
FUNCTION(spmv_status, map_binary, spmv_context *, spmv_op, spmv_type, const void *a, const void *b, void *out,
         int64_t n)
FUNCTION(spmv_status, map_scalar, spmv_context *, spmv_op, spmv_type, const void *host_scalar, const void *in,
         void *out, int64_t n)
FUNCTION(spmv_status, map_index, spmv_context *, spmv_type, const void *host_first, const void *host_step, void *out,
         int64_t n)
FUNCTION(spmv_status, map_divide, spmv_context *, spmv_type, const void *a, const void *b, void *out, int64_t n)
FUNCTION(spmv_status, map_axpby, spmv_context *, spmv_type, const void *alpha, const void *x, const void *beta,
         void *y, int64_t n)
FUNCTION(int64_t, dot_scratch, const spmv_context *, spmv_type, int64_t n)
FUNCTION(spmv_status, dot, spmv_context *, spmv_type, const void *x, const void *y, void *out, int64_t n,
         void *scratch)

/* gather: out[i] = in[index[i]] if the filter takes in[index[i]] (with a mask: if mask[i]).
 * scatter: out[index[i]] = in[i] if the filter takes in[i] (with a mask: if mask[i]).
 * Indices out of range move nothing. */
FUNCTION(spmv_status, gather, spmv_context *, const struct move *)
FUNCTION(spmv_status, scatter, spmv_context *, const struct move *)

/* *host_first = the first i with index[i] not in [lowest, limit), or n if there is none;
 * *host_value = index[*host_first]. Waits for the result. */
FUNCTION(int64_t, index_check_scratch, const spmv_context *, int64_t n)
FUNCTION(spmv_status, index_check, spmv_context *, const void *index, int index_bits, int64_t lowest, int64_t limit,
         int64_t n, int64_t *host_first, int64_t *host_value, void *scratch)

/* numbers[i] = 1 if the filter takes element i, else 0, for 0 <= i < n; numbers[n] = 0 */
FUNCTION(spmv_status, filter_map, spmv_context *, const struct filter *, spmv_type, const void *in, int64_t *numbers,
         int64_t n)
FUNCTION(int64_t, compact_scratch, const spmv_context *, spmv_type, int64_t n)
FUNCTION(spmv_status, compact, spmv_context *, const struct filter *, spmv_type, const void *in, void *out,
         int64_t *count, int64_t n, void *scratch)

FUNCTION(int64_t, expand_scratch, const spmv_context *, int64_t n)
FUNCTION(spmv_status, expand_offsets, spmv_context *, const void *counts, int count_bits, int64_t *offsets, int64_t n,
         void *scratch)
/* n > 0, total > 0 */
FUNCTION(spmv_status, expand, spmv_context *, spmv_expand_form, const struct expansion *)

FUNCTION(int64_t, reduce_scratch, const spmv_context *, spmv_type, int64_t n)
FUNCTION(spmv_status, reduce, spmv_context *, spmv_op, spmv_type, const void *in, void *out, int64_t n, void *scratch)
/* uses the scratch of reduce */
FUNCTION(spmv_status, map_reduce, spmv_context *, spmv_function, spmv_op, spmv_type, const void *in, void *out,
         int64_t n, void *scratch)
FUNCTION(const struct reduce_rung *, reduce_rungs, void) /* rungs by name: reduce_ladder.h */

FUNCTION(int64_t, scan_scratch, const spmv_context *, spmv_type, int64_t n)
FUNCTION(spmv_status, scan, spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *in, void *out, int64_t n,
         void *scratch)
/* uses the scratch of scan */
FUNCTION(spmv_status, map_scan, spmv_context *, spmv_function, spmv_scan_kind, spmv_op, spmv_type, const void *in,
         void *out, int64_t n, void *scratch)
FUNCTION(const struct scan_rung *, scan_rungs, void) /* rungs by name: scan_ladder.h */

FUNCTION(spmv_status, flags_pack, spmv_context *, const uint8_t *flags, uint32_t *bits, int64_t n)
FUNCTION(spmv_status, flags_unpack, spmv_context *, const uint32_t *bits, uint8_t *flags, int64_t n)

FUNCTION(int64_t, segscan_scratch, const spmv_context *, spmv_type, const spmv_segments *, int64_t n)
FUNCTION(spmv_status, segscan, spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const spmv_segments *,
         const void *in, void *out, int64_t n, void *scratch)
FUNCTION(const struct scan_rung *, segscan_rungs, void) /* rungs by name: scan_ladder.h */

/* segments->count > 0; n may be 0 */
FUNCTION(int64_t, segreduce_scratch, const spmv_context *, spmv_type, const spmv_segments *, int64_t n)
FUNCTION(spmv_status, segreduce, spmv_context *, spmv_op, spmv_type, const spmv_segments *, const void *in, void *out,
         int64_t n, void *scratch)

RUNGS(struct sort_rung, sort_rungs)
RUNGS(struct histogram_rung, histogram_rungs)
#undef FUNCTION
#undef RUNGS
