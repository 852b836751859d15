/* Serial loops, generated: see loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "loops.h"

#include "host_tiles.h"
#include "loops_sums.h"
#include "ops.h"

#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static void identity_of_##op##_##type(void *out)                                                                   \
    {                                                                                                                  \
        *(T *)out = identity_##op##_##type();                                                                          \
    }                                                                                                                  \
    static void combine_##op##_##type(const void *earlier, const void *later, void *out)                               \
    {                                                                                                                  \
        *(T *)out = op_##op##_##type(*(const T *)earlier, *(const T *)later);                                          \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

/* Eight elements as a tree: three operations deep instead of seven, and one on the way from block to block. */
#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static inline T pair_##op##_##type(const T *x)                                                                     \
    {                                                                                                                  \
        return op_##op##_##type(x[0], x[1]);                                                                           \
    }                                                                                                                  \
    static inline T four_##op##_##type(const T *x)                                                                     \
    {                                                                                                                  \
        return op_##op##_##type(pair_##op##_##type(x), pair_##op##_##type(x + 2));                                     \
    }                                                                                                                  \
    static inline T eight_##op##_##type(const T *x)                                                                    \
    {                                                                                                                  \
        return op_##op##_##type(four_##op##_##type(x), four_##op##_##type(x + 4));                                     \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

/* The first element starts the fold, not the identity: 0 + -0 is not -0. */
#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static inline T run_##op##_##type(const T *x, int64_t begin, int64_t end)                                          \
    {                                                                                                                  \
        T all = x[begin];                                                                                              \
        int64_t i = begin + 1;                                                                                         \
        for (; i + 8 <= end; i += 8)                                                                                   \
            all = op_##op##_##type(all, eight_##op##_##type(x + i));                                                   \
        for (; i < end; i++)                                                                                           \
            all = op_##op##_##type(all, x[i]);                                                                         \
        return all;                                                                                                    \
    }                                                                                                                  \
    static void fold_##op##_##type(const void *in, int64_t begin, int64_t end, void *out)                              \
    {                                                                                                                  \
        *(T *)out = run_##op##_##type(in, begin, end);                                                                 \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

/* Four elements are scanned by themselves, then joined to what stands before them: one operation on the way from block
 * to block. All four are read before one is written, so that out may equal in. */
#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static inline T inclusive_four_##op##_##type(T before, const T *x, T *y)                                           \
    {                                                                                                                  \
        const T a = x[0], ab = op_##op##_##type(a, x[1]), c = x[2], cd = op_##op##_##type(c, x[3]);                    \
        const T abc = op_##op##_##type(ab, c), abcd = op_##op##_##type(ab, cd);                                        \
        y[0] = op_##op##_##type(before, a);                                                                            \
        y[1] = op_##op##_##type(before, ab);                                                                           \
        y[2] = op_##op##_##type(before, abc);                                                                          \
        return y[3] = op_##op##_##type(before, abcd);                                                                  \
    }                                                                                                                  \
    static inline T exclusive_four_##op##_##type(T before, const T *x, T *y)                                           \
    {                                                                                                                  \
        const T a = x[0], ab = op_##op##_##type(a, x[1]), c = x[2], cd = op_##op##_##type(c, x[3]);                    \
        y[0] = before;                                                                                                 \
        y[1] = op_##op##_##type(before, a);                                                                            \
        y[2] = op_##op##_##type(before, ab);                                                                           \
        y[3] = op_##op##_##type(before, op_##op##_##type(ab, c));                                                      \
        return op_##op##_##type(before, op_##op##_##type(ab, cd));                                                     \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static void inclusive_##op##_##type(const void *carry, const void *in, void *out, int64_t begin, int64_t end,      \
                                        bool stream)                                                                   \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        T *y = out, all = *(const T *)carry;                                                                           \
        int64_t i = begin;                                                                                             \
        (void)stream;                                                                                                  \
        for (; i + 4 <= end; i += 4)                                                                                   \
            all = inclusive_four_##op##_##type(all, x + i, y + i);                                                     \
        for (; i < end; i++)                                                                                           \
            y[i] = all = op_##op##_##type(all, x[i]);                                                                  \
    }                                                                                                                  \
    static void exclusive_##op##_##type(const void *carry, const void *in, void *out, int64_t begin, int64_t end,      \
                                        bool stream)                                                                   \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        T *y = out, all = *(const T *)carry;                                                                           \
        int64_t i = begin;                                                                                             \
        (void)stream;                                                                                                  \
        for (; i + 4 <= end; i += 4)                                                                                   \
            all = exclusive_four_##op##_##type(all, x + i, y + i);                                                     \
        for (T next; i < end; i++, all = next) {                                                                       \
            next = op_##op##_##type(all, x[i]);                                                                        \
            y[i] = all;                                                                                                \
        }                                                                                                              \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static void seg_inclusive_##op##_##type(const void *carry, const uint8_t *heads, const void *in, void *out,        \
                                            int64_t begin, int64_t end, bool stream)                                   \
    {                                                                                                                  \
        T all = *(const T *)carry;                                                                                     \
        (void)stream;                                                                                                  \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const T x = ((const T *)in)[i], joined = op_##op##_##type(all, x);                                         \
            ((T *)out)[i] = all = heads[i - begin] ? x : joined;                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void seg_exclusive_##op##_##type(const void *carry, const uint8_t *heads, const void *in, void *out,        \
                                            int64_t begin, int64_t end, bool stream)                                   \
    {                                                                                                                  \
        T all = *(const T *)carry;                                                                                     \
        (void)stream;                                                                                                  \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const T before = heads[i - begin] ? identity_##op##_##type() : all;                                        \
            all = op_##op##_##type(before, ((const T *)in)[i]);                                                        \
            ((T *)out)[i] = before;                                                                                    \
        }                                                                                                              \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

