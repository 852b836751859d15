/* SPECs: the Poisson stencils against a naive one, arguments, and the refused SPECs of every
 * generator. test_families.c, test_grids.c and test_twin.c test the other generators.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/generate.h"
#include "tests/support/support_generate.h"

/* Coordinates of a grid point, x first. */
static void coordinates(int64_t point, int64_t n, int axes, int64_t *x)
{
    for (int axis = 0; axis < axes; axis++) {
        x[axis] = point % n;
        point /= n;
    }
}

/* 2 * axes on the diagonal, -1 for two points one step apart along one axis, else 0. */
static double stencil(int64_t i, int64_t j, int64_t n, int axes)
{
    int64_t x[3], y[3], distance = 0;
    coordinates(i, n, axes, x);
    coordinates(j, n, axes, y);
    for (int axis = 0; axis < axes; axis++)
        distance += x[axis] > y[axis] ? x[axis] - y[axis] : y[axis] - x[axis];
    return distance == 0 ? 2.0 * axes : distance == 1 ? -1 : 0;
}

static void check_poisson(spmv_context *ctx, int axes, int64_t n, spmv_type asked, spmv_type type)
{
    char spec[32];
    int64_t points = axes == 2 ? n * n : n * n * n;
    struct dense d = support_dense(points, points);
    spmv_matrix *m = NULL;
    spmv_csr a;
    for (int64_t i = 0; i < points; i++)
        for (int64_t j = 0; j < points; j++)
            if (stencil(i, j, n, axes) != 0)
                support_dense_add(&d, i, j, type, stencil(i, j, n, axes));
    snprintf(spec, sizeof spec, "poisson%dd:%lld", axes, (long long)n);
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, asked, &m));
    spmv_matrix_view(m, &a);
    assert_int_equal(a.type, type);
    assert_non_null(a.val);
    assert_matrix_is_dense(&a, &d);
    spmv_matrix_destroy(m);
    support_dense_free(&d);
}

static void poisson_against_stencil(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 7};
    spmv_context *ctx = *state;
    for (int axes = 2; axes <= 3; axes++) {
        for (int i = 0; i < 4; i++) {
            check_poisson(ctx, axes, sizes[i], SPMV_TYPE_DEFAULT, SPMV_F64);
            check_poisson(ctx, axes, sizes[i], SPMV_F64, SPMV_F64);
            check_poisson(ctx, axes, sizes[i], SPMV_F32, SPMV_F32);
        }
    }
}

/* N = 1 and N = 2, by hand. */
static void poisson_by_hand(void **state)
{
    static const int64_t row_ptr[] = {0, 3, 6, 9, 12};
    static const int32_t col[] = {0, 1, 2, 0, 1, 3, 0, 2, 3, 1, 2, 3};
    static const double val[] = {4, -1, -1, -1, 4, -1, -1, 4, -1, -1, -1, 4};
    spmv_context *ctx = *state;
    spmv_matrix *m = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson3d:1", SPMV_F64, &m));
    spmv_matrix_view(m, &a);
    assert_true(a.rows == 1 && a.nnz == 1 && a.col[0] == 0 && support_value(&a, 0) == 6);
    spmv_matrix_destroy(m);
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:2", SPMV_F64, &m));
    spmv_matrix_view(m, &a);
    assert_true(a.rows == 4 && a.cols == 4 && a.nnz == 12);
    assert_memory_equal(a.row_ptr, row_ptr, sizeof row_ptr);
    assert_memory_equal(a.col, col, sizeof col);
    assert_memory_equal(a.val, val, sizeof val);
    spmv_matrix_destroy(m);
}

/* The sum of a row is the number of its neighbours beyond the boundary; 5 N^2 - 4 N and 7 N^3 - 6
 * N^2 entries. */
