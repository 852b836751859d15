/* gather on CUDA: the rungs for every element size and index width; with a predicate, for every
 * type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/gather_1_direct.cuh"
#include "primitives/gather/moves.cuh"

extern "C" spmv_status gather_cuda(spmv_context *ctx, const struct move *m)
{
    return on_device(ctx, [=] {
        return with_filter(ctx, "gather", m->filter, m->type, [=](auto take) {
            return gather_1_launch(ctx, take, m->in, m->cells, m->index, m->index_bits, m->out, m->n);
        });
    });
}
