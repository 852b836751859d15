/* scan, rung 1: Hillis and Steele, in one buffer and in two.
 *
 * idea      in step k each cell adds the cell 2^k places before it; after log2 n steps every cell
 *           has added all cells before it
 * work      n log2 n - n + 1 operations (9217 for 1024)
 * depth     log2 n steps; "hillis-steele" two barriers per step, "hillis-steele-double" one
 * launches  1 per block
 * bytes     "hillis-steele" n cells of shared memory, "hillis-steele-double" 2 n
 * changed   log2 n dependent operations instead of n, for log2 n times the work of the loop
 * wins      with more processors than elements, such as within a warp, where no barrier is needed
 *           (block.cuh)
 * order     both keep the order of the operands and use the same parentheses, so they give the same
 *           bits, which depend on n alone
 * source    W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 29(12), 1986; M. Harris,
 *           S. Sengupta, J. D. Owens, "Parallel prefix sum (scan) with CUDA", GPU Gems 3, 2007,
 *           chapter 39.2.1
 *
 * "hillis-steele": all threads read into a register, wait, and then write. Without the barrier a
 * thread could read a cell that another has already changed.
 * "hillis-steele-double": each step reads one array and writes the other. Half the barriers, for
 * twice the shared memory, and elements that are not added to are copied. Faster than the single
 * buffer while shared memory does not limit the number of resident blocks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_1_HILLIS_STEELE_CUH
#define SPMV_SCAN_1_HILLIS_STEELE_CUH

#include <stdio.h>

#include "device/ops.cuh"
#include "device/steps.cuh"
#include "primitives/scan/scan_ladder.h"

/* Shared by both forms: loading the elements, and the block's sum. */
template <typename Op> struct hillis_steele_block {
    using T = typename Op::type;
    using operation = Op;
    int size;
    bool exclusive;

    __host__ __device__ int threads() const
    {
        return size;
    }
    /* exclusive: shifts the elements by one place; *last: the element that is shifted out */
    __host__ __device__ void shift_in(int i, T x, T *cell, T *last) const
    {
        if (exclusive && i == 0)
            cell[0] = Op::identity();
        if (exclusive && i == size - 1)
            *last = x;
        else
            cell[i + exclusive] = x;
    }
    /* The thread that has the sum of the block after the last step. */
    __host__ __device__ int knows() const
    {
        return size - 1;
    }
    /* The sum of the block; through: the last cell. */
    __host__ __device__ T sum_of(T through, T last) const
    {
        return exclusive ? Op()(through, last) : through;
    }
};

template <typename Op> struct hillis_steele : hillis_steele_block<Op> {
    using T = typename Op::type;
    static constexpr int CELLS = SCAN_BLOCK_MOST;

    struct registers {
        T before;
        T last; /* exclusive: the element that is shifted out */
    };

    __host__ __device__ int steps() const
    {
        return 2 * steps_log2(this->size);
    }

    /* Where the array starts after a number of steps. */
    __host__ __device__ int begin(int) const
    {
        return 0;
    }

    __host__ __device__ void place(int i, T x, T *cell, registers &mine) const
    {
        this->shift_in(i, x, cell, &mine.last);
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

    __host__ __device__ T sum(const T *cell, const registers &mine) const
    {
        return this->sum_of(cell[this->size - 1], mine.last);
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

template <typename Op> struct hillis_steele_double : hillis_steele_block<Op> {
    using T = typename Op::type;
    static constexpr int CELLS = 2 * SCAN_BLOCK_MOST;

    struct registers {
        T last; /* exclusive: the element that is shifted out */
    };

    __host__ __device__ int steps() const
    {
        return steps_log2(this->size);
    }

    /* Where the array starts after a number of steps. */
    __host__ __device__ int begin(int steps_done) const
    {
        return steps_done % 2 * this->size;
    }

    __host__ __device__ void place(int i, T x, T *cell, registers &mine) const
    {
        this->shift_in(i, x, cell, &mine.last);
    }
    __host__ __device__ void step(int s, int thread, T *cell, registers &) const
    {
        const Op op{};
        const int distance = 1 << s;
        const T *from = cell + begin(s);
        T *to = cell + begin(s + 1);
        to[thread] = thread >= distance ? op(from[thread - distance], from[thread]) : from[thread];
    }

    __host__ __device__ T sum(const T *cell, const registers &mine) const
    {
        return this->sum_of(cell[begin(steps()) + this->size - 1], mine.last);
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
