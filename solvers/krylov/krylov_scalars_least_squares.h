/* The scalars of lsmr, lsqr and cgls: their state, and the functions that turn sums over vectors into the
 * coefficients of the next pass. Part of krylov_scalars.h, which includes it.
 *
 * The vectors of the bidiagonalization are stored without division by their norms: u has the norm
 * beta, v the norm alpha.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_SCALARS_LEAST_SQUARES_H
#define KRYLOV_SCALARS_LEAST_SQUARES_H

/* Places of coefficients (C_ZERO, C_ONE: krylov_scalars.h). */
enum {
    C_AV = 2, /* of A v and u in the next u */
    C_KEEP_U,
    C_ATU, /* of A'u and v in the next v */
    C_KEEP_V,
    C_H_V, /* of v and h in the next h (lsqr: w) */
    C_H,
    C_X_H,    /* of h in x */
    C_HBAR,   /* lsmr: of hbar in the next one, in x */
    C_X_HBAR, /* of the old hbar in x */
    /* cgls */
    C_STEP = 2, /* alpha, -alpha, beta */
    C_MINUS_STEP,
    C_CONJUGATE,
    C_DAMP,     /* -damp^2 */
    C_DAMP_STEP /* -damp^2 alpha */
};

/* The iteration i is noted at history[2 i] (the residual) and history[2 i + 1] (the gradient), modulo
 * KRYLOV_RING. */
struct krylov_least_squares {
    /* written before a run */
    double damp, atol, btol, conlim; /* conlim INFINITY: no limit */
    double norm_b;
    int *columns; /* several columns: how many still run, and 1 once none does; NULL: one column */

    int reason; /* a spmv_least_squares_stop: of those that end a recurrence */
    double residual, gradient, norm_x, norm_a, condition; /* of the last iteration */

    double alpha, beta;    /* of the bidiagonalization */
    double square_a;       /* of norm_a */
    double w_square;       /* lsqr: w'w; cgls: p'p */
    double inverse_square; /* lsqr, cgls: of the Frobenius norm of an inverse */
    double next_residual;

    /* lsmr, in the names of the paper; _old: of the step before, dd: double dots */
    double zetabar, alphabar, rho, rhobar, cbar, sbar, zeta;
    double betadd, betad, rhod_old, tautilde_old, thetatilde, d, largest_rho, smallest_rho;

    /* lsqr */
    double phibar, rhobar_q, damped_square;

    /* cgls */
    double gamma, step_old, conjugate_old;
};

/* The plane rotation with c a + s b = r, -s a + c b = 0. */
HOST_DEVICE_FN void rotation(double a, double b, double *c, double *s, double *r)
{
    *r = real_hypot(a, b);
    *c = *r > 0 ? a / *r : 1;
    *s = *r > 0 ? b / *r : 0;
}

HOST_DEVICE_FN void least_squares_note(struct krylov_state *s, double residual, double gradient)
{
    s->least_squares->residual = residual;
    s->least_squares->gradient = gradient;
    s->history[2 * s->iterations % KRYLOV_RING] = residual;
    s->history[(2 * s->iterations + 1) % KRYLOV_RING] = gradient;
}

HOST_DEVICE_FN void least_squares_stop(struct krylov_state *s, int reason)
{
    s->least_squares->reason = reason;
    s->stop = reason == 7 ? KRYLOV_LIMIT : KRYLOV_DONE;
    s->ending = 1;
}

/* The tests of Fong and Saunders. Several may be met: the one that says most about the system counts.
 * s->residual becomes the factor by which the nearest tolerance is missed (s->enough is 1). */
HOST_DEVICE_FN void least_squares_judge(struct krylov_state *s, double residual, double gradient)
{
    struct krylov_least_squares *const l = s->least_squares;
    const double of_ax = l->norm_a * l->norm_x, of_r = l->norm_a * residual, unit = s->roundoff;
    const double consistent = l->btol * l->norm_b + l->atol * of_ax, least = l->atol * of_r;
    s->iterations++;
    least_squares_note(s, residual, gradient);
    if (residual - residual != 0 || gradient - gradient != 0 || l->norm_x - l->norm_x != 0) {
        krylov_break(s, BROKEN_NOT_FINITE, residual);
        return;
    }
    int reason = 0;
    if (s->iterations >= s->limit)
        reason = 7;
    if (l->condition * unit >= 1)
        reason = 6;
    if (gradient <= unit * of_r)
        reason = 5;
    if (residual <= unit * (l->norm_b + of_ax))
        reason = 4;
    if (l->condition >= l->conlim)
        reason = 3;
    if (gradient <= least)
        reason = 2;
    if (residual <= consistent)
        reason = 1;
    if (reason != 0)
        least_squares_stop(s, reason);
    const double a = residual / consistent, b = gradient / least;
    s->residual = a < b ? a : b;
}

/* ----------------------------------------------------------------------- bidiagonalization */

/* beta = ||r|| of the start. */
HOST_DEVICE_FN void least_squares_residual(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    l->beta = sqrt(sum[0].re);
    least_squares_note(s, l->beta, 0);
    if (l->beta - l->beta != 0)
        krylov_break(s, BROKEN_NOT_FINITE, l->beta);
    else if (l->beta == 0)
        least_squares_stop(s, 0);
    s->c[C_ATU] = scalar_of(1 / l->beta);
}

