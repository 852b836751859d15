/* Method "wide" of the backend cuda: products of many vectors.
 *
 * Idea:       equal shares of the merge path along rows and entries, each for a subwarp of `lanes`
 *             lanes. A lane has 16 bytes of a row of x (PACK columns) and their sums in registers. The
 *             block stages the entries and the ends of the rows of all its shares in shared memory at
 *             once, where all lanes of a subwarp read them. A share begins with a row, unless the row
 *             is longer than a share: so neighbouring subwarps begin neighbouring rows together, and
 *             the rows of x that those have in common come from the first-level cache. A launch goes
 *             through the matrix once for each block of at most 512 bytes of a row of x.
 * Work:       nnz * columns products.
 * Depth:      the items of a share; then the shares of a row.
 * Launches:   1 for each group of columns, 2 if a row has several shares.
 * Bytes:      the matrix once for each block of columns, and of x a block's columns for each entry,
 *             from caches where possible, and y.
 * Changed:    since columns, a lane has a share of the matrix, not a part of a row.
 * Wins when:  there are many vectors.
 * Bits:       a row of at most a share's length is summed entry by entry. A longer one: the entries of
 *             each share, then the shares of a tile, then tiles by the 16. Shares and tiles depend on
 *             the matrix only. So a column has the same bits whatever the number of columns, strides
 *             and alignment.
 * Source:     the merge path: D. Merrill, M. Garland, "Merge-based parallel sparse matrix-vector
 *             multiplication", SC 2016; columns of x in vector loads: T. Gale, M. Zaharia, C. Young,
 *             E. Elsen, "Sparse GPU kernels for deep learning", SC 2020.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_WIDE_CUH
#define PRODUCT_WIDE_CUH

#include "product/cuda/packs.cuh"

namespace wide
{

/* MOST_THREADS: of a block. LEAST_LANES_LOG: log2 of the least lanes of a subwarp, so that the shares of a
 * block fit in its shared memory. RESIDENT: blocks that a multiprocessor has at once. TILE: shares of a
 * tile; a block has whole tiles. MOST_ADDED: tiles that are added one after the other. */
enum {
    MOST_THREADS = 128,
    LEAST_LANES_LOG = 2,
    MOST_SUBWARPS = MOST_THREADS >> LEAST_LANES_LOG,
    RESIDENT = 8,
    TILE = 4,
    MOST_ADDED = 16
};

__device__ inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

__device__ inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Entries whose rows of x are loaded together. */
template <typename T, int PACK> constexpr int together = sizeof(T) * PACK < 16 ? 8 : 4;

/* Where a share begins: in this row, at this entry. */
struct alignas(16) place_in_matrix {
    int64_t row, entry;
};

/* Shares of the merge path: items 0 ... rows + nnz - 1 are the entries, and after its last entry the
 * end of each row. Share i begins at item i * length; or, if that lies within a row of at most `length`
 * entries, at the next row. So a share has fewer than 2 * length + 1 items. */
struct shares {
    int64_t rows, nnz;
    const void *row_ptr;
    bool wide_offsets;
    int length;
    int64_t count;
    const place_in_matrix *begin; /* count + 1 */

    __device__ int64_t offset(int64_t row) const
    {
        return wide_offsets ? ((const int64_t *)row_ptr)[row] : (int64_t)((const int32_t *)row_ptr)[row];
    }

    /* Of a share, or the end of the matrix. */
    __device__ place_in_matrix begin_of(int64_t share) const
    {
        return begin[share < count ? share : count];
    }

    /* Whether the row has entries before the place. */
    __device__ bool within_row(place_in_matrix here) const
    {
        return here.row < rows && offset(here.row) < here.entry;
    }

    /* The share in which a row begins that has more than `length` entries. */
    __device__ int64_t share_of(int64_t row) const
    {
        return (offset(row) + row) / length;
    }
};

