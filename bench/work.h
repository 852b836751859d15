/* What is measured: operations, each on an operand, in a type, on a backend.
 *
 * An operation is a row in OPERATION_LIST and a struct operation in a file op_*.c, which says how
 * its inputs are made, how our own methods are run, how a result is checked, and the bytes that
 * count.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <spmv/spmv.h>
#include <stdbool.h>

#include "device.h"
#include "peer.h"

#define OPERATION_LIST(X)                                                                                              \
    X(spmv)                                                                                                            \
    X(cg)                                                                                                              \
    X(spmm)                                                                                                            \
    X(spmv_dot)                                                                                                        \
    X(map)                                                                                                             \
    X(reduce)                                                                                                          \
    X(scan)                                                                                                            \
    X(segscan)                                                                                                         \
    X(segreduce)                                                                                                       \
    X(gather)                                                                                                          \
    X(gather_sequential)                                                                                               \
    X(scatter)                                                                                                         \
    X(compact)                                                                                                         \
    X(sort)                                                                                                            \
    X(histogram)                                                                                                       \
    X(scan_host)

struct work;

/* One of our own methods, ready to run. */
struct own {
    const char *method;   /* what runs; lives as long as own */
    const char *why;      /* one sentence */
    const char *layout;   /* how it holds the matrix, one sentence; NULL: nothing to say */
    bool bits_may_differ; /* from run to run: a method that says so of itself */
    double plan_seconds;
    int64_t plan_bytes;
    const char *precond;  /* the preconditioner that ran; NULL: none was asked for */
    double setup_seconds; /* the last run's share for making it */
    struct work *work;
    void *plan;
};

struct operation {
    const char *name;
    const char *formula;
    const char *operator_name, *kind; /* "add", "inclusive"; NULL: does not apply */
    bool on_matrix;                   /* its operand is a matrix; else n elements */
    bool solver;                      /* a run is a whole solve: work->solved tells it, times count an iteration */
    int peer_op;                      /* enum peer_op; -1: no peer does it */

    /* The name of a backend's method: 0, 1, ... until NULL; apart from "auto". */
    const char *(*method)(spmv_backend backend, int index);

    /* Makes the arrays in the context's memory, with contents. */
    spmv_status (*setup)(struct work *work);

    /* Before the check (exact: contents for which every correct order of operations gives the same
     * result) and before the timing (full mantissas); NULL: setup's contents serve both. */
    spmv_status (*fill)(struct work *work, bool exact);

    /* Makes a method ready; "auto": the default. SPMV_ERROR_METHOD: there is none of that name.
     * NULL: the operation has no method of ours. */
    spmv_status (*open)(struct work *work, const char *method, struct own *own);

    /* Runs or queues it once: 0, or -1 when it failed; the sentence is the context's. state: struct
     * own. */
    int (*run)(void *state);

    void (*close)(struct own *own); /* NULL: nothing to release */

    /* SPMV_OK, or SPMV_ERROR_CHECK: host_result, work->result_bytes of them, is wrong. *ratio: the
     * worst error in units of its bound; *at: the row or element. */
    spmv_status (*check)(struct work *work, const void *host_result, double *ratio, int64_t *at);
};

/* What an operation works on. */
struct operand {
    const spmv_csr *matrix; /* host memory, f64, c128 or a pattern, 64-bit offsets; NULL for operations on elements */
    int64_t n;              /* elements, for the others */
    int64_t mean_segment;   /* mean length of segments */
    uint64_t seed;
};

struct work {
    /* set by the caller */
    const struct operation *operation;
    const struct operand *operand;
    struct device *device;
    spmv_context *ctx;     /* on the device's stream */
    spmv_context *checker; /* on the host: another backend than ctx's */
    spmv_type type;
    int compression;     /* of our plans */
    int vectors;         /* of spmm; 0: 1 */
    bool solutions;      /* of a solver: times of whole solutions are compared, not of iterations */
    const char *precond; /* of the method that is opened next; NULL or "": none */
    /* set by work_open */
    struct peer_problem problem; /* the arrays; for a matrix of 2^31 entries and more row_ptr is NULL */
    spmv_csr matrix;             /* the matrix in the context's memory */
    spmv_csr host_matrix;        /* the operand's, with values of the type */
    void *host_w;                /* owned; of spmv-dot */
    void *host_x, *host_values;  /* owned; host_values: host_matrix's, when they are not the operand's */
    void *expected;      /* owned; the result that every check compares with; NULL: the operation's check recomputes */
    void *result;        /* in the context's memory: what a run overwrites */
    bool result_on_host; /* it is in host memory instead */
    int64_t result_bytes;
    const void *index;  /* gather, scatter: n places, 32 bits, in the context's memory */
    int64_t kept;       /* compact: elements with a flag */
    double model_bytes; /* a run must move, at least */
    double upload_seconds;
    double copy_seconds[2];    /* scan-host: plain copies up and down */
    void *host_b;              /* owned; a solver's right-hand side */
    struct peer_solved solved; /* a solver's last run; problem.solved */
    double norm_b;             /* ||b|| */
    double true_residual;      /* ||b - A x|| / ||b|| of what was checked last */
    char error[WHY_SIZE];      /* the sentence about the last failure */
};

/* The operation of that name; NULL: there is none. operation_at(0), (1), ... until NULL. */
const struct operation *operation_find(const char *name);
const struct operation *operation_at(int index);

/* Makes the arrays. work_close in any case. */
spmv_status work_open(struct work *work);
void work_close(struct work *work);

/* Fills the result with bytes that are no numbers, in the context's memory. */
spmv_status work_poison(struct work *work);

/* The result, in host memory of result_bytes. */
spmv_status work_download(struct work *work, void *host_result);

/* For the files op_*.c. */

/* The operand's matrix: work->host_matrix with values of the type, work->matrix and the problem's
 * arrays. The plan of a product with it by a method of its own ("auto": the default), ready. */
spmv_status work_send_matrix(struct work *work);
spmv_status work_make_plan(struct work *work, const char *method, spmv_plan **plan, spmv_plan_info *info);

/* bytes of the context's memory, into the problem's field; from NULL: contents undefined. Counts
 * the upload's time. */
spmv_status work_array(struct work *work, const void *host_from, int64_t bytes, const void **array);

/* The sentence of the failed call on ctx, kept in work->error. */
spmv_status work_fail(struct work *work, spmv_context *ctx, spmv_status status);
spmv_status work_out_of_memory(struct work *work, const char *what, int64_t bytes);

/* Real numbers in an element of the type: 1, of a complex type 2; and their type. */
int type_parts(spmv_type type);
spmv_type type_of_parts(spmv_type type);

/* n values of the type in host memory (free): random_value of the seed's stream, or with exact -1,
 * 0 and 1 in turn at random, whose sums of up to 2^24 elements every order gets right. NULL: no
 * memory. */
void *work_values(const struct work *work, int64_t n, uint64_t stream, bool exact);

/* The check of an operation whose cells of so many bytes are all those of work->expected, to the
 * last bit. */
spmv_status work_check_cells(struct work *work, const void *host_result, int64_t cell_bytes, double *ratio,
                             int64_t *at);

#endif
