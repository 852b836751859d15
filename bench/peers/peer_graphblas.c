/* SuiteSparse:GraphBLAS (T. A. Davis, Algorithm 1037, ACM TOMS 49, 2023): y = A x over the semiring
 * (+, *).
 *
 * The fastest formulation is that of LAGraph's PageRank: assign 0 to all of y, which only stores
 * one value, then y += A x with the accumulator +. The dot-product method "dot4" does that in place
 * on a full vector. The plain y = A x uses a slower method that makes a new y with a bitmap each
 * time, and y would lack the empty rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <GraphBLAS.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peers/peer.h"

struct graphblas {
    const struct peer_problem *problem;
    GrB_Matrix a, b, c;
    GrB_Matrix *right; /* B of C = A B, which may be A */
    GrB_Vector x, y;
};

/* The library is started once and not ended, because it cannot be restarted after GrB_finalize. Its
 * number of threads is global: threads_set is the last one, 0 before the first. */
static int started, threads_set;

static GrB_Info set_threads(int threads)
{
    if (threads == threads_set)
        return GrB_SUCCESS;
    const GrB_Info info = GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, threads);
    threads_set = info == GrB_SUCCESS ? threads : 0;
    return info;
}

/* A block of room bytes, at least 1, that begins with the given bytes. room must be the exact size,
 * because GraphBLAS reuses blocks by the size that it was given. */
static void *copy(const void *from, size_t bytes, size_t room)
{
    void *to = malloc(room);
    if (to != NULL && bytes > 0)
        memcpy(to, from, bytes);
    return to;
}

/* Converts offsets or columns to the library's 64 bits. */
static GrB_Index *widen(const int32_t *from, int64_t n)
{
    GrB_Index *to = malloc((size_t)(n > 0 ? n : 1) * sizeof *to);
    if (to != NULL)
        for (int64_t i = 0; i < n; i++)
            to[i] = (GrB_Index)from[i];
    return to;
}

/* What GraphBLAS has for the type of the values. */
struct numbers {
    GrB_Type type;
    size_t size;
    GrB_BinaryOp plus;
    GrB_Semiring plus_times;
};

static struct numbers numbers_of(const struct peer_problem *problem)
{
    if (problem->type == SPMV_F32)
        return (struct numbers){GrB_FP32, sizeof(float), GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32};
    return (struct numbers){GrB_FP64, sizeof(double), GrB_PLUS_FP64, GrB_PLUS_TIMES_SEMIRING_FP64};
}

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        if ((info = (call)) != GrB_SUCCESS)                                                                            \
            return info;                                                                                               \
    } while (0)

/* Arrays of a problem. */
struct csr {
    int64_t rows, cols, nnz;
    const int32_t *row_ptr, *col;
    const void *val;
};

static struct csr left(const struct peer_problem *p)
{
    return (struct csr){p->rows, p->cols, p->nnz, p->row_ptr, p->col, p->val};
}

static struct csr right(const struct peer_problem *p)
{
    return (struct csr){p->cols, p->right_cols, p->right_nnz, p->right_row_ptr, p->right_col, p->right_val};
}

/* Makes the matrix by rows; GraphBLAS takes ownership of the arrays. */
static GrB_Info make_matrix(struct csr from, GrB_Type type, size_t size, GrB_Matrix *a)
{
    GrB_Info info = GrB_SUCCESS;
    TRY(GrB_Matrix_new(a, type, (GrB_Index)from.rows, (GrB_Index)from.cols));
    TRY(GxB_Matrix_Option_set(*a, GxB_FORMAT, GxB_BY_ROW));
    TRY(GxB_Matrix_Option_set(*a, GxB_SPARSITY_CONTROL, GxB_SPARSE));
    const GrB_Index offsets = (GrB_Index)from.rows + 1, nnz = (GrB_Index)from.nnz, room = nnz > 0 ? nnz : 1;
    GrB_Index *row_ptr = widen(from.row_ptr, (int64_t)offsets), *col = widen(from.col, from.nnz);
    void *val = copy(from.val, nnz * size, room * size);
    info = row_ptr == NULL || col == NULL || val == NULL ? GrB_OUT_OF_MEMORY : GrB_SUCCESS;
    if (info == GrB_SUCCESS)
        info = GxB_Matrix_pack_CSR(*a, &row_ptr, &col, &val, offsets * sizeof *row_ptr, room * sizeof *col, room * size,
                                   false, false, NULL);
    free(row_ptr); /* NULL if GraphBLAS has taken them */
    free(col);
    free(val);
    return info;
}

