/* Coordinate entries into CSR while they come, from several threads, without holding them twice.
 *
 * The cells of the matrix, row by row, are cut into buckets: ranges of rows, or of columns where the rows are few. Each
 * thread appends its entries to the bucket they belong to. When all are there each bucket is a stretch of the result
 * small enough for the cache: its entries are counted by row and moved to their places, and the memory they had goes
 * back meanwhile. So besides the result there is never much more than the entries that are still to be moved.
 *
 * The entries of one place must be added in the order of the file. It is kept by telling, at the end of each tile of
 * the text, how many entries went to each bucket (coo_tile_done).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COO_BUCKETS_H
#define COO_BUCKETS_H

#include <pthread.h>

#include "matrix_internal.h"

struct coo_block;
struct coo_slab;
struct coo_chunk;
struct coo_group;
struct coo_tiles;

/* Where one thread's next entry of a bucket goes: in the last of its blocks. Those of all buckets stay in the first
 * cache level. */
struct coo_slot {
    char *next, *end;
};

/* One thread's blocks of a bucket. */
struct coo_chain {
    struct coo_block *first, *last;
    int64_t closed; /* bytes of entries in the blocks before the last */
    int64_t told;   /* entries, at the end of the last tile */
};

/* One thread's entries. */
struct coo_writer {
    struct coo_slot *slot;
    struct coo_chain *chain;
};

/* How a place tells its bucket, and what is kept of it before the entry's value: a key of the row in the bucket and,
 * in its low bits, the column; so many bytes of it as there are bits for, 4 at least. */
struct coo_shape {
    int row_shift, col_bits, col_shift; /* bucket = ((row >> row_shift) << col_bits) + (col >> col_shift) */
    int key_col_bits, key_bytes;
};

struct coo_buckets {
    spmv_context *ctx;
    int64_t rows, cols, count;
    struct coo_shape shape;
    spmv_type type;
    bool pattern;
    size_t entry_size;
    bool large_pages; /* for entries */
    int64_t block_bytes;
    int writers;
    struct coo_writer *writer;
    pthread_mutex_t lock;  /* of all that follows up to tiles, but for a group's own */
    struct coo_slab *slab; /* the last, and so on to the first */
    int group_shift;       /* with large pages: group = bucket >> group_shift */
    int64_t groups;        /* 0: none */
    struct coo_group *group;
    int64_t taken, groups_moved; /* buckets on their way to the matrix or there; the first groups that are there */
    pthread_cond_t moved;
    struct coo_tiles *tiles, *last_tiles; /* in the order of the text */
};

/* The most memory that so many entries (mirrored ones too) from so many threads take until the matrix stands, the
 * matrix included, but for what rows_sort takes and for buckets with many more entries than others; INT64_MAX for
 * more. */
int64_t coo_buckets_bytes(int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t entries, int threads);

/* Buckets for about so many entries (mirrored ones too) from so many threads. coo_buckets_free in any case. */
spmv_status coo_buckets_begin(spmv_context *ctx, int64_t rows, int64_t cols, spmv_type type, bool pattern,
                              int64_t entries, int threads, struct coo_buckets *buckets);
void coo_buckets_free(struct coo_buckets *buckets);

/* The next n tiles of the text, numbered from 0, are about to be read. */
spmv_status coo_tiles_begin(struct coo_buckets *buckets, int n);

/* All entries of that tile have been appended by that thread, which takes tiles in ascending order. */
void coo_tile_done(struct coo_buckets *buckets, int thread, int tile);

/* Room in a bucket's slot without any; false without memory. */
bool coo_slot_grow(struct coo_buckets *buckets, struct coo_writer *writer, int64_t bucket);

/* Appends an entry that lies inside the matrix; size: of its value; shape: the buckets', in the caller's own memory,
 * so that it need not be read again after each entry. False without memory. */
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
    /* what is behind the key is written later; each block has room for it */
    slot->next = to + shape->key_bytes + size;
    memcpy(to, &key, sizeof key);
    if (size > 0)
        memcpy(to + shape->key_bytes, value, size);
    return true;
}

/* The matrix of all entries, columns sorted in each row, entries at the same place added from the first to the last in
 * the order of the text (a pattern's become one). The entries are gone afterwards. *repeats (all, lower): as rows_sort
 * counts them; max_bytes: what it and the matrix may take. Errors: SPMV_ERROR_MEMORY, SPMV_ERROR_LIMIT; *matrix is then
 * NULL. */
struct repeats;
spmv_status coo_buckets_matrix(struct coo_buckets *buckets, int64_t max_bytes, spmv_matrix **matrix,
                               struct repeats *repeats);

#endif
