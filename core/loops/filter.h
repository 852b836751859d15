/* Filters: select the elements that compact keeps, and that gather and scatter move.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef FILTER_H
#define FILTER_H

#include <spmv/operators.h>
#include <stdbool.h>

/* Takes element i if mask[i] != 0, or if its bit in bits is 1 (spmv_flags_pack). If both are NULL:
 * if predicate(element, scalar) == when. */
struct filter {
    const uint8_t *mask; /* in the context's memory */
    const uint32_t *bits;
    spmv_predicate predicate;
    bool when;
    union {
        int64_t align;
        char bytes[32];
    } scalar; /* one element */
};

#ifdef __cplusplus
extern "C" {
#endif

struct spmv_context;

/* Makes a filter from a predicate. Fails if the predicate does not exist for the type; the message
 * begins with the caller's name. host_scalar may be NULL for nonzero. */
spmv_status filter_by_predicate(struct spmv_context *ctx, const char *caller, spmv_predicate predicate, int when,
                                spmv_type type, const void *host_scalar, struct filter *filter);

/* For the host backends: the flags of elements begin <= i < end, nonzero if the filter takes in[i].
 * Returns a part of the mask, or fills and returns room, which has end - begin bytes. */
const uint8_t *filter_flags(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end,
                            uint8_t *room);

#ifdef __cplusplus
}
#endif

/* Bit i of packed flags. */
static inline bool flag_bit(const uint32_t *bits, int64_t i)
{
    return bits[i / 32] >> (i % 32) & 1u;
}

/* predicate_less_f64(a, s) and the like, one for each pair that exists. */
#ifndef __cplusplus
#define FILTER_DEFINE_(NAME, name, TYPE, type, T, CLASS)                                                               \
    static inline bool predicate_##name##_##type(T a, T s)                                                             \
    {                                                                                                                  \
        return SPMV_TEST_##NAME##_##CLASS(a, s);                                                                       \
    }
SPMV_PREDICATE_PAIRS(FILTER_DEFINE_)
#undef FILTER_DEFINE_
#endif

#endif
