/* Preconditioner schur: equal to its definition in dense arithmetic, for each form, block diagonal and triangular,
 * transposed, of K and -K, with and without a second diagonal block; fields found and given; what is refused; iterations
 * of Stokes flow on grids, with minres and gmres, with a mass matrix and without; new values; the same bits for any
 * number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>

#include <spmv/solvers.h>

#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"

/* ----------------------------------------------------------------- Stokes flow */

/* Stokes flow in a square of n x n cells, velocities on faces and pressures in cells (MAC; F. H. Harlow, J. E. Welch, Phys.
 * Fluids 8, 1965), without the pressure of the last cell. Rows of a cell follow each other: u on its right, v above, p. */
struct flow {
    int n;
    double viscosity, convection; /* the latter makes A unsymmetric */
    double stabilisation;         /* -C on the diagonal of pressures */
    double factor;                /* of all entries */
};

struct system {
    spmv_matrix *matrix;
    spmv_csr a;
    int64_t rows, second;
    int32_t *fields;
};

enum { U, V, P, KINDS };

/* The row of an unknown of cell (i, j), -1: there is none. */
static int64_t row_of(const struct flow *f, const int64_t *first, int kind, int i, int j)
{
    const int n = f->n;
    const bool u = i + 1 < n, v = j + 1 < n, p = i + 1 < n || j + 1 < n;
    if (i < 0 || j < 0 || i >= n || j >= n || (kind == U && !u) || (kind == V && !v) || (kind == P && !p))
        return -1;
    return first[j * n + i] + (kind > U && u) + (kind > V && v);
}

struct entries {
    int64_t count, *row;
    int32_t *col;
    double *val, factor;
};

static void put(struct entries *e, int64_t row, int64_t col, double value)
{
    if (row < 0 || col < 0)
        return;
    e->row[e->count] = row;
    e->col[e->count] = (int32_t)col;
    e->val[e->count++] = e->factor * value;
}

/* A velocity at (i, j): 4 neighbours, and the pressures on both sides. Walls along the flow are half a cell away. */
static void put_velocity(struct entries *e, const struct flow *f, const int64_t *first, int kind, int i, int j)
{
    const int64_t row = row_of(f, first, kind, i, j);
    const int along = kind == U ? j : i, h = kind == U;
    const double wall = (along == 0) + (along + 1 == f->n), c = f->convection;
    put(e, row, row, f->viscosity * (4 + wall));
    put(e, row, row_of(f, first, kind, i - 1, j), -f->viscosity - (h ? c : 0));
    put(e, row, row_of(f, first, kind, i + 1, j), -f->viscosity + (h ? c : 0));
    put(e, row, row_of(f, first, kind, i, j - 1), -f->viscosity - (h ? 0 : c));
    put(e, row, row_of(f, first, kind, i, j + 1), -f->viscosity + (h ? 0 : c));
    const int64_t here = row_of(f, first, P, i, j), there = row_of(f, first, P, i + h, j + !h);
    put(e, row, here, -1.0 / f->n);
    put(e, here, row, -1.0 / f->n);
    put(e, row, there, 1.0 / f->n);
    put(e, there, row, 1.0 / f->n);
}

static struct system make_flow(spmv_context *ctx, const struct flow *f)
{
    struct system s = {.rows = 0};
    const int n = f->n;
    struct entries e = {.factor = f->factor};
    int64_t *const first = support_zeros((int64_t)n * n, sizeof *first);
    e.row = support_zeros(27 * (int64_t)n * n, sizeof *e.row);
    e.col = support_zeros(27 * (int64_t)n * n, sizeof *e.col);
    e.val = support_zeros(27 * (int64_t)n * n, sizeof *e.val);
    s.fields = support_zeros(3 * (int64_t)n * n, sizeof *s.fields);
    for (int k = 0; k < n * n; k++) {
        first[k] = s.rows;
        for (int kind = 0; kind < KINDS; kind++)
            if (row_of(f, first, kind, k % n, k / n) >= 0) {
                s.second += kind == P;
                s.fields[s.rows++] = kind == P ? 2 : 1;
            }
    }
    for (int k = 0; k < n * n; k++) {
        put_velocity(&e, f, first, U, k % n, k / n);
        put_velocity(&e, f, first, V, k % n, k / n);
        if (f->stabilisation != 0)
            put(&e, row_of(f, first, P, k % n, k / n), row_of(f, first, P, k % n, k / n), -f->stabilisation);
    }
    assert_ok(ctx, spmv_matrix_from_coo(ctx, s.rows, s.rows, e.count, e.row, e.col, e.val, SPMV_F64, &s.matrix, NULL));
    spmv_matrix_view(s.matrix, &s.a);
    support_free(first, e.row, e.col, e.val);
    return s;
}

