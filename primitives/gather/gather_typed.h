/* gather for one type (each_type.h), of all elements or of those with a mask.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* bits, and mask if NULL, are constants after inlining. One unsigned comparison checks the range of
 * the index: a negative one becomes a large number. */
static inline void TYPED(gather_from)(const struct move *m, const uint8_t *mask, int bits, int64_t from, int64_t to)
{
    const T *const in = m->in;
    const void *const index = m->index;
    const uint64_t cells = (uint64_t)m->cells;
    T *const out = m->out;
    for (int64_t i = from; i < to; i++) {
        const int64_t at = offset_at(index, bits, i);
        if ((mask == NULL || mask[i] != 0) && (uint64_t)at < cells)
            out[i] = in[at];
    }
}

static void TYPED(gather)(const struct move *m, int64_t from, int64_t to)
{
    const uint8_t *const mask = m->filter != NULL ? m->filter->mask : NULL;
    if (m->index_bits == 32 && mask == NULL)
        TYPED(gather_from)(m, NULL, 32, from, to);
    else if (m->index_bits == 32)
        TYPED(gather_from)(m, mask, 32, from, to);
    else if (mask == NULL)
        TYPED(gather_from)(m, NULL, 64, from, to);
    else
        TYPED(gather_from)(m, mask, 64, from, to);
}
