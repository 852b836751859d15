/* A matrix built row by row from a rule, all rows in parallel. Most generators use it.
 *
 * The rule computes a row's length and columns from the row's number alone. Lengths become offsets,
 * then every row is filled in place. The result does not depend on which thread fills which row.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GEN_ROWS_H
#define GEN_ROWS_H

#include "formats/generate/gen_sample.h"
#include "formats/generate/generate.h"

struct generator_rows {
    int64_t rows, cols;
    double entries; /* approximate number, for the memory check */
    const void *rule;
    int64_t (*length)(const void *rule, int64_t row); /* 0 <= length <= cols */
    /* ascending strictly */
    void (*fill)(const void *rule, int64_t row, int64_t length, int32_t *col);
    /* the generator's values; NULL: random ones */
    double (*value)(const void *rule, int64_t row, int32_t col);
    /* order of the rows; NULL: as they are. Otherwise length(i) is the length of row
     * permutation_at(order, i). */
    const struct permutation *order;
};

spmv_status generator_build(spmv_context *ctx, const struct generator_request *request,
                            const struct generator_rows *rows, spmv_matrix **matrix);

#endif