static void row_sums(void **state)
{
    enum { N = 33 };
    spmv_context *ctx = *state;
    for (int axes = 2; axes <= 3; axes++) {
        const int64_t n = N, points = axes == 2 ? n * n : n * n * n;
        spmv_matrix *m = NULL;
        spmv_csr a;
        assert_ok(ctx, spmv_matrix_generate(ctx, axes == 2 ? "poisson2d:33" : "poisson3d:33", SPMV_F64, &m));
        spmv_matrix_view(m, &a);
        assert_int_equal(a.nnz, (1 + 2 * axes) * points - 2 * axes * (points / n));
        assert_ok(ctx, csr_check(ctx, "poisson", &a, CSR_SORTED));
        for (int64_t row = 0; row < points; row++) {
            int64_t x[3];
            double sum = 0, expected = 0;
            coordinates(row, n, axes, x);
            for (int axis = 0; axis < axes; axis++)
                expected += (x[axis] == 0) + (x[axis] == n - 1);
            for (int64_t k = row_first(&a, row); k < row_first(&a, row + 1); k++)
                sum += support_value(&a, k);
            assert_true(sum == expected);
        }
        spmv_matrix_destroy(m);
    }
}

static void same_bits_for_any_team(void **state)
{
    (void)state;
    assert_same_for_any_team("poisson2d:90", SPMV_F32);
    assert_same_for_any_team("poisson3d:20", SPMV_F32);
}

