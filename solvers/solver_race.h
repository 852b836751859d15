/* A race: which of two preconditioners is better is found while solving. See solver_race.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVER_RACE_H
#define SOLVER_RACE_H

#include <stdbool.h>
#include <stdint.h>

#include <spmv/solvers.h>

/* Watches the residuals of a solve, and stops it when it has too far to go. */
enum { JUDGE_MARKS = 64 };
struct judge {
    spmv_cg_fn on_iteration;      /* of the caller; NULL: none */
    spmv_iterate_fn on_iterate;   /* the same; for judge_show */
    void *user;                   /* of both */
    const spmv_cg_result *result; /* has the tolerance */
    int columns;                  /* as many results; the largest tolerance counts, as the largest residual is told */
    int64_t least;                /* iterations after which `most` may be left */
    double most;                  /* after fewer, more; after more, less, in proportion, but not less than */
    double share;                 /* this part of it; 0: any */
    int64_t first;                /* the same for fewer; 0: least */
    bool even;                    /* residuals fall evenly, as those of gmres: few iterations predict well */

    /* low[i]: the smallest residual of iterations i width + 1 to (i + 1) width */
    double low[JUDGE_MARKS], lowest;
    int marks;
    int64_t width, begin, seen; /* begin: the number of the first iteration */
    double left;                /* iterations that are left, by the last verdict; INFINITY: no progress */
    bool stopped;
    bool (*allows)(struct judge *); /* asked before it stops; NULL: always */
    void *race;                     /* for this */
};

/* A judge for a solve whose first iteration has the number begin. */
struct judge judge_of(spmv_cg_fn on_iteration, void *user, const spmv_cg_result *result, int64_t begin, int64_t least,
                      double most);

/* The callback of a solve: calls the caller's, and returns 1 to stop. user: the judge. */
int judge_tell(int64_t iteration, double residual, void *user);

/* The other callback of the same solve: calls the caller's. */
int judge_show(int64_t iteration, double residual, const void *x, void *user);

#endif
