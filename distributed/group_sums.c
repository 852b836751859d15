/* Sums over the rows of all ranks: one part for each chunk, added in a tree of which only the number of chunks
 * decides, so no order depends on the ranks.
 *
 * Node j of level l is the sum of the chunks j 2^l to (j + 1) 2^l - 1, as far as there are any. Of neighbouring
 * chunks a rank has all nodes that need no others; the largest ones, at most two a level, are the edges. Ranks
 * exchange edges and add what needs those of several. Where they have common memory, each reads those of all others.
 * Else each knows its own chunks at first, and when it knows those of m ranks from itself on (behind the last rank
 * follows the first), it gets the edges of the next m from rank + m. So all have the root after log2 of the number of
 * ranks such hops, as in the allgather of J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient
 * algorithms for all-to-all communications in multiport message-passing systems", IEEE TPDS 8(11), 1997. The last hop
 * may bring nodes that a rank has already: they have the same bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/loops/ops.h"
#include "core/threads.h"
#include "distributed/group_internal.h"

static int64_t size_of(spmv_type type)
{
    return (int64_t)spmv_type_size(type);
}

/* ------------------------------------------------------------- the tree */

/* Chunks of neighbouring ranks. Behind the last chunk follows the first, so end may exceed the number of all. */
struct span {
    int64_t begin, end;
};

/* Those of so many ranks from `rank` on, behind the last of which follows the first. */
static struct span span_of(const spmv_group_matrix *m, int rank, int count)
{
    const int ranks = m->group->transport.ranks, end = rank + count;
    const struct span s = {m->chunk_of_rank[rank],
                           end <= ranks ? m->chunk_of_rank[end] : m->all_chunks + m->chunk_of_rank[end - ranks]};
    return s.end - s.begin < m->all_chunks ? s : (struct span){0, m->all_chunks};
}

static int64_t nodes_of(const struct sum_tree *t, int level)
{
    return t->first[level + 1] - t->first[level];
}

/* Whether the node's chunks are in the span. */
static bool is_in(const struct sum_tree *t, struct span s, int level, int64_t node)
{
    const int64_t all = nodes_of(t, 0), begin = node << level, end = min_i64((node + 1) << level, all);
    return (s.begin <= begin && end <= s.end) || end + all <= s.end;
}

/* The nodes of the level above that need no others than nodes begin to end - 1 of `level`. */
static struct span above(const struct sum_tree *t, int level, struct span s)
{
    return (struct span){(s.begin + 1) / 2, s.end == nodes_of(t, level) ? (s.end + 1) / 2 : s.end / 2};
}

/* The edges of chunks begin to end - 1: adds their places in the tree to the list. Returns how many. */
static int list_edges(const struct sum_tree *t, struct span s, int64_t *list)
{
    int count = 0;
    for (int level = 0; s.begin < s.end; s = above(t, level++, s)) {
        const bool top = level == t->levels - 1;
        if (s.begin % 2 != 0 || top)
            list[count++] = t->first[level] + s.begin;
        if (s.end % 2 != 0 && s.end < nodes_of(t, level))
            list[count++] = t->first[level] + s.end - 1;
        if (top)
            break;
    }
    return count;
}

/* Those of a span, which has up to two ranges of chunks. */
static int list_all_edges(const struct sum_tree *t, struct span s, int64_t *list)
{
    const int64_t all = nodes_of(t, 0);
    const int count = list_edges(t, (struct span){s.begin, min_i64(s.end, all)}, list);
    return s.end <= all ? count : count + list_edges(t, (struct span){0, s.end - all}, list + count);
}

static const char *const memory = "sums of a group";

/* Memory for the tree of so many sums, of f64. */
static spmv_status make_tree(spmv_context *ctx, int count, struct sum_tree *t)
{
    spmv_status st = SPMV_OK;
    const int64_t edges = count * (int64_t)SUM_TREE_EDGES * 8, chunks = count * nodes_of(t, 0) * 8;
    TRY(host_alloc(ctx, max_i64(1, count * t->first[t->levels] * 8), memory, &t->nodes));
    TRY(host_alloc(ctx, edges, memory, &t->sent));
    TRY(host_alloc(ctx, max_i64(edges, chunks), memory, &t->received)); /* all ranks have no more edges than chunks */
done:
    return st;
}

void group_sums_release(spmv_group_matrix *m)
{
    host_free_all(m->parts, m->tree.nodes, m->tree.sent, m->tree.received);
}

