/* Solves with the transpose and the conjugate transpose: every preconditioner transposed, every solver by the residual
 * of A', one set-up for A and A', types, several right-hand sides, new values, and errors.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <complex.h>
#include <float.h>
#include <math.h>

#include "solvers/solver_internal.h"
#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"

/* ----------------------------------------------------------------- helpers */

static double *random_vector(int64_t n, uint64_t seed)
{
    double *const v = support_zeros(n, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)support_uniform(&seed);
    return v;
}

/* A generated matrix in the context's memory, and in host memory. */
struct system {
    spmv_matrix *host, *there;
    spmv_csr a, at;
};

static struct system system_of(spmv_context *ctx, const char *spec, spmv_type type)
{
    struct system s;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &s.host));
    spmv_matrix_view(s.host, &s.a);
    assert_ok(ctx, spmv_matrix_copy(ctx, &s.a, SPMV_MEMORY_CONTEXT, &s.there));
    spmv_matrix_view(s.there, &s.at);
    return s;
}

static void system_free(struct system *s)
{
    spmv_matrix_destroy(s->host);
    spmv_matrix_destroy(s->there);
}

/* Real and complex numbers of an array of this type. */
static double complex number(spmv_type type, const void *array, int64_t k)
{
    const spmv_type part = type_part(type);
    return type_is_complex(type) ? real_at(part, array, 2 * k) + I * real_at(part, array, 2 * k + 1)
                                 : real_at(part, array, k);
}

/* ||b - op(A) x|| / ||b||; x, b: n numbers of the type in the context's memory. a: in host memory. */
static double residual(spmv_context *ctx, const spmv_csr *a, spmv_operation op, spmv_type type, const void *b,
                       const void *x, int64_t stride, int64_t offset)
{
    const int64_t n = a->rows, size = (int64_t)spmv_type_size(type);
    char *const hb = support_zeros(n * stride, (size_t)size), *const hx = support_zeros(n * stride, (size_t)size);
    double complex *const r = support_zeros(n, sizeof *r);
    double all = 0, of_b = 0;
    assert_ok(ctx, spmv_download(ctx, b, hb, n * stride * size));
    assert_ok(ctx, spmv_download(ctx, x, hx, n * stride * size));
    for (int64_t i = 0; i < n; i++)
        r[i] = number(type, hb, i * stride + offset);
    for (int64_t i = 0; i < n; i++)
        of_b += creal(r[i] * conj(r[i]));
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++) {
            const double complex v = number(a->type, a->val, k);
            if (op == SPMV_OPERATION_N)
                r[i] -= v * number(type, hx, a->col[k] * stride + offset);
            else
                r[a->col[k]] -= (op == SPMV_OPERATION_H ? conj(v) : v) * number(type, hx, i * stride + offset);
        }
    for (int64_t i = 0; i < n; i++)
        all += creal(r[i] * conj(r[i]));
    support_free(hb, hx, r);
    return sqrt(all / of_b);
}

/* ------------------------------------------------------------- preconditioners */

/* u'(M^-1 v) = (M^-T u)'v, twice the same bits. */
static void assert_transposed(spmv_context *ctx, const spmv_preconditioner *m, const char *name)
{
    const spmv_type type = precond_type(m);
    const int64_t n = precond_rows(m);
    double *const u = random_vector(n, 5), *const v = random_vector(n, 6), *const z = support_zeros(n, 8),
                  *const w = support_zeros(n, 8), *const again = support_zeros(n, 8);
    void *const from = support_upload_as(ctx, type, u, n, 0), *const to = support_upload_as(ctx, type, v, n, 0);
    double left = 0, right = 0, size = 0;
    apply(ctx, m, v, z);
    for (int turn = 0; turn < 2; turn++) {
        assert_ok(ctx, spmv_preconditioner_apply_transposed(m, from, to));
        support_fetch_as(ctx, type, to, n, turn == 0 ? w : again);
    }
    assert_memory_equal(w, again, (size_t)n * 8);
    for (int64_t i = 0; i < n; i++) {
        left += u[i] * z[i];
        right += w[i] * v[i];
        size += fabs(u[i] * z[i]) + fabs(w[i] * v[i]);
    }
    const double unit = strcmp(name, "amg") == 0 || strcmp(name, "isai") == 0 ? FLT_EPSILON /* inside */
                                                                              : real_limits_of(type).roundoff;
    if (!(fabs(left - right) <= 32 * unit * size))
        fail_msg("%s: %.17g and %.17g, of terms of %g", name, left, right, size);
    support_free(u, v, z, w, again);
    support_free_in(ctx, from, to);
}

