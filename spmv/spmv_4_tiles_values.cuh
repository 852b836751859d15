/* The table of values of rung 4, made on the device: the distinct values of a matrix and an 8-bit
 * code for each nonzero.
 *
 * find      finds the distinct values with a hash set; more than MOST_VALUES end the search
 * sort      sorts the table by bits, so that codes do not depend on the order of insertion
 * encode    finds the code of each value by a binary search of 8 steps
 *
 * Values are compared as bit patterns: +0 and -0 are distinct, and so are NaNs with different bits;
 * nothing is rounded. Each block has a set in shared memory, so a value that the block has already
 * found costs one read there. At its end, a block adds its set to the set of all blocks. Matrices
 * with many distinct values are rejected after about a thousand values in each of the first blocks;
 * later blocks read a flag in each turn. A turn of a block has two phases: all threads look their
 * values up while the set does not change; if any value is new, which is rare, they add theirs.
 *
 * Sets use open addressing. A slot is a word that is EMPTY until a compare-and-swap claims it; a
 * flag represents the one value that equals EMPTY. A set without a free slot already exceeds
 * MOST_VALUES, so it may drop values.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_VALUES_CUH
#define SPMV_4_TILES_VALUES_CUH

#include "block.cuh"

namespace tiles
{

enum { MOST_VALUES = 256, VALUE_THREADS = 256, VALUE_SLOTS = 1024, VALUES_A_TURN = 4 };
static_assert(VALUE_SLOTS > 2 * MOST_VALUES, "searches are short, and a full set has too many");

/* The set of all blocks. begin_search sets slots to EMPTY and numbers to 0. */
struct value_set {
    /* a NaN that no computation produces */
    enum : unsigned long long { EMPTY = 0x7ff4c0dedeadbeefull };
    unsigned long long slot[VALUE_SLOTS];
    unsigned count;   /* of occupied slots */
    unsigned has_one; /* 1: contains the value that equals EMPTY */
    unsigned too_many;
};

/* The table of a plan: the values' bits in ascending order, padded with ~0, and the same as
 * numbers. */
template <typename T> struct value_table {
    unsigned long long bits[MOST_VALUES];
    T number[MOST_VALUES];
};

template <typename Stored> __device__ unsigned long long bits_of(const Stored *from)
{
    const Stored number = *from;
    if constexpr (sizeof(Stored) == 4) {
        uint32_t word;
        memcpy(&word, &number, sizeof word);
        return word;
    } else {
        unsigned long long word;
        static_assert(sizeof(Stored) == sizeof word, "real numbers");
        memcpy(&word, &number, sizeof word);
        return word;
    }
}

template <typename Stored> __device__ Stored number_of(unsigned long long bits)
{
    Stored number;
    if constexpr (sizeof(Stored) == 4) {
        const uint32_t word = (uint32_t)bits;
        memcpy(&number, &word, sizeof number);
    } else {
        memcpy(&number, &bits, sizeof number);
    }
    return number;
}

/* The hash of a value. Close numbers differ in their upper or in their lower bits, so both
 * count. */
__device__ inline unsigned first_slot(unsigned long long bits)
{
    return (unsigned)((bits * 0x9e3779b97f4a7c15ull) >> 54) % VALUE_SLOTS;
}

/* Whether the set contains the value. No thread may add to the set meanwhile. */
__device__ inline bool has_value(const unsigned long long *slots, unsigned long long bits)
{
    unsigned at = first_slot(bits);
    for (int probes = 0; probes < VALUE_SLOTS && slots[at] != value_set::EMPTY; probes++) {
        if (slots[at] == bits)
            return true;
        at = (at + 1) % VALUE_SLOTS;
    }
    return false;
}

/* Adds a value other than EMPTY to a set. Returns false if no slot is free. */
__device__ inline bool add_value(unsigned long long *slots, unsigned *count, unsigned long long bits)
{
    unsigned at = first_slot(bits);
    for (int probes = 0; probes < VALUE_SLOTS; probes++) {
        const unsigned long long held = atomicCAS(&slots[at], (unsigned long long)value_set::EMPTY, bits);
        if (held == value_set::EMPTY)
            atomicAdd(count, 1u);
        if (held == value_set::EMPTY || held == bits)
            return true;
        at = (at + 1) % VALUE_SLOTS;
    }
    return false;
}

static __global__ void __launch_bounds__(VALUE_THREADS) begin_search(value_set *all)
{
    for (int i = (int)threadIdx.x; i < VALUE_SLOTS; i += VALUE_THREADS)
        all->slot[i] = value_set::EMPTY;
    if (threadIdx.x == 0)
        all->count = all->has_one = all->too_many = 0;
}

