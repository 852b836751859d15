/* spmv solve in its parts: what one preconditioner came to, and the picture of how residuals fell.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVE_H
#define SOLVE_H

#include "app.h"

/* What the solver tells while it runs. */
struct watch {
    double began, first, last; /* seconds: the call, the start of the recurrence, its latest iteration */
    bool recording, repeat;    /* a repeat: its verdict was reported the first time */
    double goal;               /* the tolerance */
    double started;            /* the residual at iteration 0 */
    double *residuals;         /* of iterations 0, 1, ... */
    int64_t count, room;
    bool out_of_memory;
};

/* One solve. */
struct attempt {
    const char *name;       /* of the preconditioner, as asked for */
    spmv_preconditioner *m; /* NULL: none, or it could not be made */
    char failure[400];      /* why it could not be made; "" when it was */
    double setup_seconds;   /* making m */
    double seconds;         /* of the solve */
    struct watch watch;
    spmv_cg_result result;
    spmv_status stop;    /* what the solver said: SPMV_OK, class 7, SPMV_ERROR_NOT_POSITIVE */
    void *x, *again;     /* host memory; of the repeat */
    bool other_bits;     /* of the repeat */
    double checked_norm; /* ||b - A x|| of the checked residual */
    spmv_status verdict; /* of the checks */
    double check_seconds;
};

/* --plot: the residuals of all attempts that ran, over the iterations, in one picture. solve_plot_ready also complains
 * of a name that ends in neither .png nor .svg. */
spmv_status solve_plot_ready(const char *path);
spmv_status solve_plot_write(const char *path, const char *matrix, const struct attempt *attempts, int count);

#endif
