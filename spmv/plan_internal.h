/* The inside of a plan, and the table of methods.
 *
 * A method is one way to compute y = alpha op(A) x + beta y on one backend: one file with its functions, one row in the
 * table of methods (methods.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include <spmv/operator.h>

#include "backend.h"

/* What not every method can do; of a plan, what it needs. */
enum {
    METHOD_VECTORS = 1, /* several vectors at once, or vectors with strides */
    METHOD_MIXED = 2,   /* values of another type than vectors and sums */
    METHOD_COMPLEX = 4,
    METHOD_TABLE = 8 /* a table of values, where it is asked for; a plan needs none */
};

struct spmv_method {
    spmv_backend backend;
    const char *name;
    const char *why; /* of those that a plan takes by itself: one sentence */
    unsigned can;    /* METHOD_...; a plan takes the first of its backend that can do what it needs */

    /* Builds plan->state from plan->a and adds to plan->bytes; NULL: nothing to build. */
    spmv_status (*prepare)(spmv_plan *plan);

    /* plan->a.val holds, or is, other values: queues what has to follow, and waits only where plan->update_waits says
     * so. Allocates nothing. Only called with nnz > 0. NULL: the method keeps no copy of the values. */
    spmv_status (*update)(spmv_plan *plan);

    /* The product. alpha, beta: one scalar of plan->type each, in host memory, never NULL; beta_zero: y is not read.
     * Element v of row i of y lies at i * plan->y_stride + v, and so x. Only called with rows > 0. */
    spmv_status (*apply)(const spmv_plan *plan, const void *alpha, const void *x, const void *beta, bool beta_zero,
                         void *y);

    /* The same with an epilogue, which asks for something: y has the bits of apply. NULL: the epilogue comes behind the
     * product (epilogue.c). */
    spmv_status (*apply_with)(const spmv_plan *plan, const void *alpha, const void *x, const void *beta, bool beta_zero,
                              void *y, const spmv_epilogue *epilogue);

    /* Releases plan->state, which may be half built or NULL; NULL: nothing to release. */
    void (*release)(spmv_plan *plan);
};

/* What the solvers' check of symmetry found (solvers/cg_symmetry.c). */
enum plan_symmetry { PLAN_SYMMETRY_UNKNOWN = 0, PLAN_SYMMETRIC, PLAN_NOT_SYMMETRIC };

struct spmv_plan {
    spmv_context *ctx;
    const struct spmv_method *method;
    spmv_csr a;     /* op(A) in the context's memory, row offsets of 32 bits where nnz < 2^31; a.type: of the values,
                       the plan's own where there are none */
    spmv_type type; /* of vectors and sums */
    spmv_operation operation;
    int vectors;
    int64_t x_stride, y_stride;
    int compression;           /* of columns, as in spmv_plan_options: -1, 0, 1 */
    bool wants_table;          /* of values, where they are few */
    bool update_waits;         /* the method's update does */
    bool updates;              /* values may be replaced */
    spmv_matrix *transposed;   /* the storage behind a where op(A) was formed on the host */
    void *row_ptr, *col, *val; /* what the plan owns of a, in the context's memory; val: also transposed's */
    void *from; /* where values may be replaced in a transposed matrix: which entry of A each one of a is */
    int from_bits;
    void *state;    /* the method's own */
    void *epilogue; /* scratch of an epilogue that comes behind the product */
    /* For solvers on cuda, and only while they queue products with an epilogue: where *stop, in the context's memory,
     * is not 0, such a product may leave y and the dot product as they were (NULL: it must not); leaves_parts: it
     * leaves parts of the dot product to be added up (tiles_cuda_parts). Method tiles; the others do not look, but for
     * columns with parts: a product then leaves there parts of x'y of each column (columns_cuda_parts), one after the
     * other, and looks at stop. */
    const int *stop;
    bool leaves_parts;
    void *parts;
    int64_t longest_row;               /* -1: nobody looked */
    enum plan_symmetry symmetry;       /* of op(A) with its present values; new values make it unknown */
    double asymmetry, asymmetry_bound; /* where it is not symmetric: what the check found, and what it allows */
    bool values_unseen; /* an update of values was captured: each launch may bring others, so no verdict is kept */
    bool settled;       /* nothing that the preparation queued is left to wait for */
    int64_t bytes;
    double seconds;
    char why[256];
    char layout[512]; /* how the method holds the matrix; "" where it is as it came */
};

/* What the plan asks of a method: METHOD_... */
unsigned plan_needs(const spmv_plan *plan);

/* plan->method and plan->why: the method of that name, or the backend's first (NULL, "auto"), that can do what the plan
 * needs. SPMV_ERROR_METHOD (the sentence lists the names), SPMV_ERROR_UNSUPPORTED. */
spmv_status method_choose(spmv_plan *plan, const char *name);

/* Memory that belongs to the plan: counted in plan->bytes. */
spmv_status plan_alloc(spmv_plan *plan, int64_t bytes, void **memory);

