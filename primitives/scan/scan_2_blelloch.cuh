/* scan, rung 2: Blelloch, work-efficient; divergent, and without divergence.
 *
 * idea      reduce in a tree, in place: after step k every 2^(k+1)-th cell has the sum of the
 *           2^(k+1) cells that end there. Inclusive: then distribute from the root down: a complete
 *           cell is added to the cell that ends half a node after it. Exclusive: then clear the
 *           root, and from there down give each left child the prefix of its parent, and each right
 *           child that prefix plus the left child's sum (swap down).
 * work      inclusive 2 n - log2 n - 2 operations (2036 for 1024), exclusive 2 (n - 1) (2046)
 * depth     2 log2 n, with a barrier each
 * launches  1 per block
 * bytes     n cells of shared memory, two elements per thread
 * changed   twice the steps, but only twice the operations of the loop
 * wins      over rung 1 if blocks are long ("blelloch"), or if operations are expensive
 *           ("blelloch-divergent")
 * order     both keep the order of the operands and give the same bits, which depend on n alone
 * source    G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990; M. Harris,
 *           S. Sengupta, J. D. Owens, "Parallel prefix sum (scan) with CUDA", GPU Gems 3, 2007,
 *           chapter 39.2.2
 *
 * "blelloch-divergent": a thread keeps its initial pair of elements. In each step it tests whether
 * its last cell is an inner node of the level (i + 1 divisible by 2 distance), so in every warp
 * some threads work and most wait.
 * "blelloch": differs in one line, the node of a thread: on a level with m inner nodes the first m
 * threads take one each, so whole warps work or are finished. Always faster than the divergent
 * form. Siblings 32 or more cells apart still lie in the same bank of shared memory, which padding
 * would avoid.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_2_BLELLOCH_CUH
#define SPMV_SCAN_2_BLELLOCH_CUH

#include <stdio.h>

#include "device/ops.cuh"
#include "device/steps.cuh"
#include "primitives/scan/scan_ladder.h"

/* The inner node (its last cell) of a thread on the level where siblings are distance cells apart;
 * -1: none. */
struct node_of_pair {
    static __host__ __device__ int node(int thread, int distance, int)
    {
        const int i = 2 * thread + 1;
        return (i + 1) % (2 * distance) == 0 ? i : -1;
    }
    static const char *name()
    {
        return "scan_blocks (blelloch-divergent)";
    }
};

/* On a level with m inner nodes the first m threads take one each. */
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

template <typename Op, typename Mapping> struct blelloch_tree {
    using T = typename Op::type;
    using operation = Op;
    static constexpr int CELLS = SCAN_BLOCK_MOST;
    int size;
    bool exclusive;

    struct registers {
        T sum; /* exclusive, thread 0: the root before it is cleared */
    };

    __host__ __device__ int threads() const
    {
        return size / 2;
    }

    /* levels up; then levels - 1 down, or the clearing and levels down */
    __host__ __device__ int steps() const
    {
        const int levels = steps_log2(size);
        return exclusive ? 2 * levels + 1 : 2 * levels - 1;
    }

    /* Where the array starts after a number of steps. */
    __host__ __device__ int begin(int) const
    {
        return 0;
    }

    __host__ __device__ void place(int i, T x, T *cell, registers &) const
    {
        cell[i] = x;
    }

    __host__ __device__ void step(int s, int thread, T *cell, registers &mine) const
    {
        const int levels = steps_log2(size);
        if (s < levels)
            reduce(1 << s, thread, cell);
        else if (!exclusive)
            distribute(size >> (s - levels + 2), thread, cell);
        else if (s == levels)
            clear_root(thread, cell, mine);
        else
            swap_down(size >> (s - levels), thread, cell);
    }

    __host__ __device__ void reduce(int distance, int thread, T *cell) const
    {
        const Op op{};
        const int i = Mapping::node(thread, distance, size);
        if (i >= 0)
            cell[i] = op(cell[i - distance], cell[i]);
    }

    /* Cell i is complete. It is added to the sum of the distance cells after it. */
    __host__ __device__ void distribute(int distance, int thread, T *cell) const
    {
        const Op op{};
        const int i = Mapping::node(thread, distance, size);
        if (i >= 0 && i + distance < size)
            cell[i + distance] = op(cell[i], cell[i + distance]);
    }

    __host__ __device__ void clear_root(int thread, T *cell, registers &mine) const
    {
        if (thread == 0) {
            mine.sum = cell[size - 1];
            cell[size - 1] = Op::identity();
        }
    }

    /* Cell i has the prefix of the node, the left child's cell the left child's sum. */
    __host__ __device__ void swap_down(int distance, int thread, T *cell) const
    {
        const Op op{};
        const int i = Mapping::node(thread, distance, size);
        if (i >= 0) {
            const T left = cell[i - distance], before = cell[i];
            cell[i - distance] = before;
            cell[i] = op(before, left);
        }
    }

    /* The thread that has the sum of the block after the last step, and the sum. */
    __host__ __device__ int knows() const
    {
        return 0;
    }

    __host__ __device__ T sum(const T *cell, const registers &mine) const
    {
        return exclusive ? mine.sum : cell[size - 1];
    }

    static const char *name()
    {
        return Mapping::name();
    }

    void label(int s, char *text, size_t size_of_text) const
    {
        const int levels = steps_log2(size);
        if (s < levels)
            snprintf(text, size_of_text, "reduce, distance %d", 1 << s);
        else if (!exclusive)
            snprintf(text, size_of_text, "distribute, distance %d", size >> (s - levels + 2));
        else if (s == levels)
            snprintf(text, size_of_text, "clear the root");
        else
            snprintf(text, size_of_text, "swap down, distance %d", size >> (s - levels));
    }
};

template <typename Op> using blelloch_divergent = blelloch_tree<Op, node_of_pair>;
template <typename Op> using blelloch = blelloch_tree<Op, node_of_level>;

#endif
