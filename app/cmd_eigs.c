/* spmv eigs and spmv svds: eigenvalues of a symmetric matrix, and largest singular values of any.
 *
 * Steps: load, solve, sum the residuals again on the host, report, write. The answer is the values, one per line; -o has the
 * vectors. A solve that stopped early still gives its pairs; the exit code and the last message tell.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/input.h"
#include "app/options.h"
#include "app/output.h"
#include "app/product.h"
#include "app/solve/solve.h"
#include "app/stops.h"
#include "core/choice.h"
#include "core/plural.h"
#include "core/reals.h"

/* Values and residuals of each iteration, in turn, `pairs` each. */
struct record {
    double *at;
    int64_t count, room; /* iterations */
    bool failed;
};

/* A matrix in the context's memory, and its arrays if that is not host memory. */
struct sent {
    spmv_csr view;
    void *arrays[3];
};

struct spectrum {
    const struct options *o;
    bool singular;
    int which;
    double shift;
    spmv_context *ctx;
    struct input in, mass;
    struct sent there[2]; /* of these */
    double upload_seconds;
    spmv_statistics statistics;
    spmv_type type;
    int pairs;
    int64_t rows, other_rows; /* of the vectors written; of the left singular vectors */
    double *values;
    spmv_eigen_result *each;
    void *vectors, *others; /* host memory */
    struct record record;
    double began, seconds, repeat_seconds;
    spmv_status stop, verdict;
    char failure[512];
    bool repeats, other_bits;
    int wrong;      /* the first pair whose residual is not the reported one; pairs: none */
    double checked; /* its residual */
};

/* ---------------------------------------------------------------- options */

static spmv_status take_which(struct spectrum *s)
{
    static const char *const names[] = {"smallest", "largest", "magnitude"};
    const char *const which = s->o->which;
    if (s->singular) {
        s->which = SPMV_EIGEN_LARGEST;
        return SPMV_OK;
    }
    for (int i = 0; i < 3; i++)
        if (strcmp(which, names[i]) == 0) {
            s->which = i;
            return SPMV_OK;
        }
    if (strncmp(which, "near:", 5) == 0) {
        char *end = NULL;
        s->which = SPMV_EIGEN_NEAR;
        s->shift = strtod(which + 5, &end);
        if (which[5] != '\0' && *end == '\0' && isfinite(s->shift))
            return SPMV_OK;
    }
    complain("--which %s: must be smallest, largest, magnitude, or near:S with a number S", which);
    return SPMV_ERROR_ARGUMENT;
}

static spmv_status check_options(struct spectrum *s, const char *const *arguments)
{
    const struct options *const o = s->o;
    spmv_status st = check_standard_input(o, arguments, 1);
    if (st == SPMV_OK)
        st = take_which(s);
    if (st == SPMV_OK && o->history != NULL && (o->history[0] == '\0' || strcmp(o->history, "-") == 0))
        st = report(SPMV_ERROR_ARGUMENT, "--history needs a file name");
    if (st == SPMV_OK && strcmp(o->precond, "all") == 0)
        st = report(SPMV_ERROR_ARGUMENT, "--precond all is for spmv solve");
    if (st == SPMV_OK && o->output != NULL)
        st = check_format(o, o->output, false);
    if (st == SPMV_OK && o->plot != NULL)
        st = solve_plot_ready(o->plot);
    if (st == SPMV_OK)
        st = check_outputs(o, NULL);
    if (st == SPMV_OK)
        st = check_inputs(o, arguments, 1, NULL);
    return st == SPMV_OK ? check_writable(o) : st;
}

/* ---------------------------------------------------------------- the solve */

static spmv_status passed(const struct spectrum *s, spmv_status st)
{
    return st == SPMV_OK ? st : report(st, spmv_last_error(s->ctx));
}

static int asks_stops(void *user)
{
    (void)user;
    return stops_asked();
}

