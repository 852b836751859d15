/* The lists of types and operators accept tuple types without a change elsewhere. With two more
 * lines of types and one of operators, the generated functions exist for exactly the pairs of
 * matching class, and compute their formulas.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support.h"

struct affine {
    int64_t a, b; /* x -> a x + b */
};

/* A new type needs one line in this list. */
#undef SPMV_TYPES
#define SPMV_TYPES(X, ARG)                                                                                             \
    X(I64, i64, 2, int64_t, INTEGER, ARG)                                                                              \
    X(F64, f64, 4, double, REAL, ARG)                                                                                  \
    X(AFFINE, affine, 6, struct affine, TUPLE, ARG)                                                                    \
    X(OTHER, other, 7, struct affine, TUPLE, ARG)

/* A new operator needs one line, a formula for each class that it takes, and the list of its
 * tuples. */
#undef SPMV_OPERATORS
#define SPMV_OPERATORS(X, ARG)                                                                                         \
    X(ADD, add, 1, 1, 1, 1, 0, ARG)                                                                                    \
    X(MIN, min, 3, 1, 1, 1, 0, ARG)                                                                                    \
    X(CHAIN, chain, 9, 0, 0, 0, 1, ARG)
#define SPMV_TUPLE_CHAIN_AFFINE_ SPMV_PAIR_EXISTS_
/* x first, then y */
#define SPMV_FN_CHAIN_TUPLE(T, x, y) ((T){(x).a * (y).a, (x).b * (y).a + (y).b})
#define SPMV_ID_CHAIN_TUPLE(T) ((T){1, 0})

#define DEFINE(OP, op, TYPE, type, T, CLASS)                                                                           \
    static T list_##op##_##type(T a, T b)                                                                              \
    {                                                                                                                  \
        return SPMV_FN_##OP##_##CLASS(T, a, b);                                                                        \
    }                                                                                                                  \
    static T list_identity_##op##_##type(void)                                                                         \
    {                                                                                                                  \
        return SPMV_ID_##OP##_##CLASS(T);                                                                              \
    }
SPMV_OPERATOR_PAIRS(DEFINE)

static void only_the_pairs_that_exist(void **state)
{
    (void)state;
#define NAME(OP, op, TYPE, type, T, CLASS) #op "_" #type " "
    assert_string_equal(SPMV_OPERATOR_PAIRS(NAME), "add_i64 add_f64 min_i64 min_f64 chain_affine ");
#undef NAME
}

static void they_compute_their_formulas(void **state)
{
    (void)state;
    const struct affine twice = {2, 0}, plus_one = {1, 1};
    const struct affine there = list_chain_affine(twice, plus_one), back = list_chain_affine(plus_one, twice);
    assert_true(there.a == 2 && there.b == 1 && back.a == 2 && back.b == 2);
    const struct affine same = list_chain_affine(list_identity_chain_affine(), there);
    assert_true(same.a == there.a && same.b == there.b);
    assert_true(list_add_i64(INT64_MAX, 1) == INT64_MIN && list_identity_add_i64() == 0);
    assert_true(list_min_i64(3, -2) == -2 && list_identity_min_i64() == INT64_MAX);
    assert_true(isnan(list_min_f64(1, NAN)) && isnan(list_min_f64(NAN, 1)) && isinf(list_identity_min_f64()));
    assert_true(list_add_f64(1, list_identity_add_f64()) == 1);
}

SUPPORT_MAIN(cmocka_unit_test(only_the_pairs_that_exist), cmocka_unit_test(they_compute_their_formulas))
