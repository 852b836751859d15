/* Products of sparse matrices: C = A B, and the triple product R (A P) of multigrid.
 *
 *     spmv_matrix *c;
 *     spmv_csr view;
 *     spmv_spgemm(ctx, &a, &b, NULL, &c);
 *     spmv_matrix_view(c, &view);
 *     spmv_matrix_destroy(c);
 *
 * A plan keeps the pattern of C. Matrices with new values and the same patterns then need the
 * numeric phase only (spmv_spgemm_values).
 *
 *     c_ij = sum over k of a_ik b_kj
 *
 * Entry (i, j) of C exists if row i of A has an entry k for which row k of B has an entry j, also
 * if the sum is 0. The columns of C ascend in each row.
 *
 * Matrices. The two arrays of a view a are in host memory, or both are in the context's memory; C
 * lies where A and B lie. The columns ascend strictly in each row of A and B. The types of A and B
 * are equal: f64, f32, c128 or c64. A pattern counts as ones of the other's type: its factor is left
 * out. The product of two patterns has type f64.
 *
 * Determinism: k ascends in each sum. The first product starts the sum; each product and each sum
 * is rounded in the value type. So C has the same bits on every backend, for every method and for
 * any number of threads.
 *
 * Source: F. G. Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted
 * transposition", ACM TOMS 4(3), 1978.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SPGEMM_H
#define SPMV_SPGEMM_H

#include <spmv/matrix.h>

SPMV_BEGIN_DECLS

/* The pattern of a product C = A B, and what the numeric phase needs. */
typedef struct spmv_spgemm_plan spmv_spgemm_plan;

typedef struct spmv_spgemm_options {
    size_t size; /* sizeof(spmv_spgemm_options), set by spmv_spgemm_options_init */

    /* The name of a method (spmv_spgemm_method_name). Default NULL or "auto": chosen from the
     * matrices and the backend. */
    const char *method;

    /* The most bytes of working memory, beside A, B and C. The method "expand" works in parts. A
     * method that cannot work in so few bytes gives SPMV_ERROR_MEMORY before it allocates them.
     * Default 0: what is available. */
    int64_t max_bytes;
} spmv_spgemm_options;

/* Fills options with the defaults. size: sizeof(spmv_spgemm_options). */
SPMV_API void spmv_spgemm_options_init(spmv_spgemm_options *options, size_t size);

/* The name of a method of a backend. Static storage.
 *
 *   index  0, 1, ...; NULL is returned after the last method and for an unknown backend. "auto" is
 *          not in the list. */
SPMV_API const char *spmv_spgemm_method_name(spmv_backend backend, int index);

/* The symbolic phase: computes the pattern of C = A B. May wait.
 *
 *   a, b     host memory: the plan copies what it needs. The context's memory: the plan borrows the
 *            row offsets and columns, which must outlive it and must not change. Values are not
 *            read.
 *   options  NULL means defaults
 *   *plan    the plan; NULL after an error
 *
 * The arrays are checked: SPMV_ERROR_SIZE if the sizes of A and B do not fit together, or if
 * offsets or columns are wrong, unsorted or repeated in a row.
 *
 * Errors: SPMV_ERROR_ARGUMENT (also: A and B in different memories), SPMV_ERROR_SIZE,
 * SPMV_ERROR_LIMIT, SPMV_ERROR_TYPE, SPMV_ERROR_METHOD, SPMV_ERROR_MEMORY (the message says how
 * much was needed). */
SPMV_API spmv_status spmv_spgemm_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                             const spmv_spgemm_options *options, spmv_spgemm_plan **plan);
SPMV_API void spmv_spgemm_plan_destroy(spmv_spgemm_plan *plan);

