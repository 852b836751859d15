/* Kernels that empty the cache and measure the memory bandwidth of a GPU, queued on a stream.
 *
 * blocks: number of blocks to launch; bytes: a multiple of 16, arrays at such multiples. Arrays are aligned to 16 bytes and
 * treated as 32-bit words. All functions return the status of the launch.
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

enum { BANDWIDTH_THREADS = 256 }; /* per block */

/* to[i] = first + step i, modulo 2^32 */
cudaError_t words_write(cudaStream_t stream, int blocks, uint32_t first, uint32_t step, void *to, size_t bytes);

/* to[i] = from[i] */
cudaError_t words_copy(cudaStream_t stream, int blocks, const void *from, void *to, size_t bytes);

/* *sum += from[0] + from[1] + ..., modulo 2^64 */
cudaError_t words_sum(cudaStream_t stream, int blocks, const void *from, size_t bytes, unsigned long long *sum);

/* *differ = 1 if a byte of a is not that of b; it is 0 before. bytes: any number. */
cudaError_t bytes_differ(cudaStream_t stream, int blocks, const void *a, const void *b, size_t bytes,
                         unsigned long long *differ);

#ifdef __cplusplus
}
#endif

#endif
