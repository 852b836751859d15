/* The exchange "peer": each rank has a board in its GPU's memory, which kernels of the other ranks
 * write (exchange_cuda.cu). Ranks are threads of one process, or processes of one host.
 *
 * A rank that leaves after a failure may leave kernels of other ranks that still write to its board,
 * which lives until the group's last handle is destroyed (boards.h). Without a failure, all that others
 * write to it has arrived when the rank's stream is done, because the rank has waited for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "core/runtime_cuda.h"
#include "distributed/exchange_cuda.h"
#include "distributed/group_internal.h"

static const char *const what = "an exchange between GPUs";

struct peer {
    struct exchange_view view;
    struct board *board;
    bool together; /* kernels of all ranks may run at the same time */
    void *tables;  /* boards, targets and sources of the view */
    void *sends;   /* order, range_of and ranges of the view */
};

/* Offsets within a board, in bytes. Others write the flags, the parts and what arrives. */
struct layout {
    int64_t put, parts[2], arrived[2], end;
};

/* What a rank tells the others. */
struct told {
    struct board_name name;
    int64_t arrived[2];
    char *board; /* once found: its memory for this rank's GPU */
};

static int64_t padded(int64_t bytes)
{
    return ceil_divide(bytes, 256) * 256;
}

static struct layout layout_of(const spmv_group_matrix *m)
{
    const int64_t flags = padded(m->group->transport.ranks * (int64_t)sizeof(struct exchange_flag));
    const int64_t parts = padded(EXCHANGE_SUMS * max_i64(1, m->all_chunks) * 16); /* exchange_view.cuh, "Parts" */
    const int64_t arrived = padded((m->halo.before + m->halo.after) * (int64_t)spmv_type_size(m->type));
    struct layout l = {.put = padded((int64_t)sizeof(struct exchange_counters))};
    l.parts[0] = l.put + flags;
    l.parts[1] = l.parts[0] + parts;
    l.arrived[0] = l.parts[1] + parts;
    l.arrived[1] = l.arrived[0] + arrived;
    l.end = l.arrived[1] + arrived;
    return l;
}

static int device_of(const spmv_group_matrix *m)
{
    return ((struct cuda_state *)m->ctx->device)->device;
}

/* ------------------------------------------------------------- access */

/* Lets the context's device write to the memory of another one. */
static spmv_status allow(spmv_context *ctx, int own, int other)
{
    int possible = 0;
    cudaError_t error = cudaDeviceCanAccessPeer(&possible, own, other);
    if (error == cudaSuccess && !possible)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "exchange peer: GPU %d cannot access the memory of GPU %d",
                            own, other);
    if (error == cudaSuccess)
        error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
        error = cudaSuccess;
    }
    return cuda_check(ctx, error, "cudaDeviceEnablePeerAccess");
}

/* Whether elements arrive from all ranks to which some go. Then a rank that has got those of fetch k + 1
 * knows that its targets have stored those of fetch k, also without a sum between: a preconditioner may
 * multiply several times. */
static int is_mutual(const struct halo *h)
{
    int mutual = h->sends == h->receives;
    for (int i = 0; i < h->sends && mutual; i++)
        mutual = h->send[i].rank == h->receive[i].rank;
    return mutual;
}

/* Together: sets whether kernels may wait. */
static spmv_status find_waits(spmv_group_matrix *m, const struct peer *p)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    int own = is_mutual(&m->halo), *mutual = NULL;
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *mutual, what, (void **)&mutual));
    TRY(group_gather_equal(m->group, &own, mutual, sizeof own));
    m->exchange.may_wait = p->together && m->all_chunks >= ranks;
    for (int r = 0; r < ranks; r++)
        m->exchange.may_wait = m->exchange.may_wait && mutual[r];
done:
    host_free(mutual);
    return st;
}