/* Every kind, of a matrix that is not symmetric where it takes one; as the solvers make it too. */
static void preconditioners(void **state)
{
    spmv_context *ctx = *state;
    static const char *const specs[] = {SLOW ? "convdiff2d:18,5" : "convdiff2d:40,20", "poisson2d:9"};
    for (int k = 0; k < 2; k++)
        for (int t = 0; t < (SLOW ? 1 : 2); t++) {
            const spmv_type type = t == 0 ? SPMV_F64 : SPMV_F32;
            struct system s = system_of(ctx, specs[k], type);
            const char *name = NULL;
            for (int i = 0; (name = spmv_preconditioner_name(i)) != NULL; i++) {
                spmv_preconditioner_options o = support_preconditioner_options();
                spmv_preconditioner *m = NULL;
                const bool factors = precond_is_unsymmetric(name) || strcmp(name, "isai") == 0;
                if ((support_backend == SPMV_BACKEND_CUDA && is_on_cpu_only(name)) || strcmp(name, "schur") == 0)
                    continue; /* schur: test_schur */
                if (k == 0 && (is_on_cpu_only(name) || strcmp(name, "fsai") == 0 || strcmp(name, "chebyshev") == 0))
                    continue;
                o.general = k == 0;
                o.block = strcmp(name, "block-jacobi") == 0 ? 5 : 0;
                assert_ok(ctx, spmv_preconditioner_create(ctx, name, &s.at, &o, &m));
                assert_transposed(ctx, m, name);
                assert_int_equal(precond_is_symmetric(m),
                                 k == 1 ? !precond_is_unsymmetric(name)
                                        : strcmp(name, "none") == 0 || strcmp(name, "jacobi") == 0);
                spmv_preconditioner_destroy(m);
                if (k == 0 && factors) { /* of the prepared matrix */
                    o.type = type;
                    assert_ok(ctx, solver_make_unsymmetric(ctx, name, &s.at, &o, &m));
                    assert_transposed(ctx, m, name);
                    spmv_preconditioner_destroy(m);
                }
            }
            system_free(&s);
        }
}

/* Factors with exchanged columns, scaled rows and columns, and a diagonal of zeros. */
static void prepared(void **state)
{
    enum { N = 150 };
    spmv_context *ctx = *state;
    double *const dense = support_zeros(N * N, 8);
    uint64_t seed = 3;
    for (int i = 0; i < N; i++) {
        dense[i * N + (i + 7) % N] = (3 + support_uniform(&seed)) * (i % 2 == 0 ? 1 : 4096);
        dense[i * N + (i * 11 + 5) % N] += support_uniform(&seed);
        dense[i * N + (i * 5 + 2) % N] += 16 * support_uniform(&seed);
    }
    struct sparse a = from_dense(N, dense);
    static const char *const names[] = {"ilut", "ilu0", "jacobi", "block-jacobi"};
    for (int k = 0; k < 4; k++) {
        spmv_preconditioner_options o = support_preconditioner_options();
        spmv_preconditioner *m = NULL;
        o.type = SPMV_F64;
        o.drop = 0.01;
        assert_ok(ctx, solver_make_unsymmetric(ctx, names[k], &a.view, &o, &m));
        assert_transposed(ctx, m, names[k]);
        spmv_preconditioner_destroy(m);
    }
    release(&a);
    free(dense);
}

/* ------------------------------------------------------------- solves */

