/* A race between two preconditioners under "auto": of conjugate gradients, of gmres, or of minres against
 * gmres with ilut. Facts of a matrix predict the iterations badly; the residuals of a solve do so better,
 * and a solve with a sample of the matrix does so best, where it costs little (solver_sample.c). The table of
 * precond_choose.c, or for gmres the sample, names the preconditioner that begins, and its rival.
 *
 * The first one runs until its work is that of the rival's set-up. Where the residuals then predict that
 * it has more work to do than the rival needs for all, the rival is made and goes on from the x reached;
 * otherwise the first one goes on, and is judged again at each later mark. The rival is judged in the same way. So at
 * most some twice the work of the better one is done, whatever the matrix (ski rental: A. Karlin, M.
 * Manasse, L. Rudolph and D. Sleator, "Competitive snoopy caching", Algorithmica 3, 1988). They take
 * turns, each with twice the work of the turn before, until one ends. If the rival cannot be made or
 * fails, the first one goes on. Conjugate gradients for one right-hand side on a host then go on as if
 * they had not been stopped: only the work of the other one is lost.
 *
 * On a GPU, where set-ups take milliseconds, three or four take part (race_on_device).
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
#include "solvers/solver_sample.h"

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
    /* what few iterations predict is less certain, and that there is no progress is no prediction, unless residuals fall
     * evenly; and the longer it runs, the more often has it been predicted to end */
    const double ran = (double)(iteration - j->begin), part = fmax(j->share, (double)j->least / ran);
    const bool late = ran >= (double)j->least, due = late || (j->first > 0 && ran >= (double)j->first);
    const bool known = late || j->even || isfinite(j->left);
    j->stopped = due && known && j->left > j->most * (j->even && !late ? sqrt(part) : part);
    if (j->stopped && j->allows != NULL)
        j->stopped = j->allows(j);
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
    bool out; /* it cannot be made, or has failed */

    /* Of conjugate gradients on the host, where they were stopped: there they go on. x: NULL: nothing is kept,
     * and a solver goes on from the x that the other one has reached. recurrence: for one right-hand side. */
    void *x;
    bool kept;
    struct krylov_recurrence recurrence;
};

/* On a GPU, a preconditioner that is no part of the solver's kernels takes some launches a step: microseconds. */
static const double LAUNCHES = 35;

/* Residuals of other right-hand sides may fall more slowly than expected. ic0 takes this share of the iterations
 * of jacobi. */
static const double MARGIN = 1.3, IC0_SHARE = 0.35;

static bool is_named(const char *name, const char *other)
{
    return name != NULL && strcmp(name, other) == 0;
}

/* Whether there is a preconditioner of this name for the solver, also on ranks. */
static bool exists(const spmv_solver *s, const struct krylov_solver *solver, const char *name)
{
    return s->ranks == NULL || s->ranks->has(s->ranks->self, solver_purpose(solver_with_precond(solver, name)), name);
}

/* What follows jacobi or none under minres, after conjugate gradients: a factor of A, or on a GPU of its inverse. */
static const char *factor_of_indefinite(const spmv_solver *s)
{
    return context_on_device(s->ctx) ? "fsai" : "ic0";
}

static bool takes_factor(const spmv_solver *s, const spmv_preconditioner *precond)
{
    const bool simple = precond_inverse_diagonal(precond) != NULL || precond_is_identity(precond);
    return s->solver == &krylov_cg && simple && exists(s, &krylov_minres, factor_of_indefinite(s));
}

/* Whether jacobi was made of rows matched to columns, since diagonal entries are 0 or tiny. Then factors without fill-in
 * rarely do: of gemat11, gemat12, lns_3937 and hangGlider_2 those of isai fail, which ilut solves. */
static bool is_matched(const spmv_preconditioner *precond)
{
    return is_named(precond_name(precond), "jacobi") && precond_inverse_diagonal(precond) == NULL;
}

/* What runs against this solver with this preconditioner; NULL: nothing. */
static const char *rival_of(const spmv_solver *s, const struct krylov_solver *solver,
                            const spmv_preconditioner *precond)
{
    const char *rival = precond_rival(precond);
    if (solver == &krylov_minres)
        rival = takes_factor(s, precond) ? factor_of_indefinite(s) : "ilut";
    else if (solver != &krylov_cg && solver != &krylov_gmres)
        rival = NULL;
    else if (is_named(rival, "isai") && is_matched(precond))
        rival = "ilut";
    return rival != NULL && exists(s, solver, rival) ? rival : NULL;
}

/* first: the solver that begins. */
static struct runner runner_of(const struct chain *c, const struct krylov_solver *first, const char *name,
                               spmv_preconditioner **precond)
{
    const spmv_solver *const s = c->s;
    const bool gpu = context_on_device(s->ctx);
    const spmv_csr sizes = solver_sizes(s);
    struct precond_cost cost = precond_cost(gpu, solver_purpose(first), name, sizes.rows, sizes.nnz,
                                            precond_has_nodes(s->precond) ? PRECOND_NODES : 0);
    const double expected = precond_expected(s->precond);
    const struct precond_estimate *const sampled = precond_sampled(s->precond, name);
    if (sampled != NULL)
        cost = sampled->cost;
    else if (cost.setup == 0 && expected > 0 && first != &krylov_minres)
        cost.steps = MARGIN * expected;
    else if (strcmp(name, "ic0") == 0 && expected > 0)
        cost.steps = IC0_SHARE * MARGIN * expected;
    if (strcmp(name, "cholesky") == 0)
        cost.setup += precond_rival_setup(s->precond);
    const spmv_preconditioner *const m = *precond; /* NULL: not made yet */
    if (gpu && cost.setup == 0 && m != NULL && !precond_is_identity(m) && precond_inverse_diagonal(m) == NULL)
        cost.step += LAUNCHES;
    if (gpu)
        cost.setup += precond_setup_of_longest(name, c->plan->longest_row);
    cost.step *= c->columns;
    return (struct runner){
        .name = name, .solver = solver_with_precond(first, name), .precond = precond, .cost = cost, .left = INFINITY};
}

/* As many iterations as this work is, at least some. */
static int64_t iterations_of(double work, const struct precond_cost *of)
{
    enum { FEWEST = 4 };
    return max_i64(FEWEST, (int64_t)fmin(0x1p50, ceil(work / of->step)));
}

/* The judge of a turn: until the end, or until so much work is done and more than `most` is predicted to be left. */
static struct judge judge_for(const struct chain *c, const struct runner *r, double work, double most)
{
    const spmv_solver_options *const o = &c->s->options;
    struct judge judge = judge_of(o->on_iteration, o->user, c->result, solver_iterations(c),
                                  iterations_of(work, &r->cost), most / r->cost.step);
    judge.columns = c->columns;
    return judge;
}

