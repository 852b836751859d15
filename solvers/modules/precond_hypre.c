/* BoomerAMG, hypre's algebraic multigrid, as a preconditioner: one V-cycle from zero.
 *
 * HMIS coarsening, extended+i interpolation with at most four entries a row, no aggressive levels.
 * Smoothing is l1 Gauss-Seidel, forward before and backward after the coarse grid, so that the
 * cycle is symmetric, as conjugate gradients require; Gaussian elimination on the coarsest grid.
 * hypre's random numbers have a fixed seed, and there is one rank, so every run has the same bits.
 * V. E. Henson, U. M. Yang, "BoomerAMG: a parallel algebraic multigrid solver and preconditioner",
 * Appl. Numer. Math. 41, 2002; smoothers: Baker, Falgout, Kolev, Yang, SISC 33(5), 2011.
 *
 * hypre needs MPI. This module initializes MPI if the program has not, and then finalizes it at
 * exit. A program that initializes MPI later finds it initialized.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/modules/precond_module.h"

#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_config.h>
#include <HYPRE_parcsr_ls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct amg {
    HYPRE_IJMatrix matrix;
    HYPRE_IJVector r, z;
    HYPRE_Solver solver;
    HYPRE_ParCSRMatrix a;
    HYPRE_ParVector par_r, par_z;
    HYPRE_Int n;
    HYPRE_BigInt *index; /* 0 to n - 1: hypre requires an index for every element */
};

static int hypre_runs, mpi_is_ours;

static void end(void)
{
    int ended = 0;
    if (MPI_Finalized(&ended) == MPI_SUCCESS && !ended) {
        HYPRE_Finalize();
        if (mpi_is_ours)
            MPI_Finalize();
    }
}

static int start(char *why)
{
    int begun = 0, ended = 0;
    if (MPI_Initialized(&begun) != MPI_SUCCESS || MPI_Finalized(&ended) != MPI_SUCCESS || ended) {
        snprintf(why, PRECOND_WHY, "MPI was finalized in this program and cannot be started again");
        return -1;
    }
    if (!begun) {
        int provided = 0;
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
            snprintf(why, PRECOND_WHY, "cannot start MPI");
            return -1;
        }
        mpi_is_ours = 1;
    }
    if (!hypre_runs) {
        HYPRE_Init();
        atexit(end); /* the module is never unloaded */
        hypre_runs = 1;
    }
    return 0;
}

/* Writes the message of hypre's error flag and clears it; returns 0 if there is no error. A cycle
 * that does not reach the tolerance 0 is no error. */
static int failed(const char *what, char *why)
{
    const HYPRE_Int error = HYPRE_GetError() & ~HYPRE_ERROR_CONV;
    HYPRE_ClearAllErrors();
    if (error == 0)
        return 0;
    char text[256] = "";
    HYPRE_DescribeError(error, text);
    snprintf(why, PRECOND_WHY, "hypre, %s: %.200s", what, text);
    return -1;
}

static void close_amg(void *state)
{
    struct amg *amg = state;
    if (amg == NULL)
        return;
    if (amg->solver != NULL)
        HYPRE_BoomerAMGDestroy(amg->solver);
    if (amg->matrix != NULL)
        HYPRE_IJMatrixDestroy(amg->matrix);
    if (amg->r != NULL)
        HYPRE_IJVectorDestroy(amg->r);
    if (amg->z != NULL)
        HYPRE_IJVectorDestroy(amg->z);
    HYPRE_ClearAllErrors();
    free(amg->index);
    free(amg);
}

static int take_matrix(struct amg *amg, const struct precond_problem *p, char *why)
{
    const HYPRE_BigInt last = (HYPRE_BigInt)p->rows - 1;
    HYPRE_Int *length = malloc((size_t)p->rows * sizeof *length);
    if (length == NULL) {
        snprintf(why, PRECOND_WHY, "out of memory: %lld bytes needed", (long long)p->rows * (long long)sizeof *length);
        return -1;
    }
    for (int64_t i = 0; i < p->rows; i++)
        length[i] = (HYPRE_Int)(p->row_ptr[i + 1] - p->row_ptr[i]);
    HYPRE_IJMatrixCreate(MPI_COMM_SELF, 0, last, 0, last, &amg->matrix);
    HYPRE_IJMatrixSetObjectType(amg->matrix, HYPRE_PARCSR);
    HYPRE_IJMatrixSetRowSizes(amg->matrix, length);
    HYPRE_IJMatrixInitialize(amg->matrix);
    HYPRE_IJMatrixSetValues(amg->matrix, amg->n, length, amg->index, p->col, p->val);
    HYPRE_IJMatrixAssemble(amg->matrix);
    HYPRE_IJMatrixGetObject(amg->matrix, (void **)&amg->a);
    free(length);
    return failed("setting up the matrix", why);
}

