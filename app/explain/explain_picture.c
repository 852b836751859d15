/* spmv explain -o: the page as a picture, a row of cells for each array and each step.
 *
 * A cell that a step changed is coloured, and lines lead to it from the cells that it was combined
 * from. These operands are found with a second trace, of a sum of powers of two: then the value of a
 * cell is the set of the elements in it. A set after a step is the union of disjoint sets before it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "app/drawing.h"
#include "app/explain/explain.h"
#include "app/options.h"
#include "app/output.h"

/* ---------------------------------------------------------------- operands */

/* Sums of powers of two are exact in f64 up to here. */
enum { ELEMENTS_MOST = 53 };

struct steps {
    struct explain_page *page;
    int64_t next; /* the line of the next step */
};

static void keep_line(struct explain_page *page, struct explain_line *line, const double *sets)
{
    page->status = allocate("the picture", line->n, sizeof *line->sets, (void **)&line->sets);
    for (int64_t i = 0; page->status == SPMV_OK && i < line->n; i++)
        line->sets[i] = (uint64_t)sets[i];
}

static void keep_sets(const spmv_trace *trace, void *user)
{
    struct steps *const steps = user;
    struct explain_page *const page = steps->page;
    while (steps->next < page->count && page->lines[steps->next].launch == NULL)
        steps->next++;
    if (page->status != SPMV_OK || steps->next == page->count)
        return;
    keep_line(page, &page->lines[steps->next++], trace->host_cells);
}

static spmv_status trace(struct explain_job *job, enum explain_trace what, spmv_op op, spmv_type type,
                         const uint8_t *heads, const void *in, void *out, int64_t n, spmv_trace_fn tell, void *user)
{
    return what == EXPLAIN_REDUCE ? spmv_reduce_trace(job->ctx, job->rung, op, type, in, out, n, tell, user)
           : heads == NULL
               ? spmv_scan_trace(job->ctx, job->rung, (spmv_scan_kind)what, op, type, in, out, n, tell, user)
               : spmv_segscan_trace(job->ctx, job->rung, (spmv_scan_kind)what, op, type, heads, in, out, n, tell, user);
}

spmv_status explain_trace_steps(struct explain_job *job, enum explain_trace what, spmv_op op, spmv_type type,
                                const uint8_t *heads, const void *in, void *out, int64_t n)
{
    struct steps steps = {&job->page, job->page.count};
    double powers[ELEMENTS_MOST], sums[ELEMENTS_MOST];
    spmv_status st = trace(job, what, op, type, heads, in, out, n, explain_step, &job->page);
    if (st == SPMV_OK && job->o->output != NULL && n <= ELEMENTS_MOST) {
        struct explain_line *const first = steps.next > 0 ? &job->page.lines[steps.next - 1] : NULL;
        for (int64_t i = 0; i < n; i++)
            powers[i] = (double)((uint64_t)1 << i);
        if (first != NULL && first->n == n && heads == NULL) /* the array that the first step reads */
            keep_line(&job->page, first, powers);
        st = trace(job, what, SPMV_ADD, SPMV_F64, heads, powers, sums, n, keep_sets, &steps);
    }
    return explain_status(job, st);
}

/* The largest set before that is a part of rest, the nearest of several; -1: none. The cell itself is
 * preferred. */
static int64_t find_operand(const struct explain_line *before, int64_t i, uint64_t rest)
{
    int64_t best = -1;
    for (int64_t j = 0; j < before->n; j++) {
        const uint64_t set = before->sets[j], taken = best < 0 ? 0 : before->sets[best];
        const bool nearer = best < 0 || llabs(j - i) < llabs(best - i);
        if (set == 0 || (set & ~rest) != 0 || best == i)
            continue;
        if (j == i || best < 0 || __builtin_popcountll(set) > __builtin_popcountll(taken) ||
            (__builtin_popcountll(set) == __builtin_popcountll(taken) && nearer))
            best = j;
    }
    return best;
}

/* ---------------------------------------------------------------- drawing */

/* Pixels. */
enum { MARGIN = 16, TITLE = 14, TEXT = 13, CELL = 24, GAP = 6, LINK = 30, CELLS_MOST = 64 };

struct picture {
    const struct explain_page *page;
    double label, cell; /* widths */
    int64_t columns;
};

static const char *title_of(const struct explain_page *page)
{
    return page->count > 0 && page->lines[0].cells == NULL ? page->lines[0].label : "";
}

/* Draws the lines to a row from the row above, or with d NULL nothing. Returns whether there are any: a
 * cell has them if it changed, and is made of cells of the row above alone. */
