/* Conjugate gradients for several right-hand sides with preconditioners: every kind, by every rung, against as many
 * single solves; columns of unlike fate; bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "support.h"

/* Where the host plays the GPU, thread by thread, only what is small is run. */
#ifdef HOST_CUDA
enum { SIDE = 7 };
#else
enum { SIDE = 30 };
#endif

enum { K = 3, MOST = 5 };

/* S (L + I) S, L the 5-point Laplacian: what Jacobi is for. Well-conditioned, so that counts do not hang on rounding.
 */
struct system {
    spmv_context *ctx;
    spmv_type type;
    int64_t n;
    int32_t *row_ptr, *col;
    void *val;
    spmv_csr a;
    spmv_plan *one, *several; /* for one vector, for k */
    int k;
    void *b, *x; /* in the context's memory: n k */
    void *b_one, *x_one;
    double *host; /* n k */
};

static int64_t bytes_of(const struct system *s, int64_t count)
{
    return count * (int64_t)spmv_type_size(s->type);
}

static double get(const struct system *s, const void *values, int64_t i)
{
    return s->type == SPMV_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void put(const struct system *s, void *values, int64_t i, double value)
{
    if (s->type == SPMV_F32)
        ((float *)values)[i] = (float)value;
    else
        ((double *)values)[i] = value;
}

static double scale_of(int64_t i)
{
    return 1 + (double)(i * 7 % 10) / 4;
}

static spmv_plan *plan_for(const struct system *s, int vectors)
{
    spmv_plan *plan = NULL;
    spmv_plan_options options;
    spmv_plan_options_init(&options, sizeof options);
    options.vectors = vectors;
    assert_ok(s->ctx, spmv_plan_create(s->ctx, &s->a, &options, &plan));
    return plan;
}

static struct system make(spmv_context *ctx, spmv_type type, int64_t side, int k)
{
    struct system s = {.ctx = ctx, .type = type, .n = side * side, .k = k};
    int32_t nnz = 0;
    s.row_ptr = malloc(((size_t)s.n + 1) * sizeof *s.row_ptr);
    s.col = malloc(5 * (size_t)s.n * sizeof *s.col);
    s.val = malloc(5 * (size_t)s.n * 8);
    s.row_ptr[0] = 0;
    for (int64_t i = 0; i < s.n; i++) {
        const int64_t c = i % side, at[] = {i - side, i - 1, i, i + 1, i + side};
        const bool there[] = {i >= side, c > 0, true, c < side - 1, i < s.n - side};
        for (int e = 0; e < 5; e++)
            if (there[e]) {
                s.col[nnz] = (int32_t)at[e];
                put(&s, s.val, nnz++, (e == 2 ? 5 : -1) * scale_of(i) * scale_of(at[e]));
            }
        s.row_ptr[i + 1] = nnz;
    }
    s.a = (spmv_csr){.rows = s.n,
                     .cols = s.n,
                     .nnz = nnz,
                     .row_ptr = s.row_ptr,
                     .row_ptr_bits = 32,
                     .col = s.col,
                     .val = s.val,
                     .type = type,
                     .memory = SPMV_MEMORY_HOST};
    s.one = plan_for(&s, 1);
    s.several = plan_for(&s, k);
    s.host = calloc((size_t)(s.n * k), 8);
    s.b = support_upload(ctx, s.host, bytes_of(&s, s.n * k));
    s.x = support_upload(ctx, s.host, bytes_of(&s, s.n * k));
    s.b_one = support_upload(ctx, s.host, bytes_of(&s, s.n));
    s.x_one = support_upload(ctx, s.host, bytes_of(&s, s.n));
    return s;
}

static void release(struct system *s)
{
    void *const memory[] = {s->b, s->x, s->b_one, s->x_one};
    for (int i = 0; i < 4; i++)
        spmv_free(s->ctx, memory[i]);
    spmv_plan_destroy(s->one);
    spmv_plan_destroy(s->several);
    free(s->row_ptr);
    free(s->col);
    free(s->val);
    free(s->host);
}

/* Element i of the exact solution of column v: within 1 and 2 for v = 0, the others larger and of both signs. */
static double solution(int64_t i, int v)
{
    return v == 0 ? 1 + (double)(i % 11) / 11 : pow(10, v) * ((double)(i * 7919 % 2003) / 1001 - 1);
}

/* b of column v, in place v of s->host, which has `columns`. */
static void make_b(const struct system *s, int v, int columns, int place)
{
    for (int64_t i = 0; i < s->n; i++) {
        double sum = 0;
        for (int32_t e = s->row_ptr[i]; e < s->row_ptr[i + 1]; e++)
            sum += get(s, s->val, e) * solution(s->col[e], v);
        put(s, s->host, i * columns + place, sum);
    }
}

static void make_all_b(const struct system *s)
{
    for (int v = 0; v < s->k; v++)
        make_b(s, v, s->k, v);
    assert_ok(s->ctx, spmv_upload(s->ctx, s->host, s->b, bytes_of(s, s->n * s->k)));
}

static void fetch_x(const struct system *s, double *x)
{
    assert_ok(s->ctx, spmv_download(s->ctx, s->x, s->host, bytes_of(s, s->n * s->k)));
    for (int64_t i = 0; i < s->n * s->k; i++)
        x[i] = get(s, s->host, i);
}

/* ------------------------------------------------------------- preconditioners */

/* z = r / 4, or at one call another factor. */
struct own {
    const struct system *s;
    double other;
    int calls, other_at; /* -1: at none */
};

static spmv_status own_apply(void *self, const void *r, void *z)
{
    struct own *own = self;
    const double factor = own->calls++ == own->other_at ? own->other : 0.25;
    const float narrow = (float)factor;
    const bool single = own->s->type == SPMV_F32;
    return spmv_map_scalar(own->s->ctx, SPMV_MUL, own->s->type, single ? (const void *)&narrow : (const void *)&factor,
                           r, z, own->s->n);
}

static const spmv_preconditioner_class own_class = {.size = sizeof own_class, .name = "own", .apply = own_apply};

/* The kind of that index; the one behind the built-in ones is one's own. NULL: not here, which only hypre's may be. */
static spmv_preconditioner *make_kind(const struct system *s, int index, struct own *own)
{
    spmv_preconditioner *m = NULL;
    const char *name = spmv_preconditioner_name(index);
    *own = (struct own){.s = s, .other_at = -1};
    if (name == NULL) {
        assert_ok(s->ctx, spmv_preconditioner_wrap(s->ctx, s->type, s->n, &own_class, own, &m));
        return m;
    }
    const spmv_status st = spmv_preconditioner_create(s->ctx, name, &s->a, NULL, &m);
    if (st != SPMV_ERROR_UNSUPPORTED || strcmp(name, "amg") != 0)
        assert_ok(s->ctx, st);
    else if (s->type == SPMV_F64 && support_backend != SPMV_BACKEND_CUDA && getenv("SPMV_HYPRE_BUILT") != NULL)
        fail_msg("amg is built, and was not found: %s", spmv_last_error(s->ctx));
    return m;
}

/* The i-th rung of the backend, then auto, in options; false: there are no more. */
static bool with_rung(int i, spmv_cg_options *options)
{
    spmv_cg_options_init(options, sizeof *options);
    options->zero_start = 1;
    options->method = spmv_cg_method_name(support_backend, i);
    if (options->method == NULL && i > 0 && spmv_cg_method_name(support_backend, i - 1) != NULL)
        options->method = "auto";
    return options->method != NULL;
}

/* Which rungs run several right-hand sides with this preconditioner. */
static bool must_run(const char *rung, const char *precond)
{
    const bool jacobi = strcmp(precond, "jacobi") == 0;
    const bool fused = strcmp(rung, "fused") == 0, graph = strcmp(rung, "graph") == 0;
    return strcmp(rung, "textbook") == 0 || strcmp(rung, "auto") == 0 ||
           (jacobi && ((support_backend == SPMV_BACKEND_OMP && fused) ||
                       (support_backend == SPMV_BACKEND_CUDA && (fused || graph))));
}

/* A single solve of column v with the same M: iterations and x. */
static spmv_cg_result solve_one(const struct system *s, int v, const spmv_cg_options *options, double *x)
{
    spmv_cg_result result;
    spmv_cg_options single = *options;
    single.method = "textbook";
    make_b(s, v, 1, 0);
    assert_ok(s->ctx, spmv_upload(s->ctx, s->host, s->b_one, bytes_of(s, s->n)));
    const spmv_status st = spmv_cg(s->one, s->b_one, s->x_one, &single, &result, sizeof result);
    if (st != SPMV_ERROR_ITERATIONS)
        assert_ok(s->ctx, st);
    assert_ok(s->ctx, spmv_download(s->ctx, s->x_one, s->host, bytes_of(s, s->n)));
    for (int64_t i = 0; i < s->n; i++)
        x[i] = get(s, s->host, i);
    return result;
}

/* As each by itself: iterations within 1, and x. Both solve to a residual of rtol ||b||, and the least eigenvalue is
 * above 1, so their errors differ by at most 2 rtol ||b||. */
static void compare(const struct system *s, const spmv_cg_options *options, const char *name)
{
    spmv_cg_result results[K];
    double *x = malloc((size_t)(s->n * K) * sizeof *x), *x_one = malloc((size_t)s->n * sizeof *x_one);
    make_all_b(s);
    const spmv_status st = spmv_cg(s->several, s->b, s->x, options, results, sizeof *results);
    if (st != SPMV_OK)
        fail_msg("%s, %s: %s", options->method, name, spmv_last_error(s->ctx));
    fetch_x(s, x);
    for (int v = 0; v < K; v++) {
        const spmv_cg_result one = solve_one(s, v, options, x_one);
        assert_string_equal(results[v].precond, name);
        assert_true(results[v].status == SPMV_OK && results[v].true_residual <= results[v].tolerance);
        if (llabs(results[v].iterations - one.iterations) > 1 || one.iterations < 1)
            fail_msg("%s, %s, column %d: %lld iterations, alone %lld", options->method, name, v,
                     (long long)results[v].iterations, (long long)one.iterations);
        for (int64_t i = 0; i < s->n; i++)
            if (!(fabs(x[i * K + v] - x_one[i]) <= 2 * options->rtol * one.norm_b))
                fail_msg("%s, %s, column %d: x[%lld] = %g, alone %g", options->method, name, v, (long long)i,
                         x[i * K + v], x_one[i]);
    }
    free(x);
    free(x_one);
}

static void every_kind(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    spmv_cg_options options;
    for (int type = 0; type < 2; type++) {
        struct system s = make(ctx, type == 0 ? SPMV_F64 : SPMV_F32, SIDE, K);
        int done = 0;
        for (int kind = 0; kind == 0 || spmv_preconditioner_name(kind - 1) != NULL; kind++) {
            struct own own;
            spmv_preconditioner *m = make_kind(&s, kind, &own);
            const char *name = spmv_preconditioner_name(kind) != NULL ? spmv_preconditioner_name(kind) : "own";
            for (int i = 0; m != NULL && with_rung(i, &options); i++) {
                options.precond = m;
                options.rtol = type == 0 ? 1e-10 : 1e-4;
                if (must_run(options.method, name)) {
                    compare(&s, &options, name);
                    done++;
                    continue;
                }
                spmv_cg_result results[K];
                assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, results, sizeof *results),
                             SPMV_ERROR_UNSUPPORTED, options.method);
                assert_true(results[0].status == SPMV_ERROR_UNSUPPORTED &&
                            results[K - 1].status == SPMV_ERROR_UNSUPPORTED);
            }
            spmv_preconditioner_destroy(m);
        }
        assert_true(done >= 12); /* six kinds, by name and by choice */
        release(&s);
    }
    spmv_context_destroy(ctx);
}

