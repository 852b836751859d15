/* Map: functions, operators on two arrays or on a scalar and an array, and arithmetic sequences.
 * Covers every function or operator and type at the seams, in place, operand order, wrap-around,
 * NaN, statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support_pairs.h"

/* Destination of the result: separate memory, or over the first or second operand. */
enum place { ELSEWHERE, OVER_A, OVER_B };

/* ------------------------------------------------------- functions */

struct function_pair {
    spmv_function function;
    spmv_type type;
    int64_t size;
    const char *name;
    void (*fill)(void *x, int64_t n);
    void (*apply)(const void *in, void *out, int64_t n);
};

#define DEFINE_FUNCTION(FN, fn, TYPE, type, T, CLASS)                                                                  \
    static void fill_##fn##_##type(void *x, int64_t n)                                                                 \
    {                                                                                                                  \
        uint64_t seed = 53;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const double u = 1000 * support_uniform(&seed);                                                            \
            ((T *)x)[i] = (T)(SPMV_MAP_##FN == SPMV_MAP_SQRT ? fabs(u) : u);                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void apply_##fn##_##type(const void *in, void *out, int64_t n)                                              \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)out)[i] = function_##fn##_##type(((const T *)in)[i]);                                                \
    }
SPMV_FUNCTION_PAIRS(DEFINE_FUNCTION)

#define FUNCTION_ROW(FN, fn, TYPE, type_, T, CLASS)                                                                    \
    {.function = SPMV_MAP_##FN,                                                                                        \
     .type = SPMV_##TYPE,                                                                                              \
     .size = sizeof(T),                                                                                                \
     .name = #fn " " #type_,                                                                                           \
     .fill = fill_##fn##_##type_,                                                                                      \
     .apply = apply_##fn##_##type_},
static const struct function_pair function_pairs[] = {SPMV_FUNCTION_PAIRS(FUNCTION_ROW)};
enum { FUNCTION_PAIRS = sizeof function_pairs / sizeof function_pairs[0] };

static void *map(spmv_context *ctx, spmv_function function, spmv_type type, const void *in, int64_t n, enum place place)
{
    const int64_t bytes = n * (int64_t)spmv_type_size(type);
    void *from = support_upload(ctx, in, bytes);
    void *to = place == ELSEWHERE ? guarded_result(ctx, bytes) : guarded_copy(ctx, in, bytes);
    assert_ok(ctx, spmv_map(ctx, function, type, place == ELSEWHERE ? from : to, to, n));
    spmv_free(ctx, from);
    return take_result(ctx, to, bytes, spmv_function_name(function));
}

static void *map_binary(spmv_context *ctx, spmv_op op, spmv_type type, const void *a, const void *b, int64_t n,
                        enum place place)
{
    const int64_t bytes = n * (int64_t)spmv_type_size(type);
    void *at_a = support_upload(ctx, a, bytes), *at_b = support_upload(ctx, b, bytes);
    void *to = place == ELSEWHERE ? guarded_result(ctx, bytes) : guarded_copy(ctx, place == OVER_A ? a : b, bytes);
    assert_ok(ctx, spmv_map_binary(ctx, op, type, place == OVER_A ? to : at_a, place == OVER_B ? to : at_b, to, n));
    support_free_in(ctx, at_a, at_b);
    return take_result(ctx, to, bytes, spmv_op_name(op));
}

static void *map_scalar(spmv_context *ctx, spmv_op op, spmv_type type, const void *scalar, const void *in, int64_t n,
                        enum place place)
{
    const int64_t bytes = n * (int64_t)spmv_type_size(type);
    void *from = support_upload(ctx, in, bytes);
    void *to = place == ELSEWHERE ? guarded_result(ctx, bytes) : guarded_copy(ctx, in, bytes);
    assert_ok(ctx, spmv_map_scalar(ctx, op, type, scalar, place == ELSEWHERE ? from : to, to, n));
    spmv_free(ctx, from);
    return take_result(ctx, to, bytes, spmv_op_name(op));
}

static void *map_index(spmv_context *ctx, spmv_type type, const void *first, const void *step, int64_t n)
{
    const int64_t bytes = n * (int64_t)spmv_type_size(type);
    void *to = guarded_result(ctx, bytes);
    assert_ok(ctx, spmv_map_index(ctx, type, first, step, to, n));
    return take_result(ctx, to, bytes, "map_index");
}

/* ------------------------------------------------------ expected values by hand */

/* call: expression that returns a host array with n results */
#define CHECK_VALUES(T, want, call)                                                                                    \
    do {                                                                                                               \
        const T want_[] = want;                                                                                        \
        const int64_t n = (int64_t)(sizeof want_ / sizeof(T));                                                         \
        void *got_ = call;                                                                                             \
        assert_same(got_, want_, sizeof(T), n, #call);                                                                 \
        free(got_);                                                                                                    \
    } while (0)

static void functions_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const double d[] = {4, -0.25, 0, -3};
    const float f[] = {4, -0.25f, 0, -3};
    const int32_t i[] = {4, -3, 0, INT32_MIN};
    const int64_t l[] = {4, -3, 0, INT64_MIN};
    CHECK_VALUES(double, LIST(4, -0.25, 0, -3), map(ctx, SPMV_MAP_COPY, SPMV_F64, d, n, ELSEWHERE));
    CHECK_VALUES(double, LIST(-4, 0.25, -0.0, 3), map(ctx, SPMV_MAP_NEG, SPMV_F64, d, n, ELSEWHERE));
    CHECK_VALUES(double, LIST(4, 0.25, 0, 3), map(ctx, SPMV_MAP_ABS, SPMV_F64, d, n, ELSEWHERE));
    CHECK_VALUES(float, LIST(16, 0.0625f, 0, 9), map(ctx, SPMV_MAP_SQUARE, SPMV_F32, f, n, ELSEWHERE));
    CHECK_VALUES(float, LIST(0.25f, -4, INFINITY), map(ctx, SPMV_MAP_RECIPROCAL, SPMV_F32, f, n, ELSEWHERE));
    CHECK_VALUES(double, LIST(2), map(ctx, SPMV_MAP_SQRT, SPMV_F64, d, n, ELSEWHERE));
    /* The root is correctly rounded in the type itself, without a second rounding between f64 and
     * f32. */
    CHECK_VALUES(double, LIST(0x1.6a09e667f3bcdp+0), map(ctx, SPMV_MAP_SQRT, SPMV_F64, (double[]){2}, n, ELSEWHERE));
    CHECK_VALUES(float, LIST(0x1.6a09e6p+0f), map(ctx, SPMV_MAP_SQRT, SPMV_F32, (float[]){2}, n, ELSEWHERE));
    /* Integers wrap: the smallest one has no positive counterpart. */
    CHECK_VALUES(int32_t, LIST(-4, 3, 0, INT32_MIN), map(ctx, SPMV_MAP_NEG, SPMV_I32, i, n, ELSEWHERE));
    CHECK_VALUES(int64_t, LIST(4, 3, 0, INT64_MIN), map(ctx, SPMV_MAP_ABS, SPMV_I64, l, n, ELSEWHERE));
    CHECK_VALUES(int32_t, LIST(16, 9, 0, 0), map(ctx, SPMV_MAP_SQUARE, SPMV_I32, i, n, ELSEWHERE));
    CHECK_VALUES(int64_t, LIST(16, 9, 0, 0), map(ctx, SPMV_MAP_SQUARE, SPMV_I64, l, n, ELSEWHERE));
}

static void operators_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const double a[] = {1, 2, 3, 2}, b[] = {3, 1, 4, 5};
    const int32_t i[] = {INT32_MAX, -3, 65536}, j[] = {1, 2, 65537};
    const double p[] = {0, 7, 0, 7}, q[] = {5, 0, 0, 9}; /* last is not commutative */
    CHECK_VALUES(double, LIST(4, 3, 7, 7), map_binary(ctx, SPMV_ADD, SPMV_F64, a, b, n, ELSEWHERE));
    CHECK_VALUES(double, LIST(3, 2, 12, 10), map_binary(ctx, SPMV_MUL, SPMV_F64, a, b, n, ELSEWHERE));
    CHECK_VALUES(double, LIST(1, 1, 3, 2), map_binary(ctx, SPMV_MIN, SPMV_F64, a, b, n, ELSEWHERE));
    CHECK_VALUES(double, LIST(3, 2, 4, 5), map_binary(ctx, SPMV_MAX, SPMV_F64, a, b, n, ELSEWHERE));
    CHECK_VALUES(double, LIST(5, 7, 0, 9), map_binary(ctx, SPMV_LAST, SPMV_F64, p, q, n, ELSEWHERE));
    CHECK_VALUES(int32_t, LIST(INT32_MIN, -1, 131073), map_binary(ctx, SPMV_ADD, SPMV_I32, i, j, n, ELSEWHERE));
    CHECK_VALUES(int32_t, LIST(INT32_MAX, -6, 65536), map_binary(ctx, SPMV_MUL, SPMV_I32, i, j, n, ELSEWHERE));
    /* The scalar is the left operand. */
    CHECK_VALUES(double, LIST(5, 8, 8, 9), map_scalar(ctx, SPMV_LAST, SPMV_F64, &(double){8}, q, n, ELSEWHERE));
    CHECK_VALUES(double, LIST(3, 3, 6, 7),
                 map_scalar(ctx, SPMV_ADD, SPMV_F64, &(double){2}, (double[]){1, 1, 4, 5}, n, ELSEWHERE));
    CHECK_VALUES(int32_t, LIST(-2, -6, 131072), map_scalar(ctx, SPMV_MUL, SPMV_I32, &(int32_t){2}, i, n, ELSEWHERE));
}

static void nan_wins(void **state)
{
    spmv_context *ctx = *state;
    const double a[] = {(double)NAN, 1, (double)NAN}, b[] = {1, (double)NAN, (double)NAN};
    const spmv_op ops[] = {SPMV_MIN, SPMV_MAX};
    for (int k = 0; k < 2; k++) {
        double *got = map_binary(ctx, ops[k], SPMV_F64, a, b, 3, ELSEWHERE);
        assert_true(isnan(got[0]) && isnan(got[1]) && isnan(got[2]));
        free(got);
    }
}

static void index_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const double d[] = {10, 0.5}, minus_infinity = -(double)INFINITY;
    const int32_t i[] = {INT32_MAX, 1};
    const int64_t l[] = {-3, -2};
    CHECK_VALUES(double, LIST(10, 10.5, 11, 11.5, 12), map_index(ctx, SPMV_F64, &d[0], &d[1], n));
    CHECK_VALUES(double, LIST(10, 10, 10), map_index(ctx, SPMV_F64, &d[0], NULL, n));
    CHECK_VALUES(double, LIST(minus_infinity, minus_infinity), map_index(ctx, SPMV_F64, &minus_infinity, NULL, n));
    CHECK_VALUES(int32_t, LIST(INT32_MAX, INT32_MIN, INT32_MIN + 1), map_index(ctx, SPMV_I32, &i[0], &i[1], n));
    CHECK_VALUES(int64_t, LIST(-3, -5, -7), map_index(ctx, SPMV_I64, &l[0], &l[1], n));
    CHECK_VALUES(int64_t, LIST(-3, -3, -3), map_index(ctx, SPMV_I64, &l[0], NULL, n));
    /* The product is rounded before the sum: 3 + 3/2 ulp becomes 3 + 2 ulp. */
    const double first = -3, step = 1 + 0x1p-52;
    double *got = map_index(ctx, SPMV_F64, &first, &step, 4);
    assert_true(got[3] == 0x1p-50);
    free(got);
}

