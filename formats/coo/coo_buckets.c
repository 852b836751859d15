/* Entries in buckets of cells, and each bucket moved to its part of a CSR matrix: the first pass of
 * a radix sort from the highest digit (D. E. Knuth, "The Art of Computer Programming" vol. 3,
 * section 5.2.5), done while the entries come, then a counting sort by row for each bucket.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* madvise is not part of POSIX */
#define _DEFAULT_SOURCE
#include "formats/coo/coo_buckets.h"

#include <omp.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "formats/coo/rows.h"

/* Prefetches entries that are read soon. An address after the end is allowed. */
#if defined(__GNUC__)
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) ((void)(p))
#endif
enum { AHEAD = 1024 };

/* With few entries, a block is some small pages, which are released when its entries have been
 * moved. */
enum { PAGE = 4096, BLOCK = 16 * PAGE, SLAB_BLOCKS = 64 };
/* With many entries, blocks lie in large pages, which cost a fraction of small ones to fill. A
 * large page is only released as a whole: if parts of it were released, the system would keep the
 * page until memory is short, and the matrix would need other pages. So a large page holds blocks
 * of one pool, of buckets that are moved soon after one another. Each pool has one partly used
 * page, so there are few pools, and a slot should have several blocks. A slab is so large that
 * malloc takes it from the system with the alignment of large pages. */
enum { LARGE_PAGE = 2 << 20, LARGE_BLOCK = 2 * PAGE, SLAB_PAGES = 32 };
enum { SLOT_WORTH_IT = 4 * LARGE_BLOCK, LARGE_WORTH_IT = 32 * LARGE_PAGE, POOL_WORTH_IT = 8 << 20, POOLS_MAX = 32 };
/* Enough buckets that the part of the matrix for each (12 bytes per entry in f64) fits in a cache,
 * up to about 10^8 entries; few enough that the write positions of a thread fit in one too. */
enum { BUCKET_ENTRIES = 8192, BUCKET_ROWS = 65536, BUCKETS_MAX = 512 };
/* A rank gets whole buckets. With this many, its share differs by some percent from that of
 * others. */
enum { RANK_BUCKETS = 16 };

/* From MATRIX_LARGE bytes on, an array of a matrix is in large pages (csr.c). BESIDE: memory of a
 * reading thread besides its entries. */
enum { MATRIX_LARGE = 8 << 20, BESIDE = 1 << 20 };

struct coo_block {
    struct coo_block *next;
    int64_t bytes; /* of its entries; set when the next block begins */
};

/* A large page of a pool. */
struct coo_page {
    struct coo_page *next;
    char *memory;
};

/* Memory for blocks, or for large pages. Only its pages are released early, not the slab. */
struct coo_slab {
    struct coo_slab *next;
    char *memory, *aligned; /* as allocated; the first block or large page in it */
    int64_t size, used;     /* number of blocks or large pages */
    struct coo_page page[]; /* one for each large page */
};

/* A pool of large pages, which the entries of neighbouring buckets share. */
struct coo_pool {
    pthread_mutex_t lock;
    char *next, *end; /* in the last page */
    struct coo_page *pages;
    int64_t left; /* buckets not yet moved to the matrix */
    bool given_back;
};

/* Some tiles: the thread that read each, and how many of its entries went to each bucket. */
struct coo_tiles {
    struct coo_tiles *next;
    int n;
    int *thread;
    uint32_t *counts; /* n x buckets */
};

static int bits_of(int64_t n)
{
    int bits = 0;
    for (; n > 0; n >>= 1)
        bits++;
    return bits;
}

static void choose_buckets(struct coo_buckets *b, int64_t entries, int ranks)
{
    const int64_t most = max_i64(BUCKETS_MAX, (int64_t)ranks * RANK_BUCKETS);
    const int64_t wanted = min_i64(most, max_i64(1, max_i64(entries / BUCKET_ENTRIES, b->rows / BUCKET_ROWS)));
    const int bits = bits_of(max_i64(b->cols - 1, 0));
    b->shape.col_shift = 31; /* columns are below 2^31 */
    /* The row in the bucket has at most 32 bits. */
    while (b->rows > 0 && ((b->rows - 1) >> b->shape.row_shift) + 1 > wanted && b->shape.row_shift < 32)
        b->shape.row_shift++;
    b->count = b->rows > 0 ? ((b->rows - 1) >> b->shape.row_shift) + 1 : 1;
    if (b->shape.row_shift > 0)
        return;
    while (b->shape.col_bits < bits && b->count * 2 <= wanted) {
        b->shape.col_bits++;
        b->count *= 2;
    }
    if (b->shape.col_bits > 0)
        b->shape.col_shift = bits - b->shape.col_bits;
}

