/* Contexts, memory, options of other sizes, names and lists.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"

#include <pthread.h>

static void create_and_describe(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    assert_int_equal(spmv_context_backend(ctx), support_backend);
    assert_non_null(strstr(spmv_context_describe(ctx), spmv_backend_name(support_backend)));
    assert_true(spmv_context_threads(ctx) >= 1);
    assert_string_equal(spmv_last_error(ctx), "");
    spmv_context_destroy(ctx);
    spmv_context_destroy(NULL);
}

static void auto_says_why(void **state)
{
    (void)state;
    spmv_context *ctx = support_context_by_default();
    assert_int_not_equal(spmv_context_backend(ctx), SPMV_BACKEND_AUTO);
    assert_non_null(strstr(spmv_context_describe(ctx), "(auto"));
    spmv_context_destroy(ctx);
}

static void threads_are_kept(void **state)
{
    (void)state;
    spmv_context *ctx = support_context_on(SPMV_BACKEND_OMP, 3);
    assert_int_equal(spmv_context_threads(ctx), 3);
    spmv_context_destroy(ctx);
    spmv_context_options options = support_context_options();
    options.threads = -1;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_ERROR_ARGUMENT);
    assert_null(ctx);
    assert_non_null(strstr(spmv_last_error(NULL), "-1 threads"));
}

/* A program compiled with an older header has a shorter struct; one compiled with a newer header
 * has a longer one. */
static void options_of_other_sizes(void **state)
{
    (void)state;
    struct {
        spmv_context_options known;
        char unknown[16];
    } newer;
    memset(&newer, 0, sizeof newer);
    spmv_context_options_init(&newer.known, sizeof newer);
    assert_int_equal(newer.known.size, sizeof newer);
    assert_int_equal(newer.known.device, -1);
    newer.known.backend = support_backend;
    spmv_context *ctx = NULL;
    assert_int_equal(spmv_context_create(&newer.known, &ctx), SPMV_OK);
    spmv_context_destroy(ctx);

    newer.unknown[3] = 1; /* a setting that this library does not support */
    assert_int_equal(spmv_context_create(&newer.known, &ctx), SPMV_ERROR_ARGUMENT);
    assert_non_null(strstr(spmv_last_error(NULL), "spmv_context_options_init"));

    spmv_context_options older;
    memset(&older, 0x7f, sizeof older);
    spmv_context_options_init(&older, offsetof(spmv_context_options, device));
    assert_int_equal(older.size, offsetof(spmv_context_options, device));
    assert_int_equal(older.device, 0x7f7f7f7f); /* past the caller's struct: not written */
    older.backend = support_backend;
    assert_int_equal(spmv_context_create(&older, &ctx), SPMV_OK); /* ... and not read */
    spmv_context_destroy(ctx);

    older.size = 0; /* never filled */
    assert_int_equal(spmv_context_create(&older, &ctx), SPMV_ERROR_ARGUMENT);
}

static void memory_goes_round(void **state)
{
    spmv_context *ctx = *state;
    void *memory = &ctx;
    assert_ok(ctx, spmv_alloc(ctx, 0, &memory));
    assert_null(memory);
    assert_fails(ctx, spmv_alloc(ctx, -1, &memory), SPMV_ERROR_ARGUMENT, "-1");
    assert_fails(ctx, spmv_alloc(ctx, INT64_MAX, &memory), SPMV_ERROR_MEMORY, "9223372036854775807");
    assert_null(memory);
    const char text[] = "there and back";
    char back[sizeof text] = "";
    memory = support_upload(ctx, text, sizeof text);
    assert_int_equal((uintptr_t)memory % 64, 0);
    assert_ok(ctx, spmv_download(ctx, memory, back, sizeof text));
    assert_string_equal(back, text);
    assert_ok(ctx, spmv_synchronize(ctx));
    assert_fails(ctx, spmv_upload(ctx, NULL, memory, 1), SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_download(ctx, memory, back, -5), SPMV_ERROR_ARGUMENT, "-5");
    support_free_in(ctx, memory, NULL);
}

