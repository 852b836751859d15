/* reduce, rung 2a: a block folds its tree in shared memory, divergent indexing.
 *
 * Idea: each thread brings one element to shared memory; in step k every 2^k-th thread folds the two neighbours that
 * are left of its 2^k cells, until the first thread holds the block's result. The blocks' results are folded the same
 * way, a launch a level of 256.
 * Work n - 1 operations; depth log2 n; launches log256 n; bytes moved n v and a little.
 * Changed: eight levels a launch, and what lies between them never leaves the block.
 * Loses: the threads that work are spread over all warps, so every warp is busy in every step with fewer and fewer of
 * its lanes. Keeps the order of the operands.
 * M. Harris, "Optimizing parallel reduction in CUDA", 2007, kernel 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_2_DIVERGENT_CUH
#define SPMV_REDUCE_2_DIVERGENT_CUH

#include "reduce_levels.cuh"

template <typename Op> struct reduce_divergent {
    using T = typename Op::type;
    using shared = reduce_cells<T>;
    using registers = reduce_nothing;
    static constexpr int EACH = REDUCE_THREADS, BLOCK_ELEMENTS = EACH;
    const T *from;
    T *to;
    int64_t count;

    __host__ __device__ int steps() const
    {
        return 1 + REDUCE_HALVINGS + 1;
    }
    __host__ __device__ void step(int s, int64_t block, int thread, int threads, shared &cell, registers &) const
    {
        const int64_t i = block * threads + thread;
        if (s == 0) {
            cell.x[thread] = i < count ? from[i] : Op::identity();
        } else if (s <= REDUCE_HALVINGS) {
            const int apart = 1 << (s - 1);
            if (thread % (2 * apart) == 0)
                cell.x[thread] = Op()(cell.x[thread], cell.x[thread + apart]);
        } else if (thread == 0) {
            to[block] = cell.x[0];
        }
    }
    void label(int s, char *text, size_t size) const
    {
        if (s == 0)
            snprintf(text, size, "an element a thread");
        else if (s <= REDUCE_HALVINGS)
            snprintf(text, size, "every %d cells: and the one %d on", 1 << s, 1 << (s - 1));
        else
            snprintf(text, size, "the block's result");
    }
    const T *cells(int, int64_t block, const shared &cell, int *length) const
    {
        *length = reduce_room(count - block * REDUCE_THREADS);
        return cell.x;
    }
    bool idle(int s, int64_t block) const
    {
        return reduce_idle(s, s > 0 ? 1 << (s - 1) : 0, count - block * REDUCE_THREADS);
    }

    static const char *name()
    {
        return "reduce_divergent";
    }
    static int64_t scratch_elements(int64_t n)
    {
        return reduce_levels_scratch(n, EACH);
    }
    template <typename Place>
    static spmv_status run(Place &place, const T *in, T *out, int64_t n, T *scratch, int64_t few, reduce_left<T> *left)
    {
        return reduce_levels<reduce_divergent>(place, in, out, n, scratch, few, left);
    }
};

#endif
