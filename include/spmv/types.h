/* Statuses, element types, and the macros that every public header needs.
 *
 * Statuses and types are X-macro lists. Enums, names, loops, dispatch tables, command-line parsing
 * and tests are generated from these lists, so a new status or type is one new line here.
 *
 *     if (status != SPMV_OK)
 *         fprintf(stderr, "%s: %s\n", spmv_status_name(status), spmv_status_text(status));
 *
 * spmv_last_error (context.h) has the details of a failed call: the file, line, sizes and remedy.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_TYPES_H
#define SPMV_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SPMV_API __attribute__((visibility("default")))
#else
#define SPMV_API
#endif

#ifdef __cplusplus
#define SPMV_BEGIN_DECLS extern "C" {
#define SPMV_END_DECLS }
#else
#define SPMV_BEGIN_DECLS
#define SPMV_END_DECLS
#endif

/* Old names work until version 0.11: members of structs here, functions, types and headers in the
 * sections "old names" of the headers. A program that defines SPMV_NO_OLD_NAMES before it includes
 * a header has the new names only, so that its compiler finds every old one. */
#ifdef SPMV_NO_OLD_NAMES
#define SPMV_RENAMED(member, old_member) member
#else
#define SPMV_RENAMED(member, old_member)                                                                               \
    union {                                                                                                            \
        member;                                                                                                        \
        old_member;                                                                                                    \
    }
#endif

/* The version of these headers. spmv_version returns that of the library. */
#define SPMV_VERSION_MAJOR 0
#define SPMV_VERSION_MINOR 9
#define SPMV_VERSION_PATCH 0

/* ---------------------------------------------------------------- statuses
 * X(NAME, value, text). value / 100 is the class of the status. The class is also the exit code of
 * the program spmv:
 *
 *    0  success                          6  device error
 *    1  wrong usage or argument          7  the solver stopped early
 *    2  a file cannot be read, written   8  the solver does not support such a matrix
 *    3  malformed input                  9  the check of a result failed
 *    4  incompatible or unsupported     10  cancelled by a callback
 *    5  out of memory
 *
 * Values never change. */
#define SPMV_STATUS_LIST(X)                                                                                            \
    X(OK, 0, "success")                                                                                                \
    X(ERROR_ARGUMENT, 100, "invalid argument")                                                                         \
    X(ERROR_SPEC, 101, "unknown or malformed matrix SPEC")                                                             \
    X(ERROR_METHOD, 102, "unknown method")                                                                             \
    X(ERROR_BUSY, 103, "in use by another call")                                                                       \
    X(ERROR_OPEN, 200, "cannot open the file")                                                                         \
    X(ERROR_READ, 201, "cannot read the file")                                                                         \
    X(ERROR_WRITE, 202, "cannot write the file")                                                                       \
    X(ERROR_CHANGED, 203, "the file changed while it was read")                                                        \
    X(ERROR_FORMAT, 300, "malformed input")                                                                            \
    X(ERROR_LIMIT, 301, "input over a limit")                                                                          \
    X(ERROR_SIZE, 400, "incompatible sizes")                                                                           \
    X(ERROR_TYPE, 401, "operation not supported for this element type")                                                \
    X(ERROR_UNSUPPORTED, 402, "not supported, or not part of this build")                                              \
    X(ERROR_COMMUTE, 403, "this method needs a commutative operator")                                                  \
    X(ERROR_CAPTURE, 404, "not possible while a CUDA graph is being captured")                                         \
    X(ERROR_MEMORY, 500, "out of memory")                                                                              \
    X(ERROR_DEVICE, 600, "device error")                                                                               \
    X(ERROR_NO_DEVICE, 601, "no such device")                                                                          \
    X(ERROR_ITERATIONS, 700, "iteration limit reached before the tolerance")                                           \
    X(ERROR_STAGNATION, 701, "no further progress before the tolerance")                                               \
    X(ERROR_NOT_FINITE, 702, "a number is not finite")                                                                 \
    X(ERROR_BREAKDOWN, 703, "the method cannot continue")                                                              \
    X(ERROR_INCONSISTENT, 704, "the matrix is singular, and the system has no solution")                               \
    X(ERROR_CONDITION, 705, "the condition number of the matrix exceeds the limit")                                    \
    X(ERROR_ACCURACY, 706, "x has fewer right digits than were asked for")                                             \
    X(ERROR_NOT_SQUARE, 800, "the matrix is not square")                                                               \
    X(ERROR_NOT_SYMMETRIC, 801, "the matrix is not symmetric")                                                         \
    X(ERROR_NOT_POSITIVE, 802, "the matrix is not positive definite")                                                  \
    X(ERROR_SINGULAR, 803, "the matrix is singular")                                                                   \
    X(ERROR_CHECK, 900, "the check of the result failed")                                                              \
    X(CANCELLED, 1000, "cancelled by the event callback")