/* Solves with A, then with A' and A^H; each residual as reported. Returns the iterations with A'. */
static int64_t solve_all(spmv_context *ctx, const struct system *s, spmv_solver_options *o, const char *why)
{
    const spmv_type type = o->type != SPMV_TYPE_DEFAULT ? o->type : s->a.type;
    const int parts = type_parts(type);
    const int64_t n = s->a.rows, k = o->vectors;
    double *const h = random_vector(n * k * parts, 9);
    void *const b = support_upload_as(ctx, type_part(type), h, n * k * parts, 0), *const x = support_upload_as(
                                                                                      ctx, type_part(type), h,
                                                                                      n * k * parts, 0);
    spmv_solver *solver = NULL;
    spmv_solver_result r[4];
    int64_t iterations = 0;
    static const spmv_operation ops[] = {SPMV_OPERATION_N, SPMV_OPERATION_T, SPMV_OPERATION_H, SPMV_OPERATION_N};
    o->zero_start = 1;
    assert_ok(ctx, spmv_solver_create(ctx, &s->at, o, &solver));
    const spmv_preconditioner *const made = solver->precond;
    for (int turn = 0; turn < 4; turn++) {
        assert_ok(ctx, spmv_solver_solve_operation(solver, ops[turn], b, x, r, sizeof *r));
        for (int v = 0; v < k; v++) {
            const double found = residual(ctx, &s->a, ops[turn], type, b, x, k, v);
            if (!(r[v].status == SPMV_OK && found <= 2.1 * o->rtol &&
                  fabs(found - r[v].true_residual / r[v].norm_b) <=
                      0.01 * o->rtol + 64 * real_limits_of(type_part(type)).roundoff))
                fail_msg("%s: operation %d, vector %d: residual %g, reported %g", why, ops[turn], v, found,
                         r[v].true_residual / r[v].norm_b);
        }
        if (turn == 1) {
            iterations = r->iterations;
            if (o->precond != NULL && strcmp(o->precond, "auto") != 0)
                assert_string_equal(r->precond, o->precond);
            if (solver->adjoint != NULL && strcmp(r->solver, "direct") != 0 && strcmp(r->precond, "none") != 0 &&
                !precond_is_symmetric(made))
                assert_string_equal(r->why_precond, "that of A, applied transposed");
        }
    }
    if (o->solver != NULL || strcmp(r->solver, "direct") != 0) /* auto has not taken factors in its place */
        assert_ptr_equal(solver->precond, made);               /* one set-up */
    spmv_solver_destroy(solver);
    free(h);
    support_free_in(ctx, b, x);
    return iterations;
}

static void solves(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        const char *spec, *solver, *precond;
        int vectors;
    } cases[] = {
        {"convdiff2d:16,20", "gmres", "none", 1},    {"convdiff2d:16,20", "gmres", "jacobi", 1},
        {"convdiff2d:16,20", "gmres", "ilut", 1},    {"convdiff2d:16,20", "gmres", "ilu0", 2},
        {"convdiff2d:16,20", "gmres", "isai", 1},    {"convdiff2d:20,20", "gmres", "amg", 1},
        {"convdiff2d:16,20", "bicgstab", "ilut", 1}, {"convdiff2d:16,20", "bicgstab", "block-jacobi", 1},
        {"convdiff2d:18,5", "auto", "auto", 1},      {"convdiff2d:9,5", "auto", "auto", 1},
        {"poisson2d:20", "cg", "jacobi", 1},         {"poisson2d:20", "auto", "auto", 2},
        {"poisson2d:20", "minres", "jacobi", 1},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct system s = system_of(ctx, cases[c].spec, SPMV_F64);
        spmv_solver_options o = support_solver_options();
        char why[96];
        if (SLOW && c % 2 == 1)
            goto next;
        o.solver = cases[c].solver;
        o.precond = cases[c].precond;
        o.vectors = cases[c].vectors;
        snprintf(why, sizeof why, "%s %s %s", cases[c].spec, o.solver, o.precond);
        solve_all(ctx, &s, &o, why);
    next:
        system_free(&s);
    }
}