/* Bytes of a key with this number of bits. On little-endian machines the low bytes of a word come
 * first, so the high ones can be left out. */
static int key_bytes(int bits)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return bits <= 32 ? 4 : (bits + 7) / 8;
#else
    return bits <= 32 ? 4 : 8;
#endif
}

/* ranks: 1, or more for buckets of several ranks. Those are in small pages, because they are
 * released one by one. */
static struct coo_buckets buckets_for(int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t entries,
                                      int threads, int ranks)
{
    struct coo_buckets b = {.rows = rows, .cols = cols, .type = type, .pattern = pattern};
    choose_buckets(&b, entries, ranks);
    const int bits = cols > 2 ? bits_of(cols - 1) : 1;
    b.shape.key_col_bits = bits;
    b.shape.key_bytes = key_bytes(b.shape.row_shift + bits);
    b.entry_size = (size_t)b.shape.key_bytes + value_size(type, pattern);
    /* entries comes from a file's header and may be any number: avoid overflow. */
    const int64_t of_a_slot = entries / (b.count * threads), size = (int64_t)b.entry_size;
    b.large_pages = ranks == 1 && of_a_slot >= SLOT_WORTH_IT / size && entries >= LARGE_WORTH_IT / size;
    b.block_bytes = b.large_pages ? LARGE_BLOCK : BLOCK;
    if (b.large_pages) {
        const int64_t pools = min_i64(POOLS_MAX, entries / (POOL_WORTH_IT / size));
        while (((b.count - 1) >> b.pool_shift) + 1 > pools)
            b.pool_shift++;
        b.pools = ((b.count - 1) >> b.pool_shift) + 1;
    }
    return b;
}

/* Bytes of the matrix. Arrays in large pages take more: pages are touched before they are needed at
 * the two positions where threads write. */
static int64_t bytes_of_matrix(const struct coo_buckets *b, int64_t nnz)
{
    const int64_t of_rows = b->rows * (int64_t)sizeof(int64_t), of_columns = nnz * (int64_t)sizeof(int32_t);
    const int64_t of_values = nnz * (int64_t)value_size(b->type, b->pattern);
    const int large = (of_rows >= MATRIX_LARGE) + (of_columns >= MATRIX_LARGE) + (of_values >= MATRIX_LARGE);
    return of_rows + of_columns + of_values + (int64_t)sizeof(int64_t) + 2 * (int64_t)large * LARGE_PAGE;
}

/* Entries are released as the matrix grows, so the larger of both counts. */
int64_t coo_buckets_bytes(int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t entries, int threads)
{
    return coo_buckets_bytes_ranks(rows, cols, type, pattern, entries, threads, 1);
}

int64_t coo_buckets_bytes_ranks(int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t entries, int threads,
                                int ranks)
{
    enum { OF_AN_ENTRY = 64 }; /* upper bound of the bytes counted per entry below */
    struct coo_buckets b = buckets_for(rows, cols, type, pattern, entries, threads, ranks);
    int64_t bytes = 0, of_rows = 0;
    if (!multiply_fits(entries, OF_AN_ENTRY, &bytes) || !multiply_fits(rows, 16, &of_rows) ||
        bytes > INT64_MAX / 2 - of_rows / 2)
        return INT64_MAX;
    b.rows = ceil_divide(rows, ranks);
    entries = ceil_divide(entries, ranks);
    bytes = entries * (int64_t)b.entry_size;
    /* Header and unused end take less than 1/512 of a BLOCK, and less than 1/128 of a LARGE_BLOCK,
     * which is smaller. */
    bytes += bytes / (b.large_pages ? 128 : 512);
    bytes += min_i64(entries, b.count * threads) * (b.large_pages ? b.block_bytes : PAGE);
    /* partly filled pages, and the pools being moved to the matrix */
    if (b.large_pages)
        bytes += b.pools * LARGE_PAGE + bytes / b.pools * min_i64(b.pools, 2);
    bytes = max_i64(bytes, bytes_of_matrix(&b, entries));
    /* besides: the text, and pages of the matrix that are touched before entries are released */
    return bytes >= MATRIX_LARGE ? bytes + (int64_t)threads * BESIDE : bytes;
}

