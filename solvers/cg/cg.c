/* Conjugate gradients, a solver like the others (struct krylov_solver): the checks that are
 * specific to it, and the choice of a rung. krylov.c does everything around the recurrence. The
 * rungs: cg_1_textbook.c and following. spmv_cg is the solver itself, for a plan of the caller.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/backend.h"
#include "core/choice.h"
#include "product/plan_internal.h"
#include "solvers/cg/cg_internal.h"
#include "solvers/precond/precond_internal.h"

/* All rungs. "auto" takes the first of its backend that supports the solve. */
static const struct cg_rung *const ladder[] = {
    &cg_fused_with_columns, &cg_persistent_cuda, &cg_graph,    &cg_graph_columns,    &cg_fused_cuda,
    &cg_fused_columns_cuda, &cg_fused_omp,       &cg_textbook, &cg_textbook_columns,
};

enum { RUNGS = sizeof ladder / sizeof *ladder };

static bool is_for(const struct cg_rung *rung, spmv_backend backend, int columns)
{
    return (rung->backends & 1u << backend) != 0 && rung->least_columns <= columns && columns <= rung->most_columns;
}

void spmv_cg_options_init(spmv_cg_options *options, size_t size)
{
    const spmv_cg_options defaults = {.size = sizeof defaults, .rtol = 1e-8, .symmetry_check = SPMV_SYMMETRY_SAMPLED};
    result_write(options, size, &defaults, sizeof defaults);
}

const char *spmv_cg_rung_name(spmv_backend backend, int index)
{
    for (int m = 0; m < RUNGS && index >= 0 && backend_find(backend) != NULL; m++)
        if (is_for(ladder[m], backend, 1) && index-- == 0)
            return ladder[m]->name;
    return NULL;
}

spmv_status cg_multiply(const struct cg *cg, const void *p, void *q, void *pq)
{
    spmv_epilogue dot;
    if (cg->s.plan->ranks != NULL || type_is_complex(cg->s.type)) {
        const spmv_status st = spmv_apply(cg->s.plan, NULL, p, NULL, q);
        return st != SPMV_OK ? st : krylov_dot(&cg->s, p, q, pq);
    }
    spmv_epilogue_init(&dot, sizeof dot);
    dot.w = p;
    dot.dot = pq;
    return spmv_apply_with(cg->s.plan, NULL, p, NULL, q, &dot);
}

spmv_status cg_precondition(const struct cg *cg, const void *r, void *z)
{
    return spmv_preconditioner_apply(cg->s.precond, r, z);
}

/* p += by * M^-1 r, for one right-hand side. Overwrites q. */
static spmv_status move_p(const struct cg *cg, double by)
{
    spmv_status st = SPMV_OK;
    const struct krylov *s = &cg->s;
    const void *z = s->r;
    if (s->precond != NULL) {
        TRY(cg_precondition(cg, s->r, s->q));
        z = s->q;
    }
    TRY(krylov_set_cell(s, by));
    TRY(spmv_map_axpby(s->ctx, s->type, s->cells, z, NULL, cg->p, s->n));
done:
    return st;
}

/* Whether r and p, as the run has left them, are those of the next step. */
static bool may_go_on(const struct krylov *s)
{
    return s->columns == 1 && s->told != SPMV_OK && s->column->stop == COLUMN_RUNS && s->scale == 0 &&
           !context_on_device(s->ctx);
}

/* Runs the rung, from and to what is kept of the recurrence. */
static spmv_status run_kept(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    struct krylov *const s = &cg->s;
    struct krylov_recurrence *const kept = s->recurrence;
    if (kept->kept) {
        TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, kept->r, s->r, s->count));
        TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, kept->p, cg->p, s->count));
        cg->continues = true;
    }
    kept->kept = false;
    TRY(cg->rung->run(cg));
    cg->continues = false;
    if (may_go_on(s)) {
        TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, s->r, kept->r, s->count));
        TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, cg->p, kept->p, s->count));
        kept->kept = true;
    }
done:
    return st;
}

spmv_status cg_run(struct krylov *s)
{
    spmv_status st = SPMV_OK;
    struct cg *cg = (struct cg *)s;
    if (cg->continues) /* p - M^-1 r */
        TRY(move_p(cg, -1));
    if (!s->measures)
        TRY(krylov_start(s));
    if (cg->continues) /* + M^-1 new r */
        TRY(move_p(cg, 1));
    TRY(s->recurrence != NULL ? run_kept(cg) : cg->rung->run(cg));
    for (int v = 0; v < s->columns; v++)
        if (krylov_is_open(s, v))
            s->result[v].error_estimate = cg_error_estimate(&cg->column[v].error, cg->column[v].rz);
done:
    return st;
}

