/* Kernels that exchange data between ranks on GPUs.
 *
 *   put      copies the own elements that others need into their memory, then sets a flag there
 *   pack     the same into one array of the own memory, without a flag
 *   take     waits for the flags of other ranks, then copies what arrived into x
 *   sum      PUBLISH: adds the parts of each chunk's units in a fixed order, writes the parts of chunks
 *            to all ranks, then sets flags. COLLECT: waits for the flags of all ranks, then adds all
 *            parts in a fixed order. The last block of a launch sets the flags; if both phases are
 *            requested, it also collects.
 *
 * Data of exchange k are in one of two buffers by turns. A rank writes exchange k + 2 only after it
 * has collected a sum that all ranks published after exchange k was read, so nothing that is still
 * needed is overwritten (exchange.c: careful mode; cg_3_graph.cu: two sums a step).
 *
 * Source: PTX ISA, "Memory consistency model": a release at system scope makes what a block has
 * written, and what it has seen of others by a fence, visible to the one that acquires.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "block.cuh"
#include "grid_barrier.cuh"
#include "part_sums.cuh"

extern "C" {
#include "exchange_cuda.h"
}

namespace
{

enum { BLOCK = part_sums::BLOCK, WARPS = BLOCK / warp_lanes, MOST_BLOCKS = 132 };

__device__ void set_flag(exchange_flag *flag, unsigned number)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&flag->number), "r"(number) : "memory");
#else
    __atomic_store_n(&flag->number, number, __ATOMIC_RELEASE);
#endif
}

__device__ unsigned flag_number(const exchange_flag *flag)
{
#ifdef __CUDA_ARCH__
    unsigned number;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(number) : "l"(&flag->number) : "memory");
    return number;
#else
    return __atomic_load_n(&flag->number, __ATOMIC_ACQUIRE);
#endif
}

__device__ unsigned long long nanoseconds()
{
    unsigned long long now = 0;
#ifdef __CUDA_ARCH__
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
#endif
    return now;
}

/* Waits until the flag has the number, for at most EXCHANGE_MOST_SECONDS. On the host that emulates
 * a GPU, flags are set before. */
__device__ void await_flag(const exchange_flag *flag, unsigned number, volatile int *stop)
{
    enum { POLLS = 256 }; /* between looks at host memory */
    const unsigned long long begin = nanoseconds();
    for (unsigned polls = 1; (int)(flag_number(flag) - number) < 0; polls++) {
        if (polls % POLLS != 0)
            continue;
        if (*stop != 0)
            return;
#ifdef __CUDA_ARCH__
        const bool late = nanoseconds() - begin > EXCHANGE_MOST_SECONDS * 1000000000ull;
#else
        const bool late = begin == 0;
#endif
        if (late)
            *stop = EXCHANGE_LOST;
    }
}

/* What a block has written becomes visible to the other blocks of this GPU, or also to other GPUs. */
enum fence { ONE_GPU, ALL_GPUS };

template <fence REACH> __device__ void make_visible()
{
    if (REACH == ALL_GPUS)
        __threadfence_system();
    else
        __threadfence();
}

/* Whether this block is the last of the launch to arrive; all threads get the answer, and the last
 * block sees what the others wrote. */
template <fence REACH> __device__ bool is_last(unsigned *blocks)
{
    __shared__ int last;
    __syncthreads();
    if (threadIdx.x == 0) {
        make_visible<REACH>();
        last = atomicInc(blocks, gridDim.x - 1) == gridDim.x - 1;
        make_visible<REACH>();
    }
    __syncthreads();
    return last != 0;
}

