/* The rounding errors of a residual: whether a solver stopped because the type has no more digits.
 *
 * Row i of b - A x is computed with an error of about roundoff (|A||x| + |b|)_i, whatever x is (N. J.
 * Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, chapter 12). No solver
 * reaches a much smaller residual in this type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/matrix_internal.h"
#include "solvers/solver_internal.h"

static double modulus_at(spmv_type type, const void *values, int64_t i)
{
    if (values == NULL)
        return 1;
    return type_is_complex(type)
               ? hypot(real_at(type_part(type), values, 2 * i), real_at(type_part(type), values, 2 * i + 1))
               : fabs(real_at(type, values, i));
}

spmv_status solver_rounding(const spmv_solver *s, spmv_type type, const void *b, const void *x, double *norm)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = s->ctx;
    spmv_csr a = *solver_matrix(s);
    const int64_t bytes = a.rows * (int64_t)spmv_type_size(type);
    struct csr_copies copies = {0};
    void *b_copy = NULL, *x_copy = NULL;
    const void *host_b = NULL, *host_x = NULL;
    static const char what[] = "a copy for a residual";
    double square = 0;
    TRY(spmv_synchronize(ctx));
    TRY(csr_to_host(ctx, &a, false, &a, &copies));
    TRY(context_read(ctx, b, bytes, what, &b_copy, &host_b));
    TRY(context_read(ctx, x, bytes, what, &x_copy, &host_x));
    for (int64_t i = 0; i < a.rows; i++) {
        double sum = modulus_at(type, host_b, i);
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
            sum += modulus_at(a.type, a.val, k) * modulus_at(type, host_x, a.col[k]);
        square += sum * sum;
    }
    *norm = real_limits_of(type_part(type)).roundoff * sqrt(square);
done:
    csr_free_host(&copies);
    host_free_all(b_copy, x_copy);
    return st;
}
