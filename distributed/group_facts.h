/* The facts by which "auto" chooses a preconditioner for ranks (group_facts.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GROUP_FACTS_H
#define GROUP_FACTS_H

#include <spmv/group.h>

#include "solvers/precond/precond_internal.h"

struct group_facts {
    struct precond_look look;
    int64_t bad; /* the first row whose diagonal entry is not positive; else the number of rows */
    double bad_value;
};

/* Together. matrix: a spmv_group_matrix. */
spmv_status group_find_facts(spmv_group_matrix *m, struct group_facts *facts);
spmv_status group_find_ball(void *matrix, struct precond_ball *ball);

#endif
