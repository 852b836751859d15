/* Method "rows", symbolic phase: the columns of each row of C. Most kernels exist twice: one counts
 * the columns, the other one writes them in ascending order.
 *
 * visit_tiny   a thread has a row and inserts the columns into a sorted list in registers.
 * count_few    8 lanes have a row. They load the columns of all products and sort them. Only counts.
 * visit_short  a subwarp has a row. Its lanes insert the columns of all products into the
 *              subwarp's hash table, in any order. Then a bitonic network sorts the columns.
 * visit_long   a block has a row. Its threads set bits of a bitmap in shared memory, which has the
 *              columns in order. If the columns of the row extend over more than a bitmap, there
 *              are several windows, one after the other. Most of these rows are counted by
 *              count_sorted (spgemm_rows_sorted.cuh) instead.
 * mark_huge, emit_huge
 *              all blocks have a row together, and the bitmap is in global memory. For a row with
 *              very many products.
 *
 * Each fragment of a huge row gets a filter: which entries of A have products in it (mark_filter).
 * So the numeric phase does not search the rows of B of all entries for each fragment.
 *
 * Sources: K. E. Batcher, "Sorting networks and their applications", AFIPS 1968.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPGEMM_ROWS_SYMBOLIC_CUH
#define SPGEMM_ROWS_SYMBOLIC_CUH

#include "device/relaxed.cuh"
#include "formats/columns.h"
#include "spgemm/spgemm_rows.cuh"

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

/* The first lane of a subwarp of `size` lanes whose number is above t; the last lane if there is none.
 * The numbers do not descend. Called by all lanes of a warp. */
__device__ __forceinline__ int first_above(int number, int first_lane, int size, int t)
{
    int lane = first_lane;
#pragma unroll
    for (int half = warp_lanes / 2; half > 0; half /= 2)
        if (half < size)
            lane += __shfl_sync(all_lanes, number, lane + half - 1) <= t ? half : 0;
    return lane;
}

/* Calls body(column, t) for the columns of the products of entries begin ... end - 1 of A, until it
 * returns false in a lane. t counts the products of the row. The lanes of the subwarp take neighbouring
 * products, whatever the lengths of the rows of B are, and load several before they use the first.
 * Called by all lanes of a warp; subwarps have the same size. The entries have less than 2^31
 * products. */
