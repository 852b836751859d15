/* The solvers of a solver, and both choices under "auto", each a table that is read from top to
 * bottom: the solver that begins (rules), and what follows one that cannot reach the tolerance
 * (steps):
 *   - with jacobi or none, if the preconditioner fails;
 *   - from cg to minres, if A turns out to be indefinite;
 *   - from any to gmres with ilut, then with ilut of more fill-in, if the residual stagnates, the
 *     solver breaks down, or its share of the iterations is used up. That needs "auto" for the
 *     preconditioner too. If none helps, a solver that was still running gets the rest of the
 *     iterations.
 * The choices depend on counted facts about the matrix, never on times or on the number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>

#include "core/choice.h"
#include "solvers/krylov/not_finite.h"
#include "solvers/precond/precond_costs.h"
#include "solvers/solver_internal.h"

static const struct krylov_solver *const solvers[] = {&krylov_cg,       &krylov_minres, &krylov_gmres,
                                                      &krylov_bicgstab, &krylov_cocg,   &krylov_direct};
enum { METHODS = sizeof solvers / sizeof *solvers };

const char *spmv_solver_name(int index)
{
    return index < 0 ? NULL : index < METHODS ? solvers[index]->name : direct_named(index - METHODS);
}

spmv_status solver_find(spmv_context *ctx, const char *name, const struct krylov_solver **solver)
{
    struct names names = {.count = 0};
    const void *row = NULL;
    names_add(&names, "auto");
    for (int i = 0; spmv_solver_name(i) != NULL; i++)
        names_add_row(&names, spmv_solver_name(i), i < METHODS ? solvers[i] : &krylov_direct);
    const spmv_status st = choice_take(ctx, SPMV_ERROR_METHOD, "spmv_solver_create", "solver", &names, name, &row);
    *solver = row;
    return st;
}

/* ------------------------------------------------------------- memory */

/* Vectors of a solve: of all solvers, and the largest number of minres and bicgstab. */
enum { COMMON_VECTORS = 5, MOST_VECTORS = 9 };

/* With a preconditioner, gmres has v and M^-1 v of each step. */
static int64_t basis_of(const spmv_solver *s)
{
    return 2 * (int64_t)s->options.restart;
}

int64_t solver_room(const spmv_solver *s, const struct krylov_solver *solver)
{
    spmv_plan_info info;
    if (context_on_device(s->ctx) || spmv_plan_describe(s->plan, &info, sizeof info) != SPMV_OK)
        return 0;
    const int64_t vectors = COMMON_VECTORS + (solver == &krylov_gmres ? basis_of(s) : 0) + MOST_VECTORS;
    return vectors * s->a.rows * (int64_t)spmv_type_size(info.type);
}

/* ------------------------------------------------------------- the facts */

/* Both blocks have the size of a vector, which the context keeps. */
spmv_status solver_extreme_diagonal(const spmv_solver *s, spmv_op which, double *extreme)
{
    spmv_status st = SPMV_OK;
    const spmv_type type = s->a.val != NULL ? s->a.type : SPMV_F64;
    const int64_t size = (int64_t)spmv_type_size(type);
    void *diagonal = NULL, *one = NULL;
    if (s->ranks != NULL)
        return s->ranks->extreme(s->ranks->self, which, extreme);
    union real host;
    TRY(context_lend(s->ctx, s->a.rows * size, &diagonal));
    TRY(context_lend(s->ctx, s->a.rows * size, &one));
    TRY(spmv_matrix_diagonal(s->ctx, &s->a, diagonal));
    TRY(spmv_reduce(s->ctx, which, type, diagonal, one, s->a.rows));
    TRY(spmv_download(s->ctx, one, &host, size));
    *extreme = real_at(type, &host, 0);
done:
    context_take_back(s->ctx, diagonal);
    context_take_back(s->ctx, one);
    return st;
}

spmv_status solver_look_at_signs(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    double largest = 0;
    s->negates = false;
    if (s->a.val == NULL || solver_rows(s) == 0 || type_is_complex(s->a.type) || type_is_complex(s->options.type) ||
        s->options.inner != 0 || s->options.own_precond != NULL)
        return SPMV_OK;
    TRY(solver_extreme_diagonal(s, SPMV_MAX, &largest));
    s->negates = largest < 0;
done:
    return st;
}

/* What the rules look at. A stage is counted before the first rule that needs it. */
enum stage { STAGE_OPTIONS, STAGE_FACTOR, STAGE_MATRIX };

