/* Block Lanczos with thick restarts, for eigenvalues at the ends of the spectrum of an operator O that is self-adjoint in the
 * inner product of M:
 *
 *     O = A;   M^-1 A with a mass matrix;   (A - shift M)^-1 M for those near a shift;   A'A or A A' for singular values
 *
 * A step multiplies the last block by O and makes the result orthogonal to all vectors before, twice; the coefficients are
 * the projected matrix T. When the basis is full, T is diagonalised, the best Ritz vectors and the next block stay: so
 * O V = V T + next R E' holds again. The norm of R times the last rows of an eigenvector of T is the residual of its pair.
 *
 * A block of w vectors finds w copies of a value, and rounding adds others late. So when all pairs have converged, w random
 * vectors join the next block, and the iteration goes on for half as many steps as before, at least two cycles: a copy that was missed has the
 * largest Ritz value of what is left, which shows long before it has converged. If the values change, that is repeated.
 *
 * Near a shift, one more product by O ends the run: it turns an error e of a vector into a residual of |lambda - shift|^2 e.
 *
 * Source: K. Wu, H. Simon, "Thick-restart Lanczos method for large symmetric eigenvalue problems", SIAM J. Matrix Anal. Appl.
 * 22, 2000; blocks: Y. Zhou, Y. Saad, "Block Krylov-Schur method for large symmetric eigenvalue problems", Numer. Algorithms
 * 47, 2008; the last step: T. Ericsson, A. Ruhe, Math. Comp. 35, 1980.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "solvers/eigen/eigen_internal.h"

/* WIDTH: the least vectors of a block, which otherwise has as many as pairs are wanted, up to MOST_WIDTH, so that it finds
 * that many copies of a value; it is doubled once. BLOCKS: of a cycle. SEARCHES: for values that were missed. */
enum { WIDTH = 4, MOST_WIDTH = 32, BLOCKS = 6, SEARCHES = 4, STALLED = 40, CYCLES = 2 };

struct lanczos {
    struct eigen_problem *p;
    struct eigen_vectors v;
    int width, most;             /* of a block; columns of the basis, without the next block */
    int kept, columns;           /* columns of V; the block at `columns` is next */
    struct eigen_block basis;    /* most + 2 width columns */
    struct eigen_block one, two; /* contiguous, of up to 2 width vectors; one: of the rows of A for singular values */
    double *t, *r, *gram, *more, *z, *y, *work; /* small matrices; t has `room` columns a row */
    int room;
    double *values, *residuals;
    double size; /* the largest modulus in T so far */
    int *order;
    int64_t steps;
};

static struct eigen_block part(const struct lanczos *l, int first, int columns)
{
    return block_part(l->basis, l->p->type, first, columns);
}

static struct small matrix(const struct lanczos *l, double *at, int rows, int columns)
{
    return small_of(l->p->parts, rows, columns, at);
}

/* ------------------------------------------------------------- the operator */

static spmv_status solve(struct lanczos *l, struct eigen_block b, struct eigen_block x)
{
    struct eigen_problem *const p = l->p;
    spmv_status st = SPMV_OK;
    for (int c = 0; c < b.columns && st == SPMV_OK; c++) {
        const struct eigen_block from = block_part(b, p->type, c, 1), to = block_part(x, p->type, c, 1);
        struct eigen_block f = l->two, t = l->two;
        f.stride = t.stride = f.columns = t.columns = 1;
        t.at = (char *)l->two.at + (size_t)p->n * spmv_type_size(p->type);
        st = block_copy(&l->v, from, f);
        if (st == SPMV_OK)
            st = spmv_solver_solve(p->inverse, f.at, t.at, NULL, 0);
        if (st == SPMV_OK)
            st = block_copy(&l->v, t, to);
    }
    if (st != SPMV_OK && st != SPMV_CANCELLED && p->options.which == SPMV_EIGEN_NEAR) {
        char why[512];
        snprintf(why, sizeof why, "%s", spmv_last_error(p->ctx));
        const bool singular = st == SPMV_ERROR_SINGULAR || st == SPMV_ERROR_INCONSISTENT;
        p->shift_failed = singular || spmv_status_class(st) == 7;
        st = context_fail(p->ctx, singular ? SPMV_ERROR_SINGULAR : st,
                          "%s: a solve with A - %.17g %s has failed%s (%.300s)", p->call, p->shift,
                          p->has_mass ? "M" : "I",
                          singular ? ": the shift is an eigenvalue to rounding: move it a little"
                                   : ": a shift between other eigenvalues, or a larger tolerance, may be easier",
                          why);
    } else if (st == SPMV_ERROR_NOT_POSITIVE) {
        st = context_fail(p->ctx, st, "%s: the mass matrix is not positive definite", p->call);
    }
    return st;
}

