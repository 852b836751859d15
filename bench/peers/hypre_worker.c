/* One rank of hypre (mpi_worker.h): A x = b by HYPRE_ParCSRPCG, without a preconditioner or with
 * BoomerAMG (PEER_CG_PRECOND).
 *
 * Without one, the solver stops when r'z / b'b < rtol^2 (strictly), where r'z is ||r||^2. Stopping by
 * the 2-norm would need another sum, and so another pass per iteration. With BoomerAMG it stops by
 * the 2-norm.
 *
 * BoomerAMG, one V-cycle, as the manual recommends for grids in space: coarsening HMIS, interpolation
 * extended+i with 4 entries a row. Strength and relaxation are those that solve this system fastest.
 * Set-up and solve are part of each run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/mpi_worker.h"

static HYPRE_IJMatrix matrix;
static HYPRE_IJVector b, x;
static HYPRE_ParCSRMatrix parcsr;
static HYPRE_ParVector par_b, par_x;
static HYPRE_Solver solver; /* without a preconditioner */

/* The strong threshold; the relaxation, 0: hypre's default. */
struct amg_settings {
    double strength;
    HYPRE_Int relaxation;
};
enum { L1_SYMMETRIC = 8 };
static const struct amg_settings to_try[] = {{0.25, L1_SYMMETRIC}, {0.5, L1_SYMMETRIC}, {0.25, 0}, {0.5, 0}};
static size_t setting; /* the number of the fastest */
static int preconditioned;
static double rtol;
static HYPRE_Int most;

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

static HYPRE_Solver new_solver(HYPRE_Int two_norm)
{
    HYPRE_Solver made = NULL;
    HYPRE_ParCSRPCGCreate(MPI_COMM_WORLD, &made);
    HYPRE_PCGSetTol(made, rtol);
    HYPRE_PCGSetMaxIter(made, most);
    HYPRE_PCGSetTwoNorm(made, two_norm);
    HYPRE_PCGSetPrintLevel(made, 0);
    HYPRE_PCGSetLogging(made, 0);
    return made;
}

static void solve_with(struct worker *worker, HYPRE_Solver with)
{
    HYPRE_Int iterations = 0;
    HYPRE_Real residual = 0;
    HYPRE_ParCSRPCGSolve(with, parcsr, par_b, par_x);
    HYPRE_PCGGetNumIterations(with, &iterations);
    HYPRE_PCGGetFinalRelativeResidualNorm(with, &residual);
    worker->iterations = iterations;
    worker->residual = residual;
}

/* Makes BoomerAMG, solves and releases it. */
static void solve_by_amg(struct worker *worker)
{
    HYPRE_Solver amg = NULL;
    const struct amg_settings settings = to_try[setting];
    const double began = MPI_Wtime();
    HYPRE_BoomerAMGCreate(&amg);
    HYPRE_BoomerAMGSetStrongThreshold(amg, settings.strength);
    HYPRE_BoomerAMGSetCoarsenType(amg, 10);
    HYPRE_BoomerAMGSetInterpType(amg, 6);
    HYPRE_BoomerAMGSetPMaxElmts(amg, 4);
    if (settings.relaxation != 0)
        HYPRE_BoomerAMGSetRelaxType(amg, settings.relaxation);
    HYPRE_BoomerAMGSetMaxIter(amg, 1);
    HYPRE_BoomerAMGSetTol(amg, 0);
    HYPRE_BoomerAMGSetPrintLevel(amg, 0);
    const HYPRE_Solver pcg = new_solver(1);
    HYPRE_ParCSRPCGSetPrecond(pcg, HYPRE_BoomerAMGSolve, HYPRE_BoomerAMGSetup, amg);
    HYPRE_ParCSRPCGSetup(pcg, parcsr, par_b, par_x);
    worker->setup_seconds = MPI_Wtime() - began;
    solve_with(worker, pcg);
    HYPRE_ParCSRPCGDestroy(pcg);
    HYPRE_BoomerAMGDestroy(amg);
}

const char *worker_open(struct worker *worker, const struct ranks_problem *problem, const struct share *share)
{
    const size_t rows = (size_t)(worker->row_end - worker->row_begin),
                 count = (size_t)(share->row_ptr[rows] - share->row_ptr[0]);
    HYPRE_Int *const lengths = malloc((rows + 1) * sizeof *lengths);
    HYPRE_BigInt *const numbers = malloc((rows + 1) * sizeof *numbers), *const columns =
                                                                            malloc((count + 1) * sizeof *columns);
    const int fits = lengths != NULL && numbers != NULL && columns != NULL;
    preconditioned = problem->op == PEER_CG_PRECOND;
    rtol = problem->rtol;
    most = (HYPRE_Int)problem->max_iterations;
    if (fits)
        make_matrix(worker, share, lengths, numbers, columns);
    free(lengths);
    free(numbers);
    free(columns);
    if (!fits)
        return "out of memory";
    if (preconditioned)
        return worker_choose(worker, rtol, &setting, sizeof to_try / sizeof to_try[0]);
    if (problem->op != PEER_CG)
        return "it only solves";
    solver = new_solver(0);
    HYPRE_ParCSRPCGSetup(solver, parcsr, par_b, par_x);
    return words();
}

const char *worker_run(struct worker *worker)
{
    HYPRE_ParVectorSetConstantValues(par_x, 0);
    if (preconditioned)
        solve_by_amg(worker);
    else
        solve_with(worker, solver);
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