struct system_facts {
    spmv_solver *s;
    bool factor;      /* STAGE_FACTOR: the matrix is small and has a dense factor, which is made */
    spmv_type type;   /* STAGE_MATRIX and the following */
    bool unsymmetric; /* the named preconditioner is not symmetric */
    bool symmetric;   /* of complex types Hermitian; not looked at if the preconditioner is not symmetric */
    bool bilinear;    /* complex, its own transpose, not Hermitian; not on ranks */
    double basis;     /* bytes of the vectors of gmres, and the most that they may take */
    int64_t most;
    double smallest; /* diagonal entry of a symmetric matrix; 1 of a complex one */
};

/* The largest basis of gmres, in bytes. It may take a quarter of what a limit of the memory
 * leaves. */
static const int64_t LARGEST_BASIS = (int64_t)2 << 30;

/* Systems of at most so many rows are solved by a dense factor. It has 2/3 n^3 = 5.3 million
 * operations for n = 200, which run along rows in the second-level cache (320 KB), in about 2 ms.
 * An iterative method has up to n iterations of some 2 nnz + 10 n = 20 n operations, fewer in all,
 * but each iteration also has five passes whose fixed cost is 1 to 2 us (on a GPU 10 us): n
 * iterations take 1 to 2 ms as well. Beyond that the factor grows as n^3, and the iterations, whose
 * number a preconditioner bounds, as n or n^2. */
enum { DENSE_ROWS = 200 };

static spmv_status count_factor(struct system_facts *f)
{
    spmv_solver *const s = f->s;
    /* the caller wants amg */
    const bool near_null = s->ranks != NULL ? s->precond_options.near_nulls > 0 || s->precond_options.dimensions > 0
                                            : s->precond_options.near_null != NULL;
    const bool singular = s->options.null_vectors > 0 || s->options.null_block > 0;
    if (s->no_entries || solver_rows(s) > DENSE_ROWS || !choice_is_auto(s->options.precond) ||
        s->options.own_precond != NULL || near_null || singular)
        return SPMV_OK;
    const spmv_status st =
        s->ranks != NULL ? s->ranks->dense(s->ranks->self, &s->direct) : direct_create_dense(s->ctx, &s->a, &s->direct);
    f->factor = st == SPMV_OK;
    if (st != SPMV_ERROR_SINGULAR && st != SPMV_ERROR_NOT_FINITE)
        return st;
    s->ctx->error[0] = '\0'; /* no failure: the iterative methods judge */
    return SPMV_OK;
}

static spmv_status count_symmetry(struct system_facts *f, const spmv_plan_info *info)
{
    const spmv_solver *const s = f->s;
    const struct krylov look = {.call = "spmv_solver_create", .ctx = s->ctx, .plan = s->plan, .info = *info};
    const spmv_status st =
        s->options.symmetry_check == SPMV_SYMMETRY_TRUST ? SPMV_OK : krylov_check_symmetry(&look, false);
    f->symmetric = st == SPMV_OK;
    if (st != SPMV_ERROR_NOT_SYMMETRIC)
        return st;
    f->bilinear = type_is_complex(info->type) && s->ranks == NULL && krylov_check_symmetry(&look, true) == SPMV_OK;
    s->ctx->error[0] = '\0'; /* no failure */
    return SPMV_OK;
}

/* Ranks: the largest basis, and the least memory, of all. */
static spmv_status agree_on_basis(struct system_facts *f)
{
    spmv_status st = SPMV_OK;
    double basis = -f->basis, most = (double)f->most;
    TRY(solver_smallest_of_ranks(f->s, &basis));
    TRY(solver_smallest_of_ranks(f->s, &most));
    f->basis = -basis;
    f->most = (int64_t)most;
done:
    return st;
}

static spmv_status count_matrix(struct system_facts *f)
{
    spmv_status st = SPMV_OK;
    spmv_solver *const s = f->s;
    spmv_plan_info info;
    int64_t limit = 0;
    TRY(spmv_plan_describe(s->plan, &info, sizeof info));
    f->type = info.type;
    f->unsymmetric = precond_is_unsymmetric(s->options.precond);
    if (!f->unsymmetric)
        TRY(count_symmetry(f, &info));
    f->smallest = 1;
    if (f->symmetric && !type_is_complex(info.type) && !s->no_entries)
        TRY(solver_extreme_diagonal(s, SPMV_MIN, &f->smallest));
    if (f->symmetric && f->smallest < 0)
        TRY(solver_look_at_signs(s));
    f->basis = (double)(basis_of(s) * s->a.rows * (int64_t)spmv_type_size(info.type));
    f->most = LARGEST_BASIS;
    if (!f->symmetric && !context_on_device(s->ctx))
        f->most = min_i64(f->most, memory_limit_left(&limit) / 4);
    TRY(agree_on_basis(f));
done:
    return st;
}

