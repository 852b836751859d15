/* The end of a solve: the check of the component-wise backward error (backward_error.h), and the
 * solves with scaled rows and columns that follow where it is too large.
 *
 * A solver stopped because ||b - A x|| is small beside ||b||, but in some row |b - A x| is not
 * small beside the row's own numbers. Rows of very different sizes are the cause, such as those of
 * a Dirichlet value that was set by a large diagonal entry p: the tolerance is p times that of the
 * other rows. The solver then corrects x:
 *
 *     r = b - A x,    (R A C) y = R r,    x = x + C y
 *
 * R and C are powers of two, so scaling changes no digit. They make the largest entry of each row and
 * column about 1 (prepare_equilibrate); of a symmetric A, R = C, so R A C is symmetric and stays
 * positive definite. The correction is a solve of its own: it begins with the kind of preconditioner that has
 * just solved A x = b, unless that was jacobi or none (solver_create_like), or chooses a solver, and goes on with other solvers as any solve does.
 *
 * A row that already holds to rounding gets r_i = 0. What is left in it is the rounding of x_i, which
 * no correction can remove, and times p it would be the largest number in R r.
 *
 * The correction is repeated while the backward error is too large and it halves that or R r. If it
 * stays too large: SPMV_ERROR_STAGNATION, as for a residual that stays above its tolerance. The residual
 * b - A x, measured in the norm that belongs to each row, makes no further progress; x is the best one
 * reached, and a caller who handles that status treats it as it must: an x less accurate than wanted.
 *
 * Ranks do the same for their rows: exponents are maxima over all ranks, and the corrections a solve together.
 *
 * Arithmetic: r is computed on the host in f64, so the bits do not depend on threads. Memory of the
 * corrections, while the solver lives: the scaled values, a plan and a preconditioner for them.
 *
 * Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, chapter 12
 * (fixed precision refinement, scaling).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/hypot.h"
#include "formats/matrix_internal.h"
#include "solvers/prepare/prepared_system.h"
#include "solvers/solver_internal.h"

enum { MOST_CORRECTIONS = 5 };

/* The scaled system of a solver, and the arrays of corrections. */
struct scaled_system {
    spmv_solver *solver; /* of R A C */
    void *val;           /* of R A C, in the context's memory */
    void *near_null;     /* C^-1 times the vectors of the caller, in the context's memory */
    int64_t near_null_bytes;
    spmv_matrix *copy;  /* of A in host memory, where the context's memory is another */
    spmv_csr a;         /* A in host memory; its columns are places in x */
    int *row, *col;     /* exponents of R and C, of own rows and columns */
    spmv_type type;     /* of b and x */
    int64_t before;     /* elements of other ranks in front of the own ones in x; */
    int64_t places;     /* all of them */
    void *b, *x, *best; /* host memory */
    void *context_r, *context_y;
    bool borrows_y; /* it belongs to the ranks */
    /* the call of the caller's callbacks */
    const spmv_solver *of;
    const void *start; /* x before the correction, in the context's memory */
    void *shown;
    int64_t iterations_before;
};

void solver_scaled_destroy(struct scaled_system *c)
{
    if (c == NULL)
        return;
    spmv_context *const ctx = c->of->ctx;
    spmv_solver_destroy(c->solver);
    void *const memory[] = {c->val, c->near_null, c->context_r, c->borrows_y ? NULL : c->context_y, c->shown};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        spmv_free(ctx, memory[i]);
    spmv_matrix_destroy(c->copy);
    host_free_all(c->row, c->col, c->b, c->x, c->best);
    host_free(c);
}

int64_t solver_scaled_bytes(const struct scaled_system *c)
{
    spmv_solver_info info;
    spmv_csr copy;
    if (c == NULL)
        return 0;
    const int64_t size = (int64_t)spmv_type_size(c->type), n = c->a.rows;
    const int vectors = 3 + 2 + (c->shown != NULL); /* b, x, best; context_r, context_y */
    int64_t bytes = c->a.nnz * size + 2 * n * (int64_t)sizeof *c->row + vectors * n * size + c->near_null_bytes;
    if (c->copy != NULL) {
        spmv_matrix_view(c->copy, &copy);
        bytes += (n + 1) * (copy.row_ptr_bits / 8) +
                 copy.nnz * ((int64_t)sizeof *copy.col + (copy.val != NULL ? (int64_t)spmv_type_size(copy.type) : 0));
    }
    if (spmv_solver_describe(c->solver, &info, sizeof info) == SPMV_OK)
        bytes += info.bytes;
    return bytes;
}

