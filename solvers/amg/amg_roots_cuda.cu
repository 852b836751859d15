/* The last rounds of the independent set on CUDA. The steps mis_spread and mis_decide visit all rows; after
 * some rounds few rows are undecided. They are in a list then, and a subwarp looks at all rows within
 * distance 2 of each. The rounds have the same results: all rows decide by the keys before the round.
 * A round in which a row turns out to be too long for this changes nothing, and is the last one.
 *
 * On ranks, rows at distance 2 may be of others, so both steps remain, for lists of rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"

extern "C" {
#include "solvers/amg/amg_internal.h"
}

namespace
{

enum { THREADS = 128 };

/* Rows with more couplings are too long: each of their neighbours would read all of them. Tests build with
 * few. */
#ifndef SPMV_AMG_ROOTS_ROW
#define SPMV_AMG_ROOTS_ROW 4096
#endif

constexpr unsigned all_lanes = 0xffffffffu;

/* Rows in any order. */
struct row_list {
    int32_t *rows;
    unsigned long long *count;
};

/* Appends the rows of lanes with `mine`. Called by all lanes of a warp. */
__device__ void append(const row_list &list, bool mine, int64_t row)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const unsigned all = __ballot_sync(all_lanes, mine);
    unsigned long long begin = 0;
    if (lane == 0 && all != 0)
        begin = atomicAdd(list.count, (unsigned long long)__popc(all));
    begin = __shfl_sync(all_lanes, begin, 0);
    if (mine)
        list.rows[begin + (unsigned)__popc(all & ((1u << lane) - 1))] = (int32_t)row;
}

struct is_undecided {
    const int32_t *undecided;

    __device__ bool operator()(int64_t i) const
    {
        return undecided[i] != 0;
    }
};

struct is_not_final {
    const uint64_t *near_key;

    __device__ bool operator()(int64_t i) const
    {
        return !amg_spread_is_final(near_key[i]);
    }
};

/* Lists the rows from `begin` to end - 1 that are wanted. A warp adds to the common counter once for several rows of
 * each lane. */
template <typename Wanted>
__global__ void __launch_bounds__(THREADS) collect(Wanted wanted, int64_t begin, int64_t end, row_list to)
{
    enum { EACH = 16, STEP = EACH * warp_lanes };
    const int lane = (int)threadIdx.x % warp_lanes;
    const int64_t warps = (int64_t)gridDim.x * (THREADS / warp_lanes);
    for (int64_t first = begin + ((int64_t)blockIdx.x * THREADS + threadIdx.x) / warp_lanes * STEP; first < end;
         first += warps * STEP) {
        unsigned mine[EACH];
        int count = 0;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int64_t i = first + e * warp_lanes + lane;
            mine[e] = __ballot_sync(all_lanes, i < end && wanted(i));
            count += __popc(mine[e]);
        }
        unsigned long long at = 0;
        if (lane == 0 && count > 0)
            at = atomicAdd(to.count, (unsigned long long)count);
        at = __shfl_sync(all_lanes, at, 0);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            if ((mine[e] >> lane & 1u) != 0)
                to.rows[at + (unsigned)__popc(mine[e] & ((1u << lane) - 1))] = (int32_t)(first + e * warp_lanes + lane);
            at += (unsigned)__popc(mine[e]);
        }
    }
}

template <typename Wanted>
spmv_status list_rows(spmv_context *ctx, const Wanted &wanted, int64_t first, int64_t n, row_list to)
{
    const int64_t most = (int64_t)((const cuda_state *)ctx->device)->multiprocessors * 16;
    const int blocks = (int)min_i64(ceil_divide(n, (int64_t)THREADS), most);
    return launch(ctx, "amg list rows", blocks, THREADS, collect<Wanted>, wanted, first, first + n, to);
}

/* verdict: of each row of the list the state that it gets. LANES lanes have a row, EACH of them one of its
 * neighbours. Clears the counter `next_but_one`. Sets *too_long if a row is. */