/* The status of a broken column: SPMV_ERROR_NOT_FINITE or SPMV_ERROR_NOT_POSITIVE. */
static spmv_status fail_broken(const struct krylov *s, int v)
{
    const struct cg_column *c = &((const struct cg *)s)->column[v];
    const long long k = (long long)(s->iterations_before + s->result[v].iterations);
    const double rr = krylov_unscaled_square(s, c->rr), rz = krylov_unscaled_square(s, c->rz);
    const double pq = krylov_unscaled_square(s, c->pq);
    if (!isfinite(c->rr) || (isfinite(c->rz) && !isfinite(c->pq)))
        return context_fail(s->ctx, SPMV_ERROR_NOT_FINITE, "spmv_cg: r'r = %g, p'Ap = %g at iteration %lld", rr, pq, k);
    if (!isfinite(c->rz))
        return context_fail(s->ctx, SPMV_ERROR_NOT_FINITE,
                            "spmv_cg: r'M^-1 r = %g (r'r = %g) at iteration %lld, in the preconditioner", rz, rr, k);
    if (c->rz <= 0)
        return context_fail(
            s->ctx, SPMV_ERROR_NOT_POSITIVE,
            "spmv_cg: r'M^-1 r = %g <= 0 (r'r = %g) at iteration %lld: the preconditioner is not positive definite", rz,
            rr, k);
    if (c->pq > 0)
        return context_fail(s->ctx, SPMV_ERROR_NOT_POSITIVE,
                            "spmv_cg: the residual has grown to %.3g times its first value at iteration %lld: the "
                            "matrix is not positive definite",
                            s->column[v].residual / s->column[v].start_residual, k);
    return context_fail(s->ctx, SPMV_ERROR_NOT_POSITIVE,
                        "spmv_cg: p'Ap = %g <= 0 (r'r = %g) at iteration %lld: the matrix is not positive definite", pq,
                        rr, k);
}

/* *inner: describes the plan of the recurrence. */
static spmv_status check_inner(const struct cg *cg, spmv_plan_info *inner)
{
    spmv_plan *plan = cg->s.inner;
    const spmv_plan_info *info = &cg->s.info;
    *inner = *info;
    if (plan == NULL)
        return SPMV_OK;
    if (spmv_plan_context(plan) != cg->s.ctx)
        return context_fail(cg->s.ctx, SPMV_ERROR_ARGUMENT, "spmv_cg: the inner plan belongs to another context");
    const spmv_status st = spmv_plan_describe(plan, inner, sizeof *inner);
    if (st != SPMV_OK)
        return st;
    if (info->type != SPMV_F64 || inner->type != SPMV_F32)
        return context_fail(cg->s.ctx, SPMV_ERROR_TYPE,
                            "spmv_cg: inner iterations need an f32 plan for an f64 plan, not %s for %s",
                            spmv_type_name(inner->type), spmv_type_name(info->type));
    if (inner->rows != info->rows || inner->cols != info->cols || inner->nnz != info->nnz)
        return context_fail(cg->s.ctx, SPMV_ERROR_SIZE,
                            "spmv_cg: the inner plan is for %lld x %lld with %lld nonzeros, the plan for %lld x %lld "
                            "with %lld: not the same matrix",
                            (long long)inner->rows, (long long)inner->cols, (long long)inner->nnz,
                            (long long)info->rows, (long long)info->cols, (long long)info->nnz);
    if (inner->vectors != 1 || inner->x_stride != 1 || inner->y_stride != 1 || info->vectors != 1)
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: inner iterations support only one right-hand side");
    return SPMV_OK;
}

/* Whether the rung supports the solve; see supports in struct cg_rung. */
static spmv_status supports(const struct cg *cg, const struct cg_rung *rung)
{
    if (cg->s.on_iterate != NULL && !rung->shows_x)
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: rung %s reports iterations when x has moved on; for on_iterate take textbook",
                            rung->name);
    if (type_is_complex(cg->s.info.type) && rung != &cg_textbook)
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED, "spmv_cg: rung %s is for real types only", rung->name);
    if (plan_is_operator(cg->s.plan) && rung != &cg_textbook)
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: rung %s needs the entries of the matrix; textbook takes an operator", rung->name);
    if (cg->s.plan->ranks != NULL && !rung->for_ranks)
        return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                            "spmv_cg: rung %s is for one rank only; textbook is for several", rung->name);
    return rung->supports != NULL ? rung->supports(cg) : SPMV_OK;
}

