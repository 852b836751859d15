/* spmv solve: x with A x = b, by conjugate gradients.
 *
 * Load, look whether the matrix is square and symmetric, solve, check the residual, write, in this order. What the
 * solver reached is written also when it stopped before the tolerance; the exit code and the message say so. The
 * residual b - A x is checked like any product, row by row against another backend, and its norm against the one
 * reported.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"

/* What the solver tells while it runs. */
struct watch {
    double began, first, last; /* seconds: the call, the start of the recurrence, its latest iteration */
    bool recording, repeat;    /* a repeat: its verdict was reported the first time */
    double *residuals;         /* of iterations 0, 1, ... */
    int64_t count, room;
    bool out_of_memory;
};

struct job {
    const struct options *o;
    spmv_context *ctx;
    struct input in;
    spmv_statistics statistics;
    struct product p; /* b = A ones, then b - A x */
    void *b_read, *b_made, *x0;
    const void *b;               /* host memory: one of those */
    void *x, *again;             /* host memory; of the repeat */
    void *context_b, *context_x; /* in the context's memory */
    double upload_seconds, seconds;
    struct watch watch;
    spmv_cg_result result;
    spmv_status stop;    /* what the solver said: SPMV_OK, class 7, SPMV_ERROR_NOT_POSITIVE */
    bool other_bits;     /* of the repeat */
    double checked_norm; /* ||b - A x|| of the checked residual */
    spmv_status verdict; /* of the checks */
};

static int64_t vector_bytes(const struct job *job)
{
    return job->in.view.rows * (int64_t)spmv_type_size(job->o->type);
}

static double element(const struct job *job, const void *vector, int64_t i)
{
    return job->o->type == SPMV_F32 ? (double)((const float *)vector)[i] : ((const double *)vector)[i];
}

static spmv_status library_failed(const struct job *job, spmv_status st)
{
    return report(st, spmv_last_error(job->ctx));
}

/* ---------------------------------------------------------------- before */

static spmv_status check_wishes(const struct options *o, const char *const *arguments, int count, const char **x_path)
{
    const char *const inputs[] = {arguments[0], count > 1 ? arguments[1] : NULL, o->x0};
    const spmv_status st = check_standard_input(inputs, 3);
    if (st != SPMV_OK)
        return st;
    if (o->history != NULL && (o->history[0] == '\0' || strcmp(o->history, "-") == 0))
        return report(SPMV_ERROR_ARGUMENT, "--history needs the name of a file");
    return choose_answer(o, "x", x_path);
}

/* A value that is not a number equals nothing, itself neither: such a matrix is left to the solver, which names it. */
static spmv_status check_matrix(struct job *job)
{
    const char *name = job->in.argument;
    spmv_statistics *s = &job->statistics;
    const spmv_status st = spmv_matrix_statistics(job->ctx, &job->in.view, s, sizeof *s);
    if (st != SPMV_OK)
        return library_failed(job, st);
    if (!s->square) {
        complain("%s is %lld x %lld: conjugate gradients need a square matrix", name, (long long)s->rows,
                 (long long)s->cols);
        return SPMV_ERROR_NOT_SQUARE;
    }
    if (s->symmetric || (s->pattern_symmetric && s->not_finite > 0))
        return SPMV_OK;
    complain("%s is not symmetric (%s): conjugate gradients need a symmetric positive definite matrix", name,
             s->skew_symmetric      ? "it is skew-symmetric"
             : s->pattern_symmetric ? "its pattern is, its values differ"
                                    : "some a_ij has no a_ji");
    return SPMV_ERROR_NOT_SYMMETRIC;
}

/* b = A ones, checked: a wrong b would be solved for rightly. */
static spmv_status make_b(struct job *job)
{
    struct product *p = &job->p;
    void *ones = NULL;
    spmv_status st = vector_ones(job->o->type, p->info.cols, &ones);
    p->x = ones;
    if (st == SPMV_OK)
        st = product_run(p);
    if (st == SPMV_OK && job->o->verify != VERIFY_OFF) {
        st = product_check(job->o, p);
        if (st == SPMV_ERROR_CHECK)
            tell_check(p, "b = A ones");
    }
    free(ones);
    job->b = job->b_made = p->y;
    p->y = NULL;
    return st;
}

