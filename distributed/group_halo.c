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
#include <math.h>
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

#define T int32_t
#define TYPED(name) name##_i32
#include "distributed/group_columns_typed.h"
#undef T
#undef TYPED

#define T int64_t
#define TYPED(name) name##_i64
#include "distributed/group_columns_typed.h"
#undef T
#undef TYPED

/* Lists all columns that others own. */
static void list_all(const spmv_group_matrix *m, struct columns_i32 *all)
{
    const struct range own = own_columns(m);
    for (int64_t c = 0; c < m->ranks.chunks; c++)
        m->edge[c] = false;
    for (int64_t i = 0; i < m->cols; i++)
        if (!is_in(own, i))
            add_column_i32(all, (int32_t)i);
    all->sorted = all->count;
}

static spmv_status list_needed(spmv_group_matrix *m, int32_t **list, int64_t *count)
{
    struct columns_i32 all = {.bits = 32};
    if (m->needs_all)
        list_all(m, &all);
    else
        list_rows_i32(m, m->col, &all);
    return take_columns_i32(m->ctx, &all, list, count);
}

static spmv_status list_needed_wide(spmv_group_matrix *m, int64_t **list, int64_t *count)
{
    struct columns_i64 all = {.bits = 1};
    while (m->cols >> all.bits > 0)
        all.bits++;
    list_rows_i64(m, m->wide_col, &all);
    return take_columns_i64(m->ctx, &all, list, count);
}

/* Replaces the columns of the whole matrix by places in a vector with room. */
static spmv_status renumber(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &m->halo;
    if (m->wide) {
        TRY(spmv_group_agree(
            m->group, host_alloc(m->ctx, max_i64(1, m->own.nnz) * (int64_t)sizeof *m->col, what, (void **)&m->col)));
        renumber_i64(m, h->wide_ghost, m->wide_col, m->col);
        host_free(m->wide_col);
        m->wide_col = NULL;
        m->own.col = m->col;
    } else if (context_on_device(m->ctx)) {
        TRY(group_rows_renumber(m, (struct group_columns){own_columns(m).begin, own_columns(m).end}));
    } else if (h->room > 0 || own_columns(m).begin > 0 || h->after > 0) {
        renumber_i32(m, h->ghost, m->col, m->col);
    }
done:
    return st;
}

/* ------------------------------------------------------------- who sends what */

/* The first of the ghosts low <= i < high from a number on; high: there is none. */
static int64_t first_ghost_from(const struct halo *h, int64_t low, int64_t high, int64_t number)
{
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (group_ghost(h, middle) < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The parcels that arrive: the ghosts of each rank are neighbours. at: ranks + 1 numbers of ghosts. */
static void find_receives(spmv_group_matrix *m, int64_t *at)
{
    struct halo *h = &m->halo;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    const int64_t own = m->col_of_rank[rank + 1] - m->col_of_rank[rank];
    int64_t i = 0;
    h->receives = 0;
    for (int r = 0; r < ranks; r++) {
        at[r] = i;
        i = first_ghost_from(h, i, h->before + h->after, m->col_of_rank[r + 1]);
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
static spmv_status exchange_lists(spmv_group_matrix *m, const int64_t *at)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    struct transport_parcel *tell = NULL, *hear = NULL;
    const int64_t size = m->wide ? 8 : 4, first = m->col_of_rank[rank];
    char *const list = m->wide ? (char *)h->wide_ghost : (char *)h->ghost, *to = NULL;
    int64_t *wide = NULL; /* what h->index is made of */
    int tells = 0;
    st = host_alloc(m->ctx, h->count * (int64_t)sizeof *h->index, what, (void **)&h->index);
    if (st == SPMV_OK && m->wide)
        st = host_alloc(m->ctx, h->count * size, what, (void **)&wide);
    TRY(spmv_group_agree(m->group, st));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *tell, what, (void **)&tell));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *hear, what, (void **)&hear));
    for (int r = 0; r < ranks; r++)
        if (at[r + 1] > at[r])
            tell[tells++] = (struct transport_parcel){r, list + at[r] * size, (at[r + 1] - at[r]) * size};
    to = m->wide ? (char *)wide : (char *)h->index;
    for (int i = 0; i < h->sends; to += hear[i++].bytes)
        hear[i] = (struct transport_parcel){h->send[i].rank, to, h->send[i].bytes * size};
    TRY(group_start(m->group, tell, tells, hear, h->sends));
    TRY(group_finish(m->group));
    for (int64_t i = 0; i < h->count; i++)
        h->index[i] = (int32_t)((m->wide ? wide[i] : h->index[i]) - first);