static int on_iteration(int64_t iteration, int pairs, const double *values, const double *residuals, void *user)
{
    struct spectrum *const s = user;
    struct record *const r = &s->record;
    int done = 0;
    double worst = 0;
    if (iteration == 0)
        stops_defer();
    for (int j = 0; j < pairs; j++) {
        done += residuals[j] >= 0 && residuals[j] <= s->o->rtol * fabs(values[j]);
        worst = fmax(worst, residuals[j]);
    }
    progress_show(s->began, "iteration %lld: %d of %d pairs, largest residual %.3g", (long long)iteration, done, pairs,
                  worst);
    if ((s->o->history == NULL && s->o->plot == NULL) || s->repeats)
        return stops_asked();
    if (r->count == r->room) {
        const int64_t room = 2 * r->room + 64;
        double *const more = realloc(r->at, (size_t)(room * 2 * pairs) * sizeof *more);
        r->failed = more == NULL;
        if (more == NULL)
            return 1;
        r->at = more;
        r->room = room;
    }
    double *const to = r->at + r->count++ * 2 * pairs;
    memcpy(to, values, (size_t)pairs * sizeof *to);
    memcpy(to + pairs, residuals, (size_t)pairs * sizeof *to);
    return stops_asked();
}

/* Solves, and copies the vectors to host memory. */
static spmv_status solve_once(struct spectrum *s, void *vectors, void *others, spmv_status *stop)
{
    spmv_eigen_options options;
    void *there = NULL, *other = NULL;
    const int64_t size = (int64_t)spmv_type_size(s->type), bytes = s->rows * s->pairs * size,
                  other_bytes = s->other_rows * s->pairs * size;
    spmv_eigen_options_init(&options, sizeof options);
    options.pairs = s->pairs;
    options.which = s->which;
    options.shift = s->shift;
    options.mass = s->o->mass != NULL ? &s->there[1].view : NULL;
    options.solver = s->o->solver;
    options.precond = s->o->precond;
    options.type = s->type;
    options.rtol = s->o->rtol;
    options.max_iterations = s->o->max_iterations;
    options.symmetry_check =
        s->o->mass == NULL && (type_is_complex(s->in.view.type) ? s->statistics.hermitian : s->statistics.symmetric)
            ? SPMV_SYMMETRY_TRUST
            : SPMV_SYMMETRY_SAMPLED;
    options.on_iteration = on_iteration;
    options.user = s;
    spmv_status st = spmv_alloc(s->ctx, bytes, &there);
    if (st == SPMV_OK && s->singular)
        st = spmv_alloc(s->ctx, other_bytes, &other);
    if (st != SPMV_OK)
        return passed(s, st);
    s->began = monotonic_seconds();
    *stop = s->singular
                ? spmv_svds(s->ctx, &s->there[0].view, &options, s->values, other, there, s->each, sizeof *s->each)
                : spmv_eigs(s->ctx, &s->there[0].view, &options, s->values, there, s->each, sizeof *s->each);
    s->seconds = monotonic_seconds() - s->began;
    progress_end();
    if (s->record.failed)
        st = report(SPMV_ERROR_MEMORY, "the history: no memory");
    else if (*stop != SPMV_OK && spmv_status_class(*stop) != 7 && *stop != SPMV_CANCELLED)
        st = passed(s, *stop);
    else if (*stop != SPMV_OK && s->each[0].solver[0] == '\0') /* it has set nothing */
        st = passed(s, *stop);
    if (st == SPMV_OK && *stop != SPMV_OK)
        snprintf(s->failure, sizeof s->failure, "%s%s%s", *stop == SPMV_CANCELLED ? "stopped by " : "",
                 *stop == SPMV_CANCELLED ? stops_reason() : spmv_last_error(s->ctx), "");
    if (st == SPMV_OK)
        st = passed(s, spmv_download(s->ctx, there, vectors, bytes));
    if (st == SPMV_OK && s->singular)
        st = passed(s, spmv_download(s->ctx, other, others, other_bytes));
    spmv_free(s->ctx, there);
    spmv_free(s->ctx, other);
    return st;
}

static spmv_status send(const struct spectrum *s, const struct input *in, struct sent *to)
{
    const spmv_csr *const a = &in->view;
    spmv_status st = SPMV_OK;
    to->view = *a;
    to->view.memory = SPMV_MEMORY_CONTEXT;
    if (spmv_context_backend(s->ctx) != SPMV_BACKEND_CUDA)
        return st;
    st = send_array(s->ctx, a->row_ptr, (a->rows + 1) * (a->row_ptr_bits / 8), &to->arrays[0]);
    if (st == SPMV_OK)
        st = send_array(s->ctx, a->col, a->nnz * (int64_t)sizeof *a->col, &to->arrays[1]);
    if (st == SPMV_OK && a->val != NULL)
        st = send_array(s->ctx, a->val, a->nnz * (int64_t)spmv_type_size(a->type), &to->arrays[2]);
    to->view.row_ptr = to->arrays[0];
    to->view.col = to->arrays[1];
    to->view.val = to->arrays[2];
    return passed(s, st);
}

