/* Conjugate gradients over ranks: the checks that ranks make together. The solve itself is that of
 * spmv_cg, with a plan that has other ranks (struct plan_ranks): all ranks see the same sums and so
 * take the same steps.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>
#include <string.h>

#include "core/choice.h"
#include "core/reals.h"
#include "distributed/group_facts.h"
#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"
#include "solvers/precond/precond_internal.h"
#include "solvers/solver_ranks.h"

static const char *const what = "a preconditioner of a group";

/* ------------------------------------------------------------- preconditioners */

void group_square_release(spmv_context *ctx, struct group_square *b)
{
    group_arrays_release(ctx, &b->arrays);
    host_free_all(b->row_ptr, b->col, b->val);
}

/* Whether entry k of row i belongs to the block; its column. */
static bool is_in(const spmv_group_matrix *m, int64_t i, int64_t k, bool diagonal, int64_t *column)
{
    *column = m->col[k] - m->halo.room;
    return diagonal ? *column == i : *column >= 0 && *column < m->own.rows;
}

/* In host memory. */
static spmv_status make_host_block(const spmv_group_matrix *m, bool diagonal, struct group_square *b)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &m->own;
    const size_t size = m->val != NULL ? spmv_type_size(a->type) : 0;
    int64_t column = 0;
    TRY(host_alloc(m->ctx, (a->rows + 1) * (int64_t)sizeof *b->row_ptr, what, (void **)&b->row_ptr));
#pragma omp parallel for num_threads(host_team(m->ctx, a->nnz)) schedule(static) private(column)
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t count = 0;
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            count += is_in(m, i, k, diagonal, &column);
        b->row_ptr[i] = count;
    }
    TRY(offsets_from_counts(m->ctx, b->row_ptr, a->rows));
    const int64_t all = b->row_ptr[a->rows];
    TRY(host_alloc(m->ctx, max_i64(1, all) * (int64_t)sizeof *b->col, what, (void **)&b->col));
    if (size > 0)
        TRY(host_alloc(m->ctx, max_i64(1, all) * (int64_t)size, what, &b->val));
#pragma omp parallel for num_threads(host_team(m->ctx, a->nnz)) schedule(static) private(column)
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t to = b->row_ptr[i];
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            if (is_in(m, i, k, diagonal, &column)) {
                copy_value(b->val, to, m->val, k, size);
                b->col[to++] = (int32_t)column;
            }
    }
    b->view = csr_of(a->rows, a->rows, all, b->row_ptr, b->col, b->val, a->type, SPMV_MEMORY_HOST);
done:
    return st;
}

spmv_status group_square_make(spmv_group_matrix *m, bool diagonal, struct group_square *b)
{
    return context_on_device(m->ctx) ? group_rows_block(m, diagonal, &b->arrays, &b->view)
                                     : make_host_block(m, diagonal, b);
}

/* Whether the row of this rank has no entry other than 0: preconditioners leave it alone. */
static bool is_alone(const spmv_group_matrix *m, int64_t row)
{
    for (int64_t k = m->row_ptr[row]; k < m->row_ptr[row + 1]; k++)
        if (m->val == NULL || real_at(m->own.type, m->val, k) != 0)
            return false;
    return true;
}

static bool is_bad(double sum)
{
    return !(sum > 0 && isfinite(sum));
}

/* The first row in which the sum of the diagonal entries is not positive and finite; without one, all rows. */
static spmv_status find_bad(const spmv_group_matrix *m, const struct group_square *b, int64_t *bad)
{
    const spmv_csr *a = &b->view;
    int64_t first = a->rows;
    if (csr_on_device(m->ctx, a))
        return precond_find_bad(m->ctx, a, bad);
#pragma omp parallel for num_threads(host_team(m->ctx, a->nnz)) schedule(static) reduction(min : first)
    for (int64_t i = 0; i < a->rows; i++) {
        double sum = 0;
        for (int64_t k = b->row_ptr[i]; k < b->row_ptr[i + 1]; k++)
            if (b->col[k] == i)
                sum += b->val == NULL ? 1 : real_at(a->type, b->val, k);
        if (is_bad(sum))
            first = min_i64(first, i);
    }
    *bad = first;
    return SPMV_OK;
}