/* The factors of A transposed are as good for A' as those of A', and amg nearly. */
static void as_good_as_its_own(void **state)
{
    spmv_context *ctx = *state;
    static const char *const names[] = {"ilut", "amg"};
    for (int k = 0; k < 2; k++) {
        struct system s = system_of(ctx, SLOW ? "convdiff2d:18,20" : "convdiff2d:48,20", SPMV_F64), t;
        spmv_solver_options o = support_solver_options();
        o.solver = "gmres";
        o.precond = names[k];
        assert_ok(ctx, spmv_matrix_transpose(ctx, &s.a, &t.host));
        spmv_matrix_view(t.host, &t.a);
        assert_ok(ctx, spmv_matrix_copy(ctx, &t.a, SPMV_MEMORY_CONTEXT, &t.there));
        spmv_matrix_view(t.there, &t.at);
        const int64_t with = solve_all(ctx, &s, &o, names[k]);
        double *const h = random_vector(s.a.rows, 9);
        void *const b = support_upload(ctx, h, s.a.rows * 8), *const x = support_upload(ctx, h, s.a.rows * 8);
        spmv_solver_result r;
        assert_ok(ctx, spmv_solve(ctx, &t.at, b, x, &o, &r, sizeof r));
        if (!(with <= r.iterations + r.iterations / 2 + 2))
            fail_msg("%s: %lld iterations, with that of A' %lld", names[k], (long long)with, (long long)r.iterations);
        free(h);
        support_free_in(ctx, b, x);
        system_free(&s);
        system_free(&t);
    }
}

/* Numbers with a phase, Hermitian or not, in both complex types; and f32. */
static void types(void **state)
{
    spmv_context *ctx = *state;
    for (int k = 0; k < 9; k++) {
        const bool hermitian = k == 2, own_transpose = k >= 7; /* whose preconditioner cannot be transposed */
        const spmv_type type = k == 3 ? SPMV_C64 : k == 6 ? SPMV_F32 : SPMV_C128;
        struct system s =
            system_of(ctx, hermitian || own_transpose ? "poisson2d:15" : "convdiff2d:15,5", type_part(type));
        spmv_solver_options o = support_solver_options();
        spmv_csr a = s.a;
        char *const val = support_zeros(a.nnz, 16);
        if (SLOW && k % 2 == 1)
            goto next;
        if (type_is_complex(type)) {
            for (int64_t i = 0; i < a.rows; i++)
                for (int64_t e = row_first(&a, i); e < row_first(&a, i + 1); e++) {
                    const double v = precond_value(&a, e) * (hermitian && a.col[e] != i ? 0.9 : 1);
                    const double turned = hermitian       ? (a.col[e] > i   ? 0.4
                                                             : a.col[e] < i ? -0.4
                                                                            : 0)
                                          : own_transpose ? (a.col[e] == i ? 0.3 : 0.1)
                                                          : 0.3 + 0.1 * (double)(e % 3);
                    real_set(type_part(type), val, 2 * e, v);
                    real_set(type_part(type), val, 2 * e + 1, turned * v);
                }
            a.val = val;
            a.type = type;
            spmv_matrix_destroy(s.there);
            assert_ok(ctx, spmv_matrix_copy(ctx, &a, SPMV_MEMORY_CONTEXT, &s.there));
            spmv_matrix_view(s.there, &s.at);
            s.a = a;
        }
        o.rtol = type_part(type) == SPMV_F32 ? 1e-4 : 1e-9;
        o.solver = k == 4 ? "bicgstab" : hermitian ? "cg" : k == 5 || k == 8 ? NULL : k == 7 ? "cocg" : "gmres";
        o.precond = k == 0             ? "ilut"
                    : k == 5 || k == 8 ? NULL
                    : k == 7           ? (support_backend == SPMV_BACKEND_CUDA ? "fsai" : "ic0")
                                       : "jacobi";
        solve_all(ctx, &s, &o, spmv_type_name(type));
    next:
        free(val);
        system_free(&s);
    }
}

