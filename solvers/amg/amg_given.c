/* What the caller gives: the matrix, checked and with ascending columns; its values, and the
 * near-null-space vectors, in the type of the hierarchy.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/matrix_internal.h"
#include "solvers/amg/amg_internal.h"

/* Squares of elements and of reciprocals of the diagonal stay below the range by this factor, squared, which
 * leaves room for the coefficients of the smoother and for short sums. */
static const double RANGE_MARGIN = 4;

/* ------------------------------------------------------------------- the matrix */

/* *first: the smallest verdict of a row. sign: that of the diagonal. */
static spmv_status find_verdict(struct amg *amg, int sign, int64_t *first)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    const spmv_csr *a = &amg->given;
    struct amg_given s = {
        .a = amg_rows_of(a), .n = a->rows, .nnz = a->nnz, .values = a->val, .type = a->type, .sign = sign};
    s.only_order = amg->ranks != NULL; /* the rest is checked by the ranks */
    TRY(amg_alloc(&work, a->rows * 8, (void **)&s.verdict));
    TRY(amg_run(amg->ctx, AMG_CHECK, amg->m->type, &s, a->rows));
    TRY(amg_reduce(amg, &work, SPMV_MIN, SPMV_I64, s.verdict, a->rows, first));
done:
    amg_release(&work);
    return st;
}

/* Checks the matrix. *sorted: false if the columns of a row do not ascend. *valid: false if
 * something else is wrong. amg->negative: if the matrix need not be symmetric, its diagonal may be negative. */
static spmv_status check_given(struct amg *amg, bool *sorted, bool *valid)
{
    spmv_status st = SPMV_OK;
    int64_t first = 0;
    TRY(find_verdict(amg, 1, &first));
    if (amg->ranks == NULL) {                   /* else it is known */
        amg->negative = amg->any && first == 1; /* row 0 */
        if (amg->negative)
            TRY(find_verdict(amg, -1, &first));
    }
    *sorted = first == INT64_MAX || first % 4 != 2;
    *valid = first == INT64_MAX || !*sorted;
    amg->negative = amg->negative && *valid;
done:
    return st;
}

/* The matrix with ascending columns and without duplicates, in host memory. */
static spmv_status sort_given(spmv_context *ctx, const spmv_csr *a, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    int64_t *row = NULL;
    TRY(host_alloc(ctx, a->nnz * 8, "rows of a matrix", (void **)&row));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            row[k] = i;
    TRY(spmv_matrix_from_coo(ctx, a->rows, a->cols, a->nnz, row, a->col, a->val, a->type, matrix, NULL));
done:
    host_free(row);
    return st;
}

/* Each rank sorts its own rows. */
static spmv_status sort_rows_of_rank(struct amg *amg, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    bool sorted = true, valid = true;
    struct csr_copies copies = {0};
    spmv_csr host, a;
    TRY(check_given(amg, &sorted, &valid));
    if (sorted)
        return SPMV_OK;
    TRY(csr_to_host(amg->ctx, &amg->given, false, &host, &copies));
    TRY(sort_given(amg->ctx, &host, matrix));
    spmv_matrix_view(*matrix, &a);
    TRY(csr_to_context(amg->ctx, &a, false, &amg->given, &amg->given_copies));
done:
    csr_free_host(&copies);
    return st;
}

spmv_status amg_take_matrix(struct amg *amg, struct precond_source *source, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    bool sorted = true, valid = true;
    spmv_csr a;
    if (amg->ranks != NULL)
        return sort_rows_of_rank(amg, matrix);
    TRY(csr_to_context(amg->ctx, source->a, false, &amg->given, &amg->given_copies));
    TRY(check_given(amg, &sorted, &valid));
    if (!valid || !sorted)
        st = precond_source_read(amg->ctx, amg->m->name, source); /* finds what is wrong */
    if (st == SPMV_ERROR_NOT_POSITIVE && amg->negative)
        st = SPMV_OK;
    if (st == SPMV_ERROR_NOT_POSITIVE && amg->any)
        st = context_fail(
            amg->ctx, st,
            "preconditioner amg: the diagonal entry of row %lld%s is %g: all must be positive, or all negative; take "
            "ilut, or jacobi, which takes either sign",
            context_number(amg->ctx, source->bad), context_counted(amg->ctx), source->bad_value);
    TRY(st);
    if (!sorted) {
        amg->updates = false; /* new values have the order of the caller's matrix */
        TRY(sort_given(amg->ctx, &source->host, matrix));
        csr_free_context(amg->ctx, &amg->given_copies);
        spmv_matrix_view(*matrix, &a);
        TRY(csr_to_context(amg->ctx, &a, false, &amg->given, &amg->given_copies));
    }
done:
    return st;
}

void amg_drop_given_values(struct amg *amg, const spmv_csr *a)
{
    struct csr_copies *const copies = &amg->given_copies;
    if (amg->ranks == NULL && a->memory == SPMV_MEMORY_HOST && a->val != NULL && amg->level[0].values != NULL &&
        !amg->updates) {
        context_free(amg->ctx, copies->val);
        copies->val = NULL;
        copies->bytes -= amg->given.nnz * (int64_t)spmv_type_size(amg->given.type);
        amg->given.val = NULL;
    }
}

/* ------------------------------------------------------------ values and vectors */

