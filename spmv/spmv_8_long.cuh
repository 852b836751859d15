/* Rung 8, "long": for long rows, a warp sums units of consecutive nonzeros in registers.
 *
 * Idea:       The nonzeros are cut into units of UNIT, wherever rows begin and end. A warp loads a
 *             unit in steps of STEP nonzeros: lane l takes every 32nd from number l on, and adds
 *             the products of the row that is open. Where a row ends, the warp adds its lanes and
 *             stores the row. No product goes through shared memory and no warp waits for another,
 *             so all warps load all the time. As many blocks as run at once loop over the units.
 * x:          If x fits in the shared memory of a multiprocessor, each block copies it there first.
 *             The gathers of a long row are spread over x. In shared memory they conflict less than
 *             in the first-level cache, and nothing evicts x.
 * Work:       nnz products, 32 partial sums for each row and each cut.
 * Depth:      units / warps * UNIT / 32, or the cuts of the longest row / 32.
 * Launches:   1.
 * Bytes:      the matrix once, with 16-bit columns where the columns of a unit span less than 2^16;
 *             two sums per unit.
 * Changed:    since rung 4, sums in registers instead of shared memory, and units that do not end
 *             where rows end.
 * Wins when:  rows have hundreds of entries.
 * Loses when: rows are short: a warp takes as long to end a row as to load STEP nonzeros.
 * Source:     J. L. Greathouse, M. Daga, "Efficient sparse matrix-vector multiplication on GPUs
 *             using the CSR storage format", SC14 (long rows by more than one warp).
 *
 * Cut rows: a row with entries in several units has a sum in each of them. A warp stores this sum
 * and increments the counter of the row's first unit. The last one to arrive adds the sums in their
 * order and stores the row. Timing decides which warp adds, but not the order of the operands. No
 * warp waits. The warp that adds resets the counter for the next launch.
 *
 * Early start: as in rung 4. The columns, values and offsets of the first step are loaded before
 * the wait for the kernel before.
 *
 * Bits: lane l of a unit adds the entries l, l + 32, ... of a row, and lanes combine in a fixed
 * tree; the sums of units likewise. All depends on the row's length and on its first entry's place
 * in a unit, not on the device, on where x is, or on how columns are stored.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_8_LONG_CUH
#define SPMV_8_LONG_CUH

#include "spmv_4_tiles.cuh"

namespace long_rows
{

/* UNIT: nonzeros of a unit. ITEMS: nonzeros that a lane loads at once. HELD: warps that a
 * multiprocessor holds; more would leave too few registers for the loads. */
template <int UNIT_, int ITEMS_, int HELD_> struct shape {
    enum { UNIT = UNIT_, ITEMS = ITEMS_, HELD = HELD_, STEP = warp_lanes * ITEMS };
    static_assert(UNIT % STEP == 0, "whole steps");
};
template <typename T> using usual = shape<1024, 8, sizeof(T) == 8 ? 24 : 32>;

/* With x in shared memory, a multiprocessor has one block. */
template <typename Shape, bool X_SHARED> struct blocks_of {
    enum { WARPS = X_SHARED ? Shape::HELD : 8, THREADS = WARPS * warp_lanes, RESIDENT = Shape::HELD / WARPS };
};

/* A unit: the row of its first nonzero, and the base of its 16-bit columns, or tiles::NO_BASE. */
struct alignas(8) unit {
    int32_t row, base;
};

/* A plan's matrix. T: of vectors and sums; Stored: of its values. */
template <typename T, typename Stored> struct matrix {
    using sum = T;
    using stored = Stored;
    int64_t nnz;
    int32_t rows, cols, units;
    const void *row_ptr;
    const unit *table;
    const int32_t *col;
    const uint16_t *narrow; /* NULL: no unit has 16-bit columns */
    const Stored *val;      /* NULL: a pattern */
    T *sums;                /* two a unit: of the row that begins in it, of the row from before */
    unsigned *counts;       /* one a unit; 0 between launches */
    bool wide;              /* offsets have 64 bits */
    bool has_empty;         /* rows */
    /* the share that the last-level cache retains between products */
    float retained;

    __device__ int64_t offset(int32_t row) const
    {
        return wide ? ((const int64_t *)row_ptr)[row] : ((const int32_t *)row_ptr)[row];
    }
};

