/* Method "long" of the backend cuda: the plan is made on the device, and a product is one launch
 * (long.cuh).
 *
 * It declines where choose.c says so.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "core/plural.h"
#include "product/cuda/long/long_plan.cuh"
#include "product/cuda/spmv_types.cuh"

namespace
{

/* The units are the same for all types. */
enum { UNIT = long_rows::usual<double>::UNIT };
static_assert((int)long_rows::usual<float>::UNIT == (int)UNIT, "one cut");

/* The state of a plan; arrays are in the context's memory. */
struct long_state {
    long_rows::statistics about;
    int32_t units;
    void *table; /* of units; sums and counts follow it */
    void *sums;
    unsigned *counts;
    void *narrow;
    int shared_most; /* bytes of shared memory for x; 0: x stays in global memory */
    float retained;
};

long_state *state_of(const spmv_plan *plan)
{
    return (long_state *)plan->state;
}

template <typename T, typename Stored> long_rows::matrix<T, Stored> matrix_of(const spmv_plan *plan)
{
    const long_state *const s = state_of(plan);
    const spmv_csr &a = plan->a;
    return {a.nnz,
            (int32_t)a.rows,
            (int32_t)a.cols,
            s->units,
            a.row_ptr,
            (const long_rows::unit *)s->table,
            a.col,
            (const uint16_t *)s->narrow,
            (const Stored *)a.val,
            (T *)s->sums,
            s->counts,
            a.row_ptr_bits == 64,
            s->about.empty > 0,
            s->retained};
}

/* Allocates the arrays. Clears the counters and the statistics. */
spmv_status make_room(spmv_plan *plan, long_state *s, long_rows::statistics **about)
{
    const int64_t units = s->units;
    const int64_t bytes[] = {tiles::aligned(units * (int64_t)sizeof(long_rows::unit)),
                             tiles::aligned(2 * units * (int64_t)spmv_type_size(plan->type)),
                             tiles::aligned(units * (int64_t)sizeof(unsigned)),
                             tiles::aligned((int64_t)sizeof(long_rows::statistics))};
    spmv_status st = plan_alloc(plan, bytes[0] + bytes[1] + bytes[2] + bytes[3], &s->table);
    if (st != SPMV_OK)
        return st;
    s->sums = (char *)s->table + bytes[0];
    s->counts = (unsigned *)((char *)s->sums + bytes[1]);
    *about = (long_rows::statistics *)((char *)s->counts + bytes[2]);
    if (plan->compression != SPMV_COMPRESSION_NONE && plan->a.nnz > 0)
        st = plan_alloc_if_room(plan, plan->a.nnz * 2, &s->narrow);
    return st != SPMV_OK ? st : tiles::cleared(plan->ctx, s->counts, bytes[2] + bytes[3]);
}

/* Makes the units, and measures the rows. Keeps 16-bit columns if at least half of the units have
 * them. */
spmv_status look(spmv_plan *plan, long_state *s)
{
    enum { AT_ONCE = 8 }; /* blocks of a multiprocessor */
    spmv_context *const ctx = plan->ctx;
    long_rows::statistics *about = nullptr;
    const int64_t most = (int64_t)AT_ONCE * ((const cuda_state *)ctx->device)->multiprocessors;
    spmv_status st = make_room(plan, s, &about);
    if (st == SPMV_OK)
        st = with_types(plan, [&](auto sums, auto stored) {
            using T = decltype(sums);
            using Stored = decltype(stored);
            if constexpr (!std::is_arithmetic<T>::value)
                return SPMV_ERROR_TYPE; /* the method has no complex types */
            else
                return on_device(ctx, [&] {
                    return launch(ctx, "spmv long look", (int)most, long_rows::PLAN_THREADS,
                                  long_rows::look<UNIT, T, Stored>, matrix_of<T, Stored>(plan),
                                  (long_rows::unit *)s->table, (uint16_t *)s->narrow, about);
                });
        });
    if (st == SPMV_OK)
        st = spmv_download(ctx, about, &s->about, (int64_t)sizeof s->about);
    if (st == SPMV_OK && 2 * (int64_t)s->about.narrow < (int64_t)s->units) {
        plan_free(plan, plan->a.nnz * 2, s->narrow);
        s->narrow = nullptr;
    }
    return st;
}

/* Bytes of the matrix that a product reads. */
double bytes_read(const spmv_plan *plan)
{
    const double value = plan->a.val != nullptr ? (double)spmv_type_size(plan->a.type) : 0.0;
    return (double)plan->a.nnz * (value + (state_of(plan)->narrow != nullptr ? 2.0 : 4.0));
}