/* ------------------------------------------------------------- the scaled matrix */

/* The modulus of entry k. */
static double modulus_of(const spmv_csr *a, int64_t k)
{
    if (a->val == NULL)
        return 1;
    return type_is_complex(a->type)
               ? real_hypot(real_at(type_part(a->type), a->val, 2 * k), real_at(type_part(a->type), a->val, 2 * k + 1))
               : fabs(real_at(a->type, a->val, k));
}

/* Sets the exponents. */
static spmv_status find_exponents(spmv_context *ctx, struct scaled_system *c)
{
    spmv_status st = SPMV_OK;
    const int64_t n = c->a.rows;
    struct magnitudes m = {.rows = n};
    double *row = NULL;
    int64_t at = 0;
    TRY(host_alloc(ctx, (n + 1) * 8, "row offsets", (void **)&m.ptr));
    TRY(host_alloc(ctx, c->a.nnz * 4, "columns", (void **)&m.col));
    TRY(host_alloc(ctx, c->a.nnz * 8, "logarithms of values", (void **)&m.log2));
    TRY(host_alloc(ctx, 2 * n * 8, "scale factors", (void **)&row));
    for (int64_t i = 0; i < n; i++) {
        m.ptr[i] = at;
        for (int64_t k = row_first(&c->a, i); k < row_first(&c->a, i + 1); k++)
            if (modulus_of(&c->a, k) > 0) {
                m.col[at] = c->a.col[k];
                m.log2[at++] = log2(modulus_of(&c->a, k));
            }
    }
    m.ptr[n] = at;
    TRY(prepare_equilibrate(ctx, &m, NULL, row, row + n));
    for (int64_t i = 0; i < n; i++) {
        c->row[i] = (int)lrint(row[i]);
        c->col[i] = (int)lrint(row[n + i]);
    }
done:
    host_free_all(m.ptr, m.col, m.log2, row);
    return st;
}

/* Sets c->val: R A C in the type of the vectors. */
static spmv_status scale_values(spmv_context *ctx, struct scaled_system *c)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = &c->a;
    const spmv_type part = type_part(c->type), from = type_part(a->type);
    const int parts = type_parts(c->type);
    const int64_t bytes = a->nnz * (int64_t)spmv_type_size(c->type);
    void *val = NULL;
    TRY(host_alloc(ctx, bytes, "scaled values", &val));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            for (int p = 0; p < parts; p++) {
                const double value = a->val == NULL ? (double)(p == 0) : real_at(from, a->val, k * parts + p);
                real_set(part, val, k * parts + p, ldexp(value, c->row[i] + c->col[a->col[k]]));
            }
    TRY(spmv_alloc(ctx, bytes, &c->val));
    if (bytes > 0)
        TRY(spmv_upload(ctx, val, c->val, bytes));
done:
    host_free(val);
    return st;
}

/* A v is near 0 for the caller's vectors v, so R A C is for C^-1 v. */
static spmv_status scale_near_null(spmv_context *ctx, struct scaled_system *c, const spmv_preconditioner_options *o)
{
    spmv_status st = SPMV_OK;
    const spmv_type type = real_bytes(o->near_null_type) > 0 ? o->near_null_type : type_part(c->type);
    const int64_t count = c->a.rows * o->near_nulls, bytes = count * real_bytes(type);
    void *vectors = NULL;
    if (o->near_null == NULL || o->near_nulls <= 0)
        return SPMV_OK;
    TRY(host_alloc(ctx, bytes, "near-null vectors", &vectors));
    TRY(spmv_download(ctx, o->near_null, vectors, bytes));
    for (int64_t i = 0; i < count; i++)
        real_set(type, vectors, i, ldexp(real_at(type, vectors, i), -c->col[i / o->near_nulls]));
    TRY(spmv_alloc(ctx, bytes, &c->near_null));
    c->near_null_bytes = bytes;
    TRY(spmv_upload(ctx, vectors, c->near_null, bytes));
done:
    host_free(vectors);
    return st;
}

