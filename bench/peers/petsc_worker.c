/* One rank of PETSc (mpi_worker.h): y = A x by MatMult, or A x = b by KSPCG, without a preconditioner or
 * with GAMG (PEER_CG_PRECOND).
 *
 * Without one, KSPCG stops by the natural norm, sqrt(r'z): this is ||r|| then and needs no further sum.
 * With GAMG it stops by ||r||.
 *
 * GAMG: smoothed aggregation, one V-cycle. The threshold of strength and the smoother are those that solve
 * this system fastest. Set-up and solve are part of each run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <petscksp.h>
#include <stdio.h>
#include <string.h>

#include "bench/peers/mpi_worker.h"

#if PETSC_VERSION_LT(3, 19, 0)
#define PETSC_SUCCESS 0
#endif

static Mat matrix;
static Vec x, y; /* y = A x; of a solve, x is b and y the solution */
static KSP solver;
static double norm_b;

/* The threshold of strength, negative: PETSc's default; the preconditioner of the Chebyshev smoother. */
struct gamg_settings {
    PetscReal threshold;
    const char *smoother;
};
static const struct gamg_settings to_try[] = {{-1, "jacobi"}, {0.02, "jacobi"}, {-1, "sor"}, {0.02, "sor"}};
static size_t setting; /* the number of the fastest */
static int preconditioned;
static double rtol;
static PetscInt most; /* iterations */

/* PETSc's message for the error. */
static const char *words(PetscErrorCode error)
{
    const char *text = NULL;
    if (error == PETSC_SUCCESS)
        return NULL;
    PetscErrorMessage(error, &text, NULL);
    return text != NULL && *text != '\0' ? text : "an error of PETSc";
}

