/* Packs rows into the tiles of rung 4, on the device: from row offsets to a table of tiles.
 *
 * Greedy packing is sequential: a tile takes rows while it has room, so its end determines the next
 * begin. Therefore the rows are cut into chunks of about CHUNK_TILES tiles' work, which blocks
 * pack in parallel. A warp finds the end of a tile by a search with 32 probes a step. The cost is
 * the unused room in the last tile of each chunk, on average half a tile in CHUNK_TILES.
 *
 * pack      one block a chunk: finds the starts of its tiles from offsets in shared memory;
 *           passes the numbers of tiles, long rows and nodes on by look-back; writes
 *           its part of the table
 * measure   other blocks of the same launch: the longest row and the number of empty ones
 * narrow    writes 16-bit columns for the tiles whose columns span less than 2^16 or lie in a few
 *           ranges
 *
 * All of it is queued before the host waits once, for `statistics`. Therefore memory is allocated
 * for most_tiles, the largest possible number.
 *
 * For the cut into chunks, a row counts as its nonzeros + WEIGHT, so that empty rows are
 * distributed too. A tile has room for CAPACITY nonzeros from the multiple of LINE at or before its
 * first, and for ROWS rows (EMPTY_ROWS if all are empty). A row that is too long for a tile becomes
 * as many fragments as needed. Each cut depends on the offsets and the shape alone.
 *
 * Ranks: the cut must not depend on which rows a rank has. So the rows of each chunk of the ranks (struct
 * plan_ranks) are packed by themselves, in parts of equal work in place of chunks of the packing, and the room of a
 * tile counts from its first nonzero: CAPACITY less a line, which fits wherever the tile lies in memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_PLAN_CUH
#define SPMV_4_TILES_PLAN_CUH

#include "device/lookback.cuh"
#include "product/cuda/spmv_types.cuh"
#include "product/cuda/tiles/spmv_4_tiles.cuh"

namespace tiles
{

/* Threads of a block that packs or measures, and of one that narrows. */
enum {
    PACK_THREADS = 256,
    PACK_WARPS = PACK_THREADS / warp_lanes,
    PLAN_THREADS = 128,
    PLAN_WARPS = PLAN_THREADS / warp_lanes
};

enum { SHIFTS = 6 };

/* Counts of the packing; nodes: of the trees that add the fragments of long rows. */
struct packed_counts {
    int32_t tiles, long_rows, nodes;
};

struct add_packed {
    using type = packed_counts;
    __device__ packed_counts operator()(packed_counts a, packed_counts b) const
    {
        return {a.tiles + b.tiles, a.long_rows + b.long_rows, a.nodes + b.nodes};
    }
    static __device__ packed_counts identity()
    {
        return {0, 0, 0};
    }
};

/* The statistics that the host reads; all 0 at first. */
struct statistics {
    unsigned long long longest, empty_rows;
    /* Tiles with nonzeros; those of them with 16-bit columns; those of them with several column
     * ranges. */
    unsigned long long filled, narrow, ranged;
    unsigned long long by_shift[SHIFTS];
    packed_counts packed;
    int ticket; /* of the chunks */
};

/* Rows that are packed together for ranks: they begin at `first`, or at the first row in [first, end) with this
 * work before it. */
struct rank_part {
    int64_t first, end, work; /* nonzeros and WEIGHT for each row */
    bool at_first;
};

