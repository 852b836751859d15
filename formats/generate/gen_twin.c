/* twin: a matrix with the statistics of another one: size, row lengths, bandwidth, neighbours in a
 * row, similarity of rows.
 *
 * The idea, the statistics and the figures of the known matrices are from P. Mpakos, D.
 * Galanopoulos, P. Anastasiadis, N. Papadopoulou, N. Koziris, G. Goumas, "Feature-based SpMV
 * performance analysis on contemporary devices", IPDPS 2023 (arXiv 2302.04225). The construction is
 * new: twin_lengths.c, twin_columns.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/name_list.h"
#include "formats/generate/generate.h"
#include "formats/generate/twin.h"

/* The figures a SPEC can state. */
enum figure { ROWS, COLS, NNZ, STD, MAX, BW_FRAC, AVG_NEIGHBOURS, CROSS_ROW_SIMILARITY, FIGURES };
static const char *const figure_names[FIGURES] = {[ROWS] = "rows",
                                                  [COLS] = "cols",
                                                  [NNZ] = "nnz",
                                                  [STD] = "std",
                                                  [MAX] = "max",
                                                  [BW_FRAC] = "bw_frac",
                                                  [AVG_NEIGHBOURS] = "avg_neighbours",
                                                  [CROSS_ROW_SIMILARITY] = "cross_row_similarity"};
static inline bool is_count(enum figure f)
{
    return f == ROWS || f == COLS || f == NNZ || f == MAX;
}

struct figures {
    bool given[FIGURES];
    double value[FIGURES];  /* of all figures */
    int64_t count[FIGURES]; /* of the figures that are counts */
};

