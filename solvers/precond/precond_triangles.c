/* A preconditioner M = L U of two sparse triangles: each application solves L y = r and U z = y.
 *
 * Row i of a triangle needs the rows in its pattern, so rows are solved by levels, all rows of a
 * level at once. Levels are cut into tiles: a large level into several, and small levels that
 * follow each other make up one. On omp, threads take tiles in order, each after the levels
 * before its own are done. No thread waits for a thread that holds no tile, so a descheduled
 * thread delays little. A matrix with long chains (a banded one) is solved by one thread, in the
 * matrix's own order, with the same arithmetic and so the same bits. On the GPU, a triangle is
 * one launch, whose blocks take tiles in order; a row waits for the elements that it needs
 * (precond_triangles_cuda.cu). Traffic an application: both triangles (12 bytes an entry in f64)
 * and 5 vectors, on a GPU 7. Levels: E. Anderson, Y. Saad, "Solving sparse triangular linear
 * systems on parallel computers", Int. J. High Speed Computing 1, 1989; Saad 2003, section 11.6.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/plural.h"
#include "core/threads.h"
#include "formats/matrix_internal.h"
#include "solvers/precond/precond_loops.h"
#include "solvers/precond/precond_triangles.h"

/* WORTH_A_TEAM: with fewer entries, or with most entries in small levels, one thread is faster
 * than waking the others. THREADS_WORTH: fewer threads gain nothing over one thread that solves
 * in the matrix's own order. GATE_LARGE, GATE_SMALL: a tile on a GPU waits for its elements one
 * by one once a row so many levels before its own is solved, some 1 us ahead. */
enum { WORTH_A_TEAM = 2 * TEAM_WORTH_AWAKE, THREADS_WORTH = 4, GATE_LARGE = 3, GATE_SMALL = 16 };

/* How levels are cut into tiles. A level with at least `large` entries is cut into tiles of
 * `least` entries, or more so that it has at most `share` tiles. Other levels that follow each
 * other become one tile, of at most `rows` rows.
 *
 * Host: large levels are those that threads share, which wait for each other about 0.5 us; a tile
 * is some microseconds of work. GPU: a large level would take a single multiprocessor longer than
 * the 0.5 us that one waits for another. A tile is one or two steps of a block. The elements of
 * `rows` rows are in a block's shared memory. */
#ifndef CUDA_WIDE_LEVEL /* tests use a smaller value */
#define CUDA_WIDE_LEVEL 512
#endif
static const struct cutting {
    int64_t large, least, share, rows;
} on_host = {4096, 2048, INT64_MAX, INT64_MAX},
  on_gpu = {CUDA_WIDE_LEVEL, CUDA_WIDE_LEVEL / 2, 1024, 8 * CUDA_WIDE_LEVEL};

/* One triangle in the context's memory. */
struct solve {
    struct precond_triangle triangle;
    void *ptr, *col, *row, *val, *inverse, *tiles_there; /* in the context's memory */
    int64_t tiles;                                       /* omp: of a solve shared by threads; 0: one thread solves */
    struct tile *tile;
};

/* Positions begin to end - 1, the first one in `level`. They may begin when `after` tiles are
 * done. many: of levels that are not large. */
struct tile {
    int64_t begin, end, after, level;
    bool many;
};

struct triangles {
    spmv_preconditioner *m;
    struct solve forward, backward;
    void *between, *drawn; /* on a GPU: L^-1 r; the tiles begun of each triangle */
    /* with a permutation of the columns: U^-1 L^-1 r, and the column of each of its elements */
    void *product, *column;
    struct triangles *transposed; /* L' and U' in other places: (L U)' = U' L'; NULL: not made yet */
};

/* -------------------------------------------------------------------- memory */

void host_rows_release(struct host_rows *t)
{
    host_free_all(t->ptr, t->col, t->val);
    *t = (struct host_rows){.rows = t->rows};
}

spmv_status host_rows_alloc(spmv_context *ctx, int64_t rows, int64_t entries, struct host_rows *t)
{
    spmv_status st = SPMV_OK;
    t->rows = rows;
    TRY(host_alloc(ctx, (rows + 1) * 8, "row offsets of a triangle", (void **)&t->ptr));
    TRY(host_alloc(ctx, entries * 4, "columns of a triangle", (void **)&t->col));
    TRY(host_alloc(ctx, entries * 8, "values of a triangle", (void **)&t->val));
    pages_ask_large(t->col, entries * 4);
    pages_ask_large(t->val, entries * 8);
    t->ptr[0] = 0;
done:
    return st;
}

