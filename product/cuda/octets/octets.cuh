/* Method "octets" of the backend cuda: products of several vectors, up to 128 bytes of a row of x at a time.
 *
 * Idea:       the entries are divided into octets, wherever rows begin and end, so all work is equal. A
 *             subwarp takes an octet: a lane loads 16 bytes (PACK columns) of the rows of x for several of its
 *             entries at once. The plan keeps a bit for each entry, whether it is the last one of its row. Rows
 *             within an octet are stored at once. The parts of other rows are added over the octets of a quad by
 *             exchange between lanes, over the quads of a tile in shared memory, and over tiles by a second
 *             kernel, which has a block for each row of many tiles.
 * Work:       nnz * columns products.
 * Depth:      an octet; then the tiles of a row.
 * Launches:   2 for each group of columns.
 * Bytes:      the matrix and a fourth of a byte for each entry once for each block of columns, and of x a block's
 *             columns for each entry, from caches where possible, and y.
 * Changed:    since columns, a lane has a share of the entries, not a part of a row.
 * Wins when:  rows of x have up to 128 bytes, so that a warp multiplies several octets at once.
 * Bits:       the entries of a row that are in one octet are added one after the other, then the octets of a
 *             quad, the quads of a tile, tiles by the 16, and these. Octets depend on the matrix only. So a column
 *             has the same bits whatever the number of columns, strides and alignment.
 * Source:     equal shares of the entries: D. Merrill, M. Garland, "Merge-based parallel sparse matrix-vector
 *             multiplication", SC 2016; columns of x in vector loads: T. Gale, M. Zaharia, C. Young, E. Elsen,
 *             "Sparse GPU kernels for deep learning", SC 2020.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_OCTETS_CUH
#define PRODUCT_OCTETS_CUH

#include "product/cuda/packs.cuh"

namespace octets
{

/* OCTET: entries of an octet. QUAD: octets of a quad. QUADS: of a tile. TOGETHER: entries of an octet whose rows of
 * x are loaded together. GROUP: tiles of a row that are added one after the other. EMPTY_ROWS: rows without entries
 * for each subwarp. MOST_LANES_LOG: log2 of the most lanes of a subwarp, so that a warp has whole quads. */
enum {
    THREADS = 128,
    OCTET = 8,
    QUAD = 4,
    QUADS = 4,
    QUAD_ENTRIES = OCTET * QUAD,
    TILE = QUAD_ENTRIES * QUADS,
    TOGETHER = 4,
    GROUP = 16,
    EMPTY_ROWS = 4,
    MOST_LANES_LOG = 3
};
static_assert((int)QUAD_ENTRIES == (int)warp_lanes, "an entry for each lane, and a word of bits for a quad");

/* The rows that have entries, by rank, and their ends. */
struct structure {
    int64_t rows, nnz, tiles;
    const void *row_ptr;
    bool wide_offsets;
    uint32_t *ends;  /* of a quad: a bit for each entry that is the last one of its row */
    int32_t *rank;   /* of a quad: of the row that its first entry is in */
    int32_t *origin; /* of a tile in which this row ends: the tile in which it begins; of others the tile itself */
    int32_t *row;    /* by rank; NULL: all rows have entries */
    int32_t *empty;  /* the other rows */
    int64_t empties;
    int32_t *far; /* the tiles in which a row of more than GROUP tiles ends, in any order */
    int64_t fars;

    __device__ int64_t offset(int64_t i) const
    {
        return wide_offsets ? ((const int64_t *)row_ptr)[i] : (int64_t)((const int32_t *)row_ptr)[i];
    }

    __device__ int64_t row_of(int32_t of_rank) const
    {
        return row != nullptr ? row[of_rank] : of_rank;
    }

    /* The number of rows with entries that end before this entry. */
    __device__ int32_t ended_before(int64_t entry) const
    {
        const int64_t quad = entry / QUAD_ENTRIES;
        return rank[quad] + __popc(ends[quad] & ((1u << (entry % QUAD_ENTRIES)) - 1));
    }
};

