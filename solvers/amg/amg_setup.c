/* The set-up of algebraic multigrid, by smoothed aggregation or classical: the hierarchy of matrices.
 *
 * A level with matrix A and the near-null-space vector b (ones on all but the first level):
 *
 *   strong   c_ij > strength min(max_k c_ik, max_k c_jk), with c_ij = |a_ij| / sqrt(a_ii a_jj).
 *            F has the strong couplings of A; the weak ones are added to its diagonal.
 *   roots    a maximal independent set of distance 2 in the graph of F. The priority of a row is a
 *            hash of its number.
 *   rows     join a root beside them, then their strongest neighbour's aggregate. Rows without a
 *            strong coupling stay outside: the smoother suffices for them.
 *   P0       column j is b in aggregate j, else 0
 *   P        (I - omega D^-1 F) P0, D the diagonal of F, omega = OMEGA / max_i sum_j |f_ij| / f_ii
 *   next A   P'(A P)
 *
 * until AMG_BOTTOM rows are left, whose matrix is inverted in f64 (amg_invert). If fewer than a fifth
 * of the rows vanish from one level to the next, or there are AMG_LEVELS levels, the last level is
 * smoothed with degree AMG_LAST_DEGREE instead.
 *
 * Aggregates are bad where coefficients jump. A row beside one with much larger coefficients depends on it,
 * but not the other way round. If more than one of AMG_FAR_WEIGHT dependences of the first level is one-way
 * by far, all levels have classical interpolation instead. Its steps are in amg_classical_typed.h:
 *
 *   depends  row i on row j if -a_ij > strength m_i, m_i = max_k -a_ik
 *   coarse   rows: an independent set in the graph of dependences (PMIS), those first which others use most
 *   next A   has a row for each coarse row
 *   P        e_j for a coarse row j. Another row i depends on coarse rows C_i and on others F_i; b_k is the sum
 *            of -a_kj over C_k. F_i without b_k > 0 are taken as weak. ("extended+i")
 *              p_ij = (-a_ij + sum_k a_ik a_kj / (b_k - a_ik)) / d_i, k in F_i, the terms for j in C_i and C_k
 *              d_i  = a_ii + sum of weak a_ij - sum_k a_ik^2 / (b_k - a_ik)
 *            The AMG_INTERPOLATE_MOST largest p_ij are kept, and multiplied so that the row keeps its sum.
 *
 * Every step is a function of one row (amg_rows.h). What combines rows does not depend on an order:
 * maxima, and sums of integers. So the hierarchy has the same bits on every backend and for any
 * number of threads.
 *
 * Singular matrices: where p'Ap is 0 up to rounding, or a pivot of the last level is, the unknown
 * is left out: its row of D^-1, or of the inverse, is 0. For a consistent system that is the
 * solution with this unknown 0. If one is negative beyond rounding, the matrix is not positive
 * definite. In f32 under vectors of f64 a small p'Ap already means that f32 is too narrow.
 *
 * Sources: P. Vanek, J. Mandel, M. Brezina, "Algebraic multigrid by smoothed aggregation for second
 * and fourth order elliptic problems", Computing 56, 1996; N. Bell, S. Dalton, L. Olson, "Exposing
 * fine-grained parallelism in algebraic multigrid methods", SIAM J. Sci. Comput. 34(4), 2012. H. De Sterck,
 * R. D. Falgout, J. W. Nolting, U. M. Yang, "Distance-two interpolation for parallel algebraic multigrid",
 * Numer. Linear Algebra Appl. 15, 2008; H. De Sterck, U. M. Yang, J. J. Heys, "Reducing complexity in
 * parallel algebraic multigrid preconditioners", SIAM J. Matrix Anal. Appl. 27(4), 2006.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"

/* A level with a larger share of the rows of the level before is not made. */
static const double LARGEST_SHARE = 0.8;

/* The interval of the smoother: from the bound of the eigenvalues divided by this. */
static const double INTERVAL = 8, LAST_INTERVAL = 30;

/* With several near-null-space vectors, row sums of absolute values are far above the eigenvalues. An
 * estimate from below, times this, is used instead. The smoother stands one that is 12 % too low. */
static const double EIGENVALUE_MARGIN = 1.1;

/* omega times the bound of the eigenvalues of D^-1 F. 4/3 took one iteration more on most grids. */
static const double OMEGA = 1.5;

/* On a GPU so many rounds of the independent set visit all rows. The later ones have lists, and rows have few
 * couplings if there are so many on average at most. */
enum { ROUNDS = 4, FEW_COUPLINGS = 12 };

/* In f32 under vectors of f64: p'Ap, relative to its terms, and a pivot, relative to its diagonal
 * entry, have errors of some 2^-24. Smaller ones than these need f64. */
static const double IMPRECISE = 0x1p-16, SMALL_PIVOT = 0x1p-10;

/* Squares of elements and of reciprocals of the diagonal stay below the range by this factor, squared, which
 * leaves room for the coefficients of the smoother and for short sums. */
static const double RANGE_MARGIN = 4;

/* ------------------------------------------------------------------- memory */

spmv_status amg_alloc(struct amg_pool *pool, int64_t bytes, void **memory)
{
    *memory = NULL;
    if (pool->blocks == AMG_BLOCKS)
        return context_fail(pool->ctx, SPMV_ERROR_LIMIT, "preconditioner amg: more than %d arrays", AMG_BLOCKS);
    const spmv_status st = context_alloc(pool->ctx, max_i64(bytes, 1), memory);
    if (st == SPMV_OK) {
        pool->block[pool->blocks++] = *memory;
        pool->bytes += bytes;
    }
    return st;
}

void amg_release_last(struct amg_pool *pool, int64_t bytes)
{
    context_free(pool->ctx, pool->block[--pool->blocks]);
    pool->bytes -= bytes;
}

void amg_release(struct amg_pool *pool)
{
    for (int i = 0; i < pool->blocks; i++)
        context_free(pool->ctx, pool->block[i]);
    pool->blocks = 0;
    pool->bytes = 0;
}

static int64_t size_of(const struct amg *amg)
{
    return (int64_t)spmv_type_size(amg->type);
}

/* n elements of the hierarchy's type */
static spmv_status alloc_vector(const struct amg *amg, struct amg_pool *pool, int64_t n, void **memory)
{
    return amg_alloc(pool, n * size_of(amg), memory);
}

/* Memory of the context, read on the host. */
static spmv_status read_number(const struct amg *amg, const void *from, int64_t bytes, void *host)
{
    return spmv_download(amg->ctx, from, host, bytes);
}

/* Copies a number of the context's memory; queued. */
static spmv_status copy_number(const struct amg *amg, const void *from, void *to)
{
    return spmv_map(amg->ctx, SPMV_MAP_COPY, SPMV_I64, from, to, 1);
}

/* The largest or smallest of n numbers. */
static spmv_status reduce(const struct amg *amg, struct amg_pool *work, spmv_op op, spmv_type type, const void *in,
                          int64_t n, void *host)
{
    spmv_status st = SPMV_OK;
    void *result = NULL;
    TRY(amg_alloc(work, 8, &result));
    TRY(spmv_reduce(amg->ctx, op, type, in, result, n));
    TRY(read_number(amg, result, (int64_t)spmv_type_size(type), host));
done:
    return st;
}

