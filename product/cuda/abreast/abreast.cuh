/* Method "abreast": products of many vectors, where neighbouring rows are about equally long.
 *
 * Idea:       a subwarp of LANES lanes takes a row, neighbouring subwarps take neighbouring rows. A lane has
 *             16 bytes of a row of x (PACK columns) and their sums in registers. A block goes through some
 *             hundred neighbouring rows in step, so the rows of x that these share come from the first-level
 *             cache. While rows of x are on their way, the next entries are, too, also those of the next row.
 *             A launch goes through the matrix once for each block of at most 256 bytes of a row of x.
 * Work:       nnz * columns products.
 * Depth:      the longest row.
 * Launches:   1, or 2 if the columns are no whole number of blocks.
 * Bytes:      the matrix once for each block of columns, and of x a block's columns for each entry, from caches
 *             where possible, and y.
 * Changed:    since wide, whole rows in place of equal shares, and no copy of entries in shared memory.
 * Wins when:  the rows of a warp are about equally long, and none is far longer than the others.
 * Bits:       a row is summed entry by entry. So a column has the same bits whatever the number of columns,
 *             strides and alignment.
 * Source:     row splitting: C. Yang, A. Buluc, J. D. Owens, "Design principles for sparse matrix
 *             multiplication on the GPU", Euro-Par 2018; columns of x in vector loads: T. Gale, M. Zaharia,
 *             C. Young, E. Elsen, "Sparse GPU kernels for deep learning", SC 2020.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_ABREAST_CUH
#define PRODUCT_ABREAST_CUH

#include "product/cuda/packs.cuh"

namespace abreast
{

/* MOST_THREADS: of a block; the registers of a multiprocessor suffice for so many. */
enum { MOST_THREADS = 1024 };

/* Entries whose rows of x a subwarp loads together. Two lanes have no registers for more. */
template <int LANES> constexpr int together = LANES > 2 ? 8 : 4;

/* A launch for `columns` columns of x and y. T: of sums and scalars; Stored: of values; Element: of vectors. */
template <typename T, typename Stored, typename Element> struct job {
    const int32_t *row_ptr;
    const int32_t *first; /* blocks + 1: the first row of each block */
    const int32_t *col;
    const Stored *val; /* NULL: a pattern */
    const Element *x;
    Element *y;
    uint32_t x_row_bytes; /* from a row of x to the next */
    int64_t y_stride;
    int columns;
    unsigned blocks; /* the grid has so many for each block of columns; those of the same columns follow each other */
    scaling<T> s;
};

/* A row's entries. */
struct span {
    int begin, end;
};

/* The entries that a lane has loaded: EACH of those that the subwarp loads together. */
template <typename T, int EACH> struct held {
    int32_t col[EACH];
    T val[EACH];
};

template <int PACK, int LANES, typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(MOST_THREADS) multiply(job<T, Stored, Element> j)
{
    constexpr int TOGETHER = together<LANES>, EACH = LANES < TOGETHER ? TOGETHER / LANES : 1;
    /* Left alone, the compiler loads rows of x one after the other, to save registers: not where warps meet behind the
     * loads. With few registers left, the meeting is in a condition, so that a branch is behind the loads. */
    constexpr bool IN_BRANCH = EACH > 1 || sizeof(T) > 8;
    const int lane = (int)threadIdx.x % LANES;
    const int subwarps = (int)blockDim.x / LANES;
    const unsigned block = blockIdx.x % j.blocks;
    let_next_begin();
    const int column = ((int)(blockIdx.x / j.blocks) * LANES + lane) * PACK;
    const bool mine = column < j.columns;
    const int end = j.first[block + 1];
    const char *const x = settled((const char *)(j.x + (mine ? column : 0)));

    /* Beyond the block's rows there are no entries. */
    const auto row_at = [&](int row) {
        return span{j.row_ptr[row < end ? row : end], j.row_ptr[row < end ? row + 1 : end]};
    };
    const auto load = [&](const span &row) {
        held<T, EACH> entries = {};
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int entry = row.begin + i * LANES + lane % TOGETHER;
            whole<Stored> value = {real_value<Stored>(1)};
            load_once_if(entry < row.end, j.col + (uint32_t)entry, &entries.col[i]);
            load_once_if(entry < row.end && j.val != nullptr, (const whole<Stored> *)j.val + (uint32_t)entry, &value);
            entries.val[i] = T(value.element);
        }
        return entries;
    };
    /* What the lane has that loaded entry u. */
    const auto of_entry = [&](const auto &of_lanes, int u) {
        return shuffle_by(of_lanes[u / LANES],
                          [=](auto word) { return __shfl_sync(0xffffffffu, word, u % LANES, LANES); });
    };

    int row = j.first[block] + (int)threadIdx.x / LANES;
    span now = row_at(row),
         next = row_at(row + subwarps); /* what is left of the row; the next one, if registers allow */
    held<T, EACH> entries = load(now);
    pack<T, PACK> sum = {};
    await_kernel_before();
    while (row - (int)threadIdx.x % warp_lanes / LANES < end) { /* the same for all lanes of a warp */
        const held<T, EACH> these = entries;
        const int count = now.end - now.begin;
        const bool ends = __ballot_sync(0xffffffffu, count > TOGETHER) == 0; /* the lanes of a warp go on together */
        row_pack<T, Element, PACK> of_x[TOGETHER]; /* beyond the row's end row 0: loads with conditions would wait */
#pragma unroll
        for (int u = 0; u < TOGETHER; u++) {
            const uint32_t col = (uint32_t)of_entry(these.col, u);
            of_x[u] = *(const row_pack<T, Element, PACK> *)in_global(x + (uint64_t)col * j.x_row_bytes);
        }
        if constexpr (!IN_BRANCH)
            __syncwarp();
        now.begin += TOGETHER;
        if (ends) {
            if constexpr (IN_BRANCH)
                __syncwarp();
            row += subwarps;
            now = EACH == 1 ? next : row_at(row);
            next = row_at(row + subwarps);
        }
        entries = load(now);
#pragma unroll
        for (int u = 0; u < TOGETHER; u++) {
            const T value = of_entry(these.val, u);
            sum.add_if(u < count, value, of_x[u]);
        }
        if (ends) {
            if (mine && row - subwarps < end)
                store_row(j.s, sum, j.y + (row - subwarps) * j.y_stride + column);
            sum = {};
        }
    }
}

/* first[b]: the first row of block b of `blocks`, by equal numbers of rows and entries. */
__global__ void __launch_bounds__(block_threads)
    find_first(const int32_t *row_ptr, int64_t rows, int64_t nnz, int blocks, int32_t *first)
{
    for (int b = (int)(blockIdx.x * block_threads + threadIdx.x); b <= blocks; b += (int)(gridDim.x * block_threads)) {
        const int64_t items = rows + nnz, item = items / blocks * b + items % blocks * b / blocks;
        int64_t low = 0, high = rows; /* the number of rows that begin before the item */
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (row_ptr[middle] + middle < item)
                low = middle + 1;
            else
                high = middle;
        }
        first[b] = (int32_t)(b < blocks ? low : rows);
    }
}

} // namespace abreast

#endif
