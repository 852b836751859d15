/* Makes sliced ELLPACK from CSR on the device: slices of height rows, each padded to its longest
 * row and stored by columns.
 *
 * Padding has column -1 and value 0, as cuSPARSE requires; the last slice is as high as the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SLICED_ELL_H
#define SLICED_ELL_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* height: rows per slice. offsets: slices + 1, where slices begin in sell_col and sell_val.
 * value_size: 4 or 8 bytes. Queued on the stream; returns the status of the launch. */
cudaError_t sliced_ell_fill(cudaStream_t stream, int64_t rows, int height, int64_t slices, const int32_t *row_ptr,
                            const int32_t *col, const void *val, int value_size, const int32_t *offsets, int64_t stored,
                            int32_t *sell_col, void *sell_val);

#ifdef __cplusplus
}
#endif

#endif