/* ---------------------------------------------------------------------- fates */

/* With M, one column each: solved, zeros, an exact start, a number that is not finite, one far larger. */
static void unlike_columns(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    struct system s = make(ctx, SPMV_F64, SIDE, MOST);
    double *b = calloc((size_t)(s.n * MOST), sizeof *b), *x = malloc((size_t)(s.n * MOST) * sizeof *x);
    for (int kind = 0; kind == 0 || spmv_preconditioner_name(kind - 1) != NULL; kind++) {
        struct own own;
        spmv_cg_options options;
        spmv_cg_result r[MOST];
        spmv_preconditioner *m = make_kind(&s, kind, &own);
        if (m == NULL)
            continue;
        spmv_cg_options_init(&options, sizeof options);
        options.precond = m;
        for (int v = 0; v < MOST; v++)
            make_b(&s, v == 4 ? 2 : 0, MOST, v);
        memcpy(b, s.host, (size_t)(s.n * MOST) * sizeof *b);
        for (int64_t i = 0; i < s.n; i++) {
            b[i * MOST + 1] = 0;
            b[i * MOST + 3] = i == s.n / 2 ? NAN : 1;
            b[i * MOST + 4] *= 1e12;
            x[i * MOST] = x[i * MOST + 1] = (double)(i % 3);
            x[i * MOST + 2] = solution(i, 0);
            x[i * MOST + 3] = 5;
            x[i * MOST + 4] = 0;
        }
        assert_ok(ctx, spmv_upload(ctx, b, s.b, bytes_of(&s, s.n * MOST)));
        assert_ok(ctx, spmv_upload(ctx, x, s.x, bytes_of(&s, s.n * MOST)));
        const spmv_status st = spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r);
        assert_int_equal(st, SPMV_ERROR_NOT_FINITE);
        assert_non_null(strstr(spmv_last_error(ctx), "right-hand side 4 of 5"));
        fetch_x(&s, x);
        for (int v = 0; v < MOST; v++)
            assert_int_equal(r[v].status, v == 3 ? SPMV_ERROR_NOT_FINITE : SPMV_OK);
        assert_true(r[0].iterations > 0 && r[1].iterations == 0 && r[2].iterations == 0 && r[3].iterations == 0 &&
                    r[4].iterations > 0);
        for (int64_t i = 0; i < s.n; i++) {
            assert_true(fabs(x[i * MOST] - solution(i, 0)) < 1e-4 && x[i * MOST + 1] == 0);
            assert_true(x[i * MOST + 2] == solution(i, 0) && x[i * MOST + 3] == 5);
            assert_true(fabs(x[i * MOST + 4] - 1e12 * solution(i, 2)) < 1e10);
        }
        spmv_preconditioner_destroy(m);
    }
    free(b);
    free(x);
    release(&s);
    spmv_context_destroy(ctx);
}

