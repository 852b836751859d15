/* The output of spmv solve: the history, JSON, the summary, failures.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/input.h"
#include "app/options.h"
#include "app/output.h"
#include "app/product.h"
#include "app/solve/solve_job.h"
#include "core/choice.h"
#include "core/plural.h"

spmv_status job_write_history(const struct job *job)
{
    const bool several = job->attempts > 1;
    int64_t lines = 1;
    for (int i = 0; i < job->attempts; i++)
        lines += job->attempt[i].watch.count;
    char *text = NULL;
    /* an iteration number has at most 20 characters, a name fewer than 40 */
    spmv_status st = allocate("the history", lines, NUMBER_TEXT + 64, (void **)&text);
    if (st != SPMV_OK)
        return st;
    char *to = text + sprintf(text, "%siteration,residual\n", several ? "precond," : "");
    for (int a = 0; a < job->attempts; a++) {
        const struct watch *w = &job->attempt[a].watch;
        for (int64_t i = 0; i < w->count; i++) {
            to += sprintf(to, "%.38s%s%lld,", several ? job->attempt[a].name : "", several ? "," : "", (long long)i);
            to += number_text(w->residuals[i], to);
            *to++ = '\n';
        }
    }
    st = write_text(job->o->history, text, (size_t)(to - text));
    free(text);
    return st;
}

/* An estimated relative error of x above this is remarked on: x may have fewer than three digits. */
static const double LARGE_ERROR = 5e-4;

/* Whether only the time of the whole solve is known: on a GPU iterations are reported after they ran,
 * on ranks not at all without --history. */
static bool is_timed_as_a_whole(const struct job *job)
{
    return job_on_gpu(job) || place_on_ranks(job->place);
}

static double iterating_seconds(const struct job *job, const struct attempt *a)
{
    return is_timed_as_a_whole(job) ? a->seconds : a->watch.last - a->watch.first;
}

static double starting_seconds(const struct job *job, const struct attempt *a)
{
    return is_timed_as_a_whole(job) ? 0 : a->watch.first - a->watch.began;
}

static double seconds_per_iteration(const struct job *job, const struct attempt *a)
{
    return a->result.iterations > 0 ? iterating_seconds(job, a) / (double)a->result.iterations : 0;
}

static const char *precision_name(const struct job *job)
{
    return job->o->inner ? "f64, inner f32" : job->o->mixed ? "mixed" : spmv_type_name(job->type);
}

json_t *json_estimate(const spmv_solver_result *result)
{
    return result->error_estimate < 0 ? json_null() : json_number(result->error_estimate);
}

void json_backward(json_t *to, const spmv_solver_result *result)
{
    const bool known = result->backward_row >= 0;
    json_put(to, "backward_error", known ? json_number(result->backward_error) : json_null());
    json_put(to, "backward_row", known ? json_integer((json_int_t)result->backward_row) : json_null());
}

bool is_wrong_row(const spmv_solver_result *result)
{
    return result->status == SPMV_ERROR_STAGNATION && result->backward_row >= 0 &&
           result->true_residual <= result->tolerance;
}

/* False: there is none. */
static bool describe_preconditioner(const struct attempt *a, spmv_preconditioner_info *info)
{
    spmv_solver_info solver;
    if (a->solver == NULL && a->together == NULL)
        return false;
    const spmv_status st = a->solver != NULL ? spmv_solver_describe(a->solver, &solver, sizeof solver)
                                             : spmv_group_solver_describe(a->together, &solver, sizeof solver);
    return st == SPMV_OK && solver.precond != NULL &&
           spmv_preconditioner_describe(solver.precond, info, sizeof *info) == SPMV_OK;
}

/* What the factors of direct tell. False: there are none, or they do not tell. */
static bool find_determinant(const struct attempt *a, spmv_determinant *determinant)
{
    return a->solver != NULL && strcmp(a->result.solver, "direct") == 0 &&
           spmv_solver_determinant(a->solver, determinant, sizeof *determinant) == SPMV_OK;
}

