/* Matrices over ranks: the cut into chunks, the way of each row to its owner, the plan of each
 * rank.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plural.h"
#include "core/threads.h"
#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"

static const char *const what = "a matrix of a group";

/* The cut: see spmv_group_matrix_create. TILE is that of the products on OpenMP: chunks of whole
 * tiles leave no small ones, which cost time. Small matrices get up to FEW_CHUNKS smaller chunks,
 * so that ranks have equal shares.
 *
 * On a GPU there are GPU_CHUNKS chunks if these have at least GPU_WORK, else half as many: a block of
 * a vector kernel has at least one chunk, and two blocks run on each of the 132 multiprocessors of an
 * H100 (FEW_BLOCKS in cg_2_fused.cuh). So 1, 2 and 4 GPUs have whole rounds of blocks. */
enum { MOST_CHUNKS = 1024, FEW_CHUNKS = 128, LEAST_WORK = 1024, TILE = 4096 };
enum { GPU_CHUNKS = 4 * 264, GPU_WORK = 4 * TILE };

void spmv_group_matrix_options_init(spmv_group_matrix_options *options, size_t size)
{
    const spmv_group_matrix_options defaults = {.size = sizeof defaults, .compression = SPMV_COMPRESSION_AUTO};
    result_write(options, size, &defaults, sizeof defaults);
}

/* ------------------------------------------------------------- the rows that ranks give */

/* What a rank tells about the rows that it gives. */
struct given {
    int64_t rows, nnz, cols;
    int32_t type, pattern, backend;
};

/* The rows that all ranks give. first, entry: ranks + 1, the first row and nonzero of each rank.
 * Chunks begin at rows that are multiples of step; last: ranks, the work (rows plus nonzeros) of the
 * whole matrix before the last such row that the rank gives; -1: it gives none. */
struct source {
    const spmv_csr *own;
    const int64_t *wide_col; /* of a matrix that is wide: in place of own->col */
    bool given_up, wide;     /* as in struct group_given; as in a matrix */
    const char *call;
    struct given *given;
    int64_t *first, *entry, *last, step;
    int block; /* rows of a node, of which step is a multiple */
    int64_t rows, nnz, cols;
    spmv_type type;
    bool pattern;
};

static bool offsets_ascend(spmv_context *ctx, const spmv_csr *a)
{
    bool ascend =
        offset_at(a->row_ptr, a->row_ptr_bits, 0) == 0 && offset_at(a->row_ptr, a->row_ptr_bits, a->rows) == a->nnz;
#pragma omp parallel for num_threads(host_team(ctx, a->rows)) schedule(static) reduction(&& : ascend)
    for (int64_t i = 0; i < a->rows; i++)
        ascend = ascend && offset_at(a->row_ptr, a->row_ptr_bits, i) <= offset_at(a->row_ptr, a->row_ptr_bits, i + 1);
    return ascend;
}

static spmv_status check_wide(spmv_context *ctx, const struct group_given *given)
{
    spmv_csr rest = *given->own; /* all but the columns */
    rest.cols = min_i64(rest.cols, INT32_MAX);
    rest.col = (const int32_t *)(const void *)given->wide_col; /* only compared with NULL */
    const spmv_status st = csr_check_offsets(ctx, given->call, &rest);
    return st != SPMV_OK ? st : csr_check_columns(ctx, given->call, given->own, given->wide_col);
}

/* On a GPU columns of 32 bits are checked there (check_columns). */
static spmv_status check_own(spmv_context *ctx, const struct group_given *given)
{
    const spmv_csr *const own = given->own;
    if (own == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: own is NULL", given->call);
    if (own->memory == SPMV_MEMORY_CONTEXT && context_on_device(ctx))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: own must be in host memory", given->call);
    if (given->has_wide)
        return check_wide(ctx, given);
    if (own->cols > INT32_MAX)
        return context_fail(
            ctx, SPMV_ERROR_LIMIT,
            "%s: %lld columns, at most %d are possible with columns of 32 bits: take spmv_group_matrix_create_wide",
            given->call, (long long)own->cols, INT32_MAX);
    const spmv_status st = csr_check_shape(ctx, given->call, own);
    return st != SPMV_OK || (context_on_device(ctx) && offsets_ascend(ctx, own))
               ? st
               : csr_check(ctx, given->call, own, CSR_ANY_ORDER);
}

/* Columns of 64 bits of a matrix that 32 suffice for: *view is own with a copy of them, which the caller releases. */
static spmv_status narrow_columns(spmv_context *ctx, const struct group_given *given, spmv_csr *view, int32_t **col)
{
    const int64_t nnz = given->own->nnz;
    const spmv_status st = host_alloc(ctx, max_i64(1, nnz) * (int64_t)sizeof **col, what, (void **)col);
    if (st != SPMV_OK)
        return st;
#pragma omp parallel for num_threads(host_team(ctx, nnz)) schedule(static)
    for (int64_t k = 0; k < nnz; k++)
        (*col)[k] = (int32_t)given->wide_col[k];
    *view = *given->own;
    view->col = *col;
    return SPMV_OK;
}

/* Rank r must agree with rank 0, and with the first rank that gives rows. A rank that gives no rows
 * has no columns to compare, one without nonzeros no type. */
static spmv_status compare(spmv_context *ctx, const struct given *given, int first, int r)
{
    const struct given *zero = given, *its = &given[r];
    if (its->rows > 0 && its->cols != given[first].cols)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "spmv_group_matrix_create: rank %d has %lld columns, rank %d has %lld", r,
                            (long long)its->cols, first, (long long)given[first].cols);
    if (its->backend != zero->backend)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_group_matrix_create: rank %d has the backend %s, rank 0 %s",
                            r, spmv_backend_name((spmv_backend)its->backend),
                            spmv_backend_name((spmv_backend)zero->backend));
    return SPMV_OK;
}

/* Learns what all ranks give. Together. */
static spmv_status learn(spmv_group *group, struct source *s)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *own = s->own;
    spmv_context *ctx = group->ctx;
    const int ranks = group->transport.ranks;
    const struct given mine = {.rows = own->rows,
                               .nnz = own->nnz,
                               .cols = own->cols,
                               .type = (int32_t)own->type,
                               .pattern = own->val == NULL && own->nnz > 0,
                               .backend = (int32_t)spmv_context_backend(ctx)};
    TRY(host_alloc(ctx, ranks * (int64_t)sizeof *s->given, what, (void **)&s->given));
    TRY(host_alloc(ctx, (ranks + 1) * (int64_t)sizeof *s->first, what, (void **)&s->first));
    TRY(host_alloc(ctx, (ranks + 1) * (int64_t)sizeof *s->entry, what, (void **)&s->entry));
    TRY(host_alloc(ctx, ranks * (int64_t)sizeof *s->last, what, (void **)&s->last));
    TRY(group_gather_equal(group, &mine, s->given, sizeof mine));
    s->first[0] = s->entry[0] = 0;
    int typed = -1; /* the first rank with values */
    int first = 0;  /* the first rank with rows */
    while (first < ranks - 1 && s->given[first].rows == 0)
        first++;
    first = s->given[first].rows == 0 ? 0 : first;
    s->cols = s->given[first].cols;
    s->wide = s->wide || s->cols > INT32_MAX;
    for (int r = 0; r < ranks; r++) {
        const struct given *its = &s->given[r];
        s->first[r + 1] = s->first[r] + its->rows;
        s->entry[r + 1] = s->entry[r] + its->nnz;
        if (st == SPMV_OK)
            st = compare(ctx, s->given, first, r);
        if (its->nnz == 0)
            continue;
        if (typed >= 0 && st == SPMV_OK &&
            (its->type != s->given[typed].type || its->pattern != s->given[typed].pattern))
            st = context_fail(ctx, SPMV_ERROR_TYPE,
                              "spmv_group_matrix_create: ranks %d and %d give values of two types", typed, r);
        typed = typed < 0 ? r : typed;
    }
    group->settled = st != SPMV_OK; /* all ranks see the same */
    s->rows = s->first[ranks];
    s->nnz = s->entry[ranks];
    s->type = (spmv_type)s->given[typed < 0 ? 0 : typed].type;
    s->pattern = typed >= 0 && s->given[typed].pattern != 0;
