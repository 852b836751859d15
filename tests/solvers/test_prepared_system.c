/* The preparation of square systems: equilibration, the matching of rows and columns, the order,
 * and the system C y = c that they give.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "formats/matrix_internal.h"
#include "solvers/prepare/prepared_system.h"
#include "tests/support/support_dense.h"
#include "tests/support/support_slow.h"

/* --------------------------------------------------------------- magnitudes */

/* The nonzeros of a row-major matrix by their logarithms. */
static struct magnitudes magnitudes_of(int64_t n, const double *dense)
{
    struct magnitudes m = {.rows = n, .ptr = support_zeros(n + 1, 8)};
    m.col = support_zeros(n * n, 4);
    m.log2 = support_zeros(n * n, 8);
    for (int64_t i = 0; i < n; i++) {
        m.ptr[i + 1] = m.ptr[i];
        for (int64_t j = 0; j < n; j++)
            if (dense[i * n + j] != 0) {
                m.col[m.ptr[i + 1]] = (int32_t)j;
                m.log2[m.ptr[i + 1]++] = log2(fabs(dense[i * n + j]));
            }
    }
    return m;
}

static void release(struct magnitudes *m)
{
    support_free(m->ptr, m->col, m->log2);
}

/* `share` of the cells are nonzero, from 2^-spread to 2^spread. */
static double *random_dense(int64_t n, double share, int spread, uint64_t seed)
{
    double *const dense = support_zeros(n * n, sizeof *dense);
    for (int64_t k = 0; k < n * n; k++)
        if (fabs(support_uniform(&seed)) < share)
            dense[k] = copysign(exp2(spread * support_uniform(&seed)), support_uniform(&seed));
    return dense;
}

/* The same with a nonzero at (i, (5 i + 3) % n) in each row i; n is no multiple of 5. */
static double *random_regular(int64_t n, double share, int spread, uint64_t seed)
{
    double *const dense = random_dense(n, share, spread, seed);
    for (int64_t i = 0; i < n; i++)
        dense[i * n + (5 * i + 3) % n] += exp2(spread * support_uniform(&seed));
    return dense;
}

static void equilibration(void **state)
{
    spmv_context *ctx = *state;
    for (int n = 1; n <= 81; n += 16) {
        double *const dense = random_regular(n, 0.2, 300, (uint64_t)n);
        struct magnitudes m = magnitudes_of(n, dense);
        double row[81], col[81], in_row[81], in_col[81];
        assert_ok(ctx, prepare_equilibrate(ctx, &m, NULL, row, col));
        for (int i = 0; i < n; i++)
            in_row[i] = in_col[i] = -INFINITY;
        for (int i = 0; i < n; i++)
            for (int64_t k = m.ptr[i]; k < m.ptr[i + 1]; k++) {
                const double scaled = m.log2[k] + row[i] + col[m.col[k]];
                in_row[i] = fmax(in_row[i], scaled);
                in_col[m.col[k]] = fmax(in_col[m.col[k]], scaled);
            }
        for (int i = 0; i < n; i++)
            if (!(fabs(in_row[i]) < 0.2 && fabs(in_col[i]) < 0.2))
                fail_msg("n = %d: the largest of row %d is 2^%g, of its column 2^%g", n, i, in_row[i], in_col[i]);
        release(&m);
        free(dense);
    }
}

/* ----------------------------------------------------------------- matching */

/* Whether the row can be matched, by moving others (H. W. Kuhn's augmenting paths). */
static bool can_match(int64_t n, const double *dense, int64_t row, int64_t *row_of, bool *seen)
{
    for (int64_t j = 0; j < n; j++) {
        if (dense[row * n + j] == 0 || seen[j])
            continue;
        seen[j] = true;
        if (row_of[j] < 0 || can_match(n, dense, row_of[j], row_of, seen)) {
            row_of[j] = row;
            return true;
        }
    }
    return false;
}

