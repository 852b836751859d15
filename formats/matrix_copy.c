/* Copies of matrices between host memory and the context's memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "formats/matrix_internal.h"

/* A copy that the host can make: both sides are in memory that it reads and writes. */
static void copy_on_host(spmv_context *ctx, const spmv_csr *a, spmv_matrix *b)
{
    const int64_t size = (int64_t)value_size(b->type, b->pattern);
#pragma omp parallel for num_threads(host_team(ctx, a->rows)) schedule(static)
    for (int64_t i = 0; i <= a->rows; i++)
        b->row_ptr[i] = row_first(a, i);
    enum { RANGE = 1 << 14 };
#pragma omp parallel for num_threads(host_team(ctx, a->nnz)) schedule(static)
    for (int64_t k = 0; k < a->nnz; k += RANGE) {
        const int64_t n = min_i64(RANGE, a->nnz - k);
        memcpy(b->col + k, a->col + k, (size_t)n * sizeof *b->col);
        if (size > 0)
            memcpy((char *)b->val + k * size, (const char *)a->val + k * size, (size_t)(n * size));
    }
}

/* Host memory to the device. */
static spmv_status copy_up(spmv_context *ctx, const spmv_csr *a, spmv_matrix *b)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows + 1;
    int64_t *wide = NULL;
    const void *row_ptr = a->row_ptr;
    if (a->row_ptr_bits == 32) {
        TRY(host_alloc(ctx, n * (int64_t)sizeof *wide, "row offsets", (void **)&wide));
        for (int64_t i = 0; i < n; i++)
            wide[i] = row_first(a, i);
        row_ptr = wide;
    }
    TRY(spmv_upload(ctx, row_ptr, b->row_ptr, n * (int64_t)sizeof *b->row_ptr));
    TRY(spmv_upload(ctx, a->col, b->col, a->nnz * (int64_t)sizeof *b->col));
    TRY(spmv_upload(ctx, a->val, b->val, a->nnz * (int64_t)value_size(b->type, b->pattern)));
done:
    host_free(wide);
    return st;
}

/* The device to host memory. */
static spmv_status copy_down(spmv_context *ctx, const spmv_csr *a, spmv_matrix *b)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows + 1;
    TRY(spmv_download(ctx, a->row_ptr, b->row_ptr, n * (a->row_ptr_bits / 8)));
    if (a->row_ptr_bits == 32) /* in place, from the last offset: the wide one ends further on */
        for (int64_t i = n - 1; i >= 0; i--) {
            int32_t narrow;
            memcpy(&narrow, (const char *)b->row_ptr + i * (int64_t)sizeof narrow, sizeof narrow);
            b->row_ptr[i] = narrow;
        }
    TRY(spmv_download(ctx, a->col, b->col, a->nnz * (int64_t)sizeof *b->col));
    TRY(spmv_download(ctx, a->val, b->val, a->nnz * (int64_t)value_size(b->type, b->pattern)));
done:
    return st;
}

/* to[0], ..., to[n] = offsets of 32 bits, by the primitives: their differences, and their sums. */
static spmv_status widen_on_device(spmv_context *ctx, const int32_t *offsets, int64_t *to, int64_t n)
{
    spmv_status st = SPMV_OK;
    int32_t *lengths = NULL;
    TRY(context_alloc(ctx, n * (int64_t)sizeof *lengths, (void **)&lengths));
    TRY(spmv_map(ctx, SPMV_MAP_NEG, SPMV_I32, offsets, lengths, n));
    TRY(spmv_map_binary(ctx, SPMV_ADD, SPMV_I32, offsets + 1, lengths, lengths, n));
    TRY(spmv_expand_offsets(ctx, lengths, 32, to, n));
done:
    spmv_free(ctx, lengths);
    return st;
}

static spmv_status copy_on_device(spmv_context *ctx, const spmv_csr *a, spmv_matrix *b)
{
    spmv_status st = SPMV_OK;
    if (a->row_ptr_bits == 32)
        TRY(widen_on_device(ctx, a->row_ptr, b->row_ptr, a->rows));
    else
        TRY(spmv_map(ctx, SPMV_MAP_COPY, SPMV_I64, a->row_ptr, b->row_ptr, a->rows + 1));
    TRY(spmv_map(ctx, SPMV_MAP_COPY, SPMV_I32, a->col, b->col, a->nnz));
    if (a->val != NULL)
        TRY(spmv_map(ctx, SPMV_MAP_COPY, SPMV_I32, a->val, b->val, a->nnz * (int64_t)(spmv_type_size(a->type) / 4)));
done:
    return st;
}

spmv_status spmv_matrix_copy(spmv_context *ctx, const spmv_csr *a, spmv_memory to, spmv_matrix **b)
{
    spmv_matrix *m = NULL;
    spmv_status st = context_need(ctx, "spmv_matrix_copy", "b", b);
    if (st != SPMV_OK)
        return st;
    *b = NULL;
    TRY(csr_check_shape(ctx, "spmv_matrix_copy", a));
    if (to != SPMV_MEMORY_HOST && to != SPMV_MEMORY_CONTEXT)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_matrix_copy: memory is %d, neither host nor context",
                            (int)to);
    const bool from_device = csr_on_device(ctx, a);
    const bool to_device = to == SPMV_MEMORY_CONTEXT && context_on_device(ctx);
    if (!from_device)
        TRY(csr_check(ctx, "spmv_matrix_copy", a, CSR_ANY_ORDER));
    TRY(matrix_allocate_in(ctx, to, a->rows, a->cols, a->nnz, a->type, a->val == NULL, &m));
    if (!from_device && !to_device)
        copy_on_host(ctx, a, m);
    else if (!from_device)
        TRY(copy_up(ctx, a, m));
    else if (!to_device)
        TRY(copy_down(ctx, a, m));
    else
        TRY(copy_on_device(ctx, a, m));
    *b = m;
    m = NULL;
done:
    spmv_matrix_destroy(m);
    return st;
}
