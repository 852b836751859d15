/* Builds a matrix from a rule for its rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "gen_rows.h"

#include "reals.h"

static void fill_own_values(spmv_context *ctx, const struct generator_rows *g, spmv_matrix *m)
{
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(static)
    for (int64_t row = 0; row < m->rows; row++) {
        for (int64_t k = m->row_ptr[row]; k < m->row_ptr[row + 1]; k++) {
            const double value = g->value(g->rule, row, m->col[k]);
            real_set(m->type, m->val, k, value);
        }
    }
}

spmv_status generator_build(spmv_context *ctx, const struct generator_request *request, const struct generator_rows *g,
                            spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *shell = NULL, *m = NULL;
    TRY(generator_columns(ctx, request, g->cols));
    TRY(generator_fits(ctx, request, g->rows, g->cols, g->entries, 0));
    /* The number of entries is known only after all rows are counted: the offsets are computed in a
     * matrix without entries and moved. */
    TRY(matrix_allocate(ctx, g->rows, g->cols, 0, request->type, false, &shell));
#pragma omp parallel for num_threads(host_team(ctx, g->rows)) schedule(static)
    for (int64_t i = 0; i < g->rows; i++)
        shell->row_ptr[g->order == NULL ? i : permutation_at(g->order, i)] = g->length(g->rule, i);
    TRY(offsets_from_counts(ctx, shell->row_ptr, g->rows));
    TRY(matrix_allocate(ctx, 0, g->cols, shell->row_ptr[g->rows], request->type, false, &m));
    int64_t *const no_rows = m->row_ptr;
    m->rows = g->rows;
    m->row_ptr = shell->row_ptr;
    shell->row_ptr = no_rows;
    /* A few long rows are assigned to threads one by one, many short ones in batches. */
    const int batch = (int)max_i64(1, min_i64(512, g->rows / 256));
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(dynamic, batch)
    for (int64_t row = 0; row < m->rows; row++) {
        const int64_t first = m->row_ptr[row], length = m->row_ptr[row + 1] - first;
        if (length > 0)
            g->fill(g->rule, row, length, m->col + first);
    }
    if (g->value != NULL && request->values == GENERATOR_OWN)
        fill_own_values(ctx, g, m);
    else
        generator_fill_values(ctx, request, m);
    *matrix = m;
done:
    spmv_matrix_destroy(shell);
    if (st != SPMV_OK)
        spmv_matrix_destroy(m);
    return st;
}
