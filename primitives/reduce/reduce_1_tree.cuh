/* reduce, rung 1: a tree, one launch per level.
 *
 * idea      neighbours in pairs: to[i] = from[2i] op from[2i+1]; an odd last element is copied. The
 *           end of a launch is the barrier between levels.
 * work      n - 1 operations
 * depth     log2 n
 * launches  log2 n; those of the upper levels have few threads
 * bytes     3 n v: n elements read and n / 2 written, then half of that, and so on
 * wins      never; it defines the tree that the following rungs improve
 * order     keeps the order of the operands
 * source    G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_1_TREE_CUH
#define SPMV_REDUCE_1_TREE_CUH

#include "primitives/reduce/reduce_levels.cuh"

template <typename Op> struct reduce_tree {
    using T = typename Op::type;
    using shared = reduce_nothing;
    using registers = reduce_nothing;
    static constexpr int EACH = 2, BLOCK_ELEMENTS = EACH * REDUCE_THREADS;
    const T *from;
    T *to;
    int64_t count;

    __host__ __device__ int steps() const
    {
        return 1;
    }
    __host__ __device__ void step(int, int64_t block, int thread, int threads, shared &, registers &) const
    {
        const int64_t i = block * threads + thread;
        if (2 * i + 1 < count)
            to[i] = Op()(from[2 * i], from[2 * i + 1]);
        else if (2 * i < count)
            to[i] = from[2 * i];
    }
    void label(int, char *text, size_t size) const
    {
        snprintf(text, size, "neighbours in pairs");
    }
    const T *cells(int, int64_t block, const shared &, int *length) const
    {
        const int64_t first = block * REDUCE_THREADS;
        *length = reduce_room(reduce_ceil(count, EACH) - first);
        return to + first;
    }

    static const char *name()
    {
        return "reduce_tree";
    }
    static int64_t scratch_elements(int64_t n)
    {
        return reduce_levels_scratch(n, EACH);
    }
    template <typename Place>
    static spmv_status run(Place &place, const T *in, T *out, int64_t n, T *scratch, int64_t few, reduce_left<T> *left)
    {
        return reduce_levels<reduce_tree>(place, in, out, n, scratch, few, left);
    }
};

#endif