static void free_flow(struct system *s)
{
    spmv_matrix_destroy(s->matrix);
    free(s->fields);
}

/* A multiple of the identity of the pressures. */
static spmv_matrix *identity(spmv_context *ctx, int64_t n, double value)
{
    int64_t *const row = support_zeros(n, sizeof *row);
    int32_t *const col = support_zeros(n, sizeof *col);
    double *const val = support_zeros(n, sizeof *val);
    spmv_matrix *matrix = NULL;
    for (int64_t i = 0; i < n; i++) {
        row[i] = i;
        col[i] = (int32_t)i;
        val[i] = value;
    }
    assert_ok(ctx, spmv_matrix_from_coo(ctx, n, n, n, row, col, val, SPMV_F64, &matrix, NULL));
    support_free(row, col, val);
    return matrix;
}

static spmv_preconditioner_options options_of(const char *form, const int32_t *fields, int general)
{
    spmv_preconditioner_options o;
    spmv_preconditioner_options_init(&o, sizeof o);
    o.schur_form = form;
    o.fields = fields;
    o.general = general;
    return o;
}

/* ----------------------------------------------------------------- as defined */

/* The inverse of a dense matrix, by Gauss and Jordan with pivots. */
static double *inverse_of(const double *a, int n)
{
    double *const m = support_zeros((int64_t)2 * n * n, sizeof *m), *const inverse = support_zeros((int64_t)n * n, 8);
    for (int i = 0; i < n; i++) {
        memcpy(m + 2 * n * i, a + n * i, (size_t)n * sizeof *m);
        m[2 * n * i + n + i] = 1;
    }
    for (int k = 0; k < n; k++) {
        int p = k;
        for (int i = k + 1; i < n; i++)
            p = fabs(m[2 * n * i + k]) > fabs(m[2 * n * p + k]) ? i : p;
        assert_true(m[2 * n * p + k] != 0);
        for (int j = 0; j < 2 * n; j++) {
            const double t = m[2 * n * k + j];
            m[2 * n * k + j] = m[2 * n * p + j];
            m[2 * n * p + j] = t;
        }
        for (int j = 2 * n - 1; j >= k; j--)
            m[2 * n * k + j] /= m[2 * n * k + k];
        for (int i = 0; i < n; i++)
            for (int j = 2 * n - 1; i != k && j >= k; j--)
                m[2 * n * i + j] -= m[2 * n * i + k] * m[2 * n * k + j];
    }
    for (int i = 0; i < n; i++)
        memcpy(inverse + n * i, m + 2 * n * i + n, (size_t)n * sizeof *m);
    free(m);
    return inverse;
}

/* c = a b, of n x k and k x m elements */
static double *product(const double *a, const double *b, int n, int k, int m)
{
    double *const c = support_zeros((int64_t)n * m, sizeof *c);
    for (int i = 0; i < n; i++)
        for (int l = 0; l < k; l++)
            for (int j = 0; j < m; j++)
                c[i * m + j] += a[i * k + l] * b[l * m + j];
    return c;
}

/* The block of rows of field i and columns of field j; scale: each row over the diagonal entry. */
static double *block_of(const struct system *s, int i, int j, bool scale, int *rows, int *cols)
{
    int *const place = support_zeros(s->rows, sizeof *place), count[2] = {0, 0};
    for (int64_t r = 0; r < s->rows; r++)
        place[r] = count[s->fields[r] - 1]++;
    double *const block = support_zeros((int64_t)count[i] * count[j], sizeof *block);
    for (int64_t r = 0; r < s->rows; r++) {
        double diagonal = 1;
        for (int64_t k = row_first(&s->a, r); k < row_first(&s->a, r + 1); k++)
            if (scale && s->a.col[k] == r)
                diagonal = precond_value(&s->a, k);
        for (int64_t k = row_first(&s->a, r); k < row_first(&s->a, r + 1); k++)
            if (s->fields[r] == i + 1 && s->fields[s->a.col[k]] == j + 1)
                block[place[r] * count[j] + place[s->a.col[k]]] += precond_value(&s->a, k) / diagonal;
    }
    *rows = count[i];
    *cols = count[j];
    free(place);
    return block;
}

