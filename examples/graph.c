/* The library in a CUDA application: the matrix and the vectors are device arrays of the
 * application, the work is queued on its stream, and two products are captured in a CUDA graph that
 * is then replayed.
 *
 * The heat equation u' = -A u on an N x N grid, A the 5-point Laplacian, by explicit steps u <- u -
 * dt A u. One step is one product y = alpha A x + beta y with alpha = -dt, beta = 1 and initially y
 * = x. The start is an eigenvector of A, sin(pi (i + 1) / (N + 1)) sin(pi (j + 1) / (N + 1)), with
 * eigenvalue lambda = 8 sin^2(pi / (2 (N + 1))) (Y. Saad, "Iterative Methods for Sparse Linear
 * Systems", 2nd ed., section 13.2): after k steps every element is (1 - dt lambda)^k times its
 * start.
 *
 * usage: graph [N [replays]], default 256 and 500. Exit code 77 without a usable GPU.
 *
 * By hand:
 *
 *   cc graph.c -I/usr/local/cuda/include $(pkg-config --cflags --libs spmv) \
 *     -L/usr/local/cuda/lib64 -lcudart_static -ldl -lrt -lpthread -lm -o graph
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>

#include "check.h"

/* As CHECK, for a call of CUDA. */
#define CHECK_CUDA(call)                                                                                               \
    do {                                                                                                               \
        const cudaError_t error = (call);                                                                              \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                                             \
            st = SPMV_ERROR_DEVICE;                                                                                    \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

enum { SKIPPED = 77 };

/* The application's matrix and vectors, on the host or on the device. */
struct arrays {
    int32_t *row_ptr, *col;
    double *val, *u, *v;
};

/* Appends an entry if the neighbour is in the grid. */
static void put(struct arrays *a, int32_t *k, int size, int i, int j, double value)
{
    if (i < 0 || j < 0 || i >= size || j >= size)
        return;
    a->col[*k] = i * size + j;
    a->val[(*k)++] = value;
}

/* Assembles the Laplacian row by row, columns ascending. Returns the number of entries. */
static int32_t assemble(struct arrays *a, int size)
{
    const double h = 3.14159265358979323846 / (size + 1);
    int32_t k = 0;
    a->row_ptr[0] = 0;
    for (int i = 0; i < size; i++) {
        for (int j = 0; j < size; j++) {
            put(a, &k, size, i - 1, j, -1);
            put(a, &k, size, i, j - 1, -1);
            put(a, &k, size, i, j, 4);
            put(a, &k, size, i, j + 1, -1);
            put(a, &k, size, i + 1, j, -1);
            a->row_ptr[i * size + j + 1] = k;
            a->u[i * size + j] = sin(h * (i + 1)) * sin(h * (j + 1));
        }
    }
    return k;
}

/* v = u, v = v - dt A u: queued without waiting. */
static spmv_status step(spmv_plan *plan, double dt, const double *u, double *v, int64_t n, cudaStream_t stream)
{
    const double alpha = -dt, beta = 1;
    if (cudaMemcpyAsync(v, u, (size_t)n * sizeof *v, cudaMemcpyDeviceToDevice, stream) != cudaSuccess)
        return SPMV_ERROR_DEVICE;
    return spmv_apply(plan, &alpha, u, &beta, v);
}

/* The largest difference between u and factor * start. */
static double worst_error(const double *u, const double *start, double factor, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        const double error = fabs(u[i] - factor * start[i]);
        if (!(error <= worst))
            worst = error;
    }
    return worst;
}

