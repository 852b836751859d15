/* Method "panels" of the backend cuda: products of many vectors with neighbouring rows that share columns.
 *
 * Idea:       a panel has ROWS neighbouring rows. Its columns are the union of those of its rows, each with a
 *             mask of the rows that have it and a value for each row. A subwarp multiplies a panel: a lane loads
 *             16 bytes of a row of x once for all rows of the panel that need it, and has their sums in
 *             registers.
 * Work:       nnz * columns products.
 * Depth:      the columns of a panel.
 * Launches:   1 for each group of columns.
 * Bytes:      ROWS values, 5 bytes and a row of x for each column of a panel, once for each 512 bytes of a row
 *             of x, and y. Where panels have half as many columns as entries, half as much of x as method wide.
 * Changed:    since wide, a gathered row of x serves several rows of the matrix; the matrix is stored again.
 * Wins when:  neighbouring rows share columns (finite elements) and x has many columns.
 * Bits:       a row is summed entry by entry. So a column has the same bits whatever the number of columns,
 *             strides and alignment.
 * Source:     E.-J. Im, K. Yelick, R. Vuduc, "Sparsity: optimization framework for sparse matrix kernels",
 *             International Journal of High Performance Computing Applications 18, 2004 (blocks of registers);
 *             here a block has one column, and masks in place of stored zeros, which would multiply infinities.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_PANELS_CUH
#define PRODUCT_PANELS_CUH

#include "product/cuda/packs.cuh"

namespace panels
{

/* ROWS: of a panel. STEP: columns of a panel that are loaded together; panels have whole steps. */
enum { ROWS = PANEL_ROWS, STEP = 4, THREADS = 128, PLAN_THREADS = 128 };

/* The rows of a step's columns: a byte for each. */
typedef uint32_t step_masks;

struct csr {
    const void *row_ptr;
    bool wide_offsets;
    const int32_t *col;
    int64_t rows;

    __device__ int64_t offset(int64_t i) const
    {
        return wide_offsets ? ((const int64_t *)row_ptr)[i] : (int64_t)((const int32_t *)row_ptr)[i];
    }
};

/* Goes through the columns of a panel: always the least of those that its rows have next. So rows keep their
 * order, also where it is not ascending. */
struct cursor {
    const int32_t *col;
    int64_t at[ROWS], end[ROWS];
    int32_t next[ROWS]; /* INT_MAX after the last one, which no column is */

    __device__ cursor(const csr &a, int64_t panel) : col(a.col)
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t row = panel * ROWS + r;
            at[r] = row < a.rows ? a.offset(row) : 0;
            end[r] = row < a.rows ? a.offset(row + 1) : 0;
            look(r);
        }
    }

    __device__ void look(int r)
    {
        next[r] = at[r] < end[r] ? col[at[r]] : INT_MAX;
    }

    __device__ int32_t column() const
    {
        int32_t least = next[0];
#pragma unroll
        for (int r = 1; r < ROWS; r++)
            least = next[r] < least ? next[r] : least;
        return least;
    }

    /* Calls take(r, entry) for the rows that have the column next, and goes on. */
    template <typename Take> __device__ void advance(int32_t column, const Take &take)
    {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (next[r] == column) {
                take(r, at[r]++);
                look(r);
            }
    }
};

/* Of the panels that were looked at. */
struct findings {
    unsigned long long columns, entries, longest; /* longest: the most steps of a panel */
};

/* steps[i]: of panel i * apart, if steps is not NULL. */
__global__ void __launch_bounds__(PLAN_THREADS)
    count(csr a, int64_t panels, int64_t apart, int32_t *steps, findings *found)
{
    const int64_t i = (int64_t)blockIdx.x * PLAN_THREADS + threadIdx.x;
    int64_t columns = 0, entries = 0;
    if (i * apart < panels) {
        cursor c(a, i * apart);
        for (int32_t column; (column = c.column()) != INT_MAX; columns++)
            c.advance(column, [&](int, int64_t) { entries++; });
        const int64_t needed = (columns + STEP - 1) / STEP;
        if (steps != nullptr)
            steps[i] = (int32_t)needed;
        if ((unsigned long long)needed > found->longest)
            atomicMax(&found->longest, (unsigned long long)needed);
    }
    atomic_add_of_warp(columns, (int64_t *)&found->columns);
    atomic_add_of_warp(entries, (int64_t *)&found->entries);
}

