/* Numbers of ordinary length, read fast: the way of nearly every number in a file. What this does not take (other
 * forms, more digits, ties, the ends of the range) is left to number_parse and parse_count, with the same results.
 *
 * The ends of digits come from one look at 32 bytes, and digits are taken eight at a time within one word (D. Lemire,
 * "Number parsing at a gigabyte per second", Software: Practice and Experience 51, 2021), counted from their end, so
 * that numbers of different lengths cost few mispredicted branches. A decimal w 10^q becomes binary through the leading
 * 128 bits of 5^q, as in that paper's Eisel-Lemire algorithm, but rounded by an argument of our own: the product is too
 * small by less than three units of its 128th bit, so it decides the rounding unless it lies that close below a tie.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DECIMAL_H
#define DECIMAL_H

#include <spmv/types.h>
#include <stdbool.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

SPMV_BEGIN_DECLS

/* 5^q = (high 2^64 + low + d) 2^e with 0 <= d < 1.001 and the top bit of high set, at index q - DECIMAL_LEAST. */
enum { DECIMAL_LEAST = -342, DECIMAL_MOST = 308 };
struct decimal_power {
    uint64_t high, low;
};
struct decimal_table {
    struct decimal_power power[DECIMAL_MOST - DECIMAL_LEAST + 1];
};
extern const struct decimal_table decimal_powers;

/* What the usual number takes in every file is no call, whatever the compiler makes of its size. */
#if defined(__GNUC__)
#define DECIMAL_INLINE static inline __attribute__((always_inline))
#else
#define DECIMAL_INLINE static inline
#endif

/* Bytes that must be readable before and behind the text. */
enum { DECIMAL_PADDING = 64 };

/* Eight bytes, the first lowest. */
static inline uint64_t decimal_load(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Bit i, i < 32: p[i] is no digit. */
static inline uint32_t decimal_stops(const char *p)
{
#if defined(__SSE2__)
    /* the digits are the least of all signed bytes after this shift */
    const __m128i shift = _mm_set1_epi8((char)(0x80 - '0')), nine = _mm_set1_epi8((char)(0x80 + 9));
    const __m128i first = _mm_add_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), shift);
    const __m128i second = _mm_add_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16)), shift);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(first, nine)) |
           (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(second, nine)) << 16;
#else
    uint32_t stops = 0;
    for (int k = 0; k < 4; k++) {
        const uint64_t v = decimal_load(p + 8 * k) ^ 0x3030303030303030u; /* digits become 0 to 9 */
        const uint64_t other = (((v & 0x7f7f7f7f7f7f7f7fu) + 0x7676767676767676u) | v) & 0x8080808080808080u;
        stops |= (uint32_t)((other >> 7) * 0x0102040810204080u >> 56) << (8 * k);
    }
    return stops;
#endif
}

/* Which of the 64 bytes at a line's begin are what: bit i for p[i]. */
struct decimal_line {
    uint64_t stops; /* no digits */
    uint64_t ends;  /* line ends */
};

static inline struct decimal_line decimal_look(const char *p)
{
    struct decimal_line line;
    line.stops = decimal_stops(p) | (uint64_t)decimal_stops(p + 32) << 32;
#if defined(__SSE2__)
    const __m128i end = _mm_set1_epi8('\n');
    uint64_t ends[4];
    for (int k = 0; k < 4; k++)
        ends[k] = (uint64_t)(uint32_t)_mm_movemask_epi8(
            _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * k)), end));
    line.ends = ends[0] | ends[1] << 16 | ends[2] << 32 | ends[3] << 48;
#else
    line.ends = 0;
    for (int k = 0; k < 8; k++) {
        const uint64_t v = decimal_load(p + 8 * k) ^ 0x0a0a0a0a0a0a0a0au; /* line ends become 0 */
        const uint64_t end = ~(((v & 0x7f7f7f7f7f7f7f7fu) + 0x7f7f7f7f7f7f7f7fu) | v) & 0x8080808080808080u;
        line.ends |= ((end >> 7) * 0x0102040810204080u >> 56) << (8 * k);
    }