/* Of each generator in turn; first no generator at all. */
static const struct refused_spec {
    const char *spec;
    spmv_status status;
    const char *sentence; /* part of the message */
} refused[] = {
    {"", SPMV_ERROR_SPEC, "poisson2d:N"},
    {"poisson4d:10", SPMV_ERROR_SPEC,
     "no generator has the name \"poisson4d\"; did you mean poisson2d? There are: poisson2d:N"},
    {"poisson4d:10", SPMV_ERROR_SPEC, "poisson2d:N, poisson3d:N"},
    {"poisson", SPMV_ERROR_SPEC, "poisson2d:N"},
    {"poisson2dd:3", SPMV_ERROR_SPEC, "\"poisson2dd\""},
    {":5", SPMV_ERROR_SPEC, "no generator"},
    {"poisson2d", SPMV_ERROR_SPEC, "expected poisson2d:N"},
    {"poisson2d:", SPMV_ERROR_SPEC, "expected poisson2d:N with integers from 1"},
    {"poisson2d:0", SPMV_ERROR_SPEC, "\"poisson2d:0\""},
    {"poisson2d:-4", SPMV_ERROR_SPEC, "expected poisson2d:N"},
    {"poisson2d:+4", SPMV_ERROR_SPEC, "expected poisson2d:N"},
    {"poisson2d: 4", SPMV_ERROR_SPEC, "expected poisson2d:N"},
    {"poisson2d:4 ", SPMV_ERROR_SPEC, "expected poisson2d:N"},
    {"poisson2d:4,5", SPMV_ERROR_SPEC, "\"poisson2d:4,5\""},
    {"poisson2d:4x", SPMV_ERROR_SPEC, "\"poisson2d:4x\""},
    {"poisson2d:4.5", SPMV_ERROR_SPEC, "expected poisson2d:N"},
    {"poisson3d:0x10", SPMV_ERROR_SPEC, "expected poisson3d:N"},
    {"poisson3d:1e", SPMV_ERROR_SPEC, "expected poisson3d:N"},
    {"poisson2d:46341", SPMV_ERROR_LIMIT, "46341^2 columns, at most 2147483647"},
    {"poisson3d:1291", SPMV_ERROR_LIMIT, "1291^3 columns"},
    {"poisson2d:4294967296", SPMV_ERROR_LIMIT, "4294967296^2"}, /* N^2 is 0 in 64 bits */
    {"poisson3d:2642246", SPMV_ERROR_LIMIT, "2642246^3"},       /* N^3 is small in 64 bits */
    {"poisson3d:9223372036854775807", SPMV_ERROR_LIMIT, "9223372036854775807^3"},
    {"poisson3d:9223372036854775808", SPMV_ERROR_LIMIT, "beyond 64 bits"},
    {"poisson2d:99999999999999999999999", SPMV_ERROR_LIMIT, "beyond 64 bits"},
    {"poisson2d:99999999999999999999999x", SPMV_ERROR_SPEC, "expected poisson2d:N"},
    {"diffusion2d:", SPMV_ERROR_SPEC, "expected diffusion2d:N,CONTRAST[,ANISO] with an integer N from 1"},
    {"diffusion2d:5", SPMV_ERROR_SPEC, "expected diffusion2d:N,CONTRAST[,ANISO]"},
    {"diffusion2d:5,", SPMV_ERROR_SPEC, "diffusion2d:N,CONTRAST[,ANISO]"},
    {"diffusion2d:0,10", SPMV_ERROR_SPEC, "\"diffusion2d:0,10\""},
    {"diffusion2d:2.5,10", SPMV_ERROR_SPEC, "diffusion2d:N,CONTRAST[,ANISO]"},
    {"diffusion2d:5,1e", SPMV_ERROR_SPEC, "diffusion2d:N,CONTRAST[,ANISO]"},
    {"diffusion2d:5,-1", SPMV_ERROR_SPEC, "diffusion2d:N,CONTRAST[,ANISO]"},
    {"diffusion2d:5,0.99", SPMV_ERROR_SPEC, "with a CONTRAST from 1 and an ANISO above 0"},
    {"diffusion2d:5,10,0", SPMV_ERROR_SPEC, "an ANISO above 0"},
    {"diffusion2d:5,10,", SPMV_ERROR_SPEC, "diffusion2d:N,CONTRAST[,ANISO]"},
    {"diffusion2d:5,10,1,1", SPMV_ERROR_SPEC, "diffusion2d:N,CONTRAST[,ANISO]"},
    {"diffusion3d:5,0.5", SPMV_ERROR_SPEC, "expected diffusion3d:N,CONTRAST[,ANISO] with a CONTRAST from 1"},
    {"diffusion2d:46341,10", SPMV_ERROR_LIMIT, "46341^2 columns, at most 2147483647"},
    {"diffusion3d:1291,10", SPMV_ERROR_LIMIT, "\"diffusion3d:1291,10\": 1291^3 columns"},
    {"diffusion3d:2642246,10", SPMV_ERROR_LIMIT, "2642246^3"}, /* N^3 is small in 64 bits */
    {"diffusion2d:9223372036854775808,10", SPMV_ERROR_LIMIT, "beyond 64 bits"},
    {"convdiff2d:5", SPMV_ERROR_SPEC, "expected convdiff2d:N,PECLET with an integer N from 1 and a decimal PECLET"},
    {"convdiff2d:0,1", SPMV_ERROR_SPEC, "convdiff2d:N,PECLET"},
    {"convdiff2d:5,-1", SPMV_ERROR_SPEC, "convdiff2d:N,PECLET"},
    {"convdiff2d:5,1,1", SPMV_ERROR_SPEC, "convdiff2d:N,PECLET"},
    {"convdiff3d:5,nan", SPMV_ERROR_SPEC, "expected convdiff3d:N,PECLET"},
    {"convdiff2d:46341,1", SPMV_ERROR_LIMIT, "46341^2 columns"},
    {"convdiff3d:1291,1", SPMV_ERROR_LIMIT, "1291^3 columns"},
    {"convdiff3d:9223372036854775807,1", SPMV_ERROR_LIMIT, "9223372036854775807^3"},
    {"stencil27:0", SPMV_ERROR_SPEC, "expected stencil27:N with integers from 1"},
    {"stencil27:1291", SPMV_ERROR_LIMIT, "1291^3 columns, at most 2147483647"},
    {"stencil27:2642246", SPMV_ERROR_LIMIT, "2642246^3"},
    {"interpolation3d:5", SPMV_ERROR_SPEC, "expected interpolation3d:N,K with integers from 1"},
    {"interpolation3d:1291,2", SPMV_ERROR_LIMIT, "1291^3"},
    {"elasticity2d:1", SPMV_ERROR_SPEC, "expected elasticity2d:N[,NU] with an integer N from 2"},
    {"elasticity3d:5,0.5", SPMV_ERROR_SPEC, "NU below 0.5"},
    {"elasticity3d:895", SPMV_ERROR_LIMIT, "2150752125 columns"},
    {"rigid3d:5,0.1", SPMV_ERROR_SPEC, "expected rigid3d:N with an integer N from 2"},
    {"diagonal:2147483648", SPMV_ERROR_LIMIT, "2147483648 columns, at most 2147483647"},
    {"diagonal:1,2", SPMV_ERROR_SPEC, "expected diagonal:ROWS"},
    {"banded:5", SPMV_ERROR_SPEC, "expected banded:ROWS,HALF with integers, ROWS from 1 and HALF from 0"},
    {"banded:0,0", SPMV_ERROR_SPEC, "banded:ROWS,HALF"},
    {"banded:5,-1", SPMV_ERROR_SPEC, "banded:ROWS,HALF"},
    {"banded:5,1.5", SPMV_ERROR_SPEC, "banded:ROWS,HALF"},
    {"banded:2147483647,2147483647", SPMV_ERROR_LIMIT, "size in bytes exceeds 64 bits"},
    {"dense:5,2147483648", SPMV_ERROR_LIMIT, "2147483648 columns"},
    {"dense:9223372036854775807,2147483647", SPMV_ERROR_LIMIT, "\"dense:9223372036854775807,2147483647\": its size"},
    {"dense:9223372036854775808,1", SPMV_ERROR_LIMIT, "a number is beyond 64 bits"},
    {"dense:9000000000000000000,1", SPMV_ERROR_LIMIT, "its size in bytes exceeds 64 bits"},
    {"dense:100000000000,1000000", SPMV_ERROR_MEMORY, "\"dense:100000000000,1000000\""},
    {"arrow:", SPMV_ERROR_SPEC, "expected arrow:ROWS[,LEN[,OTHERS]] with integers from 1"},
    {"arrow:5,", SPMV_ERROR_SPEC, "arrow:ROWS[,LEN[,OTHERS]]"},
    {"arrow:5,2,2,2", SPMV_ERROR_SPEC, "arrow:ROWS[,LEN[,OTHERS]]"},
    {"arrow:5,6", SPMV_ERROR_SPEC, "with LEN up to ROWS"},
    {"arrow:5,4,5", SPMV_ERROR_SPEC, "OTHERS from 2 to ROWS - 1"},
    {"arrow:5,5,6", SPMV_ERROR_SPEC, "to ROWS if LEN is ROWS"},
    {"arrow:5,5,1", SPMV_ERROR_SPEC, "OTHERS from 2"},
    {"arrow:2147483648", SPMV_ERROR_LIMIT, "2147483648 columns"},
    {"uniform:5,5", SPMV_ERROR_SPEC, "expected uniform:ROWS,COLS,MEAN with integers from 1 and a decimal MEAN"},
    {"uniform:5,5,", SPMV_ERROR_SPEC, "uniform:ROWS,COLS,MEAN"},
    {"uniform:5,5,.5", SPMV_ERROR_SPEC, "uniform:ROWS,COLS,MEAN"},
    {"uniform:5,5,2.", SPMV_ERROR_SPEC, "uniform:ROWS,COLS,MEAN"},
    {"uniform:5,5,-1", SPMV_ERROR_SPEC, "uniform:ROWS,COLS,MEAN"},
    {"uniform:5,5,1e", SPMV_ERROR_SPEC, "uniform:ROWS,COLS,MEAN"},
    {"uniform:5,5,nan", SPMV_ERROR_SPEC, "uniform:ROWS,COLS,MEAN"},
    /* 16 digits */
    {"uniform:5,5,1.000000000000000", SPMV_ERROR_SPEC, "uniform:ROWS,COLS,MEAN"},
    {"uniform:5.5,5,1", SPMV_ERROR_SPEC, "uniform:ROWS,COLS,MEAN"},
    {"uniform:5,5,5.01", SPMV_ERROR_SPEC, "with a MEAN up to COLS"},
    {"uniform:5,2147483648,1", SPMV_ERROR_LIMIT, "2147483648 columns"},
    {"uniform:9000000000000000000,5,1", SPMV_ERROR_LIMIT, "its size in bytes exceeds 64 bits"},
    {"longrows:2,5,6", SPMV_ERROR_SPEC, "with a LEN up to COLS"},
    {"longrows:2,2147483648,6", SPMV_ERROR_LIMIT, "2147483648 columns"},
    {"longrows:9000000000000,2147483647,2147483647", SPMV_ERROR_LIMIT, "its size in bytes exceeds 64 bits"},
    {"empty:5", SPMV_ERROR_SPEC, "expected empty:ROWS,SHARE[,MEAN]"},
    {"empty:5,1.01", SPMV_ERROR_SPEC, "with a SHARE from 0 to 1"},
    {"empty:5,0.5,0.99", SPMV_ERROR_SPEC, "a MEAN from 1 to ROWS"},
    {"empty:5,0.5,5.01", SPMV_ERROR_SPEC, "a MEAN from 1 to ROWS"},
    {"empty:2147483648,0.5", SPMV_ERROR_LIMIT, "2147483648 columns"},
    {"powerlaw:100,5,2", SPMV_ERROR_SPEC, "expected powerlaw:ROWS,MEAN,ALPHA,MAX"},
    {"powerlaw:1,1,2,1", SPMV_ERROR_SPEC, "with ROWS from 2"},
    {"powerlaw:100,5,2,101", SPMV_ERROR_SPEC, "a MAX up to ROWS"},
    {"powerlaw:100,5,10.1,50", SPMV_ERROR_SPEC, "an ALPHA up to 10"},
    {"powerlaw:100,0.4,2,50", SPMV_ERROR_SPEC, "with a MEAN from 0.5 to MAX"},
    {"powerlaw:100,10,0,50", SPMV_ERROR_SPEC, "with a MEAN from 25.3 to MAX"},
    {"powerlaw:100,50.1,2,50", SPMV_ERROR_SPEC, "to MAX"},
    {"powerlaw:2147483648,5,2,50", SPMV_ERROR_LIMIT, "2147483648 columns"},
    {"rmat:0,1", SPMV_ERROR_SPEC, "expected rmat:SCALE,EDGES"},
    {"rmat:31,1", SPMV_ERROR_LIMIT, "2^31 columns, at most 2^30"},
    {"rmat:30,9000000000000000000", SPMV_ERROR_LIMIT, "its size in bytes exceeds 64 bits"},
    {"rmat:30,1000000", SPMV_ERROR_MEMORY, "\"rmat:30,1000000\""},
    {"fem:5,1", SPMV_ERROR_SPEC, "expected fem:NODES,BLOCK,NEIGHBOURS"},
    {"fem:5,1,0.5", SPMV_ERROR_SPEC, "with NEIGHBOURS from 1"},
    {"fem:5,1,5.5", SPMV_ERROR_SPEC, "to NODES"},
    {"fem:1073741824,2,5", SPMV_ERROR_LIMIT, "2147483648 columns"},
    {"fem:9223372036854775807,2,5", SPMV_ERROR_LIMIT, "columns"},
    {"twin:", SPMV_ERROR_SPEC, "unknown twin \"\"; there are: mc2depi, roadNet-TX"},
    {"twin:nothing", SPMV_ERROR_SPEC, "kron_g500-logn18, delaunay_n22"},
    {"twin:LDOOR", SPMV_ERROR_SPEC, "unknown twin \"LDOOR\"; did you mean ldoor? There are: "},
    {"twin:ldoor,10", SPMV_ERROR_SPEC, "unknown twin"},
    {"twin:rows=10", SPMV_ERROR_SPEC, "rows= and nnz= are required"},
    {"twin:nnz=10", SPMV_ERROR_SPEC, "rows= and nnz= are required"},
    {"twin:rows=10,nnz=20,colour=3", SPMV_ERROR_SPEC, "\"colour=3\" is not one of rows=, cols="},
    {"twin:rows=10,nnz=20,", SPMV_ERROR_SPEC, "\"\" is not one of"},
    {"twin:rows=10,nnz=20,rows=10", SPMV_ERROR_SPEC, "rows is given twice"},
    {"twin:rows=,nnz=20", SPMV_ERROR_SPEC, "\"rows=\" is not a number"},
    {"twin:rows=ten,nnz=20", SPMV_ERROR_SPEC, "\"rows=ten\" is not a number"},
    {"twin:rows=-10,nnz=20", SPMV_ERROR_SPEC, "not a number"},
    {"twin:rows=1e,nnz=20", SPMV_ERROR_SPEC, "not a number"},
    {"twin:rows=.,nnz=20", SPMV_ERROR_SPEC, "not a number"},
    {"twin:rows=1e999,nnz=20", SPMV_ERROR_SPEC, "not a number"},
    {"twin:rows=10,nnz=20,std=1.2.3", SPMV_ERROR_SPEC, "\"std=1.2.3\" is not a number"},
    {"twin:rows=1.5,nnz=20", SPMV_ERROR_SPEC, "rows must be an integer from 1"},
    {"twin:rows=0,nnz=20", SPMV_ERROR_SPEC, "rows must be an integer from 1"},
    {"twin:rows=1e17,nnz=20", SPMV_ERROR_LIMIT, "rows is beyond 2^53"},
    {"twin:rows=1e10,nnz=20", SPMV_ERROR_LIMIT, "10000000000 columns, at most 2147483647"},
    {"twin:rows=10,nnz=101", SPMV_ERROR_SPEC, "101 nonzeros do not fit into 10 x 10"},
    {"twin:rows=10,nnz=50,max=4", SPMV_ERROR_SPEC, "between the mean, 5, and 10"},
    {"twin:rows=10,nnz=50,max=11", SPMV_ERROR_SPEC, "between the mean, 5, and 10"},
    {"twin:rows=10,nnz=50,max=10,std=6", SPMV_ERROR_SPEC, "standard deviations from 1.73205 to 5, not 6"},
    {"twin:rows=1000,nnz=5000,max=1000,std=1", SPMV_ERROR_SPEC, "standard deviations from 31.4"},
    {"twin:rows=10,nnz=50,bw_frac=0.4", SPMV_ERROR_SPEC, "bw_frac must be from 0.5"},
    {"twin:rows=10,nnz=50,bw_frac=1.1", SPMV_ERROR_SPEC, "bw_frac must be from"},
    {"twin:rows=10,nnz=50,avg_neighbours=2", SPMV_ERROR_SPEC, "avg_neighbours must be below 2"},
    {"twin:rows=10,nnz=50,cross_row_similarity=1.01", SPMV_ERROR_SPEC, "cross_row_similarity must be at most 1"},
    {"twin:rows=5000,nnz=100000,max=20,std=1", SPMV_ERROR_SPEC, "standard deviations from 0 to 0, not 1"},
    /* Each figure is possible, but not their combination. */
    {"twin:rows=1000,nnz=1000,max=1,bw_frac=0.5", SPMV_ERROR_SPEC, "bw_frac=0.5 is incompatible"},
    {"twin:rows=1000,nnz=3000,max=3,avg_neighbours=1.9", SPMV_ERROR_SPEC, "avg_neighbours=1.9 is incompatible"},
    {"twin:rows=1000,nnz=10000,bw_frac=0.012,cross_row_similarity=0.1", SPMV_ERROR_SPEC,
     "cross_row_similarity=0.1 is incompatible"},
};

