/* The solver of a matrix: the bits of spmv_cg, every preconditioner, the next preconditioner after
 * one that cannot be made, new values, statuses, results, refusals.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/runtime.h"
#include "formats/matrix_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_slow.h"

enum { SIDE = SLOW ? 15 : 24 }; /* more rows than auto solves by a dense factor */

enum { K = 3, N = SIDE * SIDE };

/* D (L + shift I) D with the 5-point Laplacian L of a square grid and a diagonal D. As arrays on
 * the host, with row offsets of 32 or 64 bits, and in the context's memory. */
struct system {
    spmv_context *ctx;
    spmv_type type; /* of b and x */
    int64_t nnz;
    int32_t *col;
    void *row_ptr, *val;
    spmv_csr host, there; /* host memory, context memory */
    void *arrays[3];      /* of there */
    void *b, *x;          /* N K elements in the context's memory */
};

static double scale_of(int64_t i, int variant)
{
    return 1 + (double)(i * (7 + variant) % 10) / 4;
}

/* The values of variant 0, 1, ... as doubles; each is exact in f32. */
static void fill_values(const struct system *s, int variant, double shift, double *values)
{
    for (int64_t i = 0; i < N; i++)
        for (int64_t k = offset_at(s->row_ptr, s->host.row_ptr_bits, i);
             k < offset_at(s->row_ptr, s->host.row_ptr_bits, i + 1); k++)
            values[k] = (s->col[k] == i ? 4 + shift : -1) * scale_of(i, variant) * scale_of(s->col[k], variant);
}

static int64_t bytes_of(const struct system *s, int64_t count)
{
    return count * (int64_t)spmv_type_size(s->type);
}

static struct system make(spmv_context *ctx, spmv_type stored, spmv_type type, int bits)
{
    struct system s = {.ctx = ctx, .type = type};
    int32_t *const narrow = support_zeros(N + 1, 4);
    int64_t *const wide = support_zeros(N + 1, 8);
    double *const values = support_zeros(5 * N, 8);
    s.col = support_zeros(5 * N, 4);
    for (int64_t i = 0; i < N; i++) {
        const int64_t c = i % SIDE, at[] = {i - SIDE, i - 1, i, i + 1, i + SIDE};
        const bool exists[] = {i >= SIDE, c > 0, true, c < SIDE - 1, i < N - SIDE};
        for (int e = 0; e < 5; e++)
            if (exists[e])
                s.col[s.nnz++] = (int32_t)at[e];
        narrow[i + 1] = (int32_t)s.nnz;
        wide[i + 1] = s.nnz;
    }
    s.row_ptr = bits == 32 ? (void *)narrow : (void *)wide;
    free(bits == 32 ? (void *)wide : (void *)narrow);
    s.host = support_csr_with(N, N, s.nnz, s.row_ptr, bits, s.col, NULL, stored);
    fill_values(&s, 0, 1, values);
    s.host.val = s.val = support_as(stored, values, s.nnz, 0);
    s.there = s.host;
    s.there.memory = SPMV_MEMORY_CONTEXT;
    s.there.row_ptr = s.arrays[0] = support_upload(ctx, s.row_ptr, (N + 1) * bits / 8);
    s.there.col = s.arrays[1] = support_upload(ctx, s.col, s.nnz * 4);
    s.there.val = s.arrays[2] = support_upload(ctx, s.val, s.nnz * (int64_t)spmv_type_size(stored));
    double numbers[N * K];
    uint64_t random = 11;
    for (int i = 0; i < N * K; i++)
        numbers[i] = support_uniform(&random);
    s.b = support_upload_as(ctx, type, numbers, N * K, 0);
    for (int i = 0; i < N * K; i++)
        numbers[i] = support_uniform(&random);
    s.x = support_upload_as(ctx, type, numbers, N * K, 0);
    free(values);
    return s;
}

static void release(struct system *s)
{
    for (int i = 0; i < 3; i++)
        spmv_free(s->ctx, s->arrays[i]);
    support_free_in(s->ctx, s->b, s->x);
    support_free(s->col, s->row_ptr, s->val);
}

/* Values of a variant, as an array of the matrix's type in host memory. */
static void *values_of(const struct system *s, int variant, double shift)
{
    double *const values = support_zeros(s->nnz, 8);
    fill_values(s, variant, shift, values);
    void *const typed = support_as(s->host.type, values, s->nnz, 0);
    free(values);
    return typed;
}

static int64_t value_bytes(const struct system *s)
{
    return s->nnz * (int64_t)spmv_type_size(s->host.type);
}

/* Sets x to numbers that depend on this one. */
static void set_x(const struct system *s, double number)
{
    double numbers[N * K];
    for (int i = 0; i < N * K; i++)
        numbers[i] = number * (1 + i % 5);
    void *const typed = support_as(s->type, numbers, N * K, 0);
    assert_ok(s->ctx, spmv_upload(s->ctx, typed, s->x, bytes_of(s, N * K)));
    free(typed);
}

/* x in host memory; release with free. */
static void *take_x(const struct system *s, int vectors)
{
    void *const x = support_zeros(N * K, 8);
    assert_ok(s->ctx, spmv_download(s->ctx, s->x, x, bytes_of(s, N * vectors)));
    return x;
}

static spmv_solver *solver_of(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *options)
{
    spmv_solver *solver = NULL;
    assert_ok(ctx, spmv_solver_create(ctx, a, options, &solver));
    return solver;
}

static spmv_solver_options defaults(void)
{
    spmv_solver_options o = support_solver_options();
    return o;
}

/* ---------------------------------------------------------------- spmv_cg */

/* Without a preconditioner: x and the results have the bits of spmv_cg, on every rung, from host
 * and borrowed arrays, in all types, for one and several right-hand sides; and again in a second
 * solve. */
