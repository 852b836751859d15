/* spmv info: properties of a matrix, and the method that is selected for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app.h"

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

static const char *symmetry_text(const spmv_statistics *s)
{
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
    return s->pattern_symmetric ? "symmetric pattern, values differ" : "not symmetric";
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

static void print_info(const struct input *in, const spmv_statistics *s, const spmv_context *ctx,
                       const struct product *p)
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
        print_line("longest row", "%lld", (long long)s->max_row + 1);
    print_line("empty rows", "%lld", (long long)s->empty_rows);
    print_line("empty columns", "%lld", (long long)s->empty_cols);
    print_line("bandwidth", "%lld", (long long)s->bandwidth);
    print_line("mean row extent", "%.4g columns", s->row_extent);
    print_line("bandwidth fraction", "%.4g of the columns, mean over the rows", s->bw_frac);
    print_line("neighbours in the row", "%.4g of 2, mean over the nonzeros", s->avg_neighbours);
    print_line("like the next row", "%.4g of the columns, mean over the rows", s->cross_row_similarity);
    print_line("on the diagonal", "%lld", (long long)s->diagonal);
    if (in->info.entries > 0 || strcmp(in->source, "spec") != 0)
        print_line("duplicates in the file", "%lld", (long long)in->info.duplicates);
    print_line("explicit zeros", "%lld", (long long)s->explicit_zeros);
    print_line("not finite", "%lld", (long long)s->not_finite);
    print_line("symmetry", "%s", symmetry_text(s));
    print_line("method", "%s", p->info.method);
    print_line("on", "%s", spmv_context_describe(ctx));
    print_line("reason", "%s", p->info.why);
    if (p->info.layout[0] != '\0')
        print_line("plan", "%s", p->info.layout);
    print_line("memory of the plan", "%lld bytes, made in %s", (long long)p->info.bytes, seconds_text(p->info.seconds));
    printf("\n  %21s %12s\n", "row length", "rows");
    print_histogram(s);
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
                                   const struct product *p)
{
    json_t *root = json_about(o, p->ctx, in, s);
    json_put(root, "info", json_info(in, s));
    json_put(root, "result", json_plan(p, "spmv"));
    return json_finish(o, root);
}

spmv_status run_info(const struct options *o, const char *const *arguments, int count)
{
    spmv_context *ctx = NULL;
    struct input in = {0};
    struct product p = {.method = o->method, .compression = plan_compression(o, SPMV_BACKEND_AUTO, false)};
    spmv_statistics s = {0};
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
    if (st == SPMV_OK && !(o->json && o->json_path == NULL)) {
        print_info(&in, &s, ctx, &p);
        st = finish_stdout();
    }
    if (st == SPMV_OK && o->json)
        st = write_info_json(o, &in, &s, &p);
    product_free(&p);
    input_free(&in);
    spmv_context_destroy(ctx);
    return st;
}
