/* spmv solve: solves A x = b by conjugate gradients, with one preconditioner or with each in turn.
 * Several right-hand sides lie row by row, and so do their solutions.
 *
 * The steps: load, test that the matrix is square and symmetric, solve, check the residual, write.
 * The x is also written when the solver stopped before the tolerance; the exit code and the last
 * message say so. The residual b - A x is checked like any product, row by row against another
 * backend, and its norm against the one that the solver reports. With --precond all, the answer is
 * the x of the fewest iterations, or without a solved one that of the smallest residual.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solve.h"

struct job {
    const struct options *o;
    spmv_context *ctx;
    struct input in;
    spmv_statistics statistics;
    struct product p; /* b = A ones, then b - A x */
    spmv_csr narrow;  /* --inner: A in f32 */
    float *narrow_values;
    spmv_plan *inner;
    const char *method; /* the rung; NULL: auto */
    void *b_read, *b_made, *x0, *solution;
    const void *b;               /* host memory: b_read or b_made */
    void *context_b, *context_x; /* in the context's memory */
    double look_seconds, upload_seconds, made_seconds, inner_seconds;
    int columns; /* right-hand sides */
    double goal; /* the least tolerance of the right-hand sides other than 0 */
    struct attempt *attempt;
    int attempts;
    int best;           /* the attempt whose x is the answer; -1: none */
    const char *x_path; /* where the answer is written; NULL: nowhere */
};

static int64_t vector_bytes(const struct job *job)
{
    return job->in.view.rows * job->columns * (int64_t)spmv_type_size(job->o->type);
}

/* Element i of a block of vectors that lie row by row. */
static double element(const struct job *job, const void *vector, int64_t i)
{
    return job->o->type == SPMV_F32 ? (double)((const float *)vector)[i] : ((const double *)vector)[i];
}

/* On a GPU rungs may sum residuals in another order, and report several iterations at once, after
 * they ran. */
static bool on_gpu(const struct job *job)
{
    return spmv_context_backend(job->ctx) == SPMV_BACKEND_CUDA;
}

static spmv_status library_failed(const struct job *job, spmv_status st)
{
    return report(st, spmv_last_error(job->ctx));
}

/* ||r|| of right-hand side v. The sum is in long double, so that squares do not overflow or
 * vanish. */
static double norm_of(const struct job *job, const void *r, int v)
{
    long double sum = 0;
    for (int64_t i = v; i < job->in.view.rows * job->columns; i += job->columns)
        sum += (long double)element(job, r, i) * element(job, r, i);
    return (double)sqrtl(sum);
}

/* ---------------------------------------------------------------- before */

static spmv_status check_wishes(const struct options *o, const char *const *arguments, int count, const char **x_path)
{
    const char *const inputs[] = {arguments[0], count > 1 ? arguments[1] : NULL, o->x0};
    spmv_status st = check_standard_input(inputs, 3);
    if (st != SPMV_OK)
        return st;
    if (o->history != NULL && (o->history[0] == '\0' || strcmp(o->history, "-") == 0))
        return report(SPMV_ERROR_ARGUMENT, "--history needs the name of a file");
    if (option_given(o, "solution") && count > 1)
        return report(SPMV_ERROR_ARGUMENT, "--solution says how b is made, and there is a b");
    if (o->vectors > 0 && count > 1)
        return report(SPMV_ERROR_ARGUMENT, "--vectors says how many b are made, and there is a b");
    if (strcmp(o->solution, "ones") != 0 && strcmp(o->solution, "random") != 0) {
        complain("--solution %s: ones or random is needed", o->solution);
        return SPMV_ERROR_ARGUMENT;
    }
    if (o->inner && (o->type != SPMV_F64 || o->mixed))
        return report(SPMV_ERROR_TYPE, "--inner is for --type f64: its inner iterations are in f32");
    if (o->plot != NULL)
        st = solve_plot_ready(o->plot);
    if (st != SPMV_OK)
        return st;
    st = choose_answer(o, "x", x_path);
    if (st == SPMV_OK)
        st = check_format(o, *x_path);
    return st == SPMV_OK ? check_writable(o) : st;
}

/* Follows a complaint: what to try next. a: NULL before the solve. */
static void tell_next(const struct job *job, const struct attempt *a, spmv_status stop)
{
    const struct advice advice = solve_advice(job->o, &job->in.view, a, stop);
    if (advice.text[0] != '\0')
        complain("%s", advice.text);
}

static spmv_status refuse(const struct job *job, spmv_status st)
{
    tell_next(job, NULL, st);
    return st;
}

/* A NaN differs from itself, so a matrix with one does not count as symmetric; the solver names
 * the NaN. */
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
        return refuse(job, SPMV_ERROR_NOT_SQUARE);
    }
    if (s->symmetric || (s->pattern_symmetric && s->not_finite > 0))
        return SPMV_OK;
    complain("%s is not symmetric (%s): conjugate gradients need a symmetric positive definite matrix", name,
             s->skew_symmetric      ? "it is skew-symmetric"
             : s->pattern_symmetric ? "its pattern is, its values differ"
                                    : "some a_ij has no a_ji");
    return refuse(job, SPMV_ERROR_NOT_SYMMETRIC);
}

