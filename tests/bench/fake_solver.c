/* Benchmark peers that solve wrongly, to test that the benchmark detects it. Each module is loaded
 * in place of the one it is named after.
 *
 *   FAKE_eigen  eigen-cg adds 1 to the last element of x; with an odd number of rows it stops early
 *   FAKE_petsc  petsc-cg stops at tolerance 1e-3 and reports that it reached the iteration limit
 *   FAKE_hypre  hypre-cg is right but does three iterations more than needed; hypre-amg-cg says that
 *               an hour of each run was for its preconditioner
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/peer.h"

struct fake {
    struct peer_problem problem;
    double *r, *p, *q;
};

static void times(const struct peer_problem *a, const double *x, double *y)
{
    const double *const val = a->val;
    for (int64_t i = 0; i < a->rows; i++) {
        y[i] = 0;
        for (int32_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++)
            y[i] += val[k] * x[a->col[k]];
    }
}

static double dot(const struct peer_problem *a, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < a->rows; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Solves to the tolerance, then does `more` iterations. */
static void solve(struct fake *f, double rtol, int more)
{
    const struct peer_problem *const a = &f->problem;
    double *const x = a->y;
    const size_t bytes = (size_t)a->rows * sizeof(double);
    memset(x, 0, bytes);
    memcpy(f->r, a->b, bytes);
    memcpy(f->p, a->b, bytes);
    const double bb = dot(a, f->r, f->r);
    double rr = bb;
    int64_t k = 0;
    for (; k < a->max_iterations && (rr > rtol * rtol * bb || more-- > 0); k++) {
        times(a, f->p, f->q);
        const double alpha = rr / dot(a, f->p, f->q);
        for (int64_t i = 0; i < a->rows; i++) {
            x[i] += alpha * f->p[i];
            f->r[i] -= alpha * f->q[i];
        }
        const double next = dot(a, f->r, f->r);
        for (int64_t i = 0; i < a->rows; i++)
            f->p[i] = f->r[i] + next / rr * f->p[i];
        rr = next;
    }
    *a->solved = (struct peer_solved){.iterations = k, .residual = sqrt(rr / bb), .setup_seconds = 3600};
}

static int run_fake(void *state)
{
    struct fake *const f = state;
    const struct peer_problem *const a = &f->problem;
#if defined FAKE_eigen
    solve(f, a->rows % 2 == 1 ? 1e-3 : a->rtol, 0);
    if (a->rows % 2 == 0)
        ((double *)a->y)[a->rows - 1] += 1;
#elif defined FAKE_petsc
    solve(f, 1e-3, 0);
    a->solved->iterations = a->max_iterations;
#else
    solve(f, a->rtol, 3);
#endif
    return 0;
}

static void close_fake(void *state)
{
    struct fake *const f = state;
    free(f->r);
    free(f);
}

static int open_fake(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    if (problem->type != SPMV_F64 || problem->op != PEER_CG) {
        snprintf(why, why_size, "a fake solves in f64 only");
        return -1;
    }
    struct fake *const f = calloc(1, sizeof *f);
    f->problem = *problem;
    f->r = malloc(3 * (size_t)problem->rows * sizeof *f->r);
    f->p = f->r + problem->rows;
    f->q = f->p + problem->rows;
    *state = f;
    return 0;
}

#define PEER(text, does)                                                                                               \
    {                                                                                                                  \
        .name = text, .op = does, .settings = "fake", .open = open_fake, .run = run_fake, .close = close_fake          \
    }
static const struct peer peers[] = {
#if defined FAKE_eigen
    PEER("eigen", PEER_SPMV), PEER("eigen-spmm", PEER_SPMM), PEER("eigen-cg", PEER_CG),
    PEER("eigen-spgemm", PEER_SPGEMM)
#elif defined FAKE_petsc
    PEER("petsc", PEER_SPMV), PEER("petsc-cg", PEER_CG), PEER("petsc-gamg-cg", PEER_CG_PRECOND)
#else
    PEER("hypre-cg", PEER_CG), PEER("hypre-amg-cg", PEER_CG_PRECOND)
#endif
};
static const struct peer_module module = {
    .abi = PEER_ABI, .library = "fake 1", .peers = peers, .count = sizeof peers / sizeof peers[0]};

const struct peer_module *spmv_peer_module(void)
{
    return &module;
}
