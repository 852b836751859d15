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
 * columns follow one another. All rows of a FORMED one have as many entries, and one of a few forms. Rows of the others
 * are of any kind; those of a SORTED one are taken by length. */
enum {
    STRETCH_PLAIN = 0,
    STRETCH_REGULAR = 1,
    STRETCH_SHIFTED = 2,
    STRETCH_RUN = 4,
    STRETCH_SORTED = 8,
    STRETCH_FORMED = 16
};

_Static_assert(TILE_WORK <= UINT16_MAX, "rows of a tile are counted in 16 bits");

struct stretch {
    uint16_t begin; /* its first row, counted from the first whole row of the tile; ends where the next begins */
    uint16_t kind;
    uint16_t n;          /* REGULAR, FORMED: entries of a row; SORTED: its groups */
    uint16_t forms;      /* FORMED: how many */
    uint16_t spot, code; /* FORMED: where its spots and codes begin, counted from the tile's */
};

/* So many rows of a SORTED stretch have n entries. */
struct group {
    uint16_t n, rows;
};

/* One of them, counted from the first whole row of the tile, and its first entry, counted from the tile's. */
struct place {
    uint16_t row, k;
};

/* A row is compared with at most so many forms, and has at most so many entries: where there are more, to write down
 * their columns takes longer than to read them. */
enum { MOST_FORMS = 8, MOST_FORMED = 6 };

/* A form as its first row has it; settled_k: where the second begins, which settles what moves, -1: none yet. */
struct form {
    int64_t row, k, settled_k;
};

struct forms {
    int count;
    struct form form[MOST_FORMS];
};

/* The forms of rows begin ... end - 1 of a, and their end, which is returned: at most last, or a row with another
 * number of entries than the first, or one that fits no form where there are MOST_FORMS. code: NULL, or the number of
 * each row's form. */
int64_t forms_reach(const spmv_csr *a, int64_t begin, int64_t last, struct forms *forms, uint8_t *code);

/* Where SPOTS columns of a form lie in a row so many rows behind the first of its stretch, less what columns of the
 * tile are counted from: column + (rows & moves). */
enum { SPOTS = 4 };
struct spots {
    int32_t column[SPOTS], moves[SPOTS]; /* moves: -1 or 0 */
};

/* So many of them are a form of n columns. */
static inline int64_t spots_of(int64_t n)
{
    return (n + SPOTS - 1) / SPOTS;
}

/* The spots of these forms, one form behind the other, for a stretch that begins with row `begin`. */
void forms_spots(const spmv_csr *a, const struct forms *forms, int64_t begin, int64_t n, int32_t base,
                 struct spots *spot);

struct tile {
    struct position begin; /* ends where the next begins */
    int64_t stretch;       /* the first of its stretches, of which there are as many as up to the next tile's; none:
                              all rows are plain */
    int64_t col;           /* where its columns of 16 bits begin, which are kept once a regular stretch, in a
                              FORMED one not at all */
    int64_t group, place;  /* where what its SORTED stretches have begins */
    int64_t spot, code;    /* the same of its FORMED ones */
    int64_t bytes;         /* what the tiles before it read of the matrix and write of y */
    int32_t base;          /* what columns are counted from */
    bool begun;            /* the first row has nonzeros before this tile */
    bool narrow, far;      /* columns of 16 bits; x is worth prefetching */
};

/* What one thread has of the tiles: begin ... end - 1, and the next to claim. A cache line, as all threads write to
 * theirs. */
struct part {
    _Alignas(64) int64_t next;
    int64_t begin, end;
};

struct tiles {
    int64_t count;
    struct tile *tile;       /* count + 1 */
    struct stretch *stretch; /* tile[count].stretch of them */
    uint16_t *col;           /* of narrow tiles: the columns less base */
    struct group *group;     /* the groups of a stretch one behind the other, shortest rows first */
    struct place *place;     /* their rows in this order, each group's in the matrix's */
    struct spots *spot;      /* the forms of a stretch one behind the other */
    uint8_t *code;           /* the form of each row */
    void *head, *tail;       /* count partial sums a vector each, of the plan's type */
    void *dots;              /* count partial sums of an epilogue's dot product; NULL: several vectors */
    struct part *part;       /* one a thread */
    int threads;             /* to do them */
    int parts;               /* for so many threads part has begins and ends; 0: none yet */
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

/* The product of several vectors at once, or of complex numbers. */
void columns_omp_product(const spmv_plan *plan, const struct plan_product *product);

#endif
