/* Conjugate gradients on CUDA: rung 3, "graph", and the host side that it shares with rung 2,
 * "fused".
 *
 * Idea: a launch costs the host about 3 us, as long as a step of a small system takes on the
 * device. Rung 2 launches the kernels of cg_2_fused.cuh one by one. Rung 3 captures the kernels of
 * 16 steps once and replays them as one CUDA graph, which is one launch.
 * Changed since rung 2: nothing on the device.
 * Wins when: the system has more than about 245,000 rows (it does not fit the persistent rung) and
 * fewer than some millions (launches then no longer show).
 *
 * After each block of steps the device copies its state to the host. The host queues the next block
 * before it reads that copy, so the device never waits. When the residuals show that the end is
 * near, blocks become short, so that few steps are queued in vain.
 *
 * Source: CUDA C++ Programming Guide, "CUDA graphs", "Programmatic dependent launch".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "cg_2_fused.cuh"

extern "C" {
#include "cg_internal.h"
#include "plan_internal.h"
#include "precond_internal.h"
}

namespace
{

enum { LONG, SHORT, LENGTHS, AHEAD = 2 };
const int steps_of[LENGTHS] = {16, 2};

#ifndef HOST_CUDA
using graph = cudaGraphExec_t;
#else
using graph = void *; /* the host that plays a GPU has no graphs */
#endif

/* The state of the rung. */
struct queue {
    bool graphs;
    void *memory, *z; /* on the device: the state and parts of sums; M^-1 r, unless a kernel computes it itself */
    int64_t left_at, rz_at, pq_at;
    graph replay[LENGTHS]; /* NULL: not captured, or not possible */
    bool tried[LENGTHS];
    cudaEvent_t told[AHEAD];
    bool plain; /* a capture failed */
};

queue *queue_of(const struct cg *cg)
{
    return (queue *)cg->state;
}

/* body(T()) */
template <typename Body> spmv_status with_type(const struct cg *cg, const Body &body)
{
    return cg->type == SPMV_F32 ? body(float()) : body(double());
}

/* Whether a thread of a vector kernel has one element only. */
bool is_small(const struct cg *cg)
{
    return cg->n <= (int64_t)cg_fused::FEW_BLOCKS * cg_fused::BLOCK;
}

int64_t blocks_of(const struct cg *cg)
{
    return is_small(cg)                          ? (cg->n - 1) / cg_fused::BLOCK + 1
           : cg->n <= (int64_t)cg_fused::FEW_FOR ? (int64_t)cg_fused::FEW_BLOCKS
                                                 : (int64_t)cg_fused::MANY_BLOCKS;
}

/* The parts themselves, or, where there are more than TOP, the FOLDED parts made from them. */
template <typename T> cg_fused::parts_of<T> parts_of(const T *parts, int64_t count, const T *folded)
{
    return count <= cg_fused::TOP ? cg_fused::parts_of<T>{parts, (int)count}
                                  : cg_fused::parts_of<T>{folded, cg_fused::FOLDED};
}

/* The parts of p'q that a product stores. */
template <typename T> T *pq_parts(const struct cg *cg, int64_t *count)
{
    *count = 1;
    const auto dot_parts = cg->plan->method->dot_parts;
    return dot_parts != nullptr ? (T *)dot_parts(cg->plan, count) : (T *)cg_scalar(cg, PQ);
}

template <typename T> cg_fused::system<T> system_of(const struct cg *cg)
{
    const queue *const own = queue_of(cg);
    char *const memory = (char *)own->memory;
    const void *const scale = cg->precond != nullptr ? precond_inverse_diagonal(cg->precond) : nullptr;
    auto *const left = (cg_fused::two<T> *)(memory + own->left_at);
    int64_t count = 0;
    const T *const pq = pq_parts<T>(cg, &count);
    T *const rz = (T *)(memory + own->rz_at);
    return {(cg_fused::state<T> *)memory,
            (T *)cg->x,
            (T *)cg->r,
            (T *)cg->p,
            (T *)cg->q,
            (const T *)scale,
            (const T *)own->z,
            cg->n,
            parts_of(pq, count, (const T *)(memory + own->pq_at)),
            {rz, cg_fused::FOLDED},
            {left, (int)blocks_of(cg)},
            left,
            rz};
}

