/* spmv solve for a matrix that is not square, or with --damp or a solver of least squares: loads the
 * vectors, solves, checks b - A x like any product, reports and writes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/least_squares.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/input.h"
#include "app/job_memory.h"
#include "app/options.h"
#include "app/output.h"
#include "app/solve/solve_job.h"
#include "app/stops.h"
#include "core/choice.h"
#include "core/plural.h"
#include "core/reals.h"

/* Curves of the history and the picture. */
enum { RESIDUAL, GRADIENT, CURVES };

struct fit {
    struct job *job;
    spmv_least_squares *solver;
    spmv_least_squares_result *each; /* one per right-hand side */
    int worst;                       /* the first that failed; else the one with the most iterations */
    spmv_status stop;
    char failure[400];
    double setup_seconds, seconds, check_seconds;
    void *x, *again; /* host memory */
    bool other_bits, is_checked;
    double *checked; /* ||b - A x|| as checked, one per right-hand side */
    int differs;     /* the first right-hand side whose residual is not the reported one */
    spmv_status verdict;
    double error; /* the largest error against the known solution; negative: not known */
};

static int64_t bytes_of_x(const struct job *job)
{
    return job->in.view.cols * job->columns * (int64_t)spmv_type_size(job->type);
}

/* ---------------------------------------------------------------- options */

bool is_least_squares_name(const char *solver)
{
    bool named = false;
    for (int i = 0; spmv_least_squares_name(i) != NULL; i++)
        named = named || strcmp(solver, spmv_least_squares_name(i)) == 0;
    return named;
}

bool options_ask_least_squares(const struct options *o)
{
    return is_least_squares_name(o->solver) || o->damp > 0;
}

bool job_is_least_squares(const struct job *job)
{
    const bool square = job->in.view.rows == job->in.view.cols;
    return !place_on_ranks(job->place) && (options_ask_least_squares(job->o) || !square) &&
           (choice_is_auto(job->o->solver) || is_least_squares_name(job->o->solver));
}

/* Options of other solvers, which have no effect here. */
static spmv_status check_options(const struct job *job)
{
    static const char *const others[] = {"precond",  "rung",    "inner",   "near-null", "coordinates",
                                         "null",     "block",   "degree",  "drop",      "fill",
                                         "strength", "restart", "recycle", "atol",      "accuracy"};
    const struct options *const o = job->o;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (option_given(o, others[i]) &&
            !(i == 0 && (strcmp(o->precond, "none") == 0 || choice_is_auto(o->precond))) &&
            !(i == 1 && choice_is_auto(o->rung))) {
            complain("--%s has no effect on a least-squares solve of %s, which is %lld x %lld%s", others[i],
                     job->in.argument, (long long)job->in.view.rows, (long long)job->in.view.cols,
                     strcmp(others[i], "atol") == 0 ? ": --rtol is the tolerance" : "");
            return SPMV_ERROR_UNSUPPORTED;
        }
    if (o->damp > 0 && o->scaling == SPMV_SCALING_COLUMNS)
        return report(SPMV_ERROR_ARGUMENT,
                      "--scaling columns cannot be used with --damp: that would be another problem");
    return SPMV_OK;
}

/* ---------------------------------------------------------------- vectors */

static spmv_status load_vectors(struct job *job, const char *b_path)
{
    const struct options *const o = job->o;
    const spmv_csr *const a = &job->in.view;
    char why[256];
    spmv_status st = SPMV_OK;
    snprintf(why, sizeof why, "%.180s is %lld x %lld", job->in.argument, (long long)a->rows, (long long)a->cols);
    job->columns = o->vectors.most;
    if (b_path != NULL)
        st = place_load_vectors(job->place, SPMV_GROUP_ROWS, b_path, job->type, a->rows, "b", why, &job->b_read,
                                &job->columns);
    if (st == SPMV_OK && o->x0 != NULL)
        st = place_load_vectors(job->place, SPMV_GROUP_COLS, o->x0, job->type, a->cols, "x0", why, &job->x0,
                                &job->columns);
    job->b = job->b_read;
    job->columns = job->columns > 0 ? job->columns : 1;
    return st;
}

