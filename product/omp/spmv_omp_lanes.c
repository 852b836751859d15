/* Slices of rows for method "tiles" of the backend omp: a copy of the values in the order in which the lanes of
 * vectors need them (struct slice in spmv_omp.h). The product is in spmv_omp_lanes.h.
 *
 * Consecutive rows that share most of their diagonals become a slice of DIAGONALS. A row without an entry on one of them
 * has a 0 there, so the bounds of a grid or the end of a line of it need no slices of their own. Other short rows are
 * sorted by length and become slices of COLUMNS.
 *
 * A stored 0 times a finite element of x is 0, and leaves the bits of a sum as they are, since no sum is -0: the first
 * is 0 + the first term. If an element is not finite, the sum is NaN, and the product computes these rows from the
 * matrix.
 *
 * A. Monakov, A. Lokhmotov, A. Avetisyan, "Automatically tuning sparse matrix-vector multiplication for GPU
 * architectures", HiPEAC 2010, introduced sliced ELLPACK. M. Kreutzer et al., "A unified sparse matrix data format for
 * efficient general sparse matrix-vector multiplication on modern processors with wide SIMD units", SIAM J. Sci. Comput.
 * 36 (2014), sort rows by length within a part of the matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "formats/matrix_internal.h"
#include "product/omp/spmv_omp_variants.h"

/* A slice pays off with at most so many steps for each entry of a row, in the mean. */
enum { STEPS_AN_ENTRY = 2 };

/* Lanes pay off in tiles with at least so many entries for each row. In others, to write y takes longest. */
enum { LEAST_ENTRIES_A_ROW = 2 };

/* After a search for diagonals has failed, it pauses for twice as many slices and one more as after the failure before,
 * but for at most so many. */
enum { MOST_PAUSED = 7 };

/* The rows of a slice with sums in f64. */
enum { LEAST_ROWS_OF_SLICE = LANE_BYTES / 8 };

/* The most diagonals of a slice. */
enum { MOST_DIAGONALS = TILE_WORK * STEPS_AN_ENTRY / LEAST_ROWS_OF_SLICE };

/* A tile that is cut. Rows are counted from its first whole row. */
struct cut {
    const spmv_csr *a;
    int64_t first;              /* its first whole row */
    int rows;                   /* of a slice */
    bool long_rows;             /* slices of DIAGONALS may have rows of more than SERIAL entries */
    int32_t base;               /* of columns */
    int64_t copied, diagonal;   /* entries in slices other than ROWS, and in those of DIAGONALS */
    struct lane_tile size;      /* what its slices take so far */
    const struct lanes *to;     /* where they are written; NULL: they are only counted */
    const struct lane_tile *at; /* with to: where the tile's begin there */
    struct slice last;
    int32_t offset[MOST_DIAGONALS]; /* of the last slice of DIAGONALS */
    int64_t diagonals;
    int64_t k;                     /* the first entry of the first row */
    uint16_t entry[TILE_WORK + 1]; /* where each row begins, counted from there */
};

static int64_t length_of(const struct cut *c, int64_t row)
{
    return c->entry[row + 1] - c->entry[row];
}

static void add_slice(struct cut *c, struct slice slice)
{
    if (c->to != NULL)
        c->to->slice[c->at->slice + c->size.slice] = slice;
    c->size.slice++;
    c->size.value += slice.kind == LANES_ROWS ? 0 : slice.n * c->rows;
    c->last = slice;
}

static void add_row(struct cut *c, int64_t row)
{
    struct slice slice = {.kind = LANES_ROWS, .n = 1, .row = (uint16_t)row};
    if (c->size.slice > 0 && c->last.kind == LANES_ROWS && c->last.row + c->last.n == row) {
        slice = c->last;
        slice.n++;
        c->size.slice--;
    }
    add_slice(c, slice);
}

/* Adds the diagonals of a row, whose entries are in these columns, to n of them in ascending order. Returns their
 * number; -1 if there are more than `most` or if the columns do not ascend. */
static int64_t merge(int32_t *offset, int64_t n, const int32_t *col, int64_t entries, int32_t row, int64_t most)
{
    int64_t i = 0, added = 0;
    for (int64_t j = 0; j < entries; j++) {
        if (j > 0 && col[j] <= col[j - 1])
            return -1;
        while (i < n && offset[i] < col[j] - row)
            i++;
        added += i == n || offset[i] != col[j] - row;
    }
    if (n + added > most)
        return -1;
    int64_t to = n + added, j = entries - 1;
    for (i = n - 1; j >= 0;) {
        const int32_t its = col[j] - row;
        const bool known = i >= 0 && offset[i] >= its;
        j -= !known || offset[i] == its;
        offset[--to] = known ? offset[i--] : its;
    }
    return n + added;
}