static bool draw_links(struct drawing *d, const struct picture *p, const struct explain_line *line, double from,
                       double to)
{
    const struct explain_line *const before = line - 1;
    bool any = false;
    if (line->sets == NULL || before->sets == NULL || before->idle)
        return false;
    for (int64_t i = 0; i < line->n; i++) {
        int64_t operands[CELLS_MOST], count = 0;
        uint64_t rest = i < before->n && line->sets[i] == before->sets[i] ? 0 : line->sets[i];
        for (int64_t j; rest != 0 && (j = find_operand(before, i, rest)) >= 0; rest &= ~before->sets[j])
            operands[count++] = j;
        any = any || (rest == 0 && count > 0);
        for (int64_t k = 0; d != NULL && rest == 0 && k < count; k++) {
            drawing_move(d, MARGIN + p->label + p->cell * ((double)operands[k] + 0.5), from);
            drawing_line(d, MARGIN + p->label + p->cell * ((double)i + 0.5), to);
        }
    }
    if (d != NULL && any) {
        drawing_colour(d, 0.27, 0.47, 0.67);
        drawing_stroke(d, 1.25);
    }
    return any;
}

static void draw_row(struct drawing *d, const struct picture *p, const struct explain_line *line, double y)
{
    drawing_colour(d, 0.1, 0.1, 0.1);
    drawing_text(d, MARGIN + p->label - 12, y + CELL - 7, 1, line->label);
    for (int64_t i = 0; i < line->n; i++) {
        const double x = MARGIN + p->label + p->cell * (double)i;
        char text[NUMBER_TEXT];
        explain_cell_text(line, i, text);
        if (line->changed != NULL && line->changed[i])
            drawing_colour(d, 0.98, 0.85, 0.60);
        else
            drawing_colour(d, 0.93, 0.93, 0.93);
        drawing_box(d, x + 1, y, p->cell - 2, CELL);
        drawing_colour(d, 0.1, 0.1, 0.1);
        if (line->heads != NULL && line->heads[i])
            drawing_box(d, x, y - 2, 3, CELL + 4);
        drawing_text(d, x + p->cell / 2, y + CELL - 7, 0.5, text);
    }
}

/* Returns the height; d NULL: only measures. */
static double walk(struct drawing *d, const struct picture *p)
{
    const struct explain_page *const page = p->page;
    const struct explain_line *last = NULL;
    double y = MARGIN + TITLE + 14;
    char text[32];
    for (int64_t i = 0; d != NULL && i < p->columns; i++) {
        snprintf(text, sizeof text, "%lld", (long long)i);
        drawing_colour(d, 0.45, 0.45, 0.45);
        drawing_text(d, MARGIN + p->label + p->cell * ((double)i + 0.5), y + TEXT, 0.5, text);
    }
    y += TEXT + GAP;
    for (int64_t k = 0; k < page->count; k++) {
        const struct explain_line *const line = &page->lines[k];
        last = line->cells == NULL ? line : last;
        if (line->cells == NULL || line->idle)
            continue;
        const double gap = k > 0 && draw_links(NULL, p, line, 0, 0) ? LINK : GAP;
        if (d != NULL && k > 0)
            draw_links(d, p, line, y, y + gap);
        if (d != NULL)
            draw_row(d, p, line, y + gap);
        y += gap + CELL;
    }
    if (d != NULL && last != NULL) {
        drawing_colour(d, 0.1, 0.1, 0.1);
        drawing_text(d, MARGIN, y + 24, 0, last->label);
    }
    return y + 24 + MARGIN;
}

static void draw(struct drawing *d, const void *what)
{
    const struct picture *const p = what;
    drawing_font(d, TITLE, true);
    drawing_colour(d, 0.1, 0.1, 0.1);
    drawing_text(d, MARGIN, MARGIN + TITLE, 0, title_of(p->page));
    drawing_font(d, TEXT, false);
    walk(d, p);
}

spmv_status explain_picture_ready(const char *path)
{
    if (path == NULL)
        return SPMV_OK;
    if (drawing_kind_of(path) == DRAWING_NONE) {
        complain("-o %s: the name must end in .png or .svg", path);
        return SPMV_ERROR_ARGUMENT;
    }
    return drawing_ready(drawing_kind_of(path), "leave -o out: the page is text then");
}

spmv_status explain_picture_write(const struct explain_page *page, const char *path)
{
    /* widths of characters that no common font exceeds */
    const double plain = 0.58 * TEXT, bold = 0.64 * TITLE;
    struct picture p = {.page = page};
    for (int64_t k = 0; k < page->count; k++) {
        const struct explain_line *const line = &page->lines[k];
        char text[NUMBER_TEXT];
        if (line->cells == NULL)
            continue;
        p.label = (double)strlen(line->label) > p.label ? (double)strlen(line->label) : p.label;
        p.columns = line->n > p.columns ? line->n : p.columns;
        for (int64_t i = 0; i < line->n; i++)
            p.cell = explain_cell_text(line, i, text) > p.cell ? explain_cell_text(line, i, text) : p.cell;
    }
    if (p.columns > CELLS_MOST) {
        complain("%s: a picture shows at most %d values side by side, and here are %lld", path, CELLS_MOST,
                 (long long)p.columns);
        return SPMV_ERROR_LIMIT;
    }
    p.label = plain * p.label + 16;
    p.cell = plain * p.cell + 16 > 36 ? plain * p.cell + 16 : 36;
    const double cells = p.label + p.cell * (double)p.columns, title = bold * (double)strlen(title_of(page));
    return drawing_write(path, drawing_kind_of(path), (int)((cells > title ? cells : title) + 2 * MARGIN),
                         (int)walk(NULL, &p), draw, &p);
}