static int64_t structural_rank(int64_t n, const double *dense)
{
    int64_t *const row_of = support_zeros(n, sizeof *row_of), rank = 0;
    bool *const seen = support_zeros(n, sizeof *seen);
    for (int64_t j = 0; j < n; j++)
        row_of[j] = -1;
    for (int64_t i = 0; i < n; i++) {
        memset(seen, 0, (size_t)n * sizeof *seen);
        rank += can_match(n, dense, i, row_of, seen);
    }
    support_free(row_of, seen);
    return rank;
}

/* The matching is one of nonzeros, as large as possible. If it is complete, its scale factors show
 * that no other has a larger product: matched entries are 1 and no entry is above. Returns the
 * rank. */
static int64_t check_matching(spmv_context *ctx, int64_t n, const double *dense)
{
    struct magnitudes m = magnitudes_of(n, dense);
    int32_t *const row_of = support_zeros(n, sizeof *row_of);
    double *const row = support_zeros(n, sizeof *row), *const col = support_zeros(n, sizeof *col);
    bool *const used = support_zeros(n, sizeof *used);
    int64_t rank = -1, matched = 0;
    assert_ok(ctx, prepare_match(ctx, &m, row_of, &rank, row, col));
    for (int64_t j = 0; j < n; j++)
        if (row_of[j] >= 0) {
            assert_true(row_of[j] < n && !used[row_of[j]] && dense[row_of[j] * n + j] != 0);
            used[row_of[j]] = true;
            matched++;
        }
    assert_true(matched == rank && rank == structural_rank(n, dense));
    for (int64_t i = 0; i < n && rank == n; i++)
        for (int64_t k = m.ptr[i]; k < m.ptr[i + 1]; k++) {
            const double scaled = m.log2[k] + row[i] + col[m.col[k]];
            if (!(scaled <= 1e-9) || (row_of[m.col[k]] == i && !(scaled >= -1e-9)))
                fail_msg("n = %lld: entry (%lld, %d) is 2^%g after scaling", (long long)n, (long long)i, m.col[k],
                         scaled);
        }
    support_free(row_of, row, col, used);
    release(&m);
    return rank;
}

static void matching(void **state)
{
    spmv_context *ctx = *state;
    int64_t deficient = 0, complete = 0;
    for (int n = 0; n <= 12; n++)
        for (uint64_t seed = 0; seed < 60; seed++) {
            double *const dense = random_dense(n, (double)(seed % 6 + 1) / 7, (int)(seed % 3) * 8, seed * 100 + n);
            const int64_t rank = check_matching(ctx, n, dense);
            deficient += rank < n;
            complete += rank == n;
            free(dense);
        }
    assert_true(deficient > 100 && complete > 100);
    for (int n = 51; n <= 201; n += 150)
        for (int spread = 0; spread <= 60; spread += 20) {
            double *const dense = random_regular(n, 0.03, spread, (uint64_t)spread);
            assert_true(check_matching(ctx, n, dense) == n);
            for (int i = 0; i < n; i++) /* rows 3, 13, 23, ... have one column */
                for (int j = 0; j < n && i % 10 == 3; j++)
                    dense[i * n + j] = j == 7;
            assert_true(check_matching(ctx, n, dense) < n);
            free(dense);
        }
}

/* -------------------------------------------------------------------- order */

/* The order is a permutation. Of a shuffled grid of 10 x k points it has the profile of one that
 * follows the grid; parts that are not connected stay together. */
