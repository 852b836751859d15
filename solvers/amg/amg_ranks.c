/* Levels of which several ranks have parts.
 *
 * A rank runs the same steps as one that has the whole level, for its own rows and for those of
 * other ranks beside them (ghosts), in the layout of struct rank_halo: l->rows counts all of
 * them. Ghosts have no entries, so steps leave nothing useful for them; then amg_fetch takes
 * what their owners have found. Ties are broken by the number of the row in the whole level, and
 * what combines rows does not depend on an order. So the hierarchy has the bits of one that a
 * single rank makes, and so for any number of ranks.
 *
 * A coarse row belongs to the rank of its root, and rows are numbered in the order of their
 * roots: each rank has a range of them. Chunks are those of the first level: chunk c of a level
 * has the roots of chunk c of the level before.
 *
 * A level of at most WHOLE_ROWS rows is made whole on each rank, with all that follows: then an
 * exchange would take longer than the products. The limit depends on the size alone.
 *
 * One rank has all levels whole, so its set-up is the one without ranks. Its products are those of several ranks
 * (amg_open_alone), since the sum of a row must be the same for any number of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"

/* On a GPU, products of so many rows take less than the exchanges of a level. Tests have fewer. */
#ifndef SPMV_AMG_WHOLE_ROWS
#define SPMV_AMG_WHOLE_ROWS (1 << 16)
#endif
enum { WHOLE_ROWS = 4096, WHOLE_ROWS_GPU = SPMV_AMG_WHOLE_ROWS };

static const char *const what = "a level of several ranks";

static int ranks_of(const struct amg *amg)
{
    return amg->ranks->count;
}

/* Whether several ranks would have parts of the level. */
static bool is_divided(const struct amg *amg, const struct amg_level *l)
{
    return l->all_rows > amg_whole_rows(amg);
}

int64_t amg_own_rows(const struct amg_level *l)
{
    return l->halo != NULL ? l->halo->own : l->rows;
}

int64_t amg_room(const struct amg_level *l)
{
    return l->halo != NULL ? l->halo->room : 0;
}

int64_t amg_first_row(const struct amg_level *l)
{
    return l->halo != NULL ? l->halo->first - l->halo->room : 0;
}

void *amg_own_part(const struct amg *amg, const struct amg_level *l, const void *vector)
{
    return (char *)(uintptr_t)vector + amg_room(l) * amg_type_size(amg);
}

int64_t amg_own_sample(const struct amg_level *l, int64_t stride, int64_t *begin)
{
    const int64_t first = amg_first_row(l) + amg_room(l);
    const int64_t from = ceil_divide(first, stride), to = ceil_divide(first + amg_own_rows(l), stride);
    *begin = from * stride - amg_first_row(l);
    return to - from;
}

spmv_csr amg_own_matrix(const struct amg_level *l, spmv_csr a)
{
    if (l->halo != NULL) {
        a.rows = l->halo->own;
        a.row_ptr = (const int64_t *)a.row_ptr + l->halo->room;
    }
    return a;
}

/* ------------------------------------------------------------- numbers of all ranks */

spmv_status amg_fetch(const struct amg *amg, const struct amg_level *l, void *array, int64_t size)
{
    return l->halo != NULL ? amg->tools->fetch(l->halo, array, size) : SPMV_OK;
}

spmv_status amg_fetch_vector(const struct amg *amg, const struct amg_level *l, void *vector)
{
    return amg_fetch(amg, l, vector, amg_type_size(amg));
}

spmv_status amg_gather_numbers(const struct amg *amg, const void *own, int64_t count, void **all)
{
    spmv_status st = SPMV_OK;
    const int64_t ranks = ranks_of(amg);
    int64_t *offset = NULL;
    *all = NULL;
    TRY(host_alloc(amg->ctx, (ranks + 1) * 8, what, (void **)&offset));
    TRY(host_alloc(amg->ctx, max_i64(1, ranks * count) * 8, what, all));
    for (int64_t r = 0; r <= ranks; r++)
        offset[r] = r * count * 8;
    TRY(amg->tools->gather(amg->ranks->self, own, *all, offset));
done:
    host_free(offset);
    return st;
}

/* A number that is not finite is larger than any. */
spmv_status amg_largest_of_ranks(const struct amg *amg, double *numbers, int count)
{
    spmv_status st = SPMV_OK;
    double *all = NULL;
    if (amg->ranks == NULL)
        return SPMV_OK;
    TRY(amg_gather_numbers(amg, numbers, count, (void **)&all));
    for (int i = 0; i < ranks_of(amg) * count; i++) {
        double *const most = &numbers[i % count];
        if (!(all[i] <= *most))
            *most = all[i];
    }
done:
    host_free(all);
    return st;
}

spmv_status amg_smallest_of_ranks(const struct amg *amg, double *number)
{
    spmv_status st = SPMV_OK;
    if (amg->ranks == NULL)
        return SPMV_OK;
    *number = -*number;
    st = amg_largest_of_ranks(amg, number, 1);
    *number = -*number;
    return st;
}

spmv_status amg_add_ranks(const struct amg *amg, const struct amg_level *l, int64_t *number)
{
    return l->halo != NULL ? amg_add_all_ranks(amg, number) : SPMV_OK;
}

spmv_status amg_add_all_ranks(const struct amg *amg, int64_t *number)
{
    spmv_status st = SPMV_OK;
    int64_t *all = NULL;
    if (amg->ranks == NULL || ranks_of(amg) == 1)
        return SPMV_OK;
    TRY(amg_gather_numbers(amg, number, 1, (void **)&all));
    *number = 0;
    for (int r = 0; r < ranks_of(amg); r++)
        *number += all[r];
done:
    host_free(all);
    return st;
}

/* ------------------------------------------------------------- layouts */

/* The row offsets of own rows, whose entries end at `end`, in the layout of a halo: other rows are empty. */
static spmv_status extend_offsets(const struct amg *amg, const struct rank_halo *h, const int64_t *own, int64_t end,
                                  struct amg_pool *pool, int64_t **offsets)
{
    spmv_status st = SPMV_OK;
    TRY(amg_alloc(pool, (h->room + h->own + h->after + 1) * 8, (void **)offsets));
    if (h->room > 0)
        TRY(spmv_map_index(amg->ctx, SPMV_I64, &(int64_t){0}, &(int64_t){0}, *offsets, h->room));
    TRY(spmv_map(amg->ctx, SPMV_MAP_COPY, SPMV_I64, own, *offsets + h->room, h->own + 1));
    if (h->after > 0)
        TRY(spmv_map_index(amg->ctx, SPMV_I64, &end, &(int64_t){0}, *offsets + h->room + h->own + 1, h->after));
done:
    return st;
}

/* The pool takes arrays over. */
static spmv_status adopt(const struct amg *amg, struct amg_pool *pool, struct rank_arrays *a, spmv_csr *m)
{
    void *const blocks[] = {a->row_ptr, a->col, a->val};
    const int64_t bytes[] = {(a->rows + 1) * 8, a->nnz * 4, a->nnz * amg_type_size(amg)};
    if (pool->blocks + 3 > AMG_BLOCKS)
        return context_fail(amg->ctx, SPMV_ERROR_LIMIT, "preconditioner amg: more than %d arrays", AMG_BLOCKS);
    for (int i = 0; i < 3; i++) {
        pool->block[pool->blocks++] = blocks[i];
        pool->bytes += bytes[i];
    }
    m->row_ptr = a->row_ptr;
    m->row_ptr_bits = 64;
    m->col = a->col;
    m->val = a->val;
    m->rows = a->rows;
    m->nnz = a->nnz;
    m->type = amg->type;
    m->memory = SPMV_MEMORY_CONTEXT;
    *a = (struct rank_arrays){.nnz = 0};
    return SPMV_OK;
}

static void drop_arrays(const struct amg *amg, struct rank_arrays *a)
{
    context_free(amg->ctx, a->row_ptr);
    context_free(amg->ctx, a->col);
    context_free(amg->ctx, a->val);
}

