/* Converts coordinate entries to CSR while they are read, if they come by rows with ascending
 * columns in each row.
 *
 * Many files have this order. The position of an entry is then known as soon as the entries before
 * it are counted. A thread parses a tile of the text into a small buffer of its own. It copies the
 * buffer to its place when the tiles before it have been counted; the buffer is then still in the
 * cache. No entry is stored twice, and nothing is sorted.
 *
 * The order is checked as the entries come. At the first entry that is out of order or repeats a
 * position, all entries so far go to buckets (coo_buckets.h), and this method ends. Most files in
 * another order show it in their first tile.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COO_ORDERED_H
#define COO_ORDERED_H

#include <pthread.h>

#include "formats/coo/coo_buckets.h"

/* The entries of a tile, in sequences of one row each: sequence r begins with entry first[r]. */
struct ordered_tile {
    struct ordered_tile *next;
    int number; /* in its round */
    int64_t capacity, n, sequences;
    int64_t *row;
    char *val;
    int32_t *col;
    uint32_t *first;
    bool ordered;
    void *memory;
};

/* The tiles of a thread: those that wait for their place, in ascending order, and buffers to
 * reuse. */
struct ordered_owner {
    struct ordered_tile *waiting, *last, *unused;
};

/* State of a tile of the round. */
struct ordered_place {
    bool counted, good; /* good: parsed without an error, and its entries are in order */
    int64_t n, first_row, last_row;
    int32_t first_col, last_col;
    /* number of entries before it, and the row of the last of them; -1: none */
    int64_t before, row_before;
};

struct coo_ordered {
    spmv_context *ctx;
    spmv_matrix *matrix; /* with room for all entries */
    size_t value_size;
    int threads;
    struct ordered_owner *owner; /* of each thread */
    struct ordered_place *place; /* of each tile of the round */
    int tiles, known;            /* tiles of the round; the first known of them have their place */
    int64_t entries, last_row;   /* in the tiles whose place is known */
    int32_t last_col;
    bool broken;
    pthread_mutex_t lock;
};

/* Prepares a matrix of nnz entries for this number of threads, in rounds of at most most tiles.
 * Call coo_ordered_free also after an error. */
spmv_status coo_ordered_begin(spmv_context *ctx, int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t nnz,
                              int threads, int most, struct coo_ordered *o);
void coo_ordered_free(struct coo_ordered *o);

/* Begins a round: the next n tiles of the text, numbered from 0. */
void coo_ordered_round(struct coo_ordered *o, int n);

/* Memory for the entries of a tile, at most capacity of them; NULL if out of memory. */
struct ordered_tile *coo_ordered_take(struct coo_ordered *o, int thread, int number, int64_t capacity);

/* Reports that the entries of a tile are complete. good: no error among them. Each thread takes
 * tiles in ascending order. Returns false if entries were out of order: threads then need not take
 * more tiles. */
bool coo_ordered_done(struct coo_ordered *o, int thread, struct ordered_tile *tile, bool good);

/* After the round, when all threads are done: copies the thread's tiles whose place is known. */
void coo_ordered_flush(struct coo_ordered *o, int thread);

/* The matrix, when all tiles came in order and have the declared number of entries. */
spmv_matrix *coo_ordered_matrix(struct coo_ordered *o);

/* After entries out of order, when all threads are done: moves all entries so far to the buckets,
 * which are empty. */
spmv_status coo_ordered_to_buckets(struct coo_ordered *o, struct coo_buckets *buckets);

/* Appends an entry that lies inside the matrix; size: bytes of its value. */
static inline void ordered_append(struct ordered_tile *tile, int64_t row, int64_t col, const void *value, size_t size)
{
    const int64_t k = tile->n;
    if (tile->sequences == 0 || row != tile->row[tile->sequences - 1]) {
        tile->ordered &= tile->sequences == 0 || row > tile->row[tile->sequences - 1];
        tile->first[tile->sequences] = (uint32_t)k;
        tile->row[tile->sequences++] = row;
    } else {
        tile->ordered &= col > tile->col[k - 1];
    }
    tile->col[k] = (int32_t)col;
    copy_value(tile->val, k, value, 0, size);
    tile->n = k + 1;
}

#endif
