/* hypre: its PCG without a preconditioner, on ParCSR, one MPI rank per core (mpi_ranks.h,
 * hypre_worker.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "mpi_ranks.h"

static const struct peer peers[] = {RANKS_PEER("hypre-cg", PEER_CG, "ParCSR PCG, no preconditioner, its own norm")};

const struct ranks_kind ranks_kind = {"hypre", "hypre_worker", "SPMV_HYPRE_TIMEOUT", peers,
                                      sizeof peers / sizeof peers[0]};
