/* Sampled products of dense matrices, and the softmax of the rows of a sparse matrix. With a product of
 * several vectors (plan.h) they make graph attention.
 *
 *     spmv_sddmm *s;
 *     spmv_sddmm_create(ctx, &p, &options, &s);    (options.vectors = k)
 *     spmv_sddmm_apply(s, a, b, y);                (y: a value for each entry of p)
 *     spmv_sddmm_softmax(s, y, y);
 *     spmv_sddmm_destroy(s);
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SDDMM_H
#define SPMV_SDDMM_H

#include <spmv/matrix.h>

SPMV_BEGIN_DECLS

/* A sparse matrix P prepared for sampled products. */
typedef struct spmv_sddmm spmv_sddmm;

typedef struct spmv_sddmm_options {
    size_t size;    /* sizeof(spmv_sddmm_options), set by spmv_sddmm_options_init */
    spmv_type type; /* f32, f64, bf16 or f16, of P, A, B and Y; default: that of P, f64 for a pattern */
    int vectors;    /* k: columns of A and of B, from 1; default 1 */

    /* Elements from one row of A (B) to the next, at least vectors. Default 0: vectors. */
    int64_t a_stride, b_stride;
} spmv_sddmm_options;

/* Fills options with the defaults. size: sizeof(spmv_sddmm_options). */
SPMV_API void spmv_sddmm_options_init(spmv_sddmm_options *options, size_t size);

/* Prepares P. May wait.
 *
 *   p        a pattern, or values of the type. Columns in any order; an entry may occur twice.
 *            SPMV_MEMORY_HOST: its arrays are copied. SPMV_MEMORY_CONTEXT: they are borrowed, and must
 *            outlive *sddmm and not change, except for the values.
 *   options  NULL means defaults
 *   *sddmm   NULL after an error
 *
 * On a GPU it takes 4 bytes for each entry; in any case 2 numbers for each row. The first softmax of a 16-bit
 * type takes 4 bytes more for each entry.
 *
 * Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_SIZE (wrong row offsets), SPMV_ERROR_LIMIT (on a GPU: 2^31 rows
 * or more), SPMV_ERROR_TYPE (a complex type; values of another type), SPMV_ERROR_MEMORY. */
SPMV_API spmv_status spmv_sddmm_create(spmv_context *ctx, const spmv_csr *p, const spmv_sddmm_options *options,
                                       spmv_sddmm **sddmm);

/* Destroys it after the work queued on the context's stream is done. NULL is allowed. */
SPMV_API void spmv_sddmm_destroy(spmv_sddmm *sddmm);

/* The bytes of memory that it owns; 0 for NULL. */
SPMV_API int64_t spmv_sddmm_bytes(const spmv_sddmm *sddmm);

/* Y = P o (A B') at the entries of P: for entry e, in row i and column j of P,
 *
 *     y[e] = p_e * (a[i * a_stride + 0] b[j * b_stride + 0] + ... + a[i * a_stride + k - 1] b[...])
 *
 * with p_e = 1 for a pattern. Queued; allocates nothing, does not wait, can be captured.
 *
 *   a, b  rows and columns of P rows of k elements of the type, in the context's memory
 *   y     nnz elements, in the order of the entries of P
 *
 * Arithmetic: on ref the sum is in long double and rounded with p_e once. On omp and cuda products and
 * sums are rounded each, in the type; of 16-bit types in f32, and p_e times the sum is rounded once. The
 * products of the columns of 16 bytes of a row are added in a tree, those of 512 bytes further on to them
 * one after the other, and the resulting 32 sums in a tree.
 *
 * Aliasing: y overlaps neither a nor b; a may be b, and y may be the values of P.
 * Errors: SPMV_ERROR_ARGUMENT (NULL), SPMV_ERROR_DEVICE.
 * Determinism: an entry has the same bits on omp and cuda, for any number of threads, alignment and
 * strides, and whatever the other entries of P are.
 * Accuracy: to first order |y_e - exact| <= (k size / 512 + 10) u |p_e| sum_c |a_ic| |b_jc|, u: unit roundoff of
 * the type, of 16-bit types of f32; then half a last place more. size: bytes of an element. */
SPMV_API spmv_status spmv_sddmm_apply(spmv_sddmm *sddmm, const void *a, const void *b, void *y);

/* The softmax of each row of a matrix with the pattern of P and the values x:
 *
 *     y[e] = exp(x[e] - m_i) / sum over the entries f of row i of exp(x[f] - m_i),  m_i = max of row i
 *
 * by spmv_segreduce for the largest elements and the sums; 16-bit numbers in f32, and y rounded once.
 * Queued; can be captured, if a call was made before.
 *
 *   x, y  nnz elements of the type in the context's memory
 *
 * Aliasing: y may be x; no other overlap.
 * Errors: SPMV_ERROR_ARGUMENT (NULL), SPMV_ERROR_DEVICE, SPMV_ERROR_MEMORY.
 * Special values: a row with NaN, with +infinity, or of -infinities only becomes NaN.
 * Determinism: the same bits every run; on omp, for any number of threads. Backends have different
 * exponential functions. */
SPMV_API spmv_status spmv_sddmm_softmax(spmv_sddmm *sddmm, const void *x, void *y);

SPMV_END_DECLS

#endif
