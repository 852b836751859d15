/* Products of matrices whose right one has its columns in groups, on CUDA: with several
 * near-null-space vectors the columns of P, of A P and of the next A are those of aggregates, `width`
 * to each, and a row that has one column of an aggregate has all of them. So one search in a table
 * finds the place of `width` sums. The rows of R, and of A where no entry is left out, are alike in
 * groups too (`tall` rows), and then the search serves them all.
 *
 *     (A B)_ij = sum over ascending k of a_ik b_kj
 *
 * A warp, or several (a team), has a group of rows. It takes several rows of B at a time: first its
 * lanes find the places of all their aggregates, in any order; then they add one row of B after the
 * other, whose columns are different. So k ascends in each sum, and the values have the same bits as
 * those of a general product. Only the search for a free place is atomic.
 *
 * Rows that are too long for their table go to a list, for larger tables: two more sizes in shared
 * memory, then a few in global memory. If too many rows are that long, or the common array is too
 * small (amg_finished.cuh), the length of a row becomes larger than the array, and the caller takes
 * general products.
 *
 * Also here, with the same tables: the matrix of nodes; and R = P' by aggregates.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch.cuh"
#include "solvers/amg/amg_finished.cuh"

namespace
{

/* log2 of the places of the smallest table. Tests build with a small one. */
#ifndef SPMV_AMG_BLOCK_LOG
#define SPMV_AMG_BLOCK_LOG 6
#endif
enum { SMALLEST = SPMV_AMG_BLOCK_LOG, LARGEST = SMALLEST + 4 };

/* Entries of a row that are placed at a time; blocks that a warp reserves at a time. */
#ifndef SPMV_AMG_BLOCK_PAIRS
#define SPMV_AMG_BLOCK_PAIRS 64
#endif
enum { PAIRS = SPMV_AMG_BLOCK_PAIRS, RESERVED = 32 };

enum { THREADS = 256, WARPS = THREADS / warp_lanes };

/* The most tables in global memory, and their bytes together if there are several; rows for each of them. */
enum { GLOBAL_TABLES = 32, GLOBAL_BYTES = 64 << 20, GLOBAL_ROWS = 8 };

/* Longer rows of R are not sorted: an entry is compared with all others of its row. */
#ifndef SPMV_AMG_BLOCK_LONGEST
#define SPMV_AMG_BLOCK_LONGEST 16384
#endif
enum { LONGEST = SPMV_AMG_BLOCK_LONGEST };

/* The right matrix: by rows (places is NULL), or finished rows. Numbers and places are those of blocks. */
template <typename T> struct block_rows {
    amg_csr m;
    const row_place *places;
    const int32_t *col;
    const T *val;
    int width;

    /* The number of blocks, and the first one; -1 if the row is missing. */
    __device__ int find(int32_t row, int64_t *begin) const
    {
        if (places == nullptr) {
            const int64_t first = amg_offset(&m, row);
            *begin = first / width;
            return (int)(amg_offset(&m, row + (int64_t)1) - first) / width;
        }
        const row_place p = places[row];
        *begin = (int64_t)(p >> 16);
        return p == NOWHERE ? -1 : (int)(p & 0xffff);
    }

    __device__ int32_t column(int64_t block) const
    {
        return places == nullptr ? col[block * width] / width : col[block];
    }
};

template <typename T> struct block_job {
    int64_t rows; /* of the left matrix, a multiple of the group */
    amg_csr left;
    int64_t longest; /* rows of the left matrix with more entries do not fit */
    block_rows<T> right;
    row_place *places; /* of each row */
    int32_t *col;      /* of each finished block */
    T *val;
    int64_t room; /* blocks */
    unsigned long long *taken;
    int64_t *lengths; /* entries of each row; NULL: not wanted */
    const T *diagonal;
    double *mass; /* see the step coarse_mass; NULL: not wanted */
    /* the tables: log2 of their places; those in global memory, or NULL */
    int log;
    unsigned char *tables;
};

/* The bytes of a table with the scratch of its team. stride: sums of a place. */
template <typename T> __host__ __device__ int64_t bytes_of_table(int log, int stride, int team)
{
    const int64_t places = (int64_t)1 << log;
    return (places * stride * (int64_t)sizeof(T) + places * 8 + team * PAIRS * 4 + 16 + 15) / 16 * 16;
}

/* The lanes of a team of TEAM warps, and how they lie over the entries of blocks. A team of several warps is a block of
 * threads. */