/* Together: lets this rank's GPU write to those of all other threads. */
static spmv_status allow_all(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    int own = device_of(m);
    int *device = NULL;
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *device, what, (void **)&device));
    TRY(group_gather_equal(m->group, &own, device, sizeof own));
    st = cuda_enter(m->ctx);
    if (st == SPMV_OK) {
        for (int r = 0; r < ranks && st == SPMV_OK; r++)
            if (device[r] != own)
                st = allow(m->ctx, own, device[r]);
        st = cuda_leave(m->ctx, st);
    }
    TRY(spmv_group_agree(m->group, st));
done:
    host_free(device);
    return st;
}

/* Together: whether GPUs can reach each other; sets p->together. */
static spmv_status find_access(spmv_group_matrix *m, struct peer *p)
{
    spmv_status st = SPMV_OK;
    const char *obstacle = NULL;
    bool one_host = false;
    if (m->first != NULL) {
        p->together = ((const struct peer *)m->first->exchange.state)->together;
        return SPMV_OK;
    }
    if (m->group->transport.common)
        TRY(allow_all(m));
    TRY(exchange_find_obstacle(m, &obstacle, &one_host));
    if (!m->group->transport.common && !one_host) {
        m->group->settled = true; /* on all ranks */
        TRY(context_fail(m->ctx, SPMV_ERROR_UNSUPPORTED,
                         "exchange peer: ranks must be on one host; between hosts: nccl or host"));
    }
    p->together = obstacle == NULL;
done:
    return st;
}

/* ------------------------------------------------------------- memory */

static spmv_status prepare_board(spmv_group_matrix *m, struct peer *p, const struct layout *l)
{
    spmv_status st = SPMV_OK;
    void *stop = NULL;
    TRY(board_take(m->group, l->end, what, &p->board));
    TRY(cuda_enter(m->ctx));
    st = cuda_check(m->ctx, cudaMemsetAsync(p->board->memory, 0, (size_t)l->end, (cudaStream_t)m->ctx->stream), what);
    if (st == SPMV_OK)
        st = cuda_check(m->ctx, cudaStreamSynchronize((cudaStream_t)m->ctx->stream), what);
    if (m->first != NULL) {
        p->view.stop = ((const struct peer *)m->first->exchange.state)->view.stop;
        return cuda_leave(m->ctx, st);
    }
    if (st == SPMV_OK)
        st = cuda_check(m->ctx, cudaHostAlloc(&stop, sizeof(int), cudaHostAllocPortable | cudaHostAllocMapped), what);
    if (st == SPMV_OK) {
        p->view.stop = stop;
        *p->view.stop = 0;
    }
    st = cuda_leave(m->ctx, st);
done:
    return st;
}

/* ------------------------------------------------------------- the view */

/* Sets what the view needs of the own board and of the matrix. */
static void describe_own(const spmv_group_matrix *m, struct peer *p, const struct layout *l)
{
    const int rank = m->group->transport.rank;
    struct exchange_view *v = &p->view;
    char *const board = p->board->memory;
    v->rank = rank;
    v->ranks = m->group->transport.ranks;
    v->counters = (struct exchange_counters *)board;
    v->put = (struct exchange_flag *)(board + l->put);
    for (int k = 0; k < 2; k++) {
        v->parts[k] = (const uint64_t *)(board + l->parts[k]);
        v->arrived[k] = board + l->arrived[k];
    }
    v->sent = m->halo.context_index;
    v->sent_count = m->halo.count;
    v->target_count = m->halo.sends;
    v->source_count = m->halo.receives;
    v->before = m->halo.before;
    v->after = m->halo.after;
    v->own = m->col_of_rank[rank + 1] - m->col_of_rank[rank];
    v->chunk = m->context_chunk;
    v->chunks = m->ranks.chunks;
    v->first_chunk = m->chunk_of_rank[rank];
    v->all_chunks = m->all_chunks;
}

/* The tables of the view in host memory. places: element number of what rank i sends to rank j in
 * j's list of arrivals is places[j * ranks + i]. */
