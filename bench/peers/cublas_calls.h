/* Code common to the solvers made of cuSPARSE and cuBLAS calls (CUDA C++): checks of every return
 * code, cuBLAS functions by type, memory, and graphs.
 *
 * Source: the cuBLAS documentation, "Scalar parameters", "CUDA graphs support".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CUBLAS_CALLS_H
#define CUBLAS_CALLS_H

#include "bench/peers/peer_cublas.h"
#include "bench/peers/peer_cusparse.h"

/* Where the message of a failed call goes. */
struct refusal {
    char *why;
    size_t size;
};

/* True if the call failed, with a message. */
inline bool bad(cudaError_t error, const char *call, refusal r)
{
    return bad_cuda(error, call, r.why, r.size);
}

inline bool bad(cusparseStatus_t status, const char *call, refusal r)
{
    return bad_sparse(status, call, r.why, r.size);
}

inline bool bad(cublasStatus_t status, const char *call, refusal r)
{
    return bad_blas(status, call, r.why, r.size);
}

inline cublasStatus_t dot(cublasHandle_t h, int n, const double *x, const double *y, double *result)
{
    return cublasDdot(h, n, x, 1, y, 1, result);
}

inline cublasStatus_t dot(cublasHandle_t h, int n, const float *x, const float *y, float *result)
{
    return cublasSdot(h, n, x, 1, y, 1, result);
}

inline cublasStatus_t axpy(cublasHandle_t h, int n, const double *a, const double *x, double *y)
{
    return cublasDaxpy(h, n, a, x, 1, y, 1);
}

inline cublasStatus_t axpy(cublasHandle_t h, int n, const float *a, const float *x, float *y)
{
    return cublasSaxpy(h, n, a, x, 1, y, 1);
}

inline cublasStatus_t scal(cublasHandle_t h, int n, const double *a, double *x)
{
    return cublasDscal(h, n, a, x, 1);
}

inline cublasStatus_t scal(cublasHandle_t h, int n, const float *a, float *x)
{
    return cublasSscal(h, n, a, x, 1);
}

/* A handle on the stream with workspace of its own, which graphs need, and scalars on the device. */
inline bool blas_handle(cudaStream_t stream, void *workspace, size_t bytes, cublasHandle_t *handle, refusal r)
{
    return !bad(cublasCreate(handle), "cublasCreate", r) &&
           !bad(cublasSetStream(*handle, stream), "cublasSetStream", r) &&
           !bad(cublasSetWorkspace(*handle, workspace, bytes), "cublasSetWorkspace", r) &&
           !bad(cublasSetPointerMode(*handle, CUBLAS_POINTER_MODE_DEVICE), "cublasSetPointerMode", r);
}

/* Memory of the device for count elements; *memory is NULL after a failure. */
template <typename P> bool get(P **memory, size_t count, refusal r)
{
    void *m = nullptr;
    const bool fine = !bad(device_alloc(count * sizeof(P), &m), "cudaMalloc", r);
    *memory = static_cast<P *>(m);
    return fine;
}

/* Releases a handle, if there is one, by its library's function. */
template <typename Handle, typename Argument, typename Result> void drop(Handle handle, Result (*destroy)(Argument))
{
    if (handle != nullptr)
        destroy(handle);
}

/* Captures what record queues on the stream as a graph. Kernels must have been loaded before, by a
 * run without a capture. */
template <typename F> bool capture_graph(cudaStream_t stream, F record, cudaGraphExec_t *exec, refusal r)
{
    cudaGraph_t graph = nullptr;
    if (bad(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture", r))
        return false;
    bool fine = record();
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    fine = fine && !bad(ended, "cudaStreamEndCapture", r) &&
           !bad(cudaGraphInstantiate(exec, graph, 0), "cudaGraphInstantiate", r) &&
           !bad(cudaGraphUpload(*exec, stream), "cudaGraphUpload", r);
    if (graph != nullptr)
        cudaGraphDestroy(graph);
    return fine;
}

/* A module of these peers, with the versions of both libraries. */
template <size_t COUNT> const peer_module *module_of(const peer (&peers)[COUNT])
{
    static char library[96];
    static const peer_module module = {PEER_ABI, library, peers, static_cast<int>(COUNT)};
    char sparse[32], blas[32];
    sparse_version(sparse, sizeof sparse);
    blas_version(blas, sizeof blas);
    snprintf(library, sizeof library, "%s, %s", sparse, blas);
    return &module;
}

#endif