template <int TEAM> struct team_lanes {
    enum { SIZE = TEAM * warp_lanes, MOST = TEAM * PAIRS };
    int lane, index;            /* in the warp, in the team */
    int block, column, at_once; /* blocks at once; lanes without a block have a large one */

    __device__ explicit team_lanes(int width)
    {
        lane = (int)threadIdx.x % warp_lanes;
        index = (int)threadIdx.x % SIZE;
        at_once = warp_lanes / width * TEAM;
        block = lane / width < warp_lanes / width ? index / warp_lanes * (warp_lanes / width) + lane / width
                                                  : INT32_MAX / 2;
        column = lane % width;
    }

    __device__ void sync() const
    {
        if constexpr (TEAM == 1)
            __syncwarp();
        else
            __syncthreads();
    }

    /* That of lane 0 of the team. cell: in shared memory. */
    __device__ unsigned long long share(unsigned long long value, unsigned long long *cell) const
    {
        if constexpr (TEAM == 1) {
            return __shfl_sync(all_lanes, value, 0);
        } else {
            if (index == 0)
                *cell = value;
            __syncthreads();
            return *cell;
        }
    }

    /* Whether a lane has yes. */
    __device__ bool any(bool yes) const
    {
        if constexpr (TEAM == 1)
            return __ballot_sync(all_lanes, yes) != 0;
        else
            return __syncthreads_count(yes) != 0;
    }
};

/* A team's table for the aggregates of a row. */
template <typename T> struct block_table {
    T *sums; /* `stride` for each place */
    int *keys, *used, *places, *count;
    unsigned long long *cell; /* for team_lanes */
    int log, stride;

    __device__ void take(unsigned char *memory, int log_, int stride_, int pairs)
    {
        const int64_t slots = (int64_t)1 << log_;
        log = log_;
        stride = stride_;
        sums = (T *)memory;
        keys = (int *)(sums + slots * stride);
        used = keys + slots;
        places = used + slots;
        count = places + pairs;
        cell = (unsigned long long *)(count + 2);
    }

    /* Once, before the first row. */
    template <typename Lanes> __device__ void clear(const Lanes &l, T nothing)
    {
        for (int s = l.index; s < 1 << log; s += Lanes::SIZE)
            keys[s] = FREE;
        for (int64_t s = l.index; s < (int64_t)stride << log; s += Lanes::SIZE)
            sums[s] = nothing;
        if (l.index == 0)
            *count = 0;
        l.sync();
    }

    /* The place of a column, by one lane; -1: none is free. */
    __device__ int insert(int32_t column)
    {
        const int mask = (1 << log) - 1;
        int s = (int)(hash(column) >> (32 - log));
        for (int tries = 0; tries <= mask; tries++) {
            int key = *(volatile int *)(keys + s);
            if (key == FREE) {
                key = atomicCAS(keys + s, (int)FREE, (int)column);
                if (key == FREE) {
                    used[atomicAdd(count, 1)] = s;
                    return s;
                }
            }
            if (key == column)
                return s;
            s = (s + 1) & mask;
        }
        return -1;
    }
};

/* Writes a finished group of `tall` rows from row0 on, and empties the table. full: they did not fit. */
template <typename T, typename Lanes>
__device__ void finish(const block_job<T> &j, block_table<T> *t, const Lanes &l, int tall, int64_t row0, bool full,
                       reservation *reserved, row_list again, T nothing)
{
    const int width = j.right.width, n = *t->count;
    const bool fits = !full && n <= 0xffff;
    unsigned long long begin = 0;
    if (l.index == 0) {
        begin = fits ? reserved->take(j.taken, j.room, n * tall, RESERVED) : NOWHERE;
        unsigned long long listed = 0;
        if (full && again.rows != nullptr)
            listed = atomicAdd(again.count, (unsigned long long)tall);
        for (int r = 0; r < tall; r++) {
            if (full && again.rows != nullptr)
                again.rows[listed + (unsigned)r] = (int32_t)(row0 + r);
            j.places[row0 + r] =
                begin == NOWHERE ? NOWHERE : (begin + (unsigned long long)r * (unsigned)n) << 16 | (unsigned)n;
            if (j.lengths != nullptr)
                j.lengths[row0 + r] = begin == NOWHERE ? j.room * width + 1 : (int64_t)n * width;
        }
    }
    begin = l.share(begin, t->cell);
    for (int k = l.index; k < n && begin != NOWHERE; k += Lanes::SIZE)
        for (int r = 0; r < tall; r++)
            j.col[begin + (unsigned)(r * n + k)] = t->keys[t->used[k]];
    for (int k = l.block; k < n; k += l.at_once) {
        T *const sums = t->sums + (int64_t)t->used[k] * t->stride + l.column;
        for (int r = 0; r < tall; r++) {
            if (begin != NOWHERE)
                j.val[(begin + (unsigned)(r * n + k)) * (unsigned)width + (unsigned)l.column] = sums[r * width];
            sums[r * width] = nothing;
        }
    }
    l.sync();
    for (int k = l.index; k < n; k += Lanes::SIZE)
        t->keys[t->used[k]] = FREE;
    l.sync();
    if (l.index == 0)
        *t->count = 0;
    l.sync();
}