/* S^-1 of a form; NULL of given: value over h^2. */
static double *inverse_schur(const struct system *s, const char *form, double given, int *second)
{
    int n = 0, m = 0;
    double *const k21 = block_of(s, 1, 0, false, &m, &n), *const scaled = block_of(s, 0, 1, true, &n, &m),
                  *const k22 = block_of(s, 1, 1, false, &m, &m), *const dk11 = block_of(s, 0, 0, true, &n, &n);
    double *const g = product(k21, scaled, m, n, m);
    *second = m;
    for (int k = 0; k < m * m; k++)
        g[k] -= k22[k];
    for (int k = 0; k < m * m; k++) {
        const bool on_diagonal = k / m == k % m;
        if (form == NULL)
            g[k] = on_diagonal ? copysign(given, g[0]) : 0;
        else if (strcmp(form, "diagonal") == 0 && !on_diagonal)
            g[k] = 0;
    }
    double *inverse = inverse_of(g, m);
    if (form != NULL && strcmp(form, "commutator") == 0) {
        double *const b = product(dk11, scaled, n, n, m), *const c = product(k21, b, m, n, m),
                      *const d = product(inverse, c, m, m, m), *const e = product(d, inverse, m, m, m);
        support_free(b, c, d, inverse);
        inverse = e;
    }
    support_free(k21, scaled, k22, dk11, g);
    return inverse;
}

/* z = M^-1 r of the definition, and with transposed M^-T r. sign: of the diagonal of A and the Schur complement. */
static void apply_defined(const struct system *s, const double *schur, bool triangle, bool transposed, double sign,
                          const double *r, double *z)
{
    int n = 0, m = 0, at[2] = {0, 0};
    double *const k11 = block_of(s, 0, 0, false, &n, &n), *const k12 = block_of(s, 0, 1, false, &n, &m),
                  *const first = inverse_of(k11, n);
    double *const part[2] = {support_zeros(n, sizeof(double)), support_zeros(m, sizeof(double))},
                  *const out[2] = {support_zeros(n, sizeof(double)), support_zeros(m, sizeof(double))};
    for (int64_t i = 0; i < s->rows; i++)
        part[s->fields[i] - 1][at[s->fields[i] - 1]++] = r[i];
    for (int order = 0; order < 2; order++) {
        const int f = transposed ? order : 1 - order, size = f == 0 ? n : m;
        const double *const inverse = f == 0 ? first : schur;
        for (int i = 0; i < size; i++)
            for (int j = 0; j < size; j++)
                out[f][i] += inverse[transposed ? j * size + i : i * size + j] * part[f][j] *
                             (!triangle ? sign
                              : f == 1  ? -1
                                        : 1);
        for (int i = 0; i < n && triangle && order == 0; i++)
            for (int j = 0; j < m; j++)
                if (transposed)
                    part[1][j] -= k12[i * m + j] * out[0][i];
                else
                    part[0][i] -= k12[i * m + j] * out[1][j];
    }
    at[0] = at[1] = 0;
    for (int64_t i = 0; i < s->rows; i++)
        z[i] = out[s->fields[i] - 1][at[s->fields[i] - 1]++];
    support_free(k11, k12, first, part[0], part[1], out[0], out[1]);
}

/* Of a field, z is `factor` times expected. */
static void check_field(const struct system *s, int field, double factor, const double *z, const double *expected,
                        double bound)
{
    double largest = 0;
    for (int64_t i = 0; i < s->rows; i++)
        largest = fmax(largest, s->fields[i] == field ? fabs(expected[i]) : 0);
    for (int64_t i = 0; i < s->rows; i++)
        if (s->fields[i] == field && !(fabs(z[i] - factor * expected[i]) <= bound * largest * factor))
            fail_msg("row %d of field %d: %.9g, not %.9g", (int)i, field, z[i], factor * expected[i]);
}

