/* Turns an array of rows into one of columns on the device.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEERS_TURN_H
#define PEERS_TURN_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* to[v rows + i] = from[i columns + v] for 0 <= i < rows, 0 <= v < columns. size: bytes of an element, 2, 4 or 8.
 * Queued on the stream; returns the status of the launch. */
cudaError_t turn_rows(cudaStream_t stream, int64_t rows, int64_t columns, int size, const void *from, void *to);

#ifdef __cplusplus
}
#endif

#endif
