/* Primitives with a CUDA program's own functors and element types: map, reduce, scan, segmented scan, segmented reduce,
 * compact, as templates on the library's tuned rungs. For nvcc (C++17); link spmv. The header also compiles alone.
 *
 *     struct later_of_two {                       // an operator: associative, need not commute
 *         using type = sample;
 *         __host__ __device__ sample operator()(sample earlier, sample later) const;
 *         static __host__ __device__ sample identity();
 *     };
 *     const int64_t bytes = spmv::device::scan_scratch_bytes<sample>(n);
 *     spmv::device::scan<later_of_two>({stream, scratch, bytes}, SPMV_INCLUSIVE, in, out, n);
 *     spmv::device::scan<later_of_two>(ctx, SPMV_INCLUSIVE, in, out, n);   // stream and scratch of a context
 *
 * Elements are plain: trivially copyable, without a constructor, at most 32 bytes aligned to 16 at most; an operator's
 * have a multiple of 4 bytes.
 * An operator Op is an empty struct with the three members above, the two functions __host__ __device__. It is
 * associative, and identity() op x = x op identity() = x: identities may stand between elements. The earlier element is
 * the left operand. With static constexpr bool commutes = true, reduce may take the operands in another order, fixed
 * by n, which is faster.
 * Functors (function, predicate, loader, storer) are copyable, hold what data they like, and are called on the device,
 * in any order, perhaps more than once an element, and never for an element that is not there. A loader gives element
 * i: Type operator()(int64_t i) const; a storer takes it: void operator()(int64_t i, Type x) const. Wherever a loader or
 * storer may stand, so may a device pointer, which is read or written 16 bytes at a time where it is aligned to 16.
 *
 * Common to all. Work is queued on the stream, whose device is the current one; nothing waits and nothing is allocated
 * (but the scratch of a context, which has enough from the start), so calls can be captured into a graph. Same bits
 * every run; how operands are parenthesised is fixed by n (and, segmented, by the segments). n >= 0; n == 0 is fine.
 * Scratch is free again when the work queued is done; calls on one stream may share it. In and out may be the same
 * array where a comment says so, no other overlap. What a loader reads may be what a storer writes, element by element.
 * Errors: SPMV_ERROR_ARGUMENT (n negative, NULL, kind or form unknown), SPMV_ERROR_SIZE (scratch too small or not
 * aligned to 16), SPMV_ERROR_UNSUPPORTED (a context that is not of the backend cuda), SPMV_ERROR_DEVICE and
 * SPMV_ERROR_CAPTURE (a launch failed; cudaGetLastError has the error). With a context, spmv_last_error has the
 * sentence. Nothing is printed and nothing thrown.
 *
 * The rungs lie in spmv/device/ and are no interface: their names are in spmv::device::rungs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_DEVICE_CUH
#define SPMV_DEVICE_CUH

#if !defined(__CUDACC__) && !defined(SPMV_HAVE_KERNELS)
#error "spmv/device.cuh needs nvcc"
#endif

#include <cuda_runtime.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <type_traits>

#include <spmv/context.h>
#include <spmv/operators.h>
#include <spmv/primitives.h>

namespace spmv
{
namespace device
{
namespace rungs
{
#include <spmv/device/device_rungs.cuh>
} // namespace rungs

/* Where a call runs. A context converts by itself. */
struct queue {
    /* scratch: scratch_bytes of device memory aligned to 16, as many as the ..._scratch_bytes of the call says. */
    queue(cudaStream_t on_stream, void *with_scratch, int64_t with_scratch_bytes)
        : stream(on_stream), scratch(with_scratch), scratch_bytes(with_scratch_bytes), context(NULL)
    {
    }
    /* The context's stream and scratch; its device must be the current one. */
    queue(::spmv_context *ctx)
        : stream((cudaStream_t)spmv_context_stream(ctx)), scratch(NULL), scratch_bytes(0), context(ctx)
    {
    }

    cudaStream_t stream;
    void *scratch;
    int64_t scratch_bytes;
    ::spmv_context *context;
};

