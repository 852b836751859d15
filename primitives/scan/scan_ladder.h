/* The rungs of scan and of segmented scan by name: one table a backend, of what spmv_scan_rung, spmv_block_scan and
 * spmv_segscan_rung run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCAN_LADDER_H
#define SCAN_LADDER_H

#include <spmv/primitives.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Elements of a block: a power of two between these. The most keeps a thread an element (rung 1) within what a block
 * may have, and two arrays of f64 (rung 1, double-buffered) within the shared memory that needs no asking. */
enum { SCAN_BLOCK_LEAST = 2, SCAN_BLOCK_MOST = 1024 };

/* The definition does n^2 / 2 operations: above this size it would seem to hang. */
enum { SCAN_DEFINITION_MOST = 1 << 17 };

enum scan_form {
    SCAN_ALL,    /* out = the scan of in */
    SCAN_BLOCKS, /* out = the scan of each block of in; sums, unless NULL, their sums */
    SCAN_SUMS    /* sums = the sums of the blocks, read off in and its SCAN_BLOCKS, which is scanned */
};

struct scan_request {
    enum scan_form form;
    spmv_scan_kind kind;
    spmv_op op;
    spmv_type type;
    int block; /* elements of a block; rungs without blocks of a given size ignore it */
    const void *in, *scanned;
    const uint8_t *flags; /* segmented scan (SCAN_ALL alone): n, not 0 where a segment starts; else NULL */
    void *out, *sums;
    int64_t n; /* > 0 */
    void *scratch;
};

struct scan_rung {
    const char *name;
    int block;     /* elements of a block, unless told otherwise; 0: not to be told */
    bool by_block; /* has the forms SCAN_BLOCKS and SCAN_SUMS, for any block where block is 0 */
    int64_t most;  /* elements; 0: any number */
    int64_t (*scratch)(const spmv_context *, const struct scan_request *);
    spmv_status (*run)(spmv_context *, const struct scan_request *);
};

/* The tables that scan_rungs_... and segscan_rungs_... of backend.h return end with a name NULL. */

/* What the fronts of both share (scan.c). what: the call's name. */
spmv_status scan_check(spmv_context *ctx, const char *what, spmv_scan_kind kind, spmv_op op, spmv_type type, int64_t n);
bool scan_rung_is_auto(const char *name);

/* The rung "NAME" or "NAME:BLOCK" of a table, and the elements of its blocks (0: it has none). */
spmv_status scan_rung_find(spmv_context *ctx, const char *what, const struct scan_rung *rungs, const char *name,
                           const struct scan_rung **found, int *block);
spmv_status scan_rung_check_most(spmv_context *ctx, const char *what, const struct scan_rung *rung, int64_t n);

/* A block is no longer than it must be. */
int scan_block_for(int64_t n, int block);

/* Rungs 3 and 5 on cuda, which run in the scratch of scan_scratch_cuda. */
spmv_status scan_chunks_cuda(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *in, void *out, int64_t n,
                             void *scratch);
spmv_status scan_look_back_cuda(spmv_context *, spmv_scan_kind, spmv_op, spmv_type, const void *in, void *out,
                                int64_t n, void *scratch);

/* A teaching rung on the host, traced. rung: of scan_rungs_ref(); memory of the request: the host's. */
spmv_status scan_trace_host(spmv_context *ctx, const struct scan_rung *rung, const struct scan_request *request,
                            spmv_trace_fn trace, void *user);

#ifdef __cplusplus
}
#endif

#endif
