/* The inside of a plan, and the methods.
 *
 * A method is one way to compute y = alpha op(A) x + beta y on one backend: a file or a folder with
 * its functions, and one row in the backend's table (ref and omp: methods.c, cuda: cuda/choose.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PLAN_INTERNAL_H
#define PLAN_INTERNAL_H

#include <spmv/plan.h>

#include "core/backend.h"
#include "product/cuda/choose.h"

/* Capabilities of a method beyond one vector of a real type, and requirements of a plan. */
enum {
    METHOD_VECTORS = 1, /* several vectors at once, or vectors with strides */
    METHOD_MIXED = 2,   /* values of another type than vectors and sums */
    METHOD_COMPLEX = 4,
    METHOD_TABLE = 8, /* a table of values on request; no plan requires it */
    /* The product itself computes the epilogue, with the same bits in y. Without this flag, the
     * epilogue follows the product (epilogue.c). */
    METHOD_EPILOGUE = 16,
    /* y_i has the same bits however struct plan_ranks divides the rows among ranks. */
    METHOD_RANKS = 32,
    /* the method can multiply the rows that need no elements of other ranks first (enum plan_subset) */
    METHOD_SUBSETS = 64,
    METHOD_HALF = 128 /* 16-bit values and vectors, with sums in f32 */
};

/* The rows that a product computes. INNER: only rows that need no elements of other ranks; which of
 * them, is up to the method. EDGE: the others. */
enum plan_subset { PLAN_ALL, PLAN_INNER, PLAN_EDGE };

/* The sums that a step of conjugate gradients with one vector kernel begins with, on a GPU. All arrays are
 * in the context's memory. */
struct plan_step_parts {
    const void *squares;        /* of each chunk two numbers: the parts of r'r and r'z */
    const void *dot, *products; /* of each tile_rows rows one number: the parts of p'q, and of the squares of q
                                   (plan_squares); NULL: 0 */
    int64_t tile_rows;          /* part_rows of the method */
};

/* For a plan of the rows that one of several ranks has (distributed/): the rank's part of the whole
 * matrix, and what all ranks do together. The functions named "together" are called by all ranks in
 * the same order.
 *
 * Each vector x that is multiplied has `before` elements of other ranks in front of its own
 * elements and `after` elements behind them. x points to the own ones. The columns of the plan's
 * matrix are counted from the first element in front.
 *
 * Rows are in chunks, which depend on the row lengths of the whole matrix only. A tile never
 * crosses the bounds of a chunk. A sum over all rows has one part for each chunk. */
struct plan_ranks {
    void *self;
    int64_t rows, nnz;              /* of the whole matrix */
    int64_t first_row;              /* the number of the rank's first row */
    int rank, count;                /* the number of this rank, and of all */
    int block;                      /* rows of a node; no node is cut between ranks */
    int64_t chunks;                 /* of this rank */
    const int64_t *chunk;           /* chunks + 1: chunk c has rows chunk[c] ... chunk[c + 1] - 1 of this rank */
    const int64_t *chunk_entry;     /* chunks + 1: its entries, counted likewise */
    const bool *edge;               /* chunks: whether the rows of the chunk need elements of other ranks */
    int64_t before, after;          /* elements of other ranks in a vector that is multiplied */
    const struct rank_tools *tools; /* for a hierarchy of matrices (solvers/exchange/rank_tools.h); NULL: none */

    /* Together: fetches the elements of other ranks into x, which has so many vectors by rows. Between the
     * two calls, own elements of x may be read, but not changed. */
    spmv_status (*fetch_start)(void *self, void *x, int vectors);
    spmv_status (*fetch_finish)(void *self, void *x, int vectors);

    /* Together: sums[v] = the sum of the parts of all chunks of all ranks, added in a tree that the
     * number of chunks determines, for 0 <= v < count. parts: the part of chunk c is number
     * v * stride + c. Both are of the type, in host memory. More sums than ever before, from PLAN_SUMS
     * on, take more memory first. */
    spmv_status (*sum)(void *self, spmv_type type, const void *parts, int64_t stride, int count, void *sums);

    /* Together: *dot = a'b over all rows, a number of the type in the context's memory. Of complex vectors the real
     * part, a real number. */
    spmv_status (*dot)(void *self, spmv_type type, const void *a, const void *b, void *dot);

