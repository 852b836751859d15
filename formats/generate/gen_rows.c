/* Builds a matrix from a rule for its rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_rows.h"

#include "core/reals.h"

static void fill_own_values(spmv_context *ctx, const struct generator_rows *g, int64_t first, spmv_matrix *m)
{
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(static)
    for (int64_t row = 0; row < m->rows; row++) {
        for (int64_t k = m->row_ptr[row]; k < m->row_ptr[row + 1]; k++) {
            const double value = g->value(g->rule, first + row, m->col[k]);
            real_set(m->type, m->val, k, value);
        }
    }
}

/* The entries of the rows before `first`. */
static int64_t entries_before(spmv_context *ctx, const struct generator_rows *g, int64_t first)
{
    int64_t sum = 0;
#pragma omp parallel for num_threads(host_team(ctx, first)) schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < first; i++)
        sum += g->length(g->rule, i);
    return sum;
}

spmv_status generator_build(spmv_context *ctx, const struct generator_request *request, const struct generator_rows *g,
                            spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *shell = NULL, *m = NULL;
    /* The rows to make. Rows in another order are all made, since their places are not known. */
    const bool part = request->parts > 0 && g->order == NULL;
    const int64_t first = part ? generator_part_begin(g->rows, request->part, request->parts) : 0;
    const int64_t rows = (part ? generator_part_begin(g->rows, request->part + 1, request->parts) : g->rows) - first;
    *request->is_part = part;
    TRY(generator_columns(ctx, request, g->cols));
    TRY(generator_fits(ctx, request, rows, g->cols,
                       part && g->rows > 0 ? g->entries * (double)rows / (double)g->rows : g->entries, 0));
    /* The number of entries is known only after all rows are counted: the offsets are computed in a
     * matrix without entries and moved. */
    TRY(matrix_allocate(ctx, rows, g->cols, 0, request->type, false, &shell));
#pragma omp parallel for num_threads(host_team(ctx, rows)) schedule(static)
    for (int64_t i = 0; i < rows; i++)
        shell->row_ptr[g->order == NULL ? i : permutation_at(g->order, i)] = g->length(g->rule, first + i);
    TRY(offsets_from_counts(ctx, shell->row_ptr, rows));
    TRY(matrix_allocate(ctx, 0, g->cols, shell->row_ptr[rows], request->type, false, &m));
    int64_t *const no_rows = m->row_ptr;
    m->rows = rows;
    m->row_ptr = shell->row_ptr;
    shell->row_ptr = no_rows;
    /* A few long rows are assigned to threads one by one, many short ones in batches. */
    const int batch = (int)max_i64(1, min_i64(512, rows / 256));
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(dynamic, batch)
    for (int64_t row = 0; row < m->rows; row++) {
        const int64_t begin = m->row_ptr[row], length = m->row_ptr[row + 1] - begin;
        if (length > 0)
            g->fill(g->rule, first + row, length, m->col + begin);
    }
    if (g->value != NULL && request->values == GENERATOR_OWN)
        fill_own_values(ctx, g, first, m);
    else
        generator_fill_values(ctx, request, request->values == GENERATOR_CONSTANT ? 0 : entries_before(ctx, g, first),
                              m);
    *matrix = m;
done:
    spmv_matrix_destroy(shell);
    if (st != SPMV_OK)
        spmv_matrix_destroy(m);
    return st;
}