/* The target of element i of the list. */
__device__ int target_of(const exchange_view &v, int64_t i)
{
    int low = 0, high = v.target_count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (v.targets[middle].first <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Waits for the kernel before. The blocks of the next kernel may take their places meanwhile: all
 * blocks of this one have theirs, so a wait for another GPU keeps none of them back. */
__device__ void begin_in_turn()
{
    let_next_begin();
    await_kernel_before();
}

template <typename T> __global__ void __launch_bounds__(BLOCK) put(exchange_view v, const T *x)
{
    begin_in_turn();
    const unsigned number = v.counters->puts + 1;
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < v.sent_count; i += (int64_t)gridDim.x * BLOCK) {
        const exchange_target &target = v.targets[target_of(v, i)];
        ((T *)target.to[number % 2])[i - target.first] = x[v.sent[i]];
    }
    if (!is_last<ALL_GPUS>(&v.counters->put_blocks))
        return;
    if (threadIdx.x == 0)
        v.counters->puts = number;
    for (int t = (int)threadIdx.x; t < v.target_count; t += BLOCK)
        set_flag(v.targets[t].flag, number);
}

template <typename T>
__global__ void __launch_bounds__(BLOCK) pack(const int32_t *index, int64_t count, const T *x, T *packed)
{
    begin_in_turn();
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < count; i += (int64_t)gridDim.x * BLOCK)
        packed[i] = x[index[i]];
}

template <typename T> __global__ void __launch_bounds__(BLOCK) take(exchange_view v, T *x)
{
    begin_in_turn();
    const unsigned number = v.counters->takes + 1;
    for (int s = (int)threadIdx.x; s < v.source_count; s += BLOCK)
        await_flag(v.put + v.sources[s], number, v.stop);
    __syncthreads();
    const T *const from = (const T *)v.arrived[number % 2];
    const int64_t count = v.before + v.after;
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < count; i += (int64_t)gridDim.x * BLOCK)
        x[i < v.before ? i - v.before : v.own + i - v.before] = grid_barrier::load_others(from + i);
    if (is_last<ONE_GPU>(&v.counters->take_blocks) && threadIdx.x == 0)
        v.counters->takes = number;
}

/* The sum of all parts of one sum, by a block; all threads get it. */
template <typename T> __device__ T fold(const exchange_gathered &g, int which)
{
    const T *const parts = (const T *)g.parts + which * g.stride;
    return part_sums::sum_numbers<T>(
        (int)g.count, [&](int c) { return grid_barrier::load_others(parts + (g.place != nullptr ? g.place[c] : c)); });
}

template <typename T> __device__ void fold_all(const exchange_gathered &g, int count, T *sums)
{
    for (int which = 0; which < count; which++) {
        const T sum = fold<T>(g, which);
        if (threadIdx.x == 0)
            sums[which] = sum;
    }
}

/* The first unit that begins at the row or behind it, where chunk c begins. Only the end of the matrix
 * may lie within a unit. */
__device__ int64_t unit_from(const exchange_parts &p, int64_t row, int64_t c)
{
    return p.unit_rows > 0 ? (row + p.unit_rows - 1) / p.unit_rows : c;
}

/* Adds the parts of each own chunk's units, a warp for each chunk, and writes the chunk's part to all
 * ranks. */
