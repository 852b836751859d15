/* The last level, of at most AMG_COARSEST rows: the inverse of its matrix, made in f64 (amg_invert), as a
 * sparse matrix with all entries. If a pivot is 0 up to rounding, its unknown is left out. In f32 under vectors of f64
 * a pivot of 0 may be one that f32 has lost, so the unknown is left out only if the given matrix is known to be
 * singular: if its rows sum to 0, and it has as many components.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "solvers/amg/amg_internal.h"
#include "solvers/prepare/null_space.h"

/* In f32 under vectors of f64: a pivot, relative to its diagonal entry, has an error of some 2^-24. A smaller
 * one than this needs f64. */
static const double SMALL_PIVOT = 0x1p-10;

/* *count: the null vectors of the given matrix that its row sums tell, one for each component; or 1, if that is wanted and
 * there are some. */
static spmv_status count_null_vectors(const struct amg *amg, int64_t wanted, int64_t *count)
{
    spmv_status st = SPMV_OK;
    struct null_space *found = NULL;
    bool some = false;
    *count = 0;
    if (amg->ranks != NULL || amg->general)
        return SPMV_OK;
    if (wanted == 1)
        TRY(null_space_has_ones(amg->ctx, &amg->given, &some));
    if (!some)
        TRY(null_space_find(amg->ctx, &amg->given, amg->m->type, NULL_SPACE_ALL_ROWS, &found));
    *count = some ? 1 : null_space_count(found);
done:
    null_space_destroy(found);
    return st;
}

/* A pivot is relative to its diagonal entry. */
static spmv_status check_pivots(struct amg *amg, const double *pivot, double tolerance)
{
    spmv_status st = SPMV_OK;
    struct amg_level *l = &amg->level[amg->levels - 1];
    const int64_t n = l->rows;
    const bool narrower = amg_is_narrower(amg);
    double *host = NULL;
    int64_t nulls = 0;
    amg->left_out = 0;
    TRY(host_alloc(amg->ctx, n * 8, "pivots", (void **)&host));
    TRY(amg_read(amg, pivot, n * 8, host));
    for (int64_t i = 0; i < n; i++) {
        amg->left_out += !(host[i] > tolerance);
        if (!(host[i] >= -4 * tolerance) || (narrower && host[i] > tolerance && host[i] <= SMALL_PIVOT)) {
            amg->imprecise = narrower;
            st = amg_not_positive(amg, l, isfinite(host[i]) ? host[i] : AMG_OVERFLOWN);
            goto done;
        }
    }
    if (narrower && amg->left_out > 0) {
        TRY(count_null_vectors(amg, amg->left_out, &nulls));
        if (amg->left_out > nulls) {
            amg->imprecise = true;
            st = amg_not_positive(amg, l, 0);
        }
    }
done:
    host_free(host);
    return st;
}

/* Memory for the inverse. */
static spmv_status alloc_inverse(struct amg *amg, int64_t n)
{
    spmv_status st = SPMV_OK;
    void *row_ptr = NULL, *col = NULL;
    TRY(amg_alloc(&amg->pool, (n + 1) * 8, &row_ptr));
    TRY(amg_alloc(&amg->pool, n * n * 4, &col));
    TRY(amg_alloc_vector(amg, &amg->pool, n * n, &amg->coarsest_values));
    amg->coarsest = amg_new_view(amg, n, n, n * n);
    amg->coarsest.row_ptr = row_ptr;
    amg->coarsest.col = col;
    amg->coarsest.val = amg->coarsest_values;
done:
    return st;
}

spmv_status amg_invert_coarsest(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    const struct amg_level *l = &amg->level[amg->levels - 1];
    const int64_t n = l->rows;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_coarsest s = {.a = amg_rows_of(&l->a), .diagonal = l->diagonal, .dense.general = amg->general};
    struct amg_dense *const dense = &s.dense;
    dense->n = n;
    dense->tolerance = 16 * (double)n * real_limits_of(amg->type).roundoff;
    if (amg->coarsest_values == NULL)
        TRY(alloc_inverse(amg, n));
    s.inverse = amg_rows_of(&amg->coarsest);
    s.offset = (int64_t *)amg->coarsest.row_ptr;
    TRY(amg_alloc(&work, n * n * 8, (void **)&dense->element));
    TRY(amg_alloc(&work, n * 8, (void **)&dense->own));
    TRY(amg_alloc(&work, n * 8, (void **)&dense->column[0]));
    TRY(amg_alloc(&work, n * 8, (void **)&dense->column[1]));
    TRY(amg_alloc(&work, n * 8, (void **)&dense->row[0]));
    TRY(amg_alloc(&work, n * 8, (void **)&dense->row[1]));
    TRY(amg_alloc(&work, n * 8, (void **)&dense->pivot));
    TRY(amg_alloc(&work, 4, (void **)&dense->arrived));
    TRY(spmv_map_index(amg->ctx, SPMV_I32, &(int32_t){0}, NULL, dense->arrived, 1));
    TRY(run_dense_clear(amg, &s, n * n));
    TRY(run_dense_fill(amg, &s, n));
    TRY(amg_invert(amg->ctx, dense));
    TRY(amg_judge(amg, l));
    TRY(check_pivots(amg, dense->pivot, dense->tolerance));
    TRY(run_dense_take(amg, &s, n * n));
done:
    amg_release(&work);
    return st;
}