/* The columns and values of a lane in one step; those behind the end are 0. */
template <typename Shape, typename Matrix> struct step {
    int32_t column[Shape::ITEMS];
    typename Matrix::stored value[Shape::ITEMS];

    /* from: of the lane's first. left: nonzeros of the unit from the step's first on. */
    template <bool HAS_VALUES, typename Load>
    __device__ void load(const Matrix &m, const Load &load, bool is_narrow, int64_t from, int left)
    {
        const int lane = (int)threadIdx.x % warp_lanes;
        if constexpr (HAS_VALUES)
            take(m.val + from, left - lane, load, value);
        if (is_narrow)
            take(m.narrow + from, left - lane, load, column);
        else
            take(m.col + from, left - lane, load, column);
    }

    template <typename From, typename Load, typename To>
    static __device__ void take(const From *from, int left, const Load &load, To (&to)[Shape::ITEMS])
    {
        from = settled(from);
#pragma unroll
        for (int i = 0; i < Shape::ITEMS; i++) {
            to[i] = To();
            if (i * warp_lanes < left)
                to[i] = load(from + i * warp_lanes);
        }
    }

    /* Gathers x and multiplies. */
    template <bool HAS_VALUES, bool X_SHARED, typename T>
    __device__ void multiply(const T *x, T (&product)[Shape::ITEMS]) const
    {
#pragma unroll
        for (int i = 0; i < Shape::ITEMS; i++)
            product[i] = X_SHARED ? x[column[i]] : load_gathered(x + column[i]);
#pragma unroll
        for (int i = 0; i < Shape::ITEMS; i++)
            if (HAS_VALUES)
                product[i] *= T(value[i]);
    }
};

/* The ends of 32 rows, counted from the first nonzero of a unit: lane l has that of row first + l.
 * FAR for rows that end far behind the unit and for those that do not exist. */
struct row_ends {
    enum { FAR = 1 << 30 };
    int32_t first, end;

    template <typename Matrix> __device__ void load(const Matrix &m, int32_t row, int64_t unit_begin)
    {
        const int32_t mine = row + (int32_t)threadIdx.x % warp_lanes;
        const int64_t behind = mine < m.rows ? m.offset(mine + 1) - unit_begin : (int64_t)FAR;
        first = row;
        end = behind < FAR ? (int32_t)behind : (int32_t)FAR;
    }

    /* The lane of the first row that ends after `at`, of all rows from `first` on. Moves on to later
     * rows if necessary. */
    template <typename Matrix> __device__ int next(const Matrix &m, int64_t unit_begin, int at)
    {
        unsigned later = __ballot_sync(0xffffffffu, end > at);
        for (bool again = false; later == 0; again = true) {
            int32_t row = first + warp_lanes;
            if (again) /* at least 32 empty rows */
                row = last_ended(m, row - 1, unit_begin + at) + 1;
            load(m, row, unit_begin);
            later = __ballot_sync(0xffffffffu, end > at);
        }
        return __ffs((int)later) - 1;
    }

    /* The last row from `low` on that ends at or before `place`, as row `low` does. */
    template <typename Matrix> static __device__ int32_t last_ended(const Matrix &m, int32_t low, int64_t place)
    {
        const int lane = (int)threadIdx.x % warp_lanes;
        int32_t high = m.rows - 1;
        while (low < high) {
            const int32_t part = (high - low - 1) / warp_lanes + 1;
            const int64_t row = low + (int64_t)(lane + 1) * part;
            const unsigned yes = __ballot_sync(0xffffffffu, row <= high && m.offset((int32_t)row + 1) <= place);
            low += __popc(yes) * part;
            high = low + part - 1 < high ? low + part - 1 : high;
        }
        return low;
    }
};

/* Called by a warp with the sum of a cut row in unit u, in lane 0. first, last: the row's units. The
 * last warp to arrive stores the row. */
