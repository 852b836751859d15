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
    X(scan_host)                                                                                                       \
    X(load)

struct work;
struct measure_options;

/* The figures that a method tells of itself. */
struct method_figures {
    bool bits_may_differ; /* from run to run */
    int64_t plan_bytes;
    double setup_seconds; /* the last run's share for making the preconditioner */
};

/* One of our own methods, ready to run. */
struct method {
    const char *name;    /* what runs; lives as long as the method */
    const char *why;     /* one sentence */
    const char *layout;  /* how it holds the matrix, one sentence; NULL: nothing to say */
    const char *precond; /* the preconditioner that ran; NULL: none was asked for */
    struct method_figures figures;
    struct work *work;
    void *state; /* the operation's, for this method */
};

/* What the check of a result found. */
struct check {
    double ratio; /* the worst error in units of its bound */
    int64_t at;   /* the row or element */
    /* of a solver */
    double norm_b;        /* ||b|| */
    double true_residual; /* ||b - A x|| / ||b|| */
};

struct operation {
    const char *name;
    const char *formula;
    const char *operator_name, *kind; /* "add", "inclusive"; NULL: does not apply */
    bool on_matrix, on_file;          /* its operand is a matrix, or a file; neither: n elements */
    bool solver;                      /* a run is a whole solve, told in problem.solved */
    int peer_op;                      /* enum peer_op; -1: no peer does it */

    /* The name of a backend's method: 0, 1, ... until NULL; apart from "auto". */
    const char *(*method_name)(spmv_backend backend, int index);

    /* Makes the arrays in the context's memory, with contents, and work->state. */
    spmv_status (*setup)(struct work *work);

    /* Before the check (exact: contents for which every correct order of operations gives the same
     * result) and before the timing (full mantissas); NULL: setup's contents serve both. */
    spmv_status (*fill)(struct work *work, bool exact);

    /* Makes a method ready; "auto": the default. SPMV_ERROR_METHOD: there is none of that name.
     * NULL: the operation has no method of ours. */
    spmv_status (*open)(struct work *work, const char *name, struct method *method);

    /* Runs or queues it once: 0, or -1 when it failed; the sentence is the context's. state: struct
     * method. */
    int (*run)(void *state);

    void (*close)(struct method *method); /* NULL: nothing to release */

    /* SPMV_OK, or SPMV_ERROR_CHECK: host_result, work->result_bytes of them, is wrong. NULL: there
     * is no result to check. */
    spmv_status (*check)(struct work *work, const void *host_result, struct check *check);

    /* Changes how it is timed; NULL: as usual. */
    void (*adapt)(struct measure_options *options);
};

/* What an operation works on. */
struct operand {
    const spmv_csr *matrix; /* host memory, f64, c128 or a pattern, 64-bit offsets; NULL for operations on elements */
    const char *path;       /* of the file, for operations on files */
    spmv_type read_type;    /* to read it in, or SPMV_TYPE_DEFAULT */
    int64_t n;              /* elements, for the others */
    int64_t mean_segment;   /* mean length of segments */
    uint64_t seed;
};

enum { WORK_ARRAYS_MOST = 16 };

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
    void *result;                /* in the context's memory: what a run overwrites */
    bool result_on_host;         /* it is in host memory instead */
    int64_t result_bytes;
    double model_bytes; /* a run must move, at least */
    double upload_seconds;
    void *state;          /* the operation's (work_state) */
    char error[WHY_SIZE]; /* the sentence about the last failure */
    /* what work_close releases */
    void *arrays[WORK_ARRAYS_MOST], *host_arrays[WORK_ARRAYS_MOST];
    int array_count, host_array_count;
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

/* The operation's state of so many bytes, all 0, which work_close releases; NULL: no memory. */
void *work_state(struct work *work, size_t bytes);

/* Host memory from malloc, which work_close releases from now on. Returns it. */
void *work_keep(struct work *work, void *host_memory);

/* bytes of the context's memory, which work_close releases; from NULL: contents undefined. Counts
 * the upload's time. */
spmv_status work_array(struct work *work, const void *host_from, int64_t bytes, const void **array);

/* The sentence of the failed call on ctx, kept in work->error. */
spmv_status work_fail(struct work *work, spmv_context *ctx, spmv_status status);
spmv_status work_out_of_memory(struct work *work, const char *what, int64_t bytes);

/* Real numbers in an element of the type: 1, of a complex type 2; and their type. */
int type_parts(spmv_type type);
spmv_type type_of_parts(spmv_type type);

/* n values of the type in host memory: random_value of the seed's stream, or with exact -1, 0 and 1
 * in turn at random, whose sums of up to 2^24 elements every order gets right. work_values: in new
 * memory (free); NULL: no memory. */
void work_fill_values(const struct work *work, int64_t n, uint64_t stream, bool exact, void *values);
void *work_values(const struct work *work, int64_t n, uint64_t stream, bool exact);

/* The check of an operation whose cells of so many bytes are all those of expected, to the last
 * bit. */
spmv_status work_check_cells(struct work *work, const void *host_result, const void *expected, int64_t cell_bytes,
                             struct check *check);

/* method_name and open of an operation with one method of ours. */
const char *work_no_names(spmv_backend backend, int index);
spmv_status work_open_only(struct work *work, const char *name, struct method *method);

/* A rung by its name, of which the library, asked to do nothing by it, said st. method->state: the
 * name, NULL for "auto". */
spmv_status work_open_rung(struct work *work, const char *name, spmv_status st, struct method *method);

#endif
