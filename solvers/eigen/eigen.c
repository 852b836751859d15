/* Eigenvalues and singular values: checks, the choice of the solver, residuals and bounds.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/choice.h"
#include "core/clock.h"
#include "product/plan_internal.h"
#include "solvers/eigen/eigen_internal.h"
#include "solvers/krylov/krylov.h"

static const struct eigen_solver *const solvers[] = {&eigen_lobpcg, &eigen_lanczos, &eigen_dense};
enum { SOLVERS = sizeof solvers / sizeof *solvers };

/* DENSE_ROWS: up to so many, "auto" forms a dense matrix: some 50 ms; in place of lanczos up to DENSE_FOR_LANCZOS, under a
 * second, since it misses no copy of a value. DENSE_MOST: the largest one. */
enum { DENSE_ROWS = 300, DENSE_FOR_LANCZOS = 700, DENSE_MOST = 3000, MOST_ITERATIONS = 1000 };

const char *spmv_eigen_name(int index)
{
    return index >= 0 && index < SOLVERS ? solvers[index]->name : NULL;
}

void spmv_eigen_options_init(spmv_eigen_options *options, size_t size)
{
    const spmv_eigen_options defaults = {.size = sizeof defaults, .symmetry_check = SPMV_SYMMETRY_SAMPLED};
    result_write(options, size, &defaults, sizeof defaults);
}

/* ------------------------------------------------------------- checks */

static spmv_status check_options(spmv_context *ctx, const char *call, const spmv_csr *a, const spmv_eigen_options *o)
{
    spmv_status st = plan_check_view(ctx, call, a, false);
    if (st == SPMV_OK)
        st = OPTIONS_CHECK(ctx, call, {"pairs", o->pairs, 0, SPMV_EIGEN_MOST_PAIRS},
                           {"which", o->which, SPMV_EIGEN_SMALLEST, SPMV_EIGEN_NEAR},
                           {"shift", o->shift, -INFINITY, INFINITY}, {"rtol", o->rtol, 0, 1},
                           {"max_iterations", (double)o->max_iterations, 0, INFINITY},
                           {"block", o->block, 0, EIGEN_MOST_COLUMNS / 6}, {"starts", o->starts, 0, INFINITY},
                           {"symmetry_check", o->symmetry_check, SPMV_SYMMETRY_TRUST, SPMV_SYMMETRY_SAMPLED});
    if (st != SPMV_OK)
        return st;
    if (!isfinite(o->shift))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: option shift is not finite", call);
    if (o->starts > 0 && o->start == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: option starts is %d, and start is NULL", call, o->starts);
    if (o->type != SPMV_TYPE_DEFAULT && !type_is_floating(o->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no solvers in this type (%d, %s), only in f64, f32, c128, c64",
                            call, (int)o->type, spmv_type_name(o->type));
    return st;
}

/* The default number of pairs. */
static void settle_pairs(spmv_eigen_options *o, int64_t most)
{
    enum { USUAL_PAIRS = 6 };
    if (o->pairs == 0)
        o->pairs = (int)min_i64(USUAL_PAIRS, most);
}

static spmv_status check_matrices(spmv_context *ctx, const char *call, const spmv_csr *a, const spmv_eigen_options *o)
{
    spmv_status st = SPMV_OK;
    if (a->rows != a->cols)
        return context_fail(
            ctx, SPMV_ERROR_NOT_SQUARE,
            "%s: the matrix is %lld x %lld, and eigenvalues need a square one: for singular values take "
            "spmv_svds",
            call, (long long)a->rows, (long long)a->cols);
    if (o->pairs > a->rows)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %d pairs of a matrix with %lld rows", call, o->pairs,
                            (long long)a->rows);
    if (o->mass == NULL)
        return st;
    st = plan_check_view(ctx, call, o->mass, false);
    if (st == SPMV_OK && (o->mass->rows != a->rows || o->mass->cols != a->cols))
        st = context_fail(ctx, SPMV_ERROR_SIZE, "%s: the mass matrix is %lld x %lld, the matrix %lld x %lld", call,
                          (long long)o->mass->rows, (long long)o->mass->cols, (long long)a->rows, (long long)a->cols);
    return st;
}

/* Whether a matrix is symmetric (Hermitian). */
static spmv_status check_symmetry(struct eigen_problem *p, const struct eigen_matrix *m, bool is_mass)
{
    spmv_status st = SPMV_OK;
    spmv_plan *plan = NULL;
    spmv_plan_options o;
    spmv_plan_info info;
    char call[96];
    snprintf(call, sizeof call, "%s%s", p->call, is_mass ? ": mass" : "");
    if (p->options.symmetry_check == SPMV_SYMMETRY_TRUST)
        return st;
    spmv_plan_options_init(&o, sizeof o);
    o.type = p->type;
    TRY(spmv_plan_create(p->ctx, &m->a, &o, &plan));
    TRY(spmv_plan_describe(plan, &info, sizeof info));
    TRY(krylov_check_symmetry(&(struct krylov){.call = call, .ctx = p->ctx, .plan = plan, .info = info}, false));
done:
    spmv_plan_destroy(plan);
    return st;
}

/* The reciprocals of the diagonal of M, which must be positive: *host, and p->weight in the type. */
static spmv_status take_diagonal(struct eigen_problem *p, const spmv_csr *mass, double **host)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0};
    spmv_csr m;
    void *narrow = NULL;
    const bool complex = mass->val != NULL && type_is_complex(mass->type);
    const spmv_type part = type_part(p->type);
    TRY(csr_to_host(p->ctx, mass, false, &m, &copies));
    TRY(host_alloc(p->ctx, max_i64(1, p->n) * 8, "a diagonal", (void **)host));
    for (int64_t i = 0; i < p->n; i++) {
        double sum = 0;
        for (int64_t k = row_first(&m, i); k < row_first(&m, i + 1); k++)
            if (m.col[k] == i)
                sum += m.val == NULL ? 1 : real_at(type_part(m.type), m.val, complex ? 2 * k : k);
        if (!(sum > 0 && isfinite(sum))) {
            st = context_fail(p->ctx, SPMV_ERROR_NOT_POSITIVE,
                              "%s: the mass matrix is not positive definite: the diagonal entry of row %lld%s is %.3g",
                              p->call, context_number(p->ctx, i), context_counted(p->ctx), sum);
            goto done;
        }
        (*host)[i] = 1 / sum;
    }
    TRY(host_alloc(p->ctx, max_i64(1, p->n * real_bytes(part)), "a diagonal", &narrow));
    for (int64_t i = 0; i < p->n; i++)
        real_set(part, narrow, i, (*host)[i]);
    TRY(context_alloc(p->ctx, p->n * real_bytes(part), &p->weight));
    TRY(spmv_upload(p->ctx, narrow, p->weight, p->n * real_bytes(part)));
    TRY(spmv_synchronize(p->ctx));
