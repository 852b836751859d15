/* What preconditioners cost, for the choices of "auto" (precond_choose.c, solver_race.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_COSTS_H
#define PRECOND_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "solvers/precond/precond_internal.h"

/* purpose: the solver that begins. name: of a kind. is: what is known of the matrix, a sum of
 * PRECOND_LIGHT: products read few bytes, because it has few different values; on a GPU
 * PRECOND_NODES: it has several unknowns to a node; on a CPU */
enum { PRECOND_LIGHT = 1, PRECOND_NODES = 2 };
struct precond_cost precond_cost(bool gpu, enum precond_for purpose, const char *name, int64_t rows, int64_t nnz,
                                 int is);

/* On a GPU, what its longest row adds to a set-up: multigrid multiplies each of its entries with all others of that row,
 * which are a dense block of A'A, and fsai searches them for a pattern. */
double precond_setup_of_longest(const char *name, int64_t longest);

/* On a host, by what a sample tells.
 *
 *   purpose  the solver that begins
 *   work     that making it takes, in units of context_pace, for each entry and row, where it is counted (ilu0, ilut,
 *            fsai, and amg for gmres)
 *   steps    that a solve takes */
struct precond_cost precond_cost_sampled(enum precond_for purpose, const char *name, int64_t rows, int64_t nnz,
                                         double work, double steps);

/* The other way round: the work of making it, in all, that takes as long as so many steps without a preconditioner; 0:
 * it counts none. */
int64_t precond_work_of(enum precond_for purpose, const char *name, int64_t rows, int64_t nnz, double steps);

/* Nanoseconds of so many steps without a preconditioner, in which costs are told; on a GPU of microseconds. */
double precond_nanoseconds(bool gpu, enum precond_for purpose, int64_t rows, int64_t nnz, double steps);

/* Of making it and of these steps. */
static inline double precond_cost_of_all(const struct precond_cost *cost)
{
    return cost->setup + cost->steps * cost->step;
}

/* ilut as a last resort, of unknown fill-in, may take so many times what the table says, and may not help. */
enum { UNSURE_ILUT = 4 };

#endif
