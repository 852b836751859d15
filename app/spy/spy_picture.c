/* A pattern in a PNG or SVG file: cells shaded by density, axes, a bar that explains the shades.
 *
 * drawing.h draws. Cells are aligned to whole pixels, so their colours are exact.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/drawing.h"
#include "app/output.h"
#include "app/spy/spy.h"

spmv_status spy_picture_ready(enum spy_kind kind)
{
    return drawing_ready(kind == SPY_PNG ? DRAWING_PNG : DRAWING_SVG, "leave -o out for a picture in the terminal");
}

/* ---------------------------------------------------------------- the page */

struct colour {
    double red, green, blue;
};

/* Shades of blue, from the lowest density to the highest: increasingly dark, so that they differ in
 * a grey print too; the lightest is still visible on white as a single pixel. */
enum { LEVELS = 64 };
static const struct colour ramp[] = {{0.42, 0.65, 0.87}, {0.19, 0.48, 0.75}, {0.02, 0.13, 0.36}};
static const struct colour ink = {0.1, 0.1, 0.1}, frame = {0.5, 0.5, 0.5}, faint = {0.82, 0.82, 0.82};

static struct colour shade(int level)
{
    const double at = 2.0 * (level - 1) / (LEVELS - 1);
    const int from = at < 1 ? 0 : 1;
    const struct colour a = ramp[from], b = ramp[from + 1];
    const double t = at - from;
    return (struct colour){a.red + t * (b.red - a.red), a.green + t * (b.green - a.green),
                           a.blue + t * (b.blue - a.blue)};
}

/* Sizes in pixels, before they are scaled with the picture. */
enum {
    USUAL_SIZE = 800,
    GRID_PIXEL = 8,  /* cells of at least this size are drawn separately */
    SVG_CELLS = 900, /* of an embedded image: keeps the file below 2 MB in the worst case */
    MARGIN = 16,
    LEFT = 80,
    TOP = 104,
    BOTTOM = 18,
    LINE = 20,
    BAR_GAP = 36, /* includes the half of a label beyond the edge */
    BAR_WIDTH = 18,
    BAR_LABELS = 76,
    BAR_LEAST_HEIGHT = 120,
    LEAST_WIDTH = 420,
    TITLE_TEXT = 17,
    TEXT = 13,
    TICK = 5
};

struct page {
    struct drawing *d;
    unsigned char *levels; /* of all cells */
    const struct spy_bins *bins;
    const char *name;
    double scale; /* of texts and margins */
    int cell_width, cell_height;
    int left, top, plot_width, plot_height;
    int width, height;
};

struct spy_room spy_picture_room(enum spy_kind kind, int size)
{
    const int cells = kind == SPY_SVG && size > SVG_CELLS ? SVG_CELLS : size;
    return (struct spy_room){cells, cells, 1};
}

/* Pixels of one side of a cell, if the whole side has room pixels. A few cells do not fill the
 * room. */
static int cell_pixels(const struct spy_axis *axis, int room, int size)
{
    const int pixels = axis->cells > 0 ? room / axis->cells : room;
    const int most = size / SPY_ASPECT;
    return pixels > most ? most : pixels > 1 ? pixels : 1;
}

static int scaled(const struct page *p, int pixels)
{
    return (int)lround(p->scale * pixels);
}

/* A side without rows or columns is drawn as if it had one. */
static int plot_pixels(const struct spy_axis *axis, int pixels)
{
    return (axis->cells > 0 ? axis->cells : 1) * pixels;
}

/* Whether shades differ, so that a bar must explain them. */
static bool shaded(const struct spy_bins *bins)
{
    return bins->least < bins->most;
}

/* Lines of text below the matrix. */
static int notes(const struct spy_bins *bins)
{
    return 1 + shaded(bins) + bins->stretched;
}