/* KLU and dense factors, real and complex; KLU is a module that may be missing. */
static void direct(void **state)
{
    spmv_context *ctx = *state;
    for (int k = 0; k < 4; k++) {
        struct system s = system_of(ctx, k < 2 ? "convdiff2d:20,5" : "convdiff2d:12,5", SPMV_F64);
        spmv_solver_options o = support_solver_options();
        spmv_csr a = s.a;
        double *const val = support_zeros(2 * a.nnz, 8);
        if (k % 2 == 1) {
            for (int64_t e = 0; e < a.nnz; e++) {
                val[2 * e] = precond_value(&a, e);
                val[2 * e + 1] = 0.2 * (double)(e % 4) * val[2 * e];
            }
            a.val = val;
            a.type = SPMV_C128;
            spmv_matrix_destroy(s.there);
            assert_ok(ctx, spmv_matrix_copy(ctx, &a, SPMV_MEMORY_CONTEXT, &s.there));
            spmv_matrix_view(s.there, &s.at);
            s.a = a;
        }
        o.rtol = 1e-12;
        o.solver = k < 2 ? "direct" : NULL;
        spmv_solver *solver = NULL;
        const spmv_status st = spmv_solver_create(ctx, &s.at, &o, &solver);
        spmv_solver_destroy(solver);
        if (st != SPMV_ERROR_UNSUPPORTED) {
            assert_ok(ctx, st);
            assert_true(solve_all(ctx, &s, &o, "direct") <= 2);
        }
        free(val);
        system_free(&s);
    }
}

/* New values: the solves with A' are with those. The memory of the second solver is counted. */
static void new_values(void **state)
{
    spmv_context *ctx = *state;
    struct system s = system_of(ctx, "convdiff2d:16,20", SPMV_F64);
    spmv_solver_options o = support_solver_options();
    spmv_solver *solver = NULL;
    spmv_solver_info before, after;
    double *const h = random_vector(s.a.rows, 9), *const val = support_zeros(s.a.nnz, 8);
    void *const b = support_upload(ctx, h, s.a.rows * 8), *const x = support_upload(ctx, h, s.a.rows * 8);
    o.solver = "gmres";
    o.precond = "ilu0";
    assert_ok(ctx, spmv_solver_create(ctx, &s.at, &o, &solver));
    assert_ok(ctx, spmv_solver_describe(solver, &before, sizeof before));
    assert_ok(ctx, spmv_solver_solve_operation(solver, SPMV_OPERATION_T, b, x, NULL, 0));
    assert_ok(ctx, spmv_solver_describe(solver, &after, sizeof after));
    assert_true(after.bytes >= before.bytes + s.a.nnz * 12);
    for (int64_t k = 0; k < s.a.nnz; k++)
        val[k] = precond_value(&s.a, k) * (1 + 0.1 * (double)(k % 5));
    void *const there = support_upload(ctx, val, s.a.nnz * 8);
    assert_ok(ctx, spmv_solver_update_values(solver, there));
    s.a.val = val;
    for (int turn = 0; turn < 2; turn++) {
        assert_ok(ctx, spmv_solver_solve_operation(solver, SPMV_OPERATION_H, b, x, NULL, 0));
        assert_true(residual(ctx, &s.a, SPMV_OPERATION_T, SPMV_F64, b, x, 1, 0) <= 2e-8);
    }
    spmv_solver_destroy(solver);
    support_free(h, val);
    support_free_in(ctx, b, x, there);
    system_free(&s);
}

/* A solver that fails with A', under "auto": here bicgstab, of a skew-symmetric matrix. Another one, which chooses a
 * preconditioner for A', goes on. At the caller's own limit of iterations none does. */