static void bits_of_cg(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        spmv_type stored, type;
        int bits;
    } kinds[] = {
        {SPMV_F64, SPMV_F64, 64}, {SPMV_F64, SPMV_F64, 32}, {SPMV_F32, SPMV_F32, 32}, {SPMV_F32, SPMV_F64, 64}};
    const double rtol = SLOW ? 1e-3 : 1e-5;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind += SLOW ? 3 : 1) {
        struct system s = make(ctx, kinds[kind].stored, kinds[kind].type, kinds[kind].bits);
        for (int vectors = 1; vectors <= K; vectors += K - 1)
            for (int rung = -1; rung < 0 || spmv_cg_rung_name(support_backend, rung) != NULL; rung++) {
                const char *const name = rung < 0 ? NULL : spmv_cg_rung_name(support_backend, rung);
                if (SLOW && (kind == 0) != ((rung + vectors) % 4 < 2)) /* the two kinds take turns */
                    continue;
                spmv_plan_options plan_options = support_plan_options();
                plan_options.type = kinds[kind].type;
                plan_options.vectors = vectors;
                spmv_plan *plan = NULL;
                assert_ok(ctx, spmv_plan_create(ctx, &s.host, &plan_options, &plan));
                spmv_cg_options cg = support_cg_options();
                cg.rtol = rtol;
                cg.rung = name;
                spmv_cg_result expected[K];
                set_x(&s, 0.5);
                const spmv_status st = spmv_cg(plan, s.b, s.x, &cg, expected, sizeof *expected);
                void *const x = take_x(&s, vectors);
                spmv_solver_options o = defaults();
                o.precond = "none";
                o.type = kinds[kind].type;
                o.vectors = vectors;
                o.rtol = rtol;
                o.rung = name;
                /* by itself, the solver may solve these one by one: one_by_one */
                const bool given = vectors > 1 && name == NULL;
                o.plan = given ? plan : NULL;
                for (int borrowed = given; borrowed < 2; borrowed++) {
                    spmv_solver *const solver = solver_of(ctx, borrowed ? &s.there : &s.host, &o);
                    for (int run = 0; run < 2; run++) {
                        spmv_solver_result result[K];
                        set_x(&s, 0.5);
                        assert_int_equal(spmv_solver_solve(solver, s.b, s.x, result, sizeof *result), st);
                        void *const got = take_x(&s, vectors);
                        assert_memory_equal(got, x, (size_t)bytes_of(&s, N * vectors));
                        free(got);
                        for (int v = 0; v < vectors; v++) {
                            const spmv_solver_result *const r = &result[v];
                            const spmv_cg_result *const e = &expected[v];
                            assert_true(r->size == sizeof *r && r->status == e->status &&
                                        r->iterations == e->iterations && r->restarts == e->restarts &&
                                        r->norm_b == e->norm_b && r->tolerance == e->tolerance &&
                                        r->recurrence_residual == e->recurrence_residual);
                            /* of f32 the solver sums it in f64 */
                            assert_true(kinds[kind].type == SPMV_F64
                                            ? r->true_residual == e->true_residual
                                            : fabs(r->true_residual - e->true_residual) <= 0.1 * e->tolerance);
                            assert_string_equal(r->rung, e->rung);
                            assert_string_equal(r->why_rung, e->why);
                            assert_string_equal(r->precond, "none");
                            assert_true(r->setup_seconds >= 0 && r->solve_seconds >= 0);
                            if (st == SPMV_OK)
                                assert_true(r->iterations > 0 && r->true_residual <= r->tolerance);
                        }
                    }
                    spmv_solver_destroy(solver);
                }
                free(x);
                spmv_plan_destroy(plan);
            }
        release(&s);
    }
}

static int see_iterate(int64_t iteration, double residual, const void *x, void *user)
{
    (void)iteration;
    (void)user;
    assert_true(residual >= 0 && x != NULL);
    return 0;
}

/* Several right-hand sides of a matrix with few entries per row are solved one by one: each has the bits and the
 * result of a solve alone. With more entries per row one product serves all. */
static void one_by_one(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SPMV_F64, 32);
    spmv_solver_options o = defaults();
    spmv_solver_info info;
    spmv_plan_info plan;
    spmv_solver_result all[K], refused[K], alone;
    double b[N * K], x[N * K], one[N];
    o.zero_start = 1;
    o.precond = "jacobi";
    assert_ok(ctx, spmv_download(ctx, s.b, b, sizeof b));
    o.vectors = K;
    spmv_solver *several = solver_of(ctx, &s.there, &o);
    assert_ok(ctx, spmv_solver_solve(several, s.b, s.x, all, sizeof *all));
    assert_ok(ctx, spmv_download(ctx, s.x, x, sizeof x));
    assert_ok(ctx, spmv_solver_describe(several, &info, sizeof info));
    assert_ok(ctx, spmv_plan_describe(info.plan, &plan, sizeof plan));
    assert_int_equal(plan.vectors, 1);
    assert_ok(ctx, spmv_solver_set_callbacks(several, NULL, see_iterate, NULL));
    assert_fails(ctx, spmv_solver_solve(several, s.b, s.x, refused, sizeof *refused), SPMV_ERROR_UNSUPPORTED,
                 "one right-hand side");
    assert_true(refused[0].status == SPMV_ERROR_UNSUPPORTED && refused[K - 1].status == SPMV_ERROR_UNSUPPORTED);
    spmv_solver_destroy(several);
    o.vectors = 1;
    spmv_solver *const single = solver_of(ctx, &s.there, &o);
    for (int v = 0; v < K; v++) {
        for (int64_t i = 0; i < N; i++)
            one[i] = b[i * K + v];
        void *const column = support_upload(ctx, one, sizeof one);
        assert_ok(ctx, spmv_solver_solve(single, column, s.x, &alone, sizeof alone));
        assert_ok(ctx, spmv_download(ctx, s.x, one, sizeof one));
        for (int64_t i = 0; i < N; i++)
            if (one[i] != x[i * K + v])
                fail_msg("right-hand side %d, row %lld: %.17g, alone %.17g", v, (long long)i, x[i * K + v], one[i]);
        assert_true(alone.iterations == all[v].iterations && alone.true_residual == all[v].true_residual);
        spmv_free(ctx, column);
    }
    spmv_solver_destroy(single);
    release(&s);
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, "stencil27:5", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    o.vectors = K;
    several = solver_of(ctx, &a, &o);
    assert_ok(ctx, spmv_solver_describe(several, &info, sizeof info));
    assert_ok(ctx, spmv_plan_describe(info.plan, &plan, sizeof plan));
    assert_int_equal(plan.vectors, K);
    spmv_solver_destroy(several);
    spmv_matrix_destroy(matrix);
}

