/* The product y = alpha op(A) x + beta y: plans, their description, and the check of a result.
 *
 * A plan looks at the matrix once and chooses representation and kernel. A product then allocates
 * nothing and waits for nothing.
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
    SPMV_OPERATION_H = 2  /* op(A) = conjugate transpose; the transpose for real matrices and
                             patterns */
} spmv_operation;

/* How a plan may hold a matrix in memory. AUTO: the plan decides. NONE: plain CSR. COLUMNS: columns
 * of 16 bits and less wherever they fit (omp; SPMV_ERROR_UNSUPPORTED elsewhere). VALUES: as AUTO,
 * and a table for at most 256 distinct values (by their bits), with one more byte a nonzero: method
 * tiles on cuda, real values, over a million nonzeros; elsewhere as AUTO, and the plan's layout
 * says why. On cuda, a plan that finds no memory for this does without it. */
typedef enum spmv_compression {
    SPMV_COMPRESSION_AUTO = -1,
    SPMV_COMPRESSION_NONE = 0,
    SPMV_COMPRESSION_COLUMNS = 1,
    SPMV_COMPRESSION_VALUES = 2
} spmv_compression;

typedef struct spmv_plan_options {
    size_t size;
    spmv_operation operation;   /* default N */
    const char *method;         /* a method's name; default NULL or "auto": chosen from matrix,
                                   device and options */
    spmv_type type;             /* of x, y and the sums; default: the matrix's (f64 for a pattern).
                                   f64 also with an f32 matrix, else the matrix's own. */
    int vectors;                /* number of products at once, for which the matrix is read once;
                                   default 1 */
    int symmetric;              /* 1: only one triangle is stored; default 0. 1:
                                   SPMV_ERROR_UNSUPPORTED for now. */
    int update_values;          /* 1: values may be replaced later (spmv_plan_update_values);
                                   default 0. A transposed matrix then takes 4 bytes a nonzero more
                                   (8 from 2^31 on). */
    int compression;            /* whether the plan may compress the matrix in memory:
                                   SPMV_COMPRESSION_..., default AUTO. Results have the same bits
                                   with each value. */
    int64_t x_stride, y_stride; /* elements from one row of x (y) to the next, at least vectors;
                                   default 0: vectors */
} spmv_plan_options;

SPMV_API void spmv_plan_options_init(spmv_plan_options *options, size_t size);

/* Makes a plan for products with a. May wait. Row offsets become 32 bits wide where nnz < 2^31. A
 * transpose is formed here, on a GPU by a stable sort that takes 12 bytes a nonzero (16 from 2^31
 * on) meanwhile.
 *
 * a: with a->memory == SPMV_MEMORY_HOST the plan copies what it needs, and the arrays may go. With
 * SPMV_MEMORY_CONTEXT it borrows the arrays: they must outlive the plan unchanged, except those
 * that the plan re-encodes. (On cuda a product may read them while the kernel before it in the
 * stream still runs; it does not read x or y so early.) The caller promises that row offsets ascend
 * and columns are in range; spmv_matrix_check looks. options: NULL means defaults. Types: f64, f32,
 * c128, c64, and f32 values with f64 vectors and sums. *plan: NULL after an error.
 *
 * Errors: SPMV_ERROR_ARGUMENT (negative sizes, missing arrays), SPMV_ERROR_SIZE, SPMV_ERROR_LIMIT
 * (columns), SPMV_ERROR_TYPE, SPMV_ERROR_METHOD (the sentence lists the backend's methods),
 * SPMV_ERROR_UNSUPPORTED (the named method cannot do it; the sentence lists those that can),
 * SPMV_ERROR_MEMORY. */
SPMV_API spmv_status spmv_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                                      spmv_plan **plan);

/* Destroys a plan, after a wait for what is queued with it on the context's stream. Graphs with
 * captured products of the plan that run on other streams must have ended before. On a GPU up to
 * 1/128 of the device's memory stays with the context for its next plans, until the context is
 * destroyed or its memory is short. */