/* Allocates what a bucket has for each writer, and the pools. */
static spmv_status begin(spmv_context *ctx, int threads, struct coo_buckets *buckets)
{
    buckets->ctx = ctx;
    int64_t bytes = 0;
    pthread_mutex_init(&buckets->lock, NULL);
    pthread_cond_init(&buckets->moved, NULL);
    if (!multiply_fits(buckets->count, (int64_t)sizeof(struct coo_chain), &bytes))
        return context_fail(ctx, SPMV_ERROR_LIMIT, "sorting the entries of %lld rows overflows 64 bits",
                            (long long)buckets->rows);
    buckets->writer = calloc((size_t)threads, sizeof *buckets->writer);
    if (buckets->writer == NULL)
        return context_fail_memory(ctx, "sorting entries", threads * (int64_t)sizeof *buckets->writer);
    buckets->writers = threads;
    for (int t = 0; t < threads; t++) {
        buckets->writer[t].slot = calloc((size_t)buckets->count, sizeof(struct coo_slot));
        buckets->writer[t].chain = calloc((size_t)buckets->count, sizeof(struct coo_chain));
        if (buckets->writer[t].slot == NULL || buckets->writer[t].chain == NULL)
            return context_fail_memory(ctx, "sorting entries", bytes);
    }
    if (buckets->pools == 0)
        return SPMV_OK;
    buckets->pool = calloc((size_t)buckets->pools, sizeof *buckets->pool);
    if (buckets->pool == NULL)
        return context_fail_memory(ctx, "sorting entries", buckets->pools * (int64_t)sizeof *buckets->pool);
    for (int64_t g = 0; g < buckets->pools; g++) {
        const int64_t first = g << buckets->pool_shift;
        pthread_mutex_init(&buckets->pool[g].lock, NULL);
        buckets->pool[g].left = min_i64(buckets->count - first, (int64_t)1 << buckets->pool_shift);
    }
    return SPMV_OK;
}

spmv_status coo_buckets_begin_ranks(spmv_context *ctx, int64_t rows, int64_t cols, spmv_type type, bool pattern,
                                    int64_t entries, int threads, int ranks, struct coo_buckets *buckets)
{
    *buckets = buckets_for(rows, cols, type, pattern, entries, threads, ranks);
    buckets->team = threads;
    return begin(ctx, threads, buckets);
}

spmv_status coo_buckets_begin(spmv_context *ctx, int64_t rows, int64_t cols, spmv_type type, bool pattern,
                              int64_t entries, int threads, struct coo_buckets *buckets)
{
    return coo_buckets_begin_ranks(ctx, rows, cols, type, pattern, entries, threads, 1, buckets);
}

int64_t coo_bucket_row(const struct coo_buckets *buckets, int64_t bucket)
{
    const int64_t of_rows = bucket >> buckets->shape.col_bits;
    return of_rows > (buckets->rows >> buckets->shape.row_shift)
               ? buckets->rows
               : min_i64(buckets->rows, of_rows << buckets->shape.row_shift);
}

spmv_status coo_buckets_begin_rows(const struct coo_buckets *whole, int64_t first, int64_t count, int writers, int team,
                                   struct coo_buckets *buckets)
{
    const int64_t row = coo_bucket_row(whole, first);
    *buckets = (struct coo_buckets){.rows = coo_bucket_row(whole, first + count) - row,
                                    .cols = whole->cols,
                                    .count = max_i64(1, count),
                                    .first_row = row,
                                    .shape = whole->shape,
                                    .type = whole->type,
                                    .pattern = whole->pattern,
                                    .entry_size = whole->entry_size,
                                    .block_bytes = BLOCK,
                                    .team = team};
    return begin(whole->ctx, writers, buckets);
}

void coo_buckets_free(struct coo_buckets *buckets)
{
    if (buckets->ctx == NULL)
        return;
    for (int t = 0; t < buckets->writers; t++) {
        free(buckets->writer[t].slot);
        free(buckets->writer[t].chain);
    }
    while (buckets->slab != NULL) {
        struct coo_slab *const slab = buckets->slab;
        buckets->slab = slab->next;
        host_free(slab->memory);
        free(slab);
    }
    for (int64_t g = 0; buckets->pool != NULL && g < buckets->pools; g++)
        pthread_mutex_destroy(&buckets->pool[g].lock);
    free(buckets->pool);
    pthread_cond_destroy(&buckets->moved);
    pthread_mutex_destroy(&buckets->lock);
    free(buckets->writer);
    while (buckets->tiles != NULL) {
        struct coo_tiles *const tiles = buckets->tiles;
        buckets->tiles = tiles->next;
        free(tiles->thread);
        free(tiles->counts);
        free(tiles);
    }
    *buckets = (struct coo_buckets){.ctx = NULL};
}

/* ---------------------------------------------------------------- appending */

