/* The vectors of the sums: their bits are those of the association that loops_sums.c describes, written out here
 * element by element, at every length and place near the seams of vectors, of pairs and of 16 heads; on every
 * processor, to whatever address, past the caches or not. Folds take from behind their end at most what they may read,
 * and none of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "loops_sums.h"
#include "support_pairs.h"

enum { MOST = 2 * 64 + 7 };

/* ------------------------------------------------ the association, written out
 * A vector has 16 bytes. In a pair the lanes of each vector are scanned in steps of one and two lanes, the second gets
 * the last lane of the first, both what stands before them; a step stops at a head. */
#define DEFINE(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                \
    static void pair_by_hand_##type(bool inclusive, T *before, const uint8_t *heads, const T *x, T *y)                 \
    {                                                                                                                  \
        T v[2 * lanes];                                                                                                \
        bool seen[2 * lanes], wide[2 * lanes];                                                                         \
        for (int j = 0; j < 2 * lanes; j++)                                                                            \
            v[j] = x[j], seen[j] = heads != NULL && heads[j] != 0;                                                     \
        for (int step = 1; step < lanes; step *= 2) {                                                                  \
            T was[2 * lanes];                                                                                          \
            memcpy(was, v, sizeof v);                                                                                  \
            memcpy(wide, seen, sizeof seen);                                                                           \
            for (int j = 0; j < 2 * lanes; j++) {                                                                      \
                if (j % lanes < step)                                                                                  \
                    continue;                                                                                          \
                if (!wide[j])                                                                                          \
                    v[j] = (T)((Lane)was[j - step] + (Lane)was[j]);                                                    \
                seen[j] = wide[j] || wide[j - step];                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        for (int j = lanes; j < 2 * lanes; j++) {                                                                      \
            if (!seen[j])                                                                                              \
                v[j] = (T)((Lane)v[lanes - 1] + (Lane)v[j]);                                                           \
            seen[j] = seen[j] || seen[lanes - 1];                                                                      \
        }                                                                                                              \
        for (int j = 0; j < 2 * lanes; j++)                                                                            \
            v[j] = seen[j] ? v[j] : (T)((Lane)*before + (Lane)v[j]);                                                   \
        for (int j = 0; j < 2 * lanes; j++) {                                                                          \
            const T left = heads != NULL && heads[j] != 0 ? 0 : j == 0 ? *before : v[j - 1];                           \
            y[j] = inclusive ? v[j] : left;                                                                            \
        }                                                                                                              \
        *before = v[2 * lanes - 1];                                                                                    \
    }                                                                                                                  \
    static void scan_by_hand_##type(bool inclusive, T before, const uint8_t *heads, const T *x, T *y, int64_t begin,   \
                                    int64_t end)                                                                       \
    {                                                                                                                  \
        const int64_t block = heads == NULL ? 2 * lanes : 16, whole = begin + (end - begin) / block * block;           \
        int64_t i = begin;                                                                                             \
        for (; i < whole; i += 2 * lanes)                                                                              \
            pair_by_hand_##type(inclusive, &before, heads == NULL ? NULL : heads + (i - begin), x + i, y + i);         \
        for (; i < end; i++) {                                                                                         \
            const bool head = heads != NULL && heads[i - begin] != 0;                                                  \
            const T left = head ? 0 : before;                                                                          \
            before = head ? x[i] : (T)((Lane)before + (Lane)x[i]);                                                     \
            y[i] = inclusive ? before : left;                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static T run_by_hand_##type(const T *x, int64_t begin, int64_t end)                                                \
    {                                                                                                                  \
        T part[4 * lanes];                                                                                             \
        bool some[4 * lanes] = {false};                                                                                \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            const int64_t j = (i - begin) % (4 * lanes);                                                               \
            part[j] = some[j] ? (T)((Lane)part[j] + (Lane)x[i]) : x[i];                                                \
            some[j] = true;                                                                                            \
        }                                                                                                              \
        for (int64_t j = 0; j < 4 * lanes; j++)                                                                        \
            part[j] = some[j] ? part[j] : NOTHING_##CLASS(T);                                                          \
        T lane[lanes];                                                                                                 \
        for (int j = 0; j < lanes; j++)                                                                                \
            lane[j] = (T)(((Lane)part[j] + (Lane)part[lanes + j]) +                                                    \
                          ((Lane)part[2 * lanes + j] + (Lane)part[3 * lanes + j]));                                    \
        for (int width = 1; width < lanes; width *= 2)                                                                 \
            for (int j = 0; j + width < lanes; j += 2 * width)                                                         \
                lane[j] = (T)((Lane)lane[j] + (Lane)lane[j + width]);                                                  \
        return lane[0];                                                                                                \
    }
#define NOTHING_INTEGER(T) 0
#define NOTHING_REAL(T) (-(T)0)
SUM_LIST(DEFINE)
#undef DEFINE

/* ---------------------------------------------------------------------- scans */
enum heads { NO_HEADS, NO_HEAD_SET, ALL_HEADS, SOME_HEADS };

static void fill_heads(uint8_t *heads, enum heads how, uint64_t *seed)
{
    for (int i = 0; i < MOST; i++)
        heads[i] =
            how == ALL_HEADS || (how == SOME_HEADS && support_random(seed) % 5 == 0) ? 1 + (uint8_t)(i % 255) : 0;
}

#define DEFINE(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                \
    static void check_scans_##type(const T *x, const uint8_t *heads, int64_t begin, int64_t end, int shift)            \
    {                                                                                                                  \
        _Alignas(64) T room[MOST + 16];                                                                                \
        T want[MOST], *const got = room + shift, before = x[MOST - 1];                                                 \
        for (int way = 0; way < 8; way++) {                                                                            \
            const bool inclusive = way & 1, stream = way & 2, in_place = way & 4;                                      \
            memset(room, GUARD_BYTE, sizeof room);                                                                     \
            if (in_place)                                                                                              \
                memcpy(got, x, sizeof want);                                                                           \
            memcpy(want, got, sizeof want);                                                                            \
            scan_by_hand_##type(inclusive, before, heads, x, want, begin, end);                                        \
            const T *const in = in_place ? got : x;                                                                    \
            if (heads == NULL)                                                                                         \
                (inclusive ? sum_inclusive_##type : sum_exclusive_##type)(&before, in, got, begin, end, stream);       \
            else                                                                                                       \
                (inclusive ? sum_seg_inclusive_##type : sum_seg_exclusive_##type)(&before, heads, in, got, begin, end, \
                                                                                  stream);                             \
            assert_same(got, want, sizeof(T), MOST, #type);                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void scans_##type(void **state)                                                                             \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        uint64_t seed = 401;                                                                                           \
        T *x = pair_values(pair_of(SPMV_ADD, SPMV_##TYPE), MOST, false, 403);                                          \
        uint8_t heads[MOST];                                                                                           \
        x[5] = x[6] = NOTHING_##CLASS(T);                                                                              \
        for (int how = NO_HEADS; how <= SOME_HEADS; how++) {                                                           \
            for (int64_t length = 0; length < MOST - 3; length++) {                                                    \
                fill_heads(heads, (enum heads)how, &seed);                                                             \
                check_scans_##type(x, how == NO_HEADS ? NULL : heads, length % 3, length % 3 + length,                 \
                                   (int)(length % 9));                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        free(x);                                                                                                       \
    }                                                                                                                  \
    /* -0 stays, whatever stands next to it */                                                                         \
    static void zeros_##type(void **state)                                                                             \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        T x[MOST], y[MOST], before = NOTHING_##CLASS(T);                                                               \
        uint8_t heads[MOST];                                                                                           \
        uint64_t seed = 405;                                                                                           \
        for (int i = 0; i < MOST; i++)                                                                                 \
            x[i] = NOTHING_##CLASS(T);                                                                                 \
        for (int how = NO_HEADS; how <= SOME_HEADS; how++) {                                                           \
            fill_heads(heads, (enum heads)how, &seed);                                                                 \
            if (how == NO_HEADS)                                                                                       \
                sum_inclusive_##type(&before, x, y, 0, MOST, false);                                                   \
            else                                                                                                       \
                sum_seg_inclusive_##type(&before, heads, x, y, 0, MOST, false);                                        \
            assert_same(y, x, sizeof(T), MOST, #type);                                                                 \
        }                                                                                                              \
        T sum;                                                                                                         \
        sum_fold_##type(x, 0, MOST, &sum);                                                                             \
        assert_same(&sum, x, sizeof(T), 1, #type);                                                                     \
    }                                                                                                                  \
    static void folds_##type(void **state)                                                                             \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        T *x = pair_values(pair_of(SPMV_ADD, SPMV_##TYPE), MOST, false, 407), sum, want;                               \
        for (int64_t begin = 0; begin < 5; begin++) {                                                                  \
            for (int64_t end = begin + 1; end <= MOST; end++) {                                                        \
                want = run_by_hand_##type(x, begin, end);                                                              \
                sum_fold_##type(x, begin, end, &sum);                                                                  \
                assert_same(&sum, &want, sizeof(T), 1, #type);                                                         \
                for (int64_t limit = end; limit <= MOST; limit++) {                                                    \
                    T *exact = host_array(limit * (int64_t)sizeof(T)); /* nothing behind it to read */                 \
                    memcpy(exact, x, (size_t)limit * sizeof(T));                                                       \
                    sum = sum_run_##type(exact, begin, end, limit);                                                    \
                    assert_same(&sum, &want, sizeof(T), 1, #type);                                                     \
                    free(exact);                                                                                       \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        free(x);                                                                                                       \
    }                                                                                                                  \
    /* side by side each is the fold from its first element on, one by one */                                          \
    static void side_by_side_##type(void **state)                                                                      \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        T *x = pair_values(pair_of(SPMV_ADD, SPMV_##TYPE), MOST, false, 409), got[SUM_GROUP], want[SUM_GROUP];         \
        uint64_t seed = 411;                                                                                           \
        x[3] = x[4] = x[5] = x[6] = NOTHING_##CLASS(T);                                                                \
        for (int round = 0; round < 300; round++) {                                                                    \
            const int64_t most = 1 + round % 8;                                                                        \
            int64_t head[SUM_GROUP + 1] = {round % 5}, longest = 0;                                                    \
            for (int s = 0; s < SUM_GROUP; s++) {                                                                      \
                const int64_t length = (int64_t)(support_random(&seed) % (uint64_t)(most + 1));                        \
                head[s + 1] = head[s] + length;                                                                        \
                longest = max_i64(longest, length);                                                                    \
                want[s] = length > 0 ? x[head[s]] : 0;                                                                 \
                for (int64_t i = head[s] + 1; i < head[s + 1]; i++)                                                    \
                    want[s] = (T)((Lane)want[s] + (Lane)x[i]);                                                         \
            }                                                                                                          \
            sum_side_by_side_##type(x, head, longest, got);                                                            \
            assert_same(got, want, sizeof(T), SUM_GROUP, #type);                                                       \
        }                                                                                                              \
        free(x);                                                                                                       \
    }
SUM_LIST(DEFINE)
#undef DEFINE

#define ROWS(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                  \
    cmocka_unit_test(scans_##type), cmocka_unit_test(zeros_##type), cmocka_unit_test(folds_##type),                    \
        cmocka_unit_test(side_by_side_##type),

SUPPORT_MAIN(SUM_LIST(ROWS))
