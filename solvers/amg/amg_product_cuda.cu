/* The matrix of the next level on CUDA: R = P', and C = R (A P), each of the two products in one pass.
 *
 *     (A P)_ij = sum over ascending k of a_ik p_kj,    c_ij = sum over ascending k of r_ik (A P)_kj
 *
 * A general sparse product first finds how many entries each row has, then their columns, then their
 * sums (spgemm/). Here most rows have few columns and A P is needed once, so one pass is enough.
 *
 * For A P, a lane has a row if rows have few products: it goes through them in their order, with a table of
 * its own. Otherwise a subwarp has a row. It takes several rows of the right matrix at a time: first its
 * lanes find the places of all columns, in any order; then they add one row of the right matrix after the
 * other, whose columns are different. In both cases k ascends in each sum, so the values have the same bits as
 * those of a general product. Only the search of a subwarp for a free place is atomic.
 *
 * A finished row is written to the next free place of a common array, with its entries in any order. In
 * rows of A P the order does not matter, because an entry of C takes at most one of them. Rows of C are
 * sorted when they are copied to their final places, once all lengths are known.
 *
 * On ranks, finished rows of A P move as they are: those of other ranks are appended to the common array.
 *
 * R: the entries of P take places in their columns in any order; then each row of R is sorted.
 *
 * A row with too many columns for its table goes to a list, for warps with large tables. If these are too
 * small, or the common array, the length of a row of C becomes larger than the array, and the caller takes
 * the general products.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch.cuh"
#include "device/relaxed.cuh"
#include "solvers/amg/amg_finished.cuh"

namespace
{

/* log2 of the places that a large table has for each lane of a warp. Tests build with small ones. */
#ifndef SPMV_AMG_TABLE_LOG
#define SPMV_AMG_TABLE_LOG 5
#endif
enum { OWN = SPMV_AMG_TABLE_LOG - 1, LARGE = SPMV_AMG_TABLE_LOG + 5 /* log2 of the places of a table */ };

/* A lane has a row of A P if there are so many products on average at most. On an H100, lanes were faster for
 * 24, subwarps for 145. */
enum { FEW_PRODUCTS = 60 };

/* Longer rows of R are not sorted: an entry is compared with all others of its row. Tests build with
 * shorter ones. */
#ifndef SPMV_AMG_LONGEST
#define SPMV_AMG_LONGEST 4096
#endif
enum { LONGEST = SPMV_AMG_LONGEST };

template <typename T> struct alignas(2 * sizeof(T)) entry {
    T value;
    int32_t column;
};

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
    const row_place *places;
    const entry<T> *entries;

    __device__ int find(int32_t row, int64_t *begin) const
    {
        const row_place p = places[row];
        *begin = (int64_t)(p >> 16);
        return p == NOWHERE ? -1 : (int)(p & 0xffff);
    }

    __device__ entry<T> load(int64_t at) const
    {
        return entries[at];
    }
};

template <typename T, typename Right> struct job {
    int64_t rows;
    amg_csr left;
    int64_t longest; /* rows of the left matrix with more entries do not fit */
    Right right;
    row_place *places;
    entry<T> *entries;
    int64_t room;
    unsigned long long *taken;
    int64_t *lengths; /* of the rows; NULL: not wanted */
    /* for the sum of diagonal elements of entries of the left matrix times their squares; NULL: not
     * wanted */
    const T *diagonal;
    double *mass;
};

/* An entry of the left matrix with its row of the right one. */
template <typename T> struct part {
    T factor, diagonal;
    int64_t begin;
    int length;
};

/* A subwarp of LANES lanes and its table of 2^LOG places for the columns of a row. All lanes of a warp call
 * the functions together, unless said otherwise. */
