/* Numbers of ordinary length, read fast: the way of nearly every number in a file. What this does not take (other
 * forms, more digits, ties, the ends of the range) is left to number_parse and parse_count, with the same results.
 *
 * Digits are taken eight at a time within one word (D. Lemire, "Number parsing at a gigabyte per second", Software:
 * Practice and Experience 51, 2021, section on SWAR; the length comes from the first byte that is no digit, so that
 * numbers of different lengths cost no mispredicted branch). A decimal w 10^q becomes binary through the leading 128
 * bits of 5^q, as in that paper's Eisel-Lemire algorithm, but rounded by an argument of our own: the product is too
 * small by less than two units of its 128th bit, so it decides the rounding unless it lies that close below a tie.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DECIMAL_H
#define DECIMAL_H

#include <spmv/types.h>
#include <stdbool.h>
#include <string.h>

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

/* Readable bytes behind the last byte that may belong to a number. */
enum { DECIMAL_PADDING = 64 };

static inline uint64_t decimal_power_of_ten(int k)
{
    static const uint64_t power[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    return power[k];
}

/* The digits at p, eight at most: how many there are, their value in *value (0 for none). */
static inline int decimal_digits(const char *p, uint64_t *value)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && defined(__GNUC__)
    uint64_t v;
    memcpy(&v, p, sizeof v);
    v ^= 0x3030303030303030u; /* digits become 0 to 9; all other bytes are larger */
    /* carries run towards later bytes only, and only the first byte that is no digit counts */
    const uint64_t other = ((v + 0x7676767676767676u) | v) & 0x8080808080808080u;
    const int n = other == 0 ? 8 : __builtin_ctzll(other) >> 3;
    v = n == 0 ? 0 : v << (64 - 8 * n); /* zeros in front */
    v = v * 10 + (v >> 8);              /* pairs */
    *value =
        ((v & 0x000000ff000000ffu) * 0x000f424000000064u + ((v >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >>
        32;
    return n;
#else
    int n = 0;
    for (*value = 0; n < 8 && p[n] >= '0' && p[n] <= '9'; n++)
        *value = 10 * *value + (uint64_t)(p[n] - '0');
    return n;
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

/* Reads [-]digits[.digits][e|d[sign]digits] at p: w, q and where it ends, as far as 64 bits hold the digits and they
 * are few enough; NULL for what is to be read by other means. At least DECIMAL_PADDING bytes must be readable. */
static inline const char *decimal_parse(const char *p, uint64_t *w, int64_t *q)
{
    uint64_t whole, first, second, third;
    const int n = decimal_digits(p, &whole);
    p += n;
    if (n == 8)
        return NULL;
    int n1 = 0, n2 = 0, n3 = 0;
    if (*p == '.') {
        p++;
        n1 = decimal_digits(p, &first);
        /* those of a shorter run must not be taken twice */
        n2 = n1 == 8 ? decimal_digits(p + 8, &second) : 0;
        if (n2 > 0) {
            n3 = n2 == 8 ? decimal_digits(p + 16, &third) : 0;
            if (n3 == 8 || (n + n1 + n2 + n3 > 19 && (whole != 0 || first >= decimal_power_of_ten(8 - n3) * 1000)))
                return NULL;
            whole = (whole * 100000000 + first) * decimal_power_of_ten(n2) + second;
            if (n3 > 0)
                whole = whole * decimal_power_of_ten(n3) + third;
        } else {
            whole = whole * decimal_power_of_ten(n1) + first;
        }
        p += n1 + n2 + n3;
    }
    if (n + n1 == 0)
        return NULL;
    int64_t exponent = -(n1 + n2 + n3);
    const char letter = (char)(*p | 0x20);
    if (letter == 'e' || letter == 'd') {
        p++;
        const bool negative = *p == '-';
        p += negative || *p == '+';
        uint64_t written;
        const int digits = decimal_digits(p, &written);
        if (digits == 0 || digits == 8)
            return NULL;
        p += digits;
        exponent += negative ? -(int64_t)written : (int64_t)written;
    }
    *w = whole;
    *q = exponent;
    return p;
}

/* The number at p into *value, a float or a double; where it ends, or NULL for what is to be read by other means. */
static inline const char *decimal_parse_f64(const char *p, double *value)
{
    uint64_t w, bits;
    int64_t q;
    const bool negative = *p == '-';
    p = decimal_parse(p + negative, &w, &q);
    if (p == NULL || !decimal_round(w, q, 53, 1023, &bits))
        return NULL;
    bits |= (uint64_t)negative << 63;
    memcpy(value, &bits, sizeof bits);
    return p;
}

static inline const char *decimal_parse_f32(const char *p, float *value)
{
    uint64_t w, bits;
    int64_t q;
    const bool negative = *p == '-';
    p = decimal_parse(p + negative, &w, &q);
    if (p == NULL || !decimal_round(w, q, 24, 127, &bits))
        return NULL;
    const uint32_t narrow = (uint32_t)bits | (uint32_t)negative << 31;
    memcpy(value, &narrow, sizeof narrow);
    return p;
}

SPMV_END_DECLS

#endif
