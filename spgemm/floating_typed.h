/* The arithmetic of one type of values (each_floating.h). Products and sums are rounded in the type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static inline T TYPED(times)(T a, T b)
{
#if IS_COMPLEX
    return (T){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
#else
    return a * b;
#endif
}

static inline T TYPED(plus)(T a, T b)
{
#if IS_COMPLEX
    return (T){a.re + b.re, a.im + b.im};
#else
    return a + b;
#endif
}

/* -0 is neutral for sums: -0 + x has the bits of x, also for x = +0 and x = -0. */
static inline T TYPED(neutral)(void)
{
#if IS_COMPLEX
    return (T){-0.0f, -0.0f};
#else
    return (T)-0.0;
#endif
}

/* The product of entry k of A and entry l of B. The factor of a pattern (NULL) is left out. */
static inline T TYPED(term)(const T *a, int64_t k, const T *b, int64_t l)
{
#if IS_COMPLEX
    const T one = {1, 0};
#else
    const T one = 1;
#endif
    return a == NULL ? (b == NULL ? one : b[l]) : b == NULL ? a[k] : TYPED(times)(a[k], b[l]);
}