#define SPMV_STATUS_ENUM_(NAME, value, text) SPMV_##NAME = value,
typedef enum spmv_status { SPMV_STATUS_LIST(SPMV_STATUS_ENUM_) } spmv_status;
#undef SPMV_STATUS_ENUM_

/* Complex numbers: real part, then imaginary part. Same layout as the complex types of C99 and
 * CUDA. */
typedef struct spmv_c64 {
    float re, im;
} spmv_c64;

typedef struct spmv_c128 {
    double re, im;
} spmv_c128;

/* 16-bit floating-point numbers by their bits: sign, exponent, fraction. bf16 has an exponent of 8 bits
 * (that of f32) and a fraction of 7, f16 (IEEE 754 binary16) 5 and 10. Same layout as the types of CUDA,
 * PyTorch and NumPy. */
typedef struct spmv_bf16 {
    uint16_t bits;
} spmv_bf16;

typedef struct spmv_f16 {
    uint16_t bits;
} spmv_f16;

/* Tuples: elements that consist of several numbers. Each has its own operator (operators.h). */

/* The affine map x -> a x + b, for the operator compose. */
typedef struct spmv_affine_f64 {
    double a, b;
} spmv_affine_f64;

/* Sums of a sequence of numbers, for the operator maxsum (maximum segment sum):
 *   sum     sum of the sequence
 *   prefix  largest sum of a prefix
 *   suffix  largest sum of a suffix
 *   best    largest sum of consecutive elements */
typedef struct spmv_segsum_f64 {
    double sum, prefix, suffix, best;
} spmv_segsum_f64;

/* ------------------------------------------------------------ element types
 * X(NAME, name, value, C type, CLASS, ARG). CLASS is INTEGER, REAL or TUPLE (of complex types:
 * COMPLEX) and decides which operators apply (operators.h). ARG is passed through unchanged. Values
 * never change and are less than SPMV_TYPE_LIMIT. */
#define SPMV_TYPES(X, ARG)                                                                                             \
    X(I32, i32, 1, int32_t, INTEGER, ARG)                                                                              \
    X(I64, i64, 2, int64_t, INTEGER, ARG)                                                                              \
    X(F32, f32, 3, float, REAL, ARG)                                                                                   \
    X(F64, f64, 4, double, REAL, ARG)                                                                                  \
    X(AFFINE_F64, affine_f64, 6, spmv_affine_f64, TUPLE, ARG)                                                          \
    X(SEGSUM_F64, segsum_f64, 7, spmv_segsum_f64, TUPLE, ARG)

/* The complex types, in lines of the same form. Matrices, vectors and products take them;
 * primitives (primitives.h) do not. */
#define SPMV_COMPLEX_TYPES(X, ARG)                                                                                     \
    X(C64, c64, 8, spmv_c64, COMPLEX, ARG)                                                                             \
    X(C128, c128, 5, spmv_c128, COMPLEX, ARG)

/* The 16-bit types, in lines of the same form. Products with vectors (plan.h) and sampled products
 * (sddmm.h) take them, with sums in f32; nothing else does. */
#define SPMV_HALF_TYPES(X, ARG)                                                                                        \
    X(BF16, bf16, 9, spmv_bf16, HALF, ARG)                                                                             \
    X(F16, f16, 10, spmv_f16, HALF, ARG)

