/* Method "rows", numeric phase: the values of C. One launch for the segments and the rows of the
 * lists, the longest first, and one for the TINY rows.
 *
 *     c_ij = sum over ascending k of a_ik b_kj
 *
 * A group of lanes has a row of C, or a warp has a segment of a long row. Its columns are in shared
 * memory in ascending order, with a sum for each. The lanes load as many entries of the row of A at a
 * time as the group has lanes, with the offsets of the rows of B. In each step each team of the group
 * takes the next of these rows of B: its lanes load the entries, form the products and find the places
 * of the columns by a binary search. (A hash table takes more instructions: it has to be filled, and
 * the lanes of a warp wait for the one whose search is the longest.)
 *
 * If a row of B has more entries than its team has lanes, the whole group adds the others.
 *
 * Order: all teams load at the same time, but they add one after the other, in the order of k. The
 * lanes of a team add to different places, because the columns of a row of B differ. So no atomic
 * operations are needed and k ascends in each sum.
 *
 * The sums start with -0. x + -0 has the bits of x for each x, also for 0 and -0. So a sum has the
 * same bits as if its first product had started it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPGEMM_ROWS_NUMERIC_CUH
#define SPGEMM_ROWS_NUMERIC_CUH

#include "complex.cuh"
#include "spgemm_rows_symbolic.cuh"

namespace spgemm
{

template <typename T> struct numeric_job {
    operands m;
    const T *a_val, *b_val; /* NULL: all are 1 */
    const int64_t *row_ptr; /* of C */
    const int32_t *col;
    T *val;
    row_lists lists;
    const segment *segments;
    int64_t segment_count;
};

template <typename T> struct constants {
    static __device__ T one()
    {
        return 1;
    }
    static __device__ T minus_zero()
    {
        return -T(0);
    }
};

#define CONSTANTS(NAME, name, value, C, D, CLASS, ARG)                                                                 \
    template <> struct constants<D> {                                                                                  \
        static __device__ D one()                                                                                      \
        {                                                                                                              \
            return {1, 0};                                                                                             \
        }                                                                                                              \
        static __device__ D minus_zero()                                                                               \
        {                                                                                                              \
            return {-0.0f, -0.0f};                                                                                     \
        }                                                                                                              \
    };
SPMV_COMPLEX_LIST(CONSTANTS, )
#undef CONSTANTS

/* An entry of A with its row of B, or the part of that row in a segment. */
template <typename T> struct taken {
    T a;
    int64_t begin; /* in B */
    int length;
};

/* A row of A. As its columns ascend, it has less than 2^31 entries. */
struct row_of_a {
    int64_t begin;
    int entries;
};

/* The columns of a segment. */
struct columns {
    int32_t first, last;
};

/* Entry k of a row, with length 0 if the row has no such entry. PART: without the entries of B
 * before the segment; the length is 0 if there is none in the segment. */
template <bool PART, typename T>
__device__ taken<T> take(const numeric_job<T> &j, const row_of_a &row, int k, columns within)
{
    taken<T> t = {constants<T>::one(), 0, 0};
    if (k >= row.entries)
        return t;
    const int32_t c = j.m.a.col[row.begin + k];
    if (j.a_val != nullptr)
        t.a = load_whole(j.a_val + row.begin + k);
    int64_t begin = j.m.b.offset(c), stop = j.m.b.offset(c + (int64_t)1);
    if constexpr (PART) {
        begin = lower_bound(j.m.b.col, begin, stop, within.first);
        if (begin < stop && j.m.b.col[begin] > within.last)
            stop = begin;
    }
    t.begin = begin;
    t.length = (int)(stop - begin);
    return t;
}

template <typename T> __device__ taken<T> shuffle_from(const taken<T> &t, int lane)
{
    return {shuffle_by(t.a, [=](auto word) { return __shfl_sync(all_lanes, word, lane); }),
            __shfl_sync(all_lanes, (long long)t.begin, lane), __shfl_sync(all_lanes, t.length, lane)};
}

/* The place of a column among 2^log - 1 ascending ones: the number of smaller ones. So a column that
 * is not among them also gets a place in the table; there is none if the patterns are those of the
 * plan. All lanes take the same number of steps, whose distances are constants. */
__device__ inline int find_place(const int *keys, int log, int32_t col)
{
    int place = 0;
#pragma unroll
    for (int half = TABLE / 2; half > 0; half /= 2)
        if (half < 1 << log)
            place += keys[place + half - 1] < col ? half : 0;
    return place;
}
static_assert(TABLE <= 1 << 9, "find_place has 9 steps");

/* The smallest log with n < 2^log. */
__device__ inline int log_above(int n)
{
    return n == 0 ? 0 : 32 - __clz(n);
}

/* The chunks of 32 entries of a row of A that have products in a segment, in ascending order: all
 * chunks, or those of the segment's filter. Used by a whole warp. */
struct chunks {
    const unsigned *filter; /* NULL: all */
    int words;              /* of the filter */
    int window;             /* the first of the 32 words that the lanes hold */
    unsigned word;          /* of this lane */

