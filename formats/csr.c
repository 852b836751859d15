/* CSR matrices that own their storage, and checks of a view.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* madvise is not part of POSIX */
#define _DEFAULT_SOURCE
#include <spmv/operators.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/backend.h"
#include "core/reals.h"
#include "formats/matrix_internal.h"

/* Whether values of the type can be added and multiplied: the number types of the primitives, and
 * complex types. */
static bool is_number(spmv_type type)
{
    return spmv_op_takes(SPMV_ADD, type) || type_is_complex(type);
}

/* Bytes of a matrix's arrays; false if they do not fit in 64 bits. */
static bool matrix_bytes(int64_t rows, int64_t nnz, size_t size, int64_t *row_ptr, int64_t *col, int64_t *val)
{
    return rows < INT64_MAX && multiply_fits(rows + 1, sizeof(int64_t), row_ptr) &&
           multiply_fits(nnz, sizeof(int32_t), col) && multiply_fits(max_i64(nnz, 1), (int64_t)size, val) &&
           *col <= INT64_MAX - *val && *col + *val <= INT64_MAX - *row_ptr;
}

spmv_status matrix_memory_check(spmv_context *ctx, const char *what, int64_t bytes)
{
    return bytes <= host_memory_bytes() ? SPMV_OK : context_fail_memory(ctx, what, bytes);
}

int64_t matrix_arrays_bytes(int64_t rows, int64_t nnz, size_t value_size)
{
    int64_t row_ptr = 0, col = 0, val = 0;
    return matrix_bytes(rows, nnz, value_size, &row_ptr, &col, &val) ? row_ptr + col + val : INT64_MAX;
}

bool job_fits(const struct job_limit *limit, spmv_matrix_size size, char why[JOB_WHY])
{
    size.size = sizeof size;
    const int64_t bytes = limit->bytes != NULL ? limit->bytes(&size, limit->user) : size.load_bytes;
    if (bytes <= limit->max_bytes)
        return true;
    if (limit->bytes == NULL)
        snprintf(why, JOB_WHY,
                 "a %lld x %lld matrix with %lld stored entries needs %s%lld bytes (%.3g GB) of memory to read; %lld "
                 "are allowed",
                 (long long)size.rows, (long long)size.cols, (long long)size.entries,
                 bytes == INT64_MAX ? "more than " : "", (long long)bytes, (double)bytes * 1e-9,
                 (long long)limit->max_bytes);
    else
        snprintf(
            why, JOB_WHY,
            "with a %lld x %lld matrix of %lld stored entries the whole job needs %s%.0f MB of memory, %.0f MB of it "
            "to load the matrix; %.0f MB are allowed",
            (long long)size.rows, (long long)size.cols, (long long)size.entries, bytes == INT64_MAX ? "more than " : "",
            (double)bytes * 1e-6, (double)size.load_bytes * 1e-6, (double)limit->max_bytes * 1e-6);
    return false;
}

void pages_give_back(void *from, int64_t bytes)
{
    enum { PAGE = 4096 };
    const int64_t aside = (PAGE - (int64_t)((uintptr_t)from % PAGE)) % PAGE;
    const int64_t whole = (bytes - aside) / PAGE * PAGE;
    if (bytes > aside && whole > 0)
        madvise((char *)from + aside, (size_t)whole, MADV_DONTNEED);
}

