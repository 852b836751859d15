/* A trial: one operation on one operand in one type, by our methods and by peers. Checked first,
 * then timed, then checked again.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include "candidate_list.h"
#include "measure.h"

/* The result of one candidate. */
struct result {
    const struct candidate *candidate;
    char method[NAME_SIZE]; /* ours: what ran; the peer's name */
    char why[WHY_SIZE];     /* ours: why that method */
    char layout[512];       /* ours: how it holds the matrix */
    char failed[WHY_SIZE];  /* the sentence; "": it did not fail */
    spmv_status failed_status;
    double plan_seconds;           /* from arrays in the context's memory to ready */
    struct method_figures figures; /* ours */
    double first_call_seconds;
    struct timing warm, flushed;
    bool measured;       /* warm is there */
    bool checked, wrong; /* probes are not checked; wrong: past the bound */
    struct check check;  /* the last one */
    double worst_ratio;  /* error over its bound */
    int64_t worst_at;
    int bit_repeats;           /* runs compared with the first */
    int bit_different;         /* of them, with other bits */
    char note[WHY_SIZE];       /* what a reader of the figure must know; "" */
    struct peer_solved solved; /* of a solver: the first solve, which all later ones repeat */
    char precond[32];          /* of a solution of ours: the preconditioner that ran */
    bool unfinished; /* a solver's peer at the limit of iterations, where one of ours was not: it does not count */
};

struct trial {
    /* set by the caller */
    struct work work; /* its first part */
    const struct candidate_list *list;
    struct measure_options options;
    double read_gbs, copy_gbs; /* measured on this device; 0: not known */
    measure_tick tick;         /* contender: index of a result; -1: getting ready */
    void *user;
    /* set by trial_run */
    struct result results[CANDIDATES_MOST];
    int count;
    bool ended; /* by tick: what is missing was not measured */
};

/* Runs it. A failure of one of them is kept in its result; the status is that of a failure that
 * ends all (memory, the device), with the sentence in work.error. trial_close in any case. */
spmv_status trial_run(struct trial *trial);
void trial_close(struct trial *trial);

/* How many steps a run has: the iterations of a solver, else 1, as where whole solutions are
 * compared. Times over it are what is compared. */
double result_steps(const struct trial *trial, const struct result *result);

/* A solver reached the tolerance. */
bool result_converged(const struct trial *trial, const struct result *result);

/* model_bytes a second over the median of a step, in 1e9; 0 when it was not measured, and for whole
 * solutions. */
double result_gbs(const struct trial *trial, const struct result *result);

/* The fastest peer (no probe, not wrong, not unfinished) by its warm median of a step; NULL: there
 * is none. */
const struct result *trial_best_peer(const struct trial *trial);

#endif
