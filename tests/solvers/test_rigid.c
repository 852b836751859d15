/* Rigid body modes from coordinates (amg_rigid.c): orthonormal, the span of the translations and
 * rotations, 0 in rows of Dirichlet values, the same bits for any number of threads; modes that are
 * left out; refusals; and the option coordinates of preconditioners and solvers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/matrix_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_slow.h"

enum { MODES = 6 };

/* The coordinates of the nodes of elasticity2d:N or elasticity3d:N. */
static double *grid_of(int dimensions, int64_t side)
{
    const int64_t nodes = dimensions == 2 ? side * side : side * side * side;
    double *const to = support_zeros(nodes * dimensions, 8);
    for (int64_t p = 0; p < nodes; p++)
        for (int64_t axis = 0, rest = p; axis < dimensions; axis++, rest /= side)
            to[p * dimensions + axis] = 1 + (double)(rest % side);
    return to;
}

/* Scattered nodes, around a place and of some size. */
static double *nodes_of(int dimensions, int64_t nodes, double place, double size)
{
    double *const to = support_zeros(nodes * dimensions, 8);
    uint64_t random = 5;
    for (int64_t i = 0; i < nodes * dimensions; i++)
        to[i] = place + size * support_uniform(&random);
    return to;
}

static double product(const double *a, int of_a, int j, const double *b, int of_b, int k, int64_t rows)
{
    long double sum = 0;
    for (int64_t i = 0; i < rows; i++)
        sum += (long double)a[i * of_a + j] * b[i * of_b + k];
    return (double)sum;
}

static void check_orthonormal(const double *modes, int count, int64_t rows)
{
    for (int j = 0; j < count; j++)
        for (int k = 0; k < count; k++)
            if (fabs(product(modes, count, j, modes, count, k, rows) - (j == k)) > 1e-13)
                fail_msg("modes %d and %d: their product is %.17g", j, k,
                         product(modes, count, j, modes, count, k, rows));
}

/* The vectors are linear combinations of the modes, up to this share of their length. */
static void check_span(const double *modes, int count, const double *vectors, int others, int64_t rows, double most)
{
    double *const left = support_zeros(rows, 8);
    for (int k = 0; k < others; k++) {
        const double length = sqrt(product(vectors, others, k, vectors, others, k, rows));
        for (int64_t i = 0; i < rows; i++)
            left[i] = vectors[i * others + k];
        for (int j = 0; j < count; j++) {
            const double share = product(vectors, others, k, modes, count, j, rows);
            for (int64_t i = 0; i < rows; i++)
                left[i] -= share * modes[i * count + j];
        }
        if (sqrt(product(left, 1, 0, left, 1, 0, rows)) > most * length)
            fail_msg("vector %d is not a combination of the modes: %g are left", k,
                     sqrt(product(left, 1, 0, left, 1, 0, rows)) / length);
    }
    free(left);
}

/* Translations and rotations as textbooks have them, around the origin. */
static double *textbook(const double *x, int64_t nodes, int d, int block)
{
    const int count = d == 2 ? 3 : MODES;
    double *const to = support_zeros(nodes * block * count, 8);
    for (int64_t p = 0; p < nodes; p++) {
        double *const of = to + p * block * count;
        const double *const at = x + p * d;
        for (int axis = 0; axis < d; axis++)
            of[axis * count + axis] = 1;
        if (d == 2) {
            of[0 * count + 2] = -at[1];
            of[1 * count + 2] = at[0];
            if (block == 3)
                of[2 * count + 2] = 1;
            continue;
        }
        of[1 * count + 3] = -at[2]; /* around x */
        of[2 * count + 3] = at[1];
        of[0 * count + 4] = at[2]; /* around y */
        of[2 * count + 4] = -at[0];
        of[0 * count + 5] = -at[1]; /* around z */
        of[1 * count + 5] = at[0];
        for (int axis = 0; axis < 3 && block == 6; axis++)
            of[(3 + axis) * count + 3 + axis] = 1;
    }
    return to;
}

