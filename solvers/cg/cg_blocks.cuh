/* Shared by the rungs "fused" and "graph" on CUDA, for one right-hand side and for several: the
 * state of a recurrence in device memory, and the host's loop.
 *
 * Steps are queued in blocks, ahead of need. Each block is captured once and replayed as one CUDA
 * graph, or launched kernel by kernel. After each block, the states are copied to page-locked host
 * memory, which the host reads while the next block runs, so the device never waits. When the
 * residuals show that the end is near, blocks become short, so that few unnecessary steps are
 * queued.
 *
 * CUDA C++ Programming Guide, "CUDA graphs".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_BLOCKS_CUH
#define CG_BLOCKS_CUH

#include <math.h>

#include "device/dispatch.cuh"
#include "device/launch.cuh"

extern "C" {
#include "product/plan_internal.h"
#include "solvers/cg/cg_internal.h"
#include "solvers/precond/precond_internal.h"
}

namespace cg_blocks
{

/* Steps of a block. A preconditioner of its own kernels makes a step long: then each block is one
 * step, because the unnecessary steps cost more than the launches. */
enum { LONG, SHORT, LENGTHS, AHEAD = 2 };
constexpr int steps_of[LENGTHS] = {16, 2}; /* even: see cg_2_fused.cuh, "Two directions" */

/* The recurrence of a column, in device memory. The host reads copies. */
enum { RING = 32 };
template <typename T> struct column {
    /* written before the first step */
    double tolerance;
    long long most; /* steps */
    /* written by a kernel before the first step, and by the last kernel of a step */
    T rr, rho;            /* rho: r'z, which is r'r without a preconditioner */
    double start, enough; /* norms: of the first residual; of a residual that ends the run */
    long long iterations;
    T history[RING]; /* r'r after iteration i, at i % RING */
    /* written by the kernels between (`ending` also where `enough` is reached) */
    T pq, alpha, alpha_before, rho_before;
    long long iterations_then;
    int stop, ending; /* stop: an enum column_stop; ending: no step follows */
};

struct queue {
    spmv_context *ctx;
    const struct plan_ranks *ranks; /* NULL: none */
    const void *states;             /* on the device: one a column */
    int64_t bytes;                  /* of all */
    bool graphs;
    int steps[LENGTHS];
    bool *ran;                       /* the columns that run */
    double *before;                  /* r'r of each column at the last check */
    cudaGraphExec_t replay[LENGTHS]; /* NULL: not captured, or not possible */
    bool tried[LENGTHS], plain;      /* plain: a capture failed */
    cudaEvent_t told[AHEAD];
};

/* Where copy `which` of the state arrives. */
inline void *copy_of(const queue &q, int which)
{
    return (char *)((cuda_state *)q.ctx->device)->staging + which * q.bytes;
}

/* Makes what the copies of the states need; ctx and bytes are set. */
inline spmv_status open_copies(queue *q)
{
    return on_device(q->ctx, [&] {
        spmv_status made = cuda_grow_staging(q->ctx, AHEAD * q->bytes);
        for (int k = 0; k < AHEAD && made == SPMV_OK; k++)
            made = cuda_check(q->ctx, cudaEventCreateWithFlags(&q->told[k], cudaEventDisableTiming), "an event");
        return made;
    });
}

/* Prepares the queue for states on the device, one for each column. *q must be zero. close also
 * closes a partly opened queue. */
inline spmv_status open(queue *q, const struct cg *cg, const void *states, bool graphs)
{
    const int64_t columns = cg->s.columns;
    q->ctx = cg->s.ctx;
    q->ranks = cg->s.plan->ranks;
    q->states = states;
    spmv_status st = with_zero(q->ctx, "spmv_cg", cg->s.type, [&](auto zero) {
        q->bytes = columns * (int64_t)sizeof(column<decltype(zero)>);
        return SPMV_OK;
    });
    q->graphs = graphs;
    const bool costly = cg->s.precond != nullptr && precond_inverse_diagonal(cg->s.precond) == nullptr;
    for (int l = 0; l < LENGTHS; l++)
        q->steps[l] = costly ? 1 : steps_of[l];
    if (st == SPMV_OK)
        st = host_alloc(q->ctx, columns * (int64_t)sizeof *q->ran, "a solve", (void **)&q->ran);
    if (st == SPMV_OK)
        st = host_alloc(q->ctx, columns * (int64_t)sizeof *q->before, "a solve", (void **)&q->before);
    return st != SPMV_OK ? st : open_copies(q);
}

