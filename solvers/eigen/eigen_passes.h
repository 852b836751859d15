/* Passes over blocks of vectors for eigenvalue problems: X'Y, X C, residuals, and the way to a preconditioner.
 *
 * A block has its vectors side by side: element v of row i is number i * stride + v. Complex numbers are pairs of real
 * ones: the kernels see blocks of twice as many real columns, and the matrices of coefficients are expanded, which
 * costs no multiplication more.
 *
 * Sums are in f64. Rows are cut into stripes by their number alone, and the sums of stripes are added in their order, so
 * the bits do not depend on the threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EIGEN_PASSES_H
#define EIGEN_PASSES_H

#include "core/reals.h"
#include "core/runtime.h"
#include "core/splitmix.h"

struct eigen_block {
    void *at;
    int64_t stride;
    int columns;
};

/* Columns first to first + columns - 1 of a block of this type. */
static inline struct eigen_block block_part(struct eigen_block b, spmv_type type, int first, int columns)
{
    b.at = (char *)b.at + (size_t)first * spmv_type_size(type);
    b.columns = columns;
    return b;
}

/* What the passes of a run share. */
struct eigen_vectors {
    spmv_context *ctx;
    spmv_type type; /* f32, f64, c64, c128 */
    int64_t n, stripe_rows;
    int most; /* columns of the widest block */
    void *parts;
    void *coefficients; /* on a GPU */
    double *expanded;
};

/* most: columns of the widest block; sums: the most numbers of X'Y and X'Z together. */
spmv_status eigen_vectors_open(spmv_context *ctx, spmv_type type, int64_t n, int most, int64_t sums,
                               struct eigen_vectors *v);
void eigen_vectors_close(struct eigen_vectors *v);

/* to_y = X'Y and, if z and to_z are not NULL, to_z = X'Z: small matrices by rows, of double or pairs of them, in host
 * memory. y and z have the same number of columns. Waits. */
spmv_status block_gram(const struct eigen_vectors *v, struct eigen_block x, struct eigen_block y,
                       const struct eigen_block *z, double *to_y, double *to_z);

/* to = x C, C by rows. to may overlap x: a row is read before it is written. Queued. */
spmv_status block_combine(const struct eigen_vectors *v, struct eigen_block x, const double *c, struct eigen_block to);

/* The residuals r_j = a_j - values[j] b_j of the columns of a and b; values NULL: r_j = a_j. */
struct block_residuals {
    struct eigen_block a, b;
    const double *values;
    const int *which; /* `count` columns; NULL: all */
    int count;
    const void *weight; /* n real numbers of the type, in the context's memory; NULL: ones */
};

/* squares[c] = the sum of weight_i |r_i|^2 of column which[c]. Waits. */
spmv_status block_squares(const struct eigen_vectors *v, const struct block_residuals *r, double *squares);

/* Column c of `to`, of real numbers of the type `other`, = r / size[c], for a preconditioner: a complex element is two
 * rows. Columns from count on up to the stride become 0. Queued. */
spmv_status block_send(const struct eigen_vectors *v, const struct block_residuals *r, const double *size,
                       spmv_type other, void *to, int64_t stride);

/* The way back: column c of `to` = size[c] from. Queued. */
spmv_status block_receive(const struct eigen_vectors *v, spmv_type other, const void *from, int64_t stride,
                          const double *size, struct eigen_block to);

/* to = from, of the same number of columns. Queued. */
spmv_status block_copy(const struct eigen_vectors *v, struct eigen_block from, struct eigen_block to);

/* Fixed pseudo-random numbers in [-1, 1), which depend on the row, the column, the columns of the block and
 * the seed. Queued. */
spmv_status block_random(const struct eigen_vectors *v, struct eigen_block to, uint64_t seed);

/* ------------------------------------------------------------- the kernels */

/* A pass over real columns. */
struct eigen_pass {
    spmv_type type; /* f32 or f64 */
    int64_t n, stripe_rows;
    int p, q; /* columns of x; of y and z, or of the result */
    const void *x, *y, *z;
    int64_t x_stride, y_stride, z_stride;
    void *to;
    int64_t to_stride;
    const double *c; /* p x q */
    double *parts;   /* gram: of each stripe p x q numbers of X'Y, then of X'Z; squares: q numbers */
    /* residuals, and the way to and from a preconditioner */
    int parts_of_number;
    spmv_type other;
    const void *weight;
    int count;
    const int *which;
    const double *values, *size;
    uint64_t seed;
};

HOST_DEVICE_FN double eigen_random(uint64_t seed, int64_t i)
{
    return (double)(int64_t)splitmix_at(seed, i) * 0x1p-63;
}

/* The stripes. EIGEN_MOST_STRIPES: two for each multiprocessor of an H100. */
enum { EIGEN_MOST_STRIPES = 264, EIGEN_LEAST_ROWS = 256, EIGEN_MOST_COLUMNS = 1536 };
static inline int64_t eigen_stripes(const struct eigen_pass *e)
{
    return ceil_divide(e->n, e->stripe_rows);
}

/* Kernels on a GPU; sums of all stripes go to the first numbers of parts. */
spmv_status eigen_gram_cuda(spmv_context *ctx, const struct eigen_pass *p) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status eigen_combine_cuda(spmv_context *ctx, const struct eigen_pass *p) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status eigen_squares_cuda(spmv_context *ctx, const struct eigen_pass *p) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status eigen_send_cuda(spmv_context *ctx, const struct eigen_pass *p) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status eigen_random_cuda(spmv_context *ctx, const struct eigen_pass *p) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status eigen_receive_cuda(spmv_context *ctx, const struct eigen_pass *p) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
