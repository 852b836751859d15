/* Method "long": for long rows, warps sum units of consecutive nonzeros in registers.
 *
 * Idea:       The nonzeros are cut into units of UNIT, wherever rows begin and end. Each warp gets
 *             an equal number of consecutive units. It loads STEP nonzeros at a time: lane l takes
 *             every 32nd from number l on, and adds the products of the row that is open. Where a
 *             row ends, the warp adds its lanes and stores the row. No product goes through shared
 *             memory and there is no barrier. There are as many blocks as run at once, so all warps
 *             load from the start to the end.
 * x:          If x fits in the shared memory of a multiprocessor, each block copies it there first.
 *             The gathers of a long row are spread over x. In shared memory they conflict less than
 *             in the first-level cache, and nothing evicts x.
 * Work:       nnz products, 32 partial sums for each row and each unit.
 * Depth:      nnz / lanes, or the units of the longest row / 32.
 * Launches:   1.
 * Bytes:      the matrix once, with 16-bit columns where the columns of a unit span less than 2^16.
 * Changed:    since tiles, sums in registers instead of shared memory, and equal work for all
 *             warps wherever rows end.
 * Wins when:  rows have hundreds of entries.
 * Loses when: rows are short: a warp takes as long to end a row as to load STEP nonzeros.
 * Source:     J. L. Greathouse, M. Daga, "Efficient sparse matrix-vector multiplication on GPUs
 *             using the CSR storage format", SC14 (long rows by more than one warp); D. Merrill, M.
 *             Garland, "Merge-based parallel sparse matrix-vector multiplication", SC16 (equal work
 *             wherever rows end).
 *
 * Cut rows: a row with units in several warps is a sum of its sums in each unit. The warps write
 * these to memory and add their numbers of units to the counter of the row's first unit. The last
 * one adds the sums in the order in which a single warp adds them in registers, and stores the row.
 * Timing decides which warp adds, but not the order of the operands. No warp waits. The warp that
 * adds resets the counter for the next launch. Each warp counts at most twice in a launch: the
 * instruction empties the first-level cache of the multiprocessor.
 *
 * Early start: as in tiles. The columns, values and offsets of the first step are loaded before
 * the wait for the kernel before.
 *
 * Bits: lane l adds the entries of a row in a unit that are number l, l + 32, ... of the unit, and
 * lanes combine in a fixed tree; then lane l adds the row's units l, l + 32, ..., and again a tree.
 * All depends on the row's length and on where it begins in a unit. It does not depend on which
 * warp has which unit, where x is, or how columns are stored.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_LONG_CUH
#define PRODUCT_LONG_CUH

#include "product/cuda/tiles/spmv_4_tiles.cuh"

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

    /* The lane of the first row that ends after `at`, of all rows from `first` on. Moves on to
     * later rows if necessary. */
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

/* The place of a row's sum in unit u. first: the row's first unit. */
template <typename Matrix> __device__ auto *sum_at(const Matrix &m, int32_t first, int32_t u)
{
    return m.sums + 2 * (int64_t)u + (u > first);
}

/* Called by a warp whose lane 0 has written the sums of `mine` of the `all` units of a row. first:
 * the row's first unit. Returns true in the last warp, which sees all sums, and resets the
 * counter. */
template <typename Matrix> __device__ bool arrives_last(const Matrix &m, int32_t first, unsigned mine, unsigned all)
{
    const bool counts = threadIdx.x % warp_lanes == 0;
    const unsigned before = counts ? tiles::count_up(m.counts + first, mine) : 0;
    if (__shfl_sync(0xffffffffu, before, 0) + mine != all)
        return false;
    __syncwarp();
    if (counts)
        m.counts[first] = 0;
    return true;
}

/* Adds the sums of a row's units, as a warp does that has all of the row. Called by a warp; the
 * result is in lane 0. */
template <typename T, typename Matrix> __device__ T fold(const Matrix &m, int32_t first, int units)
{
    T sum = T();
#pragma unroll 1
    for (int k = (int)threadIdx.x % warp_lanes; k < units; k += warp_lanes)
        sum += tiles::load_shared_sum(sum_at(m, first, first + k));
    return warp_sum(sum, warp_lanes);
}

/* Stores the empty rows, which end in no step. */
template <int BLOCK, typename Matrix, typename T>
__device__ __forceinline__ void store_empty_rows(const Matrix &m, const scaling<T> &s, T *y)
{
    if (m.has_empty)
        for (int64_t row = (int64_t)blockIdx.x * BLOCK + threadIdx.x; row < m.rows; row += (int64_t)gridDim.x * BLOCK)
            if (m.offset((int32_t)row) == m.offset((int32_t)row + 1))
                s.store(T(), &y[row]);
}

