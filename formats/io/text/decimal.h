/* Fast parser for numbers of ordinary length, which are nearly all numbers in a file. Other cases
 * (other forms, more digits, ties, the ends of the range) are left to number_parse and parse_count,
 * with the same results.
 *
 * The ends of digits are found in 32 bytes at once. Digits are converted eight at a time within one
 * word (D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51,
 * 2021), counted from their end, so that numbers of different lengths cause few mispredicted
 * branches. A decimal w 10^q is multiplied by the leading 128 bits of 5^q, as in that paper's
 * Eisel-Lemire algorithm. The rounding argument is new: the product is too small by less than
 * three units of its 128th bit, so it decides the rounding unless it lies that close below a tie.
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

/* 5^q = (high 2^64 + low + d) 2^e with 0 <= d < 1.001 and the top bit of high set, at index q -
 * DECIMAL_LEAST. */
enum { DECIMAL_LEAST = -342, DECIMAL_MOST = 308 };
struct decimal_power {
    uint64_t high, low;
};
struct decimal_table {
    struct decimal_power power[DECIMAL_MOST - DECIMAL_LEAST + 1];
};
extern const struct decimal_table decimal_powers;

/* The code for ordinary numbers is always inlined. */
#if defined(__GNUC__)
#define DECIMAL_INLINE static inline __attribute__((always_inline))
#else
#define DECIMAL_INLINE static inline
#endif

/* Bytes that must be readable before and after the text. */
enum { DECIMAL_PADDING = 64 };

/* Loads eight bytes, the first one as the lowest. */
static inline uint64_t decimal_load(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Bit i, i < 32, is set if p[i] is not a digit. */
static inline uint32_t decimal_stops(const char *p)
{
#if defined(__SSE2__)
    /* After this shift the digits are the smallest signed bytes. */
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

/* Classifies the 64 bytes at the beginning of a line: bit i for p[i]. */
struct decimal_line {
    uint64_t stops; /* not a digit */
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

/* The position of the first set bit; 64 if there is none. */
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

/* The number with the last n digits before end, 0 <= n <= 8. Adds digits to pairs, pairs to fours,
 * fours to eight. */
static inline uint64_t decimal_eight(const char *end, int n)
{
    const int half = 32 - 4 * n; /* halved, because a shift by 64 is undefined */
    uint64_t v = (decimal_load(end - 8) ^ 0x3030303030303030u) & UINT64_MAX << half << half;
    v = v * 10 + (v >> 8);
    return ((v & 0x000000ff000000ffu) * 0x000f424000000064u +
            ((v >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >>
           32;
}

#if defined(__SSE2__)
/* Converts 16 digits, one per byte, to four numbers of four digits. */
static inline __m128i decimal_fours(__m128i digits)
{
    const __m128i tens = _mm_mullo_epi16(_mm_and_si128(digits, _mm_set1_epi16(0xff)), _mm_set1_epi16(10));
    return _mm_madd_epi16(_mm_add_epi16(tens, _mm_srli_epi16(digits, 8)), _mm_set1_epi32(100 | 1 << 16));
}

/* Converts eight numbers of four digits to four numbers of eight digits. */
static inline __m128i decimal_join(__m128i first, __m128i second)
{
    return _mm_madd_epi16(_mm_packs_epi32(first, second), _mm_set1_epi32(10000 | 1 << 16));
}

/* From decimal_ones + n on: n bytes of ones at the end of 16, zeros before. */
extern const unsigned char decimal_ones[32];

/* The last n digits before end, 0 <= n <= 16, with leading zeros. */
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

/* The numbers with the last n digits before end and with the last m before stop, up to eight digits
 * each. */
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

/* The number with the last n digits before end, 0 <= n <= 16. */
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

/* Splits the last n digits before end, 0 <= n <= 24: *high, those before the last 16, and *low, the
 * last 16. *whole: the last m digits before stop, up to eight. Without a branch, because in
 * ordinary files numbers have 16 or 17 digits at random. */
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

/* The bits of w 10^q rounded to nearest, in a format with this many bits of mantissa (hidden bit
 * included) and this exponent bias. False if the product does not decide the rounding. */
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
    const int up = (int)(high >> 63); /* the first set bit of the product is bit 126 + up */
    const int shift = 63 + up - mantissa;
    const uint64_t rest = high & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
    if ((rest == half && low == 0) || (rest == half - 1 && low >= UINT64_MAX - 2))
        return false;
    /* 217706 / 2^16 approximates log2 10 well enough for the floor of q log2 10 up to |q| = 342. */
    const int64_t exponent = 63 + up - zeros + (q * 217706 >> 16) + bias;
    if (exponent < 1 || exponent >= 2 * bias)
        return false;
    /* A mantissa that rounds up to 2^mantissa carries into the exponent. */
    *bits = ((uint64_t)(exponent - 1) << (mantissa - 1)) + (high >> shift) + (rest >= half);
    return true;
}

/* As decimal_round, with only the upper half of the power. The product is then too small by less
 * than 2 + 2^-62 units of its 64th bit. Also false if this error reaches half a unit of the
 * mantissa, for one number in 340 of f64. */
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
    high <<= 1 - up; /* now the first bit is bit 63, and the error is below 5 units */
    const uint64_t half = (uint64_t)1 << (63 - mantissa), rest = high & (2 * half - 1);
    /* As in decimal_round. */
    const int64_t exponent = 63 + up - zeros + (q * 217706 >> 16) + bias;
    if (rest - (half - 5) <= 5 || exponent < 1 || exponent >= 2 * bias)
        return false;
    *bits = ((uint64_t)(exponent - 1) << (mantissa - 1)) + (((high >> (63 - mantissa)) + 1) >> 1);
    return true;
}

/* Parses digits[.digits][e|d[sign]digits] at p into w and q and returns the end. NULL if the number
 * has too many digits or another form. stops: non-digit bits from p on; they must include the first
 * byte that is neither digit nor point. */
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

/* As decimal_parse_f64, into the bits of a format, of which bit `sign` is its sign. mantissa, bias:
 * as in decimal_round. */
static inline const char *decimal_parse_bits(const char *p, uint64_t stops, int mantissa, int bias, int sign,
                                             uint64_t *bits)
{
    uint64_t w;
    int64_t q;
    const bool negative = *p == '-';
    p = decimal_parse(p + negative, stops >> negative, &w, &q);
    if (p == NULL || !decimal_round(w, q, mantissa, bias, bits))
        return NULL;
    *bits |= (uint64_t)negative << sign;
    return p;
}

/* Parses the number at p into *value, a float or a double. Returns its end, or NULL if it needs the
 * general parser. stops: as in decimal_parse. */
static inline const char *decimal_parse_f64(const char *p, uint64_t stops, double *value)
{
    uint64_t bits;
    p = decimal_parse_bits(p, stops, 53, 1023, 63, &bits);
    if (p != NULL)
        memcpy(value, &bits, sizeof bits);
    return p;
}

static inline const char *decimal_parse_f32(const char *p, uint64_t stops, float *value)
{
    uint64_t bits;
    p = decimal_parse_bits(p, stops, 24, 127, 31, &bits);
    const uint32_t narrow = p != NULL ? (uint32_t)bits : 0;
    if (p != NULL)
        memcpy(value, &narrow, sizeof narrow);
    return p;
}

SPMV_END_DECLS

#endif
