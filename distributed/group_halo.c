/* The halo of a rank: elements of x that its rows need and other ranks own.
 *
 * A vector with room holds, in ascending order of their global numbers, the elements of lower ranks
 * that are needed, the own elements, and those of higher ranks. So columns keep their order, and
 * the product of a row is the same sum whatever rank has it.
 *
 * The needed elements are found with one bit for each column of the matrix. Their places follow
 * from the number of bits set before: one counter for 64 columns.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>
#include <string.h>

#include "core/clock.h"
#include "core/threads.h"
#include "distributed/group_internal.h"
#include "formats/matrix_internal.h"

static const char *const what = "the halo of a rank";

/* Own elements begin at a multiple of ALIGNED elements, as memory of their own does. */
enum { ALIGNED = 16 };

/* The columns that rows of this rank need, one bit each. */
struct needed {
    uint64_t *bits;
    int32_t *before; /* bits set in words before this one */
    int64_t words;
};

static int bits_in(uint64_t word)
{
    return __builtin_popcountll(word);
}

static bool is_own(const spmv_group_matrix *m, int64_t column)
{
    const int rank = m->group->transport.rank;
    return m->col_of_rank[rank] <= column && column < m->col_of_rank[rank + 1];
}

/* Sets the bits of the columns that others own, and m->edge. */
static void mark(spmv_group_matrix *m, struct needed *needed)
{
#pragma omp parallel for num_threads(host_team(m->ctx, m->own.nnz)) schedule(dynamic, 8)
    for (int64_t c = 0; c < m->ranks.chunks; c++) {
        m->edge[c] = false;
        for (int64_t k = m->row_ptr[m->chunk[c]]; k < m->row_ptr[m->chunk[c + 1]]; k++) {
            const int64_t column = m->col[k];
            if (is_own(m, column))
                continue;
            m->edge[c] = true;
            const uint64_t bit = (uint64_t)1 << column % 64;
            if ((__atomic_load_n(&needed->bits[column / 64], __ATOMIC_RELAXED) & bit) == 0)
                __atomic_fetch_or(&needed->bits[column / 64], bit, __ATOMIC_RELAXED);
        }
    }
}

/* The number of a needed column among all needed ones. */
static int64_t number_of(const struct needed *needed, int64_t column)
{
    const uint64_t below = ((uint64_t)1 << column % 64) - 1;
    return needed->before[column / 64] + bits_in(needed->bits[column / 64] & below);
}

/* Replaces the columns of the whole matrix by places in a vector with room. */
static void renumber(spmv_group_matrix *m, const struct needed *needed)
{
    const struct halo *h = &m->halo;
    const int rank = m->group->transport.rank;
    const int64_t first = m->col_of_rank[rank], own = m->col_of_rank[rank + 1] - first;
#pragma omp parallel for num_threads(host_team(m->ctx, m->own.nnz)) schedule(static)
    for (int64_t k = 0; k < m->own.nnz; k++) {
        const int64_t column = m->col[k];
        int64_t place = h->room + column - first;
        if (!is_own(m, column)) {
            const int64_t number = number_of(needed, column);
            place = number < h->before ? h->room - h->before + number : h->room + own + number - h->before;
        }
        m->col[k] = (int32_t)place;
    }
}

/* Lists the needed columns in order. */
static void list_needed(const struct needed *needed, int32_t *list)
{
    for (int64_t w = 0; w < needed->words; w++)
        for (uint64_t left = needed->bits[w]; left != 0; left &= left - 1)
            *list++ = (int32_t)(64 * w + __builtin_ctzll(left));
}

/* The parcels that arrive: the needed columns of each rank are neighbours in the list. at: ranks + 1
 * places of the list. */
static void find_receives(spmv_group_matrix *m, const int32_t *list, int64_t count, int64_t *at)
{
    struct halo *h = &m->halo;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    const int64_t own = m->col_of_rank[rank + 1] - m->col_of_rank[rank];
    int64_t i = 0;
    h->receives = 0;
    for (int r = 0; r < ranks; r++) {
        at[r] = i;
        while (i < count && list[i] < m->col_of_rank[r + 1])
            i++;
        if (i > at[r]) {
            h->receive[h->receives] = (struct transport_parcel){.rank = r, .bytes = i - at[r]};
            h->receive_at[h->receives++] = r < rank ? at[r] - h->before : own + at[r] - h->before;
        }
    }
    at[ranks] = i;
}

