/* The inside of a preconditioner, the table of kinds, and "auto".
 *
 * A kind is one way to make an M: one file with a function that fills the preconditioner, and one
 * row in the table (precond.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_INTERNAL_H
#define PRECOND_INTERNAL_H

#include <math.h>
#include <string.h>

#include <spmv/preconditioner.h>

#include "core/backend.h"
#include "core/host_device_fn.h"
#include "core/reals.h"
#include "formats/matrix_internal.h"

enum { PRECOND_NAME = 64, PRECOND_SENTENCE = 512, PRECOND_DEGREE = 100 /* the largest degree */ };

/* M of several vectors at once, between open and close: its user writes `in`, calls run, and reads `out`. Both have
 * element v of row i at i * stride + v, 0 <= v < stride, of the type, in the context's memory. out is M^-1 in / factor;
 * elements from `columns` on must be 0. divides: the type is narrower than that of M, so in must be near 1: its columns
 * are divided by powers of two, and those of out multiplied by them. */
struct precond_columns {
    const spmv_preconditioner *m;
    spmv_type type;
    int columns;
    int64_t stride;
    bool divides;
    double factor;
    void *in, *out;
};

/* The functions of a kind that has this. open: m and columns are set. SPMV_ERROR_UNSUPPORTED, without a message: not
 * now. Plans are kept for the next open. */
struct precond_columns_class {
    spmv_status (*open)(void *self, struct precond_columns *c);
    spmv_status (*run)(void *self);
    void (*close)(void *self);
};

/* What a preconditioner costs (precond_costs.h). In steps of the solver that begins, without a preconditioner; on a GPU
 * in microseconds. Counted from the sizes of a matrix and by a sample of it, never timed. */
struct precond_cost {
    double setup; /* making it */
    double step;  /* a step with it */
    double steps; /* that a solve may take where it is a good choice, or takes by a sample */
};

/* What a sample tells of the first choice and of its rival. NULL: nothing. */
struct precond_estimate {
    const char *name;
    struct precond_cost cost;
};
enum { PRECOND_ESTIMATES = 2 };

struct spmv_preconditioner {
    spmv_context *ctx;
    spmv_type type;
    int64_t rows;
    spmv_status (*apply)(void *self, const void *r, void *z);
    /* z = M^-T r. NULL: not made yet, or not possible. It is `apply` if M is symmetric. */
    spmv_status (*apply_transposed)(void *self, const void *r, void *z);
    spmv_status (*transpose)(void *self); /* makes what apply_transposed needs, and sets it; NULL: nothing to make */
    const struct precond_columns_class *columns; /* NULL: one vector after the other */
    void (*destroy)(void *self);
    spmv_status (*renew)(void *self, const void *values); /* new values; NULL: not supported */
    void *self;
    const void *inverse_diagonal;       /* for "jacobi" */
    bool identity;                      /* for "none" */
    const struct precond_pair *factors; /* for "fsai" and "isai" */
    struct object_use use;              /* by solves, and by an application */
    bool applies;                       /* an application has not ended */
    spmv_plan *plan;                    /* the caller's, that it uses; NULL: none */
    bool together;                      /* several ranks call apply together, also a rank without rows */
    int64_t bytes;
    double seconds;
    double lowest, highest, shift;
    int64_t levels, fallen;
    /* under "auto": the kind that may be better, and another one if that cannot be made or is not, NULL: none;
     * iterations that are expected with none or jacobi, 0: not known; steps of none that making a complete factor takes, if
     * that is the rival */
    const char *rival, *spare;
    double expected, rival_setup;
    bool nodes; /* the matrix has several unknowns to a node */
    struct precond_estimate sampled[PRECOND_ESTIMATES];
    char name[PRECOND_NAME];
    char why[PRECOND_SENTENCE];
    char layout[PRECOND_SENTENCE];
    spmv_matrix *filled; /* the matrix that M was made of, if it is not the caller's; NULL: it is */
    void *modes;         /* near-null-space vectors made from coordinates, for new values; NULL: none */
    int64_t modes_bytes;
};

/* The envelope of a symmetric matrix in some order of its rows: in each row the places from the
 * first entry to the diagonal. A complete factor needs no others. */
