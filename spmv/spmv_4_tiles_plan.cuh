/* How rows are packed into the tiles of rung 4, on the device: from offsets to a table of tiles.
 *
 * Greedy packing, a tile takes rows as long as it has room, is a chain: where a tile begins follows from where the one
 * before ended. So the rows are cut into segments of about SEGMENT_TILES tiles' work, each of which a warp packs by
 * itself, all at once: the end of a tile is found by a search in which 32 lanes look at 32 rows at a time. What that
 * costs is the room left in the last tile of each segment, half a tile in SEGMENT_TILES on average.
 *
 *   measure   the lengths of the rows: the longest, the empty ones; in the same launch:
 *   pack      where the tiles of each segment begin, and how many tiles, long rows and groups of pieces there are
 *   (scan)    how many stand before each segment
 *   fill      the table, and the sums: how many tiles there are
 *   narrow    in 16 bits the columns of the tiles in which they lie less than 2^16 apart or in a few stretches
 *
 * The host waits once, for the numbers in `statistics`, when all is queued: memory is there for as many tiles as there
 * can be (most_tiles).
 *
 * Row r counts as its nonzeros + WEIGHT for the cut into segments, so that empty rows are shared out too. A tile has
 * room for CAPACITY nonzeros from the multiple of LINE at or before its first, and ROWS rows (EMPTY_ROWS if all are
 * empty); a row that alone is too long becomes as many pieces as it needs. Every cut is a function of the offsets and
 * the shape.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_PLAN_CUH
#define SPMV_4_TILES_PLAN_CUH

#include "spmv_4_tiles.cuh"

namespace tiles
{

enum { PLAN_THREADS = 128, PLAN_WARPS = PLAN_THREADS / WARP, SHIFTS = 6 };

/* What the host learns. */
struct statistics {
    unsigned long long longest, empty_rows;
    unsigned long long tiles, long_rows, groups;
    /* tiles with nonzeros; those of them with columns in one stretch or a few; in a few */
    unsigned long long filled, narrow, stretched;
    unsigned long long by_shift[SHIFTS];
};

template <typename Shape, typename Offset> struct packing {
    using shape = Shape;
    using offset_type = Offset;
    enum {
        CAPACITY = Shape::CAPACITY,
        LINE = Shape::LINE,
        ROWS = Shape::ROWS,
        EMPTY_ROWS = Shape::EMPTY_ROWS,
        WEIGHT = CAPACITY / ROWS,
        SEGMENT = Shape::SEGMENT_TILES * CAPACITY,
        /* Tiles and long rows that can begin in a segment. Two in a row hold more work than a tile's room less a line,
         * whatever ended the first; all but the segment's last row hold less than the segment. */
        SEGMENT_MOST = 2 * Shape::SEGMENT_TILES + 8,
    };
    static_assert((SEGMENT_MOST - 4) * (CAPACITY - LINE) >= 2 * SEGMENT, "room for all that begin in a segment");

    const Offset *row_ptr;
    int64_t rows, nnz, segments;

    static int64_t segments_for(int64_t rows, int64_t nnz)
    {
        const int64_t work = nnz + rows * WEIGHT;
        return work / SEGMENT + (work % SEGMENT != 0);
    }

    /* Rows longer than a tile: each holds more than a tile's room less a line. */
    int64_t most_long_rows() const
    {
        return nnz / (CAPACITY - LINE);
    }

    /* Tiles. Of what begins in a segment, a long row as one, two in a row hold more work than a tile's room less a
     * line. A long row of n nonzeros has (n + LINE - 2) / CAPACITY pieces more at most, which is n / (CAPACITY - LINE)
     * or less, since n > CAPACITY - LINE. */
    int64_t most_tiles() const
    {
        return 2 * ((nnz + rows * WEIGHT) / (CAPACITY - LINE) + segments + 1) + most_long_rows();
    }

    __device__ int64_t offset(int64_t row) const
    {
        return (int64_t)row_ptr[row];
    }

    /* From where a tile that begins at row counts its nonzeros. */
    __device__ int64_t line_of(int64_t row) const
    {
        return offset(row) & ~(int64_t)(LINE - 1);
    }

    __device__ bool is_long(int64_t row) const
    {
        return offset(row + 1) - line_of(row) > CAPACITY;
    }

    __device__ int pieces(int64_t row) const
    {
        return (int)((offset(row + 1) - line_of(row) + CAPACITY - 1) / CAPACITY);
    }
};

