/* The factor of a factorised sparse approximate inverse, on the host.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_FSAI_H
#define PRECOND_FSAI_H

#include "solvers/precond/precond_internal.h"

/* How the pattern of a row grows. */
struct fsai_search {
    int steps, size;  /* at most `steps` times, up to `size` entries are added */
    double tolerance; /* the last step is one that reduces psi by less than this share of it */
    double least;     /* the least pivot, of 1 */
};
enum { FSAI_MOST = 32 /* entries beside the diagonal: steps * size */ };

/* G, lower triangular, in host memory; columns ascend, so the last entry of a row is the one on the
 * diagonal. */
struct fsai_factor {
    int64_t rows;
    int64_t *ptr; /* rows + 1 */
    int32_t *col;
    double *val;
    int64_t left_out, first; /* entries left out because of their pivot, and the first row with one */
};

/* SPMV_ERROR_NOT_POSITIVE names the first row with a negative pivot, SPMV_ERROR_NOT_FINITE the first
 * row with an entry that is not finite. */
spmv_status fsai_make_factor(const spmv_preconditioner *m, const struct precond_source *source,
                             const struct fsai_search *search, struct fsai_factor *factor);
void fsai_release(struct fsai_factor *factor);

#endif
