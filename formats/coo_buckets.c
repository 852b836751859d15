/* Entries by buckets of cells, and each bucket into its stretch of a CSR matrix: the first pass of a radix sort from
 * the highest digit (D. E. Knuth, "The Art of Computer Programming" vol. 3, section 5.2.5), made while the entries
 * come, and a counting sort by row for each bucket.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* madvise is no part of POSIX */
#define _DEFAULT_SOURCE
#include "coo_buckets.h"

#include <omp.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "rows.h"

/* A block is given back as a whole, so it is a number of pages. */
enum { PAGE = 4096, BLOCK = 16 * PAGE, SLAB_BLOCKS = 64 };
/* Slabs of that size and more lie in large pages where the system has them on demand, which costs half as much as
 * filling small ones; but then blocks that are never full take memory in full, so it is done where slots are to have
 * more than so many bytes. A block that is given back takes its part of a large page out of the process; the page
 * itself is taken apart when memory is short. */
enum { LARGE_PAGE = 2 << 20, SLOT_WORTH_IT = 4 * BLOCK };
/* So many buckets that the stretch of each (12 bytes an entry in f64) fits in a cache, for up to some 10^8 entries, and
 * so few that the places where a thread writes do too. */
enum { BUCKET_ENTRIES = 8192, BUCKET_ROWS = 65536, BUCKETS_MAX = 512 };

/* From here on a matrix's array is in large pages (csr.c); what a thread that reads has beside entries. */
enum { MATRIX_LARGE = 8 << 20, BESIDE = 1 << 20 };

struct coo_block {
    struct coo_block *next;
    int64_t bytes; /* of entries; set when the next block begins */
};

/* Memory for blocks; only its pages are given back early. */
struct coo_slab {
    struct coo_slab *next;
    char *memory, *blocks; /* as allocated; the first whole page */
};

/* A number of tiles: who read each, and how many of its entries went to each bucket. */
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

static void choose_buckets(struct coo_buckets *b, int64_t entries)
{
    const int64_t wanted = min_i64(BUCKETS_MAX, max_i64(1, max_i64(entries / BUCKET_ENTRIES, b->rows / BUCKET_ROWS)));
    const int bits = bits_of(max_i64(b->cols - 1, 0));
    b->col_shift = 31; /* columns are below 2^31 */
    /* rows within a bucket have 32 bits */
    while (b->rows > 0 && ((b->rows - 1) >> b->row_shift) + 1 > wanted && b->row_shift < 32)
        b->row_shift++;
    b->count = b->rows > 0 ? ((b->rows - 1) >> b->row_shift) + 1 : 1;
    if (b->row_shift > 0)
        return;
    while (b->col_bits < bits && b->count * 2 <= wanted) {
        b->col_bits++;
        b->count *= 2;
    }
    if (b->col_bits > 0)
        b->col_shift = bits - b->col_bits;
}

static struct coo_buckets buckets_for(int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t entries,
                                      int threads)
{
    struct coo_buckets b = {.rows = rows, .cols = cols, .type = type, .pattern = pattern};
    choose_buckets(&b, entries);
    const int bits = cols > 2 ? bits_of(cols - 1) : 1;
    b.key_bits = b.row_shift + bits <= 32 ? bits : 0;
    b.entry_size = (b.key_bits > 0 ? sizeof(uint32_t) : sizeof(struct coo_place)) + value_size(type, pattern);
    b.large_pages = entries / (b.count * threads) >= SLOT_WORTH_IT / (int64_t)b.entry_size;
    return b;
}

/* Of such a matrix, and of what is touched before it is needed where its arrays are in large pages: those at the places
 * where two threads write. */