/* More right-hand sides than are copied at once, of both types: each has the bits of a solve alone. */
static void many_columns(void **state)
{
    enum { MANY = 19 };
    spmv_context *ctx = *state;
    const bool cuda = support_backend == SPMV_BACKEND_CUDA;
    const spmv_type types[] = {SPMV_F64, SPMV_F32};
    for (int t = 0; t < 2; t++) {
        struct system s = make(ctx, types[t], types[t], 32);
        spmv_solver_options o = defaults();
        spmv_solver_result all[MANY], alone;
        double numbers[N * MANY], one[N];
        uint64_t random = 5;
        for (int i = 0; i < N * MANY; i++)
            numbers[i] = support_uniform(&random);
        void *const b = support_upload_as(ctx, s.type, numbers, N * MANY, 0), *const x = support_upload_as(
                                                                                  ctx, s.type, numbers, N * MANY, 0);
        o.precond = "none";
        o.rtol = 1e-5;
        o.vectors = MANY;
        spmv_solver *const several = solver_of(ctx, &s.there, &o);
        assert_ok(ctx, spmv_solver_solve(several, b, x, all, sizeof *all));
        void *const got = support_zeros(N * MANY, 8);
        assert_ok(ctx, spmv_download(ctx, x, got, bytes_of(&s, N * MANY)));
        assert_fails(ctx, spmv_solver_solve(several, NULL, x, NULL, 0), SPMV_ERROR_ARGUMENT, "b is NULL");
        assert_fails(ctx, spmv_solver_solve(several, b, b, NULL, 0), SPMV_ERROR_ARGUMENT, "the same array");
        spmv_solver_destroy(several);
        o.vectors = 1;
        spmv_solver *const single = solver_of(ctx, &s.there, &o);
        for (int v = 0; v < MANY; v++) {
            for (int64_t i = 0; i < N; i++)
                one[i] = numbers[i * MANY + v];
            void *const column = support_upload_as(ctx, s.type, one, N, 0), *const start = support_upload_as(
                                                                                ctx, s.type, one, N, 0);
            assert_ok(ctx, spmv_solver_solve(single, column, start, &alone, sizeof alone));
            assert_ok(ctx, spmv_download(ctx, start, one, bytes_of(&s, N)));
            for (int64_t i = 0; i < N; i++) {
                const double mine = real_at(s.type, got, i * MANY + v), its = real_at(s.type, one, i);
                if (cuda ? !(fabs(mine - its) < 1e-3) : mine != its)
                    fail_msg("right-hand side %d, row %lld: %.17g, alone %.17g", v, (long long)i, mine, its);
            }
            assert_true(cuda || alone.iterations == all[v].iterations);
            support_free_in(ctx, column, start);
        }
        spmv_solver_destroy(single);
        support_free_in(ctx, b, x);
        free(got);
        release(&s);
    }
}

/* The norm of b - A x, computed here in long double; b and x of right-hand side v. */
static double residual_of(const struct system *s, const void *values, int vectors, int v)
{
    void *const x = take_x(s, vectors), *const b = support_zeros(N * K, 8);
    assert_ok(s->ctx, spmv_download(s->ctx, s->b, b, bytes_of(s, N * vectors)));
    long double square = 0;
    for (int64_t i = 0; i < N; i++) {
        long double sum = real_at(s->type, b, i * vectors + v);
        for (int64_t k = offset_at(s->row_ptr, s->host.row_ptr_bits, i);
             k < offset_at(s->row_ptr, s->host.row_ptr_bits, i + 1); k++)
            sum -= (long double)real_at(s->host.type, values, k) * real_at(s->type, x, s->col[k] * vectors + v);
        square += sum * sum;
    }
    support_free(x, b);
    return (double)sqrtl(square);
}

/* Whether the preconditioner does not exist on this backend, or for matrices without two fields. */
static bool may_lack(const char *name)
{
    if (strcmp(name, "schur") == 0)
        return true;
    return support_backend == SPMV_BACKEND_CUDA && (strcmp(name, "ic0") == 0 || strcmp(name, "cholesky") == 0);
}

/* Every preconditioner, and auto: the residual computed here is within the tolerance, a second
 * solve has the same bits, and the texts name what was made. */
static void every_preconditioner(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SPMV_F64, 64);
    for (int kind = -1; kind < 0 || spmv_preconditioner_name(kind) != NULL; kind++)
        for (int vectors = 1; vectors <= K; vectors += K - 1) {
            const char *const name = kind < 0 ? "auto" : spmv_preconditioner_name(kind);
            if (SLOW && kind >= 0 && (kind % 2 == 0) != (vectors == 1)) /* in turn */
                continue;
            spmv_solver_options o = defaults();
            o.precond = name;
            o.vectors = vectors;
            o.zero_start = 1;
            o.rtol = SLOW ? 1e-4 : 1e-9;
            spmv_solver *solver = NULL;
            const spmv_status st = spmv_solver_create(ctx, &s.host, &o, &solver);
            if (st == SPMV_ERROR_UNSUPPORTED && may_lack(name))
                continue;
            assert_ok(ctx, st);
            spmv_solver_result result[K];
            void *first = NULL;
            for (int run = 0; run < 2; run++) {
                set_x(&s, NAN); /* not read */
                assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, result, sizeof *result));
                void *const x = take_x(&s, vectors);
                if (run == 0)
                    first = x;
                else
                    assert_memory_equal(x, first, (size_t)bytes_of(&s, N * vectors));
                for (int v = 0; v < vectors; v++) {
                    const double residual = residual_of(&s, s.val, vectors, v);
                    assert_true(result[v].status == SPMV_OK && result[v].true_residual <= result[v].tolerance);
                    /* the solver's own sums are rounded */
                    assert_true(fabs(residual - result[v].true_residual) <= 1e-13 * result[v].norm_b);
                }
                if (run == 1)
                    free(x);
            }
            free(first);
            spmv_solver_info info;
            spmv_preconditioner_info made;
            spmv_plan_info plan;
            assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
            assert_ok(ctx, spmv_preconditioner_describe(info.precond, &made, sizeof made));
            assert_ok(ctx, spmv_plan_describe(info.plan, &plan, sizeof plan));
            const bool general = strcmp(name, "ilu0") == 0 || strcmp(name, "ilut") == 0;
            assert_string_equal(info.solver, general ? "gmres" : "cg");
            assert_string_equal(result->solver, info.solver);
            assert_string_equal(result->why_solver, info.why);
            assert_string_equal(result->precond, made.name);
            assert_string_equal(result->why_precond, made.why);
            assert_true(kind < 0 || strcmp(made.name, name) == 0);
            const bool at_once = support_backend != SPMV_BACKEND_REF && strcmp(made.name, "amg") == 0;
            assert_true(plan.vectors == (general || !at_once ? 1 : vectors) && plan.nnz == s.nnz);
            /* at least the copy of A */
            assert_true(info.bytes >= s.nnz * 12 + N * 4 && info.seconds > 0);
            spmv_solver_destroy(solver);
        }
    release(&s);
}

/* Options reach the preconditioner: blocks of one row are the diagonal, so the solves agree. The
 * caller's structs and strings need not outlive the call. */
static void options_of_the_preconditioner(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SPMV_F64, 32);
    int64_t iterations[2];
    for (int block = 0; block < 2; block++) {
        char name[32], rung[32];
        snprintf(name, sizeof name, "block-jacobi");
        snprintf(rung, sizeof rung, "textbook");
        spmv_preconditioner_options precond = support_preconditioner_options();
        precond.block = block == 0 ? 1 : SIDE;
        precond.type = SPMV_F32; /* ignored */
        spmv_solver_options o = defaults();
        o.precond = name;
        o.rung = rung;
        o.precond_options = &precond;
        o.zero_start = 1;
        spmv_solver *const solver = solver_of(ctx, &s.host, &o);
        memset(name, 'x', sizeof name);
        memset(rung, 'x', sizeof rung);
        memset(&precond, 0xff, sizeof precond);
        spmv_solver_result result;
        assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result));
        assert_string_equal(result.precond, "block-jacobi");
        assert_string_equal(result.rung, "textbook");
        iterations[block] = result.iterations;
        spmv_solver_destroy(solver);
    }
    assert_true(iterations[1] < iterations[0]); /* lines of the grid are solved exactly */
    spmv_solver_options o = defaults();
    spmv_preconditioner_options wrong = {.size = sizeof wrong, .block = 65};
    spmv_solver *solver = NULL;
    o.precond = "block-jacobi";
    o.precond_options = &wrong;
    assert_fails(ctx, spmv_solver_create(ctx, &s.host, &o, &solver), SPMV_ERROR_ARGUMENT, "block 65");
    wrong.size = 3;
    assert_fails(ctx, spmv_solver_create(ctx, &s.host, &o, &solver), SPMV_ERROR_ARGUMENT, "_init");
    release(&s);
}