done:
    csr_free_host(&copies);
    host_free(narrow);
    return st;
}

/* ------------------------------------------------------------- the choice of the solver */

static int block_for(const struct eigen_problem *p)
{
    const int guards = p->pairs / 4 > 4 ? p->pairs / 4 : 4;
    return p->options.block > p->pairs ? p->options.block : (p->pairs + guards + 3) / 4 * 4;
}

static spmv_status name_solver(struct eigen_problem *p)
{
    struct names names = {.count = 0};
    const void *row = NULL;
    names_add_row(&names, "auto", NULL);
    for (int i = 0; i < SOLVERS; i++)
        names_add_row(&names, solvers[i]->name, solvers[i]);
    const spmv_status st = choice_take(p->ctx, SPMV_ERROR_METHOD, p->call, "solver", &names, p->options.solver, &row);
    p->solver = row;
    return st;
}

/* Whether the basis of lanczos has fewer vectors than the space. */
static bool eigen_fits_lanczos(const struct eigen_problem *p)
{
    const int width = eigen_lanczos_width(p);
    return eigen_lanczos_columns(p->pairs, width) + 4 * width <= p->n;
}

static spmv_status choose(struct eigen_problem *p)
{
    const bool named = p->solver != NULL, smallest = p->options.which == SPMV_EIGEN_SMALLEST;
    const int64_t needs = 3 * (int64_t)block_for(p);
    const char *why = named ? CHOICE_NAMED : "";
    if (!named) {
        const bool fits = smallest ? needs <= p->n : eigen_fits_lanczos(p);
        const bool small = p->n <= (smallest ? DENSE_ROWS : DENSE_FOR_LANCZOS);
        const bool dense = small || (!fits && p->n <= DENSE_MOST);
        p->solver = dense ? &eigen_dense : smallest ? &eigen_lobpcg : &eigen_lanczos;
        why = small                ? "the matrix is small"
              : dense              ? "many pairs of a small matrix"
              : smallest           ? "the smallest eigenvalues, with a preconditioner"
              : p->singular_values ? "the largest singular values"
                                   : "eigenvalues at an end of the spectrum";
    }
    snprintf(p->why_solver, sizeof p->why_solver, "%s", why);
    if (p->solver == &eigen_dense && p->n > DENSE_MOST)
        return context_fail(p->ctx, SPMV_ERROR_UNSUPPORTED, "%s: solver dense: %lld rows; it takes up to %d: take auto",
                            p->call, (long long)p->n, DENSE_MOST);
    if (p->solver == &eigen_lobpcg && !smallest)
        return context_fail(p->ctx, SPMV_ERROR_UNSUPPORTED,
                            "%s: solver lobpcg finds the smallest eigenvalues: for others take lanczos", p->call);
    if (p->solver == &eigen_lobpcg && needs > p->n)
        return context_fail(
            p->ctx, SPMV_ERROR_UNSUPPORTED,
            "%s: solver lobpcg: %d pairs need a basis of %lld vectors, more than the %lld rows: take dense", p->call,
            p->pairs, (long long)needs, (long long)p->n);
    if (p->solver == &eigen_lanczos && !eigen_fits_lanczos(p))
        return context_fail(
            p->ctx, SPMV_ERROR_UNSUPPORTED,
            "%s: solver lanczos: %d pairs need a basis of %d vectors, more than the %lld rows: take dense", p->call,
            p->pairs, eigen_lanczos_columns(p->pairs, eigen_lanczos_width(p)) + 4 * eigen_lanczos_width(p),
            (long long)p->n);
    p->block = block_for(p);
    return SPMV_OK;
}