static spmv_status load(struct spectrum *s, const char *argument)
{
    const struct options reading = options_for_matrix(s->o);
    spmv_status st = input_load(s->ctx, &reading, JOB_INFO, argument, &s->in);
    if (st == SPMV_OK && s->o->mass != NULL)
        st = input_load(s->ctx, &reading, JOB_INFO, s->o->mass, &s->mass);
    if (st == SPMV_OK)
        st = passed(s, spmv_matrix_statistics(s->ctx, &s->in.view, &s->statistics, sizeof s->statistics));
    if (st != SPMV_OK)
        return st;
    const double sending = monotonic_seconds();
    st = send(s, &s->in, &s->there[0]);
    if (st == SPMV_OK && s->o->mass != NULL)
        st = send(s, &s->mass, &s->there[1]);
    if (st != SPMV_OK)
        return st;
    s->upload_seconds = monotonic_seconds() - sending;
    const spmv_csr *const a = &s->in.view;
    const int64_t most = a->rows < a->cols ? a->rows : a->cols;
    s->type = input_type(s->o, &s->in);
    s->pairs = s->o->pairs < most || option_given(s->o, "pairs") ? s->o->pairs : (int)most;
    s->rows = a->cols;
    s->other_rows = s->singular ? a->rows : 0;
    if (!s->singular && a->rows == a->cols && a->val != NULL && !s->statistics.hermitian && !s->statistics.symmetric) {
        complain("%s is not %s: spmv eigs needs a symmetric matrix; spmv svds finds singular values of any", argument,
                 type_is_complex(s->type) ? "Hermitian" : "symmetric");
        return SPMV_ERROR_NOT_SYMMETRIC;
    }
    st = allocate("the values", s->pairs, sizeof *s->values, (void **)&s->values);
    if (st == SPMV_OK)
        st = allocate("the results", s->pairs, sizeof *s->each, (void **)&s->each);
    if (st == SPMV_OK)
        st = allocate("the vectors", s->rows * s->pairs, spmv_type_size(s->type), &s->vectors);
    if (st == SPMV_OK && s->singular)
        st = allocate("the vectors", s->other_rows * s->pairs, spmv_type_size(s->type), &s->others);
    return st;
}

static spmv_status solve_again(struct spectrum *s)
{
    void *vectors = NULL, *others = NULL;
    double *first = NULL;
    spmv_status stop = SPMV_OK;
    const size_t bytes = (size_t)(s->rows * s->pairs) * spmv_type_size(s->type);
    spmv_status st = allocate("vectors of a repeat", s->rows * s->pairs, spmv_type_size(s->type), &vectors);
    if (st == SPMV_OK && s->singular)
        st = allocate("vectors of a repeat", s->other_rows * s->pairs, spmv_type_size(s->type), &others);
    if (st == SPMV_OK)
        st = allocate("values of a repeat", s->pairs, sizeof *first, (void **)&first);
    if (st == SPMV_OK) {
        memcpy(first, s->values, (size_t)s->pairs * sizeof *first);
        s->repeats = true;
        st = solve_once(s, vectors, others, &stop);
    }
    if (st == SPMV_OK)
        s->other_bits = stop != s->stop || memcmp(vectors, s->vectors, bytes) != 0 ||
                        memcmp(first, s->values, (size_t)s->pairs * sizeof *first) != 0;
    free(vectors);
    free(others);
    free(first);
    return st;
}

/* ---------------------------------------------------------------- the check */

