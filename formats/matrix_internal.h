/* The members of spmv_matrix, and declarations that files of formats/ and formats/io/ share about
 * CSR in host memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MATRIX_INTERNAL_H
#define MATRIX_INTERNAL_H

#include <spmv/matrix.h>

#include "core/runtime.h"
#include "core/threads.h"

struct spmv_matrix {
    int64_t rows, cols, nnz;
    int64_t *row_ptr; /* rows + 1 */
    int32_t *col;     /* nnz; NULL when nnz == 0 */
    void *val;        /* nnz values of the type, never NULL; for a pattern always NULL */
    spmv_type type;
    bool pattern;
    /* NULL: the arrays are allocated; otherwise they lie in this read-only map of a file */
    void *map;
    int64_t map_bytes;
    int64_t first_row; /* its number, if these are some rows of a larger matrix; else 0 */
    char *comments;    /* of the file it was read from; NULL: none */
    /* NULL: the arrays are in host memory; otherwise they are in the memory of this context */
    spmv_context *ctx;
};

/* Makes a matrix of the checked arrays of a (64-bit row offsets), which lie in a map of a file. The
 * matrix takes ownership of the map. type: for a pattern, the type that the matrix gets. */
spmv_status matrix_from_map(spmv_context *ctx, const spmv_csr *a, spmv_type type, void *map, int64_t map_bytes,
                            spmv_matrix **matrix);

/* Makes a matrix with arrays of these sizes, contents undefined. Checks 0 <= rows, 0 <= cols <=
 * INT32_MAX, 0 <= nnz (SPMV_ERROR_LIMIT) and computes every size in 64 bits. */
spmv_status matrix_allocate(spmv_context *ctx, int64_t rows, int64_t cols, int64_t nnz, spmv_type type, bool pattern,
                            spmv_matrix **matrix);

/* As matrix_allocate, with arrays in host memory or in the context's memory. On ref and omp both are
 * the same, and only the member ctx differs. */
spmv_status matrix_allocate_in(spmv_context *ctx, spmv_memory memory, int64_t rows, int64_t cols, int64_t nnz,
                               spmv_type type, bool pattern, spmv_matrix **matrix);

/* Makes a matrix of arrays in the context's memory (64-bit row offsets). After success the matrix
 * owns them. */
spmv_status matrix_adopt(spmv_context *ctx, const spmv_csr *a, spmv_matrix **matrix);

/* Asks for large pages for a large array of host memory: the first write to small pages costs
 * several times as much. */
void pages_ask_large(void *memory, int64_t bytes);

/* Converts the real values of a matrix to the complex type, with imaginary parts of 0; a pattern
 * only gets the type. The arrays must be allocated, not mapped. */
spmv_status matrix_widen(spmv_context *ctx, spmv_matrix *matrix, spmv_type type);

/* Converts n real values to the complex type, in newly allocated memory (host_free). */
spmv_status values_widen(spmv_context *ctx, const void *values, int64_t n, spmv_type type, void **wide);

/* Returns whole pages inside an array that is no longer needed to the system, if possible. */
void pages_give_back(void *from, int64_t bytes);

/* SPMV_ERROR_MEMORY if bytes exceed the machine's memory. The allocation alone does not detect
 * this, because the system overcommits memory. what names the object in the message. */
spmv_status matrix_memory_check(spmv_context *ctx, const char *what, int64_t bytes);

/* The memory limit of a job, and the function that computes its need. */
struct job_limit {
    int64_t max_bytes;
    spmv_job_bytes_fn bytes; /* NULL: count loading alone */
    void *user;
};

/* False if the job exceeds the limit. why: "a 5 x 3 matrix with 4 entries needs ... are allowed".
 * All members of size except size.size must be set. */
enum { JOB_WHY = 320 };
bool job_fits(const struct job_limit *limit, spmv_matrix_size size, char why[JOB_WHY]);

/* Bytes of a matrix's arrays; INT64_MAX on overflow. */
int64_t matrix_arrays_bytes(int64_t rows, int64_t nnz, size_t value_size);

/* A view of arrays with 64-bit row offsets. */
spmv_csr csr_of(int64_t rows, int64_t cols, int64_t nnz, const int64_t *row_ptr, const int32_t *col, const void *val,
                spmv_type type, spmv_memory memory);

/* The arrays that csr_to_host or csr_to_context has copied; NULL: none, or no elements. */
struct csr_copies {
    void *row_ptr;
    int32_t *col;
    void *val;
    int64_t bytes; /* of copies in the context's memory */
};

