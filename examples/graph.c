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

/* What the program makes; its stream, arrays, graph and events are those of a CUDA application. */
struct heat {
    int size;
    int64_t n;
    int32_t nnz;
    double dt;
    struct arrays host, device;
    double *result; /* on the host */
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    cudaEvent_t begin, end;
    spmv_context *ctx;
    spmv_plan *plan;
};

/* Allocates the arrays, assembles the matrix and copies it to the device. */
static spmv_status make_arrays(struct heat *h)
{
    spmv_status st = SPMV_OK;
    const size_t n = (size_t)h->n, vector = n * sizeof(double);
    struct arrays *const host = &h->host, *const device = &h->device;
    host->row_ptr = malloc((n + 1) * sizeof *host->row_ptr);
    host->col = malloc(5 * n * sizeof *host->col);
    host->val = malloc(5 * n * sizeof *host->val);
    host->u = malloc(vector);
    h->result = malloc(vector);
    if (host->row_ptr == NULL || host->col == NULL || host->val == NULL || host->u == NULL || h->result == NULL) {
        fprintf(stderr, "no memory for a grid of %d x %d\n", h->size, h->size);
        return SPMV_ERROR_MEMORY;
    }
    h->nnz = assemble(host, h->size);
    const size_t nnz = (size_t)h->nnz;
    CHECK_CUDA(cudaStreamCreateWithFlags(&h->stream, cudaStreamNonBlocking));
    CHECK_CUDA(cudaMalloc((void **)&device->row_ptr, (n + 1) * sizeof *device->row_ptr));
    CHECK_CUDA(cudaMalloc((void **)&device->col, nnz * sizeof *device->col));
    CHECK_CUDA(cudaMalloc((void **)&device->val, nnz * sizeof *device->val));
    CHECK_CUDA(cudaMalloc((void **)&device->u, vector));
    CHECK_CUDA(cudaMalloc((void **)&device->v, vector));
    CHECK_CUDA(cudaMemcpyAsync(device->row_ptr, host->row_ptr, (n + 1) * sizeof *host->row_ptr, cudaMemcpyHostToDevice,
                               h->stream));
    CHECK_CUDA(cudaMemcpyAsync(device->col, host->col, nnz * sizeof *host->col, cudaMemcpyHostToDevice, h->stream));
    CHECK_CUDA(cudaMemcpyAsync(device->val, host->val, nnz * sizeof *host->val, cudaMemcpyHostToDevice, h->stream));
    CHECK_CUDA(cudaMemcpyAsync(device->u, host->u, vector, cudaMemcpyHostToDevice, h->stream));
done:
    return st;
}

/* The plan borrows the arrays, which are already in context memory. */
static spmv_status make_plan(struct heat *h)
{
    spmv_status st = SPMV_OK;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_CUDA;
    options.stream = h->stream;
    spmv_context *ctx = NULL;
    CHECK(spmv_context_create(&options, &ctx));
    h->ctx = ctx;
    const spmv_csr a = {.rows = h->n,
                        .cols = h->n,
                        .nnz = h->nnz,
                        .row_ptr = h->device.row_ptr,
                        .row_ptr_bits = 32,
                        .col = h->device.col,
                        .val = h->device.val,
                        .type = SPMV_F64,
                        .memory = SPMV_MEMORY_CONTEXT};
    CHECK(spmv_plan_create(ctx, &a, NULL, &h->plan));
done:
    return st;
}

/* Captures two steps: from u to v and back. */
static spmv_status capture(struct heat *h)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = h->ctx;
    double *const u = h->device.u, *const v = h->device.v;
    /* one step before the capture loads the kernels; u does not change */
    CHECK(step(h->plan, h->dt, u, v, h->n, h->stream));
    CHECK(spmv_synchronize(ctx));
    CHECK_CUDA(cudaStreamBeginCapture(h->stream, cudaStreamCaptureModeGlobal));
    CHECK(step(h->plan, h->dt, u, v, h->n, h->stream));
    CHECK(step(h->plan, h->dt, v, u, h->n, h->stream));
    CHECK_CUDA(cudaStreamEndCapture(h->stream, &h->graph));
    CHECK_CUDA(cudaGraphInstantiate(&h->replay, h->graph, 0));
