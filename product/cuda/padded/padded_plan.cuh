/* Makes the plan of padded on the device, with two kernels:
 *
 *   measure  finds the layers and the column ranges of the slices, one warp for those that share
 *            them; stops early if the matrix has too many empty places or too many plain slices
 *   fill     writes codes and values in the order in which a product loads them
 *
 * Between them, a scan of the numbers of layers tells where each slice begins.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_PADDED_PLAN_CUH
#define PRODUCT_PADDED_PLAN_CUH

#include "product/cuda/padded/padded.cuh"
#include "product/cuda/tiles/spmv_4_tiles_plan.cuh"

namespace padded
{

enum {
    PLAN_BLOCK = 128,
    PLAN_WARPS = PLAN_BLOCK / warp_lanes,
    PLAN_RESIDENT = 8,  /* blocks of a multiprocessor */
    SLOTS = 2 * RANGES, /* of a hash table of ranges, a power of 2 */
    FREE = -1,
};

/* A matrix may cost a number of places for NONZEROS nonzeros (padded_most_bytes). An entry of a plain
 * slice counts as PLAIN_PLACES places, because a lane waits for each of them. The measurement stops
 * when a warp's slices so far exceed the limit by more than SPARE_PLACES. It does not with ANY_PLACES: a slice has
 * at most warp_lanes places for each LANES entries that its longest row has or begins. */
enum { NONZEROS = 64, PLAIN_PLACES = 8, SPARE_PLACES = 32768, ANY_PLACES = 2 * NONZEROS * SHARING * warp_lanes };

/* The results of measure; all are 0 before. */
struct findings {
    alignas(32) int unsuited; /* 1: the matrix costs too much */
    alignas(32) unsigned long long plain, plain_entries, longest;
};

/* The arrays that a plan is made from; those of products among them. */
struct making {
    findings *found;
    int32_t *layers; /* slices + 1; the last is 0 */
    int32_t *begins; /* slices + 1 */
    head *heads;
    uint16_t *ranges;
};

/* A matrix in CSR. */
template <typename Offset> struct csr {
    const Offset *row_ptr;
    const int32_t *col;
    int64_t rows, slices;
};

/* The ranges of a slice as they are found; used by a warp. */
struct range_set {
    int32_t slot[SLOTS]; /* hash table: columns / RANGE, or FREE */
    int32_t list[RANGES];

    __device__ void clear(int lane)
    {
        __syncwarp();
        for (int i = lane; i < SLOTS; i += warp_lanes)
            slot[i] = FREE;
        __syncwarp();
    }

    /* Adds a range. Returns false if the table is full. */
    __device__ bool add(int32_t range)
    {
        int at = (int)((uint32_t)range * 0x9e3779b1u >> 16) % SLOTS;
        for (int probe = 0; probe < SLOTS; probe++) {
            const int32_t there = atomicCAS(&slot[at], (int32_t)FREE, range);
            if (there == FREE || there == range)
                return true;
            at = (at + 1) % SLOTS;
        }
        return false;
    }

    /* Gives each lane one of the ranges, ascending with the lanes, INT32_MAX to the others. Returns
     * the number of ranges; if there are RANGES or more, lanes get none. */
    __device__ int sort(int lane, int32_t *mine)
    {
        int count = 0;
        __syncwarp();
        for (int i = lane; i < SLOTS; i += warp_lanes) {
            const unsigned used = __ballot_sync(0xffffffffu, slot[i] != FREE);
            const int at = count + __popc(used & ((1u << lane) - 1));
            if (slot[i] != FREE && at < RANGES)
                list[at] = slot[i];
            count += __popc(used);
        }
        __syncwarp();
        *mine = INT32_MAX;
        if (count >= RANGES)
            return count;
        const int32_t own = lane < count ? list[lane] : INT32_MAX;
        int before = 0;
        for (int i = 0; i < count; i++)
            before += list[i] < own;
        __syncwarp();
        if (lane < count)
            list[before] = own;
        __syncwarp();
        if (lane < count)
            *mine = list[lane];
        return count;
    }
};

