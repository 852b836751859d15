/* spmv explain of the sparse product C = A B by the method "expand": expand, sort, compress.
 *
 * N. Bell, S. Dalton, L. Olson, "Exposing fine-grained parallelism in algebraic multigrid methods",
 * SIAM J. Sci. Comput. 34(4), 2012. The library's method (spgemm/spgemm_1_expand.c) is the same
 * without the steps. The result is checked with the library's default method.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/spgemm.h>
#include <stdlib.h>
#include <string.h>

#include "app/explain/explain.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/options.h"
#include "app/output.h"
#include "core/plural.h"

/* A, B and the arrays of the products; n products. */
struct expansion {
    const spmv_csr *a, *b;
    int64_t n, entries; /* of C */
    int64_t counts[EXPLAIN_MOST], offsets[EXPLAIN_MOST + 1];
    int64_t source[EXPLAIN_MOST], rank[EXPLAIN_MOST], row[EXPLAIN_MOST], col[EXPLAIN_MOST];
    int64_t key[EXPLAIN_MOST], order[EXPLAIN_MOST], heads[EXPLAIN_MOST], place[EXPLAIN_MOST];
    double product[EXPLAIN_MOST], sorted[EXPLAIN_MOST], sum[EXPLAIN_MOST];
};

static void show(struct explain_job *job, const char *key, const char *title, const int64_t *values, int64_t n)
{
    explain_array(&job->page, key, title, SPMV_I64, values, n, NULL);
}

static spmv_status load_matrix(struct explain_job *job, const char *word, struct input *in)
{
    struct options f64 = *job->o;
    f64.type = SPMV_F64;
    spmv_status st = input_load(job->ctx, &f64, JOB_LOOK, word, in);
    if (st == SPMV_OK)
        st = input_needs_real(in, "spmv explain");
    if (st == SPMV_OK)
        st = explain_check_size(job->o, "nonzeros in the matrix", in->view.nnz);
    if (st == SPMV_OK)
        st = explain_check_size(job->o, "rows in the matrix", in->view.rows);
    return st;
}

static void show_matrix(struct explain_job *job, const spmv_csr *a, const char *const keys[3],
                        const char *const titles[3])
{
    if (a->val != NULL)
        explain_array(&job->page, keys[0], titles[0], SPMV_F64, a->val, a->nnz, NULL);
    explain_array(&job->page, keys[1], titles[1], SPMV_I32, a->col, a->nnz, NULL);
    explain_array(&job->page, keys[2], titles[2], SPMV_I64, a->row_ptr, a->rows + 1, NULL);
}

static void show_operands(struct explain_job *job, const struct expansion *e, const char *const *words)
{
    static const char *const keys[2][3] = {{"A_val", "A_col", "A_row_ptr"}, {"B_val", "B_col", "B_row_ptr"}};
    static const char *const titles[2][3] = {{"A, values", "A, columns", "A, rows begin at"},
                                             {"B, values", "B, columns", "B, rows begin at"}};
    explain_text(&job->page, "C = A B, A = %.80s: %lld x %lld, B = %.80s: %lld x %lld; scans by the rung %s", words[0],
                 (long long)e->a->rows, (long long)e->a->cols, words[1], (long long)e->b->rows, (long long)e->b->cols,
                 job->rung);
    explain_rung(job, "scan", job->rung);
    explain_text(&job->page, "*: the step changed the cell");
    show_matrix(job, e->a, keys[0], titles[0]);
    show_matrix(job, e->b, keys[1], titles[1]);
}

/* One element for each product: its row and column in C, and its value. */
static spmv_status expand(struct explain_job *job, struct expansion *e)
{
    const spmv_csr *const a = e->a, *const b = e->b;
    int64_t places[EXPLAIN_MOST];
    e->n = 0;
    for (int64_t k = 0; k < a->nnz; k++)
        e->n += e->counts[k] = row_begin(b, a->col[k] + 1) - row_begin(b, a->col[k]);
    spmv_status st = explain_check_size(job->o, "products", e->n);
    if (st != SPMV_OK)
        return st;
    explain_text(&job->page, "1. expand: entry k of A makes a product with each entry of row A_col[k] of B");
    show(job, "counts", "counts of products", e->counts, a->nnz);
    st = explain_trace_steps(job, EXPLAIN_EXCLUSIVE, SPMV_ADD, SPMV_I64, NULL, e->counts, places, a->nnz);
    if (st == SPMV_OK)
        st = explain_status(job, spmv_expand_offsets(job->ctx, e->counts, 64, e->offsets, a->nnz));
    if (st == SPMV_OK)
        st = explain_status(job, spmv_expand(job->ctx, SPMV_EXPAND_GATHER, SPMV_I64, NULL, e->offsets, a->nnz, 64, NULL,
                                             e->source, e->rank, e->n));
    if (st != SPMV_OK)
        return st;
    for (int64_t p = 0, i = 0; p < e->n; p++) {
        const int64_t k = e->source[p], l = row_begin(b, a->col[k]) + e->rank[p];
        while (row_begin(a, i + 1) <= k)
            i++;
        e->row[p] = i;
        e->col[p] = b->col[l];
        e->product[p] =
            (a->val != NULL ? ((const double *)a->val)[k] : 1) * (b->val != NULL ? ((const double *)b->val)[l] : 1);
    }
    show(job, "offsets", "offsets", e->offsets, a->nnz + 1);
    show(job, "source", "source: entry of A", e->source, e->n);
    show(job, "rank", "rank in the row of B", e->rank, e->n);
    show(job, "row", "row in C", e->row, e->n);
    show(job, "col", "column in C", e->col, e->n);
    explain_array(&job->page, "products", "products a b", SPMV_F64, e->product, e->n, NULL);
    return SPMV_OK;
}