/* An entry, and its place before the sort. */
struct placed {
    double val;
    int32_t col, place;
};

static int by_column(const void *a, const void *b)
{
    const struct placed *const x = a, *const y = b;
    if (x->col != y->col)
        return x->col < y->col ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Sorts n entries by column, stably: by insertion as long as few moves are needed, since they are
 * nearly always in order. */
static spmv_status sort_entries(spmv_context *ctx, int32_t *col, double *val, int64_t n)
{
    enum { MOVES = 16 };
    struct placed *copy = NULL;
    int64_t moves = 0;
    for (int64_t i = 1; i < n && moves <= MOVES * n; i++) {
        const int32_t c = col[i];
        const double v = val[i];
        int64_t j = i;
        for (; j > 0 && col[j - 1] > c; j--) {
            col[j] = col[j - 1];
            val[j] = val[j - 1];
        }
        col[j] = c;
        val[j] = v;
        moves += i - j;
    }
    if (moves <= MOVES * n)
        return SPMV_OK;
    const spmv_status st = host_alloc(ctx, n * (int64_t)sizeof *copy, "the entries of a row", (void **)&copy);
    if (st != SPMV_OK)
        return st;
    for (int64_t i = 0; i < n; i++)
        copy[i] = (struct placed){val[i], col[i], (int32_t)i};
    qsort(copy, (size_t)n, sizeof *copy, by_column);
    for (int64_t i = 0; i < n; i++) {
        col[i] = copy[i].col;
        val[i] = copy[i].val;
    }
    host_free(copy);
    return SPMV_OK;
}

/* Adds entries of the same column; returns how many remain. */
static int64_t merge_entries(int32_t *col, double *val, int64_t n)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++)
        if (kept > 0 && col[kept - 1] == col[k]) {
            val[kept - 1] += val[k];
        } else {
            col[kept] = col[k];
            val[kept++] = val[k];
        }
    return kept;
}

static bool is_taken(enum take part, int64_t row, int64_t col)
{
    return part == TAKE_ALL || col <= row;
}

spmv_status host_rows_take(spmv_context *ctx, const struct precond_source *source, enum take part, struct host_rows *t)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &source->host;
    int64_t entries = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        bool diagonal = false;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            entries += is_taken(part, i, a->col[k]);
            diagonal = diagonal || a->col[k] == i;
        }
        entries += !diagonal;
    }
    TRY(host_rows_alloc(ctx, a->rows, entries, t));
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = t->ptr[i];
        int64_t end = begin;
        bool diagonal = false;
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            if (is_taken(part, i, a->col[k])) {
                diagonal = diagonal || a->col[k] == i;
                t->col[end] = a->col[k];
                t->val[end++] = precond_value(a, k);
            }
        if (!diagonal) {
            t->col[end] = (int32_t)i;
            t->val[end++] = 0;
        }
        TRY(sort_entries(ctx, t->col + begin, t->val + begin, end - begin));
        TRY(context_poll(ctx, "a preconditioner", end - begin));
        t->ptr[i + 1] = begin + merge_entries(t->col + begin, t->val + begin, end - begin);
    }
done:
    return st;
}

/* -------------------------------------------------------------------- levels */

/* The rows of a triangle by level: row[p] is the row at position p. Rows of a level need rows of
 * earlier levels only, and are in the matrix's own order (backwards if backward). first: levels + 1 positions. */
struct levels {
    int64_t count;
    int32_t *row;
    int64_t *first;
};

static void levels_release(struct levels *levels)
{
    host_free(levels->row);
    host_free(levels->first);
}

/* The row at position p of a solve. order: of triangles_make. */
static int64_t row_at(const int32_t *order, int64_t n, bool backward, int64_t p)
{
    const int64_t step = backward ? n - 1 - p : p;
    return order != NULL ? order[step] : step;
}

