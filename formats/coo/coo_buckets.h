/* Converts coordinate entries to CSR while several threads read them, without storing them twice.
 *
 * The cells of the matrix, row by row, are divided into buckets: ranges of rows, or ranges of
 * columns if there are few rows. Each thread appends its entries to their buckets. When all have
 * come, each bucket is a part of the result that fits in the cache: its entries are counted by row
 * and moved to their places, and their memory is released meanwhile. So the memory in use is little
 * more than the result and the entries not yet moved.
 *
 * Entries at the same position must be added in the order of the file. For this, the number of
 * entries per bucket is recorded at the end of each tile of the text (coo_tile_done).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COO_BUCKETS_H
#define COO_BUCKETS_H

#include <pthread.h>

#include "formats/matrix_internal.h"

struct coo_block;
struct coo_slab;
struct coo_page;
struct coo_pool;
struct coo_tiles;

/* Where one thread stores its next entry of a bucket: in the last of its blocks. The slots of all
 * buckets stay in the first-level cache. */
struct coo_slot {
    char *next, *end;
};

/* The blocks of one thread for a bucket. */
struct coo_chain {
    struct coo_block *first, *last;
    int64_t closed; /* bytes of entries in the blocks before the last */
    int64_t told;   /* number of entries at the end of the last tile */
};

/* The entries of one thread. */
struct coo_writer {
    struct coo_slot *slot;
    struct coo_chain *chain;
};

/* How a position gives its bucket, and what is stored before the entry's value: a key with the row
 * in the bucket and, in its low bits, the column. It takes as many bytes as its bits need, at least
 * 4. */
struct coo_shape {
    /* bucket = ((row >> row_shift) << col_bits) + (col >> col_shift) */
    int row_shift, col_bits, col_shift;
    int key_col_bits, key_bytes;
};

struct coo_buckets {
    spmv_context *ctx;
    int64_t rows, cols, count;
    int64_t first_row; /* its number in the whole matrix; 0 unless these are some of its rows */
    struct coo_shape shape;
    spmv_type type;
    bool pattern;
    size_t entry_size;
    bool large_pages; /* for entries */
    int64_t block_bytes;
    int writers, team; /* team: threads that make the matrix */
    struct coo_writer *writer;
    pthread_mutex_t lock;  /* protects the members up to tiles; a pool has a lock of its own */
    struct coo_slab *slab; /* the last slab; the others are linked from it */
    int pool_shift;        /* with large pages: pool = bucket >> pool_shift */
    int64_t pools;         /* 0: small pages */
    struct coo_pool *pool;
    /* buckets that threads have taken to move them to the matrix; pools, from the first on, that
     * are moved completely */
    int64_t taken, pools_moved;
    pthread_cond_t moved;
    struct coo_tiles *tiles, *last_tiles; /* in the order of the text */
};

/* The largest amount of memory, matrix included, needed for this number of entries (mirrored ones
 * included) and threads; INT64_MAX on overflow. Not included: the memory of rows_sort, and that for
 * buckets with many more entries than the others. */
int64_t coo_buckets_bytes(int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t entries, int threads);

/* Prepares buckets for about this number of entries (mirrored ones included) and threads. Call
 * coo_buckets_free also after an error. */
spmv_status coo_buckets_begin(spmv_context *ctx, int64_t rows, int64_t cols, spmv_type type, bool pattern,
                              int64_t entries, int threads, struct coo_buckets *buckets);
void coo_buckets_free(struct coo_buckets *buckets);

/* Begins the next n tiles of the text, numbered from 0. */
spmv_status coo_tiles_begin(struct coo_buckets *buckets, int n);

/* Reports that this thread has appended all entries of the tile. A thread takes tiles in ascending
 * order. */
void coo_tile_done(struct coo_buckets *buckets, int thread, int tile);

/* Gives a full slot of a bucket a new block; false if out of memory. */
bool coo_slot_grow(struct coo_buckets *buckets, struct coo_writer *writer, int64_t bucket);

/* Appends an entry that lies inside the matrix. size: bytes of its value. shape: a copy of the
 * buckets' shape in the caller's own memory, so that it need not be read again after each entry.
 * False if out of memory. */
