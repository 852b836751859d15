/* Sampled products: what the front (sddmm.c) and the kernels share.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SDDMM_INTERNAL_H
#define SDDMM_INTERNAL_H

#include <spmv/sddmm.h>

#include "core/backend.h"
#include "formats/matrix_internal.h"

/* Column c of a row is added to sum c % SDDMM_SUMS; these are added in a tree: the upper half to the lower
 * half, until there is one. */
enum { SDDMM_SUMS = 16 };

struct spmv_sddmm {
    spmv_context *ctx;
    spmv_csr p; /* in the context's memory */
    struct csr_copies copies;
    spmv_type type;
    int vectors;
    int64_t a_stride, b_stride;
    int32_t *row;         /* on a GPU: of each entry */
    void *largest, *sums; /* of each row, for the softmax */
    int64_t bytes;
};

/* The kernels. nnz > 0. sddmm_rows_cuda: row[e] of each entry. The exponentials: y[e] = exp(x[e] - largest[i]).
 * The quotients: y[e] /= sums[i]. */
spmv_status sddmm_rows_cuda(spmv_sddmm *sddmm) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status sddmm_apply_cuda(const spmv_sddmm *sddmm, const void *a, const void *b, void *y)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status sddmm_exponentials_cuda(const spmv_sddmm *sddmm, const void *x, void *y) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status sddmm_quotients_cuda(const spmv_sddmm *sddmm, void *y) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