void pages_ask_large(void *memory, int64_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { PAGE = 4096, WORTH_IT = 8 << 20 };
    const uintptr_t aside = (PAGE - (uintptr_t)memory % PAGE) % PAGE;
    if (bytes >= WORTH_IT) /* only advice: an error is ignored */
        madvise((char *)memory + aside, (size_t)bytes - aside, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

/* Allocates the arrays of a matrix. On the device the pool of the context has them. */
static spmv_status allocate_arrays(spmv_context *ctx, bool on_device, const int64_t bytes[3], void *arrays[3])
{
    spmv_status st = SPMV_OK;
    for (int i = 0; i < 3; i++)
        arrays[i] = NULL;
    for (int i = 0; i < 3 && st == SPMV_OK; i++)
        st = on_device ? context_alloc(ctx, bytes[i], &arrays[i]) : host_alloc(NULL, bytes[i], "", &arrays[i]);
    for (int i = 0; i < 3 && st != SPMV_OK; i++)
        if (on_device)
            spmv_free(ctx, arrays[i]);
        else
            host_free(arrays[i]);
    return st;
}

spmv_status matrix_allocate_in(spmv_context *ctx, spmv_memory memory, int64_t rows, int64_t cols, int64_t nnz,
                               spmv_type type, bool pattern, spmv_matrix **matrix)
{
    const bool on_device = memory == SPMV_MEMORY_CONTEXT && context_on_device(ctx);
    *matrix = NULL;
    if (rows < 0 || cols < 0 || nnz < 0 || cols > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "a matrix of %lld x %lld with %lld entries: sizes must not be negative, and at most %d "
                            "columns are possible",
                            (long long)rows, (long long)cols, (long long)nnz, INT32_MAX);
    if (!pattern && !is_number(type) && !type_is_half(type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "type %s is not a type of matrices", spmv_type_name(type));
    int64_t bytes[3];
    if (!matrix_bytes(rows, nnz, value_size(type, pattern), &bytes[0], &bytes[1], &bytes[2]))
        return context_fail(ctx, SPMV_ERROR_LIMIT,
                            "a matrix of %lld x %lld with %lld entries: its size in bytes exceeds 64 bits",
                            (long long)rows, (long long)cols, (long long)nnz);
    const int64_t all = bytes[0] + bytes[1] + bytes[2];
    char what[128];
    snprintf(what, sizeof what, "a matrix of %lld x %lld with %lld entries", (long long)rows, (long long)cols,
             (long long)nnz);
    spmv_status st = on_device ? SPMV_OK : matrix_memory_check(ctx, what, all);
    if (st != SPMV_OK)
        return st;
    spmv_matrix *const m = calloc(1, sizeof *m);
    void *arrays[3];
    st = m == NULL ? SPMV_ERROR_MEMORY : allocate_arrays(ctx, on_device, bytes, arrays);
    if (st != SPMV_OK) {
        free(m);
        return st == SPMV_ERROR_MEMORY ? context_fail_memory(ctx, what, all) : st;
    }
    for (int i = 0; i < 3 && !on_device; i++)
        pages_ask_large(arrays[i], bytes[i]);
    *m = (spmv_matrix){.rows = rows,
                       .cols = cols,
                       .nnz = nnz,
                       .row_ptr = arrays[0],
                       .col = arrays[1],
                       .val = arrays[2],
                       .type = type,
                       .pattern = pattern,
                       .ctx = memory == SPMV_MEMORY_CONTEXT ? ctx : NULL};
    *matrix = m;
    return SPMV_OK;
}

spmv_status matrix_allocate(spmv_context *ctx, int64_t rows, int64_t cols, int64_t nnz, spmv_type type, bool pattern,
                            spmv_matrix **matrix)
{
    return matrix_allocate_in(ctx, SPMV_MEMORY_HOST, rows, cols, nnz, type, pattern, matrix);
}

spmv_status matrix_adopt(spmv_context *ctx, const spmv_csr *a, spmv_matrix **matrix)
{
    const spmv_status st = matrix_from_map(ctx, a, a->type, NULL, 0, matrix);
    if (st == SPMV_OK)
        (*matrix)->ctx = ctx;
    return st;
}

spmv_status matrix_from_map(spmv_context *ctx, const spmv_csr *a, spmv_type type, void *map, int64_t map_bytes,
                            spmv_matrix **matrix)
{
    *matrix = calloc(1, sizeof **matrix);
    if (*matrix == NULL)
        return context_fail_memory(ctx, "a matrix", (int64_t)sizeof **matrix);
    /* The casts remove const: no code writes to a finished matrix. */
    **matrix = (spmv_matrix){.rows = a->rows,
                             .cols = a->cols,
                             .nnz = a->nnz,
                             .row_ptr = (int64_t *)a->row_ptr,
                             .col = a->nnz > 0 ? (int32_t *)a->col : NULL,
                             .val = (void *)a->val,
                             .type = type,
                             .pattern = a->val == NULL,
                             .map = map,
                             .map_bytes = map_bytes};
    return SPMV_OK;
}

/* Writes the values of from as real parts; the imaginary parts are 0 already. */
static void widen(spmv_type part, const void *from, int64_t n, void *to)
{
    for (int64_t k = 0; k < n; k++)
        real_set(part, to, 2 * k, real_at(part, from, k));
}

spmv_status values_widen(spmv_context *ctx, const void *values, int64_t n, spmv_type type, void **wide)
{
    int64_t bytes = 0;
    if (!multiply_fits(max_i64(n, 1), (int64_t)spmv_type_size(type), &bytes))
        return context_fail(ctx, SPMV_ERROR_LIMIT, "%lld complex numbers: their size in bytes exceeds 64 bits",
                            (long long)n);
    spmv_status st = matrix_memory_check(ctx, "complex values", bytes);
    if (st == SPMV_OK)
        st = host_alloc(ctx, bytes, "complex values", wide);
    if (st != SPMV_OK)
        return st;
    memset(*wide, 0, (size_t)bytes);
    widen(type_part(type), values, n, *wide);
    return SPMV_OK;
}

spmv_status matrix_widen(spmv_context *ctx, spmv_matrix *matrix, spmv_type type)
{
    if (!matrix->pattern) {
        void *wide = NULL;
        const spmv_status st = values_widen(ctx, matrix->val, matrix->nnz, type, &wide);
        if (st != SPMV_OK)
            return st;
        host_free(matrix->val);
        matrix->val = wide;
    }
    matrix->type = type;
    return SPMV_OK;
}

void spmv_matrix_destroy(spmv_matrix *matrix)
{
    if (matrix == NULL)
        return;
    if (matrix->map != NULL) {
        munmap(matrix->map, (size_t)matrix->map_bytes);
    } else if (matrix->ctx != NULL) {
        spmv_free(matrix->ctx, matrix->row_ptr);
        spmv_free(matrix->ctx, matrix->col);
        spmv_free(matrix->ctx, matrix->val);
        context_freed(matrix->ctx);
    } else {
        host_free_all(matrix->row_ptr, matrix->col, matrix->val);
    }
    host_free(matrix->comments);
    free(matrix);
}

spmv_csr csr_of(int64_t rows, int64_t cols, int64_t nnz, const int64_t *row_ptr, const int32_t *col, const void *val,
                spmv_type type, spmv_memory memory)
{
    return (spmv_csr){.rows = rows,
                      .cols = cols,
                      .nnz = nnz,
                      .row_ptr = row_ptr,
                      .row_ptr_bits = 64,
                      .col = col,
                      .val = val,
                      .type = type,
                      .memory = memory};
}

void spmv_matrix_view(const spmv_matrix *matrix, spmv_csr *view)
{
    if (view == NULL)
        return;
    *view = (spmv_csr){.memory = SPMV_MEMORY_HOST};
    if (matrix == NULL)
        return;
    *view = csr_of(matrix->rows, matrix->cols, matrix->nnz, matrix->row_ptr, matrix->col, matrix->val, matrix->type,
                   matrix->ctx != NULL ? SPMV_MEMORY_CONTEXT : SPMV_MEMORY_HOST);
}

/* Uses a host backend: a context on a device converts its matrices on the host. */
spmv_status offsets_from_counts(spmv_context *ctx, int64_t *offsets, int64_t bins)
{
    const struct backend_table *host = ctx->backend->id == SPMV_BACKEND_REF ? &backend_ref : &backend_omp;
    void *scratch = NULL;
    offsets[bins] = 0;
    spmv_status st = host_alloc(ctx, host->scan_scratch(ctx, SPMV_I64, bins + 1), "scanning row counts", &scratch);
    if (st == SPMV_OK)
        st = host->scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I64, offsets, offsets, bins + 1, scratch);
    host_free(scratch);
    return st;
}

spmv_status csr_check_shape(spmv_context *ctx, const char *name, const spmv_csr *a)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (a == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: the matrix is NULL", name);
    if (a->rows < 0 || a->cols < 0 || a->nnz < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: sizes must not be negative: %lld x %lld with %lld entries",
                            name, (long long)a->rows, (long long)a->cols, (long long)a->nnz);
    if (a->cols > INT32_MAX)
        return context_fail(ctx, SPMV_ERROR_LIMIT, "%s: %lld columns, at most %d are possible", name,
                            (long long)a->cols, INT32_MAX);
    if (a->row_ptr_bits != 32 && a->row_ptr_bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: row_ptr_bits is %d, not 32 or 64", name, a->row_ptr_bits);
    if (a->row_ptr == NULL || (a->nnz > 0 && a->col == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", name, a->row_ptr == NULL ? "row_ptr" : "col");
    if (a->val != NULL && type_is_half(a->type))
        return context_fail(ctx, SPMV_ERROR_TYPE,
                            "%s: values of type %s; only products with vectors and sampled products take 16-bit "
                            "values, convert them to f32 or f64 (spmv_convert_numbers)",
                            name, spmv_type_name(a->type));
    if (a->val != NULL && !is_number(a->type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: type %d is not a type of values", name, (int)a->type);
    if (a->memory != SPMV_MEMORY_HOST && a->memory != SPMV_MEMORY_CONTEXT)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: memory is %d, neither host nor context", name,
                            (int)a->memory);
    return SPMV_OK;
}

spmv_status csr_check_square(spmv_context *ctx, const char *name, int64_t rows, int64_t cols)
{
    if (rows == cols)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_NOT_SQUARE, "%s: the matrix has %lld rows and %lld columns", name,
                        (long long)rows, (long long)cols);
}

static spmv_status check_row_ptr(spmv_context *ctx, const char *name, const spmv_csr *a)
{
    if (row_first(a, 0) != 0)
        return context_fail(ctx, SPMV_ERROR_SIZE, "%s: row 0: row_ptr[0] is %lld, not 0", name,
                            (long long)row_first(a, 0));
    int64_t bad = a->rows;
#pragma omp parallel for num_threads(host_team(ctx, a->rows)) schedule(static) reduction(min : bad)
    for (int64_t row = 0; row < a->rows; row++)
        if (row_first(a, row) > row_first(a, row + 1))
            bad = min_i64(bad, row);
    if (bad < a->rows)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "%s: row %lld ends before it starts: row_ptr[%lld] is %lld, then %lld%s", name,
                            context_number(ctx, bad), (long long)bad, (long long)row_first(a, bad),
                            (long long)row_first(a, bad + 1), context_counted(ctx));
    if (row_first(a, a->rows) != a->nnz)
        return context_fail(ctx, SPMV_ERROR_SIZE, "%s: after row %lld: row_ptr[%lld] is %lld, not the %lld entries%s",
                            name, context_number(ctx, a->rows - 1), (long long)a->rows,
                            (long long)row_first(a, a->rows), (long long)a->nnz, context_counted(ctx));
    return SPMV_OK;
}

/* The faults of entries begin <= k < end: columns that do not exist, and columns that are not above the
 * one before, of entry begin - 1 too if there is one. The compiler uses vectors. */
static void count_faults(const spmv_csr *a, int64_t begin, int64_t end, int64_t *outside, int64_t *descents)
{
    enum { BLOCK = 256, LINE = 16, AHEAD = 1024 }; /* columns */
    const int32_t *const col = a->col;
    const uint32_t cols = (uint32_t)a->cols;
    if (begin == 0 && end > 0)
        *outside += (uint32_t)col[begin++] >= cols;
    for (int64_t from = begin; from < end; from += BLOCK) {
        const int64_t to = min_i64(end, from + BLOCK);
        int32_t not_here = 0, not_above = 0; /* narrow, for the vectors */
        for (int64_t k = from; k < to; k += LINE)
            __builtin_prefetch(&col[k + AHEAD]);
        for (int64_t k = from; k < to; k++) {
            not_here += (uint32_t)col[k] >= cols;
            not_above += col[k] <= col[k - 1];
        }
        *outside += not_here;
        *descents += not_above;
    }
}

/* What is found in some rows of a matrix. */
struct look {
    bool offsets_valid;
    int64_t longest; /* row, if the offsets are valid */
    int64_t outside, descents, descents_at_starts;
};

/* Looks at the rows first <= row < end, and at their columns if the offsets are valid. bits: those of
 * the offsets, a constant where it is called. */
static inline __attribute__((always_inline)) struct look look_at_rows(const spmv_csr *a, int bits, int64_t first,
                                                                      int64_t end)
{
    const void *const row_ptr = a->row_ptr;
    const int32_t *const col = a->col;
    const int64_t begin = offset_at(row_ptr, bits, first), stop = offset_at(row_ptr, bits, end);
    struct look look = {.offsets_valid = 0 <= begin && stop <= a->nnz};
    bool descends = false;
    uint64_t longest = 0; /* a difference of wrong offsets may not fit in 63 bits */
    for (int64_t row = first; row < end; row++) {
        const int64_t here = offset_at(row_ptr, bits, row), next = offset_at(row_ptr, bits, row + 1);
        const uint64_t length = (uint64_t)next - (uint64_t)here;
        descends |= next < here;
        longest = length > longest ? length : longest;
    }
    look.offsets_valid = look.offsets_valid && !descends;
    if (!look.offsets_valid)
        return look;
    look.longest = (int64_t)longest;
    count_faults(a, begin, stop, &look.outside, &look.descents);
    for (int64_t row = first; row < end; row++) {
        const int64_t k = offset_at(row_ptr, bits, row);
        if (k > 0 && k < offset_at(row_ptr, bits, row + 1))
            look.descents_at_starts += col[k] <= col[k - 1];
    }
    return look;
}

/* Whether the arrays are valid, in one pass: offsets ascend from 0 to nnz, all columns exist and, for
 * CSR_SORTED, ascend strictly in each row: a column that is not above the one before must be the first
 * of its row. The functions below find the first fault. *longest: the length of the longest row. */
static bool arrays_valid(spmv_context *ctx, const spmv_csr *a, enum csr_order order, int64_t *longest)
{
    enum { ROWS = 512 };
    bool valid = row_first(a, 0) == 0 && row_first(a, a->rows) == a->nnz;
    int64_t most = 0, outside = 0, descents = 0, at_starts = 0;
#pragma omp parallel for num_threads(host_team(ctx, a->rows + a->nnz)) schedule(dynamic, 1) reduction(&& : valid)      \
    reduction(max : most) reduction(+ : outside, descents, at_starts)
    for (int64_t first = 0; first < a->rows; first += ROWS) {
        const int64_t end = min_i64(a->rows, first + ROWS);
        const struct look look =
            a->row_ptr_bits == 32 ? look_at_rows(a, 32, first, end) : look_at_rows(a, 64, first, end);
        valid = valid && look.offsets_valid;
        most = max_i64(most, look.longest);
        outside += look.outside;
        descents += look.descents;
        at_starts += look.descents_at_starts;
    }
    *longest = most;
    return valid && outside == 0 && (order != CSR_SORTED || descents == at_starts);
}

spmv_status csr_check_columns(spmv_context *ctx, const char *name, const spmv_csr *a, const int64_t *wide)
{
    int64_t bad = a->nnz;
#pragma omp parallel for num_threads(host_team(ctx, a->nnz)) schedule(static) reduction(min : bad)
    for (int64_t k = 0; k < a->nnz; k++) {
        const int64_t column = wide != NULL ? wide[k] : a->col[k];
        if (column < 0 || column >= a->cols)
            bad = min_i64(bad, k);
    }
    if (bad == a->nnz)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_SIZE, "%s: row %lld, entry %lld: column %lld is outside the %lld columns%s",
                        name, context_number(ctx, row_of_entry(a, bad)), context_number(ctx, bad),
                        context_number(ctx, wide != NULL ? wide[bad] : a->col[bad]), (long long)a->cols,
                        context_counted(ctx));
}

static spmv_status check_sorted(spmv_context *ctx, const char *name, const spmv_csr *a)
{
    int64_t bad = a->nnz;
#pragma omp parallel for num_threads(host_team(ctx, a->rows + a->nnz)) schedule(dynamic, 512) reduction(min : bad)
    for (int64_t row = 0; row < a->rows; row++)
        for (int64_t k = row_first(a, row) + 1; k < row_first(a, row + 1); k++)
            if (a->col[k - 1] >= a->col[k])
                bad = min_i64(bad, k);
    if (bad == a->nnz)
        return SPMV_OK;
    return context_fail(ctx, SPMV_ERROR_SIZE,
                        "%s: row %lld, entry %lld: column %lld follows column %lld: columns must ascend in each row%s",
                        name, context_number(ctx, row_of_entry(a, bad)), context_number(ctx, bad),
                        context_number(ctx, a->col[bad]), context_number(ctx, a->col[bad - 1]), context_counted(ctx));
}

/* The shape, and whether the host can read the arrays. */
static spmv_status check_readable(spmv_context *ctx, const char *name, const spmv_csr *a)
{
    const spmv_status st = csr_check_shape(ctx, name, a);
    if (st != SPMV_OK || !csr_on_device(ctx, a))
        return st;
    return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: the arrays are on the device, this needs them in host memory",
                        name);
}

spmv_status csr_check_offsets(spmv_context *ctx, const char *name, const spmv_csr *a)
{
    const spmv_status st = check_readable(ctx, name, a);
    return st != SPMV_OK ? st : check_row_ptr(ctx, name, a);
}

spmv_status csr_check_longest(spmv_context *ctx, const char *name, const spmv_csr *a, enum csr_order order,
                              int64_t *longest)
{
    *longest = 0;
    spmv_status st = check_readable(ctx, name, a);
    if (st != SPMV_OK || arrays_valid(ctx, a, order, longest))
        return st;
    st = check_row_ptr(ctx, name, a);
    if (st == SPMV_OK)
        st = csr_check_columns(ctx, name, a, NULL);
    if (st == SPMV_OK && order == CSR_SORTED)
        st = check_sorted(ctx, name, a);
    return st;
}

spmv_status csr_check(spmv_context *ctx, const char *name, const spmv_csr *a, enum csr_order order)
{
    int64_t longest = 0;
    return csr_check_longest(ctx, name, a, order, &longest);
}

/* A copy of wrong arrays goes through the host's check, for its message. */
static spmv_status check_on_device(spmv_context *ctx, const char *name, const spmv_csr *a, enum csr_order order)
{
    spmv_status st = SPMV_OK;
    struct csr_faults faults = {0};
    struct csr_copies copies = {0};
    spmv_csr pattern = *a;
    pattern.val = NULL;
    if (a->rows > 0)
        TRY(csr_faults_cuda(ctx, a, &faults));
    if (a->rows > 0 && csr_faultless(&faults, order))
        return SPMV_OK;
    TRY(csr_to_host(ctx, &pattern, false, &pattern, &copies));
    st = csr_check(ctx, name, &pattern, order);
done:
    csr_free_host(&copies);
    return st;
}

spmv_status csr_check_anywhere(spmv_context *ctx, const char *name, const spmv_csr *a, enum csr_order order)
{
    const spmv_status st = csr_check_shape(ctx, name, a);
    if (st != SPMV_OK || csr_on_device(ctx, a))
        return st != SPMV_OK ? st : check_on_device(ctx, name, a, order);
    return csr_check(ctx, name, a, order);
}

spmv_status spmv_matrix_check(spmv_context *ctx, const spmv_csr *a)
{
    return csr_check_anywhere(ctx, "spmv_matrix_check", a, CSR_ANY_ORDER);
}