template <typename Shape, typename Offset> struct packing {
    using shape = Shape;
    enum {
        CAPACITY = Shape::CAPACITY,
        LINE = Shape::LINE,
        ROWS = Shape::ROWS,
        EMPTY_ROWS = Shape::EMPTY_ROWS,
        WEIGHT = CAPACITY / ROWS,
        CHUNK = Shape::CHUNK_TILES * CAPACITY,
        /* The largest number of tiles and long rows that begin in a chunk. Two in a row hold more
         * work than a tile's room less a line, whatever ended the first; all but the chunk's last
         * row hold less than the chunk. */
        CHUNK_MOST = 2 * Shape::CHUNK_TILES + 8,
    };
    static_assert((CHUNK_MOST - 4) * (CAPACITY - LINE) >= 2 * CHUNK, "room for all that begin in a chunk");
    static_assert((int)CHUNK_MOST <= (int)PACK_THREADS, "a thread each");

    const Offset *row_ptr;
    int64_t rows, nnz, chunks;
    const rank_part *parts; /* for ranks, a part for each chunk of the packing; NULL: none */

    static int64_t chunks_for(int64_t rows, int64_t nnz)
    {
        const int64_t work = nnz + rows * WEIGHT;
        return work / CHUNK + (work % CHUNK != 0);
    }

    /* The largest number of rows longer than a tile: each holds more than a tile's room less a
     * line. */
    int64_t most_long_rows() const
    {
        return nnz / (CAPACITY - LINE);
    }

    /* The largest number of tiles. Of what begins in a chunk, counting a long row as one, two in
     * a row hold more work than a tile's room less a line. A long row of n nonzeros has at most (n
     * + LINE - 2) / CAPACITY fragments more, which is at most n / (CAPACITY - LINE), since n >
     * CAPACITY - LINE. */
    int64_t most_tiles() const
    {
        return 2 * ((nnz + rows * WEIGHT) / (CAPACITY - LINE) + chunks + 1) + most_long_rows();
    }

    __device__ int64_t offset(int64_t row) const
    {
        return (int64_t)row_ptr[row];
    }

    /* The distance from base to the start of the row, limited to FAR, which lies after all that
     * begins in a chunk. */
    enum { FAR = 1 << 30 };
    static_assert(FAR > 2 * CHUNK + CAPACITY, "a chunk's rows and a tile behind them");
    __device__ int32_t distance(int64_t base, int64_t row) const
    {
        const int64_t behind = offset(row) - base;
        return behind < FAR ? (int32_t)behind : (int32_t)FAR;
    }

    /* The room of a tile, and the position from which a tile that begins at this nonzero counts. */
    __device__ int room() const
    {
        return parts != nullptr ? (int)CAPACITY - (int)LINE : (int)CAPACITY;
    }

    template <typename Place> __device__ Place counts_from(Place nonzero) const
    {
        return parts != nullptr ? nonzero : nonzero & ~(Place)(LINE - 1);
    }

    __device__ int64_t line_of(int64_t row) const
    {
        return offset(row) & ~(int64_t)(LINE - 1);
    }

    __device__ bool is_long(int64_t row) const
    {
        return offset(row + 1) - counts_from(offset(row)) > room();
    }

    __device__ int fragments(int64_t row) const
    {
        return (int)((offset(row + 1) - counts_from(offset(row)) + room() - 1) / room());
    }
};

/* The last r in [low, high] for which holds(r) is true. holds must be true for low, and false for
 * all rows after the first false one. Called by a warp. */
template <typename Row, typename Holds> __device__ Row last_row(Row low, Row high, const Holds &holds)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    while (low < high) {
        const Row step = ((high - low - 1) >> 5) + 1, row = low + (lane + 1) * step;
        const unsigned yes = __ballot_sync(0xffffffffu, row <= high && holds(row));
        low += __popc(yes) * step;
        high = low + step - 1 < high ? low + step - 1 : high;
    }
    return low;
}

/* The first row of a chunk; `rows` after the last chunk. Called by a warp. */
template <typename Packing> __device__ int64_t chunk_begin(const Packing &p, int64_t chunk)
{
    if (chunk == 0 || chunk >= p.chunks)
        return chunk == 0 ? 0 : p.rows;
    if (p.parts != nullptr) {
        const rank_part part = p.parts[chunk];
        return part.at_first ? part.first : last_row(part.first, part.end - 1, [&](int64_t row) {
                                                return p.offset(row) + row * Packing::WEIGHT < part.work;
                                            }) + 1;
    }
    const int64_t wanted = chunk * Packing::CHUNK;
    /* The row after the last one before `wanted`; row 0 is before it. */
    return last_row((int64_t)0, p.rows - 1,
                    [&](int64_t row) { return p.offset(row) + row * Packing::WEIGHT < wanted; }) +
           1;
}