/* Entries of a row of the left matrix, one for each lane, with their rows of the right one. */
struct block_parts {
    int32_t column; /* of the left matrix */
    int64_t begin;
    int n, through; /* blocks, and those of the lanes before too */
    int whole;      /* of the row of the right matrix, if n is a share of it */
};

/* sums_r += the products of `factor` of row r and the values, one after the other. */
template <int TALL, int ALIKE, typename T>
__device__ void add_block(T *sums, int width, const T *factor, int length, const T *value)
{
#pragma unroll
    for (int r = 0; r < TALL; r++) {
        T sum = sums[r * width];
#pragma unroll
        for (int d = 0; d < ALIKE; d++)
            sum += factor[r * length + d] * value[d];
        sums[r * width] = sum;
    }
}

/* Adds entries first to last - 1 of the lanes, whose blocks lie in the table's places. values: those of the row's
 * entry of lane 0, `length` from row to row. ALIKE: a lane has so many entries, whose rows of the right matrix have
 * the same aggregates and follow each other. mass: may be NULL. */
template <int TALL, int ALIKE, typename T, typename Lanes>
__device__ void add_parts(const block_job<T> &j, const block_table<T> &t, const Lanes &l, const block_parts &p,
                          int first, int last, int before, const T *values, int length, double *mass)
{
    /* entries at a time; blocks of an entry at a time after the first */
    enum { AHEAD = ALIKE > 3 ? 1 : 2, MORE = ALIKE > 1 ? 1 : 2 };
    const int width = j.right.width;
    for (int e = first; e < last; e += AHEAD) {
        int n[AHEAD], start[AHEAD], place[AHEAD];
        const T *right[AHEAD]; /* the lane's column of the first block */
        int next[AHEAD];
        T value[AHEAD][ALIKE];
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const int from = e + u < last ? e + u : last - 1;
            n[u] = __shfl_sync(all_lanes, p.n, from);
            start[u] = __shfl_sync(all_lanes, p.through, from) - n[u] - before;
            right[u] = j.right.val + (int64_t)__shfl_sync(all_lanes, (long long)p.begin, from) * width + l.column;
            next[u] = ALIKE > 1 ? __shfl_sync(all_lanes, p.whole, from) * width : 0;
            n[u] = e + u < last ? n[u] : 0;
            place[u] = l.block < n[u] ? t.places[start[u] + l.block] : -1;
#pragma unroll
            for (int d = 0; d < ALIKE; d++)
                value[u][d] = place[u] >= 0 ? right[u][l.block * width + d * next[u]] : 0;
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            const T *const factor = values + (e + u) * ALIKE;
            if (place[u] >= 0)
                add_block<TALL, ALIKE>(t.sums + place[u] * t.stride + l.column, width, factor, length, value[u]);
            for (int b = l.block + l.at_once; b < n[u]; b += MORE * l.at_once) {
                int places[MORE];
                T more[MORE][ALIKE];
#pragma unroll
                for (int q = 0; q < MORE; q++) {
                    const int at = b + q * l.at_once;
                    places[q] = at < n[u] ? t.places[start[u] + at] : -1;
#pragma unroll
                    for (int d = 0; d < ALIKE; d++)
                        more[q][d] = at < n[u] ? right[u][at * width + d * next[u]] : 0;
                }
#pragma unroll
                for (int q = 0; q < MORE; q++)
                    if (places[q] >= 0)
                        add_block<TALL, ALIKE>(t.sums + places[q] * t.stride + l.column, width, factor, length,
                                               more[q]);
            }
            l.sync();
        }
        if (mass != nullptr)
            for (int u = 0; u < AHEAD && e + u < last; u++) {
                const int32_t column = __shfl_sync(all_lanes, p.column, e + u);
                if (l.index < TALL)
                    *mass = amg_add_mass(*mass, (double)j.diagonal[column], (double)values[l.index * length + e + u]);
            }
    }
}

/* The row of which block `at` is, of those of lanes first to last - 1. Called by all lanes. */
__device__ int find_part(const block_parts &p, int first, int last, int before, int at)
{
    int e = first;
    for (int step = warp_lanes / 2; step > 0; step /= 2) {
        const int other = e + step - 1;
        const int through = __shfl_sync(all_lanes, p.through, other % warp_lanes);
        if (other < last && through - before <= at)
            e += step;
    }
    return e < last ? e : last - 1;
}

/* Adds the products of entries begin to begin + length - 1 of the left matrix, and of the TALL - 1 rows after it.
 * Returns whether the aggregates fit in the table. */
