/* Copies entries in order to their places, and moves entries out of order to buckets.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/coo/coo_ordered.h"

#include <omp.h>
#include <stdlib.h>

spmv_status coo_ordered_begin(spmv_context *ctx, int64_t rows, int64_t cols, spmv_type type, bool pattern, int64_t nnz,
                              int threads, int most, struct coo_ordered *o)
{
    *o = (struct coo_ordered){.ctx = ctx, .value_size = value_size(type, pattern), .last_row = -1, .last_col = -1};
    pthread_mutex_init(&o->lock, NULL);
    o->owner = calloc((size_t)threads, sizeof *o->owner);
    o->place = calloc((size_t)most, sizeof *o->place);
    if (o->owner == NULL || o->place == NULL)
        return context_fail_memory(ctx, "reading a file", most * (int64_t)sizeof *o->place);
    o->threads = threads;
    return matrix_allocate(ctx, rows, cols, nnz, type, pattern, &o->matrix);
}

static void free_tiles(struct ordered_tile *tile)
{
    while (tile != NULL) {
        struct ordered_tile *const next = tile->next;
        host_free(tile->memory);
        free(tile);
        tile = next;
    }
}

void coo_ordered_free(struct coo_ordered *o)
{
    if (o->ctx == NULL)
        return;
    for (int t = 0; t < o->threads; t++) {
        free_tiles(o->owner[t].waiting);
        free_tiles(o->owner[t].unused);
    }
    free(o->owner);
    free(o->place);
    spmv_matrix_destroy(o->matrix);
    pthread_mutex_destroy(&o->lock);
    *o = (struct coo_ordered){.ctx = NULL};
}

void coo_ordered_round(struct coo_ordered *o, int n)
{
    o->tiles = n;
    o->known = 0;
    memset(o->place, 0, (size_t)n * sizeof *o->place);
}

/* ---------------------------------------------------------------- tiles */

static bool tile_grow(struct ordered_tile *tile, int64_t capacity, size_t size)
{
    const int64_t entry = (int64_t)(sizeof *tile->row + sizeof *tile->col + sizeof *tile->first + size);
    int64_t bytes = 0;
    if (capacity <= tile->capacity)
        return true;
    host_free(tile->memory);
    tile->memory = NULL;
    tile->capacity = 0;
    if (!multiply_fits(capacity, entry, &bytes) || host_alloc(NULL, bytes, "", &tile->memory) != SPMV_OK)
        return false;
    tile->capacity = capacity;
    tile->row = tile->memory;
    tile->val = (char *)(tile->row + capacity);
    tile->col = (int32_t *)(void *)(tile->val + (size_t)capacity * size);
    tile->first = (uint32_t *)(tile->col + capacity);
    return true;
}

struct ordered_tile *coo_ordered_take(struct coo_ordered *o, int thread, int number, int64_t capacity)
{
    struct ordered_owner *const own = &o->owner[thread];
    if (own->unused == NULL)
        own->unused = calloc(1, sizeof *own->unused);
    struct ordered_tile *const tile = own->unused;
    if (tile == NULL || !tile_grow(tile, capacity, o->value_size))
        return NULL;
    own->unused = tile->next;
    tile->next = NULL;
    tile->number = number;
    tile->n = tile->sequences = 0;
    tile->ordered = true;
    return tile;
}

/* Advances over all tiles whose counts are there; the lock is held. */
static void advance(struct coo_ordered *o)
{
    while (o->known < o->tiles && o->place[o->known].counted && o->place[o->known].good && !o->broken) {
        struct ordered_place *const place = &o->place[o->known];
        place->before = o->entries;
        place->row_before = o->last_row;
        /* More entries than declared: an error that the caller reports. */
        if (place->n > o->matrix->nnz - o->entries)
            return;
        if (place->n > 0 &&
            (place->first_row < o->last_row || (place->first_row == o->last_row && place->first_col <= o->last_col))) {
            o->broken = true;
            return;
        }
        if (place->n > 0) {
            o->last_row = place->last_row;
            o->last_col = place->last_col;
        }
        o->entries += place->n;
        o->known++;
    }
}

static void to_its_place(const struct coo_ordered *o, const struct ordered_tile *tile)
{
    const struct ordered_place *const place = &o->place[tile->number];
    spmv_matrix *const m = o->matrix;
    int64_t row = place->row_before;
    if (tile->n == 0)
        return;
    memcpy(m->col + place->before, tile->col, (size_t)tile->n * sizeof *m->col);
    if (o->value_size > 0)
        memcpy((char *)m->val + (size_t)place->before * o->value_size, tile->val, (size_t)tile->n * o->value_size);
    for (int64_t r = 0; r < tile->sequences; r++)
        while (row < tile->row[r])
            m->row_ptr[++row] = place->before + tile->first[r];
}

/* Copies the thread's tiles before tile known to their places. */
static void place_waiting(struct coo_ordered *o, int thread, int known)
{
    struct ordered_owner *const own = &o->owner[thread];
    while (own->waiting != NULL && own->waiting->number < known) {
        struct ordered_tile *const tile = own->waiting;
        to_its_place(o, tile);
        own->waiting = tile->next;
        tile->next = own->unused;
        own->unused = tile;
    }
}