/* ------------------------------------------------------------- the caller's callbacks */

static int on_iteration(int64_t iteration, double residual, void *user)
{
    const struct scaled_system *const c = user;
    const spmv_solver_options *const o = &c->of->options;
    return iteration == 0 || o->on_iteration == NULL
               ? 0
               : o->on_iteration(c->iterations_before + iteration, residual, o->user);
}

/* The caller sees x + C y. */
static int on_iterate(int64_t iteration, double residual, const void *y, void *user)
{
    const struct scaled_system *const c = user;
    const spmv_solver_options *const o = &c->of->options;
    spmv_context *const ctx = c->of->ctx;
    const spmv_type part = type_part(c->type);
    const int parts = type_parts(c->type);
    const int64_t count = c->a.rows * parts, bytes = count * real_bytes(part);
    spmv_status st = SPMV_OK;
    void *x = NULL, *host_y = NULL;
    int told = 1;
    if (iteration == 0)
        return 0;
    TRY(host_alloc(ctx, bytes, "an iterate", &x));
    TRY(host_alloc(ctx, bytes, "an iterate", &host_y));
    TRY(spmv_download(ctx, c->start, x, bytes));
    TRY(spmv_download(ctx, y, host_y, bytes));
    for (int64_t i = 0; i < count; i++)
        real_set(part, x, i, real_at(part, x, i) + ldexp(real_at(part, host_y, i), c->col[i / parts]));
    TRY(spmv_upload(ctx, x, c->shown, bytes));
    told = o->on_iterate(c->iterations_before + iteration, residual, c->shown, o->user);
done:
    host_free_all(x, host_y);
    return told;
}

/* ------------------------------------------------------------- making it */

/* The host's copy of A, and the arrays. */
static spmv_status open(spmv_solver *s, struct scaled_system *c)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = s->ctx;
    const struct plan_ranks *const ranks = s->plan->ranks;
    const int64_t n = s->a.rows, size = (int64_t)spmv_type_size(c->type), bytes = max_i64(1, n * size);
    c->a = s->a;
    c->before = s->ranks != NULL ? ranks->before : 0;
    c->places = n + c->before + (s->ranks != NULL ? ranks->after : 0);
    if (csr_on_device(ctx, &s->a)) {
        TRY(spmv_matrix_copy(ctx, &s->a, SPMV_MEMORY_HOST, &c->copy));
        spmv_matrix_view(c->copy, &c->a);
    }
    TRY(host_alloc(ctx, max_i64(1, n) * (int64_t)sizeof *c->row, "scale factors", (void **)&c->row));
    TRY(host_alloc(ctx, max_i64(1, n) * (int64_t)sizeof *c->col, "scale factors", (void **)&c->col));
    TRY(host_alloc(ctx, bytes, "a right-hand side", &c->b));
    TRY(host_alloc(ctx, max_i64(1, c->places * size), "a solution", &c->x));
    TRY(host_alloc(ctx, bytes, "a solution", &c->best));
    TRY(spmv_alloc(ctx, bytes, &c->context_r));
    c->borrows_y = s->ranks != NULL;
    if (!c->borrows_y)
        TRY(spmv_alloc(ctx, bytes, &c->context_y));
    if (s->options.on_iterate != NULL)
        TRY(spmv_alloc(ctx, bytes, &c->shown));
done:
    return st;
}

/* SPMV_OK if that is the status of all ranks. */
static spmv_status agree(const spmv_solver *s, spmv_status st)
{
    return s->ranks != NULL ? s->ranks->agree(s->ranks->self, st) : st;
}

