/* The first mistake of the lectures: a Hillis-Steele scan in one buffer, with one barrier per step.
 *
 * In step d thread t adds cell t - d to cell t. Thread t - d changes that cell in the same step, in
 * an undefined order: a late warp adds a sum of the next step. Within a warp the hardware happens
 * to read before it writes, so small examples give the right result and hide the mistake.
 *
 * The remedy: compute the sum in a register, wait until all have read, write, and wait until all
 * have written. The rung of the library is primitives/scan/scan_1_hillis_steele.cuh. Its version
 * with two buffers needs only one barrier per step, since no thread reads what another writes.
 *
 *     compute-sanitizer --tool racecheck racy_scan wrong        must find hazards
 *     compute-sanitizer --tool racecheck racy_scan right        must find none
 *
 * W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 29(12), 1986.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/pitfalls/pitfall.cuh"

enum { N = 1024 };

__device__ static void wrong(int *x, int t)
{
    for (int d = 1; d < N; d *= 2) {
        if (t >= d)
            x[t] = x[t - d] + x[t]; /* reads a cell that another thread writes */
        __syncthreads();
    }
}

__device__ static void right(int *x, int t)
{
    for (int d = 1; d < N; d *= 2) {
        int sum = x[t];
        if (t >= d)
            sum = x[t - d] + sum;
        __syncthreads(); /* all have read */
        x[t] = sum;
        __syncthreads(); /* all have written */
    }
}

static int expected(int i)
{
    return (i + 1) * (i + 2) / 2;
}

int main(int argc, char **argv)
{
    return pitfall_main(argc, argv, pitfall_kernel<N, N, wrong>, pitfall_kernel<N, N, right>, N, N, expected);
}
