/* What preconditioners cost, for the choices of "auto" (precond_choose.c, solver_race.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_COSTS_H
#define PRECOND_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "solvers/precond/precond_internal.h"

/* In steps of the solver that begins, without a preconditioner; on a GPU in microseconds. Counted from the
 * sizes of a matrix, never timed. */
struct precond_cost {
    double setup; /* making it */
    double step;  /* a step with it */
    double steps; /* that a solve may take where it is a good choice */
};

/* purpose: the solver that begins. name: of a kind. is: what is known of the matrix, a sum of
 * PRECOND_LIGHT: products read few bytes, because it has few different values; on a GPU
 * PRECOND_NODES: it has several unknowns to a node; on a CPU */
enum { PRECOND_LIGHT = 1, PRECOND_NODES = 2 };
struct precond_cost precond_cost(bool gpu, enum precond_for purpose, const char *name, int64_t rows, int64_t nnz,
                                 int is);

/* Of making it and of these steps. */
static inline double precond_cost_of_all(const struct precond_cost *cost)
{
    return cost->setup + cost->steps * cost->step;
}

#endif
