/* spmv solve --plot: the residual of each iteration on a logarithmic scale; one line per
 * preconditioner, in its own colour and with its iterations in a legend.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/drawing.h"
#include "app/output.h"
#include "app/solve/solve.h"
#include "core/plural.h"

spmv_status solve_plot_ready(const char *path)
{
    if (drawing_kind_of(path) == DRAWING_NONE) {
        complain("--plot %s: the name must end in .png or .svg", path);
        return SPMV_ERROR_ARGUMENT;
    }
    return drawing_ready(drawing_kind_of(path), "leave --plot out: --history has the numbers");
}

/* Pixels. */
enum { WIDTH = 900, HEIGHT = 560, LEFT = 80, RIGHT = 24, TOP = 72, BOTTOM = 64, LINE = 20, TEXT = 13, TITLE = 17 };
enum { PLOT_WIDTH = WIDTH - LEFT - RIGHT, PLOT_HEIGHT = HEIGHT - TOP - BOTTOM };

/* Most points of a line: more are not visible, and would make an .svg large. */
enum { POINTS = 4 * PLOT_WIDTH };

/* Colours that also differ in lightness (P. Tol, "Colour schemes", SRON/EPS/TN/09-002, 2021:
 * bright). */
static const double colours[][3] = {{0.27, 0.47, 0.67}, {0.93, 0.40, 0.47}, {0.13, 0.53, 0.20}, {0.80, 0.73, 0.27},
                                    {0.40, 0.80, 0.93}, {0.67, 0.20, 0.47}, {0.45, 0.45, 0.45}};
enum { COLOURS = sizeof colours / sizeof *colours };

struct chart {
    const char *matrix;
    const struct attempt *attempts;
    int count;
    double least, most; /* powers of ten */
    int64_t iterations;
    double goal;
};

static bool drawable(double residual)
{
    return isfinite(residual) && residual > 0;
}

/* Sets the range of both axes so that all points lie within. */
static void measure(struct chart *c)
{
    c->least = INFINITY;
    c->most = -INFINITY;
    for (int a = 0; a < c->count; a++) {
        const struct watch *w = &c->attempts[a].watch;
        c->iterations = w->count - 1 > c->iterations ? w->count - 1 : c->iterations;
        c->goal = w->count > 0 ? w->goal : c->goal;
        for (int64_t i = 0; i < w->count; i++)
            if (drawable(w->residuals[i])) {
                c->least = fmin(c->least, log10(w->residuals[i]));
                c->most = fmax(c->most, log10(w->residuals[i]));
            }
    }
    if (drawable(c->goal) && c->least <= c->most) {
        c->least = fmin(c->least, log10(c->goal));
        c->most = fmax(c->most, log10(c->goal));
    }
    if (!(c->least <= c->most)) /* b = 0: only axes are drawn */
        c->least = c->most = 0;
    c->least = floor(c->least);
    c->most = fmax(ceil(c->most), c->least + 1);
    c->iterations = c->iterations > 0 ? c->iterations : 1;
}

static double x_at(const struct chart *c, int64_t iteration)
{
    return LEFT + (double)PLOT_WIDTH * (double)iteration / (double)c->iterations;
}

static double y_at(const struct chart *c, double power)
{
    return TOP + PLOT_HEIGHT * (c->most - power) / (c->most - c->least);
}

static void put_text(struct drawing *d, double x, double y, double align, const char *text)
{
    drawing_colour(d, 0.1, 0.1, 0.1);
    drawing_text(d, x, y, align, text);
}

static void put_line(struct drawing *d, double x, double y, double to_x, double to_y, double grey)
{
    drawing_colour(d, grey, grey, grey);
    drawing_move(d, floor(x) + 0.5, floor(y) + 0.5);
    drawing_line(d, floor(to_x) + 0.5, floor(to_y) + 0.5);
    drawing_stroke(d, 1);
}

/* The smallest of 1, 2 and 5 times a power of ten with at most steps steps. */
static int64_t step_for(int64_t length, int steps)
{
    for (int64_t power = 1;; power *= 10)
        for (int i = 0; i < 3; i++) {
            const int64_t step = power * (i == 0 ? 1 : i == 1 ? 2 : 5);
            if (length / step <= steps)
                return step;
        }
}

