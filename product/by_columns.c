/* Products of several vectors stored by columns.
 *
 * Methods multiply vectors stored by rows: an entry of the matrix needs the elements of one row of x,
 * which should be neighbours. So a product goes in passes of as many columns as fill 512 bytes: it
 * copies them to rows in work space of the plan, multiplies, and copies the result back. A pass of
 * the method "wide" reads the matrix as often as a product of rows does.
 *
 * On ref, where a product goes column by column anyway, and on omp if the matrix has few entries per
 * row, a pass is one column, which lies in memory as the method wants it: that reads the matrix more
 * often, but copies nothing.
 *
 * Copies do not change bits, and neither do passes (spmv_apply: the bits of a column).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/threads.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"

enum {
    PASS_BYTES = 512, /* of a row of x or y: as many as a launch of "wide" takes */
    LOAD_BYTES = 16,  /* rows in the work space begin at multiples of this */
    FEW_ENTRIES = 8   /* on omp: for each row or column, whichever are more */
};

void by_columns_set(spmv_plan *plan, const spmv_plan_options *o, int64_t rows, int64_t cols)
{
    struct plan_by_columns *const c = &plan->by_columns;
    const int64_t size = (int64_t)spmv_type_size(plan->type);
    c->x = o->x_layout == SPMV_LAYOUT_COLUMNS;
    c->y = o->y_layout == SPMV_LAYOUT_COLUMNS;
    c->x_stride = o->x_stride != 0 ? o->x_stride : c->x ? cols : o->vectors;
    c->y_stride = o->y_stride != 0 ? o->y_stride : c->y ? rows : o->vectors;
    plan->vectors = o->vectors;
    if (o->vectors > 1 && (c->x || c->y)) {
        c->vectors = o->vectors;
        plan->vectors = (int)min_i64(o->vectors, PASS_BYTES / size);
    }
    /* The elements of a single vector stored so are neighbours. */
    const int64_t row = o->vectors == 1 ? 1 : (plan->vectors * size + LOAD_BYTES - 1) / LOAD_BYTES * LOAD_BYTES / size;
    plan->x_stride = c->x ? row : c->x_stride;
    plan->y_stride = c->y ? row : c->y_stride;
}

spmv_status by_columns_prepare(spmv_plan *plan)
{
    spmv_status st = SPMV_OK;
    struct plan_by_columns *const c = &plan->by_columns;
    const int64_t size = (int64_t)spmv_type_size(plan->type);
    const spmv_backend backend = plan->ctx->backend->id;
    if (c->vectors == 0)
        return st;
    const bool few = plan->a.nnz / FEW_ENTRIES <= max_i64(plan->a.rows, plan->a.cols);
    if (c->x && c->y && (backend == SPMV_BACKEND_REF || (backend == SPMV_BACKEND_OMP && few))) {
        plan->vectors = 1;
        plan->x_stride = plan->y_stride = 1;
        return st;
    }
    if (c->x)
        TRY(plan_alloc(plan, plan->a.cols * plan->x_stride * size, &c->x_rows));
    if (c->y)
        TRY(plan_alloc(plan, plan->a.rows * plan->y_stride * size, &c->y_rows));
done:
    return st;
}

/* The rows begin ... end - 1. size is a constant after inlining. */
static inline void turn_range(const struct plan_turn *t, int64_t begin, int64_t end, size_t size)
{
    enum { TOGETHER = 8 }; /* columns: as many as the lines of a first-level cache's set */
    for (int first = 0; first < t->k; first += TOGETHER) {
        const int last = (int)min_i64(first + TOGETHER, t->k);
        for (int64_t i = begin; i < end; i++)
            for (int v = first; v < last; v++) {
                const int64_t row = i * t->row_stride + v, column = v * t->column_stride + i;
                if (t->to_rows)
                    copy_value(t->rows, row, t->columns, column, size);
                else
                    copy_value(t->columns, column, t->rows, row, size);
            }
    }
}

static void turn_on_host(const spmv_context *ctx, const struct plan_turn *t)
{
    enum { RANGE = 256 }; /* rows, whose part of the work space stays in the second-level cache */
#pragma omp parallel for schedule(static) num_threads(host_team(ctx, t->n * t->k))
    for (int64_t begin = 0; begin < t->n; begin += RANGE)
        SIZED((size_t)t->size, turn_range(t, begin, min_i64(begin + RANGE, t->n), SIZE))
}

/* Copies `k` columns from `first` on of x or y, of n elements each, to the work space or back. */
static spmv_status turn(const spmv_plan *plan, const void *columns, int64_t stride, void *rows, int64_t row_stride,
                        int64_t n, int first, int k, bool to_rows)
{
    const size_t size = spmv_type_size(plan->type);
    const struct plan_turn t = {.columns = (char *)columns + (size_t)(first * stride) * size,
                                .rows = rows,
                                .n = n,
                                .column_stride = stride,
                                .row_stride = row_stride,
                                .k = k,
                                .to_rows = to_rows,
                                .size = (int)size};
    if (n == 0)
        return SPMV_OK;
    if (context_on_device(plan->ctx))
        return turn_cuda(plan->ctx, &t);
    turn_on_host(plan->ctx, &t);
    return SPMV_OK;
}

/* The array of a pass: the work space, or the caller's from column `first` on. */
static void *from_column(const spmv_plan *plan, const void *array, void *rows, bool by_columns, int64_t stride,
                         int first)
{
    const int64_t offset = by_columns ? first * stride : first;
    return rows != NULL || array == NULL ? rows : (char *)array + (size_t)offset * spmv_type_size(plan->type);
}

spmv_status by_columns_multiply(const spmv_plan *plan, const struct plan_product *product)
{
    spmv_status st = SPMV_OK;
    const struct plan_by_columns *const c = &plan->by_columns;
    const bool turns_x = c->x_rows != NULL, turns_y = c->y_rows != NULL;
    spmv_plan pass = *plan;
    for (int first = 0; first < c->vectors; first += plan->vectors) {
        struct plan_product p = *product;
        pass.vectors = (int)min_i64(plan->vectors, c->vectors - first);
        p.x = from_column(plan, product->x, c->x_rows, c->x, c->x_stride, first);
        p.y = from_column(plan, product->y, c->y_rows, c->y, c->y_stride, first);
        if (turns_x)
            TRY(turn(plan, product->x, c->x_stride, c->x_rows, plan->x_stride, plan->a.cols, first, pass.vectors,
                     true));
        if (turns_y && !product->beta_zero)
            TRY(turn(plan, product->y, c->y_stride, c->y_rows, plan->y_stride, plan->a.rows, first, pass.vectors,
                     true));
        TRY(plan_multiply(&pass, &p));
        if (turns_y)
            TRY(turn(plan, product->y, c->y_stride, c->y_rows, plan->y_stride, plan->a.rows, first, pass.vectors,
                     false));
    }
done:
    return st;
}
