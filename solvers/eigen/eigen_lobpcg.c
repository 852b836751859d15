/* The locally optimal block preconditioned conjugate gradient method for the smallest eigenvalues.
 *
 *     repeat  r_j = A x_j - theta_j M x_j,  w_j = T r_j                    of the active columns
 *             Rayleigh and Ritz on the span of S = (X, P, W):  X = S C_x,  P = S C_p
 *
 * where C_p has the parts of the active columns of C_x in P and W, made orthogonal to C_x. S is orthonormal in the inner
 * product of M, so X and P are, and the projected matrix of (X, P) is known. W is not made orthonormal itself: the one
 * pass (S'MW, S'AW) tells the coefficients that do it, and X and P are computed with these from W as it is. Where that
 * would lose digits, because W is nearly in the span of X and P or its columns nearly depend on each other, W is made
 * orthonormal by a pass of its own first. The loss of orthonormality is estimated; from time to time the basis is
 * refreshed: made orthonormal, multiplied by A again, and rotated to its Ritz vectors.
 *
 * A column that has converged stays in X and gets no w (soft locking). Columns beyond those wanted (guards) are active:
 * they make values of any multiplicity complete and hasten the last ones. The start is T applied to random vectors, which
 * damps what is not smooth.
 *
 * Passes over n x 3m numbers an iteration, without T: one for S'(MW, AW), one for S C, one for AS C, and the products.
 *
 * Source: A. V. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM J. Sci. Comput. 23, 2001; C_p: U. Hetmaniuk,
 * R. Lehoucq, "Basis selection in LOBPCG", J. Comput. Phys. 218, 2006; J. A. Duersch, M. Shao, C. Yang, M. Gu, "A robust and
 * efficient implementation of LOBPCG", SIAM J. Sci. Comput. 40, 2018.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "solvers/eigen/eigen_internal.h"

/* LOOKS: iterations in which residuals must fall by a tenth. ROUNDS: passes that make W orthonormal. WIDTHS: numbers of
 * active columns are a multiple of it. INDEFINITE: after so many iterations, a negative value ends what was chosen for a positive A. */
enum { LOOKS = 150, ROUNDS = 3, WIDTHS = 4, INDEFINITE = 3 };

struct lobpcg {
    struct eigen_problem *p;
    struct eigen_vectors v;
    struct eigen_preconditioning t;
    int m, of_p, of_w; /* columns of X, P, W */
    struct eigen_block s, as, ms;
    int *active;
    double *theta;   /* 3 m */
    double *squares; /* m */
    double *sizes, *numbers;
    double *h;                                                     /* (X, P)'A (X, P) */
    double *to_m, *to_a, *z, *whole, *y, *c, *gram, *own, *turned; /* small matrices, of up to 3 m x 3 m numbers */
    double loss;   /* of orthonormality, since the last refresh; estimated */
    double strict; /* the tolerance is divided by this */
    bool fresh;    /* A X is a product, not a combination */
};

static struct eigen_block part(const struct lobpcg *l, struct eigen_block b, int first, int columns)
{
    return block_part(b, l->p->type, first, columns);
}

static struct small square_of(const struct lobpcg *l, double *at, int rows, int columns)
{
    return small_of(l->p->parts, rows, columns, at);
}

/* ------------------------------------------------------------- a basis that is computed anew */

/* S = S C, AS = AS C, MS = MS C, of the first `rows` columns. */
static spmv_status turn(const struct lobpcg *l, int rows, struct small c)
{
    spmv_status st = SPMV_OK;
    const struct eigen_block blocks[] = {l->s, l->as, l->ms};
    for (int b = 0; b < (l->p->has_mass ? 3 : 2); b++)
        TRY(block_combine(&l->v, part(l, blocks[b], 0, rows), c.at, part(l, blocks[b], 0, c.columns)));
done:
    return st;
}

/* The coefficients (l->y) of Ritz vectors in the first columns of S, which are nearly orthonormal, by one pass.
 * *nearly: false if they are not. */