/* A full vector of n values; zeros if values is NULL. */
static GrB_Info make_vector(const void *values, int64_t n, GrB_Type type, size_t size, GrB_Vector *vector)
{
    GrB_Info info = GrB_SUCCESS;
    TRY(GrB_Vector_new(vector, type, (GrB_Index)n));
    TRY(GxB_Vector_Option_set(*vector, GxB_SPARSITY_CONTROL, GxB_FULL));
    if (values == NULL)
        return GrB_Vector_assign_FP64(*vector, NULL, NULL, 0, GrB_ALL, (GrB_Index)n, NULL);
    const size_t bytes = (size_t)(n > 0 ? n : 1) * size;
    void *own = copy(values, (size_t)n * size, bytes);
    if (own == NULL)
        return GrB_OUT_OF_MEMORY;
    info = GxB_Vector_pack_Full(*vector, &own, bytes, false, NULL);
    free(own);
    return info;
}

static void close_graphblas(void *state)
{
    struct graphblas *graphblas = state;
    GrB_Matrix_free(&graphblas->a);
    GrB_Matrix_free(&graphblas->b);
    GrB_Matrix_free(&graphblas->c);
    GrB_Vector_free(&graphblas->x);
    GrB_Vector_free(&graphblas->y);
    free(graphblas);
}

static GrB_Info make_vectors(const struct peer_problem *problem, struct graphblas *graphblas)
{
    GrB_Info info = GrB_SUCCESS;
    const struct numbers numbers = numbers_of(problem);
    TRY(set_threads(problem->threads));
    TRY(make_matrix(left(problem), numbers.type, numbers.size, &graphblas->a));
    TRY(make_vector(problem->x, problem->cols, numbers.type, numbers.size, &graphblas->x));
    TRY(make_vector(NULL, problem->rows, numbers.type, numbers.size, &graphblas->y));
    return GrB_Matrix_wait(graphblas->a, GrB_MATERIALIZE);
}

static int open_with(GrB_Info (*make)(const struct peer_problem *, struct graphblas *),
                     const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    GrB_Info info = started ? GrB_SUCCESS : GrB_init(GrB_NONBLOCKING);
    started = started || info == GrB_SUCCESS;
    struct graphblas *graphblas = calloc(1, sizeof *graphblas);
    if (info != GrB_SUCCESS || graphblas == NULL) {
        snprintf(why, why_size, graphblas == NULL ? "out of memory" : "cannot start GraphBLAS: GrB_Info %d", (int)info);
        free(graphblas);
        return -1;
    }
    graphblas->problem = problem;
    info = make(problem, graphblas);
    if (info != GrB_SUCCESS) {
        snprintf(why, why_size, "GraphBLAS: %lld x %lld with %lld entries: %s (GrB_Info %d)", (long long)problem->rows,
                 (long long)problem->cols, (long long)problem->nnz,
                 info == GrB_OUT_OF_MEMORY ? "out of memory" : "the matrix or a vector was rejected", (int)info);
        close_graphblas(graphblas);
        return -1;
    }
    *state = graphblas;
    return 0;
}

static int open_graphblas(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    return open_with(make_vectors, problem, state, why, why_size);
}

static int run_graphblas(void *state)
{
    const struct graphblas *graphblas = state;
    const struct peer_problem *problem = graphblas->problem;
    const struct numbers numbers = numbers_of(problem);
    GrB_Info info = GrB_SUCCESS;
    TRY(set_threads(problem->threads) == GrB_SUCCESS ? GrB_SUCCESS : -1);
    if (numbers.type == GrB_FP64)
        info = GrB_Vector_assign_FP64(graphblas->y, NULL, NULL, 0, GrB_ALL, (GrB_Index)problem->rows, NULL);
    else
        info = GrB_Vector_assign_FP32(graphblas->y, NULL, NULL, 0, GrB_ALL, (GrB_Index)problem->rows, NULL);
    if (info == GrB_SUCCESS)
        info = GrB_mxv(graphblas->y, NULL, numbers.plus, numbers.plus_times, graphblas->a, graphblas->x, NULL);
    if (info == GrB_SUCCESS)
        info = GrB_Vector_wait(graphblas->y, GrB_MATERIALIZE);
    return info == GrB_SUCCESS ? 0 : -1;
}

/* Unpacks y from its vector and packs it again. A vector with a single value for all elements
 * stores only that value ("iso"). */