/* max |values_i| */
static spmv_status find_largest(const struct amg *amg, spmv_type type, const void *values, int64_t n, void *host)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    void *result = NULL;
    TRY(amg_alloc(&work, 8, &result));
    TRY(spmv_map_reduce(amg->ctx, SPMV_MAP_ABS, SPMV_MAX, type, values, result, n));
    TRY(read_number(amg, result, (int64_t)spmv_type_size(type), host));
done:
    amg_release(&work);
    return st;
}

/* ------------------------------------------------------------------ helpers */

/* Whether the hierarchy is in f32 under vectors of f64. */
static bool is_narrower(const struct amg *amg)
{
    return real_bytes(amg->type) < real_bytes(amg->m->type);
}

static struct amg_csr rows_of(const spmv_csr *a)
{
    const struct amg_csr view = {a->row_ptr, a->row_ptr_bits, (int32_t *)a->col, (void *)a->val};
    return view;
}

/* The bits of the numbers of a matrix's entries. */
static int entry_bits(const spmv_csr *a)
{
    return a->nnz <= INT32_MAX ? 32 : 64;
}

static struct amg_rows arguments_of(const struct amg_level *l)
{
    const struct amg_rows s = {.a = rows_of(&l->a),
                               .f = rows_of(&l->f),
                               .p0 = rows_of(&l->p0),
                               .p = rows_of(&l->p),
                               .r = rows_of(&l->r),
                               .n = l->rows,
                               .nnz = l->a.nnz,
                               .all_strong = l->f.val == l->a.val,
                               .entry = l->entry,
                               .entry_bits = entry_bits(&l->r),
                               .diagonal = l->diagonal,
                               .root = l->root,
                               .inverse = l->f_inverse,
                               .aggregate = l->aggregate,
                               .near_null = l->near_null,
                               .block = l->block,
                               .nulls = l->nulls,
                               .basis = l->basis};
    return s;
}

static spmv_status run(const struct amg *amg, enum amg_step step, const struct amg_rows *s, int64_t n)
{
    enum { ENTRIES = 8 }; /* of a row, roughly */
    const spmv_status st = context_poll(amg->ctx, "preconditioner amg", ENTRIES * n);
    return st != SPMV_OK ? st : amg_run(amg->ctx, step, amg->type, s, n);
}

/* A matrix in the context's memory, without arrays. */
static spmv_csr new_view(const struct amg *amg, int64_t rows, int64_t cols, int64_t nnz)
{
    const spmv_csr view = {
        .rows = rows, .cols = cols, .nnz = nnz, .row_ptr_bits = 64, .type = amg->type, .memory = SPMV_MEMORY_CONTEXT};
    return view;
}

static spmv_csr with_values(const struct amg *amg, spmv_csr view, const void *values)
{
    view.val = values;
    view.type = amg->type;
    view.memory = SPMV_MEMORY_CONTEXT;
    return view;
}

static spmv_status not_positive(struct amg *amg, const struct amg_level *l, double ratio, bool *imprecise)
{
    *imprecise = is_narrower(amg);
    return context_fail(amg->ctx, ratio == -2 ? SPMV_ERROR_NOT_FINITE : SPMV_ERROR_NOT_POSITIVE,
                        ratio == -2 ? "preconditioner amg: numbers overflow on level %d"
                                    : "preconditioner amg: the matrix is not positive definite: found on level %d",
                        (int)(l - amg->level) + 1);
}

/* -------------------------------------------------------------------- values */

/* The first level's values: the caller's, or converted to the hierarchy's type. If that is narrower
 * than the vectors, A is first divided by a power of two near its largest element. */
static spmv_status take_values(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    struct amg_level *l = &amg->level[0];
    const spmv_csr *given = &amg->given;
    const bool same = given->val != NULL && given->type == amg->type;
    union real largest = {0};
    amg->scale = 1;
    if (same) {
        l->a = *given;
        return SPMV_OK;
    }
    if (is_narrower(amg) && given->val != NULL) {
        TRY(find_largest(amg, given->type, given->val, given->nnz, &largest));
        amg->scale = 1 / amg_power_of_two(real_at(given->type, &largest, 0));
    }
    if (l->values == NULL)
        TRY(alloc_vector(amg, &l->pool, given->nnz, &l->values));
    l->a = with_values(amg, *given, l->values);
    const struct amg_rows s = {.source = given->val, .source_type = given->type, .factor = amg->scale, .to = l->values};
    TRY(run(amg, AMG_CONVERT, &s, given->nnz));
done:
    return st;
}

/* The near-null-space vectors, divided by a power of two near the largest element. */
static spmv_status take_near_null(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    struct amg_level *l = &amg->level[0];
    const spmv_type type = amg->near_null_type;
    const int64_t elements = l->rows * max_i64(l->nulls, 1);
    struct amg_rows s = arguments_of(l);
    union real largest = {0};
    if (l->nulls > 0) {
        TRY(amg_alloc(&l->work, elements * 8, (void **)&l->basis));
        s.basis = l->basis;
        if (amg->near_null == NULL)
            return run(amg, AMG_COMPONENTS, &s, elements);
    } else if (amg->near_null == NULL) {
        return SPMV_OK;
    }
    s.source = amg->near_null;
    s.source_type = type;
    TRY(find_largest(amg, type, amg->near_null, elements, &largest));
    if (!isfinite(real_at(type, &largest, 0)))
        return context_fail(amg->ctx, SPMV_ERROR_NOT_FINITE,
                            "preconditioner amg: a near-null-space vector has a number that is not finite");
    if (real_at(type, &largest, 0) == 0)
        return context_fail(amg->ctx, SPMV_ERROR_ARGUMENT, "preconditioner amg: the near-null-space vectors are zero");
    s.factor = 1 / amg_power_of_two(real_at(type, &largest, 0));
    s.to = l->basis;
    if (l->nulls > 0)
        return amg_run(amg->ctx, AMG_CONVERT, SPMV_F64, &s, elements);
    TRY(alloc_vector(amg, &l->pool, l->rows, &s.to));
    TRY(run(amg, AMG_CONVERT, &s, l->rows));
    l->near_null = s.to;
done:
    return st;
}

/* The largest eigenvalue of D^-1 A, from below: by which factor the largest element of a vector grows in
 * one of the last steps of the power iteration. Maxima have no order, so all backends have the same. */
static spmv_status estimate_eigenvalue(const struct amg *amg, struct amg_level *l, struct amg_rows *s,
                                       struct amg_pool *work, void *const vectors[2], double *eigenvalue)
{
    enum { STEPS = 16, LAST = 6 };
    spmv_status st = SPMV_OK;
    double host[STEPS + 1] = {0};
    char *largest = NULL;
    TRY(amg_alloc(work, (STEPS + 1) * 8, (void **)&largest));
    s->weight_out = vectors[0];
    TRY(run(amg, AMG_POWER_BEGIN, s, l->rows));
    for (int k = 0; k <= STEPS; k++) {
        const int64_t at = k * size_of(amg);
        s->weight = vectors[k % 2];
        s->weight_out = vectors[(k + 1) % 2];
        TRY(spmv_map_reduce(amg->ctx, SPMV_MAP_ABS, SPMV_MAX, amg->type, s->weight, largest + at, l->rows));
        if (k < STEPS)
            TRY(run(amg, AMG_POWER, s, l->rows));
    }
    TRY(read_number(amg, largest, (STEPS + 1) * size_of(amg), host));
    *eigenvalue = 0;
    for (int k = STEPS - LAST; k < STEPS; k++)
        *eigenvalue = fmax(*eigenvalue, real_at(amg->type, host, k + 1) / real_at(amg->type, host, k));
done:
    return st;
}

