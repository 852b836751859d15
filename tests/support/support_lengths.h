/* Matrices and vectors for tests of products: rows of given lengths, pseudo-random columns and
 * values with a fixed seed.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_LENGTHS_H
#define SUPPORT_LENGTHS_H

#include "tests/support/support.h"

struct matrix {
    int64_t rows, cols, nnz;
    int64_t *row_ptr;
    int32_t *col;
    double *val; /* NULL: a pattern */
};

static inline void free_matrix(struct matrix *m)
{
    support_free(m->row_ptr, m->col, m->val);
}

static inline double draw(bool whole, uint64_t *random)
{
    return whole ? (double)((int)(support_random(random) >> 40) % 9 - 4) : support_uniform(random);
}

/* A matrix with rows of these lengths and random columns. whole: the values are integers from -4 to
 * 4. */
static inline struct matrix make_matrix(const int64_t *lengths, int64_t rows, int64_t cols, bool whole, bool pattern)
{
    uint64_t random = (uint64_t)(rows * 7 + cols);
    struct matrix m = {.rows = rows, .cols = cols, .row_ptr = support_zeros(rows + 1, sizeof *m.row_ptr)};
    for (int64_t i = 0; i < rows; i++)
        m.row_ptr[i + 1] = m.row_ptr[i] + lengths[i];
    m.nnz = m.row_ptr[rows];
    m.col = support_zeros(m.nnz, sizeof *m.col);
    m.val = pattern ? NULL : support_zeros(m.nnz, sizeof *m.val);
    for (int64_t k = 0; k < m.nnz; k++) {
        m.col[k] = (int32_t)(support_random(&random) % (uint64_t)cols);
        if (!pattern)
            m.val[k] = draw(whole, &random);
    }
    return m;
}

static inline double *make_vector(int64_t n, uint64_t seed, bool whole)
{
    double *const v = support_zeros(n, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = draw(whole, &seed);
    return v;
}

#endif
