/* The kernel that does nothing, by which a context finds out whether its device runs this build's code.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cuda_runtime.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

extern "C" {
#include "runtime_cuda.h"
}

static __global__ void probe()
{
}

extern "C" cudaError_t cuda_probe(cudaStream_t stream)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, probe);
}