static int make_vector(HYPRE_BigInt n, HYPRE_IJVector *vector, HYPRE_ParVector *object, char *why)
{
    HYPRE_IJVectorCreate(MPI_COMM_SELF, 0, n - 1, vector);
    HYPRE_IJVectorSetObjectType(*vector, HYPRE_PARCSR);
    HYPRE_IJVectorInitialize(*vector);
    HYPRE_IJVectorAssemble(*vector);
    HYPRE_IJVectorGetObject(*vector, (void **)object);
    return failed("creating a vector", why);
}

static int make_hierarchy(struct amg *amg, double strength, char *why)
{
    HYPRE_BoomerAMGCreate(&amg->solver);
    HYPRE_BoomerAMGSetPrintLevel(amg->solver, 0);
    HYPRE_BoomerAMGSetMaxIter(amg->solver, 1);
    HYPRE_BoomerAMGSetTol(amg->solver, 0);
    HYPRE_BoomerAMGSetStrongThreshold(amg->solver, strength);
    HYPRE_BoomerAMGSetCoarsenType(amg->solver, 10);
    HYPRE_BoomerAMGSetInterpType(amg->solver, 6);
    HYPRE_BoomerAMGSetPMaxElmts(amg->solver, 4);
    HYPRE_BoomerAMGSetRelaxOrder(amg->solver, 0);
    HYPRE_BoomerAMGSetNumSweeps(amg->solver, 1);
    HYPRE_BoomerAMGSetCycleRelaxType(amg->solver, 13, 1);
    HYPRE_BoomerAMGSetCycleRelaxType(amg->solver, 14, 2);
    HYPRE_BoomerAMGSetCycleRelaxType(amg->solver, 9, 3);
    HYPRE_BoomerAMGSetup(amg->solver, amg->a, amg->par_r, amg->par_z);
    return failed("BoomerAMGSetup", why);
}

static int open_amg(const struct precond_problem *p, void **state, char *why)
{
    *state = NULL;
    if (start(why) != 0)
        return -1;
    struct amg *amg = calloc(1, sizeof *amg);
    if (amg == NULL || (amg->index = malloc((size_t)p->rows * sizeof *amg->index)) == NULL) {
        snprintf(why, PRECOND_WHY, "out of memory: %lld bytes needed",
                 (long long)p->rows * (long long)sizeof *amg->index);
        free(amg);
        return -1;
    }
    amg->n = (HYPRE_Int)p->rows;
    for (int64_t i = 0; i < p->rows; i++)
        amg->index[i] = (HYPRE_BigInt)i;
    if (take_matrix(amg, p, why) != 0 || make_vector(amg->n, &amg->r, &amg->par_r, why) != 0 ||
        make_vector(amg->n, &amg->z, &amg->par_z, why) != 0 || make_hierarchy(amg, p->strength, why) != 0) {
        close_amg(amg);
        return -1;
    }
    *state = amg;
    return 0;
}

static int apply_amg(void *state, const double *r, double *z, char *why)
{
    struct amg *amg = state;
    HYPRE_IJVectorSetValues(amg->r, amg->n, amg->index, r);
    HYPRE_ParVectorSetConstantValues(amg->par_z, 0);
    HYPRE_BoomerAMGSolve(amg->solver, amg->a, amg->par_r, amg->par_z);
    HYPRE_IJVectorGetValues(amg->z, amg->n, amg->index, z);
    return failed("BoomerAMGSolve", why);
}

const struct precond_module *spmv_precond_module(void)
{
    static const struct precond_module module = {PRECOND_MODULE_ABI, "hypre " HYPRE_RELEASE_VERSION, open_amg,
                                                 apply_amg, close_amg};
    return &module;
}
