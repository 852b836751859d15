/* Makes the plan of groups on the device, with these kernels:
 *
 *   sample  counts rows with the columns of the row before, among SAMPLES rows
 *   count   finds the groups of each tile of TILE rows, and counts them and their columns; only if
 *           the sample shows enough equal rows
 *   write   writes the table of groups, and 16-bit columns
 *
 * A group does not cross the end of a tile. TILE is a multiple of 1 to 7, so groups of equal size
 * are not cut there. Tiles of ranks have PLAN_TILE_ROWS rows, so that groups are those of the whole matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_GROUPS_PLAN_CUH
#define PRODUCT_GROUPS_PLAN_CUH

#include "product/cuda/groups/groups.cuh"
#include "product/cuda/tiles/spmv_4_tiles_values.cuh"

namespace grouped
{

/* SUBWARP: lanes that compare a row with the row before. */
enum {
    TILE = GROUPS_TILE,
    WORDS = (TILE - 1) / 32 + 1, /* with a bit for each row */
    PLAN_THREADS = 256,
    PLAN_WARPS = PLAN_THREADS / warp_lanes,
    SUBWARP = 8,
    SUBWARPS = PLAN_THREADS / SUBWARP,
    SAMPLES = 1024,
};
static_assert(TILE <= 2 * (int)PLAN_THREADS, "two rows a thread");
static_assert((int)PLAN_TILE_ROWS <= (int)TILE, "tiles of ranks");

/* Groups, and the lengths of their rows added. */
struct counts {
    int32_t groups, columns;
};

struct add_groups {
    using type = counts;
    __device__ counts operator()(counts a, counts b) const
    {
        return {a.groups + b.groups, a.columns + b.columns};
    }
    static __device__ counts identity()
    {
        return {0, 0};
    }
};

/* The results of the kernels; all 0 before. */
struct findings {
    unsigned same;    /* of the sample: rows with the columns of the row before */
    unsigned largest; /* rows of a group, at most */
    int ticket;       /* of the tiles */
    counts all;
    unsigned long long longest, empty; /* rows */
    unsigned long long narrow;         /* groups with 16-bit columns */
};

/* The arrays for making the plan, and the rows of a tile. */
struct making {
    int tile;
    findings *found;
    lookback_states<counts> states; /* of the tiles */
    counts *before;                 /* for each tile, what the tiles before it have */
    uint32_t *begins;               /* for each tile WORDS words: the rows that begin a group */
};

/* Whether a lane of a subwarp finds a column of this row that differs from the row before, which
 * has the same length. */
