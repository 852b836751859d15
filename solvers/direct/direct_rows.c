/* The matrix of a direct solver on a GPU: its rows in the layout of the library, and what is asked of them. The kernels are
 * in direct_rows.cu.
 *
 * Columns that do not ascend are sorted by two transpositions, whose sort is stable: equal columns of a row become
 * neighbours in the order of A, and their values are added in that order, as on the host.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/direct/direct_rows.h"

#include <spmv/primitives.h>

static spmv_status get(spmv_context *ctx, struct direct_rows *rows, int64_t bytes, void **memory)
{
    const spmv_status st = spmv_alloc(ctx, max_i64(bytes, 1), memory);
    if (st == SPMV_OK)
        rows->bytes += bytes;
    return st;
}

/* Sets row_ptr and col where columns ascend: copies. */
static spmv_status copy_pattern(spmv_context *ctx, const spmv_csr *a, struct direct_rows *rows)
{
    spmv_status st = SPMV_OK;
    TRY(get(ctx, rows, (a->rows + 1) * 4, (void **)&rows->row_ptr));
    TRY(get(ctx, rows, a->nnz * 4, (void **)&rows->col));
    if (a->row_ptr_bits == 32)
        TRY(spmv_map(ctx, SPMV_MAP_COPY, SPMV_I32, a->row_ptr, rows->row_ptr, a->rows + 1));
    else
        TRY(direct_narrow_cuda(ctx, a->row_ptr, rows->row_ptr, a->rows + 1));
    TRY(spmv_map(ctx, SPMV_MAP_COPY, SPMV_I32, a->col, rows->col, a->nnz));
done:
    return st;
}

/* The same where columns are in any order, or repeat. */
static spmv_status sort_pattern(spmv_context *ctx, const spmv_csr *a, struct direct_rows *rows)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows, nnz = a->nnz;
    int32_t *col_ptr = NULL, *row = NULL, *from = NULL, *row_ptr = NULL, *col = NULL, *back = NULL, entries = 0;
    TRY(spmv_alloc(ctx, (n + 1) * 4, (void **)&col_ptr));
    TRY(spmv_alloc(ctx, nnz * 4, (void **)&row));
    TRY(spmv_alloc(ctx, nnz * 4, (void **)&from));
    TRY(spmv_alloc(ctx, (n + 1) * 4, (void **)&row_ptr));
    TRY(spmv_alloc(ctx, nnz * 4, (void **)&col));
    TRY(spmv_alloc(ctx, nnz * 4, (void **)&back));
    TRY(transpose_cuda(ctx, a, col_ptr, 32, row, from, 32));
    const spmv_csr columns = {.rows = n,
                              .cols = n,
                              .nnz = nnz,
                              .row_ptr = col_ptr,
                              .row_ptr_bits = 32,
                              .col = row,
                              .type = a->type,
                              .memory = SPMV_MEMORY_CONTEXT};
    TRY(transpose_cuda(ctx, &columns, row_ptr, 32, col, back, 32));
    TRY(get(ctx, rows, nnz * 4, (void **)&rows->order));
    TRY(spmv_gather(ctx, SPMV_I32, from, nnz, back, 32, rows->order, nnz));
    TRY(get(ctx, rows, (n + 1) * 4, (void **)&rows->row_ptr));
    TRY(direct_count_cuda(ctx, row_ptr, col, rows->row_ptr, n));
    TRY(spmv_scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I32, rows->row_ptr, rows->row_ptr, n + 1));
    TRY(spmv_download(ctx, rows->row_ptr + n, &entries, sizeof entries));
    rows->device.nnz = entries;
    TRY(get(ctx, rows, ((int64_t)entries + 1) * 4, (void **)&rows->first));
    TRY(get(ctx, rows, (int64_t)entries * 4, (void **)&rows->col));
    TRY(direct_first_cuda(ctx, row_ptr, col, rows->row_ptr, rows->first, rows->col, n));
done:
    spmv_free(ctx, col_ptr);
    spmv_free(ctx, row);
    spmv_free(ctx, from);
    spmv_free(ctx, row_ptr);
    spmv_free(ctx, col);
    spmv_free(ctx, back);
    return st;
}

spmv_status direct_rows_take(spmv_context *ctx, const spmv_csr *a, int parts, struct direct_rows *rows)
{
    spmv_status st = SPMV_OK;
    struct csr_faults faults = {0};
    *rows = (struct direct_rows){.device = {.nnz = a->nnz}, .n = a->rows, .parts = parts};
    if (a->nnz >= INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_UNSUPPORTED, "direct: %lld nonzeros; on a GPU fewer than 2^31 are possible",
                            (long long)a->nnz);
    TRY(csr_faults_cuda(ctx, a, &faults));
    if (csr_faultless(&faults, CSR_SORTED))
        TRY(copy_pattern(ctx, a, rows));
    else
        TRY(sort_pattern(ctx, a, rows));
    TRY(get(ctx, rows, rows->device.nnz * parts * 8, (void **)&rows->val));
    TRY(get(ctx, rows, rows->n * parts * 8, (void **)&rows->x));
    TRY(get(ctx, rows, (int64_t)sizeof *rows->marks, (void **)&rows->marks));
    rows->device.row_ptr = rows->row_ptr;
    rows->device.col = rows->col;
    rows->device.val = rows->val;
done:
    return st;
}