done:
    return st;
}

static spmv_status replay(struct heat *h, int replays, float *milliseconds)
{
    spmv_status st = SPMV_OK;
    CHECK_CUDA(cudaEventCreate(&h->begin));
    CHECK_CUDA(cudaEventCreate(&h->end));
    CHECK_CUDA(cudaEventRecord(h->begin, h->stream));
    for (int k = 0; k < replays; k++)
        CHECK_CUDA(cudaGraphLaunch(h->replay, h->stream));
    CHECK_CUDA(cudaEventRecord(h->end, h->stream));
    CHECK_CUDA(
        cudaMemcpyAsync(h->result, h->device.u, (size_t)h->n * sizeof *h->result, cudaMemcpyDeviceToHost, h->stream));
    CHECK_CUDA(cudaStreamSynchronize(h->stream));
    CHECK_CUDA(cudaEventElapsedTime(milliseconds, h->begin, h->end));
done:
    return st;
}

/* Compares u with the known solution, and prints. Returns whether it is wrong. */
static int check(const struct heat *h, int replays, float milliseconds)
{
    const double s = sin(3.14159265358979323846 / (2.0 * (h->size + 1))), lambda = 8 * s * s;
    const double factor = pow(1 - h->dt * lambda, 2.0 * replays);
    /* The rounding error of a step is at most 8 eps (dt sum |a_ij| + 1) <= 21 eps. Later steps do
     * not enlarge it, because the row sums of |I - dt A| are at most 1. A little more for the
     * rounded start and factor. */
    const double error = worst_error(h->result, h->host.u, factor, h->n), bound = (42.0 * replays + 16) * 0x1p-53;
    const int wrong = !(error <= bound);
    spmv_plan_info info;
    (void)spmv_plan_describe(h->plan, &info, sizeof info);
    printf("heat on a %d x %d grid: %s, method %s, the plan owns %lld bytes\n", h->size, h->size,
           spmv_context_describe(h->ctx), info.method, (long long)info.bytes);
    printf("%d steps in %d replays: %.3f microseconds a step\n", 2 * replays, replays,
           1e3 * milliseconds / (2.0 * replays));
    printf("u is %.9f of its start, off by at most %.3g, allowed %.3g: %s\n", factor, error, bound,
           wrong ? "WRONG" : "verified");
    return wrong;
}

static void release(struct heat *h)
{
    free(h->host.row_ptr);
    free(h->host.col);
    free(h->host.val);
    free(h->host.u);
    free(h->result);
    spmv_plan_destroy(h->plan);
    spmv_context_destroy(h->ctx);
    cudaFree(h->device.row_ptr);
    cudaFree(h->device.col);
    cudaFree(h->device.val);
    cudaFree(h->device.u);
    cudaFree(h->device.v);
    if (h->begin != NULL)
        cudaEventDestroy(h->begin);
    if (h->end != NULL)
        cudaEventDestroy(h->end);
    if (h->replay != NULL)
        cudaGraphExecDestroy(h->replay);
    if (h->graph != NULL)
        cudaGraphDestroy(h->graph);
    if (h->stream != NULL)
        cudaStreamDestroy(h->stream);
}

int main(int argc, char **argv)
{
    long long number[] = {256, 500};
    if (!numbers_read(argc, argv, 10000, "graph [N [replays]], 1 <= N <= 10000, replays >= 1", number))
        return 1;
    const int size = (int)number[0], replays = (int)number[1];
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no usable GPU\n");
        return SKIPPED;
    }
    struct heat h = {.size = size, .n = (int64_t)size * size, .dt = 0.2}; /* stable below 2 / 8 */
    float milliseconds = 0;
    spmv_status st = make_arrays(&h);
    if (st == SPMV_OK)
        st = make_plan(&h);
    if (st == SPMV_OK)
        st = capture(&h);
    if (st == SPMV_OK)
        st = replay(&h, replays, &milliseconds);
    const int wrong = st == SPMV_OK && check(&h, replays, milliseconds);
    release(&h);
    return st == SPMV_ERROR_NO_DEVICE ? SKIPPED : st != SPMV_OK || wrong;
}