static inline bool coo_append(struct coo_buckets *buckets, const struct coo_shape *shape, struct coo_writer *writer,
                              int64_t row, int64_t col, const void *value, size_t size)
{
    const int64_t bucket = ((row >> shape->row_shift) << shape->col_bits) + (col >> shape->col_shift);
    struct coo_slot *const slot = &writer->slot[bucket];
    if (slot->next == slot->end && !coo_slot_grow(buckets, writer, bucket))
        return false;
    char *const to = slot->next;
    const uint64_t row_in_bucket = (uint64_t)row & (((uint64_t)1 << shape->row_shift) - 1);
    const uint64_t key = row_in_bucket << shape->key_col_bits | (uint64_t)col;
    if (shape->key_bytes == 4) {
        const uint32_t word = (uint32_t)key;
        slot->next = to + 4 + size;
        memcpy(to, &word, sizeof word);
        if (size > 0)
            memcpy(to + 4, value, size);
        return true;
    }
    /* The bytes after the key are overwritten later; each block has room for them. */
    slot->next = to + shape->key_bytes + size;
    memcpy(to, &key, sizeof key);
    if (size > 0)
        memcpy(to + shape->key_bytes, value, size);
    return true;
}

/* ---------------------------------------------------------------- several ranks
 *
 * Each rank reads a part of the text into buckets of the whole matrix (coo_buckets_begin_ranks),
 * the same ones on all ranks. Then the entries of each bucket go to one rank, which has buckets of its
 * own rows (coo_buckets_begin_rows) with one writer for each rank that sends. */

/* As coo_buckets_begin, with enough buckets for this number of ranks. entries: of the whole matrix.
 * The memory of entries is released as coo_drain_take passes them on. */
spmv_status coo_buckets_begin_ranks(spmv_context *ctx, int64_t rows, int64_t cols, spmv_type type, bool pattern,
                                    int64_t entries, int threads, int ranks, struct coo_buckets *buckets);

/* The largest amount of memory for this number of entries on each of the ranks, as
 * coo_buckets_bytes. rows, entries: of the whole matrix. */
int64_t coo_buckets_bytes_ranks(int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t entries, int threads,
                                int ranks);

/* Buckets for the rows of whole's buckets first to first + count - 1. Their entries come from
 * coo_put. */
spmv_status coo_buckets_begin_rows(const struct coo_buckets *whole, int64_t first, int64_t count, int writers, int team,
                                   struct coo_buckets *buckets);

/* The first row of a bucket, in the whole matrix. A bucket of columns has one row; only the first
 * of a row may begin the rows of a rank. */
int64_t coo_bucket_row(const struct coo_buckets *buckets, int64_t bucket);

/* The number of entries of a bucket. */
int64_t coo_bucket_entries(const struct coo_buckets *buckets, int64_t bucket);

/* Takes the entries of some buckets, one bucket after the other, each in the order of the text. */
struct coo_drain {
    const struct coo_buckets *buckets;
    int64_t bucket, end;
    const struct coo_tiles *tiles; /* of the next entries */
    int tile;
    int64_t left;              /* entries of that tile in the bucket */
    struct coo_cursor *cursor; /* of each writer */
};
spmv_status coo_drain_begin(const struct coo_buckets *buckets, int64_t first, int64_t end, struct coo_drain *drain);
void coo_drain_end(struct coo_drain *drain);

/* Copies up to n entries. Returns their number; less than n at the end. */
int64_t coo_drain_take(struct coo_drain *drain, char *to, int64_t n);

/* Appends n entries as from coo_drain_take to a bucket. False if out of memory. */
bool coo_put(struct coo_buckets *buckets, int writer, int64_t bucket, const char *entries, int64_t n);

/* Sets from which writer the entries of a tile came, and how many to each bucket, in place of
 * coo_tile_done. */
void coo_tile_set(struct coo_buckets *buckets, int tile, int writer, const uint32_t *counts);

/* ---------------------------------------------------------------- the matrix */

/* Makes the matrix of all entries. Columns are sorted in each row. Entries at the same position are
 * added in the order of the text; in a pattern they become one. The entries are released. *repeats
 * (all, lower): as rows_sort counts them. max_bytes: limit on the memory of this step, matrix
 * included. Errors: SPMV_ERROR_MEMORY, SPMV_ERROR_LIMIT; *matrix is then NULL. */
struct repeats;
spmv_status coo_buckets_matrix(struct coo_buckets *buckets, int64_t max_bytes, spmv_matrix **matrix,
                               struct repeats *repeats);

#endif
