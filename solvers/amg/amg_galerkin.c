/* The next level's matrix, the Galerkin product P'AP, by way of R = P' and A P.
 *
 * On a GPU, and if no other values will come, each product is made in one pass (amg_product_cuda.cu).
 * Otherwise, or if a row is too long for that, by general products, whose plans can compute other values.
 *
 * The diagonal of the product tells whether A is positive definite: p'Ap > 0 for each column p of P. Where
 * p'Ap is 0 up to rounding, the unknown is left out (l->least). If one is negative beyond rounding, the
 * matrix is not positive definite. The check is queued, and its result is read together with other numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/matrix_internal.h"
#include "solvers/amg/amg_internal.h"

/* In f32 under vectors of f64: p'Ap, relative to its terms, has an error of some 2^-24. A smaller one than this
 * needs f64. */
static const double IMPRECISE = 0x1p-16;

/* ---------------------------------------------------------------- the check */

static double zero_tolerance(const struct amg *amg)
{
    return 256 * real_limits_of(amg->type).roundoff;
}

spmv_status amg_not_positive(const struct amg *amg, const struct amg_level *l, double ratio)
{
    return context_fail(amg->ctx, ratio == -2 ? SPMV_ERROR_NOT_FINITE : SPMV_ERROR_NOT_POSITIVE,
                        ratio == -2 ? "preconditioner amg: numbers overflow on level %d"
                                    : "preconditioner amg: the matrix is not positive definite: found on level %d",
                        (int)(l - amg->level) + 1);
}

spmv_status amg_judge_read(struct amg *amg, const struct amg_level *l, double least)
{
    const bool unchecked = amg->unchecked;
    amg->unchecked = false;
    if (!unchecked || (least >= -zero_tolerance(amg) && !(amg_is_narrower(amg) && least < IMPRECISE)))
        return SPMV_OK;
    amg->imprecise = amg_is_narrower(amg);
    return amg_not_positive(amg, l, least);
}

spmv_status amg_judge(struct amg *amg, const struct amg_level *l)
{
    double least = 0;
    const spmv_status st = amg->unchecked ? amg_read(amg, &amg->cells->least, 8, &least) : SPMV_OK;
    return st != SPMV_OK ? st : amg_judge_read(amg, l, least);
}

/* Checks the next level's matrix; sets its `least`. mass: see the step coarse_mass; NULL: not known yet. */
static spmv_status check_next(struct amg *amg, struct amg_level *l, double *mass)
{
    spmv_status st = SPMV_OK;
    struct amg_level *next = l + 1;
    struct amg_coarse s = {.r = amg_rows_of(&l->r),
                           .c = amg_rows_of(&next->a),
                           .diagonal = l->diagonal,
                           .mass = mass,
                           .least = next->least,
                           .tolerance = zero_tolerance(amg),
                           .nulls = l->nulls};
    TRY(amg_alloc(&l->work, next->rows * 8, (void **)&s.ratio));
    if (mass == NULL) {
        TRY(amg_alloc(&l->work, next->rows * 8, (void **)&s.mass));
        TRY(run_coarse_mass(amg, &s, next->rows));
    }
    TRY(run_coarse_check(amg, &s, next->rows));
    TRY(spmv_reduce(amg->ctx, SPMV_MIN, SPMV_F64, s.ratio, &amg->cells->least, next->rows));
    amg->unchecked = true;
done:
    return st;
}

/* --------------------------------------------------------- general products */

/* The values of R. */
static spmv_status find_transposed_values(const struct amg *amg, const struct amg_level *l)
{
    const struct amg_transposed s = {amg_rows_of(&l->p), amg_rows_of(&l->r), l->entry, amg_entry_bits(&l->r)};
    return run_transpose(amg, &s, l->r.nnz);
}

/* The values of the next level's matrix, by the plans of the products. */
static spmv_status find_product_values(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    void *ap_values = NULL;
    spmv_csr ap;
    spmv_spgemm_pattern(l->ap, &ap);
    TRY(amg_alloc_vector(amg, &l->work, ap.nnz, &ap_values));
    TRY(spmv_spgemm_values(l->ap, l->a.val, l->p.val, ap_values));
    TRY(spmv_spgemm_values(l->rap, l->r.val, ap_values, l[1].values));
done:
    return st;
}

/* R, the transpose of P. */
static spmv_status find_r(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    TRY(amg_alloc(amg->updates ? &l->pool : &l->work, l->p.nnz * amg_entry_bits(&l->p) / 8, &l->entry));
    TRY(matrix_transpose_pattern(amg->ctx, &l->p, &l->transpose,
                                 (struct entry_numbers){l->entry, amg_entry_bits(&l->p)}));
    spmv_matrix_view(l->transpose, &l->r);
    TRY(amg_alloc_vector(amg, &l->pool, l->r.nnz, &l->r_values));
    l->r = amg_with_values(amg, l->r, l->r_values);
    TRY(find_transposed_values(amg, l));
done:
    return st;
}

/* The next level's matrix by general products, whose plans can compute other values. */
static spmv_status multiply(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct amg_level *next = l + 1;
    spmv_csr ap;
    TRY(spmv_spgemm_plan_create(amg->ctx, &l->a, &l->p, NULL, &l->ap));
    spmv_spgemm_pattern(l->ap, &ap);
    ap = amg_with_values(amg, ap, l->p_values); /* not a pattern; the plan reads no values */
    TRY(spmv_spgemm_plan_create(amg->ctx, &l->r, &ap, NULL, &l->rap));
    spmv_spgemm_pattern(l->rap, &next->a);
    TRY(amg_alloc_vector(amg, &next->pool, next->a.nnz, &next->values));
    next->a = amg_with_values(amg, next->a, next->values);
    TRY(find_product_values(amg, l));
    if (!amg->updates) {
        spmv_spgemm_plan_destroy(l->ap);
        l->ap = NULL;
    }
done:
    return st;
}