    /* Together: replaces *value by the largest of all ranks. */
    spmv_status (*largest)(void *self, double *value);

    /* On a GPU. Chunks begin at multiples of PLAN_TILE_ROWS rows.
     * - context_chunk: chunk in the context's memory; at least one chunk, if need be an empty one.
     * - queue_sum: together: sums[v] = the sum of numbers[u * count + v] over the tiles u of all
     *   ranks, in a fixed order, for 0 <= v < count <= 2. Both arrays are in the context's memory. A
     *   tile has tile_rows rows, 0: it is a chunk. NULL: sums pass through the host.
     * - queue_parts: NULL unless there is one rank: parts[c] = the sum of numbers[u] over the tiles u of
     *   chunk c. queue_sum adds these parts as sum_numbers does (part_sums.cuh).
     * - queue_step_sums: together: four sums, two of squares, p'q and that of products, to one struct in the
     *   context's memory. With queue_parts: those of each chunk.
     * - leaves_parts: the products of all ranks that have nonzeros leave parts (part_rows).
     * - let_wait: with true, fetch_start, fetch_finish and queue_sum only queue work from now on,
     *   and the host does not wait; they may be captured in a graph. Each of them has been called
     *   before. What orders fetches: exchange_view.cuh. Nothing is allocated or freed. Returns
     *   whether that is so. With false they wait again, as they do at first.
     * - await: waits for an event (cudaEvent_t), or NULL: for all queued work. Returns the failure
     *   of another rank, if there is one. Replaces other waits while let_wait is in force.
     * - view: NULL, or what a solve's kernels need to exchange parts and elements with those of other
     *   ranks by themselves (exchange_view.cuh). Then publish and publish_dot send the parts of own
     *   chunks, of numbers as in queue_sum and of a'b, to all ranks; take stores elements that a kernel
     *   has sent; and meet comes before a kernel that collects parts: the host waits for all ranks,
     *   unless let_wait is in force. */
    const int64_t *context_chunk;
    spmv_status (*queue_sum)(void *self, spmv_type type, const void *numbers, int count, int64_t tile_rows, void *sums);
    spmv_status (*queue_parts)(void *self, spmv_type type, const void *numbers, int64_t tile_rows, void *parts);
    spmv_status (*queue_step_sums)(void *self, spmv_type type, const struct plan_step_parts *parts, void *sums);
    bool leaves_parts;
    bool (*let_wait)(void *self, bool free);
    spmv_status (*await)(void *self, void *event);
    const struct exchange_view *view;
    spmv_status (*publish)(void *self, spmv_type type, const void *numbers, int64_t tile_rows);
    spmv_status (*publish_dot)(void *self, spmv_type type, const void *a, const void *b);
    spmv_status (*take)(void *self, void *x);
    spmv_status (*meet)(void *self);
};
enum { PLAN_SUMS = 4, PLAN_TILE_ROWS = 256 };

/* For a product with leaves_parts, with one part for each part of the dot product: the sum of
 * weight_i (scale y_i)^2. All pointers are to the context's memory. */
struct plan_squares {
    void *parts;
    const void *weight; /* one for each row; NULL: 1 */
    const void *scale;  /* a number */
};

/* The arguments of one product. */
struct plan_product {
    const void *alpha, *beta; /* one scalar of plan->sums each, in host memory, never NULL */
    bool beta_zero;           /* y is not read */
    const void *x;            /* element v of row i is x[i * plan->x_stride + v]; y likewise */
    void *y;
    /* NULL: none; otherwise at least one of its outputs is requested */
    const spmv_epilogue *epilogue;
    enum plan_subset subset; /* not PLAN_ALL: only with METHOD_SUBSETS, and both subsets are requested */

    /* For solvers. Methods without dot_parts and column_parts ignore these members.
     * - stop: a flag in the context's memory, or NULL. Where *stop is not 0, the product may leave
     *   y and the dot product unchanged.
     * - leaves_parts: the product leaves the parts of the dot product instead of their sum.
     * - squares: with leaves_parts, sums of squares; parts NULL: none.
     * - column_parts: receives the parts of x'y of each column, one column after the other. */
    const int *stop;
    bool leaves_parts;
    struct plan_squares squares;
    void *column_parts;
};

/* What a row adds to the squares of spmv_verify_result.norm and norm_error. */
struct row_squares {
    double sum, error;
};