static spmv_status levels_of(spmv_context *ctx, const struct host_rows *triangle, const int32_t *order, bool backward,
                             struct levels *levels)
{
    spmv_status st = SPMV_OK;
    const int64_t n = triangle->rows;
    int32_t *level = NULL;
    TRY(host_alloc(ctx, n * 4, "levels of a triangle", (void **)&level));
    TRY(host_alloc(ctx, n * 4, "the order of a triangle", (void **)&levels->row));
    levels->count = 0;
    for (int64_t p = 0; p < n; p++) {
        const int64_t i = row_at(order, n, backward, p);
        int32_t deepest = 0;
        for (int64_t k = triangle->ptr[i]; k < triangle->ptr[i + 1]; k++)
            if (triangle->col[k] != i && level[triangle->col[k]] >= deepest)
                deepest = level[triangle->col[k]] + 1;
        level[i] = deepest;
        levels->count = max_i64(levels->count, deepest + 1);
    }
    TRY(host_alloc(ctx, (levels->count + 2) * 8, "levels of a triangle", (void **)&levels->first));
    memset(levels->first, 0, (size_t)(levels->count + 2) * sizeof *levels->first);
    for (int64_t i = 0; i < n; i++)
        levels->first[level[i] + 2]++;
    for (int64_t l = 0; l < levels->count; l++)
        levels->first[l + 2] += levels->first[l + 1];
    for (int64_t p = 0; p < n; p++) {
        const int64_t i = row_at(order, n, backward, p);
        levels->row[levels->first[level[i] + 1]++] = (int32_t)i;
    }
done:
    host_free(level);
    return st;
}

/* Puts the entries of each row in the order of the positions of their columns, which is that in
 * which a solve knows the elements. So a row that waits for an element has subtracted nearly all
 * others. All backends add in this order. position: room for a number for each row, which is set. */
static spmv_status order_entries(spmv_context *ctx, const int32_t *row, int32_t *position, struct host_rows *triangle)
{
    const int64_t n = triangle->rows;
    int64_t failed = 0;
    for (int64_t p = 0; p < n; p++)
        position[row[p]] = (int32_t)p;
#pragma omp parallel for num_threads(host_team(ctx, triangle->ptr[n])) schedule(dynamic, 256) reduction(+ : failed)
    for (int64_t i = 0; i < n; i++) {
        const int64_t begin = triangle->ptr[i], end = triangle->ptr[i + 1];
        for (int64_t k = begin; k < end; k++)
            triangle->col[k] = position[triangle->col[k]];
        failed += sort_entries(NULL, triangle->col + begin, triangle->val + begin, end - begin) != SPMV_OK;
        for (int64_t k = begin; k < end; k++)
            triangle->col[k] = row[triangle->col[k]];
    }
    return failed == 0 ? SPMV_OK : context_fail_memory(ctx, "the entries of a row", n * (int64_t)sizeof(struct placed));
}

/* ------------------------------------------------------------------- solving */

/* A solve in progress. Tiles are taken in order, and only when the tiles they need are done. The
 * oldest unfinished tile needs only finished ones, so some thread always makes progress. */
struct chain {
    const struct solve *solve;
    const void *in;
    void *out;
    _Alignas(64) atomic_llong taken;
    _Alignas(64) atomic_llong done;
};

enum { PATIENCE = 200 };

static void wait_until_done(struct chain *chain, int64_t tiles)
{
    for (int spins = 1; atomic_load_explicit(&chain->done, memory_order_acquire) < tiles; spins++)
        if (spins % PATIENCE == 0)
            sched_yield();
}

/* One thread's part of a solve. A tile is not taken before it can begin, so a waiting thread holds
 * nothing that others wait for. */
static void solve_share(spmv_type type, struct chain *chain)
{
    const struct solve *s = chain->solve;
    int spins = 0;
    long long t = 0;
    while ((t = atomic_load_explicit(&chain->taken, memory_order_relaxed)) < s->tiles) {
        const struct tile tile = s->tile[t];
        if (atomic_load_explicit(&chain->done, memory_order_acquire) < tile.after) {
            if (++spins % PATIENCE == 0)
                sched_yield();
        } else if (atomic_compare_exchange_weak_explicit(&chain->taken, &t, t + 1, memory_order_relaxed,
                                                         memory_order_relaxed)) {
            precond_triangle_loop(type, &s->triangle, chain->in, chain->out, tile.begin, tile.end);
            atomic_fetch_add_explicit(&chain->done, 1, memory_order_acq_rel);
        }
    }
}

