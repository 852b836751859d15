/* The table of the single-pass rungs in several shapes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/device/lookback_delays.cuh" /* before the rungs */

#include "primitives/scan/scan_3_chunks.cuh"
#include "primitives/scan/scan_5_lookback.cuh"
#include "primitives/segscan/segreduce_1_walk.cuh"
#include "primitives/segscan/segreduce_3_resident.cuh"
#include "primitives/segscan/segscan_6_pipeline.cuh"

extern "C" {
#include "tests/device/lookback_rungs.h"
}

namespace
{

/* Look-back rungs with a shape for scan and one for segmented scan. Segmented reduce has only one
 * shape. */
template <typename ScanShape, typename SegscanShape> struct shapes {
    template <typename Op, typename Load, typename Store>
    static spmv_status scan(spmv_context *ctx, Load load, Store store, int64_t n, bool exclusive, void *scratch)
    {
        return scan_5_launch<Op, ScanShape>(ctx, load, store, n, exclusive, scratch);
    }
    template <typename Op, typename Load, typename Store>
    static spmv_status segscan(spmv_context *ctx, Load load, Store store, segment_starts segments, int64_t n,
                               bool exclusive, void *scratch)
    {
        return segscan_5_launch<Op, SegscanShape>(ctx, load, store, segments, n, exclusive, scratch);
    }
    template <typename Op, typename Load, typename Store>
    static spmv_status segreduce(spmv_context *ctx, Load load, Store store, segment_closings closings, void *scratch)
    {
        return segreduce_1_launch<Op>(ctx, load, store, closings, scratch);
    }
};

/* Pipelined rungs; devices without a copy engine use Otherwise. */
template <typename ScanShape, typename SegscanShape, typename MergeShape, typename Otherwise> struct pipeline {
    template <typename Op, typename Load, typename Store>
    static spmv_status scan(spmv_context *ctx, Load load, Store store, int64_t n, bool exclusive, void *scratch)
    {
        if (!engine_there(ctx))
            return Otherwise::template scan<Op>(ctx, load, store, n, exclusive, scratch);
        return scan_6_launch<Op, ScanShape>(ctx, load, store, no_heads(), n, exclusive);
    }
    template <typename Op, typename Load, typename Store>
    static spmv_status segscan(spmv_context *ctx, Load load, Store store, segment_starts segments, int64_t n,
                               bool exclusive, void *scratch)
    {
        if (!engine_there(ctx))
            return Otherwise::template segscan<Op>(ctx, load, store, segments, n, exclusive, scratch);
        return segscan_6_launch<Op, SegscanShape>(ctx, load, store, segments, n, exclusive);
    }
    template <typename Op, typename Load, typename Store>
    static spmv_status segreduce(spmv_context *ctx, Load load, Store store, segment_closings closings, void *scratch)
    {
        if (!engine_there(ctx))
            return Otherwise::template segreduce<Op>(ctx, load, store, closings, scratch);
        return segreduce_2_launch<Op, MergeShape>(ctx, load, store, closings, scratch);
    }
};

/* Segmented reduce with all blocks resident, if there are few enough; else Otherwise. */
template <typename Otherwise> struct resident : Otherwise {
    template <typename Op, typename Load, typename Store>
    static spmv_status segreduce(spmv_context *ctx, Load load, Store store, segment_closings closings, void *scratch)
    {
        if (!segreduce_resident_fits<typename Op::type>(closings.n + closings.count))
            return Otherwise::template segreduce<Op>(ctx, load, store, closings, scratch);
        return segreduce_resident_launch<Op>(ctx, load, store, closings);
    }
};

/* A rung with delayed operators; each call draws new delays. */
template <typename Rung> struct under_delays {
    template <typename Op, typename... Arguments> static spmv_status scan(spmv_context *ctx, Arguments... arguments)
    {
        const spmv_status st = new_delays(ctx);
        return st != SPMV_OK ? st : Rung::template scan<delayed<Op>>(ctx, arguments...);
    }
    template <typename Op, typename... Arguments> static spmv_status segscan(spmv_context *ctx, Arguments... arguments)
    {
        const spmv_status st = new_delays(ctx);
        return st != SPMV_OK ? st : Rung::template segscan<delayed<Op>>(ctx, arguments...);
    }
    template <typename Op, typename... Arguments>
    static spmv_status segreduce(spmv_context *ctx, Arguments... arguments)
    {
        const spmv_status st = new_delays(ctx);
        return st != SPMV_OK ? st : Rung::template segreduce<delayed<Op>>(ctx, arguments...);
    }
};

struct chunks {
    template <typename Op, typename Load, typename Store>
    static spmv_status scan(spmv_context *ctx, Load load, Store store, int64_t n, bool exclusive, void *scratch)
    {
        return scan_3_launch<Op>(ctx, load, store, n, exclusive, scratch);
    }
    template <typename Op, typename Load, typename Store>
    static spmv_status segscan(spmv_context *ctx, Load load, Store store, segment_starts segments, int64_t n,
                               bool exclusive, void *scratch)
    {
        return segscan_3_launch<Op>(ctx, load, store, segments, n, exclusive, scratch);
    }
    template <typename Op, typename Load, typename Store>
    static spmv_status segreduce(spmv_context *ctx, Load load, Store store, segment_closings closings, void *scratch)
    {
        return segreduce_1_launch<Op>(ctx, load, store, closings, scratch);
    }
};

/* SPMV_FEW_TYPES: where it is only compiled. */
#ifdef SPMV_FEW_TYPES
enum { FEW_TYPES = 1 };
#else
enum { FEW_TYPES = 0 };
#endif

/* Calls Rung::f<operator>(ctx, load, store, ...) for the operators and types that are built. */
#define FOR_PAIR(f, ...)                                                                                               \
    return on_device(ctx, [=] {                                                                                        \
        if constexpr (!FEW_TYPES) {                                                                                    \
            if (op == SPMV_ADD && type == SPMV_F32)                                                                    \
                return Rung::template f<op_add_f32>(ctx, load_array<float>{(const float *)in},                         \
                                                    store_array<float>{(float *)out}, __VA_ARGS__);                    \
            if (op == SPMV_ADD && type == SPMV_F64)                                                                    \
                return Rung::template f<op_add_f64>(ctx, load_array<double>{(const double *)in},                       \
                                                    store_array<double>{(double *)out}, __VA_ARGS__);                  \
        }                                                                                                              \
        if (op == SPMV_LAST && type == SPMV_I32)                                                                       \
            return Rung::template f<op_last_i32>(ctx, load_array<int32_t>{(const int32_t *)in},                        \
                                                 store_array<int32_t>{(int32_t *)out}, __VA_ARGS__);                   \
        return context_fail(ctx, SPMV_ERROR_TYPE, "a shape of " #f ": not built for operator %d and type %d", (int)op, \
                            (int)type);                                                                                \
    })

template <typename Rung>
spmv_status scan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in, void *out,
                 int64_t n, void *scratch)
{
    FOR_PAIR(scan, n, kind == SPMV_EXCLUSIVE, scratch);
}

