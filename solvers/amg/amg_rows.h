/* The steps of algebraic multigrid as functions of one row, for C and CUDA C++. amg_loops.c calls
 * them in loops, amg_cuda.cu in kernels. So all backends do the same operations in the same order,
 * and the hierarchy has the same bits.
 *
 * Each function writes only elements of its own row, and reads of other rows only what no call of
 * the same step writes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_ROWS_H
#define AMG_ROWS_H

#include <math.h>
#include <spmv/types.h>
#include <stdint.h>

#include "core/host_device_fn.h"
#include "core/reals.h"
#include "core/splitmix.h"
#include "formats/columns.h"

#define AMG_ROW HOST_DEVICE_FN

/* X(NAME, name) for each step. A new step is one line here and one function in amg_rows_typed.h. */
#define AMG_STEP_LIST(X)                                                                                               \
    X(CHECK, check)                                                                                                    \
    X(CONVERT, convert)                                                                                                \
    X(DIAGONAL, diagonal)                                                                                              \
    X(BOUND, bound)                                                                                                    \
    X(POWER_BEGIN, power_begin)                                                                                        \
    X(POWER, power)                                                                                                    \
    X(SMOOTHER, smoother)                                                                                              \
    X(NODE_COUNT, node_count)                                                                                          \
    X(NODE_FILL, node_fill)                                                                                            \
    X(STRONGEST, strongest)                                                                                            \
    X(STRONG_COUNT, strong_count)                                                                                      \
    X(STRONG_FILL, strong_fill)                                                                                        \
    X(STRONG_VALUES, strong_values)                                                                                    \
    X(MIS_BEGIN, mis_begin)                                                                                            \
    X(MIS_SPREAD, mis_spread)                                                                                          \
    X(MIS_DECIDE, mis_decide)                                                                                          \
    X(ROOT, root)                                                                                                      \
    X(JOIN_ROOT, join_root)                                                                                            \
    X(JOIN_NEAR, join_near)                                                                                            \
    X(ONE_WAY, one_way)                                                                                                \
    X(DEPENDENCE, dependence)                                                                                          \
    X(SPLIT_BEGIN, split_begin)                                                                                        \
    X(SPLIT_DECIDE, split_decide)                                                                                      \
    X(SPLIT_EXCLUDE, split_exclude)                                                                                    \
    X(COARSE_NEAR, coarse_near)                                                                                        \
    X(INTERPOLATE, interpolate)                                                                                        \
    X(INTERPOLATE_PLACE, interpolate_place)                                                                            \
    X(INTERPOLATE_VALUES, interpolate_values)                                                                          \
    X(PROLONG_COUNT, prolong_count)                                                                                    \
    X(PROLONG_FILL, prolong_fill)                                                                                      \
    X(PROLONG_VALUES, prolong_values)                                                                                  \
    X(TENTATIVE_COUNT, tentative_count)                                                                                \
    X(TENTATIVE_FILL, tentative_fill)                                                                                  \
    X(COMPONENTS, components)                                                                                          \
    X(ORTHONORMAL, orthonormal)                                                                                        \
    X(BASIS_COUNT, basis_count)                                                                                        \
    X(BASIS_FILL, basis_fill)                                                                                          \
    X(SMOOTH, smooth)                                                                                                  \
    X(TRANSPOSE, transpose)                                                                                            \
    X(COARSE_MASS, coarse_mass)                                                                                        \
    X(COARSE_CHECK, coarse_check)                                                                                      \
    X(DENSE_CLEAR, dense_clear)                                                                                        \
    X(DENSE_FILL, dense_fill)                                                                                          \
    X(DENSE_TAKE, dense_take)                                                                                          \
    X(NARROW, narrow)                                                                                                  \
    X(WIDEN, widen)

enum amg_step {
#define AMG_STEP(NAME, name) AMG_##NAME,
    AMG_STEP_LIST(AMG_STEP)
#undef AMG_STEP
        AMG_STEPS
};

/* A sparse matrix: as struct spmv_csr, with arrays that a step may write. */
struct amg_csr {
    const void *row_ptr;
    int row_ptr_bits;
    int32_t *col;
    void *val;
};

/* A symmetric matrix, which amg_invert replaces by its inverse times -1. Arrays in the context's
 * memory. */
