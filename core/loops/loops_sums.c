/* Sums with vectors: see loops_sums.h.
 *
 * Fold: 64 bytes of partial sums; element i is added to lane (i - begin) mod (64 / size). Missing
 * elements of the last block are replaced by -0 (integers: 0), which changes no sum. The partial
 * sums are added as a tree.
 * Scan: within a vector by shifts, two steps for four lanes (W. D. Hillis, G. L. Steele, "Data
 * parallel algorithms", CACM 29, 1986); then two vectors are joined and the carry is added. So the
 * dependency from pair to pair is one addition.
 * Segmented scan: the same on (value, head), with masks.
 * The order of additions is explicit and does not depend on the compiler or the vector width, so
 * the bits are the same on all machines.
 *
 * GCC and Clang support these vectors on every machine. Only the shuffle is spelled differently.
 * x86 has its own code for two things: the store that bypasses the caches (elsewhere a normal
 * store), and the scans with AVX2, which process two vectors at once exactly as the plain code
 * processes one after the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/loops_sums.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { BYTES = 16 };

typedef int8_t bytes16 __attribute__((vector_size(BYTES)));
typedef int16_t words8 __attribute__((vector_size(BYTES)));

/* Selects lanes by number: the lanes of a, followed by those of b. */
#ifdef __clang__
#define PICK(V, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define PICK(V, a, b, ...) __builtin_shuffle(a, b, (V){__VA_ARGS__})
#endif

/* Shift up by a number of bytes, filling with zeros; shift down. */
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

/* Broadcast of the last lane, by the number of lanes; each byte or word of the lower or upper half
 * twice. */
#define LAST_4(M, a) PICK(M, a, a, 3, 3, 3, 3)
#define LAST_2(M, a) PICK(M, a, a, 1, 1)
#define LOWER_BYTES_TWICE(a) ((words8)PICK(bytes16, a, a, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7))
#define UPPER_BYTES_TWICE(a) ((words8)PICK(bytes16, a, a, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15))
#define LOWER_WORDS_TWICE(a) PICK(words8, a, a, 0, 0, 1, 1, 2, 2, 3, 3)
#define UPPER_WORDS_TWICE(a) PICK(words8, a, a, 4, 4, 5, 5, 6, 6, 7, 7)

#define LANED(name) LANED_(name, LANES)
#define LANED_(name, lanes) LANED_AS_(name, lanes)
#define LANED_AS_(name, lanes) name##_##lanes

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

/* Orders stores that bypass the caches before later stores. */
static inline void store_end(bool stream)
{
#ifdef __x86_64__
    if (stream)
        _mm_sfence();
#endif
    (void)stream;
}

/* A store that bypasses the caches needs an address that is a multiple of its length. */
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

/* 16 heads as masks */
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

/* Builds a vector lane by lane. */
#define EACH_4(Lane, at)                                                                                               \
    {                                                                                                                  \
        (Lane) at(0), (Lane)at(1), (Lane)at(2), (Lane)at(3)                                                            \
    }
#define EACH_2(Lane, at)                                                                                               \
    {                                                                                                                  \
        (Lane) at(0), (Lane)at(1)                                                                                      \
    }
#define ALWAYS_X(j) x

/* Vectors of partial sums of a fold. */
enum { PARTS = 4 };

#define TREE_4(s) ((s[0] + s[1]) + (s[2] + s[3]))
#define TREE_2(s) (s[0] + s[1])

/* The 64 bytes from first_bytes + 64 - k are a mask of the first k bytes. */
#define MASKS_16(m) m, m, m, m, m, m, m, m, m, m, m, m, m, m, m, m
#define MASKS_64(m) MASKS_16(m), MASKS_16(m), MASKS_16(m), MASKS_16(m)
static const int8_t first_bytes[2 * PARTS * BYTES] = {MASKS_64(-1), MASKS_64(0)};

/* For segment j of several side by side: element k, and the segment's length. */
#define ELEMENT(j) x[head[j] + k]
#define LENGTH(j) (int32_t)(head[(j) + 1] - head[j])

/* Heads that are tested together. */
enum { HEADS = 16 };

#ifdef __x86_64__
#define WIDE __attribute__((target("avx2")))
/* Broadcast of the last lane of the lower half, and of the upper half; the elements' heads as
 * masks. */
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
#endif

static inline bool no_head(const uint8_t *flag)
{
    uint64_t half[2];
    memcpy(half, flag, sizeof half);
    return (half[0] | half[1]) == 0;
}

#define TEMPLATE "core/loops/loops_sums_typed.h"
#include "core/each/each_sum.h"