static void fill_tables(const spmv_group_matrix *m, const struct layout *l, const struct told *told,
                        const int64_t *places, struct exchange_board *boards, struct exchange_target *targets,
                        int32_t *sources)
{
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    int64_t first = 0;
    for (int r = 0; r < ranks; r++)
        boards[r] = (struct exchange_board){
            .put = (struct exchange_flag *)(told[r].board + l->put),
            .parts = {(uint64_t *)(told[r].board + l->parts[0]), (uint64_t *)(told[r].board + l->parts[1])}};
    for (int t = 0; t < m->halo.sends; t++) {
        const int to = m->halo.send[t].rank;
        const int64_t at = places[(int64_t)to * ranks + rank] * size;
        targets[t] = (struct exchange_target){
            .first = first,
            .to = {told[to].board + told[to].arrived[0] + at, told[to].board + told[to].arrived[1] + at},
            .flag = boards[to].put + rank};
        first += m->halo.send[t].bytes / size;
    }
    for (int s = 0; s < m->halo.receives; s++)
        sources[s] = m->halo.receive[s].rank;
}

/* Where the elements of each rank arrive in this rank's list. */
static void find_places(const spmv_group_matrix *m, int64_t *places)
{
    const int rank = m->group->transport.rank;
    const int64_t own = m->col_of_rank[rank + 1] - m->col_of_rank[rank];
    for (int r = 0; r < m->group->transport.ranks; r++)
        places[r] = 0;
    for (int s = 0; s < m->halo.receives; s++) {
        const int from = m->halo.receive[s].rank;
        places[from] = m->halo.receive_at[s] + m->halo.before - (from > rank ? own : 0);
    }
}

/* Together: makes the tables. */
static spmv_status make_tables(spmv_group_matrix *m, struct peer *p, const struct layout *l)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    struct told own = {.arrived = {l->arrived[0], l->arrived[1]}};
    const int64_t boards_bytes = padded(ranks * (int64_t)sizeof(struct exchange_board));
    const int64_t targets_bytes = padded(m->halo.sends * (int64_t)sizeof(struct exchange_target));
    const int64_t bytes = boards_bytes + targets_bytes + padded(m->halo.receives * (int64_t)sizeof(int32_t));
    struct told *told = NULL;
    int64_t *places = NULL;
    char *tables = NULL;
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *told, what, (void **)&told));
    TRY(host_alloc(m->ctx, (ranks + 1) * ranks * (int64_t)sizeof *places, what, (void **)&places));
    find_places(m, places + (int64_t)ranks * ranks);
    TRY(spmv_group_agree(m->group, board_tell(m->group, p->board, &own.name)));
    TRY(group_gather_equal(m->group, &own, told, sizeof own));
    TRY(group_gather_equal(m->group, places + (int64_t)ranks * ranks, places, ranks * (int64_t)sizeof *places));
    for (int r = 0; r < ranks && st == SPMV_OK; r++)
        st = board_find(m->group, r, &told[r].name, &told[r].board);
    if (st == SPMV_OK)
        st = host_alloc(m->ctx, bytes, what, (void **)&tables);
    if (st == SPMV_OK) {
        memset(tables, 0, (size_t)bytes);
        fill_tables(m, l, told, places, (struct exchange_board *)tables,
                    (struct exchange_target *)(tables + boards_bytes),
                    (int32_t *)(tables + boards_bytes + targets_bytes));
        st = context_alloc(m->ctx, bytes, &p->tables);
    }
    if (st == SPMV_OK)
        st = spmv_upload(m->ctx, tables, p->tables, bytes);
    if (st == SPMV_OK) {
        p->view.boards = p->tables;
        p->view.targets = (struct exchange_target *)((char *)p->tables + boards_bytes);
        p->view.sources = (int32_t *)((char *)p->tables + boards_bytes + targets_bytes);
    }
    TRY(spmv_group_agree(m->group, st));
done:
    host_free_all(told, places, tables);
    return st;
}

/* ------------------------------------------------------------- elements of chunks */