/* Finds the ranges of the entries begin ... end - 1. Returns their number, RANGES for more than a slice
 * can have; *mine: see range_set::sort. */
__device__ inline int find_ranges(const int32_t *col, int64_t begin, int64_t end, range_set *set, int32_t *mine)
{
    enum { AT_ONCE = 8 };
    const int lane = (int)threadIdx.x % warp_lanes;
    bool full = false;
    set->clear(lane);
    for (int64_t k = begin + lane; k - lane < end; k += AT_ONCE * warp_lanes) {
        int32_t range[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            range[i] = k + i * warp_lanes < end ? col[k + i * warp_lanes] >> RANGE_BITS : (int32_t)FREE;
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) { /* of equal ranges, the first lane adds one */
            const unsigned equal = __match_any_sync(0xffffffffu, (unsigned)range[i]);
            if (range[i] != FREE && lane == __ffs((int)equal) - 1)
                full = !set->add(range[i]) || full;
        }
        if (__ballot_sync(0xffffffffu, full) != 0)
            return RANGES;
    }
    return set->sort(lane, mine);
}

/* Writes the layers of a slice, number `which` of those that share ranges. length: of the lane's
 * row. Returns the layers. */
template <typename Offset>
__device__ int32_t write_layers(const csr<Offset> &a, int64_t slice, int which, int64_t length, bool is_plain,
                                int32_t base, const making &m)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const int32_t longest = -tiles::warp_least(lane / ROWS == which ? -(int32_t)length : 0);
    const int32_t layers = is_plain ? 0 : longest / LANES + (longest % LANES != 0);
    if (lane == 0 && slice < a.slices) {
        m.layers[slice] = layers;
        m.heads[slice].base = base;
    }
    return layers;
}

/* Measures the slices; warps take those that share ranges in turn. most_places: for NONZEROS
 * nonzeros; plain_places: of an entry of a plain slice. */
template <typename Offset>
__global__ void __launch_bounds__(PLAN_BLOCK, PLAN_RESIDENT)
    measure(csr<Offset> a, int most_places, int plain_places, making m)
{
    __shared__ range_set sets[PLAN_WARPS];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    const volatile int *const others = &m.found->unsuited; /* what other warps found */
    int64_t spare = NONZEROS * SPARE_PLACES;
    unsigned long long plain = 0, plain_entries = 0;
    int32_t longest = 0;
    bool ends = __shfl_sync(0xffffffffu, *others, 0) != 0;
    for (int64_t g = (int64_t)blockIdx.x * PLAN_WARPS + warp; g * SHARED_ROWS < a.rows && !ends;
         g += (int64_t)gridDim.x * PLAN_WARPS) {
        const int64_t row = g * SHARED_ROWS, rows_end = row + SHARED_ROWS < a.rows ? row + SHARED_ROWS : a.rows;
        const int64_t begin = a.row_ptr[row], end = a.row_ptr[rows_end];
        const int others_end = *others; /* used when the slices are done */
        int64_t length = 0;
        if (row + lane < rows_end)
            length = (int64_t)a.row_ptr[row + lane + 1] - (int64_t)a.row_ptr[row + lane];
        length = length < INT32_MAX ? length : INT32_MAX;
        const int32_t most = -tiles::warp_least(-(int32_t)length);
        int32_t mine = INT32_MAX;
        const int count = find_ranges(a.col, begin, end, sets + warp, &mine);
        const int32_t least = tiles::warp_least(mine);
        const int32_t last = -tiles::warp_least(mine < INT32_MAX ? -mine : 0);
        const bool is_plain = count >= RANGES || last - least >= NO_RANGE;
        m.ranges[g * RANGES + lane] = !is_plain && mine < INT32_MAX ? (uint16_t)(mine - least) : (uint16_t)NO_RANGE;
        int64_t places = is_plain ? plain_places * (end - begin) : 0;
        for (int i = 0; i < SHARING; i++)
            places += (int64_t)warp_lanes * write_layers(a, g * SHARING + i, i, length, is_plain,
                                                         is_plain    ? (int32_t)PLAIN
                                                         : count > 0 ? least * RANGE
                                                                     : 0,
                                                         m);
        longest = most > longest ? most : longest;
        plain += is_plain;
        plain_entries += is_plain ? (unsigned long long)(end - begin) : 0;
        spare += most_places * (end - begin) - NONZEROS * places;
        ends = spare < 0 || __shfl_sync(0xffffffffu, others_end, 0) != 0;
    }
    if (lane > 0)
        return;
    if (spare < 0)
        m.found->unsuited = 1;
    if (blockIdx.x == 0 && warp == 0)
        m.layers[a.slices] = 0;
    atomicMax(&m.found->longest, (unsigned long long)longest);
    if (plain > 0) {
        atomicAdd(&m.found->plain, plain);
        atomicAdd(&m.found->plain_entries, plain_entries);
    }
}