static void order(void **state)
{
    spmv_context *ctx = *state;
    enum { SHORT = 10, LONG = 40, GRID = SHORT * LONG, N = 2 * GRID + 3 };
    static int32_t shuffled[N], row_of[N], found[N], place[N];
    uint64_t seed = 1;
    for (int i = 0; i < N; i++) {
        const int j = (int)(support_random(&seed) % (uint64_t)(i + 1));
        shuffled[i] = shuffled[j];
        shuffled[j] = i;
        row_of[i] = (i + 5) % N;
    }
    /* two grids and three rows on their own; only the upper triangle; row shuffled[i] of B is row
     * row_of[shuffled[i]] of A */
    double *const dense = support_zeros((int64_t)N * N, sizeof *dense);
    for (int i = 0; i < 2 * GRID; i++) {
        const int at = i % GRID;
        double *const row = dense + (int64_t)row_of[shuffled[i]] * N;
        row[shuffled[i]] = 1;
        if (at % SHORT < SHORT - 1)
            row[shuffled[i + 1]] = 1;
        if (at + SHORT < GRID)
            row[shuffled[i + SHORT]] = 1;
    }
    struct magnitudes m = magnitudes_of(N, dense);
    assert_ok(ctx, prepare_order(ctx, &m, row_of, found));
    for (int i = 0; i < N; i++)
        place[i] = -1;
    for (int k = 0; k < N; k++) {
        assert_true(found[k] >= 0 && found[k] < N && place[found[k]] < 0);
        place[found[k]] = k;
    }
    int widest = 0;
    for (int i = 0; i < N; i++)
        for (int64_t k = m.ptr[row_of[i]]; k < m.ptr[row_of[i] + 1]; k++)
            widest = abs(place[i] - place[m.col[k]]) > widest ? abs(place[i] - place[m.col[k]]) : widest;
    assert_true(widest >= SHORT && widest <= 2 * SHORT);
    release(&m);
    free(dense);
}

/* ------------------------------------------------------------------- system */

/* How a matrix is given. */
struct form {
    spmv_type values, vectors;
    bool there;    /* in the context's memory */
    bool repeated; /* rows backwards, each entry as two halves */
};

/* A matrix in this form, from a row-major one. */
struct given {
    spmv_csr a;
    int64_t *ptr;
    int32_t *col;
    double *wide; /* the values */
    void *val, *arrays[3];
};

static struct given give(spmv_context *ctx, int64_t n, const double *dense, struct form form)
{
    struct given g = {.ptr = support_zeros(n + 1, 8), .col = support_zeros(2 * n * n, 4)};
    g.wide = support_zeros(2 * n * n, 8);
    int64_t nnz = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < n; k++) {
            const int64_t j = form.repeated ? n - 1 - k : k;
            for (int part = 0; part < (form.repeated ? 2 : 1) && dense[i * n + j] != 0; part++) {
                g.col[nnz] = (int32_t)j;
                g.wide[nnz++] = form.repeated ? dense[i * n + j] / 2 : dense[i * n + j];
            }
        }
        g.ptr[i + 1] = nnz;
    }
    g.val = support_as(form.values, g.wide, nnz, 0);
    g.a = support_view(n, n, nnz, g.ptr, g.col, g.val, form.values);
    if (form.there) {
        g.arrays[0] = support_upload(ctx, g.ptr, (n + 1) * 8);
        g.arrays[1] = support_upload(ctx, g.col, nnz * 4);
        g.arrays[2] = support_upload(ctx, g.val, nnz * (int64_t)spmv_type_size(form.values));
        g.a.row_ptr = g.arrays[0];
        g.a.col = g.arrays[1];
        g.a.val = g.arrays[2];
        g.a.memory = SPMV_MEMORY_CONTEXT;
    }
    return g;
}

static void take_back(spmv_context *ctx, struct given *g)
{
    for (int i = 0; i < 3; i++)
        spmv_free(ctx, g->arrays[i]);
    support_free(g->ptr, g->col, g->wide, g->val);
}

typedef spmv_status transformation(const struct prepared_system *, const void *, void *);

/* The transformed vector, by way of the context's memory. */
static void transform(spmv_context *ctx, transformation *f, const struct prepared_system *s, spmv_type type, int64_t n,
                      const double *in, double *out)
{
    void *from = support_upload_as(ctx, type, in, n, 0), *to = support_upload_as(ctx, type, in, n, 0);
    assert_ok(ctx, f(s, from, to));
    support_fetch_as(ctx, type, to, n, out);
    support_free_in(ctx, from, to);
}

/* C is P R A S Q with the permutations and factors that the vectors show: entry (k, l) of C is the
 * entry of A at the row from which c_k is taken and the column to which y_l goes, times both
 * factors. */
