/* Matrices of a hierarchy over ranks: the functions of struct rank_tools. Each halo has the
 * exchange of its own vectors, so a plan with it multiplies as that of the first matrix does.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <string.h>

#include "core/threads.h"
#include "distributed/group_internal.h"
#include "formats/columns.h"
#include "formats/matrix_internal.h"
#include "solvers/exchange/rank_tools.h"

static const char *const what = "a hierarchy of ranks";

/* A halo, with a matrix of the group that has no rows of its own: only what an exchange needs. */
struct level {
    struct rank_halo halo; /* the first member */
    spmv_group_matrix m;
    spmv_group_matrix *first;                /* whose list has it */
    bool opened;                             /* the exchange of vectors */
    struct transport_parcel *send, *receive; /* of set-ups */
};

static struct level *level_of(const struct rank_halo *halo)
{
    return (struct level *)(uintptr_t)halo;
}

static int ranks_of(const spmv_group_matrix *m)
{
    return m->group->transport.ranks;
}

static void close_level(struct rank_halo *halo)
{
    struct level *l = level_of(halo);
    if (halo == NULL)
        return;
    spmv_group_matrix *m = &l->m;
    spmv_group_matrix **link = l->first != NULL ? &l->first->levels : NULL;
    while (link != NULL && *link != NULL && *link != m)
        link = &(*link)->next_level;
    if (link != NULL && *link == m)
        *link = m->next_level;
    if (m->exchange.kind != NULL)
        exchange_close(m);
    group_halo_release(m);
    host_free_all(m->chunk_of_rank, m->row_of_rank, m->col_of_rank, m->chunk, m->edge, m->parts, m->all_parts, m->fold,
                  m->met, l->send, l->receive);
    spmv_free(m->ctx, m->context_parts);
    spmv_free(m->ctx, m->context_chunk);
    host_free(l);
}

static spmv_status copy_numbers(spmv_context *ctx, const void *from, int64_t bytes, void *to)
{
    const spmv_status st = host_alloc(ctx, max_i64(1, bytes), what, to);
    if (st == SPMV_OK && bytes > 0)
        memcpy(*(void **)to, from, (size_t)bytes);
    return st;
}

/* A level without a halo yet. col_of_rank NULL: each rank has all columns. */
static spmv_status new_level(spmv_group_matrix *first, const struct rank_rows *rows, struct level **level)
{
    spmv_status st = SPMV_OK;
    struct level *l = NULL;
    const int ranks = ranks_of(first), rank = first->group->transport.rank;
    const int64_t bytes = (ranks + 1) * (int64_t)sizeof(int64_t), one[] = {0, rows->rows};
    /* On a GPU, chunks would have to begin at multiples of PLAN_TILE_ROWS. Nothing is summed
     * here. */
    const bool device = context_on_device(first->ctx);
    const int64_t chunks = device ? 1 : rows->chunks;
    TRY(host_alloc(first->ctx, sizeof *l, what, (void **)&l));
    *l = (struct level){.m = {.group = first->group, .ctx = first->ctx, .type = rows->type, .cols = rows->cols}};
    spmv_group_matrix *m = &l->m;
    TRY(copy_numbers(m->ctx, first->chunk_of_rank, bytes, &m->chunk_of_rank));
    TRY(copy_numbers(m->ctx, rows->col_of_rank != NULL ? rows->col_of_rank : first->col_of_rank, bytes,
                     &m->col_of_rank));
    TRY(copy_numbers(m->ctx, device ? one : rows->chunk, (chunks + 1) * (int64_t)sizeof *m->chunk, &m->chunk));
    TRY(host_alloc(m->ctx, max_i64(1, chunks) * (int64_t)sizeof *m->edge, what, (void **)&m->edge));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *l->send, what, (void **)&l->send));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *l->receive, what, (void **)&l->receive));
    for (int r = 0; r <= ranks; r++) {
        if (device)
            m->chunk_of_rank[r] = r;
        if (rows->col_of_rank == NULL)
            m->col_of_rank[r] = r <= rank ? 0 : rows->cols;
    }
    m->all_chunks = m->chunk_of_rank[ranks];
    m->ranks = first->ranks;
    m->ranks.self = m;
    m->ranks.chunk = m->chunk;
    m->ranks.chunks = chunks;
    m->ranks.edge = m->edge;
    m->ranks.tools = NULL;