static void draw_axes(struct drawing *d, const struct chart *c)
{
    char text[64];
    const int64_t across = step_for(c->iterations, 8), down = step_for((int64_t)(c->most - c->least), 10);
    for (int64_t i = 0; i <= c->iterations; i += across) {
        put_line(d, x_at(c, i), TOP, x_at(c, i), TOP + PLOT_HEIGHT, 0.88);
        snprintf(text, sizeof text, "%lld", (long long)i);
        put_text(d, x_at(c, i), TOP + PLOT_HEIGHT + 20, 0.5, text);
    }
    for (int64_t power = (int64_t)c->most; power >= (int64_t)c->least; power -= down) {
        put_line(d, LEFT, y_at(c, (double)power), LEFT + PLOT_WIDTH, y_at(c, (double)power), 0.88);
        snprintf(text, sizeof text, "1e%lld", (long long)power);
        put_text(d, LEFT - 8, y_at(c, (double)power) + 5, 1, text);
    }
    put_line(d, LEFT, TOP + PLOT_HEIGHT, LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT, 0.4);
    put_line(d, LEFT, TOP, LEFT, TOP + PLOT_HEIGHT, 0.4);
    put_text(d, LEFT + PLOT_WIDTH / 2.0, HEIGHT - 20, 0.5, "iteration");
    if (drawable(c->goal)) {
        put_line(d, LEFT, y_at(c, log10(c->goal)), LEFT + PLOT_WIDTH, y_at(c, log10(c->goal)), 0.4);
        put_text(d, LEFT + PLOT_WIDTH - 4, y_at(c, log10(c->goal)) - 5, 1, "tolerance");
    }
    drawing_colour(d, 0.1, 0.1, 0.1);
    drawing_text_up(d, 20, TOP + PLOT_HEIGHT / 2.0, "norm of the residual");
}

static void draw_attempt(struct drawing *d, const struct chart *c, const struct watch *w, const double *colour)
{
    const int64_t step = 1 + w->count / POINTS, last = w->count - 1;
    bool down = false; /* the point before was drawn */
    drawing_colour(d, colour[0], colour[1], colour[2]);
    for (int64_t i = 0; i < last + step; i += step) {
        const int64_t at = i < last ? i : last;
        const bool here = at >= 0 && drawable(w->residuals[at]);
        if (here)
            (down ? drawing_line : drawing_move)(d, x_at(c, at), y_at(c, log10(w->residuals[at])));
        down = here;
    }
    drawing_stroke(d, 1.75);
}

/* Draws the legend in the upper right corner, which is free because residuals fall. */
static void draw_legend(struct drawing *d, const struct chart *c)
{
    char text[160];
    double y = TOP + 18;
    for (int a = 0; a < c->count; a++) {
        const struct attempt *attempt = &c->attempts[a];
        if (attempt->watch.count == 0)
            continue;
        snprintf(text, sizeof text, "%s: %lld iteration%s%s", attempt->result.precond,
                 (long long)attempt->result.iterations, plural(attempt->result.iterations),
                 attempt->stop == SPMV_OK ? "" : ", not solved");
        drawing_colour(d, colours[a % COLOURS][0], colours[a % COLOURS][1], colours[a % COLOURS][2]);
        drawing_box(d, LEFT + PLOT_WIDTH - 290, y - 7, 24, 4);
        put_text(d, LEFT + PLOT_WIDTH - 258, y, 0, text);
        y += LINE;
    }
}

static void draw(struct drawing *d, const void *what)
{
    const struct chart *c = what;
    drawing_font(d, TITLE, true);
    put_text(d, 16, 30, 0, c->matrix);
    drawing_font(d, TEXT, false);
    put_text(d, 16, 50, 0,
             c->attempts[0].columns > 1 ? "the largest residual of the recurrences that run, after each iteration"
                                        : "the recurrence's residual after each iteration");
    draw_axes(d, c);
    for (int a = 0; a < c->count; a++)
        draw_attempt(d, c, &c->attempts[a].watch, colours[a % COLOURS]);
    draw_legend(d, c);
}

spmv_status solve_plot_write(const char *path, const char *matrix, const struct attempt *attempts, int count)
{
    struct chart chart = {.attempts = attempts, .count = count};
    json_t *utf8 = json_text(matrix); /* pictures need UTF-8 */
    chart.matrix = utf8 != NULL ? json_string_value(utf8) : "";
    measure(&chart);
    const spmv_status st = drawing_write(path, drawing_kind_of(path), WIDTH, HEIGHT, draw, &chart);
    json_decref(utf8);
    return st;
}