/* Adds by times a row of a matrix in host memory to sums. */
static void add_row(const spmv_csr *a, int64_t i, double by, int parts, double *sums, bool *has, int32_t *columns,
                    int64_t *count)
{
    const bool complex = a->val != NULL && type_is_complex(a->type);
    for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
        const int32_t c = a->col[k];
        if (!has[c]) {
            has[c] = true;
            columns[(*count)++] = c;
            for (int part = 0; part < parts; part++)
                sums[(int64_t)c * parts + part] = 0;
        }
        sums[(int64_t)c * parts] +=
            by * (a->val == NULL ? 1 : real_at(type_part(a->type), a->val, complex ? 2 * k : k));
        if (complex)
            sums[(int64_t)c * parts + 1] += by * real_at(type_part(a->type), a->val, 2 * k + 1);
    }
}

static int by_column(const void *a, const void *b)
{
    return *(const int32_t *)a < *(const int32_t *)b ? -1 : *(const int32_t *)a > *(const int32_t *)b;
}

/* A - shift M, in host memory, of the type of the vectors. */
static spmv_status make_shifted(struct eigen_problem *p, const spmv_csr *a, const spmv_csr *mass, spmv_csr *to)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows, most = a->nnz + (mass != NULL ? mass->nnz : n);
    const spmv_type part = type_part(p->type);
    int64_t *row_ptr = NULL, count = 0;
    int32_t *col = NULL;
    void *val = NULL;
    double *sums = NULL;
    bool *has = NULL;
    TRY(host_alloc(p->ctx, (n + 1) * 8, "A - shift M", (void **)&row_ptr));
    TRY(host_alloc(p->ctx, max_i64(1, most) * 4, "A - shift M", (void **)&col));
    TRY(host_alloc(p->ctx, max_i64(1, most) * (int64_t)spmv_type_size(p->type), "A - shift M", &val));
    TRY(host_alloc(p->ctx, max_i64(1, n) * p->parts * 8, "A - shift M", (void **)&sums));
    TRY(host_zeros(p->ctx, max_i64(1, n), "A - shift M", (void **)&has));
    row_ptr[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = count;
        const int64_t one_ptr[2] = {0, 1};
        const int32_t own = (int32_t)i;
        const spmv_csr one = csr_of(1, n, 1, one_ptr, &own, NULL, SPMV_F64, SPMV_MEMORY_HOST);
        add_row(a, i, 1, p->parts, sums, has, col, &count);
        if (mass != NULL)
            add_row(mass, i, -p->shift, p->parts, sums, has, col, &count);
        else
            add_row(&one, 0, -p->shift, p->parts, sums, has, col, &count);
        qsort(col + first, (size_t)(count - first), sizeof *col, by_column);
        for (int64_t k = first; k < count; k++) {
            has[col[k]] = false;
            for (int c = 0; c < p->parts; c++)
                real_set(part, val, k * p->parts + c, sums[(int64_t)col[k] * p->parts + c]);
        }
        row_ptr[i + 1] = count;
    }
    *to = csr_of(n, n, count, row_ptr, col, val, p->type, SPMV_MEMORY_HOST);
done:
    host_free_all(sums, has);
    if (st != SPMV_OK)
        host_free_all(row_ptr, col, val);
    return st;
}

spmv_status eigen_make_inverse(struct eigen_problem *p)
{
    spmv_status st = SPMV_OK;
    struct csr_copies copies = {0}, mass_copies = {0};
    spmv_csr a, mass, shifted = {.rows = 0};
    spmv_solver_options o;
    const bool near = p->options.which == SPMV_EIGEN_NEAR;
    spmv_solver_destroy(p->inverse);
    p->inverse = NULL;
    spmv_solver_options_init(&o, sizeof o);
    o.type = p->type;
    o.zero_start = 1;
    o.rtol = fmax(0.1 * p->rtol, 64 * p->unit);
    if (near) {
        TRY(csr_to_host(p->ctx, &p->a.a, false, &a, &copies));
        if (p->has_mass)
            TRY(csr_to_host(p->ctx, &p->mass.a, false, &mass, &mass_copies));
        TRY(make_shifted(p, &a, p->has_mass ? &mass : NULL, &shifted));
        st = spmv_solver_create(p->ctx, &shifted, &o, &p->inverse);
    } else {
        o.rtol = fmax(1e-3 * p->rtol, 16 * p->unit);
        o.solver = "cg";
        o.precond = "jacobi";
        st = spmv_solver_create(p->ctx, &p->mass.a, &o, &p->inverse);
    }
done:
    host_free_all((void *)shifted.row_ptr, (void *)shifted.col, (void *)shifted.val);
    csr_free_host(&copies);
    csr_free_host(&mass_copies);
    return st;
}

static spmv_status take_lanczos(struct eigen_problem *p)
{
    p->ctx->error[0] = '\0';
    p->solver = &eigen_lanczos;
    p->precond = NULL;
    snprintf(p->why_solver, sizeof p->why_solver, "the matrix is not positive definite");
    snprintf(p->why_precond, sizeof p->why_precond, "%s", "");
    return p->has_mass ? eigen_make_inverse(p) : SPMV_OK;
}

/* The preconditioner of lobpcg, the solver of lanczos. Under "auto", lanczos stands in where lobpcg has no preconditioner,
 * because a diagonal entry is not positive. */
