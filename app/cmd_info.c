/* spmv info: properties of a matrix, and the method that is selected for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/least_squares.h>
#include <spmv/solvers.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/commands.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/options.h"
#include "app/output.h"
#include "app/place/place.h"
#include "app/product.h"
#include "app/solve/solve_job.h"
#include "core/reals.h"

struct bin {
    int64_t from, to, rows; /* row lengths from ... to */
};

/* Fills the bins of the histogram up to the last non-empty one; returns their number. */
static int collect_bins(const spmv_statistics *s, struct bin *bins)
{
    int count = 0;
    for (int b = 0; b < SPMV_HISTOGRAM_BINS; b++) {
        const int64_t from = b == 0 ? 0 : (int64_t)1 << (b - 1);
        const bool last = b == SPMV_HISTOGRAM_BINS - 1;
        bins[b] = (struct bin){from, b == 0 ? 0 : last ? s->row_max : 2 * from - 1, s->histogram[b]};
        if (s->histogram[b] > 0)
            count = b + 1;
    }
    return count;
}

/* The largest |a_ij - conj(a_ji)| relative to the largest |a_ij|, of a matrix with a symmetric
 * pattern. -1: unknown. */
static double largest_difference(spmv_context *ctx, const spmv_csr *a)
{
    spmv_matrix *transposed = NULL;
    spmv_csr t;
    double difference = 0, largest = 0;
    if (a->val == NULL || spmv_matrix_transpose(ctx, a, &transposed) != SPMV_OK)
        return -1;
    spmv_matrix_view(transposed, &t);
    const spmv_type part = type_part(a->type);
    const int parts = type_parts(a->type);
    bool same = true; /* columns ascend in both, so equal patterns have the same order */
    for (int64_t k = 0; k < a->nnz && same; k++) {
        double of[2] = {0, 0}, apart[2] = {0, 0};
        same = a->col[k] == t.col[k];
        for (int p = 0; p < parts; p++) {
            of[p] = real_at(part, a->val, k * parts + p);
            const double other = real_at(part, t.val, k * parts + p);
            apart[p] = p == 0 ? of[p] - other : of[p] + other;
        }
        largest = fmax(largest, hypot(of[0], of[1]));
        difference = fmax(difference, hypot(apart[0], apart[1]));
    }
    spmv_matrix_destroy(transposed);
    return same && largest > 0 ? difference / largest : -1;
}

/* What info finds beside the statistics. */
struct findings {
    double difference; /* largest_difference; -1: not computed */
    char solver[32];   /* of spmv solve; "": none */
    char why[512];     /* this solver, or why there is none */
    char place[256];   /* where spmv solve runs, and why; "": where info runs */
    bool knows_condition;
    spmv_singular_values singular; /* if it is known */
};

/* A preconditioner of that many rows takes no time; without "auto", solve takes no dense factor. */
enum { SMALL_ROWS = 1000 };

static bool is_symmetric(const spmv_statistics *s)
{
    return s->hermitian || (s->pattern_symmetric && s->not_finite > 0);
}

/* The solver that spmv solve chooses in this context. Its preconditioner is chosen at the solve. a:
 * in the context's memory; plan: its plan, NULL: one is made. */
static void find_solver(spmv_context *ctx, spmv_plan *plan, const spmv_csr *a, const spmv_statistics *s,
                        struct findings *f)
{
    spmv_solver_options options;
    spmv_solver_info info;
    spmv_solver *solver = NULL;
    if (!s->square) {
        snprintf(f->solver, sizeof f->solver, "lsmr");
        snprintf(f->why, sizeof f->why, "least squares: the matrix is not square");
        return;
    }
    spmv_solver_options_init(&options, sizeof options);
    options.plan = plan;
    options.precond = s->rows <= SMALL_ROWS ? "auto" : "none";
    options.symmetry_check = is_symmetric(s) ? SPMV_SYMMETRY_TRUST : SPMV_SYMMETRY_SAMPLED;
    if (spmv_solver_create(ctx, a, &options, &solver) == SPMV_OK &&
        spmv_solver_describe(solver, &info, sizeof info) == SPMV_OK) {
        snprintf(f->solver, sizeof f->solver, "%s", info.solver);
        snprintf(f->why, sizeof f->why, "%s", info.why);
    } else {
        snprintf(f->why, sizeof f->why, "nothing: %s", plain_sentence(spmv_last_error(ctx)));
    }
    spmv_solver_destroy(solver);
}