/* M turns bad for the second of two columns in its fourth application: that one keeps the iterate it had, the first
 * goes on, also through restarts (rtol out of reach). */
static void broken_late(void **state)
{
    (void)state;
    static const struct {
        double factor, rtol;
        spmv_status status, first;
        const char *words;
    } cases[] = {{NAN, 1e-10, SPMV_ERROR_NOT_FINITE, SPMV_OK, "of the preconditioner"},
                 {NAN, 1e-30, SPMV_ERROR_NOT_FINITE, SPMV_ERROR_STAGNATION, "right-hand side 1 of 2"},
                 {-0.25, 1e-10, SPMV_ERROR_NOT_POSITIVE, SPMV_OK, "the preconditioner is not positive definite"}};
    spmv_context *ctx = support_context();
    struct system s = make(ctx, SPMV_F64, SIDE, 2);
    double *x = malloc((size_t)(s.n * 2) * sizeof *x), *x_one = malloc((size_t)s.n * sizeof *x_one);
    struct own own = {.s = &s};
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    options.zero_start = 1;
    assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, s.n, &own_class, &own, &options.precond));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        spmv_cg_result r[2];
        make_all_b(&s);
        own = (struct own){.s = &s, .other = cases[c].factor, .other_at = 7};
        options.rtol = cases[c].rtol;
        options.max_iterations = 0;
        const spmv_status st = spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r);
        assert_int_equal(st, cases[c].first != SPMV_OK ? cases[c].first : cases[c].status);
        if (strstr(spmv_last_error(ctx), cases[c].words) == NULL)
            fail_msg("factor %g: %s", cases[c].factor, spmv_last_error(ctx));
        assert_true(r[0].status == cases[c].first && r[1].status == cases[c].status);
        assert_true(r[1].iterations == 3 && r[0].iterations > 10);
        assert_true(cases[c].first == SPMV_OK || r[0].restarts > 0);
        fetch_x(&s, x);
        own.other_at = -1;
        options.max_iterations = 3;
        const spmv_cg_result one = solve_one(&s, 1, &options, x_one);
        assert_int_equal(one.status, SPMV_ERROR_ITERATIONS);
        for (int64_t i = 0; i < s.n; i++) {
            assert_true(fabs(x[2 * i] - solution(i, 0)) < 1e-6);
            assert_true(fabs(x[2 * i + 1] - x_one[i]) <= 1e-12 * one.norm_b);
        }
        assert_true(fabs(r[1].true_residual - one.true_residual) <= 1e-10 * one.norm_b);
    }
    spmv_preconditioner_destroy(options.precond);
    free(x);
    free(x_one);
    release(&s);
    spmv_context_destroy(ctx);
}

