/* Method "rows", numeric phase: the values of C. One launch for the fragments and the rows of the
 * lists, the longest first, and one for the TINY rows.
 *
 *     c_ij = sum over ascending k of a_ik b_kj
 *
 * A subwarp has a row of C, or a warp has a fragment of a long row. Its columns are in
 * shared memory in ascending order, with a sum for each. The lanes load as many entries of the row
 * of A at a time as the subwarp has lanes, with the offsets of the rows of B. Then each lane takes a
 * product: it loads the entry of B, multiplies, and finds the place of the column by a binary
 * search. (A hash table takes more instructions: it has to be filled, and the lanes of a warp wait
 * for the one whose search is the longest.)
 *
 * For a fragment, only a part of a row of B is needed, whose end is not known. So each team of
 * lanes takes one of these rows. If it has more entries than the team has lanes, the whole warp
 * adds the others.
 *
 * Order: the products are loaded at the same time, but those of one entry of A are added after those
 * of the entry before. The columns of a row of B differ, so its lanes add to different places. No
 * atomic operations are needed and k ascends in each sum.
 *
 * The sums start with -0. x + -0 has the bits of x for each x, also for 0 and -0. So a sum has the
 * same bits as if its first product had started it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPGEMM_ROWS_NUMERIC_CUH
#define SPGEMM_ROWS_NUMERIC_CUH

#include "device/complex.cuh"
#include "spgemm/spgemm_rows_symbolic.cuh"

namespace spgemm
{

template <typename T> struct numeric_job {
    operands m;
    const T *a_val, *b_val; /* NULL: all are 1 */
    const int64_t *row_ptr; /* of C */
    const int32_t *col;
    T *val;
    row_lists lists;
    const fragment *fragments;
    int64_t fragment_count;
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

#define CONSTANTS(NAME, name, value, C, CLASS, ARG)                                                                    \
    template <> struct constants<C> {                                                                                  \
        static __device__ C one()                                                                                      \
        {                                                                                                              \
            return {1, 0};                                                                                             \
        }                                                                                                              \
        static __device__ C minus_zero()                                                                               \
        {                                                                                                              \
            return {-0.0f, -0.0f};                                                                                     \
        }                                                                                                              \
    };
SPMV_COMPLEX_TYPES(CONSTANTS, )
#undef CONSTANTS

/* An entry of A with its row of B, or the part of that row in a fragment. */
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

template <typename T> __device__ row_of_a entries_of(const numeric_job<T> &j, item row)
{
    const int64_t begin = j.m.a.offset(row_of(row));
    return {begin, (int)(j.m.a.offset(row_of(row) + 1) - begin)};
}

/* The columns of a fragment. */
struct columns {
    int32_t first, last;
};

/* Entry k of a row, with length 0 if the row has no such entry. PART: without the entries of B
 * before the fragment; the length is 0 if there is none in the fragment. */
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
        begin = first_column_from(j.m.b.col, begin, stop, within.first);
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

/* The batches of 32 entries of a row of A that have products in a fragment, in ascending order: all
 * batches, or those of the fragment's filter. Used by a whole warp. */
struct batches {
    const unsigned *filter; /* NULL: all */
    int words;              /* of the filter */
    int window;             /* the first of the 32 words that the lanes hold */
    unsigned word;          /* of this lane */

