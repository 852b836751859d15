/* sort, rung 1: split by one bit after the other.
 *
 * idea      from the lowest bit up: the elements with bit 0 go to the front, those with bit 1 after
 *           them, both in their order. A scan gives the destinations: before[i], the exclusive scan
 *           of "bit of i is 0", numbers the zeros; i - before[i] numbers the ones. The map is fused
 *           into the scan's loader.
 * work      about 4 n per bit
 * depth     that of a scan, per bit
 * launches  4 per bit
 * bytes     n (4 k + 2 v + 16) per bit (k, v: the sizes of key and value): the scan reads the keys
 *           twice; its results of 8 bytes are written and read
 * wins      never; it shows how three primitives sort
 * order     stable, so all rungs and backends give the same result
 * source    W. D. Hillis, G. L. Steele 1986 (section "radix sort"); Blelloch 1990, section 1.3
 *           (split)
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SORT_1_SPLIT_CUH
#define SPMV_SORT_1_SPLIT_CUH

#include "primitives/scan/scan_3_chunks.cuh"
#include "primitives/sort/sort_keys.cuh"

/* 1 if the bit is 0 */
template <typename Key> struct load_zeros {
    const Key *keys;
    key_digit<Key> bit;
    __device__ int64_t operator()(int64_t i) const
    {
        return bit(keys[i]) == 0;
    }
};

template <typename Key, typename Value>
__global__ void __launch_bounds__(block_threads)
    split_scatter(const Key *keys, const Value *values, const int64_t *before, key_digit<Key> bit, Key *to_keys,
                  Value *to_values, int64_t n)
{
    const int64_t zeros = before[n - 1] + (bit(keys[n - 1]) == 0);
    const int64_t stride = (int64_t)gridDim.x * block_threads;
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < n; i += stride) {
        const int64_t to = bit(keys[i]) == 0 ? before[i] : zeros + i - before[i];
        to_keys[to] = keys[i];
        if constexpr (has_value<Value>)
            to_values[to] = values[i];
    }
}

inline int64_t sort_1_scratch(const sort_request *r)
{
    return (SCAN_3_SCRATCH_ELEMENTS + r->n) * (int64_t)sizeof(int64_t);
}

template <typename Key, typename Value>
spmv_status sort_1_launch(spmv_context *ctx, const sort_request *r, void *scratch)
{
    int64_t *const before = (int64_t *)scratch + SCAN_3_SCRATCH_ELEMENTS;
    spmv_status st = SPMV_OK;
    for (int pass = 0; st == SPMV_OK && pass < sort_passes(r, 1); pass++) {
        const sort_pass p = sort_pass_of(r, 1, pass);
        const key_digit<Key> bit = digit_of<Key>(r, p);
        const Key *const keys = (const Key *)p.keys;
        st = scan_3_launch<op_add_i64>(ctx, load_zeros<Key>{keys, bit}, store_array<int64_t>{before}, r->n, true,
                                       scratch);
        if (st == SPMV_OK)
            st = launch(ctx, "split_scatter", grid_for(r->n, block_threads), block_threads, split_scatter<Key, Value>,
                        keys, (const Value *)p.values, (const int64_t *)before, bit, (Key *)p.to_keys,
                        (Value *)p.to_values, r->n);
    }
    return st;
}

#endif