/* The first gradient. False: no step follows. */
HOST_DEVICE_FN bool least_squares_begun(struct krylov_state *s, double gradient)
{
    least_squares_note(s, s->least_squares->residual, gradient);
    if (gradient - gradient != 0)
        krylov_break(s, BROKEN_NOT_FINITE, gradient);
    else if (gradient == 0)
        least_squares_stop(s, 0);
    else if (s->limit <= 0)
        least_squares_stop(s, 7);
    return !s->ending;
}

/* alpha = ||v|| of the first v, and the start of lsmr and lsqr. */
HOST_DEVICE_FN void bidiagonal_begin(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    l->alpha = sqrt(sum[0].re);
    if (!least_squares_begun(s, l->alpha * l->beta))
        return;
    s->c[C_AV] = s->c[C_H_V] = scalar_of(1 / l->alpha);
    s->c[C_KEEP_U] = scalar_of(-l->alpha / l->beta);
    l->square_a = 0;
    /* lsmr */
    l->zetabar = l->gradient;
    l->alphabar = l->alpha;
    l->rho = l->rhobar = l->cbar = 1;
    l->sbar = l->zeta = l->betad = l->tautilde_old = l->thetatilde = l->d = 0;
    l->betadd = l->beta;
    l->rhod_old = 1;
    l->largest_rho = 0;
    l->smallest_rho = INFINITY;
    /* lsqr */
    l->rhobar_q = l->alpha;
    l->phibar = l->beta;
    l->damped_square = l->inverse_square = 0;
    l->w_square = 1;
}

/* The norm of the next u. If it is 0, v stays. */
HOST_DEVICE_FN void bidiagonal_beta(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    l->square_a += l->alpha * l->alpha;
    l->beta = sqrt(sum[0].re);
    l->square_a += l->beta * l->beta;
    s->c[C_ATU] = scalar_of(l->beta > 0 ? 1 / l->beta : 0);
    s->c[C_KEEP_V] = scalar_of(l->beta > 0 ? -l->beta / l->alpha : 1);
}

/* The norm of the next v, and the coefficients of the pass after that. */
HOST_DEVICE_FN void bidiagonal_alpha(struct krylov_state *s, double alpha)
{
    struct krylov_least_squares *const l = s->least_squares;
    l->alpha = alpha;
    s->c[C_AV] = s->c[C_H_V] = scalar_of(alpha > 0 ? 1 / alpha : 0);
    s->c[C_KEEP_U] = scalar_of(l->beta > 0 ? -alpha / l->beta : 0);
}

/* ----------------------------------------------------------------------- lsmr */

HOST_DEVICE_FN void lsmr_alpha(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    double alphahat, c_damp, s_damp, c, sn, ctilde, stilde, rhotilde;
    bidiagonal_alpha(s, sqrt(sum[0].re));
    const double rho_old = l->rho, rhobar_old = l->rhobar, zeta_old = l->zeta;

    rotation(l->alphabar, l->damp, &c_damp, &s_damp, &alphahat);
    rotation(alphahat, l->beta, &c, &sn, &l->rho);
    const double theta = sn * l->alpha;
    l->alphabar = c * l->alpha;

    const double thetabar = l->sbar * l->rho, diagonal = l->cbar * l->rho;
    rotation(diagonal, theta, &l->cbar, &l->sbar, &l->rhobar);
    l->zeta = l->cbar * l->zetabar;
    l->zetabar *= -l->sbar;

    const double by_hbar = thetabar * l->rho / (rho_old * rhobar_old), by_h = l->zeta / (l->rho * l->rhobar);
    s->c[C_HBAR] = scalar_of(-by_hbar);
    s->c[C_X_H] = scalar_of(by_h);
    s->c[C_X_HBAR] = scalar_of(-by_h * by_hbar);
    s->c[C_H] = scalar_of(-theta / l->rho);

    /* the norm of the residual: rotations of the right-hand side */
    const double acute = c_damp * l->betadd, check = -s_damp * l->betadd, hat = c * acute;
    l->betadd = -sn * acute;
    const double thetatilde_old = l->thetatilde;
    rotation(l->rhod_old, thetabar, &ctilde, &stilde, &rhotilde);
    l->thetatilde = stilde * l->rhobar;
    l->rhod_old = ctilde * l->rhobar;
    l->betad = -stilde * l->betad + ctilde * hat;
    l->tautilde_old = (zeta_old - thetatilde_old * l->tautilde_old) / rhotilde;
    const double tau = (l->zeta - l->thetatilde * l->tautilde_old) / l->rhod_old;
    l->d += check * check;
    l->next_residual = sqrt(l->d + (l->betad - tau) * (l->betad - tau) + l->betadd * l->betadd);

    /* norm and condition number: of the triangle so far */
    l->norm_a = sqrt(l->square_a);
    if (rhobar_old > l->largest_rho)
        l->largest_rho = rhobar_old;
    if (s->iterations > 0 && rhobar_old < l->smallest_rho)
        l->smallest_rho = rhobar_old;
    const double most = diagonal > l->largest_rho ? diagonal : l->largest_rho;
    const double least = diagonal < l->smallest_rho ? diagonal : l->smallest_rho;
    l->condition = most / least;
}