done:
    return st;
}

/* The rows plus nonzeros of the whole matrix before a row that this rank gives; row: counted from its
 * first. */
static int64_t work_before(const struct source *s, int rank, int64_t row)
{
    return s->first[rank] + row + s->entry[rank] + offset_at(s->own->row_ptr, s->own->row_ptr_bits, row);
}

/* Sets block, step and last. Together. */
static spmv_status learn_last(spmv_group *group, struct source *s)
{
    const int rank = group->transport.rank;
    int64_t own = -1;
    if (s->block == 0 && s->rows == s->cols && s->nnz > 0 && !s->wide) {
        const spmv_status st = group_find_nodes(group, s->own, s->first[rank], s->rows, &s->block);
        if (st != SPMV_OK)
            return st;
    }
    s->block = s->block == 0 ? 1 : s->block;
    s->step = context_on_device(group->ctx) ? PLAN_TILE_ROWS : 1;
    while (s->step % s->block != 0)
        s->step += context_on_device(group->ctx) ? PLAN_TILE_ROWS : 1;
    const int64_t row = (s->first[rank + 1] - 1) / s->step * s->step - s->first[rank];
    if (s->own->rows > 0 && row >= 0)
        own = work_before(s, rank, row);
    return group_gather_equal(group, &own, s->last, sizeof own);
}

static void release_source(struct source *s)
{
    host_free_all(s->last, s->given, s->first, s->entry);
}

/* ------------------------------------------------------------- the cut */

/* Where a chunk begins. */
struct bound {
    int64_t row, entry;
};

/* The work of a chunk. */
static int64_t chunk_work(int64_t work, bool on_device)
{
    if (on_device && work > (int64_t)GPU_CHUNKS / 2 * TILE)
        return ceil_divide(work, work > (int64_t)GPU_CHUNKS * GPU_WORK ? GPU_CHUNKS : GPU_CHUNKS / 2);
    if (work > (int64_t)MOST_CHUNKS * TILE)
        return ceil_divide(ceil_divide(work, MOST_CHUNKS), TILE) * TILE;
    return max_i64(LEAST_WORK, min_i64(TILE, ceil_divide(work, FEW_CHUNKS)));
}

/* The first multiple of step from row on with at least this work before it. There is one among the rows that
 * this rank gives. */
static int64_t find_bound(const struct source *s, int rank, int64_t row, int64_t work)
{
    int64_t few = -1, end = (s->own->rows - 1 - row) / s->step; /* steps */
    while (end - few > 1) {
        const int64_t middle = few + (end - few) / 2;
        if (work_before(s, rank, row + middle * s->step) < work)
            few = middle;
        else
            end = middle;
    }
    return row + end * s->step;
}

/* Finds the chunk bounds that lie in the rows that this rank gives: those whose work is in (before,
 * last]. *from: the number of the first. Returns how many there are. */
static int64_t own_bounds(const struct source *s, int rank, int64_t work, int64_t chunks, int64_t *from,
                          struct bound *bound)
{
    const spmv_csr *own = s->own;
    int64_t before = -1;
    int64_t row = ceil_divide(s->first[rank], s->step) * s->step - s->first[rank]; /* the first multiple of step */
    for (int r = 0; r < rank; r++)
        before = s->last[r] >= 0 ? s->last[r] : before;
    *from = before < 0 ? 0 : before / work + 1;
    const int64_t end = s->last[rank] < 0 ? *from : max_i64(*from, min_i64(chunks, s->last[rank] / work + 1));
    for (int64_t c = *from; c < end && bound != NULL; c++) {
        row = find_bound(s, rank, row, c * work);
        bound[c - *from] =
            (struct bound){s->first[rank] + row, s->entry[rank] + offset_at(own->row_ptr, own->row_ptr_bits, row)};
    }
    return end - *from;
}

/* Cuts the matrix: *bound receives the bounds of all chunks, chunks + 1. Together. */
static spmv_status cut(spmv_group *group, const struct source *s, int64_t *chunks, struct bound **bound)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = group->ctx;
    const int ranks = group->transport.ranks, rank = group->transport.rank;
    const int64_t all = s->rows + s->nnz, work = chunk_work(all, context_on_device(ctx));
    int64_t from = 0, count = 0, *counts = NULL;
    struct bound *own = NULL;
    *chunks = ceil_divide(all, work);
    count = own_bounds(s, rank, work, *chunks, &from, NULL);
    TRY(host_alloc(ctx, (*chunks + 1) * (int64_t)sizeof **bound, what, (void **)bound));
    TRY(host_alloc(ctx, max_i64(1, count) * (int64_t)sizeof *own, what, (void **)&own));
    TRY(host_alloc(ctx, (2 * ranks + 1) * (int64_t)sizeof *counts, what, (void **)&counts));
    own_bounds(s, rank, work, *chunks, &from, own);
    TRY(group_gather_equal(group, &count, counts + ranks + 1, sizeof count));
    counts[0] = 0;
    for (int r = 0; r < ranks; r++)
        counts[r + 1] = counts[r] + counts[ranks + 1 + r] * (int64_t)sizeof *own;
    TRY(group_gather(group, own, *bound, counts));
    /* the chunks behind the start of the last row */
    for (int64_t c = counts[ranks] / (int64_t)sizeof *own; c <= *chunks; c++)
        (*bound)[c] = (struct bound){s->rows, s->nnz};
done:
    host_free(own);
    host_free(counts);
    return st;
}