/* --------------------------------------------------------- reduce by segments
 * SUM_GROUP neighbouring segments that are all SHORT go side by side, their first elements, then their second ones; a
 * segment that has none left gets what changes nothing. So there is a branch to guess a group and not one a segment. */
enum { SHORT = 8 };

/* What changes nothing: the identity, but -0 for sums, since -0 + 0 is 0. Tuples may have members that are -0, so they
 * go one by one. */
#define NOTHING_INTEGER(OP, op, type) identity_##op##_##type()
#define NOTHING_REAL(OP, op, type) (SPMV_##OP == SPMV_ADD ? -identity_##op##_##type() : identity_##op##_##type())
#define NOTHING_TUPLE(OP, op, type) identity_##op##_##type()
#define SIDE_BY_SIDE_INTEGER true
#define SIDE_BY_SIDE_REAL true
#define SIDE_BY_SIDE_TUPLE false

/* yes or no, without a branch: which one it is cannot be guessed. */
static inline const void *either(bool take, const void *yes, const void *no)
{
    return (const void *)(((uintptr_t)yes & -(uintptr_t)take) | ((uintptr_t)no & ((uintptr_t)take - 1)));
}

#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static inline void side_by_side_##op##_##type(const T *x, const int64_t *h, int64_t longest, T *out)               \
    {                                                                                                                  \
        const T identity = identity_##op##_##type(), nothing = NOTHING_##CLASS(OP, op, type);                          \
        T v[SUM_GROUP];                                                                                                \
        for (int j = 0; j < SUM_GROUP; j++)                                                                            \
            v[j] = *(const T *)either(h[j] < h[j + 1], x + h[j], &identity);                                           \
        for (int64_t k = 1; k < longest; k++)                                                                          \
            for (int j = 0; j < SUM_GROUP; j++)                                                                        \
                v[j] = op_##op##_##type(v[j], *(const T *)either(h[j] + k < h[j + 1], x + h[j] + k, &nothing));        \
        memcpy(out, v, sizeof v);                                                                                      \
    }                                                                                                                  \
    static inline T run_within_##op##_##type(const T *x, int64_t begin, int64_t end, int64_t n)                        \
    {                                                                                                                  \
        (void)n;                                                                                                       \
        return run_##op##_##type(x, begin, end);                                                                       \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

/* run and side_by_side: of a segment; of SUM_GROUP, where it may read so many elements behind the last. */
#define DEFINE_SEGMENTS(op, type, T, CLASS, name, run, side_by_side, reads)                                            \
    static inline void one_by_one_##name(const T *x, int64_t n, const void *heads, int bits, int64_t s, int64_t last,  \
                                         T *out)                                                                       \
    {                                                                                                                  \
        for (; s < last; s++) {                                                                                        \
            const int64_t begin = offset_at(heads, bits, s), end = offset_at(heads, bits, s + 1);                      \
            out[s] = begin < end ? run(x, begin, end, n) : identity_##op##_##type();                                   \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void segments_of_##name(const T *x, int64_t n, const void *heads, int bits, int64_t s, int64_t last, \
                                          T *out)                                                                      \
    {                                                                                                                  \
        for (; SIDE_BY_SIDE_##CLASS && s + SUM_GROUP <= last; s += SUM_GROUP) {                                        \
            int64_t h[SUM_GROUP + 1], longest = 0;                                                                     \
            for (int j = 0; j <= SUM_GROUP; j++)                                                                       \
                h[j] = offset_at(heads, bits, s + j);                                                                  \
            for (int j = 0; j < SUM_GROUP; j++)                                                                        \
                longest = max_i64(longest, h[j + 1] - h[j]);                                                           \
            if (longest <= SHORT && h[SUM_GROUP] <= n - (reads))                                                       \
                side_by_side(x, h, longest, out + s);                                                                  \
            else                                                                                                       \
                one_by_one_##name(x, n, heads, bits, s, s + SUM_GROUP, out);                                           \
        }                                                                                                              \
        one_by_one_##name(x, n, heads, bits, s, last, out);                                                            \
    }                                                                                                                  \
    static void segments_##name(const void *in, int64_t n, const void *heads, int bits, int64_t first, int64_t last,   \
                                void *out)                                                                             \
    {                                                                                                                  \
        if (bits == 32)                                                                                                \
            segments_of_##name(in, n, heads, 32, first, last, out);                                                    \
        else                                                                                                           \
            segments_of_##name(in, n, heads, 64, first, last, out);                                                    \
    }
