/* The parts of spmv solve: the result of one preconditioner, the time left, the advice after a
 * failure, the picture of the residuals.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVE_H
#define SOLVE_H

#include <jansson.h>
#include <spmv/group.h>
#include <spmv/solvers.h>

#include "app/options.h"
#include "app/solve/solve_pace.h"

/* Progress of the solver. */
struct watch {
    /* times in seconds: of the call, of iteration 0, of the latest iteration */
    double began, first, last;
    bool several; /* right-hand sides */
    bool recording;
    double goal; /* the tolerance; of several right-hand sides the smallest */
    struct pace pace;
    double *residuals; /* of iterations 0, 1, ... */
    int64_t count, room;
    bool out_of_memory;
};

/* One solve of all right-hand sides, with one preconditioner. */
struct attempt {
    const char *name;            /* requested name of the preconditioner */
    spmv_solver *solver;         /* NULL: could not be made, or on ranks */
    spmv_group_solver *together; /* the same on ranks */
    /* why it could not be made, or why it stopped before the tolerance; else "" */
    char failure[400];
    double setup_seconds; /* making the solver */
    double seconds;       /* of the solve */
    struct watch watch;
    struct watch *watching;    /* watch, or that of the repeat */
    int columns;               /* right-hand sides */
    spmv_solver_result *each;  /* one per right-hand side; NULL: not solved */
    spmv_solver_result result; /* of all: columns_summary */
    /* the right-hand side farthest from its tolerance; failed ones before solved ones */
    int worst;
    /* the largest error of x, one per right-hand side; NULL: the solution is not known */
    double *error;
    spmv_status stop;    /* status of the solver: SPMV_OK, class 7, SPMV_ERROR_NOT_POSITIVE */
    bool ran;            /* the solver ran: there are results */
    void *x, *again;     /* vectors of the place; again: of the repeat */
    const void *host_x;  /* all of x, where it is needed */
    bool other_bits;     /* the repeat gave other bits */
    double *checked;     /* ||b - A x|| as checked, one per right-hand side */
    spmv_status verdict; /* of the checks */
    double check_seconds;
    int differs;    /* the first right-hand side whose residual is not the reported one; columns: none */
    bool overflows; /* a residual is not finite, so there is nothing to check */
};

/* Sets result and worst from each: the largest number of iterations, the sum of restarts, the other
 * members of the worst. */
void columns_summary(struct attempt *a);

/* Prints the table of all right-hand sides, the worst first. */
void remark_columns(const struct attempt *a);

/* All right-hand sides in their order; NULL if out of memory. */
json_t *json_columns(const struct attempt *a);

/* Adds the backward error and its row, from 0; null: not computed. */
void json_backward(json_t *to, const spmv_solver_result *result);

/* Whether the solve failed since a row of b - A x is too large, though the norm is within the
 * tolerance. */
bool is_wrong_row(const spmv_solver_result *result);

/* The estimated error in the energy norm; null: not available. */
json_t *json_estimate(const spmv_solver_result *result);

/* What to try after a solve that stopped with this status, of class 7 or 8; "" if nothing is known
 * to help. matrix: in host memory. a: the solve; NULL if the matrix was refused before one. */
struct advice {
    char text[400];
};
struct advice solve_advice(const struct options *o, const spmv_csr *matrix, const struct attempt *a, spmv_status stop);

/* The same on ranks, which have fewer solvers. */
struct advice solve_advice_on_ranks(const struct options *o, const struct attempt *a, spmv_status stop);

/* Whether all entries are on one side of the diagonal or on it, and some beside it. matrix: in host
 * memory. */
bool solve_is_triangle(const spmv_csr *matrix);

/* "stagnation" for SPMV_ERROR_STAGNATION. Static storage. */
const char *status_word(spmv_status st);

/* --plot: the residuals of all attempts that ran, over the iterations, in one picture.
 * solve_plot_ready also complains of a name that ends in neither .png nor .svg. */
spmv_status solve_plot_ready(const char *path);
spmv_status solve_plot_write(const char *path, const char *matrix, const struct attempt *attempts, int count);

#endif