/* The solution that b is made from: ones, or numbers in [-1, 1) that look random. */
static spmv_status make_solution(struct job *job)
{
    const spmv_type type = job->o->type;
    const int64_t n = job->in.view.rows * job->columns;
    if (strcmp(job->o->solution, "ones") == 0)
        return vector_ones(type, n, &job->solution);
    const spmv_status st = allocate("the solution", n, spmv_type_size(type), &job->solution);
    uint64_t seed = 1;
    for (int64_t i = 0; i < n && st == SPMV_OK; i++) {
        /* splitmix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014) */
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        const double value = (double)(int64_t)(z ^ (z >> 31)) * 0x1p-63;
        if (type == SPMV_F32)
            ((float *)job->solution)[i] = (float)value;
        else
            ((double *)job->solution)[i] = value;
    }
    return st;
}

/* b = A solution, checked: a wrong b would give a wrong system with a right solution. */
static spmv_status make_b(struct job *job)
{
    struct product *p = &job->p;
    const double began = monotonic_seconds();
    spmv_status st = make_solution(job);
    p->x = job->solution;
    if (st == SPMV_OK)
        st = product_run(p);
    if (st == SPMV_OK && job->o->verify != VERIFY_OFF) {
        st = product_check(job->o, p);
        if (st == SPMV_ERROR_CHECK)
            tell_check(p, strcmp(job->o->solution, "ones") == 0 ? "b = A ones" : "b = A solution");
    }
    job->b = job->b_made = p->y;
    p->y = NULL;
    job->made_seconds = monotonic_seconds() - began;
    return st;
}

/* --method RUNG, RUNG:PRODUCT or PRODUCT: the rung comes first where its name is one. */
static const char *split_method(const struct job *job, char *rung, size_t size)
{
    const char *name = job->o->method;
    const size_t length = strcspn(name, ":");
    for (int i = 0;; i++) {
        const char *known = spmv_cg_method_name(spmv_context_backend(job->ctx), i);
        if (known == NULL)
            return name;
        if (strlen(known) == length && strncmp(known, name, length) == 0 && length < size) {
            memcpy(rung, name, length);
            rung[length] = '\0';
            return name[length] == ':' ? name + length + 1 : "auto";
        }
    }
}

/* Follows the complaint that the product has no such method: the name may have been meant for the
 * solver. */
