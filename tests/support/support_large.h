/* Arrays too large for the host to check.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_LARGE_H
#define SUPPORT_LARGE_H

#include "core/runtime_cuda.h"
#include "tests/support/support.h"

/* After an allocation failed with SPMV_ERROR_MEMORY: exits as skipped on a device that is too small,
 * with 1 on a larger one, whose memory others must have taken. */
static inline void support_no_memory(spmv_context *ctx)
{
    const double large_enough = 64 * 0x1p30;
    struct cudaDeviceProp properties;
    int device = 0;
    assert_int_equal(cudaGetDevice(&device), cudaSuccess);
    assert_int_equal(cudaGetDeviceProperties(&properties, device), cudaSuccess);
    const bool small = (double)properties.totalGlobalMem < large_enough;
    print_message("%s%s\n",
                  small ? "skipped: " : "the memory of the device is taken by others: ", spmv_last_error(ctx));
    exit(small ? SKIPPED : 1);
}

/* a -= index, both of n elements of the type. host_extremes: the minimum and the maximum of a.
 * minus_one: of the type; extremes: two elements in context memory. */
static inline void support_difference(spmv_context *ctx, spmv_type type, const void *minus_one, void *index, void *a,
                                      int64_t n, void *extremes, void *host_extremes)
{
    const int64_t size = (int64_t)spmv_type_size(type);
    assert_ok(ctx, spmv_map_scalar(ctx, SPMV_MUL, type, minus_one, index, index, n));
    assert_ok(ctx, spmv_map_binary(ctx, SPMV_ADD, type, a, index, a, n));
    assert_ok(ctx, spmv_reduce(ctx, SPMV_MIN, type, a, extremes, n));
    assert_ok(ctx, spmv_reduce(ctx, SPMV_MAX, type, a, (char *)extremes + size, n));
    assert_ok(ctx, spmv_download(ctx, extremes, host_extremes, 2 * size));
}

#endif
