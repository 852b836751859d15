/* The typed part of test_sums.c, included once for each type (each_sum.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* Adding this to x keeps all bits of x. */
#define NOTHING (IS_REAL ? -(T)0 : (T)0)

/* ------------------------------------------------ the association, element by element
 * A vector has 16 bytes. In a pair of vectors the lanes of each are scanned in steps of one and two
 * lanes. The last lane of the first vector is added to the second, and the sum before the pair to
 * both. A step stops at a head. */
static void TYPED(pair_by_hand)(bool inclusive, T *before, const uint8_t *heads, const T *x, T *y)
{
    T v[2 * LANES];
    bool seen[2 * LANES], wide[2 * LANES];
    for (int j = 0; j < 2 * LANES; j++)
        v[j] = x[j], seen[j] = heads != NULL && heads[j] != 0;
    for (int step = 1; step < LANES; step *= 2) {
        T was[2 * LANES];
        memcpy(was, v, sizeof v);
        memcpy(wide, seen, sizeof seen);
        for (int j = 0; j < 2 * LANES; j++) {
            if (j % LANES < step)
                continue;
            if (!wide[j])
                v[j] = (T)((LANE)was[j - step] + (LANE)was[j]);
            seen[j] = wide[j] || wide[j - step];
        }
    }
    for (int j = LANES; j < 2 * LANES; j++) {
        if (!seen[j])
            v[j] = (T)((LANE)v[LANES - 1] + (LANE)v[j]);
        seen[j] = seen[j] || seen[LANES - 1];
    }
    for (int j = 0; j < 2 * LANES; j++)
        v[j] = seen[j] ? v[j] : (T)((LANE)*before + (LANE)v[j]);
    for (int j = 0; j < 2 * LANES; j++) {
        const T left = heads != NULL && heads[j] != 0 ? 0 : j == 0 ? *before : v[j - 1];
        y[j] = inclusive ? v[j] : left;
    }
    *before = v[2 * LANES - 1];
}

static void TYPED(scan_by_hand)(bool inclusive, T before, const uint8_t *heads, const T *x, T *y, int64_t begin,
                                int64_t end)
{
    const int64_t block = heads == NULL ? 2 * LANES : 16, whole = begin + (end - begin) / block * block;
    int64_t i = begin;
    for (; i < whole; i += 2 * LANES)
        TYPED(pair_by_hand)(inclusive, &before, heads == NULL ? NULL : heads + (i - begin), x + i, y + i);
    for (; i < end; i++) {
        const bool head = heads != NULL && heads[i - begin] != 0;
        const T left = head ? 0 : before;
        before = head ? x[i] : (T)((LANE)before + (LANE)x[i]);
        y[i] = inclusive ? before : left;
    }
}

static T TYPED(sum_by_hand)(const T *x, int64_t begin, int64_t end)
{
    T part[4 * LANES];
    bool some[4 * LANES] = {false};
    for (int64_t i = begin; i < end; i++) {
        const int64_t j = (i - begin) % (4 * LANES);
        part[j] = some[j] ? (T)((LANE)part[j] + (LANE)x[i]) : x[i];
        some[j] = true;
    }
    for (int64_t j = 0; j < 4 * LANES; j++)
        part[j] = some[j] ? part[j] : NOTHING;
    T lane[LANES];
    for (int j = 0; j < LANES; j++)
        lane[j] =
            (T)(((LANE)part[j] + (LANE)part[LANES + j]) + ((LANE)part[2 * LANES + j] + (LANE)part[3 * LANES + j]));
    for (int width = 1; width < LANES; width *= 2)
        for (int j = 0; j + width < LANES; j += 2 * width)
            lane[j] = (T)((LANE)lane[j] + (LANE)lane[j + width]);
    return lane[0];
}

/* ---------------------------------------------------------------------- scans */
static void TYPED(check_scans)(const T *x, const uint8_t *heads, int64_t begin, int64_t end, int shift)
{
    _Alignas(64) T room[MOST + 16];
    T want[MOST], *const got = room + shift, before = x[MOST - 1];
    for (int way = 0; way < 8; way++) {
        const bool inclusive = way & 1, stream = way & 2, in_place = way & 4;
        memset(room, GUARD_BYTE, sizeof room);
        if (in_place)
            memcpy(got, x, sizeof want);
        memcpy(want, got, sizeof want);
        TYPED(scan_by_hand)(inclusive, before, heads, x, want, begin, end);
        const T *const in = in_place ? got : x;
        if (heads == NULL)
            (inclusive ? TYPED(inclusive) : TYPED(exclusive))(&before, in, got, begin, end, stream);
        else
            (inclusive ? TYPED(seg_inclusive) : TYPED(seg_exclusive))(&before, heads, in, got, begin, end, stream);
        assert_same(got, want, sizeof(T), MOST, spmv_type_name((spmv_type)TYPED(type_of)));
    }
}