namespace rungs
{

inline spmv_status fail(const queue &q, spmv_status status, const char *call, const char *what)
{
    if (q.context != NULL) {
        char text[256];
        snprintf(text, sizeof text, "spmv::device::%s: %s", call, what);
        spmv_context_report(q.context, status, text);
    }
    return status;
}

/* body(context, scratch) with that much scratch. */
template <typename Body> spmv_status run(const queue &q, const char *call, int64_t bytes, const Body &body)
{
    cuda_state state = {};
    spmv_context ctx = {q.stream, &state};
    void *scratch = q.scratch;
    spmv_status st = SPMV_OK;
    if (q.context != NULL) {
        if (spmv_context_backend(q.context) != SPMV_BACKEND_CUDA)
            return fail(q, SPMV_ERROR_UNSUPPORTED, call, "the context is not of the backend cuda");
        st = spmv_context_scratch(q.context, bytes, &scratch);
    } else if (q.scratch_bytes < bytes || (bytes > 0 && (scratch == NULL || (uintptr_t)scratch % 16 != 0))) {
        st = SPMV_ERROR_SIZE;
    }
    if (st != SPMV_OK)
        return st;
    st = body(&ctx, scratch);
    if (st == SPMV_OK || q.context == NULL)
        return st;
    char what[192];
    snprintf(what, sizeof what, "%s: %s (%s)", state.last_kernel != NULL ? state.last_kernel : "?",
             cudaGetErrorString(state.error), cudaGetErrorName(state.error));
    return fail(q, st, call, what);
}

/* What all calls ask. absent: an array that is NULL. */
inline spmv_status check(const queue &q, const char *call, int64_t n, bool absent)
{
    if (n < 0)
        return fail(q, SPMV_ERROR_ARGUMENT, call, "n is negative");
    return n > 0 && absent ? fail(q, SPMV_ERROR_ARGUMENT, call, "an array is NULL") : SPMV_OK;
}

inline spmv_status check_kind(const queue &q, const char *call, spmv_scan_kind kind)
{
    return kind == SPMV_INCLUSIVE || kind == SPMV_EXCLUSIVE
               ? SPMV_OK
               : fail(q, SPMV_ERROR_ARGUMENT, call, "unknown kind of scan");
}

inline spmv_status check_segments(const queue &q, const char *call, const spmv_segments &segments, int64_t n)
{
    const bool flags = segments.form == SPMV_SEGMENT_FLAGS;
    if (!flags && segments.form != SPMV_SEGMENT_STARTS && segments.form != SPMV_SEGMENT_OFFSETS)
        return fail(q, SPMV_ERROR_ARGUMENT, call, "unknown form of segments");
    if (flags ? segments.bits != 8 && segments.bits != 1 : segments.bits != 32 && segments.bits != 64)
        return fail(q, SPMV_ERROR_ARGUMENT, call, "flags must have 8 or 1 bits, positions 32 or 64");
    if (!flags && (segments.count < 0 || (segments.count == 0 && n > 0)))
        return fail(q, SPMV_ERROR_ARGUMENT, call, "no segments for the elements");
    if (segments.heads == NULL && n > 0)
        return fail(q, SPMV_ERROR_ARGUMENT, call, "heads is NULL");
    return SPMV_OK;
}

/* to[0 .. n-1] = value */
template <typename Type> spmv_status fill(spmv_context *ctx, Type value, Type *to, int64_t n)
{
    return map_1_launch(ctx, "map_packs (fill)", map_of_value<Type>{value}, to, n);
}

} // namespace rungs

/* ---------------------------------------------------------------------- map */

/* out[i] = function(in[i]), 0 <= i < n. in: a device pointer to elements of any type, or a loader. out: a device
 * pointer; may equal in where the types do. No scratch: queue(stream, NULL, 0) will do. */
template <typename Function, typename In, typename Out>
spmv_status map(const queue &q, Function function, In in, Out *out, int64_t n)
{
    rungs::check_element<Out>();
    const spmv_status st = rungs::check(q, "map", n, rungs::is_null(in) || out == NULL);
    if (st != SPMV_OK || n == 0)
        return st;
    return rungs::run(q, "map", 0, [=](rungs::spmv_context *ctx, void *) {
        return rungs::map_1_launch(ctx, "map_packs (device)", rungs::expression_of<Out>(function, in), out, n);
    });
}

/* ------------------------------------------------------------------- reduce */

/* Of both reductions, for every n. Type: the operator's type. */
template <typename Type> int64_t reduce_scratch_bytes(int64_t n)
{
    (void)n;
    return rungs::reduce_header + rungs::reduce_6_scratch_elements * (int64_t)sizeof(Type);
}

