/* The inside of algebraic multigrid: the hierarchy, and the functions that its files share. README.md
 * tells the way through the files.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_INTERNAL_H
#define AMG_INTERNAL_H

#include <spmv/spgemm.h>

#include "solvers/amg/amg_rows.h"
#include "solvers/exchange/rank_tools.h"
#include "solvers/precond/precond_internal.h"
#include "solvers/precond/precond_loops.h"

enum {
    AMG_LEVELS = 32,
    AMG_COARSEST = 400,         /* a level of at most so many rows is inverted */
    AMG_COARSEST_GENERAL = 200, /* the same, if the matrix is not symmetric */
    AMG_INVERSE_WORK = 100,     /* multiplications for each entry of the matrix, if another level can follow, */
    AMG_INVERSE_ROWS = 100,     /* or a level of at most so many rows */
    AMG_BLOCKS = 32
};

/* Blocks of the context's memory that are released together. */
struct amg_pool {
    spmv_context *ctx;
    int64_t bytes;
    int blocks;
    void *block[AMG_BLOCKS];
};

/* A level: the matrix A, its smoother, and the transfer to the next level. All arrays are in the
 * context's memory and have the type of the hierarchy (T), unless a comment says otherwise. */
struct amg_level {
    int64_t rows; /* of a; with ranks also those of other ranks beside the own ones (amg_ranks.c) */
    spmv_csr a;
    int64_t all_rows, all_nnz; /* of all ranks */
    /* over ranks: of the vectors that A, P and R multiply; NULL: each rank has the whole level, and then of the
     * residual of the first such level (halo_all). With halo_p, rows of P are those of this rank. */
    struct rank_halo *halo, *halo_p, *halo_r, *halo_all;
    /* in host memory: see struct rank_first; chunk NULL: several ranks would have the whole level */
    int64_t *row_of_rank, *chunk;
    const int32_t *ghost; /* of the halo, in the context's memory */
    void *values;         /* of a; NULL if it borrows the caller's */
    int block;            /* rows of a node, if nulls > 0 */
    int nulls;            /* near-null-space vectors; 0: one, near_null */
    bool alike;           /* the rows of a node have the same columns; known after amg_find_nodes */

    /* the smoother (amg_smoother.c) */
    void *diagonal, *root, *inverse; /* see struct amg_diagonal and the step bound */
    double *least;                   /* f64: the same; NULL on the first level */
    double bound;                    /* of the eigenvalues of D^-1 A */
    int degree;
    struct precond_coefficients step[PRECOND_DEGREE + 1];
    void *smoother; /* its values as a matrix, for two steps; NULL: step by step */
    spmv_plan *plan_smoother;
    /* of a matrix that is not symmetric: see struct amg_halves; plan_smoother is that of `before` */
    spmv_csr before, after;
    void *before_values, *after_values, *fine_inverse;
    spmv_plan *plan_after;

    /* the cycle (amg_cycle.c) */
    spmv_plan *plan, *plan_p, *plan_r;
    void *residual, *x, *d;
    void *part; /* with halo_all: the own elements of residual */

    /* the transfer; not on the last level */
    spmv_csr f;     /* strong couplings (amg_strength.c) */
    void *f_values; /* NULL if f is a */
    int32_t *aggregate;
    const void *near_null; /* NULL: ones */
    double *basis;         /* f64: nulls near-null-space vectors (amg_nodes.c); with ranks of own rows */
    spmv_csr p0, p;        /* tentative and smoothed interpolation (amg_prolong.c) */
    void *p0_values, *p_values;
    double omega;          /* of p */
    spmv_spgemm_plan *fp0; /* NULL if P is made without it */
    spmv_csr r;            /* P', or Q' (amg_galerkin.c) */
    void *r_values;
    spmv_matrix *transpose; /* the pattern of R */
    void *entry;            /* the number in P, or Q, of each entry of R */
    spmv_spgemm_plan *ap, *rap;
    /* of a matrix that is not symmetric (amg_classical.c): A', in the same way, and Q, the interpolation of A'.
     * After set-up only if new values may come */
    spmv_csr a_t, q;
    void *a_t_values, *q_values;
    spmv_matrix *a_transpose;
    void *a_entry;
    struct amg_pool pool;