template <int LANES, int LOG, typename T> struct table {
    enum {
        SLOTS = 1 << LOG,
        AT_ONCE = SLOTS / LANES < 16 ? SLOTS / LANES / 2 : 8, /* rows of the right matrix */
        MOST = SLOTS - AT_ONCE * LANES,                       /* columns before the next rows are added */
        STRIDE = SLOTS + LANES,                               /* subwarps begin in different banks */
        THREADS = LANES < (int)warp_lanes ? 128 : 64,
        SUBWARPS = THREADS / LANES,
        RESIDENT = (sizeof(T) == 4 ? 7 : 5) * 128 / THREADS /* blocks of a multiprocessor: enough registers */
    };
    static_assert(SLOTS % (4 * LANES) == 0 && AT_ONCE > 0, "cleared four at a time");
    int *keys;
    T *sums;
    int lane;         /* in the subwarp */
    unsigned subwarp; /* the lanes of the subwarp */
    int fresh;        /* columns that this lane has inserted */
    bool full;

    __device__ void clear()
    {
        for (int s = 4 * lane; s < SLOTS; s += 4 * LANES) {
            *(int4 *)&keys[s] = {FREE, FREE, FREE, FREE};
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums[s + i] = -(T)0; /* the sum with it has the bits of the other term */
        }
        fresh = 0;
        full = false;
        __syncwarp();
    }

    /* The place of a column, by one lane; -1 for FREE. */
    __device__ int insert(int32_t column)
    {
        int s = (int)(hash(column) >> (32 - LOG)), key = FREE;
        while (column != FREE) {
            key = read_relaxed(keys + s);
            while (key != column && key != FREE) {
                s = (s + 1) & (SLOTS - 1);
                key = read_relaxed(keys + s);
            }
            if (key == FREE)
                key = atomicCAS(keys + s, (int)FREE, (int)column);
            fresh += key == FREE;
            if (key == FREE || key == column)
                return s;
        }
        return -1;
    }

    /* Columns of the row. */
    __device__ int count() const
    {
        int all = fresh;
        for (int distance = 1; distance < LANES; distance *= 2)
            all += __shfl_xor_sync(all_lanes, all, distance);
        return all;
    }

    __device__ void check_room()
    {
        const int all = count(); /* by all lanes */
        full = full || all > MOST;
    }

    __device__ void add(int s, T product)
    {
        if (s >= 0)
            sums[s] += product;
        __syncwarp();
    }

    /* Adds the entries of a row of the right matrix after the first LANES. */
    template <typename Right> __device__ void add_rest(const Right &right, int64_t begin, int length, T factor)
    {
        for (int i = LANES + lane; __ballot_sync(all_lanes, i - lane < length && !full) != 0; i += LANES) {
            entry<T> e = {0, FREE};
            if (i < length && !full)
                e = right.load(begin + i);
            const int s = insert(e.column);
            check_room();
            add(s, factor * e.value);
        }
    }
};

/* Adds the products of entries k to end - 1 of the left matrix. Returns their mass. A lane loads every
 * LANES-th entry: columns and rows of the right matrix one step before each other. */
template <int LANES, int LOG, typename T, typename Right>
__device__ double add_products(const job<T, Right> &j, int64_t k, int64_t end, table<LANES, LOG, T> *t)
{
    enum { AT_ONCE = table<LANES, LOG, T>::AT_ONCE };
    const int first_lane = (int)threadIdx.x % warp_lanes - t->lane;
    const int64_t begin = k;
    double mass = 0;
    part<T> found = {};
    int32_t column = 0;
    T value = 0;
    const auto advance = [&](int64_t next) {
        found = {};
        if (next - LANES >= begin && next - LANES < end) {
            found.factor = value;
            found.length = j.right.find(column, &found.begin);
            if (j.diagonal != nullptr)
                found.diagonal = j.diagonal[column];
        }
        if (next < end) {
            column = j.left.col[next];
            value = ((const T *)j.left.val)[next];
        }
    };
    advance(k + t->lane);
    advance(k + t->lane + LANES);
    while (__ballot_sync(all_lanes, k < end && !t->full) != 0) {
        const part<T> now = found;
        advance(k + t->lane + 2 * LANES);
        k += LANES;
        const unsigned missing = __ballot_sync(all_lanes, now.length < 0);
        t->full = t->full || (missing & t->subwarp) != 0;
        const bool longer = __ballot_sync(all_lanes, now.length > LANES) != 0;
        for (int first = 0; first < LANES; first += AT_ONCE) {
            if (__ballot_sync(all_lanes, t->lane >= first && now.length > 0) == 0)
                break;
            t->check_room();
            int32_t columns[AT_ONCE];
            T products[AT_ONCE];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const int length = __shfl_sync(all_lanes, now.length, first_lane + first + i);
                const int64_t at = __shfl_sync(all_lanes, (long long)now.begin, first_lane + first + i) + t->lane;
                entry<T> e = {0, FREE};
                if (t->lane < length && !t->full)
                    e = j.right.load(at);
                columns[i] = e.column;
                products[i] = e.value;
            }
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                columns[i] = t->insert(columns[i]);
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++) {
                const T factor = __shfl_sync(all_lanes, now.factor, first_lane + first + i);
                if (j.diagonal != nullptr)
                    mass = amg_add_mass(mass, (double)__shfl_sync(all_lanes, now.diagonal, first_lane + first + i),
                                        (double)factor);
                t->add(columns[i], factor * products[i]);
                if (longer)
                    t->add_rest(j.right, __shfl_sync(all_lanes, (long long)now.begin, first_lane + first + i),
                                __shfl_sync(all_lanes, now.length, first_lane + first + i), factor);
            }
        }
    }
    return mass;
}

