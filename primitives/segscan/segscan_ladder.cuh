/* The teaching rungs of scan on (value, head) pairs: segmented scan by each of them, on a GPU or on
 * the host.
 *
 * The rungs are reused without change, with another element (a pair), another operator
 * (combine_segments of ops.cuh), a loader that makes pairs and a storer that takes their values. A
 * pair stores whether a segment starts in its elements, so a sum from the left stops at a head,
 * whatever the order of the operations. Exclusive: the prefix of a head belongs to the segment
 * before, so the storer writes the identity there.
 * Compared with scan, each operation becomes two, and a pair needs space for its head (8 bytes for
 * 4, 16 for 8). The levels of rungs 1 and 2 write their result and read it again, so their pairs
 * are kept in scratch, and an additional launch extracts the values: 2 n v more bytes. The tuned
 * rungs instead read the heads once, as bits (segscan_5_lookback.cuh).
 * Source: J. T. Schwartz, "Ultracomputers", TOPLAS 2(4), 1980; G. E. Blelloch, "Prefix sums and
 * their applications", 1990, section 1.5; S. Sengupta et al., "Scan primitives for GPU computing",
 * 2007.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SEGSCAN_LADDER_CUH
#define SPMV_SEGSCAN_LADDER_CUH

#include "primitives/scan/scan_ladder.cuh"
#include "primitives/segscan/segscan_ladder.h"

template <typename T> struct load_pairs {
    const T *in;
    const uint8_t *flags;

    __host__ __device__ segmented<T> operator()(int64_t i) const
    {
        return {in[i], flags[i] != 0};
    }
};

template <typename Op> struct store_values {
    using T = typename Op::type;
    T *out;
    const uint8_t *flags;
    bool exclusive;

    __host__ __device__ T value(int64_t i, segmented<T> pair) const
    {
        return exclusive && flags[i] != 0 ? Op::identity() : pair.value;
    }

    __host__ __device__ void operator()(int64_t i, segmented<T> pair) const
    {
        out[i] = value(i, pair);
    }
};

/* store(i, pairs[i]) */
template <typename Op> struct take_value {
    using T = typename Op::type;
    const segmented<T> *pairs;
    store_values<Op> store;

    __host__ __device__ T operator()(int64_t i) const
    {
        store(i, pairs[i]);
        return store.value(i, pairs[i]);
    }

    const char *label() const
    {
        return store.exclusive ? "copy the values, the identity at heads" : "copy the values";
    }
};

/* The pairs of operator and type for which the teaching rungs are built: few, because each needs as
 * much code as a tuned rung; one operator that commutes and one that does not. */
template <typename Op> constexpr bool segscan_teaches()
{
    return std::is_same<Op, op_add_f32>::value || std::is_same<Op, op_add_f64>::value ||
           std::is_same<Op, op_add_i32>::value || std::is_same<Op, op_last_f32>::value ||
           std::is_same<Op, op_last_f64>::value || std::is_same<Op, op_last_i32>::value;
}

/* Bytes of a pair whose value has value_bytes. */
inline int64_t segscan_pair_bytes(int64_t value_bytes)
{
    return value_bytes == (int64_t)sizeof(double) ? (int64_t)sizeof(segmented<double>)
                                                  : (int64_t)sizeof(segmented<float>);
}

/* Runs a block algorithm, level by level. Combine: the operator on pairs. */
template <template <typename> class Block, typename Op, typename Combine, typename Place>
spmv_status segscan_ladder_levels(Place &place, load_pairs<typename Op::type> load, store_values<Op> store,
                                  const scan_request *r)
{
    typename Combine::type *const pairs = (typename Combine::type *)r->scratch;
    const spmv_status st =
        scan_levels<Block, Combine>(place, load, pairs, r->n, r->block, store.exclusive, pairs + r->n);
    return st != SPMV_OK ? st : run_each<typename Op::type>(place, "take_values", take_value<Op>{pairs, store}, r->n);
}

