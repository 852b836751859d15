/* The rungs of scan and of segmented scan by name: one table per backend, for spmv_scan_rung,
 * spmv_block_scan and spmv_segscan_rung.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAN_LADDER_H
#define SCAN_LADDER_H

#include <spmv/primitives.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Elements of a block: a power of two in this range. The maximum limits a block with one thread per
 * element (rung 1) to the threads that a block may have, and two arrays of f64 (rung 1,
 * double-buffered) to the shared memory available without a request. */
enum { SCAN_BLOCK_LEAST = 2, SCAN_BLOCK_MOST = 1024 };

/* The definition does n^2 / 2 operations: for larger n it would seem to hang. */
enum { SCAN_DEFINITION_MOST = 1 << 17 };

enum scan_form {
    SCAN_ALL,    /* out = the scan of in */
    SCAN_BLOCKS, /* out = the scan of each block of in; sums, unless NULL, their sums */
    /* sums = the sums of the blocks, computed from in and from its block scans, scanned */
    SCAN_SUMS
};

struct scan_request {
    enum scan_form form;
    spmv_scan_kind kind;
    spmv_op op;
    spmv_type type;
    int block; /* elements of a block; ignored by rungs without a block size */
    const void *in, *scanned;
    /* segmented scan (only SCAN_ALL): n flags, nonzero where a segment starts; else NULL */
    const uint8_t *flags;
    void *out, *sums;
    int64_t n; /* > 0 */
    void *scratch;
};

struct scan_rung {
    const char *name;
    int block;     /* default elements of a block; 0: the rung takes no block size */
    bool by_block; /* has the forms SCAN_BLOCKS and SCAN_SUMS; if block is 0, for any block size */
    int64_t most;  /* largest n; 0: any */
    int64_t (*scratch)(const spmv_context *, const struct scan_request *);
    spmv_status (*run)(spmv_context *, const struct scan_request *);
};

/* The tables that the functions scan_rungs_... and segscan_rungs_... of backend.h return end with a
 * NULL name. */

/* Shared by the fronts of both (scan.c). what: the call's name. */
spmv_status scan_check(spmv_context *ctx, const char *what, spmv_scan_kind kind, spmv_op op, spmv_type type, int64_t n);

/* Finds the rung "NAME" or "NAME:BLOCK" in a table, and its block size (0: none). */
spmv_status scan_rung_find(spmv_context *ctx, const char *what, const struct scan_rung *rungs, const char *name,
                           const struct scan_rung **found, int *block);
spmv_status scan_rung_check_most(spmv_context *ctx, const char *what, const struct scan_rung *rung, int64_t n);

/* The block size for n elements: smaller than block if n is. */
int scan_block_for(int64_t n, int block);

/* Rungs 3 and 5 on cuda. They use the scratch of scan_scratch_cuda. */
spmv_status scan_chunks_cuda(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *in, void *out, int64_t n,
                             void *scratch);
spmv_status scan_look_back_cuda(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *in, void *out,
                                int64_t n, void *scratch);

/* Runs a teaching rung on the host with a trace. rung: from scan_rungs_ref(). All memory is host
 * memory. */
spmv_status scan_trace_host(spmv_context *ctx, const struct scan_rung *rung, const struct scan_request *request,
                            spmv_trace_fn trace, void *user);

#ifdef __cplusplus
}
#endif

#endif