template <int LANES, int EACH>
__global__ void __launch_bounds__(THREADS) decide(amg_csr f, const uint64_t *key, row_list list, int32_t *verdict,
                                                  unsigned long long *next_but_one, unsigned long long *too_long)
{
    const int lane = (int)threadIdx.x % LANES;
    const int64_t count = (int64_t)*list.count;
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *next_but_one = 0;
    for (int64_t first = (int64_t)blockIdx.x * (THREADS / LANES); first < count;
         first += (int64_t)gridDim.x * (THREADS / LANES)) {
        const int64_t at = first + (int)threadIdx.x / LANES;
        const int64_t row = at < count ? list.rows[at] : 0;
        const int64_t end = at < count ? amg_offset(&f, row + 1) : 0;
        const uint64_t own = key[row];
        uint64_t most = own;
        for (int64_t k = at < count ? amg_offset(&f, row) + lane / EACH : 0; k < end; k += LANES / EACH) {
            const int32_t near = f.col[k];
            const int64_t begin = amg_offset(&f, near);
            int64_t last = amg_offset(&f, near + (int64_t)1);
            if (last - begin > SPMV_AMG_ROOTS_ROW) {
                *too_long = 1;
                last = begin;
            }
            most = key[near] > most ? key[near] : most;
#pragma unroll 4
            for (int64_t e = begin + lane % EACH; e < last; e += EACH) {
                const uint64_t other = key[f.col[e]];
                most = other > most ? other : most;
            }
        }
        for (int distance = 1; distance < LANES; distance *= 2) {
            const uint64_t other = __shfl_xor_sync(all_lanes, (unsigned long long)most, distance);
            most = other > most ? other : most;
        }
        if (lane == 0 && at < count)
            verdict[at] = (int32_t)(most == own                         ? AMG_ROOT_STATE
                                    : amg_state(most) == AMG_ROOT_STATE ? AMG_EXCLUDED
                                                                        : AMG_UNDECIDED);
    }
}

/* Gives the rows their states; those that stay undecided are appended to `next`. Nothing if *too_long. */
__global__ void __launch_bounds__(THREADS)
    apply(uint64_t *key, row_list list, const int32_t *verdict, row_list next, const unsigned long long *too_long)
{
    const int64_t count = *too_long != 0 ? 0 : (int64_t)*list.count;
    for (int64_t first = (int64_t)blockIdx.x * THREADS; first < count; first += (int64_t)gridDim.x * THREADS) {
        const int64_t at = first + threadIdx.x;
        const int64_t row = at < count ? list.rows[at] : 0;
        const bool stays = at < count && (uint64_t)verdict[at] == AMG_UNDECIDED;
        if (at < count && !stays)
            key[row] = amg_key((uint64_t)verdict[at], row);
        append(next, stays, row);
    }
}

/* Rounds until no row is left. The host looks after each ROUNDS_AT_ONCE, some of which may be empty. */
template <int LANES, int EACH>
spmv_status run_rounds(spmv_context *ctx, const amg_aggregates *s, const amg_root_lists *r, int64_t n, bool *too_long)
{
    enum { ROUNDS_AT_ONCE = 14 };
    unsigned long long *const counts = (unsigned long long *)r->counts, found[AMG_ROOTS_COUNTS] = {};
    const int64_t most = (int64_t)((const cuda_state *)ctx->device)->multiprocessors * 16;
    const int blocks = (int)min_i64(ceil_divide(n, (int64_t)THREADS), most);
    const int wide_blocks = (int)min_i64(ceil_divide(n, (int64_t)(THREADS / LANES)), most);
    spmv_status st =
        cuda_check(ctx, cudaMemsetAsync(counts, 0, sizeof found, (cudaStream_t)ctx->stream), "cudaMemsetAsync");
    if (st == SPMV_OK)
        st = list_rows(ctx, is_undecided{s->undecided}, 0, n, row_list{r->lists[0], counts});
    for (int round = 0; st == SPMV_OK; round++) {
        const row_list list = {r->lists[round % 2], counts + round % 3};
        const row_list next = {r->lists[(round + 1) % 2], counts + (round + 1) % 3};
        st = launch(ctx, "amg decide", wide_blocks, THREADS, decide<LANES, EACH>, s->f, (const uint64_t *)s->key, list,
                    s->undecided, counts + (round + 2) % 3, counts + 3);
        if (st == SPMV_OK)
            st = launch(ctx, "amg apply", blocks, THREADS, apply, s->key, list, (const int32_t *)s->undecided, next,
                        (const unsigned long long *)(counts + 3));
        if (st != SPMV_OK || (round + 1) % ROUNDS_AT_ONCE != 0)
            continue;
        st = spmv_download(ctx, counts, found, (int64_t)sizeof found);
        *too_long = found[3] != 0;
        if (found[(round + 1) % 3] == 0 || *too_long)
            break;
    }
    return st;
}

