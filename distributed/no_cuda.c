/* The backend cuda of a build without CUDA: what other sources name of it. This is the only source
 * that depends on whether there is CUDA, and the build system chooses it. It is in this folder
 * because it includes headers of all layers of the library.
 *
 * The declarations that end with CUDA_ONLY become definitions here. The backend's table has no
 * function `open`, so no context has this backend, and nothing here is ever called. The other
 * tables are empty.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the declarations are the definitions */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define CUDA_ONLY(value)                                                                                               \
    {                                                                                                                  \
        return value;                                                                                                  \
    }                                                                                                                  \
    struct no_cuda /* takes the semicolon */

#include "core/backend.h"
#include "distributed/group_internal.h"
#include "distributed/group_levels.h"
#include "distributed/near.h"
#include "formats/matrix_internal.h"
#include "product/plan_internal.h"
#include "product/sddmm/sddmm_internal.h"
#include "solvers/accuracy/backward_error.h"
#include "solvers/accuracy/wide_residual.h"
#include "solvers/amg/amg_internal.h"
#include "solvers/batch/batch_internal.h"
#include "solvers/cg/cg_internal.h"
#include "solvers/direct/direct_rows.h"
#include "solvers/eigen/eigen_passes.h"
#include "solvers/krylov/krylov_columns.h"
#include "solvers/krylov/krylov_loop.h"
#include "solvers/krylov/krylov_symmetry.h"
#include "solvers/least_squares/least_squares_internal.h"
#include "solvers/precond/precond_fsai.h"
#include "solvers/precond/precond_loops.h"
#include "spgemm/spgemm_expand.h"
#include "spgemm/spgemm_internal.h"

const struct backend_table backend_cuda = {.id = SPMV_BACKEND_CUDA};
const struct spmv_method cuda_methods[] = {{.name = NULL}};
const struct cg_rung cg_graph, cg_graph_columns, cg_fused_cuda, cg_fused_columns_cuda, cg_persistent_cuda;
