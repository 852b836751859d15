/* Shared by the tests of the primitives: a row for each valid pair of operator and type, data for
 * it, and reference versions of scan and reduction for any pair.
 *
 * With exact data every order of evaluation gives the same bits, also in floating point: integers
 * for sums, powers of two for products. So results are compared byte by byte. Rough data has random
 * mantissas, so a change of the order of evaluation changes bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_PAIRS_H
#define SUPPORT_PAIRS_H

#include <math.h>
#include <stdbool.h>

#include "core/loops/host_tiles.h"
#include "core/loops/ops.h"
#include "tests/support/support.h"

struct pair {
    spmv_op op;
    spmv_type type;
    int64_t size;
    const char *name;
    void (*join)(const void *earlier, const void *later, void *out);
    void (*identity)(void *out);
    void (*fill)(void *x, int64_t n, bool exact, uint64_t *seed);
};

/* For sums an integer so small that 10^6 of them add up exactly in f32; for products 1 and -1,
 * sometimes 2 followed by 1/2; for last runs of zeros longer than a tile. */
static inline double exact_real(spmv_op op, int64_t i, uint64_t *seed)
{
    const uint64_t r = support_random(seed) >> 32;
    if (op == SPMV_MUL)
        return (r % 2 ? 1 : -1) * (i % 10 == 3 ? 2 : i % 10 == 8 ? 0.5 : 1);
    if (op == SPMV_LAST && ((i / 9000) % 2 == 1 || r % 4 != 0))
        return 0;
    return (double)(int)(r % 17) - 8;
}

static inline double rough_real(spmv_op op, int64_t i, uint64_t *seed)
{
    (void)i;
    const double u = support_uniform(seed);
    return op == SPMV_MUL ? 1 + u * 0x1p-10 : u;
}

/* Integers wrap, so any number is exact. */
static inline int64_t exact_integer(spmv_op op, int64_t i, uint64_t *seed)
{
    const int64_t r = (int64_t)support_random(seed);
    if (op == SPMV_LAST && exact_real(op, i, seed) == 0)
        return 0;
    return op == SPMV_MUL ? r | 1 : r; /* odd, so that products do not become 0 */
}

/* x -> x + b or x -> -x + b with an integer b: compositions have integer coefficients too. */
static inline spmv_affine_f64 value_affine_f64(bool exact, uint64_t *seed)
{
    const double b = (exact ? exact_real : rough_real)(SPMV_ADD, 0, seed);
    const double a = (double)(support_random(seed) % 2) * 2 - 1;
    return (spmv_affine_f64){exact ? a : a + b * 0x1p-10, b};
}

/* The sums of a segment of one number; sometimes its best is 0, the empty segment. */
static inline spmv_segsum_f64 value_segsum_f64(bool exact, uint64_t *seed)
{
    const double x = (exact ? exact_real : rough_real)(SPMV_ADD, 0, seed);
    const double best = support_random(seed) % 8 == 0 && x < 0 ? 0 : x;
    return (spmv_segsum_f64){x, best, best, best};
}

#define VALUE_INTEGER(T, op, type, i, exact, seed) (T) exact_integer(op, i, seed)
#define VALUE_REAL(T, op, type, i, exact, seed) (T)(exact ? exact_real : rough_real)(op, i, seed)
#define VALUE_TUPLE(T, op, type, i, exact, seed) value_##type(exact, seed)

#define DEFINE_PAIR(OP, op, TYPE, type, T, CLASS)                                                                      \
    static void pair_join_##op##_##type(const void *earlier, const void *later, void *out)                             \
    {                                                                                                                  \
        *(T *)out = op_##op##_##type(*(const T *)earlier, *(const T *)later);                                          \
    }                                                                                                                  \
    static void pair_identity_##op##_##type(void *out)                                                                 \
    {                                                                                                                  \
        *(T *)out = identity_##op##_##type();                                                                          \
    }                                                                                                                  \
    static void pair_fill_##op##_##type(void *x, int64_t n, bool exact, uint64_t *seed)                                \
    {                                                                                                                  \
        (void)exact;                                                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)x)[i] = VALUE_##CLASS(T, SPMV_##OP, type, i, exact, seed);                                           \
    }
