/* The preconditioner amg of matrices that are not symmetric: iterations of gmres, its matrices, equal bits on
 * every backend, new values, types, and what it refuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/solvers.h>

#include "solvers/amg/amg_internal.h"
#include "tests/support/support_hash.h"
#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"

static const struct amg *inside(const spmv_preconditioner *m)
{
    return m->self;
}

static spmv_preconditioner_options general(int update_values)
{
    spmv_preconditioner_options options = support_preconditioner_options();
    options.general = 1;
    options.update_values = update_values;
    return options;
}

static spmv_preconditioner *make(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options)
{
    spmv_preconditioner *m = NULL;
    assert_ok(ctx, spmv_preconditioner_create(ctx, "amg", a, options, &m));
    return m;
}

static spmv_matrix *generate(spmv_context *ctx, const char *spec, spmv_type type, spmv_csr *a)
{
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &matrix));
    spmv_matrix_view(matrix, a);
    return matrix;
}

/* b = A x for a random x, in the context's memory */
static void *right_side(spmv_context *ctx, const spmv_csr *a)
{
    spmv_plan *plan = NULL;
    uint64_t seed = 7;
    double *const x = support_zeros(a->rows, 8);
    for (int64_t i = 0; i < a->rows; i++)
        x[i] = support_uniform(&seed);
    const int64_t bytes = a->rows * (int64_t)spmv_type_size(a->type);
    void *const rounded = support_as(a->type, x, a->rows, 0), *const there = support_upload(ctx, rounded, bytes),
                *const b = support_upload(ctx, rounded, bytes);
    assert_ok(ctx, spmv_plan_create(ctx, a, NULL, &plan));
    assert_ok(ctx, spmv_apply(plan, NULL, there, NULL, b));
    spmv_plan_destroy(plan);
    spmv_free(ctx, there);
    support_free(x, rounded);
    return b;
}

/* Iterations of a solver with amg, to a residual of rtol. */
static int64_t iterations_of(spmv_context *ctx, const spmv_csr *a, const char *name, double rtol)
{
    spmv_solver *solver = NULL;
    spmv_solver_result result;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.solver = name;
    o.precond = "amg";
    o.rtol = rtol;
    void *const b = right_side(ctx, a), *const x = right_side(ctx, a);
    assert_ok(ctx, spmv_solver_create(ctx, a, &o, &solver));
    assert_ok(ctx, spmv_solver_solve(solver, b, x, &result, sizeof result));
    assert_true(result.true_residual <= 1.01 * rtol * result.norm_b);
    spmv_solver_destroy(solver);
    support_free_in(ctx, b, x);
    return result.iterations;
}

/* Any Peclet number, and sizes for which the coarse levels have much more convection than the first one. */
static void few_iterations(void **state)
{
    spmv_context *ctx = *state;
    static const char *const specs[] = {
        "convdiff2d:30,1",   "convdiff3d:10,100",   "convdiff2d:100,0.01", "convdiff2d:100,0.1", "convdiff2d:200,1",
        "convdiff2d:100,10", "convdiff2d:150,1000", "convdiff3d:30,0.01",  "convdiff3d:30,10",   "convdiff3d:30,1000"};
    for (int s = 0; s < (SLOW ? 2 : 10); s++) {
        spmv_csr a;
        spmv_matrix *const matrix = generate(ctx, specs[s], SPMV_F64, &a);
        const int64_t iterations = iterations_of(ctx, &a, "gmres", 1e-8);
        if (iterations > 10)
            fail_msg("%s: %lld iterations", specs[s], (long long)iterations);
        spmv_matrix_destroy(matrix);
    }
}

/* ------------------------------------------------------------------ the hierarchy */

/* A matrix of the hierarchy with all elements, on the host. */
static double *dense_of(spmv_context *ctx, const spmv_csr *a)
{
    double *const dense = support_zeros(a->rows * a->cols, 8);
    void *const offsets = fetch(ctx, a->row_ptr, (a->rows + 1) * (a->row_ptr_bits / 8));
    int32_t *const col = fetch(ctx, a->col, a->nnz * 4);
    void *const values = fetch(ctx, a->val, a->nnz * (int64_t)spmv_type_size(a->type));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = offset_at(offsets, a->row_ptr_bits, i); k < offset_at(offsets, a->row_ptr_bits, i + 1); k++)
            dense[i * a->cols + col[k]] = real_at(a->type, values, k);
    support_free(offsets, col, values);
    return dense;
}

