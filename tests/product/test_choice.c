/* The method that "auto" chooses on CUDA, the same every time, and the plan's description of the
 * matrix and its layout.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"

/* A matrix whose first row has `first` entries and each other row `each`, in columns 0, 1, 2,
 * ... */
static void expect(spmv_context *ctx, int64_t rows, int64_t each, int64_t first, const char *layout)
{
    int64_t *row_ptr = malloc((size_t)(rows + 1) * sizeof *row_ptr);
    assert_non_null(row_ptr);
    row_ptr[0] = 0;
    for (int64_t i = 0; i < rows; i++)
        row_ptr[i + 1] = row_ptr[i] + (i == 0 ? first : each);
    const int64_t nnz = row_ptr[rows];
    int32_t *col = calloc((size_t)nnz + 1, sizeof *col);
    assert_non_null(col);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            col[k] = (int32_t)(row_ptr[i + 1] - 1 - k); /* descending, so the plan has no slices */
    const spmv_csr a = {.rows = rows,
                        .cols = first > each ? first : each,
                        .nnz = nnz,
                        .row_ptr = row_ptr,
                        .row_ptr_bits = 64,
                        .col = col,
                        .memory = SPMV_MEMORY_HOST};
    for (int again = 0; again < 2; again++) {
        spmv_plan *plan = NULL;
        spmv_plan_info info;
        assert_ok(ctx, spmv_plan_create(ctx, &a, NULL, &plan));
        assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
        assert_string_equal(info.method, "tiles");
        assert_non_null(strstr(info.why, "whole rows"));
        if (strstr(info.layout, layout) == NULL)
            fail_msg("\"%s\" does not contain \"%s\"", info.layout, layout);
        spmv_plan_destroy(plan);
    }
    support_free(row_ptr, col);
}

static void by_row_lengths(void **state)
{
    spmv_context *ctx = *state;
    expect(ctx, 30000, 4, 4, "4 entries on average, 4 at most");
    expect(ctx, 30000, 4, 4,
           "lanes per row: 1 (100 % of these tiles); 16-bit columns in 100 % of the tiles; 0 rows longer");
    expect(ctx, 300, 180, 180, "180 entries on average, 180 at most");
    expect(ctx, 300, 400, 200000, "lanes per row: 32");
    expect(ctx, 300, 3, 200000, "200000 at most");
    expect(ctx, 300, 3, 200000, "; 1 row longer than a tile, 0 empty");
}

SUPPORT_MAIN(with_context(by_row_lengths))
