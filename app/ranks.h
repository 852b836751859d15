/* spmv mul and spmv solve on several ranks (group.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RANKS_H
#define RANKS_H

#include "app.h"

/* Whether the command runs on ranks: with --ranks N, or started by mpirun. */
bool ranks_wanted(const struct options *o);

/* The two commands on ranks, as run_product and run_solve. */
spmv_status ranks_multiply(const struct options *o, const char *const *arguments, int count);
spmv_status ranks_solve(const struct options *o, const char *const *arguments, int count);

#endif