/* x'x */
HOST_DEVICE_FN void lsmr_step(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    l->norm_x = sqrt(sum[0].re);
    least_squares_judge(s, l->next_residual, fabs(l->zetabar));
}

/* ----------------------------------------------------------------------- lsqr */

HOST_DEVICE_FN void lsqr_alpha(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    double c1, s1, rhobar, c, sn, rho;
    bidiagonal_alpha(s, sqrt(sum[0].re));

    rotation(l->rhobar_q, l->damp, &c1, &s1, &rhobar);
    const double psi = s1 * l->phibar;
    l->phibar *= c1;
    rotation(rhobar, l->beta, &c, &sn, &rho);
    const double theta = sn * l->alpha, phi = c * l->phibar;
    l->rhobar_q = -c * l->alpha;
    l->phibar *= sn;

    s->c[C_X_H] = scalar_of(phi / rho);
    s->c[C_H] = scalar_of(-theta / rho);
    l->square_a += l->damp * l->damp;
    l->norm_a = sqrt(l->square_a);
    l->inverse_square += l->w_square / (rho * rho);
    l->condition = l->norm_a * sqrt(l->inverse_square);
    l->damped_square += psi * psi;
    l->next_residual = sqrt(l->phibar * l->phibar + l->damped_square);
    l->zetabar = l->alpha * fabs(sn * phi);
}

/* x'x, w'w */
HOST_DEVICE_FN void lsqr_step(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    l->norm_x = sqrt(sum[0].re);
    l->w_square = sum[1].re;
    least_squares_judge(s, l->next_residual, l->zetabar);
}

/* ----------------------------------------------------------------------- cgls */

/* s's of the first s = A'r */
HOST_DEVICE_FN void cgls_begin(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    l->gamma = l->w_square = sum[0].re;
    l->square_a = l->inverse_square = l->conjugate_old = 0;
    l->step_old = 1;
    s->c[C_DAMP] = scalar_of(-l->damp * l->damp);
    least_squares_begun(s, sqrt(sum[0].re));
}

/* (A p)'(A p): alpha = gamma / (that + damp^2 p'p). The numbers are those of the Lanczos matrix of A'A. */
HOST_DEVICE_FN void cgls_delta(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    const double delta = sum[0].re + l->damp * l->damp * l->w_square, step = l->gamma / delta;
    if (delta - delta != 0 || step - step != 0) {
        krylov_break(s, delta - delta != 0 ? BROKEN_NOT_FINITE : BROKEN_SINGULAR, delta);
        return;
    }
    s->c[C_STEP] = scalar_of(step);
    s->c[C_MINUS_STEP] = scalar_of(-step);
    s->c[C_DAMP_STEP] = scalar_of(-l->damp * l->damp * step);
    l->square_a += 1 / step + l->conjugate_old / l->step_old;
    l->inverse_square += l->w_square / delta;
    l->norm_a = sqrt(l->square_a);
    l->condition = l->norm_a * sqrt(l->inverse_square);
    l->step_old = step;
}

/* r'r */
HOST_DEVICE_FN void cgls_residual(struct krylov_state *s, const struct krylov_scalar *sum)
{
    s->least_squares->next_residual = sum[0].re;
}

/* s's, x'x */
HOST_DEVICE_FN void cgls_step(struct krylov_state *s, const struct krylov_scalar *sum)
{
    struct krylov_least_squares *const l = s->least_squares;
    const double conjugate = sum[0].re / l->gamma;
    l->norm_x = sqrt(sum[1].re);
    l->gamma = sum[0].re;
    l->conjugate_old = conjugate;
    s->c[C_CONJUGATE] = scalar_of(conjugate);
    least_squares_judge(s, sqrt(l->next_residual + l->damp * l->damp * sum[1].re), sqrt(sum[0].re));
}

/* p'p */
HOST_DEVICE_FN void cgls_direction(struct krylov_state *s, const struct krylov_scalar *sum)
{
    s->least_squares->w_square = sum[0].re;
}

/* ----------------------------------------------------------------------- all */

HOST_DEVICE_FN bool krylov_is_of_least_squares(enum krylov_finish which)
{
    return which > GMRES_SECOND;
}

HOST_DEVICE_FN void least_squares_finish_scalars(enum krylov_finish which, struct krylov_state *s,
                                                 const struct krylov_scalar *sum)
{
    switch (which) {
#define CASE(NAME, function)                                                                                           \
    case NAME:                                                                                                         \
        function(s, sum);                                                                                              \
        break;
        LEAST_SQUARES_FINISH_LIST(CASE)
#undef CASE
    default:
        break;
    }
    /* once for each column: no pass follows the end, and those of other columns come before or after */
    int *const columns = s->least_squares->columns;
    if (s->ending && columns != NULL && --columns[0] == 0)
        columns[1] = 1;
}

#endif