/* Steps that made a column worse are taken back: one that overflowed, and, where the tolerance is out of reach, any;
 * the others keep theirs. By every rung, with and without M. */
static void steps_taken_back(void **state)
{
    (void)state;
    static const int32_t row_ptr[] = {0, 1, 2}, col[] = {0, 1};
    static const double val[] = {1e-310, 4}, b[] = {1, 0, 0, 8}, start[] = {5, 1, 0, 1};
    spmv_context *ctx = support_context();
    spmv_cg_options options;
    for (int i = 0; with_rung(i, &options); i++) {
        double x[4];
        spmv_cg_result r[2];
        const spmv_csr a = support_csr(2, 2, row_ptr, col, val);
        struct system s = {.ctx = ctx, .type = SPMV_F64, .a = a};
        spmv_plan *plan = plan_for(&s, 2);
        void *there_b = support_upload(ctx, b, sizeof b), *there_x = support_upload(ctx, start, sizeof start);
        options.zero_start = 0;
        const spmv_status st = spmv_cg(plan, there_b, there_x, &options, r, sizeof *r);
        assert_int_equal(st, must_run(options.method, "jacobi") ? SPMV_ERROR_NOT_FINITE : SPMV_ERROR_UNSUPPORTED);
        assert_ok(ctx, spmv_download(ctx, there_x, x, sizeof x));
        if (st != SPMV_ERROR_UNSUPPORTED) { /* 1 / 1e-310 overflows */
            assert_true(x[0] == 5 && x[2] == 0 && r[0].iterations == 1 && r[0].true_residual == 1);
            assert_true(r[1].status == SPMV_OK && fabs(x[3] - 2) < 1e-7);
        }
        spmv_free(ctx, there_b);
        spmv_free(ctx, there_x);
        spmv_plan_destroy(plan);
    }
    struct system s = make(ctx, SPMV_F64, SIDE, K);
    for (int i = 0; with_rung(i, &options); i++)
        for (int kind = 0; kind < 2; kind++) {
            struct own own;
            double before[K] = {INFINITY, INFINITY, INFINITY};
            uint64_t seed = 3;
            options.precond = kind == 0 ? NULL : make_kind(&s, kind, &own); /* jacobi */
            options.rtol = 0;
            for (int64_t j = 0; j < s.n * K; j++)
                put(&s, s.host, j, support_uniform(&seed));
            assert_ok(ctx, spmv_upload(ctx, s.host, s.b, bytes_of(&s, s.n * K)));
            for (int solve = 0; solve < (SIDE < 10 ? 4 : 12) && must_run(options.method, "jacobi"); solve++) {
                spmv_cg_result r[K];
                options.zero_start = solve == 0;
                /* the first begins anew, and goes on where the others are settled */
                assert_ok(ctx, spmv_download(ctx, s.x, s.host, bytes_of(&s, s.n * K)));
                for (int64_t j = 0; j < s.n; j++)
                    put(&s, s.host, j * K, 0);
                assert_ok(ctx, spmv_upload(ctx, s.host, s.x, bytes_of(&s, s.n * K)));
                before[0] = INFINITY;
                assert_int_equal(spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_ERROR_STAGNATION);
                for (int v = 0; v < K; v++) {
                    if (!(r[v].true_residual <= before[v]) || r[v].true_residual > 1e-12 * r[v].norm_b)
                        fail_msg("%s, column %d: a true residual of %g, after %g", options.method, v,
                                 r[v].true_residual, before[v]);
                    before[v] = r[v].true_residual;
                }
            }
            spmv_preconditioner_destroy(options.precond);
        }
    release(&s);
    spmv_context_destroy(ctx);
}

