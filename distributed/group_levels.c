/* Matrices of a hierarchy over ranks: the functions of struct rank_tools. Each halo has the
 * exchange of its own vectors, so a plan with it multiplies as that of the first matrix does.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <string.h>

#include "core/threads.h"
#include "distributed/group_internal.h"
#include "distributed/group_levels.h"
#include "formats/matrix_internal.h"
#include "solvers/exchange/rank_tools.h"

static const char *const what = "a hierarchy of ranks";

static int ranks_of(const spmv_group_matrix *m)
{
    return m->group->transport.ranks;
}

static void close_level(struct rank_halo *halo)
{
    struct level *l = group_level_of(halo);
    if (halo == NULL)
        return;
    spmv_group_matrix *const m = &l->m;
    spmv_group_matrix **link = l->first != NULL ? &l->first->levels : NULL;
    while (link != NULL && *link != NULL && *link != m)
        link = &(*link)->next_level;
    if (link != NULL && *link == m)
        *link = m->next_level;
    if (m->exchange.kind != NULL)
        exchange_close(m);
    group_halo_release(m);
    group_sums_release(m);
    host_free_all(m->chunk_of_rank, m->row_of_rank, m->col_of_rank, m->chunk, m->edge, m->met, l->send, l->receive,
                  l->chunk, l->chunk_entry, l->offset, l->near);
    context_free(m->ctx, l->bounds);
    if (!m->halo.borrows)
        context_free(m->ctx, m->context_ghosts);
    group_free_queued(m->ctx, m->context_parts, m->context_chunk);
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
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *l->offset, what, (void **)&l->offset));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *l->near, what, (void **)&l->near));
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
    if (device) {
        TRY(copy_numbers(m->ctx, rows->chunk, (rows->chunks + 1) * (int64_t)sizeof *l->chunk, &l->chunk));
        l->packed.chunks = rows->chunks;
    }
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
    if (l->opened || l->m.all_ghosts == 0 || !context_on_device(l->m.ctx))
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
    st = group_halo_buffers(m);
    l->halo = (struct rank_halo){.room = h->room,
                                 .before = h->before,
                                 .own = m->col_of_rank[rank + 1] - m->col_of_rank[rank],
                                 .after = h->after,
                                 .first = m->col_of_rank[rank],
                                 .ghost = h->ghost,
                                 .there = context_on_device(m->ctx) ? m->context_ghosts : h->ghost,
                                 .sent = context_on_device(m->ctx) ? h->context_index : h->index,
                                 .sent_count = h->count};
    m->ranks.before = h->room;
    m->ranks.after = h->after;
    l->first = m->first = first;
    m->next_level = first->levels;
    first->levels = m;
    TRY(spmv_group_agree(m->group, st));
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
        h->borrows = true;
        h->ghost = from->ghost;
        h->index = from->index;
        h->context_index = from->context_index;
        l->m.context_ghosts = first->context_ghosts;
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
    l->has_matrix = true;
    *result = (struct rank_first){&l->halo, first->row_of_rank, first->chunk};
done:
    if (st != SPMV_OK && l != NULL)
        close_level(&l->halo);
    return st;
}

/* The rows and entries of all ranks, by which a method has its lanes. */
static spmv_status count_all(spmv_group_matrix *m, const struct rank_rows *rows)
{
    spmv_status st = SPMV_OK;
    const int ranks = ranks_of(m);
    const int64_t own[] = {rows->rows, rows->nnz - rows->others};
    int64_t *all = NULL;
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof own, what, (void **)&all));
    TRY(group_gather_equal(m->group, own, all, sizeof own));
    m->ranks.rows = m->ranks.nnz = 0;
    for (int r = 0; r < ranks; r++) {
        m->ranks.rows += all[2 * r];
        m->ranks.nnz += all[2 * r + 1];
    }
done:
    host_free(all);
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
    for (int64_t c = 0; c < l->m.ranks.chunks; c++)
        l->m.edge[c] = false;
    if (ranks_of(first) > 1)
        TRY(group_halo_prepare(&l->m, near_is_possible(first->group)));
    TRY(complete(l, first));
    TRY(count_all(&l->m, rows));
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

/* The method of own rows on a GPU, whose sums must not depend on the number of ranks: that of the first matrix for
 * its rows. Rows of other levels begin anywhere, so their slices and groups would depend on it. */
static const char *method_of(const struct level *l, const spmv_csr *own)
{
    return own->nnz == 0 ? "vector" : l->has_matrix && l->first->method != NULL ? l->first->method : "tiles";
}