template <typename Matrix, typename T>
__device__ void hand_on(const Matrix &m, int32_t first, int32_t last, int32_t u, T sum, int32_t row,
                        const scaling<T> &s, T *y)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const int units = last - first + 1;
    T *const sums = m.sums + 2 * (int64_t)first;
    if (lane == 0)
        sums[2 * (int64_t)(u - first) + (u > first)] = sum;
    if (!tiles::arrives_last(m.counts + first, units))
        return;
    sum = T();
#pragma unroll 1
    for (int k = lane; k < units; k += warp_lanes)
        sum += tiles::load_shared_sum(sums + 2 * (int64_t)k + (k > 0));
    sum = warp_sum(sum, warp_lanes);
    if (lane == 0)
        s.store(sum, &y[row]);
}

template <typename Shape, bool X_SHARED, bool HAS_VALUES, typename Load, typename Matrix, typename T>
__global__ void __launch_bounds__(blocks_of<Shape, X_SHARED>::THREADS, blocks_of<Shape, X_SHARED>::RESIDENT)
    kernel(Matrix m, const T *x, scaling<T> s, T *y)
{
    using blocks = blocks_of<Shape, X_SHARED>;
    enum { UNIT = Shape::UNIT, STEP = Shape::STEP, BLOCK = blocks::THREADS, WARPS = blocks::WARPS };
    const int lane = (int)threadIdx.x % warp_lanes;
    const int32_t warps = (int32_t)gridDim.x * WARPS;
    int32_t u = (int32_t)blockIdx.x * WARPS + (int32_t)threadIdx.x / warp_lanes;
    const Load load(m.retained);
    const auto is_narrow = [&](unit a) { return m.narrow != nullptr && a.base != tiles::NO_BASE; };
    const auto begin_of = [](int32_t v) { return (int64_t)v * UNIT; };
    const auto length_of = [&](int32_t v) {
        return v >= m.units ? 0 : v < m.units - 1 ? (int)UNIT : (int)(m.nnz - begin_of(v));
    };
    step<Shape, Matrix> now = {};
    row_ends rows = {};
    unit mine = {};
    int32_t starts = 0; /* the unit in which the open row begins */
    let_next_begin();
    if (u < m.units) {
        mine = m.table[u];
        now.template load<HAS_VALUES>(m, load, is_narrow(mine), begin_of(u) + lane, length_of(u));
        starts = (int32_t)(m.offset(mine.row) / UNIT);
        rows.load(m, mine.row, begin_of(u));
    }

    await_kernel_before();
    const T *gathered = x;
    if constexpr (X_SHARED) {
        SPMV_DYNAMIC_SHARED(memory);
        T *const copy = (T *)memory;
#pragma unroll 4
        for (int i = (int)threadIdx.x; i < m.cols; i += BLOCK)
            copy[i] = load_gathered(x + i);
        __syncthreads();
        gathered = copy;
    }
    if (m.has_empty)
        for (int64_t row = (int64_t)blockIdx.x * BLOCK + threadIdx.x; row < m.rows; row += warps * warp_lanes)
            if (m.offset((int32_t)row) == m.offset((int32_t)row + 1))
                s.store(T(), &y[row]);

    while (u < m.units) { /* the same for all lanes */
        const int length = length_of(u), next_u = m.units - u > warps ? u + warps : m.units;
        const unit next = next_u < m.units ? m.table[next_u] : unit();
        row_ends next_rows = {};
        int32_t next_starts = 0;
        int at = 0, which = 0; /* where the open row begins in the unit; its lane in rows */
        T sum = T();
        for (int from = 0; from < length; from += STEP) {
            const int behind = from + STEP;
            const bool ends = behind >= length;
            T product[Shape::ITEMS];
            now.template multiply<HAS_VALUES, X_SHARED>(is_narrow(mine) ? gathered + mine.base : gathered, product);
            now.template load<HAS_VALUES>(m, load, is_narrow(ends ? next : mine),
                                          (ends ? begin_of(next_u) : begin_of(u) + behind) + lane,
                                          ends ? length_of(next_u) : length - behind);
            if (ends && next_u < m.units) {
                next_starts = (int32_t)(m.offset(next.row) / UNIT);
                next_rows.load(m, next.row, begin_of(next_u));
            }
            int end = __shfl_sync(0xffffffffu, rows.end, which);
            while (end <= behind) { /* the open row ends in this step */
#pragma unroll
                for (int i = 0; i < Shape::ITEMS; i++) {
                    const int place = from + i * warp_lanes + lane;
                    if (place >= at && place < end)
                        sum += product[i];
                }
                sum = warp_sum(sum, warp_lanes);
                if (starts < u)
                    hand_on(m, starts, u, u, sum, rows.first + which, s, y);
                else if (lane == 0)
                    s.store(sum, &y[rows.first + which]);
                sum = T();
                starts = u;
                at = end;
                which = rows.next(m, begin_of(u), at);
                end = __shfl_sync(0xffffffffu, rows.end, which);
            }
            /* In the last unit, products behind the last nonzero are added to a sum that is not
             * used. */
#pragma unroll
            for (int i = 0; i < Shape::ITEMS; i++)
                if (at <= from || from + i * warp_lanes + lane >= at)
                    sum += product[i];
        }
        if (at < length) { /* the open row ends in a later unit */
            const int32_t row = rows.first + which;
            sum = warp_sum(sum, warp_lanes);
            hand_on(m, starts, (int32_t)((m.offset(row + 1) - 1) / UNIT), u, sum, row, s, y);
        }
        u = next_u;
        mine = next;
        rows = next_rows;
        starts = next_starts;
    }
}

