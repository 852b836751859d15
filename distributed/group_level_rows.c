/* Rows of a level that ranks fetch from each other, and the transpose of a matrix over ranks. What moves is
 * packed in the context's memory. Between GPUs that are near (near.h) it goes from one to the other, else through the
 * memory of hosts; the rest stays where it is.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <string.h>

#include "core/threads.h"
#include "distributed/group_levels.h"
#include "distributed/group_places.h"
#include "formats/matrix_internal.h"

static const char *const what = "rows of a hierarchy of ranks";

static void free_arrays(spmv_context *ctx, struct rank_arrays *a)
{
    context_free(ctx, a->row_ptr);
    context_free(ctx, a->col);
    context_free(ctx, a->val);
    *a = (struct rank_arrays){.nnz = 0};
}

static spmv_status alloc_arrays(spmv_context *ctx, int64_t rows, int64_t nnz, int64_t size, struct rank_arrays *a)
{
    spmv_status st = SPMV_OK;
    *a = (struct rank_arrays){.rows = rows, .nnz = nnz};
    TRY(context_alloc(ctx, (rows + 1) * 8, (void **)&a->row_ptr));
    TRY(context_alloc(ctx, max_i64(1, nnz) * 4, (void **)&a->col));
    if (size > 0)
        TRY(context_alloc(ctx, max_i64(1, nnz) * size, &a->val));
done:
    if (st != SPMV_OK)
        free_arrays(ctx, a);
    return st;
}

/* From host memory to place `first` of an array in the context's memory. */
static spmv_status put(spmv_context *ctx, const void *from, int64_t size, int64_t n, void *array, int64_t first)
{
    return n > 0 ? spmv_upload(ctx, from, (char *)array + first * size, n * size) : SPMV_OK;
}

/* ------------------------------------------------------------- rows of other ranks */

/* Rows on their way: those that others need, and those that come. */
struct moving {
    struct level *l;
    const spmv_csr *own;
    bool places;           /* see fetch_others */
    const int32_t *needed; /* the same, needs of them */
    int64_t needs;
    int64_t *begin, *there;   /* count + 1: where the entries of each row that is sent begin; the same on a GPU */
    int64_t *length;          /* before + after: entries of each row that comes */
    int64_t *sent, *received; /* entries of each parcel */
    int64_t arriving[2];      /* entries in front of the own ones, and behind */
};

static void release_moving(struct moving *m)
{
    host_free_all(m->begin, m->length, m->sent);
    context_free(m->l->m.ctx, m->there);
}

/* The lengths of the rows that are sent, in host memory. */
static spmv_status find_lengths(struct moving *m, int64_t *length)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &m->l->m.halo;
    spmv_context *ctx = m->l->m.ctx;
    const int64_t *const row_ptr = m->own->row_ptr;
    const struct group_elements e = {h->context_index, h->count, 1};
    if (!context_on_device(ctx)) {
        for (int64_t i = 0; i < h->count; i++)
            length[i] = row_ptr[h->index[i] + 1] - row_ptr[h->index[i]];
        return SPMV_OK;
    }
    TRY(context_alloc(ctx, (h->count + 1) * 8, (void **)&m->there));
    if (h->count > 0) {
        TRY(group_row_lengths_cuda(ctx, &e, row_ptr, 64, m->there));
        TRY(spmv_download(ctx, m->there, length, h->count * 8));
    }
done:
    return st;
}

/* Rows that nobody needs have no entries. */
static spmv_status drop_unneeded(const struct moving *m, int64_t *length)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &m->l->m.halo;
    const struct rank_halo *const at = &m->l->halo;
    const void *there = NULL;
    void *copy = NULL;
    uint8_t *wanted = NULL, *asked = NULL;
    TRY(host_alloc(m->l->m.ctx, max_i64(1, h->count), what, (void **)&asked));
    TRY(host_zeros(m->l->m.ctx, max_i64(1, h->before + h->after), what, (void **)&wanted));
    TRY(context_read(m->l->m.ctx, m->needed, m->needs * 4, what, &copy, &there));
    for (int64_t k = 0; k < m->needs; k++) {
        const int64_t ghost = ghost_at(at, ((const int32_t *)there)[k]);
        if (ghost >= 0)
            wanted[ghost] = 1;
    }
    TRY(group_level_swap_back(m->l, wanted, asked, 1));
    for (int64_t i = 0; i < h->count; i++)
        length[i] = asked[i] != 0 ? length[i] : 0;
done:
    host_free_all(wanted, asked, copy);
    return st;
}

/* Adds the lengths of the rows of each parcel. */
static void add_lengths(const struct transport_parcel *parcel, int parcels, int64_t of_type, const int64_t *length,
                        int64_t *entries)
{
    int64_t at = 0;
    for (int i = 0; i < parcels; i++) {
        entries[i] = 0;
        for (const int64_t last = at + parcel[i].bytes / of_type; at < last; at++)
            entries[i] += length[at];
    }
}

/* Tells the lengths of rows to those who need them. */
static spmv_status begin_moving(struct moving *m)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &m->l->m.halo;
    spmv_context *ctx = m->l->m.ctx;
    const int64_t of_type = (int64_t)spmv_type_size(m->l->m.type), ranks = m->l->m.group->transport.ranks;
    int64_t sum = 0;
    TRY(host_alloc(ctx, (h->count + 1) * 8, what, (void **)&m->begin));
    TRY(host_alloc(ctx, max_i64(1, h->before + h->after) * 8, what, (void **)&m->length));
    TRY(host_alloc(ctx, 2 * ranks * 8, what, (void **)&m->sent));
    m->received = m->sent + ranks;
    TRY(find_lengths(m, m->begin));
    if (m->needed != NULL)
        TRY(drop_unneeded(m, m->begin));
    TRY(group_level_swap(m->l, m->begin, NULL, m->length, NULL, 8));
    add_lengths(h->send, h->sends, of_type, m->begin, m->sent);
    add_lengths(h->receive, h->receives, of_type, m->length, m->received);
    for (int64_t i = 0; i < h->before + h->after; i++)
        m->arriving[i >= h->before] += m->length[i];
    for (int64_t i = 0; i <= h->count; i++) {
        const int64_t its = i < h->count ? m->begin[i] : 0;
        m->begin[i] = sum;
        sum += its;
    }
    if (m->there != NULL)
        TRY(spmv_upload(ctx, m->begin, m->there, (h->count + 1) * 8));
done:
    return st;
}