static spmv_status find_ritz(struct lobpcg *l, int columns, bool *nearly)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const struct eigen_block s = part(l, l->s, 0, columns), as = part(l, l->as, 0, columns),
                             ms = part(l, l->ms, 0, columns);
    const struct small gram = square_of(l, l->gram, columns, columns), a = square_of(l, l->own, columns, columns);
    const struct small turned = square_of(l, l->turned, columns, columns), h = square_of(l, l->whole, columns, columns);
    const struct small ritz = square_of(l, l->own, columns, columns), y = square_of(l, l->y, columns, columns);
    struct small z = square_of(l, l->c, columns, columns);
    double least = 0;
    int rank = 0;
    if (p->has_mass)
        TRY(eigen_multiply(p, &p->mass, s, ms));
    TRY(eigen_multiply(p, &p->a, s, as));
    TRY(block_gram(&l->v, s, p->has_mass ? ms : s, &as, gram.at, a.at));
    small_make_hermitian(gram);
    TRY(small_orthonormalise(p->ctx, gram, 0.5, &z, &rank, &least));
    *nearly = rank == columns;
    if (!*nearly)
        goto done;
    small_multiply(a, false, z, 0, turned);
    small_multiply(z, true, turned, 0, h);
    small_make_hermitian(h);
    TRY(small_eigen(p->ctx, h, l->theta, 0, ritz));
    small_multiply(z, false, ritz, 0, y);
done:
    return st;
}

/* The same of any columns, which become orthonormal. */
static spmv_status find_ritz_of_any(struct lobpcg *l, int columns)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const struct eigen_block s = part(l, l->s, 0, columns), as = part(l, l->as, 0, columns);
    const struct small h = square_of(l, l->whole, columns, columns);
    TRY(eigen_orthonormalise(p, &l->v, s, part(l, l->ms, 0, columns)));
    TRY(eigen_multiply(p, &p->a, s, as));
    TRY(block_gram(&l->v, s, as, NULL, h.at, NULL));
    small_make_hermitian(h);
    TRY(small_eigen(p->ctx, h, l->theta, 0, square_of(l, l->y, columns, columns)));
done:
    return st;
}

/* The first `columns` of S: orthonormal, multiplied by A, and rotated to Ritz vectors. starts: they are not orthonormal. */
static spmv_status refresh(struct lobpcg *l, int columns, bool starts)
{
    spmv_status st = SPMV_OK;
    bool nearly = false;
    if (!starts)
        TRY(find_ritz(l, columns, &nearly));
    if (!nearly)
        TRY(find_ritz_of_any(l, columns));
    TRY(turn(l, columns, square_of(l, l->y, columns, columns)));
    small_clear(square_of(l, l->h, columns, columns));
    for (int j = 0; j < columns; j++)
        small_at(square_of(l, l->h, columns, columns), j, j)[0] = l->theta[j];
    l->of_p = columns - l->m;
    l->of_w = 0;
    l->loss = 0;
    l->fresh = true;
done:
    return st;
}

static spmv_status start(struct lobpcg *l)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const struct eigen_block x = part(l, l->s, 0, l->m), w = part(l, l->s, l->m, l->m);
    const int given = p->options.starts < l->m ? p->options.starts : l->m;
    TRY(block_random(&l->v, x, 1));
    if (given > 0)
        TRY(block_copy(&l->v, (struct eigen_block){(void *)p->options.start, p->options.starts, given},
                       part(l, x, 0, given)));
    if (given == 0 && p->precond != NULL && !precond_is_identity(p->precond)) {
        const struct block_residuals r = {.a = x};
        for (int j = 0; j < l->m; j++)
            l->sizes[j] = 1;
        TRY(eigen_precondition(p, &l->v, &l->t, &r, l->sizes, w));
        TRY(block_copy(&l->v, w, x));
    }
    TRY(refresh(l, l->m, true));
done:
    return st;
}

/* ------------------------------------------------------------- residuals */

static double tolerance(const struct lobpcg *l, double value)
{
    return eigen_tolerance(l->p, value) / l->strict;
}

