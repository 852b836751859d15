/* A right solution of the exercise parallel-scan; test_exercise.py makes wrong ones from it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

void parallel_scan(int64_t (*op)(int64_t, int64_t), const int64_t *in, int64_t *out, int64_t n)
{
    int64_t d = 1;
    for (int64_t i = 0; i < n; i++)
        out[i] = in[i];
    for (; d < n; d *= 2)
        for (int64_t i = 2 * d - 1; i < n; i += 2 * d)
            out[i] = op(out[i - d], out[i]);
    for (d /= 2; d >= 1; d /= 2)
        for (int64_t i = 3 * d - 1; i < n; i += 2 * d)
            out[i] = op(out[i - d], out[i]);
}