__device__ inline bool differs(const int32_t *col, int64_t begin, int length)
{
    enum { AT_ONCE = 4 };
    bool found = false;
    for (int k = (int)threadIdx.x % SUBWARP; k < length && !found; k += AT_ONCE * SUBWARP) {
        int32_t mine[AT_ONCE], above[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            const bool has = k + i * SUBWARP < length;
            mine[i] = has ? col[begin + k + i * SUBWARP] : 0;
            above[i] = has ? col[begin + k + i * SUBWARP - length] : 0;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            found = found || mine[i] != above[i];
    }
    return found;
}

/* The lanes of the own subwarp in a word of a warp's lanes. */
__device__ inline unsigned subwarp_bits(unsigned lanes)
{
    return lanes >> ((int)threadIdx.x % warp_lanes / SUBWARP * SUBWARP) & ((1u << SUBWARP) - 1);
}

/* A subwarp for each sample. */
template <typename Offset>
__global__ void __launch_bounds__(PLAN_THREADS)
    sample(const Offset *row_ptr, const int32_t *col, int64_t rows, findings *found)
{
    const uint32_t number = (blockIdx.x * PLAN_THREADS + threadIdx.x) / SUBWARP;
    bool is_new = true;
    if (number < SAMPLES && rows > 1) {
        /* multiples of the golden ratio fall evenly among rows and their remainders */
        const int64_t row = 1 + (int64_t)((uint64_t)(number * 2654435769u) * (uint64_t)(rows - 1) >> 32);
        const int64_t begin = (int64_t)row_ptr[row], length = (int64_t)row_ptr[row + 1] - begin;
        is_new = length != begin - (int64_t)row_ptr[row - 1] || differs(col, begin, (int)length);
    }
    const unsigned all = __ballot_sync(0xffffffffu, is_new);
    const unsigned same = __ballot_sync(0xffffffffu, threadIdx.x % SUBWARP == 0 && subwarp_bits(all) == 0);
    if (threadIdx.x % warp_lanes == 0 && same != 0)
        atomicAdd(&found->same, (unsigned)__popc(same));
}

/* The rows of a tile in shared memory. */
struct tile_rows {
    int rows;
    uint32_t bits[WORDS];
    uint32_t offset[TILE + 1];

    template <typename Offset> __device__ void load(const Offset *row_ptr, int64_t all_rows, int64_t first, int most)
    {
        const int count = all_rows - first < most ? (int)(all_rows - first) : most;
        for (int i = (int)threadIdx.x; i <= count; i += PLAN_THREADS)
            offset[i] = (uint32_t)row_ptr[first + i];
        if (threadIdx.x == 0)
            rows = count;
    }

    __device__ int length(int row) const
    {
        return (int)(offset[row + 1] - offset[row]);
    }

    __device__ bool bit(int row) const
    {
        return (bits[row / 32] >> row % 32 & 1u) != 0;
    }

    /* The last row up to this one whose bit is set. Row 0 has a bit. */
    __device__ int last(int row) const
    {
        int word = row / 32;
        uint32_t here = bits[word] & ~0u >> (31 - row % 32);
        while (here == 0)
            here = bits[--word];
        return word * 32 + 31 - __clz((int)here);
    }
};

/* Sets the bits of rows that differ from the row before. Called by a block. */
__device__ inline void compare_rows(const int32_t *col, tile_rows *c)
{
    const int rows = c->rows;
#pragma unroll 1
    for (int first = 0; first < rows; first += SUBWARPS) { /* the same for all threads */
        const int row = first + (int)threadIdx.x / SUBWARP;
        bool is_new = false;
        if (row < rows)
            is_new = row == 0 || c->length(row) != c->length(row - 1) || differs(col, c->offset[row], c->length(row));
        const unsigned all = __ballot_sync(0xffffffffu, is_new);
        if (threadIdx.x % SUBWARP == 0 && subwarp_bits(all) != 0)
            atomicOr(&c->bits[row / 32], 1u << row % 32);
    }
}

/* Finds the groups of a tile: the bits of their first rows remain. Returns the most rows of a group
 * that the thread has seen. Called by a block. */
__device__ inline unsigned cut_groups(tile_rows *c)
{
    bool begins[2];
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = i * PLAN_THREADS + (int)threadIdx.x;
        const unsigned place = row < c->rows ? (unsigned)(row - c->last(row)) % MOST_ROWS : 0;
        begins[i] = row < c->rows && place == 0;
        most = place + 1 > most ? place + 1 : most;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int word = (i * PLAN_THREADS + (int)threadIdx.x) / 32;
        const unsigned bits = __ballot_sync(0xffffffffu, begins[i]);
        if (threadIdx.x % warp_lanes == 0 && word < WORDS)
            c->bits[word] = bits;
    }
    __syncthreads();
    return most;
}

/* The counts of a thread's rows 2 t and 2 t + 1. */
__device__ inline counts counts_of(const tile_rows &c)
{
    counts mine = {0, 0};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = 2 * (int)threadIdx.x + i;
        if (row < c.rows && c.bit(row)) {
            mine.groups++;
            mine.columns += c.length(row);
        }
    }
    return mine;
}

/* A block for each tile. */
template <typename Offset>
__global__ void __launch_bounds__(PLAN_THREADS)
    count(const Offset *row_ptr, const int32_t *col, int64_t rows, unsigned least_same, making m)
{
    __shared__ tile_rows c;
    __shared__ counts sums[PLAN_WARPS], cell;
    __shared__ int drawn;
    await_kernel_before();
    if (m.found->same < least_same) /* the same for all blocks */
        return;
    const int tile = block_draw_ticket<add_groups>(m.states, &drawn);
    c.load(row_ptr, rows, (int64_t)tile * m.tile, m.tile);
    if (threadIdx.x < WORDS)
        c.bits[threadIdx.x] = 0;
    __syncthreads();
    compare_rows(col, &c);
    __syncthreads();
    unsigned largest = cut_groups(&c);
    if (threadIdx.x < WORDS)
        m.begins[(int64_t)tile * WORDS + threadIdx.x] = c.bits[threadIdx.x];
    counts all;
    block_exclusive_once<PLAN_WARPS>(add_groups(), counts_of(c), sums, &all);
    const counts before = block_look_back(add_groups(), m.states, tile, all, false, &cell, 0);
    if (threadIdx.x == 0)
        m.before[tile] = before;
    unsigned longest = 0, empty = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = i * PLAN_THREADS + (int)threadIdx.x;
        const unsigned length = row < c.rows ? (unsigned)c.length(row) : 1;
        longest = length > longest ? length : longest;
        empty += length == 0;
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const unsigned other = __shfl_xor_sync(0xffffffffu, longest, distance);
        const unsigned larger = __shfl_xor_sync(0xffffffffu, largest, distance);
        longest = other > longest ? other : longest;
        largest = larger > largest ? larger : largest;
        empty += __shfl_xor_sync(0xffffffffu, empty, distance);
    }
    if (threadIdx.x % warp_lanes == 0) {
        atomicMax(&m.found->largest, largest);
        atomicMax(&m.found->longest, (unsigned long long)longest);
        if (empty > 0)
            atomicAdd(&m.found->empty, (unsigned long long)empty);
    }
}