/* The bound of the eigenvalues that find_smoother found. */
static spmv_status read_bound(const struct amg *amg, struct amg_level *l)
{
    union real bound = {0};
    const spmv_status st =
        read_number(amg, (const char *)amg->bounds + (l - amg->level) * size_of(amg), size_of(amg), &bound);
    l->bound = real_at(amg->type, &bound, 0);
    return st;
}

/* The diagonal, the bound of the eigenvalues of D^-1 A (amg->bounds, or l->bound with several near-null-space
 * vectors), and the smoother. coarsens: also the strongest couplings. */
static spmv_status find_smoother(struct amg *amg, struct amg_level *l, bool coarsens)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_rows s = arguments_of(l);
    void *sums = NULL, *next = NULL, *ratio = NULL;
    if (l->diagonal == NULL) {
        TRY(alloc_vector(amg, &l->pool, l->rows, &l->diagonal));
        TRY(alloc_vector(amg, &l->pool, l->rows, &l->root));
        TRY(alloc_vector(amg, &l->pool, l->rows, &l->inverse));
    }
    TRY(alloc_vector(amg, &work, l->rows, &sums));
    TRY(alloc_vector(amg, &work, l->rows, &next));
    TRY(alloc_vector(amg, &work, l->rows, &ratio));
    s.diagonal = s.diagonal_out = l->diagonal;
    s.root_out = l->root;
    s.inverse_out = l->inverse;
    s.least = l->least;
    s.l1 = amg->l1;
    s.weight_out = sums;
    TRY(run(amg, AMG_DIAGONAL, &s, l->rows));
    s.weight = sums;
    s.weight_out = next;
    s.ratio_out = ratio;
    if (coarsens)
        TRY(alloc_vector(amg, &l->work, l->rows, &l->strongest));
    s.root = l->root;
    s.strongest_out = l->strongest;
    TRY(run(amg, AMG_BOUND, &s, l->rows));
    TRY(spmv_reduce(amg->ctx, SPMV_MAX, amg->type, ratio, (char *)amg->bounds + (l - amg->level) * size_of(amg),
                    l->rows));
    if (l->nulls > 0) {
        double eigenvalue = 0;
        TRY(read_bound(amg, l));
        TRY(estimate_eigenvalue(amg, l, &s, &work, (void *[]){sums, next}, &eigenvalue));
        if (isfinite(l->bound) && EIGENVALUE_MARGIN * eigenvalue < l->bound)
            l->bound = EIGENVALUE_MARGIN * eigenvalue;
        l->omega = OMEGA / l->bound;
    }
done:
    amg_release(&work);
    return st;
}

static void set_omega(const struct amg *amg, struct amg_level *l, const double *bound)
{
    if (l->nulls == 0)
        l->omega = OMEGA / real_at(amg->type, bound, 0);
}

/* Runs a step that finds the reciprocals of F's diagonal, and the bound for omega, in amg->cells. */
static spmv_status find_omega(struct amg *amg, struct amg_level *l, enum amg_step step, struct amg_rows *s)
{
    spmv_status st = SPMV_OK;
    TRY(alloc_vector(amg, &l->work, l->rows, &l->f_inverse));
    TRY(alloc_vector(amg, &l->work, l->rows, &s->ratio_out));
    s->inverse_out = l->f_inverse;
    TRY(run(amg, step, s, l->rows));
    if (l->nulls == 0)
        TRY(spmv_reduce(amg->ctx, SPMV_MAX, amg->type, s->ratio_out, &amg->cells->bound, l->rows));
done:
    return st;
}

/* The values of F, and omega. */
static spmv_status find_strong_values(struct amg *amg, struct amg_level *l)
{
    if (l->f_values == NULL) /* all couplings are strong */
        l->f.val = l->a.val;
    struct amg_rows s = arguments_of(l);
    double bound = 0;
    spmv_status st = find_omega(amg, l, AMG_STRONG_VALUES, &s);
    if (st == SPMV_OK)
        st = read_number(amg, &amg->cells->bound, 8, &bound);
    set_omega(amg, l, &bound);
    return st;
}

static double zero_tolerance(const struct amg *amg)
{
    return 256 * real_limits_of(amg->type).roundoff;
}

/* What check_next found, if that is not known yet. */
static spmv_status judge(struct amg *amg, const struct amg_level *l, double least, bool *imprecise)
{
    const bool unchecked = amg->unchecked;
    amg->unchecked = false;
    return unchecked && (!(least >= -zero_tolerance(amg)) || (is_narrower(amg) && least < IMPRECISE))
               ? not_positive(amg, l, least, imprecise)
               : SPMV_OK;
}

static spmv_status judge_now(struct amg *amg, const struct amg_level *l, bool *imprecise)
{
    double least = 0;
    const spmv_status st = amg->unchecked ? read_number(amg, &amg->cells->least, 8, &least) : SPMV_OK;
    return st != SPMV_OK ? st : judge(amg, l, least, imprecise);
}

/* Checks the diagonal of the next level's matrix; sets next->least. The result is read later (judge). mass:
 * see the step coarse_mass; NULL: not known yet. */
static spmv_status check_next(struct amg *amg, struct amg_level *l, struct amg_level *next, double *mass)
{
    spmv_status st = SPMV_OK;
    struct amg_rows s = arguments_of(l);
    void *ratio = NULL;
    TRY(amg_alloc(&l->work, next->rows * 8, &ratio));
    s.mass = mass;
    if (mass == NULL) {
        TRY(amg_alloc(&l->work, next->rows * 8, (void **)&s.mass));
        TRY(run(amg, AMG_COARSE_MASS, &s, next->rows));
    }
    s.c = rows_of(&next->a);
    s.ratio_out = ratio;
    s.to = next->least;
    s.tolerance = zero_tolerance(amg);
    TRY(run(amg, AMG_COARSE_CHECK, &s, next->rows));
    TRY(spmv_reduce(amg->ctx, SPMV_MIN, SPMV_F64, ratio, &amg->cells->least, next->rows));
    amg->unchecked = true;
done:
    return st;
}

/* The values of R. */
static spmv_status find_transposed_values(const struct amg *amg, const struct amg_level *l)
{
    const struct amg_rows s = arguments_of(l);
    return run(amg, AMG_TRANSPOSE, &s, l->r.nnz);
}

/* The values of the next level's matrix, by the plans of the products. */
static spmv_status find_product_values(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    void *ap_values = NULL;
    spmv_csr ap;
    spmv_multiply_pattern(l->ap, &ap);
    TRY(alloc_vector(amg, &l->work, ap.nnz, &ap_values));
    TRY(spmv_multiply_values(l->ap, l->a.val, l->p.val, ap_values));
    TRY(spmv_multiply_values(l->rap, l->r.val, ap_values, l[1].values));
done:
    return st;
}

/* ------------------------------------------------------------------- patterns */