/* Exchanges the lists: each rank learns which of its elements the others need. counts: the elements
 * that rank i needs of rank j are counts[i * ranks + j]. */
static spmv_status exchange_lists(spmv_group_matrix *m, int32_t *list, const int64_t *at, const int64_t *counts)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const int ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    struct transport_parcel *tell = NULL, *hear = NULL;
    int tells = 0;
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *tell, what, (void **)&tell));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *hear, what, (void **)&hear));
    for (int r = 0; r < ranks; r++)
        if (at[r + 1] > at[r])
            tell[tells++] = (struct transport_parcel){r, list + at[r], (at[r + 1] - at[r]) * (int64_t)sizeof *list};
    h->sends = 0;
    h->count = 0;
    for (int r = 0; r < ranks; r++) {
        const int64_t its = counts[r * ranks + rank];
        if (its > 0) {
            hear[h->sends] = (struct transport_parcel){r, h->index + h->count, its * (int64_t)sizeof *h->index};
            h->send[h->sends++] = (struct transport_parcel){.rank = r, .bytes = its};
            h->count += its;
        }
    }
    TRY(group_start(m->group, tell, tells, hear, h->sends));
    TRY(group_finish(m->group));
    for (int64_t i = 0; i < h->count; i++)
        h->index[i] -= (int32_t)m->col_of_rank[rank];
done:
    host_free(tell);
    host_free(hear);
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

/* Counts the needed columns; sets the places in front of and behind own elements. Returns their
 * number. */
static int64_t count_needed(spmv_group_matrix *m, struct needed *needed)
{
    struct halo *h = &m->halo;
    const int64_t first = m->col_of_rank[m->group->transport.rank];
    int64_t count = 0;
    for (int64_t w = 0; w < needed->words; w++) {
        needed->before[w] = (int32_t)count;
        count += bits_in(needed->bits[w]);
    }
    h->before = needed->words > first / 64 ? number_of(needed, first) : count;
    h->after = count - h->before;
    h->room = ceil_divide(h->before, ALIGNED) * ALIGNED;
    return count;
}

/* Allocates what the search for the halo needs, finds the needed columns and lists them: *count
 * columns. */
static spmv_status find_needed(spmv_group_matrix *m, struct needed *needed, int32_t **list, int64_t *count)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const int64_t ranks = m->group->transport.ranks, rank = m->group->transport.rank;
    TRY(host_alloc(m->ctx, needed->words * (int64_t)sizeof *needed->bits, what, (void **)&needed->bits));
    TRY(host_alloc(m->ctx, needed->words * (int64_t)sizeof *needed->before, what, (void **)&needed->before));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *h->send, what, (void **)&h->send));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *h->receive, what, (void **)&h->receive));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *h->receive_at, what, (void **)&h->receive_at));
    if (needed->words > 0)
        memset(needed->bits, 0, (size_t)needed->words * sizeof *needed->bits);
    mark(m, needed);
    *count = count_needed(m, needed);
    if (h->room + m->col_of_rank[rank + 1] - m->col_of_rank[rank] + h->after > INT32_MAX)
        TRY(context_fail(m->ctx, SPMV_ERROR_LIMIT, "a rank has more than %d elements of x with those of others",
                         INT32_MAX));
    TRY(host_alloc(m->ctx, *count * (int64_t)sizeof **list, what, (void **)list));
    list_needed(needed, *list);
done:
    return st;
}