static void check_system(spmv_context *ctx, const struct prepared_system *s, int64_t n, const double *dense,
                         spmv_type type)
{
    double *const v = support_zeros(n, 8), *const w = support_zeros(n, 8);
    double *const r = support_zeros(n, 8), *const q = support_zeros(n, 8);
    int64_t *const row = support_zeros(n, 8), *const col = support_zeros(n, 8);
    const spmv_csr c = prepared_system_matrix(s);
    for (int side = 0; side < 2; side++) {
        /* odd numbers, so a power of two changes none to another */
        for (int64_t i = 0; i < n; i++)
            v[i] = (double)(2 * i + 1);
        transform(ctx, side == 0 ? prepared_system_rhs : prepared_system_solution, s, type, n, v, w);
        for (int64_t k = 0; k < n; k++) {
            int exponent = 0;
            double odd = frexp(w[k], &exponent);
            while (odd != floor(odd))
                odd *= 2;
            const int64_t from = ((int64_t)odd - 1) / 2;
            assert_true(from >= 0 && from < n && v[from] == odd);
            if (side == 0) {
                row[k] = from;
                r[k] = w[k] / odd;
            } else {
                col[from] = k;
                q[from] = w[k] / odd;
            }
        }
    }
    int64_t entries = 0;
    for (int64_t k = 0; k < n * n; k++)
        entries += dense[k] != 0;
    assert_true(c.rows == n && c.cols == n && c.nnz == entries && c.memory == SPMV_MEMORY_HOST);
    assert_ok(ctx, csr_check(ctx, "C", &c, CSR_SORTED));
    for (int64_t k = 0; k < n; k++)
        for (int64_t e = row_first(&c, k); e < row_first(&c, k + 1); e++) {
            const double of_a = dense[row[k] * n + col[c.col[e]]], of_c = real_at(c.type, c.val, e);
            if (of_a == 0 || of_c != of_a * r[k] * q[c.col[e]])
                fail_msg("C has %g at (%lld, %d), A %g * 2^%g", of_c, (long long)k, c.col[e], of_a,
                         log2(r[k] * q[c.col[e]]));
        }
    support_free(v, w, r, q, row, col);
}

/* The largest entry of C, and the smallest on its diagonal. */
static void sizes_of(const struct prepared_system *s, double *largest, double *diagonal)
{
    const spmv_csr c = prepared_system_matrix(s);
    *largest = 0;
    *diagonal = INFINITY;
    for (int64_t i = 0; i < c.rows; i++) {
        double on = 0;
        for (int64_t k = row_first(&c, i); k < row_first(&c, i + 1); k++) {
            *largest = fmax(*largest, fabs(real_at(c.type, c.val, k)));
            if (c.col[k] == i)
                on = fabs(real_at(c.type, c.val, k));
        }
        *diagonal = fmin(*diagonal, on);
    }
}

static const struct form forms[] = {{SPMV_F64, SPMV_F64, false, false}, {SPMV_F64, SPMV_F64, true, false},
                                    {SPMV_F32, SPMV_F32, false, false}, {SPMV_F32, SPMV_F32, true, true},
                                    {SPMV_F32, SPMV_F64, false, true},  {SPMV_F64, SPMV_F64, true, true}};

