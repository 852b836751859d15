/* scatter on CUDA: the rungs for every element size and index width; with a predicate, for every
 * type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/moves.cuh"
#include "primitives/scatter/scatter_1_direct.cuh"

extern "C" spmv_status scatter_cuda(spmv_context *ctx, const struct move *m)
{
    return on_device(ctx, [=] {
        return with_filter(ctx, "scatter", m->filter, m->type, [=](auto take) {
            return scatter_1_launch(ctx, take, m->in, m->index, m->index_bits, m->out, m->cells, m->n);
        });
    });
}
