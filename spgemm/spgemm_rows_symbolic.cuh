/* Method "rows", symbolic phase: the columns of each row of C. Each kernel exists twice: one counts
 * the columns, the other one writes them in ascending order.
 *
 * visit_tiny   a thread has a row and inserts the columns into a sorted list in registers.
 * visit_short  a group of lanes has a row. Its lanes insert the columns of all products into the
 *              group's hash table, in any order. Then a bitonic network sorts the columns.
 * visit_long   a block has a row. Its threads set bits of a bitmap in shared memory, which has the
 *              columns in order. If the columns of the row extend over more than a bitmap, there
 *              are several windows, one after the other.
 * mark_huge, emit_huge
 *              all blocks have a row together, and the bitmap is in global memory. For a row with
 *              very many products.
 *
 * Each segment of a huge row gets a filter: which entries of A have products in it (mark_filter).
 * So the numeric phase does not search the rows of B of all entries for each segment.
 *
 * Sources: K. E. Batcher, "Sorting networks and their applications", AFIPS 1968.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPGEMM_ROWS_SYMBOLIC_CUH
#define SPGEMM_ROWS_SYMBOLIC_CUH

#include "spgemm_rows.cuh"

namespace spgemm
{

/* Calls body(column) for the columns of the products of entries begin ... end - 1 of A, by team
 * `team` of `teams`, until it returns false. tlane: the lane in its team. The offsets of the next
 * row of B are loaded early. */
template <typename Body>
__device__ void for_columns(const operands &m, int64_t begin, int64_t end, int64_t team, int64_t teams, int tlane,
                            int width, const Body &body)
{
    int64_t k = begin + team;
    if (k >= end)
        return;
    int32_t c = m.a.col[k];
    int64_t p = m.b.offset(c), stop = m.b.offset(c + (int64_t)1);
    for (;;) {
        int64_t next_p = 0, next_stop = 0;
        k += teams;
        if (k < end) {
            c = m.a.col[k];
            next_p = m.b.offset(c);
            next_stop = m.b.offset(c + (int64_t)1);
        }
        for (p += tlane; p < stop; p += width)
            if (!body(m.b.col[p]))
                return;
        if (k >= end)
            return;
        p = next_p;
        stop = next_stop;
    }
}

/* Inserts a column into an ascending list that ends with INT32_MAX. Returns false if the list is
 * full and the column is not in it. */
__device__ inline bool insert_tiny(int32_t (&list)[TINY_COLUMNS], int32_t col)
{
    bool there = false;
#pragma unroll
    for (int s = 0; s < TINY_COLUMNS; s++)
        there |= list[s] == col;
    if (!there && list[TINY_COLUMNS - 1] != INT32_MAX)
        return false;
    const int32_t added = there ? INT32_MAX : col;
#pragma unroll
    for (int s = TINY_COLUMNS - 1; s >= 0; s--) {
        const int32_t before = s > 0 && list[s > 0 ? s - 1 : 0] > added ? list[s > 0 ? s - 1 : 0] : added;
        list[s] = list[s] < before ? list[s] : before;
    }
    return true;
}

/* Rows of the class TINY. FILL = false: a row with too many columns gets a level. Other parameters:
 * as for visit_short. */
template <bool FILL>
__global__ void __launch_bounds__(block_threads)
    visit_tiny(operands m, int64_t *row_ptr, int32_t *col, uint8_t *classes, const uint8_t *widths, counters *found)
{
    __shared__ unsigned counts[LEVELS];
    if (threadIdx.x < LEVELS)
        counts[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t row = (int64_t)blockIdx.x * block_threads + threadIdx.x; row < m.rows;
         row += (int64_t)gridDim.x * block_threads) {
        if (classes[row] != TINY)
            continue;
        int32_t list[TINY_COLUMNS];
#pragma unroll
        for (int s = 0; s < TINY_COLUMNS; s++)
            list[s] = INT32_MAX;
        bool fits = true;
        for_columns(m, m.a.offset(row), m.a.offset(row + 1), 0, 1, 0, 1,
                    [&](int32_t c) { return fits = insert_tiny(list, c); });
        if constexpr (FILL) {
            const int64_t to = row_ptr[row];
#pragma unroll
            for (int s = 0; s < TINY_COLUMNS; s++)
                if (list[s] != INT32_MAX)
                    col[to + s] = list[s];
        } else if (fits) {
            int n = 0;
#pragma unroll
            for (int s = 0; s < TINY_COLUMNS; s++)
                n += list[s] != INT32_MAX;
            row_ptr[row] = n;
        } else {
            const int level = width_in_warp(widths[row]) - LEAST_LOG;
            classes[row] = (uint8_t)level;
            atomicAdd(&counts[level], 1u);
        }
    }
    __syncthreads();
    if (!FILL && threadIdx.x < LEVELS && counts[threadIdx.x] != 0)
        atomicAdd(&found->rows[threadIdx.x], (unsigned long long)counts[threadIdx.x]);
}

