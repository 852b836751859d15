/* scatter of one type (each_type.h), of all elements and of those with a flag.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* bits is a constant once inlined, and so are flags of NULL. One unsigned comparison tells whether the index is inside:
 * a negative one becomes too large a number. */
static inline void TYPED(scatter_to)(const struct move *m, const uint8_t *flags, int bits, int64_t from, int64_t to)
{
    const T *const in = m->in;
    const void *const index = m->index;
    const uint64_t cells = (uint64_t)m->cells;
    T *const out = m->out;
    for (int64_t i = from; i < to; i++) {
        const int64_t at = offset_at(index, bits, i);
        if ((flags == NULL || flags[i - from] != 0) && (uint64_t)at < cells)
            out[at] = in[i];
    }
}

static void TYPED(scatter)(const struct move *m, const uint8_t *flags, int64_t from, int64_t to)
{
    if (m->index_bits == 32 && flags == NULL)
        TYPED(scatter_to)(m, NULL, 32, from, to);
    else if (m->index_bits == 32)
        TYPED(scatter_to)(m, flags, 32, from, to);
    else if (flags == NULL)
        TYPED(scatter_to)(m, NULL, 64, from, to);
    else
        TYPED(scatter_to)(m, flags, 64, from, to);
}