static void refused_specs(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *m;
    for (size_t r = 0; r < sizeof refused / sizeof refused[0]; r++) {
        m = (spmv_matrix *)ctx;
        assert_fails(ctx, spmv_matrix_generate(ctx, refused[r].spec, SPMV_F64, &m), refused[r].status,
                     refused[r].sentence);
        assert_null(m);
    }
    assert_fails(ctx, spmv_matrix_generate(ctx, NULL, SPMV_F64, &m), SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_matrix_generate(ctx, "poisson2d:3", SPMV_I32, &m), SPMV_ERROR_TYPE, "type i32");
}

static void known_specs(void **state)
{
    (void)state;
    assert_int_equal(spmv_spec_known("poisson2d:10"), 1);
    assert_int_equal(spmv_spec_known("twin:ldoor"), 1);
    /* starts like the form of one, though malformed */
    assert_int_equal(spmv_spec_known("poisson3d:"), 1);
    assert_int_equal(spmv_spec_known("poisson2d:-1"), 1);
    assert_int_equal(spmv_spec_known("poisson2d"), 0);
    assert_int_equal(spmv_spec_known("poisson2:5"), 0);
    assert_int_equal(spmv_spec_known("./poisson2d:10"), 0);
    assert_int_equal(spmv_spec_known(""), 0);
    assert_int_equal(spmv_spec_known(NULL), 0);
}