static void solve_shared(const struct triangles *f, const void *r, void *z)
{
    const spmv_preconditioner *m = f->m;
    struct chain forward = {.solve = &f->forward, .in = r, .out = z};
    struct chain backward = {.solve = &f->backward, .in = z, .out = z};
    atomic_init(&forward.taken, 0);
    atomic_init(&forward.done, 0);
    atomic_init(&backward.taken, 0);
    atomic_init(&backward.done, 0);
#pragma omp parallel num_threads(m->ctx->threads)
    {
        solve_share(m->type, &forward);
        wait_until_done(&forward, f->forward.tiles);
        solve_share(m->type, &backward);
    }
}

/* z = U^-1 L^-1 r */
static spmv_status solve_both(const struct triangles *f, const void *r, void *z)
{
    const spmv_preconditioner *m = f->m;
    if (context_on_device(m->ctx)) {
        const spmv_status st = precond_triangle_cuda(m->ctx, m->type, &f->forward.triangle, r, f->between, z);
        return st != SPMV_OK ? st
                             : precond_triangle_cuda(m->ctx, m->type, &f->backward.triangle, f->between, z, f->between);
    }
    if (f->forward.tiles > 0) {
        solve_shared(f, r, z);
    } else {
        precond_triangle_loop(m->type, &f->forward.triangle, r, z, 0, m->rows);
        precond_triangle_loop(m->type, &f->backward.triangle, z, z, 0, m->rows);
    }
    return SPMV_OK;
}

static spmv_status apply(void *self, const void *r, void *z)
{
    const struct triangles *f = self;
    const spmv_preconditioner *m = f->m;
    if (f->column == NULL)
        return solve_both(f, r, z);
    const struct move move = {NULL, m->type, f->product, f->column, 32, z, m->rows, m->rows};
    const spmv_status st = solve_both(f, r, f->product);
    return st != SPMV_OK ? st : m->ctx->backend->scatter(m->ctx, &move);
}

/* -------------------------------------------------------------------- making */

static void release(spmv_context *ctx, struct solve *s)
{
    context_free_all(ctx, s->ptr, s->col, s->row, s->val, s->inverse, s->tiles_there);
    host_free(s->tile);
}

static void destroy(void *self)
{
    struct triangles *f = self;
    if (f->transposed != NULL)
        destroy(f->transposed);
    release(f->m->ctx, &f->forward);
    release(f->m->ctx, &f->backward);
    context_free_all(f->m->ctx, f->between, f->drawn, f->product, f->column);
    host_free(f);
}

/* The triangle's entries in the order of its levels, with the diagonal stored separately, in
 * type. */
struct ordered {
    spmv_type type;
    int64_t *ptr;
    int32_t *col;
    void *val, *inverse;
};

static void put_in_order(const struct host_rows *from, const int32_t *row, int team, struct ordered *to)
{
    to->ptr[0] = 0;
    for (int64_t p = 0; p < from->rows; p++)
        to->ptr[p + 1] = to->ptr[p] + from->ptr[row[p] + 1] - from->ptr[row[p]] - 1;
#pragma omp parallel for num_threads(team) schedule(static)
    for (int64_t p = 0; p < from->rows; p++) {
        const int64_t i = row[p];
        int64_t end = to->ptr[p];
        for (int64_t k = from->ptr[i]; k < from->ptr[i + 1]; k++)
            if (from->col[k] == i) {
                real_set(to->type, to->inverse, p, 1 / from->val[k]);
            } else {
                to->col[end] = from->col[k];
                real_set(to->type, to->val, end++, from->val[k]);
            }
    }
}

static int64_t entries_of_level(const struct host_rows *from, const struct levels *levels, int64_t level)
{
    int64_t entries = 0;
    for (int64_t p = levels->first[level]; p < levels->first[level + 1]; p++)
        entries += from->ptr[levels->row[p] + 1] - from->ptr[levels->row[p]];
    return entries;
}