/* The sum of the diagonal entries of a row of this rank. */
static double diagonal_of(const spmv_group_matrix *m, int64_t row)
{
    double sum = 0;
    for (int64_t k = m->row_ptr[row]; k < m->row_ptr[row + 1]; k++)
        if (m->col[k] - m->halo.room == row)
            sum += m->val == NULL ? 1 : real_at(m->own.type, m->val, k);
    return sum;
}

/* SPMV_ERROR_NOT_POSITIVE names the row of the whole matrix; the preconditioner would name that of
 * this rank. */
static spmv_status check_diagonal(spmv_group_matrix *m, const struct group_square *b, const char *name)
{
    spmv_status st = SPMV_OK;
    int64_t row = 0;
    TRY(find_bad(m, b, &row));
    if (row < m->own.rows)
        TRY(group_rows_to_host(m));
    for (; row < m->own.rows; row++) {
        const double sum = diagonal_of(m, row);
        if (is_bad(sum) && !is_alone(m, row))
            return context_fail(m->ctx, isfinite(sum) ? SPMV_ERROR_NOT_POSITIVE : SPMV_ERROR_NOT_FINITE,
                                "preconditioner %s: the diagonal entry of row %lld%s is %g, must be positive", name,
                                context_number(m->ctx, m->ranks.first_row + row), context_counted(m->ctx), sum);
    }
done:
    return st;
}

static spmv_status check_square(const spmv_group_matrix *m)
{
    if (m->ranks.rows != m->cols)
        return context_fail(m->ctx, SPMV_ERROR_NOT_SQUARE,
                            "spmv_group_preconditioner_create: the matrix has %lld rows and %lld columns",
                            (long long)m->ranks.rows, (long long)m->cols);
    return SPMV_OK;
}

/* Whether all ranks return the status that one returns: above class 6 the numbers that decide are the
 * same. But a context may cancel the work of its rank. */
static bool all_fail_alike(spmv_status st)
{
    return spmv_status_class(st) >= 7 && st != SPMV_CANCELLED;
}

/* The preconditioner that this rank makes of its block. */
static spmv_status create_of_block(spmv_group_matrix *m, enum precond_for purpose, const char *name,
                                   const spmv_csr *block, const spmv_preconditioner_options *o,
                                   spmv_preconditioner **precond)
{
    spmv_status st = SPMV_OK;
    struct equivalent e = {.row_ptr = NULL};
    const spmv_csr *a = block;
    if (type_is_complex(m->type)) {
        TRY(equivalent_make(m->ctx, block, &e));
        a = &e.a;
    }
    st = purpose == PRECOND_FOR_UNSYMMETRIC ? solver_make_unsymmetric(m->ctx, name, a, o, precond)
                                            : spmv_preconditioner_create(m->ctx, name, a, o, precond);
done:
    equivalent_free(&e);
    return st;
}

/* chebyshev and amg are of the whole matrix, so all ranks make them together. The others each rank makes of its
 * block. */
