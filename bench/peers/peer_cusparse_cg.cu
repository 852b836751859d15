/* cuSPARSE and cuBLAS: conjugate gradients from their functions, as users without their own vector
 * kernels write it. An iteration is cusparseSpMV on CSR with CSR_ALG1, preprocessed, two dots, two
 * axpys, and a scal and an axpy for the new direction. Scalars stay on the device, and kernels of
 * one thread divide them.
 *
 * The peer with a loop on the host reads r'r in each iteration and stops. The other one captures
 * blocks of iterations as a graph (and the rest up to the limit as a second graph), and reads all
 * r'r of a block at its end. Within the block alpha and beta become 0 once r'r is small enough, so
 * x and the count of iterations equal those of the loop.
 *
 * Source: the cuSPARSE documentation, "Generic APIs"; the cuBLAS documentation, "Scalar
 * parameters", "CUDA graphs support".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cmath>
#include <cstdlib>

#include "bench/peers/cublas_calls.h"

namespace
{

enum { BLOCK = 32, WORKSPACE = 32 << 20 };

/* On the device. rr[k]: r'r before iteration k of a block, rr[k + 1] after it; one: 1. */
template <typename T> struct scalars {
    T rr[BLOCK + 1], pq, alpha, minus_alpha, beta, enough, one;
};

/* Sets enough from r'r in rr[0] at the start. */
template <typename T> __global__ void begin_scalars(scalars<T> *s, T square)
{
    s->enough = square * s->rr[0];
    s->one = 1;
}

template <typename T> __global__ void carry(scalars<T> *s, int from)
{
    s->rr[0] = s->rr[from];
}

/* 0 after convergence: x, r and r'r then stay unchanged. */
template <typename T> __global__ void divide_alpha(scalars<T> *s, int k)
{
    s->alpha = s->rr[k] <= s->enough ? T(0) : s->rr[k] / s->pq;
    s->minus_alpha = -s->alpha;
}

template <typename T> __global__ void divide_beta(scalars<T> *s, int k)
{
    s->beta = s->rr[k + 1] <= s->enough ? T(0) : s->rr[k + 1] / s->rr[k];
}

template <typename T> struct solver {
    peer_problem problem;
    cudaStream_t stream;
    cusparseHandle_t sparse;
    cublasHandle_t blas;
    cusparseConstSpMatDescr_t matrix;
    cusparseDnVecDescr_t p_vector, q_vector;
    void *buffer, *workspace;
    T *r, *p, *q;
    scalars<T> *s;
    T *host_rr; /* pinned, BLOCK + 1 */
    cudaGraphExec_t block, rest;
    int rest_count; /* iterations of rest */
};

template <typename T> constexpr cudaDataType data_type = sizeof(T) == sizeof(float) ? CUDA_R_32F : CUDA_R_64F;
template <typename T> const T zero_and_one[] = {T(0), T(1)};

template <typename T> void close_solver(void *state)
{
    auto *const c = static_cast<solver<T> *>(state);
    if (c == nullptr)
        return;
    drop(c->block, cudaGraphExecDestroy);
    drop(c->rest, cudaGraphExecDestroy);
    drop(c->matrix, cusparseDestroySpMat);
    drop(c->p_vector, cusparseDestroyDnVec);
    drop(c->q_vector, cusparseDestroyDnVec);
    drop(c->sparse, cusparseDestroy);
    drop(c->blas, cublasDestroy);
    void *const memory[] = {c->buffer, c->workspace, c->r, c->p, c->q, c->s};
    for (void *m : memory)
        cudaFree(m);
    cudaFreeHost(c->host_rr);
    delete c;
}

template <typename T> bool product(const solver<T> *c, refusal r)
{
    return !bad(cusparseSpMV(c->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &zero_and_one<T>[1], c -> matrix,
                             c -> p_vector, &zero_and_one<T>[0], c -> q_vector, data_type<T>, CUSPARSE_SPMV_CSR_ALG1,
                             c -> buffer),
                "cusparseSpMV", r);
}