static __global__ void __launch_bounds__(PLAN_BLOCK) write_heads(int64_t slices, making m)
{
    for (int64_t s = (int64_t)blockIdx.x * PLAN_BLOCK + threadIdx.x; s <= slices; s += (int64_t)gridDim.x * PLAN_BLOCK)
        m.heads[s].begin = m.begins[s];
}

/* The code of an entry's column. ranges: of the lane's range, ascending. Called by a warp. */
__device__ inline uint32_t code_of(int32_t column, int32_t base, int32_t ranges)
{
    const int32_t wanted = (column - base) >> RANGE_BITS;
    int at = 0;
#pragma unroll
    for (int step = RANGES / 2; step > 0; step /= 2)
        if (__shfl_sync(0xffffffffu, ranges, at + step) <= wanted)
            at += step;
    return (uint32_t)at << RANGE_BITS | (uint32_t)(column & (RANGE - 1));
}

/* Where a slice with so many layers has the place of a lane in one of them. */
__device__ inline int64_t place_of(int layer, int layers, int lane)
{
    const int alone = layers % PAIR, in_pairs = layer - alone;
    return in_pairs < 0 ? lane : (alone + in_pairs / PAIR * PAIR) * warp_lanes + lane * PAIR + in_pairs % PAIR;
}

/* Writes values, and codes if code is not NULL. Warps take the slices in turn. */
template <typename Offset, typename Stored>
__global__ void __launch_bounds__(PLAN_BLOCK, PLAN_RESIDENT)
    fill(csr<Offset> a, const Stored *from, const head *heads, const uint16_t *ranges, uint16_t *code, Stored *val)
{
    enum { TOGETHER = 8 }; /* layers */
    const int lane = (int)threadIdx.x % warp_lanes;
    for (int64_t slice = (int64_t)blockIdx.x * PLAN_WARPS + (int)threadIdx.x / warp_lanes; slice < a.slices;
         slice += (int64_t)gridDim.x * PLAN_WARPS) {
        const int64_t row = slice * ROWS + lane / LANES, first = (int64_t)heads[slice].begin * warp_lanes;
        const int32_t base = heads[slice].base, layers = heads[slice + 1].begin - heads[slice].begin;
        const int32_t range = ranges[slice / SHARING * RANGES + lane];
        int64_t k = 0, end = 0;
        if (row < a.rows) {
            k = (int64_t)a.row_ptr[row] + lane % LANES;
            end = (int64_t)a.row_ptr[row + 1];
        }
        for (int layer = 0; layer < layers; layer += TOGETHER, k += TOGETHER * LANES) {
            int32_t column[TOGETHER];
            Stored value[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                const bool is_there = k + i * LANES < end;
                column[i] = is_there && code != nullptr ? a.col[k + i * LANES] : -1;
                value[i] = is_there ? from[k + i * LANES] : Stored();
            }
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                if (layer + i >= layers)
                    break;
                const int64_t at = first + place_of(layer + i, layers, lane);
                val[at] = value[i];
                if (code == nullptr)
                    continue;
                const uint32_t of = code_of(column[i] >= 0 ? column[i] : base, base, range);
                code[at] = (uint16_t)(column[i] >= 0 ? of : (uint32_t)ABSENT);
            }
        }
    }
}

} // namespace padded

#endif