/* The last r in [low, high] for which holds(r), given that it holds for low and for no row after one for which it does
 * not. A warp. */
template <typename Holds> __device__ int64_t last_row(int64_t low, int64_t high, const Holds &holds)
{
    const int lane = (int)threadIdx.x % WARP;
    while (low < high) {
        const int64_t step = (high - low + WARP - 1) / WARP, row = low + (lane + 1) * step;
        const unsigned yes = __ballot_sync(0xffffffffu, row <= high && holds(row));
        low += __popc(yes) * step;
        high = low + step - 1 < high ? low + step - 1 : high;
    }
    return low;
}

/* The first row of a segment; `rows` behind the last. A warp. */
template <typename Packing> __device__ int64_t segment_begin(const Packing &p, int64_t segment)
{
    if (segment == 0 || segment >= p.segments)
        return segment == 0 ? 0 : p.rows;
    const int64_t wanted = segment * Packing::SEGMENT;
    /* the last row before it, and one on: row 0 is before it */
    return last_row(0, p.rows - 1, [&](int64_t row) { return p.offset(row) + row * Packing::WEIGHT < wanted; }) + 1;
}

/* The lengths of all rows; block number `block` of `blocks`. */
template <typename Offset>
__device__ void measure(const Offset *row_ptr, int64_t rows, int64_t block, int64_t blocks, statistics *s)
{
    unsigned long long longest = 0, empty = 0;
    for (int64_t row = block * PLAN_THREADS + threadIdx.x; row < rows; row += blocks * PLAN_THREADS) {
        const unsigned long long length = (unsigned long long)(row_ptr[row + 1] - row_ptr[row]);
        longest = length > longest ? length : longest;
        empty += length == 0;
    }
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const unsigned long long other = __shfl_down_sync(0xffffffffu, longest, (unsigned)distance);
        longest = other > longest ? other : longest;
        empty += __shfl_down_sync(0xffffffffu, empty, (unsigned)distance);
    }
    if (threadIdx.x % WARP == 0) {
        atomicMax(&s->longest, longest);
        atomicAdd(&s->empty_rows, empty);
    }
}

/* What pack finds: of each segment its first row, how many tiles begin in it (a long row as one), where each does,
 * counted from the first row; and in counts, three times segments + 1 numbers, its tiles, long rows and groups. */
struct packed_rows {
    int64_t *first_row;
    int32_t *begins, *at; /* at: SEGMENT_MOST a segment */
    int64_t *counts;
};

/* A warp. */
template <typename Packing> __device__ void pack_segment(const Packing &p, int64_t segment, const packed_rows &out)
{
    const bool writes = threadIdx.x % WARP == 0;
    const int64_t first = segment_begin(p, segment), behind = segment_begin(p, segment + 1);
    int64_t tiles = 0, long_rows = 0, groups = 0;
    int begins = 0;
    for (int64_t row = first; row < behind && begins < Packing::SEGMENT_MOST; begins++) {
        const int64_t room = p.line_of(row) + Packing::CAPACITY, begin = p.offset(row);
        const int64_t most = row + Packing::ROWS < behind ? row + Packing::ROWS : behind;
        int64_t end = last_row(row, most, [&](int64_t r) { return p.offset(r) <= room; });
        if (writes)
            out.at[segment * Packing::SEGMENT_MOST + begins] = (int32_t)(row - first);
        if (end == row) {
            const int pieces = p.pieces(row);
            tiles += pieces;
            groups += (pieces - 1) / GROUP + 1;
            long_rows++;
            end = row + 1;
        } else {
            tiles++;
            if (end == most && p.offset(end) == begin) {
                const int64_t limit = row + Packing::EMPTY_ROWS < behind ? row + Packing::EMPTY_ROWS : behind;
                end = last_row(end, limit, [&](int64_t r) { return p.offset(r) == begin; });
            }
        }
        row = end;
    }
    if (!writes)
        return;
    if (segment < p.segments) {
        out.first_row[segment] = first;
        out.begins[segment] = begins;
    }
    out.counts[segment] = tiles;
    out.counts[p.segments + 1 + segment] = long_rows;
    out.counts[2 * (p.segments + 1) + segment] = groups;
}

