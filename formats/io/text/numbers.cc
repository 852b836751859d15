/* Numbers as text, on std::from_chars and std::to_chars. The standard C library has no function
 * that is correctly rounded, bounded by a length and independent of the locale. Only their
 * overloads for float and double are used, so no template of the C++ library is instantiated or
 * exported.
 *
 * from_chars accepts the grammar of strtod in the C locale without the plus sign. Added here: the
 * plus sign, Fortran's exponent letter D, and Fortran's exponent of three digits without a letter.
 * Refused here: nan(...).
 *
 * The library functions are based on U. Adams, "Ryu: fast float-to-string conversion", PLDI 2018
 * (output), and D. Lemire, "Number parsing at a gigabyte per second", 2021 (input).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <charconv>
#include <climits>
#include <cmath>
#include <cstring>
#include <system_error>

#include "core/reals.h"
#include "formats/io/text/decimal.h"
#include "formats/io/text/numbers.h"

namespace
{

/* 5^q rounded down to 128 bits, by repeated multiplication and division by 5 in 192 bits, each
 * rounded down. 342 steps lose less than 2^-54 of the last of the 128 bits. */
constexpr decimal_table make_powers()
{
    decimal_table table = {};
    /* the lowest first; 1 with its top bit in place */
    uint32_t limb[6] = {0, 0, 0, 0, 0, 0x80000000u};
    uint32_t down[6] = {0, 0, 0, 0, 0, 0x80000000u};
    for (int q = 0; q <= -DECIMAL_LEAST; q++) {
        if (q <= DECIMAL_MOST) {
            table.power[q - DECIMAL_LEAST] = {uint64_t(limb[5]) << 32 | limb[4], uint64_t(limb[3]) << 32 | limb[2]};
            uint64_t carry = 0;
            for (int k = 0; k < 6; k++) {
                carry += uint64_t(limb[k]) * 5;
                limb[k] = uint32_t(carry);
                carry >>= 32;
            }
            for (; carry > 0; carry >>= 1) /* shift right by one bit */
                for (int k = 0; k < 6; k++)
                    limb[k] = limb[k] >> 1 | (k < 5 ? limb[k + 1] : uint32_t(carry)) << 31;
        }
        table.power[-q - DECIMAL_LEAST] = {uint64_t(down[5]) << 32 | down[4], uint64_t(down[3]) << 32 | down[2]};
        /* A seventh limb provides the bits that the left shift of the quotient needs. */
        uint64_t rest = 0;
        uint32_t quotient[7] = {};
        for (int k = 6; k >= 0; k--) {
            const uint64_t part = rest << 32 | (k > 0 ? down[k - 1] : 0);
            quotient[k] = uint32_t(part / 5);
            rest = part % 5;
        }
        int zeros = 0;
        while ((quotient[6] << zeros & 0x80000000u) == 0)
            zeros++;
        for (int k = 0; k < 6; k++)
            down[k] = quotient[k + 1] << zeros | uint32_t(uint64_t(quotient[k]) >> (32 - zeros));
    }
    return table;
}

constexpr decimal_table powers = make_powers();

/* Limit for a number with an exponent of Fortran's, which is copied to write the letter e. The
 * format limits lines to 1024 bytes. */
const int fortran_limit = 1024;

inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

inline char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
}

/* Whether a number of the grammar [digits][.digits][e[sign]digits] that is out of the type's range
 * is below 1, by the decimal exponent of its first digit that is not 0. */
bool tiny(const char *text, const char *end)
{
    const long limit = LONG_MAX / 16;
    long exponent = 0; /* of the first digit that is not 0 */
    bool point = false, found = false;
    for (; text < end && (is_digit(*text) || *text == '.'); text++) {
        if (*text == '.')
            point = true;
        else if (found)
            exponent += point ? 0 : 1;
        else if (*text != '0')
            found = true, exponent -= point ? 1 : 0;
        else
            exponent -= point ? 1 : 0;
    }
    long written = 0;
    if (text < end) {
        const bool negative = ++text < end && *text == '-';
        if (text < end && (*text == '-' || *text == '+'))
            text++;
        for (; text < end && is_digit(*text); text++)
            written = written < limit ? 10 * written + (*text - '0') : limit;
        written = negative ? -written : written;
    }
    return exponent + written < 0;
}