static int64_t bytes_of_matrix(const struct coo_buckets *b, int64_t nnz)
{
    const int64_t of_rows = b->rows * (int64_t)sizeof(int64_t), of_columns = nnz * (int64_t)sizeof(int32_t);
    const int64_t of_values = nnz * (int64_t)value_size(b->type, b->pattern);
    const int large = (of_rows >= MATRIX_LARGE) + (of_columns >= MATRIX_LARGE) + (of_values >= MATRIX_LARGE);
    return of_rows + of_columns + of_values + (int64_t)sizeof(int64_t) + 2 * (int64_t)large * LARGE_PAGE;
}

/* Entries go as the matrix comes, so it is the larger of both that counts. */
int64_t coo_buckets_bytes(int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t entries, int threads)
{
    enum { OF_AN_ENTRY = 64 }; /* more than all that is counted takes of it */
    const struct coo_buckets b = buckets_for(rows, cols, type, pattern, entries, threads);
    int64_t bytes = 0, of_rows = 0;
    if (!multiply_fits(entries, OF_AN_ENTRY, &bytes) || !multiply_fits(rows, 16, &of_rows) ||
        bytes > INT64_MAX / 2 - of_rows / 2)
        return INT64_MAX;
    bytes = entries * (int64_t)b.entry_size;
    /* what a block's head and its unused end take is less than a 512th */
    bytes += bytes / 512 + min_i64(entries, b.count * threads) * (b.large_pages ? BLOCK : PAGE);
    if (b.large_pages)
        bytes += (int64_t)threads * SLAB_BLOCKS * BLOCK;
    bytes = max_i64(bytes, bytes_of_matrix(&b, entries));
    /* beside them: the text, and places in the matrix that are touched before entries are gone */
    return bytes >= MATRIX_LARGE ? bytes + (int64_t)threads * BESIDE : bytes;
}

spmv_status coo_buckets_begin(spmv_context *ctx, int64_t rows, int64_t cols, spmv_type type, bool pattern,
                              int64_t entries, int threads, struct coo_buckets *buckets)
{
    *buckets = buckets_for(rows, cols, type, pattern, entries, threads);
    buckets->ctx = ctx;
    int64_t bytes = 0;
    if (!multiply_fits(buckets->count, (int64_t)sizeof(struct coo_slot), &bytes))
        return context_fail(ctx, SPMV_ERROR_LIMIT, "sorting the entries of %lld rows overflows 64 bits",
                            (long long)rows);
    buckets->writer = calloc((size_t)threads, sizeof *buckets->writer);
    if (buckets->writer == NULL)
        return context_fail_memory(ctx, "sorting entries", threads * (int64_t)sizeof *buckets->writer);
    buckets->writers = threads;
    for (int t = 0; t < threads; t++) {
        buckets->writer[t].slot = calloc((size_t)buckets->count, sizeof(struct coo_slot));
        if (buckets->writer[t].slot == NULL)
            return context_fail_memory(ctx, "sorting entries", bytes);
    }
    return SPMV_OK;
}

void coo_buckets_free(struct coo_buckets *buckets)
{
    for (int t = 0; t < buckets->writers; t++) {
        struct coo_writer *const w = &buckets->writer[t];
        while (w->slab != NULL) {
            struct coo_slab *const slab = w->slab;
            w->slab = slab->next;
            host_free(slab->memory);
            free(slab);
        }
        free(w->slot);
    }
    free(buckets->writer);
    while (buckets->tiles != NULL) {
        struct coo_tiles *const tiles = buckets->tiles;
        buckets->tiles = tiles->next;
        free(tiles->thread);
        free(tiles->counts);
        free(tiles);
    }
    *buckets = (struct coo_buckets){.count = 0};
}

/* ---------------------------------------------------------------- appending */