static void lay_out_page(int size, struct page *p)
{
    const struct spy_axis *rows = &p->bins->rows, *cols = &p->bins->cols;
    const bool is_tall = rows->length > cols->length;
    const int narrow = p->bins->stretched ? size / SPY_ASPECT : size;
    p->cell_width = cell_pixels(cols, is_tall ? narrow : size, size);
    p->cell_height = cell_pixels(rows, is_tall ? size : narrow, size);
    if (!p->bins->stretched) {
        const int square = p->cell_width < p->cell_height ? p->cell_width : p->cell_height;
        p->cell_width = p->cell_height = square;
    }
    p->scale = size > USUAL_SIZE ? (double)size / USUAL_SIZE : 1;
    p->left = scaled(p, LEFT);
    p->top = scaled(p, TOP);
    p->plot_width = plot_pixels(cols, p->cell_width);
    p->plot_height = plot_pixels(rows, p->cell_height);
    const bool bar = shaded(p->bins);
    const int right = bar ? scaled(p, BAR_GAP + BAR_WIDTH + BAR_LABELS) : scaled(p, MARGIN + LEFT / 4);
    const int least_height = bar ? scaled(p, BAR_LEAST_HEIGHT) : 0;
    p->width = p->left + p->plot_width + right;
    if (p->width < scaled(p, LEAST_WIDTH))
        p->width = scaled(p, LEAST_WIDTH);
    p->height = p->top + (p->plot_height > least_height ? p->plot_height : least_height) +
                notes(p->bins) * scaled(p, LINE) + scaled(p, BOTTOM);
}

static void set_colour(const struct page *p, struct colour c)
{
    drawing_colour(p->d, c.red, c.green, c.blue);
}

static double text_width(const struct page *p, const char *text)
{
    return drawing_text_width(p->d, text);
}

static void put_text(const struct page *p, double x, double y, double align, const char *text)
{
    set_colour(p, ink);
    drawing_text(p->d, x, y, align, text);
}

static void set_font(const struct page *p, int pixels, bool bold)
{
    drawing_font(p->d, p->scale * pixels, bold);
}

/* Draws a line aligned to whole pixels, one pixel wide at the default size. */
static void put_line(const struct page *p, double x, double y, double width, double height)
{
    const double thick = scaled(p, 1);
    drawing_box(p->d, x, y, width > 0 ? width : thick, height > 0 ? height : thick);
}

/* ---------------------------------------------------------------- cells */

/* Draws each cell separately, with a grid line at its right and lower side: for a matrix of few
 * rows and columns. */
static void draw_squares(const struct page *p)
{
    const struct spy_bins *bins = p->bins;
    set_colour(p, faint);
    for (int row = 0; row < bins->rows.cells - 1; row++)
        put_line(p, p->left, p->top + (row + 1) * p->cell_height - 1, p->plot_width, 0);
    for (int col = 0; col < bins->cols.cells - 1; col++)
        put_line(p, p->left + (col + 1) * p->cell_width - 1, p->top, 0, p->plot_height);
    set_colour(p, shade(LEVELS));
    for (int row = 0; row < bins->rows.cells; row++)
        for (int col = 0; col < bins->cols.cells; col++)
            if (spy_level(bins, row, col, LEVELS) > 0)
                drawing_box(p->d, p->left + col * p->cell_width, p->top + row * p->cell_height, p->cell_width - 1,
                            p->cell_height - 1);
}

static uint32_t pixel(struct colour c)
{
    return (uint32_t)lround(255 * c.red) << 16 | (uint32_t)lround(255 * c.green) << 8 | (uint32_t)lround(255 * c.blue);
}

/* Draws all cells as an image. */
static void draw_image(const struct page *p)
{
    const int rows = p->bins->rows.cells, cols = p->bins->cols.cells;
    uint32_t colours[LEVELS + 1] = {0xffffff};
    for (int level = 1; level <= LEVELS; level++)
        colours[level] = pixel(shade(level));
    for (int row = 0; row < rows; row++)
        for (int col = 0; col < cols; col++)
            p->levels[(int64_t)row * cols + col] = (unsigned char)spy_level(p->bins, row, col, LEVELS);
    const struct drawing_cells cells = {.rows = rows,
                                        .columns = cols,
                                        .cell_width = p->cell_width,
                                        .cell_height = p->cell_height,
                                        .colour = p->levels,
                                        .colours = colours,
                                        .count = LEVELS + 1};
    drawing_cells(p->d, p->left, p->top, &cells);
}

static void draw_cells(const struct page *p)
{
    const int smaller = p->cell_width < p->cell_height ? p->cell_width : p->cell_height;
    if (p->bins->filled > 0 && smaller >= GRID_PIXEL && !shaded(p->bins))
        draw_squares(p);
    else if (p->bins->filled > 0)
        draw_image(p);
    set_colour(p, frame);
    const int thick = scaled(p, 1), x = p->left - thick, y = p->top - thick;
    put_line(p, x, y, p->plot_width + 2 * thick, 0);
    put_line(p, x, p->top + p->plot_height, p->plot_width + 2 * thick, 0);
    put_line(p, x, y, 0, p->plot_height + 2 * thick);
    put_line(p, p->left + p->plot_width, y, 0, p->plot_height + 2 * thick);
}

