/* map on ref: the loop over all elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "primitives/map/map_loops.h"

spmv_status map_ref(spmv_context *ctx, spmv_function function, spmv_type type, const void *in, void *out, int64_t n)
{
    (void)ctx;
    map_loop_function(function, type)(in, out, 0, n);
    return SPMV_OK;
}

spmv_status map_binary_ref(spmv_context *ctx, spmv_op op, spmv_type type, const void *a, const void *b, void *out,
                           int64_t n)
{
    (void)ctx;
    map_loop_binary(op, type)(a, b, out, 0, n);
    return SPMV_OK;
}

spmv_status map_scalar_ref(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_scalar, const void *in,
                           void *out, int64_t n)
{
    (void)ctx;
    map_loop_scalar(op, type)(host_scalar, in, out, 0, n);
    return SPMV_OK;
}

spmv_status map_index_ref(spmv_context *ctx, spmv_type type, const void *host_first, const void *host_step, void *out,
                          int64_t n)
{
    (void)ctx;
    map_loop_index(type)(host_first, host_step, out, 0, n);
    return SPMV_OK;
}