#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    DEFINE_SEGMENTS(op, type, T, CLASS, op##_##type, run_within_##op##_##type, side_by_side_##op##_##type, 0)
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE
#define DEFINE(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                \
    DEFINE_SEGMENTS(add, type, T, CLASS, sum_##type, sum_run_##type, sum_side_by_side_##type, SHORT)
SUM_LIST(DEFINE)
#undef DEFINE

#define ROW(OP, op, TYPE, type, T, D, CLASS)                                                                           \
    [SPMV_##OP][SPMV_##TYPE] = {.size = sizeof(T),                                                                     \
                                .identity = identity_of_##op##_##type,                                                 \
                                .combine = combine_##op##_##type,                                                      \
                                .fold = fold_##op##_##type,                                                            \
                                .scan = {inclusive_##op##_##type, exclusive_##op##_##type},                            \
                                .segscan = {seg_inclusive_##op##_##type, seg_exclusive_##op##_##type},                 \
                                .segments = segments_##op##_##type},
static const struct op_loops table[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT] = {SPMV_PAIR_LIST(ROW)};
#undef ROW

#define ROW(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                   \
    [SPMV_##TYPE] = {.size = sizeof(T),                                                                                \
                     .identity = identity_of_add_##type,                                                               \
                     .combine = combine_add_##type,                                                                    \
                     .fold = sum_fold_##type,                                                                          \
                     .scan = {sum_inclusive_##type, sum_exclusive_##type},                                             \
                     .segscan = {sum_seg_inclusive_##type, sum_seg_exclusive_##type},                                  \
                     .segments = segments_sum_##type},
static const struct op_loops sums[SPMV_TYPE_LIMIT] = {SUM_LIST(ROW)};
#undef ROW

const struct op_loops *op_loops(spmv_op op, spmv_type type)
{
    return op == SPMV_ADD && sums[type].size > 0 ? &sums[type] : &table[op][type];
}

void carry_restart(const struct op_loops *loops, spmv_scan_kind kind, struct carry *carry)
{
    carry->some = kind == SPMV_EXCLUSIVE;
    if (carry->some)
        loops->identity(&carry->value);
}

void carry_join(const struct op_loops *loops, struct carry *carry, const void *part)
{
    if (carry->some)
        loops->combine(&carry->value, part, &carry->value);
    else
        memcpy(&carry->value, part, loops->size);
    carry->some = true;
}

void scan_from(const struct op_loops *loops, spmv_scan_kind kind, const struct carry *carry, const uint8_t *heads,
               const void *in, void *out, int64_t begin, int64_t end, bool stream)
{
    union any_element before = carry->value;
    if (!carry->some && begin < end) {
        /* nothing on the left: the first result is the first element */
        memcpy(&before, element(in, loops->size, begin), loops->size);
        memcpy(element_out(out, loops->size, begin), &before, loops->size);
        begin++;
        heads = heads != NULL ? heads + 1 : NULL;
    }
    if (heads != NULL)
        loops->segscan[kind](&before, heads, in, out, begin, end, stream);
    else
        loops->scan[kind](&before, in, out, begin, end, stream);
}

/* Results from that on do not fit in the last-level caches of most machines, or should leave them to others. */
static const int64_t STREAM_BYTES = (int64_t)32 << 20;

bool scan_streams(const struct op_loops *loops, const void *in, const void *out, int64_t n)
{
    return in != out && n >= STREAM_BYTES / (int64_t)loops->size;
}
