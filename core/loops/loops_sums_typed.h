/* The typed part of loops_sums.c, included once per type (each_sum.h). LANED(name) is name_4 or
 * name_2, by the lanes of a vector.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* ----------------------------------------------------------------- the basics
 * nothing: -0 (integers: 0). Adding it to x keeps all bits of x; adding 0 does not if x is -0. */
typedef LANE TYPED(vec) __attribute__((vector_size(BYTES)));
typedef MASK TYPED(mask) __attribute__((vector_size(BYTES)));
typedef LANE TYPED(loose) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));

static inline TYPED(vec) TYPED(load)(const T *from)
{
    return *(const TYPED(loose) *)from;
}

static inline TYPED(vec) TYPED(all)(LANE x)
{
    return (TYPED(vec))LANED(EACH)(LANE, ALWAYS_X);
}

static inline TYPED(vec) TYPED(nothing)(void)
{
    return -(TYPED(vec)){0};
}

static inline TYPED(vec) TYPED(where)(TYPED(mask) mask, TYPED(vec) yes, TYPED(vec) no)
{
    return (TYPED(vec))(((TYPED(mask))yes & mask) | ((TYPED(mask))no & ~mask));
}

/* v, but nothing in the lanes of the mask */
static inline TYPED(vec) TYPED(unless)(TYPED(mask) mask, TYPED(vec) v)
{
    return (TYPED(vec))(((TYPED(mask))v & ~mask) | ((TYPED(mask))TYPED(nothing)() & mask));
}

/* Shift up by one or two lanes; the vacated lanes get the end of low, or nothing. */
static inline TYPED(vec) TYPED(up_one)(TYPED(vec) low, TYPED(vec) a)
{
    return (TYPED(vec))(BYTES_UP(a, sizeof(T)) | BYTES_DOWN(low, BYTES - sizeof(T)));
}

static inline TYPED(vec) TYPED(up_one_nothing)(TYPED(vec) a)
{
    return (TYPED(vec))(BYTES_UP(a, sizeof(T)) | BYTES_DOWN(TYPED(nothing)(), BYTES - sizeof(T)));
}

static inline TYPED(vec) TYPED(up_two_nothing)(TYPED(vec) a)
{
    return (TYPED(vec))(BYTES_UP(a, 2 * sizeof(T) % BYTES) | BYTES_DOWN(TYPED(nothing)(), BYTES - 2 * sizeof(T)));
}

/* Shifts masks up, filling with zeros. */
static inline TYPED(mask) TYPED(mask_up)(TYPED(mask) a, int bytes)
{
    return bytes == sizeof(T) ? (TYPED(mask))BYTES_UP(a, sizeof(T)) : (TYPED(mask))BYTES_UP(a, 2 * sizeof(T) % BYTES);
}

/* ----------------------------------------------------------------------- fold */
static inline void TYPED(add_rest)(TYPED(vec) * part, const T *x, int64_t left, bool readable)
{
    T room[PARTS * LANES];
    const int8_t *taken = first_bytes + PARTS * BYTES - left * (int64_t)sizeof *x;
    if (!readable) {
        memcpy(room, x, (size_t)left * sizeof *x);
        memset(room + left, 0, sizeof room - (size_t)left * sizeof *x);
        x = room;
    }
    for (int k = 0; k < PARTS; k++) {
        TYPED(mask) mask;
        memcpy(&mask, taken + k * BYTES, BYTES);
        part[k] += TYPED(where)(mask, TYPED(load)(x + k * LANES), TYPED(nothing)());
    }
}

static inline T TYPED(sum)(const T *x, int64_t begin, int64_t end, int64_t limit)
{
    TYPED(vec) part[PARTS];
    int64_t i = begin;
    for (int k = 0; k < PARTS; k++)
        part[k] = TYPED(nothing)();
    for (; i + PARTS * LANES <= end; i += PARTS * LANES)
        for (int k = 0; k < PARTS; k++)
            part[k] += TYPED(load)(x + i + k * LANES);
    if (i < end)
        TYPED(add_rest)(part, x + i, end - i, i + PARTS * LANES <= limit);
    const TYPED(vec) sum = (part[0] + part[1]) + (part[2] + part[3]);
    return (T)LANED(TREE)(sum);
}

T TYPED(total)(const T *in, int64_t begin, int64_t end, int64_t limit)
{
    return TYPED(sum)(in, begin, end, limit);
}

void TYPED(fold)(const void *in, int64_t begin, int64_t end, void *out)
{
    *(T *)out = TYPED(sum)(in, begin, end, end);
}

