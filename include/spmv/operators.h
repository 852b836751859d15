/* Operators, map functions and predicates: what scan, reduce and map compute with, and what
 * compact, gather and scatter choose by.
 *
 * Three lists. CPU loops, dispatch tables, names, command-line parsing, device functors and the
 * test matrix are all generated from them. An operator is associative (floating-point rounding
 * aside); in every primitive the earlier element is the left operand, so an operator need not
 * commute.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_OPERATORS_H
#define SPMV_OPERATORS_H

#include <spmv/types.h>

/* ---------------------------------------------------------------- operators
 * X(NAME, name, value, commutes, INTEGER, REAL, COMPLEX, TUPLE, ARG): the four flags say which
 * classes of types the operator takes; of the tuples, those for which SPMV_TUPLE_NAME_TYPE_ is
 * defined below. The function and the identity of NAME for a class are SPMV_FN_NAME_CLASS and
 * SPMV_ID_NAME_CLASS, below.
 *
 *   add      a + b           identity 0. Integer sums wrap (two's complement).
 *   mul      a * b           identity 1. Integer products wrap.
 *   min      a < b ? a : b   identity: the type's largest value (+inf for reals). A NaN operand
 *                            gives NaN.
 *   max      a > b ? a : b   identity: the type's smallest value (-inf for reals). A NaN operand
 *                            gives NaN.
 *   last     b != 0 ? b : a  identity 0. The last operand that is not zero. Does not commute. A
 *                            scan with it fills gaps forward: the copy-scan of G. Blelloch, "Prefix
 *                            sums and their applications", CMU-CS-90-190, 1990.
 *   compose  first a, then b, of maps x -> a x + b: {a.a b.a, a.b b.a + b.b}; identity {1, 0}. Does
 *            not commute. a_i must be finite. Member b of an inclusive scan solves the linear
 *            recurrence x_i = a_i x_{i-1} + b_i from x_{-1} = 0. A reduce evaluates a polynomial by
 *            Horner's rule (each a_i the argument, b_i the coefficients from the highest down).
 *            P. M. Kogge, H. S. Stone, "A parallel algorithm for the efficient solution of a
 *            general class of recurrence equations", IEEE Trans. Computers C-22, 1973.
 *   maxsum   the maximum segment sum of one run followed by another; identity {0, -inf, -inf,
 *            -inf}. Does not commute. A number x enters as {x, x, x, x}; where the empty run
 *            counts, the last three are at least 0. J. Bentley, "Programming pearls: algorithm
 *            design techniques", CACM 27(9), 1984. */
#define SPMV_OP_LIST(X, ARG)                                                                                           \
    X(ADD, add, 1, 1, 1, 1, 1, 0, ARG)                                                                                 \
    X(MUL, mul, 2, 1, 1, 1, 1, 0, ARG)                                                                                 \
    X(MIN, min, 3, 1, 1, 1, 0, 0, ARG)                                                                                 \
    X(MAX, max, 4, 1, 1, 1, 0, 0, ARG)                                                                                 \
    X(LAST, last, 5, 0, 1, 1, 0, 0, ARG)                                                                               \
    X(COMPOSE, compose, 6, 0, 0, 0, 0, 1, ARG)                                                                         \
    X(MAXSUM, maxsum, 7, 0, 0, 0, 0, 1, ARG)

#define SPMV_OP_ENUM_(NAME, name, value, commutes, INTEGER, REAL, COMPLEX, TUPLE, ARG) SPMV_##NAME = value,
typedef enum spmv_op { SPMV_OP_LIST(SPMV_OP_ENUM_, ) } spmv_op;
#undef SPMV_OP_ENUM_

enum { SPMV_OP_LIMIT = 32 };

/* Through uint64_t, integers of every width wrap without undefined behaviour; the conversion back
 * keeps the low bits.
 */
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

/* Which operator takes which tuple. */
#define SPMV_TUPLE_COMPOSE_AFFINE_F64_ SPMV_PAIR_EXISTS_
#define SPMV_TUPLE_MAXSUM_SEGSUM_F64_ SPMV_PAIR_EXISTS_