/* Row offsets of 64 bits from counts; the total. counts has room for n + 1 numbers. */
static spmv_status sum_counts(const struct amg *amg, int64_t *counts, int64_t n, int64_t *offsets, int64_t *total)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_expand_offsets(amg->ctx, counts, 64, offsets, n));
    TRY(read_number(amg, offsets + n, 8, total));
done:
    return st;
}

/* *m = a matrix of the level with these rows, whose last offset is `total`, without columns and values yet. If
 * there are more than `most` in all, it gets no arrays, only their number. offsets: the last array of the
 * level. */
static spmv_status new_entries(struct amg *amg, struct amg_level *l, int64_t rows, void *offsets, int64_t total,
                               int64_t cols, int64_t most, spmv_csr *m, void **values)
{
    spmv_status st = SPMV_OK;
    void *col = NULL;
    *m = new_view(amg, rows, cols, total);
    if (total > most) {
        amg_release_last(&l->pool, (rows + 1) * 8);
        goto done;
    }
    TRY(amg_alloc(&l->pool, total * 4, &col));
    TRY(alloc_vector(amg, &l->pool, total, values));
    m->row_ptr = offsets;
    m->col = col;
    m->val = *values;
done:
    return st;
}

/* The same for these numbers of entries in the rows. */
static spmv_status new_rows(struct amg *amg, struct amg_level *l, int64_t rows, int64_t *counts, int64_t cols,
                            int64_t most, spmv_csr *m, void **values)
{
    spmv_status st = SPMV_OK;
    int64_t total = 0;
    void *offsets = NULL;
    TRY(amg_alloc(&l->pool, (rows + 1) * 8, &offsets));
    TRY(sum_counts(amg, counts, rows, offsets, &total));
    TRY(new_entries(amg, l, rows, offsets, total, cols, most, m, values));
done:
    return st;
}

/* F, and omega. counts: gets the entries of its rows. level: that of l, which may be its matrix of nodes. */
static spmv_status find_strong(struct amg *amg, const struct amg_level *level, struct amg_level *l, int64_t *counts,
                               bool *imprecise)
{
    spmv_status st = SPMV_OK;
    struct amg_rows s = arguments_of(l);
    struct amg_cells found = {0};
    int64_t *offsets = NULL;
    if (l->strongest == NULL) {
        TRY(alloc_vector(amg, &l->work, l->rows, &l->strongest));
        s.strongest_out = l->strongest;
        TRY(run(amg, AMG_STRONGEST, &s, l->rows));
    }
    s.weight = l->strongest;
    s.strength = amg->strength;
    s.count = counts;
    TRY(find_omega(amg, l, AMG_STRONG_COUNT, &s));
    TRY(amg_alloc(&l->pool, (l->rows + 1) * 8, (void **)&offsets));
    TRY(spmv_expand_offsets(amg->ctx, counts, 64, offsets, l->rows));
    TRY(copy_number(amg, offsets + l->rows, &amg->cells->total));
    TRY(read_number(amg, amg->cells, sizeof found, &found));
    TRY(judge(amg, level, found.least, imprecise));
    set_omega(amg, l, &found.bound);
    TRY(new_entries(amg, l, l->rows, offsets, found.total, l->rows, l->a.nnz - 1, &l->f, &l->f_values));
    if (l->f.nnz < l->a.nnz) {
        s.f = rows_of(&l->f);
        TRY(run(amg, AMG_STRONG_FILL, &s, l->rows));
    } else {
        l->f = l->a;
    }
done:
    return st;
}

/* The rounds of the independent set after a step mis_decide. *any: some rows are still undecided.
 * *lists: whether to try lists of the undecided rows. offset: scratch memory, rows + 1 numbers of 64 bits. */
static spmv_status go_on_with_roots(struct amg *amg, const struct amg_level *l, const struct amg_rows *s, void *offset,
                                    bool *lists, bool *any)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    int32_t most = 0;
#ifdef SPMV_HAVE_CUDA
    struct amg_roots roots = {.lists = {offset, (int32_t *)offset + l->rows}};
    if (*lists) {
        *lists = false;
        roots.few = l->f.nnz <= FEW_COUPLINGS * l->rows;
        TRY(amg_alloc(&work, AMG_ROOTS_COUNTS * 8, (void **)&roots.counts));
        TRY(amg_roots_cuda(amg->ctx, s, &roots, any));
        goto done;
    }
#else
    (void)offset;
    (void)lists;
#endif
    TRY(reduce(amg, &work, SPMV_MAX, SPMV_I32, s->undecided, l->rows, &most));
    *any = most != 0;
done:
    amg_release(&work);
    return st;
}

/* A maximal independent set: decides which rows are roots. offset: see above. */
static spmv_status find_roots(struct amg *amg, const struct amg_level *l, const struct amg_rows *s, void *offset)
{
    spmv_status st = SPMV_OK;
    bool any = true, lists = amg->ctx->backend->id == SPMV_BACKEND_CUDA;
    TRY(run(amg, AMG_MIS_BEGIN, s, l->rows));
    while (any) { /* the undecided row with the largest key becomes a root, so this ends */
        for (int round = 0; round < (lists ? ROUNDS : 1); round++) {
            TRY(run(amg, AMG_MIS_SPREAD, s, l->rows));
            TRY(run(amg, AMG_MIS_DECIDE, s, l->rows));
        }
        TRY(go_on_with_roots(amg, l, s, offset, &lists, &any));
    }
    TRY(run(amg, AMG_MIS_SPREAD, s, l->rows));
done:
    return st;
}

/* The aggregates, and their number. */
static spmv_status find_aggregates(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t *aggregates)
{
    spmv_status st = SPMV_OK;
    struct amg_rows s = arguments_of(l);
    struct amg_pool work = {.ctx = amg->ctx};
    void *key = NULL, *near_key = NULL, *undecided = NULL, *offset = NULL;
    TRY(amg_alloc(&l->pool, l->rows * 4, (void **)&l->aggregate));
    TRY(amg_alloc(&work, l->rows * 8, &key));
    TRY(amg_alloc(&work, l->rows * 8, &near_key));
    TRY(amg_alloc(&work, l->rows * 4, &undecided));
    TRY(amg_alloc(&work, (l->rows + 1) * 8, &offset));
    s.key = key;
    s.near_key = near_key;
    s.undecided = undecided;
    s.count = counts;
    s.offset = offset;
    TRY(find_roots(amg, l, &s, offset));
    TRY(run(amg, AMG_ROOT, &s, l->rows));
    TRY(sum_counts(amg, counts, l->rows, offset, aggregates));
    s.aggregate = undecided;
    TRY(run(amg, AMG_JOIN_ROOT, &s, l->rows));
    s.joined = undecided;
    s.aggregate = l->aggregate;
    TRY(run(amg, AMG_JOIN_NEAR, &s, l->rows));
done:
    amg_release(&work);
    return st;
}

static spmv_status find_tentative(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t aggregates)
{
    spmv_status st = SPMV_OK;
    struct amg_rows s = arguments_of(l);
    s.count = counts;
    TRY(run(amg, AMG_TENTATIVE_COUNT, &s, l->rows));
    TRY(new_rows(amg, l, l->rows, counts, aggregates, l->rows, &l->p0, &l->p0_values));
    s.p0 = rows_of(&l->p0);
    TRY(run(amg, AMG_TENTATIVE_FILL, &s, l->rows));
done:
    return st;
}