spmv_status group_sums_prepare(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct sum_tree *const t = &m->tree;
    m->most_sums = PLAN_SUMS;
    for (int64_t nodes = m->all_chunks; t->levels == 0 || nodes > 0; nodes = nodes > 1 ? (nodes + 1) / 2 : 0) {
        t->first[t->levels + 1] = t->first[t->levels] + nodes;
        t->levels++;
    }
    TRY(host_alloc(m->ctx, PLAN_SUMS * m->ranks.chunks * 8, "a matrix of a group", &m->parts));
    TRY(make_tree(m->ctx, PLAN_SUMS, t));
    TRY(host_alloc(m->ctx, m->group->transport.ranks, "a matrix of a group", (void **)&m->met));
    if (context_on_device(m->ctx) && m->first == NULL) { /* at least one chunk, so that kernels have a block */
        const int64_t last = m->ranks.chunks;
        TRY(context_alloc(m->ctx, EXCHANGE_SUMS * max_i64(1, last) * 8, &m->context_parts));
        TRY(context_alloc(m->ctx, (last + 2) * 8, (void **)&m->context_chunk));
        TRY(spmv_upload(m->ctx, m->chunk, m->context_chunk, (last + 1) * 8));
        TRY(spmv_upload(m->ctx, &m->chunk[last], m->context_chunk + last + 1, 8));
        m->ranks.context_chunk = m->context_chunk;
    }
done:
    return st;
}

/* Room for so many sums. */
static spmv_status need_room(spmv_group_matrix *m, int count)
{
    if (count <= m->most_sums)
        return SPMV_OK;
    struct sum_tree made = m->tree;
    spmv_status st = SPMV_OK;
    made.nodes = made.sent = made.received = NULL;
    TRY(make_tree(m->ctx, count, &made));
    host_free_all(m->tree.nodes, m->tree.sent, m->tree.received);
    m->tree = made;
    m->most_sums = count;
    made = (struct sum_tree){0};
done:
    host_free_all(made.nodes, made.sent, made.received);
    return st;
}

/* ------------------------------------------------------------- sums */

/* The nodes of each sum are behind those of the sum before. */
static char *nodes_of_sum(const struct sum_tree *t, int64_t size, int sum)
{
    return (char *)t->nodes + sum * t->first[t->levels] * size;
}

/* Copies the edges of a span, or what another rank has sent of them, out of the tree or into it. Returns the bytes. */
static int64_t copy_edges(const struct sum_tree *t, struct span s, int64_t size, int count, bool out, char *message)
{
    int64_t list[SUM_TREE_EDGES], at = 0;
    const int edges = list_all_edges(t, s, list);
    for (int v = 0; v < count; v++)
        for (int i = 0; i < edges; i++, at += size) {
            char *const node = nodes_of_sum(t, size, v) + list[i] * size;
            memcpy(out ? message + at : node, out ? node : message + at, (size_t)size);
        }
    return at;
}

/* What was known, what has come, and both together; where ranks begin, between whose chunks nodes are added. */
struct join {
    struct span mine, theirs, all;
    const int64_t *seam;
    int seams;
};

/* Also the parts of a'b: in long double on ref, else in eight sums for each chunk. */
#define TEMPLATE "distributed/group_sums_typed.h"
#include "core/each/each_real.h"

static void join_all(const struct sum_tree *t, const struct join *both, spmv_type type, int count)
{
    static void (*const join[SPMV_TYPE_LIMIT])(const struct sum_tree *, const struct join *, void *) = REAL_TABLE(join);
    for (int v = 0; v < count; v++)
        join[type](t, both, nodes_of_sum(t, size_of(type), v));
}

/* Together: a rank that knows its span of `known` ranks gets that of as many behind them. */
static spmv_status hop(spmv_group_matrix *m, spmv_type type, int count, int known)
{
    spmv_status st = SPMV_OK;
    const struct sum_tree *const t = &m->tree;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank, from = (rank + known) % ranks;
    const struct span mine = span_of(m, rank, known), theirs = span_of(m, from, known);
    const int64_t size = size_of(type), seam[] = {mine.begin, theirs.begin};
    int64_t list[SUM_TREE_EDGES];
    const struct transport_parcel send = {(rank + ranks - known) % ranks, t->sent,
                                          copy_edges(t, mine, size, count, true, t->sent)};
    const struct transport_parcel receive = {from, t->received, list_all_edges(t, theirs, list) * size * count};
    TRY(group_start(m->group, &send, send.bytes > 0, &receive, receive.bytes > 0));
    TRY(group_finish(m->group));
    (void)copy_edges(t, theirs, size, count, false, t->received);
    join_all(t, &(struct join){mine, theirs, span_of(m, rank, known <= ranks / 2 ? 2 * known : ranks), seam, 2}, type,
             count);
done:
    return st;
}