/* C = A B, or of the absolute values */
static double *product(const double *a, const double *b, int64_t rows, int64_t inner, int64_t cols, bool absolute)
{
    double *const c = support_zeros(rows * cols, 8);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < inner; k++)
            for (int64_t j = 0; j < cols && a[i * inner + k] != 0; j++) {
                const double term = a[i * inner + k] * b[k * cols + j];
                c[i * cols + j] += absolute ? fabs(term) : term;
            }
    return c;
}

/* P and R have 1 for a coarse row. Their other rows and columns have no negative element and sum to at most 1. */
static void check_transfer(const double *p, int64_t fine, int64_t coarse, int64_t row_step, int64_t col_step,
                           const int32_t *aggregate, double u)
{
    for (int64_t i = 0; i < fine; i++) {
        double sum = 0;
        for (int64_t j = 0; j < coarse; j++) {
            const double element = p[i * row_step + j * col_step];
            assert_true(element >= 0);
            assert_true(aggregate[i] < 0 || element == (aggregate[i] == j ? 1 : 0));
            sum += element;
        }
        assert_true(sum <= 1 + 64 * u);
    }
}

/* The next A is R A P. Elements that are small in their row and in that of their column are missing, and were
 * added to the diagonal. */
static void check_product(const struct amg_level *l, const double *a, const double *p, const double *r,
                          const double *next, double u)
{
    const int64_t n = l->rows, m = l[1].rows;
    double *const ap = product(a, p, n, n, m, false), *const rap = product(r, ap, m, n, m, false);
    double *const size_ap = product(a, p, n, n, m, true), *const size = product(r, size_ap, m, n, m, true);
    double *const most = support_zeros(m, 8);
    int64_t missing = 0;
    for (int64_t e = 0; e < m * m; e++)
        most[e / m] = e % (m + 1) != 0 ? fmax(most[e / m], fabs(rap[e])) : most[e / m];
    for (int64_t i = 0; i < m; i++) {
        double lost = 0, all = 0;
        for (int64_t j = 0; j < m; j++)
            all += size[i * m + j];
        for (int64_t j = 0; j < m; j++)
            if (j != i && next[i * m + j] == 0 && rap[i * m + j] != 0) {
                assert_true(fabs(rap[i * m + j]) <= 0.0201 * fmin(most[i], most[j]));
                lost += rap[i * m + j];
                missing++;
            }
        for (int64_t j = 0; j < m; j++)
            if (next[i * m + j] != 0)
                assert_true(fabs(next[i * m + j] - rap[i * m + j] - (j == i ? lost : 0)) <= 256 * u * all);
    }
    assert_true(missing > 0);
    support_free(ap, rap, size_ap, size, most);
}

static void hierarchy_is_sound(void **state)
{
    spmv_context *ctx = *state;
    static const char *const specs[] = {"convdiff2d:24,0.5", "convdiff3d:9,50", "convdiff2d:24,500"};
    const spmv_preconditioner_options options = general(0);
    for (int s = 0; s < (SLOW ? 1 : 3); s++) {
        spmv_csr a;
        spmv_matrix *const matrix = generate(ctx, specs[s], SPMV_F64, &a);
        spmv_preconditioner *const m = make(ctx, &a, &options);
        const struct amg *const amg = inside(m);
        const double u = real_limits_of(amg->type).roundoff;
        assert_true(amg->general && amg->levels >= 2 && amg->plan_coarsest != NULL);
        const struct amg_level *const l = &amg->level[0];
        double *const first = dense_of(ctx, &l->a), *const p = dense_of(ctx, &l->p), *const r = dense_of(ctx, &l->r),
                      *const next = dense_of(ctx, &l[1].a);
        int32_t *const aggregate = fetch(ctx, l->aggregate, l->rows * 4);
        check_transfer(p, l->rows, l[1].rows, l[1].rows, 1, aggregate, u);
        check_transfer(r, l->rows, l[1].rows, 1, l->rows, aggregate, u);
        check_product(l, first, p, r, next, u);
        const struct amg_level *const last = &amg->level[amg->levels - 1];
        double *const small = dense_of(ctx, &last->a), *const inverse = dense_of(ctx, &amg->coarsest),
                      *const one = product(small, inverse, last->rows, last->rows, last->rows, false),
                      *const size = product(small, inverse, last->rows, last->rows, last->rows, true);
        for (int64_t e = 0; e < last->rows * last->rows; e++)
            assert_true(fabs(one[e] - (e % (last->rows + 1) == 0)) <= 16 * u * size[e] + 1e-12);
        support_free(first, p, r, next, aggregate, small, inverse, one, size);
        spmv_preconditioner_destroy(m);
        spmv_matrix_destroy(matrix);
    }
}