/* *out = function(in[0]) op ... op function(in[n-1]), the identity when n == 0. in: a device pointer or a loader; out:
 * one element of device memory, not in in. function gives Op::type; for arg-min and the like let a loader bring (value,
 * index). */
template <typename Op, typename Function, typename In>
spmv_status map_reduce(const queue &q, Function function, In in, typename Op::type *out, int64_t n)
{
    rungs::check_operator<Op>();
    using Type = typename Op::type;
    spmv_status st = rungs::check(q, "reduce", n, rungs::is_null(in));
    if (st == SPMV_OK && out == NULL)
        st = rungs::fail(q, SPMV_ERROR_ARGUMENT, "reduce", "out is NULL");
    if (st != SPMV_OK)
        return st;
    return rungs::run(q, "reduce", reduce_scratch_bytes<Type>(n), [=](rungs::spmv_context *ctx, void *scratch) {
        return n == 0 ? rungs::fill(ctx, Op::identity(), out, 1)
                      : rungs::reduce_from<rungs::operator_of<Op>>(ctx, rungs::source_of<Type>(function, in), n, out,
                                                                   scratch);
    });
}

/* *out = in[0] op ... op in[n-1], the identity when n == 0. */
template <typename Op, typename In> spmv_status reduce(const queue &q, In in, typename Op::type *out, int64_t n)
{
    return map_reduce<Op>(q, rungs::convert_to<typename Op::type>(), in, out, n);
}

/* --------------------------------------------------------------------- scan */

/* Of both scans. */
template <typename Type> int64_t scan_scratch_bytes(int64_t n)
{
    return rungs::scan_5_scratch((int64_t)sizeof(Type), n > 0 ? n : 0);
}

/* out(i) = in(0) op ... op in(i)                  (SPMV_INCLUSIVE)
 * out(i) = identity op in(0) op ... op in(i-1)    (SPMV_EXCLUSIVE), 0 <= i < n.
 * in, out: device pointers, loader and storer; out may equal in. */
template <typename Op, typename In, typename Out>
spmv_status scan(const queue &q, spmv_scan_kind kind, In in, Out out, int64_t n)
{
    rungs::check_operator<Op>();
    using Type = typename Op::type;
    spmv_status st = rungs::check(q, "scan", n, rungs::is_null(in) || rungs::is_null(out));
    if (st == SPMV_OK)
        st = rungs::check_kind(q, "scan", kind);
    if (st != SPMV_OK || n == 0)
        return st;
    return rungs::run(q, "scan", scan_scratch_bytes<Type>(n), [=](rungs::spmv_context *ctx, void *scratch) {
        return rungs::scan_5_launch<Op, rungs::scan_shape<Type>>(ctx, rungs::as_loader<Type>(in), rungs::as_storer(out),
                                                                 n, kind == SPMV_EXCLUSIVE, scratch);
    });
}

/* The same of function(in(i)), which gives Op::type. An array in need not be of Op::type; out may equal in where it is.
 */
template <typename Op, typename Function, typename In, typename Out>
spmv_status map_scan(const queue &q, Function function, spmv_scan_kind kind, In in, Out out, int64_t n)
{
    const spmv_status st = rungs::check(q, "scan", n, rungs::is_null(in));
    return st != SPMV_OK ? st : scan<Op>(q, kind, rungs::mapped_loader_of<typename Op::type>(function, in), out, n);
}

/* ---------------------------------------------------------------- segmented */

template <typename Type> int64_t segscan_scratch_bytes(int64_t n)
{
    return rungs::segscan_2_scratch((int64_t)sizeof(Type), n > 0 ? n : 0);
}

/* The scan restarted at each segment's head. segments: as in spmv_segscan, in any form, heads in device memory;
 * positions are promised to ascend from 0 to at most n. */
template <typename Op, typename In, typename Out>
spmv_status segscan(const queue &q, spmv_scan_kind kind, const spmv_segments &segments, In in, Out out, int64_t n)
{
    rungs::check_operator<Op>();
    using Type = typename Op::type;
    spmv_status st = rungs::check(q, "segscan", n, rungs::is_null(in) || rungs::is_null(out));
    if (st == SPMV_OK)
        st = rungs::check_kind(q, "segscan", kind);
    if (st == SPMV_OK)
        st = rungs::check_segments(q, "segscan", segments, n);
    if (st != SPMV_OK || n == 0)
        return st;
    const rungs::segment_starts starts = rungs::starts_of(&segments);
    return rungs::run(q, "segscan", segscan_scratch_bytes<Type>(n), [=](rungs::spmv_context *ctx, void *scratch) {
        return rungs::segscan_2_launch<Op>(ctx, rungs::as_loader<Type>(in), rungs::as_storer(out), starts, n,
                                           kind == SPMV_EXCLUSIVE, scratch);
    });
}