static void as_defined(void **state)
{
    spmv_context *const ctx = *state;
    static const char *const forms[] = {"diagonal", "simple", "commutator", NULL};
    enum { N = SLOW ? 3 : 5, FORMS = sizeof forms / sizeof *forms };
    for (int variant = 0; variant < 2 * 2 * 2 * FORMS; variant++) {
        const char *const form = forms[variant % FORMS];
        const int general = variant / FORMS % 2;
        const double sign = variant / FORMS / 2 % 2 ? -1 : 1, stabilisation = variant / FORMS / 4 ? 0.01 : 0;
        if (form != NULL && strcmp(form, "commutator") == 0 && stabilisation != 0)
            continue;
        struct system s = make_flow(ctx, &(struct flow){N, 1, general ? 0.25 : 0, stabilisation, sign});
        spmv_matrix *const mass = identity(ctx, s.second, 0.75);
        spmv_preconditioner_options o = options_of(form, stabilisation != 0 && sign < 0 ? s.fields : NULL, general);
        spmv_csr given;
        spmv_matrix_view(mass, &given);
        o.schur = form == NULL ? &given : NULL;
        spmv_preconditioner *m = NULL;
        assert_ok(ctx, spmv_preconditioner_create(ctx, "schur", &s.a, &o, &m));
        int second = 0;
        double *const schur = inverse_schur(&s, form, 0.75, &second), *const r = support_zeros(s.rows, sizeof *r),
                      *const z = support_zeros(s.rows, sizeof *z), *const expected = support_zeros(s.rows, sizeof *z);
        uint64_t seed = 5;
        for (int64_t i = 0; i < s.rows; i++)
            r[i] = support_uniform(&seed);
        const double bound = 2e-3; /* the commutator has two inverses in f32, of a condition of some 100 */
        apply(ctx, m, r, z);
        apply_defined(&s, schur, general, false, sign, r, expected);
        double factor = 1; /* a power of two, where K is symmetric */
        for (int64_t i = 0; i < s.rows && !general; i++)
            if (s.fields[i] == 2 && fabs(expected[i]) > 0.1 * fabs(r[i]))
                factor = exp2(round(log2(z[i] / expected[i])));
        assert_true(factor >= 1.0 / 64 && factor <= 64);
        check_field(&s, 2, factor, z, expected, bound);
        check_field(&s, 1, 1, z, expected, bound);
        void *const dr = support_upload_as(ctx, SPMV_F64, r, s.rows, 0), *const dz = support_upload_as(ctx, SPMV_F64, r,
                                                                                                       s.rows, 0);
        assert_ok(ctx, spmv_preconditioner_apply_transposed(m, dr, dz));
        support_fetch_as(ctx, SPMV_F64, dz, s.rows, z);
        apply_defined(&s, schur, general, true, sign, r, expected);
        check_field(&s, 1, 1, z, expected, bound);
        check_field(&s, 2, factor, z, expected, bound);
        support_free_in(ctx, dr, dz);
        spmv_preconditioner_destroy(m);
        spmv_matrix_destroy(mass);
        support_free(schur, r, z, expected);
        free_flow(&s);
    }
}

/* ----------------------------------------------------------------- fields */