/* Reads a word of shared memory that other lanes may change in the meantime, by atomic operations. */
__device__ inline int read_relaxed(const int *word)
{
#ifdef __CUDA_ARCH__
    int value;
    asm volatile("ld.relaxed.cta.shared.s32 %0, [%1];" : "=r"(value) : "r"((uint32_t)__cvta_generic_to_shared(word)));
    return value;
#else
    return *(const volatile int *)word;
#endif
}

/* Inserts a column into a table of 2^log places. *found: the columns in it. Returns false if there
 * were more than `most`. */
__device__ inline bool insert(int *keys, int log, int *found, int most, int32_t col)
{
    int place = first_place(col, log);
    for (;;) {
        int key = read_relaxed(keys + place);
        if (key == FREE) {
            if (read_relaxed(found) > most)
                return false;
            key = atomicCAS(&keys[place], (int)FREE, (int)col);
            if (key == FREE) {
                atomicAdd(found, 1);
                return true;
            }
        }
        if (key == col)
            return true;
        place = (place + 1) & ((1 << log) - 1);
    }
}

/* Moves the columns of each group's table to its front and sorts them. Called by all lanes of a
 * warp. n: the columns of the group's table. */
__device__ inline void sort_tables(int *keys, const assignment &mine, int n)
{
    const int size = mine.size();
    const unsigned before = (1u << mine.lane) - 1;
    int kept = 0, key[SLOTS];
#pragma unroll
    for (int s = 0; s < SLOTS; s++)
        key[s] = keys[s * size + mine.lane];
    __syncwarp();
#pragma unroll
    for (int s = 0; s < SLOTS; s++) {
        unsigned there = __ballot_sync(all_lanes, key[s] != FREE) >> (mine.group << mine.log);
        if (mine.log < 5)
            there &= (1u << size) - 1;
        if (key[s] != FREE)
            keys[kept + __popc(there & before)] = key[s];
        kept += __popc(there);
    }
    int padded = 1;
    while (padded < n)
        padded *= 2;
    for (int i = n + mine.lane; i < padded; i += size)
        keys[i] = INT32_MAX;
    __syncwarp();
    const int most = warp_most(padded);
    for (int run = 2; run <= most; run *= 2) {
        for (int stride = run / 2; stride > 0; stride /= 2) {
            for (int i = mine.lane; i < (run <= padded ? padded / 2 : 0); i += size) {
                const int low = 2 * i - (i & (stride - 1)), high = low + stride;
                const int x = keys[low], y = keys[high];
                if ((x > y) == ((low & run) == 0)) {
                    keys[low] = y;
                    keys[high] = x;
                }
            }
            __syncwarp();
        }
    }
}

/* Stores the columns of each group's table in ascending order if there is room for those of the
 * whole warp. Returns the place of the group's first column, or -1. Called by all lanes of a warp.
 * n: the columns of the group's table; 0: nothing to store. */
