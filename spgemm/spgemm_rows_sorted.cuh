/* Method "rows", symbolic phase: rows whose columns a block sorts, instead of setting bits.
 *
 * Idea:       a bitmap of many columns takes long to clear and to read, however few columns a row has.
 *             If a row has at most 16 products for each thread, the block loads the columns of all of
 *             them, sorts them, and keeps each once. Each warp sorts a list in registers; then pairs of
 *             lists are merged in shared memory. A thread finds its part of the merged list by a binary
 *             search.
 * Used when:  the columns of B need more than one window of visit_long.
 * Launches:   two: blocks of block_threads threads, then blocks of WIDE_BLOCK threads for the rows with
 *             more products. visit_long has the rest.
 * Source:     merge path: O. Green, R. McColl, D. A. Bader, "GPU merge path", ICS 2012.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPGEMM_ROWS_SORTED_CUH
#define SPGEMM_ROWS_SORTED_CUH

#include "spgemm/spgemm_rows_symbolic.cuh"

/* The most products of a row for each thread, at most 16. Tests build with few. */
#ifndef SPMV_SPGEMM_SORTED
#define SPMV_SPGEMM_SORTED 16
#endif

namespace spgemm
{

enum { WIDE_BLOCK = 1024, SORTED_EACH = SPMV_SPGEMM_SORTED, SORT_ROOM = 16 /* for each thread */ };
static_assert((int)SORTED_EACH <= (int)SORT_ROOM, "the columns fit the room");

/* Blocks that a multiprocessor holds, by their registers. */
template <int THREADS> constexpr int sorted_resident = THREADS == WIDE_BLOCK ? 1 : 5;

/* merged = numbers N t ... N t + N - 1, t the thread, after each pair of lists is merged. Lists have `length`
 * ascending numbers each. */
template <int N> __device__ __forceinline__ void merge_sorted(const int *keys, int length, unsigned (&merged)[N])
{
    const int at = (int)threadIdx.x * N, base = at / (2 * length) * (2 * length), before = at - base;
    const int *const one = keys + base, *const two = one + length;
    int low = before > length ? before - length : 0, high = before < length ? before : length;
    while (low < high) { /* how many of `before` numbers are of the first list */
        const int middle = (low + high) / 2;
        if (one[middle] <= two[before - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    int i = low, k = before - low;
    int first = i < length ? one[i] : INT32_MAX, second = k < length ? two[k] : INT32_MAX;
#pragma unroll
    for (int r = 0; r < N; r++) {
        const bool takes_first = first <= second;
        merged[r] = (unsigned)(takes_first ? first : second);
        if (takes_first)
            first = ++i < length ? one[i] : INT32_MAX;
        else
            second = ++k < length ? two[k] : INT32_MAX;
    }
}

/* Sorts the first `count` keys, at most N for each thread, and stores each once. Returns the number of
 * different ones; *place: of the first one in the stored columns, or UINT64_MAX if there is no room. For
 * all threads of a block, after a barrier. */
template <int N, int THREADS>
__device__ __forceinline__ int store_sorted(int *keys, int count, const stored_columns &stored, counters *found,
                                            unsigned long long *place)
{
    const int thread = (int)threadIdx.x;
    unsigned key[N];
#pragma unroll
    for (int r = 0; r < N; r++)
        key[r] = thread * N + r < count ? (unsigned)keys[thread * N + r] : INT32_MAX;
    sort_across(key, thread % warp_lanes, warp_lanes);
    for (int length = N * warp_lanes;; length *= 2) {
        __syncthreads(); /* all have read the keys */
#pragma unroll
        for (int r = 0; r < N; r += 4)
            *(int4 *)&keys[thread * N + r] = {(int)key[r], (int)key[r + 1], (int)key[r + 2], (int)key[r + 3]};
        __syncthreads();
        if (length >= count) /* the numbers after the first list are INT32_MAX */
            break;
        merge_sorted(keys, length, key);
    }
    unsigned last = thread > 0 ? (unsigned)keys[thread * N - 1] : (unsigned)FREE;
    unsigned kept = 0;
#pragma unroll
    for (int r = 0; r < N; r++) {
        kept |= key[r] != last && key[r] != INT32_MAX ? 1u << r : 0;
        last = key[r];
    }
    int n = 0;
    const int before = block_places<THREADS / warp_lanes>(__popc(kept), &n);
    if (thread == 0)
        *place = reserve(stored, found, n);
    __syncthreads();
    if (*place != UINT64_MAX) {
        int32_t *to = stored.columns + *place + before;
#pragma unroll
        for (int r = 0; r < N; r++)
            if ((kept >> r & 1) != 0)
                *to++ = (int32_t)key[r];
    }
    return n;
}

/* Counts the columns of the rows of a list, and stores them. Rows with too many products are appended
 * to `others`. Other parameters: as for visit_short. */
template <int THREADS>
__global__ void __launch_bounds__(THREADS, sorted_resident<THREADS>)
    count_sorted(operands m, const item *rows, const unsigned long long *count, int64_t *lengths, item *others,
                 unsigned long long *other_count, stored_columns stored, counters *found)
{
    SPMV_DYNAMIC_SHARED(memory);
    int *const keys = (int *)memory;
    __shared__ unsigned long long place;
    constexpr int most = SORTED_EACH * THREADS;
    for (int64_t i = blockIdx.x; i < (int64_t)*count; i += gridDim.x) {
        const int64_t row = row_of(rows[i]);
        const int products = for_columns_dealt<THREADS>(m, m.a.offset(row), m.a.offset(row + 1), most,
                                                        [=](int32_t c, int t) { keys[t] = c; });
        if (products > most) {
            if (threadIdx.x == 0)
                others[atomicAdd(other_count, 1ull)] = rows[i];
            continue;
        }
        const int n = products <= 4 * THREADS   ? store_sorted<4, THREADS>(keys, products, stored, found, &place)
                      : products <= 8 * THREADS ? store_sorted<8, THREADS>(keys, products, stored, found, &place)
                                                : store_sorted<16, THREADS>(keys, products, stored, found, &place);
        if (threadIdx.x == 0) {
            lengths[row] = n;
            if (place != UINT64_MAX)
                stored.places[row] = (uint32_t)place;
        }
        __syncthreads();
    }
}

} // namespace spgemm

#endif
