/* B = transpose(A): the entries of A, sorted by column with the stable counting sort of counting.h.
 *
 * F. G. Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted
 * transposition", ACM TOMS 4(3), 1978, here in parallel shares of equal numbers of entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/coo/counting.h"

static void count_columns(const spmv_csr *a, int64_t first, int64_t end, int64_t *count)
{
    for (int64_t k = first; k < end; k++)
        count[a->col[k]]++;
}

/* Moves the entries first <= k < end of A. next: the position of this share's next entry of a
 * column. from (its memory may be NULL): the entry of A at each position of B. */
static inline void move_sized(const spmv_csr *a, int64_t first, int64_t end, int64_t *next, spmv_matrix *b,
                              struct entry_numbers from, size_t size)
{
    for (int64_t k = first, row = first < end ? row_of_entry(a, first) : 0; k < end; row++) {
        const int64_t row_end = min_i64(end, row_first(a, row + 1));
        for (; k < row_end; k++) {
            const int64_t at = next[a->col[k]]++;
            b->col[at] = (int32_t)row;
            copy_value(b->val, at, a->val, k, size);
            if (from.number == NULL)
                continue;
            if (from.bits == 32)
                ((int32_t *)from.number)[at] = (int32_t)k;
            else
                ((int64_t *)from.number)[at] = k;
        }
    }
}

static void move(const spmv_csr *a, int64_t first, int64_t end, int64_t *next, spmv_matrix *b,
                 struct entry_numbers from)
{
    SIZED(value_size(b->type, b->pattern), move_sized(a, first, end, next, b, from, SIZE));
}

spmv_status csr_transpose_numbered(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b, struct entry_numbers from)
{
    spmv_status st = SPMV_OK;
    struct counting counting = {.counts = NULL};
    spmv_matrix *m = NULL;
    const bool pattern = a->val == NULL;
    const int64_t entry_bytes = (int64_t)(sizeof(int32_t) + value_size(a->type, pattern));
    *b = NULL;
    TRY(matrix_allocate(ctx, a->cols, a->rows, a->nnz, a->type, pattern, &m));
    TRY(counting_begin(ctx, a->nnz, a->cols, a->nnz * entry_bytes, &counting));
#pragma omp parallel for num_threads((int)counting.shares) schedule(static, 1)
    for (int64_t p = 0; p < counting.shares; p++) {
        int64_t *count = counting_of(&counting, p);
        if (counting.bins > 0)
            memset(count, 0, (size_t)counting.bins * sizeof *count);
        count_columns(a, counting_first(&counting, p), counting_first(&counting, p + 1), count);
    }
    TRY(counting_offsets(ctx, &counting, m->row_ptr));
#pragma omp parallel for num_threads((int)counting.shares) schedule(static, 1)
    for (int64_t p = 0; p < counting.shares; p++)
        move(a, counting_first(&counting, p), counting_first(&counting, p + 1), counting_of(&counting, p), m, from);
    *b = m;
    m = NULL;
done:
    counting_end(&counting);
    spmv_matrix_destroy(m);
    return st;
}

spmv_status csr_transpose(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b)
{
    return csr_transpose_numbered(ctx, a, b, (struct entry_numbers){NULL, 0});
}

/* The transpose of a matrix in the device's memory. */
static spmv_status transpose_on_device(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *m = NULL;
    void *from = NULL;
    const int bits = a->nnz <= INT32_MAX ? 32 : 64;
    if (a->rows > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "spmv_matrix_transpose: the transpose of %lld rows would have as many columns, at most %d "
                            "are possible",
                            (long long)a->rows, INT32_MAX);
    if (!values_aligned(ctx, a->type, a->val))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_matrix_transpose: val is not aligned to %zu bytes",
                            spmv_type_size(a->type));
    TRY(matrix_allocate_in(ctx, SPMV_MEMORY_CONTEXT, a->cols, a->rows, a->nnz, a->type, a->val == NULL, &m));
    TRY(context_alloc(ctx, a->nnz * (bits / 8), &from));
    TRY(transpose_cuda(ctx, a, m->row_ptr, 64, m->col, from, bits));
    if (a->val != NULL && a->nnz > 0)
        TRY(take_values_cuda(ctx, a->type, false, a->val, from, bits, m->val, a->nnz));
    *b = m;
    m = NULL;
done:
    context_free(ctx, from);
    context_freed(ctx);
    spmv_matrix_destroy(m);
    return st;
}

spmv_status matrix_transpose_pattern(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b, struct entry_numbers from)
{
    spmv_csr pattern = *a;
    pattern.val = NULL;
    if (csr_on_device(ctx, a)) {
        spmv_status st = matrix_allocate_in(ctx, SPMV_MEMORY_CONTEXT, a->cols, a->rows, a->nnz, a->type, true, b);
        if (st == SPMV_OK)
            st = transpose_cuda(ctx, &pattern, (*b)->row_ptr, 64, (*b)->col, from.number, from.bits);
        return st;
    }
    return csr_transpose_numbered(ctx, &pattern, b, from);
}

spmv_status spmv_matrix_transpose(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b)
{
    spmv_status st = context_need(ctx, "spmv_matrix_transpose", "b", b);
    if (st != SPMV_OK)
        return st;
    *b = NULL;
    st = csr_check_shape(ctx, "spmv_matrix_transpose", a);
    if (st == SPMV_OK && csr_on_device(ctx, a))
        return transpose_on_device(ctx, a, b);
    if (st == SPMV_OK)
        st = csr_check(ctx, "spmv_matrix_transpose", a, CSR_ANY_ORDER);
    if (st == SPMV_OK)
        st = csr_transpose(ctx, a, b);
    if (st == SPMV_OK && a->memory == SPMV_MEMORY_CONTEXT)
        (*b)->ctx = ctx;
    return st;
}

#define CONJUGATE(T)                                                                                                   \
    _Pragma("omp parallel for num_threads(host_team(ctx, b->nnz)) schedule(static)") for (int64_t k = 0; k < b->nnz;   \
                                                                                          k++)                         \
    {                                                                                                                  \
        ((T *)b->val)[k].im = -((T *)b->val)[k].im;                                                                    \
    }
void csr_conjugate(spmv_context *ctx, spmv_matrix *b)
{
    if (b->type == SPMV_C64) {
        CONJUGATE(spmv_c64)
    } else if (b->type == SPMV_C128) {
        CONJUGATE(spmv_c128)
    }
}
#undef CONJUGATE
