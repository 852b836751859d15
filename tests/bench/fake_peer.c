/* Benchmark peers that misbehave, to test that the benchmark detects it. The module is loaded in
 * place of the module loops.
 *
 * loops-static is wrong in its last row, loops-guided changes its bits every other run, loops-merge
 * fails at its fourth run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "bench/peers/peer.h"

struct fake {
    struct peer_problem problem;
    int runs;
};

static void multiply(const struct peer_problem *p, double factor)
{
    const double *const val = p->val, *const x = p->x;
    double *const y = p->y;
    for (int64_t i = 0; i < p->rows; i++) {
        double sum = 0;
        for (int32_t k = p->row_ptr[i]; k < p->row_ptr[i + 1]; k++)
            sum += val[k] * x[p->col[k]];
        y[i] = sum * factor;
    }
}

static int open_fake(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    if (problem->type != SPMV_F64) {
        snprintf(why, why_size, "the fake peer supports only f64");
        return -1;
    }
    struct fake *const fake = calloc(1, sizeof *fake);
    fake->problem = *problem;
    *state = fake;
    return 0;
}

static int run_wrong(void *state)
{
    struct fake *const fake = state;
    multiply(&fake->problem, 1);
    ((double *)fake->problem.y)[fake->problem.rows - 1] += 1;
    return 0;
}

static int run_restless(void *state)
{
    struct fake *const fake = state;
    multiply(&fake->problem, fake->runs++ % 2 == 0 ? 1 : 1 + 0x1p-52);
    return 0;
}

static int run_failing(void *state)
{
    struct fake *const fake = state;
    multiply(&fake->problem, 1);
    return ++fake->runs >= 4 ? -1 : 0;
}

static void close_fake(void *state)
{
    free(state);
}

static const struct peer peers[] = {
    {.name = "loops-static", .settings = "wrong", .open = open_fake, .run = run_wrong, .close = close_fake},
    {.name = "loops-guided", .settings = "restless", .open = open_fake, .run = run_restless, .close = close_fake},
    {.name = "loops-merge", .settings = "failing", .open = open_fake, .run = run_failing, .close = close_fake},
};
static const struct peer_module module = {.abi = PEER_ABI, .library = "fake 1", .peers = peers, .count = 3};

const struct peer_module *spmv_peer_module(void)
{
    return &module;
}