/* The values of P. step: if there is no plan for F P0. */
static spmv_status find_p_values(struct amg *amg, struct amg_level *l, enum amg_step step)
{
    struct amg_rows s = arguments_of(l);
    s.factor = l->omega;
    if (l->fp0 == NULL)
        return run(amg, step, &s, l->rows);
    const spmv_status st = spmv_multiply_values(l->fp0, l->f.val, l->p0.val, l->p_values);
    return st != SPMV_OK ? st : run(amg, AMG_SMOOTH, &s, l->rows);
}

/* P of the tentative interpolation P0. */
static spmv_status find_p_of_p0(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_multiply_plan_create(amg->ctx, &l->f, &l->p0, NULL, &l->fp0));
    spmv_multiply_pattern(l->fp0, &l->p);
    TRY(alloc_vector(amg, &l->pool, l->p.nnz, &l->p_values));
    l->p = with_values(amg, l->p, l->p_values);
    TRY(find_p_values(amg, l, AMG_PROLONG_FILL));
done:
    return st;
}

/* P, by way of P0 if a row of F is too long for one step. */
static spmv_status find_p(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t aggregates)
{
    spmv_status st = SPMV_OK;
    struct amg_rows s = arguments_of(l);
    s.count = counts;
    TRY(run(amg, AMG_PROLONG_COUNT, &s, l->rows));
    TRY(new_rows(amg, l, l->rows, counts, aggregates, l->a.nnz, &l->p, &l->p_values));
    if (l->p.nnz <= l->a.nnz)
        return find_p_values(amg, l, AMG_PROLONG_FILL);
    TRY(find_tentative(amg, l, counts, aggregates));
    TRY(find_p_of_p0(amg, l));
done:
    return st;
}

/* ------------------------------------------------------- classical interpolation */

/* Chooses the interpolation, from a sample of the rows of the first level: see above. */
static spmv_status choose(struct amg *amg, const struct amg_level *l)
{
    enum { SAMPLE = 1 << 14 };
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_rows s = arguments_of(l);
    int64_t balance = 0;
    amg->classical = false;
    if (l->nulls > 0 || l->near_null != NULL || l->rows <= AMG_BOTTOM)
        return SPMV_OK;
    s.stride = ceil_divide(l->rows, SAMPLE);
    s.strength = amg->strength;
    const int64_t sample = ceil_divide(l->rows, s.stride);
    TRY(amg_alloc(&work, sample * 8, (void **)&s.count));
    TRY(run(amg, AMG_ONE_WAY, &s, sample));
    TRY(reduce(amg, &work, SPMV_ADD, SPMV_I64, s.count, sample, &balance));
    amg->classical = balance < 0;
done:
    amg_release(&work);
    return st;
}

/* On which rows each row depends. s: gets what the steps read. */
static spmv_status find_dependence(const struct amg *amg, struct amg_level *l, struct amg_rows *s)
{
    spmv_status st = SPMV_OK;
    *s = arguments_of(l);
    s->strength = amg->strength;
    if (l->strongest == NULL)
        TRY(alloc_vector(amg, &l->work, l->rows, &l->strongest));
    s->weight = s->weight_out = l->strongest;
    TRY(run(amg, AMG_DEPENDENCE, s, l->rows));
done:
    return st;
}

/* The coarse rows, numbered in l->aggregate, and how many there are. */
static spmv_status find_coarse_rows(const struct amg *amg, struct amg_level *l, struct amg_rows *s, int64_t *counts,
                                    int64_t *coarse)
{
    spmv_status st = SPMV_OK;
    const int rounds = amg->ctx->backend->id == SPMV_BACKEND_CUDA ? ROUNDS : 1;
    struct amg_pool work = {.ctx = amg->ctx};
    int32_t undecided = 1;
    void *offset = NULL;
    TRY(amg_alloc(&l->pool, l->rows * 4, (void **)&l->aggregate));
    TRY(amg_alloc(&work, l->rows * 8, (void **)&s->key));
    TRY(amg_alloc(&work, l->rows * 8, (void **)&s->near_key));
    TRY(amg_alloc(&work, l->rows * 4, (void **)&s->undecided));
    TRY(amg_alloc(&work, (l->rows + 1) * 8, &offset));
    TRY(run(amg, AMG_SPLIT_BEGIN, s, l->rows));
    while (undecided != 0) { /* the undecided row with the largest key becomes coarse, so this ends */
        for (int round = 0; round < rounds; round++) {
            TRY(run(amg, AMG_SPLIT_DECIDE, s, l->rows));
            TRY(run(amg, AMG_SPLIT_EXCLUDE, s, l->rows));
        }
        TRY(reduce(amg, &work, SPMV_MAX, SPMV_I32, s->undecided, l->rows, &undecided));
    }
    s->count = counts;
    s->offset = offset;
    s->aggregate = l->aggregate;
    TRY(run(amg, AMG_ROOT, s, l->rows));
    TRY(sum_counts(amg, counts, l->rows, offset, coarse));
    TRY(run(amg, AMG_JOIN_ROOT, s, l->rows));
done:
    amg_release(&work);
    return st;
}

/* The coarse rows on which each row depends. */
static spmv_status find_coarse_near(const struct amg *amg, struct amg_level *l, struct amg_rows *s)
{
    spmv_status st = SPMV_OK;
    void *sums = NULL;
    TRY(alloc_vector(amg, &l->work, l->rows, &sums));
    TRY(amg_alloc(&l->work, l->rows * 4, (void **)&s->near_count));
    TRY(amg_alloc(&l->work, l->a.nnz * 4, (void **)&s->near.col));
    TRY(alloc_vector(amg, &l->work, l->a.nnz, &s->near.val));
    s->weight_out = sums;
    s->to_coarse = sums;
    TRY(run(amg, AMG_COARSE_NEAR, s, l->rows));
done:
    return st;
}

/* P by classical interpolation. */
static spmv_status find_classical_p(struct amg *amg, struct amg_level *l, struct amg_rows *s, int64_t coarse)
{
    spmv_status st = SPMV_OK;
    const int64_t room = AMG_INTERPOLATE_MOST * l->rows;
    TRY(find_coarse_near(amg, l, s));
    TRY(amg_alloc(&l->work, room * 4, (void **)&s->p0.col));
    TRY(alloc_vector(amg, &l->work, room, &s->p0.val));
    TRY(run(amg, AMG_INTERPOLATE, s, l->rows));
    TRY(new_rows(amg, l, l->rows, s->count, coarse, room, &l->p, &l->p_values));
    s->p = rows_of(&l->p);
    TRY(run(amg, AMG_INTERPOLATE_PLACE, s, l->rows));
done:
    return st;
}

/* The new values of P. */
static spmv_status find_classical_values(const struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct amg_rows s;
    TRY(find_dependence(amg, l, &s));
    TRY(find_coarse_near(amg, l, &s));
    TRY(run(amg, AMG_INTERPOLATE_VALUES, &s, l->rows));
done:
    l->strongest = NULL;
    return st;
}

/* -------------------------------------------------------------- the next level */