static spmv_status create_named(spmv_group_matrix *m, enum precond_for purpose, const char *name,
                                const spmv_preconditioner_options *options, spmv_preconditioner **precond)
{
    spmv_status st = SPMV_OK;
    struct group_square b = {.row_ptr = NULL};
    spmv_preconditioner_options o = *options;
    const bool together = strcmp(name, "chebyshev") == 0 || strcmp(name, "amg") == 0;
    const bool complex = type_is_complex(m->type);
    double largest = 0;
    if (purpose == PRECOND_FOR_UNSYMMETRIC && strcmp(name, "amg") == 0 && !complex) /* then all may be negative */
        TRY(group_find_extreme(m, SPMV_MAX, &largest));
    o.type = type_part(m->type);
    o.plan = together ? m->plan : NULL;
    o.general = purpose == PRECOND_FOR_UNSYMMETRIC;
    if (complex && together)
        st = context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                          "preconditioner %s: not of complex matrices on ranks: take jacobi, or one of each rank's own "
                          "block such as ilu0",
                          name);
    if (m->wide && strcmp(name, "amg") == 0)
        st = context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                          "preconditioner amg: not of matrices with more than %d rows: take jacobi or chebyshev",
                          INT32_MAX);
    if (st == SPMV_OK)
        st = group_square_make(m, precond_is_of_ranks(name), &b); /* these need only the diagonal of it */
    if (st == SPMV_OK && !complex && strcmp(name, "none") != 0 && !precond_is_unsymmetric(name) &&
        (together || purpose != PRECOND_FOR_UNSYMMETRIC) && !(largest < 0))
        st = check_diagonal(m, &b, name);
    if (st == SPMV_OK && !together)
        st = create_of_block(m, purpose, name, &b.view, &o, precond);
    TRY(group_agree_on(m->group, st, "another preconditioner", group_mix(0, name, strlen(name))));
    if (together) {
        st = spmv_preconditioner_create(m->ctx, name, &b.view, &o, precond);
        m->group->settled = all_fail_alike(st);
    }
done:
    group_square_release(m->ctx, &b);
    return st;
}

/* The chosen one, or the first after it that can be made. */
static spmv_status create_first(spmv_group_matrix *m, enum precond_for purpose, struct precond_choice *choice,
                                const spmv_preconditioner_options *options, spmv_preconditioner **precond)
{
    spmv_status st = SPMV_OK;
    do {
        m->group->settled = false;
        spmv_preconditioner_destroy(*precond); /* another rank could not make its own */
        *precond = NULL;
        st = group_makes_whole(m, purpose, choice->name)
                 ? group_precond_whole(m, purpose, choice->name, options, precond)
                 : create_named(m, purpose, choice->name, options, precond);
    } while (st != SPMV_OK && m->group->settled && precond_choose_next(m->ctx, st, choice));
    if (st == SPMV_OK) {
        snprintf((*precond)->why, sizeof(*precond)->why, "%s", choice->why);
        if (!choice->replaced)
            precond_take_choice(*precond, choice);
        m->ctx->error[0] = '\0'; /* what it fell back from is no failure */
    }
    return st;
}

/* The kind that is chosen without ranks, by the same facts. */
static spmv_status create_chosen(spmv_group_matrix *m, enum precond_for purpose,
                                 const spmv_preconditioner_options *options, spmv_preconditioner **precond)
{
    spmv_status st = SPMV_OK;
    struct group_facts facts;
    struct precond_choice choice;
    struct precond_whole whole = {.self = m, .find_ball = group_find_ball};
    const spmv_csr sizes = {.rows = m->ranks.rows, .cols = m->cols, .nnz = m->ranks.nnz, .type = m->own.type};
    struct precond_source source = {.a = &sizes, .options = options, .whole = &whole};
    if (purpose == PRECOND_FOR_CG && group_chooses_whole(m, options)) {
        TRY(group_choose_whole(m, options, &choice));
        return create_first(m, purpose, &choice, options, precond);
    }
    TRY(group_find_facts(m, &facts));
    whole.look = facts.look;
    source.bad = facts.bad;
    source.bad_value = facts.bad_value;
    TRY(precond_choose(m->ctx, purpose, &source, &choice));
    st = create_first(m, purpose, &choice, options, precond);
done:
    return st;
}