struct amg_numbers amg_numbers_of(const struct amg_level *l)
{
    const struct rank_halo *const h = l->halo;
    struct amg_numbers n = {0};
    if (h != NULL)
        n = (struct amg_numbers){l->ghost, h->room, h->before, h->own, h->after, h->first};
    return n;
}

/* Memory for where rows and chunks of a level begin. */
static spmv_status new_bounds(const struct amg *amg, int64_t **row_of_rank, int64_t **chunk)
{
    spmv_status st = SPMV_OK;
    TRY(host_alloc(amg->ctx, (ranks_of(amg) + 1) * 8, what, (void **)row_of_rank));
    TRY(host_alloc(amg->ctx, (amg->ranks->chunks + 1) * 8, what, (void **)chunk));
done:
    return st;
}

spmv_status amg_clear_others(const struct amg *amg, const struct amg_level *l, int64_t *counts)
{
    spmv_status st = SPMV_OK;
    const int64_t zero = 0, room = amg_room(l), own = amg_own_rows(l);
    if (room > 0)
        TRY(spmv_map_index(amg->ctx, SPMV_I64, &zero, &zero, counts, room));
    if (l->rows > room + own)
        TRY(spmv_map_index(amg->ctx, SPMV_I64, &zero, &zero, counts + room + own, l->rows - room - own));
done:
    return st;
}

/* Rows of the lists have as much room as those of the matrix. */
spmv_status amg_fetch_near(const struct amg *amg, const struct amg_level *l, const spmv_csr *matrix,
                           struct amg_pool *work, struct amg_csr *near)
{
    spmv_status st = SPMV_OK;
    struct rank_arrays all = {.nnz = 0};
    spmv_csr lists = *matrix;
    if (l->halo == NULL)
        return SPMV_OK;
    lists.col = near->col;
    lists.val = near->val;
    lists = amg_own_matrix(l, lists);
    TRY(amg->tools->fetch_rows(l->halo, &lists, &all));
    TRY(adopt(amg, work, &all, &lists));
    *near = amg_rows_of(&lists);
done:
    drop_arrays(amg, &all);
    return st;
}

spmv_status amg_fetch_others(const struct amg *amg, const struct amg_level *l, const void *values,
                             const int32_t *needed, int64_t needs, struct amg_pool *work, struct amg_csr *others)
{
    spmv_status st = SPMV_OK;
    struct rank_arrays all = {.nnz = 0};
    spmv_csr rows = amg_own_matrix(l, amg_with_values(amg, l->a, values));
    if (l->halo == NULL)
        return SPMV_OK;
    TRY(amg->tools->fetch_others(l->halo, &rows, needed, needs, &all));
    TRY(adopt(amg, work, &all, &rows));
    *others = amg_rows_of(&rows);
done:
    drop_arrays(amg, &all);
    return st;
}

/* ------------------------------------------------------------- the first level */

/* *own: the row offsets of the plan's matrix, of 64 bits. */
static spmv_status take_offsets(struct amg *amg, const spmv_csr *a, struct amg_pool *work, const int64_t **own)
{
    spmv_status st = SPMV_OK;
    struct amg_lengths s = {.a = amg_rows_of(a)};
    int64_t *offsets = NULL, total = 0;
    *own = a->row_ptr;
    if (a->row_ptr_bits == 64)
        return SPMV_OK;
    TRY(amg_alloc(work, (a->rows + 1) * 8, (void **)&s.length));
    TRY(amg_alloc(work, (a->rows + 1) * 8, (void **)&offsets));
    TRY(amg_run(amg->ctx, AMG_LENGTHS, amg->m->type, &s, a->rows));
    TRY(amg_sum_counts(amg, s.length, a->rows, offsets, &total));
    *own = offsets;
done:
    return st;
}

/* amg->negative, if the matrix need not be symmetric: all diagonal entries are. */
static spmv_status find_sign(struct amg *amg, const struct rank_halo *h)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    const spmv_csr *const a = &amg->given;
    const spmv_type type = a->val != NULL ? a->type : SPMV_F64;
    const int64_t size = (int64_t)spmv_type_size(type);
    void *diagonal = NULL;
    union real most = {0};
    double largest = -HUGE_VAL;
    TRY(amg_alloc(&work, a->rows * size, &diagonal));
    TRY(spmv_matrix_diagonal(amg->ctx, a, diagonal));
    if (h->own > 0) {
        TRY(amg_reduce(amg, &work, SPMV_MAX, type, (char *)diagonal + h->room * size, h->own, &most));
        largest = real_at(type, &most, 0);
    }
    TRY(amg_largest_of_ranks(amg, &largest, 1));
    amg->negative = largest < 0;
done:
    amg_release(&work);
    return st;
}

spmv_status amg_take_rows_of_rank(struct amg *amg, const spmv_plan *plan, bool any)
{
    spmv_status st = SPMV_OK;
    const struct rank_halo h = {.room = plan->ranks->before, .own = plan->a.rows, .after = plan->ranks->after};
    struct amg_pool work = {.ctx = amg->ctx};
    const int64_t *own = NULL;
    int64_t *offsets = NULL;
    amg->ranks = plan->ranks;
    amg->tools = plan->ranks->tools;
    amg->given = plan->a;
    if (ranks_of(amg) > 1) {
        TRY(take_offsets(amg, &plan->a, &work, &own));
        TRY(extend_offsets(amg, &h, own, plan->a.nnz, &amg->lasting, &offsets));
        amg->given.rows = amg->given.cols = h.room + h.own + h.after;
        amg->given.row_ptr = offsets;
        amg->given.row_ptr_bits = 64;
    }
    if (any)
        TRY(find_sign(amg, &h));
done:
    amg_release(&work);
    return st;
}

spmv_status amg_open_first(const struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct rank_first first;
    if (amg->ranks == NULL || ranks_of(amg) == 1)
        return SPMV_OK;
    TRY(amg->tools->first(amg->ranks->self, amg->m->type, &first));
    l->halo = first.halo;
done:
    return st;
}

spmv_status amg_cut_nodes(const struct amg *amg, int64_t *begins, int64_t rows)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    int64_t *first = NULL, *ones = NULL, chunks = 0;
    if (amg->ranks == NULL)
        return SPMV_OK;
    while (chunks < amg->ranks->chunks && amg->ranks->chunk[chunks] < rows)
        chunks++;
    if (chunks == 0)
        return SPMV_OK;
    TRY(amg_alloc(&work, chunks * 8, (void **)&first));
    TRY(amg_alloc(&work, chunks * 8, (void **)&ones));
    TRY(spmv_upload(amg->ctx, amg->ranks->chunk, first, chunks * 8));
    TRY(spmv_map_index(amg->ctx, SPMV_I64, &(int64_t){1}, &(int64_t){0}, ones, chunks));
    TRY(spmv_scatter(amg->ctx, SPMV_I64, ones, first, 64, begins, rows, chunks));
done:
    amg_release(&work);
    return st;
}

spmv_status amg_check_nodes(const struct amg *amg, int block)
{
    return amg->ranks->block % block == 0
               ? SPMV_OK
               : context_fail(amg->ctx, SPMV_ERROR_UNSUPPORTED,
                              "preconditioner amg: nodes of %d rows, but those of the group's matrix have %d", block,
                              amg->ranks->block);
}

/* *chunk: a copy of where chunks begin. */
static spmv_status take_chunks(const struct amg *amg, const int64_t *from, int64_t **chunk)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = (amg->ranks->chunks + 1) * 8;
    TRY(host_alloc(amg->ctx, bytes, what, (void **)chunk));
    memcpy(*chunk, from, (size_t)bytes);
done:
    return st;
}