/* Of every supported kind of node, near and far from the origin, and of any size. */
static void span(void **state)
{
    spmv_context *ctx = *state;
    static const int kinds[][2] = {{2, 2}, {2, 3}, {3, 3}, {3, 6}};
    static const struct {
        double place, size, most;
    } places[] = {{0, 1, 1e-13}, {1e6, 100, 1e-13}, {-3, 1e-5, 1e-13}, {0, 1e160, 1e-13}};
    enum { NODES = SLOW ? 30 : 3000 };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            const int d = kinds[k][0], block = kinds[k][1];
            int count = 0;
            double *const x = nodes_of(d, NODES, places[p].place, places[p].size);
            double *const modes = support_zeros((int64_t)NODES * block * MODES, 8);
            double *const vectors = textbook(x, NODES, d, block);
            assert_ok(ctx, spmv_rigid_body_modes(ctx, NULL, NODES, d, x, block, modes, &count));
            assert_int_equal(count, d == 2 ? 3 : MODES);
            check_orthonormal(modes, count, (int64_t)NODES * block);
            check_span(modes, count, vectors, count, (int64_t)NODES * block, places[p].most);
            support_free(x, modes, vectors);
        }
}

/* Those of the generator span the same space. */
static void generated(void **state)
{
    spmv_context *ctx = *state;
    for (int d = 2; d <= 3; d++) {
        spmv_matrix *matrix = NULL;
        spmv_csr r;
        int count = 0;
        const int side = d == 2 ? 20 : 7;
        assert_ok(ctx, spmv_matrix_generate(ctx, d == 2 ? "rigid2d:20" : "rigid3d:7", SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &r);
        double *const x = grid_of(d, side), *const dense = support_zeros(r.rows * r.cols, 8);
        double *const modes = support_zeros(r.rows * MODES, 8);
        for (int64_t i = 0; i < r.rows; i++)
            for (int64_t k = row_first(&r, i); k < row_first(&r, i + 1); k++)
                dense[i * r.cols + r.col[k]] = ((const double *)r.val)[k];
        assert_ok(ctx, spmv_rigid_body_modes(ctx, NULL, r.rows / d, d, x, d, modes, &count));
        assert_int_equal(count, r.cols);
        check_orthonormal(modes, count, r.rows);
        check_span(modes, count, dense, count, r.rows, 1e-13);
        support_free(x, dense, modes);
        spmv_matrix_destroy(matrix);
    }
}

/* Couplings of these rows and columns become 0 (`zeros`), or are removed. */
static spmv_csr with_boundary(const spmv_csr *a, bool zeros)
{
    int64_t *const ptr = support_zeros(a->rows + 1, 8);
    int32_t *const col = support_zeros(a->nnz, 4);
    double *const val = support_zeros(a->nnz, 8);
    for (int64_t i = 0; i < a->rows; i++) {
        ptr[i + 1] = ptr[i];
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const bool cut = a->col[k] != i && (i % 11 == 3 || a->col[k] % 11 == 3);
            if (cut && !zeros)
                continue;
            col[ptr[i + 1]] = a->col[k];
            val[ptr[i + 1]++] = cut ? 0 : ((const double *)a->val)[k];
        }
    }
    return support_view(a->rows, a->cols, ptr[a->rows], ptr, col, val, SPMV_F64);
}

