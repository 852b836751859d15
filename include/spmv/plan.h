/* Products y = alpha op(A) x + beta y: plans, their description, and the check of a result.
 *
 * A plan examines the matrix once and chooses a method and a representation. A product with the
 * plan then allocates nothing and does not wait.
 *
 *     spmv_plan *plan;
 *     spmv_plan_create(ctx, &a, NULL, &plan);      (a: spmv_csr, see matrix.h)
 *     spmv_apply(plan, NULL, x, NULL, y);          (y = A x; x and y in the context's memory)
 *     spmv_download(ctx, y, host_y, bytes);
 *     spmv_plan_destroy(plan);
 *
 * examples/own_arrays.c is a whole program, examples/graph.c one that multiplies the caller's own
 * arrays on a GPU without a copy.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_PLAN_H
#define SPMV_PLAN_H

#include <spmv/matrix.h>

SPMV_BEGIN_DECLS

typedef struct spmv_plan spmv_plan;

typedef enum spmv_operation {
    SPMV_OPERATION_N = 0, /* op(A) = A */
    SPMV_OPERATION_T = 1, /* op(A) = transpose of A */
    SPMV_OPERATION_H = 2  /* op(A) = conjugate transpose of A; T for real values, patterns */
} spmv_operation;

/* Whether a plan may compress the matrix in memory. A method gives the same bits with every value
 * of this option. With NONE, a plan on cuda that chooses its method does not take the methods
 * "slices", "padded" and "panels". If there is no memory for a compressed form, a plan on cuda does
 * without it. */
typedef enum spmv_compression {
    SPMV_COMPRESSION_AUTO = -1,   /* the plan decides (default). On omp with AVX2, it holds the values,
                                     and where x is gathered the columns, of a matrix that fits in the
                                     processor's own caches twice */
    SPMV_COMPRESSION_NONE = 0,    /* plain CSR */
    SPMV_COMPRESSION_COLUMNS = 1, /* compressed columns wherever possible; omp only, else
                                     SPMV_ERROR_UNSUPPORTED */
    SPMV_COMPRESSION_VALUES = 2   /* as AUTO, and a table of the distinct values (by their bits) if
                                     there are at most 256, with one byte more per nonzero. Only for
                                     the methods slices and tiles on cuda, real values and at least
                                     2^20 nonzeros, not 16-bit ones; elsewhere as AUTO. spmv_plan_info.layout says why a
                                     table is missing. */
} spmv_compression;

/* How the vectors of a product lie in memory, if there are several. */
typedef enum spmv_layout {
    SPMV_LAYOUT_ROWS = 0,   /* element v of row i at [i * stride + v] (default) */
    SPMV_LAYOUT_COLUMNS = 1 /* element v of row i at [v * stride + i]: one vector after the other */
} spmv_layout;

typedef struct spmv_plan_options {
    size_t size;              /* sizeof(spmv_plan_options), set by spmv_plan_options_init */
    spmv_operation operation; /* default SPMV_OPERATION_N */

    /* The name of a method (spmv_method_name). Default NULL or "auto": the plan chooses from the
     * matrix, the device and the options. */
    const char *method;

    /* The type of x, y and the sums. It must be the type of the matrix; f64 is also possible with
     * an f32 matrix. A pattern takes every type of products. Default: the type of the matrix, f64
     * for a pattern. With bf16 and f16, sums and scalars are f32 (spmv_apply). */
    spmv_type type;

    int vectors;   /* number of vectors multiplied at once, from 1; default 1 */
    int symmetric; /* must be 0 (the default); 1 (one triangle stored) is not supported yet */

    /* 1: the values may be replaced later (spmv_plan_update_values); default 0. With 1, a
     * transposed matrix takes 4 bytes more per nonzero (8 if nnz >= 2^31). */
    int update_values;

    int compression; /* enum spmv_compression; default SPMV_COMPRESSION_AUTO */

    /* Elements from one row of x (y) to the next, at least vectors. Default 0: vectors. With
     * SPMV_LAYOUT_COLUMNS from one vector to the next: at least the elements of one, the default. */
    int64_t x_stride, y_stride;

    int x_layout, y_layout; /* enum spmv_layout; default SPMV_LAYOUT_ROWS */
} spmv_plan_options;

