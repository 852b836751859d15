/* Method "groups": neighbouring rows with equal columns share them.
 *
 * Idea:       A finite-element matrix has several rows for each node, with the same columns. Such
 *             rows are a group, of at most MOST_ROWS. LANES lanes have a group: a lane takes every
 *             LANES-th column, gathers x once and multiplies it with the values of all rows of the
 *             group, which lie a row's length apart in the CSR array. Each row has a sum in a
 *             register of each lane. At the end of the group the lanes add their sums in a tree. No
 *             product goes through shared memory.
 * Work:       nnz products, LANES partial sums for each row.
 * Depth:      TURNS times the longest row / LANES.
 * Launches:   1.
 * Bytes:      the values once; the columns of the first row of each group, with 16 bits where they
 *             span less than 2^16; 16 bytes for each group.
 * Changed:    since tiles, columns and gathers once for each group, and sums in registers.
 * Wins when:  rows are in groups of two or more with dozens of entries, as in finite-element
 *             matrices.
 * Loses when: most rows are alone in their group, or groups have few entries.
 * Source:     R. W. Vuduc, H.-J. Moon, "Fast sparse matrix-vector multiplication by exploiting
 *             variable block structure", HPCC 2005 (columns once for rows with equal patterns).
 *
 * Values stay where they are, so new values need no work. The only copy is that of the columns: those
 * of the first row of each group, one group after the other.
 *
 * Loads ahead: a block has TURNS groups for each of its subwarps of LANES lanes. It loads its part
 * of the table into shared memory. In each step a subwarp loads AT_ONCE columns a lane for the step
 * after, be it of the same group or of the next, so that gathers and values are loaded at the same
 * time. Values are loaded for BATCH rows at once, as many as there are registers for.
 *
 * Early start: as in tiles. The table, and the columns and values of the first step, are loaded
 * before the wait for the kernel before.
 *
 * Bits: lane l adds the entries l, l + LANES, ... of a row, and lanes combine in a fixed tree. The
 * number of lanes depends on the mean length of the rows. Neither groups nor the width of columns
 * change a bit. The parts of an epilogue's dot product belong to blocks, whose groups depend on the
 * matrix alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_GROUPS_CUH
#define PRODUCT_GROUPS_CUH

#include "product/cuda/tiles/spmv_4_tiles.cuh"

namespace grouped
{

enum { MOST_ROWS = 8 };

/* MOST: rows of the largest group; fewer rows need fewer registers. BLOCK: threads. TURNS: groups
 * of a subwarp. AT_ONCE: columns that a lane loads at once. BATCH: rows whose values it loads at
 * once. */
template <int MOST_> struct shape {
    using team = tiles::whole_block;
    enum { MOST = MOST_, BLOCK = 128, TURNS = 4, AT_ONCE = 4, BATCH = MOST > 4 ? 4 : 3 };
};
using few_rows = shape<4>;
using many_rows = shape<MOST_ROWS>;

/* Resident blocks of a multiprocessor; more would leave too few registers for the loads. */
template <typename Shape, typename T> constexpr int resident()
{
    return sizeof(T) == 8 ? (Shape::MOST > 4 ? 5 : 7) : Shape::MOST > 4 ? 8 : 9;
}

/* A group; it ends where the next one begins. */
struct alignas(16) group {
    uint32_t begin; /* of the first row's entries in the CSR arrays */
    uint32_t place; /* of its columns, counted without those of the other rows */
    int32_t row;
    int32_t base; /* of its 16-bit columns; tiles::NO_BASE: it has none */
};

template <typename T, typename Stored> struct matrix {
    using stored = Stored;
    int64_t groups;
    const group *table; /* groups + 1 */
    const int32_t *col;
    const uint16_t *narrow; /* NULL: no group has 16-bit columns */
    const Stored *val;
    /* the share that the last-level cache retains between products */
    float retained;
};

/* A group as a subwarp needs it. */
struct held_group {
    uint32_t begin, place;
    int32_t row, base;
    int rows, length;
};

/* A block's part of the table, in shared memory. */
struct table_part {
    const group *table;
    int count;

    /* Without rows behind the end. */
    __device__ held_group at(int g) const
    {
        held_group of = {};
        if (g < count) {
            const group mine = table[g], next = table[g + 1];
            of = {mine.begin, mine.place, mine.row, mine.base, next.row - mine.row, (int)(next.place - mine.place)};
        }
        return of;
    }
};

