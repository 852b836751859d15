/* b - A x in twice the precision, on the host; see wide_residual.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/accuracy/wide_residual.h"

#include "core/backend.h"
#include "formats/matrix_internal.h"
#include "solvers/accuracy/wide_row.h"

enum { TILE = 512 };

#define TEMPLATE "solvers/accuracy/wide_residual_typed.h"
#include "core/each/each_floating.h"

static void (*const rows_of[SPMV_TYPE_LIMIT])(const spmv_csr *, bool, const void *, const void *, void *, int64_t,
                                              int64_t) = FLOATING_TABLE(rows);

spmv_status wide_residual(spmv_context *ctx, const spmv_csr *a, spmv_type type, const void *b, const void *x, void *r)
{
    const bool narrow = a->type == SPMV_F32;
    if (a->rows == 0)
        return SPMV_OK;
    if (context_on_device(ctx))
        return wide_residual_cuda(ctx, a, type, b, x, r);
#pragma omp parallel for num_threads(host_team(ctx, a->nnz)) schedule(static)
    for (int64_t t = 0; t < ceil_divide(a->rows, TILE); t++)
        rows_of[type](a, narrow, b, x, r, t * TILE, min_i64(a->rows, (t + 1) * TILE));
    return SPMV_OK;
}
