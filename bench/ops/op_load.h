/* Results of reading a matrix from a file, besides the time.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_OP_LOAD_H
#define BENCH_OP_LOAD_H

#include <spmv/spmv.h>

#include "bench/ops/work.h"

struct load_figures {
    spmv_status status; /* of the last reading */
    spmv_read_info info;
    int64_t file_bytes, rows, cols, nnz, matrix_bytes;
    spmv_type type;
    double bytes_seconds; /* reading only the bytes */
    double first_seconds; /* the first reading */
    int64_t peak_bytes;   /* resident memory that the first reading added; 0: unknown */
};

/* The figures of an operation load, valid until trial_close. NULL: it was not set up. */
const struct load_figures *load_figures(const struct work *work);

#endif