/* to = O from. */
static spmv_status operate(struct lanczos *l, struct eigen_block from, struct eigen_block to)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    struct eigen_block one = l->one;
    one.columns = one.stride = from.columns;
    if (p->singular_values) {
        TRY(eigen_multiply(p, p->wide ? &p->adjoint : &p->a, from, one));
        return eigen_multiply(p, p->wide ? &p->a : &p->adjoint, one, to);
    }
    if (p->inverse == NULL)
        return eigen_multiply(p, &p->a, from, to);
    if (p->options.which != SPMV_EIGEN_NEAR) {
        TRY(eigen_multiply(p, &p->a, from, one));
        return solve(l, one, to);
    }
    if (!p->has_mass)
        return solve(l, from, to);
    TRY(eigen_multiply(p, &p->mass, from, one));
    return solve(l, one, to);
done:
    return st;
}

/* ------------------------------------------------------------- orthogonality */

/* w -= V (V'M w) over the first `columns` of the basis, where w are the columns from there on; coefficients are added to g
 * (columns x w), NULL: dropped. */
static spmv_status project_out(struct lanczos *l, int columns, int at, int width, double *g)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const struct eigen_block w = part(l, at, width);
    struct eigen_block mw = w;
    const int all = at + width;
    if (columns == 0)
        return st;
    if (p->has_mass) {
        mw = l->one;
        mw.columns = mw.stride = width;
        TRY(eigen_multiply(p, &p->mass, w, mw));
    }
    TRY(block_gram(&l->v, part(l, 0, columns), mw, NULL, l->gram, NULL));
    const int64_t count = (int64_t)columns * width * p->parts;
    for (int64_t i = 0; i < count && g != NULL; i++)
        g[i] += l->gram[i];
    /* (V, others, w) times (-g; 0; I) */
    const struct small c = matrix(l, l->work, all, width);
    small_clear(c);
    for (int64_t i = 0; i < count; i++)
        c.at[i] = -l->gram[i];
    for (int j = 0; j < width; j++)
        small_at(c, at + j, j)[0] = 1;
    TRY(block_combine(&l->v, part(l, 0, all), c.at, w));
done:
    return st;
}

/* The columns from `at` on become orthonormal, also to those before; r (width x width): what they were in the new ones.
 * Dependent ones, and those of at most this norm, become random, with rows of 0 in r. */
static spmv_status normalise(struct lanczos *l, int at, int width, double floor, double *r)
{
    enum { TRIES = 8 };
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const struct eigen_block w = part(l, at, width);
    struct eigen_block mw = w;
    const struct small gram = matrix(l, l->gram, width, width), whole = matrix(l, r, width, width),
                       now = matrix(l, l->more, width, width);
    int good = width; /* columns that are not random */
    small_clear(whole);
    for (int j = 0; j < width; j++)
        small_at(whole, j, j)[0] = 1;
    for (int round = 0;; round++) {
        int rank = 0;
        double least = 0;
        struct small z = matrix(l, l->z, width, width);
        if (p->has_mass) {
            mw = l->one;
            mw.columns = mw.stride = width;
            TRY(eigen_multiply(p, &p->mass, w, mw));
        }
        TRY(block_gram(&l->v, w, mw, NULL, gram.at, NULL));
        small_copy(gram, now);
        for (int j = 0; j < width && round == 0; j++)
            if (small_at(now, j, j)[0] <= floor * floor)
                small_at(now, j, j)[0] = 0;
        TRY(small_orthonormalise(p->ctx, now, 16 * width * p->unit, &z, &rank, &least));
        /* w = w_new (z' gram) */
        if (good == width) {
            struct small step = matrix(l, l->more, rank, width), before = matrix(l, l->work, width, width);
            small_multiply(z, true, gram, 0, step);
            small_copy(whole, before);
            small_clear(whole);
            small_multiply(step, false, before, 0, small_part(whole, 0, 0, rank, width));
        }
        if (rank > 0)
            TRY(block_combine(&l->v, w, z.at, part(l, at, rank)));
        if (rank < width) {
            good = rank < good ? rank : good;
            TRY(block_random(&l->v, part(l, at + rank, width - rank), 1000 + (uint64_t)(l->steps * 16 + round)));
            for (int twice = 0; twice < 2; twice++)
                TRY(project_out(l, at + rank, at + rank, width - rank, NULL));
        } else if (least > 0.25) {
            break;
        } else {
            TRY(project_out(l, at, at, width, NULL));
        }
        if (round == TRIES)
            return context_fail(p->ctx, SPMV_ERROR_STAGNATION, "%s: vectors stay dependent", p->call);
    }
done:
    return st;
}

