/* Places in the layout of a halo, and numbers in the whole vector: on the host and on a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GROUP_PLACES_H
#define GROUP_PLACES_H

#include "core/host_device_fn.h"
#include "formats/columns.h"
#include "solvers/exchange/rank_tools.h"

/* ghost: that of the halo, in the memory of the caller. */
HOST_DEVICE_FN int32_t number_at(const struct rank_halo *h, const int32_t *ghost, int32_t place)
{
    const int64_t own = place - h->room;
    return own < 0        ? ghost[own + h->before]
           : own < h->own ? (int32_t)(h->first + own)
                          : ghost[h->before + own - h->own];
}

/* The number among ghosts of a place; -1: it is an own one, or none. */
HOST_DEVICE_FN int64_t ghost_at(const struct rank_halo *h, int64_t place)
{
    const int64_t behind = h->room + h->own;
    return place >= behind                 ? h->before + place - behind
           : place >= 0 && place < h->room ? h->before + place - h->room
                                           : -1;
}

/* The place of the last element of the layout up to this number, or -1; *there: whether it is the number's. */
HOST_DEVICE_FN int32_t place_up_to(const struct rank_halo *h, const int32_t *ghost, int32_t number, bool *there)
{
    *there = number >= h->first && number < h->first + h->own;
    if (*there)
        return (int32_t)(h->room + number - h->first);
    const int64_t at = first_column_from(ghost, 0, h->before + h->after, (int64_t)number + 1) - 1;
    *there = at >= 0 && ghost[at] == number;
    if (number < h->first)
        return at < 0 ? -1 : (int32_t)(h->room - h->before + at);
    return (int32_t)(h->room + h->own - 1 + (at < h->before ? 0 : at + 1 - h->before));
}

#endif
