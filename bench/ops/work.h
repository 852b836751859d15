/* Measured work: operations, each on an operand, in a type, on a backend.
 *
 * An operation is a row in OPERATION_LIST and a struct operation in a file op_*.c. It defines how
 * its inputs are made, how spmv's methods are run, how a result is checked, and the counted bytes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include <spmv/spmv.h>
#include <stdbool.h>

#include "bench/devices/device.h"
#include "bench/peers/peer.h"
#include "core/reals.h"

#define OPERATION_LIST(X)                                                                                              \
    X(spmv)                                                                                                            \
    X(cg)                                                                                                              \
    X(gmres)                                                                                                           \
    X(bicgstab)                                                                                                        \
    X(batch)                                                                                                           \
    X(spmm)                                                                                                            \
    X(sddmm)                                                                                                           \
    X(spgemm)                                                                                                          \
    X(spgemm_numeric)                                                                                                  \
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

/* Figures that a method provides. */
struct method_figures {
    bool bits_may_differ; /* from run to run */
    int64_t plan_bytes;
    double setup_seconds; /* time of the preconditioner's set-up in the last run */
};

/* One of spmv's methods, opened. */
struct method {
    const char *name;    /* the method that runs; lives as long as the struct */
    const char *why;     /* one sentence */
    const char *layout;  /* how the matrix is stored, one sentence; NULL: not applicable */
    const char *precond; /* the preconditioner that ran; NULL: none */
    struct method_figures figures;
    spmv_status failed; /* of a solver: the status of the last run */
    struct work *work;
    void *state; /* of the operation, for this method */
};

/* Result of a check. */
struct check {
    double ratio; /* worst error / its bound */
    int64_t at;   /* its row or element */
    /* of a solver */
    double norm_b;        /* ||b|| */
    double true_residual; /* ||b - A x|| / ||b|| */
};

/* The methods of spmv for an operation. */
struct operation_methods {
    /* The name of a backend's method: 0, 1, ... until NULL; without "auto". */
    const char *(*name)(spmv_backend backend, int index);

    /* Opens a method; "auto": the default. SPMV_ERROR_METHOD: no such method. NULL: the operation
     * has no method of spmv. */
    spmv_status (*open)(struct work *work, const char *name, struct method *method);

    /* Runs or queues the method once. Returns 0, or -1 after a failure, with the message in the
     * context. state: struct method. */
    int (*run)(void *state);

    void (*close)(struct method *method); /* NULL: nothing to release */

    /* Copies the result of the last run to work->result; NULL: a run writes there. */
    void (*fetch)(struct work *work);
};

struct operation {
    const char *name;
    const char *formula;
    const char *operator_name, *kind; /* "add", "inclusive"; NULL: not applicable */
    bool on_matrix, on_file;          /* the operand is a matrix, or a file; neither: n elements */
    bool solver;                      /* a run is a whole solve, described in problem.solved */
    bool allocates;                   /* a run takes memory, which is measured on a CPU */
    bool keeps_values;                /* no solver, but generated matrices keep their values, as for one */
    bool unsymmetric;                 /* a solver for matrices that need not be symmetric */
    int peer_op;                      /* enum peer_op; -1: no peers */
    struct operation_methods methods;

    /* Makes the arrays in the context's memory, with contents, and work->state. */
    spmv_status (*setup)(struct work *work);

    /* Releases what setup made besides arrays and the state; NULL: nothing. state may be NULL. */
    void (*release)(struct work *work);

    /* Fills the contents before the check (exact: every correct order of operations gives the same
     * result) and before the timing (full mantissas). NULL: setup's contents are used for both. */
    spmv_status (*fill)(struct work *work, bool exact);

    /* SPMV_OK, or SPMV_ERROR_CHECK if host_result (work->result_bytes bytes) is wrong. NULL: there
     * is no result to check. */
    spmv_status (*check)(struct work *work, const void *host_result, struct check *check);

    /* Changes the options of the timing; NULL: no change. */
    void (*adapt)(struct measure_options *options);
};

/* The operand of an operation. */
struct operand {
    /* host memory, f64, c128 or a pattern, 64-bit offsets; NULL for operations on elements */
    const spmv_csr *matrix;
    /* for spgemm, as matrix: B of C = A B, or P of C = P' (A P); NULL: C = A A */
    const spmv_csr *right, *project;
    const char *path;     /* of the file, for operations on files */
    spmv_type read_type;  /* type to read, or SPMV_TYPE_DEFAULT */
    int64_t n;            /* number of elements, for other operations */
    int64_t mean_segment; /* mean length of segments */
    uint64_t seed;
};

