/* Whether A is symmetric, as far as products with it tell.
 *
 * For a symmetric A, u'A v = v'A u for any u and v. For fixed pseudo-random u and v of elements of modulus 1 to 2 the
 * difference of the two is a sum of a_ij - a_ji with random factors u_i v_j - u_j v_i: about the Frobenius norm of
 * A - A', so what is not symmetric shows, whichever entries it is. Were all of modulus 1, every other of these factors
 * would be 0. (R. Freivalds, "Probabilistic machines can use less running time", IFIP 1977, checks
 * a product likewise.)
 *
 * The elements of the products A v carry rounding errors, which, as long as they do not conspire, add up to about
 * unit roundoff times sqrt(longest row) ||A||_F, and ||A v|| estimates ||A||_F (M. F. Hutchinson, "A stochastic
 * estimator of the trace", Comm. Statist. 18, 1989). MARGIN sqrt(nnz) is more than that by far. The sums u'(A v)
 * themselves are formed in long double.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "cg_internal.h"

enum { PAIRS = 3, MARGIN = 32 };

/* Element i of vector number which: 1 + k / 1024, 0 <= k < 1024, or minus that, from bits of splitmix64 (G. L. Steele,
 * D. Lea, C. H. Flood, OOPSLA 2014). */
static double element_at(int which, int64_t i)
{
    uint64_t z = ((uint64_t)i + ((uint64_t)(which + 1) << 40)) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const double modulus = 1 + (double)(z >> 54) / 1024;
    return (z & 1) != 0 ? modulus : -modulus;
}

/* What a product is taken with. */
struct sample {
    void *host, *in, *out; /* rows times vectors elements each; host in host memory */
    int64_t count;
};

/* *dot = sum of element_at(with) (A v), v = the vector of number which; *square = ||A v||^2, both of all columns. */
static spmv_status look(const struct cg *cg, const struct sample *s, int which, int with, long double *dot,
                        long double *square)
{
    spmv_status st = SPMV_OK;
    const bool narrow = cg->info.type == SPMV_F32;
    const int64_t bytes = s->count * (int64_t)spmv_type_size(cg->info.type);
    float *f32 = s->host;
    double *f64 = s->host;
    for (int64_t i = 0; i < s->count; i++) {
        if (narrow)
            f32[i] = (float)element_at(which, i);
        else
            f64[i] = element_at(which, i);
    }
    TRY(spmv_upload(cg->ctx, s->host, s->in, bytes));
    TRY(spmv_apply(cg->plan, NULL, s->in, NULL, s->out));
    TRY(spmv_download(cg->ctx, s->out, s->host, bytes));
    *dot = *square = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const long double value = narrow ? (long double)f32[i] : (long double)f64[i];
        *dot += element_at(with, i) * value;
        *square += value * value;
    }
done:
    return st;
}

spmv_status cg_check_symmetry(const struct cg *cg)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = cg->info.rows * cg->info.vectors * (int64_t)spmv_type_size(cg->info.type);
    const double roundoff = cg->info.type == SPMV_F32 ? 0x1p-24 : 0x1p-53;
    struct sample s = {.count = cg->info.rows * cg->info.vectors};
    long double uav[PAIRS], vau[PAIRS], largest = 0;
    if (s.count == 0)
        return SPMV_OK;
    TRY(host_alloc(cg->ctx, bytes, "the check of symmetry", &s.host));
    TRY(spmv_alloc(cg->ctx, bytes, &s.in));
    TRY(spmv_alloc(cg->ctx, bytes, &s.out));
    for (int i = 0; i < PAIRS; i++) {
        const int u = 2 * i, v = 2 * i + 1;
        long double square[2];
        TRY(look(cg, &s, v, u, &uav[i], &square[0]));
        TRY(look(cg, &s, u, v, &vau[i], &square[1]));
        largest = fmaxl(largest, fmaxl(square[0], square[1]));
    }
    const double bound = MARGIN * roundoff * sqrt((double)cg->info.nnz) * (double)sqrtl(largest);
    for (int i = 0; i < PAIRS; i++) {
        const double difference = fabs((double)(uav[i] - vau[i]));
        if (isfinite(bound) && difference > bound) { /* what is not finite is left to the recurrence, which names it */
            st = context_fail(cg->ctx, SPMV_ERROR_NOT_SYMMETRIC,
                              "spmv_cg: the matrix is not symmetric: |u'Av - v'Au| is %.3g for two vectors of elements "
                              "from 1 to 2 and -2 to -1, and rounding explains %.3g",
                              difference, bound);
            goto done;
        }
    }
done:
    host_free(s.host);
    spmv_free(cg->ctx, s.in);
    spmv_free(cg->ctx, s.out);
    return st;
}