/* Sets which chunks, rows and elements of x each rank has. */
static spmv_status divide(spmv_group_matrix *m, const struct source *s, const struct bound *bound)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = m->ctx;
    const int ranks = m->group->transport.ranks;
    const int64_t bytes = (ranks + 1) * (int64_t)sizeof(int64_t);
    TRY(host_alloc(ctx, bytes, what, (void **)&m->chunk_of_rank));
    TRY(host_alloc(ctx, bytes, what, (void **)&m->row_of_rank));
    TRY(host_alloc(ctx, bytes, what, (void **)&m->col_of_rank));
    TRY(host_alloc(ctx, bytes, what, (void **)&m->work_of_rank));
    for (int r = 0; r <= ranks; r++) {
        m->chunk_of_rank[r] = m->all_chunks * r / ranks;
        m->row_of_rank[r] = bound[m->chunk_of_rank[r]].row;
        m->col_of_rank[r] = s->rows == s->cols ? m->row_of_rank[r] : s->cols / ranks * r + s->cols % ranks * r / ranks;
        if (r > 0)
            m->work_of_rank[r - 1] = m->row_of_rank[r] - m->row_of_rank[r - 1] + bound[m->chunk_of_rank[r]].entry -
                                     bound[m->chunk_of_rank[r - 1]].entry;
    }
done:
    return st;
}

/* The chunks of this rank, with rows counted from its first. */
static spmv_status take_chunks(spmv_group_matrix *m, const struct bound *bound)
{
    spmv_status st = SPMV_OK;
    const int rank = m->group->transport.rank;
    const int64_t first = m->chunk_of_rank[rank], chunks = m->chunk_of_rank[rank + 1] - first;
    TRY(host_alloc(m->ctx, (chunks + 1) * (int64_t)sizeof *m->chunk, what, (void **)&m->chunk));
    TRY(host_alloc(m->ctx, (chunks + 1) * (int64_t)sizeof *m->chunk_entry, what, (void **)&m->chunk_entry));
    TRY(host_alloc(m->ctx, max_i64(1, chunks) * (int64_t)sizeof *m->edge, what, (void **)&m->edge));
    for (int64_t c = 0; c <= chunks; c++) {
        m->chunk[c] = bound[first + c].row - bound[first].row;
        m->chunk_entry[c] = bound[first + c].entry - bound[first].entry;
    }
    m->ranks.chunk = m->chunk;
    m->ranks.chunk_entry = m->chunk_entry;
    m->ranks.chunks = chunks;
    m->ranks.edge = m->edge;
done:
    return st;
}

/* ------------------------------------------------------------- rows to their owners */

/* Copies what stays on this rank. given_up: the system gets the pages of `from` back meanwhile, so that
 * there are never two copies. New pages take longer than the copy, so all threads touch some. */
static void keep(const spmv_context *ctx, const char *from, char *to, int64_t bytes, bool given_up)
{
    enum { AT_ONCE = 4 << 20 };
#pragma omp parallel for num_threads(host_team(ctx, bytes / 8)) schedule(static)
    for (int64_t at = 0; at < bytes; at += AT_ONCE) {
        const int64_t some = min_i64(AT_ONCE, bytes - at);
        memcpy(to + at, from + at, (size_t)some);
        if (given_up)
            pages_give_back((char *)(uintptr_t)from + at, some);
    }
}

static int64_t clamp(int64_t i, int64_t least, int64_t most)
{
    return min_i64(max_i64(i, least), most);
}

/* The elements that stay on this rank: begin to end - 1. Those in front of them come from lower ranks, those
 * behind from higher ones. given, owned: ranks + 1 numbers of elements. */
struct kept {
    int64_t begin, end;
};

static struct kept find_kept(const spmv_group_matrix *m, const int64_t *given, const int64_t *owned)
{
    const int rank = m->group->transport.rank;
    return (struct kept){clamp(given[rank], owned[rank], owned[rank + 1]),
                         clamp(given[rank + 1], owned[rank], owned[rank + 1])};
}

/* Where the elements are that travel: to or from lower ranks, and to or from higher ones. */
struct ends {
    char *front, *back;
};

/* One array of the rows on its way. */
static spmv_status move_ends(spmv_group_matrix *m, const int64_t *given, const int64_t *owned, int64_t size,
                             struct ends from, struct ends to)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    struct transport_parcel *send = NULL, *receive = NULL;
    int sends = 0, receives = 0;
    const int64_t kept_end = find_kept(m, given, owned).end;
    const int64_t leave_end = clamp(owned[rank + 1], given[rank], given[rank + 1]); /* behind it, all leave */
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *send, what, (void **)&send));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *receive, what, (void **)&receive));
    for (int r = 0; r < ranks; r++) {
        if (r == rank)
            continue;
        int64_t begin = max_i64(given[rank], owned[r]), end = min_i64(given[rank + 1], owned[r + 1]);
        if (begin < end)
            send[sends++] = (struct transport_parcel){
                r, r < rank ? from.front + (begin - given[rank]) * size : from.back + (begin - leave_end) * size,
                (end - begin) * size};
        begin = max_i64(given[r], owned[rank]);
        end = min_i64(given[r + 1], owned[rank + 1]);
        if (begin < end)
            receive[receives++] = (struct transport_parcel){
                r, r < rank ? to.front + (begin - owned[rank]) * size : to.back + (begin - kept_end) * size,
                (end - begin) * size};
    }
    TRY(group_start(m->group, send, sends, receive, receives));
    TRY(group_finish(m->group));
done:
    host_free(send);
    host_free(receive);
    return st;
}

/* The same of a whole array: element i of the rank's own rows is at `from`, and goes to `to` in the rows that
 * it gets. given_up: `from` may be overwritten. */
static spmv_status move(spmv_group_matrix *m, const int64_t *given, const int64_t *owned, int64_t size,
                        const void *from, bool given_up, void *to)
{
    const int rank = m->group->transport.rank;
    const struct kept kept = find_kept(m, given, owned);
    char *const first = (char *)(uintptr_t)from, *const first_to = to;
    const int64_t leave_end = clamp(owned[rank + 1], given[rank], given[rank + 1]);
    const spmv_status st =
        move_ends(m, given, owned, size, (struct ends){first, first + (leave_end - given[rank]) * size},
                  (struct ends){first_to, first_to + (kept.end - owned[rank]) * size});
    if (st == SPMV_OK && kept.begin < kept.end)
        keep(m->ctx, first + (kept.begin - given[rank]) * size, first_to + (kept.begin - owned[rank]) * size,
             (kept.end - kept.begin) * size, given_up);
    return st;
}