static spmv_status prepare(struct eigen_problem *p)
{
    if (p->solver == &eigen_lobpcg) {
        const spmv_status st = eigen_make_precond(p);
        p->may_hand_over = choice_is_auto(p->options.solver) && choice_is_auto(p->options.precond) &&
                           p->options.own_precond == NULL && eigen_fits_lanczos(p);
        return st != SPMV_ERROR_NOT_POSITIVE || !p->may_hand_over ? st : take_lanczos(p);
    }
    if (p->solver == &eigen_lanczos && (p->has_mass || p->options.which == SPMV_EIGEN_NEAR))
        return eigen_make_inverse(p);
    return SPMV_OK;
}

/* ------------------------------------------------------------- residuals and bounds */

/* Solves with M. */
struct by_mass {
    spmv_solver *solver;
    void *b, *x; /* in the context's memory; a complex vector as pairs */
    double rtol;
};

static spmv_status open_by_mass(struct eigen_problem *p, struct by_mass *m)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = p->n * p->parts * real_bytes(type_part(p->type));
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.solver = "cg";
    o.precond = "jacobi";
    o.type = p->type;
    o.rtol = m->rtol = type_part(p->type) == SPMV_F32 ? 1e-3 : 1e-6;
    o.zero_start = 1;
    o.symmetry_check = SPMV_SYMMETRY_TRUST;
    TRY(spmv_solver_create(p->ctx, &p->mass.a, &o, &m->solver));
    TRY(context_alloc(p->ctx, bytes, &m->b));
    TRY(context_alloc(p->ctx, bytes, &m->x));
done:
    return st;
}

static void close_by_mass(struct eigen_problem *p, struct by_mass *m)
{
    spmv_solver_destroy(m->solver);
    context_free_all(p->ctx, m->b, m->x);
}

/* x = M^-1 b */
static spmv_status solve_by_mass(struct eigen_problem *p, const struct by_mass *m)
{
    const spmv_status st = spmv_solver_solve(m->solver, m->b, m->x, NULL, 0);
    return st != SPMV_ERROR_NOT_POSITIVE
               ? st
               : context_fail(p->ctx, st,
                              "%s: the mass matrix is not positive definite: conjugate gradients with it found x'M x "
                              "<= 0",
                              p->call);
}

/* p->mass_growth, by a few steps of the power method with M^-1 D from a random vector, D the diagonal of M:
 * v = M^-1 D v, with norms sqrt(v'D v). They give a lower bound, which the constant in `rounding` covers. */
static spmv_status find_mass_growth(struct eigen_problem *p, const struct by_mass *m)
{
    enum { STEPS = 5 };
    spmv_status st = SPMV_OK;
    const spmv_type part = type_part(p->type);
    const int64_t count = p->n * p->parts, size = real_bytes(part);
    char *v = NULL, *weight = NULL;
    double before = 0;
    TRY(host_alloc(p->ctx, max_i64(1, count) * size, "a vector", (void **)&v));
    TRY(host_alloc(p->ctx, max_i64(1, p->n) * size, "a vector", (void **)&weight));
    TRY(spmv_download(p->ctx, p->weight, weight, p->n * size));
    for (int64_t k = 0; k < count; k++)
        real_set(part, v, k, eigen_random(9, k) * sqrt(real_at(part, weight, k / p->parts)));
    for (int step = 0; step <= STEPS; step++) {
        double square = 0;
        for (int64_t k = 0; k < count; k++)
            square += real_at(part, v, k) * real_at(part, v, k) / real_at(part, weight, k / p->parts);
        const double norm = sqrt(square);
        if (step > 0)
            p->mass_growth = fmax(p->mass_growth, norm / before);
        if (step == STEPS || !(norm > 0 && isfinite(norm)))
            break;
        before = 1;
        for (int64_t k = 0; k < count; k++)
            real_set(part, v, k, real_at(part, v, k) / norm / real_at(part, weight, k / p->parts));
        TRY(spmv_upload(p->ctx, v, m->b, count * size));
        TRY(solve_by_mass(p, m));
        TRY(spmv_download(p->ctx, m->x, v, count * size));
    }
done:
    host_free_all(v, weight);
    if (spmv_status_class(st) != 7)
        return st;
    p->ctx->error[0] = '\0';
    p->mass_growth = 1 / p->unit; /* so ill-conditioned that no digit is known */
    return SPMV_OK;
}

/* ||r||^2 in the norm of M^-1, by a solve with M for each residual. */
static spmv_status squares_by_mass(struct eigen_problem *p, const struct eigen_vectors *v,
                                   const struct block_residuals *r)
{
    spmv_status st = SPMV_OK;
    const int64_t count = p->n * p->parts;
    struct by_mass m = {.solver = NULL};
    void *cell = NULL;
    union real sum;
    TRY(open_by_mass(p, &m));
    TRY(context_alloc(p->ctx, (int64_t)sizeof sum, &cell));
    if (p->mass_growth == 0)
        TRY(find_mass_growth(p, &m));
    for (int j = 0; j < p->pairs; j++) {
        struct block_residuals one = *r;
        const double norm = p->residuals[j];
        if (!(norm > 0))
            continue;
        one.which = &j;
        one.count = 1;
        /* divided by its norm, so that no square leaves the range; a complex vector as pairs */
        const double size = precond_power_of_two(norm);
        TRY(block_send(v, &one, &size, type_part(p->type), m.b, 1));
        TRY(solve_by_mass(p, &m));
        TRY(spmv_dot(p->ctx, type_part(p->type), m.b, m.x, cell, count));
        TRY(spmv_download(p->ctx, cell, &sum, (int64_t)sizeof sum));
        /* b'x of conjugate gradients is too small by the square of its residual in the norm of M^-1 */
        const double lost = m.rtol * m.rtol * p->mass_growth * p->mass.norm;
        p->residuals[j] = size * sqrt(fmax(0, real_at(type_part(p->type), &sum, 0)) * (1 + lost));
    }
done:
    close_by_mass(p, &m);
    context_free(p->ctx, cell);
    return st;
}

