/* The scalars of the solvers minres, gmres, bicgstab and cocg: their state, and the functions that turn
 * sums over vectors into the coefficients of the next pass. The same functions run on the host and,
 * on cuda, at the end of a kernel, so the host need not wait for a sum.
 *
 * Scalars are complex numbers in double precision; those of real vectors have imaginary part 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_SCALARS_H
#define KRYLOV_SCALARS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/host_device_fn.h"
#include "core/hypot.h"

enum { KRYLOV_RING = 256, KRYLOV_COEFFICIENTS = 16, KRYLOV_MOST_SUMS = 2 };

struct krylov_scalar {
    double re, im;
};

/* Why a run ended: values of enum column_stop (krylov.h). */
enum { KRYLOV_RUNS, KRYLOV_DONE, KRYLOV_BROKEN, KRYLOV_LIMIT };

/* What broke. */
enum krylov_broken {
    BROKEN_NOTHING,
    BROKEN_NOT_FINITE,       /* a sum is not finite */
    BROKEN_NOT_POSITIVE,     /* minres: r'M^-1 r < 0 */
    BROKEN_SINGULAR,         /* gmres: the Krylov space ends, and A is singular on it; cgls: A p = 0 */
    BROKEN_LEAST_SQUARES,    /* minres: r is nearly a null vector of A, so no x reduces it */
    BROKEN_SHADOW,           /* bicgstab: (r0, A p) = 0 or (r0, r) = 0 */
    BROKEN_NO_STABILISATION, /* bicgstab: (t, s) = 0 */
    BROKEN_QUASI_NULL,       /* cocg: a product without conjugation is 0, of vectors that are not */
    BROKEN_GROWTH            /* cocg: the residual has grown by the reciprocal of the roundoff */
};

/* In the context's memory. Pointers point there too. */
struct krylov_state {
    /* written before a run */
    double tolerance, roundoff;
    int64_t limit; /* iterations in this run */
    int first;     /* the next sum begins a run, not another cycle */

    int ending; /* no step follows; read by kernels */
    int stop, broken;
    int64_t iterations;
    double start, enough;        /* norms: as in struct krylov_column */
    double residual;             /* the norm after the last iteration */
    double culprit;              /* the number that broke the run */
    double history[KRYLOV_RING]; /* the norm after iteration i, at i % KRYLOV_RING */

    /* Coefficients of krylov_combine. c[0] = 0, c[1] = 1. */
    struct krylov_scalar c[KRYLOV_COEFFICIENTS];

    /* bicgstab */
    struct krylov_scalar rho, alpha, omega;
    double norm_r0;

    /* cocg; rho and alpha as above. Norms of r, before smoothing, and of p; of the smoothed residual as the weights
     * predict it. quasi_null: r'M^-1 r of the next step is 0; then *culprit is set. */
    double norm_r, norm_p, tau;
    int quasi_null;

    double largest; /* minres, gmres: norm of a column of the triangle, over all runs */

    /* minres */
    double gamma, gamma_old, eta, cs, cs_old, sn, sn_old, delta;
    int plain;         /* no preconditioner: |eta| is the norm of the residual */
    double first_eta;  /* of this run */
    double null_ratio; /* |A r| / (|A| |r|) of the residual before this step */
    /* Steps pause for the host to compare the residual with the true one: minres_is_due. The residual
     * and the iteration of the last pause; 0: none. even: only after an even number of steps. */
    int paused, even;
    double pause_residual;
    int64_t pause_iteration;

    /* gmres: steps of this cycle, and their most; the norm of A z before it is made orthogonal.
     * h: the coefficients of the present pass, and their sum; r: columns of the triangle, `most`
     * apart; g: the rotated right-hand side, later the solution; rotations. */
    int j, most;
    double before;
    struct krylov_scalar *pass, *h, *r, *g, *sines;
    double *cosines;

    struct krylov_least_squares *least_squares; /* lsmr, lsqr, cgls */
};

/* The functions that a combination of vectors may end with, X(NAME, function). Each takes the sums of
 * the pass before it. */
