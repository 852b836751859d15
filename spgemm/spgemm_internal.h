/* Shared by the files of sparse products: the plan, and the interface of a method.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPGEMM_INTERNAL_H
#define SPGEMM_INTERNAL_H

#include <spmv/spgemm.h>

#include "formats/matrix_internal.h"

struct spgemm_method;

/* The arrays of a, b and C are in the context's memory. */
struct spmv_spgemm_plan {
    spmv_context *ctx;
    const struct spgemm_method *method;
    spmv_csr a, b;  /* val is not used: NULL for a pattern, otherwise any other address */
    spmv_type type; /* of C */
    int64_t max_bytes;

    /* set by the front: sum over the entries of A of the lengths of B's rows, or a bound of it */
    int64_t products;
    /* the products of the rows before each of the rows + 1 rows, in host memory; NULL if the arrays
     * are on a device, if there is a bound only, and after the symbolic phase */
    int64_t *products_before;
    int64_t longest; /* row of B; on a device: not known */
    bool counted;    /* false: products is a bound; on a device: not used */
    /* on cuda, of parts of some rows of C: how many products, and how many columns; 0: not known */
    int64_t sampled_products, sampled_columns;
    /* C, set by the method's symbolic function, from context_alloc */
    int64_t nnz;
    int64_t *row_ptr; /* a.rows + 1; on a device, before the symbolic phase: the products of each row */
    int32_t *col;     /* nnz */

    void *state;           /* of the method; NULL: none */
    int64_t state_bytes;   /* of the context's memory that the state holds */
    int64_t working_bytes; /* the most temporary memory of the symbolic phase */
    /* the patterns of A and B if they came from host memory; each may be NULL */
    spmv_matrix *copied[2];
    char why[160];
    double seconds;
};

struct spgemm_method {
    const char *name;
    /* rows > 0, both matrices valid. Fills nnz, row_ptr, col, state. */
    spmv_status (*symbolic)(struct spmv_spgemm_plan *plan);
    /* nnz > 0; as spmv_spgemm_values */
    spmv_status (*numeric)(struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c);
    /* The symbolic phase, and the values of C if that saves time: *c, from context_alloc, has room for
     * at least nnz values; NULL: the numeric phase has to follow. NULL: there is no such function. */
    spmv_status (*at_once)(struct spmv_spgemm_plan *plan, const void *a, const void *b, void **c);
    void (*destroy)(struct spmv_spgemm_plan *plan); /* releases the state; NULL: nothing to do */
};

/* The products of the rows of A before row i, or as many as there can be at most, 0 <= i <= rows. Arrays on
 * the host only. */
static inline int64_t spgemm_products_before(const struct spmv_spgemm_plan *plan, int64_t i)
{
    return plan->products_before != NULL ? plan->products_before[i] : row_first(&plan->a, i) * plan->longest;
}

/* Allocates row_ptr, unless there is one. */
spmv_status spgemm_alloc_row_ptr(struct spmv_spgemm_plan *plan);

/* offsets[k] = the number of products of the entries of A before entry k, 0 <= k <= nnz of A, by the
 * primitives, in new memory from context_alloc. */
spmv_status spgemm_entry_offsets(struct spmv_spgemm_plan *plan, int64_t **offsets);

/* to[i] = from[i + 1] - from[i], 0 <= i < n, with integers of 32 or 64 bits. */
spmv_status spgemm_differences(spmv_context *ctx, const void *from, int bits, void *to, int64_t n);

/* Notes that the symbolic phase takes this much working memory; SPMV_ERROR_MEMORY if that is more
 * than max_bytes. */
spmv_status spgemm_working_bytes(struct spmv_spgemm_plan *plan, int64_t bytes);

/* Whether the host has this much memory available. An allocation alone does not detect that it has
 * not, because the system overcommits memory. */
bool spgemm_host_has(int64_t bytes);

/* SPMV_ERROR_MEMORY if the host's memory cannot hold the columns of this many entries. */
spmv_status spgemm_room_for_columns(struct spmv_spgemm_plan *plan, int64_t nnz);

/* The methods of each backend; a list ends with a NULL name, its first is the default
 * (spgemm_methods.c). */
extern const struct spgemm_method spgemm_methods_ref[], spgemm_methods_omp[];
extern const struct spgemm_method spgemm_methods_cuda[];

/* The functions of the methods. */
spmv_status spgemm_rows_symbolic_ref(struct spmv_spgemm_plan *plan);
spmv_status spgemm_rows_numeric_ref(struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c);
spmv_status spgemm_rows_symbolic_omp(struct spmv_spgemm_plan *plan);
spmv_status spgemm_rows_numeric_omp(struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c);
spmv_status spgemm_rows_at_once_omp(struct spmv_spgemm_plan *plan, const void *a, const void *b, void **c);
void spgemm_rows_destroy_omp(struct spmv_spgemm_plan *plan);
/* spgemm_1_expand.c, on every backend */
spmv_status spgemm_expand_symbolic(struct spmv_spgemm_plan *plan);
spmv_status spgemm_expand_numeric(struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c);
/* spgemm_cuda.cu. Checks the arrays of A and B, which are on the device, counts the products, for each
 * row in row_ptr, and takes the sample. *valid: no fault was found, and neither matrix has 0 rows. Waits once. */
spmv_status spgemm_survey_cuda(struct spmv_spgemm_plan *plan, bool *valid) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status spgemm_rows_symbolic_cuda(struct spmv_spgemm_plan *plan) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status spgemm_rows_numeric_cuda(struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
void spgemm_rows_destroy_cuda(struct spmv_spgemm_plan *plan) CUDA_ONLY();

#endif