__device__ inline int64_t store_columns(int *keys, const assignment &mine, int n, const stored_columns &stored,
                                        counters *found)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const int count = mine.lane == 0 ? n : 0, through = warp_inclusive(add_counts(), count);
    unsigned long long begin = 0;
    if (lane == warp_lanes - 1) {
        /* the number only grows */
        begin = *(volatile unsigned long long *)&found->stored;
        if (begin + (unsigned)through <= (unsigned long long)stored.room)
            begin = atomicAdd(&found->stored, (unsigned long long)through);
        if (begin + (unsigned)through > (unsigned long long)stored.room)
            begin = UINT64_MAX;
    }
    begin = __shfl_sync(all_lanes, begin, warp_lanes - 1);
    if (begin == UINT64_MAX)
        return -1;
    sort_tables(keys, mine, n);
    const int64_t place = (int64_t)begin + __shfl_sync(all_lanes, through - count, mine.group << mine.log);
    for (int i = mine.lane; i < n; i += mine.size())
        stored.columns[place + i] = keys[i];
    return place;
}

/* Rows of the levels.
 *
 *   row_ptr  of C. Counting writes the number of columns of row i to row_ptr[i].
 *   col      of C
 *   FILL = false: a row with too many columns for its table is appended to `again`, or to `longs`
 *   if its table has the largest size. Columns of the others are stored if there is room. */
template <bool FILL>
__global__ void __launch_bounds__(BLOCK, 10)
    visit_short(operands m, row_lists lists, int64_t *row_ptr, int32_t *col, item *again, item *longs,
                stored_columns stored, counters *found)
{
    alignas(16) __shared__ int keys_of_warps[BLOCK_WARPS][TABLE];
    __shared__ int found_of_groups[BLOCK_WARPS][warp_lanes >> LEAST_LOG];
    const int warp = (int)threadIdx.x / warp_lanes;
    const int64_t tasks = warps_for_lists(lists.counts);
    for (int64_t task = (int64_t)blockIdx.x * BLOCK_WARPS + warp; task < tasks;
         task += (int64_t)gridDim.x * BLOCK_WARPS) {
        assignment mine = assign(lists, task);
        const int most = capacity(mine.log - LEAST_LOG), log = mine.log + slots_log();
        const int64_t row = row_of(mine.row);
        if constexpr (FILL) {
            const uint32_t place = mine.mine ? stored.places[row] : NOT_STORED;
            if (place != NOT_STORED) {
                const int64_t to = row_ptr[row], n = row_ptr[row + 1] - to;
                for (int64_t i = mine.lane; i < n; i += mine.size())
                    col[to + i] = stored.columns[place + i];
                mine.mine = false;
            }
            if (__ballot_sync(all_lanes, mine.mine) == 0)
                continue;
        }
        int *const keys = keys_of_warps[warp] + (mine.group << log);
        int *const columns = &found_of_groups[warp][mine.group];
        if (mine.lane == 0)
            *columns = 0;
        clear_tables(keys_of_warps[warp]);
        if (mine.mine) {
            const int width_log = width_log_of(mine.row) < mine.log ? width_log_of(mine.row) : mine.log;
            const int width = 1 << width_log;
            for_columns(m, m.a.offset(row), m.a.offset(row + 1), mine.lane >> width_log, mine.size() >> width_log,
                        mine.lane & (width - 1), width, [=](int32_t c) { return insert(keys, log, columns, most, c); });
        }
        __syncwarp();
        const int n = *columns;
        if constexpr (FILL) {
            sort_tables(keys, mine, n);
            if (mine.mine) {
                const int64_t to = row_ptr[row];
                for (int i = mine.lane; i < n; i += mine.size())
                    col[to + i] = keys[i];
            }
        } else {
            const bool fits = mine.mine && n <= most;
            const int64_t place = store_columns(keys, mine, fits ? n : 0, stored, found);
            if (mine.mine && mine.lane == 0) {
                stored.places[row] = fits && place >= 0 ? (uint32_t)place : NOT_STORED;
                if (fits)
                    row_ptr[row] = n;
                else if (mine.log < 5)
                    again[atomicAdd(&found->again[LEVELS - 1], 1ull)] = mine.row;
                else
                    longs[atomicAdd(&found->listed[LONG], 1ull)] = mine.row;
            }
        }
        __syncwarp();
    }
}

