/* What the choice of a product's method on a GPU follows from, and the limits that kernels need too.
 * The choice itself is in choose.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_CHOOSE_H
#define PRODUCT_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

/* The least nonzeros for tiles of the usual size, which then suffice for all multiprocessors, and for
 * most other methods. Tests build with less to get all methods in small matrices. */
#ifndef SPMV_TILES_LARGE
#define SPMV_TILES_LARGE (1 << 20)
#endif

enum {
    SLICE_ROWS = 64,        /* of a slice of the method slices */
    GROUPS_TILE = 420,      /* rows that a block counts for the method groups */
    PANEL_ROWS = 4,         /* of a panel of the method panels */
    ROWS_ALIKE = 4,         /* rows are alike if the longest has at most so many times the mean length */
    PADDED_ROWS = 8,        /* of a slice of the method padded */
    PADDED_BLOCK_ROWS = 32, /* that a block has there */
    SECTOR_BYTES = 32       /* that a gather from memory moves */
};

/* Facts about a matrix, each counted once. */
struct facts {
    /* Known from the sizes, the options and the device. */
    int64_t rows, cols, nnz; /* of op(A) */
    int value_bytes;         /* of an entry; 0: a pattern */
    int vector_bytes;        /* of an element of x or y */
    int offset_bytes;        /* of a row offset */
    int vectors;             /* multiplied at once */
    int64_t cache_bytes;     /* of the device's last-level cache */
    bool complex_values;
    bool compression; /* the matrix may be stored in another form */
    bool wants_table; /* a table of values is requested, and there are values */
    bool borrows;     /* new values will be borrowed, not copied */
    bool named;       /* the caller names the method, which is taken wherever it is possible */
    bool ranks;       /* of several ranks: the rows of one of them, or the whole matrix */
    bool whole;       /* with ranks: the whole matrix, whose facts decide for all ranks */
    bool far_rows;    /* of x, with an element of each vector, are 2^32 bytes or more apart */

    /* Counted on the device by the preparation that first needs them; 0 before. */
    int64_t longest;       /* row, in entries */
    int64_t short_rows;    /* so short that the end of a row takes a warp longer than its entries */
    bool x_in_shared;      /* x fits in shared memory, and all copies of it have at most the bytes of the matrix */
    bool table_counted;    /* table_values is known */
    int table_values;      /* the distinct values, if a table is requested and can hold them */
    bool unsorted;         /* the columns of a row do not ascend strictly */
    bool many_slots;       /* the count of slots has ended early */
    int64_t slices;        /* of SLICE_ROWS rows */
    int64_t slots;         /* the diagonals on which a slice has entries, added over the slices */
    bool many_patterns;    /* slices do not share lists of slots */
    int sampled, same;     /* rows of a sample, and those of them with the columns of the row before */
    int64_t groups;        /* of neighbouring rows with the same columns */
    double memory_speed;   /* bytes that memory delivers to a multiprocessor in a clock of it; 0: unknown */
    bool uneven;           /* rows that are filled up to the length of their neighbours exceed the limit */
    bool plain_slices;     /* of padded: there are slices that are read from the CSR arrays */
    double padded_bytes;   /* that a product of padded reads of the matrix */
    double abreast_places; /* of abreast: entries, if all rows of a warp were as long as the longest of them */
    double mean_span;      /* from the first column of a row to the last one */
    double panel_columns;  /* of panels, for each of their entries */
    int64_t longest_panel; /* in columns */
    double x_bytes;        /* of x that the caches load for an entry, by a sample */
    int block_columns;     /* of a block of the method blocked */
    int tile_entries;      /* of a tile there */
};

/* The largest number of places per nonzero for slices: the count of slots ends where it is exceeded. */
int slices_most_places(const struct facts *f);

/* The bytes that a product of slices reads of the matrix. value: the bytes of a place. */
double slices_bytes(const struct facts *f, double value);

/* The least number of equal rows in a sample for groups: with less, groups are not counted. */
int groups_least_same(const struct facts *f, int sampled);

/* Counts of the rows of a matrix. */
struct row_counts {
    unsigned long long longest; /* entries of a row */
    unsigned long long places;  /* of all rows, each as long as the longest of some neighbours */
    unsigned long long spans;   /* from the first column of a row to its last one, added */
};

/* The facts that follow from these. */
void facts_of_rows(struct facts *f, const struct row_counts *found);

/* Why a subwarp should not have a whole row, with at most so many bytes of a row of x at a time; NULL: it may. */
const char *rows_unfit(const struct facts *f, int block_bytes);

/* log2 of the lanes that abreast has for a row, and whether it takes the columns of x in several blocks. */
int abreast_lanes_log(const struct facts *f);
bool abreast_in_blocks(const struct facts *f);

/* The largest number of bytes for padded, as a multiple of those of tiles: the measurement of rows ends
 * where it is exceeded. */
double padded_most_bytes(const struct facts *f);

#endif
