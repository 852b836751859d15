/* A race between two preconditioners under "auto": of conjugate gradients, of gmres, or of minres against
 * gmres with ilut. Facts of a matrix predict the iterations badly; the residuals of a solve do so better.
 * The table of precond_choose.c names the preconditioner that begins, and its rival.
 *
 * The first one runs until its work is that of the rival's set-up. Where the residuals then predict
 * that it has more work to do than the rival needs for all, the rival is made and goes on from the x
 * reached; otherwise the first one goes on, and is judged again at each later mark. The rival is
 * judged in the same way. So at most some twice the work of the better one is done, whatever the
 * matrix (ski rental: A. Karlin, M. Manasse, L. Rudolph and D. Sleator, "Competitive snoopy
 * caching", Algorithmica 3, 1988). They take turns, each with twice the work of the turn before,
 * until one ends. If the rival cannot be made or fails, the first one goes on.
 *
 * Work is counted, never timed (precond_costs.h). So a solve has the same bits in every run, for any number of
 * threads.
 *
 * The solver keeps the verdict for other right-hand sides and for new values.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/solver_race.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/choice.h"
#include "solvers/precond/precond_costs.h"
#include "solvers/solver_internal.h"

/* ------------------------------------------------------------- the judge */

struct judge judge_of(spmv_cg_fn on_iteration, void *user, const spmv_cg_result *result, int64_t begin, int64_t least,
                      double most)
{
    enum { PARTS = 8 }; /* of the time to the first verdict */
    return (struct judge){.on_iteration = on_iteration,
                          .user = user,
                          .result = result,
                          .columns = 1,
                          .least = least,
                          .most = most,
                          .lowest = INFINITY,
                          .width = max_i64(1, least / PARTS),
                          .begin = begin,
                          .left = INFINITY};
}

static double tolerance_of(const struct judge *j)
{
    double tolerance = j->result->tolerance;
    for (int v = 1; v < j->columns; v++)
        tolerance = fmax(tolerance, j->result[v].tolerance);
    return tolerance;
}

/* The rate at which the residual has fallen since this mark, in logarithms an iteration. */
static double rate_since(const struct judge *j, int mark)
{
    return log(j->low[mark] / j->low[j->marks - 1]) / (double)((j->marks - 1 - mark) * j->width);
}

/* The residual is taken to go on falling as in the last half or in the last quarter of the iterations
 * so far, whichever is faster: residuals of conjugate gradients fall faster in the end. */
static double iterations_left(const struct judge *j)
{
    const int last = j->marks - 1, half = j->marks / 2 - 1, quarter = j->marks - 1 - (j->marks + 3) / 4;
    if (half < 0)
        return INFINITY;
    const double rate = fmax(rate_since(j, half), rate_since(j, quarter));
    return rate > 0 ? fmax(0, log(j->low[last] / tolerance_of(j))) / rate : INFINITY;
}

static void merge_marks(struct judge *j)
{
    for (int i = 0; i < JUDGE_MARKS / 2; i++)
        j->low[i] = fmin(j->low[2 * i], j->low[2 * i + 1]);
    j->marks = JUDGE_MARKS / 2;
    j->width *= 2;
}

int judge_tell(int64_t iteration, double residual, void *user)
{
    struct judge *const j = user;
    if (j->on_iteration != NULL) {
        const int cancels = j->on_iteration(iteration, residual, j->user);
        if (cancels != 0)
            return cancels;
    }
    if (iteration <= j->begin || j->stopped || !(tolerance_of(j) > 0))
        return j->stopped;
    j->lowest = fmin(j->lowest, residual);
    if ((iteration - j->begin) % j->width != 0)
        return 0;
    j->low[j->marks++] = j->lowest;
    j->lowest = INFINITY;
    j->left = iterations_left(j);
    j->stopped = iteration - j->begin >= j->least && j->left > j->most;
    if (j->marks == JUDGE_MARKS)
        merge_marks(j);
    return j->stopped;
}

int judge_show(int64_t iteration, double residual, const void *x, void *user)
{
    const struct judge *const j = user;
    return j->on_iterate(iteration, residual, x, j->user);
}

/* ------------------------------------------------------------- the race */

/* One of the two. */
struct runner {
    const char *name;
    const struct krylov_solver *solver;
    spmv_preconditioner **precond; /* in the solver */
    struct precond_cost cost;
    double spent, left; /* work; left: by the last verdict */
    int64_t iterations;
};

/* On a GPU, the first set-up of multigrid in a process loads its kernels: microseconds, a part of that. Whether
 * they are loaded must not decide. A preconditioner that is no part of the solver's kernels takes some launches a
 * step. */
static const double LOADING = 9000, LAUNCHES = 35;

/* Residuals of other right-hand sides may fall more slowly than expected. ic0 takes this share of the iterations
 * of jacobi. */
