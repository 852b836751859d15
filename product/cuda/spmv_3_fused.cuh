/* Rung 3, "fused": gather, multiply and segmented sum in one kernel, over equal tiles of nonzeros.
 *
 * Idea:       A tile is CAPACITY consecutive nonzeros, independent of the rows; one block processes
 *             it. It loads values and columns coalesced and stages the products in shared memory,
 *             where it does what "staged" does in global memory: flags at the ends of rows, a
 *             segmented inclusive sum, and the sum of a row is at its last element. Each thread
 *             walks through ITEMS neighbouring products; a scan of the pairs (open sum, whether a
 *             row ended) over the threads gives the open sum before each. Rows that lie in one tile
 *             are stored at once. The open sum at the end of a tile, and the end of a row that
 *             began in an earlier tile, are carries. A second, small kernel adds them for each row
 *             that spans tiles: open[s] + ... + open[e - 1] + closing[e], by a thread, a warp or a
 *             block according to their number, so that one row with all the nonzeros is not slow.
 *             If there are empty rows, the plan lists the others, and further blocks of the first
 *             kernel handle the empty ones.
 * Work:       nnz products, about 2 nnz additions.
 * Depth:      ITEMS + log2 BLOCK in a tile, then a row's parts / 32 (parts / ADD_THREADS from
 *             ADD_THREADS on).
 * Launches:   2 (1 if there is one tile).
 * Bytes:      the matrix once, in whole lines; for each tile, 8 bytes for its first row, and two
 *             sums written and read.
 * Changed:    since "staged" (spmv_staged.c), which has a launch a step, the products never travel
 *             through global memory.
 * Wins when:  over scalar and vector: row lengths are unequal, since a tile has the same work for
 *             any row lengths.
 * Next rung:  rung 4 cuts at the ends of rows, so it has no carries, no second launch and no scan
 *             across threads; its plan must pack rows of all lengths into tiles.
 * Early start: (programmatic dependent launch, sm_90) as in rung 4, both kernels load the plan's
 *             data while the kernel before them ends, and wait for that end before they read x, y
 *             and carries.
 * Bits:       the cut is at multiples of CAPACITY, and all sums have a fixed shape. So the bits
 *             depend on the rows' lengths and the type alone. No atomics on values.
 * Source:     G. E. Blelloch, M. A. Heroux, M. Zagha, "Segmented operations for sparse matrix
 *             computation on vector multiprocessors", CMU-CS-93-173, 1993; D. Merrill, M. Garland,
 *             "Merge-based parallel sparse matrix-vector multiplication", SC16 (carries of equal
 *             tiles).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_3_FUSED_CUH
#define SPMV_3_FUSED_CUH

#include "device/block.cuh"
#include "device/loads.cuh"
#include "product/cuda/spmv_cuda.cuh"

/* Threads of a tile's block, and of a block that adds carries. Tests build with fewer threads to
 * get many tiles in small matrices. */
#ifndef SPMV_FUSED_BLOCK
#define SPMV_FUSED_BLOCK 128
#endif
#ifndef SPMV_FUSED_ADD
#define SPMV_FUSED_ADD 1024
#endif

namespace fused
{

/* The shape of a tile. Shared memory has one cell of padding a thread, so there are few bank
 * conflicts whether threads read neighbouring elements or ITEMS elements each. */
template <typename T> struct shape {
    enum {
        BLOCK = SPMV_FUSED_BLOCK,
        ITEMS = sizeof(T) > 8 ? 4 : 8,
        CAPACITY = BLOCK * ITEMS,
        CELLS = CAPACITY + BLOCK,
        ROWS = 4 * CAPACITY /* rows that one block examines for empty ones */
    };
    static_assert(CAPACITY < 65536, "places of 16 bits");

    static __device__ int cell(int i)
    {
        return i + i / ITEMS;
    }
};

enum { ADD_THREADS = SPMV_FUSED_ADD, ADD_WARPS = ADD_THREADS / warp_lanes, FEW = 4 };
static_assert(ADD_THREADS <= warp_lanes * (int)warp_lanes, "a warp folds the warps' sums");

/* The rows with nonzeros: number j is row filled[j]. */
struct rows_view {
    const void *row_ptr;
    bool wide;             /* 64-bit offsets */
    const int64_t *filled; /* NULL: all rows have nonzeros */

