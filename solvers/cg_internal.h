/* The inside of conjugate gradients: what the front (cg.c) and the rungs share, and the table of rungs.
 *
 * A rung is one way to run the recurrence: one file with its functions, one row in the table in cg.c. Everything around
 * the recurrence is the front's and the same for every rung: checks, x = 0 for b = 0, the restart from the true
 * residual, stagnation, which x is returned.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_INTERNAL_H
#define CG_INTERNAL_H

#include <spmv/solvers.h>

#include "runtime.h"

/* The scalars of the recurrence lie together in the context's memory: RR, PQ, RZ side by side, to be read in one go.
 * SPARE holds nothing between steps. */
enum cg_scalar { RR, PQ, RZ, ALPHA, MINUS_ALPHA, BETA, RHO_NEW, SPARE, SCALARS };

struct cg_method;

/* One solve. Vectors have n elements of the type in the context's memory. */
struct cg {
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_plan_info info;
    const struct cg_method *method;
    const spmv_preconditioner *precond; /* NULL: none */
    spmv_type type;
    int64_t n;
    const void *b;
    void *x, *r, *p, *q; /* r = b - A x by the recurrence, p: the direction, q = A p */
    void *start_x;       /* x where the recurrence (re)started, and the norm of its true residual */
    double start_residual;
    bool continues;      /* start from r and p of the run before: r becomes b - A x, p moves as r does */
    bool keeps;          /* another run continues: r and p are left as they are when it stops */
    bool knows_residual; /* result->true_residual is that of x: a rung that measures has seen to it */
    double scale;        /* scale factor applied to b and x (a power of two); 0 means unscaled */
    char *scalars;       /* SCALARS of them */
    const spmv_cg_options *options;
    spmv_cg_result *result;
    double rr, pq, rz; /* as last read; rz: r'M^-1 r */
    void *state;       /* the rung's own */
};

struct cg_method {
    const char *name;
    const char *why;   /* one sentence: when auto takes it */
    unsigned backends; /* 1 << SPMV_BACKEND_...: where it exists */
    bool measures;     /* run does the front's part, too: x = 0 with zero_start, ||b|| and the tolerance, and, unless it
                          is cancelled, the true residual. Where b'b is 0 it returns SPMV_OK and does nothing else. */

    /* SPMV_OK, or SPMV_ERROR_UNSUPPORTED with the sentence why not (size, type, preconditioner, the plan's method). */
    spmv_status (*supports)(const struct cg *);

    /* Allocates what the rung needs beyond the vectors of struct cg, into state, once a solve; nothing is allocated
     * later. */
    spmv_status (*prepare)(struct cg *);

    /* The recurrence from the x handed in, r = b - A x, until ||r|| <= cg_enough(), the limit of iterations, or a
     * breakdown. Adds to result->iterations; sets result->recurrence_residual, rr, pq, rz, and where it began start_x
     * and start_residual. Calls cg_tell() for iteration 0 and after each. Returns SPMV_OK, or the failure with its
     * sentence (cg_look_for_breakdown, cg_fail_limit), x being that of the iterations counted. */
    spmv_status (*run)(struct cg *, int64_t max_iterations);

    /* Releases state, which may be half built or NULL. */
    void (*release)(struct cg *);
};

extern const struct cg_method cg_textbook;
extern const struct cg_method cg_fused_cuda;
extern const struct cg_method cg_graph;
extern const struct cg_method cg_persistent_cuda;
extern const struct cg_method cg_fused_omp;

/* Not in the table: runs another one in f32, where there is the option inner. */
extern const struct cg_method cg_inner;

/* What rungs share (cg.c). */

/* Where scalar s lies. */
void *cg_scalar(const struct cg *cg, enum cg_scalar s);

/* Reads count scalars from the first on; waits. */
spmv_status cg_read_scalars(const struct cg *cg, enum cg_scalar first, int count, double *values);

/* Chooses the rung and allocates its workspace, given ctx, plan, info, precond, options and result; what is there is
 * released even after a failure. */
spmv_status cg_open(struct cg *cg);
void cg_close(struct cg *cg);

/* *norm = ||v|| */
spmv_status cg_norm(const struct cg *cg, const void *v, double *norm);

/* to = b - A x */
spmv_status cg_residual(const struct cg *cg, void *to);

/* z = M^-1 r */
spmv_status cg_precondition(const struct cg *cg, const void *r, void *z);

/* r = b - A x, start_x = x; with continues also p moved as M^-1 r is. */
spmv_status cg_start(struct cg *cg);

/* The recurrence stops here: at the tolerance, or where its residual has shrunk by the unit roundoff since it began.
 * The true one, of an x that is rounded to that many digits, cannot have followed then, and only a restart may gain
 * more. So a tolerance out of reach ends in a restart, not in numbers that shrink until they underflow. */
static inline double cg_enough_from(spmv_type type, double tolerance, double start_residual)
{
    const double last = (type == SPMV_F32 ? 0x1p-24 : 0x1p-53) * start_residual;
    return tolerance > last ? tolerance : last;
}

double cg_enough(const struct cg *cg);

/* Tells the callback of an iteration; SPMV_CANCELLED when it asks to stop. */
spmv_status cg_tell(const struct cg *cg, double residual);

/* SPMV_CANCELLED with its sentence. */
spmv_status cg_fail_cancelled(const struct cg *cg);

/* What forbids another step, given rr, pq and rz: SPMV_ERROR_NOT_FINITE, SPMV_ERROR_NOT_POSITIVE. */
spmv_status cg_look_for_breakdown(const struct cg *cg);

/* The option SPMV_SYMMETRY_SAMPLED, given ctx, plan and info: looks once for each set of values of the plan
 * (cg_symmetry.c). */
spmv_status cg_check_symmetry(const struct cg *cg);

/* A plan for several vectors (cg_several.c): results, one a vector, are prepared, and their status is set. Returns that
 * of the first that failed. */
spmv_status cg_solve_several(struct cg *cg, spmv_cg_result *results);

/* The recurrence stopped short, at the limit or where it could not go on, but x is good enough. */
static inline bool cg_has_arrived(spmv_status stop, const spmv_cg_result *result)
{
    return (stop == SPMV_ERROR_ITERATIONS || stop == SPMV_ERROR_STAGNATION || stop == SPMV_ERROR_NOT_FINITE) &&
           result->true_residual <= result->tolerance;
}

/* Squares of numbers as small as the residual may have to get lose their digits. */
bool cg_squares_vanish(spmv_type type, double norm_b, double tolerance);

/* SPMV_ERROR_STAGNATION with its sentence: of a true residual, and of squares that vanish. */
spmv_status cg_fail_stagnation(const struct cg *cg);
spmv_status cg_fail_vanishing(const struct cg *cg, double largest);

/* Where b - A x is not finite after such a stop, an overflow explains it: a p'Ap <= 0 of numbers near the ends of the
 * range says nothing of A. */
static inline bool cg_may_overflow(spmv_status stop)
{
    return stop == SPMV_OK || stop == SPMV_ERROR_NOT_POSITIVE;
}

/* SPMV_ERROR_NOT_FINITE with its sentence: b - A x is not finite. */
spmv_status cg_fail_overflow(const struct cg *cg);

/* SPMV_ERROR_ITERATIONS with its sentence. */
spmv_status cg_fail_limit(const struct cg *cg);

#endif