static void goes_on(void **state)
{
    enum { N = 402 };
    spmv_context *ctx = *state;
    int32_t *const row_ptr = support_zeros(N + 1, 4), *const col = support_zeros(2 * N, 4);
    double *const val = support_zeros(2 * N, 8), *const h = random_vector(N, 8);
    int32_t nnz = 0;
    for (int i = 0; i < N; i++) {
        for (int j = i - 1; j <= i + 1; j += 2)
            if (j >= 0 && j < N) {
                col[nnz] = j;
                val[nnz++] = (j > i ? 1 : -1) * (1 + (i + j) % 5);
            }
        row_ptr[i + 1] = nnz;
    }
    struct system s = {.host = NULL};
    s.a = support_csr(N, N, row_ptr, col, val);
    void *const b = support_upload(ctx, h, N * 8), *const x = support_upload(ctx, h, N * 8);
    for (int limited = 0; limited < 2; limited++) {
        spmv_solver_options o = support_solver_options();
        spmv_preconditioner *none = NULL;
        spmv_solver *solver = NULL;
        spmv_solver_result r;
        o.zero_start = 1;
        o.max_iterations = limited ? 3 : 0;
        assert_ok(ctx, spmv_solver_create(ctx, &s.a, &o, &solver));
        assert_false(solver->symmetric);
        assert_ok(ctx, spmv_preconditioner_create(ctx, "none", &s.a, NULL, &none));
        solver->used = limited ? &krylov_gmres : &krylov_bicgstab;
        solver->used_precond = none;
        for (int turn = 0; turn < (limited ? 1 : 2); turn++) {
            const spmv_status st = spmv_solver_solve_operation(solver, SPMV_OPERATION_T, b, x, &r, sizeof r);
            if (limited) {
                assert_int_equal(st, SPMV_ERROR_ITERATIONS);
                assert_true(r.iterations == 3);
                continue;
            }
            assert_ok(ctx, st);
            assert_true(residual(ctx, &s.a, SPMV_OPERATION_T, SPMV_F64, b, x, 1, 0) <= 1.01e-8);
            if (strcmp(r.solver, "direct") == 0) /* where a module is there */
                continue;
            assert_string_equal(r.solver, "gmres");
            assert_int_equal(strncmp(r.why_solver, "chosen for the transpose", 24) == 0, turn == 0);
        }
        spmv_solver_destroy(solver);
        spmv_preconditioner_destroy(none);
    }
    support_free(row_ptr, col, val, h);
    support_free_in(ctx, b, x);
}

/* ------------------------------------------------------------- own preconditioners, and errors */

struct scaling {
    spmv_context *ctx;
    void *half; /* a number in host memory */
    int64_t rows;
    int calls, transposed;
};

static spmv_status halve(void *self, const void *r, void *z)
{
    struct scaling *const s = self;
    s->calls++;
    return spmv_map_scalar(s->ctx, SPMV_MUL, SPMV_F64, s->half, r, z, s->rows);
}

static spmv_status halve_transposed(void *self, const void *r, void *z)
{
    ((struct scaling *)self)->transposed++;
    return halve(self, r, z);
}

static int show(int64_t iteration, double norm, const void *x, void *user)
{
    (void)iteration, (void)norm, (void)x, (void)user;
    return 0;
}