static spmv_status prepare(struct job *job, const char *b_path)
{
    const struct options *o = job->o;
    const int64_t n = job->in.view.rows;
    char why[256];
    snprintf(why, sizeof why, "%.180s is %lld x %lld", job->in.argument, (long long)n, (long long)n);
    spmv_status st = SPMV_OK;
    if (b_path != NULL)
        st = vector_load(job->ctx, b_path, o->type, n, "b", why, &job->b_read);
    if (st == SPMV_OK && o->x0 != NULL)
        st = vector_load(job->ctx, o->x0, o->type, n, "x0", why, &job->x0);
    if (st == SPMV_OK)
        st = allocate("the vector x", n, spmv_type_size(o->type), &job->x);
    if (st != SPMV_OK)
        return st;
    job->b = job->b_read;
    job->p = (struct product){.a = &job->in.view,
                              .method = o->method,
                              .uncompressed = o->uncompressed,
                              .compressed = o->compressed,
                              .type = o->type,
                              .alpha = 1};
    st = product_plan(job->ctx, &job->p);
    return st == SPMV_OK && b_path == NULL ? make_b(job) : st;
}

/* ---------------------------------------------------------------- the solver */

static bool record(struct watch *w, double residual)
{
    if (w->count == w->room) {
        const int64_t room = 2 * w->room + 1024;
        double *more = realloc(w->residuals, (size_t)room * sizeof *more);
        if (more == NULL) {
            complain("the history of %lld iterations: %lld bytes of memory needed, not available", (long long)w->count,
                     (long long)(room * (int64_t)sizeof *more));
            w->out_of_memory = true;
            return false;
        }
        w->residuals = more;
        w->room = room;
    }
    w->residuals[w->count++] = residual;
    return true;
}

static int on_iteration(int64_t iteration, double residual, void *user)
{
    struct watch *w = user;
    w->last = monotonic_seconds();
    if (iteration == 0)
        w->first = w->last;
    else
        progress_show(w->began, "solving: iteration %lld, residual %.3g, %.3g iterations a second",
                      (long long)iteration, residual, (double)iteration / (w->last - w->first));
    return w->recording && !record(w, residual);
}

/* Solves once, from the start to x on the host. What the solver says of the system goes into *stop. */
static spmv_status solve_once(struct job *job, struct watch *w, spmv_cg_result *result, void *x, spmv_status *stop)
{
    const struct options *o = job->o;
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    options.rtol = o->rtol;
    options.atol = o->atol;
    options.max_iterations = o->max_iterations;
    options.zero_start = job->x0 == NULL;
    options.on_iteration = on_iteration;
    options.user = w;
    spmv_status st = SPMV_OK;
    if (job->x0 != NULL)
        st = spmv_upload(job->ctx, job->x0, job->context_x, vector_bytes(job));
    if (st == SPMV_OK)
        st = spmv_synchronize(job->ctx);
    if (st != SPMV_OK)
        return library_failed(job, st);
    w->began = w->first = w->last = monotonic_seconds();
    st = spmv_cg(job->p.plan, job->context_b, job->context_x, &options, result, sizeof *result);
    job->seconds = monotonic_seconds() - w->began;
    progress_end();
    if (w->out_of_memory)
        return SPMV_ERROR_MEMORY;
    *stop = st;
    const bool verdict = spmv_status_class(st) == 7 || st == SPMV_ERROR_NOT_POSITIVE;
    if (st != SPMV_OK && !(verdict && w->repeat))
        library_failed(job, st);
    if (st != SPMV_OK && !verdict)
        return st;
    st = spmv_download(job->ctx, job->context_x, x, vector_bytes(job));
    return st == SPMV_OK ? st : library_failed(job, st);
}

/* Once more, for the bits of x. */
static spmv_status solve_again(struct job *job)
{
    struct watch watch = {.repeat = true};
    spmv_cg_result result;
    spmv_status stop = SPMV_OK;
    const double seconds = job->seconds;
    spmv_status st = allocate("x of a repeat", job->in.view.rows, spmv_type_size(job->o->type), &job->again);
    if (st == SPMV_OK)
        st = solve_once(job, &watch, &result, job->again, &stop);
    job->seconds = seconds;
    if (st == SPMV_OK)
        job->other_bits = stop != job->stop || result.iterations != job->result.iterations ||
                          memcmp(job->x, job->again, (size_t)vector_bytes(job)) != 0;
    return st;
}

static spmv_status solve(struct job *job)
{
    const int64_t bytes = vector_bytes(job);
    const double began = monotonic_seconds();
    spmv_status st = send_array(job->ctx, job->b, bytes, &job->context_b);
    if (st == SPMV_OK)
        st = spmv_alloc(job->ctx, bytes, &job->context_x);
    if (st != SPMV_OK)
        return library_failed(job, st);
    job->upload_seconds = job->p.upload_seconds + monotonic_seconds() - began;
    job->watch.recording = job->o->history != NULL;
    st = solve_once(job, &job->watch, &job->result, job->x, &job->stop);
    return st == SPMV_OK && job->o->verify == VERIFY_BITWISE ? solve_again(job) : st;
}

/* ---------------------------------------------------------------- the check */