/* Fills options with the defaults. size: sizeof(spmv_plan_options). */
SPMV_API void spmv_plan_options_init(spmv_plan_options *options, size_t size);

/* Makes a plan for products with a matrix. May wait. Row offsets of 64 bits are converted to 32
 * bits if nnz < 2^31. A transpose is formed here. On a GPU this takes 12 bytes per nonzero (16 if
 * nnz >= 2^31) until the call returns.
 *
 *   a        SPMV_MEMORY_HOST: the plan copies what it needs; the arrays may change after the call.
 *            SPMV_MEMORY_CONTEXT: the plan borrows the arrays. They must outlive the plan and must
 *            not change, except those that the plan converted. On cuda a product may read them
 *            before the work queued ahead of it is complete; it reads x and y only after that. The
 *            caller guarantees ascending offsets and columns in range (spmv_matrix_check).
 *   options  NULL means defaults
 *   *plan    the plan; NULL after an error
 *
 * Types: f64, f32, c128, c64, and f32 values with f64 vectors and sums.
 *
 * Errors: SPMV_ERROR_ARGUMENT (negative sizes, missing arrays, wrong options, update_values with a
 * pattern), SPMV_ERROR_SIZE (wrong row offsets), SPMV_ERROR_LIMIT (too many columns),
 * SPMV_ERROR_TYPE, SPMV_ERROR_METHOD (no such method; the message lists the backend's),
 * SPMV_ERROR_UNSUPPORTED (the method cannot do this; the message lists those that can),
 * SPMV_ERROR_MEMORY. */
SPMV_API spmv_status spmv_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                                      spmv_plan **plan);

/* Destroys a plan after the work queued on the context's stream is done. CUDA graphs that captured
 * products of the plan and run on other streams must have ended before. On a GPU the context keeps
 * up to 1/8 of the device's memory for its next plans, until it is destroyed or memory is
 * short. */
SPMV_API void spmv_plan_destroy(spmv_plan *plan);

/* Replaces the values of the matrix. The sparsity pattern stays. Queued; allocates nothing. The
 * result of the solvers' symmetry check (spmv_cg) is discarded.
 *
 *   plan    made with the option update_values
 *   values  nnz elements of the matrix's type in the context's memory, in the order of the matrix
 *           that the plan was made from, also if the plan transposed it
 *
 * Whether the values are copied depends on the plan:
 *   - A plan that was made from host arrays, or transposed the matrix, copies the values. The call
 *     can be captured. The caller may change the array when the queued work is done. Products
 *     captured in a CUDA graph before use the new values.
 *   - Any other plan borrows this array in place of the old one. It may be the old array with new
 *     contents. Products captured before keep reading the old array. A plan on omp may also copy it.
 *   - The methods "slices", "padded", "blocked" and "panels" keep a copy in their own order, which
 *     this call makes. Products captured before read this copy.
 *   - With SPMV_COMPRESSION_VALUES and a matrix that can have a table of values, the call waits and
 *     cannot be captured. Products captured before must not be launched any more. The layout may
 *     change.
 *
 * Errors: SPMV_ERROR_UNSUPPORTED (the plan was made without the option), SPMV_ERROR_ARGUMENT (NULL,
 * alignment as for spmv_apply), SPMV_ERROR_CAPTURE, SPMV_ERROR_BUSY (a solve uses the plan). */
SPMV_API spmv_status spmv_plan_update_values(spmv_plan *plan, const void *values);