template <typename Stored>
__global__ void __launch_bounds__(VALUE_THREADS) find_values(const Stored *val, int64_t nnz, value_set *all)
{
    __shared__ unsigned long long slots[VALUE_SLOTS];
    __shared__ unsigned count, has_one, stop;
    const int thread = (int)threadIdx.x;
    for (int i = thread; i < VALUE_SLOTS; i += VALUE_THREADS)
        slots[i] = value_set::EMPTY;
    if (thread == 0)
        count = has_one = stop = 0;
    __syncthreads();

    const int64_t turn = (int64_t)VALUE_THREADS * VALUES_A_TURN, stride = gridDim.x * turn;
    bool enough = false; /* the same for all threads */
    for (int64_t from = blockIdx.x * turn; from < nnz && !enough; from += stride) {
        unsigned long long bits[VALUES_A_TURN];
        const bool stops = thread == 0 && *(volatile unsigned *)&all->too_many != 0;
        bool known = !stops;
#pragma unroll
        for (int i = 0; i < VALUES_A_TURN; i++) {
            const int64_t k = from + i * VALUE_THREADS + thread;
            bits[i] = bits_of(val + (k < nnz ? k : from));
        }
#pragma unroll
        for (int i = 0; i < VALUES_A_TURN; i++)
            known = known && (bits[i] == value_set::EMPTY ? has_one != 0 : has_value(slots, bits[i]));
        if (__syncthreads_count(!known) == 0)
            continue;
        for (int i = 0; i < VALUES_A_TURN && !known; i++) {
            if (bits[i] == value_set::EMPTY)
                atomicOr(&has_one, 1u);
            else if (!add_value(slots, &count, bits[i])) /* all VALUE_SLOTS are occupied */
                break;
        }
        if (stops)
            stop = 1;
        __syncthreads();
        enough = count + has_one > MOST_VALUES || stop != 0;
    }

    __syncthreads();
    bool fits = !enough;
    for (int i = thread; i < VALUE_SLOTS && fits; i += VALUE_THREADS)
        if (slots[i] != value_set::EMPTY)
            fits = *(volatile unsigned *)&all->count <= MOST_VALUES && add_value(all->slot, &all->count, slots[i]);
    if (!fits)
        all->too_many = 1;
    if (thread == 0 && has_one != 0)
        all->has_one = 1;
}

/* Makes the table of a set with at most MOST_VALUES values. One block: each thread counts the
 * values less than its own. */
template <typename T, typename Stored>
__global__ void __launch_bounds__(VALUE_THREADS) sort_values(const value_set *all, value_table<T> *table)
{
    static_assert(VALUE_THREADS == MOST_VALUES, "a thread a value");
    __shared__ unsigned long long met[MOST_VALUES];
    __shared__ unsigned count;
    const int thread = (int)threadIdx.x;
    if (thread == 0) {
        count = all->has_one;
        met[0] = value_set::EMPTY;
    }
    __syncthreads();
    for (int i = thread; i < VALUE_SLOTS; i += VALUE_THREADS)
        if (all->slot[i] != value_set::EMPTY)
            met[atomicAdd(&count, 1u)] = all->slot[i];
    __syncthreads();
    const unsigned values = count;
    if ((unsigned)thread >= values) { /* padding */
        table->bits[thread] = ~0ull;
        table->number[thread] = T();
        return;
    }
    const unsigned long long mine = met[thread];
    unsigned before = 0;
    for (unsigned i = 0; i < values; i++)
        before += met[i] < mine;
    table->bits[before] = mine;
    table->number[before] = T(number_of<Stored>(mine));
}

template <typename T, typename Stored>
__global__ void __launch_bounds__(VALUE_THREADS)
    encode_values(const Stored *val, int64_t nnz, const value_table<T> *table, uint8_t *code)
{
    __shared__ unsigned long long bits[MOST_VALUES];
    const int64_t stride = (int64_t)gridDim.x * VALUE_THREADS;
    bits[threadIdx.x] = table->bits[threadIdx.x];
    __syncthreads();
    for (int64_t k = (int64_t)blockIdx.x * VALUE_THREADS + threadIdx.x; k < nnz; k += stride) {
        const unsigned long long mine = bits_of(val + k);
        int at = 0; /* the first element that is not less */
        for (int step = MOST_VALUES / 2; step > 0; step /= 2)
            at += bits[at + step - 1] < mine ? step : 0;
        code[k] = (uint8_t)at;
    }
}

} // namespace tiles

#endif