template <int TALL, int ALIKE, typename T, typename Lanes>
__device__ bool add_row(const block_job<T> &j, block_table<T> *t, const Lanes &l, int64_t begin, int length,
                        double *mass)
{
    const T *const left = (const T *)j.left.val + begin;
    const int parts = length / ALIKE;
    for (int at = 0; at < parts; at += warp_lanes) {
        const int count = parts - at < warp_lanes ? parts - at : (int)warp_lanes;
        block_parts p = {};
        if (l.lane < count) {
            p.column = j.left.col[begin + (at + l.lane) * ALIKE];
            p.n = p.whole = j.right.find(p.column, &p.begin);
        }
        if (__ballot_sync(all_lanes, p.n < 0) != 0)
            return false;
        p.through = warp_inclusive(add_counts(), p.n);
        for (int first = 0, last; first < count; first = last) {
            const int before = first > 0 ? __shfl_sync(all_lanes, p.through, first - 1) : 0;
            last = first + __popc(__ballot_sync(all_lanes, l.lane >= first && l.lane < count &&
                                                               p.through - before <= Lanes::MOST));
            /* if not even one fits, MOST blocks of it at a time */
            const bool alone = last == first;
            last += alone;
            const int all = __shfl_sync(all_lanes, p.through, last - 1) - before;
            for (int b = 0; b < all; b += Lanes::MOST) {
                const int some = all - b < Lanes::MOST ? all - b : (int)Lanes::MOST;
                bool fits = true;
                for (int i = l.index; i - l.lane < some; i += Lanes::SIZE) {
                    const int e = find_part(p, first, last, before, i);
                    const int start = __shfl_sync(all_lanes, p.through - p.n, e) - before;
                    const int64_t block = __shfl_sync(all_lanes, (long long)p.begin, e) + (b + i - start);
                    if (i < some) {
                        t->places[i] = t->insert(j.right.column(block));
                        fits = fits && t->places[i] >= 0;
                    }
                }
                if (l.any(!fits))
                    return false;
                l.sync();
                const block_parts share = {p.column, p.begin + b, alone ? some : p.n, alone ? before + some : p.through,
                                           p.whole};
                add_parts<TALL, ALIKE>(j, *t, l, share, first, last, before, left + at * ALIKE, length,
                                       b == 0 ? mass : nullptr);
            }
        }
    }
    return true;
}

/* Rows of a product by a team for each TALL of them: those of list `from`, or all. Rows that do not fit are appended
 * to `again`. most: if the list is longer, its rows are not made. */
template <int TALL, int ALIKE, int TEAM, typename T>
__global__ void __launch_bounds__(THREADS, sizeof(T) == 4 ? 4 : 3)
    multiply_blocks(const __grid_constant__ block_job<T> j, row_list from, row_list again, int64_t most)
{
    SPMV_DYNAMIC_SHARED(memory);
    typedef team_lanes<TEAM> lanes;
    const int width = j.right.width, stride = TALL * width, team = (int)threadIdx.x / lanes::SIZE;
    const int64_t bytes = bytes_of_table<T>(j.log, stride, TEAM), teams = (int64_t)blockDim.x / lanes::SIZE;
    const lanes l(width);
    const int64_t groups = from.rows != nullptr ? (int64_t)*from.count : j.rows / TALL;
    int64_t group = (int64_t)blockIdx.x * teams + team;
    if (group >= groups)
        return;
    block_table<T> t;
    t.take(j.tables != nullptr ? j.tables + group * bytes : memory + team * bytes, j.log, stride, lanes::MOST);
    t.clear(l, -(T)0); /* the sum with it has the bits of the other term */
    reservation reserved = {0, 0};
    for (; group < groups; group += (int64_t)gridDim.x * teams) {
        const int64_t row = from.rows != nullptr ? (int64_t)from.rows[group] : group * TALL;
        const int64_t begin = amg_offset(&j.left, row), length = amg_offset(&j.left, row + 1) - begin;
        double mass = 0;
        const bool made = groups <= most && length <= j.longest &&
                          add_row<TALL, ALIKE>(j, &t, l, begin, (int)length, j.mass != nullptr ? &mass : nullptr);
        if (j.mass != nullptr && l.index < TALL)
            j.mass[row + l.index] = mass;
        l.sync();
        finish(j, &t, l, TALL, row, !made, &reserved, again, -(T)0);
    }
}

/* Copies rows to their final places, with ascending columns: a block's place is the number of smaller ones. */
template <int LANES, typename T>
__global__ void __launch_bounds__(THREADS)
    place_blocks(int64_t rows, int width, const row_place *places, const int32_t *col, const T *val, amg_csr c)
{
    const int lane = (int)threadIdx.x % LANES;
    for (int64_t row = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / LANES; row < rows;
         row += (int64_t)gridDim.x * (THREADS / LANES)) {
        const int64_t to = amg_offset(&c, row), from = (int64_t)(places[row] >> 16);
        const int n = (int)(places[row] & 0xffff);
        for (int k = lane; k < n; k += LANES) {
            const int32_t column = col[from + k];
            int smaller = 0;
#pragma unroll 8
            for (int i = 0; i < n; i++)
                smaller += col[from + i] < column;
            for (int e = 0; e < width; e++) {
                c.col[to + (int64_t)smaller * width + e] = column * width + e;
                ((T *)c.val)[to + (int64_t)smaller * width + e] = val[(from + k) * width + e];
            }
        }
    }
}