/* The row offsets of all rows. */
static spmv_status put_offsets(const struct moving *m, const struct rank_halo *halo, int64_t *row_ptr)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &m->l->m.halo;
    spmv_context *ctx = m->l->m.ctx;
    int64_t *host = NULL, end = 0;
    TRY(host_alloc(ctx, max_i64(1, max_i64(h->room, h->after)) * 8, what, (void **)&host));
    for (int64_t i = 0; i < h->room; i++) {
        host[i] = end;
        end += i >= h->room - h->before ? m->length[i - (h->room - h->before)] : 0;
    }
    TRY(put(ctx, host, 8, h->room, row_ptr, 0));
    if (m->places)
        TRY(spmv_map_index(ctx, SPMV_I64, &end, &(int64_t){0}, row_ptr + h->room, halo->own + 1));
    else
        TRY(spmv_map_scalar(ctx, SPMV_ADD, SPMV_I64, &end, m->own->row_ptr, row_ptr + h->room, halo->own + 1));
    end += m->places ? 0 : m->own->nnz;
    for (int64_t i = 0; i < h->after; i++) {
        end += m->length[h->before + i];
        host[i] = end;
    }
    TRY(put(ctx, host, 8, h->after, row_ptr, h->room + halo->own + 1));
    TRY(spmv_synchronize(ctx)); /* before the host's copy goes */
done:
    host_free(host);
    return st;
}

/* Sends an array of the entries of rows that others need; arrived: those of other ranks. */
static spmv_status send_entries(const struct moving *m, const void *array, int64_t size, char *arrived)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &m->l->m.halo;
    spmv_context *ctx = m->l->m.ctx;
    const int64_t *const row_ptr = m->own->row_ptr, count = m->begin[h->count];
    const struct group_elements e = {h->context_index, h->count, (int)(size / 4)};
    char *packed = NULL;
    void *there = NULL;
    TRY(host_alloc(ctx, max_i64(1, count * size), what, (void **)&packed));
    if (!context_on_device(ctx)) {
#pragma omp parallel for num_threads(host_team(ctx, count)) schedule(static)
        for (int64_t i = 0; i < h->count; i++)
            memcpy(packed + m->begin[i] * size, (const char *)array + row_ptr[h->index[i]] * size,
                   (size_t)((m->begin[i + 1] - m->begin[i]) * size));
    } else if (count > 0) {
        TRY(context_alloc(ctx, count * size, &there));
        TRY(group_take_rows_cuda(ctx, &e, row_ptr, 64, m->there, array, there));
        TRY(spmv_download(ctx, there, packed, count * size));
    }
    if (m->places && array == m->own->col) {
#pragma omp parallel for num_threads(host_team(ctx, count)) schedule(static)
        for (int64_t k = 0; k < count; k++)
            ((int32_t *)(void *)packed)[k] =
                number_at(&m->l->halo, m->l->halo.ghost, ((const int32_t *)(void *)packed)[k]);
    }
    TRY(group_level_swap(m->l, packed, m->sent, arrived, m->received, size));
done:
    host_free(packed);
    context_free(ctx, there);
    return st;
}

/* What has arrived, and copies of own entries. */
static spmv_status join_entries(const struct moving *m, const char *arrived, const void *own, int64_t size, void *all)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = m->l->m.ctx;
    const int64_t nnz = m->places ? 0 : m->own->nnz, front = m->arriving[0];
    TRY(put(ctx, arrived, size, front, all, 0));
    TRY(group_level_copy(ctx, own, size, nnz, (char *)all + front * size));
    TRY(put(ctx, arrived + front * size, size, m->arriving[1], all, front + nnz));
done:
    return st;
}

/* Arrived columns become places, values of those that are not in the layout become 0. */
static void find_places(spmv_context *ctx, const struct rank_halo *h, int64_t count, int32_t *col, char *val,
                        int64_t size)
{
#pragma omp parallel for num_threads(host_team(ctx, count)) schedule(static)
    for (int64_t k = 0; k < count; k++) {
        bool there = false;
        col[k] = place_up_to(h, h->ghost, col[k], &there);
        if (!there)
            memset(val + k * size, 0, (size_t)size);
    }
}

/* Through the memory of hosts. */
static spmv_status fetch_rows_of_hosts(const struct rank_halo *halo, const spmv_csr *own, bool places,
                                       const int32_t *needed, int64_t needs, struct rank_arrays *all)
{
    spmv_status st = SPMV_OK;
    struct moving m = {.l = group_level_of(halo), .own = own, .places = places, .needed = needed, .needs = needs};
    spmv_context *ctx = m.l->m.ctx;
    const int64_t rows = halo->room + halo->own + halo->after;
    const int64_t size = own->val != NULL ? (int64_t)spmv_type_size(own->type) : 0;
    int64_t arriving = 0;
    char *col = NULL, *val = NULL;
    *all = (struct rank_arrays){.nnz = 0};
    TRY(begin_moving(&m));
    arriving = m.arriving[0] + m.arriving[1];
    TRY(alloc_arrays(ctx, rows, arriving + (places ? 0 : own->nnz), size, all));
    TRY(put_offsets(&m, halo, all->row_ptr));
    TRY(host_alloc(ctx, max_i64(1, arriving) * 4, what, (void **)&col));
    TRY(host_alloc(ctx, max_i64(1, arriving * size), what, (void **)&val));
    TRY(send_entries(&m, own->col, 4, col));
    if (size > 0)
        TRY(send_entries(&m, own->val, size, val));
    if (places)
        find_places(ctx, halo, arriving, (int32_t *)(void *)col, val, size);
    TRY(join_entries(&m, col, own->col, 4, all->col));
    if (size > 0)
        TRY(join_entries(&m, val, own->val, size, all->val));
    TRY(spmv_synchronize(ctx)); /* before the host's copies go */
done:
    if (st != SPMV_OK)
        free_arrays(ctx, all);
    host_free_all(col, val);
    release_moving(&m);
    return st;
}

/* ------------------------------------------------------------- the same between GPUs that are near
 *
 * The host reads how many entries go and come, and nothing else. */

/* What the host reads of a fetch: where the entries of each parcel begin and end. */
struct near_counts {
    int64_t *number;          /* in host memory: of each parcel that is sent where it begins, and the end; see below */
    int64_t *sent, *received; /* entries of each parcel */
    int64_t arriving[2];      /* in front of the own ones, and behind */
};

/* l->bounds: numbers of rows whose offsets tell that. Of the rows that are sent: the first of each parcel, and their
 * count. Of all rows: the first of each parcel that comes, and the one behind its last; room; all rows. */