/* ------------------------------------------------------- products in one pass */

/* R, the transpose of P, in arrays of the level. */
static spmv_status transpose_at_once(struct amg *amg, struct amg_level *l, struct amg_pool *work)
{
    spmv_status st = SPMV_OK;
    const int64_t coarse = l->p.cols, nnz = l->p.nnz;
    struct amg_transpose t = {.p = amg_rows_of(&l->p), .fine = l->rows, .coarse = coarse, .nnz = nnz};
    void *offsets = NULL, *col = NULL;
    TRY(amg_alloc(work, coarse * 4, (void **)&t.counts));
    TRY(amg_alloc(work, 2 * nnz * amg_type_size(amg), &t.entries));
    TRY(amg_alloc(&l->pool, (coarse + 1) * 8, &offsets));
    TRY(amg_alloc(&l->pool, nnz * 4, &col));
    TRY(amg_alloc_vector(amg, &l->pool, nnz, &l->r_values));
    l->r = amg_new_view(amg, coarse, l->rows, nnz);
    l->r.row_ptr = offsets;
    l->r.col = col;
    l->r.val = l->r_values;
    t.r = amg_rows_of(&l->r);
    TRY(amg_count_columns_cuda(amg->ctx, &t));
    TRY(spmv_expand_offsets(amg->ctx, t.counts, 32, offsets, coarse));
    TRY(amg_transpose_cuda(amg->ctx, amg->type, &t));
done:
    return st;
}

/* The next level's matrix with one pass for each product. *made: false if a row has too many columns.
 * mass: see the step coarse_mass. */
static spmv_status multiply_at_once(struct amg *amg, struct amg_level *l, struct amg_pool *work, double *mass,
                                    bool *made)
{
    spmv_status st = SPMV_OK;
    struct amg_level *next = l + 1;
    const int64_t coarse = l->r.rows, most = amg_galerkin_room_cuda(amg->ctx, l->a.nnz * (amg->classical ? 2 : 1));
    struct amg_galerkin g = {.a = amg_rows_of(&l->a),
                             .p = amg_rows_of(&l->p),
                             .r = amg_rows_of(&l->r),
                             .fine = l->rows,
                             .coarse = coarse,
                             .a_nnz = l->a.nnz,
                             .p_nnz = l->p.nnz,
                             .room = {2 * most, most},
                             .diagonal = l->diagonal,
                             .mass = mass};
    for (int k = 0; k < 2; k++) {
        TRY(amg_alloc(work, 2 * g.room[k] * amg_type_size(amg), &g.entries[k]));
        TRY(amg_alloc(work, (k == 0 ? l->rows : coarse) * 8, (void **)&g.places[k]));
    }
    TRY(amg_alloc(work, l->rows * 4, (void **)&g.list));
    TRY(amg_alloc(work, AMG_GALERKIN_COUNTERS, &g.counters));
    TRY(amg_alloc(work, (coarse + 1) * 8, (void **)&g.lengths));
    TRY(amg_galerkin_cuda(amg->ctx, amg->type, &g));
    TRY(amg_new_rows(amg, next, coarse, g.lengths, coarse, g.room[1], &next->a, &next->values));
    *made = next->a.nnz <= g.room[1];
    if (*made)
        TRY(amg_galerkin_place_cuda(amg->ctx, amg->type, &g, amg_rows_of(&next->a), next->a.nnz));
done:
    return st;
}

/* R, and the next level's matrix. *made: false if that takes too much memory, or a row is too long. */
static spmv_status make_at_once(struct amg *amg, struct amg_level *l, double *mass, bool *made)
{
    struct amg_pool work = {.ctx = amg->ctx}, *const pool = &l->pool;
    const int blocks = pool->blocks;
    const int64_t bytes = pool->bytes;
    *made = false;
    spmv_status st = transpose_at_once(amg, l, &work);
    if (st == SPMV_OK)
        st = multiply_at_once(amg, l, &work, mass, made);
    while (!*made && pool->blocks > blocks)
        amg_release_last(pool, 0);
    pool->bytes = *made ? pool->bytes : bytes;
    amg_release(&work);
    return st == SPMV_ERROR_MEMORY && !*made ? SPMV_OK : st;
}

/* ------------------------------------------------------------ the next level */

spmv_status amg_multiply(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct amg_level *next = l + 1;
    double *mass = NULL;
    bool made = false;
    next->rows = l->p.cols;
    if (context_on_device(amg->ctx) && !amg->updates) {
        TRY(amg_alloc(&l->work, next->rows * 8, (void **)&mass));
        TRY(make_at_once(amg, l, mass, &made));
    }
    if (!made) {
        TRY(find_r(amg, l));
        TRY(multiply(amg, l));
    }
    TRY(amg_alloc(&next->pool, next->rows * 8, (void **)&next->least));
    TRY(check_next(amg, l, made ? mass : NULL));
done:
    return st;
}

spmv_status amg_multiply_values(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    TRY(find_transposed_values(amg, l));
    TRY(find_product_values(amg, l));
    TRY(check_next(amg, l, NULL));
done:
    return st;
}