/* ------------------------------------------------------------------- R = P' */

/* counts: blocks of each aggregate. */
__global__ void __launch_bounds__(THREADS) count_blocks(const int32_t *col, int64_t blocks, int width, unsigned *counts)
{
    for (int64_t first = (int64_t)blockIdx.x * THREADS; first < blocks; first += (int64_t)gridDim.x * THREADS) {
        const int64_t k = first + threadIdx.x;
        add_for_warp(counts, k < blocks, k < blocks ? col[k * width] / width : 0, 1);
    }
}

/* A block of P: its row and its number. */
struct block_of_p {
    int32_t row;
    uint32_t block;
};

/* The blocks of each aggregate, in any order. counts: become 0. */
__global__ void __launch_bounds__(THREADS)
    scatter_blocks(amg_csr p, int64_t rows, int width, const int64_t *offsets, unsigned *counts, block_of_p *to)
{
    enum { LANES = 4 };
    for (int64_t first = (int64_t)blockIdx.x * (THREADS / LANES); first < rows;
         first += (int64_t)gridDim.x * (THREADS / LANES)) {
        const int64_t row = first + (int)threadIdx.x / LANES;
        int64_t k = row < rows ? amg_offset(&p, row) / width + (int)threadIdx.x % LANES : 0;
        const int64_t end = row < rows ? amg_offset(&p, row + 1) / width : 0;
        for (; __ballot_sync(all_lanes, k < end) != 0; k += LANES) {
            const bool there = k < end;
            const int32_t aggregate = there ? p.col[k * width] / width : 0;
            const unsigned left = add_for_warp(counts, there, aggregate, ~0u);
            if (there)
                to[offsets[aggregate] + left - 1] = {(int32_t)row, (uint32_t)k};
        }
    }
}

/* The rows of R: one block of threads for the `width` rows of an aggregate. */
template <typename T>
__global__ void __launch_bounds__(THREADS) place_transposed(const int64_t *offsets, int64_t aggregates, int width,
                                                            const block_of_p *from, const T *val, amg_csr r)
{
    for (int64_t j = blockIdx.x; j < aggregates; j += gridDim.x) {
        const int64_t begin = offsets[j], n = offsets[j + 1] - begin;
        int64_t *const row_ptr = (int64_t *)r.row_ptr + j * width;
        if ((int)threadIdx.x < width)
            row_ptr[threadIdx.x] = begin * width + (int64_t)threadIdx.x * n;
        if (threadIdx.x == 0 && j == aggregates - 1)
            row_ptr[width] = offsets[aggregates] * width;
        for (int64_t k = threadIdx.x; k < n && n <= LONGEST; k += THREADS) {
            const block_of_p b = from[begin + k];
            int64_t smaller = 0;
#pragma unroll 8
            for (int64_t i = 0; i < n; i++)
                smaller += from[begin + i].row < b.row;
            for (int e = 0; e < width; e++) {
                const int64_t to = begin * width + e * n + smaller;
                r.col[to] = b.row;
                ((T *)r.val)[to] = val[(int64_t)b.block * width + e];
            }
        }
    }
}

/* --------------------------------------------------------- the matrix of nodes */

/* *cell = max(*cell, value) of numbers that are not negative; their bits have the same order. */
__device__ inline void raise(float *cell, float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    atomicMax((unsigned *)cell, bits);
}

__device__ inline void raise(double *cell, double value)
{
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    atomicMax((unsigned long long *)cell, bits);
}

/* Rows of the matrix of nodes, by a warp each, as in amg_merge_node. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    gather_nodes(const __grid_constant__ block_job<T> j, amg_slots slots, row_list from, row_list again, int64_t most)
{
    SPMV_DYNAMIC_SHARED(memory);
    const int warp = (int)threadIdx.x / warp_lanes;
    const int64_t bytes = bytes_of_table<T>(j.log, 1, 1), warps = (int64_t)blockDim.x / warp_lanes;
    const team_lanes<1> l(1);
    const int64_t groups = from.rows != nullptr ? (int64_t)*from.count : j.rows;
    int64_t group = (int64_t)blockIdx.x * warps + warp;
    if (group >= groups)
        return;
    block_table<T> t;
    t.take(j.tables != nullptr ? j.tables + group * bytes : memory + warp * bytes, j.log, 1, PAIRS);
    t.clear(l, 0);
    reservation reserved = {0, 0};
    for (; group < groups; group += (int64_t)gridDim.x * warps) {
        const int64_t node = from.rows != nullptr ? (int64_t)from.rows[group] : group;
        bool fits = groups <= most;
        for (int c = 0; c < slots.block && fits; c++) {
            const int64_t slot = node * slots.block + c, row = slots.row != nullptr ? slots.row[slot] : slot;
            if (row < 0)
                continue;
            for (int64_t k = amg_offset(&j.left, row) + l.lane, end = amg_offset(&j.left, row + 1); k < end && fits;
                 k += warp_lanes) {
                const int32_t column = j.left.col[k];
                const int s = t.insert((slots.slot != nullptr ? slots.slot[column] : column) / slots.block);
                const T value = ((const T *)j.left.val)[k], size = value < 0 ? -value : value;
                fits = s >= 0;
                if (fits && size > 0)
                    raise(t.sums + s, size);
            }
            fits = __ballot_sync(all_lanes, !fits) == 0;
        }
        __syncwarp();
        finish(j, &t, l, 1, node, !fits, &reserved, again, (T)0);
    }
}

/* ------------------------------------------------------------------ launches */

