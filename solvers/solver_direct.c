/* The solver direct under "auto": where iterations are predicted to take much longer than factors of A, or others have
 * failed, and a module is there.
 *
 * The analysis tells the operations and nonzeros of the factors, so what they take is known before they are made. The
 * analysis is made where it costs a small part of what is left to do.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>
#include <string.h>

#include "core/threads.h"
#include "solvers/precond/precond_costs.h"
#include "solvers/solver_internal.h"

/* Nanoseconds of an analysis for each row and entry of A, by approximate minimum degree. */
static const double ROW = 200, ENTRY = 60;

/* The analysis is made if it takes a small part of what is left to do, and factors if both take a part of that: they
 * use one thread, and iterations all, unless A has so few entries that loops over them have one. */
static const double WORTH_ANALYSIS = 2, LEAD = 2;

/* Where digits of x are wanted (solver_forward_error.c), so many corrections follow as a rule. By iterations each takes
 * about as long as x, and by factors next to nothing. */
static const double CORRECTIONS = 2;

/* Below, dense factors were tried before anything else. */
enum { ROWS_OF_DENSE = 200 };

static bool may_be_direct(const spmv_solver *s)
{
    return solver_may_follow(s, SPMV_ERROR_STAGNATION) && s->ranks == NULL && s->null_space == NULL &&
           s->a.rows > ROWS_OF_DENSE && !s->no_entries && isfinite(s->direct_takes);
}

static double analysis_of(const spmv_solver *s)
{
    return ROW * (double)s->a.rows + ENTRY * (double)s->a.nnz;
}

/* Keeps the message of a direct that does not fit the memory, for a solve that fails. */
static spmv_status note_memory(spmv_solver *s, spmv_status st)
{
    if (st == SPMV_ERROR_MEMORY)
        snprintf(s->direct_lacks, sizeof s->direct_lacks, "; %s%.240s",
                 strncmp(spmv_last_error(s->ctx), "direct", strlen("direct")) == 0 ? "" : "direct: ",
                 spmv_last_error(s->ctx));
    return st;
}

/* Analyses A, by a library that takes less than these nanoseconds for that. False: no module, or the factors do not fit
 * the memory. */
static bool analyse(spmv_solver *s, double most)
{
    if (s->direct == NULL && note_memory(s, direct_analyse(s->ctx, solver_matrix(s), most, &s->direct)) != SPMV_OK)
        s->direct_takes = INFINITY;
    return s->direct != NULL;
}

static void forget(spmv_solver *s)
{
    solver_drop_adjoint(s); /* it may have the factors */
    direct_destroy(s->direct);
    s->direct = NULL;
}

/* The lead over what is left of x. */
static double lead_of(const spmv_solver *s)
{
    const bool alone = !context_on_device(s->ctx) && s->a.rows + s->a.nnz < TEAM_WORTH_AWAKE;
    return (alone ? 1 : LEAD) / (s->options.accuracy > 0 ? 1 + CORRECTIONS : 1);
}

double solver_worth_direct(const spmv_solver *s)
{
    const double analysis = analysis_of(s);
    return may_be_direct(s) ? lead_of(s) * fmax(s->direct_takes, WORTH_ANALYSIS * analysis) : INFINITY;
}

double solver_direct_takes(spmv_solver *s, double left)
{
    if (!may_be_direct(s) || !analyse(s, left / lead_of(s)))
        return INFINITY;
    const double takes = s->direct_takes = analysis_of(s) + direct_expected(s->direct);
    if (!(left > lead_of(s) * takes)) /* what was analysed may not be the best */
        forget(s);
    return takes;
}

bool solver_direct_is_faster(spmv_solver *s, double left)
{
    return left > solver_worth_direct(s) && left > lead_of(s) * solver_direct_takes(s, left);
}

bool solver_direct_corrects(spmv_solver *s, double each)
{
    return s->direct != NULL || solver_direct_is_faster(s, each * CORRECTIONS / (1 + CORRECTIONS));
}

/* Copies x. */
static spmv_status copy(const struct chain *c, const void *from, void *to)
{
    spmv_plan_info info;
    const spmv_status st = spmv_plan_describe(c->plan, &info, sizeof info);
    return st != SPMV_OK
               ? st
               : spmv_map(c->s->ctx, SPMV_MAP_COPY, type_part(info.type), from, to, info.rows * type_parts(info.type));
}

/* Makes what a run needs. kept: memory for x. */
static spmv_status prepare(const struct chain *c, void **kept)
{
    spmv_status st = SPMV_OK;
    spmv_solver *const s = c->s;
    spmv_plan_info info;
    TRY(spmv_plan_describe(c->plan, &info, sizeof info));
    if (!may_be_direct(s) || !analyse(s, INFINITY))
        TRY(SPMV_ERROR_UNSUPPORTED);
    if (!direct_is_factored(s->direct))
        TRY(note_memory(s, direct_factor(s->direct, solver_matrix(s))));
    if (s->none == NULL)
        TRY(solver_make_precond(s, &krylov_minres, "none", &s->none));
    TRY(context_lend(s->ctx, info.rows * (int64_t)spmv_type_size(info.type), kept));
    TRY(copy(c, c->x, *kept));
done:
    return st;
}

spmv_status solver_run_direct(struct chain *c, spmv_status before)
{
    spmv_solver *const s = c->s;
    void *kept = NULL;
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    const spmv_cg_result reached = c->result[0];
    spmv_status st = prepare(c, &kept);
    if (st == SPMV_OK) {
        st = solver_run(c, &krylov_direct, s->none, c->most - solver_iterations(c));
        /* A is singular up to rounding, or nearly */
        if (st != SPMV_OK && st != SPMV_CANCELLED && !(c->result[0].true_residual < reached.true_residual)) {
            const spmv_status back = copy(c, kept, c->x);
            c->result[0].true_residual = reached.true_residual;
            st = back != SPMV_OK ? back : context_fail(s->ctx, before, "%s", sentence);
        }
    } else if (st != SPMV_CANCELLED) {
        st = context_fail(s->ctx, before, "%s", sentence);
    }
    context_take_back(s->ctx, kept);
    if (st != SPMV_OK) {
        forget(s);
        s->direct_takes = INFINITY;
    }
    return st;
}
