/* spmv mul, spmv solve and spmv bench on several ranks (group.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RANKS_H
#define RANKS_H

#include "app/options.h"

/* Whether the command runs on ranks: with --ranks N, or started by mpirun. */
bool ranks_wanted(const struct options *o);

/* The commands on ranks, as run_product, run_solve and run_bench. */
spmv_status ranks_multiply(const struct options *o, const char *const *arguments, int count);
spmv_status ranks_solve(const struct options *o, const char *const *arguments, int count);
spmv_status ranks_bench(const struct options *o, const char *const *arguments, int count);

#endif