/* A warp a segment, and one more. */
template <typename Packing> __device__ void pack_rows(const Packing &p, const packed_rows &out)
{
    const int64_t segment = (int64_t)blockIdx.x * PLAN_WARPS + threadIdx.x / WARP;
    if (segment <= p.segments)
        pack_segment(p, segment, out);
}

/* The first blocks, the packers, pack, the others measure. */
template <typename Packing>
__global__ void __launch_bounds__(PLAN_THREADS) pack_and_measure(Packing p, int packers, packed_rows out, statistics *s)
{
    let_next_begin();
    await_kernel_before();
    if ((int)blockIdx.x < packers)
        pack_rows(p, out);
    else
        measure(p.row_ptr, p.rows, (int)blockIdx.x - packers, (int)gridDim.x - packers, s);
}

/* counts, scanned without the element itself as one array: each third ends with a 0, where its sum now is. */
__device__ inline void total(const int64_t *counts, int64_t segments, statistics *s)
{
    const int64_t third = segments + 1;
    s->tiles = (unsigned long long)counts[segments];
    s->long_rows = (unsigned long long)(counts[third + segments] - counts[third]);
    s->groups = (unsigned long long)(counts[2 * third + segments] - counts[2 * third]);
}

/* Lanes that sum a row of a tile: as many as give each row of the tile its own at once. */
template <typename Shape> __device__ int shift_for(int64_t rows)
{
    int shift = 0;
    while (shift < SHIFTS - 1 && rows * (2 << shift) <= Shape::BLOCK)
        shift++;
    return shift;
}

