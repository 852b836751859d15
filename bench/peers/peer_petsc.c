/* PETSc: MatMult on MATAIJ, and KSPCG without a preconditioner, one MPI rank a core (mpi_ranks.h, petsc_worker.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ranks.h"

const struct ranks_kind ranks_kind = {"PETSc", "petsc_worker", "SPMV_PETSC_TIMEOUT"};

static const struct peer peers[] = {
    {.name = "petsc",
     .op = PEER_SPMV,
     .settings = "MatMult, MATAIJ, "
                 "one rank a thread, bound to cores where possible, rows + entries split evenly; timed by the ranks, "
                 "the slowest "
                 "counts",
     .open = ranks_open,
     .run = ranks_run,
     .run_timed = ranks_run_timed,
     .fetch = ranks_fetch,
     .close = ranks_close},
    {.name = "petsc-cg",
     .op = PEER_CG,
     .settings = "KSPCG, PCNONE, natural norm, MATAIJ, "
                 "one rank a thread, bound to cores where possible, rows + entries split evenly; timed by the ranks, "
                 "the slowest "
                 "counts",
     .open = ranks_open,
     .run = ranks_run,
     .run_timed = ranks_run_timed,
     .fetch = ranks_fetch,
     .close = ranks_close},
};

/* NULL when the worker does not run: PETSc or MPI is not there. */
const struct peer_module *spmv_peer_module(void)
{
    static struct peer_module module = {PEER_ABI, NULL, peers, sizeof peers / sizeof peers[0]};
    module.library = ranks_library();
    return module.library != NULL ? &module : NULL;
}