spmv_status amg_begin_ranks(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    struct amg_level *l = &amg->level[0];
    struct rank_first first;
    l->all_nnz = amg->ranks->nnz;
    if (ranks_of(amg) == 1)
        return is_divided(amg, l) ? take_chunks(amg, amg->ranks->chunk, &l->chunk) : SPMV_OK;
    TRY(amg->tools->first(amg->ranks->self, amg->type, &first));
    l->halo = first.halo;
    l->rows = l->halo->room + l->halo->own + l->halo->after;
    l->all_rows = amg->ranks->rows;
    TRY(new_bounds(amg, &l->row_of_rank, &l->chunk));
    memcpy(l->row_of_rank, first.row_of_rank, (size_t)(ranks_of(amg) + 1) * 8);
    memcpy(l->chunk, first.chunk, (size_t)(amg->ranks->chunks + 1) * 8);
    l->ghost = l->halo->there;
done:
    return st;
}

/* ------------------------------------------------------------- coarse rows */

/* Where the chunks begin: those of the rows that are numbered. */
static spmv_status find_coarse_chunks(const struct amg *amg, const struct amg_level *l, const int64_t *own_offsets,
                                      int64_t *chunk)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    const int64_t count = amg->ranks->chunks + 1;
    int64_t *rows = NULL, *offsets = NULL;
    TRY(amg_alloc(&work, count * 8, (void **)&rows));
    TRY(amg_alloc(&work, count * 8, (void **)&offsets));
    TRY(spmv_upload(amg->ctx, l->chunk, rows, count * 8));
    TRY(spmv_gather(amg->ctx, SPMV_I64, own_offsets, amg_own_rows(l) + 1, rows, 64, offsets, count));
    TRY(spmv_download(amg->ctx, offsets, chunk, count * 8));
done:
    amg_release(&work);
    return st;
}

spmv_status amg_count_nodes(struct amg *amg, const int64_t *before, int64_t rows, int64_t own)
{
    spmv_status st = SPMV_OK;
    struct amg_level l = {.chunk = (int64_t *)(uintptr_t)(amg->ranks != NULL ? amg->ranks->chunk : NULL), .rows = rows};
    int64_t *all = NULL;
    if (amg->ranks == NULL)
        return SPMV_OK;
    TRY(new_bounds(amg, &amg->node_of_rank, &amg->node_chunk));
    TRY(find_coarse_chunks(amg, &l, before, amg->node_chunk));
    TRY(amg_gather_numbers(amg, &own, 1, (void **)&all));
    amg->node_of_rank[0] = 0;
    for (int r = 0; r < ranks_of(amg); r++)
        amg->node_of_rank[r + 1] = amg->node_of_rank[r] + all[r];
done:
    host_free(all);
    return st;
}

/* Of one rank. */
static spmv_status number_alone(struct amg *amg, const struct amg_level *l, const int64_t *counts, int64_t *offsets,
                                int64_t *total)
{
    spmv_status st = SPMV_OK;
    TRY(amg_sum_counts(amg, counts, l->rows, offsets, total));
    if (amg->coarse.chunk == NULL)
        TRY(host_alloc(amg->ctx, (amg->ranks->chunks + 1) * 8, what, (void **)&amg->coarse.chunk));
    TRY(find_coarse_chunks(amg, l, offsets, amg->coarse.chunk));
done:
    return st;
}

spmv_status amg_number_own(struct amg *amg, const struct amg_level *l, const int64_t *counts, int64_t *offsets,
                           int64_t *total)
{
    spmv_status st = SPMV_OK;
    if (l->halo == NULL)
        return number_alone(amg, l, counts, offsets, total);
    int64_t own = 0, *all = NULL;
    int64_t *const from = offsets + l->halo->room;
    struct amg_coarse_rows *const c = &amg->coarse;
    TRY(amg_sum_counts(amg, counts + l->halo->room, l->halo->own, from, &own));
    if (c->row_of_rank == NULL)
        TRY(new_bounds(amg, &c->row_of_rank, &c->chunk));
    TRY(find_coarse_chunks(amg, l, from, c->chunk));
    TRY(amg_gather_numbers(amg, &own, 1, (void **)&all));
    c->row_of_rank[0] = 0;
    for (int r = 0; r < ranks_of(amg); r++)
        c->row_of_rank[r + 1] = c->row_of_rank[r] + all[r];
    *total = c->row_of_rank[ranks_of(amg)];
    if (*total > INT32_MAX)
        TRY(context_fail(amg->ctx, SPMV_ERROR_LIMIT, "preconditioner amg: %lld rows of the second level",
                         (long long)*total));
    if (l->halo->own > 0)
        TRY(spmv_map_scalar(amg->ctx, SPMV_ADD, SPMV_I64, &c->row_of_rank[amg->ranks->rank], from, from, l->halo->own));
    TRY(amg_fetch(amg, l, offsets, 8));
done:
    host_free(all);
    return st;
}

/* ------------------------------------------------------------- the next level */

/* A halo for own rows with columns of the whole `cols`. */
static spmv_status open_halo(const struct amg *amg, const spmv_csr *own, const int64_t *col_of_rank, int64_t cols,
                             const int64_t *chunk, struct rank_halo **halo)
{
    const struct rank_rows rows = {.rows = own->rows,
                                   .nnz = own->nnz,
                                   .row_ptr = own->row_ptr,
                                   .col = (int32_t *)(uintptr_t)own->col,
                                   .col_of_rank = col_of_rank,
                                   .cols = cols,
                                   .chunk = chunk,
                                   .chunks = amg->ranks->chunks,
                                   .type = amg->type};
    return amg->tools->open(amg->ranks->self, &rows, halo);
}

/* Places in the layout of the level become numbers in the whole level. */
static spmv_status find_numbers(const struct amg *amg, const struct amg_level *l, struct amg_pool *pool, int32_t **col)
{
    spmv_status st = SPMV_OK;
    struct amg_renumbering s = {.numbers = amg_numbers_of(l), .from = l->a.col};
    TRY(amg_alloc(pool, l->a.nnz * 4, (void **)col));
    s.to = *col;
    TRY(run_renumber(amg, &s, l->a.nnz));
done:
    return st;
}

/* *halo: for own rows that have the columns of both matrices, with numbers in the whole level; these become places. */
static spmv_status open_both(struct amg *amg, const struct amg_level *l, const spmv_csr *a, const spmv_csr *t,
                             struct rank_halo **halo)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_both s = {.a = amg_rows_of(a), .t = amg_rows_of(t), .rows = a->rows};
    TRY(amg_alloc(&work, (a->rows + 1) * 8, (void **)&s.row_ptr));
    TRY(amg_alloc(&work, (a->nnz + t->nnz) * 4, (void **)&s.col));
    TRY(run_both(amg, &s, a->rows + 1));
    const struct rank_rows rows = {.rows = a->rows,
                                   .nnz = a->nnz + t->nnz,
                                   .others = t->nnz,
                                   .row_ptr = s.row_ptr,
                                   .col = s.col,
                                   .col_of_rank = l->row_of_rank,
                                   .cols = l->all_rows,
                                   .chunk = l->chunk,
                                   .chunks = amg->ranks->chunks,
                                   .type = amg->type};
    TRY(amg->tools->open(amg->ranks->self, &rows, halo));
    s.back = 1;
    TRY(run_both(amg, &s, a->rows + 1));
done:
    amg_release(&work);
    return st;
}

spmv_status amg_transpose_ranks(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct rank_arrays t = {.nnz = 0};
    struct rank_halo *halo = NULL;
    int32_t *numbers = NULL;
    int64_t *offsets = NULL, *offsets_t = NULL;
    if (l->halo == NULL)
        return SPMV_OK;
    spmv_csr own = amg_own_matrix(l, l->a), own_t = own;
    TRY(find_numbers(amg, l, &l->pool, &numbers));
    own.col = numbers;
    TRY(amg->tools->transpose(amg->ranks->self, l->row_of_rank, l->row_of_rank, &own, &t));
    TRY(adopt(amg, &l->work, &t, &own_t));
    TRY(open_both(amg, l, &own, &own_t, &halo));
    amg->tools->close(l->halo);
    l->halo = halo;
    l->rows = halo->room + halo->own + halo->after;
    TRY(extend_offsets(amg, halo, own.row_ptr, own.nnz, &l->pool, &offsets));
    TRY(extend_offsets(amg, halo, own_t.row_ptr, own_t.nnz, &l->work, &offsets_t));
    l->a = own;
    l->a_t = own_t;
    l->a.row_ptr = offsets;
    l->a_t.row_ptr = offsets_t;
    l->a.rows = l->a.cols = l->a_t.rows = l->a_t.cols = l->rows;
    l->ghost = l->halo->there;
done:
    drop_arrays(amg, &t);
    return st;
}

