/* Twins of matrices described by figures in the SPEC. The known twins are in
 * test_twin_known.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support_generate.h"
#include "tests/support/support_locality.h"

static spmv_matrix *make(spmv_context *ctx, const char *spec, spmv_csr *a, spmv_statistics *s)
{
    spmv_matrix *m = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &m));
    spmv_matrix_view(m, a);
    assert_ok(ctx, csr_check(ctx, spec, a, CSR_SORTED));
    assert_ok(ctx, spmv_matrix_statistics(ctx, a, s, sizeof *s));
    const struct matrix_locality l = support_locality(a);
    assert_near(s->bw_frac, l.bw_frac);
    assert_near(s->avg_neighbours, l.avg_neighbours);
    assert_near(s->cross_row_similarity, l.cross_row_similarity);
    return m;
}

/* Many kinds of figures, met as closely as those of the known twins. */
static void figures_are_met(void **state)
{
    static const struct {
        int64_t rows, cols, nnz, max;
        double std, bw_frac, avg_neighbours, similarity;
    } t[] = {
        /* In this order: ordinary rows; all rows alike; tall with a long tail; wide; mostly empty
         * rows; runs of 10; rows nearly full; one full row, which alone causes the deviation. */
        {10000, 10000, 100000, 40, 5, 0.1, 0.9, 0.5},    {10000, 10000, 100000, 10, 0, 0.1, 0.9, 0.9},
        {20000, 5000, 200000, 3000, 60, 0.3, 1.2, 0.8},  {2000, 300000, 200000, 1000, 150, 0.9, 0.2, 0.1},
        {20000, 20000, 10000, 20, 1.5, 0.001, 0.1, 0.3}, {5000, 5000, 100000, 30, 3, 0.5, 1.8, 0.99},
        {3000, 64, 90000, 64, 12, 0.9, 1.3, 0.9},        {5000, 5000, 60000, 5000, 72, 0.4, 1.0, 0.7},
    };
    spmv_context *ctx = *state;
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        char spec[256];
        spmv_csr a;
        spmv_statistics s;
        snprintf(spec, sizeof spec,
                 "twin:rows=%lld,cols=%lld,nnz=%lld,std=%g,max=%lld,bw_frac=%g,avg_neighbours=%g,"
                 "cross_row_similarity=%g,seed=%zu",
                 (long long)t[i].rows, (long long)t[i].cols, (long long)t[i].nnz, t[i].std, (long long)t[i].max,
                 t[i].bw_frac, t[i].avg_neighbours, t[i].similarity, i);
        spmv_matrix *m = make(ctx, spec, &a, &s);
        if (a.rows != t[i].rows || a.cols != t[i].cols || a.nnz != t[i].nnz || s.row_max != t[i].max ||
            fabs(s.row_std - t[i].std) > 0.05 * t[i].std || fabs(s.bw_frac - t[i].bw_frac) > 0.05 * t[i].bw_frac ||
            fabs(s.avg_neighbours - t[i].avg_neighbours) > 0.05 * t[i].avg_neighbours ||
            fabs(s.cross_row_similarity - t[i].similarity) > 0.1 * t[i].similarity)
            fail_msg("%s: %lld x %lld, %lld nonzeros, std %g, max %lld, bw_frac %g, neighbours %g, similarity %g", spec,
                     (long long)a.rows, (long long)a.cols, (long long)a.nnz, s.row_std, (long long)s.row_max, s.bw_frac,
                     s.avg_neighbours, s.cross_row_similarity);
        spmv_matrix_destroy(m);
    }
}

/* Figures that are not given adapt to those that are: all of these exist. */
static void defaults(void **state)
{
    static const struct {
        const char *spec;
        int64_t rows, cols, nnz;
    } t[] = {
        {"twin:rows=1,nnz=1", 1, 1, 1},
        {"twin:rows=1,nnz=5,cols=9", 1, 9, 5},
        {"twin:rows=7,nnz=49", 7, 7, 49}, /* full */
        {"twin:nnz=1,rows=1e3", 1000, 1000, 1},
        {"twin:rows=1000,nnz=1000", 1000, 1000, 1000},
        {"twin:rows=1000,nnz=1001,max=2", 1000, 1000, 1001},
        {"twin:rows=3,nnz=4,max=4,cols=4", 3, 4, 4},
        {"twin:rows=1000,nnz=999000", 1000, 1000, 999000},
        {"twin:rows=100,nnz=500,max=100", 100, 100, 500},
        {"twin:rows=5000,nnz=50000", 5000, 5000, 50000},
        {"twin:rows=5000,nnz=50000,bw_frac=1", 5000, 5000, 50000},
        {"twin:rows=5000,nnz=50000,bw_frac=0.01", 5000, 5000, 50000},
        {"twin:rows=5000,nnz=50000,avg_neighbours=0", 5000, 5000, 50000},
        {"twin:rows=5000,nnz=50000,cross_row_similarity=1", 5000, 5000, 50000},
        {"twin:rows=5000,nnz=50000,std=100", 5000, 5000, 50000},
        {"twin:rows=5000,nnz=50000,cols=100000000", 5000, 100000000, 50000},
    };
    spmv_context *ctx = *state;
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        spmv_csr a;
        spmv_statistics s;
        spmv_matrix *m = make(ctx, t[i].spec, &a, &s);
        if (a.rows != t[i].rows || a.cols != t[i].cols || a.nnz != t[i].nnz)
            fail_msg("%s: %lld x %lld, %lld nonzeros", t[i].spec, (long long)a.rows, (long long)a.cols,
                     (long long)a.nnz);
        spmv_matrix_destroy(m);
    }
}

static void same_bits_for_any_team(void **state)
{
    (void)state;
    assert_same_for_any_team("twin:scircuit", SPMV_F32);
    assert_same_for_any_team("twin:rows=300000,nnz=900000,std=20,max=2000,seed=5", SPMV_F32);
}

static bool same_columns(const spmv_csr *a, const spmv_csr *b)
{
    return memcmp(a->row_ptr, b->row_ptr, (size_t)(a->rows + 1) * sizeof(int64_t)) == 0 &&
           memcmp(a->col, b->col, (size_t)a->nnz * sizeof *a->col) == 0;
}

/* Another seed gives another matrix of the same kind. The kind of values does not change the
 * columns. */
static void seeds_and_values(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a, b, c;
    spmv_statistics s;
    spmv_matrix *first = make(ctx, "twin:mac_econ_fwd500", &a, &s);
    const double similarity = s.cross_row_similarity;
    spmv_matrix *other = make(ctx, "twin:mac_econ_fwd500,seed=2", &b, &s);
    assert_false(same_columns(&a, &b));
    assert_true(fabs(s.cross_row_similarity - similarity) < 0.05 * similarity);
    spmv_matrix *constant = make(ctx, "twin:mac_econ_fwd500,values=constant,seed=1", &c, &s);
    assert_true(same_columns(&a, &c));
    int64_t ones = 0;
    for (int64_t k = 0; k < c.nnz; k++)
        ones += support_value(&c, k) == 1;
    assert_int_equal(ones, c.nnz);
    assert_true(fabs(support_value(&a, 0)) >= 0.5 && fabs(support_value(&a, 0)) < 1);
    spmv_matrix_destroy(first);
    spmv_matrix_destroy(other);
    spmv_matrix_destroy(constant);
}

SUPPORT_MAIN(with_context(figures_are_met), with_context(defaults), cmocka_unit_test(same_bits_for_any_team),
             with_context(seeds_and_values))
