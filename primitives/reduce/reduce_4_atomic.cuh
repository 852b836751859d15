/* reduce, rung 4: combines the blocks' results with atomic operations.
 *
 * idea      as rung 3, but each block folds its result into *out, which starts as the identity:
 *           sums by atomicAdd, other operators by compare-and-swap in a loop
 * work      n - 1 operations
 * depth     n / p + log2 256 + blocks, serialised at one address
 * launches  2, the first with one thread
 * bytes     n v
 * changed   no second pass over the blocks' results. They are combined in the order in which blocks
 *           finish, so the operator must commute, and sums of f32 and f64 ARE NOT BITWISE
 *           REPEATABLE. All other rungs are.
 * wins      nowhere by much; it shows the cost of repeatable bits
 * source    CUDA C++ Programming Guide, "Atomic functions"
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_4_ATOMIC_CUH
#define SPMV_REDUCE_4_ATOMIC_CUH

#include "primitives/reduce/reduce_3_chunked.cuh"

#if defined(__CUDA_ARCH__) || (defined(SPMV_HAVE_KERNELS) && !defined(__CUDACC__))
template <int BYTES> struct atomic_bits;
template <> struct atomic_bits<4> {
    using word = unsigned;
};
template <> struct atomic_bits<8> {
    using word = unsigned long long;
};

/* *cell = *cell op value. Elements wider than 8 bytes have no commutative operators, so this rung
 * refuses them. */
template <typename Op> __device__ void fold_atomically(Op op, typename Op::type *cell, typename Op::type value)
{
    using T = typename Op::type;
    if constexpr (sizeof(T) <= 8) {
        using word = typename atomic_bits<sizeof(T)>::word;
        word seen = *(volatile word *)cell, expected;
        do {
            T before, after;
            expected = seen;
            memcpy(&before, &expected, sizeof before);
            after = op(before, value);
            memcpy(&seen, &after, sizeof seen);
            seen = atomicCAS((word *)cell, expected, seen);
        } while (seen != expected);
    }
}

#define ATOMIC_ADD(of, as)                                                                                             \
    inline __device__ void fold_atomically(op_add_##of, op_add_##of::type *cell, op_add_##of::type value)              \
    {                                                                                                                  \
        atomicAdd((as *)cell, (as)value);                                                                              \
    }
ATOMIC_ADD(i32, unsigned)
ATOMIC_ADD(i64, unsigned long long)
ATOMIC_ADD(f32, float)
ATOMIC_ADD(f64, double)
#undef ATOMIC_ADD
#else
/* On the host, blocks run one after the other. */
template <typename Op> void fold_atomically(Op op, typename Op::type *cell, typename Op::type value)
{
    *cell = op(*cell, value);
}
#endif

template <typename Op> struct reduce_start {
    using shared = reduce_nothing;
    using registers = reduce_nothing;
    typename Op::type *out;

    __host__ __device__ int steps() const
    {
        return 1;
    }
    __host__ __device__ void step(int, int64_t, int, int, shared &, registers &) const
    {
        *out = Op::identity();
    }
    void label(int, char *text, size_t size) const
    {
        snprintf(text, size, "the identity");
    }
    const typename Op::type *cells(int, int64_t, const shared &, int *length) const
    {
        *length = 1;
        return out;
    }
};

template <typename Op> struct reduce_atomic : reduce_chunked<Op> {
    using with_stores = reduce_chunked<Op>;
    using T = typename Op::type;
    using typename with_stores::registers;
    using typename with_stores::shared;

    __host__ __device__ void step(int s, int64_t block, int thread, int threads, shared &cell, registers &) const
    {
        if (s == 0)
            this->fold_part(block, thread, threads, cell);
        else if (s <= REDUCE_HALVINGS)
            this->halve(s, thread, threads, cell);
        else if (thread == 0)
            fold_atomically(Op(), this->to, cell.x[0]);
    }
    void label(int s, char *text, size_t size) const
    {
        if (s <= REDUCE_HALVINGS)
            with_stores::label(s, text, size);
        else
            snprintf(text, size, "combine the block's result with the others'");
    }

    static int64_t scratch_elements(int64_t)
    {
        return 0;
    }
    template <typename Place>
    static spmv_status run(Place &place, const T *in, T *out, int64_t n, T *, int64_t, reduce_left<T> *left)
    {
        *left = {out, 1};
        const spmv_status st = place.run("reduce_start", reduce_start<Op>{out}, 1, 1);
        if (st != SPMV_OK)
            return st;
        const int64_t blocks = reduce_grid(n);
        return place.run("reduce_atomic", reduce_atomic{{{in, out, n}, blocks}}, blocks, REDUCE_THREADS);
    }
};

#endif