/* *host: A with arrays that the host can read: its own ones, or copies if they are on a device, or
 * always. Arrays that are NULL are left out. csr_free_host releases the copies, also after an
 * error. host may be a. */
spmv_status csr_to_host(spmv_context *ctx, const spmv_csr *a, bool always, spmv_csr *host, struct csr_copies *copies);
void csr_free_host(struct csr_copies *copies);

/* *there: A with arrays in the context's memory: its own ones, or copies of arrays in host memory.
 * narrow: row offsets of a copy have 32 bits if they fit. csr_free_context releases the copies,
 * also after an error. */
spmv_status csr_to_context(spmv_context *ctx, const spmv_csr *a, bool narrow, spmv_csr *there,
                           struct csr_copies *copies);
void csr_free_context(spmv_context *ctx, struct csr_copies *copies);

/* Checks a view without reading its arrays: sizes, missing arrays, bits, type. SPMV_ERROR_ARGUMENT,
 * SPMV_ERROR_LIMIT or SPMV_ERROR_TYPE (16-bit values too); name: the function called. */
spmv_status csr_check_shape(spmv_context *ctx, const char *name, const spmv_csr *a);

/* A for these checks, which read no values, where 16-bit values are accepted. */
static inline spmv_csr csr_of_any_values(const spmv_csr *a)
{
    spmv_csr checked = *a;
    if (type_is_half(a->type))
        checked.type = SPMV_F32;
    return checked;
}

/* SPMV_ERROR_NOT_SQUARE with both sizes in the message, unless they are equal. */
spmv_status csr_check_square(spmv_context *ctx, const char *name, int64_t rows, int64_t cols);

enum csr_order { CSR_ANY_ORDER, CSR_SORTED /* columns ascend strictly in each row */ };

/* csr_check_shape, then the arrays, which must be in host memory (else SPMV_ERROR_ARGUMENT).
 * SPMV_ERROR_SIZE names the first wrong row or entry. */
spmv_status csr_check(spmv_context *ctx, const char *name, const spmv_csr *a, enum csr_order order);

/* The same. *longest: the entries of the longest row, if there is no error. */
spmv_status csr_check_longest(spmv_context *ctx, const char *name, const spmv_csr *a, enum csr_order order,
                              int64_t *longest);

/* The same for arrays in either memory. Waits if they are on the device. */
spmv_status csr_check_anywhere(spmv_context *ctx, const char *name, const spmv_csr *a, enum csr_order order);

/* Checks the shape, and the row offsets of arrays that the host can read. */
spmv_status csr_check_offsets(spmv_context *ctx, const char *name, const spmv_csr *a);

/* Checks the columns, of valid offsets in host memory: SPMV_ERROR_SIZE. wide: nnz columns of 64 bits in place of
 * a->col; NULL: a->col. */
spmv_status csr_check_columns(spmv_context *ctx, const char *name, const spmv_csr *a, const int64_t *wide);

/* What is wrong with arrays on the device; rows > 0. Descents: entries whose column is not greater
 * than that of the entry before. Only if rows is 0 is the last number valid. Waits. */
struct csr_faults {
    int64_t rows; /* row_ptr */
    int64_t columns, descents, descents_at_starts;
};
spmv_status csr_faults_cuda(spmv_context *ctx, const spmv_csr *a, struct csr_faults *faults)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
/* The same, queued. there: on the device, 0 before. */
spmv_status csr_faults_queue_cuda(spmv_context *ctx, const spmv_csr *a, struct csr_faults *there);

static inline bool csr_faultless(const struct csr_faults *f, enum csr_order order)
{
    return f->rows == 0 && f->columns == 0 && (order == CSR_ANY_ORDER || f->descents == f->descents_at_starts);
}

/* spmv_matrix_transpose without the check. */
spmv_status csr_transpose(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b);

/* Entry numbers of a matrix, as integers of 32 or 64 bits. */
struct entry_numbers {
    void *number;
    int bits;
};

/* As csr_transpose. from.number[k]: the entry of A that became entry k of B; NULL: not wanted. */
spmv_status csr_transpose_numbered(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b, struct entry_numbers from);

/* The same for the pattern of a valid matrix in the context's memory. from: nnz numbers there. */
spmv_status matrix_transpose_pattern(spmv_context *ctx, const spmv_csr *a, spmv_matrix **b, struct entry_numbers from);

/* The pattern of B = transpose(A) on the device, and the index in A of each entry of B. row_ptr:
 * a->cols + 1 offsets of row_ptr_bits. col, from: a->nnz numbers, from of from_bits. nnz > 0. */