/* jacobi or none: of the whole matrix, without facts of it. */
static spmv_status create_simple(spmv_group_matrix *m, enum precond_for purpose,
                                 const spmv_preconditioner_options *options, spmv_preconditioner **precond)
{
    struct precond_choice choice = {.purpose = purpose, .name = "jacobi"};
    snprintf(choice.why, sizeof choice.why, "%s",
             purpose == PRECOND_FOR_MINRES ? "minres needs a positive definite one, and the diagonal is positive"
                                           : "on ranks, the one whose iterations do not depend on their number");
    return create_first(m, purpose, &choice, options, precond);
}

/* The options that ranks support. */
static spmv_status check_options(const spmv_group_matrix *m, const char *name, const spmv_preconditioner_options *o)
{
    const char *const refused = o->plan != NULL         ? "plan"
                                : o->update_values != 0 ? "update_values"
                                : o->fields != NULL     ? "fields"
                                : o->schur != NULL      ? "schur"
                                : o->schur_form != NULL ? "schur_form"
                                                        : NULL;
    if (name != NULL && strcmp(name, "schur") == 0)
        return context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                            "the preconditioner schur is not for ranks: take minres or gmres with jacobi, or one rank");
    return refused == NULL
               ? SPMV_OK
               : context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                              "spmv_group_preconditioner_create_with: the option %s is not for ranks", refused);
}

/* The options, without pointers. */
static uint64_t numbers_of_options(const spmv_preconditioner_options *o)
{
    const char *const smoother = o->smoother != NULL ? o->smoother : "";
    const double numbers[] = {o->block,      o->degree,         o->steps,      o->lowest,   o->highest,
                              o->shift,      o->drop,           o->fill,       o->strength, o->type,
                              o->near_nulls, o->near_null_type, o->dimensions, o->general};
    return group_mix(group_mix(0, numbers, sizeof numbers), smoother, strlen(smoother));
}

spmv_status group_precond_make(spmv_group_matrix *m, enum precond_for purpose, const char *name,
                               const spmv_preconditioner_options *options, spmv_preconditioner **precond)
{
    spmv_status st = check_square(m);
    spmv_preconditioner_options o;
    m->group->settled = st != SPMV_OK; /* the same on all ranks */
    TRY(st);
    spmv_preconditioner_options_init(&o, sizeof o);
    st = options_take(m->ctx, "preconditioner", &o, sizeof o, options);
    if (st == SPMV_OK)
        st = check_options(m, name, &o);
    TRY(group_agree_on(m->group, st, "other options of a preconditioner", numbers_of_options(&o)));
    m->group->settled = false;
    if (purpose == PRECOND_FOR_CG && o.general != 0)
        purpose = PRECOND_FOR_UNSYMMETRIC;
    if (!choice_is_auto(name))
        st = create_named(m, purpose, name, &o, precond);
    else if (purpose != PRECOND_FOR_MINRES && !type_is_complex(m->type) && !m->wide)
        st = create_chosen(m, purpose, &o, precond);
    else
        st = create_simple(m, purpose, &o, precond);
done:
    return st;
}

spmv_status spmv_group_preconditioner_create_with(spmv_group_matrix *m, const char *name,
                                                  const spmv_preconditioner_options *options,
                                                  spmv_preconditioner **precond)
{
    if (m == NULL || precond == NULL)
        return context_need(m != NULL ? m->ctx : NULL, "spmv_group_preconditioner_create", "precond", precond);
    *precond = NULL;
    group_begin(m->group);
    const spmv_status st = group_precond_make(m, PRECOND_FOR_CG, name, options, precond);
    if (st != SPMV_OK) {
        char why[1024];
        snprintf(why, sizeof why, "%s", spmv_last_error(m->ctx));
        spmv_preconditioner_destroy(*precond);
        *precond = NULL;
        (void)context_fail(m->ctx, st, "%s", why);
    }
    m->lent = m->lent || st == SPMV_OK;
    return group_end(m->group, st);
}

spmv_status spmv_group_preconditioner_create(spmv_group_matrix *m, const char *name, spmv_preconditioner **precond)
{
    return spmv_group_preconditioner_create_with(m, name, NULL, precond);
}

/* ------------------------------------------------------------- the solve */