/* The same bits for any number of threads. */
static void threads(void **state)
{
    (void)state;
    const char *const names[] = {"auto", support_backend == SPMV_BACKEND_CUDA ? "jacobi" : "ic0", "chebyshev"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *first = NULL;
        for (int team = 1; team <= 3; team += 2) {
            spmv_context *ctx = support_context_on(support_backend, team);
            struct system s = make(ctx, SPMV_F64, SPMV_F64, 32);
            spmv_solver_options o = defaults();
            o.precond = names[i];
            o.zero_start = 1;
            spmv_solver *const solver = solver_of(ctx, &s.host, &o);
            assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, NULL, 0));
            void *const x = take_x(&s, 1);
            if (first != NULL)
                assert_memory_equal(x, first, (size_t)bytes_of(&s, N));
            free(first);
            first = x;
            spmv_solver_destroy(solver);
            release(&s);
            spmv_context_destroy(ctx);
        }
        free(first);
    }
}

/* ---------------------------------------------------------------- new values */

/* After new values: the bits of a solver that was made from them. What is borrowed and what is
 * copied. */
static void new_values(void **state)
{
    spmv_context *ctx = *state;
    static const spmv_type types[][2] = {{SPMV_F64, SPMV_F64}, {SPMV_F32, SPMV_F32}, {SPMV_F32, SPMV_F64}};
    for (int t = 0; t < 3; t += SLOW ? 2 : 1) {
        struct system s = make(ctx, types[t][0], types[t][1], t == 0 && !SLOW ? 64 : 32);
        for (int kind = -1; kind < 0 || spmv_preconditioner_name(kind) != NULL; kind++)
            for (int form = 0; form < 4; form++) { /* host or borrowed; one right-hand side, or inner or several */
                /* an emulated GPU: one form and pair of types of a preconditioner, two forms of auto and none */
                if (SLOW && (kind > 0 ? form != kind % 2 || kind % 2 != t / 2 : form % 2 != t / 2))
                    continue;
                spmv_solver_options o = defaults();
                o.precond = kind < 0 ? "auto" : spmv_preconditioner_name(kind);
                o.type = types[t][1];
                o.rtol = SLOW ? 1e-2 : 1e-5;
                o.zero_start = 1;
                o.inner = form >= 2 && o.type == SPMV_F64;
                o.vectors = form >= 2 && !o.inner ? K : 1;
                const bool borrowed = form % 2 == 1;
                /* a strong diagonal, for which auto takes jacobi */
                void *const values = values_of(&s, 1, 40), *const device = support_upload(ctx, values, value_bytes(&s));
                spmv_csr fresh = s.host;
                fresh.val = values;
                spmv_solver *solver = NULL;
                const spmv_status st = spmv_solver_create(ctx, &fresh, &o, &solver);
                if (st == SPMV_ERROR_UNSUPPORTED &&
                    (may_lack(o.precond) || (o.inner && strncmp(o.precond, "ilu", 3) == 0))) {
                    free(values);
                    spmv_free(ctx, device);
                    continue;
                }
                assert_ok(ctx, st);
                spmv_solver_result expected[K], result[K];
                assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, expected, sizeof *expected));
                void *const x = take_x(&s, o.vectors);
                spmv_solver_destroy(solver);

                solver = solver_of(ctx, borrowed ? &s.there : &s.host, &o);
                assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, result, sizeof *result));
                void *const old = take_x(&s, o.vectors);
                assert_memory_not_equal(old, x, (size_t)bytes_of(&s, N * o.vectors));
                free(old);
                for (int twice = 0; twice < 2; twice++) {
                    assert_ok(ctx, spmv_solver_update_values(solver, device));
                    if (!borrowed && twice == 1) { /* copied: the array is free */
                        void *const garbage = support_zeros(s.nnz, 8);
                        assert_ok(ctx, spmv_upload(ctx, garbage, device, value_bytes(&s)));
                        free(garbage);
                    }
                    assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, result, sizeof *result));
                    void *const got = take_x(&s, o.vectors);
                    assert_memory_equal(got, x, (size_t)bytes_of(&s, N * o.vectors));
                    free(got);
                    assert_string_equal(result->precond, expected->precond);
                    assert_string_equal(result->why_precond, expected->why_precond);
                    assert_true(result->iterations == expected->iterations);
                    assert_true(kind >= 0 || strcmp(result->precond, "jacobi") == 0);
                }
                spmv_solver_destroy(solver);
                support_free(x, values);
                spmv_free(ctx, device);
            }
        release(&s);
    }
}

