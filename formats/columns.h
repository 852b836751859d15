/* Columns of a row: search and sort. For C and CUDA C++.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLUMNS_H
#define COLUMNS_H

#include <stdint.h>

#include "core/host_device_fn.h"

/* The first of the entries low <= k < high, whose columns ascend, with a column of at least wanted;
 * high if there is none. */
HOST_DEVICE_FN int64_t first_column_from(const int32_t *col, int64_t low, int64_t high, int64_t wanted)
{
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (col[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Sorts a few columns. */
HOST_DEVICE_FN void sort_by_insertion(int32_t *col, int64_t n)
{
    for (int64_t e = 1; e < n; e++) {
        const int32_t j = col[e];
        int64_t to = e;
        for (; to > 0 && col[to - 1] > j; to--)
            col[to] = col[to - 1];
        col[to] = j;
    }
}

#endif
