/* The combinations of lsmr, lsqr and cgls on CUDA: the kernel of krylov_combine.cuh with their scalars.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_combine.cuh"

namespace
{

struct finish_least_squares {
    __device__ static void run(krylov_finish which, krylov_state *state, const krylov_scalar *sums)
    {
        least_squares_finish_scalars(which, state, sums);
    }
};

} // namespace

extern "C" spmv_status krylov_combine_least_squares_cuda(const krylov_vectors *v, const krylov_combination *a)
{
    return on_device(v->ctx, [&] {
        return with_floating(v->type, [&](auto of) {
            using T = decltype(of);
            switch (10 * a->inputs + a->outputs) {
#define CASE(inputs, outputs)                                                                                          \
    case 10 * inputs + outputs:                                                                                        \
        return launch_combination<T, inputs, outputs, finish_least_squares>(v, a);
                CASE(1, 0)
                CASE(1, 1)
                CASE(2, 1)
                CASE(3, 2)
                CASE(4, 3)
#undef CASE
            default:
                return context_fail(v->ctx, SPMV_ERROR_UNSUPPORTED, "no kernel combines %d vectors to %d", a->inputs,
                                    a->outputs);
            }
        });
    });
}