#define KRYLOV_FINISH_LIST(X)                                                                                          \
    X(BICGSTAB_BEGIN, bicgstab_begin) /* r'r */                                                                        \
    X(BICGSTAB_ALPHA, bicgstab_alpha) /* (r0, v) */                                                                    \
    X(BICGSTAB_OMEGA, bicgstab_omega) /* (t, s), t't */                                                                \
    X(BICGSTAB_STEP, bicgstab_step)   /* (r0, r), r'r */                                                               \
    X(COCG_BEGIN, cocg_begin)         /* r'r; without a preconditioner also (r, r) */                                  \
    X(COCG_RHO, cocg_rho)             /* (r, z), z'z */                                                                \
    X(COCG_FIRST, cocg_first)         /* p'p */                                                                        \
    X(COCG_ALPHA, cocg_alpha)         /* (p, A p), |A p|^2 */                                                          \
    X(COCG_RESIDUAL, cocg_residual)   /* as COCG_BEGIN */                                                              \
    X(COCG_STEP, cocg_step)           /* s's, p'p */                                                                   \
    X(MINRES_BEGIN, minres_begin)     /* r'z, r'r */                                                                   \
    X(MINRES_DELTA, minres_delta)     /* (z, A z) */                                                                   \
    X(MINRES_GAMMA, minres_gamma)     /* v'z */                                                                        \
    X(MINRES_STEP, minres_step)       /* r'r; without a preconditioner no sum */                                       \
    X(GMRES_BEGIN, gmres_begin)       /* r'r */

/* Those of lsmr, lsqr and cgls (krylov_scalars_least_squares.h). */
#define LEAST_SQUARES_FINISH_LIST(X)                                                                                   \
    X(LEAST_SQUARES_RESIDUAL, least_squares_residual) /* r'r */                                                        \
    X(BIDIAGONAL_BEGIN, bidiagonal_begin)             /* v'v */                                                        \
    X(BIDIAGONAL_BETA, bidiagonal_beta)               /* u'u */                                                        \
    X(LSMR_ALPHA, lsmr_alpha)                         /* v'v */                                                        \
    X(LSMR_STEP, lsmr_step)                           /* x'x */                                                        \
    X(LSQR_ALPHA, lsqr_alpha)                         /* v'v */                                                        \
    X(LSQR_STEP, lsqr_step)                           /* x'x, w'w */                                                   \
    X(CGLS_BEGIN, cgls_begin)                         /* s's */                                                        \
    X(CGLS_DELTA, cgls_delta)                         /* (A p)'(A p) */                                                \
    X(CGLS_RESIDUAL, cgls_residual)                   /* r'r */                                                        \
    X(CGLS_STEP, cgls_step)                           /* s's, x'x */                                                   \
    X(CGLS_DIRECTION, cgls_direction)                 /* p'p */

enum krylov_finish {
    FINISH_NOTHING,
#define ROW(NAME, function) NAME,
    KRYLOV_FINISH_LIST(ROW)
#undef ROW
    /* of projections */
    GMRES_FIRST,  /* v_i'w, w'w */
    GMRES_SECOND, /* the same again */
/* of least squares: krylov_scalars_least_squares.h */
#define ROW(NAME, function) NAME,
    LEAST_SQUARES_FINISH_LIST(ROW)
#undef ROW
};

/* Places of coefficients. */
enum {
    C_ZERO,
    C_ONE,
    /* bicgstab */
    C_MINUS_ALPHA,
    C_ALPHA,
    C_OMEGA,
    C_MINUS_OMEGA,
    C_BETA,
    C_MINUS_BETA_OMEGA,
    /* cocg: C_ALPHA, C_MINUS_ALPHA, C_BETA and the weight of the smoothing */
    C_WEIGHT,
    C_WEIGHT_ALPHA,
    C_REST, /* 1 less the weight */
    C_REST_ALPHA,
    /* minres */
    C_SCALE = 2, /* 1 / gamma */
    C_V,         /* of v and of the v before in the next v */
    C_V_OLD,
    C_W_Z, /* of z, w before and w in the next w */
    C_W_OLD,
    C_W,
    C_X, /* of w in x */
    C_R, /* of r and the next v in r */
    C_R_V,
    /* gmres */
    C_NORM = 2 /* 1 / the norm of w */
};

HOST_DEVICE_FN struct krylov_scalar scalar_of(double re)
{
    const struct krylov_scalar z = {re, 0};
    return z;
}

