/* Benchmark peers that report fixed times, to test how the benchmark uses times. The module is
 * loaded in place of the module loops, and its products are right.
 *
 * loops-static always takes 1 ms per run, loops-merge 2 ms. loops-guided takes 1 ms per run in one
 * of three batches, 3 ms in the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "bench/peers/peer.h"

struct fake {
    struct peer_problem problem;
    int batches;
};

static int open_fake(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    if (problem->type != SPMV_F64) {
        snprintf(why, why_size, "the fake peer supports only f64");
        return -1;
    }
    struct fake *const fake = calloc(1, sizeof *fake);
    if (fake == NULL)
        return -1;
    fake->problem = *problem;
    *state = fake;
    return 0;
}

static int run_fake(void *state)
{
    const struct peer_problem *const p = &((struct fake *)state)->problem;
    const double *const val = p->val, *const x = p->x;
    double *const y = p->y;
    for (int64_t i = 0; i < p->rows; i++) {
        y[i] = 0;
        for (int32_t k = p->row_ptr[i]; k < p->row_ptr[i + 1]; k++)
            y[i] += val[k] * x[p->col[k]];
    }
    return 0;
}

static int take_1_ms(void *state, int repeats, double *seconds)
{
    (void)state;
    *seconds = 1e-3 * repeats;
    return 0;
}

static int take_2_ms(void *state, int repeats, double *seconds)
{
    (void)state;
    *seconds = 2e-3 * repeats;
    return 0;
}

/* One run goes before each batch and is not timed. */
static int take_turns(void *state, int repeats, double *seconds)
{
    struct fake *const fake = state;
    *seconds = (repeats > 1 && fake->batches++ % 3 == 0 ? 1e-3 : 3e-3) * repeats;
    return 0;
}

static void close_fake(void *state)
{
    free(state);
}

#define FAKE(text, timed)                                                                                              \
    {                                                                                                                  \
        .name = text, .settings = "fake", .open = open_fake, .run = run_fake, .run_timed = timed, .close = close_fake  \
    }
static const struct peer peers[] = {FAKE("loops-static", take_1_ms), FAKE("loops-guided", take_turns),
                                    FAKE("loops-merge", take_2_ms)};
static const struct peer_module module = {.abi = PEER_ABI, .library = "fake 1", .peers = peers, .count = 3};

const struct peer_module *spmv_peer_module(void)
{
    return &module;
}
