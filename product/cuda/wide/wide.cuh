/* Method "wide" of the backend cuda: products of many vectors.
 *
 * Idea:       the entries are divided into octets, wherever rows begin and end, so all work is equal. A
 *             subwarp takes an octet: a lane loads 16 bytes (PACK columns) of the rows of x for several of its
 *             entries at once. The plan keeps a bit for each entry, whether it is the last one of its row. Rows
 *             within an octet are stored at once. The parts of other rows are added over the octets of a quad by
 *             exchange between lanes, over the quads and tiles of a block in shared memory, and over blocks through
 *             memory: a block that ends with an open row publishes its part, and the block in which the row
 *             ends takes it. Of a long row, every sixteenth tile takes the parts of a group and publishes
 *             their sum. A launch goes through the matrix once for each block of at most 512 bytes of a row of x.
 * Work:       nnz * columns products.
 * Depth:      octets of a quad; then the tiles of a row.
 * Launches:   1 for each group of columns.
 * Bytes:      the matrix and a fourth of a byte for each entry once for each block of columns, and of x a block's
 *             columns for each entry, from caches where possible, and y.
 * Changed:    since columns, a lane has a share of the entries, not a part of a row.
 * Wins when:  there are many vectors.
 * Bits:       the entries of a row that are in one octet are added one after the other, then the octets of a
 *             quad, the quads of a tile, tiles by the 16, and these. Octets depend on the matrix only. So a column
 *             has the same bits whatever the number of columns, strides and alignment.
 * Progress:   a block waits for blocks of smaller numbers only, which the device starts before it.
 * Source:     equal shares of the entries: D. Merrill, M. Garland, "Merge-based parallel sparse matrix-vector
 *             multiplication", SC 2016; parts in words with a status: D. Merrill, M. Garland, "Single-pass parallel
 *             prefix scan with decoupled look-back", NVR-2016-002, 2016; columns of x in vector loads: T. Gale,
 *             M. Zaharia, C. Young, E. Elsen, "Sparse GPU kernels for deep learning", SC 2020.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_WIDE_CUH
#define PRODUCT_WIDE_CUH

#include "device/lookback.cuh"
#include "product/cuda/packs.cuh"

namespace wide
{

/* OCTET: entries of an octet. QUAD: octets of a quad. QUADS: of a tile. TOGETHER: entries of an octet whose rows of x
 * are loaded together. GROUP: tiles of a row that are added one after the other. EMPTY_ROWS: rows without entries for
 * each subwarp. */
enum {
    THREADS = 128,
    OCTET = 8,
    QUAD = 4,
    QUADS = 4,
    QUAD_ENTRIES = OCTET * QUAD,
    TILE = QUAD_ENTRIES * QUADS,
    TOGETHER = 4,
    GROUP = 16,
    EMPTY_ROWS = 4
};
static_assert((int)QUAD_ENTRIES == (int)warp_lanes, "an entry for each lane, and a word of bits for a quad");