/* The same where spmv solve runs. Under --backend auto that may be the CPU although info has found a
 * GPU. */
static void find_solver_and_place(const struct options *o, const struct product *p, const spmv_statistics *s,
                                  struct findings *f)
{
    spmv_context *cpu = NULL;
    const bool on_gpu = spmv_context_backend(p->ctx) == SPMV_BACKEND_CUDA;
    bool on_cpu = false;
    if (s->square && place_may_have_gpu(o) && job_decides(o) && open_context(o, SPMV_BACKEND_OMP, &cpu) == SPMV_OK) {
        const struct solve_place place = solve_place_of(o, p->a, p->type, is_symmetric(s), spmv_context_threads(cpu));
        on_cpu = on_gpu && !place.gpu;
        if (on_gpu || !place.gpu)
            snprintf(f->place, sizeof f->place, "%s: %s", place.gpu ? "a GPU" : "the CPU", place.why);
    }
    find_solver(on_cpu ? cpu : p->ctx, on_cpu ? NULL : p->plan, on_cpu ? p->a : &p->view, s, f);
    spmv_context_destroy(cpu);
}

static const char *symmetry_text(const spmv_statistics *s, const struct findings *f)
{
    static char text[128];
    if (!s->square)
        return "not square";
    if (s->symmetric && s->skew_symmetric)
        return "symmetric and skew-symmetric (every value is 0)";
    if (s->symmetric)
        return "symmetric";
    if (s->skew_symmetric)
        return "skew-symmetric";
    if (s->hermitian)
        return "hermitian";
    if (!s->pattern_symmetric)
        return "not symmetric";
    if (f->difference < 0)
        return "symmetric pattern, values differ";
    snprintf(text, sizeof text, "symmetric pattern, values differ by at most %.2g of the largest", f->difference);
    return text;
}

enum { BAR = 40, LABEL = 24, WIDTH = 100 };

/* The longest bar is the most frequent length. A non-empty bin has at least one mark. */
static void print_histogram(const spmv_statistics *s)
{
    struct bin bins[SPMV_HISTOGRAM_BINS];
    const int count = collect_bins(s, bins);
    int64_t most = 1;
    for (int b = 0; b < count; b++)
        most = bins[b].rows > most ? bins[b].rows : most;
    for (int b = 0; b < count; b++) {
        char range[48];
        if (bins[b].from == bins[b].to)
            snprintf(range, sizeof range, "%lld", (long long)bins[b].from);
        else
            snprintf(range, sizeof range, "%lld-%lld", (long long)bins[b].from, (long long)bins[b].to);
        const double share = (double)bins[b].rows / (double)most;
        const int marks = bins[b].rows == 0 ? 0 : share * BAR < 1 ? 1 : (int)(share * BAR);
        printf("  %21s %12lld%s%.*s\n", range, (long long)bins[b].rows, marks > 0 ? "  " : "", marks,
               "########################################");
    }
}

