/* Shared by the files of histogram: a checked request.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HISTOGRAM_REQUEST_H
#define HISTOGRAM_REQUEST_H

#include <spmv/primitives.h>

/* The arguments of spmv_histogram; n > 0. counts and left_out are initially 0. */
struct histogram_request {
    int count_bits; /* 32 or 64 */
    const int32_t *index;
    void *counts;
    int64_t bins;
    void *left_out; /* or NULL */
    int64_t n;
};

#endif
