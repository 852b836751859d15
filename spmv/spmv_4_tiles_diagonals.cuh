/* How the plan of rung 4 puts the columns of tiles into fewer bits: 16 from a tile's least column, or 8 for a diagonal
 * each (struct coded, spmv_4_tiles.cuh).
 *
 *   span      of each tile its least column, where the greatest is less than 2^16 away, and how many diagonals it has,
 *             where 8 bits are wanted and they are few
 *   narrow    the columns in 8 or 16 bits
 *
 * A block a tile. It marks where rows begin in a word of heads for every WARP nonzeros, and throws the diagonals into a
 * hash table in shared memory, the equal ones of a warp once. A warp that has thrown in more than a tile may have
 * stops: matrices without diagonals are found out by their first few hundred nonzeros. Which diagonal meets which slot
 * first is left to the clock; they are sorted by counting the smaller ones before anyone sees them, so a plan is the
 * same every time. Both kernels count: to keep what the first found would take as much memory as the codes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_DIAGONALS_CUH
#define SPMV_4_TILES_DIAGONALS_CUH

#include "spmv_4_tiles_plan.cuh"

namespace tiles
{

/* Each of a block's warps stops after the round in which it passes 256. */
enum { SLOTS = 2048, NO_DIAGONAL = INT32_MIN };
static_assert(PLAN_WARPS * (256 + WARP) < SLOTS, "a slot is always free");

/* A block's shared memory. */
template <typename Shape> struct heads_of_tile {
    uint32_t words[coded<Shape>::GROUPS];
    int16_t rows[coded<Shape>::GROUPS]; /* heads before a word, less one */
    unsigned empty_rows;

    /* In which row of the tile a place lies. */
    __device__ int row(int at) const
    {
        return rows[at / WARP] + __popc(words[at / WARP] & ((2u << at % WARP) - 1u));
    }
};

/* What is looked at: a tile and its columns. */
struct tile_view {
    int64_t from, row; /* places count from there, a whole line */
    int skip, count, rows;
    const int32_t *col; /* of place 0 */
};

__device__ inline tile_view view_of(const tile &mine, const tile &next, const int32_t *col, int line)
{
    const int64_t from = mine.begin & ~(int64_t)(line - 1);
    return {from, mine.row, (int)(mine.begin - from), (int)(next.begin - from), (int)(next.row - mine.row), col + from};
}

/* Where the rows begin; false where one is empty. The first begins at place 0, before its first nonzero. A block. */
template <typename Shape>
__device__ bool find_heads(const tile_view &v, const uint32_t *row_ptr, int words, heads_of_tile<Shape> *heads)
{
    enum { GROUPS = coded<Shape>::GROUPS };
    const int thread = (int)threadIdx.x;
    for (int g = thread; g < GROUPS; g += PLAN_THREADS)
        heads->words[g] = 0;
    if (thread == 0)
        heads->empty_rows = 0;
    __syncthreads();
    for (int r = thread; r < v.rows; r += PLAN_THREADS) {
        const uint32_t begin = row_ptr[(v.row + r) * words] - (uint32_t)v.from;
        const uint32_t end = row_ptr[(v.row + r + 1) * words] - (uint32_t)v.from;
        const uint32_t at = r > 0 ? begin : 0;
        if (begin == end)
            atomicAdd(&heads->empty_rows, 1u);
        else
            atomicOr(&heads->words[at / WARP], 1u << at % WARP);
    }
    __syncthreads();
    if (thread < WARP) {
        int before = -1;
        for (int g = thread; g < (GROUPS + WARP - 1) / WARP * WARP; g += WARP) {
            const int here = g < GROUPS ? __popc(heads->words[g]) : 0, through = warp_inclusive(add_counts(), here);
            if (g < GROUPS)
                heads->rows[g] = (int16_t)(before + through - here);
            before += __shfl_sync(0xffffffffu, through, WARP - 1);
        }
    }
    __syncthreads();
    return heads->empty_rows == 0;
}

__device__ inline int slot_of(int32_t diagonal, int step)
{
    return (int)(((uint32_t)diagonal * 2654435761u >> 16) + (uint32_t)step) % SLOTS; /* D. E. Knuth, TAOCP 3, 6.4 */
}