/* ------------------------------------------------------- products in one pass, on a GPU */

/* Whether all ranks have made something. st: of this rank; memory that is short is no error. */
static spmv_status all_made(const struct amg *amg, spmv_status st, bool *made)
{
    double failed = st != SPMV_OK || !*made;
    *made = false;
    if (st != SPMV_OK && st != SPMV_ERROR_MEMORY)
        return st;
    TRY(amg_largest_of_ranks(amg, &failed, 1));
    *made = failed == 0;
done:
    return st;
}

/* Arrays for R, and the lengths of its rows. *made: false if one is too long. */
static spmv_status begin_transpose(struct amg *amg, struct amg_level *l, struct amg_pool *work, struct amg_transpose *t,
                                   void **offsets, bool *made)
{
    spmv_status st = SPMV_OK;
    int32_t most = 0;
    TRY(amg_alloc(work, t->coarse * 4, (void **)&t->counts));
    TRY(amg_alloc(work, 2 * t->nnz * amg_type_size(amg), &t->entries));
    TRY(amg_new_r(amg, l, t->coarse, t->nnz, offsets));
    t->r = amg_rows_of(&l->r);
    TRY(amg_count_columns_cuda(amg->ctx, t));
    if (t->coarse > 0)
        TRY(amg_reduce(amg, work, SPMV_MAX, SPMV_I32, t->counts, t->coarse, &most));
    *made = most <= amg_longest_row_cuda();
done:
    return st;
}

/* Own rows of R in arrays of the level, with numbers in the whole level as columns. *made: false if that takes too
 * much memory, or a row is too long. */
static spmv_status transpose_at_once(struct amg *amg, struct amg_level *l, const spmv_csr *source, bool *made)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx}, *const pool = &l->pool;
    const int blocks = pool->blocks, rank = amg->ranks->rank;
    const int64_t bytes = pool->bytes, *const coarse = amg->coarse.row_of_rank;
    struct amg_transpose t = {.p = amg_rows_of(source),
                              .fine = source->rows,
                              .coarse = coarse[rank + 1] - coarse[rank],
                              .p_nnz = source->nnz,
                              .first_row = l->row_of_rank[rank],
                              .first = coarse[rank]};
    void *offsets = NULL;
    int64_t left = 0;
    *made = false;
    TRY(amg->tools->fetch_columns(amg->ranks->self, l->row_of_rank, coarse, source, &left, &t.others));
    t.nnz = source->nnz - left + t.others.count;
    st = begin_transpose(amg, l, &work, &t, &offsets, made);
    TRY(all_made(amg, st, made));
    if (!*made)
        goto done;
    TRY(spmv_expand_offsets(amg->ctx, t.counts, 32, offsets, t.coarse));
    TRY(amg_transpose_cuda(amg->ctx, amg->type, &t));
done:
    while (!*made && pool->blocks > blocks)
        amg_release_last(pool, 0);
    pool->bytes = *made ? pool->bytes : bytes;
    context_free(amg->ctx, t.others.row);
    context_free(amg->ctx, t.others.col);
    context_free(amg->ctx, t.others.val);
    amg_release(&work);
    return st;
}

/* Own rows of R, with numbers in the whole level as columns. */
static spmv_status find_r(struct amg *amg, struct amg_level *l, const spmv_csr *source)
{
    spmv_status st = SPMV_OK;
    struct rank_arrays r = {.nnz = 0};
    bool made = false;
    if (context_on_device(amg->ctx))
        TRY(transpose_at_once(amg, l, source, &made));
    if (!made) {
        TRY(amg->tools->transpose(amg->ranks->self, l->row_of_rank, amg->coarse.row_of_rank, source, &r));
        TRY(adopt(amg, &l->pool, &r, &l->r));
    }
done:
    drop_arrays(amg, &r);
    return st;
}

/* The elements of own rows and of those whose columns R has, in the layout of R. */
static spmv_status fetch_diagonal(struct amg *amg, struct amg_level *l, struct amg_pool *work, void **diagonal)
{
    spmv_status st = SPMV_OK;
    const struct rank_halo *const h = l->halo_r;
    TRY(amg_alloc_vector(amg, work, h->room + h->own + h->after, diagonal));
    if (h->own > 0)
        TRY(spmv_map(amg->ctx, SPMV_MAP_COPY, amg->type, amg_own_part(amg, l, l->diagonal),
                     (char *)*diagonal + h->room * amg_type_size(amg), h->own));
    TRY(amg->tools->fetch(h, *diagonal, amg_type_size(amg)));
done:
    return st;
}

/* Queues A P. p: with rows of other ranks. */
static spmv_status begin_product(struct amg *amg, struct amg_level *l, const spmv_csr *p, struct amg_pool *work,
                                 struct amg_galerkin *g)
{
    spmv_status st = SPMV_OK;
    const struct rank_halo *const h = l->halo_r;
    const spmv_csr a = amg_own_matrix(l, l->a);
    const int64_t most = a.nnz * (amg->classical ? 2 : 1), others = h->before + h->after;
    /* rows of other ranks have as many entries as own ones, more or less */
    const int64_t room = 2 * most + (a.rows > 0 ? others * (2 * most / a.rows + 1) : 0);
    *g =
        (struct amg_galerkin){.a = amg_rows_of(&a),
                              .p = amg_rows_of(p),
                              .r = amg_rows_of(&l->r),
                              .fine = a.rows,
                              .coarse = l->r.rows,
                              .front = h->room,
                              .a_nnz = a.nnz,
                              .p_nnz = (int64_t)((double)p->nnz * (double)a.rows / (double)max_i64(1, p->rows)),
                              .room = {amg_galerkin_room_cuda(amg->ctx, room), amg_galerkin_room_cuda(amg->ctx, most)}};
    const int64_t rows[] = {h->room + h->own + h->after, g->coarse};
    for (int k = 0; k < 2; k++) {
        TRY(amg_alloc(work, 2 * g->room[k] * amg_type_size(amg), &g->entries[k]));
        TRY(amg_alloc(work, rows[k] * 8, (void **)&g->places[k]));
    }
    TRY(amg_alloc(work, max_i64(g->fine, g->coarse) * 4, (void **)&g->list));
    TRY(amg_alloc(work, AMG_GALERKIN_COUNTERS, &g->counters));
    TRY(amg_alloc(work, (g->coarse + 1) * 8, (void **)&g->lengths));
    TRY(amg_ap_cuda(amg->ctx, amg->type, g));
done:
    return st;
}

/* Own rows of C = R (A P), with numbers in the whole next level as columns, and their mass (see the step coarse_mass).
 * p: as above. *made: false if that takes too much memory, or a row is too long. */
static spmv_status product_at_once(struct amg *amg, struct amg_level *l, const spmv_csr *p, double *mass,
                                   struct amg_pool *pool, spmv_csr *c, void **values, bool *made)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    const int blocks = pool->blocks;
    const int64_t bytes = pool->bytes;
    struct amg_galerkin g;
    void *diagonal = NULL;
    *made = true;
    st = begin_product(amg, l, p, &work, &g);
    TRY(all_made(amg, st, made));
    if (!*made)
        goto done;
    const struct rank_places ap = {g.places[0], g.entries[0], 2 * amg_type_size(amg), g.room[0], g.counters};
    TRY(amg->tools->fetch_places(l->halo_r, &ap, made));
    if (!*made)
        goto done;
    TRY(fetch_diagonal(amg, l, &work, &diagonal));
    g.diagonal = diagonal;
    g.mass = mass;
    st = amg_rap_cuda(amg->ctx, amg->type, &g);
    if (st == SPMV_OK)
        st = amg_new_rows(amg, pool, g.coarse, g.lengths, p->cols, g.room[1], c, values);
    *made = st == SPMV_OK && c->nnz <= g.room[1];
    TRY(all_made(amg, st, made));
    if (*made)
        TRY(amg_galerkin_place_cuda(amg->ctx, amg->type, &g, amg_rows_of(c), c->nnz));