/* Writes the diagonals of the rows of a slice. Returns their number, or 0 if a slice does not pay off, or if some of its
 * lanes would read beyond x. Rows of more than SERIAL entries all need the same diagonals, since the number of an entry
 * decides which sum it is added to. */
static int64_t find_diagonals(const struct cut *c, int64_t begin, int32_t *offset)
{
    const int64_t all = c->entry[begin + c->rows] - c->entry[begin];
    const int64_t most = all * STEPS_AN_ENTRY / c->rows;
    const int32_t row = (int32_t)(c->first + begin);
    int64_t n = 0;
    for (int32_t i = 0; i < c->rows; i++) {
        const int32_t *col = c->a->col + c->k + c->entry[begin + i];
        const int64_t entries = length_of(c, begin + i);
        int32_t differences = entries != n; /* without branches, for vectors */
        for (int64_t j = 0; entries == n && j < n; j++)
            differences |= (offset[j] + row + i) ^ col[j];
        if (differences != 0) { /* two rows with little in common have neighbours like that, and end the search */
            const int64_t limit = i == 0 && c->long_rows ? most : min_i64(i == 1 ? most * 3 / 4 : most, SERIAL);
            n = merge(offset, n, col, entries, row + i, limit);
        }
        if (n < 0)
            return 0;
    }
    return n > 0 && row + offset[0] >= 0 && (int64_t)row + offset[n - 1] + c->rows <= c->a->cols ? n : 0;
}

/* Adds a slice of DIAGONALS with these rows, of which it writes those from begin + skip on. Returns false if it does not
 * pay off. */
static bool add_diagonals(struct cut *c, int64_t begin, int64_t skip)
{
    int32_t offset[MOST_DIAGONALS];
    const int64_t n = find_diagonals(c, begin, offset);
    const size_t bytes = (size_t)n * sizeof *offset;
    if (n == 0)
        return false;
    if (n != c->diagonals || memcmp(offset, c->offset, bytes) != 0) {
        memcpy(c->offset, offset, bytes);
        c->diagonals = n;
        if (c->to != NULL)
            memcpy(c->to->offset + c->at->offset + c->size.offset, offset, bytes);
        c->size.offset += n;
    }
    c->copied += c->entry[begin + c->rows] - c->entry[begin + skip];
    c->diagonal += c->entry[begin + c->rows] - c->entry[begin + skip];
    add_slice(c, (struct slice){.kind = LANES_DIAGONALS,
                                .skip = (uint16_t)skip,
                                .n = (uint16_t)n,
                                .row = (uint16_t)begin,
                                .at = (uint16_t)(c->size.offset - n)});
    return true;
}

/* Writes column j of the entries of these rows next to each other, for each step j < n. Where a row has none, the lane
 * multiplies 0 by an element that another entry reads. */
static void write_columns(const struct cut *c, const uint16_t *row, int64_t n)
{
    uint16_t *narrow = c->to->col + c->at->column + c->size.column;
    int32_t *wide = c->to->offset + c->at->offset + c->size.offset;
    for (int64_t i = 0; i < c->rows; i++) {
        const int64_t k = c->k + c->entry[row[i]], entries = length_of(c, row[i]);
        int32_t col = c->base;
        for (int64_t j = 0; j < n; j++) {
            col = j < entries ? c->a->col[k + j] : col;
            if (c->size.narrow)
                narrow[j * c->rows + i] = (uint16_t)(col - c->base);
            else
                wide[j * c->rows + i] = col;
        }
    }
    memcpy(c->to->row + c->at->row + c->size.row, row, (size_t)c->rows * sizeof *row);
}

/* Adds a slice of COLUMNS with these rows, the longest last, of which it writes those from number skip on. Returns false
 * if it does not pay off. */
static bool add_columns(struct cut *c, const uint16_t *row, int64_t skip)
{
    const int64_t n = length_of(c, row[c->rows - 1]);
    int64_t all = 0, own = 0;
    for (int64_t i = 0; i < c->rows; i++) {
        all += length_of(c, row[i]);
        own += i >= skip ? length_of(c, row[i]) : 0;
    }
    if (n * c->rows > STEPS_AN_ENTRY * all)
        return false;
    if (c->to != NULL)
        write_columns(c, row, n);
    const int64_t at = c->size.narrow ? c->size.column : c->size.offset, its = n * c->rows;
    c->size.column += c->size.narrow ? its : 0;
    c->size.offset += c->size.narrow ? 0 : its;
    c->copied += own;
    add_slice(c, (struct slice){.kind = LANES_COLUMNS,
                                .skip = (uint16_t)skip,
                                .n = (uint16_t)n,
                                .row = (uint16_t)c->size.row,
                                .at = (uint16_t)at});
    c->size.row += c->rows;
    return true;
}

