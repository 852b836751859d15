/* The product y = alpha op(A) x + beta y: plans, their description, and the check of a result.
 *
 * A plan looks at the matrix once and decides representation and kernel; each product then allocates nothing and waits
 * for nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_OPERATOR_H
#define SPMV_OPERATOR_H

#include <spmv/matrix.h>

SPMV_BEGIN_DECLS

typedef struct spmv_plan spmv_plan;

typedef enum spmv_operation {
    SPMV_OPERATION_N = 0, /* op(A) = A */
    SPMV_OPERATION_T = 1, /* op(A) = transpose of A */
    SPMV_OPERATION_H = 2  /* op(A) = conjugate transpose; the transpose for real matrices and patterns */
} spmv_operation;

typedef struct spmv_plan_options {
    size_t size;
    spmv_operation operation; /* default N */
    const char
        *method;       /* a method's name; default NULL or "auto": chosen from the matrix, the device and the options */
    spmv_type type;    /* of x, y and the sums; default: the matrix's (f64 for a pattern). f64 also with an f32 matrix,
                          else the matrix's own. */
    int vectors;       /* products at once, for which the matrix is read once; default 1 */
    int symmetric;     /* 1: only one triangle is stored; default 0. 1: SPMV_ERROR_UNSUPPORTED for now. */
    int update_values; /* 1: values may be replaced later (spmv_plan_update_values); default 0. A transposed matrix then
                          takes 4 bytes a nonzero more (8 from 2^31 on). */
    int compression;   /* -1: as the plan thinks best (default), 0: keep plain CSR, 1: wherever columns allow it (omp;
                          elsewhere SPMV_ERROR_UNSUPPORTED for now), 2: as -1, and few distinct values (by their bits, at
                          most 256) through a table, with a byte a nonzero that the plan keeps beside them (method tiles
                          on cuda, real values, matrices of over a million nonzeros; elsewhere as -1, and the plan's
                          layout says why). On cuda a plan that finds no memory for either goes without. Bits do not
                          depend on it. */
    int64_t x_stride, y_stride; /* elements from one row of x (y) to the next, at least vectors; default 0: vectors */
} spmv_plan_options;

SPMV_API void spmv_plan_options_init(spmv_plan_options *options, size_t size);

/* A plan for products with a. a->memory == SPMV_MEMORY_HOST: the plan copies what it needs, the arrays may go.
 * SPMV_MEMORY_CONTEXT: it borrows the arrays, which must outlive it unchanged, except where it re-encodes them (on cuda
 * a product may read them while the kernel before it in the stream still runs; x and y it may not). Row offsets are
 * narrowed to 32 bits where nnz < 2^31. A transpose is formed here, on a GPU by a stable sort that takes 12 bytes a
 * nonzero (16 from 2^31 on) meanwhile. options NULL: defaults. May wait. Types: f64, f32, c128, c64; f32 values with
 * f64 vectors and sums. Which methods take several vectors, mixed and complex types differs: asked for by name,
 * SPMV_ERROR_UNSUPPORTED names those that do. Errors:
 * SPMV_ERROR_ARGUMENT (negative sizes, missing arrays), SPMV_ERROR_SIZE, SPMV_ERROR_LIMIT (columns), SPMV_ERROR_TYPE,
 * SPMV_ERROR_METHOD (the sentence lists the backend's), SPMV_ERROR_UNSUPPORTED, SPMV_ERROR_MEMORY. The matrix's inner
 * structure is the caller's promise (spmv_matrix_check looks). */
SPMV_API spmv_status spmv_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                                      spmv_plan **plan);

/* Waits for what is queued with it on the context's stream; where its products were captured in graphs that run on
 * others, they must have ended. NULL is nothing. On a GPU up to 1/128 of the device's memory stays with the context
 * for its next plans, until the context is destroyed or memory is short in it. */
SPMV_API void spmv_plan_destroy(spmv_plan *plan);

/* a_ij is from now on what values say, under the pattern that the plan was made with, whose option update_values must
 * be
 * 1. values: nnz of the matrix's type, in the order of the matrix that the plan was made from (also where the plan
 * transposed it), in the context's memory. A plan that owns its values (made from host arrays, or transposed) copies
 * them: values may be changed once the work queued is done, and products captured in a CUDA graph before use the new
 * ones. A plan that borrows its values borrows these instead, which may be the same array with new contents; products
 * captured before keep to the old array (of the method "blocked", which keeps a sorted copy that is made here, to the
 * plan). Queued; allocates nothing; can be captured where values are copied. Of a plan that may have a table of values
 * (compression 2; its layout says whether it has one, and may say otherwise after each call), waits, cannot be
 * captured, and products captured before are not to be launched any more. Errors: SPMV_ERROR_UNSUPPORTED (a plan
 * without the option), SPMV_ERROR_ARGUMENT (values NULL), SPMV_ERROR_CAPTURE. */
SPMV_API spmv_status spmv_plan_update_values(spmv_plan *plan, const void *values);

/* The context the plan was made on. */
SPMV_API spmv_context *spmv_plan_context(const spmv_plan *plan);