/* Moves the rows. own_entry: ranks + 1, the first nonzero that each rank owns. */
static spmv_status move_rows(spmv_group_matrix *m, const struct source *s, const int64_t *own_entry)
{
    spmv_status st = SPMV_OK, made = SPMV_OK;
    spmv_context *ctx = m->ctx;
    const int rank = m->group->transport.rank;
    const int64_t rows = m->row_of_rank[rank + 1] - m->row_of_rank[rank];
    const int64_t nnz = own_entry[rank + 1] - own_entry[rank];
    const int64_t size = s->pattern ? 0 : (int64_t)spmv_type_size(s->type);
    const bool in_place = s->given_up && s->own->row_ptr_bits == 64;
    int64_t *lengths = in_place ? (int64_t *)(uintptr_t)s->own->row_ptr : NULL;
    if (!in_place)
        made = host_alloc(ctx, max_i64(1, s->own->rows) * (int64_t)sizeof *lengths, what, (void **)&lengths);
    if (made == SPMV_OK)
        made = host_alloc(ctx, (rows + 1) * (int64_t)sizeof *m->row_ptr, what, (void **)&m->row_ptr);
    if (made == SPMV_OK)
        made = s->wide ? host_alloc(ctx, max_i64(1, nnz) * (int64_t)sizeof *m->wide_col, what, (void **)&m->wide_col)
                       : host_alloc(ctx, max_i64(1, nnz) * (int64_t)sizeof *m->col, what, (void **)&m->col);
    if (made == SPMV_OK && !s->pattern)
        made = host_alloc(ctx, max_i64(1, nnz) * size, what, &m->val);
    TRY(spmv_group_agree(m->group, made));
    const bool team = !in_place; /* in place, each length takes the place of an offset that was read */
#pragma omp parallel for num_threads(team ? host_team(ctx, s->own->rows) : 1) schedule(static)
    for (int64_t i = 0; i < s->own->rows; i++)
        lengths[i] = offset_at(s->own->row_ptr, s->own->row_ptr_bits, i + 1) -
                     offset_at(s->own->row_ptr, s->own->row_ptr_bits, i);
    TRY(move(m, s->first, m->row_of_rank, (int64_t)sizeof *lengths, lengths, s->given_up, m->row_ptr));
    TRY(offsets_from_counts(ctx, m->row_ptr, rows));
    if (s->wide)
        TRY(move(m, s->entry, own_entry, (int64_t)sizeof *m->wide_col, s->wide_col, s->given_up, m->wide_col));
    else
        TRY(move(m, s->entry, own_entry, (int64_t)sizeof *m->col, s->own->col, s->given_up, m->col));
    if (!s->pattern)
        TRY(move(m, s->entry, own_entry, size, s->own->val, s->given_up, m->val));
    m->own = csr_of(rows, s->cols, nnz, m->row_ptr, m->col, m->val, s->type, SPMV_MEMORY_HOST);
done:
    if (!in_place)
        host_free(lengths);
    return st;
}

/* ------------------------------------------------------------- rows to the memory of GPUs */

/* Elements that come from other ranks, in host memory. */
struct arrived {
    int64_t *row_ptr;
    char *col, *val;
};

/* Allocates what move_to_gpu needs. leave: the offsets of rows that go to other ranks. */
static spmv_status make_room(spmv_group_matrix *m, const struct source *s, const int64_t *own_entry,
                             struct arrived *arrived, int64_t **leave)
{
    spmv_status st = SPMV_OK;
    const int rank = m->group->transport.rank;
    const struct kept rows = find_kept(m, s->first, m->row_of_rank), entries = find_kept(m, s->entry, own_entry);
    const int64_t all_rows = m->row_of_rank[rank + 1] - m->row_of_rank[rank];
    const int64_t all_entries = own_entry[rank + 1] - own_entry[rank];
    const int64_t new_rows = all_rows - (rows.end - rows.begin);
    const int64_t new_entries = all_entries - (entries.end - entries.begin);
    const int64_t leaving = s->own->rows - (rows.end - rows.begin);
    TRY(host_alloc(m->ctx, max_i64(1, leaving) * (int64_t)sizeof **leave, what, (void **)leave));
    TRY(host_alloc(m->ctx, max_i64(1, new_rows) * (int64_t)sizeof *arrived->row_ptr, what, (void **)&arrived->row_ptr));
    TRY(host_alloc(m->ctx, max_i64(1, new_entries) * (int64_t)sizeof *m->col, what, (void **)&arrived->col));
    if (!s->pattern)
        TRY(host_alloc(m->ctx, max_i64(1, new_entries) * (int64_t)spmv_type_size(s->type), what,
                       (void **)&arrived->val));
    TRY(group_rows_allocate(m, all_rows, all_entries, s->type, s->pattern));
done:
    return st;
}

/* Copies host elements to places first ... of an array in the context's memory. */
static spmv_status put(spmv_context *ctx, const void *from, void *array, int64_t first, int64_t n, int64_t size)
{
    return n > 0 ? spmv_upload(ctx, from, (char *)array + first * size, n * size) : SPMV_OK;
}

/* An array of entries: what arrives, and what stays, to `to` in the context's memory. */
static spmv_status move_array_to_gpu(spmv_group_matrix *m, const int64_t *given, const int64_t *owned, int64_t size,
                                     const void *from, char *arrived, void *to)
{
    spmv_status st = SPMV_OK;
    const int rank = m->group->transport.rank;
    const struct kept kept = find_kept(m, given, owned);
    char *const first = (char *)(uintptr_t)from;
    const int64_t front = kept.begin - owned[rank], leave_end = clamp(owned[rank + 1], given[rank], given[rank + 1]);
    TRY(move_ends(m, given, owned, size, (struct ends){first, first + (leave_end - given[rank]) * size},
                  (struct ends){arrived, arrived + front * size}));
    TRY(put(m->ctx, arrived, to, 0, front, size));
    TRY(put(m->ctx, first + (kept.begin - given[rank]) * size, to, front, kept.end - kept.begin, size));
    TRY(put(m->ctx, arrived + front * size, to, kept.end - owned[rank], owned[rank + 1] - kept.end, size));
done:
    return st;
}

/* The offsets of all rows. Those that travel count from the first entry of the whole matrix. */
static spmv_status move_offsets_to_gpu(spmv_group_matrix *m, const struct source *s, const int64_t *own_entry,
                                       int64_t *leave, int64_t *arrived)
{
    spmv_status st = SPMV_OK;
    const int rank = m->group->transport.rank, bits = s->own->row_ptr_bits;
    const int64_t *const given = s->first, *const owned = m->row_of_rank;
    const struct kept kept = find_kept(m, given, owned);
    const int64_t front = kept.begin - owned[rank], back = kept.end - owned[rank], rows = owned[rank + 1] - owned[rank];
    const int64_t leave_front = clamp(owned[rank], given[rank], given[rank + 1]) - given[rank];
    const int64_t leave_back = clamp(owned[rank + 1], given[rank], given[rank + 1]) - given[rank];
    for (int64_t i = 0; i < leave_front; i++)
        leave[i] = s->entry[rank] + offset_at(s->own->row_ptr, bits, i);
    for (int64_t i = leave_back; i < s->own->rows; i++)
        leave[leave_front + i - leave_back] = s->entry[rank] + offset_at(s->own->row_ptr, bits, i);
    TRY(move_ends(m, given, owned, (int64_t)sizeof *leave, (struct ends){(char *)leave, (char *)(leave + leave_front)},
                  (struct ends){(char *)arrived, (char *)(arrived + front)}));
    TRY(group_rows_put_offsets(m, arrived, 64, -own_entry[rank], 0, front));
    if (kept.begin < kept.end)
        TRY(group_rows_put_offsets(m, (const char *)s->own->row_ptr + (kept.begin - given[rank]) * (bits / 8), bits,
                                   s->entry[rank] - own_entry[rank], front, kept.end - kept.begin));
    TRY(group_rows_put_offsets(m, arrived + front, 64, -own_entry[rank], back, rows - back));
    TRY(group_rows_put_offsets(m, &m->there.nnz, 64, 0, rows, 1));
done:
    return st;
}