bool coo_ordered_done(struct coo_ordered *o, int thread, struct ordered_tile *tile, bool good)
{
    struct ordered_owner *const own = &o->owner[thread];
    struct ordered_place *const place = &o->place[tile->number];
    if (own->waiting == NULL)
        own->waiting = tile;
    else
        own->last->next = tile;
    own->last = tile;
    place->n = tile->n;
    if (tile->n > 0) {
        place->first_row = tile->row[0];
        place->first_col = tile->col[0];
        place->last_row = tile->row[tile->sequences - 1];
        place->last_col = tile->col[tile->n - 1];
    }
    pthread_mutex_lock(&o->lock);
    place->counted = true;
    place->good = good && tile->ordered;
    o->broken = o->broken || !tile->ordered;
    advance(o);
    const int known = o->known;
    const bool broken = o->broken;
    pthread_mutex_unlock(&o->lock);
    place_waiting(o, thread, known);
    return !broken;
}

void coo_ordered_flush(struct coo_ordered *o, int thread)
{
    place_waiting(o, thread, o->known);
}

spmv_matrix *coo_ordered_matrix(struct coo_ordered *o)
{
    spmv_matrix *const m = o->matrix;
    for (int64_t row = o->last_row + 1; row <= m->rows; row++)
        m->row_ptr[row] = o->entries;
    o->matrix = NULL;
    return m;
}

/* ---------------------------------------------------------------- to buckets */

/* Entries of the matrix moved at a time; their pages then go back to the system. */
enum { RANGE = 1 << 16 };

/* Entries first <= k < end of the matrix. */
static bool append_range(const struct coo_ordered *o, struct coo_buckets *buckets, struct coo_writer *writer,
                         int64_t first, int64_t end)
{
    spmv_matrix *const m = o->matrix;
    const struct coo_shape shape = buckets->shape;
    bool fits = true;
    spmv_csr a;
    spmv_matrix_view(m, &a);
    a.rows = o->last_row + 1;
    int64_t row = row_of_entry(&a, first);
    for (int64_t k = first; k < end && fits; k++) {
        while (m->row_ptr[row + 1] <= k)
            row++;
        fits = coo_append(buckets, &shape, writer, row, m->col[k], value_at(m->val, k, o->value_size), o->value_size);
    }
    pages_give_back(m->col + first, (end - first) * (int64_t)sizeof *m->col);
    if (o->value_size > 0)
        pages_give_back((char *)m->val + (size_t)first * o->value_size, (end - first) * (int64_t)o->value_size);
    return fits;
}

static bool append_tile(const struct coo_ordered *o, struct coo_buckets *buckets, struct coo_writer *writer,
                        const struct ordered_tile *tile)
{
    const struct coo_shape shape = buckets->shape;
    bool fits = true;
    for (int64_t r = 0, k = 0; r < tile->sequences; r++)
        for (const int64_t end = r + 1 < tile->sequences ? tile->first[r + 1] : tile->n; k < end && fits; k++)
            fits = coo_append(buckets, &shape, writer, tile->row[r], tile->col[k],
                              value_at(tile->val, k, o->value_size), o->value_size);
    return fits;
}

/* Lists the waiting tiles of all threads by number; returns how many there are. */
static int waiting_tiles(const struct coo_ordered *o, const struct ordered_tile **tiles)
{
    int n = 0;
    for (int number = 0; number < o->tiles; number++)
        tiles[number] = NULL;
    for (int t = 0; t < o->threads; t++)
        for (const struct ordered_tile *tile = o->owner[t].waiting; tile != NULL; tile = tile->next)
            tiles[tile->number] = tile;
    for (int number = 0; number < o->tiles; number++)
        if (tiles[number] != NULL)
            tiles[n++] = tiles[number];
    return n;
}

spmv_status coo_ordered_to_buckets(struct coo_ordered *o, struct coo_buckets *buckets)
{
    const int64_t ranges = ceil_divide(o->entries, RANGE);
    const struct ordered_tile **const tiles = calloc((size_t)o->tiles, sizeof *tiles);
    if (tiles == NULL)
        return context_fail_memory(o->ctx, "sorting entries", o->tiles * (int64_t)sizeof *tiles);
    const int n = waiting_tiles(o, tiles);
    const int all = (int)ranges + n; /* no overflow: 2^63 entries do not fit in memory */
    spmv_status st = coo_tiles_begin(buckets, all);
    bool fits = true;
    o->matrix->row_ptr[o->last_row + 1] = o->entries;
    if (st == SPMV_OK) {
#pragma omp parallel num_threads(o->threads) reduction(&& : fits)
        {
            const int own = omp_get_thread_num();
            struct coo_writer *const writer = &buckets->writer[own];
            /* each thread takes its tiles in ascending order */
            for (int i = own; i < all && fits; i += omp_get_num_threads()) {
                if (i < ranges)
                    fits = append_range(o, buckets, writer, (int64_t)i * RANGE,
                                        min_i64(o->entries, (int64_t)(i + 1) * RANGE));
                else
                    fits = append_tile(o, buckets, writer, tiles[i - ranges]);
                coo_tile_done(buckets, own, i);
            }
        }
    }
    free(tiles);
    if (st == SPMV_OK && !fits)
        st = context_fail_memory(
            o->ctx, "entries of a file",
            coo_buckets_bytes(buckets->rows, buckets->cols, buckets->type, buckets->pattern, o->entries, o->threads));
    return st;
}
