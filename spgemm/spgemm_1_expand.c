/* Method "expand": all products, sorted. Written with the public primitives, so it runs on every
 * backend.
 *
 *     expand    one element for each product a_ik b_kj: its row i, its column j, and the numbers of
 *               its two entries; in the order of the entries of A
 *     sort      by column, then by row. Both sorts are stable, so the products of one row and column
 *               are together, and k ascends among them.
 *     compress  the first product of each row and column is an entry of C; the products up to the
 *               next one are its sum (spgemm_expand_sums), added one after the other
 *
 * A product takes PRODUCT_BYTES of working memory. More products than fit are done in panels of
 * whole rows of A. The numeric phase repeats these steps and adds the products, so a plan keeps
 * nothing but the pattern of C.
 *
 * Work: O(products) times the passes of the sorts. N. Bell, S. Dalton, L. Olson, "Exposing
 * fine-grained parallelism in algebraic multigrid methods", SIAM J. Sci. Comput. 34(4), 2012.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "spgemm/spgemm_expand.h"

/* Bytes for a product: six numbers of 64 bits and three of 32 bits (struct panel); the sort takes
 * another key and another value from the context. */
enum {
    NUMBERS = 6,
    COLUMNS = 3,
    ROUNDED = 8 /* products more in memory */,
    PRODUCT_BYTES = (NUMBERS + 1) * 8 + (COLUMNS + 1) * 4
};

/* Products of a panel if the options have no limit, and rows of a panel: a row is a key of 32
 * bits. */
enum { PANEL_PRODUCTS = 1 << 24, PANEL_ROWS = 1 << 30 };

/* The rows first_row <= i < first_row + rows of A with n products. Arrays are in the context's
 * memory and have n elements, if nothing else is said. */
struct panel {
    int64_t first_row, rows, n;
    int64_t *of_row; /* products of the panel before each row, rows + 1 */
    int64_t *a, *b;  /* the numbers of a product's entries */
    int32_t *row;    /* of a product, counted from first_row */
    int32_t *col;    /* of a product */
    int64_t *order;  /* order[p]: the product at place p after the sort */
    int32_t *sorted; /* its column */
    int64_t *before; /* entries of C that start before place p; n + 1 */
    int64_t *marks;  /* p + 1 where an entry of C starts, else 0 */
    int64_t *start;  /* the places where entries of C start, `entries` of them */
    int64_t entries; /* of C in these rows */
};

/* What all panels share. */
struct expand_plan {
    struct spmv_spgemm_plan *plan;
    int64_t *b_row_ptr;    /* the offsets of B with 64 bits */
    int64_t *own_offsets;  /* b_row_ptr, if it is not B's own array */
    int64_t *of_entry;     /* products before each entry of A, nnz + 1 */
    int64_t *of_row;       /* products before each row of A, rows + 1 */
    int64_t *host_of_row;  /* the same in host memory */
    int64_t *host_entries; /* entries of A before each row of A, rows + 1, in host memory */
    int64_t most;          /* products of the largest panel */
    int64_t most_rows;     /* rows of the panel with the most rows */
    int64_t most_entries;  /* entries of A of the panel with the most */
    int64_t panels;
    int64_t *offsets;   /* memory for panel.of_row, then for offsets of a panel's entries */
    int64_t *numbers;   /* memory of a panel */
    int64_t *entry_end; /* in offsets, behind panel.of_row */
    int64_t *count;     /* one number */
};

/* -------------------------------------------------------------------------- preparation */

/* The rows of the panel that starts at a row: as many as fit, at least one. */
static int64_t rows_from(const struct expand_plan *e, int64_t first, int64_t most)
{
    int64_t low = first + 1, high = min_i64(e->plan->a.rows, first + PANEL_ROWS);
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (e->host_of_row[middle] - e->host_of_row[first] <= most)
            low = middle;
        else
            high = middle - 1;
    }
    return low - first;
}

/* Bytes that do not depend on the panels: the offsets of B with 64 bits; products before each entry
 * and row of A, here and in host memory; entries before each row; offsets of a panel, at most those
 * of A. */
static int64_t fixed_bytes(const struct spmv_spgemm_plan *plan)
{
    const spmv_csr *const a = &plan->a, *const b = &plan->b;
    return (b->row_ptr_bits == 32 ? b->rows : 0) * 8 + a->nnz * 8 + a->rows * 3 * 8 + (a->rows + a->nnz) * 8;
}

/* Products that a panel may have. */
static int64_t panel_limit(const struct spmv_spgemm_plan *plan)
{
    return plan->max_bytes > 0 ? max_i64(1, (plan->max_bytes - fixed_bytes(plan)) / PRODUCT_BYTES - ROUNDED)
                               : (int64_t)PANEL_PRODUCTS;
}