/* Measures the lengths of all rows; called by block number `block` of `blocks`. */
template <typename Offset>
__device__ void measure(const Offset *row_ptr, int64_t rows, int64_t block, int64_t blocks, statistics *s)
{
    __shared__ unsigned long long longest_of[PACK_WARPS], empty_of[PACK_WARPS];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    unsigned long long longest = 0, empty = 0;
#pragma unroll 4
    for (int64_t row = block * PACK_THREADS + threadIdx.x; row < rows; row += blocks * PACK_THREADS) {
        const unsigned long long length = (unsigned long long)(row_ptr[row + 1] - row_ptr[row]);
        longest = length > longest ? length : longest;
        empty += length == 0;
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const unsigned long long other = __shfl_down_sync(0xffffffffu, longest, (unsigned)distance);
        longest = other > longest ? other : longest;
        empty += __shfl_down_sync(0xffffffffu, empty, (unsigned)distance);
    }
    if (lane == 0) {
        longest_of[warp] = longest;
        empty_of[warp] = empty;
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int w = 1; w < PACK_WARPS; w++) {
        longest = longest_of[w] > longest ? longest_of[w] : longest;
        empty += empty_of[w];
    }
    atomicMax(&s->longest, longest);
    if (empty > 0)
        atomicAdd(&s->empty_rows, empty);
}

/* A chunk in a block's shared memory. */
template <typename Packing> struct chunk_rows {
    enum {
        WINDOW = 4096, /* rows whose offsets are loaded at once */
        /* Rows that a tile can see in the window. For more rows, offsets are read from global
         * memory. */
        AHEAD = Packing::ROWS < WINDOW / 2 ? (int)Packing::ROWS : WINDOW / 2,
    };
    int64_t first, behind; /* its first row, and that of the next chunk */
    int row;               /* where the next tile begins, counted from the first row */
    int begins;            /* tiles that begin here; a long row counts as one */
    packed_counts all;
    int at[Packing::CHUNK_MOST]; /* where each begins, counted from the first row */
    packed_counts before[Packing::CHUNK_MOST];
    int32_t near[WINDOW + 1]; /* offsets, counted from the line of the chunk's first */
};

/* Cuts tiles while the window, `count` offsets from row `from` on, shows enough rows. Called by a
 * warp. */
template <typename Packing>
__device__ void take_tiles(const Packing &p, int from, int count, int rows, int64_t base, chunk_rows<Packing> *s)
{
    const bool writes = threadIdx.x % warp_lanes == 0, to_the_end = from + count > rows;
    const int64_t first = s->first;
    const auto near = [=](int row) { return s->near[row - from]; };
    const auto anywhere = [=](int row) { return row - from < count ? near(row) : p.distance(base, first + row); };
    packed_counts all = s->all;
    int row = from, begins = s->begins;
    while (row < rows && begins < Packing::CHUNK_MOST && (to_the_end || row + s->AHEAD < from + count)) {
        const int begin = near(row), room = p.counts_from(begin) + p.room();
        const int most = row + Packing::ROWS < rows ? row + Packing::ROWS : rows;
        int end = 0;
        if constexpr ((int)Packing::ROWS <= (int)chunk_rows<Packing>::AHEAD)
            end = last_row(row, most, [=](int r) { return near(r) <= room; });
        else
            end = last_row(row, most, [=](int r) { return anywhere(r) <= room; });
        if (writes) {
            s->at[begins] = row;
            s->before[begins] = all;
        }
        begins++;
        if (end == row) {
            const int fragments = p.fragments(first + row);
            all = add_packed()(all, {fragments, 1, (fragments - 1) / FAN_IN + 1});
            end = row + 1;
        } else {
            all.tiles++;
            if (end == most && anywhere(end) == begin) {
                const int limit = row + Packing::EMPTY_ROWS < rows ? row + Packing::EMPTY_ROWS : rows;
                end = last_row(end, limit, [=](int r) { return anywhere(r) == begin; });
            }
        }
        row = end;
    }
    __syncwarp();
    if (writes) {
        s->row = begins < Packing::CHUNK_MOST ? row : rows;
        s->begins = begins;
        s->all = all;
    }
}

