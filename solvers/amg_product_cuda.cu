/* The matrix of the next level on CUDA: C = R (A P), each of the two products in one pass.
 *
 *     (A P)_ij = sum over ascending k of a_ik p_kj,    c_ij = sum over ascending k of r_ik (A P)_kj
 *
 * A general sparse product first finds how many entries each row has, then their columns, then their
 * sums (spgemm/). Here most rows have few columns and A P is needed once, so one pass is enough.
 *
 * A lane has a row if there are many rows with few products. It goes through them in their order, and
 * adds them to sums in its table. Otherwise a warp has a row. Its lanes load neighbouring products; a
 * hash of the column says to which lane's table each belongs, and that lane adds it. In both cases only
 * one lane uses a table, and k ascends in each sum. So nothing is atomic, and the values have the same bits
 * as those of a general product. The tables of a block lie side by side: place s of lane t is at s times
 * the threads plus t, so lanes have no bank conflicts.
 *
 * A finished row is written to the next free place of a common array, with its entries in any order. In
 * rows of A P the order does not matter, because an entry of C takes at most one of them. Rows of C are
 * sorted when they are copied to their final places, once all lengths are known.
 *
 * A row with too many columns for its tables goes to a list, for warps with large tables. If these are too
 * small, or the common array, the length of a row of C becomes larger than the array, and the caller takes
 * the general products.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "block.cuh"
#include "dispatch.cuh"
#include "launch.cuh"

extern "C" {
#include "amg_internal.h"
}

namespace
{

enum { FREE = -1 };

/* log2 of the places of a lane's table. Tests build with small ones. Small tables let a multiprocessor
 * hold more warps. */
#ifndef SPMV_AMG_TABLE_LOG
#define SPMV_AMG_TABLE_LOG 5
#endif
enum { LARGE = SPMV_AMG_TABLE_LOG, SMALL = LARGE - 2 };

/* A lane has a row if there are so many products on average at most. On an H200, a lane is faster than a warp
 * for 16 and for 90 products. */
enum { FEW_PRODUCTS = 120 };

/* Threads of a block with such tables, which fit in 48 KiB. */
constexpr int threads_for(bool together)
{
    return together ? 64 : 128;
}

/* A warp reserves so many entries of the common array at a time. */
enum { AT_ONCE = 256 };

constexpr unsigned all_lanes = 0xffffffffu;

template <typename T> struct alignas(2 * sizeof(T)) entry {
    T value;
    int32_t column;
};

/* Where a finished row is: its first entry times 2^16, plus the number of entries. NOWHERE: it did not
 * fit. */
typedef uint64_t place;
constexpr place NOWHERE = UINT64_MAX;

/* The rows of the right matrix. find: the number of entries, and the first one; -1 if the row is missing.
 */
template <typename T> struct csr_rows {
    amg_csr m;

    __device__ int find(int32_t row, int64_t *begin) const
    {
        *begin = amg_offset(&m, row);
        return (int)(amg_offset(&m, row + (int64_t)1) - *begin);
    }

    __device__ entry<T> load(int64_t at) const
    {
        return {((const T *)m.val)[at], m.col[at]};
    }
};

template <typename T> struct finished_rows {
    const place *places;
    const entry<T> *entries;

    __device__ int find(int32_t row, int64_t *begin) const
    {
        const place p = places[row];
        *begin = (int64_t)(p >> 16);
        return p == NOWHERE ? -1 : (int)(p & 0xffff);
    }

    __device__ entry<T> load(int64_t at) const
    {
        return entries[at];
    }
};

/* Numbers that kernels count; all are 0 before. */
struct counters {
    unsigned long long taken;  /* entries of the common array */
    unsigned long long listed; /* rows that are left for warps */
};

struct row_list {
    int32_t *rows; /* NULL: all rows, or no list */
    unsigned long long *count;
};

template <typename T, typename Right> struct job {
    int64_t rows;
    amg_csr left;
    Right right;
    place *places;
    entry<T> *entries;
    int64_t room;
    unsigned long long *taken;
    int64_t *lengths; /* of the rows; NULL: not wanted */
    /* for the sum of diagonal elements of entries of the left matrix times their squares; NULL: not
     * wanted */
    const T *diagonal;
    double *mass;
};

