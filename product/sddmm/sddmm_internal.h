/* Sampled products: what the front (sddmm.c) and the kernels share.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SDDMM_INTERNAL_H
#define SDDMM_INTERNAL_H

#include <spmv/sddmm.h>

#include "core/backend.h"
#include "formats/matrix_internal.h"

/* The order of the sum of an entry: the columns are packs of SDDMM_PACK bytes; the products of a pack are added in
 * a tree, neighbours first. Packs that are a multiple of SDDMM_BYTES apart are added one after the other, which
 * leaves SDDMM_BYTES / SDDMM_PACK sums; these are added in a tree, neighbours first. Absent columns are 0. */
enum { SDDMM_PACK = 16, SDDMM_BYTES = 512 };

struct spmv_sddmm {
    spmv_context *ctx;
    spmv_csr p; /* in the context's memory */
    struct csr_copies copies;
    spmv_type type, sums_type;
    int vectors;
    int64_t a_stride, b_stride;
    int32_t *row;         /* on a GPU: of each entry */
    bool by_rows;         /* on a GPU: a subwarp has a row */
    void *largest, *sums; /* of each row, for the softmax */
    void *wide;           /* for the softmax of 16-bit numbers: nnz f32; NULL before the first */
    int64_t bytes;
};

/* The kernels. nnz > 0. sddmm_rows_cuda: row[e] of each entry, and by_rows; waits. sddmm_widen_cuda: to[e] = x[e], 16-bit numbers as
 * f32. The exponentials: y[e] = exp(x[e] - largest[i]), of the type of sums. The quotients: y[e] = x[e] / sums[i],
 * with x of the type of sums. */
spmv_status sddmm_rows_cuda(spmv_sddmm *sddmm) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status sddmm_apply_cuda(const spmv_sddmm *sddmm, const void *a, const void *b, void *y)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status sddmm_widen_cuda(const spmv_sddmm *sddmm, const void *x, void *to) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status sddmm_exponentials_cuda(const spmv_sddmm *sddmm, const void *x, void *y) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status sddmm_quotients_cuda(const spmv_sddmm *sddmm, const void *x, void *y) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