/* x += alpha p, r -= alpha q, new r'r. */
template <typename T> bool first_half(const solver<T> *c, int k, refusal r)
{
    const int n = static_cast<int>(c->problem.rows);
    if (!product(c, r) || bad(dot(c->blas, n, c->p, c->q, &c->s->pq), "cublas dot", r))
        return false;
    divide_alpha<<<1, 1, 0, c->stream>>>(c->s, k);
    return !bad(cudaGetLastError(), "the kernel that divides", r) &&
           !bad(axpy(c->blas, n, &c->s->alpha, c->p, static_cast<T *>(c->problem.y)), "cublas axpy", r) &&
           !bad(axpy(c->blas, n, &c->s->minus_alpha, c->q, c->r), "cublas axpy", r) &&
           !bad(dot(c->blas, n, c->r, c->r, &c->s->rr[k + 1]), "cublas dot", r);
}

/* p = r + beta p */
template <typename T> bool second_half(const solver<T> *c, int k, refusal r)
{
    const int n = static_cast<int>(c->problem.rows);
    divide_beta<<<1, 1, 0, c->stream>>>(c->s, k);
    return !bad(cudaGetLastError(), "the kernel that divides", r) &&
           !bad(scal(c->blas, n, &c->s->beta, c->p), "cublas scal", r) &&
           !bad(axpy(c->blas, n, &c->s->one, c->r, c->p), "cublas axpy", r);
}

/* x = 0, r = p = b, rr[0] = r'r. */
template <typename T> bool start(const solver<T> *c, refusal r)
{
    const int n = static_cast<int>(c->problem.rows);
    const size_t bytes = static_cast<size_t>(n) * sizeof(T);
    if (bad(cudaMemsetAsync(c->problem.y, 0, bytes, c->stream), "cudaMemsetAsync", r) ||
        bad(cudaMemcpyAsync(c->r, c->problem.b, bytes, cudaMemcpyDeviceToDevice, c->stream), "cudaMemcpyAsync", r) ||
        bad(cudaMemcpyAsync(c->p, c->problem.b, bytes, cudaMemcpyDeviceToDevice, c->stream), "cudaMemcpyAsync", r) ||
        bad(dot(c->blas, n, c->r, c->r, &c->s->rr[0]), "cublas dot", r))
        return false;
    begin_scalars<<<1, 1, 0, c->stream>>>(c->s, static_cast<T>(c->problem.rtol * c->problem.rtol));
    return !bad(cudaGetLastError(), "the kernel that begins", r);
}

/* Reads count values of rr from first on; waits. */
template <typename T> bool read_rr(const solver<T> *c, int first, int count, refusal r)
{
    return !bad(cudaMemcpyAsync(c->host_rr, &c->s->rr[first], static_cast<size_t>(count) * sizeof(T),
                                cudaMemcpyDeviceToHost, c->stream),
                "cudaMemcpyAsync", r) &&
           !bad(cudaStreamSynchronize(c->stream), "cudaStreamSynchronize", r);
}

/* A solve as the host knows it. */
template <typename T> struct solve {
    T rr0, rr, enough; /* enough: the same value as computed on the device */
    int64_t iterations;
};

template <typename T> bool begin(const solver<T> *c, solve<T> *s, refusal r)
{
    if (!start(c, r) || !read_rr(c, 0, 1, r))
        return false;
    const T rr = c->host_rr[0];
    *s = {rr, rr, static_cast<T>(c->problem.rtol * c->problem.rtol) * rr, 0};
    return true;
}

/* Runs steps until the solve ends, and tells the result. step(c, s, r) does some iterations. */
template <typename T, typename Step> int run_steps(void *state, const Step &step)
{
    const auto *const c = static_cast<const solver<T> *>(state);
    char why[256];
    const refusal r = {why, sizeof why};
    solve<T> s;
    bool fine = begin(c, &s, r);
    while (fine && s.rr > s.enough && s.iterations < c->problem.max_iterations)
        fine = step(c, &s, r);
    if (!fine)
        return -1;
    c->problem.solved->iterations = s.iterations;
    c->problem.solved->residual = s.rr0 > 0 ? std::sqrt(static_cast<double>(s.rr) / static_cast<double>(s.rr0)) : 0;
    return 0;
}

