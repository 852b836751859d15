/* The sums of the method "expand" on a GPU: one thread for each entry of C.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/complex.cuh"
#include "device/launch.cuh"
#include "formats/device_loops.cuh"

extern "C" {
#include "spgemm/spgemm_expand.h"
}

namespace
{

/* The product of entry k of A and entry l of B; NULL: a pattern, whose factor is left out. */
template <typename T> __device__ T term(const T *a, int64_t k, const T *b, int64_t l)
{
    if (a != nullptr)
        return b != nullptr ? load_whole(a + k) * load_whole(b + l) : load_whole(a + k);
    return b != nullptr ? load_whole(b + l) : real_value<T>(1);
}

template <typename T> __global__ void __launch_bounds__(block_threads) expand_sums(spgemm_sums s)
{
    const T *const a = (const T *)s.a_values, *const b = (const T *)s.b_values;
    T *const c = (T *)s.c_values;
    for_each(s.entries, [=](int64_t e) {
        const int64_t end = e + 1 < s.entries ? s.start[e + 1] : s.products;
        int64_t p = s.start[e];
        T sum = term(a, s.a[s.order[p]], b, s.b[s.order[p]]);
        for (p++; p < end; p++)
            sum = sum + term(a, s.a[s.order[p]], b, s.b[s.order[p]]);
        c[e] = sum;
    });
}

template <typename T> spmv_status run(spmv_context *ctx, const spgemm_sums &s)
{
    return launch(ctx, "expand sums", grid_for(s.entries, block_threads), block_threads, expand_sums<T>, s);
}

} // namespace

extern "C" spmv_status spgemm_expand_sums_cuda(spmv_context *ctx, const struct spgemm_sums *sums)
{
    return on_device(ctx,
                     [&] { return with_floating(sums->type, [&](auto of) { return run<decltype(of)>(ctx, *sums); }); });
}