/* The norms of all residuals; *worst: the largest of those wanted, over its tolerance. */
static spmv_status measure(struct lobpcg *l, double *worst)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const struct block_residuals r = {.a = part(l, l->as, 0, l->m),
                                      .b = part(l, p->has_mass ? l->ms : l->s, 0, l->m),
                                      .values = l->theta,
                                      .weight = p->weight};
    TRY(block_squares(&l->v, &r, l->squares));
    *worst = 0;
    for (int j = 0; j < l->m; j++) {
        l->squares[j] = sqrt(l->squares[j]);
        if (!isfinite(l->squares[j]))
            return context_fail(p->ctx, SPMV_ERROR_NOT_FINITE, "%s: a residual is not finite", p->call);
        if (j < p->pairs) {
            p->values[j] = l->theta[j];
            p->residuals[j] = l->squares[j];
            *worst = fmax(*worst, l->squares[j] / tolerance(l, l->theta[j]));
        }
    }
    if (l->m > p->pairs) {
        p->next = l->theta[p->pairs];
        p->next_residual = l->squares[p->pairs];
    }
done:
    return st;
}

/* The number of columns that get a direction, at least count. Each number takes plans of its own, for all levels of
 * multigrid, which on a GPU take longer than some more columns: there it is that of all columns, or of about a half, a
 * quarter and so on. */
static int width_for(const struct lobpcg *l, int count)
{
    int width = (int)min_i64(l->m, ceil_divide(count, WIDTHS) * WIDTHS);
    if (!context_on_device(l->p->ctx))
        return width;
    width = l->m;
    for (int half; (half = (int)ceil_divide(width / 2, WIDTHS) * WIDTHS) < width && count <= half;)
        width = half;
    return width;
}

/* Columns that get a direction: those that have not converged, and others. */
static void choose_active(struct lobpcg *l)
{
    int count = 0;
    for (int j = 0; j < l->m; j++)
        count += l->squares[j] > tolerance(l, l->theta[j]);
    const int wanted = width_for(l, count);
    l->of_w = 0;
    for (int more = wanted - count, j = l->m - 1; j >= 0; j--) {
        const bool open = l->squares[j] > tolerance(l, l->theta[j]);
        if (open || more > 0)
            l->active[l->of_w++] = j;
        more -= !open;
    }
    for (int j = 0; j < l->of_w / 2; j++) { /* ascending */
        const int other = l->active[l->of_w - 1 - j];
        l->active[l->of_w - 1 - j] = l->active[j];
        l->active[j] = other;
    }
}

static spmv_status make_directions(struct lobpcg *l)
{
    struct eigen_problem *const p = l->p;
    const struct block_residuals r = {.a = part(l, l->as, 0, l->m),
                                      .b = part(l, p->has_mass ? l->ms : l->s, 0, l->m),
                                      .values = l->theta,
                                      .which = l->active,
                                      .count = l->of_w};
    for (int c = 0; c < l->of_w; c++)
        l->sizes[c] = precond_power_of_two(l->squares[l->active[c]]);
    return eigen_precondition(p, &l->v, &l->t, &r, l->sizes, part(l, l->s, l->m + l->of_p, l->of_w));
}

/* ------------------------------------------------------------- the projected problem */

/* The coefficients that make W orthonormal and orthogonal to (X, P): (W d - (X, P) B) Z, with B and d W'MW d in to_m (B
 * already multiplied by d). *rank: columns of Z. *quality: 1 where W is orthonormal; its reciprocal multiplies roundoff. */
static spmv_status orthogonal_coefficients(struct lobpcg *l, int *rank, double *quality)
{
    spmv_status st = SPMV_OK;
    const int q = l->m + l->of_p, w = l->of_w;
    const struct small b = square_of(l, l->to_m, q, w), c = small_part(square_of(l, l->to_m, q + w, w), q, 0, w, w);
    const struct small own = square_of(l, l->own, w, w);
    struct small z = square_of(l, l->z, w, w);
    double least = 0;
    *quality = 1;
    for (int j = 0; j < w; j++) {
        const double square = small_at(c, j, j)[0];
        l->numbers[j] = square > 0 && isfinite(square) ? 1 / sqrt(square) : 0;
        if (square < 0)
            return context_fail(l->p->ctx, SPMV_ERROR_NOT_POSITIVE,
                                "%s: the mass matrix is not positive definite: x'M x = %.3g for a vector x", l->p->call,
                                square);
    }
    small_scale_columns(square_of(l, l->to_m, q + w, w), l->numbers);
    small_scale_rows(c, l->numbers);
    small_copy(c, own);
    small_multiply(b, true, b, -1, own);
    small_make_hermitian(own);
    for (int j = 0; j < w; j++)
        *quality = fmin(*quality, fmax(0, small_at(own, j, j)[0]));
    TRY(small_orthonormalise(l->p->ctx, own, 64 * l->p->unit, &z, rank, &least));
    *quality *= *rank < w ? 0 : least;
done:
    return st;
}

