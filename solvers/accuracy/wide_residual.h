/* b - A x in twice the precision: what iterative refinement needs to give x all digits of its type, whatever the
 * condition number (J. H. Wilkinson, "Rounding errors in algebraic processes", 1963; N. J. Higham, "Accuracy and
 * Stability of Numerical Algorithms", 2nd ed., 2002, chapter 12).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIDE_RESIDUAL_H
#define WIDE_RESIDUAL_H

#include <spmv/matrix.h>

#include "core/runtime.h"

/* r = b - A x, summed in twice the precision of double and rounded once to the type.
 *
 *   a     in the context's memory; a pattern, of the type, or f32 with vectors in f64
 *   type  of the vectors: f32, f64, c64, c128
 *   b, r  rows elements in the context's memory
 *   x     cols elements
 *
 * Aliasing: r overlaps neither b nor x. Queued. A sum outside of the range of double is infinite or NaN.
 * Determinism: same bits for any number of threads. Errors: SPMV_ERROR_DEVICE. */
spmv_status wide_residual(spmv_context *ctx, const spmv_csr *a, spmv_type type, const void *b, const void *x, void *r);

/* The same on CUDA. */
spmv_status wide_residual_cuda(spmv_context *ctx, const spmv_csr *a, spmv_type type, const void *b, const void *x,
                               void *r) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
