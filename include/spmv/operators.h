/* Operators, map functions and predicates of the primitives (primitives.h).
 *
 *   operator      a op b        used by reduce, scan and map_binary
 *   map function  f(a)          used by map
 *   predicate     a < s, ...    used by compact, gather_if and scatter_if
 *
 * Each kind is an X-macro list. CPU loops, dispatch tables, names, command-line parsing, device
 * functors and tests are generated from these lists, so a new operator is one new line and its
 * formula. For example, the sum of n elements:
 *
 *     spmv_reduce(ctx, SPMV_ADD, SPMV_F64, in, out, n);
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_OPERATORS_H
#define SPMV_OPERATORS_H

#include <spmv/types.h>

/* ---------------------------------------------------------------- operators
 * X(NAME, name, value, commutes, INTEGER, REAL, TUPLE, ARG). The three flags say which classes of
 * types the operator takes; of the tuples it takes those for which SPMV_TUPLE_NAME_TYPE_ is defined
 * below. SPMV_FN_NAME_CLASS is the formula and SPMV_ID_NAME_CLASS the identity for a class of types.
 *
 *   name     a op b                    identity               commutes  types
 *   -------  ------------------------  ---------------------  --------  ---------------
 *   add      a + b                     0                      yes       integer, real
 *   mul      a * b                     1                      yes       integer, real
 *   min      the smaller               largest value or +inf  yes       integer, real
 *   max      the larger                least value or -inf    yes       integer, real
 *   last     b != 0 ? b : a            0                      no        integer, real
 *   compose  {a.a b.a, a.b b.a + b.b}  {1, 0}                 no        spmv_affine_f64
 *   maxsum   see below                 {0, -inf, -inf, -inf}  no        spmv_segsum_f64
 *
 * All operators are associative, except for floating-point rounding. Primitives keep the order of
 * the operands if the operator does not commute.
 *
 * add, mul: integer results wrap around (two's complement).
 *
 * min, max: if an operand is NaN, the result is NaN. The identity is infinite for real types only.
 *
 * last: the last operand that is not 0. A scan with it fills gaps from the left (copy-scan). G. E.
 * Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990.
 *
 * compose: composition of the maps x -> a x + b, first a, then b. Member a must be finite. Uses:
 *   - Inclusive scan: member b of element i is x_i of the recurrence x_i = a_i x_{i-1} + b_i with
 *     x_{-1} = 0.
 *   - Reduce: Horner's rule. Let each a_i = x and b_i the coefficients from the highest power down.
 *     Member b of the result is the value of the polynomial at x.
 * P. M. Kogge, H. S. Stone, "A parallel algorithm for the efficient solution of a general class of
 * recurrence equations", IEEE Trans. Computers C-22, 1973.
 *
 * maxsum: the sums (spmv_segsum_f64) of a sequence from those of its left and right part. A number
 * x enters as {x, x, x, x}. If the empty sequence counts too, with sum 0, enter it as
 * {x, max(x, 0), max(x, 0), max(x, 0)}. Member best of a reduce is the maximum segment sum.
 * J. Bentley, "Programming pearls: algorithm design techniques", CACM 27(9), 1984. */
#define SPMV_OPERATORS(X, ARG)                                                                                         \
    X(ADD, add, 1, 1, 1, 1, 0, ARG)                                                                                    \
    X(MUL, mul, 2, 1, 1, 1, 0, ARG)                                                                                    \
    X(MIN, min, 3, 1, 1, 1, 0, ARG)                                                                                    \
    X(MAX, max, 4, 1, 1, 1, 0, ARG)                                                                                    \
    X(LAST, last, 5, 0, 1, 1, 0, ARG)                                                                                  \
    X(COMPOSE, compose, 6, 0, 0, 0, 1, ARG)                                                                            \
    X(MAXSUM, maxsum, 7, 0, 0, 0, 1, ARG)

