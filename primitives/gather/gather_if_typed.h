/* gather of the elements that a predicate takes, for one pair of predicate and type
 * (each_predicate.h): see gather_typed.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static inline void TYPED(gather_if_from)(const struct move *m, int bits, int64_t from, int64_t to)
{
    const T *const in = m->in, s = *(const T *)(const void *)&m->filter->scalar;
    const bool when = m->filter->when;
    const void *const index = m->index;
    const uint64_t cells = (uint64_t)m->cells;
    T *const out = m->out;
    for (int64_t i = from; i < to; i++) {
        const int64_t at = offset_at(index, bits, i);
        if ((uint64_t)at < cells && TYPED(predicate)(in[at], s) == when)
            out[i] = in[at];
    }
}

static void TYPED(gather_if)(const struct move *m, int64_t from, int64_t to)
{
    if (m->index_bits == 32)
        TYPED(gather_if_from)(m, 32, from, to);
    else
        TYPED(gather_if_from)(m, 64, from, to);
}