struct block_counters {
    unsigned long long taken;     /* blocks of the common array */
    unsigned long long listed[3]; /* rows that are left for larger tables */
};

/* log2 of the places of a table that holds all columns, or as many as a row can have. */
int log_for(int64_t columns)
{
    int log = 1;
    while (log < 17 && (int64_t)1 << log < columns)
        log++;
    return log;
}

/* Tables in global memory. */
template <typename T> int64_t tables_for(int64_t columns, int width)
{
    const int64_t fit = (int64_t)GLOBAL_BYTES / bytes_of_table<T>(log_for(columns), width, 1);
    return fit < 1 ? 1 : fit < GLOBAL_TABLES ? fit : (int64_t)GLOBAL_TABLES;
}

/* One pass: a kernel with tables of 2^log places. */
template <typename T, typename Kernel, typename... More>
spmv_status launch_pass(spmv_context *ctx, const char *name, Kernel kernel, uint64_t *told, int team, int stride,
                        int64_t groups, block_job<T> j, More... more)
{
    const cuda_state *const device = (const cuda_state *)ctx->device;
    const int64_t bytes = bytes_of_table<T>(j.log, stride, team);
    int most = 0;
    spmv_status st =
        cuda_check(ctx, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->device), name);
    if (st == SPMV_OK)
        st = once_a_device(ctx, name, told, (const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    if (st != SPMV_OK)
        return st;
    if (j.tables != nullptr) {
        const int64_t blocks = min_i64(groups, tables_for<T>(((int64_t)1 << j.log), stride));
        return launch_shaped(ctx, name, {(int)blocks, warp_lanes, 0, false}, kernel, j, more...);
    }
    const int64_t fit = 48 * 1024 / bytes, teams = team > 1 || fit < 1 ? 1 : fit < WARPS ? fit : (int64_t)WARPS;
    const int64_t by_memory = device->shared_bytes / (teams * bytes + 1024), by_threads = 64 / (teams * team);
    const int64_t resident = by_memory < 1 ? 1 : by_memory < by_threads ? by_memory : by_threads;
    const int64_t blocks = min_i64(ceil_divide(groups, teams), resident * device->multiprocessors);
    return launch_shaped(ctx, name, {(int)blocks, (int)teams * team * warp_lanes, (int)(teams * bytes), false}, kernel,
                         j, more...);
}

/* The largest table that a block's shared memory holds, up to 2^log places. */
template <typename T> spmv_status fitting(spmv_context *ctx, int stride, int *log)
{
    int most = 0;
    const cuda_state *const device = (const cuda_state *)ctx->device;
    const spmv_status st =
        cuda_check(ctx, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->device),
                   "cudaDeviceGetAttribute");
    while (st == SPMV_OK && *log > 1 && bytes_of_table<T>(*log, stride, WARPS) > most)
        --*log;
    return st;
}

/* All passes. first(job, again) queues the one for all rows, with tables of 2^log places; later(job, from, again, most)
 * those for lists. stride: sums of a place in the later ones. */
template <typename T, typename First, typename Later>
spmv_status queue_passes(spmv_context *ctx, const struct amg_block_product *s, block_job<T> j, int log, int stride,
                         const First &first, const Later &later)
{
    block_counters *const found = (block_counters *)s->counters;
    spmv_status st =
        cuda_check(ctx, cudaMemsetAsync(found, 0, sizeof *found, (cudaStream_t)ctx->stream), "cudaMemsetAsync");
    row_list list = {nullptr, nullptr};
    int turn = 0;
    for (int pass = 0; st == SPMV_OK && pass < 4; pass++) {
        const bool large = pass == 3;
        const row_list from = list;
        const int before = j.log;
        j.log = large ? log_for(s->columns) : log + 2 * pass < LARGEST ? log + 2 * pass : (int)LARGEST;
        j.tables = large ? (unsigned char *)s->tables : nullptr;
        if (pass > 0 && !large) {
            st = fitting<T>(ctx, stride, &j.log);
            if (st == SPMV_OK && j.log <= before)
                continue;
        }
        const bool last = large || (int64_t)1 << j.log >= s->columns;
        list = last ? row_list{nullptr, nullptr} : row_list{s->lists[turn], &found->listed[pass]};
        turn = 1 - turn;
        if (st == SPMV_OK)
            st = pass == 0 ? first(j, list)
                           : later(j, from, list, large ? GLOBAL_ROWS * tables_for<T>(s->columns, stride) : INT64_MAX);
        if (last)
            break;
    }
    return st;
}

