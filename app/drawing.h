/* Pictures in files. An .svg is written here, as text. A .png is drawn with cairo.
 *
 * Cairo is opened only when a .png is drawn, and not linked: its some twenty libraries would
 * nearly double the start-up time of every command, and the program also runs without it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRAWING_H
#define DRAWING_H

#include <spmv/io.h>
#include <stdbool.h>

enum drawing_kind { DRAWING_NONE, DRAWING_PNG, DRAWING_SVG };

/* The kind by the ending of the name; DRAWING_NONE: neither. */
enum drawing_kind drawing_kind_of(const char *path);

/* Opens cairo if the kind needs it. Complains if a picture cannot be drawn; otherwise: the remedy
 * in the message beside an .svg, such as "leave --plot out". */
spmv_status drawing_ready(enum drawing_kind kind, const char *otherwise);

/* A page. Coordinates are pixels from the upper left corner. */
struct drawing;
typedef void drawing_function(struct drawing *d, const void *what);

/* Draws a white page of this size and writes it. Complains. */
spmv_status drawing_write(const char *path, enum drawing_kind kind, int width, int height, drawing_function *draw,
                          const void *what);

/* The colour of what follows, from 0 to 1 each, and the size of texts in pixels. */
void drawing_colour(struct drawing *d, double red, double green, double blue);
void drawing_font(struct drawing *d, double size, bool bold);

/* The width of a text in UTF-8; in an .svg an estimate, because the viewer chooses the font. */
double drawing_text_width(struct drawing *d, const char *text);

/* A text with its baseline at y. x is its left end, middle or right end, for align 0, 0.5, 1. */
void drawing_text(struct drawing *d, double x, double y, double align, const char *text);

/* A text that reads upwards, with its middle at (x, y) and its baseline at x. */
void drawing_text_up(struct drawing *d, double x, double y, const char *text);

/* A filled rectangle. */
void drawing_box(struct drawing *d, double x, double y, double width, double height);

/* A line of several parts: drawing_move begins a part, drawing_line adds to it, drawing_stroke
 * draws all. */
void drawing_move(struct drawing *d, double x, double y);
void drawing_line(struct drawing *d, double x, double y);
void drawing_stroke(struct drawing *d, double width);

/* A grid of coloured cells whose upper left corner is (x, y). */
struct drawing_cells {
    int rows, columns;
    int cell_width, cell_height; /* in pixels */
    const unsigned char *colour; /* of each cell, row by row: an index */
    const uint32_t *colours;     /* 0xrrggbb; at most 256 */
    int count;                   /* of colours */
};
void drawing_cells(struct drawing *d, int x, int y, const struct drawing_cells *cells);

#endif
