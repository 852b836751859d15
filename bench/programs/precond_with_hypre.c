/* Solves a system (precond_system.h) with hypre's PCG and BoomerAMG, one MPI rank a core. Its
 * defaults but for strength 0.25 in two dimensions, 0.5 otherwise, HMIS coarsening and extended+i
 * interpolation with 4 entries a row, as its manual recommends; repeated. STRENGTH 0: without a
 * preconditioner, to rtol 1e-14, once. Rank 0 prints one line.
 *
 * usage: mpiexec -n RANKS precond_with_hypre FILE STRENGTH MOST_ITERATIONS
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <mpi.h>

#include "bench/programs/precond_system.h"
#include "core/clock.h"

static HYPRE_IJVector new_vector(HYPRE_BigInt first, HYPRE_BigInt last, const HYPRE_BigInt *rows, const double *values)
{
    HYPRE_IJVector v;
    HYPRE_IJVectorCreate(MPI_COMM_WORLD, first, last, &v);
    HYPRE_IJVectorSetObjectType(v, HYPRE_PARCSR);
    HYPRE_IJVectorInitialize(v);
    HYPRE_IJVectorSetValues(v, (HYPRE_Int)(last - first + 1), rows, values);
    HYPRE_IJVectorAssemble(v);
    return v;
}

/* Set-up and solve from zero. Returns whether there is another try. */
static int try(HYPRE_ParCSRMatrix a, HYPRE_ParVector b, HYPRE_ParVector x, double strength, int most,
               struct precond_times *times, HYPRE_Int *iterations)
{
    HYPRE_ParVectorSetConstantValues(x, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    double used = processor_seconds(), all = 0;
    const double begin = monotonic_seconds();
    HYPRE_Solver solver, amg;
    HYPRE_BoomerAMGCreate(&amg);
    HYPRE_BoomerAMGSetStrongThreshold(amg, strength);
    HYPRE_BoomerAMGSetCoarsenType(amg, 10);
    HYPRE_BoomerAMGSetInterpType(amg, 6);
    HYPRE_BoomerAMGSetPMaxElmts(amg, 4);
    HYPRE_BoomerAMGSetRelaxType(amg, 8);
    HYPRE_BoomerAMGSetMaxIter(amg, 1);
    HYPRE_BoomerAMGSetTol(amg, 0);
    HYPRE_BoomerAMGSetPrintLevel(amg, 0);
    HYPRE_ParCSRPCGCreate(MPI_COMM_WORLD, &solver);
    HYPRE_PCGSetTol(solver, strength > 0 ? 1e-8 : 1e-14);
    HYPRE_PCGSetTwoNorm(solver, 1);
    HYPRE_PCGSetMaxIter(solver, most);
    if (strength > 0)
        HYPRE_ParCSRPCGSetPrecond(solver, HYPRE_BoomerAMGSolve, HYPRE_BoomerAMGSetup, amg);
    HYPRE_ParCSRPCGSetup(solver, a, b, x);
    MPI_Barrier(MPI_COMM_WORLD);
    const double made = monotonic_seconds();
    HYPRE_ParCSRPCGSolve(solver, a, b, x);
    MPI_Barrier(MPI_COMM_WORLD);
    const double done = monotonic_seconds();
    used = processor_seconds() - used;
    MPI_Reduce(&used, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    HYPRE_PCGGetNumIterations(solver, iterations);
    HYPRE_ParCSRPCGDestroy(solver);
    HYPRE_BoomerAMGDestroy(amg);
    return precond_times_add(times, made - begin, done - made, all);
}

int main(int argc, char **argv)
{
    struct precond_system s = {0};
    int rank = 0, ranks = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4 || precond_system_read(argv[1], &s) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    HYPRE_Init();
    const HYPRE_BigInt first = (HYPRE_BigInt)(s.rows * rank / ranks), end = (HYPRE_BigInt)(s.rows * (rank + 1) / ranks);
    const HYPRE_Int own = (HYPRE_Int)(end - first);
    HYPRE_Int *const lengths = malloc(((size_t)own + 1) * sizeof *lengths);
    HYPRE_BigInt *const rows = malloc(((size_t)own + 1) * sizeof *rows);
    double *const zeros = calloc((size_t)own + 1, sizeof *zeros), *const all = calloc((size_t)s.rows + 1, sizeof *all);
    for (HYPRE_Int i = 0; i < own; i++) {
        rows[i] = first + i;
        lengths[i] = s.row_ptr[first + i + 1] - s.row_ptr[first + i];
    }
    HYPRE_IJMatrix matrix;
    HYPRE_ParCSRMatrix a;
    HYPRE_ParVector b, x;
    HYPRE_IJMatrixCreate(MPI_COMM_WORLD, first, end - 1, first, end - 1, &matrix);
    HYPRE_IJMatrixSetObjectType(matrix, HYPRE_PARCSR);
    HYPRE_IJMatrixSetRowSizes(matrix, lengths);
    HYPRE_IJMatrixInitialize(matrix);
    HYPRE_IJMatrixSetValues(matrix, own, lengths, rows, s.col + s.row_ptr[first], s.val + s.row_ptr[first]);
    HYPRE_IJMatrixAssemble(matrix);
    HYPRE_IJMatrixGetObject(matrix, (void **)&a);
    HYPRE_IJVector ij_b = new_vector(first, end - 1, rows, s.b + first), ij_x = new_vector(first, end - 1, rows, zeros);
    HYPRE_IJVectorGetObject(ij_b, (void **)&b);
    HYPRE_IJVectorGetObject(ij_x, (void **)&x);
    struct precond_times times = {0};
    HYPRE_Int iterations = 0;
    const double strength = atof(argv[2]);
    for (int again = 1; again;) {
        again = try(a, b, x, strength, atoi(argv[3]), &times, &iterations) && strength > 0;
        MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD); /* the clock of rank 0 decides */
    }
    HYPRE_IJVectorGetValues(ij_x, own, rows, zeros);
    for (HYPRE_Int i = 0; i < own; i++)
        all[first + i] = zeros[i];
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : all, all, (int)s.rows, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        precond_system_print(&s, all, iterations, &times);
    HYPRE_IJMatrixDestroy(matrix);
    HYPRE_IJVectorDestroy(ij_b);
    HYPRE_IJVectorDestroy(ij_x);
    HYPRE_Finalize();
    MPI_Finalize();
    return 0;
}