int main(int argc, char **argv)
{
    const int size = argc > 1 ? atoi(argv[1]) : 256;
    const int replays = argc > 2 ? atoi(argv[2]) : 500;
    if (argc > 3 || size < 1 || size > 10000 || replays < 1) {
        fprintf(stderr, "usage: graph [N [replays]], 1 <= N <= 10000, replays >= 1\n");
        return 1;
    }
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no usable GPU\n");
        return SKIPPED;
    }

    const int64_t n = (int64_t)size * size;
    const double s = sin(3.14159265358979323846 / (2.0 * (size + 1)));
    const double lambda = 8 * s * s, dt = 0.2; /* stable below 2 / 8 */
    const size_t vector = (size_t)n * sizeof(double);
    spmv_status st = SPMV_OK;
    spmv_context *ctx = NULL;
    spmv_plan *plan = NULL;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t replay = NULL;
    cudaEvent_t begin = NULL, end = NULL;
    struct arrays host = {0}, device = {0};
    double *result = NULL;
    int wrong = 0;

    host.row_ptr = malloc((size_t)(n + 1) * sizeof *host.row_ptr);
    host.col = malloc((size_t)(5 * n) * sizeof *host.col);
    host.val = malloc((size_t)(5 * n) * sizeof *host.val);
    host.u = malloc(vector);
    result = malloc(vector);
    if (host.row_ptr == NULL || host.col == NULL || host.val == NULL || host.u == NULL || result == NULL) {
        fprintf(stderr, "no memory for a grid of %d x %d\n", size, size);
        st = SPMV_ERROR_MEMORY;
        goto done;
    }
    const int32_t nnz = assemble(&host, size);

    /* the application owns everything on the device, including the stream */
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc((void **)&device.row_ptr, (size_t)(n + 1) * sizeof *device.row_ptr));
    CHECK_CUDA(cudaMalloc((void **)&device.col, (size_t)nnz * sizeof *device.col));
    CHECK_CUDA(cudaMalloc((void **)&device.val, (size_t)nnz * sizeof *device.val));
    CHECK_CUDA(cudaMalloc((void **)&device.u, vector));
    CHECK_CUDA(cudaMalloc((void **)&device.v, vector));
    CHECK_CUDA(cudaMemcpyAsync(device.row_ptr, host.row_ptr, (size_t)(n + 1) * sizeof *host.row_ptr,
                               cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaMemcpyAsync(device.col, host.col, (size_t)nnz * sizeof *host.col, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaMemcpyAsync(device.val, host.val, (size_t)nnz * sizeof *host.val, cudaMemcpyHostToDevice, stream));
    CHECK_CUDA(cudaMemcpyAsync(device.u, host.u, vector, cudaMemcpyHostToDevice, stream));

    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_CUDA;
    options.stream = stream;
    CHECK(spmv_context_create(&options, &ctx));

    /* the plan borrows the arrays, which are already in context memory */
    const spmv_csr a = {.rows = n,
                        .cols = n,
                        .nnz = nnz,
                        .row_ptr = device.row_ptr,
                        .row_ptr_bits = 32,
                        .col = device.col,
                        .val = device.val,
                        .type = SPMV_F64,
                        .memory = SPMV_MEMORY_CONTEXT};
    CHECK(spmv_plan_create(ctx, &a, NULL, &plan));
    spmv_plan_info info;
    CHECK(spmv_plan_describe(plan, &info, sizeof info));

    /* one step before the capture loads the kernels; u does not change */
    CHECK(step(plan, dt, device.u, device.v, n, stream));
    CHECK(spmv_synchronize(ctx));

    /* the graph has two steps: from u to v and back */
    CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(step(plan, dt, device.u, device.v, n, stream));
    CHECK(step(plan, dt, device.v, device.u, n, stream));
    CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&replay, graph, 0));

    CHECK_CUDA(cudaEventCreate(&begin));
    CHECK_CUDA(cudaEventCreate(&end));
    CHECK_CUDA(cudaEventRecord(begin, stream));
    for (int k = 0; k < replays; k++)
        CHECK_CUDA(cudaGraphLaunch(replay, stream));
    CHECK_CUDA(cudaEventRecord(end, stream));
    CHECK_CUDA(cudaMemcpyAsync(result, device.u, vector, cudaMemcpyDeviceToHost, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    float milliseconds = 0;
    CHECK_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));

    /* The rounding error of a step is at most 8 eps (dt sum |a_ij| + 1) <= 21 eps. Later steps do
     * not enlarge it, because the row sums of |I - dt A| are at most 1. A little more for the
     * rounded start and factor. */
    const double factor = pow(1 - dt * lambda, 2.0 * replays);
    const double error = worst_error(result, host.u, factor, n), bound = (42.0 * replays + 16) * 0x1p-53;
    wrong = !(error <= bound);
    printf("heat on a %d x %d grid: %s, method %s, the plan owns %lld bytes\n", size, size, spmv_context_describe(ctx),
           info.method, (long long)info.bytes);
    printf("%d steps in %d replays: %.3f microseconds a step\n", 2 * replays, replays,
           1e3 * milliseconds / (2.0 * replays));
    printf("u is %.9f of its start, off by at most %.3g, allowed %.3g: %s\n", factor, error, bound,
           wrong ? "WRONG" : "verified");

done:
    free(host.row_ptr);
    free(host.col);
    free(host.val);
    free(host.u);
    free(result);
    spmv_plan_destroy(plan);
    spmv_context_destroy(ctx);
    cudaFree(device.row_ptr);
    cudaFree(device.col);
    cudaFree(device.val);
    cudaFree(device.u);
    cudaFree(device.v);
    if (begin != NULL)
        cudaEventDestroy(begin);
    if (end != NULL)
        cudaEventDestroy(end);
    if (replay != NULL)
        cudaGraphExecDestroy(replay);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    if (stream != NULL)
        cudaStreamDestroy(stream);
    return st == SPMV_ERROR_NO_DEVICE ? SKIPPED : st != SPMV_OK || wrong;
}
