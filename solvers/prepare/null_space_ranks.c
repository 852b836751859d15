/* Connected components over ranks (null_space_ranks.h).
 *
 * Each rank merges the sets of its rows that its entries connect; a set is named by the number of its first row
 * in the whole matrix. Entries of columns of other ranks say which of these sets are one: such pairs, at most as
 * many as there are elements in a halo, go to all ranks, and each merges them alike.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/prepare/null_space_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "formats/matrix_internal.h"

static const char what[] = "components over ranks";

spmv_status null_ranks_any(const struct plan_ranks *ranks, bool own, bool *any)
{
    double value = own;
    const spmv_status st = ranks->largest(ranks->self, &value);
    *any = value != 0;
    return st;
}

/* ------------------------------------------------------------- lists of all ranks */

/* begin: ranks + 1, where the elements of each rank begin that has `count`. */
static spmv_status gather_counts(spmv_context *ctx, const struct plan_ranks *ranks, int64_t count, int64_t *begin)
{
    spmv_status st = SPMV_OK;
    int64_t *offset = NULL, *counts = NULL;
    TRY(host_alloc(ctx, (ranks->count + 1) * 8, what, (void **)&offset));
    TRY(host_alloc(ctx, ranks->count * 8, what, (void **)&counts));
    for (int r = 0; r <= ranks->count; r++)
        offset[r] = r * 8;
    TRY(ranks->tools->gather(ranks->self, &count, counts, offset));
    begin[0] = 0;
    for (int r = 0; r < ranks->count; r++)
        begin[r + 1] = begin[r] + counts[r];
done:
    host_free_all(offset, counts);
    return st;
}

/* all: what all ranks have, one after the other. */
static spmv_status gather_known(const struct plan_ranks *ranks, const int64_t *begin, const void *own, int64_t size,
                                void *all)
{
    spmv_status st = SPMV_OK;
    int64_t *offset = NULL;
    TRY(host_alloc(NULL, (ranks->count + 1) * 8, what, (void **)&offset));
    for (int r = 0; r <= ranks->count; r++)
        offset[r] = begin[r] * size;
    TRY(ranks->tools->gather(ranks->self, own, all, offset));
done:
    host_free(offset);
    return st;
}

/* Both. */
static spmv_status gather(spmv_context *ctx, const struct plan_ranks *ranks, const void *own, int64_t count,
                          int64_t size, void **all, int64_t *begin)
{
    spmv_status st = SPMV_OK;
    *all = NULL;
    TRY(gather_counts(ctx, ranks, count, begin));
    TRY(host_alloc(ctx, max_i64(1, begin[ranks->count]) * size, what, all));
    TRY(gather_known(ranks, begin, own, size, *all));
done:
    return st;
}

/* Two numbers, ordered by the first. */
struct pair {
    int64_t one, other;
};

static int compare(const void *a, const void *b)
{
    const struct pair *const left = a, *const right = b;
    const int first = (left->one > right->one) - (left->one < right->one);
    return first != 0 ? first : (left->other > right->other) - (left->other < right->other);
}

/* Sorts, and drops repeated ones; with `adds` those that repeat the first number, whose others are added. */
static int64_t tidy(struct pair *list, int64_t count, bool adds)
{
    int64_t kept = 0;
    qsort(list, (size_t)count, sizeof *list, compare);
    for (int64_t k = 0; k < count; k++) {
        struct pair *const last = kept > 0 ? &list[kept - 1] : NULL;
        if (last != NULL && last->one == list[k].one && (adds || last->other == list[k].other))
            last->other += adds ? list[k].other : 0;
        else
            list[kept++] = list[k];
    }
    return kept;
}

/* A tidy list of all ranks, made of their own ones. */
static spmv_status gather_pairs(spmv_context *ctx, const struct plan_ranks *ranks, const struct pair *own,
                                int64_t count, bool adds, struct pair **all, int64_t *all_count)
{
    spmv_status st = SPMV_OK;
    int64_t *begin = NULL;
    *all = NULL;
    TRY(host_alloc(ctx, (ranks->count + 1) * 8, what, (void **)&begin));
    TRY(gather(ctx, ranks, own, count, (int64_t)sizeof *own, (void **)all, begin));
    *all_count = tidy(*all, begin[ranks->count], adds);
done:
    host_free(begin);
    return st;
}