#define SPMV_OP_ENUM_(NAME, name, value, commutes, INTEGER, REAL, TUPLE, ARG) SPMV_##NAME = value,
typedef enum spmv_op { SPMV_OPERATORS(SPMV_OP_ENUM_, ) } spmv_op;
#undef SPMV_OP_ENUM_

enum { SPMV_OP_LIMIT = 32 };

/* Integer arithmetic in uint64_t wraps without undefined behaviour. The conversion back to T keeps
 * the low bits. */
#define SPMV_FN_ADD_INTEGER(T, a, b) ((T)((uint64_t)(a) + (uint64_t)(b)))
#define SPMV_FN_ADD_REAL(T, a, b) ((a) + (b))
#define SPMV_FN_MUL_INTEGER(T, a, b) ((T)((uint64_t)(a) * (uint64_t)(b)))
#define SPMV_FN_MUL_REAL(T, a, b) ((a) * (b))
#define SPMV_FN_MIN_INTEGER(T, a, b) ((a) < (b) ? (a) : (b))
#define SPMV_FN_MIN_REAL(T, a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define SPMV_FN_MAX_INTEGER(T, a, b) ((a) > (b) ? (a) : (b))
#define SPMV_FN_MAX_REAL(T, a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SPMV_FN_LAST_INTEGER(T, a, b) ((b) != 0 ? (b) : (a))
#define SPMV_FN_LAST_REAL(T, a, b) ((b) != 0 ? (b) : (a))

/* The pairs of operator and tuple type that exist. */
#define SPMV_TUPLE_COMPOSE_AFFINE_F64_ SPMV_PAIR_EXISTS_
#define SPMV_TUPLE_MAXSUM_SEGSUM_F64_ SPMV_PAIR_EXISTS_

/* A tuple from its members, in C and in C++. */
#ifdef __cplusplus
#define SPMV_TUPLE_OF_(T, ...) (T{__VA_ARGS__})
#else
#define SPMV_TUPLE_OF_(T, ...) ((T){__VA_ARGS__})
#endif
#define SPMV_FN_COMPOSE_TUPLE(T, x, y) SPMV_TUPLE_OF_(T, (x).a *(y).a, (x).b *(y).a + (y).b)
#define SPMV_LARGER_(a, b) SPMV_FN_MAX_REAL(double, a, b)
#define SPMV_FN_MAXSUM_TUPLE(T, x, y)                                                                                  \
    SPMV_TUPLE_OF_(T, (x).sum + (y).sum, SPMV_LARGER_((x).prefix, (x).sum + (y).prefix),                               \
                   SPMV_LARGER_((y).suffix, (x).suffix + (y).sum),                                                     \
                   SPMV_LARGER_(SPMV_LARGER_((x).best, (y).best), (x).suffix + (y).prefix))

#define SPMV_HIGHEST_INTEGER_(T) ((T)(UINT64_MAX >> (65 - 8 * sizeof(T))))
#define SPMV_ID_ADD_INTEGER(T) ((T)0)
#define SPMV_ID_ADD_REAL(T) ((T)0)
#define SPMV_ID_MUL_INTEGER(T) ((T)1)
#define SPMV_ID_MUL_REAL(T) ((T)1)
#define SPMV_ID_MIN_INTEGER(T) SPMV_HIGHEST_INTEGER_(T)
#define SPMV_ID_MIN_REAL(T) ((T)INFINITY)
#define SPMV_ID_MAX_INTEGER(T) ((T)(-SPMV_HIGHEST_INTEGER_(T) - 1))
#define SPMV_ID_MAX_REAL(T) (-(T)INFINITY)
#define SPMV_ID_LAST_INTEGER(T) ((T)0)
#define SPMV_ID_LAST_REAL(T) ((T)0)
#define SPMV_ID_COMPOSE_TUPLE(T) SPMV_TUPLE_OF_(T, 1, 0)
#define SPMV_ID_MAXSUM_TUPLE(T) SPMV_TUPLE_OF_(T, 0, -(double)INFINITY, -(double)INFINITY, -(double)INFINITY)