spmv_status group_halo_prepare(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    spmv_group *group = m->group;
    const int64_t ranks = group->transport.ranks;
    struct needed needed = {.words = ceil_divide(m->cols, 64)};
    int32_t *list = NULL;
    int64_t *at = NULL, *own = NULL, *counts = NULL, count = 0;
    TRY(spmv_group_agree(group, find_needed(m, &needed, &list, &count)));
    TRY(host_alloc(m->ctx, (ranks + 1) * (int64_t)sizeof *at, what, (void **)&at));
    TRY(host_alloc(m->ctx, ranks * (int64_t)sizeof *own, what, (void **)&own));
    TRY(host_alloc(m->ctx, ranks * ranks * (int64_t)sizeof *counts, what, (void **)&counts));
    find_receives(m, list, count, at);
    for (int64_t r = 0; r < ranks; r++)
        own[r] = at[r + 1] - at[r];
    TRY(group_gather_equal(group, own, counts, ranks * (int64_t)sizeof *counts));
    h->count = add_counts(m, counts);
    TRY(spmv_group_agree(group, host_alloc(m->ctx, h->count * (int64_t)sizeof *h->index, what, (void **)&h->index)));
    TRY(exchange_lists(m, list, at, counts));
    renumber(m, &needed);
done:
    host_free_all(needed.bits, needed.before, at, own, counts, list);
    return st;
}

/* ------------------------------------------------------------- exchanges */

spmv_status group_halo_buffers(spmv_group_matrix *m)
{
    spmv_status st = SPMV_OK;
    struct halo *h = &m->halo;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    char *to = NULL;
    TRY(host_alloc(m->ctx, h->count * size, what, &h->packed));
    if (context_on_device(m->ctx)) {
        TRY(host_alloc(m->ctx, (h->before + h->after) * size, what, &h->arrived));
        TRY(spmv_alloc(m->ctx, h->count * size, &h->context_packed));
        TRY(spmv_alloc(m->ctx, h->count * 4, (void **)&h->context_index));
        TRY(spmv_upload(m->ctx, h->index, h->context_index, h->count * 4));
    }
    to = h->packed;
    for (int i = 0; i < h->sends; i++) { /* bytes was the number of elements */
        h->send[i].bytes *= size;
        h->send[i].memory = to;
        to += h->send[i].bytes;
    }
    to = h->arrived;
    for (int i = 0; i < h->receives; i++) {
        h->receive[i].bytes *= size;
        h->receive[i].memory = to;
        to = to != NULL ? to + h->receive[i].bytes : NULL;
    }
done:
    return st;
}

void group_halo_release(spmv_group_matrix *m)
{
    struct halo *h = &m->halo;
    host_free_all(h->index, h->send, h->receive, h->receive_at, h->packed, h->arrived);
    spmv_free(m->ctx, h->context_packed);
    spmv_free(m->ctx, h->context_index);
}

static inline void copy_indexed(const struct halo *h, const void *x, size_t size)
{
    for (int64_t i = 0; i < h->count; i++)
        copy_value(h->packed, i, x, h->index[i], size);
}

/* Copies the elements that others need. */
static spmv_status pack(const spmv_group_matrix *m, const void *x)
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
    SIZED(spmv_type_size(m->type), copy_indexed(h, x, SIZE))
    return SPMV_OK;
}

spmv_status group_fetch_start(void *matrix, void *x)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    struct halo *h = &m->halo;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    const double begin = monotonic_seconds();
    if (m->exchange.kind != NULL) {
        TRY(exchange_fetch_start(m, x));
        goto done;
    }
    TRY(pack(m, x));
    for (int i = 0; i < h->receives && !context_on_device(m->ctx); i++)
        h->receive[i].memory = (char *)x + h->receive_at[i] * size;
    TRY(group_start(m->group, h->send, h->sends, h->receive, h->receives));
done:
    m->seconds += monotonic_seconds() - begin;
    return st;
}

spmv_status group_fetch_finish(void *matrix, void *x)
{
    spmv_status st = SPMV_OK;
    spmv_group_matrix *m = matrix;
    const struct halo *h = &m->halo;
    const int64_t size = (int64_t)spmv_type_size(m->type);
    const double begin = monotonic_seconds();
    if (m->exchange.kind != NULL) {
        TRY(exchange_fetch_finish(m, x));
        goto done;
    }
    TRY(group_finish(m->group));
    for (int i = 0; i < h->receives && context_on_device(m->ctx); i++)
        TRY(spmv_upload(m->ctx, h->receive[i].memory, (char *)x + h->receive_at[i] * size, h->receive[i].bytes));
done:
    m->seconds += monotonic_seconds() - begin;
    return st;
}