/* Adds rows that are in no slice of DIAGONALS: long ones as they are, shorter ones by length. The last slice takes rows
 * of the one before, if it has not enough. */
static void add_others(struct cut *c, const uint16_t *row, int64_t count)
{
    uint16_t at[SERIAL + 2] = {0}, sorted[TILE_WORK];
    for (int64_t i = 0; i < count; i++)
        if (length_of(c, row[i]) <= SERIAL)
            at[length_of(c, row[i]) + 1]++;
        else
            add_row(c, row[i]);
    for (int n = 0; n <= SERIAL; n++)
        at[n + 1] = (uint16_t)(at[n + 1] + at[n]);
    const int64_t shorter = at[SERIAL + 1];
    for (int64_t i = 0; i < count; i++)
        if (length_of(c, row[i]) <= SERIAL)
            sorted[at[length_of(c, row[i])]++] = row[i];
    for (int64_t i = 0; i < shorter; i += c->rows) {
        const int64_t begin = min_i64(i, shorter - c->rows), end = min_i64(i + c->rows, shorter);
        if (begin < 0 || !add_columns(c, sorted + begin, i - begin))
            for (int64_t other = i; other < end; other++)
                add_row(c, sorted[other]);
    }
}

/* Cuts the whole rows of a tile. */
static void cut_rows(struct cut *c, int64_t count)
{
    uint16_t others[TILE_WORK];
    int64_t left = 0, pause = 0, paused = 0;
    for (int64_t row = 0; row < count; row += c->rows) {
        const int64_t begin = min_i64(row, count - c->rows), end = min_i64(row + c->rows, count);
        if (paused > 0) {
            paused--;
        } else if (begin >= 0 && add_diagonals(c, begin, row - begin)) {
            pause = 0;
            continue;
        } else {
            paused = pause;
            pause = min_i64(2 * pause + 1, MOST_PAUSED);
        }
        for (int64_t other = row; other < end; other++)
            others[left++] = (uint16_t)other;
    }
    add_others(c, others, left);
}

/* to: NULL, or where the slices are written. */
static void cut_tile(const spmv_csr *a, const struct omp_tiles *tiles, int64_t t, const struct lanes *to, struct cut *c)
{
    const struct own_rows own = own_rows_of(&tiles->tile[t]);
    c->a = a;
    c->first = own.first;
    c->rows = tiles->lanes.rows;
    c->long_rows = tiles->lanes.avx512; /* AVX2 has not enough registers for eight sums of a slice */
    c->base = tiles->tile[t].base;
    c->copied = c->diagonal = c->diagonals = 0;
    c->to = to;
    c->at = &tiles->lanes.tile[t];
    c->size = (struct lane_tile){.narrow = to != NULL ? c->at->narrow : tiles->tile[t].narrow};
    c->k = offset_at(a->row_ptr, a->row_ptr_bits, own.first);
    for (int64_t row = own.first; row <= own.last; row++)
        c->entry[row - own.first] = (uint16_t)(offset_at(a->row_ptr, a->row_ptr_bits, row) - c->k);
    cut_rows(c, own.last - own.first);
}

int64_t lanes_look(const spmv_csr *a, struct omp_tiles *tiles, int64_t t, bool only_columns)
{
    const struct tile *tile = &tiles->tile[t];
    const int64_t value_size = (int64_t)spmv_type_size(a->type), entries = tile[1].begin.k - tile->begin.k;
    struct cut c;
    cut_tile(a, tiles, t, NULL, &c);
    if (4 * (c.copied - (only_columns ? c.diagonal : 0)) <= 3 * entries ||
        entries < LEAST_ENTRIES_A_ROW * (tile[1].begin.row - tile->begin.row)) {
        tiles->lanes.tile[t] = (struct lane_tile){0};
        return 0;
    }
    tiles->lanes.tile[t] = c.size;
    return c.size.value * value_size + (entries - c.copied) * (value_size + (int64_t)sizeof *a->col) +
           c.size.offset * (int64_t)sizeof *tiles->lanes.offset +
           (c.size.column + c.size.row) * (int64_t)sizeof *tiles->lanes.col +
           c.size.slice * (int64_t)sizeof *tiles->lanes.slice;
}