/* to (rows of S, `columns`) = the coefficients in S of (X, P) top + W^ bottom, W^ as above. */
static void unfold(const struct lobpcg *l, struct small top, struct small bottom, struct small to)
{
    const int q = l->m + l->of_p, w = l->of_w;
    const struct small of_w = small_part(to, q, 0, w, to.columns), of_q = small_part(to, 0, 0, q, to.columns);
    const struct small z = small_of(l->p->parts, w, bottom.rows, l->z);
    small_multiply(z, false, bottom, 0, of_w);
    small_copy(top, of_q);
    small_multiply(square_of(l, l->to_m, q, w), false, of_w, -1, of_q);
    small_scale_rows(of_w, l->numbers);
}

/* W = W^, by a pass. */
static spmv_status straighten(struct lobpcg *l, int rank)
{
    const int q = l->m + l->of_p, s = q + l->of_w;
    const struct small to = square_of(l, l->whole, s, rank), top = square_of(l, l->c, q, rank),
                       one = square_of(l, l->gram, rank, rank);
    small_clear(top);
    small_clear(one);
    for (int j = 0; j < rank; j++)
        small_at(one, j, j)[0] = 1;
    unfold(l, top, one, to);
    const spmv_status st = block_combine(&l->v, part(l, l->s, 0, s), to.at, part(l, l->s, q, rank));
    l->of_w = rank;
    return st;
}

/* Products of W and the passes over S until coefficients are found that lose few digits. */
static spmv_status project(struct lobpcg *l, int *rank)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const double enough = 100 * sqrt(p->unit);
    for (int round = 0;; round++) {
        const int q = l->m + l->of_p;
        const struct eigen_block w = part(l, l->s, q, l->of_w), aw = part(l, l->as, q, l->of_w),
                                 mw = part(l, l->ms, q, l->of_w);
        double quality = 0;
        if (p->has_mass)
            TRY(eigen_multiply(p, &p->mass, w, mw));
        TRY(eigen_multiply(p, &p->a, w, aw));
        TRY(block_gram(&l->v, part(l, l->s, 0, q + l->of_w), p->has_mass ? mw : w, &aw, l->to_m, l->to_a));
        TRY(orthogonal_coefficients(l, rank, &quality));
        if (*rank == 0 || quality >= enough || round == ROUNDS) {
            l->loss = l->loss * (1 + 1 / sqrt(fmax(quality, p->unit))) + 8 * p->unit / fmax(quality, p->unit);
            break;
        }
        TRY(straighten(l, *rank));
    }
done:
    return st;
}

/* The projected matrix of (X, P, W^), of q + rank rows. */
static void assemble(const struct lobpcg *l, int rank, struct small h)
{
    const int q = l->m + l->of_p, w = l->of_w;
    const struct small old = square_of(l, l->h, q, q), b = square_of(l, l->to_m, q, w);
    const struct small f = square_of(l, l->to_a, q, w), k = small_part(square_of(l, l->to_a, q + w, w), q, 0, w, w);
    const struct small z = small_of(l->p->parts, w, rank, l->z), g = square_of(l, l->gram, q, w);
    const struct small top = small_part(h, 0, q, q, rank), turned = square_of(l, l->turned, w, rank);
    small_scale_columns(square_of(l, l->to_a, q + w, w), l->numbers);
    small_scale_rows(k, l->numbers);
    small_copy(f, g); /* g = f - old b */
    small_multiply(old, false, b, -1, g);
    small_multiply(b, true, g, -1, k);
    small_multiply(f, true, b, -1, k);
    small_clear(h);
    small_copy(old, small_part(h, 0, 0, q, q));
    small_multiply(g, false, z, 0, top);
    small_multiply(k, false, z, 0, turned);
    small_multiply(z, true, turned, 0, small_part(h, q, q, rank, rank));
    for (int i = 0; i < rank; i++) /* the adjoint of top */
        for (int j = 0; j < q; j++) {
            const double *const from = small_at(top, j, i);
            double *const to = small_at(h, q + i, j);
            to[0] = from[0];
            if (l->p->parts == 2)
                to[1] = -from[1];
        }
    small_make_hermitian(h);
}