enum { WORK_ARRAYS_MOST = 16 };

struct work {
    /* set by the caller */
    const struct operation *operation;
    const struct operand *operand;
    struct device *device;
    spmv_context *ctx;     /* on the device's stream */
    spmv_context *checker; /* on the host, with another backend than ctx */
    spmv_type type;
    int compression;     /* for spmv's plans */
    int vectors;         /* for spmm, sddmm and batch (systems); 0: 1 */
    int layout;          /* enum spmv_layout, of them */
    int restart;         /* for gmres: iterations between restarts; 0: 50 */
    int max_iterations;  /* of a solver; 0: 3000 */
    bool solutions;      /* of a solver: compare times of whole solutions, not of iterations */
    const char *precond; /* for the next method that is opened; NULL or "": none */
    /* of a solver: called in each iteration of spmv's solves on a CPU; not 0: the run ends soon. NULL: none */
    int (*on_iteration)(int64_t iteration, double residual, void *user);
    void *user;
    /* set by work_open */
    /* the arrays; row_ptr is NULL if a matrix has 2^31 entries or more */
    struct peer_problem problem;
    void *result;        /* in the context's memory: overwritten by a run */
    bool result_on_host; /* result is in host memory instead */
    int64_t result_bytes;
    const void *kept;   /* by work_keep_result; NULL: nothing yet */
    double model_bytes; /* lower bound of the bytes that a run moves */
    double products;    /* of operations on a matrix that are no solvers: multiplications of a run */
    double upload_seconds;
    void *state;          /* of the operation (work_state) */
    char error[WHY_SIZE]; /* message of the last failure */
    /* released by work_close */
    void *arrays[WORK_ARRAYS_MOST], *host_arrays[WORK_ARRAYS_MOST];
    int array_count, host_array_count;
};

/* The operation of that name; NULL if there is none. operation_at(0), (1), ... until NULL. */
const struct operation *operation_find(const char *name);
const struct operation *operation_at(int index);

/* Makes the arrays. Call work_close in any case. */
spmv_status work_open(struct work *work);
void work_close(struct work *work);

/* Fills the result, in the context's memory, with NaN. */
spmv_status work_poison(struct work *work);

/* Keeps a copy of the result, where the result is; *same: whether the result has the bits of the copy. */
spmv_status work_keep_result(struct work *work);
spmv_status work_same_result(struct work *work, bool *same);

/* Copies the result to host memory of result_bytes bytes. */
spmv_status work_download(struct work *work, void *host_result);

/* Functions for the files op_*.c. */

/* Allocates the operation's state, zeroed; released by work_close. NULL: out of memory. */
void *work_state(struct work *work, size_t bytes);

/* Takes ownership of malloc'ed host memory, which work_close releases. Returns it. */
void *work_keep(struct work *work, void *host_memory);

/* Allocates bytes of the context's memory, released by work_close. NULL host_from: contents
 * undefined. Adds the time of the upload. */
spmv_status work_array(struct work *work, const void *host_from, int64_t bytes, const void **array);

/* Copies the message of the failed call on ctx to work->error. */
spmv_status work_fail(struct work *work, spmv_context *ctx, spmv_status status);
spmv_status work_out_of_memory(struct work *work, const char *what, int64_t bytes);

/* n values of the type in host memory: random_value of the seed's stream or, with exact, random -1,
 * 0 and 1, whose sums of up to 2^24 elements are exact in any order. work_values: in new memory
 * (free); NULL: out of memory. */
void work_fill_values(const struct work *work, int64_t n, uint64_t stream, bool exact, void *values);
void *work_values(const struct work *work, int64_t n, uint64_t stream, bool exact);

/* Checks that all cells of cell_bytes bytes equal those of expected, to the last bit. */
spmv_status work_check_cells(struct work *work, const void *host_result, const void *expected, int64_t cell_bytes,
                             struct check *check);

/* method_name and open for an operation with a single method of spmv. */
const char *work_no_names(spmv_backend backend, int index);
spmv_status work_open_only(struct work *work, const char *name, struct method *method);

/* Opens a rung by its name. st: the status of a call to this rung with n = 0. method->state: the
 * name, NULL for "auto". */
spmv_status work_open_rung(struct work *work, const char *name, spmv_status st, struct method *method);

#endif