/* The exponents, and the solver of R A C. */
static spmv_status make_solver(spmv_solver *s, struct scaled_system *c, spmv_solver_options *o,
                               spmv_preconditioner_options *precond)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = s->ctx;
    struct scaled_part part = {.plan = NULL};
    spmv_csr scaled = s->a;
    if (s->ranks != NULL) {
        TRY(s->ranks->scaled(s->ranks->self, c->row, c->col, &part));
        c->context_y = part.x;
    } else {
        TRY(find_exponents(ctx, c));
        TRY(scale_values(ctx, c));
    }
    TRY(agree(s, scale_near_null(ctx, c, precond)));
    precond->near_null = c->near_null;
    if (s->ranks != NULL) { /* modes of coordinates would have to be scaled too */
        precond->coordinates = NULL;
        precond->dimensions = 0;
        return solver_create_for_rank(part.plan, part.ranks, o, &c->solver);
    }
    scaled.val = c->val;
    scaled.type = c->type;
    st = solver_create_like(s, &scaled, o, &c->solver);
done:
    return st;
}

static spmv_status make(spmv_solver *s, spmv_type type, struct scaled_system *c)
{
    spmv_status st = SPMV_OK;
    spmv_solver_options o = s->options;
    spmv_preconditioner_options precond = s->precond_options;
    c->of = s;
    c->type = type;
    TRY(agree(s, open(s, c)));
    precond.update_values = 0;
    o.solver = s->free ? NULL : s->solver->name;
    o.precond_options = &precond;
    o.own_precond = NULL; /* it is of A */
    o.recycle = o.estimate_error = o.accuracy = 0;
    o.precond = s->options.own_precond != NULL ? NULL : o.precond;
    precond.plan = NULL;
    o.plan = NULL;
    o.null_space = NULL; /* those of R A C are others; r has next to no part along them */
    o.null_block = o.null_vectors = 0;
    o.type = type;
    o.vectors = 1;
    o.atol = 0;
    o.zero_start = 1;
    o.on_iteration = o.on_iteration != NULL ? on_iteration : NULL;
    o.on_iterate = o.on_iterate != NULL ? on_iterate : NULL;
    o.user = c;
    TRY(make_solver(s, c, &o, &precond));
    c->solver->corrects = true;
done:
    return st;
}

static spmv_status need_scaled(spmv_solver *s, spmv_type type)
{
    if (s->scaled != NULL)
        return SPMV_OK;
    struct scaled_system *c = NULL;
    spmv_status st = host_alloc(s->ctx, sizeof *c, "a scaled system", (void **)&c);
    if (st != SPMV_OK)
        return st;
    memset(c, 0, sizeof *c);
    c->of = s;
    st = make(s, type, c);
    if (st != SPMV_OK) {
        solver_scaled_destroy(c);
        return st;
    }
    s->scaled = c;
    return SPMV_OK;
}

/* ------------------------------------------------------------- corrections */

/* Rows first ... last - 1 of c->b = R (b - A x), 0 in rows that hold to the rounding of x and of the sum. Returns
 * the square of its norm, which does not leave this range. */
static long double scaled_rows(struct scaled_system *c, const void *b, int64_t first, int64_t last)
{
    const spmv_csr *const a = &c->a;
    const spmv_type part = type_part(c->type), from = type_part(a->type);
    const int parts = type_parts(c->type);
    const double unit = real_limits_of(part).roundoff;
    long double square = 0;
    for (int64_t i = first; i < last; i++) {
        const int64_t begin = row_first(a, i), end = row_first(a, i + 1);
        double r[2] = {0, 0}, terms = 0;
        for (int p = 0; p < parts; p++) {
            r[p] = real_at(part, b, i * parts + p);
            terms += fabs(r[p]);
        }
        for (int64_t k = begin; k < end; k++) {
            const int64_t j = (int64_t)a->col[k] * parts;
            const double re = a->val == NULL ? 1 : real_at(from, a->val, k * parts), x = real_at(part, c->x, j);
            r[0] -= re * x;
            terms += fabs(re * x);
            if (parts == 2) {
                const double im = a->val == NULL ? 0 : real_at(from, a->val, 2 * k + 1);
                const double x_im = real_at(part, c->x, j + 1);
                r[0] += im * x_im;
                r[1] -= re * x_im + im * x;
                terms += fabs(re * x_im) + fabs(im * x) + fabs(im * x_im);
            }
        }
        const bool holds = real_hypot(r[0], r[1]) <= (double)(end - begin + 2) * unit * terms;
        for (int p = 0; p < parts; p++) {
            const double scaled = holds ? 0 : ldexp(r[p], c->row[i]);
            real_set(part, c->b, i * parts + p, scaled);
            square += (long double)scaled * scaled;
        }
    }
    return square;
}