/* The rows that have entries, by rank, and their ends. */
struct structure {
    int64_t rows, nnz, tiles;
    const void *row_ptr;
    bool wide_offsets;
    uint32_t *ends;  /* of a quad: a bit for each entry that is the last one of its row */
    int32_t *rank;   /* of a quad: of the row that its first entry is in */
    int32_t *origin; /* of a tile: the tile in which this row begins */
    int32_t *row;    /* by rank; NULL: all rows have entries */
    int32_t *empty;  /* the other rows */
    int64_t empties;

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

__global__ void __launch_bounds__(THREADS) find_origins(structure s)
{
    const int64_t tile = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (tile < s.tiles)
        s.origin[tile] = (int32_t)(s.offset(s.row_of(s.rank[tile * QUADS])) / TILE);
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
    uint64_t *parts;              /* of a tile's column: the part of the row that goes on, in words with a status */
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

/* Words of a pack's part, each 32 bits of it beside a status: 0 before it is published and after it is taken. */
template <typename T, int PACK> struct part_words {
    static constexpr int EACH = (int)(sizeof(T) / sizeof(uint32_t)), COUNT = EACH * PACK;

    static __device__ void publish(uint64_t *at, const pack<T, PACK> &part)
    {
        uint32_t half[COUNT];
        memcpy(half, part.at, sizeof half);
#pragma unroll
        for (int w = 0; w < COUNT; w++)
            store_relaxed(at + w, (uint64_t)1 << 32 | half[w]);
    }

    /* Calls add(part) for `count` parts, `apart` words from each other, as soon as they are there. */
    template <typename Add> static __device__ void take(uint64_t *at, int64_t apart, int64_t count, const Add &add)
    {
        constexpr int BATCH = COUNT > 4 ? 1 : 2; /* parts that are loaded together */
#pragma unroll 1
        for (int64_t begin = 0; begin < count; begin += BATCH) {
            uint64_t word[BATCH][COUNT];
            bool there;
            do {
                there = true;
#pragma unroll
                for (int i = 0; i < BATCH; i++)
#pragma unroll
                    for (int w = 0; w < COUNT; w++)
                        word[i][w] = begin + i < count ? load_relaxed(at + (begin + i) * apart + w) : (uint64_t)1 << 32;
#pragma unroll
                for (int i = 0; i < BATCH; i++)
#pragma unroll
                    for (int w = 0; w < COUNT; w++)
                        there = there && word[i][w] >> 32 != 0;
            } while (!there);
#pragma unroll
            for (int i = 0; i < BATCH; i++)
                if (begin + i < count) {
                    uint32_t half[COUNT];
                    pack<T, PACK> part;
#pragma unroll
                    for (int w = 0; w < COUNT; w++) {
                        half[w] = (uint32_t)word[i][w];
                        store_relaxed(at + (begin + i) * apart + w, (uint64_t)0);
                    }
                    memcpy(part.at, half, sizeof half);
                    add(part);
                }
        }
    }
};

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

/* What a block knows after its octets: by quads what goes on after the last end of a row, or all, and whether a row
 * ends. */
template <typename T, int PACK> struct block_parts {
    const pack<T, PACK> *outs;
    const bool *ends_row;
    uint64_t *parts;                /* of the thread's column in tile 0 */
    int64_t tile_words, first_tile; /* from a tile to the next in parts; of the block */
    int lanes_log, in_columns;

    /* The row in progress after the quads of a tile before `end`. */
    __device__ in_order<T, PACK> up_to(int end) const
    {
        in_order<T, PACK> all = {};
#pragma unroll 1
        for (int q = (end - 1) / QUADS * QUADS; q < end; q++)
            all.add(outs[(q << lanes_log) + in_columns], ends_row[q]);
        return all;
    }

    /* The sum of the tiles of a row from this one on, before `end`. */
    __device__ pack<T, PACK> added(int64_t from, int64_t end) const
    {
        pack<T, PACK> sum = {};
        const int64_t published = end < first_tile ? end : first_tile;
        part_words<T, PACK>::take(parts + from * tile_words, tile_words, published - from,
                                  [&](const pack<T, PACK> &part) { sum.add(part); });
#pragma unroll 1
        for (int64_t t = from < first_tile ? first_tile : from; t < end; t++)
            sum.add(up_to((int)(t - first_tile + 1) * QUADS).sum);
        return sum;
    }
};

/* Blocks that a multiprocessor has at once, so that no registers are spilled. */
template <typename T, int PACK> constexpr int resident()
{
    return sizeof(T) == 4 && PACK <= 4 ? 7 : sizeof(T) * PACK <= 16 ? 6 : 4;
}

/* SEVERAL: a warp has whole quads, an octet for each subwarp. Otherwise it has one quad, in rounds. */
template <int PACK, bool SEVERAL, typename T, typename Stored, typename Element>
__global__ void __launch_bounds__(THREADS, resident<T, PACK>()) multiply(job<T, Stored, Element> j)
{
    /* By quads of the block: what goes on after the last end of a row, or all; and whether a row ends. */
    __shared__ pack<T, PACK> outs[THREADS];
    /* The thread's part of the row that ends first in the quad, without earlier quads. */
    __shared__ pack<T, PACK> firsts[THREADS];
    __shared__ bool ends_row[THREADS / QUAD], open; /* open: a row goes on after the block */
    const structure &p = j.p;
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    const int lanes = 1 << j.lanes_log, slots = warp_lanes >> j.lanes_log, slot = lane >> j.lanes_log;
    const int together = SEVERAL ? (int)QUAD : slots; /* octets of a quad at once */
    const int within = slot & (together - 1), quads_of_warp = SEVERAL ? slots / QUAD : 1;
    const int quad = warp * quads_of_warp + slot / together, quads = THREADS / warp_lanes * quads_of_warp;
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
    const int64_t first_quad = (int64_t)block * quads, number = first_quad + quad; /* of the quad */
    const int64_t first_tile = first_quad / QUADS, tile = number / QUADS;
    const bool there = number * QUAD_ENTRIES < p.nnz;
    const uint32_t ends = there ? load_once(p.ends + number) : 0;
    const int32_t rank = there ? load_once(p.rank + number) : 0;
    const char *const x = settled((const char *)(j.x + (mine ? column : 0)));
    const auto put = [&](int32_t of_rank, const pack<T, PACK> &sum) {
        if (mine)
            store_row(j.s, sum, j.y + p.row_of(of_rank) * j.y_stride + column);
    };
    /* The lane's entry of the quad. */
    int32_t my_col = 0;
    T my_val = {};
    if constexpr (!SEVERAL) {
        const int64_t entry = number * QUAD_ENTRIES + lane;
        if (entry < p.nnz) {
            my_col = load_once(j.col + entry);
            my_val = j.val != nullptr ? T(load_once((const whole<Stored> *)(j.val + entry)).element) : real_value<T>(1);
        }
    }
    pack<T, PACK> carry = {};
    bool has_first = false;
#pragma unroll 1
    for (int begin = 0; begin < QUAD; begin += together) {
        const int octet = begin + within; /* of the quad */
        const int64_t entry = number * QUAD_ENTRIES + octet * OCTET;
        const unsigned before = ends & ((1u << (octet * OCTET)) - 1); /* ends of rows in earlier octets */
        const unsigned own = ends >> (octet * OCTET) & ((1u << OCTET) - 1);
        int32_t now = rank + __popc(before);
        pack<T, PACK> sum = {}, head = {};
        few<int32_t, OCTET> cols;
        if constexpr (SEVERAL)
            cols = load_items<OCTET>(j.col, entry, p.nnz, j.whole, 0);
        bool seen = false;
#pragma unroll
        for (int half = 0; half < OCTET; half += TOGETHER) {
            row_pack<T, Element, PACK> rows[TOGETHER];
            T val[TOGETHER];
#pragma unroll
            for (int u = 0; u < TOGETHER; u++) {
                int32_t col;
                if constexpr (SEVERAL)
                    col = cols.at[half + u];
                else
                    col = __shfl_sync(0xffffffffu, my_col, octet * OCTET + half + u);
                rows[u] = *(const row_pack<T, Element, PACK> *)in_global(x + (uint64_t)(uint32_t)col * j.x_row_bytes);
            }
            if constexpr (SEVERAL) {
                few<Stored, TOGETHER> stored;
                if (j.val != nullptr)
                    stored = load_items<TOGETHER>(j.val, entry + half, p.nnz, j.whole, real_value<Stored>(0));
#pragma unroll
                for (int u = 0; u < TOGETHER; u++)
                    val[u] = j.val != nullptr ? T(stored.at[u]) : real_value<T>(1);
            } else {
#pragma unroll
                for (int u = 0; u < TOGETHER; u++)
                    val[u] = shuffle_by(
                        my_val, [&](auto word) { return __shfl_sync(0xffffffffu, word, octet * OCTET + half + u); });
            }
            const unsigned of_half = own >> half & ((1u << TOGETHER) - 1);
#pragma unroll
            for (int u = 0; u < TOGETHER; u++) {
                sum.add(val[u], rows[u]);
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
        pack<T, PACK> out = sum, arrived = carry;
        if (within == 0 && !seen) {
            out = carry;
            out.add(sum);
        }
#pragma unroll 1
        for (int step = 1; step < together; step++) {
            pack<T, PACK> from_before;
#pragma unroll
            for (int i = 0; i < PACK; i++)
                from_before.at[i] = shuffle_up(out.at[i], lanes);
            if (within == step) {
                arrived = from_before;
                if (!seen) {
                    out = arrived;
                    out.add(sum);
                }
            }
        }
        if (seen) {
            arrived.add(head);
            if (before == 0) {
                firsts[threadIdx.x] = arrived;
                has_first = true;
            } else {
                put(rank + __popc(before), arrived);
            }
        }
#pragma unroll
        for (int i = 0; i < PACK; i++)
            carry.at[i] = shuffle_by(out.at[i], [&](auto word) {
                return __shfl_sync(0xffffffffu, word, ((slot | (together - 1)) << j.lanes_log) + in_columns);
            });
    }
    if (within == 0)
        outs[(quad << j.lanes_log) + in_columns] = carry;
    if (within == 0 && in_columns == 0) {
        ends_row[quad] = ends != 0;
        if (quad == quads - 1)
            open = (number + 1) * QUAD_ENTRIES < p.nnz && ends >> (QUAD_ENTRIES - 1) == 0;
    }
    __syncthreads();
    constexpr int EACH = part_words<T, PACK>::EACH;
    const block_parts<T, PACK> all = {
        outs, ends_row, j.parts + column * EACH, (int64_t)j.columns * EACH, first_tile, j.lanes_log, in_columns};
    if (open && mine && within == 0 && quad % QUADS == QUADS - 1) {
        bool goes_on = true; /* to the end of the block */
        for (int q = quad + 1; q < quads; q++)
            goes_on = goes_on && !ends_row[q];
        /* The last tile of a group publishes the sum of the group, and takes the others. */
        const in_order<T, PACK> own = all.up_to(quad + 1);
        const int64_t origin = own.ended ? tile : p.origin[tile], last = tile + GROUP - 1 - (tile - origin) % GROUP;
        if (goes_on && (last == tile || last >= first_tile + quads / QUADS)) {
            pack<T, PACK> part = {};
            if (last == tile)
                part = all.added(tile - (GROUP - 1), tile);
            part.add(own.sum);
            part_words<T, PACK>::publish(all.parts + tile * all.tile_words, part);
        }
    }
    if (!has_first || !mine)
        return;
    in_order<T, PACK> in_tile = {};
    if (quad % QUADS > 0)
        in_tile = all.up_to(quad);
    in_tile.sum.add(firsts[threadIdx.x]);
    const int64_t origin = p.origin[tile];
    if (!in_tile.ended && origin < tile) {
        pack<T, PACK> before = {};
        const int64_t groups = origin < first_tile ? (first_tile - origin) / GROUP : 0;
        part_words<T, PACK>::take(all.parts + (origin + GROUP - 1) * all.tile_words, GROUP * all.tile_words, groups,
                                  [&](const pack<T, PACK> &part) { before.add(part); });
        for (int64_t t = origin + groups * GROUP; t < tile; t += GROUP)
            before.add(all.added(t, t + GROUP < tile ? t + GROUP : tile));
        before.add(in_tile.sum);
        in_tile.sum = before;
    }
    put(rank, in_tile.sum);
}

} // namespace wide

#endif
