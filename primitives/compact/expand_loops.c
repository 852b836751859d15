/* The loops of generalised compact: see expand_loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/compact/expand_loops.h"

/* Writes outputs from <= j < to, the first of which belongs to element i. */
typedef void outputs_loop(const struct expansion *e, int64_t i, int64_t from, int64_t to);

#define DEFINE_OUTPUTS(loop, T, cells, value)                                                                          \
    static void loop(const struct expansion *e, int64_t i, int64_t from, int64_t to)                                   \
    {                                                                                                                  \
        T *const made = cells;                                                                                         \
        for (int64_t j = from; j < to; i++) {                                                                          \
            const int64_t first = e->offsets[i], behind = min_i64(e->offsets[i + 1], to);                              \
            (void)first;                                                                                               \
            for (; j < behind; j++)                                                                                    \
                made[j] = value;                                                                                       \
        }                                                                                                              \
    }
#define DEFINE(NAME, name, value, T, CLASS, ARG) DEFINE_OUTPUTS(copies_##name, T, e->out, ((const T *)e->in)[i])
SPMV_TYPES(DEFINE, )
#undef DEFINE
DEFINE_OUTPUTS(sources_32, int32_t, e->source, (int32_t)i)
DEFINE_OUTPUTS(sources_64, int64_t, e->source, i)
DEFINE_OUTPUTS(ranks_32, int32_t, e->rank, (int32_t)(j - first))
DEFINE_OUTPUTS(ranks_64, int64_t, e->rank, j - first)

#define ROW(NAME, name, value, T, CLASS, ARG) [value] = copies_##name,
static outputs_loop *const copies[SPMV_TYPE_LIMIT] = {SPMV_TYPES(ROW, )};

static void expand_range(const struct expansion *e, int64_t i, int64_t from, int64_t to)
{
    if (e->out != NULL)
        copies[e->type](e, i, from, to);
    if (e->source != NULL)
        (e->index_bits == 32 ? sources_32 : sources_64)(e, i, from, to);
    if (e->rank != NULL)
        (e->index_bits == 32 ? ranks_32 : ranks_64)(e, i, from, to);
}

void expand_elements(const struct expansion *e, int64_t begin, int64_t end)
{
    expand_range(e, begin, e->offsets[begin], min_i64(e->offsets[end], e->total));
}

/* The element of output j: the last one that starts at j or before. */
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
    if (begin < end)
        expand_range(e, element_of(e, begin), begin, end);
}