/* A lane's table of 2^SLOTS_LOG places for columns of a row. TOGETHER: a warp has the row. */
template <bool TOGETHER, int SLOTS_LOG, typename T> struct table {
    enum {
        SLOTS = 1 << SLOTS_LOG,
        MOST = SLOTS / 4 * 3,
        THREADS = threads_for(TOGETHER),
        OWNER_BITS = TOGETHER ? 5 : 0 /* of a hash */
    };
    int *keys; /* every THREADS-th one */
    T *sums;
    int count;
    bool full;

    __device__ void clear()
    {
#pragma unroll
        for (int s = 0; s < SLOTS; s++)
            keys[s * THREADS] = FREE;
        count = 0;
        full = false;
    }

    /* The high bits of a product (D. E. Knuth, "The Art of Computer Programming" 3, section 6.4). */
    static __device__ uint32_t hash(int32_t column)
    {
        return (uint32_t)column * 2654435769u;
    }

    __device__ void add(int32_t column, T product)
    {
        /* the lanes of a warp leave the search together, then none of them branches */
        int s = (int)(hash(column) >> (32 - OWNER_BITS - SLOTS_LOG)) & (SLOTS - 1), key = keys[s * THREADS];
        while (key != column && key != FREE) {
            s = (s + 1) & (SLOTS - 1);
            key = keys[s * THREADS];
        }
        const T before = sums[s * THREADS];
        const bool fresh = key == FREE;
        full = fresh && count == MOST;
        if (!full) {
            keys[s * THREADS] = column;
            sums[s * THREADS] = fresh ? product : before + product;
        }
        count += fresh;
    }
};

/* An entry of the left matrix with its row of the right one. */
template <typename T> struct part {
    T factor, diagonal;
    int64_t begin;
    int length;
    entry<T> first;
};

/* Adds the products of entries k to end - 1 of the left matrix, by one lane. Returns their mass. Columns, rows and first entries of the
 * right matrix are loaded one step before each other and before they are needed. */
template <typename T, typename Right, typename Table>
__device__ double add_products(const job<T, Right> &j, int64_t k, int64_t end, Table *t)
{
    double mass = 0;
    const T *const values = (const T *)j.left.val;
    part<T> ready = {}, found = {};
    int32_t column = 0;
    T value = 0;
    const auto advance = [&](int64_t next) {
        ready = found;
        if (ready.length > 0)
            ready.first = j.right.load(ready.begin);
        found.length = 0;
        if (next - 1 < end) {
            found.factor = value;
            found.length = j.right.find(column, &found.begin);
            if (j.diagonal != nullptr)
                found.diagonal = j.diagonal[column];
        }
        if (next < end) {
            column = j.left.col[next];
            value = values[next];
        }
    };
    if (k < end) {
        column = j.left.col[k];
        value = values[k];
    }
    advance(k + 1);
    advance(k + 2);
    for (; k < end && !t->full; k++) {
        const part<T> now = ready;
        advance(k + 3);
        t->full = now.length < 0;
        if (j.diagonal != nullptr)
            mass = amg_add_mass(mass, (double)now.diagonal, (double)now.factor);
        entry<T> next = now.first;
        for (int i = 0; i < now.length; i++) {
            const entry<T> e = next;
            if (i + 1 < now.length)
                next = j.right.load(now.begin + i + 1);
            t->add(e.column, now.factor * e.value);
            if (t->full)
                break;
        }
    }
    return mass;
}