/* R, the transpose of P. */
static spmv_status find_r(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    TRY(amg_alloc(amg->updates ? &l->pool : &l->work, l->p.nnz * entry_bits(&l->p) / 8, &l->entry));
    TRY(matrix_transpose_pattern(amg->ctx, &l->p, &l->transpose, (struct entry_numbers){l->entry, entry_bits(&l->p)}));
    spmv_matrix_view(l->transpose, &l->r);
    TRY(alloc_vector(amg, &l->pool, l->r.nnz, &l->r_values));
    l->r = with_values(amg, l->r, l->r_values);
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
    TRY(spmv_multiply_plan_create(amg->ctx, &l->a, &l->p, NULL, &l->ap));
    spmv_multiply_pattern(l->ap, &ap);
    ap = with_values(amg, ap, l->p_values); /* not a pattern; the plan reads no values */
    TRY(spmv_multiply_plan_create(amg->ctx, &l->r, &ap, NULL, &l->rap));
    spmv_multiply_pattern(l->rap, &next->a);
    TRY(alloc_vector(amg, &next->pool, next->a.nnz, &next->values));
    next->a = with_values(amg, next->a, next->values);
    TRY(find_product_values(amg, l));
    if (!amg->updates) {
        spmv_multiply_plan_destroy(l->ap);
        l->ap = NULL;
    }
done:
    return st;
}

