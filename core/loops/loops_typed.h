/* The typed part of loops.c, included once per pair of operator and type (each_pair.h). Sums of
 * numbers have their own loops (loops_sums.c) for fold, scan and the reduction of short segments.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static void TYPED(identity_of)(void *out)
{
    *(T *)out = TYPED(identity)();
}

static void TYPED(combine)(const void *earlier, const void *later, void *out)
{
    *(T *)out = TYPED(op)(*(const T *)earlier, *(const T *)later);
}

#if !IS_SUM
/* Eight elements as a tree: three operations deep instead of seven, and one operation from block to
 * block. */
static inline T TYPED(pair)(const T *x)
{
    return TYPED(op)(x[0], x[1]);
}

static inline T TYPED(four)(const T *x)
{
    return TYPED(op)(TYPED(pair)(x), TYPED(pair)(x + 2));
}

static inline T TYPED(eight)(const T *x)
{
    return TYPED(op)(TYPED(four)(x), TYPED(four)(x + 4));
}

/* in[begin] op ... op in[end-1], begin < end. The fold starts with the first element, not the
 * identity: 0 + -0 is not -0. */
static inline T TYPED(total)(const T *in, int64_t begin, int64_t end, int64_t limit)
{
    T all = in[begin];
    int64_t i = begin + 1;
    (void)limit;
    for (; i + 8 <= end; i += 8)
        all = TYPED(op)(all, TYPED(eight)(in + i));
    for (; i < end; i++)
        all = TYPED(op)(all, in[i]);
    return all;
}

static void TYPED(fold)(const void *in, int64_t begin, int64_t end, void *out)
{
    *(T *)out = TYPED(total)(in, begin, end, end);
}

/* Scans four elements, then joins them to the carry: one operation from block to block. Reads all
 * four before it writes one, so out may equal in. */
static inline T TYPED(inclusive_four)(T before, const T *x, T *y)
{
    const T a = x[0], ab = TYPED(op)(a, x[1]), c = x[2], cd = TYPED(op)(c, x[3]);
    const T abc = TYPED(op)(ab, c), abcd = TYPED(op)(ab, cd);
    y[0] = TYPED(op)(before, a);
    y[1] = TYPED(op)(before, ab);
    y[2] = TYPED(op)(before, abc);
    return y[3] = TYPED(op)(before, abcd);
}

static inline T TYPED(exclusive_four)(T before, const T *x, T *y)
{
    const T a = x[0], ab = TYPED(op)(a, x[1]), c = x[2], cd = TYPED(op)(c, x[3]);
    y[0] = before;
    y[1] = TYPED(op)(before, a);
    y[2] = TYPED(op)(before, ab);
    y[3] = TYPED(op)(before, TYPED(op)(ab, c));
    return TYPED(op)(before, TYPED(op)(ab, cd));
}

static void TYPED(inclusive)(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream)
{
    const T *x = in;
    T *y = out, all = *(const T *)carry;
    int64_t i = begin;
    (void)stream;
    for (; i + 4 <= end; i += 4)
        all = TYPED(inclusive_four)(all, x + i, y + i);
    for (; i < end; i++)
        y[i] = all = TYPED(op)(all, x[i]);
}

static void TYPED(exclusive)(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream)
{
    const T *x = in;
    T *y = out, all = *(const T *)carry;
    int64_t i = begin;
    (void)stream;
    for (; i + 4 <= end; i += 4)
        all = TYPED(exclusive_four)(all, x + i, y + i);
    for (T next; i < end; i++, all = next) {
        next = TYPED(op)(all, x[i]);
        y[i] = all;
    }
}

static void TYPED(seg_inclusive)(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,
                                 int64_t end, bool stream)
{
    T all = *(const T *)carry;
    (void)stream;
    for (int64_t i = begin; i < end; i++) {
        const T x = ((const T *)in)[i], joined = TYPED(op)(all, x);
        ((T *)out)[i] = all = heads[i - begin] ? x : joined;
    }
}

static void TYPED(seg_exclusive)(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,
                                 int64_t end, bool stream)
{
    T all = *(const T *)carry;
    (void)stream;
    for (int64_t i = begin; i < end; i++) {
        const T before = heads[i - begin] ? TYPED(identity)() : all;
        all = TYPED(op)(before, ((const T *)in)[i]);
        ((T *)out)[i] = before;
    }
}

/* As in loops_sums.h for sums. Not for tuples, whose members may be -0: they have no value that
 * changes nothing, so their segments are reduced one by one. */
static inline void TYPED(side_by_side)(const T *in, const int64_t *head, int64_t longest, T *out)
{
    const T nothing = TYPED(identity)();
    T v[SUMS_AT_ONCE];
    for (int j = 0; j < SUMS_AT_ONCE; j++)
        v[j] = *(const T *)either(head[j] < head[j + 1], in + head[j], &nothing);
    for (int64_t k = 1; k < longest; k++)
        for (int j = 0; j < SUMS_AT_ONCE; j++)
            v[j] = TYPED(op)(v[j], *(const T *)either(head[j] + k < head[j + 1], in + head[j] + k, &nothing));
    memcpy(out, v, sizeof v);
}
#endif

/* --------------------------------------------------------- reduce by segments */
static inline void TYPED(one_by_one)(const T *x, int64_t n, const void *heads, int bits, int64_t s, int64_t last,
                                     T *out)
{
    for (; s < last; s++) {
        const int64_t begin = offset_at(heads, bits, s), end = offset_at(heads, bits, s + 1);
        out[s] = begin < end ? TYPED(total)(x, begin, end, n) : TYPED(identity)();
    }
}

static inline void TYPED(segments_of)(const T *x, int64_t n, const void *heads, int bits, int64_t s, int64_t last,
                                      T *out)
{
    const int64_t reads = IS_SUM ? SHORT : 0; /* elements after the last segment that may be read */
    for (; !IS_TUPLE && s + SUMS_AT_ONCE <= last; s += SUMS_AT_ONCE) {
        int64_t h[SUMS_AT_ONCE + 1], longest = 0;
        for (int j = 0; j <= SUMS_AT_ONCE; j++)
            h[j] = offset_at(heads, bits, s + j);
        for (int j = 0; j < SUMS_AT_ONCE; j++)
            longest = max_i64(longest, h[j + 1] - h[j]);
        if (longest <= SHORT && h[SUMS_AT_ONCE] <= n - reads)
            TYPED(side_by_side)(x, h, longest, out + s);
        else
            TYPED(one_by_one)(x, n, heads, bits, s, s + SUMS_AT_ONCE, out);
    }
    TYPED(one_by_one)(x, n, heads, bits, s, last, out);
}

static void TYPED(segments)(const void *in, int64_t n, const void *heads, int bits, int64_t first, int64_t last,
                            void *out)
{
    if (bits == 32)
        TYPED(segments_of)(in, n, heads, 32, first, last, out);
    else
        TYPED(segments_of)(in, n, heads, 64, first, last, out);
}