/* ------------------------------------------------------------- the rules */

static bool no_rows(const struct system_facts *f)
{
    return solver_rows(f->s) == 0;
}

static bool options_of_cg(const struct system_facts *f)
{
    return f->s->options.inner != 0 || !choice_is_auto(f->s->options.rung);
}

static bool has_factor(const struct system_facts *f)
{
    return f->factor;
}

static bool basis_fits(const struct system_facts *f)
{
    return f->basis <= (double)f->most;
}

static bool unsymmetric_precond_fits(const struct system_facts *f)
{
    return f->unsymmetric && basis_fits(f);
}

static bool unsymmetric_precond(const struct system_facts *f)
{
    return f->unsymmetric;
}

static bool not_symmetric_fits(const struct system_facts *f)
{
    return !f->symmetric && basis_fits(f);
}

static bool not_symmetric_below_limit(const struct system_facts *f)
{
    return !f->symmetric && f->most == LARGEST_BASIS;
}

static bool not_symmetric(const struct system_facts *f)
{
    return !f->symmetric;
}

static bool complex_symmetric(const struct system_facts *f)
{
    return f->bilinear;
}

static bool all_negative(const struct system_facts *f)
{
    return f->s->negates;
}

static bool symmetric_operator(const struct system_facts *f)
{
    return f->s->no_entries;
}

static bool hermitian(const struct system_facts *f)
{
    return type_is_complex(f->type);
}

static bool all_positive(const struct system_facts *f)
{
    return f->smallest > 0;
}

static bool otherwise(const struct system_facts *f)
{
    (void)f;
    return true;
}

/* The first rule that applies is taken. */
static const struct rule {
    const struct krylov_solver *solver;
    enum stage needs;
    bool (*when)(const struct system_facts *);
    const char *reason;
} rules[] = {
    {&krylov_cg, STAGE_OPTIONS, no_rows, "the matrix has no rows"},
    {&krylov_cg, STAGE_OPTIONS, options_of_cg, "the options inner and rung are for conjugate gradients"},
    {&krylov_direct, STAGE_FACTOR, has_factor, "{rows} row{s}: a dense factor costs no more than iterations"},
    {&krylov_gmres, STAGE_MATRIX, unsymmetric_precond_fits, "the preconditioner {precond} is not symmetric"},
    {&krylov_bicgstab, STAGE_MATRIX, unsymmetric_precond, "the preconditioner {precond} is not symmetric"},
    {&krylov_cocg, STAGE_MATRIX, complex_symmetric, "the matrix is complex, its own transpose and not Hermitian"},
    {&krylov_gmres, STAGE_MATRIX, not_symmetric_fits, "the matrix is not {symmetric}"},
    {&krylov_bicgstab, STAGE_MATRIX, not_symmetric_below_limit,
     "the matrix is not {symmetric}, and the vectors of gmres would take {GiB} GiB"},
    {&krylov_bicgstab, STAGE_MATRIX, not_symmetric,
     "the matrix is not {symmetric}, and the vectors of gmres would take {MB} MB of the {left} MB that the limit of "
     "the memory leaves"},
    {&krylov_cg, STAGE_MATRIX, all_negative,
     "the matrix is symmetric, and every diagonal entry is negative: -A x = -b is solved"},
    {&krylov_cg, STAGE_MATRIX, symmetric_operator, "products say that the operator is {symmetric}"},
    {&krylov_cg, STAGE_MATRIX, hermitian, "the matrix is Hermitian"},
    {&krylov_cg, STAGE_MATRIX, all_positive, "the matrix is symmetric, and its diagonal is positive"},
    {&krylov_minres, STAGE_MATRIX, otherwise,
     "the matrix is symmetric, and not positive definite: a diagonal entry is {smallest}"},
};

