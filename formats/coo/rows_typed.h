/* The typed part of rows.c, included once per type of values (each_value.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/coo/value_sum_typed.h"

/* Merges the entries of one sorted row; returns how many remain. */
static int64_t TYPED(merge)(int32_t *col, void *values, int64_t n)
{
    T *const val = values;
    int64_t kept = 0;
    for (int64_t k = 1; k < n; k++) {
        if (col[k] == col[kept]) {
            val[kept] = TYPED(sum)(val[kept], val[k]);
        } else {
            col[++kept] = col[k];
            val[kept] = val[k];
        }
    }
    return kept + 1;
}