static const struct generator_request *with_arguments(struct generator_request *request, const char *arguments)
{
    request->arguments = arguments;
    return request;
}

/* Parsing of several arguments. */
static void several_arguments(void **state)
{
    static const struct generator g = {.name = "banded", .form = "banded:N,K,B"};
    spmv_context *ctx = *state;
    struct generator_request r = {.self = &g};
    int64_t v[3] = {0};
    assert_ok(ctx, generator_integers(ctx, with_arguments(&r, "12,1,9223372036854775807"), 3, v));
    assert_true(v[0] == 12 && v[1] == 1 && v[2] == INT64_MAX);
    assert_fails(ctx, generator_integers(ctx, with_arguments(&r, "12,1"), 3, v), SPMV_ERROR_SPEC,
                 "expected banded:N,K,B");
    assert_fails(ctx, generator_integers(ctx, with_arguments(&r, "12,1,"), 3, v), SPMV_ERROR_SPEC, "banded:12,1,");
    assert_fails(ctx, generator_integers(ctx, with_arguments(&r, "12,,3"), 3, v), SPMV_ERROR_SPEC, "banded:12,,3");
    assert_fails(ctx, generator_integers(ctx, with_arguments(&r, "12,1,3,4"), 3, v), SPMV_ERROR_SPEC,
                 "banded:12,1,3,4");
}