/* Finds where the entries of the chunks begin. */
static spmv_status find_chunks(struct level *l, const spmv_csr *own)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = l->m.ctx;
    const int64_t count = l->packed.chunks + 1, bytes = count * (int64_t)sizeof *l->chunk;
    const bool narrow = own->row_ptr_bits == 32;
    int64_t *chunk = NULL;
    void *entry = NULL;
    if (l->chunk_entry != NULL)
        return SPMV_OK;
    TRY(context_alloc(ctx, bytes, (void **)&chunk));
    TRY(context_alloc(ctx, bytes, &entry));
    TRY(spmv_upload(ctx, l->chunk, chunk, bytes));
    TRY(spmv_gather(ctx, narrow ? SPMV_I32 : SPMV_I64, own->row_ptr, own->rows + 1, chunk, 64, entry, count));
    TRY(host_alloc(ctx, bytes, what, (void **)&l->chunk_entry));
    TRY(spmv_download(ctx, entry, l->chunk_entry, count * own->row_ptr_bits / 8));
    for (int64_t c = count - 1; c >= 0 && narrow; c--) /* in place: the last first */
        l->chunk_entry[c] = ((const int32_t *)(void *)l->chunk_entry)[c];
    l->packed = l->m.ranks;
    l->packed.chunk = l->chunk;
    l->packed.chunks = count - 1;
    l->packed.chunk_entry = l->chunk_entry;
    l->packed.edge = NULL;
done:
    group_free_queued(ctx, chunk, entry);
    return st;
}

static spmv_status make_plan(const struct rank_halo *halo, const spmv_csr *own, const spmv_plan_options *options,
                             spmv_plan **plan)
{
    spmv_status st = SPMV_OK;
    struct level *l = group_level_of(halo);
    spmv_plan_options o = *options;
    spmv_csr view = *own;
    view.cols = halo->room + halo->own + halo->after;
    const struct plan_ranks *ranks = &l->m.ranks;
    if (context_on_device(l->m.ctx) && o.method == NULL)
        o.method = method_of(l, own);
    TRY(open_exchange(l));
    if (o.method != NULL && strcmp(o.method, "tiles") == 0) {
        TRY(find_chunks(l, own));
        ranks = &l->packed;
    }
    TRY(plan_create_for_rank(l->m.ctx, &view, &o, ranks, plan));
done:
    return st;
}

/* ------------------------------------------------------------- elements */

static spmv_status gather(void *self, const void *own, void *all, const int64_t *offset)
{
    const spmv_group_matrix *first = self;
    return group_gather(first->group, own, all, offset);
}

spmv_status group_level_copy(spmv_context *ctx, const void *from, int64_t size, int64_t n, void *to)
{
    return n > 0 ? spmv_map(ctx, SPMV_MAP_COPY, SPMV_I32, from, to, n * (size / 4)) : SPMV_OK;
}

/* As gather_there, between GPUs that are near. */
static spmv_status gather_near(spmv_group_matrix *first, const void *own, char *all, const int64_t *offset, bool *moved)
{
    spmv_status st = SPMV_OK;
    const int ranks = ranks_of(first), rank = first->group->transport.rank;
    const int64_t bytes = offset[rank + 1] - offset[rank];
    struct near_parcel *parcel = NULL;
    int64_t *begin = NULL;
    void *packed = NULL;
    TRY(host_alloc(first->ctx, ranks * (int64_t)sizeof *parcel, what, (void **)&parcel));
    TRY(host_zeros(first->ctx, ranks * 8, what, (void **)&begin));
    TRY(near_lend(first->group, bytes, &packed));
    TRY(group_level_copy(first->ctx, own, 4, bytes / 4, packed));
    for (int r = 0; r < ranks; r++)
        parcel[r] = (struct near_parcel){r, all + offset[r], offset[r + 1] - offset[r]};
    TRY(near_swap(first->group, begin, parcel, ranks, moved));
done:
    host_free_all(parcel, begin);
    return st;
}

static spmv_status gather_there(void *self, const void *own, void *all, const int64_t *offset)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *first = self;
    const int ranks = ranks_of(first), rank = first->group->transport.rank;
    const void *host = NULL;
    void *copy = NULL, *whole = NULL;
    bool moved = false;
    if (near_is_possible(first->group))
        TRY(gather_near(first, own, all, offset, &moved));
    if (moved)
        return SPMV_OK;
    TRY(context_read(first->ctx, own, offset[rank + 1] - offset[rank], what, &copy, &host));
    TRY(host_alloc(first->ctx, max_i64(1, offset[ranks]), what, &whole));
    TRY(group_gather(first->group, host, whole, offset));
    TRY(spmv_upload(first->ctx, whole, all, offset[ranks]));