/* Moves the rows to their owners' GPUs. */
static spmv_status move_to_gpu(spmv_group_matrix *m, const struct source *s, const int64_t *own_entry)
{
    spmv_status st = SPMV_OK;
    struct arrived arrived = {0};
    int64_t *leave = NULL;
    TRY(spmv_group_agree(m->group, make_room(m, s, own_entry, &arrived, &leave)));
    TRY(move_offsets_to_gpu(m, s, own_entry, leave, arrived.row_ptr));
    TRY(move_array_to_gpu(m, s->entry, own_entry, (int64_t)sizeof *m->col, s->own->col, arrived.col, m->arrays.col));
    if (!s->pattern)
        TRY(move_array_to_gpu(m, s->entry, own_entry, (int64_t)spmv_type_size(s->type), s->own->val, arrived.val,
                              m->arrays.val));
    m->own = csr_of(m->there.rows, s->cols, m->there.nnz, NULL, NULL, NULL, s->type, SPMV_MEMORY_HOST); /* only sizes */
done:
    host_free_all(leave, arrived.row_ptr, arrived.col, arrived.val);
    return st;
}

/* Checks the columns of all ranks where they are; the ranks that gave wrong ones name them. Together. */
static spmv_status check_columns(spmv_group_matrix *m, const struct source *s)
{
    spmv_status st = SPMV_OK;
    struct csr_faults faults = {0};
    double wrong = 0;
    if (m->there.rows > 0)
        st = csr_faults_cuda(m->ctx, &m->there, &faults);
    TRY(spmv_group_agree(m->group, st));
    wrong = (double)(faults.rows + faults.columns);
    TRY(group_largest(m, &wrong));
    if (wrong > 0)
        TRY(spmv_group_agree(m->group, csr_check(m->ctx, s->call, s->own, CSR_ANY_ORDER)));
done:
    return st;
}

/* ------------------------------------------------------------- the plan */

static void write_note(spmv_group_matrix *m)
{
    const int ranks = m->group->transport.ranks;
    int64_t largest = 0, all = 0, idle = 0;
    for (int r = 0; r < ranks; r++) {
        largest = max_i64(largest, m->work_of_rank[r]);
        all += m->work_of_rank[r];
        idle += m->work_of_rank[r] == 0;
    }
    if (ranks == 1)
        return;
    if (m->all_chunks < ranks)
        snprintf(m->note, sizeof m->note, "the matrix has %lld chunk%s of rows for %d ranks: %lld %s no rows",
                 (long long)m->all_chunks, plural(m->all_chunks), ranks, (long long)idle, idle == 1 ? "has" : "have");
    else if (largest > 2 * ceil_divide(all, ranks))
        snprintf(m->note, sizeof m->note,
                 "a long row makes the share of one rank %.1f times the mean: a row is never divided among ranks",
                 (double)largest * ranks / (double)all);
    else if (m->all_ghosts >= m->cols)
        snprintf(m->note, sizeof m->note,
                 "a product moves %lld element%s of x between ranks, as many as x has: the rows couple ranks so "
                 "strongly that more ranks do not help",
                 (long long)m->all_ghosts, plural(m->all_ghosts));
}

/* A plan of this rank's rows. */
static spmv_status plan_rows(spmv_group_matrix *m, const spmv_plan_options *o, spmv_plan **plan)
{
    spmv_csr view = context_on_device(m->ctx) ? m->there : m->own;
    view.cols = m->own.cols;
    view.memory = SPMV_MEMORY_CONTEXT;
    return plan_create_for_rank(m->ctx, &view, o, &m->ranks, plan);
}

spmv_status group_matrix_columns(spmv_group_matrix *m, int vectors, spmv_plan **plan)
{
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    o.type = m->type;
    o.vectors = vectors;
    return plan_rows(m, &o, plan);
}

/* Makes the plan and the vectors of this rank. */
static spmv_status make_plan(spmv_group_matrix *m, const spmv_group_matrix_options *o)
{
    spmv_status st = SPMV_OK;
    spmv_plan_options plan;
    spmv_plan_info info;
    const struct halo *h = &m->halo;
    const int rank = m->group->transport.rank;
    const int64_t own_cols = m->col_of_rank[rank + 1] - m->col_of_rank[rank];
    spmv_plan_options_init(&plan, sizeof plan);
    plan.type = !m->pattern && type_is_complex(m->own.type) ? m->own.type : o->type;
    plan.method = m->method != NULL ? m->method : o->method;
    plan.compression = o->compression;
    m->own.cols = h->room + own_cols + h->after;
    m->ranks.before = h->room;
    m->ranks.after = h->after;
    TRY(plan_rows(m, &plan, &m->plan));
    TRY(spmv_plan_describe(m->plan, &info, sizeof info));
    m->type = info.type;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    TRY(spmv_alloc(m->ctx, max_i64(1, m->own.cols) * size, &m->x_at));
    if (h->room > 0) /* no rank sends those that only align, but all are copied to the host */
        TRY(spmv_map_index(m->ctx, type_part(m->type), &(const double){0}, NULL, m->x_at,
                           h->room * type_parts(m->type)));
    m->x = (char *)m->x_at + h->room * size;
    TRY(group_halo_buffers(m));
    TRY(group_sums_prepare(m));
done:
    return st;
}

/* Finds the elements of other ranks, and renumbers columns; on a GPU chooses the method, and there columns of
 * 64 bits are renumbered on the host before the rows go to its memory. Together. */
static spmv_status find_halo(spmv_group_matrix *m, const spmv_group_matrix_options *o)
{
    spmv_status st = SPMV_OK;
    if (!m->wide)
        TRY(group_choose_method(m, o->method, o->compression)); /* by columns of the whole matrix */
    TRY(group_halo_prepare(m, false));
    if (!m->wide || !context_on_device(m->ctx))
        goto done;
    TRY(spmv_group_agree(m->group, group_rows_to_context(m)));
    TRY(group_choose_method(m, o->method, o->compression));
done:
    return st;
}