done:
    *made = *made && st == SPMV_OK;
    while (!*made && pool->blocks > blocks)
        amg_release_last(pool, 0);
    pool->bytes = *made ? pool->bytes : bytes;
    amg_release(&work);
    return st;
}

/* ------------------------------------------------------------- general products */

/* C = A B with the values in the pool, the pattern in *plan. */
static spmv_status multiply(struct amg *amg, const spmv_csr *a, const spmv_csr *b, spmv_spgemm_plan **plan,
                            struct amg_pool *pool, spmv_csr *c, void **values)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_spgemm_plan_create(amg->ctx, a, b, NULL, plan));
    spmv_spgemm_pattern(*plan, c);
    TRY(amg_alloc_vector(amg, pool, c->nnz, values));
    *c = amg_with_values(amg, *c, *values);
    TRY(spmv_spgemm_values(*plan, a->val, b->val, *values));
done:
    return st;
}

/* The mass of each own row; see the step coarse_mass. */
static spmv_status find_mass(struct amg *amg, struct amg_level *l, double *mass)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    void *diagonal = NULL;
    TRY(fetch_diagonal(amg, l, &work, &diagonal));
    const struct amg_coarse s = {.r = amg_rows_of(&l->r), .diagonal = diagonal, .mass = mass};
    TRY(run_coarse_mass(amg, &s, l->r.rows));
done:
    amg_release(&work);
    return st;
}

/* As product_at_once, with the pattern in *plan. */
static spmv_status product_of_plans(struct amg *amg, struct amg_level *l, const spmv_csr *p, double *mass,
                                    spmv_spgemm_plan **plan, struct amg_pool *to, spmv_csr *c, void **values)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct rank_arrays all = {.nnz = 0};
    spmv_spgemm_plan *ap_plan = NULL;
    void *ap_values = NULL;
    spmv_csr ap, ap_all = *p;
    const spmv_csr a = amg_own_matrix(l, l->a);
    TRY(multiply(amg, &a, p, &ap_plan, &work, &ap, &ap_values));
    TRY(amg->tools->fetch_rows(l->halo_r, &ap, &all));
    TRY(adopt(amg, &work, &all, &ap_all));
    spmv_spgemm_plan_destroy(ap_plan);
    ap_plan = NULL;
    TRY(multiply(amg, &l->r, &ap_all, plan, to, c, values));
    TRY(find_mass(amg, l, mass));
done:
    drop_arrays(amg, &all);
    spmv_spgemm_plan_destroy(ap_plan);
    amg_release(&work);
    return st;
}

/* c = R A P, the own rows, with numbers in the whole next level as columns, and their mass: the values in the pool, the
 * pattern there or in *plan. */
static spmv_status find_product(struct amg *amg, struct amg_level *l, const spmv_csr *p, double *mass,
                                spmv_spgemm_plan **plan, struct amg_pool *to, spmv_csr *c, void **values)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct rank_arrays all = {.nnz = 0};
    spmv_csr p_all = *p;
    bool made = false;
    TRY(amg->tools->fetch_rows(l->halo, p, &all));
    TRY(adopt(amg, &work, &all, &p_all));
    if (context_on_device(amg->ctx))
        TRY(product_at_once(amg, l, &p_all, mass, to, c, values, &made));
    if (!made)
        TRY(product_of_plans(amg, l, &p_all, mass, plan, to, c, values));
done:
    drop_arrays(amg, &all);
    amg_release(&work);
    return st;
}

/* The layout of the next level, whose own rows are c. */
static spmv_status take_layout(struct amg *amg, struct amg_level *next, const spmv_csr *c)
{
    spmv_status st = SPMV_OK;
    int64_t *offsets = NULL;
    TRY(new_bounds(amg, &next->row_of_rank, &next->chunk));
    memcpy(next->row_of_rank, amg->coarse.row_of_rank, (size_t)(ranks_of(amg) + 1) * 8);
    memcpy(next->chunk, amg->coarse.chunk, (size_t)(amg->ranks->chunks + 1) * 8);
    next->all_rows = next->row_of_rank[ranks_of(amg)];
    TRY(open_halo(amg, c, next->row_of_rank, next->all_rows, next->chunk, &next->halo));
    next->rows = next->halo->room + next->halo->own + next->halo->after;
    TRY(extend_offsets(amg, next->halo, c->row_ptr, c->nnz, &next->pool, &offsets));
    next->a = *c;
    next->a.rows = next->a.cols = next->rows;
    next->a.row_ptr = offsets;
    next->all_nnz = c->nnz;
    TRY(amg_add_ranks(amg, next, &next->all_nnz));
    next->ghost = next->halo->there;
done:
    return st;
}

/* The halo of one rank: nothing is of others. */
static spmv_status open_alone(const struct amg *amg, const spmv_csr *own, const int64_t *chunk, struct rank_halo **halo)
{
    const int64_t col_of_rank[] = {0, own->cols};
    return open_halo(amg, own, col_of_rank, own->cols, chunk, halo);
}

spmv_status amg_open_transfers(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    int64_t *const coarse = amg->coarse.chunk;
    if (l->chunk == NULL)
        return SPMV_OK;
    for (int64_t c = 0; c <= amg->ranks->chunks; c++)
        coarse[c] *= max_i64(l->nulls, 1);
    TRY(open_alone(amg, &l->p, l->chunk, &l->halo_p));
    TRY(open_alone(amg, &l->r, coarse, &l->halo_r));
    if (is_divided(amg, l + 1))
        TRY(take_chunks(amg, coarse, &l[1].chunk));
done:
    return st;
}

spmv_status amg_open_alone(const struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct rank_first first;
    if (l->chunk == NULL || l->halo != NULL)
        return SPMV_OK;
    if (l > amg->level || amg->general) /* as the layout of A and A' of several ranks */
        return open_alone(amg, &l->a, l->chunk, &l->halo);
    TRY(amg->tools->first(amg->ranks->self, amg->type, &first));
    l->halo = first.halo;
done:
    return st;
}

/* The own rows of the product, with the columns of the whole level, become those without their small entries. */
static spmv_status drop_small(struct amg *amg, struct amg_level *product, struct amg_level *next, spmv_csr *c)
{
    spmv_status st = SPMV_OK;
    TRY(take_layout(amg, product, c));
    TRY(amg_drop_small(amg, product, next));
    int32_t *const col = (int32_t *)(uintptr_t)next->a.col;
    const struct amg_renumbering to_all = {.numbers = amg_numbers_of(product), .from = col, .to = col};
    TRY(run_renumber(amg, &to_all, next->a.nnz));
    *c = amg_own_matrix(product, next->a);
done:
    return st;
}

