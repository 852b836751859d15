/* Contexts, memory, options of other sizes, names and lists.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "support.h"

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
    spmv_context *ctx = NULL;
    assert_int_equal(spmv_context_create(NULL, &ctx), SPMV_OK);
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
    spmv_context_options options;
    spmv_context_options_init(&options, sizeof options);
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
    (void)state;
    spmv_context *ctx = support_context();
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
    spmv_free(ctx, memory);
    spmv_free(ctx, NULL);
    spmv_context_destroy(ctx);
}

static void names_round_trip(void **state)
{
    (void)state;
#define CHECK(NAME, name, value, T, D, CLASS, ARG)                                                                     \
    {                                                                                                                  \
        spmv_type type = SPMV_TYPE_DEFAULT;                                                                            \
        assert_string_equal(spmv_type_name(SPMV_##NAME), #name);                                                       \
        assert_int_equal(spmv_type_parse(#name, &type), SPMV_OK);                                                      \
        assert_int_equal(type, SPMV_##NAME);                                                                           \
        assert_int_equal(spmv_type_size(type), sizeof(T));                                                             \
    }
    SPMV_TYPE_LIST(CHECK, )
    SPMV_COMPLEX_LIST(CHECK, )
#undef CHECK
#define CHECK(NAME, name, value, commutes, i, r, c, t, ARG)                                                            \
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
    SPMV_OP_LIST(CHECK, )
#undef CHECK
    spmv_type type;
    spmv_op op;
    spmv_function function;
    assert_int_equal(spmv_type_parse("f16", &type), SPMV_ERROR_TYPE);
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

SUPPORT_MAIN(cmocka_unit_test(create_and_describe), cmocka_unit_test(auto_says_why), cmocka_unit_test(threads_are_kept),
             cmocka_unit_test(options_of_other_sizes), cmocka_unit_test(memory_goes_round),
             cmocka_unit_test(names_round_trip), cmocka_unit_test(identities), cmocka_unit_test(statuses))
