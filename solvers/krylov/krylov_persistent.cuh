/* What the kernels of many steps share (krylov_persistent.cu, solvers/least_squares/least_squares_persistent.cu):
 * rows of a matrix that are dealt to resident blocks, products of them, and sums over all blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_PERSISTENT_CUH
#define KRYLOV_PERSISTENT_CUH

#include <string.h>
#include <type_traits>

#include "device/block.cuh"
#include "device/grid_barrier.cuh"
#include "product/cuda/spmv_types.cuh"
#include "solvers/krylov/krylov_basis.cuh"

namespace
{

using namespace grid_barrier;
using namespace krylov_basis;

/* ROWS_LEAST: fewer rows a block would need more blocks, which slow the barriers down. MOST_BLOCKS:
 * with rows; the clerk is one more, all multiprocessors of an H100. */
enum { BLOCK = 512, WARPS = BLOCK / warp_lanes, BATCH = 16, ROWS_LEAST = 256, MOST_BLOCKS = 131 };
enum { AT_ONCE = 8 }; /* entries of a lane whose loads are in flight together */

/* Static shared memory, and what the system keeps of each block's. */
enum { STATIC_BYTES = 6144 };

/* Longer rows would be the work of one warp for too long. */
enum { LONGEST_ROW = 2048 };

/* The matrix, and how rows are dealt: rows_each a block, `lanes` lanes a row, a power of two. cells:
 * entries for which a block has shared memory. */
template <typename T, typename Stored> struct dealt_rows {
    const int32_t *row_ptr, *col;
    const Stored *val; /* NULL: a pattern */
    const T *scale;    /* M^-1, a diagonal; NULL: none */
    int rows, rows_each, lanes, cells;
};

/* The block's rows of A in shared memory. */
template <typename Stored> struct near_rows {
    Stored *val;
    int32_t *begin, *col; /* begin: rows_each + 1 */

    static constexpr int cell_bytes = (int)(sizeof(Stored) + sizeof(int32_t));
    static __host__ __device__ int bytes(int rows_each, int cells)
    {
        return (cells * cell_bytes + (rows_each + 1) * (int)sizeof(int32_t) + 15) / 16 * 16;
    }
    __device__ near_rows(unsigned char *memory, int cells)
        : val((Stored *)memory), begin((int32_t *)(val + cells) + cells), col((int32_t *)(val + cells))
    {
    }
};

struct meeting_place {
    krylov_state *state;
    double *parts; /* sum d of block b at b * width + d */
    int width;
    unsigned *arrived; /* 0 before the launch */
    unsigned *ended;   /* gmres: whether the run has ended, of even and of odd steps; 0 before the launch */
};

/* The block's own rows. The clerk has none. */
struct own_rows {
    int first, count;
};
template <typename T, typename Stored> __device__ own_rows rows_of_block(const dealt_rows<T, Stored> &a)
{
    const int first = (int)blockIdx.x * a.rows_each, left = a.rows - first;
    return {first, left < 0 ? 0 : left < a.rows_each ? left : a.rows_each};
}

/* The barrier, in two halves. For all threads of all blocks; *passed counts. */
__device__ void arrive_block(const meeting_place &place)
{
    __syncthreads();
    if (gridDim.x > 1 && threadIdx.x == 0)
        arrive(place.arrived);
}
__device__ void await_blocks(const meeting_place &place, unsigned *passed)
{
    *passed += 1;
    if (gridDim.x > 1 && threadIdx.x == 0)
        await_all(place.arrived, *passed * gridDim.x);
    __syncthreads();
}

/* Copies the block's rows to shared memory. False: there is too little. For all threads. */
template <typename T, typename Stored>
__device__ bool copy_rows(const dealt_rows<T, Stored> &a, own_rows own, const near_rows<Stored> &near)
{
    const int begin = own.count > 0 ? a.row_ptr[own.first] : 0;
    const int count = own.count > 0 ? a.row_ptr[own.first + own.count] - begin : 0;
    if (count > a.cells)
        return false;
    for (int r = (int)threadIdx.x; r <= own.count; r += BLOCK)
        near.begin[r] = own.count > 0 ? a.row_ptr[own.first + r] - begin : 0;
    for (int k = (int)threadIdx.x; k < count; k += BLOCK) {
        near.col[k] = a.col[begin + k];
        near.val[k] = a.val != nullptr ? a.val[begin + k] : Stored(1);
    }
    __syncthreads();
    return true;
}

/* Calls take(row of the block, sum) with sum = that row of A times the vector `from`, of elements or
 * pairs. */