spmv_status group_matrix_make(spmv_group *group, const struct group_given *given,
                              const spmv_group_matrix_options *options, spmv_group_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = group->ctx;
    spmv_group_matrix *m = NULL;
    spmv_group_matrix_options o;
    struct source s = {.own = given->own,
                       .wide_col = given->wide_col,
                       .given_up = given->given_up,
                       .wide = given->stays_wide,
                       .call = given->call};
    spmv_csr narrow;
    int32_t *narrow_col = NULL;
    struct bound *bound = NULL;
    int64_t *own_entry = NULL;
    spmv_group_matrix_options_init(&o, sizeof o);
    spmv_status ready = options_take(ctx, "group_matrix", &o, sizeof o, options);
    if (ready == SPMV_OK)
        ready = OPTIONS_CHECK(ctx, "spmv_group_matrix_create", {"block", o.block, 0, 8});
    if (ready == SPMV_OK)
        ready = check_own(ctx, given);
    if (ready == SPMV_OK && given->has_wide && !given->stays_wide && given->own->cols <= INT32_MAX) {
        ready = narrow_columns(ctx, given, &narrow, &narrow_col);
        s.own = &narrow;
    }
    if (ready == SPMV_OK)
        ready = host_alloc(ctx, sizeof *m, what, (void **)&m);
    uint64_t numbers = group_mix(0, spmv_version(), strlen(spmv_version()));
    numbers = group_mix(numbers, &o.type, sizeof o.type);
    numbers = group_mix(numbers, &o.compression, sizeof o.compression);
    numbers = group_mix(numbers, &o.block, sizeof o.block);
    const char *const texts[] = {o.method != NULL ? o.method : "auto", o.exchange != NULL ? o.exchange : "auto"};
    for (int i = 0; i < 2; i++)
        numbers = group_mix(numbers, texts[i], strlen(texts[i]) + 1);
    if (m != NULL)
        *m = (spmv_group_matrix){.group = group, .ctx = ctx};
    TRY(group_agree_on(group, ready, "another version of spmv or other options", numbers));
    s.block = o.block;
    TRY(learn(group, &s));
    TRY(learn_last(group, &s));
    m->cols = s.cols;
    m->wide = s.wide;
    TRY(cut(group, &s, &m->all_chunks, &bound));
    TRY(divide(m, &s, bound));
    TRY(take_chunks(m, bound));
    TRY(host_alloc(ctx, (group->transport.ranks + 1) * (int64_t)sizeof *own_entry, what, (void **)&own_entry));
    for (int r = 0; r <= group->transport.ranks; r++)
        own_entry[r] = bound[m->chunk_of_rank[r]].entry;
    m->pattern = s.pattern;
    if (context_on_device(ctx) && !m->wide) {
        TRY(move_to_gpu(m, &s, own_entry));
        TRY(check_columns(m, &s));
    } else {
        TRY(move_rows(m, &s, own_entry));
    }
    m->ranks.self = m;
    m->ranks.rows = s.rows;
    m->ranks.nnz = s.nnz;
    m->ranks.first_row = m->row_of_rank[group->transport.rank];
    m->ranks.fetch_start = group_fetch_start;
    m->ranks.fetch_finish = group_fetch_finish;
    m->ranks.sum = group_sum;
    m->ranks.dot = group_dot_in_context;
    m->ranks.largest = group_largest;
    m->ranks.tools = m->wide ? NULL : &group_rank_tools; /* numbers there have 32 bits */
    m->ranks.rank = group->transport.rank;
    m->ranks.count = group->transport.ranks;
    m->ranks.block = s.block;
    TRY(find_halo(m, &o));
    TRY(spmv_group_agree(group, make_plan(m, &o)));
    if (context_on_device(ctx))
        TRY(exchange_open(m, o.exchange));
    write_note(m);
    m->given_entry = s.entry; /* for new values */
    m->own_entry = own_entry;
    s.entry = own_entry = NULL;
done:
    release_source(&s);
    host_free_all(bound, own_entry, narrow_col);
    if (st != SPMV_OK) {
        char why[1024];
        snprintf(why, sizeof why, "%s", spmv_last_error(ctx));
        spmv_group_matrix_destroy(m);
        (void)context_fail(ctx, st, "%s", why);
        m = NULL;
    }
    *matrix = m;
    return st;
}

static spmv_status create(spmv_group *group, const struct group_given *given, const spmv_group_matrix_options *options,
                          spmv_group_matrix **matrix)
{
    if (group == NULL || matrix == NULL)
        return context_need(group != NULL ? group->ctx : NULL, given->call, "matrix", matrix);
    *matrix = NULL;
    group_begin(group);
    const spmv_status st = group_matrix_make(group, given, options, matrix);
    if (*matrix != NULL)
        (*matrix)->takes_values = true;
    return group_end(group, st);
}

spmv_status spmv_group_matrix_create(spmv_group *group, const spmv_csr *own, const spmv_group_matrix_options *options,
                                     spmv_group_matrix **matrix)
{
    const struct group_given given = {.call = "spmv_group_matrix_create", .own = own};
    return create(group, &given, options, matrix);
}

spmv_status spmv_group_matrix_create_wide(spmv_group *group, const spmv_csr *own, const int64_t *col,
                                          const spmv_group_matrix_options *options, spmv_group_matrix **matrix)
{
    const struct group_given given = {
        .call = "spmv_group_matrix_create_wide", .own = own, .has_wide = true, .wide_col = col};
    return create(group, &given, options, matrix);
}

void spmv_group_matrix_destroy(spmv_group_matrix *m)
{
    if (m == NULL)
        return;
    if (m->exchange.kind != NULL)
        exchange_close(m);
    spmv_plan_destroy(m->plan);
    spmv_plan_destroy(m->first_plan);
    group_halo_release(m);
    group_sums_release(m);
    group_arrays_release(m->ctx, &m->arrays);
    context_free(m->ctx, m->context_ghosts);
    host_free_all(m->row_ptr, m->col, m->wide_col, m->val, m->chunk_of_rank, m->row_of_rank, m->col_of_rank, m->chunk,
                  m->chunk_entry, m->edge, m->met, m->work_of_rank, m->given_entry, m->own_entry);
    spmv_free(m->ctx, m->x_at);
    group_free_queued(m->ctx, m->context_parts, m->context_chunk);
    host_free(m);
}

/* ------------------------------------------------------------- new values */

static spmv_status check_values(const spmv_group_matrix *m, const void *values)
{
    static const char call[] = "spmv_group_matrix_update_values";
    const int rank = m->group->transport.rank;
    if (!m->takes_values)
        return context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                            "%s: the matrix is not of spmv_group_matrix_create: make it again", call);
    if (m->pattern)
        return context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED, "%s: a pattern has no values", call);
    if (values == NULL && m->given_entry[rank + 1] > m->given_entry[rank])
        return context_fail(m->ctx, SPMV_ERROR_ARGUMENT, "%s: values is NULL", call);
    return SPMV_OK;
}

/* The values go the way that those of the rows went. */
static spmv_status move_values(spmv_group_matrix *m, const void *values)
{
    spmv_status st = SPMV_OK;
    const int rank = m->group->transport.rank;
    const int64_t size = (int64_t)spmv_type_size(m->own.type);
    const struct kept kept = find_kept(m, m->given_entry, m->own_entry);
    const int64_t come = m->own_entry[rank + 1] - m->own_entry[rank] - (kept.end - kept.begin);
    char *arrived = NULL;
    if (!context_on_device(m->ctx))
        return move(m, m->given_entry, m->own_entry, size, values, false, m->val);
    TRY(spmv_group_agree(m->group, host_alloc(m->ctx, max_i64(1, come) * size, what, (void **)&arrived)));
    TRY(move_array_to_gpu(m, m->given_entry, m->own_entry, size, values, arrived, m->arrays.val));
    group_rows_leave_host(m);
done:
    host_free(arrived);
    return st;
}