/* The first entry in [low, high) of ascending columns that is at least target, else high. */
__device__ inline int64_t lower_bound(const int32_t *col, int64_t low, int64_t high, int64_t target)
{
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (col[middle] < target)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum {
    EACH = 4, /* words that a thread reads at a time, consecutive; a divisor of the window */
    TILE = block_threads * EACH
};
static_assert(SPMV_SPGEMM_WORDS % EACH == 0, "whole groups of words");

/* Writes the columns of the set bits of `word`; its first bit is column `first`. Returns the next
 * place. */
__device__ inline int32_t *write_columns(unsigned word, int64_t first, int32_t *to)
{
    for (; word != 0; word &= word - 1)
        *to++ = (int32_t)(first + __ffs((int)word) - 1);
    return to;
}

/* Sums of counts over a block of block_threads, exclusive; *all: the total. */
__device__ inline int block_places(int count, int *all)
{
    __shared__ int of_warps[block_warps];
    return block_exclusive(add_counts(), count, of_warps, all);
}

/* Sets a bit. Returns whether it was 0. Most bits are set many times, and a read does not conflict
 * with those of other lanes. SHARED: bits is in shared memory. */
template <bool SHARED> __device__ inline bool set_bit(unsigned *bits, unsigned at)
{
    const unsigned bit = 1u << at % 32, *const word = &bits[at / 32];
    const unsigned before = SHARED ? (unsigned)read_relaxed((const int *)word) : *(const volatile unsigned *)word;
    return (before & bit) == 0 && (atomicOr(&bits[at / 32], bit) & bit) == 0;
}

/* Rows of a list. Other parameters: as for visit_short, and
 *
 *   window_words  words of the bitmap, in dynamic shared memory; a multiple of EACH
 *   cols          of B */
template <bool FILL>
__global__ void __launch_bounds__(block_threads)
    visit_long(operands m, const item *rows, const unsigned long long *count, const uint8_t *widths, int window_words,
               int64_t cols, int64_t *row_ptr, int32_t *col)
{
    SPMV_DYNAMIC_SHARED(memory);
    unsigned *const bits = (unsigned *)memory;
    __shared__ int last, from_last; /* the largest column, and the largest INT32_MAX - column */
    const int thread = (int)threadIdx.x;
    const int64_t window = (int64_t)window_words * 32;
    for (int64_t i = blockIdx.x; i < (int64_t)*count; i += gridDim.x) {
        const int64_t row = row_of(rows[i]), begin = m.a.offset(row), end = m.a.offset(row + 1);
        const int width_log = widths[row], width = 1 << width_log;
        const int team = thread >> width_log, teams = block_threads >> width_log, tlane = thread & (width - 1);
        int64_t lowest = 0, limit = cols;
        if (cols > window) {
            if (thread == 0)
                last = from_last = -1;
            __syncthreads();
            int high = -1, from_high = -1;
            for (int64_t k = begin + thread; k < end; k += block_threads) {
                const int32_t c = m.a.col[k];
                const int64_t p = m.b.offset(c), stop = m.b.offset(c + (int64_t)1);
                if (p < stop) {
                    const int least = m.b.col[p], most = m.b.col[stop - 1];
                    high = most > high ? most : high;
                    from_high = INT32_MAX - least > from_high ? INT32_MAX - least : from_high;
                }
            }
            high = warp_most(high);
            from_high = warp_most(from_high);
            if (thread % warp_lanes == 0) {
                atomicMax(&last, high);
                atomicMax(&from_last, from_high);
            }
            __syncthreads();
            limit = (int64_t)last + 1;
            lowest = limit > 0 ? (INT32_MAX - from_last) / 32 * 32 : 0;
        }
        int64_t n = 0; /* counting: of this thread; writing: of all */
        for (int64_t from = lowest; from < limit; from += window) {
            const int64_t columns = limit - from < window ? limit - from : window, to = from + columns;
            const int words = (int)((columns + 32 * EACH - 1) / (32 * EACH)) * EACH;
            for (int w = thread * EACH; w < words; w += TILE)
                *(int4 *)&bits[w] = {0, 0, 0, 0};
            __syncthreads();
            int added = 0;
            if (limit - lowest <= window) {
                for_columns(m, begin, end, team, teams, tlane, width, [&](int32_t c) {
                    added += set_bit<true>(bits, (unsigned)(c - from));
                    return true;
                });
            } else {
                for (int64_t k = begin + team; k < end; k += teams) {
                    const int32_t c = m.a.col[k];
                    const int64_t stop = m.b.offset(c + (int64_t)1);
                    for (int64_t p = lower_bound(m.b.col, m.b.offset(c), stop, from) + tlane;
                         p < stop && m.b.col[p] < to; p += width)
                        added += set_bit<true>(bits, (unsigned)(m.b.col[p] - from));
                }
            }
            if constexpr (FILL) {
                __syncthreads();
                for (int tile = 0; tile < words; tile += TILE) {
                    const int first = tile + thread * EACH;
                    int4 mine = {0, 0, 0, 0};
                    if (first < words)
                        mine = *(const int4 *)&bits[first];
                    int all;
                    const int ones = __popc((unsigned)mine.x) + __popc((unsigned)mine.y) + __popc((unsigned)mine.z) +
                                     __popc((unsigned)mine.w);
                    int32_t *to_col = col + row_ptr[row] + n + block_places(ones, &all);
                    to_col = write_columns((unsigned)mine.x, from + first * 32, to_col);
                    to_col = write_columns((unsigned)mine.y, from + (first + 1) * 32, to_col);
                    to_col = write_columns((unsigned)mine.z, from + (first + 2) * 32, to_col);
                    write_columns((unsigned)mine.w, from + (first + 3) * 32, to_col);
                    n += all;
                }
            } else {
                n += added;
            }
            __syncthreads();
        }
        if constexpr (!FILL) {
            int all;
            block_places((int)n, &all);
            if (thread == 0)
                row_ptr[row] = all;
        }
        __syncthreads();
    }
}

/* ------------------------------------------------------------ huge rows of A */

/* Rows of B with more entries than WIDE are shared by WIDE_PARTS blocks. */
enum { WIDE = 16 * block_threads, WIDE_PARTS = 128 };

/* The entries of a huge row whose rows of B have more than WIDE entries, in any order. */
struct wide_entries {
    int64_t *entries;
    unsigned long long *count;
};

/* Calls body(k, column) for the products of a huge row, by all blocks; k: the entry of A.
 * SHARED = false: without those of the wide entries, which are listed if `list` is true.
 * SHARED = true: only those of the listed entries. */
template <bool SHARED, typename Body>
__device__ void for_huge(const operands &m, const huge_row &h, const wide_entries &wide, bool list, const Body &body)
{
    if constexpr (SHARED) {
        const int64_t count = (int64_t)*wide.count;
        for (int64_t part = blockIdx.x; part < count * WIDE_PARTS; part += gridDim.x) {
            const int64_t k = wide.entries[part / WIDE_PARTS];
            const int32_t c = m.a.col[k];
            const int64_t stop = m.b.offset(c + (int64_t)1);
            for (int64_t p = m.b.offset(c) + part % WIDE_PARTS * block_threads + threadIdx.x; p < stop;
                 p += (int64_t)WIDE_PARTS * block_threads)
                body(k, m.b.col[p]);
        }
    } else {
        const int64_t thread = (int64_t)blockIdx.x * block_threads + threadIdx.x;
        const int64_t threads = (int64_t)gridDim.x * block_threads, begin = m.a.offset(h.row);
        const int64_t width = (int64_t)1 << h.width_log, tlane = thread & (width - 1);
        for (int64_t k = begin + (thread >> h.width_log); k < begin + h.entries; k += threads >> h.width_log) {
            const int32_t c = m.a.col[k];
            const int64_t p = m.b.offset(c), stop = m.b.offset(c + (int64_t)1);
            if (stop - p <= WIDE) {
                for (int64_t q = p + tlane; q < stop; q += width)
                    body(k, m.b.col[q]);
            } else if (list && tlane == 0) {
                wide.entries[atomicAdd(wide.count, 1ull)] = k;
            }
        }
    }
}

/* Sets the bits of a row's columns. bits: 0 before. SHARED: as for for_huge. */
template <bool SHARED>
__global__ void __launch_bounds__(block_threads) mark_huge(operands m, huge_row h, wide_entries wide, unsigned *bits)
{
    for_huge<SHARED>(m, h, wide, true, [=](int64_t, int32_t c) { set_bit<false>(bits, (unsigned)c); });
}

/* Words of the bitmap for each block, a multiple of block_threads. */
enum { HUGE_WORDS = 4 * block_threads };

/* counts[b]: the set bits of block b's words. */
__global__ void __launch_bounds__(block_threads) count_huge(const unsigned *bits, int64_t words, int64_t *counts)
{
    int n = 0, all;
    for (int w = (int)threadIdx.x; w < HUGE_WORDS; w += block_threads) {
        const int64_t at = (int64_t)blockIdx.x * HUGE_WORDS + w;
        n += at < words ? __popc(bits[at]) : 0;
    }
    block_places(n, &all);
    if (threadIdx.x == 0)
        counts[blockIdx.x] = all;
}

/* FILL = false: row_ptr[row] becomes the sum of the counts of all `blocks`; one block.
 * FILL = true: writes the columns; as many blocks as there are counts. */
template <bool FILL>
__global__ void __launch_bounds__(block_threads) emit_huge(const unsigned *bits, int64_t words, const int64_t *counts,
                                                           int64_t blocks, int64_t row, int64_t *row_ptr, int32_t *col)
{
    int n = 0, sum;
    for (int64_t b = threadIdx.x; b < (FILL ? (int64_t)blockIdx.x : blocks); b += block_threads)
        n += (int)counts[b];
    block_places(n, &sum);
    if constexpr (FILL) {
        int64_t to = row_ptr[row] + sum;
        for (int tile = 0; tile < HUGE_WORDS; tile += block_threads) {
            const int64_t at = (int64_t)blockIdx.x * HUGE_WORDS + tile + threadIdx.x;
            const unsigned word = at < words ? bits[at] : 0;
            int all;
            const int before = block_places(__popc(word), &all);
            write_columns(word, at * 32, col + to + before);
            to += all;
        }
    } else if (threadIdx.x == 0) {
        row_ptr[row] = sum;
    }
}

/* Stores the numbers of entries of C in a list of huge rows. */
__global__ void __launch_bounds__(block_threads) measure_huge(huge_row *huge, int64_t count, const int64_t *row_ptr)
{
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * block_threads)
        huge[i].n = row_ptr[huge[i].row + 1] - row_ptr[huge[i].row];
}