spmv_status eigen_true_residuals(struct eigen_problem *p, const struct eigen_vectors *v, struct eigen_block ax,
                                 struct eigen_block mx)
{
    spmv_status st = SPMV_OK;
    const struct block_residuals r = {
        .a = block_part(ax, p->type, 0, p->pairs), .b = block_part(mx, p->type, 0, p->pairs), .values = p->values};
    TRY(block_squares(v, &r, p->residuals));
    for (int j = 0; j < p->pairs; j++)
        p->residuals[j] = sqrt(p->residuals[j]);
    if (p->has_mass)
        TRY(squares_by_mass(p, v, &r));
done:
    return st;
}

/* p->sizes, with a mass matrix. */
static spmv_status find_sizes(struct eigen_problem *p, const struct eigen_vectors *v)
{
    spmv_status st = SPMV_OK;
    const spmv_type part = type_part(p->type);
    const int64_t bytes = p->n * real_bytes(part);
    struct block_residuals r = {.a = p->vectors};
    void *host = NULL, *diagonal = NULL;
    TRY(host_alloc(p->ctx, max_i64(1, bytes), "a diagonal", &host));
    TRY(context_alloc(p->ctx, bytes, &diagonal));
    TRY(spmv_download(p->ctx, p->weight, host, bytes));
    for (int64_t i = 0; i < p->n; i++)
        real_set(part, host, i, 1 / real_at(part, host, i));
    TRY(spmv_upload(p->ctx, host, diagonal, bytes));
    r.weight = diagonal;
    TRY(block_squares(v, &r, p->sizes));
    for (int j = 0; j < p->pairs; j++)
        p->sizes[j] = sqrt(p->sizes[j]);
done:
    context_free(p->ctx, diagonal);
    host_free(host);
    return st;
}

/* p->shifts, with a mass matrix: the quotients of Rayleigh less the values. */
static spmv_status find_shifts(struct eigen_problem *p, const struct eigen_vectors *v, struct eigen_block ax,
                               struct eigen_block mx)
{
    spmv_status st = SPMV_OK;
    const int64_t k = p->pairs, size = k * k * p->parts;
    double *sums = NULL;
    TRY(host_alloc(p->ctx, 2 * size * 8, "sums", (void **)&sums));
    TRY(block_gram(v, p->vectors, ax, &mx, sums, sums + size));
    for (int64_t j = 0; j < k; j++) {
        const int64_t at = (j * k + j) * p->parts;
        p->shifts[j] = sums[at] / sums[size + at] - p->values[j];
    }
done:
    host_free(sums);
    return st;
}

/* Residuals of the vectors found. */
static spmv_status finish(struct eigen_problem *p)
{
    spmv_status st = SPMV_OK;
    struct eigen_vectors v = {.ctx = NULL};
    struct eigen_block ax = p->vectors, mx = p->vectors;
    const int64_t bytes = p->n * p->pairs * (int64_t)spmv_type_size(p->type);
    ax.at = NULL;
    if (p->has_mass)
        mx.at = NULL;
    const int64_t sums = p->has_mass ? 2 * (int64_t)p->pairs * p->pairs : p->pairs;
    TRY(eigen_vectors_open(p->ctx, p->type, p->n, p->pairs, sums, &v));
    TRY(context_alloc(p->ctx, bytes, &ax.at));
    if (p->has_mass) {
        TRY(context_alloc(p->ctx, bytes, &mx.at));
        TRY(eigen_multiply(p, &p->mass, p->vectors, mx));
    }
    TRY(eigen_multiply(p, &p->a, p->vectors, ax));
    TRY(eigen_true_residuals(p, &v, ax, mx));
    if (p->has_mass) {
        TRY(find_sizes(p, &v));
        TRY(find_shifts(p, &v, ax, mx));
    }
done:
    context_free(p->ctx, ax.at);
    if (p->has_mass)
        context_free(p->ctx, mx.at);
    eigen_vectors_close(&v);
    return st;
}

/* Rounding of the residual of pair j, and of its value (with_vector: x'r). Residuals r = A x - value M x have rounding errors
 * e of u |A| |x| + u |value| |M| |x|. With D the diagonal of M, the norm of D^-1/2 e is at most that of D^-1/2 |A| D^-1/2
 * (and M) times that of D^1/2 x, p->sizes[j]. That of M^-1/2 e is at most sqrt(p->mass_growth) times as large, and x'e at
 * most p->sizes[j] times. */
static double rounding_of(const struct eigen_problem *p, double value, double size, bool with_vector)
{
    const double sums = p->has_mass ? p->a.norm + p->mass.norm * fabs(value) : p->a.norm;
    const double grows = !p->has_mass ? 1 : with_vector ? size * size : size * sqrt(p->mass_growth);
    return 8 * sqrt((double)p->n) * p->unit * sums * grows;
}

static double rounding(const struct eigen_problem *p, int j)
{
    return rounding_of(p, p->values[j], p->sizes[j], false);
}

/* The bound of Kato and Temple for the values first to last together: the sum of their squared residuals over the distance
 * to the others. A value that is not known beyond the last one: infinite. */