done:
    if (st != SPMV_OK && l != NULL)
        close_level(&l->halo);
    *level = st == SPMV_OK ? l : NULL;
    return st;
}

/* The exchange of vectors, once: on GPUs it takes memory, and many halos are only for set-ups. Together. */
static spmv_status open_exchange(struct level *l)
{
    spmv_status st = SPMV_OK;
    const struct exchange *const first = &l->first->exchange;
    if (l->opened || !context_on_device(l->m.ctx))
        return SPMV_OK;
    TRY(spmv_group_agree(l->m.group, group_sums_prepare(&l->m)));
    TRY(exchange_open(&l->m, first->kind != NULL ? first->kind->name : "host"));
    l->opened = true;
done:
    return st;
}

/* What set-ups need, after the halo is known. Together. */
static spmv_status complete(struct level *l, spmv_group_matrix *first)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = &l->m;
    const struct halo *h = &m->halo;
    const int rank = m->group->transport.rank;
    l->halo = (struct rank_halo){.room = h->room,
                                 .before = h->before,
                                 .own = m->col_of_rank[rank + 1] - m->col_of_rank[rank],
                                 .after = h->after,
                                 .first = m->col_of_rank[rank],
                                 .ghost = h->ghost};
    m->ranks.before = h->room;
    m->ranks.after = h->after;
    l->first = first;
    m->next_level = first->levels;
    first->levels = m;
    TRY(spmv_group_agree(m->group, group_halo_buffers(m)));
done:
    return st;
}

static spmv_status take_first(void *self, spmv_type type, struct rank_first *result)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *first = self;
    const struct halo *from = &first->halo;
    const int64_t ranks = ranks_of(first), size = (int64_t)spmv_type_size(first->type);
    const struct rank_rows rows = {.rows = first->own.rows,
                                   .col_of_rank = first->col_of_rank,
                                   .cols = first->cols,
                                   .chunk = first->chunk,
                                   .chunks = first->ranks.chunks,
                                   .type = type};
    struct level *l = NULL;
    *result = (struct rank_first){.halo = NULL};
    st = new_level(first, &rows, &l);
    if (st == SPMV_OK) {
        struct halo *const h = &l->m.halo;
        h->before = from->before;
        h->after = from->after;
        h->room = from->room;
        h->count = from->count;
        h->sends = from->sends;
        h->receives = from->receives;
        l->m.all_ghosts = first->all_ghosts;
        l->m.most_ghosts = first->most_ghosts;
        for (int64_t c = 0; c < l->m.ranks.chunks; c++)
            l->m.edge[c] = context_on_device(first->ctx) ? h->before + h->after > 0 : first->edge[c];
        st = copy_numbers(first->ctx, from->ghost, (h->before + h->after) * (int64_t)sizeof *h->ghost, &h->ghost);
        if (st == SPMV_OK)
            st = copy_numbers(first->ctx, from->index, h->count * (int64_t)sizeof *h->index, &h->index);
        if (st == SPMV_OK)
            st = copy_numbers(first->ctx, from->send, ranks * (int64_t)sizeof *h->send, &h->send);
        if (st == SPMV_OK)
            st = copy_numbers(first->ctx, from->receive, ranks * (int64_t)sizeof *h->receive, &h->receive);
        if (st == SPMV_OK)
            st = copy_numbers(first->ctx, from->receive_at, ranks * (int64_t)sizeof *h->receive_at, &h->receive_at);
        for (int i = 0; i < h->sends && st == SPMV_OK; i++)
            h->send[i].bytes /= size;
        for (int i = 0; i < h->receives && st == SPMV_OK; i++)
            h->receive[i].bytes /= size;
    }
    TRY(spmv_group_agree(first->group, st));
    TRY(complete(l, first));
    *result = (struct rank_first){&l->halo, first->row_of_rank, first->chunk};