template <typename Type> int64_t segreduce_scratch_bytes(int64_t n, int64_t count)
{
    (void)n;
    (void)count;
    return rungs::segreduce_1_scratch((int64_t)sizeof(Type));
}

/* out(s) = in(h_s) op ... op in(h_{s+1} - 1), the identity for an empty segment, 0 <= s < segments.count, each stored
 * once. Forms STARTS and OFFSETS only. in, out: device pointers, loader and storer. */
template <typename Op, typename In, typename Out>
spmv_status segreduce(const queue &q, const spmv_segments &segments, In in, Out out, int64_t n)
{
    rungs::check_operator<Op>();
    using Type = typename Op::type;
    spmv_status st = rungs::check(q, "segreduce", n, rungs::is_null(in));
    if (st == SPMV_OK)
        st = rungs::check_segments(q, "segreduce", segments, n);
    if (st == SPMV_OK && segments.form == SPMV_SEGMENT_FLAGS)
        st = rungs::fail(q, SPMV_ERROR_ARGUMENT, "segreduce", "flags do not give the number of results: use positions");
    if (st == SPMV_OK && segments.count > 0 && (rungs::is_null(out) || (segments.heads == NULL && segments.count > 1)))
        st = rungs::fail(q, SPMV_ERROR_ARGUMENT, "segreduce", "an array is NULL");
    if (st != SPMV_OK || segments.count == 0)
        return st;
    const rungs::segment_closings closings = rungs::closings_of(&segments, n);
    return rungs::run(q, "segreduce", segreduce_scratch_bytes<Type>(n, segments.count),
                      [=](rungs::spmv_context *ctx, void *scratch) {
                          return rungs::segreduce_1_launch<Op>(ctx, rungs::as_loader<Type>(in), rungs::as_storer(out),
                                                               closings, scratch);
                      });
}

/* ------------------------------------------------------------------ compact */

/* Of the three, for every n. */
inline int64_t compact_scratch_bytes(int64_t n)
{
    (void)n;
    return rungs::compact_2_scratch_elements * (int64_t)sizeof(int64_t);
}

namespace rungs
{

template <typename Keep, typename Type>
spmv_status compact_with(const queue &q, Keep keep, const Type *in, Type *out, int64_t *count, int64_t n, bool absent)
{
    check_element<Type>();
    spmv_status st = check(q, "compact", n, absent || in == NULL || out == NULL);
    if (st == SPMV_OK && count == NULL)
        st = fail(q, SPMV_ERROR_ARGUMENT, "compact", "count is NULL");
    if (st != SPMV_OK)
        return st;
    return run(q, "compact", compact_scratch_bytes(n), [=](spmv_context *ctx, void *scratch) {
        return n == 0 ? fill(ctx, (int64_t)0, count, 1) : compact_2_launch(ctx, keep, in, out, count, n, scratch);
    });
}

} // namespace rungs

/* out = the in[i] for which predicate(in[i]) is true, in order; *count their number. in, out: device pointers to n
 * elements and to room for those kept, no overlap; count: one cell of device memory. */
template <typename Predicate, typename Type>
spmv_status compact(const queue &q, Predicate predicate, const Type *in, Type *out, int64_t *count, int64_t n)
{
    return rungs::compact_with(q, rungs::keep_if<Type, Predicate>{predicate, in}, in, out, count, n, false);
}

/* The same for those with flags[i] != 0 (n bytes), or bit i of bits set (spmv_flags_pack: ceil(n / 32) words). */
template <typename Type>
spmv_status compact_flagged(const queue &q, const uint8_t *flags, const Type *in, Type *out, int64_t *count, int64_t n)
{
    return rungs::compact_with(q, rungs::keep_flagged<Type>{flags}, in, out, count, n, flags == NULL);
}

template <typename Type>
spmv_status compact_bits(const queue &q, const uint32_t *bits, const Type *in, Type *out, int64_t *count, int64_t n)
{
    return rungs::compact_with(q, rungs::keep_bits<Type>{bits}, in, out, count, n, bits == NULL);
}

} // namespace device
} // namespace spmv

#endif
