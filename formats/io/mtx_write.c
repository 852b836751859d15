/* Matrices into files: Matrix Market coordinate files, general, also compressed, and the binary form; the name's ending
 * tells which.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/io.h>
#include <stdio.h>

#include "binary_form.h"
#include "matrix_internal.h"
#include "mmio_banner.h"
#include "numbers.h"
#include "output_file.h"
#include "text_pieces.h"

/* "ROW COL VALUE\n": 19 and 10 digits, and the two parts of a complex value. */
enum { LINE = 19 + 1 + 10 + 1 + NUMBER_TEXT + 1 + NUMBER_TEXT + 1 };

/* Real numbers in a value. */
static int parts(const spmv_csr *a)
{
    return type_is_complex(a->type) ? 2 : 1;
}

/* Real number k of the values, of which an entry has parts. */
static double part_at(const spmv_csr *a, int64_t k)
{
    return type_part(a->type) == SPMV_F32 ? (double)((const float *)a->val)[k] : ((const double *)a->val)[k];
}

/* The first real number among the values that is not finite; their number when there is none. */
static int64_t first_not_finite(spmv_context *ctx, const spmv_csr *a)
{
    const int64_t n = a->nnz * parts(a);
    int64_t bad = n;
    if (a->val == NULL)
        return bad;
#pragma omp parallel for num_threads(host_team(ctx, n)) schedule(static) reduction(min : bad)
    for (int64_t k = 0; k < n; k++)
        if (!isfinite(part_at(a, k)))
            bad = min_i64(bad, k);
    return bad;
}

/* from_chars would read inf and nan back, but the format has no such numbers and other readers refuse them. */
static spmv_status check_finite(spmv_context *ctx, const spmv_csr *a, const char *path)
{
    const int64_t number = first_not_finite(ctx, a), k = number / parts(a);
    if (k == a->nnz)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_UNSUPPORTED,
                        "%s: the matrix holds %g (entry %lld, column %d): a Matrix Market file cannot", path,
                        part_at(a, number), (long long)k + 1, (int)a->col[k] + 1);
}

static spmv_status make_head(spmv_context *ctx, const spmv_csr *a, char text[OUTPUT_ITEM], int64_t *bytes)
{
    MM_typecode code;
    char banner[BANNER_TEXT];
    mm_initialize_typecode(&code);
    mm_set_matrix(&code);
    mm_set_coordinate(&code);
    if (a->val == NULL)
        mm_set_pattern(&code);
    else if (type_is_complex(a->type))
        mm_set_complex(&code);
    else
        mm_set_real(&code);
    const spmv_status st = banner_write(ctx, code, banner);
    if (st == SPMV_OK)
        *bytes = snprintf(text, OUTPUT_ITEM, "%s\n%lld %lld %lld\n", banner, (long long)a->rows, (long long)a->cols,
                          (long long)a->nnz);
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

/* Entries first <= k < end, a line each. */
static char *write_entries(const void *user, int64_t first, int64_t end, char *p)
{
    const spmv_csr *const a = user;
    const spmv_type part = type_part(a->type);
    const int64_t part_bytes = (int64_t)spmv_type_size(part);
    const int count = a->val == NULL ? 0 : parts(a);
    int64_t row = row_of_entry(a, first);
    for (int64_t k = first; k < end; k++) {
        while (row_first(a, row + 1) <= k)
            row++;
        p = write_count(p, row + 1);
        *p++ = ' ';
        p = write_count(p, (int64_t)a->col[k] + 1);
        for (int i = 0; i < count; i++) {
            *p++ = ' ';
            p = number_write(p, part, (const char *)a->val + (k * count + i) * part_bytes);
        }
        *p++ = '\n';
    }
    return p;
}

static spmv_status write_text(spmv_context *ctx, const spmv_csr *a, const char *path)
{
    spmv_status st = SPMV_OK;
    struct output_file output = {.fd = -1};
    struct text_pieces entries = {.make = write_entries, .user = a, .items = a->nnz, .item_bytes = LINE};
    char head[OUTPUT_ITEM];
    int64_t bytes = 0;
    TRY(check_finite(ctx, a, path));
    TRY(text_pieces_gzip(ctx, path, &entries.gzip));
    TRY(make_head(ctx, a, head, &bytes));
    TRY(output_open(ctx, path, a->nnz, &output));
    TRY(text_pieces_head(&output, head, bytes, entries.gzip));
    TRY(text_pieces_write(&output, &entries));
done:
    return output_close(&output, st);
}

spmv_status spmv_matrix_write(spmv_context *ctx, const spmv_csr *a, const char *path)
{
    if (a == NULL || path == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_matrix_write: no %s given", a ? "path" : "matrix");
    if (a->val != NULL && type_part(a->type) != SPMV_F64 && type_part(a->type) != SPMV_F32)
        return context_fail(ctx, SPMV_ERROR_TYPE, "matrices are written from f64, f32, c128 or c64, not from %s",
                            spmv_type_name(a->type));
    const spmv_status st = spmv_matrix_check(ctx, a);
    if (st != SPMV_OK)
        return st;
    return path_ends_with(path, ".spmv") ? binary_form_write(ctx, a, path) : write_text(ctx, a, path);
}