/* Finds the starts of a chunk's tiles. Called by a block. */
template <typename Packing> __device__ void pack_chunk(const Packing &p, int64_t chunk, chunk_rows<Packing> *s)
{
    const int thread = (int)threadIdx.x, warp = thread / warp_lanes;
    if (warp < 2) {
        const int64_t begin = chunk_begin(p, chunk + warp);
        if (thread % warp_lanes == 0)
            *(warp == 0 ? &s->first : &s->behind) = begin;
    }
    if (thread == 0) {
        s->row = s->begins = 0;
        s->all = add_packed::identity();
    }
    __syncthreads();
    const int rows = (int)(s->behind - s->first);
    const int64_t first = s->first, base = p.line_of(first);
    for (int from = 0; from < rows; from = s->row) {
        const int count = rows - from < s->WINDOW ? rows - from + 1 : s->WINDOW + 1;
#pragma unroll 16
        for (int i = thread; i < count; i += PACK_THREADS)
            s->near[i] = p.distance(base, first + from + i);
        __syncthreads();
        if (warp == 0)
            take_tiles(p, from, count, rows, base, s);
        __syncthreads();
    }
}

/* log2 of the lanes that sum a row: as many lanes as let all rows of a tile be summed at once. */
template <typename Shape> __device__ int shift_for(int64_t rows)
{
    int shift = 0;
    while (shift < SHIFTS - 1 && rows * (2 << shift) <= Shape::BLOCK)
        shift++;
    return shift;
}

/* The tile or long row of a packed chunk that a thread writes. */
struct packed_tile {
    bool is_whole, is_long;
    int64_t row, begin, end, rows;
    int fragments;
    packed_counts before; /* in the chunk */
};

template <typename Packing> __device__ packed_tile packed_tile_of(const Packing &p, const chunk_rows<Packing> &s)
{
    const int i = (int)threadIdx.x;
    packed_tile t = {};
    if (i >= s.begins)
        return t;
    const int64_t behind = i + 1 < s.begins ? s.first + s.at[i + 1] : s.behind;
    t.row = s.first + s.at[i];
    t.rows = behind - t.row;
    t.begin = p.offset(t.row);
    t.end = p.offset(behind);
    t.is_long = p.is_long(t.row);
    t.is_whole = !t.is_long;
    t.fragments = t.is_long ? p.fragments(t.row) : 0;
    t.before = s.before[i];
    return t;
}

/* Writes the tiles and long rows of a chunk. before: the counts before the chunk. Called by a
 * block. */
template <typename Packing>
__device__ void fill(const Packing &p, const packed_tile &t, packed_counts before, tile *table, long_row *long_rows,
                     statistics *s)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const packed_counts at = add_packed()(before, t.before);
    const bool filled = t.is_whole && t.end > t.begin;
    const int shift = t.is_whole ? shift_for<typename Packing::shape>(t.rows) : 0;
    if (t.is_whole)
        table[at.tiles] = {t.begin, t.row, -1, -1, shift, 0};
    if (t.is_long)
        long_rows[at.long_rows] = {t.row, at.tiles, t.fragments, at.nodes};
#pragma unroll
    for (int k = 0; k < SHIFTS; k++) {
        const int count = __popc(__ballot_sync(0xffffffffu, filled && shift == k));
        if (lane == 0 && count > 0)
            atomicAdd(&s->by_shift[k], (unsigned long long)count);
    }
    int all_filled = __popc(__ballot_sync(0xffffffffu, filled));
    for (unsigned left = __ballot_sync(0xffffffffu, t.is_long); left != 0; left &= left - 1u) {
        const int whose = __ffs((int)left) - 1; /* the warp writes the fragments of a long row */
        const int64_t row = __shfl_sync(0xffffffffu, t.row, whose), begin = __shfl_sync(0xffffffffu, t.begin, whose);
        const int first = __shfl_sync(0xffffffffu, at.tiles, whose);
        const int index = __shfl_sync(0xffffffffu, at.long_rows, whose);
        const int fragments = __shfl_sync(0xffffffffu, t.fragments, whose);
        const int64_t from = p.counts_from(begin);
        for (int fragment = lane; fragment < fragments; fragment += warp_lanes)
            table[(int64_t)first + fragment] = {
                fragment > 0 ? from + (int64_t)fragment * p.room() : begin, row, -1, index, 0, 0};
        all_filled += fragments;
    }
    if (lane == 0 && all_filled > 0)
        atomicAdd(&s->filled, (unsigned long long)all_filled);
}