inline void close(queue *q)
{
    for (int l = 0; l < LENGTHS; l++)
        if (q->replay[l] != nullptr && cudaGraphExecDestroy(q->replay[l]) != cudaSuccess)
            cudaGetLastError();
    for (int k = 0; k < AHEAD; k++)
        if (q->told[k] != nullptr && cudaEventDestroy(q->told[k]) != cudaSuccess)
            cudaGetLastError();
    host_free(q->ran);
    host_free(q->before);
}

/* step(): queues one step. */
template <typename Step> spmv_status queue_steps(const Step &step, int count)
{
    spmv_status st = SPMV_OK;
    for (int k = 0; k < count && st == SPMV_OK; k++)
        st = step();
    return st;
}

/* Captures the steps. Where capture is not possible, as on the default stream, steps are launched
 * one by one from now on. */
template <typename Step> spmv_status capture(queue *q, const Step &step, int length)
{
    const cudaStream_t stream = (cudaStream_t)q->ctx->stream;
    cudaGraph_t steps = nullptr;
    bool begun = false;
    q->tried[length] = true;
    spmv_status st = on_device(q->ctx, [&] {
        begun = stream != nullptr && stream != cudaStreamLegacy &&
                cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
        if (!begun)
            cudaGetLastError();
        return SPMV_OK;
    });
    if (st != SPMV_OK || !begun)
        return st;
    const spmv_status queued = queue_steps(step, q->steps[length]);
    return on_device(q->ctx, [&] {
        bool made = cudaStreamEndCapture(stream, &steps) == cudaSuccess && queued == SPMV_OK && steps != nullptr;
        made = made && cudaGraphInstantiate(&q->replay[length], steps, 0) == cudaSuccess;
        if (steps != nullptr)
            cudaGraphDestroy(steps);
        if (!made) {
            cudaGetLastError();
            q->replay[length] = nullptr;
            q->plain = true;
        }
        return SPMV_OK;
    });
}

inline spmv_status replay(const queue &q, int length)
{
    return on_device(q.ctx, [&] {
        return cuda_check(q.ctx, cudaGraphLaunch(q.replay[length], (cudaStream_t)q.ctx->stream), "cg graph");
    });
}

/* Queues a block of steps, and after it the copy `which` of the states. */
template <typename Step> spmv_status queue_block(queue *q, const Step &step, int length, int which)
{
    const cudaStream_t stream = (cudaStream_t)q->ctx->stream;
    spmv_status st = SPMV_OK;
    if (q->graphs && !q->tried[length] && !q->plain)
        st = capture(q, step, length);
    if (st == SPMV_OK)
        st = q->replay[length] != nullptr ? replay(*q, length) : queue_steps(step, q->steps[length]);
    return st != SPMV_OK ? st : on_device(q->ctx, [&] {
        const cudaError_t error =
            cudaMemcpyAsync(copy_of(*q, which), q->states, (size_t)q->bytes, cudaMemcpyDeviceToHost, stream);
        return cuda_check(q->ctx, error != cudaSuccess ? error : cudaEventRecord(q->told[which], stream), "cg state");
    });
}

/* Waits for a copy of the state. */
inline spmv_status await(const queue &q, int which)
{
    if (q.ranks != nullptr)
        return q.ranks->await(q.ranks->self, q.told[which]);
    return on_device(q.ctx, [&] { return cuda_check(q.ctx, cudaEventSynchronize(q.told[which]), "a step of cg"); });
}

/* Reports the iterations of this run, up to the last one made, to the callback: of each iteration
 * the largest residual of the columns that made it. *next: the next iteration to report; `base`
 * iterations came before the run. */
template <typename T> void tell(struct cg *cg, const queue &q, const column<T> *columns, int64_t base, int64_t *next)
{
    int64_t last = 0;
    for (int v = 0; v < cg->s.columns; v++)
        last = q.ran[v] ? max_i64(last, columns[v].iterations) : last;
    for (; *next <= last && cg->s.told == SPMV_OK; ++*next) {
        double most = 0;
        for (int v = 0; v < cg->s.columns; v++) {
            if (!q.ran[v] || columns[v].iterations < *next)
                continue;
            const double residual = sqrt((double)columns[v].history[*next % RING]);
            most = residual <= most ? most : residual;
        }
        krylov_tell(&cg->s, base + *next, most);
    }
}