template <typename Rung>
spmv_status segscan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const spmv_segments *segments,
                    const void *in, void *out, int64_t n, void *scratch)
{
    FOR_PAIR(segscan, starts_of(segments), n, kind == SPMV_EXCLUSIVE, scratch);
}

template <typename Rung>
spmv_status segreduce(spmv_context *ctx, spmv_op op, spmv_type type, const spmv_segments *segments, const void *in,
                      void *out, int64_t n, void *scratch)
{
    FOR_PAIR(segreduce, closings_of(segments, n), scratch);
}

template <typename Rung> constexpr lookback_rung rung(const char *name)
{
    return {name, scan<Rung>, segscan<Rung>, segreduce<Rung>};
}

using small_scan = lookback_shape<2 * warp_lanes, 1, 1>;
using small_segscan = lookback_shape<block_threads, 1, 1>;
using best = shapes<scan_5_best<float>, segscan_5_best>;
using small = shapes<small_scan, small_segscan>;
using small_pipeline = pipeline<pipeline_shape<1>, pipeline_shape<1>, merge_shape<12, 3, 4>, small>;
enum { SMALLEST_TILE = 256 }; /* steps, in the smallest shapes with 8-byte elements */

} // namespace

/* clang-format off */
extern "C" const lookback_rung lookback_rungs[] = {
    rung<chunks>("chunks"),
    rung<best>("lookback"),
    rung<pipeline<scan_6_shape, segscan_6_shape, segreduce_2_shape, best>>("pipeline"),
    rung<pipeline<pipeline_shape<9, 2>, pipeline_shape<7, 1>, merge_shape<124, 3, 4>, best>>("pipeline-b"),
    rung<resident<small>>("small"),
    rung<under_delays<resident<small>>>("delayed"),
    rung<small_pipeline>("small-pipeline"),
    rung<under_delays<small_pipeline>>("delayed-pipeline"),
};
/* clang-format on */
extern "C" const int lookback_rungs_count = sizeof lookback_rungs / sizeof lookback_rungs[0];

extern "C" int64_t lookback_rung_scratch(spmv_type type, int64_t n, int64_t count)
{
    const int64_t bytes = (int64_t)spmv_type_size(type);
    const int64_t single = lookback_scratch(bytes, (n + count) / (SMALLEST_TILE / 2) + 1);
    const int64_t chunked = segreduce_1_scratch(bytes); /* the maximum of the three */
    const int64_t starts = ((n + count) / SMALLEST_TILE + 2) * (int64_t)sizeof(int64_t);
    const int64_t larger = single > chunked ? single : chunked;
    return larger > starts ? larger : starts;
}
