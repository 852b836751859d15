/* spmv explain of the product as a pipeline of primitives: gather, map, segmented scan, gather.
 *
 * S. Sengupta, M. Harris, Y. Zhang, J. D. Owens, "Scan primitives for GPU computing", 2007, section
 * 4.2. The library's method "staged" is the same without the steps.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/explain/explain.h"
#include "app/input.h"
#include "app/job_memory.h"
#include "app/output.h"

/* The arrays between the primitives. */
struct pipeline {
    void *x, *gathered, *products, *scanned, *y;
    int64_t *last;
};

static spmv_status load_operands(struct explain_job *job, const char *const *words, int count, struct pipeline *p)
{
    spmv_status st = input_load(job->ctx, job->o, JOB_LOOK, words[0], &job->in);
    if (st == SPMV_OK)
        st = input_needs_real(&job->in, "spmv explain");
    const spmv_csr *const a = &job->in.view;
    const size_t size = spmv_type_size(job->o->type);
    char why[256];
    if (st == SPMV_OK)
        st = explain_check_size(job->o, "nonzeros in the matrix", a->nnz);
    if (st == SPMV_OK)
        st = explain_check_size(job->o, "rows in the matrix", a->rows);
    if (st == SPMV_OK)
        st = explain_check_size(job->o, "columns in the matrix", a->cols);
    if (st != SPMV_OK)
        return st;
    snprintf(why, sizeof why, "%.180s is %lld x %lld", words[0], (long long)a->rows, (long long)a->cols);
    st = allocate("x", a->cols, size, &p->x);
    if (st == SPMV_OK) {
        void *x = NULL;
        st = count > 1 ? vector_load(job->ctx, words[1], job->o->type, a->cols, "x", why, &x)
                       : known_vector(job->o->type, a->cols, false, &x);
        if (st == SPMV_OK && a->cols > 0)
            memcpy(p->x, x, (size_t)a->cols * size);
        if (count > 1)
            spmv_host_free(x);
        else
            free(x);
    }
    if (st == SPMV_OK)
        st = allocate("the gather", a->nnz, size, &p->gathered);
    if (st == SPMV_OK)
        st = allocate("the products", a->nnz, size, &p->products);
    if (st == SPMV_OK)
        st = allocate("the scan", a->nnz, size, &p->scanned);
    if (st == SPMV_OK)
        st = allocate("the head flags", a->nnz, 1, (void **)&job->heads);
    if (st == SPMV_OK)
        st = allocate("the ends of rows", a->rows, sizeof *p->last, (void **)&p->last);
    if (st == SPMV_OK)
        st = allocate("y", a->rows, size, &p->y);
    if (st == SPMV_OK)
        memset(p->y, 0, (size_t)a->rows * size); /* all bits 0 is also a floating-point zero */
    return st;
}

/* Sets a head flag where a row begins. last: the last element of each row, -1 for an empty row.
 * Returns the number of non-empty rows. */
static int64_t mark_rows(const struct explain_job *job, struct pipeline *p, int64_t *flags)
{
    const spmv_csr *const a = &job->in.view;
    const int64_t *const r = a->row_ptr;
    int64_t filled = 0;
    memset(job->heads, 0, (size_t)a->nnz);
    for (int64_t i = 0; i < a->rows; i++) {
        p->last[i] = r[i] < r[i + 1] ? r[i + 1] - 1 : -1;
        if (r[i] < r[i + 1])
            job->heads[r[i]] = 1;
        filled += r[i] < r[i + 1];
    }
    for (int64_t k = 0; k < a->nnz; k++)
        flags[k] = job->heads[k];
    return filled;
}