/* ------------------------------------------------------------------- segments
 * Lengths are lanes of the element type, so that comparing them gives a mask for elements. */
static inline TYPED(vec) TYPED(elements)(const T *x, const int64_t *head, int64_t k)
{
    return (TYPED(vec))LANED(EACH)(LANE, ELEMENT);
}

static inline TYPED(vec) TYPED(lengths)(const int64_t *head)
{
    return (TYPED(vec))LANED(EACH)(LANE, LENGTH);
}

void TYPED(side_by_side)(const T *in, const int64_t *head, int64_t longest, T *out)
{
    enum { VECTORS = SUMS_AT_ONCE / LANES };
    const TYPED(vec) identity = {0};
    TYPED(vec) length[VECTORS], sum[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        length[v] = TYPED(lengths)(head + v * LANES);
        sum[v] = TYPED(where)((TYPED(mask))(length[v] > identity), TYPED(elements)(in, head + v * LANES, 0), identity);
    }
    for (int32_t k = 1; k < (int32_t)longest; k++)
        for (int v = 0; v < VECTORS; v++)
            sum[v] += TYPED(unless)((TYPED(mask))(length[v] <= TYPED(all)((LANE)k)),
                                    TYPED(elements)(in, head + v * LANES, k));
    memcpy(out, sum, sizeof sum);
}

/* ---------------------------------------------------------- two vectors at once
 * A pair of vectors is one vector of 32 bytes. Shifts stay within its halves, as in the plain code.
 * Heads are tested 16 at once, so a rest of fewer is left to the plain code. */
#ifdef __x86_64__
typedef LANE TYPED(wide) __attribute__((vector_size(2 * BYTES)));

static inline WIDE __m256i TYPED(wide_add)(__m256i a, __m256i b)
{
    return (__m256i)((TYPED(wide))a + (TYPED(wide))b);
}

/* Scans x[begin] .. x[stop-1], where stop - begin is a multiple of a pair. Returns the carry into
 * x[stop]. */
static inline WIDE __attribute__((always_inline)) T TYPED(wide_scan)(bool inclusive, bool headed, bool stream, T before,
                                                                     const uint8_t *heads, const T *x, T *y,
                                                                     int64_t begin, int64_t stop)
{
    const __m256i zero = _mm256_setzero_si256(), nothing = (__m256i)(-(TYPED(wide)){0});
    const __m256i one_in = _mm256_srli_si256(nothing, BYTES - sizeof(T));
    const __m256i two_in = _mm256_srli_si256(nothing, BYTES - 2 * sizeof(T));
    __m256i carry = (__m256i)(TYPED(wide))LANED(TWICE)((LANE)before);
    for (int64_t i = begin; i < stop; i += 2 * LANES) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(x + i)), head = zero, seen = zero;
        if (headed)
            head = LANED(wide_heads)(heads + (i - begin));
        __m256i up = _mm256_or_si256(_mm256_slli_si256(v, sizeof(T)), one_in);
        v = TYPED(wide_add)(wide_unless(headed, head, up, nothing), v);
        if (headed)
            seen = _mm256_or_si256(head, _mm256_slli_si256(head, sizeof(T)));
        if (LANES == 4) {
            up = _mm256_or_si256(_mm256_slli_si256(v, 2 * sizeof(T) % BYTES), two_in);
            v = TYPED(wide_add)(wide_unless(headed, seen, up, nothing), v);
            if (headed)
                seen = _mm256_or_si256(seen, _mm256_slli_si256(seen, 2 * sizeof(T) % BYTES));
        }
        up = _mm256_blend_epi32(nothing, LANED(WIDE_MIDDLE)(v), 0xf0);
        v = TYPED(wide_add)(wide_unless(headed, seen, up, nothing), v);
        if (headed)
            seen = _mm256_or_si256(seen, _mm256_blend_epi32(zero, LANED(WIDE_MIDDLE)(seen), 0xf0));
        const __m256i through = TYPED(wide_add)(wide_unless(headed, seen, carry, nothing), v);
        __m256i out = through;
        if (!inclusive) {
            out = _mm256_alignr_epi8(through, _mm256_permute2x128_si256(carry, through, 0x21), BYTES - sizeof(T));
            out = headed ? _mm256_andnot_si256(head, out) : out;
        }
        if (stream)
            _mm256_stream_si256((__m256i *)(y + i), out);
        else
            _mm256_storeu_si256((__m256i *)(y + i), out);
        carry = TYPED(wide_add)(wide_unless(headed, LANED(WIDE_LAST)(seen), carry, nothing), LANED(WIDE_LAST)(v));
    }
    return (T)((TYPED(wide))carry)[0];
}