/* Adds by times row i of a matrix times vector j. */
static void add_row(const spmv_csr *a, int64_t i, const void *x, spmv_type type, int pairs, int j, long double by,
                    long double sum[2])
{
    const int parts = type_parts(type), of_value = a->val != NULL ? type_parts(a->type) : 1;
    for (int64_t k = row_begin(a, i); k < row_begin(a, i + 1); k++) {
        const int64_t at = ((int64_t)a->col[k] * pairs + j) * parts;
        const double re = a->val == NULL ? 1 : real_at(type_part(a->type), a->val, k * of_value);
        const double im = of_value == 2 ? real_at(type_part(a->type), a->val, k * 2 + 1) : 0;
        const double x_re = real_at(type_part(type), x, at),
                     x_im = parts == 2 ? real_at(type_part(type), x, at + 1) : 0;
        sum[0] += by * ((long double)re * x_re - (long double)im * x_im);
        sum[1] += by * ((long double)re * x_im + (long double)im * x_re);
    }
}

/* ||A x - lambda x|| of pair j; of singular values ||A v - sigma u||, which is 0 or the residual. */
static double residual_of(const struct spectrum *s, int j)
{
    long double square = 0;
    const int parts = type_parts(s->type);
    for (int64_t i = 0; i < s->in.view.rows; i++) {
        long double sum[2] = {0, 0};
        add_row(&s->in.view, i, s->vectors, s->type, s->pairs, j, 1, sum);
        const void *const of = s->singular ? s->others : s->vectors;
        for (int c = 0; c < parts; c++)
            sum[c] -= (long double)s->values[j] * real_at(type_part(s->type), of, (i * s->pairs + j) * parts + c);
        square += sum[0] * sum[0] + sum[1] * sum[1];
    }
    return (double)sqrtl(square);
}

/* With a mass matrix, the norm of residuals is another one: they are not compared. */
static bool can_check(const struct spectrum *s)
{
    return s->o->verify != VERIFY_OFF && s->o->mass == NULL;
}

static spmv_status check(struct spectrum *s)
{
    spmv_status st = SPMV_OK;
    s->wrong = s->pairs;
    for (int j = 0; j < s->pairs && can_check(s) && s->wrong == s->pairs; j++) {
        const double residual = residual_of(s, j), rounding = s->each[j].error_bound - s->each[j].residual;
        s->checked = residual;
        if (!(residual <= 1.001 * s->each[j].residual + 16 * rounding))
            s->wrong = j;
    }
    if (s->wrong < s->pairs)
        s->verdict = SPMV_ERROR_CHECK;
    if (s->o->verify == VERIFY_BITWISE) {
        spmv_eigen_result *const first = s->each;
        s->each = NULL;
        st = allocate("results of a repeat", s->pairs, sizeof *s->each, (void **)&s->each);
        const double seconds = s->seconds;
        if (st == SPMV_OK)
            st = solve_again(s);
        free(s->each);
        s->each = first;
        s->repeat_seconds = s->seconds;
        s->seconds = seconds;
        if (s->other_bits)
            s->verdict = SPMV_ERROR_CHECK;
    }
    return st;
}

/* ---------------------------------------------------------------- the report */

static const char *word_of(spmv_status st)
{
    return st == SPMV_OK                 ? "ok"
           : st == SPMV_ERROR_ITERATIONS ? "iterations"
           : st == SPMV_CANCELLED        ? "cancelled"
                                         : "stagnation";
}

static void remark_all(const struct spectrum *s)
{
    const spmv_eigen_result *const r = s->each;
    const bool many = s->pairs > 40 && messages_level() < LEVEL_VERBOSE;
    remark(LEVEL_NORMAL, "%s: %lld x %lld, %lld nonzeros, on %s", s->in.argument, (long long)s->in.view.rows,
           (long long)s->in.view.cols, (long long)s->in.view.nnz, spmv_context_describe(s->ctx));
    remark(LEVEL_NORMAL, "%s: %s", r->solver, r->why_solver);
    if (r->precond[0] != '\0')
        remark(LEVEL_NORMAL, "preconditioner %s: %s", r->precond, r->why_precond);
    remark(LEVEL_NORMAL, "%lld %s%s, %lld vectors multiplied by A, block of %d; set-up %s, solve %s",
           (long long)r->iterations, strcmp(r->solver, "lanczos") == 0 ? "restart" : "iteration", plural(r->iterations),
           (long long)r->products, r->block, seconds_text(r->setup_seconds), seconds_text(r->solve_seconds));
    remark(LEVEL_NORMAL, "%s", r->why_stop);
    remark_row("  %5s %24s %11s %11s %11s  status", "pair", s->singular ? "singular value" : "eigenvalue", "residual",
               "error at most", "if separated");
    for (int j = 0; j < s->pairs && (!many || j < 20); j++)
        remark_row("  %5d %24.16g %11.3g %13.3g %12.3g  %s", j + 1, r[j].value, r[j].residual, r[j].error_bound,
                   r[j].separated_bound, word_of(r[j].status));
    if (many)
        remark_row("  ... (-v shows all)");
}