static spmv_status find_bounds(struct level *l)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type), count = h->sends + 1 + 2 * h->receives + 2;
    int32_t *bound = NULL, *at = NULL;
    int64_t first = 0;
    if (l->bounds != NULL)
        return SPMV_OK;
    TRY(host_alloc(l->m.ctx, count * 4, what, (void **)&bound));
    at = bound;
    for (int i = 0; i < h->sends; first += h->send[i++].bytes / of_type)
        *at++ = (int32_t)first;
    *at++ = (int32_t)h->count;
    for (int i = 0; i < h->receives; i++) {
        *at++ = (int32_t)(h->room + h->receive_at[i]);
        *at++ = (int32_t)(h->room + h->receive_at[i] + h->receive[i].bytes / of_type);
    }
    *at++ = (int32_t)h->room;
    *at++ = (int32_t)(h->room + l->halo.own + h->after);
    TRY(context_alloc(l->m.ctx, count * 4, (void **)&l->bounds));
    TRY(spmv_upload(l->m.ctx, bound, l->bounds, count * 4));
done:
    host_free(bound);
    return st;
}

/* Reads the counts. begin: where the entries of rows that are sent begin; row_ptr: of all rows. */
static spmv_status read_counts(struct level *l, const int64_t *begin, const int64_t *row_ptr, int64_t own_nnz,
                               struct near_counts *c)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const int64_t sends = h->sends + 1, others = 2 * h->receives + 2, rows = h->room + l->halo.own + h->after;
    int64_t *there = NULL;
    const int64_t *at = NULL;
    TRY(find_bounds(l));
    TRY(context_alloc(ctx, (sends + others) * 8, (void **)&there));
    TRY(host_alloc(ctx, (sends + others + h->sends + h->receives) * 8, what, (void **)&c->number));
    TRY(spmv_gather(ctx, SPMV_I64, begin, h->count + 1, l->bounds, 32, there, sends));
    TRY(spmv_gather(ctx, SPMV_I64, row_ptr, rows + 1, l->bounds + sends, 32, there + sends, others));
    TRY(spmv_download(ctx, there, c->number, (sends + others) * 8));
    c->sent = c->number + sends + others;
    c->received = c->sent + h->sends;
    for (int i = 0; i < h->sends; i++)
        c->sent[i] = c->number[i + 1] - c->number[i];
    at = c->number + sends;
    for (int i = 0; i < h->receives; i++)
        c->received[i] = at[2 * i + 1] - at[2 * i];
    c->arriving[0] = at[others - 2];
    c->arriving[1] = at[others - 1] - own_nnz - c->arriving[0];
done:
    context_free(ctx, there);
    return st;
}

/* Lengths of rows that nobody needs become 0. */
static spmv_status drop_unneeded_near(struct level *l, const int32_t *needed, int64_t needs, int64_t *length,
                                      bool *moved)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const int32_t none = 0;
    void *wanted = NULL;
    int32_t *asked = NULL;
    TRY(near_lend(l->first->group, (h->before + h->after) * 4, &wanted));
    TRY(context_alloc(ctx, max_i64(1, h->count) * 4, (void **)&asked));
    if (h->before + h->after > 0) {
        TRY(spmv_map_index(ctx, SPMV_I32, &none, &none, wanted, h->before + h->after));
        if (needs > 0)
            TRY(group_want_rows_cuda(ctx, &l->halo, needed, needs, wanted));
    }
    TRY(group_level_swap_back_near(l, asked, 4, moved));
    if (h->count > 0 && *moved)
        TRY(group_drop_rows_cuda(ctx, asked, h->count, length));
done:
    context_free(ctx, asked);
    return st;
}

/* *begin: where the entries of rows that are sent begin; *row_ptr: of all rows. */
static spmv_status find_offsets_near(struct level *l, const spmv_csr *own, bool places, const int32_t *needed,
                                     int64_t needs, int64_t **begin, int64_t **row_ptr, bool *moved)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const int64_t rows = h->room + l->halo.own + h->after, zero = 0;
    const struct group_elements e = {h->context_index, h->count, 2}, all = {NULL, l->halo.own, 2};
    int64_t *length = NULL;
    void *packed = NULL;
    TRY(context_alloc(ctx, (h->count + 1) * 8, (void **)begin));
    TRY(context_alloc(ctx, (rows + 1) * 8, (void **)row_ptr));
    TRY(context_alloc(ctx, max_i64(1, rows) * 8, (void **)&length));
    if (h->count > 0)
        TRY(group_row_lengths_cuda(ctx, &e, own->row_ptr, 64, *begin));
    if (needed != NULL)
        TRY(drop_unneeded_near(l, needed, needs, *begin, moved));
    if (!*moved)
        goto done;
    TRY(near_lend(l->first->group, h->count * 8, &packed));
    TRY(group_level_copy(ctx, *begin, 8, h->count, packed));
    if (rows > 0)
        TRY(spmv_map_index(ctx, SPMV_I64, &zero, &zero, length, rows));
    if (l->halo.own > 0 && !places)
        TRY(group_row_lengths_cuda(ctx, &all, own->row_ptr, 64, length + h->room));
    TRY(group_level_swap_near(l, NULL, length + h->room - h->before, length + h->room + l->halo.own, NULL, 8, moved));
    if (!*moved)
        goto done;
    TRY(spmv_expand_offsets(ctx, length, 64, *row_ptr, rows));
    TRY(spmv_expand_offsets(ctx, *begin, 64, *begin, h->count));
done:
    context_free(ctx, length);
    return st;
}

/* The entries of an array, own ones and those of others. numbers: they are columns as places. */
static spmv_status move_near(struct level *l, const spmv_csr *own, const struct near_counts *c, const int64_t *begin,
                             const void *array, int64_t size, bool places, char *all, bool *moved)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const int64_t sent = c->number[h->sends], front = c->arriving[0], kept = places ? 0 : own->nnz;
    const struct group_elements e = {h->context_index, h->count, (int)(size / 4)};
    void *packed = NULL;
    TRY(near_lend(l->first->group, sent * size, &packed));
    if (sent > 0)
        TRY(group_take_rows_cuda(ctx, &e, own->row_ptr, 64, begin, array, packed));
    if (sent > 0 && places && array == own->col)
        TRY(group_find_numbers_cuda(ctx, &l->halo, l->halo.there, packed, sent));
    TRY(group_level_copy(ctx, array, size, kept, all + front * size));
    TRY(group_level_swap_near(l, c->sent, all, all + (front + kept) * size, c->received, size, moved));
done:
    return st;
}