/* C_p in the basis (X, P, W^): the parts of the active columns of y outside of X, orthonormal and orthogonal to y. */
static spmv_status choose_p(struct lobpcg *l, struct small y, struct small *c)
{
    spmv_status st = SPMV_OK;
    const int parts = l->p->parts, rows = y.rows;
    int rank = l->of_w < rows - l->m ? l->of_w : rows - l->m;
    struct small now = square_of(l, l->c, rows, rank);
    small_clear(now);
    for (int j = 0; j < rank; j++)
        small_copy(small_part(y, l->m, l->active[j], rows - l->m, 1), small_part(now, l->m, j, rows - l->m, 1));
    for (int round = 0; round < 2 && rank > 0; round++) {
        const struct small both = square_of(l, l->turned, l->m, rank), gram = square_of(l, l->gram, rank, rank);
        struct small z = square_of(l, l->own, rank, rank);
        double least = 0;
        small_multiply(y, true, now, 0, both);
        small_multiply(y, false, both, -1, now);
        small_multiply(now, true, now, 0, gram);
        small_make_hermitian(gram);
        TRY(small_orthonormalise(l->p->ctx, gram, 1e-12, &z, &rank, &least));
        const struct small next = small_of(parts, rows, rank, l->turned);
        small_multiply(now, false, z, 0, next);
        now = square_of(l, l->c, rows, rank);
        small_copy(next, now);
    }
    *c = now;
done:
    return st;
}

/* X = S C_x, P = S C_p. */
static spmv_status step(struct lobpcg *l)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    int rank = 0;
    TRY(project(l, &rank));
    const int q = l->m + l->of_p, rows = q + rank, s = q + l->of_w;
    const struct small h = square_of(l, l->whole, rows, rows), y = square_of(l, l->y, rows, l->m);
    struct small c;
    assemble(l, rank, h);
    double *const kept = l->turned; /* of h, which small_eigen overwrites */
    memcpy(kept, h.at, (size_t)rows * (size_t)rows * (size_t)p->parts * sizeof *kept);
    TRY(small_eigen(p->ctx, h, l->theta, 0, y));
    memcpy(h.at, kept, (size_t)rows * (size_t)rows * (size_t)p->parts * sizeof *kept);
    TRY(choose_p(l, y, &c));
    const int columns = l->m + c.columns;
    /* the projected matrix of the next X and P */
    const struct small next = square_of(l, l->h, columns, columns), hc = square_of(l, l->turned, rows, c.columns);
    small_clear(next);
    for (int j = 0; j < l->m; j++)
        small_at(next, j, j)[0] = l->theta[j];
    small_multiply(h, false, c, 0, hc);
    small_multiply(c, true, hc, 0, small_part(next, l->m, l->m, c.columns, c.columns));
    small_make_hermitian(next);
    const struct small both = square_of(l, l->gram, rows, columns), to = square_of(l, l->whole, s, columns);
    small_copy(y, small_part(both, 0, 0, rows, l->m));
    small_copy(c, small_part(both, 0, l->m, rows, c.columns));
    unfold(l, small_part(both, 0, 0, q, columns), small_part(both, q, 0, rank, columns), to);
    TRY(turn(l, s, to));
    l->of_p = c.columns;
    l->of_w = 0;
    l->fresh = false;
done:
    return st;
}

/* ------------------------------------------------------------- the run */

/* Whether the pairs have converged with products and norms computed anew. */
static spmv_status verify(struct lobpcg *l, bool *converged)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    double worst = 0, over = 0;
    if (!l->fresh)
        TRY(refresh(l, l->m + l->of_p, false));
    TRY(measure(l, &worst));
    *converged = worst <= 1;
    if (!*converged || !p->has_mass)
        goto done;
    TRY(eigen_true_residuals(p, &l->v, part(l, l->as, 0, p->pairs), part(l, l->ms, 0, p->pairs)));
    for (int j = 0; j < p->pairs; j++)
        over = fmax(over, p->residuals[j] / eigen_tolerance(p, p->values[j]));
    *converged = over <= 1;
    if (!*converged)
        l->strict *= 2 * over;
done:
    return st;
}

