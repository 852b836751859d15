/* Solves with the adjoint (conjugate transpose) and with the transpose of A, by the solver of A.
 *
 * If A is symmetric (of complex types Hermitian), A^H x = b is A x = b. Otherwise a second solver has A^H as its matrix,
 * made once, and the preconditioner of A, whose application it transposes (precond_transpose), or the factors of A:
 * nothing is set up a second time. If A^H x = b then does not converge and "auto" has chosen the preconditioner, a
 * solver that chooses one for A^H goes on from the x reached, and stays.
 *
 * A' x = b is A^H conj(x) = conj(b). If a complex A is its own transpose, A' x = b is A x = b, and A^H x = b is
 * A conj(x) = conj(b). M is a real matrix, of a complex A for real and imaginary parts: its transpose
 * belongs to A^H.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/choice.h"
#include "core/clock.h"
#include "solvers/solver_internal.h"

struct solver_adjoint {
    spmv_context *ctx;
    spmv_matrix *matrix;             /* A^H */
    const spmv_preconditioner *from; /* what it was made of: M, and the solver */
    const struct krylov_solver *as;
    spmv_preconditioner *precond; /* M transposed; NULL: M is symmetric, or there is none */
    struct direct *direct;        /* the factors, until the solver has them; else NULL */
    spmv_solver *solver;
    bool chooses; /* the solver has chosen a preconditioner for A^H */
};

void solver_drop_adjoint(spmv_solver *s)
{
    struct solver_adjoint *const c = s->adjoint;
    s->adjoint = NULL;
    if (c == NULL)
        return;
    spmv_solver_destroy(c->solver);
    spmv_preconditioner_destroy(c->precond);
    direct_destroy(c->direct);
    spmv_matrix_destroy(c->matrix);
    host_free(c);
}

int64_t solver_adjoint_bytes(const spmv_solver *s)
{
    const struct solver_adjoint *const c = s->adjoint;
    spmv_preconditioner_info lent = {.bytes = 0}; /* a symmetric M is that of A */
    spmv_solver_info info;
    spmv_csr a;
    if (c == NULL || spmv_solver_describe(c->solver, &info, sizeof info) != SPMV_OK)
        return 0;
    spmv_matrix_view(c->matrix, &a);
    const int64_t values = a.val != NULL ? a.nnz * (int64_t)spmv_type_size(a.type) : 0;
    if (!c->chooses && c->precond == NULL)
        spmv_preconditioner_describe(c->from, &lent, sizeof lent);
    return info.bytes - lent.bytes + values + a.nnz * 4 + (a.rows + 1) * (a.row_ptr_bits / 8);
}

/* ------------------------------------------------------------- conjugate numbers */

/* The n complex numbers become their conjugates, by a copy of the imaginary parts. part: the type of a part. Queued,
 * and waits to release the copy. */
static spmv_status conjugate(spmv_context *ctx, spmv_type part, void *numbers, int64_t n)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)spmv_type_size(part), two = 2;
    char *const imaginary = (char *)numbers + size;
    void *index = NULL, *copy = NULL;
    if (n == 0)
        return SPMV_OK;
    TRY(context_lend(ctx, n * (int64_t)sizeof two, &index));
    TRY(context_lend(ctx, n * size, &copy));
    TRY(spmv_map_index(ctx, SPMV_I64, &(const int64_t){0}, &two, index, n));
    TRY(spmv_gather(ctx, part, imaginary, 2 * n - 1, index, 64, copy, n));
    TRY(spmv_map(ctx, SPMV_MAP_NEG, part, copy, copy, n));
    TRY(spmv_scatter(ctx, part, copy, index, 64, imaginary, 2 * n - 1, n));
done:
    context_take_back(ctx, copy);
    context_take_back(ctx, index);
    return st;
}

/* ------------------------------------------------------------- the second solver */

/* c->matrix = A^H */
static spmv_status make_matrix(const spmv_solver *s, struct solver_adjoint *c)
{
    spmv_csr a;
    spmv_status st = spmv_matrix_transpose(s->ctx, &s->a, &c->matrix);
    if (st != SPMV_OK || s->a.val == NULL || !type_is_complex(s->a.type))
        return st;
    spmv_matrix_view(c->matrix, &a);
    return conjugate(s->ctx, type_part(a.type), (void *)a.val, a.nnz);
}

