/* The typed part of statistics.c, included once per type of values (each_value.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static inline bool TYPED(equal)(T a, T b)
{
#if IS_COMPLEX
    return a.re == b.re && a.im == b.im;
#else
    return a == b;
#endif
}

static inline bool TYPED(finite)(T a)
{
#if IS_COMPLEX
    return isfinite(a.re) && isfinite(a.im);
#elif IS_REAL
    return isfinite(a);
#else
    (void)a;
    return true;
#endif
}

static inline T TYPED(negated)(T a)
{
#if IS_COMPLEX
    return (T){-a.re, -a.im};
#else
    return TYPED(function_neg)(a);
#endif
}

static inline T TYPED(conjugate)(T a)
{
#if IS_COMPLEX
    return (T){a.re, -a.im};
#else
    return a;
#endif
}

/* Converts an integer to the type. */
static inline T TYPED(number)(int a)
{
#if IS_COMPLEX
    return (T){(float)a, 0};
#else
    return (T)a;
#endif
}

/* Counts the values that are 0 and those that are not finite among the first n. */
static void TYPED(count_values)(const void *values, int64_t n, int64_t *zeros, int64_t *odd)
{
    const T *const val = values;
    for (int64_t k = 0; k < n; k++) {
        *zeros += TYPED(equal)(val[k], TYPED(number)(0));
        *odd += !TYPED(finite)(val[k]);
    }
}

/* The flags that hold for a row of A and the same row of its transpose. An entry that is not stored
 * is 0. */
static int TYPED(compare)(struct row a, struct row b)
{
    const T *const a_val = a.val, *const b_val = b.val, zero = TYPED(number)(0), one = TYPED(number)(1);
    int flags = ALL_FLAGS;
    for (int64_t i = 0, j = 0; flags != 0 && (i < a.n || j < b.n);) {
        const bool in_a = i < a.n && (j == b.n || a.col[i] <= b.col[j]);
        const bool in_b = j < b.n && (i == a.n || b.col[j] <= a.col[i]);
        const T x = !in_a ? zero : a_val != NULL ? a_val[i] : one;
        const T y = !in_b ? zero : b_val != NULL ? b_val[j] : one;
        if (!in_a || !in_b)
            flags &= ~PATTERN_SYMMETRIC;
        if (!TYPED(equal)(x, y))
            flags &= ~SYMMETRIC;
        if (!TYPED(equal)(x, TYPED(negated)(y)))
            flags &= ~SKEW_SYMMETRIC;
        if (!TYPED(equal)(x, TYPED(conjugate)(y)))
            flags &= ~HERMITIAN;
        i += in_a;
        j += in_b;
    }
    return flags;
}