static WIDE T TYPED(wide_inclusive)(bool stream, T before, const T *x, T *y, int64_t begin, int64_t stop)
{
    return stream ? TYPED(wide_scan)(true, false, true, before, NULL, x, y, begin, stop)
                  : TYPED(wide_scan)(true, false, false, before, NULL, x, y, begin, stop);
}

static WIDE T TYPED(wide_exclusive)(bool stream, T before, const T *x, T *y, int64_t begin, int64_t stop)
{
    return stream ? TYPED(wide_scan)(false, false, true, before, NULL, x, y, begin, stop)
                  : TYPED(wide_scan)(false, false, false, before, NULL, x, y, begin, stop);
}

static WIDE T TYPED(wide_seg_inclusive)(bool stream, T before, const uint8_t *heads, const T *x, T *y, int64_t begin,
                                        int64_t stop)
{
    return stream ? TYPED(wide_scan)(true, true, true, before, heads, x, y, begin, stop)
                  : TYPED(wide_scan)(true, true, false, before, heads, x, y, begin, stop);
}

static WIDE T TYPED(wide_seg_exclusive)(bool stream, T before, const uint8_t *heads, const T *x, T *y, int64_t begin,
                                        int64_t stop)
{
    return stream ? TYPED(wide_scan)(false, true, true, before, heads, x, y, begin, stop)
                  : TYPED(wide_scan)(false, true, false, before, heads, x, y, begin, stop);
}
#endif

/* With AVX2, scans as many elements as fill whole pairs of vectors. Returns the first element not
 * scanned; *carried becomes the carry into it. */
static inline int64_t TYPED(wide_part)(bool inclusive, bool stream, T *carried, const T *x, T *y, int64_t begin,
                                       int64_t end)
{
#ifdef __x86_64__
    if (wide_for(y + begin, stream)) {
        const int64_t stop = begin + (end - begin) / (2 * LANES) * (2 * LANES);
        *carried = inclusive ? TYPED(wide_inclusive)(stream, *carried, x, y, begin, stop)
                             : TYPED(wide_exclusive)(stream, *carried, x, y, begin, stop);
        return stop;
    }
#endif
    (void)inclusive, (void)stream, (void)carried, (void)x, (void)y, (void)end;
    return begin;
}

static inline int64_t TYPED(seg_wide_part)(bool inclusive, bool stream, T *carried, const uint8_t *heads, const T *x,
                                           T *y, int64_t begin, int64_t end)
{
#ifdef __x86_64__
    if (wide_for(y + begin, stream)) {
        const int64_t stop = begin + (end - begin) / HEADS * HEADS;
        *carried = inclusive ? TYPED(wide_seg_inclusive)(stream, *carried, heads, x, y, begin, stop)
                             : TYPED(wide_seg_exclusive)(stream, *carried, heads, x, y, begin, stop);
        return stop;
    }
#endif
    (void)inclusive, (void)stream, (void)carried, (void)heads, (void)x, (void)y, (void)end;
    return begin;
}

/* ----------------------------------------------------------------------- scan */
static inline TYPED(vec) TYPED(scan_lanes)(TYPED(vec) v)
{
    v = TYPED(up_one_nothing)(v) + v;
    return LANES == 4 ? TYPED(up_two_nothing)(v) + v : v;
}

static inline TYPED(vec) TYPED(pair)(bool inclusive, TYPED(vec) carry, const T *x, T *y, bool stream)
{
    TYPED(vec) a = TYPED(load)(x), b = TYPED(load)(x + LANES);
    a = TYPED(scan_lanes)(a);
    b = TYPED(scan_lanes)(b);
    b = LANED(LAST)(TYPED(mask), a) + b;
    store(y, (bytes16)(carry + (inclusive ? a : TYPED(up_one_nothing)(a))), stream);
    store(y + LANES, (bytes16)(carry + (inclusive ? b : TYPED(up_one)(a, b))), stream);
    return carry + LANED(LAST)(TYPED(mask), b);
}

static inline void TYPED(scan)(bool inclusive, const T *before, const T *x, T *y, int64_t begin, int64_t end,
                               bool stream)
{
    T carried = *before;
    int64_t i = TYPED(wide_part)(inclusive, stream, &carried, x, y, begin, end);
    TYPED(vec) carry = TYPED(all)((LANE)carried);
    for (; i + 2 * LANES <= end; i += 2 * LANES)
        carry = TYPED(pair)(inclusive, carry, x + i, y + i, stream);
    LANE all = carry[0];
    for (; i < end; i++) {
        const LANE through = all + (LANE)x[i];
        y[i] = (T)(inclusive ? through : all);
        all = through;
    }
    store_end(stream);
}