/* spmv_verify, but for these two. *squares: of each row, or NULL; released by the caller. */
spmv_status plan_verify(spmv_context *ctx, const spmv_csr *a, spmv_operation operation, const void *host_alpha,
                        const void *host_x, const void *host_beta, const void *host_y0, const void *host_y,
                        spmv_type type, struct row_squares **squares, spmv_verify_result *result);

/* A row of a backend's table. "auto" takes the first one that can do what the plan requires and does not
 * decline. */
struct spmv_method {
    const char *name; /* NULL: after the last row */
    /* one sentence for plans that chose the method automatically; NULL where "auto" never does */
    const char *why;
    unsigned can; /* METHOD_... */

    /* Why the method declines the matrix, by what is known before a look at it. Returns NULL if it does
     * not. NULL: it takes every matrix. */
    const char *(*suits)(const struct facts *facts);

    /* The same by what prepare has counted so far in plan->facts. prepare calls it. */
    const char *(*pays)(const struct facts *facts);

    /* For a method of ranks: sets the facts that pays asks for, of rows whose columns may be those of a larger
     * matrix. facts->ranks is set. NULL: it asks for none. Waits. */
    spmv_status (*count)(spmv_context *ctx, const spmv_csr *a, struct facts *facts);

    /* Builds plan->state from plan->a and adds to plan->bytes. Declines by setting plan->declined to the
     * reason. NULL: nothing to build. */
    spmv_status (*prepare)(spmv_plan *plan);

    /* Called after plan->a.val got new values or became another array. Queues the work that follows
     * and waits only if plan->update_waits is set. Allocates nothing. Called with nnz > 0 only.
     * NULL: the method keeps no copy of the values. */
    spmv_status (*update)(spmv_plan *plan);

    /* Computes the product, and the epilogue if the method has METHOD_EPILOGUE. Called with rows >
     * 0 only. */
    spmv_status (*apply)(const spmv_plan *plan, const struct plan_product *product);

    /* The array and the number of the parts that a product with leaves_parts leaves. NULL: not
     * supported. */
    const void *(*dot_parts)(const spmv_plan *plan, int64_t *count);

    /* With ranks each part belongs to so many rows, of which PLAN_TILE_ROWS is a multiple; 0: to other sets of
     * rows, so ranks cannot use parts. */
    int part_rows;

    /* The number of parts of each column's x'y that a product can leave; 0: none. NULL: 0. */
    int64_t (*column_parts)(const spmv_plan *plan, const void *x);

    /* Releases what plan->state points to. Called if plan->state is not NULL; it may be partly
     * built. */
    void (*release)(spmv_plan *plan);
};

/* The types of products: X(name, TYPE of the values, TYPE of vectors). Sums have the vectors' type, of 16-bit
 * vectors f32. */
#define PLAN_TYPES_LIST(X)                                                                                             \
    X(f32, F32, F32)                                                                                                   \
    X(f64, F64, F64)                                                                                                   \
    X(mixed, F32, F64)                                                                                                 \
    X(c64, C64, C64)                                                                                                   \
    X(c128, C128, C128)                                                                                                \
    X(bf16, BF16, BF16)                                                                                                \
    X(f16, F16, F16)
#define PLAN_TYPES_ENUM_(name, STORED, VECTORS) PLAN_##name,
enum plan_types { PLAN_TYPES_LIST(PLAN_TYPES_ENUM_) PLAN_TYPES };
#undef PLAN_TYPES_ENUM_

enum { PLAN_MOST_METHODS = 16 }; /* of a backend */

/* For vectors stored by columns (by_columns.c): a product in passes of plan->vectors vectors. */
struct plan_by_columns {
    bool x, y;                  /* which of the two are stored so */
    int64_t x_stride, y_stride; /* as the options say, for both layouts */
    int vectors;                /* of a product; 0: the method multiplies x and y as they are */
    void *x_rows, *y_rows;      /* room for a pass by rows; NULL: not needed */
};

/* The result of the solvers' symmetry check (solvers/krylov/krylov_symmetry.c). */
enum plan_symmetry { PLAN_SYMMETRY_UNKNOWN = 0, PLAN_SYMMETRIC, PLAN_NOT_SYMMETRIC };