/* The parts of a matrix, one after the other, are the matrix. */
static void check_parts(spmv_context *ctx, const char *spec, int parts)
{
    spmv_matrix *whole = NULL;
    spmv_csr a;
    int64_t row = 0;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &whole));
    spmv_matrix_view(whole, &a);
    const int64_t *row_ptr = a.row_ptr;
    for (int i = 0; i < parts; i++) {
        spmv_generate_options options;
        spmv_matrix *part = NULL;
        spmv_csr b;
        spmv_generate_options_init(&options, sizeof options);
        options.part = i;
        options.parts = parts;
        assert_ok(ctx, spmv_matrix_generate_within(ctx, spec, &options, &part));
        spmv_matrix_view(part, &b);
        assert_int_equal(b.cols, a.cols);
        assert_true(row + b.rows <= a.rows);
        const int64_t *own = b.row_ptr, from = row_ptr[row];
        for (int64_t k = 0; k <= b.rows; k++)
            assert_int_equal(own[k], row_ptr[row + k] - from);
        if (b.nnz > 0) {
            assert_memory_equal(b.col, a.col + from, (size_t)b.nnz * sizeof *b.col);
            assert_memory_equal(b.val, (const double *)a.val + from, (size_t)b.nnz * sizeof(double));
        }
        row += b.rows;
        spmv_matrix_destroy(part);
    }
    assert_int_equal(row, a.rows);
    spmv_matrix_destroy(whole);
}