template <int TALL, int ALIKE, int TEAM, typename T>
spmv_status queue_tall(spmv_context *ctx, const struct amg_block_product *s, const block_job<T> &j, int log)
{
    static uint64_t told, told_single;
    const row_list none = {nullptr, nullptr};
    const spmv_status st = fitting<T>(ctx, TALL * s->width, &log);
    if (st != SPMV_OK)
        return st;
    return queue_passes<T>(
        ctx, s, j, log, s->width,
        [=](const block_job<T> &job, row_list again) {
            return launch_pass<T>(ctx, s->name, multiply_blocks<TALL, ALIKE, TEAM, T>, &told, TEAM, TALL * s->width,
                                  s->rows / TALL, job, none, again, INT64_MAX);
        },
        [=](const block_job<T> &job, row_list from, row_list again, int64_t most) {
            return launch_pass<T>(ctx, s->name, multiply_blocks<1, ALIKE, 1, T>, &told_single, 1, s->width, s->rows,
                                  job, from, again, most);
        });
}

/* The table of the first pass, for so many blocks in a row. */
int log_of_first(double expected)
{
    return expected <= 24 ? SMALLEST : expected <= 48 ? SMALLEST + 1 : SMALLEST + 2;
}

template <typename T> block_job<T> job_of(const struct amg_block_product *s)
{
    block_job<T> j = {};
    j.rows = s->rows;
    j.left = s->left;
    j.longest = s->sorted_rows ? (int64_t)LONGEST : INT32_MAX / AMG_NULLS;
    j.right.m = s->right;
    j.right.places = s->finished != nullptr ? s->finished->places : nullptr;
    j.right.col = s->finished != nullptr ? s->finished->col : s->right.col;
    j.right.val = (const T *)(s->finished != nullptr ? s->finished->val : s->right.val);
    j.right.width = s->width;
    j.places = s->to.places;
    j.col = s->to.col;
    j.val = (T *)s->to.val;
    j.room = s->to.room;
    j.taken = &((block_counters *)s->counters)->taken;
    j.lengths = s->lengths;
    j.diagonal = (const T *)s->diagonal;
    j.mass = s->mass;
    return j;
}

/* Few groups have a large team each, and a table for all columns if possible. */
template <typename T> spmv_status queue_product(spmv_context *ctx, const struct amg_block_product *s)
{
    const block_job<T> j = job_of<T>(s);
    const bool few = s->rows / s->tall < (int64_t)((const cuda_state *)ctx->device)->multiprocessors * 16;
    const int all = log_for(s->columns * 5 / 4), log = !few            ? log_of_first(s->expected)
                                                       : all < LARGEST ? all
                                                                       : (int)LARGEST;
    const int alike = s->alike ? s->tall : 1, team = s->team == AMG_ONE_WARP        ? 1
                                                     : few                          ? 8
                                                     : s->team == AMG_SEVERAL_WARPS ? 4
                                                                                    : 1;
    switch (100 * s->tall + 10 * alike + team) {
#define CASE(tall, alike, team)                                                                                        \
    case 100 * tall + 10 * alike + team:                                                                               \
        return queue_tall<tall, alike, team>(ctx, s, j, log);
        CASE(2, 2, 1)
        CASE(3, 3, 1)
        CASE(6, 6, 1)
        CASE(2, 2, 8)
        CASE(3, 3, 8)
        CASE(6, 6, 8)
        CASE(2, 1, 1)
        CASE(3, 1, 1)
        CASE(6, 1, 1)
        CASE(3, 1, 4)
        CASE(6, 1, 4)
        CASE(2, 1, 8)
        CASE(3, 1, 8)
        CASE(6, 1, 8)
#undef CASE
    default:
        return queue_tall<1, 1, 1>(ctx, s, j, log);
    }
}

template <typename T>
spmv_status queue_nodes(spmv_context *ctx, const struct amg_block_product *s, const amg_slots &slots)
{
    static uint64_t told;
    const row_list none = {nullptr, nullptr};
    return queue_passes<T>(
        ctx, s, job_of<T>(s), log_of_first(s->expected), 1,
        [=](const block_job<T> &job, row_list again) {
            return launch_pass<T>(ctx, s->name, gather_nodes<T>, &told, 1, 1, s->rows, job, slots, none, again,
                                  INT64_MAX);
        },
        [=](const block_job<T> &job, row_list from, row_list again, int64_t most) {
            return launch_pass<T>(ctx, s->name, gather_nodes<T>, &told, 1, 1, s->rows, job, slots, from, again, most);
        });
}