/* The same by a warp. owned: 32 numbers in shared memory. */
template <typename T, typename Right, typename Table>
__device__ double add_products_together(const job<T, Right> &j, int64_t k, int64_t end, unsigned *owned, Table *t)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    double mass = 0;
    for (; k < end && __ballot_sync(all_lanes, t->full) == 0; k += warp_lanes) {
        const int entries = end - k < warp_lanes ? (int)(end - k) : (int)warp_lanes;
        part<T> mine = {};
        if (lane < entries) {
            const int32_t column = j.left.col[k + lane];
            mine.factor = ((const T *)j.left.val)[k + lane];
            mine.length = j.right.find(column, &mine.begin);
            if (j.diagonal != nullptr)
                mine.diagonal = j.diagonal[column];
        }
        if (j.diagonal != nullptr)
            for (int i = 0; i < entries; i++)
                mass = amg_add_mass(mass, (double)__shfl_sync(all_lanes, mine.diagonal, i),
                                    (double)__shfl_sync(all_lanes, mine.factor, i));
        t->full = mine.length < 0;
        const int length = mine.length < 0 ? 0 : mine.length, through = warp_inclusive(add_counts(), length);
        const int all = __shfl_sync(all_lanes, through, warp_lanes - 1);
        for (int first = 0; first < all && __ballot_sync(all_lanes, t->full) == 0; first += warp_lanes) {
            const int p = first + lane; /* the lane's product, and the lane with its entry of the left row */
            int from = 0;
#pragma unroll
            for (int half = warp_lanes / 2; half > 0; half /= 2)
                from += __shfl_sync(all_lanes, through, from + half - 1) <= p ? half : 0;
            const int64_t at = __shfl_sync(all_lanes, (long long)(mine.begin - (through - length)), from) + p;
            const T factor = __shfl_sync(all_lanes, mine.factor, from);
            entry<T> e = {};
            if (p < all)
                e = j.right.load(at);
            const T product = factor * e.value;
            const unsigned owner = p < all ? Table::hash(e.column) >> 27 : (unsigned)warp_lanes;
            const unsigned same = __match_any_sync(all_lanes, owner);
            owned[lane] = 0;
            __syncwarp();
            if (p < all && __ffs((int)same) - 1 == lane)
                owned[owner] = same;
            __syncwarp();
            for (unsigned left = owned[lane]; __ballot_sync(all_lanes, left != 0) != 0; left &= left - 1) {
                const int who = left != 0 ? __ffs((int)left) - 1 : 0;
                const int32_t column = __shfl_sync(all_lanes, e.column, who);
                const T term = __shfl_sync(all_lanes, product, who);
                if (left != 0 && !t->full)
                    t->add(column, term);
            }
            __syncwarp(); /* owned changes */
        }
    }
    return mass;
}

/* Entries of the common array that a warp has reserved. Used by its last lane. */
struct reservation {
    unsigned long long begin;
    int left;

    /* The first of n entries, or NOWHERE. */
    __device__ unsigned long long take(unsigned long long *taken, int64_t room, int n)
    {
        if (n > left) {
            const int more = n > AT_ONCE ? n : (int)AT_ONCE;
            begin = atomicAdd(taken, (unsigned long long)more);
            left = begin + (unsigned long long)more <= (unsigned long long)room ? more : 0;
        }
        if (n > left)
            return NOWHERE;
        begin += (unsigned)n;
        left -= n;
        return begin - (unsigned)n;
    }
};

/* Rows of a product by a lane each, or by a warp: those of list `from`, or all. Rows with too many columns
 * are appended to `again`. */
