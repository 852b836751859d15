/* hypre: its PCG without a preconditioner, on ParCSR, one MPI rank a core (mpi_ranks.h, hypre_worker.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ranks.h"

const struct ranks_kind ranks_kind = {"hypre", "hypre_worker", "SPMV_HYPRE_TIMEOUT"};

static const struct peer peers[] = {
    {.name = "hypre-cg",
     .op = PEER_CG,
     .settings = "ParCSR PCG, no preconditioner, its own norm, "
                 "one rank a thread, bound to cores where possible, rows + entries split evenly; timed by the ranks, "
                 "the slowest "
                 "counts",
     .open = ranks_open,
     .run = ranks_run,
     .run_timed = ranks_run_timed,
     .fetch = ranks_fetch,
     .close = ranks_close},
};

/* NULL when the worker does not run: hypre or MPI is not there. */
const struct peer_module *spmv_peer_module(void)
{
    static struct peer_module module = {PEER_ABI, NULL, peers, sizeof peers / sizeof peers[0]};
    module.library = ranks_library();
    return module.library != NULL ? &module : NULL;
}