#endif
    return line;
}

/* Where the first of these bits is; 64 for none. */
static inline int decimal_first(uint64_t stops)
{
#if defined(__GNUC__)
    return stops == 0 ? 64 : __builtin_ctzll(stops);
#else
    int i = 0;
    while (i < 64 && (stops >> i & 1) == 0)
        i++;
    return i;
#endif
}

/* The number made of the last n digits before end, 0 <= n <= 8: pairs, fours, all eight. */
static inline uint64_t decimal_eight(const char *end, int n)
{
    const int half = 32 - 4 * n; /* shifts by all 64 bits are none */
    uint64_t v = (decimal_load(end - 8) ^ 0x3030303030303030u) & UINT64_MAX << half << half;
    v = v * 10 + (v >> 8);
    return ((v & 0x000000ff000000ffu) * 0x000f424000000064u +
            ((v >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >>
           32;
}

#if defined(__SSE2__)
/* 16 digits, each as a byte's number, as four numbers of four digits. */
static inline __m128i decimal_fours(__m128i digits)
{
    const __m128i tens = _mm_mullo_epi16(_mm_and_si128(digits, _mm_set1_epi16(0xff)), _mm_set1_epi16(10));
    return _mm_madd_epi16(_mm_add_epi16(tens, _mm_srli_epi16(digits, 8)), _mm_set1_epi32(100 | 1 << 16));
}

/* Eight numbers of four digits as four of eight. */
static inline __m128i decimal_join(__m128i first, __m128i second)
{
    return _mm_madd_epi16(_mm_packs_epi32(first, second), _mm_set1_epi32(10000 | 1 << 16));
}

/* n bytes of ones behind others of zeros, from decimal_ones + n on. */
extern const unsigned char decimal_ones[32];

/* The last n digits before end, 0 <= n <= 16, behind zeros. */
static inline __m128i decimal_last(const char *end, int n)
{
    const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)(end - 16));
    return _mm_and_si128(_mm_sub_epi8(text, _mm_set1_epi8('0')),
                         _mm_loadu_si128((const __m128i *)(const void *)(decimal_ones + n)));
}

/* The last n digits before end and the last m before stop, up to eight each. */
static inline __m128i decimal_last_two(const char *end, int n, const char *stop, int m)
{
    const __m128i text = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(end - 8)),
                                            _mm_loadl_epi64((const __m128i *)(const void *)(stop - 8)));
    const __m128i ones = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(decimal_ones + 8 + n)),
                                            _mm_loadl_epi64((const __m128i *)(const void *)(decimal_ones + 8 + m)));
    return _mm_and_si128(_mm_sub_epi8(text, _mm_set1_epi8('0')), ones);
}

/* The low and the high half of the lower 64 bits. */
static inline void decimal_halves(__m128i v, uint64_t *low, uint64_t *high)
{
    uint64_t both;
    _mm_storel_epi64((__m128i *)(void *)&both, v);
    *low = both & 0xffffffffu;
    *high = both >> 32;
}
#endif

/* The numbers made of the last n digits before end and of the last m before stop, up to eight each. */
static inline void decimal_two(const char *end, int n, const char *stop, int m, uint64_t *first, uint64_t *second)
{
#if defined(__SSE2__)
    const __m128i fours = decimal_fours(decimal_last_two(end, n, stop, m));
    decimal_halves(decimal_join(fours, fours), first, second);
#else
    *first = decimal_eight(end, n);
    *second = decimal_eight(stop, m);
#endif
}

/* The number made of the last n digits before end, 0 <= n <= 16. */
static inline uint64_t decimal_sixteen(const char *end, int n)
{
#if defined(__SSE2__)
    uint64_t high, low;
    const __m128i fours = decimal_fours(decimal_last(end, n));
    decimal_halves(decimal_join(fours, fours), &high, &low);
    return high * 100000000 + low;
#else
    const int last = n < 8 ? n : 8;
    return decimal_eight(end - 8, n - last) * 100000000 + decimal_eight(end, last);
#endif
}