static double bound_together(const struct eigen_problem *p, const int *order, int first, int last)
{
    double squares = 0, gap = INFINITY;
    const double low = p->values[order[first]], high = p->values[order[last]];
    for (int i = first; i <= last; i++) {
        const double residual = p->residuals[order[i]] + (p->has_mass ? rounding(p, order[i]) : 0);
        squares += residual * residual;
    }
    for (int i = first - 1; i <= last + 1; i += last + 2 - first)
        if (i >= 0 && i < p->pairs) {
            const double other = p->values[order[i]];
            gap = fmin(gap, (i < first ? low - other : other - high) - p->residuals[order[i]] - rounding(p, order[i]));
        }
    if (p->singular_values) /* -sigma and 0 are eigenvalues of (0 A; A' 0) */
        gap = fmin(gap, low);
    if (p->pairs < p->n) { /* the next value that is not wanted, on either side */
        if (isnan(p->next))
            return INFINITY;
        const double distance = p->next > high ? p->next - high : p->next < low ? low - p->next : 0;
        gap = fmin(gap, distance - p->next_residual - rounding_of(p, p->next, p->sizes[order[last]], false));
    }
    return gap > 0 ? squares / gap : INFINITY;
}

static double separated_bound(const struct eigen_problem *p, const int *order, int place)
{
    double best = INFINITY;
    for (int first = place; first >= 0 && first > place - 8; first--)
        for (int last = place; last < p->pairs && last < place + 8; last++)
            best = fmin(best, bound_together(p, order, first, last));
    return best;
}

static void give_results(const struct eigen_problem *p, spmv_eigen_result *results, size_t size, double seconds)
{
    spmv_eigen_result full = {.iterations = p->iterations,
                              .products = p->products,
                              .block = p->block,
                              .solver = p->solver->name,
                              .setup_seconds = p->setup_seconds,
                              .solve_seconds = seconds - p->setup_seconds};
    int order[SPMV_EIGEN_MOST_PAIRS]; /* by value */
    bool all = true;                  /* have converged: of others, values between them may be missing */
    for (int j = 0; j < p->pairs; j++)
        all = all && p->residuals[j] <= eigen_tolerance(p, p->values[j]);
    snprintf(full.precond, sizeof full.precond, "%s", p->precond != NULL ? precond_name(p->precond) : "");
    memcpy(full.why_solver, p->why_solver, sizeof full.why_solver);
    memcpy(full.why_precond, p->why_precond, sizeof full.why_precond);
    memcpy(full.why_stop, p->why_stop, sizeof full.why_stop);
    for (int j = 0; j < p->pairs; j++) {
        int i = j;
        for (; i > 0 && p->values[order[i - 1]] > p->values[j]; i--)
            order[i] = order[i - 1];
        order[i] = j;
    }
    for (int i = 0; i < p->pairs; i++) {
        const int j = order[i];
        full.value = p->values[j];
        full.residual = p->residuals[j];
        full.tolerance = eigen_tolerance(p, full.value);
        const double of_value = rounding_of(p, full.value, p->sizes[j], true) + fabs(p->shifts[j]);
        full.error_bound = full.residual + rounding(p, j);
        full.separated_bound = all ? fmin(full.error_bound, separated_bound(p, order, i) + of_value) : full.error_bound;
        full.status = full.residual <= full.tolerance ? SPMV_OK
                      : p->status != SPMV_OK          ? p->status
                                                      : SPMV_ERROR_STAGNATION;
        if (results != NULL)
            result_write((char *)results + (size_t)j * size, size, &full, sizeof full);
    }
}

static spmv_status give_failure(spmv_eigen_result *results, size_t size, int pairs, spmv_status st)
{
    const spmv_eigen_result full = {.status = st, .solver = ""};
    for (int j = 0; j < pairs && results != NULL; j++)
        result_write((char *)results + (size_t)j * size, size, &full, sizeof full);
    return st;
}

/* The status of the whole: the pairs' own first failure. */
static spmv_status judge(const struct eigen_problem *p)
{
    int failed = 0, first = -1;
    for (int j = 0; j < p->pairs; j++)
        if (!(p->residuals[j] <= eigen_tolerance(p, p->values[j]))) {
            failed++;
            first = first < 0 ? j : first;
        }
    if (p->status == SPMV_CANCELLED)
        return context_fail(p->ctx, SPMV_CANCELLED, "%s: %s", p->call, p->why_stop);
    if (failed == 0)
        return SPMV_OK;
    return context_fail(
        p->ctx, p->status != SPMV_OK ? p->status : SPMV_ERROR_STAGNATION,
        "%s: %d of %d pairs have not converged: the residual of pair %lld%s is %.3g, its tolerance %.3g: %s", p->call,
        failed, p->pairs, context_number(p->ctx, first), context_counted(p->ctx), p->residuals[first],
        eigen_tolerance(p, p->values[first]), p->why_stop);
}

/* ------------------------------------------------------------- the call */

static void release(struct eigen_problem *p)
{
    eigen_matrix_drop(p->ctx, &p->a);
    eigen_matrix_drop(p->ctx, &p->mass);
    eigen_matrix_drop(p->ctx, &p->adjoint);
    spmv_preconditioner_destroy(p->made);
    spmv_solver_destroy(p->inverse);
    context_free_all(p->ctx, p->weight, p->own_vectors);
    host_free_all(p->values, p->residuals, p->sizes, p->shifts);
}

