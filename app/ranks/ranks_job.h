/* A job of several ranks: what mul, solve and bench share (ranks.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef RANKS_JOB_H
#define RANKS_JOB_H

#include <spmv/group.h>

#include "app/input.h"
#include "app/ranks/ranks.h"
#include "app/solve/solve.h"
#include "bench/timing.h"

struct rank;

/* The kinds of jobs: what differs between mul and solve. */
struct rank_kind {
    const char *op;     /* "spmv", "cg" */
    const char *answer; /* NULL: there is none */
    enum job_kind memory;
    /* A sentence about options that are not possible on ranks; NULL: all are. */
    const char *(*refusal)(const struct options *o);
    spmv_status (*compute)(struct rank *r);
    void (*tell)(const struct rank *r);
    json_t *(*json)(const struct rank *r);
};

/* What the ranks of this process share. Rank 0 alone changes it. */
struct ranks_job {
    const struct options *o;
    const struct rank_kind *kind;
    const char *const *arguments;
    int count;
    const char *answer_path; /* NULL: nowhere */
    struct input in;
    bool told; /* a failure has been reported */
    double *history;
    int64_t recorded, room;
    bool out_of_memory;
};

/* One rank. */
struct rank {
    struct ranks_job *job;
    spmv_group *group;
    spmv_context *ctx, *reference;
    spmv_group_matrix *m;
    spmv_group_matrix_info info;
    int64_t size;    /* bytes of a number */
    void *x, *y, *b; /* vectors of this rank in the context's memory */
    void *all;       /* rank 0: the answer, in host memory */
    bool makes_b;    /* b = A times a known solution */
    bool random;     /* the solution is --solution random, else ones */
    spmv_preconditioner *precond;
    const char *precond_name;
    spmv_verify_result check;
    spmv_cg_result result;
    spmv_status stop, verdict; /* of the solver; of the checks */
    char failure[400];         /* the message of stop */
    double plan_seconds, seconds, exchange_seconds, check_seconds, norm_r, largest_error;
    struct timing timing; /* of products */
};

bool rank_is_root(const struct rank *r);

/* Passes on the result of a function that ranks call together. Rank 0 reports the first failure. */
spmv_status rank_passed(struct rank *r, spmv_status st);

/* The result of a step that each rank has made by itself: the same status on all ranks. reported:
 * on rank 0 the step has reported its failure. */
spmv_status rank_agreed(struct rank *r, spmv_status st, bool reported);

/* --method: a method of products, of the solver, or SOLVER:PRODUCT. Both results may be empty. */
void rank_split_method(const struct options *o, char solver[32], const char **product);

/* own[i] = value, 0 <= i < n */
spmv_status rank_fill(struct rank *r, void *own, int64_t n, double value);

/* y = alpha A x + beta y. Together. */
spmv_status rank_multiply(struct rank *r, double alpha, const void *x, double beta, void *y);

/* Checks y = alpha A x + beta y0, if a check is wanted; a failed check is kept in verdict. Together. */
spmv_status rank_check(struct rank *r, double alpha, const void *x, double beta, const void *y0, const void *y);
void rank_tell_check(const struct rank *r, const char *what);

/* r->precond of --precond; "auto": jacobi, or none if an entry of the diagonal is not positive. Together. */
spmv_status rank_make_preconditioner(struct rank *r);

/* r->b from its file, or A times ones. Together. */
spmv_status rank_make_b(struct rank *r, bool random);

/* Runs the job on the ranks of the options, or of the launcher. */
spmv_status rank_run_job(const struct options *o, const struct rank_kind *kind, const char *const *arguments,
                         int count);

#endif