SPMV_API void spmv_plan_destroy(spmv_plan *plan);

/* Replaces the values of the matrix. The sparsity pattern stays. Queued; allocates nothing. The
 * solvers' verdict on symmetry is dropped (spmv_cg).
 *
 * plan: made with the option update_values. values: nnz elements of the matrix's type in the
 * context's memory, in the order of the matrix that the plan was made from, even where the plan
 * transposed it.
 *
 * A plan that owns its values (made from host arrays, or transposed) copies them. The call can then
 * be captured; the caller may change values once the queued work is done; products captured in a
 * CUDA graph before use the new values. A plan that borrows its values borrows this array instead,
 * which may be the old array with new contents; products captured before keep reading the old
 * array. (The method "blocked" keeps a sorted copy, which is made here: products captured before
 * read that.) With SPMV_COMPRESSION_VALUES the call waits and cannot be captured, products captured before
 * must not be launched any more, and the layout may change.
 *
 * Errors: SPMV_ERROR_UNSUPPORTED (a plan without the option), SPMV_ERROR_ARGUMENT (NULL),
 * SPMV_ERROR_CAPTURE. */
SPMV_API spmv_status spmv_plan_update_values(spmv_plan *plan, const void *values);

/* The context that the plan was made on; NULL for NULL. */
SPMV_API spmv_context *spmv_plan_context(const spmv_plan *plan);

/* y = alpha op(A) x + beta y. Queued; allocates nothing. Products and sums have y's type (ref: long
 * double). NaN and infinity propagate as IEEE 754 says, even when alpha is 0. With beta == 0, y is
 * not read.
 *
 * host_alpha, host_beta: one scalar of y's type each in host memory; NULL means 1 and 0. x: cols
 * elements, y: rows elements (of op(A)), in the context's memory, without overlap. With the option
 * vectors = k, x and y are matrices of k columns, row by row: element v of row i, 0 <= v < k, is
 * x[i * x_stride + v] (y likewise). Elements between are neither read nor written. The matrix is
 * read once for all columns, on cuda once for 16 of them.
 *
 * Complex numbers multiply as (a + bi) (c + di) = (ac - bd) + (ad + bc) i; a row with an infinity
 * may become infinite or NaN. On cuda, arrays of complex numbers begin at multiples of their size,
 * as CUDA's own types do.
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL, the same array twice, alignment), SPMV_ERROR_DEVICE. Same bits
 * every run. On omp and ref a column has the bits of a product with that column alone; on cuda its
 * bits depend on the column and on k, and the method "columns" (the default for k > 1) sums in
 * another order than "tiles". */
SPMV_API spmv_status spmv_apply(spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta, void *y);

/* Work on y inside the product that makes it. All pointers are into the context's memory. */
typedef struct spmv_epilogue {
    size_t size;
    const void *w;     /* rows elements; may be x or y themselves; default NULL: no dot product */
    void *dot;         /* one scalar; needed with w */
    const void *gamma; /* one scalar, which may be the result of another call; default NULL: 1 */
    void *z;           /* rows elements; default NULL: no axpy */
} spmv_epilogue;

SPMV_API void spmv_epilogue_init(spmv_epilogue *epilogue, size_t size);