static void layout_says(spmv_context *ctx, const spmv_preconditioner *m, const char *text)
{
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    assert_string_equal(info.name, "schur");
    if (strstr(info.layout, text) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", info.layout, text);
}

/* The same bits: fields found, given as 1 and 2, as 0 and 1; columns that do not ascend and repeated entries. */
static void fields_found_and_given(void **state)
{
    spmv_context *const ctx = *state;
    struct system s = make_flow(ctx, &(struct flow){SLOW ? 4 : 12, 1, 0, 0, 1});
    int32_t *const zero_based = support_zeros(s.rows, sizeof *zero_based);
    int32_t *const turned = support_zeros(s.a.nnz + s.rows, sizeof *turned);
    int64_t *const offset = support_zeros(s.rows + 1, sizeof *offset);
    double *const val = support_zeros(s.a.nnz + s.rows, sizeof *val);
    double *const r = support_zeros(s.rows, sizeof *r), *const z = support_zeros(s.rows, sizeof *z),
                  *const first = support_zeros(s.rows, sizeof *z);
    uint64_t seed = 9;
    int64_t at = 0;
    for (int64_t i = 0; i < s.rows; i++) {
        zero_based[i] = s.fields[i] - 1;
        r[i] = support_uniform(&seed);
        offset[i] = at;
        for (int64_t k = row_first(&s.a, i + 1) - 1; k >= row_first(&s.a, i); k--) {
            const double value = precond_value(&s.a, k);
            for (int part = 0; part < (s.a.col[k] == i ? 2 : 1); part++) { /* halves, which are exact */
                turned[at] = s.a.col[k];
                val[at++] = s.a.col[k] == i ? value / 2 : value;
            }
        }
    }
    offset[s.rows] = at;
    const spmv_csr unordered = csr_of(s.rows, s.rows, at, offset, turned, val, SPMV_F64, SPMV_MEMORY_HOST);
    for (int k = 0; k < 4; k++) {
        const spmv_preconditioner_options o = options_of(NULL, k == 1 ? s.fields : k == 2 ? zero_based : NULL, 0);
        spmv_preconditioner *m = NULL;
        assert_ok(ctx, spmv_preconditioner_create(ctx, k == 1 ? NULL : "schur", k == 3 ? &unordered : &s.a, &o, &m));
        layout_says(ctx, m, k == 1 || k == 2 ? "as given" : "by the signs of the diagonal");
        apply(ctx, m, r, k == 0 ? first : z);
        if (k > 0)
            assert_memory_equal(z, first, (size_t)s.rows * sizeof *z);
        spmv_preconditioner_destroy(m);
    }
    support_free(zero_based, turned, offset, val, r, z, first);
    free_flow(&s);
}

static void refusals(void **state)
{
    spmv_context *const ctx = *state;
    struct system s = make_flow(ctx, &(struct flow){3, 1, 0, 0, 1}),
                  stabilised = make_flow(ctx, &(struct flow){3, 1, 0, 1, 1});
    spmv_matrix *const small = identity(ctx, 3, 1);
    spmv_csr given, poisson_view;
    spmv_matrix *poisson = NULL;
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_options o = options_of(NULL, NULL, 0);
    const double ones[1] = {1};
    int32_t *const fields = support_zeros(s.rows, sizeof *fields);
    spmv_matrix_view(small, &given);
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:4", SPMV_F64, &poisson));
    spmv_matrix_view(poisson, &poisson_view);
#define REFUSES(a, status, text) assert_fails(ctx, spmv_preconditioner_create(ctx, "schur", a, &o, &m), status, text)
    REFUSES(&poisson_view, SPMV_ERROR_UNSUPPORTED, "every diagonal entry is positive");
    REFUSES(&given, SPMV_ERROR_UNSUPPORTED, "give the field of each row");
    o.schur = &given;
    REFUSES(&s.a, SPMV_ERROR_SIZE, "3 x 3, the second field has 8 rows");
    o.schur_form = "simple";
    REFUSES(&s.a, SPMV_ERROR_ARGUMENT, "both given");
    o = options_of("simpel", NULL, 0);
    REFUSES(&s.a, SPMV_ERROR_ARGUMENT, "simpel");
    o = options_of("commutator", NULL, 0);
    REFUSES(&stabilised.a, SPMV_ERROR_UNSUPPORTED, "commutator");
    o = options_of(NULL, fields, 0);
    REFUSES(&s.a, SPMV_ERROR_ARGUMENT, "the rows have one field");
    memcpy(fields, s.fields, (size_t)s.rows * sizeof *fields);
    fields[4] = 3;
    REFUSES(&s.a, SPMV_ERROR_ARGUMENT, "row 4 (counted from 0) is 3");
    fields[4] = 0;
    REFUSES(&s.a, SPMV_ERROR_ARGUMENT, "0, 1 and 2");
    memcpy(fields, s.fields, (size_t)s.rows * sizeof *fields);
    fields[2] = 1; /* a pressure */
    REFUSES(&s.a, SPMV_ERROR_NOT_POSITIVE, "row 2 (counted from 0), of the first field, is 0");
    o = options_of(NULL, NULL, 0);
    o.near_null = ones;
    o.near_nulls = 1;
    REFUSES(&s.a, SPMV_ERROR_UNSUPPORTED, "near-null");
    /* a coupling of two pressures */
    o = options_of(NULL, NULL, 0);
    spmv_csr coupled = s.a;
    int32_t *const col = support_zeros(s.a.nnz, sizeof *col);
    memcpy(col, s.a.col, (size_t)s.a.nnz * sizeof *col);
    for (int64_t k = row_first(&s.a, 2); k < row_first(&s.a, 3); k++)
        col[k] = k == row_first(&s.a, 2) ? 5 : col[k];
    coupled.col = col;
    REFUSES(&coupled, SPMV_ERROR_UNSUPPORTED,
            "row 2, whose diagonal entry is 0, has an entry in column 5 (counted from 0)");
#undef REFUSES
    assert_null(m);
    support_free(fields, col);
    spmv_matrix_destroy(small);
    spmv_matrix_destroy(poisson);
    free_flow(&s);
    free_flow(&stabilised);
}

/* ----------------------------------------------------------------- solves */

struct solve {
    const char *solver, *form;
    const spmv_csr *mass;
    int most;       /* iterations */
    const char *by; /* the solver that auto takes */
};

/* Solves for x of random numbers, and checks it. Returns the iterations. */
static int64_t solve(spmv_context *ctx, const struct system *s, const struct solve *with, spmv_type type, bool update)
{
    spmv_solver_options options;
    spmv_solver_result result;
    spmv_solver *solver = NULL;
    spmv_preconditioner_options o = options_of(with->form, with->form == NULL ? s->fields : NULL, 0);
    double *const x = support_zeros(s->rows, sizeof *x), *const b = support_zeros(s->rows, sizeof *b),
                  *const got = support_zeros(s->rows, sizeof *got);
    uint64_t seed = 3;
    for (int64_t i = 0; i < s->rows; i++)
        x[i] = support_uniform(&seed);
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t k = row_first(&s->a, i); k < row_first(&s->a, i + 1); k++)
            b[i] += precond_value(&s->a, k) * x[s->a.col[k]];
    o.schur = with->mass;
    spmv_solver_options_init(&options, sizeof options);
    options.solver = with->solver;
    options.precond = with->form != NULL ? "schur" : NULL; /* the options imply it */
    options.precond_options = &o;
    options.type = type;
    options.zero_start = 1;
    options.rtol = type == SPMV_F32 ? 1e-4 : 1e-10;
    spmv_csr a = s->a;
    double *const other = support_zeros(s->a.nnz, sizeof *other);
    float *const narrow = support_zeros(s->a.nnz, sizeof *narrow);
    for (int64_t k = 0; k < s->a.nnz; k++)
        narrow[k] = (float)precond_value(&s->a, k);
    if (type == SPMV_F32) {
        a.val = narrow;
        a.type = type;
    }
    for (int64_t k = 0; k < s->a.nnz && update; k++)
        other[k] = precond_value(&s->a, k) * 3;
    if (update)
        a.val = other;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &options, &solver));
    if (update) {
        void *const values = support_upload_as(ctx, SPMV_F64, s->a.val, s->a.nnz, 0);
        assert_ok(ctx, spmv_solver_update_values(solver, values));
        support_free_in(ctx, values);
    }
    void *const db = support_upload_as(ctx, type, b, s->rows, 0), *const dx =
                                                                      support_upload_as(ctx, type, b, s->rows, 0);
    assert_ok(ctx, spmv_solver_solve(solver, db, dx, &result, sizeof result));
    assert_string_equal(result.precond, "schur");
    assert_string_equal(result.solver, with->by);
    support_fetch_as(ctx, type, dx, s->rows, got);
    double error = 0;
    for (int64_t i = 0; i < s->rows; i++)
        error = fmax(error, fabs(got[i] - x[i]));
    if (!(error <= (type == SPMV_F32 ? 0.2 : 1e-5)))
        fail_msg("%s: error %g after %d iterations", with->by, error, (int)result.iterations);
    if (result.iterations > with->most)
        fail_msg("%s with %s: %d iterations, not up to %d", with->by, with->form != NULL ? with->form : "its choice",
                 (int)result.iterations, with->most);
    support_free_in(ctx, db, dx);
    spmv_solver_destroy(solver);
    support_free(x, b, got, other, narrow);
    return result.iterations;
}