/* ||r||, squares and their sum rounded to the type once: out of its range where the solver's is. */
static double norm_of(const struct job *job, const void *r)
{
    long double sum = 0;
    for (int64_t i = 0; i < job->in.view.rows; i++)
        sum += (long double)element(job, r, i) * element(job, r, i);
    const long double most = job->o->type == SPMV_F32 ? (long double)FLT_MAX : (long double)DBL_MAX;
    return sum > most ? INFINITY : sqrt((double)sum);
}

/* n products and n - 1 additions of numbers >= 0, in any order, change the sum by at most a factor of (1 + eps)^n, its
 * root by half of that exponent; the first term leaves room for the root's own rounding. Each square may also lose up
 * to the smallest normal number. */
static bool norms_agree(const struct job *job, double reported, double checked)
{
    const bool narrow = job->o->type == SPMV_F32;
    const double n = (double)job->in.view.rows, eps = narrow ? 0x1p-24 : 0x1p-53;
    const double bound = (n + 3) * eps * checked + sqrt(n * (narrow ? (double)FLT_MIN : DBL_MIN));
    if (!isfinite(reported) || !isfinite(checked))
        return !isfinite(reported) && !isfinite(checked);
    return fabs(reported - checked) <= bound;
}

/* The residual once more, as a product, checked by row; then its norm. A failed check is kept for the end. */
static spmv_status check(struct job *job)
{
    struct product *p = &job->p;
    if (job->o->verify == VERIFY_OFF)
        return SPMV_OK;
    p->x = job->x;
    p->y0 = job->b;
    p->alpha = -1;
    p->beta = 1;
    spmv_status st = product_run(p);
    if (st == SPMV_OK)
        st = product_check(job->o, p);
    if (st != SPMV_OK && st != SPMV_ERROR_CHECK)
        return st;
    job->checked_norm = norm_of(job, p->y);
    const bool agree = norms_agree(job, job->result.true_residual, job->checked_norm);
    job->verdict = !agree || job->other_bits ? SPMV_ERROR_CHECK : st;
    return SPMV_OK;
}

/* ---------------------------------------------------------------- after */

static spmv_status write_history(const struct job *job)
{
    static const char header[] = "iteration,residual\n";
    const struct watch *w = &job->watch;
    char *text = NULL;
    /* an iteration's number has at most 20 characters */
    spmv_status st = allocate("the history", w->count + 1, NUMBER_TEXT + 24, (void **)&text);
    if (st != SPMV_OK)
        return st;
    char *to = text + sprintf(text, "%s", header);
    for (int64_t i = 0; i < w->count; i++) {
        to += sprintf(to, "%lld,", (long long)i);
        to += number_text(w->residuals[i], to);
        *to++ = '\n';
    }
    st = write_text(job->o->history, text, (size_t)(to - text));
    free(text);
    return st;
}

/* "stagnation" for SPMV_ERROR_STAGNATION. */
static const char *status_word(spmv_status st)
{
    static char word[64];
    const char *name = spmv_status_name(st);
    const char *const prefixes[] = {"SPMV_", "ERROR_"};
    for (int i = 0; i < 2; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            name += strlen(prefixes[i]);
    size_t n = 0;
    for (; name[n] != '\0' && n < sizeof word - 1; n++)
        word[n] = (char)tolower((unsigned char)name[n]);
    word[n] = '\0';
    return word;
}

static double seconds_per_iteration(const struct job *job)
{
    const struct watch *w = &job->watch;
    return job->result.iterations > 0 ? (w->last - w->first) / (double)job->result.iterations : 0;
}

static json_t *json_result(const struct job *job)
{
    const spmv_cg_result *r = &job->result;
    const struct timing once = {job->seconds, job->seconds, job->seconds, 1};
    json_t *result = json_plan(&job->p, "cg");
    json_put(result, "upload_seconds", json_number(job->upload_seconds));
    json_put(result, "seconds", json_timing(&once));
    if (job->again != NULL)
        json_put(result, "bitwise", json_pack("{s:i, s:b}", "repeats", 1, "equal", !job->other_bits));
    json_put(result, "cg",
             json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o}", "precond", "none", "precision",
                       spmv_type_name(job->o->type), "status", status_word(job->stop), "iterations",
                       (json_int_t)r->iterations, "rtol", json_number(job->o->rtol), "recurrence_residual",
                       json_number(r->recurrence_residual), "true_residual", json_number(r->true_residual),
                       "setup_seconds", json_number(job->watch.first - job->watch.began), "seconds_per_iteration",
                       json_number(seconds_per_iteration(job))));
    return result;
}