static spmv_status widen_offsets(struct expand_plan *e)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = e->plan->ctx;
    const spmv_csr *const b = &e->plan->b;
    int32_t *lengths = NULL;
    if (b->row_ptr_bits == 64) {
        e->b_row_ptr = (int64_t *)b->row_ptr; /* only read */
        return SPMV_OK;
    }
    TRY(context_alloc(ctx, b->rows * (int64_t)sizeof *lengths, (void **)&lengths));
    TRY(context_alloc(ctx, (b->rows + 1) * (int64_t)sizeof *e->own_offsets, (void **)&e->own_offsets));
    TRY(spgemm_differences(ctx, b->row_ptr, 32, lengths, b->rows));
    TRY(spmv_expand_offsets(ctx, lengths, 32, e->own_offsets, b->rows));
    e->b_row_ptr = e->own_offsets;
done:
    spmv_free(ctx, lengths);
    return st;
}

/* The offsets of A in host memory. */
static spmv_status download_entries(struct expand_plan *e)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *const a = &e->plan->a;
    const int64_t n = a->rows + 1;
    TRY(host_alloc(e->plan->ctx, n * (int64_t)sizeof *e->host_entries, "row offsets", (void **)&e->host_entries));
    TRY(spmv_download(e->plan->ctx, a->row_ptr, e->host_entries, n * (a->row_ptr_bits / 8)));
    for (int64_t i = n - 1; i >= 0 && a->row_ptr_bits == 32; i--) { /* widens in place, from the end */
        int32_t narrow;
        memcpy(&narrow, (const char *)e->host_entries + i * (int64_t)sizeof narrow, sizeof narrow);
        e->host_entries[i] = narrow;
    }
done:
    return st;
}

static spmv_status prepare(struct spmv_spgemm_plan *plan, struct expand_plan *e)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = plan->ctx;
    const spmv_csr *const a = &plan->a;
    const int64_t bytes = (a->rows + 1) * (int64_t)sizeof(int64_t);
    int64_t panel_bytes = 0;
    e->plan = plan;
    TRY(spgemm_working_bytes(plan, fixed_bytes(plan)));
    TRY(widen_offsets(e));
    TRY(spgemm_entry_offsets(plan, &e->of_entry));
    TRY(context_alloc(ctx, bytes, (void **)&e->of_row));
    TRY(spmv_gather(ctx, SPMV_I64, e->of_entry, a->nnz + 1, a->row_ptr, a->row_ptr_bits, e->of_row, a->rows + 1));
    TRY(host_alloc(ctx, bytes, "the products of the rows", (void **)&e->host_of_row));
    TRY(spmv_download(ctx, e->of_row, e->host_of_row, bytes));
    TRY(download_entries(e));
    for (int64_t first = 0, rows = 0; first < a->rows; first += rows, e->panels++) {
        rows = rows_from(e, first, panel_limit(plan));
        e->most = max_i64(e->most, e->host_of_row[first + rows] - e->host_of_row[first]);
        e->most_rows = max_i64(e->most_rows, rows);
        e->most_entries = max_i64(e->most_entries, e->host_entries[first + rows] - e->host_entries[first]);
    }
    if (!multiply_fits(e->most + ROUNDED, PRODUCT_BYTES, &panel_bytes) || panel_bytes > INT64_MAX - fixed_bytes(plan))
        panel_bytes = INT64_MAX - fixed_bytes(plan);
    TRY(spgemm_working_bytes(plan, fixed_bytes(plan) + panel_bytes));
    TRY(context_alloc(ctx, (e->most_rows + e->most_entries + 2) * (int64_t)sizeof *e->offsets, (void **)&e->offsets));
    e->entry_end = e->offsets + e->most_rows + 1;
    TRY(context_alloc(ctx, sizeof *e->count, (void **)&e->count));
    TRY(context_alloc(ctx, (e->most + ROUNDED) * (NUMBERS * 8 + COLUMNS * 4), (void **)&e->numbers));
done:
    return st;
}

static void release(struct expand_plan *e)
{
    spmv_context *const ctx = e->plan->ctx;
    void *const memory[] = {e->own_offsets, e->of_entry, e->of_row, e->offsets, e->numbers, e->count};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        spmv_free(ctx, memory[i]);
    host_free(e->host_of_row);
    host_free(e->host_entries);
    context_freed(ctx);
}

