/* One rank of hypre (mpi_worker.h): A x = b by HYPRE_ParCSRPCG without a preconditioner.
 *
 * The solver stops when r'z / b'b < rtol^2 (strictly). Without a preconditioner r'z is ||r||^2.
 * Stopping by the 2-norm would need another sum, and so another pass per iteration.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_worker.h"

static HYPRE_IJMatrix matrix;
static HYPRE_IJVector b, x;
static HYPRE_ParCSRMatrix parcsr;
static HYPRE_ParVector par_b, par_x;
static HYPRE_Solver solver;

/* hypre's message for the errors since the last call. A solve that did not converge is not an
 * error. */
static const char *words(void)
{
    static char text[128];
    HYPRE_ClearError(HYPRE_ERROR_CONV);
    const HYPRE_Int error = HYPRE_GetError();
    if (error == 0)
        return NULL;
    HYPRE_DescribeError(error, text);
    HYPRE_ClearAllErrors();
    return text;
}

static void make_matrix(const struct worker *worker, const struct share *share, HYPRE_Int *lengths, HYPRE_BigInt *rows,
                        HYPRE_BigInt *columns)
{
    const HYPRE_BigInt first = (HYPRE_BigInt)worker->row_begin, last = (HYPRE_BigInt)worker->row_end - 1;
    const HYPRE_Int own = (HYPRE_Int)(worker->row_end - worker->row_begin);
    const int32_t count = share->row_ptr[own] - share->row_ptr[0];
    for (HYPRE_Int i = 0; i < own; i++) {
        lengths[i] = share->row_ptr[i + 1] - share->row_ptr[i];
        rows[i] = first + i;
    }
    for (int32_t k = 0; k < count; k++)
        columns[k] = share->col[k];
    HYPRE_IJMatrixCreate(MPI_COMM_WORLD, first, last, first, last, &matrix);
    HYPRE_IJMatrixSetObjectType(matrix, HYPRE_PARCSR);
    HYPRE_IJMatrixSetRowSizes(matrix, lengths);
    HYPRE_IJMatrixInitialize(matrix);
    HYPRE_IJMatrixSetValues(matrix, own, lengths, rows, columns, share->val);
    HYPRE_IJMatrixAssemble(matrix);
    HYPRE_IJMatrixGetObject(matrix, (void **)&parcsr);
    HYPRE_IJVectorCreate(MPI_COMM_WORLD, first, last, &b);
    HYPRE_IJVectorCreate(MPI_COMM_WORLD, first, last, &x);
    HYPRE_IJVectorSetObjectType(b, HYPRE_PARCSR);
    HYPRE_IJVectorSetObjectType(x, HYPRE_PARCSR);
    HYPRE_IJVectorInitialize(b);
    HYPRE_IJVectorInitialize(x);
    HYPRE_IJVectorSetValues(b, own, rows, share->x);
    HYPRE_IJVectorSetValues(x, own, rows, share->x);
    HYPRE_IJVectorAssemble(b);
    HYPRE_IJVectorAssemble(x);
    HYPRE_IJVectorGetObject(b, (void **)&par_b);
    HYPRE_IJVectorGetObject(x, (void **)&par_x);
}

const char *worker_open(struct worker *worker, const struct ranks_problem *problem, const struct share *share)
{
    const size_t rows = (size_t)(worker->row_end - worker->row_begin),
                 count = (size_t)(share->row_ptr[rows] - share->row_ptr[0]);
    HYPRE_Int *const lengths = malloc((rows + 1) * sizeof *lengths);
    HYPRE_BigInt *const numbers = malloc((rows + 1) * sizeof *numbers), *const columns =
                                                                            malloc((count + 1) * sizeof *columns);
    const int fits = lengths != NULL && numbers != NULL && columns != NULL;
    if (fits && problem->op == PEER_CG) {
        make_matrix(worker, share, lengths, numbers, columns);
        HYPRE_ParCSRPCGCreate(MPI_COMM_WORLD, &solver);
        HYPRE_PCGSetTol(solver, problem->rtol);
        HYPRE_PCGSetMaxIter(solver, (HYPRE_Int)problem->max_iterations);
        HYPRE_PCGSetTwoNorm(solver, 0);
        HYPRE_PCGSetPrintLevel(solver, 0);
        HYPRE_PCGSetLogging(solver, 0);
        HYPRE_ParCSRPCGSetup(solver, parcsr, par_b, par_x);
    }
    free(lengths);
    free(numbers);
    free(columns);
    return !fits ? "out of memory" : problem->op != PEER_CG ? "it only solves" : words();
}

const char *worker_run(struct worker *worker)
{
    HYPRE_Int iterations = 0;
    HYPRE_Real residual = 0;
    HYPRE_ParVectorSetConstantValues(par_x, 0);
    HYPRE_ParCSRPCGSolve(solver, parcsr, par_b, par_x);
    HYPRE_PCGGetNumIterations(solver, &iterations);
    HYPRE_PCGGetFinalRelativeResidualNorm(solver, &residual);
    worker->iterations = iterations;
    worker->residual = residual;
    return words();
}

/* The rows are in their original order. */
const char *worker_fetch(struct worker *worker, double *rows)
{
    const HYPRE_Int own = (HYPRE_Int)(worker->row_end - worker->row_begin);
    HYPRE_BigInt *const numbers = malloc(((size_t)own + 1) * sizeof *numbers);
    if (numbers == NULL)
        return "out of memory";
    for (HYPRE_Int i = 0; i < own; i++)
        numbers[i] = (HYPRE_BigInt)worker->row_begin + i;
    HYPRE_IJVectorGetValues(x, own, numbers, rows);
    free(numbers);
    return words();
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: hypre_worker FOLDER | --version\n");
        return 1;
    }
    if (strcmp(argv[1], "--version") == 0)
        return worker_versions(HYPRE_RELEASE_VERSION);
    struct worker worker = {.socket = -1};
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return 1;
    HYPRE_Init();
    const int failed = worker_serve(&worker, argv[1]);
    if (failed)
        MPI_Abort(MPI_COMM_WORLD, 1); /* other ranks may be waiting for this one */
    if (solver != NULL)
        HYPRE_ParCSRPCGDestroy(solver);
    if (matrix != NULL)
        HYPRE_IJMatrixDestroy(matrix);
    if (b != NULL)
        HYPRE_IJVectorDestroy(b);
    if (x != NULL)
        HYPRE_IJVectorDestroy(x);
    HYPRE_Finalize();
    MPI_Finalize();
    return 0;
}