/* Words of the filter of a segment. */
__host__ __device__ inline int64_t filter_words(int64_t entries)
{
    return (entries + warp_lanes * 32 - 1) / (warp_lanes * 32);
}

/* Writes the segments of a huge row. filter: of its first segment, the others follow; NULL: there
 * are none. */
__global__ void __launch_bounds__(block_threads)
    list_huge(huge_row h, const int64_t *row_ptr, const unsigned *filter, segment *segments)
{
    const int64_t count = segments_of(h.n);
    for (int64_t s = (int64_t)blockIdx.x * block_threads + threadIdx.x; s < count;
         s += (int64_t)gridDim.x * block_threads)
        segments[s] = {make_item(h.row, width_in_segment(h.width_log < 5 ? h.width_log : 5, count)),
                       row_ptr[h.row] + s * capacity(LEVELS - 1),
                       filter != nullptr ? filter + s * filter_words(h.entries) : nullptr};
}

/* Sets the bits of the filters of a huge row's segments. They are 0 before. SHARED: as for
 * for_huge, after mark_huge. */
template <bool SHARED>
__global__ void __launch_bounds__(block_threads)
    mark_filter(operands m, huge_row h, wide_entries wide, const int64_t *row_ptr, const int32_t *col, unsigned *filter)
{
    const int64_t words = filter_words(h.entries), begin = m.a.offset(h.row), from = row_ptr[h.row];
    for_huge<SHARED>(m, h, wide, false, [=](int64_t k, int32_t c) {
        /* the last segment that does not begin after the column */
        int64_t low = 0, high = segments_of(h.n) - 1;
        while (low < high) {
            const int64_t middle = low + (high - low + 1) / 2;
            if (col[from + middle * capacity(LEVELS - 1)] <= c)
                low = middle;
            else
                high = middle - 1;
        }
        const int64_t chunk = (k - begin) / warp_lanes;
        set_bit<false>(&filter[low * words + chunk / 32], (unsigned)(chunk & 31));
    });
}

} // namespace spgemm

#endif
