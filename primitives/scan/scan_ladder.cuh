/* The teaching rungs of scan by name, for every operator and type, on a GPU or on the host.
 *
 * The tables of the backends (scan_ladder_host.cc, scan_ladder_cuda.cu), the scratch and the
 * dispatch are generated from one list.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_LADDER_CUH
#define SPMV_SCAN_LADDER_CUH

#include "device/dispatch.cuh"
#include "primitives/scan/scan_0_definition.cuh"
#include "primitives/scan/scan_1_hillis_steele.cuh"
#include "primitives/scan/scan_2_blelloch.cuh"
#include "primitives/scan/scan_4_chained.cuh"
#include "primitives/scan/scan_ladder.h"
#include "primitives/scan/scan_levels.cuh"

extern "C" {
#include "core/backend.h"
}

/* X(number, name, default block, by_block, most, LADDER, RUN) */
#define SCAN_LADDER(X, LADDER, RUN)                                                                                    \
    X(LADDER_DEFINITION, "definition", 0, false, SCAN_DEFINITION_MOST, LADDER, RUN)                                    \
    X(LADDER_HILLIS_STEELE, "hillis-steele", SCAN_BLOCK_MOST, true, 0, LADDER, RUN)                                    \
    X(LADDER_HILLIS_STEELE_DOUBLE, "hillis-steele-double", SCAN_BLOCK_MOST, true, 0, LADDER, RUN)                      \
    X(LADDER_BLELLOCH_DIVERGENT, "blelloch-divergent", SCAN_BLOCK_MOST, true, 0, LADDER, RUN)                          \
    X(LADDER_BLELLOCH, "blelloch", SCAN_BLOCK_MOST, true, 0, LADDER, RUN)                                              \
    X(LADDER_CHAINED, "chained", SCAN_BLOCK_MOST, false, 0, LADDER, RUN)

#define SCAN_LADDER_NUMBER_(number, name, block, by_block, most, LADDER, RUN) number,
enum scan_ladder_number { SCAN_LADDER(SCAN_LADDER_NUMBER_, , ) LADDER_SEQUENTIAL };
#undef SCAN_LADDER_NUMBER_

/* The rows of a table of rungs. LADDER: scan_ladder or segscan_ladder; RUN: ladder_on_gpu or
 * ladder_on_host. */
#define SCAN_LADDER_ROW_(number, name, block, by_block, most, LADDER, RUN)                                             \
    {name, block, by_block, most, ladder_scratch<LADDER, number>, RUN<LADDER, number>},
#define SCAN_LADDER_ROWS(LADDER, RUN) SCAN_LADDER(SCAN_LADDER_ROW_, LADDER, RUN)

template <template <typename> class Block, typename Op, typename Place>
spmv_status scan_ladder_blocks(Place &place, const scan_request *r)
{
    using T = typename Op::type;
    const T *in = (const T *)r->in;
    T *out = (T *)r->out, *sums = (T *)r->sums;
    const bool exclusive = r->kind == SPMV_EXCLUSIVE;
    if (r->form == SCAN_ALL)
        return scan_levels<Block, Op>(place, load_array<T>{in}, out, r->n, r->block, exclusive, (T *)r->scratch);
    const int64_t blocks = (r->n + r->block - 1) / r->block;
    if (r->form == SCAN_SUMS)
        return run_each<T>(place, "block_sums",
                           block_sum<Op>{in, (const T *)r->scanned, sums, r->n, r->block, exclusive}, blocks);
    const Block<Op> block{r->block, exclusive};
    return place.run(Block<Op>::name(),
                     scan_blocks<Block<Op>, load_array<T>, store_array<T>>{block, {in}, {out}, r->n, sums}, blocks,
                     block.threads());
}

template <typename Op, typename Place> spmv_status scan_ladder_run(int number, Place &place, const scan_request *r)
{
    using T = typename Op::type;
    const load_array<T> load = {(const T *)r->in};
    const store_array<T> store = {(T *)r->out};
    const bool exclusive = r->kind == SPMV_EXCLUSIVE;
    switch (number) {
    case LADDER_DEFINITION:
        return scan_0_launch<Op>(place, load, store, r->n, exclusive, r->in == r->out ? (T *)r->scratch : (T *)NULL);
    case LADDER_HILLIS_STEELE:
        return scan_ladder_blocks<hillis_steele, Op>(place, r);
    case LADDER_HILLIS_STEELE_DOUBLE:
        return scan_ladder_blocks<hillis_steele_double, Op>(place, r);
    case LADDER_BLELLOCH_DIVERGENT:
        return scan_ladder_blocks<blelloch_divergent, Op>(place, r);
    case LADDER_BLELLOCH:
        return scan_ladder_blocks<blelloch, Op>(place, r);
    case LADDER_CHAINED:
        return scan_4_launch<blelloch, Op>(place, load, store, r->n, r->block, exclusive, r->scratch);
    default:
        /* for one processor, so not on a GPU */
        if constexpr (!Place::PARALLEL)
            return place.run("scan_sequential",
                             scan_sequential<Op, load_array<T>, store_array<T>>{load, store, r->n, exclusive}, 1, 1);
        return SPMV_ERROR_METHOD;
    }
}

/* What the tables of rungs need: the bytes of scratch of a rung, and a function that runs it. */
struct scan_ladder {
    static int64_t scratch(int number, const scan_request *r)
    {
        const int64_t size = (int64_t)spmv_type_size(r->type);
        if (r->form != SCAN_ALL || number == LADDER_SEQUENTIAL)
            return 0;
        if (number == LADDER_DEFINITION)
            return r->in == r->out ? r->n * size : 0;
        return number == LADDER_CHAINED ? scan_4_scratch(r->n, r->block, size)
                                        : scan_levels_scratch(r->n, r->block) * size;
    }

    /* For numbers only: two arrays with a block's tuples do not fit in shared memory. */
    template <typename Place> static spmv_status run(spmv_context *ctx, int number, Place &place, const scan_request *r)
    {
        return with_op(ctx, "scan", r->op, r->type, [&](auto op) -> spmv_status {
            using Op = decltype(op);
            if constexpr (sizeof(typename Op::type) <= 8) {
                Place::template choose<Op>();
                return scan_ladder_run<typename Place::template applied<Op>>(number, place, r);
            } else {
                return context_fail(ctx, SPMV_ERROR_TYPE, "scan: no teaching rung for operator %s and type %s",
                                    spmv_op_name(r->op), spmv_type_name(r->type));
            }
        });
    }
};

template <typename Ladder, int number> int64_t ladder_scratch(const spmv_context *, const scan_request *r)
{
    return Ladder::scratch(number, r);
}

#ifdef SPMV_HAVE_KERNELS
template <typename Ladder, int number> spmv_status ladder_on_gpu(spmv_context *ctx, const scan_request *r)
{
    return on_device(ctx, [=] {
        steps_on_gpu gpu{ctx};
        return Ladder::run(ctx, number, gpu, r);
    });
}
#endif

#endif