/* True where it was not there. */
__device__ inline bool throw_in(int32_t *slots, int32_t diagonal)
{
    for (int step = 0;; step++) {
        const int32_t before = atomicCAS(&slots[slot_of(diagonal, step)], (int32_t)NO_DIAGONAL, diagonal);
        if (before == NO_DIAGONAL || before == diagonal)
            return before == NO_DIAGONAL;
    }
}

/* How many different diagonals there are, if no more than the most: else some number above. A block. */
template <typename Shape>
__device__ int find_diagonals(const tile_view &v, const heads_of_tile<Shape> &heads, int32_t *slots)
{
    __shared__ int found[PLAN_WARPS];
    const int thread = (int)threadIdx.x;
    const uint32_t lower = (1u << thread % WARP) - 1u;
    for (int s = thread; s < SLOTS; s += PLAN_THREADS)
        slots[s] = NO_DIAGONAL;
    __syncthreads();
    int mine = 0;
    for (int first = 0; first < v.count && mine <= coded<Shape>::MOST; first += PLAN_THREADS) {
        const int at = first + thread;
        const bool has = at >= v.skip && at < v.count;
        const int32_t diagonal = has ? v.col[at] - heads.row(at) : (int32_t)NO_DIAGONAL;
        const bool leads = (__match_any_sync(0xffffffffu, (unsigned)diagonal) & lower) == 0;
        mine += __popc(__ballot_sync(0xffffffffu, has && leads && throw_in(slots, diagonal)));
    }
    if (thread % WARP == 0)
        found[thread / WARP] = mine;
    __syncthreads();
    int all = 0;
    for (int w = 0; w < PLAN_WARPS; w++)
        all += found[w];
    return all;
}

/* Sorts the diagonals into `sorted`, and code_of[slot] = MOST - how many + place in that order. A block. */
template <typename Shape>
__device__ void sort_diagonals(const int32_t *slots, int diagonals, int32_t *sorted, uint8_t *code_of)
{
    __shared__ int32_t found[coded<Shape>::MOST];
    __shared__ int16_t found_in[coded<Shape>::MOST];
    __shared__ int count;
    const int thread = (int)threadIdx.x;
    if (thread == 0)
        count = 0;
    __syncthreads();
    for (int s = thread; s < SLOTS; s += PLAN_THREADS)
        if (slots[s] != NO_DIAGONAL) {
            const int place = atomicAdd(&count, 1);
            found[place] = slots[s];
            found_in[place] = (int16_t)s;
        }
    __syncthreads();
    for (int k = thread; k < diagonals; k += PLAN_THREADS) {
        int place = 0;
        for (int other = 0; other < diagonals; other++)
            place += found[other] < found[k];
        sorted[place] = found[k];
        code_of[found_in[k]] = (uint8_t)(coded<Shape>::MOST - diagonals + place);
    }
    __syncthreads();
}

/* The least column of the nonzeros begin ... end - 1 where the greatest is less than 2^16 away, else -1; in thread 0. A
 * block. */
__device__ inline int32_t block_base(const int32_t *col, int64_t begin, int64_t end)
{
    __shared__ int32_t lows[PLAN_WARPS], highs[PLAN_WARPS];
    int32_t low = INT32_MAX, high = 0;
    for (int64_t k = begin + threadIdx.x; k < end; k += PLAN_THREADS) {
        const int32_t c = col[k];
        low = c < low ? c : low;
        high = c > high ? c : high;
    }
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const int32_t l = __shfl_down_sync(0xffffffffu, low, (unsigned)distance);
        const int32_t h = __shfl_down_sync(0xffffffffu, high, (unsigned)distance);
        low = l < low ? l : low;
        high = h > high ? h : high;
    }
    if (threadIdx.x % WARP == 0) {
        lows[threadIdx.x / WARP] = low;
        highs[threadIdx.x / WARP] = high;
    }
    __syncthreads();
    if (threadIdx.x != 0)
        return -1;
    for (int w = 1; w < PLAN_WARPS; w++) {
        low = lows[w] < low ? lows[w] : low;
        high = highs[w] > high ? highs[w] : high;
    }
    return high - low > UINT16_MAX ? -1 : low;
}

/* How many diagonals a tile has where its columns can have 8 bits, else 0. A block. */
template <typename Shape>
__device__ int block_diagonals(const tile &mine, const tile &next, const uint32_t *row_ptr, int words,
                               const int32_t *col)
{
    __shared__ heads_of_tile<Shape> heads;
    __shared__ int32_t slots[SLOTS];
    const tile_view v = view_of(mine, next, col, Shape::LINE);
    if (mine.long_row >= 0 || !coded<Shape>::has_room(mine.begin, next.begin, v.rows, 1) ||
        !find_heads(v, row_ptr, words, &heads))
        return 0;
    const int diagonals = find_diagonals(v, heads, slots);
    return coded<Shape>::has_room(mine.begin, next.begin, v.rows, diagonals) ? diagonals : 0;
}