/* Sets c->b. *norm: of it; over ranks a sum over chunks, which does not depend on their number. */
static spmv_status scaled_residual(struct scaled_system *c, const void *b, double *norm)
{
    spmv_status st = SPMV_OK;
    const spmv_solver *const s = c->of;
    double *parts = NULL, square = 0;
    if (s->ranks == NULL) {
        *norm = (double)sqrtl(scaled_rows(c, b, 0, c->a.rows));
        return SPMV_OK;
    }
    const struct plan_ranks *const ranks = s->plan->ranks;
    st = host_alloc(s->ctx, max_i64(1, ranks->chunks) * (int64_t)sizeof *parts, "a residual", (void **)&parts);
    TRY(agree(s, st));
    for (int64_t k = 0; k < ranks->chunks; k++)
        parts[k] = (double)scaled_rows(c, b, ranks->chunk[k], ranks->chunk[k + 1]);
    TRY(ranks->sum(ranks->self, SPMV_F64, parts, ranks->chunks, 1, &square));
    *norm = sqrt(square);
done:
    host_free(parts);
    return st;
}

/* The own elements of c->x. */
static void *own_x(const struct scaled_system *c)
{
    return (char *)c->x + c->before * (int64_t)spmv_type_size(c->type);
}

/* c->x = x, over ranks with the elements of others. */
static spmv_status take_x(struct scaled_system *c, void *x)
{
    spmv_status st = SPMV_OK;
    const spmv_solver *const s = c->of;
    const struct plan_ranks *const ranks = s->plan->ranks;
    if (s->ranks != NULL) {
        TRY(ranks->fetch_start(ranks->self, x, 1));
        TRY(ranks->fetch_finish(ranks->self, x, 1));
        TRY(spmv_synchronize(s->ctx));
    }
    TRY(spmv_download(s->ctx, s->ranks != NULL ? plan_x_of(s->plan, x) : x, c->x,
                      c->places * (int64_t)spmv_type_size(c->type)));
done:
    return st;
}

/* x = start + C y */
static void correct(struct scaled_system *c, const void *y)
{
    const spmv_type part = type_part(c->type);
    const int parts = type_parts(c->type);
    void *const x = own_x(c);
    for (int64_t i = 0; i < c->a.rows * parts; i++)
        real_set(part, x, i, real_at(part, x, i) + ldexp(real_at(part, y, i), c->col[i / parts]));
}

spmv_status solver_find_error(const spmv_solver *s, spmv_type type, const void *b, void *x, double bound,
                              struct backward_error *error)
{
    spmv_status st = SPMV_OK;
    double norm_b = 0;
    if (s->ranks == NULL)
        return backward_error_find(s->ctx, &s->a, type, 1, b, x, NULL, error);
    TRY(backward_error_of_ranks(s->plan, b, x, bound, error));
    if (type_part(type) == SPMV_F64)
        TRY(solver_measure(s, s->plan, b, x, &norm_b, &error->norm));
done:
    return st;
}

/* Whether a solve that ended like this has set x. */
static bool has_x(spmv_status ended)
{
    return ended == SPMV_OK || ended == SPMV_CANCELLED || ended == SPMV_ERROR_NOT_POSITIVE ||
           spmv_status_class(ended) == 7;
}