/* Adds a slab; the lock is held. */
static bool add_slab(struct coo_buckets *buckets)
{
    const int64_t each = buckets->large_pages ? LARGE_PAGE : BLOCK, page = buckets->large_pages ? LARGE_PAGE : PAGE;
    const int64_t size = buckets->large_pages    ? SLAB_PAGES
                         : buckets->slab == NULL ? buckets->writers
                                                 : min_i64(2 * buckets->slab->size, SLAB_BLOCKS);
    const int64_t pages = buckets->large_pages ? size : 0;
    struct coo_slab *const slab = malloc(sizeof *slab + (size_t)pages * sizeof slab->page[0]);
    void *memory = NULL;
    if (slab == NULL || host_alloc(NULL, size * each + page, "", &memory) != SPMV_OK) {
        free(slab);
        return false;
    }
    const int64_t aside = (int64_t)((uintptr_t)memory % (uintptr_t)page);
    slab->memory = memory;
    slab->aligned = slab->memory + (aside == 0 ? 0 : page - aside);
    slab->size = size;
    slab->used = 0;
    slab->next = buckets->slab;
    buckets->slab = slab;
#ifdef MADV_HUGEPAGE
    if (buckets->large_pages)
        madvise(slab->aligned, (size_t)(size * each), MADV_HUGEPAGE);
#endif
    return true;
}

/* The next free block or large page. */
static char *next_of_slab(struct coo_buckets *buckets, struct coo_page **page)
{
    char *memory = NULL;
    pthread_mutex_lock(&buckets->lock);
    if ((buckets->slab != NULL && buckets->slab->used < buckets->slab->size) || add_slab(buckets)) {
        struct coo_slab *const slab = buckets->slab;
        const int64_t number = slab->used++;
        memory = slab->aligned + number * (buckets->large_pages ? LARGE_PAGE : BLOCK);
        if (buckets->large_pages)
            *page = &slab->page[number];
    }
    pthread_mutex_unlock(&buckets->lock);
    return memory;
}

static char *next_block(struct coo_buckets *buckets, int64_t bucket)
{
    struct coo_page *page = NULL;
    if (!buckets->large_pages)
        return next_of_slab(buckets, &page);
    struct coo_pool *const pool = &buckets->pool[bucket >> buckets->pool_shift];
    char *block = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool->next == pool->end) {
        pool->next = pool->end = next_of_slab(buckets, &page);
        if (page != NULL) {
            pool->end += LARGE_PAGE;
            *page = (struct coo_page){pool->pages, pool->next};
            pool->pages = page;
        }
    }
    if (pool->next != pool->end) {
        block = pool->next;
        pool->next += LARGE_BLOCK;
    }
    pthread_mutex_unlock(&pool->lock);
    return block;
}

bool coo_slot_grow(struct coo_buckets *buckets, struct coo_writer *writer, int64_t bucket)
{
    struct coo_slot *const slot = &writer->slot[bucket];
    struct coo_chain *const chain = &writer->chain[bucket];
    struct coo_block *const block = (struct coo_block *)(void *)next_block(buckets, bucket);
    if (block == NULL)
        return false;
    *block = (struct coo_block){.next = NULL};
    if (chain->last != NULL) {
        chain->last->next = block;
        chain->last->bytes = slot->next - (char *)(chain->last + 1);
        chain->closed += chain->last->bytes;
    } else {
        chain->first = block;
    }
    chain->last = block;
    slot->next = (char *)(block + 1);
    /* Leave room for the whole word of the last key. */
    const int64_t room = buckets->block_bytes - (int64_t)sizeof *block - (int64_t)sizeof(uint64_t);
    slot->end = slot->next + room / (int64_t)buckets->entry_size * (int64_t)buckets->entry_size;
    return true;
}

static int64_t slot_entries(const struct coo_buckets *buckets, const struct coo_writer *writer, int64_t bucket)
{
    const struct coo_chain *const chain = &writer->chain[bucket];
    if (chain->last == NULL)
        return 0;
    return (chain->closed + (writer->slot[bucket].next - (const char *)(chain->last + 1))) /
           (int64_t)buckets->entry_size;
}

spmv_status coo_tiles_begin(struct coo_buckets *buckets, int n)
{
    struct coo_tiles *const tiles = calloc(1, sizeof *tiles);
    if (tiles != NULL) {
        tiles->n = n;
        tiles->thread = calloc((size_t)n, sizeof *tiles->thread);
        tiles->counts = calloc((size_t)n * (size_t)buckets->count, sizeof *tiles->counts);
    }
    if (tiles == NULL || tiles->thread == NULL || tiles->counts == NULL) {
        if (tiles != NULL) {
            free(tiles->thread);
            free(tiles->counts);
        }
        free(tiles);
        return context_fail_memory(buckets->ctx, "sorting entries",
                                   n * buckets->count * (int64_t)sizeof *tiles->counts);
    }
    if (buckets->last_tiles != NULL)
        buckets->last_tiles->next = tiles;
    else
        buckets->tiles = tiles;
    buckets->last_tiles = tiles;
    return SPMV_OK;
}

