/* The second mistake of the lectures: a barrier in a branch that not all threads of the block take.
 *
 * In step d of the tree the threads with t mod 2d == 0 add, and only they reach the barrier after
 * the addition. A barrier must be reached by all threads of a block; otherwise the behaviour is
 * undefined. Older devices hang. Newer ones wait until the other threads have ended, which hides
 * the mistake here: the sum is right until code is added after the loop.
 *
 * The remedy: only the addition in the branch, the barrier outside. The rung of the library is
 * primitives/reduce/reduce_2_block.cuh.
 *
 *     compute-sanitizer --tool synccheck divergent_barrier wrong        must find divergent threads
 *     compute-sanitizer --tool synccheck divergent_barrier right        must find none
 *
 * The tree: M. Harris, S. Sengupta, J. D. Owens, GPU Gems 3, chapter 39, 2007. The rule: "CUDA C++
 * Programming Guide", section "Synchronization Functions".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/pitfalls/pitfall.cuh"

enum { N = 256 };

__device__ static void wrong(int *x, int t)
{
    for (int d = 1; d < N; d *= 2)
        if (t % (2 * d) == 0) {
            x[t] += x[t + d];
            __syncthreads(); /* half of the threads, then a quarter, do not get here */
        }
}

__device__ static void right(int *x, int t)
{
    for (int d = 1; d < N; d *= 2) {
        if (t % (2 * d) == 0)
            x[t] += x[t + d];
        __syncthreads();
    }
}

static int expected(int)
{
    return N * (N + 1) / 2;
}

int main(int argc, char **argv)
{
    return pitfall_main(argc, argv, pitfall_kernel<N, 1, wrong>, pitfall_kernel<N, 1, right>, N, 1, expected);
}