done:
    if (st != SPMV_OK && l != NULL)
        close_level(&l->halo);
    return st;
}

static spmv_status open_level(void *self, const struct rank_rows *rows, struct rank_halo **halo)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *first = self;
    const bool whole = rows->col_of_rank == NULL;
    struct level *l = NULL;
    int64_t entries[] = {0, rows->nnz}; /* on a GPU, of the only chunk */
    *halo = NULL;
    st = new_level(first, rows, &l);
    TRY(spmv_group_agree(first->group, st));
    l->m.needs_all = rows->row_ptr == NULL || whole;
    if (!l->m.needs_all) {
        l->m.row_ptr = (int64_t *)(uintptr_t)rows->row_ptr;
        l->m.col = l->m.arrays.col = rows->col;
        l->m.own.nnz = l->m.there.nnz = rows->nnz;
        l->m.chunk_entry = entries;
    }
    TRY(group_halo_prepare(&l->m));
    TRY(complete(l, first));
    if (rows->row_ptr == NULL) /* for `spread` */
        TRY(open_exchange(l));
    *halo = &l->halo;
done:
    if (l != NULL) { /* the caller's */
        l->m.row_ptr = l->m.chunk_entry = NULL;
        l->m.col = l->m.arrays.col = NULL;
    }
    if (st != SPMV_OK && l != NULL)
        close_level(&l->halo);
    return st;
}

static spmv_status make_plan(const struct rank_halo *halo, const spmv_csr *own, const spmv_plan_options *options,
                             spmv_plan **plan)
{
    spmv_status st = SPMV_OK;
    struct level *l = level_of(halo);
    spmv_plan_options o = *options;
    spmv_csr view = *own;
    view.cols = halo->room + halo->own + halo->after;
    if (context_on_device(l->m.ctx) && o.method == NULL)
        o.method = "vector"; /* its bits depend on the row alone */
    TRY(open_exchange(l));
    TRY(plan_create_for_rank(l->m.ctx, &view, &o, &l->m.ranks, plan));
done:
    return st;
}

/* ------------------------------------------------------------- elements */

static spmv_status gather(void *self, const void *own, void *all, const int64_t *offset)
{
    const spmv_group_matrix *first = self;
    return group_gather(first->group, own, all, offset);
}

/* Sends packed elements of `size` bytes, in host memory. arrived: those of other ranks, in
 * order. counts: NULL, or the elements of each parcel that is sent and of each that is received. */
static spmv_status swap(struct level *l, const void *packed, const int64_t *sent, void *arrived,
                        const int64_t *received, int64_t size)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type);
    char *from = (char *)(uintptr_t)packed, *to = arrived;
    for (int i = 0; i < h->sends; i++) {
        const int64_t count = sent != NULL ? sent[i] : h->send[i].bytes / of_type;
        l->send[i] = (struct transport_parcel){h->send[i].rank, from, count * size};
        from += count * size;
    }
    for (int i = 0; i < h->receives; i++) {
        const int64_t count = received != NULL ? received[i] : h->receive[i].bytes / of_type;
        l->receive[i] = (struct transport_parcel){h->receive[i].rank, to, count * size};
        to += count * size;
    }
    TRY(group_start(l->m.group, l->send, h->sends, l->receive, h->receives));
    TRY(group_finish(l->m.group));
done:
    return st;
}

static void pack(const struct halo *h, const char *own, char *to, int64_t size)
{
    if (size == 4 || size == 8)
        SIZED((size_t)size, for (int64_t i = 0; i < h->count; i++) copy_value(to, i, own, h->index[i], SIZE))
    else
        for (int64_t i = 0; i < h->count; i++)
            memcpy(to + i * size, own + h->index[i] * size, (size_t)size);
}

