/* Faults that tests plant. The program and the library bench have none: no_faults.c says so. Test programs link
 * tests/faults.c in its place, which takes the faults from environment variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FAULTS_H
#define BENCH_FAULTS_H

enum fault {
    /* "ROW": that row of y is wrong after the product; "bit:ROW": its last bit flips. In bench the
     * results of the first candidate are wrong. */
    FAULT_ERROR,
    FAULT_CACHE_BYTES, /* the size of the last caches, for smaller arrays */
    FAULT_SHORT_TIMES  /* batches and the look at other processes take a tenth of their time */
};

/* What the test asks for; NULL: nothing. */
const char *fault_text(enum fault fault);

#endif