static void json_determinant(json_t *to, const struct attempt *a)
{
    spmv_determinant d;
    if (!find_determinant(a, &d))
        return;
    json_put(to, "determinant",
             json_pack("{s:o, s:[o, o]}", "log_abs", json_number(d.log_abs), "phase", json_number(d.phase[0]),
                       json_number(d.phase[1])));
    if (d.negative >= 0)
        json_put(to, "inertia",
                 json_pack("{s:I, s:I, s:I}", "positive", (json_int_t)d.positive, "negative", (json_int_t)d.negative,
                           "zero", (json_int_t)d.zero));
}

static void remark_determinant(const struct job *job, const struct attempt *a)
{
    spmv_determinant d;
    char sign[64] = "";
    const int level = choice_is_auto(job->o->solver) ? LEVEL_VERBOSE : LEVEL_NORMAL;
    if (job->in.view.rows == 0 || !find_determinant(a, &d))
        return;
    if (job->in.view.val != NULL && (job->in.view.type == SPMV_C128 || job->in.view.type == SPMV_C64))
        snprintf(sign, sizeof sign, ", phase %.4g%+.4gi", d.phase[0], d.phase[1]);
    remark(level, "determinant of A: %s, its logarithm %.10g%s",
           sign[0] != '\0'  ? "complex"
           : d.phase[0] > 0 ? "positive"
           : d.phase[0] < 0 ? "negative"
                            : "0",
           d.log_abs, sign);
    if (d.negative >= 0)
        remark(level, "eigenvalues of A: %lld above 0, %lld below, %lld that are 0 to rounding", (long long)d.positive,
               (long long)d.negative, (long long)d.zero);
}

static json_t *json_cg(const struct job *job, const struct attempt *a)
{
    const spmv_solver_result *r = &a->result;
    json_t *cg = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:I}", "solver",
                           r->solver, "why_solver", r->why_solver, "precond", r->precond, "precision",
                           precision_name(job), "status", status_word(a->stop), "iterations", (json_int_t)r->iterations,
                           "rtol", json_number(job->o->rtol), "recurrence_residual",
                           json_number(r->recurrence_residual), "true_residual", json_number(r->true_residual),
                           "setup_seconds", json_number(a->setup_seconds + starting_seconds(job, a)),
                           "seconds_per_iteration", json_number(seconds_per_iteration(job, a)), "method", r->rung,
                           "why", r->why_rung, "restarts", (json_int_t)r->restarts);
    json_put(cg, "rung", json_string(r->rung)); /* "method" is its older name */
    spmv_preconditioner_info info;
    if (describe_preconditioner(a, &info) && info.layout[0] != '\0')
        json_put(cg, "precond_layout", json_text(info.layout));
    if (a->error != NULL)
        json_put(cg, "largest_error", json_number(attempt_largest_error(a)));
    json_put(cg, "estimated_error_energy_norm", json_estimate(r));
    json_backward(cg, r);
    json_put(cg, "forward_error", r->forward_error < 0 ? json_null() : json_number(r->forward_error));
    json_determinant(cg, a);
    json_put(cg, "null_vectors", json_integer((json_int_t)r->null_vectors));
    json_put(cg, "null_part", r->null_part < 0 ? json_null() : json_number(r->null_part));
    if (job->columns == 1 && !place_on_ranks(job->place))
        json_put(cg, "energy_norm", json_number(job_energy_norm(job, a->x, 0)));
    if (job->columns > 1)
        json_put(cg, "right_hand_sides", json_columns(a));
    return cg;
}

/* result.solve = the object, also under the older name cg, which it had before there were other solvers. */
static void put_solve(json_t *result, json_t *solve)
{
    json_put(result, "operation", json_string("solve"));
    json_put(result, "cg", json_incref(solve));
    json_put(result, "solve", solve);
}