template <bool TOGETHER, int SLOTS_LOG, typename T, typename Right>
__global__ void __launch_bounds__(threads_for(TOGETHER)) multiply_rows(job<T, Right> j, row_list from, row_list again)
{
    typedef table<TOGETHER, SLOTS_LOG, T> own_table;
    constexpr int THREADS = own_table::THREADS, LANES = TOGETHER ? (int)warp_lanes : 1, GROUPS = THREADS / LANES;
    constexpr int PLACES = own_table::SLOTS * THREADS;
    alignas(16) __shared__ char memory[PLACES * (sizeof(T) + sizeof(int))]; /* one array: one base address */
    __shared__ unsigned owned[THREADS];
    const int thread = (int)threadIdx.x, in_warp = thread % warp_lanes, lane = thread % LANES;
    const int first_lane = in_warp - lane;
    const unsigned group = TOGETHER ? all_lanes : 1u << in_warp;
    own_table t = {(int *)(memory + PLACES * sizeof(T)) + thread, (T *)memory + thread, 0, false};
    const int64_t rows = from.rows != nullptr ? (int64_t)*from.count : j.rows;
    reservation reserved = {0, 0};
    for (int64_t first = (int64_t)blockIdx.x * GROUPS; first < rows; first += (int64_t)gridDim.x * GROUPS) {
        const int64_t index = first + thread / LANES;
        const bool mine = index < rows;
        const int64_t row = !mine ? 0 : from.rows != nullptr ? (int64_t)from.rows[index] : index;
        const int64_t entries_begin = mine ? amg_offset(&j.left, row) : 0;
        const int64_t entries_end = mine ? amg_offset(&j.left, row + 1) : 0;
        t.clear();
        const double mass = TOGETHER
                                ? add_products_together(j, entries_begin, entries_end, owned + thread - in_warp, &t)
                                : add_products(j, entries_begin, entries_end, &t);
        __syncwarp();
        const bool fits = (__ballot_sync(all_lanes, t.full) & group) == 0;
        const int n = fits ? t.count : 0, through = warp_inclusive(add_counts(), n);
        unsigned long long begin = in_warp == warp_lanes - 1 ? reserved.take(j.taken, j.room, through) : 0;
        begin = __shfl_sync(all_lanes, begin, warp_lanes - 1);
        const bool found = mine && fits && begin != NOWHERE;
        begin += (unsigned)(through - n);
        const unsigned long long row_begin = __shfl_sync(all_lanes, begin, first_lane);
        const unsigned long long row_end = __shfl_sync(all_lanes, begin + (unsigned)n, first_lane + LANES - 1);
        if (lane == 0 && mine) {
            if (!fits && again.rows != nullptr)
                again.rows[atomicAdd(again.count, 1ull)] = (int32_t)row;
            else
                j.places[row] = found ? row_begin << 16 | (row_end - row_begin) : NOWHERE;
            if (j.lengths != nullptr)
                j.lengths[row] = found ? (int64_t)(row_end - row_begin) : j.room + 1;
            if (j.mass != nullptr)
                j.mass[row] = mass;
        }
        if (found)
            for (int s = 0; s < own_table::SLOTS; s++)
                if (t.keys[s * THREADS] != FREE)
                    j.entries[begin++] = {t.sums[s * THREADS], t.keys[s * THREADS]};
    }
}

/* Copies the rows of C to their final places, with ascending columns: an entry's place is the number of
 * smaller columns. */
template <typename T>
__global__ void __launch_bounds__(block_threads)
    place_rows(int64_t rows, const place *places, const entry<T> *entries, amg_csr c)
{
    enum { LANES = 8, EACH = 8 };
    const int lane = (int)threadIdx.x % LANES;
    for (int64_t row = ((int64_t)blockIdx.x * block_threads + threadIdx.x) / LANES; row < rows;
         row += (int64_t)gridDim.x * (block_threads / LANES)) {
        const place p = places[row];
        const int n = (int)(p & 0xffff);
        const int64_t to = amg_offset(&c, row);
        const entry<T> *const from = entries + (p >> 16);
        for (int first = lane; first < n; first += LANES * EACH) {
            int32_t column[EACH];
            int smaller[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                column[e] = first + e * LANES < n ? from[first + e * LANES].column : INT32_MAX;
                smaller[e] = 0;
            }
            for (int i = 0; i < n; i++) {
                const int32_t other = from[i].column;
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    smaller[e] += other < column[e];
            }
#pragma unroll
            for (int e = 0; e < EACH; e++)
                if (first + e * LANES < n) {
                    c.col[to + smaller[e]] = column[e];
                    ((T *)c.val)[to + smaller[e]] = from[first + e * LANES].value;
                }
        }
    }
}