static void tell_rungs(const struct job *job)
{
    char names[128] = "";
    const char *known;
    size_t used = 0;
    for (int i = 0; (known = spmv_cg_method_name(spmv_context_backend(job->ctx), i)) != NULL && used < sizeof names;
         i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", known);
    complain("the solver has no such rung either; its rungs: %s", names);
}

/* The plan of --inner: the same matrix in f32. */
static spmv_status make_inner(struct job *job)
{
    const double began = monotonic_seconds();
    job->narrow = job->in.view;
    job->narrow.type = SPMV_F32;
    if (job->narrow.val != NULL) {
        const double *values = job->narrow.val;
        const spmv_status st =
            allocate("the matrix in f32", job->narrow.nnz, sizeof(float), (void **)&job->narrow_values);
        if (st != SPMV_OK)
            return st;
        for (int64_t k = 0; k < job->narrow.nnz; k++) {
            job->narrow_values[k] = (float)values[k];
            if (isfinite(values[k]) && !isfinite(job->narrow_values[k])) {
                complain("--inner: entry %lld of %s, %g, is too large for f32", (long long)k + 1, job->in.argument,
                         values[k]);
                return SPMV_ERROR_LIMIT;
            }
        }
        job->narrow.val = job->narrow_values;
    }
    spmv_plan_options options;
    spmv_plan_options_init(&options, sizeof options);
    options.type = SPMV_F32;
    options.compression = job->p.compression;
    const spmv_status st = spmv_plan_create(job->ctx, &job->narrow, &options, &job->inner);
    job->inner_seconds = monotonic_seconds() - began;
    return st == SPMV_OK ? st : library_failed(job, st);
}

/* Lists the preconditioners to try: the one named, or all. */
static spmv_status list_attempts(struct job *job)
{
    const char *name = job->o->precond;
    const bool all = strcmp(name, "all") == 0;
    while (all && spmv_preconditioner_name(job->attempts) != NULL)
        job->attempts++;
    job->attempts = all ? job->attempts : 1;
    const spmv_status st = allocate("the solves", job->attempts, sizeof *job->attempt, (void **)&job->attempt);
    for (int i = 0; i < job->attempts && st == SPMV_OK; i++)
        job->attempt[i] = (struct attempt){.name = all ? spmv_preconditioner_name(i) : name, .columns = job->columns};
    job->best = -1;
    return st;
}

/* Reads b and x0; they decide the number of right-hand sides. */
static spmv_status load_vectors(struct job *job, const char *b_path)
{
    const struct options *o = job->o;
    const int64_t n = job->in.view.rows;
    char why[256];
    snprintf(why, sizeof why, "%.180s is %lld x %lld", job->in.argument, (long long)n, (long long)n);
    spmv_status st = SPMV_OK;
    job->columns = o->vectors;
    if (b_path != NULL)
        st = vectors_load(job->ctx, b_path, o->type, n, "b", why, &job->b_read, &job->columns);
    if (st == SPMV_OK && o->x0 != NULL)
        st = vectors_load(job->ctx, o->x0, o->type, n, "x0", why, &job->x0, &job->columns);
    if (st != SPMV_OK)
        return st;
    job->b = job->b_read;
    job->columns = job->columns > 0 ? job->columns : 1;
    if (o->inner && job->columns > 1) {
        complain("--inner is for one right-hand side, and there are %d", job->columns);
        return SPMV_ERROR_UNSUPPORTED;
    }
    return SPMV_OK;
}

static spmv_status prepare(struct job *job, const char *b_path)
{
    const struct options *o = job->o;
    char rung[32] = "";
    spmv_status st = load_vectors(job, b_path);
    if (st == SPMV_OK)
        st = list_attempts(job);
    if (st != SPMV_OK)
        return st;
    job->p = (struct product){.a = &job->in.view,
                              .method = split_method(job, rung, sizeof rung),
                              .compression = plan_compression(o, spmv_context_backend(job->ctx), job->columns == 1),
                              .type = o->type,
                              .vectors = job->columns,
                              .alpha = 1};
    st = product_plan(job->ctx, &job->p);
    if (st == SPMV_ERROR_METHOD && rung[0] == '\0')
        tell_rungs(job);
    for (int i = 0; rung[0] != '\0' && job->method == NULL; i++) {
        const char *known = spmv_cg_method_name(spmv_context_backend(job->ctx), i);
        job->method = strcmp(known, rung) == 0 ? known : NULL;
    }
    if (st == SPMV_OK && b_path == NULL)
        st = make_b(job);
    return st == SPMV_OK && o->inner ? make_inner(job) : st;
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

/* ", roughly 3.2 s left"; "" where that cannot be told. Static storage. */
static const char *time_left(const struct watch *w, int64_t iteration)
{
    static char text[48];
    const double left = pace_left(&w->pace, w->goal);
    text[0] = '\0';
    if (left > 0)
        snprintf(text, sizeof text, ", roughly %s left", seconds_text((w->last - w->first) / (double)iteration * left));
    return text;
}

static int on_iteration(int64_t iteration, double residual, void *user)
{
    struct watch *w = user;
    w->last = monotonic_seconds();
    pace_add(&w->pace, iteration, residual);
    if (iteration == 0)
        w->first = w->last;
    else if (w->last - w->began > 0.5)
        progress_show(w->began, "solving: iteration %lld, residual %.3g, tolerance %.3g, %.3g iterations a second%s",
                      (long long)iteration, residual, w->goal, (double)iteration / (w->last - w->first),
                      time_left(w, iteration));
    return w->recording && !record(w, residual);
}

/* Solves once and copies x to the host. *stop: the solver's verdict on the system. results: one a
 * right-hand side. */
static spmv_status solve_once(struct job *job, struct attempt *a, struct watch *w, spmv_cg_result *results, void *x,
                              spmv_status *stop, double *seconds)
{
    const struct options *o = job->o;
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    options.symmetry_check = SPMV_SYMMETRY_TRUST; /* every entry was looked at */
    options.rtol = o->rtol;
    options.atol = o->atol;
    options.max_iterations = o->max_iterations;
    options.zero_start = job->x0 == NULL;
    options.on_iteration = on_iteration;
    options.user = w;
    options.method = job->method;
    options.precond = a->m;
    options.inner = job->inner;
    w->goal = job->goal;
    spmv_status st = SPMV_OK;
    if (job->x0 != NULL)
        st = spmv_upload(job->ctx, job->x0, job->context_x, vector_bytes(job));
    if (st == SPMV_OK)
        st = spmv_synchronize(job->ctx);
    if (st != SPMV_OK)
        return library_failed(job, st);
    w->began = w->first = w->last = monotonic_seconds();
    st = spmv_cg(job->p.plan, job->context_b, job->context_x, &options, results, sizeof *results);
    *seconds = monotonic_seconds() - w->began;
    progress_end();
    if (w->out_of_memory)
        return SPMV_ERROR_MEMORY;
    *stop = st;
    const bool verdict = spmv_status_class(st) == 7 || st == SPMV_ERROR_NOT_POSITIVE;
    const bool unfit = st == SPMV_ERROR_UNSUPPORTED && job->attempts > 1;
    if (st != SPMV_OK && (verdict || unfit))
        snprintf(a->failure, sizeof a->failure, "%s", spmv_last_error(job->ctx));
    if (st != SPMV_OK && !verdict)
        return unfit ? SPMV_OK : library_failed(job, st);
    st = spmv_download(job->ctx, job->context_x, x, vector_bytes(job));
    return st == SPMV_OK ? st : library_failed(job, st);
}

/* Solves again and compares the bits of x. */
static spmv_status solve_again(struct job *job, struct attempt *a)
{
    struct watch watch = {.recording = false};
    spmv_cg_result *results = NULL;
    spmv_status stop = SPMV_OK;
    double seconds = 0;
    spmv_status st = allocate("x of a repeat", vector_bytes(job), 1, &a->again);
    if (st == SPMV_OK)
        st = allocate("the results of a repeat", job->columns, sizeof *results, (void **)&results);
    if (st == SPMV_OK)
        st = solve_once(job, a, &watch, results, a->again, &stop, &seconds);
    if (st == SPMV_OK)
        a->other_bits = stop != a->stop || memcmp(a->x, a->again, (size_t)vector_bytes(job)) != 0;
    for (int v = 0; v < job->columns && st == SPMV_OK; v++)
        a->other_bits = a->other_bits || results[v].iterations != a->each[v].iterations;
    free(results);
    return st;
}

/* Brings b to the context's memory and makes room for x there. */
static spmv_status send_vectors(struct job *job)
{
    const double began = monotonic_seconds();
    spmv_status st = send_array(job->ctx, job->b, vector_bytes(job), &job->context_b);
    if (st == SPMV_OK)
        st = spmv_alloc(job->ctx, vector_bytes(job), &job->context_x);
    job->upload_seconds = job->p.upload_seconds + monotonic_seconds() - began;
    return st == SPMV_OK ? st : library_failed(job, st);
}

/* The largest |x_i - solution_i| of each right-hand side; not finite where some x_i is not. */
static spmv_status find_errors(const struct job *job, struct attempt *a)
{
    const spmv_status st = allocate("errors of x", job->columns, sizeof *a->error, (void **)&a->error);
    for (int v = 0; v < job->columns && st == SPMV_OK; v++) {
        a->error[v] = 0;
        for (int64_t i = v; i < job->in.view.rows * job->columns; i += job->columns) {
            const double error = fabs(element(job, a->x, i) - element(job, job->solution, i));
            if (!(error <= a->error[v]))
                a->error[v] = error;
        }
    }
    return st;
}

/* The largest error of all right-hand sides. */
static double largest_error(const struct attempt *a)
{
    double largest = 0;
    for (int v = 0; v < a->columns; v++)
        if (!(a->error[v] <= largest))
            largest = a->error[v];
    return largest;
}

/* Makes the preconditioner. With --precond all, one that cannot be made is skipped. */
static spmv_status make_preconditioner(struct job *job, struct attempt *a)
{
    const spmv_csr *matrix = job->inner != NULL ? &job->narrow : &job->in.view;
    spmv_preconditioner_options options;
    spmv_preconditioner_options_init(&options, sizeof options);
    options.type = job->inner != NULL ? SPMV_F32 : job->o->type;
    options.plan = job->inner != NULL ? job->inner : job->columns == 1 ? job->p.plan : NULL; /* a plan of one vector */
    if (strcmp(a->name, "none") == 0)
        return SPMV_OK;
    const double began = monotonic_seconds();
    const spmv_status st = spmv_preconditioner_create(job->ctx, a->name, matrix, &options, &a->m);
    a->setup_seconds = monotonic_seconds() - began;
    if (st == SPMV_OK)
        return st;
    snprintf(a->failure, sizeof a->failure, "%s", spmv_last_error(job->ctx));
    a->stop = st;
    if (job->attempts > 1 && spmv_status_class(st) != 5 && spmv_status_class(st) != 6)
        return SPMV_OK;
    library_failed(job, st);
    tell_next(job, a, st);
    return st;
}

/* Whether the attempt has an x. A matrix that one right-hand side shows to be indefinite has none
 * for all. */
static bool has_x(const struct attempt *a)
{
    bool any = a->x != NULL && (a->stop == SPMV_OK || spmv_status_class(a->stop) == 7);
    for (int v = 0; v < a->columns && any; v++)
        any = a->each[v].status != SPMV_ERROR_NOT_POSITIVE;
    return any;
}

/* Compares two attempts that have an x: solved before unsolved, then fewer iterations, for
 * unsolved ones the smaller residual. Ties keep the first. */
static bool is_better(const struct attempt *a, const struct attempt *than)
{
    if ((a->stop == SPMV_OK) != (than->stop == SPMV_OK))
        return a->stop == SPMV_OK;
    if (a->stop == SPMV_OK)
        return a->result.iterations < than->result.iterations;
    const double residual = a->result.true_residual, other = than->result.true_residual;
    return isfinite(residual) && !(isfinite(other) && other <= residual);
}

static spmv_status solve(struct job *job, int number)
{
    struct attempt *a = &job->attempt[number];
    a->watch.recording = job->o->history != NULL || job->o->plot != NULL;
    spmv_status st = make_preconditioner(job, a);
    if (st != SPMV_OK || a->stop != SPMV_OK)
        return st;
    st = allocate("the vector x", vector_bytes(job), 1, &a->x);
    if (st == SPMV_OK)
        st = allocate("the results", job->columns, sizeof *a->each, (void **)&a->each);
    if (st == SPMV_OK)
        st = allocate("norms of residuals", job->columns, sizeof *a->checked, (void **)&a->checked);
    if (st == SPMV_OK)
        st = solve_once(job, a, &a->watch, a->each, a->x, &a->stop, &a->seconds);
    if (st == SPMV_OK)
        columns_summary(a);
    if (st == SPMV_OK && job->solution != NULL)
        st = find_errors(job, a);
    if (st == SPMV_OK && job->o->verify == VERIFY_BITWISE && a->stop != SPMV_ERROR_UNSUPPORTED)
        st = solve_again(job, a);
    if (st == SPMV_OK &&
        (job->best < 0 || !has_x(&job->attempt[job->best]) || (has_x(a) && is_better(a, &job->attempt[job->best]))))
        job->best = number;
    return st;
}

/* ---------------------------------------------------------------- the check */

static double modulus_of_entry(const spmv_csr *a, int64_t k)
{
    if (a->val == NULL)
        return 1;
    return fabs(a->type == SPMV_F32 ? (double)((const float *)a->val)[k] : ((const double *)a->val)[k]);
}

/* The largest norm of the difference of two residuals of x that were summed in different orders:
 * the bound of spmv_verify in each row. */
static double residuals_apart(const struct job *job, const void *x, int v, double eps)
{
    const spmv_csr *const a = &job->in.view;
    double square = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = row_begin(a, i), end = row_begin(a, i + 1);
        double sum = fabs(element(job, job->b, i * job->columns + v));
        for (int64_t k = begin; k < end; k++)
            sum += modulus_of_entry(a, k) * fabs(element(job, x, (int64_t)a->col[k] * job->columns + v));
        const double most = 2 * (double)(end - begin + 4) * eps * sum;
        square += most * most;
    }
    return sqrt(square);
}

/* n products and n - 1 additions of numbers >= 0, in any order, change the sum by at most a factor
 * of (1 + eps)^n, its root by half of that exponent; the first term leaves room for the root's own
 * rounding. Each square may also lose up to the smallest normal number. The solver's sum may be
 * infinite where squares leave the type's range. */
static bool norms_agree(const struct job *job, const void *x, int v, double reported, double checked)
{
    const bool narrow = job->o->type == SPMV_F32;
    const double n = (double)job->in.view.rows, eps = narrow ? 0x1p-24 : 0x1p-53;
    const double bound = (n + 3) * eps * checked + sqrt(n * (narrow ? (double)FLT_MIN : DBL_MIN));
    const double most = sqrt(narrow ? (double)FLT_MAX : DBL_MAX);
    if (!isfinite(reported) || !isfinite(checked))
        return !isfinite(reported) && !(checked <= most);
    const double apart = fabs(reported - checked);
    return apart <= bound || (on_gpu(job) && apart <= bound + residuals_apart(job, x, v, eps));
}

/* The first right-hand side whose residual differs from the reported one; job->columns when none
 * does. */
static int first_that_differs(const struct job *job, const struct attempt *a)
{
    int v = 0;
    while (v < job->columns && norms_agree(job, a->x, v, a->each[v].true_residual, a->checked[v]))
        v++;
    return v;
}

/* Computes the residual as a product, checks its rows, then its norm. a->verdict keeps a failure
 * for the end. */
static spmv_status check(struct job *job, struct attempt *a)
{
    struct product *p = &job->p;
    if (job->o->verify == VERIFY_OFF || a->x == NULL || a->stop == SPMV_ERROR_UNSUPPORTED)
        return SPMV_OK;
    const double began = monotonic_seconds();
    free(p->y);
    p->y = NULL;
    p->x = a->x;
    p->y0 = job->b;
    p->alpha = -1;
    p->beta = 1;
    spmv_status st = product_run(p);
    if (st == SPMV_OK)
        st = product_check(job->o, p);
    if (st != SPMV_OK && st != SPMV_ERROR_CHECK)
        return st;
    for (int v = 0; v < job->columns; v++)
        a->checked[v] = norm_of(job, p->y, v);
    const bool agree = first_that_differs(job, a) == job->columns;
    a->verdict = !agree || a->other_bits ? SPMV_ERROR_CHECK : st;
    a->check_seconds = monotonic_seconds() - began;
    return SPMV_OK;
}

/* ---------------------------------------------------------------- after */

/* Writes one line an iteration; with several preconditioners the first column is their name. */
static spmv_status write_history(const struct job *job)
{
    const bool several = job->attempts > 1;
    int64_t lines = 1;
    for (int i = 0; i < job->attempts; i++)
        lines += job->attempt[i].watch.count;
    char *text = NULL;
    /* an iteration's number has at most 20 characters, a name fewer than 40 */
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

/* On a GPU iterations are reported after they ran, so only the time of the whole solve is known. */
static double iterating_seconds(const struct job *job, const struct attempt *a)
{
    return on_gpu(job) ? a->seconds : a->watch.last - a->watch.first;
}

static double starting_seconds(const struct job *job, const struct attempt *a)
{
    return on_gpu(job) ? 0 : a->watch.first - a->watch.began;
}

static double seconds_per_iteration(const struct job *job, const struct attempt *a)
{
    return a->result.iterations > 0 ? iterating_seconds(job, a) / (double)a->result.iterations : 0;
}

static const char *precision_name(const struct job *job)
{
    return job->inner != NULL ? "f64, inner f32" : job->o->mixed ? "mixed" : spmv_type_name(job->o->type);
}

static json_t *json_cg(const struct job *job, const struct attempt *a)
{
    const spmv_cg_result *r = &a->result;
    json_t *cg = json_pack("{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:I}", "precond", r->precond,
                           "precision", precision_name(job), "status", status_word(a->stop), "iterations",
                           (json_int_t)r->iterations, "rtol", json_number(job->o->rtol), "recurrence_residual",
                           json_number(r->recurrence_residual), "true_residual", json_number(r->true_residual),
                           "setup_seconds", json_number(a->setup_seconds + starting_seconds(job, a)),
                           "seconds_per_iteration", json_number(seconds_per_iteration(job, a)), "method", r->method,
                           "why", r->why, "restarts", (json_int_t)r->restarts);
    spmv_preconditioner_info info;
    if (a->m != NULL && spmv_preconditioner_describe(a->m, &info, sizeof info) == SPMV_OK)
        json_put(cg, "precond_layout", json_text(info.layout));
    if (a->error != NULL)
        json_put(cg, "largest_error", json_number(largest_error(a)));
    if (job->columns > 1)
        json_put(cg, "right_hand_sides", json_columns(a));
    return cg;
}

static json_t *json_result(const struct job *job, const struct attempt *a)
{
    const struct timing once = {a->seconds, a->seconds, a->seconds, 1};
    json_t *result = json_plan(&job->p, "cg");
    json_put(result, "upload_seconds", json_number(job->upload_seconds));
    json_put(result, "seconds", json_timing(&once));
    if (a->again != NULL)
        json_put(result, "bitwise", json_pack("{s:i, s:b}", "repeats", 1, "equal", !a->other_bits));
    json_put(result, "cg", json_cg(job, a));
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

/* The JSON object of one solve. Where the preconditioner could not be made: a status and the
 * reason. */
static json_t *json_attempt(const struct job *job, const struct attempt *a)
{
    json_t *root = json_about(job->o, job->ctx, &job->in, &job->statistics);
    if (a->x == NULL || a->stop == SPMV_ERROR_UNSUPPORTED) {
        json_put(root, "result",
                 json_pack("{s:s, s:{s:s, s:s, s:s, s:o}}", "op", "cg", "cg", "precond", a->name, "precision",
                           precision_name(job), "status", status_word(a->stop), "message",
                           json_text(plain_sentence(a->failure))));
        return root;
    }
    json_put(root, "result", json_result(job, a));
    if (job->o->verify != VERIFY_OFF) {
        json_t *verify = json_check(&job->p);
        json_put(verify, "true_residual", json_number(a->checked[a->worst]));
        if (job->columns > 1)
            json_put(verify, "true_residuals", json_norms(a));
        json_put(root, "verify", verify);
    }
    return root;
}

/* Nothing is written for a matrix that proved indefinite. */
static bool is_written(const struct job *job)
{
    return job->x_path != NULL && job->best >= 0 && has_x(&job->attempt[job->best]);
}

static spmv_status first_failure(spmv_status first, spmv_status then)
{
    return first != SPMV_OK ? first : then;
}

/* Writes all outputs even if one fails; returns the first failure. */
static spmv_status write_results(const struct job *job)
{
    spmv_status st = SPMV_OK;
    if (is_written(job))
        st = write_answer(job->ctx, job->o, job->x_path, job->o->type, job->attempt[job->best].x, job->in.view.rows,
                          job->columns);
    if (job->o->history != NULL)
        st = first_failure(st, write_history(job));
    if (job->o->plot != NULL)
        st = first_failure(st, solve_plot_write(job->o->plot, job->in.name, job->attempt, job->attempts));
    return st;
}

/* The share of each stage in the time: four lines. */
static void remark_profile(const struct job *job, const struct attempt *a)
{
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"load", job->in.seconds},
                 {"plan", job->p.info.seconds + job->upload_seconds + job->inner_seconds + a->setup_seconds},
                 {"solve", a->seconds},
                 {"check", job->look_seconds + job->made_seconds + a->check_seconds}};
    double all = 0;
    for (int i = 0; i < 4; i++)
        all += parts[i].seconds;
    for (int i = 0; i < 4; i++)
        remark_row("  %-5s %10s %5.1f %%", parts[i].name, seconds_text(parts[i].seconds),
                   all > 0 ? 100 * parts[i].seconds / all : 0);
}

static void remark_preconditioner(const struct attempt *a)
{
    spmv_preconditioner_info info;
    if (a->m == NULL || spmv_preconditioner_describe(a->m, &info, sizeof info) != SPMV_OK)
        return;
    remark(LEVEL_NORMAL, "preconditioner %s, set up in %s", info.name, seconds_text(a->setup_seconds));
    remark(LEVEL_VERBOSE, "reason for the preconditioner: %s", info.why);
    if (info.layout[0] != '\0')
        remark(LEVEL_NORMAL, "preconditioner: %s", info.layout);
}

static void remark_job(const struct job *job, const struct attempt *a)
{
    const spmv_cg_result *r = &a->result;
    remark_plan(job->in.argument, &job->p);
    remark_preconditioner(a);
    remark_profile(job, a);
    if (job->in.view.rows == 0)
        remark(LEVEL_NORMAL, "nothing to solve: the matrix has no rows");
    else
        remark(LEVEL_NORMAL, "%s after %lld iteration%s of %s each, by %s", a->stop == SPMV_OK ? "solved" : "stopped",
               (long long)r->iterations, r->iterations == 1 ? "" : "s", seconds_text(seconds_per_iteration(job, a)),
               r->method);
    if (job->in.view.rows > 0)
        remark(LEVEL_VERBOSE, "reason for %s: %s", r->method, r->why);
    if (job->columns > 1)
        remark_columns(a);
    else
        remark(LEVEL_NORMAL, "residual %.6g (true), %.6g (recurrence); tolerance %.6g, ||b|| %.6g", r->true_residual,
               r->recurrence_residual, r->tolerance, r->norm_b);
    if (a->error != NULL)
        remark(LEVEL_NORMAL, "error against %s: at most %.3g",
               strcmp(job->o->solution, "ones") == 0 ? "ones" : "the solution", largest_error(a));
    remark(LEVEL_VERBOSE, "plan holds %s; upload %s; set up in %s; %lld restart%s",
           bytes_text((double)job->p.info.bytes), seconds_text(job->upload_seconds),
           seconds_text(starting_seconds(job, a)), (long long)r->restarts, r->restarts == 1 ? "" : "s");
}

/* --precond all: a line for each preconditioner. */
static void remark_table(const struct job *job)
{
    remark_plan(job->in.argument, &job->p);
    remark_row("  %-14s %10s %10s %10s %10s %11s  %s", "precond", "iterations", "set-up", "solve", "together",
               "||b - A x||", "status");
    for (int i = 0; i < job->attempts; i++) {
        const struct attempt *a = &job->attempt[i];
        if (a->x == NULL || a->stop == SPMV_ERROR_UNSUPPORTED)
            remark_row("  %-14s %10s %10s %10s %10s %11s  %s", a->name, "-", "-", "-", "-", "-", status_word(a->stop));
        else
            remark_row("  %-14s %10lld %10s %10s %10s %11.3g  %s%s", a->name, (long long)a->result.iterations,
                       seconds_text(a->setup_seconds), seconds_text(a->seconds),
                       seconds_text(a->setup_seconds + a->seconds), a->result.true_residual, status_word(a->stop),
                       i == job->best && is_written(job) ? ", the x written" : "");
    }
    for (int i = 0; i < job->attempts; i++)
        if (job->attempt[i].x == NULL || job->attempt[i].stop == SPMV_ERROR_UNSUPPORTED)
            remark(LEVEL_NORMAL, "%s: %s", job->attempt[i].name, plain_sentence(job->attempt[i].failure));
}

static void tell_verdict(const struct job *job, const struct attempt *a)
{
    if (job->o->verify == VERIFY_OFF) {
        remark(LEVEL_NORMAL, "not checked");
        return;
    }
    if (job->attempts > 1 && a->verdict != SPMV_OK)
        complain("with preconditioner %s:", a->name);
    if (job->attempts == 1 || a->verdict != SPMV_OK)
        tell_check(&job->p, "b - A x");
    char of[48] = "";
    const int v = first_that_differs(job, a);
    if (job->columns > 1)
        snprintf(of, sizeof of, " of right-hand side %d of %d", v + 1, job->columns);
    if (v < job->columns)
        complain("CHECK FAILED: the solver reports a true residual%s of %.17g; computed anew it is %.17g", of,
                 a->each[v].true_residual, a->checked[v]);
    if (a->other_bits)
        complain("CHECK FAILED: a repeat of the solve gave other bits");
    else if (a->again != NULL && job->attempts == 1)
        remark(LEVEL_NORMAL, "a repeat of the solve gave the same bits");
}

/* Says why the solve stopped and what to try next: the last lines of a failed solve. */
static void tell_failure(const struct job *job, const struct attempt *a)
{
    if (a->failure[0] == '\0')
        return;
    complain("%s", plain_sentence(a->failure));
    tell_next(job, a, a->stop);
}

/* The status of the command: a failed check before that of the attempt whose x is the answer. */
static spmv_status conclude(const struct job *job, spmv_status st)
{
    const struct attempt *a = &job->attempt[job->best >= 0 ? job->best : 0];
    if (job->best >= 0)
        tell_failure(job, a);
    for (int i = 0; i < job->attempts; i++)
        if (job->attempt[i].verdict != SPMV_OK)
            return job->attempt[i].verdict;
    return st != SPMV_OK ? st : a->stop;
}

/* Runs, checks and reports every attempt. *written: whether the JSON was written; a failure there
 * does not stop the attempts. */
static spmv_status run_attempts(struct job *job, struct text_file *json, spmv_status *written)
{
    spmv_status st = SPMV_OK;
    const bool several = job->attempts > 1;
    for (int i = 0; i < job->attempts && st == SPMV_OK; i++) {
        struct attempt *a = &job->attempt[i];
        st = solve(job, i);
        if (st == SPMV_OK)
            st = check(job, a);
        if (st != SPMV_OK)
            return st;
        if (!several && messages_level() > LEVEL_QUIET)
            remark_job(job, a);
        if (a->x != NULL && a->stop != SPMV_ERROR_UNSUPPORTED)
            tell_verdict(job, a);
        if (job->o->json && *written == SPMV_OK)
            *written = json_line(json, json_attempt(job, a));
    }
    if (several && messages_level() > LEVEL_QUIET)
        remark_table(job);
    return st;
}

static void release(struct job *job)
{
    for (int i = 0; i < job->attempts && job->attempt != NULL; i++) {
        struct attempt *a = &job->attempt[i];
        spmv_preconditioner_destroy(a->m);
        free(a->watch.residuals);
        free(a->x);
        free(a->again);
        free(a->each);
        free(a->error);
        free(a->checked);
    }
    free(job->attempt);
    spmv_plan_destroy(job->inner);
    free(job->narrow_values);
    product_free(&job->p);
    if (job->ctx != NULL) {
        spmv_free(job->ctx, job->context_b);
        spmv_free(job->ctx, job->context_x);
    }
    spmv_host_free(job->b_read);
    spmv_host_free(job->x0);
    free(job->b_made);
    free(job->solution);
    input_free(&job->in);
    spmv_context_destroy(job->ctx);
}

/* Sets the tolerance that the progress line shows. Where ||b|| overflows, rtol gives none, and
 * atol counts alone. */
static void set_goal(struct job *job)
{
    const struct options *o = job->o;
    job->goal = INFINITY;
    for (int v = 0; v < job->columns; v++) {
        const double norm = norm_of(job, job->b, v);
        if (norm != 0 || job->columns == 1)
            job->goal = fmin(job->goal, fmax(isfinite(norm) ? o->rtol * norm : 0, o->atol));
    }
}

/* Loads the matrix and the vectors, and makes the plan. */
static spmv_status begin(struct job *job, const char *const *arguments, int count)
{
    const struct options reading = options_for_matrix(job->o);
    spmv_status st = open_context(job->o, job->o->backend, &job->ctx);
    if (st == SPMV_OK)
        st = input_load(job->ctx, &reading, JOB_SOLVE, arguments[0], &job->in);
    if (st == SPMV_OK)
        st = input_needs_real(&job->in, "spmv solve");
    const double began = monotonic_seconds();
    if (st == SPMV_OK)
        st = check_matrix(job);
    job->look_seconds = monotonic_seconds() - began;
    if (st == SPMV_OK)
        st = prepare(job, count > 1 ? arguments[1] : NULL);
    if (st == SPMV_OK)
        st = send_vectors(job);
    if (st == SPMV_OK)
        set_goal(job);
    return st;
}

spmv_status run_solve(const struct options *o, const char *const *arguments, int count)
{
    struct job job = {.o = o};
    struct text_file json = {0};
    spmv_status st = check_wishes(o, arguments, count, &job.x_path);
    if (st == SPMV_OK)
        st = begin(&job, arguments, count);
    if (st == SPMV_OK && o->json)
        st = text_file_open(o->json_path, &json);
    if (st == SPMV_OK) {
        spmv_status written = SPMV_OK;
        const spmv_status ran = run_attempts(&job, &json, &written);
        if (o->json)
            written = first_failure(written, text_file_close(&json, ran == SPMV_OK && written == SPMV_OK));
        st = first_failure(ran, written);
        if (ran == SPMV_OK || job.best >= 0)
            st = first_failure(st, write_results(&job));
        st = conclude(&job, st);
    }
    release(&job);
    return st;
}