/* Whether the rung is for a preconditioner like that of the solve at all. Another one is passed over without a word. */
static bool is_meant(const struct cg *cg, const struct cg_rung *rung)
{
    return rung != &cg_fused_with_columns || (cg->s.precond != NULL && precond_takes_columns(cg->s.precond));
}

/* The rungs of a backend for so many right-hand sides, after "auto". */
static struct names rungs_for(spmv_backend backend, int columns)
{
    struct names names = {.on = spmv_backend_name(backend)};
    names_add(&names, "auto");
    for (int m = 0; m < RUNGS; m++)
        if (is_for(ladder[m], backend, columns))
            names_add(&names, ladder[m]->name);
    return names;
}

spmv_status cg_check_rung(spmv_context *ctx, const char *caller, const char *what, const char *name)
{
    const void *row = NULL;
    if (choice_is_auto(name))
        return SPMV_OK;
    const struct names rungs = rungs_for(ctx->backend->id, 1);
    return choice_take(ctx, SPMV_ERROR_METHOD, caller, what, &rungs, name, &row);
}

/* The named rung exists, but not for so many right-hand sides. */
static spmv_status fail_columns(const struct cg *cg)
{
    char list[128];
    const struct names rungs = rungs_for(cg->s.ctx->backend->id, cg->s.info.vectors);
    names_join(&rungs, list, sizeof list);
    return context_fail(cg->s.ctx, SPMV_ERROR_UNSUPPORTED,
                        "spmv_cg: rung %s is not for several right-hand sides on %s; there are: %s", cg->s.rung,
                        rungs.on, list);
}

/* Sets cg->rung: the named rung, or the backend's first that supports the solve. why: the reason
 * why the rung before it was rejected, or else the rung's own sentence. */
static spmv_status choose(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const char *refused = NULL;
    const bool named = !choice_is_auto(cg->s.rung);
    spmv_context *ctx = cg->s.ctx;
    char why[sizeof cg->s.result->why] = "";
    TRY(cg_check_rung(ctx, "spmv_cg", "rung", cg->s.rung));
    for (int m = 0; m < RUNGS && cg->rung == NULL; m++) {
        if (!is_for(ladder[m], ctx->backend->id, cg->s.info.vectors) ||
            (named && strcmp(ladder[m]->name, cg->s.rung) != 0) || !is_meant(cg, ladder[m]))
            continue;
        st = supports(cg, ladder[m]);
        if (st == SPMV_OK) {
            cg->rung = ladder[m];
        } else if (named || st != SPMV_ERROR_UNSUPPORTED) {
            return st;
        } else {
            refused = spmv_last_error(ctx);
            refused += strncmp(refused, "spmv_cg: ", 9) == 0 ? 9 : 0;
            snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, refused);
        }
    }
    if (cg->rung == NULL)
        return named ? fail_columns(cg) : st;
    ctx->error[0] = '\0'; /* rejected rungs are no failure */
    if (named || refused == NULL)
        snprintf(why, sizeof why, "%s", named ? CHOICE_NAMED : cg->rung->why);
    for (int v = 0; v < cg->s.info.vectors; v++) {
        cg->s.result[v].rung = cg->rung->name;
        memcpy(cg->s.result[v].why, why, sizeof why);
    }
done:
    return st;
}

spmv_status cg_open(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    struct krylov *s = &cg->s;
    const int64_t k = s->info.vectors;
    s->n = s->info.rows;
    s->type = s->info.type;
    s->run = cg_run;
    s->fail_broken = fail_broken;
    if (cg->s.inner != NULL)
        cg->rung = &cg_inner; /* cg_inner chooses the rung */
    else
        TRY(choose(cg));
    s->measures = cg->rung->measures;
    TRY(krylov_open(s));
    TRY(krylov_lend(s, s->part, s->count, &cg->p));
    TRY(host_alloc(s->ctx, k * (int64_t)sizeof *cg->column, s->call, (void **)&cg->column));
    memset(cg->column, 0, (size_t)k * sizeof *cg->column);
    TRY(cg->rung->prepare(cg));
done:
    return st;
}

void cg_close(struct cg *cg)
{
    if (cg->state != NULL)
        cg->rung->release(cg);
    host_free(cg->state);
    krylov_take_back(&cg->s, cg->s.part, cg->p);
    host_free(cg->column);
    krylov_close(&cg->s);
}