/* Cuts level l, of positions begin to end - 1, into tiles of at least `each` entries. */
static void cut_level(const struct host_rows *from, const struct levels *levels, int64_t l, int64_t each,
                      struct solve *s)
{
    const int64_t after = s->tiles, end = levels->first[l + 1];
    int64_t begin = levels->first[l], entries = 0;
    for (int64_t p = begin; p < end; p++) {
        entries += from->ptr[levels->row[p] + 1] - from->ptr[levels->row[p]];
        if (entries >= each || p + 1 == end) {
            s->tile[s->tiles++] = (struct tile){begin, p + 1, after, l, false};
            begin = p + 1;
            entries = 0;
        }
    }
}

/* Cuts all levels. Adds the entries of large levels to *large_entries. */
static spmv_status cut_levels(spmv_preconditioner *m, const struct host_rows *from, const struct levels *levels,
                              const struct cutting *by, struct solve *s, int64_t *large_entries)
{
    const int64_t most = levels->count + from->ptr[from->rows] / by->least;
    const spmv_status st = host_alloc(m->ctx, most * (int64_t)sizeof *s->tile, "tiles of a solve", (void **)&s->tile);
    if (st != SPMV_OK)
        return st;
    for (int64_t l = 0; l < levels->count; l++) {
        const int64_t begin = levels->first[l], end = levels->first[l + 1], entries = entries_of_level(from, levels, l);
        struct tile *const last = s->tiles > 0 ? s->tile + s->tiles - 1 : NULL;
        if (entries >= by->large) {
            cut_level(from, levels, l, max_i64(by->least, entries / by->share), s);
            *large_entries += entries;
        } else if (last != NULL && last->many && end - last->begin <= by->rows) {
            last->end = end;
        } else {
            s->tile[s->tiles] = (struct tile){begin, end, s->tiles, l, true};
            s->tiles++;
        }
    }
    return SPMV_OK;
}

static spmv_status send(spmv_preconditioner *m, const void *host, int64_t bytes, void **memory)
{
    const spmv_status st = precond_alloc(m, bytes, memory);
    return st != SPMV_OK || bytes == 0 ? st : spmv_upload(m->ctx, host, *memory, bytes);
}

/* The matrix's own order, for one thread. */
static void keep_order(int32_t *row, const int32_t *order, int64_t n, bool backward)
{
    for (int64_t p = 0; p < n; p++)
        row[p] = (int32_t)row_at(order, n, backward, p);
}

/* For a GPU: columns of entries whose rows are in the same tile become places in the tile
 * (precond_loops.h). */
static void point_into_tiles(const struct solve *s, const int32_t *position, struct ordered *to)
{
    for (int64_t t = 0; t < s->tiles; t++) {
        const struct tile *const tile = s->tile + t;
        for (int64_t k = to->ptr[tile->begin]; k < to->ptr[tile->end] && tile->many; k++) {
            const int32_t place = position[to->col[k]] - (int32_t)tile->begin;
            if (place >= 0)
                to->col[k] = -1 - place;
        }
    }
}

/* Puts the triangle in order into the arrays of s; from a GPU's host, by way of a copy. position:
 * of each row, used for a GPU. */
static spmv_status fill(spmv_preconditioner *m, const struct host_rows *from, const int32_t *row,
                        const int32_t *position, struct solve *s)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = m->ctx;
    const int64_t n = from->rows, entries = from->ptr[n] - n, size = (int64_t)spmv_type_size(m->type);
    void **const arrays[] = {&s->ptr, &s->col, &s->val, &s->inverse};
    const int64_t bytes[] = {(n + 1) * 8, entries * 4, max_i64(1, entries * size), max_i64(1, n * size)};
    const bool on_device = context_on_device(ctx);
    void *copy[4] = {NULL, NULL, NULL, NULL};
    for (int i = 0; i < 4; i++) {
        TRY(precond_alloc(m, bytes[i], arrays[i]));
        if (on_device)
            TRY(host_alloc(ctx, bytes[i], "a triangle", &copy[i]));
        pages_ask_large(on_device ? copy[i] : *arrays[i], bytes[i]);
    }
    struct ordered to = {m->type, s->ptr, s->col, s->val, s->inverse};
    if (on_device)
        to = (struct ordered){m->type, copy[0], copy[1], copy[2], copy[3]};
    put_in_order(from, row, host_team(ctx, entries), &to);
    if (on_device)
        point_into_tiles(s, position, &to);
    for (int i = 0; on_device && i < 4; i++)
        TRY(spmv_upload(ctx, copy[i], *arrays[i], bytes[i]));