/* Launches the kernel on the system of this solve. */
template <typename T, typename Kernel, typename... Arguments>
spmv_status queue_kernel(const struct cg *cg, const char *name, int64_t blocks, Kernel kernel, Arguments... arguments)
{
    return on_device(cg->ctx, [&] {
        return launch_early(cg->ctx, name, (int)blocks, cg_fused::BLOCK, kernel, system_of<T>(cg), arguments...);
    });
}

/* The kernel for one element a thread, or for several at a time. */
#define KERNEL_FOR(kernel, some) (is_small(cg) ? kernel<T, 1> : kernel<T, some>)

/* Folds the parts of p'q where there are more than TOP. */
template <typename T> spmv_status queue_fold(const struct cg *cg)
{
    int64_t count = 0;
    const T *const parts = pq_parts<T>(cg, &count);
    if (count <= cg_fused::TOP)
        return SPMV_OK;
    return on_device(cg->ctx, [&] {
        return launch_early(cg->ctx, "cg fold", cg_fused::FOLDED, cg_fused::BLOCK, cg_fused::fold<T>, parts, count,
                            (T *)system_of<T>(cg).pq.at);
    });
}

/* One step. */
template <typename T> spmv_status queue_step(const struct cg *cg)
{
    const queue *const own = queue_of(cg);
    spmv_epilogue dot;
    spmv_epilogue_init(&dot, sizeof dot);
    dot.w = cg->p;
    dot.dot = cg_scalar(cg, PQ);
    struct plan_product product = plan_product_of(cg->plan, nullptr, cg->p, nullptr, cg->q);
    product.epilogue = &dot;
    product.stop = &system_of<T>(cg).s->ending;
    product.leaves_parts = true;
    spmv_status st = plan_multiply(cg->plan, &product);
    if (st == SPMV_OK)
        st = queue_fold<T>(cg);
    if (st == SPMV_OK)
        st = queue_kernel<T>(cg, "cg r - alpha q", blocks_of(cg), KERNEL_FOR(cg_fused::step_residual, 8));
    if (st == SPMV_OK && own->z != nullptr) {
        st = cg_precondition(cg, cg->r, own->z);
        if (st == SPMV_OK)
            st = queue_kernel<T>(cg, "cg r'z", cg_fused::FOLDED, cg_fused::step_rho<T>);
    }
    return st != SPMV_OK ? st : queue_kernel<T>(cg, "cg p", blocks_of(cg), KERNEL_FOR(cg_fused::step_direction, 4));
}

template <typename T> spmv_status queue_steps(const struct cg *cg, int length)
{
    spmv_status st = SPMV_OK;
    for (int k = 0; k < steps_of[length] && st == SPMV_OK; k++)
        st = queue_step<T>(cg);
    return st;
}

#ifndef HOST_CUDA
/* Captures the steps. Where that is not possible, because a preconditioner waits or the stream is
 * the default one, the steps are launched one by one from now on. */
template <typename T> spmv_status capture(const struct cg *cg, int length)
{
    queue *const own = queue_of(cg);
    const cudaStream_t stream = (cudaStream_t)cg->ctx->stream;
    cudaGraph_t steps = nullptr;
    bool begun = false;
    own->tried[length] = true;
    spmv_status st = on_device(cg->ctx, [&] {
        begun = stream != nullptr && stream != cudaStreamLegacy &&
                cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
        if (!begun)
            cudaGetLastError();
        return SPMV_OK;
    });
    if (st != SPMV_OK || !begun)
        return st;
    const spmv_status queued = queue_steps<T>(cg, length);
    return on_device(cg->ctx, [&] {
        bool made = cudaStreamEndCapture(stream, &steps) == cudaSuccess && queued == SPMV_OK && steps != nullptr;
        made = made && cudaGraphInstantiate(&own->replay[length], steps, 0) == cudaSuccess;
        if (steps != nullptr)
            cudaGraphDestroy(steps);
        if (!made) {
            cudaGetLastError();
            own->replay[length] = nullptr;
            own->plain = true;
        }
        return SPMV_OK;
    });
}

spmv_status replay(const struct cg *cg, int length)
{
    return on_device(cg->ctx, [&] {
        return cuda_check(cg->ctx, cudaGraphLaunch(queue_of(cg)->replay[length], (cudaStream_t)cg->ctx->stream),
                          "cg graph");
    });
}

