/* The next level's matrix, the Galerkin product P'AP, by way of R = P' and A P. If A is not symmetric: R A P with
 * R = Q', without the small entries of the product.
 *
 * On a GPU, and if no other values will come, each product is made in one pass (amg_product_cuda.cu; with several
 * near-null-space vectors amg_blocks.c).
 * Otherwise, or if a row is too long for that, by general products, whose plans can compute other values.
 *
 * The diagonal of the product tells whether A is positive definite: p'Ap > 0 for each column p of P. Where
 * p'Ap is 0 up to rounding, the unknown is left out (l->least). If one is negative beyond rounding, a
 * symmetric matrix is not positive definite. The check is queued, and its result is read together with other
 * numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/matrix_internal.h"
#include "solvers/amg/amg_internal.h"

/* In f32 under vectors of f64: p'Ap, relative to its terms, has an error of some 2^-24. A smaller one than this
 * needs f64. */
static const double IMPRECISE = 0x1p-16;

/* Of a matrix that is not symmetric: entries a_ij up to this, relative to the largest ones beside the diagonal of
 * row i and of row j, are added to the diagonal entry. Without this, strong convection in three dimensions has 4.7
 * times the entries of A in its hierarchy, in place of 2.7, and the same number of iterations. 0.1 takes more. So
 * does a comparison with row i alone: where a_ij is dropped and a_ji is not, that is convection, and iterations grow
 * with the size (convdiff3d:160,1: 13). */
static const double SMALL = 0.02;

/* ---------------------------------------------------------------- the check */

static double zero_tolerance(const struct amg *amg)
{
    return 256 * real_limits_of(amg->type).roundoff;
}

spmv_status amg_not_positive(const struct amg *amg, const struct amg_level *l, double ratio)
{
    return context_fail(amg->ctx, ratio == AMG_OVERFLOWN ? SPMV_ERROR_NOT_FINITE : SPMV_ERROR_NOT_POSITIVE,
                        ratio == AMG_OVERFLOWN
                            ? "preconditioner amg: numbers overflow on level %d"
                            : "preconditioner amg: the matrix is not positive definite: found on level %d",
                        (int)(l - amg->level) + 1);
}

spmv_status amg_judge_read(struct amg *amg, const struct amg_level *l, double least)
{
    const bool unchecked = amg->unchecked;
    spmv_status st = SPMV_OK;
    amg->unchecked = false;
    if (unchecked && l > amg->level && l[-1].halo != NULL) /* each rank has checked its own rows */
        st = amg_smallest_of_ranks(amg, &least);
    if (st != SPMV_OK)
        return st;
    const double limit = !amg->general ? -zero_tolerance(amg) : -HUGE_VAL;
    if (!unchecked || (least != AMG_OVERFLOWN && least >= limit && !(amg_is_narrower(amg) && least < IMPRECISE)))
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

spmv_status amg_check_next(struct amg *amg, struct amg_level *l, double *mass)
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
    TRY(spmv_reduce(amg->ctx, SPMV_MIN, SPMV_F64, s.ratio + amg_room(next), &amg->cells->least, amg_own_rows(next)));
    amg->unchecked = true;
done:
    return st;
}

/* --------------------------------------------------------- general products */

const spmv_csr *amg_source_of_r(const struct amg *amg, const struct amg_level *l)
{
    return amg->general ? &l->q : &l->p;
}

/* The values of a transpose. */
static spmv_status transpose_values(const struct amg *amg, const spmv_csr *from, const spmv_csr *to, const void *entry)
{
    const struct amg_transposed s = {amg_rows_of(from), amg_rows_of(to), entry, amg_entry_bits(to)};
    return run_transpose(amg, &s, to->nnz);
}

/* The values of R. */
static spmv_status find_transposed_values(const struct amg *amg, const struct amg_level *l)
{
    return transpose_values(amg, amg_source_of_r(amg, l), &l->r, l->entry);
}

spmv_status amg_transpose_values(const struct amg *amg, const struct amg_level *l)
{
    return transpose_values(amg, &l->a, &l->a_t, l->a_entry);
}

/* values = those of R A P, by the plans of the products. */
static spmv_status find_product_values(struct amg *amg, struct amg_level *l, void *values)
{
    spmv_status st = SPMV_OK;
    void *ap_values = NULL;
    spmv_csr ap;
    spmv_spgemm_pattern(l->ap, &ap);
    TRY(amg_alloc_vector(amg, &l->work, ap.nnz, &ap_values));
    TRY(spmv_spgemm_values(l->ap, l->a.val, l->p.val, ap_values));
    TRY(spmv_spgemm_values(l->rap, l->r.val, ap_values, values));
done:
    return st;
}