typedef struct spmv_spgemm_info {
    size_t size;             /* of this struct in bytes */
    const char *method;      /* name of the method */
    const char *why;         /* one sentence: why this method was chosen */
    spmv_type type;          /* of C */
    int64_t rows, cols, nnz; /* of C */
    int64_t products;        /* number of products a_ik b_kj */
    int64_t bytes;           /* memory that the plan owns */
    int64_t working_bytes;   /* the most working memory that the symbolic phase took */
    double seconds;          /* time of spmv_spgemm_plan_create */
} spmv_spgemm_info;

/* Describes a plan. Strings are valid until the plan is destroyed.
 *
 *   info  the result
 *   size  sizeof(spmv_spgemm_info)
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_spgemm_describe(const spmv_spgemm_plan *plan, spmv_spgemm_info *info, size_t size);

/* Writes the view of C without values (val is NULL): arrays of the plan, in the context's memory,
 * valid until the plan is destroyed. For a NULL plan all other members are 0. */
SPMV_API void spmv_spgemm_pattern(const spmv_spgemm_plan *plan, spmv_csr *view);

/* The numeric phase: computes the values of C. Queued; allocates nothing, does not wait, can be
 * captured, unless the method is "expand".
 *
 *   a_values, b_values  of A and B, in the context's memory; NULL for a pattern
 *   c_values            nnz elements of the type of C, in the context's memory
 *
 * Aliasing: c_values overlaps no other array.
 * Errors: SPMV_ERROR_ARGUMENT (NULL), SPMV_ERROR_MEMORY, SPMV_ERROR_DEVICE. */
SPMV_API spmv_status spmv_spgemm_values(spmv_spgemm_plan *plan, const void *a_values, const void *b_values,
                                        void *c_values);

/* C = A B: both phases.
 *
 *   a, b     in host memory, or both in the context's memory
 *   options  NULL means defaults
 *   *c       the product, in the same memory; NULL after an error
 *
 * Errors: those of spmv_spgemm_plan_create and spmv_spgemm_values. */
SPMV_API spmv_status spmv_spgemm(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                 const spmv_spgemm_options *options, spmv_matrix **c);

/* C = R (A P), the product A P first. Memory and options as for spmv_spgemm.
 *
 * Errors: those of spmv_spgemm. */
SPMV_API spmv_status spmv_spgemm_triple(spmv_context *ctx, const spmv_csr *r, const spmv_csr *a, const spmv_csr *p,
                                        const spmv_spgemm_options *options, spmv_matrix **c);

#ifndef SPMV_NO_OLD_NAMES
/* ---------------------------------------------------------------- old names, until 0.11
 * Deprecated: each has the new name with spgemm in place of multiply. */
typedef spmv_spgemm_plan spmv_multiply_plan;
typedef spmv_spgemm_options spmv_multiply_options;
typedef spmv_spgemm_info spmv_multiply_info;
SPMV_API void spmv_multiply_options_init(spmv_multiply_options *options, size_t size);
SPMV_API const char *spmv_multiply_method_name(spmv_backend backend, int index);
SPMV_API spmv_status spmv_multiply_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                               const spmv_multiply_options *options, spmv_multiply_plan **plan);
SPMV_API void spmv_multiply_plan_destroy(spmv_multiply_plan *plan);
SPMV_API spmv_status spmv_multiply_describe(const spmv_multiply_plan *plan, spmv_multiply_info *info, size_t size);
SPMV_API void spmv_multiply_pattern(const spmv_multiply_plan *plan, spmv_csr *view);
SPMV_API spmv_status spmv_multiply_values(spmv_multiply_plan *plan, const void *a_values, const void *b_values,
                                          void *c_values);
SPMV_API spmv_status spmv_multiply(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                   const spmv_multiply_options *options, spmv_matrix **c);
SPMV_API spmv_status spmv_multiply_triple(spmv_context *ctx, const spmv_csr *r, const spmv_csr *a, const spmv_csr *p,
                                          const spmv_multiply_options *options, spmv_matrix **c);
#endif

SPMV_END_DECLS

#endif