/* ------------------------------------------------------------ map functions
 * X(NAME, name, value, INTEGER, REAL, ARG). Integer results wrap around.
 *
 *   name        f(a)            types
 *   ----------  --------------  -------------
 *   copy        a               integer, real
 *   neg         -a              integer, real
 *   abs         |a|             integer, real
 *   square      a * a           integer, real
 *   reciprocal  1 / a           real
 *   sqrt        square root     real */
#define SPMV_FUNCTIONS(X, ARG)                                                                                         \
    X(COPY, copy, 1, 1, 1, ARG)                                                                                        \
    X(NEG, neg, 2, 1, 1, ARG)                                                                                          \
    X(ABS, abs, 3, 1, 1, ARG)                                                                                          \
    X(SQUARE, square, 4, 1, 1, ARG)                                                                                    \
    X(RECIPROCAL, reciprocal, 5, 0, 1, ARG)                                                                            \
    X(SQRT, sqrt, 6, 0, 1, ARG)

#define SPMV_FUNCTION_ENUM_(NAME, name, value, INTEGER, REAL, ARG) SPMV_MAP_##NAME = value,
typedef enum spmv_function { SPMV_FUNCTIONS(SPMV_FUNCTION_ENUM_, ) } spmv_function;
#undef SPMV_FUNCTION_ENUM_

enum { SPMV_FUNCTION_LIMIT = 32 };

#define SPMV_MAP_COPY_INTEGER(T, a) (a)
#define SPMV_MAP_COPY_REAL(T, a) (a)
#define SPMV_MAP_NEG_INTEGER(T, a) ((T)(0 - (uint64_t)(a)))
#define SPMV_MAP_NEG_REAL(T, a) (-(a))
#define SPMV_MAP_ABS_INTEGER(T, a) ((a) < 0 ? (T)(0 - (uint64_t)(a)) : (a))
#define SPMV_MAP_ABS_REAL(T, a) ((T)fabs(a))
#define SPMV_MAP_SQUARE_INTEGER(T, a) ((T)((uint64_t)(a) * (uint64_t)(a)))
#define SPMV_MAP_SQUARE_REAL(T, a) ((a) * (a))
#define SPMV_MAP_RECIPROCAL_REAL(T, a) ((T)1 / (a))
#define SPMV_MAP_SQRT_REAL(T, a) (sizeof(T) == sizeof(float) ? (T)sqrtf((float)(a)) : (T)sqrt((double)(a)))

/* --------------------------------------------------------------- predicates
 * X(NAME, name, value, ARG), for an element a and a scalar s of an integer or real type.
 *
 *   name           true if                name       true if
 *   -------------  -------                ---------  -------------------
 *   less           a < s                  equal      a == s
 *   less_equal     a <= s                 not_equal  a != s
 *   greater        a > s                  nonzero    a != 0; s is unused
 *   greater_equal  a >= s
 *
 * For a NaN (a or s) only not_equal is true. A NaN is nonzero. */
#define SPMV_PREDICATES(X, ARG)                                                                                        \
    X(LESS, less, 1, ARG)                                                                                              \
    X(LESS_EQUAL, less_equal, 2, ARG)                                                                                  \
    X(GREATER, greater, 3, ARG)                                                                                        \
    X(GREATER_EQUAL, greater_equal, 4, ARG)                                                                            \
    X(EQUAL, equal, 5, ARG)                                                                                            \
    X(NOT_EQUAL, not_equal, 6, ARG)                                                                                    \
    X(NONZERO, nonzero, 7, ARG)

#define SPMV_PREDICATE_ENUM_(NAME, name, value, ARG) SPMV_IS_##NAME = value,
typedef enum spmv_predicate { SPMV_PREDICATES(SPMV_PREDICATE_ENUM_, ) } spmv_predicate;
#undef SPMV_PREDICATE_ENUM_

enum { SPMV_PREDICATE_LIMIT = 32 };