static void own_and_errors(void **state)
{
    spmv_context *ctx = *state;
    struct system s = system_of(ctx, "convdiff2d:15,5", SPMV_F64);
    double half = 0.5, *const h = random_vector(2 * s.a.rows, 9);
    struct scaling self = {.ctx = ctx, .half = &half, .rows = s.a.rows};
    spmv_preconditioner_class functions = {.size = sizeof functions, .name = "halves", .apply = halve};
    void *const b = support_upload(ctx, h, s.a.rows * 16), *const x = support_upload(ctx, h, s.a.rows * 16);
    spmv_solver_result r;
    for (int k = 0; k < 2; k++) {
        spmv_preconditioner *m = NULL;
        spmv_solver *solver = NULL;
        spmv_solver_options o = support_solver_options();
        functions.apply_transposed = k == 1 ? halve_transposed : NULL;
        assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, s.a.rows, &functions, &self, &m));
        o.own_precond = m;
        o.solver = "gmres";
        assert_ok(ctx, spmv_solver_create(ctx, &s.at, &o, &solver));
        if (k == 0) {
            assert_fails(ctx, spmv_solver_solve_operation(solver, SPMV_OPERATION_T, b, x, &r, sizeof r),
                         SPMV_ERROR_UNSUPPORTED, "apply_transposed");
            assert_int_equal(r.status, SPMV_ERROR_UNSUPPORTED);
            assert_fails(ctx, spmv_preconditioner_apply_transposed(m, b, x), SPMV_ERROR_UNSUPPORTED, "halves");
            assert_holds(ctx, x, h, (size_t)s.a.rows * 8);
        } else {
            assert_ok(ctx, spmv_solver_solve_operation(solver, SPMV_OPERATION_T, b, x, &r, sizeof r));
            assert_true(self.transposed > 0 && self.transposed == self.calls);
            assert_string_equal(r.precond, "halves");
        }
        assert_fails(ctx, spmv_solver_solve_operation(solver, (spmv_operation)7, b, x, &r, sizeof r),
                     SPMV_ERROR_ARGUMENT, "operation");
        assert_fails(ctx, spmv_solver_solve_operation(solver, SPMV_OPERATION_N, b, b, &r, sizeof r),
                     SPMV_ERROR_ARGUMENT, "same array");
        spmv_solver_destroy(solver);
        spmv_preconditioner_destroy(m);
    }
    spmv_solver *solver = NULL;
    spmv_solver_options o = support_solver_options();
    double *const val = support_zeros(2 * s.a.nnz, 8);
    for (int64_t e = 0; e < s.a.nnz; e++)
        val[2 * e] = val[2 * e + 1] = precond_value(&s.a, e);
    spmv_csr a = s.a;
    a.val = val;
    a.type = SPMV_C128;
    o.solver = "gmres";
    o.precond = "jacobi";
    o.on_iterate = show;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    assert_fails(ctx, spmv_solver_solve_operation(solver, SPMV_OPERATION_T, b, x, &r, sizeof r), SPMV_ERROR_UNSUPPORTED,
                 "on_iterate");
    assert_ok(ctx, spmv_solver_solve_operation(solver, SPMV_OPERATION_H, b, x, &r, sizeof r));
    spmv_solver_destroy(solver);
    assert_int_equal(spmv_solver_solve_operation(NULL, SPMV_OPERATION_T, b, x, &r, sizeof r), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_preconditioner_apply_transposed(NULL, b, x), SPMV_ERROR_ARGUMENT);
    support_free(h, val);
    support_free_in(ctx, b, x);
    system_free(&s);
}

/* ------------------------------------------------------------- bits */

/* The same bits for any number of threads. */
static void same_bits(void **state)
{
    (void)state;
    static const char *const names[] = {"ilut", "amg", "isai"};
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    for (int k = 0; k < 3; k++) {
        double *x[2] = {NULL, NULL};
        for (int t = 0; t < 2; t++) {
            spmv_context *const ctx = support_context_on(SPMV_BACKEND_OMP, t == 0 ? 1 : 6);
            struct system s = system_of(ctx, "convdiff2d:60,20", SPMV_F64);
            double *const b = random_vector(s.a.rows, 9);
            spmv_solver_options o = support_solver_options();
            spmv_solver *solver = NULL;
            x[t] = support_zeros(s.a.rows, 8);
            o.solver = "gmres";
            o.precond = names[k];
            assert_ok(ctx, spmv_solver_create(ctx, &s.at, &o, &solver));
            assert_ok(ctx, spmv_solver_solve_operation(solver, SPMV_OPERATION_T, b, x[t], NULL, 0));
            spmv_solver_destroy(solver);
            if (t == 1)
                assert_memory_equal(x[0], x[1], (size_t)s.a.rows * 8);
            free(b);
            system_free(&s);
            spmv_context_destroy(ctx);
        }
        support_free(x[0], x[1]);
    }
}

SUPPORT_MAIN(with_context(preconditioners), with_context(prepared), with_context(solves),
             with_context(as_good_as_its_own), with_context(types), with_context(direct), with_context(new_values),
             with_context(goes_on), with_context(own_and_errors), cmocka_unit_test(same_bits))
