/* hypre: its PCG on ParCSR, without a preconditioner and with BoomerAMG, one MPI rank per core
 * (mpi_ranks.h, hypre_worker.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/peers/mpi_ranks.h"

static const struct peer peers[] = {
    RANKS_PEER("hypre-cg", PEER_CG, "ParCSR PCG, no preconditioner, its own norm"),
    RANKS_PEER("hypre-amg-cg", PEER_CG_PRECOND,
               "ParCSR PCG, 2-norm, a V-cycle of BoomerAMG: HMIS, extended+i with 4 entries a row; strength 0.25 or "
               "0.5, relaxation l1-symmetric or its default, the fastest in a trial of the four"),
};

const struct ranks_kind ranks_kind = {"hypre", "hypre_worker", "SPMV_HYPRE_TIMEOUT", peers,
                                      sizeof peers / sizeof peers[0]};