static spmv_status fetch_rows_near(struct level *l, const spmv_csr *own, bool places, const int32_t *needed,
                                   int64_t needs, struct rank_arrays *all, bool *moved)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = l->m.ctx;
    const int64_t size = own->val != NULL ? (int64_t)spmv_type_size(own->type) : 0;
    struct near_counts c = {.number = NULL};
    int64_t *begin = NULL;
    *moved = true;
    *all = (struct rank_arrays){.rows = l->halo.room + l->halo.own + l->halo.after};
    TRY(find_offsets_near(l, own, places, needed, needs, &begin, &all->row_ptr, moved));
    if (!*moved)
        goto done;
    TRY(read_counts(l, begin, all->row_ptr, places ? 0 : own->nnz, &c));
    all->nnz = c.arriving[0] + c.arriving[1] + (places ? 0 : own->nnz);
    TRY(context_alloc(ctx, max_i64(1, all->nnz) * 4, (void **)&all->col));
    if (size > 0)
        TRY(context_alloc(ctx, max_i64(1, all->nnz) * size, &all->val));
    TRY(move_near(l, own, &c, begin, own->col, 4, places, (char *)all->col, moved));
    if (size > 0)
        TRY(move_near(l, own, &c, begin, own->val, size, places, all->val, moved));
    if (places && all->nnz > 0)
        TRY(group_find_places_cuda(ctx, &l->halo, l->halo.there, all, own->type));
done:
    context_free(ctx, begin);
    host_free(c.number);
    if (st != SPMV_OK || !*moved)
        free_arrays(ctx, all);
    return st;
}

/* As fetch_rows, or with `places` as fetch_others. */
static spmv_status fetch_rows(const struct rank_halo *halo, const spmv_csr *own, bool places, const int32_t *needed,
                              int64_t needs, struct rank_arrays *all)
{
    struct level *const l = group_level_of(halo);
    bool moved = false;
    const spmv_status st =
        near_is_possible(l->first->group) ? fetch_rows_near(l, own, places, needed, needs, all, &moved) : SPMV_OK;
    return st != SPMV_OK || moved ? st : fetch_rows_of_hosts(halo, own, places, needed, needs, all);
}

spmv_status group_fetch_rows(const struct rank_halo *halo, const spmv_csr *own, struct rank_arrays *all)
{
    return fetch_rows(halo, own, false, NULL, 0, all);
}

spmv_status group_fetch_others(const struct rank_halo *halo, const spmv_csr *own, const int32_t *needed, int64_t needs,
                               struct rank_arrays *others)
{
    return fetch_rows(halo, own, true, needed, needs, others);
}

/* ------------------------------------------------------------- rows with places
 *
 * Between GPUs that are near what moves is packed in memory that others copy from, else in some of the context, and
 * goes through the memory of hosts. */

/* Memory for what this rank gives. *own: NULL, or to be freed. */
static spmv_status lend(struct level *l, bool near, int64_t bytes, void **packed, void **own)
{
    spmv_status st = SPMV_OK;
    *own = NULL;
    if (near)
        return near_lend(l->first->group, bytes, packed);
    TRY(context_alloc(l->m.ctx, max_i64(1, bytes), own));
    *packed = *own;
done:
    return st;
}

/* Elements of parcels; those of other ranks go to `to`, one after the other. NULL: those of vectors. */
static spmv_status swap(struct level *l, bool near, const void *packed, const int64_t *sent, char *to,
                        const int64_t *received, int64_t size, bool *moved)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type);
    const int rank = l->m.group->transport.rank;
    int64_t gives = 0, front = 0, gets = 0;
    char *from_host = NULL, *to_host = NULL;
    for (int i = 0; i < h->sends; i++)
        gives += sent != NULL ? sent[i] : h->send[i].bytes / of_type;
    for (int i = 0; i < h->receives; i++) {
        const int64_t its = received != NULL ? received[i] : h->receive[i].bytes / of_type;
        front += h->receive[i].rank < rank ? its : 0;
        gets += its;
    }
    if (near)
        return group_level_swap_near(l, sent, to, to + front * size, received, size, moved);
    TRY(host_alloc(l->m.ctx, max_i64(1, gives * size), what, (void **)&from_host));
    TRY(host_alloc(l->m.ctx, max_i64(1, gets * size), what, (void **)&to_host));
    if (gives > 0)
        TRY(spmv_download(l->m.ctx, packed, from_host, gives * size));
    TRY(group_level_swap(l, from_host, sent, to_host, received, size));
    TRY(put(l->m.ctx, to_host, size, gets, to, 0));
    TRY(spmv_synchronize(l->m.ctx)); /* before the host's copy goes */
done:
    host_free_all(from_host, to_host);
    return st;
}

/* What the host reads. */
struct place_counts {
    int64_t *sent, *received; /* entries of each parcel */
    int64_t gives, gets, taken, missing;
};

/* begin, at: where the entries of rows that are sent and of ghosts begin. *number: memory of the counts, in host
 * memory. */
static spmv_status count_places(struct level *l, const struct rank_places *rows, const int64_t *begin,
                                const int64_t *at, const int64_t *missing, struct place_counts *c, int64_t **number)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type), ghosts = h->before + h->after;
    const int64_t sends = h->sends + 1, receives = h->receives + 1, all = sends + receives + 2;
    int32_t *bound = NULL, *bounds = NULL, first = 0;
    int64_t *there = NULL;
    TRY(host_alloc(ctx, (sends + receives) * 4, what, (void **)&bound));
    TRY(host_alloc(ctx, all * 8, what, (void **)number));
    TRY(context_alloc(ctx, (sends + receives) * 4, (void **)&bounds));
    TRY(context_alloc(ctx, all * 8, (void **)&there));
    for (int i = 0; i < h->sends; first += (int32_t)(h->send[i++].bytes / of_type))
        bound[i] = first;
    bound[h->sends] = (int32_t)h->count;
    first = 0;
    for (int i = 0; i < h->receives; first += (int32_t)(h->receive[i++].bytes / of_type))
        bound[sends + i] = first;
    bound[sends + h->receives] = (int32_t)ghosts;
    TRY(spmv_upload(ctx, bound, bounds, (sends + receives) * 4));
    TRY(spmv_gather(ctx, SPMV_I64, begin, h->count + 1, bounds, 32, there, sends));
    TRY(spmv_gather(ctx, SPMV_I64, at, ghosts + 1, bounds + sends, 32, there + sends, receives));
    TRY(group_level_copy(ctx, rows->taken, 8, 1, there + sends + receives));
    TRY(group_level_copy(ctx, missing, 8, 1, there + sends + receives + 1));
    TRY(spmv_download(ctx, there, *number, all * 8));
    c->gives = (*number)[sends - 1];
    c->gets = (*number)[sends + receives - 1];
    c->taken = (*number)[sends + receives];
    c->missing = (*number)[sends + receives + 1];
    c->sent = *number;
    c->received = *number + sends;
    for (int i = 0; i < h->sends; i++) /* in place: the first first */
        c->sent[i] = c->sent[i + 1] - c->sent[i];
    for (int i = 0; i < h->receives; i++)
        c->received[i] = c->received[i + 1] - c->received[i];
