/* Serial loops, generated: see loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "loops.h"

#include "host_tiles.h"
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
    static void inclusive_##op##_##type(const void *carry, const void *in, void *out, int64_t begin, int64_t end)      \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        T *y = out, all = *(const T *)carry;                                                                           \
        int64_t i = begin;                                                                                             \
        for (; i + 4 <= end; i += 4)                                                                                   \
            all = inclusive_four_##op##_##type(all, x + i, y + i);                                                     \
        for (; i < end; i++)                                                                                           \
            y[i] = all = op_##op##_##type(all, x[i]);                                                                  \
    }                                                                                                                  \
    static void exclusive_##op##_##type(const void *carry, const void *in, void *out, int64_t begin, int64_t end)      \
    {                                                                                                                  \
        const T *x = in;                                                                                               \
        T *y = out, all = *(const T *)carry;                                                                           \
        int64_t i = begin;                                                                                             \
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
                                            int64_t begin, int64_t end)                                                \
    {                                                                                                                  \
        T all = *(const T *)carry;                                                                                     \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const T x = ((const T *)in)[i], joined = op_##op##_##type(all, x);                                         \
            ((T *)out)[i] = all = heads[i - begin] ? x : joined;                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void seg_exclusive_##op##_##type(const void *carry, const uint8_t *heads, const void *in, void *out,        \
                                            int64_t begin, int64_t end)                                                \
    {                                                                                                                  \
        T all = *(const T *)carry;                                                                                     \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const T before = heads[i - begin] ? identity_##op##_##type() : all;                                        \
            all = op_##op##_##type(before, ((const T *)in)[i]);                                                        \
            ((T *)out)[i] = before;                                                                                    \
        }                                                                                                              \
    }
SPMV_PAIR_LIST(DEFINE)
#undef DEFINE

#define DEFINE(OP, op, TYPE, type, T, D, CLASS)                                                                        \
    static void segments_##op##_##type(const void *in, const void *heads, int bits, int64_t first, int64_t last,       \
                                       void *out)                                                                      \
    {                                                                                                                  \
        for (int64_t s = first; s < last; s++) {                                                                       \
            const int64_t begin = offset_at(heads, bits, s), end = offset_at(heads, bits, s + 1);                      \
            ((T *)out)[s] = begin < end ? run_##op##_##type(in, begin, end) : identity_##op##_##type();                \
        }                                                                                                              \
    }
SPMV_PAIR_LIST(DEFINE)
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

const struct op_loops *op_loops(spmv_op op, spmv_type type)
{
    return &table[op][type];
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
               const void *in, void *out, int64_t begin, int64_t end)
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
        loops->segscan[kind](&before, heads, in, out, begin, end);
    else
        loops->scan[kind](&before, in, out, begin, end);
}