done:
    for (int i = 0; i < 4; i++)
        host_free(copy[i]);
    return st;
}

/* The tiles for a GPU, in its memory. drawn: the counters of this triangle and of the other one. */
static spmv_status send_tiles(spmv_preconditioner *m, const struct levels *levels, int64_t entries, struct solve *s,
                              int *drawn, int *drawn_next)
{
    spmv_status st = SPMV_OK;
    const int64_t n = levels->first[levels->count];
    struct precond_tiles *const tiles = &s->triangle.tiles;
    struct precond_tile *copy = NULL;
    TRY(host_alloc(m->ctx, s->tiles * (int64_t)sizeof *copy, "tiles of a solve", (void **)&copy));
    *tiles = (struct precond_tiles){.count = s->tiles, .lanes = 1, .drawn = drawn, .drawn_next = drawn_next};
    while (tiles->lanes < 32 && tiles->lanes * n < entries)
        tiles->lanes *= 2;
    for (int64_t t = 0; t < s->tiles; t++) {
        const struct tile *const tile = s->tile + t;
        const int64_t gate = tile->level - (tile->many ? GATE_SMALL : GATE_LARGE);
        copy[t] = (struct precond_tile){.begin = (int32_t)tile->begin,
                                        .end = (int32_t)tile->end,
                                        .gate = gate < 0 ? -1 : levels->row[levels->first[gate + 1] - 1],
                                        .inside = tile->many};
        if (tile->many)
            tiles->inside = (int)max_i64(tiles->inside, tile->end - tile->begin);
    }
    TRY(send(m, copy, s->tiles * (int64_t)sizeof *copy, &s->tiles_there));
    tiles->tile = s->tiles_there;
done:
    host_free(copy);
    return st;
}

/* drawn: on a GPU the counter of this triangle, drawn_next that of the other one. */
static spmv_status make_solve(spmv_preconditioner *m, struct host_rows *from, const int32_t *order, bool backward,
                              int *drawn, int *drawn_next, struct solve *s)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = m->ctx;
    const bool on_device = context_on_device(ctx);
    const int64_t n = from->rows, entries = from->ptr[n] - n;
    int64_t large_entries = 0;
    int32_t *position = NULL;
    struct levels levels = {0};
    TRY(levels_of(ctx, from, order, backward, &levels));
    TRY(host_alloc(ctx, n * 4, "the order of a triangle", (void **)&position));
    TRY(order_entries(ctx, levels.row, position, from));
    m->levels = max_i64(m->levels, levels.count);
    TRY(cut_levels(m, from, &levels, on_device ? &on_gpu : &on_host, s, &large_entries));
    if (on_device) {
        TRY(send_tiles(m, &levels, entries, s, drawn, drawn_next));
    } else if (ctx->threads < THREADS_WORTH || entries + n < WORTH_A_TEAM || large_entries < (entries + n) / 2) {
        s->tiles = 0;
        keep_order(levels.row, order, n, backward);
    }
    TRY(fill(m, from, levels.row, position, s));
    TRY(send(m, levels.row, n * 4, &s->row));
    s->triangle = (struct precond_triangle){.rows = n,
                                            .ptr = s->ptr,
                                            .col = s->col,
                                            .row = s->row,
                                            .val = s->val,
                                            .inverse = s->inverse,
                                            .tiles = s->triangle.tiles};
    if (on_device || s->tiles == 0) {
        host_free(s->tile);
        s->tile = NULL;
    }
done:
    host_free(position);
    levels_release(&levels);
    return st;
}

static spmv_status check_range(const spmv_preconditioner *m, const struct host_rows *t)
{
    const double greatest = real_limits_of(m->type).greatest;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t k = t->ptr[i]; k < t->ptr[i + 1]; k++) {
            const bool diagonal = t->col[k] == i;
            if (!(fabs(t->val[k]) <= greatest && (!diagonal || fabs(1 / t->val[k]) <= greatest)))
                return context_fail(m->ctx, SPMV_ERROR_NOT_FINITE,
                                    "preconditioner %s: %g in row %lld%s of the factor is out of the range of %s",
                                    m->name, t->val[k], context_number(m->ctx, i), context_counted(m->ctx),
                                    spmv_type_name(m->type));
        }
    return SPMV_OK;
}