static json_t *json_result(const struct job *job, const struct attempt *a)
{
    const struct timing once = {a->seconds, a->seconds, a->seconds, 1};
    json_t *result = json_plan(&job->p, "cg");
    json_put(result, "why_backend", json_text(job->place->why));
    json_put(result, "upload_seconds", json_number(job->upload_seconds));
    json_put(result, "seconds", json_timing(&once));
    if (a->again != NULL)
        json_put(result, "bitwise", json_pack("{s:i, s:b}", "repeats", 1, "equal", !a->other_bits));
    put_solve(result, json_cg(job, a));
    return result;
}

static json_t *json_norms(const struct attempt *a)
{
    json_t *all = json_array();
    for (int v = 0; v < a->columns; v++)
        if (json_array_append_new(all, json_number(a->checked[v])) != 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}

json_t *job_json(const struct job *job, const struct attempt *a)
{
    json_t *root = json_about(job->o, job->place->ctx, &job->in, place_on_ranks(job->place) ? NULL : &job->statistics);
    if (!a->ran || a->stop == SPMV_ERROR_UNSUPPORTED) {
        json_t *const result = json_pack("{s:s}", "op", "cg");
        put_solve(result, json_pack("{s:s, s:s, s:s, s:o}", "precond", a->name, "precision", precision_name(job),
                                    "status", status_word(a->stop), "message", json_text(plain_sentence(a->failure))));
        json_put(root, "result", result);
        return root;
    }
    json_put(root, "result", json_result(job, a));
    if (job->o->verify != VERIFY_OFF && !a->overflows) {
        json_t *verify = json_check(&job->p);
        json_put(verify, "true_residual", json_number(a->checked[a->worst]));
        if (job->columns > 1)
            json_put(verify, "true_residuals", json_norms(a));
        json_put(root, "verify", verify);
    }
    return root;
}

bool job_writes_x(const struct job *job)
{
    return job->wish->answer != NULL && job->best >= 0 && attempt_has_x(&job->attempt[job->best]);
}

/* Prints the share of each stage in the time: four lines. */
static void remark_profile(const struct job *job, const struct attempt *a)
{
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"load", job->in.seconds},
                 {"plan", job->p.info.seconds + job->upload_seconds + a->setup_seconds},
                 {"solve", a->seconds},
                 {"check", job->look_seconds + job->made_seconds + a->check_seconds}};
    double all = 0;
    for (int i = 0; i < 4; i++)
        all += parts[i].seconds;
    for (int i = 0; i < 4; i++)
        remark_row("  %-5s %10s %5.1f %%", parts[i].name, seconds_text(parts[i].seconds),
                   all > 0 ? 100 * parts[i].seconds / all : 0);
}

static void remark_preconditioner(const struct job *job, const struct attempt *a)
{
    spmv_preconditioner_info info;
    static const char *const whole[] = {"none", "jacobi", "chebyshev", "amg"};
    bool blocks = place_on_ranks(job->place);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        blocks = blocks && strcmp(a->result.precond, whole[i]) != 0;
    if (blocks && !(describe_preconditioner(a, &info) && strstr(info.layout, "on each rank alike") != NULL))
        remark(LEVEL_NORMAL, "preconditioner %s of each rank's own block: iterations depend on the number of ranks",
               a->result.precond);
    if (!describe_preconditioner(a, &info) || (strcmp(a->name, "none") == 0 && strcmp(info.name, "none") == 0) ||
        strcmp(a->result.solver, "direct") == 0)
        return;
    remark(LEVEL_NORMAL, "preconditioner %s, set up in %s", info.name, seconds_text(info.seconds));
    remark(choice_is_auto(a->name) ? LEVEL_NORMAL : LEVEL_VERBOSE, "reason for the preconditioner: %s", info.why);
    if (info.layout[0] != '\0')
        remark(LEVEL_NORMAL, "preconditioner: %s", info.layout);
}

/* "textbook" for a rung of cg, else "gmres". */
static const char *solver_words(const spmv_solver_result *r)
{
    return strcmp(r->solver, "cg") == 0 ? r->rung : r->solver;
}