void destroy(graph g)
{
    if (g != nullptr && cudaGraphExecDestroy(g) != cudaSuccess)
        cudaGetLastError();
}
#else
template <typename T> spmv_status capture(const struct cg *, int)
{
    return SPMV_OK;
}

spmv_status replay(const struct cg *, int)
{
    return SPMV_OK;
}

void destroy(graph)
{
}
#endif

/* The host's copy number `which` of the state. */
template <typename T> cg_fused::state<T> *copy_of(const struct cg *cg, int which)
{
    return (cg_fused::state<T> *)((cuda_state *)cg->ctx->device)->staging + which;
}

/* Queues a block of steps and the copy of the state after it. */
template <typename T> spmv_status queue_block(const struct cg *cg, int length, int which)
{
    queue *const own = queue_of(cg);
    const cudaStream_t stream = (cudaStream_t)cg->ctx->stream;
    spmv_status st = SPMV_OK;
    if (own->graphs && !own->tried[length] && !own->plain)
        st = capture<T>(cg, length);
    if (st == SPMV_OK)
        st = own->replay[length] != nullptr ? replay(cg, length) : queue_steps<T>(cg, length);
    return st != SPMV_OK ? st : on_device(cg->ctx, [&] {
        const cudaError_t error = cudaMemcpyAsync(copy_of<T>(cg, which), own->memory, sizeof(cg_fused::state<T>),
                                                  cudaMemcpyDeviceToHost, stream);
        return cuda_check(cg->ctx, error != cudaSuccess ? error : cudaEventRecord(own->told[which], stream),
                          "cg state");
    });
}

/* Waits until that copy of the state has arrived. */
spmv_status await(const struct cg *cg, int which)
{
    return on_device(
        cg->ctx, [&] { return cuda_check(cg->ctx, cudaEventSynchronize(queue_of(cg)->told[which]), "a step of cg"); });
}

/* Reports the iterations up to those of s to the callback, and stores the scalars of s in cg. */
template <typename T> spmv_status digest(struct cg *cg, const cg_fused::state<T> &s, int64_t *told)
{
    spmv_status st = SPMV_OK;
    cg->start_residual = s.start;
    for (; *told <= s.iterations && st == SPMV_OK; ++*told) {
        cg->result->iterations = *told;
        cg->result->recurrence_residual = sqrt((double)s.history[*told % cg_fused::RING]);
        st = cg_tell(cg, cg->result->recurrence_residual);
    }
    cg->rr = s.rr;
    cg->pq = s.pq;
    cg->rz = s.rho;
    cg->result->iterations = s.iterations;
    cg->result->recurrence_residual = sqrt((double)s.rr);
    return st;
}

/* Whether the recent fall of r'r predicts that fewer steps are left than are queued at a time. */
template <typename T> bool near_end(const cg_fused::state<T> &s, double before, int64_t iterations_before)
{
    const double steps = (double)(s.iterations - iterations_before), fall = log(before / (double)s.rr);
    const double left = log((double)s.rr / (s.enough * s.enough));
    return steps > 0 && fall > 0 && left / fall * steps < (AHEAD + 1) * steps_of[LONG];
}

template <typename T> spmv_status run_typed(struct cg *cg, int64_t most)
{
    queue *const own = queue_of(cg);
    const double roundoff = sizeof(T) == sizeof(float) ? 0x1p-24 : 0x1p-53;
    int64_t told = cg->result->iterations + (cg->result->iterations > 0), iterations_before = 0;
    double before = 0;
    int length = LONG, last = 0;
    spmv_status st = cg_start(cg), said = SPMV_OK;
    if (st == SPMV_OK && own->z != nullptr)
        st = cg_precondition(cg, cg->r, own->z);
    int64_t count = 0;
    T *const product_parts = pq_parts<T>(cg, &count);
    if (st == SPMV_OK)
        st = queue_kernel<T>(cg, "cg begin", blocks_of(cg), KERNEL_FOR(cg_fused::begin, 4), cg->continues,
                             product_parts, count);
    if (st == SPMV_OK)
        st = queue_kernel<T>(cg, "cg begin", 1, cg_fused::begin_state<T>, cg->result->tolerance, roundoff,
                             (long long)cg->result->iterations, (long long)most);
    for (int k = 0; st == SPMV_OK; k++) {
        last = k % AHEAD;
        st = queue_block<T>(cg, length, last);
        if (st != SPMV_OK || k < AHEAD - 1)
            continue;
        const int which = (k + 1) % AHEAD;
        st = await(cg, which);
        if (st != SPMV_OK)
            break;
        const cg_fused::state<T> &s = *copy_of<T>(cg, which);
        said = digest(cg, s, &told);
        if (said != SPMV_OK || s.ending != 0)
            break;
        length = near_end(s, before, iterations_before) ? SHORT : LONG;
        before = (double)s.rr;
        iterations_before = s.iterations;
    }
    if (st == SPMV_OK)
        st = await(cg, last);
    if (st != SPMV_OK)
        return st;
    const cg_fused::state<T> &s = *copy_of<T>(cg, last);
    if (said != SPMV_OK) { /* cancelled: x is that of the last step queued */
        cg->result->iterations = s.iterations;
        cg->result->recurrence_residual = sqrt((double)s.rr);
        return said;
    }
    st = digest(cg, s, &told);
    if (st != SPMV_OK || s.stop == cg_fused::GOES_ON || s.stop == cg_fused::ENDED)
        return st;
    return s.stop == cg_fused::LIMIT ? cg_fail_limit(cg) : cg_look_for_breakdown(cg);
}

