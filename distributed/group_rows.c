/* The rows of a rank in its GPU's memory. They go there straight from the memory of the caller, so the
 * host has no second copy; the needed columns, their new numbers, and the blocks of preconditioners are
 * found there. What reads rows on the host asks for a copy (group_rows_to_host).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"

static const char *const what = "the rows of a rank";

static int64_t value_bytes(const spmv_csr *a)
{
    return (int64_t)spmv_type_size(a->type);
}

spmv_status group_rows_allocate(spmv_group_matrix *m, int64_t rows, int64_t nnz, spmv_type type, bool pattern)
{
    spmv_status st = SPMV_OK;
    struct group_arrays *a = &m->arrays;
    const int bits = nnz <= INT32_MAX ? 32 : 64;
    TRY(context_alloc(m->ctx, (rows + 1) * (bits / 8), &a->row_ptr));
    TRY(context_alloc(m->ctx, max_i64(1, nnz) * (int64_t)sizeof *a->col, (void **)&a->col));
    if (!pattern)
        TRY(context_alloc(m->ctx, max_i64(1, nnz) * (int64_t)spmv_type_size(type), &a->val));
    m->there = csr_of(rows, m->cols, nnz, a->row_ptr, a->col, a->val, type, SPMV_MEMORY_CONTEXT);
    m->there.row_ptr_bits = bits;
done:
    return st;
}

spmv_status group_rows_put_offsets(spmv_group_matrix *m, const void *from, int from_bits, int64_t shift, int64_t first,
                                   int64_t n)
{
    spmv_status st = SPMV_OK;
    void *there = NULL;
    const int bits = m->there.row_ptr_bits;
    char *const to = (char *)m->arrays.row_ptr + first * (bits / 8);
    if (n == 0)
        return SPMV_OK;
    if (shift == 0 && from_bits == bits)
        return spmv_upload(m->ctx, from, to, n * (bits / 8));
    TRY(context_alloc(m->ctx, n * (from_bits / 8), &there));
    TRY(spmv_upload(m->ctx, from, there, n * (from_bits / 8)));
    TRY(group_shift_offsets_cuda(m->ctx, there, from_bits, shift, to, bits, n));
done:
    context_free(m->ctx, there);
    return st;
}

/* ------------------------------------------------------------- ghosts */

/* Entries in spans, which blocks of a GPU read: a level has only one chunk. Each has `of_chunk` spans of nearly the
 * same length. */
static spmv_status cut_spans(const spmv_group_matrix *m, int64_t *of_chunk, int64_t **bound, struct group_spans *p)
{
    enum { SPANS = 1 << 12, ENTRIES = 1 << 10 }; /* blocks that a GPU runs at once; entries of which each has some */
    spmv_status st = SPMV_OK;
    const int64_t chunks = m->ranks.chunks;
    *of_chunk = ceil_divide(min_i64(SPANS, ceil_divide(m->there.nnz, ENTRIES)), max_i64(1, chunks));
    *p = (struct group_spans){.count = chunks * *of_chunk, .entries = m->there.nnz};
    if (chunks == 1)
        return SPMV_OK;
    TRY(host_alloc(m->ctx, (p->count + 1) * (int64_t)sizeof **bound, what, (void **)bound));
    for (int64_t c = 0; c < chunks; c++)
        for (int64_t i = 0; i < *of_chunk; i++)
            (*bound)[c * *of_chunk + i] = group_span_begin(m->chunk_entry[c], m->chunk_entry[c + 1], *of_chunk, i);
    (*bound)[p->count] = m->chunk_entry[chunks];
    TRY(context_alloc(m->ctx, (p->count + 1) * (int64_t)sizeof *p->bound, (void **)&p->bound));
    TRY(spmv_upload(m->ctx, *bound, p->bound, (p->count + 1) * (int64_t)sizeof *p->bound));
done:
    return st;
}

/* *list: count columns of others, which repeat, sorted. begins: where those of the spans begin. */
static spmv_status list_sorted(spmv_group_matrix *m, struct group_columns own, const struct group_spans *p,
                               const int64_t *begins, int32_t *list, int64_t count)
{
    spmv_status st = SPMV_OK;
    int bits = 1;
    while (bits < 31 && m->cols >> bits > 0)
        bits++;
    TRY(group_list_ghosts_cuda(m->ctx, m->arrays.col, p, own, begins, list));
    TRY(spmv_sort_by_key(m->ctx, SPMV_I32, 0, bits, list, NULL, 0, list, NULL, count));
done:
    return st;
}