static spmv_status prepare(struct fit *f)
{
    struct job *const job = f->job;
    const char *const b_path = job->wish->count > 1 ? job->wish->arguments[1] : NULL;
    const double began = monotonic_seconds();
    spmv_status st = check_options(job);
    if (st == SPMV_OK)
        st = place_passed(job->place, spmv_matrix_statistics(job->place->ctx, &job->in.view, &job->statistics,
                                                             sizeof job->statistics));
    job->look_seconds = monotonic_seconds() - began;
    if (st == SPMV_OK)
        st = load_vectors(job, b_path);
    if (st == SPMV_OK && place_is_open(job->place))
        st = place_settle(job->place, false, "least squares: on a GPU with --backend cuda");
    if (st != SPMV_OK)
        return st;
    st = job_make_plan(job);
    if (st == SPMV_OK && b_path == NULL)
        st = job_make_b(job);
    if (st != SPMV_OK)
        return st;
    const double sending = monotonic_seconds();
    st = send_array(job->place->ctx, job->b, job_vector_bytes(job), &job->context_b);
    if (st == SPMV_OK)
        st = spmv_alloc(job->place->ctx, bytes_of_x(job), &job->context_x);
    job->upload_seconds = job->p.upload_seconds + monotonic_seconds() - sending;
    st = place_passed(job->place, st);
    if (st == SPMV_OK)
        st = allocate("the vector x", bytes_of_x(job), 1, &f->x);
    if (st == SPMV_OK)
        st = allocate("the results", job->columns, sizeof *f->each, (void **)&f->each);
    if (st == SPMV_OK)
        st = allocate("norms of residuals", job->columns, sizeof *f->checked, (void **)&f->checked);
    if (st == SPMV_OK)
        st = allocate("the curves", CURVES, sizeof *job->attempt, (void **)&job->attempt);
    return st;
}

/* ---------------------------------------------------------------- the solve */

/* Both curves are recorded as attempts, whose own lines of progress never begin. */
static int on_iteration(int64_t iteration, double residual, double gradient, void *user)
{
    struct fit *const f = user;
    struct watch *const w = &f->job->attempt[RESIDUAL].watch;
    const int stop = attempt_on_iteration(iteration, residual, &f->job->attempt[RESIDUAL]) |
                     attempt_on_iteration(iteration, gradient, &f->job->attempt[GRADIENT]);
    if (iteration > 0)
        progress_show(w->first, "solving: iteration %lld, residual %.3g, ||A'r|| %.3g", (long long)iteration, residual,
                      gradient);
    return stop;
}

static int asks_stops(void *user)
{
    (void)user;
    return stops_asked();
}

static spmv_status make_solver(struct fit *f)
{
    struct job *const job = f->job;
    const struct options *const o = job->o;
    spmv_least_squares_options options;
    const double began = monotonic_seconds();
    spmv_least_squares_options_init(&options, sizeof options);
    options.solver = o->solver;
    options.type = job->type;
    options.vectors = job->columns;
    options.damp = o->damp;
    options.atol = options.btol = o->rtol;
    options.conlim = o->conlim;
    options.max_iterations = o->max_iterations;
    options.zero_start = job->x0 == NULL;
    options.scaling = o->scaling;
    options.on_iteration = on_iteration;
    options.user = f;
    spmv_context_set_cancel(job->place->ctx, asks_stops, NULL);
    const spmv_status st = spmv_least_squares_create(job->place->ctx, &job->p.view, &options, &f->solver);
    f->setup_seconds = monotonic_seconds() - began;
    return place_passed(job->place, st);
}