struct envelope {
    double entries;  /* of the envelope */
    double products; /* multiplications of the factorization */
    int32_t *order;  /* order[p]: the row at place p */
    int32_t *width;  /* width[p]: places in front of its diagonal */
    bool reordered;  /* reverse Cuthill-McKee; else the order of the matrix */
};

/* The input of a kind. */
struct precond_source {
    const spmv_csr *a; /* as given by the caller */
    /* the same, readable on the host, checked: square, valid columns, any order; only its sizes for
     * kinds that need no more than the diagonal */
    spmv_csr host;
    struct csr_copies copies; /* of the arrays of a, for host */
    bool read;                /* host is complete */
    /* the sum of the diagonal entries of each row; finite and positive. In host memory, or where
     * that would need a copy of the matrix, in the context's memory. The other one is NULL. */
    double *diagonal, *device_diagonal;
    int64_t bad; /* the first row whose sum is not positive or not finite, and the sum; else rows */
    double bad_value;
    /* Rows without entries, such as isolated vertices of a graph, are left alone: M is made of a
     * copy of A with 1 on their diagonal, to which a and host then point. alone: their number. */
    spmv_csr filled;
    spmv_matrix *filled_host, *filled_there; /* its arrays, the latter in the memory of a GPU */
    bool kept;                               /* the preconditioner owns filled_host */
    int64_t alone, first_alone;
    struct envelope envelope; /* if envelope_find was called */
    bool sampled;             /* for precond_create_sampled, or precond_create_good_schur */
    const spmv_preconditioner_options *options;
    const struct precond_whole *whole; /* of several ranks: then a has sizes only */
};

/* For amg and "auto": replaces the coordinates in the options by the rigid body modes (amg_rigid.c),
 * near_null, and sets block. *vectors: these modes in the context's memory, which the caller frees
 * with context_free after the last use of the options; NULL: there are none. */
spmv_status precond_take_coordinates(spmv_context *ctx, const char *name, const spmv_csr *a,
                                     spmv_preconditioner_options *o, void **vectors, int64_t *bytes);

/* Sets source->envelope, once: in the matrix's own order or in reverse Cuthill-McKee order,
 * whichever takes fewer multiplications. The matrix must have been read. */
spmv_status envelope_find(spmv_context *ctx, struct precond_source *source);
void envelope_release(struct envelope *e);

/* What "auto" reads of a matrix whose diagonal has no zeros; a row with a negative diagonal entry is read with the other
 * sign. Parts of a diagonal entry: the sum of the positive entries beside it, above which they weigh something; the sum
 * of its row, below which that is nearly 0. */
#define PRECOND_POSITIVE 0.1
#define PRECOND_BALANCE 1e-4
struct precond_look {
    double heaviest;          /* the largest sum of |a_ij|, j != i, over a_ii */
    double smallest, largest; /* of the diagonal */
    int64_t beside;           /* off-diagonal entries that are not 0 */
    int64_t positive;         /* of these */
    int64_t mixed;            /* rows in which they weigh something */
    int64_t balanced;         /* rows whose sum is nearly 0 */
    int64_t weights;          /* the sum of precond_weight over the rows */
    int64_t alike;            /* rows with the columns of the row before; not on a GPU */
    double products;          /* of the envelope in the matrix's own order; not on a GPU */
};

/* The entries beside the diagonal of a row; a value is added after the others. */
struct precond_row {
    double sum, above; /* of |a_ij|, and of the positive ones */
    int64_t beside, positive;
};

static inline void precond_row_add(struct precond_row *row, double value)
{
    if (value == 0)
        return;
    row->sum += fabs(value);
    row->above += value > 0 ? value : 0;
    row->beside++;
    row->positive += value > 0;
}

static inline bool precond_row_is_mixed(const struct precond_row *row, double diagonal)
{
    return row->above > PRECOND_POSITIVE * diagonal;
}

static inline bool precond_row_is_balanced(const struct precond_row *row, double diagonal)
{
    return fabs(diagonal - row->sum + 2 * row->above) <= PRECOND_BALANCE * diagonal;
}

