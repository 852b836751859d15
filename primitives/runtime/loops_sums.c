/* Sums on vectors: see loops_sums.h.
 *
 * Fold: 64 bytes of partial sums, to which element begin + j + 64 k / size goes by j; a rest is filled up with a value
 * that changes no sum; the partial sums are added as a tree. Scan: the elements of a vector by shifts, two steps for
 * four lanes (W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 29, 1986), two vectors joined, then what
 * stands before them; so one addition is on the way from pair to pair. Segmented scan: the same on (value, head), with
 * masks. Which element meets which, and where, is written out here and not left to the compiler or the width of the
 * machine: the bits are the same on all.
 *
 * GCC and Clang have these vectors on every machine, so this is plain code but for the shuffle, which they spell
 * differently, and what is for x86 alone: the store past the caches, elsewhere a store, and the scans on processors
 * with AVX2, which do to two vectors at once what the plain code does to one after the other, so that the bits agree.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "loops_sums.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { BYTES = 16 };

typedef int8_t bytes16 __attribute__((vector_size(BYTES)));
typedef int16_t words8 __attribute__((vector_size(BYTES)));

/* Lanes of a followed by those of b, by number. */
#ifdef __clang__
#define PICK(V, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(V, a, b, ...) __builtin_shuffle(a, b, (V){__VA_ARGS__})
#endif

/* Bytes of a move up, zeros come in; bytes of a move down. */
#ifdef __x86_64__
#define BYTES_UP(a, bytes) ((bytes16)_mm_slli_si128((__m128i)(a), bytes))
#define BYTES_DOWN(a, bytes) ((bytes16)_mm_srli_si128((__m128i)(a), bytes))
#else
#define BYTES_UP(a, bytes) MOVED((bytes16){0}, (bytes16)(a), 16 - (bytes))
#define BYTES_DOWN(a, bytes) MOVED((bytes16)(a), (bytes16){0}, bytes)
#define MOVED(a, b, k)                                                                                                 \
    PICK(bytes16, a, b, (k), (k) + 1, (k) + 2, (k) + 3, (k) + 4, (k) + 5, (k) + 6, (k) + 7, (k) + 8, (k) + 9,          \
         (k) + 10, (k) + 11, (k) + 12, (k) + 13, (k) + 14, (k) + 15)
#endif

/* The last lane everywhere, by the number of lanes; each byte, word of the lower or upper half twice. */
#define LAST_4(M, a) PICK(M, a, a, 3, 3, 3, 3)
#define LAST_2(M, a) PICK(M, a, a, 1, 1)
#define LOWER_BYTES_TWICE(a) ((words8)PICK(bytes16, a, a, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7))
#define UPPER_BYTES_TWICE(a) ((words8)PICK(bytes16, a, a, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15))
#define LOWER_WORDS_TWICE(a) PICK(words8, a, a, 0, 0, 1, 1, 2, 2, 3, 3)
#define UPPER_WORDS_TWICE(a) PICK(words8, a, a, 4, 4, 5, 5, 6, 6, 7, 7)

static inline void store(void *to, bytes16 lanes, bool stream)
{
#ifdef __x86_64__
    if (stream) {
        _mm_stream_si128(to, (__m128i)lanes);
        return;
    }
#endif
    (void)stream;
    memcpy(to, &lanes, BYTES);
}

/* What was stored past the caches is there before what follows. */
static inline void store_end(bool stream)
{
#ifdef __x86_64__
    if (stream)
        _mm_sfence();
#endif
    (void)stream;
}

/* A store past the caches needs an address that is a multiple of its length. */
static inline bool may_stream(const void *to, bool stream)
{
    return stream && (uintptr_t)to % BYTES == 0;
}

/* Whether the scans for AVX2 can run. */
static inline bool wide_for(const void *to, bool stream)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && (!stream || (uintptr_t)to % (2 * BYTES) == 0);
#else
    (void)to;
    (void)stream;
    return false;
#endif
}

/* 16 heads, a mask each */
typedef int32_t mask4 __attribute__((vector_size(BYTES)));
typedef int64_t mask2 __attribute__((vector_size(BYTES)));