/* An operator of the application: a matrix of which only products are known. */
typedef struct spmv_operator_class {
    size_t size;      /* sizeof(spmv_operator_class) */
    const char *name; /* copied by spmv_plan_wrap */

    /* y = op(A) x. A is linear and the same in every call.
     *
     *   self       the pointer given to spmv_plan_wrap
     *   operation  that of the plan
     *   x          op(A).cols elements in the context's memory, to be read only
     *   y          op(A).rows elements, to be written all; no overlap with x
     *
     * It runs in the thread that called the library, outside of parallel regions, and may call the library on the
     * context. On cuda it queues its work on the context's stream (spmv_context_stream), and may wait. Any status other
     * than SPMV_OK ends the product or the solve with that status; without a message of its own (spmv_last_error) it gets
     * one that names the operator. Results are as repeatable as it is. */
    spmv_status (*apply)(void *self, spmv_operation operation, const void *x, void *y);

    void (*destroy)(void *self); /* releases self; NULL: nothing to release */
} spmv_operator_class;

/* Makes a plan for products that the application computes: for spmv_apply, spmv_apply_with, spmv_cg (rung textbook) and
 * spmv_solver_create_for_plan. Its info has the method "operator" and nnz 0.
 *
 *   type         of x and y: f64, f32, c128 or c64
 *   rows, cols   of A; op(A) is cols x rows if operation is not SPMV_OPERATION_N
 *   functions    what it does; copied
 *   self         passed to the functions; may be NULL. After success the plan owns it and releases it with
 *                functions->destroy. Plans for A and its transpose are two: one of them should have no destroy.
 *   *plan        the plan; NULL after an error
 *
 * Memory: a vector of op(A).rows elements. In products, alpha and beta must be real numbers, and unless they are 1 and 0
 * the product cannot be captured.
 *
 * Errors: SPMV_ERROR_ARGUMENT (also: no name or apply, negative sizes), SPMV_ERROR_TYPE, SPMV_ERROR_MEMORY. */
SPMV_API spmv_status spmv_plan_wrap(spmv_context *ctx, spmv_type type, int64_t rows, int64_t cols,
                                    spmv_operation operation, const spmv_operator_class *functions, void *self,
                                    spmv_plan **plan);

/* The context of the plan; NULL for NULL. */
SPMV_API spmv_context *spmv_plan_context(const spmv_plan *plan);

/* y = alpha op(A) x + beta y. Queued; allocates nothing, does not wait, can be captured. Two
 * products of one plan must not run at the same time, as captured ones on two streams could.
 *
 *   host_alpha  one scalar of y's type in host memory, f32 if y has 16 bits; NULL means 1
 *   x           op(A).cols elements
 *   host_beta   as host_alpha; NULL means 0. If it is 0, y is not read.
 *   y           op(A).rows elements
 *
 * Several vectors: with the option vectors = k, x and y are matrices of k columns, stored by rows.
 * Element v of row i, 0 <= v < k, is x[i * x_stride + v], and likewise for y. Elements in between
 * are neither read nor written. The matrix is read once for all columns; on cuda, once per 512
 * bytes of a row of x with the method "wide", per 16 columns with "columns".
 * Stored by columns (x_layout, y_layout), element v of row i is x[v * x_stride + i]. The plan then
 * has memory for 512 bytes of each row of x and y stored so: a product copies so many columns to
 * rows there, multiplies, and copies back. On ref, and on omp with few entries per row, it
 * multiplies one column after the other instead. A column of y has the same bits in both layouts.
 *
 * Arithmetic: products and sums have y's type (method "definition" of ref: long double). NaN and
 * infinity propagate as in IEEE 754, also if alpha is 0. With bf16 and f16, products and sums are in
 * f32, also alpha op(A) x + beta y, which is rounded once, to nearest, ties to even: so a sum may
 * exceed the 16-bit type in between, and y is infinite only if the result does. The product of two
 * such numbers is exact in f32, within its exponents. The complex product is
 * (a + bi) (c + di) = (ac - bd) + (ad + bc) i; a row with an infinity may become infinite or NaN.
 *
 * Aliasing: x and y do not overlap. Alignment: on cuda, arrays of complex numbers begin at
 * multiples of the element size, as for CUDA's own types.
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL, x == y, alignment), SPMV_ERROR_DEVICE.
 * Determinism: the same bits every run; on omp, for any number of threads. On ref and omp each of
 * several columns has the bits of a product with that column alone. On cuda too with the methods
 * "abreast", "octets", "wide" and "panels", for any k and strides; with "columns" the bits of a column
 * depend on its number and on k. They sum in another order than "tiles", and than each other. The
 * default is "columns" for k < 8, else "panels" where neighbouring rows share columns and x is large,
 * else "abreast" if rows are about equally long, else "wide" for rows of x of more than 64 bytes, else
 * "octets" if a row is long, else "columns". */