/* The place of a number among the first ones, -1: it is not there. */
static int64_t find(const struct pair *list, int64_t count, int64_t number)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (list[middle].one < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && list[low].one == number ? low : -1;
}

/* ------------------------------------------------------------- sets */

static int64_t set_of(int64_t *parent, int64_t i)
{
    while (parent[i] != i) { /* halves the path */
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* A set is named by its smallest member. */
static void merge(int64_t *parent, int64_t i, int64_t j)
{
    const int64_t one = set_of(parent, i), other = set_of(parent, j);
    parent[one < other ? other : one] = one < other ? one : other;
}

/* label: the number of the first own row that own entries connect with the row, for each own row. */
static spmv_status label_own(spmv_context *ctx, const struct rank_halo *h, const spmv_csr *a, int32_t *label)
{
    spmv_status st = SPMV_OK;
    int64_t *parent = NULL;
    TRY(host_alloc(ctx, max_i64(1, a->rows) * 8, what, (void **)&parent));
    for (int64_t i = 0; i < a->rows; i++)
        parent[i] = i;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            if (a->col[k] >= h->room && a->col[k] < h->room + h->own)
                merge(parent, i, a->col[k] - h->room);
    for (int64_t i = 0; i < a->rows; i++)
        label[i] = (int32_t)(h->first + set_of(parent, i));
done:
    host_free(parent);
    return st;
}

spmv_status null_ranks_fetch(spmv_context *ctx, const struct rank_tools *tools, const struct rank_halo *h, void *array,
                             int64_t size)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = (h->room + h->own + h->after) * size;
    void *there = NULL;
    if (!context_on_device(ctx))
        return tools->fetch(h, array, size);
    TRY(context_alloc(ctx, max_i64(size, bytes), &there));
    TRY(spmv_upload(ctx, array, there, bytes));
    TRY(tools->fetch(h, there, size));
    TRY(spmv_download(ctx, there, array, bytes));
done:
    context_free(ctx, there);
    return st;
}

/* The sets that entries of columns of other ranks connect. */
static spmv_status find_pairs(spmv_context *ctx, const struct rank_halo *h, const spmv_csr *a, const int32_t *label,
                              struct pair **pairs, int64_t *count)
{
    spmv_status st = SPMV_OK;
    int64_t most = 0, at = 0;
    for (int64_t k = 0; k < a->nnz; k++)
        most += a->col[k] < h->room || a->col[k] >= h->room + h->own;
    TRY(host_alloc(ctx, max_i64(1, most) * (int64_t)sizeof **pairs, what, (void **)pairs));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            if (a->col[k] < h->room || a->col[k] >= h->room + h->own)
                (*pairs)[at++] = (struct pair){label[h->room + i], label[a->col[k]]};
    *count = tidy(*pairs, at, false);
done:
    return st;
}

/* Replaces the labels of own rows by those of the whole matrix: pairs, of all ranks, name the sets that are one. */
static spmv_status relabel(spmv_context *ctx, const struct pair *pairs, int64_t count, int32_t *label, int64_t rows)
{
    spmv_status st = SPMV_OK;
    struct pair *names = NULL; /* all labels in pairs */
    int64_t *parent = NULL, known = 0;
    TRY(host_alloc(ctx, max_i64(1, 2 * count) * (int64_t)sizeof *names, what, (void **)&names));
    for (int64_t k = 0; k < count; k++) {
        names[known++] = (struct pair){pairs[k].one, 0};
        names[known++] = (struct pair){pairs[k].other, 0};
    }
    known = tidy(names, known, false);
    TRY(host_alloc(ctx, max_i64(1, known) * 8, what, (void **)&parent));
    for (int64_t k = 0; k < known; k++)
        parent[k] = k;
    for (int64_t k = 0; k < count; k++)
        merge(parent, find(names, known, pairs[k].one), find(names, known, pairs[k].other));
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = find(names, known, label[i]);
        label[i] = at < 0 ? label[i] : (int32_t)names[set_of(parent, at)].one;
    }
done:
    host_free_all(names, parent);
    return st;
}

/* ------------------------------------------------------------- components */