/* base and diagonals of each tile that can have them. EIGHT: whether 8 bits are wanted. */
template <typename Shape, bool EIGHT>
__global__ void __launch_bounds__(PLAN_THREADS)
    span(tile *table, const uint32_t *row_ptr, int words, const int32_t *col, statistics *s)
{
    const tile mine = table[blockIdx.x], next = table[blockIdx.x + 1];
    if (mine.begin == next.begin)
        return;
    const int32_t base = block_base(col, mine.begin, next.begin);
    int diagonals = 0;
    if constexpr (EIGHT)
        diagonals = block_diagonals<Shape>(mine, next, row_ptr, words, col);
    if (threadIdx.x != 0)
        return;
    if (base >= 0) {
        table[blockIdx.x].base = base;
        atomicAdd(&s->narrow, 1ull);
    }
    if (diagonals > 0) {
        table[blockIdx.x].diagonals = diagonals;
        atomicAdd(&s->coded, 1ull);
        atomicAdd(&s->coded_nonzeros, (unsigned long long)(next.begin - mine.begin));
        if (base >= 0)
            atomicAdd(&s->narrow_too, 1ull);
    }
}

/* A tile's columns in 8 bits. A block. */
template <typename Shape>
__device__ void write_codes(const tile &mine, const tile &next, const uint32_t *row_ptr, int words, const int32_t *col,
                            char *out)
{
    using form = coded<Shape>;
    __shared__ heads_of_tile<Shape> heads;
    __shared__ int32_t slots[SLOTS], sorted[form::MOST];
    __shared__ uint8_t code_of[SLOTS], codes[Shape::CAPACITY];
    const tile_view v = view_of(mine, next, col, Shape::LINE);
    const int thread = (int)threadIdx.x;
    find_heads(v, row_ptr, words, &heads);
    find_diagonals(v, heads, slots);
    sort_diagonals<Shape>(slots, mine.diagonals, sorted, code_of);
    for (int at = thread; at < Shape::CAPACITY; at += PLAN_THREADS) {
        const int nearest = at < v.skip ? v.skip : at < v.count ? at : v.count - 1;
        const int32_t diagonal = v.col[nearest] - heads.row(nearest);
        int step = 0;
        while (slots[slot_of(diagonal, step)] != diagonal)
            step++;
        codes[at % Shape::BLOCK * Shape::ITEMS + at / Shape::BLOCK] = code_of[slot_of(diagonal, step)];
    }
    __syncthreads();
    out += form::place(mine.begin);
    for (int at = thread; at < Shape::CAPACITY; at += PLAN_THREADS)
        out[at] = (char)codes[at];
    for (int g = thread; g < form::GROUPS; g += PLAN_THREADS) {
        ((uint32_t *)(out + form::HEADS_AT))[g] = heads.words[g];
        ((int16_t *)(out + form::ROWS_AT))[g] = heads.rows[g];
    }
    for (int k = thread; k < mine.diagonals; k += PLAN_THREADS)
        ((int32_t *)(out + form::DIAGONALS_AT))[k] = sorted[k];
}

/* The array of narrow columns. Without EIGHT the table forgets the diagonals that it has. */
template <typename Shape, bool EIGHT>
__global__ void __launch_bounds__(PLAN_THREADS)
    narrow(tile *table, const uint32_t *row_ptr, int words, const int32_t *col, uint16_t *out)
{
    const tile mine = table[blockIdx.x], next = table[blockIdx.x + 1];
    if (EIGHT && mine.diagonals > 0) {
        if constexpr (EIGHT)
            write_codes<Shape>(mine, next, row_ptr, words, col, (char *)out);
        return;
    }
    if (!EIGHT && mine.diagonals > 0 && threadIdx.x == 0)
        table[blockIdx.x].diagonals = 0;
    for (int64_t k = mine.begin + threadIdx.x; k < next.begin; k += PLAN_THREADS)
        out[k] = mine.base >= 0 ? (uint16_t)(col[k] - mine.base) : (uint16_t)0;
}

} // namespace tiles

#endif
