/* What every CUDA rung of the product shares: the matrix's arrays by value, and how a sum becomes an element of y.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_CUDA_CUH
#define SPMV_CUDA_CUH

#include "complex.cuh"
#include "launch.cuh"

/* A plan's matrix with its types, T that of vectors and sums; val NULL: a pattern. */
template <typename T, typename Offset, typename Stored> struct csr_arrays {
    int64_t rows;
    const Offset *row_ptr;
    const int32_t *col;
    const Stored *val;

    /* What entry k adds to its row. */
    __device__ T term(int64_t k, const T *x) const
    {
        const T element = load_whole(x + col[k]);
        return val != nullptr ? T(load_whole(val + k)) * element : element;
    }
};

/* y_i = alpha sum + beta y_i; y is not read when beta is 0. */
template <typename T> struct scaling {
    T alpha, beta;
    bool beta_zero;

    __device__ void store(T sum, T *y) const
    {
        *y = beta_zero ? alpha * sum : alpha * sum + beta * *y;
    }
};

/* As launch, for a kernel that calls griddepcontrol.wait before it reads or writes what kernels before it wrote or
 * read: it may begin while the one before it in the stream still runs, where the device and the code that it runs can
 * do that. (The default stream is left out: it waits for other streams in ways of its own.) */
template <typename... Parameters, typename... Arguments>
spmv_status launch_early(spmv_context *ctx, const char *name, int blocks, int threads, void (*kernel)(Parameters...),
                         Arguments... arguments)
{
    cuda_state *const state = (cuda_state *)ctx->device;
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)threads);
    config.stream = (cudaStream_t)ctx->stream;
    config.attrs = &early;
    config.numAttrs = state->code_version >= 90 && config.stream != cudaStreamLegacy ? 1 : 0;
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
    state->last_kernel = name;
    return cuda_check(ctx, error, name);
}

#endif