/* y = alpha op(A) x + beta y.  host_alpha, host_beta: one scalar of y's type each; NULL means 1 and 0. beta == 0: y is
 * not read. x: cols elements, y: rows elements (of op(A)), in the context's memory, no overlap. Queued; allocates
 * nothing. Products and sums are formed in y's type (ref: long double); not-a-number and infinity propagate as IEEE 754
 * says, even when alpha is 0. Same bits every run.
 *
 * With the option vectors = k, x and y are matrices of k columns, row by row: element v of row i, 0 <= v < k, lies at
 * x[i * x_stride + v] (y likewise), and what lies between is neither read nor written. The matrix is read once for all
 * columns: on cuda once for 16 of them. On omp and ref a column has the bits of a product by itself; on cuda they
 * depend on the column and on k alone, and the method "columns" (which a plan takes for k > 1, and which takes any k)
 * sums in another order than "tiles".
 *
 * Complex numbers multiply as (a + bi) (c + di) = (ac - bd) + (ad + bc) i, without care for infinities (a row with one
 * may be infinite or not a number). On cuda arrays of them lie at multiples of their size, as CUDA's own types do
 * (SPMV_ERROR_ARGUMENT). */
SPMV_API spmv_status spmv_apply(spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta, void *y);

/* What is done with y while a product still has it at hand. All pointers are into the context's memory. */
typedef struct spmv_epilogue {
    size_t size;
    const void *w;     /* rows elements; may be x or y themselves; default NULL: no dot product */
    void *dot;         /* one scalar, given where w is */
    const void *gamma; /* one scalar, so that a result of another call need not travel; default NULL: 1 */
    void *z;           /* rows elements; default NULL: no axpy */
} spmv_epilogue;

SPMV_API void spmv_epilogue_init(spmv_epilogue *epilogue, size_t size);

/* y = alpha op(A) x + beta y, as spmv_apply and with its bits, and of that y, as asked,
 *     *dot = sum_i conj(w_i) y_i      (w == y: ||y||^2; w_i without conj for real types)
 *     z_i  = z_i + gamma y_i          for every row i.
 * The methods "tiles" do so within the product, where y need not be read again and, on cuda, nothing else is launched;
 * the others behind it. epilogue NULL: spmv_apply. rows == 0: *dot = 0. What w, gamma and z hold is read during the
 * product; z overlaps nothing, *dot lies in no vector and is not gamma. Products and sums are rounded one by one in
 * y's type (ref: dot in long double). dot is a sum of the n = rows products in an order that plan and method fix:
 * same bits every run, for any number of threads, and |dot - exact| <= (n + 2) u sum_i |w_i| |y_i| to first order (u
 * the unit roundoff; n + 5 for complex types). Queued; allocates nothing and waits for nothing; can be captured; two
 * products of one plan must not run at once. Errors, beside those of spmv_apply: SPMV_ERROR_ARGUMENT (w without dot,
 * dot without w, arrays that are the same but may not be, on cuda complex numbers that lie at no multiple of their
 * size), SPMV_ERROR_UNSUPPORTED (a plan for several vectors, or with strides). */
SPMV_API spmv_status spmv_apply_with(spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta,
                                     void *y, const spmv_epilogue *epilogue);

typedef struct spmv_plan_info {
    size_t size;
    const char *method; /* strings live as long as the plan */
    const char *why;    /* one sentence: why this method */
    spmv_type type;
    spmv_operation operation;
    int64_t rows, cols, nnz; /* of op(A) */
    int64_t bytes;           /* memory the plan owns */
    double seconds;          /* spent in spmv_plan_create */
    const char *layout;      /* one sentence: how the plan holds the matrix; "" where it is as it came */
    int vectors;
    spmv_type value_type;       /* of the matrix's values; type: of vectors and sums */
    int64_t x_stride, y_stride; /* never 0 */
} spmv_plan_info;

/* What the plan is. size: sizeof(spmv_plan_info) as the caller sees it. */
SPMV_API spmv_status spmv_plan_describe(const spmv_plan *plan, spmv_plan_info *info, size_t size);

/* The names of a backend's methods: spmv_method_name(backend, 0), ... until NULL; the first is not "auto". */
SPMV_API const char *spmv_method_name(spmv_backend backend, int index);

typedef struct spmv_verify_result {
    size_t size;
    int64_t failed_rows; /* rows past the bound */
    int64_t worst_row;   /* the row of the largest error in units of its bound, the first such; -1 without rows */
    double worst_ratio;  /* that error over that bound; infinite where only one of y_i and r_i is finite */
    double worst_value, worst_reference;       /* real parts */
    double worst_value_im, worst_reference_im; /* imaginary parts; 0 for real types */
} spmv_verify_result;

/* Checks host_y against r = alpha op(A) x + beta y0, recomputed on ctx, which must be a ref or omp context: ref sums in
 * long double, omp in the vectors' type. Row i, with n_i terms, passes when |y_i - r_i| <= 2 (n_i + 3) eps (|alpha|
 * sum_j |a_ij| |x_j| + |beta| |y0_i|) + (n_i max(1, |alpha|) + 2) * smallest subnormal, eps = 2^-53 (f64) or 2^-24
 * (f32), the unit roundoff of the type of the sums (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd
 * ed., section 3.1); for complex types n_i + 6 instead of n_i + 3, moduli, and four times the last term (section 3.6).
 * A row that is not finite must be not finite in both: a sum that overflows before a small alpha, in the vectors' type
 * but not in ref's long double, fails. type is the vectors' (f64 also with an f32 matrix). Several vectors are checked
 * one by one. All arrays are in host memory; host_y0 may be NULL when beta is 0 (host_beta NULL). Returns SPMV_OK when
 * every row passes, SPMV_ERROR_CHECK (the sentence names the worst row) when not; *result is filled in both cases. */
SPMV_API spmv_status spmv_verify(spmv_context *ctx, const spmv_csr *a, spmv_operation operation, const void *host_alpha,
                                 const void *host_x, const void *host_beta, const void *host_y0, const void *host_y,
                                 spmv_type type, spmv_verify_result *result, size_t size);

SPMV_END_DECLS

#endif