template <typename Body>
__device__ void for_products(const operands &m, int64_t begin, int64_t end, const assignment &mine, const Body &body)
{
    enum { AT_ONCE = 4 };
    const int size = mine.size(), first_lane = mine.subwarp << mine.log;
    const unsigned subwarp = (size < warp_lanes ? (1u << size) - 1 : all_lanes) << first_lane;
    int64_t base = begin, from = 0, next_from = 0;
    int next_length = 0, done = 0;
    bool more = true;
    const auto fetch = [&](int64_t k) {
        next_length = 0;
        if (k < end) {
            const int32_t c = m.a.col[k];
            next_from = m.b.offset(c);
            next_length = (int)(m.b.offset(c + (int64_t)1) - next_from);
        }
    };
    fetch(base + mine.lane);
    while (__ballot_sync(all_lanes, base < end) != 0) {
        int through = next_length; /* products of the entries up to the lane's one */
        for (int distance = 1; distance < size; distance *= 2) {
            const int other = __shfl_up_sync(all_lanes, through, (unsigned)distance);
            through += mine.lane >= distance ? other : 0;
        }
        from = next_from - (through - next_length);
        const int all = __shfl_sync(all_lanes, through, first_lane + size - 1), most = warp_most(all);
        base += size;
        fetch(base + mine.lane);
        for (int first = 0; first < most; first += AT_ONCE * size) {
            int32_t column[AT_ONCE];
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++) {
                const int t = first + u * size + mine.lane;
                const int entry = first_above(through, first_lane, size, t);
                const int64_t at = __shfl_sync(all_lanes, (long long)from, entry) + t;
                column[u] = more && t < all ? m.b.col[at] : (int32_t)FREE;
            }
#pragma unroll
            for (int u = 0; u < AT_ONCE; u++)
                if (more && column[u] != FREE)
                    more = body(column[u], done + first + u * size + mine.lane);
            if ((__ballot_sync(all_lanes, !more) & subwarp) != 0) {
                more = false;
                base = end;
            }
        }
        done += all;
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

/* Puts two numbers in order: ascending if up. */
__device__ __forceinline__ void order_two(unsigned *x, unsigned *y, bool up)
{
    const unsigned least = *x < *y ? *x : *y, most = *x < *y ? *y : *x;
    *x = up ? least : most;
    *y = up ? most : least;
}

/* Sorts N numbers of each of `lanes` neighbouring lanes by a bitonic network in registers. Lane l then
 * has the numbers N l ... N l + N - 1. N and lanes: powers of 2; lanes is the same in the whole warp.
 * lane: in its subwarp. */
template <int N> __device__ __forceinline__ void sort_across(unsigned (&key)[N], int lane, int lanes)
{
#pragma unroll
    for (int width = 2; width < N; width *= 2) {
#pragma unroll
        for (int stride = width / 2; stride > 0; stride /= 2) {
#pragma unroll
            for (int r = 0; r < N; r++)
                if ((r & stride) == 0)
                    order_two(&key[r], &key[r | stride], (r & width) == 0);
        }
    }
    for (int width = 1; width <= lanes; width *= 2) { /* of width N numbers */
        const bool up = width == lanes || (lane & width) == 0;
        for (int distance = width / 2; distance > 0; distance /= 2) {
            const bool least = up == ((lane & distance) == 0);
#pragma unroll
            for (int r = 0; r < N; r++) {
                const unsigned other = __shfl_xor_sync(all_lanes, key[r], distance);
                key[r] = least == (other < key[r]) ? other : key[r];
            }
        }
#pragma unroll
        for (int stride = N / 2; stride > 0; stride /= 2) {
#pragma unroll
            for (int r = 0; r < N; r++)
                if ((r & stride) == 0)
                    order_two(&key[r], &key[r | stride], up);
        }
    }
}

/* Writes the columns of each subwarp's table in ascending order. Called by all lanes of a warp. n: the
 * columns of the subwarp's table; 0: nothing to write. */
__device__ inline void write_sorted(int *keys, const assignment &mine, int n, int32_t *to)
{
    unsigned key[SLOTS]; /* free places are the largest numbers */
#pragma unroll
    for (int s = 0; s < SLOTS; s++)
        key[s] = (unsigned)keys[s * mine.size() + mine.lane];
    sort_across(key, mine.lane, mine.size());
    __syncwarp();
#pragma unroll
    for (int s = 0; s < SLOTS; s += 4)
        *(int4 *)&keys[mine.lane * SLOTS + s] = {(int)key[s], (int)key[s + 1], (int)key[s + 2], (int)key[s + 3]};
    __syncwarp();
    for (int i = mine.lane; i < n; i += mine.size())
        to[i] = keys[i];
}

/* Reserves room for n columns. Returns the first place, or UINT64_MAX if there is not enough. */
__device__ inline unsigned long long reserve(const stored_columns &stored, counters *found, int64_t n)
{
    /* the number only grows */
    unsigned long long begin = *(volatile unsigned long long *)&found->stored;
    if (begin + (unsigned long long)n <= (unsigned long long)stored.room)
        begin = atomicAdd(&found->stored, (unsigned long long)n);
    return begin + (unsigned long long)n <= (unsigned long long)stored.room ? begin : UINT64_MAX;
}

/* Room that a warp has reserved, for several of its tasks: all warps add to one number, one after the
 * other. Used by the last lane. */
struct reservation {
    unsigned long long begin;
    int left;

    /* Takes n places. Returns the first one, or UINT64_MAX if there is not enough room. */
    __device__ unsigned long long take(const stored_columns &stored, counters *found, int n)
    {
        if (n > left) {
            const int more = n > stored.at_once ? n : stored.at_once;
            begin = reserve(stored, found, more);
            left = begin != UINT64_MAX ? more : 0;
        }
        if (n > left)
            return UINT64_MAX;
        begin += (unsigned)n;
        left -= n;
        return begin - (unsigned)n;
    }
};

/* Reserves room for the columns of a warp's subwarps. Returns the place of the subwarp's first column, or
 * -1 if there is not enough room for all. Called by all lanes of a warp. n: the columns of the subwarp;
 * 0: nothing to store. */
__device__ inline int64_t reserve_for_subwarps(const assignment &mine, int n, const stored_columns &stored,
                                               counters *found, reservation *reserved)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const int count = mine.lane == 0 ? n : 0, through = warp_inclusive(add_counts(), count);
    unsigned long long begin = lane == warp_lanes - 1 ? reserved->take(stored, found, through) : 0;
    begin = __shfl_sync(all_lanes, begin, warp_lanes - 1);
    const int before = __shfl_sync(all_lanes, through - count, mine.subwarp << mine.log);
    return begin != UINT64_MAX ? (int64_t)begin + before : -1;
}

/* -------------------------------------------------------------------- few columns */

/* Rows of the class TINY. FILL = false: a row with too many columns becomes a FEW row; the columns of the
 * others are stored if there is room. FILL = true copies them, or finds them again. Other parameters: as
 * for visit_short. */