/* The largest of key_i and those of the neighbours of row i. Called by all lanes of a warp. */
template <int LANES> __device__ uint64_t largest_key(const amg_csr &f, const uint64_t *key, bool there, int64_t i)
{
    const int lane = (int)threadIdx.x % LANES;
    uint64_t most = there ? key[i] : 0;
    for (int64_t k = there ? amg_offset(&f, i) + lane : 0, end = there ? amg_offset(&f, i + 1) : 0; k < end; k += LANES)
        most = key[f.col[k]] > most ? key[f.col[k]] : most;
    for (int distance = 1; distance < LANES; distance *= 2) {
        const uint64_t other = __shfl_xor_sync(all_lanes, (unsigned long long)most, distance);
        most = other > most ? other : most;
    }
    return most;
}

/* The step mis_spread, or mis_decide, for the rows of a list, each by LANES lanes. */
template <int LANES, bool SPREAD> __global__ void __launch_bounds__(THREADS) visit_rows(amg_aggregates s, row_list list)
{
    const int64_t count = (int64_t)*list.count;
    for (int64_t first = (int64_t)blockIdx.x * (THREADS / LANES); first < count;
         first += (int64_t)gridDim.x * (THREADS / LANES)) {
        const int64_t at = first + (int)threadIdx.x / LANES;
        const int64_t i = at < count ? list.rows[at] : 0;
        const uint64_t before = SPREAD ? s.near_key[i] : s.key[i];
        const bool open = SPREAD ? !amg_spread_is_final(before) : amg_state(before) == AMG_UNDECIDED;
        const bool there = at < count && open;
        uint64_t most = largest_key<LANES>(s.f, SPREAD ? s.key : s.near_key, there, i);
        if (at >= count || (int)threadIdx.x % LANES != 0)
            continue;
        if (SPREAD) {
            if (open)
                s.near_key[i] = most;
            continue;
        }
        const bool root = open && most == before, excluded = open && !root && amg_state(most) == AMG_ROOT_STATE;
        if (root || excluded)
            s.key[i] = amg_with_state(before, root ? AMG_ROOT_STATE : AMG_EXCLUDED);
        s.undecided[i] = open && !root && !excluded;
    }
}

enum { LISTED_LANES = 8 };

spmv_status launch_visits(spmv_context *ctx, void (*kernel)(amg_aggregates, row_list), const amg_aggregates &s,
                          const row_list &list, int64_t n)
{
    const int64_t most = (int64_t)((const cuda_state *)ctx->device)->multiprocessors * 16;
    const int blocks = (int)min_i64(ceil_divide(n, (int64_t)(THREADS / LISTED_LANES)), most);
    return n == 0 ? SPMV_OK : launch(ctx, "amg visit rows", blocks, THREADS, kernel, s, list);
}

} // namespace

extern "C" spmv_status amg_roots_cuda(spmv_context *ctx, const struct amg_aggregates *s, const struct amg_root_lists *r,
                                      int64_t n, bool *too_long)
{
    *too_long = false;
    return on_device(ctx, [=] {
        return r->few ? run_rounds<8, 1>(ctx, s, r, n, too_long) : run_rounds<32, 4>(ctx, s, r, n, too_long);
    });
}

extern "C" spmv_status amg_list_roots_cuda(spmv_context *ctx, const struct amg_aggregates *s,
                                           const struct amg_root_lists *r, int64_t first, int64_t n)
{
    return on_device(ctx, [=] {
        unsigned long long *const count = (unsigned long long *)r->counts;
        spmv_status st =
            cuda_check(ctx, cudaMemsetAsync(count, 0, 2 * sizeof *count, (cudaStream_t)ctx->stream), "cudaMemsetAsync");
        if (st == SPMV_OK && n > 0)
            st = list_rows(ctx, is_not_final{s->near_key}, first, n, row_list{r->lists[0], count});
        if (st == SPMV_OK && n > 0)
            st = list_rows(ctx, is_undecided{s->undecided}, first, n, row_list{r->lists[1], count + 1});
        return st;
    });
}

extern "C" spmv_status amg_spread_listed_cuda(spmv_context *ctx, const struct amg_aggregates *s,
                                              const struct amg_root_lists *r, int64_t n)
{
    return on_device(ctx, [=] {
        const row_list list = {r->lists[0], (unsigned long long *)r->counts};
        return launch_visits(ctx, visit_rows<LISTED_LANES, true>, *s, list, n);
    });
}

extern "C" spmv_status amg_decide_listed_cuda(spmv_context *ctx, const struct amg_aggregates *s,
                                              const struct amg_root_lists *r, int64_t n)
{
    return on_device(ctx, [=] {
        const row_list list = {r->lists[1], (unsigned long long *)r->counts + 1};
        return launch_visits(ctx, visit_rows<LISTED_LANES, false>, *s, list, n);
    });
}
