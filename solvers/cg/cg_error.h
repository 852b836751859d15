/* An estimate of the error of conjugate gradients in the energy norm, from the coefficients of the
 * recurrence. It needs O(1) operations and memory for each iteration, and no vector.
 *
 * Let alpha_j = r_j'z_j / p_j'Ap_j, beta_j = r_j'z_j / r_(j-1)'z_(j-1). In exact arithmetic
 *
 *     ||x - x_k||_A^2 <= (r_k'z_k)^2 / (mu p_k'M p_k)
 *
 * for every mu up to the smallest eigenvalue of M^-1 A, and p_k'M p_k = w_k r_k'z_k with w_0 = 1,
 * w_k = 1 + beta_k w_(k-1). In place of mu stands an estimate of the smallest Ritz value, 1 /
 * ||L^-1||^2, where T = L L' is the tridiagonal matrix of the recurrence:
 *
 *     L_jj = 1 / sqrt(alpha_(j-1)),  L_(j+1)j = sqrt(beta_j / alpha_(j-1))
 *
 * ||L^-1|| is estimated row by row: with z of norm 1 for k rows, the best z for k + 1 rows among the
 * combinations of z and the new unit vector (I. S. Duff, C. Voemel, BIT 42, 2002). Ritz values are
 * not below the eigenvalue, so the result is an estimate, not a bound.
 *
 * Source: G. Meurant, P. Tichy, "Approximating the extreme Ritz values and upper bounds for the
 * A-norm of the error in CG", Numerical Algorithms 82, 2019.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_ERROR_H
#define CG_ERROR_H

#include <math.h>
#include <stdbool.h>

struct cg_error {
    double w;      /* p'M p / r'z */
    double square; /* the estimate of ||L^-1||^2, not above it; 0: L has no row yet */
    /* with l the last row of L^-1 and u = z'L^-1: l l', and u l' */
    double last, along;
    double alpha, beta; /* of the last step */
    double largest;     /* the largest `square` of all runs */
};

/* A run starts: the recurrence is new, A and M are as before. */
static inline void cg_error_begin(struct cg_error *e)
{
    e->w = 1;
    e->square = 0;
}

/* After a step: r'z before it, p'Ap, r'z after it. */
static inline void cg_error_step(struct cg_error *e, double rz, double pq, double rz_next)
{
    const double alpha = rz / pq;
    if (e->square == 0) {
        e->square = e->last = e->along = alpha;
    } else {
        /* with m = L_(k+1)k and d = L_(k+1)(k+1): the new row of L^-1 is (-m l, 1) / d */
        const double ratio = e->beta * alpha / e->alpha; /* (m / d)^2 */
        const double last = ratio * e->last + alpha, cross = -sqrt(ratio) * e->along;
        /* the larger eigenvalue of (square, cross; cross, last), and its vector */
        const double half = (e->square - last) / 2, root = sqrt(half * half + cross * cross);
        const double largest = (e->square + last) / 2 + root;
        const double s = half >= 0 ? half + root : -cross, c = half >= 0 ? cross : half - root;
        const double norm = sqrt(s * s + c * c);
        e->along = norm > 0 ? (s * cross + c * last) / norm : cross;
        e->square = largest;
        e->last = last;
    }
    e->alpha = alpha;
    e->beta = rz_next / rz;
    e->w = 1 + e->beta * e->w;
    e->largest = e->square > e->largest ? e->square : e->largest;
}

/* The estimate of ||x - x_k||_A; negative: not available. rz: r'z of this iterate. */
static inline double cg_error_estimate(const struct cg_error *e, double rz)
{
    const double estimate = e->largest > 0 && rz >= 0 ? sqrt(rz / e->w * e->largest) : -1;
    return isfinite(estimate) ? estimate : -1;
}

#endif