/* The open row of a warp: the one that the next nonzero belongs to. */
template <typename T> struct open_row {
    int at, which;  /* where it begins, at least 0; its lane in the ends of rows */
    int32_t starts; /* the unit in which it begins */
    T sum;          /* the lane's part of it in this unit */
    T folded;       /* its sums in the units l, l + 32, ... before this one, l: lane */

    /* Adds the products of a step that begins at `from`, up to the row's end. */
    template <int ITEMS> __device__ __forceinline__ void add_up_to(int row_end, int from, const T (&product)[ITEMS])
    {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const int place = from + i * warp_lanes + (int)threadIdx.x % warp_lanes;
            if (place >= at && place < row_end)
                sum += product[i];
        }
    }

    /* Adds all of them from the row's begin on. In the last unit, products behind the last nonzero
     * are added to a sum that is not used. */
    template <int ITEMS> __device__ __forceinline__ void add(int from, const T (&product)[ITEMS])
    {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            if (at <= from || from + i * warp_lanes + (int)threadIdx.x % warp_lanes >= at)
                sum += product[i];
    }

    /* The row ends in unit u: in lane 0, sum becomes that of the row, with the units before u. False
     * if another warp does this, because other warps have the row's first units. */
    template <typename Matrix> __device__ __forceinline__ bool finish(const Matrix &m, int32_t first_unit, int32_t u)
    {
        const int lane = (int)threadIdx.x % warp_lanes;
        bool complete = true;
        sum = warp_sum(sum, warp_lanes);
        if (starts < first_unit) {
            if (lane == 0)
                *sum_at(m, starts, u) = sum;
            complete = arrives_last(m, starts, (unsigned)(u - first_unit + 1), (unsigned)(u - starts + 1));
            if (complete)
                sum = fold<T>(m, starts, u - starts + 1);
        } else if (starts < u) {
            sum = __shfl_sync(0xffffffffu, sum, 0);
            sum = warp_sum((u - starts) % warp_lanes == lane ? folded + sum : folded, warp_lanes);
        }
        return complete;
    }

    /* The row ends in a later unit than u. cut: other warps have units of it, so they need the sum
     * in this one. */
    template <typename Matrix> __device__ __forceinline__ void end_unit(const Matrix &m, int32_t u, bool cut)
    {
        const int lane = (int)threadIdx.x % warp_lanes;
        sum = warp_sum(sum, warp_lanes);
        if (lane == 0 && cut)
            *sum_at(m, starts, u) = sum;
        sum = __shfl_sync(0xffffffffu, sum, 0);
        if ((u - starts) % warp_lanes == lane)
            folded += sum;
        sum = T();
    }
};

/* The warp's last row ends in the units of another warp. The last of these warps stores it. */
template <int UNIT, typename Matrix, typename T>
__device__ __forceinline__ void finish_cut_row(const Matrix &m, int32_t row, int32_t starts, int32_t first_unit,
                                               int32_t units_end, const scaling<T> &s, T *y)
{
    const int32_t mine = starts > first_unit ? starts : first_unit;
    const unsigned all = (unsigned)((int32_t)((m.offset(row + 1) - 1) / UNIT) - starts + 1);
    if (arrives_last(m, starts, (unsigned)(units_end - mine), all)) {
        const T sum = fold<T>(m, starts, (int)all);
        if (threadIdx.x % warp_lanes == 0)
            s.store(sum, &y[row]);
    }
}

template <typename Shape, bool X_SHARED, bool HAS_VALUES, typename Load, typename Matrix, typename T>
__global__ void __launch_bounds__(blocks_of<Shape, X_SHARED>::THREADS, blocks_of<Shape, X_SHARED>::RESIDENT)
    kernel(Matrix m, const T *x, scaling<T> s, T *y)
{
    using blocks = blocks_of<Shape, X_SHARED>;
    enum { UNIT = Shape::UNIT, STEP = Shape::STEP, BLOCK = blocks::THREADS, WARPS = blocks::WARPS };
    const int lane = (int)threadIdx.x % warp_lanes;
    const int64_t warps = (int64_t)gridDim.x * WARPS,
                  warp = (int64_t)blockIdx.x * WARPS + (int)threadIdx.x / warp_lanes;
    /* The warp's units, and where their nonzeros begin. Places are counted from there. */
    const int32_t first_unit = (int32_t)(m.units * warp / warps), units_end = (int32_t)(m.units * (warp + 1) / warps);
    const int64_t begin = (int64_t)first_unit * UNIT, end = (int64_t)units_end * UNIT;
    const int length = first_unit < units_end ? (int)((end < m.nnz ? end : m.nnz) - begin) : 0;
    const Load load(m.retained);
    const auto is_narrow = [&](int32_t base) { return m.narrow != nullptr && base != tiles::NO_BASE; };
    step<Shape, Matrix> now = {};
    row_ends rows = {};
    open_row<T> open = {};
    int32_t base = 0, next_base = 0; /* of the columns of this unit and the next */
    let_next_begin();
    if (length > 0) {
        const unit mine = m.table[first_unit];
        base = mine.base;
        now.template load<HAS_VALUES>(m, load, is_narrow(base), begin + lane, length);
        open.starts = (int32_t)(m.offset(mine.row) / UNIT);
        rows.load(m, mine.row, begin);
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
    store_empty_rows<BLOCK>(m, s, y);

    for (int from = 0; from < length; from += STEP) { /* the same for all lanes */
        const int behind = from + STEP;
        const int32_t u = first_unit + from / UNIT;
        const bool ends_unit = behind % UNIT == 0;
        if (from % UNIT == 0 && u + 1 < units_end)
            next_base = m.table[u + 1].base;
        T product[Shape::ITEMS];
        now.template multiply<HAS_VALUES, X_SHARED>(is_narrow(base) ? gathered + base : gathered, product);
        if (ends_unit)
            base = next_base;
        now.template load<HAS_VALUES>(m, load, is_narrow(base), begin + behind + lane, length - behind);
        int row_end = __shfl_sync(0xffffffffu, rows.end, open.which);
        while (row_end <= behind) { /* the open row ends in this step */
            open.add_up_to(row_end, from, product);
            if (open.finish(m, first_unit, u) && lane == 0)
                s.store(open.sum, &y[rows.first + open.which]);
            open = {row_end, rows.next(m, begin, row_end), first_unit + row_end / UNIT, T(), T()};
            row_end = __shfl_sync(0xffffffffu, rows.end, open.which);
        }
        open.add(from, product);
        if (ends_unit && open.at < behind)
            open.end_unit(m, u, open.starts < first_unit || row_end > length);
    }
    if (open.at < length)
        finish_cut_row<UNIT>(m, rows.first + open.which, open.starts, first_unit, units_end, s, y);
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