/* ------------------------------------------------------------- steps and restarts */

static double *t_at(const struct lanczos *l, int row, int column)
{
    return l->t + ((int64_t)row * l->room + column) * l->p->parts;
}

/* Multiplies the next block by O: it joins V, and the result is next. */
static spmv_status step(struct lanczos *l)
{
    spmv_status st = SPMV_OK;
    const int w = l->width, c = l->columns, parts = l->p->parts, after = c + w;
    TRY(operate(l, part(l, c, w), part(l, after, w)));
    const int64_t count = (int64_t)after * w * parts;
    memset(l->y, 0, (size_t)count * sizeof *l->y);
    for (int twice = 0; twice < 2; twice++)
        TRY(project_out(l, after, after, w, l->y));
    for (int i = 0; i < after; i++)
        for (int j = 0; j < w; j++)
            for (int k = 0; k < parts; k++) {
                const double value = l->y[((int64_t)i * w + j) * parts + k];
                t_at(l, i, c + j)[k] = value;
                l->size = fmax(l->size, fabs(value));
                if (i < c)
                    t_at(l, c + j, i)[k] = k == 0 ? value : -value;
            }
    l->columns = after;
    /* what is left of an exhausted space is rounding */
    TRY(normalise(l, after, w, 16 * sqrt((double)l->p->n) * l->p->unit * l->size, l->r));
    l->steps++;
done:
    return st;
}

/* Ritz values and vectors (l->y, columns x columns, in l->order), and norms of residuals of O. */
static spmv_status look(struct lanczos *l)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const int n = l->columns, w = l->width;
    const struct small t = matrix(l, l->work, n, n), y = matrix(l, l->y, n, n);
    const struct small last = small_part(y, n - w, 0, w, n), left = matrix(l, l->more, w, n);
    struct eigen_ranked *ranked = NULL;
    for (int i = 0; i < n; i++)
        memcpy(small_at(t, i, 0), t_at(l, i, 0), (size_t)(n * p->parts) * sizeof(double));
    small_make_hermitian(t);
    TRY(small_eigen(p->ctx, t, l->values, 0, y));
    small_multiply(matrix(l, l->r, w, w), false, last, 0, left);
    TRY(host_alloc(p->ctx, n * (int64_t)sizeof *ranked, "eigenvalues", (void **)&ranked));
    for (int j = 0; j < n; j++) {
        double square = 0;
        for (int i = 0; i < w; i++)
            for (int k = 0; k < p->parts; k++)
                square += small_at(left, i, j)[k] * small_at(left, i, j)[k];
        l->residuals[j] = sqrt(square);
        /* near a shift, O has the values 1 / (value - p->shift) */
        const double moved = p->shift - p->options.shift, theta = l->values[j];
        const double distance = theta != 0 ? fabs(moved + 1 / theta) : INFINITY;
        ranked[j] = (struct eigen_ranked){p->options.which == SPMV_EIGEN_NEAR ? distance : eigen_rank(p, theta), j};
    }
    qsort(ranked, (size_t)n, sizeof *ranked, eigen_by_rank);
    for (int j = 0; j < n; j++)
        l->order[j] = ranked[j].at;
done:
    host_free(ranked);
    return st;
}

