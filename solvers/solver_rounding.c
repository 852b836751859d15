/* The rounding errors of a residual: whether a solver stopped because the type has no more digits.
 *
 * Row i of b - A x is computed with an error of about roundoff (|A||x| + |b|)_i, whatever x is (N. J.
 * Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, chapter 12). No solver
 * reaches a much smaller residual in this type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/hypot.h"
#include "formats/matrix_internal.h"
#include "solvers/solver_internal.h"

static double modulus_at(spmv_type type, const void *values, int64_t i)
{
    if (values == NULL)
        return 1;
    return type_is_complex(type)
               ? real_hypot(real_at(type_part(type), values, 2 * i), real_at(type_part(type), values, 2 * i + 1))
               : fabs(real_at(type, values, i));
}

/* The squares of the rows from first to last - 1. */
static double squares_of(const spmv_csr *a, spmv_type type, const void *b, const void *x, int64_t first, int64_t last)
{
    double square = 0;
    for (int64_t i = first; i < last; i++) {
        double sum = modulus_at(type, b, i);
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            sum += modulus_at(a->type, a->val, k) * modulus_at(type, x, a->col[k]);
        square += sum * sum;
    }
    return square;
}

/* The sum over the rows of all ranks. */
static spmv_status squares_of_ranks(const struct plan_ranks *ranks, const spmv_csr *a, spmv_type type, const void *b,
                                    const void *x, double *square)
{
    double *parts = NULL;
    spmv_status st =
        host_alloc(NULL, max_i64(1, ranks->chunks) * (int64_t)sizeof *parts, "sums of a residual", (void **)&parts);
    if (st != SPMV_OK)
        return st;
    for (int64_t c = 0; c < ranks->chunks; c++)
        parts[c] = squares_of(a, type, b, x, ranks->chunk[c], ranks->chunk[c + 1]);
    st = ranks->sum(ranks->self, SPMV_F64, parts, ranks->chunks, 1, square);
    host_free(parts);
    return st;
}

/* x gets its elements of other ranks. */
static spmv_status fetch(const struct plan_ranks *ranks, void *x)
{
    const spmv_status st = ranks->fetch_start(ranks->self, x, 1);
    return st != SPMV_OK ? st : ranks->fetch_finish(ranks->self, x, 1);
}

spmv_status solver_rounding(const spmv_solver *s, spmv_type type, const void *b, const void *x, double *norm)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = s->ctx;
    spmv_csr a = *solver_matrix(s);
    const struct plan_ranks *const ranks = s->plan->ranks;
    const int64_t size = (int64_t)spmv_type_size(type), bytes = a.rows * size;
    const int64_t others = ranks != NULL ? (ranks->before + ranks->after) * size : 0;
    struct csr_copies copies = {0};
    void *b_copy = NULL, *x_copy = NULL;
    const void *host_b = NULL, *host_x = NULL;
    static const char what[] = "a copy for a residual";
    double square = 0;
    if (ranks != NULL)
        TRY(fetch(ranks, (void *)x));
    TRY(spmv_synchronize(ctx));
    TRY(csr_to_host(ctx, &a, false, &a, &copies));
    TRY(context_read(ctx, b, bytes, what, &b_copy, &host_b));
    TRY(context_read(ctx, plan_x_of(s->plan, x), bytes + others, what, &x_copy, &host_x));
    if (ranks != NULL)
        TRY(squares_of_ranks(ranks, &a, type, host_b, host_x, &square));
    else
        square = squares_of(&a, type, host_b, host_x, 0, a.rows);
    *norm = real_limits_of(type_part(type)).roundoff * sqrt(square);
done:
    csr_free_host(&copies);
    host_free_all(b_copy, x_copy);
    return st;
}
