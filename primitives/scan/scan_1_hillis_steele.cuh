/* scan, rung 1: Hillis and Steele, in one buffer.
 *
 * Idea: in step k each cell takes in the one 2^k places before it; after log2 n steps every cell has taken in all
 * before it. All threads read into a register, wait, and only then write: in one buffer a thread would else read what
 * another has already changed. Work n log2 n - n + 1 operations (9217 for 1024); depth log2 n, two barriers a step;
 * launches 1 a block; n cells. Since rung 0: log2 n dependent operations instead of n, for log2 n times the work of the
 * loop. Wins: where there are more processors than elements; inside a warp, where no barrier is needed (block.cuh).
 * Keeps the order of the operands; bits depend on n alone.
 * W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 29(12), 1986.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_1_HILLIS_STEELE_CUH
#define SPMV_SCAN_1_HILLIS_STEELE_CUH

#include <stdio.h>

#include "ops.cuh"
#include "scan_ladder.h"
#include "steps.cuh"

template <typename Op> struct hillis_steele {
    using T = typename Op::type;
    using operation = Op;
    static constexpr int CELLS = SCAN_BLOCK_MOST;
    int size;
    bool exclusive;

    struct registers {
        T before;
        T last; /* exclusive: the element that is shifted out */
    };

    __host__ __device__ int threads() const
    {
        return size;
    }

    __host__ __device__ int steps() const
    {
        return 2 * steps_log2(size);
    }

    /* Where the array begins after so many steps. */
    __host__ __device__ int begin(int) const
    {
        return 0;
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

    __host__ __device__ void step(int s, int thread, T *cell, registers &mine) const
    {
        const Op op{};
        const int distance = 1 << s / 2;
        if (thread < distance)
            return;
        if (s % 2 == 0)
            mine.before = cell[thread - distance];
        else
            cell[thread] = op(mine.before, cell[thread]);
    }

    /* The thread that knows the sum of the block after the last step, and the sum. */
    __host__ __device__ int knows() const
    {
        return size - 1;
    }

    __host__ __device__ T sum(const T *cell, const registers &mine) const
    {
        const T through = cell[size - 1];
        return exclusive ? Op()(through, mine.last) : through;
    }

    static const char *name()
    {
        return "scan_blocks (hillis-steele)";
    }

    void label(int s, char *text, size_t size_of_text) const
    {
        snprintf(text, size_of_text, s % 2 == 0 ? "read from %d before" : "add what was read from %d before",
                 1 << s / 2);
    }
};

#endif