done:
    host_free(bound);
    group_free_queued(ctx, bounds, there);
    return st;
}

/* *fits: of this rank. */
static spmv_status fit_places(struct level *l, const struct rank_places *rows, const struct place_counts *c, bool *fits)
{
    spmv_status st = SPMV_OK;
    spmv_group *group = l->m.group;
    bool *all = NULL;
    *fits = c->missing == 0 && c->taken <= rows->room && c->gets <= rows->room - c->taken;
    TRY(host_alloc(l->m.ctx, group->transport.ranks * (int64_t)sizeof *all, what, (void **)&all));
    TRY(group_gather_equal(group, fits, all, sizeof *all));
    for (int r = 0; r < group->transport.ranks; r++)
        *fits = *fits && all[r];
done:
    host_free(all);
    return st;
}

static spmv_status fetch_places(struct level *l, const struct rank_places *rows, bool near, bool *fits, bool *moved)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const int64_t ghosts = h->before + h->after, zero = 0;
    const uint64_t *const own = rows->place + h->room;
    const struct group_elements e = {h->context_index, h->count, (int)(rows->size / 4)};
    struct place_counts c = {.sent = NULL};
    int64_t *begin = NULL, *at = NULL, *missing = NULL, *number = NULL;
    void *packed = NULL, *lent = NULL;
    char *to = NULL;
    *moved = true;
    TRY(context_alloc(ctx, (h->count + 1) * 8, (void **)&begin));
    TRY(context_alloc(ctx, (ghosts + 1) * 8, (void **)&at));
    TRY(context_alloc(ctx, 8, (void **)&missing));
    TRY(spmv_map_index(ctx, SPMV_I64, &zero, &zero, missing, 1));
    TRY(lend(l, near, h->count * 8, &packed, &lent));
    if (h->count > 0)
        TRY(group_place_lengths_cuda(ctx, &e, own, packed, missing));
    TRY(group_level_copy(ctx, packed, 8, h->count, begin));
    TRY(swap(l, near, packed, NULL, (char *)at, NULL, 8, moved));
    if (!*moved)
        goto done;
    TRY(spmv_expand_offsets(ctx, begin, 64, begin, h->count));
    TRY(spmv_expand_offsets(ctx, at, 64, at, ghosts));
    TRY(count_places(l, rows, begin, at, missing, &c, &number));
    TRY(fit_places(l, rows, &c, fits));
    if (!*fits)
        goto done;
    context_free(ctx, lent);
    TRY(lend(l, near, c.gives * rows->size, &packed, &lent));
    if (h->count > 0)
        TRY(group_take_places_cuda(ctx, &e, own, begin, rows->entry, packed));
    to = (char *)rows->entry + c.taken * rows->size;
    TRY(swap(l, near, packed, c.sent, to, c.received, rows->size, moved));
    if (ghosts > 0)
        TRY(group_put_places_cuda(ctx, &l->halo, at, c.taken, rows->place));
done:
    host_free(number);
    group_free_queued(ctx, begin, at, missing, lent);
    return st;
}

spmv_status group_fetch_places(const struct rank_halo *halo, const struct rank_places *rows, bool *fits)
{
    struct level *const l = group_level_of(halo);
    bool moved = false;
    const spmv_status st = near_is_possible(l->first->group) ? fetch_places(l, rows, true, fits, &moved) : SPMV_OK;
    return st != SPMV_OK || moved ? st : fetch_places(l, rows, false, fits, &moved);
}

/* ------------------------------------------------------------- the transpose
 *
 * Entries go to the owners of their columns. Those that stay and those that come are a matrix whose rows ascend
 * by their numbers in the whole matrix; its transpose is the result. */

/* Entries in host memory. */
struct triplets {
    int64_t count;
    int32_t *row, *col;
    char *val;
};

static void release_triplets(struct triplets *t)
{
    host_free_all(t->row, t->col, t->val);
}

static spmv_status alloc_triplets(spmv_context *ctx, int64_t count, int64_t size, struct triplets *t)
{
    spmv_status st = SPMV_OK;
    t->count = count;
    TRY(host_alloc(ctx, max_i64(1, count) * 4, what, (void **)&t->row));
    TRY(host_alloc(ctx, max_i64(1, count) * 4, what, (void **)&t->col));
    TRY(host_alloc(ctx, max_i64(1, count) * size, what, (void **)&t->val));
done:
    return st;
}

static void count_on_host(spmv_context *ctx, const struct group_split *s)
{
    const int64_t *const row_ptr = s->own.row_ptr;
#pragma omp parallel for num_threads(host_team(ctx, s->own.nnz)) schedule(static)
    for (int64_t i = 0; i < s->own.rows; i++) {
        int64_t kept = 0;
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            kept += s->first <= s->own.col[k] && s->own.col[k] < s->end;
        s->kept[i] = kept;
        s->left[i] = row_ptr[i + 1] - row_ptr[i] - kept;
    }
}

static void fill_on_host(spmv_context *ctx, const struct group_split *s)
{
    const int64_t *const row_ptr = s->own.row_ptr;
    const size_t size = spmv_type_size(s->own.type);
#pragma omp parallel for num_threads(host_team(ctx, s->own.nnz)) schedule(static)
    for (int64_t i = 0; i < s->own.rows; i++) {
        int64_t kept = s->kept[i], left = s->left[i];
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++) {
            const int32_t column = s->own.col[k];
            if (s->first <= column && column < s->end) {
                copy_value(s->val, kept, s->own.val, k, size);
                s->col[kept++] = (int32_t)(column - s->first);
            } else {
                copy_value(s->val_out, left, s->own.val, k, size);
                s->row_out[left] = (int32_t)(s->first_row + i);
                s->col_out[left++] = column;
            }
        }
    }
}