/* Rows without entries are not a second field for "auto". */
static void not_coupled(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 30 };
    double dense[N * N] = {0};
    spmv_preconditioner *m = NULL;
    for (int i = 0; i < N - 3; i++)
        dense[i * N + i] = 2;
    struct sparse s = from_dense(N, dense);
    spmv_matrix *there = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_copy(ctx, &s.view, SPMV_MEMORY_CONTEXT, &there));
    spmv_matrix_view(there, &a);
    assert_fails(ctx, precond_create_good_schur(ctx, &a, NULL, &m), SPMV_ERROR_UNSUPPORTED, "not coupled");
    assert_null(m);
    spmv_matrix_destroy(there);
    release(&s);
}

/* Iterations do not grow with the grid. */
static void stokes(void **state)
{
    spmv_context *const ctx = *state;
    for (int n = SLOW ? 6 : 16; n <= (SLOW ? 6 : 32); n *= 2) {
        struct system s = make_flow(ctx, &(struct flow){n, 0.5, 0, 0, 1}),
                      stabilised = make_flow(ctx, &(struct flow){n, 1, 0, 0.1 / n / n, -1}),
                      oseen = make_flow(ctx, &(struct flow){n, 1, 0.4, 0, 1});
        spmv_matrix *const mass = identity(ctx, s.second, 2.0 / n / n);
        spmv_csr given;
        spmv_matrix_view(mass, &given);
        const struct solve of_s[] = {
            {NULL, NULL, NULL, 80, "minres"},           {NULL, NULL, &given, 80, "minres"},
            {"minres", "diagonal", NULL, 80, "minres"}, {"gmres", "diagonal", NULL, 36, "gmres"},
            {"gmres", "commutator", NULL, 50, "gmres"},
        };
        for (size_t k = 0; k < sizeof of_s / sizeof *of_s; k++)
            solve(ctx, &s, &of_s[k], SPMV_F64, false);
        solve(ctx, &stabilised, &(struct solve){NULL, NULL, NULL, 80, "minres"}, SPMV_F64, false);
        solve(ctx, &oseen, &(struct solve){NULL, NULL, NULL, 40, "gmres"}, SPMV_F64, false);
        solve(ctx, &s, &(struct solve){NULL, NULL, NULL, 30, "minres"}, SPMV_F32, false);
        solve(ctx, &s, &(struct solve){NULL, NULL, NULL, 80, "minres"}, SPMV_F64, true);
        spmv_matrix_destroy(mass);
        free_flow(&s);
        free_flow(&stabilised);
        free_flow(&oseen);
    }
}