static bool add_slab(const struct coo_buckets *buckets, struct coo_writer *w)
{
    const int64_t blocks = w->slab == NULL ? 1 : min_i64(2 * w->slab_blocks, SLAB_BLOCKS);
    struct coo_slab *const slab = malloc(sizeof *slab);
    void *memory = NULL;
    const int64_t bytes = blocks * BLOCK, page = buckets->large_pages && bytes >= LARGE_PAGE ? LARGE_PAGE : PAGE;
    if (slab == NULL || host_alloc(NULL, bytes + page, "", &memory) != SPMV_OK) {
        free(slab);
        return false;
    }
    const int64_t aside = (int64_t)((uintptr_t)memory % (uintptr_t)page);
    *slab = (struct coo_slab){w->slab, memory, (char *)memory + (aside == 0 ? 0 : page - aside)};
#ifdef MADV_HUGEPAGE
    if (page == LARGE_PAGE)
        madvise(slab->blocks, (size_t)bytes, MADV_HUGEPAGE);
#endif
    w->slab = slab;
    w->slab_blocks = blocks;
    w->slab_used = 0;
    return true;
}

bool coo_slot_grow(const struct coo_buckets *buckets, struct coo_writer *writer, struct coo_slot *slot)
{
    if (writer->slab_used == writer->slab_blocks && !add_slab(buckets, writer))
        return false;
    struct coo_block *const block = (struct coo_block *)(void *)(writer->slab->blocks + writer->slab_used++ * BLOCK);
    *block = (struct coo_block){.next = NULL};
    if (slot->last != NULL) {
        slot->last->next = block;
        slot->last->bytes = slot->next - (char *)(slot->last + 1);
        slot->closed += slot->last->bytes;
    } else {
        slot->first = block;
    }
    slot->last = block;
    slot->next = (char *)(block + 1);
    slot->end =
        slot->next + (BLOCK - (int64_t)sizeof *block) / (int64_t)buckets->entry_size * (int64_t)buckets->entry_size;
    return true;
}

static int64_t slot_entries(const struct coo_buckets *buckets, const struct coo_slot *slot)
{
    if (slot->last == NULL)
        return 0;
    return (slot->closed + (slot->next - (const char *)(slot->last + 1))) / (int64_t)buckets->entry_size;
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
    struct coo_slot *const slot = buckets->writer[thread].slot;
    tiles->thread[tile] = thread;
    for (int64_t b = 0; b < buckets->count; b++) {
        const int64_t entries = slot_entries(buckets, &slot[b]);
        tiles->counts[tile * buckets->count + b] = (uint32_t)(entries - slot[b].told);
        slot[b].told = entries;
    }
}

/* ---------------------------------------------------------------- the matrix */

/* Where a thread's entries of a bucket are read. */
struct cursor {
    const struct coo_block *block;
    const char *next, *end;
};

static struct cursor cursor_at(const struct coo_block *block, const struct coo_slot *slot)
{
    if (block == NULL)
        return (struct cursor){NULL, NULL, NULL};
    const char *const first = (const char *)(block + 1);
    return (struct cursor){block, first, block == slot->last ? slot->next : first + block->bytes};
}

/* key_bits: as in the buckets, a constant where that is 0. */
static inline struct coo_place place_at(const char *p, int key_bits)
{
    struct coo_place place;
    if (key_bits == 0) {
        memcpy(&place, p, sizeof place);
    } else {
        uint32_t key;
        memcpy(&key, p, sizeof key);
        /* all 32 bits may be the column's */
        place.row = (uint32_t)((uint64_t)key >> key_bits);
        place.col = key & (uint32_t)(((uint64_t)1 << key_bits) - 1);
    }
    return place;
}

static inline void count_places(const char *p, const char *end, int64_t entry_size, int key_bits, int64_t *cell)
{
    for (; p < end; p += entry_size)
        cell[place_at(p, key_bits).row]++;
}

/* cell[row]: how many entries of the bucket are in the row, added to what is there. */
static void count_slot(const struct coo_buckets *buckets, const struct coo_slot *slot, int64_t *cell)
{
    const int64_t entry_size = (int64_t)buckets->entry_size;
    for (const struct coo_block *block = slot->first; block != NULL; block = block->next) {
        const struct cursor c = cursor_at(block, slot);
        if (buckets->key_bits == 0)
            count_places(c.next, c.end, entry_size, 0, cell);
        else
            count_places(c.next, c.end, entry_size, buckets->key_bits, cell);
    }
}