/* Loads from + i * LANES for those of a lane's AT_ONCE numbers that are below `left`; the others become
 * 0. */
template <int LANES, int AT_ONCE, typename From, typename Load, typename To>
__device__ void take(const From *from, int left, const Load &load, To (&to)[AT_ONCE])
{
    from = settled(from);
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
        to[i] = To();
        if (i * LANES < left)
            to[i] = load(from + i * LANES);
    }
}

template <typename Matrix> __device__ bool is_narrow(const Matrix &m, const held_group &g)
{
    return m.narrow != nullptr && g.base != tiles::NO_BASE;
}

/* Loads a lane's columns from its entry `from` of the group's first row on. */
template <int LANES, int AT_ONCE, typename Load, typename Matrix>
__device__ void load_columns(const Load &load, const Matrix &m, const held_group &g, int from,
                             int32_t (&column)[AT_ONCE])
{
    if (is_narrow(m, g))
        take<LANES>(m.narrow + (g.place + (uint32_t)from), g.length - from, load, column);
    else
        take<LANES>(m.col + (g.begin + (uint32_t)from), g.length - from, load, column);
}

/* Loads a lane's values of the rows first, ..., first + BATCH - 1 of a group of at most ROWS. */
template <int ROWS, int LANES, int BATCH, int AT_ONCE, typename Load, typename Matrix>
__device__ void load_values(const Load &load, const Matrix &m, const held_group &g, int first, int from,
                            typename Matrix::stored (&value)[BATCH][AT_ONCE])
{
#pragma unroll
    for (int r = 0; r < BATCH; r++)
        if (first + r < ROWS) {
            const int left = ROWS == 1 || first + r < g.rows ? g.length - from : 0;
            take<LANES>(m.val + (g.begin + (uint32_t)((first + r) * g.length + from)), left, load, value[r]);
        }
}

/* The sum over LANES lanes in a fixed tree, in all of them. */
template <int LANES, typename T> __device__ T subwarp_sum(T sum)
{
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    return sum;
}

/* Sums and stores the rows of group g, at most ROWS. column: of its first step; afterwards of the first
 * step of group number `next`. Returns false if the product is not needed. */
template <typename Shape, int ROWS, int LANES, typename Load, typename Matrix, typename T, typename Store>
__device__ __forceinline__ bool sum_group(const Load &load, const Matrix &m, const table_part &part,
                                          const held_group &g, int next, int32_t (&column)[Shape::AT_ONCE], const T *x,
                                          Store &store)
{
    enum { AT_ONCE = Shape::AT_ONCE, BATCH = Shape::BATCH, STEP = AT_ONCE * LANES };
    const int lane = (int)threadIdx.x % LANES;
    const T *const x_from = settled(is_narrow(m, g) ? x + g.base : x);
    typename Store::ahead held{};
    bool stopped = false, goes_on = true;
    T sum[ROWS] = {};
    for (int from = 0; goes_on; from += STEP) {
        typename Matrix::stored value[BATCH][AT_ONCE];
        load_values<ROWS, LANES>(load, m, g, 0, from + lane, value);
        if (from == 0) {
            await_kernel_before();
            stopped = store.stopped();
            if (lane < g.rows)
                held = store.look_ahead(g.row + lane);
        }
        T gathered[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            gathered[i] = T();
            if (from + lane + i * LANES < g.length)
                gathered[i] = load_gathered(x_from + column[i]);
        }
        goes_on = from + STEP < g.length;
        load_columns<LANES>(load, m, goes_on ? g : part.at(next), (goes_on ? from + STEP : 0) + lane, column);
        if (stopped) /* tested after the gathers are issued, so that they do not wait for it */
            return false;
#pragma unroll
        for (int first = 0; first < ROWS; first += BATCH) {
            if (first > 0)
                load_values<ROWS, LANES>(load, m, g, first, from + lane, value);
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
#pragma unroll
                for (int r = 0; r < BATCH && first + r < ROWS; r++)
                    sum[first + r] += T(value[r][i]) * gathered[i];
        }
    }
    T mine = T();
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const T of_row = subwarp_sum<LANES>(sum[r]);
        mine = lane == r ? of_row : mine;
    }
    if (lane < g.rows)
        store(g.row + lane, mine, held);
    return true;
}

