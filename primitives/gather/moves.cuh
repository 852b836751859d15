/* The filters of gather and scatter on the device: from run-time values to types.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOVES_CUH
#define MOVES_CUH

#include "device/dispatch_words.cuh"
#include "device/filter.cuh"

extern "C" {
#include "core/backend.h"
}

/* Calls body(take) with the filter in the form for kernels; NULL: every element. Only a predicate
 * reads the elements, so without one their type is an unsigned type of the same size. */
template <typename Body>
spmv_status with_filter(spmv_context *ctx, const char *caller, const struct filter *filter, spmv_type type,
                        const Body &body)
{
    if (filter == NULL)
        return with_words(ctx, caller, type, [&](auto element) { return body(take_all<decltype(element)>{}); });
    if (filter->mask != NULL)
        return with_words(ctx, caller, type,
                          [&](auto element) { return body(take_masked<decltype(element)>{filter->mask}); });
    return with_number(ctx, caller, type, [&](auto of) {
        using T = typename decltype(of)::type;
        return body(take_if<T>{predicate_by<T>(filter)});
    });
}

#endif