/* blocks: as many as run at once, or fewer. */
template <typename Shape, bool X_SHARED, bool HAS_VALUES, typename Load, typename Matrix, typename T>
spmv_status run_as(spmv_context *ctx, const Matrix &m, int shared_most, const T *x, scaling<T> s, T *y)
{
    constexpr auto *of = kernel<Shape, X_SHARED, HAS_VALUES, Load, Matrix, T>;
    using how = blocks_of<Shape, X_SHARED>;
    enum { SHARED_PERCENT = 0 }; /* all of a multiprocessor's memory caches x */
    const int at_once = how::RESIDENT * ((const cuda_state *)ctx->device)->multiprocessors;
    const int blocks = (int)min_i64(((int64_t)m.units - 1) / how::WARPS + 1, at_once);
    if constexpr (X_SHARED) {
        static uint64_t told;
        const spmv_status st = once_a_device(ctx, "spmv long", &told, (const void *)of,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize, shared_most);
        return st != SPMV_OK ? st
                             : launch_shaped(ctx, "spmv long", {blocks, how::THREADS, m.cols * (int)sizeof(T), true},
                                             of, m, x, s, y);
    } else {
        return launch_cached<of>(ctx, "spmv long", blocks, how::THREADS, SHARED_PERCENT, m, x, s, y);
    }
}

template <typename Shape, bool X_SHARED, typename Matrix, typename T>
spmv_status run_with_x(spmv_context *ctx, const Matrix &m, int shared_most, const T *x, scaling<T> s, T *y)
{
    using once = loads<caching::ONCE>;
    return m.val == nullptr ? run_as<Shape, X_SHARED, false, once>(ctx, m, shared_most, x, s, y)
           : m.retained > 0 ? run_as<Shape, X_SHARED, true, loads<caching::RETAINED>>(ctx, m, shared_most, x, s, y)
                            : run_as<Shape, X_SHARED, true, once>(ctx, m, shared_most, x, s, y);
}

/* shared_most: bytes of shared memory that a block can have; 0: leave x in global memory. */
template <typename Shape, typename Matrix, typename T>
spmv_status run(spmv_context *ctx, const Matrix &m, int shared_most, const T *x, scaling<T> s, T *y)
{
    return shared_most > 0 ? run_with_x<Shape, true>(ctx, m, shared_most, x, s, y)
                           : run_with_x<Shape, false>(ctx, m, shared_most, x, s, y);
}

} // namespace long_rows

#endif