/* Makes the matrix of this rank's rows: offsets from 0, in PETSc's integer type. */
static PetscErrorCode make_matrix(const struct worker *worker, const struct ranks_problem *problem,
                                  const struct share *share)
{
    const int64_t rows = worker->row_end - worker->row_begin, cols = worker->col_end - worker->col_begin;
    const int32_t count = share->row_ptr[rows] - share->row_ptr[0];
    PetscInt *offsets = NULL, *columns = NULL;
    PetscFunctionBeginUser;
    PetscCall(PetscMalloc2((size_t)rows + 1, &offsets, (size_t)count, &columns));
    for (int64_t i = 0; i <= rows; i++)
        offsets[i] = share->row_ptr[i] - share->row_ptr[0];
    for (int32_t k = 0; k < count; k++)
        columns[k] = share->col[k];
    PetscCall(MatCreate(PETSC_COMM_WORLD, &matrix));
    PetscCall(MatSetSizes(matrix, (PetscInt)rows, (PetscInt)cols, (PetscInt)problem->rows, (PetscInt)problem->cols));
    PetscCall(MatSetType(matrix, MATAIJ)); /* MATSEQAIJ on one rank, MATMPIAIJ on several */
    PetscCall(MatSetFromOptions(matrix));
    PetscCall(
        /* the call for the other type has no effect */
        MatSeqAIJSetPreallocationCSR(matrix, offsets, columns, share->val));
    PetscCall(MatMPIAIJSetPreallocationCSR(matrix, offsets, columns, share->val));
    PetscCall(PetscFree2(offsets, columns));
    PetscCall(MatCreateVecs(matrix, &x, &y));
    PetscScalar *own = NULL;
    PetscCall(VecGetArrayWrite(x, &own));
    if (cols > 0)
        memcpy(own, share->x, (size_t)cols * sizeof *own);
    PetscCall(VecRestoreArrayWrite(x, &own));
    PetscCall(MatMult(matrix, x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* The smoother is an option: PETSc makes those of the levels when it sets up. */
static PetscErrorCode set_gamg(PC precond)
{
    struct gamg_settings s = to_try[setting];
    PetscFunctionBeginUser;
    PetscCall(PCSetType(precond, PCGAMG));
    PetscCall(PetscOptionsSetValue(NULL, "-mg_levels_pc_type", s.smoother));
    if (s.threshold >= 0)
        PetscCall(PCGAMGSetThreshold(precond, &s.threshold, 1));
    PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode make_solver(void)
{
    PC precond = NULL;
    PetscFunctionBeginUser;
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
    PetscCall(KSPSetType(solver, KSPCG));
    PetscCall(KSPSetOperators(solver, matrix, matrix));
    PetscCall(KSPGetPC(solver, &precond));
    if (preconditioned)
        PetscCall(set_gamg(precond));
    else
        PetscCall(PCSetType(precond, PCNONE));
    PetscCall(KSPSetNormType(solver, preconditioned ? KSP_NORM_UNPRECONDITIONED : KSP_NORM_NATURAL));
    PetscCall(KSPSetTolerances(solver, rtol, 0, PETSC_DEFAULT, most));
    PetscCall(KSPSetFromOptions(solver));
    PetscCall(KSPSetUp(solver));
    PetscFunctionReturn(PETSC_SUCCESS);
}

/* Stops when ||r|| <= rtol ||b||. */
static PetscErrorCode solve(struct worker *worker)
{
    PetscInt iterations = 0;
    PetscReal residual = 0;
    KSPConvergedReason reason = KSP_CONVERGED_ITERATING;
    PetscFunctionBeginUser;
    PetscCall(KSPSolve(solver, x, y));
    PetscCall(KSPGetIterationNumber(solver, &iterations));
    PetscCall(KSPGetResidualNorm(solver, &residual));
    PetscCall(KSPGetConvergedReason(solver, &reason));
    worker->iterations = iterations;
    worker->residual = norm_b > 0 ? residual / norm_b : 0;
    PetscFunctionReturn(reason > 0 || reason == KSP_DIVERGED_ITS ? PETSC_SUCCESS : PETSC_ERR_NOT_CONVERGED);
}

/* Makes GAMG, solves and releases it. */
static PetscErrorCode solve_by_gamg(struct worker *worker)
{
    PetscFunctionBeginUser;
    const double began = MPI_Wtime();
    PetscCall(make_solver());
    worker->setup_seconds = MPI_Wtime() - began;
    PetscCall(solve(worker));
    PetscCall(KSPDestroy(&solver));
    PetscFunctionReturn(PETSC_SUCCESS);
}

const char *worker_open(struct worker *worker, const struct ranks_problem *problem, const struct share *share)
{
    rtol = problem->rtol;
    most = (PetscInt)problem->max_iterations;
    preconditioned = problem->op == PEER_CG_PRECOND;
    PetscErrorCode error = make_matrix(worker, problem, share);
    if (error == PETSC_SUCCESS && problem->op != PEER_SPMV)
        error = VecNorm(x, NORM_2, &norm_b);
    if (error == PETSC_SUCCESS && problem->op == PEER_CG)
        error = make_solver();
    if (error == PETSC_SUCCESS && preconditioned)
        return worker_choose(worker, rtol, &setting, sizeof to_try / sizeof to_try[0]);
    return words(error);
}

const char *worker_run(struct worker *worker)
{
    return words(preconditioned ? solve_by_gamg(worker) : solver != NULL ? solve(worker) : MatMult(matrix, x, y));
}

const char *worker_fetch(struct worker *worker, double *rows)
{
    const PetscScalar *own = NULL;
    PetscErrorCode error = VecGetArrayRead(y, &own);
    if (error == PETSC_SUCCESS && worker->row_end > worker->row_begin)
        memcpy(rows, own, (size_t)(worker->row_end - worker->row_begin) * sizeof *own);
    if (error == PETSC_SUCCESS)
        error = VecRestoreArrayRead(y, &own);
    return words(error);
}

static int print_versions(void)
{
    char text[64];
    PetscInt major = 0, minor = 0, patch = 0;
    PetscGetVersionNumber(&major, &minor, &patch, NULL);
    snprintf(text, sizeof text, "%d.%d.%d", (int)major, (int)minor, (int)patch);
    return worker_versions(text);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: petsc_worker FOLDER | --version\n");
        return 1;
    }
    if (strcmp(argv[1], "--version") == 0)
        return print_versions();
    struct worker worker = {.socket = -1};
    /* PETSc does not get argv; its options come only from PETSC_OPTIONS. Errors are returned as
     * codes, without a trace. */
    if (PetscInitializeNoArguments() != PETSC_SUCCESS ||
        PetscPushErrorHandler(PetscReturnErrorHandler, NULL) != PETSC_SUCCESS)
        return 1;
    const int failed = worker_serve(&worker, argv[1]);
    if (failed)
        MPI_Abort(PETSC_COMM_WORLD, 1); /* other ranks may be waiting for this one */
    KSPDestroy(&solver);
    MatDestroy(&matrix);
    VecDestroy(&x);
    VecDestroy(&y);
    PetscFinalize();
    return 0;
}
