/* Complex numbers for spmv_omp_columns.c, included once a type: COMPLEX; PACK, a vector of the processor that holds two;
 * and NAMED(name).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static ALWAYS_INLINE COMPLEX NAMED(plus)(COMPLEX a, COMPLEX b)
{
    return (COMPLEX){a.re + b.re, a.im + b.im};
}

static ALWAYS_INLINE COMPLEX NAMED(times)(COMPLEX a, COMPLEX b)
{
    return (COMPLEX){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static ALWAYS_INLINE COMPLEX NAMED(conjugate)(COMPLEX a)
{
    return (COMPLEX){a.re, -a.im};
}

/* Two numbers z, w lie as (z.re, z.im, w.re, w.im). With value = a + bi, what is added is a times that, plus (-b, b,
 * -b, b) times (z.im, z.re, w.im, w.re): the bits of times. */
static ALWAYS_INLINE void NAMED(add)(PACK *sum, bool pattern, const COMPLEX *value, const COMPLEX *row)
{
    PACK here;
    memcpy(&here, row, sizeof here);
    if (pattern) {
        *sum += here;
        return;
    }
    const PACK swapped = {here[1], here[0], here[3], here[2]};
    const PACK signs = {-value->im, value->im, -value->im, value->im};
    *sum += value->re * here + signs * swapped;
}