template <typename Packing>
__global__ void __launch_bounds__(PLAN_THREADS)
    fill(Packing p, packed_rows in, tile *table, long_row *long_rows, statistics *s)
{
    const int64_t segment = (int64_t)blockIdx.x * PLAN_WARPS + threadIdx.x / WARP;
    const int lane = (int)threadIdx.x % WARP;
    let_next_begin();
    await_kernel_before();
    if (segment >= p.segments)
        return;
    const int64_t third = p.segments + 1;
    const int64_t first = in.first_row[segment];
    const int64_t behind = segment + 1 < p.segments ? in.first_row[segment + 1] : p.rows;
    const int32_t *const at = in.at + segment * Packing::SEGMENT_MOST;
    int64_t next_tile = in.counts[segment], next_long = in.counts[third + segment] - in.counts[third],
            next_group = in.counts[2 * third + segment] - in.counts[2 * third];
    const int begins = in.begins[segment];
    for (int from = 0; from < begins; from += WARP) {
        const int i = from + lane;
        const bool mine = i < begins;
        const int64_t row = mine ? first + at[i] : 0, end = mine ? (i + 1 < begins ? first + at[i + 1] : behind) : 0;
        const bool is_long = mine && p.is_long(row);
        const int pieces = is_long ? p.pieces(row) : 0, my_tiles = is_long ? pieces : mine;
        const int my_groups = is_long ? (pieces - 1) / GROUP + 1 : 0;
        const int through = warp_inclusive(add_counts(), my_tiles);
        const int groups_through = warp_inclusive(add_counts(), my_groups);
        const unsigned long_ones = __ballot_sync(0xffffffffu, is_long);
        const int64_t my_tile = next_tile + through - my_tiles;
        const int64_t my_group = next_group + groups_through - my_groups;
        const int my_long = (int)next_long + __popc(long_ones & ((1u << lane) - 1u));
        const int64_t nnz = mine ? p.offset(end) - p.offset(row) : 0;
        const int shift = mine && !is_long ? shift_for<typename Packing::shape>(end - row) : 0;
        const bool filled = mine && !is_long && nnz > 0;
        if (mine && !is_long)
            table[my_tile] = {p.offset(row), row, -1, -1, shift, 0};
        if (is_long)
            long_rows[my_long] = {row, my_tile, pieces, (int32_t)my_group};
#pragma unroll
        for (int k = 0; k < SHIFTS; k++) {
            const int count = __popc(__ballot_sync(0xffffffffu, filled && shift == k));
            if (lane == 0 && count > 0)
                atomicAdd(&s->by_shift[k], (unsigned long long)count);
        }
        const int all_filled = __popc(__ballot_sync(0xffffffffu, filled));
        if (lane == 0 && all_filled > 0)
            atomicAdd(&s->filled, (unsigned long long)all_filled);
        for (unsigned left = long_ones; left != 0; left &= left - 1u) { /* the warp writes a long row's pieces */
            const int whose = __ffs((int)left) - 1;
            const int64_t long_at = __shfl_sync(0xffffffffu, row, whose),
                          tile_at = __shfl_sync(0xffffffffu, my_tile, whose);
            const int count = __shfl_sync(0xffffffffu, pieces, whose), index = __shfl_sync(0xffffffffu, my_long, whose);
            const int64_t line = p.line_of(long_at);
            for (int piece = lane; piece < count; piece += WARP)
                table[tile_at + piece] = {piece > 0 ? line + (int64_t)piece * Packing::CAPACITY : p.offset(long_at),
                                          long_at,
                                          -1,
                                          index,
                                          0,
                                          0};
            if (lane == 0)
                atomicAdd(&s->filled, (unsigned long long)count);
        }
        next_tile += __shfl_sync(0xffffffffu, through, WARP - 1);
        next_group += __shfl_sync(0xffffffffu, groups_through, WARP - 1);
        next_long += __popc(long_ones);
    }
    if (segment == p.segments - 1 && lane == 0) {
        table[next_tile] = {p.nnz, p.rows, NO_BASE, -1, 0, 0};
        total(in.counts, p.segments, s);
    }
}

__device__ inline int32_t warp_least(int32_t number)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const int32_t other = __shfl_xor_sync(0xffffffffu, number, distance);
        number = other < number ? other : number;
    }
    return number;
}

/* For all threads of the block; the calls take turns with 0 and 1. */
__device__ inline int32_t block_least(int32_t number, int turn)
{
    __shared__ int32_t of_warps[2][PLAN_WARPS];
    number = warp_least(number);
    if (threadIdx.x % WARP == 0)
        of_warps[turn][threadIdx.x / WARP] = number;
    __syncthreads();
    for (int w = 0; w < PLAN_WARPS; w++)
        number = of_warps[turn][w] < number ? of_warps[turn][w] : number;
    return number;
}

/* A thread's part of some columns; NONE: no column, or one that is in a stretch already. */
template <int PARTS> struct columns_left {
    enum { NONE = INT32_MAX };
    int32_t part[PARTS];

    __device__ int32_t least() const
    {
        int32_t low = NONE;
#pragma unroll
        for (int i = 0; i < PARTS; i++)
            low = part[i] < low ? part[i] : low;
        return low;
    }

    /* Those from begin on, which is the least, are in a stretch. */
    __device__ void cover(int32_t begin)
    {
#pragma unroll
        for (int i = 0; i < PARTS; i++)
            part[i] = part[i] - begin < STRETCH ? (int32_t)NONE : part[i];
    }
};

