/* Shared by tests of conjugate gradients.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_CG_H
#define SUPPORT_CG_H

#include <stdbool.h>

#include "tests/support/support.h"

/* Default options with the i-th rung of the backend; false if there is none. */
static inline bool with_rung(int i, spmv_cg_options *options)
{
    spmv_cg_options_init(options, sizeof *options);
    options->rung = spmv_cg_rung_name(support_backend, i);
    return options->rung != NULL;
}

#endif