/* A solve that ends at the tolerance with a large error is named: the residual does not show it. */
static void remark_error(const struct job *job, const struct attempt *a)
{
    const double error = a->result.forward_error, energy = a->result.error_estimate;
    if (energy >= 0 && job->columns == 1 && !place_on_ranks(job->place))
        remark(LEVEL_VERBOSE, "estimated error in the energy norm: %.3g, where x has %.3g", energy,
               job_energy_norm(job, a->x, 0));
    if (error < 0) {
        remark(LEVEL_VERBOSE, "the error of x is not estimated");
        return;
    }
    remark(LEVEL_NORMAL, "estimated relative error of x: %.2g%s", error,
           job->columns > 1 && job->o->accuracy == 0 ? " at most, of all right-hand sides" : "");
    if (a->stop == SPMV_OK && error > LARGE_ERROR)
        remark(LEVEL_NORMAL, "x may have fewer than three right digits, though b - A x is within the tolerance: A is "
                             "ill-conditioned; --accuracy 3 corrects x");
}

void job_remark(const struct job *job, const struct attempt *a)
{
    const spmv_solver_result *r = &a->result;
    /* the reason is then about x, not about the solver */
    const bool of_zero = a->stop == SPMV_OK && job->columns == 1 && job->o->x0 != NULL && r->norm_b == 0;
    remark_plan(job->in.argument, &job->p);
    remark_preconditioner(job, a);
    remark_profile(job, a);
    if (job->in.view.rows == 0)
        remark(LEVEL_NORMAL, "nothing to solve: the matrix has no rows");
    else
        remark(LEVEL_NORMAL, "%s after %lld iteration%s of %s each, by %s", a->stop == SPMV_OK ? "solved" : "stopped",
               (long long)r->iterations, r->iterations == 1 ? "" : "s", seconds_text(seconds_per_iteration(job, a)),
               solver_words(r));
    if (job->in.view.rows > 0 && !of_zero)
        remark(choice_is_auto(job->o->solver) && strcmp(r->solver, "cg") != 0 ? LEVEL_NORMAL : LEVEL_VERBOSE,
               "reason for %s: %s", r->solver, r->why_solver);
    if (job->in.view.rows > 0 && r->rung[0] != '\0')
        remark(LEVEL_VERBOSE, "reason for %s: %s", r->rung, r->why_rung);
    if (!place_on_ranks(job->place) && !job->statistics.symmetric && solve_is_triangle(&job->in.view))
        remark(LEVEL_NORMAL, "only one triangle of the matrix has entries: if the file stores half of a symmetric "
                             "matrix, its first line must have symmetric instead of general");
    if (job->columns > 1)
        remark_columns(a);
    else
        remark(LEVEL_NORMAL, "residual %.6g (true), %.6g (recurrence); tolerance %.6g, ||b|| %.6g", r->true_residual,
               r->recurrence_residual, r->tolerance, r->norm_b);
    if (r->null_vectors > 0 && job->columns == 1)
        remark(
            LEVEL_NORMAL,
            "A is singular: %lld null vector%s known; the norm of the part of b along %s is %.3g; x has no such part",
            (long long)r->null_vectors, plural(r->null_vectors), r->null_vectors == 1 ? "it" : "them", r->null_part);
    if (of_zero)
        remark(LEVEL_NORMAL, "%s", r->why_solver);
    if (r->backward_row >= 0)
        remark(LEVEL_NORMAL, "largest backward error of a row: %.3g, in row %lld", r->backward_error,
               (long long)r->backward_row + 1);
    if (job->in.view.rows > 0)
        remark_error(job, a);
    remark_determinant(job, a);
    if (a->error != NULL)
        remark(LEVEL_NORMAL, "largest error against %s: %.3g%s",
               strcmp(job->o->solution, "ones") == 0 ? "ones" : "the solution", attempt_largest_error(a),
               r->null_vectors > 0 ? ", of which a part along null vectors says nothing" : "");
    remark(LEVEL_VERBOSE, "plan holds %s; upload %s; set up in %s; %lld restart%s",
           bytes_text((double)job->p.info.bytes), seconds_text(job->upload_seconds),
           seconds_text(starting_seconds(job, a)), (long long)r->restarts, r->restarts == 1 ? "" : "s");
}

