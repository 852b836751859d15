/* The search for numbers that are not finite, after a solve that failed because of one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_NOT_FINITE_H
#define SPMV_NOT_FINITE_H

#include "solvers/krylov/krylov.h"

/* Whether A, b or, without zero_start, the start x has a number that is not finite. Then stores the
 * message that names the first one. Of s it reads call, ctx, plan, info, type and x. */
bool krylov_find_not_finite(const struct krylov *s, const void *b, bool zero_start);

#endif