    /* The first entry of the chunk after that of entry `base`; at least 32 * 32 * words if there is
     * none. */
    __device__ int64_t next(int64_t base)
    {
        if (filter == nullptr)
            return base + warp_lanes;
        const int lane = (int)threadIdx.x % warp_lanes;
        unsigned there = __ballot_sync(all_lanes, word != 0);
        while (there == 0) {
            window += warp_lanes;
            if (window >= words)
                return (int64_t)window * 32 * warp_lanes;
            word = window + lane < words ? filter[window + lane] : 0;
            there = __ballot_sync(all_lanes, word != 0);
        }
        const int first = __ffs((int)there) - 1;
        const unsigned bits = __shfl_sync(all_lanes, word, first);
        if (lane == first)
            word &= word - 1;
        return ((int64_t)(window + first) * 32 + __ffs((int)bits) - 1) * warp_lanes;
    }
};

/* At least this number of blocks for a multiprocessor: limits the registers. */
template <typename T> constexpr int least_blocks = sizeof(T) == 4 ? 8 : sizeof(T) == 8 ? 6 : 5;

/* Shared memory of a warp. A group's part has SLOTS + 1 places for each lane, of which one is not used:
 * so all groups begin in different banks, and their searches do not conflict. */
enum { PLACES = SLOTS + 1 };
template <typename T> struct warp_memory {
    int keys[warp_lanes * PLACES];
    alignas(16) T sums[warp_lanes * PLACES];
    int order[warp_lanes]; /* the lanes whose entry has products in the segment */
};

/* The sums of segment `task`, or of the rows that `task` has in the lists. Called by a warp. */
template <bool SEGMENTS, typename T>
__device__ __forceinline__ void sum_task(const numeric_job<T> &j, int64_t task, warp_memory<T> *memory)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    int *const order = memory->order;
    assignment mine = {5, lane, 0, true, 0};
    int64_t from = 0; /* of the entries of C */
    int n = 0;
    chunks list = {nullptr, 0, -warp_lanes, 0};
    if constexpr (SEGMENTS) {
        const segment s = j.segments[task];
        const int64_t left = j.row_ptr[row_of(s.row) + 1] - s.begin;
        mine.row = s.row;
        from = s.begin;
        n = left < capacity(LEVELS - 1) ? (int)left : capacity(LEVELS - 1);
        list.filter = s.filter;
    } else {
        mine = assign(j.lists, task);
        if (mine.mine) {
            from = j.row_ptr[row_of(mine.row)];
            n = (int)(j.row_ptr[row_of(mine.row) + 1] - from);
        }
    }
    const int size = mine.size(), table = (mine.group << mine.log) * PLACES;
    int *const keys = memory->keys + table;
    T *const sums = memory->sums + table;
    row_of_a row = {0, 0};
    if (mine.mine) {
        row.begin = j.m.a.offset(row_of(mine.row));
        row.entries = (int)(j.m.a.offset(row_of(mine.row) + 1) - row.begin);
    }

    /* the first loads are on their way while the table is made */
    taken<T> entries = {constants<T>::one(), 0, 0};
    if constexpr (!SEGMENTS)
        entries = take<false>(j, row, mine.lane, {0, 0});
    const int log = log_above(warp_most(n));
    for (int i = mine.lane; i < 1 << log; i += size) {
        keys[i] = i < n ? j.col[from + i] : INT32_MAX;
        sums[i] = constants<T>::minus_zero();
    }
    columns within = {0, 0};
    if constexpr (SEGMENTS) {
        within = {j.col[from], j.col[from + n - 1]};
        list.words = (int)filter_words(row.entries);
    }
    __syncwarp();

    const int width_log = width_log_of(mine.row) < mine.log ? width_log_of(mine.row) : mine.log;
    const int width = 1 << width_log, teams = size >> width_log, team = mine.lane >> width_log;
    const int tlane = mine.lane & (width - 1), most_teams = warp_most(teams);
    int64_t base = SEGMENTS && list.filter != nullptr ? list.next(0) : 0;
    if constexpr (SEGMENTS)
        entries = take<true>(j, row, (int)base + mine.lane, within);
    while (__ballot_sync(all_lanes, base < row.entries) != 0) {
        const taken<T> now = entries;
        int left; /* entries to add; a group may have none while others have some */
        int64_t after;
        if constexpr (SEGMENTS) {
            after = list.next(base);
            const unsigned there = __ballot_sync(all_lanes, now.length > 0);
            left = __popc(there);
            if (now.length > 0)
                order[__popc(there & ((1u << lane) - 1))] = lane;
            __syncwarp();
        } else {
            after = base + size;
            left = row.entries - base < size ? (int)(row.entries - base) : size;
        }
        base = after < row.entries ? after : (int64_t)row.entries;
        entries = take<SEGMENTS>(j, row, (int)base + mine.lane, within);
        const int steps = warp_most((left + teams - 1) >> (mine.log - width_log));
        /* the lane with entry i of those to add; for i >= left any lane */
        const auto lane_of = [=](int i) {
            if constexpr (SEGMENTS)
                return i < left ? order[i] : 0;
            else
                return (mine.group << mine.log) + (i & (size - 1));
        };
        taken<T> next = {constants<T>::one(), 0, 0};
        int32_t next_col = 0;
        T next_b = constants<T>::one();
        bool next_there = false;
        const auto fetch = [&](int i) {
            next = shuffle_from(now, lane_of(i));
            if (i >= left)
                next.length = 0;
            next_there = tlane < next.length;
            if (next_there) {
                next_col = j.m.b.col[next.begin + tlane];
                if constexpr (SEGMENTS)
                    next_there = next_col <= within.last;
            }
            if (next_there) {
                if (j.b_val != nullptr)
                    next_b = load_whole(j.b_val + next.begin + tlane);
            }
        };
        if (steps > 0)
            fetch(team);
        for (int s = 1; s <= steps; s++) {
            const taken<T> term = next;
            const int32_t c = next_col;
            const T b = next_b;
            const bool there = next_there;
            /* the first entries of the next step are loaded while this one is added */
            fetch(s * teams + team);
            int place = 0;
            T product = constants<T>::one();
            if (there) {
                place = find_place(keys, log, c);
                product = term.a * b;
            }
            /* segments: the last lane's column may already be after the segment */
            const bool some_longer = __ballot_sync(all_lanes, there && tlane == width - 1 && term.length > width) != 0;
            for (int t = 0; t < most_teams; t++) {
                if (there && team == t)
                    sums[place] += product;
                if (some_longer) {
                    taken<T> rest = shuffle_from(term, (mine.group << mine.log) + ((t << width_log) & (size - 1)));
                    if (t >= teams)
                        rest.length = 0;
                    for (int e = width + mine.lane; e < rest.length; e += size) {
                        const int32_t column = j.m.b.col[rest.begin + e];
                        if (SEGMENTS && column > within.last)
                            break;
                        sums[find_place(keys, log, column)] +=
                            rest.a * (j.b_val != nullptr ? load_whole(j.b_val + rest.begin + e) : constants<T>::one());
                    }
                }
                __syncwarp();
            }
        }
    }
    for (int i = mine.lane; i < n; i += size)
        j.val[from + i] = sums[i];
    __syncwarp();
}