/* One iteration. */
template <typename T> bool step_host(const solver<T> *c, solve<T> *s, refusal r)
{
    const int k = static_cast<int>(s->iterations % BLOCK);
    if (!first_half(c, k, r) || !read_rr(c, k + 1, 1, r))
        return false;
    s->rr = c->host_rr[0];
    s->iterations++;
    if (!(s->rr > s->enough))
        return true;
    if (!second_half(c, k, r))
        return false;
    if (s->iterations % BLOCK != 0)
        return true;
    carry<<<1, 1, 0, c->stream>>>(c->s, static_cast<int>(BLOCK));
    return !bad(cudaGetLastError(), "the kernel that carries", r);
}

/* A graph of iterations. */
template <typename T> bool step_graph(const solver<T> *c, solve<T> *s, refusal r)
{
    const bool whole = c->problem.max_iterations - s->iterations >= BLOCK;
    const int count = whole ? static_cast<int>(BLOCK) : c->rest_count;
    if (bad(cudaGraphLaunch(whole ? c->block : c->rest, c->stream), "cudaGraphLaunch", r) || !read_rr(c, 1, count, r))
        return false;
    for (int k = 0; k < count && s->rr > s->enough; k++) {
        s->rr = c->host_rr[k];
        s->iterations++;
    }
    return true;
}

template <typename T> int run_host(void *state)
{
    return run_steps<T>(state, step_host<T>);
}

template <typename T> int run_graph(void *state)
{
    return run_steps<T>(state, step_graph<T>);
}

template <typename T> bool capture(const solver<T> *c, int count, cudaGraphExec_t *exec, refusal r)
{
    const auto record = [=] {
        bool fine = true;
        for (int k = 0; k < count && fine; k++)
            fine = first_half(c, k, r) && second_half(c, k, r);
        if (fine && count == BLOCK) {
            carry<<<1, 1, 0, c->stream>>>(c->s, count);
            fine = !bad(cudaGetLastError(), "the kernel that carries", r);
        }
        return fine;
    };
    return count == 0 || capture_graph(c->stream, record, exec, r);
}

template <typename T> bool make_vectors(solver<T> *c, refusal r)
{
    const auto n = static_cast<size_t>(c->problem.rows);
    return get(&c->r, n, r) && get(&c->p, n, r) && get(&c->q, n, r) && get(&c->s, 1, r) &&
           !bad(device_alloc(WORKSPACE, &c->workspace), "cudaMalloc", r) &&
           !bad(cudaMallocHost(reinterpret_cast<void **>(&c->host_rr), (BLOCK + 1) * sizeof(T)), "cudaMallocHost", r) &&
           !bad(cudaMemsetAsync(c->p, 0, n * sizeof(T), c->stream), "cudaMemsetAsync", r);
}

template <typename T> bool make_matrix(solver<T> *c, refusal r)
{
    const peer_problem &q = c->problem;
    size_t bytes = 0;
    return sparse_handle(c->stream, &c->sparse, r.why, r.size) &&
           !bad(cusparseCreateDnVec(&c->p_vector, q.rows, c->p, data_type<T>), "cusparseCreateDnVec", r) &&
           !bad(cusparseCreateDnVec(&c->q_vector, q.rows, c->q, data_type<T>), "cusparseCreateDnVec", r) &&
           sparse_csr(&q, &c->matrix, r.why, r.size) &&
           !bad(cusparseSpMV_bufferSize(c->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &zero_and_one<T>[1], c -> matrix,
                                        c -> p_vector, &zero_and_one<T>[0], c -> q_vector, data_type<T>,
                                        CUSPARSE_SPMV_CSR_ALG1, &bytes),
                "cusparseSpMV_bufferSize", r) &&
           !bad(device_alloc(bytes, &c->buffer), "cudaMalloc", r) &&
           !bad(cusparseSpMV_preprocess(c->sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &zero_and_one<T>[1], c -> matrix,
                                        c -> p_vector, &zero_and_one<T>[0], c -> q_vector, data_type<T>,
                                        CUSPARSE_SPMV_CSR_ALG1, c -> buffer),
                "cusparseSpMV_preprocess", r);
}

