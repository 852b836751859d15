/* Solves a system (precond_system.h) with PETSc's KSPCG without a preconditioner, one MPI rank a core.
 * Rank 0 prints one line, as precond_with_hypre.
 *
 * usage: mpiexec -n RANKS cg_with_petsc FILE MOST_ITERATIONS
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <petscksp.h>
#include <string.h>

#include "bench/programs/precond_system.h"
#include "core/clock.h"

/* The rows of this rank, in PETSc's integer type. */
static PetscErrorCode make_matrix(const struct precond_system *s, PetscInt first, PetscInt own, Mat *matrix)
{
    PetscInt *offsets = NULL, *columns = NULL;
    const int32_t *const row_ptr = s->row_ptr + first;
    PetscFunctionBeginUser;
    PetscCall(PetscMalloc2((size_t)own + 1, &offsets, (size_t)(row_ptr[own] - row_ptr[0]), &columns));
    for (PetscInt i = 0; i <= own; i++)
        offsets[i] = row_ptr[i] - row_ptr[0];
    for (PetscInt k = 0; k < offsets[own]; k++)
        columns[k] = s->col[row_ptr[0] + k];
    PetscCall(MatCreate(PETSC_COMM_WORLD, matrix));
    PetscCall(MatSetSizes(*matrix, own, own, (PetscInt)s->rows, (PetscInt)s->rows));
    PetscCall(MatSetType(*matrix, MATAIJ)); /* MATSEQAIJ on one rank, MATMPIAIJ on several */
    PetscCall(MatSeqAIJSetPreallocationCSR(*matrix, offsets, columns, s->val + row_ptr[0]));
    PetscCall(MatMPIAIJSetPreallocationCSR(*matrix, offsets, columns, s->val + row_ptr[0]));
    PetscCall(PetscFree2(offsets, columns));
    PetscFunctionReturn(0);
}

static PetscErrorCode make_solver(Mat matrix, PetscInt most, KSP *solver)
{
    PC precond = NULL;
    PetscFunctionBeginUser;
    PetscCall(KSPCreate(PETSC_COMM_WORLD, solver));
    PetscCall(KSPSetType(*solver, KSPCG));
    PetscCall(KSPSetOperators(*solver, matrix, matrix));
    PetscCall(KSPGetPC(*solver, &precond));
    PetscCall(PCSetType(precond, PCNONE));
    PetscCall(KSPSetNormType(*solver, KSP_NORM_NATURAL)); /* no sum besides those of the method */
    PetscCall(KSPSetTolerances(*solver, 1e-14, 0, PETSC_DEFAULT, most));
    PetscCall(KSPSetUp(*solver));
    PetscFunctionReturn(0);
}

static PetscErrorCode run(const struct precond_system *s, int rank, int ranks, PetscInt most)
{
    const PetscInt first = (PetscInt)(s->rows * rank / ranks), own = (PetscInt)(s->rows * (rank + 1) / ranks) - first;
    Mat matrix = NULL;
    KSP solver = NULL;
    Vec b = NULL, x = NULL;
    PetscScalar *values = NULL;
    PetscInt iterations = 0;
    PetscFunctionBeginUser;
    PetscCall(make_matrix(s, first, own, &matrix));
    PetscCall(MatCreateVecs(matrix, &x, &b));
    PetscCall(VecGetArrayWrite(b, &values));
    memcpy(values, s->b + first, (size_t)own * sizeof *values);
    PetscCall(VecRestoreArrayWrite(b, &values));
    PetscCall(make_solver(matrix, most, &solver));
    MPI_Barrier(MPI_COMM_WORLD);
    double used = processor_seconds(), processors = 0;
    const double begin = monotonic_seconds();
    PetscCall(KSPSolve(solver, b, x));
    MPI_Barrier(MPI_COMM_WORLD);
    const double done = monotonic_seconds();
    used = processor_seconds() - used;
    PetscCall(KSPGetIterationNumber(solver, &iterations));
    double *const own_x = calloc((size_t)s->rows + 1, sizeof *own_x), *const all =
                                                                          calloc((size_t)s->rows + 1, sizeof *all);
    PetscCall(VecGetArray(x, &values));
    memcpy(own_x + first, values, (size_t)own * sizeof *values);
    PetscCall(VecRestoreArray(x, &values));
    MPI_Reduce(own_x, all, (int)s->rows, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&used, &processors, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        struct precond_times times = {0};
        (void)precond_times_add(&times, 0, done - begin, processors);
        precond_system_print(s, all, iterations, &times);
    }
    free(own_x);
    free(all);
    PetscCall(KSPDestroy(&solver));
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&matrix));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    struct precond_system s = {0};
    int rank = 0, ranks = 1;
    if (argc != 3 || precond_system_read(argv[1], &s) != 0 || PetscInitialize(NULL, NULL, NULL, NULL) != 0)
        return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (run(&s, rank, ranks, (PetscInt)atoi(argv[2])) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return PetscFinalize() != 0;
}