/* Squares of the numbers of A must stay within the range of the type. */
static spmv_status check_range(const struct eigen_problem *p)
{
    const double most = type_part(p->type) == SPMV_F32 ? 1e15 : 1e100, norm = p->a.norm;
    if (norm == 0 || (norm <= most && norm >= 1 / most))
        return SPMV_OK;
    return context_fail(p->ctx, SPMV_ERROR_NOT_FINITE,
                        "%s: the largest row sum of the moduli of %s is %.3g: outside of %g to %g: scale the matrix",
                        p->call, p->has_mass ? "A, each row divided by the diagonal entry of M," : "A", norm, 1 / most,
                        most);
}

static spmv_status take(struct eigen_problem *p, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    const spmv_eigen_options *const o = &p->options;
    double *weight = NULL;
    if (o->mass != NULL) {
        p->has_mass = true;
        TRY(take_diagonal(p, o->mass, &weight));
        TRY(eigen_matrix_take(p, o->mass, SPMV_OPERATION_N, weight, &p->mass));
        TRY(check_symmetry(p, &p->mass, true));
    }
    TRY(eigen_matrix_take(p, a, SPMV_OPERATION_N, weight, &p->a));
    TRY(check_symmetry(p, &p->a, false));
    TRY(check_range(p));
done:
    host_free(weight);
    return st;
}

static spmv_status begin(struct eigen_problem *p, const spmv_csr *a, void *vectors)
{
    spmv_status st = SPMV_OK;
    spmv_eigen_options *const o = &p->options;
    p->type = o->type != SPMV_TYPE_DEFAULT ? o->type : a->val != NULL ? a->type : SPMV_F64;
    p->parts = type_parts(p->type);
    p->pairs = o->pairs;
    p->unit = real_limits_of(type_part(p->type)).roundoff;
    p->rtol = o->rtol > 0 ? o->rtol : type_part(p->type) == SPMV_F32 ? 1e-4 : 1e-8;
    p->next = NAN;
    p->shift = o->shift;
    if (o->max_iterations == 0)
        o->max_iterations = MOST_ITERATIONS;
    TRY(host_alloc(p->ctx, p->pairs * 8, "eigenvalues", (void **)&p->values));
    TRY(host_alloc(p->ctx, p->pairs * 8, "residuals", (void **)&p->residuals));
    TRY(host_alloc(p->ctx, p->pairs * 8, "norms", (void **)&p->sizes));
    TRY(host_zeros(p->ctx, p->pairs * 8, "quotients", (void **)&p->shifts));
    for (int j = 0; j < p->pairs; j++) {
        p->sizes[j] = 1;
        p->values[j] = 0;
        p->residuals[j] = -1;
    }
    p->vectors = (struct eigen_block){vectors, p->pairs, p->pairs};
    if (vectors == NULL)
        TRY(context_alloc(p->ctx, p->n * p->pairs * (int64_t)spmv_type_size(p->type), &p->own_vectors));
    if (vectors == NULL)
        p->vectors.at = p->own_vectors;
done:
    return st;
}

static spmv_status eigs(spmv_context *ctx, const spmv_csr *a, const spmv_eigen_options *options, double *values,
                        void *vectors, spmv_eigen_result *results, size_t size)
{
    const double began = monotonic_seconds();
    spmv_status st = SPMV_OK;
    struct eigen_problem p = {.ctx = ctx, .call = "spmv_eigs", .n = a->rows};
    spmv_eigen_options_init(&p.options, sizeof p.options);
    TRY(options_take(ctx, "eigen", &p.options, sizeof p.options, options));
    TRY(check_options(ctx, p.call, a, &p.options));
    settle_pairs(&p.options, a->rows);
    TRY(check_matrices(ctx, p.call, a, &p.options));
    TRY(begin(&p, a, vectors));
    TRY(name_solver(&p));
    TRY(choose(&p));
    TRY(take(&p, a));
    TRY(prepare(&p));
    TRY(spmv_synchronize(ctx));
    p.setup_seconds = monotonic_seconds() - began;
    TRY(p.solver->run(&p));
    if (p.hands_over) {
        TRY(take_lanczos(&p));
        TRY(p.solver->run(&p));
    }
    TRY(finish(&p));
    if (values != NULL)
        memcpy(values, p.values, (size_t)p.pairs * sizeof *values);
    give_results(&p, results, size, monotonic_seconds() - began);
    st = judge(&p);
    release(&p);
    return st;
done:
    release(&p);
    return give_failure(results, size, p.options.pairs, st);
}

spmv_status spmv_eigs(spmv_context *ctx, const spmv_csr *a, const spmv_eigen_options *options, double *values,
                      void *vectors, spmv_eigen_result *results, size_t size)
{
    bool outer = false;
    spmv_status st = context_need(ctx, "spmv_eigs", "the matrix", a);
    if (st == SPMV_OK)
        st = context_hold(ctx, &outer);
    if (st != SPMV_OK)
        return st;
    return context_release(ctx, outer, eigs(ctx, a, options, values, vectors, results, size));
}

/* ------------------------------------------------------------- singular values */