    __device__ int64_t offset(int64_t i) const
    {
        return wide ? ((const int64_t *)row_ptr)[i] : ((const int32_t *)row_ptr)[i];
    }
    __device__ int64_t row(int64_t j) const
    {
        return filled != nullptr ? filled[j] : j;
    }
    __device__ int64_t begin(int64_t j) const
    {
        return offset(row(j));
    }
    __device__ int64_t end(int64_t j) const
    {
        return offset(row(j) + 1);
    }
};

/* The cut into tiles. first: tiles + 1 numbers of rows: the row of nonzero t * CAPACITY, and at the
 * end the number of rows. Rows first[t] ... first[t + 1] - 1 end in tile t. */
struct cut {
    rows_view rows;
    const int64_t *first;
    int64_t tiles, nnz;
};

/* One sum a tile each: the open sum at its end, and the last part of a row that began in an earlier
 * tile and ends in this one. */
template <typename T> struct carries {
    T *open, *closing;
};

template <typename T> struct add {
    using type = T;
    __host__ __device__ T operator()(T a, T b) const
    {
        return a + b;
    }
    static __host__ __device__ T identity()
    {
        return T();
    }
};

/* y = beta y for the empty rows among ROWS rows, from number * ROWS on. */
template <typename T>
__device__ void store_empty_rows(const rows_view &view, int64_t rows, int64_t number, scaling<T> s, T *y)
{
    const int64_t begin = number * shape<T>::ROWS, end = begin + shape<T>::ROWS < rows ? begin + shape<T>::ROWS : rows;
    for (int64_t row = begin + threadIdx.x; row < end; row += shape<T>::BLOCK)
        if (view.offset(row) == view.offset(row + 1))
            s.store(T(), &y[row]);
}

/* For each row that ends in the tile, the place of its last element, and a mark there. */
template <typename T>
__device__ void mark_ends(const rows_view &rows, int64_t first, int closed, int64_t begin, uint16_t *last,
                          uint8_t *ends)
{
    for (int k = (int)threadIdx.x; k < closed; k += shape<T>::BLOCK) {
        const int place = (int)(rows.end(first + k) - begin) - 1;
        last[k] = (uint16_t)place;
        ends[place] = 1;
    }
}

/* The products of a thread's elements, to their cells. */
template <typename T, typename Stored, int ITEMS>
__device__ void stage_products(const int32_t (&column)[ITEMS], const Stored (&value)[ITEMS], bool pattern, int count,
                               const T *x, T *stage)
{
    constexpr int BLOCK = shape<T>::BLOCK;
    const int thread = (int)threadIdx.x;
    T product[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        product[i] = T();
        if (i * BLOCK + thread < count)
            product[i] = load_gathered(x + column[i]);
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        if (!pattern)
            product[i] = T(value[i]) * product[i];
        stage[shape<T>::cell(i * BLOCK + thread)] = product[i];
    }
}

/* Of a thread's neighbouring elements: the sum that is open after them, and whether a row ended there;
 * the sum of the first row that ends there, without the elements of threads before, and its cell. */
template <typename T> struct walked {
    segmented<T> open;
    T lead;
    int lead_cell;
};

/* Walks along a thread's ITEMS neighbouring elements. The sums of rows that begin and end there go to
 * their last cells: of the rows that end there, these are all but the first. */
template <typename T> __device__ walked<T> walk(T *stage, const uint8_t *ends)
{
    constexpr int ITEMS = shape<T>::ITEMS;
    const int thread = (int)threadIdx.x;
    T item[ITEMS];
    unsigned end_here = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        item[i] = stage[shape<T>::cell(thread * ITEMS + i)];
        end_here |= (unsigned)ends[thread * ITEMS + i] << i;
    }
    segmented<T> open = {T(), 0};
    T lead = T();
    int lead_cell = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int cell = shape<T>::cell(thread * ITEMS + i);
        open.value += item[i];
        if ((end_here >> i & 1) != 0) {
            if (open.start == 0) {
                lead = open.value;
                lead_cell = cell;
            } else {
                stage[cell] = open.value;
            }
            open = {T(), 1};
        }
    }
    return {open, lead, lead_cell};
}

