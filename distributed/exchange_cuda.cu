/* Kernels that exchange data between ranks on GPUs. A solve has kernels that exchange by themselves:
 * solvers/exchange/exchange_view.cuh, which also says what orders them.
 *
 *   put      copies the own elements that others need into their memory, then sets a flag there
 *   pack     the same into one array of the own memory, without a flag
 *   take     waits for the flags of other ranks, then copies what arrived into x
 *   sum      PUBLISH: adds the parts of each chunk's tiles in a fixed order, and writes the parts of
 *            chunks to all ranks. COLLECT: waits for the parts of all ranks, and adds them in a fixed
 *            order. If both phases are requested, the last block also collects.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch.cuh"
#include "device/grid_barrier.cuh"
#include "solvers/exchange/exchange_view.cuh"

extern "C" {
#include "distributed/exchange_cuda.h"
#include "product/plan_internal.h"
}

namespace
{

enum { BLOCK = part_sums::BLOCK, WARPS = BLOCK / warp_lanes, MOST_BLOCKS = 132 };

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

/* PARTS: real numbers of an element, 2 of a complex one. */
template <typename T, int PARTS> __global__ void __launch_bounds__(BLOCK) put(exchange_view v, const T *x)
{
    begin_in_turn();
    const unsigned number = v.counters->sums + v.counters->fetches + 1;
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < v.sent_count; i += (int64_t)gridDim.x * BLOCK) {
        const exchange_target &target = v.targets[target_of(v, i)];
        for (int p = 0; p < PARTS; p++)
            ((T *)target.to[number % 2])[(i - target.first) * PARTS + p] = x[v.sent[i] * (int64_t)PARTS + p];
    }
    if (!exchanging::is_last<exchanging::ALL_GPUS>(&v.counters->put_blocks, gridDim.x))
        return;
    for (int t = (int)threadIdx.x; t < v.target_count; t += BLOCK)
        exchanging::set_flag(v.targets[t].flag, number);
}

template <typename T, int PARTS>
__global__ void __launch_bounds__(BLOCK) pack(const int32_t *index, int64_t count, const T *x, T *packed)
{
    begin_in_turn();
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < count; i += (int64_t)gridDim.x * BLOCK)
        for (int p = 0; p < PARTS; p++)
            packed[i * PARTS + p] = x[index[i] * (int64_t)PARTS + p];
}

template <typename T, int PARTS> __global__ void __launch_bounds__(BLOCK) take(exchange_view v, bool finishes, T *x)
{
    begin_in_turn();
    const unsigned number = v.counters->sums + v.counters->fetches + finishes;
    for (int s = (int)threadIdx.x; s < v.source_count; s += BLOCK)
        exchanging::await_flag(v.put + v.sources[s], number, v.stop);
    __syncthreads();
    const T *const from = (const T *)v.arrived[number % 2];
    const int64_t count = v.before + v.after;
    for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < count; i += (int64_t)gridDim.x * BLOCK)
        for (int p = 0; p < PARTS; p++)
            x[(i < v.before ? i - v.before : v.own + i - v.before) * PARTS + p] =
                grid_barrier::load_others(from + i * PARTS + p);
    if (finishes && exchanging::is_last<exchanging::ONE_GPU>(&v.counters->take_blocks, gridDim.x) && threadIdx.x == 0)
        v.counters->fetches++;
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

/* The first tile of tile_rows rows that begins at the row or behind it, where chunk c begins; tile_rows 0: a
 * tile is a chunk. Only the end of the matrix may lie within a tile. */
__device__ int64_t tile_from(int64_t tile_rows, int64_t row, int64_t c)
{
    return tile_rows > 0 ? (row + tile_rows - 1) / tile_rows : c;
}

/* The tiles of own chunk c. */
struct tiles_of {
    int64_t first, end;

    __device__ tiles_of(const exchange_view &v, int64_t tile_rows, int64_t c)
        : first(tile_from(tile_rows, v.chunk[c], c)), end(tile_from(tile_rows, v.chunk[c + 1], c + 1))
    {
    }
};