/* Do some of the columns, two a lane, fit into STRETCHES stretches? A warp. */
__device__ inline bool some_fit(columns_left<2> left)
{
    for (int k = 0; k < STRETCHES; k++) {
        const int32_t begin = warp_least(left.least());
        if (begin == left.NONE)
            return true;
        left.cover(begin);
    }
    return warp_least(left.least()) == left.NONE;
}

/* Stretches for the columns, each from the least that is not in one yet; whether they suffice. As few as can be, and
 * fewer for some of the columns than for all: that is looked at first, since most matrices that need many fail there.
 * A block; begins in its memory. */
template <int PARTS> __device__ bool find_stretches(columns_left<PARTS> left, int32_t *begins)
{
    const bool some = threadIdx.x >= WARP || some_fit({{left.part[0], left.part[PARTS / 2]}});
    if (__syncthreads_count(some) < PLAN_THREADS)
        return false;
    for (int k = 0; k < STRETCHES; k++) {
        const int32_t begin = block_least(left.least(), k % 2);
        if (threadIdx.x == 0)
            begins[k] = begin;
        if (begin != left.NONE)
            left.cover(begin);
    }
    return block_least(left.least(), 0) == left.NONE; /* a barrier: all see begins */
}

/* The number in 16 bits of a column that lies in one of the stretches. */
__device__ inline uint16_t in_stretches(const int32_t *begins, int32_t column)
{
    int k = 0;
    for (int step = STRETCHES / 2; step > 0; step /= 2)
        k += begins[k + step] <= column ? step : 0;
    return (uint16_t)(k << STRETCH_BITS | (column - begins[k]));
}

/* Columns in 16 bits, out[k] for nonzero k: of a tile that spans no more from its least column, of one that has few
 * stretches by their numbers, elsewhere 0. A block a tile of at most PARTS * PLAN_THREADS nonzeros; blocks behind the
 * last tile have nothing to do. stretches: STRETCHES a tile; NULL: one of 2^16 or none. */
template <int PARTS>
__global__ void __launch_bounds__(PLAN_THREADS)
    narrow(tile *table, const int32_t *col, int32_t *stretches, uint16_t *out, statistics *s)
{
    __shared__ int32_t begins[STRETCHES];
    await_kernel_before();
    if (blockIdx.x >= s->tiles)
        return;
    tile *const mine = table + blockIdx.x;
    const int64_t begin = mine->begin, end = mine[1].begin;
    if (begin == end)
        return;
    columns_left<PARTS> columns;
    int32_t above = 0;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const int64_t k = begin + i * PLAN_THREADS + threadIdx.x;
        columns.part[i] = k < end ? col[k] : (int32_t)columns.NONE;
        above = k < end && columns.part[i] > above ? columns.part[i] : above;
    }
    const int32_t low = block_least(columns.least(), 0), high = -block_least(-above, 1);
    __syncthreads();
    const bool one = high - low <= UINT16_MAX, some = !one && stretches != nullptr && find_stretches(columns, begins);
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const int64_t k = begin + i * PLAN_THREADS + threadIdx.x;
        if (k < end)
            out[k] = one    ? (uint16_t)(columns.part[i] - low)
                     : some ? in_stretches(begins, columns.part[i])
                            : (uint16_t)0;
    }
    if (some && threadIdx.x < STRETCHES)
        stretches[(int64_t)blockIdx.x * STRETCHES + threadIdx.x] = begins[threadIdx.x];
    if (threadIdx.x > 0 || !(one || some))
        return;
    mine->base = one ? low : (int32_t)STRETCHED;
    atomicAdd(&s->narrow, 1ull);
    if (some)
        atomicAdd(&s->stretched, 1ull);
}

} // namespace tiles

#endif