static spmv_status fetch(const struct rank_halo *halo, void *array, int64_t size)
{
    spmv_status st = SPMV_OK;
    struct level *l = level_of(halo);
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const bool device = context_on_device(ctx), few = device && (size == 4 || size == 8);
    char *const own = (char *)array + h->room * size, *const behind = own + halo->own * size;
    char *const front = own - h->before * size;
    void *packed = NULL, *arrived = NULL, *copy = NULL, *context_packed = NULL;
    const void *host = own;
    if (l->m.all_ghosts == 0)
        return SPMV_OK;
    TRY(host_alloc(ctx, max_i64(1, h->count * size), what, &packed));
    TRY(host_alloc(ctx, max_i64(1, (h->before + h->after) * size), what, &arrived));
    if (few && h->count > 0) {
        TRY(context_alloc(ctx, h->count * size, &context_packed));
        TRY(spmv_gather(ctx, size == 4 ? SPMV_I32 : SPMV_I64, own, halo->own, h->context_index, 32, context_packed,
                        h->count));
        TRY(spmv_download(ctx, context_packed, packed, h->count * size));
    } else if (!few) {
        TRY(context_read(ctx, own, halo->own * size, what, &copy, &host));
        pack(h, host, packed, size);
    }
    TRY(swap(l, packed, NULL, arrived, NULL, size));
    if (h->before > 0)
        TRY(spmv_upload(ctx, arrived, front, h->before * size));
    if (h->after > 0)
        TRY(spmv_upload(ctx, (char *)arrived + h->before * size, behind, h->after * size));
done:
    host_free_all(packed, arrived, copy);
    context_free(ctx, context_packed);
    return st;
}

static spmv_status give_back(const struct rank_halo *halo, void *array, int64_t size)
{
    spmv_status st = SPMV_OK;
    struct level *l = level_of(halo);
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type);
    char *const own = (char *)array + h->room * size, *const behind = own + halo->own * size;
    char *from = NULL, *to = NULL, *others = NULL, *arrived = NULL;
    const void *host = NULL;
    void *copy = NULL;
    if (l->m.all_ghosts == 0)
        return SPMV_OK;
    TRY(host_alloc(ctx, max_i64(1, (h->before + h->after) * size), what, (void **)&others));
    TRY(host_alloc(ctx, max_i64(1, h->count * size), what, (void **)&arrived));
    if (h->before > 0)
        TRY(spmv_download(ctx, own - h->before * size, others, h->before * size));
    if (h->after > 0)
        TRY(spmv_download(ctx, behind, others + h->before * size, h->after * size));
    from = others;
    for (int i = 0; i < h->receives; i++) {
        l->send[i] = (struct transport_parcel){h->receive[i].rank, from, h->receive[i].bytes / of_type * size};
        from += l->send[i].bytes;
    }
    to = arrived;
    for (int i = 0; i < h->sends; i++) {
        l->receive[i] = (struct transport_parcel){h->send[i].rank, to, h->send[i].bytes / of_type * size};
        to += l->receive[i].bytes;
    }
    TRY(group_start(l->m.group, l->send, h->receives, l->receive, h->sends));
    TRY(group_finish(l->m.group));
    if (h->count > 0) {
        TRY(context_read(ctx, own, halo->own * size, what, &copy, &host));
        for (int64_t i = 0; i < h->count; i++)
            memcpy((char *)(uintptr_t)host + h->index[i] * size, arrived + i * size, (size_t)size);
        if (context_on_device(ctx))
            TRY(spmv_upload(ctx, host, own, halo->own * size));
    }
done:
    host_free_all(others, arrived, copy);
    return st;
}

static spmv_status spread(const struct rank_halo *halo, void *x)
{
    spmv_status st = SPMV_OK;
    struct level *l = level_of(halo);
    TRY(group_fetch_start(&l->m, x));
    TRY(group_fetch_finish(&l->m, x));
done:
    return st;
}

/* ------------------------------------------------------------- rows */

/* Own rows in host memory. */
struct host_rows {
    const int64_t *row_ptr;
    const int32_t *col;
    const char *val;
    void *copies[3];
};

/* Entries of rows on their way, for each parcel that is sent and that is received. */
struct rows_sent {
    bool places; /* see fetch_others */
    int64_t *sent, *received;
    int64_t arriving[2]; /* in front of the own ones, and behind */
};

