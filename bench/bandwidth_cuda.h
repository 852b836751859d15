/* The kernels that emptying the cache and measuring the memory bandwidth of a GPU need, queued on a stream.
 *
 * blocks: how many to launch; bytes: a multiple of 16; arrays are aligned to 16 bytes and seen as 32-bit words. All
 * return what the launch said.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BANDWIDTH_CUDA_H
#define BANDWIDTH_CUDA_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { BANDWIDTH_THREADS = 256 }; /* of a block */

/* to[i] = first + step i, modulo 2^32 */
cudaError_t words_write(cudaStream_t stream, int blocks, uint32_t first, uint32_t step, void *to, size_t bytes);

/* to[i] = from[i] */
cudaError_t words_copy(cudaStream_t stream, int blocks, const void *from, void *to, size_t bytes);

/* *sum += from[0] + from[1] + ..., modulo 2^64 */
cudaError_t words_sum(cudaStream_t stream, int blocks, const void *from, size_t bytes, unsigned long long *sum);

#ifdef __cplusplus
}
#endif

#endif
