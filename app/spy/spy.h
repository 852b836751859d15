/* spmv spy: a pattern counted in cells, and its pictures.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPY_H
#define SPY_H

#include "app/input.h"

/* ---------------------------------------------------------------- spy_bins.c: nonzeros into
 * cells */

/* A side of the matrix, divided into cells of block rows (or columns) each; the last may be
 * smaller. */
struct spy_axis {
    int64_t length, block;
    int cells; /* ceil(length / block) */
};

/* The largest size of a picture, in cells; tall: the height of a cell divided by its width. */
struct spy_room {
    int rows, cols, tall;
};

struct spy_bins {
    struct spy_axis rows, cols;
    bool stretched; /* one side exceeds SPY_ASPECT times the other: each side has its own scale */
    int64_t nnz;
    int64_t *counts; /* rows.cells x cols.cells, row by row: nonzeros in the cell */
    int64_t filled;  /* cells with a nonzero */
    /* Extreme densities of the full-size cells with a nonzero; if there are none, of all cells; 0
     * without a nonzero. A small cell in the corner may be denser than all others, and would
     * distort the scale. */
    double least, most;
};

/* The largest ratio of a picture's sides. */
enum { SPY_ASPECT = 8 };

/* Counts a's nonzeros (host memory) in one pass. If a side has at most as many rows (or columns) as
 * its room, a cell is one of them, if the scale of the other side permits. The counts are the same
 * for any number of threads. */
spmv_status spy_bins_make(const spmv_csr *a, struct spy_room room, int threads, struct spy_bins *bins);
void spy_bins_free(struct spy_bins *bins);

/* spy_density: nonzeros / entries of a cell. spy_level: its position from least (1) to most
 * (levels) on a logarithmic scale, 0 for a cell without nonzeros. */
double spy_density(const struct spy_bins *bins, int row, int col);
int spy_level(const struct spy_bins *bins, int row, int col, int levels);

/* A density with two digits: "0.25", "6.4e-7". A few static buffers are used in turn. */
const char *spy_density_text(double density);

/* "a dot: 64 x 64 entries", "a dot: one entry". Static storage. */
const char *spy_cell_text(const char *cell, const struct spy_bins *bins);

/* ---------------------------------------------------------------- spy_text.c: in the terminal */

/* Draws on standard output. bins: what was drawn; call spy_bins_free in any case. */
spmv_status spy_print(const struct input *in, int threads, struct spy_bins *bins);

/* ---------------------------------------------------------------- spy_picture.c: in a file */

enum spy_kind { SPY_NONE, SPY_PNG, SPY_SVG };

/* SPMV_OK if this build and this machine can draw this kind; otherwise complains. */
spmv_status spy_picture_ready(enum spy_kind kind);

/* The room of a picture of that kind, at most size pixels long without its axes. */
struct spy_room spy_picture_room(enum spy_kind kind, int size);

/* Draws into the file, which is written under another name and renamed. width, height: of the whole
 * picture, in pixels. */
spmv_status spy_picture_write(const char *path, enum spy_kind kind, int size, const char *name,
                              const struct spy_bins *bins, int *width, int *height);

#endif
