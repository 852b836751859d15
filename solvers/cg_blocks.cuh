/* Blocks of steps, queued ahead of need: each is captured once and replayed as one CUDA graph, or launched kernel by
 * kernel, and behind each the state of the recurrence goes to page-locked host memory, which the host reads while the
 * next block runs.
 *
 * CUDA C++ Programming Guide, "CUDA graphs".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_BLOCKS_CUH
#define CG_BLOCKS_CUH

#include "launch.cuh"

namespace cg_blocks
{

enum { LONG, SHORT, LENGTHS, AHEAD = 2 };
constexpr int steps_of[LENGTHS] = {16, 2};

#ifndef HOST_CUDA
using graph = cudaGraphExec_t;
#else
using graph = void *; /* there are none */
#endif

struct queue {
    spmv_context *ctx;
    const void *state; /* on the device */
    int64_t state_bytes;
    bool graphs;
    graph replay[LENGTHS];      /* NULL: not made, or this one cannot be */
    bool tried[LENGTHS], plain; /* plain: a capture failed */
    cudaEvent_t told[AHEAD];
};

/* Where copy `which` of the state arrives. */
inline void *copy_of(const queue &q, int which)
{
    return (char *)((cuda_state *)q.ctx->device)->staging + which * q.state_bytes;
}

/* q's ctx, state, state_bytes and graphs are set, the rest is 0; also what is half open is closed. */
inline spmv_status open(queue *q)
{
    return on_device(q->ctx, [&] {
        spmv_status made = cuda_grow_staging(q->ctx, AHEAD * q->state_bytes);
        for (int k = 0; k < AHEAD && made == SPMV_OK; k++)
            made = cuda_check(q->ctx, cudaEventCreateWithFlags(&q->told[k], cudaEventDisableTiming), "an event");
        return made;
    });
}

inline void close(queue *q)
{
#ifndef HOST_CUDA
    for (int l = 0; l < LENGTHS; l++)
        if (q->replay[l] != nullptr && cudaGraphExecDestroy(q->replay[l]) != cudaSuccess)
            cudaGetLastError();
#endif
    for (int k = 0; k < AHEAD; k++)
        if (q->told[k] != nullptr && cudaEventDestroy(q->told[k]) != cudaSuccess)
            cudaGetLastError();
}

/* step(): queues one step. */
template <typename Step> spmv_status queue_steps(const Step &step, int length)
{
    spmv_status st = SPMV_OK;
    for (int k = 0; k < steps_of[length] && st == SPMV_OK; k++)
        st = step();
    return st;
}

#ifndef HOST_CUDA
/* Captures the steps; where that cannot be, as on the default stream, they are launched one by one from now on. */
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
    const spmv_status queued = queue_steps(step, length);
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
#else
template <typename Step> spmv_status capture(queue *, const Step &, int)
{
    return SPMV_OK;
}

inline spmv_status replay(const queue &, int)
{
    return SPMV_OK;
}
#endif

/* A block of steps, and behind it the state as copy `which`. */
template <typename Step> spmv_status queue_block(queue *q, const Step &step, int length, int which)
{
    const cudaStream_t stream = (cudaStream_t)q->ctx->stream;
    spmv_status st = SPMV_OK;
    if (q->graphs && !q->tried[length] && !q->plain)
        st = capture(q, step, length);
    if (st == SPMV_OK)
        st = q->replay[length] != nullptr ? replay(*q, length) : queue_steps(step, length);
    return st != SPMV_OK ? st : on_device(q->ctx, [&] {
        const cudaError_t error =
            cudaMemcpyAsync(copy_of(*q, which), q->state, (size_t)q->state_bytes, cudaMemcpyDeviceToHost, stream);
        return cuda_check(q->ctx, error != cudaSuccess ? error : cudaEventRecord(q->told[which], stream), "cg state");
    });
}

/* Waits for a copy of the state. */
inline spmv_status await(const queue &q, int which)
{
    return on_device(q.ctx, [&] { return cuda_check(q.ctx, cudaEventSynchronize(q.told[which]), "a step of cg"); });
}

} // namespace cg_blocks

#endif
