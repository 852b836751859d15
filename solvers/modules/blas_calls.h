/* What the modules that call BLAS share: one thread, and the time of dense parts.
 *
 * Sums of several threads may be added in an order that varies. So calls of a module run OpenBLAS, if that is the BLAS of
 * its library, on one thread.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BLAS_CALLS_H
#define BLAS_CALLS_H

#include "solvers/modules/direct_module.h"

/* Of OpenBLAS; absent in others. */
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) void openblas_set_num_threads(int threads);

/* Around each call, with the lock. */
static inline void blas_on_one_thread(struct direct_shared *shared)
{
    if (shared->calls++ == 0 && openblas_get_num_threads != NULL && openblas_set_num_threads != NULL) {
        shared->threads = openblas_get_num_threads();
        openblas_set_num_threads(1);
    }
}

static inline void blas_on_all_threads(struct direct_shared *shared)
{
    if (--shared->calls == 0 && openblas_set_num_threads != NULL && shared->threads > 0)
        openblas_set_num_threads(shared->threads);
}

/* Nanoseconds of factors with dense parts: of an operation, which fills the registers in OpenBLAS and not in the
 * reference BLAS, and of a nonzero of the factors (docs/notebook/preconditioners.md). */
static inline double dense_time_of(double operations, double nonzeros, bool fast)
{
    const double by_openblas = 0.06, by_reference = 1, moved = 26;
    return operations * (fast ? by_openblas : by_reference) + nonzeros * moved;
}

static inline double dense_time(double operations, double nonzeros)
{
    return dense_time_of(operations, nonzeros, openblas_set_num_threads != NULL);
}

/* The same of factors without dense parts. nonzeros: of A as well. */
static inline double sparse_time(double operations, double nonzeros)
{
    const double operation = 0.4, moved = 14;
    return operations * operation + nonzeros * moved;
}

/* The words behind the number of a row or column in a message. */
static inline const char *counted(const struct direct_problem *problem)
{
    return problem->first_index != 0 ? "" : " (counted from 0)";
}

#endif