/* s: the entries that stay, *kept of them, and those that leave. */
static spmv_status split(spmv_context *ctx, struct group_split *s, int64_t *kept, int64_t *left)
{
    spmv_status st = SPMV_OK;
    const bool device = context_on_device(ctx);
    const int64_t rows = s->own.rows, size = (int64_t)spmv_type_size(s->own.type);
    int64_t totals[2] = {0};
    TRY(context_alloc(ctx, (rows + 2) * 8, (void **)&s->kept));
    TRY(context_alloc(ctx, (rows + 1) * 8, (void **)&s->left));
    if (!device)
        count_on_host(ctx, s);
    else if (rows > 0)
        TRY(group_split_count_cuda(ctx, s));
    TRY(spmv_expand_offsets(ctx, s->kept, 64, s->kept, rows));
    TRY(spmv_expand_offsets(ctx, s->left, 64, s->left, rows));
    TRY(group_level_copy(ctx, s->left + rows, 8, 1, s->kept + rows + 1)); /* both are read at once */
    TRY(spmv_download(ctx, s->kept + rows, totals, sizeof totals));
    *kept = totals[0];
    *left = totals[1];
    TRY(context_alloc(ctx, max_i64(1, *kept) * 4, (void **)&s->col));
    TRY(context_alloc(ctx, max_i64(1, *kept) * size, &s->val));
    TRY(context_alloc(ctx, max_i64(1, *left) * 4, (void **)&s->row_out));
    TRY(context_alloc(ctx, max_i64(1, *left) * 4, (void **)&s->col_out));
    TRY(context_alloc(ctx, max_i64(1, *left) * size, &s->val_out));
    if (!device)
        fill_on_host(ctx, s);
    else if (rows > 0)
        TRY(group_split_fill_cuda(ctx, s));
done:
    return st;
}

static void release_split(spmv_context *ctx, struct group_split *s)
{
    group_free_queued(ctx, s->kept, s->left, s->col, s->val, s->row_out, s->col_out, s->val_out);
}

/* What ranks send each other: rank r gets entries sent[r] to sent[r + 1] - 1. */
struct columns_sent {
    int64_t *sent, *received; /* ranks + 1 each */
};

/* Together: sets received. */
static spmv_status find_received(spmv_group *group, const struct columns_sent *c)
{
    spmv_status st = SPMV_OK;
    const int64_t ranks = group->transport.ranks, rank = group->transport.rank;
    int64_t *all = NULL;
    TRY(host_alloc(group->ctx, ranks * (ranks + 1) * 8, what, (void **)&all));
    TRY(group_gather_equal(group, c->sent, all, (ranks + 1) * 8));
    c->received[0] = 0;
    for (int64_t q = 0; q < ranks; q++) {
        const int64_t *const its = all + q * (ranks + 1);
        c->received[q + 1] = c->received[q] + its[rank + 1] - its[rank];
    }
done:
    host_free(all);
    return st;
}

static spmv_status alloc_entries(spmv_context *ctx, int64_t count, int64_t size, struct rank_entries *e)
{
    spmv_status st = SPMV_OK;
    e->count = count;
    TRY(context_alloc(ctx, max_i64(1, count) * 4, (void **)&e->row));
    TRY(context_alloc(ctx, max_i64(1, count) * 4, (void **)&e->col));
    TRY(context_alloc(ctx, max_i64(1, count) * size, &e->val));
done:
    return st;
}

/* ------------------------------------------------------------- through the memory of hosts */

static int owner_of(const int64_t *col_of_rank, int ranks, int64_t column, int near)
{
    int r = near;
    while (column < col_of_rank[r])
        r--;
    while (r + 1 < ranks && column >= col_of_rank[r + 1])
        r++;
    return r;
}

/* Orders entries by the owners of their columns, and within one as they are. at: ranks places, where those of
 * each rank begin. */
static void order(const struct triplets *out, const int64_t *col_of_rank, int ranks, int64_t size, int64_t *at,
                  const struct triplets *to)
{
    int r = 0;
    for (int64_t k = 0; k < out->count; k++) {
        r = owner_of(col_of_rank, ranks, out->col[k], r);
        const int64_t place = at[r]++;
        to->row[place] = out->row[k];
        to->col[place] = out->col[k];
        copy_value(to->val, place, out->val, k, (size_t)size);
    }
}

/* parcels: room for 2 a rank. */
static spmv_status send_array(spmv_group *group, const struct columns_sent *c, struct transport_parcel *parcels,
                              int64_t size, const void *from, void *to)
{
    spmv_status st = SPMV_OK;
    const int ranks = group->transport.ranks;
    struct transport_parcel *const send = parcels, *const receive = parcels + ranks;
    int sends = 0, receives = 0;
    for (int r = 0; r < ranks; r++) {
        const int64_t out = c->sent[r + 1] - c->sent[r], in = c->received[r + 1] - c->received[r];
        if (out > 0)
            send[sends++] = (struct transport_parcel){r, (char *)(uintptr_t)from + c->sent[r] * size, out * size};
        if (in > 0)
            receive[receives++] = (struct transport_parcel){r, (char *)to + c->received[r] * size, in * size};
    }
    TRY(group_start(group, send, sends, receive, receives));
    TRY(group_finish(group));
done:
    return st;
}

/* Copies the entries that leave to host memory, and counts them by the owners of their columns. */
static spmv_status take_left(spmv_group *group, const struct group_split *s, int64_t left, const int64_t *col_of_rank,
                             const struct columns_sent *c, struct triplets *out)
{
    spmv_status st = SPMV_OK;
    const int ranks = group->transport.ranks;
    const int64_t size = (int64_t)spmv_type_size(s->own.type);
    int r = 0;
    TRY(alloc_triplets(group->ctx, left, size, out));
    TRY(spmv_download(group->ctx, s->row_out, out->row, left * 4));
    TRY(spmv_download(group->ctx, s->col_out, out->col, left * 4));
    TRY(spmv_download(group->ctx, s->val_out, out->val, left * size));
    memset(c->sent, 0, (size_t)(ranks + 1) * 8);
    for (int64_t k = 0; k < left; k++) {
        r = owner_of(col_of_rank, ranks, out->col[k], r);
        c->sent[r + 1]++;
    }
    for (r = 0; r < ranks; r++)
        c->sent[r + 1] += c->sent[r];
done:
    return st;
}