SPMV_API spmv_status spmv_apply(spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta, void *y);

/* Additional work with y in spmv_apply_with. All arrays and scalars have y's type and are in the
 * context's memory. Not with 16-bit types. */
typedef struct spmv_epilogue {
    size_t size;       /* sizeof(spmv_epilogue), set by spmv_epilogue_init */
    const void *w;     /* op(A).rows elements, may be x or y; default NULL: no dot product */
    void *dot;         /* one scalar, required with w: receives the dot product; default NULL */
    const void *gamma; /* one scalar, may be the result of an earlier call; default NULL: 1 */
    void *z;           /* op(A).rows elements; default NULL: z is not updated */
} spmv_epilogue;

/* Fills epilogue with the defaults. size: sizeof(spmv_epilogue). */
SPMV_API void spmv_epilogue_init(spmv_epilogue *epilogue, size_t size);

/* A product with additional work on its result:
 *
 *     y    = alpha op(A) x + beta y       as spmv_apply, the same bits
 *     *dot = sum_i conj(w_i) y_i          if w is given; with w == y this is ||y||^2
 *     z_i  = z_i + gamma y_i              if z is given, for every row i
 *
 * The method "tiles" does this within the product: y is not read again and, on cuda, nothing else
 * is launched. Other methods do it after the product. Queued; otherwise as spmv_apply.
 *
 *   epilogue  NULL means spmv_apply. w, gamma and z are read during the product. With no rows,
 *             *dot = 0.
 * Other parameters: as for spmv_apply.
 *
 * Aliasing: z overlaps no other array. *dot is not part of any other array and is not gamma.
 *
 * Errors: those of spmv_apply; SPMV_ERROR_ARGUMENT (also: only one of w and dot, aliasing),
 * SPMV_ERROR_UNSUPPORTED (a plan for several vectors, with strides or of a 16-bit type).
 * Determinism: as for spmv_apply. The order of the sum in dot is fixed by the plan and the method.
 * Accuracy: to first order |dot - exact| <= (n + 2) u sum_i |w_i| |y_i|, where n is the number of
 * rows and u the unit roundoff of the type; n + 5 instead of n + 2 for complex types. On ref, dot
 * is summed in long double. */
SPMV_API spmv_status spmv_apply_with(spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta,
                                     void *y, const spmv_epilogue *epilogue);

/* The description of a plan. Strings are valid until the plan is destroyed. */
typedef struct spmv_plan_info {
    size_t size;                /* of this struct in bytes */
    const char *method;         /* name of the method */
    const char *why;            /* one sentence: why this method was chosen */
    spmv_type type;             /* of vectors */
    spmv_operation operation;   /* as in the options */
    int64_t rows, cols, nnz;    /* of op(A) */
    int64_t bytes;              /* memory that the plan owns */
    double seconds;             /* time of spmv_plan_create */
    const char *layout;         /* one sentence: how the matrix is stored; "": as given */
    int vectors;                /* as in the options */
    spmv_type value_type;       /* of the matrix's values */
    int64_t x_stride, y_stride; /* in elements; never 0, but in an empty vector stored by columns */
    int x_layout, y_layout;     /* as in the options */
} spmv_plan_info;