/* A preconditioner that cannot be made from new values: solves fail until better values come. */
static void new_values_that_fail(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SPMV_F64, 32);
    spmv_solver_options o = defaults();
    o.precond = "jacobi";
    o.zero_start = 1;
    spmv_solver *solver = solver_of(ctx, &s.host, &o);
    spmv_solver_result result;
    assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result));
    void *const x = take_x(&s, 1), *const good = support_upload(ctx, s.val, value_bytes(&s));
    /* NULL changes nothing */
    assert_fails(ctx, spmv_solver_update_values(solver, NULL), SPMV_ERROR_ARGUMENT, "values is NULL");
    assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result));
    double *const negative = values_of(&s, 0, 0); /* one diagonal entry of it: not the negative of a good one */
    negative[0] = -5;
    void *const bad = support_upload(ctx, negative, value_bytes(&s));
    assert_fails(ctx, spmv_solver_update_values(solver, bad), SPMV_ERROR_NOT_POSITIVE, "row 0 (counted from 0) is -5");
    for (int run = 0; run < 2; run++) {
        assert_fails(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result), SPMV_ERROR_NOT_POSITIVE,
                     "row 0 (counted from 0) is -5");
        assert_true(result.status == SPMV_ERROR_NOT_POSITIVE && result.iterations == 0 && result.solver[0] == '\0');
    }
    spmv_solver_info info;
    assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
    assert_true(info.precond == NULL && info.plan != NULL);
    assert_ok(ctx, spmv_solver_update_values(solver, good));
    assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result));
    void *const again = take_x(&s, 1);
    assert_memory_equal(again, x, (size_t)bytes_of(&s, N));
    spmv_solver_destroy(solver);
    /* auto takes another method and preconditioner, and the solver says why; cg does not */
    solver = solver_of(ctx, &s.host, NULL);
    assert_ok(ctx, spmv_solver_update_values(solver, bad));
    assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result));
    assert_string_equal(result.solver, "minres");
    assert_non_null(strstr(result.why_solver, "-5"));
    assert_string_equal(result.precond, "none");
    assert_non_null(strstr(result.why_precond, "row 0 (counted from 0) is -5"));
    assert_ok(ctx, spmv_solver_update_values(solver, good));
    assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result));
    assert_string_equal(result.solver, "cg");
    spmv_solver_destroy(solver);
    o.precond = "none";
    o.solver = "cg";
    solver = solver_of(ctx, &s.host, &o);
    assert_ok(ctx, spmv_solver_update_values(solver, bad));
    assert_fails(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result), SPMV_ERROR_NOT_POSITIVE, "p'Ap");
    spmv_solver_destroy(solver);
    /* values that f32 cannot hold */
    o.inner = 1;
    solver = solver_of(ctx, &s.host, &o);
    double *const huge = values_of(&s, 0, 0);
    huge[3] = 1e300;
    assert_ok(ctx, spmv_upload(ctx, huge, bad, value_bytes(&s)));
    assert_fails(ctx, spmv_solver_update_values(solver, bad), SPMV_ERROR_LIMIT, "entry 3 (counted from 0), 1e+300");
    assert_fails(ctx, spmv_solver_solve(solver, s.b, s.x, NULL, 0), SPMV_ERROR_LIMIT, "entry 3 (counted from 0)");
    spmv_solver_destroy(solver);
    /* a pattern */
    spmv_csr pattern = s.host;
    pattern.val = NULL;
    o.precond = "none";
    o.inner = 0;
    solver = solver_of(ctx, &pattern, &o);
    assert_fails(ctx, spmv_solver_update_values(solver, good), SPMV_ERROR_UNSUPPORTED, "pattern");
    spmv_solver_destroy(solver);
    void *const host[] = {x, again, negative, huge};
    for (size_t i = 0; i < sizeof host / sizeof host[0]; i++)
        free(host[i]);
    support_free_in(ctx, good, bad);
    release(&s);
}

/* With update_values, amg keeps its aggregates; else it is made again. */
static void kept_aggregates(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SPMV_F64, 32);
    spmv_preconditioner_options precond = support_preconditioner_options();
    spmv_solver_options o = defaults();
    o.precond = "amg";
    o.precond_options = &precond;
    o.zero_start = 1;
    /* weak couplings between the lines of the grid: other aggregates, if amg is made from these values */
    double *const values = support_zeros(s.nnz, 8);
    for (int64_t i = 0; i < N; i++)
        for (int64_t k = row_first(&s.host, i); k < row_first(&s.host, i + 1); k++)
            values[k] = llabs(s.col[k] - i) == SIDE ? -1e-3 : s.col[k] == i ? 2.01 : -1;
    void *const device = support_upload(ctx, values, value_bytes(&s));
    for (int keeps = 0; keeps < 2; keeps++) {
        precond.update_values = keeps;
        spmv_solver *const solver = solver_of(ctx, &s.host, &o);
        char layout[2][512];
        for (int fresh = 0; fresh < 2; fresh++) {
            spmv_solver_info info;
            spmv_preconditioner_info about;
            spmv_solver_result result;
            if (fresh)
                assert_ok(ctx, spmv_solver_update_values(solver, device));
            assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
            assert_ok(ctx, spmv_preconditioner_describe(info.precond, &about, sizeof about));
            snprintf(layout[fresh], sizeof layout[fresh], "%.*s", (int)(strstr(about.layout, " in ") - about.layout),
                     about.layout);
            assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result));
            assert_true(result.true_residual <= result.tolerance);
        }
        assert_true(strncmp(layout[0], "1 level", 7) != 0);
        assert_true((strcmp(layout[0], layout[1]) == 0) == (keeps == 1));
        spmv_solver_destroy(solver);
    }
    free(values);
    spmv_free(ctx, device);
    release(&s);
}

/* Symbolic work: patterns of products and of transposes. The linker puts these in front of the
 * library's functions. */
static int symbolic;

spmv_status __real_spmv_spgemm_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                           const spmv_spgemm_options *options, spmv_spgemm_plan **plan);
spmv_status __wrap_spmv_spgemm_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                           const spmv_spgemm_options *options, spmv_spgemm_plan **plan);
spmv_status __wrap_spmv_spgemm_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_csr *b,
                                           const spmv_spgemm_options *options, spmv_spgemm_plan **plan)
{
    symbolic++;
    return __real_spmv_spgemm_plan_create(ctx, a, b, options, plan);
}

spmv_status __real_spmv_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                                    spmv_plan **plan);
spmv_status __wrap_spmv_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                                    spmv_plan **plan);
spmv_status __wrap_spmv_plan_create(spmv_context *ctx, const spmv_csr *a, const spmv_plan_options *options,
                                    spmv_plan **plan)
{
    symbolic++;
    return __real_spmv_plan_create(ctx, a, options, plan);
}

/* The work and the bits of new values with kept aggregates: no symbolic work, the memory is
 * counted, and for values that lead to the same aggregates x is that of a new solver. Columns that
 * do not ascend and the caller's own amg: new values are possible, and the hierarchy is made again or stays. */