static void tell_verdict(const struct spectrum *s)
{
    if (!can_check(s))
        remark(LEVEL_NORMAL,
               s->o->verify == VERIFY_OFF ? "not checked" : "residuals are not summed again: a mass matrix");
    else if (s->wrong == s->pairs)
        remark(LEVEL_NORMAL, "residuals summed again from the vectors agree");
    else
        complain("CHECK FAILED: the residual of pair %d is %.17g; summed again, it is %.17g", s->wrong + 1,
                 s->each[s->wrong].residual, s->checked);
    if (s->other_bits)
        complain("CHECK FAILED: a repeat of the solve gave different bits");
    else if (s->repeats)
        remark(LEVEL_NORMAL, "a repeat of the solve gave the same bits, in %s", seconds_text(s->repeat_seconds));
}

static json_t *json_spectrum(const struct spectrum *s)
{
    const spmv_eigen_result *const r = s->each;
    json_t *const root = json_about(s->o, s->ctx, &s->in, &s->statistics), *const pairs = json_array();
    for (int j = 0; j < s->pairs; j++)
        json_array_append_new(pairs,
                              json_pack("{s:o, s:o, s:o, s:o, s:o, s:s}", "value", json_number(r[j].value), "residual",
                                        json_number(r[j].residual), "tolerance", json_number(r[j].tolerance),
                                        "error_bound", json_number(r[j].error_bound), "separated_bound",
                                        json_number(r[j].separated_bound), "status", word_of(r[j].status)));
    json_t *const eigs = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:o, s:f, s:f}", "solver", r->solver,
                                   "why_solver", r->why_solver, "precond", r->precond, "why_precond", r->why_precond,
                                   "why_stop", r->why_stop, "iterations", (json_int_t)r->iterations, "products",
                                   (json_int_t)r->products, "block", r->block, "rtol", json_number(s->o->rtol),
                                   "setup_seconds", r->setup_seconds, "solve_seconds", r->solve_seconds);
    json_put(eigs, "which", json_string(s->singular ? "largest" : s->o->which));
    json_put(eigs, "status", json_string(word_of(s->stop)));
    if (s->failure[0] != '\0')
        json_put(eigs, "message", json_text(plain_sentence(s->failure)));
    json_put(eigs, "pairs", pairs);
    json_t *const result = json_pack("{s:s, s:s, s:s, s:f}", "op", s->singular ? "svds" : "eigs", "backend",
                                     spmv_backend_name(spmv_context_backend(s->ctx)), "type", spmv_type_name(s->type),
                                     "total_seconds", s->seconds);
    if (s->repeats)
        json_put(result, "bitwise",
                 json_pack("{s:i, s:b, s:f}", "repeats", 1, "equal", !s->other_bits, "seconds", s->repeat_seconds));
    json_put(result, "upload_seconds", json_number(s->upload_seconds));
    json_put(result, "eigs", eigs);
    json_put(root, "result", result);
    return root;
}

/* iteration,pair,value,residual */
static spmv_status write_history(const struct spectrum *s)
{
    struct text_file file = {0};
    char line[2 * NUMBER_TEXT + 64];
    spmv_status st = text_file_open(s->o->history, &file);
    if (st == SPMV_OK)
        st = text_file_add(&file, "iteration,pair,value,residual\n", 30);
    for (int64_t i = 0; i < s->record.count && st == SPMV_OK; i++)
        for (int j = 0; j < s->pairs && st == SPMV_OK; j++) {
            const double *const at = s->record.at + (i * 2) * s->pairs + j;
            char *to = line + sprintf(line, "%lld,%d,", (long long)i, j + 1);
            to += number_text(at[0], to);
            *to++ = ',';
            to += number_text(at[s->pairs], to);
            *to++ = '\n';
            st = text_file_add(&file, line, (size_t)(to - line));
        }
    const spmv_status closed = text_file_close(&file, st == SPMV_OK);
    return st != SPMV_OK ? st : closed;
}