/* A tuple made of its members, in C and in C++. */
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
 * X(NAME, name, value, INTEGER, REAL, COMPLEX, TUPLE, ARG), one argument each; integer results
 * wrap.
 *   copy a;  neg -a;  abs |a|;  square a * a;  reciprocal 1 / a (reals);  sqrt square root of a (reals).
 */
#define SPMV_FUNCTION_LIST(X, ARG)                                                                                     \
    X(COPY, copy, 1, 1, 1, 1, 0, ARG)                                                                                  \
    X(NEG, neg, 2, 1, 1, 0, 0, ARG)                                                                                    \
    X(ABS, abs, 3, 1, 1, 0, 0, ARG)                                                                                    \
    X(SQUARE, square, 4, 1, 1, 0, 0, ARG)                                                                              \
    X(RECIPROCAL, reciprocal, 5, 0, 1, 0, 0, ARG)                                                                      \
    X(SQRT, sqrt, 6, 0, 1, 0, 0, ARG)

#define SPMV_FUNCTION_ENUM_(NAME, name, value, INTEGER, REAL, COMPLEX, TUPLE, ARG) SPMV_MAP_##NAME = value,
typedef enum spmv_function { SPMV_FUNCTION_LIST(SPMV_FUNCTION_ENUM_, ) } spmv_function;
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
 * X(NAME, name, value, INTEGER, REAL, COMPLEX, TUPLE, ARG), of an element a and one scalar s:
 *   less a < s;  less_equal a <= s;  greater a > s;  greater_equal a >= s;  equal a == s;  not_equal a != s;
 *   nonzero a != 0 (s is not used).
 * A NaN is not_equal to everything, nonzero, and nothing else. */
#define SPMV_PREDICATE_LIST(X, ARG)                                                                                    \
    X(LESS, less, 1, 1, 1, 0, 0, ARG)                                                                                  \
    X(LESS_EQUAL, less_equal, 2, 1, 1, 0, 0, ARG)                                                                      \
    X(GREATER, greater, 3, 1, 1, 0, 0, ARG)                                                                            \
    X(GREATER_EQUAL, greater_equal, 4, 1, 1, 0, 0, ARG)                                                                \
    X(EQUAL, equal, 5, 1, 1, 0, 0, ARG)                                                                                \
    X(NOT_EQUAL, not_equal, 6, 1, 1, 0, 0, ARG)                                                                        \
    X(NONZERO, nonzero, 7, 1, 1, 0, 0, ARG)

#define SPMV_PREDICATE_ENUM_(NAME, name, value, INTEGER, REAL, COMPLEX, TUPLE, ARG) SPMV_IS_##NAME = value,
typedef enum spmv_predicate { SPMV_PREDICATE_LIST(SPMV_PREDICATE_ENUM_, ) } spmv_predicate;
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

/* ------------------------------------------- every pair that exists, derived
 * SPMV_PAIR_LIST(X) expands X(OP, op, TYPE, type, C type, device type, CLASS) for each operator and
 * each type of a class that it takes; SPMV_FUNCTION_PAIR_LIST(X) the same for map functions,
 * SPMV_PREDICATE_PAIR_LIST(X) for predicates. Source that includes the function macros above needs
 * <math.h>. */
#define SPMV_PAIR_LIST(X) SPMV_OP_LIST(SPMV_PAIRS_OF_OP_, X)
#define SPMV_PAIRS_OF_OP_(OP, op, value, commutes, INTEGER, REAL, COMPLEX, TUPLE, X)                                   \
    SPMV_TYPE_LIST(SPMV_PAIR_, (X, OP, op, INTEGER, REAL, COMPLEX, TUPLE))
#define SPMV_FUNCTION_PAIR_LIST(X) SPMV_FUNCTION_LIST(SPMV_PAIRS_OF_FUNCTION_, X)
#define SPMV_PAIRS_OF_FUNCTION_(FN, fn, value, INTEGER, REAL, COMPLEX, TUPLE, X)                                       \
    SPMV_TYPE_LIST(SPMV_PAIR_, (X, FN, fn, INTEGER, REAL, COMPLEX, TUPLE))
