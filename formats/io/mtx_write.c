/* Matrices into Matrix Market coordinate files, general.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/io.h>
#include <stdio.h>

#include "mmio_banner.h"
#include "numbers.h"
#include "output_file.h"

/* from_chars would read inf and nan back, but the format has no such numbers and other readers refuse them. */
static spmv_status check_finite(spmv_context *ctx, const spmv_csr *a, const char *path)
{
    for (int64_t k = 0; a->val != NULL && k < a->nnz; k++) {
        const double v = a->type == SPMV_F32 ? (double)((const float *)a->val)[k] : ((const double *)a->val)[k];
        if (!isfinite(v))
            return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                                "%s: the matrix holds %g (entry %lld, column %d): a Matrix Market file cannot", path, v,
                                (long long)k, (int)a->col[k]);
    }
    return SPMV_OK;
}

static spmv_status write_head(struct output_file *output, const spmv_csr *a)
{
    MM_typecode code;
    char banner[BANNER_TEXT], *room = NULL;
    mm_initialize_typecode(&code);
    mm_set_matrix(&code);
    mm_set_coordinate(&code);
    if (a->val == NULL)
        mm_set_pattern(&code);
    else
        mm_set_real(&code);
    spmv_status st = SPMV_OK;
    TRY(banner_write(output->ctx, code, banner));
    TRY(output_room(output, &room));
    output_took(output, room + sprintf(room, "%s\n%lld %lld %lld\n", banner, (long long)a->rows, (long long)a->cols,
                                       (long long)a->nnz));
done:
    return st;
}

static char *write_count(char *p, int64_t value)
{
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    while (n > 0)
        *p++ = digits[--n];
    return p;
}

static spmv_status write_row(struct output_file *output, const spmv_csr *a, int64_t row)
{
    const size_t value_size = spmv_type_size(a->type);
    const int64_t end = offset_at(a->row_ptr, a->row_ptr_bits, row + 1);
    for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, row); k < end; k++) {
        char *p = NULL;
        const spmv_status st = output_room(output, &p);
        if (st != SPMV_OK)
            return st;
        p = write_count(p, row + 1);
        *p++ = ' ';
        p = write_count(p, (int64_t)a->col[k] + 1);
        if (a->val != NULL) {
            *p++ = ' ';
            p = number_write(p, a->type, (const char *)a->val + (size_t)k * value_size);
        }
        *p++ = '\n';
        output_took(output, p);
    }
    return SPMV_OK;
}

spmv_status spmv_matrix_write(spmv_context *ctx, const spmv_csr *a, const char *path)
{
    spmv_status st = SPMV_OK;
    struct output_file output = {.fd = -1};
    if (a == NULL || path == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_matrix_write: no %s given", a ? "path" : "matrix");
    if (a->val != NULL && a->type != SPMV_F64 && a->type != SPMV_F32)
        return context_fail(ctx, SPMV_ERROR_TYPE, "matrices are written from f64 or f32, not from %s",
                            spmv_type_name(a->type));
    TRY(spmv_matrix_check(ctx, a));
    TRY(check_finite(ctx, a, path));
    TRY(output_open(ctx, path, a->nnz, &output));
    TRY(write_head(&output, a));
    for (int64_t row = 0; row < a->rows; row++)
        TRY(write_row(&output, a, row));
done:
    return output_close(&output, st);
}
