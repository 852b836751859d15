/* Rows of a level that ranks fetch from each other, and the transpose of a matrix over ranks. What moves is
 * packed in the context's memory and passes through that of the host; the rest stays where it is.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <string.h>

#include "core/threads.h"
#include "distributed/group_levels.h"
#include "formats/columns.h"
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

/* Copies n elements within the context's memory. */
static spmv_status copy(spmv_context *ctx, const void *from, int64_t size, int64_t n, void *to)
{
    return n > 0 ? spmv_map(ctx, SPMV_MAP_COPY, SPMV_I32, from, to, n * (size / 4)) : SPMV_OK;
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
    bool places;              /* see fetch_others */
    const uint8_t *wanted;    /* the same */
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

/* Rows that nobody wants have no entries. */
static spmv_status drop_unwanted(const struct moving *m, int64_t *length)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &m->l->m.halo;
    uint8_t *asked = NULL;
    TRY(host_alloc(m->l->m.ctx, max_i64(1, h->count), what, (void **)&asked));
    TRY(group_level_swap_back(m->l, m->wanted, asked, 1));
    for (int64_t i = 0; i < h->count; i++)
        length[i] = asked[i] != 0 ? length[i] : 0;
done:
    host_free(asked);
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
    if (m->wanted != NULL)
        TRY(drop_unwanted(m, m->begin));
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

static int32_t number_at(const struct rank_halo *h, int32_t place)
{
    const int64_t own = place - h->room;
    return own < 0        ? h->ghost[own + h->before]
           : own < h->own ? (int32_t)(h->first + own)
                          : h->ghost[h->before + own - h->own];
}

/* The place of the last element of the layout up to this number, or -1; *there: whether it is the number's. */
static int32_t place_up_to(const struct rank_halo *h, int32_t number, bool *there)
{
    *there = number >= h->first && number < h->first + h->own;
    if (*there)
        return (int32_t)(h->room + number - h->first);
    const int64_t at = first_column_from(h->ghost, 0, h->before + h->after, (int64_t)number + 1) - 1;
    *there = at >= 0 && h->ghost[at] == number;
    if (number < h->first)
        return at < 0 ? -1 : (int32_t)(h->room - h->before + at);
    return (int32_t)(h->room + h->own - 1 + (at < h->before ? 0 : at + 1 - h->before));
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
            ((int32_t *)(void *)packed)[k] = number_at(&m->l->halo, ((const int32_t *)(void *)packed)[k]);
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
    TRY(copy(ctx, own, size, nnz, (char *)all + front * size));
    TRY(put(ctx, arrived + front * size, size, m->arriving[1], all, front + nnz));
done:
    return st;
}

/* As send_entries and join_entries, between GPUs that are near. */
static spmv_status move_near(const struct moving *m, const void *array, int64_t size, char *all, bool *moved)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &m->l->m.halo;
    spmv_context *ctx = m->l->m.ctx;
    const int64_t count = m->begin[h->count], front = m->arriving[0];
    const struct group_elements e = {h->context_index, h->count, (int)(size / 4)};
    void *packed = NULL;
    TRY(context_alloc(ctx, max_i64(1, count) * size, &packed));
    if (count > 0)
        TRY(group_take_rows_cuda(ctx, &e, m->own->row_ptr, 64, m->there, array, packed));
    TRY(copy(ctx, array, size, m->own->nnz, all + front * size));
    TRY(group_level_swap_near(m->l, packed, m->sent, all, all + (front + m->own->nnz) * size, m->received, size,
                              moved));
done:
    context_free(ctx, packed);
    return st;
}

/* Arrived columns become places, values of those that are not in the layout become 0. */
static void find_places(spmv_context *ctx, const struct rank_halo *h, int64_t count, int32_t *col, char *val,
                        int64_t size)
{
#pragma omp parallel for num_threads(host_team(ctx, count)) schedule(static)
    for (int64_t k = 0; k < count; k++) {
        bool there = false;
        col[k] = place_up_to(h, col[k], &there);
        if (!there)
            memset(val + k * size, 0, (size_t)size);
    }
}