/* ---------------------------------------------------- every pair at the seams */

static void every_function_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    for (const struct function_pair *p = function_pairs; p < function_pairs + FUNCTION_PAIRS; p++) {
        FOR_SEAM_SIZES(n)
        {
            void *in = host_array(n * p->size), *want = host_array(n * p->size);
            p->fill(in, n);
            p->apply(in, want, n);
            for (int place = ELSEWHERE; place <= OVER_A; place++) {
                void *got = map(ctx, p->function, p->type, in, n, (enum place)place);
                assert_same(got, want, p->size, n, p->name);
                free(got);
            }
            support_free(in, want);
        }
    }
}

/* out[i] = a[i] op b[i], or a[0] op b[i] */
static void oracle_map(const struct pair *p, const void *a, bool scalar, const void *b, void *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        p->join(element(a, (size_t)p->size, scalar ? 0 : i), element(b, (size_t)p->size, i),
                element_out(out, (size_t)p->size, i));
}

static bool is_zero(const void *x, int64_t size)
{
    static const char zeros[32];
    return memcmp(x, zeros, (size_t)size) == 0;
}

static void every_operator_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    FOR_PAIRS(p)
    {
        FOR_SEAM_SIZES(n)
        {
            void *a = pair_values(p, n + 1, true, 59), *b = pair_values(p, n, true, 61),
                 *want = host_array(n * p->size);
            oracle_map(p, a, false, b, want, n);
            for (int place = ELSEWHERE; place <= OVER_B; place++) {
                void *got = map_binary(ctx, p->op, p->type, a, b, n, (enum place)place);
                assert_same(got, want, p->size, n, p->name);
                free(got);
            }
            /* an operand that is not 0 */
            for (uint64_t seed = 59; p->op == SPMV_LAST && is_zero(a, p->size);)
                p->fill(a, 1, true, &seed);
            oracle_map(p, a, true, b, want, n);
            for (int place = ELSEWHERE; place <= OVER_A; place++) {
                void *got = map_scalar(ctx, p->op, p->type, a, b, n, (enum place)place);
                assert_same(got, want, p->size, n, p->name);
                free(got);
            }
            support_free(a, b, want);
        }
    }
}