static int ask_all(int64_t iteration, double residual, void *user)
{
    struct group_callback *c = user;
    const bool stops = c->on_iteration != NULL && c->on_iteration(iteration, residual, c->user) != 0;
    const int64_t own = stops || (c->cancel != NULL && c->cancel(c->cancel_user) != 0);
    c->failed = group_gather_equal(c->group, &own, c->stops, sizeof own);
    for (int r = 0; r < c->group->transport.ranks && c->failed == SPMV_OK; r++)
        c->stopped = c->stopped || c->stops[r] != 0;
    return c->failed != SPMV_OK || c->stopped;
}

/* After a solve that all ranks end with SPMV_ERROR_NOT_FINITE: the rank that has the number which is not
 * finite names it (not_finite.c), and the others take its message. Together. */
static spmv_status share_name(spmv_group *group)
{
    char kept[1024];
    snprintf(kept, sizeof kept, "%s", spmv_last_error(group->ctx));
    const spmv_status own = strstr(kept, " in row ") != NULL ? SPMV_ERROR_NOT_FINITE : SPMV_OK;
    const spmv_status st = group_agree_on(group, own, "the name of a number that is not finite", 0);
    return st == SPMV_OK ? context_fail(group->ctx, SPMV_ERROR_NOT_FINITE, "%s", kept) : st;
}

spmv_status group_callback_open(spmv_group_matrix *m, spmv_cg_fn on_iteration, void *user,
                                struct group_callback *callback)
{
    spmv_status st = SPMV_OK;
    spmv_group *const group = m->group;
    bool asks = false; /* of some rank */
    *callback = (struct group_callback){.group = group,
                                        .on_iteration = group->transport.rank == 0 ? on_iteration : NULL,
                                        .user = user,
                                        .cancel = m->ctx->cancel,
                                        .cancel_user = m->ctx->cancel_user};
    const int64_t own = callback->on_iteration != NULL || callback->cancel != NULL;
    TRY(host_alloc(m->ctx, group->transport.ranks * (int64_t)sizeof *callback->stops, what, (void **)&callback->stops));
    TRY(group_gather_equal(group, &own, callback->stops, sizeof own));
    for (int r = 0; r < group->transport.ranks; r++)
        asks = asks || callback->stops[r] != 0;
    callback->tell = asks ? ask_all : NULL;
done:
    return st;
}

spmv_status group_solve_begin(spmv_group_matrix *m, const void *x, bool zero_start, spmv_cg_fn on_iteration, void *user,
                              struct group_callback *callback)
{
    spmv_status st = SPMV_OK;
    TRY(group_callback_open(m, on_iteration, user, callback));
    if (m->own.rows > 0)
        TRY(zero_start ? spmv_map_index(m->ctx, type_part(m->type), &(const double){0}, NULL, m->x,
                                        m->own.rows * type_parts(m->type))
                       : group_copy(m, x, m->x, m->own.rows));
    m->ctx->cancel = NULL; /* ask_all asks it: a rank must not stop alone */
done:
    return st;
}

spmv_status group_solve_end(spmv_group_matrix *m, void *x, const struct group_callback *callback, spmv_status st)
{
    spmv_group *const group = m->group;
    m->ctx->cancel = callback->cancel;
    if (callback->failed != SPMV_OK)
        st = callback->failed;
    else if (st == SPMV_ERROR_NOT_FINITE)
        st = share_name(group);
    group->settled = callback->failed == SPMV_OK && (st == SPMV_CANCELLED ? callback->stopped : all_fail_alike(st));
    if ((st == SPMV_OK || group->settled) && m->own.rows > 0) {
        const spmv_status copied = group_copy(m, m->x, x, m->own.rows);
        st = copied != SPMV_OK ? copied : st;
    }
    return st;
}

/* The rungs for several ranks: those of struct cg_rung with for_ranks, as far as the exchange
 * allows. */