template <typename T, typename Stored, typename E, typename Take>
__device__ void multiply_with(const int32_t *begin, const int32_t *col, const Stored *val, int lanes, int count,
                              const E *from, const Take &take)
{
    const int lane = (int)threadIdx.x % lanes, together = BLOCK / lanes;
    for (int base = 0; base < count; base += together) {
        const int r = base + (int)threadIdx.x / lanes;
        pair<T> sum = {};
        if (r < count) {
            const int end = begin[r + 1];
            for (int k = begin[r] + lane; k < end; k += AT_ONCE * lanes) {
                E element[AT_ONCE] = {};
                T value[AT_ONCE] = {};
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++)
                    if (k + u * lanes < end) {
                        element[u] = load_others(from + col[k + u * lanes]);
                        value[u] = val != nullptr ? T(val[k + u * lanes]) : T(1);
                    }
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    if (k + u * lanes >= end)
                        break;
                    if constexpr (std::is_same_v<E, T>) {
                        sum.z += value[u] * element[u];
                    } else {
                        sum.z += value[u] * element[u].z;
                        sum.t += value[u] * element[u].t;
                    }
                }
            }
        }
        for (int mask = lanes / 2; mask > 0; mask /= 2) {
            sum.z += __shfl_xor_sync(0xffffffffu, sum.z, mask);
            if constexpr (!std::is_same_v<E, T>)
                sum.t += __shfl_xor_sync(0xffffffffu, sum.t, mask);
        }
        if (r < count && lane == 0)
            take(r, sum);
    }
}

template <typename T, typename Stored, typename E, typename Take>
__device__ void multiply_rows(const dealt_rows<T, Stored> &a, const near_rows<Stored> &near, bool is_near, own_rows own,
                              const E *from, const Take &take)
{
    if (is_near)
        multiply_with<T>(near.begin, near.col, (const Stored *)near.val, a.lanes, own.count, from, take);
    else
        multiply_with<T>(a.row_ptr + own.first, a.col, a.val, a.lanes, own.count, from, take);
}

/* Adds the parts of all blocks: totals[d], d < sums, in shared memory. LANES lanes add up a sum; their
 * loads are in flight together. */
template <int LANES> __device__ void add_parts(const meeting_place &place, int sums, double *totals)
{
    enum { BLOCKS_EACH = (MOST_BLOCKS + LANES) / LANES, AT_ONCE = BLOCKS_EACH < 17 ? BLOCKS_EACH : 17 };
    const int lane = (int)threadIdx.x % LANES, blocks = (int)gridDim.x;
    for (int first = 0; first < sums; first += BLOCK / LANES) {
        const int d = first + (int)threadIdx.x / LANES;
        const double *const its = place.parts + (d < sums ? d : 0);
        double sum = 0;
        for (int b = lane; b < blocks; b += LANES * AT_ONCE) {
            double part[AT_ONCE] = {};
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                if (b + k * LANES < blocks)
                    part[k] = load_others(its + (b + k * LANES) * place.width);
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++)
                sum += part[k];
        }
        for (int mask = LANES / 2; mask > 0; mask /= 2)
            sum += shuffled(sum, mask);
        if (lane == 0 && d < sums)
            totals[d] = sum;
    }
    __syncthreads();
}

/* Stores the block's parts of N sums. */
template <int N> __device__ void store_parts(const double (&sums)[N], const meeting_place &place)
{
    __shared__ double of_warps[N][WARPS];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    double part[N];
#pragma unroll
    for (int d = 0; d < N; d++)
        part[d] = sum_of_warp(sums[d]);
    if (lane == 0)
#pragma unroll
        for (int d = 0; d < N; d++)
            of_warps[d][warp] = part[d];
    __syncthreads();
    if (warp == 0) {
#pragma unroll
        for (int d = 0; d < N; d++)
            part[d] = sum_of_warp(lane < WARPS ? of_warps[d][lane] : 0);
        if (lane == 0)
#pragma unroll
            for (int d = 0; d < N; d++)
                place.parts[blockIdx.x * place.width + d] = part[d];
    }
}

/* Lanes a row, of `each` rows a block. A lane has AT_ONCE entries in flight, so the time is about that of the turns in
 * which the block takes its rows, for entries of the mean row each, and of the turns of the longest row: with one lane a
 * row of 574 entries among rows of 7 takes 72. */
int lanes_for(const spmv_csr &a, int64_t longest, int64_t each)
{
    int best = 1;
    int64_t least = INT64_MAX;
    for (int lanes = 1; lanes <= warp_lanes; lanes *= 2) {
        const int64_t together = AT_ONCE * (int64_t)lanes,
                      turns = ceil_divide(each * lanes, (int64_t)BLOCK) * ceil_divide(a.nnz, a.rows * together) +
                              ceil_divide(longest, together);
        if (turns < least) {
            least = turns;
            best = lanes;
        }
    }
    return best;
}

} // namespace

#endif