/* *all: the columns of others, with repeats. Sets m->edge. begins: see above, in the context's memory; host: room for
 * it. */
static spmv_status read_begins(spmv_group_matrix *m, const struct group_spans *p, int64_t of_chunk,
                               const int64_t *begins, int64_t *host, int64_t *all)
{
    spmv_status st = SPMV_OK;
    if (host == NULL) {
        TRY(spmv_download(m->ctx, begins + p->count, all, (int64_t)sizeof *all));
        m->edge[0] = *all > 0;
        return SPMV_OK;
    }
    TRY(spmv_download(m->ctx, begins, host, (p->count + 1) * (int64_t)sizeof *host));
    for (int64_t c = 0; c < m->ranks.chunks; c++)
        m->edge[c] = host[(c + 1) * of_chunk] > host[c * of_chunk];
    *all = host[p->count];
done:
    return st;
}

/* Drops repeats of `repeated` sorted columns: *ghosts in host memory, m->context_ghosts in that of the
 * context. */
static spmv_status take_distinct(spmv_group_matrix *m, const int32_t *sorted, int64_t repeated, int32_t **ghosts,
                                 int64_t *count)
{
    spmv_status st = SPMV_OK;
    uint8_t *flags = NULL;
    int32_t *distinct = NULL;
    int64_t *number = NULL;
    TRY(context_alloc(m->ctx, repeated, (void **)&flags));
    TRY(context_alloc(m->ctx, repeated * (int64_t)sizeof *distinct, (void **)&distinct));
    TRY(context_alloc(m->ctx, (int64_t)sizeof *number, (void **)&number));
    TRY(group_flag_first_cuda(m->ctx, sorted, flags, repeated));
    TRY(spmv_compact(m->ctx, SPMV_I32, sorted, flags, distinct, number, repeated));
    TRY(spmv_download(m->ctx, number, count, sizeof *count));
    TRY(host_alloc(m->ctx, *count * (int64_t)sizeof **ghosts, what, (void **)ghosts));
    TRY(spmv_download(m->ctx, distinct, *ghosts, *count * (int64_t)sizeof **ghosts));
    TRY(context_alloc(m->ctx, *count * (int64_t)sizeof **ghosts, (void **)&m->context_ghosts));
    TRY(spmv_map(m->ctx, SPMV_MAP_COPY, SPMV_I32, distinct, m->context_ghosts, *count));
done:
    group_free_queued(m->ctx, flags, distinct, number);
    return st;
}

spmv_status group_rows_ghosts(spmv_group_matrix *m, struct group_columns own, int32_t **ghosts, int64_t *count)
{
    spmv_status st = SPMV_OK;
    struct group_spans p = {.bound = NULL};
    int64_t of_chunk = 0, *host = NULL, *begins = NULL, all = 0;
    int32_t *list = NULL;
    *count = 0;
    for (int64_t c = 0; c < m->ranks.chunks; c++)
        m->edge[c] = false;
    if (m->there.nnz == 0 || (own.begin == 0 && own.end == m->cols))
        return SPMV_OK;
    TRY(cut_spans(m, &of_chunk, &host, &p));
    TRY(context_alloc(m->ctx, (p.count + 1) * (int64_t)sizeof *begins, (void **)&begins));
    TRY(group_count_ghosts_cuda(m->ctx, m->arrays.col, &p, own, begins));
    TRY(spmv_expand_offsets(m->ctx, begins, 64, begins, p.count));
    TRY(read_begins(m, &p, of_chunk, begins, host, &all));
    if (all > 0) {
        TRY(context_alloc(m->ctx, all * (int64_t)sizeof *list, (void **)&list));
        TRY(list_sorted(m, own, &p, begins, list, all));
        TRY(take_distinct(m, list, all, ghosts, count));
    }
done:
    host_free(host);
    group_free_queued(m->ctx, p.bound, begins, list);
    return st;
}