/* Every combination of steps, for each form and size. */
static void systems(void **state)
{
    spmv_context *ctx = *state;
    static const int sizes[] = {1, 2, 33, SLOW ? 48 : 121};
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
        for (size_t z = 0; z < sizeof sizes / sizeof sizes[0]; z++)
            for (int off = 0; off < 8; off++) {
                const int n = sizes[z];
                double *const dense = random_regular(n, 0.1, forms[f].values == SPMV_F32 ? 25 : 120, 17 + z);
                for (int k = 0; k < n * n && forms[f].values == SPMV_F32; k++)
                    dense[k] = (float)dense[k];
                struct given g = give(ctx, n, dense, forms[f]);
                const struct prepared_system_options o = {.type = forms[f].vectors,
                                                          .no_equilibration = off & 1,
                                                          .matching = off & 2 ? MATCHING_OFF : MATCHING_AUTO,
                                                          .no_order = off & 4};
                struct prepared_system *s = NULL;
                assert_ok(ctx, prepared_system_create(ctx, &g.a, &o, &s));
                check_system(ctx, s, n, dense, forms[f].vectors);
                double largest = 0, diagonal = 0;
                sizes_of(s, &largest, &diagonal);
                if (!o.no_equilibration)
                    assert_true(largest >= 0.5 && largest <= (off & 2 ? 3 : 2));
                if (!(off & 3))
                    assert_true(diagonal >= (strstr(prepared_system_describe(s), "not matched") ? 4e-4 : 0.5));
                if (!(off & 3) && n > 2)
                    assert_non_null(strstr(prepared_system_describe(s), "rows matched to columns"));
                assert_true((strstr(prepared_system_describe(s), "Cuthill") == NULL) == o.no_order);
                assert_true((strstr(prepared_system_describe(s), "not scaled") != NULL) >= o.no_equilibration);
                prepared_system_destroy(s);
                take_back(ctx, &g);
                free(dense);
            }
}

/* A permuted and badly scaled matrix with a dominant transversal: after preparation it is
 * dominated by its diagonal again. Numbers from 2^-80 to 2^80, and from 2^-900 to 2^900. */
static void recovered(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 60 };
    for (int narrow = 0; narrow < 2; narrow++) {
        const int spread = narrow ? 40 : 450; /* factors are at most 2^63 and 2^511 */
        double *const dense = support_zeros(N * N, sizeof *dense);
        double by_row[N], by_col[N];
        uint64_t seed = 5;
        for (int i = 0; i < N; i++) {
            by_row[i] = spread * support_uniform(&seed);
            by_col[i] = spread * support_uniform(&seed);
        }
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                const bool on = j == (7 * i + 11) % N;
                if (on || fabs(support_uniform(&seed)) < 0.1)
                    dense[i * N + j] = (on ? 1 : 1e-3) * exp2(round(by_row[i]) + round(by_col[j]));
            }
        for (int k = 0; k < N * N; k++)
            dense[k] = narrow ? (float)dense[k] : dense[k];
        struct given g = give(ctx, N, dense, (struct form){narrow ? SPMV_F32 : SPMV_F64, SPMV_TYPE_DEFAULT, 0, 0});
        struct prepared_system *s = NULL;
        assert_ok(ctx, prepared_system_create(ctx, &g.a, NULL, &s));
        check_system(ctx, s, N, dense, narrow ? SPMV_F32 : SPMV_F64);
        const spmv_csr c = prepared_system_matrix(s);
        for (int i = 0; i < N; i++)
            for (int64_t k = row_first(&c, i); k < row_first(&c, i + 1); k++) {
                const double value = real_at(c.type, c.val, k);
                if (!(value <= 2 && (c.col[k] != i || value >= 0.5)))
                    fail_msg("C has %g at (%d, %d): %s", value, i, c.col[k], prepared_system_describe(s));
            }
        prepared_system_destroy(s);
        take_back(ctx, &g);
        free(dense);
    }
}

