/* The data that method "tiles" of the backend omp keeps of a matrix (see spmv_omp.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_OMP_H
#define SPMV_OMP_H

#include "product/plan_internal.h"

/* Steps of a tile. 4096 steps are about 48 KB of matrix in f64. This is long enough to hide the
 * cost of a tile (two searches in the plan, two partial sums, one claim by a thread) and short
 * enough that small matrices still give each thread several tiles. */
enum { TILE_WORK = 4096 };

struct position {
    int64_t row, k; /* the next row to finish, the next nonzero to take */
};

/* Rows that lie entirely in one tile are arranged in stretches. The kinds:
 * - PLAIN: any rows.
 * - REGULAR: each row has the columns of the first row.
 * - REGULAR, SHIFTED: row i of the stretch has the columns of the first row, plus i.
 * - REGULAR, CONSECUTIVE: the columns of a row are consecutive.
 * - SORTED: any rows, processed in order of their length.
 * - FORMED: rows of equal length, each in one of a few forms. */
enum {
    STRETCH_PLAIN = 0,
    STRETCH_REGULAR = 1,
    STRETCH_SHIFTED = 2,
    STRETCH_CONSECUTIVE = 4,
    STRETCH_SORTED = 8,
    STRETCH_FORMED = 16
};

_Static_assert(TILE_WORK <= UINT16_MAX, "rows of a tile are counted in 16 bits");

struct stretch {
    /* the first row, counted from the tile's first whole row; the stretch ends where the next
     * begins */
    uint16_t begin;
    uint16_t kind;
    uint16_t n;     /* REGULAR, FORMED: entries of a row; SORTED: number of buckets */
    uint16_t forms; /* FORMED: number of forms */
    /* where its spots and codes (FORMED) or buckets and places (SORTED) begin, counted from the
     * tile's */
    union {
        uint16_t spot, bucket;
    };
    union {
        uint16_t code, place;
    };
};

/* The rows of a SORTED stretch that have n entries. */
struct bucket {
    uint16_t n, rows;
};

/* One row of a bucket, counted from the tile's first whole row, and its first entry, counted from
 * the tile's first entry. */
struct place {
    uint16_t row, k;
};

/* The largest number of forms in a stretch and of entries in a formed row. Beyond them, generating
 * the columns takes longer than reading them. */
enum { MOST_FORMS = 8, MOST_FORMED = 6 };

/* A form: its first row, the row's first entry, and the first entry of its second row, which
 * determines the moving columns (-1: no second row yet). */
struct form {
    int64_t row, k, settled_k;
};

struct forms {
    int count;
    struct form form[MOST_FORMS];
};

/* Finds the forms of rows from begin on and returns the end of these rows: last, the first row of
 * another length, or the first row that fits no form when there are MOST_FORMS. code: NULL, or
 * receives the form of each row. */
int64_t forms_reach(const spmv_csr *a, int64_t begin, int64_t last, struct forms *forms, uint8_t *code);

/* SPOTS columns of a form. In row r of the stretch, column j is column[j] + (r & moves[j]),
 * relative to the base of the tile's columns. */
enum { SPOTS = 4 };
struct spots {
    int32_t column[SPOTS], moves[SPOTS]; /* moves: -1 for a moving column, otherwise 0 */
};

/* The number of struct spots that a form of n columns takes. */
static inline int64_t spots_of(int64_t n)
{
    return (n + SPOTS - 1) / SPOTS;
}

/* Writes the spots of these forms, one form after the other, for a stretch that begins at row
 * begin. */
void forms_spots(const spmv_csr *a, const struct forms *forms, int64_t begin, int64_t n, int32_t base,
                 struct spots *spot);

/* A tile with lanes has its whole rows in slices, in place of stretches. A slice is rows whose sums fill LANE_BYTES, one
 * row in each lane. The plan has a copy of their values, step by step: in each step one value of each row, 0 where a
 * row has none. The kinds:
 * - DIAGONALS: consecutive rows. In step j, row i has the entry in column i + offset[j].
 * - COLUMNS: rows of about the same length. In step j, they have their entry j, at columns that are copied likewise.
 * - ROWS: any number of consecutive rows, which are read from the matrix itself. */
enum { LANE_BYTES = 64 };
enum { LANES_DIAGONALS, LANES_COLUMNS, LANES_ROWS };

struct slice {
    uint16_t kind;
    uint16_t skip; /* so many lanes at the start have rows that other slices write */
    uint16_t n;    /* steps; ROWS: rows */
    uint16_t row;  /* the first row, counted from the tile's first whole row; COLUMNS: where its rows begin in row */
    uint16_t at;   /* where its offsets (DIAGONALS) or columns (COLUMNS) begin, counted from the tile's */
};

/* Where the slices of a tile, their values, offsets, columns and rows begin. */
struct lane_tile {
    int64_t slice, value, offset, column, row;
    bool narrow; /* columns have 16 bits, less the tile's base; otherwise they are among the offsets */
};

