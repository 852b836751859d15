/* real_hypot: its error, the ends of the range, and numbers that are exact.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"

#include <math.h>

#include "core/hypot.h"

/* sqrtl has 11 or more bits more than a double, or none, where long double is a double: the bound is
 * wider by the reference's own error. */
static void error_is_small(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int i = 0; i < 100000; i++) {
        const double a = 1 + (double)(splitmix_next(&random) >> 11) * 0x1p-53;
        const double b = ldexp(1 + (double)(splitmix_next(&random) >> 11) * 0x1p-53, -(i % 60));
        const long double exact = sqrtl((long double)a * a + (long double)b * b);
        const int exponent = i % 4 < 2 ? 0 : i % 4 == 2 ? 1022 : -900; /* a power of two changes no bit */
        const double found = real_hypot(ldexp(i % 3 ? a : -a, exponent), ldexp(b, exponent));
        assert_true(fabsl(ldexpl(found, -exponent) - exact) <= (0x1p-52L + LDBL_EPSILON) * exact);
        assert_true(found == real_hypot(ldexp(b, exponent), ldexp(a, exponent)));
    }
}

static void ends_of_the_range(void **state)
{
    (void)state;
    static const double numbers[] = {0,       1,        3,       0x1p-1000, 0x1p500,  0x1p-500,
                                     0x1p501, 0x1p-501, DBL_MAX, DBL_MIN,   0x1p-1074};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_true(real_hypot(numbers[i], 0) == numbers[i] && real_hypot(0, -numbers[i]) == numbers[i]);
        if (numbers[i] > 0x1p-1020 && numbers[i] < 0x1p1000)
            assert_true(real_hypot(3 * numbers[i], 4 * numbers[i]) == 5 * numbers[i]);
    }
    assert_true(real_hypot(3 * 0x1p-1074, 4 * 0x1p-1074) == 5 * 0x1p-1074);
    assert_true(isinf(real_hypot(DBL_MAX, DBL_MAX)) && isinf(real_hypot(-INFINITY, 1)) &&
                isinf(real_hypot(0, INFINITY)));
    assert_true(isnan(real_hypot(NAN, 1)) && isnan(real_hypot(1, NAN)) && isnan(real_hypot(NAN, 0)) &&
                isnan(real_hypot(0, NAN)));
}

SUPPORT_MAIN(cmocka_unit_test(error_is_small), cmocka_unit_test(ends_of_the_range))