    /* while the transfer is computed */
    void *strongest;   /* the strongest coupling of each row; NULL: not known */
    void *strongest_t; /* the same of A' */
    void *f_inverse;   /* reciprocals of f's row sums of absolute values, or with `nulls` of its diagonal */
    struct amg_pool work;
};

/* Numbers that the host reads together with others, because each read waits. */
struct amg_cells {
    double least;  /* of the last level made: the smallest ratio of the step coarse_check */
    int64_t total; /* entries of F */
};

/* Where the rows of a level that is about to be made begin, in host memory: see struct rank_first. */
struct amg_coarse_rows {
    int64_t *row_of_rank, *chunk;
};

struct amg {
    spmv_preconditioner *m;
    spmv_context *ctx;
    const struct plan_ranks *ranks; /* that have parts of the matrix; NULL: one has all */
    const struct rank_tools *tools;
    struct amg_coarse_rows coarse;

    /* options */
    bool l1;                   /* the smoother is l1-Jacobi */
    bool updates;              /* the values may be replaced */
    bool any;                  /* the matrix need not be symmetric */
    bool negative;             /* its diagonal is negative */
    int degree;                /* of the smoother; 0: by level and matrix (amg_plan_smoother) */
    double strength;           /* threshold of a strong coupling */
    bool finds_block;          /* block is found, not given */
    int block;                 /* rows of a node of the first level */
    int64_t nodes;             /* with slots, else 0 */
    const int32_t *slot, *row; /* of the first level, in `lasting`: see struct amg_slots; with ranks of own rows */
    /* with ranks and slots: the first node of each rank, and of each own chunk; host memory */
    int64_t *node_of_rank, *node_chunk;
    /* the slots of the whole first level if each of several ranks has it */
    const int32_t *whole_slot, *whole_row;
    int64_t whole_nodes;
    struct amg_pool lasting;
    int nulls;      /* near-null-space vectors; 0: one, and nodes are rows */
    int near_nulls; /* of the caller */
    const void *near_null;
    spmv_type near_null_type;

    /* the matrix as given (amg_given.c); val is in the context's memory, or NULL for a pattern */
    spmv_csr given;
    struct csr_copies given_copies;

    /* the hierarchy */
    spmv_type type; /* that of the vectors, or the other real type */
    double scale;   /* it is that of A times this power of two, or times minus that */
    bool classical; /* classical interpolation in place of aggregates */
    bool irregular; /* the first level has a large bound (amg_smoother.c) */
    bool moves;     /* positive entries are moved before couplings are compared */
    bool general;   /* A is not symmetric: R is not P' */
    int columns;    /* vectors of each product: 1, but in `several` */
    int levels;
    struct amg_level level[AMG_LEVELS];

    /* the inverse of the last level's matrix, if that is small, with all entries (amg_coarsest.c) */
    spmv_csr coarsest;
    void *coarsest_values;
    spmv_plan *plan_coarsest;
    int64_t left_out; /* unknowns left out, because the matrix is singular */
    struct amg_pool pool;

    /* during set-up */
    bool imprecise;          /* an error of the set-up may be due to its narrow type */
    struct amg_cells *cells; /* in the context's memory */
    void *bounds;            /* T: of each level, where l->bound is not known yet */
    bool unchecked;          /* cells->least is of the last level's matrix */

    /* for applications */
    bool broken;                 /* new values were refused */
    void *largest, *scratch;     /* max |r_i|, and scratch memory for it */
    struct amg_several *several; /* the same hierarchy for several vectors (amg_columns.c); NULL: not made */
    struct amg_turned *turned;   /* the same hierarchy for M^-T (amg_transposed.c); NULL: not made */
    bool reversed;               /* it is `turned` of another one */
};

/* ------------------------------------------------------------------- the steps */

/* Runs a step for rows (or entries) 0 to n - 1. arguments: the step's struct. */
spmv_status amg_run(spmv_context *ctx, enum amg_step step, spmv_type type, const void *arguments, int64_t n);
spmv_status amg_run_cuda(spmv_context *ctx, enum amg_step step, spmv_type type, const void *arguments, int64_t n)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* The same in the type of the hierarchy. Fails if the set-up is cancelled, or takes too much work. */
spmv_status amg_run_polled(const struct amg *amg, enum amg_step step, const void *arguments, int64_t n);