    /* The first entry of the batch after that of entry `base`; at least 32 * 32 * words if there is
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

/* Shared memory of a warp. A subwarp's part has SLOTS + 1 places for each lane, of which one is not used:
 * so all subwarps begin in different banks, and their searches do not conflict. */
enum { PLACES = SLOTS + 1 };
template <typename T> struct warp_memory {
    int keys[warp_lanes * PLACES];
    alignas(16) T sums[warp_lanes * PLACES];
    int order[warp_lanes]; /* the lanes whose entry has products in the fragment */
};

/* The columns of n entries of C, from entry `from` on, and a sum for each. Returns the smallest log
 * with n < 2^log for all subwarps of the warp. */
template <typename T>
__device__ __forceinline__ int make_table(const numeric_job<T> &j, const assignment &mine, int64_t from, int n,
                                          int *keys, T *sums)
{
    const int log = log_above(warp_most(n));
    for (int i = mine.lane; i < 1 << log; i += mine.size()) {
        keys[i] = i < n ? j.col[from + i] : INT32_MAX;
        sums[i] = constants<T>::minus_zero();
    }
    return log;
}

/* --------------------------------------------------------------------- fragments */

/* Adds the entries of a row of B after those that its team has, by the whole warp. */
template <typename T>
__device__ void add_rest(const numeric_job<T> &j, const taken<T> &rest, int width, int log, columns within,
                         const int *keys, T *sums)
{
    for (int e = width + (int)threadIdx.x % warp_lanes; e < rest.length; e += warp_lanes) {
        const int32_t column = j.m.b.col[rest.begin + e];
        if (column > within.last)
            break;
        sums[find_place(keys, log, column)] +=
            rest.a * (j.b_val != nullptr ? load_whole(j.b_val + rest.begin + e) : constants<T>::one());
    }
}

/* Adds the products of the entries `now` of A, in their order. order[0 ... left - 1]: the lanes whose
 * entry has products. */
template <typename T>
__device__ __forceinline__ void add_to_fragment(const numeric_job<T> &j, const taken<T> &now, const int *order,
                                                int left, int width_log, int log, columns within, const int *keys,
                                                T *sums)
{
    const int lane = (int)threadIdx.x % warp_lanes, width = 1 << width_log, tlane = lane & (width - 1);
    const int team = lane >> width_log, teams = warp_lanes >> width_log;
    taken<T> next = {constants<T>::one(), 0, 0};
    int32_t next_col = 0;
    T next_b = constants<T>::one();
    bool next_there = false;
    const auto fetch = [&](int i) {
        next = shuffle_from(now, i < left ? order[i] : 0);
        if (i >= left)
            next.length = 0;
        next_there = tlane < next.length;
        if (next_there) {
            next_col = j.m.b.col[next.begin + tlane];
            next_there = next_col <= within.last;
        }
        if (next_there && j.b_val != nullptr)
            next_b = load_whole(j.b_val + next.begin + tlane);
    };
    const int steps = (left + teams - 1) >> (5 - width_log);
    if (steps > 0)
        fetch(team);
    for (int s = 1; s <= steps; s++) {
        const taken<T> term = next;
        const int32_t c = next_col;
        const T b = next_b;
        const bool there = next_there;
        /* the first entries of the next step are loaded while this one is added */
        fetch(s * teams + team);
        const int place = there ? find_place(keys, log, c) : 0;
        const T product = there ? term.a * b : constants<T>::one();
        /* the last lane's column may already be after the fragment */
        const bool some_longer = __ballot_sync(all_lanes, there && tlane == width - 1 && term.length > width) != 0;
        for (int t = 0; t < teams; t++) {
            if (there && team == t)
                sums[place] += product;
            if (some_longer)
                add_rest(j, shuffle_from(term, t << width_log), width, log, within, keys, sums);
            __syncwarp();
        }
    }
}

/* The sums of fragment `task`. Called by a warp. */
template <typename T>
__device__ __forceinline__ void sum_fragment(const numeric_job<T> &j, int64_t task, warp_memory<T> *memory)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const fragment s = j.fragments[task];
    const assignment mine = {5, lane, 0, true, s.row};
    const int64_t left = j.row_ptr[row_of(s.row) + 1] - s.begin;
    const int n = left < capacity(LEVELS - 1) ? (int)left : capacity(LEVELS - 1);
    const row_of_a row = entries_of(j, s.row);
    const int log = make_table(j, mine, s.begin, n, memory->keys, memory->sums);
    const columns within = {j.col[s.begin], j.col[s.begin + n - 1]};
    batches list = {s.filter, (int)filter_words(row.entries), -warp_lanes, 0};
    __syncwarp();
    int64_t base = list.filter != nullptr ? list.next(0) : 0;
    taken<T> entries = take<true>(j, row, (int)base + lane, within);
    while (base < row.entries) {
        const taken<T> now = entries;
        const int64_t after = list.next(base);
        const unsigned there = __ballot_sync(all_lanes, now.length > 0);
        if (now.length > 0)
            memory->order[__popc(there & ((1u << lane) - 1))] = lane;
        __syncwarp();
        base = after < row.entries ? after : (int64_t)row.entries;
        entries = take<true>(j, row, (int)base + lane, within);
        add_to_fragment(j, now, memory->order, __popc(there), width_log_of(s.row), log, within, memory->keys,
                        memory->sums);
        __syncwarp(); /* order changes */
    }
    for (int i = lane; i < n; i += warp_lanes)
        j.val[s.begin + i] = memory->sums[i];
    __syncwarp();
}

/* ------------------------------------------------------------ rows of the lists */

/* A product of a subwarp, loaded but not added yet. */
template <typename T> struct term {
    T a, b;
    int32_t col;
    int entry; /* the lane that has the entry of A */
    bool there;
};

