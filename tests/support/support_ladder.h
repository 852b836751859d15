/* Checks of a rung of scan or segmented scan, by name.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_LADDER_H
#define SUPPORT_LADDER_H

#include <math.h>

#include "tests/support/support_pairs.h"
#include "tests/support/support_slow.h"

/* Runs a rung on host arrays; the result is to be freed. flags: NULL for a scan. */
typedef void *run_rung(spmv_context *ctx, const char *rung, spmv_scan_kind kind, const struct pair *p,
                       const uint8_t *flags, const void *in, int64_t n, bool in_place);

/* Runs the statement for each name that name_of lists. */
#define FOR_RUNGS_OF(name_of, name)                                                                                    \
    for (int k_##name = 0; k_##name >= 0; k_##name = -1)                                                               \
        for (const char *name; (name = name_of(support_backend, k_##name)) != NULL; k_##name++)

static inline bool is(const char *name, const char *other)
{
    return strcmp(name, other) == 0;
}

/* The definition needs n^2 / 2 operations. */
static inline int64_t length_for(const char *rung, int64_t n)
{
    return is(rung, "definition") && n > 5003 ? 5003 : n;
}

/* The list has `count` names. */
static inline void assert_rung_count(const char *(*name_of)(spmv_backend, int), int count)
{
    assert_null(name_of(support_backend, count));
    assert_null(name_of(support_backend, -1));
    assert_null(name_of((spmv_backend)77, 0));
}

/* Against the definition, both kinds, in place and not. cut: describes the flags. */
static inline void check_definition(spmv_context *ctx, run_rung *run, const char *rung, const struct pair *p,
                                    const uint8_t *flags, const char *cut, int64_t n, uint64_t seed)
{
    char what[128];
    void *in = pair_values(p, n, true, seed), *want = host_array(n * p->size);
    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++) {
        oracle_scan(p, (spmv_scan_kind)kind, flags, in, want, n);
        for (int in_place = 0; in_place < 2; in_place++) {
            void *got = run(ctx, rung, (spmv_scan_kind)kind, p, flags, in, n, in_place != 0);
            snprintf(what, sizeof what, "%s, %s%s, %s%s", rung, p->name, cut,
                     kind == SPMV_INCLUSIVE ? "inclusive" : "exclusive", in_place ? ", in place" : "");
            assert_same(got, want, p->size, n, what);
            free(got);
        }
    }
    support_free(in, want);
}

/* Checks a rung on n elements. */
typedef void rung_check(spmv_context *ctx, run_rung *run, const char *rung, const uint8_t *flags, int64_t n,
                        uint64_t seed);

/* Random numbers: |computed - exact| <= (k + 1) u (|x_h| + ... + |x_i|) to first order for the k-th
 * element of a segment that begins at h, in any summation order (Higham 2002, section 4.2), with one
 * more operation for the identity. Twice that covers the higher orders. Elements before the segment
 * have no effect. A scan is one segment. */
static inline void check_rounding(spmv_context *ctx, run_rung *run, const char *rung, const uint8_t *flags, int64_t n,
                                  uint64_t seed)
{
    const struct pair *p = pair_of(SPMV_ADD, SPMV_F32);
    float *x = pair_values(p, n, false, seed), *y = run(ctx, rung, SPMV_INCLUSIVE, p, flags, x, n, false);
    long double sum = 0, magnitude = 0;
    for (int64_t i = 0, k = 0; i < n; i++, k++) {
        if (flags != NULL && flags[i] != 0) {
            sum = 0;
            magnitude = 0;
            k = 0;
        }
        sum += x[i];
        magnitude += fabsf(x[i]);
        if (!(fabsl(y[i] - sum) <= 2 * (long double)(k + 2) * 0x1p-24L * magnitude))
            fail_msg("%s: element %lld is %.9g instead of %.9Lg", rung, (long long)i, y[i], sum);
    }
    support_free(x, y);
}

/* The same bits for any order of the threads (on the host it changes in every step) and any timing
 * of the blocks. */
static inline void check_same_bits(spmv_context *ctx, run_rung *run, const char *rung, const uint8_t *flags, int64_t n,
                                   uint64_t seed)
{
    const struct pair *p = pair_of(SPMV_ADD, SPMV_F64);
    void *x = pair_values(p, n, false, seed), *first = run(ctx, rung, SPMV_INCLUSIVE, p, flags, x, n, false);
    for (int k = 0; k < 3; k++) {
        void *again = run(ctx, rung, SPMV_INCLUSIVE, p, flags, x, n, k == 1);
        assert_same(again, first, p->size, n, rung);
        free(again);
    }
    support_free(x, first);
}

/* Traces a rung on host arrays. flags: as for run_rung. */
typedef spmv_status trace_rung(spmv_context *ctx, const char *rung, spmv_scan_kind kind, const struct pair *p,
                               const uint8_t *flags, const void *in, void *out, int64_t n, spmv_trace_fn tell,
                               void *user);

/* The operations of a rung on n elements of a pair, as its trace counts them. Checks the result. */
static inline int64_t operations_of(trace_rung *trace, const struct pair *p, const uint8_t *flags, const char *rung,
                                    spmv_scan_kind kind, int64_t n)
{
    spmv_context *ctx = support_context();
    struct counted counted = {0};
    void *in = pair_values(p, n, true, 61), *out = host_array(n * p->size), *want = host_array(n * p->size);
    assert_ok(ctx, trace(ctx, rung, kind, p, flags, in, out, n, count_step, &counted));
    oracle_scan(p, kind, flags, in, want, n);
    assert_same(out, want, p->size, n, rung);
    assert_true(counted.steps > 0);
    support_free(in, out, want);
    spmv_context_destroy(ctx);
    return counted.operations;
}

/* N = 1024, log2 N = 10. The definition: N (N - 1) / 2. Hillis and Steele: the sum of N - 2^k for k
 * < 10. Blelloch, inclusive: N - 1 up, the sum of 2^k - 1 for 1 <= k <= 9 down; exclusive: N - 1 up
 * and N - 1 down. In blocks of 32: 32 blocks, their 32 sums (one block), and 31 blocks of 32 to add
 * to. */
static inline void check_operations(trace_rung *trace, const struct pair *p, const uint8_t *flags)
{
    const struct {
        const char *rung;
        spmv_scan_kind kind;
        int64_t operations;
    } rungs[] = {{"sequential", SPMV_INCLUSIVE, 1023},
                 {"sequential", SPMV_EXCLUSIVE, 1023},
                 {"definition", SPMV_INCLUSIVE, 1023 * 1024 / 2},
                 {"hillis-steele", SPMV_INCLUSIVE, 9217},
                 {"hillis-steele-double", SPMV_INCLUSIVE, 9217},
                 {"blelloch", SPMV_INCLUSIVE, 2036},
                 {"blelloch-divergent", SPMV_INCLUSIVE, 2036},
                 {"blelloch", SPMV_EXCLUSIVE, 2046},
                 {"blelloch-divergent", SPMV_EXCLUSIVE, 2046},
                 {"hillis-steele:32", SPMV_INCLUSIVE, 33 * (5 * 32 - 31) + 31 * 32},
                 {"blelloch:32", SPMV_INCLUSIVE, 33 * (2 * 32 - 5 - 2) + 31 * 32}};
    for (size_t r = 0; r < sizeof rungs / sizeof rungs[0]; r++)
        assert_int_equal(operations_of(trace, p, flags, rungs[r].rung, rungs[r].kind, 1024), rungs[r].operations);
}

#endif