template <bool FILL>
__global__ void __launch_bounds__(block_threads)
    visit_tiny(operands m, int64_t *row_ptr, int32_t *col, uint8_t *classes, stored_columns stored, counters *found)
{
    __shared__ unsigned others;
    const assignment alone = {0, 0, (int)threadIdx.x % warp_lanes, true, 0};
    reservation reserved = {0, 0};
    if (threadIdx.x == 0)
        others = 0;
    __syncthreads();
    for (int64_t first = (int64_t)blockIdx.x * block_threads; first < m.rows;
         first += (int64_t)gridDim.x * block_threads) {
        const int64_t row = first + threadIdx.x;
        const bool mine = row < m.rows && classes[row] == TINY;
        const uint32_t place = FILL && mine ? stored.places[row] : NOT_STORED;
        int32_t list[TINY_COLUMNS];
#pragma unroll
        for (int s = 0; s < TINY_COLUMNS; s++)
            list[s] = INT32_MAX;
        bool fits = mine;
        int n = 0;
        if (place != NOT_STORED) {
            n = (int)(row_ptr[row + 1] - row_ptr[row]);
#pragma unroll
            for (int s = 0; s < TINY_COLUMNS; s++)
                if (s < n)
                    list[s] = stored.columns[place + s];
        } else if (mine) {
            for_columns(m, m.a.offset(row), m.a.offset(row + 1), 0, 1, 0, 1,
                        [&](int32_t c) { return fits = insert_tiny(list, c); });
#pragma unroll
            for (int s = 0; s < TINY_COLUMNS; s++)
                n += fits && list[s] != INT32_MAX;
        }
        int64_t to = FILL && mine ? row_ptr[row] : -1;
        if constexpr (!FILL) {
            to = reserve_for_subwarps(alone, n, stored, found, &reserved);
            if (fits) {
                row_ptr[row] = n;
                stored.places[row] = to >= 0 ? (uint32_t)to : NOT_STORED;
            } else if (mine) {
                classes[row] = FEW;
                atomicAdd(&others, 1u);
            }
        }
        int32_t *const columns = FILL ? col : stored.columns;
#pragma unroll
        for (int s = 0; s < TINY_COLUMNS; s++)
            if (s < n && to >= 0)
                columns[to + s] = list[s];
    }
    __syncthreads();
    if (!FILL && threadIdx.x == 0 && others != 0)
        atomicAdd(&found->rows[FEW], (unsigned long long)others);
}

/* -------------------------------------------------------------------- few products */

enum { FEW_LOG = 3, FEW_LANES = 1 << FEW_LOG, FEW_SUBWARPS = warp_lanes / FEW_LANES };

/* Sorts a subwarp's columns, the first FEW_LANES N ones, and stores each once. The last ones may be
 * INT32_MAX, which does not count. Returns the number of columns; *place: of the first one. */
template <int N>
__device__ __forceinline__ int store_few(const int *columns, const assignment &mine, const stored_columns &stored,
                                         counters *found, reservation *reserved, int64_t *place)
{
    unsigned key[N];
    bool kept[N];
#pragma unroll
    for (int r = 0; r < N; r += 4) {
        const int4 four = *(const int4 *)&columns[mine.lane * N + r];
        key[r] = (unsigned)four.x;
        key[r + 1] = (unsigned)four.y;
        key[r + 2] = (unsigned)four.z;
        key[r + 3] = (unsigned)four.w;
    }
    sort_across(key, mine.lane, FEW_LANES);
    const unsigned before = __shfl_up_sync(all_lanes, key[N - 1], 1);
    int count = 0;
#pragma unroll
    for (int r = 0; r < N; r++) {
        const bool repeated = r > 0 ? key[r] == key[r > 0 ? r - 1 : 0] : mine.lane > 0 && key[0] == before;
        kept[r] = key[r] != INT32_MAX && !repeated;
        count += kept[r];
    }
    int through = count;
    for (int distance = 1; distance < FEW_LANES; distance *= 2) {
        const int other = __shfl_up_sync(all_lanes, through, (unsigned)distance);
        through += mine.lane >= distance ? other : 0;
    }
    const int n = __shfl_sync(all_lanes, through, (mine.subwarp << FEW_LOG) + FEW_LANES - 1);
    *place = reserve_for_subwarps(mine, n, stored, found, reserved);
    if (*place >= 0) {
        int32_t *to = stored.columns + *place + through - count;
#pragma unroll
        for (int r = 0; r < N; r++)
            if (kept[r])
                *to++ = (int32_t)key[r];
    }
    return n;
}

/* Counts the columns of FEW rows, and stores them. rows: their list. Other parameters: as for
 * visit_short. */