/* Of the last n digits before end, 0 <= n <= 24: *high, those before the last 16, and *low, the last 16; *whole: the
 * last m before stop, up to eight. Whether there are 16 or 17 is a matter of chance in the usual file, so it is no
 * branch. */
static inline void decimal_three(const char *end, int n, const char *stop, int m, uint64_t *high, uint64_t *low,
                                 uint64_t *whole)
{
    const int last = n < 16 ? n : 16;
#if defined(__SSE2__)
    uint64_t upper, lower;
    const __m128i numbers = decimal_join(decimal_fours(decimal_last(end, last)),
                                         decimal_fours(decimal_last_two(end - 16, n - last, stop, m)));
    decimal_halves(numbers, &upper, &lower);
    decimal_halves(_mm_unpackhi_epi64(numbers, numbers), high, whole);
    *low = upper * 100000000 + lower;
#else
    *high = decimal_eight(end - 16, n - last);
    *low = decimal_sixteen(end, last);
    *whole = decimal_eight(stop, m);
#endif
}

static inline void decimal_multiply(uint64_t a, uint64_t b, uint64_t *high, uint64_t *low)
{
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 wide;
    const wide product = (wide)a * b;
    *high = (uint64_t)(product >> 64);
    *low = (uint64_t)product;
#else
    const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffffu);
    *high = a1 * b1 + (middle >> 32) + (other >> 32);
    *low = a * b;
#endif
}

static inline int decimal_leading_zeros(uint64_t w)
{
#if defined(__GNUC__)
    return __builtin_clzll(w);
#else
    int n = 0;
    for (; w >> 63 == 0; w <<= 1)
        n++;
    return n;
#endif
}

/* The bits of w 10^q rounded to nearest, in a format of so many bits of mantissa (the hidden one included) and that
 * exponent bias; false when this does not decide it. */
static inline bool decimal_round(uint64_t w, int64_t q, int mantissa, int bias, uint64_t *bits)
{
    if (w == 0) {
        *bits = 0;
        return true;
    }
    if (q < DECIMAL_LEAST || q > DECIMAL_MOST)
        return false;
    const struct decimal_power *const power = &decimal_powers.power[q - DECIMAL_LEAST];
    const int zeros = decimal_leading_zeros(w);
    uint64_t high, low, next, least;
    w <<= zeros;
    decimal_multiply(w, power->high, &high, &low);
    decimal_multiply(w, power->low, &next, &least);
    low += next;
    high += low < next;
    const int up = (int)(high >> 63); /* the product has its first bit at 126 + up */
    const int shift = 63 + up - mantissa;
    const uint64_t rest = high & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
    if ((rest == half && low == 0) || (rest == half - 1 && low >= UINT64_MAX - 2))
        return false;
    /* 217706 / 2^16 is log2 10, near enough for the floor of q log2 10 up to |q| = 342 */
    const int64_t exponent = 63 + up - zeros + (q * 217706 >> 16) + bias;
    if (exponent < 1 || exponent >= 2 * bias)
        return false;
    /* a mantissa that rounds up to 2^mantissa carries into the exponent */
    *bits = ((uint64_t)(exponent - 1) << (mantissa - 1)) + (high >> shift) + (rest >= half);
    return true;
}

/* The same by the upper half of the power alone, from which the product lacks less than 2 + 2^-62 units of its 64th
 * bit: false also where that reaches or passes half a unit of the mantissa, for one number in 340 of f64. */