/* A value of the problem, and the norm of its residual, of Ritz pair j of O. */
static void translate(const struct lanczos *l, int j, double *value, double *residual)
{
    const struct eigen_problem *const p = l->p;
    const double theta = l->values[j], norm = l->residuals[j];
    *value = theta;
    *residual = norm;
    if (p->singular_values) {
        *value = sqrt(fmax(0, theta));
        *residual = *value > 0 ? norm / *value : norm;
    } else if (p->options.which == SPMV_EIGEN_NEAR) {
        *value = theta != 0 ? p->shift + 1 / theta : INFINITY;
        *residual = theta != 0 ? norm / (theta * theta) : INFINITY;
    }
}

/* Sets p->values and p->residuals; *worst: the largest residual over its tolerance. */
static void judge(struct lanczos *l, double *worst)
{
    struct eigen_problem *const p = l->p;
    *worst = 0;
    for (int j = 0; j < p->pairs; j++) {
        translate(l, l->order[j], &p->values[j], &p->residuals[j]);
        if (p->singular_values && j == 0)
            p->a.norm = p->values[0];
        *worst = fmax(*worst, p->residuals[j] / eigen_tolerance(p, p->values[j]));
    }
    if (l->columns > p->pairs)
        translate(l, l->order[p->pairs], &p->next, &p->next_residual);
}

/* V = the best Ritz vectors; the next block follows them. */
static spmv_status restart(struct lanczos *l, int kept)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const int n = l->columns, w = l->width, parts = p->parts, all = n + w, stay = kept + w;
    /* (V, next) times (Y 0; 0 I) */
    const struct small c = matrix(l, l->work, all, stay), y = matrix(l, l->y, n, n);
    small_clear(c);
    for (int j = 0; j < kept; j++)
        for (int i = 0; i < n; i++)
            memcpy(small_at(c, i, j), small_at(y, i, l->order[j]), (size_t)parts * sizeof(double));
    for (int j = 0; j < w; j++)
        small_at(c, n + j, kept + j)[0] = 1;
    TRY(block_combine(&l->v, part(l, 0, all), c.at, part(l, 0, stay)));
    memset(l->t, 0, (size_t)l->room * (size_t)l->room * (size_t)parts * sizeof *l->t);
    for (int j = 0; j < kept; j++)
        t_at(l, j, j)[0] = l->values[l->order[j]];
    l->columns = kept;
done:
    return st;
}

/* As many random vectors as the block has join it. */
static spmv_status widen(struct lanczos *l)
{
    spmv_status st = SPMV_OK;
    const int at = l->columns + l->width;
    TRY(block_random(&l->v, part(l, at, l->width), 5000 + (uint64_t)l->steps));
    for (int twice = 0; twice < 2; twice++)
        TRY(project_out(l, at, at, l->width, NULL));
    TRY(normalise(l, at, l->width, 0, l->r));
    TRY(project_out(l, at, at, l->width, NULL));
    l->width *= 2;
done:
    return st;
}

/* ------------------------------------------------------------- the run */

static bool values_moved(const struct lanczos *l, const double *before)
{
    const struct eigen_problem *const p = l->p;
    for (int j = 0; j < p->pairs; j++)
        if (fabs(p->values[j] - before[j]) > p->residuals[j] + 2 * eigen_tolerance(p, before[j]))
            return true;
    return false;
}