/* The first plan may be packed for values that stay; from the second on, one takes new values. */
static spmv_status renew_plan(spmv_group_matrix *m)
{
    spmv_plan_info info;
    spmv_plan_options o;
    spmv_plan *made = NULL;
    if (m->updates) {
        m->plan->symmetry = PLAN_SYMMETRY_UNKNOWN; /* of the whole matrix: on ranks without entries too */
        return m->own.nnz > 0 ? spmv_plan_update_values(m->plan, context_on_device(m->ctx) ? m->arrays.val : m->val)
                              : SPMV_OK;
    }
    spmv_status st = spmv_plan_describe(m->plan, &info, sizeof info);
    if (st != SPMV_OK)
        return st;
    spmv_plan_options_init(&o, sizeof o);
    o.type = m->type;
    o.method = info.method;
    o.compression = m->plan->compression;
    o.update_values = m->own.nnz > 0;
    st = plan_rows(m, &o, &made);
    if (st != SPMV_OK)
        return st;
    if (m->lent)
        m->first_plan = m->plan;
    else
        spmv_plan_destroy(m->plan);
    m->plan = made;
    m->updates = true;
    return SPMV_OK;
}

spmv_status group_matrix_renew(spmv_group_matrix *m, const void *values)
{
    spmv_status st = SPMV_OK;
    TRY(spmv_group_agree(m->group, check_values(m, values)));
    TRY(spmv_group_agree(m->group, spmv_synchronize(m->ctx)));
    m->version++; /* from here on, values have changed */
    TRY(move_values(m, values));
    TRY(spmv_group_agree(m->group, renew_plan(m)));
done:
    return st;
}

spmv_status spmv_group_matrix_update_values(spmv_group_matrix *m, const void *values)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(m->group);
    return group_end(m->group, group_matrix_renew(m, values));
}

/* ------------------------------------------------------------- use */

spmv_status spmv_group_matrix_describe(const spmv_group_matrix *m, spmv_group_matrix_info *info, size_t size)
{
    spmv_plan_info plan;
    if (m == NULL || info == NULL)
        return context_need(m != NULL ? m->ctx : NULL, "spmv_group_matrix_describe", "info", info);
    const int rank = m->group->transport.rank, ranks = m->group->transport.ranks;
    const spmv_status st = spmv_plan_describe(m->plan, &plan, sizeof plan);
    int64_t largest = 0, all = 0;
    double seconds = m->seconds;
    for (const spmv_group_matrix *l = m->levels; l != NULL; l = l->next_level)
        seconds += l->seconds;
    for (int r = 0; r < ranks; r++) {
        largest = max_i64(largest, m->work_of_rank[r]);
        all += m->work_of_rank[r];
    }
    const int64_t value = !m->pattern ? (int64_t)spmv_type_size(m->own.type) : 0;
    const spmv_group_matrix_info full = {.size = sizeof full,
                                         .rows = m->ranks.rows,
                                         .cols = m->cols,
                                         .nnz = m->ranks.nnz,
                                         .chunks = m->all_chunks,
                                         .first_row = m->row_of_rank[rank],
                                         .own_rows = m->own.rows,
                                         .first_col = m->col_of_rank[rank],
                                         .own_cols = m->col_of_rank[rank + 1] - m->col_of_rank[rank],
                                         .own_nnz = m->own.nnz,
                                         .own_chunks = m->ranks.chunks,
                                         .ghosts = m->halo.before + m->halo.after,
                                         .most_ghosts = m->most_ghosts,
                                         .all_ghosts = m->all_ghosts,
                                         .imbalance = all > 0 ? (double)largest * ranks / (double)all : 1,
                                         .note = m->note,
                                         .method = plan.method,
                                         .type = m->type,
                                         .bytes = plan.bytes + (m->own.rows + 1) * 8 + m->own.nnz * (4 + value),
                                         .exchange_seconds = seconds,
                                         .exchange = m->exchange.kind != NULL ? m->exchange.kind->name : "host"};
    result_write(info, size, &full, sizeof full);
    return st;
}

static int64_t own_cols(const spmv_group_matrix *m)
{
    const int rank = m->group->transport.rank;
    return m->col_of_rank[rank + 1] - m->col_of_rank[rank];
}

/* SPMV_ERROR_ARGUMENT for a vector of n elements that is NULL. */
static spmv_status check_vector(const spmv_group_matrix *m, const char *call, const char *name, const void *vector,
                                int64_t n)
{
    return vector != NULL || n == 0 ? SPMV_OK : context_fail(m->ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", call, name);
}

/* The x that a product of x takes: x itself on a rank that needs no elements of others, else a copy with room. */
static spmv_status make_room_for(spmv_group_matrix *m, const void *x, const void **in_room)
{
    const bool alone = m->halo.room == 0 && m->halo.after == 0 && x != NULL;
    *in_room = alone ? x : m->x;
    return alone || own_cols(m) == 0 ? SPMV_OK : group_copy(m, x, m->x, own_cols(m));
}

/* The first product loads kernels. After it those of the ranks may wait for each other. */
static spmv_status apply(spmv_group_matrix *m, const void *host_alpha, const void *x, const void *host_beta, void *y)
{
    const void *in_room = NULL;
    spmv_status st = check_vector(m, "spmv_group_apply", "x", x, own_cols(m));
    if (st == SPMV_OK)
        st = check_vector(m, "spmv_group_apply", "y", y, m->own.rows);
    if (st == SPMV_OK && x == y && x != NULL)
        st = context_fail(m->ctx, SPMV_ERROR_ARGUMENT, "spmv_group_apply: x and y are the same array");
    TRY(spmv_group_agree(m->group, st));
    const bool waits = m->exchange.kind != NULL && m->multiplied && m->all_ghosts > 0 && exchange_let_wait(m, true);
    st = make_room_for(m, x, &in_room);
    if (st == SPMV_OK)
        st = spmv_apply(m->plan, host_alpha, in_room, host_beta, y);
    if (waits)
        st = exchange_queued(m, st);
    m->multiplied = m->multiplied || st == SPMV_OK;
done:
    return st;
}

spmv_status spmv_group_apply(spmv_group_matrix *m, const void *host_alpha, const void *x, const void *host_beta,
                             void *y)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(m->group);
    return group_end(m->group, apply(m, host_alpha, x, host_beta, y));
}

static spmv_status dot(spmv_group_matrix *m, const void *a, const void *b, void *host_dot)
{
    spmv_status st = check_vector(m, "spmv_group_dot", "a", a, m->own.rows);
    const int64_t size = (int64_t)spmv_type_size(type_part(m->type));
    void *cell = NULL;
    if (st == SPMV_OK)
        st = check_vector(m, "spmv_group_dot", "b", b, m->own.rows);
    if (st == SPMV_OK)
        st = check_vector(m, "spmv_group_dot", "host_dot", host_dot, 1);
    if (st == SPMV_OK)
        st = context_lend(m->ctx, size, &cell);
    TRY(spmv_group_agree(m->group, st));
    TRY(group_dot_in_context(m, m->type, a, b, cell));
    TRY(spmv_download(m->ctx, cell, host_dot, size));
done:
    context_take_back(m->ctx, cell);
    return st;
}

spmv_status spmv_group_dot(spmv_group_matrix *m, const void *a, const void *b, void *host_dot)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(m->group);
    return group_end(m->group, dot(m, a, b, host_dot));
}

/* ------------------------------------------------------------- the check of a product */

/* *host: n elements of the context's memory in host memory; *copy is released by the caller. */
static spmv_status to_host(const spmv_group_matrix *m, const void *from, int64_t n, const void **host, void **copy)
{
    return context_read(m->ctx, from, n * (int64_t)spmv_type_size(m->type), what, copy, host);
}

