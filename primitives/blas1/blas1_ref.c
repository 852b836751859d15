/* divide, axpby, dot: the definitions. The dot product is summed in long double and rounded once.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/ops.h"

#define TEMPLATE "primitives/blas1/blas1_ref_typed.h"
#include "core/each/each_real.h"

spmv_status map_divide_ref(spmv_context *ctx, spmv_type type, const void *a, const void *b, void *out, int64_t n)
{
    static void (*const divide[SPMV_TYPE_LIMIT])(const void *, const void *, void *, int64_t) = REAL_TABLE(divide);
    (void)ctx;
    divide[type](a, b, out, n);
    return SPMV_OK;
}

spmv_status map_axpby_ref(spmv_context *ctx, spmv_type type, const void *alpha, const void *x, const void *beta,
                          void *y, int64_t n)
{
    static void (*const axpby[SPMV_TYPE_LIMIT])(const void *, const void *, const void *, void *, int64_t) =
        REAL_TABLE(axpby);
    (void)ctx;
    axpby[type](alpha, x, beta, y, n);
    return SPMV_OK;
}

int64_t dot_scratch_ref(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)n;
    return 0;
}

spmv_status dot_ref(spmv_context *ctx, spmv_type type, const void *x, const void *y, void *out, int64_t n,
                    void *scratch)
{
    static void (*const dot[SPMV_TYPE_LIMIT])(const void *, const void *, void *, int64_t) = REAL_TABLE(dot);
    (void)ctx;
    (void)scratch;
    dot[type](x, y, out, n);
    return SPMV_OK;
}