HOST_DEVICE_FN struct krylov_scalar scalar_scaled(double by, struct krylov_scalar a)
{
    const struct krylov_scalar z = {by * a.re, by * a.im};
    return z;
}

HOST_DEVICE_FN struct krylov_scalar scalar_sum(struct krylov_scalar a, struct krylov_scalar b)
{
    const struct krylov_scalar z = {a.re + b.re, a.im + b.im};
    return z;
}

HOST_DEVICE_FN struct krylov_scalar scalar_product(struct krylov_scalar a, struct krylov_scalar b)
{
    const struct krylov_scalar z = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return z;
}

HOST_DEVICE_FN struct krylov_scalar scalar_conjugate(struct krylov_scalar a)
{
    const struct krylov_scalar z = {a.re, -a.im};
    return z;
}

HOST_DEVICE_FN double scalar_modulus(struct krylov_scalar a)
{
    return a.im == 0 ? fabs(a.re) : real_hypot(a.re, a.im);
}

/* a / b, b != 0 */
HOST_DEVICE_FN struct krylov_scalar scalar_quotient(struct krylov_scalar a, struct krylov_scalar b)
{
    if (a.im == 0 && b.im == 0)
        return scalar_of(a.re / b.re);
    const double m = scalar_modulus(b);
    const struct krylov_scalar unit = {b.re / m, -b.im / m};
    return scalar_scaled(1 / m, scalar_product(a, unit));
}

HOST_DEVICE_FN bool scalar_is_finite(struct krylov_scalar a)
{
    return a.re - a.re == 0 && a.im - a.im == 0;
}

HOST_DEVICE_FN void krylov_break(struct krylov_state *s, enum krylov_broken what, double culprit)
{
    s->stop = KRYLOV_BROKEN;
    s->broken = what;
    s->culprit = culprit;
    s->ending = 1;
}

/* Sets s->stop if this residual is small enough or the last one. */
HOST_DEVICE_FN void krylov_judge(struct krylov_state *s, double residual)
{
    if (residual - residual != 0)
        krylov_break(s, BROKEN_NOT_FINITE, residual);
    else if (residual <= s->enough)
        s->stop = KRYLOV_DONE;
    else if (s->iterations >= s->limit)
        s->stop = KRYLOV_LIMIT;
}

/* Notes the residual of a new iteration, and whether it is the last. */
HOST_DEVICE_FN void krylov_iterated(struct krylov_state *s, double residual)
{
    s->iterations++;
    s->residual = residual;
    s->history[s->iterations % KRYLOV_RING] = residual;
    krylov_judge(s, residual);
    s->ending = s->ending || s->stop != KRYLOV_RUNS;
}

/* The first residual of a run, or of another cycle of it. False: no step follows. */
HOST_DEVICE_FN bool krylov_begun(struct krylov_state *s, double residual)
{
    s->ending = 0;
    s->residual = residual;
    if (s->first) {
        const double last = s->roundoff * residual;
        s->first = 0;
        s->start = residual;
        s->enough = s->tolerance > last ? s->tolerance : last;
        s->history[s->iterations % KRYLOV_RING] = residual;
    }
    krylov_judge(s, residual);
    s->ending = s->stop != KRYLOV_RUNS;
    return !s->ending;
}

/* ----------------------------------------------------------------------- bicgstab */

HOST_DEVICE_FN void bicgstab_begin(struct krylov_state *s, const struct krylov_scalar *sum)
{
    krylov_begun(s, sqrt(sum[0].re));
    s->rho = scalar_of(sum[0].re);
    s->norm_r0 = s->residual;
}

/* Whether a product of vectors with these norms is as good as 0. It may be far below the roundoff of
 * the norms and still be right: r leaves the few rows where r0 is large. */
HOST_DEVICE_FN bool bicgstab_vanishes(const struct krylov_state *s, struct krylov_scalar dot, double norms)
{
    return !(scalar_modulus(dot) > s->roundoff * s->roundoff * norms);
}