done:
    host_free_all(copy, whole);
    return st;
}

spmv_status group_level_swap(struct level *l, const void *packed, const int64_t *sent, void *arrived,
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

/* Where what goes to each rank begins, one parcel after the other; counts: elements of each, or NULL: those of a
 * vector. */
static void find_offsets(struct level *l, const struct transport_parcel *parcel, int parcels, const int64_t *counts,
                         int64_t size)
{
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type);
    int64_t at = 0;
    for (int r = 0; r < ranks_of(&l->m); r++)
        l->offset[r] = 0;
    for (int i = 0; i < parcels; i++) {
        l->offset[parcel[i].rank] = at;
        at += (counts != NULL ? counts[i] : parcel[i].bytes / of_type) * size;
    }
}

spmv_status group_level_swap_near(struct level *l, const int64_t *sent, void *front, void *behind,
                                  const int64_t *received, int64_t size, bool *moved)
{
    const struct halo *h = &l->m.halo;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type);
    char *to[] = {front, behind};
    find_offsets(l, h->send, h->sends, sent, size);
    for (int i = 0; i < h->receives; i++) {
        const int higher = h->receive[i].rank > l->m.group->transport.rank;
        const int64_t bytes = (received != NULL ? received[i] : h->receive[i].bytes / of_type) * size;
        l->near[i] = (struct near_parcel){h->receive[i].rank, to[higher], bytes};
        to[higher] += bytes;
    }
    return near_swap(l->first->group, l->offset, l->near, h->receives, moved);
}

spmv_status group_level_swap_back_near(struct level *l, void *arrived, int64_t size, bool *moved)
{
    const struct halo *h = &l->m.halo;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type);
    char *to = arrived;
    find_offsets(l, h->receive, h->receives, NULL, size);
    for (int i = 0; i < h->sends; i++) {
        l->near[i] = (struct near_parcel){h->send[i].rank, to, h->send[i].bytes / of_type * size};
        to += l->near[i].bytes;
    }
    return near_swap(l->first->group, l->offset, l->near, h->sends, moved);
}

/* The elements that others need, between the own ones in the context's memory and a packed array in host
 * memory: there, or with `back` from there. */
static spmv_status pack(const struct level *l, char *own, int64_t size, char *packed, bool back)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const struct group_elements e = {h->context_index, h->count, (int)(size / 4)};
    void *there = NULL;
    if (h->count == 0)
        return SPMV_OK;
    if (!context_on_device(ctx)) {
#pragma omp parallel for num_threads(host_team(ctx, h->count)) schedule(static)
        for (int64_t i = 0; i < h->count; i++) {
            char *const here = packed + i * size, *const its = own + h->index[i] * size;
            memcpy(back ? its : here, back ? here : its, (size_t)size);
        }
        return SPMV_OK;
    }
    TRY(context_alloc(ctx, h->count * size, &there));
    if (back) {
        TRY(spmv_upload(ctx, packed, there, h->count * size));
        TRY(group_put_elements_cuda(ctx, &e, there, own));
    } else {
        TRY(group_take_elements_cuda(ctx, &e, own, there));
        TRY(spmv_download(ctx, there, packed, h->count * size));
    }
done:
    context_free(ctx, there);
    return st;
}

/* As fetch, between GPUs that are near. */
static spmv_status fetch_near(struct level *l, char *own, int64_t size, bool *moved)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    const struct group_elements e = {h->context_index, h->count, (int)(size / 4)};
    void *packed = NULL;
    TRY(near_lend(l->first->group, h->count * size, &packed));
    if (h->count > 0)
        TRY(group_take_elements_cuda(l->m.ctx, &e, own, packed));
    TRY(group_level_swap_near(l, NULL, own - h->before * size, own + l->halo.own * size, NULL, size, moved));
done:
    return st;
}

