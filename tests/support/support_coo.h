/* Shared by the tests of formats/: random coordinate entries, a dense oracle for the matrix made
 * from them, and the comparison of CSR matrices.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_COO_H
#define SUPPORT_COO_H

#include <stdbool.h>

#include "formats/matrix_internal.h"
#include "tests/support/support.h"

struct entries {
    int64_t rows, cols, n;
    int64_t *row;
    int32_t *col;
    double *val; /* small: numbers that every type can hold; else random in [-1, 1) */
};

static inline void *support_array(int64_t n, size_t size)
{
    void *array = calloc((size_t)n + 1, size);
    assert_non_null(array);
    return array;
}

/* n entries anywhere but in the first, the middle and the last row, if there are more than four
 * rows. */
static inline struct entries support_entries(int64_t rows, int64_t cols, int64_t n, bool small, uint64_t *state)
{
    struct entries e = {rows,
                        cols,
                        n,
                        support_array(n, sizeof *e.row),
                        support_array(n, sizeof *e.col),
                        support_array(n, sizeof *e.val)};
    for (int64_t k = 0; k < n; k++) {
        do
            e.row[k] = (int64_t)(support_random(state) % (uint64_t)rows);
        while (rows > 4 && (e.row[k] == 0 || e.row[k] == rows / 2 || e.row[k] == rows - 1));
        e.col[k] = (int32_t)(support_random(state) % (uint64_t)cols);
        e.val[k] = small ? (double)(support_random(state) % 7) - 3 : support_uniform(state);
    }
    return e;
}

static inline void support_entries_free(struct entries *e)
{
    support_free(e->row, e->col, e->val);
}

/* The number rounded to the type. */
static inline double support_round(spmv_type type, double v)
{
    return type == SPMV_F64 ? v : type == SPMV_F32 ? (double)(float)v : (double)(int64_t)v;
}

/* n numbers as an array of the type; release with free. */
static inline void *support_typed(spmv_type type, const double *v, int64_t n)
{
    void *array = support_array(n, spmv_type_size(type));
    for (int64_t k = 0; k < n; k++) {
#define CASE(NAME, name, value, T, CLASS, ARG)                                                                         \
    if (type == SPMV_##NAME)                                                                                           \
        ((T *)array)[k] = (T)v[k];
        SPMV_NUMBER_TYPES(CASE, )
#undef CASE
    }
    return array;
}

/* Value k of a matrix; 1 for a pattern. */
static inline double support_value(const spmv_csr *a, int64_t k)
{
    double v = 1;
    if (a->val != NULL) {
#define CASE(NAME, name, value, T, CLASS, ARG)                                                                         \
    if (a->type == SPMV_##NAME)                                                                                        \
        v = (double)((const T *)a->val)[k];
        SPMV_NUMBER_TYPES(CASE, )
#undef CASE
    }
    return v;
}

/* The matrix as a dense array. */
struct dense {
    int64_t rows, cols, stored;
    bool *there;
    double *val;
};

static inline struct dense support_dense(int64_t rows, int64_t cols)
{
    return (struct dense){rows, cols, 0, support_array(rows * cols, sizeof(bool)),
                          support_array(rows * cols, sizeof(double))};
}

static inline void support_dense_free(struct dense *d)
{
    support_free(d->there, d->val);
}

/* Adds one entry in the arithmetic of the type. Returns 1 if the cell already had one. */
static inline int support_dense_add(struct dense *d, int64_t row, int64_t col, spmv_type type, double v)
{
    const int64_t cell = row * d->cols + col;
    const int before = d->there[cell];
    d->val[cell] = before ? support_round(type, d->val[cell] + v) : support_round(type, v);
    d->there[cell] = true;
    d->stored += !before;
    return before;
}

/* Asserts that the matrix holds exactly the cells of the dense one, columns ascending, bits
 * equal. */
static inline void assert_matrix_is_dense(const spmv_csr *a, const struct dense *d)
{
    const int64_t *const row_ptr = a->row_ptr;
    assert_int_equal(a->row_ptr_bits, 64);
    assert_true(a->rows == d->rows && a->cols == d->cols && a->nnz == d->stored);
    assert_true(row_ptr[0] == 0 && row_ptr[a->rows] == a->nnz);
    for (int64_t row = 0; row < a->rows; row++) {
        assert_true(row_ptr[row] <= row_ptr[row + 1]);
        for (int64_t k = row_ptr[row]; k < row_ptr[row + 1]; k++) {
            const int64_t cell = row * d->cols + a->col[k];
            const double v = support_value(a, k), expected = a->val == NULL ? 1 : d->val[cell];
            assert_true(k == row_ptr[row] || a->col[k - 1] < a->col[k]);
            assert_true(a->col[k] >= 0 && a->col[k] < a->cols && d->there[cell]);
            assert_memory_equal(&v, &expected, sizeof v);
        }
    }
}

/* Asserts the same sizes, offsets, columns and bits of values. */
static inline void assert_same_csr(const spmv_csr *a, const spmv_csr *b)
{
    assert_true(a->rows == b->rows && a->cols == b->cols && a->nnz == b->nnz);
    for (int64_t row = 0; row <= a->rows; row++)
        assert_int_equal(row_first(a, row), row_first(b, row));
    assert_int_equal(a->val == NULL, b->val == NULL);
    if (a->nnz == 0)
        return;
    assert_memory_equal(a->col, b->col, (size_t)a->nnz * sizeof *a->col);
    if (a->val == NULL)
        return;
    assert_int_equal(a->type, b->type);
    assert_memory_equal(a->val, b->val, (size_t)a->nnz * spmv_type_size(a->type));
}

static inline void assert_same_matrix(const spmv_matrix *a, const spmv_matrix *b)
{
    spmv_csr view_a, view_b;
    spmv_matrix_view(a, &view_a);
    spmv_matrix_view(b, &view_b);
    assert_same_csr(&view_a, &view_b);
}

/* Numbers of threads that must give the same results. */
static const int support_teams[] = {1, 2, 3, 7};
enum { SUPPORT_TEAMS = sizeof support_teams / sizeof support_teams[0] };

#endif
