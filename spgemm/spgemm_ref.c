/* Method "rows" of the backend ref, which defines the product: one row of C after the other, and in
 * a row one entry of A after the other.
 *
 * F. G. Gustavson, ACM TOMS 4(3), 1978.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "formats/columns.h"
#include "spgemm/spgemm_internal.h"

#define TEMPLATE "spgemm/spgemm_ref_typed.h"
#include "core/each/each_floating.h"

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Appends the columns of row i of C, in any order, to col if it is not NULL. Returns their number.
 * last[j]: the last row that had column j. */
static int64_t row_columns(const struct spmv_spgemm_plan *plan, int64_t i, int64_t *last, int32_t *col)
{
    const spmv_csr *const a = &plan->a, *const b = &plan->b;
    int64_t n = 0;
    for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
        for (int64_t l = row_first(b, a->col[k]); l < row_first(b, a->col[k] + 1); l++) {
            const int32_t j = b->col[l];
            if (last[j] == i)
                continue;
            last[j] = i;
            if (col != NULL)
                col[n] = j;
            n++;
        }
    return n;
}

static void forget(int64_t *last, int64_t cols)
{
    for (int64_t j = 0; j < cols; j++)
        last[j] = -1;
}

spmv_status spgemm_rows_symbolic_ref(struct spmv_spgemm_plan *plan)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    const int64_t rows = plan->a.rows, cols = plan->b.cols, bytes = cols * (int64_t)sizeof(int64_t);
    int64_t *last = NULL;
    TRY(spgemm_working_bytes(plan, bytes));
    TRY(host_alloc(ctx, bytes, "marks of the columns of C", (void **)&last));
    TRY(spgemm_alloc_row_ptr(plan));
    forget(last, cols);
    plan->row_ptr[0] = 0;
    for (int64_t i = 0; i < rows; i++)
        plan->row_ptr[i + 1] = plan->row_ptr[i] + row_columns(plan, i, last, NULL);
    plan->nnz = plan->row_ptr[rows];
    TRY(spgemm_room_for_columns(plan, plan->nnz));
    TRY(context_alloc(ctx, plan->nnz * (int64_t)sizeof *plan->col, (void **)&plan->col));
    forget(last, cols);
    for (int64_t i = 0; i < rows; i++) {
        int32_t *const col = plan->col + plan->row_ptr[i];
        const int64_t n = row_columns(plan, i, last, col);
        if (n > 1)
            qsort(col, (size_t)n, sizeof *col, ascending);
    }
done:
    host_free(last);
    return st;
}

spmv_status spgemm_rows_numeric_ref(struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c)
{
    static spmv_status (*const numeric[SPMV_TYPE_LIMIT])(struct spmv_spgemm_plan *, const void *, const void *,
                                                         void *) = FLOATING_TABLE(numeric);
    return numeric[plan->type](plan, a, b, c);
}
