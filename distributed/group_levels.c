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
    const int64_t own[] = {rows->rows, rows->nnz};
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
    TRY(group_halo_prepare(&l->m));
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

/* Whether the products of the first matrix use the method slices. */
static bool takes_slices(const spmv_group_matrix *first)
{
    return first->method != NULL && strcmp(first->method, "slices") == 0;
}

static spmv_status make_plan(const struct rank_halo *halo, const spmv_csr *own, const spmv_plan_options *options,
                             spmv_plan **plan)
{
    spmv_status st = SPMV_OK;
    struct level *l = group_level_of(halo);
    spmv_plan_options o = *options;
    spmv_csr view = *own;
    view.cols = halo->room + halo->own + halo->after;
    if (context_on_device(l->m.ctx) && o.method == NULL) /* their bits depend on the row alone */
        o.method = l->has_matrix && own->nnz > 0 && takes_slices(l->first) ? "slices" : "vector";
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

bool group_level_is_near(const struct level *l)
{
    return context_on_device(l->m.ctx) && l->m.group->transport.retain != NULL && !l->first->levels_on_host;
}

/* Where packed elements are, for the rank that copies them. */
struct parcel_there {
    const char *memory;
    int64_t device;
};

/* Copies what this rank receives, from the places in `its`. */
static spmv_status copy_parcels(const struct level *l, const struct parcel_there *its, char *front, char *behind,
                                const int64_t *received, int64_t size)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type);
    for (int i = 0; i < h->receives; i++) {
        char **const to = h->receive[i].rank < l->m.group->transport.rank ? &front : &behind;
        const int64_t bytes = (received != NULL ? received[i] : h->receive[i].bytes / of_type) * size;
        if (bytes > 0)
            TRY(group_copy_near_cuda(l->m.ctx, its[i].memory, (int)its[i].device, *to, bytes));
        *to += bytes;
    }
    TRY(spmv_synchronize(l->m.ctx));
done:
    return st;
}

spmv_status group_level_swap_near(struct level *l, const void *packed, const int64_t *sent, void *front, void *behind,
                                  const int64_t *received, int64_t size, bool *moved)
{
    spmv_status st = SPMV_OK;
    const struct halo *h = &l->m.halo;
    spmv_context *ctx = l->m.ctx;
    const int ranks = ranks_of(&l->m);
    const int64_t of_type = (int64_t)spmv_type_size(l->m.type), bytes = ranks * (int64_t)sizeof(struct parcel_there);
    struct parcel_there *own = NULL, *its = NULL;
    int64_t refused = 0, *all = NULL;
    const char *from = packed;
    *moved = true;
    TRY(host_alloc(ctx, bytes, what, (void **)&own));
    TRY(host_alloc(ctx, bytes, what, (void **)&its));
    TRY(host_alloc(ctx, ranks * 8, what, (void **)&all));
    for (int i = 0; i < h->sends; i++) {
        own[i] = (struct parcel_there){from, group_device_cuda(ctx)};
        l->send[i] = (struct transport_parcel){h->send[i].rank, &own[i], sizeof own[i]};
        from += (sent != NULL ? sent[i] : h->send[i].bytes / of_type) * size;
    }
    for (int i = 0; i < h->receives; i++)
        l->receive[i] = (struct transport_parcel){h->receive[i].rank, &its[i], sizeof its[i]};
    TRY(spmv_synchronize(ctx)); /* the elements are packed */
    TRY(group_start(l->m.group, l->send, h->sends, l->receive, h->receives));
    TRY(group_finish(l->m.group));
    refused = copy_parcels(l, its, front, behind, received, size) != SPMV_OK;
    TRY(group_gather_equal(l->m.group, &refused, all, 8)); /* also: nobody reads any more */
    for (int r = 0; r < ranks; r++)
        *moved = *moved && all[r] == 0;
    l->first->levels_on_host = !*moved;
done:
    host_free_all(own, its, all);
    return st;
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
    TRY(context_alloc(l->m.ctx, max_i64(1, h->count) * size, &packed));
    if (h->count > 0)
        TRY(group_take_elements_cuda(l->m.ctx, &e, own, packed));
    TRY(group_level_swap_near(l, packed, NULL, own - h->before * size, own + l->halo.own * size, NULL, size, moved));
done:
    context_free(l->m.ctx, packed);
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
    if (group_level_is_near(l))
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
    if (l->m.all_ghosts == 0)
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

static spmv_status spread(const struct rank_halo *halo, void *x)
{
    spmv_status st = SPMV_OK;
    struct level *l = group_level_of(halo);
    TRY(group_fetch_start(&l->m, x));
    TRY(group_fetch_finish(&l->m, x));
done:
    return st;
}

const struct rank_tools group_rank_tools = {.first = take_first,
                                            .open = open_level,
                                            .close = close_level,
                                            .gather = gather,
                                            .fetch = fetch,
                                            .give_back = give_back,
                                            .spread = spread,
                                            .fetch_rows = group_fetch_rows,
                                            .fetch_others = group_fetch_others,
                                            .transpose = group_transpose,
                                            .plan = make_plan};