static void work_of_new_values(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SPMV_F64, 32);
    spmv_preconditioner_options precond = support_preconditioner_options();
    spmv_solver_options o = defaults();
    spmv_solver_info info;
    int64_t bytes[2];
    double expected[N], x[N];
    o.precond = "amg";
    o.precond_options = &precond;
    o.zero_start = 1;
    void *const fresh = values_of(&s, 0, 2), *const device = support_upload(ctx, fresh, value_bytes(&s));
    spmv_csr other = s.there;
    other.val = device;
    for (int keeps = 0; keeps < 2; keeps++) {
        precond.update_values = keeps;
        spmv_solver *solver = solver_of(ctx, &s.there, &o);
        /* on a GPU the first new values make another plan for the solver itself */
        assert_ok(ctx, spmv_solver_update_values(solver, s.arrays[2]));
        symbolic = 0;
        assert_ok(ctx, spmv_solver_update_values(solver, device));
        assert_true((symbolic == 0) == (keeps == 1));
        assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
        bytes[keeps] = info.bytes;
        assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, NULL, 0));
        assert_ok(ctx, spmv_download(ctx, s.x, x, sizeof x));
        spmv_solver_destroy(solver);
        solver = solver_of(ctx, &other, &o);
        assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, NULL, 0));
        assert_ok(ctx, spmv_download(ctx, s.x, expected, sizeof expected));
        spmv_solver_destroy(solver);
        assert_memory_equal(x, expected, sizeof x);
    }
    assert_true(SLOW || bytes[1] > bytes[0]);
    /* the first two entries of the last row in the other order */
    int32_t *const col = support_zeros(s.nnz, 4);
    double *const val = support_zeros(s.nnz, 8);
    const int64_t at = row_first(&s.host, N - 1);
    memcpy(col, s.host.col, (size_t)s.nnz * 4);
    memcpy(val, s.host.val, (size_t)s.nnz * 8);
    col[at] = s.col[at + 1];
    col[at + 1] = s.col[at];
    val[at] = ((const double *)s.host.val)[at + 1];
    val[at + 1] = ((const double *)s.host.val)[at];
    spmv_csr unsorted = s.there;
    unsorted.col = support_upload(ctx, col, s.nnz * 4);
    unsorted.val = support_upload(ctx, val, s.nnz * 8);
    spmv_preconditioner *m = NULL;
    assert_ok(ctx, spmv_preconditioner_create(ctx, "amg", &unsorted, &precond, &m));
    assert_fails(ctx, spmv_preconditioner_update_values(m, unsorted.val), SPMV_ERROR_UNSUPPORTED, "ascending columns");
    spmv_preconditioner_destroy(m);
    spmv_solver *solver = solver_of(ctx, &unsorted, &o);
    assert_ok(ctx, spmv_solver_update_values(solver, unsorted.val));
    assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, NULL, 0));
    spmv_solver_destroy(solver);
    /* an amg of the caller keeps its values */
    assert_ok(ctx, spmv_preconditioner_create(ctx, "amg", &s.there, &precond, &m));
    assert_ok(ctx, spmv_preconditioner_apply(m, s.b, s.x));
    assert_ok(ctx, spmv_download(ctx, s.x, expected, sizeof expected));
    o.own_precond = m;
    solver = solver_of(ctx, &s.there, &o);
    assert_ok(ctx, spmv_solver_update_values(solver, device));
    spmv_solver_destroy(solver);
    assert_ok(ctx, spmv_preconditioner_apply(m, s.b, s.x));
    assert_ok(ctx, spmv_download(ctx, s.x, x, sizeof x));
    assert_memory_equal(x, expected, sizeof x);
    spmv_preconditioner_destroy(m);
    support_free_in(ctx, (void *)unsorted.col, (void *)unsorted.val, device);
    support_free(col, val, fresh);
    release(&s);
}

/* Near-null-space vectors: of the type of b also where the preconditioner is of f32, or of their own
 * type; kept for new values, with and without kept aggregates. */
static void near_null_space(void **state)
{
    enum { MODES = 3, ROWS = 2 * (SLOW ? 8 * 8 : 24 * 24) };
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL, *rigid = NULL;
    spmv_csr a, r;
    spmv_solver *solver = NULL;
    spmv_solver_result result;
    spmv_preconditioner_options precond;
    double modes[ROWS * MODES] = {0}, b[ROWS];
    uint64_t random = 3;
    assert_ok(ctx, spmv_matrix_generate(ctx, SLOW ? "elasticity2d:8" : "elasticity2d:24", SPMV_F64, &matrix));
    assert_ok(ctx, spmv_matrix_generate(ctx, SLOW ? "rigid2d:8" : "rigid2d:24", SPMV_F64, &rigid));
    spmv_matrix_view(matrix, &a);
    spmv_matrix_view(rigid, &r);
    for (int64_t i = 0; i < ROWS; i++) {
        b[i] = support_uniform(&random);
        for (int64_t k = row_first(&r, i); k < row_first(&r, i + 1); k++)
            modes[i * MODES + r.col[k]] = ((const double *)r.val)[k];
    }
    double *const scaled = support_zeros(a.nnz, 8);
    for (int64_t k = 0; k < a.nnz; k++)
        scaled[k] = 3 * ((const double *)a.val)[k];
    void *const values = support_upload(ctx, scaled, a.nnz * 8), *const wide = support_upload(ctx, modes, sizeof modes);
    void *const narrow = support_upload_as(ctx, SPMV_F32, modes, ROWS * MODES, 0);
    void *const there = support_upload(ctx, b, sizeof b), *const x = support_upload(ctx, b, sizeof b);
    spmv_preconditioner_options_init(&precond, sizeof precond);
    precond.near_nulls = MODES;
    precond.block = 2;
    spmv_solver_options o = defaults();
    o.precond_options = &precond;
    o.zero_start = 1;
    for (int c = 0; c < 4; c++) {
        precond.near_null = c == 1 ? narrow : wide;
        precond.near_null_type = c == 1 ? SPMV_F32 : SPMV_TYPE_DEFAULT;
        precond.update_values = c == 2;
        o.inner = c == 3;
        solver = solver_of(ctx, &a, &o);
        for (int fresh = 0; fresh < 2; fresh++) {
            if (fresh)
                assert_ok(ctx, spmv_solver_update_values(solver, values));
            assert_ok(ctx, spmv_solver_solve(solver, there, x, &result, sizeof result));
            assert_string_equal(result.precond, "amg");
            if (result.iterations > 14)
                fail_msg("case %d: %lld iterations", c, (long long)result.iterations);
        }
        spmv_solver_destroy(solver);
    }
    o.inner = 0;
    double *const complex = support_zeros(2 * a.nnz, 8);
    for (int64_t k = 0; k < a.nnz; k++)
        complex[2 * k] = ((const double *)a.val)[k];
    a.val = complex;
    a.type = SPMV_C128;
    solver = NULL;
    assert_fails(ctx, spmv_solver_create(ctx, &a, &o, &solver), SPMV_ERROR_UNSUPPORTED, "real systems");
    assert_null(solver);
    precond.near_null = NULL;
    precond.near_nulls = 0;
    o.precond = "amg";
    solver = solver_of(ctx, &a, &o); /* nodes of two rows */
    spmv_solver_destroy(solver);
    free(complex);
    void *const used[] = {values, wide, narrow, there, x};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        spmv_free(ctx, used[i]);
    free(scaled);
    spmv_matrix_destroy(matrix);
    spmv_matrix_destroy(rigid);
}

/* ---------------------------------------------------------------- the next preconditioner */