spmv_status amg_multiply_ranks(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct amg_level product = {.pool.ctx = amg->ctx}, *const next = l + 1, *const to = amg->general ? &product : next;
    const spmv_csr p = amg_own_matrix(l, l->p), source = amg_own_matrix(l, *amg_source_of_r(amg, l));
    const int64_t *const coarse_of_rank = amg->coarse.row_of_rank;
    const int64_t coarse = coarse_of_rank[amg->ranks->rank + 1] - coarse_of_rank[amg->ranks->rank];
    spmv_csr c;
    double *own_mass = NULL, *mass = NULL;
    TRY(find_r(amg, l, &source));
    TRY(open_halo(amg, &l->r, l->row_of_rank, l->all_rows, amg->coarse.chunk, &l->halo_r));
    l->r.cols = l->halo_r->room + l->halo_r->own + l->halo_r->after;
    TRY(amg_alloc(&l->work, coarse * 8, (void **)&own_mass));
    TRY(find_product(amg, l, &p, own_mass, &l->rap, &to->pool, &c, &to->values));
    if (amg->general)
        TRY(drop_small(amg, &product, next, &c));
    TRY(take_layout(amg, next, &c));
    if (amg->general && next->all_rows > amg_whole_rows(amg))
        TRY(amg_transpose_ranks(amg, next));
    TRY(amg_alloc(&l->work, next->rows * 8, (void **)&mass));
    TRY(spmv_map_index(amg->ctx, SPMV_F64, &(double){0}, &(double){0}, mass, next->rows));
    if (coarse > 0)
        TRY(spmv_map(amg->ctx, SPMV_MAP_COPY, SPMV_F64, own_mass, mass + next->halo->room, coarse));
    TRY(amg_alloc(&next->pool, next->rows * 8, (void **)&next->least));
    TRY(amg_check_next(amg, l, mass));
    if (next->all_rows > amg_whole_rows(amg))
        TRY(open_halo(amg, &p, next->row_of_rank, next->all_rows, l->chunk, &l->halo_p));
    else /* its vectors are whole */
        TRY(open_halo(amg, &p, NULL, next->all_rows, l->chunk, &l->halo_p));
done:
    if (amg->general) { /* it has the pattern of the product */
        spmv_spgemm_plan_destroy(l->rap);
        l->rap = NULL;
    }
    amg_close_ranks(amg, &product);
    amg_release(&product.pool);
    return st;
}

/* ------------------------------------------------------------- nodes */

/* The nodes of the rows of a level, in a layout of their own: those of lower ranks, own ones,
 * others. */
struct node_layout {
    struct amg_numbers numbers; /* ghost: in the context's memory */
    struct amg_slots slots;
    int64_t nodes;
};

/* Nodes of the rows of other ranks, which have these slots, ascending; *before: those of lower ranks. */
static int64_t list_nodes(const struct rank_halo *h, const int32_t *ghost, int block, int32_t *list, int64_t *before)
{
    int64_t count = 0;
    *before = 0;
    for (int64_t k = 0; k < h->before + h->after; k++) {
        const int32_t node = ghost[k] / block;
        if (count == 0 || list[count - 1] != node)
            list[count++] = node;
        if (k < h->before)
            *before = count;
    }
    return count;
}

/* Slots of the level's rows: *of_own: of own rows, from the rank's first slot on; *of_ghosts: of rows of other ranks, in
 * the whole level. Both in host memory; NULL: rows are slots. */
static spmv_status find_row_slots(const struct amg *amg, const struct amg_level *l, int32_t **of_own,
                                  int32_t **of_ghosts)
{
    spmv_status st = SPMV_OK;
    const struct rank_halo *const h = l->halo;
    const struct amg_slots slots = amg_slots_of(amg, l);
    struct amg_pool work = {.ctx = amg->ctx};
    int32_t *all = NULL;
    if (slots.slot == NULL)
        return SPMV_OK;
    const int32_t first = (int32_t)(amg->node_of_rank[amg->ranks->rank] * slots.block);
    TRY(host_alloc(amg->ctx, max_i64(1, h->own) * 4, what, (void **)of_own));
    TRY(host_alloc(amg->ctx, max_i64(1, h->before + h->after) * 4, what, (void **)of_ghosts));
    TRY(amg_alloc(&work, l->rows * 4, (void **)&all));
    if (h->own > 0) {
        TRY(spmv_map_scalar(amg->ctx, SPMV_ADD, SPMV_I32, &first, slots.slot, all + h->room, h->own));
        TRY(spmv_download(amg->ctx, slots.slot, *of_own, h->own * 4));
    }
    TRY(amg_fetch(amg, l, all, 4));
    TRY(spmv_download(amg->ctx, all + h->room - h->before, *of_ghosts, h->before * 4));
    TRY(spmv_download(amg->ctx, all + h->room + h->own, *of_ghosts + h->before, h->after * 4));
done:
    amg_release(&work);
    return st;
}

static spmv_status find_layout(const struct amg *amg, const struct amg_level *l, struct amg_pool *work,
                               struct node_layout *n)
{
    spmv_status st = SPMV_OK;
    const struct rank_halo *const h = l->halo;
    const int block = l->block;
    int32_t *list = NULL, *slot = NULL, *row = NULL, *there = NULL, *of_own = NULL, *of_ghosts = NULL;
    int64_t before = 0;
    TRY(find_row_slots(amg, l, &of_own, &of_ghosts));
    const int32_t *const ghost_slot = of_ghosts != NULL ? of_ghosts : h->ghost;
    const int64_t first = of_own != NULL ? amg->node_of_rank[amg->ranks->rank] : h->first / block;
    TRY(host_alloc(amg->ctx, max_i64(1, h->before + h->after) * 4, what, (void **)&list));
    const int64_t ghosts = list_nodes(h, ghost_slot, block, list, &before),
                  own = of_own != NULL ? amg->nodes : h->own / block;
    n->nodes = ghosts + own;
    TRY(host_alloc(amg->ctx, max_i64(1, l->rows) * 4, what, (void **)&slot));
    TRY(host_alloc(amg->ctx, max_i64(1, n->nodes * block) * 4, what, (void **)&row));
    for (int64_t k = 0; k < n->nodes * block; k++)
        row[k] = -1;
    for (int64_t i = 0, ghost = 0; i < l->rows; i++) {
        const int64_t own_row = i - h->room, k = own_row < 0 ? own_row + h->before : h->before + own_row - h->own;
        const bool mine = own_row >= 0 && own_row < h->own;
        slot[i] = 0;
        if (!mine && k < 0) /* only aligns */
            continue;
        while (!mine && list[ghost] != ghost_slot[k] / block)
            ghost++;
        const int64_t own_slot = mine && of_own != NULL ? of_own[own_row] : own_row;
        const int64_t place = mine ? before + own_slot / block : ghost < before ? ghost : own + ghost;
        slot[i] = (int32_t)(place * block + (mine ? own_slot : ghost_slot[k]) % block);
        row[slot[i]] = (int32_t)i;
    }
    TRY(amg_alloc(work, ghosts * 4, (void **)&there));
    TRY(spmv_upload(amg->ctx, list, there, ghosts * 4));
    n->numbers = (struct amg_numbers){there, before, before, own, ghosts - before, first};
    TRY(amg_alloc(work, l->rows * 4, (void **)&n->slots.slot));
    TRY(spmv_upload(amg->ctx, slot, (int32_t *)(uintptr_t)n->slots.slot, l->rows * 4));
    TRY(amg_alloc(work, n->nodes * block * 4, (void **)&n->slots.row));
    TRY(spmv_upload(amg->ctx, row, (int32_t *)(uintptr_t)n->slots.row, n->nodes * block * 4));
    n->slots.block = block;
done:
    host_free_all(list, slot, row, of_own, of_ghosts);
    return st;
}

/* The own rows of the matrix of nodes, with the numbers of nodes in the whole level as columns. */
static spmv_status find_node_rows(struct amg *amg, const struct amg_level *l, const struct node_layout *n,
                                  int64_t *counts, struct amg_level *nodes, spmv_csr *own)
{
    spmv_status st = SPMV_OK;
    struct amg_nodes s = {.a = amg_rows_of(&l->a), .slots = n->slots, .count = counts};
    TRY(run_node_count(amg, &s, n->nodes));
    TRY(amg_new_rows(amg, &nodes->pool, n->nodes, counts, n->nodes, l->a.nnz, own, &nodes->values));
    s.c = amg_rows_of(own);
    TRY(run_node_fill(amg, &s, n->nodes));
    const struct amg_renumbering to_all = {
        .numbers = n->numbers, .from = own->col, .to = (int32_t *)(uintptr_t)own->col};
    TRY(run_renumber(amg, &to_all, own->nnz));
    own->row_ptr = (const int64_t *)own->row_ptr + n->numbers.before; /* the others are empty */
    own->rows = n->numbers.own;
done:
    return st;
}