/* alpha = rho / (r0, v) */
HOST_DEVICE_FN void bicgstab_alpha(struct krylov_state *s, const struct krylov_scalar *sum)
{
    if (!scalar_is_finite(sum[0])) {
        krylov_break(s, BROKEN_NOT_FINITE, sum[0].re);
        return;
    }
    s->alpha = scalar_modulus(sum[0]) > 0 ? scalar_quotient(s->rho, sum[0]) : sum[0];
    if (scalar_modulus(sum[0]) == 0 || !scalar_is_finite(s->alpha)) {
        krylov_break(s, BROKEN_SHADOW, scalar_modulus(sum[0]));
        return;
    }
    s->c[C_ALPHA] = s->alpha;
    s->c[C_MINUS_ALPHA] = scalar_scaled(-1, s->alpha);
}

/* omega = (t, s) / t't; 0 where t = 0 */
HOST_DEVICE_FN void bicgstab_omega(struct krylov_state *s, const struct krylov_scalar *sum)
{
    const double tt = sum[1].re;
    s->omega = scalar_of(0);
    if (tt > 0)
        s->omega = scalar_scaled(1 / tt, sum[0]);
    if (!scalar_is_finite(s->omega)) {
        krylov_break(s, BROKEN_NOT_FINITE, sum[0].re);
        return;
    }
    s->c[C_OMEGA] = s->omega;
    s->c[C_MINUS_OMEGA] = scalar_scaled(-1, s->omega);
}

/* beta = rho_new / rho * alpha / omega */
HOST_DEVICE_FN void bicgstab_step(struct krylov_state *s, const struct krylov_scalar *sum)
{
    krylov_iterated(s, sqrt(sum[1].re));
    if (s->ending)
        return;
    const bool still = scalar_modulus(s->omega) == 0;
    if (still || bicgstab_vanishes(s, sum[0], s->norm_r0 * s->residual)) {
        krylov_break(s, still ? BROKEN_NO_STABILISATION : BROKEN_SHADOW, scalar_modulus(sum[0]));
        return;
    }
    const struct krylov_scalar beta =
        scalar_product(scalar_quotient(sum[0], s->rho), scalar_quotient(s->alpha, s->omega));
    s->c[C_BETA] = beta;
    s->c[C_MINUS_BETA_OMEGA] = scalar_scaled(-1, scalar_product(beta, s->omega));
    s->rho = sum[0];
}

/* ----------------------------------------------------------------------- cocg
 * (u, v) = u'v without conjugation. */

/* Whether (u, v) is only rounding errors of vectors with these norms. */
HOST_DEVICE_FN bool cocg_vanishes(const struct krylov_state *s, struct krylov_scalar product, double u, double v)
{
    return !(scalar_modulus(product) > s->roundoff * u * v);
}

/* rho = (r, z), beta = rho / the rho before. A step that ends here still smooths x, so cocg_step breaks the run. */
HOST_DEVICE_FN void cocg_rho(struct krylov_state *s, const struct krylov_scalar *sum)
{
    const struct krylov_scalar before = s->rho;
    s->rho = sum[0];
    s->c[C_BETA] = scalar_of(0);
    if (cocg_vanishes(s, sum[0], s->norm_r, sqrt(sum[1].re))) {
        s->quasi_null = 1;
        s->culprit = scalar_modulus(sum[0]);
    } else if (scalar_modulus(before) > 0) {
        s->c[C_BETA] = scalar_quotient(sum[0], before);
    }
}

HOST_DEVICE_FN void cocg_begin(struct krylov_state *s, const struct krylov_scalar *sum)
{
    s->quasi_null = 0;
    s->rho = scalar_of(0);
    if (!krylov_begun(s, sqrt(sum[0].re)))
        return;
    s->norm_r = s->tau = s->residual;
    if (s->plain) {
        const struct krylov_scalar of_r[2] = {sum[1], sum[0]};
        cocg_rho(s, of_r);
    }
}

/* Breaks the run if the next step has no direction, or one that is not finite. */
HOST_DEVICE_FN void cocg_direction(struct krylov_state *s, double square)
{
    s->norm_p = sqrt(square);
    if (square - square != 0)
        krylov_break(s, BROKEN_NOT_FINITE, square);
    else if (s->quasi_null)
        krylov_break(s, BROKEN_QUASI_NULL, s->culprit);
}

HOST_DEVICE_FN void cocg_first(struct krylov_state *s, const struct krylov_scalar *sum)
{
    cocg_direction(s, sum[0].re);
}