static spmv_status cg_solve(const struct krylov *asked)
{
    spmv_status st = SPMV_OK;
    struct cg cg = {.s = *asked};
    struct krylov *const s = &cg.s;
    spmv_plan_info recurrence;
    s->call = "spmv_cg";
    TRY(krylov_check(s));
    TRY(check_inner(&cg, &recurrence));
    if (s->on_iterate != NULL && (s->inner != NULL || s->info.vectors != 1))
        TRY(context_fail(s->ctx, SPMV_ERROR_UNSUPPORTED,
                         "spmv_cg: on_iterate supports only one right-hand side, without inner iterations"));
    TRY(krylov_take_precond(s, recurrence.type));
    if (s->symmetry_check == SPMV_SYMMETRY_SAMPLED)
        TRY(krylov_check_symmetry(s, false));
    if (krylov_rows(s) == 0)
        return krylov_solve_empty(s);
    st = cg_open(&cg);
    if (st == SPMV_OK) {
        const void *const b = s->b;
        const bool zero_start = s->zero_start;
        st = krylov_name_not_finite(s, b, zero_start, krylov_solve(s));
        cg_close(&cg);
        return st;
    }
    cg_close(&cg);
done:
    for (int v = 0; v < s->info.vectors; v++)
        s->result[v].status = st;
    return st;
}

const struct krylov_solver krylov_cg = {.name = "cg", .solve = cg_solve, .symmetric = true, .columns = true};

/* ------------------------------------------------------------- the public function */

/* The initial value of a result. */
static const spmv_cg_result unsolved = {
    .size = sizeof unsolved, .status = SPMV_ERROR_ARGUMENT, .rung = "", .precond = "none", .error_estimate = -1};

/* spmv_cg on a context that this thread holds. */
static spmv_status solve_for_caller(spmv_plan *plan, const void *b, void *x, const spmv_cg_options *options,
                                    spmv_cg_result *result, size_t size)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = spmv_plan_context(plan);
    spmv_cg_options o;
    struct krylov s = {.call = "spmv_cg", .solver = &krylov_cg, .ctx = ctx, .plan = plan, .b = b, .x = x};
    TRY(spmv_plan_describe(plan, &s.info, sizeof s.info));
    TRY(host_alloc(ctx, s.info.vectors * (int64_t)sizeof *s.result, "conjugate gradients", (void **)&s.result));
    for (int v = 0; v < s.info.vectors; v++)
        s.result[v] = unsolved;
    spmv_cg_options_init(&o, sizeof o);
    st = options_take(ctx, "cg", &o, sizeof o, options);
    if (st == SPMV_OK)
        st = krylov_check_options(ctx, "spmv_cg",
                                  &(const struct krylov_options){.rtol = o.rtol,
                                                                 .atol = o.atol,
                                                                 .max_iterations = o.max_iterations,
                                                                 .zero_start = o.zero_start,
                                                                 .symmetry_check = o.symmetry_check});
    if (st == SPMV_OK) {
        s.precond = o.precond;
        s.rtol = o.rtol;
        s.atol = o.atol;
        s.max_iterations = o.max_iterations;
        s.zero_start = o.zero_start != 0;
        s.on_iteration = o.on_iteration;
        s.on_iterate = o.on_iterate;
        s.user = o.user;
        s.symmetry_check = o.symmetry_check;
        s.rung = o.rung;
        s.inner = o.inner;
        plan_begin_use(plan);
        plan_begin_use(o.inner);
        precond_begin_use(o.precond);
        st = cg_solve(&s);
        precond_end_use(o.precond);
        plan_end_use(o.inner);
        plan_end_use(plan);
    }
    for (int v = 0; v < s.info.vectors && result != NULL; v++)
        result_write((char *)result + (size_t)v * size, size, &s.result[v], sizeof *s.result);
done:
    host_free(s.result);
    return st;
}

spmv_status spmv_cg(spmv_plan *plan, const void *b, void *x, const spmv_cg_options *options, spmv_cg_result *result,
                    size_t size)
{
    bool outer = false;
    if (plan == NULL) {
        result_write(result, size, &unsolved, sizeof unsolved);
        return SPMV_ERROR_ARGUMENT;
    }
    spmv_context *ctx = spmv_plan_context(plan);
    const spmv_status st = context_hold(ctx, &outer);
    return st != SPMV_OK ? st : context_release(ctx, outer, solve_for_caller(plan, b, x, options, result, size));
}