static inline void move_entries(const char *p, const char *end, int key_bits, int64_t *cell, int32_t *col, char *val,
                                size_t size)
{
    const size_t place_size = key_bits == 0 ? sizeof(struct coo_place) : sizeof(uint32_t);
    for (; p < end; p += place_size + size) {
        const struct coo_place place = place_at(p, key_bits);
        const int64_t at = cell[place.row]++;
        col[at] = (int32_t)place.col;
        copy_value(val, at, p + place_size, 0, size);
    }
}

/* The pages of a block go back to the system. Where that fails they stay until coo_buckets_free. */
static void release_block(const struct coo_block *block)
{
    if (block != NULL)
        madvise((void *)(uintptr_t)block, BLOCK, MADV_DONTNEED);
}

/* Moves the next n entries of the cursor, and gives back the blocks that it leaves; cell[row]: the next place of the
 * row. */
static void move_some(const struct coo_buckets *buckets, const struct coo_slot *slot, struct cursor *from, int64_t n,
                      int64_t *cell, spmv_matrix *m)
{
    const int64_t entry_size = (int64_t)buckets->entry_size;
    while (n > 0) {
        if (from->next == from->end) {
            const struct coo_block *const done = from->block;
            *from = cursor_at(done->next, slot);
            release_block(done);
        }
        const int64_t part = min_i64(n, (from->end - from->next) / entry_size);
        const char *const end = from->next + part * entry_size;
        const size_t size = value_size(m->type, m->pattern);
        if (buckets->key_bits == 0) {
            SIZED(size, move_entries(from->next, end, 0, cell, m->col, m->val, SIZE));
        } else {
            SIZED(size, move_entries(from->next, end, buckets->key_bits, cell, m->col, m->val, SIZE));
        }
        from->next = end;
        n -= part;
    }
}

static void move_in_order(const struct coo_buckets *buckets, int64_t b, struct cursor *from, int64_t *cell,
                          spmv_matrix *m)
{
    for (int t = 0; t < buckets->writers; t++)
        from[t] = cursor_at(buckets->writer[t].slot[b].first, &buckets->writer[t].slot[b]);
    for (const struct coo_tiles *tiles = buckets->tiles; tiles != NULL; tiles = tiles->next)
        for (int tile = 0; tile < tiles->n; tile++) {
            const int64_t n = tiles->counts[tile * buckets->count + b];
            const int t = tiles->thread[tile];
            move_some(buckets, &buckets->writer[t].slot[b], &from[t], n, cell, m);
        }
}

/* The bucket's entries go to the places from first on of col and val; row_ptr[row] = the row's first place, for the
 * rows that begin in the bucket. */
static void place_bucket(struct coo_buckets *buckets, int64_t b, int64_t first, struct cursor *from, spmv_matrix *m)
{
    const int64_t begin = (b >> buckets->col_bits) << buckets->row_shift;
    const int64_t rows = min_i64(buckets->rows - begin, (int64_t)1 << buckets->row_shift);
    int64_t one = first; /* the place in a row that has several buckets */
    int64_t *cell = &one;
    if (buckets->col_bits == 0) {
        cell = m->row_ptr + begin;
        memset(cell, 0, (size_t)rows * sizeof *cell);
        for (int t = 0; t < buckets->writers; t++)
            count_slot(buckets, &buckets->writer[t].slot[b], cell);
        for (int64_t row = 0, place = first; row < rows; row++) {
            const int64_t count = cell[row];
            cell[row] = place;
            place += count;
        }
    } else if ((b & (((int64_t)1 << buckets->col_bits) - 1)) == 0) {
        m->row_ptr[begin] = first;
    }
    move_in_order(buckets, b, from, cell, m);
    for (int t = 0; t < buckets->writers; t++) {
        release_block(from[t].block);
        buckets->writer[t].slot[b] = (struct coo_slot){.next = NULL};
    }
    if (buckets->col_bits > 0)
        return;
    /* each cell is now the end of its row, which is the beginning of the next */
    memmove(cell + 1, cell, (size_t)(rows - 1) * sizeof *cell);
    cell[0] = first;
}