/* Where a finished row of n entries begins, which did not fit if n is negative. Called by all lanes of a warp.
 * mine: one lane for each row. */
template <typename T, typename Right>
__device__ int64_t take_room(const job<T, Right> &j, reservation *reserved, bool mine, int64_t row, int n,
                             row_list again)
{
    const int lane = (int)threadIdx.x % warp_lanes, length = mine && n > 0 ? n : 0;
    const int through = warp_inclusive(add_counts(), length);
    unsigned long long begin = lane == warp_lanes - 1 ? reserved->take(j.taken, j.room, through) : 0;
    begin = __shfl_sync(all_lanes, begin, warp_lanes - 1);
    const bool found = mine && n >= 0 && begin != NOWHERE;
    begin += (unsigned)(through - length);
    if (mine && n < 0 && again.rows != nullptr)
        again.rows[atomicAdd(again.count, 1ull)] = (int32_t)row;
    else if (mine)
        j.places[row] = found ? begin << 16 | (unsigned)n : NOWHERE;
    if (mine && j.lengths != nullptr)
        j.lengths[row] = found ? n : j.room + 1;
    return found ? (int64_t)begin : -1;
}

/* Rows of a product by a subwarp each: those of list `from`, or all. Rows with too many columns are
 * appended to `again`. */
template <int LANES, int LOG, typename T, typename Right>
__global__ void __launch_bounds__(table<LANES, LOG, T>::THREADS, table<LANES, LOG, T>::RESIDENT)
    multiply_rows(job<T, Right> j, row_list from, row_list again)
{
    typedef table<LANES, LOG, T> own_table;
    constexpr int SUBWARPS = own_table::SUBWARPS, STRIDE = own_table::STRIDE;
    alignas(16) __shared__ int keys[SUBWARPS * STRIDE];
    alignas(16) __shared__ T sums[SUBWARPS * STRIDE];
    const int in_warp = (int)threadIdx.x % warp_lanes, lane = in_warp % LANES, first_lane = in_warp - lane;
    const int offset = (int)threadIdx.x / LANES * STRIDE;
    own_table t = {keys + offset, sums + offset, lane, all_lanes >> (warp_lanes - LANES) << first_lane, 0, false};
    const int64_t rows = from.rows != nullptr ? (int64_t)*from.count : j.rows;
    reservation reserved = {0, 0};
    for (int64_t first = (int64_t)blockIdx.x * SUBWARPS; first < rows; first += (int64_t)gridDim.x * SUBWARPS) {
        const int64_t index = first + (int)threadIdx.x / LANES;
        const bool mine = index < rows;
        const int64_t row = !mine ? 0 : from.rows != nullptr ? (int64_t)from.rows[index] : index;
        const int64_t entries_begin = mine ? amg_offset(&j.left, row) : 0;
        int64_t entries_end = mine ? amg_offset(&j.left, row + 1) : 0;
        t.clear();
        if (entries_end - entries_begin > j.longest) {
            entries_end = entries_begin;
            t.full = true;
        }
        const double mass = add_products(j, entries_begin, entries_end, &t);
        const int n = t.count();
        int64_t begin = take_room(j, &reserved, mine && lane == 0, row, t.full ? -1 : n, again);
        begin = __shfl_sync(all_lanes, (long long)begin, first_lane);
        if (lane == 0 && mine && j.mass != nullptr)
            j.mass[row] = mass;
#pragma unroll 4
        for (int s = lane; s < own_table::SLOTS; s += LANES) {
            const int key = begin >= 0 ? t.keys[s] : (int)FREE;
            const unsigned used = __ballot_sync(all_lanes, key != FREE) & t.subwarp;
            if (key != FREE)
                j.entries[begin + __popc(used & ((1u << in_warp) - 1))] = {t.sums[s], key};
            begin += __popc(used);
        }
        __syncwarp();
    }
}