/* The slice's values in the order of lanes. to: those of the slice. first: the tile's first whole row. size: a constant
 * after inlining. */
static inline void fill_slice(const spmv_csr *a, const struct lanes *lanes, const struct lane_tile *tile,
                              struct slice slice, int64_t first, char *to, size_t size)
{
    const int32_t *offset = lanes->offset + tile->offset + slice.at;
    memset(to, 0, (size_t)(slice.n * lanes->rows) * size);
    for (int64_t i = 0; i < lanes->rows; i++) {
        const bool diagonals = slice.kind == LANES_DIAGONALS;
        const int64_t row = first + (diagonals ? slice.row + i : lanes->row[tile->row + slice.row + i]);
        const int64_t end = offset_at(a->row_ptr, a->row_ptr_bits, row + 1);
        int64_t j = 0;
        for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, row); k < end; k++, j++) {
            while (diagonals && offset[j] != a->col[k] - row)
                j++;
            copy_value(to, j * lanes->rows + i, a->val, k, size);
        }
    }
}

static inline void fill_tile(const spmv_csr *a, const struct omp_tiles *tiles, int64_t t, size_t size)
{
    const struct lanes *lanes = &tiles->lanes;
    const struct lane_tile *tile = &lanes->tile[t];
    char *to = (char *)lanes->val + (size_t)tile->value * size;
    for (int64_t i = tile->slice; i < tile[1].slice; i++) {
        const struct slice slice = lanes->slice[i];
        if (slice.kind == LANES_ROWS)
            continue;
        fill_slice(a, lanes, tile, slice, own_rows_of(&tiles->tile[t]).first, to, size);
        to += (size_t)(slice.n * lanes->rows) * size;
    }
}

/* The static schedule lets the threads that will read this data write it. */
void lanes_fill(const spmv_plan *plan, const struct omp_tiles *tiles)
{
    const size_t size = spmv_type_size(plan->a.type);
    if (tiles->lanes.tile == NULL)
        return;
#pragma omp parallel for schedule(static) num_threads(host_team(plan->ctx, tiles->count *TILE_WORK))
    for (int64_t t = 0; t < tiles->count; t++)
        SIZED(size, fill_tile(&plan->a, tiles, t, SIZE))
}

/* Replaces what each tile takes by where it begins. */
static struct lane_tile sum_sizes(const struct omp_tiles *tiles)
{
    struct lane_tile sum = {0};
    for (int64_t t = 0; t <= tiles->count; t++) {
        struct lane_tile *tile = &tiles->lanes.tile[t];
        const struct lane_tile its = *tile;
        *tile = sum;
        tile->narrow = its.narrow;
        sum.slice += its.slice;
        sum.value += its.value;
        sum.offset += its.offset;
        sum.column += its.column;
        sum.row += its.row;
    }
    return sum;
}

spmv_status lanes_keep(spmv_plan *plan, struct omp_tiles *tiles)
{
    spmv_status st = SPMV_OK;
    struct lanes *lanes = &tiles->lanes;
    if (lanes->tile == NULL)
        return SPMV_OK;
    const struct lane_tile all = sum_sizes(tiles);
    if (all.slice == 0) {
        plan_free(plan, (tiles->count + 1) * (int64_t)sizeof *lanes->tile, lanes->tile);
        lanes->tile = NULL;
        return SPMV_OK;
    }
    TRY(plan_alloc(plan, all.slice * (int64_t)sizeof *lanes->slice, (void **)&lanes->slice));
    /* never NULL: pointers into them are computed for every slice */
    TRY(plan_alloc(plan, max_i64(all.value, 1) * (int64_t)spmv_type_size(plan->a.type), &lanes->val));
    TRY(plan_alloc(plan, max_i64(all.offset, 1) * (int64_t)sizeof *lanes->offset, (void **)&lanes->offset));
    TRY(plan_alloc(plan, max_i64(all.column, 1) * (int64_t)sizeof *lanes->col, (void **)&lanes->col));
    TRY(plan_alloc(plan, max_i64(all.row, 1) * (int64_t)sizeof *lanes->row, (void **)&lanes->row));
#pragma omp parallel for schedule(static) num_threads(heavy_team(plan->ctx, tiles->count *TILE_WORK))
    for (int64_t t = 0; t < tiles->count; t++) {
        if (!tile_has_lanes(tiles, t))
            continue;
        struct cut c;
        cut_tile(&plan->a, tiles, t, lanes, &c);
    }
    lanes_fill(plan, tiles);
done:
    return st;
}