/* Solves once; x: receives a copy. */
static spmv_status solve_once(struct fit *f, spmv_least_squares_result *each, void *x, spmv_status *stop,
                              double *seconds)
{
    struct job *const job = f->job;
    spmv_context *const ctx = job->place->ctx;
    spmv_status st = SPMV_OK;
    if (job->x0 != NULL)
        st = spmv_upload(ctx, job->x0, job->context_x, bytes_of_x(job));
    if (st == SPMV_OK)
        st = spmv_synchronize(ctx);
    if (st != SPMV_OK)
        return place_passed(job->place, st);
    const double began = monotonic_seconds();
    for (int c = 0; c < CURVES; c++) {
        struct watch *const w = &job->attempt[c].watch;
        w->first = w->last = began;
        w->began = INFINITY;
    }
    *stop = spmv_least_squares_solve(f->solver, job->context_b, job->context_x, each, sizeof *each);
    *seconds = monotonic_seconds() - began;
    progress_end();
    for (int c = 0; c < CURVES; c++)
        if (job->attempt[c].watch.out_of_memory)
            return SPMV_ERROR_MEMORY;
    if (*stop != SPMV_OK && spmv_status_class(*stop) != 7 && *stop != SPMV_CANCELLED)
        return place_passed(job->place, *stop);
    if (*stop == SPMV_CANCELLED)
        snprintf(f->failure, sizeof f->failure, "stopped by %s after %lld iterations, with a residual of %.3g",
                 stops_reason(), (long long)each->iterations, each->true_residual);
    else if (*stop != SPMV_OK)
        snprintf(f->failure, sizeof f->failure, "%s", spmv_last_error(ctx));
    return place_passed(job->place, spmv_download(ctx, job->context_x, x, bytes_of_x(job)));
}

/* Solves again and compares the bits of x. */
static spmv_status solve_again(struct fit *f)
{
    spmv_least_squares_result *each = NULL;
    spmv_status stop = SPMV_OK;
    double seconds = 0;
    for (int c = 0; c < CURVES; c++)
        f->job->attempt[c].watch.recording = false;
    spmv_status st = allocate("x of a repeat", bytes_of_x(f->job), 1, &f->again);
    if (st == SPMV_OK)
        st = allocate("the results of a repeat", f->job->columns, sizeof *each, (void **)&each);
    if (st == SPMV_OK)
        st = solve_once(f, each, f->again, &stop, &seconds);
    if (st == SPMV_OK)
        f->other_bits = stop != f->stop || memcmp(f->x, f->again, (size_t)bytes_of_x(f->job)) != 0;
    free(each);
    return st;
}

/* The right-hand side for the summary. */
static void find_worst(struct fit *f)
{
    for (int v = 1; v < f->job->columns; v++) {
        const spmv_least_squares_result *const r = &f->each[v], *const worst = &f->each[f->worst];
        if ((r->status != SPMV_OK && worst->status == SPMV_OK) ||
            ((r->status != SPMV_OK) == (worst->status != SPMV_OK) && r->iterations > worst->iterations))
            f->worst = v;
    }
}

/* The largest error against the known solution, where that is the only one. */
static void find_error(struct fit *f)
{
    const struct job *const job = f->job;
    f->error = -1;
    if (job->wish->count > 1 || job->o->damp > 0 || job->in.view.cols > job->in.view.rows)
        return;
    f->error = 0;
    for (int64_t i = 0; i < job->in.view.cols * job->columns; i++) {
        spmv_c128 known; /* room for all types */
        known_elements(job->type, i, 1, job_is_random(job), &known);
        const double error = job_difference(job, f->x, i, &known);
        if (!(error <= f->error))
            f->error = error;
    }
}

static spmv_status run(struct fit *f)
{
    struct job *const job = f->job;
    static const char *const names[CURVES] = {"||b - A x||", "||A'r||"};
    for (int c = 0; c < CURVES; c++) {
        struct attempt *const a = &job->attempt[c];
        *a = (struct attempt){.name = names[c], .columns = job->columns, .watching = &a->watch};
        a->watch.several = job->columns > 1;
        a->watch.recording = job->o->history != NULL || job->o->plot != NULL;
        snprintf(a->result.precond, sizeof a->result.precond, "%s", names[c]);
    }
    job->attempts = CURVES;
    spmv_status st = make_solver(f);
    if (st == SPMV_OK)
        st = solve_once(f, f->each, f->x, &f->stop, &f->seconds);
    if (st != SPMV_OK)
        return st;
    find_worst(f);
    find_error(f);
    for (int c = 0; c < CURVES; c++) {
        job->attempt[c].stop = f->stop;
        job->attempt[c].result.iterations = f->each[f->worst].iterations;
    }
    return job->o->verify == VERIFY_BITWISE ? solve_again(f) : st;
}

/* ---------------------------------------------------------------- the check */