spmv_status run(struct cg *cg, int64_t most)
{
    return with_type(cg, [=](auto type) { return run_typed<decltype(type)>(cg, most); });
}

spmv_status prepare(struct cg *cg, bool graphs)
{
    const int64_t size = (int64_t)spmv_type_size(cg->type);
    spmv_status st = host_alloc(cg->ctx, (int64_t)sizeof(queue), "a solve", &cg->state);
    if (st != SPMV_OK)
        return st;
    queue *const own = queue_of(cg);
    *own = {};
    own->graphs = graphs;
    const int64_t state_bytes = (int64_t)sizeof(cg_fused::state<double>);
    own->left_at = (state_bytes + 255) / 256 * 256;
    own->rz_at = own->left_at + 2 * size * blocks_of(cg);
    own->pq_at = own->rz_at + size * cg_fused::FOLDED;
    st = context_lend(cg->ctx, own->pq_at + size * cg_fused::FOLDED, &own->memory);
    if (st == SPMV_OK && cg->precond != nullptr && precond_inverse_diagonal(cg->precond) == nullptr)
        st = context_lend(cg->ctx, cg->n * size, &own->z);
    return st != SPMV_OK ? st : on_device(cg->ctx, [&] {
        spmv_status made = cuda_grow_staging(cg->ctx, AHEAD * state_bytes);
        for (int k = 0; k < AHEAD && made == SPMV_OK; k++)
            made = cuda_check(cg->ctx, cudaEventCreateWithFlags(&own->told[k], cudaEventDisableTiming), "an event");
        return made != SPMV_OK
                   ? made
                   : cuda_check(cg->ctx, /* the host copies all of it, also what no kernel wrote */
                                cudaMemsetAsync(own->memory, 0, (size_t)state_bytes, (cudaStream_t)cg->ctx->stream),
                                "the state");
    });
}

spmv_status prepare_fused(struct cg *cg)
{
    return prepare(cg, false);
}

spmv_status prepare_graph(struct cg *cg)
{
    return prepare(cg, true);
}

void release(struct cg *cg)
{
    queue *const own = queue_of(cg);
    if (own == nullptr)
        return;
    for (int l = 0; l < LENGTHS; l++)
        destroy(own->replay[l]);
    for (int k = 0; k < AHEAD; k++)
        if (own->told[k] != nullptr && cudaEventDestroy(own->told[k]) != cudaSuccess)
            cudaGetLastError();
    context_take_back(cg->ctx, own->memory);
    context_take_back(cg->ctx, own->z);
    host_free(own);
    cg->state = nullptr;
}

spmv_status supports(const struct cg *)
{
    return SPMV_OK;
}

} // namespace

extern "C" const struct cg_method cg_fused_cuda = {"fused",
                                                   "three kernels a step, launched ahead of need",
                                                   1u << SPMV_BACKEND_CUDA,
                                                   false,
                                                   supports,
                                                   prepare_fused,
                                                   run,
                                                   release};

extern "C" const struct cg_method cg_graph = {"graph",
                                              "three kernels a step, replayed by the dozen as one graph",
                                              1u << SPMV_BACKEND_CUDA,
                                              false,
                                              supports,
                                              prepare_graph,
                                              run,
                                              release};