/* Makes the solves with both triangles, which it releases, one after the other. The orders of their rows: as in
 * triangles_make. */
static spmv_status make_both(spmv_preconditioner *m, struct host_rows *lower, const int32_t *order_of_lower,
                             struct host_rows *upper, const int32_t *order_of_upper, struct triangles **made)
{
    spmv_status st = SPMV_OK;
    struct triangles *f = NULL;
    TRY(host_alloc(m->ctx, sizeof *f, "a preconditioner", (void **)&f));
    memset(f, 0, sizeof *f);
    f->m = m;
    if (context_on_device(m->ctx)) {
        const int64_t bytes = m->rows * (int64_t)spmv_type_size(m->type);
        TRY(precond_alloc(m, max_i64(1, bytes), &f->between));
        TRY(precond_alloc(m, 2 * (int64_t)sizeof(int), &f->drawn));
        TRY(precond_triangles_begin_cuda(m->ctx, f->between, bytes, f->drawn));
    }
    int *const drawn = f->drawn, *const drawn_next = drawn == NULL ? NULL : drawn + 1;
    TRY(make_solve(m, lower, order_of_lower, false, drawn, drawn_next, &f->forward));
    host_rows_release(lower); /* before the second copy */
    TRY(make_solve(m, upper, order_of_upper, true, drawn_next, drawn, &f->backward));
    host_rows_release(upper);
    /* one thread must use its own order for both */
    if (f->forward.tiles == 0 || f->backward.tiles == 0)
        f->forward.tiles = f->backward.tiles = 0;
done:
    if (st != SPMV_OK && f != NULL) {
        destroy(f);
        f = NULL;
    }
    *made = f;
    return st;
}

/* -------------------------------------------------------------------- the transpose */

/* A triangle as stored, in host memory; of a GPU in copies. */
struct stored {
    const int64_t *ptr;
    const int32_t *col, *row;
    const void *val, *inverse;
    const struct precond_tile *tile; /* of a GPU */
    void *copy[6];
};

static spmv_status read_stored(const spmv_preconditioner *m, const struct solve *s, struct stored *to)
{
    spmv_status st = SPMV_OK;
    const int64_t n = m->rows, size = (int64_t)spmv_type_size(m->type);
    static const char what[] = "a factor";
    const void *at = NULL;
    TRY(context_read(m->ctx, s->ptr, (n + 1) * 8, what, &to->copy[0], &at));
    to->ptr = at;
    TRY(context_read(m->ctx, s->col, to->ptr[n] * 4, what, &to->copy[1], &at));
    to->col = at;
    TRY(context_read(m->ctx, s->row, n * 4, what, &to->copy[2], &at));
    to->row = at;
    TRY(context_read(m->ctx, s->val, to->ptr[n] * size, what, &to->copy[3], &at));
    to->val = at;
    TRY(context_read(m->ctx, s->inverse, n * size, what, &to->copy[4], &at));
    to->inverse = at;
    if (context_on_device(m->ctx))
        TRY(context_read(m->ctx, s->tiles_there, s->triangle.tiles.count * (int64_t)sizeof *to->tile, what,
                         &to->copy[5], &at));
    to->tile = context_on_device(m->ctx) ? at : NULL;
done:
    return st;
}

/* The columns of tiles of a GPU as numbers of rows (point_into_tiles). */
static void point_to_rows(const struct stored *t, int64_t tiles)
{
    int32_t *const col = (int32_t *)t->col; /* a copy */
    for (int64_t i = 0; i < tiles; i++)
        for (int64_t k = t->ptr[t->tile[i].begin]; k < t->ptr[t->tile[i].end]; k++)
            if (col[k] < 0)
                col[k] = t->row[t->tile[i].begin - 1 - col[k]];
}

