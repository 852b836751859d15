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

#include "matrix_internal.h"

/* The place of an entry in its bucket, before its value: row within the bucket and column, in one word where they fit
 * (the column in the low key_bits), else in two. */
struct coo_place {
    uint32_t row, col;
};

struct coo_block;
struct coo_slab;
struct coo_tiles;

/* Where one thread's entries of a bucket go. */
struct coo_slot {
    char *next, *end; /* in the last block */
    struct coo_block *first, *last;
    int64_t closed; /* bytes of entries in the blocks before the last */
    int64_t told;   /* entries, at the end of the last tile */
};

/* One thread's entries. */
struct coo_writer {
    struct coo_slot *slot;
    struct coo_slab *slab;
    int64_t slab_blocks, slab_used; /* of the last slab */
};

struct coo_buckets {
    spmv_context *ctx;
    int64_t rows, cols, count;
    int row_shift, col_bits, col_shift; /* bucket = ((row >> row_shift) << col_bits) + (col >> col_shift) */
    int key_bits;                       /* 0: a place takes two words */
    spmv_type type;
    bool pattern;
    size_t entry_size;
    bool large_pages; /* for entries */
    int writers;
    struct coo_writer *writer;
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

/* Room in a slot without any; false without memory. */
bool coo_slot_grow(const struct coo_buckets *buckets, struct coo_writer *writer, struct coo_slot *slot);

/* Appends an entry that lies inside the matrix; size: of its value. False without memory. */
static inline bool coo_append(const struct coo_buckets *buckets, struct coo_writer *writer, int64_t row, int64_t col,
                              const void *value, size_t size)
{
    const int64_t bucket = ((row >> buckets->row_shift) << buckets->col_bits) + (col >> buckets->col_shift);
    struct coo_slot *const slot = &writer->slot[bucket];
    if (slot->next == slot->end && !coo_slot_grow(buckets, writer, slot))
        return false;
    char *to = slot->next;
    const struct coo_place place = {(uint32_t)(row & (((int64_t)1 << buckets->row_shift) - 1)), (uint32_t)col};
    if (buckets->key_bits > 0) {
        const uint32_t key = (uint32_t)((uint64_t)place.row << buckets->key_bits | place.col);
        memcpy(to, &key, sizeof key);
        to += sizeof key;
    } else {
        memcpy(to, &place, sizeof place);
        to += sizeof place;
    }
    if (size > 0)
        memcpy(to, value, size);
    slot->next = to + size;
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
