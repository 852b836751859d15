/* The memory that a whole job needs, and its limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef JOB_MEMORY_H
#define JOB_MEMORY_H

#include <spmv/matrix.h>
#include <stdbool.h>

#include "app/options.h"

/* The use of a matrix: a product, a solve, facts and a plan, measurements, writing it to a file,
 * reading its arrays. */
enum job_kind { JOB_PRODUCT, JOB_SOLVE, JOB_INFO, JOB_BENCH, JOB_FILE, JOB_LOOK };

struct memory {
    const struct options *o;
    enum job_kind job;
    bool host;               /* the context's memory is host memory */
    int64_t allowed;         /* bytes that the job may use, without those in use */
    const char *limit;       /* the source of the limit */
    int64_t used;            /* bytes in use outside of the job */
    int64_t needed;          /* by the job; 0: not computed yet */
    spmv_job_bytes_fn bytes; /* computes needed; its user is this struct */
};

/* Applies --max-memory to all memory of this process, once. */
void memory_open(const struct options *o);

/* Whether an allocation of the program stays within that limit. Complains and returns false
 * otherwise. what: its name. */
bool memory_allows(const char *what, double bytes);

/* A part of the limit, kept for later: smaller allocations fail instead of those. 0: nothing is
 * kept. */
void memory_keep(int64_t bytes);

/* Sets the function that returns whether plans and vectors of a job can be in the memory of a GPU;
 * NULL: they cannot. It is called for a job that does not fit the memory of the host. */
typedef bool memory_elsewhere_fn(void *user);
void memory_elsewhere(memory_elsewhere_fn *can, void *user);

/* Text to add to the sentence of a SPMV_ERROR_MEMORY: how to set another limit; "" if there is
 * nothing to add. */
const char *memory_advice(spmv_status status, const char *sentence);

/* Sets the limit of the job: the available memory, or --max-memory. */
void memory_limit(spmv_context *ctx, const struct options *o, enum job_kind job, struct memory *m);

/* The peak memory of this process so far, in bytes; 0: unknown. */
int64_t memory_peak(void);

/* As report. If the job exceeds the limit, the message also names the limit and the option. */
spmv_status memory_report(const struct memory *m, spmv_status status, const char *sentence);

#endif