/* The labels of components with rows that are not good, of all ranks. */
static spmv_status find_bad(spmv_context *ctx, const struct plan_ranks *ranks, const char *good, const int32_t *label,
                            int64_t rows, struct pair **bad, int64_t *bads)
{
    spmv_status st = SPMV_OK;
    struct pair *own = NULL;
    int64_t count = 0;
    TRY(host_alloc(ctx, max_i64(1, rows) * (int64_t)sizeof *own, what, (void **)&own));
    for (int64_t i = 0; i < rows; i++)
        if (!good[i])
            own[count++] = (struct pair){label[i], 0};
    TRY(gather_pairs(ctx, ranks, own, tidy(own, count, false), false, bad, bads));
done:
    host_free(own);
    return st;
}

/* Numbers the labels of own rows that are not bad, and counts their rows on all ranks. */
static spmv_status number(spmv_context *ctx, const struct plan_ranks *ranks, const int32_t *label, int64_t rows,
                          const struct pair *bad, int64_t bads, int32_t *component, int64_t *components, int64_t **size)
{
    spmv_status st = SPMV_OK;
    struct pair *own = NULL, *all = NULL;
    int64_t count = 0;
    TRY(host_alloc(ctx, max_i64(1, rows) * (int64_t)sizeof *own, what, (void **)&own));
    for (int64_t i = 0; i < rows; i++)
        if (find(bad, bads, label[i]) < 0)
            own[count++] = (struct pair){label[i], 1};
    TRY(gather_pairs(ctx, ranks, own, tidy(own, count, true), true, &all, components));
    TRY(host_alloc(ctx, max_i64(1, *components) * 8, what, (void **)size));
    for (int64_t c = 0; c < *components; c++)
        (*size)[c] = all[c].other;
    for (int64_t i = 0; i < rows; i++)
        component[i] = (int32_t)find(all, *components, label[i]);
done:
    host_free_all(own, all);
    return st;
}

static spmv_status label_all(spmv_context *ctx, const struct plan_ranks *ranks, const struct rank_halo *h,
                             const spmv_csr *a, int32_t *label)
{
    spmv_status st = SPMV_OK;
    struct pair *own = NULL, *all = NULL;
    int64_t count = 0, all_count = 0;
    TRY(label_own(ctx, h, a, label + h->room));
    TRY(null_ranks_fetch(ctx, ranks->tools, h, label, 4));
    TRY(find_pairs(ctx, h, a, label, &own, &count));
    TRY(gather_pairs(ctx, ranks, own, count, false, &all, &all_count));
    TRY(relabel(ctx, all, all_count, label + h->room, a->rows));
done:
    host_free_all(own, all);
    return st;
}

spmv_status null_ranks_components(spmv_context *ctx, const spmv_plan *plan, const spmv_csr *a, const char *good,
                                  int32_t *component, int64_t *components, int64_t **size)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = plan->ranks;
    struct rank_first first = {.halo = NULL};
    struct pair *bad = NULL;
    int64_t bads = 0;
    int32_t *label = NULL;
    TRY(ranks->tools->first(ranks->self, SPMV_F64, &first));
    const struct rank_halo *const h = first.halo;
    TRY(host_zeros(ctx, max_i64(1, h->room + h->own + h->after) * 4, what, (void **)&label));
    TRY(label_all(ctx, ranks, h, a, label));
    if (good != NULL)
        TRY(find_bad(ctx, ranks, good, label + h->room, a->rows, &bad, &bads));
    TRY(number(ctx, ranks, label + h->room, a->rows, bad, bads, component, components, size));
done:
    if (first.halo != NULL)
        ranks->tools->close(first.halo);
    host_free_all(label, bad);
    return st;
}

/* ------------------------------------------------------------- sums over chunks */

spmv_status null_chunks_make(spmv_context *ctx, const struct plan_ranks *ranks, int64_t rows, int64_t most,
                             struct null_chunks **made)
{
    spmv_status st = SPMV_OK;
    struct null_chunks *c = NULL;
    const int64_t each = most * (int64_t)sizeof *c->own;
    TRY(host_zeros(ctx, sizeof *c, what, (void **)&c));
    *c = (struct null_chunks){.ranks = ranks, .count = 1, .one = {0, rows}};
    c->chunk = c->one;
    if (ranks != NULL) {
        c->count = ranks->chunks;
        c->chunk = ranks->chunk;
        TRY(host_alloc(ctx, (ranks->count + 1) * 8, what, (void **)&c->begin));
        TRY(gather_counts(ctx, ranks, c->count, c->begin));
        TRY(host_alloc(ctx, max_i64(1, c->begin[ranks->count]) * each, what, (void **)&c->all));
    }
    TRY(host_zeros(ctx, max_i64(1, c->count) * each, what, (void **)&c->own));
    *made = c;
    c = NULL;
done:
    null_chunks_destroy(c);
    return st;
}

