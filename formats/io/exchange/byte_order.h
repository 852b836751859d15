/* Integers and numbers of binary files: arrays of any width and byte order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BYTE_ORDER_H
#define BYTE_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool host_is_big(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* The bytes b[0 .. width) as an unsigned integer, width <= 8. */
static inline uint64_t bytes_at(const unsigned char *b, int width, bool big)
{
    uint64_t value = 0;
    for (int i = 0; i < width; i++)
        value |= (uint64_t)b[i] << 8 * (big ? width - 1 - i : i);
    return value;
}

static inline uint32_t u32_at(const unsigned char *b, bool big)
{
    return (uint32_t)b[big ? 3 : 0] | (uint32_t)b[big ? 2 : 1] << 8 | (uint32_t)b[big ? 1 : 2] << 16 |
           (uint32_t)b[big ? 0 : 3] << 24;
}

static inline uint64_t u64_at(const unsigned char *b, bool big)
{
    return (uint64_t)u32_at(b + (big ? 4 : 0), big) | (uint64_t)u32_at(b + (big ? 0 : 4), big) << 32;
}

/* Writes the lowest width bytes, at most 8, of value at b. */
static inline void put_bytes(unsigned char *b, uint64_t value, int width, bool big)
{
    for (int i = 0; i < 8; i++)
        if (i < width)
            b[i] = (unsigned char)(value >> 8 * (big ? width - 1 - i : i));
}

/* The kind of the numbers of a file. BOOLEAN: bytes, not 0 for true. */
enum number_class { NUMBERS_BOOLEAN, NUMBERS_SIGNED, NUMBERS_UNSIGNED, NUMBERS_REAL, NUMBERS_COMPLEX };

/* n numbers in a file. */
struct numbers {
    const unsigned char *at;
    int64_t n;
    enum number_class class;
    int width; /* bytes of each: 1, 2, 4, 8; real: 4, 8; complex: 8, 16 */
    bool big;  /* the most significant byte comes first */
};

/* Integer k of signed or unsigned integers. *fits: false if it does not fit in 63 bits; else unchanged. */
static inline int64_t integer_of(const struct numbers *numbers, int64_t k, bool *fits)
{
    const unsigned char *const b = numbers->at + k * numbers->width;
    const bool is_signed = numbers->class == NUMBERS_SIGNED;
    if (numbers->width == 4)
        return is_signed ? (int64_t)(int32_t)u32_at(b, numbers->big) : (int64_t)u32_at(b, numbers->big);
    const uint64_t value = numbers->width == 8 ? u64_at(b, numbers->big) : bytes_at(b, numbers->width, numbers->big);
    if (numbers->width == 8 && !is_signed && value > INT64_MAX)
        *fits = false;
    if (!is_signed || numbers->width == 8)
        return (int64_t)value;
    return numbers->width == 1 ? (int64_t)(int8_t)value : (int64_t)(int16_t)value;
}

#endif
