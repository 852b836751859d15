/* gather and scatter for one type (each_type.h), of all elements or of those with a flag.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* Element i of the index says where in the cells an element is; a gather reads there and writes
 * element i, a scatter the reverse. flags: NULL, or flags[i - from] != 0 if element i is taken.
 * scatters and bits, and flags if NULL, are constants after inlining. One unsigned comparison checks
 * the range of the index: a negative one becomes a large number. */
static inline void TYPED(move)(const struct move *m, bool scatters, const uint8_t *flags, int bits, int64_t from,
                               int64_t to)
{
    const T *const in = m->in;
    const void *const index = m->index;
    const uint64_t cells = (uint64_t)m->cells;
    T *const out = m->out;
    for (int64_t i = from; i < to; i++) {
        const int64_t at = offset_at(index, bits, i);
        if ((flags == NULL || flags[i - from] != 0) && (uint64_t)at < cells)
            out[scatters ? at : i] = in[scatters ? i : at];
    }
}

static inline void TYPED(move_flagged)(const struct move *m, bool scatters, const uint8_t *flags, int64_t from,
                                       int64_t to)
{
    if (m->index_bits == 32 && flags == NULL)
        TYPED(move)(m, scatters, NULL, 32, from, to);
    else if (m->index_bits == 32)
        TYPED(move)(m, scatters, flags, 32, from, to);
    else if (flags == NULL)
        TYPED(move)(m, scatters, NULL, 64, from, to);
    else
        TYPED(move)(m, scatters, flags, 64, from, to);
}