/* Whether the row of the entries begin ... end - 1 has the columns of the one of before ... begin - 1. */
static inline bool precond_row_is_alike(const int32_t *col, int64_t before, int64_t begin, int64_t end)
{
    return end - begin == begin - before && memcmp(col + before, col + begin, (size_t)(end - begin) * sizeof *col) == 0;
}

/* The sum of |a_ij|, j != i, over a_ii, in whole parts, whose sum over the rows does not depend on their order. */
enum { PRECOND_MOST_WEIGHT = 1024, PRECOND_WEIGHT_PARTS = 65536 };
HOST_DEVICE_FN int64_t precond_weight(double ratio)
{
    return (int64_t)(fmin(ratio, PRECOND_MOST_WEIGHT) * PRECOND_WEIGHT_PARTS);
}

/* Its mean over the rows. */
static inline double precond_mean_weight(const struct precond_look *look, int64_t rows)
{
    return (double)look->weights / PRECOND_WEIGHT_PARTS / (double)rows;
}

/* A breadth-first search from row 0 along entries, which ends when it has reached PRECOND_BALL rows or
 * all that can be reached, or after PRECOND_BALL_STEPS steps. */
enum { PRECOND_BALL = 4096, PRECOND_BALL_STEPS = 256 };
struct precond_ball {
    int32_t steps;        /* from row 0 to the last rows reached */
    int32_t rows, inside; /* reached after all steps; after half of them, rounded down */
    int32_t ended;        /* 1: no other row can be reached */
};

/* What "auto" reads of a matrix of several ranks; find_ball is called together. */
struct precond_whole {
    void *self;
    struct precond_look look;
    spmv_status (*find_ball)(void *self, struct precond_ball *ball);
};

struct precond_kind {
    const char *name;
    /* What it needs of A. PRECOND_IN_CONTEXT: the arrays where they are, which it checks itself. */
    enum precond_needs { PRECOND_NOTHING, PRECOND_DIAGONAL, PRECOND_MATRIX, PRECOND_IN_CONTEXT } needs;

    /* Fills apply, destroy, self and the informational members. On failure nothing is left in
     * self. */
    spmv_status (*make)(spmv_preconditioner *m, struct precond_source *source);

    /* For which matrices a diagonal entry may be zero or negative; for others it is an error. */
    enum precond_signs { SIGNS_POSITIVE, SIGNS_UNSYMMETRIC /* with the option general */, SIGNS_ANY } signs;

    bool unsymmetric; /* M is not symmetric: for solvers of matrices that are not symmetric only */
    bool factors;     /* triangular factors, which are checked by a solve */

    /* Why it does not exist on cuda, and what to take there; NULL: it does. */
    const char *not_on_cuda;
};

/* Whether the preconditioner of this name (NULL: none is named) is for matrices that are not
 * symmetric only. */
bool precond_is_unsymmetric(const char *name);

/* Whether "auto" takes "schur", since its options are given. */
bool precond_wants_schur(const char *name, const spmv_preconditioner_options *o);

/* Sets source->host, diagonal and bad, and checks the matrix. SPMV_ERROR_NOT_POSITIVE names the bad
 * row. name: the preconditioner. */
spmv_status precond_source_read(spmv_context *ctx, const char *name, struct precond_source *source);

/* *bad: the first row of a matrix on the device in which the sum of the diagonal entries is not positive and
 * finite; rows: none. Waits. */
spmv_status precond_find_bad(spmv_context *ctx, const spmv_csr *a, int64_t *bad);

/* What "auto" reads of rows on the device, whose diagonal entries are in columns first, first + 1, ..., and are
 * a matrix by themselves; bad as in precond_find_bad, and that sum. Waits. */
spmv_status precond_look_at_rows(spmv_context *ctx, const spmv_csr *diagonal, const spmv_csr *rows, int64_t first,
                                 struct precond_look *look, int64_t *bad, double *bad_value);

/* Allocates memory in the context, counted in m->bytes. */
spmv_status precond_alloc(spmv_preconditioner *m, int64_t bytes, void **memory);

/* Copies host numbers to the context's memory, rounded to m->type, counted in m->bytes. */
spmv_status precond_upload(spmv_preconditioner *m, const double *host, int64_t n, void **memory);