static spmv_status exchange_by_hosts(spmv_group *group, const struct group_split *s, int64_t left,
                                     const int64_t *col_of_rank, const struct columns_sent *c, struct rank_entries *in)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = group->ctx;
    const int64_t ranks = group->transport.ranks, size = (int64_t)spmv_type_size(s->own.type);
    struct triplets out = {0}, ordered = {0}, arrived = {0};
    struct transport_parcel *parcels = NULL;
    int64_t *at = NULL;
    TRY(host_alloc(ctx, 2 * ranks * (int64_t)sizeof *parcels, what, (void **)&parcels));
    TRY(host_alloc(ctx, ranks * 8, what, (void **)&at));
    TRY(take_left(group, s, left, col_of_rank, c, &out));
    TRY(find_received(group, c));
    TRY(alloc_triplets(ctx, left, size, &ordered));
    TRY(alloc_triplets(ctx, c->received[ranks], size, &arrived));
    memcpy(at, c->sent, (size_t)ranks * 8);
    order(&out, col_of_rank, (int)ranks, size, at, &ordered);
    TRY(send_array(group, c, parcels, 4, ordered.row, arrived.row));
    TRY(send_array(group, c, parcels, 4, ordered.col, arrived.col));
    TRY(send_array(group, c, parcels, size, ordered.val, arrived.val));
    TRY(alloc_entries(ctx, arrived.count, size, in));
    TRY(put(ctx, arrived.row, 4, in->count, in->row, 0));
    TRY(put(ctx, arrived.col, 4, in->count, in->col, 0));
    TRY(put(ctx, arrived.val, size, in->count, in->val, 0));
done:
    host_free_all(parcels, at);
    release_triplets(&out);
    release_triplets(&ordered);
    release_triplets(&arrived);
    return st;
}

/* ------------------------------------------------------------- between GPUs that are near */

/* *order: the entries that leave, by the owners of their columns, and within one as they are. Sets c->sent. */
static spmv_status order_near(spmv_group *group, const struct group_split *s, int64_t left, const int64_t *col_of_rank,
                              const struct columns_sent *c, int32_t **order)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = group->ctx;
    const int ranks = group->transport.ranks;
    const int32_t zero = 0, one = 1;
    int64_t *first = NULL;
    int32_t *owner = NULL;
    int bits = 1;
    while (ranks >> bits > 0)
        bits++;
    TRY(context_alloc(ctx, 2 * (ranks + 1) * 8, (void **)&first));
    TRY(context_alloc(ctx, max_i64(1, left) * 4, (void **)&owner));
    TRY(context_alloc(ctx, max_i64(1, left) * 4, (void **)order));
    TRY(spmv_upload(ctx, col_of_rank, first, (ranks + 1) * 8));
    if (left > 0) {
        TRY(group_find_owners_cuda(ctx, first, ranks, s->col_out, left, owner));
        TRY(spmv_map_index(ctx, SPMV_I32, &zero, &one, *order, left));
        TRY(spmv_sort_by_key(ctx, SPMV_I32, 0, bits, owner, *order, 4, owner, *order, left));
    }
    TRY(group_count_owners_cuda(ctx, owner, left, ranks, first + ranks + 1));
    TRY(spmv_download(ctx, first + ranks + 1, c->sent, (ranks + 1) * 8));
done:
    group_free_queued(ctx, first, owner);
    return st;
}

static spmv_status swap_array(spmv_group_matrix *first, const struct columns_sent *c, const int32_t *order,
                              spmv_type type, const void *from, void *to, bool *moved)
{
    spmv_status st = SPMV_OK;
    const int64_t ranks = first->group->transport.ranks, size = (int64_t)spmv_type_size(type);
    int64_t *offset = NULL;
    struct near_parcel *parcel = NULL;
    void *packed = NULL;
    if (!*moved)
        return SPMV_OK;
    TRY(host_alloc(first->ctx, ranks * 8, what, (void **)&offset));
    TRY(host_alloc(first->ctx, ranks * (int64_t)sizeof *parcel, what, (void **)&parcel));
    TRY(near_lend(first->group, c->sent[ranks] * size, &packed));
    if (c->sent[ranks] > 0)
        TRY(spmv_gather(first->ctx, type, from, c->sent[ranks], order, 32, packed, c->sent[ranks]));
    for (int r = 0; r < ranks; r++) {
        offset[r] = c->sent[r] * size;
        parcel[r] =
            (struct near_parcel){r, (char *)to + c->received[r] * size, (c->received[r + 1] - c->received[r]) * size};
    }
    TRY(near_swap(first->group, offset, parcel, (int)ranks, moved));
done:
    host_free_all(offset, parcel);
    return st;
}

static spmv_status exchange_near(spmv_group_matrix *first, const struct group_split *s, int64_t left,
                                 const int64_t *col_of_rank, const struct columns_sent *c, struct rank_entries *in,
                                 bool *moved)
{
    spmv_status st = SPMV_OK;
    int32_t *order = NULL;
    *moved = true;
    TRY(order_near(first->group, s, left, col_of_rank, c, &order));
    TRY(find_received(first->group, c));
    TRY(alloc_entries(first->ctx, c->received[first->group->transport.ranks], (int64_t)spmv_type_size(s->own.type),
                      in));
    TRY(swap_array(first, c, order, SPMV_I32, s->row_out, in->row, moved));
    TRY(swap_array(first, c, order, SPMV_I32, s->col_out, in->col, moved));
    TRY(swap_array(first, c, order, s->own.type, s->val_out, in->val, moved));
done:
    context_free(first->ctx, order);
    if (st == SPMV_OK && !*moved) {
        group_free_queued(first->ctx, in->row, in->col, in->val);
        *in = (struct rank_entries){0};
    }
    return st;
}

/* ------------------------------------------------------------- either way */

static spmv_status exchange_left(spmv_group_matrix *first, const struct group_split *s, int64_t left,
                                 const int64_t *col_of_rank, const struct columns_sent *c, struct rank_entries *in)
{
    spmv_status st = SPMV_OK;
    bool moved = false;
    if (near_is_possible(first->group) && !type_is_complex(s->own.type)) /* primitives have no complex elements */
        TRY(exchange_near(first, s, left, col_of_rank, c, in, &moved));
    if (!moved)
        TRY(exchange_by_hosts(first->group, s, left, col_of_rank, c, in));
done:
    return st;
}

static spmv_status new_columns_sent(const spmv_group *group, struct columns_sent *c)
{
    const int64_t ranks = group->transport.ranks;
    const spmv_status st = host_alloc(group->ctx, 2 * (ranks + 1) * 8, what, (void **)&c->sent);
    c->received = c->sent + ranks + 1;
    return st;
}

/* The entries of own rows in columns of other ranks, in any order. */
static spmv_status list_left(spmv_context *ctx, struct group_split *s, int64_t *left)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)spmv_type_size(s->own.type), zero = 0;
    int64_t *count = NULL;
    TRY(context_alloc(ctx, 8, (void **)&count));
    TRY(spmv_map_index(ctx, SPMV_I64, &zero, &zero, count, 1));
    if (s->own.rows > 0)
        TRY(group_count_left_cuda(ctx, s, count));
    TRY(spmv_download(ctx, count, left, 8));
    TRY(context_alloc(ctx, max_i64(1, *left) * 4, (void **)&s->row_out));
    TRY(context_alloc(ctx, max_i64(1, *left) * 4, (void **)&s->col_out));
    TRY(context_alloc(ctx, max_i64(1, *left) * size, &s->val_out));
    TRY(spmv_map_index(ctx, SPMV_I64, &zero, &zero, count, 1));
    if (*left > 0)
        TRY(group_list_left_cuda(ctx, s, count));
