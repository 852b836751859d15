/* The halo of a rank: elements of x that its rows need and other ranks own.
 *
 * A vector with room holds, in ascending order of their global numbers, the elements of lower
 * ranks that are needed, the own elements, and those of higher ranks. So columns keep their
 * order, and the product of a row is the same sum whatever rank has it.
 *
 * Each thread lists the columns of others in its chunks, and sorts its list whenever it has
 * doubled, so repeats take little memory. Then one sorted list has the needed columns; the place
 * of a column follows from a search in it. Nothing has the size of the whole x.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/threads.h"
#include "distributed/group_internal.h"
#include "distributed/near.h"
#include "formats/columns.h"
#include "formats/matrix_internal.h"

static const char *const what = "the halo of a rank";

/* Own elements begin at a multiple of ALIGNED elements, as memory of their own does. */
enum { ALIGNED = 16 };

/* ------------------------------------------------------------- the needed columns */

/* Columns; the first `sorted` of them ascend strictly. */
struct columns {
    int32_t *col;
    int64_t count, sorted, room;
    bool refused; /* no memory for more */
};

/* Sorts by digits of 11 bits; `other` has the same room. */
static void sort_digits(int32_t *col, int32_t *other, int64_t n)
{
    enum { BITS = 11, DIGITS = 1 << BITS };
    for (int shift = 0; shift < 32; shift += BITS) {
        int64_t at[DIGITS] = {0}, before = 0;
        for (int64_t i = 0; i < n; i++)
            at[(uint32_t)col[i] >> shift & (DIGITS - 1)]++;
        for (int d = 0; d < DIGITS; d++) {
            const int64_t its = at[d];
            at[d] = before;
            before += its;
        }
        for (int64_t i = 0; i < n; i++)
            other[at[(uint32_t)col[i] >> shift & (DIGITS - 1)]++] = col[i];
        int32_t *const swap = col;
        col = other;
        other = swap;
    }
    memcpy(other, col, (size_t)n * sizeof *col); /* three passes: the result is in the second array */
}

/* Sorts the list and drops repeats. */
static void sort_columns(struct columns *c)
{
    int32_t *const other = c->count > c->sorted ? malloc((size_t)c->count * sizeof *other) : NULL;
    int64_t kept = 0;
    if (c->count == c->sorted)
        return;
    if (other == NULL) {
        c->refused = true;
        return;
    }
    sort_digits(c->col, other, c->count);
    free(other);
    for (int64_t i = 0; i < c->count; i++)
        if (kept == 0 || c->col[i] != c->col[kept - 1])
            c->col[kept++] = c->col[i];
    c->count = c->sorted = kept;
}

static void add_column(struct columns *c, int32_t column)
{
    enum { LEAST = 4096 };
    if (c->refused)
        return;
    if (c->count == c->room) {
        sort_columns(c);
        if (c->refused || 2 * c->sorted <= c->room - 1)
            goto put; /* half of them were repeats */
        const int64_t room = c->room == 0 ? LEAST : 2 * c->room;
        int32_t *const more = realloc(c->col, (size_t)room * sizeof *more);
        c->refused = more == NULL;
        c->col = more != NULL ? more : c->col;
        c->room = more != NULL ? room : c->room;
    }
put:
    if (!c->refused)
        c->col[c->count++] = column;
}

/* The columns [begin, end) of a rank. */
struct range {
    int64_t begin, end;
};

static struct range own_columns(const spmv_group_matrix *m)
{
    const int rank = m->group->transport.rank;
    return (struct range){m->col_of_rank[rank], m->col_of_rank[rank + 1]};
}

static bool is_in(struct range own, int64_t column)
{
    return own.begin <= column && column < own.end;
}

/* Lists the columns of a chunk that others own. Returns whether there are any. A row often has
 * the columns of the row before, moved by one, so a column that was just listed is rare, and one
 * in a small table is not listed again. */