template <int LANES, typename T>
spmv_status place_by(spmv_context *ctx, int64_t rows, int width, const struct amg_finished *f, struct amg_csr c)
{
    return launch(ctx, "amg place blocks", grid_for(rows, THREADS / LANES), THREADS, place_blocks<LANES, T>, rows,
                  width, f->places, f->col, (const T *)f->val, c);
}

template <typename T>
spmv_status place(spmv_context *ctx, int64_t rows, int64_t nnz, int width, const struct amg_finished *f,
                  struct amg_csr c)
{
    enum { USUAL = 16 };
    return nnz <= USUAL * width * rows ? place_by<8, T>(ctx, rows, width, f, c)
                                       : place_by<warp_lanes, T>(ctx, rows, width, f, c);
}

spmv_status queue_transpose(spmv_context *ctx, spmv_type type, const struct amg_block_transpose *t)
{
    const spmv_status st =
        launch(ctx, "amg scatter blocks", grid_for(t->fine, THREADS / 4), THREADS, scatter_blocks, t->p, t->fine,
               t->width, (const int64_t *)t->offsets, t->counts, (block_of_p *)t->entries);
    if (st != SPMV_OK)
        return st;
    const int grid = grid_for(t->aggregates, 1);
    return type == SPMV_F64
               ? launch(ctx, "amg place blocks", grid, THREADS, place_transposed<double>, (const int64_t *)t->offsets,
                        t->aggregates, t->width, (const block_of_p *)t->entries, (const double *)t->p.val, t->r)
               : launch(ctx, "amg place blocks", grid, THREADS, place_transposed<float>, (const int64_t *)t->offsets,
                        t->aggregates, t->width, (const block_of_p *)t->entries, (const float *)t->p.val, t->r);
}

} // namespace

extern "C" int64_t amg_block_room_cuda(spmv_context *ctx, int64_t blocks)
{
    enum { MOST_WARPS = 64 }; /* of a multiprocessor; each leaves some blocks unused, in each pass */
    return blocks + (int64_t)4 * MOST_WARPS * RESERVED * ((const cuda_state *)ctx->device)->multiprocessors;
}

extern "C" int64_t amg_block_tables_cuda(spmv_type type, int64_t columns, int width)
{
    if (columns <= (int64_t)1 << SMALLEST)
        return 0;
    return type == SPMV_F64 ? tables_for<double>(columns, width) * bytes_of_table<double>(log_for(columns), width, 1)
                            : tables_for<float>(columns, width) * bytes_of_table<float>(log_for(columns), width, 1);
}

extern "C" spmv_status amg_block_product_cuda(spmv_context *ctx, spmv_type type, const struct amg_block_product *s)
{
    static_assert(sizeof(block_counters) <= AMG_GALERKIN_COUNTERS, "room for the counters");
    return on_device(ctx,
                     [=] { return type == SPMV_F64 ? queue_product<double>(ctx, s) : queue_product<float>(ctx, s); });
}

extern "C" spmv_status amg_node_rows_cuda(spmv_context *ctx, spmv_type type, const struct amg_block_product *s,
                                          const struct amg_slots *slots)
{
    return on_device(ctx, [=] {
        return type == SPMV_F64 ? queue_nodes<double>(ctx, s, *slots) : queue_nodes<float>(ctx, s, *slots);
    });
}

extern "C" spmv_status amg_block_place_cuda(spmv_context *ctx, spmv_type type, int64_t rows, int64_t nnz, int width,
                                            const struct amg_finished *f, struct amg_csr c)
{
    return on_device(ctx, [=] {
        return type == SPMV_F64 ? place<double>(ctx, rows, nnz, width, f, c)
                                : place<float>(ctx, rows, nnz, width, f, c);
    });
}

extern "C" spmv_status amg_count_blocks_cuda(spmv_context *ctx, const struct amg_block_transpose *t)
{
    return on_device(ctx, [=] {
        const spmv_status st =
            cuda_check(ctx, cudaMemsetAsync(t->counts, 0, (size_t)t->aggregates * 4, (cudaStream_t)ctx->stream),
                       "cudaMemsetAsync");
        return st != SPMV_OK ? st
                             : launch(ctx, "amg count blocks", grid_for(t->nnz / t->width, THREADS), THREADS,
                                      count_blocks, (const int32_t *)t->p.col, t->nnz / t->width, t->width, t->counts);
    });
}

extern "C" spmv_status amg_block_transpose_cuda(spmv_context *ctx, spmv_type type, const struct amg_block_transpose *t)
{
    return on_device(ctx, [=] { return queue_transpose(ctx, type, t); });
}
