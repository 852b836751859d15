/* The rungs of reduce by name: one list per backend.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef REDUCE_LADDER_H
#define REDUCE_LADDER_H

#include "core/backend.h"

/* How a rung continues when few partial results are left. */
enum reduce_finish {
    REDUCE_FINISH_DEVICE, /* with further launches */
    REDUCE_FINISH_HOST    /* folds them on the host; waits */
};

/* The largest number of partial results to finish on the host: a launch costs about as much as
 * folding them there. */
enum { REDUCE_FEW = 1024 };

struct reduce_rung {
    const char *name; /* NULL ends a list */
    enum reduce_finish finish;
    bool reorders; /* reorders the operands, so the operator must commute */
    int64_t (*scratch)(const spmv_context *ctx, spmv_type type, int64_t n);

    /* As reduce in backend_table; n > 0. */
    spmv_status (*run)(spmv_context *ctx, enum reduce_finish finish, spmv_op op, spmv_type type, const void *in,
                       void *out, int64_t n, void *scratch);
};

/* *out = the fold of count results in the context's memory, 0 < count <= REDUCE_FEW, computed on
 * the host. Waits. */
spmv_status reduce_finish_on_host(spmv_context *ctx, spmv_op op, spmv_type type, const void *sums, int64_t count,
                                  void *out);

/* The tables that the functions reduce_rungs_... of backend.h return end with a NULL name. */

/* Runs a teaching rung on the host with a trace. rung: from reduce_rungs_ref(). All memory is host
 * memory. */
spmv_status reduce_trace_host(spmv_context *ctx, const struct reduce_rung *rung, spmv_op op, spmv_type type,
                              const void *in, void *out, int64_t n, void *scratch, spmv_trace_fn trace, void *user);

#endif