/* ---------------------------------------------------------------- axes, title, bar */

/* The smallest of 1, 2 and 5 times a power of ten that is at least least. */
static int64_t round_number(double least)
{
    int64_t power = 1;
    while (power < INT64_MAX / 100) {
        if ((double)power >= least)
            return power;
        if (2 * (double)power >= least)
            return 2 * power;
        if (5 * (double)power >= least)
            return 5 * power;
        power *= 10;
    }
    return power;
}

/* "0", "250", "20000", "150k", "2M": round numbers are abbreviated. */
static void index_text(int64_t index, int64_t last, char *text, size_t size)
{
    static const struct {
        int64_t size;
        const char *name;
    } units[] = {{1000000000, "G"}, {1000000, "M"}, {1000, "k"}};
    for (int u = 0; u < 3 && last >= 100000; u++) {
        if (index > 0 && index % units[u].size == 0) {
            snprintf(text, size, "%lld%s", (long long)(index / units[u].size), units[u].name);
            return;
        }
    }
    snprintf(text, size, "%lld", (long long)index);
}

enum { BLANK = 24, ROW_SPACING = 44 };

/* Draws ticks, each at the middle of the first row or column of a cell; pixels: length of the
 * axis. */
static void draw_ticks(const struct page *p, const struct spy_axis *axis, int pixels, bool is_rows)
{
    const double each = axis->length > 0 ? (double)pixels / ((double)axis->cells * (double)axis->block) : 0;
    if (axis->length == 0)
        return;
    char text[32];
    index_text(axis->length - 1, axis->length - 1, text, sizeof text);
    const double spacing = is_rows ? scaled(p, ROW_SPACING) : text_width(p, text) + scaled(p, BLANK);
    const int64_t distance = round_number(spacing / each);
    const int tick = scaled(p, TICK), thick = scaled(p, 1);
    for (int64_t index = 0; index < axis->length; index += distance) {
        const double at = floor(((double)index + 0.5) * each);
        index_text(index, axis->length - 1, text, sizeof text);
        set_colour(p, ink);
        if (is_rows) {
            put_line(p, p->left - thick - tick, p->top + at, tick, 0);
            put_text(p, p->left - thick - tick - scaled(p, 4), p->top + at + scaled(p, 5), 1, text);
        } else {
            put_line(p, p->left + at, p->top - thick - tick, 0, tick);
            put_text(p, p->left + at, p->top - thick - tick - scaled(p, 4), 0.5, text);
        }
    }
}

static void draw_axes(const struct page *p)
{
    set_font(p, TEXT, false);
    draw_ticks(p, &p->bins->cols, p->plot_width, false);
    draw_ticks(p, &p->bins->rows, p->plot_height, true);
    put_text(p, p->left + p->plot_width / 2.0, p->top - scaled(p, 28), 0.5, "column");
    set_colour(p, ink);
    drawing_text_up(p->d, scaled(p, 20), p->top + p->plot_height / 2.0, "row");
}

/* Draws the name, shortened at its end if it is too long. */
static void draw_name(const struct page *p)
{
    enum { MOST = 250 };
    char text[MOST + 4];
    const double room = p->width - 2.0 * scaled(p, MARGIN);
    size_t length = strlen(p->name);
    snprintf(text, sizeof text, "%s", p->name);
    while (length > 0 && (length > MOST || text_width(p, text) > room)) {
        length = length > MOST ? MOST : length - 1;
        while (length > 0 && ((unsigned char)p->name[length] & 0xc0) == 0x80)
            length--; /* not inside a UTF-8 character */
        snprintf(text, sizeof text, "%.*s...", (int)length, p->name);
    }
    put_text(p, scaled(p, MARGIN), scaled(p, MARGIN + 14), 0, text);
}

static void draw_title(const struct page *p)
{
    const struct spy_axis *rows = &p->bins->rows, *cols = &p->bins->cols;
    char text[128];
    set_font(p, TITLE_TEXT, true);
    draw_name(p);
    set_font(p, TEXT, false);
    snprintf(text, sizeof text, "%lld x %lld, %lld nonzero%s", (long long)rows->length, (long long)cols->length,
             (long long)p->bins->nnz, p->bins->nnz == 1 ? "" : "s");
    put_text(p, scaled(p, MARGIN), scaled(p, MARGIN + 34), 0, text);
}