static spmv_status read_rows(spmv_context *ctx, const spmv_csr *own, struct host_rows *r)
{
    spmv_status st = SPMV_OK;
    const void *array = NULL;
    *r = (struct host_rows){.row_ptr = NULL};
    TRY(context_read(ctx, own->row_ptr, (own->rows + 1) * 8, what, &r->copies[0], &array));
    r->row_ptr = array;
    TRY(context_read(ctx, own->col, own->nnz * 4, what, &r->copies[1], &array));
    r->col = array;
    if (own->val != NULL)
        TRY(context_read(ctx, own->val, own->nnz * (int64_t)spmv_type_size(own->type), what, &r->copies[2], &array));
    r->val = own->val != NULL ? array : NULL;
done:
    return st;
}

static void release_rows(struct host_rows *r)
{
    host_free_all(r->copies[0], r->copies[1], r->copies[2]);
}

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

/* An array of the entries of rows that others need: they are packed, then sent. */
static spmv_status send_entries(struct level *l, const struct host_rows *rows, const void *host,
                                const struct rows_sent *s, int64_t size, char *arrived)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    char *packed = NULL, *to = NULL;
    int64_t count = 0;
    for (int i = 0; i < h->sends; i++)
        count += s->sent[i];
    TRY(host_alloc(l->m.ctx, max_i64(1, count * size), what, (void **)&packed));
    to = packed;
    for (int64_t i = 0; i < h->count; i++) {
        const int64_t begin = rows->row_ptr[h->index[i]], its = rows->row_ptr[h->index[i] + 1] - begin;
        memcpy(to, (const char *)host + begin * size, (size_t)(its * size));
        to += its * size;
    }
    if (s->places && host == rows->col)
        for (int64_t k = 0; k < count; k++)
            ((int32_t *)(void *)packed)[k] = number_at(&l->halo, ((const int32_t *)(void *)packed)[k]);
    TRY(swap(l, packed, s->sent, arrived, s->received, size));
done:
    host_free(packed);
    return st;
}

/* What has arrived, and copies of own entries. */
static spmv_status join_entries(spmv_context *ctx, const char *arrived, const void *own, int64_t nnz,
                                const int64_t *arriving, int64_t size, void *all)
{
    spmv_status st = SPMV_OK;
    if (arriving[0] > 0)
        TRY(spmv_upload(ctx, arrived, all, arriving[0] * size));
    if (nnz > 0)
        TRY(spmv_map(ctx, SPMV_MAP_COPY, size == 4 ? SPMV_I32 : SPMV_I64, own, (char *)all + arriving[0] * size, nnz));
    if (arriving[1] > 0)
        TRY(spmv_upload(ctx, arrived + arriving[0] * size, (char *)all + (arriving[0] + nnz) * size,
                        arriving[1] * size));
done:
    return st;
}

/* The row offsets of all rows, and how many entries go and come. */
static spmv_status find_offsets(struct level *l, const struct host_rows *rows, int64_t *row_ptr, struct rows_sent *s)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type), ghosts = h->before + h->after;
    int64_t *packed = NULL, *arrived = NULL, at = 0, end = 0;
    TRY(host_alloc(l->m.ctx, max_i64(1, h->count) * 8, what, (void **)&packed));
    TRY(host_alloc(l->m.ctx, max_i64(1, ghosts) * 8, what, (void **)&arrived));
    for (int64_t i = 0; i < h->count; i++)
        packed[i] = rows->row_ptr[h->index[i] + 1] - rows->row_ptr[h->index[i]];
    TRY(swap(l, packed, NULL, arrived, NULL, 8));
    for (int i = 0; i < h->sends; i++) {
        s->sent[i] = 0;
        for (const int64_t last = at + h->send[i].bytes / of_type; at < last; at++)
            s->sent[i] += packed[at];
    }
    at = 0;
    for (int i = 0; i < h->receives; i++) {
        s->received[i] = 0;
        for (const int64_t last = at + h->receive[i].bytes / of_type; at < last; at++)
            s->received[i] += arrived[at];
    }
    for (int64_t i = 0; i < h->room; i++) {
        row_ptr[i] = end;
        end += i >= h->room - h->before ? arrived[i - (h->room - h->before)] : 0;
    }
    s->arriving[0] = end;
    for (int64_t i = 0; i < l->halo.own; i++)
        row_ptr[h->room + i] = end + (s->places ? 0 : rows->row_ptr[i]);
    end += s->places ? 0 : rows->row_ptr[l->halo.own];
    s->arriving[1] = -end;
    for (int64_t i = 0; i < h->after; i++) {
        row_ptr[h->room + l->halo.own + i] = end;
        end += arrived[h->before + i];
    }
    row_ptr[h->room + l->halo.own + h->after] = end;
    s->arriving[1] += end;