static inline void masks_4(const uint8_t *heads, mask4 *mask)
{
    bytes16 all;
    memcpy(&all, heads, BYTES);
    all = all != 0;
    const words8 low = LOWER_BYTES_TWICE(all), high = UPPER_BYTES_TWICE(all);
    mask[0] = (mask4)LOWER_WORDS_TWICE(low);
    mask[1] = (mask4)UPPER_WORDS_TWICE(low);
    mask[2] = (mask4)LOWER_WORDS_TWICE(high);
    mask[3] = (mask4)UPPER_WORDS_TWICE(high);
}

static inline void masks_2(const uint8_t *heads, mask2 *mask)
{
    mask4 four[4];
    masks_4(heads, four);
    for (int i = 0; i < 4; i++) {
        mask[2 * i] = (mask2)PICK(mask4, four[i], four[i], 0, 0, 1, 1);
        mask[2 * i + 1] = (mask2)PICK(mask4, four[i], four[i], 2, 2, 3, 3);
    }
}

/* A vector, lane by lane. */
#define EACH_4(Lane, at)                                                                                               \
    {                                                                                                                  \
        (Lane) at(0), (Lane)at(1), (Lane)at(2), (Lane)at(3)                                                            \
    }
#define EACH_2(Lane, at)                                                                                               \
    {                                                                                                                  \
        (Lane) at(0), (Lane)at(1)                                                                                      \
    }
#define ALWAYS_X(j) x

/* ----------------------------------------------------------------- the basics
 * Nothing: what added to x leaves all bits of x, which 0 does not for -0. */