/* As give_back, likewise. */
static spmv_status give_back_near(struct level *l, char *own, int64_t size, bool *moved)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const struct group_elements e = {h->context_index, h->count, (int)(size / 4)};
    void *packed = NULL, *arrived = NULL;
    TRY(near_lend(l->first->group, (h->before + h->after) * size, &packed));
    TRY(group_level_copy(ctx, own - h->before * size, size, h->before, packed));
    TRY(group_level_copy(ctx, own + l->halo.own * size, size, h->after, (char *)packed + h->before * size));
    TRY(context_alloc(ctx, max_i64(1, h->count) * size, &arrived));
    TRY(group_level_swap_back_near(l, arrived, size, moved));
    if (h->count > 0 && *moved)
        TRY(group_put_elements_cuda(ctx, &e, arrived, own));
done:
    context_free(ctx, arrived);
    return st;
}

static spmv_status fetch(const struct rank_halo *halo, void *array, int64_t size)
{
    spmv_status st = SPMV_OK;
    struct level *l = group_level_of(halo);
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    char *const own = (char *)array + h->room * size, *packed = NULL, *arrived = NULL;
    bool moved = false;
    if (l->m.all_ghosts == 0)
        return SPMV_OK;
    if (near_is_possible(l->first->group))
        TRY(fetch_near(l, own, size, &moved));
    if (moved)
        return SPMV_OK;
    TRY(host_alloc(ctx, max_i64(1, h->count * size), what, (void **)&packed));
    TRY(host_alloc(ctx, max_i64(1, (h->before + h->after) * size), what, (void **)&arrived));
    TRY(pack(l, own, size, packed, false));
    TRY(group_level_swap(l, packed, NULL, arrived, NULL, size));
    if (h->before > 0)
        TRY(spmv_upload(ctx, arrived, own - h->before * size, h->before * size));
    if (h->after > 0)
        TRY(spmv_upload(ctx, arrived + h->before * size, own + halo->own * size, h->after * size));
done:
    host_free_all(packed, arrived);
    return st;
}

spmv_status group_level_swap_back(struct level *l, const void *others, void *arrived, int64_t size)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type);
    char *from = (char *)(uintptr_t)others, *to = arrived;
    for (int i = 0; i < h->receives; i++) {
        l->send[i] = (struct transport_parcel){h->receive[i].rank, from, h->receive[i].bytes / of_type * size};
        from += l->send[i].bytes;
    }
    for (int i = 0; i < h->sends; i++) {
        l->receive[i] = (struct transport_parcel){h->send[i].rank, to, h->send[i].bytes / of_type * size};
        to += l->receive[i].bytes;
    }
    TRY(group_start(l->m.group, l->send, h->receives, l->receive, h->sends));
    TRY(group_finish(l->m.group));
done:
    return st;
}

static spmv_status give_back(const struct rank_halo *halo, void *array, int64_t size)
{
    spmv_status st = SPMV_OK;
    struct level *l = group_level_of(halo);
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    char *const own = (char *)array + h->room * size, *const behind = own + halo->own * size;
    char *others = NULL, *arrived = NULL;
    bool moved = false;
    if (l->m.all_ghosts == 0)
        return SPMV_OK;
    if (near_is_possible(l->first->group))
        TRY(give_back_near(l, own, size, &moved));
    if (moved)
        return SPMV_OK;
    TRY(host_alloc(ctx, max_i64(1, (h->before + h->after) * size), what, (void **)&others));
    TRY(host_alloc(ctx, max_i64(1, h->count * size), what, (void **)&arrived));
    if (h->before > 0)
        TRY(spmv_download(ctx, own - h->before * size, others, h->before * size));
    if (h->after > 0)
        TRY(spmv_download(ctx, behind, others + h->before * size, h->after * size));
    TRY(group_level_swap_back(l, others, arrived, size));
    TRY(pack(l, own, size, arrived, true));
done:
    host_free_all(others, arrived);
    return st;
}

static spmv_status spread(const struct rank_halo *halo, void *x, int vectors)
{
    spmv_status st = SPMV_OK;
    struct level *l = group_level_of(halo);
    TRY(group_fetch_start(&l->m, x, vectors));
    TRY(group_fetch_finish(&l->m, x, vectors));
done:
    return st;
}

const struct rank_tools group_rank_tools = {.first = take_first,
                                            .open = open_level,
                                            .close = close_level,
                                            .gather = gather,
                                            .gather_there = gather_there,
                                            .fetch = fetch,
                                            .give_back = give_back,
                                            .spread = spread,
                                            .fetch_rows = group_fetch_rows,
                                            .fetch_others = group_fetch_others,
                                            .fetch_places = group_fetch_places,
                                            .fetch_columns = group_fetch_columns,
                                            .transpose = group_transpose,
                                            .plan = make_plan};