/* The ranges of the elements that are sent, target by target; ranges: room for sends * chunks, or
 * NULL: only counts. count[c]: the ranges of chunk c. Returns the number of all. */
static int64_t find_ranges(const spmv_group_matrix *m, int32_t *count, struct exchange_range *ranges, int32_t *chunk_of)
{
    const int64_t size = (int64_t)spmv_type_size(m->type);
    int64_t i = 0, all = 0;
    for (int t = 0; t < m->halo.sends; t++) {
        const int64_t end = i + m->halo.send[t].bytes / size;
        for (int64_t c = 0, begin; i < end; all++) {
            while (m->chunk[c + 1] <= m->halo.index[i])
                c++;
            for (begin = i; i < end && m->halo.index[i] < m->chunk[c + 1]; i++)
                continue;
            count[c]++;
            if (ranges != NULL) {
                ranges[all] = (struct exchange_range){.first = begin, .count = i - begin, .target = t};
                chunk_of[all] = (int32_t)c;
            }
        }
    }
    return all;
}

/* Sorts the ranges by chunk. order: the chunks that have some first; returns their number. first:
 * the first range of each chunk. */
static int sort_ranges(int64_t chunks, const int32_t *count, int64_t all, const struct exchange_range *ranges,
                       const int32_t *chunk_of, int32_t *order, int32_t *first, int32_t *range_of,
                       struct exchange_range *sorted)
{
    int sending = 0;
    int32_t at = 0;
    for (int64_t c = 0; c < chunks; c++)
        if (count[c] > 0) {
            order[sending] = (int32_t)c;
            range_of[sending++] = first[c] = at;
            at += count[c];
        }
    range_of[sending] = at;
    for (int64_t c = 0, k = sending; c < chunks; c++)
        if (count[c] == 0)
            order[k++] = (int32_t)c;
    for (int64_t r = 0; r < all; r++)
        sorted[first[chunk_of[r]]++] = ranges[r];
    return sending;
}

/* Makes order, sending, range_of and ranges of the view. */
static spmv_status make_sends(spmv_group_matrix *m, struct peer *p)
{
    spmv_status st = SPMV_OK;
    const int64_t chunks = m->ranks.chunks, numbers = padded((chunks + 1) * (int64_t)sizeof(int32_t));
    int32_t *count = NULL, *chunk_of = NULL;
    struct exchange_range *ranges = NULL;
    char *tables = NULL;
    TRY(host_alloc(m->ctx, 2 * numbers, what, (void **)&count));
    memset(count, 0, 2 * (size_t)numbers);
    const int64_t all = find_ranges(m, count, NULL, NULL), bytes = 2 * numbers + (all + 1) * (int64_t)sizeof *ranges;
    TRY(host_alloc(m->ctx, (all + 1) * (int64_t)sizeof *ranges, what, (void **)&ranges));
    TRY(host_alloc(m->ctx, (all + 1) * (int64_t)sizeof *chunk_of, what, (void **)&chunk_of));
    TRY(host_alloc(m->ctx, bytes, what, (void **)&tables));
    memset(tables, 0, (size_t)bytes);
    memset(count, 0, (size_t)numbers);
    (void)find_ranges(m, count, ranges, chunk_of);
    p->view.sending =
        sort_ranges(chunks, count, all, ranges, chunk_of, (int32_t *)tables, count + numbers / (int64_t)sizeof *count,
                    (int32_t *)(tables + numbers), (struct exchange_range *)(tables + 2 * numbers));
    TRY(context_alloc(m->ctx, bytes, &p->sends));
    TRY(spmv_upload(m->ctx, tables, p->sends, bytes));
    p->view.order = p->sends;
    p->view.range_of = (const int32_t *)((char *)p->sends + numbers);
    p->view.ranges = (const struct exchange_range *)((char *)p->sends + 2 * numbers);
done:
    host_free_all(count, ranges, chunk_of, tables);
    return st;
}