#define SPMV_TEST_LESS_INTEGER(a, s) ((a) < (s))
#define SPMV_TEST_LESS_REAL(a, s) ((a) < (s))
#define SPMV_TEST_LESS_EQUAL_INTEGER(a, s) ((a) <= (s))
#define SPMV_TEST_LESS_EQUAL_REAL(a, s) ((a) <= (s))
#define SPMV_TEST_GREATER_INTEGER(a, s) ((a) > (s))
#define SPMV_TEST_GREATER_REAL(a, s) ((a) > (s))
#define SPMV_TEST_GREATER_EQUAL_INTEGER(a, s) ((a) >= (s))
#define SPMV_TEST_GREATER_EQUAL_REAL(a, s) ((a) >= (s))
#define SPMV_TEST_EQUAL_INTEGER(a, s) ((a) == (s))
#define SPMV_TEST_EQUAL_REAL(a, s) ((a) == (s))
#define SPMV_TEST_NOT_EQUAL_INTEGER(a, s) ((a) != (s))
#define SPMV_TEST_NOT_EQUAL_REAL(a, s) ((a) != (s))
#define SPMV_TEST_NONZERO_INTEGER(a, s) ((void)(s), (a) != 0)
#define SPMV_TEST_NONZERO_REAL(a, s) ((void)(s), (a) != 0)

/* ------------------------------------------- pairs, derived from the lists
 * SPMV_OPERATOR_PAIRS(X) expands X(OP, op, TYPE, type, C type, CLASS) for each operator and each
 * type that it takes. SPMV_FUNCTION_PAIRS(X) and SPMV_PREDICATE_PAIRS(X) do the same for map
 * functions and predicates. Code that expands the formulas above must include <math.h>. */
#define SPMV_OPERATOR_PAIRS(X) SPMV_OPERATORS(SPMV_PAIRS_OF_OP_, X)
#define SPMV_PAIRS_OF_OP_(OP, op, value, commutes, INTEGER, REAL, TUPLE, X)                                            \
    SPMV_TYPES(SPMV_PAIR_, (X, OP, op, INTEGER, REAL, TUPLE))
#define SPMV_FUNCTION_PAIRS(X) SPMV_FUNCTIONS(SPMV_PAIRS_OF_FUNCTION_, X)
#define SPMV_PAIRS_OF_FUNCTION_(FN, fn, value, INTEGER, REAL, X) SPMV_TYPES(SPMV_PAIR_, (X, FN, fn, INTEGER, REAL, 0))
#define SPMV_PREDICATE_PAIRS(X) SPMV_PREDICATES(SPMV_PAIRS_OF_PREDICATE_, X)
#define SPMV_PAIRS_OF_PREDICATE_(IS, is, value, X) SPMV_TYPES(SPMV_PAIR_, (X, IS, is, 1, 1, 0))