/* The sum of the parts of the tiles of a chunk. By a warp, all of whose threads get it. */
template <typename Part> __device__ Part sum_tiles(const tiles_of &tiles, const Part *tile)
{
    Part sum = Part();
    for (int64_t u = tiles.first + threadIdx.x % warp_lanes; u < tiles.end && tile != nullptr; u += warp_lanes)
        sum += tile[u];
    return part_sums::broadcast(warp_sum(sum, warp_lanes));
}

/* What a step leaves on the device (struct plan_step_parts). */
template <typename T> struct step_parts {
    const part_sums::two<T> *squares; /* of each chunk */
    const T *dot, *products;          /* of each tile */
    int64_t tile_rows;

    __device__ part_sums::step_sums<T> of_chunk(const tiles_of &tiles, int64_t c) const
    {
        const part_sums::two<T> of_squares = squares[c];
        const T pq = sum_tiles(tiles, dot), qq = sum_tiles(tiles, products);
        return {of_squares, {pq, qq}};
    }
};

/* Adds the parts of each own chunk's tiles, a warp for each chunk, and hands on the chunk's part, of one or
 * of two numbers T. */
template <typename T, typename Part>
__device__ void publish(const exchange_view &v, const Part *tile, int64_t tile_rows, unsigned number)
{
    constexpr int SUMS = (int)(sizeof(Part) / sizeof(T));
    const int lane = (int)threadIdx.x % warp_lanes;
    for (int64_t c = (int64_t)blockIdx.x * WARPS + threadIdx.x / warp_lanes; c < v.chunks;
         c += (int64_t)gridDim.x * WARPS) {
        const Part sum = sum_tiles(tiles_of(v, tile_rows, c), tile);
        if (v.boards != nullptr) {
            exchanging::publish(v, c, sum, number);
        } else if (lane == 0) {
            T of[SUMS];
            memcpy(of, &sum, sizeof sum);
            for (int which = 0; which < SUMS; which++)
                ((T *)v.own_parts)[which * v.own_stride + c] = of[which];
        }
    }
}

template <typename T, typename Part>
__global__ void __launch_bounds__(BLOCK)
    sum(exchange_view v, const Part *tile, int64_t tile_rows, Part *sums, int phases)
{
    begin_in_turn();
    const unsigned number = v.boards != nullptr ? v.counters->sums + 1 : 0;
    if ((phases & EXCHANGE_PUBLISH) != 0)
        publish<T>(v, tile, tile_rows, number);
    if ((phases & EXCHANGE_COLLECT) == 0 || blockIdx.x != gridDim.x - 1)
        return;
    const Part all = exchanging::collect<Part>(v, number);
    if (threadIdx.x == 0) {
        *sums = all;
        v.counters->sums = number; /* the parts of the other blocks are here, so these have read it */
    }
}