/* The bytes of a vector of the solve. */
static spmv_status vector_bytes(const struct chain *c, int64_t *bytes)
{
    spmv_plan_info info;
    const spmv_status st = spmv_plan_describe(c->plan, &info, sizeof info);
    *bytes = st == SPMV_OK ? info.rows * c->columns * (int64_t)spmv_type_size(info.type) : 0;
    return st;
}

/* Memory in which a runner keeps its state. */
static spmv_status keep_state(const struct chain *c, struct runner *r)
{
    spmv_status st = SPMV_OK;
    int64_t bytes = 0;
    if (context_on_device(c->s->ctx) || r->solver != &krylov_cg)
        return SPMV_OK;
    TRY(vector_bytes(c, &bytes));
    TRY(context_lend(c->s->ctx, bytes, &r->x));
    if (c->columns == 1) {
        TRY(context_lend(c->s->ctx, bytes, &r->recurrence.r));
        TRY(context_lend(c->s->ctx, bytes, &r->recurrence.p));
    }
done:
    return st;
}

static void drop_state(const struct chain *c, struct runner *r)
{
    context_take_back(c->s->ctx, r->x);
    context_take_back(c->s->ctx, r->recurrence.r);
    context_take_back(c->s->ctx, r->recurrence.p);
}

static spmv_status copy_x(const struct chain *c, const void *from, void *to)
{
    spmv_plan_info info;
    const spmv_status st = spmv_plan_describe(c->plan, &info, sizeof info);
    return st != SPMV_OK ? st
                         : spmv_map(c->s->ctx, SPMV_MAP_COPY, type_part(info.type), from, to,
                                    info.rows * c->columns * type_parts(info.type));
}

/* Goes on where the runner was stopped. */
static spmv_status resume(struct chain *c, struct runner *r)
{
    c->recurrence = r->recurrence.p != NULL ? &r->recurrence : NULL;
    return r->kept ? copy_x(c, r->x, c->x) : SPMV_OK;
}

/* On a GPU, steps follow the one after which a solver is stopped: they may have been enough. */
static bool has_converged(const struct chain *c)
{
    for (int v = 0; v < c->columns; v++) {
        const spmv_cg_result *const r = &c->result[v];
        const bool measured = r->status == SPMV_OK || r->status == SPMV_CANCELLED;
        if (!measured || !(r->true_residual <= r->tolerance))
            return false;
    }
    for (int v = 0; v < c->columns; v++)
        c->result[v].status = SPMV_OK;
    c->s->ctx->error[0] = '\0'; /* that it was stopped is no failure */
    return true;
}

static spmv_status take_turn(struct chain *c, struct runner *r, struct judge *judge, bool *stopped)
{
    spmv_status st = SPMV_OK;
    *stopped = false;
    TRY(resume(c, r));
    c->judge = judge;
    st = solver_run(c, r->solver, *r->precond, c->most - judge->begin);
    c->judge = NULL;
    if (judge->stopped && st == SPMV_CANCELLED && has_converged(c))
        st = SPMV_OK;
    *stopped = judge->stopped && st == SPMV_CANCELLED;
    r->spent += (double)(solver_iterations(c) - judge->begin) * r->cost.step;
    r->iterations += solver_iterations(c) - judge->begin;
    r->left = judge->left * r->cost.step;
    r->kept = *stopped && r->x != NULL;
    if (r->kept)
        TRY(copy_x(c, c->x, r->x));
done:
    c->recurrence = NULL;
    return st;
}

static spmv_status turn(struct chain *c, struct runner *r, double work, double most, bool *stopped)
{
    struct judge judge = judge_for(c, r, work, most);
    return take_turn(c, r, &judge, stopped);
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

/* The reason of the verdict, for the winner, which the solver has. */
static void write_verdict(spmv_solver *s, const struct runner *winner, const struct runner *loser)
{
    char left[64];
    write_left(loser, left);
    snprintf(s->why_verdict, sizeof s->why_verdict,
             "found while solving: after %lld iterations with %s %s; with %s it took %lld in all",
             (long long)loser->iterations, loser->name, left, winner->name, (long long)winner->iterations);
    snprintf(s->precond->why, sizeof s->precond->why, "%s", s->why_verdict);
}

/* Whether nothing but factors of A could take less: of cocg and bicgstab, which "auto" gives one preconditioner. */
static bool has_no_rival(const spmv_solver *s, const struct krylov_solver *solver, const spmv_preconditioner *precond)
{
    return (solver == &krylov_cocg || solver == &krylov_bicgstab) && rival_of(s, solver, precond) == NULL &&
           isfinite(solver_worth_direct(s));
}

/* The verdict: the solver keeps the winner, and the reason. The others are destroyed. */
static void settle(spmv_solver *s, const struct runner *winner, const struct runner *loser)
{
    spmv_preconditioner *const best = *winner->precond, *const all[] = {s->precond, s->rival, s->others[0],
                                                                        s->others[1]};
    _Static_assert(sizeof all / sizeof *all == 2 + SOLVER_OTHERS, "all are destroyed");
    solver_drop_adjoint(s);
    s->began = s->settled ? s->began : s->solver; /* a verdict may follow another one */
    s->won = winner->solver;
    s->precond = best;
    s->rival = NULL;
    memset(s->others, 0, sizeof s->others);
    s->settled = true;
    snprintf(s->verdict, sizeof s->verdict, "%s", precond_name(best));
    write_verdict(s, winner, loser);
    solver_take_verdict(s);
    snprintf(s->why_used, sizeof s->why_used, "%s", s->why);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) /* at last: names of runners are in them */
        if (all[i] != best)
            spmv_preconditioner_destroy(all[i]); /* at the end of the solve, if that began with it */
}