static spmv_status fail(spmv_context *ctx, const struct generator_request *request, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static spmv_status fail(spmv_context *ctx, const struct generator_request *request, const char *format, ...)
{
    char why[800];
    va_list values;
    va_start(values, format);
    vsnprintf(why, sizeof why, format, values);
    va_end(values);
    return context_fail(ctx, SPMV_ERROR_SPEC, "matrix SPEC \"twin:%.150s\": %s", request->arguments, why);
}

static spmv_status find_known(spmv_context *ctx, const struct generator_request *request, struct twin *twin)
{
    const char *const name = request->arguments;
    struct names names = {.count = 0};
    char unknown[700];
    for (int k = 0; k < twin_list_count; k++)
        names_add_row(&names, twin_list[k].name, &twin_list[k]);
    const int at = names_find(&names, name, strlen(name));
    if (at >= 0) {
        *twin = *(const struct twin *)names.row[at];
        return SPMV_OK;
    }
    names_unknown(&names, "twin", name, strlen(name), NULL, unknown, sizeof unknown);
    return fail(ctx, request, "%s; or give its figures: twin:rows=R,nnz=N,...", unknown);
}

/* ---------------------------------------------------------------------------------- figures in the
 * SPEC */

/* Reads a number such as 12, 0.5 or 1.5e-3, without a sign, independent of the locale. False if the
 * text up to length is not such a number. */
static bool read_figure(const char *text, size_t length, double *value)
{
    const char *const end = text + length;
    double digits = 0;
    int exponent = 0, written = 0, shift = 0, sign = 1;
    bool point = false;
    for (; text < end && ((*text >= '0' && *text <= '9') || (*text == '.' && !point)); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        digits = digits * 10 + (*text - '0');
        shift -= point;
        written++;
    }
    if (text < end && (*text == 'e' || *text == 'E') && written > 0) {
        if (++text < end && (*text == '-' || *text == '+'))
            sign = *text++ == '-' ? -1 : 1;
        if (text == end)
            return false;
        for (; text < end && *text >= '0' && *text <= '9'; text++)
            exponent = exponent < 1000 ? exponent * 10 + (*text - '0') : exponent;
    }
    shift += sign * exponent;
    *value = shift < 0 ? digits / pow(10, -shift) : digits * pow(10, shift);
    return text == end && written > 0 && isfinite(*value);
}

/* Reads one figure. Counts are exact up to 2^53, more than the rows, columns or entries that fit in
 * memory. */
static spmv_status take_figure(spmv_context *ctx, const struct generator_request *request, const char *text,
                               size_t length, struct figures *f)
{
    for (int i = 0; i < FIGURES; i++) {
        const size_t name = strlen(figure_names[i]);
        if (length <= name || text[name] != '=' || memcmp(text, figure_names[i], name) != 0)
            continue;
        double *const value = &f->value[i];
        if (!read_figure(text + name + 1, length - name - 1, value))
            return fail(ctx, request, "\"%.*s\" is not a number", (int)length, text);
        if (f->given[i])
            return fail(ctx, request, "%s is given twice", figure_names[i]);
        if (is_count((enum figure)i) && (*value < 1 || *value != floor(*value)))
            return fail(ctx, request, "%s must be an integer from 1", figure_names[i]);
        if (is_count((enum figure)i) && *value > 0x1p53)
            return context_fail(ctx, SPMV_ERROR_LIMIT, "matrix SPEC \"twin:%.150s\": %s is beyond 2^53",
                                request->arguments, figure_names[i]);
        f->given[i] = true;
        f->count[i] = is_count((enum figure)i) ? (int64_t)*value : 0;
        return SPMV_OK;
    }
    return fail(
        ctx, request,
        "\"%.*s\" is not one of rows=, cols=, nnz=, std=, max=, bw_frac=, avg_neighbours=, cross_row_similarity=",
        (int)length, text);
}

static spmv_status read_figures(spmv_context *ctx, const struct generator_request *request, struct figures *f)
{
    spmv_status st = SPMV_OK;
    *f = (struct figures){{false}, {0}, {0}};
    for (const char *at = request->arguments;; at++) {
        const size_t length = strcspn(at, ",");
        TRY(take_figure(ctx, request, at, length, f));
        at += length;
        if (*at == '\0')
            break;
    }
    if (!f->given[ROWS] || !f->given[NNZ])
        return fail(ctx, request, "rows= and nnz= are required");
done:
    return st;
}

static double clamp(double low, double x, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* Sets the figures that are not given. Columns: as many as rows. Standard deviation: half the mean.
 * Longest row: three standard deviations above the mean. Locality: near the middle of the known
 * twins, as far as lengths and columns allow it. */
static spmv_status complete(spmv_context *ctx, const struct generator_request *request, struct figures *f,
                            struct twin *t)
{
    double least, most;
    *t = (struct twin){.rows = f->count[ROWS], .nnz = f->count[NNZ], .cols = f->count[f->given[COLS] ? COLS : ROWS]};
    const double rows = (double)t->rows, cols = (double)t->cols, nnz = (double)t->nnz, mean = nnz / rows;
    const double fullest = fmin(cols, nnz), mean_up = ceil(mean);
    if (t->cols > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT, "matrix SPEC \"twin:%.150s\": %lld columns, at most %d are possible",
                            request->arguments, (long long)t->cols, INT32_MAX);
    if (mean > cols)
        return fail(ctx, request, "%lld nonzeros do not fit into %lld x %lld", (long long)t->nnz, (long long)t->rows,
                    (long long)t->cols);
    t->std = f->given[STD] ? f->value[STD] : mean / 2;
    if (!f->given[MAX]) /* The longest row alone must not exceed the standard deviation. */
        f->value[MAX] =
            clamp(mean_up, floor(mean + fmin(fmax(3, t->std / fmax(mean, 1e-300)), sqrt(rows) / 2) * t->std), fullest);
    t->max = (int64_t)f->value[MAX];
    if (f->value[MAX] > fullest || f->value[MAX] < mean)
        return fail(ctx, request, "max=%lld must be between the mean, %.6g, and %lld", (long long)t->max, mean,
                    (long long)fullest);
    twin_std_range(t, &least, &most);
    if (!f->given[STD])
        t->std = clamp(least, f->given[MAX] ? fmin(t->std, ((double)t->max - mean) / 3) : t->std, most);
    if (t->std > most * 1.01 || (t->std < least * 0.99 && t->std + 0.5 < least))
        return fail(ctx, request,
                    "rows of %.6g entries on average and %lld in the longest have standard deviations from "
                    "%.6g to %.6g, not %.6g",
                    mean, (long long)t->max, least, most, t->std);
    t->std = clamp(least, t->std, most);
    t->bw_frac = f->given[BW_FRAC] ? f->value[BW_FRAC] : clamp(mean / cols, 0.2, 1);
    t->avg_neighbours = f->given[AVG_NEIGHBOURS] ? f->value[AVG_NEIGHBOURS] : clamp(0, 1 - 1 / mean, 1);
    t->cross_row_similarity = f->given[CROSS_ROW_SIMILARITY] ? f->value[CROSS_ROW_SIMILARITY] : 0.7;
    if (t->bw_frac > 1 || t->bw_frac < mean / cols)
        return fail(ctx, request, "bw_frac must be from %.6g (adjacent entries) to 1", mean / cols);
    if (t->avg_neighbours >= 2)
        return fail(ctx, request, "avg_neighbours must be below 2: the first entry of a row has at most one");
    if (t->cross_row_similarity > 1)
        return fail(ctx, request, "cross_row_similarity must be at most 1");
    return SPMV_OK;
}

/* Figures that exclude each other are not reached: reports the first that is far off. */
static spmv_status check_reached(spmv_context *ctx, const struct generator_request *request, const struct figures *f,
                                 const struct twin *asked, const struct twin *got)
{
    /* Off by more than a fifth, and by more than rounding causes in small matrices. */
    const struct {
        enum figure figure;
        double asked, got, rounding;
    } pairs[] = {
        {STD, asked->std, got->std, 0.5},
        {BW_FRAC, asked->bw_frac, got->bw_frac, 1 / (double)asked->cols},
        {AVG_NEIGHBOURS, asked->avg_neighbours, got->avg_neighbours, 0.05},
        {CROSS_ROW_SIMILARITY, asked->cross_row_similarity, got->cross_row_similarity, 0.02 + 2 / (double)asked->rows},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (f->given[pairs[i].figure] && fabs(pairs[i].got - pairs[i].asked) > 0.2 * pairs[i].asked + pairs[i].rounding)
            return fail(ctx, request, "%s=%.6g is incompatible with the other figures; %.6g is possible",
                        figure_names[pairs[i].figure], pairs[i].asked, pairs[i].got);
    return SPMV_OK;
}

/* ---------------------------------------------------------------------------------- the matrix */

static double std_of_rows(const spmv_matrix *m)
{
    const double mean = (double)m->nnz / (double)m->rows;
    double squares = 0;
    for (int64_t row = 0; row < m->rows; row++) {
        const double off = (double)(m->row_ptr[row + 1] - m->row_ptr[row]) - mean;
        squares += off * off;
    }
    return sqrt(squares / (double)m->rows);
}

spmv_status generate_twin(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *m = NULL;
    struct figures figures = {{false}, {0}, {0}};
    struct twin twin, got;
    if (strchr(request->arguments, '=') == NULL) {
        TRY(find_known(ctx, request, &twin));
    } else {
        TRY(read_figures(ctx, request, &figures));
        TRY(complete(ctx, request, &figures, &twin));
    }
    TRY(generator_fits(ctx, request, twin.rows, twin.cols, (double)twin.nnz, 0));
    TRY(matrix_allocate(ctx, twin.rows, twin.cols, twin.nnz, request->type, false, &m));
    TRY(twin_lengths(ctx, &twin, request->seed, m->row_ptr));
    TRY(offsets_from_counts(ctx, m->row_ptr, m->rows));
    TRY(twin_columns(ctx, &twin, request->seed, m, &got));
    got.std = std_of_rows(m);
    TRY(check_reached(ctx, request, &figures, &twin, &got));
    generator_fill_values(ctx, request, 0, m);
    *matrix = m;
done:
    if (st != SPMV_OK)
        spmv_matrix_destroy(m);
    return st;
}