/* The same for the sums of a step. */
template <typename T>
__global__ void __launch_bounds__(BLOCK)
    sum_step(exchange_view v, step_parts<T> parts, part_sums::step_sums<T> *sums, int phases)
{
    using sums_of = part_sums::step_sums<T>;
    /* the bounds of chunks do not change, so they are read while the kernel before ends */
    const int64_t first = (int64_t)blockIdx.x * WARPS + threadIdx.x / warp_lanes;
    tiles_of tiles(v, parts.tile_rows, first < v.chunks ? first : 0);
    begin_in_turn();
    const bool collects = (phases & EXCHANGE_COLLECT) != 0, alone = v.boards == nullptr;
    const unsigned number = alone ? 0 : v.counters->sums + 1;
    for (int64_t c = first; c < v.chunks && (phases & EXCHANGE_PUBLISH) != 0; c += (int64_t)gridDim.x * WARPS) {
        if (c != first)
            tiles = tiles_of(v, parts.tile_rows, c);
        const sums_of of_chunk = parts.of_chunk(tiles, c);
        if (!alone)
            exchanging::publish(v, c, of_chunk, number);
        else if (threadIdx.x % warp_lanes == 0 && v.own_stride == 0)
            sums[c] = of_chunk;
        else if (threadIdx.x % warp_lanes == 0) {
            T *const to = (T *)v.own_parts + c;
            to[0] = of_chunk.squares.re;
            to[v.own_stride] = of_chunk.squares.im;
            to[2 * v.own_stride] = of_chunk.products.re;
            to[3 * v.own_stride] = of_chunk.products.im;
        }
    }
    if (alone || !collects || blockIdx.x != gridDim.x - 1)
        return;
    const sums_of all = exchanging::collect<sums_of>(v, number);
    if (threadIdx.x == 0) {
        *sums = all;
        v.counters->sums = number;
    }
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
template <typename Body> spmv_status of_type(spmv_context *ctx, spmv_type type, const Body &body)
{
    return on_device(ctx, [&] { return with_zero(ctx, "spmv_group", type, body); });
}

/* body(T(), parts) for the elements of vectors: parts is a constant, how many numbers T they have. */
template <typename Body> spmv_status of_elements(spmv_context *ctx, spmv_type type, const Body &body)
{
    return of_type(ctx, type_part(type), [&](auto of) {
        return type_is_complex(type) ? body(of, std::integral_constant<int, 2>())
                                     : body(of, std::integral_constant<int, 1>());
    });
}

} // namespace

extern "C" spmv_status exchange_put_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view,
                                         const void *x)
{
    return of_elements(ctx, type, [&](auto of, auto parts) {
        using T = decltype(of);
        return launch_early(ctx, "group put", blocks_for(view->sent_count, BLOCK), BLOCK, put<T, parts()>, *view,
                            (const T *)x);
    });
}

extern "C" spmv_status exchange_take_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view,
                                          bool finishes, void *x)
{
    return of_elements(ctx, type, [&](auto of, auto parts) {
        using T = decltype(of);
        return launch_early(ctx, "group take", blocks_for(view->before + view->after, 2 * BLOCK), BLOCK,
                            take<T, parts()>, *view, finishes, (T *)x);
    });
}

extern "C" spmv_status exchange_pack_cuda(spmv_context *ctx, spmv_type type, const int32_t *index, int64_t count,
                                          const void *x, void *packed)
{
    return of_elements(ctx, type, [&](auto of, auto parts) {
        using T = decltype(of);
        return launch_early(ctx, "group pack", blocks_for(count, BLOCK), BLOCK, pack<T, parts()>, index, count,
                            (const T *)x, (T *)packed);
    });
}

extern "C" spmv_status exchange_sum_cuda(spmv_context *ctx, spmv_type type, const struct exchange_view *view,
                                         const struct exchange_parts *parts, void *sums, int phases)
{
    const int blocks = (phases & EXCHANGE_PUBLISH) != 0 ? blocks_for(view->chunks, WARPS) : 1;
    return of_type(ctx, type, [&](auto of) {
        using T = decltype(of);
        if (parts->step != nullptr) {
            const plan_step_parts &p = *parts->step;
            const step_parts<T> of_step = {(const part_sums::two<T> *)p.squares, (const T *)p.dot,
                                           (const T *)p.products, parts->tile_rows};
            return launch_early(ctx, "group step sums", blocks, BLOCK, sum_step<T>, *view, of_step,
                                (part_sums::step_sums<T> *)sums, phases);
        }
        const auto queue = [&](auto part) {
            using Part = decltype(part);
            return launch_early(ctx, "group sum", blocks, BLOCK, sum<T, Part>, *view, (const Part *)parts->numbers,
                                parts->tile_rows, (Part *)sums, phases);
        };
        return parts->sums == 1 ? queue(T()) : queue(part_sums::two<T>());
    });
}

extern "C" spmv_status exchange_fold_cuda(spmv_context *ctx, spmv_type type, const struct exchange_gathered *from,
                                          int count, void *sums)
{
    return of_type(ctx, type, [&](auto of) {
        using T = decltype(of);
        return launch_early(ctx, "group fold", 1, BLOCK, fold_gathered<T>, *from, count, (T *)sums);
    });
}