struct lanes {
    int rows;               /* of a slice */
    struct lane_tile *tile; /* count + 1; NULL: no tile has lanes */
    struct slice *slice;
    void *val;
    int32_t *offset;
    uint16_t *col;
    uint16_t *row; /* of slices of COLUMNS, counted from the tile's first whole row */
    bool avx512;   /* use 64-byte vectors */
};

struct tile {
    struct position begin; /* the tile ends where the next begins */
    /* The first of its stretches, which end at the next tile's. Without stretches, all rows are
     * plain. */
    int64_t stretch;
    /* Where its 16-bit columns begin. A regular stretch keeps the columns of one row, a FORMED
     * stretch none. */
    int64_t col;
    int64_t bucket, place; /* where the buckets and places of its SORTED stretches begin */
    int64_t spot, code;    /* where the spots and codes of its FORMED stretches begin */
    /* the bytes that the tiles before it read of the matrix and write of y */
    int64_t bytes;
    int32_t base;     /* subtracted from its 16-bit columns */
    bool begun;       /* the first row has nonzeros before this tile */
    bool narrow, far; /* it has 16-bit columns; x is worth prefetching */
};

/* The tiles of one thread, begin ... end - 1, and the next one to claim. All threads write to next,
 * so it has a cache line of its own. */
struct share {
    _Alignas(64) int64_t next;
    int64_t begin, end;
};

struct omp_tiles {
    int64_t count;
    struct tile *tile;       /* count + 1 */
    struct stretch *stretch; /* tile[count].stretch of them */
    uint16_t *col;           /* of narrow tiles: the columns less base */
    struct bucket *bucket;   /* the buckets of each stretch, shortest rows first */
    struct place *place;     /* the rows of each bucket, in the order of the matrix */
    struct spots *spot;      /* the forms of each stretch */
    uint8_t *code;           /* the form of each row */
    struct lanes lanes;
    void *head, *tail; /* count partial sums for each vector, of the type of sums */
    /* count partial sums of an epilogue's dot product; NULL for several vectors */
    void *dots;
    struct share *share; /* one for each thread */
    int threads;         /* the number of threads of a product */
    int shares;          /* the number of threads for which share is filled; 0: not yet */
    bool avx2;           /* use 32-byte vectors; a lane sums a row */
    bool stream;         /* write y with streaming stores */
    bool columns;        /* use the products of spmv_omp_columns.c */
    int first_step;      /* of COLUMNS_STEPS, for this processor */
};

/* The rows that a tile finishes alone. */
struct own_rows {
    int64_t first, last;
};

static inline struct own_rows own_rows_of(const struct tile *tile)
{
    const int64_t first = tile->begin.row, last = tile[1].begin.row;
    return (struct own_rows){first + (tile->begun && first < last), last};
}

static inline bool tile_has_lanes(const struct omp_tiles *tiles, int64_t t)
{
    const struct lane_tile *tile = tiles->lanes.tile;
    return tile != NULL && tile[t].slice < tile[t + 1].slice;
}

/* Cuts the whole rows of tile t in slices and sets what they take in tiles->lanes.tile[t]. Returns the bytes that a
 * product reads of the tile's matrix; 0: the tile has no lanes, since they would not pay off. only_columns: slices of
 * DIAGONALS do not pay off. */
int64_t lanes_look(const spmv_csr *a, struct omp_tiles *tiles, int64_t t, bool only_columns);

/* Allocates and writes the slices. */
spmv_status lanes_keep(spmv_plan *plan, struct omp_tiles *tiles);

/* Copies the values of the matrix to the slices. */
void lanes_fill(const spmv_plan *plan, const struct omp_tiles *tiles);

typedef void tile_function(const struct omp_tiles *, int64_t tile, const void *source);

/* Calls function for every tile. */
void tiles_share_out(struct omp_tiles *tiles, tile_function *function, const void *source);

/* A product y = A x as a loop over tiles, for callers with their own parallel region: the caller
 * calls function(tiles, t, source) once for every tile t, from any thread. This writes each row of
 * y that lies in one tile. The partial sums of the other rows are in head and tail (see
 * tiles_open_row). dots receives the epilogue's dot product over each tile's own rows. */
struct tile_loop {
    const struct omp_tiles *tiles;
    tile_function *function;
    _Alignas(64) char source[192];
};

/* Fills the loop of a product with a plan of this method. epilogue: NULL, or what is computed from
 * a tile's own rows, for one vector; it is borrowed and must live as long as the loop. */
void tiles_omp_loop(const spmv_plan *plan, const void *x, void *y, const spmv_epilogue *epilogue,
                    struct tile_loop *loop);

/* For the row that ends in tile t but began before it: returns the tile whose tail is its first
 * partial sum. The row is the sum of the tails from there to t - 1, in this order, and of the head
 * of t. Returns t if there is no such row. */
static inline int64_t tiles_open_row(const struct omp_tiles *tiles, int64_t t)
{
    const struct tile *tile = tiles->tile;
    if (!tile[t].begun || tile[t].begin.row == tile[t + 1].begin.row)
        return t;
    int64_t from = t - 1;
    while (tile[from].begun && tile[from].begin.row == tile[from + 1].begin.row)
        from--;
    return from;
}

#endif