/* Why the x of this attempt is written: the choice must not depend on times, which differ between runs. */
static void remark_choice(const struct job *job)
{
    const struct attempt *const best = &job->attempt[job->best], *quick = best;
    for (int i = 0; i < job->attempts; i++) {
        const struct attempt *const a = &job->attempt[i];
        if (attempt_has_x(a) && a->stop == SPMV_OK &&
            a->setup_seconds + a->seconds < quick->setup_seconds + quick->seconds)
            quick = a;
    }
    if (best->stop != SPMV_OK)
        remark(LEVEL_NORMAL, "x is that of %s, which has the smallest residual", best->name);
    else
        remark(LEVEL_NORMAL,
               "x is that of %s, which took the fewest iterations: times differ between runs, so a choice by time "
               "would change the bits of x%s%s",
               best->name, quick != best ? "; the fastest was " : "", quick != best ? quick->name : "");
}

void job_remark_table(const struct job *job)
{
    remark_plan(job->in.argument, &job->p);
    remark_row("  %-14s %10s %10s %10s %10s %11s  %s", "precond", "iterations", "set-up", "solve", "together",
               "||b - A x||", "status");
    for (int i = 0; i < job->attempts; i++) {
        const struct attempt *a = &job->attempt[i];
        if (!a->ran || a->stop == SPMV_ERROR_UNSUPPORTED)
            remark_row("  %-14s %10s %10s %10s %10s %11s  %s", a->name, "-", "-", "-", "-", "-", status_word(a->stop));
        else
            remark_row("  %-14s %10lld %10s %10s %10s %11.3g  %s%s", a->name, (long long)a->result.iterations,
                       seconds_text(a->setup_seconds), seconds_text(a->seconds),
                       seconds_text(a->setup_seconds + a->seconds), a->result.true_residual, status_word(a->stop),
                       i == job->best && job_writes_x(job) ? ", written as x" : "");
    }
    if (job_writes_x(job))
        remark_choice(job);
    for (int i = 0; i < job->attempts; i++)
        if (!job->attempt[i].ran || job->attempt[i].stop == SPMV_ERROR_UNSUPPORTED)
            remark(LEVEL_NORMAL, "%s: %s", job->attempt[i].name, plain_sentence(job->attempt[i].failure));
}

void job_tell_verdict(const struct job *job, const struct attempt *a)
{
    if (job->o->verify == VERIFY_OFF) {
        remark(LEVEL_NORMAL, "not checked");
        return;
    }
    if (a->overflows) {
        remark(LEVEL_NORMAL, "b - A x is not checked: it is not finite in %s", spmv_type_name(job->type));
        return;
    }
    if (job->attempts > 1 && a->verdict != SPMV_OK)
        complain("with preconditioner %s:", a->name);
    if (job->attempts == 1 || a->verdict != SPMV_OK)
        tell_check(&job->p, "b - A x");
    char of[48] = "";
    const int v = a->differs;
    if (job->columns > 1)
        snprintf(of, sizeof of, " of right-hand side %d of %d", v + 1, job->columns);
    if (v < job->columns)
        complain("CHECK FAILED: the solver reports a true residual%s of %.17g; computed again, it is %.17g", of,
                 a->each[v].true_residual, a->checked[v]);
    if (a->other_bits)
        complain("CHECK FAILED: a repeat of the solve gave different bits");
    else if (a->again != NULL && job->attempts == 1)
        remark(LEVEL_NORMAL, "a repeat of the solve gave the same bits");
}

void job_tell_failure(const struct job *job, const struct attempt *a)
{
    if (a->failure[0] == '\0')
        return;
    if (job->columns == 1 && is_wrong_row(&a->result))
        complain(
            "||b - A x|| is within the tolerance, but x is wrong: in row %lld |b - A x| is %.2g of the size of the "
            "row's terms; the rows of A are of very different sizes",
            (long long)a->result.backward_row + 1, a->result.backward_error);
    else
        complain("%s", plain_sentence(a->failure));
    job_tell_next(job, a, a->stop);
}
