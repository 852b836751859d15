/* Shared code of the demonstrations of mistakes: runs one block of a kernel on the numbers 1, 2, 3
 * ...
 *
 * usage: PROGRAM wrong|right|none the kernel with the mistake, the corrected kernel, or only a
 * check for a GPU Exit status: 0: correct results; 1: wrong results or a failure of the device; 77:
 * no GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PITFALL_CUH
#define PITFALL_CUH

#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

/* Loads n cells into shared memory, runs the work of each thread, and stores the first `results`. */
template <int n, int results, void (*work)(int *x, int t)> __global__ void pitfall_kernel(int *cells)
{
    __shared__ int x[n];
    const int t = (int)threadIdx.x;
    x[t] = cells[t];
    __syncthreads();
    work(x, t);
    if (t < results)
        cells[t] = x[t];
}

/* Runs the kernel on the cells. Returns false after printing what failed. */
static bool pitfall_run(void (*kernel)(int *), std::vector<int> &cells)
{
    const size_t bytes = cells.size() * sizeof(int);
    cudaStream_t stream = NULL;
    void *memory = NULL;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(memory, cells.data(), bytes, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess) {
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(1);
        config.blockDim = dim3((unsigned)cells.size());
        config.stream = stream;
        error = cudaLaunchKernelEx(&config, kernel, static_cast<int *>(memory));
    }
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(cells.data(), memory, bytes, cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    cudaFree(memory);
    if (stream != NULL)
        cudaStreamDestroy(stream);
    if (error != cudaSuccess)
        std::printf("the device says: %s\n", cudaGetErrorString(error));
    return error == cudaSuccess;
}

static int pitfall_main(int argc, char **argv, void (*wrong)(int *), void (*right)(int *), int n, int results,
                        int (*expected)(int))
{
    const char *const mode = argc == 2 ? argv[1] : "";
    int devices = 0;
    if (std::strcmp(mode, "wrong") != 0 && std::strcmp(mode, "right") != 0 && std::strcmp(mode, "none") != 0) {
        std::fprintf(stderr, "usage: %s wrong|right|none\n", argv[0]);
        return 1;
    }
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::printf("skipped: no GPU\n");
        return 77;
    }
    if (std::strcmp(mode, "none") == 0)
        return 0;
    std::vector<int> cells;
    for (int i = 0; i < n; i++)
        cells.push_back(i + 1);
    if (!pitfall_run(std::strcmp(mode, "wrong") == 0 ? wrong : right, cells))
        return 1;
    int bad = 0;
    for (int i = 0; i < results; i++)
        bad += cells[(size_t)i] != expected(i);
    std::printf("%s: %d of %d results are not what they should be\n", mode, bad, results);
    return bad > 0;
}

#endif