/* The limit of iterations is each column's own. */
static void limits(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    struct system s = make(ctx, SPMV_F64, SIDE, K);
    struct own own;
    for (int kind = 0; kind < 5; kind++) {
        spmv_cg_options options;
        spmv_cg_result r[K];
        spmv_preconditioner *m = make_kind(&s, kind, &own);
        spmv_cg_options_init(&options, sizeof options);
        options.precond = m;
        options.rtol = 1e-12;
        options.max_iterations = 2;
        options.zero_start = 1;
        make_all_b(&s);
        for (int64_t i = 0; i < s.n; i++)
            put(&s, s.host, i * K, 0);
        assert_ok(ctx, spmv_upload(ctx, s.host, s.b, bytes_of(&s, s.n * K)));
        assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_ERROR_ITERATIONS,
                     "right-hand side 2 of 3");
        assert_true(r[0].status == SPMV_OK && r[0].iterations == 0);
        for (int v = 1; v < K; v++)
            assert_true(r[v].status == SPMV_ERROR_ITERATIONS && r[v].iterations == 2 && isfinite(r[v].true_residual));
        spmv_preconditioner_destroy(m);
    }
    release(&s);
    spmv_context_destroy(ctx);
}

/* ----------------------------------------------------------------------- bits */

static void same_bits(void **state)
{
    (void)state;
    double *first = NULL;
    const int threads[] = {1, 2, 3, 4, 4};
    for (int kind = 1; kind < 5; kind++) {
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            spmv_context *ctx = support_context_on(support_backend, threads[t]);
            struct system s = make(ctx, SPMV_F64, SIDE, K);
            struct own own;
            spmv_cg_options options;
            spmv_cg_result r[K];
            double *x = malloc((size_t)(s.n * K) * sizeof *x);
            spmv_preconditioner *m = make_kind(&s, kind, &own);
            spmv_cg_options_init(&options, sizeof options);
            options.precond = m;
            options.zero_start = 1;
            options.method = "textbook";
            make_all_b(&s);
            assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r));
            fetch_x(&s, x);
            if (first == NULL) {
                first = x;
            } else {
                assert_memory_equal(first, x, (size_t)(s.n * K) * sizeof *x);
                free(x);
            }
            spmv_preconditioner_destroy(m);
            release(&s);
            spmv_context_destroy(ctx);
        }
        free(first);
        first = NULL;
    }
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind),       cmocka_unit_test(unlike_columns), cmocka_unit_test(broken_late),
        cmocka_unit_test(steps_taken_back), cmocka_unit_test(limits),         cmocka_unit_test(same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