spmv_status amg_take_node_chunks(const struct amg *amg, const struct amg_level *l, struct amg_level *nodes)
{
    spmv_status st = SPMV_OK;
    if (l->chunk == NULL)
        return SPMV_OK;
    const bool slots = amg_slots_of(amg, l).slot != NULL;
    TRY(take_chunks(amg, slots ? amg->node_chunk : l->chunk, &nodes->chunk));
    for (int64_t c = 0; c <= amg->ranks->chunks && !slots; c++)
        nodes->chunk[c] /= l->block;
done:
    return st;
}

spmv_status amg_find_nodes_of_rank(struct amg *amg, const struct amg_level *l, int64_t *counts, struct amg_level *nodes)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct node_layout n = {.nodes = 0};
    int64_t *offsets = NULL;
    spmv_csr own;
    TRY(new_bounds(amg, &nodes->row_of_rank, &nodes->chunk));
    const bool slots = amg_slots_of(amg, l).slot != NULL;
    for (int r = 0; r <= ranks_of(amg); r++)
        nodes->row_of_rank[r] = slots ? amg->node_of_rank[r] : l->row_of_rank[r] / l->block;
    for (int64_t c = 0; c <= amg->ranks->chunks; c++)
        nodes->chunk[c] = slots ? amg->node_chunk[c] : l->chunk[c] / l->block;
    nodes->all_rows = nodes->row_of_rank[ranks_of(amg)];
    TRY(find_layout(amg, l, &work, &n));
    TRY(find_node_rows(amg, l, &n, counts, nodes, &own));
    TRY(open_halo(amg, &own, nodes->row_of_rank, nodes->all_rows, nodes->chunk, &nodes->halo));
    nodes->rows = nodes->halo->room + nodes->halo->own + nodes->halo->after;
    TRY(extend_offsets(amg, nodes->halo, own.row_ptr, own.nnz, &nodes->pool, &offsets));
    nodes->a = own;
    nodes->a.rows = nodes->a.cols = nodes->rows;
    nodes->a.row_ptr = offsets;
    nodes->ghost = nodes->halo->there;
done:
    amg_release(&work);
    return st;
}

/* nodes->r: the nodes of each own aggregate. */
static spmv_status gather_members(struct amg *amg, struct amg_level *nodes, int64_t aggregates, int64_t *counts)
{
    spmv_status st = SPMV_OK;
    const struct rank_halo *const h = nodes->halo;
    const int32_t none = -1, step = 0;
    struct rank_arrays r = {.nnz = 0};
    int32_t *own = NULL; /* the aggregates of own nodes, without those of others */
    spmv_csr p0;
    TRY(amg_alloc(&nodes->work, nodes->rows * 4, (void **)&own));
    TRY(spmv_map_index(amg->ctx, SPMV_I32, &none, &step, own, nodes->rows));
    if (h->own > 0)
        TRY(spmv_map(amg->ctx, SPMV_MAP_COPY, SPMV_I32, nodes->aggregate + h->room, own + h->room, h->own));
    struct amg_prolongation s = {.aggregate = own, .count = counts};
    TRY(run_tentative_count(amg, &s, nodes->rows));
    TRY(amg_new_rows(amg, &nodes->pool, nodes->rows, counts, aggregates, nodes->rows, &nodes->p0, &nodes->p0_values));
    s.p0 = amg_rows_of(&nodes->p0);
    TRY(run_tentative_fill(amg, &s, nodes->rows));
    p0 = amg_own_matrix(nodes, nodes->p0);
    TRY(amg->tools->transpose(amg->ranks->self, nodes->row_of_rank, amg->coarse.row_of_rank, &p0, &r));
    TRY(adopt(amg, &nodes->pool, &r, &nodes->r));
    TRY(open_halo(amg, &nodes->r, nodes->row_of_rank, nodes->all_rows, amg->coarse.chunk, &nodes->halo_r));
done:
    drop_arrays(amg, &r);
    return st;
}

/* The vectors of own nodes, which are by rows, to their slots or back; a slot without a row has 0. */
static spmv_status move_basis(const struct amg *amg, struct amg_level *l, double *of_slots, int64_t elements, bool back)
{
    spmv_status st = SPMV_OK;
    const struct amg_slots slots = amg_slots_of(amg, l);
    const struct amg_slot_basis s = {slots.slot, l->nulls, back, l->basis, of_slots};
    if (elements == 0)
        return SPMV_OK;
    if (slots.slot == NULL)
        return spmv_map(amg->ctx, SPMV_MAP_COPY, SPMV_F64, back ? of_slots : l->basis, back ? l->basis : of_slots,
                        elements);
    if (!back)
        TRY(spmv_map_index(amg->ctx, SPMV_F64, &(double){0}, &(double){0}, of_slots, elements));
    TRY(run_slot_basis(amg, &s, l->halo->own * l->nulls));
done:
    return st;
}

/* Makes the vectors orthonormal in each own aggregate, of nodes of all ranks. */
static spmv_status make_orthonormal(struct amg *amg, struct amg_level *l, struct amg_level *nodes)
{
    spmv_status st = SPMV_OK;
    const struct rank_halo *const h = nodes->halo_r;
    struct amg_level *const next = l + 1;
    const int64_t each = (int64_t)l->block * l->nulls, own = h->own * each;
    double *basis = NULL;
    TRY(amg_alloc(&nodes->work, (h->room + h->own + h->after) * each * 8, (void **)&basis));
    TRY(move_basis(amg, l, basis + h->room * each, own, false));
    TRY(amg->tools->fetch(h, basis, each * 8));
    TRY(amg_alloc(&next->work, nodes->r.rows * l->nulls * l->nulls * 8, (void **)&next->basis));
    const struct amg_basis s = {.r = amg_rows_of(&nodes->r),
                                .slots.block = l->block,
                                .nulls = l->nulls,
                                .basis = basis,
                                .coarse_basis = next->basis};
    if (context_on_device(amg->ctx) && nodes->r.rows > 0)
        TRY(amg_orthonormal_cuda(amg->ctx, &s, nodes->r.rows));
    else
        TRY(run_orthonormal(amg, &s, nodes->r.rows));
    TRY(amg->tools->give_back(h, basis, each * 8));
    TRY(move_basis(amg, l, basis + h->room * each, own, true));
done:
    return st;
}

spmv_status amg_find_basis_of_rank(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes,
                                   int64_t aggregates)
{
    spmv_status st = SPMV_OK;
    struct amg_level *const next = l + 1;
    const int64_t own = l->halo->own;
    struct rank_arrays all = {.nnz = 0};
    void *values = NULL;
    spmv_csr p0;
    if (aggregates * l->nulls > INT32_MAX)
        TRY(context_fail(amg->ctx, SPMV_ERROR_LIMIT, "preconditioner amg: %lld rows of the second level",
                         (long long)(aggregates * l->nulls)));
    TRY(gather_members(amg, nodes, aggregates, counts));
    TRY(make_orthonormal(amg, l, nodes));
    struct amg_basis s = {.slots = amg_slots_of(amg, l),
                          .nulls = l->nulls,
                          .basis = l->basis,
                          .aggregate = nodes->aggregate + nodes->halo->room,
                          .count = counts};
    TRY(run_basis_count(amg, &s, own));
    TRY(amg_new_rows(amg, &nodes->pool, own, counts, aggregates * l->nulls, INT64_MAX, &p0, &values));
    s.p0 = amg_rows_of(&p0);
    TRY(run_basis_fill(amg, &s, own));
    TRY(amg->tools->fetch_rows(l->halo, &p0, &all));
    l->p0 = p0;
    TRY(adopt(amg, &l->pool, &all, &l->p0));
    next->block = next->nulls = l->nulls;
    for (int r = 0; r <= ranks_of(amg); r++)
        amg->coarse.row_of_rank[r] *= l->nulls;
    for (int64_t c = 0; c <= amg->ranks->chunks; c++)
        amg->coarse.chunk[c] *= l->nulls;
done:
    drop_arrays(amg, &all);
    return st;
}

