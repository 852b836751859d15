/* spmv bench on several ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_RANKS_H
#define BENCH_RANKS_H

#include "app/options.h"

/* As run_bench, on the ranks of the options or of mpirun. */
spmv_status bench_on_ranks(const struct options *o, const char *const *arguments, int count);

#endif
