/* Keys and values in the kernels of sort: bits of a given size.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SORT_KEYS_CUH
#define SPMV_SORT_KEYS_CUH

#include "device/launch.cuh"
#include "device/tiles.cuh"

extern "C" {
#include "primitives/sort/sort_request.h"
}

/* A digit of the key's order number (sort_request.h). Key is unsigned. */
template <typename Key> struct key_digit {
    Key real; /* all bits set if keys are floating-point numbers */
    int shift;
    unsigned mask;

    __device__ Key order(Key key) const
    {
        constexpr int TOP = 8 * (int)sizeof(Key) - 1;
        const Key negative = Key(0) - (key >> TOP);
        return key ^ ((negative & real) | Key(1) << TOP);
    }

    __device__ unsigned operator()(Key key) const
    {
        return (unsigned)(order(key) >> shift) & mask;
    }
};

template <typename Key> key_digit<Key> digit_of(const sort_request *r, const sort_pass &p)
{
    return {r->real ? ~Key(0) : Key(0), p.shift, (1u << p.width) - 1u};
}

/* The value type if there are no values. */
struct no_value {
};

template <typename Value> constexpr bool has_value = true;
template <> constexpr bool has_value<no_value> = false;

/* Calls body(Key(), Value()) with the types for the request's sizes. */
template <typename Key, typename Body> spmv_status with_value_type(const sort_request *r, Body body)
{
    switch (r->value_bytes) {
    case 4:
        return body(Key(), uint32_t());
    case 8:
        return body(Key(), uint64_t());
    default:
        return body(Key(), no_value());
    }
}

template <typename Body> spmv_status with_types(const sort_request *r, Body body)
{
    return r->key_bytes == 4 ? with_value_type<uint32_t>(r, body) : with_value_type<uint64_t>(r, body);
}

#endif