/* The first blocks pack one chunk each; the others measure. */
template <typename Packing>
__global__ void __launch_bounds__(PACK_THREADS)
    pack_and_measure(Packing p, lookback_states<packed_counts> states, tile *table, long_row *long_rows, statistics *s)
{
    __shared__ chunk_rows<Packing> rows;
    __shared__ packed_counts before;
    __shared__ int drawn;
    let_next_begin();
    await_kernel_before();
    if ((int)blockIdx.x >= states.tiles) {
        measure(p.row_ptr, p.rows, (int)blockIdx.x - states.tiles, (int)gridDim.x - states.tiles, s);
        return;
    }
    const int chunk = block_draw_ticket<add_packed>(states, &drawn);
    pack_chunk(p, chunk, &rows);
    const packed_tile mine = packed_tile_of(p, rows);
    block_look_back(add_packed(), states, chunk, rows.all, false, &before, 0);
    fill(p, mine, before, table, long_rows, s);
    if (threadIdx.x == 0 && chunk == states.tiles - 1)
        table[(int64_t)before.tiles + rows.all.tiles] = {p.nnz, p.rows, NO_BASE, -1, 0, 0};
}

/* Bytes of the statistics and the look-back states of a packing, which must be cleared before. */
inline int64_t packing_bytes(int64_t chunks)
{
    return (int64_t)sizeof(statistics) + chunks * element_words<packed_counts>::count * (int64_t)sizeof(uint64_t);
}

/* Queues the packing, with an early start. Writes the table (room for most_tiles + 1), the long
 * rows (room for most_long_rows), and s (packing_bytes) except for its counts of 16-bit columns. */
template <typename Packing>
spmv_status pack(spmv_context *ctx, const char *name, const Packing &p, tile *table, long_row *long_rows, statistics *s)
{
    enum { MEASURERS = 1024 };
    const int blocks = grid_for(p.rows, PACK_THREADS * 8);
    const lookback_states<packed_counts> states = {(uint64_t *)(s + 1), &s->ticket, nullptr, &s->packed, (int)p.chunks};
    return launch_early(ctx, name, (int)p.chunks + (blocks < MEASURERS ? blocks : (int)MEASURERS), PACK_THREADS,
                        pack_and_measure<Packing>, p, states, table, long_rows, s);
}

__device__ inline int32_t warp_least(int32_t number)
{
    return __reduce_min_sync(0xffffffffu, number);
}

/* The least number of a block, for all its threads. Successive calls alternate turn between 0 and
 * 1. */
__device__ inline int32_t block_least(int32_t number, int turn)
{
    __shared__ int32_t of_warps[2][PLAN_WARPS];
    number = warp_least(number);
    if (threadIdx.x % warp_lanes == 0)
        of_warps[turn][threadIdx.x / warp_lanes] = number;
    __syncthreads();
    for (int w = 0; w < PLAN_WARPS; w++)
        number = of_warps[turn][w] < number ? of_warps[turn][w] : number;
    return number;
}

/* The columns in use in a tile, as a bitmap in shared memory: one bit for each bin of 1 << shift
 * neighbouring columns from the least on, and one bit for each word of these bits. */
struct column_bins {
    enum { WORDS = warp_lanes * warp_lanes, BIN_BITS = 6 };
    uint32_t bits[WORDS], in_use[warp_lanes];

    /* log2 of the width of the narrowest bins that cover `span` columns. If a bin would be wider
     * than RANGE columns, the tile gets no column ranges. */
    static __device__ int shift_for(int32_t span)
    {
        int shift = BIN_BITS;
        while (span >> shift >= WORDS * warp_lanes)
            shift++;
        return shift;
    }