static bool list_chunk(const spmv_group_matrix *m, struct range own, int64_t c, struct columns *to)
{
    enum { RECENT = 1 << 10 };
    int32_t recent[RECENT];
    bool any = false;
    memset(recent, -1, sizeof recent);
    for (int64_t k = m->row_ptr[m->chunk[c]]; k < m->row_ptr[m->chunk[c + 1]]; k++) {
        const int32_t column = m->col[k];
        if (is_in(own, column))
            continue;
        any = true;
        int32_t *const place = &recent[(uint32_t)column % RECENT];
        if (*place != column)
            add_column(to, column);
        *place = column;
    }
    return any;
}

static void list_all(const spmv_group_matrix *m, struct columns *all)
{
    const struct range own = own_columns(m);
    for (int64_t c = 0; c < m->ranks.chunks; c++)
        m->edge[c] = false;
    for (int64_t i = 0; i < m->cols; i++)
        if (!is_in(own, i))
            add_column(all, (int32_t)i);
    all->sorted = all->count;
}

/* *all: the sorted columns that others own, and rows of this rank need. Sets m->edge. */
static spmv_status list_needed(spmv_group_matrix *m, struct columns *all)
{
    const struct range own = own_columns(m);
    bool refused = false;
    if (m->needs_all) {
        list_all(m, all);
        return all->refused ? context_fail(m->ctx, SPMV_ERROR_MEMORY, "no memory for %s", what) : SPMV_OK;
    }
#pragma omp parallel num_threads(host_team(m->ctx, m->own.nnz))
    {
        struct columns mine = {.col = NULL};
#pragma omp for schedule(dynamic, 8)
        for (int64_t c = 0; c < m->ranks.chunks; c++)
            m->edge[c] = list_chunk(m, own, c, &mine);
        sort_columns(&mine);
#pragma omp critical(group_halo_list)
        {
            for (int64_t i = 0; i < mine.count; i++)
                add_column(all, mine.col[i]);
            refused = refused || mine.refused || all->refused;
        }
        free(mine.col);
    }
    sort_columns(all);
    return refused || all->refused ? context_fail(m->ctx, SPMV_ERROR_MEMORY, "no memory for %s", what) : SPMV_OK;
}

/* The place of a column in a vector with room. near: the number in the list of a column that was
 * found before. */
static int32_t place_of(const struct halo *h, struct range own, int64_t column, int64_t *near)
{
    int64_t begin = column < own.begin ? 0 : h->before, end = column < own.begin ? h->before : h->before + h->after;
    if (is_in(own, column))
        return (int32_t)(h->room + column - own.begin);
    if (begin <= *near && *near < end && h->ghost[*near] <= column) { /* most often it or one of the next */
        begin = *near;
        for (int64_t step = 1; begin + step < end && h->ghost[begin + step] <= column; step *= 2)
            begin += step;
    }
    while (end - begin > 1) {
        const int64_t middle = begin + (end - begin) / 2;
        if (h->ghost[middle] <= column)
            begin = middle;
        else
            end = middle;
    }
    *near = begin;
    return (int32_t)(begin < h->before ? h->room - h->before + begin
                                       : h->room + own.end - own.begin + begin - h->before);
}

/* Replaces the columns of the whole matrix by places in a vector with room. */
static void renumber(spmv_group_matrix *m)
{
    const struct halo *h = &m->halo;
    const struct range own = own_columns(m);
    enum { AT_ONCE = 1 << 16 };
    if (h->room == 0 && own.begin == 0 && h->after == 0)
        return;
#pragma omp parallel for num_threads(host_team(m->ctx, m->own.nnz)) schedule(static)
    for (int64_t first = 0; first < m->own.nnz; first += AT_ONCE) {
        const int64_t end = min_i64(m->own.nnz, first + AT_ONCE);
        int64_t near = 0;
        for (int64_t k = first; k < end; k++)
            m->col[k] = place_of(h, own, m->col[k], &near);
    }
}

/* ------------------------------------------------------------- who sends what */

/* The parcels that arrive: the needed columns of each rank are neighbours in the list. at: ranks
 * + 1 places of the list. */