/* ------------------------------------------------------------- whole levels */

int64_t amg_whole_rows(const struct amg *amg)
{
    return context_on_device(amg->ctx) ? WHOLE_ROWS_GPU : WHOLE_ROWS;
}

/* *whole: the array of all ranks, in the context's memory. own: in the context's memory too. */
static spmv_status gather_array(const struct amg *amg, const void *own, const int64_t *count_of_rank, int64_t size,
                                struct amg_pool *pool, void **whole)
{
    spmv_status st = SPMV_OK;
    const int ranks = ranks_of(amg);
    int64_t *offset = NULL;
    TRY(amg_alloc(pool, count_of_rank[ranks] * size, whole));
    TRY(host_alloc(amg->ctx, (ranks + 1) * 8, what, (void **)&offset));
    for (int r = 0; r <= ranks; r++)
        offset[r] = count_of_rank[r] * size;
    TRY(amg->tools->gather_there(amg->ranks->self, own, *whole, offset));
done:
    host_free(offset);
    return st;
}

/* The row offsets of all ranks: their lengths, added. */
static spmv_status gather_offsets(struct amg *amg, const struct amg_level *l, struct amg_pool *pool,
                                  struct amg_pool *work, int64_t **offsets)
{
    spmv_status st = SPMV_OK;
    struct amg_lengths s = {.a = amg_rows_of(&l->a)};
    void *all = NULL;
    int64_t total = 0;
    TRY(amg_alloc(work, l->rows * 8, (void **)&s.length));
    TRY(run_lengths(amg, &s, l->rows));
    TRY(gather_array(amg, s.length + l->halo->room, l->row_of_rank, 8, work, &all));
    TRY(amg_alloc(pool, (l->all_rows + 1) * 8, (void **)offsets));
    TRY(amg_sum_counts(amg, all, l->all_rows, *offsets, &total));
done:
    return st;
}

/* The slots of the whole first level. */
static spmv_status gather_slots(struct amg *amg, const struct amg_level *l, struct amg_pool *pool,
                                struct amg_pool *work)
{
    spmv_status st = SPMV_OK;
    const struct amg_slots own = amg_slots_of(amg, l);
    const int32_t first = own.slot != NULL ? (int32_t)(amg->node_of_rank[amg->ranks->rank] * own.block) : 0;
    int32_t *slot = NULL, *row = NULL, *rows = NULL;
    void *whole = NULL;
    if (own.slot == NULL)
        return SPMV_OK;
    amg->whole_nodes = amg->node_of_rank[ranks_of(amg)];
    TRY(amg_alloc(work, l->halo->own * 4, (void **)&slot));
    if (l->halo->own > 0)
        TRY(spmv_map_scalar(amg->ctx, SPMV_ADD, SPMV_I32, &first, own.slot, slot, l->halo->own));
    TRY(gather_array(amg, slot, l->row_of_rank, 4, pool, &whole));
    TRY(amg_alloc(pool, amg->whole_nodes * own.block * 4, (void **)&row));
    TRY(amg_alloc(work, l->all_rows * 4, (void **)&rows));
    TRY(spmv_map_index(amg->ctx, SPMV_I32, &(int32_t){0}, &(int32_t){1}, rows, l->all_rows));
    TRY(spmv_map_index(amg->ctx, SPMV_I32, &(int32_t){-1}, &(int32_t){0}, row, amg->whole_nodes * own.block));
    TRY(spmv_scatter(amg->ctx, SPMV_I32, rows, whole, 32, row, amg->whole_nodes * own.block, l->all_rows));
    amg->whole_slot = whole;
    amg->whole_row = row;
done:
    return st;
}

static spmv_status make_whole(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    const int ranks = ranks_of(amg);
    struct amg_pool work = {.ctx = amg->ctx}, whole = {.ctx = amg->ctx};
    int64_t *offsets = NULL, *nnz_of_rank = NULL, *all = NULL;
    int32_t *numbers = NULL;
    void *col = NULL, *val = NULL, *least = NULL, *near_null = NULL;
    const struct rank_rows none = {.col_of_rank = l->row_of_rank,
                                   .cols = l->all_rows,
                                   .chunk = l->chunk,
                                   .chunks = amg->ranks->chunks,
                                   .type = amg->type};
    TRY(host_alloc(amg->ctx, (ranks + 1) * 8, what, (void **)&nnz_of_rank));
    TRY(amg_gather_numbers(amg, &l->a.nnz, 1, (void **)&all));
    nnz_of_rank[0] = 0;
    for (int r = 0; r < ranks; r++)
        nnz_of_rank[r + 1] = nnz_of_rank[r] + all[r];
    TRY(find_numbers(amg, l, &work, &numbers));
    TRY(gather_offsets(amg, l, &whole, &work, &offsets));
    TRY(gather_array(amg, numbers, nnz_of_rank, 4, &whole, &col));
    if (l->a.val != NULL)
        TRY(gather_array(amg, l->a.val, nnz_of_rank, amg_type_size(amg), &whole, &val));
    if (l->least != NULL)
        TRY(gather_array(amg, l->least + l->halo->room, l->row_of_rank, 8, &whole, &least));
    if (l->near_null != NULL)
        TRY(gather_array(amg, amg_own_part(amg, l, l->near_null), l->row_of_rank, amg_type_size(amg), &whole,
                         &near_null));
    if (l->nulls > 0) {
        void *basis = NULL;
        TRY(gather_array(amg, l->basis, l->row_of_rank, 8 * l->nulls, &l->work, &basis));
        l->basis = basis;
    }
    TRY(gather_slots(amg, l, &whole, &work));
    TRY(amg->tools->open(amg->ranks->self, &none, &l->halo_all));
    amg->tools->close(l->halo);
    l->halo = NULL;
    amg_release(&l->pool);
    l->pool = whole;
    whole = (struct amg_pool){.ctx = amg->ctx};
    l->rows = l->all_rows;
    l->a = amg_with_values(amg, amg_new_view(amg, l->rows, l->rows, nnz_of_rank[ranks]), val);
    l->a.row_ptr = offsets;
    l->a.col = col;
    l->values = val;
    l->a_t = (spmv_csr){0};
    l->least = least;
    l->near_null = near_null;
    l->ghost = NULL;
    host_free(l->chunk);
    l->chunk = NULL;
    if (l > amg->level) { /* the matrix borrowed its pattern */
        spmv_spgemm_plan_destroy(l[-1].rap);
        l[-1].rap = NULL;
    }
done:
    amg_release(&work);
    amg_release(&whole);
    host_free_all(nnz_of_rank, all);
    return st;
}

spmv_status amg_make_whole(struct amg *amg, struct amg_level *l)
{
    return l->halo != NULL && l->all_rows <= amg_whole_rows(amg) ? make_whole(amg, l) : SPMV_OK;
}

/* ------------------------------------------------------------- applications */

void amg_find_layout(const struct amg_level *l, const struct rank_halo *extra, int64_t *room, int64_t *rows)
{
    const struct rank_halo *const halos[] = {l->halo, l->halo_r, extra};
    int64_t after = 0, own = l->rows;
    *room = 0;
    for (int i = 0; i < 3; i++)
        if (halos[i] != NULL) {
            *room = max_i64(*room, halos[i]->room);
            after = max_i64(after, halos[i]->after);
            own = halos[i]->own;
        }
    *rows = *room + own + after;
}

void amg_close_ranks(const struct amg *amg, struct amg_level *l)
{
    struct rank_halo *const halos[] = {l->halo, l->halo_all, l->halo_p, l->halo_r};
    for (int i = 0; i < 4; i++)
        if (halos[i] != NULL)
            amg->tools->close(halos[i]);
    host_free_all(l->row_of_rank, l->chunk);
}
