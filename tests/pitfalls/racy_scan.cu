/* The lectures' first mistake: a Hillis-Steele scan in one buffer, without a register and with one barrier.
 *
 * In step d thread t adds cell t - d to cell t. Thread t - d changes that very cell in the same step, and nothing says
 * which of the two comes first: where a warp runs late, it adds a sum of the step after. Inside a warp of the same step
 * the hardware happens to read before it writes, so small examples come out right and the mistake is found late.
 *
 * The remedy: take the sum into a register, wait until all have read, write, and wait again until all have written. The
 * rung of the library is primitives/scan/scan_1_hillis_steele.cuh; with two buffers
 * (scan_1_hillis_steele.cuh) one barrier a step is enough, since what is read is not written.
 *
 *     compute-sanitizer --tool racecheck racy_scan wrong        must find hazards
 *     compute-sanitizer --tool racecheck racy_scan right        must find none
 *
 * W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 29(12), 1986.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pitfall.cuh"

enum { N = 1024 };

__global__ static void wrong(int *cells)
{
    __shared__ int x[N];
    const int t = (int)threadIdx.x;
    x[t] = cells[t];
    __syncthreads();
    for (int d = 1; d < N; d *= 2) {
        if (t >= d)
            x[t] = x[t - d] + x[t]; /* reads a cell that another thread writes */
        __syncthreads();
    }
    cells[t] = x[t];
}

__global__ static void right(int *cells)
{
    __shared__ int x[N];
    const int t = (int)threadIdx.x;
    x[t] = cells[t];
    __syncthreads();
    for (int d = 1; d < N; d *= 2) {
        int sum = x[t];
        if (t >= d)
            sum = x[t - d] + sum;
        __syncthreads(); /* all have read */
        x[t] = sum;
        __syncthreads(); /* all have written */
    }
    cells[t] = x[t];
}

static int expected(int i)
{
    return (i + 1) * (i + 2) / 2;
}

int main(int argc, char **argv)
{
    return pitfall_main(argc, argv, wrong, right, N, N, expected);
}