static void boundary_values(void **state)
{
    spmv_context *ctx = *state;
    enum { SIDE = 12, ROWS = 2 * SIDE * SIDE };
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, "elasticity2d:12", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    double *const x = grid_of(2, SIDE), *const vectors = textbook(x, SIDE * SIDE, 2, 2), modes[2][ROWS * 3];
    for (int64_t i = 0; i < ROWS; i++)
        for (int j = 0; j < 3; j++)
            vectors[i * 3 + j] = i % 11 == 3 ? 0 : vectors[i * 3 + j];
    for (int zeros = 0; zeros < 2; zeros++) {
        int count = 0;
        spmv_csr b = with_boundary(&a, zeros);
        assert_ok(ctx, spmv_rigid_body_modes(ctx, &b, ROWS / 2, 2, x, 2, modes[zeros], &count));
        assert_int_equal(count, 3);
        for (int64_t i = 0; i < ROWS; i++)
            for (int j = 0; j < 3; j++)
                if (i % 11 == 3 && modes[zeros][i * 3 + j] != 0)
                    fail_msg("row %lld has a boundary value, mode %d has %g", (long long)i, j, modes[zeros][i * 3 + j]);
        check_orthonormal(modes[zeros], count, ROWS);
        check_span(modes[zeros], count, vectors, count, ROWS, 1e-13);
        support_free((void *)b.row_ptr, (void *)b.col, (void *)b.val);
    }
    assert_memory_equal(modes[0], modes[1], sizeof modes[0]);
    support_free(x, vectors);
    spmv_matrix_destroy(matrix);
}

static void same_bits(void **state)
{
    (void)state;
    enum { NODES = 9000, ROWS = 3 * NODES };
    double *const x = nodes_of(3, NODES, 7, 3), *modes[3];
    static const int teams[] = {1, 2, 5};
    for (int t = 0; t < 3; t++) {
        int count = 0;
        spmv_context *const ctx = support_context_on(support_backend, teams[t]);
        modes[t] = support_zeros(ROWS * MODES, 8);
        assert_ok(ctx, spmv_rigid_body_modes(ctx, NULL, NODES, 3, x, 3, modes[t], &count));
        assert_memory_equal(modes[t], modes[0], (size_t)ROWS * MODES * 8);
        spmv_context_destroy(ctx);
    }
    support_free(x, modes[0], modes[1], modes[2]);
}

/* Modes that depend on others are left out, and no others: nodes on a line, in a plane, a thin rod in
 * any direction, few nodes, and a matrix of boundary values only. */
