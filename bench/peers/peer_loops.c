/* The usual code without a library: OpenMP loops over the rows of the CSR arrays; and the merge
 * path, which gives each thread the same number of rows + entries (D. Merrill, M. Garland,
 * Merge-based parallel sparse matrix-vector multiplication, SC 2016).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/peers/peer.h"

/* A point of the merge path: number of rows finished and of entries used. */
struct point {
    int64_t row, k;
};

struct share {
    struct point begin, end;
    double carry; /* partial sum of row end.row, which a later share finishes */
};

struct loops {
    const struct peer_problem *problem;
    struct share *shares; /* one per thread; NULL except for the merge path */
};

#define VALUE double
#define NAME(function) function##_f64
#include "bench/peers/peer_loops_type.h"
#undef VALUE
#undef NAME
#define VALUE float
#define NAME(function) function##_f32
#include "bench/peers/peer_loops_type.h"

static int open_rows(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    struct loops *loops = malloc(sizeof *loops);
    if (loops == NULL) {
        snprintf(why, why_size, "out of memory: %zu bytes", sizeof *loops);
        return -1;
    }
    *loops = (struct loops){.problem = problem};
    *state = loops;
    return 0;
}

/* The point after this many steps of the path that consumes the ends of rows and the entries in
 * order: the ends of all rows before point.row are among the first steps, that of point.row is
 * not. */
static struct point on_path(const struct peer_problem *problem, int64_t steps)
{
    int64_t low = steps > problem->nnz ? steps - problem->nnz : 0, high = steps < problem->rows ? steps : problem->rows;
    while (low < high) {
        const int64_t row = low + (high - low) / 2;
        if (problem->row_ptr[row + 1] <= steps - row - 1)
            low = row + 1;
        else
            high = row;
    }
    return (struct point){low, steps - low};
}

static int open_merge(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    struct share *shares = calloc((size_t)problem->threads, sizeof *shares);
    if (shares == NULL || open_rows(problem, state, why, why_size) != 0) {
        snprintf(why, why_size, "out of memory: %zu bytes", (size_t)problem->threads * sizeof *shares);
        free(shares);
        return -1;
    }
    const int64_t steps = problem->rows + problem->nnz, threads = problem->threads;
    for (int64_t t = 0; t < threads; t++) {
        const int64_t each = steps / threads, rest = steps % threads;
        shares[t].begin = on_path(problem, t * each + (t < rest ? t : rest));
        shares[t].end = on_path(problem, (t + 1) * each + (t + 1 < rest ? t + 1 : rest));
    }
    ((struct loops *)*state)->shares = shares;
    return 0;
}

static int run_static(void *state)
{
    const struct loops *loops = state;
    (loops->problem->type == SPMV_F64 ? rows_f64 : rows_f32)(loops->problem, false);
    return 0;
}

static int run_guided(void *state)
{
    const struct loops *loops = state;
    (loops->problem->type == SPMV_F64 ? rows_f64 : rows_f32)(loops->problem, true);
    return 0;
}

static int run_merge(void *state)
{
    const struct loops *loops = state;
    (loops->problem->type == SPMV_F64 ? merge_f64 : merge_f32)(loops->problem, loops->shares);
    return 0;
}

static void close_loops(void *state)
{
    struct loops *loops = state;
    free(loops->shares);
    free(loops);
}

#define LOOPS(text, how, open, run)                                                                                    \
    {                                                                                                                  \
        text, PEER_SPMV, how "; " PEER_FLAGS, 0, open, run, NULL, NULL, close_loops                                    \
    }
static const struct peer peers[] = {
    LOOPS("loops-static", "rows by schedule(static)", open_rows, run_static),
    LOOPS("loops-guided", "rows by schedule(guided)", open_rows, run_guided),
    LOOPS("loops-merge", "merge path, rows + entries split evenly, parts found once", open_merge, run_merge),
};
#undef LOOPS

const struct peer_module *spmv_peer_module(void)
{
    static const struct peer_module module = {PEER_ABI, "OpenMP, " PEER_COMPILER, peers,
                                              sizeof peers / sizeof peers[0]};
    return &module;
}