static uint64_t hash_matrix(spmv_context *ctx, uint64_t hash, const spmv_csr *a)
{
    void *const offsets = fetch(ctx, a->row_ptr, (a->rows + 1) * (a->row_ptr_bits / 8));
    for (int64_t i = 0; i <= a->rows; i++) {
        const int64_t offset = offset_at(offsets, a->row_ptr_bits, i);
        hash = hash_bytes(hash, &offset, 8);
    }
    free(offsets);
    hash = hash_array(ctx, hash, a->col, a->nnz * 4);
    return hash_array(ctx, hash, a->val, a->nnz * (int64_t)spmv_type_size(a->type));
}

/* A hash of every number of the hierarchy. */
static uint64_t hash_of(spmv_context *ctx, const spmv_preconditioner *m)
{
    const struct amg *const amg = inside(m);
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)amg->levels;
    assert_true(amg->general);
    for (int k = 0; k < amg->levels; k++) {
        const struct amg_level *const l = &amg->level[k];
        hash = hash_matrix(ctx, hash, &l->a);
        if (k + 1 == amg->levels)
            break;
        const spmv_csr *const matrices[] = {&l->p, &l->r, &l->before, &l->after};
        hash = hash_array(ctx, hash, l->aggregate, l->rows * 4);
        for (int i = 0; i < 4; i++)
            hash = hash_matrix(ctx, hash, matrices[i]);
    }
    return amg->plan_coarsest != NULL ? hash_matrix(ctx, hash, &amg->coarsest) : hash;
}

/* A hash of M^-1 r. Its products have another order of terms on other backends. */
static uint64_t hash_of_application(spmv_context *ctx, const spmv_preconditioner *m)
{
    const int64_t n = precond_rows(m);
    double *const r = support_zeros(n, 8), *const z = support_zeros(n, 8);
    for (int64_t i = 0; i < n; i++)
        r[i] = (double)(i % 17) - 7.5;
    apply(ctx, m, r, z);
    const uint64_t hash = hash_bytes(0, z, n * 8);
    support_free(r, z);
    return hash;
}

static void same_bits(void **state)
{
    (void)state;
    static const char *const specs[] = {"convdiff2d:30,1", "convdiff3d:16,30", "convdiff2d:70,300"};
    static const int teams[] = {1, 2, 5};
    const spmv_preconditioner_options options = general(0);
    for (int s = 0; s < (SLOW ? 1 : 3); s++) {
        spmv_context *const ref = support_context_on(SPMV_BACKEND_REF, 1);
        spmv_csr a;
        spmv_matrix *const matrix = generate(ref, specs[s], SPMV_F64, &a);
        spmv_preconditioner *const expected = make(ref, &a, &options);
        const uint64_t hash = hash_of(ref, expected);
        uint64_t first = 0;
        for (int t = 0; t < (support_backend == SPMV_BACKEND_OMP ? 3 : 1); t++) {
            spmv_context *const ctx = support_context_on(support_backend, teams[t]);
            spmv_preconditioner *const m = make(ctx, &a, &options);
            if (hash_of(ctx, m) != hash)
                fail_msg("%s, %d threads: another hierarchy than on ref", specs[s], teams[t]);
            const uint64_t applied = hash_of_application(ctx, m);
            assert_true(t == 0 || applied == first);
            first = applied;
            spmv_preconditioner_destroy(m);
            spmv_context_destroy(ctx);
        }
        spmv_preconditioner_destroy(expected);
        spmv_matrix_destroy(matrix);
        spmv_context_destroy(ref);
    }
}