/* auto chooses jacobi, whose reciprocal overflows: none. By name it is an error. */
static void from_jacobi_to_none(void **state)
{
    spmv_context *ctx = *state;
    static const int32_t row_ptr[] = {0, 1, 2}, col[] = {0, 1};
    const double tiny[] = {1, 1e-310}, zeros[] = {0, 0};
    const spmv_csr a = support_csr(2, 2, row_ptr, col, tiny);
    spmv_solver_options o = defaults();
    o.solver = "cg"; /* auto would take a dense factor */
    spmv_solver_result result;
    void *const b = support_upload(ctx, zeros, sizeof zeros), *const x = support_upload(ctx, zeros, sizeof zeros);
    spmv_solver *solver = solver_of(ctx, &a, &o);
    assert_string_equal(spmv_last_error(ctx), "");
    assert_ok(ctx, spmv_solver_solve(solver, b, x, &result, sizeof result));
    assert_string_equal(result.precond, "none");
    assert_string_equal(result.why_precond,
                        "the first choice, jacobi, cannot be made: the diagonal entry of row 1 (counted from 0) is "
                        "1e-310, and its reciprocal overflows");
    spmv_solver_destroy(solver);
    o.precond = "jacobi";
    assert_fails(ctx, spmv_solver_create(ctx, &a, &o, &solver), SPMV_ERROR_NOT_FINITE, "overflows");
    assert_null(solver);
    support_free_in(ctx, b, x);
}

/* ---------------------------------------------------------------- one call */

static void one_call(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SPMV_F64, 64);
    for (int vectors = 1; vectors <= K; vectors += K - 1) {
        spmv_solver_options o = defaults();
        o.vectors = vectors;
        o.zero_start = 1;
        spmv_solver_result expected[K], result[K];
        spmv_solver *const solver = solver_of(ctx, &s.host, &o);
        assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, expected, sizeof *expected));
        spmv_solver_destroy(solver);
        void *const x = take_x(&s, vectors);
        for (int borrowed = 0; borrowed < 2; borrowed++) {
            set_x(&s, NAN);
            assert_ok(ctx, spmv_solve(ctx, borrowed ? &s.there : &s.host, s.b, s.x, &o, result, sizeof *result));
            void *const got = take_x(&s, vectors);
            assert_memory_equal(got, x, (size_t)bytes_of(&s, N * vectors));
            free(got);
            for (int v = 0; v < vectors; v++) {
                assert_true(result[v].iterations == expected[v].iterations && result[v].status == SPMV_OK);
                assert_true(result[v].true_residual == expected[v].true_residual);
                assert_string_equal(result[v].why_precond, expected[v].why_precond);
            }
        }
        free(x);
        /* A solver that cannot be made: x is unchanged, and every result has the status. */
        set_x(&s, 3);
        void *const before = take_x(&s, vectors);
        o.solver = "gauss";
        assert_fails(ctx, spmv_solve(ctx, &s.host, s.b, s.x, &o, result, sizeof *result), SPMV_ERROR_METHOD,
                     "there are: auto, cg");
        for (int v = 0; v < vectors; v++)
            assert_true(result[v].status == SPMV_ERROR_METHOD && result[v].size == sizeof *result &&
                        result[v].iterations == 0);
        void *const after = take_x(&s, vectors);
        assert_memory_equal(after, before, (size_t)bytes_of(&s, N * vectors));
        support_free(before, after);
    }
    /* from x, with all defaults */
    spmv_solver_result result;
    set_x(&s, 0.25);
    assert_ok(ctx, spmv_solve(ctx, &s.host, s.b, s.x, NULL, &result, sizeof result));
    assert_true(residual_of(&s, s.val, 1, 0) <= 1.0001 * result.tolerance);
    release(&s);
}

/* ---------------------------------------------------------------- statuses and refusals */

static int stop_at_two(int64_t iteration, double residual, void *user)
{
    assert_true(residual >= 0);
    *(int64_t *)user = iteration;
    return iteration == 2;
}

/* The statuses of spmv_cg arrive in the result. */
static void statuses(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SPMV_F64, 32);
    spmv_solver_options o = defaults();
    spmv_solver_result result;
    o.precond = "none";
    o.rung = "textbook";
    o.zero_start = 1;
    o.max_iterations = 3;
    spmv_solver *solver = solver_of(ctx, &s.host, &o);
    assert_fails(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result), SPMV_ERROR_ITERATIONS,
                 "3 iterations");
    assert_true(result.status == SPMV_ERROR_ITERATIONS && result.iterations == 3);
    assert_fails(ctx, spmv_solver_solve(solver, NULL, s.x, &result, sizeof result), SPMV_ERROR_ARGUMENT, "b is NULL");
    assert_true(result.status == SPMV_ERROR_ARGUMENT && result.iterations == 0);
    assert_fails(ctx, spmv_solver_solve(solver, s.b, s.b, &result, sizeof result), SPMV_ERROR_ARGUMENT, "same array");
    spmv_solver_destroy(solver);
    int64_t reached = -1;
    o.max_iterations = 0;
    o.on_iteration = stop_at_two;
    o.user = &reached;
    solver = solver_of(ctx, &s.host, &o);
    assert_fails(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result), SPMV_CANCELLED, "iteration 2");
    assert_true(result.status == SPMV_CANCELLED && reached == 2);
    spmv_solver_destroy(solver);
    /* one entry changed: not symmetric, unless the caller says so */
    o.on_iteration = NULL;
    o.max_iterations = 5;
    double *const values = values_of(&s, 0, 1);
    values[1] *= 1.5;
    spmv_csr a = s.host;
    a.val = values;
    solver = solver_of(ctx, &a, &o);
    assert_fails(ctx, spmv_solver_solve(solver, s.b, s.x, &result, sizeof result), SPMV_ERROR_NOT_SYMMETRIC,
                 "not symmetric");
    assert_int_equal(result.status, SPMV_ERROR_NOT_SYMMETRIC);
    /* new values are checked again */
    void *const good = support_upload(ctx, s.val, value_bytes(&s));
    assert_ok(ctx, spmv_solver_update_values(solver, good));
    assert_int_equal(spmv_solver_solve(solver, s.b, s.x, &result, sizeof result), SPMV_ERROR_ITERATIONS);
    spmv_solver_destroy(solver);
    o.symmetry_check = SPMV_SYMMETRY_TRUST;
    solver = solver_of(ctx, &a, &o);
    assert_int_equal(spmv_solver_solve(solver, s.b, s.x, &result, sizeof result), SPMV_ERROR_ITERATIONS);
    spmv_solver_destroy(solver);
    /* a result of an older, smaller struct */
    struct {
        size_t size;
        int64_t iterations, sentinel;
    } shorter = {.sentinel = 77};
    solver = solver_of(ctx, &s.host, NULL);
    assert_ok(ctx, spmv_solver_solve(solver, s.b, s.x, (spmv_solver_result *)(void *)&shorter, 16));
    assert_true(shorter.size == 16 && shorter.iterations > 0 && shorter.sentinel == 77);
    spmv_solver_destroy(solver);
    spmv_free(ctx, good);
    free(values);
    release(&s);
}

static int cancel(int64_t iteration, double residual, void *user)
{
    (void)iteration;
    (void)residual;
    ++*(int *)user;
    return 1;
}

