/* map, the definition: the loops from end to end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "map_loops.h"

spmv_status map_ref(spmv_context *ctx, spmv_function function, spmv_type type, const void *in, void *out, int64_t n)
{
    (void)ctx;
    map_loop(function, type, in, out, n);
    return SPMV_OK;
}

spmv_status map_binary_ref(spmv_context *ctx, spmv_op op, spmv_type type, const void *a, const void *b, void *out,
                           int64_t n)
{
    (void)ctx;
    map_binary_loop(op, type, a, b, out, n);
    return SPMV_OK;
}

spmv_status map_scalar_ref(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_scalar, const void *in,
                           void *out, int64_t n)
{
    (void)ctx;
    map_scalar_loop(op, type, host_scalar, in, out, n);
    return SPMV_OK;
}

spmv_status map_index_ref(spmv_context *ctx, spmv_type type, const void *host_first, const void *host_step, void *out,
                          int64_t n)
{
    (void)ctx;
    map_index_loop(type, host_first, host_step, out, 0, n);
    return SPMV_OK;
}