/* Products by (row, column); the order of equal ones stays. */
static spmv_status sort(struct explain_job *job, struct expansion *e)
{
    int64_t sorted[EXPLAIN_MOST], number[EXPLAIN_MOST];
    for (int64_t p = 0; p < e->n; p++) {
        e->key[p] = e->row[p] * e->b->cols + e->col[p];
        number[p] = p;
    }
    const spmv_status st =
        explain_status(job, spmv_sort_by_key(job->ctx, SPMV_I64, 0, 64, e->key, number, 8, sorted, e->order, e->n));
    if (st != SPMV_OK)
        return st;
    explain_text(&job->page, "2. sort by the key row %lld + column; the sort is stable, so k ascends among equal keys",
                 (long long)e->b->cols);
    memcpy(e->key, sorted, (size_t)e->n * sizeof *sorted);
    for (int64_t p = 0; p < e->n; p++)
        e->sorted[p] = e->product[e->order[p]];
    show(job, "order", "order: product at the place", e->order, e->n);
    show(job, "key", "keys, sorted", e->key, e->n);
    explain_array(&job->page, "sorted", "products, sorted", SPMV_F64, e->sorted, e->n, NULL);
    return SPMV_OK;
}

/* The first product of each key is an entry of C. */
static spmv_status compress(struct explain_job *job, struct expansion *e)
{
    int64_t c_row_ptr[EXPLAIN_MOST + 1] = {0}, c_col[EXPLAIN_MOST];
    for (int64_t p = 0; p < e->n; p++)
        e->heads[p] = p == 0 || e->key[p] != e->key[p - 1];
    explain_text(&job->page, "3. compress: an entry of C starts where the key differs from the one before");
    show(job, "heads", "heads", e->heads, e->n);
    explain_next_trace(&job->page);
    const spmv_status st =
        explain_trace_steps(job, EXPLAIN_EXCLUSIVE, SPMV_ADD, SPMV_I64, NULL, e->heads, e->place, e->n);
    if (st != SPMV_OK)
        return st;
    for (int64_t p = 0; p < e->n; p++) {
        if (e->heads[p] == 0) {
            e->sum[e->entries - 1] += e->sorted[p];
            continue;
        }
        e->sum[e->entries] = e->sorted[p];
        c_col[e->entries] = e->col[e->order[p]];
        e->entries++;
        for (int64_t i = e->row[e->order[p]]; i < e->a->rows; i++)
            c_row_ptr[i + 1] = e->entries;
    }
    show(job, "place", "heads on the left", e->place, e->n);
    explain_text(&job->page, "entry of C: the sum of its products, one after the other");
    explain_array(&job->page, "C_val", "C, values", SPMV_F64, e->sum, e->entries, NULL);
    show(job, "C_col", "C, columns", c_col, e->entries);
    show(job, "C_row_ptr", "C, rows begin at", c_row_ptr, e->a->rows + 1);
    return SPMV_OK;
}

/* The library's product has the same bits. */
static spmv_status check(struct explain_job *job, const struct expansion *e)
{
    spmv_matrix *c = NULL;
    spmv_csr view;
    spmv_status st = explain_status(job, spmv_spgemm(job->ctx, e->a, e->b, NULL, &c));
    spmv_matrix_view(c, &view);
    if (st == SPMV_OK &&
        (view.nnz != e->entries || (view.nnz > 0 && memcmp(view.val, e->sum, (size_t)view.nnz * sizeof *e->sum) != 0)))
        st = report(SPMV_ERROR_CHECK, "the steps gave another product than the library");
    spmv_matrix_destroy(c);
    return st;
}

spmv_status explain_spgemm(struct explain_job *job, const char *const *words, int count)
{
    struct input second = {0};
    struct expansion *e = NULL;
    spmv_status st = SPMV_OK;
    if (count != 2)
        st = report(SPMV_ERROR_ARGUMENT, "explain --op spgemm needs two matrices: spmv explain --op spgemm A B");
    if (st == SPMV_OK)
        st = check_standard_input(job->o, words, count);
    if (st == SPMV_OK)
        st = load_matrix(job, words[0], &job->in);
    if (st == SPMV_OK)
        st = load_matrix(job, words[1], &second);
    if (st == SPMV_OK && job->in.view.cols != second.view.rows) {
        complain("%s is %lld x %lld and %s %lld x %lld: the columns of A must be the rows of B", words[0],
                 (long long)job->in.view.rows, (long long)job->in.view.cols, words[1], (long long)second.view.rows,
                 (long long)second.view.cols);
        st = SPMV_ERROR_SIZE;
    }
    if (st == SPMV_OK)
        st = allocate("the products", 1, sizeof *e, (void **)&e);
    if (st == SPMV_OK) {
        memset(e, 0, sizeof *e);
        e->a = &job->in.view;
        e->b = &second.view;
        show_operands(job, e, words);
        st = expand(job, e);
    }
    if (st == SPMV_OK)
        st = sort(job, e);
    if (st == SPMV_OK)
        st = compress(job, e);
    if (st == SPMV_OK)
        st = check(job, e);
    if (st == SPMV_OK) {
        job->n = e->n;
        explain_text(&job->page, "%lld product%s, %lld entr%s of C", (long long)e->n, plural(e->n),
                     (long long)e->entries, e->entries == 1 ? "y" : "ies");
        explain_end(job, -1);
    }
    free(e);
    input_free(&second);
    return st;
}