spmv_status group_rows_renumber(spmv_group_matrix *m, struct group_columns own)
{
    const struct halo *h = &m->halo;
    spmv_status st = SPMV_OK;
    if (m->there.nnz > 0 && (own.begin != 0 || h->room > 0 || h->after > 0))
        st = group_renumber_cuda(m->ctx, m->arrays.col, m->there.nnz, own, m->context_ghosts, h->before,
                                 h->before + h->after, h->room);
    return st;
}

/* ------------------------------------------------------------- copies */

spmv_status group_rows_to_host(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &m->there;
    spmv_csr host;
    struct csr_copies copies = {0};
    if (m->row_ptr != NULL || m->arrays.row_ptr == NULL)
        return SPMV_OK;
    TRY(csr_to_host(m->ctx, a, true, &host, &copies));
    if (a->row_ptr_bits == 64) {
        m->row_ptr = copies.row_ptr;
        copies.row_ptr = NULL;
    } else {
        TRY(host_alloc(m->ctx, (a->rows + 1) * (int64_t)sizeof *m->row_ptr, what, (void **)&m->row_ptr));
        for (int64_t i = 0; i <= a->rows; i++)
            m->row_ptr[i] = offset_at(host.row_ptr, host.row_ptr_bits, i);
    }
    m->col = copies.col;
    m->val = copies.val;
    copies.col = NULL;
    copies.val = NULL;
    m->own = csr_of(a->rows, m->own.cols, a->nnz, m->row_ptr, m->col, m->val, a->type, SPMV_MEMORY_HOST);
done:
    csr_free_host(&copies);
    return st;
}

void group_rows_leave_host(spmv_group_matrix *m)
{
    host_free_all(m->row_ptr, m->col, m->val);
    m->row_ptr = NULL;
    m->col = NULL;
    m->val = NULL;
    m->own.row_ptr = m->own.val = NULL;
    m->own.col = NULL;
}

spmv_status group_rows_to_context(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    const int64_t rows = m->own.rows, nnz = m->own.nnz;
    TRY(group_rows_allocate(m, rows, nnz, m->own.type, m->pattern));
    TRY(group_rows_put_offsets(m, m->row_ptr, 64, 0, 0, rows + 1));
    if (nnz > 0)
        TRY(spmv_upload(m->ctx, m->col, m->arrays.col, nnz * (int64_t)sizeof *m->col));
    if (nnz > 0 && !m->pattern)
        TRY(spmv_upload(m->ctx, m->val, m->arrays.val, nnz * value_bytes(&m->own)));
    group_rows_leave_host(m);
done:
    return st;
}

void group_arrays_release(spmv_context *ctx, struct group_arrays *arrays)
{
    group_free_queued(ctx, arrays->row_ptr, arrays->col, arrays->val);
    *arrays = (struct group_arrays){0};
}

spmv_status group_rows_block(spmv_group_matrix *m, bool diagonal, struct group_arrays *arrays, spmv_csr *block)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &m->there;
    const struct group_block b = {m->halo.room, a->rows, diagonal};
    int32_t *counts = NULL;
    int64_t count = 0;
    TRY(context_alloc(m->ctx, max_i64(1, a->rows) * (int64_t)sizeof *counts, (void **)&counts));
    TRY(context_alloc(m->ctx, (a->rows + 1) * (int64_t)sizeof(int64_t), &arrays->row_ptr));
    if (a->rows > 0)
        TRY(group_count_block_cuda(m->ctx, a, b, counts));
    TRY(spmv_expand_offsets(m->ctx, counts, 32, arrays->row_ptr, a->rows));
    TRY(spmv_download(m->ctx, (int64_t *)arrays->row_ptr + a->rows, &count, sizeof count));
    TRY(context_alloc(m->ctx, max_i64(1, count) * (int64_t)sizeof *arrays->col, (void **)&arrays->col));
    if (a->val != NULL)
        TRY(context_alloc(m->ctx, max_i64(1, count) * value_bytes(a), &arrays->val));
    if (count > 0)
        TRY(group_fill_block_cuda(m->ctx, a, b, arrays->row_ptr, arrays->col, arrays->val));
    *block = csr_of(a->rows, a->rows, count, arrays->row_ptr, arrays->col, arrays->val, a->type, SPMV_MEMORY_CONTEXT);
done:
    context_free(m->ctx, counts);
    return st;
}