/* alpha = rho / (p, A p) */
HOST_DEVICE_FN void cocg_alpha(struct krylov_state *s, const struct krylov_scalar *sum)
{
    if (!scalar_is_finite(sum[0]) || !scalar_is_finite(sum[1])) {
        krylov_break(s, BROKEN_NOT_FINITE, sum[1].re);
        return;
    }
    if (cocg_vanishes(s, sum[0], s->norm_p, sqrt(sum[1].re))) {
        krylov_break(s, BROKEN_QUASI_NULL, scalar_modulus(sum[0]));
        return;
    }
    s->alpha = scalar_quotient(s->rho, sum[0]);
    s->c[C_ALPHA] = s->alpha;
    s->c[C_MINUS_ALPHA] = scalar_scaled(-1, s->alpha);
}

/* The weights: tau = (the sum of 1 / |r|^2 over all residuals)^(-1/2), weight = tau^2 / |r|^2. A residual so much larger
 * than the smoothed one has no digit of it left. */
HOST_DEVICE_FN void cocg_residual(struct krylov_state *s, const struct krylov_scalar *sum)
{
    const double norm = sqrt(sum[0].re), ratio = norm / s->tau;
    if (norm - norm != 0) {
        krylov_break(s, BROKEN_NOT_FINITE, norm);
        return;
    }
    if (s->roundoff * norm > s->residual) {
        krylov_break(s, BROKEN_GROWTH, norm);
        return;
    }
    const double weight = 1 / (1 + ratio * ratio), rest = ratio * ratio * weight;
    s->norm_r = norm;
    s->tau *= sqrt(rest);
    s->c[C_WEIGHT] = scalar_of(weight);
    s->c[C_WEIGHT_ALPHA] = scalar_scaled(weight, s->alpha);
    s->c[C_REST] = scalar_of(rest);
    s->c[C_REST_ALPHA] = scalar_scaled(rest, s->alpha);
    if (s->plain) {
        const struct krylov_scalar of_r[2] = {sum[1], sum[0]};
        cocg_rho(s, of_r);
    }
}

HOST_DEVICE_FN void cocg_step(struct krylov_state *s, const struct krylov_scalar *sum)
{
    krylov_iterated(s, sqrt(sum[0].re));
    if (!s->ending)
        cocg_direction(s, sum[1].re);
}

/* ----------------------------------------------------------------------- minres */

/* gamma = sqrt(v'z). False: no such number. */
HOST_DEVICE_FN bool minres_norm(struct krylov_state *s, double square, double *norm)
{
    *norm = square > 0 ? sqrt(square) : 0;
    if (square - square != 0)
        krylov_break(s, BROKEN_NOT_FINITE, square);
    else if (square < 0)
        krylov_break(s, BROKEN_NOT_POSITIVE, square);
    return square >= 0 && square - square == 0;
}

HOST_DEVICE_FN void minres_begin(struct krylov_state *s, const struct krylov_scalar *sum)
{
    if (!krylov_begun(s, sqrt(sum[1].re)) || !minres_norm(s, sum[0].re, &s->gamma))
        return;
    if (s->gamma == 0) { /* M^-1 r = 0: M is singular, and the space is empty */
        s->stop = KRYLOV_DONE;
        s->ending = 1;
        return;
    }
    s->gamma_old = 1;
    s->eta = s->first_eta = s->gamma;
    s->cs = s->cs_old = 1;
    s->sn = s->sn_old = 0;
    s->c[C_V_OLD] = scalar_of(0);
    s->c[C_SCALE] = scalar_of(1 / s->gamma);
}

/* The next v = A z - delta / gamma v - gamma / gamma_old v_old. */
HOST_DEVICE_FN void minres_delta(struct krylov_state *s, const struct krylov_scalar *sum)
{
    const double delta = sum[0].re;
    if (delta - delta != 0) {
        krylov_break(s, BROKEN_NOT_FINITE, delta);
        return;
    }
    s->delta = delta;
    s->c[C_V] = scalar_of(-delta / s->gamma);
    s->c[C_V_OLD] = scalar_of(s->iterations == 0 ? 0 : -s->gamma / s->gamma_old);
}

/* The rotation of the new column, and the coefficients of w, x and r.
 *
 * |A r| / |r| of the residual so far is real_hypot(a0, cs next). If it is small against the norm of A, r is
 * nearly a null vector: no x reduces it, and the new w would be rounding errors. */