void null_chunks_destroy(struct null_chunks *c)
{
    if (c == NULL)
        return;
    host_free_all(c->own, c->begin, c->all);
    host_free(c);
}

spmv_status null_chunks_add(const struct null_chunks *c, int64_t width, long double *sums)
{
    spmv_status st = SPMV_OK;
    const long double *all = c->own;
    int64_t chunks = c->count;
    if (c->ranks != NULL) {
        TRY(gather_known(c->ranks, c->begin, c->own, width * (int64_t)sizeof *c->own, c->all));
        all = c->all;
        chunks = c->begin[c->ranks->count];
    }
    for (int64_t k = 0; k < width; k++)
        sums[k] = 0;
    for (int64_t k = 0; k < chunks * width; k++)
        sums[k % width] += all[k];
done:
    return st;
}

/* ------------------------------------------------------------- sums over components */

/* The parts of own chunks: p->begin, and *own. */
static spmv_status list_parts(spmv_context *ctx, struct null_parts *p, const int32_t *component, int64_t components,
                              int32_t **own)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = p->ranks;
    int64_t *seen = NULL, count = 0; /* of each component: the chunk that has it, and 1 */
    TRY(host_alloc(ctx, max_i64(1, ranks->chunk[ranks->chunks]) * 4, what, (void **)own));
    TRY(host_zeros(ctx, components * 8, what, (void **)&seen));
    for (int64_t c = 0; c < ranks->chunks; c++) {
        p->begin[c] = count;
        for (int64_t i = ranks->chunk[c]; i < ranks->chunk[c + 1]; i++) {
            const int32_t of = component != NULL ? component[i] : 0;
            if (of < 0 || seen[of] == c + 1)
                continue;
            seen[of] = c + 1;
            (*own)[count++] = of;
        }
    }
    p->begin[ranks->chunks] = count;
done:
    host_free(seen);
    return st;
}

spmv_status null_parts_make(spmv_context *ctx, const spmv_plan *plan, const int32_t *component, int64_t components,
                            struct null_parts **made)
{
    spmv_status st = SPMV_OK;
    const struct plan_ranks *const ranks = plan->ranks;
    struct null_parts *p = NULL;
    int32_t *own = NULL;
    TRY(host_zeros(ctx, sizeof *p, what, (void **)&p));
    p->ranks = ranks;
    TRY(host_alloc(ctx, (ranks->chunks + 1) * 8, what, (void **)&p->begin));
    TRY(host_alloc(ctx, (ranks->count + 1) * 8, what, (void **)&p->part));
    TRY(list_parts(ctx, p, component, components, &own));
    const int64_t parts = p->begin[ranks->chunks];
    TRY(gather(ctx, ranks, own, parts, 4, (void **)&p->component, p->part));
    TRY(host_zeros(ctx, max_i64(1, parts) * (int64_t)sizeof *p->own, what, (void **)&p->own));
    TRY(host_alloc(ctx, max_i64(1, p->part[ranks->count]) * (int64_t)sizeof *p->all, what, (void **)&p->all));
    TRY(null_chunks_make(ctx, ranks, plan->a.rows, 1, &p->squares));
    *made = p;
    p = NULL;
done:
    host_free(own);
    null_parts_destroy(p);
    return st;
}

void null_parts_destroy(struct null_parts *p)
{
    if (p == NULL)
        return;
    null_chunks_destroy(p->squares);
    host_free_all(p->begin, p->component, p->part, p->own, p->all);
    host_free(p);
}

spmv_status null_parts_add(const struct null_parts *p, int64_t components, struct null_sum *sum, long double *squares)
{
    spmv_status st = SPMV_OK;
    const int ranks = p->ranks->count;
    TRY(null_chunks_add(p->squares, 1, squares));
    TRY(gather_known(p->ranks, p->part, p->own, (int64_t)sizeof *p->own, p->all));
    memset(sum, 0, (size_t)components * sizeof *sum);
    for (int64_t k = 0; k < p->part[ranks]; k++)
        for (int c = 0; c < 2; c++)
            sum[p->component[k]].of[c] += p->all[k].of[c];
done:
    return st;
}
