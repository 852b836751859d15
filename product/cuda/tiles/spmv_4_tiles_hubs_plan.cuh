/* Chooses the hubs of rung 4 and writes the columns with their numbers, on the device.
 *
 * sample    counts the columns of a sample: windows of neighbouring nonzeros, evenly distributed
 * histogram how many columns have each count. From it the host takes the least count of a hub, and
 *           how many of the columns with one less still fit
 * mark      a word for each column: whether it has that count, and whether it has one less
 * (scan)    the number of both before each column
 * name      the number of each hub, in the order of the columns, and what stands for each column
 * encode    writes the columns, and counts the entries of hubs
 *
 * All is determined by the matrix: counts do not depend on the order of the additions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_HUBS_PLAN_CUH
#define SPMV_4_TILES_HUBS_PLAN_CUH

#include "formats/device_loops.cuh"
#include "product/cuda/tiles/spmv_4_tiles_hubs.cuh"
#include "product/cuda/tiles/spmv_4_tiles_plan.cuh"

namespace tiles
{

/* The sample. */
struct hub_sample {
    enum { WINDOW = warp_lanes, MOST = 1 << 22 };
    int64_t nnz, windows;

    explicit hub_sample(int64_t all) : nnz(all), windows((all < MOST ? all : (int64_t)MOST) / WINDOW)
    {
    }
    __host__ __device__ int64_t size() const
    {
        return windows * WINDOW;
    }
    __device__ int64_t place(int64_t k) const
    {
        return nnz / windows * (k / WINDOW) + k % WINDOW;
    }
};

/* What the host reads; all 0 at first. */
struct hub_counts {
    enum { BINS = 1024 };
    unsigned columns[BINS]; /* how many columns have this count; the last one: this count or more */
    int64_t sectors;        /* of x, of all windows */
    int64_t entries;        /* of hubs, in the whole matrix */
};

/* A column is a hub if it has at least `least` entries in the sample, or if it is one of the first
 * `more` columns with one less. */
struct hub_rule {
    unsigned least;
    int32_t more;

    __device__ int64_t marks(unsigned count) const
    {
        return count >= least ? 1 : count + 1 == least ? (int64_t)1 << 32 : 0;
    }
};

/* shift: log2 of the columns of a sector of x. */
static __global__ void __launch_bounds__(block_threads)
    sample_columns(hub_sample s, int shift, const int32_t *col, unsigned *count, hub_counts *all)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    int64_t sectors = 0;
    for_each(s.size(), [&](int64_t k) { /* a window a warp */
                                        const int32_t column = col[s.place(k)];
                                        sectors +=
                                            __ffs((int)__match_any_sync(0xffffffffu, (unsigned)column >> shift)) - 1 ==
                                            lane;
                                        atomicAdd(count + column, 1u);
    });
    atomic_add_of_warp(sectors, &all->sectors);
}

static __global__ void __launch_bounds__(block_threads)
    count_counts(const unsigned *count, int64_t cols, hub_counts *all)
{
    __shared__ unsigned columns[hub_counts::BINS];
    for (int i = (int)threadIdx.x; i < hub_counts::BINS; i += block_threads)
        columns[i] = 0;
    __syncthreads();
    for_each(cols, [=](int64_t c) {
        const unsigned n = count[c];
        if (n > 0)
            atomicAdd(columns + (n < hub_counts::BINS ? n : hub_counts::BINS - 1u), 1u);
    });
    __syncthreads();
    for (int i = (int)threadIdx.x; i < hub_counts::BINS; i += block_threads)
        if (columns[i] > 0)
            atomicAdd(all->columns + i, columns[i]);
}

static __global__ void __launch_bounds__(block_threads)
    mark_hubs(hub_rule rule, const unsigned *count, int64_t cols, int64_t *marks)
{
    for_each(cols, [=](int64_t c) { marks[c] = rule.marks(count[c]); });
}

/* before: of marks, the sums before each column. name: over the counts. */
static __global__ void __launch_bounds__(block_threads)
    name_hubs(hub_rule rule, const int64_t *before, int64_t cols, unsigned *count_and_name, int32_t *column)
{
    for_each(cols, [=](int64_t c) {
        const int64_t marks = rule.marks(count_and_name[c]);
        const int32_t less = (int32_t)(before[c] >> 32),
                      number = (int32_t)before[c] + (less < rule.more ? less : rule.more);
        const bool is_hub = marks == 1 || (marks != 0 && less < rule.more);
        count_and_name[c] = (unsigned)(is_hub ? ~number : (int32_t)c);
        if (is_hub)
            column[number] = (int32_t)c;
    });
}

static __global__ void __launch_bounds__(block_threads)
    encode_columns(const int32_t *col, int64_t nnz, const int32_t *name, int32_t *encoded, hub_counts *all)
{
    enum { AT_ONCE = 4 };
    const int64_t stride = (int64_t)gridDim.x * block_threads;
    int64_t of_hubs = 0;
    for (int64_t k = (int64_t)blockIdx.x * block_threads + threadIdx.x; k < nnz; k += AT_ONCE * stride) {
        int32_t names[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            names[i] = k + i * stride < nnz ? name[col[k + i * stride]] : 0;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (k + i * stride < nnz) {
                encoded[k + i * stride] = names[i];
                of_hubs += names[i] < 0;
            }
    }
    atomic_add_of_warp(of_hubs, &all->entries);
}

} // namespace tiles

#endif
