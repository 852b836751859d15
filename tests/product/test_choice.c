/* The method that "auto" chooses on CUDA, the same every time, the methods that it passes over, and the
 * plan's description of the matrix and its layout.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>

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

struct passed {
    const char *method, *reason;
};

/* Checks which method a plan takes, and all that it passes over. */
static void expect_passed(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *o, const char *taken,
                          const struct passed *passed)
{
    spmv_plan *plan = NULL;
    spmv_plan_info info;
    const char *reason = NULL, *method;
    int i = 0;
    assert_ok(ctx, spmv_plan_create(ctx, a, o, &plan));
    assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
    assert_string_equal(info.method, taken);
    for (; (method = spmv_plan_passed_over(plan, i, &reason)) != NULL; i++) {
        if (passed[i].method == NULL)
            fail_msg("%s too: %s", method, reason);
        assert_string_equal(method, passed[i].method);
        assert_string_equal(reason, passed[i].reason);
        assert_string_equal(method, spmv_method_name(SPMV_BACKEND_CUDA, i)); /* the order of the table */
        assert_string_equal(spmv_plan_passed_over(plan, i, NULL), method);
    }
    assert_null(passed[i].method);
    if (o->method == NULL)
        assert_string_equal(spmv_method_name(SPMV_BACKEND_CUDA, i), taken);
    const char *const unchanged = reason;
    assert_null(spmv_plan_passed_over(plan, i, &reason));
    assert_null(spmv_plan_passed_over(plan, -1, &reason));
    assert_null(spmv_plan_passed_over(plan, INT_MIN, &reason));
    assert_null(spmv_plan_passed_over(NULL, 0, &reason));
    assert_ptr_equal(reason, unchanged);
    spmv_plan_destroy(plan);
}

static void reasons(void **state)
{
    spmv_context *ctx = *state;
    enum { ROWS = 104000 }; /* a large matrix for the emulated GPU only */
    static const bool large =
#ifdef HOST_CUDA
        true;
#else
        false;
#endif
    static const char alike[] = "rows are alike, and few bytes of x";
    static const char several[] = "no products of several vectors or with strides", small[] = "a small matrix";
    static int64_t row_ptr[ROWS + 1];
    static int32_t col[ROWS];
    static double val[2 * ROWS];
    for (int i = 0; i <= ROWS; i++)
        row_ptr[i] = i;
    for (int i = 0; i < ROWS; i++)
        col[i] = (int32_t)((i * 7919LL) % ROWS);
    spmv_csr a = {.rows = ROWS,
                  .cols = ROWS,
                  .nnz = ROWS,
                  .row_ptr = row_ptr,
                  .row_ptr_bits = 64,
                  .col = col,
                  .val = val,
                  .type = SPMV_F64,
                  .memory = SPMV_MEMORY_HOST};
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    expect_passed(ctx, &a, &o, "tiles",
                  (struct passed[]){{"slices", large ? "neighbouring rows have different offsets" : small},
                                    {"long", large ? "rows are not long" : small},
                                    {"groups", large ? "neighbouring rows have different columns" : small},
                                    {"padded", large ? "rows are short" : small},
                                    {"blocked", "x fits in the last-level cache"},
                                    {NULL}});
    o.vectors = 2;
    expect_passed(ctx, &a, &o, "columns",
                  (struct passed[]){{"slices", several},
                                    {"long", several},
                                    {"groups", several},
                                    {"padded", several},
                                    {"blocked", several},
                                    {"tiles", several},
                                    {"panels", "few vectors"},
                                    {"abreast", "few vectors"},
                                    {"octets", "few vectors"},
                                    {"wide", "few vectors"},
                                    {NULL}});
    /* Each panel has one column, or a column for each row; rows of x of 64 and 256 bytes; rows of one entry, of 4, a long
     * one, rows of 8 and of 0 entries in turn. */
    for (int i = 0; i < 6; i++) {
        static int32_t shared[ROWS];
        for (int r = 0; r < ROWS; r++)
            shared[r] = r / 4;
        static int64_t other[ROWS + 1];
        const bool same = i % 2 == 1 && large && i < 4, longer = i == 4, differ = i == 5,
                   wide = i == 2 || i == 3 || differ;
        spmv_csr b = a;
        b.col = same ? shared : col;
        b.rows = wide && !same ? ROWS / 4 : ROWS;
        for (int r = 1; r <= b.rows; r++) /* of the long ones, the first row has 64 entries */
            other[r] = longer ? (r + 63 < ROWS ? r + 63 : ROWS) : differ ? (r + 1) / 2 * 8 : 4 * r;
        b.row_ptr = longer || b.rows < ROWS ? other : row_ptr;
        o.vectors = wide ? 32 : 8;
        expect_passed(ctx, &b, &o,
                      same     ? "panels"
                      : differ ? "wide"
                      : wide   ? "abreast"
                      : longer ? "octets"
                               : "columns",
                      (struct passed[]){
                          {"slices", several},
                          {"long", several},
                          {"groups", several},
                          {"padded", several},
                          {"blocked", several},
                          {"tiles", several},
                          {same ? NULL : "panels", large ? "neighbouring rows share few columns" : small},
                          {wide && !differ ? NULL : "abreast", differ   ? "neighbouring rows differ in length"
                                                               : longer ? "a row is long for so few gathers"
                                                                        : "rows are short"},
                          {longer ? NULL : "octets", differ ? "more than 64 bytes or 16 vectors in a row of x" : alike},
                          {differ ? NULL : "wide", alike},
                          {NULL}});
    }
    for (int vectors = 16; vectors <= 32; vectors += 16) { /* of 16 bits: 32 and 64 bytes */
        spmv_plan *plan = NULL;
        spmv_plan_info info;
        spmv_csr b = a;
        b.type = SPMV_BF16;
        o.vectors = vectors;
        assert_ok(ctx, spmv_plan_create(ctx, &b, &o, &plan));
        assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
        assert_string_equal(info.method, vectors == 16 ? "columns" : "wide");
        spmv_plan_destroy(plan);
    }
    o.vectors = 1;
    o.method = "padded";
    expect_passed(ctx, &a, &o, "padded", (struct passed[]){{NULL}});
    o.method = NULL;
    o.compression = SPMV_COMPRESSION_NONE;
    a.val = NULL;
    expect_passed(ctx, &a, &o, "tiles",
                  (struct passed[]){{"slices", "compression is off"},
                                    {"long", large ? "rows are not long" : small},
                                    {"groups", "no values"},
                                    {"padded", "compression is off"},
                                    {"blocked", "compression is off"},
                                    {NULL}});
    a.val = val;
    a.type = SPMV_C128;
    static const char complex_types[] = "no products in complex types";
    expect_passed(ctx, &a, &o, "tiles",
                  (struct passed[]){{"slices", complex_types},
                                    {"long", complex_types},
                                    {"groups", complex_types},
                                    {"padded", complex_types},
                                    {"blocked", "complex values"},
                                    {NULL}});
}

SUPPORT_MAIN(with_context(by_row_lengths), with_context(reasons))