/* Blocks from c.tiles on handle empty rows. */
template <typename T, typename Stored>
__global__ void __launch_bounds__(shape<T>::BLOCK)
    multiply(cut c, int64_t rows, const int32_t *col, const Stored *val, carries<T> to, scaling<T> s, const T *x, T *y)
{
    constexpr int BLOCK = shape<T>::BLOCK, ITEMS = shape<T>::ITEMS, CAPACITY = shape<T>::CAPACITY;
    using pair = segmented<T>;
    __shared__ T stage[shape<T>::CELLS];
    __shared__ pair warp_sums[BLOCK / warp_lanes];
    /* for each row that ends here, its last element */
    __shared__ uint16_t last[CAPACITY];
    alignas(16) __shared__ uint8_t ends[CAPACITY]; /* whether a row ends with this element */
    const int thread = (int)threadIdx.x;
    const int64_t t = blockIdx.x;
    let_next_begin();
    if (t >= c.tiles) {
        await_kernel_before();
        store_empty_rows(c.rows, rows, t - c.tiles, s, y);
        return;
    }

    const int64_t begin = t * CAPACITY, first = c.first[t];
    const int count = c.nnz - begin < CAPACITY ? (int)(c.nnz - begin) : (int)CAPACITY;
    const int closed = (int)(c.first[t + 1] - first);
    int32_t column[ITEMS];
    Stored value[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = i * BLOCK + thread;
        column[i] = at < count ? load_once(col + begin + at) : 0;
        value[i] = Stored();
        if (val != nullptr && at < count)
            value[i] = load_once(val + begin + at);
    }
    /* whether the first row that ends here began in an earlier tile */
    const bool leads = closed > 0 && c.rows.begin(first) < begin;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        ends[i * BLOCK + thread] = 0;
    __syncthreads();
    mark_ends<T>(c.rows, first, closed, begin, last, ends);

    await_kernel_before();
    stage_products(column, value, val == nullptr, count, x, stage);
    __syncthreads();

    const walked<T> own = walk(stage, ends);
    pair all;
    const pair before = block_exclusive_once<BLOCK / warp_lanes>(combine_segments<add<T>>(), own.open, warp_sums, &all);
    if (own.open.start != 0)
        stage[own.lead_cell] = before.value + own.lead;
    if (thread == 0)
        to.open[t] = all.value;
    __syncthreads();

    for (int k = thread; k < closed; k += BLOCK) {
        const T sum = stage[shape<T>::cell(last[k])];
        if (k == 0 && leads)
            to.closing[t] = sum;
        else
            s.store(sum, &y[c.rows.row(first + k)]);
    }
}

/* The part of the calling thread, one of `threads`, of from[0] + ... + from[n - 1]. */
template <typename T> __device__ T strided_sum(const T *from, int64_t n, int thread, int threads)
{
    T sum = T();
#pragma unroll 8
    for (int64_t i = thread; i < n; i += threads)
        sum += from[i];
    return sum;
}

/* One thread for each tile but the first handles the row that began before the tile and ends in
 * it. */
template <typename T>
__global__ void __launch_bounds__(ADD_THREADS) add_carries(cut c, carries<T> from, scaling<T> s, T *y)
{
    __shared__ T warp_sums[ADD_WARPS];
    __shared__ int64_t long_begin, long_end;
    const int thread = (int)threadIdx.x, lane = thread % warp_lanes;
    const int64_t tile = 1 + (int64_t)blockIdx.x * ADD_THREADS + thread;
    let_next_begin();
    int64_t begin_tile = tile; /* none */
    if (tile < c.tiles && c.first[tile + 1] > c.first[tile]) {
        const int64_t begin = c.rows.begin(c.first[tile]);
        if (begin < tile * shape<T>::CAPACITY)
            begin_tile = begin / shape<T>::CAPACITY;
    }
    const int64_t parts = tile - begin_tile; /* the number of open sums to add */
    const auto store = [&](int64_t end_tile, T sum) {
        s.store(sum + from.closing[end_tile], &y[c.rows.row(c.first[end_tile])]);
    };

    await_kernel_before();
    if (parts > 0 && parts <= FEW)
        store(tile, strided_sum(from.open + begin_tile, parts, 0, 1));
    const bool is_long = parts >= ADD_THREADS;
    unsigned waiting = __ballot_sync(0xffffffffu, parts > FEW && !is_long);
    for (; waiting != 0; waiting &= waiting - 1u) { /* the same for all lanes */
        const int whose = __ffs((int)waiting) - 1;
        const int64_t of = __shfl_sync(0xffffffffu, begin_tile, whose), n = __shfl_sync(0xffffffffu, parts, whose);
        const T sum = warp_sum(strided_sum(from.open + of, n, lane, warp_lanes), warp_lanes);
        if (lane == 0)
            store(of + n, sum);
    }

    /* Such a row began before the block's tiles, so there is at most one. */
    if (__syncthreads_count(is_long) == 0)
        return;
    if (is_long) {
        long_begin = begin_tile;
        long_end = tile;
    }
    __syncthreads();
    T sum = strided_sum(from.open + long_begin, long_end - long_begin, thread, ADD_THREADS);
    sum = warp_sum(sum, warp_lanes);
    if (lane == 0)
        warp_sums[thread / warp_lanes] = sum;
    __syncthreads();
    if (thread >= warp_lanes)
        return;
    sum = warp_sum(thread < ADD_WARPS ? warp_sums[thread] : T(), warp_lanes);
    if (thread == 0)
        store(long_end, sum);
}

