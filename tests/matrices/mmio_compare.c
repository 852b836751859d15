/* Compares the reader of spmv with the original mmio. Both read every FILE; the entries that mmio
 * reads become CSR by spmv_matrix_from_coo, and the two matrices must have the same bits.
 *
 * usage: mmio_compare FILE...         prints "FILE same" or "FILE differs: why"; exit code 1 if one
 *                                     differs
 *        mmio_compare --seconds FILE  how long mmio takes to read the entries of a coordinate file
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/spmv.h>
#include <stdbool.h>
#include <stdio.h> /* mmio.h uses FILE and does not include this */

#include <mmio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct entries {
    MM_typecode code;
    int rows, cols, n;
    int *row, *col; /* 1-based */
    double *val;    /* complex files: two per entry */
};

static bool allocate(struct entries *e, size_t n)
{
    e->row = calloc(n + 1, sizeof *e->row);
    e->col = calloc(n + 1, sizeof *e->col);
    e->val = calloc(2 * n + 2, sizeof *e->val);
    return e->row != NULL && e->col != NULL && e->val != NULL;
}

static const char *read_coordinates(FILE *f, struct entries *e)
{
    if (mm_read_mtx_crd_size(f, &e->rows, &e->cols, &e->n) != 0)
        return "mmio rejects the size line";
    if (!allocate(e, (size_t)e->n))
        return "no memory";
    MM_typecode code;
    memcpy(code, e->code, sizeof code);
    if (mm_is_integer(code))
        mm_set_real(&code); /* integers are read as reals */
    return mm_read_mtx_crd_data(f, e->rows, e->cols, e->n, e->row, e->col, e->val, code) == 0 ? NULL
                                                                                              : "mmio rejects an entry";
}

/* mmio has no function for the entries of an array; this follows its example program. */
static const char *read_array(FILE *f, struct entries *e)
{
    if (mm_read_mtx_array_size(f, &e->rows, &e->cols) != 0)
        return "mmio rejects the size line";
    if (!allocate(e, (size_t)e->rows * (size_t)e->cols))
        return "no memory";
    for (int col = 1; col <= e->cols; col++)
        for (int row = mm_is_general(e->code) ? 1 : mm_is_skew(e->code) ? col + 1 : col; row <= e->rows; row++) {
            const int parts = mm_is_complex(e->code) ? 2 : 1;
            double value[2] = {0, 0};
            for (int i = 0; i < parts; i++)
                if (fscanf(f, "%lg", &value[i]) != 1)
                    return "an entry is missing";
            if (value[0] == 0 && value[1] == 0)
                continue;
            e->row[e->n] = row;
            e->col[e->n] = col;
            memcpy(&e->val[parts * e->n++], value, (size_t)parts * sizeof *value);
        }
    return NULL;
}

static const char *read_with_mmio(const char *path, struct entries *e)
{
    *e = (struct entries){.n = 0};
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return "cannot be opened";
    const char *why = mm_read_banner(f, &e->code) != 0 ? "mmio rejects the banner" : NULL;
    if (why == NULL)
        why = mm_is_coordinate(e->code) ? read_coordinates(f, e) : read_array(f, e);
    fclose(f);
    return why;
}

static void release(struct entries *e)
{
    free(e->row);
    free(e->col);
    free(e->val);
}

/* A matrix of the entries and their mirrored entries. */
static spmv_status build(spmv_context *ctx, const struct entries *e, spmv_matrix **matrix)
{
    int64_t *const row = malloc(sizeof *row * (2 * (size_t)e->n + 1));
    int32_t *const col = malloc(sizeof *col * (2 * (size_t)e->n + 1));
    const int parts = mm_is_complex(e->code) ? 2 : 1;
    double *const val = malloc(sizeof *val * (4 * (size_t)e->n + 1));
    int64_t n = 0;
    for (int k = 0; row != NULL && col != NULL && val != NULL && k < e->n; k++) {
        row[n] = e->row[k] - 1;
        col[n] = e->col[k] - 1;
        memcpy(&val[parts * n++], &e->val[parts * k], (size_t)parts * sizeof *val);
        if (mm_is_general(e->code) || e->row[k] == e->col[k])
            continue;
        row[n] = e->col[k] - 1;
        col[n] = e->row[k] - 1;
        for (int i = 0; i < parts; i++) {
            const bool negated = mm_is_skew(e->code) || (mm_is_hermitian(e->code) && i == 1);
            val[parts * n + i] = negated ? -e->val[parts * k + i] : e->val[parts * k + i];
        }
        n++;
    }
    const spmv_status st = spmv_matrix_from_coo(ctx, e->rows, e->cols, n, row, col, mm_is_pattern(e->code) ? NULL : val,
                                                parts == 2 ? SPMV_C128 : SPMV_F64, matrix, NULL);
    free(row);
    free(col);
    free(val);
    return st;
}

static const char *difference(const spmv_matrix *x, const spmv_matrix *y)
{
    spmv_csr a, b;
    spmv_matrix_view(x, &a);
    spmv_matrix_view(y, &b);
    if ((a.val != NULL && a.type != b.type) || a.rows != b.rows || a.cols != b.cols || a.nnz != b.nnz ||
        !a.val != !b.val)
        return "other sizes";
    if (memcmp(a.row_ptr, b.row_ptr, ((size_t)a.rows + 1) * sizeof(int64_t)) != 0)
        return "other rows";
    if (a.nnz > 0 && memcmp(a.col, b.col, (size_t)a.nnz * sizeof *a.col) != 0)
        return "other columns";
    if (a.nnz > 0 && a.val != NULL && memcmp(a.val, b.val, (size_t)a.nnz * spmv_type_size(a.type)) != 0)
        return "other values";
    return NULL;
}

static const char *compare(spmv_context *ctx, const char *path)
{
    struct entries e;
    spmv_matrix *want = NULL, *got = NULL;
    const char *why = read_with_mmio(path, &e);
    if (why == NULL && build(ctx, &e, &want) != SPMV_OK)
        why = spmv_last_error(ctx);
    if (why == NULL && spmv_matrix_read(ctx, path, NULL, &got, NULL, 0) != SPMV_OK)
        why = spmv_last_error(ctx);
    if (why == NULL)
        why = difference(want, got);
    spmv_matrix_destroy(want);
    spmv_matrix_destroy(got);
    release(&e);
    return why;
}

static int tell_seconds(const char *path)
{
    struct timespec began, ended;
    struct entries e;
    clock_gettime(CLOCK_MONOTONIC, &began);
    const char *const why = read_with_mmio(path, &e);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    release(&e);
    if (why != NULL) {
        fprintf(stderr, "%s: %s\n", path, why);
        return 1;
    }
    printf("%.6f\n", (double)(ended.tv_sec - began.tv_sec) + 1e-9 * (double)(ended.tv_nsec - began.tv_nsec));
    return 0;
}

int main(int argc, char **argv)
{
    int different = 0;
    spmv_context *ctx = NULL;
    if (argc == 3 && strcmp(argv[1], "--seconds") == 0)
        return tell_seconds(argv[2]);
    if (argc < 2 || spmv_context_create(NULL, &ctx) != SPMV_OK) {
        fprintf(stderr, "usage: mmio_compare FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        const char *const why = compare(ctx, argv[i]);
        different += why != NULL;
        printf("%s %s%s\n", argv[i], why == NULL ? "same" : "differs: ", why == NULL ? "" : why);
    }
    spmv_context_destroy(ctx);
    return different > 0;
}