struct spmv_plan {
    spmv_context *ctx;
    const struct spmv_method *method;
    /* op(A) in the context's memory. Row offsets have 32 bits where nnz < 2^31. a.type: the type of
     * the values; for a pattern, the plan's type. */
    spmv_csr a;
    spmv_type type; /* of vectors */
    spmv_type sums; /* of sums and scalars */
    spmv_operation operation;
    int vectors; /* that the method multiplies at once, with these strides from row to row */
    int64_t x_stride, y_stride;
    enum plan_types types;             /* a.type and type combined */
    enum spmv_compression compression; /* the option */
    bool update_waits;                 /* the method's update waits */
    bool updates;                      /* the option update_values */
    bool named;                        /* the option method names one */
    bool reads_values;                 /* nothing but a.val depends on the values */
    bool borrows;                      /* all that it has belongs to another plan (plan_share) */
    spmv_matrix *transposed;           /* owns the arrays of a where op(A) was formed on the host */
    /* the arrays of a that the plan owns, in the context's memory; val also with transposed */
    void *row_ptr, *col, *val;
    void *from; /* For a transposed matrix with updates: the index in A of each entry of a. */
    int from_bits;
    /* Memory that only the preparation needed. It is freed with the plan, since freeing waits. */
    void *prepared;
    int64_t prepared_bytes;
    void *state;          /* private data of the method */
    const char *declined; /* by prepare: why the method is not possible, or does not pay off; NULL */
    struct facts facts;   /* on cuda */
    /* for each row of the backend's table: why the choice passed it over; NULL: it did not */
    const char *passed[PLAN_MOST_METHODS];
    void *epilogue;      /* scratch memory of an epilogue that follows the product */
    int64_t longest_row; /* -1: not yet measured */
    /* of op(A) with its present values; new values reset it to unknown */
    /* of complex types Hermitian; and, not on ranks, whether A is its transpose */
    enum plan_symmetry symmetry, bilinear_symmetry;
    /* if not: the differences found, and the bound */
    double asymmetry, bilinear_asymmetry, asymmetry_bound;
    /* An update of values was captured in a graph. Each launch may bring other values, so no result
     * of the symmetry check is kept. */
    bool values_unseen;
    struct object_use use;          /* by solves and by preconditioners in use */
    bool settled;                   /* the preparation left no queued work to wait for */
    const struct plan_ranks *ranks; /* NULL: the plan has the whole matrix */
    int64_t bytes;
    double seconds;
    char why[256];
    /* how the method stores the matrix; "" where it uses the CSR arrays as given */
    char layout[512];
    struct plan_by_columns by_columns;
};

/* The arguments of a product. A scalar that is NULL stands for 1 (alpha) or 0 (beta). */
struct plan_product plan_product_of(const spmv_plan *plan, const void *host_alpha, const void *x, const void *host_beta,
                                    void *y);

/* spmv_plan_create for the rows of one rank. ranks must outlive the plan. */
spmv_status plan_create_for_rank(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                                 const struct plan_ranks *ranks, spmv_plan **plan);

/* A plan for other values of the same type in the pattern of `plan`, which must outlive it. *shared is NULL if
 * `plan` depends on its values. Does not wait. */
spmv_status plan_share(const spmv_plan *plan, const void *val, spmv_plan **shared);

/* Vectors stored by columns (by_columns.c). set: takes vectors, layouts and strides from the options, which
 * have been checked. prepare: after the matrix is known, before the method is prepared. multiply: a product. */
void by_columns_set(spmv_plan *plan, const spmv_plan_options *options, int64_t rows, int64_t cols);
spmv_status by_columns_prepare(spmv_plan *plan);
spmv_status by_columns_multiply(const spmv_plan *plan, const struct plan_product *product);

/* Whether the plan is that of an operator (spmv_plan_wrap), whose matrix has sizes only. Its products call the caller: they
 * cannot be captured in graphs or be part of kernels. */
bool plan_is_operator(const spmv_plan *plan);

/* Begin and end a use of the plan, in which it keeps its values and is not destroyed; NULL is allowed. */
void plan_begin_use(spmv_plan *plan);
void plan_end_use(spmv_plan *plan);

/* Computes the product and its epilogue without checking arguments. rows > 0. */
spmv_status plan_multiply(const spmv_plan *plan, const struct plan_product *product);

/* The same for the plan of one of several ranks, which may have no rows. x points to own elements and
 * has room for those of other ranks, which are fetched. Together. */
spmv_status plan_multiply_together(const spmv_plan *plan, struct plan_product product);

