/* Sums over the rows of all ranks: one part for each chunk, all parts to all ranks, and the same
 * fold on each rank. No rank adds numbers of another one in an order that depends on the ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/loops/ops.h"
#include "core/threads.h"
#include "distributed/group_internal.h"

/* The parts of a'b: in long double on ref, else in eight sums for each chunk. */
#define TEMPLATE "distributed/group_sums_typed.h"
#include "core/each/each_real.h"

static int64_t size_of(spmv_type type)
{
    return (int64_t)spmv_type_size(type);
}

spmv_status group_sums_prepare(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    const int ranks = m->group->transport.ranks;
    const int64_t own = PLAN_SUMS * m->ranks.chunks * 8, all = PLAN_SUMS * m->all_chunks * 8;
    m->most_sums = PLAN_SUMS;
    TRY(host_alloc(m->ctx, own, "a matrix of a group", &m->parts));
    TRY(host_alloc(m->ctx, all, "a matrix of a group", &m->all_parts));
    TRY(host_alloc(m->ctx, m->all_chunks * 8, "a matrix of a group", &m->fold));
    TRY(host_alloc(m->ctx, ranks, "a matrix of a group", (void **)&m->met));
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

/* Room for the parts of so many sums, of f64. */
static spmv_status need_room(spmv_group_matrix *m, int count)
{
    if (count <= m->most_sums)
        return SPMV_OK;
    void *parts = NULL, *all = NULL;
    spmv_status st = SPMV_OK;
    TRY(host_alloc(m->ctx, count * m->ranks.chunks * 8, "sums of a group", &parts));
    TRY(host_alloc(m->ctx, count * m->all_chunks * 8, "sums of a group", &all));
    host_free_all(m->parts, m->all_parts);
    m->parts = parts;
    m->all_parts = all;
    m->most_sums = count;
    parts = NULL;
done:
    host_free(parts);
    return st;
}

spmv_status group_sum(void *matrix, spmv_type type, const void *parts, int64_t stride, int count, void *sums)
{
    static void (*const fold[SPMV_TYPE_LIMIT])(void *, int64_t, void *) = REAL_TABLE(fold);
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    const int ranks = m->group->transport.ranks;
    const int64_t size = size_of(type), chunks = m->ranks.chunks;
    const double begin = monotonic_seconds();
    TRY(need_room(m, count));
    for (int v = 0; v < count && stride != chunks && chunks > 0; v++)
        memcpy((char *)m->parts + v * chunks * size, (const char *)parts + v * stride * size, (size_t)(chunks * size));
    for (int r = 0; r <= ranks; r++)
        m->group->offset[r] = m->chunk_of_rank[r] * count * size;
    TRY(group_gather(m->group, stride != chunks ? m->parts : parts, m->all_parts, m->group->offset));
    for (int v = 0; v < count; v++) {
        for (int r = 0; r < ranks; r++) {
            const int64_t first = m->chunk_of_rank[r], its = m->chunk_of_rank[r + 1] - first;
            if (its > 0)
                memcpy((char *)m->fold + first * size, (char *)m->all_parts + (first * count + v * its) * size,
                       (size_t)(its * size));
        }
        fold[type](m->fold, m->all_chunks, (char *)sums + v * size);
    }
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