void coo_tile_done(struct coo_buckets *buckets, int thread, int tile)
{
    struct coo_tiles *const tiles = buckets->last_tiles;
    struct coo_writer *const writer = &buckets->writer[thread];
    tiles->thread[tile] = thread;
    for (int64_t b = 0; b < buckets->count; b++) {
        const int64_t entries = slot_entries(buckets, writer, b);
        tiles->counts[tile * buckets->count + b] = (uint32_t)(entries - writer->chain[b].told);
        writer->chain[b].told = entries;
    }
}

void coo_tile_set(struct coo_buckets *buckets, int tile, int writer, const uint32_t *counts)
{
    struct coo_tiles *const tiles = buckets->last_tiles;
    tiles->thread[tile] = writer;
    memcpy(tiles->counts + tile * buckets->count, counts, (size_t)buckets->count * sizeof *counts);
}

/* ---------------------------------------------------------------- the matrix */

/* Read position in a thread's entries of a bucket. */
struct coo_cursor {
    const struct coo_block *block;
    const char *next, *end;
};

static struct coo_cursor cursor_at(const struct coo_block *block, const struct coo_writer *writer, int64_t bucket)
{
    if (block == NULL)
        return (struct coo_cursor){NULL, NULL, NULL};
    const char *const first = (const char *)(block + 1);
    const bool last = block == writer->chain[bucket].last;
    return (struct coo_cursor){block, first, last ? writer->slot[bucket].next : first + block->bytes};
}

struct place {
    uint64_t row, col; /* row: in the bucket */
};

/* bytes: size of the key; a constant if it is 4. */
static inline struct place place_at(const char *p, int bytes, int col_bits)
{
    uint64_t key;
    if (bytes == 4) {
        uint32_t word;
        memcpy(&word, p, sizeof word);
        key = word;
    } else {
        memcpy(&key, p, sizeof key);
        key &= UINT64_MAX >> (64 - 8 * bytes);
    }
    return (struct place){key >> col_bits, key & (((uint64_t)1 << col_bits) - 1)};
}

static inline void count_places(const char *p, const char *end, int64_t entry_size, int bytes, int col_bits,
                                int64_t *cell)
{
    for (; p < end; p += entry_size) {
        PREFETCH(p + AHEAD);
        cell[place_at(p, bytes, col_bits).row]++;
    }
}

/* Adds to cell[row] the number of the slot's entries in each row of the bucket. */
static void count_slot(const struct coo_buckets *buckets, const struct coo_writer *writer, int64_t bucket,
                       int64_t *cell)
{
    const struct coo_shape *const shape = &buckets->shape;
    const int64_t entry_size = (int64_t)buckets->entry_size;
    for (const struct coo_block *block = writer->chain[bucket].first; block != NULL; block = block->next) {
        const struct coo_cursor c = cursor_at(block, writer, bucket);
        if (shape->key_bytes == 4)
            count_places(c.next, c.end, entry_size, 4, shape->key_col_bits, cell);
        else
            count_places(c.next, c.end, entry_size, shape->key_bytes, shape->key_col_bits, cell);
    }
}

static inline void move_entries(const char *p, const char *end, int bytes, int col_bits, int64_t *cell, int32_t *col,
                                char *val, size_t size)
{
    for (; p < end; p += (size_t)bytes + size) {
        const struct place place = place_at(p, bytes, col_bits);
        const int64_t at = cell[place.row]++;
        col[at] = (int32_t)place.col;
        copy_value(val, at, p + bytes, 0, size);
    }
}

/* Releases the pages of a block. If that fails, they stay until coo_buckets_free. */
static void release_block(const struct coo_buckets *buckets, const struct coo_block *block)
{
    if (block != NULL && !buckets->large_pages)
        madvise((void *)(uintptr_t)block, BLOCK, MADV_DONTNEED);
}

/* The next bucket to move, or count if there is none. Waits until at most one pool before the
 * bucket's pool remains, so that a delayed thread holds back at most that much memory. */
static int64_t take_bucket(struct coo_buckets *buckets)
{
    pthread_mutex_lock(&buckets->lock);
    const int64_t b = min_i64(buckets->taken, buckets->count);
    buckets->taken = b + 1;
    while (buckets->large_pages && b < buckets->count && b >> buckets->pool_shift > buckets->pools_moved + 1)
        pthread_cond_wait(&buckets->moved, &buckets->lock);
    pthread_mutex_unlock(&buckets->lock);
    return b;
}