static spmv_status write_json(const struct job *job)
{
    json_t *root = json_about(job->o, job->ctx, &job->in, &job->statistics);
    json_put(root, "result", json_result(job));
    if (job->o->verify != VERIFY_OFF) {
        json_t *verify = json_check(&job->p);
        json_put(verify, "true_residual", json_number(job->checked_norm));
        json_put(root, "verify", verify);
    }
    return json_finish(job->o, root);
}

/* For a matrix that proved indefinite there is no x worth having. */
static spmv_status write_results(const struct job *job, const char *x_path)
{
    spmv_status st = SPMV_OK;
    if (x_path != NULL && job->stop != SPMV_ERROR_NOT_POSITIVE)
        st = write_answer(job->ctx, job->o, x_path, job->o->type, job->x, job->in.view.rows);
    if (st == SPMV_OK && job->o->history != NULL)
        st = write_history(job);
    if (st == SPMV_OK && job->o->json)
        st = write_json(job);
    return st;
}

/* Not finite where some x_i is not. */
static double largest_error_against_ones(const struct job *job)
{
    double largest = 0;
    for (int64_t i = 0; i < job->in.view.rows; i++) {
        const double error = fabs(element(job, job->x, i) - 1);
        if (!(error <= largest))
            largest = error;
    }
    return largest;
}

static void remark_job(const struct job *job)
{
    const spmv_cg_result *r = &job->result;
    remark_plan(job->in.argument, &job->p);
    remark(LEVEL_NORMAL, "load %s, plan %s, solve %s", seconds_text(job->in.seconds), seconds_text(job->p.info.seconds),
           seconds_text(job->seconds));
    remark(LEVEL_NORMAL, "%s after %lld iteration%s of %s each", job->stop == SPMV_OK ? "solved" : "stopped",
           (long long)r->iterations, r->iterations == 1 ? "" : "s", seconds_text(seconds_per_iteration(job)));
    remark(LEVEL_NORMAL, "residual %.6g (true), %.6g (recurrence); tolerance %.6g, ||b|| %.6g", r->true_residual,
           r->recurrence_residual, r->tolerance, r->norm_b);
    if (job->b_made != NULL)
        remark(LEVEL_NORMAL, "error against ones: at most %.3g", largest_error_against_ones(job));
    remark(LEVEL_VERBOSE, "plan holds %s; upload %s; set up in %s; %lld restart%s",
           bytes_text((double)job->p.info.bytes), seconds_text(job->upload_seconds),
           seconds_text(job->watch.first - job->watch.began), (long long)r->restarts, r->restarts == 1 ? "" : "s");
}

static void tell_verdict(const struct job *job)
{
    if (job->o->verify == VERIFY_OFF) {
        remark(LEVEL_NORMAL, "not checked");
        return;
    }
    tell_check(&job->p, "b - A x");
    if (!norms_agree(job, job->result.true_residual, job->checked_norm))
        complain("CHECK FAILED: the true residual is said to be %.17g, and is %.17g", job->result.true_residual,
                 job->checked_norm);
    if (job->other_bits)
        complain("CHECK FAILED: a repeat of the solve gave other bits");
    else if (job->again != NULL)
        remark(LEVEL_NORMAL, "a repeat of the solve gave the same bits");
}

static void release(struct job *job)
{
    product_free(&job->p);
    if (job->ctx != NULL) {
        spmv_free(job->ctx, job->context_b);
        spmv_free(job->ctx, job->context_x);
    }
    spmv_host_free(job->b_read);
    spmv_host_free(job->x0);
    free(job->b_made);
    free(job->x);
    free(job->again);
    free(job->watch.residuals);
    input_free(&job->in);
    spmv_context_destroy(job->ctx);
}

spmv_status run_solve(const struct options *o, const char *const *arguments, int count)
{
    struct job job = {.o = o};
    const struct options reading = options_for_matrix(o);
    const char *x_path = NULL;
    spmv_status st = check_wishes(o, arguments, count, &x_path);
    if (st == SPMV_OK)
        st = open_context(o, o->backend, &job.ctx);
    if (st == SPMV_OK)
        st = input_load(job.ctx, &reading, arguments[0], &job.in);
    if (st == SPMV_OK)
        st = input_needs_real(&job.in, "spmv solve");
    if (st == SPMV_OK)
        st = check_matrix(&job);
    if (st == SPMV_OK)
        st = prepare(&job, count > 1 ? arguments[1] : NULL);
    if (st == SPMV_OK)
        st = solve(&job);
    if (st == SPMV_OK)
        st = check(&job);
    if (st == SPMV_OK) {
        st = write_results(&job, x_path);
        if (messages_level() > LEVEL_QUIET)
            remark_job(&job);
        tell_verdict(&job);
        if (job.verdict != SPMV_OK)
            st = job.verdict;
        else if (st == SPMV_OK)
            st = job.stop;
    }
    release(&job);
    return st;
}