/* Together: each rank gets the edges of all others at once. */
static spmv_status gather_edges(spmv_group_matrix *m, spmv_type type, int count)
{
    spmv_status st = SPMV_OK;
    const struct sum_tree *const t = &m->tree;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    int64_t list[SUM_TREE_EDGES], *const offset = m->group->offset;
    offset[0] = 0;
    for (int r = 0; r < ranks; r++)
        offset[r + 1] = offset[r] + list_all_edges(t, span_of(m, r, 1), list) * size_of(type) * count;
    (void)copy_edges(t, span_of(m, rank, 1), size_of(type), count, true, t->sent);
    TRY(group_gather(m->group, t->sent, t->received, offset));
    for (int r = 0; r < ranks; r++)
        (void)copy_edges(t, span_of(m, r, 1), size_of(type), count, false, (char *)t->received + offset[r]);
    join_all(t, &(struct join){.all = {0, m->all_chunks}, .seam = m->chunk_of_rank, .seams = ranks}, type, count);
done:
    return st;
}

spmv_status group_sum(void *matrix, spmv_type type, const void *parts, int64_t stride, int count, void *sums)
{
    static void (*const fold[SPMV_TYPE_LIMIT])(const struct sum_tree *, struct span, void *) = REAL_TABLE(fold);
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    const struct sum_tree *const t = &m->tree;
    const int ranks = m->group->transport.ranks;
    const int64_t size = size_of(type), chunks = m->ranks.chunks;
    const struct span own = span_of(m, m->group->transport.rank, 1);
    const double begin = monotonic_seconds();
    TRY(need_room(m, count));
    for (int v = 0; v < count && chunks > 0; v++) {
        memcpy(nodes_of_sum(t, size, v) + own.begin * size, (const char *)parts + v * stride * size,
               (size_t)(chunks * size));
        fold[type](t, own, nodes_of_sum(t, size, v));
    }
    if (m->group->transport.common && ranks > 1)
        TRY(gather_edges(m, type, count));
    for (int known = 1; known < ranks && !m->group->transport.common; known *= 2)
        TRY(hop(m, type, count, known));
    for (int v = 0; v < count; v++)
        if (m->all_chunks > 0)
            memcpy((char *)sums + v * size, nodes_of_sum(t, size, v) + t->first[t->levels - 1] * size, (size_t)size);
        else
            memset((char *)sums + v * size, 0, (size_t)size);
done:
    m->seconds += monotonic_seconds() - begin;
    return st;
}

/* *dot = a'b without copies to the host. */
static spmv_status dot_on_device(spmv_group_matrix *m, spmv_type type, int of, const void *a, const void *b, void *dot)
{
    spmv_status st = SPMV_OK;
    if (m->ranks.chunks > 0)
        TRY(group_chunk_dots_cuda(m->ctx, type, m->context_chunk, m->ranks.chunks, of, a, b, m->context_parts));
    TRY(exchange_sum(m, type, m->context_parts, 1, 0, dot));
done:
    return st;
}

/* The parts of a'b of this rank's chunks, to m->parts. of: numbers in each element. */
static spmv_status chunk_dots(const spmv_group_matrix *m, spmv_type type, int of, const void *a, const void *b)
{
    static void (*const run[SPMV_TYPE_LIMIT])(const spmv_group_matrix *, int, const void *, const void *, void *) =
        REAL_TABLE(chunk_dots);
    if (context_on_device(m->ctx)) {
        spmv_status st = SPMV_OK;
        if (m->ranks.chunks == 0)
            return SPMV_OK;
        TRY(group_chunk_dots_cuda(m->ctx, type, m->context_chunk, m->ranks.chunks, of, a, b, m->context_parts));
        TRY(spmv_download(m->ctx, m->context_parts, m->parts, m->ranks.chunks * size_of(type)));
    done:
        return st;
    }
    run[type](m, of, a, b, m->parts);
    return SPMV_OK;
}

spmv_status group_dot_in_context(void *matrix, spmv_type elements, const void *a, const void *b, void *dot)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    const spmv_type type = type_part(elements);
    const int of = type_parts(elements);
    union real sum;
    if (m->exchange.kind != NULL)
        return dot_on_device(m, type, of, a, b, dot);
    TRY(chunk_dots(m, type, of, a, b));
    TRY(group_sum(m, type, m->parts, m->ranks.chunks, 1, &sum));
    TRY(spmv_upload(m->ctx, &sum, dot, size_of(type)));
done:
    return st;
}

spmv_status group_largest(void *matrix, double *value)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    double *all = NULL;
    const int ranks = m->group->transport.ranks;
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *all, "a group", (void **)&all));
    TRY(group_gather_equal(m->group, value, all, sizeof *value));
    for (int r = 0; r < ranks; r++)
        *value = r == 0 || isnan(all[r]) || all[r] > *value ? all[r] : *value;
done:
    host_free(all);
    return st;
}
