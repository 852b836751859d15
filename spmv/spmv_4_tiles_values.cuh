/* A table of a matrix's values, for rung 4, on the device: from an array of values to the distinct ones and a code of 8
 * bits for each.
 *
 *   find      the distinct values, in a hash set; more than MOST_VALUES end the search
 *   sort      the table: in the order of the bits, so that codes do not depend on the order in which values were met
 *   encode    a code for each value, by a search of 8 steps in the table
 *
 * Values are bit patterns: +0 and -0 are two, and so are not-a-numbers with different bits; nothing is rounded and
 * nothing compared as a number. Each block keeps a set of its own in shared memory, so that a value that it has met
 * costs one read there, and adds it to the one of all blocks at its end. Ordinary matrices, whose values are all
 * different, are refused after a thousand values of each of the first blocks; the others look at a flag as they go
 * along. A turn of a block is in two: all look their values up, in a set that nobody changes; where a value is new,
 * which is seldom, all add theirs.
 *
 * Sets: open addressing, a slot a word that is EMPTY until a compare-and-swap claims it; the one value that looks like
 * EMPTY has a flag. A set without a free slot has far too many values, and what it does not take is not missed.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_4_TILES_VALUES_CUH
#define SPMV_4_TILES_VALUES_CUH

#include "block.cuh"

namespace tiles
{

enum { MOST_VALUES = 256, VALUE_THREADS = 256, VALUE_SLOTS = 1024, VALUES_A_TURN = 4 };
static_assert(VALUE_SLOTS > 2 * MOST_VALUES, "searches are short, and a full set has too many");

/* The set of all blocks. At first: slots EMPTY, numbers 0 (begin_search). */
struct value_set {
    enum : unsigned long long { EMPTY = 0x7ff4c0dedeadbeefull }; /* a not-a-number that nothing computes */
    unsigned long long slot[VALUE_SLOTS];
    unsigned count;   /* of slots that are taken */
    unsigned has_one; /* 1: the value that looks like EMPTY is there */
    unsigned too_many;
};

/* What a plan keeps beside the codes: the bits in order, ~0 behind the last, and the same as numbers. */
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

/* Where a search for it begins. Close numbers differ in their upper bits or their lower ones. */
__device__ inline unsigned first_slot(unsigned long long bits)
{
    return (unsigned)((bits * 0x9e3779b97f4a7c15ull) >> 54) % VALUE_SLOTS;
}

/* Is it in a set that nobody adds to meanwhile? */
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

/* Adds what is not EMPTY to a set, unless no slot is free: false. */
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
            else if (!add_value(slots, &count, bits[i])) /* they are VALUE_SLOTS */
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

/* The table of a set that has at most MOST_VALUES. A block: a thread a value, which counts those before its own. */
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
    if ((unsigned)thread >= values) { /* behind the last */
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
        int at = 0; /* the first that is not less */
        for (int step = MOST_VALUES / 2; step > 0; step /= 2)
            at += bits[at + step - 1] < mine ? step : 0;
        code[k] = (uint8_t)at;
    }
}

} // namespace tiles

#endif
