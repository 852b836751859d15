/* Preconditioners: M^-1 r for an M near A, so that conjugate gradients need fewer iterations.
 *
 * M is symmetric positive definite wherever A is. It is made once from the matrix and applied once
 * an iteration. A class of the caller's own (spmv_preconditioner_wrap) is used like a built-in one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_PRECONDITIONER_H
#define SPMV_PRECONDITIONER_H

#include <spmv/operator.h>

SPMV_BEGIN_DECLS

typedef struct spmv_preconditioner spmv_preconditioner;

/* The functions of the caller's own preconditioner. self comes from spmv_preconditioner_wrap. */
typedef struct spmv_preconditioner_class {
    size_t size;      /* sizeof(spmv_preconditioner_class) */
    const char *name; /* copied */

    /* z = M^-1 r: rows elements each, in the context's memory, no overlap, rows > 0. M is symmetric
     * positive definite and the same in every call. Queues on the context's stream; should allocate
     * nothing and wait for nothing. A status other than SPMV_OK ends the solve. */
    spmv_status (*apply)(void *self, const void *r, void *z);

    void (*destroy)(void *self); /* releases self; may be NULL */
} spmv_preconditioner_class;

typedef struct spmv_preconditioner_options {
    size_t size;
    spmv_type type;  /* of r and z; default: the matrix's (f64 for a pattern). f64 also with an f32
                        matrix. */
    int block;       /* block-jacobi: rows of a block, 1 to 64; default 0: 16 */
    int degree;      /* chebyshev: products an application, 0 to 100; default -1: 4 */
    int steps;       /* chebyshev: steps of the estimate of the eigenvalues; default 0: 20 */
    double lowest;   /* chebyshev: the interval of the eigenvalues of D^-1 A; default 0:
                        estimated */
    double highest;  /* likewise; larger than lowest */
    double shift;    /* ic0: the first diagonal shift, relative to the diagonal; default 0: tried
                        without one */
    double strength; /* amg: the threshold of strong couplings, 0 to 1; default 0: 0.25 */
    spmv_plan *plan; /* chebyshev: a plan for products with A, of the type of r and z, which must
                        outlive the preconditioner; default NULL: it makes its own */
} spmv_preconditioner_options;

SPMV_API void spmv_preconditioner_options_init(spmv_preconditioner_options *options, size_t size);

/* Makes a preconditioner for a symmetric positive definite A. May wait. The names:
 * - "none": M = I.
 * - "jacobi": M = D, the diagonal of A.
 * - "block-jacobi": M = the square blocks of options.block rows along the diagonal, inverted here
 *   by Cholesky; a block that is not positive definite is replaced by its diagonal (described).
 * - "chebyshev": M^-1 = p(D^-1 A) D^-1, with the polynomial that is best on an interval of
 *   eigenvalues: products with A alone (Saad 2003, section 12.3.2). The interval is estimated by
 *   the Lanczos numbers of a few steps from a fixed start, widened to stay safe.
 * - "ic0": M = L L', an incomplete Cholesky factor with the pattern of A's lower triangle (J. A.
 *   Meijerink, H. A. van der Vorst, Math. Comp. 31, 1977). Where a pivot fails, A + shift D is
 *   factored instead, with a shift that doubles until it works (T. A. Manteuffel, Math. Comp. 34,
 *   1980; described).
 * - "amg": a V-cycle of BoomerAMG, from the library hypre, opened when asked for; f64, on ref and
 *   omp.
 * - "auto" (NULL): one of these, decided from the matrix and the backend; describe says why.
 *
 * a: square; where only one triangle is read, it is the lower one. Host arrays may go afterwards;
 * arrays in the context's memory must outlive a "chebyshev" that makes its own plan. Only the signs
 * of the diagonal are checked; the caller promises symmetry. name: NULL means "auto". options: NULL
 * means defaults. *preconditioner: NULL after an error.
 *
 * Errors: SPMV_ERROR_METHOD (the sentence lists the names), SPMV_ERROR_NOT_SQUARE,
 * SPMV_ERROR_NOT_POSITIVE (an entry of the diagonal is missing or not positive; the sentence names
 * the row), SPMV_ERROR_NOT_FINITE, SPMV_ERROR_TYPE (complex), SPMV_ERROR_UNSUPPORTED (the sentence
 * says what to install, or where it is supported), SPMV_ERROR_ARGUMENT, SPMV_ERROR_SIZE,
 * SPMV_ERROR_MEMORY. Same bits every run and for any number of threads. */
SPMV_API spmv_status spmv_preconditioner_create(spmv_context *ctx, const char *name, const spmv_csr *a,
                                                const spmv_preconditioner_options *options,
                                                spmv_preconditioner **preconditioner);

/* Makes a preconditioner of the caller's own functions. type: f64 or f32; rows: the length of r and
 * z. methods: copied. self: passed to the functions; may be NULL; after success it belongs to the
 * preconditioner (methods->destroy). Errors: SPMV_ERROR_ARGUMENT, SPMV_ERROR_TYPE,
 * SPMV_ERROR_MEMORY. */
SPMV_API spmv_status spmv_preconditioner_wrap(spmv_context *ctx, spmv_type type, int64_t rows,
                                              const spmv_preconditioner_class *methods, void *self,
                                              spmv_preconditioner **preconditioner);

SPMV_API void spmv_preconditioner_destroy(spmv_preconditioner *preconditioner);

/* z = M^-1 r. Queued; the built-in ones allocate nothing and wait for nothing, except "amg", which
 * is hypre's. r, z: rows elements each of the preconditioner's type in the context's memory,
 * without overlap. Two calls with one preconditioner must not run at once. Errors:
 * SPMV_ERROR_ARGUMENT, and what the caller's own function returns. */
SPMV_API spmv_status spmv_preconditioner_apply(const spmv_preconditioner *preconditioner, const void *r, void *z);

typedef struct spmv_preconditioner_info {
    size_t size;
    const char *name;   /* strings live as long as the preconditioner */
    const char *why;    /* one sentence: why this one */
    const char *layout; /* one sentence: what it holds; what had to be changed to get it; "" when
                           there is nothing */
    spmv_type type;
    int64_t rows;
    int64_t bytes;          /* memory it owns, as far as it is ours */
    double seconds;         /* spent in making it */
    double lowest, highest; /* chebyshev: the interval; else 0 */
    double shift;           /* ic0: the shift that it took; else 0 */
    int64_t levels;         /* ic0: rows on the longest chain of a solve; else 0 */
    int64_t fallen;         /* block-jacobi: blocks replaced by their diagonal; ic0: factorisations
                               that failed; else 0 */
} spmv_preconditioner_info;

/* Describes a preconditioner. size: sizeof(spmv_preconditioner_info) as the caller sees it. Errors:
 * SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_preconditioner_describe(const spmv_preconditioner *preconditioner,
                                                  spmv_preconditioner_info *info, size_t size);

/* The built-in name number index, counted from 0; NULL where index is out of range. The first is
 * "none"; "auto" is not among them. */
SPMV_API const char *spmv_preconditioner_name(int index);

SPMV_END_DECLS

#endif