/* As fetch_rows, or with `places` as fetch_others. */
static spmv_status fetch_rows(const struct rank_halo *halo, const spmv_csr *own, bool places, const uint8_t *wanted,
                              struct rank_arrays *all)
{
    spmv_status st = SPMV_OK;
    struct moving m = {.l = group_level_of(halo), .own = own, .places = places, .wanted = wanted};
    spmv_context *ctx = m.l->m.ctx;
    const int64_t rows = halo->room + halo->own + halo->after;
    const int64_t size = own->val != NULL ? (int64_t)spmv_type_size(own->type) : 0;
    int64_t arriving = 0;
    bool moved = false;
    char *col = NULL, *val = NULL;
    *all = (struct rank_arrays){.nnz = 0};
    TRY(begin_moving(&m));
    arriving = m.arriving[0] + m.arriving[1];
    TRY(alloc_arrays(ctx, rows, arriving + (places ? 0 : own->nnz), size, all));
    TRY(put_offsets(&m, halo, all->row_ptr));
    if (group_level_is_near(m.l) && !places)
        TRY(move_near(&m, own->col, 4, (char *)all->col, &moved));
    if (moved && size > 0)
        TRY(move_near(&m, own->val, size, all->val, &moved));
    if (moved)
        goto done;
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

spmv_status group_fetch_rows(const struct rank_halo *halo, const spmv_csr *own, struct rank_arrays *all)
{
    return fetch_rows(halo, own, false, NULL, all);
}

spmv_status group_fetch_others(const struct rank_halo *halo, const spmv_csr *own, const uint8_t *wanted,
                               struct rank_arrays *others)
{
    return fetch_rows(halo, own, true, wanted, others);
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

/* The entries that leave, in host memory; s: those that stay, in the context's memory. */
static spmv_status split(spmv_context *ctx, struct group_split *s, struct triplets *out)
{
    spmv_status st = SPMV_OK;
    const bool device = context_on_device(ctx);
    const int64_t rows = s->own.rows, size = (int64_t)spmv_type_size(s->own.type);
    int64_t kept = 0, left = 0;
    TRY(context_alloc(ctx, (rows + 1) * 8, (void **)&s->kept));
    TRY(context_alloc(ctx, (rows + 1) * 8, (void **)&s->left));
    if (!device)
        count_on_host(ctx, s);
    else if (rows > 0)
        TRY(group_split_count_cuda(ctx, s));
    TRY(spmv_expand_offsets(ctx, s->kept, 64, s->kept, rows));
    TRY(spmv_expand_offsets(ctx, s->left, 64, s->left, rows));
    TRY(spmv_download(ctx, s->kept + rows, &kept, 8));
    TRY(spmv_download(ctx, s->left + rows, &left, 8));
    TRY(alloc_triplets(ctx, left, size, out));
    TRY(context_alloc(ctx, max_i64(1, kept) * 4, (void **)&s->col));
    TRY(context_alloc(ctx, max_i64(1, kept) * size, &s->val));
    TRY(context_alloc(ctx, max_i64(1, left) * 4, (void **)&s->row_out));
    TRY(context_alloc(ctx, max_i64(1, left) * 4, (void **)&s->col_out));
    TRY(context_alloc(ctx, max_i64(1, left) * size, &s->val_out));
    if (!device)
        fill_on_host(ctx, s);
    else if (rows > 0)
        TRY(group_split_fill_cuda(ctx, s));
    if (left > 0) {
        TRY(spmv_download(ctx, s->row_out, out->row, left * 4));
        TRY(spmv_download(ctx, s->col_out, out->col, left * 4));
        TRY(spmv_download(ctx, s->val_out, out->val, left * size));
    }
done:
    return st;
}

static void release_split(spmv_context *ctx, struct group_split *s)
{
    context_free_all(ctx, s->kept, s->left, s->col, s->val, s->row_out, s->col_out, s->val_out);
}

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

/* What ranks send each other: rank r gets entries sent[r] to sent[r + 1] - 1. */
struct columns_sent {
    struct transport_parcel *send, *receive;
    int64_t *sent, *received; /* ranks + 1 each */
};

static spmv_status send_array(spmv_group *group, const struct columns_sent *c, int64_t size, const void *from, void *to)
{
    spmv_status st = SPMV_OK;
    const int ranks = group->transport.ranks;
    int sends = 0, receives = 0;
    for (int r = 0; r < ranks; r++) {
        const int64_t out = c->sent[r + 1] - c->sent[r], in = c->received[r + 1] - c->received[r];
        if (out > 0)
            c->send[sends++] = (struct transport_parcel){r, (char *)(uintptr_t)from + c->sent[r] * size, out * size};
        if (in > 0)
            c->receive[receives++] = (struct transport_parcel){r, (char *)to + c->received[r] * size, in * size};
    }
    TRY(group_start(group, c->send, sends, c->receive, receives));
    TRY(group_finish(group));
done:
    return st;
}

/* Sets sent and received. */
static spmv_status count_columns(spmv_group *group, const struct triplets *out, const int64_t *col_of_rank,
                                 const struct columns_sent *c)
{
    spmv_status st = SPMV_OK;
    const int64_t ranks = group->transport.ranks, rank = group->transport.rank;
    int64_t *counts = NULL, *all = NULL;
    int r = 0;
    TRY(host_zeros(group->ctx, ranks * 8, what, (void **)&counts));
    TRY(host_alloc(group->ctx, ranks * ranks * 8, what, (void **)&all));
    for (int64_t k = 0; k < out->count; k++) {
        r = owner_of(col_of_rank, (int)ranks, out->col[k], r);
        counts[r]++;
    }
    TRY(group_gather_equal(group, counts, all, ranks * 8));
    c->sent[0] = c->received[0] = 0;
    for (int64_t q = 0; q < ranks; q++) {
        c->sent[q + 1] = c->sent[q] + counts[q];
        c->received[q + 1] = c->received[q] + all[q * ranks + rank];
    }
done:
    host_free_all(counts, all);
    return st;
}

/* *in: the entries of others, in the order of their rows; *lower: how many are of lower ranks. Together. */
static spmv_status exchange_columns(spmv_group *group, const struct triplets *out, const int64_t *col_of_rank,
                                    int64_t size, struct triplets *in, int64_t *lower)
{
    spmv_status st = SPMV_OK;
    const int64_t ranks = group->transport.ranks, parcels = ranks * (int64_t)sizeof(struct transport_parcel);
    struct columns_sent c = {.sent = NULL};
    struct triplets ordered = {0};
    int64_t *at = NULL;
    TRY(host_alloc(group->ctx, 2 * parcels, what, (void **)&c.send));
    c.receive = c.send + ranks;
    TRY(host_alloc(group->ctx, (3 * ranks + 2) * 8, what, (void **)&c.sent));
    c.received = c.sent + ranks + 1;
    at = c.received + ranks + 1;
    TRY(count_columns(group, out, col_of_rank, &c));
    memcpy(at, c.sent, (size_t)ranks * 8);
    TRY(alloc_triplets(group->ctx, out->count, size, &ordered));
    TRY(alloc_triplets(group->ctx, c.received[ranks], size, in));
    order(out, col_of_rank, (int)ranks, size, at, &ordered);
    TRY(send_array(group, &c, 4, ordered.row, in->row));
    TRY(send_array(group, &c, 4, ordered.col, in->col));
    TRY(send_array(group, &c, size, ordered.val, in->val));
    *lower = c.received[group->transport.rank];
done:
    host_free_all(c.send, c.sent);
    release_triplets(&ordered);
    return st;
}

/* Rows of arrived entries begin..end - 1: their numbers, and the offsets behind each, from `first` on. Returns how
 * many there are. */
static int64_t list_rows(const struct triplets *in, int64_t begin, int64_t end, int64_t first, int32_t *number,
                         int64_t *behind)
{
    int64_t rows = 0;
    for (int64_t k = begin; k < end; k++) {
        if (k == begin || in->row[k] != in->row[k - 1])
            number[rows++] = in->row[k];
        behind[rows - 1] = first + k + 1 - begin;
    }
    return rows;
}

/* The matrix of all entries, in the order of their rows; numbers: of these rows. All in the context's memory. */
struct joined {
    struct rank_arrays m;
    int32_t *number;
};

static spmv_status join_columns(spmv_context *ctx, const struct group_split *s, int64_t kept, struct triplets *in,
                                int64_t lower, struct joined *j)
{
    spmv_status st = SPMV_OK;
    const int64_t size = (int64_t)spmv_type_size(s->own.type), rows = s->own.rows, higher = in->count - lower;
    int32_t *number = NULL;
    int64_t *behind = NULL, begin = 0;
    const int32_t first_row = (int32_t)s->first_row, one = 1;
    for (int64_t k = 0; k < in->count; k++)
        in->col[k] -= (int32_t)s->first;
    TRY(host_alloc(ctx, max_i64(1, in->count) * 4, what, (void **)&number));
    TRY(host_alloc(ctx, max_i64(1, in->count) * 8, what, (void **)&behind));
    const int64_t front = list_rows(in, 0, lower, 0, number, behind);
    const int64_t back = list_rows(in, lower, in->count, lower + kept, number + front, behind + front);
    TRY(alloc_arrays(ctx, front + rows + back, in->count + kept, size, &j->m));
    TRY(context_alloc(ctx, max_i64(1, j->m.rows) * 4, (void **)&j->number));
    TRY(put(ctx, &begin, 8, 1, j->m.row_ptr, 0));
    TRY(put(ctx, behind, 8, front, j->m.row_ptr, 1));
    TRY(spmv_map_scalar(ctx, SPMV_ADD, SPMV_I64, &lower, s->kept, j->m.row_ptr + front, rows + 1));
    TRY(put(ctx, behind + front, 8, back, j->m.row_ptr, front + rows + 1));
    TRY(put(ctx, in->col, 4, lower, j->m.col, 0));
    TRY(copy(ctx, s->col, 4, kept, j->m.col + lower));
    TRY(put(ctx, in->col + lower, 4, higher, j->m.col, lower + kept));
    TRY(put(ctx, in->val, size, lower, j->m.val, 0));
    TRY(copy(ctx, s->val, size, kept, (char *)j->m.val + lower * size));
    TRY(put(ctx, in->val + lower * size, size, higher, j->m.val, lower + kept));
    TRY(put(ctx, number, 4, front, j->number, 0));
    if (rows > 0)
        TRY(spmv_map_index(ctx, SPMV_I32, &first_row, &one, j->number + front, rows));
    TRY(put(ctx, number + front, 4, back, j->number, front + rows));
    TRY(spmv_synchronize(ctx)); /* before the host's copies go */
done:
    host_free_all(number, behind);
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
    TRY(copy(ctx, t.row_ptr, 8, n + 1, to->row_ptr));
    TRY(copy(ctx, t.val, size, nnz, to->val));
    if (number == NULL)
        TRY(copy(ctx, t.col, 4, nnz, to->col));
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
    const spmv_group_matrix *first = matrix;
    spmv_context *ctx = first->ctx;
    const int rank = first->group->transport.rank;
    struct group_split s = {
        .own = *own, .first = col_of_rank[rank], .end = col_of_rank[rank + 1], .first_row = row_of_rank[rank]};
    struct triplets out = {0}, in = {0};
    struct joined j = {.number = NULL};
    const int64_t n = s.end - s.first;
    spmv_csr all = *own;
    int64_t lower = 0;
    *to = (struct rank_arrays){.nnz = 0};
    all.cols = n;
    if (first->group->transport.ranks == 1)
        return transpose_all(ctx, &all, NULL, to);
    TRY(split(ctx, &s, &out));
    TRY(exchange_columns(first->group, &out, col_of_rank, (int64_t)spmv_type_size(own->type), &in, &lower));
    TRY(join_columns(ctx, &s, own->nnz - out.count, &in, lower, &j));
    all = csr_of(j.m.rows, n, j.m.nnz, j.m.row_ptr, j.m.col, j.m.val, own->type, SPMV_MEMORY_CONTEXT);
    TRY(transpose_all(ctx, &all, j.number, to));
done:
    release_split(ctx, &s);
    release_triplets(&out);
    release_triplets(&in);
    free_arrays(ctx, &j.m);
    context_free(ctx, j.number);
    return st;
}
