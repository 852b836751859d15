/* What the method "tiles" of the backend omp keeps of a matrix: see spmv_omp.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_OMP_H
#define SPMV_OMP_H

#include "plan_internal.h"

/* 4096 steps are some 48 KB of matrix in f64: long enough to hide what a tile costs (two searches in the plan, two
 * partial sums, a claim of the scheduler), short enough that small matrices still give each thread several. */
enum { TILE_WORK = 4096 };

struct position {
    int64_t row, k; /* the next row to finish, the next nonzero to take */
};

/* Rows that lie in one tile from end to end are grouped in stretches. All rows of a REGULAR stretch have as many
 * entries as its first, in the columns of the first; SHIFTED by as many columns as they lie rows behind it. RUN: these
 * columns follow one another. Rows of the others are of any kind; those of a SORTED one are taken by length. */
enum { STRETCH_PLAIN = 0, STRETCH_REGULAR = 1, STRETCH_SHIFTED = 2, STRETCH_RUN = 4, STRETCH_SORTED = 8 };

_Static_assert(TILE_WORK <= UINT16_MAX, "rows of a tile are counted in 16 bits");

struct stretch {
    uint16_t begin; /* its first row, counted from the first whole row of the tile; ends where the next begins */
    uint16_t kind;
    uint16_t n; /* REGULAR: entries of a row; SORTED: its groups */
};

/* So many rows of a SORTED stretch have n entries. */
struct group {
    uint16_t n, rows;
};

/* One of them, counted from the first whole row of the tile, and its first entry, counted from the tile's. */
struct place {
    uint16_t row, k;
};

struct tile {
    struct position begin; /* ends where the next begins */
    int64_t stretch;       /* the first of its stretches, of which there are as many as up to the next tile's; none:
                              all rows are plain */
    int64_t col;           /* where its columns of 16 bits begin, which are kept once a regular stretch */
    int64_t group, place;  /* where what its SORTED stretches have begins */
    int32_t base;          /* what columns are counted from */
    bool begun;            /* the first row has nonzeros before this tile */
    bool narrow, far;      /* columns of 16 bits; x is worth prefetching */
};

/* What one thread has of the tiles: the next to claim. A cache line, as all threads write to theirs. */
struct part {
    _Alignas(64) int64_t next;
};

struct tiles {
    int64_t count;
    struct tile *tile;       /* count + 1 */
    struct stretch *stretch; /* tile[count].stretch of them */
    uint16_t *col;           /* of narrow tiles: the columns less base */
    struct group *group;     /* the groups of a stretch one behind the other, shortest rows first */
    struct place *place;     /* their rows in this order, each group's in the matrix's */
    void *head, *tail;       /* count partial sums a vector each, of the plan's type */
    void *dots;              /* count partial sums of an epilogue's dot product; NULL: several vectors */
    struct part *part;       /* one a thread */
    int threads;             /* to do them */
    bool avx2;               /* use vectors of 32 bytes */
    bool stream;             /* write y past the caches */
    bool columns;            /* the products are those of spmv_omp_columns.c */
};

/* The rows that a tile finishes by itself. */
struct own_rows {
    int64_t first, last;
};

static inline struct own_rows own_rows_of(const struct tile *tile)
{
    const int64_t first = tile->begin.row, last = tile[1].begin.row;
    return (struct own_rows){first + (tile->begun && first < last), last};
}

typedef void tile_function(const struct tiles *, int64_t tile, const void *source);

/* Calls function for every tile. */
void tiles_share_out(struct tiles *tiles, tile_function *function, const void *source);

/* A product y = A x in pieces, for callers that have a parallel region of their own: function(tiles, t, source) for
 * every tile t, each once, by any thread. Then every row of y is there that lies in one tile; of the others the parts
 * are in head and tail (tiles_open_row). dots: the epilogue's dot product of each tile's own rows. */
struct pieces {
    const struct tiles *tiles;
    tile_function *function;
    _Alignas(64) char source[192];
};

/* The pieces of a product with a plan of this method. epilogue: NULL, or what is done with a tile's own rows, for one
 * vector; it stays the caller's and must live as long as the pieces. */
void tiles_omp_pieces(const spmv_plan *plan, const void *x, void *y, const spmv_epilogue *epilogue,
                      struct pieces *pieces);

/* The same for several vectors, in f64 or f32, without an epilogue. */
void columns_omp_pieces(const spmv_plan *plan, const void *x, void *y, struct pieces *pieces);

/* Where the row that ends in tile t has its parts: tails of the tiles from the one returned up to t - 1, added in this
 * order, then head of t. t: no row ends there that began before it. */
static inline int64_t tiles_open_row(const struct tiles *tiles, int64_t t)
{
    const struct tile *tile = tiles->tile;
    if (!tile[t].begun || tile[t].begin.row == tile[t + 1].begin.row)
        return t;
    int64_t from = t - 1;
    while (tile[from].begun && tile[from].begin.row == tile[from + 1].begin.row)
        from--;
    return from;
}

/* The product of several vectors at once, or of complex numbers; epilogue NULL: none. */
void columns_omp_product(const spmv_plan *plan, const void *alpha, const void *x, const void *beta, bool beta_zero,
                         void *y, const spmv_epilogue *epilogue);

#endif