/* Corrects x until the backward error is at most bound, or no correction halves it. */
static spmv_status correct_all(spmv_solver *s, const void *b, void *x, spmv_cg_result *result, double bound,
                               struct backward_error *error)
{
    spmv_status st = SPMV_OK, solved = SPMV_OK;
    spmv_context *const ctx = s->ctx;
    struct scaled_system *const c = s->scaled;
    const int64_t bytes = c->a.rows * (int64_t)spmv_type_size(c->type);
    double before = INFINITY;
    bool halved = false;
    void *right = NULL;
    TRY(agree(s, host_alloc(ctx, max_i64(1, bytes), "a right-hand side", &right)));
    TRY(spmv_download(ctx, b, right, bytes));
    TRY(take_x(c, x));
    memcpy(c->best, own_x(c), (size_t)bytes);
    c->start = x;
    for (int k = 0; k < MOST_CORRECTIONS && error->omega > bound && solved != SPMV_CANCELLED; k++) {
        struct backward_error now;
        double norm = 0;
        if (k > 0 && s->ranks != NULL) /* those of others have changed */
            TRY(take_x(c, x));
        TRY(scaled_residual(c, right, &norm));
        /* where large rows are far from their rounding, they come first, and omega does not move yet */
        if (k > 0 && !halved && !(norm <= 0.5 * before))
            break;
        before = norm;
        TRY(spmv_upload(ctx, c->b, c->context_r, bytes));
        c->iterations_before = result->iterations;
        c->solver->options.rtol = result->norm_b > 0 ? result->tolerance / result->norm_b : 0;
        solved = solver_solve_held(c->solver, c->context_r, c->context_y);
        result->iterations += c->solver->results->iterations;
        result->restarts += c->solver->results->restarts;
        if (!has_x(solved))
            TRY(solved);
        TRY(spmv_download(ctx, c->context_y, c->b, bytes));
        correct(c, c->b);
        TRY(spmv_upload(ctx, own_x(c), x, bytes));
        TRY(solver_find_error(s, c->type, b, x, bound, &now));
        halved = now.omega <= 0.5 * error->omega;
        if (now.omega < error->omega) {
            *error = now;
            memcpy(c->best, own_x(c), (size_t)bytes);
        }
    }
    TRY(spmv_upload(ctx, c->best, x, bytes));
    result->true_residual = error->norm;
    result->error_estimate = -1;
    if (solved == SPMV_CANCELLED)
        st = solved;
done:
    host_free(right);
    return st;
}

spmv_status solver_solve_scaled(spmv_solver *s, const void *r, void *d, double rtol, spmv_cg_result *result)
{
    spmv_status st = SPMV_OK, solved = SPMV_OK;
    spmv_context *const ctx = s->ctx;
    struct scaled_system *const c = s->scaled;
    const spmv_type part = type_part(c->type);
    const int parts = type_parts(c->type);
    const int64_t count = c->a.rows * parts, bytes = c->a.rows * (int64_t)spmv_type_size(c->type);
    const double before = c->solver->options.rtol;
    TRY(spmv_download(ctx, r, c->b, bytes));
    for (int64_t i = 0; i < count; i++)
        real_set(part, c->b, i, ldexp(real_at(part, c->b, i), c->row[i / parts]));
    TRY(spmv_upload(ctx, c->b, c->context_r, bytes));
    c->solver->options.rtol = rtol;
    solved = solver_solve_held(c->solver, c->context_r, c->context_y);
    c->solver->options.rtol = before;
    *result = c->solver->results[0];
    if (!has_x(solved))
        TRY(solved);
    TRY(spmv_download(ctx, c->context_y, c->b, bytes));
    for (int64_t i = 0; i < count; i++)
        real_set(part, c->b, i, ldexp(real_at(part, c->b, i), c->col[i / parts]));
    TRY(spmv_upload(ctx, c->b, d, bytes));
done:
    return st != SPMV_OK ? st : solved;
}

static spmv_status fail_row(const spmv_solver *s, const struct backward_error *error, double bound)
{
    return context_fail(s->ctx, SPMV_ERROR_STAGNATION,
                        "spmv_solver_solve: ||b - A x|| is within the tolerance, but x is wrong: in row %lld%s "
                        "|b - A x| is %.2g of the size of the row's terms, and at most %.2g is right: the rows of A "
                        "are of very different sizes",
                        context_number(s->ctx, error->row), context_counted(s->ctx), error->omega, bound);
}

