/* The loops of generalised compact: see expand_loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "expand_loops.h"

int64_t expand_count(const void *counts, int count_bits, int64_t i)
{
    const int64_t count = count_bits == 32 ? (int64_t)((const int32_t *)counts)[i] : ((const int64_t *)counts)[i];
    return count > 0 ? count : 0;
}

#define DEFINE(NAME, name, value, T, D, CLASS, ARG)                                                                    \
    static void fill_##name(const void *in, int64_t i, void *out, int64_t from, int64_t to)                            \
    {                                                                                                                  \
        const T x = ((const T *)in)[i];                                                                                \
        for (int64_t j = from; j < to; j++)                                                                            \
            ((T *)out)[j] = x;                                                                                         \
    }
SPMV_TYPE_LIST(DEFINE, )

typedef void fill_loop(const void *in, int64_t i, void *out, int64_t from, int64_t to);
#define ROW(NAME, name, value, T, D, CLASS, ARG) [value] = fill_##name,
static fill_loop *const fill[SPMV_TYPE_LIMIT] = {SPMV_TYPE_LIST(ROW, )};

/* to[j] = first + (j - from) * step */
static void fill_index(void *to, int bits, int64_t from, int64_t end, int64_t first, int64_t step)
{
    for (int64_t j = from; to != NULL && j < end; j++) {
        const int64_t value = first + (j - from) * step;
        if (bits == 32)
            ((int32_t *)to)[j] = (int32_t)value;
        else
            ((int64_t *)to)[j] = value;
    }
}

/* Outputs from <= j < to, all of element i. */
static void expand_run(const struct expansion *e, int64_t i, int64_t from, int64_t to)
{
    if (e->out != NULL)
        fill[e->type](e->in, i, e->out, from, to);
    fill_index(e->source, e->index_bits, from, to, i, 0);
    fill_index(e->rank, e->index_bits, from, to, from - e->offsets[i], 1);
}

void expand_elements(const struct expansion *e, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        expand_run(e, i, e->offsets[i], e->offsets[i + 1] < e->total ? e->offsets[i + 1] : e->total);
}

/* The element that output j belongs to: the last one that begins at j or before. */
static int64_t element_of(const struct expansion *e, int64_t j)
{
    int64_t lo = 0, hi = e->n; /* offsets[lo] <= j < offsets[hi] */
    while (hi - lo > 1) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (e->offsets[middle] <= j)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

void expand_outputs(const struct expansion *e, int64_t begin, int64_t end)
{
    for (int64_t j = begin, i = begin < end ? element_of(e, begin) : 0; j < end; i++) {
        const int64_t behind = e->offsets[i + 1] < end ? e->offsets[i + 1] : end;
        expand_run(e, i, j, behind);
        j = behind;
    }
}