/* *to = the transpose, with values in the pool. *matrix: its pattern; *entry: the number in `from` of each of its entries. */
static spmv_status find_transpose(const struct amg *amg, struct amg_level *l, struct amg_pool *pool,
                                  const spmv_csr *from, spmv_csr *to, void **values, spmv_matrix **matrix, void **entry)
{
    spmv_status st = SPMV_OK;
    const int bits = amg_entry_bits(from);
    TRY(amg_alloc(amg->updates ? &l->pool : &l->work, from->nnz * bits / 8, entry));
    TRY(matrix_transpose_pattern(amg->ctx, from, matrix, (struct entry_numbers){*entry, bits}));
    spmv_matrix_view(*matrix, to);
    TRY(amg_alloc_vector(amg, pool, to->nnz, values));
    *to = amg_with_values(amg, *to, *values);
    TRY(transpose_values(amg, from, to, *entry));
done:
    return st;
}

static spmv_status find_r(const struct amg *amg, struct amg_level *l)
{
    return find_transpose(amg, l, &l->pool, amg_source_of_r(amg, l), &l->r, &l->r_values, &l->transpose, &l->entry);
}

spmv_status amg_transpose_matrix(struct amg *amg, struct amg_level *l)
{
    if (l->halo != NULL) /* it is there */
        return SPMV_OK;
    return find_transpose(amg, l, amg->updates ? &l->pool : &l->work, &l->a, &l->a_t, &l->a_t_values, &l->a_transpose,
                          &l->a_entry);
}

/* Counts the multiplications of A B, where work is counted, and ends a set-up that takes more than another one: a
 * frame with 6 unknowns to a node takes a hundred times as many as a grid. */
static spmv_status count_products(const struct amg *amg, const spmv_csr *a, const spmv_csr *b)
{
    spmv_context *const ctx = amg->ctx;
    int64_t products = 0;
    if (ctx->pace == 0 || context_on_device(ctx))
        return SPMV_OK;
#pragma omp parallel for schedule(static) num_threads(host_team(ctx, a->nnz)) reduction(+ : products)
    for (int64_t k = 0; k < a->nnz; k++)
        products += row_first(b, a->col[k] + 1) - row_first(b, a->col[k]);
    if (!context_allows(ctx, products, 1, 1))
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "preconditioner amg: its matrices take more work than another preconditioner");
    return context_poll(ctx, "preconditioner amg", products);
}

/* next->a by general products, whose plans can compute other values. */
static spmv_status multiply(struct amg *amg, struct amg_level *l, struct amg_level *next)
{
    spmv_status st = SPMV_OK;
    spmv_csr ap;
    TRY(count_products(amg, &l->a, &l->p));
    TRY(spmv_spgemm_plan_create(amg->ctx, &l->a, &l->p, NULL, &l->ap));
    spmv_spgemm_pattern(l->ap, &ap);
    TRY(count_products(amg, &l->r, &ap));
    ap = amg_with_values(amg, ap, l->p_values); /* not a pattern; the plan reads no values */
    TRY(spmv_spgemm_plan_create(amg->ctx, &l->r, &ap, NULL, &l->rap));
    spmv_spgemm_pattern(l->rap, &next->a);
    TRY(amg_alloc_vector(amg, &next->pool, next->a.nnz, &next->values));
    next->a = amg_with_values(amg, next->a, next->values);
    TRY(find_product_values(amg, l, next->values));
    if (!amg->updates) {
        spmv_spgemm_plan_destroy(l->ap);
        l->ap = NULL;
    }
done:
    return st;
}

/* ------------------------------------------------------- products in one pass */

/* R in arrays of the level. */
static spmv_status transpose_at_once(struct amg *amg, struct amg_level *l, struct amg_pool *work)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const p = amg_source_of_r(amg, l);
    const int64_t coarse = p->cols, nnz = p->nnz;
    struct amg_transpose t = {.p = amg_rows_of(p), .fine = l->rows, .coarse = coarse, .p_nnz = nnz, .nnz = nnz};
    void *offsets = NULL;
    TRY(amg_alloc(work, coarse * 4, (void **)&t.counts));
    TRY(amg_alloc(work, 2 * nnz * amg_type_size(amg), &t.entries));
    TRY(amg_new_r(amg, l, coarse, nnz, &offsets));
    t.r = amg_rows_of(&l->r);
    TRY(amg_count_columns_cuda(amg->ctx, &t));
    TRY(spmv_expand_offsets(amg->ctx, t.counts, 32, offsets, coarse));
    TRY(amg_transpose_cuda(amg->ctx, amg->type, &t));
done:
    return st;
}

/* next->a with one pass for each product. *made: false if a row has too many columns. mass: see the step
 * coarse_mass. */