/* What both solvers have in common. */
static spmv_solver_options options_of(const spmv_solver *s)
{
    spmv_solver_options o = s->options;
    o.type = s->plan->type;
    o.plan = NULL;
    o.inner = 0;
    o.rung = NULL;
    o.null_space = NULL; /* those of A^H are others */
    o.null_block = o.null_vectors = 0;
    return o;
}

/* c->solver for c->matrix, with M or the factors of A. */
static spmv_status make_solver(const spmv_solver *s, struct solver_adjoint *c)
{
    spmv_status st = SPMV_OK;
    spmv_csr a;
    spmv_solver_options o = options_of(s);
    spmv_matrix_view(c->matrix, &a);
    o.solver = c->as->name;
    o.precond = "none";
    o.own_precond = NULL;
    if (c->as == &krylov_direct && !direct_has_adjoint(s->direct)) {
        o.solver = s->library != NULL ? s->library : c->as->name; /* factors of its own */
    } else if (c->as == &krylov_direct) {
        TRY(direct_create_adjoint(s->direct, &c->direct));
    } else if (precond_is_symmetric(c->from)) {
        o.own_precond = (spmv_preconditioner *)c->from;
    } else {
        TRY(precond_make_adjoint(c->from, &c->precond));
        o.own_precond = c->precond;
    }
    TRY(solver_create_with(s->ctx, &a, &o, c->direct != NULL ? &c->direct : NULL, &c->solver));
    snprintf(c->solver->why, sizeof c->solver->why, "that of A, for its %stranspose",
             type_is_complex(o.type) ? "conjugate " : "");
done:
    return st;
}

/* The same with a preconditioner that is chosen for A^H. */
static spmv_status make_own_solver(const spmv_solver *s, struct solver_adjoint *c)
{
    spmv_csr a;
    spmv_solver_options o = options_of(s);
    spmv_preconditioner_options p = s->precond_options;
    spmv_matrix_view(c->matrix, &a);
    p.plan = NULL;
    p.near_null = NULL;
    p.near_nulls = p.dimensions = 0;
    p.coordinates = NULL;
    p.nodes = 0;
    p.update_values = 0;
    o.precond_options = &p;
    return solver_create_with(s->ctx, &a, &o, NULL, &c->solver);
}

/* Makes the second solver, unless there is one with the present preconditioner: that of the last solve. */
static spmv_status need_adjoint(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    const double begin = monotonic_seconds();
    const bool used = s->used_precond != NULL;
    const spmv_preconditioner *const from = used ? s->used_precond : s->precond;
    const struct krylov_solver *const as = used ? s->used : s->solver;
    if (s->adjoint != NULL && (s->adjoint->chooses || (s->adjoint->from == from && s->adjoint->as == as)))
        return SPMV_OK;
    solver_drop_adjoint(s);
    if (s->no_entries)
        return context_fail(s->ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_solver_solve_operation: solves with the transpose need the entries of a matrix that "
                            "is not symmetric: make a solver of a plan for the transpose");
    TRY(host_alloc(s->ctx, sizeof *s->adjoint, "a solver for the transpose", (void **)&s->adjoint));
    *s->adjoint = (struct solver_adjoint){.ctx = s->ctx, .from = from, .as = as};
    TRY(make_matrix(s, s->adjoint));
    TRY(make_solver(s, s->adjoint));
    s->adjoint->solver->seconds = monotonic_seconds() - begin;
done:
    if (st != SPMV_OK)
        solver_drop_adjoint(s);
    return st;
}

/* ------------------------------------------------------------- solves */