/* run_NAME(amg, arguments, n) for each step NAME of amg_rows.h. */
#define AMG_RUN(NAME, name, arguments)                                                                                 \
    static inline spmv_status run_##name(const struct amg *amg, const struct amg_##arguments *s, int64_t n)            \
    {                                                                                                                  \
        return amg_run_polled(amg, AMG_##NAME, s, n);                                                                  \
    }
AMG_STEP_LIST(AMG_RUN)
#undef AMG_RUN

/* --------------------------------------------------------- the arrays (amg_arrays.c) */

spmv_status amg_alloc(struct amg_pool *pool, int64_t bytes, void **memory);
void amg_release(struct amg_pool *pool);
/* Releases the block that was allocated last, with so many bytes. */
void amg_release_last(struct amg_pool *pool, int64_t bytes);

/* n elements of the hierarchy's type */
spmv_status amg_alloc_vector(const struct amg *amg, struct amg_pool *pool, int64_t n, void **memory);

/* Memory of the context, read on the host. */
spmv_status amg_read(const struct amg *amg, const void *from, int64_t bytes, void *host);

/* The largest, the smallest or the sum of n numbers; max |values_i|. */
spmv_status amg_reduce(const struct amg *amg, struct amg_pool *work, spmv_op op, spmv_type type, const void *in,
                       int64_t n, void *host);
spmv_status amg_find_largest(const struct amg *amg, spmv_type type, const void *values, int64_t n, void *host);

int64_t amg_type_size(const struct amg *amg);
bool amg_is_narrower(const struct amg *amg); /* the hierarchy is in f32 under vectors of f64 */

/* A matrix for a step; the bits of the numbers of its entries; one without arrays yet; one with the pattern
 * of `view` and values of the hierarchy's type. */
struct amg_csr amg_rows_of(const spmv_csr *a);
int amg_entry_bits(const spmv_csr *a);
spmv_csr amg_new_view(const struct amg *amg, int64_t rows, int64_t cols, int64_t nnz);

/* l->r of so many rows and entries, not set, in arrays of the level; its offsets. */
spmv_status amg_new_r(const struct amg *amg, struct amg_level *l, int64_t coarse, int64_t nnz, void **offsets);
spmv_csr amg_with_values(const struct amg *amg, spmv_csr view, const void *values);

/* Row offsets of 64 bits from counts; the total. counts has room for n + 1 numbers. */
spmv_status amg_sum_counts(const struct amg *amg, const int64_t *counts, int64_t n, int64_t *offsets, int64_t *total);

/* *m = a matrix in the pool with these numbers of entries in its rows, without columns and values yet. If
 * there are more than `most` in all, it gets no arrays, only their number. */
spmv_status amg_new_rows(struct amg *amg, struct amg_pool *pool, int64_t rows, const int64_t *counts, int64_t cols,
                         int64_t most, spmv_csr *m, void **values);

/* The same for these row offsets, which are the last array of the pool. total: the last of them. */
spmv_status amg_new_entries(struct amg *amg, struct amg_pool *pool, int64_t rows, void *offsets, int64_t total,
                            int64_t cols, int64_t most, spmv_csr *m, void **values);

/* ----------------------------------------------------------- several ranks (amg_ranks.c)
 *
 * Without ranks these do nothing, and return what a rank has that has all. */

/* Own rows of a level, and where they begin in its arrays; the number of row 0 in the whole level. */
int64_t amg_own_rows(const struct amg_level *l);
int64_t amg_room(const struct amg_level *l);
int64_t amg_first_row(const struct amg_level *l);
struct amg_numbers amg_numbers_of(const struct amg_level *l);

/* How many of the own rows are among every stride-th of the whole level; where the first of them is. */
int64_t amg_own_sample(const struct amg_level *l, int64_t stride, int64_t *begin);
void *amg_own_part(const struct amg *amg, const struct amg_level *l, const void *vector);
spmv_csr amg_own_matrix(const struct amg_level *l, spmv_csr a);

/* Elements of other ranks in an array of l->rows elements; size: bytes of one. */
spmv_status amg_fetch(const struct amg *amg, const struct amg_level *l, void *array, int64_t size);
spmv_status amg_fetch_vector(const struct amg *amg, const struct amg_level *l, void *vector);

/* *all: the numbers of all ranks, 8 bytes each, to be released with host_free. */
spmv_status amg_gather_numbers(const struct amg *amg, const void *own, int64_t count, void **all);

/* The largest of each number and the smallest, of all ranks; their sum, on levels of which ranks have parts. */
spmv_status amg_largest_of_ranks(const struct amg *amg, double *numbers, int count);
spmv_status amg_smallest_of_ranks(const struct amg *amg, double *number);
spmv_status amg_add_ranks(const struct amg *amg, const struct amg_level *l, int64_t *number);
/* The same of any level, also before there is one. */
spmv_status amg_add_all_ranks(const struct amg *amg, int64_t *number);

/* counts of rows of other ranks = 0. */
spmv_status amg_clear_others(const struct amg *amg, const struct amg_level *l, int64_t *counts);

/* The lists of rows of other ranks (see the step coarse_near), with those of the own rows, which begin where those
 * of the matrix do: A or A'. */
spmv_status amg_fetch_near(const struct amg *amg, const struct amg_level *l, const spmv_csr *matrix,
                           struct amg_pool *work, struct amg_csr *near);

/* l->a_t = the own rows of A'. The layout of the level becomes that of rows with the columns of A and of A', so it
 * comes before all vectors of the level. */
spmv_status amg_transpose_ranks(struct amg *amg, struct amg_level *l);

/* Rows of other ranks of A with these values, and which of them are needed (rank_tools.h). */
spmv_status amg_fetch_others(const struct amg *amg, const struct amg_level *l, const void *values,
                             const int32_t *needed, int64_t needs, struct amg_pool *work, struct amg_csr *others);

/* amg->given = the rows of the plan; any: the matrix need not be symmetric. The first level. */
spmv_status amg_take_rows_of_rank(struct amg *amg, const spmv_plan *plan, bool any);
spmv_status amg_begin_ranks(struct amg *amg);

/* With several ranks: the halo of the first level, which the caller closes. */
spmv_status amg_open_first(const struct amg *amg, struct amg_level *l);

/* With ranks: sets begins of the first row of each chunk, so that no node is cut; and node_of_rank and node_chunk.
 * before: as in struct amg_places. own: own nodes. */
spmv_status amg_cut_nodes(const struct amg *amg, int64_t *begins, int64_t rows);
spmv_status amg_count_nodes(struct amg *amg, const int64_t *before, int64_t rows, int64_t own);

/* Whether nodes of so many rows are possible: those of the group's matrix, or parts of them. */
spmv_status amg_check_nodes(const struct amg *amg, int block);

/* If the options have coordinates on ranks: near_null and near_nulls in their place, and block. */
spmv_status amg_take_coordinates(struct amg *amg, struct amg_pool *pool, spmv_preconditioner_options *o);

/* Of a level with chunks: sets offsets to the numbers of coarse rows, of which counts are 1 where there is one, and
 * amg->coarse. */
spmv_status amg_number_own(struct amg *amg, const struct amg_level *l, const int64_t *counts, int64_t *offsets,
                           int64_t *total);

/* The matrix of nodes of a level; P0, and the basis of the next level. Basis: of own rows. */
spmv_status amg_find_nodes_of_rank(struct amg *amg, const struct amg_level *l, int64_t *counts,
                                   struct amg_level *nodes);
spmv_status amg_find_basis_of_rank(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes,
                                   int64_t aggregates);

/* R and the next level's matrix. */
spmv_status amg_multiply_ranks(struct amg *amg, struct amg_level *l);

/* If there is one rank, on levels that several would divide: the chunks of nodes; what plans of P and R, and of A,
 * need (halo_p, halo_r, halo), and the chunks of the next level. */
spmv_status amg_take_node_chunks(const struct amg *amg, const struct amg_level *l, struct amg_level *nodes);
spmv_status amg_open_transfers(struct amg *amg, struct amg_level *l);
spmv_status amg_open_alone(const struct amg *amg, struct amg_level *l);

/* Makes a level whole on each rank, if it has at most amg_whole_rows. */
spmv_status amg_make_whole(struct amg *amg, struct amg_level *l);
int64_t amg_whole_rows(const struct amg *amg);

/* A vector with room for all halos of a level: its elements, of which the own ones begin at *room. */
void amg_find_layout(const struct amg_level *l, const struct rank_halo *extra, int64_t *room, int64_t *rows);
void amg_close_ranks(const struct amg *amg, struct amg_level *l);

/* -------------------------------------------------------- the hierarchy (amg_setup.c) */

/* Makes the hierarchy of the type from amg->given. If that fails, there is none, and amg->imprecise tells
 * whether the type may be too narrow for the matrix. */
spmv_status amg_build(struct amg *amg, spmv_type type);

/* Computes all values again, from amg->given. The patterns stay. */
spmv_status amg_renew(struct amg *amg);

/* Releases what amg_build made. */
void amg_clear(struct amg *amg);

/* ----------------------------------------------------------- the parts of a set-up */

/* amg->given = the caller's matrix, with ascending columns. *matrix: owns it, if it had to be sorted. */
spmv_status amg_take_matrix(struct amg *amg, struct precond_source *source, spmv_matrix **matrix);
/* Releases the copy of the values as given, if the hierarchy has its own. */
void amg_drop_given_values(struct amg *amg, const spmv_csr *a);
/* amg->general. */
spmv_status amg_find_symmetry(struct amg *amg);
/* The first level's values, and its near-null-space vectors. */
spmv_status amg_take_values(struct amg *amg);
spmv_status amg_take_near_null(struct amg *amg);
/* *fits: whether squares of the matrix's elements and of the reciprocals of its diagonal stay in the range
 * of the hierarchy's type. They occur in products such as D^-1 A D^-1. After amg_build or amg_renew. */
spmv_status amg_check_range(const struct amg *amg, bool *fits);

/* D^-1, and the bound of the eigenvalues of D^-1 A: in amg->bounds, or with several near-null-space vectors
 * in l->bound. coarsens: also the strongest couplings. */
spmv_status amg_find_smoother(struct amg *amg, struct amg_level *l, bool coarsens);
/* All l->bound; then the steps of the level's smoother. */
spmv_status amg_read_bounds(struct amg *amg);
spmv_status amg_plan_smoother(struct amg *amg, struct amg_level *l);
/* The smoother from x = 0, or after a correction d, of which the residual is still without A d. *changed: by how
 * much x has changed since the residual was that of x. */
spmv_status amg_smooth(const struct amg *amg, const struct amg_level *l, void *x, bool from_zero, void **changed);
/* residual = residual - A v */
spmv_status amg_subtract(const struct amg *amg, const struct amg_level *l, const void *v);

/* amg->moves, from the first level with its strongest couplings. */
spmv_status amg_choose_strength(struct amg *amg, const struct amg_level *l);

/* F and its values, of l, which is the level or its matrix of nodes. counts (l->rows + 1): gets the entries of
 * its rows. */
spmv_status amg_find_strong(struct amg *amg, const struct amg_level *level, struct amg_level *l, int64_t *counts);
spmv_status amg_find_strong_values(struct amg *amg, struct amg_level *l);

/* l->aggregate, and the number of aggregates. counts: of amg_find_strong. */
spmv_status amg_find_aggregates(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t *aggregates);
/* l->aggregate = the numbers of the roots; see the step join_root. roots: with keys. offsets: scratch memory;
 * counts, offsets: l->rows + 1. */
spmv_status amg_number_roots(struct amg *amg, const struct amg_level *l, struct amg_roots *roots, int64_t *offsets,
                             int64_t *total);

/* P of aggregates, and its values. counts: scratch memory. */
spmv_status amg_prolong(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t aggregates);
spmv_status amg_prolong_values(struct amg *amg, struct amg_level *l);
/* Its parts: P0 of aggregates; P of P0. */
spmv_status amg_find_tentative(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t aggregates);
spmv_status amg_smooth_tentative(struct amg *amg, struct amg_level *l);

/* Sets amg->block to the rows of a node, from the pattern of the given matrix: the largest number of at most
 * AMG_NULLS rows for which the rows of each node have entries in the same nodes. Else nodes are rows that follow
 * each other and have the same columns, if most are of the same size; smaller ones have empty slots, and values of
 * the matrix tell which (amg->slot). Else 1. Waits. */
spmv_status amg_find_block(struct amg *amg);
/* The second of these ways, also on ranks: together. */
spmv_status amg_find_slots(struct amg *amg);
struct amg_slots amg_slots_of(const struct amg *amg, const struct amg_level *l);

/* With nodes of several rows or several near-null-space vectors: the matrix of nodes; then P of aggregates of
 * nodes, and the vectors of the next level. */
spmv_status amg_find_nodes(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes);
spmv_status amg_prolong_basis(struct amg *amg, struct amg_level *l, int64_t *counts, struct amg_level *nodes,
                              int64_t aggregates);

/* Classical interpolation: whether to take it; the coarse rows, numbered in l->aggregate, and how many there
 * are; P, and its values. */
spmv_status amg_choose_interpolation(struct amg *amg, const struct amg_level *l);
spmv_status amg_find_coarse_rows(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t *coarse);
spmv_status amg_interpolate(struct amg *amg, struct amg_level *l, int64_t *counts, int64_t coarse);
spmv_status amg_interpolate_values(struct amg *amg, struct amg_level *l);

/* A' of a matrix that is not symmetric, and its values. */
spmv_status amg_transpose_matrix(struct amg *amg, struct amg_level *l);
spmv_status amg_transpose_values(const struct amg *amg, const struct amg_level *l);
/* R is the transpose of this: P, or Q. */
const spmv_csr *amg_source_of_r(const struct amg *amg, const struct amg_level *l);
/* next->a = product->a without its small entries. */
spmv_status amg_drop_small(struct amg *amg, const struct amg_level *product, struct amg_level *next);
/* R = P' (or Q') and the next level's matrix R A P, and their values. The check of that matrix is queued. */
spmv_status amg_multiply(struct amg *amg, struct amg_level *l);
spmv_status amg_multiply_values(struct amg *amg, struct amg_level *l);
/* Checks the next level's matrix; sets its `least`. mass: see the step coarse_mass; NULL: not known yet. */
spmv_status amg_check_next(struct amg *amg, struct amg_level *l, double *mass);
/* What the last check found, if that is not known yet, for the matrix of level l: read now; or given. */
spmv_status amg_judge(struct amg *amg, const struct amg_level *l);
spmv_status amg_judge_read(struct amg *amg, const struct amg_level *l, double least);
/* Fails. ratio: AMG_OVERFLOWN if numbers of the level overflow. */
spmv_status amg_not_positive(const struct amg *amg, const struct amg_level *l, double ratio);

/* The inverse of the last level's matrix. */
spmv_status amg_invert_coarsest(struct amg *amg);

/* What an application needs: the plans and the vectors of the cycle. */
spmv_status amg_plan_cycle(struct amg *amg);
/* The bytes of a level's vectors, which are placed `at` unless that is NULL. With ranks they have room for elements of
 * others, and point to the own ones, but for a level that each rank has whole. */
int64_t amg_place_vectors(const struct amg *amg, struct amg_level *l, char *at);
/* *plan = a plan for a, or the same one with new values. halo: of the vectors, or NULL. */
spmv_status amg_plan_for(const struct amg *amg, const struct rank_halo *halo, const spmv_csr *a, spmv_plan **plan);
/* z = M^-1 r by a V-cycle. */
spmv_status amg_apply(void *amg, const void *r, void *z);
/* The same without scaling: from amg_own_in of the first level, to amg_own_out, own elements. On ranks together. */
spmv_status amg_whole_cycle(const struct amg *amg);
void *amg_own_in(const struct amg_level *l);
void *amg_own_out(const struct amg *amg);
/* x = M^-1 residual of this level and those below it, both in the hierarchy's type. */
spmv_status amg_cycle(const struct amg *amg, int level, void *x);
/* y = alpha plan x, z = z + y. alpha: NULL: 1. rows: of y. */
spmv_status amg_multiply_adding(const struct amg *amg, spmv_plan *plan, const void *alpha, const void *x, void *y,
                                void *z, int64_t rows);

/* M^-T of a matrix that is not symmetric (amg_transposed.c): makes what it needs; z = M^-T r; the cycle of a level other
 * than the last one; releases what was made, before new values. */
spmv_status amg_make_transposed(void *amg);
spmv_status amg_apply_transposed(void *amg, const void *r, void *z);
spmv_status amg_cycle_reversed(const struct amg *amg, int level, void *x);
void amg_drop_transposed(struct amg *amg);

/* The same for several vectors at once (amg_columns.c). drop: releases their plans, before new values. */
extern const struct precond_columns_class amg_columns;
void amg_drop_columns(struct amg *amg);

/* ------------------------------------------------------------------------- backends */

/* Inverts a matrix, a symmetric one times -1, and sets its pivots; see struct amg_dense. Queued. */
spmv_status amg_invert(spmv_context *ctx, const struct amg_dense *dense);
spmv_status amg_invert_cuda(spmv_context *ctx, const struct amg_dense *dense) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* C = R (A P) in one pass for each product (amg_product_cuda.cu). All arrays are in the context's memory,
 * those that are not const are scratch. */
struct amg_galerkin {
    struct amg_csr a, p, r;
    int64_t fine, coarse; /* rows of A and of R */
    int64_t front;        /* with ranks: R has the columns of so many places in front of those of own rows, else 0 */
    int64_t a_nnz, p_nnz;
    int64_t room[2]; /* for A P and for C: entries of the arrays, with two values of the type each */
    void *entries[2];
    uint64_t *places[2];  /* front + fine, with ranks and those of rows of higher ranks, and coarse */
    int32_t *list;        /* the larger of fine and coarse */
    void *counters;       /* AMG_GALERKIN_COUNTERS bytes; the first number: entries[0] in use */
    const void *diagonal; /* of A, in the order of places[0] */
    double *mass;         /* coarse: see the step coarse_mass */
    int64_t *lengths;     /* coarse: entries of each row of C; more than room[1] if C could not be made */
};

enum { AMG_GALERKIN_COUNTERS = 32 };

/* R = P' (amg_product_cuda.cu). counts, entries: scratch memory. */
struct amg_transpose {
    struct amg_csr p, r; /* r: with offsets of 64 bits */
    int64_t fine, coarse, p_nnz, nnz;
    /* with ranks: the numbers of the first row of p and of the column that is row 0 of r, and entries of other ranks */
    int64_t first_row, first;
    struct rank_entries others;
    unsigned *counts; /* coarse */
    void *entries;    /* nnz, with two values of the type each */
};

/* Finished rows of blocks of `width` entries, in any order (amg_blocks_cuda.cu). */
struct amg_finished {
    uint64_t *places; /* of each row */
    int32_t *col;     /* the aggregate of each block */
    void *val;        /* T */
    int64_t room;     /* blocks */
};

/* Warps for a group of rows: one; several if there are few groups; several. */
enum amg_team { AMG_ONE_WARP, AMG_USUAL_TEAM, AMG_SEVERAL_WARPS };

/* A product whose right matrix has rows of blocks. All arrays are in the context's memory, those that are not const
 * are scratch. */
struct amg_block_product {
    const char *name;
    int64_t rows; /* of the left matrix */
    int tall;     /* so many rows after each other have the same columns */
    bool alike;   /* so do rows of `right`, and the left matrix has so many columns after each other */
    int width;
    double expected; /* blocks of a row, roughly */
    enum amg_team team;
    struct amg_csr left, right;
    bool sorted_rows;                    /* the left matrix is one of amg_block_transpose_cuda */
    const struct amg_finished *finished; /* the right matrix; NULL: right */
    struct amg_finished to;
    int64_t *lengths; /* entries of each row; more than room x width if it could not be made; NULL: not wanted */
    const void *diagonal;
    double *mass;      /* see the step coarse_mass; NULL: not wanted */
    int64_t columns;   /* in blocks */
    int32_t *lists[2]; /* rows each */
    void *counters;    /* AMG_GALERKIN_COUNTERS bytes */
    void *tables;      /* of amg_block_tables_cuda bytes */
};

/* R = P', where P has blocks (amg_blocks_cuda.cu). */
struct amg_block_transpose {
    struct amg_csr p, r; /* r: with offsets of 64 bits */
    int64_t fine, aggregates, nnz;
    int width;
    unsigned *counts; /* aggregates: blocks */
    int64_t *offsets; /* aggregates + 1: their sums */
    void *entries;    /* 8 bytes for each block */
};

/* Scratch memory for the last rounds of the independent set (amg_roots_cuda.cu). */
struct amg_root_lists {
    int32_t *lists[2]; /* n each */
    uint64_t *counts;  /* AMG_ROOTS_COUNTS */
    bool few;          /* rows have few couplings */
};

enum { AMG_ROOTS_COUNTS = 4 };

/* The room for this many entries. */
int64_t amg_galerkin_room_cuda(spmv_context *ctx, int64_t entries) CUDA_ONLY(0);

/* A P; then C, which sets lengths and mass. Queued. */
spmv_status amg_ap_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status amg_rap_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Sets columns and values of C, which has its row offsets and nnz entries. Queued. */
spmv_status amg_galerkin_place_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g, struct amg_csr c,
                                    int64_t nnz) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Sets counts to the lengths of the rows of R. Queued. */