done:
    host_free_all(packed, arrived);
    return st;
}

/* Arrived columns become places, values of those that are not in the layout become 0. */
static void find_places(const struct rank_halo *h, int64_t count, int32_t *col, char *val, int64_t size)
{
    for (int64_t k = 0; k < count; k++) {
        bool there = false;
        col[k] = place_up_to(h, col[k], &there);
        if (!there)
            memset(val + k * size, 0, (size_t)size);
    }
}

/* As fetch_rows, or with `places` as fetch_others. */
static spmv_status fetch_some_rows(const struct rank_halo *halo, const spmv_csr *own, bool places,
                                   struct rank_arrays *all)
{
    spmv_status st = SPMV_OK;
    struct level *l = level_of(halo);
    spmv_context *ctx = l->m.ctx;
    const int64_t ranks = ranks_of(&l->m), rows = halo->room + halo->own + halo->after;
    const int64_t size = own->val != NULL ? (int64_t)spmv_type_size(own->type) : 0, nnz = places ? 0 : own->nnz;
    struct host_rows r = {.row_ptr = NULL};
    struct rows_sent s = {.places = places};
    int64_t *row_ptr = NULL, *sent = NULL, arriving = 0;
    char *col = NULL, *val = NULL;
    *all = (struct rank_arrays){.nnz = 0};
    TRY(read_rows(ctx, own, &r));
    TRY(host_alloc(ctx, (rows + 1) * 8, what, (void **)&row_ptr));
    TRY(host_alloc(ctx, 2 * ranks * 8, what, (void **)&sent));
    s.sent = sent;
    s.received = sent + ranks;
    TRY(find_offsets(l, &r, row_ptr, &s));
    arriving = s.arriving[0] + s.arriving[1];
    TRY(alloc_arrays(ctx, rows, row_ptr[rows], size, all));
    TRY(spmv_upload(ctx, row_ptr, all->row_ptr, (rows + 1) * 8));
    TRY(host_alloc(ctx, max_i64(1, arriving) * 4, what, (void **)&col));
    TRY(host_alloc(ctx, max_i64(1, arriving * size), what, (void **)&val));
    TRY(send_entries(l, &r, r.col, &s, 4, col));
    if (size > 0)
        TRY(send_entries(l, &r, r.val, &s, size, val));
    if (places)
        find_places(halo, arriving, (int32_t *)(void *)col, val, size);
    TRY(join_entries(ctx, col, own->col, nnz, s.arriving, 4, all->col));
    if (size > 0)
        TRY(join_entries(ctx, val, own->val, nnz, s.arriving, size, all->val));
done:
    if (st != SPMV_OK)
        free_arrays(ctx, all);
    host_free_all(row_ptr, sent, col, val);
    release_rows(&r);
    return st;
}

static spmv_status fetch_rows(const struct rank_halo *halo, const spmv_csr *own, struct rank_arrays *all)
{
    return fetch_some_rows(halo, own, false, all);
}

static spmv_status fetch_others(const struct rank_halo *halo, const spmv_csr *own, struct rank_arrays *others)
{
    return fetch_some_rows(halo, own, true, others);
}

/* ------------------------------------------------------------- the transpose */

/* Entries that go to the owners of their columns: rank after rank, in the order of their rows. */
struct columns_sent {
    int64_t *sent, *received; /* ranks + 1 each: where the entries of each rank begin */
    int32_t *row, *col;
    char *val;
    int32_t *row_in, *col_in;
    char *val_in;
};

static int owner_of(const int64_t *col_of_rank, int ranks, int64_t column, int near)
{
    int r = near;
    while (column < col_of_rank[r])
        r--;
    while (r + 1 < ranks && column >= col_of_rank[r + 1])
        r++;
    return r;
}