void TYPED(inclusive)(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream)
{
    if (may_stream((T *)out + begin, stream))
        TYPED(scan)(true, carry, in, out, begin, end, true);
    else
        TYPED(scan)(true, carry, in, out, begin, end, false);
}

void TYPED(exclusive)(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream)
{
    if (may_stream((T *)out + begin, stream))
        TYPED(scan)(false, carry, in, out, begin, end, true);
    else
        TYPED(scan)(false, carry, in, out, begin, end, false);
}

/* ------------------------------------------------------------- segmented scan
 * head: the mask of the heads. Returns v scanned within the vector. *seen: lanes with a head at or
 * before them in the vector. */
static inline TYPED(vec) TYPED(seg_scan_lanes)(TYPED(vec) v, TYPED(mask) head, TYPED(mask) * seen)
{
    v = TYPED(unless)(head, TYPED(up_one_nothing)(v)) + v;
    *seen = head | TYPED(mask_up)(head, sizeof(T));
    if (LANES == 4) {
        v = TYPED(unless)(*seen, TYPED(up_two_nothing)(v)) + v;
        *seen |= TYPED(mask_up)(*seen, 2 * sizeof(T));
    }
    return v;
}

static inline TYPED(vec)
    TYPED(seg_pair)(bool inclusive, TYPED(vec) carry, const TYPED(mask) * head, const T *x, T *y, bool stream)
{
    const TYPED(vec) identity = {0};
    TYPED(mask) a_seen, b_seen;
    TYPED(vec) a = TYPED(load)(x), b = TYPED(load)(x + LANES);
    a = TYPED(seg_scan_lanes)(a, head[0], &a_seen);
    b = TYPED(seg_scan_lanes)(b, head[1], &b_seen);
    b = TYPED(unless)(b_seen, LANED(LAST)(TYPED(mask), a)) + b;
    b_seen |= LANED(LAST)(TYPED(mask), a_seen);
    a = TYPED(unless)(a_seen, carry) + a;
    b = TYPED(unless)(b_seen, carry) + b;
    const TYPED(vec) before_a = TYPED(up_one)(carry, a);
    const TYPED(vec) before_b = TYPED(up_one)(a, b);
    store(y, (bytes16)(inclusive ? a : TYPED(where)(head[0], identity, before_a)), stream);
    store(y + LANES, (bytes16)(inclusive ? b : TYPED(where)(head[1], identity, before_b)), stream);
    return LANED(LAST)(TYPED(mask), b);
}

static inline void TYPED(seg_scan)(bool inclusive, const T *before, const uint8_t *heads, const T *x, T *y,
                                   int64_t begin, int64_t end, bool stream)
{
    T carried = *before;
    int64_t i = TYPED(seg_wide_part)(inclusive, stream, &carried, heads, x, y, begin, end);
    TYPED(vec) carry = TYPED(all)((LANE)carried);
    for (; i + HEADS <= end; i += HEADS) {
        const uint8_t *const flag = heads + (i - begin);
        TYPED(mask) head[HEADS / LANES];
        if (no_head(flag)) {
            for (int k = 0; k < HEADS; k += 2 * LANES)
                carry = TYPED(pair)(inclusive, carry, x + i + k, y + i + k, stream);
            continue;
        }
        LANED(masks)(flag, head);
        for (int k = 0; k < HEADS; k += 2 * LANES)
            carry = TYPED(seg_pair)(inclusive, carry, head + k / LANES, x + i + k, y + i + k, stream);
    }
    LANE all = carry[0];
    for (; i < end; i++) {
        const bool head = heads[i - begin] != 0;
        const LANE here = (LANE)x[i], left = head ? 0 : all;
        all = head ? here : all + here;
        y[i] = (T)(inclusive ? all : left);
    }
    store_end(stream);
}

void TYPED(seg_inclusive)(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,
                          int64_t end, bool stream)
{
    if (may_stream((T *)out + begin, stream))
        TYPED(seg_scan)(true, carry, heads, in, out, begin, end, true);
    else
        TYPED(seg_scan)(true, carry, heads, in, out, begin, end, false);
}

void TYPED(seg_exclusive)(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,
                          int64_t end, bool stream)
{
    if (may_stream((T *)out + begin, stream))
        TYPED(seg_scan)(false, carry, heads, in, out, begin, end, true);
    else
        TYPED(seg_scan)(false, carry, heads, in, out, begin, end, false);
}