static spmv_status iterate(struct lobpcg *l)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    double best = INFINITY;
    int64_t since = 0, refused = 0;
    for (p->iterations = 0;; p->iterations++) {
        double worst = 0;
        bool converged = false;
        TRY(measure(l, &worst));
        st = eigen_report(p, p->iterations);
        if (st == SPMV_CANCELLED) {
            p->status = st;
            snprintf(p->why_stop, sizeof p->why_stop, "cancelled after %lld iterations", (long long)p->iterations);
            return SPMV_OK;
        }
        TRY(st);
        if (worst <= 1) {
            TRY(verify(l, &converged));
            if (converged) {
                snprintf(p->why_stop, sizeof p->why_stop, "all residuals are within their tolerances");
                return st;
            }
            refused++;
            TRY(measure(l, &worst));
        }
        if (p->may_hand_over && p->iterations == INDEFINITE && l->theta[0] < -1e-3 * p->a.norm) {
            p->hands_over = true;
            return st;
        }
        if (worst < 0.9 * best) {
            best = worst;
            since = 0;
        } else if (++since == LOOKS || refused > 20) {
            p->status = SPMV_ERROR_STAGNATION;
            snprintf(p->why_stop, sizeof p->why_stop,
                     "residuals have not fallen in %d iterations; the largest is %.3g times its tolerance", LOOKS,
                     worst);
            return st;
        }
        if (p->iterations == p->options.max_iterations) {
            p->status = SPMV_ERROR_ITERATIONS;
            snprintf(p->why_stop, sizeof p->why_stop,
                     "the limit of %lld iterations; the largest residual is %.3g times its tolerance",
                     (long long)p->iterations, worst);
            return st;
        }
        if (l->loss > 0.1 * sqrt(p->unit))
            TRY(refresh(l, l->m + l->of_p, false));
        choose_active(l);
        if (l->of_w == 0) { /* only after a refusal */
            l->of_w = 1;
            l->active[0] = 0;
        }
        TRY(make_directions(l));
        TRY(step(l));
    }
done:
    return st;
}

static spmv_status open(struct lobpcg *l)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const int m = p->block, most = 3 * m;
    const int64_t bytes = p->n * most * (int64_t)spmv_type_size(p->type),
                  small_bytes = (int64_t)most * most * p->parts * 8;
    double **const matrices[] = {&l->h, &l->to_m, &l->to_a, &l->z,   &l->whole,
                                 &l->y, &l->c,    &l->gram, &l->own, &l->turned};
    l->m = m;
    l->strict = p->has_mass ? 2 : 1;
    TRY(eigen_vectors_open(p->ctx, p->type, p->n, most, 8 * (int64_t)m * m, &l->v));
    l->s = l->as = l->ms = (struct eigen_block){NULL, most, most};
    TRY(context_alloc(p->ctx, bytes, &l->s.at));
    TRY(context_alloc(p->ctx, bytes, &l->as.at));
    if (p->has_mass)
        TRY(context_alloc(p->ctx, bytes, &l->ms.at));
    TRY(host_alloc(p->ctx, (int64_t)most * (int64_t)sizeof *l->active, "columns", (void **)&l->active));
    TRY(host_alloc(p->ctx, 4 * (int64_t)most * 8, "numbers of columns", (void **)&l->theta));
    l->squares = l->theta + most;
    l->sizes = l->squares + most;
    l->numbers = l->sizes + most;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        TRY(host_alloc(p->ctx, small_bytes, "a projected matrix", (void **)matrices[i]));
done:
    return st;
}

static spmv_status run(struct eigen_problem *p)
{
    spmv_status st = SPMV_OK;
    struct lobpcg l = {.p = p};
    TRY(open(&l));
    TRY(start(&l));
    TRY(iterate(&l));
    if (!p->hands_over)
        TRY(block_copy(&l.v, part(&l, l.s, 0, p->pairs), p->vectors));
done:
    eigen_preconditioning_close(p, &l.t);
    eigen_vectors_close(&l.v);
    context_free_all(p->ctx, l.s.at, l.as.at, l.ms.at);
    host_free_all(l.active, l.theta, l.h, l.to_m, l.to_a, l.z, l.whole, l.y, l.c, l.gram, l.own, l.turned);
    return st;
}

const struct eigen_solver eigen_lobpcg = {"lobpcg", run};
