/* Faults that tests inject. The program and the library spmv_bench have none (no_faults.c). Test
 * programs link tests/support/faults.c instead, which reads the faults from environment variables.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FAULTS_H
#define BENCH_FAULTS_H

enum fault {
    /* "ROW": that row of y is wrong after the product; "bit:ROW": its last bit is flipped. In bench
     * the results of the first candidate are wrong. */
    FAULT_ERROR,
    FAULT_CACHE_BYTES, /* the size of the last-level caches; arrays then have no least size */
    FAULT_SHORT_TIMES, /* batches and the look at other processes take a tenth of their time */
    FAULT_CUDA_BUILT   /* solve and info decide under --backend auto as in a build with CUDA */
};

/* The value of a fault; NULL: not set. */
const char *fault_text(enum fault fault);

#endif
