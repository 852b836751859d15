/* Parses an ordinary line of a real coordinate file with AVX2: row, column and value, one blank
 * between, up to 64 bytes.
 *
 * The ends of all numbers are found in one pass over the line. Row and column are converted side by
 * side. So are the value's digits before and after its point: two loads, one byte apart, are
 * blended to remove the point. A value of up to 19 digits w and exponent q is converted with one
 * product (decimal_quick). Values that this does not decide, and all other lines, are left to
 * decimal.h.
 *
 * Included where the compiler targets AVX2, BMI and BMI2 (tile_entries_avx2.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DECIMAL_AVX2_H
#define DECIMAL_AVX2_H

#include <immintrin.h>

#include "formats/io/text/decimal.h"

/* Keeps a constant in a register. Otherwise the compiler computes it again with several
 * instructions per line. */
DECIMAL_INLINE __m256i decimal_kept(__m256i v)
{
    __asm__("" : "+x"(v));
    return v;
}

/* From index n on: n bytes of ones at the end of 32, zeros before. The second array has ones only
 * in the four bits of a digit's value. */
static const unsigned char decimal_avx2_ones[64] = {
    0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
    0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
static const unsigned char decimal_avx2_fours[64] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                                     0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                                     15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15,
                                                     15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15};

/* Bit i, i < 64, is set if p[i] is not a digit. */
DECIMAL_INLINE uint64_t decimal_avx2_stops(const char *p)
{
    /* After this shift the digits are the smallest signed bytes. */
    const __m256i shift = decimal_kept(_mm256_set1_epi8((char)(0x80 - '0')));
    const __m256i nine = decimal_kept(_mm256_set1_epi8((char)(0x80 + 9)));
    const __m256i first = _mm256_add_epi8(_mm256_loadu_si256((const __m256i *)(const void *)p), shift);
    const __m256i second = _mm256_add_epi8(_mm256_loadu_si256((const __m256i *)(const void *)(p + 32)), shift);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(first, nine)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(second, nine)) << 32;
}

/* Converts, in each half, 16 digits (one per byte) to two numbers of eight digits, stored twice. */
DECIMAL_INLINE __m256i decimal_avx2_eights(__m256i digits)
{
    const __m256i twos = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(10 | 1 << 8));
    const __m256i fours = _mm256_madd_epi16(twos, _mm256_set1_epi32(100 | 1 << 16));
    return _mm256_madd_epi16(_mm256_packus_epi32(fours, fours), _mm256_set1_epi32(10000 | 1 << 16));
}

/* The numbers with the last n digits before end and with the last m before stop, 1 to 8 digits
 * each. */
DECIMAL_INLINE void decimal_avx2_two(const char *end, uint64_t n, const char *stop, uint64_t m, uint64_t *first,
                                     uint64_t *second)
{
    const unsigned char *const fours = decimal_avx2_fours + 24;
    const __m128i text = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(end - 8)),
                                            _mm_loadl_epi64((const __m128i *)(const void *)(stop - 8)));
    const __m128i taken = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)(const void *)(fours + n)),
                                             _mm_loadl_epi64((const __m128i *)(const void *)(fours + m)));
    const __m256i numbers = decimal_avx2_eights(_mm256_castsi128_si256(_mm_and_si128(text, taken)));
    const uint64_t both = (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(numbers));
    *first = both & 0xffffffffu;
    *second = both >> 32;
}

/* The number with the last n digits before end, 1 <= n <= 24, of which the last places digits are
 * after a point. *high: the digits before the last 16. */
DECIMAL_INLINE uint64_t decimal_avx2_digits(const char *end, uint64_t n, uint64_t places, uint64_t *high)
{
    const __m256i behind = _mm256_loadu_si256((const __m256i *)(const void *)(end - 32));
    const __m256i before = _mm256_loadu_si256((const __m256i *)(const void *)(end - 33));
    const __m256i side = _mm256_loadu_si256((const __m256i *)(const void *)(decimal_avx2_ones + places));
    const __m256i taken = _mm256_loadu_si256((const __m256i *)(const void *)(decimal_avx2_fours + n));
    const __m256i text = _mm256_blendv_epi8(before, behind, decimal_kept(side));
    const __m256i numbers = decimal_avx2_eights(_mm256_and_si256(text, taken));
    const uint64_t upper = (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(numbers));
    const uint64_t lower = (uint64_t)_mm_cvtsi128_si64(_mm256_extracti128_si256(numbers, 1));
    *high = upper >> 32;
    return (*high * 100000000 + (lower & 0xffffffffu)) * 100000000 + (lower >> 32);
}

/* Parses the entry on an ordinary line. Returns the next line, or NULL if the line needs the
 * general parser, also if it is malformed. value: a float (narrow) or a double. */
DECIMAL_INLINE const char *decimal_avx2_line(const char *line, int64_t rows, int64_t cols, bool narrow, int64_t *row,
                                             int64_t *col, void *value)
{
    uint64_t stops = decimal_avx2_stops(line);
    const uint64_t first = _tzcnt_u64(stops);
    stops = _blsr_u64(stops);
    const uint64_t second = _tzcnt_u64(stops), digits = second - first - 1, start = second + 1;
    stops = _blsr_u64(stops);
    if (first - 1 >= 8 || digits - 1 >= 8 || line[first] != ' ' || line[second] != ' ')
        return NULL;
    uint64_t numbers[2];
    decimal_avx2_two(line + first, first, line + second, digits, &numbers[0], &numbers[1]);
    *row = (int64_t)numbers[0] - 1;
    *col = (int64_t)numbers[1] - 1;
    if ((uint64_t)*row >= (uint64_t)rows || (uint64_t)*col >= (uint64_t)cols)
        return NULL;
    /* No branch for the sign, because signs are random. */
    const uint64_t negative = stops >> start & 1;
    stops &= ~((uint64_t)1 << start);
    if ((line[start] == '-') != negative)
        return NULL;
    const uint64_t begin = start + negative, point = _tzcnt_u64(stops);
    uint64_t end = point, places = 0, w = 0, high = 0, bits = 0;
    if (line[point] == '.') {
        end = _tzcnt_u64(_blsr_u64(stops));
        places = end - point - 1;
        if (end - begin - 2 >= 24)
            return NULL;
        w = decimal_avx2_digits(line + end, end - begin - 1, places, &high);
        if (high >= 1000)
            return NULL;
    } else {
        if (end - begin - 1 >= 8)
            return NULL;
        w = decimal_eight(line + end, (int)(end - begin));
    }
    int64_t q = -(int64_t)places;
    const char *stop = line + end;
    if (*stop != '\n' && (*stop | 0x20) == 'e') {
        const bool less = stop[1] == '-';
        stop += 1 + (less || stop[1] == '+');
        /* Beyond the 64 bytes no stop is found: the length is then too large. */
        const uint64_t length = _tzcnt_u64(stops >> (stop - line));
        if (length - 1 >= 4)
            return NULL;
        stop += length;
        const int64_t written = (int64_t)decimal_eight(stop, (int)length);
        q += less ? -written : written;
    }
    if (*stop == '\r')
        stop++;
    if (*stop != '\n')
        return NULL;
    if (!(narrow ? decimal_quick(w, q, 24, 127, &bits) : decimal_quick(w, q, 53, 1023, &bits)))
        return NULL;
    if (narrow) {
        const uint32_t word = (uint32_t)(bits | negative << 31);
        memcpy(value, &word, sizeof word);
    } else {
        bits |= negative << 63;
        memcpy(value, &bits, sizeof bits);
    }
    return stop + 1;
}

#endif