static void pack_columns(const struct host_rows *rows, int64_t n, const int64_t *col_of_rank, int ranks,
                         int64_t first_row, int64_t size, int64_t *at, struct columns_sent *c)
{
    int r = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = rows->row_ptr[i]; k < rows->row_ptr[i + 1]; k++) {
            r = owner_of(col_of_rank, ranks, rows->col[k], r);
            const int64_t to = at[r]++;
            if (c->col == NULL)
                continue;
            c->row[to] = (int32_t)(first_row + i);
            c->col[to] = rows->col[k];
            copy_value(c->val, to, rows->val, k, (size_t)size);
        }
}

/* One array of the entries. */
static spmv_status send_columns(struct level *l, const struct columns_sent *c, int64_t size, const void *from, void *to)
{
    spmv_status st = SPMV_OK;
    const int ranks = ranks_of(&l->m), rank = l->m.group->transport.rank;
    const int64_t own = c->sent[rank + 1] - c->sent[rank];
    int sends = 0, receives = 0;
    for (int r = 0; r < ranks; r++) {
        if (r != rank && c->sent[r + 1] > c->sent[r])
            l->send[sends++] = (struct transport_parcel){r, (char *)(uintptr_t)from + c->sent[r] * size,
                                                         (c->sent[r + 1] - c->sent[r]) * size};
        if (r != rank && c->received[r + 1] > c->received[r])
            l->receive[receives++] = (struct transport_parcel){r, (char *)to + c->received[r] * size,
                                                               (c->received[r + 1] - c->received[r]) * size};
    }
    TRY(group_start(l->m.group, l->send, sends, l->receive, receives));
    TRY(group_finish(l->m.group));
    if (own > 0)
        memcpy((char *)to + c->received[rank] * size, (const char *)from + c->sent[rank] * size, (size_t)(own * size));
done:
    return st;
}

/* How many entries go to each rank and come from it. */
static spmv_status count_columns(struct level *l, const int64_t *counts, struct columns_sent *c)
{
    spmv_status st = SPMV_OK;
    const int64_t ranks = ranks_of(&l->m), rank = l->m.group->transport.rank;
    int64_t *all = NULL;
    TRY(host_alloc(l->m.ctx, ranks * ranks * 8, what, (void **)&all));
    TRY(group_gather_equal(l->m.group, counts, all, ranks * 8));
    c->sent[0] = c->received[0] = 0;
    for (int64_t r = 0; r < ranks; r++) {
        c->sent[r + 1] = c->sent[r] + counts[r];
        c->received[r + 1] = c->received[r] + all[r * ranks + rank];
    }
done:
    host_free(all);
    return st;
}

/* Rows of the arrived columns: a stable sort, so rows ascend in each. */
static void sort_arrived(const struct columns_sent *c, int64_t count, int64_t first, int64_t n, int64_t size,
                         int64_t *row_ptr, int32_t *col, char *val)
{
    memset(row_ptr, 0, (size_t)(n + 1) * sizeof *row_ptr);
    for (int64_t k = 0; k < count; k++)
        row_ptr[c->col_in[k] - first + 1]++;
    for (int64_t j = 0; j < n; j++)
        row_ptr[j + 1] += row_ptr[j];
    for (int64_t k = 0; k < count; k++) {
        const int64_t to = row_ptr[c->col_in[k] - first]++;
        col[to] = c->row_in[k];
        copy_value(val, to, c->val_in, k, (size_t)size);
    }
    for (int64_t j = n; j > 0; j--)
        row_ptr[j] = row_ptr[j - 1];
    row_ptr[0] = 0;
}