static const double MARGIN = 1.3, IC0_SHARE = 0.35;

/* What runs against this solver with this preconditioner; NULL: nothing. */
static const char *rival_of(const struct krylov_solver *solver, const spmv_preconditioner *precond)
{
    if (solver == &krylov_minres)
        return "ilut";
    return solver == &krylov_cg || solver == &krylov_gmres ? precond_rival(precond) : NULL;
}

/* first: the solver that begins. */
static struct runner runner_of(const struct chain *c, const struct krylov_solver *first, const char *name,
                               spmv_preconditioner **precond)
{
    const spmv_solver *const s = c->s;
    const bool gpu = context_on_device(s->ctx);
    struct precond_cost cost = precond_cost(gpu, solver_purpose(first), name, s->a.rows, s->a.nnz, false);
    const double expected = precond_expected(s->precond);
    if (cost.setup == 0 && expected > 0 && first != &krylov_minres)
        cost.steps = MARGIN * expected;
    else if (strcmp(name, "ic0") == 0 && expected > 0)
        cost.steps = IC0_SHARE * MARGIN * expected;
    if (gpu && strcmp(name, "amg") == 0)
        cost.setup += LOADING;
    if (strcmp(name, "cholesky") == 0)
        cost.setup += precond_rival_setup(s->precond);
    const spmv_preconditioner *const m = *precond; /* NULL: not made yet */
    if (gpu && cost.setup == 0 && m != NULL && !precond_is_identity(m) && precond_inverse_diagonal(m) == NULL)
        cost.step += LAUNCHES;
    cost.step *= c->columns;
    return (struct runner){.name = name,
                           .solver = first->symmetric && precond_is_unsymmetric(name) ? &krylov_gmres : first,
                           .precond = precond,
                           .cost = cost,
                           .left = INFINITY};
}

/* As many iterations as this work is, at least some. */
static int64_t iterations_of(double work, const struct precond_cost *of)
{
    enum { FEWEST = 4 };
    return max_i64(FEWEST, (int64_t)fmin(0x1p50, ceil(work / of->step)));
}

/* One turn: until the end, or until so much work is done and more than `most` is predicted to be left. */
static spmv_status turn(struct chain *c, struct runner *r, double work, double most, bool *stopped)
{
    spmv_solver *const s = c->s;
    const int64_t before = solver_iterations(c);
    struct judge judge = judge_of(s->options.on_iteration, s->options.user, c->result, before,
                                  iterations_of(work, &r->cost), most / r->cost.step);
    judge.columns = c->columns;
    c->judge = &judge;
    const spmv_status st = solver_run(c, r->solver, *r->precond, c->most - before);
    c->judge = NULL;
    *stopped = judge.stopped && st == SPMV_CANCELLED;
    r->spent += (double)(solver_iterations(c) - before) * r->cost.step;
    r->iterations += solver_iterations(c) - before;
    r->left = judge.left * r->cost.step;
    return st;
}

/* "about 900 iterations", for a reason. */
static void write_left(const struct runner *r, char text[64])
{
    const double left = r->left / r->cost.step;
    if (left < 1e6)
        snprintf(text, 64, "about %.2g were left", fmax(left, 1));
    else
        snprintf(text, 64, "the residual did not fall");
}

void solver_take_verdict(spmv_solver *s)
{
    if (s->won != s->solver)
        snprintf(s->why, sizeof s->why, "found while solving: it takes less work than %s", s->solver->name);
    s->solver = s->won;
}

/* The verdict: the solver keeps the winner, and the reason. The other one is destroyed. */
static void settle(spmv_solver *s, const struct runner *winner, const struct runner *loser)
{
    char left[64];
    write_left(loser, left);
    spmv_preconditioner *const best = *winner->precond, *const other = *loser->precond;
    s->began = s->solver;
    s->won = winner->solver;
    s->precond = best;
    s->rival = NULL;
    s->settled = true;
    snprintf(s->verdict, sizeof s->verdict, "%s", precond_name(best));
    snprintf(s->why_verdict, sizeof s->why_verdict,
             "found while solving: after %lld iterations with %s %s; with %s it took %lld in all",
             (long long)loser->iterations, loser->name, left, winner->name, (long long)winner->iterations);
    snprintf(best->why, sizeof best->why, "%s", s->why_verdict);
    solver_take_verdict(s);
    snprintf(s->why_used, sizeof s->why_used, "%s", s->why);
    spmv_preconditioner_destroy(other); /* at the end of the solve, if that began with it */
}

bool solver_races(const spmv_solver *s, const struct krylov_solver *solver, const spmv_preconditioner *precond)
{
    return !s->settled && precond != NULL && precond == s->precond && rival_of(solver, precond) != NULL &&
           solver_may_follow(s, SPMV_ERROR_ITERATIONS);
}

