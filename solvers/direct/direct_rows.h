/* The matrix and the vectors of a direct solver whose library computes on a GPU: they stay in the device's memory.
 *
 * The library gets the whole of A by rows (CSR) with ascending columns, 32-bit offsets and values in f64 or c128. Those
 * are copied on the device: 4 (n + 1) + 12 nnz bytes (c128: 20 nnz), and 8 nnz (16 nnz) for new values. Where A's columns
 * do not ascend, the order of its entries is found there too, and kept for new values.
 *
 * The host reads a few numbers of direct_marks, and no array.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIRECT_ROWS_H
#define DIRECT_ROWS_H

#include "core/host_device_fn.h"
#include "core/hypot.h"
#include "formats/matrix_internal.h"
#include "solvers/modules/direct_module.h"

struct direct_facts {
    bool symmetric, hermitian; /* as in struct direct_problem */
    bool positive;             /* the diagonal: real and above 0 */
};

/* Whether two numbers of `parts` doubles are equal but for rounding; conjugates: a and the conjugate of b. What one
 * triangle then tells differs from A by less than the factors do. */
HOST_DEVICE_FN void direct_compare(const double *a, const double *b, int parts, bool *equal, bool *conjugates)
{
    const double size = parts == 2 ? real_hypot(a[0], a[1]) : fabs(a[0]), most = 16 * 0x1p-53 * size;
    const bool re = fabs(a[0] - b[0]) <= most;
    *equal = *equal && re && (parts == 1 || fabs(a[1] - b[1]) <= most);
    *conjugates = *conjugates && re && (parts == 1 || fabs(a[1] + b[1]) <= most);
}

/* What kernels find; 0 before. */
struct direct_marks {
    uint64_t not_finite; /* UINT64_MAX minus the number of the first such real number; 0: none */
    uint64_t place;      /* UINT64_MAX minus (row << 32 | column) of the first such entry */
    int64_t diagonal;    /* rows whose diagonal entry has a real part above 0 */
    uint32_t unlike;     /* DIRECT_NOT_SYMMETRIC, DIRECT_NOT_HERMITIAN */
    uint32_t wrong;      /* a row of A x is not that of b */
};
enum { DIRECT_NOT_SYMMETRIC = 1, DIRECT_NOT_HERMITIAN = 2 };

struct direct_rows {
    struct direct_device device; /* what the library gets; the arrays below */
    int64_t n;
    int parts; /* doubles per number */
    int32_t *row_ptr, *col;
    double *val;
    /* value e is the sum of A's values order[k], first[e] <= k < first[e + 1]. order NULL: of its values k; first NULL: of
     * value k = e alone */
    int32_t *order, *first;
    double *x; /* n numbers */
    struct direct_marks *marks;
    int64_t bytes; /* of all arrays */
};

/* Sets the pattern. a: checked, in the device's memory, n > 0. direct_rows_free releases it, also after an error.
 * Errors: SPMV_ERROR_UNSUPPORTED (2^31 entries), SPMV_ERROR_MEMORY, SPMV_ERROR_DEVICE. */
spmv_status direct_rows_take(spmv_context *ctx, const spmv_csr *a, int parts, struct direct_rows *rows);
void direct_rows_free(spmv_context *ctx, struct direct_rows *rows);

/* Sets the values, and what they are like. a: of the same pattern, there. SPMV_ERROR_NOT_FINITE names an entry. Waits. */
spmv_status direct_rows_take_values(spmv_context *ctx, struct direct_rows *rows, const spmv_csr *a,
                                    struct direct_facts *facts);

/* x = A e, e of ones. */
spmv_status direct_rows_sum(spmv_context *ctx, struct direct_rows *rows);

/* Whether |A e - A x| <= most |A| max(e, |x|) in each row. Waits. */
spmv_status direct_rows_solved(spmv_context *ctx, struct direct_rows *rows, double most, bool *solved);

/* SPMV_ERROR_NOT_FINITE names the first element of `columns` vectors, `stride` elements apart, that is not finite. name:
 * of the vector. Waits. */
spmv_status direct_rows_check(spmv_context *ctx, struct direct_rows *rows, const char *name, spmv_type type,
                              int64_t columns, int64_t stride, const void *vectors);

/* rows->x = from, to = rows->x: vectors of this type. Queued. */
spmv_status direct_rows_read(spmv_context *ctx, struct direct_rows *rows, spmv_type type, const void *from);
spmv_status direct_rows_write(spmv_context *ctx, const struct direct_rows *rows, spmv_type type, void *to);

/* The library is called between these two, with the context's device current and its present stream. leave returns
 * st, or an error of the device. */
spmv_status direct_rows_enter(spmv_context *ctx, struct direct_rows *rows);
spmv_status direct_rows_leave(spmv_context *ctx, spmv_status st);

/* ------------------------------------------------------------- kernels (direct_rows.cu), all queued */

spmv_status direct_enter_cuda(spmv_context *ctx) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status direct_leave_cuda(spmv_context *ctx, spmv_status st) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* to[i] = from[i], 64 to 32 bits. */
spmv_status direct_narrow_cuda(spmv_context *ctx, const int64_t *from, int32_t *to, int64_t n)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* counts[i]: the different columns of row i, where equal ones are neighbours; counts[n] = 0. */
spmv_status direct_count_cuda(spmv_context *ctx, const int32_t *row_ptr, const int32_t *col, int32_t *counts, int64_t n)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* With the sums of the counts: the first entry of each different column, and the column. */
spmv_status direct_first_cuda(spmv_context *ctx, const int32_t *row_ptr, const int32_t *col, const int32_t *sums,
                              int32_t *first, int32_t *to, int64_t n) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* val of rows, from the values of A: f32 or f64 numbers (part); NULL: ones. */
spmv_status direct_values_cuda(spmv_context *ctx, const struct direct_rows *rows, spmv_type part, const void *values)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* These set the marks, which become 0 before. */
spmv_status direct_look_cuda(spmv_context *ctx, const struct direct_rows *rows) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status direct_solved_cuda(spmv_context *ctx, const struct direct_rows *rows, double most)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
/* columns of `count` real numbers, `apart` numbers apart */
spmv_status direct_finite_cuda(spmv_context *ctx, const struct direct_rows *rows, spmv_type part, const void *numbers,
                               int64_t columns, int64_t count, int64_t apart) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

spmv_status direct_sum_cuda(spmv_context *ctx, const struct direct_rows *rows) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* to[i] = from[i]: numbers of f32 or f64, both. */
spmv_status direct_convert_cuda(spmv_context *ctx, spmv_type from_part, const void *from, spmv_type to_part, void *to,
                                int64_t count) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