#define SPMV_PREDICATE_PAIR_LIST(X) SPMV_PREDICATE_LIST(SPMV_PAIRS_OF_FUNCTION_, X)

#define SPMV_PAIR_(TYPE, type, value, ctype, dtype, CLASS, ARG)                                                        \
    SPMV_PAIR_OF_CLASS_(SPMV_PAIR_##CLASS##_, CLASS, TYPE, type, ctype, dtype, SPMV_STRIP_ ARG)
#define SPMV_PAIR_OF_CLASS_(PICK, ...) PICK(__VA_ARGS__)
#define SPMV_PAIR_INTEGER_(CLASS, TYPE, type, ctype, dtype, X, OP, op, i, r, c, t)                                     \
    SPMV_WHEN_##i##_(X(OP, op, TYPE, type, ctype, dtype, CLASS))
#define SPMV_PAIR_REAL_(CLASS, TYPE, type, ctype, dtype, X, OP, op, i, r, c, t)                                        \
    SPMV_WHEN_##r##_(X(OP, op, TYPE, type, ctype, dtype, CLASS))
#define SPMV_PAIR_COMPLEX_(CLASS, TYPE, type, ctype, dtype, X, OP, op, i, r, c, t)                                     \
    SPMV_WHEN_##c##_(X(OP, op, TYPE, type, ctype, dtype, CLASS))
#define SPMV_PAIR_TUPLE_(CLASS, TYPE, type, ctype, dtype, X, OP, op, i, r, c, t)                                       \
    SPMV_WHEN_##t##_(SPMV_WHEN_TUPLE_(SPMV_TUPLE_##OP##_##TYPE##_)(X(OP, op, TYPE, type, ctype, dtype, CLASS)))
/* SPMV_WHEN_1_ for SPMV_PAIR_EXISTS_, whose two arguments push the 0 from second place; else
 * SPMV_WHEN_0_. */
#define SPMV_PAIR_EXISTS_ exists, 1
#define SPMV_WHEN_TUPLE_(exists) SPMV_SECOND_(exists, 0, )
#define SPMV_SECOND_(...) SPMV_PICK_SECOND_(__VA_ARGS__)
#define SPMV_PICK_SECOND_(first, second, ...) SPMV_WHEN_##second##_
#define SPMV_WHEN_0_(...)
#define SPMV_WHEN_1_(...) __VA_ARGS__

SPMV_BEGIN_DECLS

/* "add" ...; "?" for a value that names no operator (map function, predicate). */
SPMV_API const char *spmv_op_name(spmv_op op);
SPMV_API const char *spmv_function_name(spmv_function function);
SPMV_API const char *spmv_predicate_name(spmv_predicate predicate);

/* Finds the operator (map function, predicate) of a name. *op is 0 after an error. Errors:
 * SPMV_ERROR_ARGUMENT (no such name, NULL). */
SPMV_API spmv_status spmv_op_parse(const char *name, spmv_op *op);
SPMV_API spmv_status spmv_function_parse(const char *name, spmv_function *function);
SPMV_API spmv_status spmv_predicate_parse(const char *name, spmv_predicate *predicate);

/* 1 when a op b == b op a for every type that the operator takes (rounding aside), else 0; 0 for a
 * value that names no operator. */
SPMV_API int spmv_op_commutes(spmv_op op);

/* 1 when the operator (map function, predicate) exists for the type, else 0; 0 for a value that
 * names none. */
SPMV_API int spmv_op_takes(spmv_op op, spmv_type type);
SPMV_API int spmv_function_takes(spmv_function function, spmv_type type);
SPMV_API int spmv_predicate_takes(spmv_predicate predicate, spmv_type type);

/* Writes the operator's identity: one element of the type in host memory. Errors: SPMV_ERROR_TYPE
 * (the operator does not exist for the type), SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_op_identity(spmv_op op, spmv_type type, void *host_identity);

SPMV_END_DECLS

#endif