__global__ void __launch_bounds__(BLOCK, COUNT_RESIDENT)
    count_few(operands m, const item *rows, const unsigned long long *counts, int64_t *lengths, stored_columns stored,
              counters *found)
{
    alignas(16) __shared__ int columns_of_subwarps[BLOCK / FEW_LANES][FEW_PRODUCTS];
    assignment mine = {FEW_LOG, (int)threadIdx.x % FEW_LANES, (int)threadIdx.x % warp_lanes / FEW_LANES, false, 0};
    int *const columns = columns_of_subwarps[threadIdx.x / FEW_LANES];
    const int64_t count = (int64_t)counts[FEW], tasks = (count + FEW_SUBWARPS - 1) / FEW_SUBWARPS;
    rows += list_begin(counts, -1);
    reservation reserved = {0, 0};
    for (int64_t task = (int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / warp_lanes; task < tasks;
         task += (int64_t)gridDim.x * BLOCK_WARPS) {
        const int64_t i = task * FEW_SUBWARPS + mine.subwarp;
        mine.mine = i < count;
        const int64_t row = mine.mine ? row_of(rows[i]) : 0;
#pragma unroll
        for (int t = mine.lane; t < FEW_PRODUCTS; t += FEW_LANES)
            columns[t] = INT32_MAX;
        __syncwarp();
        int filled = 0; /* the lane's last product, plus 1 */
        for_products(m, mine.mine ? m.a.offset(row) : 0, mine.mine ? m.a.offset(row + 1) : 0, mine,
                     [&](int32_t c, int t) {
                         columns[t] = c;
                         filled = t + 1;
                         return true;
                     });
        __syncwarp();
        int64_t place = -1;
        const int n = warp_most(filled) <= FEW_PRODUCTS / 2
                          ? store_few<FEW_PRODUCTS / FEW_LANES / 2>(columns, mine, stored, found, &reserved, &place)
                          : store_few<FEW_PRODUCTS / FEW_LANES>(columns, mine, stored, found, &reserved, &place);
        if (mine.mine && mine.lane == 0) {
            stored.places[row] = place >= 0 ? (uint32_t)place : NOT_STORED;
            lengths[row] = n;
        }
        __syncwarp();
    }
}

/* ---------------------------------------------------------------------- survey */

enum {
    SURVEY_ROWS = 512, /* rows of the sample */
    SURVEY_STEPS = 16, /* times 32 products of such a row, of its first 32 entries of A */
    SURVEY_BLOCKS = SURVEY_ROWS / block_warps
};

/* What a survey counts. All are 0 before. */
struct totals {
    unsigned long long products, sampled_products, sampled_columns;
};

/* A pattern whose arrays may have any contents. Offsets are limited to its nnz entries. */
struct doubtful {
    pattern p;
    int64_t rows, nnz;

    __device__ int64_t offset(int64_t row) const
    {
        const int64_t at = p.offset(row);
        return at < 0 ? 0 : at < nnz ? at : nnz;
    }
};

/* *begin: the first entry of row c of B. Returns its length; 0 if there is no such row, or if its
 * offsets are not valid. There is no branch, so several lengths are loaded at the same time. */
__device__ inline int64_t length_of(const doubtful &b, int32_t c, int64_t *begin)
{
    const bool there = c >= 0 && c < b.rows;
    const int64_t row = there ? c : 0, from = b.offset(row), end = b.offset(row + 1);
    *begin = from;
    return there && end > from ? end - from : 0;
}

/* The products and the columns of a part of one row, by a warp. The columns are in a table. The
 * steps are the same each time, and the number of columns after a step too. */
__device__ inline void sample_row(const doubtful &a, const doubtful &b, int64_t row, int *keys, int *columns,
                                  totals *found)
{
    constexpr int most = capacity(LEVELS - 1);
    const int lane = (int)threadIdx.x % warp_lanes, log = 5 + slots_log();
    const int64_t begin = a.offset(row), end = a.offset(row + 1), k = begin + lane;
    int64_t from = 0;
    const int64_t length = k < end ? length_of(b, a.p.col[k], &from) : 0;
    constexpr int enough = warp_lanes * SURVEY_STEPS;
    const int mine = length < enough ? (int)length : enough, through = warp_inclusive(add_counts(), mine);
    const int sum = __shfl_sync(all_lanes, through, warp_lanes - 1), all = sum < enough ? sum : enough;
    int done = 0;
    if (lane == 0)
        *columns = 0;
    clear_tables(keys);
    for (; done < all; done += warp_lanes) {
        const int t = done + lane;
        int entry = 0; /* the first lane with through > t */
        for (int half = warp_lanes / 2; half > 0; half /= 2)
            entry += __shfl_sync(all_lanes, through, entry + half - 1) <= t ? half : 0;
        const int64_t first = __shfl_sync(all_lanes, (long long)(from - (through - mine)), entry);
        if (t < all)
            insert(keys, log, columns, TABLE, b.p.col[first + t]);
        __syncwarp();
        const int so_far = *columns;
        __syncwarp(); /* all lanes have read it */
        if (so_far > most)
            break;
    }
    __syncwarp();
    if (lane == 0) {
        atomicAdd(&found->sampled_products, (unsigned long long)(done + warp_lanes < all ? done + warp_lanes : all));
        atomicAdd(&found->sampled_columns, (unsigned long long)*columns);
    }
    __syncwarp();
}

/* Counts the products of entries begin ... end - 1 of A, by a block: products[row] for each row, which
 * is 0 before. Rows that continue outside these entries, or in another tile of them, are added to.
 * Returns the number of all. Each thread loads the lengths of several rows of B at the same time; their
 * running sums over a tile give those of the rows of A. */
__device__ inline int64_t count_products(const doubtful &a, const doubtful &b, int64_t begin, int64_t end,
                                         int64_t *products)
{
    enum { AT_ONCE = 4, ENTRIES = AT_ONCE * block_threads };
    using add = add_counts_of<int64_t>;
    __shared__ int64_t before[ENTRIES + 1], of_warps[block_warps]; /* products before each entry of the tile */
    const int thread = (int)threadIdx.x;
    /* the first row from `row` on that ends after this entry begins */
    const auto first_after = [&](int64_t row, int64_t entry) {
        return block_lower_bound([&](int64_t r) { return a.offset(r + 1); }, row, a.rows, entry + 1);
    };
    int64_t first = first_after(0, begin), count = 0, row_begin = 0, row_end = 0;
    const auto take_row = [&] { /* the thread's row; there is none: a row after all entries */
                                const int64_t row = first + thread;
                                row_begin = row < a.rows ? a.offset(row) : end;
                                row_end = row < a.rows ? a.offset(row + 1) : end + 1;
    };
    take_row();
    for (int64_t tile = begin; tile < end; tile += ENTRIES) {
        const int64_t stop = tile + ENTRIES < end ? tile + ENTRIES : end;
        int32_t col[AT_ONCE];
        int64_t length[AT_ONCE], from, sum = 0, all;
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            col[u] = tile + thread * AT_ONCE + u < stop ? a.p.col[tile + thread * AT_ONCE + u] : -1;
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            length[u] = length_of(b, col[u], &from);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            sum += length[u];
        int64_t through = block_exclusive(add(), sum, of_warps, &all);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            before[thread * AT_ONCE + u] = through;
            through += length[u];
        }
        if (thread == block_threads - 1)
            before[ENTRIES] = through;
        __syncthreads();
        count += all;
        for (int ended = block_threads; ended == block_threads;) { /* rows of the tile, one for each thread */
            if (row_begin < stop && row_end > tile) {
                unsigned long long *const to = (unsigned long long *)&products[first + thread];
                const int64_t n = before[(row_end < stop ? row_end : stop) - tile] -
                                  before[(row_begin > tile ? row_begin : tile) - tile];
                if (row_begin >= tile && row_end <= stop)
                    *to = (unsigned long long)n;
                else
                    atomicAdd(to, (unsigned long long)n);
            }
            ended = __syncthreads_count(row_end <= stop);
            if (ended == block_threads && __syncthreads_count(row_begin < row_end) == 0) /* all are empty */
                first = first_after(first + ended, a.offset(first));
            else
                first += ended;
            take_row();
        }
    }
    return count;
}