/* Sets the true residual to the one summed in f64, where that is wider than the type. */
static void widen_residual(spmv_type type, spmv_cg_result *result, const struct backward_error *error)
{
    if (type_part(type) != SPMV_F64)
        result->true_residual = error->norm;
}

/* The largest true residual of a success. In f32 and c64 solvers stop by sums in their type, whose
 * rounding errors are a part of the size of b - A x: a sum in f64 of up to twice the tolerance does
 * not contradict them. */
static double most_residual(spmv_type type, const spmv_cg_result *result)
{
    return type_part(type) == SPMV_F64 ? result->tolerance : 2 * result->tolerance;
}

/* The status of a solve, from the one that its last solver ended with: the true residual in f64 may
 * be on the other side of the tolerance. sentence: the message of that status. */
static spmv_status judge(const spmv_solver *s, spmv_type type, spmv_status ended, const char *sentence,
                         const spmv_cg_result *result)
{
    const bool within = result->true_residual <= result->tolerance;
    if (within && (ended == SPMV_ERROR_STAGNATION || ended == SPMV_ERROR_ITERATIONS))
        return SPMV_OK;
    if (!(result->true_residual <= most_residual(type, result)) && ended == SPMV_OK)
        return context_fail(s->ctx, SPMV_ERROR_STAGNATION,
                            "spmv_solver_solve: the true residual is %.3g, summed in f64; the tolerance is %.3g, which "
                            "sums in %s do not resolve",
                            result->true_residual, result->tolerance, spmv_type_name(type));
    return ended == SPMV_OK ? SPMV_OK : context_fail(s->ctx, ended, "%s", sentence);
}

/* Corrects one right-hand side that is within its tolerance, if its backward error is too large. */
static spmv_status correct_rows(spmv_solver *s, spmv_type type, const void *b, void *x, spmv_cg_result *result,
                                struct backward_error *error)
{
    spmv_status st = SPMV_OK;
    const double bound = backward_error_bound(type, result->tolerance, result->norm_b);
    char why[sizeof s->why_used];
    if (error->omega <= bound || s->corrects)
        return SPMV_OK;
    TRY(need_scaled(s, type));
    snprintf(why, sizeof why, "%s", s->why_used);
    TRY(correct_all(s, b, x, result, bound, error));
    snprintf(s->why_used, sizeof s->why_used, "%.100s; then %s with scaled rows and columns", why,
             s->scaled->solver->used->name);
    if (!(error->omega <= bound && result->true_residual <= most_residual(type, result)))
        st = fail_row(s, error, bound);
done:
    return st;
}

/* One of several columns, whose backward error is too large. all_b, all_x: all columns, in host
 * memory. Replaces its column of all_x. */
static spmv_status correct_column(spmv_solver *s, int v, spmv_type type, const void *all_b, void *all_x)
{
    spmv_status st = SPMV_OK;
    const int64_t n = s->a.rows, k = s->options.vectors, size = (int64_t)spmv_type_size(type);
    void *host = NULL, *b = NULL, *x = NULL;
    TRY(host_alloc(s->ctx, 2 * n * size, "a right-hand side", &host));
    TRY(spmv_alloc(s->ctx, n * size, &b));
    TRY(spmv_alloc(s->ctx, n * size, &x));
    for (int64_t i = 0; i < n; i++) {
        real_set(type, host, i, real_at(type, all_b, i * k + v));
        real_set(type, host, n + i, real_at(type, all_x, i * k + v));
    }
    TRY(spmv_upload(s->ctx, host, b, n * size));
    TRY(spmv_upload(s->ctx, (const char *)host + n * size, x, n * size));
    const spmv_status checked = correct_rows(s, type, b, x, &s->results[v], &s->errors[v]);
    TRY(spmv_download(s->ctx, x, host, n * size));
    for (int64_t i = 0; i < n; i++)
        real_set(type, all_x, i * k + v, real_at(type, host, i));
    st = checked;
done:
    host_free(host);
    spmv_free(s->ctx, b);
    spmv_free(s->ctx, x);
    return st;
}

/* Judges right-hand side v, whose last solver ended with the status of its result, and corrects it.
 * all_b, all_x: all columns in host memory, NULL before the first correction. */
