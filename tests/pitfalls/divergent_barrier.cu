/* The lectures' second mistake: a barrier inside a branch that not all threads of the block take.
 *
 * In step d of the tree those threads t add that t mod 2d == 0, and only they reach the barrier behind the addition.
 * But a barrier is for all threads of a block. What happens when some do not come is undefined: it hung older devices;
 * newer ones wait until the others have ended, which here hides the mistake: the sum is right, until the kernel grows
 * something behind the loop.
 *
 * The remedy: the branch around the addition alone, the barrier outside. The rung of the library is
 * primitives/reduce/reduce_2_block.cuh.
 *
 *     compute-sanitizer --tool synccheck divergent_barrier wrong        must find divergent threads
 *     compute-sanitizer --tool synccheck divergent_barrier right        must find none
 *
 * M. Harris, S. Sengupta, J. D. Owens, GPU Gems 3, chapter 39, 2007, has the tree; "CUDA C++ Programming Guide",
 * section "Synchronization Functions", the rule.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "pitfall.cuh"

enum { N = 256 };

__global__ static void wrong(int *cells)
{
    __shared__ int x[N];
    const int t = (int)threadIdx.x;
    x[t] = cells[t];
    __syncthreads();
    for (int d = 1; d < N; d *= 2)
        if (t % (2 * d) == 0) {
            x[t] += x[t + d];
            __syncthreads(); /* half of the threads, then a quarter, never get here */
        }
    if (t == 0)
        cells[0] = x[0];
}

__global__ static void right(int *cells)
{
    __shared__ int x[N];
    const int t = (int)threadIdx.x;
    x[t] = cells[t];
    __syncthreads();
    for (int d = 1; d < N; d *= 2) {
        if (t % (2 * d) == 0)
            x[t] += x[t + d];
        __syncthreads();
    }
    if (t == 0)
        cells[0] = x[0];
}

static int expected(int)
{
    return N * (N + 1) / 2;
}

int main(int argc, char **argv)
{
    return pitfall_main(argc, argv, wrong, right, N, 1, expected);
}
