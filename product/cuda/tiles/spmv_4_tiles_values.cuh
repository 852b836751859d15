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

#include <stdio.h>

#include "device/block.cuh"
#include "product/cuda/spmv_types.cuh"
#include "product/cuda/tiles/spmv_4_tiles_plan.cuh"

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

/* The place of a value in a table, the first that is not less. */
__device__ inline uint8_t code_of(const unsigned long long *table, unsigned long long bits)
{
    int at = 0;
    for (int step = MOST_VALUES / 2; step > 0; step /= 2)
        at += table[at + step - 1] < bits ? step : 0;
    return (uint8_t)at;
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
        code[k] = code_of(bits, bits_of(val + k));
    }
}

/* ------------------------------------------------------------ the host's side */

/* A plan's table of values with a code for each of some places. */
struct coded_values {
    void *memory; /* the table, and from codes_at on the codes; NULL: none */
    int64_t codes_at;
    bool in_use;      /* the table has all present values */
    int values;       /* number of values in the table */
    const char *none; /* why there is no table, where one was requested */

    template <typename T> const value_table<T> *table() const
    {
        return (const value_table<T> *)memory;
    }

    uint8_t *codes() const
    {
        return (uint8_t *)memory + codes_at;
    }

    /* Adds itself to a plan's layout, of which `used` of `size` characters are in use; how many it
     * added. */
    int describe(char *text, int used, int size, const char *place) const
    {
        if (used >= size || (!in_use && none == nullptr))
            return 0;
        return in_use ? snprintf(text + used, (size_t)(size - used), "; a table of %d value%s, 1 byte per %s", values,
                                 values == 1 ? "" : "s", place)
                      : snprintf(text + used, (size_t)(size - used), "; no table of values: %s", none);
    }
};

/* Finds the number of distinct values; 0: more than a table holds. Waits. */
template <typename Stored> spmv_status search_values(const spmv_plan *plan, int *values)
{
    struct {
        unsigned count, has_one, too_many;
    } known;
    spmv_context *const ctx = plan->ctx;
    const int64_t nnz = plan->a.nnz;
    const int each = VALUE_THREADS * VALUES_A_TURN;
    value_set *const all = (value_set *)ctx->scratch;
    const int most = 8 * ((const cuda_state *)ctx->device)->multiprocessors, blocks = grid_for(nnz, each);
    *values = 0;
    spmv_status st = on_device(ctx, [&] {
        const spmv_status begun = launch(ctx, "spmv tiles begin search", 1, VALUE_THREADS, begin_search, all);
        return begun != SPMV_OK ? begun
                                : launch(ctx, "spmv tiles find values", blocks < most ? blocks : most, VALUE_THREADS,
                                         find_values<Stored>, (const Stored *)plan->a.val, nnz, all);
    });
    if (st == SPMV_OK)
        st = spmv_download(ctx, &all->count, &known, (int64_t)sizeof known);
    if (st == SPMV_OK && known.too_many == 0 && known.count + known.has_one <= MOST_VALUES)
        *values = (int)(known.count + known.has_one);
    return st;
}

/* Makes a table of the present values if there are few, and finds memory for `codes` codes, which
 * the caller writes where in_use becomes true. Where values may be replaced, the memory is
 * allocated in any case, since the next values may fit. Waits. */
template <typename T, typename Stored> spmv_status make_table(spmv_plan *plan, int64_t codes, coded_values *c)
{
    c->in_use = false; /* also if this fails */
    spmv_status st = search_values<Stored>(plan, &c->values);
    c->none = c->values == 0 ? "more than 256 values" : nullptr;
    if (st == SPMV_OK && c->memory == nullptr && (c->values > 0 || plan->updates)) {
        c->codes_at = aligned((int64_t)sizeof(value_table<T>));
        st = plan_alloc_if_room(plan, c->codes_at + codes, &c->memory);
        if (c->memory == nullptr)
            c->none = "no memory for it";
    }
    if (st != SPMV_OK || c->values == 0 || c->memory == nullptr)
        return st;
    st = on_device(plan->ctx, [&] {
        return launch(plan->ctx, "spmv tiles sort values", 1, VALUE_THREADS, sort_values<T, Stored>,
                      (const value_set *)plan->ctx->scratch, (value_table<T> *)c->memory);
    });
    c->in_use = st == SPMV_OK;
    return st;
}

/* For a method without a table of values, in a plan for real sums that chooses its method: counts the
 * values that a table of tiles would have (facts.table_values), once, if a table is requested. Waits. */
inline spmv_status count_values(spmv_plan *plan)
{
    facts &f = plan->facts;
    if (f.named || !f.wants_table || f.table_counted)
        return SPMV_OK;
    f.table_counted = true;
    return with_types(plan, [&](auto, auto stored) {
        if constexpr (std::is_arithmetic<decltype(stored)>::value)
            return search_values<decltype(stored)>(plan, &f.table_values);
        else
            return SPMV_OK;
    });
}

} // namespace tiles

#endif
