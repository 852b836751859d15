/* scan, the definition: from left to right.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "map_loops.h"
#include "ops.h"

int64_t scan_scratch_ref(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)n;
    return 0;
}

#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static void inclusive_##op##_##type(const T *in, T *out, int64_t n)                                                \
    {                                                                                                                  \
        T all = out[0] = in[0];                                                                                        \
        for (int64_t i = 1; i < n; i++)                                                                                \
            out[i] = all = op_##op##_##type(all, in[i]);                                                               \
    }                                                                                                                  \
    static void exclusive_##op##_##type(const T *in, T *out, int64_t n)                                                \
    {                                                                                                                  \
        T all = identity_##op##_##type();                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T x = in[i];                                                                                         \
            out[i] = all;                                                                                              \
            all = op_##op##_##type(all, x);                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void scan_##op##_##type(spmv_scan_kind kind, const void *in, void *out, int64_t n)                          \
    {                                                                                                                  \
        (kind == SPMV_INCLUSIVE ? inclusive_##op##_##type : exclusive_##op##_##type)(in, out, n);                      \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

spmv_status scan_ref(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in, void *out,
                     int64_t n, void *scratch)
{
    (void)ctx;
    (void)scratch;
#define ROW(OP, op_, TYPE, type_, T, D, CLASS) [SPMV_##OP][SPMV_##TYPE] = scan_##op_##_##type_,
    static void (*const run[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT])(spmv_scan_kind, const void *, void *,
                                                             int64_t) = {SPMV_PAIR_LIST(ROW)};
#undef ROW
    run[op][type](kind, in, out, n);
    return SPMV_OK;
}

spmv_status map_scan_ref(spmv_context *ctx, spmv_function function, spmv_scan_kind kind, spmv_op op, spmv_type type,
                         const void *in, void *out, int64_t n, void *scratch)
{
    map_loop_function(function, type)(in, out, 0, n);
    return scan_ref(ctx, kind, op, type, out, out, n, scratch);
}