static void find_receives(spmv_group_matrix *m, const int32_t *list, int64_t count, int64_t *at)
{
    struct halo *h = &m->halo;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    const int64_t own = m->col_of_rank[rank + 1] - m->col_of_rank[rank];
    int64_t i = 0;
    h->receives = 0;
    for (int r = 0; r < ranks; r++) {
        at[r] = i;
        i = first_column_from(list, i, count, m->col_of_rank[r + 1]);
        if (i > at[r]) {
            h->receive[h->receives] = (struct transport_parcel){.rank = r, .bytes = i - at[r]};
            h->receive_at[h->receives++] = r < rank ? at[r] - h->before : own + at[r] - h->before;
        }
    }
    at[ranks] = i;
}

/* What this rank sends: the parcels. counts: the elements that rank i needs of rank j are counts[i * ranks + j]. */
static void find_sends(spmv_group_matrix *m, const int64_t *counts)
{
    struct halo *h = &m->halo;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    h->sends = 0;
    for (int r = 0; r < ranks; r++)
        if (counts[r * ranks + rank] > 0)
            h->send[h->sends++] = (struct transport_parcel){.rank = r, .bytes = counts[r * ranks + rank]};
}

/* Exchanges the lists: each rank learns which of its elements the others need. */
static spmv_status exchange_lists(spmv_group_matrix *m, int32_t *list, const int64_t *at)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    struct transport_parcel *tell = NULL, *hear = NULL;
    int tells = 0;
    int64_t heard = 0;
    TRY(spmv_group_agree(m->group, host_alloc(m->ctx, h->count * (int64_t)sizeof *h->index, what, (void **)&h->index)));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *tell, what, (void **)&tell));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *hear, what, (void **)&hear));
    for (int r = 0; r < ranks; r++)
        if (at[r + 1] > at[r])
            tell[tells++] = (struct transport_parcel){r, list + at[r], (at[r + 1] - at[r]) * (int64_t)sizeof *list};
    for (int i = 0; i < h->sends; heard += h->send[i++].bytes)
        hear[i] =
            (struct transport_parcel){h->send[i].rank, h->index + heard, h->send[i].bytes * (int64_t)sizeof *h->index};
    TRY(group_start(m->group, tell, tells, hear, h->sends));
    TRY(group_finish(m->group));
    for (int64_t i = 0; i < h->count; i++)
        h->index[i] -= (int32_t)m->col_of_rank[rank];
done:
    host_free(tell);
    host_free(hear);
    return st;
}

/* The same between GPUs that are near, without h->index. */
static spmv_status exchange_lists_near(spmv_group_matrix *m, const int64_t *at, bool *moved)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    const int64_t ghosts = h->before + h->after, size = (int64_t)sizeof *h->context_index;
    const int32_t first = (int32_t)-m->col_of_rank[rank];
    int64_t *offset = NULL, heard = 0;
    struct near_parcel *hear = NULL;
    void *packed = NULL;
    *moved = false;
    TRY(spmv_group_agree(m->group, context_alloc(m->ctx, max_i64(1, h->count) * size, (void **)&h->context_index)));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *offset, what, (void **)&offset));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *hear, what, (void **)&hear));
    for (int r = 0; r < ranks; r++)
        offset[r] = at[r] * size;
    for (int i = 0; i < h->sends; heard += h->send[i++].bytes)
        hear[i] = (struct near_parcel){h->send[i].rank, h->context_index + heard, h->send[i].bytes * size};
    TRY(near_lend(m->group, ghosts * size, &packed));
    if (ghosts > 0)
        TRY(spmv_map(m->ctx, SPMV_MAP_COPY, SPMV_I32, m->context_ghosts, packed, ghosts));
    TRY(near_swap(m->group, offset, hear, h->sends, moved));
    if (*moved && h->count > 0)
        TRY(spmv_map_scalar(m->ctx, SPMV_ADD, SPMV_I32, &first, h->context_index, h->context_index, h->count));