#define SPMV_PAIR_(TYPE, type, value, ctype, CLASS, ARG)                                                               \
    SPMV_PAIR_OF_CLASS_(SPMV_PAIR_##CLASS##_, CLASS, TYPE, type, ctype, SPMV_STRIP_ ARG)
#define SPMV_PAIR_OF_CLASS_(PICK, ...) PICK(__VA_ARGS__)
#define SPMV_PAIR_INTEGER_(CLASS, TYPE, type, ctype, X, OP, op, i, r, t)                                               \
    SPMV_WHEN_##i##_(X(OP, op, TYPE, type, ctype, CLASS))
#define SPMV_PAIR_REAL_(CLASS, TYPE, type, ctype, X, OP, op, i, r, t)                                                  \
    SPMV_WHEN_##r##_(X(OP, op, TYPE, type, ctype, CLASS))
#define SPMV_PAIR_TUPLE_(CLASS, TYPE, type, ctype, X, OP, op, i, r, t)                                                 \
    SPMV_WHEN_##t##_(SPMV_WHEN_TUPLE_(SPMV_TUPLE_##OP##_##TYPE##_)(X(OP, op, TYPE, type, ctype, CLASS)))
/* SPMV_WHEN_TUPLE_(SPMV_TUPLE_OP_TYPE_) is SPMV_WHEN_1_ if that macro is defined: it expands to two
 * arguments, of which the second is 1. If it is not defined, the 0 is second: SPMV_WHEN_0_. */
#define SPMV_PAIR_EXISTS_ exists, 1
#define SPMV_WHEN_TUPLE_(exists) SPMV_SECOND_(exists, 0, )
#define SPMV_SECOND_(...) SPMV_PICK_SECOND_(__VA_ARGS__)
#define SPMV_PICK_SECOND_(first, second, ...) SPMV_WHEN_##second##_
#define SPMV_WHEN_0_(...)
#define SPMV_WHEN_1_(...) __VA_ARGS__

SPMV_BEGIN_DECLS

/* The name, such as "add"; "?" for a value that is not in the list. Static storage. */
SPMV_API const char *spmv_op_name(spmv_op op);
SPMV_API const char *spmv_function_name(spmv_function function);
SPMV_API const char *spmv_predicate_name(spmv_predicate predicate);

/* Finds an operator, map function or predicate by its name.
 *
 *   *op, *function, *predicate  the value; 0 after an error
 *
 * Errors: SPMV_ERROR_ARGUMENT (no such name, NULL). */
SPMV_API spmv_status spmv_op_parse(const char *name, spmv_op *op);
SPMV_API spmv_status spmv_function_parse(const char *name, spmv_function *function);
SPMV_API spmv_status spmv_predicate_parse(const char *name, spmv_predicate *predicate);

/* 1 if a op b == b op a, except for rounding, for every type that the operator takes; else 0. 0 for
 * a value that is not an operator. */
SPMV_API int spmv_op_commutes(spmv_op op);

/* 1 if the operator, map function or predicate takes the type, else 0. 0 for a value that is not in
 * its list. */
SPMV_API int spmv_op_takes(spmv_op op, spmv_type type);
SPMV_API int spmv_function_takes(spmv_function function, spmv_type type);
SPMV_API int spmv_predicate_takes(spmv_predicate predicate, spmv_type type);

/* Writes the identity of an operator.
 *
 *   host_identity  one element of the type, written on success only
 *
 * Errors: SPMV_ERROR_TYPE (the operator does not take the type), SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_op_identity(spmv_op op, spmv_type type, void *host_identity);

SPMV_END_DECLS

/* Old names, until 0.11: lists with more columns, which had no effect.
 *
 *   SPMV_OP_LIST(X, ARG)         X(NAME, name, value, commutes, INTEGER, REAL, COMPLEX, TUPLE, ARG)
 *   SPMV_FUNCTION_LIST(X, ARG)   X(NAME, name, value, INTEGER, REAL, COMPLEX, TUPLE, ARG)
 *   SPMV_PREDICATE_LIST(X, ARG)  as SPMV_FUNCTION_LIST
 *   SPMV_PAIR_LIST(X)            X(OP, op, TYPE, type, C type, device type, CLASS), likewise
 *                                SPMV_FUNCTION_PAIR_LIST and SPMV_PREDICATE_PAIR_LIST */
#ifndef SPMV_NO_OLD_NAMES
#define SPMV_OP_LIST(X, ARG) SPMV_OPERATORS(SPMV_OLD_OP_, (X, ARG))
#define SPMV_OLD_OP_(NAME, name, value, commutes, i, r, t, X_ARG)                                                      \
    SPMV_OLD_OP_OF_(NAME, name, value, commutes, i, r, SPMV_OLD_COMPLEX_##NAME##_, t, SPMV_STRIP_ X_ARG)
#define SPMV_OLD_OP_OF_(...) SPMV_OLD_OP_ROW_(__VA_ARGS__)
#define SPMV_OLD_OP_ROW_(NAME, name, value, commutes, i, r, c, t, X, ARG)                                              \
    X(NAME, name, value, commutes, i, r, c, t, ARG)
#define SPMV_OLD_COMPLEX_ADD_ 1
#define SPMV_OLD_COMPLEX_MUL_ 1
#define SPMV_OLD_COMPLEX_MIN_ 0
#define SPMV_OLD_COMPLEX_MAX_ 0
#define SPMV_OLD_COMPLEX_LAST_ 0
#define SPMV_OLD_COMPLEX_COMPOSE_ 0
#define SPMV_OLD_COMPLEX_MAXSUM_ 0
#define SPMV_FUNCTION_LIST(X, ARG) SPMV_FUNCTIONS(SPMV_OLD_FUNCTION_, (X, ARG))
#define SPMV_OLD_FUNCTION_(NAME, name, value, i, r, X_ARG)                                                             \
    SPMV_OLD_FUNCTION_OF_(NAME, name, value, i, r, SPMV_OLD_COMPLEX_##NAME##_, SPMV_STRIP_ X_ARG)
#define SPMV_OLD_FUNCTION_OF_(...) SPMV_OLD_FUNCTION_ROW_(__VA_ARGS__)
#define SPMV_OLD_FUNCTION_ROW_(NAME, name, value, i, r, c, X, ARG) X(NAME, name, value, i, r, c, 0, ARG)
#define SPMV_OLD_COMPLEX_COPY_ 1
#define SPMV_OLD_COMPLEX_NEG_ 0
#define SPMV_OLD_COMPLEX_ABS_ 0
#define SPMV_OLD_COMPLEX_SQUARE_ 0
#define SPMV_OLD_COMPLEX_RECIPROCAL_ 0
#define SPMV_OLD_COMPLEX_SQRT_ 0
#define SPMV_PREDICATE_LIST(X, ARG) SPMV_PREDICATES(SPMV_OLD_PREDICATE_, (X, ARG))
#define SPMV_OLD_PREDICATE_(NAME, name, value, X_ARG)                                                                  \
    SPMV_OLD_FUNCTION_OF_(NAME, name, value, 1, 1, 0, SPMV_STRIP_ X_ARG)
#define SPMV_PAIR_LIST(X) SPMV_OPERATORS(SPMV_OLD_PAIRS_OF_OP_, X)
#define SPMV_OLD_PAIRS_OF_OP_(OP, op, value, commutes, i, r, t, X)                                                     \
    SPMV_TYPES(SPMV_PAIR_, (SPMV_OLD_PAIR_, OP, (op, X), i, r, t))
#define SPMV_FUNCTION_PAIR_LIST(X) SPMV_FUNCTIONS(SPMV_OLD_PAIRS_OF_FUNCTION_, X)
#define SPMV_OLD_PAIRS_OF_FUNCTION_(FN, fn, value, i, r, X)                                                            \
    SPMV_TYPES(SPMV_PAIR_, (SPMV_OLD_PAIR_, FN, (fn, X), i, r, 0))
#define SPMV_PREDICATE_PAIR_LIST(X) SPMV_PREDICATES(SPMV_OLD_PAIRS_OF_PREDICATE_, X)
#define SPMV_OLD_PAIRS_OF_PREDICATE_(IS, is, value, X) SPMV_TYPES(SPMV_PAIR_, (SPMV_OLD_PAIR_, IS, (is, X), 1, 1, 0))
#define SPMV_OLD_PAIR_(OP, op_X, TYPE, type, ctype, CLASS)                                                             \
    SPMV_OLD_PAIR_OF_(SPMV_STRIP_ op_X, OP, TYPE, type, ctype, CLASS)
#define SPMV_OLD_PAIR_OF_(...) SPMV_OLD_PAIR_ROW_(__VA_ARGS__)
#define SPMV_OLD_PAIR_ROW_(op, X, OP, TYPE, type, ctype, CLASS) X(OP, op, TYPE, type, ctype, ctype, CLASS)
#endif

#endif