    /* The first bin in use from `from` on; WORDS * warp_lanes if there is none. Called by a
     * warp. */
    __device__ int next(int from) const
    {
        const int lane = (int)threadIdx.x % warp_lanes, word = from / warp_lanes, place = word / warp_lanes;
        if (word >= WORDS)
            return WORDS * warp_lanes;
        const uint32_t here = bits[word] & ~0u << from % warp_lanes;
        if (here != 0)
            return word * warp_lanes + __ffs((int)here) - 1;
        const uint32_t behind = word % warp_lanes == warp_lanes - 1 ? 0 : ~0u << (word % warp_lanes + 1);
        const uint32_t mine = lane < place ? 0 : lane == place ? in_use[lane] & behind : in_use[lane];
        const unsigned lanes = __ballot_sync(0xffffffffu, mine != 0);
        if (lanes == 0)
            return WORDS * warp_lanes;
        const int in = __ffs((int)lanes) - 1;
        const int found = in * warp_lanes + __ffs(__shfl_sync(0xffffffffu, (int)mine, in)) - 1;
        return found * warp_lanes + __ffs((int)bits[found]) - 1;
    }
};

/* Finds column ranges for a tile whose columns lie from low to high. Greedy: each range begins at
 * the least bin in use that no range covers. Returns whether RANGES ranges suffice. Called by a
 * block. begins: in shared memory; NO_COLUMN after the last range. */
enum { NO_COLUMN = INT32_MAX };
template <int PARTS>
__device__ bool find_ranges(const int32_t (&column)[PARTS], int32_t low, int32_t high, int32_t *begins)
{
    __shared__ column_bins bins;
    __shared__ bool suffice;
    const int thread = (int)threadIdx.x, lane = thread % warp_lanes, shift = bins.shift_for(high - low);
    if (1 << shift > RANGE)
        return false;
    for (int i = thread; i < bins.WORDS; i += PLAN_THREADS)
        bins.bits[i] = 0;
    if (thread < warp_lanes)
        bins.in_use[thread] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PARTS; i++) { /* a run of equal bins is marked once */
        const int bin = column[i] != NO_COLUMN ? (column[i] - low) >> shift : -1;
        const int before = __shfl_up_sync(0xffffffffu, bin, 1);
        if (bin >= 0 && (lane == 0 || bin != before)) {
            atomicOr(&bins.bits[bin / warp_lanes], 1u << bin % warp_lanes);
            atomicOr(&bins.in_use[bin / warp_lanes / warp_lanes], 1u << bin / warp_lanes % warp_lanes);
        }
    }
    __syncthreads();
    if (thread < warp_lanes) {
        int bin = 0, mine = NO_COLUMN;
        for (int k = 0; k < RANGES; k++) {
            bin = bins.next(bin);
            if (bin == bins.WORDS * warp_lanes)
                break;
            if (lane == k)
                mine = low + (bin << shift);
            bin += RANGE >> shift;
        }
        begins[lane] = mine;
        bin = bins.next(bin);
        if (lane == 0)
            suffice = bin == bins.WORDS * warp_lanes;
    }
    __syncthreads();
    return suffice;
}

/* The 16-bit number of a column that lies in one of the ranges. */
__device__ inline uint16_t in_ranges(const int32_t *begins, int32_t column)
{
    int k = 0;
    for (int step = RANGES / 2; step > 0; step /= 2)
        k += begins[k + step] <= column ? step : 0;
    return (uint16_t)(k << RANGE_BITS | (column - begins[k]));
}

/* Writes the 16-bit columns of tile t, out[k] for nonzero k: relative to the least column if the
 * tile spans less than 2^16, by ranges if there are few, otherwise 0. Returns the base, IN_RANGES
 * or NO_BASE. Called by a block; a tile has at most PARTS * PLAN_THREADS nonzeros. ranges:
 * RANGES a tile; NULL: do not use ranges. */