/* SPMV_TYPES without the tuples: the types of numbers that primitives take. */
#define SPMV_NUMBER_TYPES(X, ARG) SPMV_TYPES(SPMV_NUMBER_, (X, ARG))
#define SPMV_NUMBER_(NAME, name, value, ctype, CLASS, X_ARG)                                                           \
    SPMV_NUMBER_OF_CLASS_(SPMV_NUMBER_##CLASS##_, NAME, name, value, ctype, CLASS, SPMV_STRIP_ X_ARG)
#define SPMV_NUMBER_OF_CLASS_(PICK, ...) PICK(__VA_ARGS__)
#define SPMV_NUMBER_INTEGER_(NAME, name, value, ctype, CLASS, X, ARG) X(NAME, name, value, ctype, CLASS, ARG)
#define SPMV_NUMBER_REAL_(NAME, name, value, ctype, CLASS, X, ARG) X(NAME, name, value, ctype, CLASS, ARG)
#define SPMV_NUMBER_TUPLE_(NAME, name, value, ctype, CLASS, X, ARG)
#define SPMV_STRIP_(...) __VA_ARGS__

/* SPMV_TYPE_DEFAULT (0) in an option: the library chooses the type. */
#define SPMV_TYPE_ENUM_(NAME, name, value, ctype, CLASS, ARG) SPMV_##NAME = value,
typedef enum spmv_type {
    SPMV_TYPE_DEFAULT = 0,
    SPMV_TYPES(SPMV_TYPE_ENUM_, ) SPMV_COMPLEX_TYPES(SPMV_TYPE_ENUM_, ) SPMV_HALF_TYPES(SPMV_TYPE_ENUM_, )
} spmv_type;
#undef SPMV_TYPE_ENUM_

enum { SPMV_TYPE_LIMIT = 32 };

/* Where an array is: in the context's memory or in host memory. The context's memory is device
 * memory on cuda and ordinary host memory on ref and omp. */
typedef enum spmv_memory { SPMV_MEMORY_CONTEXT = 0, SPMV_MEMORY_HOST = 1 } spmv_memory;

SPMV_BEGIN_DECLS

/* The name of a status ("SPMV_ERROR_SIZE") and its meaning in one line. Static storage. For a value
 * that is not a status: "SPMV_?" and "unknown status". Never NULL. */
SPMV_API const char *spmv_status_name(spmv_status status);
SPMV_API const char *spmv_status_text(spmv_status status);

/* The class of a status, 0 to 10, as listed above; -1 for a value that is not a status. */
SPMV_API int spmv_status_class(spmv_status status);

/* The size of one element in bytes; 0 for a value that is not a type. */
SPMV_API size_t spmv_type_size(spmv_type type);

/* The name of a type, such as "f64"; "?" for a value that is not a type. Static storage. */
SPMV_API const char *spmv_type_name(spmv_type type);

/* Finds a type by its name.
 *
 *   name   such as "f64"
 *   *type  the type; SPMV_TYPE_DEFAULT after an error
 *
 * Errors: SPMV_ERROR_TYPE (no such name), SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_type_parse(const char *name, spmv_type *type);

/* Converts numbers between f64, f32, bf16 and f16: to[i] = from[i] for 0 <= i < n, rounded to nearest,
 * ties to even. What is too large becomes infinite; NaN stays NaN.
 *
 *   from, to  n numbers each in host memory; they overlap only where both types have the same size and
 *             from == to
 *
 * Determinism: the same bits on every machine.
 * Errors: SPMV_ERROR_TYPE (another type), SPMV_ERROR_ARGUMENT (NULL with n > 0; n < 0).
 * Source: IEEE 754-2019, 4.3.1; bf16 is the upper half of an f32. */
SPMV_API spmv_status spmv_convert_numbers(spmv_type from_type, const void *from, spmv_type to_type, void *to,
                                          int64_t n);

/* The version of the library, "major.minor.patch". Static storage. A program can compare it with
 * SPMV_VERSION_MAJOR, SPMV_VERSION_MINOR and SPMV_VERSION_PATCH, the version of its headers. */
SPMV_API const char *spmv_version(void);

SPMV_END_DECLS

/* Old names, until 0.11: the same lists with a column more, the device type, which is the C type.
 * X(NAME, name, value, C type, device type, CLASS, ARG). */
#ifndef SPMV_NO_OLD_NAMES
#define SPMV_TYPE_LIST(X, ARG) SPMV_TYPES(SPMV_OLD_TYPE_, (X, ARG))
#define SPMV_COMPLEX_LIST(X, ARG) SPMV_COMPLEX_TYPES(SPMV_OLD_TYPE_, (X, ARG))
#define SPMV_NUMBER_LIST(X, ARG) SPMV_NUMBER_TYPES(SPMV_OLD_TYPE_, (X, ARG))
#define SPMV_OLD_TYPE_(NAME, name, value, ctype, CLASS, X_ARG)                                                         \
    SPMV_OLD_TYPE_OF_(NAME, name, value, ctype, CLASS, SPMV_STRIP_ X_ARG)
#define SPMV_OLD_TYPE_OF_(...) SPMV_OLD_TYPE_ROW_(__VA_ARGS__)
#define SPMV_OLD_TYPE_ROW_(NAME, name, value, ctype, CLASS, X, ARG) X(NAME, name, value, ctype, ctype, CLASS, ARG)
#endif

#endif