/* Both operands and the result share one array: a[i] = a[i] op a[i]. */
static void all_in_one_place(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = HOST_TILE + 5;
    int64_t *x = pair_values(pair_of(SPMV_ADD, SPMV_I64), n, true, 67);
    void *memory = guarded_copy(ctx, x, n * 8);
    assert_ok(ctx, spmv_map_binary(ctx, SPMV_ADD, SPMV_I64, memory, memory, memory, n));
    int64_t *got = take_result(ctx, memory, n * 8, "one place");
    for (int64_t i = 0; i < n; i++)
        assert_true((uint64_t)got[i] == 2 * (uint64_t)x[i]);
    support_free(x, got);
}

#define DEFINE_INDEX(NAME, name, value, T, CLASS, ARG)                                                                 \
    static void check_index_##name(spmv_context *ctx, int64_t n)                                                       \
    {                                                                                                                  \
        const T first = 7, step = 3;                                                                                   \
        T *got = map_index(ctx, SPMV_##NAME, &first, &step, n);                                                        \
        for (int64_t i = 0; i < n; i++)                                                                                \
            if (got[i] != (T)(7 + 3 * i))                                                                              \
                fail_msg(#name ", n = %lld: element %lld differs", (long long)n, (long long)i);                        \
        free(got);                                                                                                     \
    }
SPMV_NUMBER_TYPES(DEFINE_INDEX, )

static void every_index_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
#define CALL(NAME, name, value, T, CLASS, ARG) check_index_##name(ctx, n);
    FOR_SEAM_SIZES(n)
    {
        SPMV_NUMBER_TYPES(CALL, )
    }
#undef CALL
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const double one = 1;
    void *m = guarded_result(ctx, 16);
    assert_fails(ctx, spmv_map(ctx, SPMV_MAP_COPY, SPMV_F64, m, m, -1), SPMV_ERROR_ARGUMENT, "n = -1");
    assert_fails(ctx, spmv_map(ctx, SPMV_MAP_COPY, SPMV_F64, NULL, m, 2), SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_map(ctx, SPMV_MAP_COPY, SPMV_F64, m, NULL, 2), SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_map(ctx, SPMV_MAP_SQRT, SPMV_I32, m, m, 2), SPMV_ERROR_TYPE,
                 "no function sqrt for type i32");
    assert_fails(ctx, spmv_map(ctx, SPMV_MAP_RECIPROCAL, SPMV_I64, m, m, 2), SPMV_ERROR_TYPE, "reciprocal");
    assert_fails(ctx, spmv_map(ctx, (spmv_function)99, SPMV_F64, m, m, 2), SPMV_ERROR_TYPE, "f64");
    assert_ok(ctx, spmv_map(ctx, SPMV_MAP_COPY, SPMV_F64, NULL, NULL, 0));
    assert_fails(ctx, spmv_map_binary(ctx, SPMV_ADD, SPMV_F64, m, m, m, -2), SPMV_ERROR_ARGUMENT, "n = -2");
    assert_fails(ctx, spmv_map_binary(ctx, SPMV_ADD, SPMV_F64, NULL, m, m, 2), SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_map_binary(ctx, SPMV_ADD, SPMV_F64, m, NULL, m, 2), SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_map_binary(ctx, SPMV_ADD, (spmv_type)31, m, m, m, 2), SPMV_ERROR_TYPE, "add");
    assert_ok(ctx, spmv_map_binary(ctx, SPMV_ADD, SPMV_F64, NULL, NULL, NULL, 0));
    assert_fails(ctx, spmv_map_scalar(ctx, SPMV_ADD, SPMV_F64, &one, m, m, -3), SPMV_ERROR_ARGUMENT, "n = -3");
    assert_fails(ctx, spmv_map_scalar(ctx, SPMV_ADD, SPMV_F64, NULL, m, m, 2), SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_map_scalar(ctx, (spmv_op)0, SPMV_F64, &one, m, m, 2), SPMV_ERROR_TYPE, "f64");
    assert_ok(ctx, spmv_map_scalar(ctx, SPMV_ADD, SPMV_F64, &one, NULL, NULL, 0));
    assert_fails(ctx, spmv_map_index(ctx, SPMV_F64, &one, NULL, m, -4), SPMV_ERROR_ARGUMENT, "n = -4");
    assert_fails(ctx, spmv_map_index(ctx, SPMV_F64, NULL, &one, m, 2), SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_map_index(ctx, SPMV_TYPE_DEFAULT, &one, NULL, m, 2), SPMV_ERROR_TYPE, "?");
    assert_ok(ctx, spmv_map_index(ctx, SPMV_F64, &one, NULL, NULL, 0));
    uint8_t *untouched = take_result(ctx, m, 16, "statuses");
    for (int b = 0; b < 16; b++)
        assert_int_equal(untouched[b], GUARD_BYTE);
    free(untouched);
}

SUPPORT_MAIN(with_context(functions_by_hand), with_context(operators_by_hand), with_context(nan_wins),
             with_context(index_by_hand), with_context(every_function_at_the_seams),
             with_context(every_operator_at_the_seams), with_context(all_in_one_place),
             with_context(every_index_at_the_seams), with_context(statuses))