/* Writes the reason of a rule into s->why. */
static void explain(const struct system_facts *f, const struct rule *rule)
{
    spmv_solver *const s = f->s;
    char gib[32];
    snprintf(gib, sizeof gib, "%.1f", f->basis / ((int64_t)1 << 30));
    const struct choice_fact facts[] = {
        {.name = "rows", .number = (double)solver_rows(s)},
        {.name = "s", .text = solver_rows(s) == 1 ? "" : "s"},
        {.name = "precond", .text = s->options.precond},
        {.name = "symmetric", .text = type_is_complex(f->type) ? "Hermitian" : "symmetric"},
        {.name = "GiB", .text = gib},
        {.name = "MB", .number = f->basis * 1e-6, .digits = 4},
        {.name = "left", .number = (double)(4 * f->most) * 1e-6, .digits = 4},
        {.name = "smallest", .number = f->smallest, .digits = 3},
        {.name = NULL},
    };
    choice_reason(rule->reason, facts, s->why, sizeof s->why);
}

spmv_status solver_choose(spmv_solver *s)
{
    spmv_status st = SPMV_OK;
    struct system_facts f = {.s = s};
    const struct rule *rule = rules;
    s->negates = false;
    for (enum stage counted = STAGE_OPTIONS;; rule++) {
        if (counted < STAGE_FACTOR && rule->needs >= STAGE_FACTOR)
            TRY(count_factor(&f));
        if (counted < STAGE_MATRIX && rule->needs >= STAGE_MATRIX)
            TRY(count_matrix(&f));
        counted = rule->needs > counted ? rule->needs : counted;
        if (rule->when(&f))
            break;
    }
    s->solver = rule->solver;
    explain(&f, rule);
done:
    return st;
}

/* ------------------------------------------------------------- the solvers that follow */

/* The iterations of a solver that another one may follow; then, times these, those that may be left. Where
 * minres, or gmres without incomplete factors, converges at all in practical time, it takes fewer. The factors
 * that follow take as long to make as some thousands of iterations. On a GPU their solves wait level by level:
 * one may take as long as ten thousand iterations. */
enum { SHARES_LEFT = 2, SHARES_LEFT_ON_DEVICE = 20 };

/* ilut of the last resort: its options, those of the solver first. */
static const struct {
    double drop, fill;
} resorts[SOLVER_RESORTS] = {{-1, 0}, {1e-8, 100}};

static bool chooses_precond(const spmv_solver *s)
{
    return s->free && choice_is_auto(s->options.precond) && s->options.own_precond == NULL && s->options.inner == 0;
}

bool solver_may_follow(const spmv_solver *s, spmv_status st)
{
    return chooses_precond(s) &&
           (st == SPMV_ERROR_ITERATIONS || st == SPMV_ERROR_STAGNATION || st == SPMV_ERROR_BREAKDOWN ||
            st == SPMV_ERROR_NOT_POSITIVE || st == SPMV_ERROR_NOT_FINITE);
}

static int64_t iterations_left(const struct chain *c)
{
    return c->most - solver_iterations(c);
}

void solver_judge_share(const spmv_solver *s, struct judge *judge)
{
    judge->least = SOLVER_SHARE;
    judge->most = SOLVER_SHARE * (context_on_device(s->ctx) ? SHARES_LEFT_ON_DEVICE : SHARES_LEFT);
}

spmv_status solver_run_share(struct chain *c, const struct krylov_solver *solver, const spmv_preconditioner *precond)
{
    spmv_solver *const s = c->s;
    spmv_cg_result *const r = c->result;
    if (solver == &krylov_cg || !solver_may_follow(s, SPMV_ERROR_ITERATIONS))
        return solver_run(c, solver, precond, iterations_left(c));
    struct judge judge = judge_of(s->options.on_iteration, s->options.user, r, r->iterations, SOLVER_SHARE, 0);
    solver_judge_share(s, &judge);
    c->judge = &judge;
    const spmv_status st = solver_run(c, solver, precond, iterations_left(c));
    c->judge = NULL;
    if (st != SPMV_CANCELLED || !judge.stopped)
        return st;
    return solver_fail_limit(c);
}

spmv_status solver_run_or_race(struct chain *c, const struct krylov_solver *solver, const spmv_preconditioner *precond)
{
    return solver_races(c->s, solver, precond) ? solver_race(c, solver) : solver_run_share(c, solver, precond);
}

/* The relative residual reached, for the reason of the next solver. */
static double relative_residual(const struct chain *c)
{
    return c->result->norm_b > 0 ? c->result->true_residual / c->result->norm_b : 0;
}