HOST_DEVICE_FN void minres_gamma(struct krylov_state *s, const struct krylov_scalar *sum)
{
    double next = 0;
    if (!minres_norm(s, sum[0].re, &next))
        return;
    const double delta = s->delta, a0 = s->cs * delta - s->cs_old * s->sn * s->gamma;
    const double a2 = s->sn * delta + s->cs_old * s->cs * s->gamma, a3 = s->sn_old * s->gamma;
    const double a1 = real_hypot(a0, next),
                 column = real_hypot(real_hypot(delta, s->iterations == 0 ? 0 : s->gamma), next);
    s->largest = column > s->largest ? column : s->largest;
    s->null_ratio = real_hypot(a0, s->cs * next) / s->largest;
    if (!(s->null_ratio > (s->roundoff < 0x1p-40 ? 0x1p-40 : 0x1p-18))) {
        krylov_break(s, BROKEN_LEAST_SQUARES, s->null_ratio);
        return;
    }
    const double cs = a0 / a1, sn = next / a1;
    s->c[C_W_Z] = scalar_of(1 / a1);
    s->c[C_W] = scalar_of(-a2 / a1);
    s->c[C_W_OLD] = scalar_of(-a3 / a1);
    s->c[C_X] = scalar_of(cs * s->eta);
    s->eta = -sn * s->eta;
    s->c[C_R] = scalar_of(sn * sn);
    s->c[C_R_V] = scalar_of(next > 0 ? s->eta * cs / next : 0);
    s->c[C_SCALE] = scalar_of(next > 0 ? 1 / next : 0);
    s->cs_old = s->cs;
    s->sn_old = s->sn;
    s->cs = cs;
    s->sn = sn;
    s->gamma_old = s->gamma;
    s->gamma = next;
}

/* Whether the host has to look at the true residual. With a singular A and no solution, r becomes a
 * null vector. Rounding errors then act as an eigenvalue near 0: r of the recurrence decreases again,
 * while x grows without bound and the true residual with it. A nonsingular A with an eigenvalue near 0
 * looks the same, but its true residual follows. So once r is nearly a null vector, the two are
 * compared: now, when r has halved, and when the number of iterations has doubled. */
HOST_DEVICE_FN bool minres_is_due(const struct krylov_state *s)
{
    if (s->even && s->iterations % 2 != 0)
        return false;
    if (s->pause_residual == 0) /* the ratio falls fast: earlier if the next step may not pause */
        return s->null_ratio < (s->roundoff < 0x1p-40 ? 0x1p-17 : 0x1p-9) * (s->even ? 16 : 1);
    return s->residual <= 0.5 * s->pause_residual || s->iterations >= 2 * s->pause_iteration + 16;
}

/* The space is exhausted if the next v is 0; then the residual is 0 or does not change any more. The
 * latter also if its norm in M^-1, which steps reduce, has vanished: M^-1 is singular, and the rest of
 * the residual is a null vector of it. */
HOST_DEVICE_FN void minres_step(struct krylov_state *s, const struct krylov_scalar *sum)
{
    krylov_iterated(s, s->plain ? fabs(s->eta) : sqrt(sum[0].re));
    if (s->ending)
        return;
    if (!(s->gamma > 0) || (!s->plain && fabs(s->eta) <= s->roundoff * s->roundoff * s->first_eta)) {
        s->stop = KRYLOV_DONE;
        s->ending = 1;
    } else if (minres_is_due(s)) {
        s->paused = 1;
        s->ending = 1;
    }
}

/* ----------------------------------------------------------------------- gmres */

HOST_DEVICE_FN void gmres_begin(struct krylov_state *s, const struct krylov_scalar *sum)
{
    s->j = 0;
    if (!krylov_begun(s, sqrt(sum[0].re)))
        return;
    s->g[0] = scalar_of(s->residual);
    s->c[C_NORM] = scalar_of(1 / s->residual);
}

/* After the first pass; sum[j + 1] is w'w. */
HOST_DEVICE_FN void gmres_first(struct krylov_state *s, const struct krylov_scalar *sum)
{
    for (int i = 0; i <= s->j; i++)
        s->h[i] = s->pass[i] = sum[i];
    s->before = sqrt(sum[s->j + 1].re);
}