/* empty_blocks: blocks after those of the tiles that handle empty rows. */
template <typename T, typename Stored>
spmv_status run(spmv_context *ctx, const cut &c, int64_t rows, int64_t empty_blocks, const int32_t *col,
                const Stored *val, carries<T> between, scaling<T> s, const T *x, T *y)
{
    spmv_status st = launch_early(ctx, "spmv fused", (int)(c.tiles + empty_blocks), shape<T>::BLOCK,
                                  multiply<T, Stored>, c, rows, col, val, between, s, x, y);
    if (st == SPMV_OK && c.tiles > 1)
        st = launch_early(ctx, "spmv fused add", (int)((c.tiles - 2) / ADD_THREADS + 1), ADD_THREADS, add_carries<T>, c,
                          between, s, y);
    return st;
}

/* ------------------------------------------------------------------- the plan */

enum { PLAN_THREADS = 128 };

/* The statistics that the host reads. */
struct statistics {
    unsigned long long longest, filled, spanning; /* entries; rows; rows in more than one tile */
};

/* flags[i] = whether row i has nonzeros. */
static __global__ void __launch_bounds__(PLAN_THREADS)
    measure(rows_view view, int64_t rows, uint8_t *flags, statistics *about)
{
    const int64_t stride = (int64_t)gridDim.x * PLAN_THREADS;
    unsigned long long longest = 0, filled = 0;
    for (int64_t row = (int64_t)blockIdx.x * PLAN_THREADS + threadIdx.x; row < rows; row += stride) {
        const unsigned long long length = (unsigned long long)(view.offset(row + 1) - view.offset(row));
        longest = length > longest ? length : longest;
        filled += length > 0;
        flags[row] = length > 0;
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const unsigned long long other = __shfl_down_sync(0xffffffffu, longest, (unsigned)distance);
        longest = other > longest ? other : longest;
        filled += __shfl_down_sync(0xffffffffu, filled, (unsigned)distance);
    }
    if (threadIdx.x % warp_lanes == 0) {
        atomicMax(&about->longest, longest);
        atomicAdd(&about->filled, filled);
    }
}

/* Fills first, one thread a tile: the last row with nonzeros that begins at or before the tile. */
static __global__ void __launch_bounds__(PLAN_THREADS)
    find_rows(cut c, int64_t filled, int capacity, int64_t *first, statistics *about)
{
    const int64_t stride = (int64_t)gridDim.x * PLAN_THREADS;
    for (int64_t t = (int64_t)blockIdx.x * PLAN_THREADS + threadIdx.x; t <= c.tiles; t += stride) {
        if (t == c.tiles) {
            first[t] = filled;
            return;
        }
        int64_t low = 0, high = filled; /* begin(low) <= t * capacity < begin(high) */
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2;
            if (c.rows.begin(middle) <= t * capacity)
                low = middle;
            else
                high = middle;
        }
        first[t] = low;
        const int64_t begin = c.rows.begin(low);
        if (t > 0 && begin < t * capacity && begin >= (t - 1) * capacity)
            atomicAdd(&about->spanning, 1ull);
    }
}

} // namespace fused

#endif