static void names_round_trip(void **state)
{
    (void)state;
#define CHECK(NAME, name, value, T, CLASS, ARG)                                                                        \
    {                                                                                                                  \
        spmv_type type = SPMV_TYPE_DEFAULT;                                                                            \
        assert_string_equal(spmv_type_name(SPMV_##NAME), #name);                                                       \
        assert_int_equal(spmv_type_parse(#name, &type), SPMV_OK);                                                      \
        assert_int_equal(type, SPMV_##NAME);                                                                           \
        assert_int_equal(spmv_type_size(type), sizeof(T));                                                             \
    }
    SPMV_TYPES(CHECK, )
    SPMV_COMPLEX_TYPES(CHECK, )
    SPMV_HALF_TYPES(CHECK, )
#undef CHECK
#define CHECK(NAME, name, value, commutes, i, r, t, ARG)                                                               \
    {                                                                                                                  \
        spmv_op op;                                                                                                    \
        assert_string_equal(spmv_op_name(SPMV_##NAME), #name);                                                         \
        assert_int_equal(spmv_op_parse(#name, &op), SPMV_OK);                                                          \
        assert_int_equal(op, SPMV_##NAME);                                                                             \
        assert_int_equal(spmv_op_commutes(op), commutes);                                                              \
        assert_int_equal(spmv_op_takes(op, SPMV_I32), i);                                                              \
        assert_int_equal(spmv_op_takes(op, SPMV_F64), r);                                                              \
        assert_int_equal(spmv_op_takes(op, SPMV_AFFINE_F64), op == SPMV_COMPOSE);                                      \
        assert_int_equal(spmv_op_takes(op, SPMV_SEGSUM_F64), op == SPMV_MAXSUM);                                       \
    }
    SPMV_OPERATORS(CHECK, )
#undef CHECK
    spmv_type type;
    spmv_op op;
    spmv_function function;
    assert_int_equal(spmv_type_parse("f8", &type), SPMV_ERROR_TYPE);
    assert_int_equal(spmv_op_parse("xor", &op), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_function_parse("neg", &function), SPMV_OK);
    assert_int_equal(function, SPMV_MAP_NEG);
    assert_string_equal(spmv_type_name((spmv_type)31), "?");
    assert_string_equal(spmv_op_name((spmv_op)-1), "?");
    assert_int_equal(spmv_type_size((spmv_type)99), 0);
    assert_int_equal(spmv_op_takes((spmv_op)99, SPMV_F64), 0);
}

static void identities(void **state)
{
    (void)state;
    int32_t i;
    int64_t l;
    double d;
    assert_int_equal(spmv_op_identity(SPMV_MIN, SPMV_I32, &i), SPMV_OK);
    assert_int_equal(i, INT32_MAX);
    assert_int_equal(spmv_op_identity(SPMV_MAX, SPMV_I32, &i), SPMV_OK);
    assert_int_equal(i, INT32_MIN);
    assert_int_equal(spmv_op_identity(SPMV_MAX, SPMV_I64, &l), SPMV_OK);
    assert_true(l == INT64_MIN);
    assert_int_equal(spmv_op_identity(SPMV_MIN, SPMV_F64, &d), SPMV_OK);
    assert_true(d > 1e308 && d == d + d);
    assert_int_equal(spmv_op_identity(SPMV_MUL, SPMV_F64, &d), SPMV_OK);
    assert_true(d == 1.0);
    assert_int_equal(spmv_op_identity(SPMV_MUL, (spmv_type)30, &d), SPMV_ERROR_TYPE);
}

static void statuses(void **state)
{
    (void)state;
    assert_string_equal(spmv_status_name(SPMV_ERROR_SIZE), "SPMV_ERROR_SIZE");
    assert_string_equal(spmv_status_text(SPMV_ERROR_MEMORY), "out of memory");
    assert_string_equal(spmv_status_name((spmv_status)12345), "SPMV_?");
    assert_int_equal(spmv_status_class(SPMV_OK), 0);
    assert_int_equal(spmv_status_class(SPMV_ERROR_SPEC), 1);
    assert_int_equal(spmv_status_class(SPMV_ERROR_CHECK), 9);
}

static void versions_agree(void **state)
{
    (void)state;
    char headers[64];
    snprintf(headers, sizeof headers, "%d.%d.%d", SPMV_VERSION_MAJOR, SPMV_VERSION_MINOR, SPMV_VERSION_PATCH);
    assert_string_equal(headers, spmv_version());
}

static void stream_of_a_host(void **state)
{
    spmv_context *ctx = *state;
    if (support_backend != SPMV_BACKEND_CUDA) { /* test_cuda_context changes streams */
        assert_fails(ctx, spmv_context_set_stream(ctx, NULL), SPMV_ERROR_UNSUPPORTED, "no streams");
        assert_null(spmv_context_stream(ctx));
    }
    assert_int_equal(spmv_context_set_stream(NULL, NULL), SPMV_ERROR_ARGUMENT);
}

/* A solve whose callback waits, in one thread, and calls on the same context in another one. */
struct meeting {
    spmv_context *ctx;
    spmv_plan *plan;
    void *x, *y;
    pthread_barrier_t begin, end;
    spmv_status inside; /* of a product within the callback */
};

static int meet(int64_t iteration, double residual, void *user)
{
    (void)residual;
    struct meeting *m = user;
    if (iteration != 1)
        return 0;
    pthread_barrier_wait(&m->begin);
    pthread_barrier_wait(&m->end);
    m->inside = spmv_apply(m->plan, NULL, m->x, NULL, m->y);
    return 1;
}

static void *solve_and_meet(void *user)
{
    struct meeting *m = user;
    spmv_cg_options options = support_cg_options();
    options.on_iteration = meet;
    options.user = m;
    options.rung = "textbook";
    options.zero_start = 1;
    options.symmetry_check = SPMV_SYMMETRY_TRUST;
    const int64_t bytes = 400 * (int64_t)sizeof(double);
    void *b = NULL, *x = NULL;
    spmv_status st = spmv_alloc(m->ctx, bytes, &b);
    if (st == SPMV_OK)
        st = spmv_alloc(m->ctx, bytes, &x);
    if (st == SPMV_OK)
        st = spmv_map_index(m->ctx, SPMV_F64, &(const double){1}, &(const double){0.5}, b, 400);
    if (st == SPMV_OK)
        st = spmv_cg(m->plan, b, x, &options, NULL, 0);
    support_free_in(m->ctx, b, x);
    return st == SPMV_CANCELLED ? m : NULL;
}

static void two_threads_meet(void **state)
{
    (void)state;
    struct meeting m = {.ctx = support_context(), .inside = SPMV_ERROR_CHECK};
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_plan *second = (spmv_plan *)&m;
    spmv_solver *solver = NULL;
    spmv_solver_result result = {.status = SPMV_OK};
    double number = 7;
    void *solved = NULL;
    pthread_t thread;
    assert_ok(m.ctx, spmv_matrix_generate(m.ctx, "poisson2d:20", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    assert_ok(m.ctx, spmv_plan_create(m.ctx, &a, NULL, &m.plan));
    assert_ok(m.ctx, spmv_solver_create(m.ctx, &a, NULL, &solver));
    assert_ok(m.ctx, spmv_alloc(m.ctx, 400 * (int64_t)sizeof(double), &m.x));
    assert_ok(m.ctx, spmv_alloc(m.ctx, 400 * (int64_t)sizeof(double), &m.y));
    assert_ok(m.ctx, spmv_map_index(m.ctx, SPMV_F64, &(const double){3}, NULL, m.x, 400));
    assert_int_equal(pthread_barrier_init(&m.begin, NULL, 2), 0);
    assert_int_equal(pthread_barrier_init(&m.end, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, solve_and_meet, &m), 0);
    pthread_barrier_wait(&m.begin);
    assert_int_equal(spmv_apply(m.plan, NULL, m.x, NULL, m.y), SPMV_ERROR_BUSY);
    assert_int_equal(spmv_apply_with(m.plan, NULL, m.x, NULL, m.y, NULL), SPMV_ERROR_BUSY);
    assert_int_equal(spmv_plan_create(m.ctx, &a, NULL, &second), SPMV_ERROR_BUSY);
    assert_null(second);
    assert_int_equal(spmv_plan_update_values(m.plan, a.val), SPMV_ERROR_BUSY);
    assert_int_equal(spmv_cg(m.plan, m.x, m.y, NULL, NULL, 0), SPMV_ERROR_BUSY);
    assert_int_equal(spmv_solver_solve(solver, m.x, m.y, &result, sizeof result), SPMV_ERROR_BUSY);
    assert_int_equal(result.status, SPMV_ERROR_BUSY);
    assert_int_equal(spmv_solver_update_values(solver, m.x), SPMV_ERROR_BUSY);
    assert_int_equal(spmv_solver_set_callbacks(solver, NULL, NULL, NULL), SPMV_ERROR_BUSY);
    spmv_context_destroy(m.ctx); /* does nothing: the other thread uses it */
    assert_int_equal(spmv_download(m.ctx, m.x, &number, sizeof number), SPMV_ERROR_BUSY);
    assert_int_equal(spmv_upload(m.ctx, &number, m.y, sizeof number), SPMV_ERROR_BUSY);
    assert_int_equal(spmv_synchronize(m.ctx), SPMV_ERROR_BUSY);
    assert_int_equal(spmv_context_set_stream(m.ctx, NULL), SPMV_ERROR_BUSY);
    assert_true(number == 7);
    pthread_barrier_wait(&m.end);
    assert_int_equal(pthread_join(thread, &solved), 0);
    assert_ptr_equal(solved, &m);
    assert_int_equal(m.inside, SPMV_OK);
    assert_ok(m.ctx, spmv_apply(m.plan, NULL, m.x, NULL, m.y)); /* free again */
    assert_ok(m.ctx, spmv_download(m.ctx, m.y, &number, sizeof number));
    assert_true(number == 6); /* a corner: 4 x 3 - 2 x 3 */
    pthread_barrier_destroy(&m.begin);
    pthread_barrier_destroy(&m.end);
    support_free_in(m.ctx, m.x, m.y);
    spmv_solver_destroy(solver);
    spmv_plan_destroy(m.plan);
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(m.ctx);
}

SUPPORT_MAIN(cmocka_unit_test(versions_agree), with_context(stream_of_a_host), cmocka_unit_test(two_threads_meet),
             cmocka_unit_test(create_and_describe), cmocka_unit_test(auto_says_why), cmocka_unit_test(threads_are_kept),
             cmocka_unit_test(options_of_other_sizes), with_context(memory_goes_round),
             cmocka_unit_test(names_round_trip), cmocka_unit_test(identities), cmocka_unit_test(statuses))