/* Marks a bucket as moved. With the last bucket of a pool, the pool's pages are released. */
static void release_bucket(struct coo_buckets *buckets, int64_t b)
{
    if (!buckets->large_pages)
        return;
    struct coo_pool *const pool = &buckets->pool[b >> buckets->pool_shift];
    pthread_mutex_lock(&buckets->lock);
    const bool last = --pool->left == 0;
    pthread_mutex_unlock(&buckets->lock);
    if (!last)
        return;
    for (const struct coo_page *page = pool->pages; page != NULL; page = page->next)
        madvise(page->memory, LARGE_PAGE, MADV_DONTNEED);
    pthread_mutex_lock(&buckets->lock);
    pool->given_back = true;
    while (buckets->pools_moved < buckets->pools && buckets->pool[buckets->pools_moved].given_back)
        buckets->pools_moved++;
    pthread_cond_broadcast(&buckets->moved);
    pthread_mutex_unlock(&buckets->lock);
}

/* Moves the next n entries of the cursor and releases the blocks that it leaves. cell[row]: the
 * next position of the row. */
static void move_some(const struct coo_buckets *buckets, const struct coo_writer *writer, int64_t bucket,
                      struct coo_cursor *from, int64_t n, int64_t *cell, spmv_matrix *m)
{
    const struct coo_shape *const shape = &buckets->shape;
    const int64_t entry_size = (int64_t)buckets->entry_size;
    while (n > 0) {
        if (from->next == from->end) {
            const struct coo_block *const done = from->block;
            *from = cursor_at(done->next, writer, bucket);
            release_block(buckets, done);
        }
        const int64_t count = min_i64(n, (from->end - from->next) / entry_size);
        const char *const end = from->next + count * entry_size;
        const size_t size = value_size(m->type, m->pattern);
        if (shape->key_bytes == 4) {
            SIZED(size, move_entries(from->next, end, 4, shape->key_col_bits, cell, m->col, m->val, SIZE));
        } else {
            SIZED(size,
                  move_entries(from->next, end, shape->key_bytes, shape->key_col_bits, cell, m->col, m->val, SIZE));
        }
        from->next = end;
        n -= count;
    }
}

static void move_in_order(const struct coo_buckets *buckets, int64_t b, struct coo_cursor *from, int64_t *cell,
                          spmv_matrix *m)
{
    for (int t = 0; t < buckets->writers; t++)
        from[t] = cursor_at(buckets->writer[t].chain[b].first, &buckets->writer[t], b);
    if (buckets->writers == 1) {
        const int64_t n = slot_entries(buckets, &buckets->writer[0], b);
        move_some(buckets, &buckets->writer[0], b, &from[0], n, cell, m);
        return;
    }
    for (const struct coo_tiles *tiles = buckets->tiles; tiles != NULL; tiles = tiles->next)
        for (int tile = 0; tile < tiles->n; tile++) {
            const int64_t n = tiles->counts[tile * buckets->count + b];
            const int t = tiles->thread[tile];
            move_some(buckets, &buckets->writer[t], b, &from[t], n, cell, m);
        }
}

/* Moves the entries of the bucket to positions first <= k < end of col and val. Sets row_ptr[row]
 * to the first position of each row that begins in the bucket. If the bucket has whole rows, they
 * are sorted while they are in the cache. Returns false if rows remain to be sorted. */
static bool place_bucket(struct coo_buckets *buckets, int64_t b, int64_t first, int64_t end, struct coo_cursor *from,
                         spmv_matrix *m, struct repeats *repeats)
{
    const int64_t begin = (b >> buckets->shape.col_bits) << buckets->shape.row_shift;
    const int64_t rows = min_i64(buckets->rows - begin, (int64_t)1 << buckets->shape.row_shift);
    int64_t one = first; /* the position in a row that has several buckets */
    int64_t *cell = &one;
    if (buckets->shape.col_bits == 0) {
        cell = m->row_ptr + begin;
        memset(cell, 0, (size_t)rows * sizeof *cell);
        for (int t = 0; t < buckets->writers; t++)
            count_slot(buckets, &buckets->writer[t], b, cell);
        for (int64_t row = 0, place = first; row < rows; row++) {
            const int64_t count = cell[row];
            cell[row] = place;
            place += count;
        }
    } else if ((b & (((int64_t)1 << buckets->shape.col_bits) - 1)) == 0) {
        m->row_ptr[begin] = first;
    }
    move_in_order(buckets, b, from, cell, m);
    for (int t = 0; t < buckets->writers; t++) {
        release_block(buckets, from[t].block);
        buckets->writer[t].slot[b] = (struct coo_slot){.next = NULL};
        buckets->writer[t].chain[b] = (struct coo_chain){.first = NULL};
    }
    release_bucket(buckets, b);
    if (buckets->shape.col_bits > 0)
        return false;
    /* Each cell is now the end of its row, which is the beginning of the next. */
    memmove(cell + 1, cell, (size_t)(rows - 1) * sizeof *cell);
    cell[0] = first;
    return rows_sort_short(m, begin, rows, end, repeats);
}