static int fetch_graphblas(void *state)
{
    const struct graphblas *graphblas = state;
    const struct peer_problem *problem = graphblas->problem;
    const size_t size = numbers_of(problem).size;
    void *values = NULL;
    GrB_Index bytes = 0;
    bool iso = false;
    if (GxB_Vector_unpack_Full(graphblas->y, &values, &bytes, &iso, NULL) != GrB_SUCCESS)
        return -1;
    if (!iso)
        memcpy(problem->y, values, (size_t)problem->rows * size);
    else
        for (int64_t i = 0; i < problem->rows; i++)
            memcpy((char *)problem->y + (size_t)i * size, values, size);
    if (GxB_Vector_pack_Full(graphblas->y, &values, bytes, iso, NULL) == GrB_SUCCESS)
        return 0;
    free(values);
    return -1;
}

/* C = A B with a new C in each run. */
static GrB_Info make_factors(const struct peer_problem *problem, struct graphblas *product)
{
    const struct numbers numbers = numbers_of(problem);
    GrB_Info info = GrB_SUCCESS;
    product->right = &product->a;
    TRY(set_threads(problem->threads));
    TRY(make_matrix(left(problem), numbers.type, numbers.size, &product->a));
    if (problem->right_row_ptr == problem->row_ptr)
        return GrB_SUCCESS;
    product->right = &product->b;
    return make_matrix(right(problem), numbers.type, numbers.size, &product->b);
}

static int open_product(const struct peer_problem *problem, void **state, char *why, size_t why_size)
{
    return open_with(make_factors, problem, state, why, why_size);
}

static int run_product(void *state)
{
    struct graphblas *product = state;
    const struct peer_problem *problem = product->problem;
    const struct numbers numbers = numbers_of(problem);
    GrB_Info info = GrB_SUCCESS;
    GrB_Matrix_free(&product->c);
    TRY(set_threads(problem->threads) == GrB_SUCCESS ? GrB_SUCCESS : -1);
    TRY(GrB_Matrix_new(&product->c, numbers.type, (GrB_Index)problem->rows, (GrB_Index)problem->right_cols));
    TRY(GxB_Matrix_Option_set(product->c, GxB_FORMAT, GxB_BY_ROW));
    TRY(GxB_Matrix_Option_set(product->c, GxB_SPARSITY_CONTROL, GxB_SPARSE));
    TRY(GrB_mxm(product->c, NULL, NULL, numbers.plus_times, product->a, *product->right, NULL));
    TRY(GrB_Matrix_wait(product->c, GrB_MATERIALIZE)); /* also sorts the rows */
    return 0;
}

/* Takes the values out of C; the next run makes a new one. */
static int fetch_product(void *state)
{
    struct graphblas *product = state;
    const size_t size = numbers_of(product->problem).size;
    GrB_Index *row_ptr = NULL, *col = NULL, row_bytes = 0, col_bytes = 0, val_bytes = 0;
    void *val = NULL;
    bool iso = false;
    if (GxB_Matrix_unpack_CSR(product->c, &row_ptr, &col, &val, &row_bytes, &col_bytes, &val_bytes, &iso, NULL, NULL) !=
        GrB_SUCCESS)
        return -1;
    const GrB_Index entries = row_ptr[product->problem->rows];
    for (GrB_Index e = 0; e < entries; e++)
        memcpy((char *)product->problem->y + e * size, (const char *)val + (iso ? 0 : e * size), size);
    free(row_ptr);
    free(col);
    free(val);
    return 0;
}

static const struct peer peers[] = {
    {"graphblas", PEER_SPMV,
     "sparse by row, full vectors, y = 0 then y += A x with GrB_mxv plus_times in place, as in LAGraph's PageRank", 0,
     open_graphblas, run_graphblas, NULL, fetch_graphblas, close_graphblas},
    {"graphblas-spgemm", PEER_SPGEMM, "sparse by row, GrB_mxm plus_times into a new matrix, sorted (GrB_Matrix_wait)",
     0, open_product, run_product, NULL, fetch_product, close_graphblas},
};

const struct peer_module *spmv_peer_module(void)
{
    static char library[64];
    static struct peer_module module = {PEER_ABI, library, peers, sizeof peers / sizeof peers[0]};
    int version[3] = {0, 0, 0};
    /* fails before the library is started */
    if (GxB_Global_Option_get(GxB_LIBRARY_VERSION, version) != GrB_SUCCESS)
        memcpy(version, (int[3]){GxB_IMPLEMENTATION_MAJOR, GxB_IMPLEMENTATION_MINOR, GxB_IMPLEMENTATION_SUB},
               sizeof version);
    snprintf(library, sizeof library, "SuiteSparse:GraphBLAS %d.%d.%d", version[0], version[1], version[2]);
    return &module;
}