static spmv_status iterate(struct lanczos *l)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    double best = INFINITY, *before = NULL;
    int64_t since = 0, until = 0;
    int searches = 0;
    bool searching = false;
    TRY(host_alloc(p->ctx, p->pairs * 8, "eigenvalues", (void **)&before));
    for (p->iterations = 0;; p->iterations++) {
        double worst = 0;
        while (l->columns + l->width <= l->most)
            TRY(step(l));
        TRY(look(l));
        judge(l, &worst);
        st = eigen_report(p, p->iterations);
        if (st == SPMV_CANCELLED) {
            st = SPMV_OK;
            p->status = SPMV_CANCELLED;
            snprintf(p->why_stop, sizeof p->why_stop, "cancelled after %lld restarts", (long long)p->iterations);
            break;
        }
        TRY(st);
        if (!isfinite(worst)) {
            st = context_fail(p->ctx, SPMV_ERROR_NOT_FINITE, "%s: a residual is not finite", p->call);
            goto done;
        }
        const bool converged = worst <= 1;
        if (converged && searching && l->steps >= until) {
            searching = false;
            if (!values_moved(l, before) || searches == SEARCHES) {
                snprintf(p->why_stop, sizeof p->why_stop,
                         "all residuals are within their tolerances; fresh vectors have shown no other value");
                break;
            }
        }
        if (worst < 0.9 * best) {
            best = worst;
            since = 0;
        } else if (!converged && ++since == STALLED) {
            p->status = SPMV_ERROR_STAGNATION;
            snprintf(p->why_stop, sizeof p->why_stop,
                     "residuals have not fallen in %d restarts; the largest is %.3g times its tolerance", STALLED,
                     worst);
            break;
        }
        if (p->iterations == p->options.max_iterations) {
            p->status = SPMV_ERROR_ITERATIONS;
            snprintf(p->why_stop, sizeof p->why_stop,
                     "the limit of %lld restarts; the largest residual is %.3g times its tolerance",
                     (long long)p->iterations, worst);
            break;
        }
        TRY(restart(l, l->kept));
        if (converged && !searching) {
            memcpy(before, p->values, (size_t)p->pairs * sizeof *before);
            searching = true;
            searches++;
            until = l->steps + max_i64(l->steps / 2 + 1, CYCLES * BLOCKS);
            best = INFINITY;
            since = 0;
            if (l->width == p->block)
                TRY(widen(l));
        }
    }
done:
    host_free(before);
    return st;
}

/* The best Ritz vectors to p->vectors; where solves make O inexact rotated to Ritz vectors of A, near a shift after one more
 * product by O. */
static spmv_status give_vectors(struct lanczos *l)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const int k = p->pairs, parts = p->parts;
    struct eigen_block ax = p->vectors;
    double *gram = NULL, *y = NULL;
    void *other = NULL;
    const int64_t bytes = p->n * k * (int64_t)spmv_type_size(p->type);
    TRY(restart(l, k));
    TRY(block_copy(&l->v, part(l, 0, k), p->vectors));
    if (p->inverse == NULL)
        return st;
    struct eigen_block mx = p->vectors;
    TRY(context_alloc(p->ctx, bytes, &ax.at));
    for (int first = 0; first < k && p->options.which == SPMV_EIGEN_NEAR; first += l->width) {
        const int count = (int)min_i64(l->width, k - first);
        TRY(operate(l, part(l, first, count), block_part(p->vectors, p->type, first, count)));
    }
    if (p->has_mass) {
        TRY(context_alloc(p->ctx, bytes, &other));
        mx.at = other;
    }
    TRY(eigen_orthonormalise(p, &l->v, p->vectors, mx));
    TRY(eigen_multiply(p, &p->a, p->vectors, ax));
    TRY(host_alloc(p->ctx, (int64_t)k * k * parts * 8, "a projected matrix", (void **)&gram));
    TRY(host_alloc(p->ctx, (int64_t)k * k * parts * 8, "a projected matrix", (void **)&y));
    TRY(block_gram(&l->v, p->vectors, ax, NULL, gram, NULL));
    small_make_hermitian(small_of(parts, k, k, gram));
    TRY(small_eigen(p->ctx, small_of(parts, k, k, gram), l->values, 0, small_of(parts, k, k, y)));
    struct eigen_ranked order[SPMV_EIGEN_MOST_PAIRS];
    for (int j = 0; j < k; j++)
        order[j] = (struct eigen_ranked){eigen_rank(p, l->values[j]), j};
    qsort(order, (size_t)k, sizeof *order, eigen_by_rank);
    for (int j = 0; j < k; j++)
        p->values[j] = l->values[order[j].at];
    for (int j = 0; j < k; j++)
        for (int i = 0; i < k; i++)
            memcpy(gram + ((int64_t)i * k + j) * parts, y + ((int64_t)i * k + order[j].at) * parts,
                   (size_t)parts * sizeof *gram);
    TRY(block_combine(&l->v, p->vectors, gram, p->vectors));
done:
    if (ax.at != p->vectors.at)
        context_free(p->ctx, ax.at);
    context_free(p->ctx, other);
    host_free_all(gram, y);
    return st;
}