/* Writes the 16-bit columns of a row if they span less than 2^16. Returns the base, or NO_BASE. Called
 * by a subwarp; the others of the warp may have rows of other lengths, or none (length 0). */
__device__ inline int32_t narrow_row(const int32_t *col, int64_t begin, int length, uint16_t *out)
{
    const int lane = (int)threadIdx.x % SUBWARP;
    int32_t low = INT32_MAX, high = 0;
#pragma unroll 8
    for (int k = lane; k < length; k += SUBWARP) {
        const int32_t column = col[begin + k];
        low = column < low ? column : low;
        high = column > high ? column : high;
    }
#pragma unroll
    for (int distance = SUBWARP / 2; distance > 0; distance /= 2) {
        const int32_t lower = __shfl_xor_sync(0xffffffffu, low, distance);
        const int32_t higher = __shfl_xor_sync(0xffffffffu, high, distance);
        low = lower < low ? lower : low;
        high = higher > high ? higher : high;
    }
    if (length == 0)
        return 0;
    if (high - low > UINT16_MAX)
        return tiles::NO_BASE;
#pragma unroll 8
    for (int k = lane; k < length; k += SUBWARP)
        out[k] = (uint16_t)(col[begin + k] - low);
    return low;
}

/* A block for each tile. narrow: NULL for no 16-bit columns. */
template <typename Offset>
__global__ void __launch_bounds__(PLAN_THREADS) write(const Offset *row_ptr, const int32_t *col, int64_t rows,
                                                      int64_t nnz, making m, group *table, uint16_t *narrow)
{
    __shared__ tile_rows c;
    __shared__ counts sums[PLAN_WARPS];
    __shared__ struct {
        int row;
        uint32_t place;
    } of[TILE];
    const int64_t tile = blockIdx.x, first = tile * m.tile;
    c.load(row_ptr, rows, first, m.tile);
    if (threadIdx.x < WORDS)
        c.bits[threadIdx.x] = m.begins[tile * WORDS + threadIdx.x];
    const counts before = m.before[tile];
    __syncthreads();
    counts all, at = block_exclusive_once<PLAN_WARPS>(add_groups(), counts_of(c), sums, &all);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = 2 * (int)threadIdx.x + i;
        if (row < c.rows && c.bit(row)) {
            of[at.groups].row = row;
            of[at.groups].place = (uint32_t)before.columns + (uint32_t)at.columns;
            at.groups++;
            at.columns += c.length(row);
        }
    }
    __syncthreads();
    unsigned with_base = 0;
#pragma unroll 1
    for (int from = 0; from < all.groups; from += SUBWARPS) { /* the same for all threads */
        const int g = from + (int)threadIdx.x / SUBWARP;
        const bool has = g < all.groups;
        const int row = has ? of[g].row : 0, length = has ? c.length(row) : 0;
        const uint32_t place = has ? of[g].place : 0, begin = c.offset[row];
        const int32_t base =
            narrow != nullptr ? narrow_row(col, begin, length, narrow + place) : (int32_t)tiles::NO_BASE;
        if (has && threadIdx.x % SUBWARP == 0) {
            table[before.groups + g] = {begin, place, (int32_t)(first + row), base};
            with_base += base != tiles::NO_BASE;
        }
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
        with_base += __shfl_xor_sync(0xffffffffu, with_base, distance);
    if (threadIdx.x % warp_lanes == 0 && with_base > 0)
        atomicAdd(&m.found->narrow, (unsigned long long)with_base);
    if (threadIdx.x == 0 && first + c.rows == rows)
        table[before.groups + all.groups] = {(uint32_t)nnz, (uint32_t)before.columns + (uint32_t)all.columns,
                                             (int32_t)rows, tiles::NO_BASE};
}

} // namespace grouped

#endif
