/* The parts of spmv solve: the result of one preconditioner, the time left, the advice after a
 * failure, the picture of the residuals.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVE_H
#define SOLVE_H

#include "app.h"
#include "solve_pace.h"

/* What the solver reports while it runs. */
struct watch {
    double began, first, last; /* seconds: at the call, at iteration 0, at the latest iteration */
    bool recording;
    double goal; /* the tolerance, of several right-hand sides the least */
    struct pace pace;
    double *residuals; /* of iterations 0, 1, ... */
    int64_t count, room;
    bool out_of_memory;
};

/* One solve of all right-hand sides, with one preconditioner. */
struct attempt {
    const char *name;       /* of the preconditioner, as asked for */
    spmv_preconditioner *m; /* NULL: none, or it could not be made */
    char failure[400];      /* why it could not be made, or why the solver stopped before the tolerance; else "" */
    double setup_seconds;   /* making m */
    double seconds;         /* of the solve */
    struct watch watch;
    int columns;           /* right-hand sides */
    spmv_cg_result *each;  /* one a right-hand side; NULL: not solved */
    spmv_cg_result result; /* of all: columns_summary */
    int worst;             /* the right-hand side farthest from its tolerance; failed ones before solved ones */
    double *error;         /* the largest of x, one a right-hand side; NULL: the solution is not known */
    spmv_status stop;      /* what the solver said: SPMV_OK, class 7, SPMV_ERROR_NOT_POSITIVE */
    void *x, *again;       /* host memory; of the repeat */
    bool other_bits;       /* of the repeat */
    double *checked;       /* ||b - A x|| of the checked residual, one a right-hand side */
    spmv_status verdict;   /* of the checks */
    double check_seconds;
};

/* result and worst from each: the most iterations, the restarts of all, the rest of the worst. */
void columns_summary(struct attempt *a);

/* The table of all right-hand sides, the worst first. */
void remark_columns(const struct attempt *a);

/* The same, in their order; NULL when memory is out. */
json_t *json_columns(const struct attempt *a);

/* What to try after a solve that stopped with the status, of class 7 or 8; "" when nothing is
 * known to help. matrix: in host memory. a: the solve; NULL when the matrix was refused before
 * one. */
struct advice {
    char text[400];
};
struct advice solve_advice(const struct options *o, const spmv_csr *matrix, const struct attempt *a, spmv_status stop);

/* "stagnation" for SPMV_ERROR_STAGNATION. Static storage. */
const char *status_word(spmv_status st);

/* --plot: the residuals of all attempts that ran, over the iterations, in one picture.
 * solve_plot_ready also complains of a name that ends in neither .png nor .svg. */
spmv_status solve_plot_ready(const char *path);
spmv_status solve_plot_write(const char *path, const char *matrix, const struct attempt *attempts, int count);

#endif
