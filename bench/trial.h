/* A trial: one operation on one operand in one type, by spmv's methods and by peers. Results are
 * checked, then timed, then checked again.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include "bench/candidate_list.h"
#include "bench/measure.h"

/* The result of one candidate. */
struct result {
    const struct candidate *candidate;
    char method[NAME_SIZE]; /* spmv: the method that ran; otherwise the peer's name */
    char why[WHY_SIZE];     /* spmv: why this method */
    char layout[512];       /* spmv: how the matrix is stored */
    char failed[WHY_SIZE];  /* message; "": no failure */
    spmv_status failed_status;
    double plan_seconds;           /* time from arrays in the context's memory until ready */
    struct method_figures figures; /* spmv; of a peer with a preconditioner setup_seconds */
    double first_call_seconds;
    int64_t run_bytes; /* most memory that a run took; 0: unknown, or not measured */
    struct timing warm, flushed;
    bool measured;       /* warm is valid */
    bool checked, wrong; /* probes are not checked; wrong: beyond the bound */
    struct check check;  /* the last one */
    double worst_ratio;  /* error / bound */
    int64_t worst_at;
    int bit_repeats;           /* runs compared with the first one */
    int bit_different;         /* of these, runs with different bits */
    char note[WHY_SIZE];       /* a remark that readers of the figure need; "" */
    struct peer_solved solved; /* of a solver: the first solve; later ones repeat it */
    char precond[32];          /* for whole solutions: the preconditioner that ran; a peer's: "own", or "" */
    /* a solver's peer reached the limit of iterations, but one of spmv did not: excluded */
    bool unfinished;
};

struct trial {
    /* set by the caller */
    struct work work; /* only the first part of it */
    const struct candidate_list *list;
    struct measure_options options;
    double read_gbs, copy_gbs; /* measured on this device; 0: unknown */
    measure_tick tick;         /* contender: index of a result; -1: opening */
    void *user;
    /* set by trial_run */
    struct result results[CANDIDATES_MOST];
    int count;
    bool ended; /* by tick; missing results were not measured */
};

/* Runs the trial. A failure of one candidate is stored in its result. The status is that of a
 * failure that ends the trial (memory, the device), with a message in work.error. Call trial_close
 * in any case. */
spmv_status trial_run(struct trial *trial);
void trial_close(struct trial *trial);

/* The number of steps of a run: the iterations of a solver, else 1, also if whole solutions are
 * compared. Times per step are compared. */
double result_steps(const struct trial *trial, const struct result *result);

/* Whether a solver reached the tolerance. */
bool result_converged(const struct trial *trial, const struct result *result);

/* model_bytes / (median time of a step), in 1e9 bytes per second; 0 if not measured, and for whole
 * solutions. */
double result_gbs(const struct trial *trial, const struct result *result);

/* The peer with the smallest warm median per step, except probes and wrong or unfinished ones; NULL
 * if there is none. */
const struct result *trial_best_peer(const struct trial *trial);

#endif
