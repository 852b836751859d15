/* Two ways to process only the elements that pass a test: an `if` in the kernel, or compaction
 * first.
 *
 * If 1 element in 20 passes, 81 % of the warps (1 - 0.95^32) contain at least one, and all lanes of
 * a warp wait while it is processed: the `if` costs nearly as much as processing all. After
 * compaction the elements fill whole warps, a twentieth of them, at the cost of one compaction. The
 * faster way depends on the time per element: the program times both for 1, 10 and 100 steps of
 * Newton's method for a square root.
 *
 * usage: filter [N [ONE_IN]], default 1000000 and 20. Exit code 77 without a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cuda_runtime.h>
#include <stdlib.h>

#include "check.h"

enum { THREADS = 256, REPEATS = 20 };

/* Steps of Newton's method for the square root of a. Host and device compute the same: no fused
 * multiply-add can occur, because there are only sums, quotients and an exact product with 1/2. */
__host__ __device__ static float process(float a, int steps)
{
    float x = 1 + a;
    for (int k = 0; k < steps; k++)
        x = 0.5f * (x + a / x);
    return x;
}

/* out[i] = process(in[i]) where in[i] < limit; other cells keep their values */
__global__ static void process_if(const float *in, float limit, int steps, float *out, int64_t n)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && in[i] < limit)
        out[i] = process(in[i], steps);
}

/* out[i] = process(in[i]) for i < *count, which is known only on the device */
__global__ static void process_all(const float *in, const int64_t *count, int steps, float *out)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < *count)
        out[i] = process(in[i], steps);
}

struct job {
    float *in, *kept, *out; /* n each, on the device */
    int64_t *count;
    float limit;
    int64_t n;
    cudaStream_t stream;
};

static spmv_status by_if(spmv_context *ctx, const struct job *job, int steps)
{
    (void)ctx;
    const unsigned blocks = (unsigned)((job->n + THREADS - 1) / THREADS);
    process_if<<<blocks, THREADS, 0, job->stream>>>(job->in, job->limit, steps, job->out, job->n);
    return cudaGetLastError() == cudaSuccess ? SPMV_OK : SPMV_ERROR_DEVICE;
}

static spmv_status by_compact(spmv_context *ctx, const struct job *job, int steps)
{
    const unsigned blocks = (unsigned)((job->n + THREADS - 1) / THREADS);
    const spmv_status st =
        spmv_compact_if(ctx, SPMV_IS_LESS, 1, SPMV_F32, &job->limit, job->in, job->kept, job->count, job->n);
    process_all<<<blocks, THREADS, 0, job->stream>>>(job->kept, job->count, steps, job->out);
    return st != SPMV_OK ? st : cudaGetLastError() == cudaSuccess ? SPMV_OK : SPMV_ERROR_DEVICE;
}

/* Microseconds of a run, after a warm-up. */
static spmv_status time_of(spmv_context *ctx, spmv_status (*way)(spmv_context *, const struct job *, int),
                           const struct job *job, int steps, float *microseconds)
{
    cudaEvent_t begin = NULL, end = NULL;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    spmv_status st = way(ctx, job, steps);
    cudaEventRecord(begin, job->stream);
    for (int r = 0; r < REPEATS && st == SPMV_OK; r++)
        st = way(ctx, job, steps);
    cudaEventRecord(end, job->stream);
    if (st == SPMV_OK)
        st = spmv_synchronize(ctx);
    float milliseconds = 0;
    if (st == SPMV_OK && cudaEventElapsedTime(&milliseconds, begin, end) != cudaSuccess)
        st = SPMV_ERROR_DEVICE;
    *microseconds = milliseconds * 1000 / REPEATS;
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return st;
}

/* Number of wrong cells in got, compared with process(host_in[i]) for host_in[i] < limit: at index
 * i, or (packed) in order. */
static int64_t wrong_cells(const float *host_in, float limit, int steps, const float *got, int packed, int64_t n)
{
    int64_t wrong = 0, kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (host_in[i] < limit)
            wrong += got[packed ? kept++ : i] != process(host_in[i], steps);
    return wrong;
}

int main(int argc, char **argv)
{
    long long number[] = {1000000, 20};
    if (!numbers_read(argc, argv, 1000000000, "filter [N [ONE_IN]], 1 <= N <= 10^9, ONE_IN >= 1", number))
        return 1;
    const int64_t n = number[0];
    const int one_in = (int)number[1];
    spmv_context *ctx = NULL;
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
    options.backend = SPMV_BACKEND_CUDA;
    struct job job = {};
    float *const host_in = (float *)malloc((size_t)n * sizeof(float)), *const got = (float *)malloc((size_t)n * 4);
    int64_t wrong = 0;
    spmv_status st = SPMV_OK;
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no usable GPU\n");
        return 77;
    }
    if (cudaStreamCreate(&job.stream) != cudaSuccess || host_in == NULL || got == NULL) {
        printf("no stream or no memory: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }
    options.stream = job.stream;
    job.n = n;
    job.limit = 1.0f / (float)one_in;
    uint64_t random = 1;
    for (int64_t i = 0; i < n; i++) { /* uniform in [0, 1); xorshift64 (G. Marsaglia, 2003) */
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        host_in[i] = (float)(random >> 40) * 0x1p-24f;
    }
    CHECK(spmv_context_create(&options, &ctx));
    CHECK(spmv_alloc(ctx, n * 4, (void **)&job.in));
    CHECK(spmv_alloc(ctx, n * 4, (void **)&job.kept));
    CHECK(spmv_alloc(ctx, n * 4, (void **)&job.out));
    CHECK(spmv_alloc(ctx, 8, (void **)&job.count));
    CHECK(spmv_upload(ctx, host_in, job.in, n * 4));
    printf("%lld elements, 1 in %d processed, microseconds\n%8s %14s %18s\n", (long long)n, one_in, "steps",
           "divergent if", "compact, then map");
    for (int steps = 1; steps <= 100; steps *= 10) {
        float divergent = 0, compacted = 0;
        CHECK(time_of(ctx, by_if, &job, steps, &divergent));
        CHECK(spmv_download(ctx, job.out, got, n * 4));
        wrong += wrong_cells(host_in, job.limit, steps, got, 0, n);
        CHECK(time_of(ctx, by_compact, &job, steps, &compacted));
        CHECK(spmv_download(ctx, job.out, got, n * 4));
        wrong += wrong_cells(host_in, job.limit, steps, got, 1, n);
        printf("%8d %14.1f %18.1f\n", steps, divergent, compacted);
    }
    if (wrong > 0)
        fprintf(stderr, "%lld results are wrong\n", (long long)wrong);
done:
    spmv_free(ctx, job.in);
    spmv_free(ctx, job.kept);
    spmv_free(ctx, job.out);
    spmv_free(ctx, job.count);
    spmv_context_destroy(ctx);
    cudaStreamDestroy(job.stream);
    free(host_in);
    free(got);
    return st == SPMV_OK && wrong == 0 ? 0 : 1;
}