DECIMAL_INLINE bool decimal_quick(uint64_t w, int64_t q, int mantissa, int bias, uint64_t *bits)
{
    if (w == 0) {
        *bits = 0;
        return true;
    }
    if (q < DECIMAL_LEAST || q > DECIMAL_MOST)
        return false;
    const int zeros = decimal_leading_zeros(w);
    uint64_t high, low;
    decimal_multiply(w << zeros, decimal_powers.power[q - DECIMAL_LEAST].high, &high, &low);
    const int up = (int)(high >> 63);
    high <<= 1 - up; /* and its first bit at 63: it lacks less than 5 units then */
    const uint64_t half = (uint64_t)1 << (63 - mantissa), rest = high & (2 * half - 1);
    /* 217706 / 2^16: as above */
    const int64_t exponent = 63 + up - zeros + (q * 217706 >> 16) + bias;
    if (rest - (half - 5) <= 5 || exponent < 1 || exponent >= 2 * bias)
        return false;
    *bits = ((uint64_t)(exponent - 1) << (mantissa - 1)) + (((high >> (63 - mantissa)) + 1) >> 1);
    return true;
}

/* Reads digits[.digits][e|d[sign]digits] at p: w, q and where it ends, as far as 64 bits hold the digits and they are
 * few; NULL for what is to be read by other means. stops: of the bytes from p on, of which the first that is neither
 * digit nor point is one. */
static inline const char *decimal_parse(const char *p, uint64_t stops, uint64_t *w, int64_t *q)
{
    static const uint64_t power[20] = {1u,
                                       10u,
                                       100u,
                                       1000u,
                                       10000u,
                                       100000u,
                                       1000000u,
                                       10000000u,
                                       100000000u,
                                       1000000000u,
                                       10000000000u,
                                       100000000000u,
                                       1000000000000u,
                                       10000000000000u,
                                       100000000000000u,
                                       1000000000000000u,
                                       10000000000000000u,
                                       100000000000000000u,
                                       1000000000000000000u,
                                       10000000000000000000u};
    const int n = decimal_first(stops);
    if (n == 0 || n > 8)
        return NULL;
    uint64_t whole, high, low;
    int places = 0;
    if (p[n] == '.') {
        stops &= stops - 1;
        places = decimal_first(stops) - n - 1;
        if (places > 24)
            return NULL;
        decimal_three(p + n + 1 + places, places, p + n, n, &high, &low, &whole);
        p += n + 1 + places;
        if (high >= 1000 || (whole != 0 && n + places > 19))
            return NULL;
        low += high * power[16];
        whole = whole == 0 ? low : whole * power[places] + low;
    } else {
        whole = decimal_eight(p + n, n);
        p += n;
    }
    int64_t exponent = -places;
    const char letter = (char)(*p | 0x20);
    if (letter == 'e' || letter == 'd') {
        p++;
        const bool negative = *p == '-';
        p += negative || *p == '+';
        const int digits = decimal_first(decimal_stops(p));
        if (digits == 0 || digits > 8)
            return NULL;
        p += digits;
        const int64_t written = (int64_t)decimal_eight(p, digits);
        exponent += negative ? -written : written;
    }
    *w = whole;
    *q = exponent;
    return p;
}

/* The number at p into *value, a float or a double; where it ends, or NULL for what is to be read by other means.
 * stops: as in decimal_parse. */
static inline const char *decimal_parse_f64(const char *p, uint64_t stops, double *value)
{
    uint64_t w, bits;
    int64_t q;
    const bool negative = *p == '-';
    p = decimal_parse(p + negative, stops >> negative, &w, &q);
    if (p == NULL || !decimal_round(w, q, 53, 1023, &bits))
        return NULL;
    bits |= (uint64_t)negative << 63;
    memcpy(value, &bits, sizeof bits);
    return p;
}

static inline const char *decimal_parse_f32(const char *p, uint64_t stops, float *value)
{
    uint64_t w, bits;
    int64_t q;
    const bool negative = *p == '-';
    p = decimal_parse(p + negative, stops >> negative, &w, &q);
    if (p == NULL || !decimal_round(w, q, 24, 127, &bits))
        return NULL;
    const uint32_t narrow = (uint32_t)bits | (uint32_t)negative << 31;
    memcpy(value, &narrow, sizeof narrow);
    return p;
}

SPMV_END_DECLS

#endif