template <int PARTS>
__device__ int32_t narrow_tile(const tile *table, int64_t t, const int32_t *col, int32_t *ranges, uint16_t *out)
{
    __shared__ int32_t begins[RANGES];
    const int64_t begin = table[t].begin, end = table[t + 1].begin;
    if (begin == end)
        return NO_BASE;
    int32_t column[PARTS], least = NO_COLUMN, above = 0;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const int64_t k = begin + i * PLAN_THREADS + threadIdx.x;
        column[i] = k < end ? col[k] : (int32_t)NO_COLUMN;
        least = column[i] < least ? column[i] : least;
        above = k < end && column[i] > above ? column[i] : above;
    }
    const int32_t low = block_least(least, 0), high = -block_least(-above, 1);
    __syncthreads();
    const bool one = high - low <= UINT16_MAX;
    const bool some = !one && ranges != nullptr && find_ranges(column, low, high, begins);
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const int64_t k = begin + i * PLAN_THREADS + threadIdx.x;
        if (k < end)
            out[k] = one ? (uint16_t)(column[i] - low) : some ? in_ranges(begins, column[i]) : (uint16_t)0;
    }
    if (some && threadIdx.x < RANGES)
        ranges[t * RANGES + threadIdx.x] = begins[threadIdx.x];
    return one ? low : some ? (int32_t)IN_RANGES : (int32_t)NO_BASE;
}

/* Each block loops over tiles. */
template <int PARTS>
__global__ void __launch_bounds__(PLAN_THREADS)
    narrow(tile *table, const int32_t *col, int32_t *ranges, uint16_t *out, statistics *s)
{
    unsigned narrow = 0, ranged = 0;
    await_kernel_before();
    const int64_t tiles = s->packed.tiles;
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int32_t base = narrow_tile<PARTS>(table, t, col, ranges, out);
        if (threadIdx.x == 0 && base != NO_BASE)
            table[t].base = base;
        narrow += base != NO_BASE;
        ranged += base == IN_RANGES;
        __syncthreads(); /* before the next tile uses shared memory */
    }
    if (threadIdx.x > 0 || narrow == 0)
        return;
    atomicAdd(&s->narrow, (unsigned long long)narrow);
    atomicAdd(&s->ranged, (unsigned long long)ranged);
}

/* The bytes of an array in a memory block, rounded up so that the next array is aligned for any
 * type. */
inline int64_t aligned(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

inline spmv_status cleared(spmv_context *ctx, void *memory, int64_t bytes)
{
    return on_device(ctx, [&] {
        return cuda_check(ctx, cudaMemsetAsync(memory, 0, (size_t)bytes, (cudaStream_t)ctx->stream),
                          "clearing a plan's memory");
    });
}

/* Allocates the sums, in the plan's type, and counters of the fragments of long rows; NULL if there
 * are no long rows. */
inline spmv_status make_sums(spmv_plan *plan, packed_counts packed, void **sums, void **counts)
{
    const int64_t sums_bytes = aligned((int64_t)packed.nodes * (FAN_IN + 1) * (int64_t)spmv_type_size(plan->sums));
    const int64_t counts_bytes = ((int64_t)packed.nodes + packed.long_rows) * (int64_t)sizeof(unsigned);
    if (packed.long_rows == 0)
        return SPMV_OK;
    const spmv_status st = plan_alloc(plan, sums_bytes + counts_bytes, sums);
    if (st != SPMV_OK)
        return st;
    *counts = (char *)*sums + sums_bytes;
    return cleared(plan->ctx, *counts, counts_bytes);
}

/* The share of a matrix of `stream` bytes that the last-level cache retains between products.
 * RETAINED_PERCENT of the cache hold this share and the vectors. The share is 0 if less than an
 * eighth of the matrix fits, or if the matrix is larger than LARGEST_PERCENT of the cache. Without
 * the vectors in the account, matrices with long vectors become slower. */
inline float retained_share(const spmv_plan *plan, double stream)
{
    enum { RETAINED_PERCENT = 40, LARGEST_PERCENT = 220 };
    const double cache = (double)((const cuda_state *)plan->ctx->device)->cache_bytes;
    const double vectors = ((double)plan->a.rows + (double)plan->a.cols) * (double)spmv_type_size(plan->type);
    const double room = cache * RETAINED_PERCENT / 100 - vectors;
    if (8 * room < stream || stream > cache * LARGEST_PERCENT / 100)
        return 0.0f;
    return stream <= room ? 1.0f : (float)(room / stream);
}

} // namespace tiles

#endif