/* The vectors of a product. */
static inline int plan_vectors(const spmv_plan *plan)
{
    return plan->by_columns.vectors > 0 ? plan->by_columns.vectors : plan->vectors;
}

/* The x that the plan's matrix multiplies: x itself, or with several ranks the first element of
 * other ranks in front of it. */
static inline const void *plan_x_of(const spmv_plan *plan, const void *x)
{
    return plan->ranks == NULL
               ? x
               : (const char *)x - (size_t)(plan->ranks->before * plan->vectors) * spmv_type_size(plan->type);
}

/* The combination of the types of values and vectors; PLAN_TYPES if products do not support it. */
enum plan_types plan_types_of(spmv_type stored, spmv_type vectors);

/* The METHOD_... flags that the plan requires. */
unsigned plan_needs(const spmv_plan *plan);

/* Checks the option, before the matrix is taken: sets plan->named, and plan->method to the method of that
 * name, or for NULL and "auto" to the backend's first that can do what the plan requires.
 * SPMV_ERROR_METHOD (the message lists the names), SPMV_ERROR_UNSUPPORTED. */
spmv_status method_choose(spmv_plan *plan, const char *name);

/* Chooses the method, from plan->a, and prepares the plan with it: plan->method, if it is named, or the
 * first of the table that does not decline. If a named one declines, tiles or, for several vectors,
 * columns replaces it. */
spmv_status method_prepare(spmv_plan *plan);

/* *method: the first method of the backend's table that suits such facts and requirements and pays off by what
 * count(user, method, facts) has set. NULL: none. A failure is that of count. */
typedef spmv_status (*method_count)(void *user, const struct spmv_method *method, struct facts *facts);
spmv_status method_of_facts(spmv_backend backend, unsigned needs, struct facts *facts, method_count count, void *user,
                            const struct spmv_method **method);

/* The method of this name in the backend's table; NULL: there is none. */
const struct spmv_method *method_named(spmv_backend backend, const char *name);

/* Whether products leave the parts of a dot product that its caller can use. */
static inline bool plan_leaves_parts(const spmv_plan *plan)
{
    return plan->ranks != NULL ? plan->method->part_rows > 0 : plan->method->dot_parts != NULL;
}

/* Allocates plan->state, all bits 0. */
spmv_status plan_new_state(spmv_plan *plan, int64_t bytes);

/* Releases plan->state with what it owns, and sets it to NULL. */
void plan_release_state(spmv_plan *plan);

/* Allocates memory of the plan, counted in plan->bytes. */
spmv_status plan_alloc(spmv_plan *plan, int64_t bytes, void **memory);

/* Like plan_alloc for optional memory: sets *memory to NULL where there is none. */
spmv_status plan_alloc_if_room(spmv_plan *plan, int64_t bytes, void **memory);

/* Frees memory of plan_alloc before the end of the plan and subtracts it from plan->bytes; NULL is
 * allowed. At the end of the plan, spmv_free is enough. */
void plan_free(spmv_plan *plan, int64_t bytes, void *memory);

/* Sets plan->a to op(A) in the context's memory (plan_matrix.c). */
spmv_status plan_take_matrix(spmv_plan *plan, const spmv_csr *a);
void plan_release_matrix(spmv_plan *plan);

/* The epilogue of methods without METHOD_EPILOGUE (epilogue.c): its scratch memory, and its
 * computation after the product. */
spmv_status epilogue_prepare(spmv_plan *plan);
spmv_status epilogue_behind(const spmv_plan *plan, const void *y, const spmv_epilogue *epilogue);

/* Whether the array is aligned for loads of the backend: a GPU loads a complex number at once. */
bool plan_can_load(const spmv_plan *plan, const void *array);

/* Checks a view: its sizes, and the first and last row offset where the CPU can read them. call:
 * the public function, for messages. halves: 16-bit values are accepted. */
spmv_status plan_check_view(spmv_context *ctx, const char *call, const spmv_csr *a, bool halves);

/* The table of the backend cuda, and what it asks of a plan: sets plan->facts (cuda/choose.c). */
extern const struct spmv_method cuda_methods[];
void plan_find_facts_cuda(spmv_plan *plan) CUDA_ONLY();

/* Call after the values of the matrix were replaced on the device: the next product, which reads them
 * before its wait, starts in order. */
void plan_values_changed_cuda(spmv_plan *plan) CUDA_ONLY();