/* The end of inf, infinity or nan at text, or NULL. */
const char *word_end(const char *text, const char *end)
{
    static const char *const words[] = {"infinity", "inf", "nan"};
    for (const char *word : words) {
        size_t i = 0;
        while (word[i] != '\0' && text + i < end && lower(text[i]) == word[i])
            i++;
        if (word[i] == '\0')
            return text + i;
    }
    return nullptr;
}

/* digits: after the sign. */
template <class T>
inline number_result parse_unsigned(const char *digits, const char *end, T *value, const char **rest,
                                    number_remark *remark)
{
    *remark = NUMBER_PLAIN;
    if (digits < end && !is_digit(*digits) && *digits != '.') {
        *rest = word_end(digits, end);
        if (*rest == nullptr)
            return NUMBER_MALFORMED;
        *remark = NUMBER_NOT_FINITE;
        *value = lower(*digits) == 'i' ? T(HUGE_VAL) : T(NAN);
        return NUMBER_OK;
    }
    const std::from_chars_result r = std::from_chars(digits, end, *value);
    if (r.ec == std::errc::invalid_argument)
        return NUMBER_MALFORMED;
    *rest = r.ptr;
    /* Implementations differ in the result for underflow, and in whether overflow is an error or
     * gives infinity. */
    if (r.ec == std::errc::result_out_of_range || std::isinf(*value)) {
        if (!tiny(digits, r.ptr))
            return NUMBER_TOO_LARGE;
        *value = T(0);
    }
    return NUMBER_OK;
}

/* The end of a sign and digits at p; p if there are no digits. */
const char *exponent_end(const char *p, const char *end)
{
    const char *const first = p < end && (*p == '-' || *p == '+') ? p + 1 : p;
    const char *stop = first;
    while (stop < end && is_digit(*stop))
        stop++;
    return stop > first ? stop : p;
}

/* If the number at digits continues at rest with an exponent of Fortran's, returns the end of that
 * exponent, otherwise NULL. Fortran writes a letter D (1.5D+03), or an exponent of three digits
 * without a letter after a number with a point (0.577-104). Other digits without a letter are
 * refused, because they may be two numbers. *sign: the exponent's sign or first digit. */
const char *fortran_exponent(const char *digits, const char *rest, const char *end, const char **sign)
{
    const bool letter = lower(*rest) == 'd';
    *sign = letter ? rest + 1 : rest;
    const char *const stop = exponent_end(*sign, end);
    if (letter)
        return stop > *sign ? stop : nullptr;
    if ((*rest != '-' && *rest != '+') || stop - rest != 4)
        return nullptr;
    bool point = false;
    for (; digits < rest; digits++) {
        if (!is_digit(*digits) && *digits != '.')
            return nullptr; /* it has an exponent */
        point = point || *digits == '.';
    }
    return point ? stop : nullptr;
}

/* Parses the number at digits again if it has an exponent of Fortran's at *rest. */
template <class T>
number_result parse_fortran(const char *digits, const char *end, number_result result, T *value, const char **rest,
                            number_remark *remark)
{
    char copy[fortran_limit];
    const char *sign = nullptr;
    const char *const stop = fortran_exponent(digits, *rest, end, &sign);
    if (stop == nullptr)
        return result; /* the number ends here */
    const size_t mantissa = size_t(*rest - digits), exponent = size_t(stop - sign);
    if (mantissa + 1 + exponent > fortran_limit)
        return NUMBER_MALFORMED;
    memcpy(copy, digits, mantissa);
    copy[mantissa] = 'e';
    memcpy(copy + mantissa + 1, sign, exponent);
    const char *copy_rest = copy;
    result = parse_unsigned(copy, copy + mantissa + 1 + exponent, value, &copy_rest, remark);
    *rest = stop;
    return result;
}