/* *to: the transpose of a stored triangle. *order: its rows in the order of the solve. */
static spmv_status turn(const spmv_preconditioner *m, const struct solve *s, struct host_rows *to, int32_t **order)
{
    spmv_status st = SPMV_OK;
    struct stored t = {.ptr = NULL};
    int64_t *end = NULL;
    const int64_t n = m->rows;
    TRY(read_stored(m, s, &t));
    if (t.tile != NULL)
        point_to_rows(&t, s->triangle.tiles.count);
    TRY(host_rows_alloc(m->ctx, n, t.ptr[n] + n, to));
    TRY(host_alloc(m->ctx, n * 4, "the order of a triangle", (void **)order));
    TRY(host_alloc(m->ctx, n * 8, "rows of a triangle", (void **)&end));
    for (int64_t i = 0; i < n; i++)
        to->ptr[i + 1] = 1;
    for (int64_t k = 0; k < t.ptr[n]; k++)
        to->ptr[t.col[k] + 1]++;
    for (int64_t i = 0; i < n; i++) {
        to->ptr[i + 1] += to->ptr[i];
        end[i] = to->ptr[i];
    }
    for (int64_t p = 0; p < n; p++) {
        const int32_t i = (*order)[p] = t.row[p];
        to->col[end[i]] = i;
        to->val[end[i]++] = 1 / real_at(m->type, t.inverse, p);
        for (int64_t k = t.ptr[p]; k < t.ptr[p + 1]; k++) {
            to->col[end[t.col[k]]] = i;
            to->val[end[t.col[k]]++] = real_at(m->type, t.val, k);
        }
    }
done:
    for (int i = 0; i < 6; i++)
        host_free(t.copy[i]);
    host_free(end);
    return st;
}

/* z = L^-T U^-T Q' r */
static spmv_status apply_transposed(void *self, const void *r, void *z)
{
    const struct triangles *const f = self;
    const spmv_preconditioner *const m = f->m;
    if (f->column == NULL)
        return solve_both(f->transposed, r, z);
    const struct move move = {NULL, m->type, r, f->column, 32, f->product, m->rows, m->rows};
    const spmv_status st = m->ctx->backend->gather(m->ctx, &move);
    return st != SPMV_OK ? st : solve_both(f->transposed, f->product, z);
}

/* Copies the triangles. The order of a solve with a transposed triangle is the reverse of that with the triangle. */
static spmv_status transpose(void *self)
{
    spmv_status st = SPMV_OK;
    struct triangles *const f = self;
    spmv_preconditioner *const m = f->m;
    const int64_t levels = m->levels;
    struct host_rows lower = {0}, upper = {0};
    int32_t *of_lower = NULL, *of_upper = NULL;
    TRY(turn(m, &f->backward, &lower, &of_lower));
    for (int64_t i = 0, j = m->rows - 1; i < j; i++, j--) {
        const int32_t kept = of_lower[i];
        of_lower[i] = of_lower[j];
        of_lower[j] = kept;
    }
    TRY(turn(m, &f->forward, &upper, &of_upper));
    TRY(make_both(m, &lower, of_lower, &upper, of_upper, &f->transposed));
    m->apply_transposed = apply_transposed;
done:
    m->levels = levels;
    host_rows_release(&lower);
    host_rows_release(&upper);
    host_free_all(of_lower, of_upper);
    return st;
}

spmv_status triangles_make(spmv_preconditioner *m, struct host_rows *lower, struct host_rows *upper,
                           const int32_t *order, const int32_t *column)
{
    spmv_status st = SPMV_OK;
    struct triangles *f = NULL;
    TRY(check_range(m, lower));
    TRY(check_range(m, upper));
    TRY(make_both(m, lower, order, upper, order, &f));
    if (column != NULL) {
        TRY(precond_alloc(m, m->rows * (int64_t)spmv_type_size(m->type), &f->product));
        TRY(send(m, column, m->rows * 4, &f->column));
    }
    const size_t n = strlen(m->layout);
    snprintf(m->layout + n, sizeof m->layout - n, "; solves in %lld level%s%s", (long long)m->levels, plural(m->levels),
             f->forward.tiles > 0        ? ", shared by threads"
             : context_on_device(m->ctx) ? ""
                                         : ", by one thread");
    m->self = f;
    m->apply = apply;
    m->transpose = transpose;
    m->destroy = destroy;
done:
    if (st != SPMV_OK && f != NULL)
        destroy(f);
    return st;
}