/* y = alpha op(A) x + beta y, with the bits of spmv_apply, and on request
 *     *dot = sum_i conj(w_i) y_i      (w == y: ||y||^2; w_i without conj for real types)
 *     z_i  = z_i + gamma y_i          for every row i.
 * The methods "tiles" do so within the product: y is not read again and, on cuda, nothing else is
 * launched. Other methods do it after the product. Queued; allocates nothing and waits for nothing;
 * can be captured. Two products of one plan must not run at once. Products and sums are rounded one
 * by one in y's type (ref: dot in long double).
 *
 * epilogue: NULL means spmv_apply. With rows == 0, *dot = 0. w, gamma and z are read during the
 * product. z overlaps nothing; *dot lies in no vector and is not gamma. Other parameters: as in
 * spmv_apply.
 *
 * Errors, beside those of spmv_apply: SPMV_ERROR_ARGUMENT (w without dot, dot without w, arrays
 * that must differ), SPMV_ERROR_UNSUPPORTED (a plan for several vectors, or with strides). dot is a
 * sum of n = rows products in an order that plan and method fix: same bits every run and for any
 * number of threads, and |dot - exact| <= (n + 2) u sum_i |w_i| |y_i| to first order (u the unit
 * roundoff; n + 5 for complex types). */
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
    const char *layout;      /* one sentence: how the plan holds the matrix; "" where it uses the
                                caller's form */
    int vectors;
    spmv_type value_type;       /* of the matrix's values; type: of vectors and sums */
    int64_t x_stride, y_stride; /* never 0 */
} spmv_plan_info;

/* Describes a plan. size: sizeof(spmv_plan_info) as the caller sees it. Errors: SPMV_ERROR_ARGUMENT
 * (NULL). */
SPMV_API spmv_status spmv_plan_describe(const spmv_plan *plan, spmv_plan_info *info, size_t size);

/* The name of method number index of a backend, counted from 0; NULL where index or backend is out
 * of range. "auto" is not among the names. */
SPMV_API const char *spmv_method_name(spmv_backend backend, int index);

typedef struct spmv_verify_result {
    size_t size;
    int64_t failed_rows;                       /* rows past the bound */
    int64_t worst_row;                         /* the row of the largest error in units of its
                                                  bound, the first such; -1 without rows */
    double worst_ratio;                        /* that error over that bound; infinite where only
                                                  one of y_i and r_i is finite */
    double worst_value, worst_reference;       /* real parts */
    double worst_value_im, worst_reference_im; /* imaginary parts; 0 for real types */
} spmv_verify_result;

/* Checks host_y against r = alpha op(A) x + beta y0, recomputed on ctx: on ref in long double, on
 * omp in the vectors' type. Row i, with n_i terms, passes when |y_i - r_i| <= 2 (n_i + 3) eps
 * (|alpha| sum_j |a_ij| |x_j| + |beta| |y0_i|) + (n_i max(1, |alpha|) + 2) * smallest subnormal,
 * eps = 2^-53 (f64) or 2^-24 (f32), the unit roundoff of the type of the sums (N. J. Higham,
 * "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 3.1); for complex types n_i +
 * 6 instead of n_i + 3, moduli, and four times the last term (section 3.6). A row that is not
 * finite must be not finite in both: a sum that overflows before a small alpha, in the vectors'
 * type but not in ref's long double, fails.
 *
 * ctx: a ref or omp context. a, host_x, host_y0, host_y: in host memory. host_alpha, host_beta:
 * NULL means 1 and 0; host_y0 may be NULL when beta is 0. type: of the vectors (f64 also with an
 * f32 matrix). The caller checks several vectors one by one. result: may be NULL; filled for
 * SPMV_OK and SPMV_ERROR_CHECK. size: sizeof(spmv_verify_result) as the caller sees it.
 *
 * Returns SPMV_OK when every row passes, SPMV_ERROR_CHECK when not (the sentence names the worst
 * row). Errors: SPMV_ERROR_ARGUMENT (also a cuda context, an unknown operation), SPMV_ERROR_TYPE,
 * SPMV_ERROR_SIZE, SPMV_ERROR_LIMIT, SPMV_ERROR_MEMORY. The result does not depend on the number of
 * threads. */
SPMV_API spmv_status spmv_verify(spmv_context *ctx, const spmv_csr *a, spmv_operation operation, const void *host_alpha,
                                 const void *host_x, const void *host_beta, const void *host_y0, const void *host_y,
                                 spmv_type type, spmv_verify_result *result, size_t size);

SPMV_END_DECLS

#endif