/* The functions of the methods. */
spmv_status definition_ref_apply(const spmv_plan *, const struct plan_product *);
spmv_status tiles_omp_prepare(spmv_plan *);
spmv_status tiles_omp_apply(const spmv_plan *, const struct plan_product *);
spmv_status tiles_omp_update(spmv_plan *);
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
spmv_status long_cuda_prepare(spmv_plan *);
spmv_status long_cuda_apply(const spmv_plan *, const struct plan_product *);
void long_cuda_release(spmv_plan *);
spmv_status groups_cuda_count(spmv_context *, const spmv_csr *, struct facts *);
spmv_status groups_cuda_prepare(spmv_plan *);
spmv_status groups_cuda_apply(const spmv_plan *, const struct plan_product *);
void groups_cuda_release(spmv_plan *);
const void *groups_cuda_parts(const spmv_plan *, int64_t *count);
spmv_status padded_cuda_count(spmv_context *, const spmv_csr *, struct facts *);
spmv_status padded_cuda_prepare(spmv_plan *);
spmv_status padded_cuda_update(spmv_plan *);
spmv_status padded_cuda_apply(const spmv_plan *, const struct plan_product *);
void padded_cuda_release(spmv_plan *);
const void *padded_cuda_parts(const spmv_plan *, int64_t *count);
spmv_status columns_cuda_prepare(spmv_plan *);
spmv_status columns_cuda_apply(const spmv_plan *, const struct plan_product *);
void columns_cuda_release(spmv_plan *);
int64_t columns_cuda_parts(const spmv_plan *, const void *x);
spmv_status count_rows_cuda(spmv_context *, const spmv_csr *, int neighbours, struct row_counts *); /* waits */
spmv_status plan_count_rows_cuda(spmv_plan *); /* the facts of row_counts; waits */
spmv_status abreast_cuda_prepare(spmv_plan *);
spmv_status abreast_cuda_apply(const spmv_plan *, const struct plan_product *);
void abreast_cuda_release(spmv_plan *);
spmv_status octets_cuda_prepare(spmv_plan *);
spmv_status octets_cuda_apply(const spmv_plan *, const struct plan_product *);
void octets_cuda_release(spmv_plan *);
spmv_status panels_cuda_prepare(spmv_plan *);
spmv_status panels_cuda_update(spmv_plan *);
spmv_status panels_cuda_apply(const spmv_plan *, const struct plan_product *);
void panels_cuda_release(spmv_plan *);
spmv_status wide_cuda_prepare(spmv_plan *);
spmv_status wide_cuda_apply(const spmv_plan *, const struct plan_product *);
void wide_cuda_release(spmv_plan *);
spmv_status slices_cuda_count(spmv_context *, const spmv_csr *, struct facts *);
spmv_status slices_cuda_prepare(spmv_plan *);
spmv_status slices_cuda_update(spmv_plan *);
spmv_status slices_cuda_apply(const spmv_plan *, const struct plan_product *);
void slices_cuda_release(spmv_plan *);
const void *slices_cuda_parts(const spmv_plan *, int64_t *count);
spmv_status blocked_cuda_prepare(spmv_plan *);
spmv_status blocked_cuda_update(spmv_plan *);
spmv_status blocked_cuda_apply(const spmv_plan *, const struct plan_product *);
void blocked_cuda_release(spmv_plan *);

/* The epilogue of complex vectors on the device, and the bytes of scratch memory it needs. */
int64_t epilogue_scratch_cuda(const spmv_plan *plan) CUDA_ONLY(0);
spmv_status epilogue_cuda(const spmv_plan *plan, const void *y, const spmv_epilogue *epilogue, void *scratch)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Copies n elements of each of k vectors between two arrays in the device's memory: element v of row i
 * is columns[v * column_stride + i] and rows[i * row_stride + v]. size: bytes of an element, 2, 4, 8 or 16. */
struct plan_turn {
    void *columns, *rows;
    int64_t n, column_stride, row_stride;
    int k;
    bool to_rows; /* else to columns */
    int size;
};
spmv_status turn_cuda(spmv_context *ctx, const struct plan_turn *turn) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* to[i] = from[i], 0 <= i < n, on the device. Each from[i] must fit. */
spmv_status narrow_offsets_cuda(spmv_context *ctx, const int64_t *from, int32_t *to, int64_t n)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif
