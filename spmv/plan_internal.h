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
    METHOD_TABLE = 8,    /* a table of values, where it is asked for; a plan needs none */
    METHOD_EPILOGUE = 16 /* an epilogue in the product itself: y has the same bits. Else it comes behind (epilogue.c) */
};

/* One product, and what it does besides. */
struct plan_product {
    const void *alpha, *beta; /* one scalar of plan->type each, in host memory, never NULL */
    bool beta_zero;           /* y is not read */
    const void *x;            /* element v of row i lies at i * plan->x_stride + v, and so y */
    void *y;
    const spmv_epilogue *epilogue; /* NULL: none; else it asks for something */

    /* For solvers; methods without dot_parts and column_parts ignore them. *stop, in the context's memory: where it is
     * not 0, the product may leave y and the dot product as they were (NULL: it must not). leaves_parts: the product
     * leaves parts of the dot product, to be added up, instead of the sum. column_parts: where it leaves parts of x'y of
     * each column, one column after the other. */
    const int *stop;
    bool leaves_parts;
    void *column_parts;
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

    /* The product. Looks at the epilogue where it has METHOD_EPILOGUE. Only called with rows > 0. */
    spmv_status (*apply)(const spmv_plan *plan, const struct plan_product *product);

    /* Where a product with leaves_parts leaves the parts of the dot product, and how many. NULL: it cannot. */
    const void *(*dot_parts)(const spmv_plan *plan, int64_t *count);

    /* How many parts of each column's x'y a product can leave; 0: it cannot. NULL: 0. */
    int64_t (*column_parts)(const spmv_plan *plan, const void *x);

    /* Releases plan->state, which may be half built or NULL; NULL: nothing to release. */
    void (*release)(spmv_plan *plan);
};

/* X(name, TYPE of the values, TYPE of vectors and sums): the types of products. */
#define PLAN_TYPES_LIST(X)                                                                                             \
    X(f32, F32, F32)                                                                                                   \
    X(f64, F64, F64)                                                                                                   \
    X(mixed, F32, F64)                                                                                                 \
    X(c64, C64, C64)                                                                                                   \
    X(c128, C128, C128)
#define PLAN_TYPES_ENUM_(name, STORED, SUMS) PLAN_##name,
enum plan_types { PLAN_TYPES_LIST(PLAN_TYPES_ENUM_) PLAN_TYPES };
#undef PLAN_TYPES_ENUM_

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
    enum plan_types types;             /* a.type and type together */
    enum spmv_compression compression; /* the option */
    bool update_waits;                 /* the method's update does */
    bool updates;                      /* values may be replaced */
    spmv_matrix *transposed;           /* the storage behind a where op(A) was formed on the host */
    void *row_ptr, *col, *val;         /* what the plan owns of a, in the context's memory; val: also transposed's */
    void *from; /* where values may be replaced in a transposed matrix: which entry of A each one of a is */
    int from_bits;
    void *state;                       /* the method's own */
    void *epilogue;                    /* scratch of an epilogue that comes behind the product */
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

/* What is the same in every product: scalars that are NULL stand for 1 and 0. */
struct plan_product plan_product_of(const spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta,
                                    void *y);

/* The product and its epilogue, arguments unchecked; rows > 0. */
spmv_status plan_multiply(const spmv_plan *plan, const struct plan_product *product);

/* The plan's types as one; PLAN_TYPES: there are no products in them. */
enum plan_types plan_types_of(spmv_type stored, spmv_type sums);

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

/* The scratch of an epilogue behind the product, where the method has none of its own, and the epilogue. */
spmv_status epilogue_prepare(spmv_plan *plan);
spmv_status epilogue_behind(const spmv_plan *plan, const void *y, const spmv_epilogue *epilogue);

/* Whether an array of the plan's type begins where its backend can load an element at a time: a GPU loads complex
 * numbers as wholes. */
bool plan_can_load(const spmv_plan *plan, const void *array);

/* Whether the CPU can read the arrays. */
bool plan_reads_on_host(const spmv_context *ctx, const spmv_csr *a);

/* The methods' functions. */
spmv_status definition_ref_apply(const spmv_plan *, const struct plan_product *);
spmv_status tiles_omp_prepare(spmv_plan *);
spmv_status tiles_omp_apply(const spmv_plan *, const struct plan_product *);
void tiles_omp_release(spmv_plan *);
spmv_status staged_prepare(spmv_plan *);
spmv_status staged_apply(const spmv_plan *, const struct plan_product *);
void staged_release(spmv_plan *);
spmv_status scalar_cuda_apply(const spmv_plan *, const struct plan_product *);
spmv_status vector_cuda_apply(const spmv_plan *, const struct plan_product *);
spmv_status fused_cuda_prepare(spmv_plan *);
spmv_status fused_cuda_apply(const spmv_plan *, const struct plan_product *);
void fused_cuda_release(spmv_plan *);
spmv_status tiles_cuda_prepare(spmv_plan *);
spmv_status tiles_cuda_update(spmv_plan *);
spmv_status tiles_cuda_apply(const spmv_plan *, const struct plan_product *);
void tiles_cuda_release(spmv_plan *);
const void *tiles_cuda_parts(const spmv_plan *, int64_t *count);
spmv_status columns_cuda_prepare(spmv_plan *);
spmv_status columns_cuda_apply(const spmv_plan *, const struct plan_product *);
void columns_cuda_release(spmv_plan *);
int64_t columns_cuda_parts(const spmv_plan *, const void *x);
spmv_status blocked_cuda_prepare(spmv_plan *);
spmv_status blocked_cuda_update(spmv_plan *);
spmv_status blocked_cuda_apply(const spmv_plan *, const struct plan_product *);
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