done:
    if (!*moved) {
        context_free(m->ctx, h->context_index);
        h->context_index = NULL;
    }
    host_free_all(offset, hear);
    return st;
}

/* Sums of the counts: the elements that this rank sends, and the ghosts of all ranks. */
static int64_t add_counts(spmv_group_matrix *m, const int64_t *counts)
{
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    int64_t sent = 0;
    m->most_ghosts = m->all_ghosts = 0;
    for (int i = 0; i < ranks; i++) {
        int64_t its = 0;
        for (int j = 0; j < ranks; j++)
            its += counts[i * ranks + j];
        sent += counts[i * ranks + rank];
        m->all_ghosts += its;
        m->most_ghosts = max_i64(m->most_ghosts, its);
    }
    return sent;
}

/* Allocates what the search for the halo needs, and finds the needed columns: h->ghost, before,
 * after and room. */
static spmv_status find_needed(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const struct range own = own_columns(m);
    const int64_t ranks = m->group->transport.ranks;
    struct columns needed = {.col = NULL};
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *h->send, what, (void **)&h->send));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *h->receive, what, (void **)&h->receive));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *h->receive_at, what, (void **)&h->receive_at));
    if (context_on_device(m->ctx) && !m->needs_all) {
        TRY(group_rows_ghosts(m, (struct group_columns){own.begin, own.end}, &h->ghost, &needed.count));
    } else {
        TRY(list_needed(m, &needed));
        TRY(host_alloc(m->ctx, needed.count * (int64_t)sizeof *h->ghost, what, (void **)&h->ghost));
        if (needed.count > 0)
            memcpy(h->ghost, needed.col, (size_t)needed.count * sizeof *h->ghost);
        if (needed.count > 0 && context_on_device(m->ctx)) {
            TRY(context_alloc(m->ctx, needed.count * (int64_t)sizeof *h->ghost, (void **)&m->context_ghosts));
            TRY(spmv_upload(m->ctx, h->ghost, m->context_ghosts, needed.count * (int64_t)sizeof *h->ghost));
        }
    }
    while (h->before < needed.count && h->ghost[h->before] < own.begin)
        h->before++;
    h->after = needed.count - h->before;
    h->room = ceil_divide(h->before, ALIGNED) * ALIGNED;
    if (h->room + own.end - own.begin + h->after > INT32_MAX)
        TRY(context_fail(m->ctx, SPMV_ERROR_LIMIT, "a rank has more than %d elements of x with those of others",
                         INT32_MAX));
done:
    free(needed.col);
    return st;
}

spmv_status group_halo_prepare(spmv_group_matrix *m, bool near)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    spmv_group *group = m->group;
    const int64_t ranks = group->transport.ranks;
    int64_t *at = NULL, *own = NULL, *counts = NULL;
    bool moved = false;
    TRY(spmv_group_agree(group, find_needed(m)));
    TRY(host_alloc(m->ctx, (ranks + 1) * (int64_t)sizeof *at, what, (void **)&at));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *own, what, (void **)&own));
    TRY(host_alloc(m->ctx, ranks * ranks * (int64_t)sizeof *counts, what, (void **)&counts));
    find_receives(m, h->ghost, h->before + h->after, at);
    for (int64_t r = 0; r < ranks; r++)
        own[r] = at[r + 1] - at[r];
    TRY(group_gather_equal(group, own, counts, ranks * (int64_t)sizeof *counts));
    h->count = add_counts(m, counts);
    find_sends(m, counts);
    if (near && m->all_ghosts > 0)
        TRY(exchange_lists_near(m, at, &moved));
    if (!moved)
        TRY(exchange_lists(m, h->ghost, at));
    if (context_on_device(m->ctx))
        TRY(group_rows_renumber(m, (struct group_columns){own_columns(m).begin, own_columns(m).end}));
    else
        renumber(m);
done:
    host_free_all(at, own, counts);
    return st;
}

/* ------------------------------------------------------------- exchanges */

