/* The inside of algebraic multigrid: the hierarchy, and the functions that its files share.
 *
 * precond_amg.c makes the preconditioner and applies the cycle, amg_setup.c makes the hierarchy,
 * amg_rows.h has the steps of both.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_INTERNAL_H
#define AMG_INTERNAL_H

#include <spmv/multiply.h>

#include "solvers/amg/amg_rows.h"
#include "solvers/precond/precond_loops.h"

enum {
    AMG_LEVELS = 32,
    AMG_BOTTOM = 400,    /* a level of at most so many rows is inverted */
    AMG_DEGREE = 2,      /* products of a smoother, by default */
    AMG_LAST_DEGREE = 8, /* of the last level, if it is too large to be inverted */
    AMG_BLOCKS = 24
};

/* Blocks of the context's memory that are released together. */
struct amg_pool {
    spmv_context *ctx;
    int64_t bytes;
    int blocks;
    void *block[AMG_BLOCKS];
};

spmv_status amg_alloc(struct amg_pool *pool, int64_t bytes, void **memory);
void amg_release(struct amg_pool *pool);
/* Releases the block that was allocated last, with so many bytes. */
void amg_release_last(struct amg_pool *pool, int64_t bytes);

/* A level: the matrix A, its smoother, and the transfer to the next level. All arrays are in the
 * context's memory and have the type of the hierarchy, unless struct amg_rows says otherwise. */
struct amg_level {
    int64_t rows;
    spmv_csr a;
    void *values;                  /* of a; NULL if it borrows the caller's */
    void *diagonal, *root, *least; /* see struct amg_rows; least: NULL on the first level */
    void *inverse;                 /* of the smoother */
    double bound;                  /* of the eigenvalues of D^-1 A */
    int degree;                    /* of the smoother */
    struct precond_coefficients step[PRECOND_DEGREE + 1];
    spmv_plan *plan;
    void *smoother; /* values of the smoother as a matrix, for two steps; NULL: step by step */
    spmv_plan *plan_smoother;
    void *residual, *x, *d; /* vectors of the cycle */

    /* the transfer; not on the last level */
    spmv_csr f, p0, p, r; /* strong couplings; tentative and smoothed interpolation; transpose */
    void *f_values, *p0_values, *p_values, *r_values;
    void *f_inverse; /* reciprocals of f's diagonal, during set-up */
    void *strongest; /* the strongest coupling of each row, during set-up; NULL: not known */
    double omega;
    int32_t *aggregate;
    const void *near_null; /* NULL: ones */
    int block, nulls;      /* see struct amg_rows */
    double *basis;
    spmv_multiply_plan *fp0, *ap, *rap; /* fp0: NULL if P is made without it */
    spmv_matrix *transpose;             /* the pattern of R */
    void *entry;                        /* the number in P of each entry of R */
    spmv_plan *plan_p, *plan_r;
    struct amg_pool pool;
    struct amg_pool work; /* released after the transfer is computed */
};

struct amg {
    spmv_preconditioner *m;
    spmv_context *ctx;
    spmv_type type;  /* of the hierarchy: that of the vectors, or the other real type */
    bool l1;         /* the smoother is l1-Jacobi */
    bool updates;    /* the values may be replaced */
    bool broken;     /* new values were refused */
    int degree;      /* of the smoother */
    double strength; /* threshold of a strong coupling */
    int block;       /* rows of a node of the first level */
    int nulls;       /* near-null-space vectors; 0: one, and nodes are rows */
    bool classical;  /* classical interpolation in place of aggregates */
    double scale;    /* the hierarchy is that of A times this power of two */
    int levels;
    struct amg_level level[AMG_LEVELS];

    /* The last level, if it is small: its inverse, with all entries. */
    spmv_csr bottom;
    void *bottom_values;
    spmv_plan *plan_bottom;
    int64_t left_out; /* its unknowns left out, because the matrix is singular */
    struct amg_pool pool;

    /* The matrix as given. val is in the context's memory, or NULL for a pattern. */
    spmv_csr given;
    const void *near_null;
    spmv_type near_null_type;
    struct amg_pool given_pool;

    void *largest, *scratch; /* max |r_i|, and scratch memory for it */