/* Checks that a diagonal entry and its reciprocal are finite in m->type. SPMV_ERROR_SINGULAR if the
 * entry is 0, else SPMV_ERROR_NOT_FINITE; the message names the row. */
spmv_status precond_check_reciprocal(const spmv_preconditioner *m, int64_t row, double diagonal);

/* precond_upload for the reciprocals of the diagonal, each checked. */
spmv_status precond_upload_reciprocals(spmv_preconditioner *m, const struct precond_source *source, void **reciprocals);

/* The value of entry k. */
static inline double precond_value(const spmv_csr *a, int64_t k)
{
    return a->val == NULL ? 1 : real_at(a->type, a->val, k);
}

spmv_status precond_make_none(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_jacobi(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_block_jacobi(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_chebyshev(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_ic0(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_cholesky(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_ilu0(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_ilut(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_fsai(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_isai(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_amg(spmv_preconditioner *, struct precond_source *);
spmv_status precond_make_schur(spmv_preconditioner *, struct precond_source *);

/* ----------------------------------------------------------- "auto" (precond_choose.c) */

/* What a preconditioner is for: cg; minres, so M must be positive definite; gmres and bicgstab. */
enum precond_for { PRECOND_FOR_CG, PRECOND_FOR_MINRES, PRECOND_FOR_UNSYMMETRIC };

struct precond_choice {
    const char *name;           /* of a kind */
    const char *rival;          /* another one that may be better, which a solve finds out; NULL: none */
    const char *spare;          /* the rival if that one cannot be made, or is not better; NULL: none */
    double expected;            /* iterations with none or jacobi; 0: not known */
    bool nodes;                 /* several unknowns to a node */
    double rival_setup;         /* of a complete factor as the rival: steps of none that making it takes */
    char why[PRECOND_SENTENCE]; /* the reason */
    enum precond_for purpose;
    bool replaced; /* the first choice could not be made */
    struct precond_estimate sampled[PRECOND_ESTIMATES];
};

/* Whether ranks make this kind together, of the whole matrix. Others they would make of their own rows, so that
 * iterations depend on the number of ranks. */
bool precond_is_of_ranks(const char *name);

/* Chooses a kind. source: with the diagonal read; NULL for minres. Of several ranks: one that they make together, as
 * its rival. */
spmv_status precond_choose(spmv_context *ctx, enum precond_for purpose, struct precond_source *source,
                           struct precond_choice *choice);

/* The same for cg as without ranks, of a real matrix. */
spmv_status precond_choose_for_cg(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                  struct precond_choice *choice);

/* gmres on a GPU: its first iterations, which show whether another preconditioner pays. */
enum { PRECOND_TRIAL = 48 };

/* As spmv_preconditioner_create with "auto", for a solve with cg that tries others on a sample of the matrix
 * (solver_race.c), from PRECOND_SAMPLED_ROWS rows on and not on a GPU: less is decided before. */
enum { PRECOND_SAMPLED_ROWS = 4000 };
spmv_status precond_create_sampled(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                   spmv_preconditioner **made);

/* The same for gmres and bicgstab, of a real matrix. */
spmv_status precond_choose_unsymmetric(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                       struct precond_choice *choice);

/* As spmv_preconditioner_create with "schur", for "auto": only if the second field are the rows whose diagonal entry is 0,
 * and minres will take few iterations by an estimate; else SPMV_ERROR_UNSUPPORTED or SPMV_ERROR_LIMIT. */
spmv_status precond_create_good_schur(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *options,
                                      spmv_preconditioner **made);

/* After making the choice failed with this status and the message in ctx: the next one, with the
 * reason. False: none is left, or the status is no reason to take another one. */
bool precond_choose_next(const spmv_context *ctx, spmv_status st, struct precond_choice *choice);

/* What races against the choice that has been made; NULL: nothing. ilu0 only stands in for ilut if that takes too
 * much work. */
const char *precond_choice_rival(const struct precond_choice *choice);

/* The work (context_pace) that making the choice may take; 0: any. */
int64_t precond_choice_work(const struct precond_choice *choice, const spmv_csr *a);

/* The work (context_pace) of an incomplete factor that takes as long as a hierarchy and its iterations. */
int64_t precond_factor_work(const spmv_csr *a);

/* Multiplications of a complete factorization that take as long as so many steps without a preconditioner. */
double precond_products(const spmv_csr *a, double steps);

/* The most work (context_budget) of a set-up under "auto". */
int64_t precond_most_work(const spmv_csr *a);

/* ----------------------------------------------------------- for the solvers */

spmv_context *precond_context(const spmv_preconditioner *m);
spmv_type precond_type(const spmv_preconditioner *m);
int64_t precond_rows(const spmv_preconditioner *m);
const char *precond_name(const spmv_preconditioner *m);

/* For a preconditioner that only multiplies by the reciprocals of the diagonal ("jacobi"): these
 * rows numbers, in the context's memory, for fused kernels. NULL for all others. */
const void *precond_inverse_diagonal(const spmv_preconditioner *m);

/* For a preconditioner that multiplies by G and then by G' ("fsai", "isai"): the plans for these products, whose
 * matrices (spmv_plan, a) kernels may read. *_cells[k]: what slices of PRECOND_SLICE rows as wide as their
 * longest row need before row k PRECOND_SLICE; on a GPU, up to PRECOND_SLICED_ROWS rows, else NULL. NULL for
 * all others. */
enum { PRECOND_SLICE = 32, PRECOND_SLICED_ROWS = 1 << 17 };
struct precond_pair {
    const spmv_plan *g, *transposed;
    int64_t *g_cells, *transposed_cells;
};
const struct precond_pair *precond_factors(const spmv_preconditioner *m);

/* The power of two that is not larger than x, at least 2^-1022; 1 for 0 and for numbers that are not finite. */
double precond_power_of_two(double x);

/* Several vectors at once; see struct precond_columns. close accepts one that was not opened: all bits 0. */
bool precond_takes_columns(const spmv_preconditioner *m);
spmv_status precond_columns_open(const spmv_preconditioner *m, int columns, struct precond_columns *c);
spmv_status precond_columns_run(const struct precond_columns *c);
void precond_columns_close(struct precond_columns *c);

/* Begin and end a use of M and of the plan that it borrows, in which both keep their values and are
 * not destroyed; NULL is allowed. M is not const in its own file: use counts do not change what it
 * does. */
void precond_begin_use(const spmv_preconditioner *m);
void precond_end_use(const spmv_preconditioner *m);

/* Makes what M^-T needs, so that applications of it neither allocate nor wait. SPMV_ERROR_UNSUPPORTED: an own
 * preconditioner without apply_transposed. */
spmv_status precond_transpose(const spmv_preconditioner *m);

/* Whether M^-T is M^-1. */
bool precond_is_symmetric(const spmv_preconditioner *m);

/* *made: a preconditioner whose application is that of M transposed, with the name of M. It must be destroyed before M. */
spmv_status precond_make_adjoint(const spmv_preconditioner *m, spmv_preconditioner **made);

/* Whether spmv_preconditioner_update_values may succeed. */
bool precond_renews(const spmv_preconditioner *m);

/* The kind that may be better (solver_race.c); NULL: none. */
const char *precond_rival(const spmv_preconditioner *m);

/* What races if that cannot be made, or is not better; NULL: nothing. */
const char *precond_spare(const spmv_preconditioner *m);

/* Of a preconditioner that was made as chosen: what a race needs to know. */
void precond_take_choice(spmv_preconditioner *m, const struct precond_choice *choice);

/* Whether the matrix has several unknowns to a node, as far as "auto" has looked. */
bool precond_has_nodes(const spmv_preconditioner *m);

/* Iterations that are expected with none or jacobi; 0: not known. */
double precond_expected(const spmv_preconditioner *m);

/* Steps of none that making a complete factor takes, if that is the rival. */
double precond_rival_setup(const spmv_preconditioner *m);

/* What a sample tells of this preconditioner; NULL: nothing. */
const struct precond_estimate *precond_sampled(const spmv_preconditioner *m, const char *name);

/* Whether M is the identity ("none"), which a solver can skip. */
bool precond_is_identity(const spmv_preconditioner *m);

#endif