spmv_status amg_find_symmetry(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_level *const l = amg->level;
    struct amg_symmetry s = {.differs = NULL};
    void *diagonal = NULL;
    int64_t differs = 0;
    amg->general = false;
    if (!amg->any || (amg->nulls > 0 && !amg->finds_block) || amg->near_null != NULL || amg->given.val == NULL)
        return SPMV_OK;
    TRY(amg_transpose_ranks(amg, l));
    TRY(amg_alloc_vector(amg, &work, l->rows, &diagonal));
    TRY(amg_alloc(&work, l->rows * 8, (void **)&s.differs));
    TRY(spmv_matrix_diagonal(amg->ctx, &l->a, diagonal));
    TRY(amg_fetch_vector(amg, l, diagonal));
    s.a = amg_rows_of(&l->a);
    s.t = amg_rows_of(&l->a_t);
    s.diagonal = diagonal;
    TRY(run_symmetry(amg, &s, l->rows));
    TRY(amg_reduce(amg, &work, SPMV_MAX, SPMV_I64, s.differs, l->rows, &differs));
    TRY(amg_add_ranks(amg, l, &differs));
    amg->general = differs != 0;
    if (amg->general) { /* nodes are for symmetric matrices */
        amg->block = l->block = 1;
        amg->nulls = l->nulls = 0;
    } else {
        l->a_t = (spmv_csr){0};
    }
done:
    amg_release(&work);
    return st;
}

/* The caller's values, or converted to the hierarchy's type. If that is narrower than the vectors, A is
 * first divided by a power of two near its largest element. A matrix with a negative diagonal is multiplied by
 * -1. */
spmv_status amg_take_values(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    struct amg_level *l = &amg->level[0];
    const spmv_csr *given = &amg->given;
    union real largest = {0};
    amg->scale = amg->negative ? -1 : 1;
    if (given->val != NULL && given->type == amg->type && !amg->negative) {
        l->a = *given;
        return SPMV_OK;
    }
    if (amg_is_narrower(amg) && given->val != NULL) {
        TRY(amg_find_largest(amg, given->type, given->val, given->nnz, &largest));
        double most = real_at(given->type, &largest, 0);
        TRY(amg_largest_of_ranks(amg, &most, 1));
        amg->scale *= 1 / amg_power_of_two(most);
    }
    if (l->values == NULL)
        TRY(amg_alloc_vector(amg, &l->pool, given->nnz, &l->values));
    l->a = amg_with_values(amg, *given, l->values);
    const struct amg_conversion s = {.source = given->val, .type = given->type, .factor = amg->scale, .to = l->values};
    TRY(run_convert(amg, &s, given->nnz));
done:
    return st;
}

/* Divided by a power of two near the largest element. Without vectors of the caller: ones, or a constant for
 * each unknown of a node. */
spmv_status amg_take_near_null(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    struct amg_level *l = &amg->level[0];
    const spmv_type type = amg->near_null_type;
    const int64_t elements = amg_own_rows(l) * max_i64(l->nulls, 1);
    void *vector = NULL;
    union real largest = {0};
    if (l->nulls > 0)
        TRY(amg_alloc(&l->work, elements * 8, (void **)&l->basis));
    if (amg->near_null == NULL) {
        const struct amg_basis s = {.slots = amg_slots_of(amg, l), .nulls = l->nulls, .basis = l->basis};
        return l->nulls > 0 ? run_components(amg, &s, elements) : SPMV_OK;
    }
    TRY(amg_find_largest(amg, type, amg->near_null, elements, &largest));
    double most = real_at(type, &largest, 0);
    TRY(amg_largest_of_ranks(amg, &most, 1));
    if (!isfinite(most))
        return context_fail(amg->ctx, SPMV_ERROR_NOT_FINITE,
                            "preconditioner amg: a near-null-space vector has a number that is not finite");
    if (most == 0)
        return context_fail(amg->ctx, SPMV_ERROR_ARGUMENT, "preconditioner amg: the near-null-space vectors are zero");
    struct amg_conversion s = {
        .source = amg->near_null, .type = type, .factor = 1 / amg_power_of_two(most), .to = l->basis};
    if (l->nulls > 0)
        return amg_run(amg->ctx, AMG_CONVERT, SPMV_F64, &s, elements);
    TRY(amg_alloc_vector(amg, &l->pool, l->rows, &vector));
    s.to = amg_own_part(amg, l, vector);
    TRY(run_convert(amg, &s, amg_own_rows(l)));
    TRY(amg_fetch_vector(amg, l, vector));
    l->near_null = vector;
done:
    return st;
}

spmv_status amg_check_range(const struct amg *amg, bool *fits)
{
    spmv_status st = SPMV_OK;
    const struct amg_level *const l = &amg->level[0];
    union real entry = {0}, inverse = {0};
    const double most = sqrt(real_limits_of(amg->type).greatest) / RANGE_MARGIN;
    double found[2] = {0};
    if (l->a.val != NULL)
        TRY(amg_find_largest(amg, amg->type, l->a.val, l->a.nnz, &entry));
    TRY(amg_find_largest(amg, amg->type, l->inverse, l->rows, &inverse));
    found[0] = real_at(amg->type, &entry, 0);
    found[1] = real_at(amg->type, &inverse, 0);
    TRY(amg_largest_of_ranks(amg, found, 2));
    *fits = found[0] <= most && found[1] <= most;
done:
    return st;
}