/* A hierarchy that takes new values has the same bits, and gets them back with the old values. */
static void new_values(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a, other;
    spmv_matrix *const matrix = generate(ctx, SLOW ? "convdiff2d:24,2" : "convdiff2d:50,2", SPMV_F64, &a),
                       *const near = generate(ctx, SLOW ? "convdiff2d:24,3" : "convdiff2d:50,3", SPMV_F64, &other);
    const spmv_preconditioner_options renewed = general(1), once = general(0);
    spmv_preconditioner *const m = make(ctx, &a, &renewed), *const plain = make(ctx, &a, &once);
    const uint64_t hash = hash_of(ctx, m);
    assert_true(hash_of(ctx, plain) == hash);
    void *const values = support_upload(ctx, a.val, a.nnz * 8), *const changed =
                                                                    support_upload(ctx, other.val, a.nnz * 8);
    assert_ok(ctx, spmv_preconditioner_update_values(m, changed));
    assert_true(hash_of(ctx, m) != hash);
    assert_ok(ctx, spmv_preconditioner_update_values(m, values));
    assert_true(hash_of(ctx, m) == hash);
    spmv_matrix *const laplacian = generate(ctx, SLOW ? "convdiff2d:24,0" : "convdiff2d:50,0", SPMV_F64, &other);
    spmv_preconditioner *const first = make(ctx, &other, &renewed);
    assert_false(inside(first)->general);
    assert_ok(ctx, spmv_preconditioner_update_values(first, values));
    assert_true(hash_of(ctx, first) == hash);
    spmv_preconditioner_destroy(first);
    spmv_matrix_destroy(laplacian);
    support_free_in(ctx, values, changed);
    spmv_preconditioner_destroy(m);
    spmv_preconditioner_destroy(plain);
    spmv_matrix_destroy(matrix);
    spmv_matrix_destroy(near);
}

/* A symmetric matrix has the hierarchy that it has without the option general. */
static void symmetric_matrices(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    spmv_matrix *const matrix = generate(ctx, "poisson2d:30", SPMV_F64, &a);
    double *const values = (double *)a.val;
    const spmv_preconditioner_options options = general(0);
    spmv_preconditioner *m = make(ctx, &a, &options);
    assert_false(inside(m)->general || inside(m)->classical);
    spmv_preconditioner_destroy(m);
    values[1] *= 1 + 1e-9; /* a rounding error */
    m = make(ctx, &a, &options);
    assert_false(inside(m)->general);
    spmv_preconditioner_destroy(m);
    values[1] *= 1.01;
    m = make(ctx, &a, &options);
    assert_true(inside(m)->general);
    spmv_preconditioner_destroy(m);
    m = make(ctx, &a, NULL);
    assert_false(inside(m)->general);
    spmv_preconditioner_destroy(m);
    spmv_matrix_destroy(matrix);
}

static void types(void **state)
{
    spmv_context *ctx = *state;
    const char *const spec = SLOW ? "convdiff2d:24,4" : "convdiff2d:60,4";
    spmv_csr a;
    spmv_matrix *matrix = generate(ctx, spec, SPMV_F32, &a);
    assert_true(iterations_of(ctx, &a, "gmres", 1e-5) <= 8);
    assert_true(iterations_of(ctx, &a, "bicgstab", 1e-5) <= 8);
    spmv_matrix_destroy(matrix);
    matrix = generate(ctx, spec, SPMV_F64, &a);
    double *const values = support_zeros(2 * a.nnz, 8); /* (1 + i/4) A */
    for (int64_t k = 0; k < a.nnz; k++) {
        values[2 * k] = ((const double *)a.val)[k];
        values[2 * k + 1] = 0.25 * values[2 * k];
    }
    spmv_csr b = a;
    b.type = SPMV_C128;
    b.val = values;
    spmv_solver_options o;
    spmv_solver_result result;
    spmv_solver_options_init(&o, sizeof o);
    o.solver = "gmres";
    o.precond = "amg";
    o.rtol = 1e-8;
    double *const ones = support_zeros(2 * a.rows, 8);
    for (int64_t i = 0; i < 2 * a.rows; i++)
        ones[i] = 1;
    void *const right = support_upload(ctx, ones, a.rows * 16), *const x = support_upload(ctx, ones, a.rows * 16);
    assert_ok(ctx, spmv_solve(ctx, &b, right, x, &o, &result, sizeof result));
    assert_true(result.iterations <= 30);
    support_free_in(ctx, right, x);
    support_free(ones, values);
    spmv_matrix_destroy(matrix);
}

