/* Shared by the files of sort: a checked request, the passes of a radix sort, and the order number
 * of a key.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SORT_REQUEST_H
#define SORT_REQUEST_H

#include <spmv/primitives.h>
#include <stdbool.h>

/* The arguments of spmv_sort_by_key; n > 0, begin_bit < end_bit. value_bytes 0: no values. Input
 * and output do not overlap. */
struct sort_request {
    int key_bytes, value_bytes;
    bool real; /* keys are floating-point numbers; else signed integers */
    int begin_bit, end_bit;
    const void *in_keys, *in_values;
    void *out_keys, *out_values;
    void *spare_keys, *spare_values; /* n elements each, if there is more than one pass */
    int64_t n;
};

static inline int sort_passes(const struct sort_request *r, int digit_bits)
{
    return (r->end_bit - r->begin_bit + digit_bits - 1) / digit_bits;
}

/* A pass: the arrays that it moves the elements from and to, and the bits of its digit. */
struct sort_pass {
    const void *keys, *values;
    void *to_keys, *to_values;
    int shift, width;
};

static inline struct sort_pass sort_pass_of(const struct sort_request *r, int digit_bits, int pass)
{
    const int passes = sort_passes(r, digit_bits), shift = r->begin_bit + pass * digit_bits;
    const bool out = (passes - 1 - pass) % 2 == 0;
    struct sort_pass p;
    p.keys = pass == 0 ? r->in_keys : out ? r->spare_keys : r->out_keys;
    p.values = pass == 0 ? r->in_values : out ? r->spare_values : r->out_values;
    p.to_keys = out ? r->out_keys : r->spare_keys;
    p.to_values = out ? r->out_values : r->spare_values;
    p.shift = shift;
    p.width = r->end_bit - shift < digit_bits ? r->end_bit - shift : digit_bits;
    return p;
}

/* The key's order number: unsigned, in the order of the keys. The sign bit of an integer is
 * inverted; of a negative real, all bits, because a larger magnitude comes first. Source: D. E.
 * Knuth, TAOCP vol. 3, 2nd ed., section 5.2.5 (radix sorting); IEEE 754-2019, section 5.10
 * (totalOrder). */
static inline uint32_t sort_order_32(uint32_t key, bool real)
{
    return key ^ (real && key >> 31 ? UINT32_MAX : (uint32_t)1 << 31);
}

static inline uint64_t sort_order_64(uint64_t key, bool real)
{
    return key ^ (real && key >> 63 ? UINT64_MAX : (uint64_t)1 << 63);
}

#endif
