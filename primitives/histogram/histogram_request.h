/* What the files of histogram share: a checked request, and the rungs of a backend.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HISTOGRAM_REQUEST_H
#define HISTOGRAM_REQUEST_H

#include <spmv/primitives.h>

/* As spmv_histogram says; n > 0. counts and left_out are 0 before. */
struct histogram_request {
    int count_bits; /* 32 or 64 */
    const int32_t *index;
    void *counts;
    int64_t bins;
    void *left_out; /* or NULL */
    int64_t n;
};

#endif