/* Goes on with minres from the x that conjugate gradients reached when they found A indefinite. */
static spmv_status go_on_with_minres(struct chain *c, spmv_status st)
{
    spmv_solver *const s = c->s;
    if (iterations_left(c) <= 0)
        return st;
    snprintf(s->why_used, sizeof s->why_used,
             "conjugate gradients found at iteration %lld that the matrix is not positive definite",
             (long long)c->result->iterations);
    const spmv_preconditioner *const precond = s->used_precond;
    st = solver_run_or_race(c, &krylov_minres, precond);
    if (st != SPMV_ERROR_INCONSISTENT || !c->from_zero || iterations_left(c) <= 0)
        return st;
    /* the x of cg may have grown along a null vector, where it stays */
    c->zero_start = true;
    return solver_run_share(c, &krylov_minres, precond);
}

/* Whether the preconditioner that "auto" chose is to blame for a failure, and another one exists:
 * of finite b and x, a sum with M is not finite, or not positive in minres. */
static bool precond_failed(const struct chain *c, spmv_status st)
{
    const spmv_solver *const s = c->s;
    const bool simple = precond_is_identity(s->used_precond) || precond_inverse_diagonal(s->used_precond) != NULL;
    return chooses_precond(s) && !simple && (s->used->symmetric || s->used->bilinear) && iterations_left(c) > 0 &&
           isfinite(c->result->norm_b) &&
           (st == SPMV_ERROR_NOT_FINITE || (st == SPMV_ERROR_NOT_POSITIVE && s->used == &krylov_minres));
}

/* The same solver again, with jacobi or none. */
static spmv_status go_on_with_simple(struct chain *c, spmv_status st)
{
    spmv_solver *const s = c->s;
    char failed[64], sentence[512];
    snprintf(failed, sizeof failed, "%.60s", precond_name(s->used_precond));
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    const char *const simple = strcmp(failed, "schur") == 0 ? "none" : "auto"; /* its diagonal has zeros */
    if (s->simple == NULL) {
        const spmv_status made = s->used->bilinear ? solver_make_precond(s, s->used, "jacobi", &s->simple)
                                                   : solver_make_precond(s, &krylov_minres, simple, &s->simple);
        if (made != SPMV_OK)
            return context_fail(s->ctx, st, "%s", sentence);
        snprintf(s->simple->why, sizeof s->simple->why, "%s failed at iteration %lld: %.300s", failed,
                 (long long)c->result->iterations, sentence);
    }
    return solver_run_share(c, s->used, s->simple);
}

/* Makes s->ilut[which] if it does not exist. */
static spmv_status make_resort(spmv_solver *s, int which)
{
    const spmv_preconditioner_options kept = s->precond_options;
    if (s->ilut[which] != NULL)
        return SPMV_OK;
    if (which > 0) {
        s->precond_options.drop = resorts[which].drop;
        s->precond_options.fill = resorts[which].fill;
    }
    const spmv_status st = solver_make_precond(s, &krylov_gmres, "ilut", &s->ilut[which]);
    s->precond_options = kept;
    if (st == SPMV_OK)
        snprintf(s->ilut[which]->why, sizeof s->ilut[which]->why, "%s with %s stopped before the tolerance%s",
                 s->used->name, precond_name(s->used_precond), which > 0 ? "; now with more fill-in" : "");
    return st;
}

/* In units of solver_rounding, an upper bound. Both numbers were set by hand, from cg in f32 under
 * auto on three Poisson grids, which ends with residuals of 0.3 to 0.6 where the type has no more
 * digits. */
static const double AT_ROUNDING = 2, BELOW_ROUNDING = 0.2;

bool solver_is_out_of_reach(const struct chain *c, double *rounding)
{
    spmv_plan_info info;
    return !c->s->no_entries && spmv_plan_describe(c->plan, &info, sizeof info) == SPMV_OK &&
           solver_rounding(c->s, info.type, c->b, c->x, rounding) == SPMV_OK &&
           c->result->tolerance < BELOW_ROUNDING * *rounding;
}

/* Whether rounding errors limit the residual of the solver that ended with *st, so that no other
 * solver helps. If so, the status becomes SPMV_ERROR_STAGNATION, and the message says so. That is
 * also so for a larger residual if the recurrence has reached the tolerance: without rounding
 * errors, x would solve the system, so the sizes of its terms are those of the solution. */