static void patterns_and_empty(void **state)
{
    spmv_context *ctx = *state;
    const int32_t row_ptr[] = {0, 1, 3, 4}, col[] = {1, 0, 2, 0};
    spmv_csr a = support_csr(3, 3, row_ptr, col, NULL);
    const double ones[] = {0, 1, 0, 1, 0, 1, 1, 0, 0};
    struct prepared_system *s = NULL;
    assert_ok(ctx, prepared_system_create(ctx, &a, NULL, &s));
    check_system(ctx, s, 3, ones, SPMV_F64);
    double largest = 0, diagonal = 0;
    sizes_of(s, &largest, &diagonal);
    assert_true(largest == 1 && diagonal == 1);
    assert_non_null(strstr(prepared_system_describe(s), "not scaled; rows matched to columns (diagonal entries missing "
                                                        "or tiny: 3); reverse Cuthill-McKee order"));
    void *const v = support_upload(ctx, ones, 24);
    assert_fails(ctx, prepared_system_rhs(s, v, v), SPMV_ERROR_ARGUMENT, "same");
    assert_fails(ctx, prepared_system_solution(s, NULL, v), SPMV_ERROR_ARGUMENT, "NULL");
    spmv_free(ctx, v);
    prepared_system_destroy(s);
    a = support_csr(0, 0, row_ptr, NULL, NULL);
    assert_ok(ctx, prepared_system_create(ctx, &a, NULL, &s));
    assert_true(prepared_system_matrix(s).rows == 0 && prepared_system_matrix(s).nnz == 0);
    assert_ok(ctx, prepared_system_rhs(s, NULL, NULL));
    prepared_system_destroy(s);
    prepared_system_destroy(NULL);
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    struct prepared_system *s = NULL;
    const struct prepared_system_options off = {.matching = MATCHING_OFF};
    /* rows 2 and 4 have column 1 only; an entry of 0, and two that cancel, are no entries */
    const int32_t row_ptr[] = {0, 3, 4, 8, 9}, col[] = {0, 2, 3, 0, 0, 1, 3, 3, 0};
    double val[] = {1, 2, 3, 4, 5, 0, 7, -7, 9};
    spmv_csr a = support_csr(4, 4, row_ptr, col, val);
    assert_fails(ctx, prepared_system_create(ctx, &a, NULL, &s), SPMV_ERROR_SINGULAR, "at most 2 of its rows");
    assert_null(s);
    assert_ok(ctx, prepared_system_create(ctx, &a, &off, &s));
    assert_true(prepared_system_matrix(s).nnz == 8);
    val[0] = NAN;
    prepared_system_destroy(s);
    s = NULL;
    assert_fails(ctx, prepared_system_create(ctx, &a, NULL, &s), SPMV_ERROR_NOT_FINITE,
                 "row 0, column 0 (counted from 0) is nan");
    val[0] = 1;
    /* an empty row; with the matching off its factor is 1 */
    const int32_t empty_ptr[] = {0, 2, 2}, empty_col[] = {0, 1};
    const double four[] = {4, 4, 0, 0};
    a = support_csr(2, 2, empty_ptr, empty_col, four);
    assert_fails(ctx, prepared_system_create(ctx, &a, NULL, &s), SPMV_ERROR_SINGULAR, "at most 1 of its rows");
    assert_ok(ctx, prepared_system_create(ctx, &a, &off, &s));
    check_system(ctx, s, 2, four, SPMV_F64);
    prepared_system_destroy(s);
    s = NULL;
    a = support_csr(3, 3, (const int32_t[]){0, 0, 0, 0}, NULL, NULL);
    assert_fails(ctx, prepared_system_create(ctx, &a, NULL, &s), SPMV_ERROR_SINGULAR, "at most 0 of its rows");
    a.cols = 2;
    assert_fails(ctx, prepared_system_create(ctx, &a, NULL, &s), SPMV_ERROR_NOT_SQUARE, "2 columns");
    a = support_csr(2, 2, empty_ptr, empty_col, four);
    a.type = SPMV_C64;
    assert_fails(ctx, prepared_system_create(ctx, &a, NULL, &s), SPMV_ERROR_TYPE, "c64");
    a.type = SPMV_F64;
    const struct prepared_system_options narrow = {.type = SPMV_F32};
    assert_fails(ctx, prepared_system_create(ctx, &a, &narrow, &s), SPMV_ERROR_TYPE, "f32");
    a = support_csr(2, 2, empty_ptr, (const int32_t[]){0, 2}, four);
    assert_fails(ctx, prepared_system_create(ctx, &a, NULL, &s), SPMV_ERROR_SIZE, "column 2");
    assert_null(s);
}

SUPPORT_MAIN(with_context(equilibration), with_context(matching), with_context(order), with_context(systems),
             with_context(recovered), with_context(patterns_and_empty), with_context(refusals))
