/* sort, the definition: a stable merge sort of the elements' indices by their keys, from lists of
 * one upwards; then every element is copied to its place.
 *
 * Source: J. von Neumann, 1945; D. E. Knuth, TAOCP vol. 3, 2nd ed., section 5.2.4.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "primitives/sort/sort_request.h"

/* Two arrays of indices, one of keys. */
static int64_t scratch_of(const struct sort_request *r)
{
    return 3 * r->n * (int64_t)sizeof(int64_t);
}

/* The bits of key i that are compared. */
static uint64_t order_of(const struct sort_request *r, int64_t i)
{
    const uint64_t order = r->key_bytes == 4 ? sort_order_32(((const uint32_t *)r->in_keys)[i], r->real)
                                             : sort_order_64(((const uint64_t *)r->in_keys)[i], r->real);
    const int bits = r->end_bit - r->begin_bit;
    return order >> r->begin_bit & (bits < 64 ? ((uint64_t)1 << bits) - 1 : UINT64_MAX);
}

/* Merges the lists [begin, middle) and [middle, end) of from into to[begin] ... to[end-1]. Of equal
 * keys, the left one comes first. */
static void merge(const uint64_t *order, const int64_t *from, int64_t *to, int64_t begin, int64_t middle, int64_t end)
{
    for (int64_t i = begin, j = middle, k = begin; k < end; k++) {
        const bool right = i == middle || (j < end && order[from[j]] < order[from[i]]);
        to[k] = right ? from[j++] : from[i++];
    }
}

static spmv_status run(spmv_context *ctx, const struct sort_request *r, void *scratch)
{
    (void)ctx;
    const int64_t n = r->n;
    int64_t *from = scratch, *to = from + n;
    uint64_t *order = (uint64_t *)(to + n);
    for (int64_t i = 0; i < n; i++) {
        from[i] = i;
        order[i] = order_of(r, i);
    }
    for (int64_t length = 1; length < n; length *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * length)
            merge(order, from, to, begin, min_i64(begin + length, n), min_i64(begin + 2 * length, n));
        int64_t *const sorted = to;
        to = from;
        from = sorted;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = from[k];
        if (r->key_bytes == 4)
            ((uint32_t *)r->out_keys)[k] = ((const uint32_t *)r->in_keys)[i];
        else
            ((uint64_t *)r->out_keys)[k] = ((const uint64_t *)r->in_keys)[i];
        if (r->value_bytes == 4)
            ((uint32_t *)r->out_values)[k] = ((const uint32_t *)r->in_values)[i];
        else if (r->value_bytes == 8)
            ((uint64_t *)r->out_values)[k] = ((const uint64_t *)r->in_values)[i];
    }
    return SPMV_OK;
}

const struct sort_rung sort_rungs_ref[] = {{"definition", 0, scratch_of, run}, {NULL, 0, NULL, NULL}};