#ifdef SPMV_HAVE_CUDA
/* R, the transpose of P, in arrays of the level. */
static spmv_status transpose_at_once(struct amg *amg, struct amg_level *l, struct amg_pool *work)
{
    spmv_status st = SPMV_OK;
    const int64_t coarse = l->p.cols, nnz = l->p.nnz;
    struct amg_transpose t = {.p = rows_of(&l->p), .fine = l->rows, .coarse = coarse, .nnz = nnz};
    void *offsets = NULL, *col = NULL;
    TRY(amg_alloc(work, coarse * 4, (void **)&t.counts));
    TRY(amg_alloc(work, 2 * nnz * size_of(amg), &t.entries));
    TRY(amg_alloc(&l->pool, (coarse + 1) * 8, &offsets));
    TRY(amg_alloc(&l->pool, nnz * 4, &col));
    TRY(alloc_vector(amg, &l->pool, nnz, &l->r_values));
    l->r = new_view(amg, coarse, l->rows, nnz);
    l->r.row_ptr = offsets;
    l->r.col = col;
    l->r.val = l->r_values;
    t.r = rows_of(&l->r);
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
    struct amg_galerkin g = {.a = rows_of(&l->a),
                             .p = rows_of(&l->p),
                             .r = rows_of(&l->r),
                             .fine = l->rows,
                             .coarse = coarse,
                             .a_nnz = l->a.nnz,
                             .p_nnz = l->p.nnz,
                             .room = {2 * most, most},
                             .diagonal = l->diagonal,
                             .mass = mass};
    for (int k = 0; k < 2; k++) {
        TRY(amg_alloc(work, 2 * g.room[k] * size_of(amg), &g.entries[k]));
        TRY(amg_alloc(work, (k == 0 ? l->rows : coarse) * 8, (void **)&g.places[k]));
    }
    TRY(amg_alloc(work, l->rows * 4, (void **)&g.list));
    TRY(amg_alloc(work, AMG_GALERKIN_COUNTERS, &g.counters));
    TRY(amg_alloc(work, (coarse + 1) * 8, (void **)&g.lengths));
    TRY(amg_galerkin_cuda(amg->ctx, amg->type, &g));
    TRY(new_rows(amg, next, coarse, g.lengths, coarse, g.room[1], &next->a, &next->values));
    *made = next->a.nnz <= g.room[1];
    if (*made)
        TRY(amg_galerkin_place_cuda(amg->ctx, amg->type, &g, rows_of(&next->a), next->a.nnz));
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
#endif

/* Makes the next level, for P. */
static spmv_status make_next(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct amg_level *next = l + 1;
    double *mass = NULL;
    bool made = false;
    next->pool.ctx = next->work.ctx = amg->ctx;
    next->rows = l->p.cols;
#ifdef SPMV_HAVE_CUDA
    if (amg->ctx->backend->id == SPMV_BACKEND_CUDA && !amg->updates) {
        TRY(amg_alloc(&l->work, next->rows * 8, (void **)&mass));
        TRY(make_at_once(amg, l, mass, &made));
    }
#endif
    if (!made) {
        TRY(find_r(amg, l));
        TRY(multiply(amg, l));
    }
    TRY(amg_alloc(&next->pool, next->rows * 8, &next->least));
    TRY(check_next(amg, l, next, made ? mass : NULL));
done:
    return st;
}

static bool few_enough(int64_t coarse, int64_t rows)
{
    return coarse > 0 && (double)coarse <= LARGEST_SHARE * (double)rows;
}

/* The matrix of nodes, with the largest absolute value of each block: the level itself if a node is a
 * row. */
static spmv_status find_nodes(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes)
{
    spmv_status st = SPMV_OK;
    struct amg_rows s = arguments_of(l);
    void *weight = NULL, *inverse = NULL;
    if (l->block == 1) {
        nodes->a = l->a;
        nodes->diagonal = l->diagonal;
        nodes->root = l->root;
        return SPMV_OK;
    }
    s.count = counts;
    TRY(run(amg, AMG_NODE_COUNT, &s, nodes->rows));
    TRY(new_rows(amg, nodes, nodes->rows, counts, nodes->rows, l->a.nnz, &nodes->a, &nodes->values));
    s.c = rows_of(&nodes->a);
    TRY(run(amg, AMG_NODE_FILL, &s, nodes->rows));
    s = arguments_of(nodes);
    TRY(alloc_vector(amg, &nodes->pool, nodes->rows, &nodes->diagonal));
    TRY(alloc_vector(amg, &nodes->pool, nodes->rows, &nodes->root));
    TRY(alloc_vector(amg, &nodes->pool, nodes->rows, &weight));
    TRY(alloc_vector(amg, &nodes->pool, nodes->rows, &inverse));
    s.diagonal_out = nodes->diagonal;
    s.root_out = nodes->root;
    s.weight_out = weight;
    s.inverse_out = inverse;
    TRY(run(amg, AMG_DIAGONAL, &s, nodes->rows));
done:
    return st;
}

/* P0 and the basis of the next level, from the aggregates of the nodes. */
static spmv_status find_basis(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes,
                              int64_t aggregates)
{
    spmv_status st = SPMV_OK;
    struct amg_level *next = l + 1;
    struct amg_rows s = arguments_of(l);
    void *entry = NULL;
    TRY(find_tentative(amg, nodes, counts, aggregates));
    TRY(amg_alloc(&nodes->work, nodes->p0.nnz * entry_bits(&nodes->p0) / 8, &entry));
    TRY(matrix_transpose_pattern(amg->ctx, &nodes->p0, &nodes->transpose,
                                 (struct entry_numbers){entry, entry_bits(&nodes->p0)}));
    spmv_matrix_view(nodes->transpose, &nodes->r);
    next->pool.ctx = next->work.ctx = amg->ctx;
    next->block = next->nulls = l->nulls;
    TRY(amg_alloc(&next->work, aggregates * l->nulls * l->nulls * 8, (void **)&next->basis));
    s.r = rows_of(&nodes->r);
    s.coarse_basis = next->basis;
    TRY(run(amg, AMG_ORTHONORMAL, &s, aggregates));
    s.aggregate = nodes->aggregate;
    s.count = counts;
    TRY(run(amg, AMG_BASIS_COUNT, &s, l->rows));
    TRY(new_rows(amg, l, l->rows, counts, aggregates * l->nulls, INT64_MAX, &l->p0, &l->p0_values));
    s.p0 = rows_of(&l->p0);
    TRY(run(amg, AMG_BASIS_FILL, &s, l->rows));
done:
    return st;
}

/* As coarsen, for nodes of several rows or several near-null-space vectors. */
static spmv_status coarsen_nodes(struct amg *amg, struct amg_level *l, bool *coarser, bool *imprecise)
{
    spmv_status st = SPMV_OK;
    struct amg_level nodes = {.rows = l->rows / l->block, .pool.ctx = amg->ctx, .work.ctx = amg->ctx};
    void *counts = NULL;
    int64_t aggregates = 0;
    *coarser = false;
    TRY(amg_alloc(&nodes.work, (l->rows + 1) * 8, &counts));
    TRY(find_nodes(amg, l, counts, &nodes));
    TRY(find_strong(amg, l, &nodes, counts, imprecise));
    TRY(find_aggregates(amg, &nodes, counts, &aggregates));
    *coarser = few_enough(aggregates * l->nulls, l->rows);
    if (*coarser) {
        l->f = l->a; /* sums of weak couplings say nothing about several vectors */
        TRY(find_strong_values(amg, l));
        TRY(find_basis(amg, l, counts, &nodes, aggregates));
        TRY(find_p_of_p0(amg, l));
        TRY(make_next(amg, l));
    }
done:
    spmv_matrix_destroy(nodes.transpose);
    amg_release(&nodes.pool);
    amg_release(&nodes.work);
    amg_release(&l->work);
    return st;
}

/* Makes the next level. *coarser: false if there is none, because too few rows would vanish. */
static spmv_status coarsen(struct amg *amg, struct amg_level *l, bool *coarser, bool *imprecise)
{
    spmv_status st = SPMV_OK;
    void *counts = NULL;
    int64_t coarse = 0;
    struct amg_rows s;
    *coarser = false;
    TRY(amg_alloc(&l->work, (l->rows + 1) * 8, &counts));
    if (amg->classical) {
        TRY(judge_now(amg, l, imprecise));
        TRY(find_dependence(amg, l, &s));
        TRY(find_coarse_rows(amg, l, &s, counts, &coarse));
    } else {
        TRY(find_strong(amg, l, l, counts, imprecise));
        TRY(find_aggregates(amg, l, counts, &coarse));
    }
    *coarser = few_enough(coarse, l->rows);
    if (*coarser) {
        if (amg->classical)
            TRY(find_classical_p(amg, l, &s, coarse));
        else
            TRY(find_p(amg, l, counts, coarse));
        TRY(make_next(amg, l));
    }
done:
    amg_release(&l->work);
    l->strongest = NULL;
    return st;
}

/* ---------------------------------------------------------------- last level */

/* A pivot is relative to its diagonal entry. */
static spmv_status check_pivots(struct amg *amg, const double *pivot, double tolerance, bool *imprecise)
{
    spmv_status st = SPMV_OK;
    struct amg_level *l = &amg->level[amg->levels - 1];
    const int64_t n = l->rows;
    double *host = NULL;
    amg->left_out = 0;
    TRY(host_alloc(amg->ctx, n * 8, "pivots", (void **)&host));
    TRY(read_number(amg, pivot, n * 8, host));
    for (int64_t i = 0; i < n; i++) {
        amg->left_out += !(host[i] > tolerance);
        if (!(host[i] >= -4 * tolerance) || (is_narrower(amg) && host[i] <= fmax(tolerance, SMALL_PIVOT))) {
            st = not_positive(amg, l, isfinite(host[i]) ? host[i] : -2, imprecise);
            break;
        }
    }
done:
    host_free(host);
    return st;
}

/* The inverse of the last level's matrix. */
static spmv_status invert_last(struct amg *amg, bool *imprecise)
{
    spmv_status st = SPMV_OK;
    const struct amg_level *l = &amg->level[amg->levels - 1];
    const int64_t n = l->rows;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_rows s = arguments_of(l);
    void *row_ptr = NULL, *col = NULL;
    s.dense.n = n;
    s.dense.tolerance = 16 * (double)n * real_limits_of(amg->type).roundoff;
    if (amg->bottom_values == NULL) {
        TRY(amg_alloc(&amg->pool, (n + 1) * 8, &row_ptr));
        TRY(amg_alloc(&amg->pool, n * n * 4, &col));
        TRY(alloc_vector(amg, &amg->pool, n * n, &amg->bottom_values));
        amg->bottom = new_view(amg, n, n, n * n);
        amg->bottom.row_ptr = row_ptr;
        amg->bottom.col = col;
        amg->bottom.val = amg->bottom_values;
    }
    TRY(amg_alloc(&work, n * n * 8, (void **)&s.dense.element));
    TRY(amg_alloc(&work, n * 8, (void **)&s.dense.own));
    TRY(amg_alloc(&work, n * 8, (void **)&s.dense.column[0]));
    TRY(amg_alloc(&work, n * 8, (void **)&s.dense.column[1]));
    TRY(amg_alloc(&work, n * 8, (void **)&s.dense.pivot));
    TRY(amg_alloc(&work, 4, (void **)&s.dense.arrived));
    TRY(spmv_map_index(amg->ctx, SPMV_I32, &(int32_t){0}, NULL, s.dense.arrived, 1));
    s.c = rows_of(&amg->bottom);
    s.count = (int64_t *)amg->bottom.row_ptr;
    TRY(run(amg, AMG_DENSE_CLEAR, &s, n * n));
    TRY(run(amg, AMG_DENSE_FILL, &s, n));
    TRY(amg_invert(amg->ctx, &s.dense));
    TRY(judge_now(amg, l, imprecise));
    TRY(check_pivots(amg, s.dense.pivot, s.dense.tolerance, imprecise));
    TRY(run(amg, AMG_DENSE_TAKE, &s, n * n));
done:
    amg_release(&work);
    return st;
}

/* ---------------------------------------------------------------------- plans */

static spmv_status plan_for(struct amg *amg, const spmv_csr *a, spmv_plan **plan)
{
    if (*plan != NULL)
        return spmv_plan_update_values(*plan, a->val);
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    o.type = amg->type;
    o.update_values = amg->updates;
    /* the first matrix often has few different values; no digit depends on this */
    if (amg->ctx->backend->id == SPMV_BACKEND_CUDA && !amg->updates && a->rows == amg->m->rows && a->cols == a->rows)
        o.compression = SPMV_COMPRESSION_VALUES;
    return spmv_plan_create(amg->ctx, a, &o, plan);
}

/* Two steps of a smoother are one matrix: x = (1 + before_1) factor_0 D^-1 f + factor_1 D^-1 (f -
 * factor_0 A D^-1 f). */
static spmv_status plan_smoother(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct amg_rows s = arguments_of(l);
    if (l->smoother == NULL)
        TRY(alloc_vector(amg, &l->pool, l->a.nnz, &l->smoother));
    s.inverse = l->inverse;
    s.factor = (1 + l->step[1].before) * l->step[0].factor + l->step[1].factor;
    s.other = l->step[0].factor * l->step[1].factor;
    s.to = l->smoother;
    TRY(run(amg, AMG_SMOOTHER, &s, l->rows));
    const spmv_csr a = with_values(amg, l->a, l->smoother);
    if (l->plan_smoother == NULL)
        TRY(plan_share(l->plan, l->smoother, &l->plan_smoother));
    if (l->plan_smoother == NULL || amg->updates)
        TRY(plan_for(amg, &a, &l->plan_smoother));
done:
    return st;
}

/* The plans, the smoothers' steps and the vectors. */
static spmv_status complete(struct amg *amg, bool *imprecise)
{
    spmv_status st = SPMV_OK;
    const bool first = amg->level[0].d == NULL;
    double bounds[AMG_LEVELS];
    TRY(judge_now(amg, &amg->level[amg->levels - 1], imprecise));
    TRY(read_number(amg, amg->bounds, amg->levels * size_of(amg), bounds));
    for (int k = 0; k < amg->levels; k++) {
        struct amg_level *l = &amg->level[k];
        const bool last = k + 1 == amg->levels;
        if (amg->l1)
            l->bound = 1;
        else if (l->nulls == 0)
            l->bound = real_at(amg->type, bounds, k);
        if (!isfinite(l->bound)) {
            st = not_positive(amg, l, -2, &(bool){false});
            goto done;
        }
        l->degree = !last ? amg->degree : amg->bottom_values != NULL ? 0 : (int)max_i64(AMG_LAST_DEGREE, amg->degree);
        if (amg->l1)
            for (int i = 0; i <= l->degree; i++)
                l->step[i] = (struct precond_coefficients){0, 1};
        else
            precond_chebyshev_steps(l->bound / (last ? LAST_INTERVAL : INTERVAL), l->bound, l->degree, l->step);
        if (!last || amg->bottom_values == NULL)
            TRY(plan_for(amg, &l->a, &l->plan));
        if (!last && l->degree == 2)
            TRY(plan_smoother(amg, l));
        if (!last) {
            TRY(plan_for(amg, &l->p, &l->plan_p));
            TRY(plan_for(amg, &l->r, &l->plan_r));
        }
        if (first) {
            TRY(alloc_vector(amg, &l->pool, l->rows, &l->residual));
            TRY(alloc_vector(amg, &l->pool, l->rows, &l->x));
            TRY(alloc_vector(amg, &l->pool, l->rows, &l->d));
        }
    }
    if (amg->bottom_values != NULL)
        TRY(plan_for(amg, &amg->bottom, &amg->plan_bottom));
done:
    return st;
}

spmv_status amg_build(struct amg *amg, spmv_type type, bool *imprecise)
{
    spmv_status st = SPMV_OK;
    bool coarser = true;
    amg->type = type;
    amg->pool.ctx = amg->ctx;
    amg->levels = 1;
    amg->level[0] = (struct amg_level){.rows = amg->m->rows, .block = amg->block, .nulls = amg->nulls};
    amg->level[0].pool.ctx = amg->level[0].work.ctx = amg->ctx;
    amg->unchecked = false;
    amg->classical = false;
    TRY(amg_alloc(&amg->pool, sizeof *amg->cells, (void **)&amg->cells));
    /* read whole, set in parts */
    TRY(spmv_upload(amg->ctx, &(const struct amg_cells){0}, amg->cells, sizeof *amg->cells));
    TRY(amg_alloc(&amg->pool, AMG_LEVELS * size_of(amg), &amg->bounds));
    TRY(take_values(amg));
    TRY(take_near_null(amg));
    for (;;) {
        struct amg_level *l = &amg->level[amg->levels - 1];
        const bool coarsens = l->rows > AMG_BOTTOM && amg->levels < AMG_LEVELS;
        TRY(find_smoother(amg, l, coarsens && l->nulls == 0 && !amg->classical));
        if (amg->levels == 1)
            TRY(choose(amg, l));
        if (l->rows <= AMG_BOTTOM) {
            TRY(invert_last(amg, imprecise));
            break;
        }
        if (amg->levels < AMG_LEVELS) {
            l[1] = (struct amg_level){0};
            st = (l->nulls > 0 ? coarsen_nodes : coarsen)(amg, l, &coarser, imprecise);
            amg->levels += l[1].pool.ctx != NULL; /* also if it is not complete */
            TRY(st);
        }
        if (!coarser || amg->levels == AMG_LEVELS)
            break;
    }
    TRY(complete(amg, imprecise));
done:
    return st;
}

spmv_status amg_renew(struct amg *amg, bool *imprecise)
{
    spmv_status st = SPMV_OK;
    /* a GPU has a row of F in shared memory and searches there */
    const bool device = amg->ctx->backend->id == SPMV_BACKEND_CUDA;
    const enum amg_step step = device ? AMG_PROLONG_FILL : AMG_PROLONG_VALUES;
    TRY(take_values(amg));
    for (int k = 0; k < amg->levels; k++) {
        struct amg_level *l = &amg->level[k];
        TRY(find_smoother(amg, l, false));
        if (k + 1 < amg->levels) {
            st = amg->classical ? find_classical_values(amg, l) : find_strong_values(amg, l);
            if (st == SPMV_OK && !amg->classical)
                st = find_p_values(amg, l, step);
            if (st == SPMV_OK)
                st = find_transposed_values(amg, l);
            if (st == SPMV_OK)
                st = find_product_values(amg, l);
            if (st == SPMV_OK)
                st = check_next(amg, l, l + 1, NULL);
            if (st == SPMV_OK)
                st = judge_now(amg, l + 1, imprecise);
            amg_release(&l->work);
            TRY(st);
        }
    }
    if (amg->bottom_values != NULL)
        TRY(invert_last(amg, imprecise));
    TRY(complete(amg, imprecise));
done:
    return st;
}

spmv_status amg_check_range(const struct amg *amg, bool *fits)
{
    spmv_status st = SPMV_OK;
    const struct amg_level *const l = &amg->level[0];
    union real entry = {0}, inverse = {0};
    const double most = sqrt(real_limits_of(amg->type).greatest) / RANGE_MARGIN;
    if (l->a.val != NULL)
        TRY(find_largest(amg, amg->type, l->a.val, l->a.nnz, &entry));
    TRY(find_largest(amg, amg->type, l->inverse, l->rows, &inverse));
    *fits = real_at(amg->type, &entry, 0) <= most && real_at(amg->type, &inverse, 0) <= most;
done:
    return st;
}

void amg_clear(struct amg *amg)
{
    for (int k = 0; k < amg->levels; k++) {
        struct amg_level *l = &amg->level[k];
        spmv_plan_destroy(l->plan_smoother); /* it may use the other one */
        spmv_plan_destroy(l->plan);
        spmv_plan_destroy(l->plan_p);
        spmv_plan_destroy(l->plan_r);
        spmv_multiply_plan_destroy(l->rap);
        spmv_multiply_plan_destroy(l->ap);
        spmv_multiply_plan_destroy(l->fp0);
        spmv_matrix_destroy(l->transpose);
        amg_release(&l->pool);
        amg_release(&l->work);
    }
    spmv_plan_destroy(amg->plan_bottom);
    amg->plan_bottom = NULL;
    amg->bottom_values = NULL;
    amg_release(&amg->pool);
    amg->levels = 0;
}
