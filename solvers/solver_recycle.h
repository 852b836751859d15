/* A start for the next right-hand side from the solutions of those before (option recycle).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVER_RECYCLE_H
#define SOLVER_RECYCLE_H

#include <spmv/plan.h>
#include <stdbool.h>

enum { RECYCLE_MOST = 64 };

struct recycle;

/* What a start of one right-hand side has told. */
struct recycle_told {
    int64_t vectors;     /* the start is from so many; 0: it is the given one */
    double given, start; /* norms of b - A x for the given x and for the start; negative: not computed */
};

/* A space of at most `most` vectors for a matrix of n rows (real numbers, twice as many for a complex one). */
spmv_status recycle_create(spmv_context *ctx, spmv_type type, int64_t n, int most, struct recycle **space);
void recycle_destroy(struct recycle *space);
int64_t recycle_bytes(const struct recycle *space);

/* The matrix has got new values: what belongs to those before is made again in the next start. */
void recycle_renew(struct recycle *space);

/* x = x + W c, the best start for A x = b from x, or from 0; and keeps what recycle_add needs. energy: A is symmetric
 * positive definite. If the residual would not be smaller, x stays, and vectors is 0. Failures of memory are none. */
spmv_status recycle_start(struct recycle *space, spmv_plan *plan, bool energy, bool from_zero, const void *b, void *x,
                          struct recycle_told *told);

/* After the solve that began there: takes the way from the given x to the solution into the space, in place of the
 * oldest one. solved: x is a solution; else nothing is taken. */
spmv_status recycle_add(struct recycle *space, spmv_plan *plan, const void *x, bool solved);

#endif