SPMV_OPERATOR_PAIRS(DEFINE_PAIR)

#define PAIR_ROW(OP, op_, TYPE, type_, T, CLASS)                                                                       \
    {.op = SPMV_##OP,                                                                                                  \
     .type = SPMV_##TYPE,                                                                                              \
     .size = sizeof(T),                                                                                                \
     .name = #op_ " " #type_,                                                                                          \
     .join = pair_join_##op_##_##type_,                                                                                \
     .identity = pair_identity_##op_##_##type_,                                                                        \
     .fill = pair_fill_##op_##_##type_},
static const struct pair pairs[] = {SPMV_OPERATOR_PAIRS(PAIR_ROW)};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

#define FOR_PAIRS(p) for (const struct pair *p = pairs; p < pairs + PAIRS; p++)

/* One pair for each type. */
#define FOR_TYPES(p) FOR_PAIRS(p) if (p->op == SPMV_ADD || p->op == SPMV_COMPOSE || p->op == SPMV_MAXSUM)

/* Sizes around the seams of vectors, of tiles on OpenMP, and of the number of tiles from which a
 * team is used. */
static const int64_t seam_sizes[] = {0,
                                     1,
                                     2,
                                     31,
                                     32,
                                     33,
                                     HOST_TILE - 1,
                                     HOST_TILE,
                                     HOST_TILE + 1,
                                     3 * HOST_TILE + 7,
                                     HOST_PARALLEL_TILES *HOST_TILE,
                                     HOST_PARALLEL_TILES *HOST_TILE + 1,
                                     100003};
enum { SEAM_SIZES = sizeof seam_sizes / sizeof seam_sizes[0] };

#define FOR_SEAM_SIZES(n) for (int64_t k_ = 0, n = 0; k_ < SEAM_SIZES && ((n = seam_sizes[k_]), true); k_++)

/* Numbers of threads that must give the same bits. A backend without threads repeats the call. */
static const int team_sizes[] = {1, 2, 3, 5, 8};

static inline int teams(void)
{
    return support_backend == SPMV_BACKEND_OMP ? (int)(sizeof team_sizes / sizeof team_sizes[0]) : 2;
}

/* An initializer as one macro argument. */
#define LIST(...)                                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

static inline void *host_array(int64_t bytes)
{
    void *x = malloc((size_t)bytes + 1);
    assert_non_null(x);
    return x;
}

static inline const struct pair *pair_of(spmv_op op, spmv_type type)
{
    FOR_PAIRS(p)
    if (p->op == op && p->type == type)
        return p;
    fail_msg("no operator %s for type %s", spmv_op_name(op), spmv_type_name(type));
    return NULL;
}

/* n values of a pair in host memory. */
static inline void *pair_values(const struct pair *p, int64_t n, bool exact, uint64_t seed)
{
    void *x = host_array(n * p->size);
    p->fill(x, n, exact, &seed);
    return x;
}

/* ---------------------------------------------------------- the definitions */

/* heads: NULL, or n bytes; a nonzero byte starts a segment */
static inline void oracle_scan(const struct pair *p, spmv_scan_kind kind, const uint8_t *heads, const void *in,
                               void *out, int64_t n)
{
    _Alignas(16) char all[32], with[32];
    for (int64_t i = 0; i < n; i++) {
        const void *x = element(in, (size_t)p->size, i);
        const bool head = i == 0 || (heads != NULL && heads[i] != 0);
        if (head)
            p->identity(all);
        if (head)
            memcpy(with, x, (size_t)p->size);
        else
            p->join(all, x, with);
        memcpy(element_out(out, (size_t)p->size, i), kind == SPMV_INCLUSIVE ? with : all, (size_t)p->size);
        memcpy(all, with, (size_t)p->size);
    }
}

static inline void oracle_reduce(const struct pair *p, const void *in, int64_t begin, int64_t end, void *out)
{
    p->identity(out);
    for (int64_t i = begin; i < end; i++) {
        if (i == begin)
            memcpy(out, element(in, (size_t)p->size, i), (size_t)p->size);
        else
            p->join(out, element(in, (size_t)p->size, i), out);
    }
}

/* ----------------------------------------------- results in context memory */

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

/* Flags as bits, by definition. Unused bits of the last word are 1 and must be ignored. */
static inline uint32_t *pack_flags(const uint8_t *flags, int64_t n)
{
    uint32_t *words = host_array((n + 31) / 32 * 4);
    memset(words, 0xff, (size_t)((n + 31) / 32 * 4));
    for (int64_t i = 0; i < n; i++)
        if (flags[i] == 0)
            words[i / 32] &= ~((uint32_t)1 << (i % 32));
    return words;
}

/* Context memory for a result of the given size, followed by guard bytes. All bytes are
 * GUARD_BYTE. */
static inline void *guarded_result(spmv_context *ctx, int64_t bytes)
{
    void *host = host_array(bytes + GUARD);
    memset(host, GUARD_BYTE, (size_t)bytes + GUARD);
    void *memory = support_upload(ctx, host, bytes + GUARD);
    free(host);
    return memory;
}

/* Like guarded_result, but filled with an input, for operations in place. */
static inline void *guarded_copy(spmv_context *ctx, const void *from, int64_t bytes)
{
    void *memory = guarded_result(ctx, bytes);
    assert_ok(ctx, spmv_upload(ctx, from, memory, bytes));
    return memory;
}

/* Downloads and releases a guarded result; fails if a guard byte changed. The caller frees what it
 * returns. */
static inline void *take_result(spmv_context *ctx, void *memory, int64_t bytes, const char *what)
{
    uint8_t *host = host_array(bytes + GUARD);
    assert_ok(ctx, spmv_download(ctx, memory, host, bytes + GUARD));
    for (int64_t b = bytes; b < bytes + GUARD; b++)
        if (host[b] != GUARD_BYTE)
            fail_msg("%s: %lld bytes behind the end are written", what, (long long)(b - bytes + 1));
    spmv_free(ctx, memory);
    return host;
}

/* Fails unless n elements have the same bytes; reports the first difference. */
static inline void assert_same(const void *got, const void *want, int64_t size, int64_t n, const char *what)
{
    if (n == 0 || memcmp(got, want, (size_t)(n * size)) == 0)
        return;
    int64_t i = 0;
    while (memcmp(element(got, (size_t)size, i), element(want, (size_t)size, i), (size_t)size) == 0)
        i++;
    fail_msg("%s, n = %lld: element %lld differs", what, (long long)n, (long long)i);
}

/* A trace function that counts steps; user: a struct counted. */
struct counted {
    int64_t steps, operations;
};

static inline void count_step(const spmv_trace *t, void *user)
{
    struct counted *counted = user;
    counted->steps++;
    assert_true(t->operations >= counted->operations);
    assert_true(t->label[0] != '\0' && t->launch[0] != '\0');
    counted->operations = t->operations;
}

/* Checks function f on n elements of a pair. turn: differs from call to call. */
typedef void map_check(spmv_context *ctx, spmv_function f, const struct pair *p, const void *in, int64_t n, int turn);

/* Every pair with every function, at these sizes. */
static inline void check_maps(spmv_context *ctx, map_check *check, const int64_t *lengths, int count)
{
    FOR_PAIRS(p)
    for (int k = 0; k < count; k++) {
        void *in = pair_values(p, lengths[k], false, 61);
        for (int f = 1; f < SPMV_FUNCTION_LIMIT; f++)
            if (spmv_function_takes((spmv_function)f, p->type))
                check(ctx, (spmv_function)f, p, in, lengths[k], f + k);
        free(in);
    }
}

/* A sum, and how far a result in f64 may be from it. */
struct bounded_sum {
    long double sum, bound;
};

/* Any summation order stays within (n - 1) u sum |x| to first order (Higham 2002, section 4.2);
 * twice that covers the higher orders. */
static inline struct bounded_sum bounded_sum(const double *x, int64_t n)
{
    struct bounded_sum s = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        s.sum += x[i];
        s.bound += fabs(x[i]);
    }
    s.bound *= 2 * (long double)n * 0x1p-53L;
    return s;
}

static inline void check_sum(struct bounded_sum exact, double got, const char *rung)
{
    if (!(fabsl(got - exact.sum) <= exact.bound))
        fail_msg("rung %s: %.17g instead of %.17Lg", rung, got, exact.sum);
}

#endif
