/* PETSc: MatMult on MATAIJ, and KSPCG without a preconditioner and with GAMG, one MPI rank per core
 * (mpi_ranks.h, petsc_worker.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/peers/mpi_ranks.h"

static const struct peer peers[] = {
    RANKS_PEER("petsc", PEER_SPMV, "MatMult, MATAIJ"),
    RANKS_PEER("petsc-cg", PEER_CG, "KSPCG, PCNONE, natural norm, MATAIJ"),
    RANKS_PEER("petsc-gamg-cg", PEER_CG_PRECOND,
               "KSPCG, 2-norm, a V-cycle of GAMG: smoothed aggregation; threshold its default or 0.02, smoother "
               "Chebyshev with Jacobi or SOR, the fastest in a trial of the four"),
};

const struct ranks_kind ranks_kind = {"PETSc", "petsc_worker", "SPMV_PETSC_TIMEOUT", peers,
                                      sizeof peers / sizeof peers[0]};