int eigen_lanczos_columns(int pairs, int width)
{
    const int kept = pairs + (pairs / 4 > width ? pairs / 4 : width);
    return 2 * kept + BLOCKS * width;
}

int eigen_lanczos_width(const struct eigen_problem *p)
{
    return p->options.block > 0 ? (int)min_i64(p->options.block, 64)
                                : (int)max_i64(WIDTH, min_i64(p->pairs, MOST_WIDTH));
}

static spmv_status open(struct lanczos *l)
{
    spmv_status st = SPMV_OK;
    struct eigen_problem *const p = l->p;
    const int64_t size = (int64_t)spmv_type_size(p->type);
    const int given = (int)min_i64(p->options.starts, eigen_lanczos_width(p));
    double **const matrices[] = {&l->t, &l->gram, &l->more, &l->z, &l->y, &l->work};
    l->width = p->block = eigen_lanczos_width(p);
    l->most = eigen_lanczos_columns(p->pairs, l->width);
    l->kept = p->pairs + (p->pairs / 4 > l->width ? p->pairs / 4 : l->width);
    l->room = l->most + 4 * l->width;
    l->basis = (struct eigen_block){NULL, l->room, l->room};
    const int64_t rows = max_i64(p->n, max_i64(p->a.a.rows, p->a.a.cols)),
                  small_bytes = (int64_t)l->room * l->room * p->parts * 8;
    TRY(eigen_vectors_open(p->ctx, p->type, p->n, l->room, (int64_t)l->room * max_i64(2 * l->width, p->pairs), &l->v));
    TRY(context_alloc(p->ctx, p->n * l->room * size, &l->basis.at));
    TRY(context_alloc(p->ctx, rows * 2 * l->width * size, &l->one.at));
    TRY(context_alloc(p->ctx, p->n * 2 * size, &l->two.at));
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        TRY(host_alloc(p->ctx, small_bytes, "a projected matrix", (void **)matrices[i]));
    TRY(host_alloc(p->ctx, small_bytes, "a projected matrix", (void **)&l->r));
    TRY(host_alloc(p->ctx, 2 * (int64_t)l->room * 8, "Ritz values", (void **)&l->values));
    TRY(host_alloc(p->ctx, (int64_t)l->room * (int64_t)sizeof *l->order, "Ritz values", (void **)&l->order));
    l->residuals = l->values + l->room;
    memset(l->t, 0, (size_t)small_bytes);
    TRY(block_random(&l->v, part(l, 0, l->width), 1));
    if (given > 0)
        TRY(block_copy(&l->v, (struct eigen_block){(void *)p->options.start, p->options.starts, given},
                       part(l, 0, given)));
    TRY(normalise(l, 0, l->width, 0, l->r));
done:
    return st;
}

static spmv_status run_once(struct eigen_problem *p)
{
    spmv_status st = SPMV_OK;
    struct lanczos l = {.p = p};
    TRY(open(&l));
    TRY(iterate(&l));
    TRY(give_vectors(&l));
done:
    eigen_vectors_close(&l.v);
    context_free_all(p->ctx, l.basis.at, l.one.at, l.two.at);
    host_free_all(l.t, l.r, l.gram, l.more, l.z, l.y, l.work, l.values, l.order);
    return st;
}

/* A shift that is an eigenvalue, or so near that solves fail, is moved: by little at first, since what is nearest to the
 * shift of the caller should stay nearest. */
static spmv_status run(struct eigen_problem *p)
{
    static const double moves[] = {1e-5, 1e-3};
    spmv_status st = run_once(p);
    for (size_t i = 0; i < sizeof moves / sizeof *moves && st != SPMV_OK && p->shift_failed; i++) {
        const double given = p->options.shift;
        p->shift = given + moves[i] * (given != 0 ? fabs(given) : 0.1 * p->a.norm);
        p->shift_failed = false;
        p->ctx->error[0] = '\0';
        snprintf(p->why_solver, sizeof p->why_solver,
                 "the shift is nearly an eigenvalue, so solves are with one beside it, %.17g", p->shift);
        st = eigen_make_inverse(p);
        if (st == SPMV_OK)
            st = run_once(p);
    }
    return st;
}

const struct eigen_solver eigen_lanczos = {"lanczos", run};
