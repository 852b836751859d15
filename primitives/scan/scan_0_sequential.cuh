/* scan, rung 0 once more: the loop.
 *
 * Idea: one thread, from left to right, each result from the one before.
 * Work n - 1 operations; depth n - 1; launches 1; bytes moved 2 n v.
 * Since the definition: what was computed for i - 1 is used for i, and the threads have nothing left to share.
 * Wins: on one processor nothing does less. The mark for the work of all other rungs.
 * Keeps the order of the operands; the bits of the definition.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_0_SEQUENTIAL_CUH
#define SPMV_SCAN_0_SEQUENTIAL_CUH

#include <stdio.h>

#include "ops.cuh"
#include "steps.cuh"

/* One block of one thread. */
template <typename Op, typename Load, typename Store> struct scan_sequential {
    using T = typename Op::type;
    Load load;
    Store store;
    int64_t n;
    bool exclusive;

    struct shared {
        T all;
    };
    struct registers {
    };

    __host__ __device__ int steps() const
    {
        return 1;
    }

    __host__ __device__ void step(int, int64_t, int, int, shared &mem, registers &) const
    {
        const Op op{};
        mem.all = exclusive ? Op::identity() : load(0);
        if (!exclusive)
            store(0, mem.all);
        for (int64_t i = exclusive ? 0 : 1; i < n; i++) {
            const T before = mem.all, x = load(i);
            /* exclusive: the last sum is nobody's */
            if (!exclusive || i + 1 < n)
                mem.all = op(before, x);
            store(i, exclusive ? before : mem.all);
        }
    }

    void label(int, char *text, size_t size) const
    {
        snprintf(text, size, "from left to right; the last result");
    }

    const T *cells(int, int64_t, const shared &mem, int *count) const
    {
        *count = 1;
        return &mem.all;
    }
};

#endif
