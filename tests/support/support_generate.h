/* Shared by tests of generated matrices: entries, and the same bits for any number of
 * threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_GENERATE_H
#define SUPPORT_GENERATE_H

#include "tests/support/support_coo.h"

static inline spmv_matrix *generated(spmv_context *ctx, const char *spec, spmv_type type, spmv_csr *a)
{
    spmv_matrix *m = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &m));
    spmv_matrix_view(m, a);
    assert_int_equal(a->type, type);
    assert_non_null(a->val);
    assert_ok(ctx, csr_check(ctx, spec, a, CSR_SORTED));
    return m;
}

/* The value at (i, j), or 0 if not stored. */
static inline double entry(const spmv_csr *a, int64_t i, int64_t j)
{
    for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
        if (a->col[k] == j)
            return support_value(a, k);
    return 0;
}

static inline void assert_same_for_any_team(const char *spec, spmv_type type)
{
    spmv_context *ctx = support_context();
    spmv_matrix *expected = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &expected));
    /* omp: one of them, since ref is compared with all */
    for (int t = support_backend == SPMV_BACKEND_REF ? 0 : SUPPORT_TEAMS - 1; t < SUPPORT_TEAMS; t++) {
        spmv_context *team = support_context_on(SPMV_BACKEND_OMP, support_teams[t]);
        spmv_matrix *m = NULL;
        assert_ok(team, spmv_matrix_generate(team, spec, type, &m));
        assert_same_matrix(m, expected);
        spmv_matrix_destroy(m);
        spmv_context_destroy(team);
    }
    spmv_matrix_destroy(expected);
    spmv_context_destroy(ctx);
}

/* The values of a matrix in host memory with the signs of every third row and column changed: factors are as
 * before, but the sums of rows are not 0, so errors are not smooth. To be freed. */
static inline double *support_mixed_signs(spmv_csr *a)
{
    double *const values = malloc((size_t)a->nnz * sizeof *values);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            values[k] = ((i % 3 == 0) != (a->col[k] % 3 == 0) ? -1 : 1) * real_at(a->type, a->val, k);
    a->val = values;
    a->type = SPMV_F64;
    return values;
}

#endif