/* body(the number of rows as a constant type), at least ROWS and at most MOST. */
template <int MOST, int ROWS = 1, typename Body> __device__ __forceinline__ bool with_rows(int rows, const Body &body)
{
    if constexpr (ROWS < MOST)
        if (rows > ROWS)
            return with_rows<MOST, ROWS + 1>(rows, body);
    return body(std::integral_constant<int, ROWS>());
}

template <typename Shape, int LANES, typename Load, typename Matrix, typename T, typename Store>
__global__ void __launch_bounds__(Shape::BLOCK, resident<Shape, T>())
    kernel(Matrix m, int turns, const T *x, Store store)
{
    static_assert(LANES >= (int)Shape::MOST, "a lane for each row");
    enum { SUBWARPS = Shape::BLOCK / LANES };
    __shared__ group table[SUBWARPS * Shape::TURNS + 1];
    const Load load(m.retained);
    const int64_t first = (int64_t)blockIdx.x * (turns * SUBWARPS), left = m.groups - first;
    const table_part part = {table, left < turns * SUBWARPS ? (int)left : turns * SUBWARPS};
    let_next_begin();
    for (int i = (int)threadIdx.x; i <= part.count; i += Shape::BLOCK)
        table[i] = m.table[first + i];
    __syncthreads();
    int g = (int)threadIdx.x / LANES, of_warp = (int)threadIdx.x / warp_lanes * (warp_lanes / LANES);
    int32_t column[Shape::AT_ONCE];
    load_columns<LANES>(load, m, part.at(g), (int)threadIdx.x % LANES, column);
    bool goes_on = true;
    for (; of_warp < part.count && goes_on; of_warp += SUBWARPS, g += SUBWARPS) { /* the same for a warp */
        const held_group now = part.at(g);
        const int rows = LANES < warp_lanes ? -__reduce_min_sync(0xffffffffu, -now.rows) : now.rows;
        goes_on = with_rows<Shape::MOST>(rows, [&](auto constant) {
            return sum_group<Shape, decltype(constant)::value, LANES>(load, m, part, now, g + SUBWARPS, column, x,
                                                                      store);
        });
    }
    await_kernel_before(); /* warps without groups, too, before they use the store's counters */
    if (!store.stopped())
        store.template end_tile<Shape>(blockIdx.x);
}

/* Groups of a subwarp: one after the other hide the time that loads take. Fewer where there would
 * be less blocks than an H200 runs at once. */
inline int turns_for(int64_t groups, int lanes)
{
    enum { ENOUGH = 900 };
    const int64_t once = (groups * lanes - 1) / many_rows::BLOCK + 1; /* blocks, with a group a subwarp */
    return (int)min_i64((once - 1) / ENOUGH + 1, many_rows::TURNS);
}

inline int64_t blocks_for(int64_t groups, int lanes)
{
    return (groups - 1) / (many_rows::BLOCK / lanes * turns_for(groups, lanes)) + 1;
}

template <typename Shape, int LANES, typename Load, typename Matrix, typename T, typename Store>
spmv_status run_as(spmv_context *ctx, const Matrix &m, const T *x, Store store)
{
    enum { SHARED_PERCENT = 8 }; /* the rest of a multiprocessor's memory caches x */
    return launch_cached<kernel<Shape, LANES, Load, Matrix, T, Store>>(
        ctx, "spmv groups", (int)blocks_for(m.groups, LANES), Shape::BLOCK, SHARED_PERCENT, m,
        turns_for(m.groups, LANES), x, store);
}

template <typename Shape, int LANES, typename Matrix, typename T, typename Store>
spmv_status run_with(spmv_context *ctx, const Matrix &m, const T *x, Store store)
{
    return m.retained > 0 ? run_as<Shape, LANES, loads<caching::RETAINED>>(ctx, m, x, store)
                          : run_as<Shape, LANES, loads<caching::ONCE>>(ctx, m, x, store);
}

/* largest: rows of a group at most. */
template <typename Matrix, typename T, typename Store>
spmv_status run(spmv_context *ctx, const Matrix &m, int lanes, int largest, const T *x, Store store)
{
    if (largest > few_rows::MOST)
        return lanes == 8 ? run_with<many_rows, 8>(ctx, m, x, store) : run_with<many_rows, 16>(ctx, m, x, store);
    return lanes == 8 ? run_with<few_rows, 8>(ctx, m, x, store) : run_with<few_rows, 16>(ctx, m, x, store);
}

} // namespace grouped

#endif