/* first[b]: the position of the bucket's first entry. Returns the number of entries. */
static int64_t bucket_places(const struct coo_buckets *buckets, int64_t *first)
{
    int64_t place = 0;
    for (int64_t b = 0; b < buckets->count; b++) {
        first[b] = place;
        for (int t = 0; t < buckets->writers; t++)
            place += slot_entries(buckets, &buckets->writer[t], b);
    }
    return place;
}

/* A thread holds at_a_time buckets, or pools of width buckets. Returns how many more entries can be
 * in the matrix and not yet released than with buckets, or pools, of equal size. */
static int64_t crowd_in(const int64_t *first, int64_t nnz, int64_t buckets, int64_t width, int64_t at_a_time)
{
    int64_t largest = 0;
    for (int64_t b = 0; b < buckets; b += width)
        largest = max_i64(largest, (b + width < buckets ? first[b + width] : nnz) - first[b]);
    return min_i64(nnz, at_a_time * max_i64(0, largest - 2 * nnz / ceil_divide(buckets, width)));
}

/* A bucket or pool with many more entries than others is completely in the matrix before its
 * entries are released. Only now are the sizes known. */
static spmv_status check_crowds(const struct coo_buckets *buckets, const int64_t *first, int64_t nnz, int64_t max_bytes)
{
    const int64_t size = (int64_t)(sizeof(int32_t) + value_size(buckets->type, buckets->pattern));
    const int64_t crowd = buckets->large_pages
                              ? crowd_in(first, nnz, buckets->count, (int64_t)1 << buckets->pool_shift, 2)
                              : crowd_in(first, nnz, buckets->count, 1, buckets->team);
    const int64_t bytes = crowd * size + coo_buckets_bytes(buckets->rows, buckets->cols, buckets->type,
                                                           buckets->pattern, nnz, buckets->team);
    return crowd * size < MATRIX_LARGE || bytes <= max_bytes
               ? SPMV_OK
               : context_fail_memory(buckets->ctx, "sorting entries that are crowded in few rows", bytes);
}

/* *sorted: whether all rows are sorted; *repeats is then as from rows_sort. */
static spmv_status place_all(struct coo_buckets *buckets, int64_t max_bytes, spmv_matrix **matrix,
                             struct repeats *repeats, bool *sorted)
{
    spmv_status st = SPMV_OK;
    int64_t all = 0, lower = 0;
    bool every = true;
    spmv_matrix *m = NULL;
    void *first = NULL, *cursors = NULL;
    const int threads = buckets->team;
    TRY(host_alloc(buckets->ctx, buckets->count * (int64_t)sizeof(int64_t), "sorting entries", &first));
    TRY(host_alloc(buckets->ctx, (int64_t)threads * buckets->writers * (int64_t)sizeof(struct coo_cursor),
                   "sorting entries", &cursors));
    int64_t *const places = first;
    struct coo_cursor *const from = cursors;
    const int64_t nnz = bucket_places(buckets, places);
    TRY(check_crowds(buckets, places, nnz, max_bytes));
    TRY(matrix_allocate(buckets->ctx, buckets->rows, buckets->cols, nnz, buckets->type, buckets->pattern, &m));
    m->first_row = buckets->first_row;
#pragma omp parallel num_threads(threads) reduction(+ : all, lower) reduction(&& : every)
    {
        struct repeats found = {0, 0};
        struct coo_cursor *const own = from + (int64_t)omp_get_thread_num() * buckets->writers;
        for (int64_t b = take_bucket(buckets); b < buckets->count; b = take_bucket(buckets))
            if (buckets->rows > 0)
                every &=
                    place_bucket(buckets, b, places[b], b + 1 < buckets->count ? places[b + 1] : nnz, own, m, &found);
        all += found.all;
        lower += found.lower;
    }
    m->row_ptr[m->rows] = nnz;
    *repeats = (struct repeats){all, lower};
    *sorted = every;
    *matrix = m;
    m = NULL;
done:
    spmv_matrix_destroy(m);
    host_free(cursors);
    host_free(first);
    return st;
}