done:
    host_free_all(tell, hear, wide);
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

/* SPMV_ERROR_LIMIT if places in a vector of this rank do not fit 32 bits. */
static spmv_status check_places(const spmv_group_matrix *m)
{
    const struct halo *h = &m->halo;
    const struct range own = own_columns(m);
    const int64_t count = own.end - own.begin, others = h->before + h->after;
    if (count <= INT32_MAX - h->room - h->after)
        return SPMV_OK;
    return context_fail(m->ctx, SPMV_ERROR_LIMIT,
                        "a rank has %lld elements of x and needs %lld of other ranks, at most %d are possible: "
                        "take %.0f ranks or more",
                        (long long)count, (long long)others, INT32_MAX,
                        ceil(((double)count + (double)others) * m->group->transport.ranks / (INT32_MAX - ALIGNED)));
}

/* Allocates what the search for the halo needs, and finds the needed columns: h->ghost or h->wide_ghost,
 * before, after and room. */
static spmv_status find_needed(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const struct range own = own_columns(m);
    const int64_t ranks = m->group->transport.ranks;
    int64_t count = 0;
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *h->send, what, (void **)&h->send));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *h->receive, what, (void **)&h->receive));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *h->receive_at, what, (void **)&h->receive_at));
    if (m->wide) {
        TRY(list_needed_wide(m, &h->wide_ghost, &count));
    } else if (context_on_device(m->ctx) && !m->needs_all) {
        TRY(group_rows_ghosts(m, (struct group_columns){own.begin, own.end}, &h->ghost, &count));
    } else {
        TRY(list_needed(m, &h->ghost, &count));
        if (count > 0 && context_on_device(m->ctx)) {
            TRY(context_alloc(m->ctx, count * (int64_t)sizeof *h->ghost, (void **)&m->context_ghosts));
            TRY(spmv_upload(m->ctx, h->ghost, m->context_ghosts, count * (int64_t)sizeof *h->ghost));
        }
    }
    h->before = first_ghost_from(h, 0, count, own.begin);
    h->after = count - h->before;
    h->room = ceil_divide(h->before, ALIGNED) * ALIGNED;
    TRY(check_places(m));
done:
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
    find_receives(m, at);
    for (int64_t r = 0; r < ranks; r++)
        own[r] = at[r + 1] - at[r];
    TRY(group_gather_equal(group, own, counts, ranks * (int64_t)sizeof *counts));
    h->count = add_counts(m, counts);
    find_sends(m, counts);
    if (near && m->all_ghosts > 0)
        TRY(exchange_lists_near(m, at, &moved));
    if (!moved)
        TRY(exchange_lists(m, at));
    TRY(renumber(m));
done:
    host_free_all(at, own, counts);
    return st;
}

/* ------------------------------------------------------------- exchanges */

/* Multiplies the bytes of the parcels by times / by, and places them one behind the other. */
static void set_parcels(struct halo *h, int64_t times, int64_t by)
{
    char *to = h->packed;
    for (int i = 0; i < h->sends; i++) {
        h->send[i].bytes = h->send[i].bytes / by * times;
        h->send[i].memory = to;
        to += h->send[i].bytes;
    }
    to = h->arrived;
    for (int i = 0; i < h->receives; i++) {
        h->receive[i].bytes = h->receive[i].bytes / by * times;
        h->receive[i].memory = to;
        to = to != NULL ? to + h->receive[i].bytes : NULL;
    }
}