/* ------------------------------------------------------------- the kind */

/* Whether kernels of a solve can exchange by themselves. Ranks without a chunk publish no parts, so others
 * would not know when these have collected a sum. */
static bool has_view(const spmv_group_matrix *m)
{
    return m->ranks.rows == m->cols && m->all_chunks >= m->group->transport.ranks;
}

static spmv_status open_peer(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct peer *p = NULL;
    const struct layout l = layout_of(m);
    st = host_alloc(m->ctx, sizeof *p, what, (void **)&p);
    if (st == SPMV_OK) {
        *p = (struct peer){.board = NULL};
        m->exchange.state = p;
    }
    TRY(spmv_group_agree(m->group, st));
    TRY(find_access(m, p));
    TRY(find_waits(m, p));
    TRY(spmv_group_agree(m->group, prepare_board(m, p, &l)));
    describe_own(m, p, &l);
    TRY(make_tables(m, p, &l));
    if (has_view(m) && m->first == NULL)
        TRY(spmv_group_agree(m->group, make_sends(m, p)));
    m->group->near_possible = true;
done:
    return st;
}

static void close_peer(spmv_group_matrix *m)
{
    struct peer *p = m->exchange.state;
    if (p == NULL)
        return;
    if (spmv_synchronize(m->ctx) != SPMV_OK)
        cudaGetLastError();
    board_give(p->board);
    if (m->first == NULL && p->view.stop != NULL && cudaFreeHost(p->view.stop) != cudaSuccess)
        cudaGetLastError();
    group_free_queued(m->ctx, p->tables, p->sends);
    host_free(p);
}

static struct peer *peer_of(const spmv_group_matrix *m)
{
    return m->exchange.state;
}

/* The failure of a kernel that has waited too long. */
static spmv_status check_lost(const spmv_group_matrix *m)
{
    return *peer_of(m)->view.stop != EXCHANGE_LOST
               ? SPMV_OK
               : context_fail(m->ctx, SPMV_ERROR_DEVICE,
                              "rank %d has waited %d s for another rank on the GPU: that rank does not progress",
                              m->group->transport.rank, EXCHANGE_MOST_SECONDS);
}

static spmv_status put(spmv_group_matrix *m, const void *x)
{
    const struct exchange_view *v = &peer_of(m)->view;
    return v->target_count > 0 ? exchange_put_cuda(m->ctx, m->type, v, x) : SPMV_OK;
}

/* Together, also for ranks to which nothing arrives: all count alike. */
static spmv_status take_from(spmv_group_matrix *m, bool finishes, void *x)
{
    const struct exchange_view *v = &peer_of(m)->view;
    const spmv_status st = check_lost(m);
    return st == SPMV_OK ? exchange_take_cuda(m->ctx, m->type, v, finishes, x) : st;
}

static spmv_status take(spmv_group_matrix *m, void *x)
{
    return take_from(m, true, x);
}

static spmv_status take_sent(spmv_group_matrix *m, void *x)
{
    return take_from(m, false, x);
}

static const struct exchange_view *view_of(const spmv_group_matrix *m)
{
    return has_view(m) && m->first == NULL ? &peer_of(m)->view : NULL;
}

static spmv_status sum(spmv_group_matrix *m, spmv_type type, const struct exchange_parts *parts, void *sums, int phases)
{
    const spmv_status st = check_lost(m);
    return st != SPMV_OK ? st : exchange_sum_cuda(m->ctx, type, &peer_of(m)->view, parts, sums, phases);
}

static void abandon(spmv_group_matrix *m)
{
    *(volatile int *)peer_of(m)->view.stop = EXCHANGE_STOPPED;
}

const struct exchange_kind exchange_peer = {.name = "peer",
                                            .open = open_peer,
                                            .close = close_peer,
                                            .put = put,
                                            .take = take,
                                            .view = view_of,
                                            .take_sent = take_sent,
                                            .sum = sum,
                                            .abandon = abandon};