#define DEFINE(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                \
    typedef Lane vec_##type __attribute__((vector_size(BYTES)));                                                       \
    typedef Mask mask_##type __attribute__((vector_size(BYTES)));                                                      \
    typedef Lane loose_##type __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                      \
    static inline vec_##type load_##type(const T *from)                                                                \
    {                                                                                                                  \
        return *(const loose_##type *)from;                                                                            \
    }                                                                                                                  \
    static inline vec_##type all_##type(Lane x)                                                                        \
    {                                                                                                                  \
        return (vec_##type)EACH_##lanes(Lane, ALWAYS_X);                                                               \
    }                                                                                                                  \
    static inline vec_##type nothing_##type(void)                                                                      \
    {                                                                                                                  \
        return -(vec_##type){0};                                                                                       \
    }                                                                                                                  \
    static inline vec_##type where_##type(mask_##type mask, vec_##type yes, vec_##type no)                             \
    {                                                                                                                  \
        return (vec_##type)(((mask_##type)yes & mask) | ((mask_##type)no & ~mask));                                    \
    }                                                                                                                  \
    /* nothing where the mask is set */                                                                                \
    static inline vec_##type unless_##type(mask_##type mask, vec_##type v)                                             \
    {                                                                                                                  \
        return (vec_##type)(((mask_##type)v & ~mask) | ((mask_##type)nothing_##type() & mask));                        \
    }                                                                                                                  \
    /* One lane, two lanes up; what comes in is the end of low, or nothing. */                                         \
    static inline vec_##type up_one_##type(vec_##type low, vec_##type a)                                               \
    {                                                                                                                  \
        return (vec_##type)(BYTES_UP(a, sizeof(T)) | BYTES_DOWN(low, BYTES - sizeof(T)));                              \
    }                                                                                                                  \
    static inline vec_##type up_one_nothing_##type(vec_##type a)                                                       \
    {                                                                                                                  \
        return (vec_##type)(BYTES_UP(a, sizeof(T)) | BYTES_DOWN(nothing_##type(), BYTES - sizeof(T)));                 \
    }                                                                                                                  \
    static inline vec_##type up_two_nothing_##type(vec_##type a)                                                       \
    {                                                                                                                  \
        return (vec_##type)(BYTES_UP(a, 2 * sizeof(T) % BYTES) | BYTES_DOWN(nothing_##type(), BYTES - 2 * sizeof(T))); \
    }                                                                                                                  \
    /* Masks up; zeros come in. */                                                                                     \
    static inline mask_##type mask_up_##type(mask_##type a, int bytes)                                                 \
    {                                                                                                                  \
        return bytes == sizeof(T) ? (mask_##type)BYTES_UP(a, sizeof(T))                                                \
                                  : (mask_##type)BYTES_UP(a, 2 * sizeof(T) % BYTES);                                   \
    }
SUM_LIST(DEFINE)
#undef DEFINE

/* ----------------------------------------------------------------------- fold */
enum { PARTS = 4 };

#define TREE_4(s) ((s[0] + s[1]) + (s[2] + s[3]))
#define TREE_2(s) (s[0] + s[1])

/* From first_bytes + 64 - k on: 64 bytes that are a mask of the first k bytes. */
#define MASKS_16(m) m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m
#define MASKS_64(m) MASKS_16(m), MASKS_16(m), MASKS_16(m), MASKS_16(m)
static const int8_t first_bytes[2 * PARTS * BYTES] = {MASKS_64(-1), MASKS_64(0)};
#define DEFINE(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                \
    static inline void add_rest_##type(vec_##type *part, const T *x, int64_t left, bool readable)                      \
    {                                                                                                                  \
        T room[PARTS * lanes];                                                                                         \
        const int8_t *taken = first_bytes + PARTS * BYTES - left * (int64_t)sizeof *x;                                 \
        if (!readable) {                                                                                               \
            memcpy(room, x, (size_t)left * sizeof *x);                                                                 \
            memset(room + left, 0, sizeof room - (size_t)left * sizeof *x);                                            \
            x = room;                                                                                                  \
        }                                                                                                              \
        for (int k = 0; k < PARTS; k++) {                                                                              \
            mask_##type mask;                                                                                          \
            memcpy(&mask, taken + k * BYTES, BYTES);                                                                   \
            part[k] += where_##type(mask, load_##type(x + k * lanes), nothing_##type());                               \
        }                                                                                                              \
    }                                                                                                                  \
    static inline T run_##type(const T *x, int64_t begin, int64_t end, int64_t limit)                                  \
    {                                                                                                                  \
        vec_##type part[PARTS];                                                                                        \
        int64_t i = begin;                                                                                             \
        for (int k = 0; k < PARTS; k++)                                                                                \
            part[k] = nothing_##type();                                                                                \
        for (; i + PARTS * lanes <= end; i += PARTS * lanes)                                                           \
            for (int k = 0; k < PARTS; k++)                                                                            \
                part[k] += load_##type(x + i + k * lanes);                                                             \
        if (i < end)                                                                                                   \
            add_rest_##type(part, x + i, end - i, i + PARTS * lanes <= limit);                                         \
        const vec_##type sum = (part[0] + part[1]) + (part[2] + part[3]);                                              \
        return (T)TREE_##lanes(sum);                                                                                   \
    }                                                                                                                  \
    T sum_run_##type(const T *in, int64_t begin, int64_t end, int64_t limit)                                           \
    {                                                                                                                  \
        return run_##type(in, begin, end, limit);                                                                      \
    }                                                                                                                  \
    void sum_fold_##type(const void *in, int64_t begin, int64_t end, void *out)                                        \
    {                                                                                                                  \
        *(T *)out = run_##type(in, begin, end, end);                                                                   \
    }
SUM_LIST(DEFINE)
#undef DEFINE

/* ------------------------------------------------------------------- segments
 * Lengths are lanes, so that comparing them gives a mask for elements. */
#define ELEMENT(j) x[head[j] + k]
#define LENGTH(j) (int32_t)(head[(j) + 1] - head[j])

#define DEFINE(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                \
    static inline vec_##type elements_##type(const T *x, const int64_t *head, int64_t k)                               \
    {                                                                                                                  \
        return (vec_##type)EACH_##lanes(Lane, ELEMENT);                                                                \
    }                                                                                                                  \
    static inline vec_##type lengths_##type(const int64_t *head)                                                       \
    {                                                                                                                  \
        return (vec_##type)EACH_##lanes(Lane, LENGTH);                                                                 \
    }                                                                                                                  \
    void sum_side_by_side_##type(const T *in, const int64_t *head, int64_t longest, T *out)                            \
    {                                                                                                                  \
        enum { VECTORS = SUM_GROUP / lanes };                                                                          \
        const vec_##type identity = {0};                                                                               \
        vec_##type length[VECTORS], sum[VECTORS];                                                                      \
        for (int v = 0; v < VECTORS; v++) {                                                                            \
            length[v] = lengths_##type(head + v * lanes);                                                              \
            sum[v] =                                                                                                   \
                where_##type((mask_##type)(length[v] > identity), elements_##type(in, head + v * lanes, 0), identity); \
        }                                                                                                              \
        for (int32_t k = 1; k < (int32_t)longest; k++)                                                                 \
            for (int v = 0; v < VECTORS; v++)                                                                          \
                sum[v] += unless_##type((mask_##type)(length[v] <= all_##type((Lane)k)),                               \
                                        elements_##type(in, head + v * lanes, k));                                     \
        memcpy(out, sum, sizeof sum);                                                                                  \
    }
SUM_LIST(DEFINE)
#undef DEFINE

/* ---------------------------------------------------------- two vectors at once
 * A pair of vectors is one of 32 bytes: shifts stay within its halves, which is what the plain code does to each of the
 * two. Heads are looked at 16 at once there, so here none of a rest of fewer. */
enum { HEADS = 16 };

#ifdef __x86_64__
#define WIDE __attribute__((target("avx2")))
/* The last lane of the lower half everywhere, of the upper one; the elements' heads as masks. */
#define WIDE_MIDDLE_4(v) _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(3))
#define WIDE_MIDDLE_2(v) _mm256_permute4x64_epi64(v, 0x55)
#define WIDE_LAST_4(v) _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7))
#define WIDE_LAST_2(v) _mm256_permute4x64_epi64(v, 0xff)
#define TWICE_4(x)                                                                                                     \
    {                                                                                                                  \
        x, x, x, x, x, x, x, x                                                                                         \
    }
#define TWICE_2(x)                                                                                                     \
    {                                                                                                                  \
        x, x, x, x                                                                                                     \
    }

static inline WIDE __m256i wide_heads_4(const uint8_t *heads)
{
    return _mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)heads)), _mm256_setzero_si256());
}

static inline WIDE __m256i wide_heads_2(const uint8_t *heads)
{
    int32_t four;
    memcpy(&four, heads, sizeof four);
    return _mm256_cmpgt_epi64(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four)), _mm256_setzero_si256());
}

static inline WIDE __m256i wide_unless(bool headed, __m256i mask, __m256i v, __m256i nothing)
{
    return headed ? _mm256_blendv_epi8(v, nothing, mask) : v;
}

/* Scans x[begin] .. x[stop-1], stop - begin a multiple of a pair, and returns what stands before x[stop]. */
#define DEFINE(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                \
    typedef Lane wide_##type __attribute__((vector_size(2 * BYTES)));                                                  \
    static inline WIDE __m256i wide_add_##type(__m256i a, __m256i b)                                                   \
    {                                                                                                                  \
        return (__m256i)((wide_##type)a + (wide_##type)b);                                                             \
    }                                                                                                                  \
    static inline WIDE __attribute__((always_inline))                                                                  \
    T wide_scan_##type(bool inclusive, bool headed, bool stream, T before, const uint8_t *heads, const T *x, T *y,     \
                       int64_t begin, int64_t stop)                                                                    \
    {                                                                                                                  \
        const __m256i zero = _mm256_setzero_si256(), nothing = (__m256i)(-(wide_##type){0});                           \
        const __m256i one_in = _mm256_srli_si256(nothing, BYTES - sizeof(T));                                          \
        const __m256i two_in = _mm256_srli_si256(nothing, BYTES - 2 * sizeof(T));                                      \
        __m256i carry = (__m256i)(wide_##type)TWICE_##lanes((Lane)before);                                             \
        for (int64_t i = begin; i < stop; i += 2 * lanes) {                                                            \
            __m256i v = _mm256_loadu_si256((const __m256i *)(x + i)), head = zero, seen = zero;                        \
            if (headed)                                                                                                \
                head = wide_heads_##lanes(heads + (i - begin));                                                        \
            __m256i up = _mm256_or_si256(_mm256_slli_si256(v, sizeof(T)), one_in);                                     \
            v = wide_add_##type(wide_unless(headed, head, up, nothing), v);                                            \
            if (headed)                                                                                                \
                seen = _mm256_or_si256(head, _mm256_slli_si256(head, sizeof(T)));                                      \
            if (lanes == 4) {                                                                                          \
                up = _mm256_or_si256(_mm256_slli_si256(v, 2 * sizeof(T) % BYTES), two_in);                             \
                v = wide_add_##type(wide_unless(headed, seen, up, nothing), v);                                        \
                if (headed)                                                                                            \
                    seen = _mm256_or_si256(seen, _mm256_slli_si256(seen, 2 * sizeof(T) % BYTES));                      \
            }                                                                                                          \
            up = _mm256_blend_epi32(nothing, WIDE_MIDDLE_##lanes(v), 0xf0);                                            \
            v = wide_add_##type(wide_unless(headed, seen, up, nothing), v);                                            \
            if (headed)                                                                                                \
                seen = _mm256_or_si256(seen, _mm256_blend_epi32(zero, WIDE_MIDDLE_##lanes(seen), 0xf0));               \
            const __m256i through = wide_add_##type(wide_unless(headed, seen, carry, nothing), v);                     \
            __m256i out = through;                                                                                     \
            if (!inclusive) {                                                                                          \
                out = _mm256_alignr_epi8(through, _mm256_permute2x128_si256(carry, through, 0x21), BYTES - sizeof(T)); \
                out = headed ? _mm256_andnot_si256(head, out) : out;                                                   \
            }                                                                                                          \
            if (stream)                                                                                                \
                _mm256_stream_si256((__m256i *)(y + i), out);                                                          \
            else                                                                                                       \
                _mm256_storeu_si256((__m256i *)(y + i), out);                                                          \
            carry =                                                                                                    \
                wide_add_##type(wide_unless(headed, WIDE_LAST_##lanes(seen), carry, nothing), WIDE_LAST_##lanes(v));   \
        }                                                                                                              \
        return (T)((wide_##type)carry)[0];                                                                             \
    }                                                                                                                  \
    static WIDE T wide_##type##_inclusive(bool stream, T before, const T *x, T *y, int64_t begin, int64_t stop)        \
    {                                                                                                                  \
        return stream ? wide_scan_##type(true, false, true, before, NULL, x, y, begin, stop)                           \
                      : wide_scan_##type(true, false, false, before, NULL, x, y, begin, stop);                         \
    }                                                                                                                  \
    static WIDE T wide_##type##_exclusive(bool stream, T before, const T *x, T *y, int64_t begin, int64_t stop)        \
    {                                                                                                                  \
        return stream ? wide_scan_##type(false, false, true, before, NULL, x, y, begin, stop)                          \
                      : wide_scan_##type(false, false, false, before, NULL, x, y, begin, stop);                        \
    }                                                                                                                  \
    static WIDE T wide_##type##_seg_inclusive(bool stream, T before, const uint8_t *heads, const T *x, T *y,           \
                                              int64_t begin, int64_t stop)                                             \
    {                                                                                                                  \
        return stream ? wide_scan_##type(true, true, true, before, heads, x, y, begin, stop)                           \
                      : wide_scan_##type(true, true, false, before, heads, x, y, begin, stop);                         \
    }                                                                                                                  \
    static WIDE T wide_##type##_seg_exclusive(bool stream, T before, const uint8_t *heads, const T *x, T *y,           \
                                              int64_t begin, int64_t stop)                                             \
    {                                                                                                                  \
        return stream ? wide_scan_##type(false, true, true, before, heads, x, y, begin, stop)                          \
                      : wide_scan_##type(false, true, false, before, heads, x, y, begin, stop);                        \
    }
SUM_LIST(DEFINE)
#undef DEFINE
#endif

/* As far as pairs of vectors go, in a scan with AVX2. */
#ifdef __x86_64__
#define WIDE_PART(type, lanes)                                                                                         \
    if (wide_for(y + begin, stream)) {                                                                                 \
        i += (end - begin) / (2 * lanes) * (2 * lanes);                                                                \
        carried = inclusive ? wide_##type##_inclusive(stream, carried, x, y, begin, i)                                 \
                            : wide_##type##_exclusive(stream, carried, x, y, begin, i);                                \
    }
#define SEG_WIDE_PART(type)                                                                                            \
    if (wide_for(y + begin, stream)) {                                                                                 \
        i += (end - begin) / HEADS * HEADS;                                                                            \
        carried = inclusive ? wide_##type##_seg_inclusive(stream, carried, heads, x, y, begin, i)                      \
                            : wide_##type##_seg_exclusive(stream, carried, heads, x, y, begin, i);                     \
    }
#else
#define WIDE_PART(type, lanes)
#define SEG_WIDE_PART(type)
#endif

/* ----------------------------------------------------------------------- scan */
#define SCAN(type, lanes, v)                                                                                           \
    v = up_one_nothing_##type(v) + v;                                                                                  \
    if (lanes == 4)                                                                                                    \
    v = up_two_nothing_##type(v) + v

#define DEFINE(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                \
    static inline vec_##type pair_##type(bool inclusive, vec_##type carry, const T *x, T *y, bool stream)              \
    {                                                                                                                  \
        vec_##type a = load_##type(x), b = load_##type(x + lanes);                                                     \
        SCAN(type, lanes, a);                                                                                          \
        SCAN(type, lanes, b);                                                                                          \
        b = LAST_##lanes(mask_##type, a) + b;                                                                          \
        store(y, (bytes16)(carry + (inclusive ? a : up_one_nothing_##type(a))), stream);                               \
        store(y + lanes, (bytes16)(carry + (inclusive ? b : up_one_##type(a, b))), stream);                            \
        return carry + LAST_##lanes(mask_##type, b);                                                                   \
    }                                                                                                                  \
    static inline void scan_##type(bool inclusive, const T *before, const T *x, T *y, int64_t begin, int64_t end,      \
                                   bool stream)                                                                        \
    {                                                                                                                  \
        T carried = *before;                                                                                           \
        int64_t i = begin;                                                                                             \
        WIDE_PART(type, lanes)                                                                                         \
        vec_##type carry = all_##type((Lane)carried);                                                                  \
        for (; i + 2 * lanes <= end; i += 2 * lanes)                                                                   \
            carry = pair_##type(inclusive, carry, x + i, y + i, stream);                                               \
        Lane all = carry[0];                                                                                           \
        for (; i < end; i++) {                                                                                         \
            const Lane through = all + (Lane)x[i];                                                                     \
            y[i] = (T)(inclusive ? through : all);                                                                     \
            all = through;                                                                                             \
        }                                                                                                              \
        store_end(stream);                                                                                             \
    }                                                                                                                  \
    void sum_inclusive_##type(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream)   \
    {                                                                                                                  \
        if (may_stream((T *)out + begin, stream))                                                                      \
            scan_##type(true, carry, in, out, begin, end, true);                                                       \
        else                                                                                                           \
            scan_##type(true, carry, in, out, begin, end, false);                                                      \
    }                                                                                                                  \
    void sum_exclusive_##type(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream)   \
    {                                                                                                                  \
        if (may_stream((T *)out + begin, stream))                                                                      \
            scan_##type(false, carry, in, out, begin, end, true);                                                      \
        else                                                                                                           \
            scan_##type(false, carry, in, out, begin, end, false);                                                     \
    }
SUM_LIST(DEFINE)
#undef DEFINE

/* ------------------------------------------------------------- segmented scan
 * head: the mask of the heads. afterwards v is scanned within the vector, and seen says where a head stands at or
 * before a lane in it. */
#define SEG_SCAN(type, lanes, v, head, seen)                                                                           \
    v = unless_##type(head, up_one_nothing_##type(v)) + v;                                                             \
    seen = head | mask_up_##type(head, sizeof(head)[0]);                                                               \
    if (lanes == 4) {                                                                                                  \
        v = unless_##type(seen, up_two_nothing_##type(v)) + v;                                                         \
        seen |= mask_up_##type(seen, 2 * sizeof(head)[0]);                                                             \
    }

static inline bool no_head(const uint8_t *flag)
{
    uint64_t half[2];
    memcpy(half, flag, sizeof half);
    return (half[0] | half[1]) == 0;
}

#define DEFINE(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                                \
    static inline vec_##type seg_pair_##type(bool inclusive, vec_##type carry, const mask_##type *head, const T *x,    \
                                             T *y, bool stream)                                                        \
    {                                                                                                                  \
        const vec_##type identity = {0};                                                                               \
        mask_##type a_seen, b_seen;                                                                                    \
        vec_##type a = load_##type(x), b = load_##type(x + lanes);                                                     \
        SEG_SCAN(type, lanes, a, head[0], a_seen)                                                                      \
        SEG_SCAN(type, lanes, b, head[1], b_seen)                                                                      \
        b = unless_##type(b_seen, LAST_##lanes(mask_##type, a)) + b;                                                   \
        b_seen |= LAST_##lanes(mask_##type, a_seen);                                                                   \
        a = unless_##type(a_seen, carry) + a;                                                                          \
        b = unless_##type(b_seen, carry) + b;                                                                          \
        const vec_##type before_a = up_one_##type(carry, a);                                                           \
        const vec_##type before_b = up_one_##type(a, b);                                                               \
        store(y, (bytes16)(inclusive ? a : where_##type(head[0], identity, before_a)), stream);                        \
        store(y + lanes, (bytes16)(inclusive ? b : where_##type(head[1], identity, before_b)), stream);                \
        return LAST_##lanes(mask_##type, b);                                                                           \
    }                                                                                                                  \
    static inline void seg_scan_##type(bool inclusive, const T *before, const uint8_t *heads, const T *x, T *y,        \
                                       int64_t begin, int64_t end, bool stream)                                        \
    {                                                                                                                  \
        T carried = *before;                                                                                           \
        int64_t i = begin;                                                                                             \
        SEG_WIDE_PART(type)                                                                                            \
        vec_##type carry = all_##type((Lane)carried);                                                                  \
        for (; i + HEADS <= end; i += HEADS) {                                                                         \
            const uint8_t *const flag = heads + (i - begin);                                                           \
            mask_##type head[HEADS / lanes];                                                                           \
            if (no_head(flag)) {                                                                                       \
                for (int k = 0; k < HEADS; k += 2 * lanes)                                                             \
                    carry = pair_##type(inclusive, carry, x + i + k, y + i + k, stream);                               \
                continue;                                                                                              \
            }                                                                                                          \
            masks_##lanes(flag, head);                                                                                 \
            for (int k = 0; k < HEADS; k += 2 * lanes)                                                                 \
                carry = seg_pair_##type(inclusive, carry, head + k / lanes, x + i + k, y + i + k, stream);             \
        }                                                                                                              \
        Lane all = carry[0];                                                                                           \
        for (; i < end; i++) {                                                                                         \
            const bool head = heads[i - begin] != 0;                                                                   \
            const Lane here = (Lane)x[i], left = head ? 0 : all;                                                       \
            all = head ? here : all + here;                                                                            \
            y[i] = (T)(inclusive ? all : left);                                                                        \
        }                                                                                                              \
        store_end(stream);                                                                                             \
    }                                                                                                                  \
    void sum_seg_inclusive_##type(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,   \
                                  int64_t end, bool stream)                                                            \
    {                                                                                                                  \
        if (may_stream((T *)out + begin, stream))                                                                      \
            seg_scan_##type(true, carry, heads, in, out, begin, end, true);                                            \
        else                                                                                                           \
            seg_scan_##type(true, carry, heads, in, out, begin, end, false);                                           \
    }                                                                                                                  \
    void sum_seg_exclusive_##type(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,   \
                                  int64_t end, bool stream)                                                            \
    {                                                                                                                  \
        if (may_stream((T *)out + begin, stream))                                                                      \
            seg_scan_##type(false, carry, heads, in, out, begin, end, true);                                           \
        else                                                                                                           \
            seg_scan_##type(false, carry, heads, in, out, begin, end, false);                                          \
    }
SUM_LIST(DEFINE)
#undef DEFINE
