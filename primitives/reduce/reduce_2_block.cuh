/* reduce, rung 2: a block folds its tree in shared memory; divergent, and with sequential
 * addressing.
 *
 * idea      each thread copies one element to shared memory; the threads fold pairs of cells, half
 *           as many in each step, until the first cell has the block's result. The blocks' results
 *           are folded the same way, one launch per level of 256.
 * work      n - 1 operations
 * depth     log2 n
 * launches  log256 n
 * bytes     a little over n v
 * changed   eight levels per launch, with intermediate results in shared memory
 * wins      never: rung 3 is faster, because here a thread has one element and half of the threads
 *           are idle from the start
 * source    M. Harris, "Optimizing parallel reduction in CUDA", 2007, kernels 1 and 3
 *
 * "divergent": in step k every 2^k-th thread folds the two partial results within its 2^k cells.
 * Keeps the order of the operands. The active threads are spread over all warps, so every warp runs
 * in every step, with fewer and fewer active lanes.
 * "sequential": in step k the first m = threads / 2^k threads fold cell t + m into cell t. Two
 * lines differ. The active threads are neighbours, so whole warps become idle, and they access
 * neighbouring cells without bank conflicts. But cell t is combined with cell t + m, not with its
 * neighbour, so the operator must commute.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_2_BLOCK_CUH
#define SPMV_REDUCE_2_BLOCK_CUH

#include "primitives/reduce/reduce_levels.cuh"

/* For steps s = 1 ... REDUCE_HALVINGS: the distance of the cells of a pair, and whether the thread
 * folds one. */
struct pairs_divergent {
    static __host__ __device__ int apart(int s, int)
    {
        return 1 << (s - 1);
    }
    static __host__ __device__ bool folds(int thread, int apart)
    {
        return thread % (2 * apart) == 0;
    }
    static void label(int s, char *text, size_t size)
    {
        snprintf(text, size, "every %d cells: combine with the one %d on", 1 << s, 1 << (s - 1));
    }
    static const char *name()
    {
        return "reduce_divergent";
    }
};

struct pairs_sequential {
    static __host__ __device__ int apart(int s, int threads)
    {
        return threads >> s;
    }
    static __host__ __device__ bool folds(int thread, int apart)
    {
        return thread < apart;
    }
    static void label(int s, char *text, size_t size)
    {
        snprintf(text, size, "the first %d cells: combine with the ones %d on", REDUCE_THREADS >> s,
                 REDUCE_THREADS >> s);
    }
    static const char *name()
    {
        return "reduce_sequential";
    }
};

template <typename Op, typename Pairs> struct reduce_in_block {
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
            halve(s, thread, threads, cell);
        } else if (thread == 0) {
            to[block] = cell.x[0];
        }
    }
    __host__ __device__ void halve(int s, int thread, int threads, shared &cell) const
    {
        const int apart = Pairs::apart(s, threads);
        if (Pairs::folds(thread, apart))
            cell.x[thread] = Op()(cell.x[thread], cell.x[thread + apart]);
    }
    void label(int s, char *text, size_t size) const
    {
        if (s == 0)
            snprintf(text, size, "one element per thread");
        else if (s <= REDUCE_HALVINGS)
            Pairs::label(s, text, size);
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
        return reduce_idle(s, s > 0 ? Pairs::apart(s, REDUCE_THREADS) : 0, count - block * REDUCE_THREADS);
    }

    static const char *name()
    {
        return Pairs::name();
    }
    static int64_t scratch_elements(int64_t n)
    {
        return reduce_levels_scratch(n, EACH);
    }
    template <typename Place>
    static spmv_status run(Place &place, const T *in, T *out, int64_t n, T *scratch, int64_t few, reduce_left<T> *left)
    {
        return reduce_levels<reduce_in_block>(place, in, out, n, scratch, few, left);
    }
};

template <typename Op> using reduce_divergent = reduce_in_block<Op, pairs_divergent>;
template <typename Op> using reduce_sequential = reduce_in_block<Op, pairs_sequential>;

#endif