spmv_status group_halo_buffers(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    char *to = NULL;
    TRY(host_alloc(m->ctx, h->count * size, what, &h->packed));
    if (context_on_device(m->ctx)) {
        TRY(host_alloc(m->ctx, (h->before + h->after) * size, what, &h->arrived));
        TRY(context_alloc(m->ctx, max_i64(1, h->count) * size, &h->context_packed));
        if (h->context_index == NULL) {
            TRY(context_alloc(m->ctx, max_i64(1, h->count) * 4, (void **)&h->context_index));
            TRY(spmv_upload(m->ctx, h->index, h->context_index, h->count * 4));
        }
    }
    to = h->packed;
    for (int i = 0; i < h->sends; i++) { /* bytes was the number of elements */
        h->send[i].bytes *= size;
        h->send[i].memory = to;
        to += h->send[i].bytes;
    }
    to = h->arrived;
    for (int i = 0; i < h->receives; i++) {
        h->receive[i].bytes *= size;
        h->receive[i].memory = to;
        to = to != NULL ? to + h->receive[i].bytes : NULL;
    }
done:
    return st;
}

void group_free_each(spmv_context *ctx, void *const *memory, size_t count)
{
    for (size_t i = 0; i < count; i++)
        context_free(ctx, memory[i]);
}

void group_halo_release(spmv_group_matrix *m)
{
    struct halo *h = &m->halo;
    host_free_all(h->send, h->receive, h->receive_at, h->packed, h->arrived);
    context_free(m->ctx, h->context_packed);
    if (h->borrows)
        return;
    host_free_all(h->ghost, h->index);
    context_free(m->ctx, h->context_index);
}

static inline void copy_indexed(const struct halo *h, const void *x, size_t size)
{
    for (int64_t i = 0; i < h->count; i++)
        copy_value(h->packed, i, x, h->index[i], size);
}

/* Copies the elements that others need. */
static spmv_status pack(const spmv_group_matrix *m, const void *x)
{
    const struct halo *h = &m->halo;
    if (context_on_device(m->ctx)) {
        spmv_status st = SPMV_OK;
        const int64_t own = m->col_of_rank[m->group->transport.rank + 1] - m->col_of_rank[m->group->transport.rank];
        if (h->count == 0)
            return SPMV_OK;
        TRY(spmv_gather(m->ctx, m->type, x, own, h->context_index, 32, h->context_packed, h->count));
        TRY(spmv_download(m->ctx, h->context_packed, h->packed, h->count * (int64_t)spmv_type_size(m->type)));
    done:
        return st;
    }
    SIZED(spmv_type_size(m->type), copy_indexed(h, x, SIZE))
    return SPMV_OK;
}

spmv_status group_fetch_start(void *matrix, void *x)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    struct halo *h = &m->halo;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    const double begin = monotonic_seconds();
    if (m->all_ghosts == 0)
        return SPMV_OK;
    if (m->exchange.kind != NULL) {
        TRY(exchange_fetch_start(m, x));
        goto done;
    }
    TRY(pack(m, x));
    for (int i = 0; i < h->receives && !context_on_device(m->ctx); i++)
        h->receive[i].memory = (char *)x + h->receive_at[i] * size;
    TRY(group_start(m->group, h->send, h->sends, h->receive, h->receives));
done:
    m->seconds += monotonic_seconds() - begin;
    return st;
}

spmv_status group_fetch_finish(void *matrix, void *x)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    const struct halo *h = &m->halo;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    const double begin = monotonic_seconds();
    if (m->all_ghosts == 0)
        return SPMV_OK;
    if (m->exchange.kind != NULL) {
        TRY(exchange_fetch_finish(m, x));
        goto done;
    }
    TRY(group_finish(m->group));
    for (int i = 0; i < h->receives && context_on_device(m->ctx); i++)
        TRY(spmv_upload(m->ctx, h->receive[i].memory, (char *)x + h->receive_at[i] * size, h->receive[i].bytes));
done:
    m->seconds += monotonic_seconds() - begin;
    return st;
}