/* Row sums of 0: the matrix is singular, and the last level leaves out an unknown. */
static void singular(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    spmv_matrix *const matrix = generate(ctx, SLOW ? "convdiff2d:24,1" : "convdiff2d:60,1", SPMV_F64, &a);
    const int64_t *const ptr = a.row_ptr;
    double *const values = (double *)a.val;
    for (int64_t i = 0; i < a.rows; i++) {
        double beside = 0;
        for (int64_t k = ptr[i]; k < ptr[i + 1]; k++)
            beside += a.col[k] != i ? values[k] : 0;
        for (int64_t k = ptr[i]; k < ptr[i + 1]; k++)
            values[k] = a.col[k] == i ? -beside : values[k];
    }
    const spmv_preconditioner_options options = general(0);
    spmv_preconditioner *const m = make(ctx, &a, &options);
    assert_true(inside(m)->general && inside(m)->left_out <= 1);
    spmv_preconditioner_destroy(m);
    assert_true(iterations_of(ctx, &a, "gmres", 1e-8) <= 18);
    spmv_matrix_destroy(matrix);
}

/* M of -A is that of A, times -1, in each type. */
static void negative_diagonal(void **state)
{
    spmv_context *ctx = *state;
    const spmv_preconditioner_options options = general(0);
    static const spmv_type kinds[] = {SPMV_F64, SPMV_F32};
    for (int t = 0; t < 2; t++) {
        spmv_csr a;
        spmv_matrix *const matrix = generate(ctx, "convdiff2d:24,3", kinds[t], &a);
        double *const r = support_zeros(a.rows, 8), *const z = support_zeros(a.rows, 8),
                      *const other = support_zeros(a.rows, 8);
        for (int64_t i = 0; i < a.rows; i++)
            r[i] = (double)(i % 13) - 5;
        spmv_preconditioner *m = make(ctx, &a, &options);
        apply(ctx, m, r, z);
        spmv_preconditioner_destroy(m);
        for (int64_t k = 0; k < a.nnz; k++)
            real_set(a.type, (void *)a.val, k, -real_at(a.type, a.val, k));
        m = make(ctx, &a, &options);
        assert_true(inside(m)->negative && inside(m)->general);
        apply(ctx, m, r, other);
        for (int64_t i = 0; i < a.rows; i++)
            assert_true(other[i] == -z[i]);
        spmv_preconditioner_destroy(m);
        support_free(r, z, other);
        spmv_matrix_destroy(matrix);
    }
}

/* Rows without negative entries have no coarse rows, and Jacobi with a tiny diagonal magnifies. Nothing overflows. */
static void tiny_diagonal(void **state)
{
    spmv_context *ctx = *state;
    const spmv_preconditioner_options options = general(0);
    spmv_csr a;
    spmv_matrix *const matrix = generate(ctx, "convdiff2d:24,3", SPMV_F64, &a);
    double *const values = (double *)a.val, *const r = support_zeros(a.rows, 8), *const z = support_zeros(a.rows, 8);
    for (int64_t k = 0; k < a.nnz; k++)
        values[k] = values[k] > 0 ? 1e-6 : -values[k];
    for (int64_t i = 0; i < a.rows; i++)
        r[i] = 1;
    spmv_preconditioner *const m = make(ctx, &a, &options);
    assert_true(inside(m)->levels == 1 && inside(m)->plan_coarsest == NULL);
    apply(ctx, m, r, z);
    for (int64_t i = 0; i < a.rows; i++)
        assert_true(isfinite(z[i]));
    spmv_preconditioner_destroy(m);
    support_free(r, z);
    spmv_matrix_destroy(matrix);
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    spmv_matrix *const matrix = generate(ctx, "convdiff2d:24,1", SPMV_F64, &a);
    const spmv_preconditioner_options options = general(0);
    spmv_preconditioner *m = NULL;
    int64_t middle = ((const int64_t *)a.row_ptr)[100];
    while (a.col[middle] != 100)
        middle++;
    double *const own = (double *)a.val + middle, kept = *own;
    static const double wrong[] = {0, -4, NAN};
    for (int k = 0; k < 3; k++) {
        *own = wrong[k];
        assert_fails(ctx, spmv_preconditioner_create(ctx, "amg", &a, &options, &m),
                     k < 2 ? SPMV_ERROR_NOT_POSITIVE : SPMV_ERROR_NOT_FINITE, "row 100 (counted from 0)");
        assert_null(strstr(spmv_last_error(ctx), k < 2 ? "definite" : "ilut"));
    }
    *own = kept;
    spmv_matrix_destroy(matrix);
}

SUPPORT_MAIN(with_context(few_iterations), with_context(hierarchy_is_sound), cmocka_unit_test(same_bits),
             with_context(new_values), with_context(symmetric_matrices), with_context(types), with_context(singular),
             with_context(negative_diagonal), with_context(tiny_diagonal), with_context(refusals))