spmv_status group_halo_buffers(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    TRY(host_alloc(m->ctx, h->count * size, what, &h->packed));
    if (context_on_device(m->ctx)) {
        TRY(host_alloc(m->ctx, (h->before + h->after) * size, what, &h->arrived));
        TRY(context_alloc(m->ctx, max_i64(1, h->count) * size, &h->context_packed));
        if (h->context_index == NULL) {
            TRY(context_alloc(m->ctx, max_i64(1, h->count) * 4, (void **)&h->context_index));
            TRY(spmv_upload(m->ctx, h->index, h->context_index, h->count * 4));
        }
    }
    h->most_vectors = 1;
    set_parcels(h, size, 1); /* bytes was the number of elements */
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
    host_free_all(h->ghost, h->wide_ghost, h->index);
    context_free(m->ctx, h->context_index);
}

static inline void copy_indexed(const struct halo *h, const void *x, size_t size)
{
    for (int64_t i = 0; i < h->count; i++)
        copy_value(h->packed, i, x, h->index[i], size);
}

/* The elements of several vectors, which are neighbours. */
static void copy_rows(const struct halo *h, const char *x, size_t row)
{
    char *to = h->packed;
    for (int64_t i = 0; i < h->count; i++, to += row)
        memcpy(to, x + (size_t)h->index[i] * row, row);
}

/* Copies the elements that others need. */
static spmv_status pack(const spmv_group_matrix *m, const void *x, int vectors)
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
    if (vectors > 1)
        copy_rows(h, x, (size_t)vectors * spmv_type_size(m->type));
    else
        SIZED(spmv_type_size(m->type), copy_indexed(h, x, SIZE))
    return SPMV_OK;
}

/* Room for so many vectors; not on a GPU. */
static spmv_status widen(spmv_group_matrix *m, int vectors)
{
    struct halo *h = &m->halo;
    void *packed = NULL;
    if (vectors <= h->most_vectors)
        return SPMV_OK;
    const spmv_status st = host_alloc(m->ctx, h->count * vectors * (int64_t)spmv_type_size(m->type), what, &packed);
    if (st != SPMV_OK)
        return st;
    host_free(h->packed);
    h->packed = packed;
    h->most_vectors = vectors;
    set_parcels(h, 1, 1);
    return SPMV_OK;
}

spmv_status group_fetch_start(void *matrix, void *x, int vectors)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    struct halo *h = &m->halo;
    const int64_t size = vectors * (int64_t)spmv_type_size(m->type);
    const double begin = monotonic_seconds();
    if (m->all_ghosts == 0)
        return SPMV_OK;
    if (m->exchange.kind != NULL) {
        TRY(exchange_fetch_start(m, x));
        goto done;
    }
    if (vectors > 1) {
        TRY(widen(m, vectors));
        set_parcels(h, vectors, 1);
    }
    TRY(pack(m, x, vectors));
    for (int i = 0; i < h->receives && !context_on_device(m->ctx); i++)
        h->receive[i].memory = (char *)x + h->receive_at[i] * size;
    TRY(group_start(m->group, h->send, h->sends, h->receive, h->receives));
done:
    m->seconds += monotonic_seconds() - begin;
    return st;
}

spmv_status group_fetch_finish(void *matrix, void *x, int vectors)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    struct halo *h = &m->halo;
    const int64_t size = vectors * (int64_t)spmv_type_size(m->type);
    const double begin = monotonic_seconds();
    if (m->all_ghosts == 0)
        return SPMV_OK;
    if (m->exchange.kind != NULL) {
        TRY(exchange_fetch_finish(m, x));
        goto done;
    }
    TRY(group_finish(m->group));
    if (vectors > 1)
        set_parcels(h, 1, vectors);
    for (int i = 0; i < h->receives && context_on_device(m->ctx); i++)
        TRY(spmv_upload(m->ctx, h->receive[i].memory, (char *)x + h->receive_at[i] * size, h->receive[i].bytes));
done:
    m->seconds += monotonic_seconds() - begin;
    return st;
}