/* Sets the bits of ends, which are 0 before. */
__global__ void __launch_bounds__(THREADS) mark_ends(structure s)
{
    const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (row >= s.rows)
        return;
    const int64_t last = s.offset(row + 1) - 1;
    if (s.offset(row) <= last)
        atomicOr(s.ends + last / QUAD_ENTRIES, 1u << (last % QUAD_ENTRIES));
}

/* count[q]: the rows that end in a quad. */
__global__ void __launch_bounds__(THREADS) count_ends(const uint32_t *ends, int32_t *count, int64_t quads)
{
    const int64_t q = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (q < quads)
        count[q] = __popc(ends[q]);
}

/* Lists the rows with entries by ranks, and the others. */
__global__ void __launch_bounds__(THREADS) list_rows(structure s)
{
    const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (row >= s.rows)
        return;
    const int64_t begin = s.offset(row);
    const int32_t rank = s.ended_before(begin);
    if (begin < s.offset(row + 1))
        s.row[rank] = (int32_t)row;
    else
        s.empty[row - rank] = (int32_t)row;
}

/* *fars: the number of tiles listed in s.far; it is 0 before. */
__global__ void __launch_bounds__(THREADS) find_origins(structure s, unsigned *fars)
{
    const int64_t tile = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (tile >= s.tiles)
        return;
    bool ends = false;
    for (int q = 0; q < QUADS; q++)
        ends = ends || s.ends[tile * QUADS + q] != 0;
    const int64_t origin = ends ? s.offset(s.row_of(s.rank[tile * QUADS])) / TILE : tile;
    s.origin[tile] = (int32_t)origin;
    if (tile - origin > GROUP)
        s.far[atomicAdd(fars, 1u)] = (int32_t)tile;
}

/* A launch for `columns` columns of x and y. T: of sums and scalars; Stored: of values; Element: of vectors. */
template <typename T, typename Stored, typename Element> struct job {
    structure p;
    const int32_t *col;
    const Stored *val; /* NULL: a pattern */
    bool whole;        /* col and val begin at multiples of 16 bytes */
    const Element *x;
    Element *y;
    uint32_t x_row_bytes; /* from a row of x to the next */
    int64_t y_stride;
    int columns;
    int lanes_log;                /* log2 of the lanes of a subwarp */
    unsigned tile_blocks, blocks; /* for each block of columns: with tiles, and in all. Those of the same columns follow
                                      each other, so that the caches need only these columns of x */
    T *heads, *tails;             /* of each tile: the sum of the row that began before it, and of that which goes on */
    scaling<T> s;
};

/* Loads COUNT items from number `first` on; those beyond nnz are `absent`. aligned: they begin at a multiple of their
 * size. */
template <int COUNT, typename Item>
__device__ few<Item, COUNT> load_items(const Item *from, int64_t first, int64_t nnz, bool aligned, Item absent)
{
    if (aligned && first + COUNT <= nnz)
        return load_few_once((const few<Item, COUNT> *)(from + first));
    few<Item, COUNT> items;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        items.at[i] = first + i < nnz ? load_once((const whole<Item> *)(from + first + i)).element : absent;
    return items;
}

/* The part of a row in progress, quads in order. */
template <typename T, int PACK> struct in_order {
    pack<T, PACK> sum;
    bool ended; /* a row has ended */

    __device__ void add(const pack<T, PACK> &of_quad, bool ends)
    {
        if (ends)
            sum = of_quad;
        else
            sum.add(of_quad);
        ended = ended || ends;
    }
};

/* Blocks that a multiprocessor has at once. */
template <typename T, int PACK> constexpr int resident()
{
    return sizeof(T) == 16 ? 6 : sizeof(T) * PACK > 16 ? 7 : 8;
}