template <typename T> int open_solver(const peer_problem *problem, bool graph, void **state, char *why, size_t why_size)
{
    const refusal r = {why, why_size};
    auto *const c = new_object<solver<T>>(why, why_size);
    if (c == nullptr)
        return -1;
    c->problem = *problem;
    c->stream = static_cast<cudaStream_t>(problem->stream);
    c->rest_count = static_cast<int>(problem->max_iterations % BLOCK);
    /* The first iteration loads the kernels, which is not allowed during a capture. */
    const bool ready =
        !bad(use_device_of(c->stream), "cudaSetDevice", r) && make_vectors(c, r) && make_matrix(c, r) &&
        blas_handle(c->stream, c->workspace, WORKSPACE, &c->blas, r) && start(c, r) && first_half(c, 0, r) &&
        second_half(c, 0, r) && !bad(cudaStreamSynchronize(c->stream), "cudaStreamSynchronize", r) &&
        (!graph || (capture(c, static_cast<int>(BLOCK), &c->block, r) && capture(c, c->rest_count, &c->rest, r))) &&
        !bad(cudaStreamSynchronize(c->stream), "cudaStreamSynchronize", r);
    if (ready) {
        *state = c;
        return 0;
    }
    close_solver<T>(c);
    return -1;
}

/* The type is needed when a state is run, so it is stored beside the solver. */
struct typed {
    bool f32;
    void *solver;
};

int open_typed(const peer_problem *problem, bool graph, void **state, char *why, size_t why_size)
{
    auto *const t = new_object<typed>(why, why_size);
    if (t == nullptr)
        return -1;
    t->f32 = problem->type == SPMV_F32;
    const int failed = t->f32 ? open_solver<float>(problem, graph, &t->solver, why, why_size)
                              : open_solver<double>(problem, graph, &t->solver, why, why_size);
    if (failed == 0)
        *state = t;
    else
        delete t;
    return failed;
}

int open_host(const peer_problem *problem, void **state, char *why, size_t why_size)
{
    return open_typed(problem, false, state, why, why_size);
}

int open_graph(const peer_problem *problem, void **state, char *why, size_t why_size)
{
    return open_typed(problem, true, state, why, why_size);
}

int run_typed_host(void *state)
{
    const auto *const t = static_cast<const typed *>(state);
    return t->f32 ? run_host<float>(t->solver) : run_host<double>(t->solver);
}

int run_typed_graph(void *state)
{
    const auto *const t = static_cast<const typed *>(state);
    return t->f32 ? run_graph<float>(t->solver) : run_graph<double>(t->solver);
}

void close_typed(void *state)
{
    auto *const t = static_cast<typed *>(state);
    if (t == nullptr)
        return;
    if (t->f32)
        close_solver<float>(t->solver);
    else
        close_solver<double>(t->solver);
    delete t;
}

const peer peers[] = {
    {"cusparse-cg-host", PEER_CG,
     "cusparseSpMV CSR_ALG1, preprocessed; cuBLAS dot, axpy, scal, scalars on the device; r'r read each iteration", 0,
     open_host, run_typed_host, nullptr, nullptr, close_typed},
    {"cusparse-cg-graph", PEER_CG,
     "cusparseSpMV CSR_ALG1, preprocessed; cuBLAS dot, axpy, scal, scalars on the device; graphs of 32 iterations, r'r "
     "of all read after each",
     0, open_graph, run_typed_graph, nullptr, nullptr, close_typed},
};

} // namespace

const struct peer_module *spmv_peer_module(void)
{
    return module_of(peers);
}