/* As transpose, with a level for its parcels. */
static spmv_status transpose_rows(struct level *l, const int64_t *row_of_rank, const int64_t *col_of_rank,
                                  const spmv_csr *own, struct rank_arrays *to)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = l->m.ctx;
    const int ranks = ranks_of(&l->m), rank = l->m.group->transport.rank;
    const int64_t size = (int64_t)spmv_type_size(own->type), n = col_of_rank[rank + 1] - col_of_rank[rank];
    struct host_rows r = {.row_ptr = NULL};
    struct columns_sent c = {.sent = NULL};
    int64_t *counts = NULL, *row_ptr = NULL, arrived = 0;
    int32_t *col = NULL;
    char *val = NULL;
    TRY(read_rows(ctx, own, &r));
    TRY(host_alloc(ctx, ranks * 8, what, (void **)&counts));
    TRY(host_alloc(ctx, (ranks + 1) * 8, what, (void **)&c.sent));
    TRY(host_alloc(ctx, (ranks + 1) * 8, what, (void **)&c.received));
    memset(counts, 0, (size_t)ranks * 8);
    pack_columns(&r, own->rows, col_of_rank, ranks, row_of_rank[rank], size, counts, &c);
    TRY(count_columns(l, counts, &c));
    arrived = c.received[ranks];
    TRY(host_alloc(ctx, max_i64(1, own->nnz) * 4, what, (void **)&c.row));
    TRY(host_alloc(ctx, max_i64(1, own->nnz) * 4, what, (void **)&c.col));
    TRY(host_alloc(ctx, max_i64(1, own->nnz) * size, what, (void **)&c.val));
    TRY(host_alloc(ctx, max_i64(1, arrived) * 4, what, (void **)&c.row_in));
    TRY(host_alloc(ctx, max_i64(1, arrived) * 4, what, (void **)&c.col_in));
    TRY(host_alloc(ctx, max_i64(1, arrived) * size, what, (void **)&c.val_in));
    memcpy(counts, c.sent, (size_t)ranks * 8);
    pack_columns(&r, own->rows, col_of_rank, ranks, row_of_rank[rank], size, counts, &c);
    TRY(send_columns(l, &c, 4, c.row, c.row_in));
    TRY(send_columns(l, &c, 4, c.col, c.col_in));
    TRY(send_columns(l, &c, size, c.val, c.val_in));
    TRY(host_alloc(ctx, (n + 1) * 8, what, (void **)&row_ptr));
    TRY(host_alloc(ctx, max_i64(1, arrived) * 4, what, (void **)&col));
    TRY(host_alloc(ctx, max_i64(1, arrived) * size, what, (void **)&val));
    sort_arrived(&c, arrived, col_of_rank[rank], n, size, row_ptr, col, val);
    TRY(alloc_arrays(ctx, n, arrived, size, to));
    TRY(spmv_upload(ctx, row_ptr, to->row_ptr, (n + 1) * 8));
    TRY(spmv_upload(ctx, col, to->col, arrived * 4));
    TRY(spmv_upload(ctx, val, to->val, arrived * size));
done:
    host_free_all(counts, row_ptr, col, val, c.sent, c.received, c.row, c.col, c.val, c.row_in, c.col_in, c.val_in);
    release_rows(&r);
    return st;
}

static spmv_status transpose(void *self, const int64_t *row_of_rank, const int64_t *col_of_rank, const spmv_csr *own,
                             struct rank_arrays *to)
{
    const spmv_group_matrix *first = self;
    struct level l = {.m = {.group = first->group, .ctx = first->ctx}};
    const int64_t bytes = ranks_of(first) * (int64_t)sizeof *l.send;
    spmv_status st = SPMV_OK;
    *to = (struct rank_arrays){.nnz = 0};
    TRY(host_alloc(first->ctx, bytes, what, (void **)&l.send));
    TRY(host_alloc(first->ctx, bytes, what, (void **)&l.receive));
    TRY(transpose_rows(&l, row_of_rank, col_of_rank, own, to));
done:
    if (st != SPMV_OK)
        free_arrays(first->ctx, to);
    host_free_all(l.send, l.receive);
    return st;
}

const struct rank_tools group_rank_tools = {.first = take_first,
                                            .open = open_level,
                                            .close = close_level,
                                            .gather = gather,
                                            .fetch = fetch,
                                            .give_back = give_back,
                                            .spread = spread,
                                            .fetch_rows = fetch_rows,
                                            .fetch_others = fetch_others,
                                            .transpose = transpose,
                                            .plan = make_plan};