/* After the second pass: the new column of the Hessenberg matrix, rotated. norm: of w after the pass
 * that follows. h, cosines, sines: copies of those of the state. */
HOST_DEVICE_FN void gmres_column(struct krylov_state *s, double norm, const struct krylov_scalar *h,
                                 const double *cosines, const struct krylov_scalar *sines)
{
    const int j = s->j;
    struct krylov_scalar *const column = s->r + (int64_t)j * s->most;
    struct krylov_scalar carried = h[0];
    if (norm - norm != 0) {
        krylov_break(s, BROKEN_NOT_FINITE, norm);
        return;
    }
    if (norm <= 8 * s->roundoff * s->before)
        norm = 0;
    for (int i = 0; i < j; i++) {
        const struct krylov_scalar next = h[i + 1], sine = sines[i];
        const double cosine = cosines[i];
        column[i] = scalar_sum(scalar_scaled(cosine, carried), scalar_product(sine, next));
        carried =
            scalar_sum(scalar_scaled(cosine, next), scalar_scaled(-1, scalar_product(scalar_conjugate(sine), carried)));
    }
    const double size = scalar_modulus(carried), rho = real_hypot(size, norm);
    const struct krylov_scalar unit = size > 0 ? scalar_scaled(1 / size, carried) : scalar_of(1);
    s->largest = s->before > s->largest ? s->before : s->largest;
    /* the column depends on the others, up to the rounding of the sums of all steps */
    if (!(rho > 8 * (norm > 0 ? 1 : j + 1) * s->roundoff * s->largest)) {
        krylov_break(s, BROKEN_SINGULAR, rho);
        return;
    }
    s->cosines[j] = size / rho;
    s->sines[j] = scalar_scaled(norm / rho, unit);
    column[j] = scalar_scaled(rho, unit);
    s->g[j + 1] = scalar_scaled(-1, scalar_product(scalar_conjugate(s->sines[j]), s->g[j]));
    s->g[j] = scalar_scaled(s->cosines[j], s->g[j]);
    s->c[C_NORM] = scalar_of(norm > 0 ? 1 / norm : 0);
    s->j = j + 1;
    krylov_iterated(s, scalar_modulus(s->g[j + 1]));
    if (s->j == s->most || norm == 0)
        s->ending = 1;
}

/* The norm of w - V V'w: the sums are v_i'w, i <= j, and w'w. The sums are small against the norm,
 * since w has been made orthogonal once. A rest that is only rounding counts as 0: the Krylov space
 * ends. */
HOST_DEVICE_FN double gmres_norm(double square, double projected)
{
    return square > projected ? sqrt(square - projected) : square - square == 0 ? 0 : square - square;
}

HOST_DEVICE_FN void gmres_second(struct krylov_state *s, const struct krylov_scalar *sum)
{
    double projected = 0;
    for (int i = 0; i <= s->j; i++) {
        s->pass[i] = sum[i];
        s->h[i] = scalar_sum(s->h[i], sum[i]);
        projected += sum[i].re * sum[i].re + sum[i].im * sum[i].im;
    }
    gmres_column(s, gmres_norm(sum[s->j + 1].re, projected), s->h, s->cosines, s->sines);
}

/* g = R^-1 g: the coefficients of the basis in x. */
HOST_DEVICE_FN void gmres_solve(struct krylov_state *s)
{
    for (int i = s->j - 1; i >= 0; i--) {
        struct krylov_scalar rest = s->g[i];
        for (int k = i + 1; k < s->j; k++)
            rest = scalar_sum(rest, scalar_scaled(-1, scalar_product(s->r[(int64_t)k * s->most + i], s->g[k])));
        s->g[i] = scalar_quotient(rest, s->r[(int64_t)i * s->most + i]);
    }
}

/* ----------------------------------------------------------------------- all */

/* All but those of a projection and of least squares. */
HOST_DEVICE_FN void krylov_finish_scalars(enum krylov_finish which, struct krylov_state *s,
                                          const struct krylov_scalar *sum)
{
    switch (which) {
#define CASE(NAME, function)                                                                                           \
    case NAME:                                                                                                         \
        function(s, sum);                                                                                              \
        break;
        KRYLOV_FINISH_LIST(CASE)
#undef CASE
    default:
        break;
    }
}

#include "solvers/krylov/krylov_scalars_least_squares.h"

#endif