/* A panel's part of the arrays begins at step begin[panel]. */
template <typename Stored> struct arrays {
    const int32_t *begin; /* panels + 1 */
    few<int32_t, STEP> *col;
    step_masks *rows;
    few<Stored, ROWS> *val;
};

/* Writes the arrays. Beyond its last column a step has this column again, for no row. from: NULL for a pattern, of
 * which all values are 1. */
template <typename Stored>
__global__ void __launch_bounds__(PLAN_THREADS) fill(csr a, int64_t panels, const Stored *from, arrays<Stored> to)
{
    const int64_t panel = (int64_t)blockIdx.x * PLAN_THREADS + threadIdx.x;
    if (panel >= panels)
        return;
    cursor c(a, panel);
    int32_t last = 0;
    for (int64_t step = to.begin[panel]; step < to.begin[panel + 1]; step++) {
        few<int32_t, STEP> col;
        step_masks rows = 0;
#pragma unroll
        for (int u = 0; u < STEP; u++) {
            few<Stored, ROWS> val = {};
            const int32_t column = c.column();
            if (column != INT_MAX) {
                last = column;
                c.advance(column, [&](int r, int64_t entry) {
                    rows |= 1u << (8 * u + r);
                    val.at[r] = from != nullptr ? load_whole(from + entry) : real_value<Stored>(1);
                });
            }
            col.at[u] = last;
            to.val[step * STEP + u] = val;
        }
        to.col[step] = col;
        to.rows[step] = rows;
    }
}

/* A launch for `columns` columns of x and y. T: of sums and scalars; Stored: of values; Element: of vectors. */
template <typename T, typename Stored, typename Element> struct job {
    int64_t rows, panels;
    arrays<Stored> a;
    const Element *x;
    Element *y;
    uint32_t x_row_bytes; /* from a row of x to the next */
    int64_t y_stride;
    int columns;
    int lanes_log;   /* log2 of the lanes of a subwarp */
    unsigned groups; /* blocks for each block of columns; those of the same columns follow each other */
    scaling<T> s;
};

/* Blocks that a multiprocessor has at once, so that no registers are spilled. */
template <typename T, int PACK> constexpr int resident()
{
    return sizeof(T) * PACK * ROWS <= 64 && sizeof(T) == 4 ? 6 : 4;
}

template <int PACK, typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(THREADS, resident<T, PACK>()) multiply(job<T, Stored, Element> j)
{
    const int lanes = 1 << j.lanes_log;
    const int column = (((int)(blockIdx.x / j.groups) << j.lanes_log) + ((int)threadIdx.x & (lanes - 1))) * PACK;
    const int64_t panel = (int64_t)(blockIdx.x % j.groups) * (THREADS >> j.lanes_log) + (threadIdx.x >> j.lanes_log);
    if (panel >= j.panels || column >= j.columns)
        return;
    const char *const x = settled((const char *)(j.x + column));
    const int64_t begin = j.a.begin[panel], end = j.a.begin[panel + 1];
    pack<T, PACK> sum[ROWS] = {};
    few<int32_t, STEP> col = {};
    if (begin < end)
        col = load_few_once(j.a.col + begin);
#pragma unroll 1
    for (int64_t step = begin; step < end; step++) {
        row_pack<T, Element, PACK> row[STEP];
#pragma unroll
        for (int u = 0; u < STEP; u++)
            row[u] = *(const row_pack<T, Element, PACK> *)in_global(x + (uint64_t)(uint32_t)col.at[u] * j.x_row_bytes);
        const step_masks rows = load_once(j.a.rows + step);
        if (step + 1 < end)
            col = load_few_once(j.a.col + step + 1);
#pragma unroll
        for (int u = 0; u < STEP; u++) {
            const few<Stored, ROWS> val = load_few_once(j.a.val + step * STEP + u);
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (rows >> (8 * u + r) & 1)
                    sum[r].add(T(val.at[r]), row[u]);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (panel * ROWS + r < j.rows)
            store_row(j.s, sum[r], j.y + (panel * ROWS + r) * j.y_stride + column);
}

} // namespace panels

#endif
