/* Batches on a CPU: the methods of batch_methods.h, a system for each thread at a time. Lanes are the inner
 * loop, so sums are vectorised in the order that batch_internal.h states.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "core/threads.h"
#include "solvers/batch/batch_internal.h"

#ifdef _OPENMP
#include <omp.h>
#endif

/* Row 0 of s becomes the sums of its rows' lanes. */
#define DEFINE_SUM_UP(S)                                                                                               \
    static void sum_up_##S(S(*s)[BATCH_MOST_LANES], int n, int lanes)                                                  \
    {                                                                                                                  \
        for (int j = 0; j < n; j++) {                                                                                  \
            S total = 0;                                                                                               \
            for (int group = 0; group < lanes; group += BATCH_WARP) {                                                  \
                S *const of = s[j] + group;                                                                            \
                for (int left = BATCH_WARP; left > 1; left /= 2)                                                       \
                    for (int l = 0; l < left / 2; l++)                                                                 \
                        of[l] = of[2 * l] + of[2 * l + 1];                                                             \
                total = group == 0 ? of[0] : total + of[0];                                                            \
            }                                                                                                          \
            s[j][0] = total;                                                                                           \
        }                                                                                                              \
    }
DEFINE_SUM_UP(float)
DEFINE_SUM_UP(double)

#define FUNCTION static inline
#define VECTOR_OF T *const
#define VECTOR(v, which) T *const v = g->vector[which]
#define INPUT_VECTOR(v) T *const v = g->input
#define PUBLISH(v) ((void)0)
#define AT(v) v[i]
#define EACH_ROW(i)                                                                                                    \
    for (int begin_ = 0; begin_ < n; begin_ += g->lanes)                                                               \
        for (int i = begin_, end_ = n - begin_ < g->lanes ? n : begin_ + g->lanes; i < end_; i++)
#define SUMS(S, s, n)                                                                                                  \
    S s[n][BATCH_MOST_LANES];                                                                                          \
    for (int j_ = 0; j_ < (n); j_++)                                                                                   \
    memset(s[j_], 0, (size_t)g->lanes * sizeof(S))
#define ADD(s, j, value) s[j][i - begin_] += value
#define SUM_UP_OF(S, s, n, lanes) sum_up_##S(s, n, lanes)
#define SUM_UP(S, s, n) SUM_UP_OF(S, s, n, g->lanes)
#define TOTAL(s, j) s[j][0]
#define BARRIER ((void)0)
#define FIRST_LANE 1
#define MULTIPLY(q) TYPED(multiply)(g, job, q)
#define RESIDUAL(S, s, b, factor, r) TYPED(residual)(g, job, s, b, factor, r)
#define DIAGONAL(w) TYPED(diagonal)(g, job, w)

#define TEMPLATE "solvers/batch/batch_host_typed.h"
#include "core/each/each_floating.h"
#undef TEMPLATE

typedef void solve_function(const struct batch_job *job, int group, int64_t system);
typedef void apply_function(const spmv_batch *batch, const void *val, const void *x, void *y, int64_t system);

/* The threads for steps over all systems. */
static int team(const spmv_batch *batch, int64_t count, int64_t steps)
{
    int64_t work = 0;
    if (!multiply_fits(batch->nnz + 8 * batch->rows, count, &work) || !multiply_fits(work, steps, &work))
        work = INT64_MAX;
    return host_team(batch->ctx, work);
}

void batch_solve_host(const spmv_batch *batch, const struct batch_job *job)
{
    static solve_function *const functions[SPMV_TYPE_LIMIT] = FLOATING_TABLE(solve_one);
    enum { STEPS = 20 }; /* a guess */
#pragma omp parallel for schedule(dynamic) num_threads(team(batch, job->count, STEPS))
    for (int64_t k = 0; k < job->count; k++) {
#ifdef _OPENMP
        functions[batch->type](job, omp_get_thread_num(), k);
#else
        functions[batch->type](job, 0, k);
#endif
    }
}

void batch_apply_host(const spmv_batch *batch, const void *val, const void *x, void *y, int64_t count)
{
    static apply_function *const functions[SPMV_TYPE_LIMIT] = FLOATING_TABLE(apply_one);
#pragma omp parallel for schedule(static) num_threads(team(batch, count, 1))
    for (int64_t k = 0; k < count; k++)
        functions[batch->type](batch, val, x, y, k);
}