    /* Numbers that the host reads together with others, because each read waits. */
    struct amg_cells *cells; /* of the context's memory */
    void *bounds;            /* T: of each level, where l->bound is not known yet */
    bool unchecked;          /* cells->least is of the last level's matrix */
};

struct amg_cells {
    double least;  /* see check_next */
    double bound;  /* T: of F */
    int64_t total; /* entries of F */
};

/* Makes the hierarchy of the type. SPMV_ERROR_NOT_POSITIVE, or with *imprecise also because the type
 * is too narrow for the matrix. */
spmv_status amg_build(struct amg *amg, spmv_type type, bool *imprecise);

/* *fits: whether squares of the matrix's elements and of the reciprocals of its diagonal stay in the range
 * of the hierarchy's type. They occur in products such as D^-1 A D^-1. After amg_build or amg_renew. */
spmv_status amg_check_range(const struct amg *amg, bool *fits);

/* Computes all values again, from amg->given. The patterns stay. */
spmv_status amg_renew(struct amg *amg, bool *imprecise);

/* Releases what amg_build made. */
void amg_clear(struct amg *amg);

/* Runs a step for rows (or entries) 0 to n - 1. */
spmv_status amg_run(spmv_context *ctx, enum amg_step step, spmv_type type, const struct amg_rows *rows, int64_t n);

/* Inverts a symmetric matrix, times -1, and sets its pivots; see struct amg_dense. Queued. */
spmv_status amg_invert(spmv_context *ctx, const struct amg_dense *dense);

/* C = R (A P) in one pass for each product (amg_product_cuda.cu). All arrays are in the context's memory,
 * those that are not const are scratch. */
struct amg_galerkin {
    struct amg_csr a, p, r;
    int64_t fine, coarse; /* rows of A and of R */
    int64_t a_nnz, p_nnz;
    int64_t room[2]; /* for A P and for C: entries of the arrays, with two values of the type each */
    void *entries[2];
    uint64_t *places[2]; /* fine, and coarse */
    int32_t *list;       /* fine */
    void *counters;      /* AMG_GALERKIN_COUNTERS bytes */
    const void *diagonal;
    double *mass;     /* coarse: see the step coarse_mass */
    int64_t *lengths; /* coarse: entries of each row of C; more than room[1] if C could not be made */
};

enum { AMG_GALERKIN_COUNTERS = 32 };

/* R = P' (amg_product_cuda.cu). counts, entries: scratch memory. */
struct amg_transpose {
    struct amg_csr p, r; /* r: with offsets of 64 bits */
    int64_t fine, coarse, nnz;
    unsigned *counts; /* coarse */
    void *entries;    /* nnz, with two values of the type each */
};

/* Scratch memory for the last rounds of the independent set (amg_roots_cuda.cu). */
struct amg_roots {
    int32_t *lists[2]; /* n each */
    uint64_t *counts;  /* AMG_ROOTS_COUNTS */
    bool few;          /* rows have few couplings */
};

enum { AMG_ROOTS_COUNTS = 4 };

/* The room for this many entries. */
int64_t amg_galerkin_room_cuda(spmv_context *ctx, int64_t entries);

/* Sets lengths and mass. Queued. */
spmv_status amg_galerkin_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g);

/* Sets columns and values of C, which has its row offsets and nnz entries. Queued. */
spmv_status amg_galerkin_place_cuda(spmv_context *ctx, spmv_type type, const struct amg_galerkin *g, struct amg_csr c,
                                    int64_t nnz);

/* Sets counts to the lengths of the rows of R. Queued. */
spmv_status amg_count_columns_cuda(spmv_context *ctx, const struct amg_transpose *t);

/* Sets columns and values of R, which has its row offsets. Rows that are too long get none; then
 * amg_galerkin_cuda fails to make the row of C. Queued. */
spmv_status amg_transpose_cuda(spmv_context *ctx, spmv_type type, const struct amg_transpose *t);

/* Goes on with the independent set, after a step mis_decide, until all rows are decided, or a row is too
 * long. Waits. */
spmv_status amg_roots_cuda(spmv_context *ctx, const struct amg_rows *s, const struct amg_roots *r, bool *too_long);

spmv_status amg_invert_cuda(spmv_context *ctx, const struct amg_dense *dense);
spmv_status amg_run_cuda(spmv_context *ctx, enum amg_step step, spmv_type type, const struct amg_rows *rows, int64_t n);

#endif
