/* Primitives for a CUDA program's own functors and element types, as templates: map, reduce, scan,
 * segmented scan, segmented reduce, compact. They run the library's tuned kernels.
 *
 * Compile with nvcc (C++17) and link the library spmv.
 *
 *     struct later_of_two {
 *         using type = sample;
 *         __host__ __device__ sample operator()(sample earlier, sample later) const;
 *         static __host__ __device__ sample identity();
 *     };
 *     const int64_t bytes = spmv::device::scan_scratch_bytes<sample>(n);
 *     spmv::device::scan<later_of_two>({stream, scratch, bytes}, SPMV_INCLUSIVE, in, out, n);
 *     spmv::device::scan<later_of_two>(ctx, SPMV_INCLUSIVE, in, out, n);   // a context
 *
 * examples/device is a whole program. The following rules hold for all functions of this header.
 *
 * Elements. An element type is trivially copyable and has no constructor. It has at most 32 bytes
 * and an alignment of at most 16 bytes. The size of an operator's type is a multiple of 4 bytes.
 *
 * Operators. Op is an empty struct with the three members above; both functions are __host__
 * __device__. Op is associative and need not commute: the left operand is the earlier element.
 * identity() op x = x op identity() = x must hold, because identities may be combined with the
 * elements. With the member static constexpr bool commutes = true, reduce may use another order of
 * the operands, which is faster and also fixed by n.
 *
 * Functors (function, predicate, loader, storer) are copyable and may hold data. They are called on
 * the device, in any order, possibly more than once for an element, and only for elements that
 * exist.
 *   - A loader returns element i: Type operator()(int64_t i) const.
 *   - A storer receives element i: void operator()(int64_t i, Type x) const.
 * A parameter described as "pointer or loader" (or storer) takes either. Through a pointer that is
 * aligned to 16 bytes, 16 bytes are read or written at a time.
 *
 * Parameters of all functions.
 *   q  where the call runs: a stream with scratch memory, or a context (struct queue)
 *   n  the number of elements, at least 0; if it is 0, inputs may be NULL
 * Arrays are in device memory.
 *
 * Queued. Work is queued on the stream, whose device must be the current one. Calls do not wait and
 * do not allocate (the scratch memory of a context is large enough from the start), so they can be
 * captured in a CUDA graph. Scratch memory can be used again when the queued work is done; calls on
 * one stream can share it.
 *
 * Aliasing. In and out may be the same array where a comment says so; no other overlap. A storer
 * may overwrite element i of the data that the loader reads as element i.
 *
 * Errors. SPMV_ERROR_ARGUMENT (n is negative, an array is NULL, an unknown kind of scan, wrong
 * segments), SPMV_ERROR_SIZE (the scratch memory is too small or not aligned to 16 bytes),
 * SPMV_ERROR_UNSUPPORTED (a context of another backend than cuda), SPMV_ERROR_DEVICE and
 * SPMV_ERROR_CAPTURE (a launch failed; cudaGetLastError has the error). With a context,
 * spmv_last_error has the message. Nothing is printed and no exception is thrown.
 *
 * Determinism. The same bits every run. The order in which operands are combined is fixed by n and,
 * for segmented functions, by the segments.
 *
 * The kernels are in the folder spmv/device and the namespace spmv::device::rungs. They are not
 * part of the interface. primitives.h names the sources of the algorithms.
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

/* Where a call runs: a stream and scratch memory. A spmv_context * converts to a queue. */
struct queue {
    /* A stream of the caller.
     *
     *   with_scratch        device memory aligned to 16 bytes; NULL if the call needs none
     *   with_scratch_bytes  its size, at least what the call's ..._scratch_bytes returns */
    queue(cudaStream_t on_stream, void *with_scratch, int64_t with_scratch_bytes)
        : stream(on_stream), scratch(with_scratch), scratch_bytes(with_scratch_bytes), context(NULL)
    {
    }
    /* The stream and scratch memory of a context of the backend cuda. The context's device must be
     * the current one. */
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

/* Calls body(context, scratch) with at least `bytes` of scratch memory. */
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

/* The checks of all calls. absent: true if an array is NULL. */
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

/* out[i] = function(in[i]), 0 <= i < n.
 *
 *   q    needs no scratch memory: {stream, NULL, 0}
 *   in   pointer to elements of any type, or loader
 *   out  n elements
 *
 * Aliasing: out may equal in if the types are the same. */
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

/* Bytes of scratch memory for reduce and map_reduce; the same for every n. Type is Op::type. */
template <typename Type> int64_t reduce_scratch_bytes(int64_t n)
{
    (void)n;
    return rungs::reduce_header + rungs::reduce_6_scratch_elements * (int64_t)sizeof(Type);
}

/* *out = function(in[0]) op ... op function(in[n - 1]); the identity if n == 0.
 *
 *   function  returns Op::type
 *   in        pointer or loader. For the position of a minimum, use a loader that returns pairs
 *             (value, index).
 *   out       one element
 *
 * Aliasing: out is not part of in. */
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

/* *out = in[0] op ... op in[n - 1]; the identity if n == 0. Otherwise as map_reduce. */
template <typename Op, typename In> spmv_status reduce(const queue &q, In in, typename Op::type *out, int64_t n)
{
    return map_reduce<Op>(q, rungs::convert_to<typename Op::type>(), in, out, n);
}

/* --------------------------------------------------------------------- scan */

/* Bytes of scratch memory for scan and map_scan of n elements. Type is Op::type. */
template <typename Type> int64_t scan_scratch_bytes(int64_t n)
{
    return rungs::scan_5_scratch((int64_t)sizeof(Type), n > 0 ? n : 0);
}

/* Prefix sums, 0 <= i < n:
 *
 *     SPMV_INCLUSIVE  out[i] = in[0] op ... op in[i]
 *     SPMV_EXCLUSIVE  out[i] = identity op in[0] op ... op in[i - 1]
 *
 *   in   pointer or loader
 *   out  pointer or storer
 *
 * Aliasing: out may equal in if the types are the same. */
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

/* The scan of function(in[i]) in place of in[i].
 *
 *   function  returns Op::type
 *   in        pointer to elements of any type, or loader
 *   out       pointer or storer
 *
 * Aliasing: as for scan. */
template <typename Op, typename Function, typename In, typename Out>
spmv_status map_scan(const queue &q, Function function, spmv_scan_kind kind, In in, Out out, int64_t n)
{
    const spmv_status st = rungs::check(q, "scan", n, rungs::is_null(in));
    return st != SPMV_OK ? st : scan<Op>(q, kind, rungs::mapped_loader_of<typename Op::type>(function, in), out, n);
}

/* ---------------------------------------------------------------- segmented */

/* Bytes of scratch memory for segscan of n elements. Type is Op::type. */
template <typename Type> int64_t segscan_scratch_bytes(int64_t n)
{
    return rungs::segscan_5_scratch((int64_t)sizeof(Type), n > 0 ? n : 0);
}

/* A scan that starts again at each segment, as spmv_segscan (primitives.h).
 *
 *   segments  in any form. The caller guarantees that positions begin with 0, do not decrease and
 *             are at most n.
 *   in        pointer or loader
 *   out       pointer or storer
 *
 * Aliasing: as for scan. */
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
        return rungs::segscan_5_launch<Op>(ctx, rungs::as_loader<Type>(in), rungs::as_storer(out), starts, n,
                                           kind == SPMV_EXCLUSIVE, scratch);
    });
}