template <typename Op, typename Combine, typename Place>
spmv_status segscan_ladder_run(int number, Place &place, const scan_request *r)
{
    using T = typename Op::type;
    using pair = typename Combine::type;
    const bool exclusive = r->kind == SPMV_EXCLUSIVE;
    const load_pairs<T> load = {(const T *)r->in, r->flags};
    const store_values<Op> store = {(T *)r->out, r->flags, exclusive};
    switch (number) {
    case LADDER_DEFINITION:
        return scan_0_launch<Combine>(place, load, store, r->n, exclusive,
                                      r->in == r->out ? (pair *)r->scratch : (pair *)NULL);
    case LADDER_HILLIS_STEELE:
        return segscan_ladder_levels<hillis_steele, Op, Combine>(place, load, store, r);
    case LADDER_HILLIS_STEELE_DOUBLE:
        return segscan_ladder_levels<hillis_steele_double, Op, Combine>(place, load, store, r);
    case LADDER_BLELLOCH_DIVERGENT:
        return segscan_ladder_levels<blelloch_divergent, Op, Combine>(place, load, store, r);
    case LADDER_BLELLOCH:
        return segscan_ladder_levels<blelloch, Op, Combine>(place, load, store, r);
    case LADDER_CHAINED:
        return scan_4_launch<blelloch, Combine>(place, load, store, r->n, r->block, exclusive, r->scratch);
    default:
        /* for one processor, so not on a GPU */
        if constexpr (!Place::PARALLEL)
            return place.run("scan_sequential",
                             scan_sequential<Combine, load_pairs<T>, store_values<Op>>{load, store, r->n, exclusive}, 1,
                             1);
        return SPMV_ERROR_METHOD;
    }
}

template <typename Op, typename Place> spmv_status segscan_ladder_with(int number, Place &place, const scan_request *r)
{
    using Combine = combine_segments<Op>;
    Place::template choose<Op>();
    Place::template choose<Combine>();
    return segscan_ladder_run<typename Place::template applied<Op>, typename Place::template applied<Combine>>(
        number, place, r);
}

/* Calls body(op_add_f64()) or the like for the pairs that have teaching rungs. */
template <typename Body> spmv_status segscan_ladder_with_op(spmv_context *ctx, const scan_request *r, const Body &body)
{
    return with_op(ctx, "segmented scan", r->op, r->type, [&](auto op) -> spmv_status {
        if constexpr (segscan_teaches<decltype(op)>())
            return body(op);
        else
            return context_fail(ctx, SPMV_ERROR_TYPE,
                                "segmented scan: no teaching rung for operator %s and type %s; there are some for add "
                                "and last, f32, f64 and i32",
                                spmv_op_name(r->op), spmv_type_name(r->type));
    });
}

/* As struct scan_ladder. */
struct segscan_ladder {
    static int64_t scratch(int number, const scan_request *r)
    {
        const int64_t pair = segscan_pair_bytes((int64_t)spmv_type_size(r->type));
        switch (number) {
        case LADDER_SEQUENTIAL:
            return 0;
        case LADDER_DEFINITION:
            return r->in == r->out ? r->n * pair : 0;
        case LADDER_CHAINED:
            return scan_4_scratch(r->n, r->block, pair);
        default:
            return (r->n + scan_levels_scratch(r->n, r->block)) * pair;
        }
    }

    template <typename Place> static spmv_status run(spmv_context *ctx, int number, Place &place, const scan_request *r)
    {
        return segscan_ladder_with_op(ctx, r,
                                      [&](auto op) { return segscan_ladder_with<decltype(op)>(number, place, r); });
    }
};

/* A segmented scan of a backend's table as a rung. */
template <decltype(segscan_scratch_ref) Scratch>
int64_t scratch_with_segments(const spmv_context *ctx, const scan_request *r)
{
    const spmv_segments segments = segments_of_request(r);
    return Scratch(ctx, r->type, &segments, r->n);
}

template <decltype(segscan_ref) Segscan> spmv_status run_with_segments(spmv_context *ctx, const scan_request *r)
{
    const spmv_segments segments = segments_of_request(r);
    return Segscan(ctx, r->kind, r->op, r->type, &segments, r->in, r->out, r->n, r->scratch);
}

#endif
