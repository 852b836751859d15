/* A right solution of the exercise segmented-scan; test_exercise.py makes wrong ones from it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

struct pair {
    int64_t value;
    int head;
};

struct pair combine(int64_t (*op)(int64_t, int64_t), struct pair earlier, struct pair later)
{
    struct pair both;
    both.value = later.head ? later.value : op(earlier.value, later.value);
    both.head = earlier.head || later.head;
    return both;
}