/* After the second solver has failed with st: one that chooses its preconditioner goes on from x. */
static spmv_status go_on(spmv_solver *s, spmv_status st, const void *b, void *x)
{
    struct solver_adjoint *const c = s->adjoint;
    spmv_solver *const before = c->solver;
    char sentence[512];
    const bool own_limit = st == SPMV_ERROR_ITERATIONS && s->options.max_iterations > 0;
    if (c->chooses || own_limit || !solver_may_follow(s, st))
        return st;
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    c->solver = NULL;
    if (make_own_solver(s, c) != SPMV_OK) {
        c->solver = before;
        return context_fail(s->ctx, st, "%s", sentence);
    }
    spmv_solver *const own = c->solver;
    c->chooses = true;
    own->options.zero_start = 0;
    st = solver_solve_held(own, b, x);
    own->options.zero_start = s->options.zero_start;
    for (int v = 0; v < s->options.vectors; v++) {
        own->results[v].iterations += before->results[v].iterations;
        own->results[v].restarts += before->results[v].restarts;
    }
    snprintf(own->why_used, sizeof own->why_used, "chosen for the transpose: with the preconditioner of A it stopped");
    spmv_solver_destroy(before);
    return st;
}

/* A^H x = b of an A that is not symmetric. *by: the solver that has the results. */
static spmv_status solve_adjoint(spmv_solver *s, const void *b, void *x, const spmv_solver **by)
{
    spmv_status st = need_adjoint(s);
    if (st != SPMV_OK)
        return st;
    spmv_solver *const second = s->adjoint->solver;
    st = solver_set_vectors(second, s->options.vectors);
    if (st != SPMV_OK)
        return st;
    second->options.on_iteration = s->options.on_iteration;
    second->options.on_iterate = s->options.on_iterate;
    second->options.user = s->options.user;
    st = go_on(s, solver_solve_held(second, b, x), b, x);
    *by = s->adjoint->solver;
    return st;
}

/* A x = b, by the solver of A itself. */
static spmv_status solve_own(spmv_solver *s, const void *b, void *x, const spmv_solver **by)
{
    *by = s;
    return solver_solve_held(s, b, x);
}

static spmv_status solve_hermitian(spmv_solver *s, const void *b, void *x, const spmv_solver **by)
{
    return s->symmetric ? solve_own(s, b, x, by) : solve_adjoint(s, b, x, by);
}

/* A' x = b or A^H x = b of a complex A, by way of the conjugates. */
static spmv_status solve_conjugated(spmv_solver *s, spmv_operation operation, const void *b, void *x,
                                    const spmv_solver **by)
{
    spmv_status st = SPMV_OK;
    const spmv_type type = s->plan->type, part = type_part(type);
    const int64_t n = s->plan->a.rows * s->options.vectors;
    const bool transpose = operation == SPMV_OPERATION_T;
    spmv_status (*const solve)(spmv_solver *, const void *, void *, const spmv_solver **) =
        transpose ? solve_hermitian : solve_own;
    void *turned = NULL;
    if (s->options.on_iterate != NULL)
        return context_fail(
            s->ctx, SPMV_ERROR_UNSUPPORTED,
            "spmv_solver_solve_operation: on_iterate is not supported with the %stranspose of a complex "
            "%smatrix: solve with the %stranspose and the conjugate of b",
            transpose ? "" : "conjugate ", transpose ? "" : "symmetric ", transpose ? "conjugate " : "");
    if (b == NULL || x == NULL || b == x) /* which the solver refuses */
        return solve(s, b, x, by);
    TRY(context_lend(s->ctx, n * (int64_t)spmv_type_size(type), &turned));
    TRY(spmv_map(s->ctx, SPMV_MAP_COPY, part, b, turned, 2 * n));
    TRY(conjugate(s->ctx, part, turned, n));
    TRY(conjugate(s->ctx, part, x, n));
    st = solve(s, turned, x, by);
    const spmv_status back = conjugate(s->ctx, part, x, n);
    st = back != SPMV_OK ? back : st;
done:
    context_take_back(s->ctx, turned);
    return st;
}

spmv_status solver_solve_operation(spmv_solver *s, spmv_operation operation, const void *b, void *x,
                                   const spmv_solver **by)
{
    *by = NULL;
    if (operation == SPMV_OPERATION_N)
        return solve_own(s, b, x, by);
    if (type_is_complex(s->plan->type) && operation == (s->own_transpose ? SPMV_OPERATION_H : SPMV_OPERATION_T))
        return solve_conjugated(s, operation, b, x, by);
    return s->own_transpose ? solve_own(s, b, x, by) : solve_hermitian(s, b, x, by);
}