static void print_line(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print_line(const char *label, const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    printf("%-*s", LABEL, label);
    print_wrapped(text, LABEL, WIDTH);
}

/* The methods that the plan tried before it took its own, with the reasons against them. */
static void print_passed_over(const spmv_plan *plan)
{
    const char *reason = "", *method;
    for (int i = 0; (method = spmv_plan_passed_over(plan, i, &reason)) != NULL; i++)
        print_line(i == 0 ? "not taken" : "", "%s: %s", method, reason);
}

/* Each digit of the condition number is one that x may lose. */
static void print_condition(const spmv_singular_values *v, spmv_type type)
{
    static const double rtol = 1e-8; /* of spmv solve */
    const double unit = real_limits_of(type_part(type)).roundoff, condition = v->largest / v->smallest;
    print_line("singular values", "%.4g to %.4g, after %lld steps", v->smallest, v->largest, (long long)v->iterations);
    if (v->iterations == 0) {
        print_line("condition number", "no entries");
        return;
    }
    if (v->singular) {
        print_line("condition number", "infinite to the precision of %s: the matrix has lost rank",
                   spmv_type_name(type));
        print_line("accuracy of x", "A x = b has a solution only for some b, and then many; see --solver lsmr");
        return;
    }
    print_line("condition number", "%s %.3g%s", v->converged ? "about" : "at least", condition,
               v->converged ? "" : ": the smallest singular value has not converged");
    if (condition * rtol >= 1)
        print_line("accuracy of x",
                   "%sno digit of x is certain at a relative residual of %.0e; in %s the best relative error "
                   "is about %.0e",
                   v->converged ? "" : "at most: ", rtol, spmv_type_name(type), fmin(1, condition * unit));
    else
        print_line("accuracy of x",
                   "a relative residual of %.0e allows a relative error of x up to %.0e; in %s the best is "
                   "about %.0e%s",
                   rtol, condition * rtol, spmv_type_name(type), condition * unit,
                   v->converged ? "" : ", or more, since the condition number may be larger");
}

static void print_info(const struct input *in, const spmv_statistics *s, const spmv_context *ctx,
                       const struct product *p, const struct findings *f)
{
    print_line("matrix", "%s", in->argument);
    print_line("size", "%lld x %lld", (long long)s->rows, (long long)s->cols);
    print_line("nonzeros", "%lld%s", (long long)s->nnz,
               in->view.val == NULL             ? ", a pattern: every entry is 1"
               : type_is_complex(in->view.type) ? ", complex"
                                                : "");
    print_line("row lengths", "%lld to %lld, mean %.4g, standard deviation %.4g", (long long)s->row_min,
               (long long)s->row_max, s->row_mean, s->row_std);
    if (s->max_row >= 0)
        print_line("longest row", "row %lld, with %lld entr%s", (long long)s->max_row + 1, (long long)s->row_max,
                   s->row_max == 1 ? "y" : "ies");
    print_line("empty rows", "%lld", (long long)s->empty_rows);
    print_line("empty columns", "%lld", (long long)s->empty_cols);
    print_line("bandwidth", "%lld", (long long)s->bandwidth);
    print_line("mean row extent", "%.4g column%s", s->row_extent, s->row_extent == 1 ? "" : "s");
    print_line("bandwidth fraction", "%.4g of the columns, mean over the rows", s->bw_frac);
    print_line("neighbours in the row", "%.4g of 2, mean over the nonzeros", s->avg_neighbours);
    print_line("like the next row", "%.4g of the columns, mean over the rows", s->cross_row_similarity);
    print_line("on the diagonal", "%lld", (long long)s->diagonal);
    if (in->info.entries > 0 || strcmp(in->source, "spec") != 0)
        print_line("duplicates in the file", "%lld", (long long)in->info.duplicates);
    print_line("explicit zeros", "%lld", (long long)s->explicit_zeros);
    print_line("not finite", "%lld", (long long)s->not_finite);
    print_line("symmetry", "%s", symmetry_text(s, f));
    print_line("method", "%s", p->info.method);
    print_line("on", "%s", spmv_context_describe(ctx));
    print_line("reason", "%s", p->info.why);
    print_passed_over(p->plan);
    if (p->info.layout[0] != '\0')
        print_line("plan", "%s", p->info.layout);
    print_line("spmv solve takes", "%s%s%s", f->solver, f->solver[0] != '\0' ? ": " : "", f->why);
    if (f->place[0] != '\0')
        print_line("spmv solve runs on", "%s", f->place);
    if (f->knows_condition)
        print_condition(&f->singular, p->type);
    print_line("memory of the plan", "%lld bytes, made in %s", (long long)p->info.bytes, seconds_text(p->info.seconds));
    printf("\n  %21s %12s\n", "row length", "rows");
    print_histogram(s);
}

static json_t *json_passed_over(const spmv_plan *plan)
{
    const char *reason = "", *method;
    json_t *all = json_array();
    for (int i = 0; (method = spmv_plan_passed_over(plan, i, &reason)) != NULL; i++)
        json_array_append_new(all, json_pack("{s:s, s:s}", "method", method, "reason", reason));
    return all;
}

static json_t *json_info(const struct input *in, const spmv_statistics *s)
{
    struct bin bins[SPMV_HISTOGRAM_BINS];
    const int count = collect_bins(s, bins);
    json_t *info = json_pack("{s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:b}", "empty_rows",
                             (json_int_t)s->empty_rows, "empty_cols", (json_int_t)s->empty_cols, "bandwidth",
                             (json_int_t)s->bandwidth, "row_extent", s->row_extent, "diagonal", (json_int_t)s->diagonal,
                             "explicit_zeros", (json_int_t)s->explicit_zeros, "not_finite", (json_int_t)s->not_finite,
                             "pattern", in->view.val == NULL, "square", s->square, "pattern_symmetric",
                             s->pattern_symmetric, "symmetric", s->symmetric, "skew_symmetric", s->skew_symmetric);
    if (in->view.val != NULL && type_is_complex(in->view.type))
        json_put(info, "hermitian", json_boolean(s->hermitian));
    json_put(info, "bw_frac", json_real(s->bw_frac));
    json_put(info, "avg_neighbours", json_real(s->avg_neighbours));
    json_put(info, "cross_row_similarity", json_real(s->cross_row_similarity));
    if (strcmp(in->source, "spec") != 0)
        json_put(info, "duplicates", json_integer((json_int_t)in->info.duplicates));
    json_t *histogram = json_array();
    for (int b = 0; b < count; b++)
        json_array_append_new(histogram, json_pack("{s:I, s:I, s:I}", "from", (json_int_t)bins[b].from, "to",
                                                   (json_int_t)bins[b].to, "rows", (json_int_t)bins[b].rows));
    json_put(info, "histogram", histogram);
    return info;
}

static spmv_status write_info_json(const struct options *o, const struct input *in, const spmv_statistics *s,
                                   const struct product *p, const struct findings *f)
{
    json_t *root = json_about(o, p->ctx, in, s);
    json_t *const info = json_info(in, s);
    json_put(info, "largest_row", json_integer((json_int_t)s->max_row));
    if (f->difference >= 0)
        json_put(info, "difference", json_number(f->difference));
    json_put(info, "solver", f->solver[0] != '\0' ? json_string(f->solver) : json_null());
    json_put(info, "why_solver", json_text(f->why));
    if (f->place[0] != '\0')
        json_put(info, "place_of_solve", json_string(f->place));
    if (f->knows_condition) {
        const spmv_singular_values *const v = &f->singular;
        json_put(info, "singular_values",
                 json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:I}", "largest", json_number(v->largest),
                           "largest_error", json_number(v->largest_error), "smallest", json_number(v->smallest),
                           "smallest_error", json_number(v->smallest_error), "condition",
                           v->singular || v->iterations == 0 ? json_null() : json_number(v->largest / v->smallest),
                           "converged", v->converged, "singular", v->singular, "iterations",
                           (json_int_t)v->iterations));
    }
    json_put(info, "passed_over", json_passed_over(p->plan));
    json_put(root, "info", info);
    json_put(root, "result", json_plan(p, "spmv"));
    return json_finish(o, root);
}