static void parts_are_rows_of_the_whole(void **state)
{
    (void)state;
    static const char *const specs[] = {"poisson2d:7",
                                        "poisson3d:4,values=random",
                                        "stencil27:3",
                                        "diffusion2d:6,10",
                                        "diffusion3d:4,10,values=constant",
                                        "convdiff2d:6,1",
                                        "convdiff3d:4,1",
                                        "diagonal:2",
                                        "banded:40,2,seed=4",
                                        "dense:7,5",
                                        "arrow:30",
                                        "uniform:50,20,3",
                                        "longrows:5,90,40",
                                        "empty:60,0.5",
                                        "powerlaw:80,4,2,30",
                                        "rmat:6,4",
                                        "fem:20,3,5",
                                        "interpolation3d:7,3",
                                        "elasticity2d:5",
                                        "elasticity3d:3,0.1",
                                        "rigid2d:4",
                                        "rigid3d:3",
                                        "twin:rows=50,nnz=300"};
    spmv_context *ctx = support_context();
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (int parts = 1; parts <= 7; parts += 3)
            check_parts(ctx, specs[s], parts);
    /* a generator without a SPEC above would not be tested */
    for (int g = 0; spmv_spec_form(g, NULL) != NULL; g++) {
        const char *form = spmv_spec_form(g, NULL);
        size_t s = 0;
        while (s < sizeof specs / sizeof *specs && strncmp(specs[s], form, strcspn(form, ":") + 1) != 0)
            s++;
        assert_true(s < sizeof specs / sizeof *specs);
    }
    spmv_generate_options options = support_generate_options();
    options.part = options.parts = 2;
    spmv_matrix *none = NULL;
    assert_fails(ctx, spmv_matrix_generate_within(ctx, "diagonal:9", &options, &none), SPMV_ERROR_ARGUMENT,
                 "option part 2: must be 0 or 1");
    spmv_context_destroy(ctx);
}

SUPPORT_MAIN(with_context(poisson_against_stencil), with_context(poisson_by_hand), with_context(row_sums),
             cmocka_unit_test(same_bits_for_any_team), with_context(refused_specs), cmocka_unit_test(known_specs),
             with_context(several_arguments), cmocka_unit_test(parts_are_rows_of_the_whole))