/* The sums of all segments and of the rows of the lists. */
template <typename T>
__global__ void __launch_bounds__(BLOCK, least_blocks<T>) sum_rows(numeric_job<T> j, int64_t tasks)
{
    __shared__ warp_memory<T> memory_of_warps[BLOCK_WARPS];
    const int warp = (int)threadIdx.x / warp_lanes;
    for (int64_t task = (int64_t)blockIdx.x * BLOCK_WARPS + warp; task < tasks;
         task += (int64_t)gridDim.x * BLOCK_WARPS) {
        if (task < j.segment_count)
            sum_task<true>(j, task, &memory_of_warps[warp]);
        else
            sum_task<false>(j, task - j.segment_count, &memory_of_warps[warp]);
    }
}

/* The rows of the class TINY: a thread has a row, with its columns and sums in registers. */
template <typename T> __global__ void __launch_bounds__(BLOCK) sum_tiny(numeric_job<T> j, const uint8_t *classes)
{
    for (int64_t row = (int64_t)blockIdx.x * BLOCK + threadIdx.x; row < j.m.rows; row += (int64_t)gridDim.x * BLOCK) {
        if (classes[row] != TINY)
            continue;
        const int64_t from = j.row_ptr[row];
        const int n = (int)(j.row_ptr[row + 1] - from);
        int32_t list[TINY_COLUMNS];
        T sums[TINY_COLUMNS];
#pragma unroll
        for (int s = 0; s < TINY_COLUMNS; s++) {
            list[s] = s < n ? j.col[from + s] : -1;
            sums[s] = constants<T>::minus_zero();
        }
        const int64_t begin = j.m.a.offset(row);
        const row_of_a entries = {begin, (int)(j.m.a.offset(row + 1) - begin)};
        taken<T> next = take<false>(j, entries, 0, {0, 0});
        for (int k = 0; k < entries.entries; k++) {
            const taken<T> now = next;
            next = take<false>(j, entries, k + 1, {0, 0});
            for (int i = 0; i < now.length; i++) {
                const int32_t c = j.m.b.col[now.begin + i];
                const T product =
                    now.a * (j.b_val != nullptr ? load_whole(j.b_val + now.begin + i) : constants<T>::one());
#pragma unroll
                for (int s = 0; s < TINY_COLUMNS; s++)
                    if (list[s] == c)
                        sums[s] += product;
            }
        }
#pragma unroll
        for (int s = 0; s < TINY_COLUMNS; s++)
            if (s < n)
                j.val[from + s] = sums[s];
    }
}

} // namespace spgemm

#endif
