/* Serial loops, generated: see loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "loops.h"

#include "ops.h"

/* Chains that fold keeps going side by side, so that the latency of one operation is not what a sum waits for. */
enum { CHAINS = 8 };

#define DEFINE_SMALL(OP, op, TYPE, type, T, D, CLASS)                                                                  \
    static void identity_of_##op##_##type(void *out)                                                                   \
    {                                                                                                                  \
        *(T *)out = identity_##op##_##type();                                                                          \
    }                                                                                                                  \
    static void combine_##op##_##type(const void *earlier, const void *later, void *out)                               \
    {                                                                                                                  \
        *(T *)out = op_##op##_##type(*(const T *)earlier, *(const T *)later);                                          \
    }
SPMV_PAIR_LIST(DEFINE_SMALL)

/* CHAINS contiguous blocks, each from left to right, then the blocks from left to right, then the rest. */
#define DEFINE_FOLD(OP, op, TYPE, type, T, D, CLASS)                                                                   \
    static void fold_##op##_##type(const void *from, int64_t n, void *out)                                             \
    {                                                                                                                  \
        const T *in = from;                                                                                            \
        const int64_t block = n / CHAINS;                                                                              \
        T chain[CHAINS], all = in[0];                                                                                  \
        for (int c = 0; c < CHAINS && block > 0; c++)                                                                  \
            chain[c] = in[c * block];                                                                                  \
        for (int64_t i = 1; i < block; i++)                                                                            \
            for (int c = 0; c < CHAINS; c++)                                                                           \
                chain[c] = op_##op##_##type(chain[c], in[c * block + i]);                                              \
        if (block > 0)                                                                                                 \
            all = chain[0];                                                                                            \
        for (int c = 1; c < CHAINS && block > 0; c++)                                                                  \
            all = op_##op##_##type(all, chain[c]);                                                                     \
        for (int64_t i = block > 0 ? CHAINS * block : 1; i < n; i++)                                                   \
            all = op_##op##_##type(all, in[i]);                                                                        \
        *(T *)out = all;                                                                                               \
    }
SPMV_PAIR_LIST(DEFINE_FOLD)

#define DEFINE_SCAN(OP, op, TYPE, type, T, D, CLASS)                                                                   \
    static void inclusive_##op##_##type(const T *carry, const T *in, T *out, int64_t n)                                \
    {                                                                                                                  \
        T all = carry != NULL ? op_##op##_##type(*carry, in[0]) : in[0];                                               \
        out[0] = all;                                                                                                  \
        for (int64_t i = 1; i < n; i++)                                                                                \
            out[i] = all = op_##op##_##type(all, in[i]);                                                               \
    }                                                                                                                  \
    static void exclusive_##op##_##type(const T *carry, const T *in, T *out, int64_t n)                                \
    {                                                                                                                  \
        T all = carry != NULL ? *carry : identity_##op##_##type();                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const T next = op_##op##_##type(all, in[i]);                                                               \
            out[i] = all;                                                                                              \
            all = next;                                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void scan_##op##_##type(spmv_scan_kind kind, const void *carry, const void *in, void *out, int64_t n)       \
    {                                                                                                                  \
        (kind == SPMV_INCLUSIVE ? inclusive_##op##_##type : exclusive_##op##_##type)(carry, in, out, n);               \
    }
SPMV_PAIR_LIST(DEFINE_SCAN)

/* before: what stands to the left of element i in its segment; fresh: nothing does */
#define DEFINE_SEGSCAN(OP, op, TYPE, type, T, D, CLASS)                                                                \
    static void segscan_##op##_##type(spmv_scan_kind kind, const void *carry, const uint8_t *flags, const void *from,  \
                                      void *to, int64_t n)                                                             \
    {                                                                                                                  \
        const T *in = from;                                                                                            \
        T *out = to, before = carry != NULL ? *(const T *)carry : identity_##op##_##type();                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const bool fresh = i == 0 ? carry == NULL : flags[i] != 0;                                                 \
            const T with = fresh ? in[i] : op_##op##_##type(before, in[i]);                                            \
            out[i] = kind == SPMV_INCLUSIVE ? with : fresh ? identity_##op##_##type() : before;                        \
            before = with;                                                                                             \
        }                                                                                                              \
    }
SPMV_PAIR_LIST(DEFINE_SEGSCAN)

#define ROW(OP, op, TYPE, type, T, D, CLASS)                                                                           \
    [SPMV_##OP][SPMV_##TYPE] = {.size = sizeof(T),                                                                     \
                                .identity = identity_of_##op##_##type,                                                 \
                                .combine = combine_##op##_##type,                                                      \
                                .fold = fold_##op##_##type,                                                            \
                                .scan = scan_##op##_##type,                                                            \
                                .segscan_flags = segscan_##op##_##type},
static const struct op_loops table[SPMV_OP_LIMIT][SPMV_TYPE_LIMIT] = {SPMV_PAIR_LIST(ROW)};

#define CHECK_WIDTH(NAME, name, value, T, D, CLASS, ARG)                                                               \
    _Static_assert(sizeof(T) <= LOOPS_WIDEST, "raise LOOPS_WIDEST");
SPMV_TYPE_LIST(CHECK_WIDTH, )

const struct op_loops *op_loops(spmv_op op, spmv_type type)
{
    return &table[op][type];
}