template <int PACK, typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(THREADS, resident<T, PACK>()) multiply(job<T, Stored, Element> j)
{
    /* By quads of the block: what goes on after the last end of a row, or all; and whether a row ends. */
    __shared__ pack<T, PACK> outs[THREADS / QUAD];
    __shared__ bool ends_row[THREADS / QUAD];
    const structure &p = j.p;
    const int lane = (int)threadIdx.x % warp_lanes, lanes = 1 << j.lanes_log, slot = lane >> j.lanes_log;
    const int octet = slot % QUAD, quads = THREADS / QUAD >> j.lanes_log, quad = (int)threadIdx.x / QUAD >> j.lanes_log;
    const unsigned block = blockIdx.x % j.blocks;
    const int in_columns = lane & (lanes - 1);
    const int column = (((int)(blockIdx.x / j.blocks) << j.lanes_log) + in_columns) * PACK;
    const bool mine = column < j.columns;
    if (block >= j.tile_blocks) {
        const int64_t number = ((int64_t)(block - j.tile_blocks) * THREADS + threadIdx.x) >> j.lanes_log;
        for (int64_t i = number * EMPTY_ROWS; mine && i < (number + 1) * EMPTY_ROWS && i < p.empties; i++)
            store_row(j.s, pack<T, PACK>(), j.y + p.empty[i] * j.y_stride + column);
        return;
    }
    const int64_t number = (int64_t)block * quads + quad; /* of the quad */
    const int64_t entry = number * QUAD_ENTRIES + octet * OCTET, tile = number / QUADS;
    const bool there = number * QUAD_ENTRIES < p.nnz;
    const uint32_t ends = there ? load_once(p.ends + number) : 0;
    const int32_t rank = there ? load_once(p.rank + number) : 0;
    const few<int32_t, OCTET> col = load_items<OCTET>(j.col, entry, p.nnz, j.whole, 0);
    const char *const x = settled((const char *)(j.x + (mine ? column : 0)));
    const unsigned before = ends & ((1u << (octet * OCTET)) - 1); /* ends of rows in earlier octets of the quad */
    const unsigned own = ends >> (octet * OCTET) & ((1u << OCTET) - 1);
    const int32_t first_rank = rank + __popc(before);
    const auto put = [&](int32_t of_rank, const pack<T, PACK> &sum) {
        if (mine)
            store_row(j.s, sum, j.y + p.row_of(of_rank) * j.y_stride + column);
    };
    int32_t now = first_rank;
    pack<T, PACK> sum = {}, head = {};
    bool seen = false;
#pragma unroll
    for (int half = 0; half < OCTET; half += TOGETHER) {
        row_pack<T, Element, PACK> rows[TOGETHER];
        few<Stored, TOGETHER> val;
#pragma unroll
        for (int u = 0; u < TOGETHER; u++)
            rows[u] = *(const row_pack<T, Element, PACK> *)in_global(x + (uint64_t)(uint32_t)col.at[half + u] *
                                                                             j.x_row_bytes);
        if (j.val != nullptr)
            val = load_items<TOGETHER>(j.val, entry + half, p.nnz, j.whole, real_value<Stored>(0));
        const unsigned of_half = own >> half & ((1u << TOGETHER) - 1);
#pragma unroll
        for (int u = 0; u < TOGETHER; u++) {
            sum.add(j.val != nullptr ? T(val.at[u]) : real_value<T>(1), rows[u]);
            if (of_half != 0 && (of_half >> u & 1) != 0) {
                if (seen)
                    put(now, sum);
                else
                    head = sum;
                seen = true;
                now++;
                sum = {};
            }
        }
    }
    /* The parts of a row go from octet to octet. */
    pack<T, PACK> arrived = {};
#pragma unroll
    for (int step = 1; step < QUAD; step++) {
        pack<T, PACK> from_before;
#pragma unroll
        for (int i = 0; i < PACK; i++)
            from_before.at[i] = shuffle_up(sum.at[i], lanes);
        if (octet == step) {
            arrived = from_before;
            if (!seen) {
                from_before.add(sum);
                sum = from_before;
            }
        }
    }
    if (octet == QUAD - 1) {
        outs[(quad << j.lanes_log) + in_columns] = sum;
        if (in_columns == 0)
            ends_row[quad] = ends != 0;
    }
    const bool first = seen && before == 0; /* the thread has the row that ends first in the quad */
    if (seen) {
        arrived.add(head);
        if (!first)
            put(first_rank, arrived);
    }
    __syncthreads();
    /* The row in progress after the quads of the tile before `end`. */
    const auto up_to = [&](int end) {
        in_order<T, PACK> all = {};
#pragma unroll 1
        for (int q = quad / QUADS * QUADS; q < end; q++)
            all.add(outs[(q << j.lanes_log) + in_columns], ends_row[q]);
        return all;
    };
    if (!mine || tile >= p.tiles)
        return;
    if (first) {
        in_order<T, PACK> all = up_to(quad);
        all.sum.add(arrived);
        if (!all.ended && p.origin[tile] < tile)
            *(pack<T, PACK> *)(j.heads + tile * j.columns + column) = all.sum;
        else
            put(rank, all.sum);
    }
    if (octet == QUAD - 1 && quad % QUADS == QUADS - 1)
        *(pack<T, PACK> *)(j.tails + tile * j.columns + column) = up_to(quad + 1).sum;
}