/* ----------------------------------------------------------------- bits */

static void same_bits(void **state)
{
    (void)state;
    double *first = NULL;
    const int most = support_backend == SPMV_BACKEND_OMP ? 5 : 2;
    for (int threads = 1; threads <= most; threads += threads < 3 ? 1 : 2) { /* 1, 2, 3, 5 */
        spmv_context *const ctx = support_context_on(support_backend, threads);
        struct system s = make_flow(ctx, &(struct flow){SLOW ? 6 : 40, 1, 0, 0, 1});
        double *const r = support_zeros(s.rows, sizeof *r), *const z = support_zeros(2 * s.rows, sizeof *z);
        uint64_t seed = 7;
        for (int64_t i = 0; i < s.rows; i++)
            r[i] = support_uniform(&seed);
        for (int k = 0; k < 2; k++) {
            const spmv_preconditioner_options o = options_of(k == 0 ? NULL : "commutator", NULL, k);
            spmv_preconditioner *m = NULL;
            assert_ok(ctx, spmv_preconditioner_create(ctx, "schur", &s.a, &o, &m));
            apply(ctx, m, r, z + k * s.rows);
            spmv_preconditioner_destroy(m);
        }
        if (first == NULL) {
            first = support_zeros(2 * s.rows, sizeof *first);
            memcpy(first, z, (size_t)(2 * s.rows) * sizeof *z);
        }
        assert_memory_equal(z, first, (size_t)(2 * s.rows) * sizeof *z);
        support_free(r, z);
        free_flow(&s);
        spmv_context_destroy(ctx);
    }
    free(first);
}

SUPPORT_MAIN(with_context(as_defined), with_context(fields_found_and_given), with_context(refusals),
             with_context(not_coupled), with_context(stokes), cmocka_unit_test(same_bits))