spmv_status run_info(const struct options *o, const char *const *arguments, int count)
{
    spmv_context *ctx = NULL;
    struct input in = {0};
    struct product p = {.method = o->method, .compression = plan_compression(o, SPMV_BACKEND_AUTO, false)};
    spmv_statistics s = {0};
    struct findings f = {.difference = -1};
    (void)count;
    const struct options reading = options_for_matrix(o);
    spmv_status st = check_writable(o);
    if (st == SPMV_OK)
        st = open_context(o, o->backend, &ctx);
    if (st == SPMV_OK)
        st = input_load(ctx, &reading, JOB_INFO, arguments[0], &in);
    if (st == SPMV_OK) {
        st = spmv_matrix_statistics(ctx, &in.view, &s, sizeof s);
        if (st != SPMV_OK)
            report(st, spmv_last_error(ctx));
    }
    if (st == SPMV_OK) {
        p.a = &in.view;
        p.type = input_type(o, &in);
        st = product_plan(ctx, &p);
    }
    if (st == SPMV_OK) {
        if (s.pattern_symmetric && !s.symmetric && !s.skew_symmetric && !s.hermitian)
            f.difference = largest_difference(ctx, &in.view);
        find_solver_and_place(o, &p, &s, &f);
    }
    if (st == SPMV_OK && o->condition) {
        st = spmv_estimate_singular_values(ctx, &p.view, 1e-3, 0, &f.singular, sizeof f.singular);
        f.knows_condition = st == SPMV_OK;
        if (st != SPMV_OK)
            report(st, spmv_last_error(ctx));
    }
    if (st == SPMV_OK && !(o->json && o->json_path == NULL)) {
        print_info(&in, &s, ctx, &p, &f);
        st = finish_stdout();
    }
    if (st == SPMV_OK && o->json)
        st = write_info_json(o, &in, &s, &p, &f);
    product_free(&p);
    input_free(&in);
    spmv_context_destroy(ctx);
    return st;
}