/* Draws the text below the matrix: the size of a cell, the meaning of density, and different scales
 * of the sides. */
static void draw_notes(const struct page *p)
{
    const struct spy_bins *bins = p->bins;
    const int x = p->left, line = scaled(p, LINE);
    int y = p->height - scaled(p, BOTTOM) - notes(bins) * line + scaled(p, 26);
    put_text(p, x, y, 0, bins->filled > 0 ? spy_cell_text("a cell", bins) : "no nonzeros");
    if (shaded(bins))
        put_text(p, x, y += line, 0, "density: the share of a cell that is nonzero");
    if (bins->stretched) {
        const double rows = (double)bins->rows.length, cols = (double)bins->cols.length;
        char text[64];
        snprintf(text, sizeof text, "not to scale: %.0f times as %s", rows > cols ? rows / cols : cols / rows,
                 rows > cols ? "tall as wide" : "wide as tall");
        put_text(p, x, y + line, 0, text);
    }
}

/* Draws the label of a density beside the bar. */
static void label_bar(const struct page *p, int x, int y, int height, double density)
{
    const struct spy_bins *bins = p->bins;
    const double at = log(density / bins->least) / log(bins->most / bins->least);
    const int line = y + (int)lround((1 - at) * (height - scaled(p, 1)));
    set_colour(p, ink);
    put_line(p, x, line, scaled(p, TICK), 0);
    put_text(p, x + scaled(p, TICK + 4), line + scaled(p, 5), 0, spy_density_text(density));
}

static void draw_bar(const struct page *p)
{
    const struct spy_bins *bins = p->bins;
    const int least_height = scaled(p, BAR_LEAST_HEIGHT), most_height = scaled(p, 2 * BAR_LEAST_HEIGHT);
    const int x = p->left + p->plot_width + scaled(p, BAR_GAP), y = p->top, width = scaled(p, BAR_WIDTH);
    const int height = p->plot_height < least_height  ? least_height
                       : p->plot_height < most_height ? p->plot_height
                                                      : most_height;
    for (int level = LEVELS; level > 0; level--) {
        const int from = height * (LEVELS - level) / LEVELS, to = height * (LEVELS - level + 1) / LEVELS;
        set_colour(p, shade(level));
        drawing_box(p->d, x, y + from, width, to - from);
    }
    set_font(p, TEXT, false);
    put_text(p, x, y - scaled(p, 10), 0, "density");
    label_bar(p, x + width, y, height, bins->least);
    label_bar(p, x + width, y, height, bins->most);
    /* Powers of ten between the ends, if all labels have enough room. */
    const double decades = log10(bins->most / bins->least), room = scaled(p, TEXT + 3) / (double)height * decades;
    if (room > 1)
        return;
    for (double power = ceil(log10(bins->least) + room); power <= log10(bins->most) - room; power++)
        label_bar(p, x + width, y, height, pow(10, power));
}

static void draw_page(const struct page *p)
{
    draw_cells(p);
    draw_axes(p);
    draw_title(p);
    draw_notes(p);
    if (shaded(p->bins))
        draw_bar(p);
}

/* ---------------------------------------------------------------- files */

static void draw(struct drawing *d, const void *what)
{
    struct page p = *(const struct page *)what;
    p.d = d;
    draw_page(&p);
}

spmv_status spy_picture_write(const char *path, enum spy_kind kind, int size, const char *name,
                              const struct spy_bins *bins, int *width, int *height)
{
    struct page p = {.bins = bins};
    json_t *utf8 = json_text(name); /* pictures need UTF-8 */
    p.name = utf8 != NULL ? json_string_value(utf8) : "";
    lay_out_page(size, &p);
    spmv_status st = allocate("the picture", (int64_t)bins->rows.cells * bins->cols.cells, 1, (void **)&p.levels);
    if (st == SPMV_OK)
        st = drawing_write(path, kind == SPY_PNG ? DRAWING_PNG : DRAWING_SVG, p.width, p.height, draw, &p);
    free(p.levels);
    *width = p.width;
    *height = p.height;
    json_decref(utf8);
    return st;
}