static void TYPED(scans)(void **state)
{
    (void)state;
    uint64_t seed = 401;
    T *x = pair_values(pair_of(SPMV_ADD, (spmv_type)TYPED(type_of)), MOST, false, 403);
    uint8_t heads[MOST];
    x[5] = x[6] = NOTHING;
    for (int how = NO_HEADS; how <= SOME_HEADS; how++) {
        for (int64_t length = 0; length < MOST - 3; length++) {
            fill_heads(heads, (enum heads)how, &seed);
            TYPED(check_scans)(x, how == NO_HEADS ? NULL : heads, length % 3, length % 3 + length, (int)(length % 9));
        }
    }
    free(x);
}

/* -0 keeps its sign, whatever its neighbours are */
static void TYPED(zeros)(void **state)
{
    (void)state;
    T x[MOST], y[MOST], before = NOTHING;
    uint8_t heads[MOST];
    uint64_t seed = 405;
    for (int i = 0; i < MOST; i++)
        x[i] = NOTHING;
    for (int how = NO_HEADS; how <= SOME_HEADS; how++) {
        fill_heads(heads, (enum heads)how, &seed);
        if (how == NO_HEADS)
            TYPED(inclusive)(&before, x, y, 0, MOST, false);
        else
            TYPED(seg_inclusive)(&before, heads, x, y, 0, MOST, false);
        assert_same(y, x, sizeof(T), MOST, spmv_type_name((spmv_type)TYPED(type_of)));
    }
    T sum;
    TYPED(fold)(x, 0, MOST, &sum);
    assert_same(&sum, x, sizeof(T), 1, spmv_type_name((spmv_type)TYPED(type_of)));
}

static void TYPED(folds)(void **state)
{
    (void)state;
    T *x = pair_values(pair_of(SPMV_ADD, (spmv_type)TYPED(type_of)), MOST, false, 407), sum, want;
    for (int64_t begin = 0; begin < 5; begin++) {
        for (int64_t end = begin + 1; end <= MOST; end++) {
            want = TYPED(sum_by_hand)(x, begin, end);
            TYPED(fold)(x, begin, end, &sum);
            assert_same(&sum, &want, sizeof(T), 1, spmv_type_name((spmv_type)TYPED(type_of)));
            for (int64_t limit = end; limit <= MOST; limit++) {
                T *exact = host_array(limit * (int64_t)sizeof(T)); /* nothing readable after it */
                memcpy(exact, x, (size_t)limit * sizeof(T));
                sum = TYPED(total)(exact, begin, end, limit);
                assert_same(&sum, &want, sizeof(T), 1, spmv_type_name((spmv_type)TYPED(type_of)));
                free(exact);
            }
        }
    }
    free(x);
}

/* Several folds computed side by side each equal the fold of their elements one by one. */
static void TYPED(sides)(void **state)
{
    (void)state;
    T *x = pair_values(pair_of(SPMV_ADD, (spmv_type)TYPED(type_of)), MOST, false, 409), got[SUMS_AT_ONCE],
      want[SUMS_AT_ONCE];
    uint64_t seed = 411;
    x[3] = x[4] = x[5] = x[6] = NOTHING;
    for (int round = 0; round < 300; round++) {
        const int64_t most = 1 + round % 8;
        int64_t head[SUMS_AT_ONCE + 1] = {round % 5}, longest = 0;
        for (int s = 0; s < SUMS_AT_ONCE; s++) {
            const int64_t length = (int64_t)(support_random(&seed) % (uint64_t)(most + 1));
            head[s + 1] = head[s] + length;
            longest = max_i64(longest, length);
            want[s] = length > 0 ? x[head[s]] : 0;
            for (int64_t i = head[s] + 1; i < head[s + 1]; i++)
                want[s] = (T)((LANE)want[s] + (LANE)x[i]);
        }
        TYPED(side_by_side)(x, head, longest, got);
        assert_same(got, want, sizeof(T), SUMS_AT_ONCE, spmv_type_name((spmv_type)TYPED(type_of)));
    }
    free(x);
}

#undef NOTHING
