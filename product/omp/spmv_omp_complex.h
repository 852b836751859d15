/* Complex numbers for spmv_omp_columns.c, included once for each type: COMPLEX; PACK, a vector of
 * the processor that holds two of them; and NAMED(name).
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

/* Adds value times two numbers z, w, stored as (z.re, z.im, w.re, w.im). With value = a + bi, the
 * term is a (z.re, z.im, w.re, w.im) + (-b, b, -b, b) (z.im, z.re, w.im, w.re). The bits equal
 * those of times. */
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