spmv_status amg_count_columns_cuda(spmv_context *ctx, const struct amg_transpose *t) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Sets columns and values of R, which has its row offsets. Rows longer than amg_longest_row_cuda get none; then
 * amg_rap_cuda fails to make the row of C. Queued. */
int64_t amg_longest_row_cuda(void) CUDA_ONLY(0);
spmv_status amg_transpose_cuda(spmv_context *ctx, spmv_type type, const struct amg_transpose *t)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* On a GPU with several near-null-space vectors (amg_blocks.c): products and the matrix of nodes in one pass each, and
 * R. *made: false if that takes too much memory, or too many rows are too long. */

/* Queues the product, with s->to and scratch memory in the pool. room: blocks. Or, with slots, the matrix of nodes of
 * s->left. */
spmv_status amg_block_multiply(struct amg *amg, struct amg_pool *work, struct amg_block_product *s, int64_t room,
                               const struct amg_slots *slots);
/* *m = its result, in the pool. cols: of m. */
spmv_status amg_block_result(struct amg *amg, struct amg_pool *pool, const struct amg_block_product *s, int64_t cols,
                             spmv_csr *m, void **values, bool *made);
/* A P0 in place of P. */
spmv_status amg_block_smooth(struct amg *amg, struct amg_level *l, bool *made);
/* R, and next->a. */
spmv_status amg_block_galerkin(struct amg *amg, struct amg_level *l, struct amg_level *next, double *mass, bool *made);