/* The arrays of a panel, each aligned to 64 bytes. */
static struct panel panel_from(const struct expand_plan *e, int64_t first_row)
{
    const int64_t room = (e->most / ROUNDED + 1) * ROUNDED, rows = rows_from(e, first_row, panel_limit(e->plan));
    int32_t *const columns = (int32_t *)(void *)(e->numbers + NUMBERS * room);
    return (struct panel){.first_row = first_row,
                          .rows = rows,
                          .n = e->host_of_row[first_row + rows] - e->host_of_row[first_row],
                          .of_row = e->offsets,
                          .a = e->numbers,
                          .b = e->numbers + room,
                          .order = e->numbers + 2 * room,
                          .before = e->numbers + 3 * room,
                          .marks = e->numbers + 4 * room,
                          .start = e->numbers + 5 * room,
                          .row = columns,
                          .col = columns + room,
                          .sorted = columns + 2 * room};
}

/* -------------------------------------------------------------------------------- steps */

/* to[i] = from[i] + number */
static spmv_status shift(spmv_context *ctx, int64_t number, const int64_t *from, int64_t *to, int64_t n)
{
    return spmv_map_scalar(ctx, SPMV_ADD, SPMV_I64, &number, from, to, n);
}

/* to[i] = first + i */
static spmv_status number(spmv_context *ctx, int64_t first, int64_t *to, int64_t n)
{
    const int64_t one = 1;
    return spmv_map_index(ctx, SPMV_I64, &first, &one, to, n);
}

/* row, col, a, b */
static spmv_status expand(const struct expand_plan *e, struct panel *p)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = e->plan->ctx;
    const spmv_csr *const a = &e->plan->a, *const b = &e->plan->b;
    const int64_t first = e->host_entries[p->first_row], products = e->host_of_row[p->first_row];
    const int64_t entries = e->host_entries[p->first_row + p->rows] - first;
    int32_t *const b_row = p->sorted;  /* not needed yet */
    int64_t *const b_first = p->marks; /* likewise */
    TRY(shift(ctx, -products, e->of_row + p->first_row, p->of_row, p->rows + 1));
    TRY(shift(ctx, -products, e->of_entry + first, e->entry_end, entries + 1));
    TRY(spmv_expand(ctx, SPMV_EXPAND_GATHER, SPMV_I32, NULL, p->of_row, p->rows, 32, NULL, p->row, NULL, p->n));
    TRY(spmv_expand(ctx, SPMV_EXPAND_GATHER, SPMV_I32, a->col + first, e->entry_end, entries, 64, b_row, p->a, p->b,
                    p->n));
    TRY(shift(ctx, first, p->a, p->a, p->n));
    TRY(spmv_gather(ctx, SPMV_I64, e->b_row_ptr, b->rows + 1, b_row, 32, b_first, p->n));
    TRY(spmv_map_binary(ctx, SPMV_ADD, SPMV_I64, b_first, p->b, p->b, p->n));
    TRY(spmv_gather(ctx, SPMV_I32, b->col, b->nnz, p->b, 64, p->col, p->n));
done:
    return st;
}

/* Bits of the numbers 0, ..., n - 1; at least 1. */
static int bits_of(int64_t n)
{
    int bits = 1;
    while (bits < 31 && (n - 1) >> bits != 0)
        bits++;
    return bits;
}

/* order, sorted. Overwrites row. */
static spmv_status sort(const struct expand_plan *e, struct panel *p)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = e->plan->ctx;
    TRY(number(ctx, 0, p->order, p->n));
    TRY(spmv_sort_by_key(ctx, SPMV_I32, 0, bits_of(e->plan->b.cols), p->col, p->order, 8, p->sorted, p->order, p->n));
    TRY(spmv_gather(ctx, SPMV_I32, p->row, p->n, p->order, 64, p->sorted, p->n));
    TRY(spmv_sort_by_key(ctx, SPMV_I32, 0, bits_of(p->rows), p->sorted, p->order, 8, p->row, p->order, p->n));
    TRY(spmv_gather(ctx, SPMV_I32, p->col, p->n, p->order, 64, p->sorted, p->n));
done:
    return st;
}

/* before, start, entries. An entry of C starts where the column differs from that of the place
 * before, and at the first place of a row. Overwrites row. */