/* The sum of the tiles of a row from this one on, before `end`: of one group. */
template <int PACK, typename T, typename Stored, typename Element>
__device__ pack<T, PACK> add_tiles(const job<T, Stored, Element> &j, int column, int64_t from, int64_t end)
{
    const T *const tails = j.tails + column;
    const int64_t last = from + GROUP < end ? from + GROUP : end;
    pack<T, PACK> sum = {};
#pragma unroll 8
    for (int64_t t = from; t < last; t++)
        sum.add(*(const pack<T, PACK> *)(tails + t * j.columns));
    return sum;
}

/* y of the rows that cross tiles: a subwarp has the row that ends first in its tile. The first blocks have a row of
 * many tiles each. */
template <int PACK, typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(THREADS) join(job<T, Stored, Element> j)
{
    __shared__ pack<T, PACK> sums[THREADS];
    const structure &p = j.p;
    const int lanes = 1 << j.lanes_log, subwarp = (int)threadIdx.x >> j.lanes_log, subwarps = THREADS >> j.lanes_log;
    const int in_columns = (int)threadIdx.x & (lanes - 1);
    const int column = (((int)(blockIdx.x / j.blocks) << j.lanes_log) + in_columns) * PACK;
    const int64_t block = blockIdx.x % j.blocks;
    const bool mine = column < j.columns, is_far = block < p.fars;
    const int64_t unit = (block - p.fars) * subwarps + subwarp, tile = is_far ? p.far[block] : unit;
    const int64_t origin = tile < p.tiles ? p.origin[tile] : tile;
    const bool wanted = mine && origin < tile && (is_far || tile - origin <= GROUP);
    const int64_t row = wanted ? p.row_of(p.rank[tile * QUADS]) : 0;
    await_kernel_before();
    pack<T, PACK> sum = {};
    if (!is_far && wanted)
        sum = add_tiles<PACK>(j, column, origin, tile);
    for (int64_t now = origin; is_far && now < tile; now += (int64_t)GROUP * subwarps) {
        const int64_t from = now + (int64_t)GROUP * subwarp;
        if (mine && from < tile)
            sums[threadIdx.x] = add_tiles<PACK>(j, column, from, tile);
        __syncthreads();
        for (int i = 0; subwarp == 0 && i < subwarps && now + (int64_t)GROUP * i < tile; i++)
            sum.add(sums[(i << j.lanes_log) + in_columns]);
        __syncthreads();
    }
    if (!wanted || (is_far && subwarp > 0))
        return;
    sum.add(*(const pack<T, PACK> *)(j.heads + tile * j.columns + column));
    store_row(j.s, sum, j.y + row * j.y_stride + column);
}

} // namespace octets

#endif