template <typename T> bool all_ended(const struct cg *cg, const column<T> *columns)
{
    bool ended = true;
    for (int v = 0; v < cg->s.columns; v++)
        ended = ended && columns[v].ending != 0;
    return ended;
}

/* Whether the fall of r'r over the last `steps` steps predicts for all columns that fewer steps are
 * left than are queued at a time. */
template <typename T> bool near_end(const struct cg *cg, const queue &q, const column<T> *columns, int64_t steps)
{
    bool near = true;
    for (int v = 0; v < cg->s.columns; v++) {
        const column<T> &c = columns[v];
        if (c.ending != 0)
            continue;
        const double fall = log(q.before[v] / (double)c.rr), left = log((double)c.rr / (c.enough * c.enough));
        near = near && fall > 0 && left / fall * (double)steps < (AHEAD + 1) * q.steps[LONG];
    }
    return near;
}

/* Copies the states of the columns that ran. After a cancellation x is that of the last step
 * queued; a column that had not stopped before the iteration in question is cancelled. */
template <typename T> void digest(struct cg *cg, const queue &q, const column<T> *columns, int64_t base)
{
    int64_t steps = 0;
    for (int v = 0; v < cg->s.columns; v++) {
        const column<T> &from = columns[v];
        struct krylov_column *const to = &cg->s.column[v];
        if (!q.ran[v])
            continue;
        cg->column[v].rr = from.rr;
        cg->column[v].pq = from.pq;
        cg->column[v].rz = from.rho;
        to->start_residual = from.start;
        to->enough = from.enough;
        to->residual = sqrt((double)from.rr);
        to->iterations = from.iterations;
        to->stop = from.stop == COLUMN_RUNS && from.ending != 0 ? COLUMN_DONE : (enum column_stop)from.stop;
        if (cg->s.told != SPMV_OK && base + from.iterations >= cg->s.told_at)
            to->stop = COLUMN_RUNS;
        steps = max_i64(steps, from.iterations);
    }
    cg->s.iterations = base + steps;
}

/* Notes which columns run, before the states are written. */
inline void begin(const struct cg *cg, queue *q)
{
    for (int v = 0; v < cg->s.columns; v++) {
        q->ran[v] = cg->s.column[v].stop == COLUMN_RUNS;
        q->before[v] = 0;
    }
}

/* Queues steps until all columns have ended or the callback cancels; the states are written. */
template <typename T, typename Step> spmv_status run_steps(struct cg *cg, queue *q, const Step &step)
{
    const auto copy = [=](int which) { return (const column<T> *)copy_of(*q, which); };
    const int64_t base = cg->s.iterations;
    int64_t next = base > 0; /* a continued run has reported iteration 0 already */
    int length = LONG, last = 0, steps = 0;
    spmv_status st = SPMV_OK;
    for (int block = 0; st == SPMV_OK; block++) {
        last = block % AHEAD;
        const int queued = q->steps[length];
        st = queue_block(q, step, length, last);
        if (st != SPMV_OK || block < AHEAD - 1) {
            steps = queued;
            continue;
        }
        const int which = (block + 1) % AHEAD;
        st = await(*q, which);
        if (st != SPMV_OK)
            break;
        const column<T> *const columns = copy(which);
        tell(cg, *q, columns, base, &next);
        digest(cg, *q, columns, base);
        if (cg->s.told != SPMV_OK || all_ended(cg, columns))
            break;
        const bool shorter = q->steps[SHORT] < q->steps[LONG];
        length = shorter && block >= AHEAD && near_end(cg, *q, columns, steps) ? SHORT : LONG;
        for (int v = 0; v < cg->s.columns; v++)
            q->before[v] = (double)columns[v].rr;
        steps = queued;
    }
    if (st == SPMV_OK)
        st = await(*q, last);
    if (st != SPMV_OK)
        return st;
    tell(cg, *q, copy(last), base, &next);
    digest(cg, *q, copy(last), base);
    return SPMV_OK;
}

/* A run: begin(T()) writes the states, step(T()) queues a step. */
template <typename Begin, typename Step> spmv_status run(struct cg *cg, queue *q, const Begin &begin, const Step &step)
{
    return with_zero(cg->s.ctx, "spmv_cg", cg->s.type, [&](auto zero) {
        const spmv_status st = begin(zero);
        return st != SPMV_OK ? st : run_steps<decltype(zero)>(cg, q, [&] { return step(zero); });
    });
}

} // namespace cg_blocks

#endif