static spmv_status compress(const struct expand_plan *e, struct panel *p)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = e->plan->ctx;
    const int32_t one = 1;
    int32_t *const starts = p->row, *const ones = p->col;
    TRY(spgemm_differences(ctx, p->sorted, 32, starts + 1, p->n - 1));
    for (int64_t first = 0; first < p->rows; first += p->n) { /* as many ones at a time as there is room for */
        const int64_t n = min_i64(p->n, p->rows - first);
        TRY(spmv_map_index(ctx, SPMV_I32, &one, NULL, ones, n));
        TRY(spmv_scatter(ctx, SPMV_I32, ones, p->of_row + first, 64, starts, p->n, n));
    }
    TRY(spmv_map_scalar(ctx, SPMV_MIN, SPMV_I32, &one, starts, starts, p->n));
    TRY(spmv_expand_offsets(ctx, starts, 32, p->before, p->n));
    TRY(spgemm_differences(ctx, p->before, 64, p->marks, p->n));
    TRY(number(ctx, 1, p->start, p->n));
    TRY(spmv_map_binary(ctx, SPMV_MUL, SPMV_I64, p->marks, p->start, p->marks, p->n));
    TRY(spmv_compact_if(ctx, SPMV_IS_NONZERO, 1, SPMV_I64, NULL, p->marks, p->start, e->count, p->n));
    TRY(spmv_download(ctx, e->count, &p->entries, sizeof p->entries));
    TRY(shift(ctx, -1, p->start, p->start, p->entries));
done:
    return st;
}

static spmv_status run_panel(const struct expand_plan *e, struct panel *p)
{
    spmv_status st = expand(e, p);
    if (st == SPMV_OK)
        st = sort(e, p);
    return st != SPMV_OK ? st : compress(e, p);
}

/* ---------------------------------------------------------------------------- the method */

/* The columns of a panel, found before it is known where they go. */
struct found {
    int32_t *col;
    int64_t entries;
};

/* Puts the columns of all panels together. One panel needs no copy. */
static spmv_status join(struct spmv_spgemm_plan *plan, struct found *found, int64_t panels)
{
    spmv_status st = SPMV_OK;
    int64_t done_entries = 0;
    if (panels == 1) {
        plan->col = found[0].col;
        found[0].col = NULL;
        return SPMV_OK;
    }
    TRY(context_alloc(plan->ctx, plan->nnz * (int64_t)sizeof *plan->col, (void **)&plan->col));
    for (int64_t i = 0; i < panels; i++) {
        TRY(spmv_map(plan->ctx, SPMV_MAP_COPY, SPMV_I32, found[i].col, plan->col + done_entries, found[i].entries));
        done_entries += found[i].entries;
    }
done:
    return st;
}

spmv_status spgemm_expand_symbolic(struct spmv_spgemm_plan *plan)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = plan->ctx;
    struct expand_plan e = {.plan = plan};
    struct found *found = NULL;
    int64_t i = 0;
    TRY(prepare(plan, &e));
    TRY(host_alloc(ctx, e.panels * (int64_t)sizeof *found, "the parts of a product", (void **)&found));
    memset(found, 0, (size_t)e.panels * sizeof *found);
    TRY(spgemm_alloc_row_ptr(plan));
    TRY(spmv_map_scalar(ctx, SPMV_MUL, SPMV_I64, &plan->nnz, e.of_row, plan->row_ptr, plan->a.rows + 1)); /* zeros */
    for (int64_t first = 0; first < plan->a.rows; i++) {
        struct panel p = panel_from(&e, first);
        if (p.n > 0) {
            TRY(run_panel(&e, &p));
            TRY(context_alloc(ctx, p.entries * (int64_t)sizeof *found->col, (void **)&found[i].col));
            TRY(spmv_gather(ctx, SPMV_I32, p.sorted, p.n, p.start, 64, found[i].col, p.entries));
            TRY(spmv_gather(ctx, SPMV_I64, p.before, p.n + 1, p.of_row, 64, plan->row_ptr + first, p.rows + 1));
        }
        TRY(shift(ctx, plan->nnz, plan->row_ptr + first, plan->row_ptr + first, p.rows + 1));
        found[i].entries = p.entries;
        plan->nnz += p.entries;
        first += p.rows;
    }
    TRY(join(plan, found, e.panels));
done:
    for (int64_t k = 0; found != NULL && k < e.panels; k++)
        spmv_free(ctx, found[k].col);
    host_free(found);
    release(&e);
    return st;
}

spmv_status spgemm_expand_numeric(struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c)
{
    spmv_status st = SPMV_OK;
    struct expand_plan e = {.plan = plan};
    char *to = c;
    TRY(prepare(plan, &e));
    for (int64_t first = 0; first < plan->a.rows;) {
        struct panel p = panel_from(&e, first);
        if (p.n > 0) {
            TRY(run_panel(&e, &p));
            const struct spgemm_sums sums = {.type = plan->type,
                                             .a_values = a,
                                             .b_values = b,
                                             .a = p.a,
                                             .b = p.b,
                                             .order = p.order,
                                             .start = p.start,
                                             .products = p.n,
                                             .entries = p.entries,
                                             .c_values = to};
            TRY(spgemm_expand_sums(plan->ctx, &sums));
        }
        to += p.entries * (int64_t)spmv_type_size(plan->type);
        first += p.rows;
    }
done:
    release(&e);
    return st;
}