/* Decides where products gather x from: from shared memory if x fits there, and if all copies of it
 * have at most the bytes of the matrix. If x fits, columns fit in 16 bits. */
spmv_status place_x(const spmv_plan *plan, long_state *s)
{
    const cuda_state *const device = (const cuda_state *)plan->ctx->device;
    const int64_t bytes = plan->a.cols * (int64_t)spmv_type_size(plan->type);
    const int64_t a_nonzero = 2 + (plan->a.val != nullptr ? (int64_t)spmv_type_size(plan->a.type) : 0);
    int most = 0;
    const spmv_status st = on_device(plan->ctx, [&] {
        return cuda_check(plan->ctx,
                          cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->device),
                          "cudaDeviceGetAttribute");
    });
    const bool fits = st == SPMV_OK && bytes <= most;
    s->shared_most = fits && bytes * device->multiprocessors <= plan->a.nnz * a_nonzero ? most : 0;
    return st;
}

/* Describes the plan for users. */
void describe(spmv_plan *plan, const long_state *s)
{
    char *const text = plan->layout;
    const int size = (int)sizeof plan->layout;
    int used =
        snprintf(text, (size_t)size,
                 "rows of %.3g entries on average, %llu at most, in %d unit%s of %d; 16-bit columns in %.3g %% "
                 "of the units; x in %s memory",
                 (double)plan->a.nnz / (double)max_i64(plan->a.rows, 1), s->about.longest, s->units, plural(s->units),
                 (int)UNIT, s->narrow != nullptr ? 100.0 * (double)s->about.narrow / (double)max_i64(s->units, 1) : 0.0,
                 s->shared_most > 0 ? "shared" : "global");
    if (used < size && s->retained > 0)
        used += snprintf(text + used, (size_t)(size - used), "; %.3g %% retained in the last-level cache",
                         100.0 * (double)s->retained);
    if (used < size)
        snprintf(text + used, (size_t)(size - used), "; %llu row%s of less than %d entries, %llu empty",
                 s->about.shorts, plural((int64_t)s->about.shorts), (int)long_rows::SHORT, s->about.empty);
}

} // namespace

extern "C" spmv_status long_cuda_prepare(spmv_plan *plan)
{
    const int64_t units = plan->a.nnz / UNIT + (plan->a.nnz % UNIT != 0);
    spmv_status st = plan_new_state(plan, (int64_t)sizeof(long_state));
    if (st != SPMV_OK)
        return st;
    long_state *const s = state_of(plan);
    s->units = (int32_t)units;
    st = place_x(plan, s);
    plan->facts.x_in_shared = s->shared_most > 0;
    plan->declined = units > INT32_MAX ? "more than 2^31 units" : plan->method->pays(&plan->facts);
    if (st == SPMV_OK && plan->declined == nullptr && plan->a.rows > 0) {
        st = look(plan, s);
        plan->facts.longest = (int64_t)s->about.longest;
        plan->facts.short_rows = (int64_t)s->about.shorts;
        plan->declined = plan->method->pays(&plan->facts);
    }
    if (st != SPMV_OK || plan->declined != nullptr)
        return st;
    plan->longest_row = (int64_t)s->about.longest;
    s->retained = plan->a.val != nullptr ? tiles::retained_share(plan, bytes_read(plan)) : 0.0f;
    describe(plan, s);
    plan->settled = plan->a.rows > 0; /* look has waited */
    return st;
}

extern "C" spmv_status long_cuda_apply(const spmv_plan *plan, const struct plan_product *p)
{
    const int shared_most = state_of(plan)->shared_most;
    return with_types(plan, [&](auto sums, auto stored) {
        using T = decltype(sums);
        using Stored = decltype(stored);
        if constexpr (!std::is_arithmetic<T>::value) {
            return SPMV_ERROR_TYPE;
        } else {
            const scaling<T> scale = {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero};
            return on_device(plan->ctx, [&] {
                return long_rows::run<long_rows::usual<T>>(plan->ctx, matrix_of<T, Stored>(plan), shared_most,
                                                           (const T *)p->x, scale, (T *)p->y);
            });
        }
    });
}

extern "C" void long_cuda_release(spmv_plan *plan)
{
    const long_state *const s = state_of(plan);
    spmv_free(plan->ctx, s->table);
    spmv_free(plan->ctx, s->narrow);
}