static spmv_status check_column(spmv_solver *s, int v, spmv_type type, const char *sentence, const void *b, void *x,
                                void **all_b, void **all_x)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *const result = &s->results[v];
    struct backward_error *const error = &s->errors[v];
    const int64_t bytes = s->a.rows * s->options.vectors * (int64_t)spmv_type_size(type);
    widen_residual(type, result, error);
    TRY(judge(s, type, result->status, sentence, result));
    if (s->options.vectors == 1)
        return correct_rows(s, type, b, x, result, error);
    if (error->omega <= backward_error_bound(type, result->tolerance, result->norm_b))
        return SPMV_OK;
    if (*all_b == NULL) {
        TRY(host_alloc(s->ctx, bytes, "right-hand sides", all_b));
        TRY(host_alloc(s->ctx, bytes, "solutions", all_x));
        TRY(spmv_download(s->ctx, b, *all_b, bytes));
        TRY(spmv_download(s->ctx, x, *all_x, bytes));
    }
    st = correct_column(s, v, type, *all_b, *all_x);
done:
    return st;
}

/* Of several ranks. */
static spmv_status check_on_ranks(spmv_solver *s, const void *b, void *x, spmv_status ended)
{
    spmv_cg_result *const result = s->results;
    struct backward_error *const error = s->errors;
    char ending[512];
    if (!has_x(ended))
        return ended;
    snprintf(ending, sizeof ending, "%s", spmv_last_error(s->ctx));
    const double bound = backward_error_bound(s->plan->type, result->tolerance, result->norm_b);
    const spmv_status st = backward_error_of_ranks(s->plan, b, x, bound, error);
    if (st != SPMV_OK)
        return st;
    if (type_part(s->plan->type) == SPMV_F64)
        error->norm = result->true_residual; /* which it stays if no correction helps */
    widen_residual(s->plan->type, result, error);
    result->status = judge(s, s->plan->type, ended, ending, result);
    if (result->status == SPMV_OK)
        result->status = correct_rows(s, s->plan->type, b, x, result, error);
    return result->status;
}

spmv_status solver_check_rows(spmv_solver *s, const void *b, void *x, spmv_status ended)
{
    spmv_status st = SPMV_OK, worst = SPMV_OK;
    const int k = s->options.vectors;
    spmv_plan_info info;
    void *all_b = NULL, *all_x = NULL;
    double *bounds = NULL;
    char ending[512], sentence[512] = "";
    if (s->ranks != NULL)
        return check_on_ranks(s, b, x, ended);
    if (!has_x(ended))
        return ended;
    snprintf(ending, sizeof ending, "%s", spmv_last_error(s->ctx));
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    TRY(host_alloc(s->ctx, k * (int64_t)sizeof *bounds, "a backward error", (void **)&bounds));
    for (int v = 0; v < k; v++)
        bounds[v] = backward_error_bound(info.type, s->results[v].tolerance, s->results[v].norm_b);
    TRY(backward_error_find(s->ctx, &s->a, info.type, k, b, x, bounds, s->errors));
    for (int v = 0; v < k; v++) {
        spmv_cg_result *const result = &s->results[v];
        const spmv_status before = result->status;
        result->status = check_column(s, v, info.type, ending, b, x, &all_b, &all_x);
        if (!has_x(result->status))
            TRY(result->status);
        if (result->status == SPMV_OK || worst != SPMV_OK)
            continue;
        worst = result->status;
        if (worst == before || k == 1) /* the message of the solvers names the right-hand side */
            snprintf(sentence, sizeof sentence, "%s", worst == before ? ending : spmv_last_error(s->ctx));
        else
            snprintf(sentence, sizeof sentence, "right-hand side %d of %d: %.460s", v + 1, k, spmv_last_error(s->ctx));
    }
    if (all_x != NULL)
        TRY(spmv_upload(s->ctx, all_x, x, s->a.rows * k * (int64_t)spmv_type_size(info.type)));
    if (worst != SPMV_OK)
        st = context_fail(s->ctx, worst, "%s", sentence);
done:
    host_free_all(all_b, all_x, bounds);
    return st;
}