spmv_status transpose_cuda(spmv_context *ctx, const spmv_csr *a, void *row_ptr, int row_ptr_bits, int32_t *col,
                           void *from, int from_bits) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* to[k] = values[from[k]], or its conjugate, 0 <= k < n, on the device. */
spmv_status take_values_cuda(spmv_context *ctx, spmv_type type, bool conjugate, const void *values, const void *from,
                             int from_bits, void *to, int64_t n) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* The diagonal or the row sums of a matrix on the device, as spmv_matrix_diagonal and
 * spmv_matrix_row_sums. */
spmv_status matrix_diagonal_cuda(spmv_context *ctx, const spmv_csr *a, void *diagonal) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status matrix_row_sums_cuda(spmv_context *ctx, const spmv_csr *a, void *sums) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* first[i] = the first row of the connected component of row i, where an entry a_ij connects i and j. a is square;
 * it and first are on the device. Same numbers every run. */
spmv_status matrix_components_cuda(spmv_context *ctx, const spmv_csr *a, int32_t *first)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Conjugates every value of b; real values do not change. */
void csr_conjugate(spmv_context *ctx, spmv_matrix *b);

/* Turns bins counts, followed by one more cell, into their exclusive sums in place: offsets[0] = 0,
 * offsets[bins] = the total. Host memory; uses the library's own scan on the host for any
 * backend. */
spmv_status offsets_from_counts(spmv_context *ctx, int64_t *offsets, int64_t bins);

/* Whether the arrays of a matrix are in memory that the host cannot read. */
static inline bool csr_on_device(const spmv_context *ctx, const spmv_csr *a)
{
    return a->memory == SPMV_MEMORY_CONTEXT && context_on_device(ctx);
}

/* Whether an array of values is aligned for loads of the backend: a GPU loads a complex number at
 * once. */
static inline bool values_aligned(const spmv_context *ctx, spmv_type type, const void *values)
{
    return !context_on_device(ctx) || !type_is_complex(type) || (uintptr_t)values % spmv_type_size(type) == 0;
}

/* Row offsets in 32 bits: n of them, which fit. A loop that compilers vectorise, unlike row_first. */
static inline void offsets_to_32(const void *row_ptr, int32_t *to, int64_t n)
{
    const int64_t *const from = (const int64_t *)row_ptr;
    for (int64_t i = 0; i < n; i++)
        to[i] = (int32_t)from[i];
}

/* The first entry of a row: row i has the entries row_first(a, i) <= k < row_first(a, i + 1). */
static inline int64_t row_first(const spmv_csr *a, int64_t row)
{
    return offset_at(a->row_ptr, a->row_ptr_bits, row);
}

/* The row that holds entry k, 0 <= k < nnz: the first that ends beyond k. */
static inline int64_t row_of_entry(const spmv_csr *a, int64_t k)
{
    int64_t low = 0, high = a->rows - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (row_first(a, middle + 1) > k)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Bytes of a stored value: 0 for a pattern. */
static inline size_t value_size(spmv_type type, bool pattern)
{
    return pattern ? 0 : spmv_type_size(type);
}

/* Address of element k; NULL for a pattern's val. */
static inline const void *value_at(const void *val, int64_t k, size_t size)
{
    return val == NULL ? NULL : (const char *)val + (size_t)k * size;
}

/* Copies element k of from to element i of to. size 0: a pattern; the pointers may be NULL. */
static inline void copy_value(void *to, int64_t i, const void *from, int64_t k, size_t size)
{
    if (size > 0)
        memcpy((char *)to + (size_t)i * size, (const char *)from + (size_t)k * size, size);
}

/* Runs call with SIZE in place of size, a constant for the usual sizes. Loops that only move values
 * do not depend on the type, but need a constant size to be fast. */
#define SIZED(size, call)                                                                                              \
    switch (size) {                                                                                                    \
        SIZED_CASE_(0, call)                                                                                           \
        SIZED_CASE_(4, call)                                                                                           \
        SIZED_CASE_(8, call)                                                                                           \
        SIZED_CASE_(16, call)                                                                                          \
    default: {                                                                                                         \
        const size_t SIZE = (size);                                                                                    \
        call;                                                                                                          \
    }                                                                                                                  \
    }
#define SIZED_CASE_(constant, call)                                                                                    \
    case constant: {                                                                                                   \
        enum { SIZE = constant };                                                                                      \
        call;                                                                                                          \
        break;                                                                                                         \
    }

#endif