template <bool TOGETHER, int SLOTS_LOG, typename T, typename Right>
spmv_status launch_rows(spmv_context *ctx, const char *name, const job<T, Right> &j, row_list from, row_list again)
{
    static uint64_t known;
    constexpr int THREADS = threads_for(TOGETHER);
    int resident = 0, fixed = 0;
    const auto kernel = multiply_rows<TOGETHER, SLOTS_LOG, T, Right>;
    const spmv_status st = kernel_facts(ctx, name, (const void *)kernel, THREADS, &known, &resident, &fixed);
    const int64_t all = (int64_t)resident * ((const cuda_state *)ctx->device)->multiprocessors;
    const int64_t blocks = min_i64(ceil_divide(j.rows, (int64_t)(TOGETHER ? THREADS / warp_lanes : THREADS)), all);
    return st != SPMV_OK ? st : launch(ctx, name, (int)blocks, THREADS, kernel, j, from, again);
}

/* All rows. few: a row has few products. */
template <typename T, typename Right>
spmv_status multiply(spmv_context *ctx, const char *name, const job<T, Right> &j, bool few, row_list list)
{
    const int64_t many_rows = (int64_t)((const cuda_state *)ctx->device)->multiprocessors * 256;
    const row_list none = {nullptr, nullptr};
    if (j.rows < many_rows)
        return launch_rows<true, LARGE>(ctx, name, j, none, none);
    const spmv_status st =
        few ? launch_rows<false, LARGE>(ctx, name, j, none, list) : launch_rows<true, SMALL>(ctx, name, j, none, list);
    return st != SPMV_OK ? st : launch_rows<true, LARGE>(ctx, name, j, list, none);
}

template <typename T> spmv_status queue_products(spmv_context *ctx, const struct amg_galerkin *g)
{
    counters *const found = (counters *)g->counters;
    const double rows = (double)g->fine, products = (double)g->a_nnz / rows * ((double)g->p_nnz / rows);
    const job<T, csr_rows<T>> ap = {
        g->fine,         g->a,    {g->p},  g->places[0], (entry<T> *)g->entries[0], g->room[0],
        &found[0].taken, nullptr, nullptr, nullptr};
    const job<T, finished_rows<T>> rap = {g->coarse,
                                          g->r,
                                          {g->places[0], (const entry<T> *)g->entries[0]},
                                          g->places[1],
                                          (entry<T> *)g->entries[1],
                                          g->room[1],
                                          &found[1].taken,
                                          g->lengths,
                                          (const T *)g->diagonal,
                                          g->mass};
    spmv_status st =
        cuda_check(ctx, cudaMemsetAsync(found, 0, 2 * sizeof *found, (cudaStream_t)ctx->stream), "cudaMemsetAsync");
    if (st == SPMV_OK)
        st = multiply(ctx, "amg A P", ap, products <= FEW_PRODUCTS, row_list{g->list, &found[0].listed});
    return st != SPMV_OK ? st : multiply(ctx, "amg R (A P)", rap, false, row_list{g->list, &found[1].listed});
}

} // namespace

extern "C" int64_t amg_galerkin_room_cuda(spmv_context *ctx, int64_t entries)
{
    enum { MOST_WARPS = 64 }; /* of a multiprocessor; each leaves some entries unused */
    return entries + (int64_t)MOST_WARPS * AT_ONCE * ((const cuda_state *)ctx->device)->multiprocessors;
}

extern "C" spmv_status amg_galerkin_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g)
{
    static_assert(2 * sizeof(counters) <= AMG_GALERKIN_COUNTERS, "room for the counters");
    return on_device(ctx, [=] {
        return with_zero(ctx, "preconditioner", type,
                         [=](auto zero) { return queue_products<decltype(zero)>(ctx, g); });
    });
}

extern "C" spmv_status amg_galerkin_place_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g,
                                               struct amg_csr c)
{
    const int blocks = grid_for(g->coarse, block_threads / 8);
    return on_device(ctx, [=] {
        return type == SPMV_F64 ? launch(ctx, "amg place rows", blocks, block_threads, place_rows<double>, g->coarse,
                                         g->places[1], (const entry<double> *)g->entries[1], c)
                                : launch(ctx, "amg place rows", blocks, block_threads, place_rows<float>, g->coarse,
                                         g->places[1], (const entry<float> *)g->entries[1], c);
    });
}
