/* A right solution of the exercise scan; test_exercise.py makes wrong ones from it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

void scan_inclusive(int64_t (*op)(int64_t, int64_t), const int64_t *in, int64_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = i > 0 ? op(out[i - 1], in[i]) : in[i];
}

void scan_exclusive(int64_t (*op)(int64_t, int64_t), int64_t identity, const int64_t *in, int64_t *out, int64_t n)
{
    int64_t sum = identity;
    for (int64_t i = 0; i < n; i++) {
        const int64_t next = op(sum, in[i]); /* before out[i] is written: it may be in[i] */
        out[i] = sum;
        sum = next;
    }
}