/* Where the first of several complex right-hand sides is cancelled, the others are not begun. */
static void cancelled_complex(void **state)
{
    enum { ROWS = 4, VECTORS = 3 };
    spmv_context *ctx = *state;
    const int32_t row_ptr[] = {0, 2, 4, 6, 8}, col[] = {0, 1, 1, 2, 2, 3, 0, 3};
    const double val[4 * ROWS] = {2, 1, 1, 0, 3, 1, 1, 0, 2, -1, 1, 0, 1, 0, 3, 0};
    const double ones[2 * ROWS * VECTORS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6};
    spmv_csr a = support_csr(ROWS, ROWS, row_ptr, col, val);
    spmv_solver_options o;
    spmv_solver_result result[VECTORS];
    spmv_solver *solver = NULL;
    int calls = 0;
    a.type = SPMV_C128;
    spmv_solver_options_init(&o, sizeof o);
    o.solver = "gmres";
    o.vectors = VECTORS;
    o.zero_start = 1;
    o.on_iteration = cancel;
    o.user = &calls;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    void *const b = support_upload(ctx, ones, sizeof ones), *const x = support_upload(ctx, ones, sizeof ones);
    assert_fails(ctx, spmv_solver_solve(solver, b, x, result, sizeof *result), SPMV_CANCELLED,
                 "right-hand side 1 of 3");
    assert_int_equal(calls, 1);
    for (int v = 0; v < VECTORS; v++)
        assert_int_equal(result[v].status, SPMV_CANCELLED);
    spmv_solver_destroy(solver);
    support_free_in(ctx, b, x);
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SPMV_F64, 32);
    spmv_solver *solver = (void *)ctx;
    spmv_solver_options o = defaults();
    spmv_csr a = s.host;
    a.cols = N + 1;
    assert_fails(ctx, spmv_solver_create(ctx, &a, &o, &solver), SPMV_ERROR_NOT_SQUARE, "columns");
    assert_null(solver);
    a = s.host;
    a.nnz--;
    assert_fails(ctx, spmv_solver_create(ctx, &a, &o, &solver), SPMV_ERROR_SIZE, "spmv_solver_create: row_ptr runs");
    a = s.there;
    a.type = SPMV_C64; /* two f32 for each f64 */
    spmv_plan_options several;
    spmv_plan_options_init(&several, sizeof several);
    several.vectors = 2;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &several, &o.plan));
    assert_fails(ctx, spmv_solver_create(ctx, &a, &o, &solver), SPMV_ERROR_UNSUPPORTED,
                 "at once are not supported with type c64");
    spmv_plan_destroy(o.plan);
    o.plan = NULL;
    a.type = SPMV_I32;
    assert_fails(ctx, spmv_solver_create(ctx, &a, &o, &solver), SPMV_ERROR_TYPE, "i32");
    static const struct {
        spmv_solver_options o;
        spmv_status status;
        const char *text;
    } wrong[] = {{{.solver = "gmres2"},
                  SPMV_ERROR_METHOD,
                  "unknown solver \"gmres2\"; did you mean gmres? There are: auto, cg, minres"},
                 {{.solver = "gmres", .rung = "textbook"}, SPMV_ERROR_UNSUPPORTED, "rung are for the solver cg"},
                 {{.solver = "direct", .precond = "ilut"}, SPMV_ERROR_UNSUPPORTED, "no preconditioner"},
                 {{.restart = 256}, SPMV_ERROR_ARGUMENT, "restart 256"},
                 {{.precond = "ilu"},
                  SPMV_ERROR_METHOD,
                  "unknown preconditioner \"ilu\"; did you mean ilu0? There are: auto, none"},
                 {{.rung = "quick"}, SPMV_ERROR_METHOD, "unknown rung \"quick\""},
                 {{.type = SPMV_C64}, SPMV_ERROR_TYPE, "c64"},
                 {{.type = SPMV_F32}, SPMV_ERROR_TYPE, "f32"},
                 {{.vectors = -1}, SPMV_ERROR_ARGUMENT, "-1"},
                 {{.inner = 1, .vectors = 2}, SPMV_ERROR_UNSUPPORTED, "one right-hand side"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        o = defaults();
        o.solver = wrong[i].o.solver;
        o.precond = wrong[i].o.precond;
        o.rung = wrong[i].o.rung;
        o.type = wrong[i].o.type;
        o.inner = wrong[i].o.inner;
        o.restart = wrong[i].o.restart;
        o.vectors = wrong[i].o.vectors != 0 ? wrong[i].o.vectors : 1;
        assert_fails(ctx, spmv_solver_create(ctx, &s.host, &o, &solver), wrong[i].status, wrong[i].text);
        assert_null(solver);
    }
    struct system narrow = make(ctx, SPMV_F32, SPMV_F32, 32);
    o = defaults();
    o.inner = 1;
    assert_fails(ctx, spmv_solver_create(ctx, &narrow.host, &o, &solver), SPMV_ERROR_TYPE, "need the type f64");
    release(&narrow);
    double *const huge = values_of(&s, 0, 0);
    huge[s.nnz - 1] = -1e39;
    a = s.host;
    a.val = huge;
    assert_fails(ctx, spmv_solver_create(ctx, &a, &o, &solver), SPMV_ERROR_LIMIT, "-1e+39");
    free(huge);
    o = defaults();
    o.size = 3;
    assert_fails(ctx, spmv_solver_create(ctx, &s.host, &o, &solver), SPMV_ERROR_ARGUMENT, "spmv_solver_options_init");
    spmv_solver_destroy(NULL);
    /* without rows and without entries */
    const int32_t none[2] = {0, 0};
    const double no_value[1] = {0};
    a = support_csr(0, 0, none, NULL, NULL);
    spmv_solver_result result;
    assert_ok(ctx, spmv_solve(ctx, &a, NULL, NULL, NULL, &result, sizeof result));
    assert_string_equal(result.precond, "none");
    a = support_csr(1, 1, none, NULL, no_value);
    a.type = SPMV_F32;
    solver = solver_of(ctx, &a, NULL);
    spmv_solver_info info;
    spmv_plan_info plan;
    assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
    assert_ok(ctx, spmv_plan_describe(info.plan, &plan, sizeof plan));
    assert_int_equal(plan.type, SPMV_F32);
    assert_ok(ctx, spmv_solver_update_values(solver, s.b));
    spmv_solver_destroy(solver);
    release(&s);
}

SUPPORT_MAIN(with_context(bits_of_cg), with_context(one_by_one), with_context(many_columns),
             with_context(every_preconditioner), with_context(options_of_the_preconditioner), cmocka_unit_test(threads),
             with_context(new_values), with_context(new_values_that_fail), with_context(kept_aggregates),
             with_context(work_of_new_values), with_context(near_null_space), with_context(from_jacobi_to_none),
             with_context(one_call), with_context(statuses), with_context(refusals), with_context(cancelled_complex))