/* begin[i], 0 <= i <= count. *longest: the entries of the longest row, if it has several shares; it is 0 before. */
__global__ void __launch_bounds__(MOST_THREADS)
    find_shares(shares p, place_in_matrix *begin, unsigned long long *longest)
{
    for (int64_t i = (int64_t)blockIdx.x * MOST_THREADS + threadIdx.x; i <= p.count;
         i += (int64_t)gridDim.x * MOST_THREADS) {
        const int64_t item = smaller(i * p.length, p.rows + p.nnz);
        int64_t low = 0, high = p.rows; /* the number of rows that end before the item */
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (p.offset(middle + 1) + middle < item)
                low = middle + 1;
            else
                high = middle;
        }
        place_in_matrix here = {low, item - low};
        if (p.within_row(here)) {
            const int64_t end = p.offset(low + 1), entries = end - p.offset(low);
            if (entries <= p.length || here.entry == end)
                here = {low + 1, end};
            else if ((unsigned long long)entries > *longest)
                atomicMax(longest, (unsigned long long)entries);
        }
        begin[i] = here;
    }
}

/* A launch for `columns` columns of x and y. T: of sums and scalars; Stored: of values; Element: of vectors. */
template <typename T, typename Stored, typename Element> struct job {
    shares p;
    const int32_t *col;
    const Stored *val; /* NULL: a pattern */
    const Element *x;
    Element *y;
    uint32_t x_row_bytes; /* from a row of x to the next */
    int64_t y_stride;
    int columns;
    int lanes_log;    /* log2 of the lanes of a subwarp */
    unsigned groups;  /* of the grid */
    bool split;       /* a row has several shares */
    T *heads, *tails; /* of each tile: the sum of the row that began before it, and of that which goes on */
    scaling<T> s;
};

/* The place of a thread: in its block, and the share or tile and the column of its work. The grid has
 * `groups` times as many blocks as there are blocks of columns; those of the same columns follow each
 * other, so that the caches need only these columns of x. */
struct place {
    int subwarp, subwarps, lanes, column;
    int64_t unit;

    __device__ place(int lanes_log, unsigned groups, int pack)
        : subwarp((int)threadIdx.x >> lanes_log), subwarps((int)blockDim.x >> lanes_log), lanes(1 << lanes_log),
          column((((int)(blockIdx.x / groups) << lanes_log) + ((int)threadIdx.x & (lanes - 1))) * pack),
          unit((int64_t)(blockIdx.x % groups) * subwarps + subwarp)
    {
    }
};

/* The entries of a block and the ends of its rows in shared memory. Entries are counted from `first` on,
 * rows from the block's first. */