bool solver_races(const spmv_solver *s, const struct krylov_solver *solver, const spmv_preconditioner *precond)
{
    return !s->settled && precond != NULL && precond == s->precond &&
           (rival_of(s, solver, precond) != NULL || has_no_rival(s, solver, precond)) &&
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
enum { PACE_ON_DEVICE = 4, SAMPLED_TIMES = 2 };

/* Whether a factor with fill-in is the rival of multigrid. */
static bool follows_multigrid(const struct runner *first, const struct runner *rival)
{
    return strcmp(first->name, "amg") == 0 && strcmp(rival->name, "ilut") == 0;
}

/* The most work of making the rival; 0: any. By a sample twice what the first is predicted to need, or has done, or
 * what the rival is predicted to need. Else incomplete factors may take as much as the table of costs says, unless
 * they were already refused for that: if ilu0 stands in for them. Beside minres without a preconditioner, as of
 * saddle points, they may take as much as that has done. A complete one, and one that follows multigrid, may take as
 * much as the first is predicted to need, or if it makes no progress four times what it has done. */
static int64_t most_work(const spmv_solver *s, const struct runner *first, const struct runner *rival)
{
    const double most = isfinite(first->left) ? first->left : 4 * first->spent;
    const spmv_csr sizes = solver_sizes(s);
    const int64_t as_much = (int64_t)fmin(0x1p62, precond_products(&sizes, most));
    const int64_t work = precond_factor_work(&sizes) * (context_on_device(s->ctx) ? PACE_ON_DEVICE : 1);
    if (strcmp(rival->name, "cholesky") == 0)
        return as_much;
    const bool is_amg = is_named(rival->name, "amg") && first->solver == &krylov_cg && !context_on_device(s->ctx) &&
                        s->ranks == NULL;                             /* ranks do not count it */
    if (is_amg || precond_sampled(s->precond, first->name) != NULL) { /* gmres without progress: any */
        const double all = precond_cost_of_all(&rival->cost);
        const double steps = SAMPLED_TIMES * fmax(first->spent, is_amg ? fmin(most, all) : fmax(most, all));
        return isfinite(first->left) || first->solver->symmetric
                   ? precond_work_of(solver_purpose(first->solver), rival->name, sizes.rows, sizes.nnz, steps)
                   : 0;
    }
    if (follows_multigrid(first, rival))
        return max_i64(work, as_much);
    if (first->solver == &krylov_minres && strcmp(first->name, "none") == 0)
        return max_i64(work, (int64_t)fmin(0x1p62, precond_products(&sizes, first->spent)));
    return rival->solver == &krylov_gmres && strcmp(first->name, "ilu0") != 0 ? work : 0;
}

static spmv_status make_rival(spmv_solver *s, const struct runner *first, const struct runner *r)
{
    if (*r->precond != NULL)
        return SPMV_OK;
    context_pace(s->ctx, most_work(s, first, r));
    const spmv_status st = solver_make_precond(s, r->solver, r->name, r->precond);
    context_pace(s->ctx, 0);
    return st;
}

/* Another rival, in the memory of the last one. */
static void replace_rival(const struct chain *c, const struct runner *first, struct runner *rival, const char *name)
{
    const struct runner last = *rival;
    *rival = runner_of(c, first->solver, name, &c->s->rival);
    rival->x = last.x;
    rival->recurrence = (struct krylov_recurrence){.r = last.recurrence.r, .p = last.recurrence.p};
}

static spmv_status run_to_the_end(struct chain *c, struct runner *r)
{
    const int64_t before = solver_iterations(c);
    spmv_status st = resume(c, r);
    if (st == SPMV_OK)
        st = solver_run_share(c, r->solver, *r->precond);
    c->recurrence = NULL;
    r->iterations += solver_iterations(c) - before;
    return st;
}

/* ------------------------------------------------------------- a sample */

enum {
    BEFORE_SAMPLE = 30,
    MINRES_BEFORE_SAMPLE = 60, /* its residuals fall in steps */
    WORTH_A_SAMPLE = 150,      /* steps that are left: a sample costs about as much */
    BEYOND_SAMPLE = 10,
    CANDIDATES = 5,
    MINRES_ROWS = 1000 /* minres mostly takes hundreds of steps: from so many rows on a sample costs a part of them */
};

/* So much less must another one take: it begins anew. */
static const double SAMPLE_LEAD = 1.1;

static bool may_sample(const spmv_solver *s, int64_t least_rows)
{
    spmv_plan_info info;
    return !context_on_device(s->ctx) && s->ranks == NULL && s->a.rows >= least_rows &&
           solver_may_follow(s, SPMV_ERROR_ITERATIONS) && spmv_plan_describe(s->plan, &info, sizeof info) == SPMV_OK &&
           !type_is_complex(info.type);
}

bool solver_may_sample(const spmv_solver *s)
{
    return may_sample(s, PRECOND_SAMPLED_ROWS);
}

/* Laplacians with equal diagonal entries: the rows along a side tell how many iterations none takes. */
static bool iterations_are_known(const spmv_solver *s, const struct runner *first)
{
    return is_named(first->name, "none") && precond_expected(s->precond) > 0;
}

/* The candidates, the first one first, and their costs. Steps: what a sample tells. */
static int list_candidates(const struct chain *c, const struct runner *first, struct precond_estimate *list)
{
    static const char *const for_cg[] = {"ic0", "fsai", "amg", "cholesky"};
    static const char *const for_minres[] = {"ic0", "fsai", "ilut", "ilu0"};
    const char *const *const names = first->solver == &krylov_cg ? for_cg : for_minres;
    int count = 0;
    list[count++] = (struct precond_estimate){first->name, first->cost};
    for (int i = 0; i < CANDIDATES - 1; i++)
        if (strcmp(names[i], "cholesky") != 0 || is_named(precond_spare(c->s->precond), "cholesky"))
            list[count++] =
                (struct precond_estimate){names[i], runner_of(c, first->solver, names[i], &c->s->rival).cost};
    return count;
}

static spmv_status try_candidates(const struct chain *c, const struct runner *first, struct precond_estimate *list,
                                  int count, char *words, size_t size)
{
    spmv_plan_info info;
    const spmv_status st = spmv_plan_describe(c->plan, &info, sizeof info);
    const struct sample_source source = {
        .a = solver_matrix(c->s), .options = &c->s->precond_options, .type = info.type, .rtol = c->s->options.rtol};
    return st == SPMV_OK ? solver_sample_try(c->s->ctx, &source, first->solver, list, count, words, size) : st;
}

/* Adds to the verdict what the sample has told. */
static void tell_sample(spmv_solver *s, const char *words, const struct runner *first, const struct runner *rival)
{
    if (!s->settled)
        return;
    snprintf(s->why_verdict, sizeof s->why_verdict, "found while solving: %s; with %s it took %lld", words, s->verdict,
             (long long)(is_named(s->verdict, first->name) ? first : rival)->iterations);
    snprintf(s->precond->why, sizeof s->precond->why, "%s", s->why_verdict);
}

/* The candidate that takes least, but for the first. */
static struct precond_estimate *best_of(struct precond_estimate *list, int count)
{
    struct precond_estimate *best = NULL;
    for (int i = 1; i < count; i++)
        if (isfinite(list[i].cost.steps) &&
            (best == NULL || precond_cost_of_all(&list[i].cost) < precond_cost_of_all(&best->cost)))
            best = &list[i];
    return best;
}

/* Balls whose rim is fixed all around may tell of up to twice as many iterations as the whole takes (solver_sample.c).
 * The first one's own residuals show that; the others, but multigrid, which does not depend on the size, are corrected
 * by the same factor. Then the steps of the first are those that are left. */
static void correct_by_residuals(struct precond_estimate *list, int count, const struct runner *first)
{
    const double ran = (double)first->iterations, sampled = list[0].cost.steps;
    const double steps = fmin(sampled, fmax(sampled / 2, ran + first->left / first->cost.step));
    for (int i = 1; i < count && isfinite(sampled); i++)
        if (!is_named(list[i].name, "amg") && !is_named(list[i].name, "cholesky"))
            list[i].cost.steps *= steps / sampled;
    list[0].cost.steps = fmax(1, steps - ran);
}

/* ------------------------------------------------------------- direct */

/* Nanoseconds of the work of one step without a preconditioner, in which work is counted; on a GPU of a microsecond. A
 * complex number has two parts, and factors, which are those of a real matrix, four entries for each of A. */
static double step_time(const struct chain *c, const struct runner *first)
{
    const spmv_csr sizes = solver_sizes(c->s);
    const int parts = type_parts(c->plan->type);
    return (first->cost.setup > 0 ? parts * parts : parts) *
           precond_nanoseconds(context_on_device(c->s->ctx), solver_purpose(first->solver), sizes.rows, sizes.nnz, 1);
}

double solver_iterations_take(const struct chain *c, int64_t iterations)
{
    spmv_preconditioner *precond = (spmv_preconditioner *)c->s->used_precond;
    const struct runner used = runner_of(c, c->s->used, precond_name(precond), &precond);
    return (double)iterations * used.cost.step * step_time(c, &used);
}

/* What the rival is expected to take in all. */
static double work_of_rival(const struct runner *first, const struct runner *rival)
{
    const double all = precond_cost_of_all(&rival->cost);
    return first->solver == &krylov_minres && is_named(rival->name, "ilut") ? UNSURE_ILUT * all : all;
}

/* On a GPU, where a step of conjugate gradients takes microseconds, factors wait until this part of their time has been
 * spent: what ends before costs no more, and where they are right, that part is lost. */
static const double BEFORE_FACTORS = 0.125;

/* Whether factors of A, made by a module, take much less than this work, which is left of the better one. */
static bool takes_direct(const struct chain *c, const struct runner *first, double work)
{
    const double step = step_time(c, first), spent = first->spent * step;
    const bool waits = context_on_device(c->s->ctx) && first->solver == &krylov_cg;
    return c->columns == 1 && solver_iterations(c) < c->most &&
           (!waits || spent >= BEFORE_FACTORS * solver_worth_direct(c->s)) &&
           solver_direct_is_faster(c->s, work * step) && (!waits || spent >= BEFORE_FACTORS * c->s->direct_takes);
}

/* With more work left, that is asked. */
static double worth_direct(const struct chain *c, const struct runner *first)
{
    return c->columns == 1 ? solver_worth_direct(c->s) / step_time(c, first) : INFINITY;
}

/* Goes on with direct, from the x reached. SPMV_ERROR_LIMIT: there are no factors. */
static spmv_status go_direct(struct chain *c, struct runner *first)
{
    spmv_solver *const s = c->s;
    struct runner direct = {.name = "direct", .solver = &krylov_direct, .precond = &s->none};
    const int64_t before = solver_iterations(c);
    const spmv_status st = solver_run_direct(c, SPMV_ERROR_LIMIT);
    if (st != SPMV_OK)
        return st;
    direct.iterations = solver_iterations(c) - before;
    settle(s, &direct, first);
    s->none = NULL; /* it is s->precond */
    snprintf(s->why_used, sizeof s->why_used, "%.60s: %.90s", s->why, direct_brief(s->direct));
    return SPMV_OK;
}

/* ------------------------------------------------------------- by residuals */

/* Whether the first one has failed, before it was judged. */
static bool has_failed(const struct chain *c, const struct runner *first, spmv_status st)
{
    return first->solver != &krylov_minres && (st == SPMV_ERROR_STAGNATION || st == SPMV_ERROR_BREAKDOWN) &&
           solver_may_follow(c->s, st) && solver_iterations(c) < c->most;
}

/* The rival goes on alone after a failure. If it cannot be made, that failure remains. */
static spmv_status hand_over(struct chain *c, struct runner *first, struct runner *rival, spmv_status failure)
{
    spmv_solver *const s = c->s;
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    first->left = INFINITY;
    if (takes_direct(c, first, precond_cost_of_all(&rival->cost))) {
        const spmv_status st = go_direct(c, first);
        if (st != SPMV_ERROR_LIMIT)
            return st;
    }
    const spmv_status made = make_rival(s, first, rival);
    if (made != SPMV_OK)
        return made == SPMV_CANCELLED ? made : context_fail(s->ctx, failure, "%s", sentence);
    const spmv_status st = run_to_the_end(c, rival);
    if (st == SPMV_OK)
        settle(s, rival, first);
    return st;
}

/* minres, which would begin anew, is not stopped for a rival that cannot be made. */
struct attempt {
    struct chain *c;
    struct runner *first, *rival;
    spmv_status status;               /* of making the rival */
    bool direct;                      /* factors of A take much less than what is left: minres is stopped for them */
    struct judge later;               /* its limits, if a sample does not tell of a better one */
    char words[PRECOND_SENTENCE / 2]; /* what the sample tells */
};

static bool makes_rival(struct judge *judge)
{
    struct attempt *const a = judge->race;
    a->first->left = judge->left * a->first->cost.step;
    a->first->spent = (double)judge->least * a->first->cost.step;
    a->direct = takes_direct(a->c, a->first, fmin(a->first->left, work_of_rival(a->first, a->rival)));
    if (a->direct)
        return true;
    a->status = make_rival(a->c->s, a->first, a->rival);
    if (a->status == SPMV_OK || a->status == SPMV_CANCELLED)
        return true;
    judge->least *= 2; /* then the rival may take more work */
    if (judge->least >= SOLVER_SHARE) {
        solver_judge_share(a->c->s, judge);
        judge->allows = NULL;
    }
    return false;
}

/* Makes the best candidate by a sample, if it is better than to go on; else the residuals tell later. */
static bool samples_rival(struct judge *judge)
{
    struct attempt *const a = judge->race;
    struct runner *const first = a->first;
    struct precond_estimate list[CANDIDATES], *best = NULL;
    spmv_preconditioner *const m = *first->precond;
    judge->least = a->later.least;
    judge->most = a->later.most;
    judge->allows = makes_rival;
    const int count = list_candidates(a->c, first, list);
    a->status = try_candidates(a->c, first, list, count, a->words, sizeof a->words);
    if (a->status != SPMV_OK)
        return a->status == SPMV_CANCELLED;
    first->left = precond_cost_of_all(&list[0].cost); /* residuals often fall at first, and then stay level */
    best = best_of(list, count);
    a->direct =
        takes_direct(a->c, first, best != NULL ? fmin(first->left, precond_cost_of_all(&best->cost)) : first->left);
    if (a->direct)
        return true;
    while ((best = best_of(list, count)) != NULL && precond_cost_of_all(&best->cost) * SAMPLE_LEAD <= first->left) {
        m->sampled[0] = list[0];
        m->sampled[1] = *best;
        replace_rival(a->c, first, a->rival, best->name);
        a->status = make_rival(a->c->s, first, a->rival);
        if (a->status == SPMV_OK || a->status == SPMV_CANCELLED)
            return true;
        best->cost.steps = INFINITY;
    }
    replace_rival(a->c, first, a->rival, "ilut");
    return false;
}

/* A third one, if it is expected to end before both. */
static bool gives_way(const struct chain *c, const struct runner *first, const struct runner *rival)
{
    const char *const third = precond_spare(c->s->precond);
    if (first->solver != &krylov_gmres || third == NULL || is_named(third, rival->name) ||
        !exists(c->s, first->solver, third))
        return false;
    const struct precond_cost cost = runner_of(c, first->solver, third, rival->precond).cost;
    return precond_cost_of_all(&cost) < fmin(first->left, rival->left);
}

/* It may take any work: two others are slow. */
static spmv_status make_third(spmv_solver *s, struct runner *first, const struct runner *third)
{
    const double left = first->left;
    first->left = INFINITY;
    const spmv_status st = make_rival(s, first, third);
    first->left = left;
    return st;
}

/* No progress so far does not mean that there will be none: then so many times the work that was done is taken to be
 * left. */
static const double NO_PROGRESS = 4;

/* They take turns, the rival first, with so much work. */
static spmv_status alternate(struct chain *c, struct runner *first, struct runner *rival, double work)
{
    spmv_solver *const s = c->s;
    struct runner *now = first, *other = rival;
    spmv_status st = SPMV_OK;
    bool stopped = true;
    for (int i = 1; stopped && i < TURNS && solver_iterations(c) < c->most; i++) {
        struct runner *const before = now;
        now = other;
        other = before;
        const double most = fmin(other->left, NO_PROGRESS * (now->spent + other->spent)), end = now->spent + work;
        for (bool asks = true; asks;) {
            const double worth = worth_direct(c, first);
            st = turn(c, now, fmin(fmax(end - now->spent, 0), worth), fmin(most, worth), &stopped);
            const double left = fmin(first->left, rival->left), done = first->spent + rival->spent;
            if (stopped && takes_direct(c, first, fmin(left, NO_PROGRESS * done))) {
                st = go_direct(c, first);
                if (st != SPMV_ERROR_LIMIT)
                    return st;
            }
            asks = stopped && (now->spent < end || now->left <= most) && solver_iterations(c) < c->most;
        }
        const bool failed = has_failed(c, now, st);
        if (now == rival && (stopped || failed) && gives_way(c, first, rival)) {
            spmv_preconditioner_destroy(s->rival);
            s->rival = NULL;
            replace_rival(c, first, rival, precond_spare(s->precond));
            if (make_third(s, first, rival) != SPMV_OK) {
                st = run_to_the_end(c, first);
                if (st == SPMV_OK)
                    settle(s, first, rival);
                return st;
            }
            rival->spent = rival->cost.setup;
            work = fmax(work, rival->cost.setup);
            now = first;
            other = rival;
            stopped = true;
            i = 0;
        } else {
            work *= 2;
        }
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

/* gmres on a host is judged after this part of what is expected, and at least so many steps, since its iterations vary
 * much. Its residuals fall faster later: it goes on if no more than this many times the work of the rival is left. */
static const double GENERAL_SHARE = 0.25, GENERAL_MOST = 2;
enum { GENERAL_LEAST = 20 };

/* samples: whether minres may try a sample. */
static spmv_status race_by_residuals(struct chain *c, struct runner *first, struct runner *rival, bool samples)
{
    spmv_solver *const s = c->s;
    const spmv_csr sizes = solver_sizes(s);
    const bool general = !first->solver->symmetric;
    bool stopped = false;
    first->spent = first->cost.setup;
    /* what is expected to end soon, or before the other one, is not stopped before */
    const double least = fmax(first->cost.setup, rival->cost.setup);
    const double expected = first->cost.setup == 0            ? precond_cost_of_all(&first->cost)
                            : strcmp(first->name, "ic0") == 0 ? 0 /* its iterations cannot be told */
                                                              : precond_cost_of_all(&rival->cost);
    const double work = general ? fmax(GENERAL_LEAST, GENERAL_SHARE * first->cost.steps) * first->cost.step
                                : fmax(least, fmin(expected, 3 * least));
    /* of the rival, which nobody has seen run */
    const double most = fmax(precond_cost_of_all(&rival->cost), first->cost.setup) * (general ? GENERAL_MOST : 1);
    struct attempt attempt = {.c = c, .first = first, .rival = rival};
    struct judge judge = judge_for(c, first, work, most);
    judge.share = general ? 1 / GENERAL_MOST : 0; /* not for what takes longer than all that is left */
    if (first->solver == &krylov_minres && !context_on_device(s->ctx)) {
        attempt.later = judge;
        if (samples)
            judge = judge_for(c, first, MINRES_BEFORE_SAMPLE * first->cost.step, WORTH_A_SAMPLE * first->cost.step);
        judge.allows = samples ? samples_rival : makes_rival;
        judge.race = &attempt;
    }
    spmv_status st = take_turn(c, first, &judge, &stopped);
    if (attempt.status != SPMV_OK && attempt.status != SPMV_CANCELLED) { /* there is no other one */
        s->settled = true;
        return stopped ? solver_fail_limit(c) : st;
    }
    if (!stopped)
        return has_failed(c, first, st) ? hand_over(c, first, rival, st) : st;
    if (attempt.direct || takes_direct(c, first, fmin(first->left, work_of_rival(first, rival)))) {
        st = go_direct(c, first);
        if (st != SPMV_ERROR_LIMIT)
            return st;
    }
    spmv_status made = attempt.status != SPMV_OK ? attempt.status : make_rival(s, first, rival);
    /* again with more work, as long as the first one makes no progress */
    while (made == SPMV_ERROR_LIMIT && (general || follows_multigrid(first, rival)) &&
           most_work(s, first, rival) < precond_most_work(&sizes) && solver_iterations(c) < c->most) {
        st = turn(c, first, first->spent, most, &stopped);
        if (!stopped)
            return st;
        made = make_rival(s, first, rival);
    }
    const char *const spare = precond_spare(s->precond);
    if (made != SPMV_OK && made != SPMV_CANCELLED && spare != NULL && !is_named(spare, rival->name)) {
        replace_rival(c, first, rival, spare);
        if (first->left > precond_cost_of_all(&rival->cost))
            made = make_rival(s, first, rival);
    }
    if (made == SPMV_CANCELLED)
        return made;
    if (made != SPMV_OK) { /* there is no other one */
        s->settled = true;
        return run_to_the_end(c, first);
    }
    rival->spent = rival->cost.setup;
    const bool sampled = attempt.words[0] != '\0';
    st = alternate(c, first, rival, fmax(first->spent, sampled ? rival->cost.steps * rival->cost.step : 0));
    if (st == SPMV_OK && sampled)
        tell_sample(s, attempt.words, first, rival);
    return st;
}

/* ------------------------------------------------------------- on a GPU */

/* Conjugate gradients and gmres on a GPU begin anew in each turn, and go on from the x that the last one has reached. The
 * first one, its rival and others take part. Each runs until it is predicted to have more to do than another one is
 * expected to take: one that has run, what is left of it; another one, its set-up and the steps of the table of costs.
 * So none is made before its set-up has been spent, but what the first iterations predict may stop the first one sooner;
 * and each that is expected to take less than the best so far is tried, however long that would be. */
enum { CONTENDERS = 2 + SOLVER_OTHERS, TURNS_ON_DEVICE = 12 };

/* Steps that multigrid takes where errors are not smooth: 100 to 1500. */
enum { ROUGH_STEPS = 200 };

struct contest {
    struct chain *c;
    struct runner *runner[CONTENDERS], *now; /* first: what begins */
    struct runner other[SOLVER_OTHERS];
    int count;
};

/* Those that take part beside the first one and its rival. Under gmres isai solves more systems than multigrid, and ilut
 * more than isai. Under conjugate gradients multigrid is one of them where errors are not smooth. */
static void add_others(struct contest *all)
{
    static const char *const for_gmres[SOLVER_OTHERS] = {"isai", "ilut"};
    spmv_solver *const s = all->c->s;
    const struct runner *const first = all->runner[0], *const rival = all->runner[1];
    const bool general = first->solver == &krylov_gmres;
    for (int i = 0; i < (general ? SOLVER_OTHERS : 1); i++) {
        const char *const name = general ? for_gmres[i] : precond_spare(s->precond);
        if (name == NULL || is_named(name, rival->name) || !exists(s, first->solver, name) ||
            (is_named(name, "isai") && is_matched(s->precond)))
            continue;
        all->other[i] = runner_of(all->c, first->solver, name, &s->others[i]);
        if (is_named(name, "amg"))
            all->other[i].cost.steps = ROUGH_STEPS;
        all->runner[all->count++] = &all->other[i];
    }
}

/* From now on. */
static double expected_of(const struct runner *r)
{
    if (*r->precond == NULL)
        return precond_cost_of_all(&r->cost);
    return isfinite(r->left) ? r->left : NO_PROGRESS * r->spent;
}

/* The one that is expected to take least, but for `except`. NULL: all are out. */
static struct runner *best_but(const struct contest *all, const struct runner *except)
{
    struct runner *best = NULL;
    for (int i = 0; i < all->count; i++) {
        struct runner *const r = all->runner[i];
        if (r != except && !r->out && (best == NULL || expected_of(r) < expected_of(best)))
            best = r;
    }
    return best;
}

/* What another one is expected to take; INFINITY: there is none. */
static double least_beside(const struct contest *all)
{
    const struct runner *const best = best_but(all, all->now);
    return best != NULL ? expected_of(best) : INFINITY;
}

static double spent_by_all(const struct contest *all)
{
    double spent = 0;
    for (int i = 0; i < all->count; i++)
        spent += all->runner[i]->spent;
    return spent;
}

/* Work before a verdict. The first one: what the next set-up takes, but what is expected to end soon is not stopped
 * before. Another one: what its set-up has taken, or half of what another one has spent; in later turns, all of it. */
static double work_of_turn(const struct contest *all)
{
    static const double SOON = 3;
    const struct runner *const now = all->now;
    const struct runner *const next = best_but(all, now);
    double others = 0;
    for (int i = 0; i < all->count; i++)
        if (all->runner[i] != now && *all->runner[i]->precond != NULL)
            others = fmax(others, all->runner[i]->spent);
    if (now->iterations > 0)
        return fmax(others, now->spent / 4);
    if (now != all->runner[0])
        return fmax(now->cost.setup, others / 2);
    const double least = fmax(now->cost.setup, next != NULL ? next->cost.setup : 0),
                 expected = precond_cost_of_all(&now->cost);
    return now->cost.setup == 0 && expected <= SOON * least ? fmax(least, expected) : least;
}

/* Counted from what its residuals predict: the longer it has run beyond the work of a turn, the more often has it been
 * predicted to end. */
static double left_by(const struct judge *judge, const struct runner *r)
{
    const double ran = (double)judge->marks * (double)judge->width;
    return judge->left * r->cost.step * fmax(1, ran / (double)judge->least);
}

static bool may_take_direct(const struct contest *all, double left)
{
    const struct chain *const c = all->c;
    const struct runner *const first = all->runner[0];
    const double spent = spent_by_all(all), worth = worth_direct(c, first);
    return fmin(left, NO_PROGRESS * spent) > worth && (first->solver != &krylov_cg || spent >= BEFORE_FACTORS * worth);
}

/* It is stopped for another one, or for factors. */
static bool yields(struct judge *judge)
{
    struct contest *const all = judge->race;
    struct runner now = *all->now;
    const double left = left_by(judge, &now), others = least_beside(all),
                 ran = (double)judge->marks * (double)judge->width;
    if (others < left)
        return true;
    const double before = all->now->spent;
    all->now->spent = before + ran * now.cost.step;
    const bool is = may_take_direct(all, left);
    all->now->spent = before;
    return is;
}

static struct judge judge_turn(struct contest *all)
{
    enum { PART = 4, MARKS = 4 };
    const struct runner *const now = all->now;
    const double most = fmin(least_beside(all), worth_direct(all->c, all->runner[0]));
    struct judge judge = judge_for(all->c, now, work_of_turn(all), most);
    judge.allows = yields;
    judge.race = all;
    if (now == all->runner[0] && now->iterations == 0) {
        judge.even = now->solver == &krylov_gmres;
        judge.first = judge.even ? PRECOND_TRIAL : max_i64(1, judge.least / PART);
        judge.width = max_i64(1, min_i64(judge.width, judge.first / MARKS));
    }
    return judge;
}

/* Factors of A, where they take less than each of the others. SPMV_ERROR_LIMIT: they do not, or there are none. Where no
 * other one is left that could end, nothing is saved by what little has been spent. */
static spmv_status try_direct(const struct contest *all)
{
    struct runner *const first = all->runner[0];
    struct runner sum = *first;
    double left = INFINITY, most = INFINITY;
    sum.spent = spent_by_all(all);
    for (int i = 0; i < all->count; i++) {
        const struct runner *const r = all->runner[i];
        const double sure = is_named(r->name, "ilut") ? UNSURE_ILUT : 1;
        if (!r->out)
            left = fmin(left, *r->precond != NULL ? r->left : sure * precond_cost_of_all(&r->cost));
        if (!r->out && *r->precond != NULL)
            most = NO_PROGRESS * sum.spent;
    }
    return takes_direct(all->c, &sum, fmin(left, most)) ? go_direct(all->c, first) : SPMV_ERROR_LIMIT;
}

/* The next one, made. NULL: there is none; *st: SPMV_CANCELLED, or as it was. */
static struct runner *make_next(const struct contest *all, spmv_status *st)
{
    struct runner *next = best_but(all, NULL);
    while (next != NULL && *next->precond == NULL) {
        const spmv_status made = make_rival(all->c->s, all->now, next);
        if (made == SPMV_OK) {
            next->spent = next->cost.setup;
            break;
        }
        if (made == SPMV_CANCELLED) {
            *st = made;
            return NULL;
        }
        next->out = true;
        next = best_but(all, NULL);
    }
    return next;
}

/* What an earlier race has left, of another name. */
static void drop_other(spmv_preconditioner **precond, const char *name)
{
    if (*precond != NULL && !is_named(name, precond_name(*precond))) {
        spmv_preconditioner_destroy(*precond);
        *precond = NULL;
    }
}

static spmv_status race_on_device(struct chain *c, struct runner *first, struct runner *rival)
{
    spmv_solver *const s = c->s;
    struct contest all = {.c = c, .runner = {first, rival}, .now = first, .count = 2};
    char sentence[512];
    spmv_status st;
    add_others(&all);
    for (int i = 0; i < all.count; i++) {
        struct runner *const r = all.runner[i];
        drop_other(r->precond, r->name);
        r->spent = *r->precond != NULL ? r->cost.setup : 0;
    }
    for (int turn = 1;; turn++) {
        struct runner *const now = all.now;
        struct judge judge = judge_turn(&all);
        bool stopped = false;
        st = turn < TURNS_ON_DEVICE && isfinite(least_beside(&all)) ? take_turn(c, now, &judge, &stopped)
                                                                    : run_to_the_end(c, now);
        const bool failed =
            !stopped && (now == first ? has_failed(c, now, st) : st != SPMV_OK && solver_may_follow(s, st));
        if (!stopped && !failed)
            break;
        if (solver_iterations(c) >= c->most)
            return stopped ? solver_fail_limit(c) : st;
        now->out = failed;
        now->left = failed ? INFINITY : left_by(&judge, now);
        snprintf(sentence, sizeof sentence, "%s", failed ? spmv_last_error(s->ctx) : "");
        const spmv_status direct = try_direct(&all);
        if (direct != SPMV_ERROR_LIMIT)
            return direct;
        const spmv_status ended = st;
        all.now = make_next(&all, &st);
        if (all.now == NULL && st == SPMV_CANCELLED && ended != st)
            return st;
        if (all.now == NULL)
            return failed ? context_fail(s->ctx, ended, "%s", sentence) : st;
    }
    const struct runner *loser = NULL;
    for (int i = all.count - 1; i >= 0; i--)
        if (all.runner[i] != all.now && all.runner[i]->iterations > 0)
            loser = all.runner[i];
    if (st == SPMV_OK && loser != NULL)
        settle(s, all.now, loser);
    return st;
}

/* ------------------------------------------------------------- against direct alone */

static bool asks_direct(struct judge *judge)
{
    struct attempt *const a = judge->race;
    struct runner *const first = a->first;
    first->left = judge->left * first->cost.step;
    first->spent = (double)judge->least * first->cost.step;
    a->direct = takes_direct(a->c, first, fmin(first->left, NO_PROGRESS * first->spent));
    if (a->direct)
        return true;
    judge->least *= 2;
    judge->most = worth_direct(a->c, first) / first->cost.step;
    if (judge->least >= SOLVER_SHARE || !isfinite(judge->most)) {
        solver_judge_share(a->c->s, judge);
        judge->allows = NULL;
    }
    return false;
}

/* The solver is asked to stop where it has done the work of an analysis of A and has more to do than factors take. */
static spmv_status race_with_direct(struct chain *c, struct runner *first)
{
    bool stopped = false;
    const double worth = worth_direct(c, first);
    struct attempt attempt = {.c = c, .first = first};
    struct judge judge = judge_for(c, first, worth, worth);
    judge.allows = asks_direct;
    judge.race = &attempt;
    spmv_status st = take_turn(c, first, &judge, &stopped);
    if (!stopped)
        return st;
    if (!attempt.direct)
        return solver_fail_limit(c);
    st = go_direct(c, first);
    return st != SPMV_ERROR_LIMIT ? st : solver_run_share(c, first->solver, *first->precond);
}

/* ------------------------------------------------------------- by a sample */

/* A complete factor is as good as its estimate. Where it takes no longer than a sample, none is needed. SPMV_ERROR_LIMIT:
 * it takes longer, or more than is left of the first one, or cannot be made. */
static spmv_status try_complete(struct chain *c, struct runner *first, struct runner *rival)
{
    spmv_solver *const s = c->s;
    const struct runner before = *rival;
    if (!is_named(precond_spare(s->precond), "cholesky"))
        return SPMV_ERROR_LIMIT;
    replace_rival(c, first, rival, "cholesky");
    const double all = precond_cost_of_all(&rival->cost);
    spmv_status st = SPMV_ERROR_LIMIT;
    if (all <= WORTH_A_SAMPLE * first->cost.step && all <= first->left)
        st = make_rival(s, first, rival);
    if (st != SPMV_OK) {
        *rival = before;
        return st == SPMV_CANCELLED ? st : SPMV_ERROR_LIMIT;
    }
    st = run_to_the_end(c, rival);
    if (st == SPMV_OK)
        settle(s, rival, first);
    return st;
}

/* Conjugate gradients on the host that begin with jacobi or none. What does not end soon is tried on a sample of
 * the matrix (solver_sample.c), with each candidate that could take less than the best one so far. The best one goes
 * on; the first, where it was stopped. If it takes several times what the sample predicts, both take turns. */
static spmv_status race_by_sample(struct chain *c, struct runner *first, struct runner *rival)
{
    spmv_solver *const s = c->s;
    struct precond_estimate list[CANDIDATES], *best = NULL;
    const double before = BEFORE_SAMPLE * first->cost.step, worth = WORTH_A_SAMPLE * first->cost.step;
    char words[PRECOND_SENTENCE / 2];
    bool stopped = false;
    spmv_status st = SPMV_OK;
    if (precond_expected(s->precond) < 2 * BEFORE_SAMPLE) { /* or not known */
        st = turn(c, first, before, worth, &stopped);
        if (!stopped || solver_iterations(c) >= c->most)
            return stopped ? solver_fail_limit(c) : st;
    } else {
        first->left = precond_cost_of_all(&first->cost);
    }
    st = try_complete(c, first, rival);
    if (st != SPMV_ERROR_LIMIT)
        return st;
    const int count = list_candidates(c, first, list);
    st = try_candidates(c, first, list, count, words, sizeof words);
    if (st != SPMV_OK) /* there is no memory for a sample */
        return st == SPMV_CANCELLED ? st : run_to_the_end(c, first);
    correct_by_residuals(list, count, first);
    const double of_first = precond_cost_of_all(&list[0].cost);
    double of_best = INFINITY;
    bool waits = true; /* the first one goes on */
    for (;;) {
        best = best_of(list, count);
        if (best != NULL) {
            replace_rival(c, first, rival, best->name);
            rival->cost = best->cost;
            of_best = precond_cost_of_all(&best->cost);
        } /* else the rival of the facts, if the sample has misled */
        if (takes_direct(c, first, fmin(of_best, of_first))) {
            st = go_direct(c, first);
            if (st != SPMV_ERROR_LIMIT)
                return st;
        }
        if (waits && !(of_best * SAMPLE_LEAD <= of_first)) {
            st = turn(c, first, BEYOND_SAMPLE * of_first, fmin(of_best, of_first), &stopped);
            if (!stopped || solver_iterations(c) >= c->most)
                break;
            waits = false;
        }
        const bool known = best != NULL;
        if (known)
            best->cost.steps = INFINITY;
        const struct precond_estimate *const next = best_of(list, count);
        /* a complete factor may take so much, without its order and its solves */
        const double besides = precond_cost_of_all(&rival->cost) - precond_rival_setup(s->precond);
        first->left = fmax(1, fmin(of_first, next != NULL ? precond_cost_of_all(&next->cost) : INFINITY) - besides);
        st = make_rival(s, first, rival);
        if (st == SPMV_CANCELLED)
            return st;
        if (st == SPMV_OK) {
            first->left = BEYOND_SAMPLE * of_first; /* then the sample misleads about both */
            rival->spent = rival->cost.setup;
            st = alternate(c, first, rival, BEYOND_SAMPLE * precond_cost_of_all(&rival->cost));
            goto told;
        }
        if (!known) {
            st = run_to_the_end(c, first);
            stopped = false;
            break;
        }
    }
    if (stopped)
        return solver_fail_limit(c);
    if (st == SPMV_OK)
        settle(s, first, rival);
told:
    if (st == SPMV_OK)
        tell_sample(s, words, first, rival);
    return st;
}

/* ------------------------------------------------------------- indefinite matrices */

/* minres after conjugate gradients: the turn of jacobi was that of conjugate gradients. */
static bool is_indefinite(const struct runner *first, const struct runner *rival)
{
    return first->solver == &krylov_minres && !is_named(rival->name, "ilut");
}

/* gmres with ilut, as the rival of minres after conjugate gradients. What a sample tells of its set-up counts, but not
 * few iterations: on a ball of less than a wavelength A is mostly definite. */
static void take_factor_as_rival(const struct chain *c, const struct runner *first, struct runner *rival,
                                 const struct precond_cost *sampled)
{
    replace_rival(c, first, rival, "ilut");
    if (sampled != NULL && isfinite(sampled->steps))
        rival->cost = (struct precond_cost){sampled->setup, sampled->step, fmax(sampled->steps, rival->cost.steps)};
}

/* minres takes more iterations than on the sample: up to three times as many on Helmholtz equations. */
static const double HIDDEN = 2;

/* Factors leave this part of the steps of minres, or less. On a GPU, steps with jacobi are one kernel, of up to
 * MINRES_ROWS rows (precond_costs.c), and those with fsai take two to four times as long. */
static const double LEFT_BY_FACTORS = 0.5;

/* What is best with a sample begins: jacobi, ic0 or fsai. Without a sample it is ic0, on a GPU fsai or jacobi: minres mostly
 * takes hundreds of steps, and loses in each turn what it has learned. */
static spmv_status race_of_indefinite(struct chain *c, struct runner *first, struct runner *rival)
{
    enum { FACTOR = 3 }; /* the place of ilut among the candidates */
    spmv_solver *const s = c->s;
    struct precond_estimate list[CANDIDATES];
    char words[PRECOND_SENTENCE / 2];
    spmv_status st = SPMV_OK;
    bool sampled = false;
    list_candidates(c, first, list);
    snprintf(words, sizeof words, "minres would take hundreds of iterations with jacobi, of which %s mostly saves half",
             rival->name);
    if (may_sample(s, MINRES_ROWS)) {
        st = try_candidates(c, first, list, FACTOR + 1, words, sizeof words);
        sampled = st == SPMV_OK;
    }
    if (st == SPMV_CANCELLED)
        return st;
    const struct precond_cost *const of_factor = sampled ? &list[FACTOR].cost : NULL;
    const struct precond_estimate *const best = sampled ? best_of(list, FACTOR) : NULL;
    const double of_first = precond_cost_of_all(&list[0].cost),
                 of_best = best != NULL ? fmin(of_first, precond_cost_of_all(&best->cost)) : of_first;
    if (sampled && takes_direct(c, first, HIDDEN * of_best)) {
        st = go_direct(c, first);
        if (st != SPMV_ERROR_LIMIT)
            return st;
    }
    bool goes_on = sampled ? best == NULL || precond_cost_of_all(&list[0].cost) <= precond_cost_of_all(&best->cost)
                           : context_on_device(s->ctx) && first->cost.step <= LEFT_BY_FACTORS * rival->cost.step;
    if (goes_on && !sampled)
        snprintf(words, sizeof words, "steps of minres with %s are one kernel, and %s saves less than it adds to them",
                 first->name, rival->name);
    if (!goes_on) {
        if (best != NULL)
            replace_rival(c, first, rival, best->name);
        st = make_rival(s, first, rival);
        if (st == SPMV_CANCELLED)
            return st;
        goes_on = st != SPMV_OK;
    }
    if (!goes_on) {
        settle(s, rival, first);
        *first = runner_of(c, &krylov_minres, precond_name(s->precond), &s->precond);
    }
    snprintf(s->precond->why, sizeof s->precond->why, "A is indefinite: %s", words);
    snprintf(s->why_verdict, sizeof s->why_verdict, "%s", s->precond->why);
    take_factor_as_rival(c, first, rival, of_factor);
    return race_by_residuals(c, first, rival, false);
}

/* ------------------------------------------------------------- the choice between them */

spmv_status solver_race(struct chain *c, const struct krylov_solver *solver)
{
    spmv_solver *const s = c->s;
    struct runner first = runner_of(c, solver, precond_name(s->precond), &s->precond);
    if (rival_of(s, solver, s->precond) == NULL)
        return race_with_direct(c, &first);
    struct runner rival = runner_of(c, solver, rival_of(s, solver, s->precond), &s->rival);
    const bool by_sample =
        solver == &krylov_cg && first.cost.setup == 0 && !iterations_are_known(s, &first) && solver_may_sample(s);
    if (is_indefinite(&first, &rival))
        return race_of_indefinite(c, &first, &rival);
    spmv_status st = keep_state(c, &first);
    if (st == SPMV_OK)
        st = keep_state(c, &rival);
    const bool room = st == SPMV_OK;
    if (room && context_on_device(s->ctx) && solver != &krylov_minres)
        st = race_on_device(c, &first, &rival);
    else if (room)
        st = by_sample ? race_by_sample(c, &first, &rival)
                       : race_by_residuals(c, &first, &rival, may_sample(s, MINRES_ROWS));
    drop_state(c, &first);
    drop_state(c, &rival);
    return room ? st : solver_run_share(c, first.solver, *first.precond);
}