/* Bytes of scratch memory for segreduce of n elements in count segments; the same for all n and
 * count. Type is Op::type. */
template <typename Type> int64_t segreduce_scratch_bytes(int64_t n, int64_t count)
{
    (void)n;
    (void)count;
    return rungs::segreduce_1_scratch((int64_t)sizeof(Type));
}

/* out[s] = in[h_s] op ... op in[h_{s+1} - 1], 0 <= s < segments.count, where h_s is the start of
 * segment s; the identity for an empty segment. Each result is stored once.
 *
 *   segments  SPMV_SEGMENT_STARTS or SPMV_SEGMENT_OFFSETS. Flags give SPMV_ERROR_ARGUMENT, because
 *             they do not say how many results there are.
 *   in        pointer or loader
 *   out       pointer or storer, segments.count elements
 *
 * Aliasing: no overlap. */
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

/* Bytes of scratch memory for compact, compact_flagged and compact_bits; the same for every n. */
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

/* Copies the elements for which predicate(in[i]) is true, in their order.
 *
 *   in     n elements
 *   out    room for the elements that are kept
 *   count  one number in device memory: receives how many are kept
 *
 * Aliasing: no overlap. */
template <typename Predicate, typename Type>
spmv_status compact(const queue &q, Predicate predicate, const Type *in, Type *out, int64_t *count, int64_t n)
{
    return rungs::compact_with(q, rungs::keep_if<Type, Predicate>{predicate, in}, in, out, count, n, false);
}

/* As compact, but keeps the elements with flags[i] != 0 (compact_flagged), or those whose bit i is
 * set (compact_bits).
 *
 *   flags  n bytes
 *   bits   ceil(n / 32) words, as spmv_flags_pack writes them
 * Other parameters and aliasing: as for compact. */
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
