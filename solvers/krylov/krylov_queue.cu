/* The queue of steps of minres, gmres and bicgstab on CUDA: batches of steps are captured once, by
 * their length, and replayed as CUDA graphs. A batch does not depend on the number of its first
 * step beyond its parity, and batches of solvers whose steps alternate have an even length, so that
 * all begin with the same one. Capture and copies of the state: cg_blocks.cuh.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "solvers/cg/cg_blocks.cuh"

extern "C" {
#include "solvers/krylov/krylov_loop.h"
}

struct krylov_queue {
    cg_blocks::queue blocks;
    struct krylov_loop *g;
};

extern "C" spmv_status krylov_queue_open(struct krylov_loop *g, struct krylov_queue **queue)
{
    krylov_queue *q = nullptr;
    const spmv_status st = host_alloc(g->s.ctx, (int64_t)sizeof *q, "a solve", (void **)&q);
    *queue = q;
    if (st != SPMV_OK)
        return st;
    *q = {};
    q->g = g;
    q->blocks.ctx = g->s.ctx;
    q->blocks.states = g->v.state;
    q->blocks.bytes = (g->states != nullptr ? g->columns : 1) * (int64_t)sizeof(krylov_state);
    q->blocks.graphs = true;
    return cg_blocks::open_copies(&q->blocks);
}

extern "C" void krylov_queue_close(struct krylov_queue *q)
{
    if (q == nullptr)
        return;
    cg_blocks::close(&q->blocks);
    host_free(q);
}

extern "C" spmv_status krylov_queue_steps(struct krylov_queue *q, int64_t first, int steps, int which)
{
    const int length = steps == KRYLOV_LONG_BATCH ? cg_blocks::LONG : cg_blocks::SHORT;
    int64_t k = first;
    q->blocks.steps[length] = steps;
    return cg_blocks::queue_block(
        &q->blocks, [&] { return q->g->s.solver->step(q->g, k++); }, length, which);
}

extern "C" spmv_status krylov_queue_await(struct krylov_queue *q, int which, struct krylov_state *state)
{
    const spmv_status st = cg_blocks::await(q->blocks, which);
    if (st == SPMV_OK)
        memcpy(state, cg_blocks::copy_of(q->blocks, which), (size_t)q->blocks.bytes);
    return st;
}