/* The solver sums in the type of the vectors. */
static bool norms_agree(const struct job *job, double reported, double checked, double error)
{
    const struct real_limits limits = real_limits_of(type_part(job->type));
    const double n = (double)(job->in.view.rows * type_parts(job->type));
    if (!isfinite(reported) || !isfinite(checked))
        return !isfinite(reported) && !isfinite(checked);
    return fabs(reported - checked) <= (n + 3) * limits.roundoff * checked + error + limits.normal;
}

/* Computes b - A x as a product, checks its rows against another backend, and the norms. */
static spmv_status check(struct fit *f)
{
    struct job *const job = f->job;
    struct product *const p = &job->p;
    const double began = monotonic_seconds();
    f->differs = job->columns;
    if (job->o->verify == VERIFY_OFF)
        return SPMV_OK;
    for (int v = 0; v < job->columns; v++)
        if (!isfinite(f->each[v].true_residual))
            return SPMV_OK; /* nothing to check */
    f->is_checked = true;
    spmv_status st = allocate("the check", job->columns, sizeof *p->checks, (void **)&p->checks);
    if (st != SPMV_OK)
        return st;
    place_free(job->place, p->y);
    p->y = NULL;
    p->x = f->x;
    p->y0 = job->b;
    p->alpha = -1;
    p->beta = 1;
    st = product_run(p);
    if (st == SPMV_OK)
        st = product_check(job->o, p);
    if (st == SPMV_OK || st == SPMV_ERROR_CHECK) {
        f->verdict = st;
        st = SPMV_OK;
    }
    for (int v = 0; v < job->columns && st == SPMV_OK; v++) {
        f->checked[v] = job_norm(job, p->y, v);
        if (f->differs == job->columns &&
            !norms_agree(job, f->each[v].true_residual, f->checked[v], p->checks[v].norm_error))
            f->differs = v;
    }
    if (f->differs < job->columns || f->other_bits)
        f->verdict = SPMV_ERROR_CHECK;
    free(p->checks);
    p->checks = NULL;
    f->check_seconds = monotonic_seconds() - began;
    return st;
}

/* ---------------------------------------------------------------- the report */

static double seconds_per_iteration(const struct fit *f)
{
    int64_t iterations = 0;
    for (int v = 0; v < f->job->columns; v++)
        iterations += f->each[v].iterations;
    return iterations > 0 ? f->seconds / (double)iterations : 0;
}

static const char *why_solver(const struct job *job)
{
    return !choice_is_auto(job->o->solver)          ? CHOICE_NAMED
           : job->in.view.rows != job->in.view.cols ? "least squares: the matrix is not square"
                                                    : "least squares: --damp is given";
}