/* A line for each of up to seven pairs: the first, the last, and those between at equal distances. */
static spmv_status draw(const struct spectrum *s)
{
    enum { LINES = 7 };
    struct attempt lines[LINES];
    const int count = s->pairs < LINES ? s->pairs : LINES;
    spmv_status st = SPMV_OK;
    memset(lines, 0, sizeof lines);
    for (int l = 0; l < count && st == SPMV_OK; l++) {
        const int j = count == 1 ? 0 : (int)((int64_t)l * (s->pairs - 1) / (count - 1));
        struct attempt *const line = &lines[l];
        line->columns = 1;
        line->stop = s->each[j].status;
        line->result.iterations = s->each[j].iterations;
        snprintf(line->result.precond, sizeof line->result.precond, "pair %d, %.6g", j + 1, s->each[j].value);
        line->watch.goal = j == 0 ? s->each[0].tolerance : 0;
        line->watch.count = s->record.count;
        st = allocate("the picture", s->record.count, sizeof(double), (void **)&line->watch.residuals);
        for (int64_t i = 0; i < s->record.count && st == SPMV_OK; i++)
            line->watch.residuals[i] = s->record.at[(2 * i + 1) * s->pairs + j];
    }
    if (st == SPMV_OK)
        st = solve_plot_write(s->o->plot, s->in.name, lines, count);
    for (int l = 0; l < count; l++)
        free(lines[l].watch.residuals);
    return st;
}

static spmv_status first_failure(spmv_status first, spmv_status then)
{
    return first != SPMV_OK ? first : then;
}

static spmv_status print_values(const struct spectrum *s)
{
    char text[NUMBER_TEXT];
    for (int j = 0; j < s->pairs; j++) {
        number_text(s->values[j], text);
        puts(text);
    }
    return finish_stdout();
}

static spmv_status write_results(const struct spectrum *s)
{
    const struct options *const o = s->o;
    spmv_status st = SPMV_OK;
    if (!(o->json && o->json_path == NULL))
        st = print_values(s);
    if (o->json)
        st = first_failure(st, json_finish(o, json_spectrum(s)));
    if (o->output != NULL)
        st = first_failure(st, write_answer(s->ctx, o, o->output, s->type, s->vectors, s->rows, s->pairs));
    if (o->history != NULL)
        st = first_failure(st, write_history(s));
    if (o->plot != NULL)
        st = first_failure(st, draw(s));
    return st;
}

static spmv_status find(const struct options *o, const char *const *arguments, bool singular)
{
    struct spectrum s = {.o = o, .singular = singular};
    spmv_status st = check_options(&s, arguments);
    stops_after(o->max_seconds);
    if (st == SPMV_OK)
        st = open_context(o, o->backend, &s.ctx);
    if (st == SPMV_OK)
        st = load(&s, arguments[0]);
    if (st == SPMV_OK) {
        spmv_context_set_cancel(s.ctx, asks_stops, NULL);
        st = solve_once(&s, s.vectors, s.others, &s.stop);
    }
    if (st == SPMV_OK)
        st = check(&s);
    if (st == SPMV_OK) {
        if (messages_level() > LEVEL_QUIET)
            remark_all(&s);
        tell_verdict(&s);
        stops_serve();
        st = write_results(&s);
        if (s.failure[0] != '\0')
            complain("%s", plain_sentence(s.failure));
        st = s.verdict != SPMV_OK ? s.verdict : first_failure(st, s.stop);
    }
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < 3; i++)
            spmv_free(s.ctx, s.there[m].arrays[i]);
    free(s.values);
    free(s.each);
    free(s.vectors);
    free(s.others);
    free(s.record.at);
    input_free(&s.in);
    input_free(&s.mass);
    spmv_context_destroy(s.ctx);
    return st;
}

spmv_status run_eigs(const struct options *o, const char *const *arguments, int count)
{
    (void)count;
    return find(o, arguments, false);
}

spmv_status run_svds(const struct options *o, const char *const *arguments, int count)
{
    (void)count;
    return find(o, arguments, true);
}