/* Counts the products of each row, which are 0 before, and all of them; in the first SURVEY_BLOCKS blocks
 * those and the columns of a sample. Rows of the sample are evenly spaced. */
__global__ void __launch_bounds__(block_threads) survey(doubtful a, doubtful b, int64_t *products, totals *found)
{
    alignas(16) __shared__ int keys_of_warps[block_warps][TABLE];
    __shared__ int found_of_warps[block_warps];
    if (blockIdx.x < SURVEY_BLOCKS) {
        const int warp = (int)threadIdx.x / warp_lanes;
        const int64_t rows = a.rows < SURVEY_ROWS ? a.rows : (int64_t)SURVEY_ROWS,
                      i = (int64_t)blockIdx.x * block_warps + warp;
        if (i < rows)
            sample_row(a, b, i * (a.rows / rows), keys_of_warps[warp], &found_of_warps[warp], found);
        return;
    }
    const int64_t blocks = gridDim.x - SURVEY_BLOCKS, each = (a.nnz + blocks - 1) / blocks,
                  begin = (blockIdx.x - SURVEY_BLOCKS) * each, end = begin + each < a.nnz ? begin + each : a.nnz;
    if (begin >= end)
        return;
    const int64_t count = count_products(a, b, begin, end, products);
    if (threadIdx.x == 0)
        atomicAdd(&found->products, (unsigned long long)count);
}

/* Rows of the levels.
 *
 *   row_ptr  of C. Counting has another array: the number of columns of row i becomes row_ptr[i].
 *   col      of C
 *   FILL = false: a row with too many columns for its table is appended to `again`, or to `longs`
 *   if its table has the largest size. Columns of the others are stored if there is room. */
