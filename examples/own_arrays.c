/* The library on a program's own arrays: a view of CSR arrays that the program owns, a plan, one
 * product, a check.
 *
 *        | 2 0 1 |   | 1 |   | 5 |
 *    y = | 0 3 0 | * | 2 | = | 6 |
 *        | 4 0 5 |   | 3 |   |19 |
 *
 * By hand:
 *
 *   cc own_arrays.c $(pkg-config --cflags --libs spmv) -o own_arrays
 *
 * With libspmv.a:
 *
 *   cc own_arrays.c $(pkg-config --cflags spmv) \
 *     $(pkg-config --static --libs spmv | sed s/-lspmv/-l:libspmv.a/) -o own_arrays
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

int main(void)
{
    enum { ROWS = 3, COLS = 3, NNZ = 5 };
    const int32_t row_ptr[ROWS + 1] = {0, 2, 3, 5};
    const int32_t col[NNZ] = {0, 2, 1, 0, 2};
    const double val[NNZ] = {2, 1, 3, 4, 5};
    const double host_x[COLS] = {1, 2, 3};
    const double expected[ROWS] = {5, 6, 19};
    double host_y[ROWS] = {0};

    /* the view points to the arrays above; nothing is copied */
    const spmv_csr a = {.rows = ROWS,
                        .cols = COLS,
                        .nnz = NNZ,
                        .row_ptr = row_ptr,
                        .row_ptr_bits = 32,
                        .col = col,
                        .val = val,
                        .type = SPMV_F64,
                        .memory = SPMV_MEMORY_HOST};

    spmv_status st = SPMV_OK;
    spmv_context *ctx = NULL;
    spmv_plan *plan = NULL;
    void *x = NULL, *y = NULL;
    int wrong = 0;

    CHECK(spmv_context_create(NULL, &ctx)); /* a GPU if there is one, else OpenMP */
    CHECK(spmv_matrix_check(ctx, &a));      /* checks the arrays once */
    CHECK(spmv_plan_create(ctx, &a, NULL, &plan));

    /* vectors are in context memory */
    CHECK(spmv_alloc(ctx, sizeof host_x, &x));
    CHECK(spmv_alloc(ctx, sizeof host_y, &y));
    CHECK(spmv_upload(ctx, host_x, x, sizeof host_x));
    CHECK(spmv_apply(plan, NULL, x, NULL, y)); /* y = A x */
    CHECK(spmv_download(ctx, y, host_y, sizeof host_y));

    for (int i = 0; i < ROWS; i++) {
        printf("y[%d] = %g\n", i, host_y[i]);
        wrong += host_y[i] != expected[i]; /* small integers: exact on every backend */
    }
    printf("%s: %s\n", spmv_context_describe(ctx), wrong == 0 ? "as computed by hand" : "WRONG");

done:
    spmv_free(ctx, y);
    spmv_free(ctx, x);
    spmv_plan_destroy(plan);
    spmv_context_destroy(ctx);
    return st != SPMV_OK || wrong != 0;
}