static spmv_status multiply_at_once(struct amg *amg, struct amg_level *l, struct amg_level *next, struct amg_pool *work,
                                    double *mass, bool *made)
{
    spmv_status st = SPMV_OK;
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
    TRY(amg_alloc(work, max_i64(l->rows, coarse) * 4, (void **)&g.list));
    TRY(amg_alloc(work, AMG_GALERKIN_COUNTERS, &g.counters));
    TRY(amg_alloc(work, (coarse + 1) * 8, (void **)&g.lengths));
    TRY(amg_ap_cuda(amg->ctx, amg->type, &g));
    TRY(amg_rap_cuda(amg->ctx, amg->type, &g));
    TRY(amg_new_rows(amg, &next->pool, coarse, g.lengths, coarse, g.room[1], &next->a, &next->values));
    *made = next->a.nnz <= g.room[1];
    if (*made)
        TRY(amg_galerkin_place_cuda(amg->ctx, amg->type, &g, amg_rows_of(&next->a), next->a.nnz));
done:
    return st;
}

/* R, and next->a. *made: false if that takes too much memory, or a row is too long. */
static spmv_status make_at_once(struct amg *amg, struct amg_level *l, struct amg_level *next, double *mass, bool *made)
{
    struct amg_pool work = {.ctx = amg->ctx}, *const pool = &l->pool;
    const int blocks = pool->blocks;
    const int64_t bytes = pool->bytes;
    *made = false;
    spmv_status st = transpose_at_once(amg, l, &work);
    if (st == SPMV_OK)
        st = multiply_at_once(amg, l, next, &work, mass, made);
    while (!*made && pool->blocks > blocks)
        amg_release_last(pool, 0);
    pool->bytes = *made ? pool->bytes : bytes;
    amg_release(&work);
    return st == SPMV_ERROR_MEMORY && !*made ? SPMV_OK : st;
}

/* ------------------------------------------------------------ the next level */

spmv_status amg_drop_small(struct amg *amg, const struct amg_level *product, struct amg_level *next)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    const spmv_csr *const a = &product->a;
    struct amg_filter s = {.a = amg_rows_of(a), .threshold = SMALL};
    TRY(amg_alloc(&work, (a->rows + 1) * 8, (void **)&s.count));
    TRY(amg_alloc_vector(amg, &work, a->rows, &s.largest));
    TRY(run_filter_begin(amg, &s, a->rows));
    TRY(amg_fetch_vector(amg, product, s.largest));
    TRY(run_filter_count(amg, &s, a->rows));
    TRY(amg_new_rows(amg, &next->pool, a->rows, s.count, a->cols, a->nnz, &next->a, &next->values));
    s.to = amg_rows_of(&next->a);
    TRY(run_filter_fill(amg, &s, a->rows));
done:
    amg_release(&work);
    return st;
}

spmv_status amg_multiply(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct amg_level product = {.pool.ctx = amg->ctx}, *const next = l + 1, *const to = amg->general ? &product : next;
    double *mass = NULL;
    bool made = false;
    if (l->halo != NULL)
        return amg_multiply_ranks(amg, l);
    next->rows = next->all_rows = l->p.cols;
    if (context_on_device(amg->ctx) && !amg->updates) {
        TRY(amg_alloc(&l->work, next->rows * 8, (void **)&mass));
        TRY(l->nulls > 0 && !amg->classical ? amg_block_galerkin(amg, l, to, mass, &made)
                                            : make_at_once(amg, l, to, mass, &made));
    }
    if (!made) {
        TRY(find_r(amg, l));
        TRY(multiply(amg, l, to));
    }
    if (amg->general)
        TRY(amg_drop_small(amg, &product, next));
    TRY(amg_alloc(&next->pool, next->rows * 8, (void **)&next->least));
    TRY(amg_check_next(amg, l, made ? mass : NULL));
    next->all_nnz = next->a.nnz;
    TRY(amg_open_transfers(amg, l));
    if (amg->general && !amg->updates) {
        spmv_spgemm_plan_destroy(l->rap);
        l->rap = NULL;
    }
done:
    amg_release(&product.pool);
    return st;
}

static spmv_status find_filtered_values(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    void *values = NULL;
    spmv_csr a;
    spmv_spgemm_pattern(l->rap, &a);
    TRY(amg_alloc_vector(amg, &l->work, a.nnz, &values));
    TRY(find_product_values(amg, l, values));
    a = amg_with_values(amg, a, values);
    const struct amg_filter s = {.a = amg_rows_of(&a), .to = amg_rows_of(&l[1].a)};
    TRY(run_filter_values(amg, &s, a.rows));
done:
    return st;
}

spmv_status amg_multiply_values(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    TRY(find_transposed_values(amg, l));
    if (amg->general)
        TRY(find_filtered_values(amg, l));
    else
        TRY(find_product_values(amg, l, l[1].values));
    TRY(amg_check_next(amg, l, NULL));
done:
    return st;
}
