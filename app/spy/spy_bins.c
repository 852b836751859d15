/* Counts the pattern of a matrix into the cells of a picture: one pass, memory only for the cells.
 *
 * All cells except those at the far ends have the same size, because sizes that differ by one row
 * or column would show stripes that the matrix does not have. A row of cells belongs to one thread,
 * so no atomics are needed and the counts are the same for any team.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/input.h"
#include "app/output.h"
#include "app/spy/spy.h"

static int64_t ceil_div(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

static int64_t at_least_one(int64_t n)
{
    return n > 1 ? n : 1;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void cut(struct spy_axis *axis, int64_t length, int64_t block)
{
    *axis = (struct spy_axis){length, block, (int)ceil_div(length, block)};
}

/* Chooses one scale for both sides. For a long and narrow matrix, the long side gets its whole room
 * and the short one an eighth of it. */
static void lay_out(int64_t rows, int64_t cols, struct spy_room room, struct spy_bins *bins)
{
    const bool is_tall = rows / SPY_ASPECT > cols || (rows / SPY_ASPECT == cols && rows % SPY_ASPECT != 0);
    const bool is_wide = cols / SPY_ASPECT > rows || (cols / SPY_ASPECT == rows && cols % SPY_ASPECT != 0);
    int64_t room_rows = room.rows, room_cols = room.cols;
    bins->stretched = rows > 0 && cols > 0 && (is_tall || is_wide);
    if (!bins->stretched) {
        const int64_t block = at_least_one(larger(ceil_div(cols, room_cols), ceil_div(rows, room_rows * room.tall)));
        cut(&bins->cols, cols, block);
        cut(&bins->rows, rows, block * room.tall);
        return;
    }
    if (is_tall)
        room_cols = at_least_one(room_rows * room.tall / SPY_ASPECT);
    else
        room_rows = at_least_one(room_cols / SPY_ASPECT / room.tall);
    cut(&bins->cols, cols, ceil_div(cols, room_cols));
    cut(&bins->rows, rows, ceil_div(rows, room_rows));
}

/* Counts one row of cells. Columns ascend, so most entries are in the cell of the entry before: a
 * division is needed only at a change of cell. */
static void count_row_of_cells(const spmv_csr *a, const struct spy_axis *rows, const struct spy_axis *cols, int row,
                               int64_t *counts)
{
    const int64_t first = row * rows->block;
    const int64_t end = first + rows->block < rows->length ? first + rows->block : rows->length;
    int64_t from = 0, to = cols->block, n = 0;
    int64_t *cell = counts;
    for (int64_t k = row_begin(a, first); k < row_begin(a, end); k++) {
        const int64_t col = a->col[k];
        if (col < from || col >= to) {
            *cell += n;
            n = 0;
            cell = counts + col / cols->block;
            from = (cell - counts) * cols->block;
            to = from + cols->block;
        }
        n++;
    }
    *cell += n;
}

/* Below this number of nonzeros a team costs more than it saves. */
enum { FEW = 1 << 16 };

static void count(const spmv_csr *a, int threads, struct spy_bins *bins)
{
    const struct spy_axis rows = bins->rows, cols = bins->cols;
    int64_t *counts = bins->counts;
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (a->nnz >= FEW)
    for (int row = 0; row < rows.cells; row++)
        count_row_of_cells(a, &rows, &cols, row, counts + (int64_t)row * cols.cells);
}

/* Number of rows (or columns) in a cell; the last has the rest. */
static int64_t extent(const struct spy_axis *axis, int cell)
{
    return cell < axis->cells - 1 ? axis->block : axis->length - cell * axis->block;
}

/* Finds the extreme densities of the full-size cells, or of all; false if none has a nonzero. */
static bool find_extremes(struct spy_bins *bins, bool whole)
{
    bool found = false;
    for (int row = 0; row < bins->rows.cells; row++) {
        for (int col = 0; col < bins->cols.cells; col++) {
            const double density = spy_density(bins, row, col);
            const bool is_whole =
                extent(&bins->rows, row) == bins->rows.block && extent(&bins->cols, col) == bins->cols.block;
            if (density == 0 || (whole && !is_whole))
                continue;
            bins->least = !found || density < bins->least ? density : bins->least;
            bins->most = !found || density > bins->most ? density : bins->most;
            found = true;
        }
    }
    return found;
}

static int64_t count_filled(const struct spy_bins *bins)
{
    const int64_t cells = (int64_t)bins->rows.cells * bins->cols.cells;
    int64_t filled = 0;
    for (int64_t cell = 0; cell < cells; cell++)
        filled += bins->counts[cell] > 0;
    return filled;
}

spmv_status spy_bins_make(const spmv_csr *a, struct spy_room room, int threads, struct spy_bins *bins)
{
    *bins = (struct spy_bins){.nnz = a->nnz};
    lay_out(a->rows, a->cols, room, bins);
    const int64_t cells = (int64_t)bins->rows.cells * bins->cols.cells;
    const spmv_status st = allocate("the cells of the picture", cells, sizeof *bins->counts, (void **)&bins->counts);
    if (st != SPMV_OK)
        return st;
    memset(bins->counts, 0, (size_t)cells * sizeof *bins->counts);
    if (cells > 0)
        count(a, threads, bins);
    bins->filled = count_filled(bins);
    if (!find_extremes(bins, true))
        find_extremes(bins, false);
    return SPMV_OK;
}

void spy_bins_free(struct spy_bins *bins)
{
    free(bins->counts);
    bins->counts = NULL;
}

double spy_density(const struct spy_bins *bins, int row, int col)
{
    const int64_t count = bins->counts[(int64_t)row * bins->cols.cells + col];
    return count == 0 ? 0 : (double)count / ((double)extent(&bins->rows, row) * (double)extent(&bins->cols, col));
}

int spy_level(const struct spy_bins *bins, int row, int col, int levels)
{
    const double density = spy_density(bins, row, col);
    if (density == 0)
        return 0;
    if (bins->least == bins->most || density >= bins->most)
        return levels;
    if (density <= bins->least)
        return 1;
    return 1 + (int)lround(log(density / bins->least) / log(bins->most / bins->least) * (levels - 1));
}

/* Removes the zero with which C pads exponents. */
const char *spy_density_text(double density)
{
    static char texts[4][NUMBER_TEXT];
    static unsigned turn;
    char *text = texts[turn++ % 4];
    snprintf(text, NUMBER_TEXT, "%.2g", density);
    char *padded = strstr(text, "e-0");
    if (padded != NULL)
        memmove(padded + 2, padded + 3, strlen(padded + 3) + 1);
    return text;
}

const char *spy_cell_text(const char *cell, const struct spy_bins *bins)
{
    static char text[96];
    if (bins->rows.block == 1 && bins->cols.block == 1)
        snprintf(text, sizeof text, "%s: one entry", cell);
    else
        snprintf(text, sizeof text, "%s: %lld x %lld entries", cell, (long long)bins->rows.block,
                 (long long)bins->cols.block);
    return text;
}