static void show_operands(struct explain_job *job, const struct pipeline *p)
{
    const spmv_csr *const a = &job->in.view;
    const spmv_type type = job->o->type;
    explain_text(&job->page, "y = A x, %s: %lld x %lld, %lld nonzero%s, %s; segmented scan by the rung %s",
                 job->in.argument, (long long)a->rows, (long long)a->cols, (long long)a->nnz, a->nnz == 1 ? "" : "s",
                 spmv_type_name(type), job->rung);
    explain_rung(job, "segscan", job->rung);
    explain_text(&job->page, "*: the step changed the cell; |: a segment starts in the cell's range");
    if (a->val != NULL)
        explain_array(&job->page, "V", "V, values", type, a->val, a->nnz, NULL);
    explain_array(&job->page, "C", "C, columns", SPMV_I32, a->col, a->nnz, NULL);
    explain_array(&job->page, "R", "R, rows begin at", SPMV_I64, a->row_ptr, a->rows + 1, NULL);
    explain_array(&job->page, "X", "X, the vector", type, p->x, a->cols, NULL);
}

/* The pipeline: gather, map, segmented scan, gather. */
static spmv_status show_pipeline(struct explain_job *job, struct pipeline *p)
{
    const spmv_csr *const a = &job->in.view;
    const spmv_type type = job->o->type;
    int64_t flags[EXPLAIN_MOST];
    spmv_status st = explain_status(job, spmv_gather(job->ctx, type, p->x, a->cols, a->col, 32, p->gathered, a->nnz));
    if (st == SPMV_OK && a->val != NULL)
        st = explain_status(job, spmv_map_binary(job->ctx, SPMV_MUL, type, a->val, p->gathered, p->products, a->nnz));
    if (st != SPMV_OK)
        return st;
    if (a->val == NULL) /* a pattern: every value is 1 */
        memcpy(p->products, p->gathered, (size_t)a->nnz * spmv_type_size(type));
    const int64_t filled = mark_rows(job, p, flags);
    explain_array(&job->page, "G", "G = X[C], gather", type, p->gathered, a->nnz, NULL);
    explain_array(&job->page, "P", a->val != NULL ? "P = V G, product" : "P = G, a pattern", type, p->products, a->nnz,
                  NULL);
    explain_array(&job->page, "flags", "head flags, from R", SPMV_I64, flags, a->nnz, NULL);
    explain_text(&job->page, "segmented scan of P");
    st = explain_trace_steps(job, EXPLAIN_INCLUSIVE, SPMV_ADD, type, job->heads, p->products, p->scanned, a->nnz);
    if (st != SPMV_OK)
        return st;
    explain_array(&job->page, "S", "S, scanned", type, p->scanned, a->nnz, job->heads);
    explain_array(&job->page, "last", "L, last of each row", SPMV_I64, p->last, a->rows, NULL);
    if (filled < a->rows)
        explain_text(&job->page, "L = -1: the row is empty, so the filtered gather skips it and y keeps its 0");
    st = explain_status(job, spmv_gather(job->ctx, type, p->scanned, a->nnz, p->last, 64, p->y, a->rows));
    explain_array(&job->page, "y", "y = S[L], gather", type, p->y, a->rows, NULL);
    explain_end(job, a->nnz - filled);
    return st;
}

spmv_status explain_product(struct explain_job *job, const char *const *words, int count)
{
    struct pipeline p = {0};
    spmv_status st = SPMV_OK;
    if (count < 1)
        st = report(SPMV_ERROR_ARGUMENT,
                    "explain needs a matrix, or --op with the name of a primitive (scan, sort ...) and values");
    else if (count > 2) {
        complain("unexpected argument %s: spmv explain A [x]", words[2]);
        st = SPMV_ERROR_ARGUMENT;
    }
    if (st == SPMV_OK)
        st = check_standard_input(job->o, words, count);
    if (st == SPMV_OK)
        st = load_operands(job, words, count, &p);
    if (st == SPMV_OK) {
        const spmv_csr *const a = &job->in.view;
        json_put(job->more, "matrix",
                 json_pack("{s:o, s:I, s:I, s:I}", "name", json_text(job->in.name), "rows", (json_int_t)a->rows, "cols",
                           (json_int_t)a->cols, "nnz", (json_int_t)a->nnz));
        job->n = a->nnz;
        show_operands(job, &p);
        st = show_pipeline(job, &p);
    }
    free(p.x);
    free(p.gathered);
    free(p.products);
    free(p.scanned);
    free(p.y);
    free(p.last);
    return st;
}
