/* Checks of the matrices of a product, and of the memory that it takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "backend.h"
#include "spgemm_internal.h"

/* ------------------------------------------------------ arrays that the host cannot read */

/* The first index with a number outside of lowest <= number < limit; n if there is none. */
static spmv_status first_outside(spmv_context *ctx, const void *numbers, int bits, int64_t lowest, int64_t limit,
                                 int64_t n, int64_t *first)
{
    void *scratch = NULL;
    int64_t value = 0;
    *first = n;
    if (n == 0)
        return SPMV_OK;
    const spmv_status st = context_scratch(ctx, ctx->backend->index_check_scratch(ctx, n), &scratch);
    return st != SPMV_OK ? st : ctx->backend->index_check(ctx, numbers, bits, lowest, limit, n, first, &value, scratch);
}

spmv_status spgemm_differences(spmv_context *ctx, const void *from, int bits, void *to, int64_t n)
{
    const spmv_type type = bits == 32 ? SPMV_I32 : SPMV_I64;
    const spmv_status st = spmv_map(ctx, SPMV_MAP_NEG, type, from, to, n);
    return st != SPMV_OK ? st : spmv_map_binary(ctx, SPMV_ADD, type, (const char *)from + bits / 8, to, to, n);
}

static spmv_status check_offsets(spmv_context *ctx, const char *name, const spmv_csr *a, void *lengths)
{
    spmv_status st = SPMV_OK;
    const int64_t size = a->row_ptr_bits / 8;
    char ends[2][sizeof(int64_t)];
    int64_t bad = 0;
    TRY(spmv_download(ctx, a->row_ptr, ends[0], size));
    TRY(spmv_download(ctx, (const char *)a->row_ptr + a->rows * size, ends[1], size));
    int64_t first = 0, last = 0;
    if (size == 4) {
        int32_t narrow[2];
        memcpy(&narrow[0], ends[0], 4);
        memcpy(&narrow[1], ends[1], 4);
        first = narrow[0];
        last = narrow[1];
    } else {
        memcpy(&first, ends[0], 8);
        memcpy(&last, ends[1], 8);
    }
    if (first != 0 || last != a->nnz)
        return context_fail(ctx, SPMV_ERROR_SIZE, "%s: row_ptr runs from %lld to %lld, but there are %lld entries",
                            name, (long long)first, (long long)last, (long long)a->nnz);
    TRY(first_outside(ctx, a->row_ptr, a->row_ptr_bits, 0, a->nnz + 1, a->rows + 1, &bad));
    if (bad <= a->rows)
        return context_fail(ctx, SPMV_ERROR_SIZE, "%s: row_ptr[%lld] is not between 0 and the %lld entries", name,
                            (long long)bad, (long long)a->nnz);
    TRY(spgemm_differences(ctx, a->row_ptr, a->row_ptr_bits, lengths, a->rows));
    TRY(first_outside(ctx, lengths, a->row_ptr_bits, 0, INT64_MAX, a->rows, &bad));
    if (bad < a->rows)
        st = context_fail(ctx, SPMV_ERROR_SIZE, "%s: row %lld ends before it starts", name, (long long)bad);
done:
    return st;
}

/* Columns are in range, and the difference of neighbours in a row is at least 1. The differences at
 * the starts of rows are replaced by 1. */
static spmv_status check_columns(spmv_context *ctx, const char *name, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    int32_t *steps = NULL, *ones = NULL;
    const int32_t one = 1;
    int64_t bad = 0;
    TRY(first_outside(ctx, a->col, 32, 0, a->cols, a->nnz, &bad));
    if (bad < a->nnz)
        return context_fail(ctx, SPMV_ERROR_SIZE, "%s: entry %lld: its column is outside the %lld columns", name,
                            (long long)bad, (long long)a->cols);
    TRY(context_alloc(ctx, a->nnz * (int64_t)sizeof *steps, (void **)&steps));
    TRY(context_alloc(ctx, a->rows * (int64_t)sizeof *ones, (void **)&ones));
    TRY(spmv_map_index(ctx, SPMV_I32, &one, NULL, ones, a->rows));
    TRY(spgemm_differences(ctx, a->col, 32, steps + 1, a->nnz - 1));
    TRY(spmv_scatter(ctx, SPMV_I32, ones, a->row_ptr, a->row_ptr_bits, steps, a->nnz, a->rows));
    TRY(first_outside(ctx, steps + 1, 32, 1, INT64_MAX, a->nnz - 1, &bad));
    if (bad < a->nnz - 1)
        st = context_fail(ctx, SPMV_ERROR_SIZE,
                          "%s: entry %lld: its column is not greater than the one before it: columns must ascend in "
                          "each row",
                          name, (long long)bad + 1);
done:
    spmv_free(ctx, steps);
    spmv_free(ctx, ones);
    return st;
}

static spmv_status check_on_device(spmv_context *ctx, const char *name, const spmv_csr *a)
{
    spmv_status st = SPMV_OK;
    void *lengths = NULL;
    TRY(context_alloc(ctx, a->rows * (a->row_ptr_bits / 8), &lengths));
    TRY(check_offsets(ctx, name, a, lengths));
    if (a->nnz > 0)
        TRY(check_columns(ctx, name, a));
done:
    spmv_free(ctx, lengths);
    return st;
}

spmv_status spgemm_check(spmv_context *ctx, const char *name, const spmv_csr *a)
{
    return csr_on_device(ctx, a) ? check_on_device(ctx, name, a) : csr_check(ctx, name, a, CSR_SORTED);
}

/* ------------------------------------------------------------------------------- memory */

spmv_status spgemm_working_bytes(struct spmv_multiply_plan *plan, int64_t bytes)
{
    plan->working_bytes = max_i64(plan->working_bytes, bytes);
    if (plan->max_bytes == 0 || bytes <= plan->max_bytes)
        return SPMV_OK;
    return context_fail(plan->ctx, SPMV_ERROR_MEMORY,
                        "spmv_multiply: the method %s needs %lld bytes (%.3g GB) of working memory, %lld are allowed",
                        plan->method->name, (long long)bytes, (double)bytes * 1e-9, (long long)plan->max_bytes);
}

bool spgemm_host_has(int64_t bytes)
{
    enum { SMALL = 1 << 24 }; /* asking the system takes longer than a small product */
    return bytes <= SMALL || bytes <= spmv_memory_available(NULL, NULL);
}

spmv_status spgemm_room_for_columns(struct spmv_multiply_plan *plan, int64_t nnz)
{
    int64_t bytes = 0;
    if (!multiply_fits(nnz, sizeof *plan->col, &bytes))
        bytes = INT64_MAX;
    if (spgemm_host_has(bytes))
        return SPMV_OK;
    char what[128];
    snprintf(what, sizeof what, "spmv_multiply: the columns of at least %lld entries of C", (long long)nnz);
    return context_fail_memory(plan->ctx, what, bytes);
}