spmv_status group_check_rung(const spmv_group_matrix *m, const char *call, const char *name)
{
    const spmv_backend backend = spmv_context_backend(m->ctx);
    const bool device = context_on_device(m->ctx), queues = device && m->ranks.queue_sum != NULL;
    struct names names = {.count = 0};
    char list[64];
    names_add(&names, "auto");
    names_add(&names, "textbook");
    const bool real = !type_is_complex(m->type);
    if (real && (backend == SPMV_BACKEND_OMP || queues))
        names_add(&names, "fused");
    if (real && queues)
        names_add(&names, "graph");
    if (names_find(&names, name, strlen(name)) >= 0)
        return SPMV_OK;
    names_join(&names, list, sizeof list);
    return context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                        "%s: no rung %s for several ranks on backend %s%s; there are: %s%s", call, name,
                        spmv_backend_name(backend), real ? "" : " and complex types", list,
                        real && device && !queues ? "; with the exchange peer or nccl also fused and graph" : "");
}

static spmv_status check(const spmv_group_matrix *m, const void *b, const void *x, const spmv_cg_options *o)
{
    if (m->ranks.rows != m->cols)
        return context_fail(m->ctx, SPMV_ERROR_NOT_SQUARE, "spmv_group_cg: the matrix has %lld rows and %lld columns",
                            (long long)m->ranks.rows, (long long)m->cols);
    if (m->own.rows > 0 && (b == NULL || x == NULL || b == x))
        return context_fail(m->ctx, SPMV_ERROR_ARGUMENT, "spmv_group_cg: %s",
                            b == NULL   ? "b is NULL"
                            : x == NULL ? "x is NULL"
                                        : "b and x are the same array");
    if (o->inner != NULL || o->on_iterate != NULL)
        return context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED, "spmv_group_cg: %s must be NULL",
                            o->inner != NULL ? "inner" : "on_iterate");
    return group_check_rung(m, "spmv_group_cg", o->rung != NULL ? o->rung : "auto");
}

/* The options that must be the same on all ranks. */
static uint64_t numbers_of(const spmv_cg_options *o)
{
    const char *rung = o->rung != NULL ? o->rung : "auto";
    uint64_t numbers = group_mix(0, &o->rtol, sizeof o->rtol);
    const bool precond = o->precond != NULL;
    numbers = group_mix(numbers, &o->atol, sizeof o->atol);
    numbers = group_mix(numbers, &o->max_iterations, sizeof o->max_iterations);
    numbers = group_mix(numbers, &o->zero_start, sizeof o->zero_start);
    numbers = group_mix(numbers, &o->symmetry_check, sizeof o->symmetry_check);
    numbers = group_mix(numbers, &precond, sizeof precond);
    return group_mix(numbers, rung, strlen(rung));
}

static spmv_status solve(spmv_group_matrix *m, const void *b, void *x, const spmv_cg_options *options,
                         spmv_cg_result *result, size_t size)
{
    spmv_status st = SPMV_OK;
    struct group_callback callback = {.stops = NULL};
    spmv_cg_options o;
    spmv_cg_options_init(&o, sizeof o);
    spmv_status ready = options_take(m->ctx, "cg", &o, sizeof o, options);
    if (ready == SPMV_OK)
        ready = check(m, b, x, &o);
    TRY(group_agree_on(m->group, ready, "other options", numbers_of(&o)));
    TRY(group_solve_begin(m, x, o.zero_start != 0, o.on_iteration, o.user, &callback));
    o.on_iteration = callback.tell;
    o.user = &callback;
    st = group_solve_end(m, x, &callback, spmv_cg(m->plan, b, m->x, &o, result, size));
done:
    host_free(callback.stops);
    return st;
}

spmv_status spmv_group_cg(spmv_group_matrix *m, const void *b, void *x, const spmv_cg_options *options,
                          spmv_cg_result *result, size_t size)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(m->group);
    return group_end(m->group, solve(m, b, x, options, result, size));
}