/* The result of all ranks: the worst row, and the number of failed rows. */
static spmv_status join_results(spmv_group_matrix *m, spmv_verify_result *own)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    spmv_verify_result *all = NULL;
    int64_t failed = 0;
    int worst = 0;
    if (own->worst_row >= 0)
        own->worst_row += m->ranks.first_row;
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *all, what, (void **)&all));
    TRY(group_gather_equal(m->group, own, all, sizeof *own));
    for (int r = 0; r < ranks; r++) {
        failed += all[r].failed_rows;
        if (all[r].worst_row >= 0 && (all[worst].worst_row < 0 || all[r].worst_ratio > all[worst].worst_ratio))
            worst = r;
    }
    *own = all[worst];
    own->failed_rows = failed;
done:
    host_free(all);
    return st;
}

/* Sets norm and norm_error, of the rows of all ranks. */
static spmv_status find_norms(spmv_group_matrix *m, const struct row_squares *squares, spmv_verify_result *result)
{
    spmv_status st = SPMV_OK;
    const int64_t chunks = m->ranks.chunks;
    double *parts = NULL, sums[2] = {0};
    TRY(spmv_group_agree(m->group, host_alloc(m->ctx, max_i64(1, 2 * chunks) * 8, what, (void **)&parts)));
    for (int64_t c = 0; c < chunks; c++) {
        parts[c] = parts[chunks + c] = 0;
        for (int64_t i = m->chunk[c]; i < m->chunk[c + 1]; i++) {
            parts[c] += squares[i].sum;
            parts[chunks + c] += squares[i].error;
        }
    }
    TRY(m->ranks.sum(m, SPMV_F64, parts, chunks, 2, sums));
    result->norm = sqrt(sums[0]);
    result->norm_error = sqrt(sums[1]);
done:
    host_free(parts);
    return st;
}

static spmv_status verify(spmv_group_matrix *m, spmv_context *reference, const void *host_alpha, const void *x,
                          const void *host_beta, const void *y0, const void *y, spmv_verify_result *result, size_t size)
{
    spmv_verify_result own = {.size = sizeof own, .worst_row = -1};
    struct row_squares *squares = NULL;
    void *copy[3] = {NULL};
    const void *host_x = NULL, *host_y0 = NULL, *host_y = NULL;
    spmv_status st = check_vector(m, "spmv_group_verify", "x", x, own_cols(m));
    if (st == SPMV_OK)
        st = check_vector(m, "spmv_group_verify", "y", y, m->own.rows);
    if (st == SPMV_OK)
        st = check_vector(m, "spmv_group_verify", "reference", reference, 1);
    TRY(spmv_group_agree(m->group, st));
    if (own_cols(m) > 0)
        TRY(group_copy(m, x, m->x, own_cols(m)));
    TRY(group_fetch_start(m, m->x, 1));
    TRY(group_fetch_finish(m, m->x, 1));
    st = to_host(m, m->x_at, m->own.cols, &host_x, &copy[0]);
    if (st == SPMV_OK)
        st = to_host(m, y0, m->own.rows, &host_y0, &copy[1]);
    if (st == SPMV_OK)
        st = to_host(m, y, m->own.rows, &host_y, &copy[2]);
    if (st == SPMV_OK)
        st = group_rows_to_host(m);
    if (st == SPMV_OK && m->own.rows > 0)
        st = plan_verify(reference, &m->own, SPMV_OPERATION_N, host_alpha, host_x, host_beta, host_y0, host_y, m->type,
                         &squares, &own);
    if (st != SPMV_OK && st != SPMV_ERROR_CHECK && reference != NULL && spmv_last_error(reference)[0] != '\0')
        (void)context_fail(m->ctx, st, "%s", spmv_last_error(reference));
    TRY(spmv_group_agree(m->group, st == SPMV_ERROR_CHECK ? SPMV_OK : st));
    TRY(join_results(m, &own));
    TRY(find_norms(m, squares, &own));
    m->group->settled = true; /* all ranks have the same result */
    if (own.failed_rows > 0)
        st = context_fail(m->ctx, SPMV_ERROR_CHECK, "spmv_group_verify: %lld of %lld rows exceed the bound",
                          (long long)own.failed_rows, (long long)m->ranks.rows);
done:
    for (int i = 0; i < 3; i++)
        host_free(copy[i]);
    host_free(squares);
    result_write(result, size, &own, sizeof own);
    return st;
}

spmv_status spmv_group_verify(spmv_group_matrix *m, spmv_context *reference, const void *host_alpha, const void *x,
                              const void *host_beta, const void *y0, const void *y, spmv_verify_result *result,
                              size_t size)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(m->group);
    return group_end(m->group, verify(m, reference, host_alpha, x, host_beta, y0, y, result, size));
}

/* ------------------------------------------------------------- vectors of rank 0 */

/* Moves a vector between rank 0, which has all of it in host memory, and its owners. */
static spmv_status distribute(spmv_group_matrix *m, const char *call, spmv_group_side side, bool back, void *host_all,
                              void *own)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = m->ctx;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    const bool staged = context_on_device(ctx);
    int64_t *root = NULL;
    void *host = own;
    if (side != SPMV_GROUP_ROWS && side != SPMV_GROUP_COLS)
        st = context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: the side is %d", call, (int)side);
    const int64_t *owner = side == SPMV_GROUP_COLS ? m->col_of_rank : m->row_of_rank;
    const int64_t all = owner[ranks], n = owner[rank + 1] - owner[rank];
    if (st == SPMV_OK)
        st = check_vector(m, call, "own", own, n);
    if (st == SPMV_OK && rank == 0)
        st = check_vector(m, call, "host_all", host_all, all);
    if (st == SPMV_OK)
        st = host_alloc(ctx, (ranks + 1) * (int64_t)sizeof *root, what, (void **)&root);
    if (st == SPMV_OK && staged)
        st = host_alloc(ctx, max_i64(1, n) * size, what, &host);
    if (st == SPMV_OK && staged && back)
        st = spmv_download(ctx, own, host, n * size);
    TRY(spmv_group_agree(m->group, st));
    root[0] = 0; /* rank 0 has all elements */
    for (int r = 1; r <= ranks; r++)
        root[r] = all;
    if (back)
        TRY(move(m, owner, root, size, host, false, host_all));
    else
        TRY(move(m, root, owner, size, host_all, false, host));
    if (staged && !back)
        TRY(spmv_upload(ctx, host, own, n * size));
done:
    host_free(root);
    if (staged && host != own)
        host_free(host);
    return st;
}

spmv_status spmv_group_scatter(spmv_group_matrix *m, spmv_group_side side, const void *host_all, void *own)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(m->group);
    return group_end(m->group, distribute(m, "spmv_group_scatter", side, false, (void *)(uintptr_t)host_all, own));
}

spmv_status spmv_group_gather(spmv_group_matrix *m, spmv_group_side side, const void *own, void *host_all)
{
    if (m == NULL)
        return SPMV_ERROR_ARGUMENT;
    group_begin(m->group);
    return group_end(m->group, distribute(m, "spmv_group_gather", side, true, host_all, (void *)(uintptr_t)own));
}
