/* The parts of a dot product on the device: a block for each chunk. Thread t adds the products of
 * rows t, t + 256, ... of the chunk, and the threads' sums are added in a tree, so the bits depend
 * on the chunk alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/dispatch.cuh"
#include "device/launch.cuh"

extern "C" {
#include "distributed/group_internal.h"
}

namespace
{

enum { THREADS = 256 };

template <typename T>
__global__ void __launch_bounds__(THREADS)
    chunk_dots(const int64_t *chunk, int64_t chunks, int of, const T *a, const T *b, T *parts)
{
    __shared__ T sums[THREADS];
    const int me = threadIdx.x;
    for (int64_t c = blockIdx.x; c < chunks; c += gridDim.x) {
        T sum = 0;
        for (int64_t i = of * chunk[c] + me; i < of * chunk[c + 1]; i += THREADS)
            sum += a[i] * b[i];
        sums[me] = sum;
        for (int half = THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (me < half)
                sums[me] += sums[me + half];
        }
        if (me == 0)
            parts[c] = sums[0];
        __syncthreads(); /* before the next chunk overwrites sums */
    }
}

} // namespace

extern "C" spmv_status group_chunk_dots_cuda(spmv_context *ctx, spmv_type type, const int64_t *chunk, int64_t chunks,
                                             int of, const void *a, const void *b, void *parts)
{
    return on_device(ctx, [&] {
        return with_zero(ctx, "spmv_group", type, [&](auto zero) {
            using T = decltype(zero);
            return launch(ctx, "group chunk dots", (unsigned)chunks, THREADS, chunk_dots<T>, chunk, chunks, of,
                          (const T *)a, (const T *)b, (T *)parts);
        });
    });
}