static bool is_at_precision(const struct chain *c, spmv_status *st)
{
    const spmv_solver *const s = c->s;
    const spmv_cg_result *const r = c->result;
    double rounding = 0;
    char sentence[400];
    if ((*st != SPMV_ERROR_STAGNATION && *st != SPMV_ERROR_ITERATIONS && *st != SPMV_ERROR_NOT_POSITIVE) ||
        !(r->true_residual < r->norm_b))
        return false;
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    const bool below = solver_is_out_of_reach(c, &rounding);
    const bool at = below && r->true_residual <= AT_ROUNDING * rounding;
    const bool done = below && *st == SPMV_ERROR_STAGNATION && r->recurrence_residual <= r->tolerance;
    if (at)
        *st = SPMV_ERROR_STAGNATION;
    context_fail(s->ctx, *st, "%s%s", sentence,
                 at     ? "; it is at the rounding errors of b - A x"
                 : done ? "; the tolerance is below the rounding errors of b - A x"
                        : "");
    return at || done;
}

/* The rest of the iterations. Where factors of A would solve the system and do not fit the memory, a solve that is
 * predicted to need many more ends: the message says what they need. */
static spmv_status run_rest(struct chain *c, const struct krylov_solver *solver, const spmv_preconditioner *precond)
{
    enum { TIMES = 10 };
    spmv_solver *const s = c->s;
    if (s->direct_lacks[0] == '\0')
        return solver_run(c, solver, precond, iterations_left(c));
    struct judge judge = judge_of(s->options.on_iteration, s->options.user, c->result, c->result->iterations,
                                  SOLVER_SHARE, TIMES * SOLVER_SHARE);
    c->judge = &judge;
    const spmv_status st = solver_run(c, solver, precond, iterations_left(c));
    c->judge = NULL;
    return st == SPMV_CANCELLED && judge.stopped ? solver_fail_limit(c) : st;
}

/* After a solver ended with st: gmres with one ilut after the other. If none solves the system, a
 * solver that was still running gets the rest of the iterations. The message of a failure says why
 * a resort could not be made. */
static spmv_status go_on_with_gmres(struct chain *c, spmv_status st)
{
    spmv_solver *const s = c->s;
    const struct krylov_solver *const solver = s->used;
    const spmv_preconditioner *const precond = s->used_precond;
    const double residual = c->result->true_residual;
    if (is_at_precision(c, &st))
        return st;
    const spmv_status ended = st;
    char ended_with[512], sentence[512], refused[300] = "";
    /* the first of the resorts may be what has failed */
    const int first = strcmp(precond_name(s->used_precond), "ilut") == 0;
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    memcpy(ended_with, sentence, sizeof ended_with);
    const spmv_csr sizes = solver_sizes(s);
    const bool gpu = context_on_device(s->ctx);
    const struct precond_cost ilut = precond_cost(gpu, PRECOND_FOR_UNSYMMETRIC, "ilut", sizes.rows, sizes.nnz, 0);
    const double worth = precond_nanoseconds(gpu, PRECOND_FOR_UNSYMMETRIC, sizes.rows, sizes.nnz,
                                             UNSURE_ILUT * precond_cost_of_all(&ilut));
    bool was_direct = solver == &krylov_direct;
    for (int which = first; which < SOLVER_RESORTS && solver_may_follow(s, st) && iterations_left(c) > 0; which++) {
        if (c->columns == 1 && !was_direct && isfinite(solver_worth_direct(s)) &&
            (which > 0 || solver_direct_takes(s, worth) < worth)) {
            was_direct = true;
            const spmv_status then = solver_run_direct(c, st);
            if (then == SPMV_OK) {
                snprintf(s->why_used, sizeof s->why_used, "%s stopped with a relative residual of %.2g: %.80s",
                         solver->name, residual / fmax(c->result->norm_b, 1e-300), direct_brief(s->direct));
                return SPMV_OK;
            }
            if (then == SPMV_CANCELLED)
                return then;
            st = solver_may_follow(s, then) ? then : st;
            snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
        }
        const spmv_status made = make_resort(s, which);
        if (made == SPMV_CANCELLED) /* x is what was reached before */
            return made;
        if (made != SPMV_OK) {
            if (made == SPMV_ERROR_SINGULAR || made == SPMV_ERROR_NOT_FINITE)
                snprintf(refused, sizeof refused, "; %.280s", spmv_last_error(s->ctx));
            continue;
        }
        snprintf(s->why_used, sizeof s->why_used,
                 "%s with %s stopped at iteration %lld with a relative residual of %.2g", s->used->name,
                 precond_name(s->used_precond), (long long)c->result->iterations, relative_residual(c));
        st = solver_run_share(c, &krylov_gmres, s->ilut[which]);
        snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    }
    if (solver_may_follow(s, st) && ended == SPMV_ERROR_ITERATIONS && iterations_left(c) > 0) {
        if (s->used != solver)
            snprintf(s->why_used, sizeof s->why_used,
                     "%s with %s goes on, since gmres with ilut did not help: it stopped with a relative residual of "
                     "%.2g",
                     solver->name, precond_name(precond), relative_residual(c));
        st = run_rest(c, solver, precond);
        snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    }
    if (solver_may_follow(s, st) && ended == SPMV_ERROR_INCONSISTENT && !(c->result->true_residual < 0.5 * residual)) {
        s->used = solver;
        s->used_precond = precond;
        return context_fail(s->ctx, ended, "%s", ended_with);
    }
    if (s->direct_lacks[0] != '\0')
        memcpy(refused, s->direct_lacks, sizeof s->direct_lacks);
    return st == SPMV_OK ? st : context_fail(s->ctx, st, "%s%s", sentence, refused);
}