struct amg_dense {
    int64_t n;
    double *element;   /* n x n by rows; only those of the lower triangle are used */
    double *own;       /* n: the diagonal */
    double *column[2]; /* n each; the first has column 0 */
    double *pivot;     /* n, set by amg_invert: pivots, relative to the diagonal */
    double tolerance;  /* a pivot not larger than this is taken as 0, and its unknown is left out */
    unsigned *arrived; /* on cuda: a counter, 0 */
};

/* The step of amg_invert that exchanges unknown k, in the order of k: with the column c before,
 *
 *   w_kk = -1 / c_k,   w_ik = w_ki = c_i / c_k,   w_ij = w_ij - c_i c_j / c_k
 *
 * for i, j != k. If the unknown is left out, row and column k become 0. (A. E. Beaton, ETS Research
 * Bulletin RB-64-51, 1964; J. H. Goodnight, The American Statistician 33(3), 1979.) */
struct amg_sweep {
    int used;
    double ratio;  /* the pivot, relative to the diagonal */
    double factor; /* 1 / sqrt(c_k) */
};

AMG_ROW struct amg_sweep amg_sweep_of(double pivot, double own, double tolerance)
{
    const double ratio = own > 0 ? pivot / own : 0;
    const int used = ratio > tolerance;
    const struct amg_sweep sweep = {used, ratio, used ? 1 / sqrt(pivot) : 0};
    return sweep;
}

/* The arguments of all steps; a step uses some of them. T is the type of the hierarchy. All arrays
 * are in the context's memory. */
struct amg_rows {
    struct amg_csr a;     /* the matrix of the level, n rows */
    struct amg_csr f;     /* its strong couplings and the diagonal */
    struct amg_csr p0, p; /* tentative and smoothed interpolation, n rows */
    struct amg_csr r;     /* its transpose, one row per aggregate */
    struct amg_csr c;     /* the matrix of the next level */
    int64_t n, nnz;       /* of a */
    const void *diagonal; /* T: of a; 0 for rows that the hierarchy leaves out */
    void *diagonal_out;   /* the same */
    void *root_out;       /* T: its square roots */
    const void *root;     /* the same */
    void *inverse_out;    /* T: its reciprocals, 0 for 0 */
    const void *inverse;  /* the same, for the matrix that the step uses */
    const void *least;    /* f64: diagonal entries up to this are left out; NULL: 0 */
    void *ratio_out;      /* see the step */
    const void *weight;   /* T: see bound */
    void *weight_out;     /* the same */
    void *strongest_out;  /* T: the strongest coupling of a row; NULL: not wanted */
    double strength;      /* threshold of a strong coupling */
    double factor, other; /* see the step */
    int l1;               /* inverse_out: of the row sums of |a_ij| */
    int all_strong;       /* f is a */
    int gathered;         /* col and val of f: aggregates and terms of P (amg_prolong_fill) */
    const void *entry;    /* of each entry of r: its number in p */
    int entry_bits;
    int64_t *count;        /* see the step */
    const int64_t *offset; /* exclusive sums of count */
    uint64_t *key;         /* state and priority of a row */
    uint64_t *near_key;    /* the largest key of a row and its neighbours */
    int32_t *undecided;    /* 1: the row is neither a root nor excluded */
    const int32_t *joined; /* number of the aggregate of a root and its neighbours, else -1 */
    int32_t *aggregate;    /* number of the aggregate of a row, or of a coarse row; or -1 */
    int64_t stride;        /* see one_way */
    struct amg_csr near;   /* see coarse_near */
    int32_t *near_count;   /* the same */
    const void *to_coarse; /* the same, T */
    const void *near_null; /* T: the near-null-space vector; NULL: ones */
    int block;             /* rows of a node, at most AMG_NULLS */
    int nulls;             /* near-null-space vectors, at most AMG_NULLS; 0: one, near_null */
    double *basis;         /* n x nulls by rows: these vectors */
    double *coarse_basis;  /* those of the next level, nulls x nulls for each aggregate */
    const void *source;    /* source_type: the values given; NULL: ones */
    spmv_type source_type;
    void *to;               /* T: the values converted */
    struct amg_dense dense; /* the last level */
    double tolerance;       /* see the step */
    double *mass;           /* see coarse_mass */
    const void *largest;    /* f64: max |r_i|; NULL: vectors of f32 */
    const void *from;       /* vectors of narrow and widen */
};

/* The most near-null-space vectors, and the most rows of a node. */
#define AMG_NULLS 8

/* A near-null-space vector that is smaller than this, relative to itself, after its part in the
 * vectors before is subtracted, is left out of an aggregate. The square of this. */