template <class T>
inline number_result parse(const char *text, const char *end, T *value, const char **rest, number_remark *remark)
{
    const bool negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    if (text == end)
        return NUMBER_MALFORMED;
    number_result result = parse_unsigned(text, end, value, rest, remark);
    if (result != NUMBER_MALFORMED && *remark == NUMBER_PLAIN && *rest < end &&
        (lower(**rest) == 'd' || **rest == '-' || **rest == '+'))
        result = parse_fortran(text, end, result, value, rest, remark);
    if (result == NUMBER_OK && negative)
        *value = -*value;
    return result;
}

/* Whether the integer value has exactly the given digits (without leading zeros). */
template <class T> bool same_digits(T value, const char *digits, const char *digits_end)
{
    char text[320]; /* the largest double has 309 digits */
    const std::to_chars_result r = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed);
    return r.ec == std::errc() && r.ptr - text == digits_end - digits &&
           memcmp(text, digits, size_t(digits_end - digits)) == 0;
}

template <class T>
inline number_result parse_integer(const char *text, const char *end, T *value, const char **rest,
                                   number_remark *remark)
{
    const bool negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    const char *const first = text;
    uint64_t n = 0;
    while (text < end && is_digit(*text))
        n = 10 * n + uint64_t(*text++ - '0'); /* wraps after 19 digits; used only up to 18 */
    if (text == first)
        return NUMBER_MALFORMED;
    *rest = text;
    *remark = NUMBER_PLAIN;
    const int64_t exact = int64_t(1) << (sizeof(T) == sizeof(double) ? 53 : 24);
    if (text - first <= 18 && int64_t(n) <= exact) {
        *value = T(n);
    } else {
        const char *digits = first;
        while (digits < text - 1 && *digits == '0')
            digits++;
        const number_result result = parse_unsigned(digits, text, value, rest, remark);
        if (result != NUMBER_OK)
            return result;
        if (!same_digits(*value, digits, text))
            *remark = NUMBER_ROUNDED;
    }
    if (negative)
        *value = -*value;
    return NUMBER_OK;
}

} // namespace

extern "C" const decimal_table decimal_powers = powers;
#if defined(__SSE2__)
extern "C" const unsigned char decimal_ones[32] = {0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
                                                   0,   0,   0,   0,   0,   255, 255, 255, 255, 255, 255,
                                                   255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
#endif

/* Calls parse with the value as a pointer to a number of its type. */
template <class Parse> static enum number_result as_type(spmv_type type, void *value, const Parse &parse)
{
    switch (static_cast<int>(type)) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        return parse(static_cast<T *>(value));
        REAL_LIST(CASE)
#undef CASE
    default:
        return NUMBER_MALFORMED;
    }
}

extern "C" enum number_result number_parse(const char *text, const char *end, spmv_type type, void *value,
                                           const char **rest, enum number_remark *remark)
{
    return as_type(type, value, [=](auto *number) { return parse(text, end, number, rest, remark); });
}

extern "C" enum number_result number_parse_integer(const char *text, const char *end, spmv_type type, void *value,
                                                   const char **rest, enum number_remark *remark)
{
    return as_type(type, value, [=](auto *number) { return parse_integer(text, end, number, rest, remark); });
}

template <class T> static char *write(char *text, T value)
{
    if (std::isnan(value)) /* without a sign, which to_chars would write */
        return static_cast<char *>(memcpy(text, "nan", 3)) + 3;
    return std::to_chars(text, text + NUMBER_TEXT, value).ptr;
}

extern "C" char *number_write(char *text, spmv_type type, const void *value)
{
    switch (static_cast<int>(type)) {
#define CASE(NAME, name, T)                                                                                            \
    case SPMV_##NAME:                                                                                                  \
        return write(text, *static_cast<const T *>(value));
        REAL_LIST(CASE)
#undef CASE
    default:
        return text;
    }
}
