/* scan, rung 1 once more: Hillis and Steele, double-buffered.
 *
 * Idea: as in scan_1_hillis_steele.cuh, but each step reads one array and writes another, and the two change places.
 * Work n log2 n - n + 1 operations; depth log2 n, one barrier a step; launches 1 a block; 2 n cells.
 * Since the single buffer: half the barriers, for twice the shared memory and a copy of each element that is not added.
 * Wins: over the single buffer while shared memory does not limit how many blocks are resident.
 * Keeps the order of the operands; the same parentheses, so the same bits, as the single buffer.
 * M. Harris, S. Sengupta, J. D. Owens, "Parallel prefix sum (scan) with CUDA", GPU Gems 3, 2007, chapter 39.2.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_1_HILLIS_STEELE_DOUBLE_CUH
#define SPMV_SCAN_1_HILLIS_STEELE_DOUBLE_CUH

#include <stdio.h>

#include "ops.cuh"
#include "scan_ladder.h"
#include "steps.cuh"

template <typename Op> struct hillis_steele_double {
    using T = typename Op::type;
    using operation = Op;
    static constexpr int CELLS = 2 * SCAN_BLOCK_MOST;
    int size;
    bool exclusive;

    struct registers {
        T last; /* exclusive: the element that is shifted out */
    };

    __host__ __device__ int threads() const
    {
        return size;
    }

    __host__ __device__ int steps() const
    {
        return steps_log2(size);
    }

    /* Where the array begins after so many steps. */
    __host__ __device__ int begin(int steps_done) const
    {
        return steps_done % 2 * size;
    }

    /* exclusive: the scan of what stands one place before */
    __host__ __device__ void place(int i, T x, T *cell, registers &mine) const
    {
        if (exclusive && i == 0)
            cell[0] = Op::identity();
        if (exclusive && i == size - 1)
            mine.last = x;
        else
            cell[i + exclusive] = x;
    }

    __host__ __device__ void step(int s, int thread, T *cell, registers &) const
    {
        const Op op{};
        const int distance = 1 << s;
        const T *from = cell + begin(s);
        T *to = cell + begin(s + 1);
        to[thread] = thread >= distance ? op(from[thread - distance], from[thread]) : from[thread];
    }

    /* The thread that knows the sum of the block after the last step, and the sum. */
    __host__ __device__ int knows() const
    {
        return size - 1;
    }

    __host__ __device__ T sum(const T *cell, const registers &mine) const
    {
        const T through = cell[begin(steps()) + size - 1];
        return exclusive ? Op()(through, mine.last) : through;
    }

    static const char *name()
    {
        return "scan_blocks (hillis-steele-double)";
    }

    void label(int s, char *text, size_t size_of_text) const
    {
        snprintf(text, size_of_text, "from %d before, into the other buffer", 1 << s);
    }
};

#endif
