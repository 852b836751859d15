/* spmv spy: a pattern counted into cells, and its pictures.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPY_H
#define SPY_H

#include "app.h"

/* ---------------------------------------------------------------- spy_bins.c: nonzeros into cells */

/* A side of the matrix, cut into cells of block rows (or columns) each; the last may be smaller. */
struct spy_axis {
    int64_t length, block;
    int cells; /* ceil(length / block) */
};

/* What a picture may have at most, in cells; tall: a cell is so many times as tall as it is wide. */
struct spy_room {
    int rows, cols, tall;
};

struct spy_bins {
    struct spy_axis rows, cols;
    bool stretched; /* one side is more than SPY_ASPECT times the other: each side has a scale of its own */
    int64_t nnz;
    int64_t *counts; /* rows.cells x cols.cells, row by row: nonzeros in the cell */
    int64_t filled;  /* cells that hold a nonzero */
    /* Densities of the whole cells that hold a nonzero; of all where no whole one does; 0 without a nonzero. A cell of
     * few rows and columns in the corner may be denser than any, and would set the scale for all. */
    double least, most;
};

/* No picture is longer than so many times its width, or the other way round. */
enum { SPY_ASPECT = 8 };

/* Counts a's nonzeros (host memory) in one pass. Where a side is at most as long as its room, a cell is one row (or
 * column) of it if the other side's scale permits. The counts are the same for any number of threads. */
spmv_status spy_bins_make(const spmv_csr *a, struct spy_room room, int threads, struct spy_bins *bins);
void spy_bins_free(struct spy_bins *bins);

/* Nonzeros over entries of a cell; and where that lies from least (1) to most (levels), on a logarithmic scale: 0 for
 * a cell without nonzeros. */
double spy_density(const struct spy_bins *bins, int row, int col);
int spy_level(const struct spy_bins *bins, int row, int col, int levels);

/* A density in two digits: "0.25", "6.4e-7". Static storage of a few texts in turn. */
const char *spy_density_text(double density);

/* "a dot: 64 x 64 entries", "a dot: one entry". Static storage. */
const char *spy_cell_text(const char *cell, const struct spy_bins *bins);

/* ---------------------------------------------------------------- spy_text.c: in the terminal */

/* Draws on standard output; bins: what was drawn, spy_bins_free in any case. */
spmv_status spy_print(const struct input *in, int threads, struct spy_bins *bins);

/* ---------------------------------------------------------------- spy_picture.c: in a file */

enum spy_kind { SPY_NONE, SPY_PNG, SPY_SVG };

/* The library that draws is in this build and on this machine, else a complaint. */
spmv_status spy_picture_ready(void);

/* What a picture of that kind, at most size pixels long without its axes, has room for. */
struct spy_room spy_picture_room(enum spy_kind kind, int size);

/* Draws into the file (written beside, renamed); width, height: of the whole picture, in pixels. */
spmv_status spy_picture_write(const char *path, enum spy_kind kind, int size, const char *name,
                              const struct spy_bins *bins, int *width, int *height);

#endif