static void dependent(void **state)
{
    spmv_context *ctx = *state;
    enum { NODES = 40 };
    static const double direction[] = {1, -0.3, 0.7};
    static const struct {
        int d, block;
        double along, across; /* of the nodes */
        int64_t nodes;
        int count;
    } cases[] = {{3, 3, 1, 0, NODES, 5},    {3, 6, 1, 0, NODES, 6}, {2, 2, 1, 0, NODES, 3}, {2, 3, 1, 0, NODES, 3},
                 {3, 3, 1, 1e-4, NODES, 6}, {2, 2, 0, 0, 1, 2},     {2, 3, 0, 0, 1, 3},     {3, 3, 0, 0, 1, 3},
                 {3, 6, 0, 0, 1, 6},        {3, 3, 1, 0, 2, 5},     {3, 3, 1, 1, 3, 6}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double x[NODES * 3], modes[NODES * 6 * MODES];
        const int d = cases[c].d;
        uint64_t random = 11;
        int count = 0;
        for (int64_t i = 0; i < cases[c].nodes * d; i++)
            x[i] =
                10 + cases[c].along * (double)(i / d) * direction[i % d] + cases[c].across * support_uniform(&random);
        assert_ok(ctx, spmv_rigid_body_modes(ctx, NULL, cases[c].nodes, d, x, cases[c].block, modes, &count));
        if (count != cases[c].count)
            fail_msg("case %zu: %d modes, not %d", c, count, cases[c].count);
        check_orthonormal(modes, count, cases[c].nodes * cases[c].block);
    }
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    int count = 9;
    double x[] = {0, 0, 1, 2}, modes[4 * 3];
    assert_ok(ctx, spmv_matrix_generate(ctx, "diagonal:4", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    assert_ok(ctx, spmv_rigid_body_modes(ctx, &a, 2, 2, x, 2, modes, &count));
    assert_int_equal(count, 0);
    spmv_matrix_destroy(matrix);
    assert_ok(ctx, spmv_rigid_body_modes(ctx, NULL, 0, 3, NULL, 6, NULL, &count));
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    double x[] = {0, 1, 2, 5, 4, 4, 1, 7, 3, 2, 0, 0}, modes[12 * 6];
    int count = 0;
    const struct {
        int64_t nodes;
        int d, block;
        spmv_status status;
        const char *sentence;
    } cases[] = {{4, 1, 1, SPMV_ERROR_ARGUMENT, "coordinates of 1 dimensions: must be 2 or 3"},
                 {4, 4, 4, SPMV_ERROR_ARGUMENT, "must be 2 or 3"},
                 {4, 2, 1, SPMV_ERROR_SIZE, "nodes of 1 row with 2 coordinates: a node has 2 displacements, or 3"},
                 {2, 3, 5, SPMV_ERROR_SIZE, "nodes of 5 rows with 3 coordinates: a node has 3 displacements, or 6"},
                 {-1, 3, 3, SPMV_ERROR_LIMIT, "-1 nodes"},
                 {(int64_t)1 << 40, 3, 3, SPMV_ERROR_LIMIT, "nodes of 3 rows"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        assert_fails(ctx,
                     spmv_rigid_body_modes(ctx, NULL, cases[c].nodes, cases[c].d, x, cases[c].block, modes, &count),
                     cases[c].status, cases[c].sentence);
    const double wrong[] = {NAN, INFINITY, -INFINITY};
    for (int w = 0; w < 3; w++) {
        x[7] = wrong[w];
        assert_fails(ctx, spmv_rigid_body_modes(ctx, NULL, 4, 3, x, 3, modes, &count), SPMV_ERROR_NOT_FINITE,
                     "coordinate 1 of node 2 (counted from 0) is");
    }
    for (int i = 0; i < 12; i++)
        x[i] = i % 3;
    assert_fails(ctx, spmv_rigid_body_modes(ctx, NULL, 4, 3, x, 6, modes, &count), SPMV_ERROR_ARGUMENT,
                 "all 4 nodes have the same coordinates");
    x[0] = 0x1p-1070;
    x[1] = x[2] = 0;
    memset(x + 3, 0, 9 * sizeof *x);
    assert_fails(ctx, spmv_rigid_body_modes(ctx, NULL, 4, 3, x, 3, modes, &count), SPMV_ERROR_NOT_FINITE,
                 "scale the coordinates");
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, "diagonal:9", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    assert_fails(ctx, spmv_rigid_body_modes(ctx, &a, 4, 3, x, 3, modes, &count), SPMV_ERROR_SIZE,
                 "4 nodes of 3 rows, the matrix has 9 rows");
    a.type = SPMV_C128;
    assert_fails(ctx, spmv_rigid_body_modes(ctx, &a, 3, 3, x, 3, modes, &count), SPMV_ERROR_UNSUPPORTED,
                 "real matrices, not for c128");
    spmv_matrix_destroy(matrix);
}

/* ------------------------------------------------------------------ the option */

/* Iterations of a solve, with everything that the solver could have borrowed freed before. */
static int64_t iterations(spmv_context *ctx, const spmv_csr *a, const spmv_preconditioner_options *precond,
                          spmv_type type, bool renew)
{
    spmv_solver *solver = NULL;
    spmv_solver_result result[2];
    spmv_solver_options o = support_solver_options();
    spmv_preconditioner_options copy = *precond;
    const int64_t count = precond->nodes * precond->dimensions, n = a->rows;
    double *const x = support_zeros(count, 8), *const b = support_zeros(2 * n, 8);
    uint64_t random = 3;
    for (int64_t i = 0; i < 2 * n; i++)
        b[i] = support_uniform(&random);
    if (count > 0) {
        memcpy(x, precond->coordinates, (size_t)count * 8);
        copy.coordinates = x;
    }
    o.precond_options = &copy;
    o.type = type;
    o.zero_start = 1;
    o.vectors = 2;
    o.rtol = type == SPMV_F32 ? 1e-4 : 1e-8;
    assert_ok(ctx, spmv_solver_create(ctx, a, &o, &solver));
    memset(x, 0xff, (size_t)count * 8);
    memset(&copy, 0xff, sizeof copy);
    double *const twice = support_zeros(a->nnz, 8);
    for (int64_t k = 0; k < a->nnz; k++)
        twice[k] = 2 * ((const double *)a->val)[k];
    void *const values = support_upload(ctx, twice, a->nnz * 8);
    void *const there = support_upload_as(ctx, type, b, 2 * n, 0), *const y = support_upload_as(ctx, type, b, 2 * n, 0);
    if (renew)
        assert_ok(ctx, spmv_solver_update_values(solver, values));
    assert_ok(ctx, spmv_solver_solve(solver, there, y, result, sizeof *result));
    assert_string_equal(result[0].precond, "amg");
    spmv_solver_destroy(solver);
    support_free_in(ctx, values, there, y);
    support_free(twice, x, b);
    return result[0].iterations;
}

/* As many iterations as with the modes as near_null; with new values too. */
static void solvers(void **state)
{
    spmv_context *ctx = *state;
    for (int d = 2; d <= (SLOW ? 2 : 3); d++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        int count = 0;
        const int side = SLOW ? 8 : d == 2 ? 24 : 8;
        const char *const spec = SLOW ? "elasticity2d:8" : d == 2 ? "elasticity2d:24" : "elasticity3d:8";
        assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        double *const x = grid_of(d, side), *const modes = support_zeros(a.rows * MODES, 8);
        assert_ok(ctx, spmv_rigid_body_modes(ctx, &a, a.rows / d, d, x, d, modes, &count));
        void *const there = support_upload(ctx, modes, a.rows * count * 8);
        spmv_preconditioner_options given = support_preconditioner_options(), of = given;
        given.near_null = there;
        given.near_nulls = count;
        given.near_null_type = SPMV_F64;
        given.block = d;
        of.coordinates = x;
        of.nodes = a.rows / d;
        of.dimensions = d;
        const int64_t expected = iterations(ctx, &a, &given, SPMV_F64, false);
        assert_in_range(expected, 1, 14);
        assert_int_equal(iterations(ctx, &a, &of, SPMV_F64, false), expected);
        assert_int_equal(iterations(ctx, &a, &of, SPMV_F64, true), expected);
        of.block = d;
        of.update_values = 1;
        assert_int_equal(iterations(ctx, &a, &of, SPMV_F64, true), expected);
        support_free_in(ctx, there);
        support_free(x, modes);
        spmv_matrix_destroy(matrix);
    }
}

/* A preconditioner has the coordinates no longer than the call; with update_values it keeps the modes. */
static void preconditioners(void **state)
{
    spmv_context *ctx = *state;
    enum { SIDE = SLOW ? 8 : 16, ROWS = 2 * SIDE * SIDE };
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_preconditioner_info info;
    double r[ROWS], z[4][ROWS];
    int64_t bytes = 0;
    assert_ok(ctx, spmv_matrix_generate(ctx, SLOW ? "elasticity2d:8" : "elasticity2d:16", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    double *const twice = support_zeros(a.nnz, 8);
    for (int64_t k = 0; k < a.nnz; k++)
        twice[k] = 2 * ((const double *)a.val)[k];
    for (int i = 0; i < ROWS; i++)
        r[i] = i % 5 - 2;
    void *const once = support_upload(ctx, a.val, a.nnz * 8), *const changed = support_upload(ctx, twice, a.nnz * 8);
    void *const there = support_upload(ctx, r, sizeof r), *const to = support_upload(ctx, r, sizeof r);
    for (int c = 0; c < 3; c++) {
        spmv_preconditioner *m = NULL;
        spmv_preconditioner_options o = support_preconditioner_options();
        double *const x = grid_of(2, SIDE);
        o.coordinates = x;
        o.nodes = ROWS / 2;
        o.dimensions = 2;
        o.update_values = c > 0;
        assert_ok(ctx, spmv_preconditioner_create(ctx, c == 1 ? "auto" : "amg", &a, &o, &m));
        memset(x, 0xff, ROWS * 8);
        free(x);
        if (c == 2) {
            assert_ok(ctx, spmv_preconditioner_update_values(m, changed));
            assert_ok(ctx, spmv_preconditioner_update_values(m, once));
        }
        assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
        assert_string_equal(info.name, "amg");
        assert_non_null(strstr(info.layout, "nodes of 2 rows; 3 near-null vectors; "));
        if (c == 1)
            bytes = info.bytes;
        if (c == 2)
            assert_in_range(info.bytes, bytes, bytes + bytes / 2); /* counted too after new values */
        assert_ok(ctx, spmv_preconditioner_apply(m, there, to));
        assert_ok(ctx, spmv_download(ctx, to, z[c], sizeof r));
        assert_memory_equal(z[c], z[0], sizeof r);
        spmv_preconditioner_destroy(m);
    }
    spmv_preconditioner_options o = support_preconditioner_options();
    spmv_preconditioner *m = NULL;
    double *const x = grid_of(2, SIDE);
    const struct {
        const char *name;
        int64_t nodes;
        int dimensions, block;
        bool given, near_null;
        spmv_status status;
        const char *sentence;
    } cases[] = {
        {"amg", ROWS / 2, 2, 3, true, false, SPMV_ERROR_SIZE, "rows belong to a node, block is 3"},
        {"amg", ROWS / 2 - 1, 2, 0, true, false, SPMV_ERROR_SIZE, "rows of the matrix are not a multiple"},
        {"amg", ROWS / 4, 2, 0, true, false, SPMV_ERROR_SIZE, "nodes of 4 rows with 2 coordinates"},
        {"auto", ROWS / 2, 3, 0, true, false, SPMV_ERROR_SIZE, "nodes of 2 rows with 3 coordinates"},
        {"amg", ROWS / 2, 0, 0, true, false, SPMV_ERROR_ARGUMENT, "coordinates of 0 dimensions: must be 2 or 3"},
        {"amg", 0, 2, 0, true, false, SPMV_ERROR_ARGUMENT, "nodes is 0, coordinates is an array"},
        {"amg", ROWS / 2, 2, 0, false, false, SPMV_ERROR_ARGUMENT, "coordinates is NULL"},
        {"auto", ROWS / 2, 2, 0, true, true, SPMV_ERROR_ARGUMENT, "near_null and coordinates are both given"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        o.coordinates = cases[c].given ? x : NULL;
        o.nodes = cases[c].nodes;
        o.dimensions = cases[c].dimensions;
        o.block = cases[c].block;
        o.near_null = cases[c].near_null ? there : NULL;
        o.near_nulls = cases[c].near_null;
        assert_fails(ctx, spmv_preconditioner_create(ctx, cases[c].name, &a, &o, &m), cases[c].status,
                     cases[c].sentence);
        assert_null(m);
        spmv_solver_options s = support_solver_options();
        spmv_solver *solver = NULL;
        s.precond = cases[c].name;
        s.precond_options = &o;
        assert_fails(ctx, spmv_solver_create(ctx, &a, &s, &solver), cases[c].status, cases[c].sentence);
        assert_null(solver);
        assert_ok(ctx, spmv_preconditioner_create(ctx, "jacobi", &a, &o, &m)); /* they are of amg */
        spmv_preconditioner_destroy(m);
        m = NULL;
    }
    support_free_in(ctx, once, changed, there, to);
    support_free(twice, x);
    spmv_matrix_destroy(matrix);
}

SUPPORT_MAIN(with_context(span), with_context(generated), with_context(boundary_values), cmocka_unit_test(same_bits),
             with_context(dependent), with_context(refusals), with_context(solvers), with_context(preconditioners))