static void remark_all(const struct fit *f)
{
    const struct job *const job = f->job;
    const spmv_least_squares_result *const r = &f->each[f->worst];
    const int columns = job->columns;
    remark_plan(job->in.argument, &job->p);
    remark(choice_is_auto(job->o->solver) ? LEVEL_NORMAL : LEVEL_VERBOSE, "reason for %s: %s", r->solver,
           why_solver(job));
    const bool uncertain = strstr(r->why_scaling, "not certain") != NULL;
    remark(r->scaled || uncertain ? LEVEL_NORMAL : LEVEL_VERBOSE, "columns are %s: %s%s",
           r->scaled ? "scaled" : "not scaled", r->why_scaling,
           uncertain ? "; if A has it, --scaling columns gives the same x, and takes fewer iterations" : "");
    remark(LEVEL_NORMAL, "set up in %s, with the transpose; the solve took %s", seconds_text(f->setup_seconds),
           seconds_text(f->seconds));
    remark(LEVEL_NORMAL, "%s after %lld iteration%s of %s each, by %s%s%s", f->stop == SPMV_OK ? "solved" : "stopped",
           (long long)r->iterations, r->iterations == 1 ? "" : "s", seconds_text(seconds_per_iteration(f)), r->solver,
           r->why_stop[0] != '\0' ? ": " : "", r->why_stop);
    if (columns > 1) {
        int solved = 0;
        for (int v = 0; v < columns; v++)
            solved += f->each[v].status == SPMV_OK;
        remark(LEVEL_NORMAL, "%d of %d right-hand sides solved%s", solved, columns,
               columns > 20 && messages_level() < LEVEL_VERBOSE ? "; -v lists all" : "");
        remark_row("  %8s %10s %12s %12s %12s %12s  %s", "number", "iterations", "||b||", "||b - A x||", "||A'r||",
                   "||x||", "status");
        for (int v = 0; v < columns && (v < 20 || messages_level() >= LEVEL_VERBOSE); v++)
            remark_row("  %8d %10lld %12.6g %12.6g %12.3g %12.6g  %s", v + 1, (long long)f->each[v].iterations,
                       f->each[v].norm_b, f->each[v].true_residual, f->each[v].true_gradient, f->each[v].norm_x,
                       status_word(f->each[v].status));
    } else {
        remark(LEVEL_NORMAL, "residual ||b - A x|| %.6g, ||b|| %.6g, ||x|| %.6g", r->true_residual, r->norm_b,
               r->norm_x);
        if (job->o->damp > 0)
            remark(LEVEL_NORMAL, "||A'r - damp^2 x|| %.3g (true), %.3g (recurrence); damped residual %.6g",
                   r->true_gradient, r->recurrence_gradient, r->damped_residual);
        else
            remark(LEVEL_NORMAL, "||A'r|| %.3g (true), %.3g (recurrence%s)", r->true_gradient, r->recurrence_gradient,
                   r->scaled ? ", of scaled columns" : "");
    }
    remark(LEVEL_NORMAL, "estimates of A%s: norm %.3g, condition number %.3g", r->scaled ? " with scaled columns" : "",
           r->norm_a, r->condition);
    if (f->error >= 0)
        remark(LEVEL_NORMAL, "largest error against %s: %.3g", job_is_random(job) ? "the solution" : "ones", f->error);
    remark(LEVEL_VERBOSE, "plan holds %s; upload %s; %lld restart%s", bytes_text((double)job->p.info.bytes),
           seconds_text(job->upload_seconds), (long long)r->restarts, plural(r->restarts));
}

static void tell_verdict(const struct fit *f)
{
    const struct job *const job = f->job;
    if (job->o->verify == VERIFY_OFF) {
        remark(LEVEL_NORMAL, "not checked");
        return;
    }
    if (!f->is_checked) {
        remark(LEVEL_NORMAL, "b - A x is not checked: it is not finite in %s", spmv_type_name(job->type));
        return;
    }
    tell_check(&job->p, "b - A x");
    if (f->differs < job->columns)
        complain("CHECK FAILED: the solver reports a true residual of %.17g; computed again, it is %.17g",
                 f->each[f->differs].true_residual, f->checked[f->differs]);
    if (f->other_bits)
        complain("CHECK FAILED: a repeat of the solve gave different bits");
    else if (f->again != NULL)
        remark(LEVEL_NORMAL, "a repeat of the solve gave the same bits");
}

static json_t *json_one(const struct fit *f, int v)
{
    const spmv_least_squares_result *const r = &f->each[v];
    return json_pack("{s:s, s:i, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "status",
                     status_word(r->status), "stop", r->stop, "why_stop", r->why_stop, "iterations",
                     (json_int_t)r->iterations, "restarts", (json_int_t)r->restarts, "norm_b", json_number(r->norm_b),
                     "true_residual", json_number(r->true_residual), "damped_residual", json_number(r->damped_residual),
                     "true_gradient", json_number(r->true_gradient), "recurrence_residual",
                     json_number(r->recurrence_residual), "recurrence_gradient", json_number(r->recurrence_gradient),
                     "norm_x", json_number(r->norm_x), "norm_a", json_number(r->norm_a), "condition",
                     json_number(r->condition));
}