/* A lane's table. The tables of a block lie side by side: place s of a lane is at s times the threads plus the
 * lane's number, so lanes have no bank conflicts. */
template <typename T> struct own_table {
    enum { SLOTS = 1 << OWN, MOST = SLOTS / 4 * 3, THREADS = 128 };
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

    __device__ void add(int32_t column, T product)
    {
        /* the lanes of a warp leave the search together, then none of them branches */
        int s = (int)(hash(column) >> (32 - OWN)), key = keys[s * THREADS];
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

/* Adds the products of entries k to end - 1 of the left matrix, by one lane. Columns, rows and first entries of
 * the right matrix are loaded one step before each other and before they are needed. */
template <typename T, typename Right>
__device__ void add_products(const job<T, Right> &j, int64_t k, int64_t end, own_table<T> *t)
{
    const int64_t begin = k;
    part<T> ready = {}, found = {};
    entry<T> first = {};
    int32_t column = 0;
    T value = 0;
    const auto advance = [&](int64_t next) {
        ready = found;
        if (ready.length > 0)
            first = j.right.load(ready.begin);
        found.length = 0;
        if (next > begin && next - 1 < end) {
            found.factor = value;
            found.length = j.right.find(column, &found.begin);
        }
        if (next < end) {
            column = j.left.col[next];
            value = ((const T *)j.left.val)[next];
        }
    };
    advance(k);
    advance(k + 1);
    advance(k + 2);
    for (; k < end && !t->full; k++) {
        const part<T> now = ready;
        entry<T> next = first;
        advance(k + 3);
        for (int i = 0; i < now.length && !t->full; i++) {
            const entry<T> e = next;
            if (i + 1 < now.length)
                next = j.right.load(now.begin + i + 1);
            t->add(e.column, now.factor * e.value);
        }
    }
}

/* All rows of a product, by a lane each. Rows with too many columns are appended to `again`. */
template <typename T, typename Right>
__global__ void __launch_bounds__(own_table<T>::THREADS) multiply_own_rows(job<T, Right> j, row_list again)
{
    constexpr int SLOTS = own_table<T>::SLOTS, THREADS = own_table<T>::THREADS;
    alignas(16) __shared__ char memory[SLOTS * THREADS * (sizeof(T) + sizeof(int))]; /* one base address */
    own_table<T> t = {(int *)(memory + SLOTS * THREADS * sizeof(T)) + threadIdx.x, (T *)memory + threadIdx.x, 0, false};
    reservation reserved = {0, 0};
    for (int64_t first = (int64_t)blockIdx.x * THREADS; first < j.rows; first += (int64_t)gridDim.x * THREADS) {
        const int64_t row = first + threadIdx.x;
        const bool mine = row < j.rows;
        t.clear();
        if (mine)
            add_products(j, amg_offset(&j.left, row), amg_offset(&j.left, row + 1), &t);
        __syncwarp();
        int64_t to = take_room(j, &reserved, mine, row, t.full ? -1 : t.count, again);
        for (int s = 0; s < SLOTS && to >= 0; s++)
            if (t.keys[s * THREADS] != FREE)
                j.entries[to++] = {t.sums[s * THREADS], t.keys[s * THREADS]};
        __syncwarp();
    }
}

/* Columns first to first + count - 1. */
struct column_range {
    int64_t first, count;

    __device__ bool has(int32_t column) const
    {
        return (uint64_t)(column - first) < (uint64_t)count;
    }
};

/* counts: entries of each column of the range. */
__global__ void __launch_bounds__(block_threads)
    count_columns(const int32_t *col, int64_t nnz, column_range range, unsigned *counts)
{
    for (int64_t first = (int64_t)blockIdx.x * block_threads; first < nnz;
         first += (int64_t)gridDim.x * block_threads) {
        const int64_t k = first + threadIdx.x;
        const int32_t column = k < nnz ? col[k] : 0;
        add_for_warp(counts, k < nnz && range.has(column), (int32_t)(column - range.first), 1);
    }
}

/* Puts entries of the transpose to their rows, with the order within a row open. All lanes of a warp call it. */
template <typename T>
__device__ void scatter(bool there, int32_t row, int32_t column, T value, column_range range, const int64_t *offsets,
                        unsigned *counts, entry<T> *to)
{
    there = there && range.has(column);
    const int32_t at = (int32_t)(column - range.first);
    const unsigned left = add_for_warp(counts, there, at, ~0u);
    if (there)
        to[offsets[at] + left - 1] = {value, row};
}

/* The entries of the transpose. offsets: of its rows. counts: become 0. first_row: the number of row 0. */
template <typename T>
__global__ void __launch_bounds__(block_threads)
    scatter_columns(amg_csr p, int64_t rows, int64_t first_row, column_range range, const int64_t *offsets,
                    unsigned *counts, entry<T> *to)
{
    enum { LANES = 4 };
    for (int64_t first = (int64_t)blockIdx.x * (block_threads / LANES); first < rows;
         first += (int64_t)gridDim.x * (block_threads / LANES)) {
        const int64_t row = first + threadIdx.x / LANES;
        int64_t k = row < rows ? amg_offset(&p, row) + (int)threadIdx.x % LANES : 0;
        const int64_t end = row < rows ? amg_offset(&p, row + 1) : 0;
        for (; __ballot_sync(all_lanes, k < end) != 0; k += LANES) {
            const bool there = k < end;
            scatter(there, (int32_t)(first_row + row), there ? p.col[k] : 0, there ? ((const T *)p.val)[k] : (T)0,
                    range, offsets, counts, to);
        }
    }
}

/* The same of entries of other ranks. */
template <typename T>
__global__ void __launch_bounds__(block_threads)
    scatter_others(rank_entries e, column_range range, const int64_t *offsets, unsigned *counts, entry<T> *to)
{
    for (int64_t first = (int64_t)blockIdx.x * block_threads; first < e.count;
         first += (int64_t)gridDim.x * block_threads) {
        const int64_t k = first + threadIdx.x;
        const bool there = k < e.count;
        scatter(there, there ? e.row[k] : 0, there ? e.col[k] : 0, there ? ((const T *)e.val)[k] : (T)0, range, offsets,
                counts, to);
    }
}

/* Copies rows to their final places, with ascending columns: an entry's place is the number of smaller
 * columns. places: where the rows are; NULL: as in c. */
template <int LANES, typename T>
__global__ void __launch_bounds__(block_threads)
    place_rows(int64_t rows, const row_place *places, const entry<T> *entries, amg_csr c)
{
    enum { EACH = 6 };
    const int lane = (int)threadIdx.x % LANES;
    for (int64_t row = ((int64_t)blockIdx.x * block_threads + threadIdx.x) / LANES; row < rows;
         row += (int64_t)gridDim.x * (block_threads / LANES)) {
        const int64_t to = amg_offset(&c, row), length = amg_offset(&c, row + 1) - to;
        const int n = places != nullptr || length <= LONGEST ? (int)length : 0;
        const entry<T> *const from = entries + (places != nullptr ? (int64_t)(places[row] >> 16) : to);
        for (int first = lane; first < n; first += LANES * EACH) {
            int32_t column[EACH];
            int smaller[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                column[e] = first + e * LANES < n ? from[first + e * LANES].column : INT32_MAX;
                smaller[e] = 0;
            }
#pragma unroll 4
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

template <int LANES, int LOG, typename T, typename Right>
spmv_status launch_rows(spmv_context *ctx, const char *name, const job<T, Right> &j, row_list from, row_list again)
{
    typedef table<LANES, LOG, T> own_table;
    static uint64_t known;
    int resident = 0, fixed = 0;
    const auto kernel = multiply_rows<LANES, LOG, T, Right>;
    const spmv_status st =
        kernel_facts(ctx, name, (const void *)kernel, (int)own_table::THREADS, &known, &resident, &fixed);
    const int64_t all = (int64_t)resident * ((const cuda_state *)ctx->device)->multiprocessors;
    const int64_t blocks = min_i64(ceil_divide(j.rows, (int64_t)own_table::SUBWARPS), all);
    return st != SPMV_OK ? st : launch(ctx, name, (int)blocks, own_table::THREADS, kernel, j, from, again);
}

template <typename T, typename Right>
spmv_status launch_own_rows(spmv_context *ctx, const char *name, const job<T, Right> &j, row_list again)
{
    enum { THREADS = own_table<T>::THREADS };
    static uint64_t known;
    int resident = 0, fixed = 0;
    const auto kernel = multiply_own_rows<T, Right>;
    const spmv_status st = kernel_facts(ctx, name, (const void *)kernel, (int)THREADS, &known, &resident, &fixed);
    const int64_t all = (int64_t)resident * ((const cuda_state *)ctx->device)->multiprocessors;
    const int64_t blocks = min_i64(ceil_divide(j.rows, (int64_t)THREADS), all);
    return st != SPMV_OK ? st : launch(ctx, name, (int)blocks, THREADS, kernel, j, again);
}

template <typename T> spmv_status queue_ap(spmv_context *ctx, const struct amg_galerkin *g)
{
    counters *const found = (counters *)g->counters;
    const double rows = (double)g->fine, products = (double)g->a_nnz / rows * ((double)g->p_nnz / rows);
    const row_list list = {g->list, &found[0].listed}, none = {nullptr, nullptr};
    const job<T, csr_rows<T>> ap = {
        g->fine,         g->a,    INT64_MAX, {g->p}, g->places[0] + g->front, (entry<T> *)g->entries[0], g->room[0],
        &found[0].taken, nullptr, nullptr,   nullptr};
    spmv_status st =
        cuda_check(ctx, cudaMemsetAsync(found, 0, 2 * sizeof *found, (cudaStream_t)ctx->stream), "cudaMemsetAsync");
    if (st != SPMV_OK || g->fine == 0)
        return st;
    st = products <= FEW_PRODUCTS ? launch_own_rows(ctx, "amg A P", ap, list)
                                  : launch_rows<8, LARGE - 3>(ctx, "amg A P", ap, none, list);
    return st != SPMV_OK ? st : launch_rows<warp_lanes, LARGE>(ctx, "amg A P", ap, list, none);
}

template <typename T> spmv_status queue_rap(spmv_context *ctx, const struct amg_galerkin *g)
{
    counters *const found = (counters *)g->counters;
    const int64_t many_rows = (int64_t)((const cuda_state *)ctx->device)->multiprocessors * 256;
    const row_list list = {g->list, &found[1].listed}, none = {nullptr, nullptr};
    const job<T, finished_rows<T>> rap = {g->coarse,    g->r,
                                          LONGEST,      {g->places[0], (const entry<T> *)g->entries[0]},
                                          g->places[1], (entry<T> *)g->entries[1],
                                          g->room[1],   &found[1].taken,
                                          g->lengths,   (const T *)g->diagonal,
                                          g->mass};
    if (g->coarse == 0)
        return SPMV_OK;
    if (g->coarse < many_rows)
        return launch_rows<warp_lanes, LARGE>(ctx, "amg R (A P)", rap, none, none);
    const spmv_status st = launch_rows<16, LARGE - 2>(ctx, "amg R (A P)", rap, none, list);
    return st != SPMV_OK ? st : launch_rows<warp_lanes, LARGE>(ctx, "amg R (A P)", rap, list, none);
}

template <int LANES, typename T>
spmv_status place_by(spmv_context *ctx, int64_t rows, const uint64_t *places, const void *entries, struct amg_csr c)
{
    return launch(ctx, "amg place rows", grid_for(rows, block_threads / LANES), block_threads, place_rows<LANES, T>,
                  rows, places, (const entry<T> *)entries, c);
}

/* nnz: of c. */
template <typename T>
spmv_status place(spmv_context *ctx, int64_t rows, int64_t nnz, const uint64_t *places, const void *entries,
                  struct amg_csr c)
{
    enum { USUAL = 48 }; /* entries that 8 lanes take at once */
    return nnz <= USUAL * rows ? place_by<8, T>(ctx, rows, places, entries, c)
                               : place_by<warp_lanes, T>(ctx, rows, places, entries, c);
}

column_range range_of(const struct amg_transpose *t)
{
    return {t->first, t->coarse};
}

spmv_status queue_count(spmv_context *ctx, const struct amg_transpose *t, const int32_t *col, int64_t nnz)
{
    return nnz == 0 ? SPMV_OK
                    : launch(ctx, "amg count columns", grid_for(nnz, block_threads), block_threads, count_columns, col,
                             nnz, range_of(t), t->counts);
}

template <typename T> spmv_status queue_transpose(spmv_context *ctx, const struct amg_transpose *t)
{
    const int64_t *const offsets = (const int64_t *)t->r.row_ptr;
    entry<T> *const to = (entry<T> *)t->entries;
    spmv_status st = SPMV_OK;
    if (t->fine > 0)
        st = launch(ctx, "amg scatter columns", grid_for(t->fine, block_threads / 4), block_threads, scatter_columns<T>,
                    t->p, t->fine, t->first_row, range_of(t), offsets, t->counts, to);
    if (st == SPMV_OK && t->others.count > 0)
        st = launch(ctx, "amg scatter columns", grid_for(t->others.count, block_threads), block_threads,
                    scatter_others<T>, t->others, range_of(t), offsets, t->counts, to);
    return st != SPMV_OK || t->coarse == 0 ? st : place<T>(ctx, t->coarse, t->nnz, nullptr, t->entries, t->r);
}

} // namespace

extern "C" int64_t amg_galerkin_room_cuda(spmv_context *ctx, int64_t entries)
{
    enum { MOST_WARPS = 64 }; /* of a multiprocessor; each leaves some entries unused */
    return entries + (int64_t)MOST_WARPS * AT_ONCE * ((const cuda_state *)ctx->device)->multiprocessors;
}

extern "C" int64_t amg_longest_row_cuda(void)
{
    return LONGEST;
}

extern "C" spmv_status amg_ap_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g)
{
    static_assert(2 * sizeof(counters) <= AMG_GALERKIN_COUNTERS, "room for the counters");
    static_assert(offsetof(counters, taken) == 0, "the caller reads it");
    return on_device(ctx, [=] {
        return with_zero(ctx, "preconditioner", type, [=](auto zero) { return queue_ap<decltype(zero)>(ctx, g); });
    });
}

extern "C" spmv_status amg_rap_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g)
{
    return on_device(ctx, [=] {
        return with_zero(ctx, "preconditioner", type, [=](auto zero) { return queue_rap<decltype(zero)>(ctx, g); });
    });
}

extern "C" spmv_status amg_galerkin_place_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g,
                                               struct amg_csr c, int64_t nnz)
{
    if (g->coarse == 0)
        return SPMV_OK;
    return on_device(ctx, [=] {
        return type == SPMV_F64 ? place<double>(ctx, g->coarse, nnz, g->places[1], g->entries[1], c)
                                : place<float>(ctx, g->coarse, nnz, g->places[1], g->entries[1], c);
    });
}

extern "C" spmv_status amg_count_columns_cuda(spmv_context *ctx, const struct amg_transpose *t)
{
    return on_device(ctx, [=] {
        spmv_status st = cuda_check(
            ctx, cudaMemsetAsync(t->counts, 0, (size_t)t->coarse * 4, (cudaStream_t)ctx->stream), "cudaMemsetAsync");
        if (st == SPMV_OK)
            st = queue_count(ctx, t, t->p.col, t->p_nnz);
        return st != SPMV_OK ? st : queue_count(ctx, t, t->others.col, t->others.count);
    });
}

extern "C" spmv_status amg_transpose_cuda(spmv_context *ctx, spmv_type type, const struct amg_transpose *t)
{
    return on_device(
        ctx, [=] { return type == SPMV_F64 ? queue_transpose<double>(ctx, t) : queue_transpose<float>(ctx, t); });
}