template <typename T> __device__ void publish(const exchange_view &v, const exchange_parts &p, unsigned number)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const T *const numbers = (const T *)p.numbers;
    for (int64_t c = (int64_t)blockIdx.x * WARPS + threadIdx.x / warp_lanes; c < v.chunks;
         c += (int64_t)gridDim.x * WARPS) {
        const int64_t first = unit_from(p, v.chunk[c], c), end = unit_from(p, v.chunk[c + 1], c + 1);
        for (int which = 0; which < p.sums; which++) {
            T sum = T();
            for (int64_t u = first + lane; u < end; u += warp_lanes)
                sum += numbers[u * p.sums + which];
            sum = warp_sum(sum, warp_lanes);
            sum = __shfl_sync(0xffffffffu, sum, 0);
            if (v.boards == nullptr) {
                if (lane == 0)
                    ((T *)v.own_parts)[which * v.own_stride + c] = sum;
                continue;
            }
            for (int r = lane; r < v.ranks; r += warp_lanes)
                ((T *)v.boards[r].parts[number % 2])[which * v.all_chunks + v.first_chunk + c] = sum;
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(BLOCK) sum(exchange_view v, exchange_parts p, T *sums, int phases)
{
    begin_in_turn();
    unsigned number = v.boards != nullptr ? v.counters->sums : 0;
    if ((phases & EXCHANGE_PUBLISH) != 0) {
        number++;
        publish<T>(v, p, number);
        if (v.boards == nullptr || !is_last<ALL_GPUS>(&v.counters->sum_blocks))
            return;
        if (threadIdx.x == 0)
            v.counters->sums = number;
        for (int r = (int)threadIdx.x; r < v.ranks; r += BLOCK)
            set_flag(v.boards[r].sum + v.rank, number);
    }
    if ((phases & EXCHANGE_COLLECT) == 0)
        return;
    for (int r = (int)threadIdx.x; r < v.ranks; r += BLOCK)
        await_flag(v.sum + r, number, v.stop);
    __syncthreads();
    fold_all<T>({v.parts[number % 2], nullptr, v.all_chunks, v.all_chunks}, p.sums, sums);
}

template <typename T> __global__ void __launch_bounds__(BLOCK) fold_gathered(exchange_gathered g, int count, T *sums)
{
    begin_in_turn();
    fold_all<T>(g, count, sums);
}

int blocks_for(int64_t items, int64_t each)
{
    const int64_t blocks = items > 0 ? (items - 1) / each + 1 : 1;
    return blocks < (int64_t)MOST_BLOCKS ? (int)blocks : (int)MOST_BLOCKS;
}

/* body(T()) for the real type. */
template <typename Body> spmv_status with_type(spmv_context *ctx, spmv_type type, const Body &body)
{
    return on_device(ctx, [&] { return type == SPMV_F32 ? body(float()) : body(double()); });
}

} // namespace

extern "C" spmv_status exchange_put_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view,
                                         const void *x)
{
    return with_type(ctx, type, [&](auto of) {
        using T = decltype(of);
        return launch_early(ctx, "group put", blocks_for(view->sent_count, BLOCK), BLOCK, put<T>, *view, (const T *)x);
    });
}

extern "C" spmv_status exchange_take_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view, void *x)
{
    return with_type(ctx, type, [&](auto of) {
        using T = decltype(of);
        return launch_early(ctx, "group take", blocks_for(view->before + view->after, 2 * BLOCK), BLOCK, take<T>, *view,
                            (T *)x);
    });
}

extern "C" spmv_status exchange_pack_cuda(spmv_context *ctx, spmv_type type, const int32_t *index, int64_t count,
                                          const void *x, void *packed)
{
    return with_type(ctx, type, [&](auto of) {
        using T = decltype(of);
        return launch_early(ctx, "group pack", blocks_for(count, BLOCK), BLOCK, pack<T>, index, count, (const T *)x,
                            (T *)packed);
    });
}

extern "C" spmv_status exchange_sum_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view,
                                         const struct exchange_parts *parts, void *sums, int phases)
{
    return with_type(ctx, type, [&](auto of) {
        using T = decltype(of);
        const int blocks = (phases & EXCHANGE_PUBLISH) != 0 ? blocks_for(view->chunks, WARPS) : 1;
        return launch_early(ctx, "group sum", blocks, BLOCK, sum<T>, *view, *parts, (T *)sums, phases);
    });
}

extern "C" spmv_status exchange_fold_cuda(spmv_context *ctx, spmv_type type, const struct exchange_gathered *from,
                                          int count, void *sums)
{
    return with_type(ctx, type, [&](auto of) {
        using T = decltype(of);
        return launch_early(ctx, "group fold", 1, BLOCK, fold_gathered<T>, *from, count, (T *)sums);
    });
}