#define AMG_DEPENDENT 0x1p-40

/* Rows of F with more entries are too long for amg_prolong_fill. */
#define AMG_PROLONG_MOST 128

/* Classical interpolation is taken if more than one of AMG_FAR_WEIGHT dependences is one-way by far
 * (one_way). */
#define AMG_FAR 256
#define AMG_FAR_WEIGHT 64
#define AMG_LOOK 1024

/* The columns that are found for a row of P, and the most that it keeps. */
#define AMG_GATHER_MOST 64
#define AMG_INTERPOLATE_MOST 4

/* The divisor of a row of P, relative to a_ii, below which it is mostly rounding errors: then the row's sum
 * becomes 1. */
#define AMG_LEAST_DIVISOR 0x1p-12

AMG_ROW int64_t amg_number(const void *numbers, int bits, int64_t k)
{
    return bits == 32 ? (int64_t)((const int32_t *)numbers)[k] : ((const int64_t *)numbers)[k];
}

AMG_ROW int64_t amg_offset(const struct amg_csr *a, int64_t row)
{
    return amg_number(a->row_ptr, a->row_ptr_bits, row);
}

/* Keys of the independent set. The state is above the priority, which is a hash of the row's number
 * (splitmix64), and that is above the number, so keys are distinct. */
#define AMG_STATE_SHIFT 62
#define AMG_EXCLUDED UINT64_C(0)
#define AMG_UNDECIDED UINT64_C(1)
#define AMG_ROOT_STATE UINT64_C(2)

AMG_ROW uint64_t amg_state(uint64_t key)
{
    return key >> AMG_STATE_SHIFT;
}

AMG_ROW uint64_t amg_key(uint64_t state, int64_t row)
{
    const uint64_t priority = splitmix_mix((uint64_t)row + SPLITMIX_STEP) >> 34;
    return state << AMG_STATE_SHIFT | priority << 32 | (uint64_t)row;
}

/* A key with the row's use above the hash, in sixteenths and with 8 bits. */
AMG_ROW uint64_t amg_used_key(uint64_t state, double use, int64_t row)
{
    const uint64_t sixteenths = use < 15.9375 ? (uint64_t)(16 * use) : 255;
    return (amg_key(state, row) & ~(UINT64_C(255) << 54)) | sixteenths << 54;
}

AMG_ROW uint64_t amg_with_state(uint64_t key, uint64_t state)
{
    return (key & ~(UINT64_C(3) << AMG_STATE_SHIFT)) | state << AMG_STATE_SHIFT;
}

/* Whether the largest key of a row and its neighbours stays as it is: that of a root, since no other
 * root is within distance 2, or all are excluded. 0: not known yet. */
AMG_ROW int amg_spread_is_final(uint64_t near_key)
{
    const uint64_t state = amg_state(near_key);
    return state == AMG_ROOT_STATE || (state == AMG_EXCLUDED && near_key != 0);
}

/* A sum of a_ii p_i^2 with one more term. */
AMG_ROW double amg_add_mass(double sum, double diagonal, double p)
{
    return sum + diagonal * (p * p);
}

/* The power of two that is not larger than x, at least 2^-1022; 1 for 0 and for numbers that are not
 * finite. */
AMG_ROW double amg_power_of_two(double x)
{
    int exponent = 0;
    if (!(x > 0 && x <= 0x1.fffffffffffffp1023))
        return 1;
    (void)frexp(x, &exponent);
    return exponent < -1021 ? 0x1p-1022 : ldexp(1.0, exponent - 1);
}

/* The factors of the steps narrow and widen. Vectors of f32 fit f64 as they are. */
AMG_ROW double amg_narrowing(const struct amg_rows *s)
{
    return s->largest != (const void *)0 ? 1 / amg_power_of_two(*(const double *)s->largest) : 1;
}

AMG_ROW double amg_widening(const struct amg_rows *s)
{
    return s->largest != (const void *)0 ? amg_power_of_two(*(const double *)s->largest) * s->factor : s->factor;
}

static_assert(REAL_TYPES == 2, "amg_source handles each real type");

/* Element k of an array of f64 or f32; NULL: 1. */
AMG_ROW double amg_source(spmv_type type, const void *values, int64_t k)
{
    return values == (const void *)0 ? 1 : type == SPMV_F64 ? ((const double *)values)[k] : ((const float *)values)[k];
}

#endif