done:
    group_free_queued(ctx, count);
    return st;
}

spmv_status group_fetch_columns(void *matrix, const int64_t *row_of_rank, const int64_t *col_of_rank,
                                const spmv_csr *own, int64_t *left, struct rank_entries *others)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *first = matrix;
    const int rank = first->group->transport.rank;
    struct group_split s = {
        .own = *own, .first = col_of_rank[rank], .end = col_of_rank[rank + 1], .first_row = row_of_rank[rank]};
    struct columns_sent c = {.sent = NULL};
    *others = (struct rank_entries){.count = 0};
    TRY(new_columns_sent(first->group, &c));
    TRY(list_left(first->ctx, &s, left));
    TRY(exchange_left(first, &s, *left, col_of_rank, &c, others));
done:
    release_split(first->ctx, &s);
    host_free(c.sent);
    if (st != SPMV_OK) {
        group_free_queued(first->ctx, others->row, others->col, others->val);
        *others = (struct rank_entries){.count = 0};
    }
    return st;
}

/* ------------------------------------------------------------- what has come, and what has stayed */

/* The matrix of all entries, in the order of their rows; numbers: of these rows. Entries that have come are rows of
 * their own. All in the context's memory. */
struct joined {
    struct rank_arrays m;
    int32_t *number;
};

static spmv_status join_columns(spmv_context *ctx, const struct group_split *s, int64_t kept,
                                const struct rank_entries *in, int64_t lower, struct joined *j)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)spmv_type_size(s->own.type), rows = s->own.rows, higher = in->count - lower;
    const int32_t first_row = (int32_t)s->first_row, one = 1, first = (int32_t)-s->first;
    const int64_t zero = 0, each = 1, behind = lower + kept + 1;
    TRY(alloc_arrays(ctx, in->count + rows, in->count + kept, size, &j->m));
    TRY(context_alloc(ctx, max_i64(1, j->m.rows) * 4, (void **)&j->number));
    if (in->count > 0)
        TRY(spmv_map_scalar(ctx, SPMV_ADD, SPMV_I32, &first, in->col, in->col, in->count));
    if (lower > 0)
        TRY(spmv_map_index(ctx, SPMV_I64, &zero, &each, j->m.row_ptr, lower));
    TRY(spmv_map_scalar(ctx, SPMV_ADD, SPMV_I64, &lower, s->kept, j->m.row_ptr + lower, rows + 1));
    if (higher > 0)
        TRY(spmv_map_index(ctx, SPMV_I64, &behind, &each, j->m.row_ptr + lower + rows + 1, higher));
    if (rows > 0)
        TRY(spmv_map_index(ctx, SPMV_I32, &first_row, &one, j->number + lower, rows));
    TRY(group_level_copy(ctx, in->row, 4, lower, j->number));
    TRY(group_level_copy(ctx, in->row + lower, 4, higher, j->number + lower + rows));
    TRY(group_level_copy(ctx, in->col, 4, lower, j->m.col));
    TRY(group_level_copy(ctx, s->col, 4, kept, j->m.col + lower));
    TRY(group_level_copy(ctx, in->col + lower, 4, higher, j->m.col + lower + kept));
    TRY(group_level_copy(ctx, in->val, size, lower, j->m.val));
    TRY(group_level_copy(ctx, s->val, size, kept, (char *)j->m.val + lower * size));
    TRY(group_level_copy(ctx, (char *)in->val + lower * size, size, higher, (char *)j->m.val + (lower + kept) * size));
done:
    return st;
}

/* *to = the transpose of a matrix in the context's memory, with the numbers of its rows as columns; NULL: they begin
 * at 0. */
static spmv_status transpose_all(spmv_context *ctx, const spmv_csr *all, const int32_t *number, struct rank_arrays *to)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)spmv_type_size(all->type), nnz = all->nnz, n = all->cols;
    spmv_matrix *matrix = NULL;
    spmv_csr t;
    TRY(context_on_device(ctx) ? spmv_matrix_transpose(ctx, all, &matrix) : csr_transpose(ctx, all, &matrix));
    spmv_matrix_view(matrix, &t);
    TRY(alloc_arrays(ctx, n, nnz, size, to));
    TRY(group_level_copy(ctx, t.row_ptr, 8, n + 1, to->row_ptr));
    TRY(group_level_copy(ctx, t.val, size, nnz, to->val));
    if (number == NULL)
        TRY(group_level_copy(ctx, t.col, 4, nnz, to->col));
    else if (nnz > 0)
        TRY(spmv_gather(ctx, SPMV_I32, number, all->rows, t.col, 32, to->col, nnz));
done:
    spmv_matrix_destroy(matrix);
    if (st != SPMV_OK)
        free_arrays(ctx, to);
    return st;
}

spmv_status group_transpose(void *matrix, const int64_t *row_of_rank, const int64_t *col_of_rank, const spmv_csr *own,
                            struct rank_arrays *to)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *first = matrix;
    spmv_context *ctx = first->ctx;
    const int64_t ranks = first->group->transport.ranks, rank = first->group->transport.rank;
    struct group_split s = {
        .own = *own, .first = col_of_rank[rank], .end = col_of_rank[rank + 1], .first_row = row_of_rank[rank]};
    struct columns_sent c = {.sent = NULL};
    struct rank_entries in = {0};
    struct joined j = {.number = NULL};
    const int64_t n = s.end - s.first;
    spmv_csr all = *own;
    int64_t kept = 0, left = 0;
    *to = (struct rank_arrays){.nnz = 0};
    all.cols = n;
    if (ranks == 1)
        return transpose_all(ctx, &all, NULL, to);
    TRY(new_columns_sent(first->group, &c));
    TRY(split(ctx, &s, &kept, &left));
    TRY(exchange_left(first, &s, left, col_of_rank, &c, &in));
    TRY(join_columns(ctx, &s, kept, &in, c.received[rank], &j));
    all = csr_of(j.m.rows, n, j.m.nnz, j.m.row_ptr, j.m.col, j.m.val, own->type, SPMV_MEMORY_CONTEXT);
    TRY(transpose_all(ctx, &all, j.number, to));
done:
    release_split(ctx, &s);
    group_free_queued(ctx, in.row, in.col, in.val, j.number);
    free_arrays(ctx, &j.m);
    host_free(c.sent);
    return st;
}
