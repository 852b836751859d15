/* Fills an array with an operator's identity: the result of reduce and segmented reduce without
 * elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MAP_FILL_H
#define MAP_FILL_H

#include "core/backend.h"

/* out[i] = identity, 0 <= i < n, for a pair that exists; n > 0. */
static inline spmv_status fill_identity(spmv_context *ctx, spmv_op op, spmv_type type, void *out, int64_t n)
{
    union {
        int64_t align;
        char bytes[32];
    } identity;
    const spmv_status st = spmv_op_identity(op, type, &identity);
    return st != SPMV_OK ? st : ctx->backend->map_index(ctx, type, &identity, NULL, out, n);
}

#endif