/* Such memory that the plan can do without: NULL where there is none. */
spmv_status plan_alloc_if_room(spmv_plan *plan, int64_t bytes, void **memory);

/* Such memory that turns out not to be needed, NULL: none. The rest goes with spmv_free. */
void plan_free(spmv_plan *plan, int64_t bytes, void *memory);

/* plan->a: op(A) in the context's memory (plan_matrix.c). */
spmv_status plan_take_matrix(spmv_plan *plan, const spmv_csr *a);
void plan_release_matrix(spmv_plan *plan);

/* The scratch of an epilogue behind the product, where the method has no apply_with, and the epilogue. */
spmv_status epilogue_prepare(spmv_plan *plan);
spmv_status epilogue_behind(const spmv_plan *plan, const void *y, const spmv_epilogue *epilogue);

/* Whether an array of the plan's type begins where its backend can load an element at a time: a GPU loads complex
 * numbers as wholes. */
bool plan_can_load(const spmv_plan *plan, const void *array);

/* Whether the CPU can read the arrays. */
bool plan_reads_on_host(const spmv_context *ctx, const spmv_csr *a);

/* The methods' functions. */
spmv_status definition_ref_apply(const spmv_plan *, const void *, const void *, const void *, bool, void *);
spmv_status definition_ref_apply_with(const spmv_plan *, const void *, const void *, const void *, bool, void *,
                                      const spmv_epilogue *);
spmv_status tiles_omp_prepare(spmv_plan *);
spmv_status tiles_omp_apply(const spmv_plan *, const void *, const void *, const void *, bool, void *);
spmv_status tiles_omp_apply_with(const spmv_plan *, const void *, const void *, const void *, bool, void *,
                                 const spmv_epilogue *);
void tiles_omp_release(spmv_plan *);
spmv_status staged_prepare(spmv_plan *);
spmv_status staged_apply(const spmv_plan *, const void *, const void *, const void *, bool, void *);
void staged_release(spmv_plan *);
spmv_status scalar_cuda_apply(const spmv_plan *, const void *, const void *, const void *, bool, void *);
spmv_status vector_cuda_apply(const spmv_plan *, const void *, const void *, const void *, bool, void *);
spmv_status fused_cuda_prepare(spmv_plan *);
spmv_status fused_cuda_apply(const spmv_plan *, const void *, const void *, const void *, bool, void *);
void fused_cuda_release(spmv_plan *);
spmv_status tiles_cuda_prepare(spmv_plan *);
spmv_status tiles_cuda_update(spmv_plan *);
spmv_status tiles_cuda_apply(const spmv_plan *, const void *, const void *, const void *, bool, void *);
spmv_status tiles_cuda_apply_with(const spmv_plan *, const void *, const void *, const void *, bool, void *,
                                  const spmv_epilogue *);
void tiles_cuda_release(spmv_plan *);

/* Where a product with leaves_parts leaves the parts of the dot product, and how many. */
const void *tiles_cuda_parts(const spmv_plan *, int64_t *count);
spmv_status columns_cuda_prepare(spmv_plan *);
spmv_status columns_cuda_apply(const spmv_plan *, const void *, const void *, const void *, bool, void *);
void columns_cuda_release(spmv_plan *);

/* How many parts of each column's x'y a product leaves where plan->parts is set; 0: it cannot. */
int64_t columns_cuda_parts(const spmv_plan *, const void *x);
spmv_status blocked_cuda_prepare(spmv_plan *);
spmv_status blocked_cuda_update(spmv_plan *);
spmv_status blocked_cuda_apply(const spmv_plan *, const void *, const void *, const void *, bool, void *);
void blocked_cuda_release(spmv_plan *);

/* An epilogue of complex vectors on the device; scratch: so many bytes. */
int64_t epilogue_scratch_cuda(const spmv_plan *plan);
spmv_status epilogue_cuda(const spmv_plan *plan, const void *y, const spmv_epilogue *epilogue, void *scratch);

/* to[i] = from[i], 0 <= i < n, on the device; every from[i] fits. */
spmv_status narrow_offsets_cuda(spmv_context *ctx, const int64_t *from, int32_t *to, int64_t n);

/* The pattern of B = transpose(A) on the device, and which entry of A each of B is: row_ptr, a->cols + 1 offsets of
 * row_ptr_bits, col and from, a->nnz numbers, from of from_bits. nnz > 0. */
spmv_status transpose_cuda(spmv_context *ctx, const spmv_csr *a, void *row_ptr, int row_ptr_bits, int32_t *col,
                           void *from, int from_bits);

/* to[k] = values[from[k]], or its conjugate, 0 <= k < n, on the device. */
spmv_status take_values_cuda(spmv_context *ctx, spmv_type type, bool conjugate, const void *values, const void *from,
                             int from_bits, void *to, int64_t n);

#endif