template <typename Stored, int GROUP> struct staged {
    int64_t first;
    int32_t *places;
    Stored *values;
    int *ends; /* INT_MAX: of a row that goes on after the block */

    /* Bytes for so many items: the first and the last group may have other entries. */
    static __host__ __device__ int bytes(int items)
    {
        return (items + 2 * GROUP) * (int)(sizeof(Stored) + sizeof(int32_t));
    }

    /* Loads everything between two places. Called by all threads; a barrier must follow. */
    template <typename T, typename Element>
    __device__ staged(const job<T, Stored, Element> &j, place_in_matrix from, place_in_matrix to, void *memory)
        : first(from.entry / GROUP * GROUP), places((int32_t *)memory)
    {
        enum { EACH = 4 }; /* loads of a thread at once */
        const int entries = (int)(to.entry - first), rows = (int)(to.row - from.row), threads = (int)blockDim.x;
        const int room = (entries + GROUP - 1) / GROUP * GROUP;
        values = (Stored *)(places + room);
        ends = (int *)(values + room);
        for (int e = (int)threadIdx.x; e < entries; e += EACH * threads) {
            int32_t col[EACH];
            Stored val[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (e + i * threads < entries) {
                    col[i] = load_once(j.col + first + e + i * threads);
                    val[i] = j.val != nullptr
                                 ? load_once((const whole<Stored> *)(j.val + first + e + i * threads)).element
                                 : real_value<Stored>(1);
                }
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (e + i * threads < entries) {
                    places[e + i * threads] = col[i];
                    values[e + i * threads] = val[i];
                }
        }
        for (int r = (int)threadIdx.x; r <= rows; r += threads)
            ends[r] = r < rows ? (int)(j.p.offset(from.row + r + 1) - first) : INT_MAX;
    }
};

/* Stores the rows that cross shares, from the sums of the shares of a tile. */
template <int PACK, typename T, typename Stored, typename Element>
__device__ void finish_rows(const job<T, Stored, Element> &j, const place &at, place_in_matrix begin,
                            place_in_matrix end, const pack<T, PACK> *heads, const pack<T, PACK> *tails)
{
    const shares &p = j.p;
    const int64_t share = at.unit, tile = share / TILE, tile_first = tile * TILE;
    const int column = at.column;
    /* The sum of a row from share `from` to this one, in order. own: of this share. */
    const auto through = [&](int64_t from, const pack<T, PACK> &own) {
        if (from >= share)
            return own;
        int other = (int)threadIdx.x - ((int)(share - from) << j.lanes_log);
        pack<T, PACK> sum = tails[other];
        while ((other += at.lanes) < (int)threadIdx.x)
            sum.add(tails[other]);
        sum.add(own);
        return sum;
    };
    if (column >= j.columns)
        return;
    if (begin.row < end.row && p.within_row(begin)) {
        const int64_t from = p.share_of(begin.row);
        const pack<T, PACK> sum = through(larger(from, tile_first), heads[threadIdx.x]);
        if (from >= tile_first)
            store_row(j.s, sum, j.y + begin.row * j.y_stride + column);
        else
            *(pack<T, PACK> *)(j.heads + tile * j.columns + column) = sum;
    }
    if (share == tile_first + TILE - 1 && p.within_row(end))
        *(pack<T, PACK> *)(j.tails + tile * j.columns + column) =
            through(larger(p.share_of(end.row), tile_first), tails[threadIdx.x]);
}

template <typename T, int PACK> int sums_bytes(int threads)
{
    return 2 * threads * (int)sizeof(pack<T, PACK>);
}

template <int PACK, typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(MOST_THREADS, RESIDENT) multiply(job<T, Stored, Element> j)
{
    SPMV_DYNAMIC_SHARED(shared);
    constexpr int GROUP = together<T, PACK>;
    const shares &p = j.p;
    const place at(j.lanes_log, j.groups, PACK);
    const int64_t first_share = at.unit - at.subwarp;
    const place_in_matrix block = p.begin_of(first_share), block_end = p.begin_of(first_share + at.subwarps);
    const place_in_matrix share = p.begin_of(at.unit), share_end = p.begin_of(at.unit + 1);
    pack<T, PACK> *const heads = (pack<T, PACK> *)shared, *const tails = heads + blockDim.x;
    const staged<Stored, GROUP> here(j, block, block_end, j.split ? (void *)(tails + blockDim.x) : (void *)shared);
    const bool mine = at.column < j.columns;
    bool open = j.split && p.within_row(share); /* the row in progress began before the share */
    __syncthreads();

    /* Entries are counted from the first of the share. */
    const int begin = (int)(share.entry - here.first), count = (int)(share_end.entry - share.entry);
    const char *const x = settled((const char *)(j.x + (mine ? at.column : 0)));
    Element *y = j.y + share.row * j.y_stride + at.column;
    const int *ends = here.ends + (share.row - block.row), *const last = here.ends + (share_end.row - block.row);
    int row_end = *ends - begin;
    pack<T, PACK> sum = {};
    const auto end_row = [&] {
        if (mine && open)
            heads[threadIdx.x] = sum;
        else if (mine)
            store_row(j.s, sum, y);
        open = false;
        sum = {};
        y += j.y_stride;
        row_end = *++ends - begin;
    };
    for (int e = -(begin % GROUP); e < count; e += GROUP) {
        const few<int32_t, GROUP> cols = *(const few<int32_t, GROUP> *)(here.places + begin + e);
        row_pack<T, Element, PACK> rows[GROUP];
#pragma unroll
        for (int u = 0; u < GROUP; u++)
            if ((unsigned)(e + u) < (unsigned)count)
                rows[u] =
                    *(const row_pack<T, Element, PACK> *)in_global(x + (uint64_t)(uint32_t)cols.at[u] * j.x_row_bytes);
        const few<Stored, GROUP> values = *(const few<Stored, GROUP> *)(here.values + begin + e);
        if (e >= 0 && e + GROUP <= (row_end < count ? row_end : count)) {
#pragma unroll
            for (int u = 0; u < GROUP; u++)
                sum.add(T(values.at[u]), rows[u]);
        } else {
#pragma unroll
            for (int u = 0; u < GROUP; u++)
                if ((unsigned)(e + u) < (unsigned)count) {
                    if (e + u == row_end)
                        do
                            end_row();
                        while (e + u == row_end);
                    sum.add(T(values.at[u]), rows[u]);
                }
        }
    }
    while (ends < last)
        end_row();
    if (!j.split)
        return;
    tails[threadIdx.x] = sum;
    __syncthreads();
    finish_rows<PACK>(j, at, share, share_end, heads, tails);
}

/* y of the rows that cross tiles: a subwarp has the row that ends in its tile. A row of many tiles is
 * for the whole block. */
template <int PACK, typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(MOST_THREADS) join(job<T, Stored, Element> j)
{
    __shared__ pack<T, PACK> sums[MOST_THREADS];
    __shared__ int64_t from_tile[MOST_SUBWARPS];
    const shares &p = j.p;
    const place at(j.lanes_log, j.groups, PACK);
    const int column = at.column;
    const bool mine = column < j.columns;
    const int64_t tile = at.unit, first_tile = tile - at.subwarp;
    const place_in_matrix begin = p.begin_of(tile * TILE);
    const bool joins = begin.row < p.begin_of(tile * TILE + TILE).row && p.within_row(begin);
    const int64_t from = joins ? p.share_of(begin.row) / TILE : tile;
    /* The sum of at most MOST_ADDED tiles from this one on, before `end`. */
    const auto added = [&](int64_t from_here, int64_t end) {
        const T *const tails = j.tails + column;
        pack<T, PACK> sum = *(const pack<T, PACK> *)(tails + from_here * j.columns);
        const int64_t last = smaller(from_here + MOST_ADDED, end);
#pragma unroll 4
        for (int64_t t = from_here + 1; t < last; t++)
            sum.add(*(const pack<T, PACK> *)(tails + t * j.columns));
        return sum;
    };
    const auto finish = [&](pack<T, PACK> sum, int64_t of_tile, int64_t of_row) {
        sum.add(*(const pack<T, PACK> *)(j.heads + of_tile * j.columns + column));
        store_row(j.s, sum, j.y + of_row * j.y_stride + column);
    };
    if ((threadIdx.x & (unsigned)(at.lanes - 1)) == 0)
        from_tile[at.subwarp] = from;
    __syncthreads();
    if (mine && from < tile && tile - from <= MOST_ADDED)
        finish(added(from, tile), tile, begin.row);
    for (int other = 0; other < at.subwarps; other++) {
        const int64_t start = from_tile[other], end = first_tile + other;
        if (end - start <= MOST_ADDED)
            continue;
        pack<T, PACK> sum = {};
        for (int64_t now = start; now < end; now += (int64_t)MOST_ADDED * at.subwarps) {
            const int64_t own = now + (int64_t)MOST_ADDED * at.subwarp;
            if (mine && own < end)
                sums[threadIdx.x] = added(own, end);
            __syncthreads();
            for (int i = 0; at.subwarp == 0 && i < at.subwarps && now + (int64_t)MOST_ADDED * i < end; i++) {
                if (now == start && i == 0)
                    sum = sums[threadIdx.x];
                else
                    sum.add(sums[threadIdx.x + (unsigned)(i << j.lanes_log)]);
            }
            __syncthreads();
        }
        if (mine && at.subwarp == 0)
            finish(sum, end, p.begin_of(end * TILE).row);
    }
}

} // namespace wide

#endif