/* Loads product t of the subwarp's entries `now`. through: the products of the entries up to that of a
 * lane. */
template <typename T>
__device__ __forceinline__ term<T> load_term(const numeric_job<T> &j, const assignment &mine, const taken<T> &now,
                                             int through, int all, int t)
{
    term<T> x = {constants<T>::one(), constants<T>::one(), 0, mine.subwarp << mine.log, t < all};
    x.entry = first_above(through, x.entry, mine.size(), t);
    const int64_t at = __shfl_sync(all_lanes, (long long)(now.begin - (through - now.length)), x.entry) + t;
    x.a = shuffle_by(now.a, [=](auto word) { return __shfl_sync(all_lanes, word, x.entry); });
    if (x.there) {
        x.col = j.m.b.col[at];
        if (j.b_val != nullptr)
            x.b = load_whole(j.b_val + at);
    }
    return x;
}

/* Adds the products of the entries `now` of A. The lanes of a subwarp take neighbouring products. Those
 * of one entry have different columns and are added at once; those of the next entry after them. */
template <typename T>
__device__ __forceinline__ void add_to_row(const numeric_job<T> &j, const assignment &mine, const taken<T> &now,
                                           int log, const int *keys, T *sums)
{
    const int size = mine.size(), first_lane = mine.subwarp << mine.log;
    int through = now.length;
    for (int distance = 1; distance < size; distance *= 2) {
        const int other = __shfl_up_sync(all_lanes, through, (unsigned)distance);
        through += mine.lane >= distance ? other : 0;
    }
    const int all = __shfl_sync(all_lanes, through, first_lane + size - 1), most = warp_most(all);
    term<T> next = load_term(j, mine, now, through, all, mine.lane);
    for (int first = 0; first < most; first += size) {
        const term<T> x = next;
        next = load_term(j, mine, now, through, all, first + size + mine.lane);
        const int place = x.there ? find_place(keys, log, x.col) : 0;
        const T product = x.a * x.b;
        const int turn = x.entry - __shfl_sync(all_lanes, x.entry, first_lane);
        const int turns = warp_most(x.there ? turn + 1 : 0);
#pragma unroll 1
        for (int t = 0; t < turns; t++) {
            if (x.there && turn == t)
                sums[place] += product;
            __syncwarp();
        }
    }
}

/* The sums of the rows that `task` has in the lists. Called by a warp. */
template <typename T>
__device__ __forceinline__ void sum_rows_of_task(const numeric_job<T> &j, int64_t task, warp_memory<T> *memory)
{
    const assignment mine = assign(j.lists, task);
    const int64_t from = mine.mine ? j.row_ptr[row_of(mine.row)] : 0;
    const int n = mine.mine ? (int)(j.row_ptr[row_of(mine.row) + 1] - from) : 0;
    const row_of_a row = mine.mine ? entries_of(j, mine.row) : row_of_a{0, 0};
    const int table = (mine.subwarp << mine.log) * PLACES;
    int *const keys = memory->keys + table;
    T *const sums = memory->sums + table;
    /* the first loads are on their way while the table is made */
    taken<T> entries = take<false>(j, row, mine.lane, {0, 0});
    const int log = make_table(j, mine, from, n, keys, sums);
    __syncwarp();
    for (int base = 0; __ballot_sync(all_lanes, base < row.entries) != 0; base += mine.size()) {
        const taken<T> now = entries;
        entries = take<false>(j, row, base + mine.size() + mine.lane, {0, 0});
        add_to_row(j, mine, now, log, keys, sums);
    }
    for (int i = mine.lane; i < n; i += mine.size())
        j.val[from + i] = sums[i];
    __syncwarp();
}

/* The sums of all fragments and of the rows of the lists. */
template <typename T>
__global__ void __launch_bounds__(BLOCK, least_blocks<T>) sum_rows(numeric_job<T> j, int64_t tasks)
{
    __shared__ warp_memory<T> memory_of_warps[BLOCK_WARPS];
    const int warp = (int)threadIdx.x / warp_lanes;
    for (int64_t task = (int64_t)blockIdx.x * BLOCK_WARPS + warp; task < tasks;
         task += (int64_t)gridDim.x * BLOCK_WARPS) {
        if (task < j.fragment_count)
            sum_fragment(j, task, &memory_of_warps[warp]);
        else
            sum_rows_of_task(j, task - j.fragment_count, &memory_of_warps[warp]);
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
