/* Systems for tests of solvers: the 5-point Laplacian on a square grid with an increased diagonal
 * and a right-hand side of both signs, a textbook CG in f64 for the number of iterations, and the
 * true residual in long double.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_SOLVE_H
#define SUPPORT_SOLVE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/peer.h"
#include "tests/support/support.h"

struct system_of {
    const char *name;
    int64_t side;    /* of the grid: side^2 rows */
    double diagonal; /* added to the diagonal; larger values need fewer iterations */
    int zero;        /* b = 0 */
};

static const struct system_of systems_to_solve[] = {
    {"1 x 1", 1, 0, 0},          {"4 rows", 2, 0, 0},     {"easy", 40, 3, 0},
    {"the Laplacian", 60, 0, 0}, {"b is zero", 10, 0, 1}, {"above a block's rows", 130, 0.01, 0},
};
enum { SYSTEMS_TO_SOLVE = sizeof systems_to_solve / sizeof systems_to_solve[0], EASY_SYSTEM = 2, LAPLACIAN_SYSTEM = 3 };

struct linear_system {
    spmv_type type;
    int64_t rows, nnz;
    int32_t *row_ptr, *col;
    void *val, *b, *x;
};

static inline double system_value(const struct linear_system *s, const void *values, int64_t i)
{
    return s->type == SPMV_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static inline void system_set(const struct linear_system *s, void *values, int64_t i, double value)
{
    if (s->type == SPMV_F32)
        ((float *)values)[i] = (float)value;
    else
        ((double *)values)[i] = value;
}

static inline struct linear_system make_system(const struct system_of *of, spmv_type type)
{
    struct linear_system s = {.type = type, .rows = of->side * of->side};
    const size_t rows = (size_t)s.rows, size = spmv_type_size(type);
    s.row_ptr = malloc((rows + 1) * sizeof *s.row_ptr);
    s.col = malloc(5 * rows * sizeof *s.col);
    s.val = malloc(5 * rows * size);
    s.b = malloc(rows * size);
    s.x = malloc(rows * size);
    for (int64_t i = 0; i < s.rows; i++) {
        const int64_t column = i % of->side, neighbours[] = {i - of->side, i - 1, i, i + 1, i + of->side};
        const int there[] = {i >= of->side, column > 0, 1, column < of->side - 1, i < s.rows - of->side};
        s.row_ptr[i] = (int32_t)s.nnz;
        for (int k = 0; k < 5; k++) {
            if (!there[k])
                continue;
            s.col[s.nnz] = (int32_t)neighbours[k];
            system_set(&s, s.val, s.nnz++, k == 2 ? 4 + of->diagonal : -1);
        }
        system_set(&s, s.b, i, of->zero ? 0 : (double)(i * 7919 % 2003 - 1001) / 769 + 1e-3);
    }
    s.row_ptr[s.rows] = (int32_t)s.nnz;
    return s;
}

static inline void free_system(struct linear_system *s)
{
    free(s->row_ptr);
    free(s->col);
    free(s->val);
    free(s->b);
    free(s->x);
}

static inline void system_times(const struct linear_system *s, const double *x, double *y)
{
    for (int64_t i = 0; i < s->rows; i++) {
        y[i] = 0;
        for (int32_t k = s->row_ptr[i]; k < s->row_ptr[i + 1]; k++)
            y[i] += system_value(s, s->val, k) * x[s->col[k]];
    }
}

/* Iterations of the textbook CG until ||r|| <= rtol ||b||, at most `most`. */
static inline int64_t system_iterations(const struct linear_system *s, double rtol, int64_t most)
{
    double *const r = malloc(3 * (size_t)s->rows * sizeof *r), *const p = r + s->rows, *const q = p + s->rows;
    double rr = 0, enough;
    int64_t k = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        r[i] = p[i] = system_value(s, s->b, i);
        rr += r[i] * r[i];
    }
    enough = rtol * rtol * rr;
    for (; rr > enough && k < most; k++) {
        double pq = 0, next = 0;
        system_times(s, p, q);
        for (int64_t i = 0; i < s->rows; i++)
            pq += p[i] * q[i];
        for (int64_t i = 0; i < s->rows; i++) {
            r[i] -= rr / pq * q[i];
            next += r[i] * r[i];
        }
        for (int64_t i = 0; i < s->rows; i++)
            p[i] = r[i] + next / rr * p[i];
        rr = next;
    }
    free(r);
    return k;
}

/* ||b - A x|| / ||b||, or ||b - A x|| if b is 0. */
static inline double system_residual(const struct linear_system *s, const void *x)
{
    long double rr = 0, bb = 0;
    for (int64_t i = 0; i < s->rows; i++) {
        long double r = system_value(s, s->b, i);
        bb += r * r;
        for (int32_t k = s->row_ptr[i]; k < s->row_ptr[i + 1]; k++)
            r -= (long double)system_value(s, s->val, k) * system_value(s, x, s->col[k]);
        rr += r * r;
    }
    return (double)sqrtl(bb > 0 ? rr / bb : rr);
}

/* Checks the stop reason, the number of iterations (that of the textbook CG within 2 % and 2) and
 * the reported residual. */
static inline void check_solve(const struct linear_system *s, const void *x, const struct peer_problem *problem,
                               const char *peer, const char *system)
{
    const struct peer_solved *const solved = problem->solved;
    const int64_t right = system_iterations(s, problem->rtol, problem->max_iterations);
    const double residual = system_residual(s, x);
    if (fabs((double)(solved->iterations - right)) >
        0.02 * (double)right + (right > 0 && right < problem->max_iterations ? 2 : 0))
        fail_msg("%s, %s %s: %lld iterations, the textbook has %lld", peer, system, spmv_type_name(s->type),
                 (long long)solved->iterations, (long long)right);
    if (right < problem->max_iterations && !(solved->residual <= problem->rtol))
        fail_msg("%s, %s %s: stopped at %g", peer, system, spmv_type_name(s->type), solved->residual);
    if (!(residual <= 1.5 * fmax(solved->residual, problem->rtol)) || !(residual >= 0.5 * solved->residual))
        fail_msg("%s, %s %s: true residual %g, reported %g", peer, system, spmv_type_name(s->type), residual,
                 solved->residual);
}

/* Iteration limits: enough to converge, and at the end of and within a block. */
static const int64_t limits_to_solve[] = {3000, 64, 50, 7};
enum { LIMITS_TO_SOLVE = sizeof limits_to_solve / sizeof limits_to_solve[0] };

static inline double tolerance_to_solve(spmv_type type)
{
    return type == SPMV_F32 ? 1e-4 : 1e-8;
}

#endif
