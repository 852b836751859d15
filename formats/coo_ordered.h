/* Coordinate entries that come by rows, columns ascending in each row, into CSR while they come.
 *
 * Many files are written so. Then where an entry goes is known as soon as it is known how many come before it: a
 * thread parses a tile of the text into a small memory of its own, and copies it to its place once the tiles before it
 * have been counted, which the cache still holds. No entry is kept twice, nothing is sorted.
 *
 * Whether it is so shows as the entries come. Where one is out of order, or at the place of another, all that came
 * before goes to buckets (coo_buckets.h) and this is over; most files that are ordered otherwise show it in their first
 * tile.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COO_ORDERED_H
#define COO_ORDERED_H

#include <pthread.h>

#include "coo_buckets.h"

/* A tile's entries, in runs of one row: run r begins with entry first[r]. */
struct ordered_tile {
    struct ordered_tile *next;
    int number; /* in its round */
    int64_t capacity, n, runs;
    int64_t *row;
    char *val;
    int32_t *col;
    uint32_t *first;
    bool ordered;
    void *memory;
};

/* A thread's tiles: those that wait for their place, in ascending order, and memory for others. */
struct ordered_owner {
    struct ordered_tile *waiting, *last, *unused;
};

/* What is known of a tile of the round. */
struct ordered_place {
    bool counted, good; /* good: parsed without an error, its entries in order */
    int64_t n, first_row, last_row;
    int32_t first_col, last_col;
    int64_t before, row_before; /* entries before it, and their last row; -1: none */
};

struct coo_ordered {
    spmv_context *ctx;
    spmv_matrix *matrix; /* with room for all entries */
    size_t value_size;
    int threads;
    struct ordered_owner *owner; /* of each thread */
    struct ordered_place *place; /* of each tile of the round */
    int tiles, known;            /* in the round; those whose place is known */
    int64_t entries, last_row;   /* in all tiles whose place is known */
    int32_t last_col;
    bool broken;
    pthread_mutex_t lock;
};

/* A matrix of nnz entries, from so many threads, in rounds of most tiles. coo_ordered_free in any case. */
spmv_status coo_ordered_begin(spmv_context *ctx, int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t nnz,
                              int threads, int most, struct coo_ordered *o);
void coo_ordered_free(struct coo_ordered *o);

/* The next n tiles of the text, numbered from 0, are about to be read. */
void coo_ordered_round(struct coo_ordered *o, int n);

/* Memory for the entries of that tile, of which there are no more than capacity; NULL without memory. */
struct ordered_tile *coo_ordered_take(struct coo_ordered *o, int thread, int number, int64_t capacity);

/* The entries of the tile are there. good false: there was an error among them. Each thread takes tiles in ascending
 * order. False when entries were out of order: no thread needs to take more. */
bool coo_ordered_done(struct coo_ordered *o, int thread, struct ordered_tile *tile, bool good);

/* The round is over, and all threads are done: the thread's tiles whose place is known go there. */
void coo_ordered_flush(struct coo_ordered *o, int thread);

/* All tiles have come, in order, and have so many entries as was said: the matrix. */
spmv_matrix *coo_ordered_matrix(struct coo_ordered *o);

/* Entries were out of order, and all threads are done: all entries so far go to the buckets, which are empty. */
spmv_status coo_ordered_to_buckets(struct coo_ordered *o, struct coo_buckets *buckets);

/* Appends an entry that lies inside the matrix; size: of its value. */
static inline void ordered_append(struct ordered_tile *tile, int64_t row, int64_t col, const void *value, size_t size)
{
    const int64_t k = tile->n;
    if (tile->runs == 0 || row != tile->row[tile->runs - 1]) {
        tile->ordered &= tile->runs == 0 || row > tile->row[tile->runs - 1];
        tile->first[tile->runs] = (uint32_t)k;
        tile->row[tile->runs++] = row;
    } else {
        tile->ordered &= col > tile->col[k - 1];
    }
    tile->col[k] = (int32_t)col;
    copy_value(tile->val, k, value, 0, size);
    tile->n = k + 1;
}

#endif
