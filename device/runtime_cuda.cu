/* An empty kernel: a context launches it to test whether its device runs this build's code, and for
 * which architecture that code was compiled.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/chain.cuh"

static __global__ void probe()
{
}

extern "C" cudaError_t cuda_probe(cudaStream_t stream, int *code_version)
{
    cudaFuncAttributes attributes = {};
    const cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)probe);
    if (error != cudaSuccess)
        return error;
    *code_version = attributes.ptxVersion;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, probe);
}

extern "C" int64_t cuda_chain_bytes(void)
{
    return (int64_t)sizeof(chain_memory);
}