int64_t solver_iterations(const struct chain *c)
{
    int64_t most = 0;
    for (int v = 0; v < c->columns; v++)
        most = max_i64(most, c->result[v].iterations);
    return most;
}

spmv_status solver_fail_limit(const struct chain *c)
{
    const spmv_cg_result *first = NULL; /* that is not solved */
    for (int v = 0; v < c->columns; v++)
        if (c->columns == 1 || c->result[v].status == SPMV_CANCELLED) {
            c->result[v].status = SPMV_ERROR_ITERATIONS;
            first = first != NULL ? first : &c->result[v];
        }
    return first == NULL
               ? SPMV_OK
               : context_fail(c->s->ctx, SPMV_ERROR_ITERATIONS,
                              "spmv_solver_solve: the residual is %.3g after %lld iterations; the tolerance is %.3g",
                              first->true_residual, (long long)first->iterations, first->tolerance);
}

/* Turns that are judged; then the one that has less to do runs to the end. */
enum { TURNS = 4 };

/* On a GPU, nothing else than jacobi is left where factors are refused. */
enum { PACE_ON_DEVICE = 4 };

/* Makes the rival. Incomplete factors may take as much work as the table of costs says, unless they were
 * already refused for that: if ilu0 stands in for them. A complete one may take as much as the first is predicted
 * to need, or if it makes no progress four times what it has done. */
static spmv_status make_rival(spmv_solver *s, const struct runner *first, const struct runner *r)
{
    const double most = isfinite(first->left) ? first->left : 4 * first->spent;
    const bool refused = strcmp(precond_name(s->precond), "ilu0") == 0;
    if (s->rival != NULL)
        return SPMV_OK;
    const int64_t work = precond_factor_work(&s->a) * (context_on_device(s->ctx) ? PACE_ON_DEVICE : 1);
    if (strcmp(r->name, "cholesky") == 0)
        context_pace(s->ctx, (int64_t)fmin(0x1p62, precond_products(&s->a, most)));
    else
        context_pace(s->ctx, r->solver == &krylov_gmres && !refused ? work : 0);
    const spmv_status st = solver_make_precond(s, r->solver, r->name, &s->rival);
    context_pace(s->ctx, 0);
    return st;
}

static spmv_status run_to_the_end(struct chain *c, const struct runner *r)
{
    return solver_run_share(c, r->solver, *r->precond);
}

spmv_status solver_race(struct chain *c, const struct krylov_solver *solver)
{
    spmv_solver *const s = c->s;
    struct runner runner[2] = {runner_of(c, solver, precond_name(s->precond), &s->precond),
                               runner_of(c, solver, rival_of(solver, s->precond), &s->rival)};
    struct runner *const first = runner, *const rival = runner + 1, *now = first, *other = rival;
    bool stopped = false;
    now->spent = now->cost.setup;
    /* what is expected to end soon, or before the other one, is not stopped before */
    const double least = fmax(now->cost.setup, other->cost.setup);
    const double expected = now->cost.setup == 0 ? precond_cost_of_all(&now->cost) : precond_cost_of_all(&other->cost);
    double work = fmax(least, fmin(expected, 3 * least));
    /* of the rival, which nobody has seen run */
    double most = fmax(precond_cost_of_all(&other->cost), now->cost.setup);
    spmv_status st = turn(c, now, work, most, &stopped);
    if (!stopped)
        return st;
    spmv_status made = make_rival(s, first, rival);
    const char *const spare = precond_spare(s->precond);
    if (made != SPMV_OK && made != SPMV_CANCELLED && spare != NULL && strcmp(spare, rival->name) != 0) {
        *rival = runner_of(c, solver, spare, &s->rival);
        if (first->left > precond_cost_of_all(&rival->cost))
            made = make_rival(s, first, rival);
    }
    if (made == SPMV_CANCELLED)
        return made;
    if (made != SPMV_OK) { /* there is no other one */
        s->settled = true;
        return run_to_the_end(c, first);
    }
    other->spent = other->cost.setup;
    work = now->spent;
    for (int i = 1; stopped && i < TURNS && solver_iterations(c) < c->most; i++) {
        struct runner *const before = now;
        now = other;
        other = before;
        /* no progress so far does not mean that there will be none */
        most = fmin(other->left, 4 * (now->spent + other->spent));
        st = turn(c, now, work, most, &stopped);
        work *= 2;
    }
    if (solver_iterations(c) >= c->most)
        return stopped ? solver_fail_limit(c) : st;
    if (stopped ? other->left < now->left : now == rival && solver_may_follow(s, st)) {
        struct runner *const before = now;
        now = other;
        other = before;
        st = run_to_the_end(c, now);
    } else if (stopped) {
        st = run_to_the_end(c, now);
    }
    if (st == SPMV_OK)
        settle(s, now, other);
    return st;
}