template <bool FILL>
__global__ void __launch_bounds__(BLOCK, COUNT_RESIDENT)
    visit_short(operands m, row_lists lists, int64_t *row_ptr, int32_t *col, item *again, item *longs,
                stored_columns stored, counters *found)
{
    alignas(16) __shared__ int keys_of_warps[BLOCK_WARPS][TABLE];
    __shared__ int found_of_subwarps[BLOCK_WARPS][warp_lanes >> LEAST_LOG];
    const int warp = (int)threadIdx.x / warp_lanes;
    const int64_t tasks = warps_for_lists(lists.counts);
    reservation reserved = {0, 0};
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
        int *const keys = keys_of_warps[warp] + (mine.subwarp << log);
        int *const columns = &found_of_subwarps[warp][mine.subwarp];
        if (mine.lane == 0)
            *columns = 0;
        clear_tables(keys_of_warps[warp]);
        for_products(m, mine.mine ? m.a.offset(row) : 0, mine.mine ? m.a.offset(row + 1) : 0, mine,
                     [=](int32_t c, int) { return insert(keys, log, columns, most, c); });
        __syncwarp();
        const int n = *columns;
        if constexpr (FILL) {
            write_sorted(keys, mine, n, col + (mine.mine ? row_ptr[row] : 0));
        } else {
            const bool fits = mine.mine && n <= most;
            const int64_t place = reserve_for_subwarps(mine, fits ? n : 0, stored, found, &reserved);
            if (warp_most(place >= 0) > 0) /* the same for all subwarps */
                write_sorted(keys, mine, fits ? n : 0, stored.columns + place);
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

enum {
    EACH = 4, /* words that a thread reads at a time, consecutive; a divisor of the window */
    TILE = block_threads * EACH
};
static_assert(SPMV_SPGEMM_WORDS % EACH == 0, "EACH words at a time");

/* Up to this number of windows, all products are read for each; else those of a window are searched. */
enum { FEW_WINDOWS = 4 };

/* Writes the columns of the set bits of `word`; its first bit is column `first`. Returns the next
 * place. */
__device__ inline int32_t *write_columns(unsigned word, int64_t first, int32_t *to)
{
    for (; word != 0; word &= word - 1)
        *to++ = (int32_t)(first + __ffs((int)word) - 1);
    return to;
}

/* Sums of counts over a block of so many warps, exclusive; *all: the total. */
template <int WARPS = block_warps> __device__ inline int block_places(int count, int *all)
{
    __shared__ int of_warps[WARPS];
    return block_exclusive<WARPS>(add_counts(), count, of_warps, all);
}

__device__ inline int ones_of(const int4 &words)
{
    return __popc((unsigned)words.x) + __popc((unsigned)words.y) + __popc((unsigned)words.z) +
           __popc((unsigned)words.w);
}

/* Writes the columns of a bitmap's set bits; its first bit is column `first`. words: a multiple of
 * EACH. Returns their number. Each warp has consecutive words, which it reads twice: to count, and
 * to write. Called by a block after a barrier. */
__device__ inline int write_window(const unsigned *bits, int words, int64_t first, int32_t *to)
{
    __shared__ int of_warps[block_warps];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    const int each = (words + TILE - 1) / TILE * (warp_lanes * EACH); /* words of a warp */
    const int begin = warp * each, end = begin + each < words ? begin + each : words;
    int ones = 0, all = 0, before = 0;
    for (int w = begin + lane * EACH; w < end; w += warp_lanes * EACH)
        ones += ones_of(*(const int4 *)&bits[w]);
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
        ones += __shfl_xor_sync(all_lanes, ones, distance);
    if (lane == 0)
        of_warps[warp] = ones;
    __syncthreads();
    for (int w = 0; w < block_warps; w++) {
        before += w < warp ? of_warps[w] : 0;
        all += of_warps[w];
    }
    for (int w = begin; w < end; w += warp_lanes * EACH) {
        const int own = w + lane * EACH;
        int4 mine = {0, 0, 0, 0};
        if (own < end)
            mine = *(const int4 *)&bits[own];
        const int through = warp_inclusive(add_counts(), ones_of(mine));
        int32_t *at = to + before + through - ones_of(mine);
        at = write_columns((unsigned)mine.x, first + (int64_t)own * 32, at);
        at = write_columns((unsigned)mine.y, first + (int64_t)own * 32 + 32, at);
        at = write_columns((unsigned)mine.z, first + (int64_t)own * 32 + 64, at);
        write_columns((unsigned)mine.w, first + (int64_t)own * 32 + 96, at);
        before += __shfl_sync(all_lanes, through, warp_lanes - 1);
    }
    return all;
}

/* Sets bit at % 32 of a word. Returns whether it was 0. Most bits are set many times, and a read does
 * not conflict with those of other lanes. SHARED: the word is in shared memory. */
template <bool SHARED> __device__ inline bool set_bit(unsigned *word, unsigned at)
{
    const unsigned bit = 1u << at % 32;
    const unsigned before = SHARED ? (unsigned)read_relaxed((const int *)word) : *(const volatile unsigned *)word;
    return (before & bit) == 0 && (atomicOr(word, bit) & bit) == 0;
}

/* Calls body(column, t) for the columns of the products of entries begin ... end - 1 of A, by a block of
 * THREADS threads; t counts the products. Returns their number, or most + 1 if there are more than
 * `most`; then body was not called for all. Each thread loads an entry; then the products of all these
 * entries are dealt out to the threads, so short rows of B leave no thread idle, and the loads do not
 * wait for each other. */
template <int THREADS, typename Body>
__device__ int for_columns_dealt(const operands &m, int64_t begin, int64_t end, int most, const Body &body)
{
    enum { AHEAD = 4 };               /* columns that a thread loads before it uses them */
    __shared__ int through[THREADS];  /* products of the entries up to this one */
    __shared__ int64_t from[THREADS]; /* column t of the block is at from + t in B */
    const int thread = (int)threadIdx.x;
    int done = 0;
    for (int64_t base = begin; base < end; base += THREADS) {
        int64_t first = 0;
        int length = 0, all;
        if (base + thread < end) {
            const int32_t c = m.a.col[base + thread];
            first = m.b.offset(c);
            length = (int)(m.b.offset(c + (int64_t)1) - first);
        }
        const int before = block_places<THREADS / warp_lanes>(length, &all);
        if (all > most - done)
            return most + 1;
        through[thread] = before + length;
        from[thread] = first - before;
        __syncthreads();
        for (int t = thread; t < all; t += AHEAD * THREADS) {
            int32_t col[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                const int product = t + u * THREADS;
                int entry = 0; /* the first one with through > product */
#pragma unroll
                for (int half = THREADS / 2; half > 0; half /= 2)
                    entry += through[entry + half - 1] <= product ? half : 0;
                col[u] = product < all ? m.b.col[from[entry] + product] : -1;
            }
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                if (col[u] >= 0)
                    body(col[u], done + t + u * THREADS);
        }
        done += all;
        __syncthreads();
    }
    return done;
}

/* A row of C for a block: the entries of its row of A, the columns lowest ... limit - 1 that it may
 * have, and whether one bitmap has room for them. */
struct long_row {
    int64_t begin, end, lowest, limit, products;
    bool single;
};

/* The row with these entries of A. cols: the columns of B; window: those of a bitmap. If a bitmap has no
 * room for all columns of B, lowest is a multiple of 32 not above the row's first column, limit follows
 * its last one, and products is their number; otherwise these are 0, cols, and 0. */
__device__ inline long_row take_long_row(const operands &m, int64_t begin, int64_t end, int64_t cols, int64_t window)
{
    __shared__ int last, from_last; /* the largest column, and the largest INT32_MAX - column */
    __shared__ unsigned long long products;
    if (cols <= window)
        return {begin, end, 0, cols, 0, true};
    if (threadIdx.x == 0) {
        last = from_last = -1;
        products = 0;
    }
    __syncthreads();
    int high = -1, from_high = -1;
    int64_t mine = 0;
    for (int64_t k = begin + threadIdx.x; k < end; k += block_threads) {
        const int32_t c = m.a.col[k];
        const int64_t p = m.b.offset(c), stop = m.b.offset(c + (int64_t)1);
        if (p < stop) {
            const int least = m.b.col[p], most = m.b.col[stop - 1];
            mine += stop - p;
            high = most > high ? most : high;
            from_high = INT32_MAX - least > from_high ? INT32_MAX - least : from_high;
        }
    }
    high = warp_most(high);
    from_high = warp_most(from_high);
    atomic_add_of_warp(mine, (int64_t *)&products);
    if (threadIdx.x % warp_lanes == 0) {
        atomicMax(&last, high);
        atomicMax(&from_last, from_high);
    }
    __syncthreads();
    const int64_t limit = (int64_t)last + 1, lowest = limit > 0 ? (INT32_MAX - from_last) / 32 * 32 : 0;
    return {begin, end, lowest, limit, (int64_t)products, limit - lowest <= window};
}

/* Sets the bits of the row's columns from ... to - 1, by teams of 2^width_log threads. Returns how many
 * this thread has set. The bits are 0 before. */
__device__ inline int mark_window(const operands &m, const long_row &r, int64_t from, int64_t to, bool few,
                                  int width_log, unsigned *bits)
{
    const int thread = (int)threadIdx.x, width = 1 << width_log;
    const int team = thread >> width_log, teams = block_threads >> width_log, tlane = thread & (width - 1);
    int added = 0;
    const auto set = [&](int32_t c) {
        if (r.single || (c >= from && c < to))
            added += set_bit<true>(&bits[(unsigned)(c - from) / 32], (unsigned)(c - from));
        return true;
    };
    if (few && width < warp_lanes) {
        for_columns_dealt<block_threads>(m, r.begin, r.end, INT32_MAX - 1, [&](int32_t c, int) { set(c); });
    } else if (r.single) {
        for_columns(m, r.begin, r.end, team, teams, tlane, width, set);
    } else {
        for (int64_t k = r.begin + team; k < r.end; k += teams) {
            const int32_t c = m.a.col[k];
            const int64_t stop = m.b.offset(c + (int64_t)1);
            for (int64_t p = first_column_from(m.b.col, m.b.offset(c), stop, from) + tlane; p < stop && m.b.col[p] < to;
                 p += width)
                set(m.b.col[p]);
        }
    }
    return added;
}

/* Rows of a list. Other parameters: as for visit_short, and
 *
 *   stored        counting stores the columns, if there is room: for all products of the row if it
 *                 needs several windows. FILL = true: these rows are left out (copy_long)
 *   window_words  words of the bitmap, in dynamic shared memory; a multiple of EACH
 *   cols          of B */
template <bool FILL>
__global__ void __launch_bounds__(block_threads, 4)
    visit_long(operands m, const item *rows, const unsigned long long *count, const uint8_t *shapes, int window_words,
               int64_t cols, int64_t *row_ptr, int32_t *col, stored_columns stored, counters *found)
{
    SPMV_DYNAMIC_SHARED(memory);
    unsigned *const bits = (unsigned *)memory;
    __shared__ unsigned long long reserved;
    const int thread = (int)threadIdx.x;
    const int64_t window = (int64_t)window_words * 32;
    for (int64_t i = blockIdx.x; i < (int64_t)*count; i += gridDim.x) {
        const int64_t row = row_of(rows[i]);
        if (FILL && stored.places[row] != NOT_STORED)
            continue;
        const long_row r = take_long_row(m, m.a.offset(row), m.a.offset(row + 1), cols, window);
        const int64_t columns = r.limit - r.lowest;
        if (!FILL && !r.single) { /* not more columns than products, and than there are */
            if (thread == 0)
                reserved = reserve(stored, found, r.products < columns ? r.products : columns);
            __syncthreads();
        }
        const bool stores = !FILL && !r.single && reserved != UINT64_MAX;
        int words = 0;
        int64_t n = 0; /* written: of all threads; else of this thread */
        for (int64_t from = r.lowest; from < r.limit; from += window) {
            const int64_t to = r.limit - from < window ? r.limit : from + window;
            words = (int)((to - from + 32 * EACH - 1) / (32 * EACH)) * EACH;
            for (int w = thread * EACH; w < words; w += TILE)
                *(int4 *)&bits[w] = {0, 0, 0, 0};
            __syncthreads();
            const int added =
                mark_window(m, r, from, to, columns <= FEW_WINDOWS * window, width_of_shape(shapes[row]), bits);
            if (FILL || stores) {
                __syncthreads();
                n += write_window(bits, words, from, (FILL ? col + row_ptr[row] : stored.columns + reserved) + n);
            } else {
                n += added;
            }
            __syncthreads();
        }
        if constexpr (!FILL) {
            int all = (int)n;
            if (!stores)
                block_places((int)n, &all);
            if (thread == 0) {
                row_ptr[row] = all;
                reserved = r.single ? reserve(stored, found, all) : reserved;
                if (reserved != UINT64_MAX)
                    stored.places[row] = (uint32_t)reserved;
            }
            __syncthreads();
            if (r.single && reserved != UINT64_MAX)
                write_window(bits, words, r.lowest, stored.columns + reserved);
        }
        __syncthreads();
    }
}

/* Copies the stored columns of the rows of a list, a block for each. Needs no shared memory, so more
 * rows are copied at a time than visit_long has. */
__global__ void __launch_bounds__(block_threads) copy_long(const item *rows, const unsigned long long *count,
                                                           const int64_t *row_ptr, int32_t *col, stored_columns stored)
{
    for (int64_t i = blockIdx.x; i < (int64_t)*count; i += gridDim.x) {
        const int64_t row = row_of(rows[i]), to = row_ptr[row], n = row_ptr[row + 1] - to;
        const uint32_t place = stored.places[row];
        if (place == NOT_STORED)
            continue;
#pragma unroll 4
        for (int64_t e = threadIdx.x; e < n; e += block_threads)
            col[to + e] = stored.columns[place + e];
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
    for_huge<SHARED>(m, h, wide, true,
                     [=](int64_t, int32_t c) { set_bit<false>(&bits[(unsigned)c / 32], (unsigned)c); });
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

/* Words of the filter of a fragment. */
__host__ __device__ inline int64_t filter_words(int64_t entries)
{
    return (entries + warp_lanes * 32 - 1) / (warp_lanes * 32);
}

/* Writes the fragments of a huge row. filter: of its first fragment, the others follow; NULL: there
 * are none. */
__global__ void __launch_bounds__(block_threads)
    list_huge(huge_row h, const int64_t *row_ptr, const unsigned *filter, fragment *fragments)
{
    const int64_t count = fragments_of(h.n);
    for (int64_t s = (int64_t)blockIdx.x * block_threads + threadIdx.x; s < count;
         s += (int64_t)gridDim.x * block_threads)
        fragments[s] = {make_item(h.row, width_in_fragment(h.width_log < 5 ? h.width_log : 5, count)),
                        row_ptr[h.row] + s * capacity(LEVELS - 1),
                        filter != nullptr ? filter + s * filter_words(h.entries) : nullptr};
}

/* Sets the bits of the filters of a huge row's fragments. They are 0 before. SHARED: as for
 * for_huge, after mark_huge. */
template <bool SHARED>
__global__ void __launch_bounds__(block_threads)
    mark_filter(operands m, huge_row h, wide_entries wide, const int64_t *row_ptr, const int32_t *col, unsigned *filter)
{
    const int64_t words = filter_words(h.entries), begin = m.a.offset(h.row), from = row_ptr[h.row];
    for_huge<SHARED>(m, h, wide, false, [=](int64_t k, int32_t c) {
        /* the last fragment that does not begin after the column */
        int64_t low = 0, high = fragments_of(h.n) - 1;
        while (low < high) {
            const int64_t middle = low + (high - low + 1) / 2;
            if (col[from + middle * capacity(LEVELS - 1)] <= c)
                low = middle;
            else
                high = middle - 1;
        }
        const int64_t batch = (k - begin) / warp_lanes;
        set_bit<false>(&filter[low * words + batch / 32], (unsigned)(batch & 31));
    });
}

} // namespace spgemm

#endif