spmv_status coo_buckets_matrix(struct coo_buckets *buckets, int64_t max_bytes, spmv_matrix **matrix,
                               struct repeats *repeats)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *m = NULL;
    bool sorted = true;
    *matrix = NULL;
    *repeats = (struct repeats){0, 0};
    TRY(place_all(buckets, max_bytes, &m, repeats, &sorted));
    const int64_t bytes = (m->rows + 1) * (int64_t)sizeof *m->row_ptr +
                          m->nnz * (int64_t)(sizeof *m->col + value_size(m->type, m->pattern));
    if (!sorted)
        TRY(rows_sort(buckets->ctx, m, max_i64(0, max_bytes - bytes), repeats));
    if (repeats->all > 0)
        rows_merge(buckets->ctx, m, repeats->all);
    *matrix = m;
    m = NULL;
done:
    spmv_matrix_destroy(m);
    return st;
}

/* ---------------------------------------------------------------- entries to other ranks */

int64_t coo_bucket_entries(const struct coo_buckets *buckets, int64_t bucket)
{
    int64_t entries = 0;
    for (int t = 0; t < buckets->writers; t++)
        entries += slot_entries(buckets, &buckets->writer[t], bucket);
    return entries;
}

/* Goes to the first tile of the bucket. */
static void drain_enter(struct coo_drain *d)
{
    const struct coo_buckets *const b = d->buckets;
    d->tiles = b->tiles;
    d->tile = 0;
    d->left = d->tiles != NULL ? d->tiles->counts[d->bucket] : 0;
    for (int t = 0; t < b->writers; t++)
        d->cursor[t] = cursor_at(b->writer[t].chain[d->bucket].first, &b->writer[t], d->bucket);
}

/* Goes to the next tile, or to the next bucket. */
static void drain_step(struct coo_drain *d)
{
    const struct coo_buckets *const b = d->buckets;
    d->tile++;
    while (d->tiles != NULL && d->tile >= d->tiles->n) {
        d->tiles = d->tiles->next;
        d->tile = 0;
    }
    if (d->tiles != NULL) {
        d->left = d->tiles->counts[d->tile * b->count + d->bucket];
        return;
    }
    for (int t = 0; t < b->writers; t++)
        release_block(b, d->cursor[t].block);
    if (++d->bucket < d->end)
        drain_enter(d);
}

spmv_status coo_drain_begin(const struct coo_buckets *buckets, int64_t first, int64_t end, struct coo_drain *drain)
{
    void *memory = NULL;
    *drain = (struct coo_drain){.buckets = buckets, .bucket = first, .end = end};
    const spmv_status st =
        host_alloc(buckets->ctx, buckets->writers * (int64_t)sizeof(struct coo_cursor), "sorting entries", &memory);
    drain->cursor = memory;
    if (st == SPMV_OK && first < end)
        drain_enter(drain);
    return st;
}

void coo_drain_end(struct coo_drain *drain)
{
    host_free(drain->cursor);
    drain->cursor = NULL;
}

int64_t coo_drain_take(struct coo_drain *d, char *to, int64_t n)
{
    const int64_t size = (int64_t)d->buckets->entry_size;
    int64_t taken = 0;
    while (taken < n && d->bucket < d->end) {
        if (d->left == 0) {
            drain_step(d);
            continue;
        }
        const int t = d->tiles->thread[d->tile];
        struct coo_cursor *const from = &d->cursor[t];
        if (from->next == from->end) {
            const struct coo_block *const done = from->block;
            *from = cursor_at(done->next, &d->buckets->writer[t], d->bucket);
            release_block(d->buckets, done);
        }
        const int64_t some = min_i64(min_i64(n - taken, d->left), (from->end - from->next) / size);
        memcpy(to + taken * size, from->next, (size_t)(some * size));
        from->next += some * size;
        d->left -= some;
        taken += some;
    }
    return taken;
}

bool coo_put(struct coo_buckets *buckets, int writer, int64_t bucket, const char *entries, int64_t n)
{
    struct coo_writer *const own = &buckets->writer[writer];
    struct coo_slot *const slot = &own->slot[bucket];
    const int64_t size = (int64_t)buckets->entry_size;
    while (n > 0) {
        if (slot->next == slot->end && !coo_slot_grow(buckets, own, bucket))
            return false;
        const int64_t some = min_i64(n, (slot->end - slot->next) / size);
        memcpy(slot->next, entries, (size_t)(some * size));
        slot->next += some * size;
        entries += some * size;
        n -= some;
    }
    return true;
}