/* Describes a plan.
 *
 *   info  the result
 *   size  sizeof(spmv_plan_info)
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_plan_describe(const spmv_plan *plan, spmv_plan_info *info, size_t size);

/* A method that a plan which chose its method passed over before it took its own. Static storage.
 *
 *   index    0, 1, ... in the order in which the plan tried them; NULL is returned after the last one,
 *            for NULL, and for a plan whose method was named
 *   *reason  why the plan did not take it, in a few words; unchanged where NULL is returned; may be
 *            NULL */
SPMV_API const char *spmv_plan_passed_over(const spmv_plan *plan, int index, const char **reason);

/* The name of a method of a backend. Static storage.
 *
 *   index  0, 1, ... in the order in which plans try them; NULL is returned after the last method and
 *          for an unknown backend. "auto" is not in the list. */
SPMV_API const char *spmv_method_name(spmv_backend backend, int index);

/* The result of spmv_verify. */
typedef struct spmv_verify_result {
    size_t size;                               /* of this struct in bytes */
    int64_t failed_rows;                       /* rows whose error exceeds its bound */
    int64_t worst_row;                         /* first row with the largest error / bound, or -1 */
    double worst_ratio;                        /* that error / bound; infinite if only one of y_i
                                                  and r_i is finite */
    double worst_value, worst_reference;       /* y_i and r_i of that row: real parts */
    double worst_value_im, worst_reference_im; /* imaginary parts; 0 for real types */
    /* Of ||alpha op(A) x + beta y0||: by how much two results with sums in f64 may differ; and, for
     * vectors of f32 and c64, the norm with sums in long double, else 0 */
    double norm_error, norm;
} spmv_verify_result;

/* Checks host_y against the reference r = alpha op(A) x + beta y0, computed on ctx: in long double
 * on ref, in the type of the vectors on omp. Row i, with n_i entries, passes if
 *
 *     |y_i - r_i| <= 2 (n_i + c) u (|alpha| sum_j |a_ij| |x_j| + |beta| |y0_i|)
 *                    + d (n_i max(1, |alpha|) + 2) s
 *
 *   u     unit roundoff of the vectors' type: 2^-53 (f64, c128), 2^-24 (f32, c64)
 *   s     smallest subnormal number of that type
 *   c, d  3 and 1 for real types, 6 and 4 for complex types; |.| is then the modulus
 *
 * With 16-bit vectors u and s are those of f32, and the bound has one term more for the last rounding of
 * both: v (|y_i| + |r_i|) + t, with v and t the unit roundoff and the smallest subnormal number of the
 * 16-bit type.
 *
 * A row that is not finite passes if both y_i and r_i are not finite. So a row fails if its sum
 * overflows in the type of the vectors but not in long double, before a small alpha scales it.
 *
 *   ctx                    a context of the backend ref or omp
 *   a                      in host memory; a valid matrix (spmv_matrix_check)
 *   host_alpha, host_beta  one scalar each, as for spmv_apply; NULL means 1 and 0
 *   host_x                 op(A).cols elements
 *   host_y0                op(A).rows elements; may be NULL if beta is 0
 *   host_y                 op(A).rows elements
 *   type                   of the vectors: the matrix's, or f64 with an f32 matrix
 *   result                 filled for SPMV_OK and SPMV_ERROR_CHECK; may be NULL
 *   size                   sizeof(spmv_verify_result)
 *
 * Several vectors are checked one by one.
 *
 * Returns SPMV_OK if every row passes, else SPMV_ERROR_CHECK; the message names the worst row.
 * Errors: SPMV_ERROR_ARGUMENT (also: a cuda context, an unknown operation), SPMV_ERROR_TYPE,
 * SPMV_ERROR_SIZE, SPMV_ERROR_LIMIT, SPMV_ERROR_MEMORY.
 * Determinism: the result does not depend on the number of threads.
 * Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, sections
 * 3.1 and 3.6. */
SPMV_API spmv_status spmv_verify(spmv_context *ctx, const spmv_csr *a, spmv_operation operation, const void *host_alpha,
                                 const void *host_x, const void *host_beta, const void *host_y0, const void *host_y,
                                 spmv_type type, spmv_verify_result *result, size_t size);

SPMV_END_DECLS

#endif