/* The room for this many blocks; the bytes of tables in global memory. */
int64_t amg_block_room_cuda(spmv_context *ctx, int64_t blocks) CUDA_ONLY(0);
int64_t amg_block_tables_cuda(spmv_type type, int64_t columns, int width) CUDA_ONLY(0);

/* Sets s->to, lengths and mass. Queued. */
spmv_status amg_block_product_cuda(spmv_context *ctx, spmv_type type, const struct amg_block_product *s)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* The same for the matrix of nodes of s->left. */
spmv_status amg_node_rows_cuda(spmv_context *ctx, spmv_type type, const struct amg_block_product *s,
                               const struct amg_slots *slots) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Sets columns and values of C, which has its row offsets and nnz entries. Queued. */
spmv_status amg_block_place_cuda(spmv_context *ctx, spmv_type type, int64_t rows, int64_t nnz, int width,
                                 const struct amg_finished *f, struct amg_csr c) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Sets counts. Queued. */
spmv_status amg_count_blocks_cuda(spmv_context *ctx, const struct amg_block_transpose *t)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Sets offsets, columns and values of R. Rows that are too long get none; then amg_block_product_cuda does not make
 * the row of C. Queued. */
spmv_status amg_block_transpose_cuda(spmv_context *ctx, spmv_type type, const struct amg_block_transpose *t)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* *differ: becomes 1 if rows of a node differ; it is 0 before. The step orthonormal. (amg_nodes_cuda.cu) Queued. */
spmv_status amg_alike_cuda(spmv_context *ctx, const struct amg_likeness *s, int64_t nodes, int *differ)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status amg_orthonormal_cuda(spmv_context *ctx, const struct amg_basis *s, int64_t aggregates)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Goes on with the independent set, after a step mis_decide, until all rows are decided, or a row is too
 * long. Waits. */
spmv_status amg_roots_cuda(spmv_context *ctx, const struct amg_aggregates *s, const struct amg_root_lists *r, int64_t n,
                           bool *too_long) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* On ranks: lists of own rows for later rounds: lists[0] those whose near_key is not final, lists[1] the undecided ones
 * of n rows from `first` on, counts: how many, and the steps mis_spread and mis_decide for the rows of these lists.
 * Queued. */
spmv_status amg_list_roots_cuda(spmv_context *ctx, const struct amg_aggregates *s, const struct amg_root_lists *r,
                                int64_t first, int64_t n) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status amg_spread_listed_cuda(spmv_context *ctx, const struct amg_aggregates *s, const struct amg_root_lists *r,
                                   int64_t n) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status amg_decide_listed_cuda(spmv_context *ctx, const struct amg_aggregates *s, const struct amg_root_lists *r,
                                   int64_t n) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