static json_t *json_fit(const struct fit *f)
{
    const struct job *const job = f->job;
    const spmv_least_squares_result *const r = &f->each[f->worst];
    const struct timing once = {f->seconds, f->seconds, f->seconds, 1};
    json_t *const root = json_about(job->o, job->place->ctx, &job->in, &job->statistics);
    json_t *const result = json_plan(&job->p, "least_squares"), *const solve = json_one(f, f->worst);
    json_put(solve, "solver", json_string(r->solver));
    json_put(solve, "why_solver", json_string(why_solver(job)));
    json_put(solve, "precision", json_string(job->o->mixed ? "mixed" : spmv_type_name(job->type)));
    json_put(solve, "damp", json_number(job->o->damp));
    json_put(solve, "rtol", json_number(job->o->rtol));
    json_put(solve, "conlim", json_number(job->o->conlim));
    json_put(solve, "scaled_columns", json_boolean(r->scaled));
    json_put(solve, "why_scaling", json_string(r->why_scaling));
    json_put(solve, "setup_seconds", json_number(f->setup_seconds));
    json_put(solve, "seconds_per_iteration", json_number(seconds_per_iteration(f)));
    if (f->failure[0] != '\0')
        json_put(solve, "message", json_text(plain_sentence(f->failure)));
    if (f->error >= 0)
        json_put(solve, "largest_error", json_number(f->error));
    if (job->columns > 1) {
        json_t *const all = json_array();
        for (int v = 0; v < job->columns; v++)
            json_array_append_new(all, json_one(f, v));
        json_put(solve, "right_hand_sides", all);
    }
    json_put(result, "operation", json_string("solve"));
    json_put(result, "why_backend", json_text(job->place->why));
    json_put(result, "upload_seconds", json_number(job->upload_seconds));
    json_put(result, "seconds", json_timing(&once));
    if (f->again != NULL)
        json_put(result, "bitwise", json_pack("{s:i, s:b}", "repeats", 1, "equal", !f->other_bits));
    json_put(result, "solve", solve);
    json_put(root, "result", result);
    if (f->is_checked) {
        json_t *const verify = json_check(&job->p);
        json_put(verify, "true_residual", json_number(f->checked[f->worst]));
        json_put(root, "verify", verify);
    }
    return root;
}

/* --history: iteration,residual,gradient. */
static spmv_status write_history(const struct job *job)
{
    const struct watch *const r = &job->attempt[RESIDUAL].watch, *const g = &job->attempt[GRADIENT].watch;
    char *text = NULL;
    spmv_status st = allocate("the history", r->count + 1, 2 * NUMBER_TEXT + 64, (void **)&text);
    if (st != SPMV_OK)
        return st;
    char *to = text + sprintf(text, "iteration,residual,gradient\n");
    for (int64_t i = 0; i < r->count && i < g->count; i++) {
        to += sprintf(to, "%lld,", (long long)i);
        to += number_text(r->residuals[i], to);
        *to++ = ',';
        to += number_text(g->residuals[i], to);
        *to++ = '\n';
    }
    st = write_text(job->o->history, text, (size_t)(to - text));
    free(text);
    return st;
}

static spmv_status first_failure(spmv_status first, spmv_status then)
{
    return first != SPMV_OK ? first : then;
}

/* Writes all outputs even if one fails; returns the first failure. */
static spmv_status write_results(const struct fit *f)
{
    struct job *const job = f->job;
    const struct options *const o = job->o;
    struct text_file json = {0};
    spmv_status st = SPMV_OK;
    if (o->json) {
        st = text_file_open(o->json_path, &json);
        if (st == SPMV_OK)
            st = json_line(&json, json_fit(f));
        st = first_failure(st, text_file_close(&json, st == SPMV_OK));
    }
    if (job->wish->answer != NULL)
        st = first_failure(
            st, write_answer(job->place->ctx, o, job->wish->answer, job->type, f->x, job->in.view.cols, job->columns));
    if (o->history != NULL)
        st = first_failure(st, write_history(job));
    if (o->plot != NULL)
        st = first_failure(st, solve_plot_write(o->plot, job->in.name, job->attempt, job->attempts));
    return st;
}

spmv_status job_solve_least_squares(struct job *job)
{
    struct fit f = {.job = job};
    spmv_status st = prepare(&f);
    if (st == SPMV_OK)
        st = run(&f);
    if (st == SPMV_OK)
        st = check(&f);
    if (st == SPMV_OK) {
        if (messages_level() > LEVEL_QUIET)
            remark_all(&f);
        tell_verdict(&f);
        stops_serve();
        st = write_results(&f);
        if (f.failure[0] != '\0')
            complain("%s", plain_sentence(f.failure));
        st = f.verdict != SPMV_OK ? f.verdict : first_failure(st, f.stop);
    }
    spmv_least_squares_destroy(f.solver);
    void *const owned[] = {f.each, f.x, f.again, f.checked};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    return st;
}