void direct_rows_free(spmv_context *ctx, struct direct_rows *rows)
{
    void *const arrays[] = {rows->row_ptr, rows->col, rows->val, rows->order, rows->first, rows->x, rows->marks};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        spmv_free(ctx, arrays[i]);
    *rows = (struct direct_rows){.n = 0};
}

static spmv_status read_marks(spmv_context *ctx, const struct direct_rows *rows, struct direct_marks *marks)
{
    return spmv_download(ctx, rows->marks, marks, sizeof *marks);
}

spmv_status direct_rows_take_values(spmv_context *ctx, struct direct_rows *rows, const spmv_csr *a,
                                    struct direct_facts *facts)
{
    spmv_status st = SPMV_OK;
    struct direct_marks marks;
    double number = 0;
    TRY(direct_values_cuda(ctx, rows, type_part(a->val != NULL ? a->type : SPMV_F64), a->val));
    TRY(direct_look_cuda(ctx, rows));
    TRY(read_marks(ctx, rows, &marks));
    if (marks.not_finite != 0) {
        const uint64_t place = UINT64_MAX - marks.place;
        TRY(spmv_download(ctx, rows->val + (UINT64_MAX - marks.not_finite), &number, sizeof number));
        return context_fail(ctx, SPMV_ERROR_NOT_FINITE, "direct: the entry in row %lld, column %lld%s is %g",
                            context_number(ctx, (int64_t)(place >> 32)),
                            context_number(ctx, (int64_t)(place & UINT32_MAX)), context_counted(ctx), number);
    }
    facts->symmetric = (marks.unlike & DIRECT_NOT_SYMMETRIC) == 0;
    facts->hermitian = (marks.unlike & DIRECT_NOT_HERMITIAN) == 0;
    facts->positive = marks.diagonal == rows->n;
done:
    return st;
}

spmv_status direct_rows_sum(spmv_context *ctx, struct direct_rows *rows)
{
    return direct_sum_cuda(ctx, rows);
}

spmv_status direct_rows_solved(spmv_context *ctx, struct direct_rows *rows, double most, bool *solved)
{
    struct direct_marks marks = {.wrong = 1};
    spmv_status st = direct_solved_cuda(ctx, rows, most);
    if (st == SPMV_OK)
        st = read_marks(ctx, rows, &marks);
    *solved = marks.wrong == 0;
    return st;
}

spmv_status direct_rows_check(spmv_context *ctx, struct direct_rows *rows, const char *name, spmv_type type,
                              int64_t columns, int64_t stride, const void *vectors)
{
    spmv_status st = SPMV_OK;
    struct direct_marks marks;
    const spmv_type part = type_part(type);
    const int64_t count = rows->n * rows->parts, apart = stride * rows->parts;
    union {
        double wide;
        float narrow;
    } number;
    TRY(direct_finite_cuda(ctx, rows, part, vectors, columns, count, apart));
    TRY(read_marks(ctx, rows, &marks));
    if (marks.not_finite == 0)
        return SPMV_OK;
    const int64_t at = (int64_t)(UINT64_MAX - marks.not_finite), i = at % count, size = real_bytes(part);
    TRY(spmv_download(ctx, (const char *)vectors + (at / count * apart + i) * size, &number, size));
    return context_fail(ctx, SPMV_ERROR_NOT_FINITE, "direct: %s has %g in row %lld%s", name, real_at(part, &number, 0),
                        context_number(ctx, i / rows->parts), context_counted(ctx));
done:
    return st;
}

spmv_status direct_rows_read(spmv_context *ctx, struct direct_rows *rows, spmv_type type, const void *from)
{
    return direct_convert_cuda(ctx, type_part(type), from, SPMV_F64, rows->x, rows->n * rows->parts);
}

spmv_status direct_rows_write(spmv_context *ctx, const struct direct_rows *rows, spmv_type type, void *to)
{
    return direct_convert_cuda(ctx, SPMV_F64, rows->x, type_part(type), to, rows->n * rows->parts);
}

spmv_status direct_rows_enter(spmv_context *ctx, struct direct_rows *rows)
{
    rows->device.stream = spmv_context_stream(ctx);
    return direct_enter_cuda(ctx);
}

spmv_status direct_rows_leave(spmv_context *ctx, spmv_status st)
{
    return direct_leave_cuda(ctx, st);
}