/* first[b]: the place of the bucket's first entry. Returns the number of entries. */
static int64_t bucket_places(const struct coo_buckets *buckets, int64_t *first)
{
    int64_t place = 0;
    for (int64_t b = 0; b < buckets->count; b++) {
        first[b] = place;
        for (int t = 0; t < buckets->writers; t++)
            place += slot_entries(buckets, &buckets->writer[t].slot[b]);
    }
    return place;
}

/* A bucket of many more entries than others is in the matrix, all over it, before its entries are gone. Only now it is
 * known whether there are such. */
static spmv_status check_crowds(const struct coo_buckets *buckets, const int64_t *first, int64_t nnz, int64_t max_bytes)
{
    const int64_t size = (int64_t)(sizeof(int32_t) + value_size(buckets->type, buckets->pattern));
    int64_t largest = 0;
    for (int64_t b = 0; b < buckets->count; b++)
        largest = max_i64(largest, (b + 1 < buckets->count ? first[b + 1] : nnz) - first[b]);
    const int64_t crowd = min_i64(nnz, buckets->writers * max_i64(0, largest - 2 * nnz / buckets->count));
    const int64_t bytes = crowd * size + coo_buckets_bytes(buckets->rows, buckets->cols, buckets->type,
                                                           buckets->pattern, nnz, buckets->writers);
    return crowd * size < MATRIX_LARGE || bytes <= max_bytes
               ? SPMV_OK
               : context_fail_memory(buckets->ctx, "sorting entries that are crowded in few rows", bytes);
}

static spmv_status place_all(struct coo_buckets *buckets, int64_t max_bytes, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *m = NULL;
    void *first = NULL, *cursors = NULL;
    const int threads = buckets->writers;
    TRY(host_alloc(buckets->ctx, buckets->count * (int64_t)sizeof(int64_t), "sorting entries", &first));
    TRY(host_alloc(buckets->ctx, (int64_t)threads * threads * (int64_t)sizeof(struct cursor), "sorting entries",
                   &cursors));
    int64_t *const places = first;
    struct cursor *const from = cursors;
    const int64_t nnz = bucket_places(buckets, places);
    TRY(check_crowds(buckets, places, nnz, max_bytes));
    TRY(matrix_allocate(buckets->ctx, buckets->rows, buckets->cols, nnz, buckets->type, buckets->pattern, &m));
#pragma omp parallel num_threads(threads)
    {
        struct cursor *const own = from + (int64_t)omp_get_thread_num() * threads;
#pragma omp for schedule(dynamic, 1)
        for (int64_t b = 0; b < buckets->count; b++)
            if (buckets->rows > 0)
                place_bucket(buckets, b, places[b], own, m);
    }
    m->row_ptr[m->rows] = nnz;
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
    *matrix = NULL;
    *repeats = (struct repeats){0, 0};
    TRY(place_all(buckets, max_bytes, &m));
    const int64_t bytes = (m->rows + 1) * (int64_t)sizeof *m->row_ptr +
                          m->nnz * (int64_t)(sizeof *m->col + value_size(m->type, m->pattern));
    TRY(rows_sort(buckets->ctx, m, max_i64(0, max_bytes - bytes), repeats));
    if (repeats->all > 0)
        rows_merge(buckets->ctx, m, repeats->all);
    *matrix = m;
    m = NULL;
done:
    spmv_matrix_destroy(m);
    return st;
}
