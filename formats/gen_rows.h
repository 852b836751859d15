/* A matrix built row by row from a rule, all rows at once: what most generators share.
 *
 * The rule says how long a row is and which columns it has, from the row's number alone. Lengths become offsets, then
 * every row is filled where it belongs; no result depends on who fills which row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GEN_ROWS_H
#define GEN_ROWS_H

#include "gen_sample.h"
#include "generate.h"

struct generator_rows {
    int64_t rows, cols;
    double entries; /* about so many, for the check of memory */
    const void *rule;
    int64_t (*length)(const void *rule, int64_t row);                          /* 0 <= length <= cols */
    void (*fill)(const void *rule, int64_t row, int64_t length, int32_t *col); /* ascending strictly */
    double (*value)(const void *rule, int64_t row, int32_t col);               /* own values; NULL: random ones */
    const struct permutation *order; /* of the rows; NULL: none. Else length(i) is that of row permutation_at(i) */
};

spmv_status generator_build(spmv_context *ctx, const struct generator_request *request,
                            const struct generator_rows *rows, spmv_matrix **matrix);

#endif
