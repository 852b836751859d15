/* scan, rung 2 once more: Blelloch without divergence.
 *
 * Idea: the tree of scan_2_blelloch_divergent.cuh; on a level with m inner nodes the first m threads take one each, so
 * that whole warps work or are done.
 * Work, depth, launches, cells: the same.
 * Since the divergent form: one line, which node is a thread's. What remains: siblings far apart lie in the same bank
 * of shared memory (distances of 32 and more), which padding would mend. Wins: always over the divergent form; over
 * rung 1 as soon as blocks are long. Keeps the order of the operands; the bits of the divergent form. M. Harris, S.
 * Sengupta, J. D. Owens, "Parallel prefix sum (scan) with CUDA", GPU Gems 3, 2007, chapter 39.2.2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_2_BLELLOCH_CUH
#define SPMV_SCAN_2_BLELLOCH_CUH

#include "scan_2_blelloch_divergent.cuh"

struct node_of_level {
    static __host__ __device__ int node(int thread, int distance, int size)
    {
        return thread < size / (2 * distance) ? (2 * thread + 2) * distance - 1 : -1;
    }
    static const char *name()
    {
        return "scan_blocks (blelloch)";
    }
};

template <typename Op> using blelloch = blelloch_tree<Op, node_of_level>;

#endif
