/* Passes over several vectors at once, which are stored by rows: element v of row i is number i * columns + v. For
 * conjugate gradients with several right-hand sides (solvers/cg/cg_2_fused_columns_precond.c) and the norms of residuals.
 *
 * Rows are cut into stripes by their number alone, or on ranks into their chunks, and a column is summed in an order
 * that depends on nothing else. So it has the same bits whatever the other columns are, and however many; on ranks those
 * of a sum of one vector.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_COLUMNS_H
#define KRYLOV_COLUMNS_H

#include "core/reals.h"
#include "core/runtime.h"

struct plan_ranks;

/* What a pass does, with numbers alpha, beta and size for each column. in and out: the vectors of a preconditioner
 * (struct precond_columns), of another type, and z = factor size out.
 *   DOT        sums = r'q
 *   RESIDUAL   r = r - alpha q,  in = r / size unless in is NULL,  sums = r'r
 *   NARROW     in = r / size; 0 in columns that do not run, and in those beyond the last
 *   PRODUCT    sums = r'z
 *   FIRST      p = z; 0 in columns that do not run
 *   DIRECTION  x = x + alpha p,  p = z + beta p
 *   SOLUTION   x = x + alpha p */
enum columns_pass {
    COLUMNS_DOT,
    COLUMNS_RESIDUAL,
    COLUMNS_NARROW,
    COLUMNS_PRODUCT,
    COLUMNS_FIRST,
    COLUMNS_DIRECTION,
    COLUMNS_SOLUTION
};

struct columns_job {
    spmv_type type; /* of x, r, p, q: f32 or f64 */
    int64_t n;
    int columns;
    const bool *runs; /* columns: which of them are written and summed; NULL: all */
    const double *alpha, *beta, *size;
    void *x, *p, *r;
    const void *q;
    spmv_type other; /* of in and out: f32 or f64; their stride and factor as in struct precond_columns */
    int64_t stride;
    double factor;
    void *in;
    const void *out;
    void *scratch;                  /* columns_scratch bytes in the context's memory */
    double *sums;                   /* columns; those of columns that do not run have no meaning */
    const struct plan_ranks *ranks; /* not on a GPU: which make a pass with sums together; NULL: one has all rows */
};

/* Bytes of scratch memory for the sums of n rows. */
int64_t columns_scratch(const spmv_context *ctx, const struct plan_ranks *ranks, int64_t n, int columns);

/* Waits if the pass has sums. */
spmv_status columns_run(spmv_context *ctx, enum columns_pass pass, const struct columns_job *job);

/* Copies `columns` vectors by rows, element v of row i from from[i * from_stride + v] to to[i * to_stride + v]; those
 * from `columns` on up to `width` become 0. which: the vectors that are written; NULL: all. from: NULL: zeros. Queued. */
struct columns_transfer {
    spmv_type type; /* f32 or f64 */
    int64_t n, from_stride, to_stride;
    int columns, width;
    const bool *which; /* width, in host memory */
    const void *from;
    void *to;
};
spmv_status columns_copy(spmv_context *ctx, const struct columns_transfer *c);

spmv_status columns_copy_cuda(spmv_context *ctx, const struct columns_transfer *c) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status columns_run_cuda(spmv_context *ctx, enum columns_pass pass, const struct columns_job *job)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* The stripes of n rows on a GPU. */
enum { COLUMNS_MOST_STRIPES = 1056, COLUMNS_LEAST_ROWS = 64 };
static inline int64_t columns_stripe_rows(int64_t n)
{
    const int64_t rows = n / COLUMNS_MOST_STRIPES + (n % COLUMNS_MOST_STRIPES != 0);
    return (rows / COLUMNS_LEAST_ROWS + (rows % COLUMNS_LEAST_ROWS != 0)) * COLUMNS_LEAST_ROWS;
}
static inline int64_t columns_stripes(int64_t n)
{
    const int64_t rows = columns_stripe_rows(n);
    return n > 0 ? n / rows + (n % rows != 0) : 0;
}

#endif