static spmv_status check_singular(spmv_context *ctx, const char *call, const spmv_csr *a, const spmv_eigen_options *o)
{
    const int64_t most = min_i64(a->rows, a->cols);
    if (o->which == SPMV_EIGEN_SMALLEST || o->which == SPMV_EIGEN_NEAR)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                            "%s: largest singular values only: for the smallest one take "
                            "spmv_estimate_singular_values, for small ones of a square A spmv_eigs of A'A",
                            call);
    if (o->pairs > most)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %d pairs of a matrix that is %lld x %lld", call, o->pairs,
                            (long long)a->rows, (long long)a->cols);
    if (o->mass != NULL)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "%s: singular values have no mass matrix", call);
    return SPMV_OK;
}

/* sigma_j = ||A v_j|| (wide: ||A'u_j||), the other vectors, and residuals. */
static spmv_status finish_singular(struct eigen_problem *p, struct eigen_block other)
{
    spmv_status st = SPMV_OK;
    const int k = p->pairs;
    const int64_t many = max_i64(p->a.a.rows, p->a.a.cols);
    struct eigen_vectors of_other = {.ctx = NULL}, of_own = {.ctx = NULL};
    struct eigen_block back = p->vectors;
    double *scale = NULL;
    back.at = NULL;
    TRY(eigen_vectors_open(p->ctx, p->type, many, k, k, &of_other));
    TRY(eigen_vectors_open(p->ctx, p->type, p->n, k, k, &of_own));
    TRY(context_alloc(p->ctx, p->n * k * (int64_t)spmv_type_size(p->type), &back.at));
    TRY(host_zeros(p->ctx, (int64_t)k * k * p->parts * 8, "scales", (void **)&scale));
    TRY(eigen_multiply(p, p->wide ? &p->adjoint : &p->a, p->vectors, other));
    const struct block_residuals lengths = {.a = other};
    TRY(block_squares(&of_other, &lengths, p->values));
    p->a.norm = sqrt(p->values[0]);
    for (int j = 0; j < k; j++) {
        const double length = sqrt(p->values[j]);
        const bool lost = length <= rounding(p, j); /* sigma is 0, and has no other vector */
        p->values[j] = lost ? 0 : length;
        scale[((int64_t)j * k + j) * p->parts] = lost ? 0 : 1 / length;
    }
    TRY(block_combine(&of_other, other, scale, other));
    TRY(eigen_multiply(p, p->wide ? &p->a : &p->adjoint, other, back));
    const struct block_residuals r = {.a = back, .b = p->vectors, .values = p->values};
    TRY(block_squares(&of_own, &r, p->residuals));
    for (int j = 0; j < k; j++)
        p->residuals[j] = sqrt(p->residuals[j]);
done:
    eigen_vectors_close(&of_other);
    eigen_vectors_close(&of_own);
    context_free(p->ctx, back.at);
    host_free(scale);
    return st;
}

static spmv_status svds(spmv_context *ctx, const spmv_csr *a, const spmv_eigen_options *options, double *values,
                        void *u, void *v, spmv_eigen_result *results, size_t size)
{
    const double began = monotonic_seconds();
    spmv_status st = SPMV_OK;
    struct eigen_problem p = {.ctx = ctx, .call = "spmv_svds", .n = min_i64(a->rows, a->cols), .singular_values = true};
    struct eigen_block other;
    void *owned = NULL;
    p.wide = a->rows < a->cols;
    spmv_eigen_options_init(&p.options, sizeof p.options);
    p.options.which = SPMV_EIGEN_LARGEST;
    TRY(options_take(ctx, "eigen", &p.options, sizeof p.options, options));
    TRY(check_options(ctx, p.call, a, &p.options));
    settle_pairs(&p.options, p.n);
    TRY(check_singular(ctx, p.call, a, &p.options));
    p.options.which = SPMV_EIGEN_LARGEST;
    TRY(begin(&p, a, p.wide ? u : v));
    TRY(name_solver(&p));
    TRY(choose(&p));
    TRY(eigen_matrix_take(&p, a, SPMV_OPERATION_N, NULL, &p.a));
    TRY(check_range(&p));
    p.adjoint.a = p.a.a;
    p.adjoint.operation = SPMV_OPERATION_H;
    other = (struct eigen_block){p.wide ? v : u, p.pairs, p.pairs};
    if (other.at == NULL) {
        TRY(context_alloc(ctx, max_i64(a->rows, a->cols) * p.pairs * (int64_t)spmv_type_size(p.type), &owned));
        other.at = owned;
    }
    TRY(spmv_synchronize(ctx));
    p.setup_seconds = monotonic_seconds() - began;
    TRY(p.solver->run(&p));
    TRY(finish_singular(&p, other));
    if (values != NULL)
        memcpy(values, p.values, (size_t)p.pairs * sizeof *values);
    give_results(&p, results, size, monotonic_seconds() - began);
    st = judge(&p);
    context_free(ctx, owned);
    release(&p);
    return st;
done:
    context_free(ctx, owned);
    release(&p);
    return give_failure(results, size, p.options.pairs, st);
}

spmv_status spmv_svds(spmv_context *ctx, const spmv_csr *a, const spmv_eigen_options *options, double *values, void *u,
                      void *v, spmv_eigen_result *results, size_t size)
{
    bool outer = false;
    spmv_status st = context_need(ctx, "spmv_svds", "the matrix", a);
    if (st == SPMV_OK)
        st = context_hold(ctx, &outer);
    if (st != SPMV_OK)
        return st;
    return context_release(ctx, outer, svds(ctx, a, options, values, u, v, results, size));
}