/* minres with M has ended at a least-squares solution in the norm of M^-1. Without M it goes on to
 * that of the smallest residual, from which it is not far. */
static spmv_status go_on_to_least_squares(struct chain *c, spmv_status st)
{
    spmv_solver *const s = c->s;
    char sentence[512];
    const double residual = c->result->true_residual;
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(s->ctx));
    if ((s->none == NULL && solver_make_precond(s, &krylov_minres, "none", &s->none) != SPMV_OK) ||
        iterations_left(c) <= 0)
        return context_fail(s->ctx, st, "%s", sentence);
    const spmv_preconditioner *const before = s->used_precond;
    const spmv_status then = solver_run_share(c, &krylov_minres, s->none);
    if (then == SPMV_OK || then == SPMV_CANCELLED || c->result->true_residual < residual ||
        spmv_status_class(then) != 7)
        return then;
    s->used_precond = before;
    return context_fail(s->ctx, st, "%s", sentence);
}

/* Whether A, b or the start has a number that is not finite, which no solver can solve; the message
 * names it. */
static bool is_not_finite(const struct chain *c)
{
    struct krylov k = {.call = "spmv_solver_solve", .ctx = c->s->ctx, .plan = c->plan, .x = c->x};
    if (spmv_plan_describe(c->plan, &k.info, sizeof k.info) != SPMV_OK)
        return false;
    k.type = k.info.type;
    double finite = krylov_find_not_finite(&k, c->b, c->from_zero) ? 0 : 1;
    return solver_smallest_of_ranks(c->s, &finite) != SPMV_OK || finite == 0;
}

/* ------------------------------------------------------------- the steps */

static bool found_indefinite(const struct chain *c, spmv_status st)
{
    const spmv_solver *const s = c->s;
    return st == SPMV_ERROR_NOT_POSITIVE && s->used == &krylov_cg && s->free && s->options.inner == 0;
}

static bool stopped_at_least_squares(const struct chain *c, spmv_status st)
{
    const spmv_solver *const s = c->s;
    return st == SPMV_ERROR_INCONSISTENT && chooses_precond(s) && s->used == &krylov_minres &&
           !precond_is_identity(s->used_precond);
}

static bool may_go_on(const struct chain *c, spmv_status st)
{
    return solver_may_follow(c->s, st);
}

/* After a failure each step in turn that applies to the status so far. */
static const struct {
    bool (*when)(const struct chain *c, spmv_status st);
    spmv_status (*go_on)(struct chain *c, spmv_status st);
} steps[] = {
    {precond_failed, go_on_with_simple},
    {found_indefinite, go_on_with_minres},
    {precond_failed, go_on_with_simple}, /* of minres */
    {stopped_at_least_squares, go_on_to_least_squares},
    {may_go_on, go_on_with_gmres},
};

spmv_status solver_follow(struct chain *c, spmv_status st)
{
    if (st == SPMV_ERROR_NOT_FINITE && solver_may_follow(c->s, st) && is_not_finite(c))
        return st;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && st != SPMV_OK; i++)
        if (steps[i].when(c, st))
            st = steps[i].go_on(c, st);
    return st;
}
