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

/* Rows with more entries than LONG_ROW, and than LONG_TIMES those of the mean row, join no pattern. */
static inline int64_t fsai_longest_joining(const spmv_csr *a)
{
    enum { LONG_ROW = 128, LONG_TIMES = 8 };
    return max_i64(LONG_ROW, LONG_TIMES * a->nnz / max_i64(1, a->rows));
}

/* SPMV_ERROR_NOT_POSITIVE names the first row with a negative pivot, SPMV_ERROR_NOT_FINITE the first
 * row with an entry that is not finite. */
spmv_status fsai_make_factor(const spmv_preconditioner *m, const struct precond_source *source,
                             const struct fsai_search *search, struct fsai_factor *factor);
void fsai_release(struct fsai_factor *factor);

/* The same on the device, of at most FSAI_DEVICE_ROWS rows, with source->device_diagonal. *g: G in the context's
 * memory, in f32 where fsai_fits_f32 holds for its diagonal; NULL: the host has to do it. */
enum { FSAI_DEVICE_ROWS = 1 << 18 };
spmv_status fsai_make_factor_cuda(spmv_preconditioner *m, const struct precond_source *source,
                                  const struct fsai_search *search, spmv_matrix **g, int64_t *left_out, int64_t *first)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
