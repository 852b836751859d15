/* A direct solver for an emulated GPU, whose memory the host can read: the module that test_direct opens in place of
 * cuDSS, with the same interface and the same limits. It has dense factors.
 *
 * Of a symmetric or Hermitian matrix it reads the lower triangle and takes pivots in their order: those that are too small
 * are replaced, so the factors of some matrices solve nothing. Rows of other matrices are exchanged.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solvers/modules/direct_module.h"

typedef double _Complex number;

struct dense {
    struct direct_problem problem;
    number *lu[2];     /* of A and A^H: n x n by rows */
    int64_t *pivot[2]; /* row k was exchanged with row pivot[k] */
    number *work;
};

static void close_dense(void *state)
{
    struct dense *const d = state;
    for (int h = 0; h < 2; h++) {
        free(d->lu[h]);
        free(d->pivot[h]);
    }
    free(d->work);
    free(d);
}

static spmv_status open_dense(const struct direct_problem *problem, void **state, struct direct_figures *figures,
                              char *why)
{
    struct dense *const d = calloc(1, sizeof *d);
    const size_t n = (size_t)problem->n;
    *state = NULL;
    if (d == NULL)
        return SPMV_ERROR_MEMORY;
    d->problem = *problem;
    bool there = (d->work = calloc(n, sizeof *d->work)) != NULL;
    for (int h = 0; h < 2; h++)
        there = (d->lu[h] = calloc(n * n, sizeof **d->lu)) != NULL &&
                (d->pivot[h] = calloc(n, sizeof **d->pivot)) != NULL && there;
    if (!there || problem->device == NULL) {
        snprintf(why, DIRECT_WHY, there ? "no matrix on a device" : "out of memory");
        close_dense(d);
        return there ? SPMV_ERROR_UNSUPPORTED : SPMV_ERROR_MEMORY;
    }
    *figures = (struct direct_figures){.ordering = "none", .nonzeros = problem->n * problem->n, .nanoseconds = 1};
    *state = d;
    return SPMV_OK;
}

/* The entries that cuDSS reads, and their mirror images. */
static void take_entries(struct dense *d)
{
    const struct direct_problem *const p = &d->problem;
    const struct direct_device *const a = p->device;
    const int64_t n = p->n;
    const bool half = p->symmetric || p->hermitian;
    memset(d->lu[0], 0, (size_t)(n * n) * sizeof **d->lu);
    memset(d->lu[1], 0, (size_t)(n * n) * sizeof **d->lu);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++) {
            const int64_t j = a->col[k];
            number v = p->complex ? a->val[2 * k] + a->val[2 * k + 1] * (number) __extension__ 1.0i : a->val[k];
            if (half && j > i)
                continue;
            if (k > a->row_ptr[i] && j <= a->col[k - 1])
                v = (number)(0.0 / 0.0); /* columns must ascend */
            const number conjugate = __builtin_conj(v);
            d->lu[0][i * n + j] = v;
            d->lu[1][j * n + i] = conjugate;
            if (half && i != j) {
                const number mirror = p->symmetric ? v : conjugate;
                d->lu[0][j * n + i] = mirror;
                d->lu[1][i * n + j] = __builtin_conj(mirror);
            }
        }
}

static void exchange(number *lu, int64_t n, int64_t i, int64_t j)
{
    for (int64_t k = 0; i != j && k < n; k++) {
        const number kept = lu[i * n + k];
        lu[i * n + k] = lu[j * n + k];
        lu[j * n + k] = kept;
    }
}

/* False: a pivot is 0. */
static bool factorise(number *lu, int64_t *pivot, int64_t n, bool in_order)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n && !in_order; i++)
            best = __builtin_cabs(lu[i * n + k]) > __builtin_cabs(lu[best * n + k]) ? i : best;
        pivot[k] = best;
        exchange(lu, n, k, best);
        if (in_order && __builtin_cabs(lu[k * n + k]) < 1e-20)
            lu[k * n + k] = 1e-20;
        if (lu[k * n + k] == 0)
            return false;
        for (int64_t i = k + 1; i < n; i++) {
            const number factor = lu[i * n + k] /= lu[k * n + k];
            for (int64_t j = k + 1; j < n && factor != 0; j++)
                lu[i * n + j] -= factor * lu[k * n + j];
        }
    }
    return true;
}

static spmv_status factor_dense(void *state, const double *val, struct direct_figures *figures, char *why)
{
    struct dense *const d = state;
    const bool in_order = d->problem.symmetric || d->problem.hermitian;
    (void)val;
    take_entries(d);
    for (int h = 0; h < 2; h++)
        if (!factorise(d->lu[h], d->pivot[h], d->problem.n, in_order)) {
            snprintf(why, DIRECT_WHY, "the matrix is singular");
            return SPMV_ERROR_SINGULAR;
        }
    figures->rcond = -1;
    figures->negative = -1;
    return SPMV_OK;
}

static void solve_with(struct dense *d, int h, double *x)
{
    const int64_t n = d->problem.n;
    const bool complex = d->problem.complex;
    const number *const lu = d->lu[h];
    number *const w = d->work;
    for (int64_t i = 0; i < n; i++)
        w[i] = complex ? x[2 * i] + x[2 * i + 1] * (number) __extension__ 1.0i : x[i];
    for (int64_t i = 0; i < n; i++) {
        const int64_t other = d->pivot[h][i];
        const number kept = w[i];
        w[i] = w[other];
        w[other] = kept;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            w[i] -= lu[i * n + j] * w[j];
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t j = i + 1; j < n; j++)
            w[i] -= lu[i * n + j] * w[j];
        w[i] /= lu[i * n + i];
    }
    for (int64_t i = 0; i < n; i++) {
        x[complex ? 2 * i : i] = __real__ w[i];
        if (complex)
            x[2 * i + 1] = __imag__ w[i];
    }
}

static spmv_status solve_dense(void *state, double *x, int64_t columns, char *why)
{
    struct dense *const d = state;
    (void)why;
    for (int64_t k = 0; k < columns; k++)
        solve_with(d, 0, x + k * d->problem.n * (d->problem.complex ? 2 : 1));
    return SPMV_OK;
}

static spmv_status solve_adjoint_dense(void *state, double *x, int64_t columns, char *why)
{
    struct dense *const d = state;
    (void)why;
    for (int64_t k = 0; k < columns; k++)
        solve_with(d, 1, x + k * d->problem.n * (d->problem.complex ? 2 : 1));
    return SPMV_OK;
}

const struct direct_module *spmv_direct_module(void)
{
    static const struct direct_module module = {DIRECT_MODULE_ABI, "cuDSS emulated",    open_dense, factor_dense,
                                                solve_dense,       solve_adjoint_dense, close_dense};
    return &module;
}
