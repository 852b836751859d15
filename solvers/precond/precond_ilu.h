/* What incomplete LU factorisations share: their pivots, and the factors of ilu0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_ILU_H
#define PRECOND_ILU_H

#include <math.h>
#include <stdio.h>

#include "solvers/precond/precond_triangles.h"

/* Pivots of at most `least` times the largest entry of their row of A are replaced by `replacement`
 * times that entry, with the sign of the pivot. */
struct pivots {
    double least, replacement;
    int64_t replaced, first; /* how many, and the first row */
    double first_pivot;
};

static inline struct pivots pivots_of(spmv_type type)
{
    return (struct pivots){.least = real_limits_of(type).pivot, .replacement = 1e-3};
}

static inline double largest_of(const double *val, int64_t n)
{
    double largest = 0;
    for (int64_t k = 0; k < n; k++)
        largest = fmax(largest, fabs(val[k]));
    return largest;
}

/* The pivot of the row, or its replacement. largest: the largest absolute value of the row of A; 0
 * counts as 1. */
static inline double pivot_or_replacement(struct pivots *p, int64_t row, double pivot, double largest)
{
    if (fabs(pivot) > p->least * largest)
        return pivot;
    if (p->replaced++ == 0) {
        p->first = row;
        p->first_pivot = pivot;
    }
    return copysign(p->replacement * (largest > 0 ? largest : 1), pivot);
}

/* Sets m->fallen and adds replaced pivots to the layout. */
static inline void pivots_report(spmv_preconditioner *m, const struct pivots *p)
{
    const size_t n = strlen(m->layout);
    m->fallen = p->replaced;
    if (p->replaced > 0)
        snprintf(m->layout + n, sizeof m->layout - n, "; replaced pivots: %lld (the first, of row %lld%s, was %.3g)",
                 (long long)p->replaced, context_number(m->ctx, p->first), context_counted(m->ctx), p->first_pivot);
}

/* SPMV_ERROR_NOT_FINITE names the first row with an entry that is not finite. */
static inline spmv_status ilu_check_finite(const spmv_preconditioner *m, const spmv_csr *a)
{
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            if (!isfinite(precond_value(a, k)))
                return context_fail(m->ctx, SPMV_ERROR_NOT_FINITE,
                                    "preconditioner %s: the entry in row %lld, column %lld%s is %g", m->name,
                                    context_number(m->ctx, i), context_number(m->ctx, a->col[k]),
                                    context_counted(m->ctx), precond_value(a, k));
    return SPMV_OK;
}

/* The factors of ilu0, L with ones on its diagonal; both to be released, also after an error. Sets m->layout and
 * m->fallen. */
spmv_status ilu0_factor(spmv_preconditioner *m, const struct precond_source *source, struct host_rows *lower,
                        struct host_rows *upper);

#endif
