/* The job of spmv solve, and its steps: prepare (solve_prepare.c), solve (solve_attempt.c), check
 * (solve_check.c), report (solve_report.c). cmd_solve.c calls them. On ranks each rank has a job of
 * its own, and the solver is that of solve_ranks.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVE_JOB_H
#define SOLVE_JOB_H

#include "app/input.h"
#include "app/product.h"
#include "app/solve/solve.h"
#include "app/solve/solve_place.h"

struct job {
    struct place *place;
    const struct options *o;
    const struct wish *wish;
    struct input in;
    spmv_statistics statistics; /* unknown on ranks */
    struct product p;           /* b = A ones, then b - A x */
    spmv_type type;             /* of b and x */
    const char *rung;           /* NULL: auto */
    void *b_read, *b_made, *x0;
    const void *b;               /* a vector of the place: b_read or b_made */
    void *context_b, *context_x; /* in the context's memory, not on ranks */
    void *near_null;             /* in the context's memory, near_nulls numbers a row; NULL: none */
    int near_nulls;
    void *null_space; /* the same of null vectors */
    int null_vectors, null_block;
    void *coordinates; /* f64, dimensions numbers a node; NULL: none */
    int64_t nodes;
    int dimensions;
    int32_t *fields;        /* of each row; NULL: not given */
    struct input schur;     /* a matrix for the Schur complement; without rows: not given */
    const char *schur_form; /* NULL: not given */
    double look_seconds, upload_seconds, made_seconds;
    int columns; /* right-hand sides */
    double goal; /* the smallest tolerance that is not 0 */
    struct attempt *attempt;
    int attempts;
    int best; /* the attempt whose x is the answer; -1: none */
};

/* ---------------------------------------------------------------- solve_job.c */

/* Bytes of all right-hand sides, or of all solutions. */
int64_t job_vector_bytes(const struct job *job);

/* The modulus of the difference of element i of a block of vectors, stored row by row, and a number. */
double job_difference(const struct job *job, const void *vector, int64_t i, const void *number);

/* Whether the solution from which b is made is random, else ones. */
bool job_is_random(const struct job *job);

/* Whether the matrix is symmetric, or Hermitian if complex. */
bool job_is_symmetric(const struct job *job);

/* Whether the job runs on a GPU, where rungs may sum residuals in another order and report several
 * iterations at once, after they ran. */
bool job_on_gpu(const struct job *job);

/* ||r|| of right-hand side v. The sum is in long double, so that squares do not overflow or
 * vanish. */
double job_norm(const struct job *job, const void *r, int v);

/* sqrt(x'b), which is ||x||_A of a solution; 0 if x'b is not positive. */
double job_energy_norm(const struct job *job, const void *x, int v);

/* Adds to an error message what to try next. a: NULL before the solve. */
void job_tell_next(const struct job *job, const struct attempt *a, spmv_status stop);

void job_release(struct job *job);

/* ---------------------------------------------------------------- solve_least_squares.c */

/* Whether it is the name of a solver of least squares. */
bool is_least_squares_name(const char *solver);

/* Whether the options ask for least squares: by a solver of that name, or with --damp. */
bool options_ask_least_squares(const struct options *o);

/* The same for a job whose matrix is loaded, also where the matrix is not square. */
bool job_is_least_squares(const struct job *job);

/* Solves, reports and writes: all that follows the loading of the matrix. */
spmv_status job_solve_least_squares(struct job *job);

/* ---------------------------------------------------------------- solve_prepare.c */

/* Checks the options and arguments, and finds where the answer is written. */
spmv_status job_check_options(const struct options *o, struct wish *wish);

/* Loads the matrix. */
spmv_status job_load(struct job *job);

/* Loads the vectors, and makes the plan. */
spmv_status job_begin(struct job *job);

/* Computes b = A solution and checks it: with a wrong b, a right x would appear wrong. */
spmv_status job_make_b(struct job *job);

/* The plan of the product with A, in job->p. */
spmv_status job_make_plan(struct job *job);

/* ---------------------------------------------------------------- solve_backend.c */

/* Whether the options leave it open to job_decide where the job runs: not if they name the backend, a
 * GPU, or something that only cuda has. */
bool job_decides(const struct options *o);

/* --backend auto: stays on the CPU, or opens the context again on a GPU. Once the matrix is loaded and
 * the number of right-hand sides is known. */
spmv_status job_decide(const struct job *job);

/* What that takes for a matrix with one right-hand side, for spmv info. threads: of the CPU. */
struct solve_place solve_place_of(const struct options *o, const spmv_csr *a, spmv_type type, bool symmetric,
                                  int threads);

/* ---------------------------------------------------------------- solve_attempt.c */

/* Makes the preconditioner of that attempt, solves, and keeps the best attempt in job->best. */
spmv_status job_solve(struct job *job, int number);

/* The solver's callback; user: the attempt. */
int attempt_on_iteration(int64_t iteration, double residual, void *user);

/* Whether the attempt has an x. If one right-hand side shows that the matrix is indefinite, none
 * has. */
bool attempt_has_x(const struct attempt *a);

/* The largest error of all right-hand sides. */
double attempt_largest_error(const struct attempt *a);

/* ---------------------------------------------------------------- solve_ranks.c */

/* A sentence about options that are not possible on ranks; NULL: all are. */
const char *job_refuse_ranks(const struct options *o);

/* Whether a solve that ended so has told about the system, and may have an x. */
bool attempt_is_verdict(spmv_status st);

/* The options of the preconditioner. */
void attempt_precond_options(const struct job *job, spmv_preconditioner_options *options);

/* Together: solves, as spmv_solver_solve. */
spmv_status job_solve_on_ranks(struct job *job, struct attempt *a, spmv_solver_result *results);

/* Together: the norms of residuals. */
spmv_status job_norms_on_ranks(const struct job *job, const void *r, double *norms);

/* ---------------------------------------------------------------- solve_check.c */

/* Computes the residual as a product, checks its rows, then its norm. a->verdict keeps a failure
 * for the end. */
spmv_status job_check(struct job *job, struct attempt *a);

/* ---------------------------------------------------------------- solve_report.c */

/* Whether an x is written: not for a matrix that proved indefinite. */
bool job_writes_x(const struct job *job);

/* --history: one line per iteration; with several preconditioners, the first column is their
 * name. */
spmv_status job_write_history(const struct job *job);

/* The JSON object of one solve. If the preconditioner could not be made: a status and the
 * reason. */
json_t *job_json(const struct job *job, const struct attempt *a);

/* The summary of one solve; with --precond all, a line for each preconditioner. */
void job_remark(const struct job *job, const struct attempt *a);
void job_remark_table(const struct job *job);

/* Print the result of the check; why the solve stopped, and what to try next. */
void job_tell_verdict(const struct job *job, const struct attempt *a);
void job_tell_failure(const struct job *job, const struct attempt *a);

#endif
